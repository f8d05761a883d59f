/** The arrangement of two features: their segments cut at all nodes, which are
 *  vertices, points, and crossings of any two segments.
 *
 *  Nodes are numbered by x, then by y, and so in their order along any segment.
 *  A piece is what lies of a segment between two neighbouring nodes; pieces
 * with equal ends are one piece of the plane, and lie behind each other.
 */
#ifndef EXACT_ARRANGEMENT_H
#define EXACT_ARRANGEMENT_H

#include "exact_pair.h"

/** A node on a segment. */
struct oj_exact_cut
{
    int64_t segment, node;
};

/** Of one segment; from < to. */
struct oj_exact_piece
{
    int64_t from, to, part, segment;
};

struct oj_exact_arrangement
{
    struct oj_exact_pair pair;
    struct oj_exact_tree tree; /* of the segments with a length */
    int64_t n_places, cap_places, n_cuts, cap_cuts, n_nodes, n_pieces;
    /* Segment s has the places 2 s and 2 s + 1; those of dots and crossings
     * follow. */
    struct oj_exact_place *place;
    int64_t *node_of_place;
    const struct oj_exact_place **node;
    struct oj_exact_cut *cut;
    struct oj_exact_piece *piece; /* by from, to, part, segment */
};

/** Owner of all; zeroed memory is a valid empty one. */
OJ_MUST_USE oj_status oj_exact_arrange(const struct oj_flat *input, int64_t row,
                                       const struct oj_flat *join_side,
                                       int64_t feature,
                                       struct oj_exact_arrangement *out,
                                       struct oj_error *err);

void oj_exact_arrangement_free(struct oj_exact_arrangement *arrangement);

/** The end of the records, from first on, that are one piece of the plane. */
int64_t oj_exact_piece_end(const struct oj_exact_arrangement *arrangement,
                           int64_t first);

/** The end of those that are of one part as well. */
int64_t oj_exact_piece_part_end(const struct oj_exact_arrangement *arrangement,
                                int64_t first);

#endif
