/* The plain reference for op attributes: asks each pair whether the values of
 * -on are equal and the other conditions hold. */
#include "../../pairs/selection/oj_parallel_row_search.h"

#include <math.h>

static oj_status search_row(struct oj_row_index *index,
                            struct oj_row_worker *worker, int64_t row,
                            struct oj_error *err)
{
    const struct oj_flat *input = index->input;
    const struct oj_flat *join_side = index->args.join_side;
    if (!oj_feature_may_pair(input, row))
        return OJ_OK;
    for (int64_t f = 0; f < join_side->n_features; f++)
    {
        OJ_TRY(oj_row_poll_cancel(index, worker, err));
        worker->n_candidates++;
        if (oj_feature_may_pair(join_side, f) &&
            oj_pair_filter_accepts(&index->filter, row, f))
            OJ_TRY(oj_row_add_pair(index, worker, row, (int32_t)f, NAN, err));
    }
    return OJ_OK;
}

static const struct oj_row_method all_pairs = {.worker_size =
                                                   sizeof(struct oj_row_worker),
                                               .on_one_thread = 1,
                                               .search = search_row};

static oj_status build_plain_attributes(struct oj_index *index,
                                        const struct oj_index_args *args,
                                        struct oj_stats *stats,
                                        struct oj_error *err)
{
    (void)stats;
    (void)err;
    oj_row_index_begin(index, &all_pairs, args);
    return OJ_OK;
}

static int takes_equal_attributes(const struct oj_relation *relation,
                                  const struct oj_flat *join_side,
                                  const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_is_of_equal_attributes(relation);
}

const struct oj_engine oj_plain_attributes_engine = {
    .name = "all pairs of attributes",
    .takes = takes_equal_attributes,
    .index_size = sizeof(struct oj_row_index),
    .build = build_plain_attributes,
    .join = oj_row_join,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options};
