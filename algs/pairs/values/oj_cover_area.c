#include "oj_cover_area.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_compare.h"
#include "../../foundations/kernels/oj_box.h"
#include "../selection/oj_feature_area_length.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The computation for a row is given up if sorting the edges of its slabs takes
 * more steps than MOST_STEPS + MOST_STEPS_PER_EDGE * the number of edges:
 * GEOS's union takes about as long. A step is an edge in a slab, or the move of
 * an edge by one position. */
#define MOST_STEPS (INT64_C(1) << 20)
#define MOST_STEPS_PER_EDGE 1024

/* An edge of a polygon part, upwards: y0 < y1. Coordinates are relative to the
 * box of the row. */
struct oj_cover_edge
{
    double x0, y0, x1, y1;
    double slope;     /* x per y */
    double low, high; /* x at the bottom and the top of the slab */
    int64_t part;     /* number of the part; the parts of the row come first */
};

/* State of the measurement of one row. */
struct cover
{
    struct oj_cover_work *work;
    struct oj_box box;   /* box of the polygons of the row */
    double width;        /* width of the box */
    int64_t n_row_parts; /* number of parts of the row, which precede the other
                            parts */
    int64_t n_active;
    int64_t n_steps, most_steps;
    double covered, whole;
    struct oj_error *err;
};

void oj_cover_work_free(struct oj_cover_work *work)
{
    oj_free(work->edge);
    oj_free(work->y);
    oj_free(work->top);
    oj_free(work->active);
    oj_free(work->is_odd);
    memset(work, 0, sizeof *work);
}

/* ---- edges --------------------------------------------------------------- */

static oj_status add_slab_height(struct cover *cover, double y)
{
    struct oj_cover_work *work = cover->work;
    OJ_ROOM(work->y, work->n_y, work->n_y + 1, work->cap_y, cover->err);
    work->y[work->n_y++] = y;
    return OJ_OK;
}

/* Adds the edge from a to b unless it is horizontal. Coordinates are relative
 * to the box. */
static oj_status add_edge(struct cover *cover, double ax, double ay, double bx,
                          double by)
{
    struct oj_cover_work *work = cover->work;
    const double height = cover->box.y1 - cover->box.y0;
    struct oj_cover_edge edge = {ax, ay, bx, by, 0.0, 0.0, 0.0, work->n_parts};
    if (by < ay)
    {
        edge.x0 = bx;
        edge.y0 = by;
        edge.x1 = ax;
        edge.y1 = ay;
    }
    if (!(edge.y0 < edge.y1) || edge.y1 <= 0.0 || edge.y0 >= height)
        return OJ_OK;
    edge.slope = (edge.x1 - edge.x0) / (edge.y1 - edge.y0);
    OJ_ROOM(work->edge, work->n_edges, work->n_edges + 1, work->cap_edge,
            cover->err);
    work->edge[work->n_edges++] = edge;
    if (edge.y0 > 0.0)
        OJ_TRY(add_slab_height(cover, edge.y0));
    return edge.y1 < height ? add_slab_height(cover, edge.y1) : OJ_OK;
}

/* Adds the edges of a ring that bound areas in the box. Leaves out edges to the
 * right of the box, and replaces consecutive edges to its left by one edge on
 * its left side. */
static oj_status add_edges_of_ring(struct cover *cover,
                                   const struct oj_flat *flat, int64_t ring)
{
    const struct oj_box *box = &cover->box;
    int64_t v = flat->vertex_offset[ring];
    const int64_t end = flat->vertex_offset[ring + 1] - 1;
    double left_from = 0.0, left_to = 0.0;
    int is_left = 0;
    for (; v < end; v++)
    {
        const double ax = flat->x[v], bx = flat->x[v + 1];
        const double ay = flat->y[v] - box->y0, by = flat->y[v + 1] - box->y0;
        if (ax <= box->x0 && bx <= box->x0)
        {
            if (!is_left)
                left_from = ay;
            left_to = by;
            is_left = 1;
            continue;
        }
        if (is_left)
            OJ_TRY(add_edge(cover, 0.0, left_from, 0.0, left_to));
        is_left = 0;
        if (ax <= box->x1 || bx <= box->x1)
            OJ_TRY(add_edge(cover, ax - box->x0, ay, bx - box->x0, by));
    }
    return is_left ? add_edge(cover, 0.0, left_from, 0.0, left_to) : OJ_OK;
}

/* Adds the polygon parts of a feature. */
static oj_status add_edges_of_feature(struct cover *cover,
                                      const struct oj_flat *flat,
                                      int64_t feature)
{
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (flat->part_kind[part] != OJ_PART_POLYGON)
            continue;
        for (int64_t ring = flat->ring_offset[part];
             ring < flat->ring_offset[part + 1]; ring++)
            OJ_TRY(add_edges_of_ring(cover, flat, ring));
        cover->work->n_parts++;
    }
    return OJ_OK;
}

/* Returns the box of the polygons of a feature. */
static struct oj_box box_of_polygons(const struct oj_flat *flat,
                                     int64_t feature)
{
    struct oj_box box = oj_box_empty();
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        int64_t v = flat->vertex_offset[flat->ring_offset[part]];
        int64_t end = flat->vertex_offset[flat->ring_offset[part + 1]];
        for (; flat->part_kind[part] == OJ_PART_POLYGON && v < end; v++)
            oj_box_add_point(&box, flat->x[v], flat->y[v]);
    }
    return box;
}

/* ---- slabs --------------------------------------------------------------- */

static int compare_edge_starts(const void *a, const void *b)
{
    const struct oj_cover_edge *p = a, *q = b;
    return (p->y0 > q->y0) - (p->y0 < q->y0);
}

static double x_of_edge(const struct oj_cover_edge *edge, double y)
{
    return y >= edge->y1 ? edge->x1 : edge->x0 + (y - edge->y0) * edge->slope;
}

/* Sorts the active edges by their x in the middle of the slab. Insertion is
 * fast, since their order in the slab below is almost right. */
static void sort_active_edges(struct cover *cover, double bottom, double top)
{
    struct oj_cover_edge *edge = cover->work->edge;
    int64_t *active = cover->work->active;
    for (int64_t i = 0; i < cover->n_active; i++)
    {
        struct oj_cover_edge *here = &edge[active[i]];
        const int64_t index = active[i];
        int64_t k = i;
        here->low = x_of_edge(here, bottom);
        here->high = x_of_edge(here, top);
        for (; k > 0 && edge[active[k - 1]].low + edge[active[k - 1]].high >
                            here->low + here->high;
             k--)
            active[k] = active[k - 1];
        active[k] = index;
        cover->n_steps += 1 + i - k;
    }
}

/* Returns 1 if two edges come in the wrong order at the bottom or the top of
 * the slab, by more than rounding, and not both on one side of the box. */
static int do_edges_cross(const struct cover *cover,
                          const struct oj_cover_edge *a,
                          const struct oj_cover_edge *b)
{
    const double wrong = fmin(b->low - a->low, b->high - a->high);
    const double rounding =
        1e-13 * cover->width +
        1e-15 * (fabs(a->low) + fabs(a->high) + fabs(b->low) + fabs(b->high));
    return wrong < -rounding &&
           fmax(fmax(a->low, a->high), fmax(b->low, b->high)) > 0.0 &&
           fmin(fmin(a->low, a->high), fmin(b->low, b->high)) < cover->width;
}

/* Returns the height at which two neighbours cross inside of the slab; `top` if
 * none do. */
static double find_crossing(const struct cover *cover, double bottom,
                            double top)
{
    const struct oj_cover_edge *edge = cover->work->edge;
    const int64_t *active = cover->work->active;
    for (int64_t i = 0; i + 1 < cover->n_active; i++)
    {
        const struct oj_cover_edge *a = &edge[active[i]];
        const struct oj_cover_edge *b = &edge[active[i + 1]];
        if (do_edges_cross(cover, a, b))
        {
            const double low = b->low - a->low, high = b->high - a->high;
            const double y = bottom + low / (low - high) * (top - bottom);
            if (y > bottom && y < top)
                return y;
        }
    }
    return top;
}

/* Adds the trapezoids of a slab without crossings to cover->covered and
 * cover->whole. */
static void add_trapezoids(struct cover *cover, double bottom, double top)
{
    const struct oj_cover_edge *edge = cover->work->edge;
    const int64_t *active = cover->work->active;
    unsigned char *is_odd = cover->work->is_odd;
    int64_t n_row = 0, n_others = 0;
    for (int64_t i = 0; i < cover->n_active; i++)
    {
        const struct oj_cover_edge *here = &edge[active[i]], *next;
        const int change = is_odd[here->part] ? -1 : 1;
        double area;
        is_odd[here->part] ^= 1;
        *(here->part < cover->n_row_parts ? &n_row : &n_others) += change;
        if (n_row == 0 || i + 1 == cover->n_active)
            continue;
        next = &edge[active[i + 1]];
        area = ((next->low - here->low) + (next->high - here->high)) *
               (top - bottom) / 2.0;
        cover->whole += area;
        if (n_others > 0)
            cover->covered += area;
    }
    for (int64_t i = 0; i < cover->n_active; i++)
        is_odd[edge[active[i]].part] = 0;
}

/* Measures the slab, cut where edges cross. */
static oj_status measure_area_of_slab(struct cover *cover, double bottom,
                                      double top)
{
    struct oj_cover_work *work = cover->work;
    int64_t n = 0;
    double y = top;
    while (cover->n_steps <= cover->most_steps)
    {
        sort_active_edges(cover, bottom, y);
        top = y;
        y = find_crossing(cover, bottom, top);
        if (y < top)
        {
            OJ_ROOM(work->top, n, n + 1, work->cap_top, cover->err);
            work->top[n++] = top;
            continue;
        }
        add_trapezoids(cover, bottom, top);
        if (n == 0)
            break;
        bottom = top;
        y = work->top[--n];
    }
    return OJ_OK;
}

static oj_status measure_area_of_slabs(struct cover *cover)
{
    struct oj_cover_work *work = cover->work;
    int64_t next = 0;
    qsort(work->y, (size_t)work->n_y, sizeof *work->y, oj_compare_doubles);
    qsort(work->edge, (size_t)work->n_edges, sizeof *work->edge,
          compare_edge_starts);
    OJ_ROOM(work->active, 0, work->n_edges + 1, work->cap_active, cover->err);
    for (int64_t i = 0; i + 1 < work->n_y; i++)
    {
        const double bottom = work->y[i], top = work->y[i + 1];
        int64_t n = 0;
        if (!(bottom < top))
            continue;
        for (int64_t k = 0; k < cover->n_active; k++)
        {
            if (work->edge[work->active[k]].y1 > bottom)
                work->active[n++] = work->active[k];
        }
        for (; next < work->n_edges && work->edge[next].y0 <= bottom; next++)
            work->active[n++] = next;
        cover->n_active = n;
        OJ_TRY(measure_area_of_slab(cover, bottom, top));
        if (cover->n_steps > cover->most_steps)
            return OJ_OK;
    }
    return OJ_OK;
}

oj_status oj_cover_area(struct oj_cover_work *work, const struct oj_flat *input,
                        int64_t row, const struct oj_flat *join_side,
                        const int32_t *features, int64_t n, double *covered,
                        double *whole, int *is_measured, struct oj_error *err)
{
    struct cover cover = {.work = work, .err = err};
    cover.box = box_of_polygons(input, row);
    work->n_edges = work->n_y = work->n_parts = 0;
    OJ_TRY(add_slab_height(&cover, 0.0));
    OJ_TRY(add_slab_height(&cover, cover.box.y1 - cover.box.y0));
    OJ_TRY(add_edges_of_feature(&cover, input, row));
    cover.n_row_parts = work->n_parts;
    for (int64_t i = 0; i < n; i++)
        OJ_TRY(add_edges_of_feature(&cover, join_side, features[i]));
    OJ_ROOM(work->is_odd, 0, work->n_parts + 1, work->cap_is_odd, err);
    memset(work->is_odd, 0, (size_t)work->n_parts);
    cover.most_steps = MOST_STEPS + MOST_STEPS_PER_EDGE * work->n_edges;
    cover.width = cover.box.x1 - cover.box.x0;
    OJ_TRY(measure_area_of_slabs(&cover));
    *is_measured = cover.n_steps <= cover.most_steps;
    if (!*is_measured)
        return OJ_OK;
    *covered = cover.covered;
    *whole = cover.whole;
    return OJ_OK;
}

oj_status oj_cover_has_size(struct oj_cover_work *work,
                            const struct oj_flat *input, int64_t row,
                            int *has_size, struct oj_error *err)
{
    double covered, whole = 0.0;
    int is_measured = 1, has = oj_flat_length(input, row) > 0.0 ||
                               oj_flat_area(input, row) > 0.0;
    if (!has && (oj_flat_kinds(input, row) & OJ_PART_POLYGON) != 0)
        OJ_TRY(oj_cover_area(work, input, row, input, NULL, 0, &covered, &whole,
                             &is_measured, err));
    *has_size = has || !is_measured || whole > 0.0;
    return OJ_OK;
}
