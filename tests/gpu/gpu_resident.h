/** Points and answers that stay on a device, for measurements and tests: a
 * table of functions that the CUDA module exports in builds with tests
 * (cuda_resident_points.cu). */
#ifndef GPU_RESIDENT_H
#define GPU_RESIDENT_H

#include "../../algs/foundations/relation/oj_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Functions for an index's first device. */
struct gpu_resident
{
    /** Allocates device memory; free it with release. */
    oj_status (*allocate)(struct oj_gpu_index *index, int64_t bytes, void **out,
                          struct oj_error *err);
    void (*release)(struct oj_gpu_index *index, void *memory);
    /** Copies between host and device memory; complete on return. */
    oj_status (*copy)(struct oj_gpu_index *index, void *to, const void *from,
                      int64_t bytes, struct oj_error *err);

    /** Prepares the join side again, like index(). Seconds by the device's
     * clock: seconds[0] from the flat arrays on the device to segments in tie
     * order (includes copying FIDs and classes if the join needs them),
     * seconds[1] until the index is complete. After an error the index can only
     * be freed. */
    oj_status (*rebuild)(struct oj_gpu_index *index, double seconds[2],
                         struct oj_error *err);

    /** One-to-one joins: fills d_row and d_measure [n] in device memory
     * (d_measure may be NULL) like struct oj_matches. *seconds: time by the
     * device's clock. */
    oj_status (*join)(struct oj_gpu_index *index,
                      const struct oj_gpu_points *points, int32_t *d_row,
                      double *d_measure, double *seconds, struct oj_error *err);

    /** Joins with lists: makes the lists of all points on the device, as for
     * one batch, and discards them. */
    oj_status (*pairs)(struct oj_gpu_index *index,
                       const struct oj_gpu_points *points, int64_t *n_pairs,
                       double *seconds, struct oj_error *err);

    /** Adds to d_words [join features * words of request] in device memory what
     * the module's sum_pairs adds; columns of request are in device memory. */
    oj_status (*sum)(struct oj_gpu_index *index,
                     const struct oj_gpu_points *points,
                     const struct oj_sum_request *request, int64_t *d_words,
                     double *seconds, struct oj_error *err);

    /** Pins host memory for fast copies; slow (some seconds for many GB). */
    oj_status (*pin)(const void *memory, int64_t bytes, struct oj_error *err);

    /** The module's live_apply(), with changes in memory of the first device.
     * On a single device its counts do not include such batches. With several
     * devices the changes are copied to each first, and *seconds is wall-clock
     * time, also in live_join(). */
    oj_status (*live_apply)(struct oj_gpu_live *live, int64_t n,
                            const int64_t *id, const double *x, const double *y,
                            double *seconds, struct oj_error *err);
    /** The module's live_join(), with rows in memory of the first device; pairs
     * are made on the devices and discarded. With several devices, *n_pairs
     * counts nearest points more than once if several devices find one for a
     * row. */
    oj_status (*live_join)(struct oj_gpu_live *live,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows,
                           int64_t *n_pairs, double *seconds,
                           struct oj_error *err);
};

#define GPU_RESIDENT_SYMBOL "oj_gpu_resident"

/** Returns the table of the loaded module. OJ_ERR_NO_DEVICE: it has none. */
OJ_MUST_USE oj_status gpu_resident_find(const struct gpu_resident **out,
                                        struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
