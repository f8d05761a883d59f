#include "oj_row_stream.h"

#include "../../flatten/read/oj_table.h"

#include <string.h>

void oj_row_stream_shape(struct oj_row_stream *stream,
                         const struct oj_row_shape *shape, int skips)
{
    stream->shape = shape;
    stream->skips = skips;
}

static void close_cursor(struct oj_row_stream *s)
{
    oj_row_cursor_close(s->cursor);
    oj_table_free(s->types);
    s->cursor = NULL;
    s->types = NULL;
}

oj_status oj_row_stream_refresh(struct oj_row_stream *stream, int *is_new,
                                struct oj_error *err)
{
    *is_new = oj_pass_is_outdated(&stream->pass);
    if (!*is_new)
        return OJ_OK;
    close_cursor(stream);
    return oj_pass_reopen(&stream->pass, err);
}

/* ---- start and stop ----------------------------------------------------- */

/* What is ignored when rows are begun is not read; it stays so to the end. */
static void skip_ignored(struct oj_row_stream *s)
{
    for (int i = 0; i < s->shape->n_columns; i++)
    {
        const struct oj_column *column = &s->shape->columns[i];
        if (column->origin == OJ_COLUMN_INPUT)
            oj_source_skip(&s->pass.job.input, column->source,
                           OGR_Fld_IsIgnored(OGR_FD_GetFieldDefn(
                               s->shape->asked, column->target)));
    }
}

void oj_row_stream_stop(struct oj_row_stream *stream)
{
    close_cursor(stream);
    (void)!oj_pass_stop(&stream->pass, OJ_OK, NULL);
    stream->has_ended = 0;
    stream->position = 0;
}

void oj_row_stream_close(struct oj_row_stream *stream)
{
    const struct oj_row_stream closed = {0};
    oj_row_stream_stop(stream);
    if (stream->spare != NULL)
        OGR_F_Destroy(stream->spare);
    oj_pass_close(&stream->pass);
    *stream = closed;
}

/* ---- answers ------------------------------------------------------------ */

/* The types of columns are known before the join side is. */
static oj_status open_cursor(struct oj_row_stream *s, struct oj_error *err)
{
    const struct oj_source *join = &s->pass.job.join;
    struct oj_write_options options = {0};
    OJ_TRY(oj_table_new(join->layer, join->fields,
                        join->n_fields + join->n_hidden, &s->types, err));
    oj_pass_fill_write_options(&s->pass, &options);
    options.join_table = s->types;
    options.columns = s->shape->columns;
    options.n_columns = s->shape->n_columns;
    options.keep_fids = s->shape->keep_fids;
    options.cancel = NULL; /* rows are made when they are asked for */
    OJ_TRY(oj_row_cursor_open(s->shape->asked, &options, &s->cursor, err));
    oj_row_cursor_set_crs(s->cursor, s->shape->crs);
    oj_row_cursor_number(s->cursor, 0);
    return OJ_OK;
}

static oj_status begin(struct oj_row_stream *s, const struct oj_answer *answer,
                       struct oj_error *err)
{
    oj_row_cursor_set_join_side(s->cursor, answer->join_side,
                                answer->join_table);
    oj_row_cursor_spread(s->cursor, oj_pass_most_rows(&s->pass));
    if (answer->is_matched != NULL)
        return oj_row_cursor_begin_join_rows(s->cursor, answer->batch,
                                             answer->is_matched, err);
    return oj_row_cursor_begin(s->cursor, answer->batch, answer->first_row,
                               answer->matches, answer->values, err);
}

oj_status oj_row_stream_begin(struct oj_row_stream *stream,
                              struct oj_error *err)
{
    oj_status status;
    if (stream->cursor != NULL)
        return OJ_OK;
    OJ_TRY(oj_pass_reopen(&stream->pass, err));
    status = open_cursor(stream, err);
    if (status != OJ_OK)
        close_cursor(stream);
    return status;
}

/* After the last row, or an error. */
static oj_status end(struct oj_row_stream *s, oj_status status,
                     struct oj_error *err)
{
    s->has_ended = 1;
    oj_row_cursor_end(s->cursor);
    return oj_pass_stop(&s->pass, status, err);
}

oj_status oj_row_stream_advance(struct oj_row_stream *stream, int *there,
                                struct oj_error *err)
{
    struct oj_pass *pass = &stream->pass;
    const struct oj_answer *answer = NULL;
    oj_status status;
    *there = 0;
    if (stream->has_ended)
        return OJ_OK;
    if (!pass->is_running && stream->skips)
        skip_ignored(stream);
    oj_row_cursor_end(stream->cursor);
    status = oj_pass_next(pass, &answer, err);
    if (status == OJ_OK && answer != NULL)
        status = begin(stream, answer, err);
    *there = status == OJ_OK && answer != NULL;
    if (!*there)
        status = end(stream, status, err);
    oj_message_list_report(&pass->messages);
    return status;
}

/* A driver's stream knows no fields that are not set, its features do: they
 * are NULL either way. */
static void set_all(const struct oj_row_stream *s, OGRFeatureH feature)
{
    for (int i = 0; i < s->shape->n_columns; i++)
    {
        if (!OGR_F_IsFieldSet(feature, i) &&
            !OGR_Fld_IsIgnored(OGR_FD_GetFieldDefn(s->shape->asked, i)))
            OGR_F_SetFieldNull(feature, i);
    }
}

/* Gives the row that was made. */
static OGRFeatureH give_spare(struct oj_row_stream *s)
{
    OGRFeatureH feature = s->spare;
    set_all(s, feature);
    s->spare = NULL;
    return feature;
}

oj_status oj_row_stream_next(struct oj_row_stream *stream, OGRFeatureH *feature,
                             struct oj_error *err)
{
    int there = 1;
    *feature = NULL;
    if (stream->has_ended)
        return OJ_OK;
    OJ_TRY(oj_row_stream_begin(stream, err));
    if (stream->spare == NULL)
        stream->spare = OGR_F_Create(stream->shape->defn);
    if (stream->spare == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a feature");
    while (there)
    {
        int is_made = 0;
        oj_status status =
            oj_row_cursor_next(stream->cursor, stream->spare, 0, &is_made, err);
        if (status != OJ_OK)
            return end(stream, status, err);
        if (is_made)
        {
            *feature = give_spare(stream);
            stream->position++;
            return OJ_OK;
        }
        OJ_TRY(oj_row_stream_advance(stream, &there, err));
    }
    return OJ_OK;
}

oj_status oj_row_stream_skip(struct oj_row_stream *stream, int64_t n,
                             int64_t *n_passed, struct oj_error *err)
{
    struct oj_row_place places[256];
    const int64_t most = (int64_t)(sizeof places / sizeof *places);
    int there = 1;
    *n_passed = 0;
    if (stream->has_ended)
        return OJ_OK;
    OJ_TRY(oj_row_stream_begin(stream, err));
    while (*n_passed < n && there)
    {
        int64_t left = n - *n_passed;
        int64_t taken = oj_row_cursor_take(stream->cursor, places,
                                           left < most ? left : most);
        *n_passed += taken;
        stream->position += taken;
        if (taken == 0)
            OJ_TRY(oj_row_stream_advance(stream, &there, err));
    }
    return OJ_OK;
}

/* ---- single rows -------------------------------------------------------- */

/* Row n of the answer. */
static oj_status make_row(struct oj_row_stream *s, int64_t n,
                          OGRFeatureH *feature, struct oj_error *err)
{
    struct oj_row_place place;
    int there = 1;
    while (n > 0 && there)
    {
        there = oj_row_cursor_take(s->cursor, &place, 1) > 0;
        n--;
    }
    if (!there)
        return OJ_OK;
    if (s->spare == NULL)
        s->spare = OGR_F_Create(s->shape->defn);
    if (s->spare == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a feature");
    OJ_TRY(oj_row_cursor_next(s->cursor, s->spare, 0, &there, err));
    if (!there)
        return OJ_OK;
    *feature = give_spare(s);
    return OJ_OK;
}

oj_status oj_row_stream_get(struct oj_row_stream *stream, int64_t fid,
                            OGRFeatureH *feature, struct oj_error *err)
{
    struct oj_answer answer;
    oj_status status;
    int there;
    *feature = NULL;
    OJ_TRY(oj_row_stream_begin(stream, err));
    status = oj_pass_one(&stream->pass, &fid, &answer, &there, err);
    if (status == OJ_OK && there)
    {
        status = begin(stream, &answer, err);
        if (status == OJ_OK)
            status = make_row(stream, fid, feature, err);
        oj_row_cursor_end(stream->cursor);
        stream->pass.is_broken = status != OJ_OK;
    }
    oj_message_list_report(&stream->pass.messages);
    return status;
}
