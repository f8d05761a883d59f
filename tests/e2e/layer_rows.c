#include "layer_rows.h"

#include <cpl_conv.h>
#include <cpl_error.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
    MOST_REPORTS = 40
};

static int n_checks, n_failed;
static const char *checked = "";

void expect(int ok, const char *format, ...)
{
    va_list arguments;
    n_checks++;
    if (ok)
        return;
    if (n_failed++ > MOST_REPORTS)
        return;
    printf("WRONG %s: ", checked);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

void check_begin(const char *subject)
{
    checked = subject;
}

int checks_failed(int *count)
{
    *count = n_checks;
    return n_failed;
}

static void CPL_STDCALL take_message(CPLErr kind, CPLErrorNum number,
                                     const char *text)
{
    (void)number;
    if (kind < CE_Failure)
        return;
    expect(0, "reports an error: %s", text);
}

void take_messages(void)
{
    CPLSetErrorHandler(take_message);
}

void expect_errors(void)
{
    CPLPushErrorHandler(CPLQuietErrorHandler);
}

void expect_none(void)
{
    CPLPopErrorHandler();
    CPLErrorReset();
}

uint32_t any_number(void)
{
    static uint64_t state = 88172645463325252U;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

/* --- rows -------------------------------------------------------------- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211U;
    return hash;
}

uint64_t hash_row(OGRFeatureH feature, int without)
{
    GIntBig fid = OGR_F_GetFID(feature);
    uint64_t hash = hash_bytes(14695981039346656037U, &fid, sizeof fid);
    OGRGeometryH shape = OGR_F_GetGeometryRef(feature);
    for (int i = 0; i < OGR_F_GetFieldCount(feature); i++)
    {
        const char *text;
        double number = 0.0;
        if (i == without)
            continue;
        hash = hash_bytes(hash, &i, sizeof i);
        if (!OGR_F_IsFieldSetAndNotNull(feature, i))
            continue;
        text = OGR_F_GetFieldAsString(feature, i);
        hash = hash_bytes(hash, text, strlen(text) + 1);
        if (OGR_Fld_GetType(OGR_F_GetFieldDefnRef(feature, i)) == OFTReal)
            number = OGR_F_GetFieldAsDouble(feature, i);
        hash = hash_bytes(hash, &number, sizeof number);
    }
    if (shape != NULL && without != NO_GEOMETRY)
    {
        int size = OGR_G_WkbSize(shape);
        unsigned char *wkb = CPLMalloc((size_t)size + 1);
        OGR_G_ExportToIsoWkb(shape, wkbNDR, wkb);
        hash = hash_bytes(hash, wkb, (size_t)size);
        CPLFree(wkb);
    }
    return hash;
}

static void add_row(struct layer_rows *rows, OGRFeatureH feature)
{
    if (rows->n == rows->room)
    {
        rows->room = 2 * rows->room + 64;
        rows->at = CPLRealloc(rows->at, (size_t)rows->room * sizeof *rows->at);
        rows->hash =
            CPLRealloc(rows->hash, (size_t)rows->room * sizeof *rows->hash);
    }
    rows->hash[rows->n] = hash_row(feature, ALL_FIELDS);
    rows->at[rows->n++] = feature;
}

struct layer_rows read_rows(OGRLayerH layer)
{
    struct layer_rows rows = {NULL, NULL, 0, 0};
    OGRFeatureH feature;
    OGR_L_ResetReading(layer);
    while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
        add_row(&rows, feature);
    return rows;
}

void free_rows(struct layer_rows *rows)
{
    for (int i = 0; i < rows->n; i++)
        OGR_F_Destroy(rows->at[i]);
    CPLFree(rows->at);
    CPLFree(rows->hash);
}

void expect_same_rows(const struct layer_rows *got,
                      const struct layer_rows *expected, const char *what)
{
    expect(got->n == expected->n, "%s: %d rows in place of %d", what, got->n,
           expected->n);
    for (int i = 0; i < got->n && i < expected->n; i++)
        if (got->hash[i] != expected->hash[i])
        {
            expect(0, "%s: row %d is another one", what, i);
            return;
        }
}

static int order_of_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void expect_kept(OGRLayerH layer, const struct layer_rows *all,
                 const char *keep, const char *what)
{
    uint64_t *expected = CPLMalloc(((size_t)all->n + 1) * sizeof *expected);
    GIntBig before = OGR_L_GetFeatureCount(layer, 1);
    struct layer_rows got = read_rows(layer);
    int n = 0;
    for (int i = 0; i < all->n; i++)
        if (keep[i])
            expected[n++] = all->hash[i];
    expect(got.n == n, "%s: %d rows in place of %d", what, got.n, n);
    if (got.n == n && n > 0)
    {
        qsort(expected, (size_t)n, sizeof *expected, order_of_hashes);
        qsort(got.hash, (size_t)n, sizeof *got.hash, order_of_hashes);
        expect(memcmp(expected, got.hash, (size_t)n * sizeof *expected) == 0,
               "%s: other rows", what);
    }
    expect(before == n, "%s: counts %d rows in place of %d", what, (int)before,
           n);
    expect(OGR_L_GetFeatureCount(layer, 1) == n,
           "%s: counts another number after reading", what);
    if (OGR_L_TestCapability(layer, OLCFastFeatureCount))
        expect(OGR_L_GetFeatureCount(layer, 0) == n,
               "%s: the count that is said to be fast is wrong", what);
    free_rows(&got);
    CPLFree(expected);
}
