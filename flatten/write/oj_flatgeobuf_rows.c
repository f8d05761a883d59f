#include "oj_flatgeobuf_rows.h"

#include "../base/oj_array.h"
#include "../flatgeobuf/oj_flatgeobuf_write.h"
#include "oj_row_wkb.h"

#include <math.h>
#include <string.h>

/* A field of the file, in its order. */
struct file_field
{
    int column; /* of the cursor; -1: always NULL */
    OGRFieldType type;
    OGRFieldSubType subtype;
};

struct oj_flatgeobuf_rows
{
    struct oj_row_cursor *cursor;
    struct oj_flatgeobuf_writer *writer;
    struct oj_row_wkb wkb;
    OGRFeatureH scratch;
    int n_fields;
    struct file_field *field; /* [n_fields] */
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
    rows->scratch = rows->wkb.scratch = OGR_F_Create(defn);
    status = rows->scratch == NULL ? oj_fail_nomem(err, 1, 1024)
                                   : take_fields(rows, defn, err);
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
    oj_row_wkb_free(&rows->wkb);
    oj_free(rows->field);
    oj_free(rows);
}

/* ---- values -------------------------------------------------------------- */

static oj_status add_integer(struct oj_fgb_feature *feature, int i,
                             const struct file_field *field, int value,
                             struct oj_error *err)
{
    const int16_t small = (int16_t)value;
    const uint8_t yes = (uint8_t)value;
    if (field->subtype == OFSTBoolean)
        return oj_fgb_add_number(feature, i, &yes, 1, err);
    if (field->subtype == OFSTInt16)
        return oj_fgb_add_number(feature, i, &small, 2, err);
    return oj_fgb_add_number(feature, i, &value, 4, err);
}

static oj_status add_real(struct oj_fgb_feature *feature, int i,
                          const struct file_field *field, double value,
                          struct oj_error *err)
{
    float single;
    if (field->subtype != OFSTFloat32)
        return oj_fgb_add_number(feature, i, &value, 8, err);
    single = (float)value;
    return oj_fgb_add_number(feature, i, &single, 4, err);
}

static oj_status add_value(struct oj_fgb_feature *feature, int i,
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
            return add_integer(feature, i, field, raw->Integer, err);
        case OFTInteger64:
            return oj_fgb_add_number(feature, i, &raw->Integer64, 8, err);
        case OFTReal:
            return add_real(feature, i, field, raw->Real, err);
        case OFTString:
            bytes = oj_value_bytes(value, OFTString, &n);
            n = (int64_t)strnlen(bytes, (size_t)n); /* as OGR has it */
            return oj_fgb_add_bytes(feature, i, bytes, n, err);
        case OFTBinary:
            bytes = oj_value_bytes(value, OFTBinary, &n);
            return oj_fgb_add_bytes(feature, i, bytes, n, err);
        default:
            n = oj_value_xml_time(raw, 0, text, sizeof text);
            return oj_fgb_add_bytes(feature, i, text, n, err);
    }
}

/* ---- rows ---------------------------------------------------------------- */

static oj_status add_values(const struct oj_flatgeobuf_rows *rows,
                            const struct oj_row_place *place,
                            struct oj_error *err)
{
    for (int i = 0; i < rows->n_fields; i++)
    {
        const struct file_field *field = &rows->field[i];
        struct oj_value value;
        if (field->column < 0)
            continue;
        OJ_TRY(oj_row_cursor_value(rows->cursor, field->column, place,
                                   rows->scratch, &value, err));
        if (oj_value_is_there(&value))
            OJ_TRY(add_value(oj_flatgeobuf_feature(rows->writer), i, field,
                             &value, err));
    }
    return OJ_OK;
}

oj_status oj_flatgeobuf_rows_next(struct oj_flatgeobuf_rows *rows, int *there,
                                  int64_t *fid, int *is_empty, int *is_finite,
                                  struct oj_error *err)
{
    struct oj_row_place place;
    const struct oj_fgb_feature *feature = oj_flatgeobuf_feature(rows->writer);
    const uint8_t *wkb;
    int64_t n;
    *there = oj_row_cursor_take(rows->cursor, &place, 1) == 1;
    if (!*there)
        return OJ_OK;
    *fid = oj_row_cursor_sources(rows->cursor)->batch->flat.fid[place.row];
    OJ_TRY(add_values(rows, &place, err));
    OJ_TRY(oj_row_wkb_make(&rows->wkb, rows->cursor, &place, &wkb, &n, err));
    OJ_TRY(oj_flatgeobuf_write_row(rows->writer, wkb, n, is_empty, err));
    *is_finite =
        *is_empty || (isfinite(feature->box[0]) && isfinite(feature->box[1]) &&
                      isfinite(feature->box[2]) && isfinite(feature->box[3]));
    return OJ_OK;
}

oj_status oj_flatgeobuf_rows_finish(struct oj_flatgeobuf_rows *rows,
                                    int *has_rows, struct oj_error *err)
{
    return oj_flatgeobuf_write_finish(rows->writer, has_rows, err);
}
