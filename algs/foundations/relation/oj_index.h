/** What answers joins: an engine prepares the join side and joins batches of
 *  features with it.
 *
 *  An engine answers some joins between some kinds of features.  A backend
 *  (oj_backend_registry.h) has a list of them in order of preference and gives
 * each batch to the first that takes it, so the fast and special ones come
 * first and the last takes everything.  All give the same pairs where they
 * overlap. Kernels of the CUDA module are asked before the list (oj_gpu.h).
 */
#ifndef OJ_INDEX_H
#define OJ_INDEX_H

#include "oj_backend_registry.h"

#include <stddef.h>

#define OJ_MOST_ENGINES 16 /* of a backend */

/** The join side, prepared by an engine; each engine has its own. */
struct oj_index;
struct oj_screen_pairs;

/** What is prepared, for what. Plain values; owns nothing. */
struct oj_index_args
{
    const struct oj_flat *join_side; /**< outlives the index; not changed */
    const int32_t *tie_rank;         /**< [features] place of each in tie order,
                                          outlives the index; NULL: the ordinal
                                          is the place */
    struct oj_relation relation;
    struct oj_options options; /**< n_threads and quadrant_size are set */
    int gets_candidates; /**< 1: batches come with candidates as a rule, so that
                              what finds them is made when it is needed */
    const struct oj_engine *engine; /**< which one: oj_index_make() sets it */
};

/** What points as input cost on one core, in seconds (BENCHMARKS.md). Only
 *  auto's choice depends on it, so that a faster core means that it is a little
 *  early or late. */
struct oj_engine_cost
{
    /** Joins by attributes: what rows of the input side cost on one core, no
     *  more than is likely, and on a device. NULL: the rates below. */
    void (*expect)(const struct oj_relation *relation,
                   const struct oj_flat *join_side, double rows, double *cpu_s,
                   double *gpu_s);
    double vertex_s; /**< to prepare a vertex of the join side */
    double row_s;    /**< to join a point */
    double place_s;  /**< and with k above 1 for each of k */
};

struct oj_engine
{
    const char *name; /**< for -explain, and in messages */

    /** 1 when this engine can answer relation for this join side and this
     *  batch of input features; input NULL: for any of points.  takes NULL:
     *  any join of geometries; the engine says itself what it does not do. */
    int (*takes)(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input);

    /** Bytes of an index, which is zeroed before it is built. */
    size_t index_size;

    /** Prepares the join side; args itself is copied where it is needed.  Its
     *  time is counted by who calls. */
    oj_status (*build)(struct oj_index *index, const struct oj_index_args *args,
                       struct oj_stats *stats, struct oj_error *err);

    /** Joins a batch of input features; may be called any number of times,
     *  from one thread at a time. */
    oj_status (*join)(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err);

    /** Joins a batch whose candidates are there (oj_screen.h), and
     *  marks in candidates what it decides.  NULL: the engine finds them
     *  itself. */
    oj_status (*join_candidates)(struct oj_index *index,
                                 const struct oj_flat *input,
                                 struct oj_screen_pairs *candidates,
                                 struct oj_matches *out, struct oj_stats *stats,
                                 struct oj_error *err);

    /** Frees what build made, all or part of it; NULL: nothing. */
    void (*free_side)(struct oj_index *index);

    /** Frees what batches have left; NULL: an index cannot be copied. */
    void (*free_batches)(struct oj_index *index);

    /** Later batches of a copy look at this cancel flag; NULL: at none. There
     *  where free_batches is. */
    void (*set_cancel)(struct oj_index *copy, const int *cancel);

    /** NULL: nothing that a device could do as well. */
    const struct oj_engine_cost *points_cost;

    /** Of several engines that one build function prepares, which. */
    int variant;
};

/** Prepares the join side; *out is freed with oj_index_free(). */
OJ_MUST_USE oj_status oj_index_make(const struct oj_engine *engine,
                                    const struct oj_index_args *args,
                                    struct oj_index **out,
                                    struct oj_stats *stats,
                                    struct oj_error *err);

/** Accepts NULL. */
void oj_index_free(const struct oj_engine *engine, struct oj_index *index);

/** One more index with the join side of from, for another thread.  Until its
 *  first batch an index holds nothing of batches, so its bytes are copied; what
 *  it points to is the join side's, which batches read or change by atomics.
 *  from has had no batch, and outlives the copy.  cancel: the flag that batches
 *  of the copy look at, or NULL. */
OJ_MUST_USE oj_status oj_index_copy(const struct oj_engine *engine,
                                    const struct oj_index *from,
                                    const int *cancel, struct oj_index **out,
                                    struct oj_error *err);

/** Accepts NULL. */
void oj_index_copy_free(const struct oj_engine *engine, struct oj_index *copy);

/** nearest and dwithin by distances of shapes; the others know the least
 *  distance only and stand behind it. */
extern const struct oj_engine oj_cpu_similar_shapes;
/** Nearest join features of points; nothing left out
 * (cpu_nearest_search.h). */
extern const struct oj_engine oj_cpu_nearest_points;
/** Points in polygons: intersects, within, covered by. */
extern const struct oj_engine oj_cpu_points_in_polygons;
/** Points within a distance of points. */
extern const struct oj_engine oj_cpu_near_points;
/** nearest and dwithin between features of any kinds. */
extern const struct oj_engine oj_cpu_distance;
/** nearest and dwithin on the sphere, points as input. */
extern const struct oj_engine oj_cpu_sphere;
/** Predicates between features of any kinds. */
extern const struct oj_engine oj_cpu_predicate;
/** similar: texts; and its two ways alone, to measure and to test. */
extern const struct oj_engine oj_cpu_similar;
extern const struct oj_engine oj_cpu_similar_lists;
extern const struct oj_engine oj_cpu_similar_bitmaps;
/** similar: vectors. */
extern const struct oj_engine oj_cpu_similar_vectors;

/* References: any join, also on the sphere (tree_reference.c), and the papers'
 * method. */
extern const struct oj_engine oj_geos_engine;
extern const struct oj_engine oj_geos_sorted_engine;
extern const struct oj_engine oj_spatialindex_engine;
extern const struct oj_engine oj_spatialindex_collective_engine;
extern const struct oj_engine oj_sphere_engine;
extern const struct oj_engine oj_lists_engine;
extern const struct oj_engine oj_plain_vectors_engine;
extern const struct oj_engine oj_zlists_engine;
/** Its takes; on a GPU they take some of that. */
int oj_zlists_takes(const struct oj_relation *relation,
                    const struct oj_flat *join_side,
                    const struct oj_flat *input);
extern const struct oj_engine oj_quadrant_engine;
extern const struct oj_engine oj_cut_points_engine;
extern const struct oj_engine oj_cuda_quadrant_engine;
extern const struct oj_engine oj_cuda_lists_engine;
extern const struct oj_engine oj_cuda_size_blocks_engine;
extern const struct oj_engine oj_cuda_zlists_engine;
extern const struct oj_engine oj_cuda_cut_points_engine;

#endif
