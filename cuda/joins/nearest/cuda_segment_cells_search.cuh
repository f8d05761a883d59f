/** Finds the nearest segment of a point by the cells of a quadtree in a square.
 *
 *  A leaf of the tree lists every segment that can be nearest to one of its
 *  points (cuda_segment_cells_bounds.cuh makes the lists). Each segment is
 *  stored as four small integers relative to the middle of the cell, and by its
 *  number:
 *
 *  directory [4^level]   header of the smallest node around each of its squares
 *  tree      headers; the children of a node are consecutive, row by row
 *  pool      a leaf of n segments begins at word first (words of 8 bytes)
 *            [ a b | a b | ... ]  n entries, rounded up to an even number
 *            [ segment rank | ... ]  n pairs
 *
 *  A query measures the entries in single precision, in units of the cell's
 *  scale. It then measures the best entry, and those too close to it to be
 *  ruled out, exactly by oj_segment_distance().
 *
 *  Error bound. Let B be half the width of the box around the cell to which the
 *  leaf's segments are clipped: the nearest point of the nearest segment
 *  is inside. B is at most 32,000 units.
 *   - Rounding to integers moves the ends of an entry by at most 1/2 per axis,
 *     single precision before that by 2^-7: below 0.7183 in distance.
 *   - p, at most B, is rounded to single precision: 2^-9 units per axis.
 *   - w = p - a and the steps of the dot product have relative errors of a few
 *     2^-24; the quotient t, times the length, is then off by less than
 *     |w| 2^-21 <= 2^-4.5 units. If the foot of p lies between the ends, that
 *     error is along the segment; its effect is below 2^-4.5, also at the ends.
 *   - w - t d and its square are rounded by less than 2^-6 units.
 *  So a distance is off by less than e = 0.7183 + 0.004 + 0.045 + 0.016 < 0.79
 *  units, with or without fused operations. The number of the entry replaces
 *  the last 6 bits of the squared distance, which changes it by up to 2^-17 of
 *  it, and the distance (at most 32,000 units) by less than 0.123 units, once
 *  for the best entry and once for the other. So the nearest segment is at most
 *  2 e + 2 * 0.123 < 1.83 units behind the best entry. OJ_NEAR_CLOSE exceeds
 *  that by more than the rounding of double precision, below 2^-6 units, since
 *  a cell is at least 2^22 steps of a coordinate wide.
 *
 *  Source: ours.
 */
#ifndef CUDA_SEGMENT_CELLS_SEARCH_CUH
#define CUDA_SEGMENT_CELLS_SEARCH_CUH

#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../../foundations/device/oj_segment_record.h"

/** Qualifiers of a device function. */
#define OJ_NEAR_FN static __device__ __forceinline__

/** The side of the square is 2^OJ_NEAR_BITS of the finest steps. */
#define OJ_NEAR_BITS 30
#define OJ_NEAR_CLOSE 2.0f
/** Maximum length of a list that is measured in one pass. */
#define OJ_NEAR_SHORT 64u
/** Number of entries that are loaded before the first one is measured, so that
 *  a point waits only once for memory. */
#define OJ_NEAR_STEP 8u
/** Maximum half width of a leaf's box, in units. */
#define OJ_NEAR_UNITS 32000.0f

/** Special ranks. OJ_NEAR_NONE stands for no feature. OJ_NEAR_OPEN means that
 *  the cells cannot answer the point: it is outside of the square or, in a
 *  query with ties, several features may be equally near. */
#define OJ_NEAR_NONE (-1)
#define OJ_NEAR_OPEN (-2)

/** Marks in a tree with ties: SHARED in the number of a segment in a list, TIED
 *  in its rank in a leaf. They mean that the segment replaces an equal segment
 *  of another feature. TIED in the rank of a polygon around a point means that
 *  other polygons contain the point, too. */
#define OJ_NEAR_SHARED 0x80000000u
#define OJ_NEAR_TIED 0x40000000

/** The square that the tree divides. side and finest are powers of two, so that
 *  multiplying by them, or by their inverses, is exact. */
struct oj_near_square
{
    double x0, y0, side;
    double finest, per_finest; /**< side / 2^OJ_NEAR_BITS, and its inverse */
    double reach;              /**< maximum distance of a match */
    int max_level;             /**< deepest level */
    int has_outside; /**< 1: points outside of the square may have a nearest
                          segment */
};

/** A node: a leaf or an inner node. Arrays of headers, of words of the pool and
 *  of segments are aligned to 16 bytes. */
struct oj_near_header
{
    /** Leaf: first word in the pool; inner node: header of the first child. */
    uint32_t first;
    uint32_t info;
};

/* Layout of `info`, from the top bit on:
 *   leaf        | 0 | 4 unused | 8 exponent | 5 shift | 14 count |
 *   inner node  | 1 | ...                   | 5 shift | ... | 2 fan |
 * shift is OJ_NEAR_BITS - level; for an inner node, the level is that of its
 * children, of which it has 2^fan per row. */
#define OJ_NEAR_INNER 0x80000000u
/** If a leaf has this many segments or more, their number is in its first word.
 */
#define OJ_NEAR_COUNT 0x3FFFu

OJ_FN uint32_t oj_near_leaf_info(uint32_t n, int level, uint32_t exponent)
{
    uint32_t count = n < OJ_NEAR_COUNT ? n : OJ_NEAR_COUNT;
    return count | ((uint32_t)(OJ_NEAR_BITS - level) << 14) | (exponent << 19);
}

OJ_FN uint32_t oj_near_inner_info(int child_level, uint32_t fan)
{
    return OJ_NEAR_INNER | ((uint32_t)(OJ_NEAR_BITS - child_level) << 14) | fan;
}

OJ_FN uint32_t oj_near_shift_of_info(uint32_t info)
{
    return (info >> 14) & 31u;
}

/** Returns the number of words of the pool for a leaf of n segments; even. */
OJ_FN uint32_t oj_near_words_of_leaf(uint32_t n)
{
    uint32_t even = (n + 1u) & ~1u;
    return 2u * even + (n >= OJ_NEAR_COUNT ? 2u : 0u);
}

struct oj_near_two
{
    uint32_t a0, b0, a1, b1; /**< ends of two entries, x in the low half */
};

struct oj_near_pair
{
    int32_t segment, rank;
};

/** Arrays that a query reads. */
struct oj_near_view
{
    struct oj_near_square square;
    int directory_level;
    const struct oj_near_header *directory, *tree;
    const uint64_t *pool;
    const struct oj_cuda_segment *segment;
};

/* --- loads ---------------------------------------------------------------- */

OJ_NEAR_FN struct oj_near_header
oj_near_load_header(const struct oj_near_header *at)
{
    uint2 v = __ldg((const uint2 *)at);
    struct oj_near_header h = {v.x, v.y};
    return h;
}

OJ_NEAR_FN struct oj_near_two oj_near_load_two_entries(const uint64_t *at)
{
    uint4 v = __ldg((const uint4 *)at);
    struct oj_near_two two = {v.x, v.y, v.z, v.w};
    return two;
}

OJ_NEAR_FN struct oj_near_pair oj_near_load_segment_and_rank(const uint64_t *at)
{
    struct oj_near_pair pair;
    uint2 v = __ldg((const uint2 *)at);
    pair.segment = (int32_t)v.x;
    pair.rank = (int32_t)v.y;
    return pair;
}

OJ_NEAR_FN uint64_t oj_near_pack_words(uint32_t low, uint32_t high)
{
    return (uint64_t)low | ((uint64_t)high << 32);
}

/** Loads segment i. */
OJ_NEAR_FN struct oj_cuda_segment
oj_near_load_segment(const struct oj_cuda_segment *segment, int32_t i)
{
    const double2 *at = (const double2 *)(segment + i);
    double2 a = __ldg(at), b = __ldg(at + 1);
    struct oj_cuda_segment s = {a.x, a.y, b.x, b.y};
    return s;
}

/** Returns the result of oj_segment_distance(), bit for bit, with one root and
 *  at most one division, for segments with oj_near_has_no_length() == 0.
 *    - That function compares the rounded quotient r = dot / length2 with
 *      0 and 1. r is >= 1 exactly if dot >= length2: otherwise dot is at
 *      least one step below, and the quotient at most 1 - 2^-53. For
 *      dot > 0, r is 0 only by underflow, which is tested.
 *    - Its (ay - py) dx - (ax - px) dy is the cross product here with the
 *      opposite sign; rounding is symmetric about 0. */
OJ_NEAR_FN double oj_near_distance(struct oj_cuda_segment e, double px,
                                   double py)
{
    double dx = e.bx - e.ax, dy = e.by - e.ay;
    double vx = px - e.ax, vy = py - e.ay;
    double length2 = dx * dx + dy * dy;
    double dot = vx * dx + vy * dy;
    double cross = vx * dy - vy * dx;
    int at_a = dot <= 0.0 || (dot < 1e-300 * length2 && dot / length2 <= 0.0);
    int at_end = at_a || dot >= length2;
    double ex = at_a ? vx : px - e.bx;
    double ey = at_a ? vy : py - e.by;
    double root = sqrt(at_end ? ex * ex + ey * ey : length2);
    return at_end ? root : fabs(cross / length2) * root;
}

/** Returns the distance from p to segment s, as oj_segment_distance() computes
 *  it. */
OJ_NEAR_FN double oj_near_exact_distance(const struct oj_cuda_segment *segment,
                                         int32_t s, double px, double py)
{
    return oj_near_distance(oj_near_load_segment(segment, s), px, py);
}

/* --- single precision: relative errors of 2^-22 do not matter here -------- */

OJ_NEAR_FN float oj_near_low_half(uint32_t v)
{
    return (float)(int16_t)(uint16_t)(v & 0xFFFFu);
}

OJ_NEAR_FN float oj_near_high_half(uint32_t v)
{
    return (float)((int32_t)v >> 16);
}

/** Returns the squared distance of p from an entry, in squared units of its
 *  leaf. */
OJ_NEAR_FN float oj_near_entry_distance2(uint32_t a, uint32_t b, float px,
                                         float py)
{
    float ax = oj_near_low_half(a), ay = oj_near_high_half(a);
    float dx = oj_near_low_half(b) - ax, dy = oj_near_high_half(b) - ay;
    float wx = px - ax, wy = py - ay;
    float length2 = __fmaf_rn(dx, dx, dy * dy);
    float dot = __fmaf_rn(wx, dx, wy * dy);
    /* lengths are integers: if the length is 0, dot is 0, too */
    float t = __fdividef(dot, fmaxf(length2, 1.0f));
    t = fminf(fmaxf(t, 0.0f), 1.0f);
    wx = __fmaf_rn(-t, dx, wx);
    wy = __fmaf_rn(-t, dy, wy);
    return __fmaf_rn(wx, wx, wy * wy);
}

/* --- the query ------------------------------------------------------------ */

struct oj_near_best
{
    double distance; /**< INFINITY: no candidate yet */
    int32_t rank;
    int tied; /**< 1: others may be equally near; set only in trees with ties */
};

/** Replaces the best by a candidate that is nearer, or as near with a smaller
 *  rank. NaN is never nearer. */
OJ_NEAR_FN void oj_near_keep_nearer(struct oj_near_best *best, double distance,
                                    int32_t rank)
{
    int wins = (distance < best->distance) |
               ((distance == best->distance) & (rank < best->rank));
    best->distance = wins ? distance : best->distance;
    best->rank = wins ? rank : best->rank;
}

/** Like oj_near_keep_nearer(). If ties is 1, rank may have the mark
 *  OJ_NEAR_TIED, and best->tied is set if other features may be as near as the
 *  best one. */
OJ_NEAR_FN void oj_near_keep_nearer_with_ties(struct oj_near_best *best,
                                              double distance, int32_t rank,
                                              int ties)
{
    if (ties)
    {
        int shared = (rank & OJ_NEAR_TIED) != 0;
        rank &= ~OJ_NEAR_TIED;
        if (distance < best->distance)
            best->tied = shared;
        else if (distance == best->distance)
            best->tied |= shared | (rank != best->rank);
    }
    oj_near_keep_nearer(best, distance, rank);
}

/** A leaf, and the position of the query point in it. */
struct oj_near_leaf
{
    const uint64_t *entry, *pair;
    uint32_t n;
    float px, py; /**< the point in units, relative to the middle of the leaf */
};

/** Measures exactly every entry whose squared distance in single precision is
 *  at most limit2, and keeps the nearest one in *best. */
OJ_NEAR_FN void oj_near_measure_close_entries(const struct oj_near_view *v,
                                              const struct oj_near_leaf *leaf,
                                              float limit2, double x, double y,
                                              int ties,
                                              struct oj_near_best *best)
{
    uint32_t i;
    for (i = 0; i < leaf->n; i++)
    {
        struct oj_near_pair at = oj_near_load_segment_and_rank(leaf->entry + i);
        struct oj_near_pair pair;
        if (!(oj_near_entry_distance2((uint32_t)at.segment, (uint32_t)at.rank,
                                      leaf->px, leaf->py) <= limit2))
            continue;
        pair = oj_near_load_segment_and_rank(leaf->pair + i);
        oj_near_keep_nearer_with_ties(
            best, oj_near_exact_distance(v->segment, pair.segment, x, y),
            pair.rank, ties);
    }
}

/** Returns the squared distance up to which an entry may be as near as the best
 *  entry, whose squared distance is best2. */
OJ_NEAR_FN float oj_near_close_limit2(float best2)
{
    float limit = sqrtf(best2) + OJ_NEAR_CLOSE;
    return limit * limit;
}

OJ_NEAR_FN void oj_near_measure_long_leaf(const struct oj_near_view *v,
                                          const struct oj_near_leaf *leaf,
                                          double x, double y, int ties,
                                          struct oj_near_best *best)
{
    float least2 = INFINITY;
    uint32_t i;
    for (i = 0; i < leaf->n; i++)
    {
        struct oj_near_pair at = oj_near_load_segment_and_rank(leaf->entry + i);
        least2 = fminf(least2, oj_near_entry_distance2((uint32_t)at.segment,
                                                       (uint32_t)at.rank,
                                                       leaf->px, leaf->py));
    }
    oj_near_measure_close_entries(
        v, leaf, oj_near_close_limit2(best->rank < 0 ? least2 : 0), x, y, ties,
        best);
}

/** The three smallest keys so far. A key is a squared distance whose last bits
 *  hold the number of the entry. */
struct oj_near_keys
{
    uint32_t first, second, third;
};

OJ_NEAR_FN uint32_t oj_near_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

OJ_NEAR_FN uint32_t oj_near_max(uint32_t a, uint32_t b)
{
    return a < b ? b : a;
}

OJ_NEAR_FN void oj_near_keys_keep_three_least(struct oj_near_keys *keys,
                                              float distance2, uint32_t i)
{
    uint32_t key = (__float_as_uint(distance2) & ~(OJ_NEAR_SHORT - 1u)) | i;
    uint32_t behind = oj_near_max(keys->first, key);
    keys->first = oj_near_min(keys->first, key);
    keys->third = oj_near_min(keys->third, oj_near_max(keys->second, behind));
    keys->second = oj_near_min(keys->second, behind);
}

/** Adds the keys of entry i and, if the leaf has it, of entry i + 1. */
OJ_NEAR_FN void oj_near_add_two_entries(struct oj_near_keys *keys,
                                        const struct oj_near_two *two,
                                        const struct oj_near_leaf *leaf,
                                        uint32_t i)
{
    oj_near_keys_keep_three_least(
        keys, oj_near_entry_distance2(two->a0, two->b0, leaf->px, leaf->py), i);
    if (i + 1 < leaf->n)
        oj_near_keys_keep_three_least(
            keys, oj_near_entry_distance2(two->a1, two->b1, leaf->px, leaf->py),
            i + 1);
}

/** Measures entry `first` and, if n is 2, entry `second` exactly, and keeps the
 *  nearer one in *best. Loads both before it measures one. */
OJ_NEAR_FN void oj_near_measure_two_entries(const struct oj_near_view *v,
                                            const struct oj_near_leaf *leaf,
                                            uint32_t first, uint32_t second,
                                            uint32_t n, double x, double y,
                                            int ties, struct oj_near_best *best)
{
    struct oj_near_pair one = oj_near_load_segment_and_rank(leaf->pair + first),
                        two = one;
    struct oj_cuda_segment s, t;
    if (n > 1)
        two = oj_near_load_segment_and_rank(leaf->pair + second);
    s = oj_near_load_segment(v->segment, one.segment);
    t = s;
    if (n > 1)
        t = oj_near_load_segment(v->segment, two.segment);
    oj_near_keep_nearer_with_ties(best, oj_near_distance(s, x, y), one.rank,
                                  ties);
    if (n > 1)
        oj_near_keep_nearer_with_ties(best, oj_near_distance(t, x, y), two.rank,
                                      ties);
}

OJ_NEAR_FN void oj_near_measure_short_leaf(const struct oj_near_view *v,
                                           const struct oj_near_leaf *leaf,
                                           double x, double y, int ties,
                                           struct oj_near_best *best)
{
    const uint32_t far = 0x7F800000u; /* infinity */
    struct oj_near_keys keys;
    uint32_t i, limit, n_close;
    keys.first = keys.second = keys.third = far;
    for (i = 0; i < leaf->n; i += OJ_NEAR_STEP)
    {
        struct oj_near_two two[OJ_NEAR_STEP / 2];
        uint32_t k;
#pragma unroll
        for (k = 0; k < OJ_NEAR_STEP / 2; k++)
        {
            if (i + 2 * k < leaf->n)
                two[k] = oj_near_load_two_entries(leaf->entry + i + 2 * k);
        }
#pragma unroll
        for (k = 0; k < OJ_NEAR_STEP / 2; k++)
        {
            if (i + 2 * k < leaf->n)
                oj_near_add_two_entries(&keys, &two[k], leaf, i + 2 * k);
        }
    }
    /* if the point is in a polygon, only features at distance 0 matter */
    limit = __float_as_uint(oj_near_close_limit2(
        best->rank < 0 ? __uint_as_float(keys.first & ~(OJ_NEAR_SHORT - 1u))
                       : 0.0f));
    if (keys.third <= limit)
    {
        oj_near_measure_close_entries(v, leaf, __uint_as_float(limit) * 1.0001f,
                                      x, y, ties, best);
        return;
    }
    n_close = (uint32_t)(keys.first <= limit) + (keys.second <= limit);
    if (n_close > 0)
        oj_near_measure_two_entries(v, leaf, keys.first & (OJ_NEAR_SHORT - 1u),
                                    keys.second & (OJ_NEAR_SHORT - 1u), n_close,
                                    x, y, ties, best);
}

/** Returns the header of the leaf that contains a location, given in finest
 *  steps. */
OJ_NEAR_FN struct oj_near_header oj_near_find_leaf(const struct oj_near_view *v,
                                                   uint32_t ix, uint32_t iy)
{
    int shift = OJ_NEAR_BITS - v->directory_level;
    struct oj_near_header h = oj_near_load_header(
        v->directory +
        (((int64_t)(iy >> shift) << v->directory_level) | (ix >> shift)));
    while (h.info & OJ_NEAR_INNER)
    {
        uint32_t fan = h.info & 3u, to = oj_near_shift_of_info(h.info);
        uint32_t rest = (1u << fan) - 1u;
        uint32_t child = (((iy >> to) & rest) << fan) | ((ix >> to) & rest);
        h = oj_near_load_header(v->tree + h.first + child);
    }
    return h;
}

/** Returns a leaf, set up for the point at dx, dy from the corner of the
 *  square; ix, iy are this position in finest steps. */
OJ_NEAR_FN struct oj_near_leaf oj_near_leaf_open(const struct oj_near_view *v,
                                                 struct oj_near_header h,
                                                 double dx, double dy,
                                                 uint32_t ix, uint32_t iy)
{
    struct oj_near_leaf leaf;
    uint32_t shift = oj_near_shift_of_info(h.info);
    uint32_t middle = 1u << (shift - 1u);
    /* the header has the exponent bits of per_unit */
    float per_unit = __uint_as_float(((h.info >> 19) & 0xFFu) << 23);
    leaf.entry = v->pool + h.first;
    leaf.n = h.info & OJ_NEAR_COUNT;
    if (leaf.n == OJ_NEAR_COUNT)
    {
        leaf.n = (uint32_t)leaf.entry[0];
        leaf.entry += 2;
    }
    leaf.pair = leaf.entry + ((leaf.n + 1u) & ~1u);
    ix = ((ix >> shift) << shift) | middle;
    iy = ((iy >> shift) << shift) | middle;
    leaf.px = (float)(dx - (double)ix * v->square.finest) * per_unit;
    leaf.py = (float)(dy - (double)iy * v->square.finest) * per_unit;
    return leaf;
}

/** Returns the rank of the nearest feature within reach of (x, y) and sets
 *  *distance, or returns OJ_NEAR_NONE. Returns OJ_NEAR_OPEN if the cells cannot
 *  answer: *distance is then that of a tie, or NaN if the point is outside of
 *  the square. `around` is the smallest rank of the polygons that contain the
 *  point, and so have distance 0; it is OJ_NEAR_NONE if there is no such
 *  polygon or only boundaries count. If ties is 1 (only in a tree with ties),
 *  points with several features that may be equally near are open. */
OJ_NEAR_FN int32_t oj_near_nearest_of_point(const struct oj_near_view *v,
                                            double x, double y, int32_t around,
                                            int ties, double *distance)
{
    double dx = x - v->square.x0, dy = y - v->square.y0;
    struct oj_near_header h;
    struct oj_near_leaf leaf;
    struct oj_near_best best;
    uint32_t ix, iy;
    if (!(dx >= 0.0 && dx < v->square.side && dy >= 0.0 && dy < v->square.side))
    {
        *distance = NAN;
        return OJ_NEAR_OPEN;
    }
    *distance = 0.0; /* 0 if a polygon contains the point */
    if (ties && around >= 0 && (around & OJ_NEAR_TIED) != 0)
        return OJ_NEAR_OPEN;
    ix = (uint32_t)(dx * v->square.per_finest);
    iy = (uint32_t)(dy * v->square.per_finest);
    h = oj_near_find_leaf(v, ix, iy);
    if ((h.info & OJ_NEAR_COUNT) == 0)
        return around;
    leaf = oj_near_leaf_open(v, h, dx, dy, ix, iy);
    best.distance = around < 0 ? INFINITY : 0.0;
    best.rank = around;
    best.tied = 0;
    if (leaf.n > OJ_NEAR_SHORT)
        oj_near_measure_long_leaf(v, &leaf, x, y, ties, &best);
    else
        oj_near_measure_short_leaf(v, &leaf, x, y, ties, &best);
    if (!(best.distance <= v->square.reach) || best.rank < 0)
        return OJ_NEAR_NONE;
    *distance = best.distance;
    return ties && best.tied ? OJ_NEAR_OPEN : best.rank;
}

#endif
