/** Splits the segments of two features where they run over one another, before
 *  GEOS intersects the features.
 *
 *        a ________ b      Two segments a b and c d share the piece c b, which
 *          c ____|____ d   a third one crosses. GEOS (before 3.12) computes the
 *                |         crossing from the ends of the segments, and rounds
 *                          it: once from a and b, once from c and d. If the
 *                          two results differ, the pieces from c to them differ
 *                          too, and count twice or not at all.
 *
 *  Split at c and b, both segments have the piece c b with equal ends, hence
 *  equal crossings. Only vertices of the features are used, so nothing is
 *  rounded. A union of each feature by itself would not do: the crossings that
 *  it adds do not lie exactly on the segments of the other feature.
 *
 *  Source: ours. */
#ifndef GEOS_SPLIT_SEGMENTS_H
#define GEOS_SPLIT_SEGMENTS_H

#include "../../../flatten/arrays/oj_flat.h"

struct geos_split_vertex;
struct geos_split_piece;

/** The parts of one kind of a feature; the layer must be in the long form. */
struct geos_split_side
{
    const struct oj_flat *flat;
    int64_t feature;
    unsigned kind; /**< OJ_PART_LINE or OJ_PART_POLYGON */
};

/** Buffers that are reused for every pair. Zeroed memory is valid. */
struct geos_split_work
{
    struct geos_split_vertex *vertex; /* ends of segments, in ascending order */
    struct geos_split_piece *piece;   /* pieces of both features, in the order
                                         and the direction of their segments */
    struct geos_split_piece **sorted; /* pieces, equal ones next to each other
                                       */
    int64_t n_vertices, n_pieces;
    int64_t cap_vertex, cap_piece, cap_sorted;
    struct oj_flat_buf split; /* the two features */
};

/** Finds the segments of two features that run over one another. If there are
 * any, sets *is_split to 1, and work->split to two features that have the
 * intersection of the given ones: their lines lack the segments outside of the
 * other feature's box and have each location once. Otherwise sets *is_split to
 * 0.
 *
 * Cost: O(n log n) for n segments in the box of the other feature, O(vertices)
 * for the rest, and a test of each vertex between the ends of a segment along
 * the longer side of the boxes. */
OJ_MUST_USE oj_status geos_split_segments(struct geos_split_work *work,
                                          const struct geos_split_side side[2],
                                          int *is_split, struct oj_error *err);

void geos_split_work_free(struct geos_split_work *work);

#endif
