/** The answer of a join for one batch of input features.
 *
 *  One-to-one form (offset == NULL): entry i belongs to input row i;
 *  join_row[i] is -1 and measure[i] NaN if nothing matched.
 *
 *  One-to-one form with separate lists for ties (n_tied > 0): if row i is
 *  number t of the tied rows, join_row[i] is OJ_TIED_ROW - t and measure[i]
 *  NaN. Its pairs are tied_offset[t] <= p < tied_offset[t + 1], behind the
 *  entries of the rows, sorted as in a list; there may be none. Other rows need
 *  no offsets.
 *
 *  List form: the pairs of input row i are offset[i] <= p < offset[i + 1],
 *  sorted by (measure, tie rank) for the nearest join and by tie rank, which is
 *  the order of join FIDs, for all others; no entries if nothing matched.
 *
 *  Scattered lists, only for a relation with any_order: the pairs of row i are
 *  offset[2 i] <= p < offset[2 i + 1], anywhere in the arrays; entries between
 *  lists are unused, so n_entries may exceed n_pairs.
 *
 *  oj_matches_first() and oj_matches_end() read all forms.
 */
#ifndef OJ_MATCHES_H
#define OJ_MATCHES_H

#include "../base/oj_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Value of join_row for the first tied row; it decreases by 1 with each
 *  further tied row. */
#define OJ_TIED_ROW (-2)

/** The answer. Owner; zeroed memory is a valid empty answer. An object may be
 * used for many batches, and keeps its memory. */
struct oj_matches
{
    int64_t n_rows;    /**< input features */
    int64_t n_entries; /**< number of entries of join_row and measure */
    int64_t n_pairs;   /**< entries that are pairs */
    int64_t n_matched; /**< input rows with at least one pair */
    /** [n_rows + 1]; scattered lists: [2 n_rows]; one-to-one form: NULL. */
    int64_t *offset;
    int scattered;     /**< 1: scattered lists, else 0 */
    int is_lent;       /**< 1: join_row and measure belong to another owner */
    int32_t *join_row; /**< [n_entries] ordinal in the join layer */
    double *measure;   /**< [n_entries] measure of the pair (a distance is in
                            CRS units); NaN for joins without a measure */

    int64_t n_tied;       /**< number of tied rows; 0 in list form */
    int64_t *tied_row;    /**< [n_tied] the tied rows, ascending */
    int64_t *tied_offset; /**< [n_tied + 1] first entry of each tied row */

    /** Pairs that the backend could not decide, because GEOS raised an
     *  exception: input row undecided[i] with join feature undecided_join[i].
     *  undecided_join[i] == -1, or undecided_join == NULL: the whole row is
     *  undecided (nearest: a feature whose distance cannot be measured could
     *  change all results of the row). Ascending, without duplicates; none of
     *  them is among the pairs. */
    int64_t n_undecided;
    int64_t *undecided;
    int32_t *undecided_join;

    int64_t cap_offset, cap_join_row, cap_measure;
    int64_t cap_tied_row, cap_tied_offset;
    int64_t cap_undecided, cap_undecided_join;
};

/** Makes room for n_rows rows and n_entries entries, in list form or
 *  one-to-one; sets n_rows and n_entries and clears the counts. Contents are
 *  uninitialised. In one-to-one form offset is then NULL. Lists are not
 *  scattered, and no row is tied. */
OJ_MUST_USE oj_status oj_matches_reserve(struct oj_matches *matches,
                                         int64_t n_rows, int64_t n_entries,
                                         int lists, struct oj_error *err);

/** Makes room for n_entries entries; keeps the first n_used. Counts stay
 *  unchanged. */
OJ_MUST_USE oj_status oj_matches_grow(struct oj_matches *matches,
                                      int64_t n_used, int64_t n_entries,
                                      struct oj_error *err);

/** Lends arrays of n entries to matches, which uses them instead of its own as
 *  long as they are large enough. The arrays must outlive matches, or remain
 *  valid until matches changes to arrays of its own. */
void oj_matches_use_lent_arrays(struct oj_matches *matches, int32_t *join_row,
                                double *measure, int64_t n);

/** If the entries are in lent arrays, copies them to arrays that matches owns.
 */
OJ_MUST_USE oj_status oj_matches_copy_lent_arrays(struct oj_matches *matches,
                                                  struct oj_error *err);

/** Makes room for n tied rows, and sets n_tied. */
OJ_MUST_USE oj_status oj_matches_reserve_tied(struct oj_matches *matches,
                                              int64_t n, struct oj_error *err);

/** Like oj_matches_reserve(), for scattered lists. */
OJ_MUST_USE oj_status oj_matches_reserve_scattered(struct oj_matches *matches,
                                                   int64_t n_rows,
                                                   int64_t n_entries,
                                                   struct oj_error *err);

void oj_matches_free(struct oj_matches *matches);

/** Return the index of the first entry of a row, and the index behind its last
 *  entry, in any form. */
static inline int64_t oj_matches_first(const struct oj_matches *m, int64_t row)
{
    if (m->offset != NULL)
        return m->offset[row << m->scattered];
    return m->join_row[row] > OJ_TIED_ROW
               ? row
               : m->tied_offset[OJ_TIED_ROW - m->join_row[row]];
}

static inline int64_t oj_matches_end(const struct oj_matches *m, int64_t row)
{
    if (m->offset != NULL)
        return m->offset[(row << m->scattered) + 1];
    return m->join_row[row] > OJ_TIED_ROW
               ? row + (m->join_row[row] >= 0)
               : m->tied_offset[OJ_TIED_ROW - m->join_row[row] + 1];
}

/** Returns the number of pairs that entry i represents in the answer of a
 *  relation whose enough_pairs is not OJ_ENOUGH_ALL (oj_relation.h). */
static inline int64_t oj_matches_pairs_of_entry(const struct oj_matches *m,
                                                int64_t i)
{
    return m->measure[i] >= 1.0 ? (int64_t)m->measure[i] : 1;
}

#ifdef __cplusplus
}
#endif
#endif
