/* Points of quadrants against all segments of their features: a block for each
 * few pairs of a quadrant, segments in shared memory. What blocks of the same
 * quadrant find is put together under its lock by (distance, rank), so their
 * order does not show. */
#include "../device/cuda_offsets.cuh"
#include "cuda_quadrant.h"

#define BLOCK OJ_CUDA_QUADRANT_BLOCK
#define TASK OJ_CUDA_QUADRANT_TASK
#define WARP 32

/* What a block has of its pairs. */
struct pairs_of_block
{
    int32_t feature[TASK];
    int32_t first[TASK];
    int64_t place[TASK + 1]; /* segments before each, and all */
    struct oj_quadrant_box box[TASK];
};

/* Segments that a block looks at together. */
struct tile
{
    struct oj_cuda_segment segment[BLOCK];
    uint8_t flag[BLOCK];
};

static __device__ void load_pairs(const struct oj_cuda_quadrant_chunk *c,
                                  const int32_t *feature, int n,
                                  struct pairs_of_block *p)
{
    const int32_t *first = c->grid.first.data;
    int i = (int)threadIdx.x;
    if (i < n)
    {
        p->feature[i] = feature[i];
        p->first[i] = first[feature[i]];
        p->box[i] = c->grid.box.data[feature[i]];
        p->place[i + 1] = first[feature[i] + 1] - first[feature[i]];
    }
    __syncthreads();
    if (i == 0)
    {
        p->place[0] = 0;
        for (int k = 0; k < n; k++)
            p->place[k + 1] += p->place[k];
    }
    __syncthreads();
}

/* Segment at, of all of the block's pairs, to this thread's place. */
template <int INTERIOR>
static __device__ void load_segment(const struct oj_cuda_quadrant_chunk *c,
                                    const struct pairs_of_block *p, int n,
                                    int64_t at, struct tile *tile)
{
    int pair;
    int64_t s;
    if (at >= p->place[n])
        return;
    pair = oj_cuda_owner_of(p->place, 0, n, at);
    s = p->first[pair] + (at - p->place[pair]);
    tile->segment[threadIdx.x] = c->layer.segment.data[s];
    tile->flag[threadIdx.x] = INTERIOR ? c->grid.flag.data[s] : 0;
}

/* A point on its way along the segments of a block's pairs. */
struct quadrant_walk
{
    double x, y;
    struct oj_quadrant_box window;
    struct oj_quadrant_state state;
    struct oj_quadrant_best best;
    int is_there, in_reach;
    unsigned n_met;
};

/* The segments from, up to end, of the tile are pair i's next. */
template <int INTERIOR>
static __device__ void walk_on(const struct tile *tile, int from, int end,
                               struct quadrant_walk *w)
{
    for (int s = from; s < end; s++)
    {
        const struct oj_cuda_segment *e = &tile->segment[s];
        oj_quadrant_step(&w->state, w->x, w->y, e->ax, e->ay, e->bx, e->by,
                         INTERIOR, INTERIOR ? tile->flag[s] : 0);
    }
}

/* All pairs of the block for one point each; every thread comes along. */
template <int INTERIOR>
static __device__ void walk_all(const struct oj_cuda_quadrant_chunk *c,
                                const struct pairs_of_block *p, int n,
                                struct tile *tile, struct quadrant_walk *w)
{
    int i = 0;
    w->in_reach = 0;
    for (int64_t at = 0; at < p->place[n]; at += BLOCK)
    {
        load_segment<INTERIOR>(c, p, n, at + threadIdx.x, tile);
        __syncthreads();
        while (i < n && p->place[i] < at + BLOCK)
        {
            int64_t from = p->place[i] - at, end = p->place[i + 1] - at;
            if (from >= 0 && w->is_there)
            {
                w->in_reach = oj_quadrant_boxes_meet(&w->window, &p->box[i]);
                w->n_met += (unsigned)w->in_reach;
                oj_quadrant_start(&w->state);
            }
            if (w->in_reach)
                walk_on<INTERIOR>(tile, from > 0 ? (int)from : 0,
                                  end < BLOCK ? (int)end : BLOCK, w);
            if (end > BLOCK)
                break;
            if (w->in_reach)
                oj_quadrant_take(&w->best, oj_quadrant_distance(&w->state),
                                 p->feature[i], c->grid.reach);
            i++;
        }
        __syncthreads();
    }
}

/* Blocks of a quadrant do this one after the other. */
static __device__ void put_together(const struct oj_cuda_quadrant_chunk *c,
                                    int64_t q, int alone, int64_t point,
                                    const struct quadrant_walk *w)
{
    double *distance = &c->answers.distance.data[point];
    int32_t *rank = &c->answers.rank.data[point];
    int32_t *lock = &c->answers.lock.data[q];
    struct oj_quadrant_best best;
    if (!alone)
    {
        if (threadIdx.x == 0)
        {
            while (atomicCAS(lock, 0, 1) != 0)
                ;
            __threadfence();
        }
        __syncthreads();
    }
    if (w->is_there && w->best.rank != INT32_MAX)
    {
        best.distance = __ldcg(distance);
        best.rank = __ldcg(rank);
        oj_quadrant_take(&best, w->best.distance, w->best.rank, c->grid.reach);
        __stcg(distance, best.distance);
        __stcg(rank, best.rank);
    }
    if (!alone)
    {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            atomicExch(lock, 0);
    }
}

static __device__ void start_walk(const struct oj_cuda_quadrant_chunk *c,
                                  int64_t point, int is_there,
                                  struct quadrant_walk *w)
{
    struct oj_quadrant_box at;
    w->is_there = is_there;
    w->best.distance = INFINITY;
    w->best.rank = INT32_MAX;
    w->n_met = 0;
    if (!is_there)
        return;
    w->x = c->quadrants.x.data[point];
    w->y = c->quadrants.y.data[point];
    at.x0 = at.x1 = w->x;
    at.y0 = at.y1 = w->y;
    w->window = oj_quadrant_box_around(&at, c->grid.reach);
}

template <int INTERIOR>
static __global__ void __launch_bounds__(BLOCK)
    refine(const __grid_constant__ struct oj_cuda_quadrant_chunk c)
{
    __shared__ struct pairs_of_block pairs;
    __shared__ struct tile tile;
    const int64_t *task = c.pairs.task.data, *offset = c.pairs.offset.data;
    const int32_t *first_point = c.quadrants.first.data;
    struct quadrant_walk w;
    int64_t t = task[c.slice.first] + blockIdx.x;
    int64_t q = oj_cuda_owner_of(task, c.slice.first, c.slice.end, t);
    int64_t first = offset[q] + (t - task[q]) * TASK;
    int64_t left = offset[q + 1] - first;
    int n = left < TASK ? (int)left : TASK;
    int alone = task[q + 1] - task[q] == 1;
    unsigned n_met = 0;
    load_pairs(&c, c.pairs.feature.data + (first - offset[c.slice.first]), n,
               &pairs);
    for (int64_t p = first_point[q]; p < first_point[q + 1]; p += BLOCK)
    {
        int64_t point = p + threadIdx.x;
        start_walk(&c, point, point < first_point[q + 1], &w);
        walk_all<INTERIOR>(&c, &pairs, n, &tile, &w);
        put_together(&c, q, alone, point, &w);
        n_met += w.n_met;
    }
    for (int step = WARP / 2; step > 0; step /= 2)
        n_met += __shfl_xor_sync(~0u, n_met, step);
    if (threadIdx.x % WARP == 0 && n_met > 0)
        atomicAdd(c.answers.n_met.data, (unsigned long long)n_met);
}

static __global__ void start_answers(int64_t n, double *distance, int32_t *rank)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    distance[i] = INFINITY;
    rank[i] = INT32_MAX;
}

oj_status oj_cuda_quadrant_answers_make(struct oj_cuda_device *device,
                                        struct oj_cuda_quadrant_chunk *c,
                                        struct oj_error *err)
{
    struct oj_cuda_quadrant_answers *a = &c->answers;
    cudaStream_t stream = device->stream;
    int64_t n = c->quadrants.n_points;
    OJ_TRY(oj_cuda_make(device, stream, n, &a->distance, &a->rank, err));
    OJ_TRY(oj_cuda_make(device, stream, c->quadrants.n, &a->lock, err));
    OJ_TRY(oj_cuda_make(device, stream, 1, &a->n_met, err));
    OJ_TRY(oj_cuda_clear(stream, &a->n_met, "starting answers", err));
    OJ_TRY(oj_cuda_clear(stream, &a->lock, "starting answers", err));
    if (n == 0)
        return OJ_OK;
    start_answers<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        n, a->distance.data, a->rank.data);
    OJ_CUDA_TRY_LAUNCH("starting answers", err);
    return OJ_OK;
}

oj_status oj_cuda_quadrant_refine(struct oj_cuda_device *device,
                                  const struct oj_cuda_quadrant_chunk *c,
                                  struct oj_error *err)
{
    unsigned n_blocks = (unsigned)c->slice.n_tasks;
    if (n_blocks == 0)
        return OJ_OK;
    if (c->interior && c->grid.flag.n > 0)
        refine<1><<<n_blocks, BLOCK, 0, device->stream>>>(*c);
    else
        refine<0><<<n_blocks, BLOCK, 0, device->stream>>>(*c);
    OJ_CUDA_TRY_LAUNCH("measuring distances", err);
    return OJ_OK;
}

static __global__ void clear_rows(int64_t n, int32_t *row, double *measure)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    row[i] = -1;
    measure[i] = NAN;
}

static __global__ void
answer_rows(const __grid_constant__ struct oj_cuda_quadrant_chunk c)
{
    int64_t p = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    const int32_t *ordinal_of = c.layer.ordinal_of.data;
    int32_t best;
    uint32_t row;
    if (p >= c.quadrants.n_points || c.answers.rank.data[p] == INT32_MAX)
        return;
    best = c.answers.rank.data[p];
    row = c.quadrants.row.data[p];
    c.row.data[row] = ordinal_of != NULL ? ordinal_of[best] : best;
    c.measure.data[row] = c.answers.distance.data[p];
}

oj_status oj_cuda_quadrant_answer(struct oj_cuda_device *device,
                                  const struct oj_cuda_quadrant_chunk *c,
                                  struct oj_error *err)
{
    cudaStream_t stream = device->stream;
    int64_t n = c->quadrants.n_points;
    clear_rows<<<oj_blocks(c->n, BLOCK), BLOCK, 0, stream>>>(c->n, c->row.data,
                                                             c->measure.data);
    if (n > 0)
        answer_rows<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(*c);
    OJ_CUDA_TRY_LAUNCH("answering", err);
    return OJ_OK;
}
