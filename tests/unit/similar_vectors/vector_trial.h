/** Layers of features with several kinds of vectors. Include once, after
 * references.h. */
#ifndef VECTOR_TRIAL_H
#define VECTOR_TRIAL_H

#include "../join_trial.h"
#include "../plain_pairs.h"

#include <float.h>

/* Kinds of vectors. */
enum
{
    LATTICE, /* many equal vectors, and many differences exactly at the limit */
    CLUSTERS,
    /* clusters, and a few vectors a million times farther from the origin */
    FAR_OUT,
    TINY, /* squares underflow in single and double precision */
    /* coordinates near OJ_FLAT_MOST, the greatest that joins accept */
    ENORMOUS,
    ONE_POINT, /* all but a few vectors are equal */
    N_KINDS
};

static inline double pick_number(int kind, int64_t centre, int64_t dimension)
{
    double at = (double)((centre * 7919 + dimension * 104729) % 1009) / 1009.0;
    switch (kind)
    {
        case LATTICE:
            return 1 + pick(5);
        case CLUSTERS:
            return at + pick(1000) * 1e-4;
        case FAR_OUT:
            return (at + pick(1000) * 1e-4) * (one_in(50) ? 1e6 : 1.0);
        case TINY:
            return (at + pick(4)) * (one_in(2) ? 1e-165 : 1e-152);
        case ENORMOUS:
            return (at + pick(1000) * 1e-3) * 1e149 * (pick(2) ? 1 : -1);
        default:
            return one_in(90) ? pick(3) * DBL_EPSILON : 1.0;
    }
}

/* Returns vectors of a kind. For the cosine norm, their squared length is at
 * least DBL_MIN. */
static inline double *pick_vectors_of(int kind, int64_t n, int64_t n_dimensions)
{
    double *number = oj_malloc(n * n_dimensions + 1, sizeof *number);
    ck_assert_ptr_nonnull(number);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t centre = pick(5);
        double *at = number + i * n_dimensions, sum = 0.0;
        for (int64_t j = 0; j < n_dimensions; j++)
        {
            at[j] = pick_number(kind, centre, j);
            sum += at[j] * at[j];
        }
        if (one_in(15) || (kind != TINY && sum < DBL_MIN))
            at[0] = (double)NAN;
    }
    return number;
}

static inline void make_trial(struct join_trial *t, int kind, int64_t n_join,
                              int64_t n_input, int64_t n_dimensions)
{
    memset(t, 0, sizeof *t);
    add_features_without_geometry(&t->join_buf, n_join);
    add_features_without_geometry(&t->input_buf, n_input);
    trial_view(t);
    t->relation = oj_relation_default();
    t->relation.op = OJ_OP_SIMILAR;
    t->relation.vector.is_asked = 1;
    t->relation.vector.norm =
        (enum oj_vector_norm)(kind == TINY ? pick(3) : pick(4));
    t->relation.vector.max_difference = INFINITY;
    t->columns.vector[0] = pick_vectors_of(kind, n_join, n_dimensions);
    t->columns.vector[1] = pick_vectors_of(kind, n_input, n_dimensions);
    t->join.vectors = (struct oj_vectors){n_dimensions, t->columns.vector[0]};
    t->input.vectors = (struct oj_vectors){n_dimensions, t->columns.vector[1]};
}

/* Returns a limit: the exact difference of some pair, the double below it, or
 * another number. */
static inline double pick_limit(const struct join_trial *t)
{
    const struct oj_vectors *a = &t->input.vectors, *b = &t->join.vectors;
    double found = 1.0;
    for (int i = 0; i < 20 && t->input.n_features * t->join.n_features > 0; i++)
    {
        int64_t row = pick((int)t->input.n_features);
        int64_t feature = pick((int)t->join.n_features);
        double d;
        if (!oj_vector_is_there(a, row) || !oj_vector_is_there(b, feature))
            continue;
        d = plain_difference(t->relation.vector.norm, oj_vector_at(a, row),
                             oj_vector_at(b, feature), a->n_dimensions);
        found = i == 0 || d < found ? d : found;
    }
    found = found > 0.0 ? found : 0.0;
    return one_in(4) ? nextafter(found, 0.0) : found * (one_in(4) ? 1.5 : 1.0);
}

#endif
