/** Comparing two answers to the same join: ours and a reference's.
 *
 *  Row by row the sets of pairs are compared, and of the pairs that both have,
 *  the measures, where the join has one.  Distances from or to points must be
 *  equal bit for bit.  Between lines and polygons GEOS passes over some parts
 *  by a rounded distance of their boxes, so there two ulps are equal, too, also
 *  where they decide which side of a bound a pair is on; such pairs are
 *  counted.  Distances of shapes must be equal bit for bit.
 *
 *  The reference rounds: every pair on which the two differ is decided by exact
 *  arithmetic (exact_reference.h). What that confirms of ours, a pair or that
 *  our distance is no farther from the exact one than the reference's, is set
 *  aside and counted as proved.  So is, as a kind of its own, a distance of
 *  ours that is off by the rounding of its formula alone (OJ_VALIDATION_SLACK),
 *  where exact arithmetic refutes the reference's: shapes that miss each other
 *  by 1e-17 can be 0 apart for it.  And pairs that such a distance has on one
 *  side of a bound, or of the k-th nearest.  Everything else is a
 *  difference.  So is a pair
 *  that the reference could not decide (struct oj_matches).  Rows of the
 * nearest join that one of the two could not decide are left out and counted.
 * All this takes the layers; without them every pair that differs is a
 * difference.
 *
 *  On the sphere every distance is compared up to the rounding of unit vectors
 *  (OJ_VALIDATION_CHORD), and pairs that are equal but for it are counted the
 *  same way.
 *
 *  Batches are compared as they come; every difference goes to the report, the
 *  first few are kept.
 */
#ifndef OJ_VALIDATION_H
#define OJ_VALIDATION_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "../../foundations/kernels/oj_box.h"
#include "../../foundations/relation/oj_relation.h"

#define OJ_N_FIRST_DIFFERENCES 10

/** By so many ulps may distances between lines and polygons differ. */
#define OJ_VALIDATION_ULPS 2

/** The distance that the kernels compute for a pair differs from the exact one
 *  by OJ_VALIDATION_SLACK (distance + longest segment) at most, and by
 *  OJ_LEAST_DISTANCE (oj_box.h) where squares underflow.
 *
 *  Proof.  u = 2^-53; g(n) stands for n u (1 + n u) and more, so that n factors
 *  1 + u make 1 + g(n) at most.  p is a point, a b a segment of length L, D =
 *  |p a|, d their distance; D <= d + L, as the nearest point is within L of a.
 *  oj_segment_distance() computes
 *
 *   r = ((p - a) . (b - a)) / L^2   n = (a - p) x (b - a)   s = |n / L^2| L
 *
 *  Differences are rounded once, products of two of them three times, their sum
 *  a fourth time: of n by g(4) |p - a| |b - a| at most, by the inequality of
 *  Cauchy and Schwarz; L^2 by a factor 1 + g(4).  With the divisions, the root
 *  and the last product, s is off by g(4) D + g(6) |n| / L, so by g(11) D, from
 *  the distance of p to the line; and r by g(11) D / L, that is, the foot of
 *  the perpendicular by g(11) D along the line.  Where that leads to the other
 *  of the three cases, r <= 0, r >= 1 and between, the distance to an end takes
 *  the place of the one to the line, or the reverse, and the two are no farther
 *  apart than the foot is off.  A distance of points is off by g(4) of itself.
 *  So every value is within g(22) D of the distance of its point and segment.
 *
 *  The distance of a pair is the least of such values, or 0 where exact signs
 *  find a common point.  Let L be the longest segment.  The value of the
 *  nearest point and segment is at most d + g(22) (d + L), and no value is
 *  below d - g(22) (d + L).  32 u = 2^-48 also pays for taking the computed
 *  distance for d, for |dx| + |dy| >= L, and for squares of lengths, which
 *  lose up to 2 u of themselves by underflow where they are DBL_MIN and more.
 *
 *  A segment whose squared length is below DBL_MIN, L < 2^-511, is measured by
 *  its ends, which is off by L at most; products that underflow in n are off by
 *  2^-1074 / 2^-511, squares of distances by 2^-1074, their root by 2^-537.
 *  Together less than 2^-510. */
#define OJ_VALIDATION_SLACK 0x1p-48

/** By so much may chords between points of the unit sphere differ, which is
 * 0.06 micrometres on the Earth (more towards the opposite point). */
#define OJ_VALIDATION_CHORD 1e-14

enum oj_difference_kind
{
    OJ_DIFFERENCE_MISSING = 0, /**< the reference has this pair, we do not */
    OJ_DIFFERENCE_EXTRA,       /**< we have this pair, the reference does not */
    OJ_DIFFERENCE_DISTANCE,    /**< both have it, at other distances */
    OJ_DIFFERENCE_ORDER,       /**< the same pairs of the row in other order */
    OJ_DIFFERENCE_PROVED,      /**< any of these, where exact arithmetic
                                    confirms ours; this and what follows are
                                    reported, but no differences */
    OJ_DIFFERENCE_ROUNDING,    /**< any of these, where our distance is the
                                    exact one but for its formula's rounding */
    OJ_N_DIFFERENCE_KINDS
};

/** Where one side has no such pair, its join_row is -1 and its measure NaN.
 *  A row in other order gives one difference: the first place that differs. */
struct oj_difference
{
    enum oj_difference_kind kind;
    int64_t input_row; /**< counted from the first row of the first batch */
    int32_t join_row_ours, join_row_reference;
    double measure_ours, measure_reference;
};

/** Takes a difference; any status but OJ_OK ends the comparison with it. */
typedef oj_status (*oj_difference_report)(
    const struct oj_difference *difference, void *user, struct oj_error *err);

/* Internal. */
struct oj_row_pair;

/** The row at hand, as one answer has it. */
struct oj_validated_row
{
    const struct oj_matches *matches;
    int64_t row, at;          /**< at: where to look for what was left out */
    int64_t n;                /**< pairs that both could decide */
    struct oj_row_pair *pair; /**< [n] by join row, as a rule */
    int64_t n_left_out;       /**< what the answer did not decide of it: */
    const int32_t *left_out;  /**< a part of its undecided_join */
};

/** Owner of its scratch. Zeroed memory, with report and user set or not, is
 *  ready for the first batch. */
struct oj_validation
{
    oj_difference_report report; /**< or NULL */
    void *user;                  /**< for report */

    /* For the exact word, and to tell lines from points: the join side, the
     * batch at hand and what was asked. Any of them NULL: every difference
     * counts. */
    const struct oj_flat *join_side;
    const struct oj_flat *input; /**< set before each batch */
    const struct oj_relation *relation;

    int64_t n_rows;  /**< rows compared, those left out not counted */
    int64_t n_pairs; /**< pairs that either has, those left out not counted */
    int64_t n_undecided;        /**< rows left out as a whole */
    int64_t n_undecided_pairs;  /**< pairs left out: ours did not decide them,
                                     or there is no exact word */
    int64_t n_undecided_proved; /**< pairs that only the reference could not
                                     decide, where ours is right */
    int64_t n_rows_proved;   /**< rows that differ and are proved, in n_rows */
    int64_t n_rows_rounding; /**< other rows, with a difference that is the
                                  rounding of our formula, in n_rows */
    int64_t n_within_ulps;   /**< pairs of lines or polygons that are equal but
                                  for OJ_VALIDATION_ULPS, in n_pairs */
    int64_t n_rows_different;
    int64_t n_differences; /**< without those proved or of rounding */
    int64_t n_of_kind[OJ_N_DIFFERENCE_KINDS];
    int64_t n_first; /**< of first; at most OJ_N_FIRST_DIFFERENCES */
    struct oj_difference first[OJ_N_FIRST_DIFFERENCES];

    int64_t n_rows_seen;                 /**< where the next batch starts */
    int has_kind[OJ_N_DIFFERENCE_KINDS]; /**< of the row that is compared */
    struct oj_row_pair *scratch;
    int64_t cap_scratch;

    struct oj_validated_row ours, reference;
};

/** Compares the answers for one batch; the two must have as many rows and may
 *  be in different forms. O(pairs log pairs per row). */
OJ_MUST_USE oj_status oj_validation_compare(struct oj_validation *validation,
                                            const struct oj_matches *ours,
                                            const struct oj_matches *reference,
                                            struct oj_error *err);

/** Compares where reference answers only some of the rows of ours, those from
 *  first on; validation->input holds the rows of reference. */
OJ_MUST_USE oj_status oj_validation_compare_part(
    struct oj_validation *validation, const struct oj_matches *ours,
    int64_t first, const struct oj_matches *reference, struct oj_error *err);

/** "missing", "extra", "distance", "order", "proved" or "rounding". */
const char *oj_validation_difference_name(enum oj_difference_kind kind);

void oj_validation_free(struct oj_validation *validation);

#endif
