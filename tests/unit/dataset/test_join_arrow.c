/* The driver's own Arrow stream of a join equals GDAL's generic stream of the
 * same rows. Tests every type and shape, every value of -how, several batch
 * sizes, limits of batches, errors, early release, failing allocations, and
 * geometries whose bytes are passed on unchanged.
 * Kind: truth cases, memory, random. */
#include "../../../flatten/arrays/oj_wkb.h"
#include "../../../flatten/read/oj_layer_arrow.h"

#include "../run_tests.h"

#if OJ_HAVE_ARROW
#include "../../../driver/dataset/oj_join_arrow.h"

#include "../row_trial.h"
#include "arrow_text.h"

#include <errno.h>

#define FIDS "OGC_FID"

static void count_closed(void *user)
{
    ((struct trial_stream *)user)->n_closed++;
}

/* Opens what a stream of the trial t is made of: the row cursor, and GDAL's
 * stream, which gives the schema. */
static void open_source(struct row_trial *t, struct trial_stream *source,
                        char **options, struct ArrowArrayStream *stream)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(t->out_layer);
    memset(source, 0, sizeof *source);
    source->trial = t;
    t->at = 0;
    trial_ok(
        oj_row_cursor_open(defn, &t->options, &source->cursor, &trial_error));
    oj_row_cursor_set_first_fid(source->cursor, 0);
    source->generic = open_generic(defn, options, stream);
}

static void close_source(struct trial_stream *source)
{
    oj_row_cursor_close(source->cursor);
    GDALClose(source->generic);
}

/* Returns the driver's own stream of t, or NULL if it leaves the stream to
 * GDAL. */
static struct oj_join_arrow *try_stream(struct row_trial *t,
                                        struct trial_stream *source,
                                        char **options,
                                        struct ArrowArrayStream *stream)
{
    struct oj_arrow_rows rows = {NULL, trial_advance, count_closed, source};
    open_source(t, source, options, stream);
    rows.cursor = source->cursor;
    return oj_join_arrow_open(OGR_L_GetLayerDefn(t->out_layer), &rows, options,
                              stream);
}

static void open_stream(struct row_trial *t, struct trial_stream *source,
                        char **options, struct ArrowArrayStream *stream)
{
    ck_assert(try_stream(t, source, options, stream));
}

static void close_stream(struct trial_stream *source,
                         struct ArrowArrayStream *stream)
{
    if (stream->release != NULL)
        stream->release(stream);
    ck_assert_ptr_null(stream->release);
    ck_assert_int_eq(source->n_closed, 1);
    close_source(source);
}

/* Compares the text of a stream with that of GDAL's stream of the written
 * layer. GDAL's stream is read in batches of its default size. */
static void same_as_generic(struct row_trial *t, const struct arrow_text *ours,
                            char **options)
{
    struct ArrowArrayStream stream;
    struct arrow_text generic = {0};
    char **without =
        CSLSetNameValue(CSLDuplicate(options), "MAX_FEATURES_IN_BATCH", NULL);
    OGR_L_ResetReading(t->out_layer);
    ck_assert(OGR_L_GetArrowStream(t->out_layer, &stream, without));
    write_stream_text(&generic, &stream, 0);
    stream.release(&stream);
    same_text(generic.at, ours->at);
    free(generic.at);
    CSLDestroy(without);
}

static void same_as_written(struct row_trial *t, char **options,
                            int64_t batch_rows)
{
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct arrow_text ours = {0};
    open_stream(t, &source, options, &stream);
    write_stream_text(&ours, &stream, batch_rows);
    same_as_generic(t, &ours, options);
    close_stream(&source, &stream);
    free(ours.at);
}

static void same_rows(struct row_trial *t, char **options, int64_t batch_rows)
{
    trial_make_answers(t);
    trial_write(t);
    same_as_written(t, options, batch_rows);
}

/* ---- rows --------------------------------------------------------------- */

TEST(truth_every_how_and_form)
{
    static const enum oj_how hows[] = {OJ_HOW_LEFT, OJ_HOW_INNER, OJ_HOW_SEMI,
                                       OJ_HOW_ANTI};
    static const char *const drivers[] = {"Memory", "GPKG", "FlatGeobuf"};
    for (int how = 0; how < 4; how++)
    {
        for (int form = FORM_ONE; form <= FORM_PICKED; form++)
        {
            struct row_trial t;
            trial_open(&t, drivers[(how + form) % 3], 100, hows[how],
                       (enum trial_form)form, 37);
            t.with_join_rows = how < 2;
            same_rows(&t, NULL, 65536);
            trial_close(&t);
        }
    }
}

TEST(truth_every_geometry)
{
    static const char *const drivers[] = {"Memory", "GPKG"};
    for (int geometry = OJ_WRITE_INPUT; geometry <= OJ_WRITE_SHAPE; geometry++)
    {
        for (int i = 0; i < 6; i++)
        {
            struct row_trial t;
            trial_open(&t, drivers[i % 2], -1, OJ_HOW_LEFT, FORM_LISTS, 10);
            t.options.geometry = (enum oj_write_geometry)geometry;
            t.options.promote_to_multi = i / 2 == 1;
            t.options.multi_shapes = i / 2 == 2;
            t.with_join_rows = 1;
            same_rows(&t, NULL, 0);
            trial_close(&t);
        }
    }
}

/* More rows than a block has. The answers are larger or smaller than a
 * block. */
TEST(truth_batches)
{
    static const char *const most[] = {"1",    "7",  "1000", "1024",
                                       "1025", "-3", "0",    "100000"};
    static const int rows[] = {1, 7, 1000, 1024, 1025, 1, 1, 100000};
    for (int i = 0; i < 8; i++)
    {
        char **options =
            CSLSetNameValue(NULL, "MAX_FEATURES_IN_BATCH", most[i]);
        struct row_trial t;
        trial_open(&t, "FlatGeobuf", 1500, OJ_HOW_LEFT, FORM_LISTS, 1300);
        t.with_join_rows = 1;
        same_rows(&t, options, rows[i]);
        trial_close(&t);
        CSLDestroy(options);
    }
}

TEST(truth_fids)
{
    for (int i = 0; i < 4; i++)
    {
        char **options =
            CSLSetNameValue(NULL, "INCLUDE_FID", i % 2 ? "NO" : "YES");
        struct row_trial t;
        trial_open(&t, "Memory", 50, OJ_HOW_LEFT, FORM_ONE, 50);
        t.options.keep_fids = i / 2;
        same_rows(&t, options, 65536);
        trial_close(&t);
        CSLDestroy(options);
    }
}

/* The schema outlives the stream. */
TEST(truth_schema)
{
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct ArrowSchema schema, again;
    trial_open(&t, "Memory", 5, OJ_HOW_LEFT, FORM_ONE, 50);
    trial_make_answers(&t);
    ck_assert(try_stream(&t, &source, NULL, &stream));
    ck_assert_int_eq(stream.get_schema(&stream, &schema), 0);
    ck_assert_int_eq(stream.get_schema(&stream, &again), 0);
    again.release(&again);
    close_stream(&source, &stream);
    ck_assert_str_eq(schema.children[0]->name, FIDS);
    schema.release(&schema);
    ck_assert_ptr_null(schema.release);
    trial_close(&t);
}

/* A schema for which memory runs out is an error with its text. */
TEST(memory_schema)
{
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    trial_open(&t, "Memory", 5, OJ_HOW_LEFT, FORM_ONE, 50);
    trial_make_answers(&t);
    open_stream(&t, &source, NULL, &stream);
    oj_alloc_fail_at(3);
    ck_assert_int_eq(stream.get_schema(&stream, &schema), ENOMEM);
    oj_alloc_fail_at(0);
    ck_assert_ptr_null(schema.release);
    ck_assert_ptr_nonnull(stream.get_last_error(&stream));
    ck_assert_int_eq(stream.get_schema(&stream, &schema), 0);
    schema.release(&schema);
    close_stream(&source, &stream);
    trial_close(&t);
}

TEST(truth_ignored)
{
    const char *fields[] = {"i32", "join_text", "dist", NULL, NULL};
    for (int i = 0; i < 2; i++)
    {
        struct row_trial t;
        trial_open(&t, "GPKG", 50, OJ_HOW_LEFT, FORM_LISTS, 20);
        t.with_join_rows = 1;
        trial_make_answers(&t);
        trial_write(&t);
        fields[3] = i == 0 ? NULL : "OGR_GEOMETRY";
        ck_assert_int_eq(OGR_L_SetIgnoredFields(t.out_layer, fields),
                         OGRERR_NONE);
        same_as_written(&t, NULL, 65536);
        trial_close(&t);
    }
}

TEST(truth_no_rows)
{
    struct row_trial t;
    trial_open(&t, "Memory", 0, OJ_HOW_LEFT, FORM_ONE, 10);
    same_rows(&t, NULL, 65536);
    trial_close(&t);
    trial_open(&t, "Memory", 1, OJ_HOW_INNER, FORM_ONE, 10); /* no pair */
    same_rows(&t, NULL, 65536);
    trial_close(&t);
}

/* ---- types -------------------------------------------------------------- */

static void add_field(OGRLayerH layer, const char *name, OGRFieldType type,
                      OGRFieldSubType subtype, int width, int nullable)
{
    OGRFieldDefnH defn = OGR_Fld_Create(name, type);
    OGR_Fld_SetSubType(defn, subtype);
    OGR_Fld_SetWidth(defn, width);
    OGR_Fld_SetNullable(defn, nullable);
    ck_assert_int_eq(OGR_L_CreateField(layer, defn, 0), OGRERR_NONE);
    OGR_Fld_Destroy(defn);
}

static GDALDatasetH make_memory(OGRwkbGeometryType type)
{
    GDALDatasetH dataset = GDALCreate(GDALGetDriverByName("Memory"), "", 0, 0,
                                      0, GDT_Unknown, NULL);
    ck_assert_ptr_nonnull(
        GDALDatasetCreateLayer(dataset, "things", NULL, type, NULL));
    return dataset;
}

static void add_feature(OGRLayerH layer, OGRFeatureH feature)
{
    ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
    OGR_F_Destroy(feature);
}

/* Field types that the common layers do not have. */
TEST(truth_rare_types)
{
    static const int bits[] = {1, 0, 1, 1}, shorts[] = {-32768, 32767, 0};
    static const double reals[] = {0.1, -2.0, 1e-50};
    GDALDatasetH in = make_memory(wkbNone);
    OGRLayerH layer = first_layer(in);
    struct row_trial t;
    add_field(layer, "bits", OFTIntegerList, OFSTBoolean, 0, 1);
    add_field(layer, "shorts", OFTIntegerList, OFSTInt16, 0, 1);
    add_field(layer, "floats", OFTRealList, OFSTFloat32, 0, 1);
    add_field(layer, "code", OFTString, OFSTNone, 9, 1);
    add_field(layer, "must", OFTInteger, OFSTNone, 0, 0);
    add_field(layer, "must_real", OFTReal, OFSTNone, 0, 0);
    add_field(layer, "must_text", OFTString, OFSTNone, 0, 0);
    add_field(layer, "must_words", OFTStringList, OFSTNone, 0, 0);
    add_field(layer, "must_bit", OFTInteger, OFSTBoolean, 0, 0);
    for (int i = 0; i < 40; i++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        if (i % 5 != 3)
        {
            OGR_F_SetFieldIntegerList(feature, 0, i % 5, bits);
            OGR_F_SetFieldIntegerList(feature, 1, i % 4, shorts);
            OGR_F_SetFieldDoubleList(feature, 2, i % 3, reals);
            OGR_F_SetFieldString(feature, 3, i % 2 ? "" : "text");
        }
        OGR_F_SetFieldInteger(feature, 4, i);
        OGR_F_SetFieldDouble(feature, 5, i % 7 ? -0.0 : 1.0 / (i - 7));
        OGR_F_SetFieldString(feature, 6, "x");
        OGR_F_SetFieldString(feature, 7, "word");
        OGR_F_SetFieldInteger(feature, 8, i % 3 == 0);
        add_feature(layer, feature);
    }
    trial_open_alone(&t, in, wkbNone);
    same_rows(&t, NULL, 65536);
    trial_close(&t);
}

/* Some rows have no value in a field that must not be NULL. They are written as
 * by GDAL. */
TEST(truth_broken_promises)
{
    GDALDatasetH in = make_memory(wkbNone);
    OGRLayerH layer = first_layer(in);
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct arrow_text ours = {0};
    add_field(layer, "number", OFTInteger64, OFSTNone, 0, 0);
    add_field(layer, "text", OFTString, OFSTNone, 0, 0);
    add_field(layer, "moment", OFTDateTime, OFSTNone, 0, 0);
    add_field(layer, "words", OFTStringList, OFSTNone, 0, 0);
    for (int i = 0; i < 9; i++)
        add_feature(layer, OGR_F_Create(OGR_L_GetLayerDefn(layer)));
    trial_open_alone(&t, in, wkbNone);
    trial_write(&t);
    open_stream(&t, &source, NULL, &stream);
    write_stream_text(&ours, &stream, 0);
    same_as_generic(&t, &ours, NULL);
    close_stream(&source, &stream);
    free(ours.at);
    trial_close(&t);
}

/* Returns the days from 1970 to a date, by counting years. */
static long long days_to(int year, int month, int day)
{
    static const int before[] = {0,   31,  59,  90,  120, 151,
                                 181, 212, 243, 273, 304, 334};
    long long days = before[month - 1] + day - 1;
    for (int y = 1970; y < year; y++)
        days += (y % 4 == 0 && y % 100 != 0) || y % 400 == 0 ? 366 : 365;
    for (int y = year; y < 1970; y++)
        days -= (y % 4 == 0 && y % 100 != 0) || y % 400 == 0 ? 366 : 365;
    if (month > 2 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0))
        days++;
    return days;
}

/* All time zones, and times for which the generic stream of GDAL 3.6 is wrong:
 * days before 1970, and seconds that round to the next minute. In GDAL, the
 * zone 100 is UTC, and each unit more is a quarter of an hour. Zones 0 and 1
 * mean unknown and local. */
TEST(truth_times)
{
    static const int zones[] = {0, 1, 100, 101, 148, 52, 122};
    static const int years[] = {1,    1582, 1900, 1968, 1969,
                                1970, 2000, 2100, 9999};
    GDALDatasetH in = make_memory(wkbNone);
    OGRLayerH layer = first_layer(in);
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct arrow_text ours = {0}, expected[2] = {{0}, {0}}; /* in UTC: 1 */
    int is_utc;
    add_field(layer, "day", OFTDate, OFSTNone, 0, 1);
    add_field(layer, "hour", OFTTime, OFSTNone, 0, 1);
    add_field(layer, "moment", OFTDateTime, OFSTNone, 0, 1);
    for (int i = 0; i < 9 * 24; i++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        int year = years[i / 24], month = 1 + i % 12, day = i % 2 ? 28 : 1;
        float second = i % 7 == 6 ? 59.9997f : (float)(i % 60) + 0.1234f;
        long long days = days_to(year, month, day);
        int ms = i % 24 * 3600000 + i % 60 * 60000 + (int)(second * 1000 + 0.5);
        OGR_F_SetFieldDateTimeEx(feature, 0, year, month, day, 0, 0, 0, 0);
        OGR_F_SetFieldDateTimeEx(feature, 1, 0, 0, 0, i % 24, i % 60, second,
                                 0);
        OGR_F_SetFieldDateTimeEx(feature, 2, year, month, day, i % 24, i % 60,
                                 second, zones[i % 7]);
        add_feature(layer, feature);
        for (int utc = 0; utc < 2; utc++)
            put_text(&expected[utc],
                     " " FIDS "=%d day=%lld hour=%d moment=%lld\n", i, days, ms,
                     days * 86400000 + ms -
                         (utc && zones[i % 7] > 2
                              ? (zones[i % 7] - 100) * 900000
                              : 0));
    }
    trial_open_alone(&t, in, wkbNone);
    open_stream(&t, &source, NULL, &stream);
    write_stream_text(&ours, &stream, 0);
    is_utc = strstr(ours.at, "tsm:UTC") != NULL;
    same_text(expected[is_utc].at, strstr(ours.at, "rows:\n") + 6);
    close_stream(&source, &stream);
    trial_close(&t);
    free(ours.at);
    free(expected[0].at);
    free(expected[1].at);
}

TEST(truth_left_to_gdal)
{
    static const char *const options[][2] = {
        {"TIMEZONE=UTC", NULL}, {"GEOMETRY_ENCODING=WKT", NULL}, {"X", NULL}};
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    trial_open(&t, "Memory", 5, OJ_HOW_LEFT, FORM_ONE, 50);
    for (int i = 0; i < 3; i++)
    {
        ck_assert(!try_stream(&t, &source, (char **)options[i], &stream));
        ck_assert_int_eq(source.n_closed, 0);
        stream.release(&stream); /* GDAL's */
        ck_assert_int_eq(source.n_closed, 0);
        close_source(&source);
    }
    trial_close(&t);
}

/* Rare definitions of layers (one for each i), whose streams are left to GDAL.
 */
TEST(truth_definitions_left_to_gdal)
{
    const struct oj_write_options options = {0};
    for (int i = 0; i < 4; i++)
    {
        OGRFeatureDefnH defn = OGR_FD_Create("rows");
        struct ArrowArrayStream stream;
        struct oj_arrow_rows rows = {NULL, NULL, NULL, NULL};
        GDALDatasetH generic;
        OGR_FD_Reference(defn);
        if (i == 1)
            OGR_GFld_SetNullable(OGR_FD_GetGeomFieldDefn(defn, 0), 0);
        if (i == 2)
        {
            OGRGeomFieldDefnH second = OGR_GFld_Create("second", wkbPoint);
            OGR_FD_AddGeomFieldDefn(defn, second);
            OGR_GFld_Destroy(second);
        }
        if (i == 3)
        {
            OGRFieldDefnH four = OGR_Fld_Create("four", OFTBinary);
            OGR_Fld_SetWidth(four, 4);
            OGR_FD_AddFieldDefn(defn, four);
            OGR_Fld_Destroy(four);
        }
        trial_ok(
            oj_row_cursor_open(defn, &options, &rows.cursor, &trial_error));
        generic = open_generic(defn, NULL, &stream);
        ck_assert_int_eq(oj_join_arrow_open(defn, &rows, NULL, &stream) != NULL,
                         i == 0);
        stream.release(&stream);
        oj_row_cursor_close(rows.cursor);
        GDALClose(generic);
        OGR_FD_Release(defn);
    }
}

/* ---- limits, ends and errors -------------------------------------------- */

/* The rows do not depend on the maximum number of bytes of a batch. */
TEST(truth_limit_of_bytes)
{
    struct arrow_text all = {0};
    for (int i = 0; i < 4; i++)
    {
        static const char *const limits[] = {NULL, "700", NULL, "700"};
        struct row_trial t;
        struct trial_stream source;
        struct ArrowArrayStream stream;
        struct arrow_text ours = {0};
        trial_open(&t, i < 2 ? "GPKG" : "Memory", -1, OJ_HOW_LEFT, FORM_LISTS,
                   50);
        trial_make_answers(&t);
        CPLSetConfigOption("OGR_ARROW_MEM_LIMIT", limits[i]);
        open_stream(&t, &source, NULL, &stream);
        write_stream_text(&ours, &stream, 0);
        close_stream(&source, &stream);
        ck_assert_int_eq(n_batches_read > 1, limits[i] != NULL);
        if (limits[i] == NULL)
            all = ours;
        else
        {
            same_text(all.at, ours.at);
            free(ours.at);
            free(all.at);
        }
        CPLSetConfigOption("OGR_ARROW_MEM_LIMIT", NULL);
        trial_close(&t);
    }
}

TEST(truth_too_large)
{
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    CPLSetConfigOption("OGR_ARROW_MEM_LIMIT", "10");
    trial_open(&t, "Memory", 50, OJ_HOW_LEFT, FORM_ONE, 50);
    trial_make_answers(&t);
    open_stream(&t, &source, NULL, &stream);
    ck_assert_ptr_null(stream.get_last_error(&stream));
    ck_assert_int_eq(stream.get_next(&stream, &array), EIO);
    ck_assert_ptr_null(array.release);
    ck_assert(strstr(stream.get_last_error(&stream), "10 bytes") != NULL);
    ck_assert(strstr(stream.get_last_error(&stream), "FID 0") != NULL);
    ck_assert_int_eq(stream.get_next(&stream, &array), 0);
    ck_assert_ptr_null(array.release);
    close_stream(&source, &stream);
    trial_close(&t);
    CPLSetConfigOption("OGR_ARROW_MEM_LIMIT", NULL);
}

static oj_status advance_and_fail(void *user, int *there, struct oj_error *err)
{
    struct trial_stream *s = user;
    if (s->trial->at == 2)
        return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
    return trial_advance(user, there, err);
}

TEST(truth_error_between_answers)
{
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    struct oj_arrow_rows rows = {NULL, advance_and_fail, count_closed, &source};
    char *options[] = {(char *)"MAX_FEATURES_IN_BATCH=5", NULL};
    int code;
    trial_open(&t, "Memory", 50, OJ_HOW_LEFT, FORM_ONE, 10);
    trial_make_answers(&t);
    open_source(&t, &source, options, &stream);
    rows.cursor = source.cursor;
    ck_assert(oj_join_arrow_open(OGR_L_GetLayerDefn(t.out_layer), &rows,
                                 options, &stream));
    CPLErrorReset();
    while ((code = stream.get_next(&stream, &array)) == 0)
    {
        ck_assert_ptr_nonnull(array.release);
        array.release(&array);
    }
    ck_assert_int_eq(code, ECANCELED);
    ck_assert_str_eq(stream.get_last_error(&stream), "interrupted");
    ck_assert_str_eq(CPLGetLastErrorMsg(), "interrupted");
    ck_assert_int_eq(stream.get_next(&stream, &array), 0);
    ck_assert_ptr_null(array.release);
    close_stream(&source, &stream);
    trial_close(&t);
}

/* A stream is released before it is read, or when it is read in part. Arrays
 * outlive the stream. A consumer moves children out of an array. */
TEST(truth_released_early)
{
    struct row_trial t;
    struct trial_stream source;
    struct ArrowArrayStream stream;
    struct ArrowArray array, child;
    char *options[] = {(char *)"MAX_FEATURES_IN_BATCH=5", NULL};
    trial_open(&t, "GPKG", 50, OJ_HOW_LEFT, FORM_LISTS, 20);
    trial_make_answers(&t);
    open_stream(&t, &source, options, &stream);
    close_stream(&source, &stream);
    open_stream(&t, &source, options, &stream);
    ck_assert_int_eq(stream.get_next(&stream, &array), 0);
    close_stream(&source, &stream);
    child = *array.children[11];
    array.children[11]->release = NULL;
    array.release(&array);
    ck_assert_ptr_null(array.release);
    ck_assert_int_eq(child.length, 5);
    child.release(&child);
    ck_assert_ptr_null(child.release);
    trial_close(&t);
}

/* The rows are freed before the stream. */
TEST(truth_detached)
{
    struct row_trial t;
    char *options[] = {(char *)"MAX_FEATURES_IN_BATCH=5", NULL};
    trial_open(&t, "GPKG", 50, OJ_HOW_LEFT, FORM_LISTS, 20);
    trial_make_answers(&t);
    for (int n_read = 0; n_read < 3; n_read++)
    {
        struct trial_stream source;
        struct ArrowArrayStream stream;
        struct ArrowSchema schema;
        struct ArrowArray arrays[3], none;
        struct oj_arrow_rows rows = {NULL, trial_advance, count_closed,
                                     &source};
        struct oj_join_arrow *ours;
        open_source(&t, &source, options, &stream);
        rows.cursor = source.cursor;
        ours = oj_join_arrow_open(OGR_L_GetLayerDefn(t.out_layer), &rows,
                                  options, &stream);
        ck_assert_ptr_nonnull(ours);
        for (int i = 0; i < n_read; i++)
            ck_assert_int_eq(stream.get_next(&stream, &arrays[i]), 0);
        oj_join_arrow_detach(ours);
        close_source(&source);
        ck_assert_int_eq(stream.get_next(&stream, &none), EINVAL);
        ck_assert_ptr_null(none.release);
        ck_assert_int_eq(stream.get_schema(&stream, &schema), EINVAL);
        ck_assert_ptr_null(schema.release);
        ck_assert_ptr_nonnull(strstr(stream.get_last_error(&stream), "closed"));
        stream.release(&stream);
        ck_assert_int_eq(source.n_closed, 0);
        for (int i = 0; i < n_read; i++)
            arrays[i].release(&arrays[i]);
    }
    trial_close(&t);
}

/* ---- memory ------------------------------------------------------------- */

/* Allocations fail in turn. Either the stream is left to GDAL, or an array is
 * missing. Nothing leaks. */
TEST(memory_each_allocation_fails)
{
    struct row_trial t;
    int done = 0;
    trial_open(&t, "GPKG", 20, OJ_HOW_LEFT, FORM_LISTS, 20);
    trial_make_answers(&t);
    for (int64_t n = 1; !done; n++)
    {
        struct trial_stream source;
        struct ArrowArrayStream stream;
        struct ArrowArray array;
        struct oj_arrow_rows rows = {NULL, trial_advance, count_closed,
                                     &source};
        int code = 0;
        open_source(&t, &source, NULL, &stream);
        rows.cursor = source.cursor;
        oj_alloc_fail_at(n);
        if (oj_join_arrow_open(OGR_L_GetLayerDefn(t.out_layer), &rows, NULL,
                               &stream))
        {
            code = stream.get_next(&stream, &array);
            done = oj_alloc_fail_at(0) < n;
            ck_assert(code == 0 || code == ENOMEM);
            if (code == 0)
                array.release(&array);
        }
        oj_alloc_fail_at(0);
        stream.release(&stream);
        close_source(&source);
    }
    trial_close(&t);
}

/* ---- bytes of geometries ------------------------------------------------ */

/* Returns 1 if the driver passes the WKB on unchanged. This is right only if
 * OGR would write equal bytes. */
static int check_bytes(const unsigned char *wkb, int n)
{
    OGRGeometryH geometry = NULL;
    unsigned char *again;
    if (!oj_wkb_is_iso(wkb, (size_t)n))
        return 0;
    ck_assert_int_eq(
        OGR_G_CreateFromWkb((unsigned char *)wkb, NULL, &geometry, n),
        OGRERR_NONE);
    ck_assert_int_eq(OGR_G_WkbSize(geometry), n);
    again = CPLMalloc((size_t)n);
    OGR_G_ExportToIsoWkb(geometry, wkbNDR, again);
    ck_assert_mem_eq(again, wkb, (size_t)n);
    CPLFree(again);
    OGR_G_DestroyGeometry(geometry);
    return 1;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

TEST(random_bytes_of_geometries)
{
    int n_taken = 0, n_plain = 0;
    for (int i = 0; i < N_SHAPES * 4; i++)
    {
        char *wkt = CPLStrdup(test_shapes[i / 4]), *at = wkt;
        OGRGeometryH geometry = NULL;
        unsigned char *wkb, *changed;
        int n;
        OGR_G_CreateFromWkt(&at, NULL, &geometry);
        OGR_G_Set3D(geometry, i & 1);
        OGR_G_SetMeasured(geometry, i >> 1 & 1);
        n = OGR_G_WkbSize(geometry);
        wkb = CPLMalloc((size_t)n + 10);
        changed = CPLMalloc((size_t)n + 10);
        OGR_G_ExportToWkb(geometry, wkbXDR, wkb);
        ck_assert(!oj_wkb_is_iso(wkb, (size_t)n));
        OGR_G_ExportToIsoWkb(geometry, wkbNDR, wkb);
        memset(wkb + n, 0, 10);
        ck_assert(!oj_wkb_is_iso(wkb, (size_t)n + 1));
        ck_assert(!oj_wkb_is_iso(wkb, (size_t)n - 1));
        n_plain += check_bytes(wkb, n);
        for (int k = 0; k < 3000; k++)
        {
            memcpy(changed, wkb, (size_t)n);
            for (int j = 0; j < 1 + k % 3; j++)
                changed[next_random() % (uint64_t)n] =
                    (unsigned char)(k % 2 ? next_random() : next_random() % 8);
            n_taken += check_bytes(changed, n);
        }
        CPLFree(wkb);
        CPLFree(changed);
        CPLFree(wkt);
        OGR_G_DestroyGeometry(geometry);
    }
    ck_assert_int_gt(n_plain, 30);
    ck_assert_int_gt(n_taken, 1000);
}

int main(void)
{
    tests_open("join as an Arrow stream");
    GDALAllRegister();
    CPLSetErrorHandler(CPLQuietErrorHandler); /* conversions that lose digits
                                                 warn */
    return tests_run();
}
#else
int main(void)
{
    return 77; /* this GDAL has no Arrow streams: skipped */
}
#endif
