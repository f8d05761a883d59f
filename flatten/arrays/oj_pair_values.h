/** What is known of the pairs of an answer beyond who they are: which one of a
 *  row was picked, how much the two features overlap, where they are nearest,
 * how similar their texts and how different their vectors are.
 *
 *  Lies beside a struct oj_matches. Where is_picked, the values belong to the
 *  entries of picked, which has one entry per row; else to those of the matches
 *  themselves.
 */
#ifndef OJ_PAIR_VALUES_H
#define OJ_PAIR_VALUES_H

#include "oj_flat.h"
#include "oj_matches.h"

/** NaN where there is no such value. */
enum oj_pair_value
{
    OJ_PAIR_OVERLAP_AREA = 0, /**< of the intersection's polygons */
    OJ_PAIR_OVERLAP_LENGTH,   /**< of the intersection's lines */
    OJ_PAIR_OVERLAP_PERCENT,  /**< of the input feature's area or length */
    OJ_PAIR_FROM_X,           /**< the input feature's nearest point */
    OJ_PAIR_FROM_Y,
    OJ_PAIR_NEAREST_X, /**< the join feature's nearest point */
    OJ_PAIR_NEAREST_Y,
    OJ_PAIR_BEARING,   /**< from the first to the second, degrees clockwise from
                            north, [0, 360); NaN where they are one point */
    OJ_PAIR_JOIN_AREA, /**< of the join feature, the union of its parts */
    OJ_PAIR_DIFFERENCE, /**< of the vectors */
    OJ_PAIR_SIMILARITY, /**< of the texts of the first condition on texts; of
                             condition i OJ_PAIR_SIMILARITY + i */
    OJ_N_PAIR_VALUES = OJ_PAIR_SIMILARITY + 8
};

/** Owner; zeroed memory is a valid empty one, and one object may be used for
 *  many answers (its memory is kept). */
struct oj_pair_values
{
    int is_picked;
    struct oj_matches picked; /**< one-to-one form */

    int64_t n_entries;
    double *value[OJ_N_PAIR_VALUES]; /**< [n_entries], or NULL: not asked for */
    int64_t capacity[OJ_N_PAIR_VALUES];

    /** Of entries that are events: [n_entries of the matches] which, and the
     *  names of all that there are; borrowed. NULL: they are pairs. */
    const uint8_t *event;
    const char *const *event_name;

    /** The intersections; feature i belongs to entry i. Only where asked for,
     *  else without features. */
    struct oj_flat_buf shapes;
};

/** The entries that the values belong to. */
static inline const struct oj_matches *
oj_pair_values_matches(const struct oj_pair_values *values,
                       const struct oj_matches *matches)
{
    return values != NULL && values->is_picked ? &values->picked : matches;
}

void oj_pair_values_free(struct oj_pair_values *values);

#endif
