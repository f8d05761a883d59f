/** The rows of a layer of pairs, one after another: batches and their matches,
 *  or rows of the join layer that match nothing, become places and features.
 *  Which rows there are: oj_row_places.h.
 *
 *  One answer at a time: begin, then next() or take() until there are no more
 *  rows.  Part of the layer writer: includes GDAL's C API.  One cursor is used
 *  by one thread at a time.
 */
#ifndef OJ_ROW_CURSOR_H
#define OJ_ROW_CURSOR_H

#include "oj_row_layout.h"

struct oj_row_cursor;

/** Rows as features of defn, whose references are the caller's: it outlives the
 *  cursor, and so does what options point at. */
OJ_MUST_USE oj_status oj_row_cursor_open(OGRFeatureDefnH defn,
                                         const struct oj_write_options *options,
                                         struct oj_row_cursor **out,
                                         struct oj_error *err);

/** Accepts NULL. */
void oj_row_cursor_close(struct oj_row_cursor *cursor);

/* ---- how rows are made --------------------------------------------------- */

/** The join side that answers speak of from now on; its columns are those of
 *  options.join_table. *join_side is copied; what it points at and table
 *  outlive their use. */
void oj_row_cursor_set_join_side(struct oj_row_cursor *cursor,
                                 const struct oj_flat *join_side,
                                 const struct oj_table *table);

/** Unless FIDs are the input's (options.keep_fids): FIDs of rows, as
 *  oj_row_places_number() counts them. */
void oj_row_cursor_number(struct oj_row_cursor *cursor, int64_t first);

/** Where FIDs are the input's: as oj_row_places_spread(). */
void oj_row_cursor_spread(struct oj_row_cursor *cursor, int64_t stride);

/* ---- answers ------------------------------------------------------------- */

/** The rows of a batch from first_row on that matches answers, in input order,
 *  pairs of a row in the order of the matches.  What is left of the answer
 *  before is forgotten.  Everything is borrowed until the next begin, or until
 *  next() or take() has said that there are no more rows.
 *  values: what lies beside matches, or NULL */
OJ_MUST_USE oj_status oj_row_cursor_begin(struct oj_row_cursor *cursor,
                                          const struct oj_batch *batch,
                                          int64_t first_row,
                                          const struct oj_matches *matches,
                                          const struct oj_pair_values *values,
                                          struct oj_error *err);

/** Rows of the join layer, those where is_matched [batch->n_rows] is 0: columns
 *  of the input are NULL, FIDs are those of oj_row_cursor_number(). The fields
 *  of the batch are the columns of the join table. */
OJ_MUST_USE oj_status oj_row_cursor_begin_join_rows(
    struct oj_row_cursor *cursor, const struct oj_batch *batch,
    const uint8_t *is_matched, struct oj_error *err);

/** Forgets what is left of the answer: nothing is borrowed any more. */
void oj_row_cursor_end(struct oj_row_cursor *cursor);

/* ---- rows as features ---------------------------------------------------- */

/** Fills feature, of the cursor's definition, with the next row, FID included;
 *  *there is 0, and feature untouched, when the answer has no more.
 *  OJ_ERR_CANCELLED when options.cancel was raised. */
OJ_MUST_USE oj_status oj_row_cursor_next(struct oj_row_cursor *cursor,
                                         OGRFeatureH feature, int *there,
                                         struct oj_error *err);

/** The FID, in its own layer, of the feature that the latest row is about, and
 *  "input" or "join", for messages. */
int64_t oj_row_cursor_origin(const struct oj_row_cursor *cursor,
                             const char **side);

/* ---- rows without features ----------------------------------------------- */

/** Outside of an answer, for an in-place update, until the next begin or end:
 * row of a place counts from the row that options.aggregate calls 0; entry is
 * of entries and values (or NULL). */
void oj_row_cursor_begin_pair(struct oj_row_cursor *cursor,
                              const struct oj_matches *entries,
                              const struct oj_pair_values *values);

/** Sets the columns of a row on feature; those of the input are left. */
OJ_MUST_USE oj_status oj_row_cursor_set_columns(
    const struct oj_row_cursor *cursor, OGRFeatureH feature,
    const struct oj_row_place *place, struct oj_error *err);

/** The next rows, at most n of them, in place of features; their number, 0 when
 *  the answer has no more. */
int64_t oj_row_cursor_take(struct oj_row_cursor *cursor,
                           struct oj_row_place *places, int64_t n);

/** Fills feature with the row at place, as oj_row_cursor_next() does. */
OJ_MUST_USE oj_status oj_row_cursor_fill(struct oj_row_cursor *cursor,
                                         const struct oj_row_place *place,
                                         OGRFeatureH feature,
                                         struct oj_error *err);

/** What will be needed of the join side some rows after this one is asked for
 *  now: it comes in no order. */
void oj_row_cursor_fetch(const struct oj_row_cursor *cursor,
                         const struct oj_row_place *place);

/** What places speak of. */
struct oj_row_sources
{
    const struct oj_write_options *options; /**< but columns: below */
    const struct oj_column *columns;        /**< [options->n_columns] */

    const struct oj_batch *batch; /**< NULL: no answer was begun */
    int is_join_rows; /**< 1: the batch is of the join layer, nothing matches */
    int64_t first_row;                   /**< of the batch: row 0 of matches */
    const struct oj_matches *entries;    /**< those that become rows */
    const struct oj_pair_values *values; /**< beside entries, or NULL */
    struct oj_flat shapes;               /**< of values; feature i: entry i */
};

/** Valid until the next begin or end. */
const struct oj_row_sources *
oj_row_cursor_sources(const struct oj_row_cursor *cursor);

/** What the geometry of a row of the current answer is made from; valid as long
 *  as *shape stays where it is. */
void oj_row_cursor_geometry(const struct oj_row_cursor *cursor,
                            const struct oj_row_place *place,
                            struct oj_row_geometry *shape);

/** The value of a column, by its number in columns, in a row of the current
 *  answer, as its field holds it.  It may be borrowed from scratch, a feature
 * of the cursor's definition and for this use alone. */
OJ_MUST_USE oj_status oj_row_cursor_value(const struct oj_row_cursor *cursor,
                                          int column,
                                          const struct oj_row_place *place,
                                          OGRFeatureH scratch,
                                          struct oj_value *value,
                                          struct oj_error *err);

/** What the rows of a column are numbered by. */
enum oj_row_number
{
    OJ_BY_ROW,
    OJ_BY_JOIN_ROW,
    OJ_BY_ENTRY
};

/** Where the values of a column lie; format 0: the cursor is asked for them. */
struct oj_row_view
{
    struct oj_column_view view;
    enum oj_row_number by;
};

/** Where the value of a row stands in view->values; -1: NULL. */
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

/** A column that values are taken from for a field of a type. */
struct oj_row_column
{
    int number; /**< in columns; -1: always NULL */
    OGRFieldType type;
    struct oj_row_view values; /**< of this answer; format 0: the cursor is
                                    asked, as before the first begin() */
};

/** To be called with each answer. */
void oj_row_column_begin(struct oj_row_column *column,
                         const struct oj_row_cursor *cursor);

/** Where the value of a row is: a number as an int32_t, int64_t or double, a
 *  time as an OGRField, and else *n bytes, those of texts up to a zero; NULL:
 *  there is none.  It may be borrowed from scratch and *value, for the next use
 *  alone. */
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
            *at = ""; /* of no bytes */
    }
    if (*at != NULL && column->type == OFTString)
        *n = (int64_t)strnlen((const char *)*at, (size_t)*n);
    return OJ_OK;
}

/** 1 when the values of a column, by its number in columns, need no conversion
 *  and can be asked for on several threads at once. */
int oj_row_cursor_is_plain(const struct oj_row_cursor *cursor, int column);

#endif
