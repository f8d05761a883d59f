/** Which rows the answer of a join gives, one after another: pairs, and rows of
 *  a side without pairs, become places.
 *
 *   matches   row 0: pair pair   row 1: none   row 2: pair
 *   left      0 0 1 2            inner 0 0 2   semi 0 2       anti 1
 *
 *  Rows come in the order of the input, pairs of a row in the order of the
 *  matches. Right and full joins take input rows as inner and left ones do
 *  (oj_how_of_input_rows()); their unmatched join rows come as an answer of
 *  their own.
 *
 *  One answer at a time: begin, then take until it gives no more. There are no
 *  columns nor geometries here: a writer of rows looks up values by places.
 */
#ifndef OJ_ROW_PLACES_H
#define OJ_ROW_PLACES_H

#include "../base/oj_output_row_modes.h"
#include "oj_matches.h"

/** The FID of rows that have none. */
#define OJ_NO_FID (-1)

/** Where the values of a row come from. */
struct oj_row_place
{
    int64_t row;      /**< of the batch */
    int64_t entry;    /**< of entries; -1: no pair */
    int64_t n_pairs;  /**< of the input row, before any is picked */
    int32_t rank;     /**< 1, 2, 3 within an input row; without pair 0 */
    int32_t join_row; /**< -1: no pair */
    int64_t fid;      /**< of the row, or OJ_NO_FID */
};

/** The place of the next row. Plain values, set up by oj_row_places_make();
 *  borrows what it is given until the next begin or end. */
struct oj_row_places
{
    enum oj_how how; /* of the first four */

    /* FIDs of rows. */
    const int64_t *input_fid; /* of the batch's rows; NULL: number counts */
    int64_t stride;           /* > 1: from one input row to the next */
    int64_t number;           /* of the next row; < 0: none */

    /* The answer: rows at .. n_rows - 1 are still to come, and before them the
     * places of entries entry .. end_entry - 1. */
    const struct oj_matches *entries; /* NULL: rows without pairs */
    const struct oj_matches *all;     /* before any was picked, or entries */
    const uint8_t *is_matched;        /* of rows without pairs */
    int64_t first_row, at, n_rows;
    int64_t entry, end_entry, first_entry;
    int64_t row, n_pairs; /* of these entries */
};

/** Places without an answer; rows have no FIDs. how: of input rows, one of
 *  left, inner, semi and anti. */
struct oj_row_places oj_row_places_make(enum oj_how how);

/** Rows that do not keep the input's FIDs have the FIDs first, first + 1 and so
 *  on, through all answers that follow; first < 0, as at first: none. */
void oj_row_places_number(struct oj_row_places *places, int64_t first);

/** Where FIDs are the input's: the pairs of the input feature f have the FIDs
 *  f * stride, f * stride + 1, ..., and a row without pair has the first of
 *  these; f may be negative. A row whose number takes more than 64 bits has
 *  OJ_NO_FID. So FIDs do not depend on the rows before. stride 1, as at first:
 *  one row to an input row. */
void oj_row_places_spread(struct oj_row_places *places, int64_t stride);

/** The input feature that a row with this FID belongs to; *n: the number of the
 *  row among those of the feature, from 0. */
int64_t oj_row_places_unspread(int64_t fid, int64_t stride, int64_t *n);

/** The rows of an answer.
 *  entries    the pairs that become rows
 *  all        the pairs before one of each row was picked, with as many rows as
 *             entries, which it may be
 *  first_row  of the batch: row 0 of entries
 *  input_fid  FIDs of the batch's rows, which rows keep; NULL: they do not */
void oj_row_places_begin(struct oj_row_places *places,
                         const struct oj_matches *entries,
                         const struct oj_matches *all, int64_t first_row,
                         const int64_t *input_fid);

/** The rows of a batch of the join layer where is_matched [n_rows] is 0: places
 *  without pairs. */
void oj_row_places_begin_unmatched(struct oj_row_places *places, int64_t n_rows,
                                   const uint8_t *is_matched);

/** Forgets the rest of the answer: nothing is borrowed any more. */
void oj_row_places_end(struct oj_row_places *places);

/** The places of the next rows, at most n of them; their number, 0 when the
 *  answer has no more. */
int64_t oj_row_places_take(struct oj_row_places *places,
                           struct oj_row_place *out, int64_t n);

/** How many rows the answer still has; looks at each of its input rows. */
int64_t oj_row_places_count(const struct oj_row_places *places);

#endif
