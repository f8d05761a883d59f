#include "relate_figure.h"

#include "../../flatten/base/oj_array.h"
#include "../shapes/cpu_meet.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Fewer edges are read one by one. */
#define EDGES_FOR_BANDS 48

/* --- spots ---------------------------------------------------------------- */

static int compare_spots(const void *left, const void *right)
{
    const struct oj_spot *a = left, *b = right;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return (a->y > b->y) - (a->y < b->y);
}

static void sort_spots(struct oj_spot *spot, int64_t n)
{
    if (n > 1)
        qsort(spot, (size_t)n, sizeof *spot, compare_spots);
}

int oj_spots_have(const struct oj_spot *spot, int64_t n, double x, double y)
{
    const struct oj_spot wanted = {x, y};
    return n > 0 && bsearch(&wanted, spot, (size_t)n, sizeof *spot,
                            compare_spots) != NULL;
}

/* Sorts them, and keeps one of each place; odd_only: only of those that are
 * there an odd number of times. */
static int64_t merge_spots(struct oj_spot *spot, int64_t n, int odd_only)
{
    int64_t n_kept = 0, end;
    sort_spots(spot, n);
    for (int64_t i = 0; i < n; i = end)
    {
        end = i + 1;
        while (end < n && spot[end].x == spot[i].x && spot[end].y == spot[i].y)
            end++;
        if (!odd_only || (end - i) % 2 != 0)
            spot[n_kept++] = spot[i];
    }
    return n_kept;
}

static oj_status add_spot(struct oj_spot **spot, int64_t *n, int64_t *capacity,
                          double x, double y, struct oj_error *err)
{
    OJ_TRY(oj_reserve(spot, *n, *n + 1, capacity, sizeof **spot, err));
    (*spot)[*n].x = x;
    (*spot)[(*n)++].y = y;
    return OJ_OK;
}

/* --- edges ---------------------------------------------------------------- */

/* The edges of a ring or line that have a length; there is room. */
static void add_edges(struct oj_figure *f, int64_t first, int64_t end,
                      enum oj_edge_kind kind, int32_t group)
{
    const double *x = f->shape->flat->x, *y = f->shape->flat->y;
    for (int64_t v = first; v + 1 < end; v++)
    {
        struct oj_edge *e = &f->edge[f->n_edges];
        if (x[v] == x[v + 1] && y[v] == y[v + 1])
            continue;
        e->ax = x[v];
        e->ay = y[v];
        e->bx = x[v + 1];
        e->by = y[v + 1];
        e->group = group;
        e->kind = (uint8_t)kind;
        f->n_edges++;
    }
}

static oj_status add_line(struct oj_figure *f, int64_t first, int64_t end,
                          struct oj_error *err)
{
    const double *x = f->shape->flat->x, *y = f->shape->flat->y;
    int64_t before = f->n_edges;
    add_edges(f, first, end, OJ_EDGE_LINE, 0);
    if (f->n_edges == before)
        return add_spot(&f->spot, &f->n_spots, &f->cap_spots, x[first],
                        y[first], err);
    if (x[first] == x[end - 1] && y[first] == y[end - 1])
        return OJ_OK;
    OJ_TRY(
        add_spot(&f->end, &f->n_ends, &f->cap_ends, x[first], y[first], err));
    return add_spot(&f->end, &f->n_ends, &f->cap_ends, x[end - 1], y[end - 1],
                    err);
}

static oj_status add_ring(struct oj_figure *f, int64_t first, int64_t end,
                          struct oj_error *err)
{
    int64_t before = f->n_edges;
    struct oj_dot *dot;
    add_edges(f, first, end, OJ_EDGE_RING, f->n_groups - 1);
    if (f->n_edges > before)
        return OJ_OK;
    OJ_TRY(oj_reserve(&f->dot, f->n_dots, f->n_dots + 1, &f->cap_dots,
                      sizeof *f->dot, err));
    dot = &f->dot[f->n_dots++];
    dot->at.x = f->shape->flat->x[first];
    dot->at.y = f->shape->flat->y[first];
    dot->group = f->n_groups - 1;
    return OJ_OK;
}

static oj_status add_part(struct oj_figure *f, int64_t part,
                          struct oj_error *err)
{
    const struct oj_flat *flat = f->shape->flat;
    int64_t ring = flat->ring_offset[part];
    int64_t end_ring = flat->ring_offset[part + 1];
    int64_t first = flat->vertex_offset[ring];
    if (flat->part_kind[part] == OJ_PART_LINE)
        return add_line(f, first, flat->vertex_offset[ring + 1], err);
    if (flat->part_kind[part] == OJ_PART_POINT)
        return add_spot(&f->spot, &f->n_spots, &f->cap_spots, flat->x[first],
                        flat->y[first], err);
    if (!f->is_nice || f->n_groups == 0)
        f->n_groups++;
    for (; ring < end_ring; ring++)
        OJ_TRY(add_ring(f, flat->vertex_offset[ring],
                        flat->vertex_offset[ring + 1], err));
    return OJ_OK;
}

static oj_status add_parts(struct oj_figure *f, struct oj_error *err)
{
    const struct oj_shape *shape = f->shape;
    OJ_TRY(oj_reserve(&f->edge, 0, shape->n_vertices, &f->cap_edges,
                      sizeof *f->edge, err));
    if (oj_flat_is_points(shape->flat))
        return add_spot(&f->spot, &f->n_spots, &f->cap_spots,
                        shape->flat->x[shape->first_vertex],
                        shape->flat->y[shape->first_vertex], err);
    for (int64_t p = 0; p < shape->n_parts; p++)
        OJ_TRY(add_part(f, shape->first_part + p, err));
    f->n_ends = merge_spots(f->end, f->n_ends, 1);
    return OJ_OK;
}

/* --- bands ---------------------------------------------------------------- */

static void band_range(const struct oj_bands *b, const struct oj_edge *e,
                       int32_t *first, int32_t *last)
{
    *first = oj_band_of(b, e->ay < e->by ? e->ay : e->by);
    *last = oj_band_of(b, e->ay < e->by ? e->by : e->ay);
}

/* Counts, then fills; long edges that would be in very many bands make fewer
 * bands. */
static oj_status make_bands(struct oj_figure *f, struct oj_error *err)
{
    struct oj_bands *b = &f->bands;
    double height = f->box.y1 - f->box.y0, rise = 0.0, n;
    int32_t first, last;
    b->n = 1;
    b->y0 = f->box.y0;
    b->per_unit = 0.0;
    for (int64_t i = 0; i < f->n_edges; i++)
        rise += fabs(f->edge[i].by - f->edge[i].ay);
    if (f->n_edges < EDGES_FOR_BANDS || !(height > 0.0) || !isfinite(rise))
        return OJ_OK;
    /* rise / height bands' worth of edges are at any height */
    n = 2.0 * (double)f->n_edges / (1.0 + rise / height);
    n = n < 2.0 ? 2.0 : n > 1e6 ? 1e6 : n;
    b->per_unit = n / height;
    if (!isfinite(b->per_unit))
    {
        b->per_unit = 0.0;
        return OJ_OK;
    }
    b->n = (int32_t)n;
    OJ_TRY(oj_reserve(&b->first, 0, b->n + 2, &b->cap_first, sizeof *b->first,
                      err));
    memset(b->first, 0, (size_t)(b->n + 2) * sizeof *b->first);
    for (int64_t i = 0; i < f->n_edges; i++)
    {
        band_range(b, &f->edge[i], &first, &last);
        for (int32_t band = first; band <= last; band++)
            b->first[band + 2]++;
    }
    for (int32_t band = 0; band < b->n; band++)
        b->first[band + 2] += b->first[band + 1];
    OJ_TRY(oj_reserve(&b->edge, 0, b->first[b->n + 1], &b->cap_edge,
                      sizeof *b->edge, err));
    for (int64_t i = 0; i < f->n_edges; i++)
    {
        band_range(b, &f->edge[i], &first, &last);
        for (int32_t band = first; band <= last; band++)
            b->edge[b->first[band + 1]++] = (int32_t)i;
    }
    return OJ_OK;
}

/* --- where a point is ----------------------------------------------------- */

enum oj_location oj_figure_locate(const struct oj_figure *f, double px,
                                  double py)
{
    int32_t band = oj_band_of(&f->bands, py);
    int64_t n = oj_band_size(f, band);
    int odd = 0;
    if (f->shape->kinds != OJ_PART_LINE &&
        atomic_load_explicit(&f->shape->cells, memory_order_acquire) != NULL)
        return oj_shape_locate(f->shape, px, py);
    if (oj_spots_have(f->spot, f->n_spots, px, py))
        return OJ_ON_BOUNDARY;
    for (int64_t k = 0; k < n; k++)
    {
        const struct oj_edge *e = &f->edge[oj_band_edge(f, band, k)];
        int edge = oj_ring_edge(px, py, e->ax, e->ay, e->bx, e->by);
        if (edge == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= edge;
    }
    return odd && f->shape->kinds == OJ_PART_POLYGON ? OJ_INSIDE : OJ_OUTSIDE;
}

/* --- the whole ------------------------------------------------------------ */

oj_status oj_figure_lay_out(struct oj_figure *f, const struct oj_shape *shape,
                            int is_nice, struct oj_error *err)
{
    f->shape = shape;
    f->flat = NULL;
    f->is_nice = is_nice;
    f->n_edges = f->n_spots = f->n_ends = f->n_dots = 0;
    f->n_groups = 0;
    f->has_flat = 0;
    f->box = shape->box;
    OJ_TRY(add_parts(f, err));
    OJ_TRY(make_bands(f, err));
    OJ_TRY(oj_reserve(&f->is_on, 0, f->n_groups + 1, &f->cap_on,
                      sizeof *f->is_on, err));
    OJ_TRY(oj_reserve(&f->mark, 0, f->n_groups + 1, &f->cap_mark,
                      sizeof *f->mark, err));
    return oj_reserve(&f->encloses, 0, f->n_groups + 1, &f->cap_encloses,
                      sizeof *f->encloses, err);
}

oj_status oj_figure_settle_spots(struct oj_figure *f, struct oj_error *err)
{
    int64_t n_kept = 0;
    for (int64_t i = 0; i < f->n_dots; i++)
    {
        if (f->is_nice || f->encloses[f->dot[i].group])
            f->dot[n_kept++] = f->dot[i];
        else
            OJ_TRY(add_spot(&f->spot, &f->n_spots, &f->cap_spots,
                            f->dot[i].at.x, f->dot[i].at.y, err));
    }
    f->n_dots = n_kept;
    f->n_spots = merge_spots(f->spot, f->n_spots, 0);
    return OJ_OK;
}

void oj_figure_free(struct oj_figure *f)
{
    oj_free(f->edge);
    oj_free(f->spot);
    oj_free(f->end);
    oj_free(f->dot);
    oj_free(f->encloses);
    oj_free(f->bands.first);
    oj_free(f->bands.edge);
    oj_free(f->is_on);
    oj_free(f->mark);
    memset(f, 0, sizeof *f);
}
