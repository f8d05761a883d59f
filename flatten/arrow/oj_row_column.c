#include "oj_row_column.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"
#include "../read/oj_attributes.h"
#include "../read/oj_table.h"
#include "../write/oj_layer_shape.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#if OJ_HAVE_ARROW
#include <ogr_recordbatch.h>
#endif

/* ---- formats ------------------------------------------------------------ */

/* The letter for a format, or 0. */
static char letter_of(const char *format)
{
    if (format[0] != '\0' && format[1] == '\0' &&
        strchr("bsilfguz", format[0]) != NULL)
        return format[0];
    if (strcmp(format, "tdD") == 0)
        return 'D';
    if (strcmp(format, "ttm") == 0)
        return 't';
    if (strcmp(format, "tsm:") == 0 || strcmp(format, "tsm:UTC") == 0)
        return 'T';
    if (strncmp(format, "w:", 2) == 0)
        return 'w';
    if (strcmp(format, "+l") == 0)
        return '+';
    return 0;
}

static int is_text(char format)
{
    return format == 'u' || format == 'z';
}

static int has_offsets(char format)
{
    return is_text(format) || format == '+';
}

oj_status oj_row_column_init(struct oj_row_column *column, const char *format,
                             const char *item, int is_nullable, int64_t limit,
                             int *known, struct oj_error *err)
{
    memset(column, 0, sizeof *column);
    column->format = letter_of(format);
    column->is_nullable = is_nullable;
    column->limit = limit;
    column->is_utc = strcmp(format, "tsm:UTC") == 0;
    *known = column->format != 0;
    if (column->format == 'w')
    {
        column->width = atoi(format + 2);
        *known = column->width > 0;
    }
    if (column->format != '+')
        return OJ_OK;
    *known = item != NULL && strchr("bsilfgu", item[0]) != NULL;
    if (!*known)
        return OJ_OK;
    OJ_NEW(column->item, 1, err);
    return oj_row_column_init(column->item, item, NULL, 0, limit, known, err);
}

static OGRFieldType item_type(OGRFieldType type)
{
    return type == OFTIntegerList     ? OFTInteger
           : type == OFTInteger64List ? OFTInteger64
           : type == OFTRealList      ? OFTReal
                                      : OFTString;
}

int oj_row_column_takes(const struct oj_row_column *column, OGRFieldType type)
{
    static const char *const formats[OFTMaxType + 1] = {
        [OFTInteger] = "bsi", [OFTInteger64] = "l", [OFTReal] = "fg",
        [OFTString] = "u",    [OFTBinary] = "zw",   [OFTDate] = "D",
        [OFTTime] = "t",      [OFTDateTime] = "T"};
    if (formats[type] != NULL)
        return strchr(formats[type], column->format) != NULL;
    return column->format == '+' &&
           oj_row_column_takes(column->item, item_type(type));
}

void oj_row_column_free(struct oj_row_column *column)
{
    if (column->item != NULL)
        oj_row_column_free(column->item);
    oj_free(column->item);
    oj_free(column->valid);
    oj_free(column->values);
    oj_free(column->bytes);
    memset(column, 0, sizeof *column);
}

/* Bytes of a value in values, 0 for bits and w. */
static size_t value_size(const struct oj_row_column *column)
{
    switch (column->format)
    {
        case 's':
            return 2;
        case 'l':
        case 'g':
        case 'T':
            return 8;
        case 'b':
        case 'w':
            return 0;
        default:
            return 4;
    }
}

/* ---- room --------------------------------------------------------------- */

/* Bytes of bits of n rows, a whole word more than needed. */
static int64_t bit_bytes(int64_t n)
{
    return (n + 63) / 64 * 8;
}

static void put_bit(uint8_t *bits, int64_t i, int value)
{
    uint8_t mask = (uint8_t)(1u << (i & 7));
    bits[i >> 3] =
        (uint8_t)(value ? bits[i >> 3] | mask : bits[i >> 3] & ~mask);
}

/* The next row, whose value is in its place. */
static oj_status add_row(struct oj_row_column *column, int has_value,
                         struct oj_error *err)
{
    int64_t row = column->length;
    int is_null = !has_value && column->is_nullable;
    if (is_null || column->valid != NULL)
    {
        int is_new = column->valid == NULL; /* all rows so far had values */
        OJ_TRY(oj_reserve(&column->valid, is_new ? 0 : bit_bytes(row),
                          bit_bytes(row + 1), &column->cap_valid, 1, err));
        if (is_new)
            memset(column->valid, 0xFF, (size_t)bit_bytes(row));
        put_bit(column->valid, row, !is_null);
        column->n_nulls += is_null;
    }
    column->length = row + 1;
    return OJ_OK;
}

/* Room for a value more, not of w, u, z and +. */
static oj_status reserve_value(struct oj_row_column *column,
                               struct oj_error *err)
{
    int64_t length = column->length;
    if (column->format == 'b')
        return oj_reserve(&column->values, bit_bytes(length),
                          bit_bytes(length + 1), &column->cap_values, 1, err);
    return oj_reserve(&column->values, length, length + 1, &column->cap_values,
                      value_size(column), err);
}

/* For offsets: one more, and the first is 0. */
static oj_status reserve_offsets(struct oj_row_column *column, int64_t n,
                                 struct oj_error *err)
{
    int is_new = column->values == NULL;
    OJ_TRY(oj_reserve(&column->values, column->length + 1,
                      column->length + n + 1, &column->cap_values,
                      sizeof(int32_t), err));
    if (is_new)
        *(int32_t *)column->values = 0;
    return OJ_OK;
}

static oj_status reserve_bytes(struct oj_row_column *column, int64_t n,
                               struct oj_error *err)
{
    return oj_reserve(&column->bytes, column->n_bytes, column->n_bytes + n,
                      &column->cap_bytes, 1, err);
}

/* ---- texts -------------------------------------------------------------- */

/* Room for one more value of n bytes: *at is where it goes; NULL: it does not
 * fit. */
static oj_status add_bytes(struct oj_row_column *column, int64_t n,
                           int has_value, char **at, struct oj_error *err)
{
    *at = NULL;
    if (n > column->limit - column->n_bytes)
        return OJ_OK;
    OJ_TRY(reserve_offsets(column, 1, err));
    OJ_TRY(reserve_bytes(column, n + 1, err)); /* so that *at is not NULL */
    OJ_TRY(add_row(column, has_value, err));
    *at = column->bytes + column->n_bytes;
    column->n_bytes += n;
    ((int32_t *)column->values)[column->length] = (int32_t)column->n_bytes;
    return OJ_OK;
}

/* ---- single values ------------------------------------------------------ */

static oj_status add_text(struct oj_row_column *column, const char *text,
                          int64_t n, int *fits, struct oj_error *err)
{
    char *at;
    OJ_TRY(add_bytes(column, n, 1, &at, err));
    *fits = at != NULL;
    if (at != NULL && n > 0)
        memcpy(at, text, (size_t)n);
    return OJ_OK;
}

/* The width that the schema promises, cut or filled up with zeroes. */
static oj_status add_fixed(struct oj_row_column *column, const OGRField *raw,
                           int has_value, int *fits, struct oj_error *err)
{
    int64_t width = column->width, n = has_value ? raw->Binary.nCount : 0;
    char *to;
    *fits = width <= column->limit - column->n_bytes;
    if (!*fits)
        return OJ_OK;
    OJ_TRY(reserve_bytes(column, width, err));
    to = column->bytes + column->n_bytes;
    memset(to, 0, (size_t)width);
    if (n > 0)
        memcpy(to, raw->Binary.paData, (size_t)(n < width ? n : width));
    OJ_TRY(add_row(column, has_value, err));
    column->n_bytes += width;
    return OJ_OK;
}

/* Days since 1970 in the Gregorian calendar, before it was made, too. Years are
 * counted from March on, so that leap days are the last ones. */
static int64_t days_of(const OGRField *raw)
{
    int64_t month = (raw->Date.Month + 9) % 12;
    int64_t year = (int64_t)raw->Date.Year - (raw->Date.Month < 3) + 400000;
    int64_t leap_days = year / 4 - year / 100 + year / 400;
    const int64_t first_of_1970 = 146816468; /* from March of year -400000 */
    return year * 365 + leap_days + (153 * month + 2) / 5 + raw->Date.Day - 1 -
           first_of_1970;
}

/* Of the seconds. They are a float, and GDAL rounds like this, too. */
static int32_t milliseconds_of(const OGRField *raw)
{
    return (int32_t)(raw->Date.Second * 1000 + 0.5);
}

/* Zones are quarters of an hour from 100, which is UTC; 0: unknown, 1: the
 * local time of wherever it is. */
static int64_t moment_of(const OGRField *raw, int is_utc)
{
    int64_t minutes =
        (days_of(raw) * 24 + raw->Date.Hour) * 60 + raw->Date.Minute;
    int64_t moment = minutes * 60000 + milliseconds_of(raw);
    if (is_utc && raw->Date.TZFlag > 2)
        moment -= ((int64_t)raw->Date.TZFlag - 100) * 15 * 60000;
    return moment;
}

static void put_value(struct oj_row_column *column, int64_t i,
                      const OGRField *raw)
{
    void *values = column->values;
    switch (column->format)
    {
        case 'b':
            put_bit(values, i, raw->Integer != 0);
            break;
        case 's':
            ((int16_t *)values)[i] = (int16_t)raw->Integer;
            break;
        case 'i':
            ((int32_t *)values)[i] = raw->Integer;
            break;
        case 'l':
            ((int64_t *)values)[i] = raw->Integer64;
            break;
        case 'f':
            ((float *)values)[i] = (float)raw->Real;
            break;
        case 'g':
            ((double *)values)[i] = raw->Real;
            break;
        case 'D':
            ((int32_t *)values)[i] = (int32_t)days_of(raw);
            break;
        case 't':
            ((int32_t *)values)[i] = raw->Date.Hour * 3600000 +
                                     raw->Date.Minute * 60000 +
                                     milliseconds_of(raw);
            break;
        default:
            ((int64_t *)values)[i] = moment_of(raw, column->is_utc);
            break;
    }
}

static oj_status add_number(struct oj_row_column *column, const OGRField *raw,
                            int has_value, struct oj_error *err)
{
    size_t size = value_size(column);
    OJ_TRY(reserve_value(column, err));
    if (has_value)
        put_value(column, column->length, raw);
    else if (column->format == 'b')
        put_bit(column->values, column->length, 0);
    else
        memset((char *)column->values + (size_t)column->length * size, 0, size);
    return add_row(column, has_value, err);
}

/* ---- lists -------------------------------------------------------------- */

/* Value i of a list, as a single one. */
static void list_value(const OGRField *raw, OGRFieldType type, int i,
                       struct oj_value *value)
{
    oj_value_set_zero(value);
    if (type == OFTIntegerList)
        value->raw.Integer = raw->IntegerList.paList[i];
    else if (type == OFTInteger64List)
        value->raw.Integer64 = raw->Integer64List.paList[i];
    else if (type == OFTRealList)
        value->raw.Real = raw->RealList.paList[i];
    else
        value->raw.String = raw->StringList.paList[i];
}

/* Values like OGR's mark of NULL are values inside a list. */
static oj_status add_item(struct oj_row_column *item,
                          const struct oj_value *value, OGRFieldType type,
                          int *fits, struct oj_error *err)
{
    if (type == OFTString)
        return add_text(item, value->raw.String,
                        (int64_t)strlen(value->raw.String), fits, err);
    *fits = 1;
    return add_number(item, &value->raw, 1, err);
}

static oj_status add_list(struct oj_row_column *column, const OGRField *raw,
                          OGRFieldType type, int has_value, int *fits,
                          struct oj_error *err)
{
    struct oj_row_column *item = column->item;
    int64_t before = item->length;
    int n = has_value ? raw->IntegerList.nCount : 0;
    *fits = n <= column->limit - before;
    if (!*fits)
        return OJ_OK;
    OJ_TRY(reserve_offsets(column, 1, err));
    for (int i = 0; i < n; i++)
    {
        struct oj_value value;
        list_value(raw, type, i, &value);
        OJ_TRY(add_item(item, &value, item_type(type), fits, err));
        if (!*fits)
        {
            oj_row_column_cut(item, before);
            return OJ_OK;
        }
    }
    OJ_TRY(add_row(column, has_value, err));
    ((int32_t *)column->values)[column->length] = (int32_t)item->length;
    return OJ_OK;
}

static oj_status add_value(struct oj_row_column *column,
                           const struct oj_value *value, OGRFieldType type,
                           int *fits, struct oj_error *err)
{
    const OGRField *raw = &value->raw;
    int has_value = oj_value_is_there(value);
    const char *text;
    char *at;
    int64_t n;
    *fits = 1;
    if (column->format == '+')
        return add_list(column, raw, type, has_value, fits, err);
    if (column->format == 'w')
        return add_fixed(column, raw, has_value, fits, err);
    if (!is_text(column->format))
        return add_number(column, raw, has_value, err);
    if (!has_value)
        return add_bytes(column, 0, 0, &at, err);
    text = oj_value_bytes(value, column->format == 'z' ? OFTBinary : OFTString,
                          &n);
    if (column->format == 'u') /* up to a zero byte, as OGR has it */
        n = (int64_t)strnlen(text, (size_t)n);
    return add_text(column, text, n, fits, err);
}

/* ---- fields ------------------------------------------------------------- */

/* Rows of the join side come in no order: the texts of a column are fetched
 * some rows ahead, and their offsets before. */
#define FETCH_AHEAD 16

static void fetch_text(const struct oj_table *table, int column,
                       const struct oj_row_place *places, int64_t i, int64_t n)
{
    for (int stage = 0; stage < 2; stage++)
    {
        int64_t ahead = i + FETCH_AHEAD * (2 - stage);
        if (ahead < n && places[ahead].join_row >= 0)
            oj_table_prefetch(table, column, places[ahead].join_row, stage);
    }
}

oj_status oj_row_gather_field(const struct oj_row_cursor *cursor, int source,
                              OGRFeatureH scratch,
                              const struct oj_row_place *places, int64_t n,
                              struct oj_row_column *to, int64_t *n_added,
                              struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(cursor);
    const struct oj_column *column =
        source < 0 ? NULL : &sources->columns[source];
    int is_null = column == NULL ||
                  (sources->is_join_rows && column->origin != OJ_COLUMN_JOIN &&
                   column->origin != OJ_COLUMN_JOIN_FID);
    int fetches =
        !is_null && column->origin == OJ_COLUMN_JOIN && !sources->is_join_rows;
    int is_plain = is_null || oj_row_cursor_is_plain(cursor, source);
    OGRFieldType type =
        is_null
            ? OFTInteger
            : OGR_Fld_GetType(OGR_F_GetFieldDefnRef(scratch, column->target));
    *n_added = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_value value;
        int fits;
        if (fetches)
            fetch_text(sources->options->join_table, column->source, places, i,
                       n);
        if (is_null)
            oj_value_set_null(&value);
        else
            OJ_TRY(
                oj_row_cursor_value(cursor, source, &places[i], &value, err));
        if (!is_plain)
            OJ_TRY(oj_row_cursor_convert(cursor, source, scratch, &value, err));
        OJ_TRY(add_value(to, &value, type, &fits, err));
        if (!fits)
            break;
        *n_added = i + 1;
    }
    return OJ_OK;
}

oj_status oj_row_gather_fids(const struct oj_row_place *places, int64_t n,
                             struct oj_row_column *to, struct oj_error *err)
{
    struct oj_value value;
    int fits;
    oj_value_set_zero(&value);
    for (int64_t i = 0; i < n; i++)
    {
        value.raw.Integer64 = places[i].fid;
        OJ_TRY(add_value(to, &value, OFTInteger64, &fits, err));
    }
    return OJ_OK;
}

/* ---- geometries --------------------------------------------------------- */

static oj_status add_null(struct oj_row_column *to, int *fits,
                          struct oj_error *err)
{
    struct oj_value value;
    oj_value_set_null(&value);
    return add_value(to, &value, OFTBinary, fits, err);
}

static oj_status fail_geometry(int64_t fid, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "the geometry of feature %lld cannot be written as WKB",
                   (long long)fid);
}

static oj_status add_export(struct oj_row_column *to, OGRGeometryH geometry,
                            int64_t fid, int *fits, struct oj_error *err)
{
    int size = OGR_G_WkbSize(geometry);
    char *at;
    if (size <= 0)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the geometry of feature %lld takes more than 2 GiB as "
                       "WKB",
                       (long long)fid);
    OJ_TRY(add_bytes(to, size, 1, &at, err));
    *fits = at != NULL;
    if (at != NULL && OGR_G_ExportToIsoWkb(geometry, wkbNDR,
                                           (unsigned char *)at) != OGRERR_NONE)
        return fail_geometry(fid, err);
    return OJ_OK;
}

/* Over OGR, unless the bytes of a stream can be taken as they are. */
static oj_status add_as_read(struct oj_row_column *to,
                             const struct oj_batch *batch, int64_t row,
                             int promote, int *fits, struct oj_error *err)
{
    const struct oj_attributes *attributes = batch->attributes;
    int64_t fid = batch->flat.fid[row];
    OGRGeometryH geometry, own = NULL;
    oj_status status;
    if (attributes->slice.chunk != NULL)
    {
        size_t n = 0;
        const uint8_t *wkb = oj_arrow_wkb(&attributes->slice, row, &n);
        if (wkb != NULL && !promote && oj_wkb_is_iso(wkb, n))
        {
            char *at;
            OJ_TRY(add_bytes(to, (int64_t)n, 1, &at, err));
            *fits = at != NULL;
            if (at != NULL)
                memcpy(at, wkb, n);
            return OJ_OK;
        }
        if (wkb != NULL &&
            (n > INT_MAX ||
             OGR_G_CreateFromWkb(wkb, NULL, &own, (int)n) != OGRERR_NONE))
            return fail_geometry(fid, err);
        geometry = own;
    }
    else
        geometry = oj_attributes_geometry(attributes, row);
    if (geometry == NULL)
        return add_null(to, fits, err);
    if (promote)
        geometry = own =
            oj_layer_shape_to_multi(own != NULL ? own : OGR_G_Clone(geometry));
    status = add_export(to, geometry, fid, fits, err);
    OGR_G_DestroyGeometry(own);
    return status;
}

static oj_status add_geometry(struct oj_row_column *to,
                              const struct oj_row_cursor *cursor,
                              const struct oj_row_place *place, int *fits,
                              struct oj_error *err)
{
    struct oj_row_geometry shape;
    int64_t n = 0;
    char *at;
    oj_row_cursor_geometry(cursor, place, &shape);
    if (shape.is_as_read)
        return add_as_read(to, oj_row_cursor_sources(cursor)->batch, place->row,
                           shape.multi, fits, err);
    if (shape.flat != NULL)
        n = oj_wkb_size(shape.flat, shape.feature, shape.multi);
    if (n == 0)
        return add_null(to, fits, err);
    OJ_TRY(add_bytes(to, n, 1, &at, err));
    *fits = at != NULL;
    if (at != NULL)
        oj_wkb_write(shape.flat, shape.feature, shape.multi, (uint8_t *)at);
    return OJ_OK;
}

oj_status oj_row_gather_wkb(const struct oj_row_cursor *cursor,
                            const struct oj_row_place *places, int64_t n,
                            struct oj_row_column *to, int64_t *n_added,
                            struct oj_error *err)
{
    *n_added = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int fits;
        OJ_TRY(add_geometry(to, cursor, &places[i], &fits, err));
        if (!fits)
            break;
        *n_added = i + 1;
    }
    return OJ_OK;
}

/* ---- the end of a batch ------------------------------------------------- */

void oj_row_column_cut(struct oj_row_column *column, int64_t length)
{
    if (length >= column->length)
        return;
    for (int64_t i = length; column->valid != NULL && i < column->length; i++)
        column->n_nulls -= !(column->valid[i >> 3] >> (i & 7) & 1);
    column->length = length;
    if (is_text(column->format))
        column->n_bytes = ((int32_t *)column->values)[length];
    else if (column->format == 'w')
        column->n_bytes = length * column->width;
    else if (column->format == '+')
        oj_row_column_cut(column->item, ((int32_t *)column->values)[length]);
}

#if OJ_HAVE_ARROW

static void release_array(struct ArrowArray *array)
{
    for (int64_t i = 0; array->children != NULL && i < array->n_children; i++)
    {
        struct ArrowArray *child = array->children[i];
        if (child != NULL && child->release != NULL)
            child->release(child);
        oj_free(child);
    }
    for (int64_t i = 0; array->buffers != NULL && i < array->n_buffers; i++)
        oj_free((void *)array->buffers[i]);
    oj_free(array->children);
    oj_free(array->buffers);
    memset(array, 0, sizeof *array);
}

oj_status oj_row_column_make_array(int n_buffers, int n_children,
                                   struct ArrowArray *array,
                                   struct oj_error *err)
{
    memset(array, 0, sizeof *array);
    array->release = release_array;
    array->buffers = oj_calloc(n_buffers, sizeof *array->buffers);
    if (array->buffers == NULL)
        return oj_fail_nomem(err, n_buffers, sizeof *array->buffers);
    array->n_buffers = n_buffers;
    if (n_children == 0)
        return OJ_OK;
    array->children = oj_calloc(n_children, sizeof *array->children);
    if (array->children == NULL)
        return oj_fail_nomem(err, n_children, sizeof *array->children);
    for (; array->n_children < n_children; array->n_children++)
    {
        struct ArrowArray *child = oj_calloc(1, sizeof *child);
        if (child == NULL)
            return oj_fail_nomem(err, 1, sizeof *child);
        array->children[array->n_children] = child;
    }
    return OJ_OK;
}

/* An array without rows of column's form. */
static oj_status make_array(const struct oj_row_column *column,
                            struct ArrowArray *array, struct oj_error *err)
{
    int n_buffers = is_text(column->format) ? 3 : 2;
    OJ_TRY(
        oj_row_column_make_array(n_buffers, column->item != NULL, array, err));
    return column->item == NULL
               ? OJ_OK
               : make_array(column->item, array->children[0], err);
}

/* So that no buffer but that of valid is NULL. */
static oj_status complete(struct oj_row_column *column, struct oj_error *err)
{
    if (has_offsets(column->format))
        OJ_TRY(reserve_offsets(column, 0, err));
    else if (column->format != 'w')
        OJ_TRY(reserve_value(column, err));
    if (is_text(column->format) || column->format == 'w')
        OJ_TRY(reserve_bytes(column, 1, err));
    return column->item != NULL ? complete(column->item, err) : OJ_OK;
}

/* Cannot fail. */
static void move(struct oj_row_column *column, struct ArrowArray *array)
{
    int has_nulls = column->n_nulls > 0;
    array->length = column->length;
    array->null_count = column->n_nulls;
    array->buffers[0] = has_nulls ? column->valid : NULL;
    if (!has_nulls)
        oj_free(column->valid);
    array->buffers[1] = column->format == 'w' ? column->bytes : column->values;
    if (is_text(column->format))
        array->buffers[2] = column->bytes;
    column->valid = NULL;
    column->values = NULL;
    column->bytes = NULL;
    column->length = column->n_nulls = column->n_bytes = 0;
    column->cap_valid = column->cap_values = column->cap_bytes = 0;
    if (column->item != NULL)
        move(column->item, array->children[0]);
}

oj_status oj_row_column_finish(struct oj_row_column *column,
                               struct ArrowArray *array, struct oj_error *err)
{
    oj_status status = make_array(column, array, err);
    if (status == OJ_OK)
        status = complete(column, err);
    if (status == OJ_OK)
        move(column, array);
    else
        release_array(array);
    return status;
}

#endif
