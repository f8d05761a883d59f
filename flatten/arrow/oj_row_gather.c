#include "oj_row_gather.h"
#include "../base/oj_array.h"
#include "../read/oj_attributes.h"
#include "../read/oj_table.h"

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

/* A column of numbers somewhere in memory: formats s i l f g. */
struct number_column
{
    const void *values;
    const uint8_t *bits; /* NULL: all rows have a value */
    char format;
};

/* Which of the rows at index have a value; 1: all. */
static int find_values(struct oj_row_gather *gather, const uint8_t *bits,
                       int64_t n)
{
    int64_t n_there = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = gather->index[i];
        gather->has_value[i] =
            at >= 0 && (bits == NULL || (bits[at >> 3] >> (at & 7) & 1) != 0);
        n_there += gather->has_value[i];
    }
    return n_there == n;
}

#define GATHER(FROM, TO)                                                       \
    for (int64_t i = 0; i < n; i++)                                            \
    ((TO *)to)[i] =                                                            \
        has_value[i] ? (TO)((const FROM *)numbers->values)[index[i]] : (TO)0

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
                        const struct number_column *numbers, int64_t n,
                        struct oj_row_column *column)
{
    const uint8_t *has_value = gather->has_value;
    const int64_t *index = gather->index;
    void *to = (char *)column->values +
               (size_t)column->length * oj_row_column_size(column);
    switch (numbers->format << 8 | column->format)
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
            gather_bits(gather, numbers->values, n, column);
            return 1;
        default:
            return 0;
    }
}

static oj_status add_numbers(struct oj_row_gather *gather,
                             const struct number_column *numbers, int64_t n,
                             struct oj_row_column *to, struct oj_error *err)
{
    int all = find_values(gather, numbers->bits, n);
    OJ_TRY(oj_row_column_reserve(to, n, err));
    if (!copy_numbers(gather, numbers, n, to))
        return oj_fail(err, OJ_ERR_INTERNAL,
                       "numbers of format %c do not go into a column of "
                       "format %c",
                       numbers->format, to->format);
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

static oj_status add_table_texts(struct oj_row_gather *gather,
                                 const struct oj_table_view *view, int64_t n,
                                 struct oj_row_column *to, int64_t *n_added,
                                 struct oj_error *err)
{
    const struct oj_texts texts = {gather->text, gather->n_bytes};
    const int64_t *offset = view->values, *index = gather->index;
    for (int64_t i = 0; i < n; i++)
    {
        if (index[i] >= 0)
            __builtin_prefetch(&offset[index[i]]);
    }
    find_values(gather, view->has_value, n);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t ahead = i + FETCH_AHEAD, at = index[i];
        if (ahead < n && index[ahead] >= 0)
            __builtin_prefetch(view->pool + offset[index[ahead]]);
        gather->text[i] = NULL;
        if (!gather->has_value[i])
            continue;
        gather->text[i] = view->pool + offset[at];
        gather->n_bytes[i] =
            length_of(gather->text[i], offset[at + 1] - offset[at] - 1,
                      view->type == OFTString);
    }
    return oj_row_column_add_texts(to, &texts, n, n_added, err);
}

static oj_status add_arrow_texts(struct oj_row_gather *gather,
                                 const struct oj_arrow_view *view, int64_t n,
                                 struct oj_row_column *to, int64_t *n_added,
                                 struct oj_error *err)
{
    const struct oj_texts texts = {gather->text, gather->n_bytes};
    int is_large = view->format == 'U' || view->format == 'Z';
    int is_string = view->format == 'u' || view->format == 'U';
    const int64_t *large = view->values;
    const int32_t *small = view->values;
    find_values(gather, view->bits, n);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = gather->index[i], first, end;
        gather->text[i] = NULL;
        if (!gather->has_value[i])
            continue;
        first = is_large ? large[at] : small[at];
        end = is_large ? large[at + 1] : small[at + 1];
        gather->text[i] = view->bytes + first;
        gather->n_bytes[i] = length_of(gather->text[i], end - first, is_string);
    }
    return oj_row_column_add_texts(to, &texts, n, n_added, err);
}

/* ---- sides -------------------------------------------------------------- */

static char format_of(OGRFieldType type)
{
    return type == OFTInteger ? 'i' : type == OFTInteger64 ? 'l' : 'g';
}

static int is_text(OGRFieldType type)
{
    return type == OFTString || type == OFTBinary;
}

/* A column of 8-byte numbers of ours. */
static oj_status add_own(struct oj_row_gather *gather, const void *values,
                         char format, int64_t n, struct oj_row_column *to,
                         struct oj_error *err)
{
    const struct number_column numbers = {values, NULL, format};
    return add_numbers(gather, &numbers, n, to, err);
}

static void index_rows(struct oj_row_gather *gather,
                       const struct oj_row_place *places, int64_t n,
                       int64_t first)
{
    for (int64_t i = 0; i < n; i++)
        gather->index[i] = first + places[i].row;
}

static void index_join_rows(struct oj_row_gather *gather,
                            const struct oj_row_place *places, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        gather->index[i] = places[i].join_row;
}

static void index_entries(struct oj_row_gather *gather,
                          const struct oj_row_place *places, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        gather->index[i] = places[i].entry;
}

static oj_status add_from_slice(struct oj_row_gather *gather,
                                const struct oj_arrow_slice *slice, int field,
                                const struct oj_row_place *places, int64_t n,
                                struct oj_row_column *to, int64_t *n_added,
                                struct oj_error *err)
{
    const struct oj_arrow_view view = oj_arrow_view(slice, field);
    const struct number_column numbers = {view.values, view.bits, view.format};
    index_rows(gather, places, n, view.first);
    if (strchr("uUzZ", view.format) != NULL && to->format != 'w')
        return add_arrow_texts(gather, &view, n, to, n_added, err);
    *n_added = n;
    return add_numbers(gather, &numbers, n, to, err);
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

static oj_status add_from_batch(struct oj_row_gather *gather, int source,
                                const struct oj_row_place *places, int64_t n,
                                struct oj_row_column *to, int64_t *n_added,
                                struct oj_error *err)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(gather->cursor);
    const struct oj_attributes *attributes = sources->batch->attributes;
    if (attributes->slice.chunk == NULL || to->format == 'w')
        return add_each(gather, source, places, n, to, n_added, err);
    return add_from_slice(gather, &attributes->slice,
                          sources->columns[source].source, places, n, to,
                          n_added, err);
}

static oj_status add_from_table(struct oj_row_gather *gather, int source,
                                const struct oj_row_place *places, int64_t n,
                                struct oj_row_column *to, int64_t *n_added,
                                struct oj_error *err)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(gather->cursor);
    const struct oj_table_view view = oj_table_view(
        sources->options->join_table, sources->columns[source].source);
    const struct number_column numbers = {view.values, view.has_value,
                                          format_of(view.type)};
    if (is_text(view.type) && to->format != 'w')
    {
        index_join_rows(gather, places, n);
        return add_table_texts(gather, &view, n, to, n_added, err);
    }
    if (!oj_type_is_number(view.type)) /* values not all in one array */
        return add_each(gather, source, places, n, to, n_added, err);
    index_join_rows(gather, places, n);
    return add_numbers(gather, &numbers, n, to, err);
}

/* NaN: no value. */
static oj_status add_pair_values(struct oj_row_gather *gather,
                                 const double *value, int64_t n,
                                 struct oj_row_column *to, struct oj_error *err)
{
    for (int64_t i = 0; i < n; i++)
    {
        if (value == NULL ||
            (gather->index[i] >= 0 && isnan(value[gather->index[i]])))
            gather->index[i] = -1;
    }
    return add_own(gather, value, 'g', n, to, err);
}

static oj_status add_join_fids(struct oj_row_gather *gather,
                               const struct oj_row_place *places, int64_t n,
                               struct oj_row_column *to, struct oj_error *err)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(gather->cursor);
    int64_t number[OJ_ROW_BLOCK];
    if (sources->is_join_rows)
    {
        index_rows(gather, places, n, 0);
        return add_own(gather, sources->batch->flat.fid, 'l', n, to, err);
    }
    index_join_rows(gather, places, n);
    if (sources->options->join_side->fid != NULL)
        return add_own(gather, sources->options->join_side->fid, 'l', n, to,
                       err);
    for (int64_t i = 0; i < n; i++)
    {
        number[i] = places[i].join_row;
        gather->index[i] = places[i].join_row < 0 ? -1 : i;
    }
    return add_own(gather, number, 'l', n, to, err);
}

/* rank or n_pairs, which lie in the places. */
static oj_status add_of_places(struct oj_row_gather *gather,
                               enum oj_column_origin origin,
                               const struct oj_row_place *places, int64_t n,
                               struct oj_row_column *to, struct oj_error *err)
{
    int64_t number[OJ_ROW_BLOCK];
    int is_count = origin == OJ_COLUMN_COUNT;
    for (int64_t i = 0; i < n; i++)
    {
        number[i] = is_count ? places[i].n_pairs : places[i].rank;
        gather->index[i] = is_count || places[i].join_row >= 0 ? i : -1;
    }
    return add_own(gather, number, 'l', n, to, err);
}

static oj_status add_of_pairs(struct oj_row_gather *gather, int source,
                              const struct oj_row_place *places, int64_t n,
                              struct oj_row_column *to, int64_t *n_added,
                              struct oj_error *err)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(gather->cursor);
    const struct oj_column *column = &sources->columns[source];
    switch (column->origin)
    {
        case OJ_COLUMN_INPUT:
            return add_from_batch(gather, source, places, n, to, n_added, err);
        case OJ_COLUMN_JOIN:
            return add_from_table(gather, source, places, n, to, n_added, err);
        case OJ_COLUMN_JOIN_FID:
            return add_join_fids(gather, places, n, to, err);
        case OJ_COLUMN_MEASURE:
            index_entries(gather, places, n);
            return add_own(gather, sources->entries->measure, 'g', n, to, err);
        case OJ_COLUMN_RANK:
        case OJ_COLUMN_COUNT:
            return add_of_places(gather, column->origin, places, n, to, err);
        case OJ_COLUMN_PAIR_VALUE:
            index_entries(gather, places, n);
            return add_pair_values(gather,
                                   sources->values != NULL
                                       ? sources->values->value[column->source]
                                       : NULL,
                                   n, to, err);
        default:
            return add_each(gather, source, places, n, to, n_added, err);
    }
}

oj_status oj_row_gather_field(struct oj_row_gather *gather, int source,
                              const struct oj_row_place *places, int64_t n,
                              struct oj_row_column *to, int64_t *n_added,
                              struct oj_error *err)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(gather->cursor);
    enum oj_column_origin origin;
    *n_added = n;
    if (source < 0)
        return add_nulls(n, to, err);
    origin = sources->columns[source].origin;
    if (sources->is_join_rows && origin != OJ_COLUMN_JOIN &&
        origin != OJ_COLUMN_JOIN_FID)
        return add_nulls(n, to, err);
    if (!oj_row_cursor_is_plain(gather->cursor, source))
        return add_each(gather, source, places, n, to, n_added, err);
    if (sources->is_join_rows && origin == OJ_COLUMN_JOIN)
        return add_from_batch(gather, source, places, n, to, n_added, err);
    return add_of_pairs(gather, source, places, n, to, n_added, err);
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
