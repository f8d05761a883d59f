/** The GPU screen: candidates of a batch, on the first device of the options
 *  (two devices were not faster: BENCHMARKS.md, "On a GPU").
 *
 *    rows of the caller -> layer in device memory -> pairs whose boxes
 *    intersect (packed tree) -> verdicts (oj_meet.h) -> pairs that are not
 *    surely disjoint
 */
#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/device/cuda_copy.h"
#include "../../foundations/device/cuda_host_threads.h"
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
    uint8_t *said;
};

struct oj_gpu_screen
{
    struct oj_screen_rule rule;
    struct oj_options options;
    struct screen_place place;
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
                       "coordinates are too large for the GPU");
    return oj_cuda_intersects_side_make(work, layer, side);
}

/* --- pairs ---------------------------------------------------------------- */

/* Predicate: pair i is not surely disjoint. */
struct is_kept
{
    int64_t n;
    const uint8_t *said;

    __device__ int64_t operator()(ptrdiff_t i) const
    {
        return i < n && said[i] != OJ_VERDICT_DISJOINT;
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

/* Computes out->end. place: index of each kept pair; NULL: all pairs are kept.
 */
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

/* Removes the pairs that are surely disjoint. */
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
                          if (said[i] == OJ_VERDICT_DISJOINT)
                              return;
                          to.feature[place[i]] = feature[i];
                          to.said[place[i]] = said[i];
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
    uint8_t *said;
    OJ_TRY(upload_layer_for_intersection(&work, rows, &layer, &side));
    if (rule->asks_meeting)
        OJ_TRY(oj_cuda_intersects_side_add_edges(&work, tree->x0, tree->y0,
                                                 &side));
    OJ_TRY(oj_cuda_box_pairs_find(
        &work, &place->tree, place->side.feature, side.feature,
        rows->n_features, (enum oj_box_test)rule->test, MOST_PAIRS, &pairs));
    if (rule->asks_meeting && pairs.n > 0)
    {
        OJ_TRY(work.make(pairs.n, &said));
        OJ_TRY(oj_cuda_intersects(&work, tree->x0, tree->y0, &side,
                                  &place->side, &pairs, said));
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
    (void)oj_cuda_index_list_devices(options->gpus, ordinal);
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
        OJ_TRY(oj_cuda_intersects_side_add_edges(&work, tree->x0, tree->y0,
                                                 &place->side));
    OJ_TRY(work.wait());
    layer.hand_over(place->side.feature, &work);
    place->index_bytes = oj_cuda_memory_bytes(&work.memory);
    oj_cuda_move_ownership(&layer.memory, NULL, &place->memory);
    oj_cuda_move_ownership(&work.memory, NULL, &place->memory);
    return OJ_OK;
}

static void free_screen_device(struct oj_gpu_screen *screen)
{
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
    oj_cuda_thread_aside([=]() { free_screen_device(screen); });
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
    status = oj_cuda_threads_try_all(
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

/* Maximum vertices of a chunk of rows (which has at least one row). A chunk
 * costs 0.2 ms of calls, so chunks are large, and the lots of a city are one
 * chunk: with 735,488 lots in 3, 12, 25 and 49 chunks, on two threads, the
 * search took 19.8, 22.3, 24.9 and 37.7 ms. */
static const int64_t most_chunk = 8 << 20;

/* A row counts as this many vertices in addition to its own. */
#define ROW_WEIGHT 4

struct cuda_screen_batch
{
    struct oj_gpu_screen *screen;
    const struct oj_flat *input;
    int64_t most;
    struct oj_screen_pairs *out;
};

static int64_t cumulative_row_weight(const struct oj_flat *input, int64_t row)
{
    return input->vertex_offset[input->ring_offset[input->part_offset[row]]] +
           ROW_WEIGHT * row;
}

/* Returns the end of the chunk that begins with row first. */
static int64_t end_row_of_chunk(const struct cuda_screen_batch *b,
                                int64_t first)
{
    const struct oj_flat *input = b->input;
    int64_t low = first + 1, high = input->n_features;
    int64_t most = cumulative_row_weight(input, first) + most_chunk;
    if (b->screen->options.gpu_batch > 0)
        return oj_min_int64(first + b->screen->options.gpu_batch, high);
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

/* Appends the pairs of n rows, from row first on, to those of the rows before.
 */
static oj_status copy_pairs_to_host(const struct cuda_screen_batch *b,
                                    int64_t first, int64_t n_rows,
                                    const struct screen_found *found,
                                    struct oj_error *err)
{
    const struct oj_screen_rule *rule = &b->screen->rule;
    const struct oj_cuda_device *device = &b->screen->place.device;
    struct oj_screen_pairs *out = b->out;
    int64_t *end = out->offset + first + 1, n = found->n_pairs;
    int64_t before = out->n_pairs, all = before + n;
    OJ_TRY(oj_pairs_fit(b->most, all, err));
    OJ_ROOM(out->feature, before, all, out->cap_feature, err);
    OJ_ROOM(out->said, before, all, out->cap_said, err);
    OJ_TRY(oj_cuda_copy_out(device, device->stream, end, found->end,
                            n_rows * (int64_t)sizeof *end, err));
    for (int64_t i = 0; before > 0 && i < n_rows; i++)
        end[i] += before;
    OJ_TRY(oj_cuda_copy_out(device, device->stream, out->feature + before,
                            found->feature, n * (int64_t)sizeof *out->feature,
                            err));
    if (found->said != NULL)
        OJ_TRY(oj_cuda_copy_out(device, device->stream, out->said + before,
                                found->said, n, err));
    else if (n > 0)
        memset(out->said + before,
               rule->is_enough ? OJ_VERDICT_INTERSECTS : OJ_VERDICT_OPEN,
               (size_t)n);
    out->n_pairs = all;
    return OJ_OK;
}

/* Screens n rows; if memory is missing, one half after the other. */
static oj_status screen_row_range(const struct cuda_screen_batch *b,
                                  int64_t first, int64_t n,
                                  struct oj_error *err)
{
    struct screen_place *place = &b->screen->place;
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
            return copy_pairs_to_host(b, first, n, &found, err);
    }
    if (status != OJ_ERR_NOMEM || n < 2)
        return status;
    OJ_TRY(screen_row_range(b, first, n / 2, err));
    return screen_row_range(b, first + n / 2, n - n / 2, err);
}

static oj_status find_candidates_of_batch(const struct cuda_screen_batch *b,
                                          struct oj_error *err)
{
    struct oj_screen_pairs *out = b->out;
    int64_t n = b->input->n_features;
    OJ_CUDA_TRY(cudaSetDevice(b->screen->place.device.ordinal),
                "choosing a device", err);
    OJ_ROOM(out->offset, 0, n + 1, out->cap_offset, err);
    out->n_rows = n;
    out->n_pairs = 0;
    out->offset[0] = 0;
    for (int64_t first = 0, end; first < n; first = end)
    {
        end = end_row_of_chunk(b, first);
        OJ_TRY(screen_row_range(b, first, end - first, err));
    }
    return OJ_OK;
}

oj_status oj_cuda_screen_find(struct oj_gpu_screen *screen,
                              const struct oj_flat *input, int64_t most,
                              struct oj_screen_pairs *out,
                              struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    const struct cuda_screen_batch b = {screen, input, most, out};
    oj_status status = oj_cuda_threads_try_all(
        1,
        [&](int, struct oj_error *error)
        { return find_candidates_of_batch(&b, error); },
        err);
    stats->filter_s += oj_clock_seconds() - start;
    return status;
}
