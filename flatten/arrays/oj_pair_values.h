/** Additional values of the pairs of an answer: how much two features overlap,
 *  where they are nearest, how similar their texts are and how different their
 *  vectors, and which pair of a row was picked. They belong to the entries of a
 *  struct oj_matches: to those of `picked` if is_picked (one entry per row), to
 *  those of `kept` if is_kept, otherwise to those of the answer itself. */
#ifndef OJ_PAIR_VALUES_H
#define OJ_PAIR_VALUES_H

#include "oj_flat.h"
#include "oj_matches.h"

/** The values that a pair can have. A value is NaN if the pair does not have
 *  it. */
enum oj_pair_value
{
    OJ_PAIR_OVERLAP_AREA = 0, /**< area of the intersection's polygons */
    OJ_PAIR_OVERLAP_LENGTH,   /**< length of the intersection's lines */
    /** Percentage of the input feature's area or length that the join feature
     *  covers. */
    OJ_PAIR_OVERLAP_PERCENT,
    OJ_PAIR_FROM_X, /**< OJ_PAIR_FROM_X, _Y: the input feature's point nearest
                         to the join feature */
    OJ_PAIR_FROM_Y,
    OJ_PAIR_NEAREST_X, /**< OJ_PAIR_NEAREST_X, _Y: the join feature's point
                            nearest to the input feature */
    OJ_PAIR_NEAREST_Y,
    /** Direction from the input feature's nearest point to the join feature's,
     *  in degrees clockwise from north, [0, 360); NaN if both points are equal.
     */
    OJ_PAIR_BEARING,
    OJ_PAIR_JOIN_AREA, /**< area of the join feature; parts that overlap count
                            once */
    /** Size of the intersection as a weight: its area if both features have
     *  polygons, else its length if both have lines or polygons, else 1. */
    OJ_PAIR_OVERLAP_SIZE,
    /** Area of the intersection divided by the area of the union of both
     *  features. */
    OJ_PAIR_OVERLAP_IOU,
    OJ_PAIR_INPUT_AREA, /**< area of the input feature; parts that overlap count
                             once */
    /** Values of all join features of a row taken together: what their union
     *  and the input feature have in common. Every pair of the row has these
     *  values. */
    OJ_PAIR_COVERED_AREA,    /**< area of the common polygons */
    OJ_PAIR_COVERED_LENGTH,  /**< length of the common lines */
    OJ_PAIR_COVERED_PERCENT, /**< percentage of the input feature's area, or of
                                  its length if it has no area */
    OJ_PAIR_DIFFERENCE,      /**< difference of the vectors */

    /* Values whose columns the user names, in the order of their columns. Those
     * from OJ_PAIR_ALONG to OJ_PAIR_LINE_BEARING describe the nearest place on
     * the lines and rings of the join feature
     * (algs/pairs/values/oj_along_line.h). */
    OJ_PAIR_ALONG,         /**< length of the line from its start to the
                                place */
    OJ_PAIR_ALONG_PERCENT, /**< OJ_PAIR_ALONG in percent of the whole line */
    OJ_PAIR_OFFSET,        /**< distance of the input feature from the place, >
                                0 on the left of the line */
    OJ_PAIR_SIDE,          /**< 1: left, 0: on the line, -1: right */
    OJ_PAIR_SEGMENT,       /**< number of the segment, from 1 on */
    OJ_PAIR_LINE_BEARING,  /**< direction of the segment, degrees from north */
    OJ_PAIR_MATRIX,        /**< DE-9IM matrix: oj_pair_matrix_code() */
    OJ_PAIR_RELATION,      /**< index in OJ_PAIR_RELATIONS */

    /** OJ_PAIR_SIMILARITY + i: similarity by condition i on texts. */
    OJ_PAIR_SIMILARITY,
    OJ_N_PAIR_VALUES = OJ_PAIR_SIMILARITY + 8,

    OJ_FIRST_NAMED_PAIR_VALUE = OJ_PAIR_ALONG,
    OJ_N_NAMED_PAIR_VALUES = OJ_PAIR_RELATION + 1 - OJ_FIRST_NAMED_PAIR_VALUE
};

/** Names of the relations of a pair, in the order in which they are tried: a
 *  pair gets the first one that holds. */
#define OJ_PAIR_RELATIONS                                                      \
    "equals", "contains", "within", "touches", "crosses", "overlaps",          \
        "intersects", "disjoint"

enum oj_pair_kind
{
    OJ_PAIR_KIND_REAL,
    OJ_PAIR_KIND_INTEGER,
    OJ_PAIR_KIND_TEXT /**< the value is a code: oj_pair_value_text() */
};

enum oj_pair_kind oj_pair_value_kind(enum oj_pair_value which);

/** Returns the text of a value of kind OJ_PAIR_KIND_TEXT, a static string; NULL
 *  for NaN and invalid codes. */
const char *oj_pair_value_text(enum oj_pair_value which, double value);

/** Returns the text of a value of OJ_PAIR_SIDE and sets *n to its length; NULL
 *  for NaN and invalid codes. Inline, since tables with this column hold a text
 *  in every row. */
static inline const char *oj_pair_side_text(double value, int64_t *n)
{
    static const struct
    {
        char text[8];
        int64_t n;
    } side[] = {{"right", 5}, {"on", 2}, {"left", 4}};
    int i;
    if (!(value >= -1.0 && value <= 1.0))
        return NULL;
    i = (int)value + 1;
    *n = side[i].n;
    return side[i].text;
}

/** Returns the code of a DE-9IM matrix, given as nine letters of F012, of which
 *  the last is 2. */
double oj_pair_matrix_code(const char *matrix);

/** The values of an answer. Owner; zeroed memory is a valid empty one, and an
 *  object may be used for many answers (it keeps its memory). */
struct oj_pair_values
{
    int is_picked;
    struct oj_matches picked; /**< one-to-one form */

    /** If is_kept, the values belong to these entries: the pairs whose
     *  intersection has a part of a wanted kind, in list form. */
    int is_kept;
    struct oj_matches kept;

    int64_t n_entries;
    double *value[OJ_N_PAIR_VALUES]; /**< [n_entries]; NULL: the value was not
                                          requested */
    int64_t capacity[OJ_N_PAIR_VALUES];

    /** For answers whose entries are events: the kind of each entry, and the
     *  names of the kinds; borrowed. NULL: entries are pairs. */
    const uint8_t *event;
    const char *const *event_name;

    /** The intersections; feature i belongs to entry i. Empty unless requested.
     */
    struct oj_flat_buf shapes;
};

/** Returns the matches to whose entries the values belong. `matches` is the
 *  answer. */
static inline const struct oj_matches *
oj_pair_values_matches(const struct oj_pair_values *values,
                       const struct oj_matches *matches)
{
    if (values != NULL && values->is_kept)
        return &values->kept;
    return values != NULL && values->is_picked ? &values->picked : matches;
}

void oj_pair_values_free(struct oj_pair_values *values);

#endif
