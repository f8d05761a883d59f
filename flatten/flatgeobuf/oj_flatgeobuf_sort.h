/** Sorts rows along a Hilbert curve and makes the packed index, in bounded
 *  memory.
 *
 *    memory, or a temporary file if there are too many rows
 *                     rows of block 0 | of block 1 | ...
 *    file             header | upper nodes, root first | nodes of rows | rows
 *                                                        bucket 0 | bucket 1 ..
 *
 *  Rows are sorted by the Hilbert codes of their centres, in descending order,
 *  equal codes in input order. A bucket is a range of codes; ranges of about
 *  equal bytes are chosen from a sample of the rows. First each block is
 *  sorted in place, so that each bucket is a stretch of every block; then the
 *  stretches of each bucket are merged. Blocks, and later buckets, are
 *  processed in parallel, within the memory limit.
 *
 *  Records of plain points have a common head, which is stored once (`head`),
 *  and their coordinates are also their box. So less than half of the bytes of
 *  a point are stored. This saves time because writing to new pages of memory
 *  is the main cost of an index.
 *
 *  Source: specification of FlatGeobuf, version 3; Hilbert 1891. Keeping rows
 *  in memory and storing the head once save time in files of 1 M points with an
 *  index; BENCHMARKS.md has the times. */
#ifndef OJ_FLATGEOBUF_SORT_H
#define OJ_FLATGEOBUF_SORT_H

#include "../base/oj_temporary_file.h"

#define OJ_FGB_NODE_SIZE 16

/** A node of the index, as in the file. */
struct oj_flatgeobuf_node
{
    double box[4]; /**< minimum x, minimum y, maximum x, maximum y */
    uint64_t offset;
};

/** A collected row, followed by n bytes, a multiple of 8. */
struct oj_flatgeobuf_row
{
    uint32_t key; /**< sort key, once it has been computed */
    uint32_t n : 31;
    uint32_t is_point : 1;

    /** If is_point: x, y, then the rest of the row; in the output file the
     *  bytes of `head` precede them, and begin with the size of the row.
     *  Otherwise: minimum x, minimum y, maximum x, maximum y, then the row. */
    double box[];
};

/** A number of rows, their bytes as collected, and their bytes in the output
 *  file. Used both as a size and as a position. */
struct oj_flatgeobuf_extent
{
    int64_t rows, bytes, in_file;
};

/** Collected rows. Zeroed, with an open file, it is valid and empty; freeing it
 *  closes the file. */
struct oj_flatgeobuf_unsorted
{
    struct oj_temporary_file rows;
    struct oj_flatgeobuf_extent n;
    double box[4]; /**< box of all rows; set by the caller */
    /** maximum bytes in memory; if rows need more, all go to the temporary file
     */
    int64_t most_kept;
    uint8_t head[96]; /**< [n_head] bytes with which all plain points begin; set
                           by the caller */
    uint32_t n_head;

    uint8_t *bytes; /**< [n.bytes] the rows, if in memory, or NULL */
    /** [n_blocks + 1] start of each block */
    struct oj_flatgeobuf_extent *block;
    int64_t n_blocks, cap_blocks;
    double (*sample)[4]; /**< [n_samples] box of the first row of each call of
                              add */
    int64_t n_samples, cap_samples;
};

/** Adds n->rows > 0 consecutive rows of n->bytes bytes. */
OJ_MUST_USE oj_status oj_flatgeobuf_unsorted_add(
    struct oj_flatgeobuf_unsorted *rows, const uint8_t *bytes,
    const struct oj_flatgeobuf_extent *n, struct oj_error *err);

/** Sorts the rows (at least one) and writes index and rows to file from offset
 *  `at` on, on up to n_threads. No rows may be added afterwards. O(rows). */
OJ_MUST_USE oj_status oj_flatgeobuf_sort(struct oj_flatgeobuf_unsorted *rows,
                                         int file, int64_t at, int n_threads,
                                         struct oj_error *err);

void oj_flatgeobuf_unsorted_free(struct oj_flatgeobuf_unsorted *rows);

/** Extends box to contain the box `by`. */
void oj_flatgeobuf_grow_box(double *box, const double *by);

/** Writes n bytes at an offset of a file. */
OJ_MUST_USE oj_status oj_flatgeobuf_write_at(int file, int64_t at,
                                             const void *bytes, int64_t n,
                                             struct oj_error *err);

#endif
