#include "../../ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../live/live_file.h"
#include "../../live/oj_live.h"
#include "../arrow/oj_arrow_array.h"
#include "api_index.h"
#include "live_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Joins with a live index of points (ogrjoin_live).
 *
 *  input -> on GPUs, if these hold the points
 *        -> in the pages of the index, for points as input
 *        -> candidates from the pages -> index of the candidates -> pairs
 *        -> index of all points, kept until points change -> pairs
 *
 * A join uses the first of these ways that supports it and is not estimated to
 * be slower than the next. A join that GPUs do not answer uses the index of all
 * points if there is one for its settings. All ways give equal pairs. */

/* Maximum cached indexes of all points, for the most recent different settings.
 */
#define MOST_KEPT 4

struct kept_index
{
    struct ogrjoin_settings *settings;
    struct ogrjoin_index *index;
};

struct ogrjoin_live
{
    struct oj_live *live;
    struct live_device *device; /* index on GPUs that holds the points; `live`
                                   then has a copy of them. NULL: only `live`
                                   holds the points */
    pthread_mutex_t lock;       /* guards the members below */
    int64_t edition; /* version of the points that `all` and `kept` were made
                        from */
    struct ogrjoin_layer *all; /* layer of all points of that version, sorted by
                                  id; NULL: not made */
    struct kept_index kept[MOST_KEPT];
    int n_kept, next_kept;

    /* Pairs of the last call of ogrjoin_live_near_pairs() that asked for
     * changes. The next such call is compared with them. */
    int64_t n_near;
    int64_t *near_left, *near_right;
};

/* --- making and changing a live index ------------------------------------- */

static int is_backend(const struct ogrjoin_settings *settings, const char *name)
{
    return strcasecmp(settings->backend, name) == 0;
}

/* Checks the setting backend. *is_device is 1 if points are to be on GPUs. */
static oj_status read_backend(const struct ogrjoin_settings *settings,
                              int *is_device, struct oj_error *err)
{
    *is_device = settings != NULL && is_backend(settings, "cuda");
    if (settings == NULL || *is_device || is_backend(settings, "cpu") ||
        is_backend(settings, oj_auto_backend.name))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "a kept index needs backend cpu, cuda or auto, not %s",
                   settings->backend);
}

static oj_status new_live(const struct ogrjoin_settings *settings,
                          struct ogrjoin_live **out, struct oj_error *err)
{
    enum oj_live_tree tree =
        settings != NULL ? (enum oj_live_tree)settings->tree : OJ_LIVE_AUTO;
    struct ogrjoin_live *live;
    oj_status status;
    int is_device;
    OJ_TRY(read_backend(settings, &is_device, err));
    OJ_NEW_ZEROED(live, 1, err);
    pthread_mutex_init(&live->lock, NULL);
    status =
        oj_live_new(tree, api_settings_threads(settings), &live->live, err);
    if (status == OJ_OK && is_device)
        status = live_device_new(settings, live->live, &live->device, err);
    if (status == OJ_OK)
        *out = live;
    else
        ogrjoin_live_free(live);
    return status;
}

int ogrjoin_live_new(const struct ogrjoin_settings *settings,
                     struct ogrjoin_live **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(new_live(settings, out, &why), &why, err);
}

static void free_kept_indexes(struct ogrjoin_live *live)
{
    for (int i = 0; i < live->n_kept; i++)
    {
        ogrjoin_index_free(live->kept[i].index);
        ogrjoin_settings_free(live->kept[i].settings);
    }
    live->n_kept = live->next_kept = 0;
    ogrjoin_layer_free(live->all);
    live->all = NULL;
}

void ogrjoin_live_free(struct ogrjoin_live *live)
{
    if (live == NULL)
        return;
    free_kept_indexes(live);
    oj_free(live->near_left);
    oj_free(live->near_right);
    pthread_mutex_destroy(&live->lock);
    live_device_free(live->device);
    oj_live_free(live->live);
    oj_free(live);
}

static oj_status apply_batch(struct ogrjoin_live *live, int64_t n,
                             const int64_t *id, const double *x,
                             const double *y, struct oj_error *err)
{
    return live->device != NULL
               ? live_device_apply(live->device, n, id, x, y, err)
               : oj_live_apply(live->live, n, id, x, y, err);
}

int ogrjoin_live_apply(struct ogrjoin_live *live, int64_t n, const int64_t *id,
                       const double *x, const double *y,
                       struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    oj_status status = apply_batch(live, n, id, x, y, &why);
    /* The cached indexes are out of date and only use memory. If another thread
     * holds the lock, its join or the next batch frees them. */
    if (status == OJ_OK && pthread_mutex_trylock(&live->lock) == 0)
    {
        free_kept_indexes(live);
        pthread_mutex_unlock(&live->lock);
    }
    return api_error_export(status, &why, err);
}

/* --- information about a live index --------------------------------------- */

/* Sets *out to the current version of the points in host memory, copied from
 * the devices if necessary. The caller must release it. */
static oj_status read_state_on_host(struct ogrjoin_live *live,
                                    const struct live_state **out,
                                    struct oj_error *err)
{
    if (live->device != NULL)
        OJ_TRY(live_device_update_host(live->device, err));
    *out = oj_live_acquire_state(live->live);
    return OJ_OK;
}

int64_t ogrjoin_live_count(struct ogrjoin_live *live)
{
    const struct live_state *state;
    char tree[200];
    int64_t n;
    if (live->device != NULL)
        return live_device_count(live->device, tree, sizeof tree).n;
    state = oj_live_acquire_state(live->live);
    n = state->n_points;
    oj_live_release_state(live->live, state);
    return n;
}

int ogrjoin_live_counts(struct ogrjoin_live *live,
                        struct ogrjoin_live_counts *out,
                        struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    struct oj_live_counts c;
    char tree[sizeof out->tree];
    if (out->size < sizeof *out)
        return api_error_export(
            oj_fail(&why, OJ_ERR_ARG,
                    "the member size of the counts must be set to "
                    "sizeof(struct ogrjoin_live_counts)"),
            &why, err);
    if (live->device != NULL)
        c = live_device_count(live->device, tree, sizeof tree);
    else
    {
        c = oj_live_count(live->live);
        oj_live_explain_tree_choice(live->live, tree, sizeof tree);
    }
    *out = (struct ogrjoin_live_counts){.size = out->size,
                                        .n = c.n,
                                        .n_batches = c.n_batches,
                                        .n_put = c.n_put,
                                        .n_moved = c.n_moved,
                                        .n_removed = c.n_removed,
                                        .n_unknown = c.n_unknown,
                                        .n_unjoinable = c.n_unjoinable,
                                        .n_superseded = c.n_superseded,
                                        .n_rebuilt = c.n_rebuilt,
                                        .n_pages = c.n_pages,
                                        .n_bytes = c.n_bytes};
    snprintf(out->tree, sizeof out->tree, "%s", tree);
    return OGRJOIN_OK;
}

/* --- layers made of points ------------------------------------------------ */

/* Makes a layer of points by moving their arrays. */
static oj_status make_layer(struct live_points *points,
                            struct ogrjoin_layer **out, struct oj_error *err)
{
    struct ogrjoin_layer *layer = NULL;
    OJ_TRY(api_layer_new(&layer, err));
    layer->own_x = points->x;
    layer->own_y = points->y;
    layer->own_id = points->id;
    layer->flat = live_points_view_as_layer(points);
    memset(points, 0, sizeof *points);
    *out = layer;
    return OJ_OK;
}

static oj_status make_layer_of_all_points(const struct live_state *state,
                                          struct ogrjoin_layer **out,
                                          struct oj_error *err)
{
    struct live_points points = {0};
    oj_status status = live_search_list_points(state, &points, err);
    if (status == OJ_OK)
        status = make_layer(&points, out, err);
    live_points_free(&points);
    return status;
}

static oj_status make_index_of_points(struct live_points *points,
                                      const struct ogrjoin_settings *settings,
                                      struct ogrjoin_index **out,
                                      struct oj_error *err)
{
    struct ogrjoin_layer *layer = NULL;
    oj_status status = make_layer(points, &layer, err);
    if (status == OJ_OK)
        status = api_index_new(layer, settings, out, err);
    ogrjoin_layer_free(layer);
    return status;
}

/* Makes an index without points, which checks the settings and completes them
 * by defaults. */
static oj_status make_empty_index(const struct ogrjoin_settings *settings,
                                  struct ogrjoin_index **out,
                                  struct oj_error *err)
{
    struct live_points none = {0};
    oj_status status = OJ_OK;
    none.id = oj_malloc(1, sizeof *none.id);
    none.x = oj_malloc(1, sizeof *none.x);
    none.y = oj_malloc(1, sizeof *none.y);
    if (none.id == NULL || none.x == NULL || none.y == NULL)
        status = oj_fail_nomem(err, 3, sizeof *none.id);
    if (status == OJ_OK)
        status = make_index_of_points(&none, settings, out, err);
    live_points_free(&none);
    return status;
}

/* --- cached indexes of all points ----------------------------------------- */

static struct ogrjoin_index *add_user_of_index(struct ogrjoin_index *index)
{
    atomic_fetch_add(&index->n_users, 1);
    return index;
}

/* Returns the cached index with equal settings for this version of the points,
 * or NULL. */
static struct ogrjoin_index *
find_kept_index(const struct ogrjoin_live *live, int64_t edition,
                const struct ogrjoin_settings *settings)
{
    for (int i = 0; live->edition == edition && i < live->n_kept; i++)
    {
        if (api_settings_are_equal(live->kept[i].settings, settings))
            return live->kept[i].index;
    }
    return NULL;
}

static oj_status
keep_index_for_settings(struct ogrjoin_live *live,
                        const struct ogrjoin_settings *settings,
                        struct ogrjoin_index *index, struct oj_error *err)
{
    struct kept_index kept = {NULL, index}, *to = &live->kept[live->next_kept];
    OJ_TRY(api_settings_copy(settings, &kept.settings, err));
    if (live->next_kept < live->n_kept)
    {
        ogrjoin_index_free(to->index);
        ogrjoin_settings_free(to->settings);
    }
    else
        live->n_kept++;
    *to = kept;
    add_user_of_index(index);
    live->next_kept = (live->next_kept + 1) % MOST_KEPT;
    return OJ_OK;
}

/* Sets live->all to a layer of all points. Precondition: the calling thread
 * holds the lock. */
static oj_status gather_all_points(struct ogrjoin_live *live,
                                   const struct live_state *state,
                                   struct oj_error *err)
{
    if (live->all != NULL && live->edition == state->edition)
        return OJ_OK;
    free_kept_indexes(live);
    OJ_TRY(make_layer_of_all_points(state, &live->all, err));
    live->edition = state->edition;
    return OJ_OK;
}

static oj_status find_or_make_index(struct ogrjoin_live *live,
                                    const struct live_state *state,
                                    const struct ogrjoin_settings *settings,
                                    struct ogrjoin_index **out,
                                    struct oj_error *err)
{
    struct ogrjoin_index *index =
        find_kept_index(live, state->edition, settings);
    oj_status status;
    if (index != NULL)
    {
        *out = add_user_of_index(index);
        return OJ_OK;
    }
    OJ_TRY(gather_all_points(live, state, err));
    OJ_TRY(api_index_new(live->all, settings, &index, err));
    status = keep_index_for_settings(live, settings, index, err);
    if (status == OJ_OK)
        *out = index;
    else
        ogrjoin_index_free(index);
    return status;
}

static oj_status index_all_points(struct ogrjoin_live *live,
                                  const struct live_state *state,
                                  const struct ogrjoin_settings *settings,
                                  struct ogrjoin_index **out,
                                  struct oj_error *err)
{
    oj_status status;
    pthread_mutex_lock(&live->lock);
    status = find_or_make_index(live, state, settings, out, err);
    pthread_mutex_unlock(&live->lock);
    return status;
}

static int has_index_of_all_points(struct ogrjoin_live *live,
                                   const struct live_state *state,
                                   const struct ogrjoin_settings *settings)
{
    int has;
    pthread_mutex_lock(&live->lock);
    has = find_kept_index(live, state->edition, settings) != NULL;
    pthread_mutex_unlock(&live->lock);
    return has;
}

/* --- ways to join --------------------------------------------------------- */

/* A join of input rows with one version of the points. */
struct live_join
{
    struct ogrjoin_live *live;
    const struct live_state *state;
    const struct ogrjoin_settings *settings;
    struct ogrjoin_index *empty; /* index without points that has the completed
                                    settings */
    struct ogrjoin_layer *input;
    struct oj_flat flat; /* view of input */
};

/* Replaces row numbers of the join side by ids. */
static void replace_rows_by_ids(struct ogrjoin_pairs *pairs)
{
    for (int64_t i = 0; i < pairs->n; i++)
        pairs->right[i] = pairs->join_id[pairs->right[i]];
    pairs->are_ids = 1;
}

static oj_status join_with_index(const struct live_join *j,
                                 struct ogrjoin_index *index,
                                 struct ogrjoin_pairs **out,
                                 struct oj_error *err)
{
    struct ogrjoin_pairs *pairs = NULL;
    OJ_TRY(api_index_join(index, j->input, 0, &pairs, err));
    replace_rows_by_ids(pairs);
    *out = pairs;
    return OJ_OK;
}

/* Returns 1 if the user wants only pairs, no picks or values. */
static int asks_for_pairs_alone(const struct live_join *j)
{
    return j->empty->maker.stage == NULL && !j->settings->pairs.one_to_one;
}

static struct live_query make_live_query(const struct live_join *j)
{
    const struct ogrjoin_settings *s = &j->empty->settings;
    return (struct live_query){.state = j->state,
                               .relation = &s->relation,
                               .input = &j->flat,
                               .n_threads = s->options.n_threads,
                               .max_pairs = s->options.max_batch_pairs,
                               .cancel = s->options.cancel};
}

/* Makes pairs by moving the arrays of found. */
static oj_status make_pairs_of_found(const struct live_join *j,
                                     struct live_pairs *found,
                                     struct ogrjoin_pairs **out,
                                     struct oj_error *err)
{
    struct ogrjoin_pairs *pairs;
    OJ_NEW_ZEROED(pairs, 1, err);
    pairs->left = oj_malloc(found->n, sizeof *pairs->left);
    if (pairs->left == NULL)
    {
        oj_free(pairs);
        return oj_fail_nomem(err, found->n, sizeof *pairs->left);
    }
    pairs->first = j->input->first_row;
    for (int64_t row = 0; row < found->n_rows; row++)
    {
        for (int64_t i = found->offset[row]; i < found->offset[row + 1]; i++)
            pairs->left[i] = pairs->first + row;
    }
    pairs->n = found->n;
    pairs->n_rows = found->n_rows;
    pairs->has_measure =
        oj_op_get(j->empty->settings.relation.op)->measure != NULL;
    pairs->are_ids = 1;
    pairs->right = found->id;
    pairs->measure = found->distance;
    found->id = NULL;
    found->distance = NULL;
    *out = pairs;
    return OJ_OK;
}

static oj_status join_by_searching_pages(const struct live_join *j,
                                         struct ogrjoin_pairs **out,
                                         struct oj_error *err)
{
    struct live_query query = make_live_query(j);
    struct live_pairs found = {0};
    oj_status status = live_search_pairs(&query, &found, err);
    if (status == OJ_OK)
        status = make_pairs_of_found(j, &found, out, err);
    live_pairs_free(&found);
    return status;
}

static oj_status join_all_points(const struct live_join *j,
                                 struct ogrjoin_pairs **out,
                                 struct oj_error *err)
{
    struct ogrjoin_index *index = NULL;
    oj_status status;
    OJ_TRY(index_all_points(j->live, j->state, j->settings, &index, err));
    status = join_with_index(j, index, out, err);
    ogrjoin_index_free(index);
    return status;
}

static oj_status join_candidate_points(const struct live_join *j,
                                       struct ogrjoin_pairs **out,
                                       struct oj_error *err)
{
    struct live_query query = make_live_query(j);
    struct live_points points = {0};
    struct ogrjoin_index *index = NULL;
    oj_status status;
    int are_all;
    OJ_TRY(live_search_candidates(&query, j->state->n_points / 2, &points,
                                  &are_all, err));
    if (are_all)
        return join_all_points(j, out, err);
    status = make_index_of_points(&points, j->settings, &index, err);
    live_points_free(&points);
    if (status == OJ_OK)
        status = join_with_index(j, index, out, err);
    ogrjoin_index_free(index);
    return status;
}

static int is_answered_by_cpu(const struct ogrjoin_settings *settings)
{
    return is_backend(settings, oj_auto_backend.name) ||
           is_backend(settings, "cpu");
}

static oj_status choose_method_and_join(const struct live_join *j,
                                        struct ogrjoin_pairs **out,
                                        struct oj_error *err)
{
    if (!is_answered_by_cpu(j->settings) ||
        has_index_of_all_points(j->live, j->state, j->settings))
        return join_all_points(j, out, err);
    switch (live_search_choose_method(j->state, &j->empty->settings.relation,
                                      &j->flat, asks_for_pairs_alone(j)))
    {
        case LIVE_IN_PAGES:
            return join_by_searching_pages(j, out, err);
        case LIVE_BY_CANDIDATES:
            return join_candidate_points(j, out, err);
        default:
            return join_all_points(j, out, err);
    }
}

/* Returns 1 if the points are on devices and their kernels support the join. */
static int is_answered_by_device(const struct live_join *j)
{
    return j->live->device != NULL &&
           (is_backend(j->settings, oj_auto_backend.name) ||
            is_backend(j->settings, "cuda")) &&
           asks_for_pairs_alone(j) &&
           live_device_supports_join(&j->empty->settings.relation, &j->flat);
}

static oj_status join_on_device(const struct live_join *j,
                                struct ogrjoin_pairs **out,
                                struct oj_error *err)
{
    const struct ogrjoin_settings *s = &j->empty->settings;
    struct live_pairs found = {0};
    oj_status status =
        live_device_join(j->live->device, &s->relation, &j->flat,
                         s->options.max_batch_pairs, &found, err);
    if (status == OJ_OK)
        status = make_pairs_of_found(j, &found, out, err);
    live_pairs_free(&found);
    return status;
}

static oj_status join_in_host_memory(struct live_join *j,
                                     struct ogrjoin_pairs **out,
                                     struct oj_error *err)
{
    oj_status status;
    OJ_TRY(read_state_on_host(j->live, &j->state, err));
    status = choose_method_and_join(j, out, err);
    oj_live_release_state(j->live->live, j->state);
    return status;
}

static oj_status join_input_with_points(struct live_join *j,
                                        struct ogrjoin_pairs **out,
                                        struct oj_error *err)
{
    struct layer_sets sets = {0};
    oj_status status = make_empty_index(j->settings, &j->empty, err);
    if (status == OJ_OK)
        status = api_index_view_input(j->empty, j->input, &sets, &j->flat, err);
    if (status == OJ_OK)
        status = is_answered_by_device(j) ? join_on_device(j, out, err)
                                          : join_in_host_memory(j, out, err);
    api_layer_sets_free(&sets);
    ogrjoin_index_free(j->empty);
    return status;
}

static oj_status join_live(struct ogrjoin_live *live,
                           const struct ogrjoin_settings *settings,
                           struct ogrjoin_layer *input,
                           struct ogrjoin_pairs **out, struct oj_error *err)
{
    struct live_join j = {.live = live, .input = input};
    struct ogrjoin_settings *defaults = NULL;
    oj_status status;
    if (settings == NULL)
        settings = defaults = ogrjoin_settings_new();
    if (settings == NULL)
        return oj_fail_nomem(err, 1, sizeof *settings);
    j.settings = settings;
    status = api_settings_check_pairs(settings, API_PAIRS_WITH_KEPT, err);
    if (status == OJ_OK)
        status = join_input_with_points(&j, out, err);
    ogrjoin_settings_free(defaults);
    return status;
}

int ogrjoin_live_join(struct ogrjoin_live *live,
                      const struct ogrjoin_settings *settings,
                      struct ogrjoin_layer *input, struct ogrjoin_pairs **out,
                      struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(join_live(live, settings, input, out, &why), &why,
                            err);
}

/* --- near pairs (pairs of points within a distance) ----------------------- */

/* State of the comparison of two sorted lists of pairs, which finds the pairs
 * that only one of them has. */
struct near_changes
{
    const struct ogrjoin_pairs *now;
    int64_t n_before, n;
    const int64_t *left, *right; /* [n_before] pairs of the last call, sorted */
    struct ogrjoin_pairs *out;   /* receives the changes; NULL: only count
                                    them */
};

static void put_near_change(struct near_changes *c, int64_t left, int64_t right,
                            double measure, double change)
{
    if (c->out != NULL)
    {
        c->out->left[c->n] = left;
        c->out->right[c->n] = right;
        c->out->measure[c->n] = measure;
        c->out->change[c->n] = change;
    }
    c->n++;
}

static int compare_pairs_by_left_and_right(int64_t left_a, int64_t right_a,
                                           int64_t left_b, int64_t right_b)
{
    if (left_a != left_b)
        return left_a < left_b ? -1 : 1;
    return (right_a > right_b) - (right_a < right_b);
}

static void list_near_changes(struct near_changes *c)
{
    const struct ogrjoin_pairs *now = c->now;
    int64_t i = 0, k = 0;
    c->n = 0;
    while (i < now->n || k < c->n_before)
    {
        int order =
            i == now->n ? 1
            : k == c->n_before
                ? -1
                : compare_pairs_by_left_and_right(now->left[i], now->right[i],
                                                  c->left[k], c->right[k]);
        if (order < 0)
            put_near_change(c, now->left[i], now->right[i], now->measure[i],
                            1.0);
        if (order > 0)
            put_near_change(c, c->left[k], c->right[k], NAN, -1.0);
        i += order <= 0;
        k += order >= 0;
    }
}

static oj_status allocate_changes(int64_t n, struct ogrjoin_pairs **out,
                                  struct oj_error *err)
{
    struct ogrjoin_pairs *pairs;
    OJ_NEW_ZEROED(pairs, 1, err);
    pairs->left = oj_malloc(n, sizeof *pairs->left);
    pairs->right = oj_malloc(n, sizeof *pairs->right);
    pairs->measure = oj_malloc(n, sizeof *pairs->measure);
    pairs->change = oj_malloc(n, sizeof *pairs->change);
    if (pairs->left == NULL || pairs->right == NULL || pairs->measure == NULL ||
        pairs->change == NULL)
    {
        ogrjoin_pairs_free(pairs);
        return oj_fail_nomem(err, n, 4 * sizeof *pairs->left);
    }
    pairs->n = n;
    pairs->has_measure = pairs->are_ids = 1;
    *out = pairs;
    return OJ_OK;
}

/* Replaces *pairs by the changes since the last call, and stores the pairs for
 * the next call. */
static oj_status turn_pairs_into_changes(struct ogrjoin_live *live,
                                         struct ogrjoin_pairs **pairs,
                                         struct oj_error *err)
{
    struct ogrjoin_pairs *now = *pairs;
    struct near_changes c = {.now = now,
                             .n_before = live->n_near,
                             .left = live->near_left,
                             .right = live->near_right};
    list_near_changes(&c);
    OJ_TRY(allocate_changes(c.n, &c.out, err));
    list_near_changes(&c);
    oj_free(live->near_left);
    oj_free(live->near_right);
    live->n_near = now->n;
    live->near_left = now->left;
    live->near_right = now->right;
    now->left = now->right = NULL;
    ogrjoin_pairs_free(now);
    *pairs = c.out;
    return OJ_OK;
}

/* Finds all pairs of points within the distance, with the smaller id on the
 * left. Precondition: the calling thread holds the lock. */
static oj_status find_near_pairs(struct ogrjoin_live *live,
                                 const struct live_state *state,
                                 const struct ogrjoin_settings *settings,
                                 struct ogrjoin_pairs **out,
                                 struct oj_error *err)
{
    struct ogrjoin_index *index = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    oj_status status;
    OJ_TRY(find_or_make_index(live, state, settings, &index, err));
    status = api_index_join(index, live->all, 0, &pairs, err);
    if (status == OJ_OK)
    {
        for (int64_t i = 0; i < pairs->n; i++)
            pairs->left[i] = pairs->join_id[pairs->left[i]];
        replace_rows_by_ids(pairs);
        *out = pairs;
    }
    ogrjoin_index_free(index);
    return status;
}

/* Copies the settings of near pairs and completes them: op dwithin, each pair
 * once. The caller frees *out, also after an error. */
static oj_status complete_near_settings(const struct ogrjoin_settings *settings,
                                        struct ogrjoin_settings **out,
                                        struct oj_error *err)
{
    struct ogrjoin_error why;
    OJ_TRY(api_settings_copy(settings, out, err));
    if (api_setting_text_as_given(*out, "max_distance") == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "near pairs need a maximum distance: set "
                       "max_distance, for example to 100");
    if (api_setting_text_as_given(*out, "op") != NULL &&
        (*out)->relation.op != OJ_OP_DWITHIN)
        return oj_fail(err, OJ_ERR_ARG,
                       "op has no effect on near pairs, which are those of op "
                       "dwithin: leave it out");
    if (ogrjoin_set_text(*out, "op", "dwithin", &why) != OGRJOIN_OK)
        return oj_fail(err, (oj_status)why.status, "%s", why.message);
    OJ_TRY(api_settings_check_pairs(*out, API_PAIRS_OF_KEPT_POINTS, err));
    if (ogrjoin_set_number(*out, "unordered", 1, &why) != OGRJOIN_OK)
        return oj_fail(err, (oj_status)why.status, "%s", why.message);
    return OJ_OK;
}

static oj_status near_pairs(struct ogrjoin_live *live,
                            const struct ogrjoin_settings *settings,
                            struct ogrjoin_pairs **out, struct oj_error *err)
{
    struct ogrjoin_settings *complete = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    const struct live_state *state;
    oj_status status = complete_near_settings(settings, &complete, err);
    if (status == OJ_OK)
        status = read_state_on_host(live, &state, err);
    if (status == OJ_OK)
    {
        pthread_mutex_lock(&live->lock);
        status = find_near_pairs(live, state, complete, &pairs, err);
        if (status == OJ_OK && complete->changes)
            status = turn_pairs_into_changes(live, &pairs, err);
        pthread_mutex_unlock(&live->lock);
        oj_live_release_state(live->live, state);
    }
    ogrjoin_settings_free(complete);
    if (status == OJ_OK)
        *out = pairs;
    else
        ogrjoin_pairs_free(pairs);
    return status;
}

int ogrjoin_live_near_pairs(struct ogrjoin_live *live,
                            const struct ogrjoin_settings *settings,
                            struct ogrjoin_pairs **out,
                            struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(near_pairs(live, settings, out, &why), &why, err);
}

/* --- export of points, files ---------------------------------------------- */

/* Copies all points of the current state. */
static oj_status read_points(struct ogrjoin_live *live, struct live_points *out,
                             struct oj_error *err)
{
    const struct live_state *state;
    oj_status status;
    OJ_TRY(read_state_on_host(live, &state, err));
    status = live_search_list_points(state, out, err);
    oj_live_release_state(live->live, state);
    return status;
}

int ogrjoin_live_layer(struct ogrjoin_live *live, struct ogrjoin_layer **out,
                       struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    const struct live_state *state;
    oj_status status = read_state_on_host(live, &state, &why);
    if (status == OJ_OK)
    {
        status = make_layer_of_all_points(state, out, &why);
        oj_live_release_state(live->live, state);
    }
    return api_error_export(status, &why, err);
}

enum
{
    N_COLUMNS = 3
};

static oj_status make_schema(struct ArrowSchema *out, struct oj_error *err)
{
    static const char *const name[N_COLUMNS] = {"id", "x", "y"};
    static const char *const format[N_COLUMNS] = {"l", "g", "g"};
    OJ_TRY(oj_arrow_schema_make("+s", "", NULL, 0, N_COLUMNS, out, err));
    for (int i = 0; i < N_COLUMNS; i++)
        OJ_TRY(oj_arrow_schema_make(format[i], name[i], NULL, 0, 0,
                                    out->children[i], err));
    return OJ_OK;
}

/* Makes an Arrow array from points by moving their arrays. On failure points is
 * unchanged. */
static oj_status make_array(struct live_points *points, struct ArrowArray *out,
                            struct oj_error *err)
{
    OJ_TRY(oj_arrow_array_make(1, N_COLUMNS, out, err));
    out->length = points->n;
    for (int i = 0; i < N_COLUMNS; i++)
    {
        OJ_TRY(oj_arrow_array_make(2, 0, out->children[i], err));
        out->children[i]->length = points->n;
    }
    out->children[0]->buffers[1] = points->id;
    out->children[1]->buffers[1] = points->x;
    out->children[2]->buffers[1] = points->y;
    memset(points, 0, sizeof *points);
    return OJ_OK;
}

static oj_status points_to_arrow(struct ogrjoin_live *live,
                                 struct ArrowSchema *schema,
                                 struct ArrowArray *array, struct oj_error *err)
{
    struct live_points points = {0};
    oj_status status = read_points(live, &points, err);
    memset(schema, 0, sizeof *schema);
    memset(array, 0, sizeof *array);
    if (status == OJ_OK)
        status = make_schema(schema, err);
    if (status == OJ_OK)
        status = make_array(&points, array, err);
    if (status != OJ_OK)
    {
        oj_arrow_schema_release(schema);
        oj_arrow_array_release(array);
    }
    live_points_free(&points);
    return status;
}

int ogrjoin_live_to_arrow(struct ogrjoin_live *live, struct ArrowSchema *schema,
                          struct ArrowArray *array, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(points_to_arrow(live, schema, array, &why), &why,
                            err);
}

static oj_status save_live(struct ogrjoin_live *live, const char *path,
                           struct oj_error *err)
{
    struct live_points points = {0};
    oj_status status = read_points(live, &points, err);
    if (status == OJ_OK)
        status = live_file_write(path, &points, err);
    live_points_free(&points);
    return status;
}

int ogrjoin_live_save(struct ogrjoin_live *live, const char *path,
                      struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(save_live(live, path, &why), &why, err);
}

static oj_status load_live(const char *path,
                           const struct ogrjoin_settings *settings,
                           struct ogrjoin_live **out, struct oj_error *err)
{
    struct live_points points = {0};
    struct ogrjoin_live *live = NULL;
    oj_status status = new_live(settings, &live, err);
    if (status == OJ_OK)
        status = live_file_read(path, &points, err);
    if (status == OJ_OK)
        status =
            apply_batch(live, points.n, points.id, points.x, points.y, err);
    live_points_free(&points);
    if (status == OJ_OK)
        *out = live;
    else
        ogrjoin_live_free(live);
    return status;
}

int ogrjoin_live_load(const char *path, const struct ogrjoin_settings *settings,
                      struct ogrjoin_live **out, struct ogrjoin_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    return api_error_export(load_live(path, settings, out, &why), &why, err);
}
