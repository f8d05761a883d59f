/** Points in Morton order, in buckets that fit a processor's cache.
 *
 *  key     Morton code of 16 + 16 bits in a frame around the bulk of the
 *          points; points outside are clamped to its border
 *  bucket  points whose keys have their upper 16 bits in one range: about
 *          OJ_BUCKET_POINTS points, more only if a single value of these bits
 *          has more
 *
 *  The order affects only the speed, never the result.
 */
#ifndef CPU_MORTON_ORDER_H
#define CPU_MORTON_ORDER_H

#include "oj_feature_box.h"
#include "oj_reach_mask.h"

#define OJ_BUCKET_POINTS 8192

/** A point with its sort key and its index in the input. */
struct oj_ordered_point
{
    double x, y;
    uint32_t key;
    uint32_t index; /**< index in the input arrays */
};

/** Points in Morton order. Owner; zeroed memory is a valid empty value. Memory
 * is reused when the order is built again. */
struct oj_order
{
    int64_t n_points; /**< number of ordered points; points with a NaN
                           coordinate are left out */
    int64_t n_buckets;
    int64_t *bucket_offset; /**< [n_buckets + 1] first point of each bucket */
    struct oj_ordered_point *point;
    int64_t cap_points;
    int64_t largest_bucket; /**< number of points in the largest bucket */
    int sort_from_bit;      /**< lowest bit of the key that is compared */
    uint32_t *keys; /**< [cap_keys] scratch of oj_order_build(): key of each
                         input point */
    int64_t cap_keys;
};

/** Distributes n points (n < 2^32 - 1) to buckets by Morton code, with
 * n_threads. Points with a NaN coordinate are left out. Within a bucket, points
 * are in input order until oj_order_sort_bucket(). */
OJ_MUST_USE oj_status oj_order_build(struct oj_order *order, int n_threads,
                                     int64_t n, const double *x,
                                     const double *y, struct oj_error *err);

/** Like oj_order_build(), but leaves out the points that the mask excludes. A
 * mask that is NULL or has no bits excludes none. */
OJ_MUST_USE oj_status oj_order_build_masked(struct oj_order *order,
                                            int n_threads, int64_t n,
                                            const double *x, const double *y,
                                            const struct oj_reach_mask *mask,
                                            struct oj_error *err);

/** Returns the range of the middle 98 % of the points in x and in y, slightly
 * enlarged, estimated from a sample. With this frame a few distant outliers do
 * not compress all other points into few columns. All 0 if the sample has no
 * finite point. */
struct oj_box oj_order_frame_of_sample(int64_t n, const double *x,
                                       const double *y);

/** Returns the first element of a slice if n elements are divided into n_slices
 * equal slices; n for slice == n_slices, the end of the last slice. */
static inline int64_t oj_order_slice_begin(int64_t n, int64_t n_slices,
                                           int64_t slice)
{
    return slice == n_slices ? n : n / n_slices * slice;
}

/** Turns the counts of points in start [n_slices][n_buckets] into write
 *  positions, by prefix sums. The points of a bucket follow those of the
 *  previous bucket. Within a bucket, slices are in order. Stores the first
 *  position of each bucket in offset [n_buckets + 1].
 */
void oj_order_counts_to_positions(int64_t n_slices, int64_t n_buckets,
                                  int64_t *start, int64_t *offset);

/** Sorts one bucket stably by the upper bits of the key. scratch must have room
 * for the bucket's points. Thread-safe for different buckets. */
void oj_order_sort_bucket(struct oj_order *order, int64_t bucket,
                          struct oj_ordered_point *scratch);

/** Sorts all buckets with n_threads. If `then` is not NULL, it is called for
 * each bucket by the thread that has sorted it; an error from it ends the
 * sorting. */
OJ_MUST_USE oj_status oj_order_sort(struct oj_order *order, int n_threads,
                                    oj_status (*then)(int64_t bucket,
                                                      int thread, void *user,
                                                      struct oj_error *err),
                                    void *user, struct oj_error *err);

/** Returns the end of the run of points that starts at `first`: their keys are
 * equal in the sorted bits (sort_from_bit and above). The search stops at
 * `end`. */
static inline int64_t oj_order_run_end(const struct oj_order *order,
                                       int64_t first, int64_t end)
{
    int shift = order->sort_from_bit;
    int64_t at = first;
    while (at < end &&
           order->point[at].key >> shift == order->point[first].key >> shift)
        at++;
    return at;
}

/** Marks points of a run whose complete key may be shared by more than `many`
 * points. Only such points can have more than `many` equal ones. Keys are
 * counted by hash, so collisions may mark a few others. Stores the number of
 * marked points in *n_crowded. If *n_crowded is not 0, sets is_crowded [n] to 1
 * for marked points and to 0 for others. O(n). */
OJ_MUST_USE oj_status oj_order_mark_frequent_keys(
    int64_t n, const struct oj_ordered_point *run, uint32_t many,
    uint8_t *is_crowded, int64_t *n_crowded, struct oj_error *err);

void oj_order_free(struct oj_order *order);

#endif
