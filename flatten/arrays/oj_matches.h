/** The answer of a join for one batch of input features.
 *
 *  One-to-one form (offset == NULL): entry i belongs to input row i;
 *  join_row[i] is -1 and measure[i] NaN where nothing matched.
 *
 *  One-to-one but for ties (n_tied > 0): of a row that is listed apart
 *  join_row[i] is OJ_TIED_ROW - t, measure[i] NaN, and its pairs are
 *  tied_offset[t] <= p < tied_offset[t + 1], behind the entries of the rows,
 *  sorted as in a list; there may be none.  What few rows need costs the others
 * nothing.
 *
 *  List form: the pairs of input row i are offset[i] <= p < offset[i + 1],
 *  sorted by (measure, tie rank) for the nearest join and by tie rank, which is
 *  join FID, for all others; no entries where nothing matched.
 *
 *  Scattered lists, only for a relation with any_order: those of row i are
 *  offset[2 i] <= p < offset[2 i + 1], anywhere in the arrays; entries between
 *  lists mean nothing, so n_entries may be more than n_pairs.
 *  oj_matches_first() and oj_matches_end() read all forms of rows.
 */
#ifndef OJ_MATCHES_H
#define OJ_MATCHES_H

#include "../base/oj_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** In join_row, of the first row that is listed apart; less by one for each
 *  that follows. */
#define OJ_TIED_ROW (-2)

/** Owner; zeroed memory is a valid empty one, and one object may be reused for
 *  many batches (its memory is kept). */
struct oj_matches
{
    int64_t n_rows;    /**< input features */
    int64_t n_entries; /**< of join_row and measure */
    int64_t n_pairs;   /**< entries that are pairs */
    int64_t n_matched; /**< input rows with at least one pair */
    int64_t *offset;   /**< [n_rows + 1] or NULL: one-to-one form; scattered:
                            [2 n_rows] */
    int scattered;     /**< 1: scattered lists, else 0 */
    int is_lent;       /**< 1: join_row and measure are another's memory */
    int32_t *join_row; /**< [n_entries] ordinal in the join layer */
    double *measure;   /**< [n_entries] distance in CRS units; NaN for joins
                            without a measure */

    int64_t n_tied;       /**< rows that are listed apart; 0 in list form */
    int64_t *tied_row;    /**< [n_tied] ascending */
    int64_t *tied_offset; /**< [n_tied + 1] into the entries */

    /** What the backend could not decide (GEOS raised): input row undecided[i]
     *  with join feature undecided_join[i], or all of the row where that is -1
     *  (nearest: a feature that cannot be measured may move the others), and
     *  where undecided_join is NULL.  Ascending, each once; none of them is a
     *  pair. */
    int64_t n_undecided;
    int64_t *undecided;
    int32_t *undecided_join;

    int64_t cap_offset, cap_join_row, cap_measure;
    int64_t cap_tied_row, cap_tied_offset;
    int64_t cap_undecided, cap_undecided_join;
};

/** Makes room for n_rows rows and n_entries entries, list form or not, and sets
 *  n_rows, n_entries and clears the counts; contents are not initialised.
 *  offset is NULL after this in one-to-one form; lists are not scattered, and
 *  no row is listed apart. */
OJ_MUST_USE oj_status oj_matches_reserve(struct oj_matches *matches,
                                         int64_t n_rows, int64_t n_entries,
                                         int lists, struct oj_error *err);

/** Makes room for n_entries entries, of which the first n_used are kept; counts
 *  stay as they are. */
OJ_MUST_USE oj_status oj_matches_grow(struct oj_matches *matches,
                                      int64_t n_used, int64_t n_entries,
                                      struct oj_error *err);

/** Gives matches the arrays of another, with room for n entries, which are
 *  written in place of own ones for as long as they are large enough.  They
 *  outlive matches, or what follows. */
void oj_matches_lend(struct oj_matches *matches, int32_t *join_row,
                     double *measure, int64_t n);

/** Copies the entries to own arrays, where they lie in lent ones. */
OJ_MUST_USE oj_status oj_matches_unlend(struct oj_matches *matches,
                                        struct oj_error *err);

/** Makes room for n rows that are listed apart, and sets n_tied. */
OJ_MUST_USE oj_status oj_matches_reserve_tied(struct oj_matches *matches,
                                              int64_t n, struct oj_error *err);

/** As oj_matches_reserve(), for scattered lists. */
OJ_MUST_USE oj_status oj_matches_reserve_scattered(struct oj_matches *matches,
                                                   int64_t n_rows,
                                                   int64_t n_entries,
                                                   struct oj_error *err);

void oj_matches_free(struct oj_matches *matches);

/** First and one-past-last entry of row, in any form. */
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

#ifdef __cplusplus
}
#endif
#endif
