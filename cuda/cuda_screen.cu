#include "cuda_screen.h"

#include "../flatten/oj_array.h"
#include "cuda_index.h"
#include "cuda_meet.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define BLOCK 256

/* Pairs on the device at a time: more than this, or than memory holds, come in
 * several goes of fewer rows. */
#define MOST_PAIRS ((int64_t)1 << 26)

/* Coordinates whose differences are far from an overflow. */
#define LARGEST 1e150

struct oj_gpu_screen
{
    struct oj_screen_rule rule;
    struct oj_cuda_device device;
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side;
    struct oj_cuda_tree tree; /* of the features' boxes */
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned blocks_of(int64_t n)
{
    return (unsigned)((n + BLOCK - 1) / BLOCK);
}

/* --- the join side -------------------------------------------------------- */

static __global__ void take_boxes(int64_t n,
                                  const struct oj_meet_feature *feature,
                                  struct oj_tree_box *box)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        box[i] = feature[i].box;
}

static oj_status refuse_large(const struct oj_cuda_layer *layer,
                              struct oj_error *err)
{
    if (layer->n_segments > 0 && !(layer->magnitude < LARGEST))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "coordinates are too large for the GPU");
    return OJ_OK;
}

static oj_status build_tree(struct oj_gpu_screen *screen, struct oj_error *err)
{
    struct oj_cuda_device *device = &screen->device;
    const struct oj_cuda_layer *layer = &screen->layer;
    struct oj_tree_box extent = {layer->x0, layer->y0, layer->x1, layer->y1};
    struct oj_cuda_array<struct oj_tree_box> box =
    {
    };
    int64_t n = layer->n_features;
    oj_status status;
    OJ_TRY(oj_cuda_make(device, device->stream, n, &box, err));
    take_boxes<<<blocks_of(n), BLOCK, 0, device->stream>>>(
        n, screen->side.feature.data, box.data);
    status = oj_cuda_tree_build(device, &box, &extent, &screen->tree, err);
    oj_cuda_drop(device, device->stream, &box);
    OJ_TRY(status);
    OJ_CUDA_TRY_LAUNCH("indexing boxes", err);
    return OJ_OK;
}

static oj_status prepare(struct oj_gpu_screen *screen,
                         const struct oj_flat *join_side,
                         const struct oj_options *options, struct oj_error *err)
{
    struct oj_cuda_device *device = &screen->device;
    int ordinal = 0;
    while (ordinal + 1 < OJ_GPU_MAX_DEVICES && options->gpus != 0 &&
           (options->gpus >> ordinal & 1) == 0)
        ordinal++;
    OJ_TRY(oj_cuda_open(ordinal, options->gpu_memory, options->cancel, device,
                        err));
    OJ_TRY(oj_cuda_layer_make(device, join_side, NULL, &screen->layer, err));
    OJ_TRY(refuse_large(&screen->layer, err));
    OJ_TRY(oj_cuda_meet_side_make(device, device->stream, &screen->layer,
                                  &screen->side, err));
    if (screen->layer.n_segments > 0)
        OJ_TRY(build_tree(screen, err));
    if (screen->rule.asks_meeting)
        OJ_TRY(oj_cuda_meet_side_add_edges(
            device, device->stream, screen->tree.tree.x0, screen->tree.tree.y0,
            &screen->side, err));
    OJ_CUDA_TRY(cudaStreamSynchronize(device->stream),
                "indexing the join layer", err);
    return OJ_OK;
}

static void free_screen(void *user)
{
    struct oj_gpu_screen *screen = (struct oj_gpu_screen *)user;
    struct oj_cuda_device *device = &screen->device;
    if (device->stream != NULL)
    {
        (void)cudaSetDevice(device->ordinal);
        oj_cuda_tree_drop(device, &screen->tree);
        oj_cuda_meet_side_drop(device, device->stream, &screen->side);
        oj_cuda_layer_drop(device, &screen->layer);
        oj_cuda_close(device);
    }
    oj_free(screen);
}

void oj_cuda_screen_free(struct oj_gpu_screen *screen)
{
    if (screen != NULL)
        oj_cuda_aside(free_screen, screen);
}

struct making
{
    struct oj_gpu_screen *screen;
    const struct oj_flat *join_side;
    const struct oj_options *options;
    struct oj_error *err;
    oj_status status;
};

static void prepare_aside(void *user)
{
    struct making *m = (struct making *)user;
    m->status = prepare(m->screen, m->join_side, m->options, m->err);
}

oj_status oj_cuda_screen_index(const struct oj_flat *join_side,
                               const struct oj_screen_rule *rule,
                               const struct oj_options *options,
                               struct oj_gpu_screen **out,
                               struct oj_stats *stats, struct oj_error *err)
{
    double start = now_s();
    struct making m;
    memset(&m, 0, sizeof m);
    m.screen = (struct oj_gpu_screen *)oj_calloc(1, sizeof *m.screen);
    if (m.screen == NULL)
        return oj_fail_nomem(err, 1, sizeof *m.screen);
    m.screen->rule = *rule;
    m.join_side = join_side;
    m.options = options;
    m.err = err;
    oj_cuda_aside(prepare_aside, &m);
    if (m.status != OJ_OK)
    {
        oj_cuda_screen_free(m.screen);
        return m.status;
    }
    stats->index_s += now_s() - start;
    stats->index_bytes += oj_cuda_meet_side_bytes(&m.screen->side);
    *out = m.screen;
    return OJ_OK;
}

/* --- a batch -------------------------------------------------------------- */

struct batch
{
    struct oj_gpu_screen *screen;
    const struct oj_flat *input;
    int64_t most;
    struct oj_screen_pairs *out;
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side;
    struct oj_error *err;
    oj_status status;

    /* Of the rows at hand. */
    struct oj_cuda_box_pairs pairs;
    struct oj_cuda_array<uint8_t> said;
};

/* What is surely no pair is left out. */
static __global__ void count_kept(int64_t n, const uint8_t *said,
                                  int64_t *count)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i <= n)
        count[i] = i < n && said[i] != OJ_SAID_APART;
}

static __global__ void keep(int64_t n, const struct oj_cuda_box_pairs from,
                            const uint8_t *said, const int64_t *place,
                            int32_t *row, int32_t *feature, uint8_t *kept_said)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t at;
    if (i >= n || said[i] == OJ_SAID_APART)
        return;
    at = place[i];
    row[at] = from.row.data[i];
    feature[at] = from.feature.data[i];
    kept_said[at] = said[i];
}

/* offset[i]: the first pair of row first + i or a later one. */
static __global__ void find_offsets(int64_t n_rows, int64_t first,
                                    int64_t n_pairs, const int32_t *row,
                                    int64_t before, int64_t *offset)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int64_t low = 0, high = n_pairs;
    if (i >= n_rows)
        return;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (row[middle] <= first + i)
            low = middle + 1;
        else
            high = middle;
    }
    offset[i] = before + low;
}

struct kept
{
    struct oj_cuda_array<int64_t> place;
    struct oj_cuda_box_pairs pairs;
    struct oj_cuda_array<uint8_t> said;
};

static void drop_kept(struct oj_cuda_device *device, struct kept *kept)
{
    oj_cuda_drop(device, device->stream, &kept->place);
    oj_cuda_box_pairs_drop(device, device->stream, &kept->pairs);
    oj_cuda_drop(device, device->stream, &kept->said);
}

static oj_status keep_into(struct batch *b, struct kept *kept)
{
    struct oj_cuda_device *device = &b->screen->device;
    cudaStream_t stream = device->stream;
    int64_t n = b->pairs.row.n, n_kept = 0;
    OJ_TRY(oj_cuda_make(device, stream, n + 1, &kept->place, b->err));
    count_kept<<<blocks_of(n + 1), BLOCK, 0, stream>>>(n, b->said.data,
                                                       kept->place.data);
    OJ_CUDA_TRY_LAUNCH("gathering pairs", b->err);
    OJ_TRY(
        oj_cuda_meet_sum(device, stream, kept->place.data, n, &n_kept, b->err));
    OJ_TRY(oj_cuda_make(device, stream, n_kept, &kept->pairs.row, b->err));
    OJ_TRY(oj_cuda_make(device, stream, n_kept, &kept->pairs.feature, b->err));
    OJ_TRY(oj_cuda_make(device, stream, n_kept, &kept->said, b->err));
    keep<<<blocks_of(n), BLOCK, 0, stream>>>(
        n, b->pairs, b->said.data, kept->place.data, kept->pairs.row.data,
        kept->pairs.feature.data, kept->said.data);
    OJ_CUDA_TRY_LAUNCH("gathering pairs", b->err);
    return OJ_OK;
}

/* The pairs at hand less those that are surely none. */
static oj_status drop_apart(struct batch *b)
{
    struct oj_cuda_device *device = &b->screen->device;
    struct kept kept;
    oj_status status;
    memset(&kept, 0, sizeof kept);
    status = keep_into(b, &kept);
    if (status == OJ_OK)
    {
        struct oj_cuda_box_pairs pairs = b->pairs;
        struct oj_cuda_array<uint8_t> said = b->said;
        b->pairs = kept.pairs;
        b->said = kept.said;
        kept.pairs = pairs;
        kept.said = said;
    }
    drop_kept(device, &kept);
    return status;
}

static oj_status too_many(const struct batch *b)
{
    return oj_fail(b->err, OJ_ERR_TOO_MANY_PAIRS,
                   "the batch has more candidates than %lld",
                   (long long)b->most);
}

/* The pairs of rows first .. first + n - 1 to the end of out. */
static oj_status download(struct batch *b, int64_t first, int64_t n)
{
    struct oj_cuda_device *device = &b->screen->device;
    cudaStream_t stream = device->stream;
    struct oj_screen_pairs *out = b->out;
    struct oj_cuda_array<int64_t> offset =
    {
    };
    int64_t before = out->n_pairs, n_pairs = b->pairs.row.n;
    int64_t all = before + n_pairs;
    size_t size = (size_t)n_pairs;
    if (b->most > 0 && b->input->n_features > 1 && all > b->most)
        return too_many(b);
    OJ_TRY(oj_reserve(&out->feature, before, all, &out->cap_feature,
                      sizeof *out->feature, b->err));
    OJ_TRY(oj_reserve(&out->said, before, all, &out->cap_said,
                      sizeof *out->said, b->err));
    OJ_TRY(oj_cuda_make(device, stream, n, &offset, b->err));
    find_offsets<<<blocks_of(n), BLOCK, 0, stream>>>(
        n, first, n_pairs, b->pairs.row.data, before, offset.data);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(out->offset + first + 1, offset.data,
                                (size_t)n * sizeof *out->offset,
                                cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess && n_pairs > 0)
        error = cudaMemcpyAsync(out->feature + before, b->pairs.feature.data,
                                size * sizeof *out->feature,
                                cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess && n_pairs > 0 && b->said.n > 0)
        error = cudaMemcpyAsync(out->said + before, b->said.data, size,
                                cudaMemcpyDeviceToHost, stream);
    oj_cuda_drop(device, stream, &offset);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    OJ_CUDA_TRY(error, "copying candidates", b->err);
    if (b->said.n == 0 && n_pairs > 0)
        memset(out->said + before,
               b->screen->rule.is_enough ? OJ_SAID_MEETS : OJ_SAID_NOTHING,
               size);
    out->n_pairs = all;
    return OJ_OK;
}

static oj_status find_rows(struct batch *b, int64_t first, int64_t n)
{
    struct oj_gpu_screen *screen = b->screen;
    struct oj_cuda_device *device = &screen->device;
    OJ_TRY(oj_cuda_box_pairs_find(
        device, device->stream, &screen->tree, screen->side.feature.data,
        b->side.feature.data, first, n, (enum oj_meet_test)screen->rule.test,
        MOST_PAIRS, &b->pairs, b->err));
    if (screen->rule.asks_meeting && b->pairs.row.n > 0)
    {
        OJ_TRY(oj_cuda_make(device, device->stream, b->pairs.row.n, &b->said,
                            b->err));
        OJ_TRY(oj_cuda_meet(device, device->stream, screen->tree.tree.x0,
                            screen->tree.tree.y0, &b->side, &screen->side,
                            &b->pairs, b->said.data, b->err));
        OJ_TRY(drop_apart(b));
    }
    return download(b, first, n);
}

static int is_cancelled(const struct oj_cuda_device *device)
{
    return device->cancel != NULL && *(const volatile int *)device->cancel != 0;
}

/* Without room for the pairs of so many rows their halves are tried. */
static oj_status find_in_parts(struct batch *b, int64_t first, int64_t n)
{
    struct oj_cuda_device *device = &b->screen->device;
    int64_t before = b->out->n_pairs;
    oj_status status;
    if (is_cancelled(device))
        return oj_fail(b->err, OJ_ERR_CANCELLED, "cancelled");
    status = find_rows(b, first, n);
    oj_cuda_box_pairs_drop(device, device->stream, &b->pairs);
    oj_cuda_drop(device, device->stream, &b->said);
    if (status != OJ_ERR_NOMEM || n < 2)
        return status;
    b->out->n_pairs = before;
    OJ_TRY(find_in_parts(b, first, n / 2));
    return find_in_parts(b, first + n / 2, n - n / 2);
}

static oj_status find_all(struct batch *b)
{
    struct oj_gpu_screen *screen = b->screen;
    struct oj_cuda_device *device = &screen->device;
    int64_t n = b->input->n_features;
    OJ_TRY(oj_reserve(&b->out->offset, 0, n + 1, &b->out->cap_offset,
                      sizeof *b->out->offset, b->err));
    b->out->n_rows = n;
    b->out->n_pairs = 0;
    b->out->offset[0] = 0;
    if (n == 0)
        return OJ_OK;
    OJ_CUDA_TRY(cudaSetDevice(device->ordinal), "choosing a device", b->err);
    OJ_TRY(oj_cuda_layer_make(device, b->input, NULL, &b->layer, b->err));
    OJ_TRY(refuse_large(&b->layer, b->err));
    OJ_TRY(oj_cuda_meet_side_make(device, device->stream, &b->layer, &b->side,
                                  b->err));
    if (screen->rule.asks_meeting)
        OJ_TRY(oj_cuda_meet_side_add_edges(
            device, device->stream, screen->tree.tree.x0, screen->tree.tree.y0,
            &b->side, b->err));
    return find_in_parts(b, 0, n);
}

static void find_aside(void *user)
{
    struct batch *b = (struct batch *)user;
    struct oj_cuda_device *device = &b->screen->device;
    b->status = find_all(b);
    oj_cuda_meet_side_drop(device, device->stream, &b->side);
    oj_cuda_layer_drop(device, &b->layer);
}

oj_status oj_cuda_screen_find(struct oj_gpu_screen *screen,
                              const struct oj_flat *input, int64_t most,
                              struct oj_screen_pairs *out,
                              struct oj_stats *stats, struct oj_error *err)
{
    double start = now_s();
    struct batch b;
    memset(&b, 0, sizeof b);
    b.screen = screen;
    b.input = input;
    b.most = most;
    b.out = out;
    b.err = err;
    oj_cuda_aside(find_aside, &b);
    stats->filter_s += now_s() - start;
    return b.status;
}
