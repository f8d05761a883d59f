/** The engine of the backend "cuda_quadrant": the quadrants of Zhang, You and
 * Gruenwald 2012 on a GPU, implemented in the CUDA module
 * (cuda/papers/cuda_quadrants.cu). A join that the method does not support is
 * refused instead of passed to another engine, so that measured times are those
 * of the method alone. */
#include "../foundations/relation/oj_gpu.h"
#include "../foundations/relation/oj_index.h"
#include "../pairs/selection/oj_pair_filter.h"

#include <math.h>

struct cuda_quadrant_index
{
    const struct oj_gpu_module *module;
    struct oj_index_args args;
    struct oj_gpu_quadrant_index *on_gpu;
};

static void free_cuda_quadrants_index(struct oj_index *wrapped)
{
    struct cuda_quadrant_index *index = (void *)wrapped;
    if (index->on_gpu != NULL)
        index->module->quadrant_free(index->on_gpu);
}

static oj_status build_cuda_quadrants(struct oj_index *wrapped,
                                      const struct oj_index_args *args,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    const struct oj_relation *relation = &args->relation;
    struct oj_options options = args->options;
    struct cuda_quadrant_index *index = (void *)wrapped;
    if (!oj_relation_is_nearest(relation) ||
        relation->metric != OJ_METRIC_PLANAR ||
        oj_relation_compares_shapes(relation) ||
        relation->min_distance != 0.0 || !(relation->max_distance < INFINITY) ||
        oj_relation_allows_many_pairs(relation))
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "the backend \"cuda_quadrant\" supports only op nearest "
            "with max_distance, k 1, ties first, metric planar and "
            "distance least, without min_distance: use the backend cuda");
    index->args = *args;
    OJ_TRY(oj_gpu_load_and_choose_devices(&args->options, &index->module,
                                          &options.gpus, err));
    return index->module->quadrant_index(args->join_side, args->tie_rank,
                                         relation, &options, &index->on_gpu,
                                         stats, err);
}

static oj_status join_by_cuda_quadrants(struct oj_index *wrapped,
                                        const struct oj_flat *input,
                                        struct oj_matches *out,
                                        struct oj_stats *stats,
                                        struct oj_error *err)
{
    struct cuda_quadrant_index *index = (void *)wrapped;
    const struct oj_flat *join_side = index->args.join_side;
    struct oj_pair_filter filter;
    OJ_TRY(oj_pair_filter_make(&index->args.relation, input, join_side, &filter,
                               err));
    if (filter.is_needed || input->max_distance != NULL ||
        join_side->max_distance != NULL || !oj_flat_is_points(input))
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "the backend \"cuda_quadrant\" supports only points as "
            "input, and no conditions on pairs: use the backend cuda");
    return index->module->quadrant_join(index->on_gpu, input, out, stats, err);
}

const struct oj_engine oj_cuda_quadrant_engine = {
    .name = "cuda_quadrant",
    .index_size = sizeof(struct cuda_quadrant_index),
    .build = build_cuda_quadrants,
    .join = join_by_cuda_quadrants,
    .free_side = free_cuda_quadrants_index};
