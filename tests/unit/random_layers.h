/** Random layers for tests of engines: many ties, points on vertices and edges,
 * shared borders, invalid polygons, slivers, outliers, copies, and rings large
 * enough for grids. Include once, after references.h. */
#ifndef RANDOM_LAYERS_H
#define RANDOM_LAYERS_H

#include "../../flatten/base/oj_alloc.h"
#include "random_rings.h"
#include "references.h"

/* The coordinates of a round. Positions are in steps. */
struct scene
{
    /* position of step 0, and size of a step, in CRS units */
    double origin_x, origin_y, scale;
    int extent;     /* steps */
    int on_lattice; /* 0: also coordinates between steps */
    double outlier; /* distance of a few outlying features, in steps */
};

static inline struct scene pick_scene(void)
{
    static const double scales[] = {1.0, 1e-7, 1e7, 0.1, 32.0, 1.0 / 3};
    static const double origins[] = {0.0, 0.0, 1e7, -1e-7, 987654.321};
    static const int extents[] = {4, 8, 20, 200, 5000};
    struct scene s;
    s.scale = pick(2) ? 1.0 : scales[pick(6)];
    s.origin_x = origins[pick(5)];
    s.origin_y = origins[pick(5)];
    s.extent = extents[pick(5)];
    s.on_lattice = pick(3) > 0;
    s.outlier = one_in(3) ? 1e6 * s.extent : 0.0;
    return s;
}

static inline double place_x(const struct scene *s, double steps)
{
    return s->origin_x + s->scale * steps;
}

static inline double place_y(const struct scene *s, double steps)
{
    return s->origin_y + s->scale * steps;
}

/* Returns a step near middle. */
static inline double near_step(const struct scene *s, double middle, int reach)
{
    double v = middle + pick(2 * reach + 1) - reach;
    return s->on_lattice ? v : v + unit() - 0.5;
}

static inline void put(const struct scene *s, double *xy, int64_t i, double x,
                       double y)
{
    xy[2 * i] = place_x(s, x);
    xy[2 * i + 1] = place_y(s, y);
}

/* --- shapes around a middle m[2] ------------------------------------------ */

static inline void add_star(struct oj_flat_buf *buf, const struct scene *s,
                            const double *m, double reach)
{
    double xy[2 * 40];
    int n = 3 + pick(30);
    for (int i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * i / n;
        double r = reach * (0.3 + 0.7 * unit());
        double x = m[0] + r * cos(angle), y = m[1] + r * sin(angle);
        put(s, xy, i, s->on_lattice ? rint(x) : x, s->on_lattice ? rint(y) : y);
    }
    xy[2 * n] = xy[0];
    xy[2 * n + 1] = xy[1];
    add_ring(buf, n + 1, xy);
}

static inline void add_box(struct oj_flat_buf *buf, const struct scene *s,
                           const double *m, double width, double height)
{
    double xy[10];
    int first = pick(4), turn = pick(2) ? 1 : 3;
    for (int i = 0; i < 5; i++)
    {
        int corner = (first + i * turn) % 4;
        put(s, xy, i, m[0] + (corner == 1 || corner == 2 ? width : 0.0),
            m[1] + (corner >= 2 ? height : 0.0));
    }
    add_ring(buf, 5, xy);
}

/* Adds a ring of random vertices. It crosses itself, repeats vertices, or has
 * no area. */
static inline void add_wild(struct oj_flat_buf *buf, const struct scene *s,
                            const double *m, int reach)
{
    double xy[2 * 10];
    int n = 3 + pick(6);
    for (int i = 0; i < n; i++)
        put(s, xy, i, near_step(s, m[0], reach), near_step(s, m[1], reach));
    xy[2 * n] = xy[0];
    xy[2 * n + 1] = xy[1];
    add_ring(buf, n + 1, xy);
}

/* Adds a ring of at least 64 vertices, enough for a grid of its edges
 * (edge_grid.c). */
static inline void add_large(struct oj_flat_buf *buf, const struct scene *s,
                             const double *m, double reach)
{
    static struct test_ring ring;
    static double xy[2 * RING_CAPACITY];
    double size = 1.0;
    ring_make(&ring, (enum ring_kind)pick(RING_N_KINDS), 64 + pick(200));
    for (int64_t i = 0; i < ring.n; i++)
        size = fmax(size, fmax(fabs(ring.x[i]), fabs(ring.y[i])));
    for (int64_t i = 0; i < ring.n; i++)
    {
        double x = m[0] + ring.x[i] * (reach / size);
        double y = m[1] + ring.y[i] * (reach / size);
        put(s, xy, i, s->on_lattice ? rint(x) : x, s->on_lattice ? rint(y) : y);
    }
    add_ring(buf, ring.n, xy);
}

static inline void add_sliver(struct oj_flat_buf *buf, const struct scene *s,
                              const double *m)
{
    double xy[8], dx = near_step(s, 0, 9), dy = near_step(s, 0, 9);
    put(s, xy, 0, m[0], m[1]);
    put(s, xy, 1, m[0] + dx, m[1] + dy);
    put(s, xy, 2, m[0] + dx / 2, m[1] + dy / 2);
    xy[4] = nudge(xy[4], 3);
    xy[5] = nudge(xy[5], 3);
    xy[6] = xy[0];
    xy[7] = xy[1];
    add_ring(buf, 4, xy);
}

static inline void add_some_ring(struct oj_flat_buf *buf, const struct scene *s,
                                 const double *m, int reach)
{
    double corner[2] = {m[0] - reach, m[1] - reach};
    switch (pick(12))
    {
        case 0:
        case 1:
        case 2:
        case 3:
            add_box(buf, s, corner, 2 * reach, 2 * reach);
            return;
        case 4:
            add_wild(buf, s, m, reach);
            return;
        case 5:
            add_large(buf, s, m, 2.0 * reach);
            return;
        case 6:
            add_sliver(buf, s, m);
            return;
        default:
            add_star(buf, s, m, reach);
            return;
    }
}

static inline void add_some_polygon(struct oj_flat_buf *buf,
                                    const struct scene *s, const double *m)
{
    int reach = one_in(12) ? s->extent : 1 + pick(6);
    double hole[2] = {m[0], m[1]};
    add_part(buf, OJ_PART_POLYGON);
    add_some_ring(buf, s, m, reach);
    for (int n = pick(3) ? 0 : 1 + pick(3); n > 0; n--)
    {
        if (one_in(4)) /* the hole crosses the shell, or lies outside of it */
            hole[0] += pick(2 * reach + 1) - reach;
        add_some_ring(buf, s, hole, 1 + pick(reach));
    }
    if (one_in(6)) /* an island in the hole, as another part */
    {
        add_part(buf, OJ_PART_POLYGON);
        add_box(buf, s, m, 1.0, 1.0);
    }
}

static inline void add_some_line(struct oj_flat_buf *buf, const struct scene *s,
                                 const double *m)
{
    double xy[2 * 20], x = m[0], y = m[1];
    int n = 2 + pick(10), reach = 1 + pick(4);
    add_part(buf, OJ_PART_LINE);
    if (one_in(8)) /* long and diagonal, across all other features */
    {
        put(s, xy, 0, near_step(s, 0, 3), near_step(s, 0, s->extent));
        put(s, xy, 1, near_step(s, s->extent, 3), near_step(s, 0, s->extent));
        add_ring(buf, 2, xy);
        return;
    }
    for (int i = 0; i < n; i++)
    {
        put(s, xy, i, x, y);
        if (one_in(6)) /* the next vertex repeats this one */
            continue;
        x = near_step(s, x, pick(3) ? reach : 0);
        y = near_step(s, y, pick(3) ? reach : 0);
    }
    add_ring(buf, n, xy);
}

static inline void add_some_part(struct oj_flat_buf *buf, const struct scene *s,
                                 const double *m, unsigned kind)
{
    double xy[2];
    if (kind == OJ_PART_POLYGON)
        add_some_polygon(buf, s, m);
    else if (kind == OJ_PART_LINE)
        add_some_line(buf, s, m);
    else
    {
        put(s, xy, 0, near_step(s, m[0], 2), near_step(s, m[1], 2));
        add_part(buf, OJ_PART_POINT);
        add_ring(buf, 1, xy);
    }
}

/* --- layers ----------------------------------------------------------------
 */

static inline unsigned pick_kind(unsigned kinds)
{
    unsigned kind;
    do
        kind = 1u << pick(3);
    while ((kinds & kind) == 0);
    return kind;
}

/* Adds a part with fewer vertices than GEOS accepts: a ring of three, or a line
 * of one. */
static inline void add_too_few(struct oj_flat_buf *buf, const struct scene *s,
                               const double *m, unsigned kinds)
{
    double xy[6];
    put(s, xy, 0, m[0], m[1]);
    put(s, xy, 1, m[0] + 1.0, m[1] + 2.0);
    put(s, xy, 2, m[0], m[1]);
    add_part(buf, kinds & OJ_PART_POLYGON ? OJ_PART_POLYGON : OJ_PART_LINE);
    add_ring(buf, kinds & OJ_PART_POLYGON ? 3 : 1, xy);
}

/* Adds n features of some kinds, a combination of enum oj_part_kind. Points are
 * sometimes in the short form. with_too_few 1: some parts have too few
 * vertices. FIDs are ordinals. */
static inline void add_join_features(struct oj_flat_buf *buf,
                                     const struct scene *s, int n,
                                     unsigned kinds, int with_too_few)
{
    double same[2] = {pick(s->extent), pick(s->extent)};
    int n_same = one_in(6) ? 1 + pick(400) : 0;
    int is_short = kinds == OJ_PART_POINT && pick(2);
    for (int i = 0; i < n + n_same; i++)
    {
        double m[2] = {pick(s->extent), pick(s->extent)};
        if (one_in(25))
        {
            must(oj_flat_buf_add_null(buf, buf->n_features, &error));
            continue;
        }
        if (i > 0 && one_in(15) && buf->long_form)
        {
            LAYER copy = {0};
            struct oj_flat view = oj_flat_buf_view(buf);
            must(oj_flat_buf_copy(&copy, &view, pick((int)view.n_features), 0,
                                  &error));
            view = oj_flat_buf_view(&copy);
            must(oj_flat_buf_copy(buf, &view, 0, buf->n_features, &error));
            continue;
        }
        if (is_short)
        {
            double *at = i < n ? m : same;
            add_point(buf, place_x(s, near_step(s, at[0], 0)),
                      place_y(s, near_step(s, at[1], 0)));
            continue;
        }
        begin(buf);
        if (i >= n) /* identical points, or parts around one place */
            add_some_part(buf, s, same, pick_kind(kinds));
        else
        {
            if (s->outlier > 0.0 && one_in(40))
                m[pick(2)] += pick(2) ? s->outlier : -s->outlier;
            for (int p = one_in(5) ? 1 + pick(4) : 1; p > 0; p--)
            {
                add_some_part(buf, s, m, pick_kind(kinds));
                m[0] += pick(5) - 2;
            }
            if (with_too_few && one_in(15))
                add_too_few(buf, s, m, kinds);
        }
        end(buf);
    }
}

/* Stores a place on, at or beside the vertices and edges of the join layer in
 * *x and *y. */
static inline void pick_beside(const struct oj_flat *join, double *x, double *y)
{
    int n = (int)join->n_vertices;
    int64_t i = pick(n), j = i + 1 < n && pick(2) ? i + 1 : pick(n);
    double t = one_in(3) ? 0.5 : unit();
    t = one_in(3) ? 0.0 : t;
    *x = join->x[i] + t * (join->x[j] - join->x[i]);
    *y = join->y[i] + t * (join->y[j] - join->y[i]);
    if (one_in(5))
        *y = join->y[pick(n)];
    if (one_in(4))
    {
        *x = nudge(*x, 2);
        *y = nudge(*y, 2);
    }
}

static inline void pick_input_place(const struct scene *s,
                                    const struct oj_flat *join, double *x,
                                    double *y)
{
    double u = near_step(s, pick(s->extent), 3);
    double v = near_step(s, pick(s->extent), 3);
    if (join->n_vertices > 0 && pick(3) == 0)
    {
        pick_beside(join, x, y);
        return;
    }
    if (s->outlier > 0.0 && one_in(40))
        u += pick(2) ? s->outlier : -s->outlier;
    if (one_in(8)) /* halfway between steps: ties */
        u += 0.5;
    *x = place_x(s, u);
    *y = place_y(s, v);
}

/* Adds n points, or with_multi 1: points and multipoints. FIDs are ordinals. */
static inline void add_input_points(struct oj_flat_buf *buf,
                                    const struct scene *s,
                                    const struct oj_flat *join, int n,
                                    int with_multi)
{
    double same[2];
    pick_input_place(s, join, &same[0], &same[1]);
    for (int i = 0; i < n; i++)
    {
        double xy[2];
        pick_input_place(s, join, &xy[0], &xy[1]);
        if (one_in(30))
            add_point(buf, pick(2) ? NAN : INFINITY, pick(2) ? NAN : 1.0);
        else if (one_in(60))
            must(oj_flat_buf_add_null(buf, buf->n_features, &error));
        else if (with_multi && one_in(4))
        {
            begin(buf);
            for (int p = 1 + pick(4); p > 0; p--)
            {
                add_part(buf, OJ_PART_POINT);
                add_ring(buf, 1, xy);
                pick_input_place(s, join, &xy[0], &xy[1]);
            }
            end(buf);
        }
        else if (one_in(4))
            add_point(buf, same[0], same[1]);
        else
            add_point(buf, xy[0], xy[1]);
    }
}

/* Returns random FIDs for n features: the ordinals, descending, shuffled or
 * each one twice; or NULL: a layer without FIDs. */
static inline int64_t *pick_fids(int64_t n)
{
    int64_t *fid = oj_malloc(n, sizeof *fid);
    int kind = pick(5);
    ck_assert_ptr_nonnull(fid);
    for (int64_t i = 0; i < n; i++)
        fid[i] = kind == 1 ? 1000 - i : kind == 2 ? i / 2 : i;
    for (int64_t i = n - 1; kind == 3 && i > 0; i--)
    {
        int64_t j = pick((int)i + 1), moved = fid[i];
        fid[i] = fid[j];
        fid[j] = moved;
    }
    if (kind == 4)
    {
        oj_free(fid);
        return NULL;
    }
    return fid;
}

#endif
