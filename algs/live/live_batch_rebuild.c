#include "live_batch.h"

#include "../../flatten/base/oj_alloc.h"

/* The tree is rebuilt if more than this percentage of the points change pages.
 * Moving a point to another page costs 1.2 to 1.4 times as much as building it
 * into a new tree (measured by oj_bench_live). */
#define MOST_PERCENT_MOVED 75

/* --- 3 all anew ------------------------------------------------------------
 */

int live_batch_is_rebuild_cheaper(const struct live_batch *b)
{
    int64_t n = b->live->state->n_points + b->all.counts.n_put;
    return b->all.n_arriving * 100 > n * MOST_PERCENT_MOVED;
}

/* Pages per task of a thread. */
#define PAGES_AT_ONCE 256

/* Words of the bitmap of a page. */
#define WORDS_OF_PAGE (LIVE_PAGE_POINTS / 64)

/* The points of a new tree. */
struct live_gathering
{
    const struct live_batch *b;
    uint64_t *changed;    /* [pages][WORDS_OF_PAGE] one bit for each slot; 1:
                             the batch changes its point */
    int64_t *first_point; /* [n_slices] index in `point` of the first point of
                             each slice of rows */
    int64_t *first_kept;  /* [pages / PAGES_AT_ONCE, rounded up] index in
                             `point` of the first kept point of each group of
                             pages */
    struct live_point *point;
};

static void mark_changed_slots(int64_t first, int64_t end, void *user)
{
    struct live_gathering *g = user;
    const struct live_batch *b = g->b;
    for (int64_t i = first; i < end; i++)
    {
        uint64_t place = b->place[i] & ~(LIVE_LEAVES | LIVE_ARRIVES);
        uint64_t bit = UINT64_C(1) << (place % 64);
        if (place == LIVE_NO_PLACE)
            continue;
        if (b->n_threads > 1)
            __atomic_fetch_or(&g->changed[place / 64], bit, __ATOMIC_RELAXED);
        else
            g->changed[place / 64] |= bit;
    }
}

static void add_points_of_rows(int64_t first, int64_t end, void *user)
{
    struct live_gathering *g = user;
    const struct live_batch *b = g->b;
    int64_t at = g->first_point[first / b->rows_of_slice];
    for (int64_t i = first; i < end; i++)
    {
        if (b->entry[i] != LIVE_SUPERSEDED &&
            live_batch_can_join_point(b->x[i], b->y[i]))
            g->point[at++] =
                (struct live_point){b->x[i], b->y[i], b->id[i], b->entry[i]};
    }
}

/* Returns the number of points of a page that the batch does not change. */
static int count_unchanged_points(const struct live_gathering *g, int64_t page)
{
    const uint64_t *changed = g->changed + page * WORDS_OF_PAGE;
    int n = g->b->live->state->page[page].n_points;
    for (int i = 0; i < WORDS_OF_PAGE; i++)
        n -= __builtin_popcountll(changed[i]);
    return n;
}

static void count_points_of_pages(int64_t first, int64_t end, void *user)
{
    struct live_gathering *g = user;
    int64_t n = 0;
    for (int64_t p = first; p < end; p++)
        n += count_unchanged_points(g, p);
    g->first_kept[first / PAGES_AT_ONCE] = n;
}

static void add_points_of_pages(int64_t first, int64_t end, void *user)
{
    struct live_gathering *g = user;
    int64_t at = g->first_kept[first / PAGES_AT_ONCE];
    for (int64_t p = first; p < end; p++)
    {
        const struct live_page *page = &g->b->live->state->page[p];
        const struct live_block *block = page->block;
        const uint64_t *changed = g->changed + p * WORDS_OF_PAGE;
        if (count_unchanged_points(g, p) == 0)
            continue;
        for (int slot = 0; slot < page->n; slot++)
        {
            if (block->x[slot] == block->x[slot] &&
                !(changed[slot / 64] >> (slot % 64) & 1))
                g->point[at++] = (struct live_point){
                    block->x[slot], block->y[slot], block->id[slot], -1};
        }
    }
}

/* Replaces counts by their prefix sums, the first of which is `first`. Returns
 * first plus the sum of all counts. */
static int64_t counts_to_prefix_sums(int64_t n, int64_t *count, int64_t first)
{
    for (int64_t i = 0; i < n; i++)
    {
        int64_t next = first + count[i];
        count[i] = first;
        first = next;
    }
    return first;
}

/* Gathers all points as they are after the batch. Returns their number. */
static int64_t gather_points(struct live_gathering *g)
{
    const struct live_batch *b = g->b;
    int64_t n_pages = b->live->state->n_pages, n;
    int64_t n_groups = (n_pages + PAGES_AT_ONCE - 1) / PAGES_AT_ONCE;
    for (int64_t i = 0; i < b->n_slices; i++)
        g->first_point[i] = b->rows[i].n_in_place + b->rows[i].n_arriving;
    n = counts_to_prefix_sums(b->n_slices, g->first_point, 0);
    oj_parallel_slices(b->n_threads, b->n, b->rows_of_slice, mark_changed_slots,
                       g);
    oj_parallel_slices(b->n_threads, n_pages, PAGES_AT_ONCE,
                       count_points_of_pages, g);
    n = counts_to_prefix_sums(n_groups, g->first_kept, n);
    oj_parallel_slices(b->n_threads, b->n, b->rows_of_slice, add_points_of_rows,
                       g);
    oj_parallel_slices(b->n_threads, n_pages, PAGES_AT_ONCE,
                       add_points_of_pages, g);
    return n;
}

void live_free_gathered(struct oj_live *live)
{
    oj_free(live->gathered);
    live->gathered = NULL;
    live->cap_gathered = 0;
}

/* Makes room for n points in live->gathered, without growing it by half as
 * OJ_ROOM() does. Memory that is used again saves 5 % of the time of
 * samples/fleet -vehicles 1000000, whose batches all rebuild the tree. */
static oj_status reserve_points(struct oj_live *live, int64_t n,
                                struct oj_error *err)
{
    if (live->gathered != NULL && live->cap_gathered >= n &&
        live->cap_gathered / 2 <= n)
        return OJ_OK;
    live_free_gathered(live);
    OJ_NEW(live->gathered, n, err);
    live->cap_gathered = n;
    return OJ_OK;
}

oj_status live_batch_rebuild(struct live_batch *b, struct oj_error *err)
{
    struct oj_live *live = b->live;
    int64_t n_pages = live->state->n_pages;
    int64_t all =
        live->state->n_points + b->all.counts.n_put - b->all.counts.n_removed;
    struct live_gathering g = {.b = b};
    oj_status status = reserve_points(live, 2 * all, err);
    g.point = live->gathered;
    g.changed = oj_calloc(n_pages * WORDS_OF_PAGE, sizeof *g.changed);
    g.first_point = oj_malloc(b->n_slices, sizeof *g.first_point);
    g.first_kept = oj_malloc(n_pages / PAGES_AT_ONCE + 1, sizeof *g.first_kept);
    if (status == OJ_OK &&
        (g.changed == NULL || g.first_point == NULL || g.first_kept == NULL))
        status = oj_fail_nomem(err, n_pages * WORDS_OF_PAGE, sizeof *g.changed);
    if (status == OJ_OK)
    {
        int64_t n = gather_points(&g);
        status = live_rebuild(live, n, g.point, g.point + n, err);
    }
    if (!live->was_rebuilt)
        live_free_gathered(live);
    oj_free(g.changed);
    oj_free(g.first_point);
    oj_free(g.first_kept);
    if (status == OJ_OK)
    {
        live->was_rebuilt = 1;
        b->all.counts.n_rebuilt = 1;
    }
    return status;
}
