#include "oj_flatgeobuf_read.h"

#include "../arrays/oj_chunk_rows.h"
#include "../base/oj_array.h"
#include "../base/oj_threads.h"
#include "oj_flatgeobuf_geometry.h"

#include <cpl_vsi.h>

/* Bytes of the file that a thread takes at once: much against its start. */
#define BLOCK_BYTES (1 << 21)
#define PIECE_BYTES (BLOCK_BYTES / 2)

/* Types of columns, as in the file. */
enum
{
    TYPE_BYTE,
    TYPE_UBYTE,
    TYPE_BOOL,
    TYPE_SHORT,
    TYPE_USHORT,
    TYPE_INT,
    TYPE_UINT,
    TYPE_LONG,
    TYPE_ULONG,
    TYPE_FLOAT,
    TYPE_DOUBLE,
    TYPE_STRING,
    TYPE_JSON,
    TYPE_DATETIME,
    TYPE_BINARY,
    N_TYPES
};

/* What becomes of a type: bytes in the file (0: a length and so many bytes),
 * the field that GDAL makes of it, and the format of its column. */
static const struct type
{
    int size;
    OGRFieldType field;
    char format;
} types[N_TYPES] = {
    [TYPE_BYTE] = {1, OFTInteger, 'i'},
    [TYPE_UBYTE] = {1, OFTInteger, 'i'},
    [TYPE_BOOL] = {1, OFTInteger, 'i'},
    [TYPE_SHORT] = {2, OFTInteger, 'i'},
    [TYPE_USHORT] = {2, OFTInteger, 'i'},
    [TYPE_INT] = {4, OFTInteger, 'i'},
    [TYPE_UINT] = {4, OFTInteger64, 'l'},
    [TYPE_LONG] = {8, OFTInteger64, 'l'},
    [TYPE_ULONG] = {8, OFTReal, 'g'},
    [TYPE_FLOAT] = {4, OFTReal, 'g'},
    [TYPE_DOUBLE] = {8, OFTReal, 'g'},
    [TYPE_STRING] = {0, OFTString, 'U'},
    [TYPE_JSON] = {0, OFTString, 'U'},
    [TYPE_DATETIME] = {0, OFTDateTime, 'F'},
    [TYPE_BINARY] = {0, OFTBinary, 'Z'},
};

/* A longer text is no time. */
#define MOST_TIME 32

struct file_column
{
    int type;
    int to; /* number of the wanted field; -1: nobody looks at it */
};

/* Features of the block that one thread decodes. */
struct file_piece
{
    int64_t at;         /* in the block; at its end: of the first one left */
    int64_t first, end; /* rows of the chunk */
    struct oj_chunk_rows *rows; /* of the chunk; part, or all of it */
    struct oj_chunk_rows *part; /* owned, or NULL */
    int64_t n;                  /* rows that were decoded */
    int fits;                   /* 0: the next one is left to GDAL */
    oj_status status;
    struct oj_error error;
};

struct oj_flatgeobuf_reader
{
    VSILFILE *file;
    int64_t left; /* bytes of the file that are not in block */
    uint8_t *block;
    int64_t at, n_block, cap_block; /* at: of the next feature in block */

    int64_t n_features; /* 0: the header does not say */
    int64_t row;        /* of the next one: its FID */
    int geometry_type, has_z, has_m;

    int n_columns;
    struct file_column *column; /* [n_columns] of the file */
    int n_fields;
    char *format; /* [n_fields] of the chunk; 0: nobody looks at it */
    int64_t batch_rows;

    int n_threads;
    struct oj_chunk_rows *rows; /* of the chunk that is made */
    int64_t n_pieces, cap_pieces;
    struct file_piece *piece; /* [n_pieces] the rest of cap_pieces is zeroed or
                            used before */
};

/* ---- bytes of the file --------------------------------------------------- */

/* Has n bytes of the file, if there are so many, in block at at. */
static oj_status want(struct oj_flatgeobuf_reader *r, int64_t n, int *there,
                      struct oj_error *err)
{
    int64_t n_rest = r->n_block - r->at, n_more;
    *there = n <= n_rest;
    if (*there)
        return OJ_OK;
    if (n > n_rest + r->left)
        return OJ_OK;
    memmove(r->block, r->block + r->at, (size_t)n_rest);
    r->at = 0;
    r->n_block = n_rest;
    OJ_ROOM(r->block, n_rest, n, r->cap_block, err);
    n_more = r->cap_block - n_rest < r->left ? r->cap_block - n_rest : r->left;
    n_more = (int64_t)VSIFReadL(r->block + n_rest, 1, (size_t)n_more, r->file);
    r->n_block += n_more;
    r->left -= n_more;
    *there = n <= r->n_block;
    if (!*there)
        r->left = 0;
    return OJ_OK;
}

/* ---- header -------------------------------------------------------------- */

static int64_t get_number(struct oj_flatbuffer *buffer,
                          const struct oj_flat_table *table, int field,
                          int size, int64_t otherwise)
{
    const uint8_t *at = oj_flatbuffer_field(buffer, table, field, size);
    if (at == NULL)
        return otherwise;
    return size == 1 ? *at : size == 2 ? oj_le16(at) : (int64_t)oj_le64(at);
}

/* 1 when column number i of the file is field i of the layer. */
static int take_column(struct oj_flatgeobuf_reader *r,
                       struct oj_flatbuffer *buffer, OGRFieldDefnH field,
                       const struct oj_flat_table *table, int i)
{
    const char *name = OGR_Fld_GetNameRef(field);
    int64_t n_name;
    const uint8_t *own =
        oj_flatbuffer_vector(buffer, table, OJ_FGB_COLUMN_NAME, 1, &n_name);
    int type = (int)get_number(buffer, table, OJ_FGB_COLUMN_TYPE, 1, 0);
    if (own == NULL || n_name != (int64_t)strlen(name) ||
        memcmp(own, name, (size_t)n_name) != 0 || type >= N_TYPES ||
        types[type].field != OGR_Fld_GetType(field))
        return 0;
    r->column[i].type = type;
    r->column[i].to = -1;
    return 1;
}

/* *fits is 0 when the columns are not the fields of the layer. */
static oj_status take_columns(struct oj_flatgeobuf_reader *r, OGRLayerH layer,
                              struct oj_flatbuffer *buffer,
                              const struct oj_flat_table *header, int *fits,
                              struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    int64_t n;
    const uint8_t *columns =
        oj_flatbuffer_vector(buffer, header, OJ_FGB_HEADER_COLUMNS, 4, &n);
    *fits = n == OGR_FD_GetFieldCount(defn);
    if (!*fits)
        return OJ_OK;
    r->n_columns = (int)n;
    OJ_NEW(r->column, n, err);
    for (int i = 0; *fits && i < n; i++)
    {
        struct oj_flat_table table;
        *fits = oj_flatbuffer_element(buffer, columns, i, &table) &&
                take_column(r, buffer, OGR_FD_GetFieldDefn(defn, i), &table, i);
    }
    return OJ_OK;
}

/* Bytes of the index of n features, nodes of 40 bytes, node_size of which have
 * one above them; -1: too many. */
static int64_t index_bytes(int64_t n, int64_t node_size)
{
    int64_t nodes = n;
    if (n == 0 || node_size == 0)
        return 0;
    if (n < 0 || n > INT64_MAX / 128)
        return -1;
    if (node_size < 2)
        node_size = 2;
    do
    {
        n = (n + node_size - 1) / node_size;
        nodes += n;
    } while (n > 1);
    return 40 * nodes;
}

/* Goes to the first feature; *fits is 0 when this is not the layer's file. */
static oj_status read_header(struct oj_flatgeobuf_reader *r, OGRLayerH layer,
                             int *fits, struct oj_error *err)
{
    static const uint8_t magic[] = {'f', 'g', 'b', 3, 'f', 'g', 'b'};
    struct oj_flatbuffer buffer = {0};
    struct oj_flat_table header;
    int64_t n_index;
    OJ_TRY(want(r, 12, fits, err));
    if (!*fits || memcmp(r->block, magic, sizeof magic) != 0)
    {
        *fits = 0;
        return OJ_OK;
    }
    buffer.size = oj_le32(r->block + 8);
    r->at = 12;
    OJ_TRY(want(r, buffer.size, fits, err));
    buffer.bytes = r->block + r->at;
    if (*fits)
        *fits = oj_flatbuffer_root(&buffer, &header);
    if (!*fits)
        return OJ_OK;
    r->geometry_type =
        (int)get_number(&buffer, &header, OJ_FGB_HEADER_GEOMETRY_TYPE, 1, 0);
    r->has_z = get_number(&buffer, &header, OJ_FGB_HEADER_HAS_Z, 1, 0) != 0;
    r->has_m = get_number(&buffer, &header, OJ_FGB_HEADER_HAS_M, 1, 0) != 0;
    r->n_features =
        get_number(&buffer, &header, OJ_FGB_HEADER_FEATURES_COUNT, 8, 0);
    n_index = index_bytes(
        r->n_features,
        get_number(&buffer, &header, OJ_FGB_HEADER_INDEX_NODE_SIZE, 2, 16));
    OJ_TRY(take_columns(r, layer, &buffer, &header, fits, err));
    *fits = *fits && !buffer.is_broken && n_index >= 0 &&
            r->geometry_type <= OJ_FGB_COLLECTION;
    r->at += buffer.size;
    if (!*fits || n_index <= r->n_block - r->at)
    {
        r->at += *fits ? n_index : 0;
        return OJ_OK;
    }
    n_index -= r->n_block - r->at; /* the block ends within the index */
    r->at = r->n_block = 0;
    *fits = n_index <= r->left &&
            VSIFSeekL(r->file, VSIFTellL(r->file) + (vsi_l_offset)n_index,
                      SEEK_SET) == 0;
    r->left -= n_index;
    return OJ_OK;
}

/* ---- open and close ------------------------------------------------------ */

static void close_reader(void *reader)
{
    struct oj_flatgeobuf_reader *r = reader;
    if (r == NULL)
        return;
    if (r->file != NULL)
        VSIFCloseL(r->file);
    for (int64_t i = 0; i < r->cap_pieces; i++)
        oj_chunk_part_free(r->piece[i].part);
    oj_free(r->piece);
    oj_free(r->block);
    oj_free(r->column);
    oj_free(r->format);
    oj_free(r);
}

/* Which columns are wanted; *fits is 0 when one is wanted twice. */
static oj_status take_fields(struct oj_flatgeobuf_reader *r, const int *fields,
                             const unsigned char *skipped, int n_fields,
                             int *fits, struct oj_error *err)
{
    r->n_fields = n_fields;
    OJ_NEW_ZEROED(r->format, n_fields, err);
    for (int i = 0; i < n_fields; i++)
    {
        struct file_column *column = &r->column[fields[i]];
        if (skipped != NULL && skipped[i])
            continue;
        *fits = *fits && column->to < 0;
        r->format[i] = types[column->type].format;
        column->to = i;
    }
    return OJ_OK;
}

static int open_file(struct oj_flatgeobuf_reader *r, const char *file)
{
    r->file = VSIFOpenL(file, "rb");
    if (r->file == NULL || VSIFSeekL(r->file, 0, SEEK_END) != 0)
        return 0;
    r->left = (int64_t)VSIFTellL(r->file);
    return VSIFSeekL(r->file, 0, SEEK_SET) == 0;
}

oj_status oj_flatgeobuf_read_open(const char *file, OGRLayerH layer,
                                  const int *fields,
                                  const unsigned char *skipped, int n_fields,
                                  int64_t batch_rows, int n_threads,
                                  struct oj_flatgeobuf_reader **out,
                                  struct oj_error *err)
{
    struct oj_flatgeobuf_reader *r;
    oj_status status = OJ_OK;
    int fits = 0;
    *out = NULL;
    OJ_NEW_ZEROED(r, 1, err);
    r->batch_rows = batch_rows;
    r->n_threads = n_threads > 1 ? n_threads : 1;
    fits = open_file(r, file);
    if (fits)
        status = oj_reserve(&r->block, 0, r->n_threads * BLOCK_BYTES,
                            &r->cap_block, 1, err);
    if (status == OJ_OK && fits)
        status = read_header(r, layer, &fits, err);
    if (status == OJ_OK && fits)
        status = take_fields(r, fields, skipped, n_fields, &fits, err);
    if (status == OJ_OK && fits)
        *out = r;
    else
        close_reader(r);
    return status;
}

/* ---- values -------------------------------------------------------------- */

static void add_number(struct oj_chunk_column *column, int64_t row, int type,
                       const uint8_t *at)
{
    union
    {
        uint32_t bits;
        float value;
    } real;
    union
    {
        uint64_t bits;
        double value;
    } wide;
    int32_t *i = (int32_t *)column->values + row;
    oj_chunk_mark(column, row);
    switch (type)
    {
        case TYPE_BYTE:
            *i = (int8_t)*at;
            break;
        case TYPE_UBYTE:
        case TYPE_BOOL:
            *i = *at;
            break;
        case TYPE_SHORT:
            *i = (int16_t)oj_le16(at);
            break;
        case TYPE_USHORT:
            *i = oj_le16(at);
            break;
        case TYPE_INT:
            *i = (int32_t)oj_le32(at);
            break;
        case TYPE_UINT:
            ((int64_t *)column->values)[row] = oj_le32(at);
            break;
        case TYPE_LONG:
            ((int64_t *)column->values)[row] = (int64_t)oj_le64(at);
            break;
        case TYPE_ULONG:
            ((double *)column->values)[row] = (double)oj_le64(at);
            break;
        case TYPE_FLOAT:
            real.bits = oj_le32(at);
            ((double *)column->values)[row] = (double)real.value;
            break;
        default:
            wide.bits = oj_le64(at);
            ((double *)column->values)[row] = wide.value;
            break;
    }
}

/* A text that is no time leaves the row without a value, as in GDAL. */
static void add_time(struct oj_chunk_column *column, int64_t row,
                     const uint8_t *at, int64_t n)
{
    char text[MOST_TIME + 1];
    OGRField *field = (OGRField *)column->values + row;
    memcpy(text, at, (size_t)n);
    text[n] = '\0';
    memset(field, 0, sizeof *field);
    if (OGRParseDate(text, field, 0))
        oj_chunk_mark(column, row);
}

/* The value of a property at at, *n bytes of it; *fits is 0 when it is not
 * whole, or set for the second time. */
static oj_status add_value(struct oj_chunk_rows *rows,
                           const struct file_column *from, int64_t row,
                           const uint8_t *at, int64_t left, int64_t *n,
                           int *fits, struct oj_error *err)
{
    struct oj_chunk_column *column = &rows->column[OJ_CHUNK_FIELDS + from->to];
    int64_t size = types[from->type].size;
    *n = size;
    *fits = left >= (size > 0 ? size : 4);
    if (*fits && size == 0)
    {
        size = oj_le32(at);
        at += 4;
        *n = 4 + size;
        *fits = size <= left - 4 &&
                (from->type != TYPE_DATETIME || size <= MOST_TIME);
    }
    if (!*fits || from->to < 0)
        return OJ_OK;
    *fits = (column->bits[row >> 3] >> (row & 7) & 1) == 0;
    if (!*fits)
        return OJ_OK;
    if (types[from->type].format == 'U' || types[from->type].format == 'Z')
        return oj_chunk_add_bytes(column, row, at, size, err);
    if (from->type == TYPE_DATETIME)
        add_time(column, row, at, size);
    else
        add_number(column, row, from->type, at);
    return OJ_OK;
}

static oj_status add_properties(const struct oj_flatgeobuf_reader *r,
                                struct oj_chunk_rows *rows, int64_t row,
                                const uint8_t *at, int64_t n, int *fits,
                                struct oj_error *err)
{
    while (n > 0)
    {
        int64_t n_value;
        int column = n >= 2 ? oj_le16(at) : r->n_columns;
        *fits = column < r->n_columns;
        if (!*fits)
            return OJ_OK;
        OJ_TRY(add_value(rows, &r->column[column], row, at + 2, n - 2, &n_value,
                         fits, err));
        if (!*fits)
            return OJ_OK;
        at += 2 + n_value;
        n -= 2 + n_value;
    }
    return OJ_OK;
}

static oj_status add_geometry(const struct oj_flatgeobuf_reader *r,
                              struct oj_chunk_column *column, int64_t row,
                              struct oj_flatbuffer *feature, int64_t at,
                              int *fits, struct oj_error *err)
{
    struct oj_flat_table geometry;
    int64_t n;
    OJ_TRY(
        oj_chunk_room(column, row, oj_flatgeobuf_wkb_room(feature->size), err));
    *fits = oj_flatbuffer_table(feature, at, &geometry);
    if (!*fits)
        return OJ_OK;
    n = oj_flatgeobuf_to_wkb(feature, &geometry, r->geometry_type, r->has_z,
                             r->has_m,
                             (uint8_t *)column->bytes + column->n_bytes);
    *fits = n > 0;
    if (!*fits)
        return OJ_OK;
    oj_chunk_end_bytes(column, row, n);
    return OJ_OK;
}

/* Columns of bytes, where the row has no value, end where they did. */
static void end_row(struct oj_chunk_rows *rows, int64_t row)
{
    for (int c = OJ_CHUNK_GEOMETRY; c < rows->n_columns; c++)
    {
        struct oj_chunk_column *column = &rows->column[c];
        if (column->format != 0 &&
            (column->bits[row >> 3] >> (row & 7) & 1) == 0)
            oj_chunk_add_null(column, row);
    }
}

static oj_status add_feature(const struct oj_flatgeobuf_reader *r,
                             struct oj_chunk_rows *rows, int64_t row,
                             struct oj_flatbuffer *feature, int *fits,
                             struct oj_error *err)
{
    struct oj_flat_table table;
    const uint8_t *properties;
    int64_t geometry, n;
    *fits = oj_flatbuffer_root(feature, &table);
    if (!*fits)
        return OJ_OK;
    geometry = oj_flatbuffer_target(
        feature,
        oj_flatbuffer_field(feature, &table, OJ_FGB_FEATURE_GEOMETRY, 4));
    properties =
        oj_flatbuffer_vector(feature, &table, OJ_FGB_FEATURE_PROPERTIES, 1, &n);
    *fits = !feature->is_broken;
    if (*fits && geometry != 0)
        OJ_TRY(add_geometry(r, &rows->column[OJ_CHUNK_GEOMETRY], row, feature,
                            geometry, fits, err));
    if (*fits && properties != NULL)
        OJ_TRY(add_properties(r, rows, row, properties, n, fits, err));
    if (*fits)
    {
        ((int64_t *)rows->column[OJ_CHUNK_FID].values)[row] = r->row + row;
        end_row(rows, row);
    }
    return OJ_OK;
}

/* ---- pieces ---------------------------------------------------------------
 */

static int has_more(const struct oj_flatgeobuf_reader *r, int64_t n_rows)
{
    return r->n_features > 0 ? r->row + n_rows < r->n_features
                             : r->left > 0 || r->at < r->n_block;
}

/* Has the next feature in the block; *fits is 0 when the file ends within. */
static oj_status want_feature(struct oj_flatgeobuf_reader *r, int *fits,
                              struct oj_error *err)
{
    OJ_TRY(want(r, 4, fits, err));
    if (*fits)
        OJ_TRY(want(r, 4 + (int64_t)oj_le32(r->block + r->at), fits, err));
    return OJ_OK;
}

static oj_status add_piece(struct oj_flatgeobuf_reader *r, int64_t at,
                           int64_t row, struct oj_error *err)
{
    int64_t n = r->n_pieces, cap = r->cap_pieces;
    OJ_ROOM(r->piece, n, n + 1, r->cap_pieces, err);
    if (r->cap_pieces > cap)
        memset(r->piece + cap, 0,
               (size_t)(r->cap_pieces - cap) * sizeof *r->piece);
    r->piece[n].at = at;
    r->piece[n].first = r->piece[n].end = row;
    r->n_pieces++;
    return OJ_OK;
}

/* Cuts the features that are whole in the block, the first of which is row.
 * Pieces begin where a byte of bits does. */
static oj_status cut_pieces(struct oj_flatgeobuf_reader *r, int64_t row,
                            struct oj_error *err)
{
    int64_t at = r->at;
    r->n_pieces = 0;
    while (row < r->rows->max_rows && r->n_block - at >= 4)
    {
        int64_t size = 4 + (int64_t)oj_le32(r->block + at);
        if (size > r->n_block - at)
            break;
        if (r->n_pieces == 0 ||
            (row % 8 == 0 && r->n_threads > 1 &&
             at - r->piece[r->n_pieces - 1].at >= PIECE_BYTES))
            OJ_TRY(add_piece(r, at, row, err));
        at += size;
        r->piece[r->n_pieces - 1].end = ++row;
    }
    return OJ_OK;
}

static void decode_piece(int64_t task, int thread, void *user)
{
    const struct oj_flatgeobuf_reader *r = user;
    struct file_piece *piece = &r->piece[task];
    (void)thread;
    piece->status = OJ_OK;
    piece->fits = 1;
    for (piece->n = 0; piece->first + piece->n < piece->end; piece->n++)
    {
        struct oj_flatbuffer feature = {.bytes = r->block + piece->at + 4,
                                        .size = oj_le32(r->block + piece->at)};
        piece->status = add_feature(r, piece->rows, piece->first + piece->n,
                                    &feature, &piece->fits, &piece->error);
        if (piece->status != OJ_OK || !piece->fits)
            return;
        piece->at += 4 + feature.size;
    }
}

static void copy_piece(int64_t task, int thread, void *user)
{
    const struct oj_flatgeobuf_reader *r = user;
    const struct file_piece *piece = &r->piece[task];
    (void)thread;
    oj_chunk_part_copy(r->rows, piece->part, piece->first, piece->n);
}

/* The pieces of the block, which ends at the first feature that does not fit.
 */
static oj_status decode_pieces(struct oj_flatgeobuf_reader *r, int64_t *n_rows,
                               int *fits, struct oj_error *err)
{
    int is_alone = r->n_pieces == 1;
    int64_t n = 0;
    for (int64_t i = 0; i < r->n_pieces; i++)
    {
        struct file_piece *piece = &r->piece[i];
        if (!is_alone)
            OJ_TRY(oj_chunk_part_begin(r->rows, &piece->part, err));
        piece->rows = is_alone ? r->rows : piece->part;
    }
    oj_parallel_for(r->n_threads, r->n_pieces, decode_piece, r);
    for (; n < r->n_pieces && *fits; n++)
    {
        const struct file_piece *piece = &r->piece[n];
        if (piece->status != OJ_OK)
            return oj_fail(err, piece->status, "%s", piece->error.message);
        *n_rows += piece->n;
        *fits = piece->fits;
        r->at = piece->at;
        if (!is_alone)
            OJ_TRY(oj_chunk_part_place(r->rows, piece->part, *n_rows, err));
    }
    if (!is_alone)
        oj_parallel_for(r->n_threads, n, copy_piece, r);
    return OJ_OK;
}

/* Up to batch_rows features; *fits is 0 when what follows the *n_rows is left
 * to GDAL. */
static oj_status read_features(struct oj_flatgeobuf_reader *r, int64_t *n_rows,
                               int *fits, struct oj_error *err)
{
    *fits = 1;
    *n_rows = 0;
    while (*fits && *n_rows < r->rows->max_rows && has_more(r, *n_rows))
    {
        OJ_TRY(want_feature(r, fits, err));
        if (!*fits)
            return OJ_OK;
        OJ_TRY(cut_pieces(r, *n_rows, err));
        OJ_TRY(decode_pieces(r, n_rows, fits, err));
    }
    return OJ_OK;
}

static oj_status next(void *stream, struct oj_chunk **out, const char **text,
                      struct oj_error *err)
{
    struct oj_flatgeobuf_reader *r = stream;
    int64_t n_rows, most = r->batch_rows;
    int fits;
    oj_status status;
    *text = NULL;
    *out = NULL;
    if (r->n_features > 0 && most > r->n_features - r->row)
        most = r->n_features - r->row;
    OJ_TRY(oj_chunk_rows_new(r->format, r->n_fields, most, sizeof(OGRField),
                             &r->rows, err));
    status = read_features(r, &n_rows, &fits, err);
    if (status == OJ_OK && n_rows == 0 && !fits)
        status = oj_fail(err, OJ_ERR_UNSUPPORTED, "left to GDAL");
    if (status == OJ_OK && n_rows > 0)
        status = oj_chunk_rows_finish(r->rows, n_rows, out, err);
    if (*out == NULL)
        oj_chunk_rows_free(r->rows);
    else
        r->row += n_rows;
    return status;
}

const struct oj_lane oj_flatgeobuf_lane = {"FlatGeobuf", 1, next, close_reader,
                                           0};
