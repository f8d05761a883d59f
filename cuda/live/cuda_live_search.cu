/* Joins of rows with the points of a kept index on one device.
 *
 *   rows      in Morton order; a warp answers up to 32 that follow one another,
 *             so that a page is read once for all of them
 *   warp      tree of boxes: a lane for each of the 32 boxes of a node, then a
 *             lane for each row; of a page each lane reads 8 slots, against
 *             which all lanes test one row after the other
 *   nearest   the k nearest of each row in shared memory; with ties, then all
 *             points as near as the k-th
 *   others    one pass counts, the next one writes; then a warp sorts the pairs
 *             of a row in its registers by id, or by distance and id and cuts
 *             them at k
 *
 *  Distances and their bounds are those of algs/live/live_search.c, operation
 *  by operation.
 *
 *  Source: G-PICS (Lewis and Tu 2022) registers queries at leaves and then
 *  reads leaf by leaf, its k nearest by distances that it guesses. Rows that
 * are neighbours in place of queues at leaves, and an exact first bound, are
 * ours.
 */
#include "cuda_live_query.cuh"

#include "../foundations/device/cuda_box_reduce.cuh"
#include "../foundations/device/cuda_offset_search.cuh"
#include "../foundations/index/cuda_family.h"

enum
{
    WARPS = OJ_LIVE_WARP_BLOCK / OJ_LIVE_LANES,
    SLOTS_OF_LANE = OJ_LIVE_SLOTS / OJ_LIVE_LANES,
    LOG_FANOUT = 5, /* of OJ_LIVE_FANOUT */

    /* A warp sorts a row in its registers. Rows with more than SHORT_ROW pairs,
     * or with more than SHORT_ROW_OF_DISTANCES pairs and their distances, are
     * sorted together by radix sorts. */
    SHORT_ROW = 1024,
    SHORT_ROW_OF_DISTANCES = 512,

    /* A row that concerns at most this many places is answered without the
     * tree. These are mainly rows of point searches. */
    FEW_PLACES = 4,

    /* Number of warps that keep a multiprocessor busy; a warp gets several rows
     * only if there are more warps than this. */
    ENOUGH_WARPS = 128,

    /* Maximum number of neighbours of all rows of a warp. */
    NEAREST_OF_WARP = 256
};

/* Begins the row of each lane of a warp, and returns it, or -1 if the lane has
 * no row. *mine describes the row. asker [OJ_LIVE_LANES], in shared memory,
 * receives the rows of all lanes, so that every lane can read them. */
static __device__ __forceinline__ int64_t load_rows_of_warp(
    const struct live_device_query &q, struct live_device_query_row *asker,
    struct live_device_query_row *mine)
{
    int lane = oj_cuda_live_lane();
    int64_t i = oj_cuda_live_warp() * q.n_together + lane, row = -1;
    *mine = {oj_box_empty(), -1.0, 0};
    if (lane < q.n_together && i < q.rows.n)
    {
        row = q.order != NULL ? q.order[i] : i;
        live_load_row(q, row, mine);
    }
    asker[lane] = *mine;
    __syncwarp();
    return row;
}

static __device__ __forceinline__ int
may_be_pair(const struct live_device_query &q,
            const struct live_device_query_row &a, double x, double y,
            int64_t id)
{
    if (q.exclude_self && id == a.id)
        return 0;
    if (q.unordered_pairs != 0 &&
        (q.unordered_pairs > 0 ? a.id >= id : a.id <= id))
        return 0;
    return !(q.exclude_same_geometry && x == a.box.x0 && y == a.box.y0);
}

/* --- slots of a page ------------------------------------------------------ */

/* The coordinates of slots lane, 32 + lane, .. of a page, held by one lane. */
struct live_slots
{
    double x[SLOTS_OF_LANE], y[SLOTS_OF_LANE];
    const struct oj_cuda_live_page *page;
};

static __device__ __forceinline__ void
read_points_of_page(const struct oj_cuda_live_pages &pages, int64_t place,
                    struct live_slots *slots)
{
    slots->page = &pages.page[pages.page_at[place]];
#pragma unroll
    for (int i = 0; i < SLOTS_OF_LANE; i++)
    {
        int slot = i * OJ_LIVE_LANES + oj_cuda_live_lane();
        slots->x[i] = slots->page->x[slot];
        slots->y[i] = slots->page->y[slot];
    }
}

static __device__ __forceinline__ int64_t id_of_slot(
    const struct oj_cuda_live_ids &ids, const struct live_slots &slots, int i)
{
    return ids.id[slots.page->entry[i * OJ_LIVE_LANES + oj_cuda_live_lane()]];
}

/* The ids of the points in the lane's slots of a page. Each is read once for
 * all rows of a warp, when a row first needs it. */
struct live_slot_ids
{
    uint32_t entry[SLOTS_OF_LANE];
    int64_t id[SLOTS_OF_LANE];
    unsigned known; /* bit i is set if id[i] has been read */
};

static __device__ __forceinline__ void
read_slot_entries(const struct live_slots &slots, struct live_slot_ids *of)
{
    of->known = 0;
#pragma unroll
    for (int i = 0; i < SLOTS_OF_LANE; i++)
        of->entry[i] =
            slots.page->entry[i * OJ_LIVE_LANES + oj_cuda_live_lane()];
}

/* Reads the ids of the slots `wanted`, a bit each, at once. */
static __device__ __forceinline__ void
read_slot_ids(const struct oj_cuda_live_ids &ids, unsigned wanted,
              struct live_slot_ids *of)
{
    wanted &= ~of->known;
    of->known |= wanted;
#pragma unroll
    for (int i = 0; i < SLOTS_OF_LANE; i++)
    {
        if ((wanted >> i & 1u) != 0)
            of->id[i] = ids.id[of->entry[i]];
    }
}

static __device__ __forceinline__ double
distance2_of_slot(const struct live_device_query_row &a,
                  const struct live_slots &slots, int i)
{
    double dx = a.box.x0 - slots.x[i], dy = a.box.y0 - slots.y[i];
    return dx * dx + dy * dy;
}

/* Returns a mask: bit i is set if the point of the lane's slot i forms a pair
 * with the row. A hole never does, because its coordinates are NaN. */
static __device__ __forceinline__ unsigned find_pairs_of_slots(
    const struct live_device_query &q, const struct live_device_query_row &a,
    const struct oj_cuda_live_ids &ids, const struct live_slots &slots)
{
    unsigned found = 0;
    if (q.rows.box != NULL)
    {
#pragma unroll
        for (int i = 0; i < SLOTS_OF_LANE; i++)
            found |=
                (unsigned)(a.box.x0 <= slots.x[i] && slots.x[i] <= a.box.x1 &&
                           a.box.y0 <= slots.y[i] && slots.y[i] <= a.box.y1)
                << i;
    }
    else
    {
#pragma unroll
        for (int i = 0; i < SLOTS_OF_LANE; i++)
        {
            double d2 = distance2_of_slot(a, slots, i);
            found |= (unsigned)(d2 <= a.bound2 && !(d2 < q.least2)) << i;
        }
    }
    if (found == 0 ||
        !(q.exclude_self || q.unordered_pairs != 0 || q.exclude_same_geometry))
        return found;
#pragma unroll
    for (int i = 0; i < SLOTS_OF_LANE; i++)
    {
        if ((found >> i & 1u) != 0 && !may_be_pair(q, a, slots.x[i], slots.y[i],
                                                   id_of_slot(ids, slots, i)))
            found &= ~(1u << i);
    }
    return found;
}

/* Returns the sum over all lanes of their counts, each at most SLOTS_OF_LANE.
 * *before becomes the sum over the lanes with smaller numbers. */
static __device__ __forceinline__ int sum_of_warp(int count, int *before)
{
    int sum = 0;
    *before = 0;
#pragma unroll
    for (int bit = 0; 1 << bit <= SLOTS_OF_LANE; bit++)
    {
        unsigned mask = __ballot_sync(OJ_LIVE_ALL_LANES, count >> bit & 1);
        sum += __popc(mask) << bit;
        *before += oj_cuda_live_lanes_before(mask) << bit;
    }
    return sum;
}

/* --- the tree ------------------------------------------------------------- */

static __device__ __forceinline__ double greatest_of_warp(double value)
{
    for (int step = OJ_LIVE_LANES / 2; step > 0; step /= 2)
        value =
            oj_larger(value, __shfl_xor_sync(OJ_LIVE_ALL_LANES, value, step));
    return value;
}

/* Returns the lane with the least of the values, which are >= 0. *least becomes
 * that value without its last five bits, which are set to 0 because they hold
 * the number of the lane during the comparison. */
static __device__ __forceinline__ int lane_of_least(double value, double *least)
{
    const unsigned long long lanes = OJ_LIVE_LANES - 1;
    unsigned long long key =
        ((unsigned long long)__double_as_longlong(value) & ~lanes) |
        (unsigned long long)oj_cuda_live_lane();
    for (int step = OJ_LIVE_LANES / 2; step > 0; step /= 2)
    {
        unsigned long long other =
            __shfl_xor_sync(OJ_LIVE_ALL_LANES, key, step);
        key = other < key ? other : key;
    }
    *least = __longlong_as_double((long long)(key & ~lanes));
    return (int)(key & lanes);
}

/* Returns 1 if the places first .. end - 1 may have points with codes in reach.
 * Boxes of pages overlap, and codes exclude most pages whose boxes a row only
 * touches. Points at the end of a place may have codes beyond the next one's
 * first code, if their upper halves are equal (order_by_code()). */
static __device__ __forceinline__ int
has_codes_in_reach(const struct oj_cuda_live_pages &pages,
                   const struct live_reach &reach, int64_t first, int64_t end)
{
    return pages.first_code[first] <= reach.high &&
           (end >= pages.n || reach.low >> 32 <= pages.first_code[end] >> 32);
}

/* Calls visit(place, rows) for each page that is in reach of rows (a bit each)
 * of a warp, nearer ones first; visit returns 1 if it has narrowed bounds.
 * Skips the page at place `seed` for the row of the lane. All lanes of a warp
 * must call it. */
template <typename Visit>
static __device__ __forceinline__ void
visit_pages(const struct oj_cuda_live_pages &pages,
            const struct live_device_query_row &mine, int64_t seed, Visit visit)
{
    const struct live_reach reach = live_code_range_in_reach(pages.frame, mine);
    int lane = oj_cuda_live_lane(), top = pages.n_levels - 1, level = top;
    double apart2[OJ_LIVE_MOST_LEVELS]; /* of the lane's box, while open */
    int64_t first[OJ_LIVE_MOST_LEVELS];
    struct oj_box all = oj_box_empty();
    double most2 = greatest_of_warp(mine.bound2);
    bool opens = true;
    if (top < 0 || most2 < 0.0)
        return;
    if (mine.bound2 >= 0.0)
        all = mine.box;
    oj_cuda_box_of_warp(&all);
    first[top] = 0;
    while (level <= top)
    {
        const struct oj_box *node = pages.node + pages.level_first[level];
        double least2;
        if (opens)
        {
            int64_t i = first[level] + lane;
            apart2[level] = i < pages.level_n[level]
                                ? live_distance2_of_boxes(all, node[i])
                                : INFINITY;
            opens = false;
        }
        int child = lane_of_least(apart2[level], &least2);
        int64_t at = first[level] + child;
        if (!(least2 <= most2))
        {
            level++;
            continue;
        }
        if (lane == child)
            apart2[level] = INFINITY;
        int64_t place = at << level * LOG_FANOUT;
        int wants = mine.bound2 >= 0.0 && (level > 0 || at != seed) &&
                    has_codes_in_reach(pages, reach, place,
                                       (at + 1) << level * LOG_FANOUT) &&
                    live_distance2_of_boxes(mine.box, node[at]) <= mine.bound2;
        unsigned rows = __ballot_sync(OJ_LIVE_ALL_LANES, wants);
        if (rows == 0)
            continue;
        if (level > 0)
        {
            first[--level] = at * OJ_LIVE_FANOUT;
            opens = true;
        }
        else if (visit(at, rows))
            most2 = greatest_of_warp(mine.bound2);
    }
}

/* Returns how many places may have points with codes in reach of a row, from
 * *first on; FEW_PLACES + 1 if they are more. */
static __device__ __forceinline__ int
count_places_in_reach(const struct oj_cuda_live_pages &pages,
                      const struct live_reach &reach, int64_t *first)
{
    /* a reach of more codes than this concerns too many places */
    const uint64_t most = (UINT64_MAX >> 32) / (uint64_t)pages.n * FEW_PLACES;
    uint64_t low = reach.low >> 32;
    int n = 1;
    if ((reach.high >> 32) - low > most)
        return FEW_PLACES + 1;
    /* the last place whose points all have smaller upper halves ends here */
    *first = low == 0
                 ? 0
                 : (int64_t)oj_cuda_live_place_of_code(pages, (low << 32) - 1u);
    while (n <= FEW_PLACES && *first + n < pages.n &&
           pages.first_code[*first + n] <= reach.high)
        n++;
    return n;
}

/* Calls visit(place, rows) like visit_pages(), for a visit that does not narrow
 * the bounds. Rows that concern few places go to these directly. */
template <typename Visit>
static __device__ __forceinline__ void
visit_pages_of_lists(const struct oj_cuda_live_pages &pages,
                     struct live_device_query_row mine, Visit visit)
{
    int64_t first = 0;
    int n = 0;
    if (mine.bound2 >= 0.0 && pages.n > 0)
        n = count_places_in_reach(
            pages, live_code_range_in_reach(pages.frame, mine), &first);
    if (n > FEW_PLACES)
        n = 0;
    for (int i = 0; i < FEW_PLACES; i++)
    {
        int64_t mine_at = first + i;
        int wants = i < n && live_distance2_of_boxes(
                                 mine.box, pages.node[mine_at]) <= mine.bound2;
        unsigned left = __ballot_sync(OJ_LIVE_ALL_LANES, wants);
        while (left != 0)
        {
            int64_t at =
                __shfl_sync(OJ_LIVE_ALL_LANES, mine_at, __ffs((int)left) - 1);
            unsigned rows =
                __ballot_sync(OJ_LIVE_ALL_LANES, wants && mine_at == at);
            (void)visit(at, rows);
            left &= ~rows;
        }
    }
    if (n > 0)
        mine.bound2 = -1.0;
    visit_pages(pages, mine, -1, visit);
}

/* --- the k nearest -------------------------------------------------------- */

/* A point near a row; {INFINITY, INT64_MAX} stands for no point. */
struct live_near
{
    /* in the list of a row, the distance and the id; in a candidate, the
     * squared distance, and the entry of the id in place of it */
    double distance;
    int64_t id;
};

/* The nearest of the rows of a warp, in shared memory. */
struct live_near_lists
{
    int k;
    struct live_near *list;      /* [rows, k] by distance and id */
    struct live_near *candidate; /* [OJ_LIVE_SLOTS] */
};

static __device__ __forceinline__ int is_nearer(const struct live_near &a,
                                                const struct live_near &b)
{
    return a.distance < b.distance || (a.distance == b.distance && a.id < b.id);
}

/* Returns the smaller of bound2 and kth2. kth2 is first enlarged so that it
 * includes all squares whose roots round to the distance of the k-th point
 * (live_search.c). */
static __device__ __forceinline__ double smaller_bound2(double bound2,
                                                        double kth2)
{
    double ties2 = kth2 * (1.0 + 0x1p-50);
    return ties2 < bound2 ? ties2 : bound2;
}

/* Adds n <= OJ_LIVE_LANES candidates to the list of a row; returns the bound of
 * the row. Called by all lanes of a warp. */
static __device__ __forceinline__ double
merge_candidates(const struct oj_cuda_live_ids &ids, int k,
                 struct live_near *list, struct live_near *candidate, int n,
                 double bound2)
{
    int lane = oj_cuda_live_lane(), old_rank = lane, new_rank = 0;
    struct live_near old = {INFINITY, INT64_MAX}, added = old;
    __syncwarp();
    if (lane < n)
    {
        added = candidate[lane];
        added.distance = sqrt(added.distance);
        added.id = ids.id[added.id];
        candidate[lane] = added;
    }
    if (lane < k)
        old = list[lane];
    __syncwarp();
    for (int i = 0; i < n; i++)
    {
        struct live_near other = candidate[i];
        new_rank += is_nearer(other, added);
        old_rank += is_nearer(other, old);
    }
    for (int i = 0; i < k; i++)
        new_rank += is_nearer(list[i], added);
    __syncwarp();
    if (lane < n && new_rank < k)
        list[new_rank] = added;
    if (lane < k && old_rank < k)
        list[old_rank] = old;
    __syncwarp();
    double kth = list[k - 1].distance;
    return smaller_bound2(bound2, kth * kth);
}

/* Returns the k-th smallest of the values of the lanes of a warp. */
static __device__ __forceinline__ double kth_of_warp(double value, int k)
{
    int lane = oj_cuda_live_lane();
    for (int size = 2; size <= OJ_LIVE_LANES; size *= 2)
    {
        for (int step = size / 2; step > 0; step /= 2)
        {
            double other = __shfl_xor_sync(OJ_LIVE_ALL_LANES, value, step);
            int wants_less = ((lane & size) == 0) == ((lane & step) == 0);
            value = (other < value) == wants_less ? other : value;
        }
    }
    return __shfl_sync(OJ_LIVE_ALL_LANES, value, k - 1);
}

/* Offers the points of a page to row r of a warp; returns the row's bound.
 * Called by all lanes of a warp. */
static __device__ __forceinline__ double
offer_slots(const struct live_device_query &q,
            const struct oj_cuda_live_ids &ids, const struct live_slots &slots,
            const struct live_device_query_row &a,
            const struct live_near_lists &of, struct live_near *list)
{
    int n = 0;
    double bound2 = a.bound2;
    unsigned found = find_pairs_of_slots(q, a, ids, slots);
    if (__ballot_sync(OJ_LIVE_ALL_LANES, found != 0) == 0)
        return bound2;
    if (!(list[of.k - 1].distance < INFINITY))
    {
        /* the k-th smallest of the minima of the lanes is not below the k-th
         * smallest of all */
        double least2 = INFINITY;
#pragma unroll
        for (int i = 0; i < SLOTS_OF_LANE; i++)
        {
            double d2 = distance2_of_slot(a, slots, i);
            if ((found >> i & 1u) != 0 && d2 < least2)
                least2 = d2;
        }
        bound2 = smaller_bound2(bound2, kth_of_warp(least2, of.k));
    }
#pragma unroll
    for (int i = 0; i < SLOTS_OF_LANE; i++)
    {
        double d2 = distance2_of_slot(a, slots, i);
        int is_near = (found >> i & 1u) != 0 && d2 <= bound2;
        unsigned mask = __ballot_sync(OJ_LIVE_ALL_LANES, is_near);
        if (is_near)
            of.candidate[n + oj_cuda_live_lanes_before(mask)] = {
                d2, slots.page->entry[i * OJ_LIVE_LANES + oj_cuda_live_lane()]};
        n += __popc(mask);
    }
    for (int first = 0; first < n; first += OJ_LIVE_LANES)
        bound2 = merge_candidates(
            ids, of.k, list, of.candidate + first,
            n - first < OJ_LIVE_LANES ? n - first : OJ_LIVE_LANES, bound2);
    return bound2;
}

/* The k nearest points of each row: their number, k ids and distances per row,
 * and a squared bound that includes all points as near as the k-th. */
struct live_nearest_of_rows
{
    int k;
    int64_t *count; /* [rows + 1] */
    int64_t *id;
    double *distance;
    double *bound2;
};

/* Writes the lists of the rows of a warp. */
static __device__ __forceinline__ void
write_nearest_lists_of_warp(const struct live_nearest_of_rows &out,
                            const struct live_near *list, int64_t row)
{
    int n = __popc(__ballot_sync(OJ_LIVE_ALL_LANES, row >= 0)), count = 0;
    for (int i = 0; row >= 0 && i < out.k; i++)
        count += list[oj_cuda_live_lane() * out.k + i].distance < INFINITY;
    if (row >= 0)
        out.count[row] = count;
    for (int first = 0; first < n * out.k; first += OJ_LIVE_LANES)
    {
        int i = first + oj_cuda_live_lane();
        int64_t of =
            __shfl_sync(OJ_LIVE_ALL_LANES, row, i < n * out.k ? i / out.k : 0);
        if (i < n * out.k)
        {
            out.id[of * out.k + i % out.k] = list[i].id;
            out.distance[of * out.k + i % out.k] = list[i].distance;
        }
    }
}

static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    find_nearest_points(const __grid_constant__ struct oj_cuda_live_pages pages,
                        const __grid_constant__ struct oj_cuda_live_ids ids,
                        const __grid_constant__ struct live_device_query q,
                        const __grid_constant__ struct live_nearest_of_rows out)
{
    __shared__ struct live_device_query_row askers[WARPS][OJ_LIVE_LANES];
    __shared__ struct live_near lists[WARPS][NEAREST_OF_WARP];
    __shared__ struct live_near candidates[WARPS][OJ_LIVE_SLOTS];
    int warp = (int)(threadIdx.x / OJ_LIVE_LANES), lane = oj_cuda_live_lane();
    struct live_device_query_row *asker = askers[warp], mine;
    const struct live_near_lists of = {out.k, lists[warp], candidates[warp]};
    int64_t row = load_rows_of_warp(q, asker, &mine), seed = -1;
    for (int i = lane; i < NEAREST_OF_WARP; i += OJ_LIVE_LANES)
        of.list[i] = {INFINITY, INT64_MAX};
    __syncwarp();
    auto offer = [&](int64_t place, unsigned rows)
    {
        struct live_slots slots;
        read_points_of_page(pages, place, &slots);
        for (; rows != 0; rows &= rows - 1u)
        {
            int r = __ffs((int)rows) - 1;
            double bound2 =
                offer_slots(q, ids, slots, asker[r], of, of.list + r * of.k);
            if (lane == r)
                mine.bound2 = bound2;
        }
        __syncwarp();
        asker[lane].bound2 = mine.bound2;
        __syncwarp();
        return true;
    };
    if (mine.bound2 >= 0.0)
        seed = oj_cuda_live_place_of_code(
            pages, oj_live_morton_code(pages.frame, mine.box.x0, mine.box.y0));
    unsigned left = __ballot_sync(OJ_LIVE_ALL_LANES, seed >= 0);
    while (left != 0)
    {
        int64_t at = __shfl_sync(OJ_LIVE_ALL_LANES, seed, __ffs((int)left) - 1);
        unsigned rows = __ballot_sync(OJ_LIVE_ALL_LANES, seed == at);
        (void)offer(at, rows);
        left &= ~rows;
    }
    visit_pages(pages, mine, seed, offer);
    if (row >= 0)
        out.bound2[row] = mine.bound2;
    write_nearest_lists_of_warp(out, of.list, row);
}

/* --- lists: one pass counts, the next one writes -------------------------- */

/* Counts the pairs of each row and raises *longest to the greatest count. If a
 * row has a single pair, its element of `only` [rows] becomes the slot of the
 * pair's point, and the row needs no second walk. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    count_row_pairs(const __grid_constant__ struct oj_cuda_live_pages pages,
                    const __grid_constant__ struct oj_cuda_live_ids ids,
                    const __grid_constant__ struct live_device_query q,
                    int64_t *count, unsigned long long *longest, uint32_t *only)
{
    __shared__ struct live_device_query_row askers[WARPS][OJ_LIVE_LANES];
    struct live_device_query_row *asker = askers[threadIdx.x / OJ_LIVE_LANES],
                                 mine;
    int lane = oj_cuda_live_lane();
    int64_t row = load_rows_of_warp(q, asker, &mine), n = 0;
    visit_pages_of_lists(
        pages, mine,
        [&](int64_t place, unsigned rows)
        {
            struct live_slots slots;
            read_points_of_page(pages, place, &slots);
            for (; rows != 0; rows &= rows - 1u)
            {
                int r = __ffs((int)rows) - 1, n_before;
                unsigned found = find_pairs_of_slots(q, asker[r], ids, slots);
                int n_here = sum_of_warp(__popc(found), &n_before);
                n += lane == r ? n_here : 0;
                int64_t of = __shfl_sync(OJ_LIVE_ALL_LANES, row, r);
                if (n_here == 1 && found != 0)
                    only[of] =
                        pages.page_at[place] * OJ_LIVE_SLOTS +
                        (uint32_t)(__ffs((int)found) - 1) * OJ_LIVE_LANES +
                        (uint32_t)lane;
            }
            return false;
        });
    if (row >= 0)
        count[row] = n;
    double most = greatest_of_warp((double)n);
    if (lane == 0 && most > 0.0)
        atomicMax(longest, (unsigned long long)most);
}

/* Writes the pairs of each row from its offset on. distance is NULL if the rows
 * are boxes. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    put_row_pairs(const __grid_constant__ struct oj_cuda_live_pages pages,
                  const __grid_constant__ struct oj_cuda_live_ids ids,
                  const __grid_constant__ struct live_device_query q,
                  const int64_t *offset, const uint32_t *only, int64_t *id,
                  double *distance)
{
    __shared__ struct live_device_query_row askers[WARPS][OJ_LIVE_LANES];
    struct live_device_query_row *asker = askers[threadIdx.x / OJ_LIVE_LANES],
                                 mine;
    int lane = oj_cuda_live_lane();
    int64_t row = load_rows_of_warp(q, asker, &mine);
    int64_t at = row >= 0 ? offset[row] : 0;
    int64_t n = row >= 0 ? offset[row + 1] - at : 0;
    if (n == 1)
    {
        uint32_t slot = only[row];
        const struct oj_cuda_live_page &page = pages.page[slot / OJ_LIVE_SLOTS];
        double dx = mine.box.x0 - page.x[slot % OJ_LIVE_SLOTS];
        double dy = mine.box.y0 - page.y[slot % OJ_LIVE_SLOTS];
        id[at] = ids.id[page.entry[slot % OJ_LIVE_SLOTS]];
        if (distance != NULL)
            distance[at] = sqrt(dx * dx + dy * dy);
    }
    if (n <= 1)
        mine.bound2 = -1.0;
    visit_pages_of_lists(
        pages, mine,
        [&](int64_t place, unsigned rows)
        {
            struct live_slots slots;
            struct live_slot_ids slot_ids;
            read_points_of_page(pages, place, &slots);
            read_slot_entries(slots, &slot_ids);
            for (; rows != 0; rows &= rows - 1u)
            {
                int r = __ffs((int)rows) - 1;
                int64_t to = __shfl_sync(OJ_LIVE_ALL_LANES, at, r);
                unsigned found = find_pairs_of_slots(q, asker[r], ids, slots);
                int n_before, n_here = sum_of_warp(__popc(found), &n_before);
                at += lane == r ? n_here : 0;
                read_slot_ids(ids, found, &slot_ids);
                to += n_before;
#pragma unroll
                for (int i = 0; i < SLOTS_OF_LANE; i++)
                {
                    if ((found >> i & 1u) == 0)
                        continue;
                    id[to] = slot_ids.id[i];
                    if (distance != NULL)
                        distance[to] =
                            sqrt(distance2_of_slot(asker[r], slots, i));
                    to++;
                }
            }
            return false;
        });
}

/* --- the order within a row ----------------------------------------------- */

/* Pairs in the order of their rows. */
struct live_lists
{
    int64_t n_rows;
    const int64_t *offset;
    int64_t *id;
    double *distance; /* NULL: pairs of boxes */
    int by_distance;  /* 0: by id alone */
};

/* Returns 1 if pair a comes before pair b. Ids of a row differ; in the order of
 * ids, the distances serve only to put the entries that fill up an array last.
 */
static __device__ __forceinline__ int comes_before(const struct live_near &a,
                                                   const struct live_near &b,
                                                   int by_distance)
{
    if (by_distance)
        return is_nearer(a, b);
    return a.id < b.id || (a.id == b.id && a.distance < b.distance);
}

static __device__ __forceinline__ uint64_t key_of_id(int64_t id)
{
    return (uint64_t)id ^ UINT64_C(1) << 63;
}

static __device__ __forceinline__ int64_t id_of_key(uint64_t key)
{
    return (int64_t)(key ^ UINT64_C(1) << 63);
}

static __device__ __forceinline__ uint32_t
shuffle_xor_over_lanes(uint32_t value, int mask)
{
    return __shfl_xor_sync(OJ_LIVE_ALL_LANES, value, mask);
}

static __device__ __forceinline__ uint64_t
shuffle_xor_over_lanes(uint64_t value, int mask)
{
    return __shfl_xor_sync(OJ_LIVE_ALL_LANES, (unsigned long long)value, mask);
}

static __device__ __forceinline__ struct live_near
shuffle_xor_over_lanes(const struct live_near &value, int mask)
{
    return {__shfl_xor_sync(OJ_LIVE_ALL_LANES, value.distance, mask),
            (int64_t)shuffle_xor_over_lanes((uint64_t)value.id, mask)};
}

/* The order of keys: returns the smaller of two if wants_first, otherwise the
 * greater. */
struct key_order
{
    template <typename Key>
    __device__ Key lesser_or_greater(Key a, Key b, bool wants_first) const
    {
        Key least = a < b ? a : b, most = a < b ? b : a;
        return wants_first ? least : most;
    }
};

struct pair_order
{
    int by_distance;

    __device__ struct live_near lesser_or_greater(const struct live_near &a,
                                                  const struct live_near &b,
                                                  bool wants_first) const
    {
        return (comes_before(b, a, by_distance) != 0) == wants_first ? b : a;
    }
};

/* Sorts EACH values of each lane by a bitonic network: the values of lane 0
 * come first. Called by all lanes of a warp. */
template <int EACH, typename T, typename Order>
static __device__ __forceinline__ void sort_values_of_warp(T (&value)[EACH],
                                                           const Order &order)
{
    int lane = oj_cuda_live_lane();
#pragma unroll
    for (int run = 2; run <= EACH * OJ_LIVE_LANES; run *= 2)
    {
#pragma unroll
        for (int step = run / 2; step > 0; step /= 2)
        {
#pragma unroll
            for (int i = 0; i < EACH; i++)
            {
                bool rises = ((lane * EACH + i) & run) == 0;
                if (step >= EACH)
                {
                    bool is_low = (lane & step / EACH) == 0;
                    value[i] = order.lesser_or_greater(
                        value[i], shuffle_xor_over_lanes(value[i], step / EACH),
                        is_low == rises);
                }
                else if ((i & step) == 0)
                {
                    T low = value[i], high = value[i | step];
                    value[i] = order.lesser_or_greater(low, high, rises);
                    value[i | step] =
                        order.lesser_or_greater(high, low, !rises);
                }
            }
        }
    }
}

/* Deals the values out: on entry, a lane has EACH successive values of the
 * warp; on return, its value[i] is value i * OJ_LIVE_LANES + lane of the warp.
 * shared [EACH * OJ_LIVE_LANES * 17 / 16] is shared memory of the warp, with
 * gaps so that lanes access different banks. */
template <int EACH, typename T>
static __device__ __forceinline__ void
transpose_blocked_to_striped(T (&value)[EACH], uint64_t *shared)
{
    const int apart = 128 / (int)sizeof(T);
    T *to = (T *)(void *)shared;
    int lane = oj_cuda_live_lane();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EACH; i++)
        to[lane * EACH + i + (lane * EACH + i) / apart] = value[i];
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EACH; i++)
    {
        int at = i * OJ_LIVE_LANES + lane;
        value[i] = to[at + at / apart];
    }
}

static __device__ __forceinline__ uint64_t least_of_warp(uint64_t value)
{
    for (int step = OJ_LIVE_LANES / 2; step > 0; step /= 2)
    {
        uint64_t other = shuffle_xor_over_lanes(value, step);
        value = other < value ? other : value;
    }
    return value;
}

/* A row that a warp sorts: n pairs from `at` on. */
struct live_row
{
    int64_t at;
    int n;
    uint64_t least, most; /* least and greatest key of its ids */
    uint64_t *shared;     /* shared memory of the warp */
};

/* Returns the number of bits that hold the places of EACH pairs per lane. */
template <int EACH>
static __device__ __forceinline__ constexpr int count_place_bits()
{
    int bits = 0;
    while (1 << bits < EACH * OJ_LIVE_LANES)
        bits++;
    return bits;
}

/* Sorts a row by keys: the difference of an id to the least id and, if there
 * are distances, the place of the pair. Keys of places beyond the row have all
 * bits set, as no other key has: only the last place of a full row may have the
 * greatest key. */
template <typename Key, int EACH, bool HAS_DISTANCE>
static __device__ __forceinline__ void
sort_row_by_keys(const struct live_lists &lists, const struct live_row &row)
{
    constexpr int bits = HAS_DISTANCE ? count_place_bits<EACH>() : 0;
    int lane = oj_cuda_live_lane();
    Key key[EACH];
    double distance[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
    {
        int place = i * OJ_LIVE_LANES + lane;
        key[i] = ~(Key)0;
        if (place < row.n)
            key[i] = (Key)((key_of_id(lists.id[row.at + place]) - row.least)
                           << bits) |
                     (Key)(HAS_DISTANCE ? place : 0);
    }
    sort_values_of_warp<EACH>(key, key_order());
    transpose_blocked_to_striped<EACH>(key, row.shared);
#pragma unroll
    for (int i = 0; HAS_DISTANCE && i < EACH; i++)
    {
        int place = (int)(key[i] & (((Key)1 << bits) - 1));
        if (i * OJ_LIVE_LANES + lane < row.n)
            distance[i] = lists.distance[row.at + place];
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < EACH; i++)
    {
        int place = i * OJ_LIVE_LANES + lane;
        if (place >= row.n)
            continue;
        lists.id[row.at + place] =
            id_of_key((uint64_t)(key[i] >> bits) + row.least);
        if (HAS_DISTANCE)
            lists.distance[row.at + place] = distance[i];
    }
}

/* Sorts a row by distances, or by ids that differ too much for keys. */
template <int EACH>
static __device__ __forceinline__ void
sort_row_by_pairs(const struct live_lists &lists, const struct live_row &row)
{
    int lane = oj_cuda_live_lane();
    struct live_near pair[EACH];
    uint64_t word[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++)
    {
        int place = i * OJ_LIVE_LANES + lane;
        pair[i] = {INFINITY, INT64_MAX};
        if (place < row.n)
            pair[i] = {lists.distance[row.at + place],
                       lists.id[row.at + place]};
    }
    sort_values_of_warp<EACH>(pair, pair_order{lists.by_distance});
#pragma unroll
    for (int i = 0; i < EACH; i++)
        word[i] = (uint64_t)pair[i].id;
    transpose_blocked_to_striped<EACH>(word, row.shared);
#pragma unroll
    for (int i = 0; i < EACH; i++)
    {
        int place = i * OJ_LIVE_LANES + lane;
        if (place < row.n)
            lists.id[row.at + place] = (int64_t)word[i];
        word[i] = (uint64_t)__double_as_longlong(pair[i].distance);
    }
    transpose_blocked_to_striped<EACH>(word, row.shared);
#pragma unroll
    for (int i = 0; i < EACH; i++)
    {
        int place = i * OJ_LIVE_LANES + lane;
        if (place < row.n)
            lists.distance[row.at + place] =
                __longlong_as_double((long long)word[i]);
    }
}

/* Sorts a row of at most EACH * OJ_LIVE_LANES pairs. Called by all lanes of a
 * warp. */
template <int EACH, bool HAS_DISTANCE>
static __device__ __forceinline__ void sort_row(const struct live_lists &lists,
                                                struct live_row row)
{
    constexpr int bits = HAS_DISTANCE ? count_place_bits<EACH>() : 0;
    row.least = UINT64_MAX;
    row.most = 0;
    for (int i = oj_cuda_live_lane(); i < row.n; i += OJ_LIVE_LANES)
    {
        uint64_t id = key_of_id(lists.id[row.at + i]);
        row.least = id < row.least ? id : row.least;
        row.most = id > row.most ? id : row.most;
    }
    row.least = least_of_warp(row.least);
    row.most = ~least_of_warp(~row.most);
    uint64_t width = row.most - row.least;
    if (HAS_DISTANCE && (lists.by_distance || width >> (63 - bits) > 1))
        sort_row_by_pairs<EACH>(lists, row);
    else if (width >> (32 - bits) == 0)
        sort_row_by_keys<uint32_t, EACH, HAS_DISTANCE>(lists, row);
    else
        sort_row_by_keys<uint64_t, EACH, HAS_DISTANCE>(lists, row);
}

/* Returns how many blocks of the kernel for EACH values per lane a
 * multiprocessor shall hold. The compiler limits the registers of a thread
 * accordingly. */
template <int EACH> static constexpr int min_blocks_for_row_length(void)
{
    return EACH <= 4 ? 8 : EACH == 8 ? 5 : EACH == 16 ? 4 : 2;
}

/* Sorts the rows that need EACH values per lane. A warp takes 32 rows, and
 * sorts such rows one after the other. */
template <int EACH, bool HAS_DISTANCE>
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK,
                                         min_blocks_for_row_length<EACH>())
    sort_rows_of_length(const __grid_constant__ struct live_lists lists)
{
    const int most = EACH * OJ_LIVE_LANES, fewer = EACH == 1 ? 1 : most / 2;
    __shared__ uint64_t words[WARPS][most + most / 16];
    int64_t row = (int64_t)blockIdx.x * OJ_LIVE_WARP_BLOCK + threadIdx.x;
    int64_t first = row < lists.n_rows ? lists.offset[row] : 0;
    int64_t n = row < lists.n_rows ? lists.offset[row + 1] - first : 0;
    unsigned rows = __ballot_sync(OJ_LIVE_ALL_LANES, n > fewer && n <= most);
    for (; rows != 0; rows &= rows - 1u)
    {
        int r = __ffs((int)rows) - 1;
        const struct live_row of = {__shfl_sync(OJ_LIVE_ALL_LANES, first, r),
                                    (int)__shfl_sync(OJ_LIVE_ALL_LANES, n, r),
                                    0, 0, words[threadIdx.x / OJ_LIVE_LANES]};
        sort_row<EACH, HAS_DISTANCE>(lists, of);
    }
}

/* The pairs of the rows that are too long for a warp, numbered from 0. */
struct long_rows
{
    struct live_lists lists;
    const int64_t *first; /* [rows + 1] number of the first pair of a row */

    __device__ int64_t row_of_long_pair(int64_t i) const
    {
        return oj_cuda_list_of_entry(first, (int64_t)0, lists.n_rows, i);
    }
    __device__ int64_t index_of_long_pair(int64_t i) const
    {
        int64_t row = row_of_long_pair(i);
        return lists.offset[row] + (i - first[row]);
    }
};

/* Makes *order, the numbers 0 .. n - 1 of the pairs sorted by row, and within a
 * row by id, or by distance and id. */
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
        { return key_of_id(rows.lists.id[rows.index_of_long_pair(i)]); },
        order));
    if (rows.lists.by_distance)
    {
        const int32_t *by_id = *order;
        OJ_TRY(work->reorder_by<uint64_t>(
            n, 64,
            [=] __device__(int64_t i)
            {
                return (uint64_t)__double_as_longlong(
                    rows.lists.distance[rows.index_of_long_pair(by_id[i])]);
            },
            order, NULL));
    }
    const int32_t *before = *order;
    return work->reorder_by<uint32_t>(
        n, row_bits,
        [=] __device__(int64_t i)
        { return (uint32_t)rows.row_of_long_pair(before[i]); },
        order, NULL);
}

/* Sorts the rows that have more than most_short pairs. */
static oj_status sort_long_rows(struct oj_cuda_work *work,
                                const struct live_lists &of, int64_t most_short)
{
    const struct live_lists lists = of;
    struct oj_cuda_work own(work);
    int64_t *first, n;
    int32_t *order;
    int64_t *id;
    double *distance;
    OJ_TRY(own.scan_of_computed_values(
        lists.n_rows,
        [=] __device__(ptrdiff_t i)
        {
            int64_t length = i < lists.n_rows
                                 ? lists.offset[i + 1] - lists.offset[i]
                                 : (int64_t)0;
            return length > most_short ? length : (int64_t)0;
        },
        &first, &n));
    if (n == 0)
        return OJ_OK;
    if (n > INT32_MAX)
        return oj_fail(work->err, OJ_ERR_NOMEM,
                       "the rows with more than %lld pairs have %lld pairs "
                       "together, and a GPU sorts at most %d at once: join "
                       "fewer rows at a time, or within a smaller distance",
                       (long long)most_short, (long long)n, INT32_MAX);
    const struct long_rows rows = {lists, first};
    OJ_TRY(order_long_rows(&own, rows, n, &order));
    OJ_TRY(own.make(n, &id));
    OJ_TRY(own.make(n, &distance));
    const int32_t *sorted = order;
    OJ_TRY(own.each(n,
                    [=] __device__(int64_t i)
                    {
                        int64_t from = rows.index_of_long_pair(sorted[i]);
                        id[i] = lists.id[from];
                        if (lists.distance != NULL)
                            distance[i] = lists.distance[from];
                    }));
    return own.each(n,
                    [=] __device__(int64_t i)
                    {
                        int64_t to = rows.index_of_long_pair(i);
                        lists.id[to] = id[i];
                        if (lists.distance != NULL)
                            lists.distance[to] = distance[i];
                    });
}

/* Sorts the rows of at most MOST pairs: all of them if FIRST is OJ_LIVE_LANES,
 * otherwise those of more than FIRST / 2 pairs. The longest row has `longest`
 * pairs. Each length has a kernel of its own, because a common kernel would
 * need the registers of the longest one for all. */
template <int FIRST, int MOST, bool HAS_DISTANCE>
static oj_status sort_rows_by_warps(struct oj_cuda_work *work,
                                    const struct live_lists &lists,
                                    int64_t longest)
{
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(
        lists.n_rows, sort_rows_of_length<FIRST / OJ_LIVE_LANES, HAS_DISTANCE>,
        lists));
    if constexpr (FIRST < MOST)
    {
        if (longest > FIRST)
            return sort_rows_by_warps<2 * FIRST, MOST, HAS_DISTANCE>(
                work, lists, longest);
    }
    return OJ_OK;
}

/* Sorts the pairs of each row; the longest row has `longest` pairs. */
static oj_status sort_rows(struct oj_cuda_work *work, int64_t n_rows,
                           int by_distance, int64_t longest,
                           const struct oj_cuda_live_found *found)
{
    const struct live_lists lists = {n_rows, found->offset, found->id,
                                     found->distance, by_distance};
    int has_distance = found->distance != NULL;
    int64_t most_short = has_distance ? SHORT_ROW_OF_DISTANCES : SHORT_ROW;
    if (longest < 2)
        return OJ_OK;
    if (has_distance)
        OJ_TRY((sort_rows_by_warps<OJ_LIVE_LANES, SHORT_ROW_OF_DISTANCES, true>(
            work, lists, longest)));
    else
        OJ_TRY((sort_rows_by_warps<OJ_LIVE_LANES, SHORT_ROW, false>(work, lists,
                                                                    longest)));
    return longest <= most_short ? OJ_OK
                                 : sort_long_rows(work, lists, most_short);
}

/* Cuts each sorted row behind the last of the pairs that are as near as its
 * k-th. */
static oj_status cut_rows_behind_kth(struct oj_cuda_work *work, int64_t n_rows,
                                     int64_t k,
                                     struct oj_cuda_live_found *found)
{
    const struct oj_cuda_live_found from = *found;
    struct oj_cuda_live_found to = {};
    OJ_TRY(work->scan_of_computed_values(
        n_rows,
        [=] __device__(ptrdiff_t i)
        {
            int64_t first = i < n_rows ? from.offset[i] : 0;
            int64_t end = i < n_rows ? from.offset[i + 1] : 0, at = first + k;
            if (at >= end)
                return end - first;
            while (at < end &&
                   from.distance[at] == from.distance[first + k - 1])
                at++;
            return at - first;
        },
        &to.offset, &to.n));
    OJ_TRY(work->make(to.n, &to.id));
    OJ_TRY(work->make(to.n, &to.distance));
    const struct oj_cuda_live_found out = to;
    OJ_TRY(work->each(n_rows,
                      [=] __device__(int64_t i)
                      {
                          int64_t at = from.offset[i];
                          for (int64_t k_out = out.offset[i];
                               k_out < out.offset[i + 1]; k_out++, at++)
                          {
                              out.id[k_out] = from.id[at];
                              out.distance[k_out] = from.distance[at];
                          }
                      }));
    work->drop(from.offset);
    work->drop(from.id);
    work->drop(from.distance);
    *found = to;
    return OJ_OK;
}

/* --- a join --------------------------------------------------------------- */

/* Makes *order, the rows in Morton order; NULL if there are fewer than
 * OJ_CUDA_FEW_POINTS rows. */
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
            return (uint32_t)(oj_live_morton_code(frame, x, y) >> 32);
        },
        order);
}

/* Returns how many rows a warp takes: one if the rows have no order, otherwise
 * as many as leave enough warps. */
static int count_rows_per_warp(const struct oj_cuda_live_part *part,
                               const struct live_device_query &q)
{
    int64_t n = q.rows.n / (part->device.n_processors * ENOUGH_WARPS);
    if (q.order == NULL || n < 1)
        return 1;
    return n < OJ_LIVE_LANES ? (int)n : OJ_LIVE_LANES;
}

/* Returns the number of threads of the warps that all rows need. */
static int64_t threads_of_rows(const struct live_device_query &q)
{
    return (q.rows.n + q.n_together - 1) / q.n_together * OJ_LIVE_LANES;
}

/* Lists all pairs within the bounds of q; the pairs of a row are in no
 * particular order. *longest becomes the greatest number of pairs of a row. */
static oj_status list_pairs(const struct oj_cuda_live_part *part,
                            struct oj_cuda_work *work,
                            const struct live_device_query &q,
                            struct oj_cuda_live_found *out, int64_t *longest)
{
    struct
    {
        int64_t n, longest;
    } total;
    const struct oj_cuda_live_pages pages = part->pages;
    const struct oj_cuda_live_ids ids = part->ids;
    int64_t n = q.rows.n, n_threads = threads_of_rows(q);
    uint32_t *only;
    OJ_TRY(work->make(n + 2, &out->offset));
    OJ_TRY(work->make(n, &only));
    OJ_TRY(work->clear(out->offset + n, 2));
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(
        n_threads, count_row_pairs, pages, ids, q, out->offset,
        (unsigned long long *)(out->offset + n + 1), only));
    OJ_TRY(work->scan(out->offset, n));
    OJ_TRY(work->read(out->offset + n, &total));
    out->n = total.n;
    *longest = total.longest;
    OJ_TRY(work->make(out->n, &out->id));
    if (q.rows.box == NULL)
        OJ_TRY(work->make(out->n, &out->distance));
    if (out->n > 0)
        OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(
            n_threads, put_row_pairs, pages, ids, q,
            (const int64_t *)out->offset, (const uint32_t *)only, out->id,
            out->distance));
    work->drop(only);
    return OJ_OK;
}

/* Lists the at most k nearest points of each row. *bound2 [rows] becomes the
 * squared bound of each row, which includes the ties of the k-th point. */
static oj_status list_nearest(const struct oj_cuda_live_part *part,
                              struct oj_cuda_work *work,
                              struct live_device_query q, int k,
                              struct oj_cuda_live_found *out, double **bound2)
{
    const struct oj_cuda_live_pages pages = part->pages;
    const struct oj_cuda_live_ids ids = part->ids;
    int64_t n = q.rows.n;
    struct live_nearest_of_rows of = {};
    of.k = k;
    if (q.n_together > NEAREST_OF_WARP / k)
        q.n_together = NEAREST_OF_WARP / k;
    OJ_TRY(work->make(n, &of.bound2));
    OJ_TRY(work->make(n + 1, &of.count));
    OJ_TRY(work->make(n * k, &of.id));
    OJ_TRY(work->make(n * k, &of.distance));
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(
        threads_of_rows(q), find_nearest_points, pages, ids, q, of));
    OJ_TRY(work->scan_and_read_total(of.count, n, &out->n));
    out->offset = of.count;
    *bound2 = of.bound2;
    if (out->n == n * k) /* each row has k of them */
    {
        out->id = of.id;
        out->distance = of.distance;
        return OJ_OK;
    }
    OJ_TRY(work->make(out->n, &out->id));
    OJ_TRY(work->make(out->n, &out->distance));
    const struct oj_cuda_live_found to = *out;
    OJ_TRY(work->each(n * k,
                      [=] __device__(int64_t i)
                      {
                          int64_t row = i / k, at = to.offset[row] + i % k;
                          if (at >= to.offset[row + 1])
                              return;
                          to.id[at] = of.id[i];
                          to.distance[at] = of.distance[i];
                      }));
    work->drop(of.id);
    work->drop(of.distance);
    return OJ_OK;
}

/* Lists the k nearest points of each row, and all points as near as the k-th.
 */
static oj_status list_nearest_and_ties(const struct oj_cuda_live_part *part,
                                       struct oj_cuda_work *work, int k,
                                       struct live_device_query q,
                                       struct oj_cuda_live_found *out)
{
    struct oj_cuda_live_found first = {};
    double *bound2;
    int64_t longest;
    OJ_TRY(list_nearest(part, work, q, k, &first, &bound2));
    work->drop(first.offset);
    work->drop(first.id);
    work->drop(first.distance);
    q.bound2 = bound2;
    OJ_TRY(list_pairs(part, work, q, out, &longest));
    OJ_TRY(sort_rows(work, q.rows.n, 1, longest, out));
    return cut_rows_behind_kth(work, q.rows.n, k, out);
}

oj_status oj_cuda_live_find_pairs(const struct oj_cuda_live_part *part,
                                  struct oj_cuda_work *work,
                                  const struct oj_relation *relation,
                                  const struct oj_cuda_live_rows *rows,
                                  struct oj_cuda_live_found *out)
{
    struct oj_cuda_live_found found = {};
    struct live_device_query q;
    int32_t *order;
    double *bound2;
    int64_t longest;
    *out = {};
    if (part->n_points == 0 || rows->n == 0)
        return work->allocate_zeros(rows->n + 1, &out->offset);
    OJ_TRY(order_rows(part, work, rows, &order));
    q = live_question_make(relation, rows);
    q.order = order;
    q.n_together = count_rows_per_warp(part, q);
    if (!oj_relation_is_nearest(relation))
    {
        OJ_TRY(list_pairs(part, work, q, &found, &longest));
        /* the host merges sorted lists of several devices */
        if (!relation->any_order || part->device.peers != NULL)
            OJ_TRY(sort_rows(work, rows->n, 0, longest, &found));
    }
    else if (relation->ties == OJ_TIES_ALL)
        OJ_TRY(list_nearest_and_ties(part, work, (int)relation->k, q, &found));
    else
        OJ_TRY(list_nearest(part, work, q, (int)relation->k, &found, &bound2));
    *out = found;
    return OJ_OK;
}
