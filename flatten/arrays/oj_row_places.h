/** The output rows of an answer, one after the other, as places: pairs, and
 *  rows of a side without pairs.
 *
 *   matches   row 0: pair pair   row 1: none   row 2: pair
 *   left      0 0 1 2            inner 0 0 2   semi 0 2       anti 1
 *
 *  Rows come in input order, pairs of a row in the order of the matches. Right
 *  and full joins treat input rows like inner and left joins
 *  (oj_how_of_input_rows()); their unmatched join rows form an answer of their
 *  own.
 *
 *  For each answer: begin, then take until it returns 0. Columns and geometries
 *  are not handled here: a writer of rows looks them up by place.
 */
#ifndef OJ_ROW_PLACES_H
#define OJ_ROW_PLACES_H

#include "../base/oj_output_row_modes.h"
#include "oj_matches.h"

/** FID of rows without one. */
#define OJ_NO_FID (-1)

/** Origin of the values of an output row. */
struct oj_row_place
{
    int64_t row;      /**< row of the batch */
    int64_t entry;    /**< entry of the matches; -1: no pair */
    int64_t n_pairs;  /**< pairs of the input row, before -pick */
    int32_t rank;     /**< 1, 2, 3 within an input row; 0 without a pair */
    int32_t join_row; /**< -1: no pair */
    int64_t fid;      /**< FID of the output row, or OJ_NO_FID */
};

/** State of the iteration. Plain values, initialised by oj_row_places_make();
 *  borrows the arrays of an answer until the next begin or end. */
struct oj_row_places
{
    enum oj_how how; /* one of the first four */

    /* FIDs of output rows: */
    const int64_t *input_fid; /* [rows of the batch]; NULL: number is used */
    /* > 1: each input FID has this many FIDs of output rows. */
    int64_t stride;
    int64_t number; /* next FID; < 0: none */

    /* The answer: places of entries entry .. end_entry - 1 come next, then rows
     * at .. n_rows - 1. */
    const struct oj_matches *entries; /* NULL: rows without pairs */
    const struct oj_matches *all;     /* all pairs before -pick; or entries */
    const uint8_t *is_matched;        /* used for rows without pairs */
    int64_t first_row, at, n_rows;
    int64_t entry, end_entry, first_entry;
    int64_t row, n_pairs; /* of the current entries */
};

/** Initialises an iteration without an answer; output rows have no FIDs. how:
 *  left, inner, semi or anti. */
struct oj_row_places oj_row_places_make(enum oj_how how);

/** For output rows that do not keep the input's FIDs: they get FIDs first,
 *  first + 1, ..., through all answers that follow; first < 0 (the default):
 *  none. */
void oj_row_places_number(struct oj_row_places *places, int64_t first);

/** For output rows with FIDs derived from the input: the pairs of input feature
 *  f get the FIDs f * stride, f * stride + 1, ..., and a row without a pair the
 *  first of these; f may be negative. A row whose FID exceeds 64 bits gets
 *  OJ_NO_FID. So FIDs do not depend on earlier rows. stride 1 (the default):
 *  one output row per input row. */
void oj_row_places_spread(struct oj_row_places *places, int64_t stride);

/** Returns the FID of the input feature to which the output row with this FID
 *  belongs; *n: number of the row within the feature, from 0. */
int64_t oj_row_places_unspread(int64_t fid, int64_t stride, int64_t *n);

/** Begins an answer.
 *  entries    the pairs that become output rows
 *  all        the pairs before -pick, with as many rows as entries; may be
 *             equal to entries
 *  first_row  row of the batch that is row 0 of entries
 *  input_fid  FIDs of the batch's rows, for output rows that keep them; or
 *             NULL
 */
void oj_row_places_begin(struct oj_row_places *places,
                         const struct oj_matches *entries,
                         const struct oj_matches *all, int64_t first_row,
                         const int64_t *input_fid);

/** Begins an answer of the rows without pairs of a batch of the join layer:
 *  those with is_matched [n_rows] 0. */
void oj_row_places_begin_unmatched(struct oj_row_places *places, int64_t n_rows,
                                   const uint8_t *is_matched);

/** Ends the answer early: nothing is borrowed any more. */
void oj_row_places_end(struct oj_row_places *places);

/** Returns the next places, at most n; their number, 0 at the end of the
 *  answer. */
int64_t oj_row_places_take(struct oj_row_places *places,
                           struct oj_row_place *out, int64_t n);

/** Returns the number of output rows that are left; O(input rows). */
int64_t oj_row_places_count(const struct oj_row_places *places);

#endif
