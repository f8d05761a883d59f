/** Random geometries as WKT: every type of OGR, valid and invalid, on lattices
 * on which points, edges and whole parts often intersect. Include once. */
#ifndef RANDOM_WKT_H
#define RANDOM_WKT_H

#include "../assertions.h"
#include "../random_numbers.h"

#include <cpl_conv.h>
#include <ogr_api.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum wkt_type
{
    WKT_POINT = 0,
    WKT_LINESTRING,
    WKT_POLYGON,
    WKT_MULTIPOINT,
    WKT_MULTILINESTRING,
    WKT_MULTIPOLYGON,
    WKT_GEOMETRYCOLLECTION,
    WKT_CIRCULARSTRING,
    WKT_COMPOUNDCURVE,
    WKT_CURVEPOLYGON,
    WKT_MULTICURVE,
    WKT_MULTISURFACE,
    WKT_TIN,
    WKT_POLYHEDRALSURFACE,
    WKT_TRIANGLE,
    WKT_N_TYPES
};

static const char *const wkt_names[WKT_N_TYPES] = {"POINT",
                                                   "LINESTRING",
                                                   "POLYGON",
                                                   "MULTIPOINT",
                                                   "MULTILINESTRING",
                                                   "MULTIPOLYGON",
                                                   "GEOMETRYCOLLECTION",
                                                   "CIRCULARSTRING",
                                                   "COMPOUNDCURVE",
                                                   "CURVEPOLYGON",
                                                   "MULTICURVE",
                                                   "MULTISURFACE",
                                                   "TIN",
                                                   "POLYHEDRALSURFACE",
                                                   "TRIANGLE"};

/* ---- where lattice points lie ---------------------------------------------
 */

struct wkt_lattice
{
    int size; /* points are 0 .. size */
    double step, x, y;
    double cosine, sine;
    /* coordinates are i / 10, which is not i * 0.1 after rounding */
    int is_tenths;
    /* 1: some coordinates are not lattice values, but doubles next to one */
    int nudges;
    /* 1: some coordinates are NaN, infinite, or greater than joins accept */
    int is_odd;
    double flat; /* size of a step in y; a step in x is 1 */
    /* 1: some vertices lie on a segment between two others, as exactly as
     * rounding allows, or one double beside it */
    int is_near;
};

static inline struct wkt_lattice pick_lattice(void)
{
    static const double origins[] = {500000.0, 4.0e6, -1e9, 1e15, 1e-3};
    struct wkt_lattice l = {
        .size = 3 + pick(10), .step = 1.0, .cosine = 1.0, .flat = 1.0};
    switch (pick(9))
    {
        case 0:
            l.is_tenths = 1;
            break;
        case 1:
            l.step = between(0.01, 7.0);
            l.cosine = cos(l.step);
            l.sine = sin(l.step);
            break;
        case 2:
            l.step = pick(2) ? 1e-12 : between(0.5e-12, 2e-12);
            break;
        case 3:
            l.x = origins[pick(5)];
            l.y = origins[pick(5)];
            l.step = pick(2) ? 1.0 / 3.0 : 0.001;
            break;
        case 4: /* translated and rotated */
            l.x = between(-1e6, 1e6);
            l.y = between(-1e6, 1e6);
            l.step = between(0.1, 3.0);
            l.cosine = 0.6;
            l.sine = 0.8;
            break;
        case 5:
            l.step = ldexp(1.0 + unit(), pick(800) - 400);
            break;
        default:
            break;
    }
    l.nudges = one_in(6);
    l.is_odd = one_in(8);
    return l;
}

/* Makes a lattice on which shapes nearly touch: few places, vertices beside
 * edges, and flat shapes. Products or squares of the numbers nearly overflow or
 * underflow. */
static inline struct wkt_lattice pick_near_lattice(void)
{
    static const double steps[] = {1e-130, 1e-140, 1e-150, 1e-154,    1e-158,
                                   1e-162, 1e-170, 1e-300, 0x1p-1070, 1e148};
    static const double origins[] = {0.3, 1e7, 5e5, -1e-3};
    struct wkt_lattice l = {.size = 2 + pick(4),
                            .step = 1.0,
                            .cosine = 1.0,
                            .flat = 1.0,
                            .is_near = 1};
    switch (pick(5))
    {
        case 0:
            l.step = steps[pick(10)] * (pick(2) ? 1.0 : between(0.5, 1.0));
            break;
        case 1:
            l.x = origins[pick(4)];
            l.y = origins[pick(4)];
            l.step = pick(2) ? 1.0 / 3.0 : 1e-7;
            break;
        case 2:
            l.cosine = 0.6;
            l.sine = 0.8;
            l.step = between(0.1, 3.0);
            break;
        default:
            l.is_tenths = 1;
            break;
    }
    if (one_in(4))
        l.flat = pick(2) ? 1e-15 : 1e-9;
    l.nudges = pick(2);
    return l;
}

static inline double odd_coordinate(void)
{
    static const double odd[] = {INFINITY, -INFINITY, 1e308, -1.797e308,
                                 1e150,    -1e149,    2e150, -0.0,
                                 1e-300,   5e-324};
    int which = pick(14);
    return which < 10 ? odd[which] : NAN;
}

struct vertex
{
    double x, y, z, m;
};

static inline struct vertex vertex_at(const struct wkt_lattice *l, int i, int j)
{
    double u = l->is_tenths ? i / 10.0 : i * l->step;
    double v = (l->is_tenths ? j / 10.0 : j * l->step) * l->flat;
    struct vertex out = {l->x + (l->cosine * u - l->sine * v),
                         l->y + (l->sine * u + l->cosine * v), i - j, 7 * i};
    if (l->nudges && one_in(6))
        out.x = nudge(out.x, 2);
    if (l->nudges && one_in(6))
        out.y = nudge(out.y, 2);
    if (l->is_odd && one_in(40))
        *(pick(2) ? &out.x : &out.y) = odd_coordinate();
    return out;
}

static inline struct vertex lattice_vertex(const struct wkt_lattice *l)
{
    int i = pick(l->size + 1);
    return vertex_at(l, i, pick(l->size + 1));
}

static inline struct vertex any_vertex(const struct wkt_lattice *l)
{
    struct vertex a = lattice_vertex(l), b;
    double share = pick(2) ? unit() : pick(4) / 3.0;
    if (!l->is_near || !one_in(3))
        return a;
    b = lattice_vertex(l);
    a.x += share * (b.x - a.x);
    a.y += share * (b.y - a.y);
    if (one_in(3))
        a.x = nudge(a.x, 1);
    if (one_in(3))
        a.y = nudge(a.y, 1);
    return a;
}

/* ---- text -----------------------------------------------------------------
 */

enum
{
    WKT_MOST_VERTICES = 100,
    WKT_MOST_TEXT = 1 << 18
};

/* State of the writer of a geometry. */
struct pen
{
    struct wkt_lattice lattice;
    int has_z, has_m;
    size_t used;
    char text[WKT_MOST_TEXT];
};

__attribute__((format(printf, 2, 3))) static inline void
put(struct pen *pen, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pen->used += (size_t)vsnprintf(
        pen->text + pen->used, sizeof pen->text - pen->used, format, arguments);
    va_end(arguments);
    ck_assert_uint_lt(pen->used, sizeof pen->text);
}

/* Writes a number such that OGR reads it back: NaN with a sign, and infinity as
 * a number beyond all doubles. */
static inline void put_number(struct pen *pen, double v)
{
    if (isnan(v))
        put(pen, "-nan");
    else if (isinf(v))
        put(pen, v > 0.0 ? "1e999" : "-1e999");
    else
        put(pen, "%.17g", v);
}

static inline void put_vertices(struct pen *pen, const struct vertex *v, int n)
{
    for (int i = 0; i < n; i++)
    {
        put(pen, i == 0 ? "(" : ",");
        put_number(pen, v[i].x);
        put(pen, " ");
        put_number(pen, v[i].y);
        if (pen->has_z)
            put(pen, " %g", v[i].z);
        if (pen->has_m)
            put(pen, " %g", v[i].m);
    }
    put(pen, ")");
}

static inline void put_type(struct pen *pen, enum wkt_type type)
{
    static const char *const dimensions[] = {"", " M", " Z", " ZM"};
    put(pen, "%s%s ", wkt_names[type], dimensions[2 * pen->has_z + pen->has_m]);
}

/* ---- rings ----------------------------------------------------------------
 */

struct wkt_ring
{
    int n;
    struct vertex v[WKT_MOST_VERTICES];
};

static inline void add_vertex(struct wkt_ring *ring, struct vertex v)
{
    ck_assert_int_lt(ring->n, WKT_MOST_VERTICES);
    ring->v[ring->n++] = v;
}

static inline void add_corner(struct wkt_ring *ring,
                              const struct wkt_lattice *l, int i, int j)
{
    add_vertex(ring, vertex_at(l, i, j));
}

/* A box of the lattice: its lower left corner, its width and its height. */
struct lattice_box
{
    int i, j, width, height;
};

static inline struct lattice_box any_frame(const struct wkt_lattice *l)
{
    struct lattice_box f;
    f.i = pick(l->size);
    f.j = pick(l->size);
    f.width = 1 + pick(l->size - f.i);
    f.height = 1 + pick(l->size - f.j);
    return f;
}

static inline void add_box(struct wkt_ring *ring, const struct wkt_lattice *l,
                           const struct lattice_box *f)
{
    int first = pick(4), turn = pick(2) ? 1 : 3;
    for (int c = 0; c < 4; c++)
    {
        int corner = (first + c * turn) % 4;
        add_corner(ring, l, f->i + (corner == 1 || corner == 2 ? f->width : 0),
                   f->j + (corner >= 2 ? f->height : 0));
    }
}

static inline void add_any(struct wkt_ring *ring, const struct wkt_lattice *l,
                           int n)
{
    while (n-- > 0)
        add_vertex(ring, any_vertex(l));
}

/* Adds a star around the middle of the frame. On a coarse lattice, its ring may
 * cross itself. */
static inline void add_star(struct wkt_ring *ring, const struct wkt_lattice *l,
                            const struct lattice_box *f)
{
    int n = 5 + pick(40);
    for (int k = 0; k < n; k++)
    {
        double angle = 6.283185307179586 * k / n, r = between(0.4, 1.0);
        add_corner(ring, l,
                   f->i + (int)rint(0.5 * f->width * (1.0 + r * cos(angle))),
                   f->j + (int)rint(0.5 * f->height * (1.0 + r * sin(angle))));
    }
}

static inline void close_ring(struct wkt_ring *ring)
{
    add_vertex(ring, ring->v[0]);
}

static inline void make_ring(struct wkt_ring *ring, const struct wkt_lattice *l,
                             const struct lattice_box *f)
{
    ring->n = 0;
    switch (pick(16))
    {
        case 0:
            add_any(ring, l, 3 + pick(6));
            break;
        case 1: /* a bow tie */
            add_corner(ring, l, f->i, f->j);
            add_corner(ring, l, f->i + f->width, f->j + f->height);
            add_corner(ring, l, f->i + f->width, f->j);
            add_corner(ring, l, f->i, f->j + f->height);
            break;
        case 2: /* there and back: no area */
            add_any(ring, l, 2 + pick(2));
            if (ring->n == 3)
                add_vertex(ring, ring->v[1]);
            break;
        case 3: /* all vertices in one point */
            add_any(ring, l, 1);
            for (int n = pick(4); n > 0; n--)
                add_vertex(ring, ring->v[0]);
            break;
        case 4: /* a box with a spike */
            add_box(ring, l, f);
            add_vertex(ring, any_vertex(l));
            add_vertex(ring, ring->v[3]);
            break;
        case 5:
        case 6:
            add_star(ring, l, f);
            break;
        case 7:
        case 8:
            add_any(ring, l, 3);
            break;
        default:
            add_box(ring, l, f);
            break;
    }
    if (one_in(10)) /* repeated points */
    {
        for (int n = 1 + pick(3); n > 0; n--)
        {
            int at = pick(ring->n);
            memmove(ring->v + at + 1, ring->v + at,
                    (size_t)(ring->n - at) * sizeof *ring->v);
            ring->n++;
        }
    }
    if (!one_in(40)) /* OGR accepts rings that are not closed */
        close_ring(ring);
}

/* Returns a box for a hole of the shell: inside the shell, on its border,
 * across the border, outside of it, or equal to it. */
static inline struct lattice_box pick_hole(const struct wkt_lattice *l,
                                           const struct lattice_box *shell)
{
    struct lattice_box f = *shell;
    switch (pick(6))
    {
        case 0:
            return any_frame(l);
        case 1:
            return f;
        case 2:
            f.width = 1 + pick(f.width);
            f.height = 1 + pick(f.height);
            return f;
        default:
            f.i += f.width > 2 ? 1 + pick(f.width - 2) : 0;
            f.j += f.height > 2 ? 1 + pick(f.height - 2) : 0;
            f.width = f.height = 1;
            return f;
    }
}

/* ---- coordinates of each type -------------------------------------------- */

static inline void put_polygon(struct pen *pen)
{
    struct lattice_box shell = any_frame(&pen->lattice);
    struct wkt_ring ring;
    make_ring(&ring, &pen->lattice, &shell);
    put(pen, "(");
    put_vertices(pen, ring.v, ring.n);
    for (int n = pick(3) ? 0 : 1 + pick(3); n > 0; n--)
    {
        struct lattice_box hole = pick_hole(&pen->lattice, &shell);
        make_ring(&ring, &pen->lattice, &hole);
        put(pen, ",");
        put_vertices(pen, ring.v, ring.n);
    }
    put(pen, ")");
}

static inline void put_triangle(struct pen *pen)
{
    struct wkt_ring ring = {0};
    add_any(&ring, &pen->lattice, 3);
    if (one_in(10))
        ring.v[pick(3)] = ring.v[pick(3)];
    close_ring(&ring);
    put(pen, "(");
    put_vertices(pen, ring.v, ring.n);
    put(pen, ")");
}

static inline void put_line(struct pen *pen)
{
    struct wkt_ring ring = {0};
    if (one_in(30))
        add_any(&ring, &pen->lattice, 1);
    else if (one_in(12)) /* a line without length */
    {
        add_any(&ring, &pen->lattice, 1);
        for (int n = 1 + pick(3); n > 0; n--)
            add_vertex(&ring, ring.v[0]);
    }
    else
    {
        add_any(&ring, &pen->lattice, 2 + pick(one_in(5) ? 30 : 5));
        if (one_in(6)) /* back along an edge of the line */
            add_vertex(&ring, ring.v[pick(ring.n)]);
        if (one_in(5))
            close_ring(&ring);
    }
    put_vertices(pen, ring.v, ring.n);
}

static inline void put_point(struct pen *pen)
{
    struct vertex v = any_vertex(&pen->lattice);
    put_vertices(pen, &v, 1);
}

/* Writes arcs, each beginning at the end of the previous one. from is the start
 * of the first arc, or NULL. Returns the end of the last arc. */
static inline struct vertex put_arcs(struct pen *pen, const struct vertex *from)
{
    struct wkt_ring ring = {0};
    int n = 1 + 2 * (1 + pick(2));
    if (from != NULL)
        add_vertex(&ring, *from);
    add_any(&ring, &pen->lattice, n - ring.n);
    if (one_in(5)) /* a whole circle */
        ring.v[ring.n - 1] = ring.v[0];
    if (one_in(10)) /* no arc */
        ring.v[1] = ring.v[0];
    put_vertices(pen, ring.v, ring.n);
    return ring.v[ring.n - 1];
}

static inline void put_compound(struct pen *pen, int is_closed)
{
    struct wkt_ring line = {0};
    struct vertex start;
    add_any(&line, &pen->lattice, 2 + pick(2));
    start = line.v[0];
    put(pen, "(");
    put_vertices(pen, line.v, line.n);
    put(pen, ",");
    put_type(pen, WKT_CIRCULARSTRING);
    line.v[0] = put_arcs(pen, &line.v[line.n - 1]);
    if (is_closed || one_in(3))
    {
        line.v[1] = start;
        put(pen, ",");
        put_vertices(pen, line.v, 2);
    }
    put(pen, ")");
}

static inline void put_curve_polygon(struct pen *pen)
{
    struct wkt_ring ring = {0};
    int kind = pick(3);
    if (kind == 0)
    {
        put_polygon(pen);
        return;
    }
    put(pen, "(");
    put_type(pen, kind == 1 ? WKT_CIRCULARSTRING : WKT_COMPOUNDCURVE);
    if (kind == 1)
    {
        add_any(&ring, &pen->lattice, pick(2) ? 2 : 4);
        close_ring(&ring);
        put_vertices(pen, ring.v, ring.n);
    }
    else
        put_compound(pen, 1);
    put(pen, ")");
}

static inline void put_geometry(struct pen *pen, enum wkt_type type, int depth);

static inline void put_member(struct pen *pen, enum wkt_type type, int depth)
{
    switch (type)
    {
        case WKT_MULTIPOINT:
            put_point(pen);
            break;
        case WKT_MULTILINESTRING:
            put_line(pen);
            break;
        case WKT_MULTIPOLYGON:
        case WKT_POLYHEDRALSURFACE:
            put_polygon(pen);
            break;
        case WKT_TIN:
            put_triangle(pen);
            break;
        case WKT_MULTICURVE:
            if (pick(3) == 0)
                put_line(pen);
            else
                put_geometry(
                    pen, pick(2) ? WKT_CIRCULARSTRING : WKT_COMPOUNDCURVE, 9);
            break;
        case WKT_MULTISURFACE:
            if (pick(2))
                put_polygon(pen);
            else
                put_geometry(pen, WKT_CURVEPOLYGON, 9);
            break;
        default: /* a collection, nested in up to four others */
            type = (enum wkt_type)pick(WKT_N_TYPES);
            if (depth > 2 && type == WKT_GEOMETRYCOLLECTION)
                type = (enum wkt_type)pick(WKT_MULTIPOINT);
            put_geometry(pen, type, depth + 1);
            break;
    }
}

/* Writes the members of a collection. Some occur twice, some are empty. */
static inline void put_members(struct pen *pen, enum wkt_type type, int depth)
{
    size_t start = 0, end = 0;
    int n = one_in(15) ? 10 : 1 + pick(4);
    for (int i = 0; i < n; i++)
    {
        size_t before;
        put(pen, i == 0 ? "(" : ",");
        before = pen->used;
        if (end > start && one_in(8))
        {
            char *again = CPLStrdup(pen->text + start);
            put(pen, "%.*s", (int)(end - start), again);
            CPLFree(again);
        }
        else if (one_in(25) && type != WKT_GEOMETRYCOLLECTION)
            put(pen, "EMPTY");
        else
            put_member(pen, type, depth);
        start = before;
        end = pen->used;
    }
    put(pen, ")");
}

/* Writes a geometry with the name of its type. depth is the number of
 * collections around it. */
static inline void put_geometry(struct pen *pen, enum wkt_type type, int depth)
{
    put_type(pen, type);
    if (one_in(40))
    {
        put(pen, "EMPTY");
        return;
    }
    switch (type)
    {
        case WKT_POINT:
            put_point(pen);
            break;
        case WKT_LINESTRING:
            put_line(pen);
            break;
        case WKT_POLYGON:
            put_polygon(pen);
            break;
        case WKT_CIRCULARSTRING:
            put_arcs(pen, NULL);
            break;
        case WKT_COMPOUNDCURVE:
            put_compound(pen, 0);
            break;
        case WKT_CURVEPOLYGON:
            put_curve_polygon(pen);
            break;
        case WKT_TRIANGLE:
            put_triangle(pen);
            break;
        default:
            put_members(pen, type, depth);
            break;
    }
}

#endif
