#include "oj_join_arrow.h"

#include "../../flatten/read/oj_layer_arrow.h"

#if OJ_HAVE_ARROW

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/write/oj_row_wkb.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <ogr_recordbatch.h>

/* GDAL declares the Arrow structs without the usual guards. The guards defined
 * here keep our header from declaring the structs again. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
#endif
#include "../../algs/api/arrow/oj_arrow_array.h"
#include "../../algs/api/arrow/oj_arrow_column.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Number of rows for which one column is filled before the next, few enough
 * that their values stay in the cache. */
#define PLACES_AT_ONCE 256

/* The Arrow format for an OGR type, and how a value is written in it. */
struct column_form
{
    OGRFieldType type;
    const char *format;
    enum value_form
    {
        FORM_INTEGER,
        FORM_INTEGER64,
        FORM_REAL,
        FORM_BYTES,
        FORM_DAYS,         /* days since 1970 */
        FORM_MILLISECONDS, /* milliseconds of the day */
        FORM_MOMENT,       /* milliseconds since 1970 */
        FORM_MOMENT_UTC    /* milliseconds since 1970, in UTC if the zone is
                              known */
    } form;
};

static const struct column_form column_forms[] = {
    {OFTInteger, "b", FORM_INTEGER},
    {OFTInteger, "s", FORM_INTEGER},
    {OFTInteger, "i", FORM_INTEGER},
    {OFTInteger64, "l", FORM_INTEGER64},
    {OFTReal, "f", FORM_REAL},
    {OFTReal, "g", FORM_REAL},
    {OFTString, "u", FORM_BYTES},
    {OFTBinary, "z", FORM_BYTES},
    {OFTDate, "tdD", FORM_DAYS},
    {OFTTime, "ttm", FORM_MILLISECONDS},
    {OFTDateTime, "tsm:", FORM_MOMENT},
    {OFTDateTime, "tsm:UTC", FORM_MOMENT_UTC}};

/* Where the values of a child array come from. */
enum child_kind
{
    CHILD_FID,
    CHILD_FIELD,
    CHILD_GEOMETRY
};

struct arrow_child
{
    enum child_kind kind;
    struct oj_row_column from; /* used for CHILD_FIELD */
    const char *name;
    const struct column_form *form; /* how values are written; for lists, how
                                       their elements are */
    struct oj_arrow_column column;
};

struct oj_join_arrow
{
    /* a reference to the definition; NULL before opening */
    OGRFeatureDefnH defn;
    /* source of the rows; its cursor is NULL after oj_join_arrow_detach() */
    struct oj_arrow_rows rows;
    struct ArrowArrayStream generic; /* GDAL's stream, open as long as this one
                                      */
    struct ArrowSchema schema; /* of GDAL's stream when this one was opened */
    OGRFeatureH scratch;       /* feature for converting values */
    struct oj_layer_geometry wkb;
    int64_t batch_rows;
    struct arrow_child *child; /* [n_children] */
    int n_children;

    /* Buffer of the next rows, all of one answer. */
    struct oj_row_place place[PLACES_AT_ONCE];
    int64_t at_place, n_places;
    int at_end;
    struct oj_error error;
};

/* ---- values -------------------------------------------------------------- */

static OGRFieldType element_type_of_list(OGRFieldType type)
{
    return type == OFTIntegerList     ? OFTInteger
           : type == OFTInteger64List ? OFTInteger64
           : type == OFTRealList      ? OFTReal
                                      : OFTString;
}

/* Returns how values of an OGR type (for a list, its elements) are written in
 * the schema's Arrow format. Returns NULL if only GDAL's generic stream can
 * make the column. */
static const struct column_form *
find_column_form(const struct ArrowSchema *schema, OGRFieldType type)
{
    if (oj_type_is_list(type))
    {
        if (strcmp(schema->format, "+l") != 0 || schema->n_children != 1)
            return NULL;
        schema = schema->children[0];
        type = element_type_of_list(type);
    }
    for (size_t i = 0; i < sizeof column_forms / sizeof *column_forms; i++)
    {
        if (column_forms[i].type == type &&
            strcmp(column_forms[i].format, schema->format) == 0)
            return &column_forms[i];
    }
    return NULL;
}

/* Returns the milliseconds since midnight. Rounds the seconds, which are a
 * float, as GDAL does. */
static int32_t milliseconds_of_day(const OGRField *raw)
{
    return (raw->Date.Hour * 60 + raw->Date.Minute) * 60000 +
           (int32_t)(raw->Date.Second * 1000 + 0.5);
}

/* Returns the milliseconds since 1970, in UTC if is_utc is set and the zone is
 * known. TZFlag: 0 is unknown, 1 local time, 100 UTC; one step from 100 is a
 * quarter of an hour. */
static int64_t epoch_milliseconds(const OGRField *raw, int is_utc)
{
    int64_t moment = oj_value_days(raw) * 86400000 + milliseconds_of_day(raw);
    if (is_utc && raw->Date.TZFlag > 2)
        moment -= ((int64_t)raw->Date.TZFlag - 100) * 15 * 60000;
    return moment;
}

/* Appends n bytes as the value of a row. If they would exceed the limit of an
 * array, appends nothing and sets *fits to 0. */
static oj_status put_bytes(struct oj_arrow_column *column, int64_t row,
                           const void *from, int64_t n, int *fits,
                           struct oj_error *err)
{
    char *to;
    OJ_TRY(oj_arrow_column_put_bytes(column, row, n, &to, err));
    *fits = to != NULL;
    if (*fits && n > 0)
        memcpy(to, from, (size_t)n);
    return OJ_OK;
}

/* Writes the number, date or time in raw as the value of a row. */
static oj_status put_number(struct oj_arrow_column *column, int64_t row,
                            enum value_form form, const OGRField *raw,
                            struct oj_error *err)
{
    int64_t integer;
    switch (form)
    {
        case FORM_REAL:
            return oj_arrow_column_put_real(column, row, raw->Real, err);
        case FORM_INTEGER:
            integer = raw->Integer;
            break;
        case FORM_INTEGER64:
            integer = raw->Integer64;
            break;
        case FORM_DAYS:
            integer = oj_value_days(raw);
            break;
        case FORM_MILLISECONDS:
            integer = milliseconds_of_day(raw);
            break;
        default:
            integer = epoch_milliseconds(raw, form == FORM_MOMENT_UTC);
            break;
    }
    return oj_arrow_column_put_integer(column, row, integer, err);
}

/* Appends element i of a list. The numbers by which OGR marks a field as NULL
 * are ordinary values within a list. Sets *fits to 0, and appends nothing, if
 * the column has no room for the element. */
static oj_status append_list_element(struct oj_arrow_column *item, int64_t row,
                                     enum value_form form, const OGRField *list,
                                     int i, int *fits, struct oj_error *err)
{
    OGRField raw;
    memset(&raw, 0, sizeof raw);
    if (form == FORM_BYTES)
    {
        const char *text = list->StringList.paList[i];
        return put_bytes(item, row, text, (int64_t)strlen(text), fits, err);
    }
    if (form == FORM_INTEGER64)
        raw.Integer64 = list->Integer64List.paList[i];
    else if (form == FORM_REAL)
        raw.Real = list->RealList.paList[i];
    else
        raw.Integer = list->IntegerList.paList[i];
    return put_number(item, row, form, &raw, err);
}

static oj_status put_list(struct oj_arrow_column *column, int64_t row,
                          enum value_form form, const OGRField *list, int *fits,
                          struct oj_error *err)
{
    const int n = list->IntegerList.nCount;
    int64_t first;
    OJ_TRY(oj_arrow_column_put_list(column, row, n, &first, err));
    *fits = first >= 0;
    for (int i = 0; i < n && *fits; i++)
        OJ_TRY(append_list_element(column->item, first + i, form, list, i, fits,
                                   err));
    return OJ_OK;
}

/* ---- open and close ------------------------------------------------------ */

static void close_stream(struct oj_join_arrow *s)
{
    if (s == NULL)
        return;
    for (int i = 0; s->child != NULL && i < s->n_children; i++)
        oj_arrow_column_free(&s->child[i].column);
    oj_free(s->child);
    oj_layer_geometry_free(&s->wkb);
    oj_arrow_schema_release(&s->schema);
    if (s->scratch != NULL)
        OGR_F_Destroy(s->scratch);
    if (s->generic.release != NULL)
        s->generic.release(&s->generic);
    if (s->defn != NULL)
        OGR_FD_Release(s->defn);
    oj_free(s);
}

/* Returns 0 if there is an option that only GDAL's generic stream supports. */
static int are_all_stream_options_known(char **options)
{
    static const char *const known[] = {"INCLUDE_FID", "MAX_FEATURES_IN_BATCH",
                                        "GEOMETRY_METADATA_ENCODING"};
    int n = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        n += CSLFetchNameValue(options, known[i]) != NULL;
    return n == CSLCount(options);
}

static int64_t batch_rows_of(char **options)
{
    int n =
        atoi(CSLFetchNameValueDef(options, "MAX_FEATURES_IN_BATCH", "65536"));
    return n <= 0 ? 1 : n == INT_MAX ? INT_MAX - 1 : n;
}

/* Returns the maximum size of an array in bytes: INT32_MAX, because offsets
 * have 32 bits, or OGR_ARROW_MEM_LIMIT, GDAL's option for its own streams, if
 * that is less. */
static int64_t max_batch_bytes(void)
{
    const char *text = CPLGetConfigOption("OGR_ARROW_MEM_LIMIT", NULL);
    int64_t limit = text != NULL ? CPLAtoGIntBig(text) : INT32_MAX;
    return limit > 0 && limit < INT32_MAX ? limit : INT32_MAX;
}

/* Returns the index of the cursor's column for a field, or -1 if there is
 * none. */
static int find_cursor_column(const struct oj_join_arrow *s, int field)
{
    const struct oj_row_sources *sources =
        oj_row_cursor_sources(s->rows.cursor);
    for (int i = 0; i < sources->options->n_columns; i++)
    {
        if (sources->columns[i].target == field)
            return i;
    }
    return -1;
}

/* Initialises the next child for values of this type; returns 0 if the schema
 * has no further child, or one of another format. */
static int init_child(struct oj_join_arrow *s, enum child_kind kind,
                      OGRFieldType type, const char *name,
                      const struct ArrowSchema *parent)
{
    struct arrow_child *child = &s->child[s->n_children];
    const struct ArrowSchema *schema;
    if (s->n_children >= parent->n_children)
        return 0;
    schema = parent->children[s->n_children++];
    child->kind = kind;
    child->name = name;
    child->form = find_column_form(schema, type);
    if (child->form == NULL ||
        oj_arrow_column_open(schema, 0, &child->column, NULL) != OJ_OK)
        return 0;
    child->column.limit = max_batch_bytes();
    if (child->column.item != NULL)
        child->column.item->limit = child->column.limit;
    /* In a column of geometries that is not nullable, NULL must become an empty
     * geometry; this is left to GDAL's generic stream. */
    return kind != CHILD_GEOMETRY || child->column.is_nullable;
}

/* Initialises the children in the order of the schema: FIDs, the fields that
 * are not ignored, the geometry. Returns 0 if the schema does not have exactly
 * these children, or if memory runs out. */
static int init_children(struct oj_join_arrow *s,
                         const struct ArrowSchema *schema, char **options)
{
    int has_fid =
        CPLTestBool(CSLFetchNameValueDef(options, "INCLUDE_FID", "YES"));
    int has_geometry = OGR_FD_GetGeomFieldCount(s->defn) > 0 &&
                       !OGR_FD_IsGeometryIgnored(s->defn);
    s->child = oj_calloc(schema->n_children + 1, sizeof *s->child);
    if (s->child == NULL ||
        (has_fid && !init_child(s, CHILD_FID, OFTInteger64, "FID", schema)))
        return 0;
    for (int i = 0; i < OGR_FD_GetFieldCount(s->defn); i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(s->defn, i);
        if (OGR_Fld_IsIgnored(field))
            continue;
        s->child[s->n_children].from.number = find_cursor_column(s, i);
        s->child[s->n_children].from.type = OGR_Fld_GetType(field);
        if (!init_child(s, CHILD_FIELD, OGR_Fld_GetType(field),
                        OGR_Fld_GetNameRef(field), schema))
            return 0;
    }
    if (has_geometry &&
        !init_child(s, CHILD_GEOMETRY, OFTBinary, "the geometry", schema))
        return 0;
    return s->n_children == schema->n_children;
}

static int init_stream_columns(struct oj_join_arrow *s, OGRFeatureDefnH defn,
                               const struct oj_arrow_rows *rows, char **options,
                               struct ArrowArrayStream *generic)
{
    OGR_FD_Reference(defn);
    s->defn = defn;
    s->rows = *rows;
    s->batch_rows = batch_rows_of(options);
    if (OGR_FD_GetGeomFieldCount(defn) > 1 ||
        !are_all_stream_options_known(options) ||
        generic->get_schema(generic, &s->schema) != 0)
        return 0;
    s->scratch = OGR_F_Create(defn);
    return init_children(s, &s->schema, options) && s->scratch != NULL;
}

/* ---- batches ------------------------------------------------------------- */

/* Sets `from` of the children whose values can be copied without conversion
 * from the answer's arrays. */
static void set_zero_copy_sources(struct oj_join_arrow *s)
{
    const struct oj_batch *batch = oj_row_cursor_sources(s->rows.cursor)->batch;
    for (int i = 0; i < s->n_children; i++)
    {
        struct arrow_child *child = &s->child[i];
        child->from.values.view.format = 0;
        child->from.codes = NULL;
        if (child->kind == CHILD_FIELD && batch != NULL &&
            batch->attributes != NULL && child->column.item == NULL &&
            strchr("ilguz", child->form->format[0]) != NULL)
            oj_row_column_begin_answer(&child->from, s->rows.cursor);
    }
}

/* Fills the buffer with up to n rows if it is empty; sets at_end if there are
 * no more rows. */
static oj_status fetch_next_output_rows(struct oj_join_arrow *s, int64_t n,
                                        struct oj_error *err)
{
    n = n < PLACES_AT_ONCE ? n : PLACES_AT_ONCE;
    while (s->at_place == s->n_places && !s->at_end)
    {
        int there = 1;
        s->at_place = 0;
        s->n_places = oj_row_cursor_next_places(s->rows.cursor, s->place, n);
        for (int64_t i = 0; i < s->n_places; i++)
            oj_row_cursor_prefetch(s->rows.cursor, &s->place[i]);
        if (s->n_places == 0)
        {
            OJ_TRY(s->rows.advance(s->rows.user, &there, err));
            set_zero_copy_sources(s);
        }
        s->at_end = !there;
    }
    return OJ_OK;
}

/* Appends the numbers of n rows to a column, as rows row, row + 1, ... */
static oj_status append_numbers_of_rows(struct arrow_child *child,
                                        const struct oj_row_place *place,
                                        int64_t n, int64_t row,
                                        struct oj_error *err)
{
    const struct oj_row_view *view = &child->from.values;
    const void *values = view->view.values;
    struct oj_arrow_column *column = &child->column;
    OJ_TRY(oj_arrow_column_make_room(column, row, n, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = oj_row_view_value_index(view, &place[i]);
        if (at < 0)
        {
            OJ_TRY(oj_arrow_column_put_null(column, row + i, err));
            continue;
        }
        oj_arrow_column_mark_valid(column, row + i);
        if (column->type.size == 8)
            ((int64_t *)column->values)[row + i] =
                ((const int64_t *)values)[at];
        else
            ((int32_t *)column->values)[row + i] =
                ((const int32_t *)values)[at];
    }
    return OJ_OK;
}

/* Appends one row to a column. Geometries are little-endian ISO WKB, byte for
 * byte as OGR writes them for the feature. Sets *fits to 0 if the column has no
 * room for the row. */
static oj_status add_row_to_child(struct oj_join_arrow *s,
                                  struct arrow_child *child,
                                  const struct oj_row_place *place, int64_t row,
                                  int *fits, struct oj_error *err)
{
    struct oj_arrow_column *column = &child->column;
    const enum value_form form = child->form->form;
    struct oj_value value;
    const uint8_t *wkb;
    const void *at = &value.raw;
    int64_t n = 0;
    oj_value_set_zero(&value);
    if (child->kind == CHILD_GEOMETRY)
    {
        OJ_TRY(oj_row_wkb_make(&s->wkb, s->rows.cursor, place, &wkb, &n, err));
        at = wkb;
    }
    else if (child->kind == CHILD_FID)
        value.raw.Integer64 = place->fid;
    else
        OJ_TRY(oj_row_column_value(&child->from, s->rows.cursor, place,
                                   s->scratch, &value, &at, &n, err));
    if (at == NULL)
        return oj_arrow_column_put_null(column, row, err);
    if (column->item != NULL)
        return put_list(column, row, form, at, fits, err);
    return form == FORM_BYTES ? put_bytes(column, row, at, n, fits, err)
                              : put_number(column, row, form, at, err);
}

/* Appends *n rows to all columns, as rows row, row + 1, ... Reduces *n to the
 * number of rows that fit. */
static oj_status append_output_rows(struct oj_join_arrow *s,
                                    const struct oj_row_place *place,
                                    int64_t *n, int64_t row,
                                    struct oj_error *err)
{
    for (int c = 0; c < s->n_children; c++)
    {
        struct arrow_child *child = &s->child[c];
        int fits = 1, is_number = child->from.values.view.format != 0 &&
                                  oj_type_is_number(child->from.type);
        if (is_number)
            OJ_TRY(append_numbers_of_rows(child, place, *n, row, err));
        for (int64_t i = 0; !is_number && i < *n; i++)
        {
            OJ_TRY(add_row_to_child(s, child, &place[i], row + i, &fits, err));
            if (!fits)
                *n = i;
        }
        if (row + *n == 0)
            return oj_fail(err, OJ_ERR_LIMIT,
                           "the row with FID %lld is too large for an Arrow "
                           "batch, because %s takes more than %lld bytes: "
                           "leave it out, or read features",
                           (long long)place->fid, child->name,
                           (long long)child->column.limit);
    }
    return OJ_OK;
}

static oj_status make_record_batch_array(struct oj_join_arrow *s,
                                         int64_t n_rows,
                                         struct ArrowArray *array,
                                         struct oj_error *err)
{
    OJ_TRY(oj_arrow_array_make(1, s->n_children, array, err));
    array->length = n_rows;
    for (int i = 0; i < s->n_children; i++)
        OJ_TRY(oj_arrow_column_finish(&s->child[i].column, n_rows,
                                      array->children[i], err));
    return OJ_OK;
}

/* Fills the next array; array->release is NULL at the end of the stream. */
static oj_status next_array(struct oj_join_arrow *s, struct ArrowArray *array,
                            struct oj_error *err)
{
    int64_t n_rows = 0;
    set_zero_copy_sources(s); /* another reader may have moved the cursor */
    while (n_rows < s->batch_rows)
    {
        int64_t n = s->batch_rows - n_rows, n_fit;
        OJ_TRY(fetch_next_output_rows(s, n, err));
        if (s->at_end)
            break;
        if (n > s->n_places - s->at_place)
            n = s->n_places - s->at_place;
        n_fit = n;
        OJ_TRY(
            append_output_rows(s, s->place + s->at_place, &n_fit, n_rows, err));
        s->at_place += n_fit;
        n_rows += n_fit;
        if (n_fit < n)
            break;
    }
    return n_rows > 0 ? make_record_batch_array(s, n_rows, array, err) : OJ_OK;
}

static int is_detached(const struct oj_join_arrow *s)
{
    return s->rows.cursor == NULL;
}

/* Reports that the stream is detached. Returns EINVAL. */
static int report_detached(struct oj_join_arrow *s)
{
    if (s->error.status == OJ_OK)
        (void)!oj_fail(&s->error, OJ_ERR_ARG,
                       "the dataset of this Arrow stream was closed: read the "
                       "stream before you close the dataset");
    CPLError(CE_Failure, CPLE_AppDefined, "%s", s->error.message);
    return EINVAL;
}

static int errno_of_status(oj_status status)
{
    return status == OJ_ERR_NOMEM       ? ENOMEM
           : status == OJ_ERR_CANCELLED ? ECANCELED
                                        : EIO;
}

/* Sets *out to a copy of the schema. It is that of the arrays, also after other
 * fields of the layer were ignored than when this stream was opened. */
static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct oj_join_arrow *s = stream->private_data;
    oj_status status;
    memset(out, 0, sizeof *out);
    if (is_detached(s))
        return report_detached(s);
    status = oj_arrow_schema_copy(&s->schema, NULL, out, &s->error);
    if (status == OJ_OK)
        return 0;
    oj_arrow_schema_release(out);
    CPLError(CE_Failure, CPLE_AppDefined, "%s", s->error.message);
    return errno_of_status(status);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct oj_join_arrow *s = stream->private_data;
    oj_status status;
    memset(out, 0, sizeof *out);
    if (is_detached(s))
        return report_detached(s);
    if (s->at_end)
        return 0;
    status = next_array(s, out, &s->error);
    if (status == OJ_OK)
        return 0;
    if (out->release != NULL)
        out->release(out);
    memset(out, 0, sizeof *out);
    s->at_end = 1;
    CPLError(CE_Failure, CPLE_AppDefined, "%s", s->error.message);
    return errno_of_status(status);
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    const struct oj_join_arrow *s = stream->private_data;
    return s->error.status != OJ_OK ? s->error.message : NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    struct oj_join_arrow *s = stream->private_data;
    const struct oj_arrow_rows rows = s->rows;
    close_stream(s);
    memset(stream, 0, sizeof *stream);
    if (rows.cursor == NULL)
        return;
    oj_row_cursor_end_answer(rows.cursor);
    if (rows.closed != NULL)
        rows.closed(rows.user);
}

void oj_join_arrow_detach(struct oj_join_arrow *stream)
{
    memset(&stream->rows, 0, sizeof stream->rows);
}

struct oj_join_arrow *oj_join_arrow_open(OGRFeatureDefnH defn,
                                         const struct oj_arrow_rows *rows,
                                         char **options,
                                         struct ArrowArrayStream *stream)
{
    struct oj_join_arrow *s = oj_calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    if (!init_stream_columns(s, defn, rows, options, stream))
    {
        close_stream(s);
        return NULL;
    }
    s->generic = *stream;
    memset(stream, 0, sizeof *stream);
    stream->get_schema = get_schema;
    stream->get_next = get_next;
    stream->get_last_error = get_last_error;
    stream->release = release_stream;
    stream->private_data = s;
    return s;
}

#endif
