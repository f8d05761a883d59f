/** Finds, in a bipartite graph with weighted edges, a matching of maximum size
 *  and, among those, of minimum sum of weights.
 *
 *    row 0 --- column 2      matching: a set of edges in which each row and
 *         \-- column 0       each column occurs at most once
 *    row 1 --- column 0
 *
 *  A weight is a list of numbers. Sums of weights are compared number by
 *  number: the first one that differs decides. Sums are exact: each number is
 *  converted to a multiple of 2^-90 of the maximum at its position in the list.
 *  Numbers down to 2^-37 of that maximum are not rounded, and no result depends
 *  on the order of addition.
 *
 *  Among matchings of equal size and sum, the first row gets the first of its
 *  edges that is possible (no edge is the last choice), then the second row,
 *  and so on.
 *
 *  Source: successive shortest augmenting paths with potentials (Tomizawa 1971;
 *  Edmonds and Karp 1972), row by row as Jonker and Volgenant (1987), each by
 *  Dijkstra's algorithm with a binary heap. The choice among equal matchings is
 *  ours, by cycles of edges of reduced cost 0. */
#ifndef OJ_LEAST_MATCHING_H
#define OJ_LEAST_MATCHING_H

#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

enum
{
    OJ_MATCHING_WEIGHTS = 3 /**< length of the list of numbers that forms a
                                 weight */
};

/** Maximum number of edges of a graph; up to this number, sums fit into 128
 * bits. */
#define OJ_MATCHING_MOST_EDGES (INT64_C(1) << 20)

/** A bipartite graph in rows of edges; borrows its arrays. */
struct oj_matching_graph
{
    int64_t n_rows, n_columns;
    const int64_t *offset; /**< [n_rows + 1] edges of row r: offset[r] to
                                offset[r + 1] - 1, in the order in which they
                                are preferred among equal sums */
    const int32_t *column; /**< [edges] */
    /** [edges] weight of each edge. Its numbers are not NaN; an infinite number
     * is greater than all others, and equal to itself. */
    const double (*weight)[OJ_MATCHING_WEIGHTS];
};

/** Sets chosen[row] to the edge of the row in the matching, or to -1. Fails
 * with OJ_ERR_LIMIT if the graph has more than OJ_MATCHING_MOST_EDGES edges.
 * cancel: nonzero stops the search; may be NULL. Cost: at most O(rows * edges
 * * log(columns)); O(edges) if each row can have its first choice. Memory:
 * about 64 bytes an edge. */
OJ_MUST_USE oj_status
oj_least_matching_find(const struct oj_matching_graph *graph, const int *cancel,
                       int64_t *chosen, struct oj_error *err);

#endif
