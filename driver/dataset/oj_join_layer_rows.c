/* The rows of a join layer: one after another, by FID, as an Arrow stream. */
#include "oj_join_layer_state.h"

#include "oj_join_arrow.h"

#include <cpl_error.h>
#include <cpl_string.h>

/* ---- what is ignored ---------------------------------------------------- */

static int is_used(const struct oj_join_layer *layer, const char *name)
{
    return CSLFindString(layer->used_fields, name) >= 0;
}

/* What the reader's filters look at is set though it is ignored. */
void oj_join_layer_look_at_ignored(const struct oj_join_layer *layer,
                                   const struct oj_row_shape *shape)
{
    OGRFeatureDefnH defn = shape->defn, asked = shape->asked;
    int all = layer->has_where && layer->used_fields == NULL;
    int n = OGR_FD_GetFieldCount(defn);
    for (int i = 0; i < n; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        int is_ignored =
            OGR_Fld_IsIgnored(field) && !all &&
            !(layer->has_where && is_used(layer, OGR_Fld_GetNameRef(field)));
        OGR_Fld_SetIgnored(OGR_FD_GetFieldDefn(asked, i), is_ignored);
    }
    OGR_FD_SetGeometryIgnored(asked, OGR_FD_IsGeometryIgnored(defn) &&
                                         !layer->has_box && !layer->has_where);
}

/* ---- one after another -------------------------------------------------- */

oj_status oj_join_layer_refresh(struct oj_join_layer *layer,
                                struct oj_error *err)
{
    int is_new = 0;
    oj_status status = oj_row_stream_refresh(&layer->main, &is_new, err);
    if (!is_new)
        return status;
    layer->n_rows = -1;
    oj_row_stream_close(&layer->single);
    layer->is_single_open = 0;
    return status;
}

/* Before rows are read: what is in the files and what is ignored now counts. */
static oj_status begin(struct oj_join_layer *layer, struct oj_error *err)
{
    if (layer->main.cursor != NULL)
        return OJ_OK;
    oj_join_layer_look_at_ignored(layer, &layer->shape);
    return oj_join_layer_refresh(layer, err);
}

/* The same for those who tell errors: there are no rows after one. */
static int begins(struct oj_join_layer *layer)
{
    struct oj_error error = {OJ_OK, ""};
    if (begin(layer, &error) == OJ_OK)
        return 1;
    layer->main.has_ended = 1;
    oj_join_layer_report(&error);
    return 0;
}

/* The next row of the main stream; NULL at the end or after an error, which is
 * told. */
static OGRFeatureH read_next(struct oj_join_layer *layer)
{
    struct oj_error error = {OJ_OK, ""};
    OGRFeatureH feature = NULL;
    if (layer->main.has_ended || !begins(layer))
        return NULL;
    if (oj_row_stream_next(&layer->main, &feature, &error) != OJ_OK)
    {
        oj_join_layer_report(&error);
        return NULL;
    }
    if (feature == NULL && !layer->has_box && !layer->has_where)
        layer->n_rows = layer->main.position;
    return feature;
}

OGRFeatureH oj_join_layer_next(struct oj_join_layer *layer)
{
    OGRFeatureH feature = layer->peeked;
    layer->peeked = NULL;
    if (layer->has_stream)
        return NULL;
    return feature != NULL ? feature : read_next(layer);
}

void oj_join_layer_reset(struct oj_join_layer *layer)
{
    if (layer->peeked != NULL)
        OGR_F_Destroy(layer->peeked);
    layer->peeked = NULL;
    if (!layer->has_stream)
        oj_row_stream_stop(&layer->main);
}

int oj_join_layer_skip_to(struct oj_join_layer *layer, GIntBig index)
{
    struct oj_error error = {OJ_OK, ""};
    int64_t n_passed = 0, n;
    if (layer->has_stream)
        return 0;
    if (layer->peeked != NULL || layer->main.has_ended ||
        index < layer->main.position)
        oj_join_layer_reset(layer);
    if (index < 0)
    {
        layer->main.has_ended = 1;
        return 0;
    }
    if (!begins(layer))
        return 0;
    n = index - layer->main.position;
    if (oj_row_stream_skip(&layer->main, n, &n_passed, &error) != OJ_OK)
    {
        oj_join_layer_report(&error);
        return 0;
    }
    layer->peeked = n_passed == n ? read_next(layer) : NULL;
    return layer->peeked != NULL;
}

/* ---- by FID ------------------------------------------------------------- */

oj_status oj_join_layer_open_single(struct oj_join_layer *layer,
                                    struct oj_error *err)
{
    oj_status status;
    if (layer->is_single_open)
        return OJ_OK;
    status = oj_pass_open_shared(&layer->command, &layer->main.pass,
                                 &layer->single.pass, err);
    if (status != OJ_OK)
    {
        oj_row_stream_close(&layer->single);
        return status;
    }
    /* Messages of the plan were reported before. */
    oj_message_list_drop(&layer->single.pass.messages);
    /* Between two rows that are asked for by FID other fields can be ignored,
     * so it reads all. */
    oj_row_stream_shape(&layer->single, &layer->shape_of_single, 0);
    layer->main.pass.like = &layer->single.pass;
    layer->is_single_open = 1;
    return OJ_OK;
}

/* Rows are numbered: passes over those before. */
static oj_status get_numbered(struct oj_row_stream *s, int64_t fid,
                              OGRFeatureH *feature, struct oj_error *err)
{
    int64_t n_passed = 0, n;
    if (s->has_ended || fid < s->position)
        oj_row_stream_stop(s);
    n = fid - s->position;
    OJ_TRY(oj_row_stream_skip(s, n, &n_passed, err));
    return n_passed == n ? oj_row_stream_next(s, feature, err) : OJ_OK;
}

/* With -limit a row counts only where it comes before the end. */
static oj_status get_searched(struct oj_row_stream *s, int64_t fid,
                              OGRFeatureH *feature, struct oj_error *err)
{
    oj_row_stream_stop(s);
    for (;;)
    {
        OJ_TRY(oj_row_stream_next(s, feature, err));
        if (*feature == NULL || OGR_F_GetFID(*feature) == fid)
            return OJ_OK;
        OGR_F_Destroy(*feature);
        *feature = NULL;
    }
}

static oj_status get(struct oj_join_layer *layer, int64_t fid,
                     OGRFeatureH *feature, struct oj_error *err)
{
    OJ_TRY(oj_join_layer_refresh(layer, err));
    OJ_TRY(oj_join_layer_open_single(layer, err));
    oj_join_layer_look_at_ignored(layer, &layer->shape_of_single);
    if (!layer->schema.keep_fids)
        return get_numbered(&layer->single, fid, feature, err);
    if (layer->command.limit >= 0)
        return get_searched(&layer->single, fid, feature, err);
    return oj_row_stream_get(&layer->single, fid, feature, err);
}

OGRFeatureH oj_join_layer_get(struct oj_join_layer *layer, GIntBig fid)
{
    struct oj_error error = {OJ_OK, ""};
    OGRFeatureH feature = NULL;
    if (fid < 0)
        return NULL;
    if (get(layer, fid, &feature, &error) == OJ_OK)
        return feature;
    if (feature != NULL)
        OGR_F_Destroy(feature);
    oj_join_layer_report(&error);
    return NULL;
}

/* ---- Arrow -------------------------------------------------------------- */

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)

static oj_status advance(void *user, int *there, struct oj_error *err)
{
    struct oj_join_layer *layer = user;
    return oj_row_stream_advance(&layer->main, there, err);
}

/* Filters that were set meanwhile count from now on. */
static void close_stream(void *user)
{
    struct oj_join_layer *layer = user;
    layer->has_stream = 0;
    oj_row_stream_stop(&layer->main);
    oj_join_layer_push_filters(layer);
}

int oj_join_layer_arrow(struct oj_join_layer *layer,
                        struct ArrowArrayStream *out, char **options)
{
    struct oj_error error = {OJ_OK, ""};
    struct oj_arrow_rows rows = {0};
    if (layer->has_stream || layer->has_box || layer->has_where)
        return 0;
    oj_join_layer_reset(layer);
    if (begin(layer, &error) != OJ_OK ||
        oj_row_stream_begin(&layer->main, &error) != OJ_OK)
        return 0; /* who reads features instead is told */
    rows.cursor = layer->main.cursor;
    rows.advance = advance;
    rows.closed = close_stream;
    rows.user = layer;
    layer->has_stream = oj_join_arrow_open(layer->shape.defn, layer->fid_column,
                                           &rows, options, out);
    if (!layer->has_stream)
        oj_join_layer_reset(layer);
    return layer->has_stream;
}

#else

int oj_join_layer_arrow(struct oj_join_layer *layer,
                        struct ArrowArrayStream *out, char **options)
{
    (void)layer;
    (void)out;
    (void)options;
    return 0;
}

#endif
