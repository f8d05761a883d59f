/** Finds which segments of a node's list can be nearest in each part of the
 *  node: the lists of cuda_segment_cells_search.cuh are made by this.
 *
 *  All numbers are in single precision, relative to the middle of the node, in
 *  units of half its side: the node is -1 .. 1, and its sixteenths (4 x 4) are
 *  1/2 wide. Given a list with every segment that can be nearest to a point of
 *  the node, two steps follow for each sixteenth:
 *    bound  the maximum distance from its corners to a segment; no point of the
 *           sixteenth is farther from the segment (the distance to a segment is
 *           convex). The minimum over the list is an upper bound of the
 *           distance from each point of the sixteenth to its nearest segment;
 *    test   a segment whose box or line is farther from the sixteenth than
 *           the upper bound, or than the reach, cannot be nearest there.
 *  A node with a long list gets 16 children; another node gets 4, and a child
 *  whose four sixteenths need few segments becomes a leaf at once.
 *
 *  Slack. An upper bound may use any point of a segment, not only the nearest
 *  one, so an error of the point's parameter (0 .. 1) does no harm. What
 *  matters is the rounding of the segment's ends, of the vector to that point,
 *  of its square and of the root: 8 roundings of numbers below 4 m, where m is
 *  the maximum coordinate of the segment, or 1; together less than
 *  2^-24 * 32 m. The tests round alike, and the direction of a line has an
 *  error of 2^-22, which moves the line by 2^-20 m. Bounds and tests both get
 *  a slack of 2^-18 m. The coordinates of a point in a cell are rounded by less
 *  than 2^-20 of the finest cell's side; 2^-12 of it is added for that.
 *  Source: ours. */
#ifndef CUDA_SEGMENT_CELLS_BOUNDS_CUH
#define CUDA_SEGMENT_CELLS_BOUNDS_CUH

#include "cuda_segment_cells_search.cuh"

/** Maximum number of children per row, and per node. */
#define OJ_NEAR_FAN 4
#define OJ_NEAR_CHILDREN 16

/** A node that will become a leaf or get children. */
struct oj_near_node
{
    uint32_t first, n; /**< its list: elements first .. first + n - 1 of id in
                            struct oj_cells_round */
    uint32_t ix, iy;   /**< column and row among the nodes of its level */
    uint32_t header;   /**< index of its header */
    uint8_t level;
    uint8_t stale; /**< number of levels since the list last became shorter */
};

struct oj_near_frame
{
    double x0, y0;   /**< corner of the square */
    double cx, cy;   /**< middle of the node, relative to the corner */
    double per_half; /**< 2 / side of the node */
    double half;
    /** maximum distance of a match, in units of half the node's side, rounded
     *  up */
    float reach;
};

OJ_NEAR_FN struct oj_near_frame
oj_near_frame_make(const struct oj_near_square *square, uint32_t ix,
                   uint32_t iy, int level)
{
    struct oj_near_frame f;
    uint32_t shift = (uint32_t)(OJ_NEAR_BITS - level);
    double steps = (double)(1u << shift);
    f.x0 = square->x0;
    f.y0 = square->y0;
    f.half = 0.5 * steps * square->finest;
    /* 1 / half; the first two factors are 2 / steps, without a division */
    f.per_half = (double)(1u << (31u - shift)) * (1.0 / (double)(1u << 30)) *
                 square->per_finest;
    f.cx = ((double)ix + 0.5) * steps * square->finest;
    f.cy = ((double)iy + 0.5) * steps * square->finest;
    f.reach = (float)(square->reach * f.per_half) * 1.000001f;
    return f;
}

/** A segment, relative to a node. */
struct oj_near_piece
{
    float ax, ay, dx, dy;
    float per_length2, per_length; /**< 0 for a segment without length */
    float slack;
};

/** Computes the members of *p that follow from its two ends. */
OJ_NEAR_FN void oj_near_complete_piece(struct oj_near_piece *p)
{
    float qx = p->ax + p->dx, qy = p->ay + p->dy;
    float length2 = p->dx * p->dx + p->dy * p->dy;
    float size =
        fmaxf(fmaxf(fabsf(p->ax), fabsf(p->ay)), fmaxf(fabsf(qx), fabsf(qy)));
    p->per_length2 = length2 > 1e-30f ? __fdividef(1.0f, length2) : 0.0f;
    p->per_length = length2 > 1e-30f ? rsqrtf(length2) : 0.0f;
    p->slack = fmaxf(size, 1.0f) * 3.8146973e-6f + 2.4414063e-4f;
}

OJ_NEAR_FN struct oj_near_piece
oj_near_piece_of_segment(const struct oj_near_frame *f,
                         struct oj_cuda_segment s)
{
    struct oj_near_piece p;
    p.ax = (float)(((s.ax - f->x0) - f->cx) * f->per_half);
    p.ay = (float)(((s.ay - f->y0) - f->cy) * f->per_half);
    p.dx = (float)(((s.bx - f->x0) - f->cx) * f->per_half) - p.ax;
    p.dy = (float)(((s.by - f->y0) - f->cy) * f->per_half) - p.ay;
    oj_near_complete_piece(&p);
    return p;
}

/** Lowers the squared upper bounds of the sixteenths, upper2
 *  [OJ_NEAR_CHILDREN], by one segment. Includes the slack: (d + s)^2 <= d^2 (1
 *  + e) + s^2 (1 + 1 / e), with e = 2^-9. */
OJ_NEAR_FN void oj_near_lower_upper_bounds(const struct oj_near_piece *p,
                                           float *upper2)
{
    /* maximum over two adjacent corners, for the row of corners below and for
     * this row */
    float below[OJ_NEAR_FAN], above[OJ_NEAR_FAN], last = 0.0f;
    float step = 2.0f / (float)OJ_NEAR_FAN;
    float slack2 = 513.0f * p->slack * p->slack;
    /* Parameter of the foot of the corner (-1, -1) on the segment. Its error
     * makes the bounds larger, but not wrong. */
    float tx = p->dx * p->per_length2 * step,
          ty = p->dy * p->per_length2 * step;
    float t0 =
        -((p->ax + 1.0f) * p->dx + (p->ay + 1.0f) * p->dy) * p->per_length2;
    int row, column;
#pragma unroll
    for (column = 0; column < OJ_NEAR_FAN; column++)
        above[column] = 0.0f;
#pragma unroll
    for (row = 0; row <= OJ_NEAR_FAN; row++)
    {
        float wy = (float)row * step - 1.0f - p->ay;
        float t_row = __fmaf_rn((float)row, ty, t0);
#pragma unroll
        for (column = 0; column <= OJ_NEAR_FAN; column++)
        {
            float wx = (float)column * step - 1.0f - p->ax;
            float t = __saturatef(__fmaf_rn((float)column, tx, t_row));
            float ex = __fmaf_rn(-t, p->dx, wx);
            float ey = __fmaf_rn(-t, p->dy, wy);
            float here = __fmaf_rn(ex, ex, ey * ey);
            if (column > 0)
            {
                below[column - 1] = above[column - 1];
                above[column - 1] = fmaxf(last, here);
            }
            last = here;
        }
        if (row == 0)
            continue;
#pragma unroll
        for (column = 0; column < OJ_NEAR_FAN; column++)
        {
            float most = fmaxf(below[column], above[column]);
            float *u = &upper2[(row - 1) * OJ_NEAR_FAN + column];
            *u = fminf(*u, __fmaf_rn(most, 1.001953125f, slack2));
        }
    }
}

/** Returns the bound of a sixteenth: the minimum of upper bound and reach. */
OJ_NEAR_FN float oj_near_bound_of_sixteenth(float upper2, float reach)
{
    return fminf(sqrtf(upper2) * 1.000001f, reach);
}

/** Returns a mask of the sixteenths, row by row, that may need the segment. */
OJ_NEAR_FN uint32_t oj_near_sixteenth_mask(const struct oj_near_piece *p,
                                           const float *bound)
{
    float half = 1.0f / (float)OJ_NEAR_FAN;
    float ex = 0.5f * fabsf(p->dx) + half;
    float ey = 0.5f * fabsf(p->dy) + half;
    float mx = p->ax + 0.5f * p->dx, my = p->ay + 0.5f * p->dy;
    float nx = p->dx * p->per_length, ny = p->dy * p->per_length;
    float span = half * (fabsf(nx) + fabsf(ny));
    uint32_t mask = 0;
    int row, column;
#pragma unroll
    for (row = 0; row < OJ_NEAR_FAN; row++)
    {
        float cy = (float)(2 * row + 1) * half - 1.0f;
        float gap_y = fmaxf(fabsf(my - cy) - ey, 0.0f);
        float across = nx * (cy - p->ay);
#pragma unroll
        for (column = 0; column < OJ_NEAR_FAN; column++)
        {
            float cx = (float)(2 * column + 1) * half - 1.0f;
            float gap_x = fmaxf(fabsf(mx - cx) - ex, 0.0f);
            float limit = bound[row * OJ_NEAR_FAN + column] + p->slack;
            float off = fabsf(__fmaf_rn(-ny, cx - p->ax, across));
            int near_box =
                __fmaf_rn(gap_x, gap_x, gap_y * gap_y) <= limit * limit;
            int near_line = off - span <= limit;
            mask |= (uint32_t)(near_box & near_line)
                    << (row * OJ_NEAR_FAN + column);
        }
    }
    return mask;
}

/** Returns the mask of the four children that may need the segment, from the
 *  mask of its sixteenths. */
OJ_NEAR_FN uint32_t oj_near_quarter_mask(uint32_t mask)
{
    return (uint32_t)((mask & 0x33u) != 0) |
           ((uint32_t)((mask & 0xCCu) != 0) << 1) |
           ((uint32_t)((mask & 0x3300u) != 0) << 2) |
           ((uint32_t)((mask & 0xCC00u) != 0) << 3);
}

/* --- duplicates ----------------------------------------------------------- */

/** Returns 1 if end a of the segment is its nearest point for all points of
 *  the node, 2 if end b is, and 0 if neither is. For 1 and 2,
 *  oj_segment_distance() returns the distance to that end, bit for bit. */
OJ_NEAR_FN int oj_near_nearest_end(const struct oj_near_piece *p)
{
    float span = (fabsf(p->dx) + fabsf(p->dy)) * (1.0f + 4.0f * p->slack);
    float at_a = -p->ax * p->dx - p->ay * p->dy;
    float at_b = -(p->ax + p->dx) * p->dx - (p->ay + p->dy) * p->dy;
    if (at_a + span < 0.0f)
        return 1;
    return at_b - span > 0.0f ? 2 : 0;
}

/** Returns the part of a segment on which its distances from the node's points
 *  depend: one end, or the whole segment. Segments with equal keys have equal
 *  distances from each of these points, so only the first in tie order is kept.
 *  `end` is the result of oj_near_nearest_end(). */
OJ_NEAR_FN struct oj_cuda_segment
oj_near_key_of_segment(int end, const struct oj_cuda_segment s)
{
    struct oj_cuda_segment k = s;
    if (end == 1)
    {
        k.bx = s.ax;
        k.by = s.ay;
    }
    else if (end == 2)
    {
        k.ax = s.bx;
        k.ay = s.by;
    }
    return k;
}

OJ_NEAR_FN int oj_near_keys_equal(const struct oj_cuda_segment *k,
                                  const struct oj_cuda_segment *l)
{
    return (k->ax == l->ax) & (k->ay == l->ay) & (k->bx == l->bx) &
           (k->by == l->by);
}

OJ_NEAR_FN uint32_t oj_near_hash_add(uint32_t hash, double v)
{
    /* -0 becomes 0 */
    uint64_t bits = (uint64_t)__double_as_longlong(v + 0.0);
    hash = hash * 0x9E3779B1u + (uint32_t)bits;
    return hash * 0x85EBCA77u + (uint32_t)(bits >> 32);
}

/** Returns the hash of a key. Equal keys have equal hashes, even if zeros
 *  differ in sign. */
OJ_NEAR_FN uint32_t oj_near_hash(const struct oj_cuda_segment *k)
{
    uint32_t hash = oj_near_hash_add(0x2545F491u, k->ax);
    hash = oj_near_hash_add(hash, k->ay);
    hash = oj_near_hash_add(hash, k->bx);
    hash = oj_near_hash_add(hash, k->by);
    hash = (hash ^ (hash >> 15)) * 0x2C1B3C6Du;
    return hash ^ (hash >> 13);
}

/** Returns 1 if segment i replaces segment j, for equal keys: the lower tie
 *  rank wins, then the lower number. */
OJ_NEAR_FN int oj_near_segment_replaces(int32_t rank_i, int32_t i,
                                        int32_t rank_j, int32_t j)
{
    return rank_i < rank_j || (rank_i == rank_j && i < j);
}

/** Returns the entry of the directory for square ix, iy of a level: the header
 *  of the smallest node that contains the square and is not smaller than it. */
OJ_NEAR_FN struct oj_near_header
oj_near_smallest_node(const struct oj_near_header *tree, uint32_t ix,
                      uint32_t iy, int level)
{
    struct oj_near_header h = tree[0];
    uint32_t bits = (uint32_t)(OJ_NEAR_BITS - level);
    while ((h.info & OJ_NEAR_INNER) && oj_near_shift_of_info(h.info) >= bits)
    {
        uint32_t fan = h.info & 3u, to = oj_near_shift_of_info(h.info) - bits;
        uint32_t rest = (1u << fan) - 1u;
        uint32_t child = (((iy >> to) & rest) << fan) | ((ix >> to) & rest);
        h = tree[h.first + child];
    }
    return h;
}

/* --- leaf or children ----------------------------------------------------- */

/** Makes the square for a join side of n segments in x0 .. x1, y0 .. y1, with
 *  coordinates up to magnitude, for distances up to reach. Returns 0 if numbers
 *  are too large or too small for cells. If reach is large compared with the
 *  join side, points outside of the square are left open, because cells far
 *  from all segments would have long lists. */
OJ_FN int oj_near_square_make(double x0, double y0, double x1, double y1,
                              double magnitude, double reach, int64_t n,
                              struct oj_near_square *out)
{
    double width = x1 - x0 > y1 - y0 ? x1 - x0 : y1 - y0;
    double around = n <= 256 ? 256.0 * (width + magnitude * 9.5e-7)
                             : 0.03125 * width + magnitude * 9.5e-7;
    double need, step;
    int exponent;
    out->has_outside = !(reach <= around);
    if (!out->has_outside)
        around = reach;
    need = (width + 2.0 * around) * 1.000001 + magnitude * 9.5e-7;
    if (!(need > 0.0))
        need = 1.0;
    if (!(need > 1e-20 && need < 1e30 && magnitude < 1e30))
        return 0;
    (void)frexp(need, &exponent);
    out->side = ldexp(1.0, exponent);
    out->finest = ldexp(1.0, exponent - OJ_NEAR_BITS);
    out->per_finest = ldexp(1.0, OJ_NEAR_BITS - exponent);
    out->x0 = 0.5 * x0 + 0.5 * x1 - 0.5 * out->side;
    out->y0 = 0.5 * y0 + 0.5 * y1 - 0.5 * out->side;
    out->reach = reach;
    /* a cell is at least 2^22 steps wide, and a step is 2^-52 of the magnitude
     */
    step = magnitude > out->side ? magnitude / out->side : 1.0;
    out->max_level = OJ_NEAR_BITS - 1;
    while (out->max_level > 0 && step > 1.0)
    {
        step *= 0.5;
        out->max_level--;
    }
    return 1;
}

/** Returns 1 if the squared length of a -> b underflows, or nearly does. The
 *  cells cannot be used for such a segment, because they rely on distances from
 *  its line. */
OJ_FN int oj_near_has_no_length(const struct oj_cuda_segment s)
{
    double dx = s.bx - s.ax, dy = s.by - s.ay;
    return dx * dx + dy * dy < 1e-290 && (s.ax != s.bx || s.ay != s.by);
}

/** Returns 1 if a node becomes a leaf rather than getting fan x fan children.
 *  Its list has node->n segments; `kept` of them are needed by at least one
 *  child, and `sum` counts them once per child. */
OJ_NEAR_FN int oj_near_becomes_leaf(const struct oj_near_square *square,
                                    const struct oj_near_node *node,
                                    uint32_t fan, uint32_t kept, uint64_t sum,
                                    uint32_t leaf_size)
{
    uint64_t full = (uint64_t)node->n * fan * fan;
    int pays = 10 * sum < 8 * full;
    /* the list is nearly short enough for a leaf, and the children's lists
     * would not be much shorter */
    if (kept <= 2 * leaf_size && 10 * sum >= 6 * full)
        return 1;
    if (kept <= leaf_size ||
        node->level + (fan == 4 ? 2 : 1) > square->max_level)
        return 1;
    /* a list that never gets shorter (duplicates) must not be split forever */
    return !pays && ((node->n <= 64 && node->stale >= 2) ||
                     (node->n <= 4096 && node->stale >= 3));
}

OJ_NEAR_FN uint8_t oj_near_count_unpaid_splits(const struct oj_near_node *node,
                                               uint32_t fan, uint64_t sum)
{
    int pays = 10 * sum < 8 * ((uint64_t)node->n * fan * fan);
    return (uint8_t)(pays ? 0 : node->stale + (fan == 4 ? 2 : 1));
}

/* --- entries of leaves: segments clipped to the leaf's box, as integers --- */

/** Scale of a leaf's coordinates. */
struct oj_near_scale
{
    /** Half the width of the box to which segments are clipped. */
    double box;
    double per_unit;   /**< a power of two */
    uint32_t exponent; /**< exponent bits of per_unit in single precision */
};

/** Computes the scale of a leaf. bound is the maximum bound of its children, in
 *  half sides of the node. */
OJ_NEAR_FN struct oj_near_scale
oj_near_scale_make(const struct oj_near_frame *f, float bound)
{
    struct oj_near_scale s;
    float units, per_unit;
    s.box = f->half * (1.001 + (double)bound);
    units = (float)(s.box * 1.0001) * (1.0f / OJ_NEAR_UNITS);
    /* The scale is the inverse of the power of two above units. If the exponent
     * bits of units are e, those of the power are e + 1, and those of its
     * inverse 253 - e (the bias is 127). */
    s.exponent = 253u - (__float_as_uint(units) >> 23);
    per_unit = __uint_as_float(s.exponent << 23);
    s.per_unit = (double)per_unit;
    return s;
}

OJ_NEAR_FN uint32_t oj_near_round_to_16_bits(double v)
{
    int32_t i = (int32_t)(v < 0.0 ? v - 0.5 : v + 0.5);
    return (uint32_t)i & 0xFFFFu;
}

/** Clips one coordinate of a segment, a + t d for t from 0 to 1: reduces t0 ..
 *  t1 to the t with |a + t d| <= box, widened by 2^-20 on each side. t1 < t0 if
 *  there is no such t. Because of rounding, less than 2^-22 of the box (2^-7
 *  units) may be missing at an end. */
OJ_NEAR_FN void oj_near_clip_interval(float a, float d, float box, float *t0,
                                      float *t1)
{
    float low, high, swap;
    if (d == 0.0f)
    {
        if (fabsf(a) > box * 1.00001f)
            *t1 = -1.0f;
        return;
    }
    low = __fdividef(-box - a, d);
    high = __fdividef(box - a, d);
    swap = fminf(low, high);
    high = fmaxf(low, high);
    *t0 = fmaxf(*t0, swap - 9.5367432e-7f);
    *t1 = fminf(*t1, high + 9.5367432e-7f);
}

/** Like oj_near_clip_interval(), in double precision, for segments that are
 * long compared with the box. */
OJ_NEAR_FN void oj_near_clip_long(double a, double d, double box, float *t0,
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

/** Returns the entry of a segment: the ends of its part inside the box, rounded
 *  to units. A segment outside of the box may be in the list because of
 *  rounding; its entry is a corner of the box, which is farther from the cell
 *  than the nearest segment and so never the answer. */
OJ_NEAR_FN uint64_t oj_near_entry_of_segment(const struct oj_near_frame *f,
                                             const struct oj_near_scale *s,
                                             struct oj_cuda_segment of)
{
    double from = 0.0, to = 1.0, dx, dy;
    float t0 = 0.0f, t1 = 1.0f, box = (float)s->box;
    double ax = (of.ax - f->x0) - f->cx, ay = (of.ay - f->y0) - f->cy;
    double bx = (of.bx - f->x0) - f->cx, by = (of.by - f->y0) - f->cy;
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
            oj_near_clip_interval((float)ax, (float)dx, box, &t0, &t1);
            oj_near_clip_interval((float)ay, (float)dy, box, &t0, &t1);
            from = (double)t0;
            to = (double)t1;
        }
        if (!(t0 <= t1))
            return oj_near_pack_words(0x7FFF7FFFu, 0x7FFF7FFFu);
        bx = to < 1.0 ? ax + to * dx : bx;
        by = to < 1.0 ? ay + to * dy : by;
        ax = ax + from * dx;
        ay = ay + from * dy;
    }
    return oj_near_pack_words(
        oj_near_round_to_16_bits(ax * s->per_unit) |
            (oj_near_round_to_16_bits(ay * s->per_unit) << 16),
        oj_near_round_to_16_bits(bx * s->per_unit) |
            (oj_near_round_to_16_bits(by * s->per_unit) << 16));
}

/** Factors that convert the coordinates of a piece to those of a leaf: units *
 *  (v - middle). The leaf is the piece's node or one of its children. */
struct oj_near_units
{
    /** Middle of the leaf, in the node's coordinates. */
    float middle_x, middle_y;
    float units; /**< a power of two */
    /** Half width of the leaf's box, slightly reduced. */
    float box;
};

OJ_NEAR_FN struct oj_near_units
oj_near_leaf_units_make(const struct oj_near_frame *node,
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

OJ_NEAR_FN uint32_t oj_near_round_float_to_16_bits(float v)
{
    int32_t i = (int32_t)(v < 0.0f ? v - 0.5f : v + 0.5f);
    return (uint32_t)i & 0xFFFFu;
}

/** Like oj_near_entry_of_segment(), in single precision; returns 0 if the piece
 * extends beyond the box. Coordinates are at most two boxes, 2^16 units, from
 * the leaf's middle, so each of at most five roundings is below 2^-9 of a unit,
 *  and the error of b in total below 2^-7. */
OJ_NEAR_FN int oj_near_entry_of_piece(const struct oj_near_piece *p,
                                      const struct oj_near_units *u,
                                      uint64_t *entry)
{
    float ax = p->ax - u->middle_x, ay = p->ay - u->middle_y;
    float bx = ax + p->dx, by = ay + p->dy;
    float size =
        fmaxf(fmaxf(fabsf(ax), fabsf(ay)), fmaxf(fabsf(bx), fabsf(by)));
    if (!(size <= u->box))
        return 0;
    *entry = oj_near_pack_words(
        oj_near_round_float_to_16_bits(ax * u->units) |
            (oj_near_round_float_to_16_bits(ay * u->units) << 16),
        oj_near_round_float_to_16_bits(bx * u->units) |
            (oj_near_round_float_to_16_bits(by * u->units) << 16));
    return 1;
}

/* --- start below the root ------------------------------------------------- */

/* If the reach is small compared with the nodes, a list contains all segments
 * in reach. So the build can start with the cells of a lower level: a segment
 * is put into all cells that its box, widened by the reach, intersects. A
 * cell's number is its path down the tree, four bits for two levels: the
 * children of a node are consecutive. */

/** Minimum number of segments per start cell, and minimum side of a cell in
 *  units of the reach. */
#define OJ_NEAR_START_SEGMENTS 3
#define OJ_NEAR_START_REACHES 2.5

/** Returns the start level, an even number; 0 or 2 means that a start below the
 *  root does not pay. */
OJ_FN int oj_near_start_level(const struct oj_near_square *square, int64_t n)
{
    int level = 0;
    while (level + 6 <= square->max_level && level < 12 &&
           ldexp(square->side, -level - 2) >=
               OJ_NEAR_START_REACHES * square->reach &&
           ((int64_t)OJ_NEAR_START_SEGMENTS << (2 * (level + 2))) <= n)
        level += 2;
    return level;
}

/** Returns the width by which a segment's box is enlarged: the reach and the
 *  rounding of coordinates. */
OJ_FN double oj_near_start_widen(const struct oj_near_square *square, int level)
{
    return square->reach * 1.000001 + ldexp(square->side, -level - 12);
}

/** Cells first .. last of a row or column. */
struct oj_near_cells_of
{
    uint32_t first, last;
};

/** Returns the cells that the interval low .. high intersects; the interval is
 *  relative to the corner of the square. */
OJ_NEAR_FN struct oj_near_cells_of
oj_near_start_cells_of_interval(int level, double per_cell, double widen,
                                double low, double high)
{
    struct oj_near_cells_of cells;
    double last = (double)((1u << level) - 1u);
    low = (low - widen) * per_cell;
    high = (high + widen) * per_cell;
    cells.first = (uint32_t)fmin(fmax(low, 0.0), last);
    cells.last = (uint32_t)fmin(fmax(high, 0.0), last);
    return cells;
}

OJ_NEAR_FN uint32_t oj_near_start_cell(int level, uint32_t ix, uint32_t iy)
{
    uint32_t cell = 0;
    int shift;
    for (shift = level - 2; shift >= 0; shift -= 2)
        cell = (cell << 4) | (((iy >> shift) & 3u) << 2) | ((ix >> shift) & 3u);
    return cell;
}

/** Returns the number of headers of all levels above a level; the headers of
 *  its cells follow them. */
OJ_FN uint32_t oj_near_start_headers_above(int level)
{
    return ((1u << (2 * level)) - 1u) / 15u;
}

/** Returns the tree node of a start cell (numbered as by oj_near_start_cell())
 *  with n segments. Its `first` is 0: the caller sets it when the list has a
 *  place. */
OJ_NEAR_FN struct oj_near_node oj_near_start_node(int level, uint32_t cell,
                                                  uint32_t n)
{
    struct oj_near_node node;
    int digit;
    node.first = 0;
    node.n = n;
    node.ix = node.iy = 0;
    for (digit = 0; digit < level / 2; digit++)
    {
        uint32_t way = cell >> (4 * digit);
        node.ix |= (way & 3u) << (2 * digit);
        node.iy |= ((way >> 2) & 3u) << (2 * digit);
    }
    node.header = oj_near_start_headers_above(level) + cell;
    node.level = (uint8_t)level;
    node.stale = 0;
    return node;
}

/** Returns header i, of a node above the level of the start cells. */
OJ_FN struct oj_near_header oj_near_start_header(uint32_t i)
{
    struct oj_near_header h;
    int level = 0;
    while (i >= oj_near_start_headers_above(level + 2))
        level += 2;
    h.first = oj_near_start_headers_above(level + 2) +
              16u * (i - oj_near_start_headers_above(level));
    h.info = oj_near_inner_info(level + 2, 2);
    return h;
}

#endif
