/** Joins batches of features of any kinds on several devices. First each device
 *  finds the pairs of some tiles of the sorted rows (its share); then each
 *  device sorts the pairs of some consecutive rows (its stretch).
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

/** The work of one device in joining some rows of a batch. */
struct oj_cuda_share
{
    int number, n; /**< this is share number `number`, from 0, of n shares */

    /* Results of the work: */
    struct oj_cuda_memory *memory; /**< owns the arrays of found */
    struct oj_cuda_found found;
    int64_t n_pairs;
    /** How the pairs of a row are sorted. 1: by measure, then rank; 0: by rank.
     */
    int by_measure;

    /* Limits of the batch: */
    int64_t most;    /**< maximum number of pairs; 0: no limit */
    int64_t n_other; /**< number of pairs of rows that were joined before */
};

/** Keeps the entries of *order [*n] that belong to the share. A tile is `tile`
 *  consecutive entries, and share number s of n gets tiles s, s + n, s + 2 n
 *  ... *order becomes a new array, which *work owns, and *n its length; the old
 *  array, which *work must own, is freed. If share is NULL or the only one,
 *  nothing changes. */
OJ_MUST_USE oj_status oj_cuda_share_select_tiles(
    struct oj_cuda_work *work, const struct oj_cuda_share *share, int64_t tile,
    const int32_t **order, int64_t *n);

/** Returns 1 if rows first .. first + n - 1 of input are all features of the
 *  join side itself: every array of input has the address of the join side's
 *  array. The index's copy of the arrays can then be used. */
int oj_cuda_share_input_is_join_side(const struct oj_cuda_index *index,
                                     const struct oj_flat *input, int64_t first,
                                     int64_t n);

/** Returns OJ_ERR_TOO_MANY_PAIRS if n_pairs more pairs would exceed the limit
 *  of the batch. */
OJ_MUST_USE oj_status oj_cuda_share_check_pair_limit(
    const struct oj_cuda_share *share, int64_t n_pairs, struct oj_error *err);

/** Moves the n pairs of found, which *work owns, to the share. If by_measure is
 *  1, the pairs of a row will be ordered by measure, then rank; otherwise by
 *  rank. */
void oj_cuda_share_move_pairs(struct oj_cuda_work *work, int by_measure,
                              const struct oj_cuda_found *found, int64_t n,
                              struct oj_cuda_share *share);

/** Joins a whole batch by find_share() of the family with number `family`,
 *  whose indexes must exist on all places. The caller must be a thread of the
 *  module. out must have no rows yet. */
OJ_MUST_USE oj_status oj_cuda_join_shares(
    struct oj_gpu_index *index, int family, const struct oj_flat *input,
    struct oj_matches *out, struct oj_stats *stats, struct oj_error *err);

/* --- columns of a side ---------------------------------------------------- */

/** Copies host [n] to the device; *out is NULL if host is NULL. host must stay
 *  valid until the stream has reached the copy. All devices of a join must copy
 *  equal arrays in equal order. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_upload_column(struct oj_cuda_work *work,
                                            const T *host, int64_t n,
                                            const T **out)
{
    T *to = NULL;
    *out = NULL;
    if (host == NULL || n == 0)
        return OJ_OK;
    OJ_TRY(work->make(n, &to));
    *out = to;
    return oj_cuda_copy_to_all_peers(work->device, work->stream, to, host,
                                     n * (int64_t)sizeof(T), work->err);
}

/** Copies the columns of features first .. first + n - 1 that relation reads.
 */
OJ_MUST_USE oj_status oj_cuda_upload_columns(struct oj_cuda_work *work,
                                             const struct oj_flat *flat,
                                             int64_t first, int64_t n,
                                             const struct oj_relation *relation,
                                             struct oj_cuda_columns *out);

/** Returns the conditions of relation on these columns. In the rule, join
 *  features are numbered by ordinals, not by tie ranks. */
struct oj_pair_rule
oj_cuda_make_pair_rule(const struct oj_relation *relation,
                       const struct oj_cuda_columns *rows,
                       const struct oj_cuda_columns *features);

/* --- pairs on the device ---------------------------------------------------
 */

/** Appends a pair for each lane whose has_one is set. All lanes of the warp
 *  must call it. */
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

/** Runs find(), which appends pairs to *found, with memory for `room` pairs. If
 *  there are more pairs, runs it a second time with enough memory. *work owns
 *  the arrays. share is NULL, or the share whose limit of pairs applies. Sets
 *  *n_pairs to the number of pairs. */
template <typename Find>
OJ_MUST_USE oj_status oj_cuda_found_run_until_fits(
    struct oj_cuda_work *work, struct oj_cuda_found *found, int64_t room,
    const struct oj_cuda_share *share, Find find, int64_t *n_pairs)
{
    for (;;)
    {
        struct oj_cuda_work own(work);
        unsigned long long n;
        found->capacity = room;
        OJ_TRY(own.allocate_zeros(1, &found->n));
        OJ_TRY(own.make(room, &found->row, &found->feature));
        OJ_TRY(own.make(room, &found->measure));
        OJ_TRY(find());
        OJ_TRY(own.read(found->n, &n));
        if (share != NULL)
            OJ_TRY(oj_cuda_share_check_pair_limit(share, (int64_t)n, own.err));
        if (n > INT32_MAX)
            return oj_fail(own.err, OJ_ERR_NOMEM,
                           "%llu pairs are too many to be sorted at once; use "
                           "smaller batches",
                           n);
        *n_pairs = (int64_t)n;
        if (*n_pairs <= room)
        {
            oj_cuda_move_ownership(&own.memory, NULL, &work->memory);
            return OJ_OK;
        }
        room = *n_pairs;
    }
}

/** Runs find(), which appends pairs to *found, with memory for `room` pairs; if
 *  there are more, runs it again with enough. Then moves the pairs to the
 *  share. by_measure 1: the pairs of a row will be ordered by measure, then
 *  rank; 0: by rank. */
template <typename Find>
OJ_MUST_USE oj_status oj_cuda_share_find_pairs(
    struct oj_cuda_work *work, int by_measure, struct oj_cuda_found *found,
    int64_t room, struct oj_cuda_share *share, Find find)
{
    struct oj_cuda_work own(work);
    int64_t n = 0;
    OJ_TRY(oj_cuda_found_run_until_fits(&own, found, room, share, find, &n));
    oj_cuda_share_move_pairs(&own, by_measure, found, n, share);
    return OJ_OK;
}

/** Makes offset [n_rows + 1]: row i has the pairs offset[i] - base .. offset[i
 *  + 1] - base - 1. by_row [n] are the row numbers of the sorted pairs, in
 *  which the offsets are found by binary search. */
OJ_MUST_USE oj_status oj_cuda_find_pair_offsets(struct oj_cuda_work *work,
                                                const uint32_t *by_row,
                                                int64_t n, int64_t n_rows,
                                                int64_t base, int64_t *offset);

/** Appends to *kept the first k pairs, by measure and then rank, of each row
 *  that has at least k of the n pairs in found, and sets done [n_rows] of these
 *  rows to 1. If is_last is 1, does this for all rows, also those with fewer
 *  pairs. */
OJ_MUST_USE oj_status oj_cuda_keep_first_k_pairs_of_rows(
    struct oj_cuda_work *work, int64_t n_rows, const int32_t *rank, int64_t k,
    int is_last, const struct oj_cuda_found *found, int64_t n,
    struct oj_cuda_found *kept, uint8_t *done);

#endif
