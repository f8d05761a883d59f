/** What code points become, as oj_fold.h says.
 *
 *  A list of lines holds items, one after the other, for the code points from 0
 *  on; an item is a text, a mark with a number of code points, and a semicolon:
 *
 *   text;    one code point becomes text      text+n;  text, its successor, ...
 *   text*n;  n of them do                     text/n;  every other one text,
 * text =n;      n stay as they are                        + 2, ..., the others
 * stay
 */
#ifndef OJ_FOLD_TABLE_H
#define OJ_FOLD_TABLE_H

#include <stdint.h>

enum
{
    OJ_FOLD_END = 0x31400, /* behind it: oj_fold.c */
    OJ_FOLD_MOST = 18,     /* code points of one */
    OJ_FOLD_POOL = 16384   /* of all items of a list, and their numbers */
};

extern const char oj_fold_version[]; /**< of the Unicode database */
/** FNV-1a of what all code points but surrogates become, each ended by a zero,
 *  by the rules that the table was made from: full, case. */
extern const uint64_t oj_fold_checksum[2];
extern const char *const oj_fold_full[]; /**< ended by NULL */
extern const char *const oj_fold_case[]; /**< the same */

#endif
