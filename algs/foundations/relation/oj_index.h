/** The interface of engines. An engine prepares the join side (builds an index)
 *  and joins batches of input features with it.
 *
 *  An engine supports some joins between some kinds of features. A backend
 *  (oj_backend_registry.h) lists its engines in order of preference: fast
 *  special ones first, a general one last. The first engine that takes a batch
 *  joins it. All engines that take a join give equal pairs. Kernels of the CUDA
 *  module are tried before the list (oj_gpu.h).
 */
#ifndef OJ_INDEX_H
#define OJ_INDEX_H

#include "oj_backend_registry.h"

#include <stddef.h>

#define OJ_MOST_ENGINES 16 /* maximum engines of a backend */

/** An engine's index of the join side; each engine has its own struct for it.
 */
struct oj_index;
struct oj_screen_pairs;

/** Arguments of build(): what to index, and for which join. Plain values;
 * pointers are borrowed. */
struct oj_index_args
{
    const struct oj_flat *join_side; /**< must outlive the index, which does not
                                          change it */
    const int32_t *tie_rank;         /**< [features] rank of each feature in the
                                          order that decides ties; NULL: the
                                          ordinal is the rank; must outlive the
                                          index */
    struct oj_relation relation;
    /** The user's options, but with the actual numbers in place of 0 for
     * n_threads and quadrant_size. */
    struct oj_options options;
    /** 1: a GPU screen finds candidates for most batches. Structures that find
     * candidates on the CPU are then built only when needed */
    int gets_candidates;
    const struct oj_engine *engine; /**< set by oj_index_make() */
};

/** Estimated seconds of a join with points as input on one CPU core
 * (BENCHMARKS.md). Only used by the backend auto, to choose between CPU and
 * GPU. */
struct oj_engine_cost
{
    /** For joins by attributes: estimates the seconds that `rows` input rows
     * take on one CPU core (*cpu_s, rather too low than too high) and on a
     * device (*gpu_s). If expect is NULL, the seconds follow from the members
     * below. */
    void (*expect)(const struct oj_relation *relation,
                   const struct oj_flat *join_side, double rows, double *cpu_s,
                   double *gpu_s);
    double vertex_s; /**< seconds to index one vertex of the join side */
    double row_s;    /**< seconds to join one point */
    double place_s;  /**< seconds added for each of the k nearest, if k > 1 */
};

/** An engine: its name, and functions that may be NULL where stated. */
struct oj_engine
{
    const char *name; /**< shown by -explain and in messages */

    /** Returns 1 if the engine supports the relation for this join side and
     * this batch. If input is NULL, the question is for any batch of points.
     * If the function pointer is NULL, the engine accepts all joins of
     * geometries, but may fail later. */
    int (*supports)(const struct oj_relation *relation,
                    const struct oj_flat *join_side,
                    const struct oj_flat *input);

    /** Size of the engine's index struct, which is zeroed before build(). */
    size_t index_size;

    /** Builds the index. Copies args if it needs them later. The caller
     * measures the time. */
    oj_status (*build)(struct oj_index *index, const struct oj_index_args *args,
                       struct oj_stats *stats, struct oj_error *err);

    /** Joins a batch of input features. May be called any number of times, but
     * not by two threads at once. */
    oj_status (*join)(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err);

    /** Joins a batch whose candidates a screen has found (oj_screen.h), and
     * updates their verdicts. If join_candidates is NULL, the engine cannot use
     * a screen. */
    oj_status (*join_candidates)(struct oj_index *index,
                                 const struct oj_flat *input,
                                 struct oj_screen_pairs *candidates,
                                 struct oj_matches *out, struct oj_stats *stats,
                                 struct oj_error *err);

    /** Adds to count[f] the number of the batch's pairs with join feature f,
     * and sets *n_pairs to their total. OJ_ERR_UNSUPPORTED, with count
     * unchanged: the pairs of this batch must be listed. If count_pairs is
     * NULL, pairs must always be listed. */
    oj_status (*count_pairs)(struct oj_index *index,
                             const struct oj_flat *input, int64_t *count,
                             int64_t *n_pairs, struct oj_error *err);

    /** Updates the index after n points of the join side have moved (a layer in
     * the short form, see struct oj_flat): its arrays x and y have been
     * replaced by arrays that differ in these features. After an error the
     * index can only be freed. If move is NULL, the index must be built
     * anew. */
    oj_status (*move)(struct oj_index *index, int64_t n, const int32_t *feature,
                      struct oj_error *err);

    /** Frees the memory of build(), whether build() succeeded or failed. If
     * free_side is NULL, there is nothing to free. */
    void (*free_side)(struct oj_index *index);

    /** Frees memory that join() allocated in the index. If free_batches is
     * NULL, indexes of this engine cannot be copied. */
    void (*free_batches)(struct oj_index *index);

    /** Sets the options of a copy that may differ between batches
     * (oj_options_copy_per_batch()). Not NULL if free_batches is not NULL. */
    void (*set_options)(struct oj_index *copy,
                        const struct oj_options *options);

    /** Cost of joins with points as input. NULL: no device supports the joins
     * of this engine. */
    const struct oj_engine_cost *points_cost;

    /** 1: the engine supports relations with a condition on headings. 0: the
     * engine is never given such a relation. */
    int takes_headings;

    /** 1: the engine visits all features of a row's -on class, and is only used
     * if all classes of the join side are small (oj_class_features.h). */
    int needs_small_classes;

    /** Selects the variant, if several engines share one build function. */
    int variant;
};

/** Returns 1 if the engine supports the relation for this join side and batch,
 * by engine->supports. */
int oj_engine_supports_join(const struct oj_engine *engine,
                            const struct oj_relation *relation,
                            const struct oj_flat *join_side,
                            const struct oj_flat *input);

/** Builds an index; free *out with oj_index_free(). */
OJ_MUST_USE oj_status oj_index_make(const struct oj_engine *engine,
                                    const struct oj_index_args *args,
                                    struct oj_index **out,
                                    struct oj_stats *stats,
                                    struct oj_error *err);

/** Frees an index, which may be NULL. */
void oj_index_free(const struct oj_engine *engine, struct oj_index *index);

/** Makes a second index on the join side of `from`, for another thread. Copies
 * share the data of the join side, which batches only read or change
 * atomically. options are for the batches of the copy. Preconditions: `from`
 * has joined no batch yet, and outlives the copy. */
OJ_MUST_USE oj_status oj_index_copy(const struct oj_engine *engine,
                                    const struct oj_index *from,
                                    const struct oj_options *options,
                                    struct oj_index **out,
                                    struct oj_error *err);

/** Frees a copy, which may be NULL. */
void oj_index_copy_free(const struct oj_engine *engine, struct oj_index *copy);

/** nearest and dwithin by Hausdorff and Frechet distances. It precedes
 * oj_cpu_distance, which computes minimum distances only. */
extern const struct oj_engine oj_cpu_similar_shapes;
/** nearest and dwithin with small classes of -on, whose features are measured
 * one by one. */
extern const struct oj_engine oj_cpu_distance_of_class;
/** Nearest features of points, for any k (cpu_nearest_search.h). */
extern const struct oj_engine oj_cpu_nearest_points;
/** Nearest and dwithin of points among segments whose direction fits a
 * heading. */
extern const struct oj_engine oj_cpu_nearest_by_heading;
/** Points in polygons: intersects, within, coveredby, touches. */
extern const struct oj_engine oj_cpu_points_in_polygons;
/** Points in envelopes of lines and polygons. */
extern const struct oj_engine oj_cpu_points_in_envelopes;
/** Points within a distance of points. */
extern const struct oj_engine oj_cpu_near_points;
/** nearest and dwithin between features of any kinds. */
extern const struct oj_engine oj_cpu_distance;
/** nearest and dwithin by great-circle distance, with points as input, and
 * on an ellipsoid, with points on one side at least. */
extern const struct oj_engine oj_cpu_sphere;
/** Points with equal coordinates. */
extern const struct oj_engine oj_cpu_equal_points;
/** Features with equal values of -on, whatever their geometry. */
extern const struct oj_engine oj_cpu_equal_attributes;
/** Predicates between features of any kinds. */
extern const struct oj_engine oj_cpu_predicate;
/** The join `similar` with texts. oj_cpu_similar chooses between two methods;
 * the next two engines use one method each, for tests and benchmarks. */
extern const struct oj_engine oj_cpu_similar;
extern const struct oj_engine oj_cpu_similar_lists;
extern const struct oj_engine oj_cpu_similar_bitmaps;
/** The join `similar` with vectors. */
extern const struct oj_engine oj_cpu_similar_vectors;

/* Reference engines of tree_reference.c, which support all joins of shapes (two
 * of them on the globe); plain engines for texts, vectors and attributes; and
 * engines with methods of papers, on the CPU and on the GPU. */
extern const struct oj_engine oj_geos_engine;
extern const struct oj_engine oj_geos_sorted_engine;
extern const struct oj_engine oj_spatialindex_engine;
extern const struct oj_engine oj_spatialindex_collective_engine;
extern const struct oj_engine oj_sphere_engine;
extern const struct oj_engine oj_ellipsoid_engine;
extern const struct oj_engine oj_lists_engine;
extern const struct oj_engine oj_plain_vectors_engine;
extern const struct oj_engine oj_plain_attributes_engine;
extern const struct oj_engine oj_zlists_engine;
/** The function `takes` of oj_zlists_engine and of its GPU version. The GPU
 * version later refuses some of the joins for which it returns 1. */
int oj_zlists_supports_join(const struct oj_relation *relation,
                            const struct oj_flat *join_side,
                            const struct oj_flat *input);
extern const struct oj_engine oj_quadrant_engine;
extern const struct oj_engine oj_cut_points_engine;
extern const struct oj_engine oj_gpics_quadtree_engine;
extern const struct oj_engine oj_gpics_kdtree_engine;
extern const struct oj_engine oj_gpics_quadtree_single_engine;
extern const struct oj_engine oj_gpics_kdtree_single_engine;
/** Kept indexes of points (algs/live). */
extern const struct oj_engine oj_live_quadtree_engine;
extern const struct oj_engine oj_live_kdtree_engine;
extern const struct oj_engine oj_cuda_quadrant_engine;
extern const struct oj_engine oj_cuda_lists_engine;
extern const struct oj_engine oj_cuda_size_blocks_engine;
extern const struct oj_engine oj_cuda_zlists_engine;
extern const struct oj_engine oj_cuda_cut_points_engine;
extern const struct oj_engine oj_cuda_gpics_quadtree_engine;
extern const struct oj_engine oj_cuda_gpics_kdtree_engine;
extern const struct oj_engine oj_cuda_gpics_quadtree_single_engine;
extern const struct oj_engine oj_cuda_gpics_kdtree_single_engine;

#endif
