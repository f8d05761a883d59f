/** Kinds of fields (of layers or Arrow tables) that joins distinguish. Readers
 * and writers keep the exact type of OGR or Arrow and map it to a kind. */
#ifndef OJ_FIELD_KIND_H
#define OJ_FIELD_KIND_H

#include "../../foundations/relation/oj_span_values.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of fields. A comment lists further types of the kind. */
enum oj_field_kind
{
    OJ_FIELD_BOOLEAN = 0,
    OJ_FIELD_INT16,   /**< also narrower integers, signed or unsigned */
    OJ_FIELD_INT32,   /**< also unsigned 16-bit integers */
    OJ_FIELD_INT64,   /**< also unsigned 32- and 64-bit integers */
    OJ_FIELD_FLOAT32, /**< also 16-bit floats */
    OJ_FIELD_FLOAT64, /**< also decimals, which are read as doubles */
    OJ_FIELD_TEXT,    /**< also dictionaries of texts */
    OJ_FIELD_BYTES,
    OJ_FIELD_DATE,
    OJ_FIELD_TIME, /**< time of day */
    OJ_FIELD_DATETIME,
    OJ_FIELD_INT32_LIST,
    OJ_FIELD_INT64_LIST,
    OJ_FIELD_FLOAT64_LIST,
    OJ_FIELD_TEXT_LIST,
    OJ_FIELD_NULL, /**< an Arrow column of type null: accepted wherever a
                        kind is required, and matches nothing; aggregates give
                        NULL or 0 */
    OJ_FIELD_OTHER /**< durations, structs, maps, other lists */
};

/** A field or column; texts are borrowed. */
struct oj_field_description
{
    const char *name;
    enum oj_field_kind kind;
    int is_nullable;
};

/** Returns 1 for booleans, integers and reals. */
static inline int oj_field_kind_is_number(enum oj_field_kind kind)
{
    return kind <= OJ_FIELD_FLOAT64;
}

/** Returns 1 for kinds that are summed as 64-bit integers: integers and
 * booleans. */
static inline int oj_field_kind_is_integer(enum oj_field_kind kind)
{
    return kind <= OJ_FIELD_INT64;
}

/** Returns 1 for kinds of numbers, and for a column of type null, which is
 * accepted in place of numbers. */
static inline int oj_field_kind_is_number_or_null(enum oj_field_kind kind)
{
    return oj_field_kind_is_number(kind) || kind == OJ_FIELD_NULL;
}

/** Returns 1 for dates, times of day, and both together. */
static inline int oj_field_kind_is_time(enum oj_field_kind kind)
{
    return kind == OJ_FIELD_DATE || kind == OJ_FIELD_TIME ||
           kind == OJ_FIELD_DATETIME;
}

/** Returns 1 for dates and datetimes. They are moments, which a time of a day
 * is not. */
static inline int oj_field_kind_is_moment(enum oj_field_kind kind)
{
    return kind == OJ_FIELD_DATE || kind == OJ_FIELD_DATETIME;
}

/** Returns 1 for kinds whose values can be compared for equality. */
static inline int oj_field_kind_is_compared(enum oj_field_kind kind)
{
    return kind <= OJ_FIELD_DATETIME || kind == OJ_FIELD_NULL;
}

/** Returns 1 for lists of numbers or texts. */
static inline int oj_field_kind_is_list(enum oj_field_kind kind)
{
    return kind >= OJ_FIELD_INT32_LIST && kind <= OJ_FIELD_TEXT_LIST;
}

/** Returns the kind of span that fields of this kind can form. */
static inline enum oj_span_field oj_field_kind_span(enum oj_field_kind kind)
{
    return oj_field_kind_is_moment(kind)    ? OJ_SPAN_FIELD_MOMENT
           : kind == OJ_FIELD_TIME          ? OJ_SPAN_FIELD_TIME
           : oj_field_kind_is_integer(kind) ? OJ_SPAN_FIELD_INTEGER
           : oj_field_kind_is_number(kind)  ? OJ_SPAN_FIELD_REAL
           : kind == OJ_FIELD_TEXT          ? OJ_SPAN_FIELD_TEXT
           : kind == OJ_FIELD_NULL          ? OJ_SPAN_FIELD_NULL
                                            : OJ_SPAN_FIELD_OTHER;
}

/** Returns the name of a kind for messages, never NULL. It is OGR's name if OGR
 * has one ("Integer", "DateTime"). */
const char *oj_field_kind_name(enum oj_field_kind kind);

#ifdef __cplusplus
}
#endif
#endif
