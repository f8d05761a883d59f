/** Field values on their way into aggregates and results on their way out.
 *
 *  Numbers go as they are.  Texts go as bytes, and so do dates and times, as
 *  bytes of the same order; what is joined to one text goes as OGR writes it.
 */
#ifndef OJ_AGGREGATE_VALUES_H
#define OJ_AGGREGATE_VALUES_H

#include "../../algs/aggregate/oj_aggregate.h"
#include "../../flatten/read/oj_value.h"

#ifdef __cplusplus
extern "C" {
#endif

enum oj_value_form
{
    OJ_FORM_NUMBER,
    OJ_FORM_TEXT,
    OJ_FORM_TIME,
    OJ_FORM_AS_TEXT, /**< any type, written as text */
    OJ_FORM_PRESENCE /**< any type: only whether there is a value */
};

#define OJ_TIME_BYTES 20

/** The way of one field into one column of aggregates. */
struct oj_value_way
{
    int field; /**< place among the fields read */
    OGRFieldType type;
    OGRFieldSubType subtype;
    enum oj_value_form form;

    char time[OJ_TIME_BYTES];
    OGRFeatureH scratch; /**< AS_TEXT: one field of type */
    OGRFeatureDefnH defn;
};

/** Ready for oj_value_way_take(); field, type, subtype and form are set. */
OJ_MUST_USE oj_status oj_value_way_open(struct oj_value_way *way,
                                        struct oj_error *err);

enum oj_aggregate_type oj_value_way_type(const struct oj_value_way *way);

/** Valid until the next call with the same way, and as long as from is. */
void oj_value_way_take(struct oj_value_way *way, const struct oj_value *from,
                       struct oj_aggregate_value *to);

/** A result, of the type that aggregates have given it, as a field of type.
 *  Borrows from it. */
void oj_value_of_result(const struct oj_aggregate_value *from,
                        enum oj_aggregate_type result, OGRFieldType type,
                        struct oj_value *to);

/** Zeroed afterwards. */
void oj_value_way_free(struct oj_value_way *way);

#ifdef __cplusplus
}
#endif
#endif
