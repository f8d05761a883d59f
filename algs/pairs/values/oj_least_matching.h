/** A matching of most edges and, of these, of least sum, in a bipartite graph
 *  whose edges have weights.
 *
 *    row 0 --- column 2      matching: a set of edges in which each row and
 *         \-- column 0       each column occurs once at most
 *    row 1 --- column 0
 *
 *  Weights are lists of numbers, and sums of them are compared number by
 * number: the first one that differs decides.  Sums are exact: a weight becomes
 * a whole multiple of 2^-90 of the greatest one of its place in the list, so
 * that weights of up to 2^-37 of that are not rounded, and no result depends on
 * the order in which sums are made.
 *
 *  Of several matchings of equal size and sum, the first row has the first of
 *  its edges that is possible (none comes last), then the second row, and so
 * on.
 *
 *  Source: successive shortest augmenting paths with potentials (Tomizawa 1971;
 *  Edmonds and Karp 1972), row by row as Jonker and Volgenant (1987), each by
 *  Dijkstra's algorithm with a binary heap.  The choice among equal ones: ours,
 *  by cycles of edges without reduced cost.
 */
#ifndef OJ_LEAST_MATCHING_H
#define OJ_LEAST_MATCHING_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

enum
{
    OJ_MATCHING_WEIGHTS = 3 /**< numbers of a weight */
};

/** Most edges of a graph: up to here sums fit into 128 bits. */
#define OJ_MATCHING_MOST_EDGES (INT64_C(1) << 20)

/** Borrows its arrays. */
struct oj_matching_graph
{
    int64_t n_rows, n_columns;
    const int64_t *offset; /**< [n_rows + 1] edges of row r: offset[r] to
                                offset[r + 1] - 1, in the order in which they
                                are preferred among equal sums */
    const int32_t *column; /**< [edges] */
    /** [edges] not NaN; an infinite number is greater than all others, and
     *  equal to itself */
    const double (*weight)[OJ_MATCHING_WEIGHTS];
};

/** Sets chosen[row] to the number of its edge, or to -1.  OJ_ERR_LIMIT for more
 *  edges than OJ_MATCHING_MOST_EDGES.  cancel: nonzero stops; may be NULL.
 *  Cost: at most O(rows * edges * log(columns)); O(edges) if rows get what they
 *  prefer.  Memory: about 64 bytes an edge. */
OJ_MUST_USE oj_status
oj_least_matching_find(const struct oj_matching_graph *graph, const int *cancel,
                       int64_t *chosen, struct oj_error *err);

#endif
