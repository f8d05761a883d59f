/** The nearest segment of a point, by cells of a quadtree over a square.
 *
 *  A leaf of the tree lists every segment that can be nearest to some point of
 *  it (cuda_near_cell_split_math.cuh makes the lists), as four small integers
 * relative to the middle of the cell and as the number of the segment:
 *
 *  directory [4^level]   header of the smallest node around each of its squares
 *  tree      headers; the children of a node follow each other, row by row
 *  pool      a leaf of n segments, from word first on (words of 8 bytes)
 *            [ a b | a b | ... ]  n entries, rounded up to an even number
 *            [ segment rank | ... ]  n pairs
 *
 *  A query measures the entries in single precision, in units of the cell's
 *  scale, and then measures exactly, by oj_segment_distance(), the best and
 *  those that are too close to it to tell.
 *
 *  How close that is.  Let B be half the width of the box around the cell that
 *  the leaf's coordinates are clipped to: no nearest point of a segment that
 *  wins lies beyond it.  B is at most 32,000 units.
 *   - rounding to integers moves the ends of an entry by at most 1/2 in each
 *     axis, and single precision before that by 2^-7: below 0.7183 in distance;
 *   - p, at most B, is rounded to single precision, 2^-9 units in each axis;
 *   - w = p - a and the steps of the dot product have relative errors of a few
 *     2^-24; the quotient t, times the length, is then off by less than
 *     |w| 2^-21 <= 2^-4.5 units; where the foot of p lies between the ends that
 *     is to the side and matters by less than 2^-4.5, at the ends likewise;
 *   - what remains, w - t d and its square, rounds by less than 2^-6 units.
 *  So a distance is off by less than e = 0.7183 + 0.004 + 0.045 + 0.016 < 0.79
 *  units, with or without fused operations.  The number of the entry replaces
 *  the last 6 bits of the squared distance, which moves it by up to 2^-17 of
 *  it, the distance (32,000 units at most) by less than 0.123 units, once for
 *  the best and once for the other.  The nearest is at most 2 e + 2 * 0.123 <
 *  1.83 units behind the best; OJ_NEAR_CLOSE is more than that by more than the
 *  rounding of double precision, below 2^-6 units, since cells are never
 *  narrower than 2^22 steps of a coordinate.
 *
 *  Source: ours; upper bounds of cells as in the research notes of the design.
 */
#ifndef CUDA_NEAREST_SEGMENT_CELL_CUH
#define CUDA_NEAREST_SEGMENT_CELL_CUH

#include "../../../algs/foundations/kernels/oj_segment.h"
#include "../../foundations/device/oj_segment_record.h"

/** A function of the device alone. */
#define OJ_NEAR_FN static __device__ __forceinline__

/** The square is 2^OJ_NEAR_BITS of the finest steps wide. */
#define OJ_NEAR_BITS 30
#define OJ_NEAR_CLOSE 2.0f
/** Lists up to this long are measured in one go. */
#define OJ_NEAR_SHORT 64u
/** So many entries are fetched before the first of them is measured: a point
 *  waits for memory once, then. */
#define OJ_NEAR_STEP 8u
/** Units that the box of a leaf is wide at most, to each side. */
#define OJ_NEAR_UNITS 32000.0f

/** No feature; the tree does not know: the point is outside of the square, or,
 *  where ties are asked for, several features may be as near. */
#define OJ_NEAR_NONE (-1)
#define OJ_NEAR_OPEN (-2)

/** Where ties are asked for: a bit of the number of a segment in a list, and of
 *  the rank in a leaf, of those that stand for a segment of another feature;
 *  of the rank of what is around a point, when others are around it, too. */
#define OJ_NEAR_SHARED 0x80000000u
#define OJ_NEAR_TIED 0x40000000

/** Where the tree lies. side and finest are powers of two, so what is
 *  multiplied by them or their inverses stays exact. */
struct oj_near_square
{
    double x0, y0, side;
    double finest, per_finest; /**< side / 2^OJ_NEAR_BITS, and its inverse */
    double reach;              /**< greatest distance that counts */
    int max_level;             /**< no cells below this */
    int has_outside; /**< 1: points outside may have a nearest segment */
};

/** A node: a leaf, or the place of its children. Arrays of these, of words of
 *  the pool and of segments are aligned to 16 bytes. */
struct oj_near_header
{
    uint32_t first; /**< in the pool, or header of the first child */
    uint32_t info;
};

/* info of a leaf:       | 0 | 4 unused | 8 exponent | 5 shift | 14 count |
 * info of an inner node:| 1 | ...      |            | 5 shift | ... | 2 fan |
 * shift: OJ_NEAR_BITS - level, of an inner node that of its children, of which
 * it has 2^fan a row. */
#define OJ_NEAR_INNER 0x80000000u
#define OJ_NEAR_COUNT 0x3FFFu /**< this many or more: see the first word */

OJ_FN uint32_t oj_near_leaf_info(uint32_t n, int level, uint32_t exponent)
{
    uint32_t count = n < OJ_NEAR_COUNT ? n : OJ_NEAR_COUNT;
    return count | ((uint32_t)(OJ_NEAR_BITS - level) << 14) | (exponent << 19);
}

OJ_FN uint32_t oj_near_inner_info(int child_level, uint32_t fan)
{
    return OJ_NEAR_INNER | ((uint32_t)(OJ_NEAR_BITS - child_level) << 14) | fan;
}

OJ_FN uint32_t oj_near_shift(uint32_t info)
{
    return (info >> 14) & 31u;
}

/** Words of the pool that a leaf of n segments takes; even. */
OJ_FN uint32_t oj_near_words(uint32_t n)
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

/** What a query reads. */
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

OJ_NEAR_FN struct oj_near_two oj_near_load_two(const uint64_t *at)
{
    uint4 v = __ldg((const uint4 *)at);
    struct oj_near_two two = {v.x, v.y, v.z, v.w};
    return two;
}

OJ_NEAR_FN struct oj_near_pair oj_near_load_pair(const uint64_t *at)
{
    struct oj_near_pair pair;
    uint2 v = __ldg((const uint2 *)at);
    pair.segment = (int32_t)v.x;
    pair.rank = (int32_t)v.y;
    return pair;
}

OJ_NEAR_FN uint64_t oj_near_pack(uint32_t low, uint32_t high)
{
    return (uint64_t)low | ((uint64_t)high << 32);
}

/** Segment number i. */
OJ_NEAR_FN struct oj_cuda_segment
oj_near_load_segment(const struct oj_cuda_segment *segment, int32_t i)
{
    const double2 *at = (const double2 *)(segment + i);
    double2 a = __ldg(at), b = __ldg(at + 1);
    struct oj_cuda_segment s = {a.x, a.y, b.x, b.y};
    return s;
}

/** oj_segment_distance(), bit for bit, with one root and at most one division,
 *  for segments that are not lost (oj_near_is_lost()).
 *   - The quotient r there is at least 1 when rounded just when dot >= length2:
 *     else dot is a step or more below it, and the quotient at most 1 - 2^-53.
 *     It is 0 for a dot above 0 only by underflow, which is looked at.
 *   - (ay - py) dx - (ax - px) dy is the cross product here but for its sign,
 *     as rounding is the same on both sides of 0. */
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

/** Distance from p to segment number s, as oj_segment_distance() has it. */
OJ_NEAR_FN double oj_near_exact(const struct oj_cuda_segment *segment,
                                int32_t s, double px, double py)
{
    return oj_near_distance(oj_near_load_segment(segment, s), px, py);
}

/* --- single precision -----------------------------------------------------
 * An error of some 2^-22 in __fmaf_rn, __fdividef and rsqrtf does not matter.
 */

OJ_NEAR_FN float oj_near_low(uint32_t v)
{
    return (float)(int16_t)(uint16_t)(v & 0xFFFFu);
}

OJ_NEAR_FN float oj_near_high(uint32_t v)
{
    return (float)((int32_t)v >> 16);
}

/** Squared distance of p from an entry, in squared units of its leaf. */
OJ_NEAR_FN float oj_near_entry_distance2(uint32_t a, uint32_t b, float px,
                                         float py)
{
    float ax = oj_near_low(a), ay = oj_near_high(a);
    float dx = oj_near_low(b) - ax, dy = oj_near_high(b) - ay;
    float wx = px - ax, wy = py - ay;
    float length2 = __fmaf_rn(dx, dx, dy * dy);
    float dot = __fmaf_rn(wx, dx, wy * dy);
    /* lengths are integers: an entry without length has dot 0, too */
    float t = __fdividef(dot, fmaxf(length2, 1.0f));
    t = fminf(fmaxf(t, 0.0f), 1.0f);
    wx = __fmaf_rn(-t, dx, wx);
    wy = __fmaf_rn(-t, dy, wy);
    return __fmaf_rn(wx, wx, wy * wy);
}

/* --- the query ------------------------------------------------------------ */

struct oj_near_best
{
    double distance; /**< INFINITY: none yet */
    int32_t rank;
    int tied; /**< 1: others may be as near; only where that is asked for */
};

/** Lets a feature compete: the least distance wins, then the least rank. NaN
 *  never wins. */
OJ_NEAR_FN void oj_near_compete(struct oj_near_best *best, double distance,
                                int32_t rank)
{
    int wins = (distance < best->distance) |
               ((distance == best->distance) & (rank < best->rank));
    best->distance = wins ? distance : best->distance;
    best->rank = wins ? rank : best->rank;
}

/** Lets a feature compete, and notes ties; rank: as in a leaf that was made for
 *  ties, where ties is 1. */
OJ_NEAR_FN void oj_near_compete_as(struct oj_near_best *best, double distance,
                                   int32_t rank, int ties)
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
    oj_near_compete(best, distance, rank);
}

/** A leaf as one query sees it. */
struct oj_near_leaf
{
    const uint64_t *entry, *pair;
    uint32_t n;
    float px, py; /**< the point, in units, from the middle of the leaf */
};

/** Measures every entry that is at most limit2 away, exactly. */
OJ_NEAR_FN void oj_near_measure_close(const struct oj_near_view *v,
                                      const struct oj_near_leaf *leaf,
                                      float limit2, double x, double y,
                                      int ties, struct oj_near_best *best)
{
    uint32_t i;
    for (i = 0; i < leaf->n; i++)
    {
        struct oj_near_pair at = oj_near_load_pair(leaf->entry + i);
        struct oj_near_pair pair;
        if (!(oj_near_entry_distance2((uint32_t)at.segment, (uint32_t)at.rank,
                                      leaf->px, leaf->py) <= limit2))
            continue;
        pair = oj_near_load_pair(leaf->pair + i);
        oj_near_compete_as(best, oj_near_exact(v->segment, pair.segment, x, y),
                           pair.rank, ties);
    }
}

/** Squared distance up to which an entry may be as near as the one that seems
 *  best. */
OJ_NEAR_FN float oj_near_limit2(float best2)
{
    float limit = sqrtf(best2) + OJ_NEAR_CLOSE;
    return limit * limit;
}

OJ_NEAR_FN void oj_near_measure_long(const struct oj_near_view *v,
                                     const struct oj_near_leaf *leaf, double x,
                                     double y, int ties,
                                     struct oj_near_best *best)
{
    float least2 = INFINITY;
    uint32_t i;
    for (i = 0; i < leaf->n; i++)
    {
        struct oj_near_pair at = oj_near_load_pair(leaf->entry + i);
        least2 = fminf(least2, oj_near_entry_distance2((uint32_t)at.segment,
                                                       (uint32_t)at.rank,
                                                       leaf->px, leaf->py));
    }
    oj_near_measure_close(v, leaf, oj_near_limit2(best->rank < 0 ? least2 : 0),
                          x, y, ties, best);
}

/** The three least of the keys seen; a key is a squared distance with the
 *  number of the entry in its last bits. */
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

OJ_NEAR_FN void oj_near_see(struct oj_near_keys *keys, float distance2,
                            uint32_t i)
{
    uint32_t key = (__float_as_uint(distance2) & ~(OJ_NEAR_SHORT - 1u)) | i;
    uint32_t behind = oj_near_max(keys->first, key);
    keys->first = oj_near_min(keys->first, key);
    keys->third = oj_near_min(keys->third, oj_near_max(keys->second, behind));
    keys->second = oj_near_min(keys->second, behind);
}

/** Sees entries i and, where there is one, i + 1. */
OJ_NEAR_FN void oj_near_see_two(struct oj_near_keys *keys,
                                const struct oj_near_two *two,
                                const struct oj_near_leaf *leaf, uint32_t i)
{
    oj_near_see(
        keys, oj_near_entry_distance2(two->a0, two->b0, leaf->px, leaf->py), i);
    if (i + 1 < leaf->n)
        oj_near_see(
            keys, oj_near_entry_distance2(two->a1, two->b1, leaf->px, leaf->py),
            i + 1);
}

/** Measures entry first and, when n is 2, entry second, exactly. What both need
 *  is fetched before either is measured. */
OJ_NEAR_FN void oj_near_measure_two(const struct oj_near_view *v,
                                    const struct oj_near_leaf *leaf,
                                    uint32_t first, uint32_t second, uint32_t n,
                                    double x, double y, int ties,
                                    struct oj_near_best *best)
{
    struct oj_near_pair one = oj_near_load_pair(leaf->pair + first), two = one;
    struct oj_cuda_segment s, t;
    if (n > 1)
        two = oj_near_load_pair(leaf->pair + second);
    s = oj_near_load_segment(v->segment, one.segment);
    t = s;
    if (n > 1)
        t = oj_near_load_segment(v->segment, two.segment);
    oj_near_compete_as(best, oj_near_distance(s, x, y), one.rank, ties);
    if (n > 1)
        oj_near_compete_as(best, oj_near_distance(t, x, y), two.rank, ties);
}

OJ_NEAR_FN void oj_near_measure_short(const struct oj_near_view *v,
                                      const struct oj_near_leaf *leaf, double x,
                                      double y, int ties,
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
                two[k] = oj_near_load_two(leaf->entry + i + 2 * k);
        }
#pragma unroll
        for (k = 0; k < OJ_NEAR_STEP / 2; k++)
        {
            if (i + 2 * k < leaf->n)
                oj_near_see_two(&keys, &two[k], leaf, i + 2 * k);
        }
    }
    /* where the point is in a feature, only distances of 0 matter */
    limit = __float_as_uint(oj_near_limit2(
        best->rank < 0 ? __uint_as_float(keys.first & ~(OJ_NEAR_SHORT - 1u))
                       : 0.0f));
    if (keys.third <= limit)
    {
        oj_near_measure_close(v, leaf, __uint_as_float(limit) * 1.0001f, x, y,
                              ties, best);
        return;
    }
    n_close = (uint32_t)(keys.first <= limit) + (keys.second <= limit);
    if (n_close > 0)
        oj_near_measure_two(v, leaf, keys.first & (OJ_NEAR_SHORT - 1u),
                            keys.second & (OJ_NEAR_SHORT - 1u), n_close, x, y,
                            ties, best);
}

/** The header of the leaf around a place, given in finest steps. */
OJ_NEAR_FN struct oj_near_header oj_near_find(const struct oj_near_view *v,
                                              uint32_t ix, uint32_t iy)
{
    int shift = OJ_NEAR_BITS - v->directory_level;
    struct oj_near_header h = oj_near_load_header(
        v->directory +
        (((int64_t)(iy >> shift) << v->directory_level) | (ix >> shift)));
    while (h.info & OJ_NEAR_INNER)
    {
        uint32_t fan = h.info & 3u, to = oj_near_shift(h.info);
        uint32_t rest = (1u << fan) - 1u;
        uint32_t child = (((iy >> to) & rest) << fan) | ((ix >> to) & rest);
        h = oj_near_load_header(v->tree + h.first + child);
    }
    return h;
}

/** Opens the leaf of a header for the point at dx, dy from the corner of the
 *  square, ix, iy in finest steps. */
OJ_NEAR_FN struct oj_near_leaf oj_near_open(const struct oj_near_view *v,
                                            struct oj_near_header h, double dx,
                                            double dy, uint32_t ix, uint32_t iy)
{
    struct oj_near_leaf leaf;
    uint32_t shift = oj_near_shift(h.info);
    uint32_t middle = 1u << (shift - 1u);
    /* the exponent of 1 / scale */
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

/** The nearest feature's rank within reach of (x, y), and the distance to it
 *  in *distance; OJ_NEAR_NONE, or OJ_NEAR_OPEN when the tree does not know:
 *  *distance then is that to the features of a tie, or NaN of a point outside.
 *  around: the least rank of the polygons that contain the point, at distance
 *  0, or OJ_NEAR_NONE where that is none or only boundaries count.
 *  ties: 1, in a tree that was made for it: points to which several features
 *  may be as near are open. */
OJ_NEAR_FN int32_t oj_near_one(const struct oj_near_view *v, double x, double y,
                               int32_t around, int ties, double *distance)
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
    *distance = 0.0; /* to what is around, if anything is */
    if (ties && around >= 0 && (around & OJ_NEAR_TIED) != 0)
        return OJ_NEAR_OPEN;
    ix = (uint32_t)(dx * v->square.per_finest);
    iy = (uint32_t)(dy * v->square.per_finest);
    h = oj_near_find(v, ix, iy);
    if ((h.info & OJ_NEAR_COUNT) == 0)
        return around;
    leaf = oj_near_open(v, h, dx, dy, ix, iy);
    best.distance = around < 0 ? INFINITY : 0.0;
    best.rank = around;
    best.tied = 0;
    if (leaf.n > OJ_NEAR_SHORT)
        oj_near_measure_long(v, &leaf, x, y, ties, &best);
    else
        oj_near_measure_short(v, &leaf, x, y, ties, &best);
    if (!(best.distance <= v->square.reach) || best.rank < 0)
        return OJ_NEAR_NONE;
    *distance = best.distance;
    return ties && best.tied ? OJ_NEAR_OPEN : best.rank;
}

#endif
