/** A name in quotes, as options hold it where it has letters that mean
 * something there: "a=b", 'x, y', "say ""x""". */
#ifndef OJ_QUOTED_NAME_H
#define OJ_QUOTED_NAME_H

#include <stddef.h>

/** Copies what stands in the quotes at *at, ' or ", to *to, and an end behind
 *  it; inside, a quote is doubled to stand for itself.  *at is then behind the
 *  closing quote, *to behind the end: no more letters than were read. 0: the
 *  quote is not closed.  to NULL: only passes over it. */
static inline int oj_quoted_name_read(const char **at, char **to)
{
    const char quote = *(*at)++;
    for (; **at != quote || (*at)[1] == quote; ++*at)
    {
        if (**at == '\0')
            return 0;
        *at += **at == quote;
        if (to != NULL)
            *(*to)++ = **at;
    }
    ++*at;
    if (to != NULL)
        *(*to)++ = '\0';
    return 1;
}

#endif
