/** A kept index on devices: internals of the functions of the module. */
#ifndef CUDA_LIVE_CUH
#define CUDA_LIVE_CUH

#include "cuda_live_pages.cuh"

#include "../../algs/foundations/relation/oj_gpu.h"
#include "../foundations/device/cuda_copy.h"
#include "../foundations/device/cuda_module_exports.cuh"
#include "../foundations/device/cuda_peers.h"
#include "../foundations/index/cuda_row_shares.cuh"

#include <pthread.h>

/** The regions of devices: device i has the points whose Morton codes are at
 *  least first_code[i] and less than first_code[i + 1]; the last device has no
 *  upper limit. Passed by value. */
struct oj_cuda_live_regions
{
    int n;
    struct oj_box frame; /**< of the codes */
    uint64_t first_code[OJ_GPU_MAX_DEVICES];
};

/** The region of device `number`, and those of all devices. Passed by value. */
struct oj_cuda_live_region
{
    int number;
    struct oj_cuda_live_regions regions;
};

/** The index that the module returns. With several devices, each has the points
 *  of its region, so that a row concerns few devices. If most points come to
 *  lie in few regions, the regions are chosen anew. */
struct oj_gpu_live
{
    pthread_mutex_t lock; /**< guards all members */
    struct oj_gpu_live_counts counts;
    struct oj_cuda_live_regions regions;
    int64_t n_changes; /**< since the regions were chosen */
    struct oj_cuda_peer_barrier peers;
    /** Pinned memory through which small batches of changes and rows go. */
    struct oj_cuda_stage stage;
    int n_parts;
    struct oj_cuda_live_part part[OJ_GPU_MAX_DEVICES];
};

/** Copies an array of host memory to a device; staging, unless it is NULL, has
 *  a pinned copy of it. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_live_upload_array(struct oj_cuda_work *work,
                                                struct oj_cuda_staging *staging,
                                                const T *host, int64_t n,
                                                const T **out)
{
    if (staging != NULL && host != NULL && n > 0)
        host = (const T *)oj_cuda_copy_stage_wait(staging, host);
    return oj_cuda_upload_column(work, host, n, out);
}

/** Runs body(i, staging, err) for each device in parallel, on threads of the
 *  module, while the calling thread and others copy the arrays of *arrays to
 *  pinned memory; staging is NULL if they are not copied there. If one device
 *  fails, all fail. */
template <typename Body>
OJ_MUST_USE oj_status oj_cuda_live_run_while_staging(
    struct oj_gpu_live *live, struct oj_cuda_staging *arrays, Body body,
    struct oj_error *err)
{
    int n_threads =
        oj_cuda_copy_stage_begin(arrays, &live->part[0].device, &live->stage);
    struct oj_cuda_staging *staging = n_threads > 0 ? arrays : NULL;
    auto of_part = [&](int i, struct oj_error *why)
    { return body(i, staging, why); };
    if (n_threads == 0)
        return oj_cuda_run_on_peers_on_module(&live->peers, live->n_parts,
                                              of_part, err);
    return oj_cuda_run_on_peers_and_caller(
        &live->peers, live->n_parts, of_part, n_threads,
        [=]() { oj_cuda_copy_stage_pieces(arrays); }, err);
}

/** Makes the device of a part the current one. */
OJ_MUST_USE oj_status oj_cuda_live_make_device_current(
    const struct oj_cuda_live_part *part, struct oj_error *err);

/* --- batches of changes --------------------------------------------------- */

/** What a change does on a device. With several devices, each holds the points
 *  of its region. OJ_LIVE_OUTSIDE is added to OJ_LIVE_PUT, OJ_LIVE_STAYS and
 *  OJ_LIVE_MOVES if the new position is outside of the frame of the Morton
 * codes (oj_cuda_live_pages.frame). Other sums with OJ_LIVE_OUTSIDE have
 * meanings of their own. */
enum oj_live_change
{
    OJ_LIVE_SUPERSEDED = 0, /**< nothing: a later change of the batch has this
                                 id */
    OJ_LIVE_UNKNOWN,        /**< removes an id that has no point */
    OJ_LIVE_UNKNOWN_BEYOND, /**< like OJ_LIVE_UNKNOWN, for a change with
                                 coordinates that no join takes */
    OJ_LIVE_REMOVED,
    OJ_LIVE_REMOVED_BEYOND,
    OJ_LIVE_PUT,
    OJ_LIVE_STAYS, /**< moves a point within its page */
    OJ_LIVE_MOVES, /**< moves a point to another page */
    OJ_LIVE_OUTSIDE = 8,
    OJ_LIVE_MISSING = 8, /**< not classified yet: the id has no entry */
    /** Does nothing: the position is in another device's region, and this
     * device has no point of the id.
     */
    OJ_LIVE_ELSEWHERE = OJ_LIVE_OUTSIDE + OJ_LIVE_UNKNOWN,
    /** Removes a point that goes to another device. */
    OJ_LIVE_LEAVES = OJ_LIVE_OUTSIDE + OJ_LIVE_REMOVED,
    /** Not a kind of change: index in the histogram of the number of changes
     *  that are removals. */
    OJ_LIVE_ANY_REMOVAL = OJ_LIVE_OUTSIDE + OJ_LIVE_UNKNOWN_BEYOND,
    OJ_LIVE_N_CHANGES = 16
};

struct oj_cuda_live_histogram
{
    uint32_t n[OJ_LIVE_N_CHANGES];
    /** 1: more points arrive at one page than it has slots (OJ_LIVE_SLOTS);
     * all arrivals are then sorted at once. */
    uint32_t is_crowded;
    uint32_t n_new; /**< number of entries added, if the host has not counted
                         them */
};

/** Changes in device memory, and their classification. Borrows all arrays. */
struct oj_cuda_live_batch
{
    int64_t n;
    const int64_t *id;
    const double *x, *y;
    uint32_t *entry;  /**< [n] entry of the id, or OJ_LIVE_NOWHERE */
    uint32_t *target; /**< [n] place of a point that is put or moved; for other
                           changes undefined */
    uint8_t *kind;    /**< [n] enum oj_live_change */
};

/** A point after a batch. It has 32 bytes, which the GPU reads at once. */
struct oj_cuda_live_kept
{
    double x, y;
    uint32_t entry, unused[3];
};

/** A batch that has been prepared: its commit needs no more memory. The arrays
 *  belong to the work with which it was prepared. */
struct oj_cuda_live_plan
{
    struct oj_cuda_live_batch batch;
    const struct oj_cuda_live_region *place; /**< borrowed */
    struct oj_cuda_live_histogram count;
    int is_idle; /**< 1: no change concerns this device */
    /** 1: the commit builds all pages anew; 0: it changes pages. */
    int is_anew;
    int is_marked; /**< 1: oj_cuda_live_ids.last is set for its entries */
    /** 1: entries were added behind the first n_entries, and their number is in
     *  the histogram (n_new). */
    int has_uncounted;
    int64_t n_entries;
    int64_t n_after;
    int64_t n_arrivals;
    int32_t *arrival; /**< [n_arrivals] changes, by target */

    /* Counts by place, in one array whose start is spill. */
    struct oj_cuda_live_histogram *histogram; /**< behind spill */
    uint32_t *first_arrival;                  /**< [places + 1] */
    int32_t *n_leaving;                       /**< [places] */
    uint32_t *n_placed;    /**< [places] arrivals that are in `arrival` */
    uint8_t *moves_within; /**< [places] 1: a point moves within the page of
                                the place */

    /* Points of pages that overflow, sorted by place and code. */
    int64_t n_spilled, n_more; /**< points, additional pages */
    uint64_t *spill; /**< [places + 1] prefix sums: additional pages << 32 |
                          spilled points */
    uint32_t *spill_place; /**< [n_spilled] */
    int32_t *spill_order;  /**< [n_spilled] */
    /** Points after the batch: [n_after] all points if is_anew, otherwise
     *  [n_spilled]. */
    struct oj_cuda_live_kept *kept;
    uint64_t
        *first_code;   /**< [places + n_more] of the places after the batch */
    uint32_t *page_at; /**< [places + n_more] pages of these places */

    /* Used if is_anew: the new pages. */
    struct oj_cuda_memory page_memory; /**< owner of the arrays of pages */
    struct oj_cuda_live_pages pages;
    int64_t cap_pages;
    int32_t *order;     /**< [n_after] */
    uint64_t code_mask; /**< bits of the codes by which `order` is sorted */
};

/** Begins a batch of n changes: allocates what needs no change to be known,
 *  while they are still on their way to the device. */
OJ_MUST_USE oj_status oj_cuda_live_begin_changes(
    struct oj_cuda_live_part *part, struct oj_cuda_work *work,
    const struct oj_cuda_live_region *at, int64_t n,
    struct oj_cuda_live_plan *plan);

/** Classifies the changes of a whole batch, which has begun, for this device,
 *  and allocates all memory that they need. On failure the points are
 *  unchanged. */
OJ_MUST_USE oj_status oj_cuda_live_prepare_changes(
    struct oj_cuda_live_part *part, struct oj_cuda_work *work,
    const int64_t *id, const double *x, const double *y,
    struct oj_cuda_live_plan *plan);

/** Makes the changes. After a failure, which only a broken device causes, the
 *  part is unusable. */
OJ_MUST_USE oj_status oj_cuda_live_commit_changes(
    struct oj_cuda_live_part *part, struct oj_cuda_work *work,
    struct oj_cuda_live_plan *plan);

/** Frees what a plan still owns, whether it was committed, was not, or could
 *  not be prepared. */
void oj_cuda_live_abandon_changes(struct oj_cuda_live_part *part,
                                  struct oj_cuda_work *work,
                                  struct oj_cuda_live_plan *plan);

/** Copies all points to arrays [part->n_points] of device memory, in no
 *  particular order. */
OJ_MUST_USE oj_status oj_cuda_live_copy_points_of_part(
    const struct oj_cuda_live_part *part, struct oj_cuda_work *work,
    int64_t *id, double *x, double *y);

/* --- joins ---------------------------------------------------------------- */

/** Rows in device memory. */
struct oj_cuda_live_rows
{
    int64_t n;
    const double *x, *y;        /**< [n] points; NULL if the rows are boxes */
    const struct oj_box *box;   /**< [n] boxes; NULL if the rows are points */
    const int64_t *fid;         /**< [n]; NULL: all are 0 */
    const double *max_distance; /**< [n]; NULL: that of the relation */
};

/** Pairs in device memory; the arrays belong to the work that finds them. */
struct oj_cuda_live_found
{
    int64_t n;
    int64_t *offset;  /**< [rows + 1] */
    int64_t *id;      /**< [n] */
    double *distance; /**< [n]; NULL if rows are boxes */
};

/** Finds the pairs of rows with the points of a part. */
OJ_MUST_USE oj_status oj_cuda_live_find_pairs(
    const struct oj_cuda_live_part *part, struct oj_cuda_work *work,
    const struct oj_relation *relation, const struct oj_cuda_live_rows *rows,
    struct oj_cuda_live_found *out);

/* --- several devices ------------------------------------------------------ */

OJ_FN int oj_live_region_of_point(const struct oj_cuda_live_regions &regions,
                                  double x, double y)
{
    uint64_t code = oj_live_morton_code(regions.frame, x, y);
    int of = 0;
    while (of + 1 < regions.n && regions.first_code[of + 1] <= code)
        of++;
    return of;
}

/** Returns 1 if the point (x, y) belongs to this device. */
OJ_FN int oj_live_is_point_in_region(const struct oj_cuda_live_region &place,
                                     double x, double y)
{
    return place.regions.n < 2 ||
           oj_live_region_of_point(place.regions, x, y) == place.number;
}

/** Chooses regions that have about equal numbers of the n points, which are in
 *  host memory. If n is 0, the first region is the whole plane. */
OJ_MUST_USE oj_status oj_cuda_live_choose_regions(
    int n_regions, int64_t n, const double *x, const double *y,
    struct oj_cuda_live_regions *out, struct oj_error *err);

/** Changes in the memory of a device. */
struct oj_cuda_live_changes
{
    int64_t n;
    const int64_t *id;
    const double *x, *y;
};

/** A batch in host memory. */
struct oj_cuda_live_given
{
    int64_t n;
    const int64_t *id;
    const double *x, *y;
    /** [devices] the batch in the memory of each, or NULL. */
    const struct oj_cuda_live_changes *here;
};

/** Like oj_cuda_live_apply(), for a batch that may be in device memory. */
OJ_MUST_USE oj_status oj_cuda_live_apply_changes(
    struct oj_gpu_live *live, const struct oj_cuda_live_given *given,
    struct oj_error *err);

/** Counts the ids whose last change in a batch is a removal, and how many of
 *  those removals have coordinates that no join takes. */
OJ_MUST_USE oj_status oj_cuda_live_count_removals(
    struct oj_cuda_work *work, const struct oj_cuda_live_changes *changes,
    int64_t *n_removals, int64_t *n_beyond);

/** The pairs of some rows in device memory. */
struct oj_cuda_live_answer
{
    struct oj_cuda_live_rows rows;
    const int32_t *row; /**< [rows.n] numbers of the rows, ascending; NULL:
                             all rows */
    struct oj_cuda_live_found found;
};

/** Returns how many boxes the top level of the tree of a part has, at most
 *  OJ_LIVE_FANOUT; 0 if the part has no points. Sets *box to these boxes, in
 *  device memory. */
int64_t oj_cuda_live_top_boxes(const struct oj_cuda_live_part *part,
                               const struct oj_box **box);

/** Sets *row [*n] to the numbers of the rows that device `number` answers
 * without being asked by another device. In nearest joins these are the rows
 * whose points are in its region, in others those that reach a box at the top
 * of its tree. */
OJ_MUST_USE oj_status oj_cuda_live_choose_rows(
    const struct oj_cuda_live_part *part, struct oj_cuda_work *work,
    const struct oj_cuda_live_regions *regions, int number,
    const struct oj_relation *relation, const struct oj_cuda_live_rows *rows,
    int64_t *n, const int32_t **row);

OJ_MUST_USE oj_status oj_cuda_live_gather_rows(
    struct oj_cuda_work *work, const struct oj_cuda_live_rows *rows, int64_t n,
    const int32_t *row, struct oj_cuda_live_rows *out);

/** Sets *row [*n] to the numbers of those rows of a device's answer for which
 *  device `other` may have nearer points, and *bound [*n] to the greatest
 *  distance of such a point. top [n_top] are the boxes at the top of the tree
 *  of `other`. */
OJ_MUST_USE oj_status oj_cuda_live_list_reaching_rows(
    struct oj_cuda_work *work, const struct oj_cuda_live_regions *regions,
    int other, const struct oj_relation *relation,
    const struct oj_cuda_live_answer *answer, const struct oj_box *top,
    int64_t n_top, int64_t *n, const int32_t **row, const double **bound);

/** Rows about which one device asks another device, in host memory. Owner. */
struct oj_cuda_live_asked
{
    int64_t n;
    int32_t *row;
    double *bound;
};

/** A join on one of the devices. */
struct oj_cuda_live_part_join
{
    int has_work;
    alignas(struct oj_cuda_work) char work[sizeof(struct oj_cuda_work)];
    struct oj_error err;           /**< of the work */
    struct oj_cuda_live_rows rows; /**< all rows of the join */
    int n_answers;
    /** answer[0] is for the rows that the device answers first, answer[1] for
     *  the rows of nearest joins about which other devices have asked it. */
    struct oj_cuda_live_answer answer[2];
    int64_t n_top;
    struct oj_box top[OJ_LIVE_FANOUT];
    struct oj_cuda_live_asked asked[OJ_GPU_MAX_DEVICES];
};

/** Starts the part of a join that runs on device `number`: makes it the current
 * device and makes join->work. */
OJ_MUST_USE oj_status oj_cuda_live_begin_join(
    struct oj_gpu_live *live, int number, struct oj_cuda_live_part_join *join,
    struct oj_error *err);

/** Answers join[i].rows, which are equal on all devices, on each device i; the
 *  answers stay there. */
OJ_MUST_USE oj_status oj_cuda_live_answer_rows(
    struct oj_gpu_live *live, const struct oj_relation *relation,
    struct oj_cuda_live_part_join *join, struct oj_error *err);

/** Frees the memory of a join, even if the join failed or was not begun. */
void oj_cuda_live_end_join(struct oj_gpu_live *live,
                           struct oj_cuda_live_part_join *join);

#endif
