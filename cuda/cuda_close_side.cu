#include "cuda_close_side.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <string.h>

enum
{
    BLOCK = 256,
    FEW_POINTS = 4096
};

static unsigned blocks_of(int64_t n)
{
    return (unsigned)((n + BLOCK - 1) / BLOCK);
}

/* --- sorting by place ----------------------------------------------------- */

struct sorting
{
    struct oj_cuda_array<uint32_t> place[2];
    struct oj_cuda_array<int32_t> order[2];
    struct oj_cuda_array<uint8_t> scratch;
};

static oj_status make_sorting(struct oj_cuda_device *device,
                              cudaStream_t stream, int64_t n, struct sorting *s,
                              struct oj_error *err)
{
    for (int i = 0; i < 2; i++)
    {
        OJ_TRY(oj_cuda_make(device, stream, n, &s->place[i], err));
        OJ_TRY(oj_cuda_make(device, stream, n, &s->order[i], err));
    }
    return OJ_OK;
}

static void drop_sorting(struct oj_cuda_device *device, cudaStream_t stream,
                         struct sorting *s)
{
    for (int i = 0; i < 2; i++)
    {
        oj_cuda_drop(device, stream, &s->place[i]);
        oj_cuda_drop(device, stream, &s->order[i]);
    }
    oj_cuda_drop(device, stream, &s->scratch);
}

static oj_status make_scratch(struct oj_cuda_device *device,
                              cudaStream_t stream, size_t bytes,
                              struct sorting *s, struct oj_error *err)
{
    if ((int64_t)bytes <= s->scratch.n)
        return OJ_OK;
    oj_cuda_drop(device, stream, &s->scratch);
    return oj_cuda_make(device, stream, (int64_t)bytes, &s->scratch, err);
}

/* place[0] and order[0] by place, and by order where places are equal; what is
 * sorted is number 0 again. */
static oj_status sort_places(struct oj_cuda_device *device, cudaStream_t stream,
                             const struct oj_close_side *side,
                             struct sorting *s, struct oj_error *err)
{
    int n = (int)s->place[0].n, bits = side->column_bits;
    size_t bytes = 0;
    cub::DoubleBuffer<uint32_t> keys(s->place[0].data, s->place[1].data);
    cub::DoubleBuffer<int32_t> values(s->order[0].data, s->order[1].data);
    for (uint32_t mask = side->row_mask; mask != 0; mask >>= 1)
        bits++;
    OJ_CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, bytes, keys, values, n, 0,
                                                bits, stream),
                "ordering points", err);
    OJ_TRY(make_scratch(device, stream, bytes, s, err));
    OJ_CUDA_TRY(cub::DeviceRadixSort::SortPairs(s->scratch.data, bytes, keys,
                                                values, n, 0, bits, stream),
                "ordering points", err);
    if (values.Current() != s->order[0].data)
    {
        struct oj_cuda_array<uint32_t> place = s->place[0];
        struct oj_cuda_array<int32_t> order = s->order[0];
        s->place[0] = s->place[1];
        s->order[0] = s->order[1];
        s->place[1] = place;
        s->order[1] = order;
    }
    return OJ_OK;
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

/* Columns of the layer that are NULL are not asked for. */
static __global__ void gather_entries(
    int64_t n, const int32_t *order, const struct oj_cuda_segment *segment,
    const int32_t *feature, const int64_t *fid, const int32_t *on_class,
    const int32_t *exclude_class, struct oj_close_place *entry, int32_t *rank,
    int64_t *entry_fid, int32_t *entry_on_class, int32_t *entry_exclude_class)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int32_t r;
    if (i >= n)
        return;
    entry[i].x = segment[order[i]].ax;
    entry[i].y = segment[order[i]].ay;
    rank[i] = r = feature[order[i]];
    if (fid != NULL)
        entry_fid[i] = fid[r];
    if (on_class != NULL)
        entry_on_class[i] = on_class[r];
    if (exclude_class != NULL)
        entry_exclude_class[i] = exclude_class[r];
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

struct making
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct sorting sorting;
    struct oj_cuda_close_side *made;
    struct oj_error *err;
};

/* An end counts until the next one. */
static oj_status make_starts(struct making *m)
{
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    struct oj_cuda_array<uint32_t> *start = &m->made->start;
    int64_t n = oj_close_n_places(&m->made->side) + 1;
    size_t bytes = 0;
    OJ_TRY(oj_cuda_make(device, stream, n, start, m->err));
    OJ_CUDA_TRY(cudaMemsetAsync(start->data, 0, (size_t)n * sizeof *start->data,
                                stream),
                "placing points", m->err);
    mark_ends<<<blocks_of(m->made->side.n), BLOCK, 0, stream>>>(
        m->made->side.n, m->sorting.place[0].data, start->data);
    OJ_CUDA_TRY_LAUNCH("placing points", m->err);
    OJ_CUDA_TRY(cub::DeviceScan::InclusiveScan(NULL, bytes, start->data,
                                               start->data, greatest(), (int)n,
                                               stream),
                "placing points", m->err);
    OJ_TRY(make_scratch(device, stream, bytes, &m->sorting, m->err));
    OJ_CUDA_TRY(cub::DeviceScan::InclusiveScan(m->sorting.scratch.data, bytes,
                                               start->data, start->data,
                                               greatest(), (int)n, stream),
                "placing points", m->err);
    return OJ_OK;
}

static oj_status make_entries(struct making *m)
{
    const struct oj_cuda_layer *layer = m->layer;
    const struct oj_cuda_columns *columns = &layer->columns;
    struct oj_cuda_close_side *made = m->made;
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    int64_t n = made->side.n;
    OJ_TRY(oj_cuda_make(device, stream, n, &made->entry, m->err));
    OJ_TRY(oj_cuda_make(device, stream, n, &made->rank, m->err));
    if (columns->fid.n > 0)
        OJ_TRY(oj_cuda_make(device, stream, n, &made->columns.fid, m->err));
    if (columns->on_class.n > 0)
        OJ_TRY(
            oj_cuda_make(device, stream, n, &made->columns.on_class, m->err));
    if (columns->exclude_class.n > 0)
        OJ_TRY(oj_cuda_make(device, stream, n, &made->columns.exclude_class,
                            m->err));
    gather_entries<<<blocks_of(n), BLOCK, 0, stream>>>(
        n, m->sorting.order[0].data, layer->segment.data,
        layer->segment_feature.data, columns->fid.data, columns->on_class.data,
        columns->exclude_class.data, made->entry.data, made->rank.data,
        made->columns.fid.data, made->columns.on_class.data,
        made->columns.exclude_class.data);
    OJ_CUDA_TRY_LAUNCH("gathering points", m->err);
    return OJ_OK;
}

static oj_status make_side(struct making *m)
{
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    const struct oj_close_side *side = &m->made->side;
    OJ_TRY(make_sorting(device, stream, side->n, &m->sorting, m->err));
    find_places<<<blocks_of(side->n), BLOCK, 0, stream>>>(
        *side, m->layer->segment.data, m->sorting.place[0].data,
        m->sorting.order[0].data);
    OJ_CUDA_TRY_LAUNCH("placing points", m->err);
    OJ_TRY(sort_places(device, stream, side, &m->sorting, m->err));
    OJ_TRY(make_entries(m));
    return make_starts(m);
}

oj_status oj_cuda_close_side_build(struct oj_cuda_device *device,
                                   const struct oj_cuda_layer *layer, int equal,
                                   double least, double reach,
                                   struct oj_cuda_close_side *out,
                                   struct oj_error *err)
{
    struct oj_cuda_close_side made;
    struct making m;
    oj_status status = OJ_OK;
    memset(&made, 0, sizeof made);
    memset(&m, 0, sizeof m);
    m.device = device;
    m.layer = layer;
    m.made = &made;
    m.err = err;
    oj_close_layout(&made.side, layer->n_segments, layer->x0, layer->y0,
                    layer->x1, layer->y1, equal, least, reach);
    if (layer->n_segments > 0)
        status = make_side(&m);
    drop_sorting(device, device->stream, &m.sorting);
    if (status != OJ_OK)
    {
        oj_cuda_close_side_drop(device, &made);
        return status;
    }
    made.side.start = made.start.data;
    made.side.entry = made.entry.data;
    made.side.rank = made.rank.data;
    *out = made;
    return OJ_OK;
}

void oj_cuda_close_side_drop(struct oj_cuda_device *device,
                             struct oj_cuda_close_side *side)
{
    oj_cuda_drop(device, device->stream, &side->start);
    oj_cuda_drop(device, device->stream, &side->entry);
    oj_cuda_drop(device, device->stream, &side->rank);
    oj_cuda_columns_drop(device, &side->columns);
    memset(side, 0, sizeof *side);
}

int64_t oj_cuda_close_side_bytes(const struct oj_cuda_close_side *side)
{
    const struct oj_cuda_columns *columns = &side->columns;
    return side->entry.n * (int64_t)sizeof(struct oj_close_place) +
           columns->fid.n * (int64_t)sizeof(int64_t) +
           (side->start.n + side->rank.n + columns->on_class.n +
            columns->exclude_class.n) *
               (int64_t)sizeof(int32_t);
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
    struct sorting sorting;
    oj_status status;
    int64_t n = points->n;
    if (n < FEW_POINTS || n > INT32_MAX || side->n == 0)
        return OJ_OK;
    memset(&sorting, 0, sizeof sorting);
    status = make_sorting(device, stream, n, &sorting, err);
    if (status == OJ_OK)
    {
        find_point_places<<<blocks_of(n), BLOCK, 0, stream>>>(
            *side, *points, sorting.place[0].data, sorting.order[0].data);
        status = sort_places(device, stream, side, &sorting, err);
    }
    if (status == OJ_OK)
    {
        *order = sorting.order[0];
        memset(&sorting.order[0], 0, sizeof sorting.order[0]);
    }
    drop_sorting(device, stream, &sorting);
    OJ_TRY(status);
    OJ_CUDA_TRY_LAUNCH("ordering points", err);
    return OJ_OK;
}
