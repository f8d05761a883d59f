#include "cpu_meet.h"

#include "../base/cpu_vector.h"

#include <stdatomic.h>

/* --- one point ------------------------------------------------------------ */

enum oj_location oj_shape_locate_in_rings(const struct oj_shape *shape,
                                          double px, double py)
{
    int odd = 0;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring(shape, r, &n);
        enum oj_location location = oj_ring_locate(
            px, py, shape->flat->x + first, shape->flat->y + first, n);
        if (location == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= location == OJ_INSIDE;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

/* Edges from x[i], y[i] to step farther; step 0: points. */
static int is_on_edges(double px, double py, const double *x, const double *y,
                       int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
    {
        if (oj_on_segment(px, py, x[i], y[i], x[i + step], y[i + step]))
            return 1;
    }
    return 0;
}

/* Lines and points. */
static int is_on_shape(const struct oj_shape *shape, double px, double py)
{
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, v = oj_shape_ring(shape, r, &n);
        if (is_on_edges(px, py, shape->flat->x + v, shape->flat->y + v,
                        n > 1 ? n - 1 : n, n > 1))
            return 1;
    }
    return 0;
}

static int is_on_cell(const struct oj_edge_grid *g, double px, double py)
{
    int32_t column = oj_frame_column(&g->frame, px);
    const struct oj_edge_run *run,
        *end = oj_edge_grid_runs(g, oj_frame_row(&g->frame, py), column, column,
                                 &run);
    for (; run < end; run++)
    {
        int64_t step, v = oj_edge_run_start(run, &step);
        if (is_on_edges(px, py, g->chains.x + v, g->chains.y + v, run->n, step))
            return 1;
    }
    return 0;
}

OJ_CLONES enum oj_location oj_shape_locate(const struct oj_shape *shape,
                                           double px, double py)
{
    const struct oj_edge_grid *cells = oj_shape_cells(shape);
    if (!oj_box_has(&shape->box, px, py))
        return OJ_OUTSIDE;
    if (shape->kinds == OJ_PART_POLYGON)
        return cells != NULL ? oj_edge_grid_locate(cells, px, py)
                             : oj_shape_locate_in_rings(shape, px, py);
    return (cells != NULL ? is_on_cell(cells, px, py)
                          : is_on_shape(shape, px, py))
               ? OJ_ON_BOUNDARY
               : OJ_OUTSIDE;
}

/* --- edges ---------------------------------------------------------------- */

struct edge
{
    double ax, ay, bx, by;
};

OJ_INLINE enum oj_contact edges_contact(const struct edge *e,
                                        const struct oj_box *box, double cx,
                                        double cy, double dx, double dy)
{
    struct oj_box other = oj_box_of_segment(cx, cy, dx, dy);
    if (!((box->x0 <= other.x1) & (other.x0 <= box->x1) &
          (box->y0 <= other.y1) & (other.y0 <= box->y1)))
        return OJ_APART;
    return oj_segments_contact(e->ax, e->ay, e->bx, e->by, cx, cy, dx, dy);
}

/* With n edges from x[i], y[i] to step farther. */
static enum oj_contact contact_with(const struct edge *e,
                                    const struct oj_box *box, const double *x,
                                    const double *y, int64_t n, int64_t step,
                                    enum oj_contact enough)
{
    enum oj_contact best = OJ_APART;
    for (int64_t i = 0; i < n && best < enough; i++)
    {
        enum oj_contact contact =
            edges_contact(e, box, x[i], y[i], x[i + step], y[i + step]);
        best = contact > best ? contact : best;
    }
    return best;
}

static enum oj_contact contact_in_cells(const struct edge *e,
                                        const struct oj_box *box,
                                        const struct oj_edge_grid *g,
                                        enum oj_contact enough)
{
    const struct oj_edge_rows rows =
        oj_edge_rows_of(&g->frame, e->ax, e->ay, e->bx, e->by);
    enum oj_contact best = OJ_APART;
    for (int32_t row = rows.window.row0; row <= rows.window.row1; row++)
    {
        const struct oj_edge_run *run, *end;
        int32_t first, last;
        oj_edge_columns(&g->frame, &rows, row, &first, &last);
        end = oj_edge_grid_runs(g, row, first, last, &run);
        for (; run < end; run++)
        {
            int64_t step, v = oj_edge_run_start(run, &step);
            enum oj_contact contact = contact_with(
                e, box, g->chains.x + v, g->chains.y + v, run->n, step, enough);
            best = contact > best ? contact : best;
            if (best >= enough)
                return best;
        }
    }
    return best;
}

static enum oj_contact contact_in_rings(const struct edge *e,
                                        const struct oj_box *box,
                                        const struct oj_shape *shape,
                                        enum oj_contact enough)
{
    enum oj_contact best = OJ_APART;
    for (int64_t r = 0; r < shape->n_rings && best < enough; r++)
    {
        int64_t n, first = oj_shape_ring(shape, r, &n);
        enum oj_contact contact =
            contact_with(e, box, shape->flat->x + first, shape->flat->y + first,
                         n > 1 ? n - 1 : 1, n > 1, enough);
        best = contact > best ? contact : best;
    }
    return best;
}

/* Edge e of a large shape against all edges of a small one. */
static enum oj_contact contact_with_small(const struct edge *e,
                                          const struct oj_box *box,
                                          const struct oj_shape *small,
                                          enum oj_contact enough)
{
    const struct oj_box *s = &small->box;
    if (!oj_box_intersects(box, s) ||
        oj_line_misses_box(e->ax, e->ay, e->bx, e->by, s->x0, s->y0, s->x1,
                           s->y1))
        return OJ_APART;
    return contact_in_rings(e, box, small, enough);
}

/* The edges of the cells that the small shape's box touches, against it: few
 * of them come near, and most of those not near enough. */
static enum oj_contact contact_in_window(const struct oj_shape *small,
                                         const struct oj_edge_grid *g,
                                         const struct oj_edge_window *w,
                                         enum oj_contact enough)
{
    const double *x = g->chains.x, *y = g->chains.y;
    enum oj_contact best = OJ_APART;
    for (int32_t row = w->row0; row <= w->row1; row++)
    {
        const struct oj_edge_run *run,
            *end = oj_edge_grid_runs(g, row, w->column0, w->column1, &run);
        for (; run < end; run++)
        {
            int64_t step, first = oj_edge_run_start(run, &step);
            for (int64_t v = first; v < first + run->n; v++)
            {
                struct edge e = {x[v], y[v], x[v + step], y[v + step]};
                struct oj_box box = oj_box_of_segment(e.ax, e.ay, e.bx, e.by);
                enum oj_contact contact =
                    contact_with_small(&e, &box, small, enough);
                best = contact > best ? contact : best;
                if (best >= enough)
                    return best;
            }
        }
    }
    return best;
}

/* The edges of a shape, each looked up among those of another, which may have
 * cells. */
static enum oj_contact contact_of_edges(const struct oj_shape *from,
                                        const struct oj_shape *to,
                                        const struct oj_edge_grid *cells,
                                        enum oj_contact enough)
{
    enum oj_contact best = OJ_APART;
    for (int64_t r = 0; r < from->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring(from, r, &n);
        const double *x = from->flat->x + first, *y = from->flat->y + first;
        int64_t last = n > 1 ? n - 1 : 1, step = n > 1;
        for (int64_t i = 0; i < last; i++)
        {
            struct edge e = {x[i], y[i], x[i + step], y[i + step]};
            struct oj_box box = oj_box_of_segment(e.ax, e.ay, e.bx, e.by);
            enum oj_contact contact;
            if (!oj_box_intersects(&box, &to->box))
                continue;
            contact = cells != NULL ? contact_in_cells(&e, &box, cells, enough)
                                    : contact_in_rings(&e, &box, to, enough);
            best = contact > best ? contact : best;
            if (best >= enough)
                return best;
        }
    }
    return best;
}

#define SMALL_VERTICES 32

enum oj_contact oj_shapes_contact(const struct oj_shape *a,
                                  const struct oj_shape *b,
                                  enum oj_contact enough)
{
    const struct oj_edge_grid *cells_a = oj_shape_cells(a);
    const struct oj_edge_grid *cells_b = oj_shape_cells(b);
    int swap = cells_b == NULL
                   ? cells_a != NULL
                   : cells_a != NULL && a->n_vertices > b->n_vertices;
    const struct oj_shape *small = swap ? b : a, *large = swap ? a : b;
    const struct oj_edge_grid *cells = swap ? cells_a : cells_b;
    if (cells != NULL && small->n_vertices <= SMALL_VERTICES)
    {
        struct oj_edge_window w = oj_cells_window(cells, &small->box);
        int64_t n_cells =
            (int64_t)(w.column1 - w.column0 + 1) * (w.row1 - w.row0 + 1);
        if (n_cells <= 4 * small->n_vertices)
            return contact_in_window(small, cells, &w, enough);
    }
    return contact_of_edges(small, large, cells, enough);
}

/* --- points --------------------------------------------------------------- */

/* Points of many parts that have cells: only those of cells near other. */
static int near_points_meet(const struct oj_edge_grid *g,
                            const struct oj_shape *other)
{
    struct oj_edge_window w = oj_cells_window(g, &other->box);
    for (int32_t row = w.row0; row <= w.row1; row++)
    {
        const struct oj_edge_run *run,
            *end = oj_edge_grid_runs(g, row, w.column0, w.column1, &run);
        for (; run < end; run++)
        {
            int64_t step, v = oj_edge_run_start(run, &step);
            if (oj_shape_locate(other, g->chains.x[v], g->chains.y[v]) !=
                OJ_OUTSIDE)
                return 1;
        }
    }
    return 0;
}

static int points_meet(const struct oj_shape *points,
                       const struct oj_shape *other)
{
    const struct oj_edge_grid *cells = oj_shape_cells(points);
    const double *x = points->flat->x + points->first_vertex;
    const double *y = points->flat->y + points->first_vertex;
    if (cells != NULL)
        return near_points_meet(cells, other);
    for (int64_t i = 0; i < points->n_vertices; i++)
    {
        if (oj_shape_locate(other, x[i], y[i]) != OJ_OUTSIDE)
            return 1;
    }
    return 0;
}

/* --- two shapes ----------------------------------------------------------- */

/* 1 when a part of shape begins in polygon. */
static int begins_in(const struct oj_shape *shape,
                     const struct oj_shape *polygon)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    if (polygon->kinds != OJ_PART_POLYGON)
        return 0;
    for (int64_t p = 0; p < shape->n_parts; p++)
    {
        int64_t v = oj_shape_part(shape, p);
        if (oj_shape_locate(polygon, x[v], y[v]) != OJ_OUTSIDE)
            return 1;
    }
    return 0;
}

/* Lines and polygons.  Without any contact of edges, what the two have in
 * common is whole components: where holes are in their shells, the first vertex
 * of a part tells of the part.  A polygon of one ring need not be nice for
 * that: its even-odd inside is bounded by that ring alone. */
static int edges_meet(const struct oj_shape *a, const struct oj_shape *b,
                      unsigned *rests_on)
{
    const struct oj_edge_grid *of_a = oj_shape_cells(a);
    const struct oj_edge_grid *of_b = oj_shape_cells(b);
    int is_b = of_a == NULL || (of_b != NULL && b->n_vertices > a->n_vertices);
    const struct oj_shape *large = is_b ? b : a, *small = is_b ? a : b;
    enum oj_location window =
        oj_cells_locate_box(is_b ? of_b : of_a, large, &small->box);
    unsigned many;
    if (window == OJ_ON_BOUNDARY && of_a != NULL && of_b != NULL)
    {
        window = oj_cells_locate_box(is_b ? of_a : of_b, small, &large->box);
        is_b = !is_b;
    }
    if (window == OJ_INSIDE)
        return 1;
    many = (oj_shape_is_many_rings(a) ? 1u : 0u) |
           (oj_shape_is_many_rings(b) ? 2u : 0u);
    if (window == OJ_OUTSIDE) /* as the cells of one say */
    {
        *rests_on |= many & (is_b ? 2u : 1u);
        return 0;
    }
    if ((many == 0 && begins_in(small, large)) ||
        oj_shapes_contact(small, large, OJ_TOUCHING) != OJ_APART ||
        (many != 0 && begins_in(small, large)) || begins_in(large, small))
        return 1;
    *rests_on |= many;
    return 0;
}

/* Shapes of one kind each. */
static int one_kind_meets(const struct oj_shape *a, const struct oj_shape *b,
                          unsigned *rests_on)
{
    if (!oj_box_intersects(&a->box, &b->box))
        return 0;
    if (a->kinds != OJ_PART_POINT && b->kinds != OJ_PART_POINT)
        return edges_meet(a, b, rests_on);
    if (a->kinds == OJ_PART_POINT &&
        (b->kinds != OJ_PART_POINT || a->n_vertices <= b->n_vertices))
    {
        if (points_meet(a, b))
            return 1;
    }
    else if (points_meet(b, a))
        return 1;
    *rests_on |= (a->may_overlap ? 1u : 0u) | (b->may_overlap ? 2u : 0u);
    return 0;
}

int oj_shapes_meet(const struct oj_shape *a, const struct oj_shape *b,
                   unsigned *rests_on)
{
    int n_a = a->member != NULL ? a->n_parts : 1;
    int n_b = b->member != NULL ? b->n_parts : 1;
    *rests_on = 0;
    if (n_a == 1 && n_b == 1)
        return one_kind_meets(a, b, rests_on);
    for (int i = 0; i < n_a; i++)
    {
        const struct oj_shape *of_a = a->member != NULL ? a->member + i : a;
        if (!oj_box_intersects(&of_a->box, &b->box))
            continue;
        for (int j = 0; j < n_b; j++)
        {
            const struct oj_shape *of_b = b->member != NULL ? b->member + j : b;
            if (one_kind_meets(of_a, of_b, rests_on))
                return 1;
        }
    }
    return 0;
}
