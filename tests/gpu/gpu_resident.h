/** Points and answers that stay on a device, for measurements and tests: a
 *  table that the CUDA module of a build with tests shows beside its own
 *  (cuda_resident_points.cu). */
#ifndef GPU_RESIDENT_H
#define GPU_RESIDENT_H

#include "../../algs/foundations/relation/oj_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/** All on the index's first device. */
struct gpu_resident
{
    /** Device memory; free with release. */
    oj_status (*allocate)(struct oj_gpu_index *index, int64_t bytes, void **out,
                          struct oj_error *err);
    void (*release)(struct oj_gpu_index *index, void *memory);
    /** Copies between host and device memory, done on return. */
    oj_status (*copy)(struct oj_gpu_index *index, void *to, const void *from,
                      int64_t bytes, struct oj_error *err);

    /** Prepares the join side once more, as index() did. By the device's clock:
     *  seconds[0] from the flat arrays on the device to segments in tie order
     *  (FIDs and classes, where the join asks for them, are copied within it),
     *  seconds[1] to the index. After an error the index may be good for
     *  nothing but to be freed. */
    oj_status (*rebuild)(struct oj_gpu_index *index, double seconds[2],
                         struct oj_error *err);

    /** One-to-one joins: fills d_row and d_measure [n] (device memory,
     *  d_measure may be NULL) as struct oj_matches has them. *seconds: by the
     *  device's clock, here and below. */
    oj_status (*join)(struct oj_gpu_index *index,
                      const struct oj_gpu_points *points, int32_t *d_row,
                      double *d_measure, double *seconds, struct oj_error *err);

    /** Joins that give lists: makes them on the device, as for a batch of all
     *  points, and drops them. */
    oj_status (*pairs)(struct oj_gpu_index *index,
                       const struct oj_gpu_points *points, int64_t *n_pairs,
                       double *seconds, struct oj_error *err);

    /** Adds to d_words [join features * words of request] (device memory) what
     *  the module's sum_pairs adds; the columns of request are device memory.
     */
    oj_status (*sum)(struct oj_gpu_index *index,
                     const struct oj_gpu_points *points,
                     const struct oj_sum_request *request, int64_t *d_words,
                     double *seconds, struct oj_error *err);

    /** Pins host memory for fast copies; slow (some seconds for many GB). */
    oj_status (*pin)(const void *memory, int64_t bytes, struct oj_error *err);

    /** The module's live_apply(), of changes in memory of the first device; of
     * an index on one device, its counts leave such batches out. On several
     *  devices each gets the changes first, and seconds are those of the wall,
     *  as below. */
    oj_status (*live_apply)(struct oj_gpu_live *live, int64_t n,
                            const int64_t *id, const double *x, const double *y,
                            double *seconds, struct oj_error *err);
    /** Its live_join(), of rows in memory of the first device; the pairs are
     *  made on the devices, and dropped. Of several devices, *n_pairs counts
     * the nearest that more than one has found for a row. */
    oj_status (*live_join)(struct oj_gpu_live *live,
                           const struct oj_relation *relation,
                           const struct oj_gpu_live_rows *rows,
                           int64_t *n_pairs, double *seconds,
                           struct oj_error *err);
};

#define GPU_RESIDENT_SYMBOL "oj_gpu_resident"

/** The table of the module that is loaded. OJ_ERR_NO_DEVICE: it has none. */
OJ_MUST_USE oj_status gpu_resident_find(const struct gpu_resident **out,
                                        struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
