/** Kernels of one round of oj_cuda_cells_build(): each node of a level becomes
 *  a leaf or gets children. */
#ifndef CUDA_SEGMENT_CELLS_SPLIT_CUH
#define CUDA_SEGMENT_CELLS_SPLIT_CUH

#include "../../foundations/device/oj_cuda.h"
#include "cuda_segment_cells_bounds.cuh"

/** Maximum number of segments of a short list, and of a long list; longer lists
 * are huge. */
#define OJ_CELLS_SHORT 59
#define OJ_CELLS_LONG 1024

enum oj_cells_class
{
    OJ_CELLS_OF_SHORT = 0,
    OJ_CELLS_OF_LONG,
    OJ_CELLS_OF_HUGE,
    OJ_CELLS_CLASSES
};

/** A counter to which many blocks add, in a cache line of its own. */
struct alignas(128) oj_cells_counter
{
    unsigned long long n;
};

struct oj_cells_counters
{
    struct oj_cells_counter headers, words, ids, nodes[OJ_CELLS_CLASSES];
    struct oj_cells_counter pool_full, crowded, lost, spread;
};

/** Arguments of the kernels of a round. */
struct oj_cells_round
{
    struct oj_near_square square;
    uint32_t leaf_size;
    /** 1: a segment that replaces an equal segment of another feature is marked
     */
    int marks_ties;
    const struct oj_cuda_segment *segment;
    const int32_t *rank;
    unsigned long long max_headers, max_words, max_ids;
    unsigned long long max_nodes[OJ_CELLS_CLASSES];
    uint32_t *id;      /**< lists of this round */
    uint16_t *mask;    /**< for each element of id: mask of the children that
                            need the segment */
    uint32_t *next_id; /**< lists of the next round */
    struct oj_near_node *node[OJ_CELLS_CLASSES];
    struct oj_near_node *next_node[OJ_CELLS_CLASSES];
    struct oj_near_header *tree;
    uint64_t *pool;
    struct oj_cells_counters *counters;
};

/** Plan for a node with a long or huge list: its split into children, or its
 *  leaf. */
struct oj_cells_plan
{
    /** Squared upper bounds of the distance, per child, as bits of floats: such
     *  numbers >= 0 compare like integers. */
    uint32_t bound[OJ_NEAR_CHILDREN];
    uint32_t count[OJ_NEAR_CHILDREN];
    uint32_t cursor[OJ_NEAR_CHILDREN]; /**< next free entry in next_id */
    /** Used if the node becomes a leaf; first and at are words of the pool. */
    uint32_t kept, leaf, first, at;
    float greatest;
};

#define FULL_WARP 0xFFFFFFFFu

/* Returns a node without a list. All members are set, because kernels load them
 * before they test n. */
static __device__ __forceinline__ struct oj_near_node oj_cells_empty_node(void)
{
    struct oj_near_node node = {0, 0, 0, 0, 0, 0, 0};
    return node;
}

static __device__ uint32_t scan_warp(uint32_t v, int lane)
{
    for (int step = 1; step < 32; step *= 2)
    {
        uint32_t other = __shfl_up_sync(FULL_WARP, v, step);
        v += lane >= step ? other : 0;
    }
    return v;
}

/* Reserves consecutive positions for the lanes with `wants` by one addition to
 * the counter; returns this lane's position. All lanes of the warp must call
 * it. */
static __device__ unsigned long long
reserve_positions_by_warp(struct oj_cells_counter *counter, int wants)
{
    uint32_t votes = __ballot_sync(FULL_WARP, wants), lane = threadIdx.x % 32;
    unsigned long long base = 0;
    if (lane == 0 && votes != 0)
        base = atomicAdd(&counter->n, (unsigned long long)__popc(votes));
    return __shfl_sync(FULL_WARP, base, 0) +
           (unsigned)__popc(votes & ((1u << lane) - 1u));
}

/* Makes one step of a reduction, which computes the minimum of each of 2 * half
 * numbers over the lanes of a warp or a part of it. Lanes whose numbers differ
 * in `bit` exchange halves of their numbers; each lane keeps the minima of one
 * half. */
template <int half>
static __device__ void exchange_halves_keeping_min(float *v, uint32_t lane,
                                                   uint32_t bit)
{
    int upper = (lane & bit) != 0;
#pragma unroll
    for (int i = 0; i < half; i++)
    {
        float keep = upper ? v[i + half] : v[i];
        float send = upper ? v[i] : v[i + half];
        v[i] = fminf(keep, __shfl_xor_sync(FULL_WARP, send, (int)bit));
    }
}

/* Returns entry i of the lists of this round, without its mark. */
static __device__ __forceinline__ uint32_t
segment_id_at(const struct oj_cells_round &r, uint32_t i)
{
    return r.id[i] & ~OJ_NEAR_SHARED;
}

static __device__ struct oj_near_piece
load_segment_as_piece(const struct oj_cells_round &r,
                      const struct oj_near_frame &frame, uint32_t id,
                      struct oj_cuda_segment *s)
{
    *s = oj_near_load_segment(r.segment, (int32_t)id);
    return oj_near_piece_of_segment(&frame, *s);
}

/* Result of comparing two segments with equal hashes. */
enum oj_cells_comparison
{
    OJ_CELLS_NOT_EQUAL,
    OJ_CELLS_FIRST_KEPT, /* equal: the first is kept, the second dropped */
    OJ_CELLS_SECOND_KEPT
};

/* Decides which of two segments with equal hashes is kept, if their distances
 * from all points of the node are equal. end_i and end_j are results of
 * oj_near_nearest_end(). */
static __device__ enum oj_cells_comparison
compare_segments_as_duplicates(const struct oj_cells_round &r, uint32_t i,
                               int end_i, uint32_t j, int end_j)
{
    struct oj_cuda_segment k = oj_near_key_of_segment(end_i, r.segment[i]);
    struct oj_cuda_segment l = oj_near_key_of_segment(end_j, r.segment[j]);
    if (!oj_near_keys_equal(&k, &l))
        return OJ_CELLS_NOT_EQUAL;
    return oj_near_segment_replaces(r.rank[i], (int32_t)i, r.rank[j],
                                    (int32_t)j)
               ? OJ_CELLS_FIRST_KEPT
               : OJ_CELLS_SECOND_KEPT;
}

/* Returns 1 if a segment with this rank must be marked when it replaces the
 * list entry `other`: that entry belongs to another feature, or is marked
 * itself. */
static __device__ int
is_duplicate_of_other_feature(const struct oj_cells_round &r, int32_t rank,
                              uint32_t other)
{
    return (other & OJ_NEAR_SHARED) != 0 ||
           r.rank[other & ~OJ_NEAR_SHARED] != rank;
}

static __device__ uint64_t encode_clipped_segment(
    const struct oj_cells_round &r, const struct oj_near_frame &frame,
    const struct oj_near_scale &scale, uint32_t id)
{
    return oj_near_entry_of_segment(
        &frame, &scale, oj_near_load_segment(r.segment, (int32_t)id));
}

/* Writes entry `at` of a leaf of n entries, whose words begin at `first` in the
 * pool. id is the number of the segment, with its mark. */
static __device__ void write_entry_to_leaf(const struct oj_cells_round &r,
                                           uint32_t first, uint32_t n,
                                           uint32_t at, uint32_t id,
                                           uint64_t entry)
{
    uint64_t *to = r.pool + first + (n >= OJ_NEAR_COUNT ? 2 : 0);
    to[at] = entry;
    uint32_t tied = (id & OJ_NEAR_SHARED) != 0 ? OJ_NEAR_TIED : 0u;
    id &= ~OJ_NEAR_SHARED;
    to[((n + 1u) & ~1u) + at] =
        oj_near_pack_words(id, (uint32_t)r.rank[id] | tied);
}

static __device__ void write_node_header(const struct oj_cells_round &r,
                                         uint32_t where, uint32_t first,
                                         uint32_t info)
{
    uint2 v = make_uint2(first, info);
    *(uint2 *)(r.tree + where) = v;
}

/* Writes the header of a leaf and the words of its list that are not entries:
 * the count of a long list, and padding. */
static __device__ void write_leaf_header(const struct oj_cells_round &r,
                                         const struct oj_near_node &node,
                                         uint32_t first, uint32_t kept,
                                         uint32_t exponent)
{
    write_node_header(r, node.header, first,
                      oj_near_leaf_info(kept, node.level, exponent));
    if (kept >= OJ_NEAR_COUNT)
    {
        r.pool[first] = kept;
        first += 2;
    }
    if (kept & 1u)
        r.pool[first + kept] = 0;
}

static __host__ __device__ enum oj_cells_class size_class_of_list(uint32_t n)
{
    return n <= OJ_CELLS_SHORT  ? OJ_CELLS_OF_SHORT
           : n <= OJ_CELLS_LONG ? OJ_CELLS_OF_LONG
                                : OJ_CELLS_OF_HUGE;
}

/* --- long and huge lists -------------------------------------------------- */

#define LONG_BLOCK 64
#define HUGE_BLOCK 128
#define FAN 4

/* The entries of a list that one warp processes: 32 at a time, beginning with
 * `first`, at intervals of `step`. */
struct warp_share
{
    uint32_t first, step;
};

static __device__ void reset_split_plan(struct oj_cells_plan *plan, int i)
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

/* Lowers the plan's bounds to v [16], where v is smaller. First computes the
 * minimum of each of the 16 numbers over the threads of the warp, so that few
 * threads write. */
static __device__ void lower_child_bounds_by_warp(float *v, uint32_t lane,
                                                  struct oj_cells_plan *plan)
{
    float least;
    exchange_halves_keeping_min<8>(v, lane, 16);
    exchange_halves_keeping_min<4>(v, lane, 8);
    exchange_halves_keeping_min<2>(v, lane, 4);
    exchange_halves_keeping_min<1>(v, lane, 2);
    least = fminf(v[0], __shfl_xor_sync(FULL_WARP, v[0], 1));
    if (lane % 2 == 0 && least < __uint_as_float(plan->bound[lane / 2]))
        atomicMin(&plan->bound[lane / 2], __float_as_uint(least));
}

static __device__ void bound_child_distances_of_share(
    const struct oj_cells_round &r, const struct oj_near_node &node,
    const struct oj_near_frame &frame, struct warp_share share,
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
        struct oj_near_piece p = load_segment_as_piece(
            r, frame, segment_id_at(r, node.first + i), &s);
        oj_near_lower_upper_bounds(&p, bound);
    }
    lower_child_bounds_by_warp(bound, lane, plan);
}

/* Returns in lane c the number of masks of the warp that have bit c, and in
 * lane 16 the number of masks that are not 0. A warp sums these counts before
 * it adds them to the plan, because blocks that add to one address wait for
 * each other. */
static __device__ uint32_t count_lanes_per_child(uint32_t mask)
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

static __device__ void add_child_counts_to_plan(struct oj_cells_plan *plan,
                                                uint32_t votes)
{
    uint32_t lane = threadIdx.x % 32;
    if (votes > 0)
        atomicAdd(lane < OJ_NEAR_CHILDREN ? &plan->count[lane] : &plan->kept,
                  votes);
}

static __device__ uint32_t compute_child_masks_of_share(
    const struct oj_cells_round &r, const struct oj_near_node &node,
    const struct oj_near_frame &frame, struct warp_share share,
    struct oj_cells_plan *plan)
{
    float bound[OJ_NEAR_CHILDREN], mine;
    uint32_t lane = threadIdx.x % 32, votes = 0;
    if (share.first >= node.n)
        return 0;
    mine = oj_near_bound_of_sixteenth(
        __uint_as_float(plan->bound[lane % OJ_NEAR_CHILDREN]), frame.reach);
#pragma unroll
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        bound[c] = __shfl_sync(FULL_WARP, mine, c);
    for (uint32_t base = share.first; base < node.n; base += share.step)
    {
        uint32_t i = base + lane, mask = 0;
        if (i < node.n)
        {
            struct oj_cuda_segment s;
            struct oj_near_piece p = load_segment_as_piece(
                r, frame, segment_id_at(r, node.first + i), &s);
            mask = oj_near_sixteenth_mask(&p, bound);
            r.mask[node.first + i] = (uint16_t)mask;
        }
        votes += count_lanes_per_child(mask);
    }
    add_child_counts_to_plan(plan, votes);
    return votes;
}

static __device__ uint32_t
sum_child_counts_of_plan(const struct oj_cells_plan *plan)
{
    uint32_t sum = 0;
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        sum += plan->count[c];
    return sum;
}

/* Reserves room for the children of a node and writes them, one per lane.
 * Returns 0 if there is no room. All lanes of a warp must call it. */
static __device__ int
allocate_child_nodes_of_split(const struct oj_cells_round &r,
                              const struct oj_near_node &node,
                              struct oj_cells_plan *plan, uint32_t sum)
{
    struct oj_cells_counters *counters = r.counters;
    int lane = (int)(threadIdx.x % 32);
    uint32_t n = lane < OJ_NEAR_CHILDREN ? plan->count[lane] : 0;
    enum oj_cells_class mine = size_class_of_list(n);
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
        /* positions that were reserved but are not used get empty nodes */
        if (n > 0 && base + before < r.max_nodes[mine])
            r.next_node[mine][base + before] = oj_cells_empty_node();
        return 0;
    }
    header = (uint32_t)first[1];
    if (lane == OJ_NEAR_CHILDREN)
        write_node_header(r, node.header, header,
                          oj_near_inner_info(node.level + 2, 2));
    if (lane >= OJ_NEAR_CHILDREN)
        return 1;
    child.first = plan->cursor[lane] = (uint32_t)first[0] + ids;
    child.n = n;
    child.ix = FAN * node.ix + (uint32_t)lane % FAN;
    child.iy = FAN * node.iy + (uint32_t)lane / FAN;
    child.header = header + (uint32_t)lane;
    child.level = (uint8_t)(node.level + 2);
    child.stale = oj_near_count_unpaid_splits(&node, FAN, sum);
    if (n > 0)
        r.next_node[mine][base + before] = child;
    else
        write_node_header(r, child.header, 0,
                          oj_near_leaf_info(0, child.level, 127));
    return 1;
}

static __device__ void reserve_pool_for_leaf(const struct oj_cells_round &r,
                                             const struct oj_near_node &node,
                                             const struct oj_near_frame &frame,
                                             struct oj_cells_plan *plan)
{
    unsigned long long words = oj_near_words_of_leaf(plan->kept);
    plan->greatest = 0.0f;
    for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
        plan->greatest = fmaxf(
            plan->greatest, oj_near_bound_of_sixteenth(
                                __uint_as_float(plan->bound[c]), frame.reach));
    plan->at = 0;
    plan->first = 0;
    if (words > 0)
    {
        unsigned long long first = atomicAdd(&r.counters->words.n, words);
        if (first + words > r.max_words)
        {
            r.counters->pool_full.n = 1;
            /* no room: the whole build is repeated with larger arrays */
            plan->leaf = 2;
            return;
        }
        plan->first = (uint32_t)first;
    }
    write_leaf_header(r, node, plan->first, plan->kept,
                      oj_near_scale_make(&frame, plan->greatest).exponent);
}

/* Decides whether the node is split or becomes a leaf, and reserves the room.
 * All lanes of a warp must call it. */
static __device__ void decide_leaf_or_split(const struct oj_cells_round &r,
                                            const struct oj_near_node &node,
                                            const struct oj_near_frame &frame,
                                            struct oj_cells_plan *plan)
{
    uint32_t sum = sum_child_counts_of_plan(plan),
             is_first = threadIdx.x % 32 == 0;
    int leaf = oj_near_becomes_leaf(&r.square, &node, FAN, plan->kept, sum,
                                    r.leaf_size);
    int crowded = node.n > OJ_CELLS_LONG &&
                  oj_near_count_unpaid_splits(&node, FAN, sum) >= 4;
    if (!leaf && !allocate_child_nodes_of_split(r, node, plan, sum))
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
            reserve_pool_for_leaf(r, node, frame, plan);
    }
}

/* Returns the mask of the children that need entry i of the list. */
static __device__ uint32_t child_mask_of_entry(const struct oj_cells_round &r,
                                               const struct oj_near_node &node,
                                               uint32_t i)
{
    return i < node.n ? r.mask[node.first + i] : 0;
}

/* Returns in lane c the number of entries of the warp's share that child c
 * needs, and in lane 16 the number that any child needs. */
static __device__ uint32_t count_entries_per_child(
    const struct oj_cells_round &r, const struct oj_near_node &node,
    struct warp_share share)
{
    uint32_t lane = threadIdx.x % 32, votes = 0;
    for (uint32_t base = share.first; base < node.n; base += share.step)
        votes +=
            count_lanes_per_child(child_mask_of_entry(r, node, base + lane));
    return votes;
}

/* Reserves room in the lists of the children, or in the leaf. Returns in lane c
 * the position in next_id for child c; if the node becomes a leaf, lane 0 gets
 * the position in the leaf. */
static __device__ uint32_t
reserve_child_list_positions(uint32_t votes, struct oj_cells_plan *plan)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t kept = __shfl_sync(FULL_WARP, votes, OJ_NEAR_CHILDREN);
    if (plan->leaf)
        votes = lane == 0 ? kept : 0;
    if (lane >= OJ_NEAR_CHILDREN || votes == 0)
        return 0;
    return atomicAdd(plan->leaf ? &plan->at : &plan->cursor[lane], votes);
}

/* Writes the entries of a warp's share to the lists of the children or to the
 * leaf. votes is the result of count_entries_per_child(). */
static __device__ void write_entries_to_children_or_leaf(
    const struct oj_cells_round &r, const struct oj_near_node &node,
    const struct oj_near_frame &frame, struct warp_share share, uint32_t votes,
    struct oj_cells_plan *plan)
{
    uint32_t lane = threadIdx.x % 32, lower = (1u << lane) - 1u, place;
    uint32_t n_columns = plan->leaf ? 1 : OJ_NEAR_CHILDREN;
    struct oj_near_scale scale = oj_near_scale_make(&frame, plan->greatest);
    if (plan->leaf == 2 || share.first >= node.n)
        return;
    place = reserve_child_list_positions(votes, plan);
    for (uint32_t base = share.first; base < node.n; base += share.step)
    {
        uint32_t i = base + lane, bits = child_mask_of_entry(r, node, i);
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
                write_entry_to_leaf(r, plan->first, plan->kept, at, id,
                                    encode_clipped_segment(
                                        r, frame, scale, id & ~OJ_NEAR_SHARED));
            else
                r.next_id[at] = id;
        }
    }
}

static __device__ struct oj_cuda_segment
distance_key_of_segment(const struct oj_cells_round &r,
                        const struct oj_near_frame &frame, uint32_t id)
{
    struct oj_cuda_segment s;
    struct oj_near_piece p = load_segment_as_piece(r, frame, id, &s);
    return oj_near_key_of_segment(oj_near_nearest_end(&p), s);
}

/* Removes duplicates from a list that would otherwise not become shorter. All
 * threads of a block must call it. slot [SLOTS] is a hash table of list
 * entries: an element is 0 if empty, otherwise the number of the entry plus 1,
 * with a mark if the entry replaces one of another feature. */
#define SLOTS (2 * OJ_CELLS_LONG)

static __device__ void drop_duplicate_segments_of_node(
    const struct oj_cells_round &r, const struct oj_near_node &node,
    const struct oj_near_frame &frame, uint32_t *slot)
{
    uint32_t *id = r.id + node.first;
    uint16_t *mask = r.mask + node.first;
    for (uint32_t i = threadIdx.x; i < SLOTS; i += blockDim.x)
        slot[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < node.n; i += blockDim.x)
    {
        uint32_t own_id = id[i] & ~OJ_NEAR_SHARED;
        struct oj_cuda_segment key = distance_key_of_segment(r, frame, own_id);
        uint32_t at = oj_near_hash(&key) & (SLOTS - 1);
        for (;;)
        {
            uint32_t seen = atomicCAS(&slot[at], 0u, i + 1), mark, holder,
                     other_id;
            struct oj_cuda_segment other;
            if (seen == 0)
                break;
            holder = (seen & ~OJ_NEAR_SHARED) - 1;
            other_id = id[holder] & ~OJ_NEAR_SHARED;
            other = distance_key_of_segment(r, frame, other_id);
            if (!oj_near_keys_equal(&key, &other))
            {
                at = (at + 1) & (SLOTS - 1);
                continue;
            }
            mark = seen & OJ_NEAR_SHARED;
            if (!oj_near_segment_replaces(r.rank[own_id], (int32_t)own_id,
                                          r.rank[other_id], (int32_t)other_id))
            {
                if (r.marks_ties &&
                    is_duplicate_of_other_feature(r, r.rank[other_id], id[i]))
                    atomicOr(&slot[at], OJ_NEAR_SHARED);
                mask[i] = 0;
                break;
            }
            if (r.marks_ties &&
                is_duplicate_of_other_feature(r, r.rank[own_id], id[holder]))
                mark = OJ_NEAR_SHARED;
            if (atomicCAS(&slot[at], seen, (i + 1) | mark) == seen)
            {
                mask[holder] = 0;
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
    split_long_lists(struct oj_cells_round r, unsigned long long n_nodes)
{
    __shared__ struct oj_cells_plan plan;
    __shared__ uint32_t slot[SLOTS];
    struct oj_near_node node = r.node[OJ_CELLS_OF_LONG][blockIdx.x];
    struct oj_near_frame frame =
        oj_near_frame_make(&r.square, node.ix, node.iy, node.level);
    struct warp_share share = {threadIdx.x & ~31u, LONG_BLOCK};
    uint32_t votes;
    if (node.n == 0 || blockIdx.x >= n_nodes)
        return;
    reset_split_plan(&plan, (int)threadIdx.x);
    __syncthreads();
    bound_child_distances_of_share(r, node, frame, share, &plan);
    __syncthreads();
    votes = compute_child_masks_of_share(r, node, frame, share, &plan);
    __syncthreads();
    if (10 * sum_child_counts_of_plan(&plan) >=
        8 * (uint64_t)node.n * OJ_NEAR_CHILDREN)
    {
        drop_duplicate_segments_of_node(r, node, frame, slot);
        if (threadIdx.x < OJ_NEAR_CHILDREN)
            plan.count[threadIdx.x] = 0;
        if (threadIdx.x == 0)
            plan.kept = 0;
        __syncthreads();
        votes = count_entries_per_child(r, node, share);
        add_child_counts_to_plan(&plan, votes);
        __syncthreads();
    }
    if (threadIdx.x < 32)
        decide_leaf_or_split(r, node, frame, &plan);
    __syncthreads();
    write_entries_to_children_or_leaf(r, node, frame, share, votes, &plan);
}

/* Returns the share of a warp if many blocks work on node blockIdx.y. */
static __device__ struct warp_share share_of_block_in_grid(void)
{
    struct warp_share s;
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
    split_huge_lists(struct oj_cells_round r, struct oj_cells_plan *plans)
{
    struct oj_near_node node = r.node[OJ_CELLS_OF_HUGE][blockIdx.y];
    struct oj_cells_plan *plan = plans + blockIdx.y;
    struct oj_near_frame frame =
        oj_near_frame_make(&r.square, node.ix, node.iy, node.level);
    if (node.n == 0)
        return;
    if (step == OJ_CELLS_BEGIN)
        reset_split_plan(plan, (int)threadIdx.x);
    else if (step == OJ_CELLS_BOUND)
        bound_child_distances_of_share(r, node, frame, share_of_block_in_grid(),
                                       plan);
    else if (step == OJ_CELLS_MASK)
        (void)compute_child_masks_of_share(r, node, frame,
                                           share_of_block_in_grid(), plan);
    else if (step == OJ_CELLS_SETTLE && threadIdx.x < 32)
        decide_leaf_or_split(r, node, frame, plan);
    else if (step == OJ_CELLS_FILL)
        write_entries_to_children_or_leaf(
            r, node, frame, share_of_block_in_grid(),
            count_entries_per_child(r, node, share_of_block_in_grid()), plan);
}

/* --- short lists: eight threads per node ---------------------------------- */

#define SHORT_BLOCK 128
#define LANES 8
#define GROUPS (SHORT_BLOCK / LANES)
/* Blocks per multiprocessor: more blocks hide the latency of memory better than
 * more registers per thread do. Shared memory suffices, because the lists are
 * short. */
#define SHORT_BLOCKS 8

/* Requests of the groups of a block for memory, and the answers; one warp sums
 * the requests. */
struct requests
{
    /* memory requested for a split; a leaf needs only leaf_words */
    uint32_t ids[GROUPS], nodes[GROUPS], words[GROUPS], leaf_words[GROUPS];
    /* In the request, 1 if the node should become a leaf. In the answer, 0 if
     * it gets children, 1 if it becomes a leaf, and 2 if the pool is full. */
    uint32_t leaf[GROUPS];
    uint32_t first_id[GROUPS], first_node[GROUPS], first_header[GROUPS];
    uint32_t first_word[GROUPS];
};

/* Answers the requests, lane i those of group i. The first warp must call it.
 * Only one lane adds to each of the four counters. */
static __device__ void
allocate_children_of_groups(const struct oj_cells_round &r, struct requests *q,
                            int lane)
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
        /* positions that were reserved but are not used get empty nodes */
        for (uint32_t i = 1; i <= wanted[3]; i++)
        {
            if (end[3] - i < limit[3])
                r.next_node[0][end[3] - i] = oj_cells_empty_node();
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

/* Five counters of 6 bits in one word. Field 0 counts the entries kept, and
 * field c + 1 counts those of child c. */
#define FIELD(v, i) (((v) >> (6 * (i))) & 63u)

static __device__ uint32_t spread_mask_to_bit_fields(uint32_t quarters)
{
    return (uint32_t)(quarters != 0) | ((quarters & 1u) << 6) |
           ((quarters & 2u) << 11) | ((quarters & 4u) << 16) |
           ((quarters & 8u) << 21);
}

static __device__ uint32_t sum_child_bit_fields(uint32_t v)
{
    return FIELD(v, 1) + FIELD(v, 2) + FIELD(v, 3) + FIELD(v, 4);
}

/* A leaf that will be written: that of the node itself, or of one of its
 * children. */
struct leaf_plan
{
    struct oj_near_units units;
    double cx, cy;
    struct oj_near_scale scale;
    uint32_t first, n, item_before;
};

/* Hashes by which duplicates in a list are found. */
struct list_keys
{
    uint32_t hash[OJ_CELLS_SHORT + 1];
    /* The highest byte of each hash, so that 16 hashes are compared at a time.
     */
    uint32_t first_byte[16];
    uint8_t end[OJ_CELLS_SHORT + 1];
};

/* Shared memory of a group. */
struct group_room
{
    float4 piece[OJ_CELLS_SHORT + 1]; /* ax ay dx dy */
    union
    {
        struct list_keys keys;
        /* in place of the keys: the leaf entries to write, each 64 * leaf +
         * position in the list */
        uint8_t item[4 * OJ_CELLS_SHORT + 4];
    };
    float bound[OJ_NEAR_CHILDREN];
    struct leaf_plan leaf[4];
};

/* The list of a group, as each of its eight threads holds it. */
struct group_list
{
    uint32_t n, lane;
    /* Four bits per entry of this thread: the children that need the entry. */
    uint32_t masks;
    uint32_t before; /* sums of the counters (FIELD()) of the threads before
                        this one */
    uint32_t total;  /* sums of the counters of the whole list */
};

/* Writes the header of a leaf and fills *leaf with what its entries need: the
 * scale of their coordinates and where they are written. */
static __device__ void write_leaf_header_and_scale(
    const struct oj_cells_round &r, const struct oj_near_frame &split,
    const struct oj_near_node &node, float bound, uint32_t first, uint32_t n,
    uint32_t items, struct leaf_plan *leaf)
{
    struct oj_near_frame frame =
        oj_near_frame_make(&r.square, node.ix, node.iy, node.level);
    leaf->scale = oj_near_scale_make(&frame, bound);
    leaf->units = oj_near_leaf_units_make(&split, &frame, &leaf->scale);
    leaf->cx = frame.cx;
    leaf->cy = frame.cy;
    leaf->first = first;
    leaf->n = n;
    leaf->item_before = items;
    write_leaf_header(r, node, first, n, leaf->scale.exponent);
}

/* Returns the piece whose members ax, ay, dx and dy are those of v; the other
 * members are computed from them. */
static __device__ struct oj_near_piece piece_from_four_floats(float4 v)
{
    struct oj_near_piece p;
    p.ax = v.x;
    p.ay = v.y;
    p.dx = v.z;
    p.dy = v.w;
    oj_near_complete_piece(&p);
    return p;
}

/* Writes all leaf entries that the group has listed. */
static __device__ void write_listed_leaf_entries(
    const struct oj_cells_round &r, const struct oj_near_node &node,
    const struct group_room *room, uint32_t lane, uint32_t n_items)
{
    for (uint32_t i = lane; i < n_items; i += LANES)
    {
        const struct leaf_plan *leaf = &room->leaf[room->item[i] / 64u];
        uint32_t place = room->item[i] % 64u, id = r.id[node.first + place];
        struct oj_near_piece p = piece_from_four_floats(room->piece[place]);
        struct oj_near_units units = leaf->units;
        uint64_t entry;
        if (!oj_near_entry_of_piece(&p, &units, &entry))
        {
            struct oj_near_frame frame;
            struct oj_near_scale scale = leaf->scale;
            frame.x0 = r.square.x0;
            frame.y0 = r.square.y0;
            frame.cx = leaf->cx;
            frame.cy = leaf->cy;
            entry =
                encode_clipped_segment(r, frame, scale, id & ~OJ_NEAR_SHARED);
        }
        write_entry_to_leaf(r, leaf->first, leaf->n, i - leaf->item_before, id,
                            entry);
    }
}

/* Appends, to the items of the group, the list entries that one of the children
 * in the mask `only` needs. They become entries of leaf c; the first one is
 * element `at`. */
static __device__ void list_leaf_entries_of_child(const struct group_list &list,
                                                  uint32_t only, uint32_t c,
                                                  uint32_t at,
                                                  struct group_room *room)
{
    uint32_t masks = list.masks;
    for (uint32_t i = list.lane; i < list.n; i += LANES, masks >>= 4)
    {
        if (masks & only)
            room->item[at++] = (uint8_t)(64u * c + i);
    }
}

/* Writes child c, behind the children before it. One lane calls it. */
static __device__ void write_split_child(const struct oj_cells_round &r,
                                         const struct oj_near_frame &frame,
                                         const struct oj_near_node &node,
                                         const struct requests *q, int group,
                                         const struct group_list &list,
                                         uint32_t c, struct group_room *room)
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
        word += leaf ? oj_near_words_of_leaf(m) : 0;
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
    child.stale =
        oj_near_count_unpaid_splits(&node, 2, sum_child_bit_fields(list.total));
    if (n <= r.leaf_size)
        write_leaf_header_and_scale(
            r, frame, child,
            2.0f *
                fmaxf(fmaxf(room->bound[corner], room->bound[corner + 1]),
                      fmaxf(room->bound[corner + 4], room->bound[corner + 5])),
            word, n, items, &room->leaf[c]);
    else
        r.next_node[0][next] = child;
}

static __device__ void write_split_children(const struct oj_cells_round &r,
                                            const struct oj_near_frame &frame,
                                            const struct oj_near_node &node,
                                            const struct requests *q, int group,
                                            const struct group_list &list,
                                            struct group_room *room)
{
    uint32_t id = q->first_id[group], items = 0;
    if (list.lane < 4)
        write_split_child(r, frame, node, q, group, list, list.lane, room);
    else if (list.lane == 4)
        write_node_header(r, node.header, q->first_header[group],
                          oj_near_inner_info(node.level + 1, 1));
    for (uint32_t c = 0; c < 4; c++)
    {
        uint32_t n = FIELD(list.total, c + 1), masks = list.masks;
        uint32_t to = id + FIELD(list.before, c + 1);
        if (n <= r.leaf_size)
        {
            list_leaf_entries_of_child(list, 1u << c, c,
                                       items + FIELD(list.before, c + 1), room);
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

/* Makes a leaf of the node. */
static __device__ void turn_node_into_leaf(const struct oj_cells_round &r,
                                           const struct oj_near_frame &frame,
                                           const struct oj_near_node &node,
                                           uint32_t first,
                                           const struct group_list &list,
                                           struct group_room *room)
{
    if (list.lane == 0)
    {
        float most = 0.0f;
        for (int i = 0; i < OJ_NEAR_CHILDREN; i++)
            most = fmaxf(most, room->bound[i]);
        write_leaf_header_and_scale(r, frame, node, most, first,
                                    FIELD(list.total, 0), 0, &room->leaf[0]);
    }
    list_leaf_entries_of_child(list, 15u, 0, FIELD(list.before, 0), room);
}

/* Sets bound [16], in shared memory, to the bounds of the sixteenths: the
 * minima of the 16 squared upper bounds v over the eight threads of a group,
 * and at most reach. Each thread stores two of them. */
static __device__ void min_upper_bounds_of_threads(float *v, uint32_t lane,
                                                   float reach, float *bound)
{
    exchange_halves_keeping_min<8>(v, lane, 4);
    exchange_halves_keeping_min<4>(v, lane, 2);
    exchange_halves_keeping_min<2>(v, lane, 1);
    bound[2 * lane] = oj_near_bound_of_sixteenth(v[0], reach);
    bound[2 * lane + 1] = oj_near_bound_of_sixteenth(v[1], reach);
}

static __device__ void compute_memory_request_of_group(
    const struct oj_cells_round &r, const struct oj_near_node &node,
    const struct group_list &list, struct requests *q, int group)
{
    uint32_t ids = 0, nodes = 0, words = 0;
    for (int c = 0; c < 4; c++)
    {
        uint32_t n = FIELD(list.total, c + 1);
        int leaf = n <= r.leaf_size;
        ids += leaf ? 0 : n;
        nodes += leaf ? 0 : 1;
        words += leaf ? oj_near_words_of_leaf(n) : 0;
    }
    q->leaf[group] =
        node.n == 0 ||
        oj_near_becomes_leaf(&r.square, &node, 2, FIELD(list.total, 0),
                             sum_child_bit_fields(list.total), r.leaf_size);
    q->ids[group] = ids;
    q->nodes[group] = nodes;
    q->words[group] = words;
    q->leaf_words[group] =
        node.n > 0 ? oj_near_words_of_leaf(FIELD(list.total, 0)) : 0;
}

/* Returns v with the top bit of each byte that is 0 set, and all other bits 0.
 * The top bit of the byte above a zero byte may be set wrongly. */
static __device__ uint32_t mark_zero_bytes(uint32_t v)
{
    return (v - 0x01010101u) & ~v & 0x80808080u;
}

/* Returns a mask for 16 entries: bit 8 k + 7 - w is set if entry first + 4 w +
 * k may have the hash `mine`. */
static __device__ uint32_t mask_of_equal_hash_bytes(
    const struct list_keys *keys, uint32_t first, uint32_t mine)
{
    uint4 four = *(const uint4 *)&keys->first_byte[first / 4];
    mine = (mine >> 24) * 0x01010101u;
    return mark_zero_bytes(four.x ^ mine) |
           mark_zero_bytes(four.y ^ mine) >> 1 |
           mark_zero_bytes(four.z ^ mine) >> 2 |
           mark_zero_bytes(four.w ^ mine) >> 3;
}

/* Returns 1 if entry i is dropped because another entry of the node's list
 * replaces it. With marks_ties, marks entry i if it replaces entries of other
 * features. Another thread may read the entry concurrently: it reads the marks
 * of earlier rounds and computes those of this round itself. */
static __device__ int
has_duplicate_kept_instead(const struct oj_cells_round &r,
                           const struct oj_near_node &node,
                           const struct list_keys *keys, uint32_t i)
{
    uint32_t mine = keys->hash[i], id = segment_id_at(r, node.first + i);
    int ties = 0;
    for (uint32_t first = 0; first < node.n; first += 16)
    {
        uint32_t like = mask_of_equal_hash_bytes(keys, first, mine);
        for (; like != 0; like &= like - 1)
        {
            uint32_t bit = (uint32_t)__ffs((int)like) - 1;
            uint32_t j = first + 4 * (7 - bit % 8) + bit / 8;
            enum oj_cells_comparison to;
            if (j == i || j >= node.n || keys->hash[j] != mine)
                continue;
            to = compare_segments_as_duplicates(
                r, segment_id_at(r, node.first + j), keys->end[j], id,
                keys->end[i]);
            if (to == OJ_CELLS_FIRST_KEPT)
                return 1;
            if (r.marks_ties && to == OJ_CELLS_SECOND_KEPT)
                ties |= is_duplicate_of_other_feature(r, r.rank[id],
                                                      r.id[node.first + j]);
        }
    }
    if (ties)
        r.id[node.first + i] |= OJ_NEAR_SHARED;
    return 0;
}

/* Stores the hash and the end of entry i. */
static __device__ void store_hash_of_segment(struct list_keys *keys, uint32_t i,
                                             int end,
                                             const struct oj_cuda_segment &s)
{
    struct oj_cuda_segment key = oj_near_key_of_segment(end, s);
    uint32_t hash = oj_near_hash(&key);
    keys->hash[i] = hash;
    ((uint8_t *)keys->first_byte)[i] = (uint8_t)(hash >> 24);
    keys->end[i] = (uint8_t)end;
}

static __global__ void __launch_bounds__(SHORT_BLOCK, SHORT_BLOCKS)
    split_short_lists(struct oj_cells_round r, unsigned long long n_nodes)
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
    frame = oj_near_frame_make(&r.square, node.ix, node.iy, node.level);
    {
        float upper2[OJ_NEAR_CHILDREN];
#pragma unroll
        for (int c = 0; c < OJ_NEAR_CHILDREN; c++)
            upper2[c] = INFINITY;
        for (uint32_t i = lane; i < node.n; i += LANES)
        {
            struct oj_cuda_segment s;
            uint32_t id = segment_id_at(r, node.first + i);
            struct oj_near_piece p = load_segment_as_piece(r, frame, id, &s);
            store_hash_of_segment(&room->keys, i, oj_near_nearest_end(&p), s);
            oj_near_lower_upper_bounds(&p, upper2);
            room->piece[i] = make_float4(p.ax, p.ay, p.dx, p.dy);
        }
        min_upper_bounds_of_threads(upper2, lane, frame.reach, room->bound);
    }
    __syncwarp();
    for (uint32_t i = lane, k = 0; i < node.n; i += LANES, k += 4)
    {
        struct oj_near_piece p = piece_from_four_floats(room->piece[i]);
        uint32_t quarters =
            oj_near_quarter_mask(oj_near_sixteenth_mask(&p, room->bound));
        if (quarters != 0 &&
            has_duplicate_kept_instead(r, node, &room->keys, i))
            quarters = 0;
        list.masks |= quarters << k;
        fields += spread_mask_to_bit_fields(quarters);
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
        compute_memory_request_of_group(r, node, list, &q, group);
    __syncthreads();
    if (threadIdx.x < 32)
        allocate_children_of_groups(r, &q, (int)threadIdx.x);
    __syncthreads();
    if (node.n > 0 && q.leaf[group] == 1)
    {
        turn_node_into_leaf(r, frame, node, q.first_word[group], list, room);
        n_items = FIELD(list.total, 0);
    }
    else if (node.n > 0 && q.leaf[group] == 0)
    {
        write_split_children(r, frame, node, &q, group, list, room);
        for (uint32_t c = 1; c <= 4; c++)
            n_items +=
                FIELD(list.total, c) <= r.leaf_size ? FIELD(list.total, c) : 0;
    }
    __syncwarp();
    write_listed_leaf_entries(r, node, room, lane, n_items);
}

#endif
