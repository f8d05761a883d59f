/** What code points become, as oj_fold.h says.
 *
 *  code point c  block number full[c / 128]  place block[128 number + c % 128]
 *  place         0: c itself; else pool[place] code points follow it there
 */
#ifndef OJ_FOLD_TABLE_H
#define OJ_FOLD_TABLE_H

#include <stdint.h>

enum
{
    OJ_FOLD_BLOCK = 128,
    OJ_FOLD_BLOCKS = 0x31400 / OJ_FOLD_BLOCK, /* behind it: oj_fold.c */
    OJ_FOLD_MOST = 18                         /* code points of one */
};

extern const char oj_fold_version[]; /**< of the Unicode database */
/** FNV-1a of what all code points but surrogates become, each ended by a zero,
 *  by the rules that the table was made from: full, case. */
extern const uint64_t oj_fold_checksum[2];
extern const uint16_t oj_fold_full[OJ_FOLD_BLOCKS];
extern const uint16_t oj_fold_case[OJ_FOLD_BLOCKS];
extern const uint16_t oj_fold_block[];
extern const uint32_t oj_fold_pool[];

#endif
