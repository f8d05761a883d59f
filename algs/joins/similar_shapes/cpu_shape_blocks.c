#include "cpu_shape_blocks.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_box_levels.h"
#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/kernels/oj_closest_point_distance.h"
#include "../sphere/cpu_sphere_side.h"

#include <string.h>

/* Features per task of a thread. */
#define FEATURES_AT_ONCE 64

/* Number of vertices, spread over the feature, that are measured first: most
 * pairs beyond the limit are recognised by them. */
#define SAMPLES 8

/* --- blocks --------------------------------------------------------------- */

static int64_t count_items_of_vertex_run(const struct oj_shape_blocks *side,
                                         int64_t first, int64_t end)
{
    return end - first - side->of_segments;
}

/* Cuts a run of vertices into blocks, which are written to out unless it is
 * NULL; returns their number. */
static int64_t cut_run_into_blocks(const struct oj_shape_blocks *side,
                                   int64_t first, int64_t end,
                                   struct oj_shape_block *out)
{
    int64_t n = count_items_of_vertex_run(side, first, end), n_blocks = 0;
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

/* Returns 0 if distances are spherical and a vertex has coordinates that are
 * not on the sphere. */
static int are_vertices_on_sphere(const struct oj_shape_blocks *side,
                                  int64_t first, int64_t end)
{
    int is_there = 1;
    for (int64_t v = first; v < end && side->vector != NULL; v++)
        is_there &=
            oj_sphere_contains_coordinates(side->flat->x[v], side->flat->y[v]);
    return is_there;
}

static int64_t cut_feature_into_blocks(const struct oj_shape_blocks *side,
                                       int64_t feature,
                                       struct oj_shape_block *out)
{
    const struct oj_flat *flat = side->flat;
    int64_t first, end, n = 0;
    oj_flat_vertex_range(flat, feature, &first, &end);
    if (first == end || !are_vertices_on_sphere(side, first, end))
        return 0;
    if (!side->of_segments || oj_flat_is_points(flat))
        return cut_run_into_blocks(side, first, end, out);
    for (int64_t ring = flat->ring_offset[flat->part_offset[feature]];
         ring < flat->ring_offset[flat->part_offset[feature + 1]]; ring++)
        n += cut_run_into_blocks(side, flat->vertex_offset[ring],
                                 flat->vertex_offset[ring + 1],
                                 out != NULL ? out + n : NULL);
    return n;
}

static struct oj_vec3 unit_vector_of_vertex(const struct oj_shape_blocks *side,
                                            int64_t v)
{
    struct oj_vec3 at = {side->at[0][v], side->at[1][v], side->at[2][v]};
    return at;
}

static struct oj_box_levels
box_levels_of_feature(const struct oj_shape_blocks *side, int64_t feature)
{
    struct oj_box_levels levels;
    oj_box_levels_make(
        &levels, side->block_offset[feature + 1] - side->block_offset[feature],
        side->node_offset[feature]);
    return levels;
}

/* Sets out [6] to the box of n vertices and of the arcs between them: three
 * minima, then three maxima. */
static void write_sphere_box(const struct oj_shape_blocks *side, int64_t first,
                             int64_t n, double *out)
{
    double by = 0.0;
    for (int64_t v = first; v + side->of_segments < first + n; v++)
    {
        double chord2 = oj_sphere_chord2(
            unit_vector_of_vertex(side, v),
            unit_vector_of_vertex(side, v + side->of_segments));
        by = oj_larger(by, oj_sphere_arc_bulge(chord2));
    }
    for (int d = 0; d < 3; d++)
    {
        const double *at = side->at[d] + first;
        out[d] = out[3 + d] = at[0];
        for (int64_t i = 1; i < n; i++)
        {
            out[d] = at[i] < out[d] ? at[i] : out[d];
            out[3 + d] = oj_larger(out[3 + d], at[i]);
        }
        out[d] -= by;
        out[3 + d] += by;
    }
}

static void write_block_box(const struct oj_shape_blocks *side,
                            const struct oj_shape_block *block, double *out)
{
    int64_t v = block->first, n = block->n + side->of_segments;
    struct oj_box box;
    if (side->vector != NULL)
    {
        write_sphere_box(side, v, n, out);
        return;
    }
    box = oj_box_of_points(side->at[0] + v, side->at[1] + v, n);
    box = oj_box_widened(&box, 0.0);
    memcpy(out, &box, sizeof box);
}

static void compute_unit_vectors_of_feature(const struct oj_shape_blocks *side,
                                            int64_t feature)
{
    int64_t first, end, n = side->flat->n_vertices;
    oj_flat_vertex_range(side->flat, feature, &first, &end);
    for (int64_t v = first; v < end; v++)
    {
        struct oj_vec3 at =
            oj_sphere_vector(side->flat->x[v], side->flat->y[v]);
        side->vector[v] = at.x;
        side->vector[n + v] = at.y;
        side->vector[2 * n + v] = at.z;
    }
}

static void fill_feature_blocks(int64_t first, int64_t end, void *user)
{
    const struct oj_shape_blocks *side = user;
    int64_t size = 2 * (int64_t)side->n_dims;
    for (int64_t f = first; f < end; f++)
    {
        struct oj_shape_block *block = side->block + side->block_offset[f];
        struct oj_box_levels levels = box_levels_of_feature(side, f);
        int64_t n = cut_feature_into_blocks(side, f, block);
        if (n > 0 && side->vector != NULL)
            compute_unit_vectors_of_feature(side, f);
        for (int64_t i = 0; i < n; i++)
            write_block_box(side, &block[i],
                            side->node + (side->node_offset[f] + i) * size);
        oj_box_levels_fill(&levels, side->n_dims, side->node);
    }
}

static oj_status make_coordinates(struct oj_shape_blocks *side,
                                  struct oj_error *err)
{
    const struct oj_flat *flat = side->flat;
    side->at[0] = flat->x;
    side->at[1] = flat->y;
    if (side->n_dims == 2)
        return OJ_OK;
    OJ_NEW(side->vector, 3 * flat->n_vertices, err);
    for (int d = 0; d < 3; d++)
        side->at[d] = side->vector + d * flat->n_vertices;
    return OJ_OK;
}

oj_status oj_shape_blocks_build(struct oj_shape_blocks *side,
                                const struct oj_flat *flat, int of_segments,
                                int on_sphere, int n_threads,
                                struct oj_error *err)
{
    int64_t n = flat->n_features, n_blocks = 0, n_nodes = 0;
    side->flat = flat;
    side->of_segments = of_segments;
    side->n_dims = on_sphere ? 3 : 2;
    OJ_TRY(make_coordinates(side, err));
    OJ_NEW(side->block_offset, n + 1, err);
    OJ_NEW(side->node_offset, n + 1, err);
    for (int64_t f = 0; f < n; f++)
    {
        struct oj_box_levels levels;
        side->block_offset[f] = n_blocks;
        side->node_offset[f] = n_nodes;
        n_blocks += cut_feature_into_blocks(side, f, NULL);
        oj_box_levels_make(&levels, n_blocks - side->block_offset[f], 0);
        n_nodes += oj_box_levels_count(&levels);
    }
    side->block_offset[n] = n_blocks;
    side->node_offset[n] = n_nodes;
    OJ_NEW(side->block, n_blocks, err);
    OJ_NEW(side->node, n_nodes * 2 * side->n_dims, err);
    oj_parallel_slices(n_threads, n, FEATURES_AT_ONCE, fill_feature_blocks,
                       side);
    return OJ_OK;
}

int64_t oj_shape_blocks_bytes(const struct oj_shape_blocks *side)
{
    int64_t n = side->flat->n_features;
    return 2 * (n + 1) * (int64_t)sizeof *side->block_offset +
           side->block_offset[n] * (int64_t)sizeof *side->block +
           side->node_offset[n] * 2 * side->n_dims *
               (int64_t)sizeof *side->node +
           (side->vector != NULL ? 3 * side->flat->n_vertices : 0) *
               (int64_t)sizeof *side->vector;
}

void oj_shape_blocks_free(struct oj_shape_blocks *side)
{
    oj_free(side->vector);
    oj_free(side->block_offset);
    oj_free(side->node_offset);
    oj_free(side->block);
    oj_free(side->node);
    memset(side, 0, sizeof *side);
}

/* --- a vertex and a feature ----------------------------------------------- */

/* A feature to which vertices are measured. */
struct measured_shape
{
    const struct oj_shape_blocks *side;
    const struct oj_shape_block *block; /* first block of the feature */
    struct oj_box_levels levels;
    int64_t served; /* block that was nearest to the last vertex; it is measured
                       first */
};

OJ_INLINE double min_of_sixteen(double *d2)
{
    OJ_EIGHT d2[c] = d2[c] < d2[c + 8] ? d2[c] : d2[c + 8];
    for (int half = 4; half > 0; half /= 2)
    {
        for (int c = 0; c < half; c++)
            d2[c] = d2[c] < d2[c + half] ? d2[c] : d2[c + half];
    }
    return d2[0];
}

/* Kind of distance: in n_dims dimensions (2 or 3), to segments (of_segments 1)
 * or to vertices (0). */
struct shape_measure
{
    int n_dims, of_segments;
};

/* Returns the squared distance from p to vertex v. */
OJ_INLINE double vertex_distance2(int n_dims, const double *p,
                                  const double *const *at, int64_t v)
{
    double dx = p[0] - at[0][v], dy = p[1] - at[1][v], dz;
    if (n_dims == 2)
        return dx * dx + dy * dy;
    dz = p[2] - at[2][v];
    return dx * dx + dy * dy + dz * dz;
}

/* Returns the squared distance from p to the segment from vertex v to v + 1. If
 * is_turned is 1, the plane distance is computed with the ends exchanged, which
 * may change its last bit. */
OJ_INLINE double segment_distance2(int n_dims, const double *p,
                                   const double *const *at, int64_t v,
                                   int is_turned)
{
    const double *x = at[0] + v, *y = at[1] + v, *z;
    if (n_dims == 2)
    {
        /* Loads both vertices in any case, so that lanes read adjacent memory.
         */
        double ax = is_turned ? x[1] : x[0], ay = is_turned ? y[1] : y[0];
        double bx = is_turned ? x[0] : x[1], by = is_turned ? y[0] : y[1];
        return oj_closest_point_distance2(p[0], p[1], ax, ay, bx, by);
    }
    z = at[2] + v;
    return oj_sphere_arc_chord2((struct oj_vec3){p[0], p[1], p[2]},
                                (struct oj_vec3){x[0], y[0], z[0]},
                                (struct oj_vec3){x[1], y[1], z[1]});
}

/* Returns the squared minimum distance from point p to the vertices or segments
 * of a block. */
OJ_INLINE double block_distance2(const struct measured_shape *to, int64_t index,
                                 const double *p, struct shape_measure by)
{
    struct oj_shape_block block = to->block[index];
    const double *const *at = to->side->at;
    int64_t v = block.first;
    double d2[OJ_WIDE], least = INFINITY;
    int turned = block.is_turned;
    if (block.n == OJ_WIDE)
    {
        if (by.of_segments)
            OJ_SIXTEEN d2[c] =
                segment_distance2(by.n_dims, p, at, v + c, (c ^ turned) & 1);
        else
            OJ_SIXTEEN d2[c] = vertex_distance2(by.n_dims, p, at, v + c);
        return min_of_sixteen(d2);
    }
    if (block.n == 0)
        return vertex_distance2(by.n_dims, p, at, v);
    for (int c = 0; c < block.n; c++)
    {
        double d = by.of_segments ? segment_distance2(by.n_dims, p, at, v + c,
                                                      (c ^ turned) & 1)
                                  : vertex_distance2(by.n_dims, p, at, v + c);
        least = d < least ? d : least;
    }
    return least;
}

/* Returns the squared distance from vertex v of a to the feature; if that is at
 * most `enough`, any value up to `enough`. */
OJ_INLINE double vertex_to_feature_distance2(struct measured_shape *to,
                                             const struct oj_shape_blocks *a,
                                             int64_t v, double enough,
                                             struct shape_measure by,
                                             struct oj_shape_scratch *scratch)
{
    struct oj_box_child stack[OJ_BOX_STACK];
    double point[6], best;
    int depth = 1;
    int64_t served = to->served;
    for (int d = 0; d < by.n_dims; d++)
        point[d] = point[by.n_dims + d] = a->at[d][v];
    best = block_distance2(to, served, point, by);
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
            depth = oj_box_levels_push(&to->levels, by.n_dims, to->side->node,
                                       at, point, best, 0, stack, depth);
            continue;
        }
        if (at.node == served)
            continue;
        d2 = block_distance2(to, at.node, point, by);
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

/* Returns 1 if all vertices in the box are surely within the squared distance
 * `enough` of block to->served: tests the distance to the middle vertex of this
 * block, with a slack for rounding. */
OJ_INLINE int is_box_near_last_block(const struct measured_shape *to,
                                     const double *box, double enough,
                                     struct shape_measure by)
{
    int64_t v = to->block[to->served].first + to->block[to->served].n / 2;
    const double *around =
        to->side->node + (to->levels.first[0] + to->served) * 2 * by.n_dims;
    double slack = 0.0, sum = 0.0;
    for (int d = 0; d < 2 * by.n_dims; d++)
        slack = oj_larger(slack, fabs(around[d]));
    slack = oj_box_rounding_error(slack);
    for (int d = 0; d < by.n_dims; d++)
    {
        double at = to->side->at[d][v];
        double gap = oj_larger(at - box[d], box[by.n_dims + d] - at) + slack;
        sum += gap * gap;
    }
    return sum <= enough;
}

OJ_INLINE double directed_hausdorff2(const struct oj_shape_blocks *a,
                                     int64_t feature, struct measured_shape *to,
                                     double so_far, double limit2,
                                     struct shape_measure by,
                                     struct oj_shape_scratch *scratch)
{
    int64_t first, end, n_blocks, done;
    const struct oj_shape_block *block = a->block + a->block_offset[feature];
    const double *box = a->node + a->node_offset[feature] * 2 * by.n_dims;
    oj_flat_vertex_range(a->flat, feature, &first, &end);
    for (int64_t s = 0; s < SAMPLES && end - first > 2 * SAMPLES; s++)
    {
        int64_t v = first + (end - first) / SAMPLES * s;
        double d2 = vertex_to_feature_distance2(to, a, v, so_far, by, scratch);
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
        done = block[i].first + block[i].n + a->of_segments;
        if (is_box_near_last_block(to, box + i * 2 * by.n_dims, so_far, by))
            continue;
        for (int64_t v = first; v < done; v++)
        {
            double d2 =
                vertex_to_feature_distance2(to, a, v, so_far, by, scratch);
            so_far = d2 > so_far ? d2 : so_far;
            if (so_far > limit2)
                return so_far;
        }
    }
    return so_far;
}

#define DIRECTED(name, n_dims, of_segments)                                    \
    OJ_CLONES static double name(const struct oj_shape_blocks *a,              \
                                 int64_t feature, struct measured_shape *to,   \
                                 double so_far, double limit2,                 \
                                 struct oj_shape_scratch *scratch)             \
    {                                                                          \
        const struct shape_measure by = {n_dims, of_segments};                 \
        return directed_hausdorff2(a, feature, to, so_far, limit2, by,         \
                                   scratch);                                   \
    }

DIRECTED(to_vertices2, 2, 0)
DIRECTED(to_segments2, 2, 1)
DIRECTED(to_sphere_vertices2, 3, 0)
DIRECTED(to_arcs2, 3, 1)

double oj_shape_directed_hausdorff2(const struct oj_shape_blocks *a,
                                    int64_t feature_a,
                                    const struct oj_shape_blocks *b,
                                    int64_t feature_b, double so_far,
                                    double limit2,
                                    struct oj_shape_scratch *scratch)
{
    struct measured_shape to = {b, b->block + b->block_offset[feature_b],
                                box_levels_of_feature(b, feature_b), 0};
    if (b->n_dims == 3)
        return b->of_segments
                   ? to_arcs2(a, feature_a, &to, so_far, limit2, scratch)
                   : to_sphere_vertices2(a, feature_a, &to, so_far, limit2,
                                         scratch);
    return b->of_segments
               ? to_segments2(a, feature_a, &to, so_far, limit2, scratch)
               : to_vertices2(a, feature_a, &to, so_far, limit2, scratch);
}

/* --- the discrete Frechet distance ---------------------------------------- */

/* A row of the table of the discrete Frechet distance: leash [columns] holds
 * squared distances. Cells outside of first .. last exceed the limit and are
 * not set; cells among them that exceed it are INFINITY. The row is empty if
 * first > last. */
struct leash_row
{
    double *leash;
    int64_t first, last;
};

/* A feature as a sequence of vertices. */
struct walk
{
    const struct oj_shape_blocks *side;
    int64_t first, n;
};

OJ_INLINE double vertex_pair_distance2(int n_dims, const struct walk *a,
                                       int64_t i, const struct walk *b,
                                       int64_t j)
{
    double p[3] = {0.0, 0.0, 0.0};
    for (int d = 0; d < n_dims; d++)
        p[d] = a->side->at[d][a->first + i];
    return vertex_distance2(n_dims, p, b->side->at, b->first + j);
}

static double squared_vertex_distance(const struct walk *a, int64_t i,
                                      const struct walk *b, int64_t j)
{
    return a->side->n_dims == 3 ? vertex_pair_distance2(3, a, i, b, j)
                                : vertex_pair_distance2(2, a, i, b, j);
}

/* Returns a squared upper bound of the distance: the maximum along the greedy
 * path that always takes the step to the smallest distance. */
static double greedy_upper_bound_of_frechet2(const struct walk *a,
                                             const struct walk *b)
{
    double most = squared_vertex_distance(a, 0, b, 0);
    int64_t i = 0, j = 0;
    while (i + 1 < a->n || j + 1 < b->n)
    {
        int has_a = i + 1 < a->n, has_b = j + 1 < b->n;
        double of_a =
            has_a ? squared_vertex_distance(a, i + 1, b, j) : INFINITY;
        double of_b =
            has_b ? squared_vertex_distance(a, i, b, j + 1) : INFINITY;
        double both = has_a && has_b
                          ? squared_vertex_distance(a, i + 1, b, j + 1)
                          : INFINITY;
        i += has_a && (both <= of_b || of_a <= of_b);
        j += has_b && (both <= of_a || of_b < of_a);
        most = oj_larger(most, squared_vertex_distance(a, i, b, j));
    }
    return most;
}

/* Computes the n <= 16 cells from column `from` on, in place of those of the
 * row above, and returns the value of the last. left is the value of the cell
 * before the first, corner that of the cell before the first in the row above.
 * Beyond column `to` the row above has no values. */
OJ_INLINE double compute_frechet_cells(const struct leash_row *row,
                                       int64_t from, int64_t n, int64_t to,
                                       const double *d2, double corner,
                                       double left, double least2,
                                       double limit2)
{
    for (int64_t c = 0; c < n; c++)
    {
        double up = from + c <= to ? row->leash[from + c] : INFINITY;
        double least = up < corner ? up : corner;
        least = left < least ? left : least;
        left = oj_larger(oj_larger(least, d2[c]), least2);
        left = left <= limit2 ? left : INFINITY;
        corner = up;
        row->leash[from + c] = left;
    }
    return left;
}

/* Computes the next row of the table, for vertex p of a, over the columns of b.
 * Values below least2 are raised to least2, so that most runs of cells are
 * uniform: all least2, or all beyond the limit. */
OJ_INLINE void compute_next_frechet_row(int n_dims, struct leash_row *row,
                                        const double *p, const struct walk *b,
                                        double least2, double limit2)
{
    int64_t to = row->last, j = row->first, n;
    double corner = INFINITY, left = INFINITY;
    row->first = b->n;
    row->last = -1;
    for (; j < b->n && (j <= to + 1 || left <= limit2); j += n)
    {
        double d2[OJ_WIDE], up;
        int n_short = 0, n_out = 0;
        n = b->n - j < OJ_WIDE ? b->n - j : OJ_WIDE;
        if (n == OJ_WIDE)
            OJ_SIXTEEN d2[c] =
                vertex_distance2(n_dims, p, b->side->at, b->first + j + c);
        for (int c = 0; c < n && n < OJ_WIDE; c++)
            d2[c] = vertex_distance2(n_dims, p, b->side->at, b->first + j + c);
        OJ_SIXTEEN n_short += c < n && d2[c] <= least2;
        OJ_SIXTEEN n_out += c < n && d2[c] > limit2;
        up = j + n - 1 <= to ? row->leash[j + n - 1] : INFINITY;
        if (n_out < n && (n_short < n || left > least2))
            left = compute_frechet_cells(row, j, n, to, d2, corner, left,
                                         least2, limit2);
        else
        {
            left = n_out < n ? least2 : INFINITY;
            for (int64_t c = j; c < j + n; c++)
                row->leash[c] = left;
        }
        corner = up;
        for (int64_t c = j; c < j + n && row->first == b->n; c++)
            row->first = row->leash[c] <= limit2 ? c : b->n;
        for (int64_t c = j + n - 1; c >= j && row->last < j; c--)
            row->last = row->leash[c] <= limit2 ? c : row->last;
    }
}

OJ_CLONES static void next_frechet_row_planar(struct leash_row *row,
                                              const double *p,
                                              const struct walk *b,
                                              double least2, double limit2)
{
    compute_next_frechet_row(2, row, p, b, least2, limit2);
}

OJ_CLONES static void next_frechet_row_sphere(struct leash_row *row,
                                              const double *p,
                                              const struct walk *b,
                                              double least2, double limit2)
{
    compute_next_frechet_row(3, row, p, b, least2, limit2);
}

/* Computes the table row by row and returns its last cell. Values below least2
 * are raised to it; values above limit2 become INFINITY. */
static double squared_discrete_frechet(const struct walk *a,
                                       const struct walk *b, double least2,
                                       double limit2,
                                       struct oj_shape_scratch *scratch)
{
    struct leash_row row = {scratch->leash, 0, 0};
    row.leash[0] = least2; /* start value: the cell of column 0 before the first
                              row */
    for (int64_t i = 0; i < a->n && row.first <= row.last; i++)
    {
        double p[3];
        if (scratch->cancel != NULL && *scratch->cancel)
            return INFINITY;
        for (int d = 0; d < a->side->n_dims; d++)
            p[d] = a->side->at[d][a->first + i];
        (a->side->n_dims == 3
             ? next_frechet_row_sphere
             : next_frechet_row_planar)(&row, p, b, least2, limit2);
        scratch->n_refined += row.last - row.first + 1;
    }
    return row.first <= row.last && row.last == b->n - 1 ? row.leash[b->n - 1]
                                                         : INFINITY;
}

static struct walk
vertex_sequence_of_feature(const struct oj_shape_blocks *side, int64_t feature)
{
    struct walk walk = {side, 0, 0};
    oj_flat_vertex_range(side->flat, feature, &walk.first, &walk.n);
    walk.n -= walk.first;
    return walk;
}

oj_status oj_shape_frechet2(const struct oj_shape_blocks *a, int64_t feature_a,
                            const struct oj_shape_blocks *b, int64_t feature_b,
                            double least2, double limit2,
                            struct oj_shape_scratch *scratch, double *out,
                            struct oj_error *err)
{
    struct walk from = vertex_sequence_of_feature(a, feature_a),
                to = vertex_sequence_of_feature(b, feature_b);
    double enough2;
    least2 = oj_larger(least2, squared_vertex_distance(&from, 0, &to, 0));
    least2 = oj_larger(
        least2, squared_vertex_distance(&from, from.n - 1, &to, to.n - 1));
    *out = INFINITY;
    if (least2 > limit2)
        return OJ_OK;
    enough2 = greedy_upper_bound_of_frechet2(&from, &to);
    *out = enough2;
    if (enough2 <= least2)
        return OJ_OK;
    OJ_ROOM(scratch->leash, 0, to.n, scratch->cap_leash, err);
    *out = squared_discrete_frechet(
        &from, &to, least2, enough2 < limit2 ? enough2 : limit2, scratch);
    return OJ_OK;
}

void oj_shape_scratch_free(struct oj_shape_scratch *scratch)
{
    oj_free(scratch->leash);
    memset(scratch, 0, sizeof *scratch);
}
