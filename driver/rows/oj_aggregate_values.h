/** Field values on their way into aggregates and results on their way out.
 *
 *  Numbers go as they are.  Texts go as bytes, and so do dates and times, as
 *  bytes of the same order; what is joined to one text goes as OGR writes it.
 */
#ifndef OJ_AGGREGATE_VALUES_H
#define OJ_AGGREGATE_VALUES_H

#include "../../algs/aggregate/oj_aggregate.h"
#include "../source/oj_classes.h"

enum oj_value_form
{
    OJ_FORM_NUMBER,
    OJ_FORM_TEXT,
    OJ_FORM_TIME,
    OJ_FORM_AS_TEXT, /**< any type, written as text */
    OJ_FORM_PRESENCE /**< any type: only whether there is a value */
};

/** The way of one field into one column of aggregates. */
struct oj_value_way
{
    int field; /**< place among the fields read */
    OGRFieldType type;
    OGRFieldSubType subtype;
    enum oj_value_form form;

    OGRFeatureH scratch; /**< AS_TEXT: one field of type */
    OGRFeatureDefnH defn;
};

/** Ready for use; field, type, subtype and form are set. */
OJ_MUST_USE oj_status oj_value_way_open(struct oj_value_way *way,
                                        struct oj_error *err);

enum oj_aggregate_type oj_value_way_type(const struct oj_value_way *way);

/** Zeroed afterwards. */
void oj_value_way_free(struct oj_value_way *way);

struct oj_column_values;

/** Values of many features as columns. Owner; zeroed memory is a valid empty
 *  one. */
struct oj_aggregate_columns
{
    int n;
    struct oj_aggregate_column *column; /**< [n], of value */
    struct oj_column_values *value;     /**< [n] */
};

/** Reads the values of n features, first, first + 1, ... or, unless order is
 *  NULL, order[first], order[first + 1], ..., by each way; the same ways every
 *  time.  They are valid until the next call, and texts as long as source is.
 *  One thread for each way that needs a scratch feature. */
OJ_MUST_USE oj_status oj_aggregate_columns_read(
    struct oj_aggregate_columns *columns, const struct oj_value_way *ways,
    int n_ways, struct oj_row_values source, int64_t first, int64_t n,
    const int32_t *order, struct oj_error *err);

void oj_aggregate_columns_free(struct oj_aggregate_columns *columns);

/** A result, of the type that aggregates have given it, as a field of type.
 *  Borrows from it. */
void oj_value_of_result(const struct oj_aggregate_value *from,
                        enum oj_aggregate_type result, OGRFieldType type,
                        struct oj_value *to);

#endif
