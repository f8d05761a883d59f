#include "box_search.h"
#include "../flatten/oj_array.h"
#include "oj_clock.h"
#include "oj_points.h"
#include "oj_ranking.h"

#include <string.h>

#define DEFAULT_QUADRANT_SIZE 256

/* What a batch needs while it runs. */
struct run
{
    struct oj_box_search *search;
    struct oj_points points;
    struct oj_found found;
    struct oj_ranking ranking;
    struct oj_answers answers;
    double raised_at; /* least box distance of a feature that GEOS refused */
    int64_t n_candidates;
    double filter_s;
    struct oj_error *err;
};

oj_status oj_found_add(struct oj_found *found, int64_t feature,
                       struct oj_error *err)
{
    OJ_TRY(oj_reserve(&found->feature, found->n, found->n + 1, &found->capacity,
                      sizeof *found->feature, err));
    found->feature[found->n++] = (int32_t)feature;
    return OJ_OK;
}

void oj_box_search_prepare(struct oj_box_search *search)
{
    const struct oj_relation *relation = &search->relation;
    search->is_wide = oj_boxes_window_is_wide(
        search->boxes, relation->max_distance, relation->k);
    search->reach = search->is_wide
                        ? search->boxes->spacing * sqrt((double)relation->k)
                        : relation->max_distance;
}

static int is_cancelled(const struct oj_box_search *search)
{
    const volatile int *cancel = search->options.cancel;
    return cancel != NULL && *cancel != 0;
}

static oj_status query(struct run *run, const struct oj_box *box, double reach)
{
    const struct oj_box_tree *tree = &run->search->tree;
    struct oj_box window = oj_box_around(box, reach);
    double start;
    oj_status status;
    if (!run->search->options.timings)
        return tree->query(tree->tree, &window, &run->found, run->err);
    start = oj_clock_seconds();
    status = tree->query(tree->tree, &window, &run->found, run->err);
    run->filter_s += oj_clock_seconds() - start;
    return status;
}

/* Ranks the found features whose box lies in the window of a point. */
static oj_status rank_found(struct run *run, double x, double y, double reach)
{
    const struct oj_box_search *search = run->search;
    struct oj_box at = {x, y, x, y}, window = oj_box_around(&at, reach);
    OJ_TRY(oj_geos_parts_set_point(search->parts, x, y, run->err));
    oj_ranking_start(&run->ranking);
    run->raised_at = INFINITY;
    for (int64_t i = 0; i < run->found.n; i++)
    {
        int32_t feature = run->found.feature[i];
        const struct oj_box *box = &search->boxes->box[feature];
        double distance;
        enum oj_geos_answer answer;
        if (!oj_box_intersects(&window, box))
            continue;
        run->n_candidates++;
        answer = oj_geos_parts_distance(search->parts, feature, &distance);
        if (answer == OJ_GEOS_NOMEM)
            return oj_fail(run->err, OJ_ERR_NOMEM, "out of memory in GEOS");
        if (answer == OJ_GEOS_DISTANCE)
            OJ_TRY(oj_ranking_add(&run->ranking, feature, distance, run->err));
        else
            run->raised_at = fmin(run->raised_at, oj_box_distance(&at, box));
    }
    oj_ranking_finish(&run->ranking);
    return OJ_OK;
}

/* Whether what was ranked is the answer: window is the box that was searched,
 * reach what it surely holds around the point. */
static int is_settled(const struct run *run, const struct oj_box *window,
                      double reach)
{
    const struct oj_ranking *ranking = &run->ranking;
    if (reach >= ranking->max_distance)
        return 1;
    if (ranking->n >= ranking->k &&
        ranking->list[ranking->k - 1].distance <= reach)
        return 1;
    return run->search->boxes->n_boxes == 0 ||
           oj_box_covers(window, &run->search->boxes->all);
}

static oj_status store(struct run *run, int64_t row)
{
    const struct oj_ranking *ranking = &run->ranking;
    double bound = ranking->n >= ranking->k
                       ? ranking->list[ranking->k - 1].distance
                       : ranking->max_distance;
    /* A refused feature beyond the k-th cannot change the answer. */
    if (run->raised_at < INFINITY && run->raised_at <= bound)
        OJ_TRY(oj_answers_add_undecided(&run->answers, row, run->err));
    return oj_answers_add(&run->answers, row, ranking, run->err);
}

/* The window that a search around box begins with. */
static double first_reach(const struct oj_box_search *search,
                          const struct oj_box *box)
{
    double away;
    if (!search->is_wide)
        return search->relation.max_distance;
    away = search->boxes->n_boxes > 0
               ? oj_box_distance(box, &search->boxes->all)
               : 0.0;
    return fmin(away + search->reach, search->relation.max_distance);
}

/* The next, after reach was not enough and needed (INFINITY: not known) would
 * be. */
static double next_reach(const struct oj_box_search *search, double reach,
                         double needed)
{
    double next = needed < INFINITY ? needed : fmax(4.0 * reach, DBL_MIN);
    return fmin(next, search->relation.max_distance);
}

/* Lets the next search begin with what this one needed, or a little more. */
static void learn_reach(struct run *run)
{
    struct oj_box_search *search = run->search;
    double least = search->boxes->spacing / 1024.0, needed;
    if (!search->is_wide || run->ranking.n < run->ranking.k)
        return;
    needed = 1.5 * run->ranking.list[run->ranking.k - 1].distance;
    search->reach = fmax(0.5 * search->reach + 0.5 * needed, least);
}

static double kth_distance(const struct oj_ranking *ranking)
{
    return ranking->n >= ranking->k ? ranking->list[ranking->k - 1].distance
                                    : INFINITY;
}

static oj_status join_point(struct run *run, int64_t p)
{
    double x = run->points.x[p], y = run->points.y[p];
    struct oj_box at = {x, y, x, y};
    double reach = first_reach(run->search, &at);
    for (;;)
    {
        struct oj_box window = oj_box_around(&at, reach);
        OJ_TRY(query(run, &at, reach));
        OJ_TRY(rank_found(run, x, y, reach));
        if (is_settled(run, &window, reach))
            break;
        reach = next_reach(run->search, reach, kth_distance(&run->ranking));
    }
    learn_reach(run);
    return store(run, run->points.row[p]);
}

/* One query for all points of pending[0 .. n); those that are not settled by
 * it come to the front, and their number and what they need come out. */
static oj_status join_together(struct run *run, int64_t *pending, int64_t *n,
                               double *reach)
{
    struct oj_box around = oj_box_empty();
    int64_t n_left = 0;
    double needed = 0.0;
    for (int64_t i = 0; i < *n; i++)
        oj_box_add_point(&around, run->points.x[pending[i]],
                         run->points.y[pending[i]]);
    OJ_TRY(query(run, &around, *reach));
    for (int64_t i = 0; i < *n; i++)
    {
        int64_t p = pending[i];
        double x = run->points.x[p], y = run->points.y[p];
        struct oj_box at = {x, y, x, y}, window = oj_box_around(&at, *reach);
        if (is_cancelled(run->search))
            return oj_fail(run->err, OJ_ERR_CANCELLED, "cancelled");
        OJ_TRY(rank_found(run, x, y, *reach));
        if (is_settled(run, &window, *reach))
        {
            learn_reach(run);
            OJ_TRY(store(run, run->points.row[p]));
            continue;
        }
        needed = fmax(needed, kth_distance(&run->ranking));
        pending[n_left++] = p;
    }
    *n = n_left;
    *reach = next_reach(run->search, *reach, needed);
    return OJ_OK;
}

static oj_status join_quadrant(struct run *run,
                               const struct oj_quadrant *quadrant)
{
    double reach = first_reach(run->search, &quadrant->box);
    int64_t n = quadrant->end - quadrant->first, *pending;
    oj_status status = OJ_OK;
    OJ_NEW(pending, n, run->err);
    for (int64_t i = 0; i < n; i++)
        pending[i] = quadrant->first + i;
    while (n > 0 && status == OJ_OK)
        status = join_together(run, pending, &n, &reach);
    oj_free(pending);
    return status;
}

static oj_status join_quadrants(struct run *run)
{
    const struct oj_options *options = &run->search->options;
    int64_t size = options->quadrant_size > 0 ? options->quadrant_size
                                              : DEFAULT_QUADRANT_SIZE;
    struct oj_quadrants quadrants;
    oj_status status;
    OJ_TRY(oj_quadrants_make(&run->points, size, &quadrants, run->err));
    status = OJ_OK;
    for (int64_t q = 0; q < quadrants.n && status == OJ_OK; q++)
        status = join_quadrant(run, &quadrants.quadrant[q]);
    oj_quadrants_free(&quadrants);
    return status;
}

static oj_status join_points(struct run *run)
{
    for (int64_t p = 0; p < run->points.n; p++)
    {
        if (is_cancelled(run->search))
            return oj_fail(run->err, OJ_ERR_CANCELLED, "cancelled");
        OJ_TRY(join_point(run, p));
    }
    return OJ_OK;
}

static oj_status join_all(struct run *run, const struct oj_flat *input,
                          struct oj_matches *out, struct oj_stats *stats)
{
    const struct oj_box_search *search = run->search;
    double start = oj_clock_seconds(), sorted;
    OJ_TRY(oj_points_make(input, &run->points, run->err));
    if (search->visit != OJ_VISIT_AS_GIVEN)
        OJ_TRY(oj_points_sort(&run->points, run->err));
    sorted = oj_clock_seconds();
    if (search->visit == OJ_VISIT_COLLECTIVE)
        OJ_TRY(join_quadrants(run));
    else
        OJ_TRY(join_points(run));
    OJ_TRY(oj_answers_to_matches(&run->answers, 1, input->n_features,
                                 &search->relation, search->tie_rank, out,
                                 run->err));
    stats->sort_s += sorted - start;
    stats->filter_s += run->filter_s;
    stats->refine_s += oj_clock_seconds() - sorted - run->filter_s;
    stats->n_candidates += run->n_candidates;
    return OJ_OK;
}

oj_status oj_box_search_join(struct oj_box_search *search,
                             const struct oj_flat *input,
                             struct oj_matches *out, struct oj_stats *stats,
                             struct oj_error *err)
{
    struct run run;
    oj_status status;
    memset(&run, 0, sizeof run);
    run.search = search;
    run.err = err;
    run.ranking = oj_ranking_make(&search->relation, search->tie_rank);
    status = join_all(&run, input, out, stats);
    oj_points_free(&run.points);
    oj_ranking_free(&run.ranking);
    oj_answers_free(&run.answers);
    oj_free(run.found.feature);
    return status;
}
