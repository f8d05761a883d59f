/** Points that ask one by one, against the cpu backend: what the tests of the
 *  CUDA module's trees on the host share.  Include once. */
#ifndef ASKED_POINTS_H
#define ASKED_POINTS_H

#include "random_layers.h"

#include "plain_tree.h"
#include "random_columns.h"

/* A join and its answer by the cpu backend; owner. */
struct asked
{
    struct oj_join *join;
    struct oj_matches truth;
    const int32_t *tie_rank;
    struct plain_rule rule;
};

static inline void asked_open(struct asked *a, const struct oj_flat *join,
                              const struct oj_flat *input,
                              const struct oj_relation *relation)
{
    struct oj_options options = {.n_threads = 1};
    memset(a, 0, sizeof *a);
    must(oj_join_open(join, relation, "cpu", &options, &a->join, &error));
    must(oj_join_batch(a->join, input, &a->truth, &error));
    a->tie_rank = oj_join_tie_rank(a->join);
    plain_rule_make(&a->rule, relation, join, input, a->tie_rank);
}

static inline void asked_close(struct asked *a)
{
    plain_rule_free(&a->rule);
    oj_join_close(a->join);
    oj_matches_free(&a->truth);
}

/* What random joins of a test have of their own. */
struct asked_kind
{
    unsigned (*pick_kinds)(void); /* of the join side */
    struct oj_relation (*pick_relation)(const struct scene *scene,
                                        const struct oj_flat *join);
    /* conditions on columns of features that are not all points */
    void (*limit)(struct oj_relation *relation, const struct oj_flat *join);
    void (*try_layers)(const struct oj_flat *join, const struct oj_flat *input,
                       const struct oj_relation *relation);
};

/* One random join; the state of the random numbers says which. */
static inline void try_random(const struct asked_kind *kind)
{
    struct scene scene = pick_scene();
    struct oj_flat_buf join_buf = {0}, input_buf = {0};
    struct oj_flat join, input;
    struct oj_relation relation;
    struct columns columns;
    int n = pick(one_in(5) ? 400 : 40);
    int64_t *fid;
    add_join_features(&join_buf, &scene, n, kind->pick_kinds(), 0);
    join = oj_flat_buf_view(&join_buf);
    add_input_points(&input_buf, &scene, &join, 300, 0);
    input = oj_flat_buf_view(&input_buf);
    join.fid = fid = pick_fids(join.n_features);
    relation = kind->pick_relation(&scene, &join);
    pick_columns(&columns, &join, &input, &relation, scene.scale, 6);
    if (!oj_flat_is_points(&join))
        kind->limit(&relation, &join);
    if (oj_flat_is_points(&input))
        kind->try_layers(&join, &input, &relation);
    columns_free(&columns);
    oj_free(fid);
    oj_flat_buf_free(&join_buf);
    oj_flat_buf_free(&input_buf);
}

#endif
