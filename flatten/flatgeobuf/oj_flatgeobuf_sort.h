/** Rows in the order of the curve, and the index over them, in memory that does
 *  not grow with the rows.
 *
 *   temporary files   rows of block 0 | of block 1 | ...      and their nodes
 *   file              header | upper nodes, root first | nodes of rows | rows
 *                                                        bucket 0 | bucket 1 ..
 *
 *  Rows are sorted by the Hilbert codes of their centres, downwards, equal ones
 *  as they came. First each block is sorted where it is, then each bucket: a
 *  range of codes, which has a stretch of every block. Ranges of about equal
 *  bytes come from a sample of the rows. Blocks, then buckets, are done side by
 *  side, each within memory; a row is read and written three times.
 *
 *  Source: specification of FlatGeobuf, version 3; Hilbert 1891.
 */
#ifndef OJ_FLATGEOBUF_SORT_H
#define OJ_FLATGEOBUF_SORT_H

#include "../base/oj_temporary_file.h"

#define OJ_FGB_NODE_SIZE 16

/** One node of the index, as in the file. Until rows are sorted, that of a row
 *  has the row's size in place of the offset. */
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
    double box[4]; /**< of all rows; set by who adds them */

    struct oj_fgb_extent *block; /**< [n_blocks + 1] where each begins */
    int64_t n_blocks, cap_blocks;
    struct oj_fgb_node *sample; /**< of every stride-th row; size in offset */
    int64_t n_samples, stride;
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
