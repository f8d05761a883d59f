#include "cuda_index.h"

#include "../device/cuda_stream_work.cuh"

#include "../../../flatten/base/oj_alloc.h"

/* Returns 1 if families that take only points (those without find_share()) may
 * answer the join. input NULL stands for any layer of points. */
static int is_planar_join_of_points(const struct oj_relation *r,
                                    const struct oj_flat *input)
{
    return r->metric == OJ_METRIC_PLANAR &&
           !oj_relation_compares_attributes(r) &&
           r->distance == OJ_DISTANCE_LEAST &&
           (input == NULL || oj_flat_is_points(input));
}

/* Returns 1 if the join reads columns of its sides: FIDs, classes or maximum
 * distances. Only families with reads_columns may then answer it. */
static int needs_columns(const struct oj_relation *r,
                         const struct oj_flat *join_side,
                         const struct oj_flat *input)
{
    return oj_cuda_needs_columns(r, join_side) ||
           join_side->max_distance != NULL ||
           (input != NULL &&
            (input->max_distance != NULL || input->on_class != NULL ||
             input->exclude_class != NULL));
}

int oj_cuda_index_choose_family(const struct oj_relation *relation,
                                const struct oj_flat *join_side,
                                const struct oj_flat *input, unsigned refused)
{
    const struct oj_cuda_family *family;
    int columns = needs_columns(relation, join_side, input);
    int points = is_planar_join_of_points(relation, input);
    for (int i = 0; (family = oj_cuda_family_at(i)) != NULL; i++)
    {
        if ((refused >> i & 1u) == 0 &&
            (points || family->find_share != NULL) &&
            (!columns || family->reads_columns) &&
            family->supports(relation, join_side, input))
            return i;
    }
    return -1;
}

int oj_cuda_index_chosen_family(const struct oj_gpu_index *index,
                                const struct oj_flat *input)
{
    return oj_cuda_index_choose_family(&index->relation, index->join_side,
                                       input, index->refused);
}

oj_status oj_cuda_index_upload_join_layer(const struct oj_gpu_index *index,
                                          struct oj_cuda_place *place,
                                          struct oj_error *err)
{
    struct oj_cuda_device *device = &place->device;
    struct oj_cuda_work work(device, device->stream, "copying the join layer",
                             err);
    int family = oj_cuda_index_chosen_family(index, NULL);
    if (family < 0 || oj_cuda_family_at(family)->find_share == NULL)
        OJ_TRY(oj_cuda_layer_make(&work, index->join_side,
                                  index->join_side->overlaps, index->tie_rank,
                                  &index->relation, &place->layer));
    place->layer.flat = index->join_side;
    place->layer.tie_rank = index->tie_rank;
    place->layer.quadrant_size = index->options.quadrant_size;
    oj_cuda_move_ownership(&work.memory, NULL, &place->memory);
    return OJ_OK;
}

static oj_status open_index_device(struct oj_gpu_index *index, int number,
                                   const int *ordinal, struct oj_error *err)
{
    const struct oj_options *options = &index->options;
    struct oj_cuda_place *place = &index->place[number];
    OJ_TRY(oj_cuda_open(ordinal[number], options->gpu_memory, options->cancel,
                        &place->device, err));
    place->device.n_threads = options->n_threads;
    place->device.peers = &index->peers;
    place->device.number = number;
    oj_cuda_peers_allow_reading(&place->device, ordinal, index->n_places);
    return oj_cuda_index_upload_join_layer(index, place, err);
}

static oj_status build_family_on_device(const struct oj_gpu_index *index,
                                        struct oj_cuda_place *place, int family,
                                        struct oj_error *err)
{
    OJ_CUDA_TRY(cudaSetDevice(place->device.ordinal), "choosing a device", err);
    OJ_TRY(oj_cuda_family_build_index(oj_cuda_family_at(family), &place->device,
                                      &place->layer, &index->relation,
                                      &place->of[family], err));
    OJ_CUDA_TRY(cudaStreamSynchronize(place->device.stream),
                "indexing the join layer", err);
    return OJ_OK;
}

int oj_cuda_index_list_devices(uint64_t gpus, int *ordinal)
{
    int n = 0;
    for (int i = 0; i < OJ_GPU_MAX_DEVICES; i++)
    {
        if ((gpus >> i & 1) != 0)
            ordinal[n++] = i;
    }
    if (n == 0)
        ordinal[n++] = 0;
    return n;
}

static oj_status open_all_index_devices(struct oj_gpu_index *index,
                                        struct oj_error *err)
{
    int ordinal[OJ_GPU_MAX_DEVICES];
    index->n_places = oj_cuda_index_list_devices(index->options.gpus, ordinal);
    index->place = (struct oj_cuda_place *)oj_calloc(index->n_places,
                                                     sizeof *index->place);
    if (index->place == NULL)
    {
        int64_t n = index->n_places;
        index->n_places = 0;
        return oj_fail_nomem(err, n, sizeof *index->place);
    }
    return oj_cuda_run_on_peers_on_module(
        &index->peers, index->n_places,
        [&](int i, struct oj_error *error)
        { return open_index_device(index, i, ordinal, error); },
        err);
}

static void free_refused_families(const struct oj_gpu_index *index)
{
    for (int p = 0; p < index->n_places; p++)
    {
        struct oj_cuda_place *place = &index->place[p];
        (void)cudaSetDevice(place->device.ordinal);
        for (int i = 0; i < OJ_CUDA_MOST_FAMILIES; i++)
        {
            if ((index->refused >> i & 1u) == 0)
                continue;
            oj_cuda_family_free(place->of[i]);
            place->of[i] = NULL;
        }
    }
}

/* Marks a family that cannot hold the join side, so that it is not tried again,
 * and frees its indexes on all devices. */
static void mark_family_refused(struct oj_gpu_index *index, int family,
                                const struct oj_error *why)
{
    index->refused |= 1u << family;
    if (index->why_refused.status == OJ_OK)
        index->why_refused = *why;
    oj_cuda_threads_run_one_on_module([=]() { free_refused_families(index); });
}

oj_status oj_cuda_index_prepare_family(struct oj_gpu_index *index,
                                       const struct oj_flat *input, int *number,
                                       struct oj_stats *stats,
                                       struct oj_error *err)
{
    struct oj_error why = {OJ_OK, ""};
    double start = oj_clock_seconds();
    while ((*number = oj_cuda_index_chosen_family(index, input)) >= 0)
    {
        oj_status status;
        if (index->place[0].of[*number] != NULL)
            return OJ_OK;
        status = oj_cuda_run_on_peers_on_module(
            &index->peers, index->n_places,
            [&](int i, struct oj_error *error) {
                return build_family_on_device(index, &index->place[i], *number,
                                              error);
            },
            &why);
        if (status == OJ_OK)
        {
            stats->index_s += oj_clock_seconds() - start;
            for (int p = 0; p < index->n_places; p++)
                stats->index_bytes +=
                    oj_cuda_family_bytes(index->place[p].of[*number]);
            return OJ_OK;
        }
        if (status != OJ_ERR_UNSUPPORTED && status != OJ_ERR_NOMEM)
            return oj_fail(err, status, "%s", why.message);
        mark_family_refused(index, *number, &why);
    }
    if (index->why_refused.status != OJ_OK)
        return oj_fail(err, index->why_refused.status, "%s",
                       index->why_refused.message);
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "no GPU kernel can answer this join: use the backend cpu");
}

const char *oj_cuda_index_why_refused(const struct oj_gpu_index *index)
{
    return index->why_refused.status != OJ_OK ? index->why_refused.message : "";
}

oj_status oj_cuda_index_make_without_families(
    unsigned refused, const struct oj_flat *join_side, const int32_t *tie_rank,
    const struct oj_relation *relation, const struct oj_options *options,
    struct oj_gpu_index **out, struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct oj_gpu_index *index;
    oj_status status;
    int family;
    if (oj_cuda_index_choose_family(relation, join_side, NULL, refused) < 0)
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "no GPU kernel can answer this join: use the backend cpu");
    index = (struct oj_gpu_index *)oj_calloc(1, sizeof *index);
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    index->options = *options;
    index->refused = refused;
    oj_cuda_peer_barrier_init(&index->peers);
    status = open_all_index_devices(index, err);
    stats->index_s += oj_clock_seconds() - start;
    if (status == OJ_OK)
        status = oj_cuda_index_prepare_family(index, NULL, &family, stats, err);
    if (status != OJ_OK)
    {
        oj_cuda_index_free(index);
        return status;
    }
    *out = index;
    return OJ_OK;
}

oj_status oj_cuda_index_make(const struct oj_flat *join_side,
                             const int32_t *tie_rank,
                             const struct oj_relation *relation,
                             const struct oj_options *options,
                             struct oj_gpu_index **out, struct oj_stats *stats,
                             struct oj_error *err)
{
    return oj_cuda_index_make_without_families(OJ_CUDA_PAPERS, join_side,
                                               tie_rank, relation, options, out,
                                               stats, err);
}

oj_status oj_cuda_index_make_of_papers(
    enum oj_gpu_papers method, const struct oj_flat *join_side,
    const int32_t *tie_rank, const struct oj_relation *relation,
    const struct oj_options *options, struct oj_gpu_index **out,
    struct oj_stats *stats, struct oj_error *err)
{
    return oj_cuda_index_make_without_families(~(1u << method), join_side,
                                               tie_rank, relation, options, out,
                                               stats, err);
}

static void free_index_device(struct oj_cuda_place *place)
{
    if (place->device.stream == NULL)
        return;
    (void)cudaSetDevice(place->device.ordinal);
    for (int i = 0; i < OJ_CUDA_MOST_FAMILIES; i++)
        oj_cuda_family_free(place->of[i]);
    oj_cuda_memory_free_all(&place->device, place->device.stream,
                            &place->memory);
    oj_cuda_close(&place->device);
}

static void free_slots_and_devices(struct oj_gpu_index *index)
{
    for (int i = 0; i < OJ_CUDA_MOST_SLOTS; i++)
        oj_cuda_index_slot_free(&index->slot[i]);
    for (int i = 0; i < index->n_places; i++)
        free_index_device(&index->place[i]);
}

void oj_cuda_index_free(struct oj_gpu_index *index)
{
    if (index == NULL)
        return;
    oj_cuda_threads_run_one_on_module([=]() { free_slots_and_devices(index); });
    oj_cuda_peer_barrier_destroy(&index->peers);
    oj_free(index->place);
    oj_free(index);
}
