/** Compares two results of one join: ours and that of a reference.
 *
 *  For each row, the sets of pairs are compared, and the measures of common
 *  pairs if the join has a measure. Distances from or to points and distances
 *  of shapes must be equal bit for bit. Between lines and polygons, distances
 *  may differ by two ulps, because GEOS skips parts by a rounded distance of
 *  their boxes; a pair that this difference moves across a limit is allowed,
 *  too. Such pairs are counted.
 *
 *  The reference rounds, so exact arithmetic (exact_reference.h) decides every
 *  pair on which the two differ. The pair is counted as proved if our pair, or
 *  our lack of it, is right, or if our distance is at least as close to the
 *  exact one as the reference's. It is counted as rounding if the reference is
 *  wrong (GEOS can find distance 0 for shapes 1e-17 apart) and our distance has
 *  only the error of its formula (OJ_VALIDATION_SLACK), also if this error
 *  moves the pair across a limit or across the k-th nearest. All other pairs
 *  are differences. Pairs that the reference could not decide (struct
 *  oj_matches) are decided exactly as well. Rows of a nearest join that one of
 *  the two results left undecided are counted, but not compared. Exact
 *  decisions need the layers; without them every pair that differs is a
 *  difference.
 *
 *  On the sphere distances may differ by the rounding of unit vectors
 *  (OJ_VALIDATION_CHORD), on an ellipsoid those of lines and polygons by a
 *  millimetre (OJ_VALIDATION_EDGE); such pairs are counted like those within
 *  two ulps.
 *
 *  Batches are compared one by one. Every difference is passed to the report
 *  function, and the first few are stored. */
#ifndef OJ_VALIDATION_H
#define OJ_VALIDATION_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "../../foundations/kernels/oj_box.h"
#include "../../foundations/relation/oj_relation.h"

#define OJ_N_FIRST_DIFFERENCES 10

/** Allowed difference of distances between lines and polygons, in ulps. */
#define OJ_VALIDATION_ULPS 2

/** Bound of the error of a computed distance: at most OJ_VALIDATION_SLACK times
 * (distance + longest segment), plus OJ_LEAST_DISTANCE (oj_box.h) if squares
 * underflow.
 *
 * Proof. Let u = 2^-53, and let g(n) be a bound slightly above n u, so that a
 * product of n factors 1 + u is at most 1 + g(n). Let p be a point, a b a
 * segment of length L, D = |p a|, and d the distance of p and a b. Then D <= d
 * + L, since the nearest point is within L of a. oj_segment_distance() computes
 *
 *  r = ((p - a) . (b - a)) / L^2   n = (a - p) x (b - a)   s = |n / L^2| L
 *
 * Each difference is rounded once, a product of two differences has three
 * roundings, and their sum a fourth. By the inequality of Cauchy and Schwarz, n
 * is then off by at most g(4) |p - a| |b - a|; L^2 is off by a factor 1 + g(4).
 * With the divisions, the root and the last product, s differs from the
 * distance of p to the line by at most g(4) D + g(6) |n| / L <= g(11) D, and r
 * is off by at most g(11) D / L: the foot of the perpendicular moves by at most
 * g(11) D along the line. If this error selects another of the three cases r <=
 * 0, 0 < r < 1 and r >= 1, the distance to an end replaces the distance to the
 * line or the reverse, and these two differ by no more than the foot moves. A
 * distance of two points is off by g(4) of itself. So every value is within
 * g(22) D of the distance of its point and segment.
 *
 * The distance of a pair is the minimum of such values, or 0 if exact signs
 * find a common point. Let L be the longest segment. The value of the nearest
 * point and segment is at most d + g(22) (d + L), and no value is below d -
 * g(22) (d + L). The bound 32 u = 2^-48 leaves room for using the computed
 * distance in place of d, for |dx| + |dy| >= L, and for squares of lengths,
 * which lose up to 2 u of themselves by underflow where they are at least
 * DBL_MIN.
 *
 * A segment whose squared length is below DBL_MIN, L < 2^-511, is measured by
 * its ends, which is off by at most L. Products that underflow in n are off by
 * 2^-1074 / 2^-511, squares of distances by 2^-1074, their root by 2^-537.
 * Together these errors are less than 2^-510. */
#define OJ_VALIDATION_SLACK 0x1p-48

/** Allowed difference of chords between points of the unit sphere; 0.06
 * micrometres on the Earth (more near antipodal points). */
#define OJ_VALIDATION_CHORD 1e-14

/** Allowed difference of distances from geodesic edges, in semi-major axes: 1
 * mm on the Earth. Engine and reference search for the nearest point by
 * different methods, up to .7 mm beyond 9900 km; and the reference locates
 * points in rings up to .6 mm. */
#define OJ_VALIDATION_EDGE 1.6e-10

enum oj_difference_kind
{
    OJ_DIFFERENCE_MISSING = 0, /**< only the reference has this pair */
    OJ_DIFFERENCE_EXTRA,       /**< only our result has this pair */
    OJ_DIFFERENCE_DISTANCE,    /**< both results have the pair, with different
                                    measures */
    OJ_DIFFERENCE_ORDER,       /**< both results have these pairs, in different
                                    order */
    OJ_DIFFERENCE_PROVED,      /**< differs from the reference, but exact
                                    arithmetic confirms our result. This kind
                                    and the next are reported, but not counted
                                    as differences */
    OJ_DIFFERENCE_ROUNDING,    /**< differs from the reference, but only by the
                                    rounding of our formula */
    OJ_N_DIFFERENCE_KINDS
};

/** A difference. A result that lacks the pair has join_row -1 and measure NaN.
 * For a different order only the first position is reported. */
struct oj_difference
{
    enum oj_difference_kind kind;
    int64_t input_row; /**< ordinal of the row over all batches */
    int32_t join_row_ours, join_row_reference;
    double measure_ours, measure_reference;
};

/** Called for each difference. A status other than OJ_OK ends the comparison
 * with this status. */
typedef oj_status (*oj_difference_report)(
    const struct oj_difference *difference, void *user, struct oj_error *err);

/* Defined in oj_validation.c. */
struct oj_row_pair;

/** The current row of one of the two results. */
struct oj_validated_row
{
    const struct oj_matches *matches;
    int64_t row, at;          /**< the row, and the next of the matches'
                                   undecided pairs to be read */
    int64_t n;                /**< number of pairs of the row that both results
                                   decided */
    struct oj_row_pair *pair; /**< [n] the pairs that both results decided,
                                   usually sorted by join row */
    int64_t n_left_out;       /**< number of pairs of the row in left_out */
    const int32_t *left_out;  /**< pairs of the row that this result left
                                   undecided, as join rows: points into
                                   matches->undecided_join */
};

/** State and result of a comparison; owns its scratch memory. Zeroed memory is
 * ready for the first batch. */
struct oj_validation
{
    oj_difference_report report; /**< called for each difference; or NULL */
    void *user;                  /**< argument of report */

    /* For exact decisions, and to distinguish lines from points: the join side,
     * the current batch and the relation. If any of the three is NULL, every
     * difference counts as one. */
    const struct oj_flat *join_side;
    const struct oj_flat *input; /**< set before each batch */
    const struct oj_relation *relation;

    int64_t n_rows;      /**< rows that were compared (not those left out) */
    int64_t n_pairs;     /**< pairs that either result has (not those left
                              out) */
    int64_t n_undecided; /**< rows left out, because a result left them
                              undecided */
    int64_t n_undecided_pairs;  /**< pairs left out, because ours left them
                                     undecided or exact arithmetic does not
                                     cover the join */
    int64_t n_undecided_proved; /**< pairs that only the reference left
                                     undecided; exact arithmetic confirms
                                     ours */
    int64_t n_rows_proved;      /**< rows in which the results differ, and all
                                     differences were proved in our favour;
                                     also counted in n_rows */
    /** Rows with at least one difference that is rounding, and all others
     * rounding or proved; also counted in n_rows. */
    int64_t n_rows_rounding;
    int64_t n_within_ulps; /**< pairs of lines or polygons whose distances
                                differ by up to OJ_VALIDATION_ULPS; also counted
                                in n_pairs */
    int64_t n_rows_different;
    int64_t n_differences; /**< number of differences that are neither proved
                                nor rounding */
    int64_t n_of_kind[OJ_N_DIFFERENCE_KINDS];
    int64_t n_first; /**< number of elements in `first` */
    struct oj_difference first[OJ_N_FIRST_DIFFERENCES];

    int64_t n_rows_seen;                 /**< ordinal of the first row of the
                                              next batch */
    int has_kind[OJ_N_DIFFERENCE_KINDS]; /**< kinds of differences in the
                                              current row */
    struct oj_row_pair *scratch;
    int64_t cap_scratch;

    struct oj_validated_row ours, reference;
};

/** Compares the results of a batch. Both must have equal numbers of rows; their
 * forms (oj_matches.h) may differ. O(pairs log pairs per row). */
OJ_MUST_USE oj_status oj_validation_compare(struct oj_validation *validation,
                                            const struct oj_matches *ours,
                                            const struct oj_matches *reference,
                                            struct oj_error *err);

/** Compares the rows of `ours` from `first` on with all rows of `reference`.
 * validation->input must be the rows of reference. */
OJ_MUST_USE oj_status oj_validation_compare_part(
    struct oj_validation *validation, const struct oj_matches *ours,
    int64_t first, const struct oj_matches *reference, struct oj_error *err);

/** Returns the name of a kind: "missing", "extra", "distance", "order",
 * "proved" or "rounding". */
const char *oj_validation_difference_name(enum oj_difference_kind kind);

void oj_validation_free(struct oj_validation *validation);

#endif
