/** Two layers made for a join, joins of these layers by backends, and the
 * comparison of answers, bit for bit. Include once, after references.h. */
#ifndef JOIN_TRIAL_H
#define JOIN_TRIAL_H

#include "random_layers.h"

#include "random_columns.h"

#include <stdio.h>

/** Two layers and their columns. Owner; zeroed memory is a valid empty value.
 */
struct join_trial
{
    struct oj_flat_buf join_buf, input_buf;
    int64_t *fid;
    struct columns columns;
    struct oj_flat join, input; /* views */
    struct oj_relation relation;
};

static inline void trial_free(struct join_trial *t)
{
    oj_flat_buf_free(&t->join_buf);
    oj_flat_buf_free(&t->input_buf);
    columns_free(&t->columns);
    oj_free(t->fid);
    memset(t, 0, sizeof *t);
}

/** Makes the views of all features added so far. */
static inline void trial_view(struct join_trial *t)
{
    t->join = oj_flat_buf_view(&t->join_buf);
    t->input = oj_flat_buf_view(&t->input_buf);
}

/** Returns a view of the trial in which both sides are the join layer. */
static inline struct join_trial trial_with_itself(const struct join_trial *t)
{
    struct join_trial alone = *t;
    alone.input = alone.join;
    return alone;
}

/** Makes the layers of a random scene. The join layer has n_join features of
 * some kinds, or a few hundred more, with FIDs in any order. with_too_few 1:
 * some of its parts have too few vertices. The input has n_input points.
 * Returns the scene. */
static inline struct scene trial_make(struct join_trial *t, int n_join,
                                      unsigned kinds, int with_too_few,
                                      int n_input)
{
    struct scene scene = pick_scene();
    memset(t, 0, sizeof *t);
    t->relation = oj_relation_default();
    add_join_features(&t->join_buf, &scene, n_join, kinds, with_too_few);
    t->join = oj_flat_buf_view(&t->join_buf);
    add_input_points(&t->input_buf, &scene, &t->join, n_input, 0);
    t->input = oj_flat_buf_view(&t->input_buf);
    t->join.fid = t->fid = pick_fids(t->join.n_features);
    return scene;
}

/* --- answers -------------------------------------------------------------- */

static inline struct oj_join *trial_open(const struct join_trial *t,
                                         const char *backend,
                                         const struct oj_options *options)
{
    struct oj_join *join;
    must(oj_join_open(&t->join, &t->relation, backend, options, &join, &error));
    return join;
}

/** Opens a join, joins and closes it. Returns a status. Writes the method to
 *  how, unless how is NULL. */
static inline oj_status trial_open_and_join(const struct join_trial *t,
                                            const char *backend,
                                            const struct oj_options *options,
                                            char how[64],
                                            struct oj_matches *out)
{
    struct oj_join *join = NULL;
    oj_status status =
        oj_join_open(&t->join, &t->relation, backend, options, &join, &error);
    if (status == OJ_OK)
        status = oj_join_batch(join, &t->input, out, &error);
    if (status == OJ_OK && how != NULL)
        snprintf(how, 64, "%s", oj_join_method(join, &t->input));
    oj_join_close(join);
    return status;
}

static inline void trial_answer(const struct join_trial *t, const char *backend,
                                int n_threads, struct oj_matches *out)
{
    const struct oj_options options = {.n_threads = n_threads};
    must(trial_open_and_join(t, backend, &options, NULL, out));
}

static inline void trial_truth(const struct join_trial *t,
                               struct oj_matches *out)
{
    trial_answer(t, "cpu", 2, out);
}

/** Asserts the properties of every answer of a join by distance: form, order,
 * distances and counts. */
static inline void trial_check_form(const struct join_trial *t,
                                    const struct oj_matches *m)
{
    int lists = oj_relation_allows_many_pairs(&t->relation);
    int64_t n_pairs = 0, n_matched = 0;
    ck_assert_int_eq(m->n_rows, t->input.n_features);
    expect(lists || (m->offset == NULL && m->n_tied == 0), "one-to-one form");
    for (int64_t row = 0; row < m->n_rows; row++)
    {
        int64_t first = oj_matches_first(m, row), n = 0;
        for (int64_t i = first; i < oj_matches_end(m, row); i++, n++)
        {
            expect(m->join_row[i] >= 0 && m->join_row[i] < t->join.n_features,
                   "row %d: no such feature", (int)row);
            expect(m->measure[i] >= 0.0 && m->measure[i] < INFINITY &&
                       m->measure[i] <= t->relation.max_distance,
                   "row %d: distance %g", (int)row, m->measure[i]);
            expect(i == first || m->measure[i] >= m->measure[i - 1],
                   "row %d: order", (int)row);
        }
        expect(t->relation.ties == OJ_TIES_ALL || n <= t->relation.k,
               "row %d: %d pairs", (int)row, (int)n);
        expect(m->offset != NULL || n > 0 || isnan(m->measure[row]),
               "row %d: no NaN", (int)row);
        n_pairs += n;
        n_matched += n > 0;
    }
    ck_assert_int_eq(m->n_pairs, n_pairs);
    ck_assert_int_eq(m->n_matched, n_matched);
    ck_assert_int_eq(m->n_entries, m->offset != NULL ? n_pairs
                                   : m->n_tied > 0   ? m->tied_offset[m->n_tied]
                                                     : m->n_rows);
}

/** Returns 1 if two distances are equal bit for bit, after the first is
 * multiplied by scale. */
static inline int same_measure(const struct oj_matches *one, int64_t i,
                               const struct oj_matches *other, int64_t j,
                               double scale)
{
    return one->measure == NULL || other->measure == NULL ||
           bits_of(one->measure[i] * scale) == bits_of(other->measure[j]) ||
           (isnan(one->measure[i]) && isnan(other->measure[j]));
}

/** Asserts that row a of one answer and row b of another have equal pairs. If
 * places is not NULL, feature f of `one` counts as places[f]. Distances of
 * `one` are multiplied by scale. */
static inline void same_row(const char *what, const struct oj_matches *one,
                            int64_t a, const struct oj_matches *other,
                            int64_t b, const int32_t *places, double scale)
{
    int64_t i = oj_matches_first(one, a), n = oj_matches_end(one, a) - i;
    int64_t j = oj_matches_first(other, b), m = oj_matches_end(other, b) - j;
    expect(m == n, "seed %llu, %s: row %d has %d pairs, row %d of the other %d",
           (unsigned long long)seed, what, (int)a, (int)n, (int)b, (int)m);
    expect(n > 0 || one->offset != NULL || other->offset != NULL ||
               same_measure(one, i, other, j, 1.0),
           "seed %llu, %s: row %d, which has no pair, has a measure",
           (unsigned long long)seed, what, (int)a);
    for (; n > 0; n--, i++, j++)
    {
        int32_t feature = one->join_row[i];
        feature = places != NULL ? places[feature] : feature;
        expect(feature == other->join_row[j] &&
                   same_measure(one, i, other, j, scale),
               "seed %llu, %s: row %d: feature %d at %.17g, the other has %d "
               "at %.17g",
               (unsigned long long)seed, what, (int)a, (int)feature,
               one->measure != NULL ? one->measure[i] * scale : NAN,
               (int)other->join_row[j],
               other->measure != NULL ? other->measure[j] : NAN);
    }
}

/** Asserts that the rows of ours equal the rows of truth from `first` on. */
static inline void same_rows(const char *what, const struct oj_matches *ours,
                             const struct oj_matches *truth, int64_t first)
{
    for (int64_t row = 0; row < ours->n_rows; row++)
        same_row(what, ours, row, truth, first + row, NULL, 1.0);
}

static inline void same_matches(const char *what, const struct oj_matches *ours,
                                const struct oj_matches *truth)
{
    expect(ours->n_rows == truth->n_rows && ours->n_pairs == truth->n_pairs &&
               ours->n_matched == truth->n_matched,
           "seed %llu, %s: %lld pairs of %lld rows, not %lld of %lld",
           (unsigned long long)seed, what, (long long)ours->n_pairs,
           (long long)ours->n_matched, (long long)truth->n_pairs,
           (long long)truth->n_matched);
    same_rows(what, ours, truth, 0);
}

/** Asserts that batches of `size` rows give the rows of truth. At most `most`
 * batches are joined. */
static inline void trial_check_batches(const struct join_trial *t,
                                       const char *backend,
                                       const struct oj_options *options,
                                       int64_t size, int64_t most,
                                       const struct oj_matches *truth)
{
    struct oj_flat_slice batch = {0};
    MATCHES part = {0};
    struct oj_join *join = trial_open(t, backend, options);
    for (int64_t at = 0; at < t->input.n_features && at < most * size;
         at += size)
    {
        int64_t n = t->input.n_features - at;
        n = n < size ? n : size;
        must(oj_flat_slice_make(&t->input, at, n, &batch, &error));
        must(oj_join_batch(join, &batch.flat, &part, &error));
        ck_assert_int_eq(part.n_rows, n);
        same_rows("batches", &part, truth, at);
    }
    oj_join_close(join);
    oj_flat_slice_free(&batch);
}

/** Asserts that the backend cpu and another one have equal answers. Returns the
 * number of pairs. */
static inline int64_t trial_compare(const struct join_trial *t,
                                    const char *backend,
                                    const struct oj_options *options)
{
    MATCHES truth = {0}, ours = {0};
    char how[64];
    int64_t n_pairs;
    trial_truth(t, &truth);
    must(trial_open_and_join(t, backend, options, how, &ours));
    same_matches(how, &ours, &truth);
    n_pairs = truth.n_pairs;
    return n_pairs;
}

/** Joins with the backend cpu and one thread while the n-th allocation fails,
 * for n = 1, 2 ... until none fails; that answer must equal the one of a join
 * with enough memory. Returns how many joins failed. */
static inline int64_t trial_fail_each_allocation(const struct join_trial *t)
{
    const struct oj_options options = {.n_threads = 1};
    MATCHES truth = {0};
    oj_status status = OJ_ERR_NOMEM;
    int64_t n = 0;
    trial_answer(t, "cpu", 1, &truth);
    for (; status != OJ_OK; n++)
    {
        MATCHES ours = {0};
        ck_assert_int_lt(n, 2000);
        oj_alloc_fail_at(n + 1);
        status = trial_open_and_join(t, "cpu", &options, NULL, &ours);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status == OJ_OK)
            same_matches("after failures", &ours, &truth);
    }
    return n - 1;
}

#endif
