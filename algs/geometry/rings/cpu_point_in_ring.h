/** Tests a point against many edges of a ring at once. Vector instructions
 * decide only comparisons and signs that rounding cannot change. Exact signs
 * decide the remaining edges one by one (kernels/oj_ring.h). So results do not
 * depend on the processor. */
#ifndef CPU_POINT_IN_RING_H
#define CPU_POINT_IN_RING_H

#include "../../foundations/kernels/oj_ring.h"

#include <stdint.h>

/** Maximum number of edges per call: a mask of 64 bits has a bit for each of
 * their vertices. */
#define OJ_RING_EDGES 63

/** The path p -> q -> c from a point p to a reference point c, where q = (c.x,
 * p.y), and the boxes of its horizontal and vertical half. */
struct oj_ring_way
{
    double px, py, cx, cy;
    double left, right; /**< range of x of the horizontal half, p -> q */
    double low, high;   /**< range of y of the vertical half, q -> c */
};

/** Consecutive edges first .. first + n - 1; edge e is from vertex e to vertex
 * e + 1. */
struct oj_edge_run
{
    uint32_t first, n;
};

/** Flag in oj_edge_run.first: the run is a single vertex (a point, or a line of
 * one vertex), which counts as an edge with equal ends. */
#define OJ_LONE_VERTEX INT64_C(0x80000000)

/** Returns the first vertex of a run. Edge i is from vertex first + i to vertex
 * first + i + *step. */
static inline int64_t oj_edge_run_start(const struct oj_edge_run *run,
                                        int64_t *step)
{
    *step = run->first < OJ_LONE_VERTEX;
    return run->first & (OJ_LONE_VERTEX - 1);
}

struct oj_ring_entry;
struct oj_ring_range;

/** Vectorised tests of edges and boxes, for one instruction set. */
struct oj_ring_kernel
{
    /** Returns 1 if the path crosses the edges of n runs an odd number of
     * times, 0 if an even number. Returns -1 if exact signs are needed, if p
     * may be on an edge, or if a run has no edges. cross is NULL if the
     * instruction set has no such kernel. */
    int (*cross)(const struct oj_ring_way *way, const double *x,
                 const double *y, const struct oj_edge_run *run, int64_t n);

    /** Returns a mask: bit i is set if edge i of n intersects the horizontal
     * line at height py. */
    uint64_t (*at_height)(double py, const double *y, int n);

    /** For each of n points with its range of entries (cpu_ring_box_index.h):
     * lists the entries whose boxes contain the point, as pairs (point[i],
     * ring[i]). Returns the number of pairs. The arrays must have room for all
     * entries and 8 more. holding is NULL if the instruction set has no such
     * kernel. */
    int64_t (*holding)(const struct oj_ring_entry *entry,
                       const struct oj_ring_range *range, int64_t n,
                       int32_t *point, int32_t *ring);
};

/** The kernel in plain C. */
extern const struct oj_ring_kernel oj_ring_plain;

/** Returns the kernel for AVX-512, or NULL if the processor does not support
 *  it. */
const struct oj_ring_kernel *oj_ring_avx512(void);

/** Returns the fastest kernel that the processor supports. */
const struct oj_ring_kernel *oj_ring_kernel(void);

/** Returns a mask: bit i is set if edge i of n, from (x[i], y[i]) to (x[i + 1],
 * y[i + 1]), may cross the path or contain p. Edges without a bit neither cross
 * the path nor contain p.
 */
uint64_t oj_ring_edges_near_path(const struct oj_ring_way *way, const double *x,
                                 const double *y, int n);

/** Locates p relative to the closed ring x, y [n]; equals oj_ring_locate(), but
 * is faster. */
enum oj_location oj_ring_locate_fast(const struct oj_ring_kernel *kernel,
                                     double px, double py, const double *x,
                                     const double *y, int64_t n);

#endif
