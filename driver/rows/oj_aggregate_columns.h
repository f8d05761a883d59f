/** Values of many features as columns, one for each way into aggregates. */
#ifndef OJ_AGGREGATE_COLUMNS_H
#define OJ_AGGREGATE_COLUMNS_H

#include "../../flatten/read/oj_attributes.h"
#include "oj_aggregate_values.h"

#ifdef __cplusplus
extern "C" {
#endif

struct oj_column_values;

/** Owner; zeroed memory is a valid empty one. */
struct oj_aggregate_columns
{
    struct oj_value_way *ways; /**< [n], borrowed */
    int n;
    struct oj_aggregate_column *column; /**< [n], of value */
    struct oj_column_values *value;     /**< [n] */
};

/** Room for n_features values of each way, of numbers or presence; ways outlive
 *  columns. More room may be asked for later, for the same ways. */
OJ_MUST_USE oj_status oj_aggregate_columns_reserve(
    struct oj_aggregate_columns *columns, struct oj_value_way *ways, int n_ways,
    int64_t n_features, struct oj_error *err);

/** Reads the values of n features, first, first + 1, ... or, unless order is
 *  NULL, order[first], order[first + 1], ..., for which there is room. Any
 *  thread. */
void oj_aggregate_columns_read(struct oj_aggregate_columns *columns,
                               const struct oj_attributes *attributes,
                               int64_t first, int64_t n, const int32_t *order);

void oj_aggregate_columns_free(struct oj_aggregate_columns *columns);

#ifdef __cplusplus
}
#endif
#endif
