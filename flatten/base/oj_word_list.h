/** Lists of words in one string, separated by |: "a|b|c". */
#ifndef OJ_WORD_LIST_H
#define OJ_WORD_LIST_H

#include <string.h>
#include <strings.h>

/** Returns the position of word in a list, ignoring case; -1 if the list lacks
 *  it. */
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

/** Returns word i of a list and its length *n; NULL past the end of the list.
 */
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
