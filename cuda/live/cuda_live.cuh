/** A kept index on devices: internals of the functions of the module. */
#ifndef CUDA_LIVE_CUH
#define CUDA_LIVE_CUH

#include "cuda_live_pages.cuh"

#include "../../algs/foundations/relation/oj_gpu.h"
#include "../foundations/device/cuda_module_exports.cuh"

#include <pthread.h>

/** The index that the module returns. A point is on the device to which its id
 *  belongs, so that a move never leaves its device; rows are joined with the
 *  points of every device, and their pairs are merged on the host. */
struct oj_gpu_live
{
    pthread_mutex_t lock; /**< guards all members */
    struct oj_gpu_live_counts counts;
    int n_parts;
    struct oj_cuda_live_part part[OJ_GPU_MAX_DEVICES];
};

/* --- batches of changes --------------------------------------------------- */

/** What a change does. OJ_LIVE_OUTSIDE is added where a point comes to a place
 *  out of the frame. */
enum oj_live_change
{
    OJ_LIVE_SUPERSEDED = 0, /**< nothing: a later one of the batch holds */
    OJ_LIVE_UNKNOWN,        /**< removes an id that is not there */
    OJ_LIVE_UNKNOWN_BEYOND, /**< and has coordinates that no join takes */
    OJ_LIVE_REMOVED,
    OJ_LIVE_REMOVED_BEYOND,
    OJ_LIVE_PUT,
    OJ_LIVE_STAYS, /**< moves a point within its page */
    OJ_LIVE_MOVES, /**< moves it to another page */
    OJ_LIVE_OUTSIDE = 8,
    OJ_LIVE_N_CHANGES = 16
};

struct oj_cuda_live_histogram
{
    uint32_t n[OJ_LIVE_N_CHANGES];
};

/** Changes in device memory, and what is found out about them. Borrows. */
struct oj_cuda_live_batch
{
    int64_t n;
    const int64_t *id;
    const double *x, *y;
    uint32_t *entry;  /**< [n] */
    uint32_t *target; /**< [n] place of a point that is put or moved */
    uint8_t *kind;    /**< [n] enum oj_live_change */
};

/** A batch that has been prepared: its commit needs no more memory. The arrays
 *  belong to the work with which it was prepared. */
struct oj_cuda_live_plan
{
    struct oj_cuda_live_batch batch;
    struct oj_cuda_live_histogram count;
    int is_anew;
    int is_marked; /**< 1: oj_cuda_live_ids.last is set for its entries */
    int64_t n_after;
    int64_t n_arrivals;
    int32_t *arrival;        /**< [n_arrivals] changes, by target */
    uint32_t *first_arrival; /**< [places + 1] */
    int32_t *n_leaving;      /**< [places] */
    uint8_t *is_touched;     /**< [places] 1: its box may have grown */

    /* Pages that overflow: their points, by place and code. */
    int64_t n_spilled, n_more; /**< points, additional pages */
    uint64_t *spill; /**< [places + 1] prefix sums: additional pages << 32 |
                          spilled points */
    uint32_t *spill_place; /**< [n_spilled] */
    int32_t *spill_order;  /**< [n_spilled] */
    double *x, *y;         /**< [n_spilled, or n_after if is_anew] */
    uint32_t *entry;       /**< likewise */
    uint64_t *first_code;  /**< [places + n_more] of the places to come */
    uint32_t *page_at;     /**< likewise */

    /* All pages anew. */
    struct oj_cuda_memory page_memory; /**< owner of the arrays of pages */
    struct oj_cuda_live_pages pages;
    int64_t cap_pages;
    int32_t *order; /**< [n_after] */
};

/** Finds out what n changes do, and allocates all that this needs. On failure
 *  the points are unchanged. */
OJ_MUST_USE oj_status oj_cuda_live_prepare(struct oj_cuda_live_part *part,
                                           struct oj_cuda_work *work, int64_t n,
                                           const int64_t *id, const double *x,
                                           const double *y,
                                           struct oj_cuda_live_plan *plan);

/** Makes the changes. After a failure, which only a broken device causes, the
 *  part is unusable. */
OJ_MUST_USE oj_status oj_cuda_live_commit(struct oj_cuda_live_part *part,
                                          struct oj_cuda_work *work,
                                          struct oj_cuda_live_plan *plan);

/** Forgets a plan that is not made, also one whose preparation failed. */
void oj_cuda_live_abandon(struct oj_cuda_live_part *part,
                          struct oj_cuda_work *work,
                          struct oj_cuda_live_plan *plan);

/** Copies all points to arrays [part->n_points] of device memory, in no
 *  particular order. */
OJ_MUST_USE oj_status oj_cuda_live_points_of(
    const struct oj_cuda_live_part *part, struct oj_cuda_work *work,
    int64_t *id, double *x, double *y);

/* --- joins ---------------------------------------------------------------- */

/** Rows in device memory. */
struct oj_cuda_live_rows
{
    int64_t n;
    const double *x, *y;        /**< [n] points; NULL: there are boxes */
    const struct oj_box *box;   /**< [n] or NULL */
    const int64_t *fid;         /**< [n] or NULL: 0 */
    const double *max_distance; /**< [n] or NULL: that of the relation */
};

/** Pairs in device memory; the arrays belong to the work that finds them. */
struct oj_cuda_live_found
{
    int64_t n;
    int64_t *offset; /**< [rows + 1] */
    int64_t *id;     /**< [n] */
    double *distance;
};

/** Finds the pairs of rows with the points of a part. */
OJ_MUST_USE oj_status oj_cuda_live_find(const struct oj_cuda_live_part *part,
                                        struct oj_cuda_work *work,
                                        const struct oj_relation *relation,
                                        const struct oj_cuda_live_rows *rows,
                                        struct oj_cuda_live_found *out);

#endif
