/** A tree over the edges of a figure, for figures whose edges crowd in bands of
 *  height (relate_feature_edges.h), as those of many polygons side by side.
 *
 *      order   edges: 40 41 42 43 | 8 9 10 11 | 0 1 2 3 ...
 *      runs           [  run 0  ]   [  run 1  ] ...         boxes of the tree
 *
 *  A chain is a sequence of consecutive edges of one group and kind, each of
 *  which begins where the edge before it ends: a ring, a line, or several that
 *  meet at their ends. Chains are in spatial order; the edges of a chain keep
 *  theirs. Chains of rings are closed.
 *
 *  A ray from a point towards +x need not read the edges of a node of the tree
 *  that is wholly to the right of the point. These edges are whole chains,
 *  except that the first and the last chain may be there in part. A closed
 *  chain crosses the ray an even number of times, and a part of a closed chain
 *  an odd number of times if its two ends are on different sides of the ray. So
 *  a ray costs as much as the search for the edges whose boxes contain the
 *  point.
 *
 *  Benchmark that pays for it: "One pair of many parts" in
 *  driver/docs/benchmarks/cpu.md.
 *  Source: ours.
 */
#ifndef RELATE_EDGE_TREE_H
#define RELATE_EDGE_TREE_H

#include "../../foundations/base/cpu_packed_tree.h"

/** What an edge belongs to. */
enum oj_edge_kind
{
    OJ_EDGE_RING, /**< edge of a polygon */
    OJ_EDGE_LINE, /**< edge of a line */
    OJ_EDGE_FLAT  /**< edge of a polygon without area; treated as a line */
};

/** An edge; its ends differ. */
struct oj_edge
{
    double ax, ay, bx, by;
    int32_t group; /**< ordinal of the group; unused for OJ_EDGE_LINE */
    uint8_t kind;  /**< enum oj_edge_kind */
};

/** A part of a chain, from the start of edge `first` to the end of edge `last`,
 * all of it to the right of a box. */
struct oj_chain_part
{
    int32_t first, last;
};

/** Result of a search, whose memory is reused. Owner; zeroed memory is valid.
 */
struct oj_edges_found
{
    int64_t n, capacity;
    int32_t *edge; /**< [n] edges whose boxes may intersect the box */
    int64_t n_right, cap_right;
    struct oj_chain_part *right; /**< [n_right] parts of chains to the right */
};

/** The tree. Owner; zeroed memory is a valid empty value. */
struct oj_edge_tree
{
    int64_t n; /**< number of edges; 0: no tree is made */
    struct oj_tree tree;
    int32_t *order;    /**< [n] edges in the order of the tree */
    int32_t *chain;    /**< [n] chain of each edge */
    int32_t *start;    /**< [n_chains + 1] first edge of each chain */
    int32_t *position; /**< [n_chains] chains in spatial order */
    int64_t n_chains;
    int64_t cap_order, cap_chain, cap_start, cap_position;
};

/** Builds the tree over n edges, 0 < n <= INT32_MAX, with finite coordinates.
 * Makes no tree if a chain of rings is not closed. O(n log n). */
OJ_MUST_USE oj_status oj_edge_tree_build(struct oj_edge_tree *tree,
                                         const struct oj_edge *edge, int64_t n,
                                         struct oj_error *err);

/** Finds the edges whose boxes may intersect *box, each once. with_right 1:
 * also finds the parts of chains that lie to the right of the box, at its
 * heights: the ends of a part decide whether a ray from the box towards +x
 * crosses it an odd number of times. Edges that are found in neither way do not
 * change the parity of the crossings. */
OJ_MUST_USE oj_status oj_edge_tree_find(const struct oj_edge_tree *tree,
                                        const struct oj_box *box,
                                        int with_right,
                                        struct oj_edges_found *found,
                                        struct oj_error *err);

void oj_edges_found_free(struct oj_edges_found *found);

void oj_edge_tree_free(struct oj_edge_tree *tree);

#endif
