/** Random columns for the two sides of a join, and conditions that use them. */
#ifndef RANDOM_COLUMNS_H
#define RANDOM_COLUMNS_H

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/text/oj_token_sets.h"
#include "random_numbers.h"
#include "references.h"

/* Owns the columns that pick_columns() sets in both sides. */
struct columns
{
    int32_t *on_class[2], *exclude_class[2];
    double *max_distance;
    struct oj_token_sets_buf text[2][2];
    struct oj_token_sets texts[2][2];
    double *vector[2];
    double *heading;
    int64_t *from[2][OJ_MOST_SPANS], *until[2][OJ_MOST_SPANS];
};

/* Makes sets that have some of 12 tokens. Some sets are empty. */
static inline void pick_token_sets(int64_t n, struct oj_token_sets_buf *out)
{
    out->n_rows = n;
    out->offset = oj_calloc(n + 1, sizeof *out->offset);
    out->token = oj_malloc(12 * n + 1, sizeof *out->token);
    out->size = oj_malloc(n + 1, sizeof *out->size);
    out->bits = oj_calloc(n + 1, sizeof *out->bits);
    ck_assert(out->offset != NULL && out->token != NULL && out->size != NULL &&
              out->bits != NULL);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = out->offset[i];
        for (uint32_t t = 0; t < 12 && !one_in(15); t++)
        {
            if (!one_in(3))
                continue;
            out->token[at++] = t;
            out->bits[i].word[t % 2] ^= UINT64_C(1) << t / 4;
        }
        out->size[i] = (int32_t)(at - out->offset[i]);
        /* tokens that no other set has */
        out->size[i] += out->size[i] > 0 ? pick(2) : 0;
        out->offset[i + 1] = at;
    }
}

/* Adds conditions on texts. Call it after pick_columns(). */
static inline void pick_texts(struct columns *c, struct oj_flat *join,
                              struct oj_flat *input, struct oj_relation *r)
{
    struct oj_flat *side[2] = {join, input};
    r->n_similar = 1 + one_in(3);
    for (int s = 0; s < 2; s++)
    {
        for (int i = 0; i < r->n_similar; i++)
        {
            struct oj_text_condition condition = {(enum oj_text_measure)pick(4),
                                                  pick(6), 5 + pick(6)};
            r->similar[i] = condition;
            pick_token_sets(side[s]->n_features, &c->text[s][i]);
            c->texts[s][i] = oj_token_sets_view(&c->text[s][i]);
        }
        side[s]->texts = c->texts[s];
        side[s]->n_texts = r->n_similar;
    }
}

/* Returns small integers, so that many differences are equal, and some exactly
 * at the limit. Some rows have no vector. */
static inline double *pick_numbers(int64_t n, int64_t n_dimensions)
{
    double *number = oj_malloc(n * n_dimensions + 1, sizeof *number);
    ck_assert_ptr_nonnull(number);
    for (int64_t i = 0; i < n * n_dimensions; i++)
        number[i] = 1 + pick(4);
    for (int64_t i = 0; i < n; i++)
    {
        if (one_in(12))
            number[i * n_dimensions] = (double)NAN;
    }
    return number;
}

/* Adds a condition on vectors. Call it after pick_columns(). */
static inline void pick_vectors(struct columns *c, struct oj_flat *join,
                                struct oj_flat *input, struct oj_relation *r)
{
    struct oj_flat *side[2] = {join, input};
    int64_t n_dimensions = 1 + pick(4);
    r->vector.is_asked = 1;
    r->vector.norm = (enum oj_vector_norm)pick(4);
    r->vector.max_difference =
        r->vector.norm == OJ_NORM_COSINE ? pick(8) / 32.0 : pick(6) / 2.0;
    for (int s = 0; s < 2; s++)
    {
        c->vector[s] = pick_numbers(side[s]->n_features, n_dimensions);
        side[s]->vectors = (struct oj_vectors){n_dimensions, c->vector[s]};
    }
}

/* Makes a short span between few instants, so that ends are often equal. Some
 * spans are open, some are instants, and some rows have none. */
static inline void pick_span(int instants, int64_t *from, int64_t *until)
{
    *from = pick(8);
    *until = *from + (instants ? 0 : pick(5));
    if (!instants && one_in(8))
        *from = INT64_MIN;
    if (!instants && one_in(8))
        *until = INT64_MAX;
    if (one_in(12))
    {
        *from = INT64_MAX;
        *until = instants ? INT64_MAX : INT64_MIN;
    }
}

/* Adds conditions on spans. Call it after pick_columns(). */
static inline void pick_spans(struct columns *c, struct oj_flat *join,
                              struct oj_flat *input, struct oj_relation *r)
{
    struct oj_flat *side[2] = {join, input};
    r->n_spans = 1 + one_in(4);
    for (int i = 0; i < r->n_spans; i++)
    {
        r->spans[i].relations = 1u << pick(OJ_N_SPAN_RELATIONS);
        while (one_in(2))
            r->spans[i].relations |= 1u << pick(OJ_N_SPAN_RELATIONS);
        if (one_in(2))
            r->spans[i].relations = OJ_SPANS_INTERSECT;
        for (int s = 0; s < 2; s++)
        {
            int64_t n = side[s]->n_features;
            int instants = one_in(2);
            c->from[s][i] = oj_malloc(n + 1, sizeof(int64_t));
            c->until[s][i] = oj_malloc(n + 1, sizeof(int64_t));
            ck_assert(c->from[s][i] != NULL && c->until[s][i] != NULL);
            for (int64_t row = 0; row < n; row++)
                pick_span(instants, &c->from[s][i][row], &c->until[s][i][row]);
            side[s]->spans[i] = (struct oj_spans){
                c->from[s][i], instants ? c->from[s][i] : c->until[s][i]};
            side[s]->n_spans = r->n_spans;
        }
    }
}

/* Makes headings of the input. Some are missing. */
static inline void pick_headings(struct columns *c, struct oj_flat *input)
{
    const int64_t n = input->n_features;
    c->heading = oj_malloc(n + 1, sizeof *c->heading);
    ck_assert(c->heading != NULL);
    for (int64_t row = 0; row < n; row++)
        c->heading[row] = one_in(8) ? (double)NAN : 15.0 * (pick(53) - 26);
    input->heading = c->heading;
}

/* Returns n_classes random classes for n features. Some features have none. */
static inline int32_t *pick_column(int64_t n, int n_classes)
{
    int32_t *column = oj_malloc(n > 0 ? n : 1, sizeof *column);
    ck_assert_ptr_nonnull(column);
    for (int64_t i = 0; i < n; i++)
        column[i] = pick(n_classes + 1) - 1;
    return column;
}

/* Returns maximum distances of n features. Some are missing. */
static inline double *pick_distances(int64_t n, double scale)
{
    double *column = oj_malloc(n > 0 ? n : 1, sizeof *column);
    ck_assert_ptr_nonnull(column);
    for (int64_t i = 0; i < n; i++)
        column[i] = one_in(12)   ? (pick(2) ? (double)NAN : -1.0)
                    : one_in(30) ? (double)INFINITY
                                 : scale * pick(6);
    return column;
}

/* Adds each condition with a probability of 1 / n. */
static inline void pick_columns(struct columns *c, struct oj_flat *join,
                                struct oj_flat *input, struct oj_relation *r,
                                double scale, int n)
{
    int has_fids = join->fid != NULL && input->fid != NULL;
    memset(c, 0, sizeof *c);
    r->exclude_self = has_fids && one_in(n);
    r->unordered_pairs = has_fids && one_in(n) ? (pick(2) ? 1 : -1) : 0;
    r->exclude_same_geometry = one_in(n);
    if (one_in(n))
    {
        /* few classes, or classes of one or two features */
        int n_on = join->n_features % 2 ? 3 : 3 + (int)join->n_features;
        join->on_class = c->on_class[0] = pick_column(join->n_features, n_on);
        input->on_class = c->on_class[1] = pick_column(input->n_features, n_on);
    }
    if (one_in(n))
    {
        join->exclude_class = c->exclude_class[0] =
            pick_column(join->n_features, 3);
        input->exclude_class = c->exclude_class[1] =
            pick_column(input->n_features, 3);
    }
    if (r->op == OJ_OP_DWITHIN && one_in(n))
    {
        struct oj_flat *side = one_in(2) ? join : input;
        side->max_distance = c->max_distance =
            pick_distances(side->n_features, scale);
    }
}

static inline void columns_free(struct columns *c)
{
    for (int i = 0; i < 2; i++)
    {
        oj_free(c->on_class[i]);
        oj_free(c->exclude_class[i]);
        oj_token_sets_free(&c->text[i][0]);
        oj_token_sets_free(&c->text[i][1]);
        oj_free(c->vector[i]);
        for (int s = 0; s < OJ_MOST_SPANS; s++)
        {
            oj_free(c->from[i][s]);
            oj_free(c->until[i][s]);
        }
    }
    oj_free(c->max_distance);
    oj_free(c->heading);
}

#endif
