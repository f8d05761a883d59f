/* Example of the C library with Arrow streams: the rows of a layer with columns
 * of another, both from GDAL's record batches.
 *
 *   cc join_rows.c $(pkg-config --cflags --libs ogrjoin gdal) -o join_rows
 *   join_rows pickups.fgb lots.fgb op=nearest max_distance=100ft >rows.csv
 *   join_rows zones.gpkg shops.gpkg op=contains agg="count, mean(rent)"
 *
 * Options are those of the command, without the dash.  Any producer and any
 * consumer of Arrow streams can be used: the stream of rows can be passed to
 * DuckDB, pyarrow or Polars.  This example prints integers, floating-point
 * numbers and texts.
 */
#include <cpl_conv.h>
#include <gdal.h>
#include <ogr_api.h>
#include <ogr_recordbatch.h>
#include <ogr_srs_api.h>
#include <ogrjoin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens a stream of a layer without a column of FIDs. */
static int open_stream(GDALDatasetH dataset, struct ArrowArrayStream *stream)
{
    static const char *const options[] = {"INCLUDE_FID=NO", NULL};
    OGRLayerH layer = dataset != NULL ? GDALDatasetGetLayer(dataset, 0) : NULL;
    return layer != NULL &&
           OGR_L_GetArrowStream(layer, stream, (char **)options);
}

/* Sets the layer's CRS, which the stream does not contain and which distances
 * with a unit need. */
static int set_crs(struct ogrjoin_settings *settings, const char *name,
                   GDALDatasetH dataset, struct ogrjoin_error *err)
{
    OGRSpatialReferenceH srs =
        OGR_L_GetSpatialRef(GDALDatasetGetLayer(dataset, 0));
    char *json = NULL;
    int status = OGRJOIN_OK;
    if (srs != NULL && OSRExportToPROJJSON(srs, &json, NULL) == OGRERR_NONE)
        status = ogrjoin_set_text(settings, name, json, err);
    CPLFree(json);
    return status;
}

/* Parses "name=value". */
static int set_word(struct ogrjoin_settings *settings, const char *word,
                    struct ogrjoin_error *err)
{
    char name[64];
    const char *value = strchr(word, '=');
    int n = value != NULL ? (int)(value - word) : (int)strlen(word);
    char *end;
    double number;
    snprintf(name, sizeof name, "%.*s", n, word);
    value = value != NULL ? value + 1 : "1";
    if (ogrjoin_set_text(settings, name, value, err) == OGRJOIN_OK)
        return OGRJOIN_OK;
    number = strtod(value, &end); /* numbers have their own function */
    return end == value || *end != '\0'
               ? err->status
               : ogrjoin_set_number(settings, name, number, err);
}

static int has_value(const struct ArrowArray *column, int64_t row)
{
    const unsigned char *valid = column->buffers[0];
    row += column->offset;
    return column->null_count == 0 || valid == NULL ||
           (valid[row / 8] >> row % 8 & 1) != 0;
}

static int is_printed(const struct ArrowSchema *column)
{
    return column->dictionary == NULL && (strcmp(column->format, "l") == 0 ||
                                          strcmp(column->format, "i") == 0 ||
                                          strcmp(column->format, "g") == 0 ||
                                          strcmp(column->format, "u") == 0);
}

static void print_value(const struct ArrowSchema *schema,
                        const struct ArrowArray *column, int64_t row)
{
    const void *values = column->buffers[1];
    int64_t at = column->offset + row;
    if (!has_value(column, row))
        return;
    if (schema->format[0] == 'l')
        printf("%lld", (long long)((const int64_t *)values)[at]);
    else if (schema->format[0] == 'i')
        printf("%d", (int)((const int32_t *)values)[at]);
    else if (schema->format[0] == 'g')
        printf("%.15g", ((const double *)values)[at]);
    else
    {
        const int32_t *offset = values;
        printf("\"%.*s\"", (int)(offset[at + 1] - offset[at]),
               (const char *)column->buffers[2] + offset[at]);
    }
}

static void print_batch(const struct ArrowSchema *schema,
                        const struct ArrowArray *batch)
{
    for (int64_t row = 0; row < batch->length; row++)
    {
        const char *between = "";
        for (int64_t i = 0; i < schema->n_children; i++)
        {
            if (!is_printed(schema->children[i]))
                continue;
            printf("%s", between);
            print_value(schema->children[i], batch->children[i], row);
            between = ",";
        }
        printf("\n");
    }
}

static void print_names(const struct ArrowSchema *schema)
{
    const char *between = "";
    for (int64_t i = 0; i < schema->n_children; i++)
    {
        if (!is_printed(schema->children[i]))
            continue;
        printf("%s%s", between, schema->children[i]->name);
        between = ",";
    }
    printf("\n");
}

/* Prints batch by batch, so that only the join side and one batch are in
 * memory. */
static int print_rows(struct ArrowArrayStream *rows)
{
    struct ArrowSchema schema;
    int code = rows->get_schema(rows, &schema);
    if (code != 0)
        return code;
    print_names(&schema);
    for (;;)
    {
        struct ArrowArray batch;
        code = rows->get_next(rows, &batch);
        if (code != 0 || batch.release == NULL)
            break;
        print_batch(&schema, &batch);
        batch.release(&batch);
    }
    schema.release(&schema);
    return code;
}

static void print_notice(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "join_rows: %s\n", message);
}

static int join(GDALDatasetH *file, struct ArrowArrayStream *stream,
                char **words, int n_words, struct ogrjoin_error *err)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    struct ArrowArrayStream rows;
    int status = set_crs(settings, "left_crs", file[0], err);
    ogrjoin_settings_notices(settings, print_notice, NULL);
    if (status == OGRJOIN_OK)
        status = set_crs(settings, "right_crs", file[1], err);
    for (int i = 0; i < n_words && status == OGRJOIN_OK; i++)
        status = set_word(settings, words[i], err);
    if (status == OGRJOIN_OK)
        status =
            ogrjoin_join_rows(&stream[0], &stream[1], settings, &rows, err);
    ogrjoin_settings_free(settings);
    if (status != OGRJOIN_OK)
        return status;
    if (print_rows(&rows) != 0)
    {
        const char *text = rows.get_last_error(&rows);
        status = OGRJOIN_ERR_IO;
        snprintf(err->message, sizeof err->message, "%s",
                 text != NULL ? text : "the rows cannot be read");
    }
    rows.release(&rows);
    return status;
}

int main(int argc, char **argv)
{
    GDALDatasetH file[2] = {NULL, NULL};
    struct ArrowArrayStream stream[2];
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    int status = 1;
    if (argc < 4)
    {
        fprintf(stderr, "usage: join_rows INPUT JOIN NAME=VALUE ...\n");
        return 2;
    }
    memset(stream, 0, sizeof stream);
    GDALAllRegister();
    for (int i = 0; i < 2; i++)
        file[i] = GDALOpenEx(argv[1 + i], GDAL_OF_VECTOR | GDAL_OF_READONLY,
                             NULL, NULL, NULL);
    if (open_stream(file[0], &stream[0]) && open_stream(file[1], &stream[1]))
    {
        status = join(file, stream, argv + 3, argc - 3, &err);
        if (status != OGRJOIN_OK)
            fprintf(stderr, "join_rows: %s\n", err.message);
    }
    for (int i = 0; i < 2; i++)
    {
        if (stream[i].release != NULL)
            stream[i].release(&stream[i]);
        if (file[i] != NULL)
            GDALClose(file[i]);
    }
    return status == OGRJOIN_OK ? 0 : 1;
}
