/* The family that answers predicates.
 *
 *  rows in an order that keeps neighbours together -> shapes -> features whose
 *  boxes pass (cpu_shapes.h), or what a screen has found in their place -> pair
 *  filter -> our kernels (cpu_verdict.h) -> the matrix of what they leave
 *  (relate.h) -> answers
 */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/cpu_threads.h"
#include "../kernels/oj_said.h"
#include "../pairs/oj_pairs.h"
#include "../pairs/oj_ranking.h"
#include "../pairs/oj_row_order.h"
#include "../relate/relate.h"
#include "../relation/oj_backend.h"
#include "../relation/oj_engine.h"
#include "../relation/oj_point_rule.h"
#include "../relation/oj_screen.h"
#include "../shapes/cpu_meet.h"
#include "cpu_verdict.h"

#include <stdatomic.h>
#include <string.h>

#define ROWS_PER_TASK 64

/* Of a screen's pairs; rows with open ones are few or slow, so in small tasks.
 */
#define SCREENED_PER_TASK 1024
#define OPEN_PER_TASK 16

/* Whether oj_shape_is_nice(), which is asked when it is needed first. */
enum oj_niceness
{
    OJ_NICENESS_NOT_KNOWN,
    OJ_NOT_NICE,
    OJ_NICE
};

/* One thread's own. */
struct predicate_worker
{
    struct oj_relate_scratch relate;
    struct oj_figure figure; /* of a shape that may be nice */
    struct oj_found found;
    struct oj_answers *answers; /* of the index */
    struct oj_shape *member;    /* of the row at hand */
    int64_t cap_members;
    struct oj_edge_grid cells; /* of the row at hand */
    int row_niceness;          /* of it, enum oj_niceness */
    uint8_t *is_met; /* [features] disjoint: marks of the row at hand */
    int64_t n_rows, n_asked;
    int64_t n_to_look;
};

/* The join side, prepared. */
struct predicate_index
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    struct oj_screen_rule rule;
    int takes_screen;          /* as the rule says */
    struct oj_shape_side side; /* empty until has_side */
    int has_side;
    int32_t *place_of; /* [features] in the side; NULL until wanted */
    struct oj_screen_pairs screened; /* of the last batch */
    struct predicate_worker *worker; /* [options.n_threads] */
    struct oj_answers *answers;      /* [options.n_threads] */
    _Atomic uint8_t *niceness;       /* [features] enum oj_niceness */
};

/* A batch on its way. */
struct predicate_batch
{
    struct predicate_index *index;
    const struct oj_flat *input;
    struct oj_pair_filter filter;
    struct oj_order order;
    double *x, *y; /* [rows] first vertices, where rows are not points */
};

/* Pairs asked between two looks at the cancel flag; before every matrix, which
 * may take long, there is one. */
#define PAIRS_PER_LOOK 256

static oj_status look_up(const struct oj_options *options,
                         struct predicate_worker *w, struct oj_error *err)
{
    if (--w->n_to_look > 0)
        return OJ_OK;
    w->n_to_look = PAIRS_PER_LOOK;
    return oj_check_cancel(options->cancel, err);
}

/* Prepares the side if that was not done yet. */
static oj_status want_side(struct predicate_index *index, struct oj_error *err)
{
    if (!index->has_side)
        OJ_TRY(oj_side_build(&index->side, index->join_side,
                             index->options.n_threads, err));
    index->has_side = 1;
    return OJ_OK;
}

/* --- one pair ------------------------------------------------------------- */

static oj_status know_niceness(struct predicate_worker *w,
                               const struct oj_shape *shape, int *niceness,
                               struct oj_error *err)
{
    int is_nice;
    if (*niceness != OJ_NICENESS_NOT_KNOWN)
        return OJ_OK;
    w->n_to_look = 0; /* it may take its time */
    OJ_TRY(oj_shape_is_nice(shape, &w->figure, &w->relate.node, &is_nice, err));
    *niceness = is_nice ? OJ_NICE : OJ_NOT_NICE;
    return OJ_OK;
}

/* shape: of the feature; single points are nice. */
static oj_status feature_is_nice(const struct predicate_batch *b,
                                 struct predicate_worker *w, int32_t feature,
                                 const struct oj_shape *shape, int *yes,
                                 struct oj_error *err)
{
    _Atomic uint8_t *known = &b->index->niceness[feature];
    int niceness = atomic_load_explicit(known, memory_order_relaxed);
    OJ_TRY(know_niceness(w, shape, &niceness, err));
    atomic_store_explicit(known, (uint8_t)niceness, memory_order_relaxed);
    *yes = niceness == OJ_NICE;
    return OJ_OK;
}

static oj_status row_is_nice(struct predicate_worker *w,
                             const struct oj_shape *shape, int *yes,
                             struct oj_error *err)
{
    OJ_TRY(know_niceness(w, shape, &w->row_niceness, err));
    *yes = w->row_niceness == OJ_NICE;
    return OJ_OK;
}

/* By the matrix, which is exact for any shapes. */
static oj_status relate(const struct predicate_batch *b,
                        struct predicate_worker *w,
                        const struct oj_shape *shape, int32_t feature,
                        const struct oj_shape *other, int *holds,
                        struct oj_error *err)
{
    const struct oj_relation *relation = &b->index->relation;
    struct oj_matrix matrix;
    int row_nice, feature_nice;
    OJ_TRY(row_is_nice(w, shape, &row_nice, err));
    OJ_TRY(feature_is_nice(b, w, feature, other, &feature_nice, err));
    w->n_to_look = 0; /* it takes its time */
    OJ_TRY(oj_shapes_relate(relation, shape, row_nice, other, feature_nice,
                            b->index->options.cancel, &w->relate, &matrix,
                            err));
    *holds = oj_matrix_holds(&matrix, relation);
    return OJ_OK;
}

/* Whether the row, and the feature in place at, are a pair: what our kernels
 * say where all that this rests on is nice, and else the matrix. */
static oj_status ask(const struct predicate_batch *b,
                     struct predicate_worker *w, const struct oj_shape *shape,
                     int64_t at, int *holds, struct oj_error *err)
{
    struct oj_shape_side *side = &b->index->side;
    int32_t feature = oj_side_feature(side, at);
    struct oj_shape point;
    const struct oj_shape *other = &point;
    enum oj_verdict verdict;
    unsigned needs = 0;
    int is_sure;
    *holds = 1;
    if (b->index->rule.is_enough)
        return OJ_OK;
    if (side->shape != NULL)
    {
        other = &side->shape[at];
        if (atomic_load_explicit(&other->cells, memory_order_relaxed) == NULL)
            OJ_TRY(oj_side_want_cells(
                side, at, shape->cells == NULL ? shape->n_vertices : 0, err));
    }
    else
        point = oj_side_point(side, at);
    verdict = oj_verdict_of(&b->index->relation, shape, other, &needs);
    is_sure = verdict != OJ_VERDICT_UNSURE;
    if (is_sure && (needs & OJ_NEEDS_NICE_B))
        OJ_TRY(feature_is_nice(b, w, feature, other, &is_sure, err));
    if (is_sure && (needs & OJ_NEEDS_NICE_A))
        OJ_TRY(row_is_nice(w, shape, &is_sure, err));
    if (!is_sure)
        return relate(b, w, shape, feature, other, holds, err);
    *holds = verdict == OJ_VERDICT_YES;
    return OJ_OK;
}

/* --- one row -------------------------------------------------------------- */

/* Room for one more pair.  Growing by halves copies and touches much memory, so
 * the rest of the batch is foreseen from its rows so far. */
static oj_status reserve_pair(const struct predicate_batch *b,
                              struct predicate_worker *w, struct oj_error *err)
{
    int64_t n = w->answers->n_entries, more = 1;
    if (w->answers->max_entries <= 0)
    {
        double done =
            (double)(w->n_rows + 1) / ((double)b->input->n_features /
                                       (double)b->index->options.n_threads);
        if (n < w->answers->cap_distance)
            return OJ_OK;
        if (w->n_rows > 256 && done > 0.02 && done < 1.0)
            more = (int64_t)((double)n * (1.1 / done - 1.0)) + 1;
    }
    return oj_answers_reserve(w->answers, more, err);
}

/* Places of a point in a polygon, bits 1 << enum oj_location, in which the
 * polygon is a pair with the point; 0: that is not how the join is decided. */
static unsigned places_of_points(enum oj_op op)
{
    switch (op)
    {
        case OJ_OP_COVERS:
            return oj_point_locations(OJ_OP_COVEREDBY);
        case OJ_OP_CONTAINS:
        case OJ_OP_CONTAINS_PROPERLY:
            return oj_point_locations(OJ_OP_WITHIN);
        case OJ_OP_INTERSECTS:
        case OJ_OP_TOUCHES:
            return oj_point_locations(op);
        default:
            return 0;
    }
}

/* One point in the place at, and a polygon.  Of one that is not nice a ring may
 * be in the interior, too. */
static oj_status take_point(const struct predicate_batch *b,
                            struct predicate_worker *w,
                            const struct oj_shape *shape, int64_t at,
                            unsigned places, int *holds, struct oj_error *err)
{
    const struct oj_ordered_point *p = &b->index->side.points.point[at];
    enum oj_location location = oj_shape_locate(shape, p->x, p->y);
    int is_nice = !shape->may_overlap;
    *holds = (int)(places >> location & 1);
    if (location == OJ_OUTSIDE && is_nice)
        return OJ_OK;
    if (shape->may_overlap || (location == OJ_ON_BOUNDARY &&
                               *holds != (int)(places >> OJ_INSIDE & 1)))
        OJ_TRY(row_is_nice(w, shape, &is_nice, err));
    return is_nice ? OJ_OK : ask(b, w, shape, at, holds, err);
}

/* The pairs of the row among what was found, whose boxes pass. */
static oj_status take_found(const struct predicate_batch *b,
                            struct predicate_worker *w, int64_t row,
                            const struct oj_shape *shape, struct oj_error *err)
{
    const struct oj_shape_side *side = &b->index->side;
    /* single points, of which there can be very many */
    unsigned places = side->shape == NULL && shape->kinds == OJ_PART_POLYGON
                          ? places_of_points(b->index->relation.op)
                          : 0;
    for (int64_t i = 0; i < w->found.n; i++)
    {
        int32_t at = w->found.at[i];
        int32_t feature = oj_side_feature(side, at);
        int holds;
        if (!oj_pair_may_count(&b->filter, row, feature))
            continue;
        OJ_TRY(look_up(&b->index->options, w, err));
        w->n_asked++;
        if (places != 0)
            OJ_TRY(take_point(b, w, shape, at, places, &holds, err));
        else
            OJ_TRY(ask(b, w, shape, at, &holds, err));
        if (!holds)
            continue;
        OJ_TRY(reserve_pair(b, w, err));
        oj_answers_put(w->answers, (int32_t)row, feature, NAN);
    }
    return OJ_OK;
}

/* Disjoint: all features but those that the row does not hold with; only those
 * found can be among these. */
static oj_status take_others(const struct predicate_batch *b,
                             struct predicate_worker *w, int64_t row,
                             const struct oj_shape *shape, struct oj_error *err)
{
    const struct oj_shape_side *side = &b->index->side;
    oj_status status = OJ_OK;
    for (int64_t i = 0; i < w->found.n && status == OJ_OK; i++)
    {
        int32_t at = w->found.at[i];
        int32_t feature = oj_side_feature(side, at);
        int holds = 0;
        if (!oj_pair_may_count(&b->filter, row, feature))
            continue;
        status = look_up(&b->index->options, w, err);
        if (status == OJ_OK)
            status = ask(b, w, shape, at, &holds, err);
        w->n_asked++;
        w->is_met[feature] = !holds;
    }
    for (int64_t at = 0; at < side->n && status == OJ_OK; at++)
    {
        int32_t feature = oj_side_feature(side, at);
        if (w->is_met[feature] || !oj_pair_may_count(&b->filter, row, feature))
            continue;
        status = reserve_pair(b, w, err);
        if (status == OJ_OK)
            oj_answers_put(w->answers, (int32_t)row, feature, NAN);
        if (status == OJ_OK && at % 65536 == 65535)
            status = oj_check_cancel(b->index->options.cancel, err);
    }
    for (int64_t i = 0; i < w->found.n; i++)
        w->is_met[oj_side_feature(side, w->found.at[i])] = 0;
    return status;
}

static oj_status find_all(const struct oj_shape_side *side,
                          struct oj_found *found, struct oj_error *err)
{
    OJ_ROOM(found->at, 0, side->n, found->capacity, err);
    for (int64_t i = 0; i < side->n; i++)
        found->at[i] = (int32_t)i;
    found->n = side->n;
    return OJ_OK;
}

/* Rows that meet fewer features than this are not worth cells, nor are those of
 * few vertices that meet fewer than so many. */
#define FOUND_FOR_CELLS 8
#define FOUND_FOR_FEW_VERTICES 256

/* Members, where its parts are of different kinds, and cells. */
static oj_status prepare_row(struct predicate_worker *w, struct oj_shape *shape,
                             struct oj_error *err)
{
    w->row_niceness = OJ_NICENESS_NOT_KNOWN;
    if (oj_shape_is_mixed(shape))
    {
        OJ_ROOM(w->member, 0, shape->n_parts, w->cap_members, err);
        oj_shape_set_members(shape, w->member);
        return OJ_OK;
    }
    if (w->found.n < FOUND_FOR_CELLS ||
        !oj_shape_takes_cells(shape, w->found.n < FOUND_FOR_FEW_VERTICES
                                         ? OJ_CELLS_VERTICES
                                         : OJ_CELLS_FEW_VERTICES))
        return OJ_OK;
    OJ_TRY(oj_shape_make_cells(shape, &w->cells, err));
    shape->cells = &w->cells;
    return OJ_OK;
}

/* Puts the pairs of a row into the worker's answers. */
static oj_status join_row(const struct predicate_batch *b,
                          struct predicate_worker *w, int64_t row,
                          struct oj_error *err)
{
    struct predicate_index *index = b->index;
    struct oj_shape shape = oj_shape_of(b->input, row);
    w->n_rows++;
    if (index->rule.takes_all)
        OJ_TRY(find_all(&index->side, &w->found, err));
    else
        OJ_TRY(oj_side_find(&index->side, (enum oj_box_test)index->rule.test,
                            &shape.box, &w->found, err));
    if (w->found.n > 0)
        OJ_TRY(prepare_row(w, &shape, err));
    if (index->relation.op == OJ_OP_DISJOINT)
        return take_others(b, w, row, &shape, err);
    return take_found(b, w, row, &shape, err);
}

/* --- pairs that a screen has found ---------------------------------------- */

/* 1 when a pair of which said is known has to be decided. */
static int is_open(const struct predicate_index *index, uint8_t said)
{
    enum oj_op op = index->relation.op;
    if (said == OJ_SAID_MEETS)
        return op != OJ_OP_INTERSECTS && op != OJ_OP_DISJOINT &&
               op != OJ_OP_BBOX;
    return said != OJ_SAID_APART;
}

/* The screen's word on a pair without contact of edges is that of cpu_meet.c
 * where polygons of several rings are nice. */
static oj_status take_if_nice(const struct predicate_batch *b,
                              struct predicate_worker *w,
                              const struct oj_shape *shape, int32_t feature,
                              int meets, int *holds, struct oj_error *err)
{
    struct oj_shape other = oj_shape_of(b->index->join_side, feature);
    int is_sure = 1;
    OJ_TRY(look_up(&b->index->options, w, err));
    w->n_asked++;
    if (oj_shape_is_many_rings(&other))
        OJ_TRY(feature_is_nice(b, w, feature, &other, &is_sure, err));
    if (is_sure && oj_shape_is_many_rings(shape))
        OJ_TRY(row_is_nice(w, shape, &is_sure, err));
    if (!is_sure)
        return relate(b, w, shape, feature, &other, holds, err);
    *holds = meets == (b->index->relation.op != OJ_OP_DISJOINT);
    return OJ_OK;
}

/* 1 when no more is asked of a pair than whether features are nice. */
static int is_about_niceness(const struct predicate_index *index, uint8_t said)
{
    enum oj_op op = index->relation.op;
    return said == OJ_SAID_APART_IF_VALID ||
           (said == OJ_SAID_MEETS_IF_VALID &&
            (op == OJ_OP_INTERSECTS || op == OJ_OP_DISJOINT));
}

/* 1 when that takes the side, with place_of. */
static int asks_shapes(const struct predicate_index *index, uint8_t said)
{
    return is_open(index, said) && !is_about_niceness(index, said);
}

/* Decides what a screen left open of the n pairs of a row: said becomes
 * OJ_SAID_MEETS for pairs and OJ_SAID_APART for others; for disjoint, whose
 * pairs are the others, the other way round. */
static oj_status decide_open(const struct predicate_batch *b,
                             struct predicate_worker *w, int64_t row, int64_t n,
                             const int32_t *feature, uint8_t *said,
                             struct oj_error *err)
{
    const struct predicate_index *index = b->index;
    int is_disjoint = index->relation.op == OJ_OP_DISJOINT;
    struct oj_shape shape = oj_shape_of(b->input, row);
    w->n_rows++;
    w->found.n = 0; /* how many there are tells whether cells pay */
    for (int64_t i = 0; i < n; i++)
        w->found.n += asks_shapes(index, said[i]);
    OJ_TRY(prepare_row(w, &shape, err));
    for (int64_t i = 0; i < n; i++)
    {
        int holds;
        if (!is_open(index, said[i]))
            continue;
        if (is_about_niceness(index, said[i]))
            OJ_TRY(take_if_nice(b, w, &shape, feature[i],
                                said[i] == OJ_SAID_MEETS_IF_VALID, &holds,
                                err));
        else
        {
            OJ_TRY(look_up(&index->options, w, err));
            w->n_asked++;
            OJ_TRY(ask(b, w, &shape, index->place_of[feature[i]], &holds, err));
        }
        said[i] = holds != is_disjoint ? OJ_SAID_MEETS : OJ_SAID_APART;
    }
    return OJ_OK;
}

/* --- a batch of pairs that a screen has found ----------------------------- */

/* Decided in place, counted, and filled in: a screen has millions of pairs that
 * are decided already, and lists of answers would be copied once more. */
struct screened_batch
{
    const struct predicate_batch *rows;
    struct oj_screen_pairs *pairs;
    struct oj_matches *out;
    int64_t *count;             /* [tasks] pairs, then their place */
    int64_t *n_matched;         /* [tasks] rows with a pair */
    atomic_int has_open;        /* pairs to decide */
    atomic_int asks_shapes;     /* some of them take the side */
    int64_t n_present;          /* disjoint: join features that have parts */
    struct oj_row_order *order; /* [threads] */
};

void oj_screen_pairs_free(struct oj_screen_pairs *pairs)
{
    oj_free(pairs->offset);
    oj_free(pairs->feature);
    oj_free(pairs->said);
    memset(pairs, 0, sizeof *pairs);
}

static int64_t last_row(const struct screened_batch *b, int64_t task)
{
    int64_t end = (task + 1) * SCREENED_PER_TASK;
    return end < b->pairs->n_rows ? end : b->pairs->n_rows;
}

/* --- what is left --------------------------------------------------------- */

/* Pairs that may not count are none; are there others that are open? */
static void look_through(int64_t first, int64_t end, void *user)
{
    struct screened_batch *b = user;
    const struct predicate_index *index = b->rows->index;
    const struct oj_pair_filter *filter = &b->rows->filter;
    const struct oj_screen_pairs *pairs = b->pairs;
    int open = 0, shapes = 0;
    for (int64_t row = first; row < end; row++)
    {
        for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
        {
            if (!oj_pair_may_count(filter, row, pairs->feature[i]))
                pairs->said[i] = OJ_SAID_APART;
            open |= is_open(index, pairs->said[i]);
            shapes |= asks_shapes(index, pairs->said[i]);
        }
    }
    if (shapes)
        atomic_store_explicit(&b->asks_shapes, 1, memory_order_relaxed);
    if (open)
        atomic_store_explicit(&b->has_open, 1, memory_order_relaxed);
}

static oj_status decide_row(int64_t row, int thread, void *user,
                            struct oj_error *err)
{
    struct screened_batch *b = user;
    struct predicate_index *index = b->rows->index;
    const struct oj_screen_pairs *pairs = b->pairs;
    int64_t first = pairs->offset[row], n = pairs->offset[row + 1] - first;
    int open = 0;
    for (int64_t i = first; i < first + n; i++)
        open |= is_open(index, pairs->said[i]);
    if (!open)
        return OJ_OK;
    OJ_TRY(oj_check_cancel(index->options.cancel, err));
    return decide_open(b->rows, &index->worker[thread], row, n,
                       pairs->feature + first, pairs->said + first, err);
}

static oj_status find_places(struct predicate_index *index,
                             struct oj_error *err)
{
    OJ_TRY(want_side(index, err));
    if (index->place_of != NULL)
        return OJ_OK;
    OJ_NEW(index->place_of, index->join_side->n_features, err);
    for (int64_t at = 0; at < index->side.n; at++)
        index->place_of[oj_side_feature(&index->side, at)] = (int32_t)at;
    return OJ_OK;
}

/* --- the pairs in order --------------------------------------------------- */

static int has_parts(const struct oj_flat *flat, int64_t feature)
{
    return flat->part_offset[feature] < flat->part_offset[feature + 1];
}

static int64_t n_met(const struct oj_screen_pairs *pairs, int64_t row)
{
    int64_t n = 0;
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
        n += pairs->said[i] == OJ_SAID_MEETS;
    return n;
}

/* Puts the features that row is disjoint with to out, or only counts them where
 * out is NULL.  is_met [features] is 0, and stays so. */
static int64_t list_disjoint(const struct screened_batch *b, int64_t row,
                             uint8_t *is_met, int32_t *out)
{
    const struct oj_screen_pairs *pairs = b->pairs;
    const struct oj_flat *join_side = b->rows->index->join_side;
    int64_t n = 0;
    if (!has_parts(b->rows->input, row))
        return 0;
    if (out == NULL && !b->rows->filter.is_needed)
        return b->n_present - n_met(pairs, row);
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
        is_met[pairs->feature[i]] = pairs->said[i] == OJ_SAID_MEETS;
    for (int64_t f = 0; f < join_side->n_features; f++)
    {
        if (is_met[f] || !has_parts(join_side, f) ||
            !oj_pair_may_count(&b->rows->filter, row, f))
            continue;
        if (out != NULL)
            out[n] = (int32_t)f;
        n++;
    }
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
        is_met[pairs->feature[i]] = 0;
    return n;
}

/* The features that row meets. */
static int64_t list_met(const struct screened_batch *b, int64_t row,
                        int32_t *out)
{
    const struct oj_screen_pairs *pairs = b->pairs;
    int64_t n = 0;
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
    {
        if (pairs->said[i] == OJ_SAID_MEETS)
            out[n++] = pairs->feature[i];
    }
    return n;
}

static void count_task(int64_t task, int thread, void *user)
{
    struct screened_batch *b = user;
    const struct predicate_index *index = b->rows->index;
    int64_t n = 0, n_matched = 0;
    for (int64_t row = task * SCREENED_PER_TASK; row < last_row(b, task); row++)
    {
        int64_t n_row =
            index->relation.op == OJ_OP_DISJOINT
                ? list_disjoint(b, row, index->worker[thread].is_met, NULL)
                : n_met(b->pairs, row);
        n += n_row;
        n_matched += n_row > 0;
    }
    b->count[task] = n;
    b->n_matched[task] = n_matched;
}

static oj_status fill_task(int64_t task, int thread, void *user,
                           struct oj_error *err)
{
    struct screened_batch *b = user;
    const struct predicate_index *index = b->rows->index;
    struct oj_matches *out = b->out;
    int64_t at = b->count[task];
    OJ_TRY(oj_check_cancel(index->options.cancel, err));
    for (int64_t row = task * SCREENED_PER_TASK; row < last_row(b, task); row++)
    {
        int32_t *feature = out->join_row + at;
        int64_t n;
        out->offset[row] = at;
        if (index->relation.op == OJ_OP_DISJOINT)
        {
            OJ_TRY(oj_check_cancel(index->options.cancel, err));
            n = list_disjoint(b, row, index->worker[thread].is_met, feature);
        }
        else
            n = list_met(b, row, feature);
        for (int64_t i = at; i < at + n; i++)
            out->measure[i] = NAN;
        at += n;
        if (!index->relation.any_order)
            OJ_TRY(oj_row_order_sort(&b->order[thread], n, index->tie_rank,
                                     feature, NULL, err));
    }
    return OJ_OK;
}

static oj_status put_in_order(struct screened_batch *b, int64_t n_tasks,
                              struct oj_error *err)
{
    const struct predicate_index *index = b->rows->index;
    int n_threads = index->options.n_threads;
    int64_t n_rows = b->pairs->n_rows, n = 0, n_matched = 0;
    int64_t most = index->options.max_batch_pairs;
    oj_parallel_for(n_threads, n_tasks, count_task, b);
    for (int64_t task = 0; task < n_tasks; task++)
    {
        int64_t count = b->count[task];
        b->count[task] = n;
        n += count;
        n_matched += b->n_matched[task];
    }
    if (most > 0 && n_rows > 1 && n > most)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    OJ_TRY(oj_matches_reserve(b->out, n_rows, n, 1, err));
    OJ_TRY(oj_parallel_try(n_threads, n_tasks, 1, fill_task, b, err));
    b->out->offset[n_rows] = b->out->n_pairs = n;
    b->out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status join_screened(struct screened_batch *b, struct oj_error *err)
{
    struct predicate_index *index = b->rows->index;
    int n_threads = index->options.n_threads;
    int64_t n_rows = b->pairs->n_rows;
    int64_t n_tasks = (n_rows + SCREENED_PER_TASK - 1) / SCREENED_PER_TASK;
    OJ_NEW(b->count, n_tasks, err);
    OJ_NEW(b->n_matched, n_tasks, err);
    OJ_NEW_ZEROED(b->order, n_threads, err);
    oj_parallel_slices(n_threads, n_rows, SCREENED_PER_TASK, look_through, b);
    if (atomic_load(&b->asks_shapes))
        OJ_TRY(find_places(index, err));
    if (atomic_load(&b->has_open))
        OJ_TRY(oj_parallel_try(n_threads, n_rows, OPEN_PER_TASK, decide_row, b,
                               err));
    for (int64_t f = 0; index->relation.op == OJ_OP_DISJOINT &&
                        f < index->join_side->n_features;
         f++)
        b->n_present += has_parts(index->join_side, f);
    return put_in_order(b, n_tasks, err);
}

/* The pairs of a batch from the candidates in index->screened. */
static oj_status screened_to_matches(const struct predicate_batch *rows,
                                     struct oj_matches *out,
                                     struct oj_error *err)
{
    struct screened_batch b;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.rows = rows;
    b.pairs = &rows->index->screened;
    b.out = out;
    atomic_init(&b.has_open, 0);
    atomic_init(&b.asks_shapes, 0);
    status = join_screened(&b, err);
    oj_free(b.count);
    oj_free(b.n_matched);
    for (int t = 0; b.order != NULL && t < rows->index->options.n_threads; t++)
        oj_row_order_free(&b.order[t]);
    oj_free(b.order);
    return status;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status take_row(int64_t i, int thread, void *user,
                          struct oj_error *err)
{
    struct predicate_batch *b = user;
    struct predicate_index *index = b->index;
    OJ_TRY(oj_check_cancel(index->options.cancel, err));
    return join_row(b, &index->worker[thread], b->order.point[i].index, err);
}

#define ROWS_TO_PLACE 4096

/* A feature's first vertex is near enough to order by, and all that is read of
 * it. */
static void set_places(int64_t first, int64_t end, void *user)
{
    struct predicate_batch *b = user;
    const struct oj_flat *flat = b->input;
    for (int64_t f = first; f < end; f++)
    {
        int64_t part = flat->part_offset[f], v;
        b->x[f] = b->y[f] = NAN;
        if (part == flat->part_offset[f + 1])
            continue;
        v = flat->vertex_offset[flat->ring_offset[part]];
        b->x[f] = flat->x[v];
        b->y[f] = flat->y[v];
    }
}

static oj_status sort_rows(struct predicate_batch *b, int n_threads,
                           struct oj_error *err)
{
    int64_t n = b->input->n_features;
    const double *x = b->input->x, *y = b->input->y;
    if (!oj_flat_is_points(b->input))
    {
        OJ_NEW(b->x, n, err);
        OJ_NEW(b->y, n, err);
        oj_parallel_slices(n_threads, n, ROWS_TO_PLACE, set_places, b);
        x = b->x;
        y = b->y;
    }
    OJ_TRY(oj_order_build(&b->order, n_threads, n, x, y, err));
    return oj_order_sort(&b->order, n_threads, NULL, NULL, err);
}

static oj_status prepare_workers(const struct predicate_batch *b, int n_threads,
                                 struct oj_error *err)
{
    struct predicate_index *index = b->index;
    for (int t = 0; t < n_threads; t++)
    {
        struct predicate_worker *w = &index->worker[t];
        oj_answers_start(w->answers, index->options.max_batch_pairs,
                         b->input->n_features, n_threads);
        w->n_asked = w->n_rows = 0;
        oj_relate_forget(&w->relate);
        if (index->relation.op == OJ_OP_DISJOINT && w->is_met == NULL)
        {
            int64_t n = index->join_side->n_features;
            OJ_NEW_ZEROED(w->is_met, n, err);
        }
    }
    return OJ_OK;
}

static oj_status take_all(struct predicate_batch *b, int n_threads,
                          struct oj_matches *out, struct oj_error *err)
{
    OJ_TRY(oj_parallel_try(n_threads, b->order.n_points, ROWS_PER_TASK,
                           take_row, b, err));
    return oj_answers_to_matches(b->index->answers, n_threads,
                                 b->input->n_features, &b->index->relation,
                                 b->index->tie_rank, out, err);
}

/* Candidates from somebody else, if there is somebody who has them. */
static oj_status screen(const struct predicate_batch *b, int *is_screened,
                        struct oj_stats *stats, struct oj_error *err)
{
    struct predicate_index *index = b->index;
    const struct oj_screen *screen = index->options.screen;
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    *is_screened = 0;
    if (screen == NULL || !index->takes_screen ||
        oj_flat_is_points(index->join_side) || oj_flat_is_points(b->input) ||
        !screen->takes(screen->self, b->input))
        return OJ_OK;
    status =
        screen->find(screen->self, b->input, index->options.max_batch_pairs,
                     &index->screened, stats, &why);
    if (status == OJ_ERR_TOO_MANY_PAIRS || status == OJ_ERR_CANCELLED)
        return oj_fail(err, status, "%s", why.message);
    *is_screened = status == OJ_OK;
    return OJ_OK;
}

static oj_status run_batch(struct predicate_batch *b, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    struct predicate_index *index = b->index;
    int n_threads = index->options.n_threads;
    double start, sorted;
    int is_screened;
    OJ_TRY(oj_pair_filter_make(&index->relation, b->input, index->join_side,
                               &b->filter, err));
    OJ_TRY(prepare_workers(b, n_threads, err));
    OJ_TRY(screen(b, &is_screened, stats, err));
    start = oj_clock_seconds();
    if (!is_screened)
    {
        OJ_TRY(want_side(index, err));
        OJ_TRY(sort_rows(b, n_threads, err));
    }
    sorted = oj_clock_seconds();
    if (is_screened)
        OJ_TRY(screened_to_matches(b, out, err));
    else
        OJ_TRY(take_all(b, n_threads, out, err));
    for (int t = 0; t < n_threads; t++)
        stats->n_candidates += index->worker[t].n_asked;
    stats->sort_s += sorted - start;
    stats->refine_s += oj_clock_seconds() - sorted;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct predicate_index *index = (void *)wrapped;
    struct predicate_batch b;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.index = index;
    b.input = input;
    status = run_batch(&b, out, stats, err);
    oj_free(b.x);
    oj_free(b.y);
    oj_order_free(&b.order);
    return status;
}

/* --- the join side -------------------------------------------------------- */

static void free_index(struct oj_index *wrapped)
{
    struct predicate_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    for (int t = 0; index->worker != NULL && t < index->options.n_threads; t++)
    {
        struct predicate_worker *w = &index->worker[t];
        oj_relate_scratch_free(&w->relate);
        oj_figure_free(&w->figure);
        oj_free(w->found.at);
        oj_free(w->member);
        oj_edge_grid_free(&w->cells);
        oj_free(w->is_met);
        if (w->answers != NULL)
            oj_answers_free(w->answers);
    }
    oj_free(index->worker);
    oj_free(index->answers);
    oj_free((void *)index->niceness);
    oj_free(index->place_of);
    oj_screen_pairs_free(&index->screened);
    oj_side_free(&index->side);
    oj_free(index);
}

/* With a screen the side may never be needed. */
static oj_status fill_index(struct predicate_index *index, struct oj_error *err)
{
    int64_t n = index->join_side->n_features;
    int n_threads = index->options.n_threads;
    OJ_NEW_ZEROED(index->worker, n_threads, err);
    OJ_NEW_ZEROED(index->answers, n_threads, err);
    for (int t = 0; t < n_threads; t++)
        index->worker[t].answers = &index->answers[t];
    OJ_NEW_ZEROED(index->niceness, n, err);
    return index->options.screen == NULL ? want_side(index, err) : OJ_OK;
}

static oj_status make_index(const struct oj_index_args *args,
                            struct oj_index **out, struct oj_stats *stats,
                            struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct predicate_index *index = oj_calloc(1, sizeof *index);
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->join_side = args->join_side;
    index->tie_rank = args->tie_rank;
    index->relation = args->relation;
    index->options = args->options;
    index->takes_screen = oj_screen_rule_of(&args->relation, &index->rule);
    status = fill_index(index, err);
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    stats->index_bytes += oj_side_bytes(&index->side);
    stats->index_s += oj_clock_seconds() - start;
    *out = (void *)index;
    return OJ_OK;
}

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return relation->op != OJ_OP_NEAREST && relation->op != OJ_OP_DWITHIN;
}

const struct oj_engine oj_cpu_predicate = {"predicates", takes, make_index,
                                           join, free_index};
