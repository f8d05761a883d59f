#include "cuda_screen.h"

#include "../../flatten/base/oj_array.h"
#include "../index/cuda_index.h"
#include "cuda_screen_index.h"

#define BLOCK 256

static __global__ void take_boxes(int64_t n,
                                  const struct oj_meet_feature *feature,
                                  struct oj_tree_box *box)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        box[i] = feature[i].box;
}

static oj_status build_tree(struct oj_cuda_screen_place *place,
                            struct oj_error *err)
{
    struct oj_cuda_device *device = &place->device;
    const struct oj_cuda_layer *layer = &place->layer;
    struct oj_tree_box extent = {layer->x0, layer->y0, layer->x1, layer->y1};
    oj_cuda_array<struct oj_tree_box> box = {NULL, 0};
    int64_t n = layer->n_features;
    oj_status status;
    OJ_TRY(oj_cuda_make(device, device->stream, n, &box, err));
    take_boxes<<<oj_blocks(n, BLOCK), BLOCK, 0, device->stream>>>(
        n, place->side.feature.data, box.data);
    status = oj_cuda_tree_build(device, &box, &extent, &place->tree, err);
    oj_cuda_drop(device, device->stream, &box);
    OJ_TRY(status);
    OJ_CUDA_TRY_LAUNCH("indexing boxes", err);
    return OJ_OK;
}

static oj_status prepare(const struct oj_gpu_screen *screen,
                         const struct oj_flat *join_side, int ordinal,
                         struct oj_cuda_screen_place *place,
                         struct oj_error *err)
{
    const struct oj_options *options = &screen->options;
    struct oj_cuda_device *device = &place->device;
    OJ_TRY(oj_cuda_open(ordinal, options->gpu_memory, options->cancel, device,
                        err));
    device->n_threads = options->n_threads;
    OJ_TRY(
        oj_cuda_layer_make(device, join_side, NULL, NULL, &place->layer, err));
    OJ_TRY(oj_cuda_screen_check(&place->layer, err));
    OJ_TRY(oj_cuda_meet_side_make(device, device->stream, &place->layer,
                                  &place->side, err));
    if (place->layer.n_segments > 0)
        OJ_TRY(build_tree(place, err));
    if (screen->rule.asks_meeting)
        OJ_TRY(oj_cuda_meet_side_add_edges(
            device, device->stream, place->tree.tree.x0, place->tree.tree.y0,
            &place->side, err));
    OJ_CUDA_TRY(cudaStreamSynchronize(device->stream),
                "indexing the join layer", err);
    return OJ_OK;
}

static void free_place(struct oj_cuda_screen_place *place)
{
    struct oj_cuda_device *device = &place->device;
    if (device->stream == NULL)
        return;
    (void)cudaSetDevice(device->ordinal);
    oj_cuda_tree_drop(device, &place->tree);
    oj_cuda_meet_side_drop(device, device->stream, &place->side);
    oj_cuda_layer_drop(device, &place->layer);
    oj_cuda_close(device);
}

static void free_screen(void *user)
{
    struct oj_gpu_screen *screen = (struct oj_gpu_screen *)user;
    for (int i = 0; i < OJ_CUDA_MOST_LANES; i++)
        oj_cuda_screen_lane_free(&screen->lane[i]);
    for (int i = 0; i < screen->n_places; i++)
        free_place(&screen->place[i]);
}

void oj_cuda_screen_free(struct oj_gpu_screen *screen)
{
    if (screen == NULL)
        return;
    oj_cuda_aside(free_screen, screen);
    oj_free(screen->place);
    oj_free(screen);
}

static oj_status make_places(struct oj_gpu_screen *screen,
                             const struct oj_flat *join_side,
                             struct oj_error *err)
{
    int ordinal[OJ_GPU_MAX_DEVICES];
    int n = oj_cuda_list_devices(screen->options.gpus, ordinal);
    screen->place =
        (struct oj_cuda_screen_place *)oj_calloc(n, sizeof *screen->place);
    if (screen->place == NULL)
        return oj_fail_nomem(err, n, sizeof *screen->place);
    screen->n_places = n;
    return oj_cuda_try_all(
        n,
        [&](int i, struct oj_error *error) {
            return prepare(screen, join_side, ordinal[i], &screen->place[i],
                           error);
        },
        err);
}

static int64_t index_bytes(const struct oj_cuda_screen_place *place)
{
    return oj_cuda_meet_side_bytes(&place->side) +
           oj_cuda_bytes(&place->tree.node, &place->tree.order);
}

oj_status oj_cuda_screen_index(const struct oj_flat *join_side,
                               const struct oj_screen_rule *rule,
                               const struct oj_options *options,
                               struct oj_gpu_screen **out,
                               struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct oj_gpu_screen *screen =
        (struct oj_gpu_screen *)oj_calloc(1, sizeof *screen);
    oj_status status;
    if (screen == NULL)
        return oj_fail_nomem(err, 1, sizeof *screen);
    screen->rule = *rule;
    screen->options = *options;
    status = make_places(screen, join_side, err);
    if (status != OJ_OK)
    {
        oj_cuda_screen_free(screen);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    for (int i = 0; i < screen->n_places; i++)
        stats->index_bytes += index_bytes(&screen->place[i]);
    *out = screen;
    return OJ_OK;
}
