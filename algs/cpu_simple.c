#include "cpu_simple.h"

#include "kernels/oj_cross.h"

#include <stdatomic.h>

/* Without cells every pair of edges is tested. */
#define MOST_VERTICES_BY_PAIRS 96

/* Every ring is located in the rings around it; more are GEOS's. */
#define MOST_RINGS 256

/* The vertices that follow the first and the last of a ring's edges, for the
 * pair of edges that share the ring's ends. */
static int is_closing_pair(const struct oj_shape *shape, int64_t first,
                           int64_t last)
{
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, v = oj_shape_ring(shape, r, &n);
        v -= shape->first_vertex;
        if (first == v)
            return last == v + n - 2;
    }
    return 0;
}

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

/* Edges p -> s and s -> q of a ring: 1 when s is all they share. */
static int share_only(double px, double py, double sx, double sy, double qx,
                      double qy)
{
    if ((px == sx && py == sy) || (qx == sx && qy == sy))
        return 0;
    return oj_orientation(px, py, sx, sy, qx, qy) != 0 ||
           compare(px, sx) != compare(qx, sx) ||
           compare(py, sy) != compare(qy, sy);
}

/* Edges that start at vertices i < j of the shape: 1 when they are apart, or
 * neighbours that share their common end only. */
static int is_fine(const struct oj_shape *shape, int64_t i, int64_t j)
{
    const double *x = shape->flat->x + shape->first_vertex;
    const double *y = shape->flat->y + shape->first_vertex;
    if (j == i + 1)
        return share_only(x[i], y[i], x[j], y[j], x[j + 1], y[j + 1]);
    if (!oj_segment_boxes_meet(x[i], y[i], x[i + 1], y[i + 1], x[j], y[j],
                               x[j + 1], y[j + 1]))
        return 1;
    if (x[i] == x[j + 1] && y[i] == y[j + 1] && is_closing_pair(shape, i, j))
        return share_only(x[j], y[j], x[i], y[i], x[i + 1], y[i + 1]);
    return oj_segments_contact(x[i], y[i], x[i + 1], y[i + 1], x[j], y[j],
                               x[j + 1], y[j + 1]) == OJ_APART;
}

static int cell_is_fine(const struct oj_shape *shape, const struct oj_cells *c,
                        int64_t cell)
{
    for (uint32_t i = c->first_entry[cell]; i < c->first_entry[cell + 1]; i++)
    {
        for (uint32_t k = c->first_entry[cell]; k < i; k++)
        {
            int64_t a = c->entry[k] >> 1, b = c->entry[i] >> 1;
            if (!is_fine(shape, a < b ? a : b, a < b ? b : a))
                return 0;
        }
    }
    return 1;
}

/* No two edges meet but neighbours in their common end. */
static int edges_are_fine(const struct oj_shape *shape)
{
    const struct oj_cells *c =
        atomic_load_explicit(&shape->cells, memory_order_acquire);
    int64_t budget = 10000 + 64 * shape->n_vertices;
    if (c != NULL)
    {
        int64_t n_cells = (int64_t)c->nx * c->ny;
        for (int64_t cell = 0; cell < n_cells; cell++)
        {
            int64_t n = c->first_entry[cell + 1] - c->first_entry[cell];
            budget -= n * n / 2;
            if (budget < 0 || !cell_is_fine(shape, c, cell))
                return 0;
        }
        return 1;
    }
    if (shape->n_vertices > MOST_VERTICES_BY_PAIRS)
        return 0;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring(shape, r, &n) - shape->first_vertex;
        for (int64_t i = first; i + 1 < first + n; i++)
        {
            for (int64_t q = 0; q <= r; q++)
            {
                int64_t n_other,
                    k = oj_shape_ring(shape, q, &n_other) - shape->first_vertex;
                for (; k < i && k + 1 < shape->n_vertices; k++)
                {
                    if (--n_other == 0)
                        break;
                    if (!is_fine(shape, k, i))
                        return 0;
                }
            }
        }
    }
    return 1;
}

struct nest
{
    int64_t first, n;
    struct oj_box box;
    int shell;    /* of its part: into the list */
    int n_around; /* rings around it */
};

/* 1 when ring inner, which meets no other, lies in ring outer. */
static int is_around(const struct oj_shape *shape, const struct nest *outer,
                     const struct nest *inner)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    return oj_box_covers(&outer->box, &inner->box) &&
           oj_ring_locate(x[inner->first], y[inner->first], x + outer->first,
                          y + outer->first, outer->n) == OJ_INSIDE;
}

static void list_rings(const struct oj_shape *shape, struct nest *ring)
{
    const struct oj_flat *flat = shape->flat;
    int n = 0;
    for (int64_t p = 0; p < shape->n_parts; p++)
    {
        int64_t first = flat->ring_offset[shape->first_part + p];
        int64_t end = flat->ring_offset[shape->first_part + p + 1];
        int shell = n;
        for (int64_t r = first; r < end; r++)
        {
            struct nest *at = &ring[n++];
            at->first = flat->vertex_offset[r];
            at->n = flat->vertex_offset[r + 1] - at->first;
            at->shell = shell;
            at->n_around = 0;
            at->box = oj_box_empty();
            for (int64_t v = at->first; v < at->first + at->n; v++)
                oj_box_add_point(&at->box, flat->x[v], flat->y[v]);
        }
    }
}

/* Rings that do not meet: shells lie in as many shells as holes, and each hole
 * in its shell and else only in what its shell is in. */
static int rings_are_nested(const struct oj_shape *shape)
{
    struct nest ring[MOST_RINGS];
    int n = shape->n_rings;
    if (n == 1)
        return 1;
    if (n > MOST_RINGS)
        return 0;
    list_rings(shape, ring);
    for (int i = 0; i < n; i++)
    {
        int shell_is_around = 0;
        for (int k = 0; k < n; k++)
        {
            int around = k != i && is_around(shape, &ring[k], &ring[i]);
            ring[i].n_around += around;
            shell_is_around |= around && k == ring[i].shell;
        }
        if (ring[i].shell == i
                ? ring[i].n_around % 2 != 0
                : !shell_is_around ||
                      ring[i].n_around != ring[ring[i].shell].n_around + 1)
            return 0;
    }
    return 1;
}

/* Lines of two vertices that differ, or more. */
static int lines_are_valid(const struct oj_shape *shape)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, v = oj_shape_ring(shape, r, &n);
        if (n < 2 || (x[v] == x[v + 1] && y[v] == y[v + 1]))
            return 0;
    }
    return 1;
}

int oj_shape_is_surely_valid(const struct oj_shape *shape)
{
    if (shape->kinds == OJ_PART_POINT)
        return 1;
    if (shape->kinds == OJ_PART_LINE)
        return lines_are_valid(shape);
    if (shape->kinds != OJ_PART_POLYGON)
        return 0;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n;
        oj_shape_ring(shape, r, &n);
        if (n < 4)
            return 0;
    }
    return edges_are_fine(shape) && rings_are_nested(shape);
}
