#include "ellipsoid_cut_edges.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"

#include <string.h>

#define RINGS_AT_ONCE 256

/* Edges whose ends differ by no more than this, in degrees of longitude and of
 * latitude, are shorter than OJ_ELLIPSOID_LONGEST_EDGE, 1 / 32. The way along a
 * meridian and a circle of latitude, whose radii are at most R <= 1.041, is at
 * most 2 x .8 x .01746 x 1.041 < 1 / 32. */
#define SHORT_DEGREES 0.8

struct cut_edges_work
{
    const struct oj_geodesic *geodesic;
    const struct oj_flat *from;
    double most; /* greatest length of a piece, in metres */
    struct oj_cut_edges *cut;
};

static int is_ring_cuttable(const struct oj_flat *flat, int64_t first,
                            int64_t end)
{
    for (int64_t v = first; v < end; v++)
    {
        if (!(fabs(flat->y[v]) <= 90.0 && flat->x[v] - flat->x[v] == 0.0))
            return 0;
    }
    return 1;
}

/* Returns 1 if the edge from vertex v on is cut from its other end on, so that
 * its pieces are equal in both directions. */
static int is_edge_cut_from_its_end(const struct oj_flat *flat, int64_t v)
{
    return flat->x[v + 1] < flat->x[v] ||
           (flat->x[v + 1] == flat->x[v] && flat->y[v + 1] < flat->y[v]);
}

/* Returns the number of pieces of the edge from vertex v on; sets *line if it
 * is more than one. */
static int64_t count_pieces_of_edge(const struct cut_edges_work *w, int64_t v,
                                    struct oj_geodesic_line *line)
{
    const double *x = w->from->x + v, *y = w->from->y + v;
    int turn = is_edge_cut_from_its_end(w->from, v);
    if (fabs(x[1] - x[0]) <= SHORT_DEGREES &&
        fabs(y[1] - y[0]) <= SHORT_DEGREES)
        return 1;
    oj_geodesic_line_make(w->geodesic, x[turn], y[turn], x[!turn], y[!turn],
                          line);
    return line->metres > w->most ? (int64_t)ceil(line->metres / w->most) : 1;
}

/* Counts the vertices of a ring whose edges are cut. */
static oj_status count_vertices_of_cut_ring(int64_t ring, int thread,
                                            void *user, struct oj_error *err)
{
    struct cut_edges_work *w = user;
    const int64_t *offset = w->from->vertex_offset;
    int64_t n = offset[ring + 1] - offset[ring];
    struct oj_geodesic_line line;
    (void)thread;
    (void)err;
    w->cut->vertex_offset[ring + 1] = n;
    if (!is_ring_cuttable(w->from, offset[ring], offset[ring + 1]))
        return OJ_OK;
    for (int64_t v = offset[ring]; v + 1 < offset[ring + 1]; v++)
        n += count_pieces_of_edge(w, v, &line) - 1;
    w->cut->vertex_offset[ring + 1] = n;
    return OJ_OK;
}

static oj_status fill_cut_ring(int64_t ring, int thread, void *user,
                               struct oj_error *err)
{
    struct cut_edges_work *w = user;
    const struct oj_flat *from = w->from;
    const int64_t *offset = from->vertex_offset;
    int64_t to = w->cut->vertex_offset[ring];
    int is_cut =
        w->cut->vertex_offset[ring + 1] - to > offset[ring + 1] - offset[ring];
    (void)thread;
    (void)err;
    for (int64_t v = offset[ring]; v < offset[ring + 1]; v++)
    {
        struct oj_geodesic_line line;
        int64_t n = is_cut && v + 1 < offset[ring + 1]
                        ? count_pieces_of_edge(w, v, &line)
                        : 1;
        w->cut->x[to] = from->x[v];
        w->cut->y[to++] = from->y[v];
        for (int64_t i = 1; i < n; i++, to++)
        {
            double piece =
                (double)(is_edge_cut_from_its_end(from, v) ? n - i : i);
            struct oj_geodesic_point at =
                oj_geodesic_line_at(&line, line.metres * (piece / (double)n));
            w->cut->x[to] = at.longitude;
            w->cut->y[to] = at.latitude;
        }
    }
    return OJ_OK;
}

static oj_status cut_edges_of_layer(struct cut_edges_work *w, int n_threads,
                                    struct oj_error *err)
{
    struct oj_cut_edges *cut = w->cut;
    int64_t n_rings = w->from->n_rings;
    OJ_NEW(cut->vertex_offset, n_rings + 1, err);
    cut->vertex_offset[0] = 0;
    OJ_TRY(oj_parallel_try(n_threads, n_rings, RINGS_AT_ONCE,
                           count_vertices_of_cut_ring, w, err));
    for (int64_t r = 0; r < n_rings; r++)
        cut->vertex_offset[r + 1] += cut->vertex_offset[r];
    cut->flat = *w->from;
    cut->flat.n_vertices = cut->vertex_offset[n_rings];
    if (cut->flat.n_vertices == w->from->n_vertices)
        return OJ_OK;
    OJ_NEW(cut->x, cut->flat.n_vertices, err);
    OJ_NEW(cut->y, cut->flat.n_vertices, err);
    cut->flat.vertex_offset = cut->vertex_offset;
    cut->flat.x = cut->x;
    cut->flat.y = cut->y;
    return oj_parallel_try(n_threads, n_rings, RINGS_AT_ONCE, fill_cut_ring, w,
                           err);
}

oj_status oj_cut_edges_make(const struct oj_geodesic *geodesic,
                            const struct oj_ellipsoid *ellipsoid,
                            const struct oj_flat *flat, int n_threads,
                            struct oj_cut_edges **out, struct oj_error *err)
{
    struct cut_edges_work w = {
        geodesic, flat, OJ_ELLIPSOID_LONGEST_EDGE * ellipsoid->semi_major,
        NULL};
    oj_status status;
    *out = NULL;
    OJ_NEW_ZEROED(w.cut, 1, err);
    status = cut_edges_of_layer(&w, n_threads, err);
    if (status != OJ_OK || w.cut->x == NULL)
        oj_cut_edges_free(w.cut);
    else
        *out = w.cut;
    return status;
}

void oj_cut_edges_free(struct oj_cut_edges *cut)
{
    if (cut == NULL)
        return;
    oj_free(cut->vertex_offset);
    oj_free(cut->x);
    oj_free(cut->y);
    oj_free(cut);
}
