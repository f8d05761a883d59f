#include "oj_flatgeobuf_rows.h"

#include "../base/oj_array.h"
#include "../base/oj_threads.h"
#include "../flatgeobuf/oj_flatgeobuf_write.h"
#include "../read/oj_attributes.h"
#include "oj_row_wkb.h"

#include <math.h>
#include <string.h>

/* Rows that one thread makes at once: some hundred KB. */
#define SLICE_ROWS 4096

/* Slices of a thread between two looks for more rows. */
#define SLICES_AT_ONCE 4

/* A field of the file, in its order. */
struct file_field
{
    struct oj_row_column column;
    int n_bytes;   /* of a number in the file: its first ones; 0: no number */
    int is_single; /* 1: a float, which is a double elsewhere */
};

/* The rows that a thread makes. */
struct row_slice
{
    struct oj_row_wkb wkb;
    struct oj_fgb_encoder encoder;
    struct oj_flatgeobuf_told told;
    oj_status status;
    struct oj_error error;
};

struct oj_flatgeobuf_rows
{
    struct oj_row_cursor *cursor;
    struct oj_flatgeobuf_writer *writer;
    OGRFeatureH scratch;
    int n_fields;
    struct file_field *field; /* [n_fields] */

    int n_threads;
    struct row_slice *slice; /* [n_threads] */

    /* Those on their way to the file, in order, and how many are there. */
    struct oj_row_place *place; /* [n_threads * SLICES_AT_ONCE * SLICE_ROWS] */
    int64_t n_places, n_done;
    struct oj_flatgeobuf_told *told;
    oj_status status;
    struct oj_error *error;
};

/* OJ_ERR_UNSUPPORTED: values of a field are not written here as GDAL does. */
static oj_status plan_file_fields(struct oj_flatgeobuf_rows *rows,
                                  OGRFeatureDefnH defn, struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    OJ_NEW(rows->place, rows->n_threads * SLICES_AT_ONCE * SLICE_ROWS, err);
    OJ_NEW_ZEROED(rows->slice, rows->n_threads, err);
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
            field->n_bytes = subtype == OFSTBoolean ? 1
                             : subtype == OFSTInt16 ? 2
                             : type == OFTInteger   ? 4
                                                    : 8;
        else if (!oj_type_is_time(type) && type != OFTString &&
                 type != OFTBinary)
            return oj_leave_to_gdal(err);
    }
    for (int c = 0; c < sources->options->n_columns; c++)
        rows->field[sources->columns[c].target].column.number = c;
    return OJ_OK;
}

oj_status oj_flatgeobuf_rows_open(const struct oj_flatgeobuf_file *file,
                                  OGRLayerH layer, struct oj_row_cursor *cursor,
                                  struct oj_flatgeobuf_rows **out,
                                  struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    struct oj_flatgeobuf_rows *rows;
    oj_status status;
    *out = NULL;
    OJ_NEW_ZEROED(rows, 1, err);
    rows->cursor = cursor;
    rows->n_threads = file->n_threads > 1 ? file->n_threads : 1;
    rows->scratch = OGR_F_Create(defn);
    status = rows->scratch == NULL ? oj_fail_nomem(err, 1, 1024)
                                   : plan_file_fields(rows, defn, err);
    if (status == OJ_OK)
        status = oj_flatgeobuf_write_open(file, layer, &rows->writer, err);
    if (status == OJ_OK && rows->writer != NULL)
        *out = rows;
    else
        oj_flatgeobuf_rows_close(rows);
    return status == OJ_ERR_UNSUPPORTED ? OJ_OK : status;
}

void oj_flatgeobuf_rows_close(struct oj_flatgeobuf_rows *rows)
{
    if (rows == NULL)
        return;
    oj_flatgeobuf_write_close(rows->writer);
    if (rows->scratch != NULL)
        OGR_F_Destroy(rows->scratch);
    for (int i = 0; rows->slice != NULL && i < rows->n_threads; i++)
    {
        oj_row_wkb_free(&rows->slice[i].wkb);
        oj_fgb_encoder_free(&rows->slice[i].encoder);
    }
    oj_free(rows->slice);
    oj_free(rows->place);
    oj_free(rows->field);
    oj_free(rows);
}

/* ---- values -------------------------------------------------------------- */

/* What oj_row_column_value() has found. */
static oj_status add_value(struct oj_fgb_encoder *encoder, int i,
                           const struct file_field *field, const void *at,
                           int64_t n, struct oj_error *err)
{
    char text[80];
    float single;
    if (field->is_single)
    {
        single = (float)*(const double *)at;
        return oj_fgb_add_number(encoder, i, &single, 4, err);
    }
    if (field->n_bytes > 0)
        return oj_fgb_add_number(encoder, i, at, field->n_bytes, err);
    if (oj_type_is_time(field->column.type))
    {
        n = oj_value_xml_time(at, 0, text, sizeof text);
        at = text;
    }
    return oj_fgb_add_bytes(encoder, i, at, n, err);
}

/* Finds where values lie. Returns 1 when rows of the answer can be made on
 * several threads. */
static int find_field_values(struct oj_flatgeobuf_rows *rows)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    int are_plain = sources->batch->attributes->slice.chunk != NULL;
    for (int i = 0; i < rows->n_fields; i++)
    {
        struct file_field *field = &rows->field[i];
        oj_row_column_begin(&field->column, rows->cursor);
        are_plain &= field->column.number < 0 ||
                     oj_row_cursor_is_plain(rows->cursor, field->column.number);
    }
    return are_plain;
}

/* ---- rows ---------------------------------------------------------------- */

static oj_status add_values(const struct oj_flatgeobuf_rows *rows,
                            struct oj_fgb_encoder *encoder,
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
                                   rows->scratch, &value, &at, &n, err));
        if (at != NULL)
            OJ_TRY(add_value(encoder, i, field, at, n, err));
    }
    return OJ_OK;
}

static oj_status encode_row(const struct oj_flatgeobuf_rows *rows,
                            struct row_slice *slice,
                            const struct oj_row_place *place,
                            struct oj_error *err)
{
    struct oj_flatgeobuf_told *told = &slice->told;
    struct oj_fgb_encoder *encoder = &slice->encoder;
    const uint8_t *wkb;
    int64_t n;
    oj_row_cursor_fetch(rows->cursor, place);
    OJ_TRY(oj_row_wkb_make(&slice->wkb, rows->cursor, place, &wkb, &n, err));
    if (slice->wkb.needs_ogr)
        return OJ_OK;
    OJ_TRY(oj_fgb_begin_row(encoder, wkb, n, err));
    if (!encoder->is_left_out)
    {
        OJ_TRY(add_values(rows, encoder, place, err));
        OJ_TRY(oj_fgb_end_row(encoder, err));
    }
    told->n_rows++;
    told->n_empty += encoder->is_empty;
    if (!encoder->is_finite && !told->has_infinite)
    {
        told->has_infinite = 1;
        told->infinite_fid = told->failed_fid;
    }
    return OJ_OK;
}

/* ---- slices ---------------------------------------------------------------
 */

/* Those from place first on; any thread, where scratch is NULL. */
static void encode_slice(const struct oj_flatgeobuf_rows *rows, int64_t first,
                         struct row_slice *slice, OGRFeatureH scratch)
{
    const struct oj_flatgeobuf_told nothing = {0};
    const int64_t *fid = oj_row_cursor_sources(rows->cursor)->batch->flat.fid;
    slice->told = nothing;
    slice->status = OJ_OK;
    slice->wkb.scratch = scratch;
    slice->wkb.needs_ogr = 0;
    oj_flatgeobuf_begin(rows->writer, &slice->encoder, scratch != NULL);
    for (int64_t i = first; i < first + SLICE_ROWS && i < rows->n_places &&
                            slice->status == OJ_OK && !slice->wkb.needs_ogr &&
                            !slice->encoder.needs_ogr;
         i++)
    {
        slice->told.failed_fid = fid[rows->place[i].row];
        slice->status = encode_row(rows, slice, &rows->place[i], &slice->error);
    }
    slice->told.has_failed = slice->status != OJ_OK;
}

static void add_write_outcome(struct oj_flatgeobuf_told *sum,
                              const struct oj_flatgeobuf_told *told)
{
    sum->n_rows += told->n_rows;
    sum->n_empty += told->n_empty;
    if (told->has_infinite && !sum->has_infinite)
    {
        sum->has_infinite = 1;
        sum->infinite_fid = told->infinite_fid;
    }
    sum->has_failed = told->has_failed;
    sum->failed_fid = told->failed_fid;
}

/* The next slice in order, unless one before it is missing. */
static void write_slice_in_order(struct oj_flatgeobuf_rows *rows, int64_t first,
                                 struct row_slice *slice)
{
    if (rows->status != OJ_OK || rows->n_done != first ||
        slice->wkb.needs_ogr || slice->encoder.needs_ogr)
        return;
    add_write_outcome(rows->told, &slice->told);
    rows->status =
        slice->status == OJ_OK
            ? oj_flatgeobuf_write_rows(rows->writer, &slice->encoder,
                                       rows->error)
            : oj_fail(rows->error, slice->status, "%s", slice->error.message);
    rows->n_done += SLICE_ROWS;
}

static void make_task(int64_t task, int thread, void *user)
{
    const struct oj_flatgeobuf_rows *rows = user;
    encode_slice(rows, task * SLICE_ROWS, &rows->slice[thread], NULL);
}

static void end_task(int64_t task, int thread, void *user)
{
    struct oj_flatgeobuf_rows *rows = user;
    write_slice_in_order(rows, task * SLICE_ROWS, &rows->slice[thread]);
}

oj_status oj_flatgeobuf_rows_write(struct oj_flatgeobuf_rows *rows,
                                   struct oj_flatgeobuf_told *told,
                                   struct oj_error *err)
{
    const struct oj_flatgeobuf_told nothing = {0};
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    int are_plain;
    *told = nothing;
    rows->told = told;
    rows->error = err;
    rows->status = OJ_OK;
    if (sources->batch == NULL || sources->batch->n_rows == 0)
        return OJ_OK;
    are_plain = find_field_values(rows);
    while (rows->status == OJ_OK &&
           (rows->n_places = oj_row_cursor_take(
                rows->cursor, rows->place,
                rows->n_threads * SLICES_AT_ONCE * SLICE_ROWS)) > 0)
    {
        OJ_TRY(oj_check_cancel(sources->options->cancel, err));
        rows->n_done = 0;
        if (are_plain)
            oj_parallel_in_order(rows->n_threads,
                                 (rows->n_places + SLICE_ROWS - 1) / SLICE_ROWS,
                                 make_task, end_task, rows);
        /* From one that needs OGR on. */
        while (rows->status == OJ_OK && rows->n_done < rows->n_places)
        {
            are_plain = 0;
            encode_slice(rows, rows->n_done, rows->slice, rows->scratch);
            write_slice_in_order(rows, rows->n_done, rows->slice);
        }
    }
    return rows->status;
}

oj_status oj_flatgeobuf_rows_finish(struct oj_flatgeobuf_rows *rows,
                                    int *has_rows, struct oj_error *err)
{
    return oj_flatgeobuf_write_finish(rows->writer, has_rows, err);
}
