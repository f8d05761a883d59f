/** Texts without what does not tell names apart.
 *
 *  full  apostrophes go, NFKD, full case folding, marks without width go, what
 *        is no letter, digit or mark becomes a space, letters without a
 *        decomposition (ø ł æ þ ..) become plain ones, Hangul stays; spaces are
 *        collapsed and trimmed
 *  case  full case folding; white space is collapsed and trimmed
 *  none  as it is
 *
 *  Code point by code point, by a table of one version of Unicode
 *  (make_fold_table.py), so that answers do not change with a library.  A byte
 *  that is no UTF-8 is a space.
 */
#ifndef OJ_FOLD_H
#define OJ_FOLD_H

#include "../base/oj_status.h"

#include <stdint.h>

enum oj_fold
{
    OJ_FOLD_FULL = 0,
    OJ_FOLD_CASE,
    OJ_FOLD_NONE
};

/** Code points. Owner; zeroed memory is a valid empty one, and may be used
 *  again. */
struct oj_folded
{
    uint32_t *code; /**< [n] */
    int64_t n, n_bad_bytes, cap_code;
};

/** Folds n bytes. Some nanoseconds a character. */
OJ_MUST_USE oj_status oj_fold(enum oj_fold fold, const char *bytes, int64_t n,
                              struct oj_folded *out, struct oj_error *err);

/** 1 for what ends a word. */
static inline int oj_fold_is_blank(uint32_t code)
{
    return code == ' ' || (code >= '\t' && code <= '\r');
}

void oj_folded_free(struct oj_folded *folded);

#endif
