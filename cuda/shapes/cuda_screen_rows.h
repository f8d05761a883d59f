/** Some rows of a batch against the join side of a screen, on one device.
 *
 *  rows of the caller -> layer on the device --tree--> pairs of boxes --meet-->
 *  pairs that are not surely none
 */
#ifndef CUDA_SCREEN_ROWS_H
#define CUDA_SCREEN_ROWS_H

#include "../device/cuda_stage.h"
#include "cuda_meet.h"

/** The join side on one device. */
struct oj_cuda_screen_place
{
    struct oj_cuda_device device;
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side;
    struct oj_cuda_tree tree; /**< of the features' boxes */
};

/** What one thread sends rows through a device with; zeroed memory is a valid
 *  empty one. */
struct oj_cuda_screen_lane
{
    struct oj_cuda_device device; /**< its own stream, and its part of the
                                       memory that may be used */
    struct oj_cuda_stage stage;   /**< for offsets of rows */
};

/** Makes lane ready for the device of place, with at most limit bytes of its
 *  memory (0: no limit). After an error it can still be freed. */
OJ_MUST_USE oj_status oj_cuda_screen_lane_make(
    const struct oj_cuda_screen_place *place, int64_t limit,
    struct oj_cuda_screen_lane *lane, struct oj_error *err);
void oj_cuda_screen_lane_free(struct oj_cuda_screen_lane *lane);

/** Pairs of n rows on the device of a lane, row by row; owner. */
struct oj_cuda_screen_found
{
    int64_t n_pairs;
    struct oj_cuda_array<int64_t> end;     /**< [n] pairs of rows up to it */
    struct oj_cuda_array<int32_t> feature; /**< [n_pairs] ordinal */
    struct oj_cuda_array<uint8_t> said;    /**< [n_pairs] enum oj_said, or
                                                empty: what the rule says */
};

/** Finds the pairs of rows first .. first + n - 1 of input, n > 0.
 *  OJ_ERR_NOMEM: fewer rows may do. The lane's device is current. */
OJ_MUST_USE oj_status oj_cuda_screen_rows(
    const struct oj_cuda_screen_place *place, struct oj_cuda_screen_lane *lane,
    const struct oj_screen_rule *rule, const struct oj_flat *input,
    int64_t first, int64_t n, struct oj_cuda_screen_found *out,
    struct oj_error *err);
void oj_cuda_screen_found_drop(struct oj_cuda_screen_lane *lane,
                               struct oj_cuda_screen_found *found);

/** OJ_ERR_UNSUPPORTED for coordinates whose differences overflow. */
OJ_MUST_USE oj_status oj_cuda_screen_check(const struct oj_cuda_layer *layer,
                                           struct oj_error *err);

#endif
