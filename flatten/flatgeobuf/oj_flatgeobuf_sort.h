/** Rows in the order of the curve, and the index over them, in memory that does
 *  not grow with the rows.
 *
 *   memory, or a temporary file where rows are too many
 *                    rows of block 0 | of block 1 | ...
 *   file             header | upper nodes, root first | nodes of rows | rows
 *                                                       bucket 0 | bucket 1 ..
 *
 *  Rows are sorted by the Hilbert codes of their centres, downwards, equal ones
 *  as they came. First each block is sorted where it is, then each bucket: a
 *  range of codes, which has a stretch of every block. Ranges of about equal
 *  bytes come from a sample of the rows. Blocks, then buckets, are done side by
 *  side, each within memory.
 *
 *  Plain points begin with the bytes of one head, which are not kept, and are
 *  their own box: less than half of each waits. New pages of memory are what an
 *  index costs most.
 *
 *  Source: specification of FlatGeobuf, version 3; Hilbert 1891.
 *  Pays: rows in memory, and heads: a file of 1 M points with its index, see
 *  BENCHMARKS.md.
 */
#ifndef OJ_FLATGEOBUF_SORT_H
#define OJ_FLATGEOBUF_SORT_H

#include "../base/oj_temporary_file.h"

#define OJ_FGB_NODE_SIZE 16

/** Of the index, as in the file. */
struct oj_flatgeobuf_node
{
    double box[4]; /**< least x, least y, greatest x, greatest y */
    uint64_t offset;
};

/** A row as it comes: n bytes of it follow, a multiple of 8. */
struct oj_flatgeobuf_row
{
    uint32_t key; /**< of the order, once it is known */
    uint32_t n : 31;
    uint32_t is_point : 1;

    /** is_point   x, y, the rest of the row; the file has the head before them,
     *             which begins with the size of the row
     *  else       least x, least y, greatest x, greatest y, the row */
    double box[];
};

/** So many rows, their bytes as they come and in the file: a size, or a place
 *  behind them. */
struct oj_flatgeobuf_extent
{
    int64_t rows, bytes, in_file;
};

/** Rows as they come. Zeroed memory and an open file are a valid empty one; it
 *  is closed with it. */
struct oj_flatgeobuf_unsorted
{
    struct oj_temporary_file rows;
    struct oj_flatgeobuf_extent n;
    double box[4];     /**< of all rows; set by who adds them */
    int64_t most_kept; /**< bytes in memory; with more, all are in the file */
    uint8_t head[96];  /**< of points, [n_head]; set by who adds them */
    uint32_t n_head;

    uint8_t *bytes; /**< [n.bytes] of rows in memory, or NULL */
    struct oj_flatgeobuf_extent *block; /**< [n_blocks + 1] where each begins */
    int64_t n_blocks, cap_blocks;
    double (*sample)[4]; /**< [n_samples] box of the first row of each add */
    int64_t n_samples, cap_samples;
};

/** Adds n->rows > 0 rows, one behind another. */
OJ_MUST_USE oj_status oj_flatgeobuf_unsorted_add(
    struct oj_flatgeobuf_unsorted *rows, const uint8_t *bytes,
    const struct oj_flatgeobuf_extent *n, struct oj_error *err);

/** Writes index and rows to file from at on, on up to n_threads. Nothing is
 *  added to rows any more, of which there is at least one. O(rows). */
OJ_MUST_USE oj_status oj_flatgeobuf_sort(struct oj_flatgeobuf_unsorted *rows,
                                         int file, int64_t at, int n_threads,
                                         struct oj_error *err);

void oj_flatgeobuf_unsorted_free(struct oj_flatgeobuf_unsorted *rows);

/** Makes box one of both. */
void oj_flatgeobuf_grow_box(double *box, const double *by);

/** Writes all of n bytes at a place of a file. */
OJ_MUST_USE oj_status oj_flatgeobuf_write_at(int file, int64_t at,
                                             const void *bytes, int64_t n,
                                             struct oj_error *err);

#endif
