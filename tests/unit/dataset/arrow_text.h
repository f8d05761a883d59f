/** Arrow streams as text, one line per row, for comparison. */
#ifndef OJ_TEST_ARROW_TEXT_H
#define OJ_TEST_ARROW_TEXT_H

#include "../assertions.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal.h>
#include <ogr_api.h>
#include <ogr_recordbatch.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that grows. */
struct arrow_text
{
    char *at;
    size_t n, capacity;
};

static inline void put_text(struct arrow_text *text, const char *format, ...)
{
    va_list list;
    int n;
    va_start(list, format);
    n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (text->n + (size_t)n + 1 > text->capacity)
    {
        text->capacity = 2 * (text->n + (size_t)n + 1);
        text->at = realloc(text->at, text->capacity);
        ck_assert_ptr_nonnull(text->at);
    }
    va_start(list, format);
    vsnprintf(text->at + text->n, (size_t)n + 1, format, list);
    va_end(list);
    text->n += (size_t)n;
}

static inline void write_bytes_text(struct arrow_text *text, const void *bytes,
                                    int64_t n)
{
    put_text(text, "%lld:", (long long)n);
    for (int64_t i = 0; i < n; i++)
        put_text(text, "%02x", ((const uint8_t *)bytes)[i]);
}

static inline void write_double_text(struct arrow_text *text, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_text(text, "%016" PRIx64, bits);
}

/* ---- schemas ------------------------------------------------------------ */

static inline void write_schema_text(struct arrow_text *text,
                                     const struct ArrowSchema *s)
{
    put_text(text, "(%s %s %lld", s->name != NULL ? s->name : "-", s->format,
             (long long)s->flags);
    if (s->metadata != NULL)
    {
        const char *at = s->metadata;
        int32_t n_pairs, size;
        memcpy(&n_pairs, at, 4);
        at += 4;
        for (int i = 0; i < 2 * n_pairs; i++)
        {
            memcpy(&size, at, 4);
            put_text(text, " %.*s", size, at + 4);
            at += 4 + size;
        }
    }
    for (int64_t i = 0; i < s->n_children; i++)
        write_schema_text(text, s->children[i]);
    ck_assert_ptr_null(s->dictionary);
    put_text(text, ")\n");
}

/* ---- arrays ------------------------------------------------------------- */

static inline int array_bit(const void *bits, int64_t i)
{
    return ((const uint8_t *)bits)[i >> 3] >> (i & 7) & 1;
}

static inline void write_value_text(struct arrow_text *text,
                                    const struct ArrowSchema *s,
                                    const struct ArrowArray *a, int64_t row)
{
    const char *f = s->format;
    const void *values = a->buffers[1];
    const int32_t *offset = values;
    int64_t i = row + a->offset;
    if (a->buffers[0] != NULL && !array_bit(a->buffers[0], i))
        put_text(text, "-");
    else if (strcmp(f, "b") == 0)
        put_text(text, "%d", array_bit(values, i));
    else if (strcmp(f, "s") == 0)
        put_text(text, "%d", ((const int16_t *)values)[i]);
    else if (strcmp(f, "i") == 0 || strcmp(f, "tdD") == 0 ||
             strcmp(f, "ttm") == 0)
        put_text(text, "%d", ((const int32_t *)values)[i]);
    else if (strcmp(f, "l") == 0 || strncmp(f, "tsm:", 4) == 0)
        put_text(text, "%lld", (long long)((const int64_t *)values)[i]);
    else if (strcmp(f, "f") == 0)
        write_double_text(text, (double)((const float *)values)[i]);
    else if (strcmp(f, "g") == 0)
        write_double_text(text, ((const double *)values)[i]);
    else if (strcmp(f, "u") == 0 || strcmp(f, "z") == 0)
        write_bytes_text(text, (const char *)a->buffers[2] + offset[i],
                         offset[i + 1] - offset[i]);
    else if (f[0] == 'w')
        write_bytes_text(text, (const char *)values + i * atoi(f + 2),
                         atoi(f + 2));
    else
    {
        ck_assert_str_eq(f, "+l");
        put_text(text, "[");
        for (int32_t k = offset[i]; k < offset[i + 1]; k++)
        {
            write_value_text(text, s->children[0], a->children[0], k);
            put_text(text, ",");
        }
        put_text(text, "]");
    }
}

/* Checks the properties of every array. */
static inline void check_array(const struct ArrowSchema *s,
                               const struct ArrowArray *a, int64_t length)
{
    int64_t n_nulls = 0;
    ck_assert_int_eq(a->length, length);
    ck_assert_int_eq(a->n_children, s->n_children);
    for (int64_t i = 0; a->buffers[0] != NULL && i < length; i++)
        n_nulls += !array_bit(a->buffers[0], a->offset + i);
    ck_assert_int_eq(a->null_count, n_nulls);
    if (s->format[0] == '+' && s->format[1] == 's')
        return;
    ck_assert_ptr_nonnull(a->buffers[1]);
    if ((s->flags & ARROW_FLAG_NULLABLE) == 0)
        ck_assert_int_eq(n_nulls, 0);
    if (strcmp(s->format, "+l") == 0)
        check_array(s->children[0], a->children[0],
                    ((const int32_t *)a->buffers[1])[length]);
}

/* number of batches of the stream that was read last */
static int n_batches_read;

/* Writes the schema and the rows of a stream as text. Unless batch_rows is 0,
 * all batches but the last must have that many rows. Returns the number of
 * rows. */
static inline int64_t write_stream_text(struct arrow_text *text,
                                        struct ArrowArrayStream *stream,
                                        int64_t batch_rows)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    int64_t n_rows = 0, latest = batch_rows;
    ck_assert_int_eq(stream->get_schema(stream, &schema), 0);
    write_schema_text(text, &schema);
    put_text(text, "rows:\n");
    n_batches_read = 0;
    for (;;)
    {
        int code = stream->get_next(stream, &array);
        ck_assert_msg(code == 0, "%d: %s", code,
                      stream->get_last_error(stream));
        if (array.release == NULL)
            break;
        if (batch_rows > 0)
            ck_assert_int_eq(latest, batch_rows);
        latest = array.length;
        n_batches_read++;
        ck_assert_int_gt(latest, 0);
        check_array(&schema, &array, latest);
        for (int64_t c = 0; c < array.n_children; c++)
            check_array(schema.children[c], array.children[c], latest);
        for (int64_t i = 0; i < latest; i++)
        {
            for (int64_t c = 0; c < array.n_children; c++)
            {
                put_text(text, " %s=", schema.children[c]->name);
                write_value_text(text, schema.children[c], array.children[c],
                                 i);
            }
            put_text(text, "\n");
        }
        n_rows += latest;
        array.release(&array);
        ck_assert_ptr_null(array.release);
    }
    schema.release(&schema);
    return n_rows;
}

/* ---- comparison --------------------------------------------------------- */

/* Compares two texts. If they differ, fails with the first line that does. */
static inline void same_text(const char *a, const char *b)
{
    int line = 1;
    const char *start_a = a, *start_b = b;
    if (strcmp(a, b) == 0)
        return;
    while (*a == *b)
    {
        line += *a == '\n';
        if (*a == '\n')
        {
            start_a = a + 1;
            start_b = b + 1;
        }
        a++;
        b++;
    }
    a = a - 60 > start_a ? a - 60 : start_a;
    b = b - 60 > start_b ? b - 60 : start_b;
    ck_abort_msg("line %d differs:\n%.160s\n%.160s", line, a, b);
}

/* ---- schemas of definitions ---------------------------------------------- */

/* Opens GDAL's own Arrow stream of an empty layer in memory. The layer has the
 * fields and the geometry of defn, except those that are ignored. Returns the
 * dataset of the layer. */
static inline GDALDatasetH open_generic(OGRFeatureDefnH defn, char **options,
                                        struct ArrowArrayStream *stream)
{
    GDALDatasetH dataset = GDALCreate(GDALGetDriverByName("Memory"), "", 0, 0,
                                      0, GDT_Unknown, NULL);
    OGRLayerH layer =
        GDALDatasetCreateLayer(dataset, "rows", NULL, wkbNone, NULL);
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        if (!OGR_Fld_IsIgnored(field))
            ck_assert_int_eq(OGR_L_CreateField(layer, field, 0), OGRERR_NONE);
    }
    if (OGR_FD_GetGeomFieldCount(defn) > 0 && !OGR_FD_IsGeometryIgnored(defn))
        ck_assert_int_eq(
            OGR_L_CreateGeomField(layer, OGR_FD_GetGeomFieldDefn(defn, 0), 0),
            OGRERR_NONE);
    ck_assert(OGR_L_GetArrowStream(layer, stream, options));
    return dataset;
}

#endif
