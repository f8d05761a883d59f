#include "oj_row_gather.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"
#include "../read/oj_attributes.h"
#include "../read/oj_table.h"
#include "../write/oj_layer_shape.h"

#include <limits.h>
#include <math.h>
#include <string.h>

struct oj_row_gather
{
    const struct oj_row_cursor *cursor;
    OGRFeatureDefnH defn;
    OGRFeatureH feature; /* for conversions */

    /* Of the rows of a block. */
    int64_t index[OJ_ROW_BLOCK]; /* in a side's arrays; < 0: no row there */
    uint8_t has_value[OJ_ROW_BLOCK];
    const char *text[OJ_ROW_BLOCK];
    int64_t n_bytes[OJ_ROW_BLOCK];
};

oj_status oj_row_gather_open(const struct oj_row_cursor *cursor,
                             OGRFeatureDefnH defn, struct oj_row_gather **out,
                             struct oj_error *err)
{
    struct oj_row_gather *gather;
    OJ_NEW(gather, 1, err);
    memset(gather, 0, sizeof *gather);
    gather->cursor = cursor;
    gather->defn = defn;
    gather->feature = OGR_F_Create(defn);
    if (gather->feature == NULL)
    {
        oj_free(gather);
        return oj_fail_nomem(err, 1, 1024);
    }
    *out = gather;
    return OJ_OK;
}

void oj_row_gather_close(struct oj_row_gather *gather)
{
    if (gather == NULL)
        return;
    OGR_F_Destroy(gather->feature);
    oj_free(gather);
}

/* ---- numbers ------------------------------------------------------------ */

/* Which of the rows at index have a value; 1: all. */
static int find_values(struct oj_row_gather *gather,
                       const struct oj_column_view *view, int64_t n)
{
    int64_t n_there = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = gather->index[i];
        gather->has_value[i] = at >= 0 && oj_column_has(view, at);
        n_there += gather->has_value[i];
    }
    return n_there == n;
}

#define GATHER(FROM, TO)                                                       \
    for (int64_t i = 0; i < n; i++)                                            \
    ((TO *)to)[i] = has_value[i]                                               \
                        ? (TO)((const FROM *)view->values)[first + index[i]]   \
                        : (TO)0

static void gather_bits(const struct oj_row_gather *gather, const int *values,
                        int64_t n, struct oj_row_column *to)
{
    uint8_t *bits = to->values;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = to->length + i;
        int value = gather->has_value[i] && values[gather->index[i]] != 0;
        uint8_t mask = (uint8_t)(1u << (at & 7));
        bits[at >> 3] =
            (uint8_t)(value ? bits[at >> 3] | mask : bits[at >> 3] & ~mask);
    }
}

static int copy_numbers(const struct oj_row_gather *gather,
                        const struct oj_column_view *view, int64_t n,
                        struct oj_row_column *column)
{
    const uint8_t *has_value = gather->has_value;
    const int64_t first = view->first;
    const int64_t *index = gather->index;
    void *to = (char *)column->values +
               (size_t)column->length * oj_row_column_size(column);
    switch (view->format << 8 | column->format)
    {
        case 's' << 8 | 's':
            GATHER(int16_t, int16_t);
            return 1;
        case 's' << 8 | 'i':
            GATHER(int16_t, int32_t);
            return 1;
        case 'i' << 8 | 's':
            GATHER(int32_t, int16_t);
            return 1;
        case 'i' << 8 | 'i':
            GATHER(int32_t, int32_t);
            return 1;
        case 'l' << 8 | 'l':
            GATHER(int64_t, int64_t);
            return 1;
        case 'f' << 8 | 'f':
            GATHER(float, float);
            return 1;
        case 'f' << 8 | 'g':
            GATHER(float, double);
            return 1;
        case 'g' << 8 | 'f':
            GATHER(double, float);
            return 1;
        case 'g' << 8 | 'g':
            GATHER(double, double);
            return 1;
        case 'i' << 8 | 'b':
            gather_bits(gather, (const int *)view->values + first, n, column);
            return 1;
        default:
            return 0;
    }
}

static oj_status add_numbers(struct oj_row_gather *gather,
                             const struct oj_column_view *view, int64_t n,
                             struct oj_row_column *to, struct oj_error *err)
{
    int all = find_values(gather, view, n);
    OJ_TRY(oj_row_column_reserve(to, n, err));
    if (!copy_numbers(gather, view, n, to))
        return oj_fail(err, OJ_ERR_INTERNAL,
                       "numbers of format %c do not go into a column of "
                       "format %c",
                       view->format, to->format);
    return oj_row_column_added(to, all ? NULL : gather->has_value, n, err);
}

/* ---- texts -------------------------------------------------------------- */

/* What follows a zero byte is lost in OGR's features. */
static int64_t length_of(const char *text, int64_t n, int is_string)
{
    const char *end = is_string ? memchr(text, '\0', (size_t)n) : NULL;
    return end != NULL ? end - text : n;
}

/* Offsets and texts of rows in no order: fetched some rows ahead. */
#define FETCH_AHEAD 16

static oj_status add_texts(struct oj_row_gather *gather,
                           const struct oj_column_view *view, int64_t n,
                           struct oj_row_column *to, int64_t *n_added,
                           struct oj_error *err)
{
    const struct oj_texts texts = {gather->text, gather->n_bytes};
    const int64_t *index = gather->index;
    int is_large = view->format == 'U' || view->format == 'Z';
    int is_string = view->format == 'u' || view->format == 'U';
    for (int64_t i = 0; i < n; i++)
    {
        if (index[i] >= 0)
            __builtin_prefetch((const char *)view->values +
                               (view->first + index[i]) * (is_large ? 8 : 4));
    }
    find_values(gather, view, n);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t ahead = i + FETCH_AHEAD, n_bytes;
        if (ahead < n && index[ahead] >= 0)
            __builtin_prefetch(oj_column_bytes(view, index[ahead], &n_bytes));
        gather->text[i] = NULL;
        if (!gather->has_value[i])
            continue;
        gather->text[i] = oj_column_bytes(view, index[i], &n_bytes);
        gather->n_bytes[i] = length_of(gather->text[i], n_bytes, is_string);
    }
    return oj_row_column_add_texts(to, &texts, n, n_added, err);
}

/* ---- value by value ----------------------------------------------------- */

/* What has no array of its own: values of features, dates, lists, aggregates,
 * and all that is converted. */
static oj_status add_each(struct oj_row_gather *gather, int source,
                          const struct oj_row_place *places, int64_t n,
                          struct oj_row_column *to, int64_t *n_added,
                          struct oj_error *err)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(gather->cursor);
    OGRFieldType type = OGR_Fld_GetType(
        OGR_FD_GetFieldDefn(gather->defn, sources->columns[source].target));
    int is_plain = oj_row_cursor_is_plain(gather->cursor, source);
    *n_added = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_value value;
        int fits;
        OJ_TRY(oj_row_cursor_value(gather->cursor, source, &places[i], &value,
                                   err));
        if (!is_plain)
            OJ_TRY(oj_row_cursor_convert(gather->cursor, source,
                                         gather->feature, &value, err));
        OJ_TRY(oj_row_column_add(to, &value, type, &fits, err));
        if (!fits)
            break;
        *n_added = i + 1;
    }
    return OJ_OK;
}

static oj_status add_nulls(int64_t n, struct oj_row_column *to,
                           struct oj_error *err)
{
    struct oj_value value;
    int fits;
    oj_value_set_null(&value);
    for (int64_t i = 0; i < n; i++)
        OJ_TRY(oj_row_column_add(to, &value, OFTInteger, &fits, err));
    return OJ_OK;
}

/* ---- columns ------------------------------------------------------------ */

static void index_rows(struct oj_row_gather *gather,
                       const struct oj_row_place *places, int64_t n,
                       int64_t first)
{
    for (int64_t i = 0; i < n; i++)
        gather->index[i] = first + places[i].row;
}

/* NaN: no value. */
static void index_values(struct oj_row_gather *gather,
                         const struct oj_row_place *places, int64_t n,
                         const double *value)
{
    for (int64_t i = 0; i < n; i++)
    {
        int64_t entry = places[i].entry;
        int has = value != NULL && entry >= 0 && !isnan(value[entry]);
        gather->index[i] = has ? entry : -1;
    }
}

/* Numbers that lie in the places. */
static void number_places(struct oj_row_gather *gather,
                          enum oj_column_origin origin,
                          const struct oj_row_place *places, int64_t n,
                          int64_t *number)
{
    int is_count = origin == OJ_COLUMN_COUNT;
    for (int64_t i = 0; i < n; i++)
    {
        number[i] = is_count                   ? places[i].n_pairs
                    : origin == OJ_COLUMN_RANK ? places[i].rank
                                               : places[i].join_row;
        gather->index[i] = is_count || places[i].join_row >= 0 ? i : -1;
    }
}

/* The column in memory that has the values, and in index where in it those of
 * the rows are. Its format is 0 where there is none: values of features,
 * aggregates.  number [n] is room for numbers. */
static struct oj_column_view find_column(struct oj_row_gather *gather,
                                         const struct oj_column *column,
                                         const struct oj_row_place *places,
                                         int64_t n, int64_t *number)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(gather->cursor);
    const struct oj_arrow_slice *slice = &sources->batch->attributes->slice;
    int of_batch = column->origin == OJ_COLUMN_INPUT || sources->is_join_rows;
    struct oj_column_view view = {0};
    for (int64_t i = 0; i < n; i++)
        gather->index[i] = column->origin == OJ_COLUMN_MEASURE
                               ? places[i].entry
                               : places[i].join_row;
    switch (column->origin)
    {
        case OJ_COLUMN_INPUT:
        case OJ_COLUMN_JOIN:
            if (!of_batch)
                return oj_table_view(sources->options->join_table,
                                     column->source);
            if (slice->chunk == NULL)
                return view;
            index_rows(gather, places, n, slice->first);
            return slice->column[OJ_ARROW_FIELDS + column->source];
        case OJ_COLUMN_JOIN_FID:
            view.values = of_batch ? sources->batch->flat.fid
                                   : sources->options->join_side->fid;
            if (of_batch)
                index_rows(gather, places, n, 0);
            break;
        case OJ_COLUMN_RANK:
        case OJ_COLUMN_COUNT:
            break;
        case OJ_COLUMN_MEASURE:
            view.format = 'g';
            view.values = sources->entries->measure;
            return view;
        case OJ_COLUMN_PAIR_VALUE:
            view.format = 'g';
            if (sources->values != NULL)
                view.values = sources->values->value[column->source];
            index_values(gather, places, n, view.values);
            return view;
        default:
            return view;
    }
    view.format = 'l';
    if (view.values == NULL)
    {
        number_places(gather, column->origin, places, n, number);
        view.values = number;
    }
    return view;
}

oj_status oj_row_gather_field(struct oj_row_gather *gather, int source,
                              const struct oj_row_place *places, int64_t n,
                              struct oj_row_column *to, int64_t *n_added,
                              struct oj_error *err)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(gather->cursor);
    const struct oj_column *column =
        source < 0 ? NULL : &sources->columns[source];
    struct oj_column_view view = {0};
    int64_t number[OJ_ROW_BLOCK];
    *n_added = n;
    if (column == NULL ||
        (sources->is_join_rows && column->origin != OJ_COLUMN_JOIN &&
         column->origin != OJ_COLUMN_JOIN_FID))
        return add_nulls(n, to, err);
    if (oj_row_cursor_is_plain(gather->cursor, source))
        view = find_column(gather, column, places, n, number);
    if (view.format == 0 || view.format == 'F' || to->format == 'w')
        return add_each(gather, source, places, n, to, n_added, err);
    if (strchr("uUzZ", view.format) != NULL)
        return add_texts(gather, &view, n, to, n_added, err);
    return add_numbers(gather, &view, n, to, err);
}

oj_status oj_row_gather_fids(const struct oj_row_place *places, int64_t n,
                             struct oj_row_column *to, struct oj_error *err)
{
    int64_t *values;
    OJ_TRY(oj_row_column_reserve(to, n, err));
    values = (int64_t *)to->values + to->length;
    for (int64_t i = 0; i < n; i++)
        values[i] = places[i].fid;
    return oj_row_column_added(to, NULL, n, err);
}

/* ---- geometries --------------------------------------------------------- */

static oj_status add_null(struct oj_row_column *to, int *fits,
                          struct oj_error *err)
{
    struct oj_value value;
    oj_value_set_null(&value);
    return oj_row_column_add(to, &value, OFTBinary, fits, err);
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
    OJ_TRY(oj_row_column_add_room(to, size, &at, err));
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
            OJ_TRY(oj_row_column_add_room(to, (int64_t)n, &at, err));
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

static oj_status add_row(struct oj_row_column *to,
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
    OJ_TRY(oj_row_column_add_room(to, n, &at, err));
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
        OJ_TRY(add_row(to, cursor, &places[i], &fits, err));
        if (!fits)
            break;
        *n_added = i + 1;
    }
    return OJ_OK;
}
