/** Locates points in the tree of cells over rings. For most points a single bit
 * states that they are in no polygon; cells or short edges decide most others.
 * The few that remain are decided by the original edges, in a second pass. */
#ifndef CUDA_POINTS_IN_RINGS_QUERY_CUH
#define CUDA_POINTS_IN_RINGS_QUERY_CUH

#include "../../foundations/device/cuda_stream_work.cuh"
#include "../../foundations/index/cuda_family.h"
#include "../../foundations/rings/cuda_ring_cells.h"

#define BLOCK 256
#define LANES 32
#define ALL_LANES 0xffffffffu

/* Number of points per thread, and per warp: rounds of 32 consecutive points.
 */
#define ROUNDS 4
#define CHUNK (LANES * ROUNDS)

/* Blocks per multiprocessor: more blocks hide more latency of memory, but have
 * fewer registers. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ == 750
#define RESIDENT 4 /* maximum for the number of threads of an sm_75 */
#else
#define RESIDENT 6
#endif

/* Number of points that are processed at a time (a slice): the array of unsure
 * points has room for all of them. */
#define SLICE ((int64_t)CHUNK << 19)

/* A point that short edges cannot decide, and the record with which to
 * continue. The second pass, which needs more registers, decides it. */
struct doubt
{
    uint32_t point, record;
};

struct points_in_rings_query
{
    struct oj_ring_tree tree;
    unsigned accepted;
    int64_t n; /* number of points of the slice */
    const double *x, *y;
    const int32_t *ordinal_of;
    struct doubt *doubt;
    unsigned *n_doubts;
};

static __device__ __forceinline__ int32_t
ordinal_of_rank(const int32_t *ordinal_of, int32_t rank)
{
    return ordinal_of != NULL && rank >= 0 ? ordinal_of[rank] : rank;
}

static __device__ __forceinline__ unsigned lane_in_warp(void)
{
    return threadIdx.x % LANES;
}

static __device__ __forceinline__ int64_t warp_in_grid(void)
{
    return (int64_t)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
}

/* Returns the rank of the next feature at an accepted location, OJ_RING_NONE if
 * there is none, or OJ_RING_UNSURE if the short edges cannot decide. */
static __device__ __forceinline__ int32_t next_rank_or_unsure(
    const struct points_in_rings_query &q, struct oj_ring_place *place)
{
    uint32_t unit, end;
    while (place->at < place->end)
    {
        int at =
            oj_ring_tree_locate_by_short_edges(&q.tree, place, &unit, &end);
        if (at == OJ_RING_UNSURE)
            return OJ_RING_UNSURE;
        if (q.accepted >> at & 1u)
            return (int32_t)unit;
    }
    return OJ_RING_NONE;
}

/* Returns the rank of the next feature at an accepted location, or OJ_RING_NONE
 * if there is none. The original edges decide where the short ones cannot. */
static __device__ __forceinline__ int32_t
next_rank_exactly(const struct points_in_rings_query &q, double x, double y,
                  struct oj_ring_place *place)
{
    uint32_t unit;
    while (place->at < place->end)
    {
        enum oj_location at =
            oj_ring_tree_locate_in_next_unit(&q.tree, place, x, y, &unit);
        if (q.accepted >> at & 1u)
            return (int32_t)unit;
    }
    return OJ_RING_NONE;
}

static __device__ __forceinline__ void
append_doubtful_point(const struct points_in_rings_query &q, int64_t i,
                      uint32_t record)
{
    struct doubt d = {(uint32_t)i, record};
    q.doubt[atomicAdd(q.n_doubts, 1u)] = d;
}

/* Locates a chunk of points by a warp. A point is dropped if the bit of its
 * sixteenth (`occupied`) states that it is in no polygon. The other points are
 * collected and processed by full warps: answer.accept_decided_point(q, i,
 * rank) if their cells decide (rank OJ_RING_NONE: no match), otherwise
 * answer.test_leaf_records(q, i, place). All lanes call both, with i < 0 if the
 * lane has no such point. With keeps, coordinates are read past the caches and
 * kept in shared memory, which is faster if much is written. */
template <bool keeps = false, typename answer_t>
static __device__ __forceinline__ void
locate_chunk_of_points(const struct points_in_rings_query &q, int64_t chunk,
                       answer_t &&answer)
{
    __shared__ uint8_t waiting[BLOCK / LANES][CHUNK];
    __shared__ double waiting_x[BLOCK / LANES][keeps ? CHUNK : 1];
    __shared__ double waiting_y[BLOCK / LANES][keeps ? CHUNK : 1];
    unsigned warp = threadIdx.x / LANES, lane = lane_in_warp();
    unsigned n_waiting = 0, occupied[ROUNDS];
    double px[ROUNDS], py[ROUNDS];
    int64_t first = chunk * CHUNK;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
    {
        int64_t i = first + r * LANES + lane;
        uint32_t x, y;
        occupied[r] = 0;
        if (i >= q.n)
            continue;
        px[r] = keeps ? __ldcs(&q.x[i]) : q.x[i];
        py[r] = keeps ? __ldcs(&q.y[i]) : q.y[i];
        if (oj_ring_tree_point_to_steps(&q.tree, px[r], py[r], &x, &y))
            occupied[r] = oj_ring_tree_is_occupied(&q.tree, x, y);
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
    {
        unsigned all = __ballot_sync(ALL_LANES, occupied[r]);
        unsigned at = n_waiting + (unsigned)__popc(all & ((1u << lane) - 1u));
        if (occupied[r])
            waiting[warp][at] = (uint8_t)(r * LANES + lane);
        if (keeps && occupied[r])
        {
            waiting_x[warp][at] = px[r];
            waiting_y[warp][at] = py[r];
        }
        n_waiting += (unsigned)__popc(all);
    }
    __syncwarp();
    for (unsigned at = lane; at - lane < n_waiting; at += LANES)
    {
        struct oj_ring_place place;
        int64_t i = -1;
        int32_t found = OJ_RING_NONE;
        place.at = place.end = 0;
        if (at < n_waiting)
        {
            double its_x, its_y;
            uint32_t x, y;
            i = first + waiting[warp][at];
            its_x = keeps ? waiting_x[warp][at] : q.x[i];
            its_y = keeps ? waiting_y[warp][at] : q.y[i];
            oj_ring_tree_point_to_steps(&q.tree, its_x, its_y, &x, &y);
            found = oj_ring_tree_decide_by_cells(&q.tree, its_x, its_y, x, y,
                                                 &place);
        }
        answer.accept_decided_point(q, found != OJ_RING_ASK ? i : -1,
                                    found >= 0 && (q.accepted >> OJ_INSIDE & 1u)
                                        ? found
                                        : OJ_RING_NONE);
        answer.test_leaf_records(q, found == OJ_RING_ASK ? i : -1, &place);
    }
    __syncwarp();
}

/* Returns shared memory for the ranks of a warp's chunk, set to OJ_RING_NONE.
 * The caller stores them contiguously when all are known. */
static __device__ __forceinline__ int32_t *shared_ranks_of_chunk(void)
{
    __shared__ int32_t ranks[BLOCK / LANES][CHUNK];
    int32_t *mine = ranks[threadIdx.x / LANES];
#pragma unroll
    for (int r = 0; r < ROUNDS; r++)
        mine[r * LANES + lane_in_warp()] = OJ_RING_NONE;
    __syncwarp();
    return mine;
}

/* Decides the unsure points of a slice by the original edges: calls
 * answer.resolve_doubtful_points(q, i, x, y, place). */
template <typename answer_t>
static __global__ void locate_doubtful_points_exactly(
    const __grid_constant__ struct points_in_rings_query q,
    const __grid_constant__ answer_t answer)
{
    unsigned n = *q.n_doubts;
    for (unsigned d = blockIdx.x * BLOCK + threadIdx.x; d < n;
         d += gridDim.x * BLOCK)
    {
        int64_t i = q.doubt[d].point;
        double x = q.x[i], y = q.y[i];
        struct oj_ring_place place;
        oj_ring_tree_find(&q.tree, x, y, &place);
        place.at = q.doubt[d].record;
        answer.resolve_doubtful_points(q, i, x, y, &place);
    }
}

static inline int64_t count_chunks(int64_t n)
{
    return (n + CHUNK - 1) / CHUNK;
}

static inline unsigned blocks_needed_for_chunks(int64_t n_chunks)
{
    return oj_cuda_count_blocks(n_chunks * LANES, BLOCK);
}

/* Returns the query of all points. `accepted` holds the locations that match,
 * as bits 1 << enum oj_location. */
static inline struct points_in_rings_query
make_points_in_rings_query(const struct oj_ring_tree &tree, unsigned accepted,
                           const struct oj_cuda_points *points)
{
    struct points_in_rings_query q = {};
    q.tree = tree;
    q.accepted = accepted;
    q.n = points->n;
    q.x = points->x;
    q.y = points->y;
    return q;
}

/* Returns the query of the slice that begins with point `first`. */
static inline struct points_in_rings_query
view_query_slice(const struct points_in_rings_query &all, int64_t first)
{
    struct points_in_rings_query q = all;
    q.n = all.n - first < SLICE ? all.n - first : SLICE;
    q.x += first;
    q.y += first;
    return q;
}

/* Allocates the arrays for unsure points. */
static inline oj_status
allocate_doubtful_points(struct oj_cuda_work *work,
                         struct points_in_rings_query *q)
{
    OJ_TRY(work->make(q->n < SLICE ? q->n : SLICE, &q->doubt));
    return work->make(1, &q->n_doubts);
}

/* Runs the second pass for the unsure points, which are usually few. */
template <typename answer_t>
static oj_status resolve_doubtful_points(struct oj_cuda_work *work,
                                         const struct points_in_rings_query &q,
                                         const answer_t &answer)
{
    return work->launch_blocks<BLOCK>(2 * (unsigned)work->device->n_processors,
                                      locate_doubtful_points_exactly<answer_t>,
                                      q, answer);
}

/* Runs slice(q, first) for each slice of points, with q.n_doubts set to 0. */
template <typename Slice>
static oj_status
run_for_each_slice_of_points(struct oj_cuda_work *work,
                             const struct points_in_rings_query *all,
                             Slice slice)
{
    for (int64_t first = 0; first < all->n; first += SLICE)
    {
        struct points_in_rings_query q = view_query_slice(*all, first);
        OJ_TRY(work->clear(q.n_doubts, 1));
        OJ_TRY(slice(q, first));
    }
    return OJ_OK;
}

/* Like run_for_each_slice_of_points(), but first allocates the arrays for
 * unsure points. */
template <typename Slice>
static oj_status run_for_slices_with_doubts(struct oj_cuda_work *work,
                                            struct points_in_rings_query q,
                                            Slice slice)
{
    struct oj_cuda_work own(work);
    OJ_TRY(allocate_doubtful_points(&own, &q));
    return run_for_each_slice_of_points(&own, &q, slice);
}

#endif
