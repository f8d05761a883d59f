/** Lists of words in one text, as "a|b|c". */
#ifndef OJ_WORD_LIST_H
#define OJ_WORD_LIST_H

#include <string.h>
#include <strings.h>

/** The place of word, without case, in a list; -1: it is none of them. */
static inline int oj_words_find(const char *list, const char *word)
{
    size_t n = strlen(word);
    int place = 0;
    for (const char *at = list;; place++)
    {
        size_t length = strcspn(at, "|");
        if (length == n && strncasecmp(at, word, n) == 0)
            return place;
        if (at[length] == '\0')
            return -1;
        at += length + 1;
    }
}

/** Word number i of a list, *n letters; NULL past its end. */
static inline const char *oj_words_at(const char *list, int i, int *n)
{
    for (; i > 0; i--)
    {
        list += strcspn(list, "|");
        if (*list++ == '\0')
            return NULL;
    }
    *n = (int)strcspn(list, "|");
    return list;
}

#endif
