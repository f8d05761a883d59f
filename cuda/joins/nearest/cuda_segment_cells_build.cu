#include "cuda_segment_cells_build.cuh"

#include "cuda_segment_cells_split.cuh"

#include <string.h>

#define BLOCK 256
/* Number of blocks that process the entries of one huge node. */
#define HUGE_BLOCKS 2048u
/* Maximum number of huge nodes per launch, a limit of grids. */
#define HUGE_NODES 32768u
#define ROUNDS 64
/* Lists are counted in 32 bits, with up to 32 entries per segment. */
#define MOST_SEGMENTS (1 << 27)

/* Sizes of the arrays of a build, in elements per segment of the join side. */
struct room
{
    double ids, headers, words;
};

struct cuda_cells_build
{
    /* owner of the arrays that stay until the end of the build */
    struct oj_cuda_work *work;
    const struct oj_cuda_layer *layer;
    struct oj_cuda_cells *cells;
    struct room room;
    int64_t n_roots;               /* number of segments in the root's list */
    struct oj_cells_counters seen; /* the counters, copied to the host */
    /* The root's list without duplicates; NULL: all segments. */
    uint32_t *distinct;
    struct oj_cells_round round;
    /* Freed after this attempt, like most arrays of round. */
    struct oj_cells_plan *plan;
};

static unsigned long long min_uint64(unsigned long long a, unsigned long long b)
{
    return a < b ? a : b;
}

/* Makes the output of a round the input of the next one. */
static void swap_round_buffers(struct oj_cells_round *r)
{
    uint32_t *id = r->id;
    r->id = r->next_id;
    r->next_id = id;
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
    {
        struct oj_near_node *node = r->node[k];
        r->node[k] = r->next_node[k];
        r->next_node[k] = node;
    }
}

/* --- before the first round ----------------------------------------------- */

/* Keeps only the first in tie order of several segments with equal vertices in
 * equal order. table [size] is a hash table; an element is 0 if empty,
 * otherwise the number of a segment plus 1, with a mark if the segment replaces
 * one of another feature. */
static __global__ void
mark_duplicate_segments(const __grid_constant__ struct oj_cells_round r,
                        uint32_t n, uint32_t *table, uint32_t size)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x, at;
    const int32_t *rank = r.rank;
    struct oj_cuda_segment key;
    if (i >= n)
        return;
    key = r.segment[i];
    at = oj_near_hash(&key) & (size - 1);
    for (;;)
    {
        uint32_t seen = *(volatile uint32_t *)&table[at], holder, mark;
        if (seen == 0)
            seen = atomicCAS(&table[at], 0u, i + 1);
        if (seen == 0)
            return;
        holder = (seen & ~OJ_NEAR_SHARED) - 1;
        struct oj_cuda_segment other = r.segment[holder];
        if (!oj_near_keys_equal(&key, &other))
        {
            at = (at + 1) & (size - 1);
            continue;
        }
        mark = r.marks_ties && rank[i] != rank[holder] ? OJ_NEAR_SHARED : 0u;
        if (!oj_near_segment_replaces(rank[i], (int32_t)i, rank[holder],
                                      (int32_t)holder))
        {
            atomicOr(&table[at], mark);
            return;
        }
        mark |= seen & OJ_NEAR_SHARED;
        if (atomicCAS(&table[at], seen, (i + 1) | mark) == seen)
            return;
    }
}

static __global__ void
list_distinct_segments(uint32_t size, const uint32_t *table, uint32_t *id,
                       struct oj_cells_counters *counters)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    uint32_t marked = i < size ? table[i] : 0;
    unsigned long long at =
        reserve_positions_by_warp(&counters->ids, marked != 0);
    if (marked != 0)
        id[at] = ((marked & ~OJ_NEAR_SHARED) - 1) | (marked & OJ_NEAR_SHARED);
}

static oj_status read_counters(struct cuda_cells_build *b)
{
    return b->work->read(b->round.counters, &b->seen);
}

static oj_status find_distinct_segments(struct cuda_cells_build *b)
{
    struct oj_cuda_work work(b->work);
    uint32_t n = (uint32_t)b->layer->n_segments, size = 1024, *table;
    while (size < 2 * (uint64_t)n && size < (1u << 31))
        size *= 2;
    if (size <= n)
        return OJ_OK;
    OJ_TRY(b->work->make(n, &b->distinct));
    OJ_TRY(work.allocate_zeros(size, &table));
    OJ_TRY(work.clear(b->round.counters, 1));
    OJ_TRY(
        work.run<BLOCK>(n, mark_duplicate_segments, b->round, n, table, size));
    OJ_TRY(work.run<BLOCK>(size, list_distinct_segments, size, table,
                           b->distinct, b->round.counters));
    OJ_TRY(read_counters(b));
    b->n_roots = (int64_t)b->seen.ids.n;
    return OJ_OK;
}

/* --- sizes of arrays ------------------------------------------------------ */

static unsigned long long estimate_entries(double per_segment, int64_t n,
                                           int64_t least)
{
    double wanted = per_segment * (double)n + (double)least;
    double most = (double)(UINT32_MAX - 4096);
    return (unsigned long long)(wanted < most ? wanted : most);
}

static oj_status allocate_round_buffers(struct cuda_cells_build *b,
                                        struct oj_cuda_work *work)
{
    struct oj_cells_round *r = &b->round;
    int64_t n = b->layer->n_segments, n_ids;
    r->max_ids = estimate_entries(b->room.ids, n, 1 << 18);
    r->max_headers = estimate_entries(b->room.headers, n, 1 << 16);
    r->max_words = estimate_entries(b->room.words, n, 1 << 18);
    r->max_nodes[OJ_CELLS_OF_SHORT] = r->max_headers;
    r->max_nodes[OJ_CELLS_OF_LONG] = r->max_ids / OJ_CELLS_SHORT + 16;
    r->max_nodes[OJ_CELLS_OF_HUGE] = r->max_ids / OJ_CELLS_LONG + 16;
    n_ids = (int64_t)r->max_ids;
    OJ_TRY(work->make((int64_t)r->max_words, &r->pool));
    OJ_TRY(work->make((int64_t)r->max_headers, &r->tree));
    OJ_TRY(work->make(n_ids, &r->mask));
    OJ_TRY(work->make(n_ids, &r->id, &r->next_id));
    OJ_TRY(work->make(
        (int64_t)min_uint64(r->max_nodes[OJ_CELLS_OF_HUGE], HUGE_NODES),
        &b->plan));
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
        OJ_TRY(work->make((int64_t)r->max_nodes[k], &r->node[k],
                          &r->next_node[k]));
    return OJ_OK;
}

/* --- rounds --------------------------------------------------------------- */

static oj_status run_split_round(struct cuda_cells_build *b,
                                 const unsigned long long *n)
{
    const struct oj_cells_round *r = &b->round;
    cudaStream_t stream = b->work->stream;
    for (unsigned long long at = 0; at < n[OJ_CELLS_OF_HUGE]; at += HUGE_NODES)
    {
        unsigned nodes =
            (unsigned)min_uint64(n[OJ_CELLS_OF_HUGE] - at, HUGE_NODES);
        unsigned each = HUGE_BLOCKS / nodes > 16 ? HUGE_BLOCKS / nodes : 16;
        dim3 many(each, nodes), one(1, nodes);
        struct oj_cells_plan *plan = b->plan;
        struct oj_cells_round part = *r;
        part.node[OJ_CELLS_OF_HUGE] += at;
        split_huge_lists<OJ_CELLS_BEGIN>
            <<<one, HUGE_BLOCK, 0, stream>>>(part, plan);
        split_huge_lists<OJ_CELLS_BOUND>
            <<<many, HUGE_BLOCK, 0, stream>>>(part, plan);
        split_huge_lists<OJ_CELLS_MASK>
            <<<many, HUGE_BLOCK, 0, stream>>>(part, plan);
        split_huge_lists<OJ_CELLS_SETTLE>
            <<<one, HUGE_BLOCK, 0, stream>>>(part, plan);
        split_huge_lists<OJ_CELLS_FILL>
            <<<many, HUGE_BLOCK, 0, stream>>>(part, plan);
    }
    if (n[OJ_CELLS_OF_LONG] > 0)
        split_long_lists<<<(unsigned)n[OJ_CELLS_OF_LONG], LONG_BLOCK, 0,
                           stream>>>(*r, n[OJ_CELLS_OF_LONG]);
    if (n[OJ_CELLS_OF_SHORT] > 0)
        split_short_lists<<<(unsigned)((n[OJ_CELLS_OF_SHORT] + GROUPS - 1) /
                                       GROUPS),
                            SHORT_BLOCK, 0, stream>>>(*r, n[OJ_CELLS_OF_SHORT]);
    return b->work->check(cudaGetLastError());
}

/* Zeroes the counters that start from 0 in each round. */
static oj_status clear_round_counters(struct cuda_cells_build *b)
{
    return b->work->clear(&b->round.counters->ids, 1 + OJ_CELLS_CLASSES);
}

/* Starts with the root as the only node. */
static oj_status start_build_from_root(struct cuda_cells_build *b,
                                       unsigned long long *n)
{
    struct oj_cuda_work *work = b->work;
    uint32_t n_roots = (uint32_t)b->n_roots;
    enum oj_cells_class k = size_class_of_list(n_roots);
    const struct oj_cuda_segment *segment = b->layer->segment.data;
    const uint32_t *distinct = b->distinct;
    struct oj_cells_counters *counters = b->round.counters;
    struct oj_near_node *root = b->round.node[k];
    struct oj_near_header *tree = b->round.tree;
    uint32_t *id = b->round.id;
    OJ_TRY(work->clear(counters, 1));
    OJ_TRY(
        work->check(cudaMemsetAsync(&counters->headers, 1, 1, work->stream)));
    OJ_TRY(work->each(b->layer->n_segments,
                      [=] __device__(int64_t i)
                      {
                          if (oj_near_has_no_length(segment[i]))
                              counters->lost.n = 1;
                      }));
    OJ_TRY(work->each(n_roots,
                      [=] __device__(int64_t i)
                      {
                          id[i] = distinct != NULL ? distinct[i] : (uint32_t)i;
                          if (i > 0)
                              return;
                          *root = {0, n_roots, 0, 0, 0, 0, 0};
                          tree->first = 0;
                          tree->info = oj_near_leaf_info(0, 0, 127);
                      }));
    memset(n, 0, OJ_CELLS_CLASSES * sizeof *n);
    n[k] = 1;
    return OJ_OK;
}

/* --- start below the root ------------------------------------------------- */

#define SEED_BLOCK 256
/* Maximum number of cells that one segment may intersect, and of cells per
 * segment on average. If a limit is exceeded, the build does not start at this
 * level. So sums of list lengths stay below 2^32. */
#define SEED_MOST_CELLS 31u
#define SEED_MEAN_CELLS 6u

struct start_level
{
    int level; /* even */
    double x0, y0, per_cell, widen;
    int64_t n;
    const struct oj_cuda_segment *segment;
    uint32_t *cursor; /* [cells] length, later end, of each list */
};

static __device__ struct oj_near_cells_of
start_level_cells_of_interval(const struct start_level &s, double low,
                              double high)
{
    return oj_near_start_cells_of_interval(s.level, s.per_cell, s.widen, low,
                                           high);
}

/* Counts the segments of each cell if fill is 0, or stores them in the list of
 * the cell if fill is 1. */
template <int fill>
static __global__ void __launch_bounds__(SEED_BLOCK)
    count_or_list_cell_segments(struct start_level s, uint32_t *id,
                                struct oj_cells_counters *counters)
{
    int64_t i = (int64_t)blockIdx.x * SEED_BLOCK + threadIdx.x;
    uint32_t lane = threadIdx.x % 32, n = 0;
    struct oj_near_cells_of x = {0, 0}, y = {0, 0};
    if (i < s.n)
    {
        struct oj_cuda_segment g = s.segment[i];
        x = start_level_cells_of_interval(s, fmin(g.ax, g.bx) - s.x0,
                                          fmax(g.ax, g.bx) - s.x0);
        y = start_level_cells_of_interval(s, fmin(g.ay, g.by) - s.y0,
                                          fmax(g.ay, g.by) - s.y0);
        if (!fill && oj_near_has_no_length(g))
            counters->lost.n = 1;
        n = (x.last - x.first + 1) * (y.last - y.first + 1);
        if (n > SEED_MOST_CELLS)
        {
            counters->spread.n = 1;
            n = 0;
        }
    }
    for (uint32_t k = 0; __any_sync(FULL_WARP, k < n); k++)
    {
        uint32_t width = x.last - x.first + 1, base = 0;
        uint32_t cell = k < n ? oj_near_start_cell(s.level, x.first + k % width,
                                                   y.first + k / width)
                              : UINT32_MAX;
        uint32_t peers = __match_any_sync(FULL_WARP, cell);
        int leader = __ffs((int)peers) - 1;
        if (k < n && (int)lane == leader)
            base = atomicAdd(&s.cursor[cell], (uint32_t)__popc(peers));
        base = __shfl_sync(FULL_WARP, base, leader);
        if (fill && k < n)
            id[base + (uint32_t)__popc(peers & ((1u << lane) - 1u))] =
                (uint32_t)i;
    }
}

/* Makes the nodes of the cells and reserves their lists. */
static __global__ void __launch_bounds__(SEED_BLOCK)
    make_start_nodes(struct start_level s, struct oj_cells_round r)
{
    uint32_t cell = blockIdx.x * SEED_BLOCK + threadIdx.x;
    int lane = (int)(threadIdx.x % 32);
    uint32_t n = s.cursor[cell], sum = scan_warp(n, lane);
    uint32_t all = __shfl_sync(FULL_WARP, sum, 31);
    enum oj_cells_class mine = size_class_of_list(n);
    unsigned long long first = 0, at = 0;
    struct oj_near_node node = oj_near_start_node(s.level, cell, n);
    if (lane == 0)
        first = atomicAdd(&r.counters->ids.n, (unsigned long long)all);
    first = __shfl_sync(FULL_WARP, first, 0) + sum - n;
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
    {
        unsigned long long place = reserve_positions_by_warp(
            &r.counters->nodes[k], n > 0 && mine == k);
        at = mine == k ? place : at;
    }
    node.first = (uint32_t)first;
    s.cursor[cell] = node.first;
    if (n == 0)
        write_node_header(r, node.header, 0,
                          oj_near_leaf_info(0, s.level, 127));
    else if (at < r.max_nodes[mine])
        r.next_node[mine][at] = node;
}

/* Writes the headers of the levels above the cells. */
static oj_status write_headers_above_start_level(struct oj_cuda_work *work,
                                                 const struct oj_cells_round &r,
                                                 int level)
{
    struct oj_near_header *tree = r.tree;
    struct oj_cells_counters *counters = r.counters;
    return work->each(oj_near_start_headers_above(level),
                      [=] __device__(int64_t i)
                      {
                          struct oj_near_header h =
                              oj_near_start_header((uint32_t)i);
                          *(uint2 *)(tree + i) = make_uint2(h.first, h.info);
                          if (i == 0)
                              counters->headers.n =
                                  oj_near_start_headers_above(level + 2);
                      });
}

/* Starts the build with the cells of `level` instead of the root. *done is 0 if
 * this is not possible. */
static oj_status start_build_from_level_cells(struct cuda_cells_build *b,
                                              int level, unsigned long long *n,
                                              int *done)
{
    struct oj_cuda_work work(b->work);
    struct oj_cells_round r = b->round;
    const struct oj_near_square *square = &b->cells->square;
    uint32_t n_cells = 1u << (2 * level);
    int64_t n_segments = b->layer->n_segments;
    struct start_level s;
    s.level = level;
    s.x0 = square->x0;
    s.y0 = square->y0;
    s.per_cell = ldexp(1.0, level) / square->side;
    s.widen = oj_near_start_widen(square, level);
    s.n = n_segments;
    s.segment = b->layer->segment.data;
    swap_round_buffers(&r); /* the kernels fill the first lists */
    OJ_TRY(work.allocate_zeros(n_cells, &s.cursor));
    OJ_TRY(work.clear(r.counters, 1));
    OJ_TRY(work.run<SEED_BLOCK>(n_segments, count_or_list_cell_segments<0>, s,
                                (uint32_t *)NULL, r.counters));
    OJ_TRY(work.run<SEED_BLOCK>(n_cells, make_start_nodes, s, r));
    OJ_TRY(write_headers_above_start_level(&work, r, level));
    OJ_TRY(read_counters(b));
    *done = !b->seen.spread.n &&
            b->seen.ids.n <= min_uint64(r.max_ids, SEED_MEAN_CELLS *
                                                       (unsigned long long)s.n);
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
    {
        n[k] = b->seen.nodes[k].n;
        *done = *done && n[k] <= r.max_nodes[k];
    }
    if (!*done)
        return OJ_OK;
    OJ_TRY(work.run<SEED_BLOCK>(n_segments, count_or_list_cell_segments<1>, s,
                                r.next_id, r.counters));
    return clear_round_counters(b);
}

/* Runs rounds until no node is left. Stops early if the build must be repeated;
 * then a counter in b->seen shows the reason. */
static oj_status run_split_rounds(struct cuda_cells_build *b)
{
    unsigned long long n[OJ_CELLS_CLASSES];
    int k, level = oj_near_start_level(&b->cells->square, b->n_roots), done = 0;
    /* if segments are too long for the cells of a level, tries larger cells */
    for (; level >= 4 && !done && b->distinct == NULL; level -= 2)
    {
        if (oj_near_start_headers_above(level + 2) <= b->round.max_headers)
            OJ_TRY(start_build_from_level_cells(b, level, n, &done));
    }
    if (!done)
        OJ_TRY(start_build_from_root(b, n));
    for (int i = 0; i < ROUNDS; i++)
    {
        OJ_TRY(run_split_round(b, n));
        OJ_TRY(read_counters(b));
        OJ_TRY(oj_check_cancel(b->work->device->cancel, b->work->err));
        if (b->seen.lost.n)
            return oj_fail(b->work->err, OJ_ERR_UNSUPPORTED,
                           "the join layer has segments so short that the GPU "
                           "loses their length in rounding; remove them, or "
                           "join on the CPU (backend cpu)");
        if (b->seen.pool_full.n || (b->seen.crowded.n && b->distinct == NULL))
            return OJ_OK;
        for (k = 0; k < OJ_CELLS_CLASSES; k++)
            n[k] = min_uint64(b->seen.nodes[k].n, b->round.max_nodes[k]);
        if (n[0] + n[1] + n[2] == 0)
            break;
        OJ_TRY(clear_round_counters(b));
        swap_round_buffers(&b->round);
    }
    return OJ_OK;
}

/* --- the directory -------------------------------------------------------- */

static oj_status make_directory(struct cuda_cells_build *b,
                                struct oj_cuda_work *keep)
{
    struct oj_cuda_cells *cells = b->cells;
    const struct oj_near_header *tree = cells->tree;
    struct oj_near_header *directory;
    int64_t n_headers =
                (int64_t)min_uint64(b->seen.headers.n, b->round.max_headers),
            n;
    int level = 3;
    while (level < 12 && ((int64_t)1 << (2 * level)) < 4 * n_headers)
        level++;
    cells->directory_level = level;
    n = (int64_t)1 << (2 * level);
    OJ_TRY(keep->make(n, &directory));
    cells->directory = directory;
    return keep->each(
        n,
        [=] __device__(int64_t i)
        {
            uint32_t rest = (1u << level) - 1u;
            struct oj_near_header h = oj_near_smallest_node(
                tree, (uint32_t)i & rest, (uint32_t)i >> level, level);
            *(uint2 *)(directory + i) = make_uint2(h.first, h.info);
        });
}

/* --- the build ------------------------------------------------------------ */

/* Halves the arrays and allows longer leaves; used when the device lacks
 * memory. */
static void reduce_memory_and_lengthen_leaves(struct cuda_cells_build *b)
{
    b->room.ids *= 0.5;
    b->room.headers *= 0.5;
    b->room.words *= 0.6;
    b->round.leaf_size *= 2;
}

/* Builds the cells. *done is 0 if the build must be repeated; b->seen has the
 * reason. */
static oj_status build_cells_within_memory(struct cuda_cells_build *b,
                                           struct oj_cuda_work *keep, int *done)
{
    struct oj_cuda_work work(keep);
    OJ_TRY(allocate_round_buffers(b, &work));
    OJ_TRY(run_split_rounds(b));
    *done = !b->seen.pool_full.n && !(b->seen.crowded.n && b->distinct == NULL);
    if (*done)
    {
        work.move_array_to(b->round.tree, keep);
        work.move_array_to(b->round.pool, keep);
        b->cells->tree = b->round.tree;
        b->cells->pool = b->round.pool;
    }
    return OJ_OK;
}

static oj_status build_with_retries(struct cuda_cells_build *b,
                                    struct oj_cuda_work *keep)
{
    for (int attempt = 0;; attempt++)
    {
        int done = 0;
        oj_status status = build_cells_within_memory(b, keep, &done);
        if (done)
            return OJ_OK;
        if (status != OJ_OK && (status != OJ_ERR_NOMEM || attempt == 12))
            return status;
        if (attempt == 12)
            return oj_fail(keep->err, OJ_ERR_NOMEM,
                           "the join layer needs more memory than the GPU has "
                           "or gpu_memory allows: join on the CPU (backend "
                           "cpu)");
        if (status == OJ_ERR_NOMEM)
            reduce_memory_and_lengthen_leaves(b);
        else if (b->seen.pool_full.n)
            b->room.words *= 2.0;
        else
        {
            OJ_TRY(find_distinct_segments(b));
            b->room.ids *= 2.0;
        }
    }
}

oj_status oj_cuda_cells_build(struct oj_cuda_work *keep,
                              const struct oj_cuda_layer *layer, double reach,
                              int marks_ties, struct oj_cuda_cells *out)
{
    struct oj_cuda_work work(keep);
    struct cuda_cells_build b = {};
    if (layer->n_segments == 0)
        return OJ_OK;
    if (layer->n_segments > MOST_SEGMENTS)
        return oj_fail(keep->err, OJ_ERR_UNSUPPORTED,
                       "the join layer has %lld segments; the nearest join on "
                       "a GPU takes at most %d: join on the CPU (backend cpu), "
                       "or in tiles (-memory SIZE of the command)",
                       (long long)layer->n_segments, MOST_SEGMENTS);
    if (!oj_near_square_make(layer->x0, layer->y0, layer->x1, layer->y1,
                             layer->magnitude, reach, layer->n_segments,
                             &out->square))
        return oj_fail(keep->err, OJ_ERR_UNSUPPORTED,
                       "the join layer's coordinates are too large or too "
                       "small for the GPU; join on the CPU (backend cpu)");
    b.work = &work;
    b.layer = layer;
    b.cells = out;
    b.round.square = out->square;
    b.round.segment = layer->segment.data;
    b.round.rank = layer->segment_feature.data;
    b.round.marks_ties = marks_ties;
    /* Queries of short lists are faster, but short lists take longer to make.
     * Measured with lots (4 million segments) and streets (118,000) under 170
     * million points. */
    b.round.leaf_size = layer->n_segments < (1 << 19)   ? 6
                        : layer->n_segments < (1 << 21) ? 12
                                                        : 20;
    /* Twice what these two layers, lots and streets, needed. With a large reach
     * the first lists are long. */
    b.room.ids = reach > out->square.side / 32.0 ? 32.0 : 12.0;
    b.room.headers = 36.0 / (double)b.round.leaf_size;
    b.room.words = 14.0 + 108.0 / (double)b.round.leaf_size;
    b.n_roots = layer->n_segments;
    OJ_TRY(work.make(1, &b.round.counters));
    OJ_TRY(build_with_retries(&b, keep));
    return make_directory(&b, keep);
}

struct oj_near_view oj_cuda_cells_view(const struct oj_cuda_cells *cells,
                                       const struct oj_cuda_layer *layer)
{
    return {cells->square,    cells->directory_level,
            cells->directory, cells->tree,
            cells->pool,      layer->segment.data};
}
