/** Points and answers that stay on a device, for measurements and tests. This
 * is a table of functions, which the CUDA module exports in builds with tests
 * (cuda_resident.cu). */
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
    /** Copies between host and device memory. The copy is complete on
     *  return. */
    oj_status (*copy)(struct oj_gpu_index *index, void *to, const void *from,
                      int64_t bytes, struct oj_error *err);

    /** Prepares the join side again, like index(). The seconds are by the
     * device's clock. seconds[0] is the time from the flat arrays on the device
     * to segments in tie order; it includes copying FIDs and classes if the
     * join needs them. seconds[1] is the time from there to the complete index.
     * After an error the index can only be freed. */
    oj_status (*rebuild)(struct oj_gpu_index *index, double seconds[2],
                         struct oj_error *err);

    /** For one-to-one joins: fills d_row and d_measure [n] in device memory
     * like struct oj_matches. d_measure may be NULL. *seconds is the time by
     * the device's clock. */
    oj_status (*join)(struct oj_gpu_index *index,
                      const struct oj_gpu_points *points, int32_t *d_row,
                      double *d_measure, double *seconds, struct oj_error *err);

    /** For joins with lists: makes the lists of all points on the device, as
     * for one batch, and discards them. */
    oj_status (*pairs)(struct oj_gpu_index *index,
                       const struct oj_gpu_points *points, int64_t *n_pairs,
                       double *seconds, struct oj_error *err);

    /** Adds to d_words what the module's sum_pairs adds. d_words [join features
     * * words of request] and the columns of request are in device memory. */
    oj_status (*sum)(struct oj_gpu_index *index,
                     const struct oj_gpu_points *points,
                     const struct oj_sum_request *request, int64_t *d_words,
                     double *seconds, struct oj_error *err);

    /** Pins host memory for fast copies. This takes some seconds for many
     *  GB. */
    oj_status (*pin)(const void *memory, int64_t bytes, struct oj_error *err);

    /** The module's live_apply(), with changes in memory of the first device.
     * On a single device, its counts do not include such batches. With
     * several devices the changes are first copied to each, and *seconds is
     * wall-clock time, as in live_join(). */
    oj_status (*live_apply)(struct oj_gpu_live *live, int64_t n,
                            const int64_t *id, const double *x, const double *y,
                            double *seconds, struct oj_error *err);
    /** The module's live_join(), with rows in memory of the first device. Pairs
     * are made on the devices and discarded. With several devices, *n_pairs may
     * count a nearest point more than once, if several devices find one for a
     * row. */
    oj_status (*live_join)(struct oj_gpu_live *live,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows,
                           int64_t *n_pairs, double *seconds,
                           struct oj_error *err);
};

#define GPU_RESIDENT_SYMBOL "oj_gpu_resident"

/** Returns the table of the loaded module in *out. The status is
 *  OJ_ERR_NO_DEVICE if the module has none. */
OJ_MUST_USE oj_status gpu_resident_find(const struct gpu_resident **out,
                                        struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
