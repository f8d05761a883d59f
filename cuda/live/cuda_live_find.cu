/* Joins of rows with the points of a kept index on one device.
 *
 *   rows      in Morton order, a warp each, so that neighbours read one page
 *   warp      tree of boxes, 32 at a time -> pages in reach, 32 slots at a time
 *   nearest   the squared distance of the k-th, one lane for each of the k;
 *             then all points within it
 *   pairs     one pass counts, the next one writes; then the pairs of a row are
 *             sorted by id, or by distance and id and cut at k
 *
 *  Distances and their bounds are those of algs/live/live_search.c, operation
 *  by operation.
 *
 *  Source: G-PICS (Lewis and Tu 2022) registers queries at leaves and then
 * reads leaf by leaf, its k nearest by distances that it guesses; a warp per
 * row, in the order of the leaves, and an exact first bound, are ours. */
#include "cuda_live.cuh"

#include "../../algs/foundations/kernels/oj_square_limit.h"
#include "../foundations/device/cuda_offset_search.cuh"
#include "../foundations/index/cuda_family.h"

/* Rows with more pairs are sorted together, by their bits. */
#define SHORT_ROW 1024

/* What is asked about all rows. */
struct live_question
{
    struct oj_cuda_live_rows rows;
    const int32_t *order; /* [rows] row of each warp, or NULL */
    const double *bound2; /* [rows] for nearest, or NULL */
    double most, least2;
    int exclude_self, unordered_pairs, exclude_same_geometry;
};

/* A row on its way. */
struct live_asker
{
    int64_t row, id;
    struct oj_box box;
    double bound2; /* negative: no pairs; boxes: not used */
};

static __device__ __forceinline__ double square_of_most(double most)
{
    if (!(most >= 0.0))
        return -1.0;
    return most < INFINITY ? oj_square_most(most) : DBL_MAX;
}

/* Returns 0: the row has no pairs. */
static __device__ __forceinline__ int
begin_row(const struct live_question &q, int64_t warp, struct live_asker *a)
{
    const struct oj_cuda_live_rows &rows = q.rows;
    int64_t i = q.order != NULL ? q.order[warp] : warp;
    a->row = i;
    a->id = rows.fid != NULL ? rows.fid[i] : 0;
    a->bound2 = 0.0;
    if (rows.box != NULL)
    {
        a->box = rows.box[i];
        return !oj_box_is_empty(&a->box);
    }
    a->box.x0 = a->box.x1 = rows.x[i];
    a->box.y0 = a->box.y1 = rows.y[i];
    a->bound2 = q.bound2 != NULL ? q.bound2[i]
                                 : square_of_most(rows.max_distance != NULL
                                                      ? rows.max_distance[i]
                                                      : q.most);
    return a->bound2 >= 0.0 && fabs(a->box.x0) < INFINITY &&
           fabs(a->box.y0) < INFINITY;
}

static __device__ __forceinline__ double gap(double low, double high, double v)
{
    double left = low - v, right = v - high;
    double d = left > right ? left : right;
    return d > 0.0 ? d : 0.0;
}

/* At least the square of the distance of a point from what is in a box: what
 * rounding may take off is taken off. */
static __device__ __forceinline__ double
distance2_of_box(const struct live_asker &a, const struct oj_box &box)
{
    double dx = gap(box.x0, box.x1, a.box.x0);
    double dy = gap(box.y0, box.y1, a.box.y0);
    return (dx * dx + dy * dy) * (1.0 - 8.0 * DBL_EPSILON);
}

static __device__ __forceinline__ int may_be_pair(const struct live_question &q,
                                                  const struct live_asker &a,
                                                  double x, double y,
                                                  int64_t id)
{
    if (q.exclude_self && id == a.id)
        return 0;
    if (q.unordered_pairs != 0 &&
        (q.unordered_pairs > 0 ? a.id >= id : a.id <= id))
        return 0;
    return !(q.exclude_same_geometry && x == a.box.x0 && y == a.box.y0);
}

/* 1: the point of a slot is a pair of the row, at *d2 if rows are points. */
static __device__ __forceinline__ int
matches(const struct live_question &q, const struct live_asker &a,
        const struct oj_cuda_live_ids &ids,
        const struct oj_cuda_live_page &page, int slot, double *d2)
{
    double x = page.x[slot], y;
    if (!(x == x))
        return 0;
    y = page.y[slot];
    if (q.rows.box != NULL)
    {
        if (!(a.box.x0 <= x && x <= a.box.x1 && a.box.y0 <= y && y <= a.box.y1))
            return 0;
    }
    else
    {
        double dx = a.box.x0 - x, dy = a.box.y0 - y;
        *d2 = dx * dx + dy * dy;
        if (!(*d2 <= a.bound2) || *d2 < q.least2)
            return 0;
    }
    if (!q.exclude_self && q.unordered_pairs == 0 && !q.exclude_same_geometry)
        return 1;
    return may_be_pair(q, a, x, y, ids.id[page.entry[slot]]);
}

/* --- the tree ------------------------------------------------------------- */

static __device__ __forceinline__ int is_in_reach(const struct live_question &q,
                                                  const struct live_asker &a,
                                                  const struct oj_box &box)
{
    return q.rows.box != NULL ? oj_box_intersects(&a.box, &box)
                              : distance2_of_box(a, box) <= a.bound2;
}

/* Calls visit(page) for the pages in reach of a row, by place. Called by all
 * lanes of a warp. */
template <typename Visit>
static __device__ __forceinline__ void
visit_pages(const struct oj_cuda_live_pages &pages,
            const struct live_question &q, const struct live_asker &a,
            Visit visit)
{
    int lane = oj_cuda_live_lane(), top = pages.n_levels - 1;
    unsigned open[OJ_LIVE_MOST_LEVELS];
    int64_t first[OJ_LIVE_MOST_LEVELS];
    int level = top;
    bool opens = top >= 0;
    if (opens)
        first[top] = 0;
    while (level <= top && level >= 0)
    {
        if (opens)
        {
            int64_t i = first[level] + lane;
            int wants =
                i < pages.level_n[level] &&
                is_in_reach(q, a, pages.node[pages.level_first[level] + i]);
            open[level] = __ballot_sync(OJ_LIVE_ALL_LANES, wants);
            opens = false;
        }
        if (open[level] == 0)
        {
            level++;
            continue;
        }
        int64_t at = first[level] + __ffs((int)open[level]) - 1;
        open[level] &= open[level] - 1u;
        if (level == 0)
        {
            visit(pages.page_at[at]);
            continue;
        }
        first[--level] = at * OJ_LIVE_FANOUT;
        opens = true;
    }
}

/* --- the k nearest -------------------------------------------------------- */

/* The least k squared distances: lane i has the i-th. */
struct live_nearest
{
    int k;
    double d2, most2;
};

/* What is farther than the k-th, whose root may be that of a slightly greater
 * square (live_search.c). */
static __device__ __forceinline__ double
bound_of_nearest(const struct live_nearest &nearest)
{
    double kth2 = __shfl_sync(OJ_LIVE_ALL_LANES, nearest.d2, nearest.k - 1);
    double ties2 = kth2 * (1.0 + 0x1p-50);
    return ties2 < nearest.most2 ? ties2 : nearest.most2;
}

/* Offers the points of a page. Called by all lanes of a warp. */
static __device__ __forceinline__ void
offer_page(const struct live_question &q, const struct oj_cuda_live_ids &ids,
           const struct oj_cuda_live_page &page, struct live_asker *a,
           struct live_nearest *nearest)
{
    int lane = oj_cuda_live_lane();
    for (int slot = lane; slot < OJ_LIVE_SLOTS; slot += OJ_LIVE_LANES)
    {
        double d2 = INFINITY;
        int found = matches(q, *a, ids, page, slot, &d2);
        unsigned mask = __ballot_sync(OJ_LIVE_ALL_LANES, found);
        for (; mask != 0; mask &= mask - 1u)
        {
            double more =
                __shfl_sync(OJ_LIVE_ALL_LANES, d2, __ffs((int)mask) - 1);
            double above = __shfl_up_sync(OJ_LIVE_ALL_LANES, nearest->d2, 1);
            unsigned below =
                __ballot_sync(OJ_LIVE_ALL_LANES, nearest->d2 <= more);
            int at = __popc(below);
            if (lane == at)
                nearest->d2 = more;
            else if (lane > at)
                nearest->d2 = above;
        }
        a->bound2 = bound_of_nearest(*nearest);
    }
}

/* The lane of the least value; *least: that value. */
static __device__ __forceinline__ int lane_of_least(double value, double *least)
{
    int at = oj_cuda_live_lane();
    for (int step = 16; step > 0; step /= 2)
    {
        double other = __shfl_xor_sync(OJ_LIVE_ALL_LANES, value, step);
        int other_at = __shfl_xor_sync(OJ_LIVE_ALL_LANES, at, step);
        if (other < value || (other == value && other_at < at))
        {
            value = other;
            at = other_at;
        }
    }
    *least = value;
    return at;
}

/* Nearer boxes first. The page of `seed` has been offered. */
static __device__ __forceinline__ void
offer_pages_in_reach(const struct oj_cuda_live_pages &pages,
                     const struct oj_cuda_live_ids &ids,
                     const struct live_question &q, int64_t seed,
                     struct live_asker *a, struct live_nearest *nearest)
{
    int lane = oj_cuda_live_lane(), top = pages.n_levels - 1;
    double apart2[OJ_LIVE_MOST_LEVELS]; /* of the lane's box, while open */
    int64_t first[OJ_LIVE_MOST_LEVELS];
    int level = top;
    bool opens = true;
    first[top] = 0;
    while (level <= top)
    {
        double least2;
        int child;
        if (opens)
        {
            int64_t i = first[level] + lane;
            apart2[level] =
                i < pages.level_n[level]
                    ? distance2_of_box(*a,
                                       pages.node[pages.level_first[level] + i])
                    : INFINITY;
            opens = false;
        }
        child = lane_of_least(apart2[level], &least2);
        if (!(least2 <= a->bound2))
        {
            level++;
            continue;
        }
        if (lane == child)
            apart2[level] = INFINITY;
        int64_t at = first[level] + child;
        if (level > 0)
        {
            first[--level] = at * OJ_LIVE_FANOUT;
            opens = true;
        }
        else if (at != seed)
            offer_page(q, ids, pages.page[pages.page_at[at]], a, nearest);
    }
}

static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    bound_rows(const __grid_constant__ struct oj_cuda_live_pages pages,
               const __grid_constant__ struct oj_cuda_live_ids ids,
               const __grid_constant__ struct live_question q, int k,
               double *bound2)
{
    int64_t warp = oj_cuda_live_warp(), seed;
    struct live_asker a;
    struct live_nearest nearest;
    if (warp >= q.rows.n)
        return;
    if (!begin_row(q, warp, &a))
    {
        if (oj_cuda_live_lane() == 0)
            bound2[a.row] = -1.0;
        return;
    }
    nearest.k = k;
    nearest.d2 = INFINITY;
    nearest.most2 = a.bound2;
    seed = oj_cuda_live_place(
        pages, oj_cuda_live_code(pages.frame, a.box.x0, a.box.y0));
    offer_page(q, ids, pages.page[pages.page_at[seed]], &a, &nearest);
    offer_pages_in_reach(pages, ids, q, seed, &a, &nearest);
    if (oj_cuda_live_lane() == 0)
        bound2[a.row] = a.bound2;
}

/* --- lists: one pass counts, the next one writes -------------------------- */

static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    count_row_pairs(const __grid_constant__ struct oj_cuda_live_pages pages,
                    const __grid_constant__ struct oj_cuda_live_ids ids,
                    const __grid_constant__ struct live_question q,
                    int64_t *count)
{
    int64_t warp = oj_cuda_live_warp(), n = 0;
    int lane = oj_cuda_live_lane();
    struct live_asker a;
    if (warp >= q.rows.n)
        return;
    if (begin_row(q, warp, &a))
        visit_pages(pages, q, a,
                    [&](uint32_t number)
                    {
                        for (int slot = lane; slot < OJ_LIVE_SLOTS;
                             slot += OJ_LIVE_LANES)
                        {
                            double d2;
                            int found = matches(q, a, ids, pages.page[number],
                                                slot, &d2);
                            n +=
                                __popc(__ballot_sync(OJ_LIVE_ALL_LANES, found));
                        }
                    });
    if (lane == 0)
        count[a.row] = n;
}

static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    put_row_pairs(const __grid_constant__ struct oj_cuda_live_pages pages,
                  const __grid_constant__ struct oj_cuda_live_ids ids,
                  const __grid_constant__ struct live_question q,
                  const int64_t *offset, int64_t *id, double *distance)
{
    int64_t warp = oj_cuda_live_warp(), at;
    int lane = oj_cuda_live_lane();
    struct live_asker a;
    if (warp >= q.rows.n || !begin_row(q, warp, &a))
        return;
    at = offset[a.row];
    if (at == offset[a.row + 1])
        return;
    visit_pages(pages, q, a,
                [&](uint32_t number)
                {
                    const struct oj_cuda_live_page &page = pages.page[number];
                    for (int slot = lane; slot < OJ_LIVE_SLOTS;
                         slot += OJ_LIVE_LANES)
                    {
                        double d2;
                        int found = matches(q, a, ids, page, slot, &d2);
                        unsigned mask = __ballot_sync(OJ_LIVE_ALL_LANES, found);
                        if (found)
                        {
                            int64_t to = at + oj_cuda_live_lanes_before(mask);
                            id[to] = ids.id[page.entry[slot]];
                            distance[to] = q.rows.box != NULL ? NAN : sqrt(d2);
                        }
                        at += __popc(mask);
                    }
                });
}

/* --- the order within a row ----------------------------------------------- */

/* Pairs in the order of their rows. */
struct live_lists
{
    int64_t n_rows;
    const int64_t *offset;
    const int64_t *id;
    const double *distance;
    int by_distance; /* 0: by id alone */
};

static __device__ __forceinline__ int
comes_before(const struct live_lists &lists, int64_t left, int64_t right)
{
    if (lists.by_distance && lists.distance[left] != lists.distance[right])
        return lists.distance[left] < lists.distance[right];
    return lists.id[left] < lists.id[right];
}

/* A warp finds the rank of each pair of a short row by comparing it with all
 * others. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    sort_short_rows(const __grid_constant__ struct live_lists lists,
                    int64_t *id, double *distance)
{
    int64_t row = oj_cuda_live_warp(), first, end;
    if (row >= lists.n_rows)
        return;
    first = lists.offset[row];
    end = lists.offset[row + 1];
    if (end - first > SHORT_ROW)
        return;
    for (int64_t i = first + oj_cuda_live_lane(); i < end; i += OJ_LIVE_LANES)
    {
        int64_t rank = first;
        for (int64_t k = first; k < end; k++)
            rank += comes_before(lists, k, i);
        id[rank] = lists.id[i];
        distance[rank] = lists.distance[i];
    }
}

static __device__ __forceinline__ uint64_t key_of_id(int64_t id)
{
    return (uint64_t)id ^ UINT64_C(1) << 63;
}

/* The pairs of long rows, numbered from 0. */
struct long_rows
{
    struct live_lists lists;
    const int64_t *first; /* [rows + 1] number of the first pair of a row */

    __device__ int64_t row_of(int64_t i) const
    {
        return oj_cuda_list_of_entry(first, (int64_t)0, lists.n_rows, i);
    }
    __device__ int64_t place_of(int64_t i) const
    {
        int64_t row = row_of(i);
        return lists.offset[row] + (i - first[row]);
    }
};

/* Sorts n numbers of pairs by row, and within a row as they shall be. */
static oj_status order_long_rows(struct oj_cuda_work *work,
                                 const struct long_rows &of, int64_t n,
                                 int32_t **order)
{
    const struct long_rows rows = of;
    int row_bits = 1;
    while (rows.lists.n_rows >> row_bits != 0)
        row_bits++;
    OJ_TRY(work->order_by<uint64_t>(
        n, 64,
        [=] __device__(int64_t i)
        { return key_of_id(rows.lists.id[rows.place_of(i)]); },
        order));
    if (rows.lists.by_distance)
    {
        const int32_t *by_id = *order;
        OJ_TRY(work->reorder_by<uint64_t>(
            n, 64,
            [=] __device__(int64_t i)
            {
                return (uint64_t)__double_as_longlong(
                    rows.lists.distance[rows.place_of(by_id[i])]);
            },
            order, NULL));
    }
    const int32_t *before = *order;
    return work->reorder_by<uint32_t>(
        n, row_bits,
        [=] __device__(int64_t i) { return (uint32_t)rows.row_of(before[i]); },
        order, NULL);
}

static oj_status sort_long_rows(struct oj_cuda_work *work,
                                const struct live_lists &of, int64_t *id,
                                double *distance)
{
    const struct live_lists lists = of;
    struct oj_cuda_work own(work);
    int64_t *first, n;
    int32_t *order;
    OJ_TRY(own.scan_computed(
        lists.n_rows,
        [=] __device__(ptrdiff_t i)
        {
            int64_t length = i < lists.n_rows
                                 ? lists.offset[i + 1] - lists.offset[i]
                                 : (int64_t)0;
            return length > SHORT_ROW ? length : (int64_t)0;
        },
        &first, &n));
    if (n == 0)
        return OJ_OK;
    if (n > INT32_MAX)
        return oj_fail(work->err, OJ_ERR_NOMEM,
                       "%lld pairs are too many to be sorted at once",
                       (long long)n);
    const struct long_rows rows = {lists, first};
    OJ_TRY(order_long_rows(&own, rows, n, &order));
    const int32_t *sorted = order;
    return own.each(n,
                    [=] __device__(int64_t i)
                    {
                        int64_t from = rows.place_of(sorted[i]);
                        int64_t to = rows.place_of(i);
                        id[to] = lists.id[from];
                        distance[to] = lists.distance[from];
                    });
}

/* Sorts the pairs of each row. */
static oj_status sort_rows(struct oj_cuda_work *work, int64_t n_rows,
                           int by_distance, struct oj_cuda_live_found *found)
{
    const struct live_lists lists = {n_rows, found->offset, found->id,
                                     found->distance, by_distance};
    int64_t *id;
    double *distance;
    OJ_TRY(work->make(found->n, &id));
    OJ_TRY(work->make(found->n, &distance));
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(n_rows * OJ_LIVE_LANES,
                                         sort_short_rows, lists, id, distance));
    OJ_TRY(sort_long_rows(work, lists, id, distance));
    work->drop(found->id);
    work->drop(found->distance);
    found->id = id;
    found->distance = distance;
    return OJ_OK;
}

/* Cuts sorted rows at k, or after the ties of the k-th. */
static oj_status cut_rows(struct oj_cuda_work *work, int64_t n_rows,
                          const struct oj_relation *relation,
                          struct oj_cuda_live_found *found)
{
    const struct live_lists lists = {n_rows, found->offset, found->id,
                                     found->distance, 1};
    int64_t k = relation->k, n, *offset, *id;
    int keeps_ties = relation->ties == OJ_TIES_ALL;
    double *distance;
    OJ_TRY(work->scan_computed(
        n_rows,
        [=] __device__(ptrdiff_t i)
        {
            int64_t first = i < n_rows ? lists.offset[i] : 0;
            int64_t end = i < n_rows ? lists.offset[i + 1] : 0, at = first + k;
            if (at >= end)
                return end - first;
            while (keeps_ties && at < end &&
                   lists.distance[at] == lists.distance[first + k - 1])
                at++;
            return at - first;
        },
        &offset, &n));
    OJ_TRY(work->make(n, &id));
    OJ_TRY(work->make(n, &distance));
    OJ_TRY(work->each(n_rows,
                      [=] __device__(int64_t i)
                      {
                          int64_t from = lists.offset[i];
                          for (int64_t to = offset[i]; to < offset[i + 1];
                               to++, from++)
                          {
                              id[to] = lists.id[from];
                              distance[to] = lists.distance[from];
                          }
                      }));
    work->drop(found->offset);
    work->drop(found->id);
    work->drop(found->distance);
    found->n = n;
    found->offset = offset;
    found->id = id;
    found->distance = distance;
    return OJ_OK;
}

/* --- a join --------------------------------------------------------------- */

/* Rows in Morton order, if they are many. */
static oj_status order_rows(const struct oj_cuda_live_part *part,
                            struct oj_cuda_work *work,
                            const struct oj_cuda_live_rows *of, int32_t **order)
{
    const struct oj_cuda_live_rows rows = *of;
    const struct oj_box frame = part->pages.frame;
    *order = NULL;
    if (rows.n < OJ_CUDA_FEW_POINTS)
        return OJ_OK;
    return work->order_by<uint32_t>(
        rows.n, 32,
        [=] __device__(int64_t i)
        {
            double x = rows.box != NULL ? rows.box[i].x0 : rows.x[i];
            double y = rows.box != NULL ? rows.box[i].y0 : rows.y[i];
            return (uint32_t)(oj_cuda_live_code(frame, x, y) >> 32);
        },
        order);
}

static struct live_question make_question(const struct oj_relation *relation,
                                          const struct oj_cuda_live_rows *rows,
                                          const int32_t *order)
{
    struct live_question q = {};
    q.rows = *rows;
    q.order = order;
    q.most = relation->max_distance;
    q.least2 = oj_square_least(relation->min_distance);
    q.exclude_self = relation->exclude_self;
    q.unordered_pairs = relation->unordered_pairs;
    q.exclude_same_geometry = relation->exclude_same_geometry;
    return q;
}

oj_status oj_cuda_live_find(const struct oj_cuda_live_part *part,
                            struct oj_cuda_work *work,
                            const struct oj_relation *relation,
                            const struct oj_cuda_live_rows *rows,
                            struct oj_cuda_live_found *out)
{
    const struct oj_cuda_live_pages pages = part->pages;
    const struct oj_cuda_live_ids ids = part->ids;
    int is_nearest = oj_relation_is_nearest(relation);
    struct oj_cuda_live_found found = {};
    struct live_question q;
    int32_t *order;
    double *bound2;
    *out = {};
    if (part->n_points == 0 || rows->n == 0)
        return work->make_zeros(rows->n + 1, &out->offset);
    OJ_TRY(order_rows(part, work, rows, &order));
    q = make_question(relation, rows, order);
    if (is_nearest)
    {
        OJ_TRY(work->make(rows->n, &bound2));
        OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(rows->n * OJ_LIVE_LANES,
                                             bound_rows, pages, ids, q,
                                             (int)relation->k, bound2));
        q.bound2 = bound2;
    }
    OJ_TRY(work->make_zeros(rows->n + 1, &found.offset));
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(
        rows->n * OJ_LIVE_LANES, count_row_pairs, pages, ids, q, found.offset));
    OJ_TRY(work->scan_total(found.offset, rows->n, &found.n));
    OJ_TRY(work->make(found.n, &found.id));
    OJ_TRY(work->make(found.n, &found.distance));
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(
        rows->n * OJ_LIVE_LANES, put_row_pairs, pages, ids, q,
        (const int64_t *)found.offset, found.id, found.distance));
    if (found.n > 0)
        OJ_TRY(sort_rows(work, rows->n, is_nearest, &found));
    if (is_nearest && found.n > 0)
        OJ_TRY(cut_rows(work, rows->n, relation, &found));
    *out = found;
    return OJ_OK;
}
