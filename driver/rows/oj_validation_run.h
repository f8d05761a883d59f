/** -validate: joins every batch with a second backend, the reference, and
 *  compares the answers pair by pair. */
#ifndef OJ_VALIDATION_RUN_H
#define OJ_VALIDATION_RUN_H

#include "../../algs/references/validation/oj_validation.h"
#include "../job/oj_job.h"

struct oj_proof;

/** Indexes the join side for the reference (in tiles, if the join side is in
 *  tiles) and creates the report of -validate_report. Precondition: job is
 *  prepared; it must outlive the proof. */
OJ_MUST_USE oj_status oj_validation_run_open(const struct oj_job *job,
                                             struct oj_proof **out,
                                             struct oj_error *err);

/** Joins a batch by the reference and compares the answers. ours is the join's
 *  answer, and side has the features to which join_row of ours refers. */
OJ_MUST_USE oj_status oj_validation_run_batch(struct oj_proof *proof,
                                              const struct oj_flat *flat,
                                              const struct oj_answer_side *side,
                                              const struct oj_matches *ours,
                                              struct oj_error *err);

/** Prints what was compared and which differences were found, and completes the
 *  report. Stores the counts of all batches in *found; they are valid until the
 *  proof is closed.
 */
OJ_MUST_USE oj_status oj_validation_run_finish(
    struct oj_proof *proof, const struct oj_validation **found,
    struct oj_error *err);

/** Frees the proof; accepts NULL. Removes a report that was not finished. */
void oj_validation_run_close(struct oj_proof *proof);

#endif
