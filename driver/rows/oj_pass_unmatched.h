/** Finds unmatched join features: the answers for input rows set one bit per
 *  matched join feature; then the join layer is read a second time, and its
 *  features without a bit become rows.
 *
 *    answers --mark--> bits
 *    join layer, again --batch--> is_matched of its rows
 */
#ifndef OJ_PASS_UNMATCHED_H
#define OJ_PASS_UNMATCHED_H

#include "../job/oj_job.h"

/** The join features that have a pair. Zeroed memory is valid and closed;
 *  marking then has no effect. */
struct oj_pass_unmatched
{
    int64_t n_features;
    uint64_t *matched;   /**< one bit per join feature; NULL if closed */
    uint8_t *is_matched; /**< [rows of the batch] nonzero: the row has a pair */
    int64_t cap_is_matched;
    /** the batch as an answer in one-to-one form (oj_matches.h), in which rows
     *  without a pair are the unmatched features */
    struct oj_matches matches;
};

/** Prepares for the job's join side, with no feature marked. */
OJ_MUST_USE oj_status oj_pass_unmatched_open(const struct oj_job *job,
                                             struct oj_pass_unmatched *u,
                                             struct oj_error *err);

/** Marks the join features that have a pair in this answer. */
void oj_pass_unmatched_mark(struct oj_pass_unmatched *u,
                            const struct oj_matches *matches,
                            const struct oj_answer_side *side);

/** Returns the number of features without a mark; 0 if closed. */
int64_t oj_pass_unmatched_count(const struct oj_pass_unmatched *u);

/** Sets is_matched and matches for a batch of the second reading. OJ_ERR_DATA
 *  if its FIDs differ from those of the first reading. */
OJ_MUST_USE oj_status oj_pass_unmatched_batch(struct oj_pass_unmatched *u,
                                              const struct oj_job *job,
                                              const struct oj_batch *batch,
                                              struct oj_error *err);

/** To be called after the last batch: OJ_ERR_DATA if the second reading had
 *  fewer rows. */
OJ_MUST_USE oj_status oj_pass_unmatched_check_row_count(
    const struct oj_pass_unmatched *u, const struct oj_job *job, int64_t n_rows,
    struct oj_error *err);

/** Frees what u owns; a closed one is accepted. */
void oj_pass_unmatched_close(struct oj_pass_unmatched *u);

#endif
