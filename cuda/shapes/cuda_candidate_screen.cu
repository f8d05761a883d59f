/** Rows of a batch against the join side of a screen, on the first device of
 *  its options: two were no faster than one (BENCHMARKS.md, "On a GPU").
 *
 *  rows of the caller -> layer on the device --tree--> pairs of boxes --meet-->
 *  pairs that are not surely none
 */
#include "../../flatten/base/oj_array.h"
#include "../device/cuda_copy.h"
#include "../device/cuda_host_threads.h"
#include "../device/cuda_stream_work.cuh"
#include "../device/cuda_worker_status.h"
#include "../index/cuda_index.h"
#include "cuda_intersects.h"

#include <string.h>

/** The join side on one device. */
struct screen_place
{
    struct oj_cuda_device device;
    struct oj_cuda_memory memory; /* of all that follows */
    int64_t index_bytes;          /* less those of the layer */
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side;
    struct oj_cuda_tree tree; /**< of the features' boxes */
};

/** Pairs of n rows on a device, row by row. */
struct screen_found
{
    int64_t n_pairs;
    int64_t *end;     /**< [n] pairs of rows up to it */
    int32_t *feature; /**< [n_pairs] ordinal */
    uint8_t *said;    /**< [n_pairs] enum oj_said, or NULL: what the rule
                           says */
};

/* Threads that send rows to the device.  Copies use several threads and take
 * less time than kernels: two are enough for both. */
#define MOST_LANES 2

struct oj_gpu_screen
{
    struct oj_screen_rule rule;
    struct oj_options options;
    struct screen_place place;

    /** What threads send rows through: each has a stream of its own and its
     *  part of the memory that may be used. Those without a stream are not
     *  there yet. */
    struct oj_cuda_device lane[MOST_LANES];
};

/* Pairs on the device at a time: more than this, or than memory holds, come in
 * several goes of fewer rows. */
#define MOST_PAIRS ((int64_t)1 << 26)

/* Coordinates whose differences are far from an overflow. */
#define LARGEST 1e150

/* --- rows as a layer of their own ------------------------------------------
 */

static struct oj_flat view_rows_as_layer(const struct oj_flat *input,
                                         int64_t first, int64_t n)
{
    int64_t part = input->part_offset[first];
    int64_t end_part = input->part_offset[first + n];
    int64_t ring = input->ring_offset[part];
    int64_t end_ring = input->ring_offset[end_part];
    int64_t vertex = input->vertex_offset[ring];
    struct oj_flat rows = {};
    rows.n_features = n;
    rows.n_parts = end_part - part;
    rows.n_rings = end_ring - ring;
    rows.n_vertices = input->vertex_offset[end_ring] - vertex;
    rows.part_kinds = input->part_kinds;
    rows.x = input->x + vertex;
    rows.y = input->y + vertex;
    rows.part_kind = input->part_kind + part;
    rows.part_offset = input->part_offset + first;
    rows.ring_offset = input->ring_offset + part;
    rows.vertex_offset = input->vertex_offset + ring;
    return rows;
}

static oj_status upload_layer_for_intersection(struct oj_cuda_work *work,
                                               const struct oj_flat *flat,
                                               struct oj_cuda_layer *layer,
                                               struct oj_cuda_meet_side *side)
{
    OJ_TRY(oj_cuda_layer_make(work, flat, NULL, NULL, NULL, layer));
    if (layer->n_segments > 0 && !(layer->magnitude < LARGEST))
        return oj_fail(work->err, OJ_ERR_UNSUPPORTED,
                       "coordinates are too large for the GPU");
    return oj_cuda_meet_side_make(work, layer, side);
}

/* --- pairs ---------------------------------------------------------------- */

/* What is surely no pair is left out. */
struct is_kept
{
    int64_t n;
    const uint8_t *said;

    __device__ int64_t operator()(ptrdiff_t i) const
    {
        return i < n && said[i] != OJ_SAID_APART;
    }
};

/* Pairs of rows up to number i, which ascend in row [n]. */
static __device__ int64_t end_of_pairs_up_to_row(const int32_t *row, int64_t n,
                                                 int64_t i)
{
    int64_t low = 0, high = n;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (row[middle] <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* place: of the pairs that are kept, or NULL: all are. */
static oj_status
compute_end_offsets_of_rows(struct oj_cuda_work *keep, int64_t n_rows,
                            const struct oj_cuda_box_pairs &pairs,
                            const int64_t *place, struct screen_found *out)
{
    const int32_t *row = pairs.row;
    int64_t n = pairs.n, *end;
    OJ_TRY(keep->make(n_rows, &out->end));
    end = out->end;
    return keep->each(n_rows,
                      [=] __device__(int64_t i)
                      {
                          int64_t at = end_of_pairs_up_to_row(row, n, i);
                          end[i] = place != NULL ? place[at] : at;
                      });
}

/* The pairs less those that are surely none. */
static oj_status
keep_pairs_not_surely_disjoint(struct oj_cuda_work *keep,
                               struct oj_cuda_work *work, int64_t n_rows,
                               const struct oj_cuda_box_pairs &pairs,
                               const uint8_t *said, struct screen_found *out)
{
    const int32_t *feature = pairs.feature;
    int64_t *place;
    OJ_TRY(work->scan_computed(pairs.n, is_kept{pairs.n, said}, &place,
                               &out->n_pairs));
    OJ_TRY(keep->make(out->n_pairs, &out->feature));
    OJ_TRY(keep->make(out->n_pairs, &out->said));
    const struct screen_found to = *out;
    OJ_TRY(work->each(pairs.n,
                      [=] __device__(int64_t i)
                      {
                          if (said[i] == OJ_SAID_APART)
                              return;
                          to.feature[place[i]] = feature[i];
                          to.said[place[i]] = said[i];
                      }));
    return compute_end_offsets_of_rows(keep, n_rows, pairs, place, out);
}

/* out: keep's. */
static oj_status find_and_classify_candidates(const struct screen_place *place,
                                              const struct oj_screen_rule *rule,
                                              const struct oj_flat *rows,
                                              struct oj_cuda_work *keep,
                                              struct screen_found *out)
{
    struct oj_cuda_work work(keep);
    const struct oj_device_tree *tree = &place->tree.tree;
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side = {};
    struct oj_cuda_box_pairs pairs;
    uint8_t *said;
    OJ_TRY(upload_layer_for_intersection(&work, rows, &layer, &side));
    if (rule->asks_meeting)
        OJ_TRY(oj_cuda_meet_side_add_edges(&work, tree->x0, tree->y0, &side));
    OJ_TRY(oj_cuda_box_pairs_find(
        &work, &place->tree, place->side.feature, side.feature,
        rows->n_features, (enum oj_box_test)rule->test, MOST_PAIRS, &pairs));
    if (rule->asks_meeting && pairs.n > 0)
    {
        OJ_TRY(work.make(pairs.n, &said));
        OJ_TRY(oj_cuda_meet(&work, tree->x0, tree->y0, &side, &place->side,
                            &pairs, said));
        return keep_pairs_not_surely_disjoint(keep, &work, rows->n_features,
                                              pairs, said, out);
    }
    OJ_TRY(
        compute_end_offsets_of_rows(keep, rows->n_features, pairs, NULL, out));
    work.hand_over(pairs.feature, keep);
    out->n_pairs = pairs.n;
    out->feature = pairs.feature;
    return OJ_OK;
}

/* --- the join side -------------------------------------------------------- */

static oj_status build_tree(struct screen_place *place,
                            struct oj_cuda_work *keep)
{
    struct oj_cuda_work work(keep);
    const struct oj_meet_feature *feature = place->side.feature;
    int64_t n = place->layer.n_features;
    struct oj_box *box;
    OJ_TRY(work.make(n, &box));
    OJ_TRY(
        work.each(n, [=] __device__(int64_t i) { box[i] = feature[i].box; }));
    return oj_cuda_tree_build(keep, &place->layer, n, box, &place->tree);
}

static oj_status
upload_join_side_and_build_tree(struct oj_gpu_screen *screen,
                                const struct oj_flat *join_side,
                                struct oj_error *err)
{
    const struct oj_options *options = &screen->options;
    struct screen_place *place = &screen->place;
    struct oj_cuda_device *device = &place->device;
    const struct oj_device_tree *tree = &place->tree.tree;
    int ordinal[OJ_GPU_MAX_DEVICES];
    (void)oj_cuda_list_devices(options->gpus, ordinal);
    OJ_TRY(oj_cuda_open(ordinal[0], options->gpu_memory, options->cancel,
                        device, err));
    device->n_threads = options->n_threads;
    struct oj_cuda_work layer(device, device->stream, "indexing boxes", err);
    struct oj_cuda_work work(&layer);
    OJ_TRY(upload_layer_for_intersection(&layer, join_side, &place->layer,
                                         &place->side));
    if (place->layer.n_segments > 0)
        OJ_TRY(build_tree(place, &work));
    if (screen->rule.asks_meeting)
        OJ_TRY(oj_cuda_meet_side_add_edges(&work, tree->x0, tree->y0,
                                           &place->side));
    OJ_TRY(work.wait());
    layer.hand_over(place->side.feature, &work);
    place->index_bytes = oj_cuda_memory_bytes(&work.memory);
    oj_cuda_hand_over(&layer.memory, NULL, &place->memory);
    oj_cuda_hand_over(&work.memory, NULL, &place->memory);
    return OJ_OK;
}

static void close_worker_device(struct oj_cuda_device *lane)
{
    oj_cuda_close(lane);
    (void)cudaGetLastError();
}

static void free_screen_devices(struct oj_gpu_screen *screen)
{
    for (int i = 0; i < MOST_LANES; i++)
        close_worker_device(&screen->lane[i]);
    if (screen->place.device.stream == NULL)
        return;
    (void)cudaSetDevice(screen->place.device.ordinal);
    oj_cuda_release(&screen->place.device, screen->place.device.stream,
                    &screen->place.memory);
    oj_cuda_close(&screen->place.device);
}

void oj_cuda_screen_free(struct oj_gpu_screen *screen)
{
    if (screen == NULL)
        return;
    oj_cuda_aside([=]() { free_screen_devices(screen); });
    oj_free(screen);
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
    status = oj_cuda_try_all(
        1,
        [&](int, struct oj_error *error)
        { return upload_join_side_and_build_tree(screen, join_side, error); },
        err);
    if (status != OJ_OK)
    {
        oj_cuda_screen_free(screen);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes += screen->place.index_bytes;
    *out = screen;
    return OJ_OK;
}

/* --- batches -------------------------------------------------------------- */

/* A batch is cut into chunks of rows that have about as many vertices, and
 * workers take chunk after chunk: each copies its rows in, waits for the
 * kernels and copies pairs out, while the others are elsewhere on that way.
 * Pairs come in the order of rows, so a chunk gets its place when those before
 * it are counted. */

/* How many vertices a chunk has.  It costs 0.2 ms of calls, so chunks are
 * large: with 735,488 lots in 3, 12, 25 and 49 of them the search took 19.8,
 * 22.3, 24.9 and 37.7 ms. */
static const int64_t most_chunk = 8 << 20;

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
    int64_t turn; /* the row whose pairs are next */

    struct oj_cuda_workers workers; /* they need lanes */
};

struct cuda_screen_worker
{
    struct cuda_screen_batch *batch;
    struct oj_cuda_device *lane;
    struct oj_error error;
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

static int64_t cumulative_row_weight(const struct oj_flat *input, int64_t row)
{
    return input->vertex_offset[input->ring_offset[input->part_offset[row]]] +
           ROW_WEIGHT * row;
}

/* The first row of a chunk, or of what comes after the last. */
static int64_t first_row_of_chunk(const struct cuda_screen_batch *b,
                                  int64_t chunk)
{
    const struct oj_flat *input = b->input;
    int64_t low = 0, high = input->n_features, weight;
    if (b->screen->options.gpu_batch > 0)
        return oj_least(chunk * b->screen->options.gpu_batch, high);
    weight = (int64_t)((double)cumulative_row_weight(input, high) *
                       (double)chunk / (double)b->n_chunks);
    if (chunk >= b->n_chunks)
        return high;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (cumulative_row_weight(input, middle) < weight)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void choose_chunk_count(struct cuda_screen_batch *b)
{
    const struct oj_gpu_screen *screen = b->screen;
    const struct oj_options *options = &screen->options;
    int64_t n_rows = b->input->n_features;
    int64_t weight = cumulative_row_weight(b->input, n_rows);
    int64_t bytes = weight * VERTEX_BYTES + n_rows * ROW_BYTES;
    int64_t room = oj_cuda_room_on(&screen->place.device) / 2;
    b->n_chunks = (weight + most_chunk - 1) / most_chunk;
    b->n_chunks = oj_most(oj_least(b->n_chunks, n_rows), 1);
    if (options->gpu_batch > 0)
        b->n_chunks = (n_rows + options->gpu_batch - 1) / options->gpu_batch;
    b->n_workers = b->n_chunks > 1 && bytes / b->n_chunks * MOST_LANES <= room
                       ? MOST_LANES
                       : 1;
}

/* --- the place of pairs --------------------------------------------------- */

/* 0: the batch has failed. */
static int wait_for_output_turn(struct cuda_screen_batch *b, int64_t row)
{
    int is_stopped;
    pthread_mutex_lock(&b->lock);
    while (!(is_stopped = oj_cuda_workers_stopped(&b->workers)) &&
           b->turn != row)
        pthread_cond_wait(&b->turned, &b->lock);
    pthread_mutex_unlock(&b->lock);
    return !is_stopped;
}

static void advance_output_turn(struct cuda_screen_batch *b, int64_t n)
{
    pthread_mutex_lock(&b->lock);
    b->turn += n;
    pthread_cond_broadcast(&b->turned);
    pthread_mutex_unlock(&b->lock);
}

static oj_status grow_output_pairs(struct cuda_screen_batch *b, int64_t before,
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
static oj_status reserve_output_place(struct cuda_screen_batch *b, int64_t n,
                                      int64_t *before, struct oj_error *err)
{
    struct oj_screen_pairs *out = b->out;
    int64_t all = out->n_pairs + n;
    if (b->most > 0 && b->input->n_features > 1 && all > b->most)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more candidates than %lld",
                       (long long)b->most);
    OJ_TRY(grow_output_pairs(b, out->n_pairs, all, err));
    *before = out->n_pairs;
    out->n_pairs = all;
    return OJ_OK;
}

static oj_status copy_pairs_to_host(struct cuda_screen_worker *w, int64_t first,
                                    int64_t n_rows,
                                    const struct screen_found *found,
                                    int64_t before)
{
    const struct oj_screen_rule *rule = &w->batch->screen->rule;
    const struct oj_cuda_device *device = w->lane;
    struct oj_screen_pairs *out = w->batch->out;
    int64_t *end = out->offset + first + 1, n = found->n_pairs;
    OJ_TRY(oj_cuda_copy_out(device, device->stream, end, found->end,
                            n_rows * (int64_t)sizeof *end, &w->error));
    for (int64_t i = 0; before > 0 && i < n_rows; i++)
        end[i] += before;
    OJ_TRY(oj_cuda_copy_out(device, device->stream, out->feature + before,
                            found->feature, n * (int64_t)sizeof *out->feature,
                            &w->error));
    if (found->said != NULL)
        return oj_cuda_copy_out(device, device->stream, out->said + before,
                                found->said, n, &w->error);
    if (n > 0)
        memset(out->said + before,
               rule->is_enough ? OJ_SAID_MEETS : OJ_SAID_NOTHING, (size_t)n);
    return OJ_OK;
}

/* The pairs of n rows from first on. */
static oj_status output_pairs_in_row_order(struct cuda_screen_worker *w,
                                           int64_t first, int64_t n,
                                           const struct screen_found *found)
{
    struct cuda_screen_batch *b = w->batch;
    int64_t before = 0;
    oj_status status;
    if (!wait_for_output_turn(b, first))
        return OJ_OK;
    OJ_TRY(reserve_output_place(b, found->n_pairs, &before, &w->error));
    advance_output_turn(b, n);
    pthread_rwlock_rdlock(&b->pairs_lock);
    status = copy_pairs_to_host(w, first, n, found, before);
    pthread_rwlock_unlock(&b->pairs_lock);
    return status;
}

/* --- workers -------------------------------------------------------------- */

/* Without memory for so many rows their halves are tried. */
static oj_status screen_row_range(struct cuda_screen_worker *w, int64_t first,
                                  int64_t n)
{
    struct cuda_screen_batch *b = w->batch;
    oj_status status;
    if (oj_cuda_workers_stopped(&b->workers))
        return OJ_OK;
    OJ_TRY(oj_check_cancel(b->screen->options.cancel, &w->error));
    {
        struct oj_cuda_work work(w->lane, w->lane->stream, "finding candidates",
                                 &w->error);
        struct screen_found found = {};
        struct oj_flat rows = view_rows_as_layer(b->input, first, n);
        status = find_and_classify_candidates(
            &b->screen->place, &b->screen->rule, &rows, &work, &found);
        if (status == OJ_OK)
            return output_pairs_in_row_order(w, first, n, &found);
    }
    if (status != OJ_ERR_NOMEM || n < 2)
        return status;
    OJ_TRY(screen_row_range(w, first, n / 2));
    return screen_row_range(w, first + n / 2, n - n / 2);
}

static oj_status screen_chunks_until_none_left(struct cuda_screen_worker *w)
{
    struct cuda_screen_batch *b = w->batch;
    while (!oj_cuda_workers_stopped(&b->workers))
    {
        int64_t chunk = __atomic_fetch_add(&b->next_chunk, 1, __ATOMIC_RELAXED);
        int64_t first, end;
        if (chunk >= b->n_chunks)
            break;
        first = first_row_of_chunk(b, chunk);
        end = first_row_of_chunk(b, chunk + 1);
        if (first < end)
            OJ_TRY(screen_row_range(w, first, end - first));
    }
    return OJ_OK;
}

/* What is left of the memory that may be used is for the lanes. */
static oj_status open_worker_device(struct cuda_screen_worker *w)
{
    const struct oj_cuda_device *device = &w->batch->screen->place.device;
    int64_t left = device->limit - device->used;
    int64_t limit =
        device->limit > 0 ? oj_most(left / w->batch->n_workers, 1) : 0;
    if (w->lane->stream == NULL)
        OJ_TRY(oj_cuda_open(device->ordinal, limit, device->cancel, w->lane,
                            &w->error));
    OJ_CUDA_TRY(cudaSetDevice(device->ordinal), "choosing a device", &w->error);
    w->lane->limit = limit;
    w->lane->n_threads = device->n_threads;
    return OJ_OK;
}

/* A worker without a lane leaves the chunks to the others. */
static int acquire_worker_device(struct cuda_screen_worker *w)
{
    struct cuda_screen_batch *b = w->batch;
    oj_status status;
    if (__atomic_load_n(&b->next_chunk, __ATOMIC_RELAXED) >= b->n_chunks)
        return 0;
    status = open_worker_device(w);
    oj_cuda_workers_ready(&b->workers, status, &w->error);
    if (status != OJ_OK)
        close_worker_device(w->lane);
    return status == OJ_OK;
}

static void run_worker(int i, void *user)
{
    struct cuda_screen_batch *b = (struct cuda_screen_batch *)user;
    struct cuda_screen_worker w = {};
    oj_status status;
    w.batch = b;
    w.lane = &b->screen->lane[i];
    if (!acquire_worker_device(&w))
        return;
    status = screen_chunks_until_none_left(&w);
    if (status != OJ_OK)
        fail_batch(b, status, &w.error);
    (void)cudaGetLastError();
}

/* --- a batch -------------------------------------------------------------- */

static oj_status find_candidates_of_batch(struct cuda_screen_batch *b,
                                          struct oj_error *err)
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
    choose_chunk_count(b);
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
        1,
        [&](int, struct oj_error *error)
        { return find_candidates_of_batch(&b, error); },
        err);
    pthread_cond_destroy(&b.turned);
    pthread_mutex_destroy(&b.lock);
    pthread_rwlock_destroy(&b.pairs_lock);
    stats->filter_s += oj_clock_seconds() - start;
    return status;
}
