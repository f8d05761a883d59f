#include "oj_tiled_join.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_compare.h"
#include "oj_join_side.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pair that could not be decided; or all of a row: place is -1. */
struct undecided
{
    int64_t row, place; /* of the feature's record; then its row in the side */
};

/* A pair on its way: with what orders it, and where its feature lies. */
struct tiled_pair
{
    double measure;
    int64_t fid, ordinal;
    int64_t place; /* of the feature's record; then its row in the side */
};

struct oj_tiled_join
{
    const struct oj_tiles *tiles;
    struct oj_bytes piece; /* scratch, to read them */
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
    struct oj_feature_set features;
    struct oj_flat flat;
    int64_t *place;
    int64_t cap_place;
    struct oj_join *engine;

    /* Of the batch. */
    struct oj_matches matches; /* with one tile */
    int64_t n_found, cap_found, cap_row;
    struct tiled_pair *found; /* in the order of tiles */
    int32_t *row;             /* [n_found] */
    int64_t cap_sorted, cap_offset;
    struct tiled_pair *sorted; /* by row */
    int64_t *offset;           /* [rows + 1] */
    int64_t n_undecided, cap_undecided;
    struct undecided *undecided;
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
    OJ_TRY(oj_tiles_load(join->tiles, tile, &join->piece, &join->features,
                         &join->place, &join->cap_place, err));
    join->flat = oj_feature_set_view(&join->features);
    /* within a tile read order is lost, but for the ordinals */
    if (!join->fids_are_unique)
        join->flat.fid = join->features.ordinal;
    OJ_TRY(oj_join_open(&join->flat, &join->relation, join->backend,
                        &join->options, &join->engine, err));
    join->loaded = tile;
    join->used = oj_join_backend(join->engine);
    join->n_threads = oj_join_threads(join->engine);
    return OJ_OK;
}

static oj_status keep_undecided(struct oj_tiled_join *join,
                                struct oj_error *err)
{
    const struct oj_matches *matches = &join->matches;
    if (matches->n_undecided == 0)
        return OJ_OK;
    OJ_TRY(oj_reserve(&join->undecided, join->n_undecided,
                      join->n_undecided + matches->n_undecided,
                      &join->cap_undecided, sizeof *join->undecided, err));
    for (int64_t i = 0; i < matches->n_undecided; i++)
    {
        struct undecided *one = &join->undecided[join->n_undecided++];
        int32_t feature =
            matches->undecided_join != NULL ? matches->undecided_join[i] : -1;
        one->row = matches->undecided[i];
        one->place = feature >= 0 ? join->place[feature] : -1;
    }
    return OJ_OK;
}

static oj_status keep_pairs(struct oj_tiled_join *join, struct oj_error *err)
{
    const struct oj_matches *matches = &join->matches;
    const struct oj_feature_set *features = &join->features;
    int64_t most = join->options.max_batch_pairs;
    int64_t n = join->n_found + matches->n_pairs;
    /* of the nearest, most go again */
    if (most > 0 && n + join->n_undecided > most && matches->n_rows > 1 &&
        join->relation.op != OJ_OP_NEAREST)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    OJ_TRY(oj_reserve(&join->found, join->n_found, n, &join->cap_found,
                      sizeof *join->found, err));
    OJ_TRY(oj_reserve(&join->row, join->n_found, n, &join->cap_row,
                      sizeof *join->row, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        for (int64_t i = oj_matches_first(matches, row);
             i < oj_matches_end(matches, row); i++)
        {
            int32_t feature = matches->join_row[i];
            struct tiled_pair *entry = &join->found[join->n_found];
            entry->measure = matches->measure[i];
            entry->ordinal = features->ordinal[feature];
            entry->fid = join->fids_are_unique ? features->buf.fid[feature]
                                               : entry->ordinal;
            entry->place = join->place[feature];
            join->row[join->n_found++] = (int32_t)row;
        }
    }
    return OJ_OK;
}

/* ---- merging ------------------------------------------------------------ */

static int compare_by_fid(const void *left, const void *right)
{
    const struct tiled_pair *a = left, *b = right;
    if (a->fid != b->fid)
        return a->fid < b->fid ? -1 : 1;
    return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

static int compare_by_measure(const void *left, const void *right)
{
    const struct tiled_pair *a = left, *b = right;
    if (a->measure != b->measure)
        return a->measure < b->measure ? -1 : 1;
    return compare_by_fid(left, right);
}

/* Puts the pairs of each row side by side. */
static oj_status sort_by_row(struct oj_tiled_join *join, int64_t n_rows,
                             struct oj_error *err)
{
    int64_t *offset;
    OJ_TRY(oj_reserve(&join->offset, 0, n_rows + 2, &join->cap_offset,
                      sizeof *join->offset, err));
    OJ_TRY(oj_reserve(&join->sorted, 0, join->n_found, &join->cap_sorted,
                      sizeof *join->sorted, err));
    offset = join->offset;
    memset(offset, 0, ((size_t)n_rows + 2) * sizeof *offset);
    for (int64_t i = 0; i < join->n_found; i++)
        offset[join->row[i] + 2]++;
    for (int64_t row = 0; row <= n_rows; row++)
        offset[row + 1] += offset[row];
    for (int64_t i = 0; i < join->n_found; i++)
        join->sorted[offset[join->row[i] + 1]++] = join->found[i];
    return OJ_OK;
}

/* How many of the sorted pairs of a row are its answer. */
static int64_t cut(const struct oj_relation *relation,
                   const struct tiled_pair *list, int64_t n)
{
    int64_t kept = relation->k;
    if (relation->op != OJ_OP_NEAREST || n <= relation->k)
        return n;
    while (relation->ties == OJ_TIES_ALL && kept < n &&
           list[kept].measure == list[kept - 1].measure)
        kept++;
    return kept;
}

/* Sorts and cuts every row; the pairs that stay close up. Returns how many. */
static int64_t merge_rows(struct oj_tiled_join *join, int64_t n_rows)
{
    const struct oj_relation *relation = &join->relation;
    int64_t n = 0, first = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        int64_t end = join->offset[row + 1], kept;
        struct tiled_pair *list = join->sorted + first;
        if (end - first > 1)
            qsort(list, (size_t)(end - first), sizeof *list,
                  oj_relation_sorts_by_measure(relation) ? compare_by_measure
                                                         : compare_by_fid);
        kept = cut(relation, list, end - first);
        if (kept > 0)
            memmove(join->sorted + n, list, (size_t)kept * sizeof *list);
        join->offset[row] = n;
        n += kept;
        first = end;
    }
    join->offset[n_rows] = n;
    return n;
}

/* Of the nearest join features in each tile only the nearest of all are kept,
 * so that their number does not grow with that of the tiles. */
static oj_status forget_losers(struct oj_tiled_join *join, int64_t n_rows,
                               struct oj_error *err)
{
    int64_t n;
    if (join->relation.op != OJ_OP_NEAREST ||
        join->n_found <= 2 * n_rows * join->relation.k)
        return OJ_OK;
    OJ_TRY(sort_by_row(join, n_rows, err));
    n = merge_rows(join, n_rows);
    for (int64_t row = 0; row < n_rows; row++)
    {
        for (int64_t i = join->offset[row]; i < join->offset[row + 1]; i++)
            join->row[i] = (int32_t)row;
    }
    if (n > 0)
        memcpy(join->found, join->sorted, (size_t)n * sizeof *join->found);
    join->n_found = n;
    return OJ_OK;
}

/* ---- all tiles ----------------------------------------------------------- */

/* Every other batch goes through the tiles backwards: the one in memory is
 * used again. */
static oj_status join_tiles(struct oj_tiled_join *join,
                            const struct oj_flat *input, struct oj_error *err)
{
    int64_t n = join->tiles->n_tiles;
    int backwards = join->loaded > 0;
    join->n_found = join->n_undecided = 0;
    for (int64_t i = 0; i < n; i++)
    {
        OJ_TRY(load(join, backwards ? n - 1 - i : i, err));
        OJ_TRY(oj_join_batch(join->engine, input, &join->matches, err));
        OJ_TRY(keep_undecided(join, err));
        OJ_TRY(keep_pairs(join, err));
        OJ_TRY(forget_losers(join, input->n_features, err));
    }
    return OJ_OK;
}

/* ---- the answer ---------------------------------------------------------- */

/* Sorts list[0 .. n) and keeps each number once. Returns how many. */
static int64_t sort_unique(int64_t *list, int64_t n)
{
    int64_t n_unique = 0;
    if (n > 0)
        qsort(list, (size_t)n, sizeof *list, oj_compare_int64);
    for (int64_t i = 0; i < n; i++)
    {
        if (n_unique == 0 || list[n_unique - 1] != list[i])
            list[n_unique++] = list[i];
    }
    return n_unique;
}

/* The row in the side of the feature at place. */
static int64_t row_of_place(const struct oj_tiled_side *side, int64_t place)
{
    const int64_t *at =
        bsearch(&place, side->place, (size_t)side->features.buf.n_features,
                sizeof *side->place, oj_compare_int64);
    return at - side->place;
}

/* Fetches the features of the n pairs, and of those that are undecided, into
 * side; place becomes the row there. */
static oj_status fetch(struct oj_tiled_join *join, int64_t n,
                       struct oj_tiled_side *side, struct oj_error *err)
{
    int64_t n_places = n;
    OJ_TRY(oj_feature_set_clear(&side->features, err));
    OJ_TRY(oj_reserve(&side->place, 0, n + join->n_undecided, &side->cap_place,
                      sizeof *side->place, err));
    for (int64_t i = 0; i < n; i++)
        side->place[i] = join->sorted[i].place;
    for (int64_t i = 0; i < join->n_undecided; i++)
    {
        if (join->undecided[i].place >= 0)
            side->place[n_places++] = join->undecided[i].place;
    }
    n_places = sort_unique(side->place, n_places);
    for (int64_t i = 0; i < n_places; i++)
        OJ_TRY(oj_tiles_fetch(join->tiles, side->place[i], &join->piece,
                              &side->features, err));
    for (int64_t i = 0; i < n; i++)
        join->sorted[i].place = row_of_place(side, join->sorted[i].place);
    for (int64_t i = 0; i < join->n_undecided; i++)
    {
        struct undecided *one = &join->undecided[i];
        if (one->place >= 0)
            one->place = row_of_place(side, one->place);
    }
    return OJ_OK;
}

static int compare_undecided(const void *left, const void *right)
{
    const struct undecided *a = left, *b = right;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Ascending, each once: of the nearest join several tiles may give a row. */
static oj_status fill_undecided(struct oj_tiled_join *join,
                                struct oj_matches *out, struct oj_error *err)
{
    struct undecided *list = join->undecided;
    int64_t n = join->n_undecided;
    out->n_undecided = 0;
    if (n == 0)
        return OJ_OK;
    qsort(list, (size_t)n, sizeof *list, compare_undecided);
    OJ_TRY(oj_reserve(&out->undecided, 0, n, &out->cap_undecided,
                      sizeof *out->undecided, err));
    OJ_TRY(oj_reserve(&out->undecided_join, 0, n, &out->cap_undecided_join,
                      sizeof *out->undecided_join, err));
    for (int64_t i = 0; i < n; i++)
    {
        if (i > 0 && compare_undecided(&list[i - 1], &list[i]) == 0)
            continue;
        out->undecided[out->n_undecided] = list[i].row;
        out->undecided_join[out->n_undecided++] = (int32_t)list[i].place;
    }
    return OJ_OK;
}

static oj_status fill(struct oj_tiled_join *join, int64_t n_rows, int64_t n,
                      struct oj_matches *out, struct oj_error *err)
{
    int lists = oj_relation_gives_lists(&join->relation);
    OJ_TRY(oj_matches_reserve(out, n_rows, lists ? n : n_rows, lists, err));
    for (int64_t row = 0; row < n_rows; row++)
    {
        int64_t first = join->offset[row], end = join->offset[row + 1];
        int64_t at = lists ? first : row;
        out->n_matched += end > first;
        if (lists)
            out->offset[row] = first;
        else if (end == first)
        {
            out->join_row[row] = -1;
            out->measure[row] = NAN;
        }
        for (int64_t i = first; i < end; i++, at++)
        {
            out->join_row[at] = (int32_t)join->sorted[i].place;
            out->measure[at] = join->sorted[i].measure;
        }
    }
    if (lists)
        out->offset[n_rows] = n;
    out->n_pairs = n;
    return fill_undecided(join, out, err);
}

oj_status oj_tiled_join_batch(struct oj_tiled_join *join,
                              const struct oj_flat *input,
                              struct oj_matches *out,
                              struct oj_tiled_side *side, struct oj_error *err)
{
    int64_t n;
    OJ_TRY(join_tiles(join, input, err));
    join->total = join->stats;
    if (join->engine != NULL)
        oj_stats_add(&join->total, NULL, oj_join_stats(join->engine));
    OJ_TRY(sort_by_row(join, input->n_features, err));
    n = merge_rows(join, input->n_features);
    OJ_TRY(fetch(join, n, side, err));
    return fill(join, input->n_features, n, out, err);
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

void oj_tiled_side_free(struct oj_tiled_side *side)
{
    oj_feature_set_free(&side->features);
    oj_free(side->place);
    memset(side, 0, sizeof *side);
}

void oj_tiled_join_close(struct oj_tiled_join *join)
{
    if (join == NULL)
        return;
    unload(join);
    oj_feature_set_free(&join->features);
    oj_matches_free(&join->matches);
    oj_free(join->piece.byte);
    oj_free(join->place);
    oj_free(join->found);
    oj_free(join->row);
    oj_free(join->sorted);
    oj_free(join->offset);
    oj_free(join->undecided);
    oj_free(join);
}
