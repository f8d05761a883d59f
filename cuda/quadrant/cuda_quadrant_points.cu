/* Points in quadrants: codes, sort, squares split level by level. */
#include "../device/cuda_scratch.cuh"
#include "cuda_quadrant.h"

#define BLOCK 256
#define WARP 32

/* The box of points, and how many are there. */
struct point_extent
{
    struct oj_quadrant_box box;
    int64_t n;
};

struct extent_of_point
{
    const double *x, *y;

    __device__ struct point_extent operator()(ptrdiff_t i) const
    {
        struct point_extent e = {oj_quadrant_box_empty(), x[i] == x[i]};
        oj_quadrant_box_add(&e.box, x[i], y[i]);
        return e;
    }
};

/* A square with too many points: those of places first .. end - 1. */
struct square
{
    int32_t first, end;
};

struct quadrants_build
{
    struct oj_cuda_device *device;
    int64_t n, size;
    const double *x, *y;
    struct oj_cuda_quadrants *out;
    struct oj_cuda_array<uint64_t> code;
    struct oj_cuda_sorting<uint64_t, uint32_t> rows; /* by code */
    struct oj_cuda_array<uint8_t> scratch;
    struct oj_cuda_array<struct square> open, next;
    struct oj_cuda_array<unsigned long long> n_next; /* [1] */
    struct oj_cuda_array<int32_t> place; /* [n + 1] 1: a quadrant begins */
    struct oj_error *err;
};

static __device__ void join_boxes(struct oj_quadrant_box *a,
                                  const struct oj_quadrant_box *b)
{
    a->x0 = fmin(a->x0, b->x0);
    a->y0 = fmin(a->y0, b->y0);
    a->x1 = fmax(a->x1, b->x1);
    a->y1 = fmax(a->y1, b->y1);
}

struct join_point_extents
{
    __device__ struct point_extent
    operator()(struct point_extent a, const struct point_extent &b) const
    {
        join_boxes(&a.box, &b.box);
        a.n += b.n;
        return a;
    }
};

static __global__ void make_codes(int64_t n, const double *x, const double *y,
                                  struct oj_quadrant_box frame, uint64_t *code,
                                  uint32_t *row)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    code[i] = oj_quadrant_code(x[i], y[i], &frame);
    row[i] = (uint32_t)i;
}

/* Points with the same code keep their order. */
static oj_status sort(struct quadrants_build *m,
                      const struct point_extent *frame)
{
    cudaStream_t stream = m->device->stream;
    OJ_TRY(oj_cuda_sorting_make(m->device, stream, m->n, &m->rows, m->err));
    make_codes<<<oj_blocks(m->n, BLOCK), BLOCK, 0, stream>>>(
        m->n, m->x, m->y, frame->box, m->rows.key[0].data,
        m->rows.value[0].data);
    OJ_CUDA_TRY_LAUNCH("coding the points", m->err);
    OJ_TRY(oj_cuda_sort(m->device, stream, OJ_QUADRANT_CODE_BITS,
                        "sorting the points", &m->rows, m->err));
    oj_cuda_swap(&m->code, &m->rows.key[0]);
    oj_cuda_swap(&m->out->row, &m->rows.value[0]);
    oj_cuda_sorting_drop(m->device, stream, &m->rows);
    return OJ_OK;
}

static __global__ void gather(int64_t n, const uint32_t *row, const double *x,
                              const double *y, double *to_x, double *to_y)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    to_x[i] = x[row[i]];
    to_y[i] = y[row[i]];
}

static oj_status reorder(struct quadrants_build *m)
{
    struct oj_cuda_quadrants *out = m->out;
    cudaStream_t stream = m->device->stream;
    OJ_TRY(oj_cuda_make(m->device, stream, out->n_points, &out->x, &out->y,
                        m->err));
    gather<<<oj_blocks(out->n_points, BLOCK), BLOCK, 0, stream>>>(
        out->n_points, out->row.data, m->x, m->y, out->x.data, out->y.data);
    OJ_CUDA_TRY_LAUNCH("ordering the points", m->err);
    return OJ_OK;
}

/* The children of squares: those with too many points are split further, the
 * first place of each other is marked.  The order of open squares is any. */
static __global__ void split(int64_t n, const struct square *open,
                             const uint64_t *code, int low_bits, int64_t size,
                             int32_t *place, struct square *next,
                             unsigned long long *n_next)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t first, end;
    if (i >= n)
        return;
    first = open[i].first;
    end = open[i].end;
    while (first < end)
    {
        int64_t stop = oj_quadrant_square_end(code, first, end, low_bits);
        if (stop - first > size && low_bits > 0)
        {
            struct square s = {(int32_t)first, (int32_t)stop};
            next[atomicAdd(n_next, 1ull)] = s;
        }
        else
        {
            /* codes tell no more: runs of at most size */
            for (int64_t p = first; p < stop; p += size)
                place[p] = 1;
        }
        first = stop;
    }
}

/* Marks the first place of each quadrant. Open squares have more than size
 * points each, which bounds their number. */
static oj_status split_all(struct quadrants_build *m)
{
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    int64_t n = m->out->n_points, n_open = n > m->size;
    int64_t most = n / (m->size + 1) + 1;
    struct square root = {0, (int32_t)n};
    int32_t one = 1;
    OJ_TRY(oj_cuda_make(device, stream, n + 1, &m->place, m->err));
    OJ_TRY(oj_cuda_make(device, stream, most, &m->open, &m->next, m->err));
    OJ_TRY(oj_cuda_make(device, stream, 1, &m->n_next, m->err));
    OJ_TRY(oj_cuda_clear(stream, &m->place, "splitting squares", m->err));
    OJ_CUDA_TRY(cudaMemcpyAsync(m->place.data, &one, sizeof one,
                                cudaMemcpyHostToDevice, stream),
                "splitting squares", m->err);
    OJ_CUDA_TRY(cudaMemcpyAsync(m->open.data, &root, sizeof root,
                                cudaMemcpyHostToDevice, stream),
                "splitting squares", m->err);
    for (int low_bits = OJ_QUADRANT_CODE_BITS - 2; n_open > 0; low_bits -= 2)
    {
        OJ_TRY(oj_cuda_clear(stream, &m->n_next, "splitting squares", m->err));
        split<<<oj_blocks(n_open, BLOCK), BLOCK, 0, stream>>>(
            n_open, m->open.data, m->code.data, low_bits, m->size,
            m->place.data, m->next.data, m->n_next.data);
        OJ_CUDA_TRY_LAUNCH("splitting squares", m->err);
        OJ_TRY(oj_cuda_read(stream, m->n_next.data, (int)sizeof n_open, &n_open,
                            "splitting squares", m->err));
        oj_cuda_swap(&m->open, &m->next);
    }
    return OJ_OK;
}

/* number: quadrants before each place. */
static __global__ void list_first(int64_t n, const int32_t *number,
                                  int32_t *first)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i > n)
        return;
    if (i == n || number[i + 1] != number[i])
        first[number[i]] = (int32_t)i;
}

/* A warp for each quadrant. */
static __global__ void make_windows(int64_t n, const int32_t *first,
                                    const double *x, const double *y,
                                    struct oj_quadrant_box *window)
{
    int64_t q = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    struct oj_quadrant_box box = oj_quadrant_box_empty(), other;
    if (q >= n)
        return;
    for (int p = first[q] + (int)threadIdx.x % WARP; p < first[q + 1];
         p += WARP)
        oj_quadrant_box_add(&box, x[p], y[p]);
    for (int step = WARP / 2; step > 0; step /= 2)
    {
        other.x0 = __shfl_xor_sync(~0u, box.x0, step);
        other.y0 = __shfl_xor_sync(~0u, box.y0, step);
        other.x1 = __shfl_xor_sync(~0u, box.x1, step);
        other.y1 = __shfl_xor_sync(~0u, box.y1, step);
        join_boxes(&box, &other);
    }
    if (threadIdx.x % WARP == 0)
        window[q] = oj_quadrant_box_around(&box, 0.0);
}

static oj_status list_quadrants(struct quadrants_build *m)
{
    struct oj_cuda_quadrants *out = m->out;
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    int32_t n_quadrants = 0;
    OJ_TRY(oj_cuda_scan_total(device, stream, &m->scratch, m->place.data,
                              out->n_points, &n_quadrants, "listing quadrants",
                              m->err));
    out->n = n_quadrants;
    OJ_TRY(oj_cuda_make(device, stream, out->n + 1, &out->first, m->err));
    OJ_TRY(oj_cuda_make(device, stream, out->n, &out->window, m->err));
    list_first<<<oj_blocks(out->n_points + 1, BLOCK), BLOCK, 0, stream>>>(
        out->n_points, m->place.data, out->first.data);
    make_windows<<<oj_blocks(out->n * WARP, BLOCK), BLOCK, 0, stream>>>(
        out->n, out->first.data, out->x.data, out->y.data, out->window.data);
    OJ_CUDA_TRY_LAUNCH("listing quadrants", m->err);
    return OJ_OK;
}

static oj_status make_all(struct quadrants_build *m)
{
    struct point_extent frame = {oj_quadrant_box_empty(), 0};
    struct extent_of_point points = {m->x, m->y};
    if (m->n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_reduce(m->device, points, m->n, join_point_extents(), &frame,
                          "measuring the points", m->err));
    m->out->n_points = frame.n;
    if (frame.n == 0)
        return OJ_OK;
    OJ_TRY(sort(m, &frame));
    OJ_TRY(reorder(m));
    OJ_TRY(split_all(m));
    return list_quadrants(m);
}

oj_status oj_cuda_quadrants_make(struct oj_cuda_device *device, int64_t size,
                                 struct oj_cuda_quadrant_chunk *c,
                                 struct oj_error *err)
{
    struct quadrants_build m = {};
    oj_status status;
    m.device = device;
    m.n = c->n;
    m.size = size < c->n ? size : c->n;
    m.x = c->x.data;
    m.y = c->y.data;
    m.out = &c->quadrants;
    m.err = err;
    status = make_all(&m);
    oj_cuda_drop(device, device->stream, &m.code, &m.scratch, &m.open, &m.next,
                 &m.n_next, &m.place);
    oj_cuda_sorting_drop(device, device->stream, &m.rows);
    return status;
}
