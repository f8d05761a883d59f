#include "oj_flatgeobuf_read.h"

#include "../arrays/oj_iso_time.h"
#include "../base/oj_alloc.h"
#include "oj_flatbuffer.h"
#include "oj_flatgeobuf_format.h"
#include "oj_flatgeobuf_sort.h"

#include <cpl_vsi.h>
#include <ogr_api.h>

/* Bytes of the file per thread and chunk: enough to amortise starting threads.
 */
#define BLOCK_BYTES (1 << 19)
#define PIECE_BYTES (BLOCK_BYTES / 2)

/* A filter box that fewer than 1/SMALL_PART of all rows pass is left to GDAL,
 * which uses the spatial index. At that share GDAL takes as long as a scan of
 * the file. */
#define SMALL_PART 8

/* Nodes of the spatial index per read. */
#define NODES_AT_ONCE 256

/* Features with collections nested more deeply than this, or with more
 * FlatBuffers tables (GDAL refuses those), are left to GDAL. */
#define MOST_DEPTH 32
#define MOST_TABLES 1000000

/* Types of columns in the file that need special treatment. */
enum
{
    TYPE_BYTE = 0,
    TYPE_SHORT = 3,
    TYPE_ULONG = 8,
    TYPE_FLOAT = 9,
    TYPE_DATETIME = 13,
    N_TYPES = 15
};

/* Per column type of the file: its size in the file (0: variable, preceded by a
 * length) and the type of GDAL's field. Order: (u)byte, bool, (u)short, (u)int,
 * (u)long, float, double, string, JSON, datetime, binary. */
static const struct type
{
    int size;
    OGRFieldType field;
} types[N_TYPES] = {{1, OFTInteger},   {1, OFTInteger},   {1, OFTInteger},
                    {2, OFTInteger},   {2, OFTInteger},   {4, OFTInteger},
                    {4, OFTInteger64}, {8, OFTInteger64}, {8, OFTReal},
                    {4, OFTReal},      {8, OFTReal},      {0, OFTString},
                    {0, OFTString},    {0, OFTDateTime},  {0, OFTBinary}};

/* Maximum length of a text that is parsed as a time. */
#define MOST_TIME 32

struct file_column
{
    int type;
    int to; /* column of the chunk; -1: not used */
};

struct oj_flatgeobuf_reader
{
    struct oj_chunk_maker maker; /* must be the first member */
    VSILFILE *file;
    int64_t left; /* bytes of the file behind the block in memory */
    uint8_t *block;
    /* at: offset in block of the next feature */
    int64_t at, n_block, cap_block;

    int64_t n_features; /* 0: unknown */
    int64_t n_done;     /* features divided into pieces so far */
    /* index of a row in the file less its index in the current chunk, for the
     * rows of this block */
    int64_t before;
    int geometry_type, has_z, has_m;

    int n_columns;
    struct file_column *column; /* [n_columns] the columns of the file */
};

/* ---- bytes of the file --------------------------------------------------- */

/* Ensures that the block has n bytes from r->at on. If the file ends before
 * that, its remaining rows are left to GDAL. */
static oj_status ensure_bytes_in_block(struct oj_flatgeobuf_reader *r,
                                       int64_t n, struct oj_error *err)
{
    int64_t n_rest = r->n_block - r->at, n_more;
    if (n <= n_rest)
        return OJ_OK;
    if (n > n_rest + r->left)
        return oj_lane_leave_to_gdal(err);
    memmove(r->block, r->block + r->at, (size_t)n_rest);
    r->at = 0;
    r->n_block = n_rest;
    OJ_ROOM(r->block, n_rest, n, r->cap_block, err);
    n_more = r->cap_block - n_rest < r->left ? r->cap_block - n_rest : r->left;
    n_more = (int64_t)VSIFReadL(r->block + n_rest, 1, (size_t)n_more, r->file);
    r->n_block += n_more;
    r->left = n <= r->n_block ? r->left - n_more : 0;
    return n <= r->n_block ? OJ_OK : oj_lane_leave_to_gdal(err);
}

/* ---- header -------------------------------------------------------------- */

static int64_t read_scalar_field(struct oj_flatbuffer *buffer,
                                 const struct oj_flat_table *table, int field,
                                 int size, int64_t otherwise)
{
    const uint8_t *at = oj_flatbuffer_field(buffer, table, field, size);
    return at != NULL ? oj_flatbuffer_le(at, size) : otherwise;
}

/* Maps the file's columns to the wanted fields. Leaves the layer to GDAL unless
 * each wanted field matches exactly one column. */
static oj_status match_file_columns(struct oj_flatgeobuf_reader *r,
                                    const struct oj_lane_request *from,
                                    struct oj_flatbuffer *buffer,
                                    const struct oj_flat_table *header,
                                    struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(from->layer);
    int64_t n, n_name;
    const uint8_t *name,
        *columns =
            oj_flatbuffer_vector(buffer, header, OJ_FGB_HEADER_COLUMNS, 4, &n);
    if (n != OGR_FD_GetFieldCount(defn))
        return oj_lane_leave_to_gdal(err);
    r->n_columns = (int)n;
    OJ_NEW(r->column, n, err);
    for (int i = 0; i < n; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        const char *own = OGR_Fld_GetNameRef(field);
        struct oj_flat_table table;
        int64_t type;
        if (!oj_flatbuffer_element(buffer, columns, i, &table))
            return oj_lane_leave_to_gdal(err);
        name = oj_flatbuffer_vector(buffer, &table, OJ_FGB_COLUMN_NAME, 1,
                                    &n_name);
        type = read_scalar_field(buffer, &table, OJ_FGB_COLUMN_TYPE, 1, 0);
        if (name == NULL || n_name != (int64_t)strlen(own) ||
            memcmp(name, own, (size_t)n_name) != 0 || type >= N_TYPES ||
            types[type].field != OGR_Fld_GetType(field))
            return oj_lane_leave_to_gdal(err);
        r->column[i].type = (int)type;
        r->column[i].to = -1;
    }
    for (int i = 0; i < from->n_fields; i++)
    {
        int *to = &r->column[from->fields[i]].to;
        if (from->formats[i] == 0)
            continue;
        if (*to >= 0)
            return oj_lane_leave_to_gdal(err);
        *to = i;
    }
    return OJ_OK;
}

/* Returns the size in bytes of a spatial index over n features: nodes of 40
 * bytes, node_size children each; -1: too large. */
static int64_t size_of_spatial_index(int64_t n, int64_t node_size)
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

/* Leaves the layer to GDAL and its spatial index if the box contains few rows.
 * Estimates the share of these rows from the index nodes above the leaves;
 * `end` is the end of these nodes in the file. Keeps the file's position. */
static oj_status check_box_has_many_rows(struct oj_flatgeobuf_reader *r,
                                         const double *box, int64_t end,
                                         struct oj_error *err)
{
    struct oj_flatgeobuf_node node[NODES_AT_ONCE];
    vsi_l_offset here = VSIFTellL(r->file);
    int64_t n = (r->n_features + OJ_FGB_NODE_SIZE - 1) / OJ_FGB_NODE_SIZE;
    int64_t n_met = 0, n_left = n;
    int is_read =
        VSIFSeekL(r->file, (vsi_l_offset)(end - 40 * n), SEEK_SET) == 0;
    while (is_read && n_left > 0)
    {
        int64_t k = n_left < NODES_AT_ONCE ? n_left : NODES_AT_ONCE;
        is_read =
            VSIFReadL(node, sizeof *node, (size_t)k, r->file) == (size_t)k;
        n_left -= k;
        while (is_read && k-- > 0)
            n_met += node[k].box[0] <= box[1] && node[k].box[2] >= box[0] &&
                     node[k].box[1] <= box[3] && node[k].box[3] >= box[2];
    }
    return is_read && VSIFSeekL(r->file, here, SEEK_SET) == 0 &&
                   SMALL_PART * n_met >= n
               ? OJ_OK
               : oj_lane_leave_to_gdal(err);
}

/* Reads the header and positions the file at the first feature. */
static oj_status read_header(struct oj_flatgeobuf_reader *r,
                             const struct oj_lane_request *from,
                             struct oj_error *err)
{
    static const uint8_t magic[] = {'f', 'g', 'b', 3, 'f', 'g', 'b'};
    struct oj_flatbuffer buffer = {0};
    struct oj_flat_table header;
    int64_t n_index, n_skipped, node_size;
    OJ_TRY(ensure_bytes_in_block(r, 12, err));
    if (memcmp(r->block, magic, sizeof magic) != 0)
        return oj_lane_leave_to_gdal(err);
    buffer.size = oj_flatbuffer_le32(r->block + 8);
    r->at = 12;
    OJ_TRY(ensure_bytes_in_block(r, buffer.size, err));
    buffer.bytes = r->block + r->at;
    if (!oj_flatbuffer_root(&buffer, &header))
        return oj_lane_leave_to_gdal(err);
    r->geometry_type = (int)read_scalar_field(
        &buffer, &header, OJ_FGB_HEADER_GEOMETRY_TYPE, 1, 0);
    r->has_z =
        read_scalar_field(&buffer, &header, OJ_FGB_HEADER_HAS_Z, 1, 0) != 0;
    r->has_m =
        read_scalar_field(&buffer, &header, OJ_FGB_HEADER_HAS_M, 1, 0) != 0;
    r->n_features =
        read_scalar_field(&buffer, &header, OJ_FGB_HEADER_FEATURES_COUNT, 8, 0);
    node_size = read_scalar_field(
        &buffer, &header, OJ_FGB_HEADER_INDEX_NODE_SIZE, 2, OJ_FGB_NODE_SIZE);
    n_index = size_of_spatial_index(r->n_features, node_size);
    OJ_TRY(match_file_columns(r, from, &buffer, &header, err));
    r->at += buffer.size;
    /* bytes of the index that are not in the block */
    n_skipped = n_index - (r->n_block - r->at);
    if (buffer.is_broken || n_index < 0 || n_skipped > r->left ||
        r->geometry_type > OJ_FGB_COLLECTION)
        return oj_lane_leave_to_gdal(err);
    if (from->box != NULL && node_size == OJ_FGB_NODE_SIZE && n_index > 0)
        OJ_TRY(check_box_has_many_rows(
            r, from->box, 12 + buffer.size + n_index - 40 * r->n_features,
            err));
    r->at = n_skipped > 0 ? r->n_block : r->at + n_index;
    if (n_skipped <= 0)
        return OJ_OK;
    r->left -= n_skipped;
    return VSIFSeekL(r->file, VSIFTellL(r->file) + (vsi_l_offset)n_skipped,
                     SEEK_SET) == 0
               ? OJ_OK
               : oj_lane_leave_to_gdal(err);
}

/* ---- values -------------------------------------------------------------- */

static void add_number_value(struct oj_chunk_column *column, int64_t row,
                             int type, const uint8_t *at)
{
    int64_t whole = oj_flatbuffer_le(at, types[type].size);
    double *real = (double *)column->values + row;
    float single;
    oj_chunk_set_valid(column, row);
    if (type == TYPE_BYTE)
        whole = (int8_t)whole;
    else if (type == TYPE_SHORT)
        whole = (int16_t)whole;
    if (column->format == 'i')
        ((int32_t *)column->values)[row] = (int32_t)whole;
    else if (type == TYPE_ULONG)
        *real = (double)(uint64_t)whole;
    else if (type == TYPE_FLOAT)
    {
        memcpy(&single, at, 4);
        *real = (double)single;
    }
    else
        ((int64_t *)column->values)[row] = whole;
}

/* Adds a time. A text that is not a valid time gives NULL, as in GDAL. */
static void add_time(struct oj_chunk_column *column, int64_t row,
                     const uint8_t *at, int64_t n)
{
    char text[MOST_TIME + 1];
    struct oj_iso_time time;
    OGRField *field = (OGRField *)column->values + row;
    memset(field, 0, sizeof *field);
    if (oj_iso_time_read((const char *)at, n, &time))
    {
        OJ_ISO_TIME_ASSIGN(time, field->Date);
        oj_chunk_set_valid(column, row);
        return;
    }
    memcpy(text, at, (size_t)n);
    text[n] = '\0';
    if (OGRParseDate(text, field, 0))
        oj_chunk_set_valid(column, row);
}

/* Returns 1 if one of the eight bytes of word is 0. */
static inline int has_zero_byte(uint64_t word)
{
    return ((word - UINT64_C(0x0101010101010101)) & ~word &
            UINT64_C(0x8080808080808080)) != 0;
}

/* Returns the length of a text up to its first NUL byte, where OGR's texts end.
 * At least ten bytes of the feature precede every text, so that its last eight
 * bytes can be read as one word even if it is shorter. */
static inline int64_t length_before_nul(const uint8_t *at, int64_t n)
{
    uint64_t word;
    int64_t i = 0;
    if (n == 0)
        return 0;
    for (; i < n - 8; i += 8)
    {
        memcpy(&word, at + i, sizeof word);
        if (has_zero_byte(word))
            return (int64_t)strnlen((const char *)at, (size_t)n);
    }
    memcpy(&word, at + n - 8, sizeof word);
    if (n < 8)
        word |= (UINT64_C(1) << (64 - 8 * n)) - 1;
    return has_zero_byte(word) ? (int64_t)strnlen((const char *)at, (size_t)n)
                               : n;
}

/* Adds the value of a property that is stored at `at`, where `left` bytes
 * remain. *n: number of bytes of the value. Fails if the feature repeats a
 * column. */
static oj_status add_property_value(struct oj_chunk_rows *rows,
                                    const struct file_column *from, int64_t row,
                                    const uint8_t *at, int64_t left, int64_t *n,
                                    struct oj_error *err)
{
    struct oj_chunk_column *column = &rows->column[OJ_CHUNK_FIELDS + from->to];
    int64_t size = types[from->type].size, n_length = size > 0 ? 0 : 4;
    if (left < size + n_length)
        return oj_lane_leave_to_gdal(err);
    if (n_length > 0)
        size = oj_flatbuffer_le32(at);
    *n = n_length + size;
    if (*n > left || (from->type == TYPE_DATETIME && size > MOST_TIME))
        return oj_lane_leave_to_gdal(err);
    if (from->to < 0)
        return OJ_OK;
    if (oj_chunk_has_value(column, row))
        return oj_lane_leave_to_gdal(err);
    if (n_length == 0)
        add_number_value(column, row, from->type, at);
    else if (from->type == TYPE_DATETIME)
        add_time(column, row, at + 4, size);
    else if (column->format == 'U')
        return oj_chunk_add_bytes(column, row, at + 4,
                                  length_before_nul(at + 4, size), err);
    else
        return oj_chunk_add_bytes(column, row, at + 4, size, err);
    return OJ_OK;
}

static oj_status add_properties(const struct oj_flatgeobuf_reader *r,
                                struct oj_chunk_rows *rows, int64_t row,
                                const uint8_t *at, int64_t n,
                                struct oj_error *err)
{
    while (n > 0)
    {
        int64_t n_value = 0;
        int column = n >= 2 ? oj_flatbuffer_le16(at) : r->n_columns;
        if (column >= r->n_columns)
            return oj_lane_leave_to_gdal(err);
        OJ_TRY(add_property_value(rows, &r->column[column], row, at + 2, n - 2,
                                  &n_value, err));
        at += 2 + n_value;
        n -= 2 + n_value;
    }
    return OJ_OK;
}

/* ---- geometry -> well-known binary --------------------------------------- */

struct wkb_writer
{
    struct oj_flatbuffer *feature;
    int has_z, has_m;
    uint8_t *to, *end;
    int n_tables;
};

/* The vertices of one geometry. */
struct vertices
{
    const uint8_t *xy, *z, *m, *ends;
    int64_t n, n_ends;
};

static int put_u32(struct wkb_writer *w, int64_t value)
{
    if (w->end - w->to < 4)
        return 0;
    memcpy(w->to, &value, 4);
    w->to += 4;
    return 1;
}

static int put_wkb_head(struct wkb_writer *w, int type)
{
    if (w->to == w->end)
        return 0;
    *w->to++ = 1;
    return put_u32(w, type + 1000 * w->has_z + 2000 * w->has_m);
}

/* Checks the fields from `first` on that this type of geometry does not use,
 * because GDAL's verifier checks them, too. Returns 0 if a field is invalid.
 * Also returns 0 if the geometry has parts and has_parts is 0: it is left to
 * GDAL. */
static int are_unread_fields_sound(struct wkb_writer *w,
                                   const struct oj_flat_table *table, int first,
                                   int has_parts)
{
    int64_t n;
    for (int field = first; field < OJ_FGB_TYPE && field < table->n_fields;
         field++)
        (void)oj_flatbuffer_vector(w->feature, table, field,
                                   field == OJ_FGB_ENDS ? 4 : 8, &n);
    return (has_parts ||
            oj_flatbuffer_field(w->feature, table, OJ_FGB_PARTS, 1) == NULL) &&
           !w->feature->is_broken;
}

static int find_coordinate_vectors(struct wkb_writer *w,
                                   const struct oj_flat_table *table,
                                   struct vertices *v)
{
    int64_t n_values, n_z = 0, n_m = 0;
    v->xy = oj_flatbuffer_vector(w->feature, table, OJ_FGB_XY, 8, &n_values);
    v->n = n_values / 2;
    if (v->n == 0)
        return 0;
    if (w->has_z)
        v->z = oj_flatbuffer_vector(w->feature, table, OJ_FGB_Z, 8, &n_z);
    if (w->has_m)
        v->m = oj_flatbuffer_vector(w->feature, table, OJ_FGB_M, 8, &n_m);
    if ((w->has_z && n_z < v->n) || (w->has_m && n_m < v->n))
        return 0;
    v->ends =
        oj_flatbuffer_vector(w->feature, table, OJ_FGB_ENDS, 4, &v->n_ends);
    return are_unread_fields_sound(w, table, OJ_FGB_Z, 0);
}

static int put_vertices(struct wkb_writer *w, const struct vertices *v,
                        int64_t first, int64_t end)
{
    int64_t size = 8 * (2 + w->has_z + w->has_m);
    if ((w->end - w->to) / size < end - first)
        return 0;
    if (size == 16)
        memcpy(w->to, v->xy + 16 * first, (size_t)(16 * (end - first)));
    for (int64_t i = first; size > 16 && i < end; i++)
    {
        uint8_t *to = w->to + size * (i - first);
        memcpy(to, v->xy + 16 * i, 16);
        if (w->has_z)
            memcpy(to + 16, v->z + 8 * i, 8);
        if (w->has_m)
            memcpy(to + size - 8, v->m + 8 * i, 8);
    }
    w->to += size * (end - first);
    return 1;
}

/* Writes the number of vertices first .. end - 1, then these vertices. Returns
 * 0 if first == end, if the geometry has fewer vertices, or if there is no room
 * for them. */
static int put_counted_vertices(struct wkb_writer *w, const struct vertices *v,
                                int64_t first, int64_t end)
{
    return first < end && end <= v->n && put_u32(w, end - first) &&
           put_vertices(w, v, first, end);
}

/* Returns 0 for lines without ends, or with an end before the last vertex: they
 * are left to GDAL, whose versions differ in treating them. */
static int are_line_ends_plain(const struct vertices *v)
{
    return v->n_ends > 1 ||
           (v->n_ends == 1 && oj_flatbuffer_le32(v->ends) == v->n);
}

/* Writes the rings of a polygon, or the members of a multi-geometry of points
 * or lines. A single ring has all vertices, regardless of `ends`. Returns 0 on
 * failure. */
static int write_rings_or_members(struct wkb_writer *w,
                                  const struct vertices *v, int type)
{
    int are_points = type == OJ_FGB_MULTIPOINT;
    int64_t first = 0, n = are_points ? v->n : v->n_ends > 1 ? v->n_ends : 1;
    if ((type == OJ_FGB_MULTILINE && !are_line_ends_plain(v)) || !put_u32(w, n))
        return 0;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t end = are_points ? i + 1
                      : n > 1    ? (int64_t)oj_flatbuffer_le32(v->ends + 4 * i)
                                 : v->n;
        if ((type != OJ_FGB_POLYGON &&
             !put_wkb_head(w, type - OJ_FGB_MULTIPOINT + OJ_FGB_POINT)) ||
            !(are_points ? put_vertices(w, v, i, end)
                         : put_counted_vertices(w, v, first, end)))
            return 0;
        first = end;
    }
    return 1;
}

static int write_wkb(struct wkb_writer *w, const struct oj_flat_table *table,
                     int type, int depth);

static int write_parts_as_wkb(struct wkb_writer *w,
                              const struct oj_flat_table *table, int type,
                              int depth)
{
    int64_t n;
    const uint8_t *parts =
        oj_flatbuffer_vector(w->feature, table, OJ_FGB_PARTS, 4, &n);
    if (n == 0 || depth >= MOST_DEPTH || !put_u32(w, n) ||
        !are_unread_fields_sound(w, table, OJ_FGB_ENDS, 1))
        return 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_flat_table part;
        if (!oj_flatbuffer_element(w->feature, parts, i, &part) ||
            !write_wkb(w, &part, type, depth + 1))
            return 0;
    }
    return 1;
}

static int write_wkb(struct wkb_writer *w, const struct oj_flat_table *table,
                     int type, int depth)
{
    struct vertices v = {0};
    const uint8_t *own = oj_flatbuffer_field(w->feature, table, OJ_FGB_TYPE, 1);
    if (type == OJ_FGB_UNKNOWN)
        type = own != NULL ? *own : OJ_FGB_UNKNOWN;
    if (++w->n_tables >= MOST_TABLES || type < OJ_FGB_POINT ||
        type > OJ_FGB_COLLECTION || !put_wkb_head(w, type))
        return 0;
    if (type == OJ_FGB_MULTIPOLYGON)
        return write_parts_as_wkb(w, table, OJ_FGB_POLYGON, depth);
    if (type == OJ_FGB_COLLECTION)
        return write_parts_as_wkb(w, table, OJ_FGB_UNKNOWN, depth);
    if (!find_coordinate_vectors(w, table, &v))
        return 0;
    return type == OJ_FGB_POINT  ? put_vertices(w, &v, 0, 1)
           : type == OJ_FGB_LINE ? put_counted_vertices(w, &v, 0, v.n)
                                 : write_rings_or_members(w, &v, type);
}

static oj_status add_geometry(const struct oj_flatgeobuf_reader *r,
                              struct oj_chunk_column *column, int64_t row,
                              struct oj_flatbuffer *feature, int64_t at,
                              struct oj_error *err)
{
    struct oj_flat_table geometry;
    struct wkb_writer w = {feature, r->has_z, r->has_m, NULL, NULL, 0};
    struct vertices point = {0};
    /* WKB is never longer than this, unless a feature refers to one table many
     * times; such a feature is left to GDAL. */
    int64_t room = 8 * feature->size + 64;
    if (!oj_flatbuffer_table(feature, at, &geometry))
        return oj_lane_leave_to_gdal(err);
    if (column->format == 'P')
    {
        if (r->geometry_type != OJ_FGB_POINT ||
            !find_coordinate_vectors(&w, &geometry, &point))
            return oj_lane_leave_to_gdal(err);
        oj_chunk_add_point(column, row, point.xy);
        return OJ_OK;
    }
    OJ_TRY(oj_chunk_reserve(column, room, err));
    w.to = (uint8_t *)column->bytes + column->n_bytes;
    w.end = w.to + room;
    if (!write_wkb(&w, &geometry, r->geometry_type, 0) || feature->is_broken)
        return oj_lane_leave_to_gdal(err);
    oj_chunk_end_bytes(column, row, room - (w.end - w.to));
    return OJ_OK;
}

static oj_status add_feature(const struct oj_flatgeobuf_reader *r,
                             struct oj_chunk_rows *rows, int64_t row,
                             int64_t *at, struct oj_error *err)
{
    struct oj_flatbuffer feature = {.bytes = r->block + *at + 4,
                                    .size = oj_flatbuffer_le32(r->block + *at)};
    struct oj_flat_table table;
    const uint8_t *properties;
    int64_t geometry, n;
    if (!oj_flatbuffer_root(&feature, &table))
        return oj_lane_leave_to_gdal(err);
    geometry = oj_flatbuffer_target(
        &feature,
        oj_flatbuffer_field(&feature, &table, OJ_FGB_FEATURE_GEOMETRY, 4));
    properties = oj_flatbuffer_vector(&feature, &table,
                                      OJ_FGB_FEATURE_PROPERTIES, 1, &n);
    if (feature.is_broken ||
        oj_flatbuffer_field(&feature, &table, OJ_FGB_FEATURE_COLUMNS, 4) !=
            NULL)
        return oj_lane_leave_to_gdal(err);
    if (geometry != 0)
        OJ_TRY(add_geometry(r, &rows->column[OJ_CHUNK_GEOMETRY], row, &feature,
                            geometry, err));
    OJ_TRY(add_properties(r, rows, row, properties, n, err));
    ((int64_t *)rows->column[OJ_CHUNK_FID].values)[row] = r->before + row;
    *at += 4 + feature.size;
    return OJ_OK;
}

static oj_status add_features(void *stream, int thread,
                              const struct oj_chunk_piece *piece,
                              struct oj_chunk_rows *to, int64_t *n,
                              struct oj_error *err)
{
    int64_t at = piece->at;
    (void)thread;
    for (; piece->row + *n < piece[1].row; ++*n)
        OJ_TRY(add_feature(stream, to, piece->row + *n, &at, err));
    return OJ_OK;
}

/* ---- chunks -------------------------------------------------------------- */

/* Divides the complete features of the block (it must have one) into pieces for
 * the threads. Pieces start at rows that are multiples of 8, so that no two
 * threads write to one byte of validity bits. */
static oj_status cut_block_into_feature_runs(struct oj_flatgeobuf_reader *r,
                                             int64_t row, int64_t end,
                                             struct oj_error *err)
{
    int64_t at = r->at, begin = at, size;
    OJ_TRY(oj_chunk_begin_piece(&r->maker, at, row, err));
    while (row < end && r->n_block - at >= 4 &&
           (size = 4 + (int64_t)oj_flatbuffer_le32(r->block + at)) <=
               r->n_block - at)
    {
        if (row % 8 == 0 && at - begin >= PIECE_BYTES)
        {
            OJ_TRY(oj_chunk_begin_piece(&r->maker, at, row, err));
            begin = at;
        }
        at += size;
        row++;
    }
    r->at = at;
    r->n_done = r->before + row;
    return oj_chunk_begin_piece(&r->maker, at, row, err);
}

static oj_status read_and_cut_block(void *stream, int64_t first, int64_t end,
                                    struct oj_error *err)
{
    struct oj_flatgeobuf_reader *r = stream;
    int64_t n = r->n_features - r->n_done;
    if (r->n_features > 0 ? n == 0 : r->left == 0 && r->at == r->n_block)
        return OJ_OK;
    if (r->n_features > 0 && end - first > n)
        end = first + n;
    r->before = r->n_done - first;
    OJ_TRY(ensure_bytes_in_block(r, 4, err));
    OJ_TRY(ensure_bytes_in_block(
        r, 4 + (int64_t)oj_flatbuffer_le32(r->block + r->at), err));
    return cut_block_into_feature_runs(r, first, end, err);
}

/* ---- open and close ------------------------------------------------------ */

static void close_reader(void *reader)
{
    struct oj_flatgeobuf_reader *r = reader;
    if (r == NULL)
        return;
    if (r->file != NULL)
        VSIFCloseL(r->file);
    oj_chunk_maker_free(&r->maker);
    oj_free(r->block);
    oj_free(r->column);
    oj_free(r);
}

static oj_status open_file(struct oj_flatgeobuf_reader *r, const char *file,
                           struct oj_error *err)
{
    r->file = VSIFOpenL(file, "rb");
    if (r->file == NULL || VSIFSeekL(r->file, 0, SEEK_END) != 0)
        return oj_lane_leave_to_gdal(err);
    r->left = (int64_t)VSIFTellL(r->file);
    if (VSIFSeekL(r->file, 0, SEEK_SET) != 0)
        return oj_lane_leave_to_gdal(err);
    return oj_reserve(&r->block, 0, r->maker.request.n_threads * BLOCK_BYTES,
                      &r->cap_block, 1, err);
}

static oj_status open_reader(const struct oj_lane_request *from, void **out,
                             struct oj_error *err)
{
    const struct oj_chunk_maker maker = {.field_size = sizeof(OGRField),
                                         .read = read_and_cut_block,
                                         .add = add_features};
    struct oj_flatgeobuf_reader *r;
    *out = NULL;
    if (from->file == NULL)
        return oj_lane_leave_to_gdal(err);
    OJ_NEW_ZEROED(r, 1, err);
    *out = r;
    r->maker = maker;
    OJ_TRY(oj_chunk_maker_open(&r->maker, from, err));
    OJ_TRY(open_file(r, from->file, err));
    return read_header(r, from, err);
}

const struct oj_lane oj_flatgeobuf_lane = {open_reader,  1, oj_chunk_make,
                                           close_reader, 1, 0};
