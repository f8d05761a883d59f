#include "oj_reference.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_compare.h"

#include <stdlib.h>

/* A feature of the join's own answer. */
struct answer_feature
{
    int64_t ordinal;
    int32_t row;
};

struct oj_reference
{
    const struct oj_job *job;
    struct oj_join *engine; /* NULL: in tiles */
    struct oj_flat side;    /* what join_row means */

    /* In tiles. */
    struct oj_tiles tiles; /* the job's, read on their own */
    struct oj_tiled_join *tiled;
    struct oj_feature_set own;  /* of the reference's answer */
    struct oj_feature_set both; /* where it has others than the join's */
    int64_t n_places, cap_places;
    struct answer_feature *place; /* by ordinal */
    int64_t cap_row;
    int32_t *row; /* [own] in side */
};

oj_status oj_reference_open(const struct oj_job *job, struct oj_reference **out,
                            struct oj_error *err)
{
    struct oj_options options = oj_job_options(job->command);
    const char *backend = job->command->validate;
    struct oj_reference *reference = oj_calloc(1, sizeof *reference);
    oj_status status;
    if (reference == NULL)
        return oj_fail_nomem(err, 1, sizeof *reference);
    reference->job = job;
    reference->side = job->join_side->flat;
    if (job->tiled == NULL)
        status = oj_join_open(&job->join_side->flat, &job->relation, backend,
                              &options, &reference->engine, err);
    else
    {
        reference->tiles = oj_tiles_view(&job->tiles);
        status = oj_tiled_join_open(
            &reference->tiles, &job->relation, backend, &options,
            oj_tiled_join_ties_by_fid(job->tiled), &reference->tiled, err);
    }
    if (status != OJ_OK)
    {
        oj_reference_close(reference);
        return status;
    }
    *out = reference;
    return OJ_OK;
}

/* ---- one numbering for two answers --------------------------------------- */

static oj_status note_ours(struct oj_reference *reference,
                           const struct oj_answer_side *ours,
                           struct oj_error *err)
{
    int64_t n = ours->flat.n_features;
    OJ_TRY(oj_reserve(&reference->place, 0, n, &reference->cap_places,
                      sizeof *reference->place, err));
    for (int64_t i = 0; i < n; i++)
    {
        reference->place[i].ordinal = ours->ordinal[i];
        reference->place[i].row = (int32_t)i;
    }
    if (n > 0)
        qsort(reference->place, (size_t)n, sizeof *reference->place,
              oj_compare_int64);
    reference->n_places = n;
    return OJ_OK;
}

/* The row of ours with that ordinal, or -1. */
static int32_t find_ours(const struct oj_reference *reference, int64_t ordinal)
{
    const struct answer_feature wanted = {ordinal, 0};
    const struct answer_feature *found = NULL;
    if (reference->n_places > 0)
        found = bsearch(&wanted, reference->place, (size_t)reference->n_places,
                        sizeof wanted, oj_compare_int64);
    return found != NULL ? found->row : -1;
}

/* Side becomes ours and what is only of the reference, by ordinals. */
static oj_status add_others(struct oj_reference *reference,
                            const struct oj_answer_side *ours,
                            struct oj_error *err)
{
    const struct oj_flat own = oj_feature_set_view(&reference->own);
    struct oj_feature_set *both = &reference->both;
    OJ_TRY(oj_feature_set_clear(both, err));
    for (int64_t i = 0; i < ours->flat.n_features; i++)
        OJ_TRY(oj_feature_set_add(both, &ours->flat, i, ours->ordinal[i], err));
    for (int64_t i = 0; i < own.n_features; i++)
    {
        if (reference->row[i] >= 0)
            continue;
        reference->row[i] = (int32_t)both->buf.n_features;
        OJ_TRY(
            oj_feature_set_add(both, &own, i, reference->own.ordinal[i], err));
    }
    reference->side = oj_feature_set_view(both);
    return OJ_OK;
}

/* -1, all of a row, stays. */
static void number_undecided(const struct oj_reference *reference,
                             struct oj_matches *matches)
{
    int32_t *list = matches->undecided_join;
    for (int64_t i = 0, first = 0; i < matches->n_undecided; i++)
    {
        if (list[i] >= 0)
            list[i] = reference->row[list[i]];
        if (i + 1 < matches->n_undecided &&
            matches->undecided[i + 1] == matches->undecided[i])
            continue;
        qsort(list + first, (size_t)(i + 1 - first), sizeof *list,
              oj_compare_int32);
        first = i + 1;
    }
}

static oj_status number_alike(struct oj_reference *reference,
                              const struct oj_answer_side *ours,
                              struct oj_matches *matches, struct oj_error *err)
{
    int64_t n = reference->own.buf.n_features, n_others = 0;
    OJ_TRY(note_ours(reference, ours, err));
    OJ_TRY(oj_reserve(&reference->row, 0, n, &reference->cap_row,
                      sizeof *reference->row, err));
    for (int64_t i = 0; i < n; i++)
    {
        reference->row[i] = find_ours(reference, reference->own.ordinal[i]);
        n_others += reference->row[i] < 0;
    }
    reference->side = ours->flat;
    if (n_others > 0)
        OJ_TRY(add_others(reference, ours, err));
    for (int64_t i = 0; i < matches->n_entries; i++)
    {
        if (matches->join_row[i] >= 0)
            matches->join_row[i] = reference->row[matches->join_row[i]];
    }
    number_undecided(reference, matches);
    return OJ_OK;
}

/* ---- a batch --------------------------------------------------------------
 */

oj_status oj_reference_batch(struct oj_reference *reference,
                             const struct oj_flat *input,
                             const struct oj_answer_side *ours,
                             struct oj_matches *out, struct oj_error *err)
{
    if (reference->tiled == NULL)
        return oj_join_batch(reference->engine, input, out, err);
    OJ_TRY(oj_tiled_join_batch(reference->tiled, input, out, &reference->own,
                               err));
    return number_alike(reference, ours, out, err);
}

const struct oj_flat *oj_reference_side(const struct oj_reference *reference)
{
    return &reference->side;
}

const struct oj_stats *oj_reference_stats(const struct oj_reference *reference)
{
    return reference->tiled != NULL ? oj_tiled_join_stats(reference->tiled)
                                    : oj_join_stats(reference->engine);
}

const struct oj_backend *
oj_reference_backend(const struct oj_reference *reference)
{
    return reference->tiled != NULL ? oj_tiled_join_backend(reference->tiled)
                                    : oj_join_backend(reference->engine);
}

void oj_reference_close(struct oj_reference *reference)
{
    if (reference == NULL)
        return;
    oj_join_close(reference->engine);
    oj_tiled_join_close(reference->tiled);
    oj_tiles_view_free(&reference->tiles);
    oj_feature_set_free(&reference->own);
    oj_feature_set_free(&reference->both);
    oj_free(reference->place);
    oj_free(reference->row);
    oj_free(reference);
}
