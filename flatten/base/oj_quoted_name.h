/** Reads quoted names in options: "a=b", 'x, y', "say ""x""". Quotes are needed
 *  for names with characters that otherwise separate the parts of an option. */
#ifndef OJ_QUOTED_NAME_H
#define OJ_QUOTED_NAME_H

#include <stddef.h>

/** Copies the name in the quotes at *at (' or ") to *to, zero-terminated; a
 *  doubled quote stands for one. Moves *at behind the closing quote and *to
 *  behind the terminator; never writes more bytes than it reads. Returns 0 if
 *  the closing quote is missing. to NULL: only skips the name. */
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
