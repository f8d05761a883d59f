/** Iterates over the output rows of an answer as places: a place names the pair
 *  of an output row, or the row of a side that has no pair.
 *
 *   matches           row 0: pair pair   row 1: none   row 2: pair
 *   places, by row    left 0 0 1 2   inner 0 0 2   semi 0 2   anti 1
 *
 *  Rows come in input order, pairs of a row in the order of the matches. Right
 *  and full joins treat input rows like inner and left joins
 *  (oj_how_of_input_rows()); their unmatched join rows form an answer of their
 *  own.
 *
 *  For each answer: begin, then next until it returns 0. Columns and geometries
 *  are not handled here: a writer of rows looks them up by place.
 */
#ifndef OJ_ROW_PLACES_H
#define OJ_ROW_PLACES_H

#include "../base/oj_output_row_modes.h"
#include "oj_matches.h"

/** Stands for the FID of a row that has no FID. */
#define OJ_NO_FID (-1)

/** Where the values of an output row come from. */
struct oj_row_place
{
    int64_t row;      /**< row of the batch */
    int64_t entry;    /**< entry of the matches; -1: no pair */
    int64_t n_pairs;  /**< pairs of the input row, before -pick */
    int32_t rank;     /**< 1, 2, 3 within an input row; 0 without a pair */
    int32_t join_row; /**< ordinal of the join feature; -1: no pair */
    int64_t fid;      /**< FID of the output row, or OJ_NO_FID if it has none */
};

/** State of the iteration. Plain data, initialised by oj_row_places_make();
 *  borrows the arrays of an answer until the next begin or end. */
struct oj_row_places
{
    enum oj_how how; /* left, inner, semi or anti */

    /* How output rows get their FIDs: */
    const int64_t *input_fid; /* [rows of the batch] FIDs of the input; NULL:
                                 rows are numbered from `number` on */
    /* If > 1, each input feature has this many FIDs for its output rows. */
    int64_t stride;
    int64_t number; /* next FID of numbered rows; < 0: rows have no FIDs */

    /* The current answer. The next output rows are those of entries entry ..
     * end_entry - 1, then those of rows at .. n_rows - 1. */
    const struct oj_matches *entries; /* NULL: rows without pairs */
    const struct oj_matches *all;     /* all pairs before -pick; may equal
                                         entries */
    const uint8_t *is_matched;        /* for a batch of the join side: nonzero
                                         if a row has a pair; the other rows
                                         become output rows */
    int64_t first_row, at, n_rows;
    int64_t entry, end_entry, first_entry;
    int64_t row, n_pairs; /* row and number of pairs of the current entries */
};

/** Initialises an iteration without an answer; output rows have no FIDs. how
 *  must be left, inner, semi or anti. */
struct oj_row_places oj_row_places_make(enum oj_how how);

/** Gives output rows the FIDs first, first + 1, ..., through all answers that
 *  follow; for rows that do not keep the input's FIDs. first < 0 (the default):
 *  rows have no FIDs. */
void oj_row_places_set_first_fid(struct oj_row_places *places, int64_t first);

/** Derives the FIDs of output rows from the input: the pairs of input feature f
 *  get f * stride, f * stride + 1, ..., and a row without a pair gets f *
 *  stride; f may be negative. So FIDs do not depend on earlier rows. A row
 *  whose FID exceeds 64 bits gets OJ_NO_FID. stride 1 (the default): one output
 *  row per input row. */
void oj_row_places_set_fid_stride(struct oj_row_places *places, int64_t stride);

/** Returns the FID of the input feature that the output row with this FID comes
 *  from; *n: number of this row within the feature, from 0. */
int64_t oj_row_places_input_fid(int64_t fid, int64_t stride, int64_t *n);

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

/** Begins an answer whose output rows are the rows of a batch of the join layer
 *  for which is_matched [n_rows] is 0. */
void oj_row_places_begin_unmatched(struct oj_row_places *places, int64_t n_rows,
                                   const uint8_t *is_matched);

/** Ends the answer, also before its last row; the iteration then borrows
 *  nothing. */
void oj_row_places_end(struct oj_row_places *places);

/** Writes the next places, at most n, to out. Returns how many; 0 at the end of
 *  the answer. */
int64_t oj_row_places_next(struct oj_row_places *places,
                           struct oj_row_place *out, int64_t n);

/** Returns the number of output rows that remain; O(input rows). */
int64_t oj_row_places_count(const struct oj_row_places *places);

#endif
