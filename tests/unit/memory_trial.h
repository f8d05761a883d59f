/** A join whose n-th allocation fails, n = 1, 2, 3 ... until none does: it ends
 *  with "out of memory" and a message, keeps nothing, works again, and answers
 *  as if nothing had been.  Run with a leak checker it also shows that nothing
 *  leaks.  Include once. */
#ifndef MEMORY_TRIAL_H
#define MEMORY_TRIAL_H

#include "random_layers.h"

struct memory_join
{
    const char *backend;
    const struct oj_flat *join, *input;
    struct oj_relation relation;
    struct oj_options options; /* n_threads 0: 1 and 2 in turn */
    int64_t n_each;            /* then every seventh; 0: each allocation */
};

/* Opens, joins and closes once; what failed is asked again, with memory. */
static inline oj_status join_once(const struct memory_join *t, int n_threads,
                                  struct oj_matches *out)
{
    struct oj_options options = t->options;
    struct oj_join *join = NULL;
    oj_status status;
    options.n_threads = n_threads;
    error.message[0] = '\0';
    status = oj_join_open(t->join, &t->relation, t->backend, &options, &join,
                          &error);
    if (status != OJ_OK)
    {
        ck_assert_ptr_null(join);
        return status;
    }
    status = oj_join_batch(join, t->input, out, &error);
    if (status != OJ_OK)
    {
        MATCHES again = {0};
        struct oj_error later;
        oj_alloc_fail_at(0);
        ck_assert_int_eq(oj_join_batch(join, t->input, &again, &later), OJ_OK);
        ck_assert_int_eq(again.n_rows, t->input->n_features);
    }
    oj_join_close(join);
    return status;
}

/* least: so many allocations fail at least. */
static inline void try_without_memory(const struct memory_join *t,
                                      int64_t least)
{
    MATCHES truth = {0}, out = {0};
    int64_t n_failed = 0, step = 1;
    oj_status status = OJ_ERR_NOMEM;
    must(join_once(t, 2, &truth));
    for (int64_t n = 1; status != OJ_OK; n += step)
    {
        int n_threads = t->options.n_threads;
        oj_matches_free(&out);
        oj_alloc_fail_at(n);
        status =
            join_once(t, n_threads > 0 ? n_threads : 1 + (int)(n % 2), &out);
        oj_alloc_fail_at(0);
        n_failed += status != OJ_OK;
        step = t->n_each > 0 && n_failed > t->n_each ? 7 : 1;
        expect(status == OJ_OK ||
                   (status == OJ_ERR_NOMEM && error.message[0] != '\0'),
               "%s: allocation %d: %s: %s", t->backend, (int)n,
               oj_status_name(status), error.message);
    }
    ck_assert_int_gt(n_failed, least);
    ck_assert_int_eq(out.n_rows, truth.n_rows);
    ck_assert_int_eq(out.n_entries, truth.n_entries);
    ck_assert_int_eq(out.n_pairs, truth.n_pairs);
    ck_assert_int_eq(out.n_matched, truth.n_matched);
    for (int64_t i = 0; i < out.n_entries; i++)
        expect(out.join_row[i] == truth.join_row[i] &&
                   (out.join_row[i] < 0 || isnan(out.measure[i]) ||
                    bits_of(out.measure[i]) == bits_of(truth.measure[i])),
               "%s: entry %d", t->backend, (int)i);
}

#endif
