/** Joins by similarity of texts or vectors, row by row: what the engines and
 *  their plain references share.  The first condition on texts ranks, whose
 * sets are here; without one the condition on vectors.
 */
#ifndef SIMILARITY_RANKING_H
#define SIMILARITY_RANKING_H

#include "../pairs/oj_pair_filter.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_engine.h"

/** Of a batch; not to be moved while it is open. Zeroed memory is valid. */
struct oj_similar_rows
{
    const struct oj_index_args *args;
    struct oj_token_sets input, join_side; /**< no rows: there are no pairs by
                                                texts */
    struct oj_relation rest;               /**< the other conditions, */
    struct oj_flat side[2];                /**< and what they look at */
    struct oj_pair_filter filter;          /**< of them; borrows from here */
    int n_threads;
    struct oj_ranking *ranking; /**< [n_threads] of the row on its way */
    struct oj_answers *answers; /**< [n_threads] */
};

/** For struct oj_engine: 1 for -op similar by texts, of any features. */
int oj_similar_takes(const struct oj_relation *relation,
                     const struct oj_flat *join_side,
                     const struct oj_flat *input);

/** The same by vectors alone. */
int oj_similar_vectors_takes(const struct oj_relation *relation,
                             const struct oj_flat *join_side,
                             const struct oj_flat *input);

/** Opens a batch for n_threads. To be closed after an error, too. */
OJ_MUST_USE oj_status oj_similar_rows_open(struct oj_similar_rows *rows,
                                           const struct oj_index_args *args,
                                           const struct oj_flat *input,
                                           int n_threads, struct oj_error *err);

/** Ranks a pair of the row with common tokens that fulfils all conditions. */
static inline oj_status oj_similar_put(const struct oj_similar_rows *rows,
                                       int thread, int64_t row, int32_t feature,
                                       int64_t common, struct oj_error *err)
{
    double similarity = oj_text_similarity(
        rows->args->relation.similar[0].measure, common, rows->input.size[row],
        rows->join_side.size[feature]);
    return oj_ranking_add(&rows->ranking[thread], feature, -similarity, err);
}

/** The same for joins that take every pair, each of which comes once, of rows
 *  in any order. */
static inline oj_status oj_similar_put_pair(const struct oj_similar_rows *rows,
                                            int thread, int64_t row,
                                            int64_t feature, int64_t common,
                                            struct oj_error *err)
{
    struct oj_answers *answers = &rows->answers[thread];
    OJ_TRY(oj_answers_reserve(answers, 1, err));
    oj_answers_put(answers, (int32_t)row, (int32_t)feature,
                   -oj_text_similarity(rows->args->relation.similar[0].measure,
                                       common, rows->input.size[row],
                                       rows->join_side.size[feature]));
    return OJ_OK;
}

/** The answer of the batch. */
OJ_MUST_USE oj_status oj_similar_rows_answer(const struct oj_similar_rows *rows,
                                             const struct oj_flat *input,
                                             struct oj_matches *out,
                                             struct oj_error *err);

void oj_similar_rows_close(struct oj_similar_rows *rows);

#endif
