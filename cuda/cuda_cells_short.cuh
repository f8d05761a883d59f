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
    uint32_t ids[GROUPS], nodes[GROUPS], words[GROUPS];
    uint32_t leaf[GROUPS]; /* in: wanted; out: so it is */
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

/* Takes sum, from the last lane, of a counter; gives where it begins. */
static __device__ unsigned long long take_block(struct oj_cells_counter *c,
                                                uint32_t sum, int lane)
{
    unsigned long long base = 0;
    if (lane == 31 && sum > 0)
        base = atomicAdd(&c->n, (unsigned long long)sum);
    return __shfl_sync(FULL_WARP, base, 31);
}

/* By the first warp: lane i answers the requests of group i. */
static __device__ void answer_requests(const struct oj_cells_round &r,
                                       struct requests *q, int lane)
{
    uint32_t splits = !q->leaf[lane];
    uint32_t ids = splits ? q->ids[lane] : 0;
    uint32_t nodes = splits ? q->nodes[lane] : 0;
    uint32_t headers = 4 * splits, words, s_ids, s_nodes, s_headers, s_words;
    unsigned long long b_ids, b_nodes, b_headers, b_words;
    struct oj_cells_counters *c = r.counters;
    int room;
    s_ids = scan_warp(ids, lane);
    s_nodes = scan_warp(nodes, lane);
    s_headers = scan_warp(headers, lane);
    b_ids = take_block(&c->ids, s_ids, lane);
    b_nodes = take_block(&c->nodes[0], s_nodes, lane);
    b_headers = take_block(&c->headers, s_headers, lane);
    room = b_ids + s_ids <= r.max_ids && b_nodes + s_nodes <= r.max_nodes[0] &&
           b_headers + s_headers <= r.max_headers;
    if (splits && !room)
    {
        q->leaf[lane] = 1;
        /* what was taken all the same says nothing */
        for (uint32_t i = 0; i < nodes; i++)
        {
            unsigned long long at = b_nodes + s_nodes - nodes + i;
            if (at < r.max_nodes[0])
                r.next_node[0][at].n = 0;
        }
    }
    words = q->leaf[lane] ? q->words[lane] : 0;
    s_words = scan_warp(words, lane);
    b_words = take_block(&c->words, s_words, lane);
    if (b_words + s_words > r.max_words && words > 0)
    {
        c->pool_full.n = 1;
        q->words[lane] = 0;
    }
    q->first_id[lane] = (uint32_t)(b_ids + s_ids - ids);
    q->first_node[lane] = (uint32_t)(b_nodes + s_nodes - nodes);
    q->first_header[lane] = (uint32_t)(b_headers + s_headers - headers);
    q->first_word[lane] = (uint32_t)(b_words + s_words - words);
}

/* Counts of a list by five fields of 6 bits: kept, and of each child. */
#define FIELD(v, i) (((v) >> (6 * (i))) & 63u)

static __device__ uint32_t fields_of(uint32_t mask)
{
    return (uint32_t)(mask != 0) | ((mask & 1u) << 6) | ((mask & 2u) << 11) |
           ((mask & 4u) << 16) | ((mask & 8u) << 21);
}

static __device__ void put_short_children(const struct oj_cells_round &r,
                                          const struct oj_near_node &node,
                                          const struct requests *q, int group,
                                          int lane, uint32_t total)
{
    uint32_t header = q->first_header[group];
    uint32_t at = q->first_node[group], id = q->first_id[group];
    uint64_t sum =
        FIELD(total, 1) + FIELD(total, 2) + FIELD(total, 3) + FIELD(total, 4);
    if (lane == 4)
        put_header(r, node.header, header,
                   oj_near_inner_info(node.level + 1, 1));
    if (lane >= 4)
        return;
    for (int i = 0; i < lane; i++)
    {
        at += FIELD(total, i + 1) > 0;
        id += FIELD(total, i + 1);
    }
    if (FIELD(total, lane + 1) == 0)
        put_header(r, header + (uint32_t)lane, 0,
                   oj_near_leaf_info(0, node.level + 1, 127));
    else
    {
        struct oj_near_node child;
        child.first = id;
        child.n = FIELD(total, lane + 1);
        child.ix = 2 * node.ix + (uint32_t)(lane & 1);
        child.iy = 2 * node.iy + (uint32_t)(lane >> 1);
        child.header = header + (uint32_t)lane;
        child.level = (uint8_t)(node.level + 1);
        child.stale = oj_near_stale(&node, 2, sum);
        r.next_node[0][at] = child;
    }
}

static __global__ void __launch_bounds__(SHORT_BLOCK)
    split_short(struct oj_cells_round r, unsigned long long n_nodes)
{
    __shared__ struct requests q;
    __shared__ uint32_t hash[GROUPS][OJ_CELLS_SHORT + 1];
    __shared__ uint32_t ids[GROUPS][OJ_CELLS_SHORT + 1];
    int group = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    unsigned long long at = (unsigned long long)blockIdx.x * GROUPS + group;
    struct oj_near_node node = {0, 0, 0, 0, 0, 0, 0};
    struct oj_near_frame frame;
    float bound[4], greatest = 0.0f;
    uint32_t masks = 0, fields = 0, before, total;
    int leaf;
    if (at < n_nodes)
        node = r.node[OJ_CELLS_OF_SHORT][at];
    frame = oj_near_frame(&r.square, node.ix, node.iy, node.level);
    for (int c = 0; c < 4; c++)
        bound[c] = frame.reach;
    for (uint32_t i = (uint32_t)lane; i < node.n; i += LANES)
    {
        struct oj_cuda_segment s;
        uint32_t id = r.id[node.first + i];
        struct oj_near_piece p = piece_of(r, frame, id, &s);
        struct oj_near_key key = oj_near_key(&p, s.ax, s.ay, s.bx, s.by);
        oj_near_lower_uppers(&p, 2, bound);
        ids[group][i] = id;
        hash[group][i] = oj_near_hash(&key);
    }
    for (int c = 0; c < 4; c++)
    {
        for (int step = LANES / 2; step > 0; step /= 2)
            bound[c] =
                fminf(bound[c], __shfl_xor_sync(FULL_WARP, bound[c], step));
        greatest = fmaxf(greatest, bound[c]);
    }
    __syncwarp();
    for (uint32_t i = (uint32_t)lane, k = 0; i < node.n; i += LANES, k += 4)
    {
        struct oj_cuda_segment s;
        struct oj_near_piece p = piece_of(r, frame, ids[group][i], &s);
        uint32_t mask = oj_near_mask(&p, 2, bound), mine = hash[group][i];
        for (uint32_t j = 0; j < node.n; j++)
        {
            if (hash[group][j] == mine && j != i && mask != 0 &&
                stands_for(r, frame, ids[group][j], ids[group][i]))
                mask = 0;
        }
        masks |= mask << k;
        fields += fields_of(mask);
    }
    total = fields;
    for (int step = 1; step < LANES; step *= 2)
    {
        uint32_t other = __shfl_up_sync(FULL_WARP, total, step, LANES);
        total += lane >= step ? other : 0;
    }
    before = total - fields;
    total = __shfl_sync(FULL_WARP, total, LANES - 1, LANES);
    leaf = oj_near_is_leaf(&r.square, &node, 2, FIELD(total, 0),
                           FIELD(total, 1) + FIELD(total, 2) + FIELD(total, 3) +
                               FIELD(total, 4),
                           r.leaf_size);
    if (lane == 0)
    {
        q.leaf[group] = (uint32_t)leaf;
        q.ids[group] = FIELD(total, 1) + FIELD(total, 2) + FIELD(total, 3) +
                       FIELD(total, 4);
        q.nodes[group] =
            (uint32_t)(FIELD(total, 1) > 0) + (uint32_t)(FIELD(total, 2) > 0) +
            (uint32_t)(FIELD(total, 3) > 0) + (uint32_t)(FIELD(total, 4) > 0);
        q.words[group] = node.n > 0 ? oj_near_words(FIELD(total, 0)) : 0;
    }
    __syncthreads();
    if (threadIdx.x < 32)
        answer_requests(r, &q, (int)threadIdx.x);
    __syncthreads();
    if (node.n == 0)
        return;
    if (q.leaf[group])
    {
        struct oj_near_scale scale = oj_near_scale(&frame, greatest);
        uint32_t kept = FIELD(total, 0), first = q.first_word[group];
        if (kept > 0 && q.words[group] == 0)
            return; /* no room: all of this is made again */
        if (lane == 0)
            put_leaf(r, node, first, kept, scale.exponent);
        before = FIELD(before, 0);
        for (uint32_t i = (uint32_t)lane; i < node.n; i += LANES, masks >>= 4)
        {
            if (masks & 15u)
                put_entry(r, frame, scale, first, kept, before++,
                          ids[group][i]);
        }
        return;
    }
    put_short_children(r, node, &q, group, lane, total);
    {
        uint32_t first = q.first_id[group];
        for (int c = 0; c < 4; c++)
        {
            uint32_t to = first + FIELD(before, c + 1);
            for (uint32_t i = (uint32_t)lane, k = 0; i < node.n;
                 i += LANES, k += 4)
            {
                if ((masks >> (k + (uint32_t)c)) & 1u)
                    r.next_id[to++] = ids[group][i];
            }
            first += FIELD(total, c + 1);
        }
    }
}

#endif
