/* A kept index on several devices: which changes and which rows concern a
 * device.
 *
 *   changes   every device gets the whole batch, puts the points of its region,
 *             and removes its points that go elsewhere (cuda_live_apply.cu)
 *   rows      every device gets all rows, and answers those that reach one of
 *             the boxes at the top of its tree; nearest: those whose points are
 *             in its region, and then those of other devices whose k-th
 *             point is so far away that a point of this device may be nearer
 *
 *  Source: G-PICS (Lewis and Tu 2022) deals out leaves and sends the queries of
 *  each leaf to its device; regions along the Morton order are ours. */
#include "cuda_live_query.cuh"

#include "../../flatten/base/oj_alloc.h"
#include "../foundations/device/cuda_reduce.cuh"

#include <stdlib.h>

/* Maximum number of points by which the regions are chosen: enough for the
 * numbers of points of two regions to differ by some thousandths only. */
#define MOST_SAMPLES 16384

/* --- regions -------------------------------------------------------------- */

static int by_code(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Calls use(x, y) for a sample of at most MOST_SAMPLES of n points, except for
 * points that no join takes. */
template <typename Use>
static void for_each_sample_point(int64_t n, const double *x, const double *y,
                                  Use use)
{
    int64_t step = n / MOST_SAMPLES + 1;
    for (int64_t i = 0; i < n; i += step)
    {
        if (oj_live_is_joinable(x[i], y[i]))
            use(x[i], y[i]);
    }
}

oj_status oj_cuda_live_choose_regions(int n_regions, int64_t n, const double *x,
                                      const double *y,
                                      struct oj_cuda_live_regions *out,
                                      struct oj_error *err)
{
    struct oj_cuda_live_regions regions = {n_regions, oj_box_empty(), {}};
    int64_t n_samples = 0;
    uint64_t *code = (uint64_t *)oj_malloc(MOST_SAMPLES, sizeof *code);
    if (code == NULL)
        return oj_fail_nomem(err, MOST_SAMPLES, sizeof *code);
    for_each_sample_point(n, x, y,
                          [&](double at_x, double at_y)
                          { oj_box_add_point(&regions.frame, at_x, at_y); });
    for_each_sample_point(n, x, y,
                          [&](double at_x, double at_y) {
                              code[n_samples++] = oj_live_morton_code(
                                  regions.frame, at_x, at_y);
                          });
    qsort(code, (size_t)n_samples, sizeof *code, by_code);
    for (int i = 1; i < n_regions; i++)
        regions.first_code[i] =
            n_samples == 0 ? UINT64_MAX : code[n_samples * i / n_regions];
    oj_free(code);
    *out = regions;
    return OJ_OK;
}

/* --- changes -------------------------------------------------------------- */

/* The last change of each id: open addressing by id. */
struct last_changes
{
    const int64_t *id;
    uint32_t *table; /* [mask + 1] 1 + the last change of an id, or 0 */
    uint32_t mask;

    __device__ uint32_t table_place_of_change(int64_t change) const
    {
        return (uint32_t)oj_live_hash_id(id[change]) & mask;
    }
    __device__ void insert_change(int64_t change) const
    {
        for (uint32_t at = table_place_of_change(change);; at = (at + 1) & mask)
        {
            uint32_t found = atomicCAS(&table[at], 0u, (uint32_t)change + 1);
            if (found == 0)
                return;
            if (id[found - 1] == id[change])
            {
                atomicMax(&table[at], (uint32_t)change + 1);
                return;
            }
        }
    }
    __device__ int is_last_change_of_id(int64_t change) const
    {
        for (uint32_t at = table_place_of_change(change);; at = (at + 1) & mask)
        {
            uint32_t found = table[at];
            if (id[found - 1] == id[change])
                return found == (uint32_t)change + 1;
        }
    }
};

struct removal_counts
{
    uint32_t n_removals, n_beyond;
};

struct add_removal_counts
{
    __device__ removal_counts operator()(removal_counts a,
                                         const removal_counts &b) const
    {
        a.n_removals += b.n_removals;
        a.n_beyond += b.n_beyond;
        return a;
    }
};

oj_status
oj_cuda_live_count_removals(struct oj_cuda_work *work,
                            const struct oj_cuda_live_changes *changes,
                            int64_t *n_removals, int64_t *n_beyond)
{
    const struct oj_cuda_live_changes c = *changes;
    struct oj_cuda_work own(work);
    struct last_changes all = {c.id, NULL, 1023};
    struct removal_counts count = {0, 0};
    while ((int64_t)all.mask < 2 * c.n)
        all.mask = 2 * all.mask + 1;
    OJ_TRY(own.allocate_zeros((int64_t)all.mask + 1, &all.table));
    const struct last_changes last = all;
    OJ_TRY(own.each(c.n, [=] __device__(int64_t i) { last.insert_change(i); }));
    OJ_TRY(oj_cuda_reduce(
        &own, c.n,
        [=] __device__(ptrdiff_t i)
        {
            struct removal_counts one = {0, 0};
            if (oj_live_is_joinable(c.x[i], c.y[i]) ||
                !last.is_last_change_of_id(i))
                return one;
            one.n_removals = 1;
            one.n_beyond = c.x[i] == c.x[i];
            return one;
        },
        add_removal_counts(), &count));
    *n_removals = count.n_removals;
    *n_beyond = count.n_beyond;
    return OJ_OK;
}

/* --- rows ----------------------------------------------------------------- */

/* Makes *row [*n_chosen], the numbers i of the rows for which wants(i) returns
 * 1. */
template <typename Wants>
static oj_status choose_rows(struct oj_cuda_work *work, int64_t n, Wants wants,
                             int64_t *n_chosen, const int32_t **row)
{
    struct oj_cuda_work own(work);
    uint32_t *at, n_wanted;
    int32_t *chosen;
    OJ_TRY(own.scan_of_computed_values(
        n,
        [=] __device__(ptrdiff_t i)
        { return i < n ? (uint32_t)wants((int64_t)i) : 0u; },
        &at, &n_wanted));
    OJ_TRY(work->make(n_wanted, &chosen));
    OJ_TRY(own.each(n,
                    [=] __device__(int64_t i)
                    {
                        if (at[i + 1] != at[i])
                            chosen[at[i]] = (int32_t)i;
                    }));
    *n_chosen = n_wanted;
    *row = chosen;
    return OJ_OK;
}

/* Returns 1 if points of region `number`, all of which lie in the n boxes, may
 * form a pair with the row. */
static __device__ __forceinline__ int
reaches_region(const struct oj_cuda_live_regions &regions, int number,
               const struct live_device_query_row &a, const struct oj_box *box,
               int64_t n)
{
    struct live_reach reach = live_code_range_in_reach(regions.frame, a);
    if ((number > 0 && reach.high < regions.first_code[number]) ||
        (number + 1 < regions.n && reach.low >= regions.first_code[number + 1]))
        return 0;
    for (int64_t i = 0; i < n; i++)
    {
        if (live_distance2_of_boxes(a.box, box[i]) <= a.bound2)
            return 1;
    }
    return 0;
}

int64_t oj_cuda_live_top_boxes(const struct oj_cuda_live_part *part,
                               const struct oj_box **box)
{
    const struct oj_cuda_live_pages *pages = &part->pages;
    int top = pages->n_levels - 1;
    *box = NULL;
    if (part->n_points == 0)
        return 0;
    *box = pages->node + pages->level_first[top];
    return pages->level_n[top];
}

oj_status oj_cuda_live_choose_rows(const struct oj_cuda_live_part *part,
                                   struct oj_cuda_work *work,
                                   const struct oj_cuda_live_regions *of,
                                   int number,
                                   const struct oj_relation *relation,
                                   const struct oj_cuda_live_rows *rows,
                                   int64_t *n, const int32_t **row)
{
    const struct oj_cuda_live_regions regions = *of;
    const struct live_device_query q = live_question_make(relation, rows);
    const struct oj_box *top;
    int64_t n_top = oj_cuda_live_top_boxes(part, &top);
    if (oj_relation_is_nearest(relation))
        return choose_rows(
            work, rows->n,
            [=] __device__(int64_t i)
            {
                return oj_live_region_of_point(regions, q.rows.x[i],
                                               q.rows.y[i]) == number;
            },
            n, row);
    return choose_rows(
        work, rows->n,
        [=] __device__(int64_t i)
        {
            struct live_device_query_row a;
            live_load_row(q, i, &a);
            return a.bound2 >= 0.0 &&
                   reaches_region(regions, number, a, top, n_top);
        },
        n, row);
}

oj_status oj_cuda_live_gather_rows(struct oj_cuda_work *work,
                                   const struct oj_cuda_live_rows *rows,
                                   int64_t n, const int32_t *row,
                                   struct oj_cuda_live_rows *out)
{
    *out = {};
    out->n = n;
    OJ_TRY(work->gather(n, rows->x, row, &out->x));
    OJ_TRY(work->gather(n, rows->y, row, &out->y));
    OJ_TRY(work->gather(n, rows->box, row, &out->box));
    OJ_TRY(work->gather(n, rows->fid, row, &out->fid));
    return work->gather(n, rows->max_distance, row, &out->max_distance);
}

oj_status oj_cuda_live_list_reaching_rows(
    struct oj_cuda_work *work, const struct oj_cuda_live_regions *of, int other,
    const struct oj_relation *relation,
    const struct oj_cuda_live_answer *answer, const struct oj_box *top,
    int64_t n_top, int64_t *n, const int32_t **row, const double **bound)
{
    const struct oj_cuda_live_regions regions = *of;
    const struct live_device_query q =
        live_question_make(relation, &answer->rows);
    const struct oj_cuda_live_found found = answer->found;
    const int32_t *row_of = answer->row;
    int64_t k = relation->k;
    const int32_t *at = NULL;
    int32_t *to;
    double *most;
    auto bound_of = [=] __device__(int64_t i)
    {
        int64_t first = found.offset[i];
        if (found.offset[i + 1] - first >= k)
            return found.distance[first + k - 1];
        return q.rows.max_distance != NULL ? q.rows.max_distance[i] : q.most;
    };
    OJ_TRY(choose_rows(
        work, answer->rows.n,
        [=] __device__(int64_t i)
        {
            struct live_device_query_row a;
            live_load_row(q, i, &a);
            if (!(a.bound2 >= 0.0))
                return 0;
            a.bound2 = live_square_of_max_distance(bound_of(i));
            return reaches_region(regions, other, a, top, n_top);
        },
        n, &at));
    OJ_TRY(work->make(*n, &to));
    OJ_TRY(work->make(*n, &most));
    OJ_TRY(work->each(*n,
                      [=] __device__(int64_t i)
                      {
                          to[i] = row_of[at[i]];
                          most[i] = bound_of(at[i]);
                      }));
    *row = to;
    *bound = most;
    return OJ_OK;
}
