/** The backend of -validate, with the join side that it needs: all of it beside
 *  the join's own, or where that lies in tiles, one tile at a time of its own.
 */
#ifndef OJ_REFERENCE_H
#define OJ_REFERENCE_H

#include "oj_job.h"

#ifdef __cplusplus
extern "C" {
#endif

struct oj_reference;

/** Indexes the join side once more. job is prepared and outlives *out. */
OJ_MUST_USE oj_status oj_reference_open(const struct oj_job *job,
                                        struct oj_reference **out,
                                        struct oj_error *err);

/** As oj_join_batch().  ours: the side of the join's own answer for these rows.
 *  join_row of *out, and of that answer, mean rows of oj_reference_side(),
 * which begins with the features of ours. */
OJ_MUST_USE oj_status oj_reference_batch(struct oj_reference *reference,
                                         const struct oj_flat *input,
                                         const struct oj_answer_side *ours,
                                         struct oj_matches *out,
                                         struct oj_error *err);

/** Valid until the next batch. */
const struct oj_flat *oj_reference_side(const struct oj_reference *reference);

const struct oj_stats *oj_reference_stats(const struct oj_reference *reference);

const struct oj_backend *
oj_reference_backend(const struct oj_reference *reference);

/** Accepts NULL. */
void oj_reference_close(struct oj_reference *reference);

#ifdef __cplusplus
}
#endif
#endif
