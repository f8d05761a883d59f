#include "oj_report_value.h"

#include "../../flatten/base/oj_number.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Integers up to this absolute value are exact in a double. */
#define MOST_EXACT (INT64_C(1) << 53)

/* One value of a field: a text, an integer or a real. */
struct one_value
{
    enum
    {
        ONE_TEXT,
        ONE_INTEGER,
        ONE_REAL
    } form;
    const char *text;
    int64_t integer;
    double real;
};

/* Reads a text or number, which may be the only element of a list. Returns 0
 * for dates, times and longer lists. */
static int read_scalar(OGRFeatureH from, int i, struct one_value *one)
{
    int n = 1;
    switch (OGR_Fld_GetType(OGR_F_GetFieldDefnRef(from, i)))
    {
        case OFTString:
            one->form = ONE_TEXT;
            one->text = OGR_F_GetFieldAsString(from, i);
            return 1;
        case OFTInteger:
        case OFTInteger64:
            one->form = ONE_INTEGER;
            one->integer = OGR_F_GetFieldAsInteger64(from, i);
            return 1;
        case OFTReal:
            one->form = ONE_REAL;
            one->real = OGR_F_GetFieldAsDouble(from, i);
            return 1;
        case OFTStringList:
        {
            char **list = OGR_F_GetFieldAsStringList(from, i);
            one->form = ONE_TEXT;
            n = CSLCount(list);
            one->text = n == 1 ? list[0] : "";
            return n == 1;
        }
        case OFTIntegerList:
        {
            const int *list = OGR_F_GetFieldAsIntegerList(from, i, &n);
            one->form = ONE_INTEGER;
            one->integer = n == 1 ? list[0] : 0;
            return n == 1;
        }
        case OFTInteger64List:
        {
            const GIntBig *list = OGR_F_GetFieldAsInteger64List(from, i, &n);
            one->form = ONE_INTEGER;
            one->integer = n == 1 ? list[0] : 0;
            return n == 1;
        }
        case OFTRealList:
        {
            const double *list = OGR_F_GetFieldAsDoubleList(from, i, &n);
            one->form = ONE_REAL;
            one->real = n == 1 ? list[0] : 0.0;
            return n == 1;
        }
        default:
            return 0;
    }
}

static int is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

/* Returns 1 and sets *integer if the value is a whole number, else returns
 * 0. */
static int read_integer(const struct one_value *one, int64_t *integer)
{
    double real = one->real;
    if (one->form == ONE_INTEGER)
    {
        *integer = one->integer;
        return 1;
    }
    if (one->form == ONE_TEXT)
    {
        char *end = NULL;
        errno = 0;
        *integer = strtoll(one->text, &end, 10);
        if (end != one->text && errno == 0 && is_blank(end))
            return 1;
        real = oj_text_number(one->text, (int64_t)strlen(one->text));
    }
    if (!(fabs(real) <= (double)MOST_EXACT) || real != floor(real))
        return 0;
    *integer = (int64_t)real;
    return 1;
}

static int read_real(const struct one_value *one, double *real)
{
    switch (one->form)
    {
        case ONE_INTEGER:
            *real = (double)one->integer;
            return one->integer >= -MOST_EXACT && one->integer <= MOST_EXACT;
        case ONE_REAL:
            *real = one->real;
            return 1;
        default:
            *real = oj_text_number(one->text, (int64_t)strlen(one->text));
            return !isnan(*real) || strcasecmp(one->text, "nan") == 0;
    }
}

/* Returns 1 and sets *integer to 0 or 1 if the value is 0, 1, true or false;
 * else returns 0. */
static int read_boolean(const struct one_value *one, int64_t *integer)
{
    if (one->form == ONE_TEXT && (strcasecmp(one->text, "true") == 0 ||
                                  strcasecmp(one->text, "false") == 0))
    {
        *integer = strcasecmp(one->text, "true") == 0;
        return 1;
    }
    return read_integer(one, integer) && (*integer == 0 || *integer == 1);
}

static int put_integer(const struct one_value *one, OGRFeatureH to, int k)
{
    OGRFieldDefnH field = OGR_F_GetFieldDefnRef(to, k);
    const OGRFieldType type = OGR_Fld_GetType(field);
    const OGRFieldSubType subtype = OGR_Fld_GetSubType(field);
    const int64_t most = subtype == OFSTInt16 ? INT16_MAX : INT32_MAX;
    int64_t integer;
    if (!(subtype == OFSTBoolean ? read_boolean(one, &integer)
                                 : read_integer(one, &integer)))
        return 0;
    if (type == OFTInteger && (integer < -most - 1 || integer > most))
        return 0;
    OGR_F_SetFieldInteger64(to, k, integer);
    return 1;
}

/* Sets field k, a list, to this one value. Returns 0 if the list cannot hold
 * it. */
static int put_in_list(const struct one_value *one, OGRFeatureH to, int k)
{
    char *texts[] = {(char *)one->text, NULL}; /* only read */
    int64_t integer;
    double real;
    switch (OGR_Fld_GetType(OGR_F_GetFieldDefnRef(to, k)))
    {
        case OFTStringList:
            if (one->form != ONE_TEXT)
                return 0;
            OGR_F_SetFieldStringList(to, k, (CSLConstList)texts);
            return 1;
        case OFTRealList:
            if (one->form == ONE_TEXT || !read_real(one, &real))
                return 0;
            OGR_F_SetFieldDoubleList(to, k, 1, &real);
            return 1;
        case OFTIntegerList:
        case OFTInteger64List:
        {
            GIntBig list[1];
            if (one->form == ONE_TEXT || !read_integer(one, &integer) ||
                (OGR_Fld_GetType(OGR_F_GetFieldDefnRef(to, k)) ==
                     OFTIntegerList &&
                 (integer < INT32_MIN || integer > INT32_MAX)))
                return 0;
            list[0] = integer;
            OGR_F_SetFieldInteger64List(to, k, 1, list);
            return 1;
        }
        default:
            return 0;
    }
}

static int put_scalar(const struct one_value *one, OGRFeatureH to, int k)
{
    double real;
    switch (OGR_Fld_GetType(OGR_F_GetFieldDefnRef(to, k)))
    {
        case OFTString:
            if (one->form != ONE_TEXT)
                return 0;
            OGR_F_SetFieldString(to, k, one->text);
            return 1;
        case OFTInteger:
        case OFTInteger64:
            return put_integer(one, to, k);
        case OFTReal:
            if (!read_real(one, &real))
                return 0;
            OGR_F_SetFieldDouble(to, k, real);
            return 1;
        case OFTDate:
        case OFTTime:
        case OFTDateTime:
            if (one->form != ONE_TEXT)
                return 0;
            OGR_F_SetFieldString(to, k, one->text);
            return OGR_F_IsFieldSetAndNotNull(to, k);
        default:
            return put_in_list(one, to, k);
    }
}

/* Copies a list of integers into a list of 64-bit integers or reals. Returns 0
 * for other types, and for integers that are not exact as reals. */
static int put_wider_list(OGRFeatureH from, int i, OGRFeatureH to, int k)
{
    const OGRFieldType of = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(from, i));
    const OGRFieldType type = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(to, k));
    int n;
    if (of == OFTIntegerList &&
        (type == OFTInteger64List || type == OFTRealList))
    {
        const int *list = OGR_F_GetFieldAsIntegerList(from, i, &n);
        OGR_F_SetFieldIntegerList(to, k, n, list);
        return 1;
    }
    if (of == OFTInteger64List && type == OFTRealList)
    {
        const GIntBig *list = OGR_F_GetFieldAsInteger64List(from, i, &n);
        for (int j = 0; j < n; j++)
        {
            if (list[j] < -MOST_EXACT || list[j] > MOST_EXACT)
                return 0;
        }
        OGR_F_SetFieldInteger64List(to, k, n, list);
        return 1;
    }
    return 0;
}

/* Converts between dates and date-times. A date becomes the beginning of its
 * day. A date-time becomes a date only if it is the beginning of a day and has
 * no time zone. Returns 0 if the value cannot be converted. */
static int put_date_or_datetime(OGRFeatureH from, int i, OGRFeatureH to, int k)
{
    const OGRFieldType of = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(from, i));
    const OGRFieldType type = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(to, k));
    int year, month, day, hour, minute, zone;
    float second;
    if ((of != OFTDate || type != OFTDateTime) &&
        (of != OFTDateTime || type != OFTDate))
        return 0;
    if (!OGR_F_GetFieldAsDateTimeEx(from, i, &year, &month, &day, &hour,
                                    &minute, &second, &zone) ||
        hour != 0 || minute != 0 || second > 0.0F || zone > 1)
        return 0;
    OGR_F_SetFieldDateTimeEx(to, k, year, month, day, 0, 0, 0.0F, 0);
    return 1;
}

static int is_in_one_type(OGRFeatureH from, int i, OGRFeatureH to, int k)
{
    OGRFieldDefnH of = OGR_F_GetFieldDefnRef(from, i);
    OGRFieldDefnH field = OGR_F_GetFieldDefnRef(to, k);
    return OGR_Fld_GetType(of) == OGR_Fld_GetType(field) &&
           (OGR_Fld_GetSubType(field) != OFSTBoolean ||
            OGR_Fld_GetSubType(of) == OFSTBoolean);
}

/* Converts a value to the type of field k. Numbers become the texts that GDAL
 * writes for them. Returns 0 if field k cannot hold the value. */
static int convert_value(OGRFeatureH from, int i, OGRFeatureH to, int k)
{
    const OGRFieldType of = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(from, i));
    const OGRFieldType type = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(to, k));
    struct one_value one = {ONE_TEXT, "", 0, 0.0};
    if (type == OFTString &&
        (of == OFTInteger || of == OFTInteger64 || of == OFTReal))
    {
        OGR_F_SetFieldString(to, k, OGR_F_GetFieldAsString(from, i));
        return 1;
    }
    if (put_wider_list(from, i, to, k) || put_date_or_datetime(from, i, to, k))
        return 1;
    if (!read_scalar(from, i, &one))
        return 0;
    if (one.form == ONE_TEXT && type != OFTString && type != OFTStringList &&
        is_blank(one.text))
    {
        OGR_F_SetFieldNull(to, k);
        return 1;
    }
    return put_scalar(&one, to, k);
}

int oj_report_value_copy(OGRFeatureH from, int i, OGRFeatureH to, int k)
{
    if (!OGR_F_IsFieldSet(from, i))
        return 1;
    if (OGR_F_IsFieldNull(from, i))
    {
        OGR_F_SetFieldNull(to, k);
        return 1;
    }
    if (is_in_one_type(from, i, to, k))
    {
        OGR_F_SetFieldRaw(to, k, OGR_F_GetRawFieldRef(from, i));
        return 1;
    }
    if (convert_value(from, i, to, k))
        return 1;
    OGR_F_SetFieldNull(to, k);
    return 0;
}
