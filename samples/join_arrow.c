/* Example of the C library with Arrow streams: the nearest feature of one layer
 * for each feature of another, from GDAL's record batches.
 *
 *   cc join_arrow.c $(pkg-config --cflags --libs ogrjoin gdal) -o join_arrow
 *   join_arrow pickups.fgb lots.fgb 100 >pairs.csv
 *
 * Other producers of Arrow streams work, too: DuckDB, pyarrow, GeoPandas. left
 * and right are indices of features, from 0, in the order of the streams.
 */
#include <gdal.h>
#include <ogr_api.h>
#include <ogr_recordbatch.h>
#include <ogrjoin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_stream(GDALDatasetH dataset, struct ArrowArrayStream *stream)
{
    OGRLayerH layer = dataset != NULL ? GDALDatasetGetLayer(dataset, 0) : NULL;
    return layer != NULL && OGR_L_GetArrowStream(layer, stream, NULL);
}

static void print_pairs(const struct ArrowArray *batch)
{
    const int64_t *left = batch->children[0]->buffers[1];
    const int64_t *right = batch->children[1]->buffers[1];
    const double *distance = batch->children[2]->buffers[1];
    for (int64_t i = 0; i < batch->length; i++)
        printf("%lld,%lld,%.15g\n", (long long)left[i], (long long)right[i],
               distance[i]);
}

/* Prints batch by batch, so that only the join side and one batch are in
 * memory. */
static int print_stream(struct ArrowArrayStream *pairs,
                        struct ogrjoin_error *err)
{
    for (;;)
    {
        struct ArrowArray batch;
        err->status = pairs->get_next(pairs, &batch);
        if (err->status != 0)
        {
            const char *text = pairs->get_last_error(pairs);
            snprintf(err->message, sizeof err->message, "%s",
                     text != NULL ? text : strerror(err->status));
            return err->status;
        }
        if (batch.release == NULL)
            return OGRJOIN_OK;
        print_pairs(&batch);
        batch.release(&batch);
    }
}

static int join(struct ArrowArrayStream *input, struct ArrowArrayStream *join,
                double max_distance, struct ogrjoin_error *err)
{
    struct ogrjoin_settings *settings = ogrjoin_settings_new();
    struct ogrjoin_layer *layer = NULL;
    struct ogrjoin_index *index = NULL;
    struct ArrowArrayStream pairs;
    int status = ogrjoin_set_text(settings, "op", "nearest", err);
    memset(&pairs, 0, sizeof pairs);
    if (status == OGRJOIN_OK)
        status =
            ogrjoin_set_number(settings, "max_distance", max_distance, err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_layer_from_stream(join, NULL, settings, &layer, err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_index_new(layer, settings, &index, err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_join_stream(index, input, NULL, &pairs, err);
    if (status == OGRJOIN_OK)
        status = print_stream(&pairs, err);
    if (pairs.release != NULL)
        pairs.release(&pairs);
    ogrjoin_index_free(index);
    ogrjoin_layer_free(layer);
    ogrjoin_settings_free(settings);
    return status;
}

int main(int argc, char **argv)
{
    GDALDatasetH file[2] = {NULL, NULL};
    struct ArrowArrayStream stream[2];
    struct ogrjoin_error err = {OGRJOIN_OK, ""};
    int status = 1;
    if (argc != 4)
    {
        fprintf(stderr, "usage: join_arrow INPUT JOIN MAX_DISTANCE\n");
        return 2;
    }
    memset(stream, 0, sizeof stream);
    GDALAllRegister();
    for (int i = 0; i < 2; i++)
        file[i] = GDALOpenEx(argv[1 + i], GDAL_OF_VECTOR | GDAL_OF_READONLY,
                             NULL, NULL, NULL);
    if (open_stream(file[0], &stream[0]) && open_stream(file[1], &stream[1]))
    {
        printf("left,right,distance\n");
        status = join(&stream[0], &stream[1], atof(argv[3]), &err);
        if (status != OGRJOIN_OK)
            fprintf(stderr, "join_arrow: %s\n", err.message);
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
