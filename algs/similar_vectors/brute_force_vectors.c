/* The plain reference for similar vectors: all pairs. */
#include "../../flatten/base/oj_clock.h"
#include "../similar/similarity_ranking.h"

struct plain_index
{
    struct oj_index_args args;
};

static oj_status build_plain_vectors(struct oj_index *wrapped,
                                     const struct oj_index_args *args,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    struct plain_index *self = (void *)wrapped;
    (void)stats;
    (void)err;
    self->args = *args;
    return OJ_OK;
}

static void free_nothing(struct oj_index *wrapped)
{
    (void)wrapped;
}

static oj_status join_row(struct oj_similar_rows *rows,
                          const struct oj_flat *input, int64_t row,
                          struct oj_error *err)
{
    const struct oj_flat *join_side = rows->args->join_side;
    const struct oj_relation *relation = &rows->args->relation;
    int64_t n = oj_feature_may_pair(input, row) ? join_side->n_features : 0;
    oj_ranking_start(&rows->ranking[0]);
    for (int64_t f = 0; f < n; f++)
    {
        if (oj_feature_may_pair(join_side, f) &&
            oj_pair_may_count(&rows->filter, row, f))
            OJ_TRY(oj_ranking_add(
                &rows->ranking[0], (int32_t)f,
                oj_pair_difference(relation, input, row, join_side, f), err));
    }
    oj_ranking_finish(&rows->ranking[0]);
    return oj_answers_add(&rows->answers[0], row, &rows->ranking[0], err);
}

static oj_status join_rows(const struct plain_index *self,
                           struct oj_similar_rows *rows,
                           const struct oj_flat *input, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    OJ_TRY(oj_similar_rows_open(rows, &self->args, input, 1, err));
    for (int64_t row = 0; row < input->n_features; row++)
    {
        OJ_TRY(oj_check_cancel(self->args.options.cancel, err));
        OJ_TRY(join_row(rows, input, row, err));
    }
    stats->n_candidates += input->n_features * self->args.join_side->n_features;
    return oj_similar_rows_answer(rows, input, out, err);
}

static oj_status join_plain_vectors(struct oj_index *wrapped,
                                    const struct oj_flat *input,
                                    struct oj_matches *out,
                                    struct oj_stats *stats,
                                    struct oj_error *err)
{
    struct oj_similar_rows rows = {0};
    double start = oj_clock_seconds();
    oj_status status =
        join_rows((void *)wrapped, &rows, input, out, stats, err);
    oj_similar_rows_close(&rows);
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

const struct oj_engine oj_plain_vectors_engine = {"all pairs of vectors",
                                                  oj_similar_vectors_takes,
                                                  sizeof(struct plain_index),
                                                  build_plain_vectors,
                                                  join_plain_vectors,
                                                  free_nothing,
                                                  free_nothing,
                                                  NULL};
