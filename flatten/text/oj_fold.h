/** Folds texts: removes differences that do not distinguish names.
 *
 *  full  drops apostrophes and marks without width; applies NFKD and full case
 *        folding; turns all but letters, digits and marks into spaces, and
 *        letters without a decomposition (ø ł æ þ ..) into plain ones; keeps
 *        Hangul; collapses and trims spaces
 *  case  applies full case folding; collapses and trims white space
 *  none  changes nothing
 *
 *  Code points are folded one by one, by a table of one version of Unicode
 *  (make_fold_table.py), so that answers do not depend on the version of a
 *  library. A byte that is not UTF-8 becomes a space.
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

/** A folded text as code points. Owner; zeroed memory is a valid empty one and
 *  may be reused. */
struct oj_folded
{
    uint32_t *code; /**< [n] */
    int64_t n, n_bad_bytes, cap_code;
};

/** Folds n bytes. Cost: some nanoseconds per character. */
OJ_MUST_USE oj_status oj_fold(enum oj_fold fold, const char *bytes, int64_t n,
                              struct oj_folded *out, struct oj_error *err);

/** Returns 1 for a code point that separates words. */
static inline int oj_fold_is_blank(uint32_t code)
{
    return code == ' ' || (code >= '\t' && code <= '\r');
}

void oj_folded_free(struct oj_folded *folded);

#endif
