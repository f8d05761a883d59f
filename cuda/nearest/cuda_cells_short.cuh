/** Nodes with short lists become leaves or children, eight threads each. */
#ifndef CUDA_CELLS_SHORT_CUH
#define CUDA_CELLS_SHORT_CUH

#include "cuda_cells_round.cuh"

#define SHORT_BLOCK 128
#define LANES 8
#define GROUPS (SHORT_BLOCK / LANES)
/* Blocks at a time on a multiprocessor: more hide memory's latency better than
 * more registers do. Shared memory has room for so many because lists are no
 * longer. */
#define SHORT_BLOCKS 8

/* What the groups of a block ask for and get; a warp adds it up. */
struct requests
{
    /* wanted when the node is split, words also when it is a leaf */
    uint32_t ids[GROUPS], nodes[GROUPS], words[GROUPS], leaf_words[GROUPS];
    uint32_t leaf[GROUPS]; /* in: wanted; out: so it is; 2: no room */
    uint32_t first_id[GROUPS], first_node[GROUPS], first_header[GROUPS];
    uint32_t first_word[GROUPS];
};

/* By the first warp: lane i answers the requests of group i, where there is
 * one. The four counters are added to at once, by one lane each. */
static __device__ void answer_requests(const struct oj_cells_round &r,
                                       struct requests *q, int lane)
{
    struct oj_cells_counters *c = r.counters;
    int asks = lane < GROUPS;
    uint32_t splits = asks && !q->leaf[lane];
    uint32_t wanted[4] = {4 * splits,
                          splits ? q->words[lane]
                          : asks ? q->leaf_words[lane]
                                 : 0,
                          splits ? q->ids[lane] : 0,
                          splits ? q->nodes[lane] : 0};
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
                r.next_node[0][end[3] - i] = oj_cells_no_node();
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
    if (!asks)
        return;
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

/* A leaf to write, of a node or of a child. */
struct leaf_plan
{
    struct oj_near_units units;
    double cx, cy;
    struct oj_near_scale scale;
    uint32_t first, n, item_before;
};

/* What tells which entries of a list stand for others. */
struct list_keys
{
    uint32_t hash[OJ_CELLS_SHORT + 1];
    uint32_t first_byte[16]; /* of each hash, read 16 at a time */
    uint8_t end[OJ_CELLS_SHORT + 1];
};

/* What a group works with: in shared memory. */
struct group_room
{
    float4 piece[OJ_CELLS_SHORT + 1]; /* ax ay dx dy */
    union
    {
        struct list_keys keys;
        /* later: entries of leaves to write, 64 * leaf + place in the list */
        uint8_t item[4 * OJ_CELLS_SHORT + 4];
    };
    float bound[OJ_NEAR_CHILDREN];
    struct leaf_plan leaf[4];
};

/* The list of a group, as its eight threads have it. */
struct group_list
{
    uint32_t n, lane;
    uint32_t masks;  /* four bits, the children, for each entry of the lane */
    uint32_t before; /* fields of the lanes before */
    uint32_t total;  /* fields of the list */
};

/* Leaf number c of a group: its header, and what its entries need. */
static __device__ void plan_leaf(const struct oj_cells_round &r,
                                 const struct oj_near_frame &split,
                                 const struct oj_near_node &node, float bound,
                                 uint32_t first, uint32_t n, uint32_t items,
                                 struct leaf_plan *leaf)
{
    struct oj_near_frame frame =
        oj_near_frame(&r.square, node.ix, node.iy, node.level);
    leaf->scale = oj_near_scale(&frame, bound);
    leaf->units = oj_near_units(&split, &frame, &leaf->scale);
    leaf->cx = frame.cx;
    leaf->cy = frame.cy;
    leaf->first = first;
    leaf->n = n;
    leaf->item_before = items;
    put_leaf(r, node, first, n, leaf->scale.exponent);
}

/* A piece from its first four numbers. */
static __device__ struct oj_near_piece known_piece(float4 v)
{
    struct oj_near_piece p;
    p.ax = v.x;
    p.ay = v.y;
    p.dx = v.z;
    p.dy = v.w;
    oj_near_know(&p);
    return p;
}

/* Writes the items that the group has listed. */
static __device__ void put_items(const struct oj_cells_round &r,
                                 const struct oj_near_node &node,
                                 const struct group_room *room, uint32_t lane,
                                 uint32_t n_items)
{
    for (uint32_t i = lane; i < n_items; i += LANES)
    {
        const struct leaf_plan *leaf = &room->leaf[room->item[i] / 64u];
        uint32_t place = room->item[i] % 64u, id = r.id[node.first + place];
        struct oj_near_piece p = known_piece(room->piece[place]);
        struct oj_near_units units = leaf->units;
        uint64_t entry;
        if (!oj_near_short_entry(&p, &units, &entry))
        {
            struct oj_near_frame frame;
            struct oj_near_scale scale = leaf->scale;
            frame.x0 = r.square.x0;
            frame.y0 = r.square.y0;
            frame.cx = leaf->cx;
            frame.cy = leaf->cy;
            entry = long_entry(r, frame, scale, id & ~OJ_NEAR_SHARED);
        }
        put_words(r, leaf->first, leaf->n, i - leaf->item_before, id, entry);
    }
}

/* Lists the entries of the list that have bits of only, as items from at on. */
static __device__ void list_items(const struct group_list &list, uint32_t only,
                                  uint32_t c, uint32_t at,
                                  struct group_room *room)
{
    uint32_t masks = list.masks;
    for (uint32_t i = list.lane; i < list.n; i += LANES, masks >>= 4)
    {
        if (masks & only)
            room->item[at++] = (uint8_t)(64u * c + i);
    }
}

/* By a lane: child c, with what the children before it take. */
static __device__ void
put_child(const struct oj_cells_round &r, const struct oj_near_frame &frame,
          const struct oj_near_node &node, const struct requests *q, int group,
          const struct group_list &list, uint32_t c, struct group_room *room)
{
    uint32_t word = q->first_word[group], id = q->first_id[group];
    uint32_t next = q->first_node[group], items = 0;
    uint32_t n = FIELD(list.total, c + 1);
    uint32_t corner = (c & 1u) * 2u + (c >> 1) * 8u;
    struct oj_near_node child;
    for (uint32_t i = 0; i < c; i++)
    {
        uint32_t m = FIELD(list.total, i + 1);
        int leaf = m <= r.leaf_size;
        word += leaf ? oj_near_words(m) : 0;
        items += leaf ? m : 0;
        id += leaf ? 0 : m;
        next += leaf ? 0 : 1;
    }
    child.first = id;
    child.n = n;
    child.ix = 2 * node.ix + (c & 1u);
    child.iy = 2 * node.iy + (c >> 1);
    child.header = q->first_header[group] + c;
    child.level = (uint8_t)(node.level + 1);
    child.stale = oj_near_stale(&node, 2, sum_of_fields(list.total));
    if (n <= r.leaf_size)
        plan_leaf(
            r, frame, child,
            2.0f *
                fmaxf(fmaxf(room->bound[corner], room->bound[corner + 1]),
                      fmaxf(room->bound[corner + 4], room->bound[corner + 5])),
            word, n, items, &room->leaf[c]);
    else
        r.next_node[0][next] = child;
}

static __device__ void
put_children(const struct oj_cells_round &r, const struct oj_near_frame &frame,
             const struct oj_near_node &node, const struct requests *q,
             int group, const struct group_list &list, struct group_room *room)
{
    uint32_t id = q->first_id[group], items = 0;
    if (list.lane < 4)
        put_child(r, frame, node, q, group, list, list.lane, room);
    else if (list.lane == 4)
        put_header(r, node.header, q->first_header[group],
                   oj_near_inner_info(node.level + 1, 1));
    for (uint32_t c = 0; c < 4; c++)
    {
        uint32_t n = FIELD(list.total, c + 1), masks = list.masks;
        uint32_t to = id + FIELD(list.before, c + 1);
        if (n <= r.leaf_size)
        {
            list_items(list, 1u << c, c, items + FIELD(list.before, c + 1),
                       room);
            items += n;
            continue;
        }
        for (uint32_t i = list.lane; i < list.n; i += LANES, masks >>= 4)
        {
            if ((masks >> c) & 1u)
                r.next_id[to++] = r.id[node.first + i];
        }
        id += n;
    }
}

/* The leaf that the node becomes. */
static __device__ void
put_node_leaf(const struct oj_cells_round &r, const struct oj_near_frame &frame,
              const struct oj_near_node &node, uint32_t first,
              const struct group_list &list, struct group_room *room)
{
    if (list.lane == 0)
    {
        float most = 0.0f;
        for (int i = 0; i < OJ_NEAR_CHILDREN; i++)
            most = fmaxf(most, room->bound[i]);
        plan_leaf(r, frame, node, most, first, FIELD(list.total, 0), 0,
                  &room->leaf[0]);
    }
    list_items(list, 15u, 0, FIELD(list.before, 0), room);
}

/* The least of each of the 16 upper bounds over the eight threads of a group:
 * each gets two of them and leaves the bounds in shared memory. */
static __device__ void least_of_group(float *v, uint32_t lane, float reach,
                                      float *bound)
{
    halve_least<8>(v, lane, 4);
    halve_least<4>(v, lane, 2);
    halve_least<2>(v, lane, 1);
    bound[2 * lane] = oj_near_bound(v[0], reach);
    bound[2 * lane + 1] = oj_near_bound(v[1], reach);
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

/* The bytes of v that are 0 have their first bit, and now and then one above
 * such a byte has. */
static __device__ uint32_t zero_bytes(uint32_t v)
{
    return (v - 0x01010101u) & ~v & 0x80808080u;
}

/* Bit 8 k + 7 - w: entry first + 4 w + k, of the 16 from there on, may hash as
 * mine. */
static __device__ uint32_t like_hashes(const struct list_keys *keys,
                                       uint32_t first, uint32_t mine)
{
    uint4 four = *(const uint4 *)&keys->first_byte[first / 4];
    mine = (mine >> 24) * 0x01010101u;
    return zero_bytes(four.x ^ mine) | zero_bytes(four.y ^ mine) >> 1 |
           zero_bytes(four.z ^ mine) >> 2 | zero_bytes(four.w ^ mine) >> 3;
}

/* 1 when another entry of the node's list stands for entry i. One that stands
 * for entries of other features is marked, where ties are asked for; whoever
 * reads it at that moment sees all that it was marked for before, and the
 * others himself. */
static __device__ int is_stood_for(const struct oj_cells_round &r,
                                   const struct oj_near_node &node,
                                   const struct list_keys *keys, uint32_t i)
{
    uint32_t mine = keys->hash[i], id = id_at(r, node.first + i);
    int ties = 0;
    for (uint32_t first = 0; first < node.n; first += 16)
    {
        uint32_t like = like_hashes(keys, first, mine);
        for (; like != 0; like &= like - 1)
        {
            uint32_t bit = (uint32_t)__ffs((int)like) - 1;
            uint32_t j = first + 4 * (7 - bit % 8) + bit / 8;
            enum oj_cells_kinship to;
            if (j == i || j >= node.n || keys->hash[j] != mine)
                continue;
            to = kinship(r, id_at(r, node.first + j), keys->end[j], id,
                         keys->end[i]);
            if (to == OJ_CELLS_FIRST_STANDS)
                return 1;
            if (r.marks_ties && to == OJ_CELLS_SECOND_STANDS)
                ties |= makes_tie(r, r.rank[id], r.id[node.first + j]);
        }
    }
    if (ties)
        r.id[node.first + i] |= OJ_NEAR_SHARED;
    return 0;
}

/* What is known of an entry, for that. */
static __device__ void put_key(struct list_keys *keys, uint32_t i, int end,
                               const struct oj_cuda_segment &s)
{
    struct oj_near_key key = oj_near_key(end, s.ax, s.ay, s.bx, s.by);
    uint32_t hash = oj_near_hash(&key);
    keys->hash[i] = hash;
    ((uint8_t *)keys->first_byte)[i] = (uint8_t)(hash >> 24);
    keys->end[i] = (uint8_t)end;
}

static __global__ void __launch_bounds__(SHORT_BLOCK, SHORT_BLOCKS)
    split_short(struct oj_cells_round r, unsigned long long n_nodes)
{
    __shared__ struct requests q;
    __shared__ struct group_room rooms[GROUPS];
    int group = (int)threadIdx.x / LANES;
    struct group_room *room = &rooms[group];
    uint32_t lane = threadIdx.x % LANES;
    unsigned long long at =
        (unsigned long long)blockIdx.x * GROUPS + (unsigned long long)group;
    struct oj_near_node node = {0, 0, 0, 0, 0, 0, 0};
    struct group_list list = {0, lane, 0, 0, 0};
    struct oj_near_frame frame;
    uint32_t fields = 0, n_items = 0;
    if (at < n_nodes)
        node = r.node[OJ_CELLS_OF_SHORT][at];
    list.n = node.n;
    frame = oj_near_frame(&r.square, node.ix, node.iy, node.level);
    {
        float upper2[OJ_NEAR_CHILDREN];
#pragma unroll
        for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
            upper2[c] = INFINITY;
        for (uint32_t i = lane; i < node.n; i += LANES)
        {
            struct oj_cuda_segment s;
            uint32_t id = id_at(r, node.first + i);
            struct oj_near_piece p = piece_of(r, frame, id, &s);
            put_key(&room->keys, i, oj_near_end(&p), s);
            oj_near_lower_uppers(&p, upper2);
            room->piece[i] = make_float4(p.ax, p.ay, p.dx, p.dy);
        }
        least_of_group(upper2, lane, frame.reach, room->bound);
    }
    __syncwarp();
    for (uint32_t i = lane, k = 0; i < node.n; i += LANES, k += 4)
    {
        struct oj_near_piece p = known_piece(room->piece[i]);
        uint32_t quarters = oj_near_quarters(oj_near_mask(&p, room->bound));
        if (quarters != 0 && is_stood_for(r, node, &room->keys, i))
            quarters = 0;
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
    if (node.n > 0 && q.leaf[group] == 1)
    {
        put_node_leaf(r, frame, node, q.first_word[group], list, room);
        n_items = FIELD(list.total, 0);
    }
    else if (node.n > 0 && q.leaf[group] == 0)
    {
        put_children(r, frame, node, &q, group, list, room);
        for (uint32_t c = 1; c <= 4; c++)
            n_items +=
                FIELD(list.total, c) <= r.leaf_size ? FIELD(list.total, c) : 0;
    }
    __syncwarp();
    put_items(r, node, room, lane, n_items);
}

#endif
