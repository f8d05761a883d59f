#include "geos_split_segments.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/kernels/oj_segment_intersection.h"

#include <stdlib.h>
#include <string.h>

/* An end of a segment: its coordinate along the longer side of the box of both
 * features (u), and the other one (v). */
struct geos_split_vertex
{
    double u, v;
};

/* A piece of a segment, in the direction of the segment. */
struct geos_split_piece
{
    double ax, ay, bx, by;
    int side;
    int is_repeated; /* 1: an earlier piece of the feature's lines equals it */
    int64_t part, ring;
};

/* State while the segments of two features are split. */
struct geos_splitting
{
    struct geos_split_work *work;
    const struct geos_split_side *side;
    struct oj_box box[2]; /* of each feature */
    int is_tall;          /* 1: the box of both features is taller than wide,
                             and u is y */
    struct oj_error *err;
};

void geos_split_work_free(struct geos_split_work *work)
{
    oj_free(work->vertex);
    oj_free(work->piece);
    oj_free(work->sorted);
    oj_flat_buf_free(&work->split);
    memset(work, 0, sizeof *work);
}

/* ---- order --------------------------------------------------------------- */

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_vertices(const void *a, const void *b)
{
    const struct geos_split_vertex *p = a, *q = b;
    const int of_u = compare_numbers(p->u, q->u);
    return of_u != 0 ? of_u : compare_numbers(p->v, q->v);
}

/* Compares pieces, whatever their direction: by the lower end, then by the
 * upper end. */
static int compare_ends(const struct geos_split_piece *p,
                        const struct geos_split_piece *q)
{
    struct geos_split_vertex p0 = {p->ax, p->ay}, p1 = {p->bx, p->by};
    struct geos_split_vertex q0 = {q->ax, q->ay}, q1 = {q->bx, q->by};
    const int p_is_up = compare_vertices(&p0, &p1) < 0;
    const int q_is_up = compare_vertices(&q0, &q1) < 0;
    const int of_lower =
        compare_vertices(p_is_up ? &p0 : &p1, q_is_up ? &q0 : &q1);
    return of_lower != 0
               ? of_lower
               : compare_vertices(p_is_up ? &p1 : &p0, q_is_up ? &q1 : &q0);
}

/* Compares pieces by their ends. Equal pieces are in the order in which they
 * were added. */
static int compare_pieces(const void *a, const void *b)
{
    const struct geos_split_piece *const *p = a, *const *q = b;
    const int of_ends = compare_ends(*p, *q);
    return of_ends != 0 ? of_ends : (*p > *q) - (*p < *q);
}

/* ---- segments ------------------------------------------------------------ */

/* A segment of a feature. */
struct segment
{
    double ax, ay, bx, by;
    int side;
    int64_t part, ring;
};

/* Returns 1 if the segment has a length, and its box meets that of the other
 * feature. */
static int is_segment_near(const struct geos_splitting *splitting,
                           const struct segment *s)
{
    const struct oj_box box = oj_box_of_segment(s->ax, s->ay, s->bx, s->by);
    return (s->ax != s->bx || s->ay != s->by) &&
           oj_box_intersects(&box, &splitting->box[1 - s->side]);
}

static oj_status visit_segments(struct geos_splitting *splitting, int side,
                                oj_status (*visit)(struct geos_splitting *,
                                                   const struct segment *))
{
    const struct geos_split_side *from = &splitting->side[side];
    const struct oj_flat *flat = from->flat;
    for (int64_t part = flat->part_offset[from->feature];
         part < flat->part_offset[from->feature + 1]; part++)
    {
        if (flat->part_kind[part] != from->kind)
            continue;
        for (int64_t ring = flat->ring_offset[part];
             ring < flat->ring_offset[part + 1]; ring++)
        {
            for (int64_t v = flat->vertex_offset[ring] + 1;
                 v < flat->vertex_offset[ring + 1]; v++)
            {
                const struct segment s = {
                    flat->x[v - 1], flat->y[v - 1], flat->x[v], flat->y[v],
                    side,           part,           ring};
                OJ_TRY(visit(splitting, &s));
            }
        }
    }
    return OJ_OK;
}

static struct geos_split_vertex
make_vertex(const struct geos_splitting *splitting, double x, double y)
{
    const struct geos_split_vertex vertex = {splitting->is_tall ? y : x,
                                             splitting->is_tall ? x : y};
    return vertex;
}

static oj_status add_ends_of_segment(struct geos_splitting *splitting,
                                     const struct segment *s)
{
    struct geos_split_work *work = splitting->work;
    if (!is_segment_near(splitting, s))
        return OJ_OK;
    OJ_ROOM(work->vertex, work->n_vertices, work->n_vertices + 2,
            work->cap_vertex, splitting->err);
    work->vertex[work->n_vertices++] = make_vertex(splitting, s->ax, s->ay);
    work->vertex[work->n_vertices++] = make_vertex(splitting, s->bx, s->by);
    return OJ_OK;
}

static void sort_vertices(struct geos_split_work *work)
{
    int64_t n = 0;
    if (work->n_vertices > 0)
        qsort(work->vertex, (size_t)work->n_vertices, sizeof *work->vertex,
              compare_vertices);
    for (int64_t i = 0; i < work->n_vertices; i++)
    {
        if (n == 0 ||
            compare_vertices(&work->vertex[n - 1], &work->vertex[i]) != 0)
            work->vertex[n++] = work->vertex[i];
    }
    work->n_vertices = n;
}

/* ---- pieces -------------------------------------------------------------- */

static oj_status add_piece_of_segment(struct geos_splitting *splitting,
                                      const struct segment *s, double ax,
                                      double ay, double bx, double by)
{
    struct geos_split_work *work = splitting->work;
    const struct geos_split_piece piece = {ax,      ay, bx,      by,
                                           s->side, 0,  s->part, s->ring};
    OJ_ROOM(work->piece, work->n_pieces, work->n_pieces + 1, work->cap_piece,
            splitting->err);
    work->piece[work->n_pieces++] = piece;
    return OJ_OK;
}

/* Returns the index of a vertex, which must be among the sorted ones. */
static int64_t find_vertex(const struct geos_split_work *work,
                           struct geos_split_vertex vertex)
{
    const struct geos_split_vertex *at =
        bsearch(&vertex, work->vertex, (size_t)work->n_vertices,
                sizeof *work->vertex, compare_vertices);
    return at - work->vertex;
}

/* Adds the pieces between the vertices on a segment. In the sorted list these
 * vertices are in the direction of the segment or in reverse, because it is
 * sorted along u, then along v. */
static oj_status add_pieces_between_vertices(struct geos_splitting *splitting,
                                             const struct segment *s)
{
    const struct geos_split_work *work = splitting->work;
    const int64_t first =
        find_vertex(work, make_vertex(splitting, s->ax, s->ay));
    const int64_t last =
        find_vertex(work, make_vertex(splitting, s->bx, s->by));
    const int64_t step = first < last ? 1 : -1;
    double x = s->ax, y = s->ay;
    for (int64_t i = first + step; i != last; i += step)
    {
        const struct geos_split_vertex at = work->vertex[i];
        const double next_x = splitting->is_tall ? at.v : at.u;
        const double next_y = splitting->is_tall ? at.u : at.v;
        if (!oj_on_segment(next_x, next_y, s->ax, s->ay, s->bx, s->by))
            continue;
        OJ_TRY(add_piece_of_segment(splitting, s, x, y, next_x, next_y));
        x = next_x;
        y = next_y;
    }
    return add_piece_of_segment(splitting, s, x, y, s->bx, s->by);
}

/* Adds the pieces of a segment. Outside of the other feature's box, a segment
 * of a polygon is added whole, and one of a line is left out. */
static oj_status add_pieces_of_segment(struct geos_splitting *splitting,
                                       const struct segment *s)
{
    if (is_segment_near(splitting, s))
        return add_pieces_between_vertices(splitting, s);
    if (splitting->side[s->side].kind == OJ_PART_POLYGON)
        return add_piece_of_segment(splitting, s, s->ax, s->ay, s->bx, s->by);
    return OJ_OK;
}

/* Sets is_repeated of the pieces of lines that equal an earlier piece of their
 * feature. Sets *n_equal to the number of pieces that equal another one. */
static oj_status mark_repeated_pieces(struct geos_splitting *splitting,
                                      int64_t *n_equal)
{
    struct geos_split_work *work = splitting->work;
    int64_t n = 0;
    *n_equal = 0;
    OJ_ROOM(work->sorted, 0, work->n_pieces, work->cap_sorted, splitting->err);
    for (int64_t i = 0; i < work->n_pieces; i++)
    {
        struct geos_split_piece *piece = &work->piece[i];
        if (piece->ax != piece->bx || piece->ay != piece->by)
            work->sorted[n++] = piece;
    }
    if (n > 0)
        qsort(work->sorted, (size_t)n, sizeof *work->sorted, compare_pieces);
    for (int64_t i = 1; i < n; i++)
    {
        struct geos_split_piece *piece = work->sorted[i];
        if (compare_ends(work->sorted[i - 1], piece) != 0)
            continue;
        ++*n_equal;
        piece->is_repeated = work->sorted[i - 1]->side == piece->side &&
                             splitting->side[piece->side].kind == OJ_PART_LINE;
    }
    return OJ_OK;
}

/* ---- the split features -------------------------------------------------- */

/* Begins a part, or a ring of a polygon, with the start of the piece, unless
 * the piece continues the last one. */
static oj_status begin_chain_if_needed(struct geos_splitting *splitting,
                                       const struct geos_split_piece *piece,
                                       const struct geos_split_piece *last)
{
    struct oj_flat_buf *to = &splitting->work->split;
    const enum oj_part_kind kind =
        (enum oj_part_kind)splitting->side[piece->side].kind;
    double *x, *y;
    if (last != NULL && last->ring == piece->ring && last->bx == piece->ax &&
        last->by == piece->ay)
        return OJ_OK;
    if (last == NULL || kind == OJ_PART_LINE || last->part != piece->part)
        OJ_TRY(oj_flat_buf_begin_part(to, kind, splitting->err));
    OJ_TRY(oj_flat_buf_begin_ring(to, splitting->err));
    OJ_TRY(oj_flat_buf_add_vertices(to, 1, &x, &y, splitting->err));
    *x = piece->ax;
    *y = piece->ay;
    return OJ_OK;
}

static oj_status add_split_feature(struct geos_splitting *splitting, int side,
                                   int *has_pieces)
{
    struct geos_split_work *work = splitting->work;
    const struct geos_split_piece *last = NULL;
    OJ_TRY(oj_flat_buf_begin_feature(&work->split, side, splitting->err));
    for (int64_t i = 0; i < work->n_pieces; i++)
    {
        const struct geos_split_piece *piece = &work->piece[i];
        double *x, *y;
        if (piece->side != side || piece->is_repeated)
            continue;
        OJ_TRY(begin_chain_if_needed(splitting, piece, last));
        OJ_TRY(
            oj_flat_buf_add_vertices(&work->split, 1, &x, &y, splitting->err));
        *x = piece->bx;
        *y = piece->by;
        last = piece;
    }
    *has_pieces = last != NULL;
    return oj_flat_buf_end_feature(&work->split, splitting->err);
}

static struct oj_box box_of_side(const struct geos_split_side *side)
{
    int64_t first, end;
    oj_flat_vertex_range(side->flat, side->feature, &first, &end);
    return oj_box_of_points(side->flat->x + first, side->flat->y + first,
                            end - first);
}

oj_status geos_split_segments(struct geos_split_work *work,
                              const struct geos_split_side side[2],
                              int *is_split, struct oj_error *err)
{
    struct geos_splitting splitting = {
        work, side, {box_of_side(&side[0]), box_of_side(&side[1])}, 0, err};
    struct oj_box all = splitting.box[0];
    int64_t n_equal;
    int has_first, has_second;
    oj_box_add_box(&all, &splitting.box[1]);
    splitting.is_tall = all.y1 - all.y0 > all.x1 - all.x0;
    work->n_vertices = work->n_pieces = 0;
    *is_split = 0;
    for (int i = 0; i < 2; i++)
        OJ_TRY(visit_segments(&splitting, i, add_ends_of_segment));
    sort_vertices(work);
    for (int i = 0; i < 2; i++)
        OJ_TRY(visit_segments(&splitting, i, add_pieces_of_segment));
    OJ_TRY(mark_repeated_pieces(&splitting, &n_equal));
    if (n_equal == 0)
        return OJ_OK;
    oj_flat_buf_clear(&work->split);
    OJ_TRY(add_split_feature(&splitting, 0, &has_first));
    OJ_TRY(add_split_feature(&splitting, 1, &has_second));
    *is_split = has_first && has_second;
    return OJ_OK;
}
