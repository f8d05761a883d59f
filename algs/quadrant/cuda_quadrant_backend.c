/** The papers' method on a GPU, as a row to compare with: the module has it
 *  beside its own engine.  What it does not answer is refused, so that its
 *  times are those of this method and no other.
 *  Source: Zhang, You, Gruenwald 2012. */
#include "../../flatten/base/oj_array.h"
#include "../engine/engine_backend.h"
#include "../pairs/oj_pairs.h"

#include <math.h>

struct cuda_quadrant_index
{
    const struct oj_gpu_module *module;
    const struct oj_flat *join_side;
    struct oj_relation relation;
    struct oj_gpu_quadrant_index *on_gpu;
};

static oj_status check_relation(const struct oj_relation *relation,
                                struct oj_error *err)
{
    if (relation->op == OJ_OP_NEAREST && relation->metric == OJ_METRIC_PLANAR &&
        relation->min_distance == 0.0 && relation->max_distance < INFINITY &&
        !oj_relation_gives_lists(relation))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the backend \"cuda_quadrant\" knows only -op nearest with "
                   "one feature each, in the plane, and with a greatest "
                   "distance");
}

static oj_status check_input(const struct cuda_quadrant_index *index,
                             const struct oj_flat *input, struct oj_error *err)
{
    struct oj_pair_filter filter;
    OJ_TRY(oj_pair_filter_make(&index->relation, input, index->join_side,
                               &filter, err));
    if (!filter.is_needed && input->max_distance == NULL &&
        index->join_side->max_distance == NULL && oj_flat_is_points(input))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the backend \"cuda_quadrant\" takes points as input, and "
                   "no conditions on pairs");
}

static void free_index(struct oj_index *wrapped)
{
    struct cuda_quadrant_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    if (index->on_gpu != NULL)
        index->module->quadrant_free(index->on_gpu);
    oj_free(index);
}

static oj_status
make_index(const struct oj_backend *row, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    struct oj_options here = *options;
    struct cuda_quadrant_index *index;
    oj_status status;
    (void)row;
    OJ_TRY(check_relation(relation, err));
    index = oj_calloc(1, sizeof *index);
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->join_side = join_side;
    index->relation = *relation;
    status = oj_cuda_find(options, &index->module, &here.gpus, err);
    if (status == OJ_OK)
        status = index->module->quadrant_index(
            join_side, tie_rank, relation, &here, &index->on_gpu, stats, err);
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    *out = (void *)index;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct cuda_quadrant_index *index = (void *)wrapped;
    OJ_TRY(check_input(index, input, err));
    return index->module->quadrant_join(index->on_gpu, input, out, stats, err);
}

const struct oj_backend oj_cuda_quadrant_backend = {
    .abi = OJ_BACKEND_ABI,
    .name = "cuda_quadrant",
    .description =
        "the papers' method on an NVIDIA GPU: quadrants of points, a grid of "
        "boxes, all segments",
    .is_reference = 1,
    .index = make_index,
    .join = join,
    .free_index = free_index,
};
