/** The interface of engines: an engine prepares the join side (builds an index)
 *  and joins batches of input features with it.
 *
 *  An engine answers some joins between some kinds of features.  A backend
 *  (oj_backend_registry.h) has a list of them in order of preference and gives
 *  each batch to the first that takes it, so the fast and special ones come
 *  first and the last takes everything.  Engines that take a join give equal
 *  pairs for it. Kernels of the CUDA module are asked before the list
 *  (oj_gpu.h).
 */
#ifndef OJ_INDEX_H
#define OJ_INDEX_H

#include "oj_backend_registry.h"

#include <stddef.h>

#define OJ_MOST_ENGINES 16 /* maximum number of engines of a backend */

/** The join side as prepared by an engine; each engine defines its own struct.
 */
struct oj_index;
struct oj_screen_pairs;

/** Arguments of build: what to prepare, and for which join. Plain values; owns
 * nothing. */
struct oj_index_args
{
    const struct oj_flat *join_side; /**< outlives the index; not changed by
                                          it */
    const int32_t *tie_rank;         /**< [features] rank of each in tie
                                          order; outlives the index; NULL:
                                          the ordinal is the rank */
    struct oj_relation relation;
    struct oj_options options; /**< n_threads and quadrant_size are set */
    /** 1: most batches come with candidates, so structures that find candidates
     * are built only when needed */
    int gets_candidates;
    const struct oj_engine *engine; /**< set by oj_index_make() */
};

/** Estimated cost of points as input on one core, in seconds (BENCHMARKS.md).
 * Only the choice by auto depends on it; on a faster core auto switches at a
 * slightly different size. */
struct oj_engine_cost
{
    /** Joins by attributes: estimates the cost of `rows` input rows, on one CPU
     * core (cautiously low) and on a device. NULL: use the rates below. */
    void (*expect)(const struct oj_relation *relation,
                   const struct oj_flat *join_side, double rows, double *cpu_s,
                   double *gpu_s);
    double vertex_s; /**< to prepare one vertex of the join side */
    double row_s;    /**< to join one point */
    double place_s;  /**< added for each of k, if k > 1 */
};

struct oj_engine
{
    const char *name; /**< name for -explain and messages */

    /** 1 if this engine answers the relation for this join side and this batch
     * of input features; input NULL: for any batch of points.  takes NULL: all
     * joins of geometries; the engine itself fails for those that it cannot
     * do. */
    int (*takes)(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input);

    /** Size of the engine's index struct, which is zeroed before build. */
    size_t index_size;

    /** Prepares the join side. An index that needs args keeps its own copy. The
     * caller measures the time. */
    oj_status (*build)(struct oj_index *index, const struct oj_index_args *args,
                       struct oj_stats *stats, struct oj_error *err);

    /** Joins a batch of input features; may be called any number of times,
     *  from one thread at a time. */
    oj_status (*join)(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err);

    /** Joins a batch with given candidates (oj_screen.h); sets the verdicts of
     * candidates that it decides.  NULL: the engine always finds candidates
     * itself. */
    oj_status (*join_candidates)(struct oj_index *index,
                                 const struct oj_flat *input,
                                 struct oj_screen_pairs *candidates,
                                 struct oj_matches *out, struct oj_stats *stats,
                                 struct oj_error *err);

    /** Frees what build has allocated, also after a failure half-way; NULL:
     * nothing to free. */
    void (*free_side)(struct oj_index *index);

    /** Frees what batches have allocated; NULL: an index of this engine cannot
     * be copied. */
    void (*free_batches)(struct oj_index *index);

    /** Takes the options for later batches of a copy, those of
     * oj_options_set_batches(). Present if free_batches is. */
    void (*set_options)(struct oj_index *copy,
                        const struct oj_options *options);

    /** NULL: no device does the work of this engine */
    const struct oj_engine_cost *points_cost;

    /** Variant, if several engines share one build function. */
    int variant;
};

/** Prepares the join side; free *out with oj_index_free(). */
OJ_MUST_USE oj_status oj_index_make(const struct oj_engine *engine,
                                    const struct oj_index_args *args,
                                    struct oj_index **out,
                                    struct oj_stats *stats,
                                    struct oj_error *err);

/** Accepts NULL. */
void oj_index_free(const struct oj_engine *engine, struct oj_index *index);

/** A second index on the join side of `from`, for another thread.  Before its
 * first batch, an index holds no state of batches, so its struct is copied;
 * copies share the data of the join side, which batches only read or change
 * atomically. `from` must have had no batch, and must outlive the copy.
 * options: those for batches of the copy, see set_options. */
OJ_MUST_USE oj_status oj_index_copy(const struct oj_engine *engine,
                                    const struct oj_index *from,
                                    const struct oj_options *options,
                                    struct oj_index **out,
                                    struct oj_error *err);

/** Accepts NULL. */
void oj_index_copy_free(const struct oj_engine *engine, struct oj_index *copy);

/** nearest and dwithin by distances of shapes. Precedes the engines below,
 * which compute minimum distances only. */
extern const struct oj_engine oj_cpu_similar_shapes;
/** Nearest join features of points, all pairs allowed (cpu_nearest_search.h).
 */
extern const struct oj_engine oj_cpu_nearest_points;
/** Points in polygons: intersects, within, covered by. */
extern const struct oj_engine oj_cpu_points_in_polygons;
/** Points in envelopes of lines and polygons. */
extern const struct oj_engine oj_cpu_points_in_envelopes;
/** Points within a distance of points. */
extern const struct oj_engine oj_cpu_near_points;
/** nearest and dwithin between features of any kinds. */
extern const struct oj_engine oj_cpu_distance;
/** nearest and dwithin on the sphere, points as input. */
extern const struct oj_engine oj_cpu_sphere;
/** Points with equal coordinates. */
extern const struct oj_engine oj_cpu_equal_points;
/** Predicates between features of any kinds. */
extern const struct oj_engine oj_cpu_predicate;
/** similar: texts. The other two are its two methods alone, for tests and
 * benchmarks. */
extern const struct oj_engine oj_cpu_similar;
extern const struct oj_engine oj_cpu_similar_lists;
extern const struct oj_engine oj_cpu_similar_bitmaps;
/** similar: vectors. */
extern const struct oj_engine oj_cpu_similar_vectors;

/* References: any join, also on the sphere (tree_reference.c), and the methods
 * of the papers. */
extern const struct oj_engine oj_geos_engine;
extern const struct oj_engine oj_geos_sorted_engine;
extern const struct oj_engine oj_spatialindex_engine;
extern const struct oj_engine oj_spatialindex_collective_engine;
extern const struct oj_engine oj_sphere_engine;
extern const struct oj_engine oj_lists_engine;
extern const struct oj_engine oj_plain_vectors_engine;
extern const struct oj_engine oj_zlists_engine;
/** The takes() of the Z-lists; the version for GPUs takes a part of it. */
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
