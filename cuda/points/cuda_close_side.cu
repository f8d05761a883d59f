#include "cuda_close_side.h"

#include "../device/cuda_scratch.cuh"

#include <string.h>

#define BLOCK 256

/* --- sorting by place ----------------------------------------------------- */

static int bits_of_places(const struct oj_close_side *side)
{
    int bits = side->column_bits;
    for (uint32_t mask = side->row_mask; mask != 0; mask >>= 1)
        bits++;
    return bits;
}

/* --- the join side -------------------------------------------------------- */

/* A feature that is a point is a segment without length. */
static __global__ void
find_places(const __grid_constant__ struct oj_close_side side,
            const struct oj_cuda_segment *segment, uint32_t *place,
            int32_t *order)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= side.n)
        return;
    place[i] = oj_close_place_of(&side, segment[i].ax, segment[i].ay);
    order[i] = (int32_t)i;
}

/* Columns that the layer has not are not asked for. */
static __global__ void
gather_entries(const __grid_constant__ struct oj_cuda_layer layer,
               const int32_t *order,
               const __grid_constant__ struct oj_cuda_close_side to)
{
    const struct oj_cuda_columns &from = layer.columns;
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int32_t r;
    if (i >= to.side.n)
        return;
    to.entry.data[i].x = layer.segment.data[order[i]].ax;
    to.entry.data[i].y = layer.segment.data[order[i]].ay;
    to.rank.data[i] = r = layer.segment_feature.data[order[i]];
    if (from.fid.data != NULL)
        to.columns.fid.data[i] = from.fid.data[r];
    if (from.on_class.data != NULL)
        to.columns.on_class.data[i] = from.on_class.data[r];
    if (from.exclude_class.data != NULL)
        to.columns.exclude_class.data[i] = from.exclude_class.data[r];
}

/* The end of the entries of each place that has some; the others are 0. */
static __global__ void mark_ends(int64_t n, const uint32_t *place,
                                 uint32_t *start)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n && (i + 1 == n || place[i + 1] != place[i]))
        start[(int64_t)place[i] + 1] = (uint32_t)i + 1;
}

struct greatest
{
    __device__ uint32_t operator()(uint32_t a, uint32_t b) const
    {
        return a > b ? a : b;
    }
};

struct close_side_build
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_cuda_sorting<uint32_t, int32_t> sorting; /* by place */
    struct oj_cuda_close_side *made;
    struct oj_error *err;
};

/* An end counts until the next one. */
static oj_status make_starts(struct close_side_build *m)
{
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    struct oj_cuda_array<uint32_t> *start = &m->made->start;
    int64_t n = oj_close_n_places(&m->made->side) + 1;
    OJ_TRY(oj_cuda_make(device, stream, n, start, m->err));
    OJ_TRY(oj_cuda_clear(stream, start, "placing points", m->err));
    mark_ends<<<oj_blocks(m->made->side.n, BLOCK), BLOCK, 0, stream>>>(
        m->made->side.n, m->sorting.key[0].data, start->data);
    OJ_CUDA_TRY_LAUNCH("placing points", m->err);
    return oj_cuda_with_scratch(
        device, stream, &m->sorting.scratch,
        [&](void *memory, size_t &bytes)
        {
            return cub::DeviceScan::InclusiveScan(memory, bytes, start->data,
                                                  start->data, greatest(),
                                                  (int)n, stream);
        },
        "placing points", m->err);
}

static oj_status make_entries(struct close_side_build *m)
{
    const struct oj_cuda_layer *layer = m->layer;
    const struct oj_cuda_columns *columns = &layer->columns;
    struct oj_cuda_close_side *made = m->made;
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    int64_t n = made->side.n;
    OJ_TRY(oj_cuda_make(device, stream, n, &made->entry, &made->rank, m->err));
    if (columns->fid.n > 0)
        OJ_TRY(oj_cuda_make(device, stream, n, &made->columns.fid, m->err));
    if (columns->on_class.n > 0)
        OJ_TRY(
            oj_cuda_make(device, stream, n, &made->columns.on_class, m->err));
    if (columns->exclude_class.n > 0)
        OJ_TRY(oj_cuda_make(device, stream, n, &made->columns.exclude_class,
                            m->err));
    gather_entries<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        *layer, m->sorting.value[0].data, *made);
    OJ_CUDA_TRY_LAUNCH("gathering points", m->err);
    return OJ_OK;
}

static oj_status make_side(struct close_side_build *m)
{
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    const struct oj_close_side *side = &m->made->side;
    OJ_TRY(oj_cuda_sorting_make(device, stream, side->n, &m->sorting, m->err));
    find_places<<<oj_blocks(side->n, BLOCK), BLOCK, 0, stream>>>(
        *side, m->layer->segment.data, m->sorting.key[0].data,
        m->sorting.value[0].data);
    OJ_CUDA_TRY_LAUNCH("placing points", m->err);
    OJ_TRY(oj_cuda_sort(device, stream, bits_of_places(side), "ordering points",
                        &m->sorting, m->err));
    OJ_TRY(make_entries(m));
    return make_starts(m);
}

oj_status oj_cuda_close_side_build(struct oj_cuda_device *device,
                                   const struct oj_cuda_layer *layer, int equal,
                                   double least, double reach,
                                   struct oj_cuda_close_side *out,
                                   struct oj_error *err)
{
    struct close_side_build m = {};
    oj_status status = OJ_OK;
    m.device = device;
    m.layer = layer;
    m.made = out;
    m.err = err;
    oj_close_layout(&out->side, layer->n_segments, layer->x0, layer->y0,
                    layer->x1, layer->y1, equal, least, reach);
    if (layer->n_segments > 0)
        status = make_side(&m);
    oj_cuda_sorting_drop(device, device->stream, &m.sorting);
    out->side.start = out->start.data;
    out->side.entry = out->entry.data;
    out->side.rank = out->rank.data;
    return status;
}

void oj_cuda_close_side_drop(struct oj_cuda_device *device,
                             struct oj_cuda_close_side *side)
{
    oj_cuda_drop(device, device->stream, &side->start, &side->entry,
                 &side->rank);
    oj_cuda_columns_drop(device, &side->columns);
    memset(side, 0, sizeof *side);
}

int64_t oj_cuda_close_side_bytes(const struct oj_cuda_close_side *side)
{
    const struct oj_cuda_columns *columns = &side->columns;
    return oj_cuda_bytes(&side->entry, &side->start, &side->rank, &columns->fid,
                         &columns->on_class, &columns->exclude_class);
}

/* --- the points of a batch ------------------------------------------------ */

static __global__ void
find_point_places(const __grid_constant__ struct oj_close_side side,
                  struct oj_cuda_points points, uint32_t *place, int32_t *order)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= points.n)
        return;
    place[i] = oj_close_place_of(&side, points.x[i], points.y[i]);
    order[i] = (int32_t)i;
}

oj_status oj_cuda_close_order(struct oj_cuda_device *device,
                              cudaStream_t stream,
                              const struct oj_close_side *side,
                              const struct oj_cuda_points *points,
                              struct oj_cuda_array<int32_t> *order,
                              struct oj_error *err)
{
    int64_t n = points->n;
    if (n < OJ_CUDA_FEW_POINTS || n > INT32_MAX || side->n == 0)
        return OJ_OK;
    return oj_cuda_order_by<uint32_t>(
        device, stream, n, bits_of_places(side),
        [&](uint32_t *place, int32_t *number)
        {
            find_point_places<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
                *side, *points, place, number);
        },
        order, "ordering points", err);
}
