/** Rows of a batch against the join side of a screen, on its devices.
 *
 *  rows of the caller -> layer on the device --tree--> pairs of boxes --meet-->
 *  pairs that are not surely none
 */
#include "cuda_screen.h"

#include "../../flatten/base/oj_array.h"
#include "../device/cuda_copy.h"
#include "../device/cuda_cub.cuh"
#include "../device/cuda_threads.h"
#include "../device/cuda_work.cuh"
#include "../device/cuda_worker_status.h"
#include "../index/cuda_index.h"
#include "cuda_meet.h"

#include <string.h>

#define BLOCK 256

/** The join side on one device. */
struct screen_place
{
    struct oj_cuda_device device;
    struct oj_cuda_memory memory; /* of layer and tree */
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side;
    struct oj_cuda_tree tree; /**< of the features' boxes */
};

/** What one thread sends rows through a device with; zeroed memory is a valid
 *  empty one. */
struct screen_lane
{
    struct oj_cuda_device device; /**< its own stream, and its part of the
                                       memory that may be used */
    struct oj_cuda_stage stage;   /**< for offsets of rows */
};

/** Pairs of n rows on the device of a lane, row by row; owner. */
struct screen_found
{
    int64_t n_pairs;
    struct oj_cuda_array<int64_t> end;     /**< [n] pairs of rows up to it */
    struct oj_cuda_array<int32_t> feature; /**< [n_pairs] ordinal */
    struct oj_cuda_array<uint8_t> said;    /**< [n_pairs] enum oj_said, or
                                                empty: what the rule says */
};

enum
{
    MOST_LANES = 64
};

struct oj_gpu_screen
{
    struct oj_screen_rule rule;
    struct oj_options options;
    int n_places;
    struct screen_place *place;          /**< [n_places] */
    struct screen_lane lane[MOST_LANES]; /**< i is on place
                                                              i % n_places */
};

/* Pairs on the device at a time: more than this, or than memory holds, come in
 * several goes of fewer rows. */
#define MOST_PAIRS ((int64_t)1 << 26)

/* Coordinates whose differences are far from an overflow. */
#define LARGEST 1e150

/* Worth threads. */
#define MANY_OFFSETS ((int64_t)1 << 18)

static oj_status check_coordinates(const struct oj_cuda_layer *layer,
                                   struct oj_error *err)
{
    if (layer->n_segments > 0 && !(layer->magnitude < LARGEST))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "coordinates are too large for the GPU");
    return OJ_OK;
}

/* --- lanes ---------------------------------------------------------------- */

static oj_status make_lane(const struct screen_place *place, int64_t limit,
                           struct screen_lane *lane, struct oj_error *err)
{
    if (lane->device.stream == NULL)
        OJ_TRY(oj_cuda_open(place->device.ordinal, limit, place->device.cancel,
                            &lane->device, err));
    OJ_CUDA_TRY(cudaSetDevice(lane->device.ordinal), "choosing a device", err);
    lane->device.limit = limit;
    lane->device.n_threads = place->device.n_threads;
    return OJ_OK;
}

static void free_lane(struct screen_lane *lane)
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

static oj_status stage_offsets(struct screen_lane *lane,
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
static oj_status view_rows(struct screen_lane *lane,
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
struct screen_search : oj_cuda_job
{
    const struct screen_place *place;
    const struct oj_screen_rule *rule;
    struct oj_cuda_memory memory; /* of layer */
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side;
    struct oj_cuda_box_pairs pairs;
    struct oj_cuda_array<uint8_t> said;
    struct oj_cuda_array<int64_t> place_of; /* of pairs that are kept */
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
                          struct screen_found *out)
{
    OJ_TRY(s->make(n_rows, &out->end));
    return s->run(n_rows, "gathering pairs", find_ends, n_rows, s->pairs.row.n,
                  s->pairs.row.data, s->place_of.data, out->end.data);
}

/* The pairs less those that are surely none. */
static oj_status keep_rest(struct screen_search *s, int64_t n_rows,
                           struct screen_found *out)
{
    int64_t n = s->pairs.row.n;
    OJ_TRY(s->make(n + 1, &s->place_of));
    OJ_TRY(s->run(n + 1, "gathering pairs", count_kept, n, s->said.data,
                  s->place_of.data));
    OJ_TRY(
        s->scan_total(s->place_of.data, n, &out->n_pairs, "gathering pairs"));
    OJ_TRY(s->make(out->n_pairs, &out->feature, &out->said));
    OJ_TRY(s->run(n, "gathering pairs", keep, n, s->pairs.feature.data,
                  s->said.data, s->place_of.data, out->feature.data,
                  out->said.data));
    return set_ends(s, n_rows, out);
}

static oj_status look_at_rows(struct screen_search *s,
                              const struct oj_flat *rows)
{
    const struct oj_device_tree *tree = &s->place->tree.tree;
    struct oj_cuda_work work(s->device, s->stream, "copying the layer", s->err);
    OJ_TRY(oj_cuda_layer_make(&work, rows, NULL, NULL, NULL, &s->layer));
    oj_cuda_hand_over(&work.memory, NULL, &s->memory);
    OJ_TRY(check_coordinates(&s->layer, s->err));
    OJ_TRY(oj_cuda_meet_side_make(s->device, s->stream, &s->layer, &s->side,
                                  s->err));
    if (!s->rule->asks_meeting)
        return OJ_OK;
    return oj_cuda_meet_side_add_edges(s->device, s->stream, tree->x0, tree->y0,
                                       &s->side, s->err);
}

static oj_status search(struct screen_search *s, const struct oj_flat *rows,
                        struct screen_found *out)
{
    const struct screen_place *place = s->place;
    struct oj_cuda_device *device = s->device;
    OJ_TRY(look_at_rows(s, rows));
    OJ_TRY(oj_cuda_box_pairs_find(
        device, device->stream, &place->tree, place->side.feature.data,
        s->side.feature.data, 0, rows->n_features,
        (enum oj_box_test)s->rule->test, MOST_PAIRS, &s->pairs, s->err));
    if (s->rule->asks_meeting && s->pairs.row.n > 0)
    {
        OJ_TRY(s->make(s->pairs.row.n, &s->said));
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

static void drop_found(struct screen_lane *lane, struct screen_found *found)
{
    cudaStream_t stream = lane->device.stream;
    oj_cuda_drop(&lane->device, stream, &found->end, &found->feature,
                 &found->said);
    found->n_pairs = 0;
}

static oj_status screen_rows(const struct screen_place *place,
                             struct screen_lane *lane,
                             const struct oj_screen_rule *rule,
                             const struct oj_flat *input, int64_t first,
                             int64_t n, struct screen_found *out,
                             struct oj_error *err)
{
    struct oj_cuda_device *device = &lane->device;
    cudaStream_t stream = device->stream;
    struct screen_found found = {};
    struct screen_search s = {};
    struct oj_flat rows;
    oj_status status;
    OJ_TRY(view_rows(lane, input, first, n, &rows, err));
    s.place = place;
    s.device = device;
    s.stream = stream;
    s.rule = rule;
    s.err = err;
    status = search(&s, &rows, &found);
    oj_cuda_drop(device, stream, &s.place_of, &s.scratch, &s.said);
    oj_cuda_box_pairs_drop(device, stream, &s.pairs);
    oj_cuda_meet_side_drop(device, stream, &s.side);
    oj_cuda_release(device, stream, &s.memory);
    if (status != OJ_OK)
    {
        /* the stage may still be read */
        (void)cudaStreamSynchronize(stream);
        drop_found(lane, &found);
        return status;
    }
    *out = found;
    return OJ_OK;
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

static oj_status build_tree(struct screen_place *place,
                            struct oj_cuda_work *keep)
{
    struct oj_cuda_work work(keep);
    int64_t n = place->layer.n_features;
    struct oj_tree_box *box;
    OJ_TRY(work.make(n, &box));
    OJ_TRY(work.run<BLOCK>(n, take_boxes, n, place->side.feature.data, box));
    return oj_cuda_tree_build(keep, &place->layer, n, box, &place->tree);
}

static oj_status make_layer(struct screen_place *place,
                            const struct oj_flat *join_side,
                            struct oj_error *err)
{
    struct oj_cuda_device *device = &place->device;
    struct oj_cuda_work work(device, device->stream, "indexing boxes", err);
    OJ_TRY(
        oj_cuda_layer_make(&work, join_side, NULL, NULL, NULL, &place->layer));
    OJ_TRY(check_coordinates(&place->layer, err));
    OJ_TRY(oj_cuda_meet_side_make(device, device->stream, &place->layer,
                                  &place->side, err));
    if (place->layer.n_segments > 0)
        OJ_TRY(build_tree(place, &work));
    oj_cuda_hand_over(&work.memory, NULL, &place->memory);
    return OJ_OK;
}

static oj_status prepare(const struct oj_gpu_screen *screen,
                         const struct oj_flat *join_side, int ordinal,
                         struct screen_place *place, struct oj_error *err)
{
    const struct oj_options *options = &screen->options;
    struct oj_cuda_device *device = &place->device;
    OJ_TRY(oj_cuda_open(ordinal, options->gpu_memory, options->cancel, device,
                        err));
    device->n_threads = options->n_threads;
    OJ_TRY(make_layer(place, join_side, err));
    if (screen->rule.asks_meeting)
        OJ_TRY(oj_cuda_meet_side_add_edges(
            device, device->stream, place->tree.tree.x0, place->tree.tree.y0,
            &place->side, err));
    OJ_CUDA_TRY(cudaStreamSynchronize(device->stream),
                "indexing the join layer", err);
    return OJ_OK;
}

static void free_place(struct screen_place *place)
{
    struct oj_cuda_device *device = &place->device;
    if (device->stream == NULL)
        return;
    (void)cudaSetDevice(device->ordinal);
    oj_cuda_meet_side_drop(device, device->stream, &place->side);
    oj_cuda_release(device, device->stream, &place->memory);
    oj_cuda_close(device);
}

static void free_screen(void *user)
{
    struct oj_gpu_screen *screen = (struct oj_gpu_screen *)user;
    for (int i = 0; i < MOST_LANES; i++)
        free_lane(&screen->lane[i]);
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
    screen->place = (struct screen_place *)oj_calloc(n, sizeof *screen->place);
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

static int64_t index_bytes(const struct screen_place *place)
{
    return oj_cuda_meet_side_bytes(&place->side) +
           place->tree.n_nodes * (int64_t)sizeof *place->tree.tree.node +
           place->tree.tree.n * (int64_t)sizeof *place->tree.order;
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

/* --- batches -------------------------------------------------------------- */

/* A batch is cut into chunks of rows that have about as many vertices, and
 * workers take chunk after chunk: each copies its rows in, waits for the
 * kernels and copies pairs out, while the others are elsewhere on that way.
 * Pairs come in the order of rows, so a chunk gets its place when those before
 * it are counted. */

/* Workers on a device, and how many vertices a chunk has.  Copies use several
 * threads and take less time than kernels: two workers are enough for both, and
 * a chunk costs 0.2 ms of calls, so chunks are large: with 735,488 lots in 3,
 * 12, 25 and 49 of them the search took 19.8, 22.3, 24.9 and 37.7 ms. */
static const int64_t most_lanes = 2;
static const int64_t least_chunk = 256 << 10, most_chunk = 8 << 20;

/* A row is as much work as so many vertices. */
#define ROW_WEIGHT 4

/* Bytes of a device for each vertex of a chunk and for each row, with as many
 * pairs as seems usual. */
#define VERTEX_BYTES 96
#define ROW_BYTES 768

struct cuda_screen_batch
{
    struct oj_gpu_screen *screen;
    const struct oj_flat *input;
    int64_t most;
    struct oj_screen_pairs *out;
    int64_t n_chunks;
    int n_workers;

    /* Shared; changed atomically. */
    int64_t next_chunk;

    pthread_rwlock_t pairs_lock; /* to read: the arrays of pairs stay where
                                    they are */
    pthread_mutex_t lock;        /* of turn */
    pthread_cond_t turned;
    int64_t turn; /* the chunk whose pairs are next */

    struct oj_cuda_workers workers; /* they need lanes */
};

struct cuda_screen_worker
{
    struct cuda_screen_batch *batch;
    const struct screen_place *place;
    struct screen_lane *lane;
    struct oj_error error;
};

/* Rows on their way. */
struct screened_rows
{
    int64_t chunk, first, n;
    int are_last; /* of their chunk */
};

/* Nobody waits for a turn that does not come. */
static void fail_batch(struct cuda_screen_batch *b, oj_status status,
                       const struct oj_error *error)
{
    oj_cuda_workers_told(&b->workers, status, error);
    pthread_mutex_lock(&b->lock);
    pthread_cond_broadcast(&b->turned);
    pthread_mutex_unlock(&b->lock);
}

/* --- chunks --------------------------------------------------------------- */

static int64_t weight_before(const struct oj_flat *input, int64_t row)
{
    return input->vertex_offset[input->ring_offset[input->part_offset[row]]] +
           ROW_WEIGHT * row;
}

/* The first row of a chunk, or of what comes after the last. */
static int64_t first_row(const struct cuda_screen_batch *b, int64_t chunk)
{
    const struct oj_flat *input = b->input;
    int64_t low = 0, high = input->n_features, weight;
    if (b->screen->options.gpu_batch > 0)
        return oj_least(chunk * b->screen->options.gpu_batch, high);
    weight = (int64_t)((double)weight_before(input, high) * (double)chunk /
                       (double)b->n_chunks);
    if (chunk >= b->n_chunks)
        return high;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (weight_before(input, middle) < weight)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t least_room(const struct oj_gpu_screen *screen)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < screen->n_places; i++)
        least = oj_least(least, oj_cuda_room_on(&screen->place[i].device));
    return least;
}

static void choose_sizes(struct cuda_screen_batch *b)
{
    const struct oj_gpu_screen *screen = b->screen;
    const struct oj_options *options = &screen->options;
    int64_t n_rows = b->input->n_features, n_places = screen->n_places;
    int64_t weight = weight_before(b->input, n_rows);
    int64_t bytes = weight * VERTEX_BYTES + n_rows * ROW_BYTES;
    int64_t room = least_room(screen) / 2;
    int64_t n_workers = oj_least(most_lanes * n_places, MOST_LANES);
    b->n_chunks = (weight + most_chunk - 1) / most_chunk;
    if (b->n_chunks < n_places)
        b->n_chunks = oj_least(n_places, weight / least_chunk);
    b->n_chunks = oj_most(oj_least(b->n_chunks, n_rows), 1);
    if (options->gpu_batch > 0)
        b->n_chunks = (n_rows + options->gpu_batch - 1) / options->gpu_batch;
    while (n_workers > n_places &&
           bytes / b->n_chunks * (n_workers / n_places) > room)
        n_workers--;
    b->n_workers = (int)oj_least(n_workers, b->n_chunks);
}

/* --- the place of pairs --------------------------------------------------- */

static oj_status too_many(const struct cuda_screen_batch *b,
                          struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                   "the batch has more candidates than %lld",
                   (long long)b->most);
}

/* 0: the batch has failed. */
static int wait_for_turn(struct cuda_screen_batch *b, int64_t chunk)
{
    int is_mine;
    pthread_mutex_lock(&b->lock);
    while (b->turn != chunk && !oj_cuda_workers_stopped(&b->workers))
        pthread_cond_wait(&b->turned, &b->lock);
    is_mine = b->turn == chunk && !oj_cuda_workers_stopped(&b->workers);
    pthread_mutex_unlock(&b->lock);
    return is_mine;
}

static void end_turn(struct cuda_screen_batch *b)
{
    pthread_mutex_lock(&b->lock);
    b->turn++;
    pthread_cond_broadcast(&b->turned);
    pthread_mutex_unlock(&b->lock);
}

static oj_status reserve_pairs(struct cuda_screen_batch *b, int64_t before,
                               int64_t n, struct oj_error *err)
{
    struct oj_screen_pairs *out = b->out;
    oj_status status;
    if (n <= out->cap_feature && n <= out->cap_said)
        return OJ_OK;
    pthread_rwlock_wrlock(&b->pairs_lock);
    status = oj_reserve(&out->feature, before, n, &out->cap_feature,
                        sizeof *out->feature, err);
    if (status == OJ_OK)
        status = oj_reserve(&out->said, before, n, &out->cap_said,
                            sizeof *out->said, err);
    pthread_rwlock_unlock(&b->pairs_lock);
    return status;
}

/* Gives n pairs their place behind all before; whose turn it is has out to
 * himself, but for the pairs that others write. */
static oj_status take_place(struct cuda_screen_batch *b, int64_t n,
                            int64_t *before, struct oj_error *err)
{
    struct oj_screen_pairs *out = b->out;
    int64_t all = out->n_pairs + n;
    if (b->most > 0 && b->input->n_features > 1 && all > b->most)
        return too_many(b, err);
    OJ_TRY(reserve_pairs(b, out->n_pairs, all, err));
    *before = out->n_pairs;
    out->n_pairs = all;
    return OJ_OK;
}

static oj_status fetch(struct cuda_screen_worker *w,
                       const struct screened_rows *rows,
                       const struct screen_found *found, int64_t before)
{
    const struct oj_screen_rule *rule = &w->batch->screen->rule;
    const struct oj_cuda_device *device = &w->lane->device;
    struct oj_screen_pairs *out = w->batch->out;
    int64_t *end = out->offset + rows->first + 1, n = found->n_pairs;
    OJ_TRY(oj_cuda_copy_out(device, device->stream, end, found->end.data,
                            rows->n * (int64_t)sizeof *end, &w->error));
    for (int64_t i = 0; before > 0 && i < rows->n; i++)
        end[i] += before;
    OJ_TRY(oj_cuda_copy_out(device, device->stream, out->feature + before,
                            found->feature.data,
                            n * (int64_t)sizeof *out->feature, &w->error));
    if (found->said.n > 0)
        return oj_cuda_copy_out(device, device->stream, out->said + before,
                                found->said.data, n, &w->error);
    if (n > 0)
        memset(out->said + before,
               rule->is_enough ? OJ_SAID_MEETS : OJ_SAID_NOTHING, (size_t)n);
    return OJ_OK;
}

static oj_status put_pairs(struct cuda_screen_worker *w,
                           const struct screened_rows *rows,
                           const struct screen_found *found)
{
    struct cuda_screen_batch *b = w->batch;
    int64_t before = 0;
    oj_status status;
    if (!wait_for_turn(b, rows->chunk))
        return OJ_OK;
    OJ_TRY(take_place(b, found->n_pairs, &before, &w->error));
    if (rows->are_last)
        end_turn(b);
    if (rows->n == 0)
        return OJ_OK;
    pthread_rwlock_rdlock(&b->pairs_lock);
    status = fetch(w, rows, found, before);
    pthread_rwlock_unlock(&b->pairs_lock);
    return status;
}

/* --- workers -------------------------------------------------------------- */

/* Without memory for so many rows their halves are tried. */
static oj_status take_rows(struct cuda_screen_worker *w,
                           const struct screened_rows *rows)
{
    struct cuda_screen_batch *b = w->batch;
    struct screen_found found = {};
    struct screened_rows half = *rows;
    oj_status status = OJ_OK;
    if (oj_cuda_workers_stopped(&b->workers))
        return OJ_OK;
    OJ_TRY(oj_check_cancel(b->screen->options.cancel, &w->error));
    if (rows->n > 0)
        status = screen_rows(w->place, w->lane, &b->screen->rule, b->input,
                             rows->first, rows->n, &found, &w->error);
    if (status == OJ_OK)
    {
        status = put_pairs(w, rows, &found);
        drop_found(w->lane, &found);
        return status;
    }
    if (status != OJ_ERR_NOMEM || rows->n < 2)
        return status;
    half.n = rows->n / 2;
    half.are_last = 0;
    OJ_TRY(take_rows(w, &half));
    half.first += half.n;
    half.n = rows->n - half.n;
    half.are_last = rows->are_last;
    return take_rows(w, &half);
}

static oj_status work(struct cuda_screen_worker *w)
{
    struct cuda_screen_batch *b = w->batch;
    while (!oj_cuda_workers_stopped(&b->workers))
    {
        struct screened_rows rows;
        rows.chunk = __atomic_fetch_add(&b->next_chunk, 1, __ATOMIC_RELAXED);
        if (rows.chunk >= b->n_chunks)
            break;
        rows.first = first_row(b, rows.chunk);
        rows.n = first_row(b, rows.chunk + 1) - rows.first;
        rows.are_last = 1;
        OJ_TRY(take_rows(w, &rows));
    }
    return OJ_OK;
}

/* What is left of the memory that may be used of a device is for its lanes; 0:
 * no limit. */
static int64_t limit_of(const struct cuda_screen_batch *b,
                        const struct screen_place *place)
{
    int64_t n_places = b->screen->n_places;
    int64_t on_each = (b->n_workers + n_places - 1) / n_places;
    int64_t limit = place->device.limit;
    return limit > 0 ? oj_most((limit - place->device.used) / on_each, 1) : 0;
}

/* A worker without a lane leaves the chunks to the others. */
static int take_lane(struct cuda_screen_worker *w)
{
    struct cuda_screen_batch *b = w->batch;
    oj_status status;
    if (__atomic_load_n(&b->next_chunk, __ATOMIC_RELAXED) >= b->n_chunks)
        return 0;
    status = make_lane(w->place, limit_of(b, w->place), w->lane, &w->error);
    oj_cuda_workers_ready(&b->workers, status, &w->error);
    if (status != OJ_OK)
        free_lane(w->lane);
    return status == OJ_OK;
}

static void run_worker(int i, void *user)
{
    struct cuda_screen_batch *b = (struct cuda_screen_batch *)user;
    struct oj_gpu_screen *screen = b->screen;
    struct cuda_screen_worker w = {};
    oj_status status;
    w.batch = b;
    w.place = &screen->place[i % screen->n_places];
    w.lane = &screen->lane[i];
    if (!take_lane(&w))
        return;
    status = work(&w);
    if (status != OJ_OK)
        fail_batch(b, status, &w.error);
    (void)cudaGetLastError();
}

/* --- a batch -------------------------------------------------------------- */

static oj_status find_all(struct cuda_screen_batch *b, struct oj_error *err)
{
    struct oj_screen_pairs *out = b->out;
    int64_t n = b->input->n_features;
    OJ_TRY(oj_reserve(&out->offset, 0, n + 1, &out->cap_offset,
                      sizeof *out->offset, err));
    out->n_rows = n;
    out->n_pairs = 0;
    out->offset[0] = 0;
    if (n == 0)
        return OJ_OK;
    choose_sizes(b);
    oj_cuda_workers_start(&b->workers);
    oj_cuda_side_by_side(b->n_workers, run_worker, b);
    return oj_cuda_workers_end(&b->workers, err);
}

oj_status oj_cuda_screen_find(struct oj_gpu_screen *screen,
                              const struct oj_flat *input, int64_t most,
                              struct oj_screen_pairs *out,
                              struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct cuda_screen_batch b = {};
    oj_status status;
    b.screen = screen;
    b.input = input;
    b.most = most;
    b.out = out;
    pthread_rwlock_init(&b.pairs_lock, NULL);
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.turned, NULL);
    status = oj_cuda_try_all(
        1, [&](int, struct oj_error *error) { return find_all(&b, error); },
        err);
    pthread_cond_destroy(&b.turned);
    pthread_mutex_destroy(&b.lock);
    pthread_rwlock_destroy(&b.pairs_lock);
    stats->filter_s += oj_clock_seconds() - start;
    return status;
}
