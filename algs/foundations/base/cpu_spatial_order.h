/** Points in Morton order, in buckets that fit a processor's cache.
 *
 *  key     Morton code of 16 + 16 bits in a frame that the bulk of the points
 *          fills; what lies outside is clamped to its rim
 *  bucket  points whose keys share a range of upper halves, about
 *          OJ_BUCKET_POINTS of them, more only where one upper half has more
 *
 *  The order decides speed, never an answer.
 */
#ifndef CPU_SPATIAL_ORDER_H
#define CPU_SPATIAL_ORDER_H

#include "oj_feature_box.h"

#define OJ_BUCKET_POINTS 8192

/** A point on its way: where it is and who it is. */
struct oj_ordered_point
{
    double x, y;
    uint32_t key;
    uint32_t index; /**< place in the arrays that were ordered */
};

/** Owner; zeroed memory is valid, and one object may be reused. */
struct oj_order
{
    int64_t n_points; /**< those ordered: points that are NaN are left out */
    int64_t n_buckets;
    int64_t *bucket_offset; /**< [n_buckets + 1] into point */
    struct oj_ordered_point *point;
    int64_t cap_points;
    int64_t largest_bucket;
    int sort_from_bit; /**< of the key; those below do not matter */
    uint32_t *keys;
    int64_t cap_keys;
};

/** Distributes n points (n < 2^32 - 1) over buckets, stable, with n_threads.
 *  Points with a NaN coordinate are left out.  Within a bucket the input order
 *  is kept; oj_order_sort_bucket() finishes a bucket. */
OJ_MUST_USE oj_status oj_order_build(struct oj_order *order, int n_threads,
                                     int64_t n, const double *x,
                                     const double *y, struct oj_error *err);

/** A bit more than where the middle 98 % of the points are, by each coordinate,
 *  as a sample says, so that a few points a thousand kilometres away do not
 *  squeeze all others together; 0 throughout when it has no finite ones. */
struct oj_box oj_order_frame(int64_t n, const double *x, const double *y);

/** Where slice (n_slices: the end) of n elements begins. */
static inline int64_t oj_order_slice_begin(int64_t n, int64_t n_slices,
                                           int64_t slice)
{
    return slice == n_slices ? n : n / n_slices * slice;
}

/** Counts by slice and bucket become places, those of a bucket together and the
 *  slices of each in their order.
 *  start   [n_slices][n_buckets]
 *  offset  [n_buckets + 1] out */
void oj_order_slices_place(int64_t n_slices, int64_t n_buckets, int64_t *start,
                           int64_t *offset);

/** Sorts bucket by the upper bits of the key, stable; scratch holds as many
 * points as the bucket. Different buckets may be sorted by different threads at
 * once. */
void oj_order_sort_bucket(struct oj_order *order, int64_t bucket,
                          struct oj_ordered_point *scratch);

/** Sorts all buckets with n_threads. then, unless it is NULL, is called for
 *  each by the thread that has just sorted it; its errors end the work. */
OJ_MUST_USE oj_status oj_order_sort(struct oj_order *order, int n_threads,
                                    oj_status (*then)(int64_t bucket,
                                                      int thread, void *user,
                                                      struct oj_error *err),
                                    void *user, struct oj_error *err);

void oj_order_free(struct oj_order *order);

#endif
