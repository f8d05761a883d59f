/** Attributes of a whole layer in memory: typed columns.
 *
 *  int, int64, real    one array of values
 *  string, binary      offset [n + 1] into one pool of bytes; each value is
 *                      followed by a zero byte, so that OGR can have it as is
 *  all others          OGR's own field values; lists are deep copies
 *
 *  A bit per row says that it has a value. Unset counts as NULL.
 */
#ifndef OJ_TABLE_H
#define OJ_TABLE_H

#include "oj_value.h"

struct oj_attributes;

/** Attributes of a whole join side: typed columns, held in memory. */
struct oj_table;

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

#endif
