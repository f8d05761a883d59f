/** The engines of the backends "cuda_lists" (gSSJoin), "cuda_size_blocks"
 * (sf-gSSJoin), "cuda_zlists" (LSS), "cuda_cut_points" (Top-KaBT) and
 * "cuda_gpics_*" (G-PICS): methods of papers on a GPU, implemented in the CUDA
 * module (cuda/papers). A join that the method does not support is refused
 * instead of passed to another engine, so that measured times are those of the
 * method alone. */
#include "../foundations/relation/oj_gpu.h"
#include "../foundations/relation/oj_index.h"
#include "../joins/similar_text/similar_engine_sides.h"
#include "../pairs/selection/oj_pair_filter.h"
#include "gpics.h"

struct cuda_lists_index
{
    const struct oj_gpu_module *module;
    struct oj_index_args args;
    struct oj_gpu_index *on_gpu;
};

static void free_paper_index(struct oj_index *wrapped)
{
    struct cuda_lists_index *index = (void *)wrapped;
    if (index->on_gpu != NULL)
        index->module->free_index(index->on_gpu);
}

static oj_status build_on_gpu(struct oj_index *wrapped,
                              const struct oj_index_args *args,
                              struct oj_stats *stats, struct oj_error *err)
{
    enum oj_gpu_papers method = (enum oj_gpu_papers)args->engine->variant;
    const struct oj_relation *relation = &args->relation;
    struct oj_options options = args->options;
    struct cuda_lists_index *index = (void *)wrapped;
    if (method <= OJ_GPU_SIZE_BLOCKS &&
        (!oj_relation_is_similar(relation) || relation->n_similar != 1 ||
         relation->k < OJ_EVERY_PAIR || relation->exclude_same_geometry))
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "the backends \"cuda_lists\" and \"cuda_size_blocks\" "
            "support only op similar with one condition of similar, "
            "and without k and exclude same_geometry: use the backend cuda");
    if (relation->n_spans > 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the papers' methods on a GPU do not support "
                       "within_time and during: use the backend cuda");
    index->args = *args;
    OJ_TRY(oj_gpu_load_and_choose_devices(&args->options, &index->module,
                                          &options.gpus, err));
    return index->module->papers_index(method, args->join_side, args->tie_rank,
                                       relation, &options, &index->on_gpu,
                                       stats, err);
}

static oj_status join_on_gpu(struct oj_index *wrapped,
                             const struct oj_flat *input,
                             struct oj_matches *out, struct oj_stats *stats,
                             struct oj_error *err)
{
    struct cuda_lists_index *index = (void *)wrapped;
    struct oj_pair_filter filter;
    OJ_TRY(oj_pair_filter_make(&index->args.relation, input,
                               index->args.join_side, &filter, err));
    return index->module->join(index->on_gpu, input, out, stats, err);
}

#define PAPERS(method_name, takes_it, method)                                  \
    {                                                                          \
        .name = method_name, .supports = takes_it,                             \
        .index_size = sizeof(struct cuda_lists_index), .build = build_on_gpu,  \
        .join = join_on_gpu, .free_side = free_paper_index, .variant = method  \
    }

const struct oj_engine oj_cuda_lists_engine =
    PAPERS("cuda_lists", oj_similar_supports_text_join, OJ_GPU_LISTS);
const struct oj_engine oj_cuda_size_blocks_engine = PAPERS(
    "cuda_size_blocks", oj_similar_supports_text_join, OJ_GPU_SIZE_BLOCKS);
const struct oj_engine oj_cuda_zlists_engine =
    PAPERS("cuda_zlists", oj_zlists_supports_join, OJ_GPU_ZLISTS);
const struct oj_engine oj_cuda_cut_points_engine =
    PAPERS("cuda_cut_points", NULL, OJ_GPU_CUT_POINTS);
const struct oj_engine oj_cuda_gpics_quadtree_engine = PAPERS(
    "cuda_gpics_quadtree", oj_gpics_supports_join, OJ_GPU_GPICS_QUADTREE);
const struct oj_engine oj_cuda_gpics_kdtree_engine =
    PAPERS("cuda_gpics_kdtree", oj_gpics_supports_join, OJ_GPU_GPICS_KDTREE);
const struct oj_engine oj_cuda_gpics_quadtree_single_engine =
    PAPERS("cuda_gpics_quadtree_single", oj_gpics_supports_join,
           OJ_GPU_GPICS_QUADTREE_SINGLE);
const struct oj_engine oj_cuda_gpics_kdtree_single_engine =
    PAPERS("cuda_gpics_kdtree_single", oj_gpics_supports_join,
           OJ_GPU_GPICS_KDTREE_SINGLE);
