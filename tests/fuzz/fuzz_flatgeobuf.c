/* The lane reads FlatGeobuf files with changed bytes, wrong sizes and early
 * ends. They are refused, left to GDAL from some row on, or give a layer that
 * passes oj_flat_check(). With clang: -fsanitize=fuzzer,address,undefined; the
 * input replaces the file after its header. With OJ_FUZZ_MAIN, fuzz_flatgeobuf
 * [ITERATIONS] mutates files with every kind of geometry, from a fixed seed. */
#include "../../flatten/flatgeobuf/oj_flatgeobuf_read.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../../flatten/read/oj_layer_geometry.h"
#include "fuzz_bytes.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WHOLE "/vsimem/fuzz_flatgeobuf_whole.fgb"
#define SPOILED "/vsimem/fuzz_flatgeobuf.fgb"

enum
{
    N_FIELDS = 7,
    N_ROWS = 40
};

/* sum of all values, so that the compiler must read each of them */
static uint32_t sum;

static void look_at(const struct oj_chunk *chunk, int64_t row)
{
    for (int c = OJ_CHUNK_FIELDS; c < OJ_CHUNK_FIELDS + N_FIELDS; c++)
    {
        const struct oj_column_view *column = &chunk->column[c];
        struct oj_value value;
        const uint8_t *bytes;
        int64_t n = 0;
        oj_column_value(column, row, &value);
        if (!oj_value_is_there(&value) ||
            (column->format != 'U' && column->format != 'Z'))
            continue;
        bytes = oj_value_bytes(
            &value, column->format == 'U' ? OFTString : OFTBinary, &n);
        for (int64_t i = 0; i < n; i++)
            sum += bytes[i];
    }
}

static void add_rows(struct oj_flat_buf *flat, struct oj_slice *slice)
{
    struct oj_layer_geometry work = {0};
    struct oj_error err;
    for (int64_t i = 0; i < slice->n_rows; i++)
    {
        size_t n = 0;
        const struct oj_column_view *points =
            &slice->chunk->column[OJ_CHUNK_GEOMETRY];
        const uint8_t *wkb = NULL;
        look_at(slice->chunk, i);
        if (points->format == 'P')
            sum += ((const uint8_t *)points->values)[16 * i + 15];
        else
            wkb = oj_slice_wkb(slice, i, &n);
        /* the result must be WKB, with any coordinates */
        if (wkb != NULL)
            require(oj_layer_geometry_add_wkb(&work, flat, i, wkb, n, &err) ==
                        OJ_OK,
                    "WKB that is none");
    }
    oj_layer_geometry_free(&work);
}

/* A filter that accepts some rows. */
static oj_status read_and_filter(void *user, const uint8_t *wkb, size_t n,
                                 int *is_met, struct oj_error *err)
{
    (void)user;
    (void)err;
    for (size_t i = 0; i < n; i++)
        sum += wkb[i];
    *is_met = sum % 3 != 0;
    return OJ_OK;
}

static void read_file(OGRLayerH layer, int n_threads, int are_points,
                      int has_filter)
{
    static const int fields[N_FIELDS] = {0, 1, 2, 3, 4, 5, 6};
    static const double box[4] = {0, 6, 0, 6};
    const struct oj_lane_request request = {.layer = layer,
                                            .file = SPOILED,
                                            .fields = fields,
                                            .formats = "ilgUUFZ",
                                            .n_fields = N_FIELDS,
                                            .are_points = are_points,
                                            .batch_rows = 32,
                                            .n_threads = n_threads,
                                            .box = has_filter ? box : NULL,
                                            .meets = read_and_filter};
    void *reader = NULL;
    struct oj_flat_buf flat = {0};
    struct oj_error err;
    const char *text;
    struct oj_flat view;
    oj_status status = oj_flatgeobuf_lane.open(&request, &reader, &err);
    require(status == OJ_OK || status == OJ_ERR_UNSUPPORTED, "opening failed");
    while (status == OJ_OK)
    {
        struct oj_slice slice = {0};
        if (oj_flatgeobuf_lane.next(reader, &slice.chunk, &text, &err) !=
                OJ_OK ||
            slice.chunk == NULL)
            break;
        slice.n_rows = slice.chunk->n_rows;
        require(slice.n_rows > 0 && slice.n_rows <= 32, "an odd chunk");
        add_rows(&flat, &slice);
        oj_slice_free(&slice);
    }
    view = oj_flat_buf_view(&flat);
    require(oj_flat_check(&view, &err) == OJ_OK, "the layer is inconsistent");
    oj_flatgeobuf_lane.close(reader);
    oj_flat_buf_free(&flat);
}

/* ---- files ----------------------------------------------------------------
 */

static const char *const shapes[] = {
    "POINT (1 2)",
    "POINT ZM (1 2 3 4)",
    "LINESTRING (0 0,1 1,2 0)",
    "POLYGON ((0 0,9 0,9 9,0 0),(1 1,2 1,2 2,1 1))",
    "MULTIPOINT ((5 6),(7 8))",
    "MULTILINESTRING Z ((0 0 1,1 1 2),(5 5 3,6 6 4,7 7 5))",
    "MULTIPOLYGON (((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))",
    ("GEOMETRYCOLLECTION (POINT (1 1),GEOMETRYCOLLECTION (LINESTRING (0 0,1 1),"
     "POLYGON ((0 0,1 0,1 1,0 0))))")};

enum
{
    N_SHAPES = sizeof shapes / sizeof shapes[0]
};

static OGRLayerH make_fields(GDALDatasetH dataset, OGRwkbGeometryType type,
                             int has_index)
{
    static const OGRFieldType types[N_FIELDS] = {
        OFTInteger, OFTInteger64, OFTReal,  OFTString,
        OFTString,  OFTDateTime,  OFTBinary};
    char **options =
        CSLSetNameValue(NULL, "SPATIAL_INDEX", has_index ? "YES" : "NO");
    OGRLayerH layer =
        GDALDatasetCreateLayer(dataset, "rows", NULL, type, options);
    CSLDestroy(options);
    for (int i = 0; i < N_FIELDS; i++)
    {
        OGRFieldDefnH field =
            OGR_Fld_Create(CPLSPrintf("field_%d", i), types[i]);
        require(OGR_L_CreateField(layer, field, 1) == OGRERR_NONE, "no field");
        OGR_Fld_Destroy(field);
    }
    return layer;
}

static void add_row(OGRLayerH layer, const char *wkt, int i, size_t n_text)
{
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    char *text = CPLStrdup(wkt), *at = text, *words = CPLCalloc(n_text + 1, 1);
    OGRGeometryH geometry = NULL;
    require(OGR_G_CreateFromWkt(&at, NULL, &geometry) == OGRERR_NONE,
            "a bad shape");
    memset(words, 'a' + i % 26, n_text);
    OGR_F_SetFieldInteger(feature, 0, i);
    if (i % 3 != 0)
        OGR_F_SetFieldInteger64(feature, 1, (GIntBig)i << 33);
    OGR_F_SetFieldDouble(feature, 2, i / 7.0);
    OGR_F_SetFieldString(feature, 3, words);
    if (i % 2 != 0)
        OGR_F_SetFieldString(feature, 4, "a text");
    OGR_F_SetFieldString(feature, 5, "2024/02/03 04:05:06.7");
    OGR_F_SetFieldBinary(feature, 6, i % 9, words);
    OGR_F_SetGeometryDirectly(feature, geometry);
    require(OGR_L_CreateFeature(layer, feature) == OGRERR_NONE, "no row");
    OGR_F_Destroy(feature);
    CPLFree(text);
    CPLFree(words);
}

/* Makes a file with one type of geometry, or with any. Texts are long, so that
 * each thread gets rows. The bits of kind choose the shape, the index, the type
 * of the layer, and the length of texts. */
static void make_file(int kind)
{
    const char *wkt = shapes[kind % N_SHAPES];
    char *text = CPLStrdup(wkt), *at = text;
    OGRGeometryH geometry = NULL;
    OGRwkbGeometryType type;
    GDALDatasetH dataset = GDALCreate(GDALGetDriverByName("FlatGeobuf"), WHOLE,
                                      0, 0, 0, GDT_Unknown, NULL);
    OGRLayerH layer;
    require(dataset != NULL &&
                OGR_G_CreateFromWkt(&at, NULL, &geometry) == OGRERR_NONE,
            "no dataset");
    type = OGR_G_GetGeometryType(geometry);
    if (kind & 16)
        type = OGR_GT_SetModifier(wkbUnknown, OGR_GT_HasZ(type),
                                  OGR_GT_HasM(type));
    layer = make_fields(dataset, type, kind >> 3 & 1);
    for (int i = 0; i < N_ROWS; i++)
        add_row(layer, wkt, i, kind & 32 ? 40000 : 20);
    OGR_G_DestroyGeometry(geometry);
    CPLFree(text);
    GDALClose(dataset);
}

/* Opens the original file, without changed bytes. Returns its layer. */
static OGRLayerH open_whole(GDALDatasetH *dataset)
{
    *dataset = GDALOpenEx(WHOLE, GDAL_OF_VECTOR, NULL, NULL, NULL);
    require(*dataset != NULL, "a file that GDAL wrote cannot be opened");
    return GDALDatasetGetLayer(*dataset, 0);
}

static void read_bytes(OGRLayerH layer, const GByte *bytes, size_t n,
                       int n_threads)
{
    GByte *copy = CPLMalloc(n + 1);
    memcpy(copy, bytes, n);
    VSIFCloseL(VSIFileFromMemBuffer(SPOILED, copy, (vsi_l_offset)n, TRUE));
    for (int has_filter = 0; has_filter < 2; has_filter++)
    {
        read_file(layer, n_threads, 0, has_filter);
        if (OGR_GT_Flatten(OGR_L_GetGeomType(layer)) == wkbPoint)
            read_file(layer, n_threads, 1, has_filter);
    }
    VSIUnlink(SPOILED);
}

/* The first byte of data chooses the kind of file; the others replace the bytes
 * after its header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GDALDatasetH dataset;
    OGRLayerH layer;
    vsi_l_offset n = 0;
    const GByte *whole;
    GByte *bytes;
    size_t n_head;
    if (size == 0)
        return 0;
    if (GDALGetDriverCount() == 0)
        GDALAllRegister();
    make_file(data[0] & 23);
    layer = open_whole(&dataset);
    whole = VSIGetMemFileBuffer(WHOLE, &n, FALSE);
    n_head = 12 + (size_t)(whole[8] | whole[9] << 8);
    bytes = CPLMalloc(n_head + size);
    memcpy(bytes, whole, n_head);
    memcpy(bytes + n_head, data + 1, size - 1);
    read_bytes(layer, bytes, n_head + size - 1, 1);
    CPLFree(bytes);
    GDALClose(dataset);
    VSIUnlink(WHOLE);
    return 0;
}

#ifdef OJ_FUZZ_MAIN

/* Changes bytes, mostly where features begin, or truncates the file. */
static void spoil(GByte *bytes, size_t *n)
{
    static const GByte values[] = {0, 1, 2, 4, 8, 0x7F, 0x80, 0xFF};
    size_t near = *n > 600 ? *n - (size_t)pick(600) - 1 : 0;
    if (one_in(8))
        *n = (size_t)pick((int)*n) + 1;
    for (int m = pick(6); m > 0; m--)
    {
        size_t at = pick(2) ? near + (size_t)pick(64) : (size_t)pick((int)*n);
        if (at >= *n)
            continue;
        if (pick(2) == 0)
            bytes[at] = values[pick(8)];
        else
            bytes[at] ^= (GByte)(1u << pick(8));
    }
}

static long n_left;
static double n_bytes_seen;

static void read_kind(int kind, long n)
{
    GDALDatasetH dataset;
    OGRLayerH layer;
    vsi_l_offset size = 0;
    const GByte *whole;
    make_file(kind);
    layer = open_whole(&dataset);
    whole = VSIGetMemFileBuffer(WHOLE, &size, FALSE);
    for (; n > 0 && n_left > 0; n--, n_left--)
    {
        GByte *bytes = CPLMalloc((size_t)size);
        size_t n_bytes = (size_t)size;
        memcpy(bytes, whole, n_bytes);
        spoil(bytes, &n_bytes);
        n_bytes_seen += (double)n_bytes;
        read_bytes(layer, bytes, n_bytes, kind & 32 ? 3 : 1);
        CPLFree(bytes);
    }
    GDALClose(dataset);
    VSIUnlink(WHOLE);
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 6000;
    n_left = n;
    GDALAllRegister();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (long round = 0; n_left > 0; round++)
    {
        int kind = (int)(round % 64);
        random_state = (uint64_t)round;
        read_kind(kind, kind & 32 ? 4 : 100);
    }
    CPLPopErrorHandler();
    printf("fuzz_flatgeobuf: %ld files, %.0f bytes\n", n, n_bytes_seen);
    return sum == 1 ? 2 : 0;
}

#endif
