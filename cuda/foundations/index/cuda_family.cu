#include "cuda_family.h"

#include "../device/cuda_peers.h"
#include "../device/cuda_stream_work.cuh"

#include "../../../flatten/base/oj_alloc.h"

/* All families in the order of preference: first the methods of papers, in the
 * order of enum oj_gpu_papers, then special families before general ones. */
static const struct oj_cuda_family *const families[] = {
    &oj_cuda_lists,
    &oj_cuda_size_blocks,
    &oj_cuda_zlists,
    &oj_cuda_cut_points,
    &oj_cuda_gpics_quadtree,
    &oj_cuda_gpics_kdtree,
    &oj_cuda_gpics_quadtree_single,
    &oj_cuda_gpics_kdtree_single,
    &oj_cuda_nearest,
    &oj_cuda_points_in_polygons,
    &oj_cuda_close_points,
    &oj_cuda_point_pairs,
    &oj_cuda_near_points,
    &oj_cuda_tree_joins,
    &oj_cuda_similar_text,
    &oj_cuda_similar_shapes,
    &oj_cuda_similar_vectors,
};

#define N_FAMILIES ((int)(sizeof families / sizeof *families))

static_assert(N_FAMILIES <= OJ_CUDA_MOST_FAMILIES,
              "an index has room for all families");

const struct oj_cuda_family *oj_cuda_family_at(int i)
{
    return i >= 0 && i < N_FAMILIES ? families[i] : NULL;
}

/* Uploads the tie ranks (index->rank) and builds the index of a family that has
 * find_share(). Without join features, does nothing. */
static oj_status upload_tie_ranks_and_build(struct oj_cuda_index *index,
                                            struct oj_cuda_work *work)
{
    const int32_t *tie_rank = index->layer->tie_rank;
    int64_t n = index->layer->flat->n_features;
    int32_t *rank;
    if (n == 0)
        return OJ_OK;
    if (tie_rank != NULL)
    {
        OJ_TRY(work->make(n, &rank));
        OJ_TRY(oj_cuda_copy_to_all_peers(work->device, work->stream, rank,
                                         tie_rank, n * (int64_t)sizeof *rank,
                                         work->err));
        index->rank = rank;
    }
    return index->family->build(index, work);
}

oj_status oj_cuda_family_build_index(const struct oj_cuda_family *family,
                                     struct oj_cuda_device *device,
                                     const struct oj_cuda_layer *layer,
                                     const struct oj_relation *relation,
                                     struct oj_cuda_index **out,
                                     struct oj_error *err)
{
    struct oj_cuda_work work(device, device->stream, "indexing the join layer",
                             err);
    struct oj_cuda_index *index =
        (struct oj_cuda_index *)oj_calloc(1, family->size);
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, family->size);
    index->family = family;
    index->device = device;
    index->layer = layer;
    index->relation = *relation;
    status = family->find_share != NULL
                 ? upload_tie_ranks_and_build(index, &work)
                 : family->build(index, &work);
    if (status != OJ_OK)
    {
        oj_cuda_family_free(index);
        return status;
    }
    oj_cuda_move_ownership(&work.memory, NULL, &index->memory);
    *out = index;
    return OJ_OK;
}

void oj_cuda_family_free(struct oj_cuda_index *index)
{
    if (index == NULL)
        return;
    oj_cuda_memory_free_all(index->device, index->device->stream,
                            &index->memory);
    oj_cuda_family_free(index->asked);
    oj_free(index);
}

int64_t oj_cuda_family_bytes(const struct oj_cuda_index *index)
{
    if (index == NULL)
        return 0;
    return oj_cuda_memory_bytes(&index->memory) +
           oj_cuda_family_bytes(index->asked);
}

struct oj_pair_rule
oj_cuda_family_pair_rule(const struct oj_relation *relation,
                         const struct oj_cuda_layer *layer,
                         const struct oj_cuda_points *points)
{
    struct oj_pair_rule rule = oj_pair_rule_none();
    const struct oj_cuda_columns *columns = &layer->columns;
    rule.excludes_self = relation->exclude_self;
    rule.unordered = relation->unordered_pairs;
    rule.excludes_same = relation->exclude_same_geometry;
    rule.row_fid = points->fid;
    rule.fid = columns->fid;
    rule.row_on_class = points->on_class;
    rule.on_class = columns->on_class;
    rule.row_exclude_class = points->exclude_class;
    rule.exclude_class = columns->exclude_class;
    return rule;
}
