/** Rows in the order of the curve, and the index over them, in memory that does
 *  not grow with the rows.
 *
 *   memory           rows as they come, while they are not too many
 *   temporary files  else: rows of block 0 | of block 1 | ...  and their nodes
 *   file             header | upper nodes, root first | nodes of rows | rows
 *                                                       bucket 0 | bucket 1 ..
 *
 *  Rows are sorted by the Hilbert codes of their centres, downwards, equal ones
 *  as they came. Of those in memory only the order is sorted, by which they go
 *  to the file. In temporary files first each block is sorted where it is, then
 *  each bucket: a range of codes, which has a stretch of every block. Ranges of
 *  about equal bytes come from a sample of the rows. Blocks, then buckets, are
 *  done side by side, each within memory; a row is read and written three
 * times.
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

/** Rows as they come. Zeroed memory and two open files are a valid empty one;
 *  they are closed with it. */
struct oj_fgb_unsorted
{
    struct oj_temporary_file rows, nodes;
    struct oj_fgb_extent n;
    double box[4];     /**< of all rows; set by who adds them */
    int64_t most_kept; /**< bytes in memory; with more, all are in the files */

    uint8_t *bytes;           /**< [n.bytes] of rows in memory, or NULL */
    struct oj_fgb_node *node; /**< [n.rows] of these */

    struct oj_fgb_extent *block; /**< [n_blocks + 1] where each begins */
    int64_t n_blocks, cap_blocks;
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
