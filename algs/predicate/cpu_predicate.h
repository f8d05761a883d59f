/** One row against the join side: the middle of the family that answers
 *  predicates (cpu_predicate.c has its ends).
 *
 *  row -> shape -> features whose boxes pass (cpu_shapes.h) -> pair filter ->
 *  our kernels (cpu_verdict.h) -> the matrix of what they leave (relate.h) ->
 *  answers
 */
#ifndef CPU_PREDICATE_H
#define CPU_PREDICATE_H

#include "../pairs/oj_pairs.h"
#include "../pairs/oj_ranking.h"
#include "../relate/relate.h"
#include "../relation/oj_backend.h"
#include "../relation/oj_screen.h"
#include "cpu_verdict.h"

#include <stdatomic.h>

/** Whether oj_shape_is_nice(), which is asked when it is needed first. */
enum oj_niceness
{
    OJ_NICENESS_NOT_KNOWN,
    OJ_NOT_NICE,
    OJ_NICE
};

/** One thread's own. */
struct oj_predicate_worker
{
    struct oj_relate_scratch relate;
    struct oj_figure figure; /**< of a shape that may be nice */
    struct oj_found found;
    struct oj_answers answers;
    struct oj_shape *member; /**< of the row at hand */
    int64_t cap_members;
    struct oj_edge_grid cells; /**< of the row at hand */
    int row_niceness;          /**< of it, enum oj_niceness */
    uint8_t *is_met; /**< [features] disjoint: marks of the row at hand */
    int64_t n_rows, n_asked;
    int64_t n_to_look;
};

/** The join side, prepared. */
struct oj_predicate_index
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    struct oj_box_rule rule;
    struct oj_shape_side side; /**< empty until has_side */
    int has_side;
    int32_t *place_of; /**< [features] in the side; NULL until wanted */
    struct oj_screen_pairs screened;    /**< of the last batch */
    struct oj_predicate_worker *worker; /**< [options.n_threads] */
    _Atomic uint8_t *niceness;          /**< [features] enum oj_niceness */
};

/** What the rows of a batch are compared with, and under which filter. */
struct oj_predicate_rows
{
    struct oj_predicate_index *index;
    const struct oj_flat *input;
    struct oj_pair_filter filter;
};

/** Puts the pairs of a row into worker's answers. */
OJ_MUST_USE oj_status oj_predicate_row(const struct oj_predicate_rows *rows,
                                       struct oj_predicate_worker *worker,
                                       int64_t row, struct oj_error *err);

/** Decides what a screen left open of the n pairs of a row: said becomes
 *  OJ_SAID_MEETS for pairs and OJ_SAID_APART for others; for disjoint, whose
 *  pairs are the others, the other way round. */
OJ_MUST_USE oj_status oj_predicate_decide(const struct oj_predicate_rows *rows,
                                          struct oj_predicate_worker *worker,
                                          int64_t row, int64_t n,
                                          const int32_t *feature, uint8_t *said,
                                          struct oj_error *err);

/** 1 when a pair of which said is known has to be decided. */
int oj_predicate_is_open(const struct oj_predicate_index *index, uint8_t said);

/** 1 when that takes the side, with place_of. */
int oj_predicate_asks_shapes(const struct oj_predicate_index *index,
                             uint8_t said);

/** Prepares the side if that was not done yet. */
OJ_MUST_USE oj_status oj_predicate_want_side(struct oj_predicate_index *index,
                                             struct oj_error *err);

/** The pairs of a batch from the candidates in index->screened
 *  (cpu_screened.c). Workers are ready. */
OJ_MUST_USE oj_status
oj_screened_to_matches(const struct oj_predicate_rows *rows,
                       struct oj_matches *out, struct oj_error *err);

#endif
