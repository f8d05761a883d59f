/** Converts pairs to a record batch with the columns left and right (int64) and
 * measure (float64, NULL if the join has none). */
#ifndef ARROW_PAIRS_H
#define ARROW_PAIRS_H

#include "api_pairs.h"

OJ_MUST_USE oj_status arrow_pairs_schema(struct ArrowSchema *out,
                                         struct oj_error *err);

/** Moves the arrays of *pairs into a record batch; *pairs is then empty. On
 * failure *pairs is unchanged. */
OJ_MUST_USE oj_status arrow_pairs_move_to_array(struct ogrjoin_pairs *pairs,
                                                struct ArrowArray *out,
                                                struct oj_error *err);

#endif
