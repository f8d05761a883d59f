/** The pairs of a batch, chunk by chunk, until the chunks before are counted,
 *  too, and each gets its place.  They stay on the device as long as there is
 *  room, so that they are copied once, to where they belong.
 */
#ifndef CUDA_CHUNK_PAIRS_H
#define CUDA_CHUNK_PAIRS_H

#include "cuda_slot.h"

/** Pairs of some rows one after another: on the device, or on the host. */
struct oj_cuda_part
{
    int64_t n_rows, n;
    uint8_t *small_count; /**< [n_rows] pairs of each row; or NULL: in count */
    int32_t *count;       /**< [n_rows] */
    struct oj_cuda_pairs found; /**< without offsets */
    /* Instead of these where the device has no room for them: */
    int32_t *row; /**< [n], or NULL */
    double *measure;
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_cuda_chunk_pairs
{
    struct oj_cuda_device *device; /**< of those that are on one */
    int64_t n;
    int64_t n_kept;            /**< those that are on the device */
    int64_t first;             /**< their place among all; the caller's */
    int is_counted, is_placed; /**< the caller's */
    struct oj_cuda_part *part; /**< [n_parts] in the order of rows */
    int64_t n_parts, capacity;
};

/** Bytes of a pair on a device. */
#define OJ_CUDA_PAIR_BYTES 12

/** Adds what was found for the next n_rows rows and takes it from found, to the
 *  host where keeps is 0.  Done on return: any slot of the device can place
 *  them. */
OJ_MUST_USE oj_status oj_cuda_chunk_take(struct oj_cuda_chunk_pairs *chunk,
                                         struct oj_cuda_slot *slot,
                                         int64_t n_rows,
                                         struct oj_cuda_pairs *found, int keeps,
                                         struct oj_error *err);

/** Where pairs go. */
struct oj_cuda_pairs_place
{
    int64_t *end;      /**< where the pairs of the next row end */
    int32_t *row;      /**< of the next pair */
    double *measure;   /**< of the next pair */
    int64_t at;        /**< pairs before that one, all in all */
    int64_t n_matched; /**< rows that had pairs; counted on */
    int streams;       /**< 1: past the caches (oj_streamed.h) */
};

/** Moves all to their place, which moves on, by a slot of the device. */
OJ_MUST_USE oj_status oj_cuda_chunk_move(struct oj_cuda_chunk_pairs *chunk,
                                         struct oj_cuda_slot *slot,
                                         struct oj_cuda_pairs_place *to,
                                         struct oj_error *err);

/** Nothing that uses them is under way. Changes the current device. */
void oj_cuda_chunk_free(struct oj_cuda_chunk_pairs *chunk);

#endif
