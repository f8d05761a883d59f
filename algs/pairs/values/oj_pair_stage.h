/** Computes, between a join and its output, what the output needs of each pair:
 *  picks one pair of each row (-pick) and computes the requested values, on all
 *  threads.
 *
 *  The result (struct oj_pair_values) depends on the pairs only. */
#ifndef OJ_PAIR_STAGE_H
#define OJ_PAIR_STAGE_H

#include "../../../flatten/arrays/oj_pair_values.h"
#include "../../foundations/relation/oj_relation.h"

/** Rule that selects the pair of a row to keep. Of equally good pairs, the
 * first in tie order is kept. */
enum oj_pick_rule
{
    OJ_PICK_ALL = 0, /**< all pairs are kept */
    OJ_PICK_FIRST,   /**< the first in tie order */
    OJ_PICK_NEAREST,
    OJ_PICK_LARGEST_OVERLAP, /**< compares areas if both features have polygons,
                                  otherwise lengths */
    OJ_PICK_SMALLEST_AREA,   /**< area of the join feature */
    OJ_PICK_LARGEST_AREA,
    OJ_PICK_MOST_SIMILAR, /**< compares the similarity of the first condition on
                               texts; without one, the difference of vectors */
    OJ_PICK_SCORE         /**< greatest score of the join feature */
};

/** The pick and the values of pairs that are requested. Plain data, owns
 * nothing. */
struct oj_pair_request
{
    enum oj_pick_rule pick;
    unsigned char want[OJ_N_PAIR_VALUES];
    int want_shapes;
    /** 1: OJ_PAIR_ALONG is the M value of the place, 0: the length up to it */
    int along_is_m;

    /** Kinds of parts that intersections keep, enum oj_part_kind or'ed; 0: all.
     */
    unsigned shape_kinds;
    int drops_pairs; /**< used with shape_kinds; 1: a pair whose intersection
                          has no part of these kinds is dropped (see is_kept) */

    struct oj_relation relation;
    int n_threads; /**< >= 1, or 0: all processors */
    const int *cancel;
};

/** A side of the join. If each feature was joined by one of its points,
 * distances and nearest points refer to this point, areas and intersections to
 * the whole feature. */
struct oj_pair_side
{
    const struct oj_flat *joined;
    const struct oj_flat *whole; /**< the layer with whole features; may equal
                                      joined */

    /* The members below are used for the join side only. */
    const int64_t *score;    /**< OJ_PICK_SCORE: [features] scores of
                                  oj_pick.h */
    const int32_t *tie_rank; /**< [features]; NULL: the ordinal is the rank */
};

struct oj_pair_stage;

/** Returns 1 if request asks for a pick or any value. */
int oj_pair_request_is_needed(const struct oj_pair_request *request);

/** Opens a stage; request is copied. */
OJ_MUST_USE oj_status oj_pair_stage_open(const struct oj_pair_request *request,
                                         struct oj_pair_stage **out,
                                         struct oj_error *err);

/** Sets the join side for the following runs; the data of *side must outlive
 * them. Must precede the first run. */
OJ_MUST_USE oj_status oj_pair_stage_set_join_side(
    struct oj_pair_stage *stage, const struct oj_pair_side *side,
    struct oj_error *err);

/** Fills *values for the pairs of input's rows in matches. Two threads must not
 * call it for one stage at once. */
OJ_MUST_USE oj_status oj_pair_stage_run(struct oj_pair_stage *stage,
                                        const struct oj_pair_side *input,
                                        const struct oj_matches *matches,
                                        struct oj_pair_values *values,
                                        struct oj_error *err);

/** Returns the number of pairs whose intersection GEOS could not compute; they
 * count as having no overlap. */
int64_t oj_pair_stage_count_undecided_pairs(const struct oj_pair_stage *stage);

/** Writes to text [size] which values are missing because GEOS could not
 * compute an intersection or a union: "the overlap of 3 pairs and the covered
 * part of 1 row are unknown, because .." with GEOS's message for one of them.
 * Overlaps are counted by pairs, covered parts by input rows. Returns 0, and
 * writes "", if no value is missing. */
int oj_pair_stage_describe_undecided(const struct oj_pair_stage *stage,
                                     char *text, size_t size);

/** Writes how many places have no measure, because their line has no M value
 * there. Returns 0, and writes "", if there are none. */
int oj_pair_stage_describe_missing_m(const struct oj_pair_stage *stage,
                                     char *text, size_t size);

/** Returns the fraction, 0 to 1, of a join feature's area (of its length, if it
 * has no polygons) that is covered by the overlap of this entry; 1 for points.
 * values must have overlaps and OJ_PAIR_JOIN_AREA. */
double oj_pair_covered_fraction(const struct oj_flat *side, int32_t feature,
                                const struct oj_pair_values *values,
                                int64_t entry);

/** Accepts NULL. */
void oj_pair_stage_close(struct oj_pair_stage *stage);

#endif
