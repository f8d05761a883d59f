/** Hausdorff and Frechet distances between two features, and the features of
 *  one side prepared for them: blocks of up to sixteen vertices or segments,
 *  with a tree of boxes for each feature.
 *
 *  ring            v0 v1 ...               v40
 *  block           [ 0 .. 16 ) [ 16 .. 32 ) [ 25 .. 41 )   of vertices
 *  level 0   box    |           |            |             widened
 *  level 1   box around eight of them, and so on up to one box
 *
 *  The last block of a ring overlaps the one before, so that it is full, too.
 *  Blocks of segments hold the first vertex of each segment; polygons count as
 *  their rings, points as their vertices. Blocks of vertices treat all rings of
 *  a feature as one run. Source: early breaking (Taha and Hanbury 2015), with
 *  boxes; ours. */
#ifndef CPU_SHAPE_BLOCKS_H
#define CPU_SHAPE_BLOCKS_H

#include "../../../flatten/arrays/oj_flat.h"

#define OJ_SHAPE_BLOCK 16

struct oj_shape_block
{
    int64_t first;     /**< first vertex */
    int32_t n;         /**< number of vertices, or of segments; 0: the block is
                            a single point among blocks of segments */
    int32_t is_turned; /**< position of the first segment in its ring, modulo 2:
                            segments at odd positions of a ring are measured
                            from end to start */
};

/** The features of one side, prepared for distances of shapes. Owner; zeroed
 * memory is a valid empty one. */
struct oj_shape_blocks
{
    const struct oj_flat *flat; /**< must outlive this object */
    int of_segments;            /**< 1: blocks of segments; 0: of vertices */
    int n_dims;                 /**< 2, or 3 on the sphere */
    const double *at[3];        /**< [n_dims] arrays of vertex coordinates */
    double *vector;        /**< [n_dims][vertices] unit vectors; NULL in the
                                plane */
    int64_t *block_offset; /**< [n_features + 1] first block of each feature */
    int64_t *node_offset;  /**< [n_features + 1] first node of each feature */
    struct oj_shape_block *block;
    double *node; /**< boxes of all levels of all features, 2 n_dims numbers
                       each: minima, then maxima */
};

/** Prepares the features of flat with n_threads. O(vertices).  On the sphere
 * distances are chords and segments the shorter arcs; features with a latitude
 * beyond 90 have no blocks. */
OJ_MUST_USE oj_status oj_shape_blocks_build(struct oj_shape_blocks *side,
                                            const struct oj_flat *flat,
                                            int of_segments, int on_sphere,
                                            int n_threads,
                                            struct oj_error *err);

int64_t oj_shape_blocks_bytes(const struct oj_shape_blocks *side);

void oj_shape_blocks_free(struct oj_shape_blocks *side);

/** Working memory of one thread. Owner; zeroed memory is valid. */
struct oj_shape_scratch
{
    const int *cancel; /**< computations are stopped if *cancel is nonzero; may
                            be NULL */
    int64_t n_refined; /**< grows by the number of blocks measured and of
                            Frechet cells computed */
    double *leash; /**< [vertices of a feature] scratch: a row of the Frechet
                        table */
    int64_t cap_leash;
};

/** Returns the maximum of so_far and the squared greatest distance from a
 *  vertex of feature_a to feature_b; if that exceeds limit2, any number above
 *  limit2. Both features must have blocks. */
double oj_shape_directed_hausdorff2(const struct oj_shape_blocks *a,
                                    int64_t feature_a,
                                    const struct oj_shape_blocks *b,
                                    int64_t feature_b, double so_far,
                                    double limit2,
                                    struct oj_shape_scratch *scratch);

/** Sets *out to the squared discrete Frechet distance of two features with
 * blocks, whose parts follow each other as one sequence of vertices. If the
 * distance exceeds limit2, sets *out to any number above limit2. least2 is a
 * lower bound of the squared distance. Cost: linear in the cells of the table
 * that are at most limit2. Source: Eiter and Mannila 1994. */
OJ_MUST_USE oj_status oj_shape_frechet2(const struct oj_shape_blocks *a,
                                        int64_t feature_a,
                                        const struct oj_shape_blocks *b,
                                        int64_t feature_b, double least2,
                                        double limit2,
                                        struct oj_shape_scratch *scratch,
                                        double *out, struct oj_error *err);

void oj_shape_scratch_free(struct oj_shape_scratch *scratch);

#endif
