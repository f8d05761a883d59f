#include "cpu_shape_blocks.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_threads.h"
#include "../base/cpu_box_tree.h"
#include "../base/cpu_lane_loops.h"
#include "../base/oj_boxes.h"
#include "../kernels/oj_closest_point.h"

#include <string.h>

/* Features that a thread takes at once. */
#define FEATURES_AT_ONCE 64

/* Vertices that are looked at before all others, from all over the feature:
 * most pairs that are too far apart end here. */
#define SAMPLES 8

/* --- blocks --------------------------------------------------------------- */

static int64_t count_items(const struct oj_shape_blocks *side, int64_t first,
                           int64_t end)
{
    return end - first - side->of_segments;
}

/* Blocks of a run of vertices; out NULL: only counts them. */
static int64_t put_run(const struct oj_shape_blocks *side, int64_t first,
                       int64_t end, struct oj_shape_block *out)
{
    int64_t n = count_items(side, first, end), n_blocks = 0;
    for (int64_t i = 0; i == 0 || i < n; i += OJ_SHAPE_BLOCK)
    {
        int64_t from = n - i >= OJ_SHAPE_BLOCK || n < OJ_SHAPE_BLOCK
                           ? i
                           : n - OJ_SHAPE_BLOCK;
        int64_t n_items = n - from < OJ_SHAPE_BLOCK ? n - from : OJ_SHAPE_BLOCK;
        if (out != NULL)
            out[n_blocks] = (struct oj_shape_block){
                first + from, (int32_t)n_items, (int32_t)(from & 1)};
        n_blocks++;
    }
    return n_blocks;
}

static int64_t put_blocks(const struct oj_shape_blocks *side, int64_t feature,
                          struct oj_shape_block *out)
{
    const struct oj_flat *flat = side->flat;
    int64_t first, end, n = 0;
    oj_flat_vertices(flat, feature, &first, &end);
    if (first == end)
        return 0;
    if (!side->of_segments || oj_flat_is_points(flat))
        return put_run(side, first, end, out);
    for (int64_t ring = flat->ring_offset[flat->part_offset[feature]];
         ring < flat->ring_offset[flat->part_offset[feature + 1]]; ring++)
        n += put_run(side, flat->vertex_offset[ring],
                     flat->vertex_offset[ring + 1],
                     out != NULL ? out + n : NULL);
    return n;
}

static struct oj_box_levels levels_of(const struct oj_shape_blocks *side,
                                      int64_t feature)
{
    struct oj_box_levels levels;
    oj_box_levels_make(
        &levels, side->block_offset[feature + 1] - side->block_offset[feature],
        side->node_offset[feature]);
    return levels;
}

static void fill_features(int64_t first, int64_t end, void *user)
{
    const struct oj_shape_blocks *side = user;
    const struct oj_flat *flat = side->flat;
    for (int64_t f = first; f < end; f++)
    {
        struct oj_shape_block *block = side->block + side->block_offset[f];
        struct oj_box *node = side->node + side->node_offset[f];
        struct oj_box_levels levels = levels_of(side, f);
        int64_t n = put_blocks(side, f, block);
        for (int64_t i = 0; i < n; i++)
        {
            int64_t v = block[i].first;
            struct oj_box box = oj_box_of(flat->x + v, flat->y + v,
                                          block[i].n + side->of_segments);
            node[i] = oj_box_around(&box, 0.0);
        }
        oj_box_levels_fill(&levels, 2, (double *)side->node);
    }
}

oj_status oj_shape_blocks_build(struct oj_shape_blocks *side,
                                const struct oj_flat *flat, int of_segments,
                                int n_threads, struct oj_error *err)
{
    int64_t n = flat->n_features, n_blocks = 0, n_nodes = 0;
    side->flat = flat;
    side->of_segments = of_segments;
    OJ_NEW(side->block_offset, n + 1, err);
    OJ_NEW(side->node_offset, n + 1, err);
    for (int64_t f = 0; f < n; f++)
    {
        struct oj_box_levels levels;
        side->block_offset[f] = n_blocks;
        side->node_offset[f] = n_nodes;
        n_blocks += put_blocks(side, f, NULL);
        oj_box_levels_make(&levels, n_blocks - side->block_offset[f], 0);
        n_nodes += oj_box_levels_count(&levels);
    }
    side->block_offset[n] = n_blocks;
    side->node_offset[n] = n_nodes;
    OJ_NEW(side->block, n_blocks, err);
    OJ_NEW(side->node, n_nodes, err);
    oj_parallel_slices(n_threads, n, FEATURES_AT_ONCE, fill_features, side);
    return OJ_OK;
}

int64_t oj_shape_blocks_bytes(const struct oj_shape_blocks *side)
{
    int64_t n = side->flat->n_features;
    return 2 * (n + 1) * (int64_t)sizeof *side->block_offset +
           side->block_offset[n] * (int64_t)sizeof *side->block +
           side->node_offset[n] * (int64_t)sizeof *side->node;
}

void oj_shape_blocks_free(struct oj_shape_blocks *side)
{
    oj_free(side->block_offset);
    oj_free(side->node_offset);
    oj_free(side->block);
    oj_free(side->node);
    memset(side, 0, sizeof *side);
}

/* --- a vertex and a feature ----------------------------------------------- */

/* One feature that vertices are measured to. */
struct measured_shape
{
    const struct oj_shape_blocks *side;
    const struct oj_shape_block *block; /* of the feature */
    struct oj_box_levels levels;
    int64_t served; /* the block that was nearest to the last vertex */
};

OJ_INLINE double least_of_sixteen(double *d2)
{
    OJ_EIGHT d2[c] = d2[c] < d2[c + 8] ? d2[c] : d2[c + 8];
    for (int half = 4; half > 0; half /= 2)
    {
        for (int c = 0; c < half; c++)
            d2[c] = d2[c] < d2[c + half] ? d2[c] : d2[c + half];
    }
    return d2[0];
}

OJ_INLINE double vertex_distance2(double px, double py, double x, double y)
{
    double dx = px - x, dy = py - y;
    return dx * dx + dy * dy;
}

OJ_INLINE double segment_distance2(double px, double py, const double *x,
                                   const double *y, int is_turned)
{
    double ax = is_turned ? x[1] : x[0], ay = is_turned ? y[1] : y[0];
    double bx = is_turned ? x[0] : x[1], by = is_turned ? y[0] : y[1];
    return oj_closest_point_distance2(px, py, ax, ay, bx, by);
}

/* Squared distance from a vertex to what is in a block. */
OJ_INLINE double block_distance2(const struct measured_shape *to, int64_t at,
                                 double px, double py, int of_segments)
{
    struct oj_shape_block block = to->block[at];
    const double *x = to->side->flat->x + block.first;
    const double *y = to->side->flat->y + block.first;
    double d2[OJ_WIDE], least = INFINITY;
    int turned = block.is_turned;
    if (block.n == OJ_WIDE)
    {
        if (of_segments)
            OJ_SIXTEEN d2[c] =
                segment_distance2(px, py, x + c, y + c, (c ^ turned) & 1);
        else
            OJ_SIXTEEN d2[c] = vertex_distance2(px, py, x[c], y[c]);
        return least_of_sixteen(d2);
    }
    if (block.n == 0)
        return vertex_distance2(px, py, x[0], y[0]);
    for (int c = 0; c < block.n; c++)
    {
        double d = of_segments ? segment_distance2(px, py, x + c, y + c,
                                                   (c ^ turned) & 1)
                               : vertex_distance2(px, py, x[c], y[c]);
        least = d < least ? d : least;
    }
    return least;
}

/* Squared distance from a vertex to the feature; where that is at most enough,
 * anything at most that. */
OJ_INLINE double nearest2(struct measured_shape *to, double px, double py,
                          double enough, int of_segments,
                          struct oj_shape_scratch *scratch)
{
    struct oj_box_child stack[OJ_BOX_STACK];
    const double point[4] = {px, py, px, py};
    int depth = 1;
    int64_t served = to->served;
    double best = block_distance2(to, served, px, py, of_segments);
    stack[0] = (struct oj_box_child){0.0, 0, to->levels.n_levels - 1};
    scratch->n_refined++;
    while (depth > 0 && best > enough)
    {
        struct oj_box_child at = stack[--depth];
        double d2;
        if (at.d2 > best)
            continue;
        if (at.level > 0)
        {
            depth = oj_box_levels_push(&to->levels, 2, &to->side->node[0].x0,
                                       at, point, best, 0, stack, depth);
            continue;
        }
        if (at.node == served)
            continue;
        d2 = block_distance2(to, at.node, px, py, of_segments);
        scratch->n_refined++;
        if (d2 < best)
        {
            best = d2;
            to->served = at.node;
        }
    }
    return best;
}

/* --- directed distance ---------------------------------------------------- */

/* 1 when every vertex in the box is at most enough from what served last: from
 * a vertex of it, or a closest point that rounding has moved a little. */
OJ_INLINE int is_served(const struct measured_shape *to,
                        const struct oj_box *box, double enough)
{
    const struct oj_flat *flat = to->side->flat;
    int64_t v = to->block[to->served].first + to->block[to->served].n / 2;
    double slack = oj_box_slack(
        oj_box_size(&to->side->node[to->levels.first[0] + to->served]));
    double left = flat->x[v] - box->x0, right = box->x1 - flat->x[v];
    double below = flat->y[v] - box->y0, above = box->y1 - flat->y[v];
    double dx = oj_larger(left, right) + slack;
    double dy = oj_larger(below, above) + slack;
    return dx * dx + dy * dy <= enough;
}

OJ_INLINE double directed2(const struct oj_shape_blocks *a, int64_t feature,
                           struct measured_shape *to, double so_far,
                           double limit2, int of_segments,
                           struct oj_shape_scratch *scratch)
{
    const double *x = a->flat->x, *y = a->flat->y;
    int64_t first, end, n_blocks, done;
    const struct oj_shape_block *block = a->block + a->block_offset[feature];
    const struct oj_box *box = a->node + a->node_offset[feature];
    oj_flat_vertices(a->flat, feature, &first, &end);
    for (int64_t s = 0; s < SAMPLES && end - first > 2 * SAMPLES; s++)
    {
        int64_t v = first + (end - first) / SAMPLES * s;
        double d2 = nearest2(to, x[v], y[v], so_far, of_segments, scratch);
        so_far = d2 > so_far ? d2 : so_far;
        if (so_far > limit2)
            return so_far;
    }
    n_blocks = a->block_offset[feature + 1] - a->block_offset[feature];
    done = first;
    for (int64_t i = 0; i < n_blocks; i++)
    {
        if (scratch->cancel != NULL && *scratch->cancel)
            return INFINITY;
        first = done > block[i].first ? done : block[i].first;
        done = block[i].first + block[i].n + of_segments;
        if (is_served(to, &box[i], so_far))
            continue;
        for (int64_t v = first; v < done; v++)
        {
            double d2 = nearest2(to, x[v], y[v], so_far, of_segments, scratch);
            so_far = d2 > so_far ? d2 : so_far;
            if (so_far > limit2)
                return so_far;
        }
    }
    return so_far;
}

OJ_CLONES static double to_segments2(const struct oj_shape_blocks *a,
                                     int64_t feature, struct measured_shape *to,
                                     double so_far, double limit2,
                                     struct oj_shape_scratch *scratch)
{
    return directed2(a, feature, to, so_far, limit2, 1, scratch);
}

OJ_CLONES static double to_vertices2(const struct oj_shape_blocks *a,
                                     int64_t feature, struct measured_shape *to,
                                     double so_far, double limit2,
                                     struct oj_shape_scratch *scratch)
{
    return directed2(a, feature, to, so_far, limit2, 0, scratch);
}

double oj_shape_directed2(const struct oj_shape_blocks *a, int64_t feature_a,
                          const struct oj_shape_blocks *b, int64_t feature_b,
                          double so_far, double limit2,
                          struct oj_shape_scratch *scratch)
{
    struct measured_shape to = {b, b->block + b->block_offset[feature_b],
                                levels_of(b, feature_b), 0};
    return b->of_segments
               ? to_segments2(a, feature_a, &to, so_far, limit2, scratch)
               : to_vertices2(a, feature_a, &to, so_far, limit2, scratch);
}

/* --- the discrete Frechet distance ---------------------------------------- */

/* A row of the table: the cells first..last are within the limit, or INFINITY
 * in between; none is with first > last. */
struct leash_row
{
    double *leash;
    int64_t first, last;
};

/* The square of a leash that is long enough: that of always taking the step
 * after which the two are nearest. */
static double enough_leash2(int64_t n_a, const double *ax, const double *ay,
                            int64_t n_b, const double *bx, const double *by)
{
    double most = vertex_distance2(ax[0], ay[0], bx[0], by[0]);
    int64_t i = 0, j = 0;
    while (i + 1 < n_a || j + 1 < n_b)
    {
        int has_a = i + 1 < n_a, has_b = j + 1 < n_b;
        double a = INFINITY, b = INFINITY, both = INFINITY;
        if (has_a)
            a = vertex_distance2(ax[i + 1], ay[i + 1], bx[j], by[j]);
        if (has_b)
            b = vertex_distance2(ax[i], ay[i], bx[j + 1], by[j + 1]);
        if (has_a && has_b)
            both = vertex_distance2(ax[i + 1], ay[i + 1], bx[j + 1], by[j + 1]);
        i += has_a && (both <= b || a <= b);
        j += has_b && (both <= a || b < a);
        most = oj_larger(most, vertex_distance2(ax[i], ay[i], bx[j], by[j]));
    }
    return most;
}

/* The next row, for the vertex (px, py), over the n columns x, y. */
static void step(struct leash_row *row, double px, double py, int64_t n,
                 const double *x, const double *y, double limit2)
{
    int64_t from = row->first, to = row->last, j;
    double diagonal = INFINITY, left = INFINITY;
    row->first = n;
    row->last = -1;
    for (j = from; j < n && (j <= to + 1 || left <= limit2); j++)
    {
        double up = j <= to ? row->leash[j] : INFINITY;
        double least = up < diagonal ? up : diagonal;
        double d2 = vertex_distance2(px, py, x[j], y[j]);
        least = left < least ? left : least;
        left = oj_larger(least, d2);
        diagonal = up;
        if (!(left <= limit2))
            left = INFINITY;
        else
        {
            row->first = j < row->first ? j : row->first;
            row->last = j;
        }
        row->leash[j] = left;
    }
}

oj_status oj_shape_frechet2(const struct oj_flat *a, int64_t feature_a,
                            const struct oj_flat *b, int64_t feature_b,
                            double limit2, struct oj_shape_scratch *scratch,
                            double *out, struct oj_error *err)
{
    struct leash_row row = {NULL, 0, -1};
    int64_t first_a, end_a, first_b, end_b, n;
    const double *x, *y;
    double most2;
    oj_flat_vertices(a, feature_a, &first_a, &end_a);
    oj_flat_vertices(b, feature_b, &first_b, &end_b);
    n = end_b - first_b;
    x = b->x + first_b;
    y = b->y + first_b;
    *out = INFINITY;
    if (vertex_distance2(a->x[end_a - 1], a->y[end_a - 1], x[n - 1], y[n - 1]) >
        limit2)
        return OJ_OK;
    most2 =
        enough_leash2(end_a - first_a, a->x + first_a, a->y + first_a, n, x, y);
    limit2 = most2 < limit2 ? most2 : limit2;
    OJ_ROOM(scratch->leash, 0, n, scratch->cap_leash, err);
    row.leash = scratch->leash;
    for (int64_t j = 0; j < n; j++)
    {
        double d2 = vertex_distance2(a->x[first_a], a->y[first_a], x[j], y[j]);
        row.leash[j] = j > 0 ? oj_larger(row.leash[j - 1], d2) : d2;
        if (row.leash[j] > limit2)
            break;
        row.last = j;
    }
    for (int64_t i = first_a + 1; i < end_a && row.first <= row.last; i++)
    {
        if (scratch->cancel != NULL && *scratch->cancel)
            return OJ_OK;
        scratch->n_refined += row.last - row.first + 1;
        step(&row, a->x[i], a->y[i], n, x, y, limit2);
    }
    if (row.first <= row.last && row.last == n - 1)
        *out = row.leash[n - 1];
    return OJ_OK;
}

void oj_shape_scratch_free(struct oj_shape_scratch *scratch)
{
    oj_free(scratch->leash);
    memset(scratch, 0, sizeof *scratch);
}
