#include "cuda_point_side.h"

#include <string.h>

#define BLOCK 128

/* Threads that find the box of a feature together. */
#define LANES 32

/* A feature that is a point is a segment without length. */
static __global__ void make_point_boxes(int64_t n,
                                        const struct oj_cuda_segment *segment,
                                        struct oj_tree_box *box)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    box[i].x0 = box[i].x1 = segment[i].ax;
    box[i].y0 = box[i].y1 = segment[i].ay;
}

static __device__ double least_of_lanes(double v)
{
    for (int step = LANES / 2; step > 0; step /= 2)
    {
        double other = __shfl_xor_sync(0xffffffffu, v, step);
        v = other < v ? other : v;
    }
    return v;
}

/* A warp for each feature; its segments are one run. */
static __global__ void
make_feature_boxes(const __grid_constant__ struct oj_cuda_layer layer,
                   struct oj_tree_box *box)
{
    const int64_t *part = layer.part_offset.data,
                  *ring = layer.ring_offset.data;
    int64_t f = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / LANES;
    int lane = (int)(threadIdx.x % LANES);
    double x0 = INFINITY, y0 = INFINITY, x1 = INFINITY, y1 = INFINITY;
    int64_t at, end;
    if (f >= layer.n_features)
        return;
    at = layer.segment_offset.data[ring[part[f]]];
    end = layer.segment_offset.data[ring[part[f + 1]]];
    for (at += lane; at < end; at += LANES)
    {
        const struct oj_cuda_segment *s = &layer.segment.data[at];
        x0 = fmin(x0, fmin(s->ax, s->bx));
        y0 = fmin(y0, fmin(s->ay, s->by));
        x1 = fmin(x1, fmin(-s->ax, -s->bx));
        y1 = fmin(y1, fmin(-s->ay, -s->by));
    }
    x0 = least_of_lanes(x0);
    y0 = least_of_lanes(y0);
    x1 = least_of_lanes(x1);
    y1 = least_of_lanes(y1);
    if (lane == 0)
    {
        box[f].x0 = x0;
        box[f].y0 = y0;
        box[f].x1 = -x1;
        box[f].y1 = -y1;
    }
}

static __global__ void gather_points(int64_t n, const int32_t *order,
                                     const struct oj_cuda_segment *segment,
                                     const int32_t *feature,
                                     struct oj_point_place *place,
                                     int32_t *rank,
                                     struct oj_point_place *place_of)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    struct oj_point_place p;
    if (i >= n)
        return;
    p.x = segment[order[i]].ax;
    p.y = segment[order[i]].ay;
    place[i] = p;
    rank[i] = feature[order[i]];
    if (place_of != NULL)
        place_of[feature[order[i]]] = p;
}

static __global__ void gather_boxes(int64_t n, const int32_t *order,
                                    const struct oj_tree_box *from,
                                    struct oj_tree_box *box)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        box[i] = from[order[i]];
}

struct point_side_build
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_cuda_point_side *made;
    struct oj_tree_box extent;
    struct oj_cuda_array<struct oj_tree_box> box;
    struct oj_error *err;
};

static oj_status make_points(struct point_side_build *m)
{
    const struct oj_cuda_layer *layer = m->layer;
    struct oj_cuda_point_side *made = m->made;
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    int64_t n = layer->n_segments;
    OJ_TRY(oj_cuda_make(device, stream, n, &m->box, m->err));
    make_point_boxes<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        n, layer->segment.data, m->box.data);
    OJ_CUDA_TRY_LAUNCH("measuring points", m->err);
    OJ_TRY(
        oj_cuda_tree_build(device, &m->box, &m->extent, &made->tree, m->err));
    OJ_TRY(oj_cuda_make(device, stream, n, &made->place, &made->rank, m->err));
    if (made->side.test == OJ_POINT_NEAR)
        OJ_TRY(oj_cuda_make(device, stream, layer->n_features, &made->place_of,
                            m->err));
    gather_points<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        n, made->tree.order.data, layer->segment.data,
        layer->segment_feature.data, made->place.data, made->rank.data,
        made->place_of.data);
    OJ_CUDA_TRY_LAUNCH("gathering points", m->err);
    oj_cuda_drop(device, stream, &made->tree.order);
    made->side.place = made->place.data;
    return OJ_OK;
}

/* Entries are features, so their order is that of ranks. */
static oj_status make_boxes(struct point_side_build *m)
{
    const struct oj_cuda_layer *layer = m->layer;
    struct oj_cuda_point_side *made = m->made;
    struct oj_cuda_device *device = m->device;
    cudaStream_t stream = device->stream;
    int64_t n = layer->n_features;
    OJ_TRY(oj_cuda_make(device, stream, n, &m->box, m->err));
    make_feature_boxes<<<oj_blocks(n * LANES, BLOCK), BLOCK, 0, stream>>>(
        *layer, m->box.data);
    OJ_CUDA_TRY_LAUNCH("measuring features", m->err);
    OJ_TRY(
        oj_cuda_tree_build(device, &m->box, &m->extent, &made->tree, m->err));
    OJ_TRY(oj_cuda_make(device, stream, n, &made->box, m->err));
    gather_boxes<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        n, made->tree.order.data, m->box.data, made->box.data);
    OJ_CUDA_TRY_LAUNCH("gathering boxes", m->err);
    made->rank = made->tree.order;
    memset(&made->tree.order, 0, sizeof made->tree.order);
    made->side.box = made->box.data;
    return OJ_OK;
}

oj_status oj_cuda_point_side_build(struct oj_cuda_device *device,
                                   const struct oj_cuda_layer *layer,
                                   enum oj_point_test test, double least,
                                   struct oj_cuda_point_side *out,
                                   struct oj_error *err)
{
    struct point_side_build m = {};
    oj_status status = OJ_OK;
    out->side.test = test;
    out->side.least = least;
    m.device = device;
    m.layer = layer;
    m.made = out;
    m.err = err;
    m.extent.x0 = layer->x0;
    m.extent.y0 = layer->y0;
    m.extent.x1 = layer->x1;
    m.extent.y1 = layer->y1;
    if (layer->n_segments > 0)
        status = test == OJ_POINT_IN_BOX ? make_boxes(&m) : make_points(&m);
    oj_cuda_drop(device, device->stream, &m.box);
    out->side.tree = out->tree.tree;
    out->side.rank = out->rank.data;
    return status;
}

void oj_cuda_point_side_drop(struct oj_cuda_device *device,
                             struct oj_cuda_point_side *side)
{
    oj_cuda_tree_drop(device, &side->tree);
    oj_cuda_drop(device, device->stream, &side->place, &side->box, &side->rank,
                 &side->place_of);
    memset(side, 0, sizeof *side);
}

int64_t oj_cuda_point_side_bytes(const struct oj_cuda_point_side *side)
{
    return oj_cuda_bytes(&side->tree.node, &side->place, &side->place_of,
                         &side->box, &side->rank);
}
