#include "cpu_predicate.h"

#include "../../flatten/base/oj_array.h"
#include "../kernels/oj_said.h"
#include "../shapes/cpu_meet.h"

/* Pairs asked between two looks at the cancel flag; before every matrix, which
 * may take long, there is one. */
#define PAIRS_PER_LOOK 256

static oj_status look_up(const struct oj_options *options,
                         struct oj_predicate_worker *w, struct oj_error *err)
{
    if (--w->n_to_look > 0)
        return OJ_OK;
    w->n_to_look = PAIRS_PER_LOOK;
    return oj_check_cancel(options->cancel, err);
}

/* --- one pair ------------------------------------------------------------- */

static oj_status know_niceness(struct oj_predicate_worker *w,
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
static oj_status feature_is_nice(const struct oj_predicate_rows *b,
                                 struct oj_predicate_worker *w, int32_t feature,
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

static oj_status row_is_nice(struct oj_predicate_worker *w,
                             const struct oj_shape *shape, int *yes,
                             struct oj_error *err)
{
    OJ_TRY(know_niceness(w, shape, &w->row_niceness, err));
    *yes = w->row_niceness == OJ_NICE;
    return OJ_OK;
}

static oj_status relate(const struct oj_predicate_rows *b,
                        struct oj_predicate_worker *w,
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

static oj_status ask(const struct oj_predicate_rows *b,
                     struct oj_predicate_worker *w,
                     const struct oj_shape *shape, int64_t at, int *holds,
                     struct oj_error *err)
{
    struct oj_shape_side *side = &b->index->side;
    int32_t feature = oj_side_feature(side, at);
    struct oj_shape point;
    const struct oj_shape *other = &point;
    enum oj_verdict verdict;
    unsigned needs = 0;
    int is_sure;
    if (side->shape != NULL)
    {
        OJ_TRY(oj_side_want_cells(
            side, at, shape->cells == NULL ? shape->n_vertices : 0, err));
        other = &side->shape[at];
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
static oj_status reserve_pair(const struct oj_predicate_rows *b,
                              struct oj_predicate_worker *w,
                              struct oj_error *err)
{
    int64_t n = w->answers.n_entries, more = 1;
    if (w->answers.max_entries <= 0)
    {
        double done =
            (double)(w->n_rows + 1) / ((double)b->input->n_features /
                                       (double)b->index->options.n_threads);
        if (n < w->answers.cap_distance)
            return OJ_OK;
        if (w->n_rows > 256 && done > 0.02 && done < 1.0)
            more = (int64_t)((double)n * (1.1 / done - 1.0)) + 1;
    }
    return oj_answers_reserve(&w->answers, more, err);
}

/* 1 when points in these places of a polygon are pairs; 0 when that is not how
 * the join is decided. */
static int is_decided_by_place(enum oj_op op, int *when_inside, int *when_on)
{
    *when_inside = op == OJ_OP_INTERSECTS || op == OJ_OP_COVERS ||
                   op == OJ_OP_CONTAINS || op == OJ_OP_CONTAINS_PROPERLY;
    *when_on =
        op == OJ_OP_INTERSECTS || op == OJ_OP_COVERS || op == OJ_OP_TOUCHES;
    return *when_inside || *when_on;
}

/* One point in the place at.  Of a polygon that is not nice a ring may be in
 * the interior, too. */
static oj_status take_point(const struct oj_predicate_rows *b,
                            struct oj_predicate_worker *w,
                            const struct oj_shape *shape, int64_t at,
                            int when_inside, int when_on, int *holds,
                            struct oj_error *err)
{
    const struct oj_ordered_point *p = &b->index->side.points.point[at];
    enum oj_location location = oj_shape_locate(shape, p->x, p->y);
    int is_nice = !shape->may_overlap;
    if (location == OJ_OUTSIDE && is_nice)
    {
        *holds = 0;
        return OJ_OK;
    }
    if (shape->may_overlap ||
        (location == OJ_ON_BOUNDARY && when_inside != when_on))
        OJ_TRY(row_is_nice(w, shape, &is_nice, err));
    if (!is_nice)
        return ask(b, w, shape, at, holds, err);
    *holds = location == OJ_INSIDE ? when_inside
                                   : location == OJ_ON_BOUNDARY && when_on;
    return OJ_OK;
}

/* A polygon, and single points as join side: there can be very many. */
static oj_status take_points(const struct oj_predicate_rows *b,
                             struct oj_predicate_worker *w, int64_t row,
                             const struct oj_shape *shape, int when_inside,
                             int when_on, struct oj_error *err)
{
    const struct oj_ordered_point *point = b->index->side.points.point;
    for (int64_t i = 0; i < w->found.n; i++)
    {
        const struct oj_ordered_point *p = &point[w->found.at[i]];
        int holds;
        if (!oj_pair_may_count(&b->filter, row, p->index))
            continue;
        OJ_TRY(look_up(&b->index->options, w, err));
        w->n_asked++;
        OJ_TRY(take_point(b, w, shape, w->found.at[i], when_inside, when_on,
                          &holds, err));
        if (!holds)
            continue;
        OJ_TRY(reserve_pair(b, w, err));
        oj_answers_put(&w->answers, (int32_t)row, (int32_t)p->index, NAN);
    }
    return OJ_OK;
}

/* One pair, whose boxes pass. */
static oj_status take_pair(const struct oj_predicate_rows *b,
                           struct oj_predicate_worker *w,
                           const struct oj_shape *shape, int64_t at, int *holds,
                           struct oj_error *err)
{
    OJ_TRY(look_up(&b->index->options, w, err));
    w->n_asked++;
    *holds = 1;
    return b->index->rule.is_enough ? OJ_OK : ask(b, w, shape, at, holds, err);
}

/* The pairs of the row among what was found. */
static oj_status take_found(const struct oj_predicate_rows *b,
                            struct oj_predicate_worker *w, int64_t row,
                            const struct oj_shape *shape, struct oj_error *err)
{
    const struct oj_shape_side *side = &b->index->side;
    int when_inside, when_on;
    if (side->shape == NULL && shape->kinds == OJ_PART_POLYGON &&
        is_decided_by_place(b->index->relation.op, &when_inside, &when_on))
        return take_points(b, w, row, shape, when_inside, when_on, err);
    for (int64_t i = 0; i < w->found.n; i++)
    {
        int32_t at = w->found.at[i];
        int32_t feature = oj_side_feature(side, at);
        int holds;
        if (!oj_pair_may_count(&b->filter, row, feature))
            continue;
        OJ_TRY(take_pair(b, w, shape, at, &holds, err));
        if (!holds)
            continue;
        OJ_TRY(reserve_pair(b, w, err));
        oj_answers_put(&w->answers, (int32_t)row, feature, NAN);
    }
    return OJ_OK;
}

/* Disjoint: all features but those that the row does not hold with; only those
 * found can be among these. */
static oj_status take_others(const struct oj_predicate_rows *b,
                             struct oj_predicate_worker *w, int64_t row,
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
            oj_answers_put(&w->answers, (int32_t)row, feature, NAN);
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
    OJ_TRY(oj_reserve(&found->at, 0, side->n, &found->capacity,
                      sizeof *found->at, err));
    for (int64_t i = 0; i < side->n; i++)
        found->at[i] = (int32_t)i;
    found->n = side->n;
    return OJ_OK;
}

/* Rows that meet fewer features than this are not worth cells. */
#define FOUND_FOR_CELLS 8

/* Members, where its parts are of different kinds, and cells. */
static oj_status prepare_row(struct oj_predicate_worker *w,
                             struct oj_shape *shape, struct oj_error *err)
{
    w->row_niceness = OJ_NICENESS_NOT_KNOWN;
    if (oj_shape_is_mixed(shape))
    {
        OJ_TRY(oj_reserve(&w->member, 0, shape->n_parts, &w->cap_members,
                          sizeof *w->member, err));
        oj_shape_set_members(shape, w->member);
        return OJ_OK;
    }
    if (w->found.n < FOUND_FOR_CELLS || !oj_shape_takes_cells(shape))
        return OJ_OK;
    OJ_TRY(oj_shape_make_cells(shape, &w->cells, err));
    shape->cells = &w->cells;
    return OJ_OK;
}

oj_status oj_predicate_row(const struct oj_predicate_rows *b,
                           struct oj_predicate_worker *w, int64_t row,
                           struct oj_error *err)
{
    struct oj_predicate_index *index = b->index;
    struct oj_shape shape = oj_shape_of(b->input, row);
    w->n_rows++;
    if (index->rule.takes_all)
        OJ_TRY(find_all(&index->side, &w->found, err));
    else
        OJ_TRY(oj_side_find(&index->side, index->rule.test, &shape.box,
                            &w->found, err));
    if (w->found.n > 0)
        OJ_TRY(prepare_row(w, &shape, err));
    if (index->relation.op == OJ_OP_DISJOINT)
        return take_others(b, w, row, &shape, err);
    return take_found(b, w, row, &shape, err);
}

/* --- pairs that a screen has found ---------------------------------------- */

int oj_predicate_is_open(const struct oj_predicate_index *index, uint8_t said)
{
    enum oj_op op = index->relation.op;
    if (said == OJ_SAID_MEETS)
        return op != OJ_OP_INTERSECTS && op != OJ_OP_DISJOINT &&
               op != OJ_OP_BBOX;
    return said != OJ_SAID_APART;
}

static int is_many_rings(const struct oj_shape *shape)
{
    return shape->kinds == OJ_PART_POLYGON && shape->n_rings > 1;
}

/* The screen's word on a pair without contact of edges is that of cpu_meet.c
 * where polygons of several rings are nice. */
static oj_status take_if_nice(const struct oj_predicate_rows *b,
                              struct oj_predicate_worker *w,
                              const struct oj_shape *shape, int32_t feature,
                              int meets, int *holds, struct oj_error *err)
{
    struct oj_shape other = oj_shape_of(b->index->join_side, feature);
    int is_sure = 1;
    OJ_TRY(look_up(&b->index->options, w, err));
    w->n_asked++;
    if (is_many_rings(&other))
        OJ_TRY(feature_is_nice(b, w, feature, &other, &is_sure, err));
    if (is_sure && is_many_rings(shape))
        OJ_TRY(row_is_nice(w, shape, &is_sure, err));
    if (!is_sure)
        return relate(b, w, shape, feature, &other, holds, err);
    *holds = meets == (b->index->relation.op != OJ_OP_DISJOINT);
    return OJ_OK;
}

/* 1 when no more is asked of a pair than whether features are nice. */
static int is_about_niceness(const struct oj_predicate_index *index,
                             uint8_t said)
{
    enum oj_op op = index->relation.op;
    return said == OJ_SAID_APART_IF_VALID ||
           (said == OJ_SAID_MEETS_IF_VALID &&
            (op == OJ_OP_INTERSECTS || op == OJ_OP_DISJOINT));
}

int oj_predicate_asks_shapes(const struct oj_predicate_index *index,
                             uint8_t said)
{
    return oj_predicate_is_open(index, said) && !is_about_niceness(index, said);
}

oj_status oj_predicate_decide(const struct oj_predicate_rows *b,
                              struct oj_predicate_worker *w, int64_t row,
                              int64_t n, const int32_t *feature, uint8_t *said,
                              struct oj_error *err)
{
    const struct oj_predicate_index *index = b->index;
    int is_disjoint = index->relation.op == OJ_OP_DISJOINT;
    struct oj_shape shape = oj_shape_of(b->input, row);
    w->n_rows++;
    w->found.n = 0; /* how many there are tells whether cells pay */
    for (int64_t i = 0; i < n; i++)
        w->found.n += oj_predicate_asks_shapes(index, said[i]);
    OJ_TRY(prepare_row(w, &shape, err));
    for (int64_t i = 0; i < n; i++)
    {
        int holds;
        if (!oj_predicate_is_open(index, said[i]))
            continue;
        if (is_about_niceness(index, said[i]))
            OJ_TRY(take_if_nice(b, w, &shape, feature[i],
                                said[i] == OJ_SAID_MEETS_IF_VALID, &holds,
                                err));
        else
            OJ_TRY(take_pair(b, w, &shape, index->place_of[feature[i]], &holds,
                             err));
        said[i] = holds != is_disjoint ? OJ_SAID_MEETS : OJ_SAID_APART;
    }
    return OJ_OK;
}
