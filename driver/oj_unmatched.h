/** Join features that match nothing: which they are, and a second pass over the
 *  join layer that writes them. */
#ifndef OJ_UNMATCHED_H
#define OJ_UNMATCHED_H

#include "../flatten/oj_layer_write.h"
#include "oj_job.h"

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

/** Reads the join layer once more and writes what was never marked: to pairs as
 *  rows without input feature, and to alone as rows of their own; either may be
 *  NULL.  OJ_ERR_DATA when the layer is no longer as it was. */
OJ_MUST_USE oj_status oj_unmatched_write(const struct oj_unmatched *unmatched,
                                         const struct oj_job *job,
                                         struct oj_layer_writer *pairs,
                                         struct oj_layer_writer *alone,
                                         struct oj_error *err);

void oj_unmatched_close(struct oj_unmatched *unmatched);

#ifdef __cplusplus
}
#endif
#endif
