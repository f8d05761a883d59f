#include "oj_tiled_join.h"

#include "../../algs/pairs/oj_ranking.h"
#include "../../flatten/base/oj_array.h"
#include "oj_join_side.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A join feature that a batch has found, by number. */
struct found_feature
{
    int64_t tie_key; /* FID, or place where FIDs repeat */
    int64_t place;   /* of its record in the tiles */
    int32_t before;  /* its number before it was numbered anew */
};

/* Answers name features by their numbers in found, so that 32 bits are enough
 * for a layer of any size. */
struct oj_tiled_join
{
    const struct oj_tiles *tiles;
    struct oj_relation relation;
    struct oj_options options;
    const char *backend; /* NULL: the default */
    int fids_are_unique;
    struct oj_stats stats;         /* of tiles that were in memory */
    struct oj_stats total;         /* and of the one that is, after a batch */
    const struct oj_backend *used; /* NULL: none yet */
    int n_threads;

    /* The tile in memory. */
    int64_t loaded; /* -1: none */
    struct oj_tiled_side side;
    struct oj_flat flat;
    struct oj_join *engine;

    /* Of the batch. */
    struct oj_matches matches; /* with one tile */
    struct oj_answers answers; /* of all tiles so far */
    int64_t n_found, cap_found, cap_number, cap_tie_rank;
    struct found_feature *found; /* [n_found] */
    int32_t *number;             /* [features of the tile] in found, or -1;
                                    scratch of renumber(), too */
    int32_t *tie_rank;           /* [n_found] */
};

oj_status oj_tiled_join_open(const struct oj_tiles *tiles,
                             const struct oj_relation *relation,
                             const char *backend,
                             const struct oj_options *options,
                             int fids_are_unique, struct oj_tiled_join **out,
                             struct oj_error *err)
{
    struct oj_tiled_join *join = oj_calloc(1, sizeof *join);
    if (join == NULL)
        return oj_fail_nomem(err, 1, sizeof *join);
    join->tiles = tiles;
    join->relation = *relation;
    join->options = *options;
    join->backend = backend;
    join->fids_are_unique = fids_are_unique;
    join->loaded = -1;
    *out = join;
    return OJ_OK;
}

/* ---- one tile ----------------------------------------------------------- */

static void unload(struct oj_tiled_join *join)
{
    if (join->engine != NULL)
        oj_stats_add(&join->stats, NULL, oj_join_stats(join->engine));
    oj_join_close(join->engine);
    join->engine = NULL;
    join->loaded = -1;
}

static oj_status load(struct oj_tiled_join *join, int64_t tile,
                      struct oj_error *err)
{
    if (join->loaded == tile)
        return OJ_OK;
    unload(join);
    OJ_TRY(oj_tiles_load(join->tiles, tile, &join->side, err));
    join->flat = oj_feature_set_view(&join->side.features);
    if (!join->fids_are_unique) /* they may be, within a tile */
        join->flat.fid = join->side.features.ordinal;
    OJ_TRY(oj_join_open(&join->flat, &join->relation, join->backend,
                        &join->options, &join->engine, err));
    join->loaded = tile;
    join->used = oj_join_backend(join->engine);
    join->n_threads = oj_join_threads(join->engine);
    return OJ_OK;
}

/* Numbers those of n features that matches names, in their order, from first
 * on; the others get -1.  Returns the number after the last. */
static int64_t number_named(const struct oj_matches *matches, int64_t n,
                            int64_t first, int32_t *number)
{
    for (int64_t i = 0; i < n; i++)
        number[i] = -1;
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t i = oj_matches_first(matches, row); i < end; i++)
            number[matches->join_row[i]] = 0;
    }
    for (int64_t i = 0; i < matches->n_undecided; i++)
    {
        if (matches->undecided_join != NULL && matches->undecided_join[i] >= 0)
            number[matches->undecided_join[i]] = 0;
    }
    for (int64_t i = 0; i < n; i++)
    {
        if (number[i] == 0)
            number[i] = (int32_t)first++;
    }
    return first;
}

/* The features that the answer of the tile names are found. */
static oj_status add_found(struct oj_tiled_join *join, struct oj_error *err)
{
    int64_t n = join->flat.n_features, n_found = join->n_found;
    OJ_TRY(oj_reserve(&join->number, 0, n, &join->cap_number,
                      sizeof *join->number, err));
    OJ_TRY(oj_reserve(&join->found, n_found, n_found + n, &join->cap_found,
                      sizeof *join->found, err));
    join->n_found = number_named(&join->matches, n, n_found, join->number);
    for (int64_t i = 0; i < n; i++)
    {
        struct found_feature *found;
        if (join->number[i] < 0)
            continue;
        found = &join->found[join->number[i]];
        found->place = join->side.place[i];
        found->tie_key =
            join->fids_are_unique ? join->flat.fid[i] : found->place;
    }
    return OJ_OK;
}

/* Adds matches, whose features number says. NULL: they are in found. */
static oj_status add_answers(struct oj_tiled_join *join,
                             const struct oj_matches *matches,
                             const int32_t *number, struct oj_error *err)
{
    struct oj_answers *answers = &join->answers;
    OJ_TRY(oj_answers_reserve(answers, matches->n_pairs, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t i = oj_matches_first(matches, row); i < end; i++)
        {
            int32_t feature = matches->join_row[i];
            oj_answers_put(answers, (int32_t)row,
                           number != NULL ? number[feature] : feature,
                           matches->measure[i]);
        }
    }
    for (int64_t i = 0; i < matches->n_undecided; i++)
    {
        int32_t feature =
            matches->undecided_join != NULL ? matches->undecided_join[i] : -1;
        if (feature >= 0 && number != NULL)
            feature = number[feature];
        OJ_TRY(oj_answers_add_undecided(answers, matches->undecided[i], feature,
                                        err));
    }
    return OJ_OK;
}

/* ---- merging ------------------------------------------------------------ */

static int compare_found(const void *left, const void *right)
{
    const struct found_feature *a = *(struct found_feature *const *)left;
    const struct found_feature *b = *(struct found_feature *const *)right;
    if (a->tie_key != b->tie_key)
        return a->tie_key < b->tie_key ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

static oj_status rank_found(struct oj_tiled_join *join, struct oj_error *err)
{
    int64_t n = join->n_found;
    struct found_feature **order;
    OJ_TRY(oj_reserve(&join->tie_rank, 0, n, &join->cap_tie_rank,
                      sizeof *join->tie_rank, err));
    OJ_NEW(order, n, err);
    for (int64_t i = 0; i < n; i++)
        order[i] = &join->found[i];
    qsort(order, (size_t)n, sizeof *order, compare_found);
    for (int64_t i = 0; i < n; i++)
        join->tie_rank[order[i] - join->found] = (int32_t)i;
    oj_free(order);
    return OJ_OK;
}

static int compare_place(const void *left, const void *right)
{
    const struct found_feature *a = left, *b = right;
    return (a->place > b->place) - (a->place < b->place);
}

/* Leaves in found what out names, and numbers it anew, in the order of the
 * places. */
static oj_status renumber(struct oj_tiled_join *join, struct oj_matches *out,
                          struct oj_error *err)
{
    int64_t n = join->n_found;
    int32_t *number;
    OJ_TRY(oj_reserve(&join->number, 0, n, &join->cap_number,
                      sizeof *join->number, err));
    number = join->number;
    join->n_found = number_named(out, n, 0, number);
    for (int64_t i = 0; i < n; i++)
    {
        if (number[i] < 0)
            continue;
        join->found[i].before = (int32_t)i;
        join->found[number[i]] = join->found[i];
    }
    qsort(join->found, (size_t)join->n_found, sizeof *join->found,
          compare_place);
    for (int64_t i = 0; i < join->n_found; i++)
        number[join->found[i].before] = (int32_t)i;
    for (int64_t i = 0; i < out->n_entries; i++)
    {
        if (out->join_row[i] >= 0)
            out->join_row[i] = number[out->join_row[i]];
    }
    for (int64_t i = 0; i < out->n_undecided; i++)
    {
        if (out->undecided_join[i] >= 0)
            out->undecided_join[i] = number[out->undecided_join[i]];
    }
    return OJ_OK;
}

/* Makes the answers of the tiles so far those of one layer. */
static oj_status merge(struct oj_tiled_join *join, int64_t n_rows,
                       struct oj_matches *out, struct oj_error *err)
{
    struct oj_relation relation = join->relation;
    relation.max_distance = INFINITY; /* the engines have looked at it */
    OJ_TRY(rank_found(join, err));
    OJ_TRY(oj_answers_to_matches(&join->answers, 1, n_rows, &relation,
                                 join->tie_rank, out, err));
    return renumber(join, out, err);
}

/* Of the nearest join features in each tile only the nearest of all are kept,
 * so that their number does not grow with that of the tiles. */
static oj_status drop_farther(struct oj_tiled_join *join, int64_t n_rows,
                              struct oj_error *err)
{
    if (join->relation.op != OJ_OP_NEAREST ||
        join->answers.n_entries <= 2 * n_rows * join->relation.k)
        return OJ_OK;
    OJ_TRY(merge(join, n_rows, &join->matches, err));
    oj_answers_start(&join->answers, 0, n_rows, 1);
    return add_answers(join, &join->matches, NULL, err);
}

/* ---- all tiles ----------------------------------------------------------- */

/* Every other batch goes through the tiles backwards: the one in memory is
 * used again.  The bound on pairs is not for the nearest, of which most go. */
static oj_status join_tiles(struct oj_tiled_join *join,
                            const struct oj_flat *input, struct oj_error *err)
{
    int64_t n = join->tiles->n_tiles, n_rows = input->n_features;
    int backwards = join->loaded > 0;
    oj_answers_start(
        &join->answers,
        join->relation.op != OJ_OP_NEAREST ? join->options.max_batch_pairs : 0,
        n_rows, 1);
    join->n_found = 0;
    for (int64_t i = 0; i < n; i++)
    {
        OJ_TRY(load(join, backwards ? n - 1 - i : i, err));
        OJ_TRY(oj_join_batch(join->engine, input, &join->matches, err));
        OJ_TRY(add_found(join, err));
        OJ_TRY(add_answers(join, &join->matches, join->number, err));
        OJ_TRY(drop_farther(join, n_rows, err));
    }
    join->total = join->stats;
    if (join->engine != NULL)
        oj_stats_add(&join->total, NULL, oj_join_stats(join->engine));
    return OJ_OK;
}

static oj_status fetch(struct oj_tiled_join *join, struct oj_tiled_side *side,
                       struct oj_error *err)
{
    int64_t *place;
    oj_status status;
    OJ_NEW(place, join->n_found, err);
    for (int64_t i = 0; i < join->n_found; i++)
        place[i] = join->found[i].place;
    status = oj_tiles_fetch(join->tiles, place, join->n_found, side, err);
    oj_free(place);
    return status;
}

oj_status oj_tiled_join_batch(struct oj_tiled_join *join,
                              const struct oj_flat *input,
                              struct oj_matches *out,
                              struct oj_tiled_side *side, struct oj_error *err)
{
    OJ_TRY(join_tiles(join, input, err));
    OJ_TRY(merge(join, input->n_features, out, err));
    return fetch(join, side, err);
}

const struct oj_stats *oj_tiled_join_stats(const struct oj_tiled_join *join)
{
    return &join->total;
}

const struct oj_backend *oj_tiled_join_backend(const struct oj_tiled_join *join)
{
    if (join->used != NULL)
        return join->used;
    return join->backend != NULL && oj_backend_find(join->backend) != NULL
               ? oj_backend_find(join->backend)
               : oj_backend_at(0);
}

int oj_tiled_join_threads(const struct oj_tiled_join *join)
{
    return join->n_threads > 0 ? join->n_threads : 1;
}

int oj_tiled_join_ties_by_fid(const struct oj_tiled_join *join)
{
    return join->fids_are_unique;
}

void oj_tiled_join_close(struct oj_tiled_join *join)
{
    if (join == NULL)
        return;
    unload(join);
    oj_tiled_side_free(&join->side);
    oj_matches_free(&join->matches);
    oj_answers_free(&join->answers);
    oj_free(join->found);
    oj_free(join->number);
    oj_free(join->tie_rank);
    oj_free(join);
}
