#include "oj_aggregate_values.h"

#include <string.h>

oj_status oj_value_way_open(struct oj_value_way *way, struct oj_error *err)
{
    if (way->form != OJ_FORM_AS_TEXT)
        return OJ_OK;
    way->scratch = oj_value_scratch(way->type, way->subtype, &way->defn);
    if (way->scratch == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a feature");
    return OJ_OK;
}

enum oj_aggregate_type oj_value_way_type(const struct oj_value_way *way)
{
    if (way->form == OJ_FORM_PRESENCE)
        return OJ_AGG_INTEGER;
    if (way->form != OJ_FORM_NUMBER)
        return OJ_AGG_BYTES;
    return way->type == OFTReal ? OJ_AGG_REAL : OJ_AGG_INTEGER;
}

/* ---- dates and times ---------------------------------------------------- */

/* Days from 1 January of year 0 (proleptic Gregorian), counted from March on,
 * so that leap days come last. Also for dates that do not exist. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t m = month > 2 ? month - 3 : month + 9;
    int64_t leaps = (y >= 0 ? y / 4 - y / 100 + y / 400
                            : (y - 3) / 4 - (y - 99) / 100 + (y - 399) / 400);
    return 365 * y + leaps + (153 * m + 2) / 5 + day;
}

static void put(char *bytes, uint64_t number, int n)
{
    for (int i = n - 1; i >= 0; i--)
    {
        bytes[i] = (char)(number & 0xff);
        number >>= 8;
    }
}

static uint64_t get(const char *bytes, int n)
{
    uint64_t number = 0;
    for (int i = 0; i < n; i++)
        number = number << 8 | (unsigned char)bytes[i];
    return number;
}

/* OGR's mark of a zone: 100 is UTC, and each step a quarter of an hour; 0 and 1
 * say that there is none. */
static int64_t zone_ms(int flag)
{
    return flag > 1 ? INT64_C(900000) * (flag - 100) : 0;
}

/* Milliseconds in UTC first, which are the order; then what it takes to get
 * the value back as it was. */
static void write_time(const OGRField *raw, char bytes[OJ_TIME_BYTES])
{
    uint32_t second;
    int64_t ms =
        days_of(raw->Date.Year, raw->Date.Month, raw->Date.Day) * 86400000 +
        raw->Date.Hour * INT64_C(3600000) + raw->Date.Minute * INT64_C(60000) +
        (int64_t)((double)raw->Date.Second * 1000.0 + 0.5) -
        zone_ms(raw->Date.TZFlag);
    memcpy(&second, &raw->Date.Second, sizeof second);
    put(bytes, (uint64_t)ms ^ UINT64_C(1) << 63, 8);
    put(bytes + 8, (uint64_t)raw->Date.Year & 0xffff, 2);
    bytes[10] = (char)raw->Date.Month;
    bytes[11] = (char)raw->Date.Day;
    bytes[12] = (char)raw->Date.Hour;
    bytes[13] = (char)raw->Date.Minute;
    put(bytes + 14, second, 4);
    bytes[18] = (char)raw->Date.TZFlag;
    bytes[19] = 0;
}

static void read_time(const char *bytes, OGRField *raw)
{
    uint32_t second = (uint32_t)get(bytes + 14, 4);
    raw->Date.Year = (GInt16)get(bytes + 8, 2);
    raw->Date.Month = (GByte)bytes[10];
    raw->Date.Day = (GByte)bytes[11];
    raw->Date.Hour = (GByte)bytes[12];
    raw->Date.Minute = (GByte)bytes[13];
    raw->Date.TZFlag = (GByte)bytes[18];
    raw->Date.Reserved = 0;
    memcpy(&raw->Date.Second, &second, sizeof second);
}

/* ---- in and out --------------------------------------------------------- */

static void take_text(struct oj_aggregate_value *to, const char *text,
                      int64_t n)
{
    to->bytes = text;
    to->n_bytes = n >= 0 ? n : (int64_t)strlen(text);
}

void oj_value_way_take(struct oj_value_way *way, const struct oj_value *from,
                       struct oj_aggregate_value *to)
{
    to->is_null =
        OGR_RawField_IsNull(&from->raw) || OGR_RawField_IsUnset(&from->raw);
    if (to->is_null)
        return;
    switch (way->form)
    {
        case OJ_FORM_NUMBER:
            if (way->type == OFTReal)
                to->real = from->raw.Real;
            else if (way->type == OFTInteger64)
                to->integer = from->raw.Integer64;
            else
                to->integer = from->raw.Integer;
            break;
        case OJ_FORM_TEXT:
            take_text(to, from->raw.String, from->n_text);
            break;
        case OJ_FORM_TIME:
            write_time(&from->raw, way->time);
            take_text(to, way->time, OJ_TIME_BYTES);
            break;
        case OJ_FORM_AS_TEXT:
            OGR_F_SetFieldRaw(way->scratch, 0, (OGRField *)&from->raw);
            take_text(to, OGR_F_GetFieldAsString(way->scratch, 0), -1);
            break;
        default:
            to->integer = 1;
            break;
    }
}

void oj_value_of_result(const struct oj_aggregate_value *from,
                        enum oj_aggregate_type result, OGRFieldType type,
                        struct oj_value *to)
{
    if (from->is_null)
    {
        oj_value_set_null(to);
        return;
    }
    oj_value_set_zero(to);
    if (result == OJ_AGG_REAL)
        to->raw.Real = from->real;
    else if (result == OJ_AGG_INTEGER && type == OFTInteger)
        to->raw.Integer = (int)from->integer;
    else if (result == OJ_AGG_INTEGER)
        to->raw.Integer64 = from->integer;
    else if (type == OFTString)
    {
        to->raw.String = (char *)from->bytes; /* only read */
        to->n_text = from->n_bytes;
    }
    else
        read_time(from->bytes, &to->raw);
}

void oj_value_way_free(struct oj_value_way *way)
{
    if (way->scratch != NULL)
        OGR_F_Destroy(way->scratch);
    if (way->defn != NULL)
        OGR_FD_Release(way->defn);
    memset(way, 0, sizeof *way);
}
