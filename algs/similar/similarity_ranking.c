#include "similarity_ranking.h"

#include "../../flatten/base/oj_array.h"

#include <string.h>

int oj_similar_takes(const struct oj_relation *relation,
                     const struct oj_flat *join_side,
                     const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_ranks_by_similarity(relation);
}

int oj_similar_vectors_takes(const struct oj_relation *relation,
                             const struct oj_flat *join_side,
                             const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return relation->op == OJ_OP_SIMILAR && relation->n_similar == 0;
}

/* The filter of all but the condition that ranks. */
static oj_status make_filter(struct oj_similar_rows *rows, struct oj_error *err)
{
    struct oj_relation *rest = &rows->rest;
    if (rest->n_similar == 0)
    {
        rest->vector.is_asked = 0;
        return oj_pair_filter_make(rest, &rows->side[0], &rows->side[1],
                                   &rows->filter, err);
    }
    rows->input = rows->side[0].texts[0];
    rows->join_side = rows->side[1].texts[0];
    rest->n_similar--;
    memmove(rest->similar, rest->similar + 1,
            (size_t)rest->n_similar * sizeof *rest->similar);
    for (int i = 0; i < 2; i++)
    {
        rows->side[i].texts++;
        rows->side[i].n_texts--;
    }
    return oj_pair_filter_make(rest, &rows->side[0], &rows->side[1],
                               &rows->filter, err);
}

oj_status oj_similar_rows_open(struct oj_similar_rows *rows,
                               const struct oj_index_args *args,
                               const struct oj_flat *input, int n_threads,
                               struct oj_error *err)
{
    const struct oj_flat *join_side = args->join_side;
    rows->args = args;
    rows->rest = args->relation;
    rows->side[0] = *input;
    rows->side[1] = *join_side;
    OJ_TRY(
        oj_pair_filter_make(&rows->rest, input, join_side, &rows->filter, err));
    rows->n_threads = n_threads;
    OJ_NEW_ZEROED(rows->ranking, n_threads, err);
    OJ_NEW_ZEROED(rows->answers, n_threads, err);
    for (int t = 0; t < n_threads; t++)
    {
        rows->ranking[t] = oj_ranking_make(&rows->rest, args->tie_rank);
        /* the relation's is of distances, which these are not */
        rows->ranking[t].max_distance = rows->ranking[t].bound =
            rows->rest.n_similar > 0 ? 0.0 : rows->rest.vector.max_difference;
        oj_answers_start(&rows->answers[t], args->options.max_batch_pairs,
                         input->n_features, n_threads);
    }
    if (input->n_features == 0 || join_side->n_features == 0)
        return OJ_OK;
    return make_filter(rows, err);
}

oj_status oj_similar_rows_answer(const struct oj_similar_rows *rows,
                                 const struct oj_flat *input,
                                 struct oj_matches *out, struct oj_error *err)
{
    return oj_answers_to_matches(rows->answers, rows->n_threads,
                                 input->n_features, &rows->args->relation,
                                 rows->args->tie_rank, out, err);
}

void oj_similar_rows_close(struct oj_similar_rows *rows)
{
    for (int t = 0; t < rows->n_threads; t++)
    {
        if (rows->ranking != NULL)
            oj_ranking_free(&rows->ranking[t]);
        if (rows->answers != NULL)
            oj_answers_free(&rows->answers[t]);
    }
    oj_free(rows->ranking);
    oj_free(rows->answers);
}
