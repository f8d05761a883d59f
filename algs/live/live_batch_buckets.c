#include "live_batch.h"

#include "../../flatten/base/oj_alloc.h"
#include "../foundations/base/cpu_morton_order.h"

#include <string.h>

/* Pages are divided into at most MOST_BUCKETS buckets, if there are at least
 * LEAST_FOR_BUCKETS rows. */
#define MOST_BUCKETS 256
#define LEAST_FOR_BUCKETS 16384

/* --- 4 deal ----------------------------------------------------------------
 */

static int64_t bucket_of_key(const struct live_batch *b, uint64_t key)
{
    return key >= LIVE_KEY_OF_NONE ? b->n_buckets - 1
                                   : (int64_t)(key >> b->shift);
}

static int64_t *moving_counts_of_slice(const struct live_batch *b,
                                       int64_t slice)
{
    return b->start + slice * b->n_buckets;
}

static int64_t *leaving_counts_of_slice(const struct live_batch *b,
                                        int64_t slice)
{
    return b->start + (b->n_slices + slice) * b->n_buckets;
}

/* Sets the key of each of n movers to its target (LIVE_KEY_OF_NONE). */
static void find_target_pages_of_movers(const struct live_batch *b, int64_t n,
                                        struct oj_keyed *mover)
{
    struct live_located place[LIVE_LOCATED_AT_ONCE];
    for (int64_t at = 0; at < n; at += LIVE_LOCATED_AT_ONCE)
    {
        int k = n - at < LIVE_LOCATED_AT_ONCE ? (int)(n - at)
                                              : LIVE_LOCATED_AT_ONCE;
        for (int i = 0; i < k; i++)
        {
            place[i].x = b->x[mover[at + i].value];
            place[i].y = b->y[mover[at + i].value];
        }
        live_state_locate_points(b->live->state, k, place);
        for (int i = 0; i < k; i++)
            mover[at + i].key = place[i].child == LIVE_NO_CHILD
                                    ? LIVE_KEY_OF_NONE + place[i].parent
                                    : live_page_of_child(place[i].child);
    }
}

/* Lists the movers of a slice with their targets, and counts movers and leavers
 * by bucket. */
static void list_and_count_movers_of_slice(int64_t first, int64_t end,
                                           void *user)
{
    struct live_batch *b = user;
    int64_t slice = first / b->rows_of_slice, n = 0;
    const struct live_rows *rows = &b->rows[slice];
    struct oj_keyed *mover = b->mover + rows->first_arriving;
    int64_t *n_movers = moving_counts_of_slice(b, slice);
    int64_t *n_leavers = leaving_counts_of_slice(b, slice);
    if (rows->n_arriving + rows->n_leaving == 0)
        return;
    for (int64_t i = first; i < end; i++)
    {
        if (b->place[i] & LIVE_LEAVES)
            n_leavers[live_batch_page_of_place(b->place[i]) >> b->shift]++;
        if (b->place[i] & LIVE_ARRIVES)
            mover[n++].value = i;
    }
    find_target_pages_of_movers(b, n, mover);
    for (int64_t i = 0; i < n; i++)
        n_movers[bucket_of_key(b, mover[i].key)]++;
}

static void distribute_slice_to_buckets(int64_t first, int64_t end, void *user)
{
    struct live_batch *b = user;
    int64_t slice = first / b->rows_of_slice;
    const struct live_rows *rows = &b->rows[slice];
    const struct oj_keyed *mover = b->mover + rows->first_arriving;
    int64_t *next = moving_counts_of_slice(b, slice);
    for (int64_t i = 0; i < rows->n_arriving; i++)
        b->sorted[next[bucket_of_key(b, mover[i].key)]++] = mover[i];
    next = leaving_counts_of_slice(b, slice);
    for (int64_t i = first; rows->n_leaving > 0 && i < end; i++)
    {
        uint64_t place = b->place[i] & (LIVE_NO_PLACE - 1);
        if (b->place[i] & LIVE_LEAVES)
            b->leaver[next[live_batch_page_of_place(place) >> b->shift]++] =
                place;
    }
}

/* Counts the points that leave each page, and lists these pages. */
static void count_leaving_points_and_list_pages(struct live_batch *b,
                                                int64_t bucket)
{
    uint32_t *n_leaving = b->live->leaving;
    uint32_t *left = b->left + b->first_leaver[bucket];
    int64_t n = 0;
    for (int64_t i = b->first_leaver[bucket]; i < b->first_leaver[bucket + 1];
         i++)
    {
        uint32_t page = live_batch_page_of_place(b->leaver[i]);
        if (n_leaving[page]++ == 0)
            left[n++] = page;
    }
    b->bucket[bucket].n_left = n;
}

/* Returns an upper bound of the number of pages that the chain of a leaf lacks
 * for `more` arriving points. Subtracts leaving points only for pages of this
 * bucket, because other buckets may not be counted yet. */
static int64_t count_missing_pages(const struct live_batch *b, int64_t bucket,
                                   uint32_t page, int64_t more)
{
    const struct live_page *pages = b->live->state->page;
    int64_t room = 0;
    for (; page != LIVE_NONE; page = pages[page].next)
    {
        room += LIVE_PAGE_POINTS - pages[page].n_points;
        if (page >> b->shift == bucket)
            room += b->live->leaving[page];
    }
    return more > room ? live_count_pages_of_leaf(more - room) : 0;
}

/* Sorts the movers of a bucket by target. */
static void sort_movers(struct live_batch *b, int64_t bucket)
{
    int64_t first = b->first_mover[bucket];
    int64_t n = b->first_mover[bucket + 1] - first;
    struct oj_keyed *sorted =
        oj_radix_sort(b->sorted + first, b->mover + first, n);
    if (sorted != b->sorted + first)
        memcpy(b->sorted + first, sorted, (size_t)n * sizeof *sorted);
}

static void prepare_bucket(int64_t bucket, int thread, void *user)
{
    struct live_batch *b = user;
    int64_t end = b->first_mover[bucket + 1], next, n = 0;
    (void)thread;
    count_leaving_points_and_list_pages(b, bucket);
    sort_movers(b, bucket);
    for (int64_t i = b->first_mover[bucket]; i < end; i = next)
    {
        uint64_t key = b->sorted[i].key;
        next = live_batch_end_of_group(b, i, end);
        n += key >= LIVE_KEY_OF_NONE
                 ? live_count_pages_of_leaf(next - i)
                 : count_missing_pages(b, bucket, (uint32_t)key, next - i);
    }
    b->bucket[bucket].n_promised = n;
}

/* Allocates bucket and the arrays that follow it in memory, at once, which
 * makes batches of few rows faster. */
static oj_status allocate_buckets(struct live_batch *b, struct oj_error *err)
{
    int64_t n_starts = 2 * b->n_slices * b->n_buckets;
    int64_t n_cleared = b->n_buckets * (int64_t)sizeof *b->bucket +
                        n_starts * (int64_t)sizeof *b->start;
    int64_t bytes =
        n_cleared + 2 * (b->n_buckets + 1) * (int64_t)sizeof *b->first_mover +
        2 * b->all.n_arriving * (int64_t)sizeof *b->mover +
        b->all.n_leaving * (int64_t)(sizeof *b->leaver + sizeof *b->left);
    b->bucket = oj_malloc(bytes, 1);
    if (b->bucket == NULL)
        return oj_fail_nomem(err, bytes, 1);
    memset(b->bucket, 0, (size_t)n_cleared);
    b->start = (int64_t *)(b->bucket + b->n_buckets);
    b->first_mover = b->start + n_starts;
    b->first_leaver = b->first_mover + b->n_buckets + 1;
    b->mover = (struct oj_keyed *)(b->first_leaver + b->n_buckets + 1);
    b->sorted = b->mover + b->all.n_arriving;
    b->leaver = (uint64_t *)(b->sorted + b->all.n_arriving);
    b->left = (uint32_t *)(b->leaver + b->all.n_leaving);
    return OJ_OK;
}

static oj_status reserve_buckets(struct live_batch *b, struct oj_error *err)
{
    struct oj_live *live = b->live;
    int64_t n_pages = live->state->n_pages, before = live->cap_leaving;
    b->shift = b->n < LEAST_FOR_BUCKETS ? 31 : 0;
    while (n_pages >> b->shift >= MOST_BUCKETS)
        b->shift++;
    b->n_buckets = (n_pages >> b->shift) + 2;
    OJ_ROOM(live->leaving, before, n_pages, live->cap_leaving, err);
    if (live->cap_leaving > before)
        memset(live->leaving + before, 0,
               (size_t)(live->cap_leaving - before) * sizeof *live->leaving);
    return allocate_buckets(b, err);
}

oj_status live_batch_distribute_to_buckets(struct live_batch *b,
                                           struct oj_error *err)
{
    OJ_TRY(reserve_buckets(b, err));
    live_batch_run_on_slices(b, list_and_count_movers_of_slice);
    oj_order_counts_to_positions(b->n_slices, b->n_buckets,
                                 moving_counts_of_slice(b, 0), b->first_mover);
    oj_order_counts_to_positions(b->n_slices, b->n_buckets,
                                 leaving_counts_of_slice(b, 0),
                                 b->first_leaver);
    live_batch_run_on_slices(b, distribute_slice_to_buckets);
    live_batch_run_on_buckets(b, prepare_bucket);
    for (int64_t i = 0; i < b->n_buckets; i++)
        b->n_promised += b->bucket[i].n_promised;
    return OJ_OK;
}

void live_batch_clear_leaving(struct live_batch *b, int64_t bucket)
{
    const uint32_t *left = b->left + b->first_leaver[bucket];
    for (int64_t i = 0; i < b->bucket[bucket].n_left; i++)
        b->live->leaving[left[i]] = 0;
}
