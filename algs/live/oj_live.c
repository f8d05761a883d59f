#include "oj_live.h"

#include "../../flatten/base/oj_alloc.h"

#include <stdio.h>
#include <string.h>

oj_status oj_live_new(enum oj_live_tree tree, int n_threads,
                      struct oj_live **out, struct oj_error *err)
{
    struct oj_live *live;
    OJ_NEW_ZEROED(live, 1, err);
    if (live_state_new(&live->state, err) != OJ_OK)
    {
        oj_free(live);
        return OJ_ERR_NOMEM;
    }
    live->tree = tree;
    live->n_threads = n_threads > 0 ? n_threads : oj_cpu_count();
    live->rule = live_split_rule_at(tree == OJ_LIVE_KDTREE ? LIVE_KDTREE
                                                           : LIVE_QUADTREE);
    live->frame = oj_box_empty();
    snprintf(live->reason, sizeof live->reason, "%s: %s", live->rule->name,
             tree == OJ_LIVE_AUTO ? "no points yet" : "as asked");
    pthread_mutex_init(&live->writer, NULL);
    pthread_mutex_init(&live->lock, NULL);
    pthread_cond_init(&live->was_changed, NULL);
    *out = live;
    return OJ_OK;
}

void oj_live_free(struct oj_live *live)
{
    if (live == NULL)
        return;
    for (struct live_state *state = live->state; state != NULL;)
    {
        struct live_state *older = state->older;
        live_state_free(state);
        state = older;
    }
    oj_parallel_end_team(&live->team);
    live_ids_free(&live->ids);
    live_blocks_free(&live->blocks);
    oj_free(live->leaving);
    oj_free(live->gathered);
    pthread_mutex_destroy(&live->writer);
    pthread_mutex_destroy(&live->lock);
    pthread_cond_destroy(&live->was_changed);
    oj_free(live);
}

/* --- readers ---------------------------------------------------------------
 */

const struct live_state *oj_live_acquire_state(struct oj_live *live)
{
    struct live_state *state;
    pthread_mutex_lock(&live->lock);
    while (live->is_changing)
        pthread_cond_wait(&live->was_changed, &live->lock);
    state = live->state;
    state->n_readers++;
    pthread_mutex_unlock(&live->lock);
    return state;
}

/* Frees all states without readers, except for the newest. */
static void free_states_without_readers(struct oj_live *live)
{
    struct live_state **at = &live->state->older;
    while (*at != NULL)
    {
        struct live_state *state = *at;
        if (state->n_readers > 0)
            at = &state->older;
        else
        {
            *at = state->older;
            live_state_free(state);
        }
    }
}

void oj_live_release_state(struct oj_live *live, const struct live_state *state)
{
    pthread_mutex_lock(&live->lock);
    ((struct live_state *)state)->n_readers--;
    free_states_without_readers(live);
    pthread_mutex_unlock(&live->lock);
}

void live_publish_state(struct oj_live *live, struct live_state *state)
{
    pthread_mutex_lock(&live->lock);
    if (state != live->state)
    {
        state->older = live->state;
        live->state = state;
        free_states_without_readers(live);
    }
    live->is_changing = 0;
    pthread_cond_broadcast(&live->was_changed);
    pthread_mutex_unlock(&live->lock);
}

/* --- counts and explanation ----------------------------------------------- */

struct oj_live_counts oj_live_count(struct oj_live *live)
{
    struct oj_live_counts counts;
    const struct live_state *state;
    pthread_mutex_lock(&live->writer);
    state = live->state;
    counts = live->counts;
    counts.n = state->n_points;
    counts.n_pages = state->n_leaves;
    counts.n_bytes =
        live_ids_bytes(&live->ids) +
        live->blocks.n_blocks * (int64_t)sizeof(struct live_block) +
        state->cap_pages * (int64_t)sizeof *state->page +
        state->cap_nodes * (int64_t)sizeof *state->node +
        live->cap_leaving * (int64_t)sizeof *live->leaving +
        live->cap_gathered * (int64_t)sizeof *live->gathered;
    pthread_mutex_unlock(&live->writer);
    return counts;
}

void oj_live_explain_tree_choice(struct oj_live *live, char *text, size_t size)
{
    pthread_mutex_lock(&live->writer);
    snprintf(text, size, "%s", live->reason);
    pthread_mutex_unlock(&live->writer);
}
