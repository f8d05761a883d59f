#include "relate_nice.h"

#include "../kernels/oj_cross.h"

#include <string.h>

static int lines_have_length(const struct oj_shape *shape)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring(shape, r, &n), v = first;
        while (v < first + n && x[v] == x[first] && y[v] == y[first])
            v++;
        if (v == first + n)
            return 0;
    }
    return 1;
}

/* 1 when two edges, whose boxes meet, have at most an end of one of them in
 * common. */
static int are_apart(const struct oj_edge *e, const struct oj_edge *f)
{
    int c = oj_orientation(e->ax, e->ay, e->bx, e->by, f->ax, f->ay);
    int d = oj_orientation(e->ax, e->ay, e->bx, e->by, f->bx, f->by);
    double e0, e1, f0, f1;
    if (c != 0 || d != 0)
        return c * d >= 0 ||
               oj_orientation(f->ax, f->ay, f->bx, f->by, e->ax, e->ay) *
                       oj_orientation(f->ax, f->ay, f->bx, f->by, e->bx,
                                      e->by) >=
                   0;
    /* on one line */
    e0 = e->ax == e->bx ? e->ay : e->ax;
    e1 = e->ax == e->bx ? e->by : e->bx;
    f0 = e->ax == e->bx ? f->ay : f->ax;
    f1 = e->ax == e->bx ? f->by : f->bx;
    return (e0 < e1 ? e1 : e0) <= (f0 < f1 ? f0 : f1) ||
           (f0 < f1 ? f1 : f0) <= (e0 < e1 ? e0 : e1);
}

/* 1 when no sector around the point is in two parts. */
static oj_status is_in_one_part(struct oj_figure *f, double x, double y,
                                struct oj_node_scratch *scratch, int *is,
                                struct oj_error *err)
{
    int32_t depth = 0;
    OJ_TRY(oj_figure_depth(f, x, y, scratch, &depth, err));
    *is = depth < 2;
    return OJ_OK;
}

/* Edges of two parts, which are apart but for an end: in that the rings may
 * cross all the same. */
static oj_status parts_only_touch(struct oj_figure *f, const struct oj_edge *e,
                                  const struct oj_edge *other,
                                  struct oj_node_scratch *scratch, int *touch,
                                  struct oj_error *err)
{
    const struct oj_edge *edge[2] = {e, other};
    for (int i = 0; i < 4 && *touch; i++)
    {
        const struct oj_edge *of = edge[i >> 1], *on = edge[1 - (i >> 1)];
        double x = i & 1 ? of->bx : of->ax, y = i & 1 ? of->by : of->ay;
        if (oj_on_segment(x, y, on->ax, on->ay, on->bx, on->by))
            OJ_TRY(is_in_one_part(f, x, y, scratch, touch, err));
    }
    return OJ_OK;
}

static oj_status band_is_fine(struct oj_figure *f, int32_t band,
                              struct oj_node_scratch *scratch, int *is_fine,
                              struct oj_error *err)
{
    int64_t n = oj_band_size(f, band);
    *is_fine = 1;
    for (int64_t i = 1; i < n; i++)
    {
        const struct oj_edge *e = &f->edge[oj_band_edge(f, band, i)];
        for (int64_t k = 0; k < i && *is_fine; k++)
        {
            const struct oj_edge *other = &f->edge[oj_band_edge(f, band, k)];
            if (!oj_segment_boxes_meet(e->ax, e->ay, e->bx, e->by, other->ax,
                                       other->ay, other->bx, other->by))
                continue;
            *is_fine = are_apart(e, other);
            if (*is_fine && e->group != other->group)
                OJ_TRY(parts_only_touch(f, e, other, scratch, is_fine, err));
        }
    }
    return OJ_OK;
}

/* Of rings that do not cross one vertex tells whether the ring's part is in
 * another one. */
static oj_status parts_are_apart(struct oj_figure *f,
                                 struct oj_node_scratch *scratch, int *are,
                                 struct oj_error *err)
{
    *are = 1;
    for (int64_t i = 0; i < f->n_edges && *are && f->n_groups > 1; i++)
    {
        const struct oj_edge *e = &f->edge[i];
        if (i > 0 && e[-1].bx == e->ax && e[-1].by == e->ay)
            continue; /* the ring goes on */
        OJ_TRY(is_in_one_part(f, e->ax, e->ay, scratch, are, err));
    }
    return OJ_OK;
}

/* Of rings that do not cross: 1 when an odd number of the other rings of its
 * part are around ring. 0 also when all its vertices are on others. */
static int is_in_others(const struct oj_flat *flat, int64_t part, int64_t ring)
{
    for (int64_t v = flat->vertex_offset[ring];
         v < flat->vertex_offset[ring + 1]; v++)
    {
        int odd = 0, is_on = 0;
        for (int64_t r = flat->ring_offset[part];
             r < flat->ring_offset[part + 1] && !is_on; r++)
        {
            int64_t first = flat->vertex_offset[r];
            enum oj_location location;
            if (r == ring)
                continue;
            location = oj_ring_locate(flat->x[v], flat->y[v], flat->x + first,
                                      flat->y + first,
                                      flat->vertex_offset[r + 1] - first);
            is_on = location == OJ_ON_BOUNDARY;
            odd ^= location == OJ_INSIDE;
        }
        if (!is_on)
            return odd;
    }
    return 0;
}

/* Holes lie in their shells, and in no other hole. */
static int holes_are_in_shells(const struct oj_shape *shape)
{
    const struct oj_flat *flat = shape->flat;
    for (int64_t part = shape->first_part;
         part < shape->first_part + shape->n_parts; part++)
    {
        for (int64_t hole = flat->ring_offset[part] + 1;
             hole < flat->ring_offset[part + 1]; hole++)
        {
            if (!is_in_others(flat, part, hole))
                return 0;
        }
    }
    return 1;
}

oj_status oj_shape_is_nice(const struct oj_shape *shape,
                           struct oj_figure *figure,
                           struct oj_node_scratch *scratch, int *is_nice,
                           struct oj_error *err)
{
    *is_nice = shape->kinds == OJ_PART_POINT ||
               (shape->kinds == OJ_PART_LINE && lines_have_length(shape));
    if (shape->kinds != OJ_PART_POLYGON)
        return OJ_OK;
    OJ_TRY(oj_figure_lay_out(figure, shape, 0, err));
    if (figure->n_dots > 0)
        return OJ_OK;
    for (int32_t band = 0; band < figure->bands.n; band++)
    {
        int is_fine;
        OJ_TRY(band_is_fine(figure, band, scratch, &is_fine, err));
        if (!is_fine)
            return OJ_OK;
    }
    if (!holes_are_in_shells(shape))
        return OJ_OK;
    return parts_are_apart(figure, scratch, is_nice, err);
}

/* --- figures of shapes that are not nice ---------------------------------- */

/* 1 when the edges first .. end - 1 lie on one line: they enclose nothing,
 * which vertex by vertex would take long to find, as all are in one band. */
static int are_on_one_line(const struct oj_figure *f, int64_t first,
                           int64_t end)
{
    const struct oj_edge *e = &f->edge[first];
    for (int64_t i = first + 1; i < end; i++)
    {
        if (oj_orientation(e->ax, e->ay, e->bx, e->by, f->edge[i].ax,
                           f->edge[i].ay) != 0 ||
            oj_orientation(e->ax, e->ay, e->bx, e->by, f->edge[i].bx,
                           f->edge[i].by) != 0)
            return 0;
    }
    return 1;
}

/* Polygons whose rings enclose nothing are lines. */
static oj_status find_flat_groups(struct oj_figure *f,
                                  struct oj_node_scratch *scratch,
                                  struct oj_error *err)
{
    int64_t first = 0, end;
    memset(f->encloses, 0, (size_t)f->n_groups);
    for (; first < f->n_edges; first = end)
    {
        int32_t group = f->edge[first].group;
        int encloses = 0, is_line;
        end = first + 1;
        if (f->edge[first].kind != OJ_EDGE_RING)
            continue;
        while (end < f->n_edges && f->edge[end].kind == OJ_EDGE_RING &&
               f->edge[end].group == group)
            end++;
        is_line = are_on_one_line(f, first, end);
        for (int64_t i = first; i < end && !encloses && !is_line; i++)
            OJ_TRY(oj_group_encloses(f, group, f->edge[i].ax, f->edge[i].ay,
                                     scratch, &encloses, err));
        for (int64_t i = first; i < end && !encloses; i++)
            f->edge[i].kind = OJ_EDGE_FLAT;
        f->has_flat |= !encloses;
        f->encloses[group] = (uint8_t)encloses;
    }
    return OJ_OK;
}

oj_status oj_figure_make(struct oj_figure *f, const struct oj_shape *shape,
                         int is_nice, struct oj_node_scratch *scratch,
                         struct oj_error *err)
{
    f->shape = shape;
    if (f->flat == shape->flat && f->feature == shape->feature &&
        f->is_nice == is_nice)
        return OJ_OK;
    OJ_TRY(oj_figure_lay_out(f, shape, is_nice, err));
    if (!is_nice)
        OJ_TRY(find_flat_groups(f, scratch, err));
    OJ_TRY(oj_figure_settle_spots(f, err));
    f->is_simple = is_nice && !oj_shape_is_mixed(shape);
    f->flat = shape->flat;
    f->feature = shape->feature;
    return OJ_OK;
}
