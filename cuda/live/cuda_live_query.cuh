/** What rows ask of a kept index, and how far they reach. */
#ifndef CUDA_LIVE_QUERY_CUH
#define CUDA_LIVE_QUERY_CUH

#include "cuda_live.cuh"

#include "../../algs/foundations/kernels/oj_square_limit.h"

/** The rows of a join and the conditions of their pairs. */
struct live_device_query
{
    struct oj_cuda_live_rows rows;
    const int32_t *order; /* [rows] rows in the order of warps, or NULL */
    int n_together;       /* rows of a warp, at most OJ_LIVE_LANES */
    const double *bound2; /* [rows] for ties of the k-th, or NULL */
    double most, least2;
    int exclude_self, unordered_pairs, exclude_same_geometry;
};

/** A row while it is searched for. */
struct live_device_query_row
{
    struct oj_box box;
    double bound2; /* < 0 if the row has no pairs; 0 for boxes */
    int64_t id;
};

static __device__ __forceinline__ double
live_square_of_max_distance(double most)
{
    if (!(most >= 0.0))
        return -1.0;
    return most < INFINITY ? oj_square_limit_most(most) : DBL_MAX;
}

static __device__ __forceinline__ void
live_load_row(const struct live_device_query &q, int64_t row,
              struct live_device_query_row *a)
{
    const struct oj_cuda_live_rows &rows = q.rows;
    a->id = rows.fid != NULL ? rows.fid[row] : 0;
    if (rows.box != NULL)
    {
        a->box = rows.box[row];
        a->bound2 = oj_box_is_empty(&a->box) ? -1.0 : 0.0;
        return;
    }
    a->box.x0 = a->box.x1 = rows.x[row];
    a->box.y0 = a->box.y1 = rows.y[row];
    a->bound2 = q.bound2 != NULL
                    ? q.bound2[row]
                    : live_square_of_max_distance(rows.max_distance != NULL
                                                      ? rows.max_distance[row]
                                                      : q.most);
    if (!(a->bound2 >= 0.0 && fabs(a->box.x0) < INFINITY &&
          fabs(a->box.y0) < INFINITY))
        a->bound2 = -1.0;
}

static __device__ __forceinline__ double
live_gap_of_intervals(double low, double high, double from, double to)
{
    double left = low - to, right = from - high;
    double d = left > right ? left : right;
    return d > 0.0 ? d : 0.0;
}

/** Returns a lower bound of the squared distance between points of two boxes,
 * reduced by more than the rounding error; 0 if the boxes intersect. */
static __device__ __forceinline__ double
live_distance2_of_boxes(const struct oj_box &a, const struct oj_box &b)
{
    double dx = live_gap_of_intervals(b.x0, b.x1, a.x0, a.x1);
    double dy = live_gap_of_intervals(b.y0, b.y1, a.y0, a.y1);
    return (dx * dx + dy * dy) * (1.0 - 8.0 * DBL_EPSILON);
}

/* Least and greatest Morton code of the points that may form a pair with a row.
 * Boxes of pages overlap, because a page has the points of a stretch of the
 * Morton order; codes exclude most pages whose boxes a row only touches. */
struct live_reach
{
    uint64_t low, high;
};

static __device__ __forceinline__ struct live_reach
live_code_range_in_reach(const struct oj_box &frame,
                         const struct live_device_query_row &a)
{
    const struct oj_box &b = a.box;
    struct live_reach reach = {UINT64_MAX, 0};
    if (a.bound2 < 0.0)
        return reach;
    /* enlarged by the possible errors of rounding and underflow */
    double r = sqrt(a.bound2) * (1.0 + 0x1p-50) + OJ_LEAST_DISTANCE;
    r += (oj_box_largest_coordinate(&b) + r) * 0x1p-50;
    reach.low = oj_live_morton_code(frame, b.x0 - r, b.y0 - r);
    reach.high = oj_live_morton_code(frame, b.x1 + r, b.y1 + r);
    return reach;
}

static inline struct live_device_query
live_question_make(const struct oj_relation *relation,
                   const struct oj_cuda_live_rows *rows)
{
    struct live_device_query q = {};
    q.rows = *rows;
    q.most = relation->max_distance;
    q.least2 = oj_square_limit_least(relation->min_distance);
    q.exclude_self = relation->exclude_self;
    q.unordered_pairs = relation->unordered_pairs;
    q.exclude_same_geometry = relation->exclude_same_geometry;
    return q;
}

#endif
