#include "cuda_cells.h"

#include "../device/cuda_stage.h"

#include "cuda_cells_long.cuh"
#include "cuda_cells_seed.cuh"
#include "cuda_cells_short.cuh"

#include <string.h>

#define BLOCK 256
/* Blocks for the entries of one huge node. */
#define HUGE_BLOCKS 2048u
/* Huge nodes at a time: a limit of grids. */
#define HUGE_NODES 32768u
#define ROUNDS 64
/* Lists are counted in 32 bits, 32 times as many entries as segments. */
#define MOST_SEGMENTS (1 << 27)

/* How much room a build gets, by segments of the join side. */
struct room
{
    double ids, headers, words;
};

struct cuda_cells_build
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_cuda_cells *cells;
    struct oj_error *err;
    uint32_t leaf_size;
    int marks_ties;
    struct room room;
    int64_t n_roots; /* segments in the root's list */
    int n_rounds;
    struct oj_cuda_array<uint32_t> id[2];
    struct oj_cuda_array<uint16_t> mask;
    struct oj_cuda_array<struct oj_near_node> node[2][OJ_CELLS_CLASSES];
    struct oj_cuda_array<struct oj_cells_plan> plan;
    struct oj_cuda_array<struct oj_cells_counters> counters;
    struct oj_cuda_array<uint32_t> distinct; /* root's list without copies */
    struct oj_cells_counters seen;           /* host copy */
};

/* --- before the first round ----------------------------------------------- */

static __global__ void find_lost(int64_t n,
                                 const struct oj_cuda_segment *segment,
                                 struct oj_cells_counters *counters)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n && oj_near_is_lost(segment[i].ax, segment[i].ay, segment[i].bx,
                                 segment[i].by))
        counters->lost.n = 1;
}

static __global__ void list_all(uint32_t n, const uint32_t *distinct,
                                uint32_t *id)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        id[i] = distinct != NULL ? distinct[i] : i;
}

static __global__ void put_root(struct oj_near_node *node, uint32_t n,
                                struct oj_near_header *tree)
{
    struct oj_near_node root = {0, n, 0, 0, 0, 0, 0};
    *node = root;
    tree[0].first = 0;
    tree[0].info = oj_near_leaf_info(0, 0, 127);
}

/* Segments with the same vertices in the same order: only the first in tie
 * order is kept. table has the number of a segment plus 1, and a mark where it
 * stands for other features. */
static __device__ struct oj_near_key
whole_key(const struct oj_cuda_segment *segment, uint32_t i)
{
    struct oj_near_key k = {segment[i].ax, segment[i].ay, segment[i].bx,
                            segment[i].by};
    return k;
}

static __global__ void mark_copies(uint32_t n,
                                   const struct oj_cuda_segment *segment,
                                   const int32_t *rank, int marks_ties,
                                   uint32_t *table, uint32_t size)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x, at;
    struct oj_near_key key;
    if (i >= n)
        return;
    key = whole_key(segment, i);
    at = oj_near_hash(&key) & (size - 1);
    for (;;)
    {
        uint32_t seen = *(volatile uint32_t *)&table[at], there, mark;
        if (seen == 0)
            seen = atomicCAS(&table[at], 0u, i + 1);
        if (seen == 0)
            return;
        there = (seen & ~OJ_NEAR_SHARED) - 1;
        struct oj_near_key other = whole_key(segment, there);
        if (!oj_near_same_key(&key, &other))
        {
            at = (at + 1) & (size - 1);
            continue;
        }
        mark = marks_ties && rank[i] != rank[there] ? OJ_NEAR_SHARED : 0u;
        if (!oj_near_drops(rank[i], (int32_t)i, rank[there], (int32_t)there))
        {
            atomicOr(&table[at], mark);
            return;
        }
        mark |= seen & OJ_NEAR_SHARED;
        if (atomicCAS(&table[at], seen, (i + 1) | mark) == seen)
            return;
    }
}

static __global__ void list_distinct(uint32_t size, const uint32_t *table,
                                     uint32_t *id,
                                     struct oj_cells_counters *counters)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    uint32_t there = i < size ? table[i] : 0;
    uint32_t votes = __ballot_sync(FULL_WARP, there != 0);
    uint32_t lane = threadIdx.x % 32;
    unsigned long long base = 0;
    if (lane == 0 && votes != 0)
        base = atomicAdd(&counters->ids.n, (unsigned long long)__popc(votes));
    base = __shfl_sync(FULL_WARP, base, 0);
    if (there != 0)
        id[base + (unsigned)__popc(votes & ((1u << lane) - 1u))] =
            ((there & ~OJ_NEAR_SHARED) - 1) | (there & OJ_NEAR_SHARED);
}

static oj_status read_counters(struct cuda_cells_build *b)
{
    return oj_cuda_read(b->device->stream, b->counters.data,
                        (int)sizeof b->seen, &b->seen, "building cells",
                        b->err);
}

static oj_status clear_counters(struct cuda_cells_build *b)
{
    return oj_cuda_clear(b->device->stream, &b->counters, "building cells",
                         b->err);
}

static oj_status find_distinct(struct cuda_cells_build *b)
{
    cudaStream_t stream = b->device->stream;
    uint32_t n = (uint32_t)b->layer->n_segments, size = 1024;
    oj_cuda_array<uint32_t> table = {NULL, 0};
    oj_status status;
    while (size < 2 * (uint64_t)n && size < (1u << 31))
        size *= 2;
    if (size <= n)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(b->device, stream, n, &b->distinct, b->err));
    OJ_TRY(oj_cuda_make(b->device, stream, size, &table, b->err));
    status = clear_counters(b);
    if (status == OJ_OK)
        status = oj_cuda_clear(stream, &table, "clearing a table", b->err);
    if (status == OJ_OK)
    {
        mark_copies<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
            n, b->layer->segment.data, b->layer->segment_feature.data,
            b->marks_ties, table.data, size);
        list_distinct<<<oj_blocks(size, BLOCK), BLOCK, 0, stream>>>(
            size, table.data, b->distinct.data, b->counters.data);
        status = read_counters(b);
    }
    oj_cuda_drop(b->device, stream, &table);
    b->n_roots = (int64_t)b->seen.ids.n;
    return status;
}

/* --- room ----------------------------------------------------------------- */

static void drop_working(struct cuda_cells_build *b)
{
    cudaStream_t stream = b->device->stream;
    for (int i = 0; i < 2; i++)
    {
        oj_cuda_drop(b->device, stream, &b->id[i]);
        for (int k = 0; k < OJ_CELLS_CLASSES; k++)
            oj_cuda_drop(b->device, stream, &b->node[i][k]);
    }
    oj_cuda_drop(b->device, stream, &b->mask, &b->plan);
}

static int64_t room_for(double per_segment, int64_t n, int64_t least,
                        int64_t most)
{
    double wanted = per_segment * (double)n + (double)least;
    return wanted < (double)most ? (int64_t)wanted : most;
}

static oj_status take_room(struct cuda_cells_build *b)
{
    struct oj_cuda_device *device = b->device;
    struct oj_cuda_cells *cells = b->cells;
    cudaStream_t stream = device->stream;
    int64_t n = b->layer->n_segments, most = UINT32_MAX - 4096;
    int64_t ids = room_for(b->room.ids, n, 1 << 18, most);
    int64_t headers = room_for(b->room.headers, n, 1 << 16, most);
    int64_t words = room_for(b->room.words, n, 1 << 18, most);
    int64_t nodes[OJ_CELLS_CLASSES], n_plans;
    nodes[OJ_CELLS_OF_SHORT] = headers;
    nodes[OJ_CELLS_OF_LONG] = ids / OJ_CELLS_SHORT + 16;
    nodes[OJ_CELLS_OF_HUGE] = ids / OJ_CELLS_LONG + 16;
    OJ_TRY(oj_cuda_make(device, stream, words, &cells->pool, b->err));
    OJ_TRY(oj_cuda_make(device, stream, headers, &cells->tree, b->err));
    OJ_TRY(oj_cuda_make(device, stream, ids, &b->mask, b->err));
    n_plans = nodes[OJ_CELLS_OF_HUGE] < HUGE_NODES ? nodes[OJ_CELLS_OF_HUGE]
                                                   : (int64_t)HUGE_NODES;
    OJ_TRY(oj_cuda_make(device, stream, n_plans, &b->plan, b->err));
    for (int i = 0; i < 2; i++)
    {
        OJ_TRY(oj_cuda_make(device, stream, ids, &b->id[i], b->err));
        for (int k = 0; k < OJ_CELLS_CLASSES; k++)
            OJ_TRY(
                oj_cuda_make(device, stream, nodes[k], &b->node[i][k], b->err));
    }
    return OJ_OK;
}

/* --- rounds --------------------------------------------------------------- */

static struct oj_cells_round round_of(const struct cuda_cells_build *b,
                                      int parity)
{
    struct oj_cells_round r = {};
    int next = !parity;
    r.square = b->cells->square;
    r.leaf_size = b->leaf_size;
    r.marks_ties = b->marks_ties;
    r.segment = (const double *)b->layer->segment.data;
    r.rank = b->layer->segment_feature.data;
    r.max_headers = (unsigned long long)b->cells->tree.n;
    r.max_words = (unsigned long long)b->cells->pool.n;
    r.max_ids = (unsigned long long)b->id[next].n;
    r.id = b->id[parity].data;
    r.next_id = b->id[next].data;
    r.mask = b->mask.data;
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
    {
        r.node[k] = b->node[parity][k].data;
        r.next_node[k] = b->node[next][k].data;
        r.max_nodes[k] = (unsigned long long)b->node[next][k].n;
    }
    r.tree = b->cells->tree.data;
    r.pool = b->cells->pool.data;
    r.counters = b->counters.data;
    return r;
}

static unsigned long long least(unsigned long long a, unsigned long long b)
{
    return a < b ? a : b;
}

static oj_status run_round(struct cuda_cells_build *b,
                           const struct oj_cells_round *r,
                           const unsigned long long *n)
{
    cudaStream_t stream = b->device->stream;
    for (unsigned long long at = 0; at < n[OJ_CELLS_OF_HUGE]; at += HUGE_NODES)
    {
        unsigned nodes = (unsigned)least(n[OJ_CELLS_OF_HUGE] - at, HUGE_NODES);
        unsigned each = HUGE_BLOCKS / nodes > 16 ? HUGE_BLOCKS / nodes : 16;
        dim3 many(each, nodes), one(1, nodes);
        struct oj_cells_plan *plan = b->plan.data;
        struct oj_cells_round part = *r;
        part.node[OJ_CELLS_OF_HUGE] += at;
        split_huge<OJ_CELLS_BEGIN><<<one, HUGE_BLOCK, 0, stream>>>(part, plan);
        split_huge<OJ_CELLS_BOUND><<<many, HUGE_BLOCK, 0, stream>>>(part, plan);
        split_huge<OJ_CELLS_MASK><<<many, HUGE_BLOCK, 0, stream>>>(part, plan);
        split_huge<OJ_CELLS_SETTLE><<<one, HUGE_BLOCK, 0, stream>>>(part, plan);
        split_huge<OJ_CELLS_FILL><<<many, HUGE_BLOCK, 0, stream>>>(part, plan);
    }
    if (n[OJ_CELLS_OF_LONG] > 0)
        split_long<<<(unsigned)n[OJ_CELLS_OF_LONG], LONG_BLOCK, 0, stream>>>(
            *r, n[OJ_CELLS_OF_LONG]);
    if (n[OJ_CELLS_OF_SHORT] > 0)
        split_short<<<(unsigned)((n[OJ_CELLS_OF_SHORT] + GROUPS - 1) / GROUPS),
                      SHORT_BLOCK, 0, stream>>>(*r, n[OJ_CELLS_OF_SHORT]);
    OJ_CUDA_TRY_LAUNCH("building cells", b->err);
    return OJ_OK;
}

/* Zeroes what a round adds up. */
static oj_status clear_sums(struct cuda_cells_build *b)
{
    OJ_CUDA_TRY(cudaMemsetAsync(&b->counters.data->ids, 0,
                                (1 + OJ_CELLS_CLASSES) *
                                    sizeof(struct oj_cells_counter),
                                b->device->stream),
                "building cells", b->err);
    return OJ_OK;
}

/* Begins with the root. */
static oj_status put_first(struct cuda_cells_build *b, unsigned long long *n)
{
    cudaStream_t stream = b->device->stream;
    uint32_t n_roots = (uint32_t)b->n_roots;
    int k = n_roots <= OJ_CELLS_SHORT  ? OJ_CELLS_OF_SHORT
            : n_roots <= OJ_CELLS_LONG ? OJ_CELLS_OF_LONG
                                       : OJ_CELLS_OF_HUGE;
    OJ_TRY(clear_counters(b));
    OJ_CUDA_TRY(cudaMemsetAsync(&b->counters.data->headers, 1, 1, stream),
                "building cells", b->err);
    find_lost<<<oj_blocks(b->layer->n_segments, BLOCK), BLOCK, 0, stream>>>(
        b->layer->n_segments, b->layer->segment.data, b->counters.data);
    list_all<<<oj_blocks(n_roots, BLOCK), BLOCK, 0, stream>>>(
        n_roots, b->distinct.data, b->id[0].data);
    put_root<<<1, 1, 0, stream>>>(b->node[0][k].data, n_roots,
                                  b->cells->tree.data);
    OJ_CUDA_TRY_LAUNCH("building cells", b->err);
    memset(n, 0, OJ_CELLS_CLASSES * sizeof *n);
    n[k] = 1;
    return OJ_OK;
}

/* Begins with the cells of a lower level; *done: 0 when that does not work. */
static oj_status seed_cells(struct cuda_cells_build *b, int level,
                            unsigned long long *n, int *done)
{
    cudaStream_t stream = b->device->stream;
    struct oj_cells_round r = round_of(b, 1); /* which fills the first lists */
    const struct oj_near_square *square = &b->cells->square;
    uint32_t n_cells = 1u << (2 * level);
    unsigned n_blocks = oj_blocks(b->layer->n_segments, BLOCK);
    oj_cuda_array<uint32_t> cursor = {NULL, 0};
    struct seed s;
    oj_status status;
    s.level = level;
    s.x0 = square->x0;
    s.y0 = square->y0;
    s.per_cell = ldexp(1.0, level) / square->side;
    s.widen = oj_near_seed_widen(square, level);
    s.n = b->layer->n_segments;
    s.segment = b->layer->segment.data;
    OJ_TRY(oj_cuda_make(b->device, stream, n_cells, &cursor, b->err));
    s.cursor = cursor.data;
    status = clear_counters(b);
    if (status == OJ_OK)
        status = oj_cuda_clear(stream, &cursor, "building cells", b->err);
    if (status == OJ_OK)
    {
        seed_lists<0>
            <<<n_blocks, SEED_BLOCK, 0, stream>>>(s, NULL, b->counters.data);
        seed_nodes<<<n_cells / SEED_BLOCK, SEED_BLOCK, 0, stream>>>(s, r);
        seed_headers<<<oj_blocks(oj_near_seed_above(level), BLOCK), SEED_BLOCK,
                       0, stream>>>(s, r);
        status = read_counters(b);
    }
    *done = status == OJ_OK && !b->seen.spread.n &&
            b->seen.ids.n <=
                least(r.max_ids, SEED_MEAN_CELLS * (unsigned long long)s.n);
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
    {
        n[k] = b->seen.nodes[k].n;
        *done = *done && n[k] <= r.max_nodes[k];
    }
    if (*done)
    {
        seed_lists<1><<<n_blocks, SEED_BLOCK, 0, stream>>>(s, b->id[0].data,
                                                           b->counters.data);
        status = clear_sums(b);
    }
    oj_cuda_drop(b->device, stream, &cursor);
    return status;
}

/* To the last leaf; stops early when what it made has to be made again:
 * b->seen says why. */
static oj_status run_rounds(struct cuda_cells_build *b)
{
    unsigned long long n[OJ_CELLS_CLASSES];
    int k, level = oj_near_seed_level(&b->cells->square, b->n_roots), done = 0;
    /* where segments are long for the cells of a level, a lower one may do */
    for (; level >= 4 && !done && b->distinct.n == 0; level -= 2)
    {
        if ((int64_t)oj_near_seed_above(level + 2) <= b->cells->tree.n)
            OJ_TRY(seed_cells(b, level, n, &done));
    }
    if (!done)
        OJ_TRY(put_first(b, n));
    for (b->n_rounds = 0; b->n_rounds < ROUNDS; b->n_rounds++)
    {
        struct oj_cells_round r = round_of(b, b->n_rounds & 1);
        OJ_TRY(run_round(b, &r, n));
        OJ_TRY(read_counters(b));
        OJ_TRY(oj_check_cancel(b->device->cancel, b->err));
        if (b->seen.lost.n)
            return oj_fail(b->err, OJ_ERR_UNSUPPORTED,
                           "the join layer has segments so short that their "
                           "length is lost in rounding");
        if (b->seen.pool_full.n || (b->seen.crowded.n && b->distinct.n == 0))
            return OJ_OK;
        for (k = 0; k < OJ_CELLS_CLASSES; k++)
            n[k] = least(b->seen.nodes[k].n, r.max_nodes[k]);
        if (n[0] + n[1] + n[2] == 0)
            break;
        OJ_TRY(clear_sums(b));
    }
    return OJ_OK;
}

/* --- the directory -------------------------------------------------------- */

static __global__ void fill_directory(const struct oj_near_header *tree,
                                      int level,
                                      struct oj_near_header *directory)
{
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    uint32_t rest = (1u << level) - 1u;
    if (i >> (2 * level) == 0)
    {
        struct oj_near_header h =
            oj_near_walk(tree, i & rest, i >> level, level);
        *(uint2 *)(directory + i) = make_uint2(h.first, h.info);
    }
}

static oj_status make_directory(struct cuda_cells_build *b)
{
    struct oj_cuda_cells *cells = b->cells;
    cudaStream_t stream = b->device->stream;
    int level = 3;
    int64_t n;
    while (level < 12 && ((int64_t)1 << (2 * level)) < 4 * cells->n_headers)
        level++;
    n = (int64_t)1 << (2 * level);
    cells->directory_level = level;
    OJ_TRY(oj_cuda_make(b->device, stream, n, &cells->directory, b->err));
    fill_directory<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        cells->tree.data, level, cells->directory.data);
    OJ_CUDA_TRY_LAUNCH("building cells", b->err);
    return OJ_OK;
}

/* --- all of it ------------------------------------------------------------ */

/* Twice the room, or, when the device has no more, longer leaves. */
static void ask_for_less(struct cuda_cells_build *b)
{
    b->room.ids *= 0.5;
    b->room.headers *= 0.5;
    b->room.words *= 0.6;
    b->leaf_size *= 2;
}

static oj_status try_build(struct cuda_cells_build *b)
{
    oj_status status;
    for (int attempt = 0;; attempt++)
    {
        int again;
        status = take_room(b);
        if (status == OJ_OK)
            status = run_rounds(b);
        drop_working(b);
        again = status == OJ_OK && (b->seen.pool_full.n ||
                                    (b->seen.crowded.n && b->distinct.n == 0));
        if (status == OJ_OK && !again)
            return OJ_OK;
        oj_cuda_drop(b->device, b->device->stream, &b->cells->tree,
                     &b->cells->pool);
        if ((status != OJ_OK && status != OJ_ERR_NOMEM) || attempt == 12)
            return status != OJ_OK
                       ? status
                       : oj_fail(b->err, OJ_ERR_NOMEM,
                                 "the join layer needs more memory than the "
                                 "GPU has");
        if (status == OJ_ERR_NOMEM)
            ask_for_less(b);
        else if (b->seen.pool_full.n)
            b->room.words *= 2.0;
        else
        {
            OJ_TRY(find_distinct(b));
            b->room.ids *= 2.0;
        }
    }
}

oj_status oj_cuda_cells_build(struct oj_cuda_device *device,
                              const struct oj_cuda_layer *layer, double reach,
                              int marks_ties, struct oj_cuda_cells *out,
                              struct oj_error *err)
{
    struct cuda_cells_build b = {};
    oj_status status;
    if (layer->n_segments == 0)
        return OJ_OK;
    if (layer->n_segments > MOST_SEGMENTS)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the join layer has more segments than cells can hold");
    if (!oj_near_square(layer->x0, layer->y0, layer->x1, layer->y1,
                        layer->magnitude, reach, layer->n_segments,
                        &out->square))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the join layer's coordinates are too large or too "
                       "small for cells");
    b.device = device;
    b.layer = layer;
    b.cells = out;
    b.err = err;
    b.marks_ties = marks_ties;
    /* Short lists answer faster and take longer to make: measured with lots
     * (4 million segments) and streets (118,000) under 170 million points. */
    b.leaf_size = layer->n_segments < (1 << 19)   ? 6
                  : layer->n_segments < (1 << 21) ? 12
                                                  : 20;
    /* Twice what lots and streets take; far reaches begin with long lists. */
    b.room.ids = reach > out->square.side / 32.0 ? 32.0 : 12.0;
    b.room.headers = 36.0 / (double)b.leaf_size;
    b.room.words = 14.0 + 108.0 / (double)b.leaf_size;
    b.n_roots = layer->n_segments;
    status = oj_cuda_make(device, device->stream, 1, &b.counters, err);
    if (status == OJ_OK)
        status = try_build(&b);
    if (status == OJ_OK)
    {
        out->n_headers =
            (int64_t)least(b.seen.headers.n, (unsigned long long)out->tree.n);
        out->n_words = (int64_t)b.seen.words.n;
        out->n_rounds = b.n_rounds + 1;
        status = make_directory(&b);
    }
    oj_cuda_drop(device, device->stream, &b.counters, &b.distinct);
    return status;
}

void oj_cuda_cells_drop(struct oj_cuda_device *device,
                        struct oj_cuda_cells *cells)
{
    oj_cuda_drop(device, device->stream, &cells->tree, &cells->directory,
                 &cells->pool);
    memset(cells, 0, sizeof *cells);
}

int64_t oj_cuda_cells_bytes(const struct oj_cuda_cells *cells)
{
    return oj_cuda_bytes(&cells->tree, &cells->directory, &cells->pool);
}

struct oj_near_view oj_cuda_cells_view(const struct oj_cuda_cells *cells,
                                       const struct oj_cuda_layer *layer)
{
    struct oj_near_view v;
    v.square = cells->square;
    v.directory_level = cells->directory_level;
    v.directory = cells->directory.data;
    v.tree = cells->tree.data;
    v.pool = cells->pool.data;
    v.segment = (const double *)layer->segment.data;
    return v;
}
