/** Collects where the scattered lists of rows begin and end (oj_matches.h),
 * while threads find the lists in any order of the rows.
 *
 *  offset    | group 0         | group 1         | ..    two entries for a row
 *  at first  | p p p p . . . . | p p . . . . . . | ..    struct oj_list_place,
 * in the order of arrival at last   | b e b e b e b e | b e b e b e b e | ..
 * begin and end, row by row
 *
 *  If the offsets of millions of rows were written directly, each would cost a
 *  miss of the cache and of the page table.  So rows are divided into groups
 *  whose offsets fit a processor's cache.  A thread gathers a few places per
 *  group and then appends them, many at once, to the group's part of the
 * offsets. At the end each group is sorted by row.
 */
#ifndef CPU_SCATTERED_LIST_OFFSETS_H
#define CPU_SCATTERED_LIST_OFFSETS_H

#include "../../../flatten/base/oj_status.h"

#include <stdatomic.h>
#include <stdint.h>

/** Number of places that a thread gathers before it appends them. */
#define OJ_PLACES_AT_ONCE 8

/** Where the list of a row is. Its size is that of the two offsets that replace
 *  it in oj_list_places.offset. */
struct oj_list_place
{
    int64_t first;   /**< first entry of the list */
    uint32_t n, row; /**< length of the list; number of the row in its group */
};

/** The places that a thread has gathered, by group. */
struct oj_list_notes
{
    struct oj_list_place *place; /**< [n_groups][OJ_PLACES_AT_ONCE] */
    uint8_t *n_waiting;          /**< [n_groups] */
    struct oj_list_place *group; /**< [rows of a group] scratch of
                                      oj_list_places_end() */
};

/** The offsets under construction. Owner; zeroed memory is a valid empty one,
 *  and an object may be reused for other rows. */
struct oj_list_places
{
    int64_t *offset; /**< [2 n_rows] the result; belongs to the caller */
    int64_t n_rows, n_groups;
    int group_bits; /**< the group of a row is row >> group_bits */
    int n_threads;
    atomic_llong *n_passed;      /**< [n_groups] number of places in the group's
                                      part of offset */
    struct oj_list_notes *notes; /**< [n_threads] */
};

/** Prepares for n_rows rows and n_threads threads. n_threads must be equal in
 *  all calls for one object. */
OJ_MUST_USE oj_status oj_list_places_begin(struct oj_list_places *places,
                                           int64_t *offset, int64_t n_rows,
                                           int n_threads, struct oj_error *err);

/** Appends what a thread has gathered for a group to the group's part of
 *  offset. */
void oj_list_places_flush_group(struct oj_list_places *places,
                                struct oj_list_notes *notes, int64_t group);

/** Records that the list of row has n entries, from entry `first` on; at most
 *  once per row. */
static inline void oj_list_places_record(struct oj_list_places *places,
                                         int thread, int64_t row, int64_t first,
                                         int64_t n)
{
    struct oj_list_notes *notes = &places->notes[thread];
    int64_t group = row >> places->group_bits;
    int64_t at = group * OJ_PLACES_AT_ONCE + notes->n_waiting[group];
    notes->place[at].first = first;
    notes->place[at].n = (uint32_t)n;
    notes->place[at].row = (uint32_t)(row - (group << places->group_bits));
    if (++notes->n_waiting[group] == OJ_PLACES_AT_ONCE)
        oj_list_places_flush_group(places, notes, group);
}

/** Makes the offsets of all rows. Rows that were not recorded have no entries.
 */
void oj_list_places_end(struct oj_list_places *places);

void oj_list_places_free(struct oj_list_places *places);

#endif
