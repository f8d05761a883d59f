/* Applies a batch of changes.
 *
 *  1 find       finds the entry of every id and adds entries for new ids; of
 *               several changes of an id the last one counts
 *  2 classify   in place: the point stays in its page; mover: it goes to
 *               another page, or is new; leaver: it is removed
 *  3 decide     if the share of movers is large, rebuilds all (live_build.c)
 *  4 reserve    allocates all memory that steps 5 to 7 cannot do without
 *  5 leave      makes holes where movers and leavers were
 *  6 arrive     adds movers, sorted by page; a page that overflows is split
 *  7 tidy       removes pages without points, unites small siblings
 *
 * Up to step 4 anything may fail, and readers and later batches see no change.
 * Splitting and uniting pages need more memory; without it they are left out,
 * which costs later searches time. */
#include "oj_live.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_parallel.h"
#include "../foundations/base/oj_radix.h"

#include <math.h>
#include <string.h>

/* Value of live_batch.entry: a later row of the batch has the id of this
 * row. */
#define SUPERSEDED UINT32_MAX

/* Value of live_batch.place: the point does not stay in its page. */
#define NOT_IN_PLACE UINT64_MAX

/* The number of a slot among the slots of all pages. */
#define PLACE_OF(page, slot) ((uint64_t)(page)*LIVE_PAGE_POINTS + (slot))

/* Distance in rows between prefetch and use. */
#define AHEAD 24

/* Maximum number of points in sibling leaves that are united into one page. */
#define MOST_TO_UNITE (LIVE_PAGE_POINTS / 8 * 7)

/* If more than this percentage of the points change pages, the tree is rebuilt:
 * moving a point to another page costs 1.2 to 1.4 times what building it into a
 * new tree does (oj_bench_live). */
#define MOST_PERCENT_MOVED 75

struct live_batch
{
    struct oj_live *live;
    int64_t n;
    const int64_t *id;
    const double *x, *y;
    uint32_t *entry; /* [n] entry of the id; or SUPERSEDED */
    uint64_t *place; /* [n] PLACE_OF() if it stays, or NOT_IN_PLACE */
    int has_repeats;

    struct oj_keyed *mover;  /* [n_movers] key: target; value: row */
    struct oj_keyed *sorted; /* mover, sorted by target */
    int64_t n_movers, cap_movers;
    uint32_t *leaver; /* [n_leavers] rows that remove a point */
    int64_t n_leavers, cap_leavers;
    uint32_t *left; /* distinct pages that points leave */
    int64_t n_left, cap_left;
    struct oj_live_counts counts; /* counts of this batch */
    int64_t n_in_place;
    int64_t n_promised; /* upper bound of new pages for arriving points if no
                           page is split */

    struct live_state *state; /* state that is changed */
    struct live_point *point; /* points of the leaf that is split */
    int64_t cap_points, cap_node_of;
    int32_t *node_of;
    struct live_subtree subtree;
};

static int is_joinable(double x, double y)
{
    return fabs(x) <= OJ_FLAT_MOST && fabs(y) <= OJ_FLAT_MOST;
}

/* --- 1 find ----------------------------------------------------------------
 */

/* Marks the entry. If it has the mark already, an earlier row of the batch has
 * the id. */
static void mark_entry(struct live_batch *b, int64_t entry, uint16_t mark)
{
    struct live_entry *e = &b->live->ids.entry[entry];
    b->has_repeats |= e->mark == mark;
    e->mark = mark;
}

/* Finds the entries of all rows.  Rows with unknown ids get SUPERSEDED; returns
 * their number. */
static int64_t find_entries(struct live_batch *b, uint16_t mark)
{
    struct live_ids *ids = &b->live->ids;
    int64_t n_new = 0;
    for (int64_t i = 0; ids->size > 0 && i < b->n && i < AHEAD; i++)
        live_ids_prefetch(ids, b->id[i]);
    for (int64_t i = 0; i < b->n; i++)
    {
        int64_t entry;
        if (ids->size > 0 && i + AHEAD < b->n)
            live_ids_prefetch(ids, b->id[i + AHEAD]);
        entry = live_ids_find(ids, b->id[i]);
        b->entry[i] = entry < 0 ? SUPERSEDED : (uint32_t)entry;
        if (entry < 0)
            n_new++;
        else
            mark_entry(b, entry, mark);
    }
    return n_new;
}

/* Finds or makes the entries of all rows; a new entry has the page
 * LIVE_NOWHERE. */
static void put_entries(struct live_batch *b, uint16_t mark)
{
    struct live_ids *ids = &b->live->ids;
    for (int64_t i = 0; i < b->n && i < AHEAD; i++)
        live_ids_prefetch(ids, b->id[i]);
    for (int64_t i = 0; i < b->n; i++)
    {
        if (i + AHEAD < b->n)
            live_ids_prefetch(ids, b->id[i + AHEAD]);
        b->entry[i] = (uint32_t)live_ids_put(ids, b->id[i]);
        mark_entry(b, b->entry[i], mark);
    }
}

/* Makes entries for the n_new rows whose ids have none. */
static oj_status add_entries(struct live_batch *b, int64_t n_new,
                             struct oj_error *err)
{
    struct live_ids *ids = &b->live->ids;
    OJ_TRY(live_ids_reserve(ids, ids->n + n_new, err));
    b->has_repeats = 0;
    put_entries(b, live_ids_next_mark(ids));
    return OJ_OK;
}

/* If an id has several rows, all but the last become SUPERSEDED. */
static void drop_superseded(struct live_batch *b)
{
    struct live_ids *ids = &b->live->ids;
    uint16_t mark = live_ids_next_mark(ids);
    for (int64_t i = b->n; i-- > 0;)
    {
        struct live_entry *e = &ids->entry[b->entry[i]];
        if (e->mark == mark)
        {
            b->entry[i] = SUPERSEDED;
            b->counts.n_superseded++;
        }
        e->mark = mark;
    }
}

/* Removes the ids without a page: after a failure the new ids of the batch,
 * otherwise unknown ids that the batch removes. */
static void remove_ids_without_place(struct live_batch *b)
{
    struct live_ids *ids = &b->live->ids;
    for (int64_t i = 0; i < b->n; i++)
    {
        int64_t entry = live_ids_find(ids, b->id[i]);
        if (entry >= 0 && ids->entry[entry].page == LIVE_NOWHERE)
            live_ids_remove(ids, entry);
    }
}

/* --- 2 classify ------------------------------------------------------------
 */

static oj_status count_leaving(struct live_batch *b, uint32_t page,
                               struct oj_error *err)
{
    struct oj_live *live = b->live;
    if (live->leaving[page] == 0)
    {
        OJ_ROOM(b->left, b->n_left, b->n_left + 1, b->cap_left, err);
        b->left[b->n_left++] = page;
    }
    live->leaving[page]++;
    return OJ_OK;
}

/* The key of a target is its page. If the target child has no page, it is
 * KEY_OF_NONE + 4 * node + child. */
#define KEY_OF_NONE (UINT64_C(1) << 32)

static oj_status classify_row(struct live_batch *b, int64_t i,
                              struct oj_error *err)
{
    struct oj_live *live = b->live;
    const struct live_state *state = live->state;
    const struct live_entry *e;
    double x = b->x[i], y = b->y[i];
    b->place[i] = NOT_IN_PLACE;
    if (b->entry[i] == SUPERSEDED)
        return OJ_OK;
    e = &live->ids.entry[b->entry[i]];
    if (!is_joinable(x, y))
    {
        b->counts.n_unjoinable += x == x;
        b->counts.n_unknown += e->page == LIVE_NOWHERE;
        OJ_ROOM(b->leaver, b->n_leavers, b->n_leavers + 1, b->cap_leavers, err);
        b->leaver[b->n_leavers++] = (uint32_t)i;
        if (e->page == LIVE_NOWHERE)
            return OJ_OK;
        b->counts.n_removed++;
        return count_leaving(b, e->page, err);
    }
    if (e->page == LIVE_NOWHERE)
        b->counts.n_put++;
    else
    {
        b->counts.n_moved++;
        if (live_page_keeps(&state->page[e->page], x, y))
        {
            b->place[i] = PLACE_OF(e->page, e->slot);
            b->n_in_place++;
            return OJ_OK;
        }
        OJ_TRY(count_leaving(b, e->page, err));
    }
    OJ_ROOM(b->mover, b->n_movers, b->n_movers + 1, b->cap_movers, err);
    b->mover[b->n_movers++].value = i;
    return OJ_OK;
}

/* Movers per task of a thread. */
#define MOVERS_AT_ONCE 8192

static void locate_movers_of_slice(int64_t first, int64_t end, void *user)
{
    struct live_batch *b = user;
    struct live_located place[LIVE_LOCATED_AT_ONCE];
    for (; first < end; first += LIVE_LOCATED_AT_ONCE)
    {
        struct oj_keyed *mover = b->mover + first;
        int n = end - first < LIVE_LOCATED_AT_ONCE ? (int)(end - first)
                                                   : LIVE_LOCATED_AT_ONCE;
        for (int i = 0; i < n; i++)
        {
            place[i].x = b->x[mover[i].value];
            place[i].y = b->y[mover[i].value];
        }
        live_state_locate(b->live->state, n, place);
        for (int i = 0; i < n; i++)
            mover[i].key = place[i].child == LIVE_NO_CHILD
                               ? KEY_OF_NONE + place[i].parent
                               : live_page_of_child(place[i].child);
    }
}

/* Finds the target page of every mover. */
static void locate_movers(struct live_batch *b)
{
    oj_parallel_slices(b->live->n_threads, b->n_movers, MOVERS_AT_ONCE,
                       locate_movers_of_slice, b);
}

static oj_status reserve_classes(struct live_batch *b, struct oj_error *err)
{
    struct oj_live *live = b->live;
    int64_t before = live->cap_leaving;
    OJ_ROOM(live->leaving, before, live->state->n_pages, live->cap_leaving,
            err);
    if (live->cap_leaving > before)
        memset(live->leaving + before, 0,
               (size_t)(live->cap_leaving - before) * sizeof *live->leaving);
    OJ_NEW(b->place, b->n, err);
    return OJ_OK;
}

static oj_status classify(struct live_batch *b, struct oj_error *err)
{
    OJ_TRY(reserve_classes(b, err));
    for (int64_t i = 0; i < b->n; i++)
    {
        if (i + AHEAD < b->n && b->entry[i + AHEAD] != SUPERSEDED)
            __builtin_prefetch(&b->live->ids.entry[b->entry[i + AHEAD]]);
        OJ_TRY(classify_row(b, i, err));
    }
    return OJ_OK;
}

static void clear_leaving(struct live_batch *b)
{
    for (int64_t i = 0; i < b->n_left; i++)
        b->live->leaving[b->left[i]] = 0;
    b->n_left = 0;
}

/* Steps 1 and 2. */
static oj_status find_and_classify(struct live_batch *b, struct oj_error *err)
{
    struct live_ids *ids = &b->live->ids;
    int64_t n_new = b->n;
    OJ_NEW(b->entry, b->n, err);
    if (ids->n > 0)
        n_new = find_entries(b, live_ids_next_mark(ids));
    if (n_new > 0)
        OJ_TRY(add_entries(b, n_new, err));
    if (b->has_repeats)
        drop_superseded(b);
    return classify(b, err);
}

/* --- 3 all anew ------------------------------------------------------------
 */

static int is_cheaper_anew(const struct live_batch *b)
{
    int64_t n = b->live->state->n_points + b->counts.n_put;
    return b->n_movers * 100 > n * MOST_PERCENT_MOVED;
}

/* Makes a bitmap of the places whose points the batch changes. */
static oj_status mark_changed_places(const struct live_batch *b, uint64_t **out,
                                     struct oj_error *err)
{
    const struct live_ids *ids = &b->live->ids;
    uint64_t *bits;
    OJ_NEW_ZEROED(bits, b->live->state->n_pages * LIVE_PAGE_POINTS / 64 + 1,
                  err);
    for (int64_t i = 0; i < b->n; i++)
    {
        const struct live_entry *e;
        uint64_t place;
        if (b->entry[i] == SUPERSEDED)
            continue;
        e = &ids->entry[b->entry[i]];
        if (e->page == LIVE_NOWHERE)
            continue;
        place = PLACE_OF(e->page, e->slot);
        bits[place / 64] |= UINT64_C(1) << (place % 64);
    }
    *out = bits;
    return OJ_OK;
}

static int64_t add_points_of_batch(const struct live_batch *b,
                                   struct live_point *point)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++)
    {
        if (b->entry[i] != SUPERSEDED && is_joinable(b->x[i], b->y[i]))
            point[n++] =
                (struct live_point){b->x[i], b->y[i], b->id[i], b->entry[i]};
    }
    return n;
}

/* Adds the points that the batch does not change; returns their number. */
static int64_t add_points_of_state(const struct live_state *state,
                                   const uint64_t *changed,
                                   struct live_point *point)
{
    int64_t n = 0;
    for (int64_t p = 0; p < state->n_pages; p++)
    {
        const struct live_page *page = &state->page[p];
        const struct live_block *block = page->block;
        for (int slot = 0; block != NULL && slot < page->n; slot++)
        {
            uint64_t place = PLACE_OF(p, (uint64_t)slot);
            if (block->x[slot] == block->x[slot] &&
                !(changed[place / 64] >> (place % 64) & 1))
                point[n++] = (struct live_point){block->x[slot], block->y[slot],
                                                 block->id[slot], -1};
        }
    }
    return n;
}

static oj_status build_anew(struct live_batch *b, struct oj_error *err)
{
    struct oj_live *live = b->live;
    int64_t all = live->state->n_points + b->counts.n_put - b->counts.n_removed;
    struct live_point *point = oj_malloc(2 * all, sizeof *point);
    uint64_t *changed = NULL;
    oj_status status = point != NULL
                           ? mark_changed_places(b, &changed, err)
                           : oj_fail_nomem(err, 2 * all, sizeof *point);
    if (status == OJ_OK)
    {
        int64_t n = add_points_of_batch(b, point);
        n += add_points_of_state(live->state, changed, point + n);
        status = live_rebuild(live, n, point, point + n, err);
    }
    oj_free(point);
    oj_free(changed);
    if (status == OJ_OK)
        b->counts.n_rebuilt = 1;
    return status;
}

/* --- 4 reserve -------------------------------------------------------------
 */

/* Returns the end of the run of movers that have the target of the first. */
static int64_t end_of_group(const struct live_batch *b, int64_t first)
{
    int64_t end = first + 1;
    while (end < b->n_movers && b->sorted[end].key == b->sorted[first].key)
        end++;
    return end;
}

/* Returns how many pages the chain of a leaf lacks for `more` points, after the
 * points that leave are gone. */
static int64_t count_missing_pages(const struct live_batch *b, uint32_t page,
                                   int64_t more)
{
    const struct live_page *pages = b->live->state->page;
    int64_t room = 0;
    for (; page != LIVE_NONE; page = pages[page].next)
        room +=
            LIVE_PAGE_POINTS - pages[page].n_points + b->live->leaving[page];
    return more > room ? live_pages_of(more - room) : 0;
}

static int64_t count_new_pages(const struct live_batch *b)
{
    int64_t n = 0, end;
    for (int64_t i = 0; i < b->n_movers; i = end)
    {
        uint64_t key = b->sorted[i].key;
        end = end_of_group(b, i);
        n += key >= KEY_OF_NONE
                 ? live_pages_of(end - i)
                 : count_missing_pages(b, (uint32_t)key, end - i);
    }
    return n;
}

/* Returns an upper bound of the pages that need a new block, because readers
 * use the old one. */
static int64_t count_blocks_to_copy(const struct live_batch *b)
{
    int64_t n = b->n_in_place + b->n_left + b->n_movers;
    if (b->live->newest_read < 0)
        return 0;
    return n < b->live->state->n_leaves ? n : b->live->state->n_leaves;
}

/* From here on a state with readers is not changed. If the current state has no
 * readers, new readers wait until the change is complete. */
static void begin_change(struct oj_live *live)
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
    live_publish(live, live->state);
}

static oj_status reserve(struct live_batch *b, struct oj_error *err)
{
    struct oj_live *live = b->live;
    int64_t n_pages = b->n_promised = count_new_pages(b);
    OJ_TRY(live_blocks_reserve(&live->blocks, n_pages + count_blocks_to_copy(b),
                               err));
    if (!live->is_changing)
    {
        OJ_TRY(live_state_copy(live->state, n_pages, &b->state, err));
        b->state->number++;
        return OJ_OK;
    }
    b->state = live->state;
    return live_state_reserve_pages(b->state, n_pages, err);
}

/* --- 5 in place, and leaving -----------------------------------------------
 */

/* Returns the page for changing. If readers may use its block, the block is
 * copied first. */
static struct live_page *change_page(struct live_batch *b, uint32_t number)
{
    struct oj_live *live = b->live;
    struct live_page *page = &b->state->page[number];
    struct live_block *block;
    if (page->birth > live->newest_read)
        return page;
    block = live_blocks_take(&live->blocks);
    memcpy(block, page->block, sizeof *block);
    live_drop_block(live, page);
    page->block = block;
    page->birth = b->state->number;
    return page;
}

static void prefetch_place(const struct live_batch *b, uint64_t place)
{
    const struct live_page *page;
    int slot = (int)(place % LIVE_PAGE_POINTS);
    if (place == NOT_IN_PLACE)
        return;
    page = &b->state->page[place / LIVE_PAGE_POINTS];
    __builtin_prefetch(&page->block->x[slot], 1);
    __builtin_prefetch(&page->block->y[slot], 1);
}

static void move_in_place(struct live_batch *b)
{
    for (int64_t i = 0; b->n_in_place > 0 && i < b->n; i++)
    {
        uint64_t place = b->place[i];
        struct live_page *page;
        int slot = (int)(place % LIVE_PAGE_POINTS);
        if (i + AHEAD < b->n)
            prefetch_place(b, b->place[i + AHEAD]);
        if (place == NOT_IN_PLACE)
            continue;
        page = change_page(b, (uint32_t)(place / LIVE_PAGE_POINTS));
        page->block->x[slot] = b->x[i];
        page->block->y[slot] = b->y[i];
        if (oj_box_contains_point(&page->box, b->x[i], b->y[i]))
            continue;
        oj_box_add_point(&page->box, b->x[i], b->y[i]);
        if (!oj_box_contains_point(&page->cell, b->x[i], b->y[i]))
            live_state_cover(b->state, page->parent, &page->box);
    }
}

static void leave_page(struct live_batch *b, int64_t row)
{
    const struct live_entry *e = &b->live->ids.entry[b->entry[row]];
    if (e->page == LIVE_NOWHERE)
        return;
    live_page_remove(change_page(b, e->page), e->slot);
    b->state->n_points--;
}

static void prefetch_leaving(const struct live_batch *b, int64_t row)
{
    const struct live_entry *e = &b->live->ids.entry[b->entry[row]];
    if (e->page == LIVE_NOWHERE)
        return;
    __builtin_prefetch(&b->state->page[e->page].block->x[e->slot], 1);
    __builtin_prefetch(&b->state->page[e->page].block->id[e->slot], 1);
}

static void leave_pages(struct live_batch *b)
{
    for (int64_t i = 0; i < b->n_movers; i++)
    {
        if (i + AHEAD < b->n_movers)
            prefetch_leaving(b, b->mover[i + AHEAD].value);
        leave_page(b, b->mover[i].value);
    }
    for (int64_t i = 0; i < b->n_leavers; i++)
        leave_page(b, b->leaver[i]);
}

/* --- 6 arriving ------------------------------------------------------------
 */

static void set_place(struct live_batch *b, int64_t row, uint32_t page,
                      int slot)
{
    struct live_entry *e = &b->live->ids.entry[b->entry[row]];
    e->page = page;
    e->slot = (uint16_t)slot;
}

static void free_page(struct live_batch *b, uint32_t page)
{
    live_drop_block(b->live, &b->state->page[page]);
    live_state_free_page(b->state, page);
}

/* Frees all pages of the chain of a leaf. */
static void free_chain(struct live_batch *b, uint32_t page)
{
    while (page != LIVE_NONE)
    {
        uint32_t next = b->state->page[page].next;
        free_page(b, page);
        page = next;
    }
}

static int64_t count_points_of_leaf(const struct live_state *state,
                                    uint32_t page)
{
    int64_t n = 0;
    for (; page != LIVE_NONE; page = state->page[page].next)
        n += state->page[page].n_points;
    return n;
}

/* Appends the points of a leaf to b->point, which must have room. */
static int64_t gather_leaf(struct live_batch *b, uint32_t page, int64_t n)
{
    for (; page != LIVE_NONE; page = b->state->page[page].next)
    {
        const struct live_page *from = &b->state->page[page];
        const struct live_block *block = from->block;
        for (int slot = 0; slot < from->n; slot++)
        {
            if (block->x[slot] == block->x[slot])
                b->point[n++] = (struct live_point){
                    block->x[slot], block->y[slot], block->id[slot], -1};
        }
    }
    return n;
}

/* Makes room to split n points. Returns 0 if memory is missing: the page is
 * then not split. */
static int has_room_to_cut(struct live_batch *b, int64_t n)
{
    return oj_reserve(&b->point, 0, 2 * n, &b->cap_points, sizeof *b->point,
                      NULL) == OJ_OK;
}

/* Splits b->point[0 .. n) into a subtree and makes room for its pages and
 * nodes. Returns 0 if that is not possible. */
static int prepare_subtree(struct live_batch *b, int64_t n,
                           const struct oj_box *cell, int depth)
{
    struct oj_live *live = b->live;
    struct live_split split = {live->rule, live->frame, LIVE_PAGE_POINTS, 0};
    struct live_leaf whole = {0, n, *cell, LIVE_NONE, depth};
    int64_t n_pages = 0;
    b->subtree.n_nodes = b->subtree.n_leaves = 0;
    if (live_split_points(&split, b->point, b->point + n, &whole, &b->subtree,
                          NULL) != OJ_OK)
        return 0;
    for (int64_t i = 0; i < b->subtree.n_leaves; i++)
        n_pages += live_pages_of(b->subtree.leaf[i].n);
    n_pages += b->n_promised;
    return live_state_reserve_pages(b->state, n_pages, NULL) == OJ_OK &&
           live_state_reserve_nodes(b->state, b->subtree.n_nodes, NULL) ==
               OJ_OK &&
           live_blocks_reserve(&live->blocks, n_pages + count_blocks_to_copy(b),
                               NULL) == OJ_OK &&
           oj_reserve(&b->node_of, 0, b->subtree.n_nodes, &b->cap_node_of,
                      sizeof *b->node_of, NULL) == OJ_OK;
}

/* Replaces a leaf by a subtree that holds its points and the movers first to
 * end - 1. Returns 0, with nothing changed, if memory is missing. */
static int cut_leaf(struct live_batch *b, uint32_t page, int64_t first,
                    int64_t end)
{
    const struct live_page *head = &b->state->page[page];
    struct oj_box cell = head->cell;
    uint32_t parent = head->parent;
    int depth = head->depth;
    int64_t n = count_points_of_leaf(b->state, page) + end - first;
    if (!has_room_to_cut(b, n))
        return 0;
    n = gather_leaf(b, page, 0);
    for (int64_t i = first; i < end; i++)
    {
        int64_t row = b->sorted[i].value;
        b->point[n++] = (struct live_point){b->x[row], b->y[row], b->id[row],
                                            b->entry[row]};
    }
    if (!prepare_subtree(b, n, &cell, depth))
        return 0;
    free_chain(b, page);
    live_place_subtree(b->live, b->state, &b->subtree, b->point, parent,
                       b->node_of);
    return 1;
}

/* Returns a page with room in the chain of a leaf, from `page` on; appends a
 * page if there is none. */
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

static void add_to_leaf(struct live_batch *b, uint32_t page, int64_t first,
                        int64_t end)
{
    for (int64_t i = first; i < end; i++)
    {
        int64_t row = b->sorted[i].value;
        page = find_page_with_room(b, page);
        set_place(b, row, page,
                  live_page_add(change_page(b, page), b->x[row], b->y[row],
                                b->id[row]));
    }
}

/* Makes a page for a child that has none. */
static uint32_t make_leaf(struct live_batch *b, uint32_t parent)
{
    struct live_state *state = b->state;
    struct oj_box cell = {-INFINITY, -INFINITY, INFINITY, INFINITY};
    int depth = 0;
    uint32_t page;
    if (parent != LIVE_NONE)
    {
        const struct live_node *node = &state->node[parent / 4];
        cell = live_node_child_cell(node, (int)(parent % 4));
        depth = node->depth + 1;
    }
    page = live_state_new_page(state, live_blocks_take(&b->live->blocks), &cell,
                               parent, depth);
    live_state_set_child(state, parent, live_child_of_page(page));
    return page;
}

static void prefetch_arriving(const struct live_batch *b, int64_t at)
{
    const struct live_page *page;
    if (at >= b->n_movers || b->sorted[at].key >= KEY_OF_NONE)
        return;
    page = &b->state->page[b->sorted[at].key];
    if (page->block == NULL)
        return;
    __builtin_prefetch(&page->block->x[page->first_hole & 255], 1);
    __builtin_prefetch(&page->block->y[page->first_hole & 255], 1);
    __builtin_prefetch(&page->block->id[page->first_hole & 255], 1);
    __builtin_prefetch(&b->live->ids.entry[b->entry[b->sorted[at].value]], 1);
}

static void arrive(struct live_batch *b)
{
    int64_t end;
    for (int64_t first = 0; first < b->n_movers; first = end)
    {
        uint64_t key = b->sorted[first].key;
        uint32_t page;
        end = end_of_group(b, first);
        prefetch_arriving(b, end + AHEAD / 2);
        page = key >= KEY_OF_NONE ? make_leaf(b, (uint32_t)key) : (uint32_t)key;
        if (count_points_of_leaf(b->state, page) + end - first <=
                LIVE_PAGE_POINTS ||
            !cut_leaf(b, page, first, end))
            add_to_leaf(b, page, first, end);
    }
    b->state->n_points += b->n_movers;
}

/* --- 7 tidying up ----------------------------------------------------------
 */

/* Removes a child of a node, and then every ancestor that has no child left. */
static void remove_child(struct live_state *state, uint32_t parent)
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

/* Returns the number of points of a node whose children are all leaves; -1:
 * some child is a node. */
static int64_t count_points_of_leaves(const struct live_state *state,
                                      const struct live_node *node)
{
    int64_t n = 0;
    for (int c = 0; c < 4; c++)
    {
        if (node->child[c] >= 0)
            return -1;
        if (node->child[c] != LIVE_NO_CHILD)
            n +=
                count_points_of_leaf(state, live_page_of_child(node->child[c]));
    }
    return n;
}

/* Replaces a node by one page with the points of its leaves. Returns 0 if
 * memory is missing. */
static int unite_leaves(struct live_batch *b, int32_t at, int64_t n)
{
    struct live_node node = b->state->node[at];
    if (!has_room_to_cut(b, n))
        return 0;
    n = 0;
    for (int c = 0; c < 4; c++)
    {
        if (node.child[c] != LIVE_NO_CHILD)
            n = gather_leaf(b, live_page_of_child(node.child[c]), n);
    }
    if (!prepare_subtree(b, n, &node.cell, node.depth))
        return 0;
    for (int c = 0; c < 4; c++)
    {
        if (node.child[c] != LIVE_NO_CHILD)
            free_chain(b, live_page_of_child(node.child[c]));
    }
    live_state_free_node(b->state, at);
    live_place_subtree(b->live, b->state, &b->subtree, b->point, node.parent,
                       b->node_of);
    return 1;
}

/* Unites the leaves of a parent if they are small, then those of its parent,
 * and so on. */
static void unite_upwards(struct live_batch *b, uint32_t parent)
{
    while (parent != LIVE_NONE)
    {
        int32_t at = (int32_t)(parent / 4);
        const struct live_node *node = &b->state->node[at];
        int64_t n = count_points_of_leaves(b->state, node);
        parent = node->parent;
        if (n < 0 || n > MOST_TO_UNITE || !unite_leaves(b, at, n))
            return;
    }
}

/* Removes pages without points from the chain of a leaf. Returns the first page
 * left, or LIVE_NONE. */
static uint32_t shorten_chain(struct live_batch *b, uint32_t head)
{
    uint32_t first = LIVE_NONE, *to = &first, next;
    for (uint32_t page = head; page != LIVE_NONE; page = next)
    {
        next = b->state->page[page].next;
        if (b->state->page[page].n_points == 0)
        {
            free_page(b, page);
            continue;
        }
        *to = page;
        to = &b->state->page[page].next;
        *to = LIVE_NONE;
    }
    return first;
}

static void tidy_leaf(struct live_batch *b, uint32_t page)
{
    struct live_state *state = b->state;
    uint32_t parent = state->page[page].parent, first;
    int32_t child = parent == LIVE_NONE
                        ? state->root
                        : state->node[parent / 4].child[parent % 4];
    first = shorten_chain(b, live_page_of_child(child));
    if (first == LIVE_NONE)
        remove_child(state, parent);
    else
        live_state_set_child(state, parent, live_child_of_page(first));
    if (parent != LIVE_NONE && first != LIVE_NONE)
        unite_upwards(b, parent);
}

/* Tidies all pages that points left. A page number may have been freed and
 * reused since; tidying the new page does no harm. */
static void tidy_pages(struct live_batch *b)
{
    for (int64_t i = 0; i < b->n_left; i++)
    {
        uint32_t page = b->left[i];
        if (page < b->state->n_pages && b->state->page[page].block != NULL)
            tidy_leaf(b, page);
    }
}

/* --- a batch ---------------------------------------------------------------
 */

static oj_status change_pages(struct live_batch *b, struct oj_error *err)
{
    struct oj_keyed *scratch;
    oj_status status;
    locate_movers(b);
    OJ_NEW(scratch, 2 * b->n_movers, err);
    for (int64_t i = 0; i < b->n_movers; i++)
        scratch[i] = b->mover[i];
    b->sorted = oj_radix_sort(scratch, scratch + b->n_movers, b->n_movers);
    begin_change(b->live);
    status = reserve(b, err);
    if (status != OJ_OK)
    {
        end_change_without_effect(b->live);
        oj_free(scratch);
        return status;
    }
    move_in_place(b);
    leave_pages(b);
    arrive(b);
    tidy_pages(b);
    b->state->edition++;
    live_publish(b->live, b->state);
    oj_free(scratch);
    return OJ_OK;
}

static void remove_leavers_from_ids(struct live_batch *b)
{
    struct live_ids *ids = &b->live->ids;
    for (int64_t i = 0; i < b->n_leavers; i++)
    {
        int64_t entry = live_ids_find(ids, b->id[b->leaver[i]]);
        if (entry >= 0)
            live_ids_remove(ids, entry);
    }
}

static void add_counts(struct oj_live_counts *to,
                       const struct oj_live_counts *of)
{
    to->n_batches++;
    to->n_put += of->n_put;
    to->n_moved += of->n_moved;
    to->n_removed += of->n_removed;
    to->n_unknown += of->n_unknown;
    to->n_unjoinable += of->n_unjoinable;
    to->n_superseded += of->n_superseded;
    to->n_rebuilt += of->n_rebuilt;
}

static oj_status run_batch(struct live_batch *b, struct oj_error *err)
{
    struct oj_live *live = b->live;
    oj_status status;
    status = find_and_classify(b, err);
    if (status == OJ_OK && is_cheaper_anew(b))
    {
        begin_change(live);
        status = build_anew(b, err);
        if (status != OJ_OK)
            end_change_without_effect(live);
    }
    else if (status == OJ_OK)
        status = change_pages(b, err);
    clear_leaving(b);
    if (status != OJ_OK)
    {
        remove_ids_without_place(b);
        return status;
    }
    remove_leavers_from_ids(b);
    add_counts(&live->counts, &b->counts);
    return OJ_OK;
}

oj_status oj_live_apply(struct oj_live *live, int64_t n, const int64_t *id,
                        const double *x, const double *y, struct oj_error *err)
{
    struct live_batch b = {.live = live, .n = n, .id = id, .x = x, .y = y};
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    if (n < 0 || n > LIVE_MOST_IDS)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a batch has 0 to %d changes, not %lld", LIVE_MOST_IDS,
                       (long long)n);
    pthread_mutex_lock(&live->writer);
    status = run_batch(&b, &why);
    pthread_mutex_unlock(&live->writer);
    oj_free(b.entry);
    oj_free(b.place);
    oj_free(b.mover);
    oj_free(b.leaver);
    oj_free(b.left);
    oj_free(b.point);
    oj_free(b.node_of);
    live_subtree_free(&b.subtree);
    return status == OJ_OK ? OJ_OK : oj_fail(err, status, "%s", why.message);
}
