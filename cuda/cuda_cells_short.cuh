/** Nodes with short lists become leaves or children, eight threads each. */
#ifndef CUDA_CELLS_SHORT_CUH
#define CUDA_CELLS_SHORT_CUH

#include "cuda_cells_round.cuh"

#define SHORT_BLOCK 256
#define LANES 8
#define GROUPS (SHORT_BLOCK / LANES)

/* What the groups of a block ask for and get; a warp adds it up. */
struct requests
{
    /* wanted when the node is split, words also when it is a leaf */
    uint32_t ids[GROUPS], nodes[GROUPS], words[GROUPS], leaf_words[GROUPS];
    uint32_t leaf[GROUPS]; /* in: wanted; out: so it is; 2: no room */
    uint32_t first_id[GROUPS], first_node[GROUPS], first_header[GROUPS];
    uint32_t first_word[GROUPS];
};

static __device__ uint32_t scan_warp(uint32_t v, int lane)
{
    for (int step = 1; step < 32; step *= 2)
    {
        uint32_t other = __shfl_up_sync(FULL_WARP, v, step);
        v += lane >= step ? other : 0;
    }
    return v;
}

/* By the first warp: lane i answers the requests of group i. The four counters
 * are added to at once, by one lane each. */
static __device__ void answer_requests(const struct oj_cells_round &r,
                                       struct requests *q, int lane)
{
    struct oj_cells_counters *c = r.counters;
    uint32_t splits = !q->leaf[lane];
    uint32_t wanted[4] = {
        4 * splits, splits ? q->words[lane] : q->leaf_words[lane],
        splits ? q->ids[lane] : 0, splits ? q->nodes[lane] : 0};
    unsigned long long limit[4] = {r.max_headers, r.max_words, r.max_ids,
                                   r.max_nodes[0]};
    unsigned long long end[4], base = 0;
    uint32_t mine = 0;
    int room;
    for (int i = 0; i < 4; i++)
    {
        uint32_t sum = scan_warp(wanted[i], lane);
        uint32_t all = __shfl_sync(FULL_WARP, sum, 31);
        end[i] = sum;
        mine = lane == i ? all : mine;
    }
    if (lane < 4 && mine > 0)
        base = atomicAdd(lane == 0   ? &c->headers.n
                         : lane == 1 ? &c->words.n
                         : lane == 2 ? &c->ids.n
                                     : &c->nodes[0].n,
                         (unsigned long long)mine);
    for (int i = 0; i < 4; i++)
        end[i] += __shfl_sync(FULL_WARP, base, i);
    room = end[0] <= limit[0] && end[2] <= limit[2] && end[3] <= limit[3];
    if (splits && !room)
    {
        q->leaf[lane] = 1;
        /* what was taken all the same says nothing */
        for (uint32_t i = 1; i <= wanted[3]; i++)
        {
            if (end[3] - i < limit[3])
                r.next_node[0][end[3] - i].n = 0;
        }
        wanted[1] = q->leaf_words[lane];
        end[1] =
            wanted[1] + atomicAdd(&c->words.n, (unsigned long long)wanted[1]);
    }
    if (end[1] > limit[1] && wanted[1] > 0)
    {
        c->pool_full.n = 1;
        q->leaf[lane] = 2;
    }
    q->first_header[lane] = (uint32_t)(end[0] - wanted[0]);
    q->first_word[lane] = (uint32_t)(end[1] - wanted[1]);
    q->first_id[lane] = (uint32_t)(end[2] - wanted[2]);
    q->first_node[lane] = (uint32_t)(end[3] - wanted[3]);
}

/* Counts of a list by five fields of 6 bits: kept, and of each child. */
#define FIELD(v, i) (((v) >> (6 * (i))) & 63u)

static __device__ uint32_t fields_of(uint32_t quarters)
{
    return (uint32_t)(quarters != 0) | ((quarters & 1u) << 6) |
           ((quarters & 2u) << 11) | ((quarters & 4u) << 16) |
           ((quarters & 8u) << 21);
}

static __device__ uint32_t sum_of_fields(uint32_t v)
{
    return FIELD(v, 1) + FIELD(v, 2) + FIELD(v, 3) + FIELD(v, 4);
}

static __device__ struct oj_near_node child_of(const struct oj_near_node &node,
                                               int c)
{
    struct oj_near_node child;
    child.first = child.n = child.header = 0;
    child.ix = 2 * node.ix + (uint32_t)(c & 1);
    child.iy = 2 * node.iy + (uint32_t)(c >> 1);
    child.level = (uint8_t)(node.level + 1);
    child.stale = 0;
    return child;
}

/* The list of a group, as its eight threads have it. */
struct group_list
{
    const uint32_t *id; /* shared */
    uint32_t n, lane;
    uint32_t masks;  /* four bits, the children, for each entry of the lane */
    uint32_t before; /* fields of the lanes before */
    uint32_t total;  /* fields of the list */
};

/* The entries of a leaf: of all that are kept (c < 0), or of child c. */
static __device__ void put_entries(const struct oj_cells_round &r,
                                   const struct oj_near_node &node,
                                   const struct group_list &list, int c,
                                   float bound, uint32_t first)
{
    struct oj_near_frame frame =
        oj_near_frame(&r.square, node.ix, node.iy, node.level);
    struct oj_near_scale scale = oj_near_scale(&frame, bound);
    uint32_t kept = FIELD(list.total, c + 1);
    uint32_t at = FIELD(list.before, c + 1), masks = list.masks;
    uint32_t only = c < 0 ? 15u : 1u << c;
    if (list.lane == 0)
        put_leaf(r, node, first, kept, scale.exponent);
    for (uint32_t i = list.lane; i < list.n; i += LANES, masks >>= 4)
    {
        if (masks & only)
            put_entry(r, frame, scale, first, kept, at++, list.id[i]);
    }
}

static __device__ void put_children(const struct oj_cells_round &r,
                                    const struct oj_near_node &node,
                                    const struct requests *q, int group,
                                    const struct group_list &list,
                                    const float *bound)
{
    uint32_t word = q->first_word[group], id = q->first_id[group];
    uint32_t next = q->first_node[group], header = q->first_header[group];
    uint8_t stale = oj_near_stale(&node, 2, sum_of_fields(list.total));
    if (list.lane == 0)
        put_header(r, node.header, header,
                   oj_near_inner_info(node.level + 1, 1));
    for (int c = 0; c < 4; c++)
    {
        struct oj_near_node child = child_of(node, c);
        uint32_t n = FIELD(list.total, c + 1), masks = list.masks;
        uint32_t to = id + FIELD(list.before, c + 1);
        child.header = header + (uint32_t)c;
        if (n <= r.leaf_size)
        {
            float most = oj_near_greatest(bound, oj_near_quarter(c));
            put_entries(r, child, list, c, 2.0f * most, word);
            word += oj_near_words(n);
            continue;
        }
        child.first = id;
        child.n = n;
        child.stale = stale;
        if (list.lane == 0)
            r.next_node[0][next] = child;
        for (uint32_t i = list.lane; i < list.n; i += LANES, masks >>= 4)
        {
            if ((masks >> c) & 1u)
                r.next_id[to++] = list.id[i];
        }
        next++;
        id += n;
    }
}

/* The least of each of the 16 numbers over the eight threads of a group: each
 * gets two of them, which it leaves in shared memory. */
static __device__ void least_of_group(float *v, uint32_t lane, float *out)
{
#pragma unroll
    for (int half = 8, bit = 4; half >= 2; half /= 2, bit /= 2)
    {
        int upper = (lane & (uint32_t)bit) != 0;
#pragma unroll
        for (int i = 0; i < half; i++)
        {
            float keep = upper ? v[i + half] : v[i];
            float send = upper ? v[i] : v[i + half];
            v[i] = fminf(keep, __shfl_xor_sync(FULL_WARP, send, bit));
        }
    }
    out[2 * lane] = v[0];
    out[2 * lane + 1] = v[1];
}

static __device__ void ask(const struct oj_cells_round &r,
                           const struct oj_near_node &node,
                           const struct group_list &list, struct requests *q,
                           int group)
{
    uint32_t ids = 0, nodes = 0, words = 0;
    for (int c = 0; c < 4; c++)
    {
        uint32_t n = FIELD(list.total, c + 1);
        int leaf = n <= r.leaf_size;
        ids += leaf ? 0 : n;
        nodes += leaf ? 0 : 1;
        words += leaf ? oj_near_words(n) : 0;
    }
    q->leaf[group] = node.n == 0 ||
                     oj_near_is_leaf(&r.square, &node, 2, FIELD(list.total, 0),
                                     sum_of_fields(list.total), r.leaf_size);
    q->ids[group] = ids;
    q->nodes[group] = nodes;
    q->words[group] = words;
    q->leaf_words[group] = node.n > 0 ? oj_near_words(FIELD(list.total, 0)) : 0;
}

static __global__ void __launch_bounds__(SHORT_BLOCK)
    split_short(struct oj_cells_round r, unsigned long long n_nodes)
{
    __shared__ struct requests q;
    __shared__ uint32_t hash[GROUPS][OJ_CELLS_SHORT + 1];
    __shared__ uint32_t ids[GROUPS][OJ_CELLS_SHORT + 1];
    __shared__ float bounds[GROUPS][OJ_NEAR_CHILDREN + 1];
    int group = (int)threadIdx.x / LANES;
    uint32_t lane = threadIdx.x % LANES;
    unsigned long long at =
        (unsigned long long)blockIdx.x * GROUPS + (unsigned long long)group;
    struct oj_near_node node = {0, 0, 0, 0, 0, 0, 0};
    struct group_list list = {ids[group], 0, lane, 0, 0, 0};
    struct oj_near_frame frame;
    float bound[OJ_NEAR_CHILDREN];
    uint32_t fields = 0;
    if (at < n_nodes)
        node = r.node[OJ_CELLS_OF_SHORT][at];
    list.n = node.n;
    frame = oj_near_frame(&r.square, node.ix, node.iy, node.level);
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        bound[c] = INFINITY;
    for (uint32_t i = lane; i < node.n; i += LANES)
    {
        struct oj_cuda_segment s;
        uint32_t id = r.id[node.first + i];
        struct oj_near_piece p = piece_of(r, frame, id, &s);
        struct oj_near_key key = oj_near_key(&p, s.ax, s.ay, s.bx, s.by);
        oj_near_lower_uppers(&p, bound);
        ids[group][i] = id;
        hash[group][i] = oj_near_hash(&key);
    }
    least_of_group(bound, lane, bounds[group]);
    __syncwarp();
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        bound[c] = oj_near_bound(bounds[group][c], frame.reach);
    for (uint32_t i = lane, k = 0; i < node.n; i += LANES, k += 4)
    {
        struct oj_cuda_segment s;
        struct oj_near_piece p = piece_of(r, frame, ids[group][i], &s);
        uint32_t mine = hash[group][i];
        uint32_t quarters = oj_near_quarters(oj_near_mask(&p, bound));
        for (uint32_t j = 0; j < node.n; j++)
        {
            if (hash[group][j] == mine && j != i && quarters != 0 &&
                stands_for(r, frame, ids[group][j], ids[group][i]))
                quarters = 0;
        }
        list.masks |= quarters << k;
        fields += fields_of(quarters);
    }
    list.total = fields;
    for (int step = 1; step < LANES; step *= 2)
    {
        uint32_t other = __shfl_up_sync(FULL_WARP, list.total, step, LANES);
        list.total += (int)lane >= step ? other : 0;
    }
    list.before = list.total - fields;
    list.total = __shfl_sync(FULL_WARP, list.total, LANES - 1, LANES);
    if (lane == 0)
        ask(r, node, list, &q, group);
    __syncthreads();
    if (threadIdx.x < 32)
        answer_requests(r, &q, (int)threadIdx.x);
    __syncthreads();
    if (node.n == 0 || q.leaf[group] == 2)
        return;
    if (q.leaf[group])
        put_entries(r, node, list, -1, oj_near_greatest(bound, 0xFFFFu),
                    q.first_word[group]);
    else
        put_children(r, node, &q, group, list, bound);
}

#endif
