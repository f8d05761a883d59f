/** Collects the begin and end of the scattered lists of rows (oj_matches.h),
 *  while threads find the lists in any order of the rows.
 *
 *  offset    | group 0         | group 1         | ..    two entries for a row
 *  at first  | p p p p . . . . | p p . . . . . . | ..    p: an oj_list_range,
 *                                                        in order of arrival
 *  at last   | b e b e b e b e | b e b e b e b e | ..    begin and end, row by
 *                                                        row
 *
 *  If the offsets of millions of rows were written directly, each would cost a
 *  miss of the cache and of the page table. So rows are divided into groups
 *  whose offsets fit a processor's cache. A thread collects a few ranges per
 *  group and then appends them, many at once, to the group's part of the
 *  offsets. At the end each group is sorted by row. */
#ifndef CPU_SCATTERED_LIST_OFFSETS_H
#define CPU_SCATTERED_LIST_OFFSETS_H

#include "../../../flatten/base/oj_status.h"

#include <stdatomic.h>
#include <stdint.h>

/** Number of ranges that a thread gathers before it appends them. */
#define OJ_LIST_RANGES_AT_ONCE 8

/** Range of the list of a row. Its size equals that of the two offsets that
 * replace it in oj_scattered_offsets.offset. */
struct oj_list_range
{
    int64_t first;   /**< first entry of the list */
    uint32_t n, row; /**< length of the list; number of the row in its group */
};

/** The ranges that a thread has gathered, by group. */
struct oj_list_range_buffer
{
    struct oj_list_range *range; /**< [n_groups][OJ_LIST_RANGES_AT_ONCE] */
    uint8_t *n_waiting;          /**< [n_groups] number of ranges gathered for
                                      each group */
    struct oj_list_range *group; /**< [rows of a group] scratch of
                                      oj_scattered_offsets_write_all() */
};

/** The offsets under construction. Owner; zeroed memory is a valid empty one,
 *  and an object may be reused for other rows. */
struct oj_scattered_offsets
{
    int64_t *offset; /**< [2 n_rows] the result; belongs to the caller */
    int64_t n_rows, n_groups;
    int group_bits; /**< the group of a row is row >> group_bits */
    int n_threads;
    atomic_llong *n_passed; /**< [n_groups] number of ranges in the group's
                                 part of offset */
    struct oj_list_range_buffer *buffer; /**< [n_threads] */
};

/** Prepares for n_rows rows and n_threads threads. n_threads must be equal in
 *  all calls for one object. */
OJ_MUST_USE oj_status oj_scattered_offsets_begin(
    struct oj_scattered_offsets *offsets, int64_t *offset, int64_t n_rows,
    int n_threads, struct oj_error *err);

/** Appends what a thread has gathered for a group to the group's part of
 *  offset. */
void oj_scattered_offsets_flush_group(struct oj_scattered_offsets *offsets,
                                      struct oj_list_range_buffer *buffer,
                                      int64_t group);

/** Records that the list of row `row` has n entries, from entry `first` on.
 * Each row may be recorded once at most. */
static inline void
oj_scattered_offsets_record(struct oj_scattered_offsets *offsets, int thread,
                            int64_t row, int64_t first, int64_t n)
{
    struct oj_list_range_buffer *buffer = &offsets->buffer[thread];
    int64_t group = row >> offsets->group_bits;
    int64_t at = group * OJ_LIST_RANGES_AT_ONCE + buffer->n_waiting[group];
    buffer->range[at].first = first;
    buffer->range[at].n = (uint32_t)n;
    buffer->range[at].row = (uint32_t)(row - (group << offsets->group_bits));
    if (++buffer->n_waiting[group] == OJ_LIST_RANGES_AT_ONCE)
        oj_scattered_offsets_flush_group(offsets, buffer, group);
}

/** Makes the offsets of all rows. Rows that were not recorded have no entries.
 */
void oj_scattered_offsets_write_all(struct oj_scattered_offsets *offsets);

void oj_scattered_offsets_free(struct oj_scattered_offsets *offsets);

#endif
