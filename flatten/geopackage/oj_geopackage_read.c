#include "oj_geopackage_read.h"

#include "../arrays/oj_iso_time.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_alloc.h"
#include "oj_gdal_sqlite.h"
#include "oj_sqlite_pages.h"

#include <cpl_error.h>
#include <limits.h>

/* Bytes of leaf pages per thread and chunk. */
#define BLOCK_BYTES (1 << 19)
#define PIECE_BYTES (BLOCK_BYTES / 2)

/* A filter box for which the R-tree counts fewer than max(rowid) / SMALL_PART
 * rows is left to GDAL, which reads the rows by the R-tree.  Measured: reading
 * by the R-tree is faster below half of this share. */
#define SMALL_PART 16

/* Position of a row in the leaf pages in memory: index of the page, and in the
 * low ROW_BITS bits the index of the row in it. */
#define ROW_BITS 16
#define ROW_MASK ((1 << ROW_BITS) - 1)

struct stored_column
{
    OGRFieldType type;
    OGRFieldSubType subtype;
    int to;          /* index of the chunk's column; -1: not wanted */
    int has_default; /* rows stored before the column was added have its default
                        value */
};

struct oj_geopackage_reader
{
    struct oj_chunk_maker maker; /* must be the first member */
    /* a statement stopped at a row; while it is open, no other connection can
     * change the file */
    sqlite3_stmt *anchor;
    struct oj_sqlite_pages pages;
    int64_t at; /* position of the next row (see ROW_BITS) */

    /* number of columns up to the last wanted one */
    int n_columns;
    struct stored_column *column; /* [n_columns] */
    struct record_layout *layout; /* [n_threads] */
};

/* A value of a record. Types above 11 are blobs if they are even, texts if they
 * are odd. */
struct stored_value
{
    const struct stored_column *column;
    uint64_t type;
    int64_t start, n;  /* offset and size in the record */
    const uint8_t *at; /* address in the current record */
};

/* Where a record's wanted values are. If the next record begins with equal
 * types, its values have equal offsets. This saves a fifth of the reader's time
 * in sums over 10 M rows of a GeoPackage. */
struct record_layout
{
    /* head: first bytes of the record, which hold the types. mask: for
     * comparing the first 8 bytes of two records at once: all bits are 1 in
     * bytes that hold types, 0 in the others */
    uint8_t head[64], mask[8];
    size_t n_head; /* bytes of the types in head; 0: no layout known, or the
                      types do not fit */
    int64_t end;   /* end in the record of the last wanted value */
    /* maximum size of a record with this layout: `end` if the last wanted
     * column is the record's last; INT64_MAX if other columns follow */
    int64_t most;
    int n_values;
    struct stored_value *value;       /* [n_columns] owned */
    struct oj_sqlite_record long_one; /* buffer for records that span several
                                         pages */
};

/* ---- values -------------------------------------------------------------- */

static int is_blob(const struct stored_value *value)
{
    return value->type > 11 && value->type % 2 == 0;
}

/* Parses the only forms that the format allows: YYYY-MM-DD for dates,
 * YYYY-MM-DDThh:mm:ss.sssZ for date-times. Returns 0 for all others. */
static int add_date_value(const struct stored_value *value,
                          struct oj_chunk_column *column, int64_t row)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    OGRField *field = (OGRField *)column->values + row;
    char text[sizeof form] = {0};
    struct oj_iso_time time;
    if (value->n != (value->column->type == OFTDate ? 10 : 24))
        return 0;
    memcpy(text, value->at, (size_t)value->n);
    for (int64_t i = 0; i < value->n; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9'
                           : text[i] != form[i])
            return 0;
    memset(field, 0, sizeof *field);
    oj_chunk_set_valid(column, row);
    if (oj_iso_time_read(text, value->n, &time))
    {
        OJ_ISO_TIME_ASSIGN(time, field->Date);
        return 1;
    }
    return OGRParseDate(text, field, 0) && field->Date.Second < 60;
}

/* Returns 1 for the bits of a NaN, which SQLite reads as NULL. */
static inline int is_nan(int64_t bits)
{
    return (bits & INT64_MAX) > INT64_C(0x7FF0000000000000);
}

static inline int add_number(const struct stored_value *value,
                             struct oj_chunk_column *column, int64_t row)
{
    OGRFieldSubType subtype = value->column->subtype;
    int64_t number =
        value->type == 9 ? 1 : oj_sqlite_integer(value->at, (int)value->n);
    int32_t small = (int32_t)number;
    if (value->type == 7 && is_nan(number))
        return 1;
    oj_chunk_set_valid(column, row);
    if (column->format == 'l')
        ((int64_t *)column->values)[row] = number;
    else if (column->format == 'i')
        ((int32_t *)column->values)[row] = small;
    else if (value->type == 7)
        memcpy((double *)column->values + row, &number, sizeof number);
    else
        ((double *)column->values)[row] = (double)number;
    return subtype == OFSTBoolean ? small == 0 || small == 1
           : subtype == OFSTInt16 ? small >= INT16_MIN && small <= INT16_MAX
                                  : 1;
}

/* Adds a value. It is left to GDAL if its type is not the column's or it
 * exceeds the column's subtype, because GDAL's versions differ in converting
 * it. */
static inline oj_status add_value(const struct stored_value *value,
                                  struct oj_chunk_column *column, int64_t row,
                                  struct oj_error *err)
{
    const char *text = (const char *)value->at;
    int is_text = value->type > 11 && value->type % 2 == 1;
    switch (column->format)
    {
        case 'U':
            if (is_text)
                return oj_chunk_add_bytes(
                    column, row, text, (int64_t)strnlen(text, (size_t)value->n),
                    err);
            break;
        case 'Z':
            if (is_blob(value))
                return oj_chunk_add_bytes(column, row, text, value->n, err);
            break;
        case 'F':
            if (is_text && add_date_value(value, column, row))
                return OJ_OK;
            break;
        default:
            if (value->type < 10 &&
                (value->type != 7 || column->format == 'g') &&
                add_number(value, column, row))
                return OJ_OK;
            break;
    }
    return oj_lane_leave_to_gdal(err);
}

/* ---- geometries ---------------------------------------------------------- */

/* Returns the offset of the WKB in a geometry blob; 0: unknown encoding. */
static int64_t geometry_header_size(const uint8_t *blob, int64_t n)
{
    static const uint8_t envelope[8] = {0, 32, 48, 48, 64};
    int64_t size;
    if (n < 8 || memcmp(blob, "GP", 3) != 0 || (blob[3] & 0xe0) != 0 ||
        (blob[3] >> 1 & 7) > 4)
        return 0;
    size = 8 + envelope[blob[3] >> 1 & 7];
    return size < n ? size : 0;
}

/* Returns 1 for the WKB of an empty line, polygon, multi-geometry or
 * collection. */
static int is_empty_non_point_wkb(const uint8_t *wkb, int64_t n)
{
    static const uint8_t nothing[6] = {0};
    int code = n == 9 ? wkb[1] | wkb[2] << 8 : 0;
    return n == 9 && wkb[0] == 1 && memcmp(wkb + 3, nothing, 6) == 0 &&
           code % 1000 >= 2 && code % 1000 <= 7 && code / 1000 < 4;
}

/* Copies the WKB if OGR would write identical bytes; otherwise leaves the row
 * to GDAL. */
static inline oj_status add_geometry(const struct stored_value *value,
                                     struct oj_chunk_column *column,
                                     int64_t row, struct oj_error *err)
{
    int64_t start = 0, n;
    const uint8_t *wkb, *point;
    if (is_blob(value))
        start = geometry_header_size(value->at, value->n);
    if (start == 0)
        return oj_lane_leave_to_gdal(err);
    wkb = value->at + start;
    n = value->n - start;
    point = oj_wkb_iso_point(wkb, (size_t)n);
    if (column->format == 'P')
    {
        if (point == NULL)
            return oj_lane_leave_to_gdal(err);
        oj_chunk_add_point(column, row, point);
        return OJ_OK;
    }
    if (point != NULL)
        return oj_chunk_add_bytes(column, row, wkb, OJ_WKB_POINT_BYTES, err);
    return oj_wkb_is_iso(wkb, (size_t)n) || is_empty_non_point_wkb(wkb, n)
               ? oj_chunk_add_bytes(column, row, wkb, n, err)
               : oj_lane_leave_to_gdal(err);
}

/* ---- rows ---------------------------------------------------------------- */

/* Maximum size of the list of types that SQLite accepts. */
#define MOST_TYPE_BYTES 98307

/* Returns the size of a stored value, from its serial type. */
static inline int64_t size_of_serial_type(uint64_t type)
{
    static const int32_t bytes[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    return type < 12 ? bytes[type] : (int64_t)((type - 12) / 2);
}

/* Copies the record's types into the layout's head, if they fit. */
static void set_layout_head(struct record_layout *layout, const uint8_t *record,
                            int64_t n)
{
    if (n > (int64_t)sizeof layout->head)
        return;
    layout->n_head = (size_t)n;
    memcpy(layout->head, record, layout->n_head);
    for (size_t i = 0; i < sizeof layout->mask; i++)
        layout->mask[i] = i < layout->n_head ? 255 : 0;
}

/* Records where the value of column c is, if the column is wanted. Serial types
 * 10 and 11 are reserved and refused. The FID is the row number, so its stored
 * value must be NULL. */
static oj_status add_value_to_layout(const struct oj_geopackage_reader *r,
                                     int c, struct stored_value *value,
                                     struct record_layout *to,
                                     struct oj_error *err)
{
    value->column = &r->column[c];
    if (value->type == 10 || value->type == 11 ||
        (value->column->to == OJ_CHUNK_FID && value->type != 0))
        return oj_lane_leave_to_gdal(err);
    if (value->column->to >= 0 && value->type != 0)
        to->value[to->n_values++] = *value;
    return OJ_OK;
}

/* Records where the wanted values of a record are. A record that was stored
 * before a column was added lacks this column. Refuses what SQLite refuses: a
 * truncated type, a value beyond the end of the record, and bytes after the
 * last value. A record without types is left to GDAL: SQLite treats all its
 * columns as missing. */
static oj_status find_values_of_record(const struct oj_geopackage_reader *r,
                                       const uint8_t *record, int64_t n_record,
                                       struct record_layout *to,
                                       struct oj_error *err)
{
    const uint8_t *at = record, *types_end = record;
    struct stored_value value = {0};
    uint64_t n_types = 0;
    int c = 0;
    to->n_values = 0;
    to->n_head = 0;
    at += oj_sqlite_varint(at, at + n_record, &n_types);
    if (at > record && n_types == 0)
        return oj_lane_leave_to_gdal(err);
    if (n_types > (uint64_t)n_record || n_types > MOST_TYPE_BYTES ||
        n_types <= (uint64_t)(at - record))
        return oj_sqlite_fail_malformed(err);
    types_end += n_types;
    value.start = (int64_t)n_types;
    for (; c < r->n_columns && at < types_end; c++)
    {
        int n = oj_sqlite_varint(at, types_end, &value.type);
        value.n = size_of_serial_type(value.type);
        if (n == 0 || value.n > n_record - value.start)
            return oj_sqlite_fail_malformed(err);
        OJ_TRY(add_value_to_layout(r, c, &value, to, err));
        value.start += value.n;
        at += n;
    }
    to->end = value.start;
    to->most = at < types_end ? INT64_MAX : value.start;
    if (n_record > to->most)
        return oj_sqlite_fail_malformed(err);
    for (; c < r->n_columns; c++)
        if (r->column[c].has_default)
            return oj_lane_leave_to_gdal(err);
    set_layout_head(to, record, at - record);
    return OJ_OK;
}

static inline int has_record_layout(const uint8_t *record,
                                    const struct record_layout *layout)
{
    uint64_t own, head, mask;
    /* eight bytes are readable even if the record is shorter: pages.leaf has 8
     * spare bytes at its end */
    memcpy(&own, record, sizeof own);
    memcpy(&head, layout->head, sizeof head);
    memcpy(&mask, layout->mask, sizeof mask);
    return layout->n_head > 0 && ((own ^ head) & mask) == 0 &&
           (layout->n_head <= 8 ||
            memcmp(record + 8, layout->head + 8, layout->n_head - 8) == 0);
}

static inline oj_status
decode_record_to_row(const struct oj_geopackage_reader *r,
                     const uint8_t *record, int64_t n_record,
                     struct record_layout *layout, struct oj_chunk_rows *to,
                     int64_t row, struct oj_error *err)
{
    if (n_record < layout->end || n_record > layout->most ||
        !has_record_layout(record, layout))
        OJ_TRY(find_values_of_record(r, record, n_record, layout, err));
    for (int i = 0; i < layout->n_values; i++)
    {
        struct stored_value *value = &layout->value[i];
        int c = value->column->to;
        value->at = record + value->start;
        OJ_TRY(c == OJ_CHUNK_GEOMETRY
                   ? add_geometry(value, &to->column[c], row, err)
                   : add_value(value, &to->column[c], row, err));
    }
    return OJ_OK;
}

/* Limits of the next row number of a leaf: it must be greater than `before` and
 * at most `greatest`. */
struct row_numbers
{
    int has_before;
    int64_t before, greatest;
};

/* Sets the limits for the leaf's rows from row i on. */
static oj_status init_row_number_limits(const struct oj_sqlite_pages *pages,
                                        int64_t leaf, int i,
                                        struct row_numbers *numbers,
                                        struct oj_error *err)
{
    uint64_t n;
    numbers->before =
        oj_sqlite_greatest_row_before_leaf(pages, leaf, &numbers->has_before);
    numbers->greatest = oj_sqlite_greatest_row_of_leaf(pages, leaf);
    if (i == 0)
        return OJ_OK;
    numbers->has_before = 1;
    return oj_sqlite_leaf_row(pages, oj_sqlite_leaf(pages, leaf), i - 1, &n,
                              &numbers->before) != NULL
               ? OJ_OK
               : oj_sqlite_fail_malformed(err);
}

static inline int record_ascending_row_number(struct row_numbers *numbers,
                                              int64_t number)
{
    int ascends = (number > numbers->before || !numbers->has_before) &&
                  number <= numbers->greatest;
    numbers->before = number;
    numbers->has_before = 1;
    return ascends;
}

static oj_status decode_rows_of_piece(void *stream, int thread,
                                      const struct oj_chunk_piece *piece,
                                      struct oj_chunk_rows *to, int64_t *n,
                                      struct oj_error *err)
{
    struct oj_geopackage_reader *r = stream;
    struct oj_sqlite_pages *pages = &r->pages;
    int64_t at = piece->at >> ROW_BITS;
    const uint8_t *leaf = oj_sqlite_leaf(pages, at);
    int64_t *fid = to->column[OJ_CHUNK_FID].values;
    struct record_layout *layout = &r->layout[thread];
    struct row_numbers numbers = {0};
    int i = (int)(piece->at & ROW_MASK);
    OJ_TRY(init_row_number_limits(pages, at, i, &numbers, err));
    for (int64_t row = piece->row; row < piece[1].row; row++)
    {
        const uint8_t *record;
        uint64_t n_record;
        if (i == oj_sqlite_page_n_cells(leaf))
        {
            leaf += pages->page_bytes;
            i = 0;
            OJ_TRY(init_row_number_limits(pages, ++at, i, &numbers, err));
        }
        record = oj_sqlite_leaf_row(pages, leaf, i++, &n_record, &fid[row]);
        if (record == NULL || !record_ascending_row_number(&numbers, fid[row]))
            return oj_sqlite_fail_malformed(err);
        OJ_TRY(oj_sqlite_record(pages, leaf, record, n_record,
                                &layout->long_one, &record, err));
        OJ_TRY(decode_record_to_row(r, record, (int64_t)n_record, layout, to,
                                    row, err));
        ++*n;
    }
    return OJ_OK;
}

/* ---- chunks -------------------------------------------------------------- */

static oj_status read_and_cut_leaf_pages(void *stream, int64_t row, int64_t end,
                                         struct oj_error *err)
{
    struct oj_geopackage_reader *r = stream;
    int64_t leaf = r->at >> ROW_BITS, begin = leaf;
    int64_t piece = PIECE_BYTES / r->pages.page_bytes;
    if (leaf == r->pages.n_leaves)
    {
        r->at = leaf = begin = 0;
        OJ_TRY(oj_sqlite_pages_read(&r->pages, err));
        if (r->pages.n_leaves == 0)
            return OJ_OK;
    }
    OJ_TRY(oj_chunk_begin_piece(&r->maker, r->at, row, err));
    while (leaf < r->pages.n_leaves && row < end)
    {
        int64_t i = r->at & ROW_MASK, to_byte = (8 - row % 8) % 8;
        int64_t n = oj_sqlite_page_n_cells(oj_sqlite_leaf(&r->pages, leaf)) - i;
        if (leaf - begin >= piece && to_byte < n)
        {
            OJ_TRY(oj_chunk_begin_piece(&r->maker, r->at + to_byte,
                                        row + to_byte, err));
            begin = leaf;
        }
        r->at = n > end - row ? r->at + (end - row) : (leaf + 1) << ROW_BITS;
        row += n > end - row ? end - row : n;
        leaf = r->at >> ROW_BITS;
    }
    return oj_chunk_begin_piece(&r->maker, r->at, row, err);
}

/* ---- open and close ------------------------------------------------------ */

/* Compares a column of the table by name with the layer's FID, geometry and
 * wanted fields, and records where its values go. Unexpected types are left to
 * GDAL. */
static oj_status match_table_column(const struct oj_lane_request *from,
                                    const char *name,
                                    struct stored_column *column,
                                    struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(from->layer);
    if (strcmp(name, OGR_L_GetFIDColumn(from->layer)) == 0)
        column->to = OJ_CHUNK_FID;
    else if (strcmp(name, OGR_L_GetGeometryColumn(from->layer)) == 0)
        column->to = OJ_CHUNK_GEOMETRY;
    for (int i = 0; i < from->n_fields; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, from->fields[i]);
        if (strcmp(name, OGR_Fld_GetNameRef(field)) != 0 ||
            from->formats[i] == 0)
            continue;
        column->type = OGR_Fld_GetType(field);
        if (column->to >= 0 ||
            (from->formats[i] == 'F' && column->type != OFTDate &&
             column->type != OFTDateTime))
            return oj_lane_leave_to_gdal(err);
        column->subtype = OGR_Fld_GetSubType(field);
        column->to = OJ_CHUNK_FIELDS + i;
    }
    return OJ_OK;
}

/* Reads the table's columns, in the order in which records store them. Each
 * result row has: root page, name, whether hidden, whether it has a default,
 * whether it is an INTEGER primary key. Only such a key makes row numbers the
 * FIDs. */
static oj_status match_table_columns(struct oj_geopackage_reader *r,
                                     const struct oj_lane_request *from,
                                     sqlite3_stmt *columns, int64_t *root,
                                     struct oj_error *err)
{
    int n_geometries =
        OGR_FD_GetGeomFieldCount(OGR_L_GetLayerDefn(from->layer));
    int64_t cap = 0;
    int n = 0, n_missing = 1 + n_geometries; /* columns not found yet; 1: the
                                                FID */
    for (int i = 0; i < from->n_fields; i++)
        n_missing += from->formats[i] != 0;
    while (sqlite3_step(columns) == SQLITE_ROW)
    {
        struct stored_column column = {.to = -1};
        const char *name = (const char *)sqlite3_column_text(columns, 1);
        *root = sqlite3_column_int64(columns, 0);
        if (name == NULL || sqlite3_column_int(columns, 2) != 0)
            return oj_lane_leave_to_gdal(err);
        OJ_TRY(match_table_column(from, name, &column, err));
        column.has_default = sqlite3_column_int(columns, 3);
        if (column.to == OJ_CHUNK_FID && sqlite3_column_int(columns, 4) == 0)
            return oj_lane_leave_to_gdal(err);
        OJ_ROOM(r->column, n, n + 1, cap, err);
        r->column[n++] = column;
        if (column.to < 0)
            continue;
        r->n_columns = n;
        n_missing--;
    }
    return n_missing == 0 && n_geometries <= 1 ? OJ_OK
                                               : oj_lane_leave_to_gdal(err);
}

/* Leaves the layer to GDAL and its R-tree if the box contains few rows. */
static oj_status check_box_has_many_rows(sqlite3 *db,
                                         const struct oj_lane_request *from,
                                         struct oj_error *err)
{
    const char *table = OGR_L_GetName(from->layer);
    const double *box = from->box;
    double is_small = 0;
    if (box == NULL || !OGR_L_TestCapability(from->layer, OLCFastSpatialFilter))
        return OJ_OK;
    OJ_TRY(oj_sqlite_read_numbers(
        db, 1, &is_small, err,
        "SELECT %d * (SELECT count(*) FROM \"rtree_%w_%w\" WHERE maxx >= "
        "%!.17g AND minx <= %!.17g AND maxy >= %!.17g AND miny <= %!.17g) < "
        "max(rowid) FROM \"%w\"",
        SMALL_PART, table, OGR_L_GetGeometryColumn(from->layer), box[0], box[1],
        box[2], box[3], table));
    return is_small > 0 ? oj_lane_leave_to_gdal(err) : OJ_OK;
}

/* Opens the table. The file cannot change until r->anchor is finalised. */
static oj_status open_table(struct oj_geopackage_reader *r, sqlite3 *db,
                            const struct oj_lane_request *from,
                            struct oj_error *err)
{
    sqlite3_stmt *columns = NULL;
    int64_t root = 0;
    oj_status status;
    OJ_TRY(
        oj_sqlite_prepare(db, &r->anchor, err, "SELECT 1 FROM sqlite_master"));
    if (sqlite3_step(r->anchor) != SQLITE_ROW)
        return oj_lane_leave_to_gdal(err);
    OJ_TRY(oj_sqlite_prepare(
        db, &columns, err,
        "SELECT rootpage, x.name, hidden, dflt_value IS NOT NULL, "
        "pk = 1 AND x.type = 'INTEGER' COLLATE NOCASE FROM main.sqlite_master "
        "m, pragma_table_xinfo(m.name, 'main') x WHERE m.type = 'table' AND "
        "m.name = %Q COLLATE NOCASE ORDER BY cid",
        OGR_L_GetName(from->layer)));
    status = match_table_columns(r, from, columns, &root, err);
    sqlite3_finalize(columns);
    OJ_TRY(status);
    OJ_TRY(check_box_has_many_rows(db, from, err));
    return oj_sqlite_pages_open(
        db, root, r->maker.request.n_threads * BLOCK_BYTES, &r->pages, err);
}

static void close_reader(void *reader)
{
    struct oj_geopackage_reader *r = reader;
    if (r == NULL)
        return;
    for (int i = 0; r->layout != NULL && i < r->maker.request.n_threads; i++)
    {
        oj_free(r->layout[i].value);
        oj_free(r->layout[i].long_one.bytes);
    }
    oj_free(r->layout);
    oj_sqlite_pages_close(&r->pages);
    sqlite3_finalize(r->anchor);
    oj_chunk_maker_free(&r->maker);
    oj_free(r->column);
    oj_free(r);
}

static oj_status open_reader(const struct oj_lane_request *from, void **out,
                             struct oj_error *err)
{
    const struct oj_chunk_maker maker = {.field_size = sizeof(OGRField),
                                         .read = read_and_cut_leaf_pages,
                                         .add = decode_rows_of_piece,
                                         .broken = OJ_SQLITE_MALFORMED};
    struct oj_geopackage_reader *r;
    sqlite3 *db =
        from->dataset != NULL ? oj_sqlite_of_dataset(from->dataset) : NULL;
    oj_status status;
    *out = NULL;
    /* A writable connection may have uncommitted changes, which the file does
     * not show. */
    if (db == NULL || sqlite3_db_readonly(db, "main") != 1)
        return oj_lane_leave_to_gdal(err);
    OJ_NEW_ZEROED(r, 1, err);
    *out = r;
    r->maker = maker;
    OJ_TRY(oj_chunk_maker_open(&r->maker, from, err));
    status = open_table(r, db, from, err);
    if (status != OJ_OK)
        return status == OJ_ERR_IO ? oj_lane_leave_to_gdal(err) : status;
    OJ_NEW_ZEROED(r->layout, r->maker.request.n_threads, err);
    for (int i = 0; i < r->maker.request.n_threads; i++)
        OJ_NEW(r->layout[i].value, r->n_columns, err);
    return OJ_OK;
}

const struct oj_lane oj_geopackage_lane = {open_reader,  1, oj_chunk_make,
                                           close_reader, 1, 1};
