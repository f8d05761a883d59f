#include "cuda_family.h"

#include "../../flatten/base/oj_array.h"

/* In the order they are asked: the special ones first. */
static const struct oj_cuda_family *const families[] = {
    &oj_cuda_nearest,     &oj_cuda_points_in_polygons, &oj_cuda_close_points,
    &oj_cuda_point_pairs, &oj_cuda_near_points,        &oj_cuda_tree_joins,
};

#define N_FAMILIES ((int)(sizeof families / sizeof *families))

static_assert(N_FAMILIES <= OJ_CUDA_MOST_FAMILIES,
              "an index has room for all families");

const struct oj_cuda_family *oj_cuda_family_at(int i)
{
    return i >= 0 && i < N_FAMILIES ? families[i] : NULL;
}

oj_status oj_cuda_family_index(const struct oj_cuda_family *family,
                               struct oj_cuda_device *device,
                               const struct oj_cuda_layer *layer,
                               const struct oj_relation *relation,
                               struct oj_cuda_index **out, struct oj_error *err)
{
    struct oj_cuda_index *index =
        (struct oj_cuda_index *)oj_calloc(1, family->size);
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, family->size);
    index->device = device;
    index->layer = layer;
    index->relation = *relation;
    status = family->build(index, err);
    if (status != OJ_OK)
        oj_cuda_family_free(family, index);
    else
        *out = index;
    return status;
}

void oj_cuda_family_free(const struct oj_cuda_family *family,
                         struct oj_cuda_index *index)
{
    if (index == NULL)
        return;
    family->drop(index);
    oj_free(index);
}

struct oj_pair_rule oj_cuda_pair_rule(const struct oj_relation *relation,
                                      const struct oj_cuda_layer *layer,
                                      const struct oj_cuda_points *points)
{
    struct oj_pair_rule rule = oj_pair_rule_none();
    const struct oj_cuda_columns *columns = &layer->columns;
    rule.excludes_self = relation->exclude_self;
    rule.unordered = relation->unordered_pairs;
    rule.excludes_same = relation->exclude_same_geometry;
    rule.row_fid = points->fid;
    rule.fid = columns->fid.data;
    rule.row_on_class = points->on_class;
    rule.on_class = columns->on_class.data;
    rule.row_exclude_class = points->exclude_class;
    rule.exclude_class = columns->exclude_class.data;
    return rule;
}

void oj_cuda_pairs_drop(struct oj_cuda_device *device, cudaStream_t stream,
                        struct oj_cuda_pairs *pairs)
{
    oj_cuda_drop(device, stream, &pairs->offset, &pairs->row, &pairs->measure);
}

oj_status oj_cuda_pairs_fit(int64_t n_rows, int64_t n_pairs, int64_t max_pairs,
                            struct oj_error *err)
{
    if (max_pairs > 0 && n_rows > 1 && n_pairs > max_pairs)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    return OJ_OK;
}
