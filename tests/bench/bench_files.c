/* bench_files: processor time of the lanes, on one thread.
 *
 *   bench_files file [output.fgb|output.gpkg]
 *   DECODE lane=.. rows=.. cpu_s=.. rows_per_s=.. file_mb_per_s=..
 *   READ lane=.. ..
 *   WRITE rows=.. cpu_s=.. rows_per_s=..
 * DECODE is from the file to columns, READ from the file to columns and flat
 * arrays, and WRITE from these to the output. No time includes another step.
 *
 *   bench_files JOIN:...
 *   STREAM rows=.. open_cpu_s=.. rows_cpu_s=..
 * Reads a virtual dataset by its Arrow stream. The seconds are those of all
 * threads.
 *
 * Exit code: 0, or 1 on an error. */
#include "../../flatten/arrays/oj_matches.h"
#include "../../flatten/flatgeobuf/oj_flatgeobuf_read.h"
#include "../../flatten/geopackage/oj_geopackage_read.h"
#include "../../flatten/write/oj_layer_write.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <math.h>
#include <ogr_recordbatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_ROWS 262144

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void require(int holds, const char *text)
{
    if (holds)
        return;
    fprintf(stderr, "bench_files: %s %s\n", text, CPLGetLastErrorMsg());
    exit(1);
}

/* ---- a dataset through its stream ----------------------------------------
 */

static void stream_rows(GDALDatasetH dataset, double opened)
{
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    double start = cpu_seconds();
    int64_t n_rows = 0;
    require(
        OGR_L_GetArrowStream(GDALDatasetGetLayer(dataset, 0), &stream, NULL),
        "no stream:");
    while (stream.get_next(&stream, &array) == 0 && array.release != NULL)
    {
        n_rows += array.length;
        array.release(&array);
    }
    stream.release(&stream);
    printf("STREAM rows=%lld open_cpu_s=%.3f rows_cpu_s=%.3f\n",
           (long long)n_rows, opened, cpu_seconds() - start);
}

/* ---- a file to another one ------------------------------------------------
 */

struct copy
{
    OGRLayerH from, to;
    GDALDatasetH dataset; /* dataset of the layer `to` */
    char *rows;           /* memory for rows of FlatGeobuf */
    struct oj_column *column;
    struct oj_layer_writer *writer;
    double reading, writing;
    int64_t n_rows;
};

static void open_output(struct copy *c, const char *name)
{
    static const char *const options[] = {"SPATIAL_INDEX=NO", NULL};
    int is_table = EQUAL(CPLGetExtension(name), "gpkg");
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(c->from);
    struct oj_flatgeobuf_file file = {.layer_options = (char **)options,
                                      .n_threads = 1};
    struct oj_write_options writing = {.keep_fids = is_table};
    struct oj_error err;
    GDALDriverH driver = GDALGetDriverByName(is_table ? "GPKG" : "FlatGeobuf");
    c->rows = CPLStrdup(CPLSPrintf("%s.rows", name));
    file.path = c->rows;
    c->dataset = GDALCreate(driver, name, 0, 0, 0, GDT_Unknown, NULL);
    require(c->dataset != NULL, "cannot create the output:");
    if (is_table)
        require(GDALDatasetStartTransaction(c->dataset, 0) == OGRERR_NONE, "");
    c->to =
        GDALDatasetCreateLayer(c->dataset, "rows", OGR_L_GetSpatialRef(c->from),
                               OGR_L_GetGeomType(c->from), (char **)options);
    require(c->to != NULL, "cannot create the layer:");
    writing.n_columns = OGR_FD_GetFieldCount(defn);
    c->column = calloc((size_t)writing.n_columns + 1, sizeof *c->column);
    require(c->column != NULL, "out of memory");
    for (int i = 0; i < writing.n_columns; i++)
    {
        require(OGR_L_CreateField(c->to, OGR_FD_GetFieldDefn(defn, i), 1) ==
                    OGRERR_NONE,
                "cannot create a field:");
        c->column[i].source = c->column[i].target = i;
    }
    writing.columns = c->column;
    writing.file = is_table ? NULL : &file;
    writing.dataset = is_table ? c->dataset : NULL;
    require(oj_layer_writer_open(c->to, &writing, &c->writer, &err) == OJ_OK,
            "cannot write:");
}

static void close_output(struct copy *c)
{
    struct oj_error err;
    int has_file;
    double start = cpu_seconds();
    require(oj_layer_writer_finish(c->writer, &has_file, &err) == OJ_OK,
            "cannot finish:");
    oj_layer_writer_close(c->writer);
    if (GDALDatasetTestCapability(c->dataset, ODsCTransactions))
        require(GDALDatasetCommitTransaction(c->dataset) == OGRERR_NONE, "");
    GDALClose(c->dataset);
    c->writing += cpu_seconds() - start;
    printf("WRITE rows=%lld cpu_s=%.3f rows_per_s=%.3g\n", (long long)c->n_rows,
           c->writing, (double)c->n_rows / c->writing);
    VSIUnlink(c->rows);
    CPLFree(c->rows);
    free(c->column);
}

static void write_batch(struct copy *c, const struct oj_batch *batch)
{
    struct oj_matches none;
    struct oj_error err;
    double start;
    memset(&none, 0, sizeof none);
    require(oj_matches_reserve(&none, batch->n_rows, batch->n_rows, 0, &err) ==
                OJ_OK,
            "out of memory");
    for (int64_t i = 0; i < batch->n_rows; i++)
    {
        none.join_row[i] = -1;
        none.measure[i] = (double)NAN;
    }
    start = cpu_seconds();
    require(oj_layer_writer_write(c->writer, batch, 0, &none, NULL, &err) ==
                OJ_OK,
            "cannot write rows:");
    c->writing += cpu_seconds() - start;
    oj_matches_free(&none);
}

static void print_speed(const char *what, const char *lane, int64_t n_rows,
                        double seconds, double n_bytes)
{
    printf("%s lane=%s rows=%lld cpu_s=%.3f rows_per_s=%.3g "
           "file_mb_per_s=%.0f\n",
           what, lane, (long long)n_rows, seconds, (double)n_rows / seconds,
           1e-6 * n_bytes / seconds);
}

static void decode_rows(const char *name, OGRLayerH layer,
                        const struct oj_read_options *options, double n_bytes)
{
    const struct oj_lane *lane = &oj_flatgeobuf_lane;
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    char *formats = CPLCalloc((size_t)options->n_fields + 1, 1);
    const struct oj_lane_request request = {.dataset = options->geopackage,
                                            .layer = layer,
                                            .file = name,
                                            .fields = options->fields,
                                            .formats = formats,
                                            .n_fields = options->n_fields,
                                            .batch_rows = BATCH_ROWS,
                                            .n_threads = 1};
    void *stream = NULL;
    struct oj_slice slice = {0};
    const char *text;
    struct oj_error err;
    int64_t n_rows = 0;
    double start;
    for (int i = 0; i < options->n_fields; i++)
        formats[i] =
            oj_format_of_type(OGR_Fld_GetType(OGR_FD_GetFieldDefn(defn, i)));
    start = cpu_seconds();
    if (lane->open(&request, &stream, &err) != OJ_OK)
    {
        lane->close(stream);
        lane = &oj_geopackage_lane;
        require(lane->open(&request, &stream, &err) == OJ_OK, "no lane");
    }
    do
    {
        oj_slice_free(&slice);
        require(lane->next(stream, &slice.chunk, &text, &err) == OJ_OK,
                "cannot decode");
        n_rows += slice.chunk != NULL ? slice.chunk->n_rows : 0;
    } while (slice.chunk != NULL);
    lane->close(stream);
    CPLFree(formats);
    print_speed("DECODE", oj_lane_at(OJ_LANE_FLATGEOBUF)->name, n_rows,
                cpu_seconds() - start, n_bytes);
}

static void copy_rows(GDALDatasetH dataset, const char *name, const char *to)
{
    struct copy c = {.from = GDALDatasetGetLayer(dataset, 0)};
    int n = OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(c.from));
    int *fields = calloc((size_t)n + 1, sizeof *fields);
    struct oj_read_options options = {.batch_rows = BATCH_ROWS,
                                      .limit = -1,
                                      .fields = fields,
                                      .n_fields = n,
                                      .keep_attributes = 1,
                                      .lanes = OJ_LANES_ALL,
                                      .file = name,
                                      .geopackage = dataset,
                                      .n_threads = 1};
    struct oj_layer_reader *reader;
    struct oj_batch batch = {0};
    struct oj_error err;
    double size;
    VSILFILE *file = VSIFOpenL(name, "rb");
    require(fields != NULL && file != NULL && VSIFSeekL(file, 0, SEEK_END) == 0,
            "no file:");
    size = (double)VSIFTellL(file);
    VSIFCloseL(file);
    for (int i = 0; i < n; i++)
        fields[i] = i;
    decode_rows(name, c.from, &options, size);
    if (to != NULL)
        open_output(&c, to);
    require(oj_layer_reader_open(c.from, &options, &reader, &err) == OJ_OK,
            "cannot read:");
    do
    {
        double start = cpu_seconds();
        require(oj_layer_reader_next(reader, &batch, &err) == OJ_OK,
                "cannot read rows:");
        c.reading += cpu_seconds() - start;
        c.n_rows += batch.n_rows;
        if (to != NULL && batch.n_rows > 0)
            write_batch(&c, &batch);
    } while (batch.n_rows > 0);
    print_speed("READ", oj_layer_reader_counts(reader)->lane, c.n_rows,
                c.reading, size);
    oj_batch_free(&batch);
    oj_layer_reader_close(reader);
    if (to != NULL)
        close_output(&c);
    free(fields);
}

int main(int n, char **words)
{
    double start;
    GDALDatasetH dataset;
    require(n == 2 || n == 3, "usage: bench_files FILE|JOIN:... [OUTPUT]");
    GDALAllRegister();
    start = cpu_seconds();
    dataset = GDALOpenEx(words[1], GDAL_OF_VECTOR, NULL, NULL, NULL);
    require(dataset != NULL, "cannot open:");
    if (STARTS_WITH(words[1], "JOIN:"))
        stream_rows(dataset, cpu_seconds() - start);
    else
        copy_rows(dataset, words[1], n == 3 ? words[2] : NULL);
    GDALClose(dataset);
    return 0;
}
