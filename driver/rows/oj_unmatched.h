/** Join features that match nothing: which they are, and a second pass over the
 *  join layer that reads them. */
#ifndef OJ_UNMATCHED_H
#define OJ_UNMATCHED_H

#include "../job/oj_job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zeroed memory is a valid closed one. */
struct oj_unmatched
{
    int64_t n_features;
    uint64_t *matched; /**< a bit per join feature; NULL: nobody asks */
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

/** Who takes the join rows. */
struct oj_unmatched_sink
{
    /** batch: of the join layer, with attributes. is_matched [batch->n_rows]
     *  nonzero: marked.  matches: the same as an answer in one-to-one form,
     *  join_row -1 where it is not marked, so that what has no pair is what
     *  matched nothing. */
    oj_status (*take)(void *user, const struct oj_batch *batch,
                      const uint8_t *is_matched,
                      const struct oj_matches *matches, struct oj_error *err);
    void *user;
};

/** Reads the join layer once more and hands over all of its rows.  OJ_ERR_DATA
 *  when the layer is no longer as it was. */
OJ_MUST_USE oj_status oj_unmatched_read(const struct oj_unmatched *unmatched,
                                        const struct oj_job *job,
                                        const struct oj_unmatched_sink *sink,
                                        struct oj_error *err);

void oj_unmatched_close(struct oj_unmatched *unmatched);

#ifdef __cplusplus
}
#endif
#endif
