/* Whether a layer keeps what GDAL's clients rely on in a layer that is only
 * read: counts, filters, random access, ignored fields, SQL, CRS, references,
 * threads with their own handles. The tests run it on joins, and on the plain
 * layers that they are made of, which shows that it asks for nothing odd.
 *
 *   dataset_conformance [-threads N] [-loops N] [-writable] NAME...
 *
 * Prints what is wrong; ends with 0 when nothing is, else with 1. */
#include "layer_rows.h"

#include <ogr_srs_api.h>

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
#include <ogr_recordbatch.h>
#endif

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what the layer says of itself --------------------------------------- */

static OGRwkbGeometryType part_type(OGRwkbGeometryType type)
{
    OGRwkbGeometryType flat = OGR_GT_Flatten(type);
    return OGR_GT_IsSubClassOf(flat, wkbGeometryCollection)
               ? flat
               : OGR_GT_GetCollection(flat);
}

static void check_definition(GDALDatasetH dataset, OGRLayerH layer,
                             const struct layer_rows *all)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    OGRSpatialReferenceH srs = OGR_L_GetSpatialRef(layer);
    OGRwkbGeometryType type = OGR_L_GetGeomType(layer);
    check_begin("definition");
    expect(defn == OGR_L_GetLayerDefn(layer), "another one each time");
    expect(strcmp(OGR_L_GetName(layer), OGR_FD_GetName(defn)) == 0,
           "two names: %s and %s", OGR_L_GetName(layer), OGR_FD_GetName(defn));
    expect(OGR_L_GetName(layer)[0] != '\0', "no name");
    expect(GDALDatasetGetLayerByName(dataset, OGR_L_GetName(layer)) == layer,
           "is not found by its name");
    expect(type == OGR_FD_GetGeomType(defn), "two geometry types");
    if (OGR_FD_GetGeomFieldCount(defn) > 0)
    {
        OGRGeomFieldDefnH field = OGR_FD_GetGeomFieldDefn(defn, 0);
        expect(OGR_GFld_GetSpatialRef(field) == srs, "two CRS");
        expect(strcmp(OGR_L_GetGeometryColumn(layer),
                      OGR_GFld_GetNameRef(field)) == 0,
               "two names of the geometry");
    }
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        const char *name = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, i));
        expect(name[0] != '\0', "field %d has no name", i);
        expect(OGR_FD_GetFieldIndex(defn, name) == i,
               "two fields are called %s", name);
    }
    for (int i = 0; i < all->n; i++)
    {
        OGRGeometryH shape = OGR_F_GetGeometryRef(all->at[i]);
        expect(OGR_F_GetDefnRef(all->at[i]) == defn,
               "row %d has another definition", i);
        if (shape == NULL)
            continue;
        expect(OGR_G_GetSpatialReference(shape) == srs,
               "the geometry of row %d has another CRS", i);
        /* A Shapefile's polygons may have several parts. */
        expect(OGR_GT_Flatten(type) == wkbUnknown ||
                   part_type(OGR_G_GetGeometryType(shape)) == part_type(type),
               "the geometry of row %d is %s, of the layer %s", i,
               OGRGeometryTypeToName(OGR_G_GetGeometryType(shape)),
               OGRGeometryTypeToName(type));
        expect(type == wkbUnknown || OGR_GT_HasZ(type) || !OGR_G_Is3D(shape),
               "row %d has Z, the layer not", i);
    }
}

static void check_references(const char *name)
{
    GDALDatasetH dataset = GDALOpenEx(name, GDAL_OF_VECTOR, NULL, NULL, NULL);
    OGRLayerH layer = GDALDatasetGetLayer(dataset, 0);
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    OGRFeatureH feature, kept;
    int before, n_rows = 0;
    check_begin("references");
    while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
        OGR_F_Destroy(feature);
    OGR_L_ResetReading(layer);
    before = OGR_FD_GetReferenceCount(defn); /* with what the layer needs */
    expect(before >= 1, "of the definition: %d", before);
    kept = OGR_L_GetNextFeature(layer);
    while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        OGR_F_Destroy(feature);
        n_rows++;
    }
    expect(OGR_FD_GetReferenceCount(defn) == before + (kept != NULL),
           "of the definition: %d, before %d rows were read %d",
           OGR_FD_GetReferenceCount(defn), n_rows, before);
    OGR_FD_Reference(defn);
    GDALClose(dataset);
    /* A definition and a row outlive the dataset, if someone holds them. */
    if (kept != NULL)
    {
        char *wkt = NULL;
        expect(OGR_F_GetDefnRef(kept) == defn, "of a row that is kept");
        if (OGR_F_GetGeometryRef(kept) != NULL)
            OGR_G_ExportToWkt(OGR_F_GetGeometryRef(kept), &wkt);
        CPLFree(wkt);
        OGR_F_Destroy(kept);
    }
    expect(OGR_FD_GetReferenceCount(defn) == 1,
           "of the definition, at the end: %d", OGR_FD_GetReferenceCount(defn));
    OGR_FD_Release(defn);
}

/* What the layer can, its dataset and its driver say too. */
static void check_kinds(GDALDatasetH dataset, OGRLayerH layer)
{
    static const char *const kinds[] = {"Curve", "Measured", "Z"};
    static const char *const items[] = {"DCAP_CURVE_GEOMETRIES",
                                        "DCAP_MEASURED_GEOMETRIES",
                                        "DCAP_Z_GEOMETRIES"};
    check_begin("capabilities");
    for (int i = 0; i < 3; i++)
    {
        char name[40];
        snprintf(name, sizeof name, "%sGeometries", kinds[i]);
        if (!OGR_L_TestCapability(layer, name))
            continue;
        expect(GDALDatasetTestCapability(dataset, name),
               "%s of the layer alone", name);
        expect(GDALGetMetadataItem(GDALGetDatasetDriver(dataset), items[i],
                                   NULL) != NULL,
               "%s, and the driver does not say so", name);
    }
}

static void check_dataset(GDALDatasetH dataset, const char *name)
{
    check_begin("dataset");
    expect(strcmp(GDALGetDescription(dataset), name) == 0, "is called %s",
           GDALGetDescription(dataset));
    expect_errors();
    expect(GDALDatasetGetLayer(dataset, -1) == NULL, "has a layer -1");
    expect(GDALDatasetGetLayer(dataset, GDALDatasetGetLayerCount(dataset)) ==
               NULL,
           "has a layer more than it says");
    expect(GDALDatasetGetLayerByName(dataset, "no such layer") == NULL,
           "has a layer of any name");
    expect_none();
}

/* --- reading in order ------------------------------------------------------
 */

static void check_sequence(OGRLayerH layer, const struct layer_rows *all)
{
    struct layer_rows again = read_rows(layer);
    OGRFeatureH feature;
    check_begin("reading");
    expect_same_rows(&again, all, "a second time");
    for (int i = 0; i < 3; i++)
        expect(OGR_L_GetNextFeature(layer) == NULL, "a row after the last");
    free_rows(&again);
    for (int n = 0; n < all->n && n < 100; n = 3 * n + 1)
    {
        OGR_L_ResetReading(layer);
        for (int i = 0; i < n; i++)
            OGR_F_Destroy(OGR_L_GetNextFeature(layer));
        OGR_L_ResetReading(layer);
        OGR_L_ResetReading(layer);
        feature = OGR_L_GetNextFeature(layer);
        expect(feature != NULL && OGR_F_Equal(feature, all->at[0]),
               "after %d rows and a reset not the first row", n);
        OGR_F_Destroy(feature);
    }
    for (int i = 0; i < all->n; i++)
        expect(OGR_F_GetFID(all->at[i]) >= 0, "row %d has no FID", i);
}

static void check_count(GDALDatasetH dataset, OGRLayerH layer,
                        const struct layer_rows *all)
{
    char *keep = CPLMalloc((size_t)all->n + 1);
    check_begin("count");
    memset(keep, 1, (size_t)all->n + 1);
    expect_kept(layer, all, keep, "all");
    CPLFree(keep);
    for (int i = 0; i < 2; i++)
    {
        char *sql = CPLStrdup(
            CPLSPrintf("SELECT COUNT(*) FROM \"%s\"", OGR_L_GetName(layer)));
        OGRLayerH result = GDALDatasetExecuteSQL(dataset, sql, NULL,
                                                 i == 0 ? "OGRSQL" : "SQLITE");
        OGRFeatureH feature =
            result != NULL ? OGR_L_GetNextFeature(result) : NULL;
        expect(feature != NULL && OGR_F_GetFieldAsInteger(feature, 0) == all->n,
               "%s says another number", i == 0 ? "OGRSQL" : "SQLITE");
        OGR_F_Destroy(feature);
        GDALDatasetReleaseResultSet(dataset, result);
        CPLFree(sql);
    }
}

/* --- the rest ----------------------------------------------------------------
 */

/* GeoPackage keeps 15 digits of its extent. */
static int is_near(double a, double b)
{
    return fabs(a - b) <= 1e-14 * (fabs(a) + fabs(b));
}

static void check_extent(OGRLayerH layer, const struct layer_rows *all)
{
    OGREnvelope extent = {1, -1, 1, -1}, fast, expected = {0, 0, 0, 0};
    int n = 0;
    OGRErr error;
    check_begin("extent");
    for (int i = 0; i < all->n; i++)
    {
        OGRGeometryH shape = OGR_F_GetGeometryRef(all->at[i]);
        OGREnvelope box;
        if (shape == NULL || OGR_G_IsEmpty(shape))
            continue;
        OGR_G_GetEnvelope(shape, &box);
        if (n++ == 0)
            expected = box;
        expected.MinX = box.MinX < expected.MinX ? box.MinX : expected.MinX;
        expected.MinY = box.MinY < expected.MinY ? box.MinY : expected.MinY;
        expected.MaxX = box.MaxX > expected.MaxX ? box.MaxX : expected.MaxX;
        expected.MaxY = box.MaxY > expected.MaxY ? box.MaxY : expected.MaxY;
    }
    expect_errors();
    error = OGR_L_GetExtent(layer, &extent, 1);
    expect_none();
    if (n == 0)
    {
        expect(error != OGRERR_NONE || extent.MinX > extent.MaxX ||
                   (extent.MinX == 0 && extent.MaxX == 0),
               "there is one without any geometry");
        return;
    }
    expect(error == OGRERR_NONE, "there is none");
    expect(is_near(extent.MinX, expected.MinX) &&
               is_near(extent.MinY, expected.MinY) &&
               is_near(extent.MaxX, expected.MaxX) &&
               is_near(extent.MaxY, expected.MaxY),
           "is %.17g %.17g %.17g %.17g in place of %.17g %.17g %.17g %.17g",
           extent.MinX, extent.MinY, extent.MaxX, extent.MaxY, expected.MinX,
           expected.MinY, expected.MaxX, expected.MaxY);
    expect_errors();
    expect(OGR_L_GetExtentEx(layer, -1, &fast, 1) != OGRERR_NONE &&
               OGR_L_GetExtentEx(layer, 7, &fast, 1) != OGRERR_NONE,
           "there is one of a geometry field that is not there");
    expect_none();
    if (OGR_L_TestCapability(layer, OLCFastGetExtent))
        expect(OGR_L_GetExtent(layer, &fast, 0) == OGRERR_NONE &&
                   fast.MinX == extent.MinX && fast.MaxY == extent.MaxY,
               "the one that is said to be fast differs");
}

static void check_texts(OGRLayerH layer, const struct layer_rows *all)
{
    check_begin("texts");
    if (!OGR_L_TestCapability(layer, OLCStringsAsUTF8))
        return;
    for (int i = 0; i < all->n; i++)
        for (int k = 0; k < OGR_F_GetFieldCount(all->at[i]); k++)
        {
            const char *text = OGR_F_GetFieldAsString(all->at[i], k);
            expect(CPLIsUTF8(text, -1), "field %d of row %d is not UTF-8", k,
                   i);
        }
}

/* Says of everything that writes that it cannot, and does not. */
static void check_read_only(GDALDatasetH dataset, OGRLayerH layer,
                            const struct layer_rows *all)
{
    static const char *const writes[] = {
        OLCSequentialWrite, OLCRandomWrite,   OLCCreateField,
        OLCDeleteField,     OLCReorderFields, OLCAlterFieldDefn,
        OLCDeleteFeature,   OLCTransactions,  OLCCreateGeomField};
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    OGRFieldDefnH field = OGR_Fld_Create("more", OFTInteger);
    check_begin("read-only");
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
        expect(!OGR_L_TestCapability(layer, writes[i]), "claims %s", writes[i]);
    expect(!OGR_L_TestCapability(layer, "NoSuchCapability"),
           "claims what is not");
    expect(!GDALDatasetTestCapability(dataset, ODsCCreateLayer) &&
               !GDALDatasetTestCapability(dataset, ODsCDeleteLayer) &&
               !GDALDatasetTestCapability(dataset, ODsCTransactions),
           "the dataset claims to write");
    expect_errors();
    expect(OGR_L_CreateFeature(layer, feature) != OGRERR_NONE, "adds a row");
    expect(OGR_L_CreateField(layer, field, 1) != OGRERR_NONE, "adds a field");
    expect(OGR_L_DeleteField(layer, 0) != OGRERR_NONE, "deletes a field");
    if (all->n > 0)
    {
        expect(OGR_L_SetFeature(layer, all->at[0]) != OGRERR_NONE,
               "changes a row");
        expect(OGR_L_DeleteFeature(layer, OGR_F_GetFID(all->at[0])) !=
                   OGRERR_NONE,
               "deletes a row");
    }
    expect(GDALDatasetCreateLayer(dataset, "more", NULL, wkbPoint, NULL) ==
               NULL,
           "adds a layer");
    expect(GDALDatasetDeleteLayer(dataset, 0) != OGRERR_NONE,
           "deletes the layer");
    expect(GDALDatasetStartTransaction(dataset, 0) != OGRERR_NONE,
           "starts a transaction");
    expect_none();
    OGR_F_Destroy(feature);
    OGR_Fld_Destroy(field);
}

/* Asked to write it is not there, and nothing is said about that. */
static void check_update(const char *name)
{
    check_begin("update");
    CPLErrorReset();
    expect(GDALOpenEx(name, GDAL_OF_VECTOR | GDAL_OF_UPDATE, NULL, NULL,
                      NULL) == NULL,
           "opens for writing");
    expect(CPLGetLastErrorType() == CE_None, "says: %s", CPLGetLastErrorMsg());
}

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
/* Batches have as many rows as there are, and can be left half-way. */
static void check_arrow(OGRLayerH layer, const struct layer_rows *all)
{
    check_begin("arrow");
    for (int turn = 0; turn < 3; turn++)
    {
        struct ArrowArrayStream stream = {0};
        struct ArrowArray batch = {0};
        struct ArrowSchema schema = {0};
        char *options[] = {(char *)"MAX_FEATURES_IN_BATCH=7", NULL};
        int64_t n = 0;
        expect(OGR_L_GetArrowStream(layer, &stream, turn ? options : NULL),
               "there is no stream");
        if (stream.release == NULL)
            return;
        expect(stream.get_schema(&stream, &schema) == 0, "no schema");
        if (schema.release != NULL)
            schema.release(&schema);
        while (stream.get_next(&stream, &batch) == 0 && batch.release != NULL)
        {
            n += batch.length;
            expect(turn == 0 || batch.length <= 7, "a batch of %d rows",
                   (int)batch.length);
            batch.release(&batch);
            batch.release = NULL;
            if (turn == 2)
                break;
        }
        stream.release(&stream);
        expect(turn == 2 || n == all->n, "%d rows in place of %d", (int)n,
               all->n);
    }
    {
        struct layer_rows again = read_rows(layer);
        expect_same_rows(&again, all, "rows after streams");
        free_rows(&again);
    }
}
#endif

/* --- threads
 * ------------------------------------------------------------------ */

struct reading_thread
{
    const char *name;
    const struct layer_rows *all;
    int n_loops, n_wrong;
    pthread_t thread;
};

static void *read_loops(void *user)
{
    struct reading_thread *reader = user;
    for (int loop = 0; loop < reader->n_loops; loop++)
    {
        GDALDatasetH dataset =
            GDALOpenEx(reader->name, GDAL_OF_VECTOR | GDAL_OF_VERBOSE_ERROR,
                       NULL, NULL, NULL);
        OGRLayerH layer =
            dataset != NULL ? GDALDatasetGetLayer(dataset, 0) : NULL;
        OGRFeatureH feature;
        int n = 0;
        reader->n_wrong += layer == NULL;
        while (layer != NULL && (feature = OGR_L_GetNextFeature(layer)) != NULL)
        {
            reader->n_wrong +=
                n >= reader->all->n ||
                reader->all->hash[n] != hash_row(feature, ALL_FIELDS);
            OGR_F_Destroy(feature);
            n++;
            if (loop % 3 == 1 && n == reader->all->n / 2)
                break; /* closed while it streams */
        }
        reader->n_wrong += loop % 3 != 1 && n != reader->all->n;
        if (dataset != NULL)
            GDALClose(dataset);
    }
    return NULL;
}

static void check_threads(const char *name, const struct layer_rows *all,
                          int n_threads, int n_loops)
{
    struct reading_thread *readers =
        CPLCalloc((size_t)n_threads + 1, sizeof *readers);
    check_begin("threads");
    for (int i = 0; i < n_threads; i++)
    {
        readers[i] = (struct reading_thread){
            .name = name, .all = all, .n_loops = n_loops};
        if (pthread_create(&readers[i].thread, NULL, read_loops, &readers[i]))
            abort();
    }
    for (int i = 0; i < n_threads; i++)
    {
        pthread_join(readers[i].thread, NULL);
        expect(readers[i].n_wrong == 0, "thread %d: %d rows differ", i,
               readers[i].n_wrong);
    }
    CPLFree(readers);
}

/* --- all of it
 * ------------------------------------------------------------------ */

static void check_all(const char *name, int is_writable, int n_threads,
                      int n_loops)
{
    GDALDatasetH dataset = GDALOpenEx(
        name, GDAL_OF_VECTOR | GDAL_OF_VERBOSE_ERROR, NULL, NULL, NULL);
    OGRLayerH layer;
    struct layer_rows all, again;
    check_begin("open");
    expect(dataset != NULL, "%s", name);
    if (dataset == NULL)
        return;
    expect(GDALDatasetGetLayerCount(dataset) >= 1, "no layer");
    layer = GDALDatasetGetLayer(dataset, 0);
    all = read_rows(layer);
    printf("%s: %d rows\n", name, all.n);
    check_dataset(dataset, name);
    if (!is_writable)
        check_kinds(dataset, layer);
    check_definition(dataset, layer, &all);
    check_sequence(layer, &all);
    check_count(dataset, layer, &all);
    check_single_rows(layer, &all);
    check_filters(dataset, layer, &all);
    check_extent(layer, &all);
    check_texts(layer, &all);
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
    check_arrow(layer, &all);
#endif
    if (!is_writable)
        check_read_only(dataset, layer, &all);
    check_begin("at the end");
    again = read_rows(layer);
    expect_same_rows(&again, &all, "after all that");
    free_rows(&again);
    check_references(name);
    if (!is_writable)
        check_update(name);
    check_threads(name, &all, n_threads, n_loops);
    free_rows(&all);
    GDALClose(dataset);
}

int main(int argc, char **argv)
{
    int is_writable = 0, n_threads = 4, n_loops = 3, n_checks, n_failed;
    GDALAllRegister();
    take_messages();
    for (int i = 1; i < argc; i++)
    {
        if (strcmp(argv[i], "-threads") == 0 && i + 1 < argc)
            n_threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "-loops") == 0 && i + 1 < argc)
            n_loops = atoi(argv[++i]);
        else if (strcmp(argv[i], "-writable") == 0)
            is_writable = 1;
        else
            check_all(argv[i], is_writable, n_threads, n_loops);
    }
    n_failed = checks_failed(&n_checks);
    printf("%d checks, %d failed\n", n_checks, n_failed);
    GDALDestroyDriverManager();
    return n_failed > 0 || n_checks == 0;
}
