/** Cursor over the output rows of a join: turns batches and their matches, or
 *  unmatched rows of the join layer, into row places (oj_row_places.h) and
 *  features.
 *
 *  One answer at a time: begin, then next() or next_places() until there are no
 *  more rows.  Part of the layer writer: uses GDAL's C API.  Not thread-safe.
 */
#ifndef OJ_ROW_CURSOR_H
#define OJ_ROW_CURSOR_H

#include "oj_row_layout.h"

#include <math.h>
#include <string.h>

struct oj_row_cursor;

/** Opens a cursor for features of defn. defn and everything that options point
 *  to must outlive it. */
OJ_MUST_USE oj_status oj_row_cursor_open(OGRFeatureDefnH defn,
                                         const struct oj_write_options *options,
                                         struct oj_row_cursor **out,
                                         struct oj_error *err);

/** Frees the cursor; accepts NULL. */
void oj_row_cursor_close(struct oj_row_cursor *cursor);

/** Sets the join side for the following answers; its columns are those of
 *  options.join_table. *join_side is copied; its arrays and the table must stay
 *  valid while they are in use. */
void oj_row_cursor_set_join_side(struct oj_row_cursor *cursor,
                                 const struct oj_flat *join_side,
                                 const struct oj_table *table);

/** Gives output rows the FIDs first, first + 1, ... Not with
 * options.keep_fids. */
void oj_row_cursor_set_first_fid(struct oj_row_cursor *cursor, int64_t first);

/** Gives the pairs of input feature f the FIDs f * stride, f * stride + 1, ...
 * (oj_row_places_set_fid_stride()). Only with options.keep_fids. */
void oj_row_cursor_set_fid_stride(struct oj_row_cursor *cursor, int64_t stride);

/* ---- answers ------------------------------------------------------------- */

/** Begins the output rows for matches, whose row 0 is row first_row of batch:
 *  in input order, the pairs of a row in the order of the matches.  Ends the
 *  previous answer.  All arguments are borrowed until the next begin or end, or
 *  until next() or next_places() has returned that there are no more rows.
 *  values: further values of the pairs, or NULL. */
OJ_MUST_USE oj_status oj_row_cursor_begin_answer(
    struct oj_row_cursor *cursor, const struct oj_batch *batch,
    int64_t first_row, const struct oj_matches *matches,
    const struct oj_pair_values *values, struct oj_error *err);

/** Begins the output rows of unmatched join features: one row for each row of a
 *  batch of the join layer whose is_matched [batch->n_rows] is 0. Columns of
 *  the input are NULL, and FIDs are those of oj_row_cursor_set_first_fid(). The
 *  fields of batch are the columns of the join table. */
OJ_MUST_USE oj_status oj_row_cursor_begin_join_rows(
    struct oj_row_cursor *cursor, const struct oj_batch *batch,
    const uint8_t *is_matched, struct oj_error *err);

/** Ends the answer; the cursor then borrows nothing. */
void oj_row_cursor_end_answer(struct oj_row_cursor *cursor);

/* ---- rows as features ---------------------------------------------------- */

/** Fills feature, which has the cursor's definition, with the next row and its
 *  FID; *there is 0, and feature unchanged, if there are no more rows. Fails
 *  with OJ_ERR_CANCELLED if options.cancel is set. */
OJ_MUST_USE oj_status oj_row_cursor_next(struct oj_row_cursor *cursor,
                                         OGRFeatureH feature, int *there,
                                         struct oj_error *err);

/** Returns the FID, in its own layer, of the feature from which the last row
 *  was made; *side: "input" or "join". For messages. */
int64_t oj_row_cursor_source_fid(const struct oj_row_cursor *cursor,
                                 const char **side);

/* ---- rows without features ----------------------------------------------- */

/** Makes a single pair current, for an in-place update, until the next begin or
 *  end. Places then refer to rows of options.aggregate and to entries of
 *  `entries` and `values` (which may be NULL). */
void oj_row_cursor_begin_pair(struct oj_row_cursor *cursor,
                              const struct oj_matches *entries,
                              const struct oj_pair_values *values);

/** Sets on feature all columns of a row that do not come from the input. */
OJ_MUST_USE oj_status oj_row_cursor_set_join_fields(
    const struct oj_row_cursor *cursor, OGRFeatureH feature,
    const struct oj_row_place *place, struct oj_error *err);

/** Writes the next rows, at most n, as places to places[], instead of making
 *  features. Returns how many; 0 if there are no more. */
int64_t oj_row_cursor_next_places(struct oj_row_cursor *cursor,
                                  struct oj_row_place *places, int64_t n);

/** Fills feature with the row of a place, as oj_row_cursor_next() does. */
OJ_MUST_USE oj_status oj_row_cursor_fill_feature(
    struct oj_row_cursor *cursor, const struct oj_row_place *place,
    OGRFeatureH feature, struct oj_error *err);

/** Prefetches the join features of some following rows. */
void oj_row_cursor_prefetch(const struct oj_row_cursor *cursor,
                            const struct oj_row_place *place);

/** The arrays to which row places refer. */
struct oj_row_sources
{
    /** all options except columns, which are the next member */
    const struct oj_write_options *options;
    const struct oj_column *columns; /**< [options->n_columns] */

    const struct oj_batch *batch; /**< NULL: no current answer */
    int is_join_rows; /**< 1: batch holds rows of the join layer, whose
                           unmatched ones are output */
    /** row of batch that is row 0 of matches */
    int64_t first_row;
    const struct oj_matches *entries; /**< the entries that become rows */
    /** further values of entries, or NULL */
    const struct oj_pair_values *values;
    /** the intersections in values; feature i belongs to entry i */
    struct oj_flat shapes;
};

/** Returns the arrays of the current answer, valid until the next begin or end.
 */
const struct oj_row_sources *
oj_row_cursor_sources(const struct oj_row_cursor *cursor);

/** Sets *shape to where a row's geometry comes from. *shape may have pointers
 *  into itself, so it must not be copied. */
void oj_row_cursor_geometry(const struct oj_row_cursor *cursor,
                            const struct oj_row_place *place,
                            struct oj_row_geometry *shape);

/** Sets *value to the value of column `column` in a row of the current answer,
 *  converted to the type of its field. The value may be borrowed from scratch,
 *  a feature of the cursor's definition that is used for nothing else. */
OJ_MUST_USE oj_status oj_row_cursor_value(const struct oj_row_cursor *cursor,
                                          int column,
                                          const struct oj_row_place *place,
                                          OGRFeatureH scratch,
                                          struct oj_value *value,
                                          struct oj_error *err);

/** The number in struct oj_row_place by which a column's values are indexed. */
enum oj_row_number
{
    OJ_BY_ROW,
    OJ_BY_JOIN_ROW,
    OJ_BY_ENTRY
};

/** A column's values as an array. Format 0: no array; call
 *  oj_row_cursor_value() instead. */
struct oj_row_view
{
    struct oj_column_view view;
    enum oj_row_number by;
    int is_nan_null; /**< 1: the values are doubles, and NaN stands for NULL */
};

/** Returns the index in view->values of a row's value; -1: the value is NULL.
 */
static inline int64_t oj_row_view_value_index(const struct oj_row_view *view,
                                              const struct oj_row_place *place)
{
    int64_t row = view->by == OJ_BY_ROW        ? place->row
                  : view->by == OJ_BY_JOIN_ROW ? place->join_row
                  : place->join_row < 0        ? -1
                                               : place->entry;
    if (row < 0 || !oj_column_has_value(&view->view, row) ||
        (view->is_nan_null && isnan(((const double *)view->view.values)[row])))
        return -1;
    return view->view.first + row;
}

/** A column of the output whose values are read as arrays if possible,
 *  otherwise one by one. */
struct oj_row_column
{
    int number; /**< index of the column; -1: its values are always NULL */
    OGRFieldType type;
    /** values of the current answer; format 0: they are read one by one by
     *  oj_row_cursor_value() */
    struct oj_row_view values;
    /** codes of texts (oj_pair_value_text()), by entry; NULL: values of another
     *  kind */
    const double *codes;
    enum oj_pair_value code_of;
};

/** Prepares the column for a new answer. */
void oj_row_column_begin_answer(struct oj_row_column *column,
                                const struct oj_row_cursor *cursor);

/** Sets *at to the value of a row: to an int32_t, int64_t, double, for times an
 *  OGRField, otherwise to *n bytes (texts: up to a zero byte); *at NULL: there
 *  is no value. The value may be borrowed from scratch and *value, until the
 *  next call. */
OJ_MUST_USE static inline oj_status oj_row_column_value(
    const struct oj_row_column *column, const struct oj_row_cursor *cursor,
    const struct oj_row_place *place, OGRFeatureH scratch,
    struct oj_value *value, const void **at, int64_t *n, struct oj_error *err)
{
    const struct oj_column_view *view = &column->values.view;
    *at = NULL;
    if (view->format != 0)
    {
        int64_t i = oj_row_view_value_index(&column->values, place);
        if (i < 0)
            return OJ_OK;
        *at = (const char *)view->values + i * (view->format == 'i' ? 4 : 8);
        if (!oj_type_is_number(column->type))
            *at = oj_column_bytes(view, i - view->first, n);
    }
    else if (column->codes != NULL)
    {
        const double code =
            place->join_row >= 0 ? column->codes[place->entry] : (double)NAN;
        *n = 0;
        if (column->code_of == OJ_PAIR_SIDE)
            *at = oj_pair_side_text(code, n);
        else if ((*at = oj_pair_value_text(column->code_of, code)) != NULL)
            *n = (int64_t)strlen((const char *)*at);
        return OJ_OK;
    }
    else if (column->number >= 0)
    {
        OJ_TRY(oj_row_cursor_value(cursor, column->number, place, scratch,
                                   value, err));
        if (!oj_value_is_there(value))
            return OJ_OK;
        *at = &value->raw;
        if (column->type == OFTString || column->type == OFTBinary)
            *at = oj_value_bytes(value, column->type, n);
        if (*at == NULL)
            *at = ""; /* an empty text */
    }
    if (*at != NULL && column->type == OFTString)
        *n = (int64_t)strnlen((const char *)*at, (size_t)*n);
    return OJ_OK;
}

/** Returns 1 if the values of a column need no conversion, so that several
 *  threads can read them at once. */
int oj_row_cursor_needs_no_conversion(const struct oj_row_cursor *cursor,
                                      int column);

#endif
