/** One attribute value on its way from a layer, an Arrow column or a table to a
 *  field of an OGR feature. */
#ifndef OJ_VALUE_H
#define OJ_VALUE_H

#include "../arrays/oj_column.h"
#include "../base/oj_status.h"

#include <ogr_api.h>

#include <stdint.h>
#include <string.h>

static inline int oj_type_is_number(OGRFieldType type)
{
    return type == OFTInteger || type == OFTInteger64 || type == OFTReal;
}

static inline int oj_type_is_time(OGRFieldType type)
{
    return type == OFTDate || type == OFTTime || type == OFTDateTime;
}

static inline int oj_type_is_list(OGRFieldType type)
{
    return type == OFTIntegerList || type == OFTInteger64List ||
           type == OFTRealList || type == OFTStringList;
}

/** A field of a layer as a reader reads it. */
struct oj_field
{
    int index; /**< index in the layer's definition */
    OGRFieldType type;
    OGRFieldSubType subtype;
    int is_skipped; /**< 1: its values are not used and may be missing */
};

/** The fields that a reader reads. Owns nothing. */
struct oj_fields
{
    int n;
    const struct oj_field *field; /**< [n] */
    /** 1: the layer has a geometry; the first geometry field is read */
    int has_geometry;
};

/** A value. Borrowed: valid as long as its source is. */
struct oj_value
{
    /** the value as OGR represents it, including OGR's markers for NULL and
     *  unset */
    OGRField raw;

    /** OFTString: length of a text that is not zero-terminated; -1: raw.String
     *  is zero-terminated. */
    int64_t n_text;
};

static inline void oj_value_set_null(struct oj_value *value)
{
    OGR_RawField_SetNull(&value->raw);
    value->n_text = -1;
}

/** Sets all bytes of raw to zero, so that a number stored in it afterwards
 *  never looks like a marker of NULL or unset. */
static inline void oj_value_set_zero(struct oj_value *value)
{
    value->raw.Set.nMarker1 = 0;
    value->raw.Set.nMarker2 = 0;
    value->raw.Set.nMarker3 = 0;
    value->n_text = -1;
}

/** Returns the letter of the column format (oj_column.h) for values of this
 *  type. */
static inline char oj_format_of_type(OGRFieldType type)
{
    return type == OFTInteger     ? 'i'
           : type == OFTInteger64 ? 'l'
           : type == OFTReal      ? 'g'
           : type == OFTString    ? 'U'
           : type == OFTBinary    ? 'Z'
                                  : 'F';
}

/** Sets *value to the value of a row, borrowed from the column. */
void oj_column_value(const struct oj_column_view *column, int64_t row,
                     struct oj_value *value);

/** Returns 1 unless the value is NULL or unset. */
static inline int oj_value_is_there(const struct oj_value *value)
{
    return !OGR_RawField_IsNull(&value->raw) &&
           !OGR_RawField_IsUnset(&value->raw);
}

/** Returns the bytes of a text or binary, and their number *n; the value must
 *  not be NULL. */
static inline const void *oj_value_bytes(const struct oj_value *value,
                                         OGRFieldType type, int64_t *n)
{
    if (type == OFTBinary)
    {
        *n = value->raw.Binary.nCount;
        return value->raw.Binary.paData;
    }
    *n =
        value->n_text >= 0 ? value->n_text : (int64_t)strlen(value->raw.String);
    return value->raw.String;
}

/** Copies values of one column into one field of the output. */
struct oj_setter
{
    OGRFieldType from, to;
    int target;  /**< index of the output field */
    int is_same; /**< 1: values are copied without conversion */
    /** feature for converting values; has one field of the type of the source
     */
    OGRFeatureH scratch;
    OGRFeatureDefnH defn; /**< definition of scratch */
    char *text;           /**< buffer for a zero-terminated copy of a text */
    int64_t cap_text;
};

/** Prepares *setter (zeroed) for copying values of this type into the field
 *  with index `target` of a layer with the definition `output`. */
OJ_MUST_USE oj_status oj_value_setter_init(struct oj_setter *setter,
                                           OGRFieldType from,
                                           OGRFieldSubType subtype,
                                           OGRFeatureDefnH output, int target,
                                           struct oj_error *err);

/** Frees what the setter owns; the setter is then zeroed. */
void oj_value_setter_free(struct oj_setter *setter);

/** Sets the field of feature to a value. A value of another type is converted
 *  as OGR does; a number out of the field's range becomes NULL. */
OJ_MUST_USE oj_status oj_value_setter_set(struct oj_setter *setter,
                                          OGRFeatureH feature,
                                          const struct oj_value *value,
                                          struct oj_error *err);

/** Creates a feature with one field, for conversions; returns NULL when out of
 *  memory. The caller destroys the feature first and then releases *defn. */
OGRFeatureH oj_value_make_scratch_feature(OGRFieldType type,
                                          OGRFieldSubType subtype,
                                          OGRFeatureDefnH *defn);

/** Returns the days from 1 January 1970 to a date in the proleptic Gregorian
 *  calendar. Days and months that do not exist are accepted. */
int64_t oj_value_days(const OGRField *raw);

/** Converts a date, a datetime or a time of a day to microseconds, rounded to
 *  milliseconds. Dates count from 1970 in UTC (TZFlag: 100 is UTC, one step is
 *  a quarter of an hour; 0 and 1, no zone, count as UTC), OFTTime from
 *  midnight. */
int64_t oj_value_microseconds(const OGRField *raw, OGRFieldType type);

/** Formats a date, a time or both as in XML, 2026-01-31T10:20:30.500+02:00;
 *  milliseconds are written if there are any, or if with_milliseconds is set.
 *  Returns the length of text. */
int oj_value_format_xml_time(const OGRField *raw, int with_milliseconds,
                             char *text, size_t size);

#endif
