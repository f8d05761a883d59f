/** Rows in the order of the curve, and the index over them, in memory that does
 *  not grow with the rows.
 *
 *   unsorted file   rows of block 0 | their nodes | rows of block 1 | ...
 *   file            header | upper nodes, root first | nodes of rows | rows
 *                                                        bucket 0 | bucket 1
 * ...
 *
 *  Rows are sorted by the Hilbert codes of their centres, downwards, equal ones
 *  as they came. Buckets are ranges of codes of about equal bytes, from a
 * sample of the rows: blocks, then buckets, are done side by side, each within
 * memory; a row is read and written twice.
 *
 *  Source: specification of FlatGeobuf, version 3; Hilbert 1891.
 */
#ifndef OJ_FLATGEOBUF_SORT_H
#define OJ_FLATGEOBUF_SORT_H

#include "oj_flatgeobuf_encode.h"

#define OJ_FGB_NODE_SIZE 16

struct oj_fgb_block
{
    int64_t at; /**< in the file */
    int64_t n_bytes, n_rows;
};

/** Rows as they come. Zeroed memory and a file are a valid empty one. */
struct oj_fgb_unsorted
{
    int file;
    int64_t n_rows, n_bytes;
    double box[4]; /**< of all rows; set by who adds them */

    struct oj_fgb_block *block; /**< [n_blocks + 1]: the last one grows */
    int64_t n_blocks, cap_blocks;
    struct oj_fgb_node *node; /**< of the block that grows */
    int64_t cap_nodes;
    struct oj_fgb_node *sample; /**< of every stride-th row; size in offset */
    int64_t n_samples, stride;
};

/** Writes all of n bytes at a place. */
OJ_MUST_USE oj_status oj_fgb_write_at(int file, int64_t at, const void *bytes,
                                      int64_t n, struct oj_error *err);

/** Adds n rows of n_bytes in all. */
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

#endif
