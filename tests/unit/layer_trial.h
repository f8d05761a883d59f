/** Two layers and a join, run by two backends; what differs is reduced to the
 *  fewest features and printed.  Include once, after random_layers.h. */
#ifndef LAYER_TRIAL_H
#define LAYER_TRIAL_H

#include "../../algs/reference/oj_validate.h"
#include "random_layers.h"

#include <stdio.h>

struct layer_trial
{
    struct oj_flat join, input; /* views */
    struct oj_relation relation;
    int n_threads;
};

static inline void join_all(const struct layer_trial *t, const char *backend,
                            struct oj_matches *out)
{
    struct oj_options options = {.n_threads = t->n_threads,
                                 .quadrant_size = 0,
                                 .timings = 0,
                                 .cancel = NULL};
    struct oj_join *join;
    must(
        oj_join_open(&t->join, &t->relation, backend, &options, &join, &error));
    must(oj_join_batch(join, &t->input, out, &error));
    oj_join_close(join);
}

/* What matches promises of itself. */
static inline void check_form(const struct layer_trial *t,
                              const struct oj_matches *m)
{
    int lists = oj_relation_gives_lists(&t->relation);
    int64_t n_pairs = 0, n_matched = 0;
    ck_assert_int_eq(m->n_rows, t->input.n_features);
    ck_assert_int_eq(m->offset != NULL, lists);
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
        expect(lists || n > 0 || isnan(m->measure[row]), "row %d: no NaN",
               (int)row);
        n_pairs += n;
        n_matched += n > 0;
    }
    ck_assert_int_eq(m->n_pairs, n_pairs);
    ck_assert_int_eq(m->n_matched, n_matched);
    ck_assert_int_eq(m->n_entries, lists ? n_pairs : m->n_rows);
}

/* Compares the engine with a reference. */
static inline void compare_backends(const struct layer_trial *t,
                                    const char *reference,
                                    struct oj_validation *v)
{
    MATCHES ours = {0}, theirs = {0};
    memset(v, 0, sizeof *v);
    v->join_side = &t->join;
    v->input = &t->input;
    v->relation = &t->relation;
    join_all(t, "cpu", &ours);
    join_all(t, reference, &theirs);
    check_form(t, &ours);
    must(oj_validation_compare(v, &ours, &theirs, &error));
    oj_validation_free(v);
}

/* --- printing ------------------------------------------------------------- */

static inline void print_ring(const struct oj_flat *flat, int64_t ring)
{
    fprintf(stderr, "(");
    for (int64_t v = flat->vertex_offset[ring];
         v < flat->vertex_offset[ring + 1]; v++)
        fprintf(stderr, "%s%.17g %.17g",
                v > flat->vertex_offset[ring] ? ", " : "", flat->x[v],
                flat->y[v]);
    fprintf(stderr, ")");
}

static inline void print_layer(const char *title, const struct oj_flat *flat)
{
    fprintf(stderr, "%s: %d features\n", title, (int)flat->n_features);
    for (int64_t f = 0; f < flat->n_features && f < 40; f++)
    {
        fprintf(stderr, "  %d (fid %d):", (int)f,
                flat->fid ? (int)flat->fid[f] : -1);
        if (oj_flat_is_points(flat))
        {
            fprintf(stderr, " POINT (%.17g %.17g)\n", flat->x[f], flat->y[f]);
            continue;
        }
        for (int64_t p = flat->part_offset[f]; p < flat->part_offset[f + 1];
             p++)
        {
            int is_polygon = flat->part_kind[p] == OJ_PART_POLYGON;
            fprintf(stderr, flat->part_kind[p] == OJ_PART_POINT ? " POINT "
                            : is_polygon                        ? " POLYGON ("
                                         : " LINESTRING ");
            for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
                 r++)
                print_ring(flat, r);
            fprintf(stderr, is_polygon ? ")" : "");
        }
        fprintf(stderr, "\n");
    }
}

/* --- reducing ------------------------------------------------------------- */

/* The features of flat that are not in first .. end - 1. Owned by the caller;
 * lives in buf. */
static inline struct oj_flat without(const struct oj_flat *flat, int64_t first,
                                     int64_t end_, struct oj_flat_buf *buf)
{
    struct oj_flat view;
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        int64_t fid = flat->fid ? flat->fid[f] : f;
        if (f >= first && f < end_)
            continue;
        add_copy(buf, flat, f, fid);
    }
    view = oj_flat_buf_view(buf);
    if (flat->fid == NULL)
        view.fid = NULL;
    return view;
}

/* Takes features from one side while the two backends still differ. The old
 * arrays are left to the end of the program: it fails anyhow. */
static inline void reduce_side(struct layer_trial *t, const char *reference,
                               struct oj_flat *side)
{
    for (int64_t size = (side->n_features + 1) / 2; size > 0; size /= 2)
    {
        for (int64_t first = 0; first < side->n_features;)
        {
            struct oj_flat_buf buf = {0};
            struct oj_flat before = *side;
            struct oj_validation v;
            *side = without(&before, first, first + size, &buf);
            compare_backends(t, reference, &v);
            if (v.n_differences > 0)
                continue;
            *side = before;
            oj_flat_buf_free(&buf);
            first += size;
        }
    }
}

static inline void print_difference(const struct layer_trial *t,
                                    const struct oj_validation *v)
{
    const struct oj_difference *d = &v->first[0];
    fprintf(stderr,
            "max_distance %.17g, k %d, ties %s, to %s, %d threads\n"
            "%s: row %d: ours %d at %.17g, reference %d at %.17g\n",
            t->relation.max_distance, (int)t->relation.k,
            t->relation.ties == OJ_TIES_ALL ? "all" : "first",
            t->relation.distance_to == OJ_TO_BOUNDARY ? "boundary" : "interior",
            t->n_threads, oj_difference_kind_name(d->kind), (int)d->input_row,
            d->join_row_ours, d->measure_ours, d->join_row_reference,
            d->measure_reference);
}

/* Prints the smallest trial found that still differs. */
static inline void print_reduced(const struct layer_trial *t,
                                 const char *reference)
{
    struct layer_trial small = *t;
    struct oj_validation v;
    compare_backends(&small, reference, &v);
    print_difference(&small, &v);
    reduce_side(&small, reference, &small.input);
    reduce_side(&small, reference, &small.join);
    reduce_side(&small, reference, &small.input);
    compare_backends(&small, reference, &v);
    fprintf(stderr, "reduced: ");
    print_difference(&small, &v);
    print_layer("join side", &small.join);
    print_layer("input", &small.input);
}

#endif
