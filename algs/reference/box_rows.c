#include "box_rows.h"
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/oj_points.h"
#include "../pairs/oj_ranking.h"
#include "box_refused.h"

#include <stdio.h>
#include <string.h>

/* A batch on its way. */
struct box_rows_batch
{
    struct oj_box_search *search;
    const struct oj_flat *input;
    const struct oj_pair_filter *filter;
    struct oj_points middle; /* of the rows' boxes, in the order of visit */
    struct oj_box_found found;
    struct oj_ranking ranking;
    struct oj_answers answers;
    double most; /* greatest distance of any join feature's own; else -1 */
    struct oj_box_refused refused; /* of the row at hand */
    int64_t n_candidates, n_undecided;
    double filter_s;
    struct oj_stats *stats;
    struct oj_error *err;
};

/* Every feature that has a box. */
static oj_status find_all(struct box_rows_batch *run)
{
    const struct oj_boxes *boxes = run->search->boxes;
    run->found.n = 0;
    for (int64_t i = 0; i < boxes->n; i++)
    {
        if (!oj_box_is_empty(&boxes->box[i]))
            OJ_TRY(oj_box_found_add(&run->found, i, run->err));
    }
    return OJ_OK;
}

static int takes_distance(const struct box_rows_batch *run)
{
    return (oj_op_get(run->search->relation.op)->takes & OJ_TAKES_DISTANCE) !=
           0;
}

/* No pair of row counts beyond this; < 0: none counts at all. */
static double reach_of_row(const struct box_rows_batch *run, int64_t row)
{
    if (!takes_distance(run))
        return 0.0;
    if (run->most >= 0.0 || run->search->join_side->max_distance != NULL)
        return run->most;
    return oj_pair_max_distance(&run->search->relation, run->input, row,
                                run->search->join_side, 0);
}

static double greatest_distance(const struct oj_flat *join_side)
{
    double most = -1.0;
    if (join_side->max_distance == NULL)
        return most;
    for (int64_t i = 0; i < join_side->n_features; i++)
    {
        if (join_side->max_distance[i] > most)
            most = join_side->max_distance[i];
    }
    return most;
}

static void keep_reason(struct box_rows_batch *run)
{
    char *text = run->stats->undecided_text;
    if (text[0] == '\0')
        snprintf(text, sizeof run->stats->undecided_text, "%s",
                 oj_geos_pairs_message(run->search->pairs));
}

/* 1 when features however far apart may be pairs. */
static int takes_apart(const struct box_rows_batch *run)
{
    return !takes_distance(run) &&
           !oj_relation_needs_contact(&run->search->relation);
}

/* --- every join but nearest ----------------------------------------------- */

static int envelopes_meet(const struct box_rows_batch *run, int64_t row,
                          int64_t feature)
{
    struct oj_box a = oj_box_of_feature(run->input, row);
    struct oj_box b = oj_box_of_feature(run->search->join_side, feature);
    return oj_box_intersects(&a, &b);
}

/* YES where the pair counts; *distance where the join has one. */
static enum oj_geos_verdict ask(struct box_rows_batch *run, int64_t row,
                                int64_t feature, double *distance)
{
    const struct oj_box_search *search = run->search;
    const struct oj_relation *relation = &search->relation;
    enum oj_geos_verdict verdict;
    *distance = NAN;
    if (relation->op == OJ_OP_BBOX)
        return envelopes_meet(run, row, feature) ? OJ_GEOS_YES : OJ_GEOS_NO;
    if (relation->op == OJ_OP_DISJOINT && !envelopes_meet(run, row, feature))
        return OJ_GEOS_YES;
    if (!takes_distance(run))
        return oj_geos_pairs_hold(search->pairs, row, feature);
    verdict = oj_geos_pairs_distance(search->pairs, row, feature, distance);
    if (verdict != OJ_GEOS_YES)
        return verdict;
    /* an infinite one has overflowed */
    return *distance >= relation->min_distance && *distance < INFINITY &&
                   *distance <= oj_pair_max_distance(relation, run->input, row,
                                                     search->join_side, feature)
               ? OJ_GEOS_YES
               : OJ_GEOS_NO;
}

static oj_status take_verdict(struct box_rows_batch *run, int64_t row,
                              int32_t feature, enum oj_geos_verdict verdict,
                              double distance)
{
    switch (verdict)
    {
        case OJ_GEOS_NO:
            return OJ_OK;
        case OJ_GEOS_YES:
            OJ_TRY(oj_answers_reserve(&run->answers, 1, run->err));
            oj_answers_put(&run->answers, (int32_t)row, feature, distance);
            return OJ_OK;
        case OJ_GEOS_CANNOT_SAY:
            keep_reason(run);
            run->n_undecided++;
            return oj_answers_add_undecided(&run->answers, row, feature,
                                            run->err);
        default:
            return oj_fail(run->err, OJ_ERR_NOMEM, "out of memory in GEOS");
    }
}

/* The found features whose box lies in the window of row. */
static oj_status decide_found(struct box_rows_batch *run, int64_t row,
                              const struct oj_box *window)
{
    const struct oj_box_search *search = run->search;
    for (int64_t i = 0; i < run->found.n; i++)
    {
        int32_t feature = run->found.feature[i];
        double distance;
        enum oj_geos_verdict verdict;
        if (!oj_box_intersects(window, &search->boxes->box[feature]) ||
            !oj_pair_may_count(run->filter, row, feature))
            continue;
        OJ_TRY(oj_box_search_look(run->search, run->err));
        run->n_candidates++;
        verdict = ask(run, row, feature, &distance);
        OJ_TRY(take_verdict(run, row, feature, verdict, distance));
    }
    return OJ_OK;
}

/* The box in which row's candidates are; empty when it has none. */
static struct oj_box window_of_row(const struct box_rows_batch *run,
                                   int64_t row)
{
    struct oj_box box = oj_box_of_feature(run->input, row);
    double reach = reach_of_row(run, row);
    if (reach < 0.0 || oj_box_is_empty(&box))
        return oj_box_empty();
    if (takes_apart(run))
        reach = INFINITY;
    return oj_box_around(&box, reach);
}

/* Rows first <= i < end of the order of visit share a query. */
static oj_status join_together(struct box_rows_batch *run, int64_t first,
                               int64_t end)
{
    struct oj_box around = oj_box_empty();
    for (int64_t i = first; i < end; i++)
    {
        struct oj_box window = window_of_row(run, run->middle.row[i]);
        if (!oj_box_is_empty(&window))
            oj_box_add_box(&around, &window);
    }
    if (oj_box_is_empty(&around))
        return OJ_OK;
    if (takes_apart(run))
        OJ_TRY(find_all(run));
    else
        OJ_TRY(oj_box_search_query(run->search, &around, &run->found,
                                   &run->filter_s, run->err));
    for (int64_t i = first; i < end; i++)
    {
        int64_t row = run->middle.row[i];
        struct oj_box window = window_of_row(run, row);
        OJ_TRY(oj_box_search_look(run->search, run->err));
        OJ_TRY(decide_found(run, row, &window));
    }
    return OJ_OK;
}

/* --- nearest -------------------------------------------------------------- */

static oj_status rank(struct box_rows_batch *run, int64_t row, int32_t feature,
                      double at_least)
{
    double distance;
    enum oj_geos_verdict verdict = ask(run, row, feature, &distance);
    if (verdict == OJ_GEOS_YES)
        return oj_ranking_add(&run->ranking, feature, distance, run->err);
    if (verdict == OJ_GEOS_OUT_OF_MEMORY)
        return oj_fail(run->err, OJ_ERR_NOMEM, "out of memory in GEOS");
    if (verdict == OJ_GEOS_CANNOT_SAY)
    {
        oj_box_refused_add(&run->refused, run->search->tie_rank, feature,
                           at_least);
        keep_reason(run);
    }
    return OJ_OK;
}

/* Ranks the found features whose box lies in the window of row, which reaches
 * as far as reach around it. */
static oj_status rank_found(struct box_rows_batch *run, int64_t row,
                            const struct oj_box *box,
                            const struct oj_box *window)
{
    const struct oj_box_search *search = run->search;
    struct oj_box around = oj_box_around(box, 0.0);
    oj_ranking_start(&run->ranking);
    run->refused = oj_box_refused_none();
    for (int64_t i = 0; i < run->found.n; i++)
    {
        int32_t feature = run->found.feature[i];
        double at_least =
            oj_box_distance(&around, &search->boxes->box[feature]);
        if (!oj_box_intersects(window, &search->boxes->box[feature]) ||
            at_least > run->ranking.bound ||
            !oj_pair_may_count(run->filter, row, feature))
            continue;
        OJ_TRY(oj_box_search_look(run->search, run->err));
        run->n_candidates++;
        OJ_TRY(rank(run, row, feature, at_least));
    }
    oj_ranking_finish(&run->ranking);
    return OJ_OK;
}

/* A window, and a larger one while the answer may lie outside. */
static oj_status join_nearest(struct box_rows_batch *run, int64_t row)
{
    struct oj_box_search *search = run->search;
    struct oj_box box = oj_box_of_feature(run->input, row), window;
    double most = reach_of_row(run, row), reach = most;
    if (most < 0.0 || oj_box_is_empty(&box) || search->boxes->n_boxes == 0)
        return OJ_OK;
    run->ranking.max_distance = most;
    if (search->is_wide)
        reach = fmin(most, search->reach +
                               oj_box_distance(&box, &search->boxes->all));
    for (;;)
    {
        double kth;
        OJ_TRY(oj_box_search_look(run->search, run->err));
        window = oj_box_around(&box, reach);
        OJ_TRY(oj_box_search_query(search, &window, &run->found, &run->filter_s,
                                   run->err));
        OJ_TRY(rank_found(run, row, &box, &window));
        kth = oj_ranking_kth_distance(&run->ranking);
        if (reach >= most || kth <= reach ||
            oj_box_covers(&window, &search->boxes->all))
            break;
        reach = kth < INFINITY ? kth : fmax(4.0 * reach, DBL_MIN);
        reach = fmin(reach, most);
    }
    if (oj_box_refused_matters(&run->refused, &run->ranking))
    {
        run->n_undecided++;
        OJ_TRY(oj_answers_add_undecided(&run->answers, row, -1, run->err));
    }
    return oj_answers_add(&run->answers, row, &run->ranking, run->err);
}

/* --- the batch ------------------------------------------------------------ */

static double middle(double low, double high)
{
    return 0.5 * low + 0.5 * high;
}

/* The rows that have parts, each by the middle of its box. */
static oj_status list_rows(struct box_rows_batch *run)
{
    const struct oj_flat *input = run->input;
    struct oj_points *list = &run->middle;
    OJ_NEW(list->x, input->n_features, run->err);
    OJ_NEW(list->y, input->n_features, run->err);
    OJ_NEW(list->row, input->n_features, run->err);
    for (int64_t row = 0; row < input->n_features; row++)
    {
        struct oj_box box = oj_box_of_feature(input, row);
        if (oj_box_is_empty(&box))
            continue;
        list->x[list->n] = middle(box.x0, box.x1);
        list->y[list->n] = middle(box.y0, box.y1);
        list->row[list->n++] = (int32_t)row;
    }
    if (run->search->visit != OJ_VISIT_AS_GIVEN)
        return oj_points_sort(list, run->err);
    return OJ_OK;
}

static oj_status join_one_by_one(struct box_rows_batch *run)
{
    int is_nearest = run->search->relation.op == OJ_OP_NEAREST;
    for (int64_t i = 0; i < run->middle.n; i++)
    {
        if (is_nearest)
            OJ_TRY(join_nearest(run, run->middle.row[i]));
        else
            OJ_TRY(join_together(run, i, i + 1));
    }
    return OJ_OK;
}

static oj_status join_quadrants(struct box_rows_batch *run)
{
    struct oj_quadrants quadrants;
    oj_status status = OJ_OK;
    OJ_TRY(oj_quadrants_make(&run->middle, run->search->options.quadrant_size,
                             INFINITY, &quadrants, run->err));
    for (int64_t q = 0; q < quadrants.n && status == OJ_OK; q++)
        status = join_together(run, quadrants.quadrant[q].first,
                               quadrants.quadrant[q].end);
    oj_quadrants_free(&quadrants);
    return status;
}

static oj_status join_all(struct box_rows_batch *run, struct oj_matches *out)
{
    const struct oj_box_search *search = run->search;
    double start = oj_clock_seconds(), listed;
    OJ_TRY(list_rows(run));
    listed = oj_clock_seconds();
    if (search->visit == OJ_VISIT_COLLECTIVE &&
        search->relation.op != OJ_OP_NEAREST)
        OJ_TRY(join_quadrants(run));
    else
        OJ_TRY(join_one_by_one(run));
    OJ_TRY(oj_answers_to_matches(&run->answers, 1, run->input->n_features,
                                 &search->relation, search->tie_rank, out,
                                 run->err));
    run->stats->sort_s += listed - start;
    run->stats->filter_s += run->filter_s;
    run->stats->refine_s += oj_clock_seconds() - listed - run->filter_s;
    run->stats->n_candidates += run->n_candidates;
    run->stats->n_undecided_pairs += run->n_undecided;
    return OJ_OK;
}

oj_status oj_box_rows_join(struct oj_box_search *search,
                           const struct oj_flat *input,
                           const struct oj_pair_filter *filter,
                           struct oj_matches *out, struct oj_stats *stats,
                           struct oj_error *err)
{
    struct box_rows_batch run;
    oj_status status;
    memset(&run, 0, sizeof run);
    run.search = search;
    run.input = input;
    run.filter = filter;
    run.stats = stats;
    run.err = err;
    run.most = greatest_distance(search->join_side);
    run.ranking = oj_ranking_make(&search->relation, search->tie_rank);
    oj_answers_start(&run.answers, search->options.max_batch_pairs,
                     input->n_features, 1);
    oj_geos_pairs_set_input(search->pairs, input);
    status = join_all(&run, out);
    oj_points_free(&run.middle);
    oj_ranking_free(&run.ranking);
    oj_answers_free(&run.answers);
    oj_free(run.found.feature);
    return status;
}
