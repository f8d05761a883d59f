/** Attributes of a whole layer in memory: typed columns.
 *
 *   int, int64, real    one array of values
 *   string, binary      offset [n + 1] into one pool of bytes; each value is
 *                       followed by a zero byte, so that OGR can use it
 *                       unchanged
 *   all others          OGR's own field values; lists are deep copies
 *
 *  A bit per row marks values that are not NULL. Unset counts as NULL.
 */
#ifndef OJ_ATTRIBUTE_TABLE_H
#define OJ_ATTRIBUTE_TABLE_H

#include "../arrays/oj_chunk.h"
#include "oj_value.h"

/** A table of attributes. */
struct oj_table;
struct oj_attributes;

/** Makes an empty table with a column for each of these fields of layer. */
OJ_MUST_USE oj_status oj_table_new(OGRLayerH layer, const int *fields,
                                   int n_fields, struct oj_table **out,
                                   struct oj_error *err);

/** Appends n_rows rows of attributes. After a failure the table can only be
 *  freed. */
OJ_MUST_USE oj_status oj_table_append_rows(
    struct oj_table *table, const struct oj_attributes *attributes,
    int64_t n_rows, struct oj_error *err);

/** Makes an empty table with the columns of another one. */
OJ_MUST_USE oj_status oj_table_new_like(const struct oj_table *like,
                                        struct oj_table **out,
                                        struct oj_error *err);

/* To append a row, call oj_table_append_column_value() once for each column,
 * then oj_table_end_row(). After a failure the table can only be freed. */
OJ_MUST_USE oj_status oj_table_append_column_value(struct oj_table *table,
                                                   int column,
                                                   const struct oj_value *value,
                                                   struct oj_error *err);
void oj_table_end_row(struct oj_table *table);

int64_t oj_table_rows(const struct oj_table *table);
int oj_table_columns(const struct oj_table *table);
OGRFieldType oj_table_type(const struct oj_table *table, int column,
                           OGRFieldSubType *subtype);

/** Prefetches a row into the cache for oj_table_value(): stage 0 everything
 *  except texts; stage 1, to be called some rows later, the texts. */
void oj_table_prefetch(const struct oj_table *table, int64_t row, int stage);

/** Sets *value to the value of a column in a row; it is valid as long as the
 *  table. */
void oj_table_value(const struct oj_table *table, int64_t row, int column,
                    struct oj_value *value);

/** Returns a column's arrays, for loops over many rows. They are valid until
 *  the table is freed or a row is added. */
struct oj_column_view oj_table_view(const struct oj_table *table, int column);

int64_t oj_table_bytes(const struct oj_table *table);

/** Frees the table; accepts NULL. */
void oj_table_free(struct oj_table *table);

/* ---- attributes of a batch or a table ------------------------------------ */

/** Attributes of consecutive rows, for the writer: a table, columns of a slice,
 *  or OGR features. The first one that is set is used. */
struct oj_attributes
{
    const struct oj_fields *fields; /**< fields of the reader */
    /** if not NULL: the attributes are the rows of this table */
    const struct oj_table *table;
    /** used if table is NULL; if slice.chunk is NULL, too, `feature` is used */
    struct oj_slice slice;
    int64_t n_features, cap_features;
    OGRFeatureH *feature; /**< [n_features] the rows, if they are features;
                               owned */
};

/** Removes all rows, but keeps the memory. Any thread may call it. */
void oj_attributes_clear(struct oj_attributes *attributes);

/** Frees the memory; accepts NULL. */
void oj_attributes_free(struct oj_attributes *attributes);

/** Appends a row as a feature, and takes ownership of it if the call succeeds.
 */
OJ_MUST_USE oj_status
oj_attributes_append_feature(struct oj_attributes *attributes,
                             OGRFeatureH feature, struct oj_error *err);

/** Returns the geometry of a row; NULL if it has none or if rows are not
 *  features. */
OGRGeometryH oj_attributes_geometry(const struct oj_attributes *attributes,
                                    int64_t row);

/** Fills *value with the value of a row. field: index of the field in the
 *  reader's options, or column of the table. */
void oj_attributes_value(const struct oj_attributes *attributes, int field,
                         int64_t row, struct oj_value *value);

/** Copies the values of an OFTReal field in n rows: first, first + 1, ..., or,
 *  if order is not NULL, order[first], order[first + 1], ... Sets *any_null to
 *  1 if the column may have NULLs; only then fills is_null [n]. Returns 1; or
 *  returns 0, and copies nothing, if the values are not stored as a column. */
int oj_attributes_copy_reals(const struct oj_attributes *attributes, int field,
                             int64_t first, int64_t n, const int32_t *order,
                             double *value, uint8_t *is_null, int *any_null);

#endif
