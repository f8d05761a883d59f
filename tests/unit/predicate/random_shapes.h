/** Random features of every kind on a small integer lattice. Shapes often
 * touch, share edges, or overlap along a line. Include once, after
 * references.h and random_numbers.h. */
#ifndef RANDOM_SHAPES_H
#define RANDOM_SHAPES_H

#include "../random_numbers.h"
#include "../references.h"

/* A lattice. Its points are one apart, or a third apart and far from the
 * origin, so that coordinates are rounded. */
struct shape_lattice
{
    int size;
    double origin, step;
};

static inline double place(const struct shape_lattice *l, int i)
{
    return l->origin + l->step * i;
}

#define MOST_CORNERS 400

struct corners
{
    int n;
    double xy[2 * MOST_CORNERS];
};

static inline void corner(struct corners *c, const struct shape_lattice *l,
                          int i, int j)
{
    c->xy[2 * c->n] = place(l, i);
    c->xy[2 * c->n + 1] = place(l, j);
    c->n++;
}

/* Adds the vertex (i, j). If dense is 1 and the path to it is along an axis,
 * also adds all lattice points between. */
static inline void walk(struct corners *c, const struct shape_lattice *l,
                        int *at_i, int *at_j, int i, int j, int dense)
{
    while (dense && (*at_i == i) != (*at_j == j))
    {
        *at_i += (i > *at_i) - (i < *at_i);
        *at_j += (j > *at_j) - (j < *at_j);
        corner(c, l, *at_i, *at_j);
    }
    if (*at_i != i || *at_j != j)
        corner(c, l, i, j);
    *at_i = i;
    *at_j = j;
}

/* Adds a rectangle. Sometimes a corner is cut off or notched. */
static inline void add_rectangle(struct oj_flat_buf *buf,
                                 const struct shape_lattice *l, int i0, int j0,
                                 int i1, int j1, int dense)
{
    struct corners c = {0, {0}};
    int i = i0, j = j0, shape = pick(3);
    corner(&c, l, i, j);
    walk(&c, l, &i, &j, i1, j0, dense);
    if (shape == 0 || i1 - i0 < 2 || j1 - j0 < 2)
        walk(&c, l, &i, &j, i1, j1, dense);
    else
    {
        int middle_i = i0 + 1 + pick(i1 - i0 - 1);
        int middle_j = j0 + 1 + pick(j1 - j0 - 1);
        walk(&c, l, &i, &j, i1, middle_j, dense);
        if (shape == 1)
            walk(&c, l, &i, &j, middle_i, middle_j, dense);
        walk(&c, l, &i, &j, middle_i, j1, dense);
    }
    walk(&c, l, &i, &j, i0, j1, dense);
    walk(&c, l, &i, &j, i0, j0, dense);
    if (pick(2)) /* in reverse order */
    {
        for (int a = 0, b = c.n - 1; a < b; a++, b--)
        {
            for (int k = 0; k < 2; k++)
            {
                double swap = c.xy[2 * a + k];
                c.xy[2 * a + k] = c.xy[2 * b + k];
                c.xy[2 * b + k] = swap;
            }
        }
    }
    add_ring(buf, c.n, c.xy);
}

static inline int less_one(int n)
{
    return n > 1 ? n - 1 : 1;
}

/* Adds a triangle, or a rectangle with up to two holes that may touch. */
static inline void add_polygon(struct oj_flat_buf *buf,
                               const struct shape_lattice *l)
{
    int i0 = pick(less_one(l->size)), j0 = pick(less_one(l->size));
    int width = 1 + pick(l->size - i0), height = 1 + pick(l->size - j0);
    int dense = one_in(3);
    add_part(buf, OJ_PART_POLYGON);
    if (one_in(4))
    {
        double xy[8];
        for (int k = 0; k < 3; k++)
        {
            xy[2 * k] = place(l, pick(l->size + 1));
            xy[2 * k + 1] = place(l, pick(l->size + 1));
        }
        xy[6] = xy[0];
        xy[7] = xy[1];
        add_ring(buf, 4, xy);
        return;
    }
    add_rectangle(buf, l, i0, j0, i0 + width, j0 + height, dense);
    /* holes are within the box of the shell, from left to right, disjoint or
     * touching */
    for (int hole = pick(3), i = i0; hole > 0 && height > 2; hole--)
    {
        int room = i0 + width - 2 - i, j = j0 + 1 + pick(height - 2);
        if (room < 1)
            break;
        i += 1 + pick(room);
        add_rectangle(buf, l, i, j, i + 1, j + 1, one_in(3));
    }
}

/* Adds a polygon with random vertices, sometimes of several rings. It is mostly
 * invalid. */
static inline void add_wild_polygon(struct oj_flat_buf *buf,
                                    const struct shape_lattice *l)
{
    add_part(buf, OJ_PART_POLYGON);
    for (int ring = one_in(3) ? 1 + pick(3) : 1; ring > 0; ring--)
    {
        struct corners c = {0, {0}};
        for (int n = 3 + pick(5); n > 0; n--)
            corner(&c, l, pick(l->size + 1), pick(l->size + 1));
        c.xy[2 * c.n] = c.xy[0];
        c.xy[2 * c.n + 1] = c.xy[1];
        add_ring(buf, c.n + 1, c.xy);
    }
}

static inline void add_lattice_line(struct oj_flat_buf *buf,
                                    const struct shape_lattice *l)
{
    struct corners c = {0, {0}};
    int n = 2 + pick(one_in(4) ? 40 : 4);
    int i = pick(l->size + 1), j = pick(l->size + 1);
    corner(&c, l, i, j);
    while (c.n < n)
    {
        int to_i = pick(l->size + 1), to_j = pick(l->size + 1);
        walk(&c, l, &i, &j, pick(2) ? i : to_i, to_j, one_in(3));
    }
    if (one_in(4)) /* closed */
    {
        c.xy[2 * c.n - 2] = c.xy[0];
        c.xy[2 * c.n - 1] = c.xy[1];
    }
    add_part(buf, OJ_PART_LINE);
    add_ring(buf, c.n, c.xy);
}

static inline void add_lattice_point(struct oj_flat_buf *buf,
                                     const struct shape_lattice *l)
{
    double xy[2] = {place(l, pick(l->size + 1)), place(l, pick(l->size + 1))};
    if (one_in(4))
        xy[0] += 0.5 * l->step;
    add_part(buf, OJ_PART_POINT);
    add_ring(buf, 1, xy);
}

static inline void add_some(struct oj_flat_buf *buf,
                            const struct shape_lattice *l, unsigned kind)
{
    if (kind == OJ_PART_POINT)
        add_lattice_point(buf, l);
    else if (kind == OJ_PART_LINE)
        add_lattice_line(buf, l);
    else if (one_in(8))
        add_wild_polygon(buf, l);
    else
        add_polygon(buf, l);
}

static inline unsigned some_kind(void)
{
    return 1u << pick(3);
}

/* Adds n features of any kinds. A few have no parts. */
static inline void add_shapes(struct oj_flat_buf *buf,
                              const struct shape_lattice *l, int n)
{
    for (int i = 0; i < n; i++)
    {
        unsigned kind = some_kind();
        int mixed = one_in(8);
        int n_parts = mixed || one_in(4) ? 1 + pick(4) : 1;
        if (one_in(20))
        {
            must(oj_flat_buf_add_null(buf, buf->n_features, &error));
            continue;
        }
        begin(buf);
        if (kind == OJ_PART_POINT && one_in(6))
            n_parts = 30;
        for (int p = 0; p < n_parts; p++)
            add_some(buf, l, mixed ? some_kind() : kind);
        end(buf);
    }
}

#endif
