/** Join features that match nothing: which they are, and a second pass over the
 *  join layer that reads them. */
#ifndef OJ_UNMATCHED_H
#define OJ_UNMATCHED_H

#include "../job/oj_job.h"

/** Zeroed memory is a valid closed one. */
struct oj_unmatched
{
    int64_t n_features;
    uint64_t *matched; /**< a bit per join feature; NULL: nobody asks */

    /* The second pass. */
    struct oj_layer_reader *reader; /**< NULL: it has not begun */
    struct oj_batch batch;          /**< of the join layer, with attributes */
    uint8_t *is_matched;            /**< [batch.n_rows] nonzero: marked */
    int64_t cap_is_matched;
    struct oj_matches matches; /**< as an answer in one-to-one form, join_row -1
                                    where it is not marked: what has no pair is
                                    what matched nothing */
};

/** The job is prepared. */
OJ_MUST_USE oj_status oj_unmatched_open(const struct oj_job *job,
                                        struct oj_unmatched *unmatched,
                                        struct oj_error *err);

/** Notes the join features of an answer. */
void oj_unmatched_mark(struct oj_unmatched *unmatched,
                       const struct oj_matches *matches,
                       const struct oj_answer_side *side);

/** Features that were never marked; 0 where nobody asks. */
int64_t oj_unmatched_count(const struct oj_unmatched *unmatched);

/** Reads the next batch of all join rows; *there 0: there is none any more, or
 *  nobody asks.  OJ_ERR_DATA when the layer is no longer as it was. */
OJ_MUST_USE oj_status oj_unmatched_next(struct oj_unmatched *unmatched,
                                        const struct oj_job *job, int *there,
                                        struct oj_error *err);

/** Ends the second pass; it can begin again. */
void oj_unmatched_end_reading(struct oj_unmatched *unmatched);

void oj_unmatched_close(struct oj_unmatched *unmatched);

#endif
