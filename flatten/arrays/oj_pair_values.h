/** Additional values of the pairs of an answer: how much two features overlap,
 *  where they are nearest, how similar their texts and how different their
 *  vectors are; and which pair of a row was picked. Belongs to a struct
 *  oj_matches: if is_picked, the values belong to the entries of picked, which
 *  has one entry per row; else to those of the matches. */
#ifndef OJ_PAIR_VALUES_H
#define OJ_PAIR_VALUES_H

#include "oj_flat.h"
#include "oj_matches.h"

/** A value is NaN if the pair has none. */
enum oj_pair_value
{
    OJ_PAIR_OVERLAP_AREA = 0, /**< area of the intersection's polygons */
    OJ_PAIR_OVERLAP_LENGTH,   /**< length of the intersection's lines */
    /** Percentage of the input feature's area or length. */
    OJ_PAIR_OVERLAP_PERCENT,
    OJ_PAIR_FROM_X, /**< nearest point of the input feature */
    OJ_PAIR_FROM_Y,
    OJ_PAIR_NEAREST_X, /**< nearest point of the join feature */
    OJ_PAIR_NEAREST_Y,
    /** Direction from the first to the second of these points, degrees
     *  clockwise from north, [0, 360); NaN if they are equal. */
    OJ_PAIR_BEARING,
    OJ_PAIR_JOIN_AREA, /**< area of the join feature, the union of its parts */
    /** Size of the intersection as a weight: its area if both features have
     *  polygons, else its length if both have lines or polygons, else 1. */
    OJ_PAIR_OVERLAP_SIZE,
    OJ_PAIR_DIFFERENCE, /**< difference of the vectors */
    /** Similarity by the first condition on texts; by condition i:
     *  OJ_PAIR_SIMILARITY + i. */
    OJ_PAIR_SIMILARITY,
    OJ_N_PAIR_VALUES = OJ_PAIR_SIMILARITY + 8
};

/** Owner; zeroed memory is a valid empty one, and an object may be used for
 *  many answers (it keeps its memory). */
struct oj_pair_values
{
    int is_picked;
    struct oj_matches picked; /**< one-to-one form */

    int64_t n_entries;
    double *value[OJ_N_PAIR_VALUES]; /**< [n_entries]; NULL: not requested */
    int64_t capacity[OJ_N_PAIR_VALUES];

    /** Where entries are events: [n_entries of the matches] kind of each, and
     *  the names of the kinds; borrowed. NULL: entries are pairs. */
    const uint8_t *event;
    const char *const *event_name;

    /** The intersections; feature i belongs to entry i. Without features unless
     *  requested. */
    struct oj_flat_buf shapes;
};

/** Returns the matches to whose entries the values belong. */
static inline const struct oj_matches *
oj_pair_values_matches(const struct oj_pair_values *values,
                       const struct oj_matches *matches)
{
    return values != NULL && values->is_picked ? &values->picked : matches;
}

void oj_pair_values_free(struct oj_pair_values *values);

#endif
