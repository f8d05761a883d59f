#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_compare.h"
#include "../aggregate/oj_aggregate.h"
#include "../aggregate/oj_sum_request.h"
#include "../base/cpu_threads.h"
#include "../ogrjoin.h"
#include "../relate/oj_overlapping_parts.h"
#include "../relation/oj_point_rule.h"
#include "engine_backend.h"
#include "oj_overlapping_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct oj_join
{
    const struct oj_backend *backend;
    struct oj_flat join_side; /* the caller's, with overlaps */
    uint8_t *overlaps;        /* or NULL: nowhere, or of no matter */
    int has_overlaps;         /* 1: overlaps is what it should be for points */
    struct oj_overlapping_points *overlapping; /* NULL: not needed yet */
    struct oj_relation relation;
    struct oj_options options;
    struct oj_stats stats;
    int32_t *tie_rank; /* [features], or NULL: the ordinal */
    struct oj_index *index;
};

const char *oj_version(void)
{
    return OGRJOIN_VERSION;
}

struct fid_at
{
    int64_t fid;
    int32_t ordinal;
};

/* Tie order is (FID, read order), and read order alone where FIDs are missing
 * or repeat. *out stays NULL when that is the order of the ordinals. */
static oj_status make_tie_rank(const struct oj_flat *flat, int32_t **out,
                               struct oj_error *err)
{
    int64_t n = flat->n_features;
    int64_t i = 1;
    struct fid_at *at;
    int32_t *rank;
    if (flat->fid == NULL)
        return OJ_OK;
    while (i < n && flat->fid[i] > flat->fid[i - 1])
        i++;
    if (i >= n)
        return OJ_OK;
    OJ_NEW(at, n, err);
    for (i = 0; i < n; i++)
    {
        at[i].fid = flat->fid[i];
        at[i].ordinal = (int32_t)i;
    }
    qsort(at, (size_t)n, sizeof *at, oj_compare_int64);
    for (i = 1; i < n && at[i].fid != at[i - 1].fid; i++)
        ;
    if (i < n)
    {
        oj_free(at);
        return OJ_OK;
    }
    rank = oj_malloc(n, sizeof *rank);
    if (rank == NULL)
    {
        oj_free(at);
        return oj_fail_nomem(err, n, sizeof *rank);
    }
    for (i = 0; i < n; i++)
        rank[at[i].ordinal] = (int32_t)i;
    oj_free(at);
    *out = rank;
    return OJ_OK;
}

static const struct oj_backend *choose_backend(const char *name)
{
    if (name == NULL || strcasecmp(name, "auto") == 0)
        return &oj_auto_backend;
    return oj_backend_find(name);
}

/* 1 for our own engine on either processor. */
static int is_engine(const struct oj_join *join)
{
    return join->backend == &oj_cpu_backend ||
           join->backend == &oj_auto_backend ||
           join->backend == &oj_cuda_backend;
}

/* 1 when an engine takes all rings of a feature together, as those on devices
 * and known cells do, so that features whose parts overlap are joined apart. */
static int leaves_out_overlapping(const struct oj_join *join)
{
    const struct oj_gpu_module *module;
    struct oj_error why;
    if (!oj_is_points_in_polygons(&join->relation, &join->join_side, NULL))
        return 0;
    if (join->relation.share_lists && join->relation.any_order)
        return is_engine(join);
    return join->backend == &oj_cuda_backend ||
           (join->backend == &oj_auto_backend &&
            oj_gpu_load(&module, &why) == OJ_OK);
}

static oj_status find_overlaps(struct oj_join *join, struct oj_error *err)
{
    double start = oj_clock_seconds();
    int asks_where = oj_point_locations(join->relation.op) !=
                     (1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY);
    if (leaves_out_overlapping(join))
        OJ_TRY(oj_overlapping_parts(
            &join->join_side, asks_where, join->options.n_threads,
            join->options.cancel, &join->overlaps, err));
    join->join_side.overlaps = join->overlaps;
    join->has_overlaps = 1;
    join->stats.index_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static oj_status make_index(struct oj_join *join, struct oj_error *err)
{
    return join->backend->index(join->backend, &join->join_side, join->tie_rank,
                                &join->relation, &join->options, &join->index,
                                &join->stats, err);
}

/* What the chosen backend needs of the join side. */
static oj_status index_join_side(struct oj_join *join,
                                 const struct oj_flat *join_side,
                                 struct oj_error *err)
{
    unsigned kinds = join->options.input_kinds;
    join->join_side = *join_side;
    join->join_side.overlaps = NULL;
    if (kinds == 0 || (kinds & OJ_PART_POINT) != 0)
        OJ_TRY(find_overlaps(join, err));
    OJ_TRY(make_tie_rank(join_side, &join->tie_rank, err));
    return make_index(join, err);
}

oj_status oj_join_open(const struct oj_flat *join_side,
                       const struct oj_relation *relation, const char *backend,
                       const struct oj_options *options, struct oj_join **out,
                       struct oj_error *err)
{
    struct oj_join *join;
    oj_status status;
    OJ_TRY(oj_relation_check(relation, err));
    if (choose_backend(backend) == NULL)
        return oj_fail(err, OJ_ERR_ARG, "there is no backend \"%s\"", backend);
    if (join_side->n_features > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the join layer has %lld features; at most %d are "
                       "possible",
                       (long long)join_side->n_features, INT32_MAX);
    join = oj_calloc(1, sizeof *join);
    if (join == NULL)
        return oj_fail_nomem(err, 1, sizeof *join);
    join->backend = choose_backend(backend);
    join->relation = *relation;
    if (options != NULL)
        join->options = *options;
    if (join->options.n_threads < 1)
        join->options.n_threads = oj_cpu_count();
    if (join->options.quadrant_size < 1)
        join->options.quadrant_size = 256;
    status = index_join_side(join, join_side, err);
    if (status != OJ_OK)
    {
        oj_join_close(join);
        return status;
    }
    *out = join;
    return OJ_OK;
}

/* A distance has to come from somewhere, and from one place. Without features a
 * side has none to give, and no array of them either. */
static oj_status check_distances(const struct oj_join *join,
                                 const struct oj_flat *input,
                                 struct oj_error *err)
{
    const struct oj_relation *relation = &join->relation;
    if (input->max_distance != NULL && join->join_side.max_distance != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "only one side's features can have their own greatest "
                       "distances");
    if (relation->op == OJ_OP_DWITHIN && !(relation->max_distance < INFINITY) &&
        input->max_distance == NULL && join->join_side.max_distance == NULL &&
        input->n_features > 0 && join->join_side.n_features > 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "-op dwithin needs a greatest distance");
    return OJ_OK;
}

/* Points that were not expected: what has to be left out was not. */
static oj_status expect_points(struct oj_join *join, struct oj_error *err)
{
    struct oj_index *before = join->index;
    oj_status status = find_overlaps(join, err);
    if (status != OJ_OK || join->overlaps == NULL)
        return status;
    join->index = NULL;
    status = make_index(join, err);
    if (status == OJ_OK)
    {
        join->backend->free_index(before);
        return OJ_OK;
    }
    join->index = before;
    join->join_side.overlaps = NULL;
    join->has_overlaps = 0;
    oj_free(join->overlaps);
    join->overlaps = NULL;
    return status;
}

static oj_status prepare_batch(struct oj_join *join,
                               const struct oj_flat *input,
                               struct oj_error *err)
{
    if (input->n_features > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a batch of %lld features; at most %d are possible",
                       (long long)input->n_features, INT32_MAX);
    OJ_TRY(check_distances(join, input, err));
    if (!join->has_overlaps && oj_flat_is_points(input))
        return expect_points(join, err);
    return OJ_OK;
}

/* 1 when the engine left features out of such a join, or would have to. */
static int has_left_out(const struct oj_join *join, const struct oj_flat *input)
{
    return oj_is_points_in_polygons(&join->relation, &join->join_side, input) &&
           (join->overlaps != NULL || !join->has_overlaps);
}

oj_status oj_join_batch(struct oj_join *join, const struct oj_flat *input,
                        struct oj_matches *out, struct oj_error *err)
{
    OJ_TRY(prepare_batch(join, input, err));
    OJ_TRY(join->backend->join(join->index, input, out, &join->stats, err));
    if (!has_left_out(join, input))
        return OJ_OK;
    if (join->overlapping == NULL)
        OJ_TRY(oj_overlapping_points_make(
            &join->join_side, join->tie_rank, &join->relation, &join->options,
            &join->overlapping, &join->stats, err));
    return oj_overlapping_points_add(join->overlapping, input, out,
                                     &join->stats, err);
}

oj_status oj_join_count_pairs(struct oj_join *join, const struct oj_flat *input,
                              int64_t *count, int64_t *n_pairs,
                              struct oj_error *err)
{
    OJ_TRY(prepare_batch(join, input, err));
    if (join->backend->sum_pairs == NULL || has_left_out(join, input))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the pairs of such a batch are not counted by the "
                       "backend %s",
                       join->backend->name);
    OJ_TRY(join->backend->sum_pairs(join->index, input, NULL, count, n_pairs,
                                    &join->stats, err));
    join->stats.n_pairs_unmade += *n_pairs;
    return OJ_OK;
}

int oj_join_sums(const struct oj_join *join, const struct oj_flat *input)
{
    return join->backend->sums != NULL && !has_left_out(join, input) &&
           join->backend->sums(join->index, input);
}

oj_status oj_join_sum_pairs(struct oj_join *join, const struct oj_flat *input,
                            const struct oj_aggregate_column *columns,
                            struct oj_aggregates *aggregates, int64_t *n_pairs,
                            struct oj_error *err)
{
    struct oj_sum_request request;
    int64_t *words = oj_aggregates_counts(aggregates);
    if (words != NULL)
        return oj_join_count_pairs(join, input, words, n_pairs, err);
    OJ_TRY(prepare_batch(join, input, err));
    if (!oj_join_sums(join, input))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the pairs of such a batch are not summed by the "
                       "backend %s",
                       join->backend->name);
    OJ_TRY(oj_aggregates_ask_sums(aggregates, columns, input->n_features,
                                  join->options.n_threads, &request, &words,
                                  err));
    OJ_TRY(join->backend->sum_pairs(join->index, input, &request, words,
                                    n_pairs, &join->stats, err));
    join->stats.n_pairs_unmade += *n_pairs;
    return oj_aggregates_add_sums(aggregates, &request, err);
}

const struct oj_stats *oj_join_stats(const struct oj_join *join)
{
    return &join->stats;
}

const struct oj_backend *oj_join_backend(const struct oj_join *join)
{
    return join->backend == &oj_auto_backend ? oj_engine_used(join->index)
                                             : join->backend;
}

const char *oj_join_reason(const struct oj_join *join)
{
    return is_engine(join) ? oj_engine_reason(join->index) : "";
}

const char *oj_join_method(const struct oj_join *join,
                           const struct oj_flat *input)
{
    return is_engine(join) ? oj_engine_method(join->index, input)
                           : join->backend->description;
}

int oj_join_threads(const struct oj_join *join)
{
    return join->backend->is_reference && join->backend != &oj_quadrant_backend
               ? 1
               : join->options.n_threads;
}

const int32_t *oj_join_tie_rank(const struct oj_join *join)
{
    return join->tie_rank;
}

void oj_join_close(struct oj_join *join)
{
    if (join == NULL)
        return;
    if (join->index != NULL)
        join->backend->free_index(join->index);
    oj_overlapping_points_free(join->overlapping);
    oj_free(join->overlaps);
    oj_free(join->tie_rank);
    oj_free(join);
}
