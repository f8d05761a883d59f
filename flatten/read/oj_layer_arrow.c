#include "oj_layer_arrow.h"
#include "../base/oj_alloc.h"
#include "oj_value.h"

#if OJ_HAVE_ARROW
#include <cpl_string.h>
#include <ogr_recordbatch.h>

#include <stdio.h>
#include <string.h>

/* Maximum rows requested per chunk: Arrow string columns have 32-bit offsets,
 * so a chunk holds at most 2 GiB of text per column. */
#define MOST_ROWS 524288

/* A column of the Arrow stream: its child, and the letter of its format: i s l
 * f g u U z Z. */
struct arrow_column
{
    int child; /* index of the child; < 0: the column is not used */
    char format;
};

struct oj_arrow_stream
{
    struct ArrowArrayStream stream;
    /* the layer on which this lane has set a filter; NULL: no filter set */
    OGRLayerH filtered;
    int n_columns;
    struct arrow_column column[];
};

/* ---- schema -------------------------------------------------------------- */

/* Returns the Arrow format in which values of this type arrive unchanged. 0:
 * the stream is not used for them, because values would lose information (times
 * lose their zone; GDAL 3.6 mixes up the bits of booleans) or because it is not
 * faster (lists). */
static char lossless_arrow_format(OGRFieldDefnH field)
{
    OGRFieldSubType subtype = OGR_Fld_GetSubType(field);
    switch (OGR_Fld_GetType(field))
    {
        case OFTInteger:
            if (subtype == OFSTBoolean)
                return 0;
            return subtype == OFSTInt16 ? 's' : 'i';
        case OFTInteger64:
            return 'l';
        case OFTReal:
            return subtype == OFSTFloat32 ? 'f' : 'g';
        case OFTString:
            return 'u';
        case OFTBinary:
            return 'z';
        default:
            return 0;
    }
}

/* Returns 1 if a child has this format, or its variant with 64-bit offsets,
 * which is a capital letter. */
static int has_arrow_format(const struct ArrowSchema *child, char format)
{
    char large = format == 'u' ? 'U' : format == 'z' ? 'Z' : format;
    return format != 0 &&
           (child->format[0] == format || child->format[0] == large) &&
           child->format[1] == '\0' && child->dictionary == NULL;
}

/* Sets *column to the column with this name and format. Returns 0 if there is
 * not exactly one, or if it has a dictionary: looking up its values is not
 * faster than GDAL. */
static int find_column(const struct ArrowSchema *schema, const char *name,
                       char format, struct arrow_column *column)
{
    for (int64_t c = 0; c < schema->n_children; c++)
    {
        const struct ArrowSchema *child = schema->children[c];
        if (child->name == NULL || strcmp(child->name, name) != 0)
            continue;
        if (column->child >= 0 || !has_arrow_format(child, format))
            return 0; /* the name occurs twice, or the format is unexpected */
        column->child = (int)c;
        column->format = child->format[0];
    }
    return column->child >= 0;
}

static int find_stream_columns(struct oj_arrow_stream *stream,
                               const struct oj_lane_request *from,
                               const struct ArrowSchema *schema)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(from->layer);
    const char *fid = OGR_L_GetFIDColumn(from->layer);
    for (int c = 0; c < stream->n_columns; c++)
        stream->column[c].child = -1;
    if (!find_column(schema, fid[0] != '\0' ? fid : "OGC_FID", 'l',
                     &stream->column[OJ_CHUNK_FID]))
        return 0;
    if (OGR_FD_GetGeomFieldCount(defn) > 1)
        return 0;
    if (OGR_FD_GetGeomFieldCount(defn) > 0)
    {
        const char *name =
            OGR_GFld_GetNameRef(OGR_FD_GetGeomFieldDefn(defn, 0));
        if (!find_column(schema, name[0] != '\0' ? name : "wkb_geometry", 'z',
                         &stream->column[OJ_CHUNK_GEOMETRY]))
            return 0;
    }
    for (int i = 0; i < from->n_fields; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, from->fields[i]);
        if (from->formats[i] != 0 &&
            !find_column(schema, OGR_Fld_GetNameRef(field),
                         lossless_arrow_format(field),
                         &stream->column[OJ_CHUNK_FIELDS + i]))
            return 0;
    }
    return 1;
}

static int find_wanted_columns_of_stream(struct oj_arrow_stream *stream,
                                         const struct oj_lane_request *from)
{
    struct ArrowSchema schema;
    int has;
    memset(&schema, 0, sizeof schema);
    if (stream->stream.get_schema(&stream->stream, &schema) != 0)
        return 0;
    has = find_stream_columns(stream, from, &schema);
    schema.release(&schema);
    return has;
}

static void close_stream(void *of)
{
    struct oj_arrow_stream *stream = of;
    if (stream == NULL)
        return;
    if (stream->stream.release != NULL)
        stream->stream.release(&stream->stream);
    if (stream->filtered != NULL)
        OGR_L_SetAttributeFilter(stream->filtered, NULL);
    oj_free(stream);
}

static oj_status open_stream(const struct oj_lane_request *from, void **out,
                             struct oj_error *err)
{
    struct oj_arrow_stream *stream;
    char rows[64];
    char *options[] = {rows, "INCLUDE_FID=YES", NULL};
    int n_columns = OJ_CHUNK_FIELDS + from->n_fields;
    size_t size = sizeof *stream + (size_t)n_columns * sizeof stream->column[0];
    *out = NULL;
    if (from->box != NULL ||
        !OGR_L_TestCapability(from->layer, OLCFastGetArrowStream))
        return oj_lane_leave_to_gdal(err);
    *out = stream = oj_calloc(1, size);
    if (stream == NULL)
        return oj_fail_nomem(err, 1, size);
    stream->n_columns = n_columns;
    if (from->all_rows_filter != NULL)
    {
        stream->filtered = from->layer;
        if (OGR_L_SetAttributeFilter(from->layer, from->all_rows_filter) !=
            OGRERR_NONE)
            return oj_lane_leave_to_gdal(err);
    }
    snprintf(rows, sizeof rows, "MAX_FEATURES_IN_BATCH=%lld",
             (long long)(from->batch_rows < MOST_ROWS ? from->batch_rows
                                                      : MOST_ROWS));
    return OGR_L_GetArrowStream(from->layer, &stream->stream, options) &&
                   find_wanted_columns_of_stream(stream, from)
               ? OJ_OK
               : oj_lane_leave_to_gdal(err);
}

/* ---- chunks -------------------------------------------------------------- */

/* GeoPackage's stream (seen in GDAL 3.6) returns empty chunks without end after
 * a corrupt page; its error message is lost, since it is sent from another
 * thread. After this many empty chunks the stream counts as failed. */
#define MAX_EMPTY_CHUNKS 16

/* Returns 0 if the geometries of a chunk are wrong. FlatGeobuf's stream (seen
 * in GDAL 3.10) lets later geometries overwrite each other if the layer has
 * rows without geometry; this shows as a WKB of 0 or fewer bytes in a row that
 * is not NULL. */
static int are_geometry_bytes_sound(const struct oj_chunk *chunk)
{
    const struct oj_column_view *column = &chunk->column[OJ_CHUNK_GEOMETRY];
    int64_t n;
    for (int64_t i = 0; i < chunk->n_rows; i++)
    {
        if (oj_column_has_value(column, i))
        {
            (void)oj_column_bytes(column, i, &n);
            if (n <= 0)
                return 0;
        }
    }
    return 1;
}

static void view_array_columns_in_chunk(const struct oj_arrow_stream *stream,
                                        const struct ArrowArray *array,
                                        struct oj_chunk *chunk)
{
    for (int c = 0; c < stream->n_columns; c++)
    {
        struct oj_column_view *view = &chunk->column[c];
        const struct ArrowArray *child;
        if (stream->column[c].child < 0)
            continue;
        child = array->children[stream->column[c].child];
        view->format = stream->column[c].format;
        view->bits = child->null_count != 0 ? child->buffers[0] : NULL;
        view->values = child->buffers[1];
        view->bytes = child->n_buffers > 2 && child->buffers[2] != NULL
                          ? child->buffers[2]
                          : "";
        view->first = array->offset + child->offset;
    }
}

static void free_array(void *owner)
{
    struct ArrowArray *array = owner;
    if (array->release != NULL)
        array->release(array);
    oj_free(array);
}

/* Reads one chunk, which may be empty; *out is NULL at the end. On OJ_ERR_IO,
 * *text is the message of the driver. */
static oj_status read_arrow_array_as_chunk(struct oj_arrow_stream *stream,
                                           struct oj_chunk **out,
                                           const char **text,
                                           struct oj_error *err)
{
    struct ArrowArray *array;
    oj_status status = OJ_OK;
    *out = NULL;
    OJ_NEW_ZEROED(array, 1, err);
    if (stream->stream.get_next(&stream->stream, array) != 0)
    {
        array->release = NULL;
        *text = stream->stream.get_last_error(&stream->stream);
        status = oj_fail(err, OJ_ERR_IO,
                         "the driver's Arrow stream ended before the last row: "
                         "copy the layer with ogr2ogr");
    }
    else if (array->release != NULL)
        status = oj_chunk_new(stream->n_columns - OJ_CHUNK_FIELDS, array,
                              free_array, out, err);
    if (*out == NULL)
    {
        free_array(array);
        return status;
    }
    (*out)->n_rows = array->length;
    view_array_columns_in_chunk(stream, array, *out);
    return OJ_OK;
}

static oj_status next_arrow_chunk(void *stream, struct oj_chunk **out,
                                  const char **text, struct oj_error *err)
{
    oj_status status = OJ_ERR_IO;
    *text = NULL;
    for (int n_empty = 0; n_empty <= MAX_EMPTY_CHUNKS; n_empty++)
    {
        struct oj_slice all = {0};
        OJ_TRY(read_arrow_array_as_chunk(stream, out, text, err));
        all.chunk = *out;
        if (*out == NULL ||
            ((*out)->n_rows > 0 && are_geometry_bytes_sound(*out)))
            return OJ_OK;
        status = (*out)->n_rows > 0 ? OJ_ERR_UNSUPPORTED : OJ_ERR_IO;
        *out = NULL;
        oj_slice_free(&all);
        if (status == OJ_ERR_UNSUPPORTED)
            break;
    }
    *text = status == OJ_ERR_UNSUPPORTED
                ? "the driver mixes up rows without geometry"
                : "the driver has no more rows but is not at the end, so the "
                  "file is broken: copy or make it again";
    return oj_fail(err, status, "%s", *text);
}

const struct oj_lane oj_arrow_lane = {open_stream,  0, next_arrow_chunk,
                                      close_stream, 0, 0};

#endif
