#include "relate_sign.h"

#include "../base/exact_integer.h"
#include "../kernels/oj_cross.h"

#include <limits.h>

static int sign_of(double v)
{
    return (v > 0.0) - (v < 0.0);
}

/* a - b = high + low exactly. */
static void two_difference(double a, double b, double *high, double *low)
{
    double part;
    *high = a - b;
    part = a - *high;
    *low = (a - (*high + part)) + (part - b);
}

static int expansion_sign(const double *e, int n)
{
    for (int i = n - 1; i >= 0; i--)
    {
        if (e[i] != 0.0)
            return sign_of(e[i]);
    }
    return 0;
}

/* 0 when products with v may underflow. */
static int is_safe(double v)
{
    return v == 0.0 || fabs(v) > 1e-140;
}

static int exact_cross(const struct oj_edge *e, const struct oj_edge *f);

static int is_same_edge(const struct oj_edge *e, const struct oj_edge *f)
{
    return (e->ax == f->ax && e->ay == f->ay && e->bx == f->bx &&
            e->by == f->by) ||
           (e->ax == f->bx && e->ay == f->by && e->bx == f->ax &&
            e->by == f->ay);
}

int oj_cross_sign(const struct oj_edge *e, const struct oj_edge *f)
{
    double left = (e->bx - e->ax) * (f->by - f->ay);
    double right = (e->by - e->ay) * (f->bx - f->ax);
    double det = left - right, size = fabs(left) + fabs(right);
    double u[2], v[2], expansion[34], high, low;
    int n = 0;
    if (size > 1e-280 && fabs(det) > 1e-15 * size)
        return sign_of(det);
    if (is_same_edge(e, f)) /* the borders of neighbours */
        return 0;
    if (!is_safe(e->bx - e->ax) || !is_safe(e->by - e->ay) ||
        !is_safe(f->bx - f->ax) || !is_safe(f->by - f->ay))
        return exact_cross(e, f);
    for (int side = 0; side < 2; side++)
    {
        if (side == 0)
        {
            two_difference(e->bx, e->ax, &u[1], &u[0]);
            two_difference(f->by, f->ay, &v[1], &v[0]);
        }
        else
        {
            two_difference(e->ay, e->by, &u[1], &u[0]);
            two_difference(f->bx, f->ax, &v[1], &v[0]);
        }
        for (int i = 0; i < 4; i++)
        {
            oj_two_product(u[i >> 1], v[i & 1], &high, &low);
            n = oj_grow_expansion(n, expansion, low);
            n = oj_grow_expansion(n, expansion, high);
        }
    }
    return expansion_sign(expansion, n);
}

/* --- a crossing and an edge ----------------------------------------------- */

static void least_exponent(const struct oj_edge *e, int *exponent)
{
    const double value[4] = {e->ax, e->ay, e->bx, e->by};
    for (int i = 0; i < 4; i++)
    {
        int own = oj_integer_exponent(value[i]);
        *exponent = own < *exponent ? own : *exponent;
    }
}

/* out = a - b, in whole numbers of 2^exponent */
static void set_difference(struct oj_integer *out, double a, double b,
                           int exponent)
{
    struct oj_integer other;
    oj_integer_set(out, a, exponent);
    oj_integer_set(&other, b, exponent);
    oj_integer_subtract(out, out, &other);
}

/* out = (ux * vy - uy * vx) for vectors between ends of edges */
static void set_cross(struct oj_integer *out, const struct oj_integer u[2],
                      const struct oj_integer v[2])
{
    struct oj_integer other;
    oj_integer_multiply(out, &u[0], &v[1]);
    oj_integer_multiply(&other, &u[1], &v[0]);
    oj_integer_subtract(out, out, &other);
}

static void set_vector(struct oj_integer out[2], double ax, double ay,
                       double bx, double by, int exponent)
{
    set_difference(&out[0], bx, ax, exponent);
    set_difference(&out[1], by, ay, exponent);
}

static int exact_cross(const struct oj_edge *e, const struct oj_edge *f)
{
    struct oj_integer along_e[2], along_f[2], cross;
    int exponent = INT_MAX;
    least_exponent(e, &exponent);
    least_exponent(f, &exponent);
    set_vector(along_e, e->ax, e->ay, e->bx, e->by, exponent);
    set_vector(along_f, f->ax, f->ay, f->bx, f->by, exponent);
    set_cross(&cross, along_e, along_f);
    return cross.sign;
}

/* Sign of the point left (1) or right (-1) of the line of e. */
static int orientation(const struct oj_edge *e, double x, double y)
{
    struct oj_edge from_a = {e->ax, e->ay, x, y, 0, OJ_EDGE_LINE};
    double left = (e->ax - x) * (e->by - y), right = (e->ay - y) * (e->bx - x);
    if (fabs(left) + fabs(right) > 1e-280 ||
        (is_safe(e->ax - x) && is_safe(e->ay - y) && is_safe(e->bx - x) &&
         is_safe(e->by - y)))
        return oj_orientation(e->ax, e->ay, e->bx, e->by, x, y);
    return exact_cross(e, &from_a);
}

/* On which side of edge e the point is in which p and q cross.  With the point
 * p.a + t (p.b - p.a), t = T / W:  W cross(e, p.a - e.a) + T cross(e, p)  over
 * W. */
static int exact_side(const struct oj_edge *p, const struct oj_edge *q,
                      const struct oj_edge *e)
{
    struct oj_integer along_p[2], along_q[2], along_e[2], between[2];
    struct oj_integer w, t, u, v, sum, other;
    int exponent = INT_MAX;
    least_exponent(p, &exponent);
    least_exponent(q, &exponent);
    least_exponent(e, &exponent);
    exponent = exponent == INT_MAX ? 0 : exponent;
    set_vector(along_p, p->ax, p->ay, p->bx, p->by, exponent);
    set_vector(along_q, q->ax, q->ay, q->bx, q->by, exponent);
    set_vector(along_e, e->ax, e->ay, e->bx, e->by, exponent);
    set_vector(between, p->ax, p->ay, q->ax, q->ay, exponent);
    set_cross(&w, along_p, along_q);
    set_cross(&t, between, along_q);
    set_vector(between, e->ax, e->ay, p->ax, p->ay, exponent);
    set_cross(&u, along_e, between);
    set_cross(&v, along_e, along_p);
    oj_integer_multiply(&sum, &w, &u);
    oj_integer_multiply(&other, &t, &v);
    oj_integer_add(&sum, &sum, &other);
    return sum.sign * w.sign;
}

/* Rounding errors of this many units of the last place of what is added up. */
#define UNITS 1e-14

int oj_node_side(const struct oj_node *node, const struct oj_edge *e)
{
    double dx, dy, det, size;
    if (node->cross[0] == NULL)
        return orientation(e, node->x, node->y);
    if (e == node->cross[0] || e == node->cross[1])
        return 0;
    dx = e->bx - e->ax;
    dy = e->by - e->ay;
    det = dx * (node->y - e->ay) - dy * (node->x - e->ax);
    size = (fabs(dx) + fabs(dy)) *
           (fabs(node->x) + fabs(node->y) + fabs(e->ax) + fabs(e->ay));
    if (fabs(det) > UNITS * size + (fabs(dx) + fabs(dy)) * node->error)
        return sign_of(det);
    return exact_side(node->cross[0], node->cross[1], e);
}

int oj_crossing_compare_y(const struct oj_node *node, double v)
{
    struct oj_edge level = {0.0, v, 1.0, v, 0, OJ_EDGE_LINE};
    return exact_side(node->cross[0], node->cross[1], &level);
}

int oj_crossing_compare_x(const struct oj_node *node, double v)
{
    struct oj_edge upright = {v, 0.0, v, 1.0, 0, OJ_EDGE_LINE};
    return -exact_side(node->cross[0], node->cross[1], &upright);
}

static double largest(const struct oj_edge *e)
{
    return oj_larger(oj_larger(fabs(e->ax), fabs(e->bx)),
                     oj_larger(fabs(e->ay), fabs(e->by)));
}

struct oj_node oj_node_of_crossing(const struct oj_edge *e,
                                   const struct oj_edge *f)
{
    struct oj_node node = {e->ax, e->ay, INFINITY, {e, f}};
    double ex = e->bx - e->ax, ey = e->by - e->ay;
    double fx = f->bx - f->ax, fy = f->by - f->ay;
    double w = ex * fy - ey * fx;
    double t = ((f->ax - e->ax) * fy - (f->ay - e->ay) * fx) / w;
    double size = oj_larger(largest(e), largest(f));
    double spread = (fabs(ex) + fabs(ey)) * (fabs(fx) + fabs(fy)) / fabs(w);
    if (!(t >= 0.0 && t <= 1.0) || !(spread < 1e10) || !(size > 1e-280))
        return node;
    node.x = e->ax + t * ex;
    node.y = e->ay + t * ey;
    node.error = UNITS * size * spread;
    return node;
}
