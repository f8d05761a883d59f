/** The pairs of a batch, chunk by chunk, until all of them are counted and each
 *  chunk's get their place.  They stay on the device as long as there is room,
 *  so that they are copied once, to where they belong.
 */
#ifndef CUDA_CHUNK_PAIRS_H
#define CUDA_CHUNK_PAIRS_H

#include "cuda_slot.h"

/** Pairs of some rows one after another: on the device, or on the host. */
struct oj_cuda_part
{
    int64_t n;
    struct oj_cuda_pairs found; /**< without offsets; or empty */
    int32_t *row;               /**< [n], or NULL: they are on the device */
    double *measure;            /**< [n], or NULL: they have none */
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_cuda_chunk_pairs
{
    struct oj_cuda_device *device; /**< of those that are on one */
    int64_t first;                 /**< their place among all; the caller's */
    int64_t n;
    int taken; /**< changed atomically: somebody gives them their place */
    struct oj_cuda_part *part; /**< [n_parts] in the order of rows */
    int64_t n_parts, capacity;
};

/** Bytes of a pair on a device. */
#define OJ_CUDA_PAIR_BYTES 12

/** Adds what was found for the next n_rows rows and takes it from found, to the
 *  host where keeps is 0.  offset [n_rows] gets the ends of the rows, counted
 *  from the chunk's first pair. */
OJ_MUST_USE oj_status oj_cuda_chunk_take(struct oj_cuda_chunk_pairs *chunk,
                                         struct oj_cuda_slot *slot,
                                         int64_t n_rows,
                                         struct oj_cuda_pairs *found, int keeps,
                                         int64_t *offset, struct oj_error *err);

/** Moves all to row and measure [chunk->n], by a slot of the same device. */
OJ_MUST_USE oj_status oj_cuda_chunk_move(struct oj_cuda_chunk_pairs *chunk,
                                         struct oj_cuda_slot *slot,
                                         int32_t *row, double *measure,
                                         struct oj_error *err);

/** Nothing that uses them is under way. Changes the current device. */
void oj_cuda_chunk_free(struct oj_cuda_chunk_pairs *chunk);

#endif
