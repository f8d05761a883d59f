/* A join as a layer, in the process of the test, so that sanitizers check it.
 * Its rows are requested in every way, reading ends anywhere, and files are
 * broken or change. e2e/test_dataset_*.py compare the rows with those of the
 * command; test_command_memory makes allocations fail.
 * Kind: degenerate. */
#include "../../../flatten/read/oj_layer_arrow.h"

#include "../job/join_files.h"

#if OJ_HAVE_ARROW
#include <errno.h>
#include <ogr_recordbatch.h>
#endif

void RegisterOGRJOIN(void); /* defined in the driver, which the test links */

static struct
{
    int n_errors;
    char error[2048];
} reported;

static void CPL_STDCALL take_message(CPLErr level, CPLErrorNum number,
                                     const char *text)
{
    (void)number;
    if (level != CE_Failure)
        return;
    reported.n_errors++;
    snprintf(reported.error, sizeof reported.error, "%s", text);
}

/* Expects one error, in one line, with these words; expects no error if with is
 * NULL. */
static void expect_error(const char *with)
{
    ck_assert_msg(reported.n_errors == (with != NULL), "%d errors: %s",
                  reported.n_errors, reported.error);
    ck_assert_msg(with == NULL || strstr(reported.error, with) != NULL,
                  "'%s' is not in: %s", with, reported.error);
    ck_assert_ptr_null(strchr(reported.error, '\n'));
    memset(&reported, 0, sizeof reported);
}

/* Makes the layers. They are in the current folder, because the joins name
 * their files without a folder. */
static void make_layers(void)
{
    GDALAllRegister();
    RegisterOGRJOIN();
    CPLSetErrorHandler(take_message);
    make_folder();
    ck_assert_int_eq(chdir(folder), 0);
}

static GDALDatasetH open_join(const char *words)
{
    char name[512];
    snprintf(name, sizeof name, "JOIN:%s", words);
    return GDALOpenEx(name, GDAL_OF_VECTOR, NULL, NULL, NULL);
}

static OGRLayerH open_layer(const char *words, GDALDatasetH *join)
{
    *join = open_join(words);
    expect_error(NULL);
    ck_assert_ptr_nonnull(*join);
    return GDALDatasetGetLayer(*join, 0);
}

/* Reads at most `most` rows; returns their number. */
static int read_rows(OGRLayerH layer, int most)
{
    OGRFeatureH f;
    int n = 0;
    while (n < most && (f = OGR_L_GetNextFeature(layer)) != NULL)
    {
        OGR_F_Destroy(f);
        n++;
    }
    return n;
}

static int read_all(OGRLayerH layer)
{
    OGR_L_ResetReading(layer);
    return read_rows(layer, INT32_MAX);
}

static const char *const joins[] = {
    "-op nearest points.gpkg zones.gpkg",
    "-op nearest -max_distance 1 -how inner -batch 64 points.gpkg zones.fgb",
    "-op nearest -k 3 -max_distance 8 -batch 50 points.gpkg zones.gpkg",
    "-op within -how semi -batch 100 points.gpkg zones.shp",
    "-op within -how right -batch 100 points.gpkg zones.gpkg",
    "-op within -how full -batch 100 points.gpkg zones.gpkg",
    "-op within -pick max:n points.gpkg zones.geojson -crs ignore",
    "-op contains -agg 'count, sum(r), median(r), concat(t)' zones.gpkg "
    "points.gpkg",
    "-op within -agg 'count, max(n)' points.gpkg zones.gpkg",
    "-op nearest -where 'n < 5' -limit 99 -select n points.gpkg zones.gpkg",
    "-op nearest -unsetFid -spat 10 10 40 40 points.gpkg zones.gpkg",
    "-op intersects -geometry intersection -overlap area zones.gpkg zones.fgb",
    "-op nearest -geometry connection -nearest_point_fields points.gpkg "
    "zones.gpkg",
    "-window 5 5 30 30 -window 20 20 50 50 points.gpkg",
    "-op within -memory 64K -batch 100 points.gpkg zones.gpkg",
    "-op nearest -sql 'SELECT geom, n + 1 AS more FROM things' points.gpkg "
    "zones33.gpkg"};

enum
{
    N_JOINS = (int)(sizeof joins / sizeof *joins)
};

TEST_LOOP(every_way_of_reading, 0, N_JOINS)
{
    GDALDatasetH join;
    OGRLayerH layer = open_layer(joins[_i], &join);
    int n = read_all(layer), n_some;
    OGRFeatureH f;
    OGREnvelope extent;
    ck_assert_int_gt(n, 0);
    ck_assert_ptr_null(OGR_L_GetNextFeature(layer));
    OGR_L_ResetReading(layer);
    ck_assert_int_eq(read_rows(layer, 5), n < 5 ? n : 5);
    ck_assert_int_eq(read_all(layer), n);
    ck_assert_int_eq(OGR_L_GetFeatureCount(layer, 0), n);
    ck_assert_int_eq(OGR_L_GetExtent(layer, &extent, 1), OGRERR_NONE);
    OGR_L_SetSpatialFilterRect(layer, 12, 23, 20, 30);
    n_some = read_all(layer);
    ck_assert_int_lt(n_some, n);
    ck_assert_int_eq(OGR_L_GetFeatureCount(layer, 1), n_some);
    OGR_L_SetSpatialFilter(layer, NULL);
    OGR_L_SetAttributeFilter(layer, "FID >= 0");
    ck_assert_int_eq(read_all(layer), n);
    OGR_L_SetAttributeFilter(layer, NULL);
    ck_assert_int_eq(OGR_L_SetNextByIndex(layer, n - 1), OGRERR_NONE);
    f = OGR_L_GetNextFeature(layer);
    ck_assert_ptr_nonnull(f);
    OGR_F_Destroy(OGR_L_GetFeature(layer, OGR_F_GetFID(f)));
    OGR_F_Destroy(f);
    expect_error(NULL);
    GDALClose(join);
}

TEST(left_at_any_point)
{
    for (int i = 0; i < 40; i++)
    {
        GDALDatasetH join;
        OGRLayerH layer =
            open_layer("-k 3 -batch 16 points.gpkg zones.gpkg", &join);
        (void)read_rows(layer, i % 8 * 20);
        if (i % 3 == 0)
            OGR_L_ResetReading(layer);
        if (i % 3 == 1)
            OGR_F_Destroy(OGR_L_GetFeature(layer, i));
        GDALClose(join);
    }
    expect_error(NULL);
}

/* Copies the first part of a file. */
static void copy_first_part(const char *name, const char *to, double share)
{
    VSILFILE *file = VSIFOpenL(to, "wb");
    vsi_l_offset size;
    GByte *bytes;
    ck_assert(VSIIngestFile(NULL, name, &bytes, &size, -1));
    VSIFWriteL(bytes, 1, (size_t)((double)size * share), file);
    VSIFCloseL(file);
    VSIFree(bytes);
}

/* An error before the first row, or later, is reported once. It is reported
 * again when reading is restarted. */
TEST_LOOP(errors, 0, 3)
{
    static const struct
    {
        const char *words, *message;
        int least;
    } cases[] = {
        {"-op within -max_pairs 250 -batch 50 points.gpkg zones.gpkg",
         "max_pairs", 50},
        {"-op nearest points.gpkg cut_zones.fgb", "things cannot be read", 0},
        {"-op nearest -batch 20 -join_select n cut_zones.fgb points.gpkg",
         "things cannot be read", 20}};
    GDALDatasetH join;
    OGRLayerH layer;
    copy_first_part("zones.fgb", "cut_zones.fgb", 0.7);
    layer = open_layer(cases[_i].words, &join);
    for (int i = 0; i < 2; i++)
    {
        ck_assert_int_ge(read_all(layer), cases[_i].least);
        expect_error(cases[_i].message);
        ck_assert_ptr_null(OGR_L_GetNextFeature(layer));
        expect_error(NULL);
    }
    if (_i == 0)
        ck_assert_int_eq(OGR_L_GetFeatureCount(layer, 1), -1);
    else if (_i == 1)
        ck_assert_ptr_null(OGR_L_GetFeature(layer, 2));
    expect_error(_i < 2 ? cases[_i].message : NULL);
    GDALClose(join);
    expect_error(NULL);
}

/* Each reading from the start reads the files in their current state. */
TEST(files_that_change)
{
    GDALDatasetH join;
    OGRLayerH layer = open_layer("-op within points.gpkg zones.gpkg", &join);
    int n = read_all(layer);
    for (int i = 0; i < 3; i++)
    {
        make_file("GPKG", "zones.gpkg", 1, i == 1 ? 1 : N_JOIN, 11, 32632);
        wait_until_changes_show();
        ck_assert_int_eq(read_all(layer) == n, i != 1);
        OGR_F_Destroy(OGR_L_GetFeature(layer, 7));
        expect_error(NULL);
        VSIUnlink("zones.gpkg");
        ck_assert_int_eq(read_all(layer), 0);
        expect_error("zones.gpkg");
    }
    GDALClose(join);
}

/* ---- Arrow streams ------------------------------------------------------ */

#if OJ_HAVE_ARROW

static const char *const streamed = "-k 3 -batch 16 points.gpkg zones.gpkg";

static void open_stream(OGRLayerH layer, struct ArrowArrayStream *stream)
{
    char *options[] = {(char *)"MAX_FEATURES_IN_BATCH=20", NULL};
    ck_assert(OGR_L_GetArrowStream(layer, stream, options));
    expect_error(NULL);
}

/* Reads at most `most` batches; returns the number of their rows. */
static int64_t read_batches(struct ArrowArrayStream *stream, int most)
{
    struct ArrowArray array;
    int64_t n = 0;
    for (int i = 0; i < most; i++)
    {
        ck_assert_int_eq(stream->get_next(stream, &array), 0);
        if (array.release == NULL)
            break;
        n += array.length;
        array.release(&array);
    }
    return n;
}

/* Reads some batches of a stream and frees its layer. GDAL allows a consumer to
 * release the stream then, and its functions return an error. native 1: the
 * driver's own stream; 0: GDAL's. */
static void outlive_layer(int batches, int native)
{
    struct ArrowArrayStream stream;
    struct ArrowArray first, array;
    struct ArrowSchema schema;
    GDALDatasetH join;
    OGRLayerH layer = open_layer(streamed, &join);
    if (!native)
        OGR_L_SetAttributeFilter(layer, "FID >= 0");
    open_stream(layer, &stream);
    memset(&first, 0, sizeof first);
    if (batches > 0)
        ck_assert_int_eq(stream.get_next(&stream, &first), 0);
    (void)read_batches(&stream, batches - 1);
    GDALClose(join);
    expect_error(NULL);
    ck_assert_int_eq(stream.get_schema(&stream, &schema), EINVAL);
    expect_error(native ? "was closed" : "freed");
    ck_assert_int_eq(stream.get_next(&stream, &array), EINVAL);
    expect_error(native ? "was closed" : "freed");
    if (native)
        ck_assert_ptr_nonnull(
            strstr(stream.get_last_error(&stream), "was closed"));
    stream.release(&stream);
    ck_assert_ptr_null(stream.release);
    if (first.release != NULL)
    {
        ck_assert_int_eq(first.length, 20);
        first.release(&first);
    }
    expect_error(NULL);
}

TEST(stream_outlives_its_layer)
{
    for (int native = 0; native < 2; native++)
    {
        outlive_layer(0, native);
        outlive_layer(1, native);
        outlive_layer(7, native);
        outlive_layer(1000, native);
    }
}

/* A stream that has failed keeps its error after its layer was freed. */
TEST(stream_that_failed_outlives_its_layer)
{
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    GDALDatasetH join;
    OGRLayerH layer;
    copy_first_part("zones.fgb", "cut_zones.fgb", 0.7);
    layer = open_layer("-op nearest points.gpkg cut_zones.fgb", &join);
    open_stream(layer, &stream);
    ck_assert_int_eq(stream.get_next(&stream, &array), EIO);
    expect_error("things cannot be read");
    GDALClose(join);
    ck_assert_ptr_nonnull(strstr(stream.get_last_error(&stream), "things"));
    ck_assert_int_eq(stream.get_next(&stream, &array), EINVAL);
    expect_error("things cannot be read");
    stream.release(&stream);
}

/* A stream keeps the schema of its arrays when, after it was opened, other
 * fields of the layer are ignored: as many as before, or none. */
TEST(schema_after_other_fields_are_ignored)
{
    const char *const before[] = {"n", NULL};
    const char *const after[][2] = {{"join_distance", NULL}, {NULL, NULL}};
    for (int i = 0; i < 2; i++)
    {
        struct ArrowArrayStream stream;
        struct ArrowSchema first, second;
        struct ArrowArray array;
        GDALDatasetH join;
        OGRLayerH layer =
            open_layer("-op nearest points.gpkg zones.gpkg", &join);
        ck_assert_int_eq(OGR_L_SetIgnoredFields(layer, (const char **)before),
                         OGRERR_NONE);
        open_stream(layer, &stream);
        ck_assert_int_eq(stream.get_schema(&stream, &first), 0);
        ck_assert_int_eq(OGR_L_SetIgnoredFields(layer, (const char **)after[i]),
                         OGRERR_NONE);
        ck_assert_int_eq(stream.get_schema(&stream, &second), 0);
        ck_assert_int_eq(stream.get_next(&stream, &array), 0);
        expect_error(NULL);
        ck_assert_int_eq(first.n_children, array.n_children);
        ck_assert_int_eq(second.n_children, array.n_children);
        for (int64_t c = 0; c < array.n_children; c++)
        {
            ck_assert_str_eq(second.children[c]->name, first.children[c]->name);
            ck_assert_str_eq(second.children[c]->format,
                             first.children[c]->format);
        }
        array.release(&array);
        first.release(&first);
        second.release(&second);
        stream.release(&stream);
        GDALClose(join);
    }
}

/* While a stream is open, reading a feature is an error, not the end of the
 * layer. */
TEST(features_while_a_stream_is_open)
{
    struct ArrowArrayStream stream, second;
    GDALDatasetH join;
    OGREnvelope extent;
    OGRLayerH layer = open_layer(streamed, &join);
    int n = read_all(layer);
    int64_t n_streamed;
    OGR_L_ResetReading(layer);
    ck_assert_int_eq(read_rows(layer, 50), 50); /* reading restarts */
    open_stream(layer, &stream);
    n_streamed = read_batches(&stream, 2);
    ck_assert_ptr_null(OGR_L_GetNextFeature(layer));
    expect_error("an Arrow stream of layer 'things' is open");
    ck_assert_int_ne(OGR_L_SetNextByIndex(layer, 3), OGRERR_NONE);
    expect_error("an Arrow stream of layer");
    ck_assert(!OGR_L_GetArrowStream(layer, &second, NULL));
    expect_error("rrow");
    /* functions that need no further rows work in the meantime */
    OGR_L_ResetReading(layer);
    ck_assert_int_eq(OGR_L_GetFeatureCount(layer, 1), n);
    ck_assert_int_eq(OGR_L_GetExtent(layer, &extent, 1), OGRERR_NONE);
    OGR_F_Destroy(OGR_L_GetFeature(layer, 7));
    expect_error(NULL);
    OGR_L_SetSpatialFilterRect(layer, 12, 23, 20, 30);
    ck_assert_int_eq(OGR_L_GetFeatureCount(layer, 1), -1);
    expect_error("an Arrow stream of layer");
    OGR_L_SetSpatialFilter(layer, NULL);
    n_streamed += read_batches(&stream, INT32_MAX);
    ck_assert_int_eq(n_streamed, n);
    ck_assert_ptr_null(OGR_L_GetNextFeature(layer));
    expect_error("an Arrow stream of layer");
    stream.release(&stream);
    ck_assert_int_eq(read_rows(layer, INT32_MAX), n);
    expect_error(NULL);
    GDALClose(join);
}

/* Files change while a stream is open. The rows of the stream are of one state.
 * Other calls in the meantime do not move its cursor. */
TEST(files_that_change_under_a_stream)
{
    for (int batches = 0; batches < 40; batches += 13)
    {
        struct ArrowArrayStream stream;
        GDALDatasetH join;
        OGRLayerH layer = open_layer(streamed, &join);
        open_stream(layer, &stream);
        (void)read_batches(&stream, batches);
        wait_until_changes_show();
        make_file("GPKG", "zones.gpkg", 1, N_JOIN / 2, 11, 32632);
        (void)OGR_L_GetFeatureCount(layer, 1);
        OGR_F_Destroy(OGR_L_GetFeature(layer, 7));
        (void)read_batches(&stream, INT32_MAX);
        (void)OGR_L_GetFeatureCount(layer, 1);
        memset(&reported, 0, sizeof reported);
        ck_assert_ptr_null(OGR_L_GetNextFeature(layer));
        expect_error("an Arrow stream of layer");
        if (batches % 2 == 0)
            stream.release(&stream);
        GDALClose(join);
        if (batches % 2 != 0)
            stream.release(&stream);
    }
}

#endif

int main(void)
{
    tcase_add_checked_fixture(tests_open("join_layer"), make_layers,
                              remove_folder);
    return tests_run();
}
