#include "cpu_predicate.h"

#include "../flatten/oj_array.h"
#include "cpu_meet.h"
#include "cpu_simple.h"
#include "kernels/oj_said.h"

#include <stdio.h>

/* Pairs asked between two looks at the cancel flag; before every question to
 * GEOS, which may take long over it, there is one. */
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

static oj_status open_geos(const struct oj_predicate_rows *b,
                           struct oj_predicate_worker *w, struct oj_error *err)
{
    const struct oj_index *index = b->index;
    if (w->geos == NULL)
        OJ_TRY(oj_geos_pairs_open(&index->relation, index->join_side, 1,
                                  &w->geos, err));
    if (w->geos_input != b->input)
        oj_geos_pairs_set_input(w->geos, b->input);
    w->geos_input = b->input;
    return OJ_OK;
}

static oj_status note_undecided(struct oj_predicate_worker *w, int64_t row,
                                int64_t feature, struct oj_error *err)
{
    struct oj_undecided *u = &w->undecided;
    u->n++;
    if (u->n == 1 || row < u->row || (row == u->row && feature < u->feature))
    {
        u->row = row;
        u->feature = feature;
        snprintf(u->text, sizeof u->text, "%s", oj_geos_pairs_message(w->geos));
    }
    return oj_answers_add_undecided(&w->answers, row, (int32_t)feature, err);
}

/* own: what our kernels say of a pair whose features need not be valid for that
 * (intersects, disjoint: even-odd over all rings); UNSURE where they say
 * nothing. */
static oj_status ask_geos(const struct oj_predicate_rows *b,
                          struct oj_predicate_worker *w, int64_t row,
                          int64_t feature, enum oj_verdict own, int *holds,
                          struct oj_error *err)
{
    enum oj_geos_verdict verdict;
    OJ_TRY(open_geos(b, w, err));
    w->n_to_look = 0; /* GEOS takes its time */
    verdict = oj_geos_pairs_hold(w->geos, row, feature);
    if (verdict == OJ_GEOS_OUT_OF_MEMORY)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory in GEOS");
    *holds = verdict == OJ_GEOS_YES;
    w->n_second_words += oj_geos_pairs_is_second_word(w->geos);
    if (verdict == OJ_GEOS_CANNOT_SAY && own != OJ_VERDICT_UNSURE)
        *holds = own == OJ_VERDICT_YES;
    else if (verdict == OJ_GEOS_CANNOT_SAY)
        return note_undecided(w, row, feature, err);
    return OJ_OK;
}

/* States of validity; what is not seen at once is asked of GEOS. */
enum
{
    NOT_KNOWN,
    INVALID,
    VALID
};

/* shape: of the feature, or NULL for a point. */
static oj_status feature_is_valid(const struct oj_predicate_rows *b,
                                  struct oj_predicate_worker *w,
                                  int32_t feature, const struct oj_shape *shape,
                                  int *yes, struct oj_error *err)
{
    _Atomic uint8_t *known = &b->index->validity[feature];
    uint8_t state = atomic_load_explicit(known, memory_order_relaxed);
    if (shape == NULL)
        state = VALID;
    if (state == NOT_KNOWN)
    {
        state = VALID;
        if (!oj_shape_is_surely_valid(shape))
        {
            enum oj_geos_verdict verdict;
            OJ_TRY(open_geos(b, w, err));
            verdict = oj_geos_pairs_feature_is_valid(w->geos, feature);
            if (verdict == OJ_GEOS_OUT_OF_MEMORY)
                return oj_fail(err, OJ_ERR_NOMEM, "out of memory in GEOS");
            state = verdict == OJ_GEOS_YES ? VALID : INVALID;
        }
        atomic_store_explicit(known, state, memory_order_relaxed);
    }
    *yes = state == VALID;
    return OJ_OK;
}

static oj_status row_is_valid(const struct oj_predicate_rows *b,
                              struct oj_predicate_worker *w, int64_t row,
                              const struct oj_shape *shape, int *yes,
                              struct oj_error *err)
{
    if (w->row_validity == NOT_KNOWN)
    {
        w->row_validity = VALID;
        if (!oj_shape_is_surely_valid(shape))
        {
            enum oj_geos_verdict verdict;
            OJ_TRY(open_geos(b, w, err));
            verdict = oj_geos_pairs_row_is_valid(w->geos, row);
            if (verdict == OJ_GEOS_OUT_OF_MEMORY)
                return oj_fail(err, OJ_ERR_NOMEM, "out of memory in GEOS");
            w->row_validity = verdict == OJ_GEOS_YES ? VALID : INVALID;
        }
    }
    *yes = w->row_validity == VALID;
    return OJ_OK;
}

/* What GEOS reads in its own way it is asked about, but for points, which are
 * located among all rings of a polygon. */
static int is_for_geos(const struct oj_side *side, const struct oj_shape *shape,
                       int64_t at)
{
    const struct oj_shape *other =
        side->shape != NULL ? &side->shape[at] : NULL;
    int other_is_odd = other != NULL && other->is_odd;
    unsigned a = shape->kinds;
    unsigned b = other != NULL ? other->kinds : (unsigned)OJ_PART_POINT;
    if (!shape->is_odd && !other_is_odd)
        return 0;
    return !(a == OJ_PART_POINT && b == OJ_PART_POLYGON) &&
           !(a == OJ_PART_POLYGON && b == OJ_PART_POINT);
}

static oj_status ask(const struct oj_predicate_rows *b,
                     struct oj_predicate_worker *w, int64_t row,
                     const struct oj_shape *shape, int64_t at, int *holds,
                     struct oj_error *err)
{
    struct oj_side *side = &b->index->side;
    enum oj_verdict verdict;
    unsigned needs = 0;
    int is_sure = 1;
    if (side->shape != NULL)
    {
        OJ_TRY(oj_side_want_cells(side, at,
                                  shape->cells == NULL ? shape->n_vertices : 0,
                                  &w->scratch, err));
        verdict =
            oj_verdict_of(&b->index->relation, shape, &side->shape[at], &needs);
    }
    else
    {
        struct oj_shape point = oj_side_point(side, at);
        verdict = oj_verdict_of(&b->index->relation, shape, &point, &needs);
    }
    if (verdict != OJ_VERDICT_UNSURE && (needs & OJ_NEEDS_VALID_B))
        OJ_TRY(feature_is_valid(b, w, oj_side_feature(side, at),
                                side->shape != NULL ? &side->shape[at] : NULL,
                                &is_sure, err));
    if (verdict != OJ_VERDICT_UNSURE && is_sure && (needs & OJ_NEEDS_VALID_A))
        OJ_TRY(row_is_valid(b, w, row, shape, &is_sure, err));
    if (is_for_geos(side, shape, at))
        is_sure = 0;
    if (verdict == OJ_VERDICT_UNSURE || !is_sure)
    {
        enum oj_op op = b->index->relation.op;
        if (op != OJ_OP_INTERSECTS && op != OJ_OP_DISJOINT)
            verdict = OJ_VERDICT_UNSURE;
        return ask_geos(b, w, row, oj_side_feature(side, at), verdict, holds,
                        err);
    }
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
        enum oj_location location;
        if (!oj_pair_may_count(&b->filter, row, p->index))
            continue;
        OJ_TRY(look_up(&b->index->options, w, err));
        location = oj_shape_locate(shape, p->x, p->y);
        w->n_asked++;
        if (!(location == OJ_INSIDE ? when_inside
                                    : location == OJ_ON_BOUNDARY && when_on))
            continue;
        OJ_TRY(reserve_pair(b, w, err));
        oj_answers_put(&w->answers, (int32_t)row, (int32_t)p->index, NAN);
    }
    return OJ_OK;
}

/* Intersects, as far as one of the two shapes sees from its cells that the box
 * of the other is inside or outside: most pairs.  Holds for polygons of one
 * ring that may be invalid, too (cpu_meet.c). */
static enum oj_location meet_by_cells(const struct oj_shape *a,
                                      const struct oj_shape *b)
{
    enum oj_location location = OJ_ON_BOUNDARY;
    if (a->cells != NULL && a->n_rings == 1)
        location = oj_shape_locate_box(a, &b->box);
    if (location == OJ_ON_BOUNDARY && b->cells != NULL && b->n_rings == 1)
        location = oj_shape_locate_box(b, &a->box);
    return location;
}

/* One pair, whose boxes pass. */
static oj_status take_pair(const struct oj_predicate_rows *b,
                           struct oj_predicate_worker *w, int64_t row,
                           const struct oj_shape *shape, int64_t at, int *holds,
                           struct oj_error *err)
{
    const struct oj_side *side = &b->index->side;
    enum oj_location location = OJ_ON_BOUNDARY;
    OJ_TRY(look_up(&b->index->options, w, err));
    w->n_asked++;
    if (b->index->relation.op == OJ_OP_INTERSECTS && side->shape != NULL &&
        !is_for_geos(side, shape, at))
        location = meet_by_cells(shape, &side->shape[at]);
    *holds = location != OJ_OUTSIDE;
    if (location == OJ_ON_BOUNDARY && !b->index->rule.is_enough)
        OJ_TRY(ask(b, w, row, shape, at, holds, err));
    return OJ_OK;
}

/* The pairs of the row among what was found. */
static oj_status take_found(const struct oj_predicate_rows *b,
                            struct oj_predicate_worker *w, int64_t row,
                            const struct oj_shape *shape, struct oj_error *err)
{
    const struct oj_side *side = &b->index->side;
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
        OJ_TRY(take_pair(b, w, row, shape, at, &holds, err));
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
    const struct oj_side *side = &b->index->side;
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
            status = ask(b, w, row, shape, at, &holds, err);
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

static oj_status find_all(const struct oj_side *side, struct oj_found *found,
                          struct oj_error *err)
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
    w->row_validity = NOT_KNOWN;
    if (oj_shape_is_mixed(shape))
    {
        OJ_TRY(oj_reserve(&w->member, 0, shape->n_parts, &w->cap_members,
                          sizeof *w->member, err));
        oj_shape_set_members(shape, w->member);
        return OJ_OK;
    }
    if (w->found.n < FOUND_FOR_CELLS || !oj_shape_takes_cells(shape))
        return OJ_OK;
    OJ_TRY(oj_cells_build(&w->cells, shape, &w->scratch, err));
    shape->cells = &w->cells;
    return OJ_OK;
}

oj_status oj_predicate_row(const struct oj_predicate_rows *b,
                           struct oj_predicate_worker *w, int64_t row,
                           struct oj_error *err)
{
    struct oj_index *index = b->index;
    struct oj_shape shape = oj_shape_of(b->input, row);
    w->n_rows++;
    if (index->rule.takes_all)
        OJ_TRY(find_all(&index->side, &w->found, err));
    else
        OJ_TRY(oj_side_find(&index->side,
                            shape.is_odd ? OJ_BOX_MEETS : index->rule.test,
                            &shape.box, &w->found, err));
    if (w->found.n > 0)
        OJ_TRY(prepare_row(w, &shape, err));
    if (index->relation.op == OJ_OP_DISJOINT)
        return take_others(b, w, row, &shape, err);
    return take_found(b, w, row, &shape, err);
}

/* --- pairs that a screen has found ---------------------------------------- */

int oj_predicate_is_open(const struct oj_index *index, uint8_t said)
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

/* Both features are what cpu_meet.c calls edges, and it would have come to the
 * same, resting on the validity of the same ones. */
static oj_status take_if_valid(const struct oj_predicate_rows *b,
                               struct oj_predicate_worker *w, int64_t row,
                               const struct oj_shape *shape, int32_t feature,
                               int meets, int *holds, struct oj_error *err)
{
    struct oj_shape other = oj_shape_of(b->index->join_side, feature);
    enum oj_op op = b->index->relation.op;
    enum oj_verdict own;
    int is_sure = 1;
    OJ_TRY(look_up(&b->index->options, w, err));
    w->n_asked++;
    if (is_many_rings(&other))
        OJ_TRY(feature_is_valid(b, w, feature, &other, &is_sure, err));
    if (is_sure && is_many_rings(shape))
        OJ_TRY(row_is_valid(b, w, row, shape, &is_sure, err));
    *holds = meets == (op != OJ_OP_DISJOINT);
    if (is_sure)
        return OJ_OK;
    own = *holds ? OJ_VERDICT_YES : OJ_VERDICT_NO;
    if (op != OJ_OP_INTERSECTS && op != OJ_OP_DISJOINT)
        own = OJ_VERDICT_UNSURE;
    return ask_geos(b, w, row, feature, own, holds, err);
}

/* 1 when no more is asked of a pair than whether features are valid. */
static int is_about_validity(const struct oj_index *index, uint8_t said)
{
    enum oj_op op = index->relation.op;
    return said == OJ_SAID_APART_IF_VALID ||
           (said == OJ_SAID_MEETS_IF_VALID &&
            (op == OJ_OP_INTERSECTS || op == OJ_OP_DISJOINT));
}

int oj_predicate_asks_shapes(const struct oj_index *index, uint8_t said)
{
    return oj_predicate_is_open(index, said) && !is_about_validity(index, said);
}

oj_status oj_predicate_decide(const struct oj_predicate_rows *b,
                              struct oj_predicate_worker *w, int64_t row,
                              int64_t n, const int32_t *feature, uint8_t *said,
                              struct oj_error *err)
{
    const struct oj_index *index = b->index;
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
        if (is_about_validity(index, said[i]))
            OJ_TRY(take_if_valid(b, w, row, &shape, feature[i],
                                 said[i] == OJ_SAID_MEETS_IF_VALID, &holds,
                                 err));
        else
            OJ_TRY(take_pair(b, w, row, &shape, index->place_of[feature[i]],
                             &holds, err));
        said[i] = holds != is_disjoint ? OJ_SAID_MEETS : OJ_SAID_APART;
    }
    return OJ_OK;
}
