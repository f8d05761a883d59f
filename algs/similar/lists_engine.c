/* The plain reference for similar texts: inverted lists of all tokens, and the
 * tokens that a row has in common with each feature are counted, one by one.
 *
 * Source: Ribeiro-Junior et al. 2016 (gSSJoin), on one thread. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "similarity_ranking.h"

#include <string.h>

struct lists_index
{
    struct oj_index_args args;
    int64_t n_lists;
    int64_t *offset;  /* [n_lists + 1] into feature, by token */
    int32_t *feature; /* ascending in a list */
};

static void free_side(struct oj_index *wrapped)
{
    struct lists_index *self = (void *)wrapped;
    oj_free(self->offset);
    oj_free(self->feature);
}

static oj_status build_lists(struct oj_index *wrapped,
                             const struct oj_index_args *args,
                             struct oj_stats *stats, struct oj_error *err)
{
    struct lists_index *self = (void *)wrapped;
    double start = oj_clock_seconds();
    const struct oj_token_sets *sets = args->join_side->texts;
    int64_t n, n_rows = args->join_side->n_features;
    self->args = *args;
    if (n_rows == 0)
        return OJ_OK;
    if (args->join_side->n_texts < args->relation.n_similar)
        return oj_fail(err, OJ_ERR_ARG, "the join side has no texts");
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
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes += 8 * self->n_lists + 4 * n;
    return OJ_OK;
}

/* common: [join features] zeros, before and after. */
static oj_status join_row(const struct lists_index *self,
                          const struct oj_similar_rows *rows, int64_t row,
                          int32_t *common, struct oj_stats *stats,
                          struct oj_error *err)
{
    const struct oj_token_sets *in = &rows->input;
    oj_ranking_start(&rows->ranking[0]);
    for (int64_t i = in->offset[row]; i < in->offset[row + 1]; i++)
    {
        uint32_t token = in->token[i];
        for (int64_t at = token < self->n_lists ? self->offset[token] : 0;
             token < self->n_lists && at < self->offset[token + 1]; at++)
            common[self->feature[at]]++;
    }
    for (int64_t f = 0; f < rows->join_side.n_rows; f++)
    {
        int32_t o = common[f];
        common[f] = 0;
        stats->n_candidates += o > 0;
        if (o > 0 &&
            oj_text_is_similar(&self->args.relation.similar[0], o,
                               in->size[row], rows->join_side.size[f]) &&
            oj_pair_may_count(&rows->filter, row, f))
            OJ_TRY(oj_similar_put(rows, 0, row, (int32_t)f, o, err));
    }
    oj_ranking_finish(&rows->ranking[0]);
    return oj_answers_add(&rows->answers[0], row, &rows->ranking[0], err);
}

static oj_status join_rows(const struct lists_index *self,
                           struct oj_similar_rows *rows, int32_t **common,
                           const struct oj_flat *input, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    OJ_TRY(oj_similar_rows_open(rows, &self->args, input, 1, err));
    OJ_NEW_ZEROED(*common, rows->join_side.n_rows, err);
    for (int64_t row = 0; row < rows->input.n_rows; row++)
    {
        OJ_TRY(oj_check_cancel(self->args.options.cancel, err));
        OJ_TRY(join_row(self, rows, row, *common, stats, err));
    }
    return oj_similar_rows_answer(rows, input, out, err);
}

static oj_status join_by_lists(struct oj_index *wrapped,
                               const struct oj_flat *input,
                               struct oj_matches *out, struct oj_stats *stats,
                               struct oj_error *err)
{
    struct oj_similar_rows rows = {0};
    double start = oj_clock_seconds();
    int32_t *common = NULL;
    oj_status status =
        join_rows((void *)wrapped, &rows, &common, input, out, stats, err);
    oj_similar_rows_close(&rows);
    oj_free(common);
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

const struct oj_engine oj_lists_engine = {"inverted lists",
                                          oj_similar_takes,
                                          sizeof(struct lists_index),
                                          build_lists,
                                          join_by_lists,
                                          free_side,
                                          NULL,
                                          NULL};
