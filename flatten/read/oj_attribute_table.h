/** Attributes of a whole layer in memory: typed columns.
 *
 *  int, int64, real    one array of values
 *  string, binary      offset [n + 1] into one pool of bytes; each value is
 *                      followed by a zero byte, so that OGR can have it as is
 *  all others          OGR's own field values; lists are deep copies
 *
 *  A bit per row says that it has a value. Unset counts as NULL.
 */
#ifndef OJ_ATTRIBUTE_TABLE_H
#define OJ_ATTRIBUTE_TABLE_H

#include "../arrays/oj_chunk.h"
#include "oj_value.h"

/** Attributes of a whole join side: typed columns, held in memory. */
struct oj_table;
struct oj_attributes;

/** An empty table with a column for each wanted field of layer. */
OJ_MUST_USE oj_status oj_table_new(OGRLayerH layer, const int *fields,
                                   int n_fields, struct oj_table **out,
                                   struct oj_error *err);

/** Adds n_rows rows of attributes. On failure the table is good for
 *  oj_table_free() only. */
OJ_MUST_USE oj_status oj_table_append(struct oj_table *table,
                                      const struct oj_attributes *attributes,
                                      int64_t n_rows, struct oj_error *err);

/** An empty table with the columns of another. */
OJ_MUST_USE oj_status oj_table_new_like(const struct oj_table *like,
                                        struct oj_table **out,
                                        struct oj_error *err);

/* One row, value by value: each column once, then the end.  On failure the
 * table is good for oj_table_free() only. */
OJ_MUST_USE oj_status oj_table_append_column_value(struct oj_table *table,
                                                   int column,
                                                   const struct oj_value *value,
                                                   struct oj_error *err);
void oj_table_end_row(struct oj_table *table);

int64_t oj_table_rows(const struct oj_table *table);
int oj_table_columns(const struct oj_table *table);
OGRFieldType oj_table_type(const struct oj_table *table, int column,
                           OGRFieldSubType *subtype);

/** Fetches what oj_table_value() will read of a row into the cache: in stage 0
 *  everything but texts, in stage 1, some rows later, the texts. */
void oj_table_prefetch(const struct oj_table *table, int64_t row, int stage);

/** Valid as long as the table is. */
void oj_table_value(const struct oj_table *table, int64_t row, int column,
                    struct oj_value *value);

/** A column as it lies in memory, for loops over many rows. Valid as long as
 *  the table is and no row is added. */
struct oj_column_view oj_table_view(const struct oj_table *table, int column);

int64_t oj_table_bytes(const struct oj_table *table);

/** Accepts NULL. */
void oj_table_free(struct oj_table *table);

/* ---- of a batch, or a table ---------------------------------------------- */

/** Values of consecutive rows: what a batch carries for the writer, columns of
 * a slice or OGR features, or a table.
 */
struct oj_attributes
{
    const struct oj_fields *fields; /**< the reader's */
    const struct oj_table *table;   /**< not NULL: nothing else counts */
    struct oj_slice slice;          /**< chunk NULL: features count */
    int64_t n_features, cap_features;
    OGRFeatureH *feature; /**< [n_features], ours */
};

/** Gives back rows; memory for the next ones is kept. Any thread. */
void oj_attributes_clear(struct oj_attributes *attributes);

/** Accepts NULL. */
void oj_attributes_free(struct oj_attributes *attributes);

/** Takes feature over when it returns OJ_OK. */
OJ_MUST_USE oj_status oj_attributes_push(struct oj_attributes *attributes,
                                         OGRFeatureH feature,
                                         struct oj_error *err);

/** Geometry of a row, where rows are features; NULL: it has none. */
OGRGeometryH oj_attributes_geometry(const struct oj_attributes *attributes,
                                    int64_t row);

/** Value of a wanted field (by its place in the reader's options), or of the
 *  table's column. */
void oj_attributes_value(const struct oj_attributes *attributes, int field,
                         int64_t row, struct oj_value *value);

/** The values of an OFTReal field in n rows, first, first + 1, ... or, unless
 *  order is NULL, order[first], ..., where they are at hand as a column: 1, and
 *  is_null [n] is filled only where *any_null; else 0. */
int oj_attributes_reals(const struct oj_attributes *attributes, int field,
                        int64_t first, int64_t n, const int32_t *order,
                        double *value, uint8_t *is_null, int *any_null);

#endif
