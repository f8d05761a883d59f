/** A join whose n-th allocation fails, n = 1, 2, 3 ... until none does: it ends
 *  with an error, works again, and answers as if nothing had been.  Include
 *  once. */
#ifndef MEMORY_TRIAL_H
#define MEMORY_TRIAL_H

#include "random_layers.h"

static void try_without_memory(const struct oj_relation *relation,
                               const struct oj_flat *input,
                               const struct oj_flat *join_side)
{
    struct oj_options options = {.n_threads = 2};
    struct oj_matches m = {0}, truth = {0};
    struct oj_join *join;
    oj_status status = OJ_ERR_NOMEM;
    must(oj_join_open(join_side, relation, "cpu", &options, &join, &error));
    must(oj_join_batch(join, input, &truth, &error));
    oj_join_close(join);
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        options.n_threads = 1 + (int)(n % 2);
        join = NULL;
        oj_alloc_fail_at(n);
        status =
            oj_join_open(join_side, relation, "cpu", &options, &join, &error);
        if (status == OJ_OK)
            status = oj_join_batch(join, input, &m, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (join != NULL) /* and it works again */
            must(oj_join_batch(join, input, &m, &error));
        oj_join_close(join);
    }
    ck_assert_int_eq(m.n_pairs, truth.n_pairs);
    ck_assert_mem_eq(m.join_row, truth.join_row,
                     (size_t)m.n_pairs * sizeof *m.join_row);
    oj_matches_free(&m);
    oj_matches_free(&truth);
}

#endif
