#include "oj_join_arrow.h"

#include "../../flatten/read/oj_layer_arrow.h"

#if OJ_HAVE_ARROW

#include "../../flatten/arrow/oj_row_column.h"
#include "../../flatten/base/oj_array.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <ogr_recordbatch.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What one child of an array is filled with. */
enum child_kind
{
    CHILD_FID,
    CHILD_FIELD,
    CHILD_GEOMETRY
};

struct arrow_child
{
    enum child_kind kind;
    int source; /* CHILD_FIELD: number of the cursor's column, or -1 */
    const char *name;
    struct oj_row_column column;
};

/* Most places at a time. */
#define ROW_BLOCK 1024

struct join_stream
{
    OGRFeatureDefnH defn;
    struct oj_arrow_rows rows;
    struct ArrowArrayStream generic; /* GDAL's, for its schema */
    OGRFeatureH scratch;             /* for conversions */
    int64_t batch_rows;
    struct arrow_child *child; /* [n_children] */
    int n_children;

    /* Places taken of the current answer and not yet added. */
    struct oj_row_place place[ROW_BLOCK];
    int64_t first_place, n_places;

    int at_end;
    int has_error;
    struct oj_error error;
};

/* ---- open and close ----------------------------------------------------- */

static void close_stream(struct join_stream *s)
{
    if (s == NULL)
        return;
    for (int i = 0; s->child != NULL && i < s->n_children; i++)
        oj_row_column_free(&s->child[i].column);
    oj_free(s->child);
    if (s->scratch != NULL)
        OGR_F_Destroy(s->scratch);
    if (s->generic.release != NULL)
        s->generic.release(&s->generic);
    oj_free(s);
}

/* Others ask for what only GDAL's generic stream does. */
static int options_are_known(char **options)
{
    static const char *const known[] = {"INCLUDE_FID", "MAX_FEATURES_IN_BATCH",
                                        "GEOMETRY_METADATA_ENCODING", NULL};
    int is_known = 1;
    for (int i = 0; options != NULL && options[i] != NULL && is_known; i++)
    {
        char *name = NULL;
        CPLParseNameValue(options[i], &name);
        is_known =
            name != NULL && CSLFindString((CSLConstList)known, name) >= 0;
        CPLFree(name);
    }
    return is_known;
}

static int64_t batch_rows_of(char **options)
{
    int n =
        atoi(CSLFetchNameValueDef(options, "MAX_FEATURES_IN_BATCH", "65536"));
    return n <= 0 ? 1 : n == INT_MAX ? INT_MAX - 1 : n;
}

/* 32-bit offsets; GDAL has the option for its own streams. */
static int64_t limit_of_batch(void)
{
    const char *text = CPLGetConfigOption("OGR_ARROW_MEM_LIMIT", NULL);
    int64_t limit = text != NULL ? CPLAtoGIntBig(text) : INT32_MAX;
    return limit > 0 && limit < INT32_MAX ? limit : INT32_MAX;
}

/* The number of the cursor's column for a field. */
static int find_source(const struct join_stream *s, int field)
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

/* The next child, for values of the type; 0 where they do not fit into the
 * schema's column, or there is none left. */
static int init_child(struct join_stream *s, enum child_kind kind,
                      OGRFieldType type, const char *name,
                      const struct ArrowSchema *parent)
{
    struct arrow_child *child = &s->child[s->n_children];
    const struct ArrowSchema *schema;
    int is_list, is_nullable, known = 0;
    if (s->n_children >= parent->n_children)
        return 0;
    schema = parent->children[s->n_children++];
    is_list = strcmp(schema->format, "+l") == 0;
    is_nullable = (schema->flags & ARROW_FLAG_NULLABLE) != 0;
    child->kind = kind;
    child->name = name;
    /* An empty geometry stands for a NULL that the definition forbids: left to
     * GDAL. */
    if (schema->dictionary != NULL || (is_list && schema->n_children != 1) ||
        (kind == CHILD_GEOMETRY && !is_nullable))
        return 0;
    return oj_row_column_init(&child->column, schema->format,
                              is_list ? schema->children[0]->format : NULL,
                              is_nullable, limit_of_batch(), &known,
                              NULL) == OJ_OK &&
           known && oj_row_column_takes(&child->column, type);
}

/* The schema says of each child what it is filled with: FIDs, the fields that
 * are not ignored, the geometry. */
static int init_children(struct join_stream *s,
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
        s->child[s->n_children].source = find_source(s, i);
        if (!init_child(s, CHILD_FIELD, OGR_Fld_GetType(field),
                        OGR_Fld_GetNameRef(field), schema))
            return 0;
    }
    if (has_geometry &&
        !init_child(s, CHILD_GEOMETRY, OFTBinary, "the geometry", schema))
        return 0;
    return s->n_children == schema->n_children;
}

static int init_stream(struct join_stream *s, OGRFeatureDefnH defn,
                       const struct oj_arrow_rows *rows, char **options,
                       struct ArrowArrayStream *generic)
{
    struct ArrowSchema schema;
    int done;
    s->defn = defn;
    s->rows = *rows;
    s->batch_rows = batch_rows_of(options);
    memset(&schema, 0, sizeof schema);
    if (OGR_FD_GetGeomFieldCount(defn) > 1 || !options_are_known(options) ||
        generic->get_schema(generic, &schema) != 0)
        return 0;
    s->scratch = OGR_F_Create(defn);
    done = init_children(s, &schema, options) && s->scratch != NULL;
    schema.release(&schema);
    return done;
}

/* ---- batches ------------------------------------------------------------ */

/* Places to be added, unless there are some: at_end when there are no more. */
static oj_status find_places(struct join_stream *s, int64_t most,
                             struct oj_error *err)
{
    int there = 1;
    while (s->n_places == 0)
    {
        s->first_place = 0;
        s->n_places = oj_row_cursor_take(s->rows.cursor, s->place,
                                         most < ROW_BLOCK ? most : ROW_BLOCK);
        if (s->n_places > 0)
            return OJ_OK;
        OJ_TRY(s->rows.advance(s->rows.user, &there, err));
        if (!there)
        {
            s->at_end = 1;
            return OJ_OK;
        }
    }
    return OJ_OK;
}

static oj_status add_to_child(struct join_stream *s, struct arrow_child *child,
                              const struct oj_row_place *places, int64_t n,
                              int64_t *n_added, struct oj_error *err)
{
    *n_added = n;
    if (child->kind == CHILD_FID)
        return oj_row_gather_fids(places, n, &child->column, err);
    if (child->kind == CHILD_GEOMETRY)
        return oj_row_gather_wkb(s->rows.cursor, places, n, &child->column,
                                 n_added, err);
    return oj_row_gather_field(s->rows.cursor, child->source, s->scratch,
                               places, n, &child->column, n_added, err);
}

static oj_status fail_too_large(const struct join_stream *s,
                                const struct arrow_child *child,
                                struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_LIMIT,
                   "the row with FID %lld is too large for an Arrow batch: %s "
                   "takes more than %lld bytes",
                   (long long)s->place[s->first_place].fid, child->name,
                   (long long)child->column.limit);
}

/* Adds as many rows of the block as fit into all columns. */
static oj_status add_block(struct join_stream *s, int64_t *n_rows, int *is_full,
                           struct oj_error *err)
{
    int64_t n = s->n_places;
    if (n > s->batch_rows - *n_rows)
        n = s->batch_rows - *n_rows;
    for (int i = 0; i < s->n_children; i++)
    {
        int64_t n_added;
        OJ_TRY(add_to_child(s, &s->child[i], s->place + s->first_place, n,
                            &n_added, err));
        *is_full |= n_added < n;
        if (n_added == 0 && n > 0 && *n_rows == 0)
            return fail_too_large(s, &s->child[i], err);
        n = n_added;
    }
    *n_rows += n;
    s->first_place += n;
    s->n_places -= n;
    return OJ_OK;
}

static oj_status fill_array(struct join_stream *s, int64_t n_rows,
                            struct ArrowArray *array, struct oj_error *err)
{
    OJ_TRY(oj_row_column_make_array(1, s->n_children, array, err));
    array->length = n_rows;
    for (int i = 0; i < s->n_children; i++)
    {
        oj_row_column_cut(&s->child[i].column, n_rows);
        OJ_TRY(
            oj_row_column_finish(&s->child[i].column, array->children[i], err));
    }
    return OJ_OK;
}

/* array->release is NULL at the end of the stream. */
static oj_status next_array(struct join_stream *s, struct ArrowArray *array,
                            struct oj_error *err)
{
    int64_t n_rows = 0;
    int is_full = 0;
    while (!is_full && n_rows < s->batch_rows && !s->at_end)
    {
        OJ_TRY(find_places(s, s->batch_rows - n_rows, err));
        if (!s->at_end)
            OJ_TRY(add_block(s, &n_rows, &is_full, err));
    }
    return n_rows > 0 ? fill_array(s, n_rows, array, err) : OJ_OK;
}

/* ---- the stream's functions --------------------------------------------- */

/* EINVAL where other fields are ignored than when the stream was opened. */
static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct join_stream *s = stream->private_data;
    int code = s->generic.get_schema(&s->generic, out);
    if (code != 0 || out->n_children == s->n_children)
        return code;
    out->release(out);
    return EINVAL;
}

static int error_number(oj_status status)
{
    return status == OJ_ERR_NOMEM       ? ENOMEM
           : status == OJ_ERR_CANCELLED ? ECANCELED
                                        : EIO;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct join_stream *s = stream->private_data;
    oj_status status;
    memset(out, 0, sizeof *out);
    if (s->at_end)
        return 0;
    status = next_array(s, out, &s->error);
    if (status == OJ_OK)
        return 0;
    if (out->release != NULL)
        out->release(out);
    memset(out, 0, sizeof *out);
    s->has_error = s->at_end = 1;
    CPLError(CE_Failure, CPLE_AppDefined, "%s", s->error.message);
    return error_number(status);
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    const struct join_stream *s = stream->private_data;
    return s->has_error ? s->error.message : NULL;
}

static void release(struct ArrowArrayStream *stream)
{
    struct join_stream *s = stream->private_data;
    const struct oj_arrow_rows rows = s->rows;
    close_stream(s);
    memset(stream, 0, sizeof *stream);
    oj_row_cursor_end(rows.cursor);
    if (rows.closed != NULL)
        rows.closed(rows.user);
}

int oj_join_arrow_open(OGRFeatureDefnH defn, const struct oj_arrow_rows *rows,
                       char **options, struct ArrowArrayStream *stream)
{
    struct join_stream *s = oj_calloc(1, sizeof *s);
    if (s == NULL)
        return 0;
    if (!init_stream(s, defn, rows, options, stream))
    {
        close_stream(s);
        return 0;
    }
    s->generic = *stream;
    memset(stream, 0, sizeof *stream);
    stream->get_schema = get_schema;
    stream->get_next = get_next;
    stream->get_last_error = get_last_error;
    stream->release = release;
    stream->private_data = s;
    return 1;
}

#endif
