/** Makes lists of pairs (struct oj_cuda_pairs). */
#ifndef CUDA_PAIR_LISTING_CUH
#define CUDA_PAIR_LISTING_CUH

#include "../device/cuda_stream_work.cuh"
#include "cuda_family.h"

void oj_cuda_pairs_free(struct oj_cuda_device *device, cudaStream_t stream,
                        struct oj_cuda_pairs *pairs);

/** A list of pairs under construction. Its arrays, except out, are freed at the
 *  end of the scope. */
struct oj_cuda_listing : oj_cuda_work
{
    const struct oj_cuda_points *points;
    int64_t max_pairs;
    struct oj_cuda_pairs out; /**< the list; a family first stores counts in its
                                   offset */

    using oj_cuda_work::oj_cuda_work;

    /** Turns the counts in out.offset [points + 1] into offsets and sets
     *  out.n_pairs; waits for the stream. The last count must be 0. */
    OJ_MUST_USE oj_status turn_counts_into_offsets()
    {
        OJ_TRY(scan_and_read_total(out.offset.data, points->n, &out.n_pairs));
        return fail_if_too_many_pairs();
    }

    /** Fails with OJ_ERR_TOO_MANY_PAIRS if there are two or more points and
     *  more pairs than max_pairs, if max_pairs > 0. */
    OJ_MUST_USE oj_status fail_if_too_many_pairs()
    {
        return oj_pair_budget_check(
            oj_most_pairs_of_batch(max_pairs, points->n), out.n_pairs, err);
    }

    /** Allocates out.row and, if has_measure, out.measure. */
    OJ_MUST_USE oj_status allocate_pairs(int has_measure)
    {
        OJ_TRY(oj_cuda_array_make(device, stream, out.n_pairs, &out.row, err));
        return has_measure ? oj_cuda_array_make(device, stream, out.n_pairs,
                                                &out.measure, err)
                           : OJ_OK;
    }
};

/** Lists the pairs of points by the index's list(). *out must be empty; it
 *  stays empty on failure. */
OJ_MUST_USE oj_status oj_cuda_list_pairs(const struct oj_cuda_index *index,
                                         cudaStream_t stream,
                                         const struct oj_cuda_points *points,
                                         int64_t max_pairs,
                                         struct oj_cuda_pairs *out,
                                         struct oj_error *err);

/** Sorts the pairs of each row of l->out by rank. On entry l->out.row holds
 *  ranks of join features, each at most once per row; on return it holds their
 *  ordinals. If ordinal_of is NULL, ranks equal ordinals. Measures move with
 *  their pairs. Fails with OJ_ERR_NOMEM if a row is too long for a block of
 *  threads and there are more than 2^31 - 1 pairs; smaller batches may succeed.
 *  Waits for the stream if rows may be so long. */
OJ_MUST_USE oj_status oj_cuda_order_pairs_of_rows(struct oj_cuda_listing *l,
                                                  const int32_t *ordinal_of);

#endif
