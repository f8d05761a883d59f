#include "oj_value.h"
#include "../base/oj_alloc.h"
#include "../text/oj_moment.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void oj_column_value(const struct oj_column_view *column, int64_t row,
                     struct oj_value *value)
{
    int64_t at = column->first + row, n;
    const void *values = column->values;
    OGRField *raw = &value->raw;
    if (!oj_column_has_value(column, row))
    {
        oj_value_set_null(value);
        return;
    }
    oj_value_set_zero(value);
    switch (column->format)
    {
        case 's':
            raw->Integer = ((const int16_t *)values)[at];
            break;
        case 'i':
            raw->Integer = ((const int32_t *)values)[at];
            break;
        case 'l':
            raw->Integer64 = ((const int64_t *)values)[at];
            break;
        case 'f':
            raw->Real = (double)((const float *)values)[at];
            break;
        case 'g':
            raw->Real = ((const double *)values)[at];
            break;
        case 'u':
        case 'U':
            raw->String = (char *)oj_column_bytes(column, row, &n);
            value->n_text = column->gap ? -1 : n;
            break;
        case 'z':
        case 'Z':
            raw->Binary.paData = (GByte *)oj_column_bytes(column, row, &n);
            raw->Binary.nCount = (int)n;
            break;
        default:
            *raw = ((const OGRField *)values)[at];
            break;
    }
}

OGRFeatureH oj_value_make_scratch_feature(OGRFieldType type,
                                          OGRFieldSubType subtype,
                                          OGRFeatureDefnH *defn)
{
    OGRFieldDefnH field = OGR_Fld_Create("value", type);
    OGRFeatureH feature;
    *defn = OGR_FD_Create("value");
    OGR_FD_Reference(*defn);
    OGR_Fld_SetSubType(field, subtype);
    OGR_FD_AddFieldDefn(*defn, field);
    OGR_Fld_Destroy(field);
    feature = OGR_F_Create(*defn);
    if (feature == NULL)
    {
        OGR_FD_Release(*defn);
        *defn = NULL;
    }
    return feature;
}

oj_status oj_value_setter_init(struct oj_setter *setter, OGRFieldType from,
                               OGRFieldSubType subtype, OGRFeatureDefnH output,
                               int target, struct oj_error *err)
{
    OGRFieldDefnH field = OGR_FD_GetFieldDefn(output, target);
    setter->from = from;
    setter->to = OGR_Fld_GetType(field);
    setter->target = target;
    setter->is_same =
        setter->from == setter->to && (OGR_Fld_GetSubType(field) == OFSTNone ||
                                       OGR_Fld_GetSubType(field) == subtype);
    if (!setter->is_same)
    {
        setter->scratch =
            oj_value_make_scratch_feature(from, subtype, &setter->defn);
        if (setter->scratch == NULL)
            return oj_fail_nomem(err, 1, 1024);
    }
    return OJ_OK;
}

void oj_value_setter_free(struct oj_setter *setter)
{
    if (setter->scratch != NULL)
        OGR_F_Destroy(setter->scratch);
    if (setter->defn != NULL)
        OGR_FD_Release(setter->defn);
    oj_free(setter->text);
    memset(setter, 0, sizeof *setter);
}

/* Writes the value with 15, 16 or 17 digits, the fewest that read back as
 * exactly this value. */
static void format_real(char *text, size_t size, double value)
{
    for (int digits = 15; digits <= 17; digits++)
    {
        CPLsnprintf(text, size, "%.*g", digits, value);
        if (CPLAtof(text) == value)
            break;
    }
}

static void set_real(const struct oj_setter *s, OGRFeatureH feature,
                     double value)
{
    char text[64];
    switch (s->to)
    {
        case OFTInteger:
            if (value >= INT_MIN && value <= INT_MAX)
                OGR_F_SetFieldInteger(feature, s->target, (int)value);
            else
                OGR_F_SetFieldNull(feature, s->target);
            break;
        case OFTInteger64:
            /* 2^63 itself is out of range; for NaN both comparisons are false
             */
            if (value >= -9223372036854775808.0 &&
                value < 9223372036854775808.0)
                OGR_F_SetFieldInteger64(feature, s->target, (GIntBig)value);
            else
                OGR_F_SetFieldNull(feature, s->target);
            break;
        case OFTString:
            format_real(text, sizeof text, value);
            OGR_F_SetFieldString(feature, s->target, text);
            break;
        default:
            OGR_F_SetFieldDouble(feature, s->target, value);
            break;
    }
}

static void set_time(const struct oj_setter *s, OGRFeatureH feature)
{
    int year, month, day, hour, minute, zone;
    float second;
    if (OGR_F_GetFieldAsDateTimeEx(s->scratch, 0, &year, &month, &day, &hour,
                                   &minute, &second, &zone))
        OGR_F_SetFieldDateTimeEx(feature, s->target, year, month, day, hour,
                                 minute, second, zone);
    else
        OGR_F_SetFieldNull(feature, s->target);
}

static void convert_value(const struct oj_setter *s, OGRFeatureH feature)
{
    GIntBig whole;
    if (s->from == s->to &&
        !oj_type_is_number(s->from)) /* the types are equal, and only subtypes
                                        differ */
    {
        OGR_F_SetFieldRaw(feature, s->target,
                          OGR_F_GetRawFieldRef(s->scratch, 0));
    }
    else if (oj_type_is_number(s->from) &&
             (oj_type_is_number(s->to) || s->to == OFTString))
    {
        if (s->from == OFTReal)
        {
            set_real(s, feature, OGR_F_GetFieldAsDouble(s->scratch, 0));
            return;
        }
        whole = OGR_F_GetFieldAsInteger64(s->scratch, 0);
        if (s->to != OFTInteger || (whole >= INT_MIN && whole <= INT_MAX))
            OGR_F_SetFieldInteger64(feature, s->target, whole);
    }
    else if (oj_type_is_time(s->from) && oj_type_is_time(s->to))
        set_time(s, feature);
    else
        OGR_F_SetFieldString(feature, s->target,
                             OGR_F_GetFieldAsString(s->scratch, 0));
}

oj_status oj_value_setter_set(struct oj_setter *s, OGRFeatureH feature,
                              const struct oj_value *value,
                              struct oj_error *err)
{
    OGRField terminated;
    const OGRField *raw = &value->raw;
    if (OGR_RawField_IsNull(raw))
    {
        OGR_F_SetFieldNull(feature, s->target);
        return OJ_OK;
    }
    if (OGR_RawField_IsUnset(raw))
    {
        OGR_F_UnsetField(feature, s->target);
        return OJ_OK;
    }
    if (s->from == OFTString && value->n_text >= 0)
    {
        OJ_ROOM(s->text, 0, value->n_text + 1, s->cap_text, err);
        memcpy(s->text, raw->String, (size_t)value->n_text);
        s->text[value->n_text] = '\0';
        memset(&terminated, 0, sizeof terminated);
        terminated.String = s->text;
        raw = &terminated;
    }
    if (s->is_same)
    {
        OGR_F_SetFieldRaw(feature, s->target, (OGRField *)raw);
        return OJ_OK;
    }
    /* OGR leaves a field unchanged if it cannot convert a text. Since this
     * feature is reused, the previous row's value would remain. */
    OGR_F_SetFieldNull(feature, s->target);
    OGR_F_SetFieldRaw(s->scratch, 0, (OGRField *)raw);
    convert_value(s, feature);
    return OJ_OK;
}

int64_t oj_value_days(const OGRField *raw)
{
    return oj_moment_days(raw->Date.Year, raw->Date.Month, raw->Date.Day);
}

int64_t oj_value_microseconds(const OGRField *raw, OGRFieldType type)
{
    int64_t days = type == OFTTime ? 0 : oj_value_days(raw);
    int64_t minutes = raw->Date.Hour * INT64_C(60) + raw->Date.Minute;
    if (type == OFTDate)
        return days * OJ_MICROSECONDS_PER_DAY;
    if (type == OFTDateTime && raw->Date.TZFlag > 1)
        minutes -= 15 * ((int64_t)raw->Date.TZFlag - 100);
    /* Date.Second is a float, which holds milliseconds, but not microseconds */
    return days * OJ_MICROSECONDS_PER_DAY +
           minutes * 60 * OJ_MICROSECONDS_PER_SECOND +
           (int64_t)((double)raw->Date.Second * 1000.0 + 0.5) * 1000;
}

int oj_value_format_xml_time(const OGRField *raw, int with_milliseconds,
                             char *text, size_t size)
{
    int zone = raw->Date.TZFlag;
    float second = raw->Date.Second;
    int milliseconds = (int)lrintf((second - floorf(second)) * 1000.0f);
    int n = snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:", raw->Date.Year,
                     raw->Date.Month, raw->Date.Day, raw->Date.Hour,
                     raw->Date.Minute);
    n += milliseconds != 0 || with_milliseconds
             ? snprintf(text + n, size - (size_t)n, "%06.3f", (double)second)
             : snprintf(text + n, size - (size_t)n, "%02d", (int)second);
    if (zone == 100)
        n += snprintf(text + n, size - (size_t)n, "Z");
    else if (zone > 1)
    {
        int minutes = (zone > 100 ? zone - 100 : 100 - zone) * 15;
        n += snprintf(text + n, size - (size_t)n, "%c%02d:%02d",
                      zone > 100 ? '+' : '-', minutes / 60, minutes % 60);
    }
    return n;
}
