#include "oj_aggregate_values.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/read/oj_attributes.h"

#include <string.h>

enum
{
    TIME_BYTES = 20
};

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
static void write_time(const OGRField *raw, char bytes[TIME_BYTES])
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

/* ---- columns ------------------------------------------------------------ */

/* Only the array of the column's type is there. */
struct oj_column_values
{
    double *real;
    int64_t *integer;
    struct oj_aggregate_bytes *bytes;
    uint8_t *is_null;
    char *pool; /* bytes that are nowhere else, value by value */
    int64_t cap_real, cap_integer, cap_bytes, cap_null, n_pool, cap_pool;
};

static oj_status reserve(struct oj_column_values *values,
                         enum oj_aggregate_type type, int64_t n,
                         struct oj_error *err)
{
    OJ_TRY(oj_reserve(&values->is_null, 0, n, &values->cap_null, 1, err));
    if (type == OJ_AGG_REAL)
        return oj_reserve(&values->real, 0, n, &values->cap_real,
                          sizeof *values->real, err);
    if (type == OJ_AGG_INTEGER)
        return oj_reserve(&values->integer, 0, n, &values->cap_integer,
                          sizeof *values->integer, err);
    return oj_reserve(&values->bytes, 0, n, &values->cap_bytes,
                      sizeof *values->bytes, err);
}

static void take_number(const struct oj_value_way *way, const OGRField *raw,
                        struct oj_column_values *values, int64_t i)
{
    if (way->form == OJ_FORM_PRESENCE)
        values->integer[i] = 1;
    else if (way->type == OFTReal)
        values->real[i] = raw->Real;
    else if (way->type == OFTInteger64)
        values->integer[i] = raw->Integer64;
    else
        values->integer[i] = raw->Integer;
}

static oj_status take_bytes(const struct oj_value_way *way,
                            const struct oj_value *value,
                            struct oj_column_values *values, int64_t i,
                            struct oj_error *err)
{
    struct oj_aggregate_bytes *to = &values->bytes[i];
    char time[TIME_BYTES];
    if (way->form == OJ_FORM_TEXT)
    {
        to->bytes = value->raw.String;
        to->n = value->n_text >= 0 ? value->n_text
                                   : (int64_t)strlen(value->raw.String);
        return OJ_OK;
    }
    if (way->form == OJ_FORM_TIME)
    {
        write_time(&value->raw, time);
        to->bytes = time;
        to->n = TIME_BYTES;
    }
    else
    {
        OGR_F_SetFieldRaw(way->scratch, 0, (OGRField *)&value->raw);
        to->bytes = OGR_F_GetFieldAsString(way->scratch, 0);
        to->n = (int64_t)strlen(to->bytes);
    }
    OJ_TRY(oj_reserve(&values->pool, values->n_pool, values->n_pool + to->n + 1,
                      &values->cap_pool, 1, err));
    memcpy(values->pool + values->n_pool, to->bytes, (size_t)to->n);
    values->n_pool += to->n;
    return OJ_OK;
}

static oj_status read_values(const struct oj_value_way *way,
                             const struct oj_row_values *source, int64_t first,
                             int64_t n, const int32_t *order,
                             struct oj_column_values *values,
                             struct oj_error *err)
{
    enum oj_aggregate_type type = oj_value_way_type(way);
    int64_t at = 0;
    values->n_pool = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_value value;
        oj_row_values_get(source, order != NULL ? order[first + i] : first + i,
                          way->field, &value);
        values->is_null[i] =
            OGR_RawField_IsNull(&value.raw) || OGR_RawField_IsUnset(&value.raw);
        if (values->is_null[i])
            continue;
        if (type == OJ_AGG_BYTES)
            OJ_TRY(take_bytes(way, &value, values, i, err));
        else
            take_number(way, &value.raw, values, i);
    }
    /* the pool stays where it is now */
    for (int64_t i = 0; values->n_pool > 0 && i < n; i++)
    {
        if (values->is_null[i])
            continue;
        values->bytes[i].bytes = values->pool + at;
        at += values->bytes[i].n;
    }
    return OJ_OK;
}

oj_status oj_aggregate_columns_read(struct oj_aggregate_columns *columns,
                                    const struct oj_value_way *ways, int n_ways,
                                    struct oj_row_values source, int64_t first,
                                    int64_t n, const int32_t *order,
                                    struct oj_error *err)
{
    if (columns->column == NULL)
        columns->column = oj_calloc(n_ways, sizeof *columns->column);
    if (columns->value == NULL)
        columns->value = oj_calloc(n_ways, sizeof *columns->value);
    if (columns->column == NULL || columns->value == NULL)
        return oj_fail_nomem(err, n_ways, sizeof *columns->value);
    columns->n = n_ways;
    for (int c = 0; c < n_ways; c++)
    {
        const struct oj_value_way *way = &ways[c];
        struct oj_column_values *values = &columns->value[c];
        struct oj_aggregate_column *column = &columns->column[c];
        int any_null = 1;
        OJ_TRY(reserve(values, oj_value_way_type(way), n, err));
        if (way->form != OJ_FORM_NUMBER || way->type != OFTReal ||
            source.table != NULL ||
            !oj_attributes_reals(source.attributes, way->field, first, n, order,
                                 values->real, values->is_null, &any_null))
            OJ_TRY(read_values(way, &source, first, n, order, values, err));
        column->real = values->real;
        column->integer = values->integer;
        column->bytes = values->bytes;
        column->is_null = any_null ? values->is_null : NULL;
    }
    return OJ_OK;
}

void oj_aggregate_columns_free(struct oj_aggregate_columns *columns)
{
    for (int c = 0; c < columns->n; c++)
    {
        oj_free(columns->value[c].real);
        oj_free(columns->value[c].integer);
        oj_free(columns->value[c].bytes);
        oj_free(columns->value[c].is_null);
        oj_free(columns->value[c].pool);
    }
    oj_free(columns->column);
    oj_free(columns->value);
    memset(columns, 0, sizeof *columns);
}

/* ---- results ------------------------------------------------------------ */

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
