/** The edges of those polygon parts of a feature whose boxes meet, by place.
 *
 *  A run is up to OJ_RUN_EDGES edges of a ring that follow one another.  The
 *  runs of all such parts of a layer are in one packed tree.
 *  Source: ours.
 */
#ifndef OJ_PART_RUNS_H
#define OJ_PART_RUNS_H

#include "../flatten/oj_flat.h"
#include "cpu_tree.h"

#define OJ_RUN_EDGES 32

/** A feature of several polygon parts, some of whose boxes meet. */
struct oj_several_parts
{
    int64_t feature;
    struct oj_box box; /**< of its parts whose boxes meet others */
    int64_t largest;   /**< the one of most vertices of these parts */
};

/** Edges of a ring that follow one another. */
struct oj_part_run
{
    struct oj_box box;
    int64_t several, part, ring, first_vertex;
    int64_t n_edges;
};

/** A ring of a part. */
struct oj_part_ring
{
    int64_t several, part, ring;
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_part_runs
{
    const struct oj_flat *flat;
    int n_threads;
    const int *cancel;
    uint8_t *meets; /**< [n_parts] 1: its box meets another part's */
    int64_t n_several;
    struct oj_several_parts *several;
    int64_t n_runs, n_rings;
    struct oj_part_run *run;   /**< in the tree's order */
    struct oj_part_ring *ring; /**< [n_rings] as read */
    struct oj_tree tree;
};

/** Runs found. Owner; zeroed memory is a valid empty one. */
struct oj_found_runs
{
    int32_t *run;
    int64_t n, capacity;
};

/** The box of vertices first <= v < end. */
struct oj_box oj_box_of_vertices(const struct oj_flat *flat, int64_t first,
                                 int64_t end);

/** 1 when part a comes after part b by the number of its vertices. */
static inline int oj_part_is_larger(const struct oj_flat *flat, int64_t a,
                                    int64_t b)
{
    const int64_t *ring = flat->ring_offset, *vertex = flat->vertex_offset;
    int64_t n_a = vertex[ring[a + 1]] - vertex[ring[a]];
    int64_t n_b = vertex[ring[b + 1]] - vertex[ring[b]];
    return n_a > n_b || (n_a == n_b && a > b);
}

/** Lists the runs; flat, n_threads and cancel are set. */
OJ_MUST_USE oj_status oj_part_runs_make(struct oj_part_runs *runs,
                                        struct oj_error *err);

/** Fills found with the runs whose boxes, as the tree has them, meet box. */
OJ_MUST_USE oj_status oj_part_runs_find(const struct oj_part_runs *runs,
                                        const struct oj_box *box,
                                        struct oj_found_runs *found,
                                        struct oj_error *err);

void oj_part_runs_free(struct oj_part_runs *runs);

#endif
