/** The reference on the sphere, which GEOS does not know: every input feature
 *  against every join feature that is not too far away to matter, by the plain
 *  arithmetic of sphere_plain.h, one thread.
 *
 *  Join features are sorted by the height of their ball's centre above the
 *  equator's plane; a row looks from its own height up and down, and stops
 *  where even the widest ball would be too far. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../pairs/oj_pairs.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_backend.h"
#include "sphere_plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More than all that rounding may do to a chord. */
#define SLACK 1e-9L

/* Places of sorted between two looks at the cancel flag. */
#define PLACES_PER_LOOK 256

struct by_height
{
    long double z;
    int32_t feature;
};

struct plain_sphere_index
{
    struct oj_relation relation;
    struct oj_options options;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_plain_side side;
    int64_t n_sorted; /* features that join something */
    struct by_height *sorted;
    long double widest; /* ball */
    struct oj_ranking ranking;
    struct oj_answers answers;
    int64_t n_places, n_candidates; /* looked at; of these, measured */
};

/* A row on its way. */
struct plain_sphere_row
{
    struct plain_sphere_index *index;
    const struct oj_plain_side *side;
    const struct oj_pair_filter *filter;
    int64_t row, first, end; /* its points */
};

/* --- index ---------------------------------------------------------------- */

static int compare_heights(const void *a, const void *b)
{
    const struct by_height *u = a, *v = b;
    if (u->z != v->z)
        return u->z < v->z ? -1 : 1;
    return (u->feature > v->feature) - (u->feature < v->feature);
}

static oj_status build(struct plain_sphere_index *index, struct oj_error *err)
{
    const struct oj_flat *flat = index->join_side;
    OJ_TRY(oj_plain_side_make(&index->side, flat, err));
    OJ_NEW(index->sorted, flat->n_features, err);
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        const struct oj_ball *ball = &index->side.ball[i];
        if (ball->radius < 0)
            continue;
        index->sorted[index->n_sorted].z = ball->centre.z;
        index->sorted[index->n_sorted++].feature = (int32_t)i;
        index->widest = fmaxl(index->widest, ball->radius);
    }
    if (index->n_sorted > 0)
        qsort(index->sorted, (size_t)index->n_sorted, sizeof *index->sorted,
              compare_heights);
    return OJ_OK;
}

static void free_index(struct oj_index *wrapped)
{
    struct plain_sphere_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    oj_plain_side_free(&index->side);
    oj_ranking_free(&index->ranking);
    oj_answers_free(&index->answers);
    oj_free(index->sorted);
    oj_free(index);
}

static oj_status
make_index(const struct oj_backend *self, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct plain_sphere_index *index;
    oj_status status;
    if (relation->metric != OJ_METRIC_SPHERE)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend %s only measures on the sphere",
                       self->name);
    index = oj_calloc(1, sizeof *index);
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->relation = *relation;
    index->options = *options;
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->ranking = oj_ranking_make(&index->relation, tie_rank);
    status = build(index, err);
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    *out = (void *)index;
    return OJ_OK;
}

/* --- a row ---------------------------------------------------------------- */

/* Join features farther than this, straight through space, do not matter. */
static long double reach_of(const struct plain_sphere_row *r)
{
    const struct plain_sphere_index *index = r->index;
    const struct oj_flat *input = r->side->flat;
    double metres = index->relation.max_distance;
    long double half;
    if (input->max_distance != NULL)
        metres = input->max_distance[r->row];
    else if (index->join_side->max_distance != NULL)
        metres = INFINITY;
    if (index->relation.op == OJ_OP_NEAREST && index->ranking.bound < metres)
        metres = index->ranking.bound;
    half = (long double)metres / OJ_PLAIN_RADIUS / 2;
    return (half < 1.57L ? 2 * sinl(half) : 2) + SLACK;
}

static oj_status try_feature(struct plain_sphere_row *r, int32_t feature,
                             struct oj_error *err)
{
    struct plain_sphere_index *index = r->index;
    double least = INFINITY;
    index->n_candidates++;
    if (!oj_pair_may_count(r->filter, r->row, feature))
        return OJ_OK;
    for (int64_t v = r->first; v < r->end; v++)
    {
        double d = oj_plain_metres(
            &index->side, feature,
            index->relation.distance_to == OJ_TO_INTERIOR, r->side->at[v]);
        least = d < least ? d : least;
    }
    if (!(least <= oj_pair_max_distance(&index->relation, r->side->flat, r->row,
                                        index->join_side, feature)) ||
        least < index->relation.min_distance)
        return OJ_OK;
    if (index->relation.op == OJ_OP_NEAREST)
        return oj_ranking_add(&index->ranking, feature, least, err);
    OJ_TRY(oj_answers_reserve(&index->answers, 1, err));
    oj_answers_put(&index->answers, (int32_t)r->row, feature, least);
    return OJ_OK;
}

/* The first place in sorted that is not below z. */
static int64_t find_height(const struct plain_sphere_index *index,
                           long double z)
{
    int64_t low = 0, high = index->n_sorted;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (index->sorted[middle].z < z)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static oj_status try_place(struct plain_sphere_row *r, int64_t place,
                           struct oj_error *err)
{
    struct plain_sphere_index *index = r->index;
    const struct oj_ball *mine = &r->side->ball[r->row], *other;
    int32_t feature = index->sorted[place].feature;
    if (++index->n_places % PLACES_PER_LOOK == 0)
        OJ_TRY(oj_check_cancel(index->options.cancel, err));
    other = &index->side.ball[feature];
    if (oj_plain_chord(mine->centre, other->centre) - mine->radius -
            other->radius >
        reach_of(r))
        return OJ_OK;
    return try_feature(r, feature, err);
}

/* Up and down by turns, the nearer height first, until neither matters. */
static oj_status search_row(struct plain_sphere_row *r, struct oj_error *err)
{
    const struct plain_sphere_index *index = r->index;
    const struct oj_ball *mine = &r->side->ball[r->row];
    long double z = mine->centre.z;
    int64_t up = find_height(index, z), down = up - 1;
    for (;;)
    {
        long double above = INFINITY, below = INFINITY, nearer;
        if (up < index->n_sorted)
            above = index->sorted[up].z - z;
        if (down >= 0)
            below = z - index->sorted[down].z;
        nearer = fminl(above, below);
        if (!(nearer - mine->radius - index->widest <= reach_of(r)))
            return OJ_OK;
        OJ_TRY(try_place(r, above <= below ? up++ : down--, err));
    }
}

static oj_status join_row(struct plain_sphere_index *index,
                          const struct oj_plain_side *side,
                          const struct oj_pair_filter *filter, int64_t row,
                          struct oj_error *err)
{
    struct plain_sphere_row r = {index, side, filter, row, 0, 0};
    oj_flat_vertices(side->flat, row, &r.first, &r.end);
    if (side->ball[row].radius < 0)
        return OJ_OK;
    if (index->relation.op != OJ_OP_NEAREST)
        return search_row(&r, err);
    oj_ranking_start(&index->ranking);
    OJ_TRY(search_row(&r, err));
    oj_ranking_finish(&index->ranking);
    return oj_answers_add(&index->answers, row, &index->ranking, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status join_rows(struct plain_sphere_index *index,
                           struct oj_plain_side *side,
                           const struct oj_flat *input, struct oj_matches *out,
                           struct oj_error *err)
{
    struct oj_pair_filter filter;
    OJ_TRY(oj_pair_filter_make(&index->relation, input, index->join_side,
                               &filter, err));
    OJ_TRY(oj_plain_side_make(side, input, err));
    oj_answers_start(&index->answers, index->options.max_batch_pairs,
                     input->n_features, 1);
    for (int64_t row = 0; row < input->n_features; row++)
        OJ_TRY(join_row(index, side, &filter, row, err));
    return oj_answers_to_matches(&index->answers, 1, input->n_features,
                                 &index->relation, index->tie_rank, out, err);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct plain_sphere_index *index = (void *)wrapped;
    struct oj_plain_side side;
    double start = oj_clock_seconds();
    oj_status status;
    if ((input->part_kinds & ~(unsigned)OJ_PART_POINT) != 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "on the sphere distances are measured from points");
    memset(&side, 0, sizeof side);
    index->n_candidates = 0;
    status = join_rows(index, &side, input, out, err);
    oj_plain_side_free(&side);
    stats->n_candidates += index->n_candidates;
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

const struct oj_backend oj_sphere_backend = {
    OJ_BACKEND_ABI,
    "sphere",
    "reference for -metric sphere: spherical trigonometry, every edge of every "
    "feature in reach, one thread",
    1,
    0,
    make_index,
    join,
    free_index,
    NULL,
    NULL,
    NULL};
