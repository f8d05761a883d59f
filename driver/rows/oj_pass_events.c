#include "oj_pass_events.h"

#include "../../algs/pairs/events/oj_event_state.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../base/oj_message.h"
#include "../files/oj_text_file_write.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <string.h>

/* ---- open ---------------------------------------------------------------- */

static oj_status check_key_type(struct oj_pass_events *e, OGRFieldDefnH field,
                                struct oj_error *err)
{
    const OGRFieldType type = OGR_Fld_GetType(field);
    e->has_texts = type == OFTString;
    if (e->has_texts || type == OFTInteger || type == OFTInteger64)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-key %s: the field is of type %s, and keys are integers or "
                   "texts: name another field, or CAST it in -sql",
                   e->job->command->key, OGR_GetFieldTypeName(type));
}

oj_status oj_pass_events_open(struct oj_job *job, struct oj_pass_events *e,
                              struct oj_error *err)
{
    const struct oj_command *command = job->command;
    OGRFieldDefnH field;
    char *words;
    if (command->events == NULL)
        return OJ_OK;
    e->job = job;
    OJ_TRY(oj_source_need_field(&job->input, command->key, "key", &e->column,
                                &field, err));
    OJ_TRY(check_key_type(e, field, err));
    words = oj_command_join_words(command);
    e->options =
        CPLStrdup(CPLSPrintf("%s -key %s", words, OGR_Fld_GetNameRef(field)));
    CPLFree(words);
    e->values.event_name = oj_event_names;
    e->is_open = 1;
    return command->state != NULL
               ? oj_text_file_check(command->state, "state", err)
               : OJ_OK;
}

/* ---- the state ----------------------------------------------------------- */

static struct oj_event_state view_event_state(const struct oj_pass_events *e)
{
    return (struct oj_event_state){&e->job->join_side->flat, e->options};
}

static oj_status load_state(struct oj_pass_events *e, struct oj_error *err)
{
    const struct oj_event_state state = view_event_state(e);
    const char *path = e->job->command->state;
    int is_there;
    OJ_TRY(oj_event_state_check_unique_fids(&state, err));
    OJ_TRY(oj_event_state_load(path, &state, e->events, &is_there, err));
    if (!is_there)
        oj_notice("the state %s is not there yet: the run begins without one",
                  path);
    return OJ_OK;
}

oj_status oj_pass_events_start(struct oj_pass_events *e, struct oj_error *err)
{
    const struct oj_job *job = e->job;
    struct oj_event_rules rules = {0};
    if (!e->is_open || e->events != NULL)
        return OJ_OK;
    rules.is_nearest = oj_relation_sorts_by_measure(&job->relation);
    rules.with_stays = job->command->events[0] != '\0';
    rules.has_texts = e->has_texts;
    OJ_TRY(oj_events_new(&rules, job->join_side->flat.n_features,
                         oj_join_tie_rank(job->join_side->engine), &e->events,
                         err));
    return job->command->state != NULL ? load_state(e, err) : OJ_OK;
}

oj_status oj_pass_events_save(const struct oj_pass_events *e,
                              struct oj_error *err)
{
    struct oj_event_state state;
    struct oj_event_state_to_write written;
    if (!e->is_open || e->job->command->state == NULL)
        return OJ_OK;
    state = view_event_state(e);
    written.state = &state;
    written.events = e->events;
    return oj_text_file_write(e->job->command->state, "state",
                              oj_event_state_write, &written, err);
}

/* ---- answers ------------------------------------------------------------- */

static oj_status append_text(struct oj_pass_events *e, int64_t row,
                             const struct oj_value *value, struct oj_error *err)
{
    const int64_t at = e->number[row];
    const void *bytes = NULL;
    int64_t n = 0;
    if (!e->is_null[row])
        bytes = oj_value_bytes(value, OFTString, &n);
    OJ_ROOM(e->bytes, at, at + n, e->cap_bytes, err);
    if (n > 0)
        memcpy(e->bytes + at, bytes, (size_t)n);
    e->number[row + 1] = at + n;
    return OJ_OK;
}

/* Reads the keys of rows first .. first + n - 1 of the batch. */
static oj_status read_keys(struct oj_pass_events *e,
                           const struct oj_batch *batch, int64_t first,
                           int64_t n, struct oj_error *err)
{
    const OGRFieldType type = batch->attributes->fields->field[e->column].type;
    OJ_ROOM(e->number, 0, n + 1, e->cap_number, err);
    OJ_ROOM(e->is_null, 0, n, e->cap_is_null, err);
    e->number[0] = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_value value;
        oj_attributes_value(batch->attributes, e->column, first + i, &value);
        e->is_null[i] = (uint8_t)!oj_value_is_there(&value);
        if (e->has_texts)
            OJ_TRY(append_text(e, i, &value, err));
        else
            e->number[i] =
                type == OFTInteger ? value.raw.Integer : value.raw.Integer64;
    }
    return OJ_OK;
}

oj_status oj_pass_events_answer(struct oj_pass_events *e,
                                const struct oj_batch *batch, int64_t first_row,
                                const struct oj_flat *reports,
                                const struct oj_matches *pairs,
                                const struct oj_matches **rows,
                                const struct oj_pair_values **values,
                                struct oj_error *err)
{
    struct oj_event_keys keys = {0};
    OJ_TRY(read_keys(e, batch, first_row, pairs->n_rows, err));
    keys.is_null = e->is_null;
    if (e->has_texts)
    {
        keys.offset = e->number;
        keys.bytes = e->bytes;
    }
    else
        keys.integer = e->number;
    OJ_TRY(oj_events_add(e->events, &keys, reports, pairs, &e->rows, err));
    e->values.event = e->rows.kind;
    *rows = &e->rows.rows;
    *values = &e->values;
    return OJ_OK;
}

void oj_pass_events_close(struct oj_pass_events *e)
{
    const struct oj_pass_events closed = {0};
    oj_events_free(e->events);
    oj_event_rows_free(&e->rows);
    CPLFree(e->options);
    oj_free(e->number);
    oj_free(e->is_null);
    oj_free(e->bytes);
    *e = closed;
}
