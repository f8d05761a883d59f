/** What a field of a layer or a column of an Arrow table holds, as far as the
 *  rows of a join depend on it. The rooms that read and write values keep the
 *  exact types of OGR or Arrow and translate these into kinds.
 */
#ifndef OJ_FIELD_KIND_H
#define OJ_FIELD_KIND_H

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds with a comment stand for several types. */
enum oj_field_kind
{
    OJ_FIELD_BOOLEAN = 0,
    OJ_FIELD_INT16,   /**< and all that are narrower, signed or not */
    OJ_FIELD_INT32,   /**< and unsigned ones of 16 bits */
    OJ_FIELD_INT64,   /**< and unsigned ones of 32 and 64 bits */
    OJ_FIELD_FLOAT32, /**< and those of 16 bits */
    OJ_FIELD_FLOAT64, /**< and decimals, whose values are read as this */
    OJ_FIELD_TEXT,    /**< and dictionaries of texts */
    OJ_FIELD_BYTES,
    OJ_FIELD_DATE,
    OJ_FIELD_TIME, /**< of a day */
    OJ_FIELD_DATETIME,
    OJ_FIELD_INT32_LIST,
    OJ_FIELD_INT64_LIST,
    OJ_FIELD_FLOAT64_LIST,
    OJ_FIELD_TEXT_LIST,
    OJ_FIELD_NULL, /**< a column without any value or type: every aggregate
                        takes it, and gives NULL or 0 */
    OJ_FIELD_OTHER /**< durations, structs, maps, lists of others */
};

/** A field or column. Borrows. */
struct oj_field_description
{
    const char *name;
    enum oj_field_kind kind;
    int is_nullable;
};

/** 1 for booleans, integers and reals. */
static inline int oj_field_kind_is_number(enum oj_field_kind kind)
{
    return kind <= OJ_FIELD_FLOAT64;
}

/** 1 for what is added up as 64-bit integers: booleans and integers. */
static inline int oj_field_kind_is_integer(enum oj_field_kind kind)
{
    return kind <= OJ_FIELD_INT64;
}

/** 1 for dates, times of a day and both. */
static inline int oj_field_kind_is_time(enum oj_field_kind kind)
{
    return kind == OJ_FIELD_DATE || kind == OJ_FIELD_TIME ||
           kind == OJ_FIELD_DATETIME;
}

/** The word that messages use, which is OGR's where OGR has the kind:
 * "Integer", "DateTime". Never NULL. */
const char *oj_field_kind_name(enum oj_field_kind kind);

#ifdef __cplusplus
}
#endif
#endif
