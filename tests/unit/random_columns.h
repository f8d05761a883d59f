/** Columns for the two sides of a join, and conditions that look at them. */
#ifndef RANDOM_COLUMNS_H
#define RANDOM_COLUMNS_H

#include "../../flatten/base/oj_array.h"
#include "random_numbers.h"
#include "references.h"

/* Owner of what pick_columns() puts into the views of the join and the input
 * side. */
struct columns
{
    int32_t *on_class[2], *exclude_class[2];
    double *max_distance;
};

static inline int32_t *pick_column(int64_t n)
{
    int32_t *column = oj_malloc(n > 0 ? n : 1, sizeof *column);
    ck_assert_ptr_nonnull(column);
    for (int64_t i = 0; i < n; i++)
        column[i] = pick(4) - 1;
    return column;
}

/* Distances of features, some of which are none. */
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

/* Each condition comes up once in n times. */
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
        join->on_class = c->on_class[0] = pick_column(join->n_features);
        input->on_class = c->on_class[1] = pick_column(input->n_features);
    }
    if (one_in(n))
    {
        join->exclude_class = c->exclude_class[0] =
            pick_column(join->n_features);
        input->exclude_class = c->exclude_class[1] =
            pick_column(input->n_features);
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
    }
    oj_free(c->max_distance);
}

#endif
