/** Join features that match nothing: a bit for each join feature, set by the
 *  answers for input rows; then the join layer is read a second time for those
 *  without one.
 *
 *   answers --mark--> bits
 *   join layer, again --batch--> is_matched of its rows
 */
#ifndef OJ_PASS_UNMATCHED_H
#define OJ_PASS_UNMATCHED_H

#include "../job/oj_job.h"

/** Zeroed memory is a valid closed one, which marks and counts nothing. */
struct oj_pass_unmatched
{
    int64_t n_features;
    uint64_t *matched;   /**< a bit per join feature; NULL: closed */
    uint8_t *is_matched; /**< of a batch: nonzero: marked */
    int64_t cap_is_matched;
    struct oj_matches matches; /**< as an answer in one-to-one form, join_row -1
                                    where it is not marked: what has no pair is
                                    what matched nothing */
};

/** No feature of the job's join side is marked. */
OJ_MUST_USE oj_status oj_pass_unmatched_open(const struct oj_job *job,
                                             struct oj_pass_unmatched *u,
                                             struct oj_error *err);

/** Marks the join features of an answer. */
void oj_pass_unmatched_mark(struct oj_pass_unmatched *u,
                            const struct oj_matches *matches,
                            const struct oj_answer_side *side);

/** Features that were never marked; 0 of a closed one. */
int64_t oj_pass_unmatched_count(const struct oj_pass_unmatched *u);

/** Sets is_matched and matches for a batch of the second reading. OJ_ERR_DATA
 *  where it has other FIDs than the first. */
OJ_MUST_USE oj_status oj_pass_unmatched_batch(struct oj_pass_unmatched *u,
                                              const struct oj_job *job,
                                              const struct oj_batch *batch,
                                              struct oj_error *err);

/** After the last batch: OJ_ERR_DATA when it was not the one of the last
 *  feature. */
OJ_MUST_USE oj_status oj_pass_unmatched_check_end(
    const struct oj_pass_unmatched *u, const struct oj_job *job, int64_t n_rows,
    struct oj_error *err);

/** Accepts a closed one. */
void oj_pass_unmatched_close(struct oj_pass_unmatched *u);

#endif
