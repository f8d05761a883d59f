/** Where scattered lists begin and end, as threads find them: in any order of
 *  the rows.
 *
 *  offset    | group 0         | group 1         | ..    two entries for a row
 *  at first  | p p p p . . . . | p p . . . . . . | ..    places, as they came
 *  at last   | b e b e b e b e | b e b e b e b e | ..    of row after row
 *
 *  Written where they belong one by one, offsets of millions of rows would wait
 *  for a page and a line of memory each.  So rows are in groups whose offsets
 *  fit a processor's cache.  A thread gathers the places of a group in a line
 *  or two of its own and passes them on, many at once, to the group's part of
 *  the offsets; in the end each group is put in the order of its rows.
 */
#ifndef CPU_SCATTERED_LIST_OFFSETS_H
#define CPU_SCATTERED_LIST_OFFSETS_H

#include "../../../flatten/base/oj_status.h"

#include <stdatomic.h>
#include <stdint.h>

/** Maximum number of places that a thread gathers before it passes them on. */
#define OJ_PLACES_AT_ONCE 8

/** Position of the list of one row. It has the size of the two offsets that
 *  replace it in oj_list_places.offset. */
struct oj_list_place
{
    int64_t first;   /**< entry of the list */
    uint32_t n, row; /**< its length; row in the group */
};

/** What a thread has gathered, group by group. */
struct oj_list_notes
{
    struct oj_list_place *place; /**< [n_groups][OJ_PLACES_AT_ONCE] */
    uint8_t *n_waiting;          /**< [n_groups] */
    struct oj_list_place *group; /**< [rows of a group] */
};

/** Owner; zeroed memory is a valid one of no rows, and one object may be used
 *  again for other rows. */
struct oj_list_places
{
    int64_t *offset; /**< [2 n_rows], the caller's */
    int64_t n_rows, n_groups;
    int group_bits; /**< of a row's number, below its group's */
    int n_threads;
    atomic_llong *n_passed;      /**< [n_groups] */
    struct oj_list_notes *notes; /**< [n_threads] */
};

/** Makes ready for n_rows rows and n_threads threads, the same number each
 *  time. */
OJ_MUST_USE oj_status oj_list_places_begin(struct oj_list_places *places,
                                           int64_t *offset, int64_t n_rows,
                                           int n_threads, struct oj_error *err);

/** Passes on what a thread has gathered for a group. */
void oj_list_places_pass(struct oj_list_places *places,
                         struct oj_list_notes *notes, int64_t group);

/** Notes that the list of row has n entries from first on; each row at most
 *  once. */
static inline void oj_list_places_put(struct oj_list_places *places, int thread,
                                      int64_t row, int64_t first, int64_t n)
{
    struct oj_list_notes *notes = &places->notes[thread];
    int64_t group = row >> places->group_bits;
    int64_t at = group * OJ_PLACES_AT_ONCE + notes->n_waiting[group];
    notes->place[at].first = first;
    notes->place[at].n = (uint32_t)n;
    notes->place[at].row = (uint32_t)(row - (group << places->group_bits));
    if (++notes->n_waiting[group] == OJ_PLACES_AT_ONCE)
        oj_list_places_pass(places, notes, group);
}

/** Offsets of all rows from what was noted; rows that were not have no
 *  entries. */
void oj_list_places_end(struct oj_list_places *places);

void oj_list_places_free(struct oj_list_places *places);

#endif
