/** Paper: Ribeiro-Junior, Quirino, Ribeiro, Martins 2017, "Fast Parallel Set
 *  Similarity Joins on Many-core Architectures", section 5 (gSSJoin).
 *
 *  Method: inverted lists of all tokens of the join side (section 5.1). For
 *  each input row, the lists of its tokens are read, and the tokens in common
 *  with each feature are counted; the similarity follows from the count
 *  (section 5.2). Candidates are not filtered.
 *
 *  Differences: one thread, a counter per join feature instead of a matrix, and
 *  all four similarities, not only Jaccard's. It is the reference that the
 *  default engine is compared with.
 *
 *  The backend "lists". On a GPU, with sf-gSSJoin: cuda/papers/cuda_gssjoin.cu.
 */
#include "../../flatten/base/oj_alloc.h"
#include "../joins/similar_text/similar_engine_sides.h"

struct lists_index
{
    struct oj_row_index shared;
    struct oj_similar_sides sides; /* tokens of the current batch and of the
                                      join side */
    int64_t n_lists;
    int64_t *offset;  /* [n_lists + 1] index in `feature` of the first element
                         of each token's list */
    int32_t *feature; /* join features that have the token, as ordinals, list by
                         list; ascending within a list */
};

struct lists_worker
{
    struct oj_row_worker shared;
    int32_t *common; /* [join features] number of common tokens; all 0 between
                        rows */
};

static void free_gssjoin_index(struct oj_index *wrapped)
{
    struct lists_index *self = (void *)wrapped;
    oj_free(self->offset);
    oj_free(self->feature);
}

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct lists_index *self = (void *)shared;
    struct lists_worker *worker = shared->worker;
    OJ_TRY(oj_similar_sides_make(shared, &self->sides, err));
    oj_free(worker->common);
    OJ_NEW_ZEROED(worker->common, shared->args.join_side->n_features, err);
    return OJ_OK;
}

static void free_worker(struct oj_row_worker *worker)
{
    oj_free(((struct lists_worker *)(void *)worker)->common);
}

static oj_status count_common_tokens_of_row(struct oj_row_index *shared,
                                            struct oj_row_worker *worker,
                                            int64_t row, struct oj_error *err)
{
    const struct lists_index *self = (void *)shared;
    const struct oj_similar_sides *sides = &self->sides;
    const struct oj_token_sets *in = &sides->input;
    int32_t *common = ((struct lists_worker *)(void *)worker)->common;
    for (int64_t i = in->offset[row]; i < in->offset[row + 1]; i++)
    {
        uint32_t token = in->token[i];
        for (int64_t at = token < self->n_lists ? self->offset[token] : 0;
             token < self->n_lists && at < self->offset[token + 1]; at++)
            common[self->feature[at]]++;
    }
    for (int64_t f = 0; f < sides->join_side.n_rows; f++)
    {
        int32_t o = common[f];
        common[f] = 0;
        worker->n_candidates += o > 0;
        if (o > 0 &&
            oj_text_is_similar(&shared->args.relation.similar[0], o,
                               in->size[row], sides->join_side.size[f]) &&
            oj_pair_filter_accepts(&shared->filter, row, f))
            OJ_TRY(oj_ranking_add(
                &worker->ranking, (int32_t)f,
                oj_negated_text_similarity(shared, sides, row, f, o), err));
    }
    return OJ_OK;
}

static const struct oj_row_method counting = {
    .worker_size = sizeof(struct lists_worker),
    .on_one_thread = 1,
    .start = start_batch,
    .search = count_common_tokens_of_row,
    .free_worker = free_worker};

static oj_status build_inverted_lists(struct oj_index *wrapped,
                                      const struct oj_index_args *args,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    struct lists_index *self = oj_row_index_begin(wrapped, &counting, args);
    const struct oj_token_sets *sets = args->join_side->texts;
    int64_t n, n_rows = args->join_side->n_features;
    if (n_rows == 0)
        return OJ_OK;
    if (args->join_side->n_texts < args->relation.n_similar)
        return oj_fail(err, OJ_ERR_ARG,
                       "the backend \"lists\" compares texts: name the columns "
                       "in similar");
    n = sets->offset[n_rows];
    for (int64_t i = sets->offset[0]; i < n; i++)
    {
        if (sets->token[i] >= self->n_lists)
            self->n_lists = (int64_t)sets->token[i] + 1;
    }
    OJ_NEW_ZEROED(self->offset, self->n_lists + 2, err);
    OJ_NEW(self->feature, n, err);
    for (int64_t i = sets->offset[0]; i < n; i++)
        self->offset[sets->token[i] + 2]++;
    for (int64_t t = 2; t <= self->n_lists; t++)
        self->offset[t] += self->offset[t - 1];
    for (int64_t row = 0; row < n_rows; row++)
    {
        for (int64_t i = sets->offset[row]; i < sets->offset[row + 1]; i++)
            self->feature[self->offset[sets->token[i] + 1]++] = (int32_t)row;
    }
    stats->index_bytes += 8 * self->n_lists + 4 * n;
    return OJ_OK;
}

const struct oj_engine oj_lists_engine = {
    .name = "inverted lists",
    .supports = oj_similar_supports_text_join,
    .index_size = sizeof(struct lists_index),
    .build = build_inverted_lists,
    .join = oj_row_join,
    .free_side = free_gssjoin_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options};
