/** Nodes with longer lists become leaves or children, a block each, or many
 *  blocks in steps. */
#ifndef CUDA_CELLS_LONG_CUH
#define CUDA_CELLS_LONG_CUH

#include "cuda_cells_round.cuh"

#define LONG_BLOCK 64
#define HUGE_BLOCK 128
#define FAN 4

/* Which entries of a list a warp takes: 32 at a time from first on. */
struct share
{
    uint32_t first, step;
};

static __device__ void begin_plan(struct oj_cells_plan *plan, int i)
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

/* The least of each of the 16 numbers over a warp, for lane 2 c that of number
 * c, lowers the plan's. */
static __device__ void lower_bounds(float *v, uint32_t lane,
                                    struct oj_cells_plan *plan)
{
    float least;
    halve_least<8>(v, lane, 16);
    halve_least<4>(v, lane, 8);
    halve_least<2>(v, lane, 4);
    halve_least<1>(v, lane, 2);
    least = fminf(v[0], __shfl_xor_sync(FULL_WARP, v[0], 1));
    if (lane % 2 == 0 && least < __uint_as_float(plan->bound[lane / 2]))
        atomicMin(&plan->bound[lane / 2], __float_as_uint(least));
}

static __device__ void bound_share(const struct oj_cells_round &r,
                                   const struct oj_near_node &node,
                                   const struct oj_near_frame &frame,
                                   struct share share,
                                   struct oj_cells_plan *plan)
{
    float bound[OJ_NEAR_CHILDREN];
    uint32_t lane = threadIdx.x % 32;
    if (share.first >= node.n)
        return;
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        bound[c] = INFINITY;
    for (uint32_t i = share.first + lane; i < node.n; i += share.step)
    {
        struct oj_cuda_segment s;
        struct oj_near_piece p =
            piece_of(r, frame, id_at(r, node.first + i), &s);
        oj_near_lower_uppers(&p, bound);
    }
    lower_bounds(bound, lane, plan);
}

/* Of the masks of a warp: how many have bit c, for lane c; how many have any,
 * for lane 16. Sums of these are added to the plan once, since blocks that add
 * to one place wait for each other. */
static __device__ uint32_t votes_of(uint32_t mask)
{
    int lane = (int)threadIdx.x % 32;
    uint32_t mine = __ballot_sync(FULL_WARP, mask != 0);
    if (mine == 0)
        return 0;
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
    {
        uint32_t votes = __ballot_sync(FULL_WARP, (mask >> c) & 1u);
        mine = lane == c ? votes : mine;
    }
    return lane <= OJ_NEAR_CHILDREN ? (uint32_t)__popc(mine) : 0;
}

static __device__ void add_votes(struct oj_cells_plan *plan, uint32_t votes)
{
    uint32_t lane = threadIdx.x % 32;
    if (votes > 0)
        atomicAdd(lane < OJ_NEAR_CHILDREN ? &plan->count[lane] : &plan->kept,
                  votes);
}

static __device__ uint32_t mask_share(const struct oj_cells_round &r,
                                      const struct oj_near_node &node,
                                      const struct oj_near_frame &frame,
                                      struct share share,
                                      struct oj_cells_plan *plan)
{
    float bound[OJ_NEAR_CHILDREN], mine;
    uint32_t lane = threadIdx.x % 32, votes = 0;
    if (share.first >= node.n)
        return 0;
    mine = oj_near_bound(__uint_as_float(plan->bound[lane % OJ_NEAR_CHILDREN]),
                         frame.reach);
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        bound[c] = __shfl_sync(FULL_WARP, mine, c);
    for (uint32_t base = share.first; base < node.n; base += share.step)
    {
        uint32_t i = base + lane, mask = 0;
        if (i < node.n)
        {
            struct oj_cuda_segment s;
            struct oj_near_piece p =
                piece_of(r, frame, id_at(r, node.first + i), &s);
            mask = oj_near_mask(&p, bound);
            r.mask[node.first + i] = (uint16_t)mask;
        }
        votes += votes_of(mask);
    }
    add_votes(plan, votes);
    return votes;
}

static __device__ uint32_t sum_of(const struct oj_cells_plan *plan)
{
    uint32_t sum = 0;
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        sum += plan->count[c];
    return sum;
}

/* By a warp: the room for the children of a node, and the children, one by each
 * of the lower lanes; 0 when there is no room. */
static __device__ int make_children(const struct oj_cells_round &r,
                                    const struct oj_near_node &node,
                                    struct oj_cells_plan *plan, uint32_t sum)
{
    struct oj_cells_counters *counters = r.counters;
    int lane = (int)(threadIdx.x % 32);
    uint32_t n = lane < OJ_NEAR_CHILDREN ? plan->count[lane] : 0;
    enum oj_cells_class mine = class_of(n);
    uint32_t wanted[5] = {sum, OJ_NEAR_CHILDREN, 0, 0, 0}, before = 0, header;
    unsigned long long limit[5] = {r.max_ids, r.max_headers, r.max_nodes[0],
                                   r.max_nodes[1], r.max_nodes[2]};
    unsigned long long base = 0, first[5];
    uint32_t ids = scan_warp(n, lane) - n;
    int room = 1;
    struct oj_near_node child;
    for (int k = 0; k < OJ_CELLS_CLASSES; k++)
    {
        uint32_t votes = __ballot_sync(FULL_WARP, n > 0 && mine == k);
        wanted[2 + k] = (uint32_t)__popc(votes);
        before =
            mine == k ? (uint32_t)__popc(votes & ((1u << lane) - 1u)) : before;
    }
    for (int i = 0; i < 5; i++)
    {
        struct oj_cells_counter *counter = i == 0   ? &counters->ids
                                           : i == 1 ? &counters->headers
                                                    : &counters->nodes[i - 2];
        if (lane == i && wanted[i] > 0)
            base = atomicAdd(&counter->n, (unsigned long long)wanted[i]);
    }
    for (int i = 0; i < 5; i++)
    {
        first[i] = __shfl_sync(FULL_WARP, base, i);
        room = room && first[i] + wanted[i] <= limit[i];
    }
    base = mine == 0 ? first[2] : mine == 1 ? first[3] : first[4];
    if (!room)
    {
        /* what was taken all the same says nothing */
        if (n > 0 && base + before < r.max_nodes[mine])
            r.next_node[mine][base + before] = oj_cells_no_node();
        return 0;
    }
    header = (uint32_t)first[1];
    if (lane == OJ_NEAR_CHILDREN)
        put_header(r, node.header, header,
                   oj_near_inner_info(node.level + 2, 2));
    if (lane >= OJ_NEAR_CHILDREN)
        return 1;
    child.first = plan->cursor[lane] = (uint32_t)first[0] + ids;
    child.n = n;
    child.ix = FAN * node.ix + (uint32_t)lane % FAN;
    child.iy = FAN * node.iy + (uint32_t)lane / FAN;
    child.header = header + (uint32_t)lane;
    child.level = (uint8_t)(node.level + 2);
    child.stale = oj_near_stale(&node, FAN, sum);
    if (n > 0)
        r.next_node[mine][base + before] = child;
    else
        put_header(r, child.header, 0, oj_near_leaf_info(0, child.level, 127));
    return 1;
}

static __device__ void make_leaf(const struct oj_cells_round &r,
                                 const struct oj_near_node &node,
                                 const struct oj_near_frame &frame,
                                 struct oj_cells_plan *plan)
{
    unsigned long long words = oj_near_words(plan->kept);
    plan->greatest = 0.0f;
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        plan->greatest =
            fmaxf(plan->greatest,
                  oj_near_bound(__uint_as_float(plan->bound[c]), frame.reach));
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
             oj_near_scale(&frame, plan->greatest).exponent);
}

/* By a warp: decides what the node becomes and takes the room for it. */
static __device__ void settle(const struct oj_cells_round &r,
                              const struct oj_near_node &node,
                              const struct oj_near_frame &frame,
                              struct oj_cells_plan *plan)
{
    uint32_t sum = sum_of(plan), is_first = threadIdx.x % 32 == 0;
    int leaf =
        oj_near_is_leaf(&r.square, &node, FAN, plan->kept, sum, r.leaf_size);
    int crowded = node.n > OJ_CELLS_LONG && oj_near_stale(&node, FAN, sum) >= 4;
    if (!leaf && !make_children(r, node, plan, sum))
    {
        leaf = 1;
        crowded |= node.n > OJ_CELLS_LONG;
    }
    if (is_first && crowded)
        r.counters->crowded.n = 1;
    if (is_first)
    {
        plan->leaf = (uint32_t)leaf;
        if (leaf)
            make_leaf(r, node, frame, plan);
    }
}

/* The mask of an entry of the list. */
static __device__ uint32_t bits_of(const struct oj_cells_round &r,
                                   const struct oj_near_node &node, uint32_t i)
{
    return i < node.n ? r.mask[node.first + i] : 0;
}

/* The votes of all that the warp has. */
static __device__ uint32_t votes_of_share(const struct oj_cells_round &r,
                                          const struct oj_near_node &node,
                                          struct share share)
{
    uint32_t lane = threadIdx.x % 32, votes = 0;
    for (uint32_t base = share.first; base < node.n; base += share.step)
        votes += votes_of(bits_of(r, node, base + lane));
    return votes;
}

/* Where the warp writes, for child c in lane c, or for a leaf in lane 0. */
static __device__ uint32_t take_places(uint32_t votes,
                                       struct oj_cells_plan *plan)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t kept = __shfl_sync(FULL_WARP, votes, OJ_NEAR_CHILDREN);
    if (plan->leaf)
        votes = lane == 0 ? kept : 0;
    if (lane >= OJ_NEAR_CHILDREN || votes == 0)
        return 0;
    return atomicAdd(plan->leaf ? &plan->at : &plan->cursor[lane], votes);
}

/* votes: votes_of_share(). */
static __device__ void fill_share(const struct oj_cells_round &r,
                                  const struct oj_near_node &node,
                                  const struct oj_near_frame &frame,
                                  struct share share, uint32_t votes,
                                  struct oj_cells_plan *plan)
{
    uint32_t lane = threadIdx.x % 32, lower = (1u << lane) - 1u, place;
    uint32_t n_columns = plan->leaf ? 1 : OJ_NEAR_CHILDREN;
    struct oj_near_scale scale = oj_near_scale(&frame, plan->greatest);
    if (plan->leaf == 2 || share.first >= node.n)
        return;
    place = take_places(votes, plan);
    for (uint32_t base = share.first; base < node.n; base += share.step)
    {
        uint32_t i = base + lane, bits = bits_of(r, node, i);
        uint32_t id = i < node.n ? r.id[node.first + i] : 0;
        bits = plan->leaf ? (uint32_t)(bits != 0) : bits;
        for (uint32_t c = 0; c < n_columns; c++)
        {
            uint32_t have = __ballot_sync(FULL_WARP, (bits >> c) & 1u), at;
            if (have == 0)
                continue;
            at = __shfl_sync(FULL_WARP, place, (int)c) +
                 (uint32_t)__popc(have & lower);
            place += lane == c ? (uint32_t)__popc(have) : 0;
            if (!((bits >> c) & 1u))
                continue;
            if (plan->leaf)
                put_words(r, plan->first, plan->kept, at, id,
                          long_entry(r, frame, scale, id & ~OJ_NEAR_SHARED));
            else
                r.next_id[at] = id;
        }
    }
}

static __device__ struct oj_near_key key_of(const struct oj_cells_round &r,
                                            const struct oj_near_frame &frame,
                                            uint32_t id)
{
    struct oj_cuda_segment s;
    struct oj_near_piece p = piece_of(r, frame, id, &s);
    return oj_near_key(oj_near_end(&p), s.ax, s.ay, s.bx, s.by);
}

/* Where a list does not get shorter: leaves out what others stand for. By a
 * block; slot is a table of entries, empty: 0, else the number of the entry
 * plus 1, and a mark where it stands for other features. */
#define SLOTS (2 * OJ_CELLS_LONG)

static __device__ void drop_equal(const struct oj_cells_round &r,
                                  const struct oj_near_node &node,
                                  const struct oj_near_frame &frame,
                                  uint32_t *slot)
{
    uint32_t *id = r.id + node.first;
    uint16_t *mask = r.mask + node.first;
    for (uint32_t i = threadIdx.x; i < SLOTS; i += blockDim.x)
        slot[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < node.n; i += blockDim.x)
    {
        uint32_t mine = id[i] & ~OJ_NEAR_SHARED;
        struct oj_near_key key = key_of(r, frame, mine);
        uint32_t at = oj_near_hash(&key) & (SLOTS - 1);
        for (;;)
        {
            uint32_t seen = atomicCAS(&slot[at], 0u, i + 1), mark, there, its;
            struct oj_near_key other;
            if (seen == 0)
                break;
            there = (seen & ~OJ_NEAR_SHARED) - 1;
            its = id[there] & ~OJ_NEAR_SHARED;
            other = key_of(r, frame, its);
            if (!oj_near_same_key(&key, &other))
            {
                at = (at + 1) & (SLOTS - 1);
                continue;
            }
            mark = seen & OJ_NEAR_SHARED;
            if (!oj_near_drops(r.rank[mine], (int32_t)mine, r.rank[its],
                               (int32_t)its))
            {
                if (r.marks_ties && makes_tie(r, r.rank[its], id[i]))
                    atomicOr(&slot[at], OJ_NEAR_SHARED);
                mask[i] = 0;
                break;
            }
            if (r.marks_ties && makes_tie(r, r.rank[mine], id[there]))
                mark = OJ_NEAR_SHARED;
            if (atomicCAS(&slot[at], seen, (i + 1) | mark) == seen)
            {
                mask[there] = 0;
                break;
            }
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; r.marks_ties && i < SLOTS; i += blockDim.x)
    {
        if ((slot[i] & OJ_NEAR_SHARED) != 0)
            id[(slot[i] & ~OJ_NEAR_SHARED) - 1] |= OJ_NEAR_SHARED;
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
    uint32_t votes;
    if (node.n == 0 || blockIdx.x >= n_nodes)
        return;
    begin_plan(&plan, (int)threadIdx.x);
    __syncthreads();
    bound_share(r, node, frame, share, &plan);
    __syncthreads();
    votes = mask_share(r, node, frame, share, &plan);
    __syncthreads();
    if (10 * sum_of(&plan) >= 8 * (uint64_t)node.n * OJ_NEAR_CHILDREN)
    {
        drop_equal(r, node, frame, slot);
        if (threadIdx.x < OJ_NEAR_CHILDREN)
            plan.count[threadIdx.x] = 0;
        if (threadIdx.x == 0)
            plan.kept = 0;
        __syncthreads();
        votes = votes_of_share(r, node, share);
        add_votes(&plan, votes);
        __syncthreads();
    }
    if (threadIdx.x < 32)
        settle(r, node, frame, &plan);
    __syncthreads();
    fill_share(r, node, frame, share, votes, &plan);
}

/* The same for many blocks a node: blockIdx.y is the node. */
static __device__ struct share share_of_grid(void)
{
    struct share s;
    s.first = (blockIdx.x * HUGE_BLOCK + threadIdx.x) & ~31u;
    s.step = gridDim.x * HUGE_BLOCK;
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
static __global__ void __launch_bounds__(HUGE_BLOCK)
    split_huge(struct oj_cells_round r, struct oj_cells_plan *plans)
{
    struct oj_near_node node = r.node[OJ_CELLS_OF_HUGE][blockIdx.y];
    struct oj_cells_plan *plan = plans + blockIdx.y;
    struct oj_near_frame frame =
        oj_near_frame(&r.square, node.ix, node.iy, node.level);
    if (node.n == 0)
        return;
    if (step == OJ_CELLS_BEGIN)
        begin_plan(plan, (int)threadIdx.x);
    else if (step == OJ_CELLS_BOUND)
        bound_share(r, node, frame, share_of_grid(), plan);
    else if (step == OJ_CELLS_MASK)
        (void)mask_share(r, node, frame, share_of_grid(), plan);
    else if (step == OJ_CELLS_SETTLE && threadIdx.x < 32)
        settle(r, node, frame, plan);
    else if (step == OJ_CELLS_FILL)
        fill_share(r, node, frame, share_of_grid(),
                   votes_of_share(r, node, share_of_grid()), plan);
}

#endif
