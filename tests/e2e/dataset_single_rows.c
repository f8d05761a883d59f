#include "layer_rows.h"

#include <cpl_conv.h>

#include <stdlib.h>

enum
{
    SAMPLES = 40 /* rows that are asked for one by one */
};

static int order_of_fids(const void *a, const void *b)
{
    GIntBig x = *(const GIntBig *)a, y = *(const GIntBig *)b;
    return (x > y) - (x < y);
}

static GIntBig *sorted_fids(const struct layer_rows *all)
{
    GIntBig *fids = CPLMalloc(((size_t)all->n + 1) * sizeof *fids);
    for (int i = 0; i < all->n; i++)
        fids[i] = OGR_F_GetFID(all->at[i]);
    qsort(fids, (size_t)all->n, sizeof *fids, order_of_fids);
    return fids;
}

static void expect_row(OGRLayerH layer, OGRFeatureH row, const char *what)
{
    OGRFeatureH feature = OGR_L_GetFeature(layer, OGR_F_GetFID(row));
    expect(feature != NULL && OGR_F_Equal(feature, row), "%s: FID %d", what,
           (int)OGR_F_GetFID(row));
    OGR_F_Destroy(feature);
}

static void check_random_read(OGRLayerH layer, const struct layer_rows *all)
{
    GIntBig *fids = sorted_fids(all);
    OGRFeatureH feature;
    check_begin("random read");
    for (int i = 1; i < all->n; i++)
        expect(fids[i] != fids[i - 1], "FID %d twice", (int)fids[i]);
    for (int i = 0; i < SAMPLES && i < all->n; i++)
        expect_row(layer, all->at[any_number() % (uint32_t)all->n],
                   "is not the row that was read");
    if (all->n > 0)
    {
        /* It knows no filters, and comes between rows that are read. */
        OGR_L_SetSpatialFilterRect(layer, 9e7, 9e7, 9.1e7, 9.1e7);
        expect_row(layer, all->at[all->n / 2], "under a spatial filter");
        OGR_L_SetSpatialFilter(layer, NULL);
        OGR_L_SetAttributeFilter(layer, "FID < 0");
        expect_row(layer, all->at[all->n / 2], "under an attribute filter");
        OGR_L_SetAttributeFilter(layer, NULL);
        OGR_L_ResetReading(layer);
        OGR_F_Destroy(OGR_L_GetNextFeature(layer));
        expect_row(layer, all->at[all->n - 1], "while reading");
        OGR_L_ResetReading(layer);
        feature = OGR_L_GetNextFeature(layer);
        expect(feature != NULL && OGR_F_Equal(feature, all->at[0]),
               "not the first row after a random read and a reset");
        OGR_F_Destroy(feature);
    }
    expect_errors();
    expect(OGR_L_GetFeature(layer, -10) == NULL, "there is a FID -10");
    expect(OGR_L_GetFeature(layer, OGRNullFID) == NULL, "there is a null FID");
    if (all->n == 0 || fids[all->n - 1] < 2000000000)
        expect(OGR_L_GetFeature(layer, 2000000000) == NULL, "there is any FID");
    expect(OGR_L_GetFeature(layer, INT64_MAX) == NULL, "there is any FID");
    expect_none();
    CPLFree(fids);
}

static void expect_from(OGRLayerH layer, const struct layer_rows *all,
                        GIntBig index, const char *what)
{
    OGRErr error = OGR_L_SetNextByIndex(layer, index);
    expect(error == OGRERR_NONE, "%s: %d is refused", what, (int)index);
    for (GIntBig i = index; i < index + 3; i++)
    {
        OGRFeatureH feature = OGR_L_GetNextFeature(layer);
        if (i >= all->n)
            expect(feature == NULL, "%s: a row after the last", what);
        else
            expect(feature != NULL &&
                       hash_row(feature, ALL_FIELDS) == all->hash[i],
                   "%s: not row %d after index %d", what, (int)i, (int)index);
        OGR_F_Destroy(feature);
    }
}

static void expect_no_index(OGRLayerH layer, GIntBig index)
{
    OGRErr error;
    OGRFeatureH feature;
    expect_errors();
    OGR_L_ResetReading(layer);
    error = OGR_L_SetNextByIndex(layer, index);
    feature = error == OGRERR_NONE ? OGR_L_GetNextFeature(layer) : NULL;
    expect_none();
    expect(feature == NULL, "there is a row at index %d", (int)index);
    if (index < 0)
        expect(error != OGRERR_NONE, "index %d is taken", (int)index);
    OGR_F_Destroy(feature);
}

static void check_indexes(OGRLayerH layer, const struct layer_rows *all)
{
    struct layer_rows kept;
    check_begin("next by index");
    for (int i = 0; i < 10 && all->n > 0; i++)
        expect_from(layer, all, any_number() % (uint32_t)all->n, "unfiltered");
    if (all->n > 0)
    {
        expect_from(layer, all, 0, "unfiltered");
        expect_from(layer, all, all->n - 1, "unfiltered");
    }
    expect_no_index(layer, -1);
    expect_no_index(layer, -10);
    expect_no_index(layer, all->n);
    expect_no_index(layer, (GIntBig)all->n + 10000);
    expect_no_index(layer, INT64_MAX);
    /* An index counts the rows that pass the filters. */
    OGR_L_SetAttributeFilter(layer, "FID >= 3 AND FID <= 30");
    kept = read_rows(layer);
    for (int i = 0; i < kept.n; i += 5)
        expect_from(layer, &kept, i, "filtered");
    expect_no_index(layer, kept.n);
    OGR_L_SetAttributeFilter(layer, NULL);
    free_rows(&kept);
    OGR_L_ResetReading(layer);
}

void check_single_rows(OGRLayerH layer, const struct layer_rows *all)
{
    check_random_read(layer, all);
    check_indexes(layer, all);
}
