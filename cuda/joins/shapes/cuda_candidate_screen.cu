/** The GPU screen: candidates of a batch. Each device has the join side, and
 *  screens consecutive rows.
 *
 *    rows of the caller -> layer in device memory -> pairs whose boxes
 *    intersect (packed tree) -> verdicts (oj_meet.h) -> pairs that are not
 *    surely disjoint -> appended to the pairs of the rows before */
#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/device/cuda_copy.h"
#include "../../foundations/device/cuda_peers.h"
#include "../../foundations/device/cuda_stream_work.cuh"
#include "../../foundations/index/cuda_index.h"
#include "cuda_intersects.h"

#include <string.h>

/** The join side on one device. */
struct screen_place
{
    struct oj_cuda_device device;
    struct oj_cuda_memory memory; /* owns all arrays below */
    int64_t index_bytes;          /* bytes of the index, without the layer */
    struct oj_cuda_layer layer;
    struct oj_cuda_meet_side side;
    struct oj_cuda_tree tree; /**< tree of the features' boxes */
};

/** Pairs of n rows in device memory, sorted by row. */
struct screen_found
{
    int64_t n_pairs;
    int64_t *end;     /**< [n] number of pairs up to and including the row */
    int32_t *feature; /**< [n_pairs] ordinal */
    /** [n_pairs] enum oj_pair_verdict, or NULL: all pairs have one verdict:
     *  OJ_VERDICT_INTERSECTS if rule.is_enough, else OJ_VERDICT_OPEN. */
    uint8_t *verdict;
};

struct oj_gpu_screen
{
    struct oj_screen_rule rule;
    struct oj_options options;
    struct oj_cuda_peer_barrier peers;
    int n_places;
    struct screen_place *place; /* [n_places] */
};

/* Maximum number of pairs in device memory at a time. If rows have more, or
 * memory is missing, fewer rows are processed at a time. */
#define MOST_PAIRS ((int64_t)1 << 26)

/* Maximum absolute coordinate, because differences of larger ones may overflow.
 */
#define LARGEST 1e150

/* --- rows of a batch as a layer ------------------------------------------- */

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
                       "coordinates are too large for the GPU; join on the CPU "
                       "(backend cpu)");
    return oj_cuda_intersects_side_make(work, layer, side);
}

/* --- pairs ---------------------------------------------------------------- */

/* Returns 1 if pair i is not surely disjoint. Returns 0 for i == n, the end of
 * the prefix sum. */
struct is_kept
{
    int64_t n;
    const uint8_t *verdict;

    __device__ int64_t operator()(ptrdiff_t i) const
    {
        return i < n && verdict[i] != OJ_VERDICT_DISJOINT;
    }
};

/* Returns the number of pairs of rows 0 .. i; row [n] must ascend. */
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

/* Computes out->end. place[i] is the number of kept pairs before pair i; if
 * place is NULL, all pairs are kept. */
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

/* Sets *out to the pairs that are not surely disjoint, with their verdicts. */
static oj_status
keep_pairs_not_surely_disjoint(struct oj_cuda_work *keep,
                               struct oj_cuda_work *work, int64_t n_rows,
                               const struct oj_cuda_box_pairs &pairs,
                               const uint8_t *verdict, struct screen_found *out)
{
    const int32_t *feature = pairs.feature;
    int64_t *place;
    OJ_TRY(work->scan_of_computed_values(pairs.n, is_kept{pairs.n, verdict},
                                         &place, &out->n_pairs));
    OJ_TRY(keep->make(out->n_pairs, &out->feature));
    OJ_TRY(keep->make(out->n_pairs, &out->verdict));
    const struct screen_found to = *out;
    OJ_TRY(work->each(pairs.n,
                      [=] __device__(int64_t i)
                      {
                          if (verdict[i] == OJ_VERDICT_DISJOINT)
                              return;
                          to.feature[place[i]] = feature[i];
                          to.verdict[place[i]] = verdict[i];
                      }));
    return compute_end_offsets_of_rows(keep, n_rows, pairs, place, out);
}

/* Finds the candidates of rows, with their verdicts. *keep owns the arrays of
 * *out. */
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
    uint8_t *verdict;
    OJ_TRY(upload_layer_for_intersection(&work, rows, &layer, &side));
    if (rule->asks_meeting)
        OJ_TRY(oj_cuda_intersects_side_add_edges(&work, tree->x0, tree->y0,
                                                 &side));
    OJ_TRY(oj_cuda_box_pairs_find(
        &work, &place->tree, place->side.feature, side.feature,
        rows->n_features, (enum oj_box_test)rule->test, MOST_PAIRS, &pairs));
    if (rule->asks_meeting && pairs.n > 0)
    {
        OJ_TRY(work.make(pairs.n, &verdict));
        OJ_TRY(oj_cuda_intersects(&work, tree->x0, tree->y0, &side,
                                  &place->side, &pairs, verdict));
        return keep_pairs_not_surely_disjoint(keep, &work, rows->n_features,
                                              pairs, verdict, out);
    }
    OJ_TRY(
        compute_end_offsets_of_rows(keep, rows->n_features, pairs, NULL, out));
    work.move_array_to(pairs.feature, keep);
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

static oj_status index_join_side(const struct oj_gpu_screen *screen,
                                 const struct oj_flat *join_side,
                                 struct screen_place *place,
                                 struct oj_error *err)
{
    struct oj_cuda_device *device = &place->device;
    const struct oj_device_tree *tree = &place->tree.tree;
    struct oj_cuda_work layer(device, device->stream, "indexing boxes", err);
    struct oj_cuda_work work(&layer);
    OJ_TRY(upload_layer_for_intersection(&layer, join_side, &place->layer,
                                         &place->side));
    if (place->layer.n_segments > 0)
        OJ_TRY(build_tree(place, &work));
    if (screen->rule.asks_meeting)
        OJ_TRY(oj_cuda_intersects_side_add_edges(&work, tree->x0, tree->y0,
                                                 &place->side));
    OJ_TRY(work.wait());
    layer.move_array_to(place->side.feature, &work);
    place->index_bytes = oj_cuda_memory_bytes(&work.memory);
    oj_cuda_move_ownership(&layer.memory, NULL, &place->memory);
    oj_cuda_move_ownership(&work.memory, NULL, &place->memory);
    return OJ_OK;
}

static oj_status open_screen_device(struct oj_gpu_screen *screen, int number,
                                    const int *ordinal,
                                    const struct oj_flat *join_side,
                                    struct oj_error *err)
{
    const struct oj_options *options = &screen->options;
    struct oj_cuda_device *device = &screen->place[number].device;
    oj_status status;
    OJ_TRY(oj_cuda_open(ordinal[number], options->gpu_memory, options->cancel,
                        device, err));
    device->n_threads = options->n_threads;
    device->peers = &screen->peers;
    device->number = number;
    oj_cuda_peers_allow_reading(device, ordinal, screen->n_places);
    status = index_join_side(screen, join_side, &screen->place[number], err);
    device->peers = NULL; /* from now on, each device copies rows that no
                             other device needs */
    return status;
}

static oj_status open_all_screen_devices(struct oj_gpu_screen *screen,
                                         const struct oj_flat *join_side,
                                         struct oj_error *err)
{
    int ordinal[OJ_GPU_MAX_DEVICES];
    int n = oj_cuda_index_list_devices(screen->options.gpus, ordinal);
    screen->place = (struct screen_place *)oj_calloc(n, sizeof *screen->place);
    if (screen->place == NULL)
        return oj_fail_nomem(err, n, sizeof *screen->place);
    screen->n_places = n;
    return oj_cuda_run_on_peers_on_module(
        &screen->peers, n,
        [=](int i, struct oj_error *error)
        { return open_screen_device(screen, i, ordinal, join_side, error); },
        err);
}

static void free_screen_devices(const struct oj_gpu_screen *screen)
{
    for (int i = 0; i < screen->n_places; i++)
    {
        struct screen_place *place = &screen->place[i];
        if (place->device.stream == NULL)
            continue;
        (void)cudaSetDevice(place->device.ordinal);
        oj_cuda_memory_free_all(&place->device, place->device.stream,
                                &place->memory);
        oj_cuda_close(&place->device);
    }
}

void oj_cuda_screen_free(struct oj_gpu_screen *screen)
{
    if (screen == NULL)
        return;
    oj_cuda_threads_run_one_on_module([=]() { free_screen_devices(screen); });
    oj_cuda_peer_barrier_destroy(&screen->peers);
    oj_free(screen->place);
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
    oj_cuda_peer_barrier_init(&screen->peers);
    status = open_all_screen_devices(screen, join_side, err);
    if (status != OJ_OK)
    {
        oj_cuda_screen_free(screen);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    for (int i = 0; i < screen->n_places; i++)
        stats->index_bytes += screen->place[i].index_bytes;
    *out = screen;
    return OJ_OK;
}

/* --- chunks of a batch ---------------------------------------------------- */

/* Maximum vertices of a chunk of rows (which has at least one row). A chunk
 * costs 0.2 ms of calls, so chunks are large, and the lots of a city are one
 * chunk on one device: with 735,488 lots in 3, 12, 25 and 49 chunks, on two
 * threads, the search took 19.8, 22.3, 24.9 and 37.7 ms. */
static const int64_t most_chunk = 8 << 20;

/* Minimum vertices of a chunk if several devices share a batch. For fewer,
 * calls and waiting for one another would take longer than the search. */
static const int64_t least_chunk = 256 << 10;

/* A row counts as this many vertices in addition to its own. */
#define ROW_WEIGHT 4

struct cuda_screen_batch
{
    struct oj_gpu_screen *screen;
    const struct oj_flat *input;
    int64_t most;
    struct oj_screen_pairs *out;
    int64_t n_found[OJ_GPU_MAX_DEVICES]; /* pairs of the chunk of each device */
};

/* Consecutive rows, and their pairs. */
struct screen_chunk
{
    int64_t first, n;
    struct screen_found found; /* on the device */
    /* Pairs in host memory, used if the device has too little memory for all
     * rows at a time. host.offset is [n_rows] the end of the pairs of each row.
     * The chunk owns the arrays. */
    struct oj_screen_pairs host;
};

static int64_t cumulative_row_weight(const struct oj_flat *input, int64_t row)
{
    return input->vertex_offset[input->ring_offset[input->part_offset[row]]] +
           ROW_WEIGHT * row;
}

/* Returns the end of the rows from first on that weigh at most `most`, at least
 * one if any is left. */
static int64_t end_row_within_weight(const struct oj_flat *input, int64_t first,
                                     int64_t most)
{
    int64_t low = oj_min_int64(first + 1, input->n_features);
    int64_t high = input->n_features;
    most += cumulative_row_weight(input, first);
    while (low < high)
    {
        int64_t middle = low + (high - low + 1) / 2;
        if (cumulative_row_weight(input, middle) <= most)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Sets *chunk to the rows of device `number` in the next round, in which the
 * devices screen one chunk each: consecutive chunks from row first on. Returns
 * the end of the last of them. */
static int64_t choose_chunk_of_device(const struct cuda_screen_batch *b,
                                      int64_t first, int number,
                                      struct screen_chunk *chunk)
{
    const struct oj_flat *input = b->input;
    int64_t n_rows = input->n_features, n = b->screen->n_places;
    int64_t left = cumulative_row_weight(input, n_rows) -
                   cumulative_row_weight(input, first);
    int64_t weight = oj_max_int64((left + n - 1) / n, least_chunk);
    weight = oj_min_int64(weight, most_chunk);
    for (int i = 0; i < n; i++)
    {
        int64_t end =
            b->screen->options.gpu_batch > 0
                ? oj_min_int64(first + b->screen->options.gpu_batch, n_rows)
                : end_row_within_weight(input, first, weight);
        if (i == number)
        {
            chunk->first = first;
            chunk->n = end - first;
        }
        first = end;
    }
    return first;
}

/* --- pairs that memory of the device does not suffice for ------------------
 */

static oj_status append_pairs_in_host_memory(struct oj_cuda_work *work,
                                             int64_t n_rows,
                                             const struct screen_found *found,
                                             struct oj_screen_pairs *host)
{
    int64_t rows = host->n_rows, before = host->n_pairs;
    int64_t all = before + found->n_pairs, *end;
    OJ_ROOM(host->offset, rows, rows + n_rows, host->cap_offset, work->err);
    OJ_ROOM(host->feature, before, all, host->cap_feature, work->err);
    OJ_ROOM(host->verdict, before, all, host->cap_verdict, work->err);
    end = host->offset + rows;
    OJ_TRY(oj_cuda_copy_out(work->device, work->stream, end, found->end,
                            n_rows * (int64_t)sizeof *end, work->err));
    for (int64_t i = 0; i < n_rows; i++)
        end[i] += before;
    OJ_TRY(oj_cuda_copy_out(
        work->device, work->stream, host->feature + before, found->feature,
        found->n_pairs * (int64_t)sizeof *host->feature, work->err));
    if (found->verdict != NULL)
        OJ_TRY(oj_cuda_copy_out(work->device, work->stream,
                                host->verdict + before, found->verdict,
                                found->n_pairs, work->err));
    host->n_rows += n_rows;
    host->n_pairs = all;
    return OJ_OK;
}

/* Screens n rows; if memory is missing, one half after the other. */
static oj_status screen_rows_to_host(const struct cuda_screen_batch *b,
                                     struct screen_place *place, int64_t first,
                                     int64_t n, struct oj_screen_pairs *host,
                                     struct oj_error *err)
{
    oj_status status;
    OJ_TRY(oj_check_cancel(b->screen->options.cancel, err));
    {
        struct oj_cuda_work work(&place->device, place->device.stream,
                                 "finding candidates", err);
        struct screen_found found = {};
        struct oj_flat rows = view_rows_as_layer(b->input, first, n);
        status = find_and_classify_candidates(place, &b->screen->rule, &rows,
                                              &work, &found);
        if (status == OJ_OK)
            return append_pairs_in_host_memory(&work, n, &found, host);
    }
    if (status != OJ_ERR_NOMEM || n < 2)
        return status;
    OJ_TRY(screen_rows_to_host(b, place, first, n / 2, host, err));
    return screen_rows_to_host(b, place, first + n / 2, n - n / 2, host, err);
}

/* --- batches -------------------------------------------------------------- */

/* Screens the rows of a chunk. The pairs stay on the device (chunk->found,
 * owned by *work). If its memory does not suffice, the chunk is screened in
 * halves, and the pairs go to host memory (chunk->host). */
static oj_status screen_chunk_rows(const struct cuda_screen_batch *b,
                                   struct screen_place *place,
                                   struct oj_cuda_work *work,
                                   struct screen_chunk *chunk)
{
    struct oj_flat rows = view_rows_as_layer(b->input, chunk->first, chunk->n);
    oj_status status;
    int64_t half = chunk->n / 2;
    if (chunk->n == 0)
        return OJ_OK;
    OJ_TRY(oj_check_cancel(b->screen->options.cancel, work->err));
    status = find_and_classify_candidates(place, &b->screen->rule, &rows, work,
                                          &chunk->found);
    if (status != OJ_ERR_NOMEM || half == 0)
        return status;
    work->release();
    chunk->found = {};
    OJ_TRY(screen_rows_to_host(b, place, chunk->first, half, &chunk->host,
                               work->err));
    return screen_rows_to_host(b, place, chunk->first + half, chunk->n - half,
                               &chunk->host, work->err);
}

/* Copies the pairs of a chunk from device or host memory into the result, after
 * the n_before pairs of the rows before. */
static oj_status copy_chunk_to_result(const struct cuda_screen_batch *b,
                                      struct oj_cuda_work *work,
                                      const struct screen_chunk *chunk,
                                      int64_t n_before)
{
    const struct oj_screen_pairs *host = &chunk->host;
    const struct oj_screen_rule *rule = &b->screen->rule;
    struct oj_screen_pairs *out = b->out;
    int64_t n_rows = chunk->n, n = chunk->found.n_pairs + host->n_pairs;
    int64_t *to = out->offset + chunk->first + 1, *end = chunk->found.end;
    uint8_t *verdict = out->verdict + n_before;
    if (!rule->asks_meeting && n > 0)
        memset(verdict,
               rule->is_enough ? OJ_VERDICT_INTERSECTS : OJ_VERDICT_OPEN,
               (size_t)n);
    if (host->n_rows > 0)
    {
        for (int64_t i = 0; i < n_rows; i++)
            to[i] = host->offset[i] + n_before;
        if (n > 0)
            memcpy(out->feature + n_before, host->feature,
                   (size_t)n * sizeof *out->feature);
        if (rule->asks_meeting && n > 0)
            memcpy(verdict, host->verdict, (size_t)n);
        return OJ_OK;
    }
    if (n_before > 0)
        OJ_TRY(work->each(n_rows,
                          [=] __device__(int64_t i) { end[i] += n_before; }));
    OJ_TRY(oj_cuda_copy_out(work->device, work->stream, to, end,
                            n_rows * (int64_t)sizeof *to, work->err));
    OJ_TRY(oj_cuda_copy_out(work->device, work->stream, out->feature + n_before,
                            chunk->found.feature,
                            n * (int64_t)sizeof *out->feature, work->err));
    return chunk->found.verdict == NULL
               ? OJ_OK
               : oj_cuda_copy_out(work->device, work->stream, verdict,
                                  chunk->found.verdict, n, work->err);
}

/* Makes room in the result for n more pairs, those of the chunks of all
 * devices, and adds n to out->n_pairs. Fails with OJ_ERR_TOO_MANY_PAIRS if the
 * batch then has too many pairs. */
static oj_status make_room_for_pairs(const struct cuda_screen_batch *b,
                                     int64_t n, struct oj_error *err)
{
    struct oj_screen_pairs *out = b->out;
    int64_t before = out->n_pairs, all = before + n;
    OJ_TRY(oj_pair_budget_check(b->most, all, err));
    OJ_ROOM(out->feature, before, all, out->cap_feature, err);
    OJ_ROOM(out->verdict, before, all, out->cap_verdict, err);
    out->n_pairs = all;
    return OJ_OK;
}

/* Screens a chunk, and places its pairs as soon as those of the chunks before
 * are counted: devices wait for one another, and the first one makes room for
 * all. On entry, *n_before is the number of pairs in the result; on return, it
 * includes the pairs of all devices in this round. */
static oj_status screen_and_place_chunk(struct cuda_screen_batch *b, int number,
                                        struct screen_chunk *chunk,
                                        int64_t *n_before, struct oj_error *err)
{
    struct oj_gpu_screen *screen = b->screen;
    struct screen_place *place = &screen->place[number];
    struct oj_cuda_work work(&place->device, place->device.stream,
                             "finding candidates", err);
    int64_t n = 0, n_of_others = 0;
    OJ_TRY(screen_chunk_rows(b, place, &work, chunk));
    b->n_found[number] = chunk->found.n_pairs + chunk->host.n_pairs;
    OJ_TRY(oj_cuda_peer_barrier_wait_for_all(&screen->peers, err));
    for (int i = 0; i < screen->n_places; i++)
    {
        n += b->n_found[i];
        n_of_others += i < number ? b->n_found[i] : 0;
    }
    if (number == 0)
        OJ_TRY(make_room_for_pairs(b, n, err));
    OJ_TRY(oj_cuda_peer_barrier_wait_for_all(&screen->peers, err));
    OJ_TRY(copy_chunk_to_result(b, &work, chunk, *n_before + n_of_others));
    *n_before += n;
    return OJ_OK;
}

static oj_status screen_rows_of_device(struct cuda_screen_batch *b, int number,
                                       struct oj_error *err)
{
    int64_t end = 0, n_before = 0;
    oj_status status = OJ_OK;
    OJ_CUDA_TRY(cudaSetDevice(b->screen->place[number].device.ordinal),
                "choosing a device", err);
    while (status == OJ_OK && end < b->input->n_features)
    {
        struct screen_chunk chunk = {};
        end = choose_chunk_of_device(b, end, number, &chunk);
        status = screen_and_place_chunk(b, number, &chunk, &n_before, err);
        oj_free(chunk.host.offset);
        oj_free(chunk.host.feature);
        oj_free(chunk.host.verdict);
    }
    return status;
}

static oj_status find_candidates_of_batch(struct cuda_screen_batch *b,
                                          struct oj_error *err)
{
    struct oj_screen_pairs *out = b->out;
    int64_t n = b->input->n_features;
    OJ_ROOM(out->offset, 0, n + 1, out->cap_offset, err);
    out->n_rows = n;
    out->n_pairs = 0;
    out->offset[0] = 0;
    return oj_cuda_run_on_peers_on_module(
        &b->screen->peers, b->screen->n_places,
        [=](int i, struct oj_error *error)
        { return screen_rows_of_device(b, i, error); },
        err);
}

oj_status oj_cuda_screen_find(struct oj_gpu_screen *screen,
                              const struct oj_flat *input, int64_t most,
                              struct oj_screen_pairs *out,
                              struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct cuda_screen_batch b = {screen, input, most, out, {}};
    oj_status status = find_candidates_of_batch(&b, err);
    stats->filter_s += oj_clock_seconds() - start;
    return status;
}
