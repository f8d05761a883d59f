#include "box_search.h"
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/oj_points.h"
#include "../pairs/oj_ranking.h"
#include "box_refused.h"

#include <string.h>

/* What a batch needs while it runs. */
struct box_points_batch
{
    struct oj_box_search *search;
    struct oj_points points;
    struct oj_box_found found;
    struct oj_ranking ranking;
    struct oj_answers answers;
    struct oj_box_refused refused; /* of the point at hand */
    int32_t *last; /* [n_last] the answer of the last point that had k */
    int64_t n_last, cap_last;
    double enough; /* a window that surely is; INFINITY: not known */
    int64_t n_candidates;
    double filter_s;
    struct oj_error *err;
};

oj_status oj_box_found_add(struct oj_box_found *found, int64_t feature,
                           struct oj_error *err)
{
    OJ_TRY(oj_reserve(&found->feature, found->n, found->n + 1, &found->capacity,
                      sizeof *found->feature, err));
    found->feature[found->n++] = (int32_t)feature;
    return OJ_OK;
}

oj_status oj_box_search_look(const struct oj_box_search *search,
                             struct oj_error *err)
{
    return oj_check_cancel(search->options.cancel, err);
}

oj_status oj_box_search_query(const struct oj_box_search *search,
                              const struct oj_box *window,
                              struct oj_box_found *found, double *filter_s,
                              struct oj_error *err)
{
    double start = search->options.timings ? oj_clock_seconds() : 0.0;
    oj_status status = OJ_OK;
    found->n = 0;
    if (search->tree != NULL)
        status = search->library->query(search->tree, window, found, err);
    if (search->options.timings)
        *filter_s += oj_clock_seconds() - start;
    return status;
}

/* --- nearest to points ---------------------------------------------------- */

static oj_status query(struct box_points_batch *run, const struct oj_box *box,
                       double reach)
{
    struct oj_box window = oj_box_around(box, reach);
    return oj_box_search_query(run->search, &window, &run->found,
                               &run->filter_s, run->err);
}

/* Ranks the found features whose box lies in the window of a point. */
static oj_status rank_found(struct box_points_batch *run, double x, double y,
                            double reach)
{
    const struct oj_box_search *search = run->search;
    struct oj_box at = {x, y, x, y}, window = oj_box_around(&at, reach);
    struct oj_box around = oj_box_around(&at, 0.0);
    OJ_TRY(oj_geos_parts_set_point(search->parts, x, y, run->err));
    oj_ranking_start(&run->ranking);
    run->refused = oj_box_refused_none();
    for (int64_t i = 0; i < run->found.n; i++)
    {
        int32_t feature = run->found.feature[i];
        const struct oj_box *box = &search->boxes->box[feature];
        double distance;
        enum oj_geos_verdict answer;
        if (!oj_box_intersects(&window, box))
            continue;
        /* a search within a distance stays as plain as it was published */
        if (search->is_wide &&
            oj_box_distance(&around, box) > run->ranking.bound)
            continue;
        run->n_candidates++;
        answer = oj_geos_parts_distance(search->parts, feature, &distance);
        if (answer == OJ_GEOS_OUT_OF_MEMORY)
            return oj_fail(run->err, OJ_ERR_NOMEM, "out of memory in GEOS");
        if (answer == OJ_GEOS_YES)
            OJ_TRY(oj_ranking_add(&run->ranking, feature, distance, run->err));
        else
            oj_box_refused_add(&run->refused, search->tie_rank, feature,
                               oj_box_distance(&around, box));
    }
    oj_ranking_finish(&run->ranking);
    return OJ_OK;
}

/* Whether what was ranked is the answer: window is the box that was searched,
 * reach what it surely holds around the point. */
static int is_settled(const struct box_points_batch *run,
                      const struct oj_box *window, double reach)
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

static oj_status store(struct box_points_batch *run, int64_t row)
{
    if (oj_box_refused_matters(&run->refused, &run->ranking))
        OJ_TRY(oj_answers_add_undecided(&run->answers, row, -1, run->err));
    return oj_answers_add(&run->answers, row, &run->ranking, run->err);
}

static double diagonal(const struct oj_box *box)
{
    return hypot(box->x1 - box->x0, box->y1 - box->y0);
}

/* A window that holds k features for every point within spread of x, y: those
 * that the last point had, which was nearby. */
static oj_status find_enough(struct box_points_batch *run, double x, double y,
                             double spread)
{
    double farthest = 0.0;
    run->enough = INFINITY;
    if (run->n_last < run->search->relation.k)
        return OJ_OK;
    OJ_TRY(oj_geos_parts_set_point(run->search->parts, x, y, run->err));
    for (int64_t i = 0; i < run->n_last; i++)
    {
        double distance;
        if (oj_geos_parts_distance(run->search->parts, run->last[i],
                                   &distance) != OJ_GEOS_YES)
            return OJ_OK;
        farthest = fmax(farthest, distance);
    }
    run->enough = farthest + spread;
    return OJ_OK;
}

/* The window that a search for the points in box begins with; x, y is one of
 * them. */
static oj_status first_reach(struct box_points_batch *run,
                             const struct oj_box *box, double x, double y,
                             double *reach)
{
    const struct oj_box_search *search = run->search;
    *reach = search->relation.max_distance;
    if (!search->is_wide || search->boxes->n_boxes == 0)
        return OJ_OK;
    OJ_TRY(find_enough(run, x, y, diagonal(box)));
    *reach = search->reach + oj_box_distance(box, &search->boxes->all);
    if (run->enough <= 2.0 * *reach)
        *reach = run->enough;
    *reach = fmin(*reach, search->relation.max_distance);
    return OJ_OK;
}

/* The next, after reach was not enough and needed (INFINITY: not known) would
 * be. */
static double next_reach(const struct box_points_batch *run, double reach,
                         double needed)
{
    double next = needed < INFINITY ? needed : fmax(4.0 * reach, DBL_MIN);
    if (reach < run->enough)
        next = fmin(next, run->enough);
    return fmin(next, run->search->relation.max_distance);
}

/* Lets the next search begin with what this one needed, or a little more. */
static oj_status learn(struct box_points_batch *run)
{
    struct oj_box_search *search = run->search;
    const struct oj_ranking *ranking = &run->ranking;
    double least = search->boxes->spacing / 1024.0;
    if (!search->is_wide || ranking->n < ranking->k)
        return OJ_OK;
    search->reach = fmax(0.5 * search->reach +
                             0.5 * (1.5 * oj_ranking_kth_distance(ranking)),
                         least);
    OJ_TRY(oj_reserve(&run->last, 0, ranking->k, &run->cap_last,
                      sizeof *run->last, run->err));
    for (int64_t i = 0; i < ranking->k; i++)
        run->last[i] = ranking->list[i].feature;
    run->n_last = ranking->k;
    return OJ_OK;
}

static oj_status join_point(struct box_points_batch *run, int64_t p)
{
    double x = run->points.x[p], y = run->points.y[p];
    struct oj_box at = {x, y, x, y};
    double reach;
    OJ_TRY(first_reach(run, &at, x, y, &reach));
    for (;;)
    {
        struct oj_box window = oj_box_around(&at, reach);
        OJ_TRY(query(run, &at, reach));
        OJ_TRY(rank_found(run, x, y, reach));
        if (is_settled(run, &window, reach))
            break;
        reach = next_reach(run, reach, oj_ranking_kth_distance(&run->ranking));
    }
    OJ_TRY(learn(run));
    return store(run, run->points.row[p]);
}

/* One query for all points of pending[0 .. n); those that are not settled by
 * it come to the front, and their number and what they need come out. */
static oj_status join_together(struct box_points_batch *run, int64_t *pending,
                               int64_t *n, double *reach)
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
        OJ_TRY(oj_box_search_look(run->search, run->err));
        OJ_TRY(rank_found(run, x, y, *reach));
        if (is_settled(run, &window, *reach))
        {
            OJ_TRY(learn(run));
            OJ_TRY(store(run, run->points.row[p]));
            continue;
        }
        needed = fmax(needed, oj_ranking_kth_distance(&run->ranking));
        pending[n_left++] = p;
    }
    *n = n_left;
    *reach = next_reach(run, *reach, needed);
    return OJ_OK;
}

/* Points first .. end share a query. Where the window follows the points and
 * theirs would be mostly the space between them, the two halves do. */
static oj_status join_run(struct box_points_batch *run, int64_t first,
                          int64_t end)
{
    struct oj_box box = oj_box_empty();
    int64_t n = end - first, middle = first + n / 2, *pending;
    double reach;
    oj_status status = OJ_OK;
    for (int64_t p = first; p < end; p++)
        oj_box_add_point(&box, run->points.x[p], run->points.y[p]);
    OJ_TRY(first_reach(run, &box, run->points.x[first], run->points.y[first],
                       &reach));
    if (run->search->is_wide && n > 1 && diagonal(&box) > reach)
    {
        OJ_TRY(join_run(run, first, middle));
        return join_run(run, middle, end);
    }
    OJ_NEW(pending, n, run->err);
    for (int64_t i = 0; i < n; i++)
        pending[i] = first + i;
    while (n > 0 && status == OJ_OK)
        status = join_together(run, pending, &n, &reach);
    oj_free(pending);
    return status;
}

static oj_status join_quadrants(struct box_points_batch *run)
{
    struct oj_quadrants quadrants;
    oj_status status = OJ_OK;
    OJ_TRY(oj_quadrants_make(&run->points, run->search->options.quadrant_size,
                             INFINITY, &quadrants, run->err));
    for (int64_t q = 0; q < quadrants.n && status == OJ_OK; q++)
        status = join_run(run, quadrants.quadrant[q].first,
                          quadrants.quadrant[q].end);
    oj_quadrants_free(&quadrants);
    return status;
}

static oj_status join_points(struct box_points_batch *run)
{
    for (int64_t p = 0; p < run->points.n; p++)
    {
        OJ_TRY(oj_box_search_look(run->search, run->err));
        OJ_TRY(join_point(run, p));
    }
    return OJ_OK;
}

static oj_status join_all(struct box_points_batch *run,
                          const struct oj_flat *input, struct oj_matches *out,
                          struct oj_stats *stats)
{
    const struct oj_box_search *search = run->search;
    double start = oj_clock_seconds(), sorted;
    OJ_TRY(oj_points_make(input, &run->points, run->err));
    if (search->visit != OJ_VISIT_AS_GIVEN || search->is_wide)
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

static int has_points_only(const struct oj_flat *flat)
{
    return oj_flat_is_points(flat) ||
           (flat->part_kinds & ~(unsigned)OJ_PART_POINT) == 0;
}

int oj_box_search_takes(const struct oj_box_search *search,
                        const struct oj_flat *input,
                        const struct oj_pair_filter *filter)
{
    return search->relation.op == OJ_OP_NEAREST && has_points_only(input) &&
           !filter->is_needed && search->relation.min_distance == 0.0 &&
           input->max_distance == NULL &&
           search->join_side->max_distance == NULL;
}

oj_status oj_box_search_join(struct oj_box_search *search,
                             const struct oj_flat *input,
                             struct oj_matches *out, struct oj_stats *stats,
                             struct oj_error *err)
{
    struct box_points_batch run;
    oj_status status;
    memset(&run, 0, sizeof run);
    run.search = search;
    run.err = err;
    run.enough = INFINITY;
    oj_answers_start(&run.answers, search->options.max_batch_pairs,
                     input->n_features, 1);
    run.ranking = oj_ranking_make(&search->relation, search->tie_rank);
    status = join_all(&run, input, out, stats);
    oj_points_free(&run.points);
    oj_ranking_free(&run.ranking);
    oj_answers_free(&run.answers);
    oj_free(run.found.feature);
    oj_free(run.last);
    return status;
}
