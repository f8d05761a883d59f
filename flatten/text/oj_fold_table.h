/** The table of folded code points; see oj_fold.h.
 *
 *  A list of strings holds items for consecutive code points from 0 on. An item
 *  is a text, a mark with a number n of code points, and a semicolon:
 *
 *   text;    one code point becomes text
 *   text+n;  n code points become text, its successor, ...
 *   text*n;  n code points become text
 *   text/n;  every second of n code points becomes text, text + 2, ...; those
 *            in between become themselves
 *   =n;      n code points become themselves
 */
#ifndef OJ_FOLD_TABLE_H
#define OJ_FOLD_TABLE_H

#include <stdint.h>

enum
{
    /* First code point behind the table; oj_fold.c treats the rest. */
    OJ_FOLD_END = 0x31400,
    OJ_FOLD_MOST = 18,   /* maximum number of code points to which one folds */
    OJ_FOLD_POOL = 16384 /* maximum size of oj_fold.c's pool: folded code points
                            and their counts */
};

extern const char oj_fold_version[]; /**< version of the Unicode database */
/** FNV-1a hashes of the folded texts of all code points except surrogates, each
 *  followed by a zero byte; computed from the rules of Unicode, not from the
 *  table. [0]: full, [1]: case. */
extern const uint64_t oj_fold_checksum[2];
extern const char *const oj_fold_full[]; /**< NULL-terminated */
extern const char *const oj_fold_case[]; /**< NULL-terminated */

#endif
