#include "../../foundations/device/cuda_box_reduce.cuh"
#include "cuda_intersects.h"

#include <math.h>

#define BLOCK 256
#define WARP 32
#define ALL 0xFFFFFFFFu

/* --- features, a warp each ------------------------------------------------ */

/* Adds the segments of a ring to *summary, 32 at a time by a warp. is_shell is
 * 1 if the ring is the first of its part. Returns how many of its segments have
 * a length. */
static __device__ int64_t summarise_ring(const struct oj_cuda_layer &v,
                                         int64_t ring, int is_shell, int lane,
                                         struct oj_meet_summary *summary)
{
    int64_t end = v.segment_offset.data[ring + 1], n = 0;
    for (int64_t s = v.segment_offset.data[ring]; s < end; s += WARP)
    {
        int has_length = 0;
        if (s + lane < end)
        {
            const struct oj_cuda_segment *segment = v.segment.data + s + lane;
            oj_meet_summary_add_edge(summary, segment, is_shell);
            has_length = oj_meet_has_length(segment);
        }
        n += __popc(__ballot_sync(ALL, has_length));
    }
    return n;
}

static __global__ void __launch_bounds__(BLOCK)
    summarise_features(const __grid_constant__ struct oj_cuda_layer v,
                       struct oj_meet_feature *out)
{
    int64_t f = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / WARP;
    int lane = (int)(threadIdx.x % WARP), degenerate = 0;
    unsigned kinds = 0;
    int64_t first_part, end_part, first_ring, end_ring;
    struct oj_meet_summary summary;
    struct oj_meet_feature made;
    if (f >= v.n_features)
        return;
    first_part = v.part_offset.data[f];
    end_part = v.part_offset.data[f + 1];
    first_ring = v.ring_offset.data[first_part];
    end_ring = v.ring_offset.data[end_part];
    oj_meet_summary_start(&summary);
    for (int64_t p = first_part; p < end_part; p++)
    {
        unsigned kind = v.part_kind.data[p];
        int64_t shell = v.ring_offset.data[p];
        kinds |= kind;
        for (int64_t ring = shell; ring < v.ring_offset.data[p + 1]; ring++)
        {
            int64_t n = summarise_ring(v, ring, ring == shell, lane, &summary);
            degenerate |= oj_meet_ring_is_degenerate(kind == OJ_PART_POLYGON,
                                                     kind == OJ_PART_LINE, n);
        }
    }
    oj_cuda_box_of_warp(&summary.all);
    oj_cuda_box_of_warp(&summary.shells);
    summary.is_exact = __all_sync(ALL, summary.is_exact);
    if (lane > 0)
        return;
    made.box = summary.all;
    made.first = (int32_t)v.segment_offset.data[first_ring];
    made.end = (int32_t)v.segment_offset.data[end_ring];
    made.first_part = (int32_t)first_part;
    made.end_part = (int32_t)end_part;
    made.flags = oj_meet_flags_of_summary(
        &summary, (kinds & OJ_PART_POLYGON) != 0, (kinds & OJ_PART_LINE) != 0,
        (kinds & OJ_PART_POINT) != 0, end_part - first_part,
        end_ring - first_ring, degenerate);
    made.padding = 0;
    out[f] = made;
}

oj_status oj_cuda_intersects_side_make(struct oj_cuda_work *work,
                                       const struct oj_cuda_layer *layer,
                                       struct oj_cuda_meet_side *out)
{
    int64_t n = layer->n_features;
    OJ_TRY(work->make(n, &out->feature));
    out->layer = layer;
    return work->run<BLOCK>(n * WARP, summarise_features, *layer, out->feature);
}

/* --- edges ---------------------------------------------------------------- */

static __device__ struct oj_meet_image
float_box_of_other_lane(const struct oj_meet_image &image, int step)
{
    struct oj_meet_image other;
    other.x0 = __shfl_xor_sync(ALL, image.x0, step);
    other.y0 = __shfl_xor_sync(ALL, image.y0, step);
    other.x1 = __shfl_xor_sync(ALL, image.x1, step);
    other.y1 = __shfl_xor_sync(ALL, image.y1, step);
    return other;
}

/* Makes the image of each segment and of each chain of 32 consecutive segments;
 * one warp per chain. */
static __global__ void
make_float_boxes_of_segments(int64_t n, const struct oj_cuda_segment *segment,
                             double x0, double y0, struct oj_meet_image *out,
                             struct oj_meet_image *chain)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    struct oj_meet_image image;
    image.x0 = image.y0 = INFINITY;
    image.x1 = image.y1 = -INFINITY;
    if (i < n)
    {
        struct oj_box box = oj_cuda_segment_box(&segment[i]);
        image = oj_meet_image_of_box(&box, x0, y0);
        out[i] = image;
    }
    for (int step = WARP / 2; step > 0; step /= 2)
    {
        struct oj_meet_image other = float_box_of_other_lane(image, step);
        oj_meet_image_unite(&image, &other);
    }
    if (i < n && i % WARP == 0)
        chain[i / WARP] = image;
}

oj_status oj_cuda_intersects_side_add_edges(struct oj_cuda_work *work,
                                            double x0, double y0,
                                            struct oj_cuda_meet_side *side)
{
    int64_t n = side->layer->n_segments;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(work->make(n, &side->image));
    OJ_TRY(work->make((n + WARP - 1) / WARP, &side->chain));
    OJ_TRY(work->run<BLOCK>(n, make_float_boxes_of_segments, n,
                            side->layer->segment.data, x0, y0, side->image,
                            side->chain));
    return oj_cuda_tree_rings_make(work, side->layer, &side->rings);
}
