/** Batches that are joined as they are, of features of any kinds: each device
 *  answers a share of the rows, and puts the pairs of a stretch in order.
 *
 *   rows, sorted   | tile | tile | tile | tile | ..
 *   device           0      1      0      1
 *   rows, as they are | stretch of device 0 | stretch of device 1 |
 */
#ifndef CUDA_ROW_SHARES_CUH
#define CUDA_ROW_SHARES_CUH

#include "../device/cuda_copy.h"
#include "cuda_index.h"
#include "cuda_pair_order.cuh"

/** What a device does for some rows of a batch. */
struct oj_cuda_share
{
    int number, n; /**< one of n shares */

    /* What it found. */
    struct oj_cuda_memory *memory; /**< owner of the arrays of found */
    struct oj_cuda_found found;
    int64_t n_pairs;
    int by_measure; /**< the order of the pairs of a row; then by rank */

    /* Of the batch. */
    int64_t most;    /**< pairs; 0: any number */
    int64_t n_other; /**< pairs of rows before these */
};

/** *order [*n], which is work's, becomes the tiles of it that are the share's;
 *  share NULL: all. */
OJ_MUST_USE oj_status oj_cuda_take_tiles(struct oj_cuda_work *work,
                                         const struct oj_cuda_share *share,
                                         int64_t tile, const int32_t **order,
                                         int64_t *n);

/** 1 where rows first .. first + n - 1 of input are the whole join side: its
 *  own arrays, which do not change while there is an index, so that what the
 *  index has of them is as good. */
int oj_cuda_is_join_side(const struct oj_cuda_index *index,
                         const struct oj_flat *input, int64_t first, int64_t n);

/** OJ_ERR_TOO_MANY_PAIRS where n_pairs are too many for the batch. */
OJ_MUST_USE oj_status oj_cuda_share_fits(const struct oj_cuda_share *share,
                                         int64_t n_pairs, struct oj_error *err);

/** The n pairs of found, whose arrays are work's, are the share's answer. */
void oj_cuda_share_take(struct oj_cuda_work *work, int by_measure,
                        const struct oj_cuda_found *found, int64_t n,
                        struct oj_cuda_share *share);

/** The pairs of a whole batch, by find_share() of the family with that number,
 *  of the indexes of the places. Runs aside; out has no rows yet. */
OJ_MUST_USE oj_status oj_cuda_join_shares(
    struct oj_gpu_index *index, int family, const struct oj_flat *input,
    struct oj_matches *out, struct oj_stats *stats, struct oj_error *err);

/* --- what a side brings ----------------------------------------------------
 */

/** *out [n]: host's, which outlives the stream's work; NULL where it is.  All
 *  devices of a join put the same in the same order. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_put(struct oj_cuda_work *work, const T *host,
                                  int64_t n, const T **out)
{
    T *to = NULL;
    *out = NULL;
    if (host == NULL || n == 0)
        return OJ_OK;
    OJ_TRY(work->make(n, &to));
    *out = to;
    return oj_cuda_copy_to_all(work->device, work->stream, to, host,
                               n * (int64_t)sizeof(T), work->err);
}

/** The columns of features first .. first + n - 1 that relation looks at. */
OJ_MUST_USE oj_status oj_cuda_put_columns(struct oj_cuda_work *work,
                                          const struct oj_flat *flat,
                                          int64_t first, int64_t n,
                                          const struct oj_relation *relation,
                                          struct oj_cuda_columns *out);

/** The conditions of relation on such columns; ranks are ordinals. */
struct oj_pair_rule oj_cuda_rule_of(const struct oj_relation *relation,
                                    const struct oj_cuda_columns *rows,
                                    const struct oj_cuda_columns *features);

/* --- pairs on the device ---------------------------------------------------
 */

/** Adds a pair of each lane that has one; all lanes of the warp meet. */
static __device__ __forceinline__ void
oj_cuda_append_found_pairs(const struct oj_cuda_found &found, int has_one,
                           int32_t row, int32_t feature, double measure)
{
    unsigned which = __ballot_sync(~0u, has_one), lane = threadIdx.x % 32;
    unsigned long long at = 0;
    if (which == 0)
        return;
    if (lane == 0)
        at = atomicAdd(found.n, (unsigned long long)__popc(which));
    at = __shfl_sync(~0u, at, 0) + (unsigned)__popc(which & ((1u << lane) - 1));
    if (!has_one || (int64_t)at >= found.capacity)
        return;
    found.row[at] = row;
    found.feature[at] = feature;
    found.measure[at] = measure;
}

/** find() puts pairs into *found, which has room for so many, and is asked once
 *  more where that was not enough; the arrays are work's. share: NULL, or what
 *  the pairs are for. */
template <typename Find>
OJ_MUST_USE oj_status oj_cuda_find_all(struct oj_cuda_work *work,
                                       struct oj_cuda_found *found,
                                       int64_t room,
                                       const struct oj_cuda_share *share,
                                       Find find, int64_t *n_pairs)
{
    for (;;)
    {
        struct oj_cuda_work own(work);
        unsigned long long n;
        found->capacity = room;
        OJ_TRY(own.make_zeros(1, &found->n));
        OJ_TRY(own.make(room, &found->row, &found->feature));
        OJ_TRY(own.make(room, &found->measure));
        OJ_TRY(find());
        OJ_TRY(own.read(found->n, &n));
        if (share != NULL)
            OJ_TRY(oj_cuda_share_fits(share, (int64_t)n, own.err));
        if (n > INT32_MAX)
            return oj_fail(own.err, OJ_ERR_NOMEM,
                           "%llu pairs are too many to be sorted at once", n);
        *n_pairs = (int64_t)n;
        if (*n_pairs <= room)
        {
            oj_cuda_hand_over(&own.memory, NULL, &work->memory);
            return OJ_OK;
        }
        room = *n_pairs;
    }
}

/** The pairs that find() finds are the share's. */
template <typename Find>
OJ_MUST_USE oj_status oj_cuda_share_find(struct oj_cuda_work *work,
                                         int by_measure,
                                         struct oj_cuda_found *found,
                                         int64_t room,
                                         struct oj_cuda_share *share, Find find)
{
    struct oj_cuda_work own(work);
    int64_t n = 0;
    OJ_TRY(oj_cuda_find_all(&own, found, room, share, find, &n));
    oj_cuda_share_take(&own, by_measure, found, n, share);
    return OJ_OK;
}

/** Adds to kept the first k by measure, then rank, of the n pairs of found, of
 *  rows that have k of them, or with is_last of all; which are done then
 *  [n_rows]. */
OJ_MUST_USE oj_status oj_cuda_keep_best(struct oj_cuda_work *work,
                                        int64_t n_rows, const int32_t *rank,
                                        int64_t k, int is_last,
                                        const struct oj_cuda_found *found,
                                        int64_t n, struct oj_cuda_found *kept,
                                        uint8_t *done);

#endif
