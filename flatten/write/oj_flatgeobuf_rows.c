#include "oj_flatgeobuf_rows.h"

#include "../base/oj_array.h"
#include "../base/oj_threads.h"
#include "../flatgeobuf/oj_flatgeobuf_write.h"
#include "../read/oj_attributes.h"
#include "../read/oj_table.h"
#include "oj_row_wkb.h"

#include <math.h>
#include <string.h>

/* Rows that one thread makes at once: some hundred KB. */
#define SLICE_ROWS 4096

/* What the rows of a column are numbered by. */
enum numbering
{
    BY_ROW,
    BY_JOIN_ROW,
    BY_ENTRY
};

/* A field of the file, in its order. */
struct file_field
{
    int column; /* of the cursor; -1: always NULL */
    OGRFieldType type;
    OGRFieldSubType subtype;

    /* In this answer: where values lie as the file has them. */
    int n_bytes; /* 0: texts and binaries; -1: the cursor is asked for values */
    enum numbering by;
    struct oj_column_view view;
};

/* Rows on their way from places to the file. */
struct row_slice
{
    int64_t first, n; /* places */
    struct oj_row_wkb wkb;
    struct oj_flatgeobuf_run run;
    struct oj_flatgeobuf_told told;
    oj_status status;
    struct oj_error error;
};

/* While slices of one half are made, those of the other are written. */
struct oj_flatgeobuf_rows
{
    struct oj_row_cursor *cursor;
    struct oj_flatgeobuf_writer *writer;
    OGRFeatureH scratch;
    int n_fields;
    struct file_field *field; /* [n_fields] */

    int n_threads;
    int n_at_once;              /* slices of a half */
    struct oj_row_place *place; /* [n_at_once * SLICE_ROWS] */
    struct row_slice *slice;    /* [2 * n_at_once] */
    int half;                   /* the one that is made */
    int64_t n_made, n_waiting;  /* slices of this half, and of the other */
    oj_status status;           /* of writing */
    struct oj_error error;
};

/* Whether values of every field are written here as GDAL writes them. */
static int types_are_known(OGRFeatureDefnH defn)
{
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        OGRFieldType type = OGR_Fld_GetType(OGR_FD_GetFieldDefn(defn, i));
        if (!oj_type_is_number(type) && !oj_type_is_time(type) &&
            type != OFTString && type != OFTBinary)
            return 0;
    }
    return 1;
}

static oj_status take_fields(struct oj_flatgeobuf_rows *rows,
                             OGRFeatureDefnH defn, struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    rows->n_fields = OGR_FD_GetFieldCount(defn);
    OJ_NEW(rows->field, rows->n_fields, err);
    for (int i = 0; i < rows->n_fields; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        rows->field[i].column = -1;
        rows->field[i].type = OGR_Fld_GetType(field);
        rows->field[i].subtype = OGR_Fld_GetSubType(field);
    }
    for (int c = 0; c < sources->options->n_columns; c++)
        rows->field[sources->columns[c].target].column = c;
    return OJ_OK;
}

static oj_status make_slices(struct oj_flatgeobuf_rows *rows,
                             struct oj_error *err)
{
    OJ_NEW(rows->place, rows->n_at_once * SLICE_ROWS, err);
    OJ_NEW_ZEROED(rows->slice, 2 * rows->n_at_once, err);
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
    if (!types_are_known(defn))
        return OJ_OK;
    OJ_NEW_ZEROED(rows, 1, err);
    rows->cursor = cursor;
    rows->n_threads = file->n_threads > 1 ? file->n_threads : 1;
    rows->n_at_once = rows->n_threads > 1 ? 2 * rows->n_threads : 1;
    rows->scratch = OGR_F_Create(defn);
    status = rows->scratch == NULL ? oj_fail_nomem(err, 1, 1024)
                                   : take_fields(rows, defn, err);
    if (status == OJ_OK)
        status = make_slices(rows, err);
    if (status == OJ_OK)
        status = oj_flatgeobuf_write_open(file, layer, &rows->writer, err);
    if (status == OJ_OK && rows->writer != NULL)
        *out = rows;
    else
        oj_flatgeobuf_rows_close(rows);
    return status;
}

void oj_flatgeobuf_rows_close(struct oj_flatgeobuf_rows *rows)
{
    if (rows == NULL)
        return;
    oj_flatgeobuf_write_close(rows->writer);
    if (rows->scratch != NULL)
        OGR_F_Destroy(rows->scratch);
    for (int i = 0; rows->slice != NULL && i < 2 * rows->n_at_once; i++)
    {
        oj_row_wkb_free(&rows->slice[i].wkb);
        oj_flatgeobuf_run_free(&rows->slice[i].run);
    }
    oj_free(rows->slice);
    oj_free(rows->place);
    oj_free(rows->field);
    oj_free(rows);
}

/* ---- values -------------------------------------------------------------- */

static oj_status add_integer(struct oj_fgb_encoder *encoder, int i,
                             const struct file_field *field, int value,
                             struct oj_error *err)
{
    const int16_t small = (int16_t)value;
    const uint8_t yes = (uint8_t)value;
    if (field->subtype == OFSTBoolean)
        return oj_fgb_add_number(encoder, i, &yes, 1, err);
    if (field->subtype == OFSTInt16)
        return oj_fgb_add_number(encoder, i, &small, 2, err);
    return oj_fgb_add_number(encoder, i, &value, 4, err);
}

static oj_status add_real(struct oj_fgb_encoder *encoder, int i,
                          const struct file_field *field, double value,
                          struct oj_error *err)
{
    float single;
    if (field->subtype != OFSTFloat32)
        return oj_fgb_add_number(encoder, i, &value, 8, err);
    single = (float)value;
    return oj_fgb_add_number(encoder, i, &single, 4, err);
}

static oj_status add_value(struct oj_fgb_encoder *encoder, int i,
                           const struct file_field *field,
                           const struct oj_value *value, struct oj_error *err)
{
    const OGRField *raw = &value->raw;
    char text[80];
    const void *bytes;
    int64_t n;
    switch (field->type)
    {
        case OFTInteger:
            return add_integer(encoder, i, field, raw->Integer, err);
        case OFTInteger64:
            return oj_fgb_add_number(encoder, i, &raw->Integer64, 8, err);
        case OFTReal:
            return add_real(encoder, i, field, raw->Real, err);
        case OFTString:
            bytes = oj_value_bytes(value, OFTString, &n);
            n = (int64_t)strnlen(bytes, (size_t)n); /* as OGR has it */
            return oj_fgb_add_bytes(encoder, i, bytes, n, err);
        case OFTBinary:
            bytes = oj_value_bytes(value, OFTBinary, &n);
            return oj_fgb_add_bytes(encoder, i, bytes, n, err);
        default:
            n = oj_value_xml_time(raw, 0, text, sizeof text);
            return oj_fgb_add_bytes(encoder, i, text, n, err);
    }
}

/* ---- where values lie -----------------------------------------------------
 */

static int bytes_of(char format, const struct file_field *field)
{
    OGRFieldSubType subtype = field->subtype;
    switch (field->type)
    {
        case OFTInteger:
            return format == 'i' && subtype != OFSTBoolean &&
                           subtype != OFSTInt16
                       ? 4
                       : -1;
        case OFTInteger64:
            return format == 'l' ? 8 : -1;
        case OFTReal:
            return format == 'g' && subtype != OFSTFloat32 ? 8 : -1;
        case OFTString:
            return format == 'u' || format == 'U' ? 0 : -1;
        case OFTBinary:
            return format == 'z' || format == 'Z' ? 0 : -1;
        default:
            return -1;
    }
}

static void view_numbers(struct file_field *field, enum numbering by,
                         char format, const void *values)
{
    const struct oj_column_view view = {.format = format, .values = values};
    field->by = by;
    if (values != NULL)
        field->view = view;
}

static void find_view(const struct oj_row_sources *sources,
                      const struct oj_column *column, struct file_field *field)
{
    const struct oj_write_options *options = sources->options;
    const struct oj_slice *slice = &sources->batch->attributes->slice;
    int is_join_row = sources->is_join_rows;
    if (column->origin == (is_join_row ? OJ_COLUMN_JOIN : OJ_COLUMN_INPUT))
    {
        if (slice->chunk == NULL)
            return;
        field->by = BY_ROW;
        field->view = slice->chunk->column[OJ_CHUNK_FIELDS + column->source];
        field->view.first += slice->first;
    }
    else if (!is_join_row && column->origin == OJ_COLUMN_JOIN)
    {
        field->by = BY_JOIN_ROW;
        field->view = oj_table_view(options->join_table, column->source);
    }
    else if (!is_join_row && column->origin == OJ_COLUMN_JOIN_FID)
        view_numbers(field, BY_JOIN_ROW, 'l', options->join_side->fid);
    else if (!is_join_row && column->origin == OJ_COLUMN_MEASURE)
        view_numbers(field, BY_ENTRY, 'g', sources->entries->measure);
}

/* Returns 1 when rows of the answer can be made on several threads. */
static int plan_fields(struct oj_flatgeobuf_rows *rows)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    const struct oj_column_view none = {0};
    int are_plain = sources->batch->attributes->slice.chunk != NULL;
    for (int i = 0; i < rows->n_fields; i++)
    {
        struct file_field *field = &rows->field[i];
        int c = field->column;
        field->n_bytes = -1;
        field->view = none;
        if (c >= 0 && oj_row_cursor_is_plain(rows->cursor, c))
            find_view(sources, &sources->columns[c], field);
        else if (c >= 0)
            are_plain = 0;
        field->n_bytes = bytes_of(field->view.format, field);
    }
    return are_plain;
}

/* ---- rows ---------------------------------------------------------------- */

static oj_status add_viewed(struct oj_fgb_encoder *encoder, int i,
                            const struct file_field *field, int64_t row,
                            struct oj_error *err)
{
    const struct oj_column_view *view = &field->view;
    const char *values = view->values, *bytes;
    int64_t n;
    if (row < 0 || !oj_column_has(view, row))
        return OJ_OK;
    if (field->n_bytes == 8)
        return oj_fgb_add_number(encoder, i, values + 8 * (view->first + row),
                                 8, err);
    if (field->n_bytes == 4)
        return oj_fgb_add_number(encoder, i, values + 4 * (view->first + row),
                                 4, err);
    bytes = oj_column_bytes(view, row, &n);
    if (field->type == OFTString)
        n = (int64_t)strnlen(bytes, (size_t)n); /* as OGR has it */
    return oj_fgb_add_bytes(encoder, i, bytes, n, err);
}

static oj_status add_values(const struct oj_flatgeobuf_rows *rows,
                            struct oj_fgb_encoder *encoder,
                            const struct oj_row_place *place,
                            struct oj_error *err)
{
    const int64_t number[] = {
        [BY_ROW] = place->row,
        [BY_JOIN_ROW] = place->join_row,
        [BY_ENTRY] = place->join_row < 0 ? -1 : place->entry,
    };
    for (int i = 0; i < rows->n_fields; i++)
    {
        const struct file_field *field = &rows->field[i];
        struct oj_value value;
        if (field->n_bytes >= 0)
        {
            OJ_TRY(add_viewed(encoder, i, field, number[field->by], err));
            continue;
        }
        if (field->column < 0)
            continue;
        OJ_TRY(oj_row_cursor_value(rows->cursor, field->column, place,
                                   rows->scratch, &value, err));
        if (oj_value_is_there(&value))
            OJ_TRY(add_value(encoder, i, field, &value, err));
    }
    return OJ_OK;
}

static oj_status make_row(const struct oj_flatgeobuf_rows *rows,
                          struct row_slice *slice,
                          const struct oj_row_place *place,
                          struct oj_error *err)
{
    struct oj_flatgeobuf_told *told = &slice->told;
    const uint8_t *wkb;
    int64_t n;
    int is_empty, is_finite;
    oj_row_cursor_fetch(rows->cursor, place);
    OJ_TRY(add_values(rows, &slice->run.encoder, place, err));
    OJ_TRY(oj_row_wkb_make(&slice->wkb, rows->cursor, place, &wkb, &n, err));
    OJ_TRY(oj_flatgeobuf_run_add(rows->writer, &slice->run, wkb, n, &is_empty,
                                 &is_finite, err));
    told->n_rows++;
    told->n_empty += is_empty;
    if (!is_finite && !told->has_infinite)
    {
        told->has_infinite = 1;
        told->infinite_fid = told->failed_fid;
    }
    return OJ_OK;
}

/* ---- slices ---------------------------------------------------------------
 */

/* Any thread; scratch is NULL where it is not the caller's. */
static void make_slice(const struct oj_flatgeobuf_rows *rows,
                       struct row_slice *slice, OGRFeatureH scratch)
{
    const struct oj_flatgeobuf_told nothing = {0};
    const int64_t *fid = oj_row_cursor_sources(rows->cursor)->batch->flat.fid;
    slice->told = nothing;
    slice->status = OJ_OK;
    slice->wkb.scratch = scratch;
    slice->run.uses_ogr = scratch != NULL;
    slice->wkb.needs_ogr = slice->run.needs_ogr = 0;
    oj_flatgeobuf_run_begin(rows->writer, &slice->run);
    for (int64_t i = 0; i < slice->n && slice->status == OJ_OK &&
                        !slice->wkb.needs_ogr && !slice->run.needs_ogr;
         i++)
    {
        const struct oj_row_place *place = &rows->place[slice->first + i];
        slice->told.failed_fid = fid[place->row];
        slice->status = make_row(rows, slice, place, &slice->error);
    }
    slice->told.has_failed = slice->status != OJ_OK;
}

static void write_waiting(struct oj_flatgeobuf_rows *rows)
{
    struct row_slice *slice = rows->slice + (1 - rows->half) * rows->n_at_once;
    for (int64_t i = 0; i < rows->n_waiting && rows->status == OJ_OK; i++)
        rows->status =
            oj_flatgeobuf_write_run(rows->writer, &slice[i].run, &rows->error);
    rows->n_waiting = 0;
}

/* Task 0 is to write. */
static void run_task(int64_t task, int thread, void *user)
{
    struct oj_flatgeobuf_rows *rows = user;
    struct row_slice *slice = rows->slice + rows->half * rows->n_at_once;
    (void)thread;
    if (task == 0)
        write_waiting(rows);
    else
        make_slice(rows, &slice[task - 1], NULL);
}

static void add_told(struct oj_flatgeobuf_told *sum,
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

/* The slices of the places that were taken, in their order: those that needed
 * OGR are made here. */
static oj_status end_slices(struct oj_flatgeobuf_rows *rows, int are_plain,
                            struct oj_flatgeobuf_told *told,
                            struct oj_error *err)
{
    struct row_slice *slice = rows->slice + rows->half * rows->n_at_once;
    if (rows->status != OJ_OK)
        return oj_fail(err, rows->status, "%s", rows->error.message);
    for (int64_t i = 0; i < rows->n_made; i++)
    {
        if (!are_plain || slice[i].wkb.needs_ogr || slice[i].run.needs_ogr)
        {
            make_slice(rows, &slice[i], rows->scratch);
        }
        add_told(told, &slice[i].told);
        if (slice[i].status != OJ_OK)
            return oj_fail(err, slice[i].status, "%s", slice[i].error.message);
    }
    rows->half = 1 - rows->half;
    rows->n_waiting = rows->n_made;
    return OJ_OK;
}

oj_status oj_flatgeobuf_rows_write(struct oj_flatgeobuf_rows *rows,
                                   struct oj_flatgeobuf_told *told,
                                   struct oj_error *err)
{
    const struct oj_flatgeobuf_told nothing = {0};
    const struct oj_row_sources *sources = oj_row_cursor_sources(rows->cursor);
    int are_plain;
    *told = nothing;
    if (sources->batch == NULL || sources->batch->n_rows == 0)
        return OJ_OK;
    are_plain = plan_fields(rows);
    for (;;)
    {
        struct row_slice *slice = rows->slice + rows->half * rows->n_at_once;
        int64_t n = oj_row_cursor_take(rows->cursor, rows->place,
                                       rows->n_at_once * SLICE_ROWS);
        if (n == 0)
            return OJ_OK;
        OJ_TRY(oj_check_cancel(sources->options->cancel, err));
        rows->n_made = (n + SLICE_ROWS - 1) / SLICE_ROWS;
        for (int64_t i = 0; i < rows->n_made; i++)
        {
            slice[i].first = i * SLICE_ROWS;
            slice[i].n = n - slice[i].first < SLICE_ROWS ? n - slice[i].first
                                                         : SLICE_ROWS;
        }
        oj_parallel_for(rows->n_threads, are_plain ? 1 + rows->n_made : 1,
                        run_task, rows);
        OJ_TRY(end_slices(rows, are_plain, told, err));
    }
}

oj_status oj_flatgeobuf_rows_finish(struct oj_flatgeobuf_rows *rows,
                                    int *has_rows, struct oj_error *err)
{
    write_waiting(rows);
    if (rows->status != OJ_OK)
        return oj_fail(err, rows->status, "%s", rows->error.message);
    return oj_flatgeobuf_write_finish(rows->writer, has_rows, err);
}
