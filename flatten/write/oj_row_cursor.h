/** Cursor over the rows of a layer of pairs: turns batches and their matches,
 *  or unmatched rows of the join layer, into row places and features. Which
 *  rows there are: oj_row_places.h.
 *
 *  One answer at a time: begin, then next() or take() until there are no more
 *  rows.  Part of the layer writer: uses GDAL's C API.  Not thread-safe.
 */
#ifndef OJ_ROW_CURSOR_H
#define OJ_ROW_CURSOR_H

#include "oj_row_layout.h"

struct oj_row_cursor;

/** Opens a cursor for features of defn. defn and everything that options point
 *  to must outlive it. */
OJ_MUST_USE oj_status oj_row_cursor_open(OGRFeatureDefnH defn,
                                         const struct oj_write_options *options,
                                         struct oj_row_cursor **out,
                                         struct oj_error *err);

/** Frees it. Accepts NULL. */
void oj_row_cursor_close(struct oj_row_cursor *cursor);

/* ---- settings ------------------------------------------------------------ */

/** Sets the join side of the following answers; its columns are those of
 *  options.join_table. *join_side is copied; its arrays and table must outlive
 *  their use. */
void oj_row_cursor_set_join_side(struct oj_row_cursor *cursor,
                                 const struct oj_flat *join_side,
                                 const struct oj_table *table);

/** Numbers the rows' FIDs, as oj_row_places_number(). Not with
 *  options.keep_fids. */
void oj_row_cursor_number(struct oj_row_cursor *cursor, int64_t first);

/** Spreads the FIDs, as oj_row_places_spread(). Only with options.keep_fids. */
void oj_row_cursor_spread(struct oj_row_cursor *cursor, int64_t stride);

/* ---- answers ------------------------------------------------------------- */

/** Begins the rows for matches, whose row 0 is row first_row of batch: in input
 *  order, the pairs of a row in the order of the matches.  Ends the previous
 *  answer.  Everything is borrowed until the next begin or end, or until next()
 *  or take() has returned that there are no more rows.
 *  values: further values of the pairs, or NULL */
OJ_MUST_USE oj_status oj_row_cursor_begin(struct oj_row_cursor *cursor,
                                          const struct oj_batch *batch,
                                          int64_t first_row,
                                          const struct oj_matches *matches,
                                          const struct oj_pair_values *values,
                                          struct oj_error *err);

/** Begins the rows of the join layer whose is_matched [batch->n_rows] is 0:
 *  columns of the input are NULL, FIDs are those of oj_row_cursor_number(). The
 *  fields of batch are the columns of the join table. */
OJ_MUST_USE oj_status oj_row_cursor_begin_join_rows(
    struct oj_row_cursor *cursor, const struct oj_batch *batch,
    const uint8_t *is_matched, struct oj_error *err);

/** Ends the answer: nothing is borrowed any more. */
void oj_row_cursor_end(struct oj_row_cursor *cursor);

/* ---- rows as features ---------------------------------------------------- */

/** Fills feature, of the cursor's definition, with the next row and its FID;
 *  *there is 0, and feature unchanged, if there are no more. OJ_ERR_CANCELLED
 *  when options.cancel is set. */
OJ_MUST_USE oj_status oj_row_cursor_next(struct oj_row_cursor *cursor,
                                         OGRFeatureH feature, int *there,
                                         struct oj_error *err);

/** FID of the feature from which the last row was made, in its own layer;
 *  *side: "input" or "join", for messages. */
int64_t oj_row_cursor_origin(const struct oj_row_cursor *cursor,
                             const char **side);

/* ---- rows without features ----------------------------------------------- */

/** Begins a pair without an answer, for an in-place update, until the next
 *  begin or end. The row of a place counts from row 0 of options.aggregate;
 *  entry is an index in entries and values (or NULL). */
void oj_row_cursor_begin_pair(struct oj_row_cursor *cursor,
                              const struct oj_matches *entries,
                              const struct oj_pair_values *values);

/** Sets the columns of a row on feature, except those of the input. */
OJ_MUST_USE oj_status oj_row_cursor_set_columns(
    const struct oj_row_cursor *cursor, OGRFeatureH feature,
    const struct oj_row_place *place, struct oj_error *err);

/** Takes at most n next rows as places instead of features; returns their
 *  number, 0 if there are no more. */
int64_t oj_row_cursor_take(struct oj_row_cursor *cursor,
                           struct oj_row_place *places, int64_t n);

/** Fills feature with the row at place, as oj_row_cursor_next() does. */
OJ_MUST_USE oj_status oj_row_cursor_fill(struct oj_row_cursor *cursor,
                                         const struct oj_row_place *place,
                                         OGRFeatureH feature,
                                         struct oj_error *err);

/** Prefetches join rows that are needed some rows after this one. */
void oj_row_cursor_fetch(const struct oj_row_cursor *cursor,
                         const struct oj_row_place *place);

/** The arrays that row places index. */
struct oj_row_sources
{
    /** except columns, which are below */
    const struct oj_write_options *options;
    const struct oj_column *columns; /**< [options->n_columns] */

    const struct oj_batch *batch; /**< NULL: no answer */
    int is_join_rows; /**< 1: batch is of the join layer, its unmatched rows */
    /** row of batch that is row 0 of matches */
    int64_t first_row;
    const struct oj_matches *entries; /**< the entries that become rows */
    /** further values of entries, or NULL */
    const struct oj_pair_values *values;
    /** shapes in values; feature i belongs to entry i */
    struct oj_flat shapes;
};

/** The sources of the current answer, valid until the next begin or end. */
const struct oj_row_sources *
oj_row_cursor_sources(const struct oj_row_cursor *cursor);

/** Sets *shape to the source of a row's geometry. It may point into itself:
 *  valid until *shape is moved. */
void oj_row_cursor_geometry(const struct oj_row_cursor *cursor,
                            const struct oj_row_place *place,
                            struct oj_row_geometry *shape);

/** The value of column `column` in a row of the current answer, converted to
 *  its field's type.  It may be borrowed from scratch, a feature of the
 *  cursor's definition that is used for nothing else. */
OJ_MUST_USE oj_status oj_row_cursor_value(const struct oj_row_cursor *cursor,
                                          int column,
                                          const struct oj_row_place *place,
                                          OGRFeatureH scratch,
                                          struct oj_value *value,
                                          struct oj_error *err);

/** Index of a column's values. */
enum oj_row_number
{
    OJ_BY_ROW,
    OJ_BY_JOIN_ROW,
    OJ_BY_ENTRY
};

/** A column's values as an array; format 0: not available, call
 *  oj_row_cursor_value(). */
struct oj_row_view
{
    struct oj_column_view view;
    enum oj_row_number by;
};

/** Index of a row's value in view->values; -1: NULL. */
static inline int64_t oj_row_view_at(const struct oj_row_view *view,
                                     const struct oj_row_place *place)
{
    int64_t row = view->by == OJ_BY_ROW        ? place->row
                  : view->by == OJ_BY_JOIN_ROW ? place->join_row
                  : place->join_row < 0        ? -1
                                               : place->entry;
    return row >= 0 && oj_column_has(&view->view, row) ? view->view.first + row
                                                       : -1;
}

/** Reads the values of a column for a field of a type. */
struct oj_row_column
{
    int number; /**< index in columns; -1: always NULL */
    OGRFieldType type;
    /** values of the current answer; format 0: they are read by
     *  oj_row_cursor_value() */
    struct oj_row_view values;
};

/** Call it for each answer. */
void oj_row_column_begin(struct oj_row_column *column,
                         const struct oj_row_cursor *cursor);

/** Sets *at to the value of a row: a number as int32_t, int64_t or double, a
 *  time as OGRField, otherwise *n bytes (texts: up to a zero byte); NULL: no
 *  value.  It may be borrowed from scratch and *value, until the next call. */
OJ_MUST_USE static inline oj_status oj_row_column_value(
    const struct oj_row_column *column, const struct oj_row_cursor *cursor,
    const struct oj_row_place *place, OGRFeatureH scratch,
    struct oj_value *value, const void **at, int64_t *n, struct oj_error *err)
{
    const struct oj_column_view *view = &column->values.view;
    *at = NULL;
    if (view->format != 0)
    {
        int64_t i = oj_row_view_at(&column->values, place);
        if (i < 0)
            return OJ_OK;
        *at = (const char *)view->values + i * (view->format == 'i' ? 4 : 8);
        if (!oj_type_is_number(column->type))
            *at = oj_column_bytes(view, i - view->first, n);
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
            *at = ""; /* of 0 bytes */
    }
    if (*at != NULL && column->type == OFTString)
        *n = (int64_t)strnlen((const char *)*at, (size_t)*n);
    return OJ_OK;
}

/** 1 when the values of a column need no conversion and can be read by several
 *  threads at once. */
int oj_row_cursor_is_plain(const struct oj_row_cursor *cursor, int column);

#endif
