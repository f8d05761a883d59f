/** Nodes with longer lists become leaves or children, a block each, or many
 *  blocks in steps. */
#ifndef CUDA_CELLS_LONG_CUH
#define CUDA_CELLS_LONG_CUH

#include "cuda_cells_round.cuh"

#define LONG_BLOCK 128
#define FAN 4

/* Which entries of a list a warp takes: 32 at a time from first on. */
struct share
{
    uint32_t first, step;
};

static __device__ void begin_plan(struct oj_cells_plan *plan,
                                  const struct oj_near_frame &frame, int i)
{
    if (i < OJ_NEAR_CHILDREN)
    {
        plan->bound[i] = __float_as_uint(INFINITY);
        plan->count[i] = 0;
    }
    if (i == 0)
    {
        plan->kept = 0;
        plan->greatest = 0.0f;
    }
}

static __device__ void bound_share(const struct oj_cells_round &r,
                                   const struct oj_near_node &node,
                                   const struct oj_near_frame &frame,
                                   struct share share,
                                   struct oj_cells_plan *plan)
{
    float bound[OJ_NEAR_CHILDREN];
    int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        bound[c] = INFINITY;
    for (uint32_t i = share.first + (uint32_t)lane; i < node.n; i += share.step)
    {
        struct oj_cuda_segment s;
        struct oj_near_piece p = piece_of(r, frame, r.id[node.first + i], &s);
        oj_near_lower_uppers(&p, bound);
    }
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
    {
        for (int step = 16; step > 0; step /= 2)
            bound[c] =
                fminf(bound[c], __shfl_xor_sync(FULL_WARP, bound[c], step));
        if (lane == 0 && bound[c] < __uint_as_float(plan->bound[c]))
            atomicMin(&plan->bound[c], __float_as_uint(bound[c]));
    }
}

static __device__ void count_mask(struct oj_cells_plan *plan, uint32_t mask)
{
    int lane = (int)threadIdx.x % 32;
    uint32_t kept = __ballot_sync(FULL_WARP, mask != 0);
    if (kept == 0)
        return;
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
    {
        uint32_t votes = __ballot_sync(FULL_WARP, (mask >> c) & 1u);
        if (lane == c && votes != 0)
            atomicAdd(&plan->count[c], (uint32_t)__popc(votes));
    }
    if (lane == 16)
        atomicAdd(&plan->kept, (uint32_t)__popc(kept));
}

static __device__ void mask_share(const struct oj_cells_round &r,
                                  const struct oj_near_node &node,
                                  const struct oj_near_frame &frame,
                                  struct share share,
                                  struct oj_cells_plan *plan)
{
    float bound[OJ_NEAR_CHILDREN];
    uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        bound[c] = oj_near_bound(__uint_as_float(plan->bound[c]), frame.reach);
    for (uint32_t base = share.first; base < node.n; base += share.step)
    {
        uint32_t i = base + lane, mask = 0;
        if (i < node.n)
        {
            struct oj_cuda_segment s;
            struct oj_near_piece p =
                piece_of(r, frame, r.id[node.first + i], &s);
            mask = oj_near_mask(&p, bound);
            r.mask[node.first + i] = (uint16_t)mask;
        }
        count_mask(plan, mask);
    }
}

static __device__ uint64_t sum_of(const struct oj_cells_plan *plan)
{
    uint64_t sum = 0;
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        sum += plan->count[c];
    return sum;
}

/* Room for the children of a node; 0 when there is none. */
static __device__ int take_children(const struct oj_cells_round &r,
                                    struct oj_cells_plan *plan, uint64_t sum,
                                    uint32_t *first_header,
                                    unsigned long long *first_node)
{
    struct oj_cells_counters *c = r.counters;
    unsigned long long ids, headers, wanted[OJ_CELLS_CLASSES] = {0, 0, 0};
    int room;
    for (int i = 0; i < OJ_NEAR_CHILDREN; i++)
        wanted[class_of(plan->count[i])] += plan->count[i] > 0;
    ids = atomicAdd(&c->ids.n, (unsigned long long)sum);
    headers = atomicAdd(&c->headers.n, (unsigned long long)OJ_NEAR_CHILDREN);
    room =
        ids + sum <= r.max_ids && headers + OJ_NEAR_CHILDREN <= r.max_headers;
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
    {
        first_node[k] =
            wanted[k] > 0 ? atomicAdd(&c->nodes[k].n, wanted[k]) : 0;
        room = room && first_node[k] + wanted[k] <= r.max_nodes[k];
    }
    for (int k = 0; k < OJ_CELLS_CLASSES && !room; k++)
    {
        for (unsigned long long i = 0; i < wanted[k]; i++)
        {
            if (first_node[k] + i < r.max_nodes[k])
                r.next_node[k][first_node[k] + i].n = 0;
        }
    }
    plan->first = (uint32_t)ids;
    *first_header = (uint32_t)headers;
    return room;
}

static __device__ void put_all_children(const struct oj_cells_round &r,
                                        const struct oj_near_node &node,
                                        struct oj_cells_plan *plan,
                                        uint64_t sum, uint32_t header,
                                        unsigned long long *first_node)
{
    uint32_t id = plan->first;
    put_header(r, node.header, header, oj_near_inner_info(node.level + 2, 2));
    for (uint32_t i = 0; i < OJ_NEAR_CHILDREN; i++)
    {
        struct oj_near_node child;
        enum oj_cells_class k = class_of(plan->count[i]);
        child.first = plan->cursor[i] = id;
        child.n = plan->count[i];
        child.ix = FAN * node.ix + i % FAN;
        child.iy = FAN * node.iy + i / FAN;
        child.header = header + i;
        child.level = (uint8_t)(node.level + 2);
        child.stale = oj_near_stale(&node, FAN, sum);
        id += child.n;
        if (child.n == 0)
            put_header(r, child.header, 0,
                       oj_near_leaf_info(0, child.level, 127));
        else
            r.next_node[k][first_node[k]++] = child;
    }
}

/* By one thread: decides what the node becomes and takes the room for it. */
static __device__ void settle(const struct oj_cells_round &r,
                              const struct oj_near_node &node,
                              const struct oj_near_frame &frame,
                              struct oj_cells_plan *plan)
{
    uint64_t sum = sum_of(plan);
    unsigned long long first_node[OJ_CELLS_CLASSES], words;
    uint32_t header;
    float greatest = 0.0f;
    plan->leaf = (uint32_t)oj_near_is_leaf(&r.square, &node, FAN, plan->kept,
                                           sum, r.leaf_size);
    if (node.n > OJ_CELLS_LONG && oj_near_stale(&node, FAN, sum) >= 4)
        r.counters->crowded.n = 1;
    if (!plan->leaf)
    {
        if (take_children(r, plan, sum, &header, first_node))
        {
            put_all_children(r, node, plan, sum, header, first_node);
            return;
        }
        plan->leaf = 1;
        if (node.n > OJ_CELLS_LONG)
            r.counters->crowded.n = 1;
    }
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        greatest =
            fmaxf(greatest,
                  oj_near_bound(__uint_as_float(plan->bound[c]), frame.reach));
    words = oj_near_words(plan->kept);
    plan->greatest = greatest;
    plan->at = 0;
    plan->first = 0;
    if (words > 0)
    {
        unsigned long long first = atomicAdd(&r.counters->words.n, words);
        if (first + words > r.max_words)
        {
            r.counters->pool_full.n = 1;
            plan->leaf = 2; /* no room: all of this is made again */
            return;
        }
        plan->first = (uint32_t)first;
    }
    put_leaf(r, node, plan->first, plan->kept,
             oj_near_scale(&frame, greatest).exponent);
}

static __device__ void fill_share(const struct oj_cells_round &r,
                                  const struct oj_near_node &node,
                                  const struct oj_near_frame &frame,
                                  struct share share,
                                  struct oj_cells_plan *plan)
{
    uint32_t lane = threadIdx.x % 32, lower = (1u << lane) - 1u;
    uint32_t n_columns = plan->leaf ? 1 : OJ_NEAR_CHILDREN;
    struct oj_near_scale scale = oj_near_scale(&frame, plan->greatest);
    if (plan->leaf == 2)
        return;
    for (uint32_t base = share.first; base < node.n; base += share.step)
    {
        uint32_t i = base + lane, mask = 0, id = 0;
        if (i < node.n)
        {
            mask = r.mask[node.first + i];
            id = r.id[node.first + i];
        }
        if (plan->leaf)
            mask = mask != 0;
        for (uint32_t c = 0; c < n_columns; c++)
        {
            uint32_t votes = __ballot_sync(FULL_WARP, (mask >> c) & 1u);
            uint32_t at = 0;
            if (votes == 0)
                continue;
            if (lane == 0)
                at = atomicAdd(plan->leaf ? &plan->at : &plan->cursor[c],
                               (uint32_t)__popc(votes));
            at =
                __shfl_sync(FULL_WARP, at, 0) + (uint32_t)__popc(votes & lower);
            if (!((mask >> c) & 1u))
                continue;
            if (plan->leaf)
                put_entry(r, frame, scale, plan->first, plan->kept, at, id);
            else
                r.next_id[at] = id;
        }
    }
}

/* Where a list does not get shorter: leaves out what others stand for. By a
 * block; slot is a table of entries, empty: 0. */
#define SLOTS (2 * OJ_CELLS_LONG)

static __device__ void drop_equal(const struct oj_cells_round &r,
                                  const struct oj_near_node &node,
                                  const struct oj_near_frame &frame,
                                  uint32_t *slot)
{
    const uint32_t *id = r.id + node.first;
    uint16_t *mask = r.mask + node.first;
    for (uint32_t i = threadIdx.x; i < SLOTS; i += blockDim.x)
        slot[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < node.n; i += blockDim.x)
    {
        struct oj_near_key key = key_of(r, frame, id[i]);
        uint32_t at = oj_near_hash(&key) & (SLOTS - 1);
        for (;;)
        {
            uint32_t there = atomicCAS(&slot[at], 0u, i + 1);
            struct oj_near_key other;
            if (there == 0)
                break;
            other = key_of(r, frame, id[there - 1]);
            if (!oj_near_same_key(&key, &other))
            {
                at = (at + 1) & (SLOTS - 1);
                continue;
            }
            if (!oj_near_drops(r.rank[id[i]], (int32_t)id[i],
                               r.rank[id[there - 1]], (int32_t)id[there - 1]))
            {
                mask[i] = 0;
                break;
            }
            if (atomicCAS(&slot[at], there, i + 1) == there)
            {
                mask[there - 1] = 0;
                break;
            }
        }
    }
    __syncthreads();
}

static __global__ void __launch_bounds__(LONG_BLOCK)
    split_long(struct oj_cells_round r, unsigned long long n_nodes)
{
    __shared__ struct oj_cells_plan plan;
    __shared__ uint32_t slot[SLOTS];
    struct oj_near_node node = r.node[OJ_CELLS_OF_LONG][blockIdx.x];
    struct oj_near_frame frame =
        oj_near_frame(&r.square, node.ix, node.iy, node.level);
    struct share share = {threadIdx.x & ~31u, LONG_BLOCK};
    if (node.n == 0 || blockIdx.x >= n_nodes)
        return;
    begin_plan(&plan, frame, (int)threadIdx.x);
    __syncthreads();
    bound_share(r, node, frame, share, &plan);
    __syncthreads();
    mask_share(r, node, frame, share, &plan);
    __syncthreads();
    if (10 * sum_of(&plan) >= 8 * (uint64_t)node.n * OJ_NEAR_CHILDREN)
    {
        drop_equal(r, node, frame, slot);
        if (threadIdx.x < OJ_NEAR_CHILDREN)
            plan.count[threadIdx.x] = 0;
        if (threadIdx.x == 0)
            plan.kept = 0;
        __syncthreads();
        for (uint32_t base = share.first; base < node.n; base += share.step)
        {
            uint32_t i = base + threadIdx.x % 32;
            count_mask(&plan, i < node.n ? r.mask[node.first + i] : 0);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        settle(r, node, frame, &plan);
    __syncthreads();
    fill_share(r, node, frame, share, &plan);
}

/* The same for many blocks a node: blockIdx.y is the node. */
static __device__ struct share share_of_grid(void)
{
    struct share s;
    s.first = (blockIdx.x * LONG_BLOCK + threadIdx.x) & ~31u;
    s.step = gridDim.x * LONG_BLOCK;
    return s;
}

enum oj_cells_step
{
    OJ_CELLS_BEGIN,
    OJ_CELLS_BOUND,
    OJ_CELLS_MASK,
    OJ_CELLS_SETTLE,
    OJ_CELLS_FILL
};

template <int step>
static __global__ void __launch_bounds__(LONG_BLOCK)
    split_huge(struct oj_cells_round r, struct oj_cells_plan *plans)
{
    struct oj_near_node node = r.node[OJ_CELLS_OF_HUGE][blockIdx.y];
    struct oj_cells_plan *plan = plans + blockIdx.y;
    struct oj_near_frame frame =
        oj_near_frame(&r.square, node.ix, node.iy, node.level);
    if (node.n == 0)
        return;
    if (step == OJ_CELLS_BEGIN)
        begin_plan(plan, frame, (int)threadIdx.x);
    else if (step == OJ_CELLS_BOUND)
        bound_share(r, node, frame, share_of_grid(), plan);
    else if (step == OJ_CELLS_MASK)
        mask_share(r, node, frame, share_of_grid(), plan);
    else if (step == OJ_CELLS_SETTLE && threadIdx.x == 0)
        settle(r, node, frame, plan);
    else if (step == OJ_CELLS_FILL)
        fill_share(r, node, frame, share_of_grid(), plan);
}

#endif
