#include "oj_shell_words.h"

#include "../../flatten/base/oj_alloc.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <limits.h>
#include <string.h>

static int is_space(char c)
{
    return c != '\0' && strchr(" \t\r\n\f\v", c) != NULL;
}

/* Copies a quoted piece of a word without its quotes; *at points to the opening
 * quote. Returns 0 if the closing quote is missing. */
static int copy_quoted(const char **at, char **out)
{
    char quote = **at;
    const char *c = *at + 1;
    for (; *c != '\0' && *c != quote; c++)
    {
        if (quote == '"' && c[0] == '\\' && c[1] != '\0' &&
            strchr("\\\"$`", c[1]) != NULL)
            c++;
        *(*out)++ = *c;
    }
    if (*c == '\0')
        return 0;
    *at = c + 1;
    return 1;
}

/* Copies one word up to white space, without its quotes. Returns 0 if a
 * quotation has no end. */
static int copy_word_without_quotes(const char **at, char **out)
{
    while (**at != '\0' && !is_space(**at))
    {
        if (**at == '\'' || **at == '"')
        {
            if (!copy_quoted(at, out))
                return 0;
            continue;
        }
        if ((*at)[0] == '\\' && (*at)[1] != '\0')
            (*at)++;
        *(*out)++ = *(*at)++;
    }
    *(*out)++ = '\0';
    return 1;
}

/* Returns the number of bytes of text to quote in a message: at most 40, and
 * only whole UTF-8 characters. */
static int message_excerpt_length(const char *text)
{
    size_t n = strnlen(text, 40);
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    return (int)n;
}

oj_status oj_words_split(const char *text, char ***words, int *n,
                         struct oj_error *err)
{
    size_t length = strlen(text), most = length / 2 + 2;
    const char *at = text;
    char **list, *out;
    int count = 0;
    if (length > INT_MAX / 16)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the command line of the join (behind JOIN: or in the "
                       "spec file) is longer than %d bytes: shorten it",
                       INT_MAX / 16);
    list = oj_malloc((int64_t)(most * sizeof *list + length + 2), 1);
    if (list == NULL)
        return oj_fail_nomem(err, (int64_t)length, sizeof *list);
    out = (char *)(list + most);
    for (;;)
    {
        const char *start;
        while (is_space(*at))
            at++;
        if (*at == '\0')
            break;
        start = at;
        list[count++] = out;
        if (!copy_word_without_quotes(&at, &out))
        {
            int shown = message_excerpt_length(start);
            oj_free(list);
            return oj_fail(err, OJ_ERR_ARG,
                           "the closing quote is missing in the word that "
                           "begins with %.*s: add it at the end of the word",
                           shown, start);
        }
    }
    list[count] = NULL;
    *words = list;
    *n = count;
    return OJ_OK;
}

/* Returns 1 if the word needs no quotes in any shell. */
static int is_plain_shell_word(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-+=.,:/@%";
    return word[0] != '\0' && word[strspn(word, letters)] == '\0';
}

static char *put_quoted_word(char *out, const char *word)
{
    if (is_plain_shell_word(word))
    {
        size_t n = strlen(word);
        memcpy(out, word, n);
        return out + n;
    }
    *out++ = '\'';
    for (; *word != '\0'; word++)
    {
        if (*word == '\'')
        {
            memcpy(out, "'\\'", 3);
            out += 3;
        }
        *out++ = *word;
    }
    *out++ = '\'';
    return out;
}

const char *oj_words_excerpt(const char *text, size_t n)
{
    char *copy = CPLScanString(text, (int)n, FALSE, FALSE);
    const char *start = CPLSPrintf("%s", copy);
    CPLFree(copy);
    return start;
}

char *oj_words_join(const char *const *words)
{
    size_t size = 1;
    char *line, *out;
    for (int i = 0; words[i] != NULL; i++)
        size += 4 * strlen(words[i]) + 3;
    line = out = CPLMalloc(size);
    for (int i = 0; words[i] != NULL; i++)
    {
        if (i > 0)
            *out++ = ' ';
        out = put_quoted_word(out, words[i]);
    }
    *out = '\0';
    return line;
}

int oj_words_are_equal(const char *const *a, const char *const *b)
{
    for (; a != NULL && b != NULL && *a != NULL && *b != NULL; a++, b++)
    {
        if (strcmp(*a, *b) != 0)
            return 0;
    }
    return (a == NULL || *a == NULL) && (b == NULL || *b == NULL);
}
