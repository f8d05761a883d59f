#include "oj_row_stream.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/read/oj_table.h"
#include "../base/oj_cancel.h"
#include "../rows/oj_summary.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <string.h>

/* ---- on whose thread we are --------------------------------------------- */

/* What the calling thread had before it worked on a join. */
struct thread_settings
{
    const int *flag;
    struct oj_message_sink sink;
};

static void begin_stretch(struct oj_row_stream *s,
                          struct thread_settings *stretch)
{
    stretch->flag = oj_cancel_use(&s->cancel);
    oj_told_listen(&s->told, &stretch->sink);
}

static void end_stretch(const struct thread_settings *stretch)
{
    oj_message_use(NULL);
    oj_cancel_use(stretch->flag);
}

/* For the threads of a stream. */
static void listen_to(void *told, struct oj_message_sink *sink)
{
    oj_told_listen(told, sink);
}

/* ---- the pass ----------------------------------------------------------- */

static char **list_fields(const struct oj_source *source)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(source->layer);
    char **list = NULL;
    for (int i = 0; i < source->n_fields; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, source->fields[i]);
        char *text = CPLStrdup(CPLSPrintf("%s %d %d", OGR_Fld_GetNameRef(field),
                                          OGR_Fld_GetType(field),
                                          OGR_Fld_GetSubType(field)));
        list = CSLAddString(list, text);
        CPLFree(text);
    }
    return list;
}

/* The columns of a shape name fields by their places, which a changed file may
 * have filled with others; further ones at the end do no harm.
 * before: of the side when it was first opened; NULL: now. */
static oj_status check_fields(const struct oj_source *source, char ***before,
                              struct oj_error *err)
{
    char **now = list_fields(source);
    int n = CSLCount(*before), i = 0;
    if (*before == NULL)
    {
        *before = now;
        return OJ_OK;
    }
    while (i < n && now != NULL && now[i] != NULL &&
           strcmp(now[i], (*before)[i]) == 0)
        i++;
    CSLDestroy(now);
    if (i == n)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_DATA,
                   "the %s layer '%s' has other fields than when the join was "
                   "opened; open it anew",
                   source->role, source->name);
}

static oj_status open_pass(struct oj_row_stream *s, struct oj_error *err)
{
    struct thread_settings stretch;
    oj_status status;
    begin_stretch(s, &stretch);
    status = oj_pass_open(s->command, OJ_PASS_AGAIN, &s->pass, err);
    s->pass.like = s->like != NULL ? &s->like->pass : NULL;
    s->pass.job.listen = listen_to;
    s->pass.job.listen_user = &s->told;
    end_stretch(&stretch);
    if (status == OJ_OK)
        status = check_fields(&s->pass.job.input, &s->fields[0], err);
    if (status == OJ_OK)
        status = check_fields(&s->pass.job.join, &s->fields[1], err);
    s->is_broken = status != OJ_OK;
    return status;
}

oj_status oj_row_stream_open(const struct oj_command *command,
                             const struct oj_row_stream *like,
                             struct oj_row_stream *stream, struct oj_error *err)
{
    stream->command = command;
    stream->like = like;
    for (int i = 0; like != NULL && i < 2; i++)
        stream->fields[i] = CSLDuplicate(like->fields[i]);
    OJ_TRY(oj_told_open(&stream->told, err));
    stream->is_open = 1;
    return open_pass(stream, err);
}

void oj_row_stream_set_like(struct oj_row_stream *stream,
                            const struct oj_row_stream *like)
{
    stream->like = like;
    stream->pass.like = &like->pass;
}

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

/* What failed half-way is opened anew. */
static oj_status mend(struct oj_row_stream *s, struct oj_error *err)
{
    if (!s->is_broken)
        return OJ_OK;
    close_cursor(s);
    oj_pass_close(&s->pass);
    return open_pass(s, err);
}

oj_status oj_row_stream_refresh(struct oj_row_stream *stream, int *is_new,
                                struct oj_error *err)
{
    *is_new = stream->lazy == NULL && oj_job_is_outdated(&stream->pass.job);
    stream->is_broken |= *is_new;
    return stream->lazy == NULL ? mend(stream, err) : OJ_OK;
}

static oj_status set_filters(struct oj_row_stream *s, struct oj_error *err)
{
    return oj_source_filter(&s->pass.job.input, s->has_box ? &s->box : NULL,
                            s->has_where ? s->where : NULL, err);
}

oj_status oj_row_stream_filter(struct oj_row_stream *stream,
                               const OGREnvelope *box, const char *where,
                               struct oj_error *err)
{
    oj_row_stream_stop(stream);
    stream->has_box = box != NULL;
    if (box != NULL)
        stream->box = *box;
    oj_free(stream->where);
    stream->where = NULL;
    stream->has_where = 0;
    if (where == NULL)
        return OJ_OK;
    OJ_NEW(stream->where, (int64_t)strlen(where) + 1, err);
    strcpy(stream->where, where);
    stream->has_where = 1;
    return OJ_OK;
}

/* ---- the background thread ---------------------------------------------- */

static oj_status give(void *user, const struct oj_answer *answer,
                      struct oj_error *err)
{
    return oj_lazy_give(user, answer, err);
}

static oj_status stream_all(struct oj_row_stream *s, struct oj_lazy *lazy,
                            struct oj_error *err)
{
    const struct oj_answer_sink sink = {give, lazy};
    OJ_TRY(oj_pass_prepare(&s->pass, OJ_PASS_AGAIN, err));
    OJ_TRY(oj_pass_start(&s->pass, 0, err));
    OJ_TRY(oj_pass_stream(&s->pass, &sink, err));
    OJ_TRY(oj_pass_stream_join_rows(&s->pass, &sink, err));
    oj_rows_warn(&s->pass.rows);
    oj_summary_warn_of_reading(&s->pass.job);
    return OJ_OK;
}

static oj_status work(void *user, struct oj_lazy *lazy, struct oj_error *err)
{
    struct oj_row_stream *s = user;
    struct thread_settings stretch;
    oj_status status;
    CPLSetThreadLocalConfigOptions((const char *const *)s->settings);
    begin_stretch(s, &stretch);
    status = stream_all(s, lazy, err);
    end_stretch(&stretch);
    return status;
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

static oj_status start(struct oj_row_stream *s, struct oj_error *err)
{
    oj_job_end_reading(&s->pass.job);
    if (s->skips)
        skip_ignored(s);
    OJ_TRY(set_filters(s, err));
    CSLDestroy(s->settings);
    s->settings = CPLGetThreadLocalConfigOptions();
    return oj_lazy_start(work, s, &s->lazy, err);
}

/* The thread ends; what it has read stays. */
static void end_thread(struct oj_row_stream *s)
{
    if (s->lazy == NULL)
        return;
    __atomic_store_n(&s->cancel, 1, __ATOMIC_RELAXED);
    oj_job_stop(&s->pass.job);
    oj_lazy_stop(s->lazy);
    s->lazy = NULL;
    __atomic_store_n(&s->cancel, 0, __ATOMIC_RELAXED);
    oj_job_end_reading(&s->pass.job);
    if (!s->pass.is_started) /* stopped while the join side was made */
        s->is_broken = 1;
}

void oj_row_stream_stop(struct oj_row_stream *stream)
{
    close_cursor(stream);
    end_thread(stream);
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
    if (stream->is_open)
        oj_told_close(&stream->told);
    CSLDestroy(stream->fields[0]);
    CSLDestroy(stream->fields[1]);
    CSLDestroy(stream->settings);
    oj_free(stream->where);
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
    oj_status status = OJ_OK;
    if (stream->cursor != NULL)
        return OJ_OK;
    OJ_TRY(mend(stream, err));
    status = open_cursor(stream, err);
    if (status != OJ_OK)
        close_cursor(stream);
    return status;
}

static oj_status advance(struct oj_row_stream *s, int *there,
                         struct oj_error *err)
{
    const void *answer = NULL;
    if (s->lazy == NULL)
        OJ_TRY(start(s, err));
    oj_row_cursor_end(s->cursor);
    OJ_TRY(oj_lazy_next(s->lazy, &answer, err));
    *there = answer != NULL;
    return answer != NULL ? begin(s, answer, err) : OJ_OK;
}

/* After the last row, or an error. */
static void end(struct oj_row_stream *s, oj_status status)
{
    s->has_ended = 1;
    oj_row_cursor_end(s->cursor);
    end_thread(s);
    s->is_broken = s->is_broken || status != OJ_OK;
}

oj_status oj_row_stream_advance(struct oj_row_stream *stream, int *there,
                                struct oj_error *err)
{
    oj_status status = OJ_OK;
    *there = 0;
    if (stream->has_ended)
        return OJ_OK;
    status = advance(stream, there, err);
    if (status != OJ_OK || !*there)
        end(stream, status);
    oj_told_tell(&stream->told);
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
        {
            end(stream, status);
            return status;
        }
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

/* ---- single rows and counts --------------------------------------------- */

/* Runs on the calling thread, which owns the datasets meanwhile. */
static oj_status prepare_here(struct oj_row_stream *s, enum oj_pass_use use,
                              struct oj_error *err)
{
    OJ_TRY(oj_pass_prepare(&s->pass, use, err));
    return oj_pass_start(&s->pass, 0, err);
}

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

static oj_status get(struct oj_row_stream *s, int64_t fid, OGRFeatureH *feature,
                     struct oj_error *err)
{
    int is_filtered = oj_source_is_filtered(&s->pass.job.input);
    struct oj_answer answer;
    int64_t stride, input_fid;
    int there = 0;
    OJ_TRY(prepare_here(s, OJ_PASS_SOME, err));
    stride = oj_pass_most_rows(&s->pass);
    input_fid = fid / stride;
    if (is_filtered)
        OJ_TRY(oj_source_filter_fid(&s->pass.job.input, input_fid, err));
    OJ_TRY(oj_pass_one(&s->pass, input_fid, is_filtered, &answer, &there, err));
    if (!there)
        return OJ_OK;
    OJ_TRY(begin(s, &answer, err));
    OJ_TRY(make_row(s, fid % stride, feature, err));
    oj_row_cursor_end(s->cursor);
    return OJ_OK;
}

oj_status oj_row_stream_get(struct oj_row_stream *stream, int64_t fid,
                            OGRFeatureH *feature, struct oj_error *err)
{
    struct thread_settings stretch;
    oj_status status;
    *feature = NULL;
    OJ_TRY(oj_row_stream_begin(stream, err));
    begin_stretch(stream, &stretch);
    status = get(stream, fid, feature, err);
    end_stretch(&stretch);
    stream->is_broken = status != OJ_OK;
    oj_told_tell(&stream->told);
    return status;
}

/* What the input layer is asked without its rows being read. */
static oj_status begin_question(struct oj_row_stream *s,
                                struct thread_settings *stretch,
                                struct oj_error *err)
{
    oj_status status;
    OJ_TRY(mend(s, err));
    oj_job_end_reading(&s->pass.job);
    begin_stretch(s, stretch);
    status = set_filters(s, err);
    if (status != OJ_OK)
        end_stretch(stretch);
    return status;
}

static void end_question(struct oj_row_stream *s,
                         const struct thread_settings *stretch)
{
    end_stretch(stretch);
    oj_told_tell(&s->told);
}

oj_status oj_row_stream_count(struct oj_row_stream *stream, int64_t *n,
                              struct oj_error *err)
{
    struct thread_settings stretch;
    oj_status status;
    OJ_TRY(begin_question(stream, &stretch, err));
    status = prepare_here(stream, OJ_PASS_AGAIN, err);
    if (status == OJ_OK)
        status = oj_pass_count(&stream->pass, n, err);
    stream->is_broken = status != OJ_OK;
    end_question(stream, &stretch);
    return status;
}

oj_status oj_row_stream_count_input(struct oj_row_stream *stream, int force,
                                    int64_t *n, struct oj_error *err)
{
    const struct oj_source *input = &stream->pass.job.input;
    int64_t limit = stream->command->limit;
    struct thread_settings stretch;
    OJ_TRY(begin_question(stream, &stretch, err));
    *n = oj_source_count(input, limit);
    if (*n < 0 && force)
        *n = OGR_L_GetFeatureCount(input->layer, 1);
    if (limit >= 0 && *n > limit)
        *n = limit;
    end_question(stream, &stretch);
    return OJ_OK;
}

oj_status oj_row_stream_extent(struct oj_row_stream *stream, int force,
                               OGREnvelope *extent, int *there,
                               struct oj_error *err)
{
    OGRLayerH layer;
    struct thread_settings stretch;
    OJ_TRY(begin_question(stream, &stretch, err));
    layer = stream->pass.job.input.layer;
    *there = OGR_L_GetExtent(layer, extent, force) == OGRERR_NONE;
    end_question(stream, &stretch);
    return OJ_OK;
}
