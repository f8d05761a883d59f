#include "live_reshape.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_parallel.h"

/* Tasks are carried out in rounds, which limits the memory for their points:
 * POINTS_OF_ROUND: maximum number of points of a round with several tasks;
 * TASKS_AT_ONCE: tasks that a thread takes together. */
#define POINTS_OF_ROUND (1 << 20)
#define TASKS_AT_ONCE 4

struct reshape_round
{
    struct oj_live *live;
    struct live_state *state;
    int n_threads;
    const struct live_arrivals *arrivals;
    int64_t n; /* tasks */
    struct live_reshape *task;
    struct live_point *point, *scratch; /* [points of all tasks]; the points of
                                           a task begin at task.at */
    uint32_t *page;                     /* [leaves of all subtrees] first page
                                           of each leaf */
    int32_t *node_of;                   /* [nodes of the largest subtree] number
                                           of each node in the state */
};

int64_t live_count_points(const struct live_state *state, uint32_t page)
{
    int64_t n = 0;
    for (; page != LIVE_NONE; page = state->page[page].next)
        n += state->page[page].n_points;
    return n;
}

void live_free_page(struct oj_live *live, struct live_state *state,
                    uint32_t page)
{
    live_drop_block(live, &state->page[page]);
    live_state_free_page(state, page);
}

/* --- points to subtrees ----------------------------------------------------
 */

/* Appends the points of a leaf to point[n ..]; returns the new n. */
static int64_t append_points_of_leaf(const struct live_state *state,
                                     uint32_t page, struct live_point *point,
                                     int64_t n)
{
    for (; page != LIVE_NONE; page = state->page[page].next)
    {
        const struct live_page *from = &state->page[page];
        const struct live_block *block = from->block;
        for (int slot = 0; slot < from->n; slot++)
        {
            if (block->x[slot] == block->x[slot])
                point[n++] = (struct live_point){block->x[slot], block->y[slot],
                                                 block->id[slot], -1};
        }
    }
    return n;
}

static void append_arriving_points(const struct live_arrivals *a,
                                   const struct live_reshape *task,
                                   struct live_point *point, int64_t n)
{
    for (int64_t i = task->first; i < task->end; i++)
    {
        int64_t row = a->order[i].value;
        point[n++] = (struct live_point){a->x[row], a->y[row], a->id[row],
                                         a->entry[row]};
    }
}

static void split_points_of_tasks(int64_t first, int64_t end, void *user)
{
    struct reshape_round *r = user;
    struct live_split split = {r->live->rule, r->live->frame, LIVE_PAGE_POINTS,
                               0};
    for (int64_t i = first; i < end; i++)
    {
        struct live_reshape *task = &r->task[i];
        struct live_point *point = r->point + task->at;
        struct live_leaf whole = {0, task->n, task->cell, LIVE_NONE,
                                  task->depth};
        int64_t n = 0;
        for (int k = 0; k < task->n_leaves; k++)
            n = append_points_of_leaf(r->state, task->leaf[k], point, n);
        append_arriving_points(r->arrivals, task, point, n);
        task->is_done =
            live_split_points(&split, point, r->scratch + task->at, &whole,
                              &task->subtree, NULL) == OJ_OK;
    }
}

/* --- subtrees to pages -----------------------------------------------------
 */

/* Returns the number of blocks that become unused when the leaves of a task are
 * freed. Blocks that readers use do not count. */
static int64_t count_freed_blocks(const struct reshape_round *r,
                                  const struct live_reshape *task)
{
    int64_t n = 0;
    for (int k = 0; k < task->n_leaves; k++)
    {
        uint32_t page = task->leaf[k];
        for (; page != LIVE_NONE; page = r->state->page[page].next)
            n += r->state->page[page].birth > r->live->newest_read;
    }
    return n;
}

/* Makes room for the pages, nodes and blocks of all subtrees. */
static oj_status reserve_room_for_round(struct reshape_round *r,
                                        int64_t n_promised)
{
    int64_t n_pages = n_promised, n_nodes = 0, n_leaves = 0, n_freed = 0;
    int64_t most_nodes = 0;
    for (int64_t i = 0; i < r->n; i++)
    {
        struct live_reshape *task = &r->task[i];
        const struct live_subtree *s = &task->subtree;
        if (!task->is_done)
            continue;
        task->first_page = n_leaves;
        for (int64_t k = 0; k < s->n_leaves; k++)
            n_pages += live_count_pages_of_leaf(s->leaf[k].n);
        n_nodes += s->n_nodes;
        n_leaves += s->n_leaves;
        n_freed += count_freed_blocks(r, task);
        most_nodes = s->n_nodes > most_nodes ? s->n_nodes : most_nodes;
    }
    OJ_TRY(live_state_reserve_pages(r->state, n_pages, NULL));
    OJ_TRY(live_state_reserve_nodes(r->state, n_nodes, NULL));
    OJ_TRY(live_blocks_reserve(&r->live->blocks, n_pages - n_freed, NULL));
    OJ_NEW(r->page, n_leaves, NULL);
    OJ_NEW(r->node_of, most_nodes, NULL);
    return OJ_OK;
}

static void free_leaves(struct reshape_round *r,
                        const struct live_reshape *task)
{
    for (int k = 0; k < task->n_leaves; k++)
    {
        uint32_t page = task->leaf[k], next;
        for (; page != LIVE_NONE; page = next)
        {
            next = r->state->page[page].next;
            live_free_page(r->live, r->state, page);
        }
    }
    if (task->node >= 0)
        live_state_free_node(r->state, task->node);
}

/* Fills the pages of the subtrees. For points outside of the cell of their
 * page, within its slack, extends the covers of the nodes above. */
static void fill_pages_of_tasks(int64_t first, int64_t end, void *user)
{
    struct reshape_round *r = user;
    struct live_state *state = r->state;
    for (int64_t i = first; i < end; i++)
    {
        const struct live_reshape *task = &r->task[i];
        for (int64_t k = 0; task->is_done && k < task->subtree.n_leaves; k++)
        {
            uint32_t page = r->page[task->first_page + k];
            live_fill_leaf(r->live, state, &task->subtree.leaf[k],
                           r->point + task->at, page);
            for (; page != LIVE_NONE; page = state->page[page].next)
                live_state_extend_covers(state, state->page[page].parent,
                                         &state->page[page].box);
        }
    }
}

static void carry_out_tasks_of_round(struct reshape_round *r,
                                     int64_t n_promised)
{
    oj_parallel_slices(r->n_threads, r->n, TASKS_AT_ONCE, split_points_of_tasks,
                       r);
    if (reserve_room_for_round(r, n_promised) != OJ_OK)
    {
        for (int64_t i = 0; i < r->n; i++)
            r->task[i].is_done = 0;
        return;
    }
    for (int64_t i = 0; i < r->n; i++)
    {
        if (r->task[i].is_done)
            free_leaves(r, &r->task[i]);
    }
    for (int64_t i = 0; i < r->n; i++)
    {
        const struct live_reshape *task = &r->task[i];
        if (task->is_done)
            live_add_subtree_to_state(r->live, r->state, &task->subtree,
                                      task->parent, r->node_of,
                                      r->page + task->first_page);
    }
    oj_parallel_slices(r->n_threads, r->n, TASKS_AT_ONCE, fill_pages_of_tasks,
                       r);
}

static void run_reshape_round(struct reshape_round *r, int64_t n_points,
                              int64_t n_promised)
{
    for (int64_t i = 0; i < r->n; i++)
        r->task[i].is_done = 0;
    r->point = oj_malloc(n_points, sizeof *r->point);
    r->scratch = oj_malloc(n_points, sizeof *r->scratch);
    if (r->point != NULL && r->scratch != NULL)
        carry_out_tasks_of_round(r, n_promised);
    for (int64_t i = 0; i < r->n; i++)
        live_subtree_free(&r->task[i].subtree);
    oj_free(r->point);
    oj_free(r->scratch);
    oj_free(r->page);
    oj_free(r->node_of);
}

void live_reshape_leaves(struct oj_live *live, struct live_state *state,
                         int n_threads, const struct live_arrivals *arrivals,
                         int64_t n_promised, int64_t n,
                         struct live_reshape *task)
{
    for (int64_t first = 0, end; first < n; first = end)
    {
        struct reshape_round r = {live, state,        n_threads, arrivals,
                                  0,    task + first, NULL,      NULL,
                                  NULL, NULL};
        int64_t n_points = 0;
        for (end = first; end < n && (end == first || n_points + task[end].n <=
                                                          POINTS_OF_ROUND);
             end++)
        {
            task[end].at = n_points;
            n_points += task[end].n;
        }
        r.n = end - first;
        run_reshape_round(&r, n_points, n_promised);
    }
}
