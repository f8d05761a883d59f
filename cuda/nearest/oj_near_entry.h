/** The entries of a leaf of oj_near_cell.h: segments clipped to the leaf's box,
 *  in integers.
 *  Source: ours.
 */
#ifndef OJ_NEAR_ENTRY_H
#define OJ_NEAR_ENTRY_H

#include "oj_near_split.h"

/** How a leaf's coordinates are written. */
struct oj_near_scale
{
    double box;        /**< half width of what segments are clipped to */
    double per_unit;   /**< a power of two */
    uint32_t exponent; /**< its bits in single precision */
};

/** bound: the greatest of the children's, in halves of the node. */
OJ_FN struct oj_near_scale oj_near_scale(const struct oj_near_frame *f,
                                         float bound)
{
    struct oj_near_scale s;
    float units, per_unit;
    s.box = f->half * (1.001 + (double)bound);
    units = (float)(s.box * 1.0001) * (1.0f / OJ_NEAR_UNITS);
    /* the power of two above units, and its inverse: exponents e + 1 and
     * 253 - e for the bias of 127 */
    s.exponent = 253u - (oj_float_bits(units) >> 23);
    per_unit = oj_bits_float(s.exponent << 23);
    s.per_unit = (double)per_unit;
    return s;
}

OJ_FN uint32_t oj_near_round(double v)
{
    int32_t i = (int32_t)(v < 0.0 ? v - 0.5 : v + 0.5);
    return (uint32_t)i & 0xFFFFu;
}

/** Narrows the part t0 .. t1 of a + t d that lies between -box and box, a
 * little generously: 2^-20 of the segment to each side.  What rounding cuts off
 * is below 2^-22 of the box, 2^-7 units. */
OJ_FN void oj_near_clip(float a, float d, float box, float *t0, float *t1)
{
    float low, high, swap;
    if (d == 0.0f)
    {
        if (oj_near_size(a) > box * 1.00001f)
            *t1 = -1.0f;
        return;
    }
    low = oj_near_quotient(-box - a, d);
    high = oj_near_quotient(box - a, d);
    swap = oj_near_less(low, high);
    high = oj_near_more(low, high);
    *t0 = oj_near_more(*t0, swap - 9.5367432e-7f);
    *t1 = oj_near_less(*t1, high + 9.5367432e-7f);
}

/** The same for segments that are long against the box. */
OJ_FN void oj_near_clip_long(double a, double d, double box, float *t0,
                             float *t1, double *from, double *to)
{
    double low, high, swap;
    if (d == 0.0)
    {
        if (a < -box || a > box)
            *t1 = -1.0f;
        return;
    }
    low = (-box - a) / d;
    high = (box - a) / d;
    swap = low < high ? low : high;
    high = low < high ? high : low;
    *from = swap > *from ? swap : *from;
    *to = high < *to ? high : *to;
    if (*from > *to)
        *t1 = *t0 - 1.0f;
}

/** The entry of segment a -> b.  One that misses the box cannot be nearest
 *  (rounding let it through the tests): it becomes the box's corner, which is
 *  farther from the cell than any that is. */
OJ_FN uint64_t oj_near_entry(const struct oj_near_frame *f,
                             const struct oj_near_scale *s, double ax,
                             double ay, double bx, double by)
{
    double from = 0.0, to = 1.0, dx, dy;
    float t0 = 0.0f, t1 = 1.0f, box = (float)s->box;
    ax = (ax - f->x0) - f->cx;
    ay = (ay - f->y0) - f->cy;
    bx = (bx - f->x0) - f->cx;
    by = (by - f->y0) - f->cy;
    if (fabs(ax) > s->box || fabs(ay) > s->box || fabs(bx) > s->box ||
        fabs(by) > s->box)
    {
        dx = bx - ax;
        dy = by - ay;
        if (fabs(dx) + fabs(dy) > 4096.0 * s->box)
        {
            oj_near_clip_long(ax, dx, s->box, &t0, &t1, &from, &to);
            oj_near_clip_long(ay, dy, s->box, &t0, &t1, &from, &to);
        }
        else
        {
            oj_near_clip((float)ax, (float)dx, box, &t0, &t1);
            oj_near_clip((float)ay, (float)dy, box, &t0, &t1);
            from = (double)t0;
            to = (double)t1;
        }
        if (!(t0 <= t1))
            return oj_near_pack(0x7FFF7FFFu, 0x7FFF7FFFu);
        bx = to < 1.0 ? ax + to * dx : bx;
        by = to < 1.0 ? ay + to * dy : by;
        ax = ax + from * dx;
        ay = ay + from * dy;
    }
    return oj_near_pack(oj_near_round(ax * s->per_unit) |
                            (oj_near_round(ay * s->per_unit) << 16),
                        oj_near_round(bx * s->per_unit) |
                            (oj_near_round(by * s->per_unit) << 16));
}

/** How the coordinates of a piece become those of a leaf that is the piece's
 *  node or a child of it: units * (v - middle). */
struct oj_near_units
{
    float middle_x, middle_y; /**< of the leaf, in the node's frame */
    float units;              /**< a power of two */
    float box;                /**< of the leaf, a little narrower */
};

OJ_FN struct oj_near_units oj_near_units(const struct oj_near_frame *node,
                                         const struct oj_near_frame *leaf,
                                         const struct oj_near_scale *s)
{
    struct oj_near_units u;
    u.middle_x = (float)((leaf->cx - node->cx) * node->per_half);
    u.middle_y = (float)((leaf->cy - node->cy) * node->per_half);
    u.units = (float)(node->half * s->per_unit);
    u.box = (float)(s->box * node->per_half) * 0.9999f;
    return u;
}

OJ_FN uint32_t oj_near_round_float(float v)
{
    int32_t i = (int32_t)(v < 0.0f ? v - 0.5f : v + 0.5f);
    return (uint32_t)i & 0xFFFFu;
}

/** The same as oj_near_entry() in single precision; 0 when the piece reaches
 *  beyond the box.  Places in the node's frame are at most two boxes from the
 *  leaf's middle, 2^16 units, so each of the at most five roundings on the way
 *  is below 2^-9 of a unit, and those of b together below 2^-7. */
OJ_FN int oj_near_short_entry(const struct oj_near_piece *p,
                              const struct oj_near_units *u, uint64_t *entry)
{
    float ax = p->ax - u->middle_x, ay = p->ay - u->middle_y;
    float bx = ax + p->dx, by = ay + p->dy;
    float size = oj_near_more(oj_near_more(oj_near_size(ax), oj_near_size(ay)),
                              oj_near_more(oj_near_size(bx), oj_near_size(by)));
    if (!(size <= u->box))
        return 0;
    *entry = oj_near_pack(oj_near_round_float(ax * u->units) |
                              (oj_near_round_float(ay * u->units) << 16),
                          oj_near_round_float(bx * u->units) |
                              (oj_near_round_float(by * u->units) << 16));
    return 1;
}

#endif
