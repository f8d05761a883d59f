/** The search that the reference backends share: candidates from a library's
 *  tree of boxes, GEOS's word on them, the answer from their ranking; every
 *  join, features of any kinds, each as a whole, one thread.
 *
 *  All joins but nearest: one query of the tree with the row's box, grown by
 *  the greatest distance where the join has one; GEOS decides every candidate
 *  that the pair filter lets pass (geos_pairs.h).  disjoint, and patterns that
 *  hold for features apart: every feature is a candidate; GEOS is not asked
 *  whether features are disjoint whose envelopes are.  bbox: the exact
 *  envelopes decide.
 *
 *  nearest within a distance: the same.  Without one, or with one so wide that
 *  most of the layer would be a candidate: a smaller window first, and again
 *  with a larger one until the k-th distance lies within the window or the
 *  window holds every feature.  Points are then always taken in Morton order:
 *  what the last one found says how large a window the next one needs.  That
 *  decides time, never the answer.
 *
 *  Collective: the rows of a quadrant share one query, with the quadrant's box
 *  grown, and each takes the candidates in its own window.
 *
 *  A pair that GEOS cannot decide is listed as undecided; of the nearest join
 *  the row, where that pair could be in its answer.
 *
 *  Source: Zhang, You, Gruenwald 2012, sections 3.1 and 4.2 ("collective
 *  query"); the growing windows are ours.
 */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/oj_point_quadrants.h"
#include "../geos/geos_pairs.h"
#include "../pairs/oj_pairs.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_engine.h"
#include "box_tree.h"

#include <stdio.h>
#include <string.h>

/* In what order the rows of a batch are taken. */
enum visit_order
{
    VISIT_AS_GIVEN,
    VISIT_SORTED,    /* in Morton order, with prepared geometries */
    VISIT_COLLECTIVE /* in quadrants, one query for each */
};

struct box_index
{
    const struct oj_box_library *library;
    enum visit_order visit;
    void *tree; /* NULL: no feature has a box */
    struct oj_boxes boxes;
    struct oj_index_args args;
    struct oj_geos_pairs *pairs;
    int is_wide;  /* begin with a small window and grow it */
    double reach; /* the window to begin with, when wide */
};

/* Of the features that GEOS refused to measure for a row, the one that counts:
 * nearest by its box, than which it cannot be nearer, then by rank. */
struct refused
{
    double at_least; /* distance of its box; INFINITY: none was refused */
    int32_t rank;
};

/* A batch on its way. */
struct box_batch
{
    struct box_index *index;
    const struct oj_flat *input;
    struct oj_pair_filter filter;
    int of_points;           /* all rows are points or multipoints */
    struct oj_box *box;      /* [rows] exact; empty: without parts */
    struct oj_points middle; /* of the boxes, in the order of visit */
    int64_t *pending;        /* [middle.n] places in it that share a query */
    struct oj_box_found found;
    struct oj_ranking ranking;
    struct oj_answers answers;
    struct refused refused; /* of the row at hand */
    int32_t *last; /* [n_last] the answer of the last point that had k */
    int64_t n_last, cap_last;
    double enough; /* a window that surely is; INFINITY: not known */
    double most;   /* greatest distance of any join feature's own; else -1 */
    int64_t n_candidates, n_undecided;
    double filter_s;
    struct oj_stats *stats;
    struct oj_error *err;
};

oj_status oj_box_found_add(struct oj_box_found *found, int64_t feature,
                           struct oj_error *err)
{
    OJ_ROOM(found->feature, found->n, found->n + 1, found->capacity, err);
    found->feature[found->n++] = (int32_t)feature;
    return OJ_OK;
}

static oj_status look(const struct box_batch *run)
{
    return oj_check_cancel(run->index->args.options.cancel, run->err);
}

/* The features whose box intersects window. */
static oj_status query(struct box_batch *run, const struct oj_box *window)
{
    const struct box_index *index = run->index;
    double start = index->args.options.timings ? oj_clock_seconds() : 0.0;
    oj_status status;
    run->found.n = 0;
    status = index->library->query(index->tree, window, &run->found, run->err);
    if (index->args.options.timings)
        run->filter_s += oj_clock_seconds() - start;
    return status;
}

/* Every feature that has a box. */
static oj_status find_all(struct box_batch *run)
{
    const struct oj_boxes *boxes = &run->index->boxes;
    run->found.n = 0;
    for (int64_t i = 0; i < boxes->n; i++)
    {
        if (!oj_box_is_empty(&boxes->box[i]))
            OJ_TRY(oj_box_found_add(&run->found, i, run->err));
    }
    return OJ_OK;
}

static int takes_distance(const struct box_batch *run)
{
    return (oj_op_get(run->index->args.relation.op)->takes &
            OJ_TAKES_DISTANCE) != 0;
}

/* No pair of row counts beyond this; < 0: none counts at all. */
static double reach_of_row(const struct box_batch *run, int64_t row)
{
    if (!takes_distance(run))
        return 0.0;
    if (run->most >= 0.0 || run->index->args.join_side->max_distance != NULL)
        return run->most;
    return oj_pair_max_distance(&run->index->args.relation, run->input, row,
                                run->index->args.join_side, 0);
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

static void keep_reason(struct box_batch *run)
{
    char *text = run->stats->undecided_text;
    if (text[0] == '\0')
        snprintf(text, sizeof run->stats->undecided_text, "%s",
                 oj_geos_pairs_message(run->index->pairs));
}

/* 1 when features however far apart may be pairs. */
static int takes_apart(const struct box_batch *run)
{
    return !takes_distance(run) &&
           !oj_relation_needs_contact(&run->index->args.relation);
}

static int envelopes_meet(const struct box_batch *run, int64_t row,
                          int64_t feature)
{
    struct oj_box box = oj_box_of_feature(run->index->args.join_side, feature);
    return oj_box_intersects(&run->box[row], &box);
}

/* YES where the pair counts; *distance where the join has one. */
static enum oj_geos_verdict ask(struct box_batch *run, int64_t row,
                                int64_t feature, double *distance)
{
    const struct box_index *index = run->index;
    const struct oj_relation *relation = &index->args.relation;
    enum oj_geos_verdict verdict;
    *distance = NAN;
    if (relation->op == OJ_OP_BBOX)
        return envelopes_meet(run, row, feature) ? OJ_GEOS_YES : OJ_GEOS_NO;
    if (relation->op == OJ_OP_DISJOINT && !envelopes_meet(run, row, feature))
        return OJ_GEOS_YES;
    if (!takes_distance(run))
        return oj_geos_pairs_hold(index->pairs, row, feature);
    verdict = oj_geos_pairs_distance(index->pairs, row, feature, distance);
    if (verdict != OJ_GEOS_YES)
        return verdict;
    /* an infinite one has overflowed */
    return *distance >= relation->min_distance && *distance < INFINITY &&
                   *distance <= oj_pair_max_distance(relation, run->input, row,
                                                     index->args.join_side,
                                                     feature)
               ? OJ_GEOS_YES
               : OJ_GEOS_NO;
}

/* --- every join but nearest ----------------------------------------------- */

static oj_status take_verdict(struct box_batch *run, int64_t row,
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
static oj_status decide_found(struct box_batch *run, int64_t row,
                              const struct oj_box *window)
{
    for (int64_t i = 0; i < run->found.n; i++)
    {
        int32_t feature = run->found.feature[i];
        double distance;
        enum oj_geos_verdict verdict;
        if (!oj_box_intersects(window, &run->index->boxes.box[feature]) ||
            !oj_pair_may_count(&run->filter, row, feature))
            continue;
        OJ_TRY(look(run));
        run->n_candidates++;
        verdict = ask(run, row, feature, &distance);
        OJ_TRY(take_verdict(run, row, feature, verdict, distance));
    }
    return OJ_OK;
}

/* The box in which row's candidates are; empty when it has none. */
static struct oj_box window_of_row(const struct box_batch *run, int64_t row)
{
    double reach = reach_of_row(run, row);
    if (reach < 0.0)
        return oj_box_empty();
    if (takes_apart(run))
        reach = INFINITY;
    return oj_box_around(&run->box[row], reach);
}

/* Rows first <= i < end of the order of visit share a query. */
static oj_status join_any(struct box_batch *run, int64_t first, int64_t end)
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
    OJ_TRY(takes_apart(run) ? find_all(run) : query(run, &around));
    for (int64_t i = first; i < end; i++)
    {
        int64_t row = run->middle.row[i];
        struct oj_box window = window_of_row(run, row);
        OJ_TRY(look(run));
        OJ_TRY(decide_found(run, row, &window));
    }
    return OJ_OK;
}

/* --- nearest -------------------------------------------------------------- */

static void refuse(struct box_batch *run, int32_t feature, double at_least)
{
    const int32_t *tie_rank = run->index->args.tie_rank;
    int32_t rank = tie_rank != NULL ? tie_rank[feature] : feature;
    keep_reason(run);
    if (at_least < run->refused.at_least ||
        (at_least == run->refused.at_least && rank < run->refused.rank))
    {
        run->refused.at_least = at_least;
        run->refused.rank = rank;
    }
}

/* Whether what was refused might be in the answer that was ranked. */
static int refused_matters(const struct box_batch *run)
{
    const struct refused *refused = &run->refused;
    const struct oj_ranking *ranking = &run->ranking;
    double kth = oj_ranking_kth_distance(ranking);
    if (!(refused->at_least <= ranking->max_distance) ||
        !(refused->at_least < INFINITY))
        return 0;
    if (ranking->n < ranking->k || refused->at_least < kth)
        return 1;
    return refused->at_least == kth &&
           (ranking->keep_ties ||
            refused->rank < ranking->list[ranking->k - 1].rank);
}

static oj_status rank(struct box_batch *run, int64_t row, int32_t feature,
                      double at_least)
{
    double distance;
    switch (ask(run, row, feature, &distance))
    {
        case OJ_GEOS_NO:
            return OJ_OK;
        case OJ_GEOS_YES:
            return oj_ranking_add(&run->ranking, feature, distance, run->err);
        case OJ_GEOS_CANNOT_SAY:
            refuse(run, feature, at_least);
            return OJ_OK;
        default:
            return oj_fail(run->err, OJ_ERR_NOMEM, "out of memory in GEOS");
    }
}

/* Ranks the found features whose box lies in the window of row. A search for
 * points within a distance stays as plain as it was published. */
static oj_status rank_found(struct box_batch *run, int64_t row,
                            const struct oj_box *window)
{
    const struct box_index *index = run->index;
    struct oj_box around = oj_box_around(&run->box[row], 0.0);
    int is_plain = run->of_points && !index->is_wide;
    run->ranking.max_distance = reach_of_row(run, row);
    oj_ranking_start(&run->ranking);
    run->refused.at_least = INFINITY;
    for (int64_t i = 0; i < run->found.n; i++)
    {
        int32_t feature = run->found.feature[i];
        const struct oj_box *box = &index->boxes.box[feature];
        double at_least = oj_box_distance(&around, box);
        if (!oj_box_intersects(window, box) ||
            (at_least > run->ranking.bound && !is_plain) ||
            !oj_pair_may_count(&run->filter, row, feature))
            continue;
        OJ_TRY(look(run));
        run->n_candidates++;
        OJ_TRY(rank(run, row, feature, at_least));
    }
    oj_ranking_finish(&run->ranking);
    return OJ_OK;
}

/* Whether what was ranked is the answer: window is the box that was searched,
 * reach what it surely holds around the row. */
static int is_settled(const struct box_batch *run, const struct oj_box *window,
                      double reach)
{
    return reach >= run->ranking.max_distance ||
           oj_ranking_kth_distance(&run->ranking) <= reach ||
           oj_box_covers(window, &run->index->boxes.all);
}

static oj_status store(struct box_batch *run, int64_t row)
{
    if (refused_matters(run))
    {
        run->n_undecided++;
        OJ_TRY(oj_answers_add_undecided(&run->answers, row, -1, run->err));
    }
    return oj_answers_add(&run->answers, row, &run->ranking, run->err);
}

static double diagonal(const struct oj_box *box)
{
    return hypot(box->x1 - box->x0, box->y1 - box->y0);
}

/* A window that holds k features for every row within spread of this one:
 * those that the last had, which was nearby. */
static oj_status bound_kth_distance(struct box_batch *run, int64_t row,
                                    double spread)
{
    double farthest = 0.0;
    run->enough = INFINITY;
    if (run->n_last < run->index->args.relation.k)
        return OJ_OK;
    for (int64_t i = 0; i < run->n_last; i++)
    {
        double distance;
        if (oj_geos_pairs_distance(run->index->pairs, row, run->last[i],
                                   &distance) != OJ_GEOS_YES)
            return OJ_OK;
        farthest = fmax(farthest, distance);
    }
    run->enough = farthest + spread;
    return OJ_OK;
}

/* The window that a search for the rows in box begins with, of which row is
 * one; most is the farthest that any of them asks for. */
static oj_status first_reach(struct box_batch *run, const struct oj_box *box,
                             int64_t row, double most, double *reach)
{
    const struct box_index *index = run->index;
    *reach = most;
    if (!index->is_wide)
        return OJ_OK;
    OJ_TRY(bound_kth_distance(run, row, diagonal(box)));
    *reach = index->reach + oj_box_distance(box, &index->boxes.all);
    if (run->enough <= 2.0 * *reach)
        *reach = run->enough;
    *reach = fmin(*reach, most);
    return OJ_OK;
}

/* The next, after reach was not enough and needed (INFINITY: not known) would
 * be. */
static double next_reach(const struct box_batch *run, double reach,
                         double needed, double most)
{
    double next = needed < INFINITY ? needed : fmax(4.0 * reach, DBL_MIN);
    if (reach < run->enough)
        next = fmin(next, run->enough);
    return fmin(next, most);
}

/* Lets the search for the next point begin with what this one needed, or a
 * little more. */
static oj_status learn(struct box_batch *run)
{
    struct box_index *index = run->index;
    const struct oj_ranking *ranking = &run->ranking;
    double least = index->boxes.spacing / 1024.0;
    if (!index->is_wide || !run->of_points || ranking->n < ranking->k)
        return OJ_OK;
    index->reach = fmax(0.5 * index->reach +
                            0.5 * (1.5 * oj_ranking_kth_distance(ranking)),
                        least);
    OJ_ROOM(run->last, 0, ranking->k, run->cap_last, run->err);
    for (int64_t i = 0; i < ranking->k; i++)
        run->last[i] = ranking->list[i].feature;
    run->n_last = ranking->k;
    return OJ_OK;
}

/* One query for all rows of pending [*n]; those that are not settled by it come
 * to the front, and their number, and what they need in *reach. */
static oj_status join_pending(struct box_batch *run, int64_t *pending,
                              int64_t *n, double most, double *reach)
{
    struct oj_box all = oj_box_empty(), window;
    int64_t n_left = 0;
    double needed = 0.0;
    for (int64_t i = 0; i < *n; i++)
        oj_box_add_box(&all, &run->box[run->middle.row[pending[i]]]);
    window = oj_box_around(&all, *reach);
    OJ_TRY(query(run, &window));
    for (int64_t i = 0; i < *n; i++)
    {
        int64_t row = run->middle.row[pending[i]];
        OJ_TRY(look(run));
        window = oj_box_around(&run->box[row], *reach);
        OJ_TRY(rank_found(run, row, &window));
        if (is_settled(run, &window, *reach))
        {
            OJ_TRY(learn(run));
            OJ_TRY(store(run, row));
            continue;
        }
        needed = fmax(needed, oj_ranking_kth_distance(&run->ranking));
        pending[n_left++] = pending[i];
    }
    *n = n_left;
    *reach = next_reach(run, *reach, needed, most);
    return OJ_OK;
}

/* Rows first .. end share a query. Where the window follows the rows and theirs
 * would be mostly the space between them, the two halves do. */
static oj_status join_nearest(struct box_batch *run, int64_t first, int64_t end)
{
    struct oj_box box = oj_box_empty();
    int64_t n = 0, middle = first + (end - first) / 2;
    int64_t *pending = run->pending + first;
    double most = -1.0, reach;
    for (int64_t i = first; i < end; i++)
    {
        int64_t row = run->middle.row[i];
        double own = reach_of_row(run, row);
        if (own < 0.0)
            continue;
        most = fmax(most, own);
        oj_box_add_box(&box, &run->box[row]);
        pending[n++] = i;
    }
    if (n == 0)
        return OJ_OK;
    OJ_TRY(first_reach(run, &box, run->middle.row[pending[0]], most, &reach));
    if (run->index->is_wide && n > 1 && diagonal(&box) > reach)
    {
        OJ_TRY(join_nearest(run, first, middle));
        return join_nearest(run, middle, end);
    }
    while (n > 0)
        OJ_TRY(join_pending(run, pending, &n, most, &reach));
    return OJ_OK;
}

/* --- the batch ------------------------------------------------------------ */

/* The rows that have parts, each by the middle of its box. */
static oj_status list_rows(struct box_batch *run)
{
    const struct oj_flat *input = run->input;
    struct oj_points *list = &run->middle;
    OJ_NEW(run->box, input->n_features, run->err);
    OJ_NEW(run->pending, input->n_features, run->err);
    OJ_NEW(list->x, input->n_features, run->err);
    OJ_NEW(list->y, input->n_features, run->err);
    OJ_NEW(list->row, input->n_features, run->err);
    for (int64_t row = 0; row < input->n_features; row++)
    {
        struct oj_box box = oj_box_of_feature(input, row);
        run->box[row] = box;
        if (oj_box_is_empty(&box))
            continue;
        list->x[list->n] = 0.5 * box.x0 + 0.5 * box.x1;
        list->y[list->n] = 0.5 * box.y0 + 0.5 * box.y1;
        list->row[list->n++] = (int32_t)row;
    }
    return OJ_OK;
}

/* All rows of the batch, in quadrants or one by one. */
static oj_status join_rows(struct box_batch *run)
{
    const struct box_index *index = run->index;
    int is_nearest = index->args.relation.op == OJ_OP_NEAREST;
    oj_status (*join_some)(struct box_batch *, int64_t, int64_t) =
        is_nearest ? join_nearest : join_any;
    struct oj_quadrants quadrants;
    oj_status status = OJ_OK;
    if (index->visit != VISIT_COLLECTIVE || (is_nearest && !run->of_points))
    {
        for (int64_t i = 0; i < run->middle.n; i++)
            OJ_TRY(join_some(run, i, i + 1));
        return OJ_OK;
    }
    OJ_TRY(oj_quadrants_make(&run->middle, index->args.options.quadrant_size,
                             INFINITY, &quadrants, run->err));
    for (int64_t q = 0; q < quadrants.n && status == OJ_OK; q++)
        status = join_some(run, quadrants.quadrant[q].first,
                           quadrants.quadrant[q].end);
    oj_quadrants_free(&quadrants);
    return status;
}

static oj_status join_all(struct box_batch *run, struct oj_matches *out)
{
    const struct box_index *index = run->index;
    double start = oj_clock_seconds(), listed;
    OJ_TRY(list_rows(run));
    if (index->visit != VISIT_AS_GIVEN ||
        (run->of_points && index->is_wide &&
         index->args.relation.op == OJ_OP_NEAREST))
        OJ_TRY(oj_points_sort(&run->middle, run->err));
    listed = oj_clock_seconds();
    if (index->boxes.n_boxes > 0)
        OJ_TRY(join_rows(run));
    OJ_TRY(oj_answers_to_matches(&run->answers, 1, run->input->n_features,
                                 &index->args.relation, index->args.tie_rank,
                                 out, run->err));
    run->stats->sort_s += listed - start;
    run->stats->filter_s += run->filter_s;
    run->stats->refine_s += oj_clock_seconds() - listed - run->filter_s;
    run->stats->n_candidates += run->n_candidates;
    run->stats->n_undecided_pairs += run->n_undecided;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct box_batch run;
    oj_status status;
    memset(&run, 0, sizeof run);
    run.index = (void *)wrapped;
    run.input = input;
    run.stats = stats;
    run.err = err;
    run.enough = INFINITY;
    run.of_points = oj_flat_is_points(input) ||
                    (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0;
    OJ_TRY(oj_pair_filter_make(&run.index->args.relation, input,
                               run.index->args.join_side, &run.filter, err));
    run.most = greatest_distance(run.index->args.join_side);
    run.ranking =
        oj_ranking_make(&run.index->args.relation, run.index->args.tie_rank);
    oj_answers_start(&run.answers, run.index->args.options.max_batch_pairs,
                     input->n_features, 1);
    oj_geos_pairs_set_input(run.index->pairs, input);
    status = join_all(&run, out);
    oj_points_free(&run.middle);
    oj_ranking_free(&run.ranking);
    oj_answers_free(&run.answers);
    oj_free(run.found.feature);
    oj_free(run.box);
    oj_free(run.pending);
    oj_free(run.last);
    return status;
}

/* --- the join side -------------------------------------------------------- */

static void free_index(struct oj_index *wrapped)
{
    struct box_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    index->library->free(index->tree);
    oj_geos_pairs_close(index->pairs);
    oj_boxes_free(&index->boxes);
    oj_free(index);
}

/* The tree, and what GEOS is asked with. */
static oj_status build(struct box_index *index, struct oj_error *err)
{
    const struct oj_relation *relation = &index->args.relation;
    OJ_TRY(oj_boxes_make(index->args.join_side, &index->boxes, err));
    if (index->boxes.n_boxes > 0)
        OJ_TRY(index->library->build(&index->boxes, &index->tree, err));
    OJ_TRY(oj_geos_pairs_open(relation, index->args.join_side,
                              index->visit == VISIT_SORTED, &index->pairs,
                              err));
    index->is_wide = oj_boxes_window_is_wide(
        &index->boxes, relation->max_distance, relation->k);
    index->reach = index->boxes.spacing * sqrt((double)relation->k);
    return OJ_OK;
}

static oj_status make_index(const struct oj_box_library *library,
                            enum visit_order visit, const char *name,
                            const struct oj_index_args *args,
                            struct oj_index **out, struct oj_stats *stats,
                            struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct box_index *index;
    oj_status status;
    if (args->relation.metric != OJ_METRIC_PLANAR)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"%s\" asks GEOS, which measures in the "
                       "plane only, not on the sphere",
                       name);
    index = oj_calloc(1, sizeof *index);
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->library = library;
    index->visit = visit;
    index->args = *args;
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

#define TREE_ENGINE(name, library, visit)                                      \
    static oj_status index_##name(                                             \
        const struct oj_index_args *args, struct oj_index **out,               \
        struct oj_stats *stats, struct oj_error *err)                          \
    {                                                                          \
        return make_index(&(library), visit, #name, args, out, stats, err);    \
    }                                                                          \
    const struct oj_engine oj_##name##_engine = {#name, NULL, index_##name,    \
                                                 join, free_index};

TREE_ENGINE(geos, oj_geos_tree, VISIT_AS_GIVEN)
TREE_ENGINE(geos_sorted, oj_geos_tree, VISIT_SORTED)
#ifdef OJ_SPATIALINDEX
TREE_ENGINE(spatialindex, oj_spatialindex_tree, VISIT_AS_GIVEN)
TREE_ENGINE(spatialindex_collective, oj_spatialindex_tree, VISIT_COLLECTIVE)
#endif
