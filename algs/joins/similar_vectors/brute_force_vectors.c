/* Plain reference for similar vectors: compares all pairs. */
#include "../similar_text/similar_engine_sides.h"

struct plain_index
{
    struct oj_row_index shared;
    struct oj_similar_sides sides; /* the current batch */
};

static oj_status start_batch(struct oj_row_index *index, struct oj_error *err)
{
    return oj_similar_sides_make(
        index, &((struct plain_index *)(void *)index)->sides, err);
}

static double difference_of_pair(const struct oj_row_index *index, int64_t row,
                                 int64_t feature)
{
    return oj_pair_vector_difference(&index->args.relation, index->input, row,
                                     index->args.join_side, feature);
}

static oj_status search_row(struct oj_row_index *index,
                            struct oj_row_worker *worker, int64_t row,
                            struct oj_error *err)
{
    return oj_row_search_all_pairs(index, worker, row, difference_of_pair, err);
}

static const struct oj_row_method all_pairs = {.worker_size =
                                                   sizeof(struct oj_row_worker),
                                               .on_one_thread = 1,
                                               .start = start_batch,
                                               .search = search_row};

static oj_status build_plain_vectors(struct oj_index *index,
                                     const struct oj_index_args *args,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    (void)stats;
    (void)err;
    oj_row_index_begin(index, &all_pairs, args);
    return OJ_OK;
}

const struct oj_engine oj_plain_vectors_engine = {
    .name = "all pairs of vectors",
    .supports = oj_similar_supports_vector_join,
    .index_size = sizeof(struct plain_index),
    .build = build_plain_vectors,
    .join = oj_row_join,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options};
