/* Batches of changes to the pages of a kept index on one device. With several
 * devices, each gets the whole batch, and makes the changes of its own points.
 *
 *  1 find     the entry of each id; new ones are added
 *  2 mark     the last change of each id: the one with the greatest number
 *  3 classify in its page, to another page or device, new, removed; the pages
 *             that points leave and come to are counted
 *  4 decide   above a share of points that change pages, or where pages are
 *             badly filled, all pages are built anew
 *  5 plan     arrivals are listed by page, in the order of the changes; pages
 *             that overflow are cut apart into new ones by the Morton codes of
 *             their points
 *  6 commit   a warp fills the holes of a page with its arrivals, in the order
 *             of the changes
 *
 *  Up to step 5 anything may fail, and no point has changed; step 6 needs no
 *  memory. Atomic operations count, find the greatest number, or claim a place
 *  of the table of ids or of a list that is sorted then: none of them decides
 *  the order of anything.
 *
 *  Source: G-PICS (Lewis and Tu 2022), sections on updates: movement check,
 *  leaf finding, splits, and pages of leaves; counts before fills in place of
 *  its atomic insertion, and cuts along the Morton order, are ours. */
#include "cuda_live.cuh"

#include "../foundations/device/cuda_box_reduce.cuh"
#include "../foundations/device/cuda_reduce.cuh"

#include <float.h>

/* If more than this percentage of the points change pages, all pages are built
 * anew. */
#define MOST_PERCENT_MOVED 40

/* Points outside of the frame share the codes of its border. If more than one
 * point in OUTSIDE_PART is outside, the frame is chosen anew. */
#define OUTSIDE_PART 8

/* Pages are also cut apart by the lower halves of codes if more than this many
 * points have codes with equal upper halves. */
#define FEW_EQUAL 48

/* Up to this many needless pages, and entries of removed points, are kept,
 * because they cost less than their removal. */
#define FEW_PAGES 64
#define FEW_ENTRIES 4096

/* If a batch has at most one change per this many entries, room for an entry is
 * made for each change, so that new ids need not be counted first. */
#define FEW_OF_ENTRIES 4

/* Number of threads of the block that makes the top of the tree: the levels
 * with at most FEW_NODES nodes. */
#define TOP_BLOCK 512
#define FEW_NODES 128

/* --- arrays that grow ----------------------------------------------------- */

/* Frees an array that *memory owns; array may be NULL. */
static void free_owned_array(struct oj_cuda_memory *memory,
                             struct oj_cuda_work *work, const void *array)
{
    struct oj_cuda_memory one = {};
    if (array != NULL)
        oj_cuda_move_ownership(memory, array, &one);
    oj_cuda_memory_free_all(work->device, work->stream, &one);
}

/* Replaces *array by an array of n elements, of which the first n_kept are
 * copies of the old ones. */
template <typename T>
static oj_status grow_array(struct oj_cuda_memory *memory,
                            struct oj_cuda_work *work, int64_t n_kept,
                            int64_t n, T **array)
{
    T *wider;
    OJ_TRY(work->make(n, &wider));
    if (n_kept > 0)
        OJ_TRY(work->check(
            cudaMemcpyAsync(wider, *array, (size_t)n_kept * sizeof(T),
                            cudaMemcpyDeviceToDevice, work->stream)));
    free_owned_array(memory, work, *array);
    oj_cuda_move_ownership(&work->memory, wider, memory);
    *array = wider;
    return OJ_OK;
}

static int64_t capacity_for_pages(int64_t n)
{
    return n + n / 8 + FEW_PAGES;
}

/* Enlarges the arrays of pages to n pages. */
static oj_status grow_pages(struct oj_cuda_memory *memory,
                            struct oj_cuda_work *work, int64_t n,
                            struct oj_cuda_live_pages *pages)
{
    struct oj_cuda_live_pages layout = {};
    int64_t n_kept = pages->n, n_nodes = oj_cuda_live_set_tree_levels(pages);
    layout.n = n;
    OJ_TRY(grow_array(memory, work, n_kept, n, &pages->page));
    OJ_TRY(grow_array(memory, work, n_kept, n, &pages->n_points));
    OJ_TRY(grow_array(memory, work, n_kept * OJ_LIVE_WORDS, n * OJ_LIVE_WORDS,
                      &pages->hole));
    OJ_TRY(grow_array(memory, work, n_kept, n, &pages->box));
    OJ_TRY(grow_array(memory, work, n_kept, n, &pages->place_of));
    OJ_TRY(grow_array(memory, work, n_kept, n, &pages->page_at));
    OJ_TRY(grow_array(memory, work, n_kept, n, &pages->first_code));
    return grow_array(memory, work, n_nodes,
                      oj_cuda_live_set_tree_levels(&layout), &pages->node);
}

/* Fails if n pages are too many. The slot of an entry holds the number of its
 * page in 24 bits; the last number is not used, because two of its slots are
 * OJ_LIVE_NOWHERE and OJ_LIVE_UNUSED. */
static oj_status check_number_of_pages(struct oj_cuda_work *work, int64_t n)
{
    const int64_t most = UINT32_MAX / OJ_LIVE_SLOTS;
    if (n > most)
        return oj_fail(work->err, OJ_ERR_LIMIT,
                       "a kept index has at most %lld pages on a GPU; this "
                       "batch would make them %lld: use more GPUs, or keep "
                       "several indexes",
                       (long long)most, (long long)n);
    return OJ_OK;
}

static oj_status reserve_pages(struct oj_cuda_live_part *part,
                               struct oj_cuda_work *work, int64_t n)
{
    OJ_TRY(check_number_of_pages(work, n));
    if (n <= part->cap_pages)
        return OJ_OK;
    OJ_TRY(grow_pages(&part->page_memory, work, capacity_for_pages(n),
                      &part->pages));
    part->cap_pages = capacity_for_pages(n);
    return OJ_OK;
}

static oj_status check_number_of_points(struct oj_cuda_work *work, int64_t n)
{
    if (n > INT32_MAX)
        return oj_fail(work->err, OJ_ERR_LIMIT,
                       "a kept index has at most %d points on a GPU; this "
                       "batch would make them more: use more GPUs, or keep "
                       "several indexes",
                       INT32_MAX);
    return OJ_OK;
}

/* --- 1 ids ---------------------------------------------------------------- */

/* Puts an entry into the table unless the table has an entry of its id; returns
 * the entry of the id that the table has then. ids.id must have been written
 * for all entries. */
static __device__ __forceinline__ uint32_t
put_entry(const struct oj_cuda_live_ids &ids, uint32_t entry)
{
    int64_t id = ids.id[entry];
    uint32_t at = (uint32_t)oj_live_hash_id(id) & ids.mask;
    for (;; at = (at + 1) & ids.mask)
    {
        uint32_t found = atomicCAS(&ids.table[at], 0u, entry + 1);
        if (found == 0)
            return entry;
        if (ids.id[found - 1] == id)
            return found - 1;
    }
}

/* Makes the table for n_entries entries, with at least twice as many places. */
static oj_status make_id_table(struct oj_cuda_work *work, int64_t n_entries,
                               struct oj_cuda_live_ids *ids)
{
    int64_t size = 1024;
    while (size < 2 * n_entries)
        size *= 2;
    OJ_TRY(work->allocate_zeros(size, &ids->table));
    ids->mask = (uint32_t)(size - 1);
    return OJ_OK;
}

static oj_status fill_id_table(struct oj_cuda_work *work,
                               const struct oj_cuda_live_ids &of)
{
    const struct oj_cuda_live_ids ids = of;
    return work->each(ids.n,
                      [=] __device__(int64_t i)
                      {
                          if (ids.slot[i] != OJ_LIVE_UNUSED)
                              (void)put_entry(ids, (uint32_t)i);
                      });
}

static oj_status reserve_entries(struct oj_cuda_live_part *part,
                                 struct oj_cuda_work *work, int64_t n)
{
    struct oj_cuda_live_ids ids = part->ids;
    int64_t capacity = n + n / 8 + FEW_ENTRIES;
    if (n <= part->cap_entries)
        return OJ_OK;
    if (capacity >= INT32_MAX)
        capacity = n;
    OJ_TRY(make_id_table(work, capacity, &ids));
    OJ_TRY(grow_array(&part->id_memory, work, ids.n, capacity, &part->ids.id));
    OJ_TRY(
        grow_array(&part->id_memory, work, ids.n, capacity, &part->ids.slot));
    OJ_TRY(
        grow_array(&part->id_memory, work, ids.n, capacity, &part->ids.last));
    free_owned_array(&part->id_memory, work, part->ids.table);
    oj_cuda_move_ownership(&work->memory, ids.table, &part->id_memory);
    part->ids.table = ids.table;
    part->ids.mask = ids.mask;
    part->cap_entries = capacity;
    return fill_id_table(work, part->ids);
}

/* Removes the entries without a point; the others get new numbers. */
static oj_status remove_unused_entries(struct oj_cuda_live_part *part,
                                       struct oj_cuda_work *work)
{
    const struct oj_cuda_live_ids old = part->ids;
    const struct oj_cuda_live_pages pages = part->pages;
    struct oj_cuda_live_ids ids = {};
    struct oj_cuda_work own(work);
    uint32_t *number, n;
    int64_t capacity;
    OJ_TRY(own.scan_of_computed_values(
        old.n,
        [=] __device__(ptrdiff_t i)
        { return i < old.n ? (uint32_t)oj_live_has_point(old.slot[i]) : 0u; },
        &number, &n));
    capacity = (int64_t)n + n / 8 + FEW_ENTRIES;
    ids.n = n;
    OJ_TRY(make_id_table(&own, capacity, &ids));
    OJ_TRY(own.make(capacity, &ids.id));
    OJ_TRY(own.make(capacity, &ids.slot, &ids.last));
    OJ_TRY(own.clear(ids.last, capacity));
    const struct oj_cuda_live_ids to = ids;
    OJ_TRY(own.each(
        old.n,
        [=] __device__(int64_t i)
        {
            uint32_t slot = old.slot[i], at = number[i];
            if (!oj_live_has_point(slot))
                return;
            to.id[at] = old.id[i];
            to.slot[at] = slot;
            pages.page[slot / OJ_LIVE_SLOTS].entry[slot % OJ_LIVE_SLOTS] = at;
        }));
    oj_cuda_memory_free_all(work->device, work->stream, &part->id_memory);
    own.drop(number);
    oj_cuda_move_ownership(&own.memory, NULL, &part->id_memory);
    part->ids = ids;
    part->cap_entries = capacity;
    return fill_id_table(&own, ids);
}

/* Adds entries of ids that are not there yet, for the changes i with
 * number[i + 1] > number[i]; marks the last change of each. Enlarges the
 * entries by n_room; those that no change needs stay unused. */
static oj_status add_entries(struct oj_cuda_live_part *part,
                             struct oj_cuda_work *work,
                             struct oj_cuda_live_plan *plan,
                             const uint32_t *number, int64_t n_room)
{
    const struct oj_cuda_live_batch b = plan->batch;
    struct oj_cuda_live_histogram *histogram = plan->histogram;
    int64_t n_before = part->ids.n;
    OJ_TRY(reserve_entries(part, work, n_before + n_room));
    const struct oj_cuda_live_ids ids = part->ids;
    OJ_TRY(work->each(b.n,
                      [=] __device__(int64_t i)
                      {
                          int64_t n_new = number[b.n];
                          int64_t at = n_before + number[i];
                          if (i == 0)
                              histogram->n_new = (uint32_t)n_new;
                          if (i >= n_new && i < n_room)
                              ids.slot[n_before + i] = OJ_LIVE_UNUSED;
                          if (number[i + 1] == number[i])
                              return;
                          ids.id[at] = b.id[i];
                          ids.slot[at] = OJ_LIVE_NOWHERE;
                          ids.last[at] = 0;
                      }));
    plan->has_uncounted = 1;
    plan->n_entries = n_before;
    part->ids.n += n_room;
    return work->each(b.n,
                      [=] __device__(int64_t i)
                      {
                          uint32_t mine = (uint32_t)(n_before + number[i]);
                          if (number[i + 1] == number[i])
                              return;
                          b.entry[i] = put_entry(ids, mine);
                          if (b.entry[i] != mine)
                              ids.slot[mine] = OJ_LIVE_UNUSED;
                          atomicMax(&ids.last[b.entry[i]], (uint32_t)i + 1);
                      });
}

/* Sets the entries of changes whose ids other changes of the batch have added,
 * and marks the last change of each entry. */
static oj_status find_added_entries(const struct oj_cuda_live_part *part,
                                    struct oj_cuda_work *work,
                                    const struct oj_cuda_live_batch &batch)
{
    const struct oj_cuda_live_batch b = batch;
    const struct oj_cuda_live_ids ids = part->ids;
    return work->each(b.n,
                      [=] __device__(int64_t i)
                      {
                          uint32_t entry = b.entry[i];
                          if (entry != OJ_LIVE_NOWHERE)
                              return;
                          entry = oj_cuda_live_find_entry(ids, b.id[i]);
                          b.entry[i] = entry;
                          if (entry != OJ_LIVE_NOWHERE)
                              atomicMax(&ids.last[entry], (uint32_t)i + 1);
                      });
}

/* Adds entries for the ids of changes without one, and marks the last change of
 * each. With several devices, only the device to whose region a change puts a
 * point gets an entry. If new entries may be many, the host waits and counts
 * them; otherwise room is made for an entry of each change, and the host need
 * not wait. */
static oj_status add_missing_entries(struct oj_cuda_live_part *part,
                                     struct oj_cuda_work *work,
                                     struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_batch b = plan->batch;
    const struct oj_cuda_live_region place = *plan->place;
    struct oj_cuda_work own(work);
    int64_t n_room = b.n;
    uint32_t *number;
    OJ_TRY(own.make(b.n + 1, &number));
    OJ_TRY(own.each(
        b.n,
        [=] __device__(int64_t i)
        {
            number[i] = b.entry[i] == OJ_LIVE_NOWHERE &&
                        (place.regions.n < 2 ||
                         (oj_live_is_joinable(b.x[i], b.y[i]) &&
                          oj_live_is_point_in_region(place, b.x[i], b.y[i])));
        }));
    OJ_TRY(own.scan(number, b.n));
    if (b.n > part->ids.n / FEW_OF_ENTRIES)
    {
        uint32_t n_new;
        OJ_TRY(own.read(number + b.n, &n_new));
        if (n_new == 0)
            return OJ_OK;
        n_room = n_new;
    }
    OJ_TRY(check_number_of_points(work, part->ids.n + n_room));
    OJ_TRY(add_entries(part, &own, plan, number, n_room));
    return place.regions.n < 2 ? OJ_OK : find_added_entries(part, &own, b);
}

/* --- 2, 3 what changes do ------------------------------------------------- */

/* Sets the entries of changes whose ids have one, and marks the last change of
 * each entry.
 */
static oj_status find_and_mark_entries(const struct oj_cuda_live_part *part,
                                       struct oj_cuda_work *work,
                                       struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_batch b = plan->batch;
    const struct oj_cuda_live_ids ids = part->ids;
    plan->is_marked = 1;
    if (ids.n == 0)
        return work->check(cudaMemsetAsync(
            b.entry, 0xff, (size_t)b.n * sizeof *b.entry, work->stream));
    return work->each(b.n,
                      [=] __device__(int64_t i)
                      {
                          uint32_t entry =
                              oj_cuda_live_find_entry(ids, b.id[i]);
                          b.entry[i] = entry;
                          if (entry != OJ_LIVE_NOWHERE)
                              atomicMax(&ids.last[entry], (uint32_t)i + 1);
                      });
}

static oj_status clear_marks_of_entries(const struct oj_cuda_live_part *part,
                                        struct oj_cuda_work *work,
                                        struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_batch b = plan->batch;
    const struct oj_cuda_live_ids ids = part->ids;
    if (!plan->is_marked)
        return OJ_OK;
    plan->is_marked = 0;
    if (b.n >= ids.n)
        return work->clear(ids.last, ids.n);
    return work->each(b.n,
                      [=] __device__(int64_t i)
                      {
                          if (b.entry[i] != OJ_LIVE_NOWHERE)
                              ids.last[b.entry[i]] = 0;
                      });
}

static __device__ __forceinline__ int
kind_of_arrival(const struct oj_cuda_live_pages &pages, double x, double y,
                int kind)
{
    const struct oj_box &f = pages.frame;
    int is_inside = x >= f.x0 && x <= f.x1 && y >= f.y0 && y <= f.y1;
    return is_inside ? kind : kind + OJ_LIVE_OUTSIDE;
}

/* Counts of what the batch does to a place. */
struct place_counts
{
    uint32_t *n_coming;
    int32_t *n_leaving;
    uint8_t *moves_within;
};

/* Arguments of the kernel classify_and_count(). */
struct change_classifier
{
    struct oj_cuda_live_pages pages;
    struct oj_cuda_live_ids ids;
    struct oj_cuda_live_batch batch;
    struct oj_cuda_live_region place;
    struct place_counts counts;
    struct oj_cuda_live_histogram *histogram;
};

/* Returns the kind of change i, sets its target, and counts it at the places
 * that it concerns. */
static __device__ __forceinline__ int
classify_change(const struct change_classifier &c, int64_t i)
{
    const struct oj_cuda_live_pages &pages = c.pages;
    const struct oj_cuda_live_ids &ids = c.ids;
    const struct oj_cuda_live_batch &b = c.batch;
    const struct place_counts &counts = c.counts;
    uint32_t entry = b.entry[i], slot, from = 0, to;
    double x = b.x[i], y = b.y[i];
    if (entry == OJ_LIVE_NOWHERE)
        return c.place.regions.n < 2 ? OJ_LIVE_MISSING : OJ_LIVE_ELSEWHERE;
    if (ids.last[entry] != (uint32_t)i + 1)
        return OJ_LIVE_SUPERSEDED;
    slot = ids.slot[entry];
    if (slot != OJ_LIVE_NOWHERE)
        from = pages.place_of[slot / OJ_LIVE_SLOTS];
    if (!oj_live_is_joinable(x, y))
    {
        int kind = slot == OJ_LIVE_NOWHERE ? OJ_LIVE_UNKNOWN : OJ_LIVE_REMOVED;
        if (slot != OJ_LIVE_NOWHERE)
            atomicAdd(&counts.n_leaving[from], 1);
        return kind + (x == x);
    }
    if (!oj_live_is_point_in_region(c.place, x, y))
    {
        if (slot == OJ_LIVE_NOWHERE)
            return OJ_LIVE_ELSEWHERE;
        atomicAdd(&counts.n_leaving[from], 1);
        return OJ_LIVE_LEAVES;
    }
    if (pages.n == 0)
        return OJ_LIVE_PUT;
    to = oj_cuda_live_place_of_code(pages,
                                    oj_live_morton_code(pages.frame, x, y));
    b.target[i] = to;
    if (slot != OJ_LIVE_NOWHERE && from == to)
    {
        counts.moves_within[to] = 1;
        return kind_of_arrival(pages, x, y, OJ_LIVE_STAYS);
    }
    atomicAdd(&counts.n_coming[to], 1u);
    if (slot == OJ_LIVE_NOWHERE)
        return kind_of_arrival(pages, x, y, OJ_LIVE_PUT);
    atomicAdd(&counts.n_leaving[from], 1);
    return kind_of_arrival(pages, x, y, OJ_LIVE_MOVES);
}

static __global__ void __launch_bounds__(OJ_CUDA_EACH_BLOCK)
    classify_and_count(const __grid_constant__ struct change_classifier c)
{
    __shared__ uint32_t n_of_block[OJ_LIVE_N_CHANGES];
    const struct oj_cuda_live_batch &b = c.batch;
    int64_t i = (int64_t)blockIdx.x * OJ_CUDA_EACH_BLOCK + threadIdx.x;
    if (threadIdx.x < OJ_LIVE_N_CHANGES)
        n_of_block[threadIdx.x] = 0;
    __syncthreads();
    if (i < b.n)
    {
        int kind = classify_change(c, i);
        b.kind[i] = (uint8_t)kind;
        atomicAdd(&n_of_block[kind], 1u);
        if (!oj_live_is_joinable(b.x[i], b.y[i]))
            atomicAdd(&n_of_block[OJ_LIVE_ANY_REMOVAL], 1u);
    }
    __syncthreads();
    if (threadIdx.x < OJ_LIVE_N_CHANGES && n_of_block[threadIdx.x] > 0)
        atomicAdd(&c.histogram->n[threadIdx.x], n_of_block[threadIdx.x]);
}

/* Number of points and pages of each place after the batch. */
struct place_plan
{
    const int32_t *n_leaving;
    const uint32_t *first_arrival;
    const uint64_t *spill;

    __device__ int64_t n_arrivals(int64_t place) const
    {
        return (int64_t)first_arrival[place + 1] - first_arrival[place];
    }
    __device__ int64_t n_points_after(const struct oj_cuda_live_pages &pages,
                                      int64_t place) const
    {
        return pages.n_points[pages.page_at[place]] - n_leaving[place] +
               n_arrivals(place);
    }
    __device__ int64_t first_spilled(int64_t place) const
    {
        return (int64_t)(spill[place] & 0xffffffffu);
    }
    __device__ int64_t first_additional_page(int64_t place) const
    {
        return (int64_t)(spill[place] >> 32);
    }
    __device__ int64_t n_additional_pages(int64_t place) const
    {
        return first_additional_page(place + 1) - first_additional_page(place);
    }
    /* Returns the number of the i-th page of a place; page 0 is the one it has
     * already. */
    __device__ uint32_t page_of_place(const struct oj_cuda_live_pages &pages,
                                      int64_t place, int64_t i) const
    {
        return i == 0
                   ? pages.page_at[place]
                   : (uint32_t)(pages.n + first_additional_page(place) + i - 1);
    }
    /* Returns the number of the first point in page i of a place that has n
     * points and n_more additional pages. */
    static __device__ int64_t first_point_of_page(int64_t n, int64_t n_more,
                                                  int64_t i)
    {
        return i * n / (n_more + 1);
    }
};

static struct place_plan place_plan_of(const struct oj_cuda_live_plan *plan)
{
    return {plan->n_leaving, plan->first_arrival, plan->spill};
}

static oj_status clear_counts(const struct oj_cuda_live_part *part,
                              struct oj_cuda_work *work,
                              const struct oj_cuda_live_plan *plan)
{
    int64_t n = part->pages.n + 1;
    return work->clear((uint64_t *)plan->histogram,
                       (int64_t)(sizeof *plan->histogram / 8) + 2 * n);
}

/* Allocates the counts by place, all 0. */
static oj_status make_counts(const struct oj_cuda_live_part *part,
                             struct oj_cuda_work *work,
                             struct oj_cuda_live_plan *plan)
{
    int64_t n = part->pages.n + 1;
    uint32_t *words;
    OJ_TRY(work->make(n + (int64_t)(sizeof *plan->histogram / 8) + 2 * n,
                      &plan->spill));
    plan->histogram = (struct oj_cuda_live_histogram *)(plan->spill + n);
    words = (uint32_t *)(plan->histogram + 1);
    plan->first_arrival = words;
    plan->n_leaving = (int32_t *)(words + n);
    plan->n_placed = words + 2 * n;
    plan->moves_within = (uint8_t *)(words + 3 * n);
    return clear_counts(part, work, plan);
}

/* Totals over all changes, which the host reads at once. */
struct batch_outcome
{
    uint64_t spilled; /* last element of plan->spill: the totals of points and
                         pages */
    struct oj_cuda_live_histogram count;
};

/* Counts the points of places that overflow, and the pages that they need. */
static oj_status count_overflow_of_places(const struct oj_cuda_live_part *part,
                                          struct oj_cuda_work *work,
                                          const struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_pages pages = part->pages;
    const struct place_plan places = place_plan_of(plan);
    struct oj_cuda_live_histogram *histogram = plan->histogram;
    uint64_t *spill = plan->spill;
    OJ_TRY(work->scan(plan->first_arrival, pages.n));
    OJ_TRY(work->each(pages.n,
                      [=] __device__(int64_t place)
                      {
                          int64_t n = places.n_points_after(pages, place);
                          if (places.n_arrivals(place) > OJ_LIVE_SLOTS)
                              histogram->is_crowded = 1;
                          spill[place] =
                              n <= OJ_LIVE_SLOTS
                                  ? (uint64_t)0
                                  : (uint64_t)((n - 1) / OJ_LIVE_FILL) << 32 |
                                        (uint64_t)n;
                      }));
    return work->scan(spill, pages.n);
}

/* Classifies each change, and counts by place what the changes do. The counts
 * are not needed if all pages are built anew; they are made anyway, so that the
 * host waits only once. */
static oj_status classify_changes(struct oj_cuda_live_part *part,
                                  struct oj_cuda_work *work,
                                  struct oj_cuda_live_plan *plan)
{
    struct batch_outcome outcome;
    const struct change_classifier c = {
        part->pages,
        part->ids,
        plan->batch,
        *plan->place,
        {plan->first_arrival, plan->n_leaving, plan->moves_within},
        plan->histogram};
    OJ_TRY(work->run<OJ_CUDA_EACH_BLOCK>(plan->batch.n, classify_and_count, c));
    if (part->pages.n > 0)
        OJ_TRY(count_overflow_of_places(part, work, plan));
    OJ_TRY(work->read(plan->spill + part->pages.n, &outcome));
    plan->count = outcome.count;
    if (plan->has_uncounted)
        part->ids.n = plan->n_entries + plan->count.n_new;
    if (part->pages.n > 0)
    {
        plan->n_spilled = (int64_t)(outcome.spilled & 0xffffffffu);
        plan->n_more = (int64_t)(outcome.spilled >> 32);
    }
    return OJ_OK;
}

/* Classifies all changes. With one device, most batches have no new ids, so
 * entries are added only if the first classification finds ids without one.
 * With several devices, most batches bring points from other devices, so
 * entries are added at once. */
static oj_status classify_all_changes(struct oj_cuda_live_part *part,
                                      struct oj_cuda_work *work,
                                      struct oj_cuda_live_plan *plan)
{
    OJ_TRY(find_and_mark_entries(part, work, plan));
    if (part->ids.n > 0 && plan->place->regions.n < 2)
    {
        OJ_TRY(classify_changes(part, work, plan));
        if (plan->count.n[OJ_LIVE_MISSING] == 0)
            return OJ_OK;
        OJ_TRY(clear_counts(part, work, plan));
    }
    OJ_TRY(add_missing_entries(part, work, plan));
    return classify_changes(part, work, plan);
}

/* Returns 1 if the point is new in its page: put, or moved from another page.
 */
static __device__ __forceinline__ int is_arrival(uint8_t kind)
{
    int of = kind % OJ_LIVE_OUTSIDE;
    return of == OJ_LIVE_PUT || of == OJ_LIVE_MOVES;
}

static int64_t
count_planned_changes_of_kind(const struct oj_cuda_live_plan *plan, int kind)
{
    return (int64_t)plan->count.n[kind] + plan->count.n[kind + OJ_LIVE_OUTSIDE];
}

static int64_t count_planned_removals(const struct oj_cuda_live_plan *plan)
{
    return (int64_t)plan->count.n[OJ_LIVE_REMOVED] +
           plan->count.n[OJ_LIVE_REMOVED_BEYOND] +
           plan->count.n[OJ_LIVE_LEAVES];
}

static int64_t
count_planned_points_outside(const struct oj_cuda_live_plan *plan)
{
    return (int64_t)plan->count.n[OJ_LIVE_OUTSIDE + OJ_LIVE_PUT] +
           plan->count.n[OJ_LIVE_OUTSIDE + OJ_LIVE_STAYS] +
           plan->count.n[OJ_LIVE_OUTSIDE + OJ_LIVE_MOVES];
}

/* --- 4 decide ------------------------------------------------------------- */

static int is_rebuild_cheaper(const struct oj_cuda_live_part *part,
                              const struct oj_cuda_live_plan *plan)
{
    int64_t n = plan->n_after;
    return part->pages.n == 0 ||
           plan->n_arrivals * 100 > n * MOST_PERCENT_MOVED ||
           (part->pages.n - FEW_PAGES) * (OJ_LIVE_FILL / 2) > n ||
           (part->n_outside + count_planned_points_outside(plan)) *
                   OUTSIDE_PART >
               n;
}

/* --- points that stay, as the batch leaves them --------------------------- */

/* Sets *out to the point of a slot after the batch, and returns 1; returns 0 if
 * the slot is a hole, or its point is removed or goes to another page. */
static __device__ __forceinline__ int read_kept_point(
    const struct oj_cuda_live_page &page, const struct oj_cuda_live_ids &ids,
    const struct oj_cuda_live_batch &b, int slot, struct oj_cuda_live_kept *out)
{
    uint32_t last;
    out->x = page.x[slot];
    if (!(out->x == out->x))
        return 0;
    out->y = page.y[slot];
    out->entry = page.entry[slot];
    last = ids.last[out->entry];
    if (last == 0)
        return 1;
    if (b.kind[last - 1] % OJ_LIVE_OUTSIDE != OJ_LIVE_STAYS)
        return 0;
    out->x = b.x[last - 1];
    out->y = b.y[last - 1];
    return 1;
}

/* Writes the kept points of a page to positions from at on; returns the next
 * position. Called by all lanes of a warp. */
static __device__ __forceinline__ int64_t copy_kept_points(
    const struct oj_cuda_live_page &page, const struct oj_cuda_live_ids &ids,
    const struct oj_cuda_live_batch &b, struct oj_cuda_live_kept *to,
    int64_t at)
{
    for (int slot = oj_cuda_live_lane(); slot < OJ_LIVE_SLOTS;
         slot += OJ_LIVE_LANES)
    {
        struct oj_cuda_live_kept point;
        int keeps = read_kept_point(page, ids, b, slot, &point);
        unsigned mask = __ballot_sync(OJ_LIVE_ALL_LANES, keeps);
        if (keeps)
            to[at + oj_cuda_live_lanes_before(mask)] = point;
        at += __popc(mask);
    }
    return at;
}

/* --- 5 all pages anew ----------------------------------------------------- */

static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    count_kept_points(const __grid_constant__ struct oj_cuda_live_pages pages,
                      const __grid_constant__ struct oj_cuda_live_ids ids,
                      const __grid_constant__ struct oj_cuda_live_batch batch,
                      uint32_t *count)
{
    int64_t page = oj_cuda_live_warp();
    uint32_t n = 0;
    if (page >= pages.n)
        return;
    for (int slot = oj_cuda_live_lane(); slot < OJ_LIVE_SLOTS;
         slot += OJ_LIVE_LANES)
    {
        struct oj_cuda_live_kept point;
        int keeps = read_kept_point(pages.page[page], ids, batch, slot, &point);
        n += (uint32_t)__popc(__ballot_sync(OJ_LIVE_ALL_LANES, keeps));
    }
    if (oj_cuda_live_lane() == 0)
        count[page] = n;
}

static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    gather_kept_points(const __grid_constant__ struct oj_cuda_live_pages pages,
                       const __grid_constant__ struct oj_cuda_live_ids ids,
                       const __grid_constant__ struct oj_cuda_live_batch batch,
                       const uint32_t *first, struct oj_cuda_live_kept *to)
{
    int64_t page = oj_cuda_live_warp();
    if (page < pages.n)
        (void)copy_kept_points(pages.page[page], ids, batch, to, first[page]);
}

/* Makes plan->kept: all points after the batch, first those that stay in their
 * pages, then arrivals. */
static oj_status gather_all_points(const struct oj_cuda_live_part *part,
                                   struct oj_cuda_work *work,
                                   struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_batch b = plan->batch;
    const struct oj_cuda_live_pages pages = part->pages;
    const struct oj_cuda_live_ids ids = part->ids;
    int64_t n_kept = plan->n_after - plan->n_arrivals;
    struct oj_cuda_work own(work);
    uint32_t *first, *number, n_arrivals;
    OJ_TRY(work->make(plan->n_after, &plan->kept));
    struct oj_cuda_live_kept *to = plan->kept;
    OJ_TRY(own.allocate_zeros(pages.n + 1, &first));
    OJ_TRY(own.run<OJ_LIVE_WARP_BLOCK>(
        pages.n * OJ_LIVE_LANES, count_kept_points, pages, ids, b, first));
    OJ_TRY(own.scan(first, pages.n));
    OJ_TRY(own.run<OJ_LIVE_WARP_BLOCK>(pages.n * OJ_LIVE_LANES,
                                       gather_kept_points, pages, ids, b,
                                       (const uint32_t *)first, to));
    OJ_TRY(own.scan_of_computed_values(
        b.n,
        [=] __device__(ptrdiff_t i)
        { return i < b.n ? (uint32_t)is_arrival(b.kind[i]) : 0u; },
        &number, &n_arrivals));
    return own.each(b.n,
                    [=] __device__(int64_t i)
                    {
                        int64_t at = n_kept + number[i];
                        if (!is_arrival(b.kind[i]))
                            return;
                        to[at] = {b.x[i], b.y[i], b.entry[i], {}};
                    });
}

struct unite_boxes
{
    __device__ struct oj_box operator()(struct oj_box a,
                                        const struct oj_box &b) const
    {
        oj_box_add_box(&a, &b);
        return a;
    }
};

struct greatest_word
{
    __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a > b ? a : b;
    }
};

/* Sorts all points by the upper halves of their codes or, if more than
 * FEW_EQUAL points have equal upper halves (many points close together in a
 * wide frame), by all bits. */
static oj_status order_by_code(struct oj_cuda_work *work, int64_t n,
                               const struct oj_box &frame_of,
                               struct oj_cuda_live_plan *plan)
{
    const struct oj_box frame = frame_of;
    const struct oj_cuda_live_kept *kept = plan->kept;
    struct oj_cuda_work own(work);
    int32_t *order;
    uint32_t *key, most = 0;
    OJ_TRY(own.make(n, &order));
    OJ_TRY(own.make(n, &key));
    OJ_TRY(own.each(n,
                    [=] __device__(int64_t i)
                    {
                        order[i] = (int32_t)i;
                        key[i] = (uint32_t)(oj_live_morton_code(
                                                frame, kept[i].x, kept[i].y) >>
                                            32);
                    }));
    OJ_TRY(own.sort(n, 32, &key, &order));
    const uint32_t *sorted = key;
    OJ_TRY(oj_cuda_reduce(
        &own, n > FEW_EQUAL ? n - FEW_EQUAL : 0,
        [=] __device__(ptrdiff_t i)
        { return (uint32_t)(sorted[i] == sorted[i + FEW_EQUAL]); },
        greatest_word(), &most));
    plan->code_mask = most == 0 ? UINT64_MAX << 32 : UINT64_MAX;
    if (most != 0)
    {
        const int32_t *by_upper = order;
        OJ_TRY(own.reorder_by<uint64_t>(
            n, 64,
            [=] __device__(int64_t i)
            {
                const struct oj_cuda_live_kept &of = kept[by_upper[i]];
                return oj_live_morton_code(frame, of.x, of.y);
            },
            &order, NULL));
    }
    own.move_array_to(order, work);
    plan->order = order;
    return OJ_OK;
}

static oj_status plan_rebuild(const struct oj_cuda_live_part *part,
                              struct oj_cuda_work *work,
                              struct oj_cuda_live_plan *plan)
{
    struct oj_cuda_live_pages pages = {};
    struct oj_box frame = oj_box_empty();
    int64_t n = plan->n_after;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(check_number_of_pages(work, (n + OJ_LIVE_FILL - 1) / OJ_LIVE_FILL));
    OJ_TRY(gather_all_points(part, work, plan));
    const struct oj_cuda_live_kept *kept = plan->kept;
    OJ_TRY(oj_cuda_reduce(
        work, n,
        [=] __device__(ptrdiff_t i)
        {
            struct oj_box box = {kept[i].x, kept[i].y, kept[i].x, kept[i].y};
            return box;
        },
        unite_boxes(), &frame));
    OJ_TRY(order_by_code(work, n, frame, plan));
    plan->cap_pages = capacity_for_pages((n + OJ_LIVE_FILL - 1) / OJ_LIVE_FILL);
    OJ_TRY(grow_pages(&plan->page_memory, work, plan->cap_pages, &pages));
    pages.n = (n + OJ_LIVE_FILL - 1) / OJ_LIVE_FILL;
    pages.frame = frame;
    plan->pages = pages;
    return OJ_OK;
}

/* --- 5 pages that overflow ------------------------------------------------ */

/* Lists the arrivals by target; those of one target are in any order. */
static oj_status list_arrivals(struct oj_cuda_work *work,
                               const struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_batch b = plan->batch;
    const uint32_t *first = plan->first_arrival;
    uint32_t *n_placed = plan->n_placed;
    int32_t *arrival = plan->arrival;
    return work->each(b.n,
                      [=] __device__(int64_t i)
                      {
                          uint32_t to;
                          if (!is_arrival(b.kind[i]))
                              return;
                          to = b.target[i];
                          arrival[first[to] + atomicAdd(&n_placed[to], 1u)] =
                              (int32_t)i;
                      });
}

/* Sorts the arrivals of each place, a warp per place; a place has at most as
 * many as a page has slots. Each lane counts the arrivals with smaller numbers
 * than its own. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    sort_arrivals_of_places(int64_t n_places,
                            const __grid_constant__ struct place_plan places,
                            int32_t *arrival)
{
    int64_t place = oj_cuda_live_warp();
    int lane = oj_cuda_live_lane(), n;
    int32_t mine[OJ_LIVE_WORDS], n_before[OJ_LIVE_WORDS];
    if (place >= n_places)
        return;
    n = (int)places.n_arrivals(place);
    if (n < 2)
        return;
    arrival += places.first_arrival[place];
#pragma unroll
    for (int word = 0; word < OJ_LIVE_WORDS; word++)
    {
        int i = word * OJ_LIVE_LANES + lane;
        mine[word] = i < n ? arrival[i] : INT32_MAX;
        n_before[word] = 0;
    }
#pragma unroll
    for (int word = 0; word < OJ_LIVE_WORDS; word++)
    {
        int n_lanes = n - word * OJ_LIVE_LANES;
        for (int i = 0; i < OJ_LIVE_LANES && i < n_lanes; i++)
        {
            int32_t other = __shfl_sync(OJ_LIVE_ALL_LANES, mine[word], i);
#pragma unroll
            for (int of = 0; of < OJ_LIVE_WORDS; of++)
            {
                if (of * OJ_LIVE_LANES < n)
                    n_before[of] += other < mine[of];
            }
        }
    }
#pragma unroll
    for (int word = 0; word < OJ_LIVE_WORDS; word++)
    {
        if (word * OJ_LIVE_LANES + lane < n)
            arrival[n_before[word]] = mine[word];
    }
}

/* Sorts all changes by target, arrivals first; those of one target stay in
 * their order. */
static oj_status sort_all_by_target(const struct oj_cuda_live_part *part,
                                    struct oj_cuda_work *work,
                                    struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_batch b = plan->batch;
    uint32_t nowhere = (uint32_t)part->pages.n;
    int bits = 1;
    while (nowhere >> bits != 0)
        bits++;
    return work->order_by<uint32_t>(
        b.n, bits,
        [=] __device__(int64_t i)
        { return is_arrival(b.kind[i]) ? b.target[i] : nowhere; },
        &plan->arrival);
}

/* Makes plan->arrival: the arrivals by target, those of one target in the order
 * of the changes. */
static oj_status sort_arrivals(const struct oj_cuda_live_part *part,
                               struct oj_cuda_work *work,
                               struct oj_cuda_live_plan *plan)
{
    if (plan->n_arrivals == 0)
        return OJ_OK;
    if (plan->count.is_crowded)
        return sort_all_by_target(part, work, plan);
    OJ_TRY(work->make(plan->n_arrivals, &plan->arrival));
    OJ_TRY(list_arrivals(work, plan));
    return work->run<OJ_LIVE_WARP_BLOCK>(part->pages.n * OJ_LIVE_LANES,
                                         sort_arrivals_of_places, part->pages.n,
                                         place_plan_of(plan), plan->arrival);
}

/* Gathers the points of places that overflow, a warp per place. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    gather_points_of_overflow(
        const __grid_constant__ struct oj_cuda_live_pages pages,
        const __grid_constant__ struct oj_cuda_live_ids ids,
        const __grid_constant__ struct oj_cuda_live_batch batch,
        const __grid_constant__ struct place_plan places,
        const int32_t *arrival, struct oj_cuda_live_kept *to,
        uint32_t *place_of)
{
    int64_t place = oj_cuda_live_warp(), at, end;
    int lane = oj_cuda_live_lane();
    if (place >= pages.n || places.n_additional_pages(place) == 0)
        return;
    at = places.first_spilled(place);
    end = places.first_spilled(place + 1);
    for (int64_t i = at + lane; i < end; i += OJ_LIVE_LANES)
        place_of[i] = (uint32_t)place;
    at = copy_kept_points(pages.page[pages.page_at[place]], ids, batch, to, at);
    for (int64_t i = at + lane; i < end; i += OJ_LIVE_LANES)
    {
        int64_t change = arrival[places.first_arrival[place] + (i - at)];
        to[i] = {batch.x[change], batch.y[change], batch.entry[change], {}};
    }
}

/* Makes the first codes and pages of the places after the batch: a place that
 * overflows is followed by the places of its additional pages. */
static oj_status plan_places(const struct oj_cuda_live_part *part,
                             struct oj_cuda_work *work,
                             struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_pages pages = part->pages;
    const struct place_plan places = place_plan_of(plan);
    const int32_t *order = plan->spill_order;
    const struct oj_cuda_live_kept *kept = plan->kept;
    uint64_t *first_code;
    uint32_t *page_at;
    OJ_TRY(work->make(pages.n + plan->n_more, &plan->first_code));
    OJ_TRY(work->make(pages.n + plan->n_more, &plan->page_at));
    first_code = plan->first_code;
    page_at = plan->page_at;
    return work->each(
        pages.n,
        [=] __device__(int64_t place)
        {
            int64_t at = place + places.first_additional_page(place);
            int64_t n_more = places.n_additional_pages(place);
            int64_t first = places.first_spilled(place);
            int64_t n = places.first_spilled(place + 1) - first;
            /* a page may hold codes beyond the first code of the next page if
             * their upper halves are equal (order_by_code()) */
            uint64_t most =
                place + 1 < pages.n ? pages.first_code[place + 1] : UINT64_MAX;
            first_code[at] = pages.first_code[place];
            page_at[at] = pages.page_at[place];
            for (int64_t i = 1; i <= n_more; i++)
            {
                int32_t point = order[first + place_plan::first_point_of_page(
                                                  n, n_more, i)];
                uint64_t code = oj_live_morton_code(pages.frame, kept[point].x,
                                                    kept[point].y);
                first_code[at + i] = code < most ? code : most;
                page_at[at + i] = places.page_of_place(pages, place, i);
            }
        });
}

static oj_status plan_overflow_of_places(struct oj_cuda_live_part *part,
                                         struct oj_cuda_work *work,
                                         struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_ids ids = part->ids;
    int64_t n = plan->n_spilled;
    OJ_TRY(reserve_pages(part, work, part->pages.n + plan->n_more));
    const struct oj_cuda_live_pages pages = part->pages;
    OJ_TRY(work->make(n, &plan->kept));
    OJ_TRY(work->make(n, &plan->spill_place));
    struct oj_cuda_live_kept *to = plan->kept;
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(
        pages.n * OJ_LIVE_LANES, gather_points_of_overflow, pages, ids,
        plan->batch, place_plan_of(plan), (const int32_t *)plan->arrival, to,
        plan->spill_place));
    OJ_TRY(work->order_by<uint64_t>(
        n, 64,
        [=] __device__(int64_t i)
        { return oj_live_morton_code(pages.frame, to[i].x, to[i].y); },
        &plan->spill_order));
    return plan_places(part, work, plan);
}

static oj_status plan_pages(struct oj_cuda_live_part *part,
                            struct oj_cuda_work *work,
                            struct oj_cuda_live_plan *plan)
{
    OJ_TRY(sort_arrivals(part, work, plan));
    return plan->n_spilled > 0 ? plan_overflow_of_places(part, work, plan)
                               : OJ_OK;
}

/* --- 6 boxes -------------------------------------------------------------- */

/* Computes the box of the points of a page. All lanes of a warp must call it.
 */
static __device__ __forceinline__ void
compute_box(const struct oj_cuda_live_pages &pages, int64_t number)
{
    int lane = oj_cuda_live_lane();
    struct oj_box box = oj_box_empty();
    for (int slot = lane; slot < OJ_LIVE_SLOTS; slot += OJ_LIVE_LANES)
    {
        double x = pages.page[number].x[slot];
        if (x == x)
            oj_box_add_point(&box, x, pages.page[number].y[slot]);
    }
    oj_cuda_box_of_warp(&box);
    if (lane == 0)
        pages.box[number] = box;
}

/* Puts the arrivals of each place into holes of its page, a warp per place, and
 * sets the number of points and the box of the page. The box is enlarged, or
 * computed anew if points move within the page. Places that overflow are
 * skipped. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    fill_holes(const __grid_constant__ struct oj_cuda_live_pages pages,
               const __grid_constant__ struct oj_cuda_live_ids ids,
               const __grid_constant__ struct oj_cuda_live_batch batch,
               const __grid_constant__ struct place_plan places,
               const int32_t *arrival, const uint8_t *moves_within)
{
    int64_t place = oj_cuda_live_warp();
    int lane = oj_cuda_live_lane();
    struct oj_box box = oj_box_empty();
    uint32_t number, at, end;
    if (place >= pages.n || places.n_additional_pages(place) > 0)
        return;
    number = pages.page_at[place];
    at = places.first_arrival[place];
    end = places.first_arrival[place + 1];
    if (lane == 0)
        pages.n_points[number] = (int32_t)places.n_points_after(pages, place);
    for (int i = 0; i < OJ_LIVE_WORDS && at < end; i++)
    {
        struct oj_cuda_live_page &page = pages.page[number];
        unsigned holes = pages.hole[number * OJ_LIVE_WORDS + i];
        uint32_t mine = at + (uint32_t)oj_cuda_live_lanes_before(holes);
        int takes = (holes >> lane & 1u) != 0 && mine < end;
        unsigned taken = __ballot_sync(OJ_LIVE_ALL_LANES, takes);
        if (takes)
        {
            int32_t change = arrival[mine];
            uint32_t entry = batch.entry[change];
            int slot = i * OJ_LIVE_LANES + lane;
            page.x[slot] = batch.x[change];
            page.y[slot] = batch.y[change];
            page.entry[slot] = entry;
            ids.slot[entry] = number * OJ_LIVE_SLOTS + (uint32_t)slot;
            oj_box_add_point(&box, batch.x[change], batch.y[change]);
        }
        if (lane == 0)
            pages.hole[number * OJ_LIVE_WORDS + i] = holes & ~taken;
        at += (uint32_t)__popc(holes);
    }
    __syncwarp();
    if (moves_within[place])
        compute_box(pages, number);
    else if (places.n_arrivals(place) > 0)
    {
        oj_cuda_box_of_warp(&box);
        oj_box_add_box(&box, &pages.box[number]);
        __syncwarp();
        if (lane == 0)
            pages.box[number] = box;
    }
}

static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    compute_boxes(const __grid_constant__ struct oj_cuda_live_pages pages)
{
    int64_t page = oj_cuda_live_warp();
    if (page < pages.n)
        compute_box(pages, page);
}

/* Makes the boxes of n nodes, a warp each, from the n_below boxes of the level
 * below. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    unite_boxes_of_nodes(int64_t n, int64_t n_below, const struct oj_box *below,
                         struct oj_box *node)
{
    int64_t i = oj_cuda_live_warp();
    int64_t child = i * OJ_LIVE_FANOUT + oj_cuda_live_lane();
    struct oj_box box = oj_box_empty();
    if (i >= n)
        return;
    if (child < n_below)
        box = below[child];
    oj_cuda_box_of_warp(&box);
    if (oj_cuda_live_lane() == 0)
        node[i] = box;
}

/* Makes the boxes of the places and of the nodes above them: a warp per node
 * with its 32 places. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    unite_boxes_of_places(
        const __grid_constant__ struct oj_cuda_live_pages pages)
{
    int64_t i = oj_cuda_live_warp();
    int64_t place = i * OJ_LIVE_FANOUT + oj_cuda_live_lane();
    struct oj_box box = oj_box_empty();
    if (i * OJ_LIVE_FANOUT >= pages.n)
        return;
    if (place < pages.n)
    {
        box = pages.box[pages.page_at[place]];
        pages.node[place] = box;
    }
    oj_cuda_box_of_warp(&box);
    if (pages.n_levels > 1 && oj_cuda_live_lane() == 0)
        pages.node[pages.level_first[1] + i] = box;
}

/* Makes the nodes of a level and of all levels above, in one block. */
static __global__ void __launch_bounds__(TOP_BLOCK) unite_boxes_of_top_levels(
    const __grid_constant__ struct oj_cuda_live_pages pages, int level)
{
    for (; level < pages.n_levels; level++)
    {
        const struct oj_box *below = pages.node + pages.level_first[level - 1];
        struct oj_box *node = pages.node + pages.level_first[level];
        for (int64_t i = threadIdx.x / OJ_LIVE_LANES; i < pages.level_n[level];
             i += TOP_BLOCK / OJ_LIVE_LANES)
        {
            int64_t child = i * OJ_LIVE_FANOUT + oj_cuda_live_lane();
            struct oj_box box = oj_box_empty();
            if (child < pages.level_n[level - 1])
                box = below[child];
            oj_cuda_box_of_warp(&box);
            if (oj_cuda_live_lane() == 0)
                node[i] = box;
        }
        __syncthreads();
    }
}

/* Makes the tree over the boxes of the pages. */
static oj_status make_tree(struct oj_cuda_work *work,
                           struct oj_cuda_live_pages *of)
{
    int level = 2;
    (void)oj_cuda_live_set_tree_levels(of);
    const struct oj_cuda_live_pages pages = *of;
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>((pages.n + OJ_LIVE_FANOUT - 1) /
                                             OJ_LIVE_FANOUT * OJ_LIVE_LANES,
                                         unite_boxes_of_places, pages));
    for (; level < pages.n_levels && pages.level_n[level] > FEW_NODES; level++)
        OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(
            pages.level_n[level] * OJ_LIVE_LANES, unite_boxes_of_nodes,
            pages.level_n[level], pages.level_n[level - 1],
            (const struct oj_box *)pages.node + pages.level_first[level - 1],
            pages.node + pages.level_first[level]));
    return level < pages.n_levels
               ? work->launch_blocks<TOP_BLOCK>(1, unite_boxes_of_top_levels,
                                                pages, level)
               : OJ_OK;
}

/* --- 6 commit ------------------------------------------------------------- */

/* Moves points within their pages, and makes holes of the slots whose points
 * leave. Also clears the marks of the last changes. */
static oj_status apply_changes_to_slots(const struct oj_cuda_live_part *part,
                                        struct oj_cuda_work *work,
                                        struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_batch b = plan->batch;
    const struct oj_cuda_live_pages pages = part->pages;
    const struct oj_cuda_live_ids ids = part->ids;
    plan->is_marked = 0;
    return work->each(b.n,
                      [=] __device__(int64_t i)
                      {
                          int kind = b.kind[i] % OJ_LIVE_OUTSIDE;
                          uint32_t slot;
                          struct oj_cuda_live_page *page;
                          if (b.entry[i] != OJ_LIVE_NOWHERE)
                              ids.last[b.entry[i]] = 0;
                          if (kind < OJ_LIVE_REMOVED) /* does nothing */
                              return;
                          slot = ids.slot[b.entry[i]];
                          if (slot == OJ_LIVE_NOWHERE)
                              return;
                          page = &pages.page[slot / OJ_LIVE_SLOTS];
                          if (kind == OJ_LIVE_STAYS)
                          {
                              page->x[slot % OJ_LIVE_SLOTS] = b.x[i];
                              page->y[slot % OJ_LIVE_SLOTS] = b.y[i];
                              return;
                          }
                          page->x[slot % OJ_LIVE_SLOTS] = NAN;
                          atomicOr(&pages.hole[slot / 32], 1u << slot % 32);
                          if (kind != OJ_LIVE_MOVES)
                              ids.slot[b.entry[i]] = OJ_LIVE_NOWHERE;
                      });
}

/* Finishes the pages of places that overflow, a warp per place: the slots
 * behind their points become holes, and their boxes are computed. */
static __global__ void __launch_bounds__(OJ_LIVE_WARP_BLOCK)
    finish_pages_of_overflow(
        const __grid_constant__ struct oj_cuda_live_pages pages,
        const __grid_constant__ struct place_plan places)
{
    int64_t place = oj_cuda_live_warp(), n, n_more;
    int lane = oj_cuda_live_lane();
    if (place >= pages.n || (n_more = places.n_additional_pages(place)) == 0)
        return;
    n = places.first_spilled(place + 1) - places.first_spilled(place);
    for (int64_t i = 0; i <= n_more; i++)
    {
        uint32_t number = places.page_of_place(pages, place, i);
        int64_t n_here = place_plan::first_point_of_page(n, n_more, i + 1) -
                         place_plan::first_point_of_page(n, n_more, i);
        for (int slot = lane; slot < OJ_LIVE_SLOTS; slot += OJ_LIVE_LANES)
        {
            if (slot >= n_here)
                pages.page[number].x[slot] = NAN;
        }
        if (lane < OJ_LIVE_WORDS)
            pages.hole[number * OJ_LIVE_WORDS + (uint32_t)lane] =
                oj_live_holes_beyond(n_here, lane);
        __syncwarp();
        compute_box(pages, number);
        if (lane == 0)
            pages.n_points[number] = (int32_t)n_here;
    }
}

static oj_status write_points_of_overflow(const struct oj_cuda_live_part *part,
                                          struct oj_cuda_work *work,
                                          const struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_pages pages = part->pages;
    const struct oj_cuda_live_ids ids = part->ids;
    const struct place_plan places = place_plan_of(plan);
    const struct oj_cuda_live_kept *from = plan->kept;
    const uint32_t *place_of = plan->spill_place;
    const int32_t *order = plan->spill_order;
    OJ_TRY(work->each(
        plan->n_spilled,
        [=] __device__(int64_t i)
        {
            int64_t place = place_of[i], first = places.first_spilled(place);
            int64_t n = places.first_spilled(place + 1) - first;
            int64_t n_more = places.n_additional_pages(place), r = i - first;
            int64_t of = ((r + 1) * (n_more + 1) - 1) / n;
            int64_t slot = r - place_plan::first_point_of_page(n, n_more, of);
            uint32_t number = places.page_of_place(pages, place, of);
            const struct oj_cuda_live_kept point = from[order[i]];
            struct oj_cuda_live_page *page = &pages.page[number];
            page->x[slot] = point.x;
            page->y[slot] = point.y;
            page->entry[slot] = point.entry;
            ids.slot[point.entry] = number * OJ_LIVE_SLOTS + (uint32_t)slot;
        }));
    return work->run<OJ_LIVE_WARP_BLOCK>(
        pages.n * OJ_LIVE_LANES, finish_pages_of_overflow, pages, places);
}

static oj_status set_order_of_pages(struct oj_cuda_live_part *part,
                                    struct oj_cuda_work *work,
                                    const struct oj_cuda_live_plan *plan)
{
    const uint64_t *first_code = plan->first_code;
    const uint32_t *page_at = plan->page_at;
    part->pages.n += plan->n_more;
    const struct oj_cuda_live_pages pages = part->pages;
    return work->each(pages.n,
                      [=] __device__(int64_t place)
                      {
                          pages.first_code[place] = first_code[place];
                          pages.page_at[place] = page_at[place];
                          pages.place_of[page_at[place]] = (uint32_t)place;
                      });
}

static oj_status commit_pages(struct oj_cuda_live_part *part,
                              struct oj_cuda_work *work,
                              struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_pages pages = part->pages;
    const struct place_plan places = place_plan_of(plan);
    OJ_TRY(apply_changes_to_slots(part, work, plan));
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(pages.n * OJ_LIVE_LANES, fill_holes,
                                         pages, part->ids, plan->batch, places,
                                         (const int32_t *)plan->arrival,
                                         (const uint8_t *)plan->moves_within));
    if (plan->n_spilled > 0)
    {
        OJ_TRY(write_points_of_overflow(part, work, plan));
        OJ_TRY(set_order_of_pages(part, work, plan));
    }
    return make_tree(work, &part->pages);
}

static oj_status commit_rebuild(struct oj_cuda_live_part *part,
                                struct oj_cuda_work *work,
                                struct oj_cuda_live_plan *plan)
{
    const struct oj_cuda_live_pages pages = plan->pages;
    const struct oj_cuda_live_ids ids = part->ids;
    const struct oj_cuda_live_kept *from = plan->kept;
    const int32_t *order = plan->order;
    uint64_t code_mask = plan->code_mask;
    int64_t n = plan->n_after;
    OJ_TRY(apply_changes_to_slots(part, work, plan));
    OJ_TRY(work->each(pages.n * OJ_LIVE_SLOTS,
                      [=] __device__(int64_t i)
                      {
                          int64_t number = i / OJ_LIVE_SLOTS,
                                  slot = i % OJ_LIVE_SLOTS;
                          int64_t at = number * OJ_LIVE_FILL + slot;
                          struct oj_cuda_live_page *page = &pages.page[number];
                          if (slot >= OJ_LIVE_FILL || at >= n)
                          {
                              page->x[slot] = NAN;
                              return;
                          }
                          const struct oj_cuda_live_kept point =
                              from[order[at]];
                          page->x[slot] = point.x;
                          page->y[slot] = point.y;
                          page->entry[slot] = point.entry;
                          ids.slot[point.entry] = (uint32_t)i;
                      }));
    OJ_TRY(work->each(
        pages.n,
        [=] __device__(int64_t place)
        {
            int64_t first = place * OJ_LIVE_FILL, n_here = n - first;
            int32_t point = order[first];
            pages.n_points[place] =
                (int32_t)(n_here < OJ_LIVE_FILL ? n_here
                                                : (int64_t)OJ_LIVE_FILL);
            for (int i = 0; i < OJ_LIVE_WORDS; i++)
                pages.hole[place * OJ_LIVE_WORDS + i] =
                    oj_live_holes_beyond(pages.n_points[place], i);
            pages.page_at[place] = pages.place_of[place] = (uint32_t)place;
            pages.first_code[place] =
                place == 0 ? 0
                           : oj_live_morton_code(pages.frame, from[point].x,
                                                 from[point].y) &
                                 code_mask;
        }));
    OJ_TRY(work->run<OJ_LIVE_WARP_BLOCK>(pages.n * OJ_LIVE_LANES, compute_boxes,
                                         pages));
    OJ_TRY(make_tree(work, &plan->pages));
    oj_cuda_memory_free_all(work->device, work->stream, &part->page_memory);
    part->page_memory = plan->page_memory;
    plan->page_memory = {};
    part->pages = plan->pages;
    part->cap_pages = plan->cap_pages;
    return OJ_OK;
}

/* --- a batch -------------------------------------------------------------- */

/* Returns 1 if no change concerns a point of this device. */
static int are_all_changes_elsewhere(const struct oj_cuda_live_plan *plan)
{
    return plan->n_arrivals == 0 &&
           count_planned_changes_of_kind(plan, OJ_LIVE_STAYS) == 0 &&
           count_planned_removals(plan) == 0;
}

oj_status oj_cuda_live_begin_changes(struct oj_cuda_live_part *part,
                                     struct oj_cuda_work *work,
                                     const struct oj_cuda_live_region *at,
                                     int64_t n, struct oj_cuda_live_plan *plan)
{
    *plan = {};
    plan->place = at;
    plan->n_after = part->n_points;
    if (n == 0)
        return OJ_OK;
    if (part->ids.n > 2 * part->n_points + FEW_ENTRIES)
        OJ_TRY(remove_unused_entries(part, work));
    OJ_TRY(work->make(2 * n + (n + 3) / 4, &plan->batch.entry));
    plan->batch.target = plan->batch.entry + n;
    plan->batch.kind = (uint8_t *)(plan->batch.target + n);
    plan->batch.n = n;
    return make_counts(part, work, plan);
}

oj_status oj_cuda_live_prepare_changes(struct oj_cuda_live_part *part,
                                       struct oj_cuda_work *work,
                                       const int64_t *id, const double *x,
                                       const double *y,
                                       struct oj_cuda_live_plan *plan)
{
    if (plan->batch.n == 0)
        return OJ_OK;
    plan->batch.id = id;
    plan->batch.x = x;
    plan->batch.y = y;
    OJ_TRY(classify_all_changes(part, work, plan));
    plan->n_arrivals = count_planned_changes_of_kind(plan, OJ_LIVE_PUT) +
                       count_planned_changes_of_kind(plan, OJ_LIVE_MOVES);
    plan->n_after += count_planned_changes_of_kind(plan, OJ_LIVE_PUT) -
                     count_planned_removals(plan);
    OJ_TRY(check_number_of_points(work, plan->n_after));
    plan->is_idle = are_all_changes_elsewhere(plan);
    if (plan->is_idle)
        return OJ_OK;
    plan->is_anew = is_rebuild_cheaper(part, plan);
    return plan->is_anew ? plan_rebuild(part, work, plan)
                         : plan_pages(part, work, plan);
}

oj_status oj_cuda_live_commit_changes(struct oj_cuda_live_part *part,
                                      struct oj_cuda_work *work,
                                      struct oj_cuda_live_plan *plan)
{
    if (plan->batch.n == 0)
        return OJ_OK;
    if (plan->is_idle)
        return clear_marks_of_entries(part, work, plan);
    OJ_TRY(plan->is_anew ? commit_rebuild(part, work, plan)
                         : commit_pages(part, work, plan));
    part->n_points = plan->n_after;
    part->n_outside =
        plan->is_anew ? 0
                      : part->n_outside + count_planned_points_outside(plan);
    return OJ_OK;
}

void oj_cuda_live_abandon_changes(struct oj_cuda_live_part *part,
                                  struct oj_cuda_work *work,
                                  struct oj_cuda_live_plan *plan)
{
    struct oj_error unwanted;
    struct oj_error *err = work->err;
    work->err = &unwanted;
    (void)clear_marks_of_entries(part, work, plan);
    work->err = err;
    oj_cuda_memory_free_all(work->device, work->stream, &plan->page_memory);
}

/* --- all points ----------------------------------------------------------- */

oj_status oj_cuda_live_copy_points_of_part(const struct oj_cuda_live_part *part,
                                           struct oj_cuda_work *work,
                                           int64_t *id, double *x, double *y)
{
    const struct oj_cuda_live_ids ids = part->ids;
    const struct oj_cuda_live_pages pages = part->pages;
    struct oj_cuda_work own(work);
    uint32_t *number, n;
    OJ_TRY(own.scan_of_computed_values(
        ids.n,
        [=] __device__(ptrdiff_t i)
        { return i < ids.n ? (uint32_t)oj_live_has_point(ids.slot[i]) : 0u; },
        &number, &n));
    return own.each(ids.n,
                    [=] __device__(int64_t i)
                    {
                        uint32_t slot = ids.slot[i], at = number[i];
                        const struct oj_cuda_live_page *page;
                        if (!oj_live_has_point(slot))
                            return;
                        page = &pages.page[slot / OJ_LIVE_SLOTS];
                        id[at] = ids.id[i];
                        x[at] = page->x[slot % OJ_LIVE_SLOTS];
                        y[at] = page->y[slot % OJ_LIVE_SLOTS];
                    });
}
