#include "cuda_far.h"

#include <string.h>

#define BLOCK 256
#define FULL_WARP 0xFFFFFFFFu

static __global__ void box_runs(int64_t n_runs, int64_t n,
                                const struct oj_cuda_segment *segment,
                                struct oj_run_box *run)
{
    int64_t r = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    struct oj_run_box box = oj_run_nothing();
    if (r >= n_runs)
        return;
    for (int64_t i = r * OJ_RUN_LENGTH; i < n && i < (r + 1) * OJ_RUN_LENGTH;
         i++)
        oj_run_add(&box, oj_run_of_segment(segment[i].ax, segment[i].ay,
                                           segment[i].bx, segment[i].by));
    run[r] = box;
}

static __global__ void box_spans(int64_t n_spans, int64_t n_runs,
                                 const struct oj_run_box *run,
                                 struct oj_run_box *span)
{
    int64_t s = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    struct oj_run_box box = oj_run_nothing();
    if (s >= n_spans)
        return;
    for (int64_t i = s * OJ_RUN_LENGTH;
         i < n_runs && i < (s + 1) * OJ_RUN_LENGTH; i++)
        oj_run_add(&box, run[i]);
    span[s] = box;
}

oj_status oj_cuda_far_build(struct oj_cuda_device *device,
                            const struct oj_cuda_layer *layer, double reach,
                            struct oj_cuda_far *out, struct oj_error *err)
{
    struct oj_cuda_far far = {};
    cudaStream_t stream = device->stream;
    oj_status status;
    far.n_runs = (layer->n_segments + OJ_RUN_LENGTH - 1) / OJ_RUN_LENGTH;
    far.n_spans = (far.n_runs + OJ_RUN_LENGTH - 1) / OJ_RUN_LENGTH;
    far.reach = reach;
    far.width = (layer->x1 - layer->x0) + (layer->y1 - layer->y0);
    status = oj_cuda_make(device, stream, far.n_runs, &far.run, err);
    if (status == OJ_OK)
        status = oj_cuda_make(device, stream, far.n_spans, &far.span, err);
    if (status == OJ_OK)
    {
        box_runs<<<oj_blocks(far.n_runs, BLOCK), BLOCK, 0, stream>>>(
            far.n_runs, layer->n_segments, layer->segment.data, far.run.data);
        box_spans<<<oj_blocks(far.n_spans, BLOCK), BLOCK, 0, stream>>>(
            far.n_spans, far.n_runs, far.run.data, far.span.data);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess)
            status = oj_cuda_fail(err, error, "boxing segments");
    }
    if (status != OJ_OK)
    {
        oj_cuda_far_drop(device, &far);
        return status;
    }
    *out = far;
    return OJ_OK;
}

void oj_cuda_far_drop(struct oj_cuda_device *device, struct oj_cuda_far *far)
{
    oj_cuda_drop(device, device->stream, &far->run, &far->span);
    memset(far, 0, sizeof *far);
}

int64_t oj_cuda_far_bytes(const struct oj_cuda_far *far)
{
    return oj_cuda_bytes(&far->run, &far->span);
}

/* What the warps read and write. */
struct far_batch
{
    int64_t n_segments, n_runs, n_spans, n;
    double reach, width;
    const struct oj_run_box *run, *span;
    const struct oj_cuda_segment *segment;
    const int32_t *rank, *ordinal_of;
    const double *x, *y;
    int32_t outside;
    int32_t *row;
    double *distance;
};

/* The best that a warp has found; the same in all lanes. */
struct warp_nearest
{
    double x, y;
    double distance, bound, extent;
    int32_t rank;
};

static __device__ double least_of_warp(double v)
{
    for (int step = 16; step > 0; step /= 2)
        v = fmin(v, __shfl_xor_sync(FULL_WARP, v, step));
    return v;
}

/* Lets the segments of a run compete. */
static __device__ void measure_run(const struct far_batch &b, int64_t run,
                                   struct warp_nearest *f)
{
    int64_t first = run * OJ_RUN_LENGTH + threadIdx.x % 32;
    double distance = f->distance;
    int32_t rank = f->rank;
    for (int64_t i = first; i < (run + 1) * OJ_RUN_LENGTH && i < b.n_segments;
         i += 32)
    {
        struct oj_cuda_segment s = b.segment[i];
        double d = oj_segment_distance(f->x, f->y, s.ax, s.ay, s.bx, s.by);
        int32_t r = b.rank[i];
        if (d < distance || (d == distance && (rank < 0 || r < rank)))
        {
            distance = d;
            rank = r;
        }
    }
    for (int step = 16; step > 0; step /= 2)
    {
        double d = __shfl_xor_sync(FULL_WARP, distance, step);
        int32_t r = __shfl_xor_sync(FULL_WARP, rank, step);
        if (d < distance || (d == distance && r >= 0 && (rank < 0 || r < rank)))
        {
            distance = d;
            rank = r;
        }
    }
    f->distance = distance;
    f->rank = rank;
    f->bound = fmin(f->bound, distance);
}

static __device__ void visit_span(const struct far_batch &b, int64_t span,
                                  struct warp_nearest *f)
{
    int64_t end = (span + 1) * OJ_RUN_LENGTH;
    for (int64_t base = span * OJ_RUN_LENGTH; base < end && base < b.n_runs;
         base += 32)
    {
        int64_t i = base + threadIdx.x % 32;
        double least =
            i < b.n_runs ? oj_run_least(&b.run[i], f->x, f->y) : INFINITY;
        double most =
            i < b.n_runs ? oj_run_most(&b.run[i], f->x, f->y) : INFINITY;
        uint32_t votes;
        f->bound = fmin(f->bound, least_of_warp(most));
        votes = __ballot_sync(FULL_WARP,
                              i < b.n_runs &&
                                  oj_run_may_win(least, f->bound, f->extent));
        for (; votes != 0; votes &= votes - 1)
        {
            int lane = __ffs((int)votes) - 1;
            double from = __shfl_sync(FULL_WARP, least, lane);
            if (oj_run_may_win(from, f->bound, f->extent))
                measure_run(b, base + lane, f);
        }
    }
}

static __device__ void find_far(const struct far_batch &b,
                                struct warp_nearest *f)
{
    double bound = b.reach;
    int lane = (int)(threadIdx.x % 32);
    for (int64_t i = lane; i < b.n_spans; i += 32)
        bound = fmin(bound, oj_run_most(&b.span[i], f->x, f->y));
    f->bound = least_of_warp(bound);
    for (int64_t base = 0; base < b.n_spans; base += 32)
    {
        int64_t i = base + lane;
        double least =
            i < b.n_spans ? oj_run_least(&b.span[i], f->x, f->y) : INFINITY;
        uint32_t votes = __ballot_sync(
            FULL_WARP,
            i < b.n_spans && oj_run_may_win(least, f->bound, f->extent));
        for (; votes != 0; votes &= votes - 1)
        {
            int which = __ffs((int)votes) - 1;
            double from = __shfl_sync(FULL_WARP, least, which);
            if (oj_run_may_win(from, f->bound, f->extent))
                visit_span(b, base + which, f);
        }
    }
}

static __global__ void __launch_bounds__(BLOCK) join_far(struct far_batch b)
{
    int64_t first = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) & ~31LL;
    int lane = (int)(threadIdx.x % 32);
    uint32_t votes = __ballot_sync(
        FULL_WARP, first + lane < b.n && b.row[first + lane] == b.outside);
    for (; votes != 0; votes &= votes - 1)
    {
        int64_t i = first + __ffs((int)votes) - 1;
        struct warp_nearest f;
        f.x = b.x[i];
        f.y = b.y[i];
        f.distance = INFINITY;
        f.rank = -1;
        if (isfinite(f.x) && isfinite(f.y))
        {
            f.extent = oj_run_most(&b.span[0], f.x, f.y) + b.width;
            find_far(b, &f);
        }
        if (!(f.distance <= b.reach))
            f.rank = -1;
        if (lane == 0)
        {
            b.row[i] = f.rank >= 0 && b.ordinal_of != NULL
                           ? b.ordinal_of[f.rank]
                           : f.rank;
            if (b.distance != NULL)
                b.distance[i] = f.rank >= 0 ? f.distance : NAN;
        }
    }
}

oj_status oj_cuda_far_join(const struct oj_cuda_far *far,
                           const struct oj_cuda_layer *layer,
                           cudaStream_t stream, int64_t n, const double *x,
                           const double *y, int32_t outside, int32_t *row,
                           double *distance, struct oj_error *err)
{
    struct far_batch b;
    b.n_segments = layer->n_segments;
    b.n_runs = far->n_runs;
    b.n_spans = far->n_spans;
    b.n = n;
    b.reach = far->reach;
    b.width = far->width;
    b.run = far->run.data;
    b.span = far->span.data;
    b.segment = layer->segment.data;
    b.rank = layer->segment_feature.data;
    b.ordinal_of = layer->ordinal_of.data;
    b.x = x;
    b.y = y;
    b.outside = outside;
    b.row = row;
    b.distance = distance;
    join_far<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(b);
    OJ_CUDA_TRY_LAUNCH("joining points far away", err);
    return OJ_OK;
}
