#include "cuda_copy.h"
#include "cuda_cub.cuh"
#include "cuda_offsets.cuh"

#include <math.h>
#include <string.h>

#define BLOCK 256

/* The flat layer as it is on the host, copied; freed when all is made. */
struct layer_raw
{
    struct oj_cuda_array<double> x, y;
    struct oj_cuda_array<int64_t> part_offset, ring_offset, vertex_offset;
    struct oj_cuda_array<uint8_t> part_kind;
    struct oj_cuda_array<uint8_t> left_out; /* [features] or none */
    struct oj_cuda_array<int32_t> tie_rank;
    struct oj_cuda_array<int64_t> ring_first; /* [rings made] first vertex */
    struct oj_cuda_array<int32_t> ring_part;  /* [rings made] */
    struct oj_cuda_array<int64_t> part_ring;  /* [parts made] first ring */
    struct oj_cuda_array<uint8_t> scratch;
};

/* Least and greatest. */
struct layer_extent
{
    double x0, y0, x1, y1;
};

struct layer_build
{
    struct oj_cuda_device *device;
    const struct oj_flat *flat;
    const uint8_t *left_out; /* [features], or NULL */
    struct layer_raw raw;
    struct oj_cuda_layer *layer;
    cudaEvent_t begin, end; /* of the work on the device */
    struct oj_error *err;
};

static __global__ void invert(int64_t n, const int32_t *rank, int32_t *ordinal)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        ordinal[rank[i]] = (int32_t)i;
}

static __device__ int64_t ordinal_at(const int32_t *ordinal_of, int64_t rank)
{
    return ordinal_of != NULL ? ordinal_of[rank] : rank;
}

static __global__ void
count_parts(const __grid_constant__ struct oj_cuda_layer to,
            const __grid_constant__ struct layer_raw raw)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n = 0;
    if (i > to.n_features)
        return;
    if (i < to.n_features)
    {
        int64_t o = ordinal_at(to.ordinal_of.data, i);
        const int64_t *part_offset = raw.part_offset.data;
        n = part_offset != NULL
                ? part_offset[o + 1] - part_offset[o]
                : (isfinite(raw.x.data[o]) && isfinite(raw.y.data[o]));
        if (raw.left_out.data != NULL && raw.left_out.data[o])
            n = 0;
    }
    to.part_offset.data[i] = n;
}

static __global__ void
make_parts(const __grid_constant__ struct oj_cuda_layer to,
           const __grid_constant__ struct layer_raw raw)
{
    int64_t p = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t f, o;
    if (p > to.n_parts)
        return;
    if (p == to.n_parts)
    {
        to.ring_offset.data[p] = 0;
        return;
    }
    f = oj_cuda_owner_of<int64_t>(to.part_offset.data, 0, to.n_features, p);
    o = ordinal_at(to.ordinal_of.data, f);
    to.part_feature.data[p] = (int32_t)f;
    if (raw.part_offset.data == NULL)
    {
        to.part_kind.data[p] = OJ_PART_POINT;
        raw.part_ring.data[p] = o;
        to.ring_offset.data[p] = 1;
    }
    else
    {
        int64_t q = raw.part_offset.data[o] + (p - to.part_offset.data[f]);
        int64_t first = raw.ring_offset.data[q];
        to.part_kind.data[p] = raw.part_kind.data[q];
        raw.part_ring.data[p] = first;
        to.ring_offset.data[p] = raw.ring_offset.data[q + 1] - first;
    }
}

/* A ring of one vertex is a segment that ends where it starts: its first
 * vertex is noted as its complement. */
static __global__ void
make_rings(const __grid_constant__ struct oj_cuda_layer to,
           const __grid_constant__ struct layer_raw raw)
{
    int64_t g = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    const int64_t *vertex_offset = raw.vertex_offset.data;
    int64_t p, r, n, first;
    if (g > to.n_rings)
        return;
    if (g == to.n_rings)
    {
        to.segment_offset.data[g] = 0;
        return;
    }
    p = oj_cuda_owner_of<int64_t>(to.ring_offset.data, 0, to.n_parts, g);
    r = raw.part_ring.data[p] + (g - to.ring_offset.data[p]);
    n = vertex_offset != NULL ? vertex_offset[r + 1] - vertex_offset[r] : 1;
    first = vertex_offset != NULL ? vertex_offset[r] : r;
    raw.ring_part.data[g] = (int32_t)p;
    raw.ring_first.data[g] = n == 1 ? ~first : first;
    to.segment_offset.data[g] = n > 1 ? n - 1 : n;
}

static __global__ void
make_segments(const __grid_constant__ struct oj_cuda_layer to,
              const __grid_constant__ struct layer_raw raw)
{
    int64_t s = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t g, a, b;
    struct oj_cuda_segment made;
    if (s >= to.n_segments)
        return;
    g = oj_cuda_owner_of<int64_t>(to.segment_offset.data, 0, to.n_rings, s);
    a = raw.ring_first.data[g];
    if (a < 0)
        b = a = ~a;
    else
    {
        a += s - to.segment_offset.data[g];
        b = a + 1;
    }
    made.ax = raw.x.data[a];
    made.ay = raw.y.data[a];
    made.bx = raw.x.data[b];
    made.by = raw.y.data[b];
    to.segment.data[s] = made;
    to.segment_feature.data[s] = to.part_feature.data[raw.ring_part.data[g]];
    if (to.segment_part.data != NULL)
        to.segment_part.data[s] = raw.ring_part.data[g];
}

static __global__ void
make_point_segments(const __grid_constant__ struct oj_cuda_layer to,
                    const __grid_constant__ struct layer_raw raw)
{
    int64_t s = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (s < to.n_segments)
    {
        int64_t o = ordinal_at(to.ordinal_of.data, s);
        double x = raw.x.data[o], y = raw.y.data[o];
        struct oj_cuda_segment made = {x, y, x, y};
        to.segment.data[s] = made;
        to.segment_feature.data[s] = (int32_t)s;
    }
}

struct extent_of_segment
{
    const struct oj_cuda_segment *segment;

    __device__ struct layer_extent operator()(ptrdiff_t i) const
    {
        const struct oj_cuda_segment s = segment[i];
        struct layer_extent e = {fmin(s.ax, s.bx), fmin(s.ay, s.by),
                                 fmax(s.ax, s.bx), fmax(s.ay, s.by)};
        return e;
    }
};

struct join_layer_extents
{
    __device__ struct layer_extent
    operator()(const struct layer_extent &a, const struct layer_extent &b) const
    {
        struct layer_extent e = {fmin(a.x0, b.x0), fmin(a.y0, b.y0),
                                 fmax(a.x1, b.x1), fmax(a.y1, b.y1)};
        return e;
    }
};

/* Turns counts [n + 1] with a last one of 0 into offsets, in place. */
static oj_status scan(struct layer_build *m, int64_t *counts, int64_t n)
{
    return oj_cuda_scan(m->device, m->device->stream, &m->raw.scratch, counts,
                        n, "summing counts", m->err);
}

/* The last of n + 1 offsets; waits for the stream. */
static oj_status total_of(struct layer_build *m, const int64_t *offset,
                          int64_t n, int64_t *out)
{
    return oj_cuda_read(m->device->stream, offset + n, (int)sizeof *out, out,
                        "reading a count", m->err);
}

template <typename T>
static oj_status upload(struct layer_build *m, const T *host, int64_t n,
                        struct oj_cuda_array<T> *out)
{
    if (host == NULL || n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(m->device, m->device->stream, n, out, m->err));
    return oj_cuda_copy_in(m->device, m->device->stream, out->data, host,
                           n * (int64_t)sizeof(T), m->err);
}

static oj_status upload_all(struct layer_build *m, const int32_t *tie_rank)
{
    const struct oj_flat *flat = m->flat;
    int64_t n_vertices =
        oj_flat_is_points(flat) ? flat->n_features : flat->n_vertices;
    OJ_TRY(upload(m, flat->x, n_vertices, &m->raw.x));
    OJ_TRY(upload(m, flat->y, n_vertices, &m->raw.y));
    OJ_TRY(upload(m, tie_rank, flat->n_features, &m->raw.tie_rank));
    OJ_TRY(upload(m, m->left_out, flat->n_features, &m->raw.left_out));
    if (oj_flat_is_points(flat))
        return OJ_OK;
    OJ_TRY(upload(m, flat->part_offset, flat->n_features + 1,
                  &m->raw.part_offset));
    OJ_TRY(upload(m, flat->part_kind, flat->n_parts, &m->raw.part_kind));
    OJ_TRY(
        upload(m, flat->ring_offset, flat->n_parts + 1, &m->raw.ring_offset));
    return upload(m, flat->vertex_offset, flat->n_rings + 1,
                  &m->raw.vertex_offset);
}

static oj_status order_features(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    int64_t n = layer->n_features;
    if (m->raw.tie_rank.n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(m->device, m->device->stream, n, &layer->ordinal_of,
                        m->err));
    invert<<<oj_blocks(n, BLOCK), BLOCK, 0, m->device->stream>>>(
        n, m->raw.tie_rank.data, layer->ordinal_of.data);
    OJ_CUDA_TRY_LAUNCH("ordering the join layer", m->err);
    return OJ_OK;
}

static oj_status parts_of(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    struct oj_cuda_device *device = m->device;
    int64_t n = layer->n_features;
    OJ_TRY(oj_cuda_make(device, device->stream, n + 1, &layer->part_offset,
                        m->err));
    count_parts<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, device->stream>>>(*layer,
                                                                       m->raw);
    OJ_CUDA_TRY_LAUNCH("counting parts", m->err);
    OJ_TRY(scan(m, layer->part_offset.data, n));
    layer->n_parts = m->flat->n_parts;
    if (oj_flat_is_points(m->flat) || m->left_out != NULL)
        OJ_TRY(total_of(m, layer->part_offset.data, n, &layer->n_parts));
    OJ_TRY(oj_cuda_make(device, device->stream, layer->n_parts,
                        &layer->part_kind, &layer->part_feature,
                        &m->raw.part_ring, m->err));
    OJ_TRY(oj_cuda_make(device, device->stream, layer->n_parts + 1,
                        &layer->ring_offset, m->err));
    make_parts<<<oj_blocks(layer->n_parts + 1, BLOCK), BLOCK, 0,
                 device->stream>>>(*layer, m->raw);
    OJ_CUDA_TRY_LAUNCH("listing parts", m->err);
    return scan(m, layer->ring_offset.data, layer->n_parts);
}

static oj_status rings_of(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    struct oj_cuda_device *device = m->device;
    layer->n_rings =
        oj_flat_is_points(m->flat) ? layer->n_parts : m->flat->n_rings;
    if (m->left_out != NULL)
        OJ_TRY(total_of(m, layer->ring_offset.data, layer->n_parts,
                        &layer->n_rings));
    OJ_TRY(oj_cuda_make(device, device->stream, layer->n_rings,
                        &m->raw.ring_first, &m->raw.ring_part, m->err));
    OJ_TRY(oj_cuda_make(device, device->stream, layer->n_rings + 1,
                        &layer->segment_offset, m->err));
    make_rings<<<oj_blocks(layer->n_rings + 1, BLOCK), BLOCK, 0,
                 device->stream>>>(*layer, m->raw);
    OJ_CUDA_TRY_LAUNCH("listing rings", m->err);
    OJ_TRY(scan(m, layer->segment_offset.data, layer->n_rings));
    return total_of(m, layer->segment_offset.data, layer->n_rings,
                    &layer->n_segments);
}

static oj_status check_size(struct layer_build *m)
{
    if (m->layer->n_segments > INT32_MAX)
        return oj_fail(m->err, OJ_ERR_UNSUPPORTED,
                       "the join layer has %lld segments; at most %d are "
                       "possible",
                       (long long)m->layer->n_segments, INT32_MAX);
    return OJ_OK;
}

static oj_status segments_of(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    struct oj_cuda_device *device = m->device;
    int64_t n = layer->n_segments;
    int has_polygons = (m->flat->part_kinds & OJ_PART_POLYGON) != 0;
    OJ_TRY(check_size(m));
    OJ_TRY(oj_cuda_make(device, device->stream, n, &layer->segment,
                        &layer->segment_feature, m->err));
    if (has_polygons)
        OJ_TRY(oj_cuda_make(device, device->stream, n, &layer->segment_part,
                            m->err));
    if (n == 0)
        return OJ_OK;
    if (layer->short_points)
        make_point_segments<<<oj_blocks(n, BLOCK), BLOCK, 0, device->stream>>>(
            *layer, m->raw);
    else
        make_segments<<<oj_blocks(n, BLOCK), BLOCK, 0, device->stream>>>(
            *layer, m->raw);
    OJ_CUDA_TRY_LAUNCH("listing segments", m->err);
    return OJ_OK;
}

static oj_status extent_of(struct layer_build *m)
{
    struct oj_cuda_layer *layer = m->layer;
    struct layer_extent e = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    struct extent_of_segment segments = {layer->segment.data};
    if (layer->n_segments > 0)
        OJ_TRY(oj_cuda_reduce(m->device, segments, layer->n_segments,
                              join_layer_extents(), &e,
                              "measuring the join layer", m->err));
    layer->x0 = e.x0;
    layer->y0 = e.y0;
    layer->x1 = e.x1;
    layer->y1 = e.y1;
    if (layer->n_segments > 0)
        layer->magnitude =
            fmax(fmax(fabs(e.x0), fabs(e.x1)), fmax(fabs(e.y0), fabs(e.y1)));
    return OJ_OK;
}

/* 1 when every feature of a layer of points has one. */
static int all_there(const struct oj_flat *flat)
{
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        if (!(isfinite(flat->x[i]) && isfinite(flat->y[i])))
            return 0;
    }
    return 1;
}

static oj_status make_layer(struct layer_build *m, const int32_t *tie_rank)
{
    struct oj_cuda_layer *layer = m->layer;
    float milliseconds = 0.0f;
    layer->n_features = m->flat->n_features;
    layer->only_points = oj_flat_is_points(m->flat);
    layer->short_points = layer->only_points && all_there(m->flat);
    OJ_TRY(upload_all(m, tie_rank));
    OJ_CUDA_TRY(cudaEventCreate(&m->begin), "taking the time", m->err);
    OJ_CUDA_TRY(cudaEventCreate(&m->end), "taking the time", m->err);
    OJ_CUDA_TRY(cudaEventRecord(m->begin, m->device->stream), "taking the time",
                m->err);
    OJ_TRY(order_features(m));
    if (layer->short_points)
        layer->n_parts = layer->n_rings = layer->n_segments = layer->n_features;
    else
    {
        OJ_TRY(parts_of(m));
        OJ_TRY(rings_of(m));
    }
    OJ_TRY(segments_of(m));
    OJ_TRY(extent_of(m));
    /* The host's arrays were read by copies that may still run. */
    OJ_CUDA_TRY(cudaEventRecord(m->end, m->device->stream), "taking the time",
                m->err);
    OJ_CUDA_TRY(cudaStreamSynchronize(m->device->stream),
                "copying the join layer", m->err);
    OJ_CUDA_TRY(cudaEventElapsedTime(&milliseconds, m->begin, m->end),
                "taking the time", m->err);
    layer->make_s = 1e-3 * (double)milliseconds;
    return OJ_OK;
}

oj_status oj_cuda_layer_make(struct oj_cuda_device *device,
                             const struct oj_flat *flat,
                             const uint8_t *left_out, const int32_t *tie_rank,
                             struct oj_cuda_layer *out, struct oj_error *err)
{
    struct layer_build making = {};
    struct layer_raw *raw = &making.raw;
    oj_status status;
    making.device = device;
    making.flat = flat;
    making.left_out = left_out;
    making.layer = out;
    making.err = err;
    status = make_layer(&making, tie_rank);
    oj_cuda_drop(device, device->stream, &raw->x, &raw->y, &raw->part_offset,
                 &raw->ring_offset, &raw->vertex_offset, &raw->part_kind,
                 &raw->left_out, &raw->tie_rank, &raw->ring_first,
                 &raw->ring_part, &raw->part_ring, &raw->scratch);
    if (making.begin != NULL)
        (void)cudaEventDestroy(making.begin);
    if (making.end != NULL)
        (void)cudaEventDestroy(making.end);
    if (status != OJ_OK)
        (void)cudaStreamSynchronize(device->stream);
    return status;
}

void oj_cuda_layer_drop(struct oj_cuda_device *device,
                        struct oj_cuda_layer *layer)
{
    cudaStream_t stream = device->stream;
    oj_cuda_drop(device, stream, &layer->segment, &layer->segment_feature,
                 &layer->segment_part, &layer->part_kind, &layer->part_feature,
                 &layer->part_offset, &layer->ring_offset,
                 &layer->segment_offset, &layer->ordinal_of);
    oj_cuda_columns_drop(device, &layer->columns);
    memset(layer, 0, sizeof *layer);
}
