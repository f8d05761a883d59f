#include "cuda_screen_rows.h"

#include "../device/cuda_scratch.cuh"
#include "../device/cuda_threads.h"

#include <string.h>

#define BLOCK 256

/* Pairs on the device at a time: more than this, or than memory holds, come in
 * several goes of fewer rows. */
#define MOST_PAIRS ((int64_t)1 << 26)

/* Coordinates whose differences are far from an overflow. */
#define LARGEST 1e150

/* Worth threads. */
#define MANY_OFFSETS ((int64_t)1 << 18)

oj_status oj_cuda_screen_check(const struct oj_cuda_layer *layer,
                               struct oj_error *err)
{
    if (layer->n_segments > 0 && !(layer->magnitude < LARGEST))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "coordinates are too large for the GPU");
    return OJ_OK;
}

/* --- lanes ---------------------------------------------------------------- */

oj_status oj_cuda_screen_lane_make(const struct oj_cuda_screen_place *place,
                                   int64_t limit,
                                   struct oj_cuda_screen_lane *lane,
                                   struct oj_error *err)
{
    if (lane->device.stream == NULL)
        OJ_TRY(oj_cuda_open(place->device.ordinal, limit, place->device.cancel,
                            &lane->device, err));
    OJ_CUDA_TRY(cudaSetDevice(lane->device.ordinal), "choosing a device", err);
    lane->device.limit = limit;
    lane->device.n_threads = place->device.n_threads;
    return OJ_OK;
}

void oj_cuda_screen_lane_free(struct oj_cuda_screen_lane *lane)
{
    if (lane->device.stream == NULL)
        return;
    (void)cudaSetDevice(lane->device.ordinal);
    (void)cudaStreamSynchronize(lane->device.stream);
    (void)cudaGetLastError();
    oj_cuda_stage_drop(&lane->stage);
    oj_cuda_close(&lane->device);
    memset(lane, 0, sizeof *lane);
}

/* --- rows as a layer of their own ------------------------------------------
 */

/* Offsets first .. end of a layer, both included, from the first one on. */
struct offset_slice
{
    const int64_t *from;
    int64_t first, end;
    int64_t *to;
};

static void start_at_0(int i, void *user)
{
    const struct offset_slice *o = (const struct offset_slice *)user + i;
    for (int64_t at = o->first; at <= o->end; at++)
        o->to[at - o->first] = o->from[at] - o->from[o->first];
}

static oj_status stage_offsets(struct oj_cuda_screen_lane *lane,
                               struct offset_slice offsets[3],
                               struct oj_error *err)
{
    int64_t n = 0;
    int64_t *to;
    for (int i = 0; i < 3; i++)
        n += offsets[i].end - offsets[i].first + 1;
    OJ_TRY(oj_cuda_stage_want(&lane->stage, n * (int64_t)sizeof *to, err));
    to = (int64_t *)(void *)lane->stage.data;
    for (int i = 0; i < 3; i++)
    {
        offsets[i].to = to;
        to += offsets[i].end - offsets[i].first + 1;
    }
    if (n > MANY_OFFSETS)
        oj_cuda_side_by_side(3, start_at_0, offsets);
    else
    {
        for (int i = 0; i < 3; i++)
            start_at_0(i, offsets);
    }
    return OJ_OK;
}

/* The first rows of a layer have their offsets as they are. */
static oj_status view_rows(struct oj_cuda_screen_lane *lane,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_flat *out, struct oj_error *err)
{
    int64_t part = input->part_offset[first];
    int64_t end_part = input->part_offset[first + n];
    int64_t ring = input->ring_offset[part];
    int64_t end_ring = input->ring_offset[end_part];
    int64_t vertex = input->vertex_offset[ring];
    struct offset_slice offsets[3] = {
        {input->part_offset, first, first + n, NULL},
        {input->ring_offset, part, end_part, NULL},
        {input->vertex_offset, ring, end_ring, NULL}};
    struct oj_flat rows = {};
    rows.n_features = n;
    rows.n_parts = end_part - part;
    rows.n_rings = end_ring - ring;
    rows.n_vertices = input->vertex_offset[end_ring] - vertex;
    rows.part_kinds = input->part_kinds;
    rows.x = input->x + vertex;
    rows.y = input->y + vertex;
    rows.part_kind = input->part_kind + part;
    if (first > 0)
        OJ_TRY(stage_offsets(lane, offsets, err));
    rows.part_offset = first > 0 ? offsets[0].to : input->part_offset;
    rows.ring_offset = first > 0 ? offsets[1].to : input->ring_offset;
    rows.vertex_offset = first > 0 ? offsets[2].to : input->vertex_offset;
    *out = rows;
    return OJ_OK;
}

/* --- pairs ---------------------------------------------------------------- */

/* What the search makes on its way; all of it is dropped at its end. */
struct screen_search
{
    const struct oj_cuda_screen_place *place;
    struct oj_cuda_device *device; /* of the lane */
    const struct oj_screen_rule *rule;
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side;
    struct oj_cuda_box_pairs pairs;
    struct oj_cuda_array<uint8_t> said;
    struct oj_cuda_array<int64_t> place_of; /* of pairs that are kept */
    struct oj_cuda_array<uint8_t> scratch;
    struct oj_error *err;
};

/* What is surely no pair is left out. */
static __global__ void count_kept(int64_t n, const uint8_t *said,
                                  int64_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i <= n)
        count[i] = i < n && said[i] != OJ_SAID_APART;
}

static __global__ void keep(int64_t n, const int32_t *feature,
                            const uint8_t *said, const int64_t *place,
                            int32_t *kept_feature, uint8_t *kept_said)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n || said[i] == OJ_SAID_APART)
        return;
    kept_feature[place[i]] = feature[i];
    kept_said[place[i]] = said[i];
}

/* end[i]: where the pairs of row i end; place NULL: all are kept. */
static __global__ void find_ends(int64_t n_rows, int64_t n_pairs,
                                 const int32_t *row, const int64_t *place,
                                 int64_t *end)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t low = 0, high = n_pairs;
    if (i >= n_rows)
        return;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (row[middle] <= i)
            low = middle + 1;
        else
            high = middle;
    }
    end[i] = place != NULL ? place[low] : low;
}

static oj_status set_ends(struct screen_search *s, int64_t n_rows,
                          struct oj_cuda_screen_found *out)
{
    cudaStream_t stream = s->device->stream;
    OJ_TRY(oj_cuda_make(s->device, stream, n_rows, &out->end, s->err));
    find_ends<<<oj_blocks(n_rows, BLOCK), BLOCK, 0, stream>>>(
        n_rows, s->pairs.row.n, s->pairs.row.data, s->place_of.data,
        out->end.data);
    OJ_CUDA_TRY_LAUNCH("gathering pairs", s->err);
    return OJ_OK;
}

/* The pairs less those that are surely none. */
static oj_status keep_rest(struct screen_search *s, int64_t n_rows,
                           struct oj_cuda_screen_found *out)
{
    struct oj_cuda_device *device = s->device;
    cudaStream_t stream = device->stream;
    int64_t n = s->pairs.row.n;
    OJ_TRY(oj_cuda_make(device, stream, n + 1, &s->place_of, s->err));
    count_kept<<<oj_blocks(n + 1, BLOCK), BLOCK, 0, stream>>>(n, s->said.data,
                                                              s->place_of.data);
    OJ_CUDA_TRY_LAUNCH("gathering pairs", s->err);
    OJ_TRY(oj_cuda_scan_total(device, stream, &s->scratch, s->place_of.data, n,
                              &out->n_pairs, "gathering pairs", s->err));
    OJ_TRY(oj_cuda_make(device, stream, out->n_pairs, &out->feature, &out->said,
                        s->err));
    keep<<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
        n, s->pairs.feature.data, s->said.data, s->place_of.data,
        out->feature.data, out->said.data);
    OJ_CUDA_TRY_LAUNCH("gathering pairs", s->err);
    return set_ends(s, n_rows, out);
}

static oj_status look_at_rows(struct screen_search *s,
                              const struct oj_flat *rows)
{
    const struct oj_device_tree *tree = &s->place->tree.tree;
    cudaStream_t stream = s->device->stream;
    OJ_TRY(oj_cuda_layer_make(s->device, rows, NULL, NULL, &s->layer, s->err));
    OJ_TRY(oj_cuda_screen_check(&s->layer, s->err));
    OJ_TRY(
        oj_cuda_meet_side_make(s->device, stream, &s->layer, &s->side, s->err));
    if (!s->rule->asks_meeting)
        return OJ_OK;
    return oj_cuda_meet_side_add_edges(s->device, stream, tree->x0, tree->y0,
                                       &s->side, s->err);
}

static oj_status search(struct screen_search *s, const struct oj_flat *rows,
                        struct oj_cuda_screen_found *out)
{
    const struct oj_cuda_screen_place *place = s->place;
    struct oj_cuda_device *device = s->device;
    OJ_TRY(look_at_rows(s, rows));
    OJ_TRY(oj_cuda_box_pairs_find(
        device, device->stream, &place->tree, place->side.feature.data,
        s->side.feature.data, 0, rows->n_features,
        (enum oj_box_test)s->rule->test, MOST_PAIRS, &s->pairs, s->err));
    if (s->rule->asks_meeting && s->pairs.row.n > 0)
    {
        OJ_TRY(oj_cuda_make(device, device->stream, s->pairs.row.n, &s->said,
                            s->err));
        OJ_TRY(oj_cuda_meet(device, device->stream, place->tree.tree.x0,
                            place->tree.tree.y0, &s->side, &place->side,
                            &s->pairs, s->said.data, s->err));
        return keep_rest(s, rows->n_features, out);
    }
    OJ_TRY(set_ends(s, rows->n_features, out));
    out->n_pairs = s->pairs.row.n;
    out->feature = s->pairs.feature;
    memset(&s->pairs.feature, 0, sizeof s->pairs.feature);
    return OJ_OK;
}

oj_status oj_cuda_screen_rows(const struct oj_cuda_screen_place *place,
                              struct oj_cuda_screen_lane *lane,
                              const struct oj_screen_rule *rule,
                              const struct oj_flat *input, int64_t first,
                              int64_t n, struct oj_cuda_screen_found *out,
                              struct oj_error *err)
{
    struct oj_cuda_device *device = &lane->device;
    cudaStream_t stream = device->stream;
    struct oj_cuda_screen_found found = {};
    struct screen_search s = {};
    struct oj_flat rows;
    oj_status status;
    OJ_TRY(view_rows(lane, input, first, n, &rows, err));
    s.place = place;
    s.device = device;
    s.rule = rule;
    s.err = err;
    status = search(&s, &rows, &found);
    oj_cuda_drop(device, stream, &s.place_of, &s.scratch, &s.said);
    oj_cuda_box_pairs_drop(device, stream, &s.pairs);
    oj_cuda_meet_side_drop(device, stream, &s.side);
    oj_cuda_layer_drop(device, &s.layer);
    if (status != OJ_OK)
    {
        /* the stage may still be read */
        (void)cudaStreamSynchronize(stream);
        oj_cuda_screen_found_drop(lane, &found);
        return status;
    }
    *out = found;
    return OJ_OK;
}

void oj_cuda_screen_found_drop(struct oj_cuda_screen_lane *lane,
                               struct oj_cuda_screen_found *found)
{
    cudaStream_t stream = lane->device.stream;
    oj_cuda_drop(&lane->device, stream, &found->end, &found->feature,
                 &found->said);
    found->n_pairs = 0;
}
