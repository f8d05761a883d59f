#include "../../../flatten/base/oj_alloc.h"

#include "../../../flatten/base/oj_new_file.h"
#include "../../../flatten/base/oj_number.h"
#include "../../../flatten/base/oj_word_list.h"
#include "api_index.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum
{
    MOST_OPTIONS = 1000,
    NUMBER_BYTES = 32
};

_Static_assert((int)OGRJOIN_ENTER == (int)OJ_EVENT_ENTER &&
                   (int)OGRJOIN_EXIT == (int)OJ_EVENT_EXIT &&
                   (int)OGRJOIN_STAY == (int)OJ_EVENT_STAY &&
                   (int)OGRJOIN_CHANGE == (int)OJ_EVENT_CHANGE,
               "events are numbered alike");

oj_status api_events_read_setting(const char *words, int *with_stays,
                                  struct oj_error *err)
{
    *with_stays = 0;
    return words == NULL ? OJ_OK
                         : oj_choice_read("", "events", "changes|all", words,
                                          with_stays, err);
}

/* ---- identification of the join in a state file -------------------------- */

/* A number of a relation as a text. */
struct number_text
{
    char at[NUMBER_BYTES];
};

static struct number_text number_as_text(double number)
{
    struct number_text text;
    oj_number_write(number, 17, text.at, sizeof text.at);
    return text;
}

/* Writes all that decides the pairs of the join as a text, to compare it with a
 * state file. The text does not depend on the locale of the process. */
static oj_status write_options_as_text(const struct oj_relation *r,
                                       const char *conditions, char **out,
                                       struct oj_error *err)
{
    const struct oj_ellipsoid *of = oj_relation_ellipsoid(r);
    char text[MOST_OPTIONS], ellipsoid[80] = "";
    int n;
    if (of != NULL)
        snprintf(ellipsoid, sizeof ellipsoid, " ellipsoid %s %s",
                 number_as_text(of->semi_major).at,
                 number_as_text(of->flattening).at);
    n = snprintf(text, sizeof text,
                 "op %s max_distance %s min_distance %s metric %d distance %d "
                 "distance_to %d densify %s relate %s exclude_self %d "
                 "exclude_same_geometry %d%s%s%s",
                 oj_op_get(r->op)->name, number_as_text(r->max_distance).at,
                 number_as_text(r->min_distance).at, (int)r->metric,
                 (int)r->distance, (int)r->distance_to,
                 number_as_text(r->densify).at, r->mask, r->exclude_self,
                 r->exclude_same_geometry, ellipsoid,
                 conditions[0] != '\0' ? " " : "", conditions);
    if (n < 0 || n >= MOST_OPTIONS)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the options that decide the events are longer than %d "
                       "bytes: write fewer conditions",
                       MOST_OPTIONS);
    OJ_NEW(*out, n + 1, err);
    memcpy(*out, text, (size_t)n + 1);
    return OJ_OK;
}

static oj_status check_join_can_give_events(const struct ogrjoin_index *index,
                                            struct oj_error *err)
{
    const struct oj_relation *relation = &index->settings.relation;
    const struct api_pair_settings *pairs = &index->settings.pairs;
    if (oj_relation_compares_attributes(relation))
        return oj_fail(
            err, OJ_ERR_ARG,
            "events need a join of geometries: leave similar and vector out");
    if (oj_relation_sorts_by_measure(relation) &&
        (relation->k != 1 || relation->ties != OJ_TIES_FIRST))
        return oj_fail(err, OJ_ERR_ARG,
                       "events of op nearest follow one feature: set k to 1 "
                       "and ties to first");
    if (pairs->pick != OJ_PICK_ALL || pairs->one_to_one ||
        relation->unordered_pairs)
        return oj_fail(err, OJ_ERR_ARG,
                       "events need all pairs of a row: leave pick, one_to_one "
                       "and unordered out");
    return OJ_OK;
}

oj_status api_events_new(struct ogrjoin_index *index, int with_stays,
                         int has_texts, const char *conditions,
                         struct ogrjoin_events **out, struct oj_error *err)
{
    const struct oj_relation *relation = &index->settings.relation;
    const struct oj_event_rules rules = {oj_relation_sorts_by_measure(relation),
                                         with_stays, has_texts};
    struct ogrjoin_events *e;
    oj_status status;
    OJ_TRY(check_join_can_give_events(index, err));
    OJ_NEW_ZEROED(e, 1, err);
    atomic_fetch_add(&index->n_users, 1);
    e->index = index;
    status = oj_events_new(&rules, index->flat.n_features,
                           oj_join_tie_rank(index->join), &e->events, err);
    if (status == OJ_OK)
        status = write_options_as_text(relation, conditions, &e->options, err);
    if (status == OJ_OK)
        *out = e;
    else
        ogrjoin_events_free(e);
    return status;
}

static struct oj_event_state state_of_events(const struct ogrjoin_events *e)
{
    return (struct oj_event_state){&e->index->flat, e->options};
}

oj_status api_events_load(struct ogrjoin_events *e, const char *path,
                          int *is_there, struct oj_error *err)
{
    const struct oj_event_state state = state_of_events(e);
    const struct oj_event_rules rules = *oj_events_rules(e->events);
    struct oj_events *loaded;
    int found;
    oj_status status;
    OJ_TRY(oj_event_state_check_unique_fids(&state, err));
    OJ_TRY(oj_events_new(&rules, e->index->flat.n_features,
                         oj_join_tie_rank(e->index->join), &loaded, err));
    status = oj_event_state_load(path, &state, loaded, &found, err);
    if (status == OJ_OK && !found && is_there == NULL)
        status = oj_fail(
            err, OJ_ERR_IO,
            "there is no state file %s: save the events to it first", path);
    if (status != OJ_OK)
    {
        oj_events_free(loaded);
        return status;
    }
    oj_events_free(e->events);
    e->events = loaded;
    if (is_there != NULL)
        *is_there = found;
    return OJ_OK;
}

oj_status api_events_save(const struct ogrjoin_events *e, const char *path,
                          struct oj_error *err)
{
    const struct oj_event_state state = state_of_events(e);
    const struct oj_event_state_to_write written = {&state, e->events};
    OJ_TRY(oj_event_state_check_unique_fids(&state, err));
    if (oj_new_file_write(path, oj_event_state_write, &written) == 0)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_IO, "the state file %s cannot be written: %s",
                   path, strerror(errno));
}

/* ---- reports ------------------------------------------------------------- */

static oj_status join_reports(struct ogrjoin_events *e,
                              const struct oj_flat *flat, struct oj_error *err)
{
    const int64_t most = e->index->settings.options.max_batch_pairs;
    struct oj_join *join;
    oj_status status;
    OJ_TRY(oj_join_acquire(e->index->join, NULL, &join, err));
    status = oj_join_batch(join, flat, &e->pairs, err);
    oj_join_release(join);
    return api_check_max_pairs(status, most, 0, e->pairs.n_pairs, err);
}

/* Adds a joined batch of reports to the events. Memory is allocated first,
 * because a failure half-way could not be undone. */
static oj_status add_joined_reports(struct ogrjoin_events *e,
                                    const struct oj_event_keys *keys,
                                    const struct oj_flat *flat, int64_t first,
                                    struct ogrjoin_event_rows *out,
                                    struct oj_error *err)
{
    const struct oj_matches *rows = &e->rows.rows;
    int64_t most;
    OJ_TRY(oj_events_prepare(e->events, keys, flat, &e->pairs, &e->rows, &most,
                             err));
    OJ_ROOM(e->report, 0, most, e->cap_report, err);
    OJ_ROOM(e->feature, 0, most, e->cap_feature, err);
    oj_events_append_prepared(e->events, &e->pairs, &e->rows);
    for (int64_t row = 0; row < rows->n_rows; row++)
    {
        for (int64_t i = rows->offset[row]; i < rows->offset[row + 1]; i++)
        {
            e->report[i] = first + row;
            e->feature[i] = rows->join_row[i];
        }
    }
    out->n = rows->n_entries;
    out->report = e->report;
    out->feature = e->feature;
    out->kind = e->rows.kind;
    out->measure = rows->measure;
    return OJ_OK;
}

static oj_status add_reports(struct ogrjoin_events *e,
                             struct ogrjoin_layer *reports,
                             const struct ogrjoin_event_keys *keys,
                             struct ogrjoin_event_rows *out,
                             struct oj_error *err)
{
    struct layer_sets sets;
    struct oj_event_keys view = {keys->integer, keys->offset, keys->bytes,
                                 keys->is_null};
    struct oj_flat flat;
    oj_status status;
    memset(&sets, 0, sizeof sets);
    if (keys->size < sizeof *keys || out->size < sizeof *out)
        return oj_fail(err, OJ_ERR_ARG,
                       "the member size of keys and events must be set to "
                       "sizeof their struct in ogrjoin.h");
    if ((keys->integer != NULL) == (keys->offset != NULL))
        return oj_fail(err, OJ_ERR_ARG,
                       "set either keys->integer or keys->offset (with bytes), "
                       "and leave the other NULL: integer if has_texts of "
                       "ogrjoin_events_new() was 0, otherwise offset");
    status = api_index_view_input(e->index, reports, &sets, &flat, err);
    if (status == OJ_OK)
        status = join_reports(e, &flat, err);
    if (status == OJ_OK)
        status =
            add_joined_reports(e, &view, &flat, reports->first_row, out, err);
    api_layer_sets_free(&sets);
    return status;
}

/* ---- public functions ---------------------------------------------------- */

int ogrjoin_events_new(struct ogrjoin_index *index, const char *which,
                       int has_texts, struct ogrjoin_events **out,
                       struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    int with_stays = 0;
    oj_status status = api_events_read_setting(which, &with_stays, &why);
    if (status == OJ_OK)
        status =
            api_events_new(index, with_stays, has_texts != 0, "", out, &why);
    return api_error_export(status, &why, err);
}

int ogrjoin_events_add(struct ogrjoin_events *events,
                       struct ogrjoin_layer *reports,
                       const struct ogrjoin_event_keys *keys,
                       struct ogrjoin_event_rows *out,
                       struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(add_reports(events, reports, keys, out, &why), &why,
                            err);
}

int64_t ogrjoin_events_inside(const struct ogrjoin_events *events)
{
    struct oj_event_counts counts;
    oj_events_count(events->events, &counts);
    return counts.n_inside;
}

int ogrjoin_events_save(const struct ogrjoin_events *events, const char *path,
                        struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(api_events_save(events, path, &why), &why, err);
}

int ogrjoin_events_load(struct ogrjoin_events *events, const char *path,
                        struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(api_events_load(events, path, NULL, &why), &why,
                            err);
}

void ogrjoin_events_free(struct ogrjoin_events *events)
{
    if (events == NULL)
        return;
    oj_events_free(events->events);
    oj_matches_free(&events->pairs);
    oj_event_rows_free(&events->rows);
    oj_free(events->options);
    oj_free(events->report);
    oj_free(events->feature);
    ogrjoin_index_free(events->index);
    oj_free(events);
}
