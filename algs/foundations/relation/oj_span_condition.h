/** A condition on the spans of two features: their relation (of Allen's 13)
 * must be one of a given set. */
#ifndef OJ_SPAN_CONDITION_H
#define OJ_SPAN_CONDITION_H

#include "../../../flatten/arrays/oj_spans.h"
#include "../../../flatten/base/oj_status.h"

#include <stdint.h>

/** Relation of the input's span to the join feature's span. The inverse of
 * relation r is OJ_SPAN_AFTER - r. */
enum oj_span_relation
{
    OJ_SPAN_BEFORE = 0,
    OJ_SPAN_MEETS,
    OJ_SPAN_OVERLAPS,
    OJ_SPAN_STARTS,
    OJ_SPAN_DURING,
    OJ_SPAN_FINISHES,
    OJ_SPAN_EQUALS,
    OJ_SPAN_FINISHED_BY,
    OJ_SPAN_CONTAINS,
    OJ_SPAN_STARTED_BY,
    OJ_SPAN_OVERLAPPED_BY,
    OJ_SPAN_MET_BY,
    OJ_SPAN_AFTER,
    OJ_N_SPAN_RELATIONS
};

#define OJ_SPAN_RELATION_NAMES                                                 \
    "intersects|before|meets|overlaps|starts|during|finishes|equals|"          \
    "finished_by|contains|started_by|overlapped_by|met_by|after"

/** Set of all relations but before and after: the spans have a point of time,
 * or a number, in common. */
#define OJ_SPANS_INTERSECT                                                     \
    (((1u << OJ_N_SPAN_RELATIONS) - 1u) & ~(1u << OJ_SPAN_BEFORE) &            \
     ~(1u << OJ_SPAN_AFTER))

/** A set of relations. Plain values. */
struct oj_span_condition
{
    unsigned relations; /**< bits 1 << enum oj_span_relation, at least one */
};

/** Returns 1 if only spans with a common point can fulfil the condition. */
static inline int
oj_span_condition_needs_contact(const struct oj_span_condition *condition)
{
    return (condition->relations & ~OJ_SPANS_INTERSECT) == 0;
}

/** Finds the relation of span a to span b. Neither may be missing. */
static inline enum oj_span_relation oj_span_relation_of(int64_t a_from,
                                                        int64_t a_until,
                                                        int64_t b_from,
                                                        int64_t b_until)
{
    if (a_from < b_from && a_until < b_until)
        return a_until < b_from    ? OJ_SPAN_BEFORE
               : a_until == b_from ? OJ_SPAN_MEETS
                                   : OJ_SPAN_OVERLAPS;
    if (a_from > b_from && a_until > b_until)
        return a_from > b_until    ? OJ_SPAN_AFTER
               : a_from == b_until ? OJ_SPAN_MET_BY
                                   : OJ_SPAN_OVERLAPPED_BY;
    if (a_from == b_from)
        return a_until < b_until    ? OJ_SPAN_STARTS
               : a_until == b_until ? OJ_SPAN_EQUALS
                                    : OJ_SPAN_STARTED_BY;
    if (a_until == b_until)
        return a_from < b_from ? OJ_SPAN_FINISHED_BY : OJ_SPAN_FINISHES;
    return a_from < b_from ? OJ_SPAN_CONTAINS : OJ_SPAN_DURING;
}

/** Returns 1 if row a and feature b have spans that fulfil the condition. */
static inline int
oj_span_condition_holds(const struct oj_span_condition *condition,
                        const struct oj_spans *input, int64_t a,
                        const struct oj_spans *join_side, int64_t b)
{
    int64_t a_from = input->from[a], a_until = input->until[a];
    int64_t b_from = join_side->from[b], b_until = join_side->until[b];
    if (!oj_span_exists(a_from, a_until) || !oj_span_exists(b_from, b_until))
        return 0;
    if (condition->relations == OJ_SPANS_INTERSECT)
        return a_from <= b_until && b_from <= a_until;
    return (condition->relations >>
                oj_span_relation_of(a_from, a_until, b_from, b_until) &
            1u) != 0;
}

/** The ranges in which the begins and the ends of several spans are: [0] least,
 * [1] greatest. Plain values. */
struct oj_span_ranges
{
    int64_t from[2], until[2];
};

/** Returns 0 if no span with its ends in these ranges can fulfil the condition
 *  with the span [from, until] of the input. Precondition: the condition needs
 *  contact. */
int oj_span_condition_may_hold(const struct oj_span_condition *condition,
                               int64_t from, int64_t until,
                               const struct oj_span_ranges *ranges);

/** Returns the condition for exchanged sides: each relation is replaced by its
 *  inverse.
 */
struct oj_span_condition
oj_span_condition_transpose(const struct oj_span_condition *condition);

/** OJ_ERR_ARG if the set of relations is empty or has unknown bits. */
OJ_MUST_USE oj_status oj_span_condition_check(
    const struct oj_span_condition *condition, struct oj_error *err);

/** Parses relations, "overlaps" or "starts+during+equals". Error messages begin
 * with dash and option. */
OJ_MUST_USE oj_status oj_span_relations_parse(const char *dash,
                                              const char *option,
                                              const char *words,
                                              struct oj_span_condition *out,
                                              struct oj_error *err);

#endif
