/** Edges of a cell in eight bytes each, and a test that uses nothing else.
 *
 *  Coordinates are multiples of a step, 2^-15 of the cell's side, relative to
 *  its reference point, the origin. Edges are clipped well outside the cell.
 *  The test returns that the edge crosses the path from the origin to p, that
 *  it does not, or that it is unsure; then the original edges decide.
 *
 *  Error bounds. Let |v| be |v_x| + |v_y|. An end is off by half a step, and
 *  clipping adds less than 2^-8 of one: h = 0.51 in each coordinate. p is off
 *  by 2^-9 (it is below 2^15 and rounded to a float). Then
 *      A = p x a, and p x b alike,   are off by less than h |p| + 2^-9 |a| + 1,
 *      D = a x b                     by less than h (|a| + |b|) + 1,
 *      E = (a - p) x (b - p)        by less than (h + 2^-9) (|a| + |b| + 2 |p|)
 *                                   + 1.
 *  Here |a|, |b| <= 2^16 and |p| < 2^16. Products are below 2^30 each and sums
 *  below 2^33, so single precision adds at most 2^-24 * (4 * 2^30 + 3 * 2^33) <
 *  2000 to each, fused or not. The test's bounds, with 0.52 for h and 4096 for
 *  all other terms, are larger.
 *
 *  If A and p x b surely have equal signs, or D and E have, the edge and the
 *  path are disjoint. If both pairs surely have opposite signs, they cross in
 *  the interior of both.
 */
#ifndef OJ_RING_PACKED_EDGE_H
#define OJ_RING_PACKED_EDGE_H

#include "oj_ring_cell_split.h"

#include <string.h>

/** Steps per side of a cell. */
#define OJ_RING_EDGE_STEPS 32768.0

/** Edges are clipped at this distance; the cell extends at most 17,700 steps
 *  from its reference point. */
#define OJ_RING_EDGE_REACH 32000.0

enum
{
    OJ_RING_EDGE_UNSURE = 2
};

struct oj_ring_edge16
{
    int16_t ax, ay, bx, by;
};

OJ_FN int16_t oj_ring_edge_round_to_step(double v)
{
    v = v < -OJ_RING_EDGE_REACH ? -OJ_RING_EDGE_REACH : v;
    v = v > OJ_RING_EDGE_REACH ? OJ_RING_EDGE_REACH : v;
    return (int16_t)floor(v + 0.5);
}

/** Reduces the interval t0 .. t1 of the edge's parameter to the part in which
 *  |u + t du| <= OJ_RING_EDGE_REACH; afterwards t0 > t1 if there is no such
 *  part. */
OJ_FN void oj_ring_edge_clip(double u, double du, double *t0, double *t1)
{
    double inverse, first, last, swap;
    if (du == 0.0)
    {
        if (fabs(u) > OJ_RING_EDGE_REACH)
            *t1 = -1.0;
        return;
    }
    inverse = 1.0 / du;
    first = (-OJ_RING_EDGE_REACH - u) * inverse;
    last = (OJ_RING_EDGE_REACH - u) * inverse;
    if (first > last)
    {
        swap = first;
        first = last;
        last = swap;
    }
    *t0 = first > *t0 ? first : *t0;
    *t1 = last < *t1 ? last : *t1;
}

/** Packs the edge a -> b for a cell with `steps` steps per unit (oj_ring_frame)
 *  and reference point r. Steps are below 2^42, and the parameters are rounded
 *  three times, so clipped ends are off by less than 2^-8 of a step. An edge
 *  far from the cell becomes a point far from it. */
OJ_FN struct oj_ring_edge16 oj_ring_edge_pack(double ax, double ay, double bx,
                                              double by, double rx, double ry,
                                              double steps)
{
    struct oj_ring_edge16 e;
    double ux = (ax - rx) * steps, uy = (ay - ry) * steps;
    double vx = (bx - rx) * steps, vy = (by - ry) * steps;
    double dx = vx - ux, dy = vy - uy, t0 = 0.0, t1 = 1.0;
    if (fabs(ux) > OJ_RING_EDGE_REACH || fabs(uy) > OJ_RING_EDGE_REACH ||
        fabs(vx) > OJ_RING_EDGE_REACH || fabs(vy) > OJ_RING_EDGE_REACH)
    {
        oj_ring_edge_clip(ux, dx, &t0, &t1);
        oj_ring_edge_clip(uy, dy, &t0, &t1);
        if (t0 > t1)
        {
            e.ax = e.ay = e.bx = e.by = (int16_t)OJ_RING_EDGE_REACH;
            return e;
        }
        if (t1 < 1.0)
        {
            vx = ux + t1 * dx;
            vy = uy + t1 * dy;
        }
        if (t0 > 0.0)
        {
            ux += t0 * dx;
            uy += t0 * dy;
        }
    }
    e.ax = oj_ring_edge_round_to_step(ux);
    e.ay = oj_ring_edge_round_to_step(uy);
    e.bx = oj_ring_edge_round_to_step(vx);
    e.by = oj_ring_edge_round_to_step(vy);
    return e;
}

/** Returns 1 if the edge crosses the path from the origin to p; 0 if it does
 *  not and p is not on it; OJ_RING_EDGE_UNSURE otherwise. */
OJ_FN int oj_ring_edge_crosses_from_origin(struct oj_ring_edge16 e, float px,
                                           float py)
{
    float ax = (float)e.ax, ay = (float)e.ay;
    float bx = (float)e.bx, by = (float)e.by;
    float size = fabsf(ax) + fabsf(ay) + fabsf(bx) + fabsf(by);
    float size_p = fabsf(px) + fabsf(py);
    float pa = px * ay - py * ax, pb = px * by - py * bx;
    float d = ax * by - ay * bx, e_p = d + pa - pb;
    float t_p = 0.52f * size_p + 4096.0f;
    float t_d = 0.52f * size + 4096.0f, t_e = t_d + 1.04f * size_p;
    int a_left = pa > t_p, a_right = pa < -t_p;
    int b_left = pb > t_p, b_right = pb < -t_p;
    int o_left = d > t_d, o_right = d < -t_d;
    int p_left = e_p > t_e, p_right = e_p < -t_e;
    if ((a_left & b_left) | (a_right & b_right) | (o_left & p_left) |
        (o_right & p_right))
        return 0;
    if (((a_left & b_right) | (a_right & b_left)) &
        ((o_left & p_right) | (o_right & p_left)))
        return 1;
    return OJ_RING_EDGE_UNSURE;
}

/* --- sixteenths of the cell ----------------------------------------------- */

/** Middle of sixteenth i along an axis, in steps. */
#define OJ_RING_EDGE_MIDDLE(i, share)                                          \
    ((float)(OJ_RING_EDGE_STEPS * (0.25 * (i) + 0.125 - (share))))

/** Returns the width in steps by which sixteenths are enlarged: the margin of
 *  the frame, one step for the rounding of edges, and one step for the rounding
 *  of this number and of the middles. */
OJ_FN float oj_ring_edge_margin(const struct oj_ring_frame *f, double steps)
{
    return (float)(f->margin * steps) + 2.0f;
}

/* Returns the bits of v; the top bit is its sign. */
OJ_FN uint32_t oj_ring_edge_sign_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/** Compares the edge with the sixteenths of its cell.
 *  touched: the sixteenths, widened by the margin, that the edge may intersect,
 *  and all sixteenths for which the comparison is unsure.
 *  toggled: of the other sixteenths, those whose middle p the edge separates
 *  from the reference point: A and p x b have opposite signs, and so have D and
 *  E. If one of these pairs surely has equal signs, the signs of the other pair
 *  do not matter.
 *  The edge does not intersect a sixteenth whose middle is farther from its
 *  line than the corners: |E| > (h + margin) (|d_x| + |d_y|), with d = b - a
 *  and h = 4096, half the side of a sixteenth. E is off by less than 2000 (see
 *  the file's head), apart from the rounding of the ends, which the margin
 *  covers. |p| is below 2^15 here. Signs are the top bits of numbers; the sign
 *  of a zero does not matter, because a zero is unsure. */
OJ_FN struct oj_ring_split
oj_ring_edge_split_sixteenths(struct oj_ring_edge16 e, float margin)
{
    struct oj_ring_split split;
    float ax = (float)e.ax, ay = (float)e.ay;
    float bx = (float)e.bx, by = (float)e.by;
    float half = (float)(OJ_RING_EDGE_STEPS / 8.0) + margin;
    float left = (ax < bx ? ax : bx) - half, right = (ax < bx ? bx : ax) + half;
    float low = (ay < by ? ay : by) - half, high = (ay < by ? by : ay) + half;
    float size = fabsf(ax) + fabsf(ay) + fabsf(bx) + fabsf(by);
    float reach = half * (fabsf(bx - ax) + fabsf(by - ay)) + 4096.0f;
    float d = ax * by - ay * bx, t_d = 0.52f * size + 4096.0f;
    float t_p = 0.52f * 32768.0f + 4096.0f, t_e = t_d + 1.04f * 32768.0f;
    uint32_t columns = 0, rows = 0, far = 0, unsure = 0, toggled = 0;
    uint32_t d_left = oj_ring_edge_sign_bits(d),
             is_d = oj_ring_edge_sign_bits(t_d - fabsf(d));
    int i, j;
    for (i = 0; i < OJ_RING_CELL_SPLIT; i++)
    {
        float px = OJ_RING_EDGE_MIDDLE(i, OJ_RING_CELL_U);
        float py = OJ_RING_EDGE_MIDDLE(i, OJ_RING_CELL_V);
        if (left <= px && px <= right)
            columns |= 0x1111u << i;
        if (low <= py && py <= high)
            rows |= 0xfu << (OJ_RING_CELL_SPLIT * i);
    }
    for (j = OJ_RING_CELL_SPLIT - 1; j >= 0; j--)
    {
        for (i = OJ_RING_CELL_SPLIT - 1; i >= 0; i--)
        {
            float px = OJ_RING_EDGE_MIDDLE(i, OJ_RING_CELL_U);
            float py = OJ_RING_EDGE_MIDDLE(j, OJ_RING_CELL_V);
            float pa = px * ay - py * ax, pb = px * by - py * bx;
            float e_p = d + pa - pb;
            uint32_t a_opposite =
                oj_ring_edge_sign_bits(pa) ^ oj_ring_edge_sign_bits(pb);
            uint32_t d_opposite = d_left ^ oj_ring_edge_sign_bits(e_p);
            uint32_t is_a =
                oj_ring_edge_sign_bits(t_p - fminf(fabsf(pa), fabsf(pb)));
            uint32_t is_both = is_d & oj_ring_edge_sign_bits(t_e - fabsf(e_p));
            far = far << 1 | oj_ring_edge_sign_bits(reach - fabsf(e_p)) >> 31;
            toggled = toggled << 1 | (a_opposite & d_opposite) >> 31;
            unsure = unsure << 1 | ((~is_a & (~is_both | d_opposite)) |
                                    (~is_both & a_opposite)) >>
                                       31;
        }
    }
    split.toggled = toggled;
    split.touched = (columns & rows & ~far) | unsure;
    return split;
}

#endif
