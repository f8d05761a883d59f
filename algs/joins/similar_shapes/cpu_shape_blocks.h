/** The features of one side, ready for distances of shapes: runs of up to
 *  sixteen vertices or segments with their boxes, under a tree of their own for
 *  each feature; and the distances between two of them.
 *
 *  ring            v0 v1 ...               v40
 *  block           [ 0 .. 16 ) [ 16 .. 32 ) [ 25 .. 41 )   of vertices
 *  level 0   box    |           |            |             widened
 *  level 1   box around eight of them, and so on up to one box
 *
 *  The last block of a ring reaches back so that it is full, too.  Blocks of
 *  segments name the first vertices; the rings of polygons and the vertices of
 *  points are what counts.  Blocks of vertices take all rings of a feature as
 *  one run.
 *  Source: early breaking (Taha and Hanbury 2015), with boxes; ours.
 */
#ifndef CPU_SHAPE_BLOCKS_H
#define CPU_SHAPE_BLOCKS_H

#include "../../../flatten/arrays/oj_flat.h"

#define OJ_SHAPE_BLOCK 16

struct oj_shape_block
{
    int64_t first;     /**< vertex */
    int32_t n;         /**< vertices, or segments; a segment that is a point: 0,
                            which is one vertex, too */
    int32_t is_turned; /**< the first segment is turned around; then every
                            second one */
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_shape_blocks
{
    const struct oj_flat *flat; /**< outlives this */
    int of_segments;            /**< 0: blocks are of vertices */
    int n_dims;                 /**< 3: on the sphere */
    const double *at[3];   /**< [n_dims] coordinates of the vertices of flat */
    double *vector;        /**< [3 * vertices] unit vectors, or NULL: planar */
    int64_t *block_offset; /**< [n_features + 1] into block */
    int64_t *node_offset;  /**< [n_features + 1] into node */
    struct oj_shape_block *block;
    double *node; /**< boxes of all levels of all features */
};

/** Prepares the features of flat with n_threads. O(vertices).  On the sphere
 *  distances are chords, segments the shorter arcs, and features with a
 *  latitude beyond 90 have no blocks. */
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
    const int *cancel; /**< nonzero: distances are given up; may be NULL */
    int64_t n_refined; /**< blocks and cells that were measured */
    double *leash; /**< [vertices of a feature] a row of the Frechet table */
    int64_t cap_leash;
};

/** The square of the greatest distance from a vertex of feature of a to feature
 *  of b, or so_far, whichever is more; where that is above limit2, anything
 *  above it.  Both features have blocks. */
double oj_shape_directed2(const struct oj_shape_blocks *a, int64_t feature_a,
                          const struct oj_shape_blocks *b, int64_t feature_b,
                          double so_far, double limit2,
                          struct oj_shape_scratch *scratch);

/** The square of the discrete Frechet distance of two features with blocks,
 *  all parts in order, which is known to be at least least2; where it is above
 *  limit2, anything above it.  Cells of the table above limit2 are left out:
 * O(cells within it). Source: Eiter and Mannila 1994. */
OJ_MUST_USE oj_status oj_shape_frechet2(const struct oj_shape_blocks *a,
                                        int64_t feature_a,
                                        const struct oj_shape_blocks *b,
                                        int64_t feature_b, double least2,
                                        double limit2,
                                        struct oj_shape_scratch *scratch,
                                        double *out, struct oj_error *err);

void oj_shape_scratch_free(struct oj_shape_scratch *scratch);

#endif
