/** The paper's method on the device: points in quadrants of at most K, boxes of
 *  the join side in the cells of a grid, both met cell by cell, then the points
 *  of a quadrant against all segments of its features.
 *
 *  points --codes, sort, split--> quadrants --boxes--> windows
 *      windows x cells --count, scan, fill--> (quadrant, feature) pairs
 *          pairs --a block for each few of a quadrant--> best of each point
 *
 *  A method to compare with, not the one to use. Source: Zhang, You, Gruenwald
 *  2012, sections 3.2 to 3.4.
 */
#ifndef CUDA_QUADRANT_H
#define CUDA_QUADRANT_H

#include "../../algs/kernels/oj_quadrant.h"
#include "../device/oj_cuda.h"

#define OJ_CUDA_QUADRANT_BLOCK 128

/** Pairs of one quadrant that a block of the last stage takes. */
#define OJ_CUDA_QUADRANT_TASK 32

/** The join side's boxes in cells. */
struct oj_cuda_quadrant_grid
{
    double reach;
    struct oj_quadrant_frame frame;
    int64_t n_entries;
    struct oj_cuda_array<struct oj_quadrant_box> box; /**< [features] */
    struct oj_cuda_array<uint64_t> cell;   /**< [n_entries] ascending */
    struct oj_cuda_array<int32_t> feature; /**< [n_entries] rank */
    struct oj_cuda_array<int32_t> first;   /**< [features + 1] segment */
    struct oj_cuda_array<uint8_t> flag;    /**< [segments], or empty: no
                                                polygons */
};

/** Everything is done on return; what was made before an error is to be
 *  dropped. */
OJ_MUST_USE oj_status oj_cuda_quadrant_grid_make(
    struct oj_cuda_device *device, const struct oj_cuda_layer *layer,
    double reach, struct oj_cuda_quadrant_grid *out, struct oj_error *err);

/** Points of a chunk in quadrants. */
struct oj_cuda_quadrants
{
    int64_t n_points;                    /**< that are there, in order */
    int64_t n;                           /**< quadrants */
    struct oj_cuda_array<uint32_t> row;  /**< [n_points or more] */
    struct oj_cuda_array<double> x, y;   /**< [n_points] */
    struct oj_cuda_array<int32_t> first; /**< [n + 1] point */
    struct oj_cuda_array<struct oj_quadrant_box> window; /**< [n] */
};

/** Pairs of a chunk: how many each quadrant has, and which some have. */
struct oj_cuda_quadrant_pairs
{
    int64_t n;                            /**< in all */
    struct oj_cuda_array<int64_t> offset; /**< [quadrants + 1] */
    struct oj_cuda_array<int64_t> task;   /**< [quadrants + 1] first task */
    struct oj_cuda_array<int32_t> feature;
    struct oj_cuda_array<uint8_t> scratch; /**< of the sums */
};

/** A run of quadrants whose pairs are held at a time. */
struct oj_cuda_quadrant_slice
{
    int64_t first, end, n_pairs, n_tasks;
};

/** What points have found so far. */
struct oj_cuda_quadrant_answers
{
    struct oj_cuda_array<double> distance;          /**< [points in order] */
    struct oj_cuda_array<int32_t> rank;             /**< [points in order] */
    struct oj_cuda_array<int32_t> lock;             /**< [quadrants] 0: free */
    struct oj_cuda_array<unsigned long long> n_met; /**< [1] (point, feature)
                                                         pairs in reach */
};

/** Points on their way; by value to kernels. The layer and the grid are
 *  borrowed, the arrays are the chunk's own, also after an error. */
struct oj_cuda_quadrant_chunk
{
    struct oj_cuda_layer layer;
    struct oj_cuda_quadrant_grid grid;
    int interior; /**< 1: points in polygons are at distance 0 */
    int64_t n;
    struct oj_cuda_array<double> x, y, measure; /**< [n] */
    struct oj_cuda_array<int32_t> row;          /**< [n] join ordinal or -1 */
    struct oj_cuda_quadrants quadrants;
    struct oj_cuda_quadrant_pairs pairs;
    struct oj_cuda_quadrant_slice slice;
    struct oj_cuda_quadrant_answers answers;
};

/** Sorts and groups the points, at most 2^30, in quadrants of at most size. */
OJ_MUST_USE oj_status oj_cuda_quadrants_make(struct oj_cuda_device *device,
                                             int64_t size,
                                             struct oj_cuda_quadrant_chunk *c,
                                             struct oj_error *err);

OJ_MUST_USE oj_status oj_cuda_quadrant_count_pairs(
    struct oj_cuda_device *device, struct oj_cuda_quadrant_chunk *c,
    struct oj_error *err);

/** The next slice is that of the quadrants behind it with at most most pairs,
 *  or of one with more. */
OJ_MUST_USE oj_status oj_cuda_quadrant_next_slice(
    struct oj_cuda_device *device, int64_t most,
    struct oj_cuda_quadrant_chunk *c, struct oj_error *err);

/** Writes the slice's pairs to c->pairs.feature, which has room. */
OJ_MUST_USE oj_status oj_cuda_quadrant_fill_pairs(
    struct oj_cuda_device *device, const struct oj_cuda_quadrant_chunk *c,
    struct oj_error *err);

OJ_MUST_USE oj_status oj_cuda_quadrant_answers_make(
    struct oj_cuda_device *device, struct oj_cuda_quadrant_chunk *c,
    struct oj_error *err);

/** Points of the slice against their features. */
OJ_MUST_USE oj_status oj_cuda_quadrant_refine(
    struct oj_cuda_device *device, const struct oj_cuda_quadrant_chunk *c,
    struct oj_error *err);

/** c->row and c->measure of what was found. */
OJ_MUST_USE oj_status oj_cuda_quadrant_answer(
    struct oj_cuda_device *device, const struct oj_cuda_quadrant_chunk *c,
    struct oj_error *err);

#endif
