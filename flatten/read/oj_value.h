/** One attribute value on its way from a layer, an Arrow column or a table to a
 *  field of an OGR feature.
 */
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

/** A field that a reader was asked for. */
struct oj_field
{
    int index; /**< in the layer's definition */
    OGRFieldType type;
    OGRFieldSubType subtype;
    int is_skipped; /**< nobody looks at its values, which can be missing */
};

/** A view. */
struct oj_fields
{
    int n;
    const struct oj_field *field; /**< [n] */
    int has_geometry;             /**< the layer has one; the first is meant */
};

/** Borrows: valid as long as where it came from is. */
struct oj_value
{
    OGRField raw; /**< as OGR holds it; NULL and unset are marked as OGR does */

    /** OFTString: -1 when raw.String is zero-terminated; else the length of
     *  text that is not. */
    int64_t n_text;
};

static inline void oj_value_set_null(struct oj_value *value)
{
    OGR_RawField_SetNull(&value->raw);
    value->n_text = -1;
}

/** A number: all bytes of raw are defined, so that it is never taken for the
 *  mark of NULL or unset. */
static inline void oj_value_set_zero(struct oj_value *value)
{
    value->raw.Set.nMarker1 = 0;
    value->raw.Set.nMarker2 = 0;
    value->raw.Set.nMarker3 = 0;
    value->n_text = -1;
}

/** The letter for values of a type that we keep ourselves. */
static inline char oj_format_of(OGRFieldType type)
{
    return type == OFTInteger     ? 'i'
           : type == OFTInteger64 ? 'l'
           : type == OFTReal      ? 'g'
           : type == OFTString    ? 'U'
           : type == OFTBinary    ? 'Z'
                                  : 'F';
}

/** The value of a row, borrowed from the column. */
void oj_column_value(const struct oj_column_view *column, int64_t row,
                     struct oj_value *value);

/** 1 unless value is NULL or unset. */
static inline int oj_value_is_there(const struct oj_value *value)
{
    return !OGR_RawField_IsNull(&value->raw) &&
           !OGR_RawField_IsUnset(&value->raw);
}

/** The bytes of a text or a binary that is there. */
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

/** The way of one column into one field of the output. */
struct oj_setter
{
    OGRFieldType from, to;
    int target;           /**< field index of the output feature */
    int is_same;          /**< the value can be copied as it is */
    OGRFeatureH scratch;  /**< for conversions: one field of type from */
    OGRFeatureDefnH defn; /**< of scratch */
    char *text;           /**< for text that is not zero-terminated */
    int64_t cap_text;
};

/** Fills *setter (zeroed before) for values of the given type that go to field
 *  target of a layer with the definition output. */
OJ_MUST_USE oj_status oj_value_setter_init(struct oj_setter *setter,
                                           OGRFieldType from,
                                           OGRFieldSubType subtype,
                                           OGRFeatureDefnH output, int target,
                                           struct oj_error *err);

/** Zeroed afterwards. */
void oj_value_setter_free(struct oj_setter *setter);

/** Sets the field of feature. Where the types differ the value is converted as
 *  OGR does; a number that the field's type cannot hold becomes NULL. */
OJ_MUST_USE oj_status oj_value_setter_set(struct oj_setter *setter,
                                          OGRFeatureH feature,
                                          const struct oj_value *value,
                                          struct oj_error *err);

/** A feature of one field, to convert values with; NULL when out of memory.
 *  Destroy the feature, then release the definition. */
OGRFeatureH oj_value_scratch(OGRFieldType type, OGRFieldSubType subtype,
                             OGRFeatureDefnH *defn);

/** Days from 1 January 1970 to a date, in the Gregorian calendar, before it was
 *  made, too. Also for dates that do not exist. */
int64_t oj_value_days(const OGRField *raw);

/** A date, a time or both as XML has it, 2026-01-31T10:20:30.500+02:00;
 *  milliseconds where there are any, or always. Returns the length of text. */
int oj_value_xml_time(const OGRField *raw, int with_milliseconds, char *text,
                      size_t size);

#endif
