/** Applies a batch of changes, on several threads.
 *
 *    step        file                   what it does
 *    1 find      live_batch_classify.c  finds the entry of each id, and adds
 *                                       entries for new ids; of several changes
 *                                       of an id the last one counts
 *    2 classify  live_batch_classify.c  a point stays in its page, or it is a
 *                                       mover, which goes to another page or is
 *                                       new, or a leaver, which leaves its page
 *    3 decide    live_batch_rebuild.c   if the share of movers is large,
 *                                       rebuilds all
 *    4 distribute  live_batch_buckets.c finds the pages of movers; distributes
 *                                       movers and leavers to buckets, which
 *                                       are ranges of pages
 *    5 reserve                          allocates all memory that the steps 6,
 *                                       7 and 9 need
 *    6 in place                         overwrites the points that stay
 *    7 move                             makes holes where leavers were, adds
 *                                       movers
 *    8 split     live_reshape.c         splits pages that overflow
 *    9 tidy                             removes empty pages, unites small
 *                                       siblings
 *
 *  Threads take slices of rows in steps 1, 2, 4 and 6, and buckets in steps 4,
 *  7 and 9, so that one thread at a time changes a page. The state does not
 *  depend on the number of threads: slices and buckets depend on the batch and
 *  on the number of pages, and one thread numbers the pages.
 *
 *  Up to step 5 anything may fail, and readers and later batches see no change.
 *  Step 8 and the uniting of pages are left out if memory is missing, which
 *  costs later searches time. */
#include "live_batch.h"
#include "live_reshape.h"

#include "../../flatten/base/oj_alloc.h"

#include <math.h>
#include <string.h>

/* Maximum number of points in sibling leaves that are united into one page. */
#define MOST_TO_UNITE (LIVE_PAGE_POINTS / 8 * 7)

/* A batch gets one thread per ROWS_OF_THREAD rows, and at most the threads of
 * the index. */
#define ROWS_OF_THREAD 4096

/* --- 5 reserve -------------------------------------------------------------
 */

/* Begins the change of the state: from here on a state with readers stays as it
 * is. If the current state has no readers, new readers wait until the change is
 * complete. */
static void begin_change_of_state(struct oj_live *live)
{
    int32_t oldest = INT32_MAX;
    live->newest_read = -1;
    pthread_mutex_lock(&live->lock);
    for (const struct live_state *s = live->state; s != NULL; s = s->older)
    {
        if (s->n_readers == 0)
            continue;
        if (live->newest_read < 0)
            live->newest_read = s->number;
        oldest = s->number;
    }
    live->is_changing = live->state->n_readers == 0;
    pthread_mutex_unlock(&live->lock);
    live_blocks_collect(&live->blocks, oldest);
}

static void end_change_without_effect(struct oj_live *live)
{
    live_publish_state(live, live->state);
}

static void mark_page_for_copy(struct live_batch *b, uint32_t page)
{
    __atomic_store_n(&b->touched[page], 1, __ATOMIC_RELAXED);
}

static void mark_pages_of_slice(int64_t first, int64_t end, void *user)
{
    struct live_batch *b = user;
    for (int64_t i = first; i < end; i++)
    {
        if (b->place[i] < LIVE_NO_PLACE)
            mark_page_for_copy(b, live_batch_page_of_place(b->place[i]));
    }
}

static void mark_pages_of_bucket(int64_t bucket, int thread, void *user)
{
    struct live_batch *b = user;
    const uint32_t *left = b->left + b->first_leaver[bucket];
    int64_t end = b->first_mover[bucket + 1], next;
    (void)thread;
    for (int64_t i = 0; i < b->bucket[bucket].n_left; i++)
        mark_page_for_copy(b, left[i]);
    for (int64_t i = b->first_mover[bucket]; i < end; i = next)
    {
        uint64_t key = b->sorted[i].key;
        uint32_t page = key >= LIVE_KEY_OF_NONE ? LIVE_NONE : (uint32_t)key;
        next = live_batch_end_of_group(b, i, end);
        for (; page != LIVE_NONE; page = b->live->state->page[page].next)
            mark_page_for_copy(b, page);
    }
}

/* Marks the pages whose blocks the batch changes while readers use them.
 * Returns the number of these pages. */
static int64_t mark_and_count_pages_to_copy(struct live_batch *b)
{
    const struct live_state *state = b->live->state;
    int64_t n = 0;
    live_batch_run_on_slices(b, mark_pages_of_slice);
    live_batch_run_on_buckets(b, mark_pages_of_bucket);
    for (int64_t p = 0; p < state->n_pages; p++)
    {
        b->touched[p] &= state->page[p].birth <= b->live->newest_read;
        n += b->touched[p];
    }
    return n;
}

/* A block that readers use, and the new block to which it is copied. */
struct live_copy
{
    const struct live_block *from;
    struct live_block *to;
};

/* Blocks per task of a thread. */
#define BLOCKS_AT_ONCE 16

static void copy_blocks(int64_t first, int64_t end, void *user)
{
    const struct live_copy *copy = user;
    for (int64_t i = first; i < end; i++)
        memcpy(copy[i].to, copy[i].from, sizeof *copy[i].to);
}

/* Replaces the block of each touched page by a new one, and lists both blocks,
 * so that the contents can be copied on all threads. */
static void copy_touched_pages(struct live_batch *b, struct live_copy *copy)
{
    int64_t n = 0, n_pages = b->live->state->n_pages;
    for (int64_t p = 0; p < n_pages; p++)
    {
        struct live_page *page = &b->state->page[p];
        if (!b->touched[p])
            continue;
        copy[n].from = page->block;
        copy[n].to = live_blocks_take(&b->live->blocks);
        live_drop_block(b->live, page);
        page->block = copy[n++].to;
        page->birth = b->state->number;
    }
    oj_parallel_slices(b->n_threads, n, BLOCKS_AT_ONCE, copy_blocks, copy);
}

static oj_status reserve_pages_and_blocks(struct live_batch *b,
                                          int64_t n_copies,
                                          struct oj_error *err)
{
    struct oj_live *live = b->live;
    OJ_TRY(live_blocks_reserve(&live->blocks, b->n_promised + n_copies, err));
    if (!live->is_changing)
    {
        OJ_TRY(live_state_copy(live->state, b->n_promised, &b->state, err));
        b->state->number++;
        return OJ_OK;
    }
    b->state = live->state;
    return live_state_reserve_pages(b->state, b->n_promised, err);
}

static oj_status reserve_room_for_batch(struct live_batch *b,
                                        struct oj_error *err)
{
    struct live_copy *copy;
    oj_status status;
    int64_t n;
    if (b->live->newest_read < 0)
        return reserve_pages_and_blocks(b, 0, err);
    OJ_NEW_ZEROED(b->touched, b->live->state->n_pages, err);
    n = mark_and_count_pages_to_copy(b);
    OJ_NEW(copy, n, err);
    status = reserve_pages_and_blocks(b, n, err);
    if (status == OJ_OK)
        copy_touched_pages(b, copy);
    oj_free(copy);
    return status;
}

/* --- 6 in place ------------------------------------------------------------
 */

static void prefetch_slot(const struct live_batch *b, uint64_t place)
{
    const struct live_block *block;
    int slot = (int)(place % LIVE_PAGE_POINTS);
    if (place >= LIVE_NO_PLACE)
        return;
    block = b->state->page[place / LIVE_PAGE_POINTS].block;
    __builtin_prefetch(&block->x[slot], 1);
    __builtin_prefetch(&block->y[slot], 1);
}

static void prefetch_page(const struct live_batch *b, uint64_t place)
{
    if (place < LIVE_NO_PLACE)
        __builtin_prefetch(&b->state->page[place / LIVE_PAGE_POINTS].block);
}

/* Extends the box of a page to include a point. If the point has left the cell,
 * also extends the covers of the nodes above. Several threads may call this at
 * once. */
static void extend_page_box(struct live_state *state, struct live_page *page,
                            double x, double y)
{
    struct oj_box at = {x, y, x, y};
    live_box_extend(&page->box, &at);
    if (!oj_box_contains_point(&page->cell, x, y))
        live_state_extend_covers(state, page->parent, &at);
}

static void move_points_within_pages(int64_t first, int64_t end, void *user)
{
    struct live_batch *b = user;
    if (b->rows[first / b->rows_of_slice].n_in_place == 0)
        return;
    for (int64_t i = first; i < end; i++)
    {
        uint64_t place = b->place[i];
        double x = b->x[i], y = b->y[i];
        struct live_page *page;
        int slot = (int)(place % LIVE_PAGE_POINTS);
        if (i + LIVE_AHEAD < end)
            prefetch_page(b, b->place[i + LIVE_AHEAD]);
        if (i + LIVE_AHEAD / 2 < end)
            prefetch_slot(b, b->place[i + LIVE_AHEAD / 2]);
        if (place >= LIVE_NO_PLACE)
            continue;
        page = &b->state->page[place / LIVE_PAGE_POINTS];
        page->block->x[slot] = x;
        page->block->y[slot] = y;
        if (!live_box_contains(&page->box, x, y))
            extend_page_box(b->state, page, x, y);
    }
}

/* --- 7 move ----------------------------------------------------------------
 */

static void prefetch_slot_of_leaving_point(const struct live_batch *b,
                                           uint64_t place)
{
    const struct live_block *block =
        b->state->page[place / LIVE_PAGE_POINTS].block;
    __builtin_prefetch(&block->x[place % LIVE_PAGE_POINTS], 1);
    __builtin_prefetch(&block->id[place % LIVE_PAGE_POINTS], 1);
}

static void remove_leaving_points_from_pages(struct live_batch *b,
                                             int64_t bucket)
{
    int64_t end = b->first_leaver[bucket + 1];
    for (int64_t i = b->first_leaver[bucket]; i < end; i++)
    {
        uint64_t place = b->leaver[i];
        if (i + LIVE_AHEAD < end)
            prefetch_slot_of_leaving_point(b, b->leaver[i + LIVE_AHEAD]);
        live_page_remove_point(&b->state->page[place / LIVE_PAGE_POINTS],
                               (int)(place % LIVE_PAGE_POINTS));
    }
}

/* Adds the point of a row to a page with room. */
static void add_point_of_row(struct live_batch *b, uint32_t page, int64_t row)
{
    int slot = live_page_add_point(&b->state->page[page], b->x[row], b->y[row],
                                   b->id[row]);
    live_entry_set_page_and_slot(&b->live->ids.entry[b->entry[row]], page,
                                 slot);
}

static void prefetch_entry_and_page_of_arrival(const struct live_batch *b,
                                               int64_t at)
{
    const struct live_page *page;
    int64_t row = b->sorted[at].value;
    __builtin_prefetch(&b->live->ids.entry[b->entry[row]], 1);
    if (b->sorted[at].key >= LIVE_KEY_OF_NONE)
        return;
    page = &b->state->page[b->sorted[at].key];
    __builtin_prefetch(&page->block->x[page->first_hole & 255], 1);
    __builtin_prefetch(&page->block->y[page->first_hole & 255], 1);
    __builtin_prefetch(&page->block->id[page->first_hole & 255], 1);
}

static void prefetch_row(const struct live_batch *b, int64_t at)
{
    int64_t row = b->sorted[at].value;
    __builtin_prefetch(&b->entry[row]);
    __builtin_prefetch(&b->x[row]);
    __builtin_prefetch(&b->y[row]);
    __builtin_prefetch(&b->id[row]);
}

/* Adds each group of arriving points to its page if the page has room for the
 * whole group. Lists the first mover of every other group in b->mover, for
 * step 8. */
static void add_arrivals_to_pages(struct live_batch *b, int64_t bucket)
{
    int64_t first = b->first_mover[bucket], end = b->first_mover[bucket + 1];
    int64_t n = 0, next;
    struct oj_keyed *group = b->mover + first;
    for (int64_t i = first; i < end && i < first + LIVE_AHEAD; i++)
        prefetch_row(b, i);
    for (int64_t i = first; i < end; i = next)
    {
        uint64_t key = b->sorted[i].key;
        next = live_batch_end_of_group(b, i, end);
        for (int64_t k = i; k < next; k++)
        {
            if (k + LIVE_AHEAD < end)
                prefetch_row(b, k + LIVE_AHEAD);
            if (k + LIVE_AHEAD / 2 < end)
                prefetch_entry_and_page_of_arrival(b, k + LIVE_AHEAD / 2);
        }
        if (key >= LIVE_KEY_OF_NONE || b->state->page[key].next != LIVE_NONE ||
            b->state->page[key].n_points + next - i > LIVE_PAGE_POINTS)
        {
            group[n].key = (uint64_t)next;
            group[n++].value = i;
            continue;
        }
        for (int64_t k = i; k < next; k++)
            add_point_of_row(b, (uint32_t)key, b->sorted[k].value);
    }
    b->bucket[bucket].n_groups = n;
}

static void move_between_pages(int64_t bucket, int thread, void *user)
{
    struct live_batch *b = user;
    (void)thread;
    live_batch_clear_leaving(b, bucket);
    remove_leaving_points_from_pages(b, bucket);
    add_arrivals_to_pages(b, bucket);
}

/* --- 8 splitting -----------------------------------------------------------
 */

static struct live_arrivals arrivals_of_batch(const struct live_batch *b)
{
    return (struct live_arrivals){b->id, b->x, b->y, b->entry, b->sorted};
}

/* Sets cell, parent and depth of the task for a child that has no page yet. */
static void set_place_of_new_child(const struct live_state *state,
                                   uint32_t parent, struct live_reshape *task)
{
    task->cell = (struct oj_box){-INFINITY, -INFINITY, INFINITY, INFINITY};
    task->parent = parent;
    task->depth = 0;
    if (parent != LIVE_NONE)
    {
        const struct live_node *node = &state->node[parent / 4];
        task->cell = live_node_child_cell(node, (int)(parent % 4));
        task->depth = node->depth + 1;
    }
}

static struct live_reshape reshape_task_of_group(const struct live_batch *b,
                                                 const struct oj_keyed *group)
{
    uint64_t key = b->sorted[group->value].key;
    struct live_reshape task = {
        .node = -1, .first = group->value, .end = (int64_t)group->key};
    task.n = task.end - task.first;
    if (key >= LIVE_KEY_OF_NONE)
        set_place_of_new_child(b->state, (uint32_t)key, &task);
    else
    {
        const struct live_page *page = &b->state->page[key];
        task.leaf[task.n_leaves++] = (uint32_t)key;
        task.cell = page->cell;
        task.parent = page->parent;
        task.depth = page->depth;
        task.n += live_count_points(b->state, (uint32_t)key);
    }
    return task;
}

/* Makes a page for a child that has none. parent: 4 * node + child. Returns the
 * number of the page. */
static uint32_t make_leaf_page(struct live_batch *b, uint32_t parent)
{
    struct live_reshape child = {0};
    uint32_t page;
    set_place_of_new_child(b->state, parent, &child);
    page = live_state_new_page(b->state, live_blocks_take(&b->live->blocks),
                               &child.cell, parent, child.depth);
    live_state_set_child(b->state, parent, live_child_of_page(page));
    return page;
}

/* Returns a page with room in the chain of a leaf, searching from `page` on.
 * Appends a page if there is none. */
static uint32_t find_page_with_room(struct live_batch *b, uint32_t page)
{
    struct live_state *state = b->state;
    uint32_t last = page, more;
    for (; page != LIVE_NONE; page = state->page[page].next)
    {
        if (state->page[page].n_points < LIVE_PAGE_POINTS)
            return page;
        last = page;
    }
    more = live_state_new_page(
        state, live_blocks_take(&b->live->blocks), &state->page[last].cell,
        state->page[last].parent, state->page[last].depth);
    state->page[last].next = more;
    return more;
}

/* Adds a group of movers, which have one target leaf, to the leaf's chain of
 * pages without splitting it; makes the leaf if there is none. Step 5 has
 * allocated the pages. */
static void add_group_to_chain(struct live_batch *b,
                               const struct oj_keyed *group)
{
    uint64_t key = b->sorted[group->value].key;
    uint32_t page = key >= LIVE_KEY_OF_NONE ? make_leaf_page(b, (uint32_t)key)
                                            : (uint32_t)key;
    for (int64_t i = group->value; i < (int64_t)group->key; i++)
    {
        page = find_page_with_room(b, page);
        add_point_of_row(b, page, b->sorted[i].value);
    }
}

/* Splits pages that overflow, and makes pages for children that had none. */
static void split_full_pages(struct live_batch *b)
{
    struct live_arrivals arrivals = arrivals_of_batch(b);
    struct live_reshape *task;
    int64_t n = 0, at = 0;
    for (int64_t k = 0; k < b->n_buckets; k++)
        n += b->bucket[k].n_groups;
    if (n == 0)
        return;
    task = oj_malloc(n, sizeof *task);
    for (int64_t k = 0; task != NULL && k < b->n_buckets; k++)
    {
        for (int64_t i = 0; i < b->bucket[k].n_groups; i++)
            task[at++] =
                reshape_task_of_group(b, &b->mover[b->first_mover[k] + i]);
    }
    if (task != NULL)
        live_reshape_leaves(b->live, b->state, b->n_threads, &arrivals,
                            b->n_promised, n, task);
    at = 0;
    for (int64_t k = 0; k < b->n_buckets; k++)
    {
        for (int64_t i = 0; i < b->bucket[k].n_groups; i++, at++)
        {
            if (task == NULL || !task[at].is_done)
                add_group_to_chain(b, &b->mover[b->first_mover[k] + i]);
        }
    }
    oj_free(task);
}

/* --- 9 tidying up ----------------------------------------------------------
 */

/* Removes a child of a node, and then every ancestor that has no child left. */
static void remove_child_and_empty_ancestors(struct live_state *state,
                                             uint32_t parent)
{
    live_state_set_child(state, parent, LIVE_NO_CHILD);
    while (parent != LIVE_NONE)
    {
        const struct live_node *node = &state->node[parent / 4];
        int32_t at = (int32_t)(parent / 4);
        for (int c = 0; c < 4; c++)
        {
            if (node->child[c] != LIVE_NO_CHILD)
                return;
        }
        parent = node->parent;
        live_state_free_node(state, at);
        live_state_set_child(state, parent, LIVE_NO_CHILD);
    }
}

/* Returns the number of points of a node whose children are all leaves and hold
 * few enough points to be united. Returns -1 for other nodes. */
static int64_t count_points_to_unite(const struct live_state *state,
                                     const struct live_node *node)
{
    int64_t n = 0;
    for (int c = 0; c < 4; c++)
    {
        if (node->child[c] >= 0)
            return -1;
        if (node->child[c] != LIVE_NO_CHILD)
            n += live_count_points(state, live_page_of_child(node->child[c]));
        if (n > MOST_TO_UNITE)
            return -1;
    }
    return n;
}

static int is_page_empty_or_mergeable(const struct live_state *state,
                                      uint32_t number)
{
    const struct live_page *page = &state->page[number];
    if (page->block == NULL || page->n_points > MOST_TO_UNITE)
        return 0;
    return page->n_points == 0 ||
           (page->parent != LIVE_NONE &&
            count_points_to_unite(state, &state->node[page->parent / 4]) >= 0);
}

/* Lists the pages of a bucket that are empty now, or whose leaf and its
 * siblings have few enough points to be united. A listed page number may have
 * been freed and used again since; tidying the new page does no harm. */
static void list_empty_or_mergeable_pages(int64_t bucket, int thread,
                                          void *user)
{
    struct live_batch *b = user;
    uint32_t *left = b->left + b->first_leaver[bucket];
    int64_t n = 0;
    (void)thread;
    for (int64_t i = 0; i < b->bucket[bucket].n_left; i++)
    {
        if (is_page_empty_or_mergeable(b->state, left[i]))
            left[n++] = left[i];
    }
    b->bucket[bucket].n_untidy = n;
}

/* Removes pages without points from the chain of a leaf. Returns the first page
 * of the shortened chain, or LIVE_NONE. */
static uint32_t free_empty_pages_of_chain(struct live_batch *b, uint32_t head)
{
    uint32_t first = LIVE_NONE, *to = &first, next;
    for (uint32_t page = head; page != LIVE_NONE; page = next)
    {
        next = b->state->page[page].next;
        if (b->state->page[page].n_points == 0)
        {
            live_free_page(b->live, b->state, page);
            continue;
        }
        *to = page;
        to = &b->state->page[page].next;
        *to = LIVE_NONE;
    }
    return first;
}

/* Removes the empty pages of the leaf that a page belongs to. */
static void free_empty_pages_of_leaf(struct live_batch *b, uint32_t page)
{
    struct live_state *state = b->state;
    uint32_t parent = state->page[page].parent, first;
    int32_t child = parent == LIVE_NONE
                        ? state->root
                        : state->node[parent / 4].child[parent % 4];
    first = free_empty_pages_of_chain(b, live_page_of_child(child));
    if (first == LIVE_NONE)
        remove_child_and_empty_ancestors(state, parent);
    else
        live_state_set_child(state, parent, live_child_of_page(first));
}

/* Removes empty pages. Lists the parents of the other untidy pages in node,
 * which may be NULL, and returns the number of these parents. */
static int64_t remove_empty_pages(struct live_batch *b, struct oj_keyed *node)
{
    int64_t n = 0;
    for (int64_t k = 0; k < b->n_buckets; k++)
    {
        const uint32_t *untidy = b->left + b->first_leaver[k];
        for (int64_t i = 0; i < b->bucket[k].n_untidy; i++)
        {
            const struct live_page *page = &b->state->page[untidy[i]];
            if (page->block != NULL && page->n_points == 0)
                free_empty_pages_of_leaf(b, untidy[i]);
        }
    }
    for (int64_t k = 0; node != NULL && k < b->n_buckets; k++)
    {
        const uint32_t *untidy = b->left + b->first_leaver[k];
        for (int64_t i = 0; i < b->bucket[k].n_untidy; i++)
        {
            const struct live_page *page = &b->state->page[untidy[i]];
            if (page->block != NULL && page->parent != LIVE_NONE)
                node[n++].key = page->parent / 4;
        }
    }
    return n;
}

static struct live_reshape reshape_task_of_node(const struct live_state *state,
                                                int32_t number, int64_t n)
{
    const struct live_node *node = &state->node[number];
    struct live_reshape task = {.node = number,
                                .n = n,
                                .cell = node->cell,
                                .parent = node->parent,
                                .depth = node->depth};
    for (int c = 0; c < 4; c++)
    {
        if (node->child[c] != LIVE_NO_CHILD)
            task.leaf[task.n_leaves++] = live_page_of_child(node->child[c]);
    }
    return task;
}

/* Unites the leaves of each of the n listed nodes. A node may be listed several
 * times. Replaces the list by the parents of the nodes that became leaves, and
 * returns the number of parents. scratch and task have room for n elements. */
static int64_t unite_leaves_of_nodes(struct live_batch *b, int64_t n,
                                     struct oj_keyed *node,
                                     struct oj_keyed *scratch,
                                     struct live_reshape *task)
{
    struct live_arrivals arrivals = arrivals_of_batch(b);
    const struct oj_keyed *sorted = oj_radix_sort(node, scratch, n);
    int64_t n_tasks = 0, n_above = 0;
    for (int64_t i = 0; i < n; i++)
    {
        int32_t number = (int32_t)sorted[i].key;
        int64_t n_points;
        if (i > 0 && sorted[i].key == sorted[i - 1].key)
            continue;
        n_points = count_points_to_unite(b->state, &b->state->node[number]);
        if (n_points >= 0)
            task[n_tasks++] = reshape_task_of_node(b->state, number, n_points);
    }
    live_reshape_leaves(b->live, b->state, b->n_threads, &arrivals, 0, n_tasks,
                        task);
    for (int64_t i = 0; i < n_tasks; i++)
    {
        if (task[i].is_done && task[i].parent != LIVE_NONE)
            node[n_above++].key = task[i].parent / 4;
    }
    return n_above;
}

/* Tidies the pages that points have left. Unites nodes level by level. */
static void free_or_merge_pages_left_by_points(struct live_batch *b)
{
    struct live_reshape *task;
    struct oj_keyed *node;
    int64_t n = 0;
    live_batch_run_on_buckets(b, list_empty_or_mergeable_pages);
    for (int64_t k = 0; k < b->n_buckets; k++)
        n += b->bucket[k].n_untidy;
    if (n == 0)
        return;
    node = oj_malloc(2 * n, sizeof *node);
    task = oj_malloc(n, sizeof *task);
    n = remove_empty_pages(b, node);
    while (n > 0 && task != NULL)
        n = unite_leaves_of_nodes(b, n, node, node + n, task);
    oj_free(node);
    oj_free(task);
}

/* --- a batch ---------------------------------------------------------------
 */

static oj_status reserve_and_change_pages(struct live_batch *b,
                                          struct oj_error *err)
{
    oj_status status;
    b->live->was_rebuilt = 0;
    live_free_gathered(b->live);
    OJ_TRY(live_batch_distribute_to_buckets(b, err));
    begin_change_of_state(b->live);
    status = reserve_room_for_batch(b, err);
    if (status != OJ_OK)
    {
        for (int64_t k = 0; k < b->n_buckets; k++)
            live_batch_clear_leaving(b, k);
        end_change_without_effect(b->live);
        return status;
    }
    if (b->all.n_in_place > 0)
        live_batch_run_on_slices(b, move_points_within_pages);
    if (b->all.n_arriving + b->all.n_leaving > 0)
    {
        live_batch_run_on_buckets(b, move_between_pages);
        split_full_pages(b);
        free_or_merge_pages_left_by_points(b);
    }
    b->state->n_points += b->all.n_arriving - b->all.n_leaving;
    b->state->edition++;
    live_publish_state(b->live, b->state);
    return OJ_OK;
}

/* Removes the ids of removed points, and the unknown ids among the removals of
 * the batch. */
static void remove_ids_of_removed_points(struct live_batch *b)
{
    struct live_ids *ids = &b->live->ids;
    if (b->all.counts.n_removed + b->all.counts.n_unknown == 0)
        return;
    for (int64_t i = 0; i < b->n; i++)
    {
        if (b->entry[i] != LIVE_SUPERSEDED &&
            !live_batch_can_join_point(b->x[i], b->y[i]))
        {
            int64_t entry = live_ids_find(ids, b->id[i]);
            if (entry >= 0)
                live_ids_remove(ids, entry);
        }
    }
}

static oj_status classify_and_apply_batch(struct live_batch *b,
                                          struct oj_error *err)
{
    struct oj_live *live = b->live;
    oj_status status = live_batch_classify_rows(b, err);
    if (status == OJ_OK && live_batch_is_rebuild_cheaper(b))
    {
        begin_change_of_state(live);
        status = live_batch_rebuild(b, err);
        if (status != OJ_OK)
            end_change_without_effect(live);
    }
    else if (status == OJ_OK)
        status = reserve_and_change_pages(b, err);
    if (status != OJ_OK)
    {
        live_batch_remove_ids(b);
        return status;
    }
    remove_ids_of_removed_points(b);
    live->counts.n_batches++;
    live_counts_add(&live->counts, &b->all.counts);
    return OJ_OK;
}

static oj_status apply_batch_on_threads(struct live_batch *b,
                                        struct oj_error *err)
{
    oj_status status;
    if (b->n_threads == 1)
        return classify_and_apply_batch(b, err);
    oj_parallel_join_team(&b->live->team, b->n_threads);
    status = classify_and_apply_batch(b, err);
    oj_parallel_leave_team(&b->live->team);
    return status;
}

static void free_batch(struct live_batch *b)
{
    live_ids_parts_free(&b->parts);
    oj_free(b->rows);   /* also frees entry and place */
    oj_free(b->bucket); /* also frees the other arrays of step 4 */
    oj_free(b->touched);
}

oj_status oj_live_apply(struct oj_live *live, int64_t n, const int64_t *id,
                        const double *x, const double *y, struct oj_error *err)
{
    struct live_batch b = {.live = live, .n = n, .id = id, .x = x, .y = y};
    struct oj_error why = {OJ_OK, ""};
    int64_t n_threads = n / ROWS_OF_THREAD + 1;
    oj_status status;
    if (n < 0 || n > LIVE_MOST_IDS)
        return oj_fail(
            err, OJ_ERR_LIMIT,
            "a batch can have 0 to %d changes, not %lld: apply smaller batches",
            LIVE_MOST_IDS, (long long)n);
    b.n_threads =
        n_threads < live->n_threads ? (int)n_threads : live->n_threads;
    pthread_mutex_lock(&live->writer);
    status = apply_batch_on_threads(&b, &why);
    pthread_mutex_unlock(&live->writer);
    free_batch(&b);
    return status == OJ_OK ? OJ_OK : oj_fail(err, status, "%s", why.message);
}
