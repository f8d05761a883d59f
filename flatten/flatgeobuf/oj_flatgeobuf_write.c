#include "oj_flatgeobuf_write.h"

#include "../arrays/oj_hilbert.h"
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
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK_BYTES (1 << 20)
#define NODE_SIZE 16
#define MOST_LEVELS 16 /* of 16 nodes each: 2^64 rows */
#define MOST_ROWS 4294967295LL

/* What GDAL does with a row without geometry. */
enum empty_row
{
    EMPTY_LEFT_OUT,
    EMPTY_KEPT,
    EMPTY_REFUSED
};

/* One node of the index, as in the file. */
struct node
{
    double box[4];
    uint64_t offset;
};

struct oj_flatgeobuf_writer
{
    char *path, *unsorted_path;
    struct oj_fgb_bytes header;
    int64_t count_at, envelope_at; /* in the header; 0: not there */
    int type;                      /* of all rows, as in WKB; 0: any */
    int has_index;
    enum empty_row empty_row;

    FILE *file; /* with index: of the rows alone */
    struct oj_fgb_feature feature;
    int64_t n_rows, n_bytes;
    double box[4];

    struct node *row; /* [n_rows] with index: box, and place among the rows */
    int64_t cap_rows;
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
             oj_le16(node_size) == NODE_SIZE);
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

static FILE *open_file(const char *path)
{
    FILE *file = fopen(path, "w+b");
    if (file != NULL)
        setvbuf(file, NULL, _IOFBF, BLOCK_BYTES);
    return file;
}

static oj_status begin(struct oj_flatgeobuf_writer *w, const char *path,
                       struct oj_error *err)
{
    w->path = CPLStrdup(path);
    w->unsorted_path = CPLStrdup(CPLSPrintf("%s.unsorted", path));
    w->file = open_file(w->has_index ? w->unsorted_path : path);
    if (w->file == NULL)
        return fail_write(err);
    if (w->has_index)
        return OJ_OK;
    if (fwrite(w->header.at, 1, (size_t)w->header.n, w->file) !=
        (size_t)w->header.n)
        return fail_write(err);
    return OJ_OK;
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
    w->box[0] = w->box[1] = (double)INFINITY;
    w->box[2] = w->box[3] = (double)-INFINITY;
    w->feature.layout.has_z = OGR_GT_HasZ(type);
    w->feature.layout.has_m = OGR_GT_HasM(type);
    w->feature.layout.is_typed = OGR_GT_Flatten(type) != wkbUnknown;
    if (w->feature.layout.is_typed)
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
    if (w->file != NULL)
        fclose(w->file);
    if (w->unsorted_path != NULL && w->has_index)
        unlink(w->unsorted_path);
    CPLFree(w->path);
    CPLFree(w->unsorted_path);
    oj_free(w->header.at);
    oj_fgb_feature_free(&w->feature);
    oj_free(w->row);
    oj_free(w);
}

/* ---- rows ------------------------------------------------------------------
 */

struct oj_fgb_feature *oj_flatgeobuf_feature(struct oj_flatgeobuf_writer *w)
{
    return &w->feature;
}

/* Arcs go beyond their vertices. */
static oj_status find_box_of_curves(struct oj_flatgeobuf_writer *w,
                                    const uint8_t *wkb, int64_t n,
                                    struct oj_error *err)
{
    OGRGeometryH geometry = NULL;
    OGREnvelope box;
    if (n > INT_MAX ||
        OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_DATA, "a geometry that OGR cannot read");
    OGR_G_GetEnvelope(geometry, &box);
    OGR_G_DestroyGeometry(geometry);
    w->feature.box[0] = box.MinX;
    w->feature.box[1] = box.MinY;
    w->feature.box[2] = box.MaxX;
    w->feature.box[3] = box.MaxY;
    return OJ_OK;
}

static void grow_box(double *box, const double *by)
{
    for (int i = 0; i < 2; i++)
    {
        box[i] = by[i] < box[i] ? by[i] : box[i];
        box[2 + i] = by[2 + i] > box[2 + i] ? by[2 + i] : box[2 + i];
    }
}

oj_status oj_flatgeobuf_write_row(struct oj_flatgeobuf_writer *w,
                                  const uint8_t *wkb, int64_t n, int *is_empty,
                                  struct oj_error *err)
{
    struct oj_fgb_feature *feature = &w->feature;
    OJ_TRY(oj_fgb_encode(feature, wkb, err));
    *is_empty = !feature->has_vertices;
    if (*is_empty && w->empty_row == EMPTY_REFUSED)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "NULL geometry not supported with spatial index");
    if (*is_empty && w->empty_row == EMPTY_LEFT_OUT)
        return OJ_OK;
    if (!*is_empty && w->type != 0 && oj_fgb_wkb_type(wkb) != w->type)
        return oj_fail(err, OJ_ERR_DATA,
                       "ICreateFeature: Mismatched geometry type");
    if (feature->has_curves)
        OJ_TRY(find_box_of_curves(w, wkb, n, err));
    grow_box(w->box, feature->box);
    if (w->has_index)
    {
        OJ_ROOM(w->row, w->n_rows, w->n_rows + 1, w->cap_rows, err);
        memcpy(w->row[w->n_rows].box, feature->box, sizeof feature->box);
        w->row[w->n_rows].offset = (uint64_t)w->n_bytes;
    }
    if (fwrite(feature->bytes.at, 1, (size_t)feature->bytes.n, w->file) !=
        (size_t)feature->bytes.n)
        return fail_write(err);
    w->n_bytes += feature->bytes.n;
    w->n_rows++;
    return OJ_OK;
}

/* ---- order -----------------------------------------------------------------
 */

/* Rows in the order of the file: the upper half of each is 2^32 - 1 less the
 * code, the lower the row. */
static oj_status sort_rows(const struct oj_flatgeobuf_writer *w, uint64_t **out,
                           struct oj_error *err)
{
    uint64_t *order;
    oj_status status;
    OJ_NEW(order, w->n_rows, err);
    for (int64_t i = 0; i < w->n_rows; i++)
    {
        uint32_t code = oj_hilbert_code(w->row[i].box, w->box);
        order[i] = (uint64_t)(UINT32_MAX - code) << 32 | (uint64_t)i;
    }
    status = oj_hilbert_sort(order, w->n_rows, err);
    if (status == OJ_OK)
        *out = order;
    else
        oj_free(order);
    return status;
}

/* ---- index -----------------------------------------------------------------
 */

static int64_t row_of(uint64_t entry)
{
    return (int64_t)(entry & UINT32_MAX);
}

static int64_t size_of(const struct oj_flatgeobuf_writer *w, int64_t row)
{
    int64_t end =
        row + 1 < w->n_rows ? (int64_t)w->row[row + 1].offset : w->n_bytes;
    return end - (int64_t)w->row[row].offset;
}

static int put(FILE *file, const void *bytes, int64_t n)
{
    return fwrite(bytes, 1, (size_t)n, file) == (size_t)n;
}

/* The nodes above the rows, root first; a node points at the first below it. */
static oj_status write_upper_nodes(const struct oj_flatgeobuf_writer *w,
                                   const uint64_t *order, FILE *file,
                                   struct oj_error *err)
{
    int64_t n_level[MOST_LEVELS], first[MOST_LEVELS], n_upper = 0;
    int n = 0, is_written;
    struct node *node;
    n_level[0] = w->n_rows;
    do
    {
        n_level[n + 1] = (n_level[n] + NODE_SIZE - 1) / NODE_SIZE;
        n++;
        n_upper += n_level[n];
    } while (n_level[n] > 1);
    first[n] = 0;
    for (int level = n; level > 0; level--)
        first[level - 1] = first[level] + n_level[level];
    OJ_NEW(node, n_upper, err);
    for (int level = 1; level <= n; level++)
    {
        for (int64_t i = 0; i < n_level[level]; i++)
        {
            struct node *up = &node[first[level] + i];
            int64_t begin = i * NODE_SIZE, end = begin + NODE_SIZE;
            if (end > n_level[level - 1])
                end = n_level[level - 1];
            up->offset = (uint64_t)(first[level - 1] + begin);
            up->box[0] = up->box[1] = (double)INFINITY;
            up->box[2] = up->box[3] = (double)-INFINITY;
            for (int64_t k = begin; k < end; k++)
                grow_box(up->box, level == 1 ? w->row[row_of(order[k])].box
                                             : node[first[level - 1] + k].box);
        }
    }
    is_written = put(file, node, n_upper * (int64_t)sizeof *node);
    oj_free(node);
    return is_written ? OJ_OK : fail_write(err);
}

/* The rows' own nodes, and the rows. */
static oj_status write_sorted(const struct oj_flatgeobuf_writer *w,
                              const uint64_t *order, const uint8_t *rows,
                              FILE *file, struct oj_error *err)
{
    uint64_t offset = 0;
    for (int64_t i = 0; i < w->n_rows; i++)
    {
        struct node node = w->row[row_of(order[i])];
        node.offset = offset;
        offset += (uint64_t)size_of(w, row_of(order[i]));
        if (!put(file, &node, sizeof node))
            return fail_write(err);
    }
    for (int64_t i = 0; i < w->n_rows; i++)
    {
        int64_t row = row_of(order[i]);
        if (!put(file, rows + w->row[row].offset, size_of(w, row)))
            return fail_write(err);
    }
    return OJ_OK;
}

static oj_status write_indexed(struct oj_flatgeobuf_writer *w, FILE *file,
                               struct oj_error *err)
{
    uint64_t *order = NULL;
    oj_status status;
    void *rows;
    OJ_TRY(sort_rows(w, &order, err));
    rows = mmap(NULL, (size_t)w->n_bytes, PROT_READ, MAP_PRIVATE,
                fileno(w->file), 0);
    status = rows != MAP_FAILED && put(file, w->header.at, w->header.n)
                 ? write_upper_nodes(w, order, file, err)
                 : fail_write(err);
    if (status == OJ_OK)
        status = write_sorted(w, order, rows, file, err);
    if (rows != MAP_FAILED)
        munmap(rows, (size_t)w->n_bytes);
    oj_free(order);
    return status;
}

/* ---- finish ----------------------------------------------------------------
 */

static void set_double(uint8_t *to, double value)
{
    memcpy(to, &value, sizeof value);
}

static void complete_header(struct oj_flatgeobuf_writer *w)
{
    for (int i = 0; i < 8; i++)
        w->header.at[w->count_at + i] =
            (uint8_t)((uint64_t)w->n_rows >> (8 * i));
    for (int i = 0; w->envelope_at > 0 && i < 4; i++)
        set_double(w->header.at + w->envelope_at + 8 * i, w->box[i]);
}

oj_status oj_flatgeobuf_write_finish(struct oj_flatgeobuf_writer *w,
                                     int *has_rows, struct oj_error *err)
{
    FILE *file;
    oj_status status;
    *has_rows = w->n_rows > 0;
    if (!*has_rows)
        return OJ_OK;
    complete_header(w);
    if (fflush(w->file) != 0)
        return fail_write(err);
    if (!w->has_index)
    {
        if (fseek(w->file, 0, SEEK_SET) != 0 ||
            !put(w->file, w->header.at, w->header.n) || fflush(w->file) != 0)
            return fail_write(err);
        return OJ_OK;
    }
    if (w->n_rows > MOST_ROWS)
        return oj_fail(err, OJ_ERR_LIMIT, "more than %lld rows have no index",
                       MOST_ROWS);
    file = open_file(w->path);
    if (file == NULL)
        return fail_write(err);
    status = write_indexed(w, file, err);
    if (fclose(file) != 0 && status == OJ_OK)
        status = fail_write(err);
    return status;
}
