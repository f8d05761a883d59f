#include "oj_flatgeobuf_write.h"

#include "../arrays/oj_chunk.h"
#include "../arrays/oj_wkb.h"
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

/* Most bytes of a feature. */
#define MOST_BYTES 2147483647LL

/* Of rows that wait for their order, in memory. */
#define MOST_KEPT (INT64_C(256) << 20)

/* What GDAL does with a row without geometry. */
enum empty_row
{
    EMPTY_LEFT_OUT,
    EMPTY_KEPT,
    EMPTY_REFUSED
};

struct oj_flatgeobuf_writer
{
    struct oj_fgb_bytes header;
    int64_t count_at, envelope_at; /* in the header; 0: not there */
    int type;                      /* of all rows, as in WKB; 0: any */
    int has_z, has_m, has_index;
    enum empty_row empty_row;

    int file, n_threads;
    struct oj_fgb_unsorted rows; /* without index: counts and box alone */
};

/* ---- header ----------------------------------------------------------------
 */

/* Two rows, the second without geometry. 0: no. */
static int write_template_rows(struct oj_flatgeobuf_writer *w, OGRLayerH layer)
{
    static const char *const wkt[] = {"POINT (0 0)",
                                      "POINT (0 0)",
                                      "LINESTRING (0 0,1 1)",
                                      "POLYGON ((0 0,1 0,1 1,0 0))",
                                      "MULTIPOINT ((0 0))",
                                      "MULTILINESTRING ((0 0,1 1))",
                                      "MULTIPOLYGON (((0 0,1 0,1 1,0 0)))",
                                      "GEOMETRYCOLLECTION (POINT (0 0))"};
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    OGRGeometryH geometry = NULL;
    int is_written = 0, type = w->type % 1000;
    if (type < (int)(sizeof wkt / sizeof wkt[0]))
    {
        char text[40], *at = text;
        CPLStrlcpy(text, wkt[type], sizeof text);
        (void)OGR_G_CreateFromWkt(&at, NULL, &geometry);
    }
    if (geometry != NULL)
    {
        OGR_G_Set3D(geometry, w->has_z);
        OGR_G_SetMeasured(geometry, w->has_m);
        OGR_F_SetGeometryDirectly(feature, geometry);
        is_written = OGR_L_CreateFeature(layer, feature) == OGRERR_NONE;
    }
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
    is_made = is_made && write_template_rows(w, copy);
    GDALClose(dataset);
    return is_made;
}

/* Takes the header from the bytes of the template, and where in it stands what
 * rows decide. OJ_ERR_UNSUPPORTED: it is not as expected. */
static oj_status parse_template_header(struct oj_flatgeobuf_writer *w,
                                       const uint8_t *bytes, int64_t n,
                                       struct oj_error *err)
{
    struct oj_flatbuffer header = {bytes + 12, 0, 0};
    struct oj_flat_table table;
    const uint8_t *count, *node_size, *envelope;
    int64_t n_envelope, n_rows;
    if (n > 12 && bytes[3] == 3 && oj_le32(bytes + 8) <= n - 12)
        header.size = oj_le32(bytes + 8);
    if (!oj_flatbuffer_root(&header, &table))
        return oj_leave_to_gdal(err);
    envelope = oj_flatbuffer_vector(&header, &table, OJ_FGB_HEADER_ENVELOPE, 8,
                                    &n_envelope);
    count =
        oj_flatbuffer_field(&header, &table, OJ_FGB_HEADER_FEATURES_COUNT, 8);
    node_size =
        oj_flatbuffer_field(&header, &table, OJ_FGB_HEADER_INDEX_NODE_SIZE, 2);
    w->has_index = node_size == NULL || oj_le16(node_size) != 0;
    n_rows = count != NULL ? (int64_t)oj_le64(count) : 0;
    /* Without a count nobody knows what becomes of empty rows. */
    if (header.is_broken || (n_rows != 1 && n_rows != 2) ||
        (node_size != NULL && w->has_index &&
         oj_le16(node_size) != OJ_FGB_NODE_SIZE))
        return oj_leave_to_gdal(err);
    w->count_at = count - bytes;
    w->envelope_at = n_envelope == 4 ? envelope - bytes : 0;
    if (n_rows == 2)
        w->empty_row = EMPTY_KEPT;
    w->header.n = 12 + header.size;
    OJ_TRY(oj_reserve(&w->header.at, 0, w->header.n, &w->header.cap, 1, err));
    memcpy(w->header.at, bytes, (size_t)w->header.n);
    return OJ_OK;
}

static oj_status read_template(struct oj_flatgeobuf_writer *w, OGRLayerH layer,
                               const struct oj_flatgeobuf_file *file,
                               struct oj_error *err)
{
    char path[80];
    vsi_l_offset n = 0;
    const GByte *bytes = NULL;
    oj_status status;
    CPLsnprintf(path, sizeof path, "/vsimem/ogrjoin_%p.fgb", (void *)w);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (make_template(w, layer, file, path))
        bytes = VSIGetMemFileBuffer(path, &n, FALSE);
    CPLPopErrorHandler();
    CPLErrorReset();
    status = bytes != NULL ? parse_template_header(w, bytes, (int64_t)n, err)
                           : oj_leave_to_gdal(err);
    VSIUnlink(path);
    return status;
}

/* ---- open and close --------------------------------------------------------
 */

static oj_status fail_write(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "cannot write: %s", strerror(errno));
}

static oj_status begin_file(struct oj_flatgeobuf_writer *w, const char *path,
                            struct oj_error *err)
{
    w->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (w->file < 0)
        return fail_write(err);
    if (!w->has_index)
        return OJ_OK;
    OJ_TRY(oj_temporary_file_open(path, "rows", &w->rows.rows, err));
    return oj_temporary_file_open(path, "rows", &w->rows.nodes, err);
}

oj_status oj_flatgeobuf_write_open(const struct oj_flatgeobuf_file *file,
                                   OGRLayerH layer,
                                   struct oj_flatgeobuf_writer **out,
                                   struct oj_error *err)
{
    OGRwkbGeometryType type = OGR_L_GetGeomType(layer);
    struct oj_flatgeobuf_writer *w;
    oj_status status;
    *out = NULL;
    OJ_NEW_ZEROED(w, 1, err);
    w->file = -1;
    w->n_threads = file->n_threads;
    w->rows.most_kept = MOST_KEPT;
    w->rows.box[0] = w->rows.box[1] = (double)INFINITY;
    w->rows.box[2] = w->rows.box[3] = (double)-INFINITY;
    w->has_z = OGR_GT_HasZ(type);
    w->has_m = OGR_GT_HasM(type);
    if (OGR_GT_Flatten(type) != wkbUnknown)
        w->type = (int)OGR_GT_Flatten(type) + 1000 * w->has_z + 2000 * w->has_m;
    status = read_template(w, layer, file, err);
    if (status == OJ_OK)
        status = begin_file(w, file->path, err);
    if (status == OJ_OK)
        *out = w;
    else
        oj_flatgeobuf_write_close(w);
    return status == OJ_ERR_UNSUPPORTED ? OJ_OK : status;
}

void oj_flatgeobuf_write_close(struct oj_flatgeobuf_writer *w)
{
    if (w == NULL)
        return;
    if (w->file >= 0)
        close(w->file);
    oj_free(w->header.at);
    oj_fgb_unsorted_free(&w->rows);
    oj_free(w);
}

/* ---- bytes ----------------------------------------------------------------
 */

oj_status oj_fgb_room(struct oj_fgb_bytes *to, int64_t n, struct oj_error *err)
{
    if (n > MOST_BYTES)
        return oj_fail(err, OJ_ERR_LIMIT, "a feature takes more than 2 GiB");
    return oj_reserve(&to->at, to->n, to->n + n, &to->cap, 1, err);
}

static void set_uint16(uint8_t *to, int64_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static void set_uint32(uint8_t *to, int64_t value)
{
    set_uint16(to, value);
    set_uint16(to + 2, value >> 16);
}

/* n zero bytes, and more before them, until n_before bytes after the first is a
 * multiple of align. */
static oj_status grow_aligned(struct oj_fgb_bytes *to, int64_t n,
                              int64_t n_before, int64_t align, int64_t *at,
                              struct oj_error *err)
{
    int64_t pad = (align - (to->n + n_before) % align) % align;
    OJ_TRY(oj_fgb_room(to, pad + n, err));
    memset(to->at + to->n, 0, (size_t)(pad + n));
    *at = to->n + pad;
    to->n += pad + n;
    return OJ_OK;
}

/* A table with these fields, if any, 4 bytes each; place[slot] is where the
 * field is. */
static oj_status put_flatbuffer_table(struct oj_fgb_bytes *to, const int *slots,
                                      int n_slots, int64_t *table,
                                      int64_t *place, struct oj_error *err)
{
    int last = n_slots > 0 ? slots[n_slots - 1] : -1;
    int64_t vtable;
    OJ_TRY(grow_aligned(to, 4 + 2 * (last + 1), 4 + 2 * (last + 1), 4, &vtable,
                        err));
    set_uint16(to->at + vtable, 4 + 2 * (last + 1));
    set_uint16(to->at + vtable + 2, 4 + 4 * n_slots);
    for (int i = 0; i < n_slots; i++)
        set_uint16(to->at + vtable + 4 + 2 * slots[i], 4 + 4 * i);
    OJ_TRY(grow_aligned(to, 4 + 4 * n_slots, 0, 4, table, err));
    set_uint32(to->at + *table, *table - vtable);
    for (int i = 0; i < n_slots; i++)
        place[slots[i]] = *table + 4 + 4 * i;
    return OJ_OK;
}

/* A vector of n elements that the field at place points at, unless it is 0;
 * *at: the first, or 0. */
static oj_status put_flatbuffer_vector(struct oj_fgb_bytes *to, int64_t place,
                                       int64_t n, int size, int64_t *at,
                                       struct oj_error *err)
{
    int64_t vector;
    *at = 0;
    if (place == 0)
        return OJ_OK;
    OJ_TRY(grow_aligned(to, 4 + n * size, 4, size > 4 ? 8 : 4, &vector, err));
    set_uint32(to->at + place, vector - place);
    set_uint32(to->at + vector, n);
    *at = vector + 4;
    return OJ_OK;
}

/* ---- geometries ------------------------------------------------------------
 */

static int wkb_type_code(const uint8_t *wkb)
{
    return (int)oj_le32(wkb + 1);
}

/* The vertices of one geometry on their way from WKB. */
struct vertex_run
{
    const uint8_t *from;
    uint8_t *to;      /* the bytes */
    int64_t xy, z, m; /* where they begin; 0: nowhere */
    int64_t ends;     /* where the next one goes; 0: nowhere */
    int64_t n;        /* vertices so far */
};

static int64_t read_vertex_count(struct vertex_run *v)
{
    v->from += 4;
    return oj_le32(v->from - 4);
}

static void put_vertices(struct vertex_run *v, int code, int64_t n)
{
    int has_z = code / 1000 % 2 == 1, has_m = code / 1000 >= 2;
    int size = 8 * (2 + has_z + has_m);
    for (int64_t i = v->n; i < v->n + n; i++, v->from += size)
    {
        memcpy(v->to + v->xy + 16 * i, v->from, 16);
        if (v->z != 0 && has_z)
            memcpy(v->to + v->z + 8 * i, v->from + 16, 8);
        if (v->m != 0 && has_m)
            memcpy(v->to + v->m + 8 * i, v->from + size - 8, 8);
    }
    v->n += n;
}

static void end_run(struct vertex_run *v)
{
    if (v->ends == 0)
        return;
    set_uint32(v->to + v->ends, v->n);
    v->ends += 4;
}

/* Those of a geometry without parts. Members that are empty are left out, rings
 * of polygons are not. */
static void put_runs(struct vertex_run *v)
{
    int code = wkb_type_code(v->from), type = code % 1000;
    int64_t n;
    v->from += 5;
    if (type == OJ_FGB_POINT)
    {
        struct oj_wkb_walk point = {.at = v->from - 5};
        oj_wkb_pass(&point);
        put_vertices(v, code, point.n_vertices);
        v->from = point.at;
        return;
    }
    n = read_vertex_count(v);
    if (type == OJ_FGB_LINE || type == OJ_FGB_CIRCULAR)
    {
        put_vertices(v, code, n);
        if (n > 0)
            end_run(v);
        return;
    }
    for (int64_t i = 0; i < n; i++)
    {
        if (type != OJ_FGB_POLYGON && type != OJ_FGB_TRIANGLE)
        {
            put_runs(v);
            continue;
        }
        put_vertices(v, code, read_vertex_count(v));
        end_run(v);
    }
}

static oj_status put_geometry(struct oj_fgb_encoder *encoder,
                              const uint8_t *wkb, int64_t n_vertices,
                              int is_part, int64_t *table,
                              struct oj_error *err);

/* The n members at wkb that are not empty. */
static oj_status put_parts(struct oj_fgb_encoder *encoder, const uint8_t *wkb,
                           int64_t n, int64_t place, struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->bytes;
    int64_t first, at;
    OJ_TRY(put_flatbuffer_vector(to, place, n, 4, &first, err));
    at = first;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_wkb_walk part = {.at = wkb};
        int64_t table;
        oj_wkb_pass(&part);
        if (part.n_vertices > 0)
        {
            OJ_TRY(put_geometry(encoder, wkb, part.n_vertices, 1, &table, err));
            set_uint32(to->at + at, table - at);
            at += 4;
        }
        wkb = part.at;
    }
    set_uint32(to->at + first - 4, (at - first) / 4);
    return OJ_OK;
}

static oj_status put_vectors(struct oj_fgb_bytes *to, const uint8_t *wkb,
                             int64_t n_vertices, int64_t n_ends,
                             const int64_t *place, struct oj_error *err)
{
    struct vertex_run v = {.from = wkb};
    int64_t ends;
    OJ_TRY(
        put_flatbuffer_vector(to, place[OJ_FGB_ENDS], n_ends, 4, &v.ends, err));
    OJ_TRY(put_flatbuffer_vector(to, place[OJ_FGB_XY], 2 * n_vertices, 8, &v.xy,
                                 err));
    OJ_TRY(
        put_flatbuffer_vector(to, place[OJ_FGB_Z], n_vertices, 8, &v.z, err));
    OJ_TRY(
        put_flatbuffer_vector(to, place[OJ_FGB_M], n_vertices, 8, &v.m, err));
    v.to = to->at;
    ends = v.ends;
    put_runs(&v);
    if (ends != 0)
        set_uint32(to->at + ends - 4, (v.ends - ends) / 4);
    return OJ_OK;
}

/* One that has vertices. */
static oj_status put_geometry(struct oj_fgb_encoder *encoder,
                              const uint8_t *wkb, int64_t n_vertices,
                              int is_part, int64_t *table, struct oj_error *err)
{
    int type = wkb_type_code(wkb) % 1000, slots[OJ_FGB_GEOMETRY_FIELDS];
    int has_parts = type > OJ_FGB_MULTILINE && type != OJ_FGB_CIRCULAR &&
                    type != OJ_FGB_TIN && type != OJ_FGB_TRIANGLE;
    int has_ends = type == OJ_FGB_POLYGON || type == OJ_FGB_MULTILINE ||
                   type == OJ_FGB_TIN || type == OJ_FGB_TRIANGLE;
    int64_t place[OJ_FGB_GEOMETRY_FIELDS] = {0};
    int64_t n = type != OJ_FGB_POINT ? oj_le32(wkb + 5) : 0;
    int n_slots = 0;
    /* One ring has all vertices; GDAL wants the end of one line. */
    if (has_ends && (n > 1 || type == OJ_FGB_MULTILINE))
        slots[n_slots++] = OJ_FGB_ENDS;
    if (!has_parts)
        slots[n_slots++] = OJ_FGB_XY;
    if (!has_parts && encoder->writer->has_z)
        slots[n_slots++] = OJ_FGB_Z;
    if (!has_parts && encoder->writer->has_m)
        slots[n_slots++] = OJ_FGB_M;
    if (is_part || encoder->writer->type == 0 || has_parts)
        slots[n_slots++] = OJ_FGB_TYPE;
    if (has_parts)
        slots[n_slots++] = OJ_FGB_PARTS;
    OJ_TRY(put_flatbuffer_table(&encoder->bytes, slots, n_slots, table, place,
                                err));
    if (place[OJ_FGB_TYPE] != 0)
        encoder->bytes.at[place[OJ_FGB_TYPE]] = (uint8_t)type;
    return has_parts
               ? put_parts(encoder, wkb + 9, n, place[OJ_FGB_PARTS], err)
               : put_vectors(&encoder->bytes, wkb, n_vertices, n, place, err);
}

/* ---- rows ------------------------------------------------------------------
 */

void oj_flatgeobuf_begin(const struct oj_flatgeobuf_writer *w,
                         struct oj_fgb_encoder *encoder, int uses_ogr)
{
    encoder->writer = w;
    encoder->uses_ogr = uses_ogr;
    encoder->needs_ogr = 0;
    encoder->bytes.n = encoder->n_rows = 0;
}

void oj_fgb_encoder_free(struct oj_fgb_encoder *encoder)
{
    oj_free(encoder->bytes.at);
    oj_free(encoder->node);
    memset(encoder, 0, sizeof *encoder);
}

/* Arcs go beyond their vertices. */
static oj_status find_box_of_curves(double *to, const uint8_t *wkb, int64_t n,
                                    struct oj_error *err)
{
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

/* OJ_OK, or why GDAL would refuse the row. */
static oj_status check_row(const struct oj_fgb_encoder *encoder,
                           const uint8_t *wkb, struct oj_error *err)
{
    const struct oj_flatgeobuf_writer *w = encoder->writer;
    if (encoder->is_empty && w->empty_row == EMPTY_REFUSED)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "NULL geometry not supported with spatial index");
    if (!encoder->is_empty && w->type != 0 && wkb_type_code(wkb) != w->type)
        return oj_fail(err, OJ_ERR_DATA,
                       "ICreateFeature: Mismatched geometry type");
    return OJ_OK;
}

/* A feature with a geometry of so many vertices, 0: none, up to the count of
 * its properties. */
static oj_status begin_feature(struct oj_fgb_encoder *encoder,
                               const uint8_t *wkb, int64_t n_vertices,
                               struct oj_error *err)
{
    static const int fields[] = {OJ_FGB_FEATURE_GEOMETRY,
                                 OJ_FGB_FEATURE_PROPERTIES};
    struct oj_fgb_bytes *to = &encoder->bytes;
    int64_t place[2] = {0}, at, table;
    int first = n_vertices > 0 ? 0 : 1;
    OJ_TRY(grow_aligned(to, 8, 0, 4, &at, err));
    OJ_TRY(put_flatbuffer_table(to, fields + first, 2 - first, &table, place,
                                err));
    set_uint32(to->at + at + 4, table - at - 4);
    if (n_vertices > 0)
    {
        OJ_TRY(put_geometry(encoder, wkb, n_vertices, 0, &table, err));
        set_uint32(to->at + place[0], table - place[0]);
    }
    OJ_TRY(put_flatbuffer_vector(to, place[1], 0, 1, &at, err));
    encoder->properties = at - 4;
    return OJ_OK;
}

static oj_status begin_wkb_feature(struct oj_fgb_encoder *encoder,
                                   const uint8_t *wkb, int64_t n,
                                   struct oj_error *err)
{
    double least = (double)INFINITY,
           box[] = {least, -least, least, -least, least, -least};
    double *to = encoder->node[encoder->n_rows].box;
    struct oj_wkb_walk walk = {.at = wkb, .box = box};
    if (wkb != NULL)
        oj_wkb_pass(&walk);
    encoder->is_empty = walk.n_vertices == 0;
    encoder->needs_ogr |= walk.has_curves && !encoder->uses_ogr;
    OJ_TRY(check_row(encoder, wkb, err));
    encoder->is_left_out =
        encoder->needs_ogr ||
        (encoder->is_empty && encoder->writer->empty_row == EMPTY_LEFT_OUT);
    if (encoder->is_left_out)
        return OJ_OK;
    for (int i = 0; i < 4; i++)
        to[i] = box[i % 2 * 2 + i / 2];
    if (walk.has_curves)
        OJ_TRY(find_box_of_curves(to, wkb, n, err));
    return begin_feature(encoder, wkb, walk.n_vertices, err);
}

/* The same, of a plain point, after the first one. */
static oj_status begin_point(struct oj_fgb_encoder *encoder, const uint8_t *xy,
                             struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->bytes;
    double *box = encoder->node[encoder->n_rows].box;
    int n = encoder->n_head;
    if (to->cap - to->n < n + 4)
        OJ_TRY(oj_fgb_room(to, n + 4, err));
    memcpy(to->at + to->n, encoder->head, (size_t)n);
    memcpy(to->at + to->n + n - 16, xy, 16);
    memcpy(box, xy, 16);
    memcpy(box + 2, xy, 16);
    encoder->properties = to->n + n;
    to->n += n + 4;
    return OJ_OK;
}

oj_status oj_fgb_begin_row(struct oj_fgb_encoder *encoder, const uint8_t *wkb,
                           int64_t n, struct oj_error *err)
{
    const struct oj_flatgeobuf_writer *w = encoder->writer;
    const double *box;
    int is_plain = wkb != NULL && wkb_type_code(wkb) == OJ_FGB_POINT &&
                   !w->has_z && !w->has_m && w->type <= OJ_FGB_POINT &&
                   !isnan(oj_wkb_double(wkb + 5)) &&
                   !isnan(oj_wkb_double(wkb + 13));
    if (encoder->n_rows == encoder->cap_nodes)
        OJ_ROOM(encoder->node, encoder->n_rows, encoder->n_rows + 1,
                encoder->cap_nodes, err);
    encoder->start = encoder->bytes.n;
    encoder->is_empty = encoder->is_left_out = 0;
    OJ_TRY(is_plain && encoder->n_head > 0
               ? begin_point(encoder, wkb + 5, err)
               : begin_wkb_feature(encoder, wkb, n, err));
    box = encoder->node[encoder->n_rows].box;
    encoder->is_finite = encoder->is_empty || encoder->is_left_out ||
                         (isfinite(box[0]) && isfinite(box[1]) &&
                          isfinite(box[2]) && isfinite(box[3]));
    n = encoder->properties - encoder->start;
    if (is_plain && encoder->n_head == 0 && n <= (int64_t)sizeof encoder->head)
    {
        memcpy(encoder->head, encoder->bytes.at + encoder->start, (size_t)n);
        encoder->n_head = (int)n;
    }
    return OJ_OK;
}

oj_status oj_fgb_add_bytes(struct oj_fgb_encoder *encoder, int column,
                           const void *bytes, int64_t n, struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->bytes;
    uint8_t size[4];
    if (n > MOST_BYTES)
        return oj_fail(err, OJ_ERR_LIMIT, "a value takes more than 2 GiB");
    set_uint32(size, n);
    OJ_TRY(oj_fgb_add_number(encoder, column, size, 4, err));
    if (to->cap - to->n < n)
        OJ_TRY(oj_fgb_room(to, n, err));
    if (n > 0)
        memcpy(to->at + to->n, bytes, (size_t)n);
    to->n += n;
    return OJ_OK;
}

oj_status oj_fgb_end_row(struct oj_fgb_encoder *encoder, struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->bytes;
    int64_t n = to->n - encoder->properties - 4;
    if (to->n - encoder->start > MOST_BYTES - 8)
        return oj_fail(err, OJ_ERR_LIMIT, "a feature takes more than 2 GiB");
    set_uint32(to->at + encoder->properties, n);
    if (to->cap - to->n < 8)
        OJ_TRY(oj_fgb_room(to, 8, err));
    for (; to->n % 8 != 0; to->n++)
        to->at[to->n] = 0;
    n = to->n - encoder->start;
    set_uint32(to->at + encoder->start, n - 4);
    encoder->node[encoder->n_rows++].offset = (uint64_t)n;
    return OJ_OK;
}

oj_status oj_flatgeobuf_write_rows(struct oj_flatgeobuf_writer *w,
                                   const struct oj_fgb_encoder *encoder,
                                   struct oj_error *err)
{
    const struct oj_fgb_bytes *bytes = &encoder->bytes;
    if (encoder->n_rows == 0)
        return OJ_OK;
    for (int64_t i = 0; i < encoder->n_rows; i++)
        oj_fgb_grow_box(w->rows.box, encoder->node[i].box);
    if (w->has_index)
        return oj_fgb_unsorted_add(&w->rows, bytes->at, bytes->n, encoder->node,
                                   encoder->n_rows, err);
    OJ_TRY(oj_fgb_write_at(w->file, w->header.n + w->rows.n.bytes, bytes->at,
                           bytes->n, err));
    w->rows.n.bytes += bytes->n;
    w->rows.n.rows += encoder->n_rows;
    return OJ_OK;
}

/* ---- finish ----------------------------------------------------------------
 */

oj_status oj_flatgeobuf_write_finish(struct oj_flatgeobuf_writer *w,
                                     int *has_rows, struct oj_error *err)
{
    uint8_t *count = w->header.at + w->count_at;
    int file = w->file;
    *has_rows = w->rows.n.rows > 0;
    if (!*has_rows)
        return OJ_OK;
    for (int i = 0; i < 8; i++)
        count[i] = (uint8_t)((uint64_t)w->rows.n.rows >> (8 * i));
    if (w->envelope_at > 0)
        memcpy(w->header.at + w->envelope_at, w->rows.box, sizeof w->rows.box);
    OJ_TRY(oj_fgb_write_at(file, 0, w->header.at, w->header.n, err));
    if (w->has_index)
        OJ_TRY(oj_fgb_sort(&w->rows, file, w->header.n, w->n_threads, err));
    w->file = -1;
    return close(file) == 0 ? OJ_OK : fail_write(err);
}
