#include "oj_flatgeobuf_write.h"

#include "../base/oj_array.h"
#include "oj_flatbuffer.h"
#include "oj_flatgeobuf_format.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

/* What GDAL does with a row without geometry. */
enum empty_row
{
    EMPTY_LEFT_OUT,
    EMPTY_KEPT,
    EMPTY_REFUSED
};

struct oj_flatgeobuf_writer
{
    char *path, *unsorted_path;
    struct oj_fgb_bytes header;
    int64_t count_at, envelope_at; /* in the header; 0: not there */
    int type;                      /* of all rows, as in WKB; 0: any */
    int has_index;
    enum empty_row empty_row;

    int file, n_threads; /* with index: of the rows alone */
    struct oj_fgb_layout layout;
    struct oj_fgb_unsorted rows; /* without index: counts and box alone */
};

/* ---- header ----------------------------------------------------------------
 */

/* A geometry that a layer of the type takes; NULL: none is known. */
static OGRGeometryH make_example(OGRwkbGeometryType type)
{
    static const char *const wkt[] = {"POINT (0 0)",
                                      "POINT (0 0)",
                                      "LINESTRING (0 0,1 1)",
                                      "POLYGON ((0 0,1 0,1 1,0 0))",
                                      "MULTIPOINT ((0 0))",
                                      "MULTILINESTRING ((0 0,1 1))",
                                      "MULTIPOLYGON (((0 0,1 0,1 1,0 0)))",
                                      "GEOMETRYCOLLECTION (POINT (0 0))"};
    int flat = (int)OGR_GT_Flatten(type);
    char *text, *at;
    OGRGeometryH geometry = NULL;
    if (flat < 0 || flat >= (int)(sizeof wkt / sizeof wkt[0]))
        return NULL;
    at = text = CPLStrdup(wkt[flat]);
    (void)OGR_G_CreateFromWkt(&at, NULL, &geometry);
    CPLFree(text);
    if (geometry != NULL)
    {
        OGR_G_Set3D(geometry, OGR_GT_HasZ(type));
        OGR_G_SetMeasured(geometry, OGR_GT_HasM(type));
    }
    return geometry;
}

/* Two rows, the second without geometry. 0: no. */
static int write_examples(struct oj_flatgeobuf_writer *w, OGRLayerH layer)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    OGRGeometryH geometry = make_example(OGR_L_GetGeomType(layer));
    OGRFeatureH feature;
    int is_written = 0;
    if (geometry == NULL)
        return 0;
    feature = OGR_F_Create(defn);
    OGR_F_SetGeometryDirectly(feature, geometry);
    is_written = OGR_L_CreateFeature(layer, feature) == OGRERR_NONE;
    OGR_F_SetGeometryDirectly(feature, NULL);
    if (is_written && OGR_L_CreateFeature(layer, feature) != OGRERR_NONE)
        w->empty_row = EMPTY_REFUSED;
    OGR_F_Destroy(feature);
    return is_written;
}

/* A file of the layer's definition at path. 0: no. */
static int make_template(struct oj_flatgeobuf_writer *w, OGRLayerH layer,
                         const struct oj_flatgeobuf_file *file,
                         const char *path)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    GDALDatasetH dataset = GDALCreate(GDALGetDriverByName("FlatGeobuf"), path,
                                      0, 0, 0, GDT_Unknown, NULL);
    OGRLayerH copy = NULL;
    int is_made;
    if (dataset != NULL)
        copy = GDALDatasetCreateLayer(dataset, OGR_L_GetName(layer), file->crs,
                                      OGR_L_GetGeomType(layer),
                                      file->layer_options);
    is_made = copy != NULL;
    for (int i = 0; is_made && i < OGR_FD_GetFieldCount(defn); i++)
        is_made = OGR_L_CreateField(copy, OGR_FD_GetFieldDefn(defn, i), 1) ==
                  OGRERR_NONE;
    is_made = is_made && write_examples(w, copy);
    GDALClose(dataset);
    return is_made;
}

/* Takes the header from the bytes of the template, and where in it stands what
 * rows decide. *fits is 0 when it is not as expected. */
static oj_status take_header(struct oj_flatgeobuf_writer *w,
                             const uint8_t *bytes, int64_t n, int *fits,
                             struct oj_error *err)
{
    struct oj_flatbuffer header = {0};
    struct oj_flat_table table;
    const uint8_t *count, *node_size, *envelope;
    int64_t n_envelope, n_rows = 0;
    *fits = n > 12 && bytes[3] == 3 && oj_le32(bytes + 8) <= n - 12;
    if (!*fits)
        return OJ_OK;
    header.bytes = bytes + 12;
    header.size = oj_le32(bytes + 8);
    *fits = oj_flatbuffer_root(&header, &table);
    if (!*fits)
        return OJ_OK;
    envelope = oj_flatbuffer_vector(&header, &table, OJ_FGB_HEADER_ENVELOPE, 8,
                                    &n_envelope);
    count =
        oj_flatbuffer_field(&header, &table, OJ_FGB_HEADER_FEATURES_COUNT, 8);
    node_size =
        oj_flatbuffer_field(&header, &table, OJ_FGB_HEADER_INDEX_NODE_SIZE, 2);
    w->has_index = node_size == NULL || oj_le16(node_size) != 0;
    if (count != NULL)
    {
        w->count_at = count - bytes;
        n_rows = (int64_t)oj_le64(count);
    }
    if (n_envelope == 4)
        w->envelope_at = envelope - bytes;
    if (n_rows == 2)
        w->empty_row = EMPTY_KEPT;
    /* Without a count nobody knows what becomes of empty rows. */
    *fits = !header.is_broken && (n_rows == 1 || n_rows == 2) &&
            (node_size == NULL || oj_le16(node_size) == 0 ||
             oj_le16(node_size) == OJ_FGB_NODE_SIZE);
    w->header.n = 12 + header.size;
    OJ_TRY(oj_reserve(&w->header.at, 0, w->header.n, &w->header.cap, 1, err));
    memcpy(w->header.at, bytes, (size_t)w->header.n);
    return OJ_OK;
}

static oj_status read_template(struct oj_flatgeobuf_writer *w, OGRLayerH layer,
                               const struct oj_flatgeobuf_file *file, int *fits,
                               struct oj_error *err)
{
    char path[80];
    vsi_l_offset n = 0;
    const GByte *bytes;
    oj_status status = OJ_OK;
    CPLsnprintf(path, sizeof path, "/vsimem/ogrjoin_%p.fgb", (void *)w);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    *fits = make_template(w, layer, file, path);
    CPLPopErrorHandler();
    CPLErrorReset();
    bytes = *fits ? VSIGetMemFileBuffer(path, &n, FALSE) : NULL;
    *fits = bytes != NULL;
    if (bytes != NULL)
        status = take_header(w, bytes, (int64_t)n, fits, err);
    VSIUnlink(path);
    return status;
}

/* ---- open and close --------------------------------------------------------
 */

static oj_status fail_write(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "cannot write: %s", strerror(errno));
}

static int open_file(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static oj_status begin(struct oj_flatgeobuf_writer *w, const char *path,
                       struct oj_error *err)
{
    w->path = CPLStrdup(path);
    w->unsorted_path = CPLStrdup(CPLSPrintf("%s.unsorted", path));
    w->file = open_file(w->has_index ? w->unsorted_path : path);
    if (w->file < 0)
        return fail_write(err);
    w->rows.file = w->file;
    return w->has_index
               ? OJ_OK
               : oj_fgb_write_at(w->file, 0, w->header.at, w->header.n, err);
}

oj_status oj_flatgeobuf_write_open(const struct oj_flatgeobuf_file *file,
                                   OGRLayerH layer,
                                   struct oj_flatgeobuf_writer **out,
                                   struct oj_error *err)
{
    OGRwkbGeometryType type = OGR_L_GetGeomType(layer);
    struct oj_flatgeobuf_writer *w;
    int fits;
    oj_status status;
    *out = NULL;
    OJ_NEW_ZEROED(w, 1, err);
    w->file = -1;
    w->n_threads = file->n_threads;
    w->rows.box[0] = w->rows.box[1] = (double)INFINITY;
    w->rows.box[2] = w->rows.box[3] = (double)-INFINITY;
    w->layout.has_z = OGR_GT_HasZ(type);
    w->layout.has_m = OGR_GT_HasM(type);
    w->layout.is_typed = OGR_GT_Flatten(type) != wkbUnknown;
    if (w->layout.is_typed)
        w->type = (int)OGR_GT_Flatten(type) + 1000 * OGR_GT_HasZ(type) +
                  2000 * OGR_GT_HasM(type);
    status = read_template(w, layer, file, &fits, err);
    if (status == OJ_OK && fits)
        status = begin(w, file->path, err);
    if (status == OJ_OK && fits)
        *out = w;
    else
        oj_flatgeobuf_write_close(w);
    return status;
}

void oj_flatgeobuf_write_close(struct oj_flatgeobuf_writer *w)
{
    if (w == NULL)
        return;
    if (w->file >= 0)
        close(w->file);
    if (w->unsorted_path != NULL && w->has_index)
        unlink(w->unsorted_path);
    CPLFree(w->path);
    CPLFree(w->unsorted_path);
    oj_free(w->header.at);
    oj_fgb_unsorted_free(&w->rows);
    oj_free(w);
}

/* ---- rows ------------------------------------------------------------------
 */

void oj_flatgeobuf_run_begin(const struct oj_flatgeobuf_writer *w,
                             struct oj_flatgeobuf_run *run)
{
    run->encoder.layout = w->layout;
    run->encoder.properties.n = run->encoder.bytes.n = run->n_rows = 0;
}

void oj_flatgeobuf_run_free(struct oj_flatgeobuf_run *run)
{
    oj_fgb_encoder_free(&run->encoder);
    oj_free(run->node);
    run->node = NULL;
    run->n_rows = run->cap_nodes = 0;
}

/* Arcs go beyond their vertices. */
static oj_status find_box_of_curves(struct oj_flatgeobuf_run *run,
                                    const uint8_t *wkb, int64_t n,
                                    struct oj_error *err)
{
    double *to = run->encoder.latest.box;
    OGRGeometryH geometry = NULL;
    OGREnvelope box;
    if (n > INT_MAX ||
        OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_DATA, "a geometry that OGR cannot read");
    OGR_G_GetEnvelope(geometry, &box);
    OGR_G_DestroyGeometry(geometry);
    to[0] = box.MinX;
    to[1] = box.MinY;
    to[2] = box.MaxX;
    to[3] = box.MaxY;
    return OJ_OK;
}

oj_status oj_flatgeobuf_run_add(const struct oj_flatgeobuf_writer *w,
                                struct oj_flatgeobuf_run *run,
                                const uint8_t *wkb, int64_t n, int *is_empty,
                                int *is_finite, struct oj_error *err)
{
    struct oj_fgb_encoder *encoder = &run->encoder;
    const double *box = encoder->latest.box;
    int64_t n_before = encoder->bytes.n;
    *is_finite = 1;
    OJ_TRY(oj_fgb_encode(encoder, wkb, err));
    *is_empty = !encoder->has_vertices;
    run->needs_ogr |= encoder->has_curves && !run->uses_ogr;
    if (*is_empty && w->empty_row == EMPTY_REFUSED)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "NULL geometry not supported with spatial index");
    if (!*is_empty && w->type != 0 && oj_fgb_wkb_type(wkb) != w->type)
        return oj_fail(err, OJ_ERR_DATA,
                       "ICreateFeature: Mismatched geometry type");
    if (run->needs_ogr || (*is_empty && w->empty_row == EMPTY_LEFT_OUT))
    {
        encoder->bytes.n = n_before;
        return OJ_OK;
    }
    if (encoder->has_curves)
        OJ_TRY(find_box_of_curves(run, wkb, n, err));
    *is_finite = *is_empty || (isfinite(box[0]) && isfinite(box[1]) &&
                               isfinite(box[2]) && isfinite(box[3]));
    OJ_ROOM(run->node, run->n_rows, run->n_rows + 1, run->cap_nodes, err);
    run->node[run->n_rows++] = encoder->latest;
    return OJ_OK;
}

oj_status oj_flatgeobuf_write_run(struct oj_flatgeobuf_writer *w,
                                  struct oj_flatgeobuf_run *run,
                                  struct oj_error *err)
{
    struct oj_fgb_bytes *bytes = &run->encoder.bytes;
    for (int64_t i = 0; i < run->n_rows; i++)
        oj_fgb_grow_box(w->rows.box, run->node[i].box);
    if (w->has_index)
        OJ_TRY(oj_fgb_unsorted_add(&w->rows, bytes->at, bytes->n, run->node,
                                   run->n_rows, err));
    else
    {
        OJ_TRY(oj_fgb_write_at(w->file, w->header.n + w->rows.n_bytes,
                               bytes->at, bytes->n, err));
        w->rows.n_bytes += bytes->n;
        w->rows.n_rows += run->n_rows;
    }
    bytes->n = 0;
    run->n_rows = 0;
    return OJ_OK;
}

/* ---- finish ----------------------------------------------------------------
 */

static void complete_header(struct oj_flatgeobuf_writer *w)
{
    uint8_t *count = w->header.at + w->count_at;
    for (int i = 0; i < 8; i++)
        count[i] = (uint8_t)((uint64_t)w->rows.n_rows >> (8 * i));
    if (w->envelope_at > 0)
        memcpy(w->header.at + w->envelope_at, w->rows.box, sizeof w->rows.box);
}

oj_status oj_flatgeobuf_write_finish(struct oj_flatgeobuf_writer *w,
                                     int *has_rows, struct oj_error *err)
{
    int file = w->file;
    oj_status status;
    *has_rows = w->rows.n_rows > 0;
    if (!*has_rows)
        return OJ_OK;
    complete_header(w);
    if (w->has_index)
        file = open_file(w->path);
    if (file < 0)
        return fail_write(err);
    status = oj_fgb_write_at(file, 0, w->header.at, w->header.n, err);
    if (status == OJ_OK && w->has_index)
        status = oj_fgb_sort(&w->rows, file, w->header.n, w->n_threads, err);
    if (!w->has_index)
        w->file = -1;
    if (close(file) != 0 && status == OJ_OK)
        status = fail_write(err);
    return status;
}
