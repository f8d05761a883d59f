/* Writes the rows of a layer of pairs to a FlatGeobuf file. GDAL makes the
 * layer and the header; rows, their order and the index are made here, as
 * GDAL's driver makes them.
 *
 *   u32 size | u32 root | table Feature | table Geometry, its vectors and parts
 *   | properties
 *
 * Vectors of doubles are aligned to 8 bytes, counted from the size field, as
 * other readers expect.
 *
 * Source: specification of FlatGeobuf, version 3.
 */
#include "../arrays/oj_chunk.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_alloc.h"
#include "../base/oj_new_file.h"
#include "../base/oj_parallel.h"
#include "../flatgeobuf/oj_flatbuffer.h"
#include "../flatgeobuf/oj_flatgeobuf_format.h"
#include "../flatgeobuf/oj_flatgeobuf_read.h"
#include "../flatgeobuf/oj_flatgeobuf_sort.h"
#include "oj_row_lane.h"
#include "oj_row_wkb.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Maximum bytes of a feature. */
#define MOST_BYTES 2147483647LL

/* Maximum bytes of a time as text. */
#define MOST_TIME 80

/* Maximum bytes of unsorted rows in memory; if there are more, all rows go to a
 * temporary file. */
#define MOST_KEPT (INT64_C(256) << 20)

/* Rows per task: some hundred KB. */
#define SLICE_ROWS 4096

/* Slices per thread between two calls of oj_row_cursor_next_places(). */
#define SLICES_AT_ONCE 4

/* How GDAL writes a row without geometry. */
enum empty_row
{
    EMPTY_LEFT_OUT,
    EMPTY_KEPT,
    EMPTY_REFUSED
};

/* A field of the file, in the file's order. */
struct file_field
{
    struct oj_row_column column;
    int n_bytes;   /* bytes of a number in the file; 0: the field is not a
                      number */
    int is_single; /* 1: a float in the file, converted from a double */
};

/* Growing array of bytes. */
struct bytes
{
    uint8_t *at; /* owned */
    int64_t n, cap;
};

/* The rows that one thread encodes, and its buffers. */
struct row_slice
{
    struct oj_layer_geometry wkb;
    OGRFeatureH scratch; /* feature for converting values */

    /* encoded features, padded to multiples of 8 bytes; with an index each is
     * preceded by a struct oj_flatgeobuf_row */
    struct bytes bytes;
    struct oj_flatgeobuf_extent n;
    double box[4]; /* bounding box of all rows of this thread */

    /* The current row: its bounding box, where its first byte is, and where the
     * size of its properties is stored. */
    double row_box[4];
    int64_t start, properties;

    struct oj_rows_written written;
};

struct flatgeobuf_rows
{
    struct oj_row_cursor *cursor;
    int n_fields;
    struct file_field *field; /* [n_fields] */

    struct bytes header;
    /* offsets in the header of row count and envelope; envelope_at 0: the
     * header has no envelope */
    int64_t count_at, envelope_at;
    int type; /* WKB type of all rows; 0: rows may have any
                 type */
    int has_z, has_m, has_index;
    enum empty_row empty_row;

    int file, n_threads;
    /* rows to be sorted; without an index only its counts, box and head are
     * used. The head holds the first bytes of an encoded plain point, up to x
     */
    struct oj_flatgeobuf_unsorted sorted;
    struct row_slice *slice; /* [n_threads] */

    /* The rows that are being encoded. */
    struct oj_row_place *place; /* [n_threads * SLICES_AT_ONCE * SLICE_ROWS] */
    int64_t n_places;
    struct oj_rows_written *written;
};

/* ---- header -------------------------------------------------------------- */

/* Writes two rows, the second one without geometry. Returns 0 on failure. */
static int write_template_rows(struct flatgeobuf_rows *w, OGRLayerH layer)
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

/* Makes a file at path by GDAL's driver, with the definition of layer and two
 * template rows. Returns 0 on failure. */
static int make_template(struct flatgeobuf_rows *w, OGRLayerH layer,
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

/* Copies the header of the template file and finds the parts of it that depend
 * on the rows. Fails with OJ_ERR_UNSUPPORTED if the header is not as
 * expected. */
static oj_status parse_template_header(struct flatgeobuf_rows *w,
                                       const uint8_t *bytes, int64_t n,
                                       struct oj_error *err)
{
    struct oj_flatbuffer header = {bytes + 12, 0, 0};
    struct oj_flat_table table;
    const uint8_t *count, *node_size, *envelope;
    int64_t n_envelope, n_rows;
    if (n > 12 && bytes[3] == 3 && oj_flatbuffer_le32(bytes + 8) <= n - 12)
        header.size = oj_flatbuffer_le32(bytes + 8);
    if (!oj_flatbuffer_root(&header, &table))
        return oj_lane_leave_to_gdal(err);
    envelope = oj_flatbuffer_vector(&header, &table, OJ_FGB_HEADER_ENVELOPE, 8,
                                    &n_envelope);
    count =
        oj_flatbuffer_field(&header, &table, OJ_FGB_HEADER_FEATURES_COUNT, 8);
    node_size =
        oj_flatbuffer_field(&header, &table, OJ_FGB_HEADER_INDEX_NODE_SIZE, 2);
    w->has_index = node_size == NULL || oj_flatbuffer_le16(node_size) != 0;
    n_rows = count != NULL ? (int64_t)oj_flatbuffer_le64(count) : 0;
    /* The template's row count shows how GDAL treats rows without geometry. */
    if (header.is_broken || (n_rows != 1 && n_rows != 2) ||
        (node_size != NULL && w->has_index &&
         oj_flatbuffer_le16(node_size) != OJ_FGB_NODE_SIZE))
        return oj_lane_leave_to_gdal(err);
    w->count_at = count - bytes;
    w->envelope_at = n_envelope == 4 ? envelope - bytes : 0;
    if (n_rows == 2)
        w->empty_row = EMPTY_KEPT;
    w->header.n = 12 + header.size;
    OJ_TRY(oj_reserve(&w->header.at, 0, w->header.n, &w->header.cap, 1, err));
    memcpy(w->header.at, bytes, (size_t)w->header.n);
    return OJ_OK;
}

static oj_status read_template(struct flatgeobuf_rows *w, OGRLayerH layer,
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
                           : oj_lane_leave_to_gdal(err);
    VSIUnlink(path);
    return status;
}

/* ---- bytes --------------------------------------------------------------- */

static oj_status reserve_bytes(struct bytes *to, int64_t n,
                               struct oj_error *err)
{
    return to->cap - to->n >= n
               ? OJ_OK
               : oj_reserve(&to->at, to->n, to->n + n, &to->cap, 1, err);
}

static void set_uint16(uint8_t *to, int64_t value)
{
    memcpy(to, &value, 2); /* little-endian */
}

static void set_uint32(uint8_t *to, int64_t value)
{
    memcpy(to, &value, 4);
}

static void set_empty_box(double *box)
{
    box[0] = box[1] = (double)INFINITY;
    box[2] = box[3] = (double)-INFINITY;
}

/* Appends padding and then n zero bytes; the padding makes (offset of the first
 * of the n bytes) + n_before a multiple of align. Returns this offset.
 * Precondition: the memory is reserved. */
static int64_t grow_aligned(struct bytes *to, int64_t n, int64_t n_before,
                            int64_t align)
{
    int64_t at = to->n + (align - (to->n + n_before) % align) % align;
    memset(to->at + to->n, 0, (size_t)(at + n - to->n));
    to->n = at + n;
    return at;
}

/* Appends a FlatBuffers table that has the fields in slots[], of 4 bytes each
 * (n_slots may be 0). place[slot] receives the offset of each field. Returns
 * the offset of the table. */
static int64_t put_flatbuffer_table(struct bytes *to, const int *slots,
                                    int n_slots, int64_t *place)
{
    int n = n_slots > 0 ? 6 + 2 * slots[n_slots - 1] : 4;
    int64_t vtable = grow_aligned(to, n, n, 4);
    int64_t table = grow_aligned(to, 4 + 4 * n_slots, 0, 4);
    set_uint16(to->at + vtable, n);
    set_uint16(to->at + vtable + 2, 4 + 4 * n_slots);
    set_uint32(to->at + table, table - vtable);
    for (int i = 0; i < n_slots; i++)
    {
        set_uint16(to->at + vtable + 4 + 2 * slots[i], 4 + 4 * i);
        place[slots[i]] = table + 4 + 4 * i;
    }
    return table;
}

/* Appends a vector of n elements and sets the offset field at `place` to refer
 * to it. Returns the first element; NULL if place is 0 (no such field). */
static uint8_t *put_flatbuffer_vector(struct bytes *to, int64_t place,
                                      int64_t n, int size)
{
    int64_t vector;
    if (place == 0)
        return NULL;
    vector = grow_aligned(to, 4 + n * size, 4, size > 4 ? 8 : 4);
    set_uint32(to->at + place, vector - place);
    set_uint32(to->at + vector, n);
    return to->at + vector + 4;
}

/* ---- geometries ---------------------------------------------------------- */

static int wkb_type_code(const uint8_t *wkb)
{
    return (int)oj_flatbuffer_le32(wkb + 1);
}

/* State of copying the vertices of one WKB geometry into FlatBuffers vectors.
 */
struct vertex_run
{
    const uint8_t *from;
    /* where the next x and y, z, and m are written; NULL: the file has no such
     * vector */
    uint8_t *xy, *z, *m;
    /* where the next end offset is written; NULL: the geometry has no vector of
     * ends */
    uint8_t *ends;
    int64_t n; /* vertices copied so far */
};

static int64_t read_vertex_count(struct vertex_run *v)
{
    v->from += 4;
    return oj_flatbuffer_le32(v->from - 4);
}

static void put_vertices(struct vertex_run *v, int code, int64_t n)
{
    int has_z = code / 1000 % 2 == 1, has_m = code / 1000 >= 2;
    int size = 8 * (2 + has_z + has_m);
    for (int64_t i = v->n; i < v->n + n; i++, v->from += size)
    {
        memcpy(v->xy + 16 * i, v->from, 16);
        if (v->z != NULL && has_z)
            memcpy(v->z + 8 * i, v->from + 16, 8);
        if (v->m != NULL && has_m)
            memcpy(v->m + 8 * i, v->from + size - 8, 8);
    }
    v->n += n;
}

static void record_end_of_vertex_run(struct vertex_run *v)
{
    if (v->ends == NULL)
        return;
    set_uint32(v->ends, v->n);
    v->ends += 4;
}

/* Copies the vertices of a geometry whose table has vertices, not parts (parts:
 * the members of collections and multi-polygons). Empty members are left out;
 * empty rings of polygons are kept. */
static void write_vertex_runs_of_wkb(struct vertex_run *v)
{
    int code = wkb_type_code(v->from), type = code % 1000;
    int64_t n;
    v->from += 5;
    if (type == OJ_FGB_POINT)
    {
        struct oj_wkb_walk point = {.at = v->from - 5};
        oj_wkb_walk_geometry(&point);
        put_vertices(v, code, point.n_vertices);
        v->from = point.at;
        return;
    }
    n = read_vertex_count(v);
    if (type == OJ_FGB_LINE || type == OJ_FGB_CIRCULAR)
    {
        put_vertices(v, code, n);
        if (n > 0)
            record_end_of_vertex_run(v);
        return;
    }
    for (int64_t i = 0; i < n; i++)
    {
        if (type != OJ_FGB_POLYGON && type != OJ_FGB_TRIANGLE)
        {
            write_vertex_runs_of_wkb(v);
            continue;
        }
        put_vertices(v, code, read_vertex_count(v));
        record_end_of_vertex_run(v);
    }
}

static int64_t put_geometry(const struct flatgeobuf_rows *rows,
                            struct bytes *to, const uint8_t *wkb,
                            int64_t n_vertices, int is_part);

/* Appends the members of a collection or multi-polygon as parts, except empty
 * ones; n members start at wkb. */
static void write_parts_as_flatbuffers(const struct flatgeobuf_rows *rows,
                                       struct bytes *to, const uint8_t *wkb,
                                       int64_t n, int64_t place)
{
    uint8_t *first = put_flatbuffer_vector(to, place, n, 4), *at = first;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_wkb_walk part = {.at = wkb};
        oj_wkb_walk_geometry(&part);
        if (part.n_vertices > 0)
        {
            int64_t table = put_geometry(rows, to, wkb, part.n_vertices, 1);
            set_uint32(at, to->at + table - at);
            at += 4;
        }
        wkb = part.at;
    }
    set_uint32(first - 4, (at - first) / 4);
}

static void write_ends_and_coordinate_vectors(struct bytes *to,
                                              const uint8_t *wkb,
                                              int64_t n_vertices,
                                              int64_t n_ends,
                                              const int64_t *place)
{
    struct vertex_run v = {.from = wkb};
    uint8_t *ends = v.ends =
        put_flatbuffer_vector(to, place[OJ_FGB_ENDS], n_ends, 4);
    v.xy = put_flatbuffer_vector(to, place[OJ_FGB_XY], 2 * n_vertices, 8);
    v.z = put_flatbuffer_vector(to, place[OJ_FGB_Z], n_vertices, 8);
    v.m = put_flatbuffer_vector(to, place[OJ_FGB_M], n_vertices, 8);
    write_vertex_runs_of_wkb(&v);
    if (ends != NULL)
        set_uint32(ends - 4, (v.ends - ends) / 4);
}

/* Appends a geometry with n_vertices > 0 vertices, including those of its
 * parts. is_part 1: it is a part of another geometry, so its type is stored.
 * Returns the offset of its table. */
static int64_t put_geometry(const struct flatgeobuf_rows *rows,
                            struct bytes *to, const uint8_t *wkb,
                            int64_t n_vertices, int is_part)
{
    int type = wkb_type_code(wkb) % 1000, slots[OJ_FGB_GEOMETRY_FIELDS];
    int has_parts = type > OJ_FGB_MULTILINE && type != OJ_FGB_CIRCULAR &&
                    type != OJ_FGB_TIN && type != OJ_FGB_TRIANGLE;
    int has_ends = type == OJ_FGB_POLYGON || type == OJ_FGB_MULTILINE ||
                   type == OJ_FGB_TIN || type == OJ_FGB_TRIANGLE;
    int64_t place[OJ_FGB_GEOMETRY_FIELDS] = {0};
    int64_t n = type != OJ_FGB_POINT ? oj_flatbuffer_le32(wkb + 5) : 0, table;
    int n_slots = 0;
    /* A single ring needs no ends vector, but GDAL requires it for a multi line
     * string with one line. */
    if (has_ends && (n > 1 || type == OJ_FGB_MULTILINE))
        slots[n_slots++] = OJ_FGB_ENDS;
    if (!has_parts)
        slots[n_slots++] = OJ_FGB_XY;
    if (!has_parts && rows->has_z)
        slots[n_slots++] = OJ_FGB_Z;
    if (!has_parts && rows->has_m)
        slots[n_slots++] = OJ_FGB_M;
    if (is_part || rows->type == 0 || has_parts)
        slots[n_slots++] = OJ_FGB_TYPE;
    if (has_parts)
        slots[n_slots++] = OJ_FGB_PARTS;
    table = put_flatbuffer_table(to, slots, n_slots, place);
    if (place[OJ_FGB_TYPE] != 0)
        to->at[place[OJ_FGB_TYPE]] = (uint8_t)type;
    if (has_parts)
        write_parts_as_flatbuffers(rows, to, wkb + 9, n, place[OJ_FGB_PARTS]);
    else
        write_ends_and_coordinate_vectors(to, wkb, n_vertices, n, place);
    return table;
}

/* ---- features ------------------------------------------------------------ */

/* Sets to [4] to the bounding box of a geometry with curves: arcs extend beyond
 * their vertices, so OGR computes it. */
static oj_status find_box_of_curves(double *to, const uint8_t *wkb, int64_t n,
                                    struct oj_error *err)
{
    OGRGeometryH geometry = NULL;
    OGREnvelope box;
    if (n > INT_MAX ||
        OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_DATA,
                       "OGR cannot read its geometry: correct it, or leave it "
                       "out by -where");
    OGR_G_GetEnvelope(geometry, &box);
    OGR_G_DestroyGeometry(geometry);
    to[0] = box.MinX;
    to[1] = box.MinY;
    to[2] = box.MaxX;
    to[3] = box.MaxY;
    return OJ_OK;
}

/* Returns OJ_OK, or GDAL's error if GDAL would refuse the row. */
static oj_status check_gdal_would_accept_row(const struct flatgeobuf_rows *rows,
                                             const uint8_t *wkb, int is_empty,
                                             struct oj_error *err)
{
    if (is_empty && rows->empty_row == EMPTY_REFUSED)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "NULL geometry not supported with spatial index");
    if (!is_empty && rows->type != 0 && wkb_type_code(wkb) != rows->type)
        return oj_fail(err, OJ_ERR_DATA,
                       "ICreateFeature: Mismatched geometry type");
    return OJ_OK;
}

/* Appends a feature, except its properties; the field for their size is the
 * last one appended. Its geometry, n bytes of WKB over which walk has passed,
 * is left out if it has no vertices. */
static oj_status
put_feature_without_properties(const struct flatgeobuf_rows *rows,
                               struct row_slice *slice, const uint8_t *wkb,
                               int64_t n, const struct oj_wkb_walk *walk,
                               struct oj_error *err)
{
    static const int fields[] = {OJ_FGB_FEATURE_GEOMETRY,
                                 OJ_FGB_FEATURE_PROPERTIES};
    struct bytes *to = &slice->bytes;
    int first = walk->n_vertices > 0 ? 0 : 1;
    int64_t place[2], at, table;
    /* Tables, counts and padding take less than 128 bytes per geometry. Each
     * vertex may get Z and M, 16 bytes. */
    OJ_TRY(reserve_bytes(
        to, n + 16 * walk->n_vertices + 128 * (walk->n_geometries + 1), err));
    at = grow_aligned(to, 8, 0, 4);
    table = put_flatbuffer_table(to, fields + first, 2 - first, place);
    set_uint32(to->at + at + 4, table - at - 4);
    if (first == 0)
    {
        table = put_geometry(rows, to, wkb, walk->n_vertices, 0);
        set_uint32(to->at + place[0], table - place[0]);
    }
    slice->properties = put_flatbuffer_vector(to, place[1], 0, 1) - 4 - to->at;
    return OJ_OK;
}

/* Appends a feature whose geometry is not a plain point. *is_left_out is 1 if
 * the row has no vertices and was dropped, as this version of GDAL drops it. */
static oj_status write_feature_geometry(const struct flatgeobuf_rows *rows,
                                        struct row_slice *slice,
                                        const uint8_t *wkb, int64_t n,
                                        int *is_left_out, struct oj_error *err)
{
    double least = (double)INFINITY,
           box[] = {least, -least, least, -least, least, -least};
    double *to = slice->row_box;
    struct oj_wkb_walk walk = {.at = wkb, .box = box};
    int is_empty;
    if (wkb != NULL)
        oj_wkb_walk_geometry(&walk);
    is_empty = walk.n_vertices == 0;
    slice->written.n_empty += is_empty;
    OJ_TRY(check_gdal_would_accept_row(rows, wkb, is_empty, err));
    *is_left_out = is_empty && rows->empty_row == EMPTY_LEFT_OUT;
    if (*is_left_out)
        return OJ_OK;
    for (int i = 0; i < 4; i++)
        to[i] = box[i % 2 * 2 + i / 2];
    if (walk.has_curves)
        OJ_TRY(find_box_of_curves(to, wkb, n, err));
    return put_feature_without_properties(rows, slice, wkb, n, &walk, err);
}

static int is_plain_point(const struct flatgeobuf_rows *rows,
                          const uint8_t *wkb)
{
    return wkb != NULL && rows->sorted.n_head > 0 &&
           wkb_type_code(wkb) == OJ_FGB_POINT &&
           !isnan(oj_wkb_double(wkb + 5)) && !isnan(oj_wkb_double(wkb + 13));
}

/* Appends a feature that is a plain point, except its properties; the field for
 * their size is the last one appended. If the file has an index, the bytes of
 * the head are added later, when the rows are sorted. */
static oj_status put_plain_point(const struct flatgeobuf_rows *rows,
                                 struct row_slice *slice, const uint8_t *wkb,
                                 struct oj_error *err)
{
    struct bytes *to = &slice->bytes;
    int64_t n = rows->has_index ? 0 : rows->sorted.n_head;
    memcpy(slice->row_box, wkb + 5, 16);
    memcpy(slice->row_box + 2, wkb + 5, 16);
    OJ_TRY(reserve_bytes(to, n + 16 + 12, err));
    memcpy(to->at + to->n, rows->sorted.head, (size_t)n);
    memcpy(to->at + to->n + n, wkb + 5, 16);
    slice->properties = to->n + n + 16;
    to->n += n + 16 + 4;
    return OJ_OK;
}

/* Makes the head that all plain points share, if the layer may have such
 * points. */
static oj_status make_head_of_points(struct flatgeobuf_rows *rows,
                                     struct oj_error *err)
{
    static const uint8_t point[OJ_WKB_POINT_BYTES] = {1, OJ_FGB_POINT};
    struct oj_wkb_walk walk = {.at = point};
    struct row_slice *slice = &rows->slice[0];
    if (rows->has_z || rows->has_m || rows->type > OJ_FGB_POINT)
        return OJ_OK;
    oj_wkb_walk_geometry(&walk);
    OJ_TRY(put_feature_without_properties(rows, slice, point, sizeof point,
                                          &walk, err));
    rows->sorted.n_head = (uint32_t)slice->properties - 16;
    memcpy(rows->sorted.head, slice->bytes.at, rows->sorted.n_head);
    return OJ_OK;
}

/* Appends the value of field i, which is stored at `at` and is not NULL.
 * Precondition: the memory is reserved. */
static void add_value(struct bytes *to, int i, const struct file_field *field,
                      const void *at, int64_t n)
{
    uint8_t *out = to->at + to->n + 2;
    set_uint16(out - 2, i);
    to->n += 2 + field->n_bytes;
    if (field->is_single)
    {
        float single = (float)*(const double *)at;
        memcpy(out, &single, 4);
    }
    else if (field->n_bytes == 8)
        memcpy(out, at, 8);
    else if (field->n_bytes > 0)
        /* Types of 1 or 2 bytes keep only the low-order bytes, which come
         * first; the next value overwrites the rest. */
        memcpy(out, at, 4);
    else
    {
        if (oj_type_is_time(field->column.type))
            n = oj_value_format_xml_time(at, 0, (char *)out + 4, MOST_TIME);
        else if (n >= 4 && n <= 8)
        {
            /* two copies that may overlap, since memcpy() of a variable size is
             * a call */
            memcpy(out + 4, at, 4);
            memcpy(out + n, (const char *)at + n - 4, 4);
        }
        else if (n > 0)
            memcpy(out + 4, at, (size_t)n);
        set_uint32(out, n);
        to->n += 4 + n;
    }
}

static oj_status add_values(const struct flatgeobuf_rows *rows,
                            struct row_slice *slice,
                            const struct oj_row_place *place,
                            struct oj_error *err)
{
    for (int i = 0; i < rows->n_fields; i++)
    {
        const struct file_field *field = &rows->field[i];
        struct oj_value value;
        const void *at;
        int64_t n = 0;
        OJ_TRY(oj_row_column_value(&field->column, rows->cursor, place,
                                   slice->scratch, &value, &at, &n, err));
        if (at == NULL)
            continue;
        if (n > MOST_BYTES)
            return oj_fail(err, OJ_ERR_LIMIT,
                           "a value takes more than 2 GiB, which FlatGeobuf "
                           "cannot hold: leave its field out");
        OJ_TRY(reserve_bytes(&slice->bytes, n + MOST_TIME + 14, err));
        add_value(&slice->bytes, i, field, at, n);
    }
    return OJ_OK;
}

/* Ends a feature: stores the size of its properties and pads the feature.
 * Precondition: memory for the padding is reserved. */
static oj_status end_feature(const struct flatgeobuf_rows *rows,
                             struct row_slice *slice, int64_t begin,
                             int is_point, struct oj_error *err)
{
    struct bytes *to = &slice->bytes;
    struct oj_flatgeobuf_row row = {.is_point = is_point != 0};
    int64_t n = to->n - slice->properties - 4;
    if (to->n - begin > MOST_BYTES - 128)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a feature takes more than 2 GiB, which FlatGeobuf "
                       "cannot hold: leave large fields out, or simplify the "
                       "geometry");
    set_uint32(to->at + slice->properties, n);
    memset(to->at + to->n, 0, 8);
    to->n = (to->n + 7) & ~(int64_t)7;
    n = to->n - slice->start;
    slice->n.rows++;
    slice->n.in_file += n;
    oj_flatgeobuf_grow_box(slice->box, slice->row_box);
    if (rows->has_index)
    {
        row.n = (uint32_t)(to->n - begin - (int64_t)sizeof row) & INT32_MAX;
        memcpy(to->at + begin, &row, sizeof row);
        memcpy(to->at + begin + sizeof row, slice->row_box,
               is_point ? 16 : sizeof slice->row_box);
    }
    if (rows->has_index && is_point)
        slice->n.in_file += rows->sorted.n_head;
    else
        set_uint32(to->at + slice->start, n - 4);
    return OJ_OK;
}

static oj_status encode_row(const struct flatgeobuf_rows *rows,
                            struct row_slice *slice,
                            const struct oj_row_place *place,
                            struct oj_error *err)
{
    struct bytes *to = &slice->bytes;
    const uint8_t *wkb;
    int64_t n, begin = to->n;
    int is_left_out = 0, is_point;
    oj_row_cursor_prefetch(rows->cursor, place);
    OJ_TRY(oj_row_wkb_make(&slice->wkb, rows->cursor, place, &wkb, &n, err));
    is_point = is_plain_point(rows, wkb);
    if (rows->has_index)
    {
        OJ_TRY(reserve_bytes(
            to, sizeof(struct oj_flatgeobuf_row) + sizeof slice->row_box, err));
        to->n += (int64_t)sizeof(struct oj_flatgeobuf_row);
        to->n += is_point ? 0 : (int64_t)sizeof slice->row_box;
    }
    slice->start = to->n;
    OJ_TRY(is_point ? put_plain_point(rows, slice, wkb, err)
                    : write_feature_geometry(rows, slice, wkb, n, &is_left_out,
                                             err));
    slice->written.n_rows++;
    if (is_left_out)
    {
        to->n = begin;
        return OJ_OK;
    }
    OJ_TRY(add_values(rows, slice, place, err));
    return end_feature(rows, slice, begin, is_point, err);
}

static oj_status encode_slice(int64_t task, int thread, void *user,
                              struct oj_error *err)
{
    const struct flatgeobuf_rows *rows = user;
    const struct oj_rows_written nothing = {0};
    const struct oj_flatgeobuf_extent none = {0};
    const int64_t *fid = oj_row_cursor_sources(rows->cursor)->batch->flat.fid;
    struct row_slice *slice = &rows->slice[thread];
    int64_t i = task * SLICE_ROWS, end = i + SLICE_ROWS;
    slice->written = nothing;
    slice->bytes.n = 0;
    slice->n = none;
    set_empty_box(slice->box);
    for (; i < end && i < rows->n_places; i++)
    {
        slice->written.failed_fid = fid[rows->place[i].row];
        OJ_TRY(encode_row(rows, slice, &rows->place[i], err));
    }
    slice->n.bytes = slice->bytes.n;
    return OJ_OK;
}

static oj_status write_slice(struct flatgeobuf_rows *rows,
                             const struct row_slice *slice,
                             struct oj_error *err)
{
    struct oj_flatgeobuf_unsorted *to = &rows->sorted;
    if (slice->n.rows == 0)
        return OJ_OK;
    oj_flatgeobuf_grow_box(to->box, slice->box);
    if (rows->has_index)
        return oj_flatgeobuf_unsorted_add(to, slice->bytes.at, &slice->n, err);
    OJ_TRY(oj_flatgeobuf_write_at(rows->file, rows->header.n + to->n.in_file,
                                  slice->bytes.at, slice->bytes.n, err));
    to->n.in_file += slice->bytes.n;
    to->n.rows += slice->n.rows;
    return OJ_OK;
}

static oj_status write_slice_in_order(int64_t task, int thread,
                                      oj_status status, void *user,
                                      struct oj_error *err)
{
    struct flatgeobuf_rows *rows = user;
    const struct row_slice *slice = &rows->slice[thread];
    (void)task;
    rows->written->n_rows += slice->written.n_rows;
    rows->written->n_empty += slice->written.n_empty;
    rows->written->failed_fid = slice->written.failed_fid;
    rows->written->has_failed = status != OJ_OK;
    return status == OJ_OK ? write_slice(rows, slice, err) : status;
}

/* Finds the arrays with the columns' values. Returns 1 if rows of the answer
 * can be encoded on several threads. */
static int find_columns_and_if_parallel(struct flatgeobuf_rows *rows)
{
    int are_plain = 1;
    for (int i = 0; i < rows->n_fields; i++)
    {
        struct file_field *field = &rows->field[i];
        oj_row_column_begin_answer(&field->column, rows->cursor);
        are_plain &= field->column.number < 0 ||
                     oj_row_cursor_needs_no_conversion(rows->cursor,
                                                       field->column.number);
    }
    return are_plain;
}

static oj_status encode_and_write_rows(void *of,
                                       struct oj_rows_written *written,
                                       struct oj_row_place *left, int *is_left,
                                       struct oj_error *err)
{
    struct flatgeobuf_rows *rows = of;
    const struct oj_rows_written nothing = {0};
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    int n_threads;
    (void)left;
    *is_left = 0;
    *written = nothing;
    rows->written = written;
    if (sources->batch == NULL || sources->batch->n_rows == 0)
        return OJ_OK;
    n_threads = find_columns_and_if_parallel(rows) ? rows->n_threads : 1;
    while ((rows->n_places = oj_row_cursor_next_places(
                rows->cursor, rows->place,
                rows->n_threads * SLICES_AT_ONCE * SLICE_ROWS)) > 0)
    {
        OJ_TRY(oj_check_cancel(sources->options->cancel, err));
        OJ_TRY(oj_parallel_in_order(
            n_threads, (rows->n_places + SLICE_ROWS - 1) / SLICE_ROWS,
            encode_slice, write_slice_in_order, rows, err));
    }
    return OJ_OK;
}

/* ---- open and close ------------------------------------------------------ */

static oj_status fail_write(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO, "cannot write the rows: %s",
                   strerror(errno));
}

/* Fills rows->field: how the file stores each field of the layer. Fails with
 * OJ_ERR_UNSUPPORTED if values of a field would not be written as GDAL writes
 * them. */
static oj_status plan_file_fields(struct flatgeobuf_rows *rows,
                                  OGRFeatureDefnH defn, struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    rows->n_fields = OGR_FD_GetFieldCount(defn);
    OJ_NEW_ZEROED(rows->field, rows->n_fields, err);
    for (int i = 0; i < rows->n_fields; i++)
    {
        struct file_field *field = &rows->field[i];
        OGRFieldDefnH own = OGR_FD_GetFieldDefn(defn, i);
        OGRFieldSubType subtype = OGR_Fld_GetSubType(own);
        OGRFieldType type = OGR_Fld_GetType(own);
        field->column.number = -1;
        field->column.type = type;
        field->is_single = subtype == OFSTFloat32;
        if (oj_type_is_number(type))
            field->n_bytes = subtype == OFSTBoolean                   ? 1
                             : subtype == OFSTInt16                   ? 2
                             : type == OFTInteger || field->is_single ? 4
                                                                      : 8;
        else if (!oj_type_is_time(type) && type != OFTString &&
                 type != OFTBinary)
            return oj_lane_leave_to_gdal(err);
    }
    for (int c = 0; c < sources->options->n_columns; c++)
        rows->field[sources->columns[c].target].column.number = c;
    return OJ_OK;
}

static oj_status init_slices(struct flatgeobuf_rows *rows, OGRFeatureDefnH defn,
                             struct oj_error *err)
{
    OJ_NEW(rows->place, rows->n_threads * SLICES_AT_ONCE * SLICE_ROWS, err);
    OJ_NEW_ZEROED(rows->slice, rows->n_threads, err);
    for (int i = 0; i < rows->n_threads; i++)
    {
        rows->slice[i].scratch = OGR_F_Create(defn);
        if (rows->slice[i].scratch == NULL)
            return oj_fail_nomem(err, 1, 1024);
    }
    return OJ_OK;
}

static oj_status start_writing(struct flatgeobuf_rows *rows, OGRLayerH layer,
                               const struct oj_flatgeobuf_file *file,
                               struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    OJ_TRY(plan_file_fields(rows, defn, err));
    OJ_TRY(init_slices(rows, defn, err));
    OJ_TRY(make_head_of_points(rows, err));
    OJ_TRY(read_template(rows, layer, file, err));
    rows->file = oj_new_file_create(AT_FDCWD, file->path, 0666);
    if (rows->file < 0)
        return fail_write(err);
    return rows->has_index ? oj_temporary_file_open(file->path, "rows",
                                                    &rows->sorted.rows, err)
                           : OJ_OK;
}

static void close_flatgeobuf_writer(void *of)
{
    struct flatgeobuf_rows *rows = of;
    if (rows == NULL)
        return;
    if (rows->file >= 0)
        close(rows->file);
    for (int i = 0; rows->slice != NULL && i < rows->n_threads; i++)
    {
        struct row_slice *slice = &rows->slice[i];
        oj_layer_geometry_free(&slice->wkb);
        if (slice->scratch != NULL)
            OGR_F_Destroy(slice->scratch);
        oj_free(slice->bytes.at);
    }
    oj_flatgeobuf_unsorted_free(&rows->sorted);
    oj_free(rows->header.at);
    oj_free(rows->slice);
    oj_free(rows->place);
    oj_free(rows->field);
    oj_free(rows);
}

static oj_status open_flatgeobuf_writer(OGRLayerH layer, int is_update,
                                        struct oj_row_cursor *cursor,
                                        void **out, struct oj_error *err)
{
    const struct oj_flatgeobuf_file *file =
        oj_row_cursor_sources(cursor)->options->file;
    OGRwkbGeometryType type = OGR_L_GetGeomType(layer);
    struct flatgeobuf_rows *rows;
    oj_status status;
    (void)is_update;
    *out = NULL;
    OJ_NEW_ZEROED(rows, 1, err);
    rows->cursor = cursor;
    rows->file = -1;
    rows->n_threads = file->n_threads > 1 ? file->n_threads : 1;
    rows->sorted.most_kept = MOST_KEPT;
    set_empty_box(rows->sorted.box);
    rows->has_z = OGR_GT_HasZ(type);
    rows->has_m = OGR_GT_HasM(type);
    if (OGR_GT_Flatten(type) != wkbUnknown)
        rows->type =
            (int)OGR_GT_Flatten(type) + 1000 * rows->has_z + 2000 * rows->has_m;
    status = start_writing(rows, layer, file, err);
    if (status == OJ_OK)
        *out = rows;
    else
        close_flatgeobuf_writer(rows);
    return status == OJ_ERR_UNSUPPORTED ? OJ_OK : status;
}

/* Writes the header and, if the file has an index, the index and the rows in
 * its order; closes the file. *has_file is 0 if there are no rows: the output
 * is then left to GDAL. */
static oj_status finish_flatgeobuf_file(void *of, int *has_file,
                                        struct oj_error *err)
{
    struct flatgeobuf_rows *rows = of;
    struct oj_flatgeobuf_unsorted *sorted = &rows->sorted;
    int file = rows->file;
    *has_file = sorted->n.rows > 0;
    if (!*has_file)
        return OJ_OK;
    memcpy(rows->header.at + rows->count_at, &sorted->n.rows, 8);
    if (rows->envelope_at > 0)
        memcpy(rows->header.at + rows->envelope_at, sorted->box,
               sizeof sorted->box);
    OJ_TRY(
        oj_flatgeobuf_write_at(file, 0, rows->header.at, rows->header.n, err));
    if (rows->has_index)
        OJ_TRY(oj_flatgeobuf_sort(sorted, file, rows->header.n, rows->n_threads,
                                  err));
    rows->file = -1;
    return close(file) == 0 ? OJ_OK : fail_write(err);
}

const struct oj_row_lane oj_flatgeobuf_rows = {OJ_LANE_FLATGEOBUF,
                                               open_flatgeobuf_writer,
                                               encode_and_write_rows,
                                               NULL,
                                               NULL,
                                               finish_flatgeobuf_file,
                                               close_flatgeobuf_writer};
