/* Plain reference for op attributes: tests for each pair of features whether
 * the values of -on are equal and the other conditions hold. */
#include "../../pairs/selection/oj_parallel_row_search.h"

static oj_status search_row(struct oj_row_index *index,
                            struct oj_row_worker *worker, int64_t row,
                            struct oj_error *err)
{
    return oj_row_search_all_pairs(index, worker, row, NULL, err);
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

const struct oj_engine oj_plain_attributes_engine = {
    .name = "all pairs of attributes",
    .supports = oj_pair_filter_supports_attributes_join,
    .index_size = sizeof(struct oj_row_index),
    .build = build_plain_attributes,
    .join = oj_row_join,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options};
