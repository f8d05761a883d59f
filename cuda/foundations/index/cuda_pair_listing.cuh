/** Lists of pairs on their way (struct oj_cuda_pairs). */
#ifndef CUDA_PAIR_LISTING_CUH
#define CUDA_PAIR_LISTING_CUH

#include "../device/cuda_stream_work.cuh"
#include "cuda_family.h"

void oj_cuda_pairs_drop(struct oj_cuda_device *device, cudaStream_t stream,
                        struct oj_cuda_pairs *pairs);

/** A list on its way: all but out goes back at the end. */
struct oj_cuda_listing : oj_cuda_work
{
    const struct oj_cuda_points *points;
    int64_t max_pairs;
    struct oj_cuda_pairs out; /**< to begin with: offset, of any counts */

    using oj_cuda_work::oj_cuda_work;

    /** The counts in out.offset [points + 1], the last one 0, become offsets,
     *  and their sum out.n_pairs; waits for the stream. */
    OJ_MUST_USE oj_status sum_pairs()
    {
        OJ_TRY(scan_total(out.offset.data, points->n, &out.n_pairs));
        return fits();
    }

    /** OJ_ERR_TOO_MANY_PAIRS where out.n_pairs of two rows or more are more
     *  than max_pairs (> 0). */
    OJ_MUST_USE oj_status fits()
    {
        return oj_pairs_fit(oj_most_pairs_of_batch(max_pairs, points->n),
                            out.n_pairs, err);
    }

    /** Room for the pairs of out. */
    OJ_MUST_USE oj_status make_pairs(int has_measure)
    {
        OJ_TRY(oj_cuda_make(device, stream, out.n_pairs, &out.row, err));
        return has_measure ? oj_cuda_make(device, stream, out.n_pairs,
                                          &out.measure, err)
                           : OJ_OK;
    }
};

/** The pairs of points, with the index's list(); out is empty, and stays so
 *  after an error. */
OJ_MUST_USE oj_status oj_cuda_list_pairs(const struct oj_cuda_index *index,
                                         cudaStream_t stream,
                                         const struct oj_cuda_points *points,
                                         int64_t max_pairs,
                                         struct oj_cuda_pairs *out,
                                         struct oj_error *err);

/** The pairs of l->out, whose join features are ranks so far, each once in a
 *  row, get them in ascending order, row by row, with their measures where
 * there are some; and then ordinals, by ordinal_of, or where that is NULL
 * ranks. More than 2^31 - 1 pairs with long rows among them: OJ_ERR_NOMEM, as
 * for all that is too much at once. Waits for the stream where rows may be
 * long. */
OJ_MUST_USE oj_status oj_cuda_order_rows(struct oj_cuda_listing *l,
                                         const int32_t *ordinal_of);

#endif
