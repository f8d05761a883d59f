/** -validate: the same batches through a second backend, pair by pair. */
#ifndef OJ_VALIDATION_RUN_H
#define OJ_VALIDATION_RUN_H

#include "../../algs/references/validation/oj_validation.h"
#include "../job/oj_job.h"

struct oj_proof;

/** Indexes the join side once more, with the backend of -validate, and opens
 *  the report of -validate_report; where the join side lies in tiles, so does
 *  the reference's. job is prepared and outlives the proof. */
OJ_MUST_USE oj_status oj_validation_run_open(const struct oj_job *job,
                                             struct oj_proof **out,
                                             struct oj_error *err);

/** Joins a batch again and compares.  side: what the join rows of ours, the
 *  answer to be proved, mean. */
OJ_MUST_USE oj_status oj_validation_run_batch(struct oj_proof *proof,
                                              const struct oj_flat *flat,
                                              const struct oj_answer_side *side,
                                              const struct oj_matches *ours,
                                              struct oj_error *err);

/** Prints what was compared and what differs, and completes the report. *found:
 *  the counts of all batches, valid until the proof is closed. */
OJ_MUST_USE oj_status oj_validation_run_finish(
    struct oj_proof *proof, const struct oj_validation **found,
    struct oj_error *err);

/** Accepts NULL. A report that was not finished is removed. */
void oj_validation_run_close(struct oj_proof *proof);

#endif
