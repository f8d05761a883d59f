/** A point against the edges of a ring, many at a time.
 *
 *  What is found out by vector instructions is what comparisons and signs
 * beyond doubt say; the rest is left to exact signs, edge by edge
 * (kernels/oj_ring.h). So all answers are the same, whichever instructions a
 * processor has.
 */
#ifndef CPU_POINT_IN_RING_H
#define CPU_POINT_IN_RING_H

#include "../../foundations/kernels/oj_ring.h"

#include <stdint.h>

/** Most edges at a time. */
#define OJ_RING_EDGES 63

/** The way p -> q -> c, where q = (c.x, p.y), and the boxes of its halves. */
struct oj_ring_way
{
    double px, py, cx, cy;
    double left, right; /**< of p -> q */
    double low, high;   /**< of q -> c */
};

/** Consecutive edges first .. first + n - 1; edge e is vertices e, e + 1. */
struct oj_edge_run
{
    uint32_t first, n;
};

/** In first, of lines and points: the one edge is that vertex alone. */
#define OJ_LONE_VERTEX INT64_C(0x80000000)

/** The first vertex of a run; edge i of it is from there + i to *step farther.
 */
static inline int64_t oj_edge_run_start(const struct oj_edge_run *run,
                                        int64_t *step)
{
    *step = run->first < OJ_LONE_VERTEX;
    return run->first & (OJ_LONE_VERTEX - 1);
}

struct oj_ring_entry;
struct oj_ring_range;

struct oj_ring_kernel
{
    /** 1 when the way crosses the edges of n runs an odd number of times, 0
     *  when an even one; -1: that needs exact signs, or p may be on an edge, or
     *  a run has no edges.  NULL: always -1. */
    int (*cross)(const struct oj_ring_way *way, const double *x,
                 const double *y, const struct oj_edge_run *run, int64_t n);

    /** Bit i: edge i of n may cross the height py or hold a point of it. */
    uint64_t (*at_height)(double py, const double *y, int n);

    /** Of n points, each with its range of entries (cpu_ring_box_index.h), the
     *  entries that hold them: point[i] may be in ring[i]; how many.  Both have
     *  room for all entries and 8 more.  NULL: none faster than one by one. */
    int64_t (*holding)(const struct oj_ring_entry *entry,
                       const struct oj_ring_range *range, int64_t n,
                       int32_t *point, int32_t *ring);
};

/** The plain one. */
extern const struct oj_ring_kernel oj_ring_plain;

/** The one for processors with AVX-512, or NULL where this one has none. */
const struct oj_ring_kernel *oj_ring_avx512(void);

/** The fastest that this processor can do. */
const struct oj_ring_kernel *oj_ring_kernel(void);

/** Bit i: edge i of n, from x[i], y[i] to x[i + 1], y[i + 1], may cross the way
 *  or hold p. */
uint64_t oj_ring_near_way(const struct oj_ring_way *way, const double *x,
                          const double *y, int n);

/** Where p is in the closed ring x, y [n]: equal to oj_ring_locate(). */
enum oj_location oj_ring_walk(const struct oj_ring_kernel *kernel, double px,
                              double py, const double *x, const double *y,
                              int64_t n);

#endif
