/** Distances of two shapes, computed by a warp; results equal those of
 * cpu_shape_blocks.h bit for bit. */
#ifndef CUDA_SHAPE_PAIR_CUH
#define CUDA_SHAPE_PAIR_CUH

#include "../../../algs/foundations/kernels/oj_closest_point_distance.h"
#include "cuda_shape_side.cuh"

/** Number of vertices of a feature that are measured before the others: spread
 *  over the feature, they show a large distance early. */
#define OJ_SHAPE_SAMPLES 8

/* Returns the squared distance from a vertex to item c of a block. */
template <int SEGMENTS>
static __device__ __forceinline__ double
oj_vertex_to_item_distance2(const struct oj_cuda_shape_side &side,
                            const struct oj_cuda_shape_block &block, int c,
                            double px, double py)
{
    const double *x = side.x + block.first + c, *y = side.y + block.first + c;
    if (!SEGMENTS || block.n == 0)
        return oj_vertex_distance2(px, py, x[0], y[0]);
    int turned = c & 1;
    return oj_closest_point_distance2(px, py, x[turned], y[turned],
                                      x[1 - turned], y[1 - turned]);
}

static __device__ __forceinline__ int
oj_count_block_items(const struct oj_cuda_shape_block &block)
{
    return block.n > 0 ? block.n : 1;
}

/* Returns the block of a feature that is nearest to a box; if several are
 * equally near, one of them. The result is equal in all lanes. */
static __device__ int64_t
oj_nearest_block(const struct oj_cuda_shape_side &side, int64_t first,
                 int64_t end, const struct oj_box &box)
{
    int lane = threadIdx.x % OJ_SHAPE_WARP;
    int64_t at = first + lane < end ? first + lane : first;
    double least = oj_shape_box_distance2(box, side.box[at]);
    for (int64_t i = at + OJ_SHAPE_WARP; i < end; i += OJ_SHAPE_WARP)
    {
        double d2 = oj_shape_box_distance2(box, side.box[i]);
        at = d2 < least ? i : at;
        least = d2 < least ? d2 : least;
    }
    unsigned which = __ballot_sync(~0u, least == oj_warp_min(least));
    return __shfl_sync(~0u, (long long)at, __ffs((int)which) - 1);
}

/* Returns the squared distance from a vertex, equal in all lanes, to the
 * feature. If this distance is at most `enough`, the result may be any value up
 * to `enough`. */
template <int SEGMENTS>
static __device__ double
oj_vertex_to_shape_distance2(const struct oj_cuda_shape_side &side,
                             int64_t first, int64_t end, double px, double py,
                             double enough)
{
    struct oj_box point = {px, py, px, py};
    int lane = threadIdx.x % OJ_SHAPE_WARP;
    int64_t at = oj_nearest_block(side, first, end, point);
    struct oj_cuda_shape_block block = side.block[at];
    double best =
        lane < oj_count_block_items(block)
            ? oj_vertex_to_item_distance2<SEGMENTS>(side, block, lane, px, py)
            : (double)INFINITY;
    best = oj_warp_min(best);
    for (int64_t i = first; i < end && best > enough; i += OJ_SHAPE_WARP)
    {
        double bound = i + lane < end && i + lane != at
                           ? oj_shape_box_distance2(point, side.box[i + lane])
                           : (double)INFINITY;
        unsigned which = __ballot_sync(~0u, bound < best);
        while (which != 0 && best > enough)
        {
            int bit = __ffs((int)which) - 1;
            which &= which - 1;
            if (!(__shfl_sync(~0u, bound, bit) < best))
                continue;
            block = side.block[i + bit];
            double d2 = lane < oj_count_block_items(block)
                            ? oj_vertex_to_item_distance2<SEGMENTS>(
                                  side, block, lane, px, py)
                            : (double)INFINITY;
            d2 = oj_warp_min(d2);
            best = d2 < best ? d2 : best;
        }
    }
    return best;
}

/* Returns the minimum of best and the squared distance from the lane's vertex
 * to a block. */
template <int SEGMENTS>
static __device__ double
oj_vertex_to_block_distance2(const struct oj_cuda_shape_side &side, int64_t at,
                             double px, double py, double best)
{
    struct oj_cuda_shape_block block = side.block[at];
    for (int c = 0; c < oj_count_block_items(block); c++)
    {
        double d2 =
            oj_vertex_to_item_distance2<SEGMENTS>(side, block, c, px, py);
        best = d2 < best ? d2 : best;
    }
    return best;
}

/* Returns 1 if all points of the box are surely at squared distances of at most
 * `enough` from one vertex of the block. The slack covers the rounding of the
 * closest point. */
static __device__ int
oj_is_box_near_block(const struct oj_cuda_shape_side &side, int64_t at,
                     const struct oj_box &box, double enough)
{
    int64_t v = side.block[at].first + side.block[at].n / 2;
    double slack =
        oj_box_rounding_error(oj_box_largest_coordinate(&side.box[at]));
    double dx = oj_larger(side.x[v] - box.x0, box.x1 - side.x[v]) + slack;
    double dy = oj_larger(side.y[v] - box.y0, box.y1 - side.y[v]) + slack;
    return dx * dx + dy * dy <= enough;
}

/* Returns the maximum of so_far and of the squared distances from the lanes'
 * vertices to the feature. is_there is 1 if the lane has a vertex. */
template <int SEGMENTS>
static __device__ double
oj_vertices_to_shape_distance2(const struct oj_cuda_shape_side &side,
                               int64_t first, int64_t end, double px, double py,
                               int is_there, double so_far)
{
    struct oj_box box;
    int lane = threadIdx.x % OJ_SHAPE_WARP;
    double best = INFINITY;
    box.x0 = oj_warp_min(is_there ? px : (double)INFINITY);
    box.y0 = oj_warp_min(is_there ? py : (double)INFINITY);
    box.x1 = oj_warp_max(is_there ? px : -(double)INFINITY);
    box.y1 = oj_warp_max(is_there ? py : -(double)INFINITY);
    int64_t at = oj_nearest_block(side, first, end, box);
    if (oj_is_box_near_block(side, at, box, so_far))
        return so_far;
    if (is_there)
        best = oj_vertex_to_block_distance2<SEGMENTS>(side, at, px, py, best);
    for (int64_t i = first; i < end; i += OJ_SHAPE_WARP)
    {
        double most = oj_warp_max(is_there ? best : 0.0), bound = INFINITY;
        if (most <= so_far)
            return so_far;
        if (i + lane < end && i + lane != at)
            bound = oj_shape_box_distance2(box, side.box[i + lane]);
        unsigned which = __ballot_sync(~0u, bound < most);
        for (; which != 0; which &= which - 1)
        {
            int64_t b = i + __ffs((int)which) - 1;
            struct oj_box point = {px, py, px, py};
            int wants = is_there && best > so_far &&
                        oj_shape_box_distance2(point, side.box[b]) < best;
            if (__any_sync(~0u, wants) && is_there)
                best = oj_vertex_to_block_distance2<SEGMENTS>(side, b, px, py,
                                                              best);
        }
    }
    return oj_larger(so_far, oj_warp_max(is_there ? best : 0.0));
}

/** Warps that measure one pair together. */
struct oj_cuda_team
{
    int warp, n; /**< number of this warp, from 0, and number of warps */
    /** Bits of the maximum squared distance so far, in shared memory. NULL if
     *  the warp works alone. */
    unsigned long long *greatest;
};

/* Raises the team's maximum to so_far, which is equal in all lanes, and returns
 * the maximum. */
static __device__ double oj_team_atomic_max(const struct oj_cuda_team &team,
                                            double so_far)
{
    unsigned long long bits = 0, own;
    if (team.greatest == NULL)
        return so_far;
    own = (unsigned long long)__double_as_longlong(so_far);
    if (threadIdx.x % OJ_SHAPE_WARP == 0)
        bits = atomicMax(team.greatest, own);
    bits = __shfl_sync(~0u, bits, 0);
    return __longlong_as_double((long long)(bits > own ? bits : own));
}

/** Returns the squared directed Hausdorff distance from feature fa of a to
 *  feature fb of b, restricted to this warp's vertices: the maximum, over the
 *  vertices of fa that belong to this warp, of the squared distance to fb, but
 *  at least so_far and the team's maximum. If the result exceeds limit2, it is
 *  any value above limit2. Both features must have vertices. Arguments are
 *  equal in all lanes. */
template <int SEGMENTS>
static __device__ double
oj_directed_hausdorff2(const struct oj_cuda_shape_side &a, int64_t fa,
                       const struct oj_cuda_shape_side &b, int64_t fb,
                       const struct oj_cuda_team &team, double so_far,
                       double limit2)
{
    int64_t v = a.vertex[fa], n = a.n_vertices[fa];
    int64_t first = b.block_offset[fb], end = b.block_offset[fb + 1];
    int lane = threadIdx.x % OJ_SHAPE_WARP;
    for (int s = team.warp; s < OJ_SHAPE_SAMPLES && n > 2 * OJ_SHAPE_SAMPLES;
         s += team.n)
    {
        int64_t at = v + n / OJ_SHAPE_SAMPLES * s;
        double d2 = oj_vertex_to_shape_distance2<SEGMENTS>(
            b, first, end, a.x[at], a.y[at], so_far);
        so_far = oj_team_atomic_max(team, d2 > so_far ? d2 : so_far);
        if (so_far > limit2)
            return so_far;
    }
    for (int64_t i = team.warp * OJ_SHAPE_WARP; i < n;
         i += team.n * OJ_SHAPE_WARP)
    {
        int64_t at = v + (i + lane < n ? i + lane : n - 1);
        so_far = oj_vertices_to_shape_distance2<SEGMENTS>(
            b, first, end, a.x[at], a.y[at], i + lane < n, so_far);
        so_far = oj_team_atomic_max(team, so_far);
        if (so_far > limit2)
            return so_far;
    }
    return so_far;
}

/* A row of the table of the discrete Frechet distance. Cells outside of first
 * .. last are all INFINITY; within, each cell is at most the limit, or
 * INFINITY. */
struct oj_leash_row
{
    double *leash;
    int64_t first, last;
};

/* Computes the next row of the table, for vertex (px, py), over the n columns
 * x, y. Cell i is max(d2, min(before, left)): d2 is the squared distance of the
 * two vertices, `before` the minimum of the two cells of the previous row,
 * `left` cell i - 1. As a function of `left`, a sequence of cells also has this
 * form, so the lanes combine their cells by a scan. Values below least2 are
 * raised to least2: then most runs of cells are uniform, all least2 or all
 * beyond the limit. is_top is 1 for the first row, which has no previous
 * row. */
static __device__ void oj_frechet_next_row(struct oj_leash_row *row, double px,
                                           double py, int64_t n,
                                           const double *x, const double *y,
                                           int is_top, double least2,
                                           double limit2)
{
    int lane = threadIdx.x % OJ_SHAPE_WARP;
    int64_t from = row->first, to = row->last, first = n, last = -1;
    double left = INFINITY, corner = is_top ? 0.0 : (double)INFINITY;
    for (int64_t c = from; c < n && (c <= to + 1 || left <= limit2);
         c += OJ_SHAPE_WARP)
    {
        int64_t j = c + lane;
        double up = j <= to ? row->leash[j] : (double)INFINITY;
        double diagonal = __shfl_up_sync(~0u, up, 1), d2 = INFINITY, value;
        diagonal = lane == 0 ? corner : diagonal;
        corner = __shfl_sync(~0u, up, OJ_SHAPE_WARP - 1);
        double before = up < diagonal ? up : diagonal;
        if (j < n)
            d2 = oj_vertex_distance2(px, py, x[j], y[j]);
        if (left <= least2 && __all_sync(~0u, d2 <= least2))
            value = least2;
        else if (__all_sync(~0u, d2 > limit2))
            value = INFINITY;
        else
        {
            for (int step = 1; step < OJ_SHAPE_WARP; step *= 2)
            {
                double low = __shfl_up_sync(~0u, d2, step);
                double high = __shfl_up_sync(~0u, before, step);
                if (lane < step)
                    continue;
                low = before < low ? before : low;
                d2 = oj_larger(d2, low);
                before = high < before ? high : before;
            }
            value = oj_larger(d2, left < before ? left : before);
            value = oj_larger(value, least2);
        }
        int fits = j < n && value <= limit2;
        if (j < n)
            row->leash[j] = fits ? value : (double)INFINITY;
        unsigned which = __ballot_sync(~0u, fits);
        if (which != 0 && first == n)
            first = c + __ffs((int)which) - 1;
        for (; which != 0; which &= which - 1)
            last = c + __ffs((int)which) - 1;
        left = __shfl_sync(~0u, value, OJ_SHAPE_WARP - 1);
    }
    row->first = first;
    row->last = last;
    __syncwarp();
}

/* The vertices of a feature, in order. */
struct oj_cuda_walk
{
    const double *x, *y;
    int64_t n;
};

static __device__ double oj_walk_vertex_distance2(const struct oj_cuda_walk &a,
                                                  int64_t i,
                                                  const struct oj_cuda_walk &b,
                                                  int64_t j)
{
    return oj_vertex_distance2(a.x[i], a.y[i], b.x[j], b.y[j]);
}

/* Returns the square of an upper bound of the Frechet distance: the longest
 * distance on a walk that always takes the step after which the two vertices
 * are nearest. If the bound exceeds limit2, returns any value above limit2. */
static __device__ double oj_greedy_frechet_bound2(const struct oj_cuda_walk &a,
                                                  const struct oj_cuda_walk &b,
                                                  double limit2)
{
    double most = oj_walk_vertex_distance2(a, 0, b, 0);
    int64_t i = 0, j = 0;
    while ((i + 1 < a.n || j + 1 < b.n) && most <= limit2)
    {
        double of_a = INFINITY, of_b = INFINITY, both = INFINITY;
        if (i + 1 < a.n)
            of_a = oj_walk_vertex_distance2(a, i + 1, b, j);
        if (j + 1 < b.n)
            of_b = oj_walk_vertex_distance2(a, i, b, j + 1);
        if (i + 1 < a.n && j + 1 < b.n)
            both = oj_walk_vertex_distance2(a, i + 1, b, j + 1);
        double least = of_a < of_b ? of_a : of_b;
        i += i + 1 < a.n && (both <= least || of_a <= of_b);
        j += j + 1 < b.n && (both <= least || of_b < of_a);
        most = oj_larger(most, both <= least ? both : least);
    }
    return most;
}

/** Returns the squared discrete Frechet distance, of which least2 is a known
 *  lower bound. If the distance exceeds limit2, returns any value above limit2.
 *  leash [vertices of fb] is scratch memory of this warp. */
static __device__ double oj_warp_frechet2(const struct oj_cuda_shape_side &a,
                                          int64_t fa,
                                          const struct oj_cuda_shape_side &b,
                                          int64_t fb, double least2,
                                          double limit2, double *leash)
{
    struct oj_cuda_walk from = {a.x + a.vertex[fa], a.y + a.vertex[fa],
                                a.n_vertices[fa]};
    struct oj_cuda_walk to = {b.x + b.vertex[fb], b.y + b.vertex[fb],
                              b.n_vertices[fb]};
    struct oj_leash_row row = {leash, 0, -1};
    least2 = oj_larger(least2, oj_walk_vertex_distance2(from, 0, to, 0));
    least2 = oj_larger(
        least2, oj_walk_vertex_distance2(from, from.n - 1, to, to.n - 1));
    if (least2 > limit2)
        return least2;
    double enough2 = oj_greedy_frechet_bound2(from, to, limit2);
    if (enough2 <= least2)
        return enough2;
    limit2 = enough2 < limit2 ? enough2 : limit2;
    for (int64_t i = 0; i < from.n; i++)
    {
        oj_frechet_next_row(&row, from.x[i], from.y[i], to.n, to.x, to.y,
                            i == 0, least2, limit2);
        if (row.first > row.last)
            return INFINITY;
    }
    return row.last == to.n - 1 ? leash[to.n - 1] : (double)INFINITY;
}

#endif
