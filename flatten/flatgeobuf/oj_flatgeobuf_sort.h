/** Rows in the order of the curve, and the index over them, in memory that does
 *  not grow with the rows.
 *
 *   memory           rows as they come, while they are not too many
 *   temporary files  rows before these, and their nodes
 *   file             header | upper nodes, root first | nodes of rows | rows
 *
 *  Rows are sorted by the Hilbert codes of their centres, downwards, equal ones
 *  as they came. Of those in memory only the order is sorted, by which they go
 *  to the file. What does not fit is dealt out to buckets, ranges of codes,
 *  which have temporary files of their own and are sorted one after another, in
 *  memory or, if they do not fit, in buckets: a row is most often read and
 *  written three times.
 *
 *  Source: specification of FlatGeobuf, version 3; Hilbert 1891.
 *  Pays: rows in memory, a file of 1 M points with its index, see
 * BENCHMARKS.md.
 */
#ifndef OJ_FLATGEOBUF_SORT_H
#define OJ_FLATGEOBUF_SORT_H

#include "../base/oj_temporary_file.h"

#define OJ_FGB_NODE_SIZE 16

/** One node of the index, as in the file. Until rows are sorted, the offset of
 *  a row's is the place where it is in memory. */
struct oj_fgb_node
{
    double box[4]; /**< least x, least y, greatest x, greatest y */
    uint64_t offset;
};

/** So many rows and bytes: a size, or a place behind them. */
struct oj_fgb_extent
{
    int64_t rows, bytes;
};

/** Rows as they come. Zeroed memory with near and room is a valid empty one. */
struct oj_fgb_unsorted
{
    const char *near; /**< see oj_temporary_file_open() */
    int64_t room;     /**< bytes in memory, most often more than a row's */
    double box[4];    /**< of all rows; set by who adds them */

    struct oj_fgb_extent n;
    struct oj_temporary_file rows, nodes; /**< the first ones */

    /* The others. */
    struct oj_fgb_extent held;
    uint8_t *bytes;           /**< [room] */
    struct oj_fgb_node *node; /**< [room / 128] */
    int64_t cap_bytes, cap_nodes;
};

/** Adds n > 0 rows of n_bytes in all. */
OJ_MUST_USE oj_status oj_fgb_unsorted_add(struct oj_fgb_unsorted *rows,
                                          const uint8_t *bytes, int64_t n_bytes,
                                          const struct oj_fgb_node *node,
                                          int64_t n, struct oj_error *err);

/** Writes index and rows to file from at on, on up to n_threads. Nothing is
 *  added to rows any more, of which there is at least one. O(rows). */
OJ_MUST_USE oj_status oj_fgb_sort(struct oj_fgb_unsorted *rows, int file,
                                  int64_t at, int n_threads,
                                  struct oj_error *err);

void oj_fgb_unsorted_free(struct oj_fgb_unsorted *rows);

/** Makes box one of both. */
void oj_fgb_grow_box(double *box, const double *by);

/** Writes all of n bytes at a place of a file. */
OJ_MUST_USE oj_status oj_fgb_write_at(int file, int64_t at, const void *bytes,
                                      int64_t n, struct oj_error *err);

#endif
