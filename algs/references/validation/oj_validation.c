#include "oj_validation.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_compare.h"
#include "../../foundations/kernels/oj_sphere.h"
#include "../../pairs/selection/oj_feature_area_length.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../exact/exact_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oj_row_pair
{
    int32_t join_row;
    double measure;
};

const char *oj_validation_difference_name(enum oj_difference_kind kind)
{
    static const char *const names[OJ_N_DIFFERENCE_KINDS] = {
        [OJ_DIFFERENCE_MISSING] = "missing",
        [OJ_DIFFERENCE_EXTRA] = "extra",
        [OJ_DIFFERENCE_DISTANCE] = "distance",
        [OJ_DIFFERENCE_ORDER] = "order",
        [OJ_DIFFERENCE_PROVED] = "proved",
        [OJ_DIFFERENCE_ROUNDING] = "rounding",
    };
    return names[kind];
}

/* Returns 1 if the measures are equal bit for bit, or both NaN (the join has no
 * measure). */
static int are_measures_identical(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static int has_layers_and_relation(const struct oj_validation *v)
{
    return v->join_side != NULL && v->input != NULL && v->relation != NULL;
}

static int is_on_sphere(const struct oj_validation *v)
{
    return has_layers_and_relation(v) &&
           v->relation->metric == OJ_METRIC_SPHERE;
}

/* Returns 1 if two distances on the sphere are equal up to the rounding of unit
 * vectors. The engine and the reference use different formulas, and chords are
 * less precise the nearer two points are to antipodal. */
static int equals_on_sphere(double a, double b)
{
    double flatness = cos(0.5 * a / OJ_SPHERE_RADIUS);
    double least = sqrt(OJ_VALIDATION_CHORD);
    flatness = flatness > least ? flatness : least;
    return fabs(a - b) <= OJ_SPHERE_RADIUS * OJ_VALIDATION_CHORD / flatness;
}

/* Returns 1 if distances are along geodesics and a side has lines or
 * polygons. */
static int has_geodesic_edges(const struct oj_validation *v)
{
    return has_layers_and_relation(v) &&
           v->relation->metric == OJ_METRIC_ELLIPSOID &&
           ((v->input->part_kinds | v->join_side->part_kinds) &
            ~(unsigned)OJ_PART_POINT) != 0;
}

/* Returns 1 if two distances are equal up to the rounding that is allowed for
 * this join. */
static int equals_within_rounding(const struct oj_validation *v, double a,
                                  double b)
{
    int64_t bits_a, bits_b;
    if (!(a >= 0.0) || !(b >= 0.0))
        return 0;
    if (is_on_sphere(v))
        return equals_on_sphere(a, b);
    if (has_geodesic_edges(v))
        return fabs(a - b) <=
               OJ_VALIDATION_EDGE * v->relation->ellipsoid.semi_major;
    memcpy(&bits_a, &a, sizeof bits_a);
    memcpy(&bits_b, &b, sizeof bits_b);
    return llabs(bits_a - bits_b) <= OJ_VALIDATION_ULPS;
}

static int has_points_only(const struct oj_flat *flat, int64_t feature)
{
    return (oj_flat_kinds(flat, feature) & ~(unsigned)OJ_PART_POINT) == 0;
}

/* Returns 1 if the two distances of a pair of this row and the feature may
 * differ by rounding. */
static int may_be_off_by_rounding(const struct oj_validation *v,
                                  int64_t feature)
{
    return is_on_sphere(v) || has_geodesic_edges(v) ||
           (has_layers_and_relation(v) &&
            !oj_relation_is_on_globe(v->relation) &&
            !oj_relation_compares_shapes(v->relation) &&
            !has_points_only(v->input, v->reference.row) &&
            !has_points_only(v->join_side, feature));
}

static oj_status add_difference(struct oj_validation *v,
                                enum oj_difference_kind kind,
                                const struct oj_row_pair *ours,
                                const struct oj_row_pair *reference,
                                struct oj_error *err)
{
    struct oj_difference difference = {
        kind,
        v->n_rows_seen + v->reference.row,
        ours != NULL ? ours->join_row : -1,
        reference != NULL ? reference->join_row : -1,
        ours != NULL ? ours->measure : NAN,
        reference != NULL ? reference->measure : NAN};
    v->n_differences += kind < OJ_DIFFERENCE_PROVED;
    v->has_kind[kind] = 1;
    v->n_of_kind[kind]++;
    if (v->n_first < OJ_N_FIRST_DIFFERENCES)
        v->first[v->n_first++] = difference;
    return v->report != NULL ? v->report(&difference, v->user, err) : OJ_OK;
}

/* Sorts by join row, then by measure, so that the order is defined even for a
 * wrong result with repeated pairs. */
static int compare_by_join_row_and_measure(const void *left, const void *right)
{
    const struct oj_row_pair *a = left, *b = right;
    if (a->join_row != b->join_row)
        return a->join_row < b->join_row ? -1 : 1;
    return (a->measure > b->measure) - (a->measure < b->measure);
}

static int is_undecided(const struct oj_validated_row *of, int32_t feature)
{
    return of->n_left_out > 0 &&
           bsearch(&feature, of->left_out, (size_t)of->n_left_out,
                   sizeof feature, oj_compare_int32) != NULL;
}

/* Sets of->pair to the pairs of a row that both results decided, in the order
 * of the result. */
static void copy_pairs_both_could_decide(const struct oj_validation *v,
                                         struct oj_validated_row *of)
{
    of->n = 0;
    for (int64_t i = oj_matches_first(of->matches, of->row);
         i < oj_matches_end(of->matches, of->row); i++)
    {
        int32_t feature = of->matches->join_row[i];
        if (!is_undecided(&v->ours, feature) &&
            !is_undecided(&v->reference, feature))
            of->pair[of->n++] =
                (struct oj_row_pair){feature, of->matches->measure[i]};
    }
}

/* Reports the first position of the row at which the results differ in order.
 * Their sets of pairs must be equal. */
static oj_status report_order_difference(struct oj_validation *v,
                                         struct oj_error *err)
{
    for (int64_t i = 0; i < v->ours.n; i++)
    {
        const struct oj_row_pair *a = &v->ours.pair[i];
        const struct oj_row_pair *b = &v->reference.pair[i];
        if (a->join_row == b->join_row ||
            (equals_within_rounding(v, a->measure, b->measure) &&
             (may_be_off_by_rounding(v, a->join_row) ||
              may_be_off_by_rounding(v, b->join_row))))
            continue;
        return add_difference(v, OJ_DIFFERENCE_ORDER, a, b, err);
    }
    return OJ_OK;
}

static double greatest_distance_in_row(const struct oj_validated_row *of)
{
    double farthest = -1.0;
    for (int64_t i = 0; i < of->n; i++)
        farthest = fmax(farthest, of->pair[i].measure);
    return farthest;
}

static int64_t count_pairs_of_row(const struct oj_validated_row *of)
{
    return oj_matches_end(of->matches, of->row) -
           oj_matches_first(of->matches, of->row);
}

/* Returns 1 if this row of a nearest join has k pairs. A pair that it lacks
 * must then be farther than all of these. */
static int has_k_pairs(const struct oj_validation *v,
                       const struct oj_validated_row *of)
{
    return oj_relation_sorts_by_measure(v->relation) &&
           count_pairs_of_row(of) >= v->relation->k;
}

/* Returns 1 if a pair that only one result has is within a few ulps of a limit:
 * the maximum or minimum distance, or the farthest pair of the other result. */
static int is_within_rounding_of_a_bound(const struct oj_validation *v,
                                         const struct oj_row_pair *pair,
                                         const struct oj_validated_row *other)
{
    if (!may_be_off_by_rounding(v, pair->join_row))
        return 0;
    if ((v->relation->min_distance > 0.0 &&
         equals_within_rounding(v, pair->measure, v->relation->min_distance)) ||
        equals_within_rounding(
            v, pair->measure,
            oj_pair_max_distance(v->relation, v->input, v->reference.row,
                                 v->join_side, pair->join_row)))
        return 1;
    return has_k_pairs(v, other) &&
           equals_within_rounding(v, pair->measure,
                                  greatest_distance_in_row(other));
}

/* --- decisions by exact arithmetic ---------------------------------------- */

static int is_distance_join(const struct oj_validation *v)
{
    return (oj_op_get(v->relation->op)->takes & OJ_TAKES_DISTANCE) != 0;
}

/* Returns 1 if exact arithmetic can decide this join: a planar join of whole
 * geometries, not by Hausdorff or Frechet distance, whose layers are set. */
static int can_be_proved_by_exact_arithmetic(const struct oj_validation *v)
{
    return has_layers_and_relation(v) &&
           !oj_relation_is_on_globe(v->relation) &&
           oj_relation_is_of_shapes(v->relation) &&
           !oj_relation_compares_shapes(v->relation) &&
           !v->relation->heading.is_asked;
}

/* Compares the exact distance of a pair with limit: sets *order to -1, 0 or 1
 * if the distance is less, equal or greater. */
static oj_status
compare_exact_distance_with_limit(const struct oj_validation *v,
                                  int64_t feature, double limit, int *order,
                                  struct oj_error *err)
{
    *order = -1;
    if (!(limit < INFINITY))
        return OJ_OK;
    return oj_exact_compare_distance(v->input, v->reference.row, v->join_side,
                                     feature, v->relation->distance_to, limit,
                                     order, err);
}

/* Sets *is_within to 1 if the exact distance of a pair is within the join's
 * minimum and maximum distance. */
static oj_status is_within_bounds(const struct oj_validation *v,
                                  int64_t feature, int *is_within,
                                  struct oj_error *err)
{
    double most = oj_pair_max_distance(v->relation, v->input, v->reference.row,
                                       v->join_side, feature);
    int order = 1;
    if (most >= 0.0)
        OJ_TRY(
            compare_exact_distance_with_limit(v, feature, most, &order, err));
    *is_within = order <= 0;
    if (*is_within && v->relation->min_distance > 0.0)
    {
        OJ_TRY(compare_exact_distance_with_limit(
            v, feature, v->relation->min_distance, &order, err));
        *is_within = order >= 0;
    }
    return OJ_OK;
}

/* Sets *is to 1 if our distance differs from the exact one by at most
 * OJ_VALIDATION_ULPS ulps. */
static oj_status is_correctly_rounded(const struct oj_validation *v,
                                      const struct oj_row_pair *ours, int *is,
                                      struct oj_error *err)
{
    double d = ours->measure;
    double slack = (double)OJ_VALIDATION_ULPS * DBL_EPSILON * d;
    int order;
    *is = 0;
    OJ_TRY(compare_exact_distance_with_limit(v, ours->join_row, d + slack,
                                             &order, err));
    if (order > 0 || !(d < INFINITY))
        return OJ_OK;
    OJ_TRY(compare_exact_distance_with_limit(v, ours->join_row, d - slack,
                                             &order, err));
    *is = order >= 0;
    return OJ_OK;
}

/* Returns 1 if our pair may be among the k nearest of its row, judged by our
 * distances. */
static int is_among_k_nearest(const struct oj_validation *v,
                              const struct oj_row_pair *ours)
{
    int64_t n_nearer = 0;
    if (!oj_relation_sorts_by_measure(v->relation))
        return 1;
    for (int64_t i = 0; i < v->ours.n; i++)
        n_nearer += v->ours.pair[i].measure < ours->measure;
    return n_nearer < v->relation->k &&
           (v->relation->ties == OJ_TIES_ALL || v->ours.n <= v->relation->k);
}

/* Decides whether the tie order explains a pair that our row of a nearest join
 * lacks: sets *is to 1 if the pair is exactly as far as our farthest pair, and
 * comes after all our pairs at that distance in tie order: by FID, then by
 * ordinal. */
static oj_status is_excluded_by_tie_order(const struct oj_validation *v,
                                          const struct oj_row_pair *reference,
                                          int *is, struct oj_error *err)
{
    const int64_t *fid = v->join_side->fid;
    double farthest = greatest_distance_in_row(&v->ours);
    int32_t feature = reference->join_row;
    int order;
    *is = 0;
    if (v->relation->ties != OJ_TIES_FIRST || v->ours.n < v->relation->k)
        return OJ_OK;
    for (int64_t i = 0; i < v->ours.n; i++)
    {
        int32_t other = v->ours.pair[i].join_row;
        int by_fid = fid != NULL ? (fid[feature] > fid[other]) -
                                       (fid[feature] < fid[other])
                                 : 0;
        if (v->ours.pair[i].measure == farthest &&
            (by_fid < 0 || (by_fid == 0 && feature < other)))
            return OJ_OK;
    }
    OJ_TRY(
        compare_exact_distance_with_limit(v, feature, farthest, &order, err));
    *is = order == 0;
    if (order < 0 && reference->measure == farthest)
        OJ_TRY(is_correctly_rounded(v, reference, is, err));
    return OJ_OK;
}

/* Sets *may to 1 if exclusions, classes and maximum distances of features allow
 * the pair. */
static oj_status passes_pair_filter(const struct oj_validation *v,
                                    int64_t feature, int *may,
                                    struct oj_error *err)
{
    struct oj_pair_filter filter;
    OJ_TRY(
        oj_pair_filter_make(v->relation, v->input, v->join_side, &filter, err));
    *may = oj_pair_filter_accepts(&filter, v->reference.row, feature);
    return OJ_OK;
}

/* Sets *is_proved to 1 if exact arithmetic confirms our result. Either ours is
 * our pair, and reference is NULL because the reference lacks it; or reference
 * is a pair that we lack, and ours is NULL. */
static oj_status prove_missing_or_extra_pair(
    const struct oj_validation *v, const struct oj_row_pair *ours,
    const struct oj_row_pair *reference, int *is_proved, struct oj_error *err)
{
    int64_t feature = (ours != NULL ? ours : reference)->join_row;
    double farthest = greatest_distance_in_row(&v->ours);
    int holds, order, may = 1;
    *is_proved = 0;
    if (!can_be_proved_by_exact_arithmetic(v))
        return OJ_OK;
    if (ours != NULL)
        OJ_TRY(passes_pair_filter(v, feature, &may, err));
    if (!may || (ours != NULL && !is_among_k_nearest(v, ours)))
        return OJ_OK;
    if (!is_distance_join(v))
    {
        OJ_TRY(oj_exact_decide_pair(v->relation, v->input, v->reference.row,
                                    v->join_side, feature, &holds, err));
        *is_proved = holds == (ours != NULL);
        return OJ_OK;
    }
    OJ_TRY(is_within_bounds(v, feature, &holds, err));
    if (ours != NULL)
    {
        if (holds)
            OJ_TRY(is_correctly_rounded(v, ours, is_proved, err));
        return OJ_OK;
    }
    *is_proved = !holds;
    if (holds && has_k_pairs(v, &v->ours) && farthest >= 0.0)
    {
        OJ_TRY(compare_exact_distance_with_limit(v, feature, farthest, &order,
                                                 err));
        *is_proved = order > 0;
        if (order <= 0)
            OJ_TRY(is_excluded_by_tie_order(v, reference, is_proved, err));
    }
    return OJ_OK;
}

/* Sets *is_proved to 1 if our distance is at least as close to the exact
 * distance as the reference's. */
static oj_status prove_our_distance_is_nearer(
    const struct oj_validation *v, const struct oj_row_pair *ours,
    const struct oj_row_pair *reference, int *is_proved, struct oj_error *err)
{
    *is_proved = 0;
    if (!can_be_proved_by_exact_arithmetic(v) || !(ours->measure < INFINITY) ||
        !(reference->measure < INFINITY))
        return OJ_OK;
    return oj_exact_first_distance_is_closer(
        v->input, v->reference.row, v->join_side, ours->join_row,
        v->relation->distance_to, ours->measure, reference->measure, is_proved,
        err);
}

/* --- differences explained by the rounding of our formula ----------------- */

/* Segment lengths of a pair. */
struct segment_lengths
{
    double longest;
    int has_short; /* 1: the squared length of some segment underflows */
};

static void measure_segments(const struct oj_flat *flat, int64_t feature,
                             struct segment_lengths *lengths)
{
    if (oj_flat_is_points(flat))
        return;
    for (int64_t r = flat->ring_offset[flat->part_offset[feature]];
         r < flat->ring_offset[flat->part_offset[feature + 1]]; r++)
    {
        for (int64_t i = flat->vertex_offset[r] + 1;
             i < flat->vertex_offset[r + 1]; i++)
        {
            double dx = fabs(flat->x[i] - flat->x[i - 1]);
            double dy = fabs(flat->y[i] - flat->y[i - 1]);
            lengths->longest = fmax(lengths->longest, dx + dy);
            lengths->has_short |= dx * dx + dy * dy < DBL_MIN && dx + dy > 0.0;
        }
    }
}

static struct segment_lengths
segment_lengths_of_pair(const struct oj_validation *v, int64_t feature)
{
    struct segment_lengths lengths = {0.0, 0};
    measure_segments(v->input, v->reference.row, &lengths);
    measure_segments(v->join_side, feature, &lengths);
    return lengths;
}

/* Returns an upper bound of the error of our distance, which is about
 * `distance`. For points the reference has our formula and rounding, so only an
 * underflow can explain a difference, unless exact arithmetic refutes the
 * reference (is_reference_refuted 1). A distance of 0 is exact except for
 * underflow. */
static double rounding_bound_of_distance(const struct oj_validation *v,
                                         int64_t feature, double distance,
                                         int is_reference_refuted)
{
    if (distance == 0.0 ||
        (!is_reference_refuted && !may_be_off_by_rounding(v, feature)))
        return OJ_LEAST_DISTANCE;
    return OJ_VALIDATION_SLACK *
               (distance + segment_lengths_of_pair(v, feature).longest) +
           OJ_LEAST_DISTANCE;
}

/* Sets *is to 1 if our distance differs from the exact one by at most `off`.
 * For shapes that intersect it must be 0, except for underflow. */
static oj_status is_within_rounding_of_formula(const struct oj_validation *v,
                                               const struct oj_row_pair *ours,
                                               double off, int *is,
                                               struct oj_error *err)
{
    double d = ours->measure;
    int order = 1;
    *is = 0;
    if (!(d >= 0.0) || !(d < INFINITY))
        return OJ_OK;
    if (d > OJ_LEAST_DISTANCE)
        OJ_TRY(compare_exact_distance_with_limit(v, ours->join_row, 0.0, &order,
                                                 err));
    if (order <= 0)
        return OJ_OK;
    OJ_TRY(compare_exact_distance_with_limit(v, ours->join_row, d + off, &order,
                                             err));
    if (order > 0)
        return OJ_OK;
    order = 1;
    if (d > off)
        OJ_TRY(compare_exact_distance_with_limit(v, ours->join_row, d - off,
                                                 &order, err));
    *is = order >= 0;
    return OJ_OK;
}

/* Sets *may to 1 if rounding may make the computed distance of a pair greater
 * than bound. If meets is 1, the features intersect, and their exact distance
 * is 0. */
static oj_status may_round_above(const struct oj_validation *v, int64_t feature,
                                 double bound, int meets, int *may,
                                 struct oj_error *err)
{
    double least =
        bound - (meets ? OJ_LEAST_DISTANCE
                       : rounding_bound_of_distance(v, feature, bound, 0));
    int order = 1;
    *may = 0;
    if (!(bound < INFINITY))
        return OJ_OK;
    if (least >= 0.0)
        OJ_TRY(
            compare_exact_distance_with_limit(v, feature, least, &order, err));
    *may = order >= 0;
    return OJ_OK;
}

static oj_status may_round_below(const struct oj_validation *v, int64_t feature,
                                 double bound, int *may, struct oj_error *err)
{
    int order;
    *may = 0;
    if (!(bound > 0.0))
        return OJ_OK;
    OJ_TRY(compare_exact_distance_with_limit(
        v, feature, bound + rounding_bound_of_distance(v, feature, bound, 0),
        &order, err));
    *may = order <= 0;
    return OJ_OK;
}

/* Sets *is to 1 if rounding explains that our result lacks a pair: its computed
 * distance may be beyond a limit, or beyond the farthest of our k nearest.
 * Shapes that intersect have distance 0, unless their segments are so short
 * that squares underflow. */
static oj_status
does_rounding_explain_missing_pair(const struct oj_validation *v,
                                   int64_t feature, int *is,
                                   struct oj_error *err)
{
    double most = oj_pair_max_distance(v->relation, v->input, v->reference.row,
                                       v->join_side, feature);
    int order, meets;
    OJ_TRY(compare_exact_distance_with_limit(v, feature, 0.0, &order, err));
    meets = order <= 0;
    *is = 0;
    if (meets && !segment_lengths_of_pair(v, feature).has_short)
        return OJ_OK;
    OJ_TRY(may_round_above(v, feature, most, meets, is, err));
    if (!*is && !meets)
        OJ_TRY(may_round_below(v, feature, v->relation->min_distance, is, err));
    if (!*is && has_k_pairs(v, &v->ours))
        OJ_TRY(may_round_above(v, feature, greatest_distance_in_row(&v->ours),
                               meets, is, err));
    return OJ_OK;
}

/* Sets *is to 1 if rounding explains that only our result has a pair: its
 * distance has no more error than the formula allows. */
static oj_status
does_rounding_explain_extra_pair(const struct oj_validation *v,
                                 const struct oj_row_pair *ours, int *is,
                                 struct oj_error *err)
{
    int64_t feature = ours->join_row;
    double most = oj_pair_max_distance(v->relation, v->input, v->reference.row,
                                       v->join_side, feature);
    int is_refuted;
    *is = 0;
    OJ_TRY(passes_pair_filter(v, feature, is, err));
    if (!*is || !is_among_k_nearest(v, ours) || !(ours->measure <= most) ||
        !(ours->measure >= v->relation->min_distance))
    {
        *is = 0;
        return OJ_OK;
    }
    OJ_TRY(is_within_bounds(v, feature, &is_refuted, err));
    return is_within_rounding_of_formula(
        v, ours,
        rounding_bound_of_distance(v, feature, ours->measure, is_refuted), is,
        err);
}

/* Sets *is to 1 if the rounding of our formula explains a difference that exact
 * arithmetic does not. */
static oj_status is_rounding_of_formula(const struct oj_validation *v,
                                        const struct oj_row_pair *ours,
                                        const struct oj_row_pair *reference,
                                        int *is, struct oj_error *err)
{
    int is_right;
    *is = 0;
    if (!can_be_proved_by_exact_arithmetic(v) || !is_distance_join(v))
        return OJ_OK;
    if (ours == NULL)
        return does_rounding_explain_missing_pair(v, reference->join_row, is,
                                                  err);
    if (reference == NULL)
        return does_rounding_explain_extra_pair(v, ours, is, err);
    OJ_TRY(is_correctly_rounded(v, reference, &is_right, err));
    return is_within_rounding_of_formula(
        v, ours,
        is_right
            ? OJ_LEAST_DISTANCE
            : rounding_bound_of_distance(v, ours->join_row, ours->measure, 1),
        is, err);
}

/* Sets *out to the final kind of a difference: OJ_DIFFERENCE_PROVED if exact
 * arithmetic has proved our result (is_proved 1), OJ_DIFFERENCE_ROUNDING if
 * rounding explains the difference, otherwise `kind`. */
static oj_status kind_of_difference(const struct oj_validation *v,
                                    enum oj_difference_kind kind, int is_proved,
                                    const struct oj_row_pair *ours,
                                    const struct oj_row_pair *reference,
                                    enum oj_difference_kind *out,
                                    struct oj_error *err)
{
    int is_rounding = 0;
    if (!is_proved)
        OJ_TRY(is_rounding_of_formula(v, ours, reference, &is_rounding, err));
    *out = is_proved     ? OJ_DIFFERENCE_PROVED
           : is_rounding ? OJ_DIFFERENCE_ROUNDING
                         : kind;
    return OJ_OK;
}

/* Classifies and reports a pair that only one result has. */
static oj_status report_missing_or_extra_pair(
    struct oj_validation *v, const struct oj_row_pair *ours,
    const struct oj_row_pair *reference, struct oj_error *err)
{
    const struct oj_row_pair *pair = ours != NULL ? ours : reference;
    const struct oj_validated_row *other =
        ours != NULL ? &v->reference : &v->ours;
    enum oj_difference_kind kind =
        ours != NULL ? OJ_DIFFERENCE_EXTRA : OJ_DIFFERENCE_MISSING;
    int is_proved;
    OJ_TRY(prove_missing_or_extra_pair(v, ours, reference, &is_proved, err));
    if (!is_proved && is_within_rounding_of_a_bound(v, pair, other))
    {
        v->n_within_ulps++;
        return OJ_OK;
    }
    OJ_TRY(kind_of_difference(v, kind, is_proved, ours, reference, &kind, err));
    return add_difference(v, kind, ours, reference, err);
}

/* Compares the measures of a pair that both results have. */
static oj_status compare_measures(struct oj_validation *v,
                                  const struct oj_row_pair *ours,
                                  const struct oj_row_pair *reference,
                                  struct oj_error *err)
{
    enum oj_difference_kind kind;
    int is_proved;
    if (are_measures_identical(ours->measure, reference->measure))
        return OJ_OK;
    if (may_be_off_by_rounding(v, ours->join_row) &&
        equals_within_rounding(v, ours->measure, reference->measure))
    {
        v->n_within_ulps++;
        return OJ_OK;
    }
    OJ_TRY(prove_our_distance_is_nearer(v, ours, reference, &is_proved, err));
    OJ_TRY(kind_of_difference(v, OJ_DIFFERENCE_DISTANCE, is_proved, ours,
                              reference, &kind, err));
    return add_difference(v, kind, ours, reference, err);
}

/* Compares the pairs of a row in both results, which are sorted by join row. */
static oj_status compare_sorted_pairs_of_row(struct oj_validation *v,
                                             struct oj_error *err)
{
    const struct oj_row_pair *ours = v->ours.pair, *end = ours + v->ours.n;
    const struct oj_row_pair *reference = v->reference.pair;
    const struct oj_row_pair *last = reference + v->reference.n;
    while (ours < end || reference < last)
    {
        v->n_pairs++;
        if (reference == last ||
            (ours < end && ours->join_row < reference->join_row))
            OJ_TRY(report_missing_or_extra_pair(v, ours++, NULL, err));
        else if (ours == end || reference->join_row < ours->join_row)
            OJ_TRY(report_missing_or_extra_pair(v, NULL, reference++, err));
        else
            OJ_TRY(compare_measures(v, ours++, reference++, err));
    }
    return OJ_OK;
}

static int is_order_of_pairs_checked(const struct oj_validation *v)
{
    return v->relation == NULL || !v->relation->any_order;
}

static void sort_pairs_by_join_row(const struct oj_validated_row *of)
{
    if (of->n > 1)
        qsort(of->pair, (size_t)of->n, sizeof *of->pair,
              compare_by_join_row_and_measure);
}

static oj_status compare_row(struct oj_validation *v, struct oj_error *err)
{
    int64_t n_ours = count_pairs_of_row(&v->ours), before = v->n_differences;
    int is_proved, is_rounding;
    OJ_ROOM(v->scratch, 0, n_ours + count_pairs_of_row(&v->reference),
            v->cap_scratch, err);
    v->ours.pair = v->scratch;
    v->reference.pair = n_ours > 0 ? v->scratch + n_ours : v->scratch;
    copy_pairs_both_could_decide(v, &v->ours);
    copy_pairs_both_could_decide(v, &v->reference);
    sort_pairs_by_join_row(&v->ours);
    sort_pairs_by_join_row(&v->reference);
    memset(v->has_kind, 0, sizeof v->has_kind);
    OJ_TRY(compare_sorted_pairs_of_row(v, err));
    is_rounding =
        v->n_differences == before && v->has_kind[OJ_DIFFERENCE_ROUNDING];
    is_proved = v->n_differences == before && !is_rounding &&
                v->has_kind[OJ_DIFFERENCE_PROVED];
    v->n_rows_rounding += is_rounding;
    v->n_rows_proved += is_proved;
    if (v->n_differences == before && !is_proved && !is_rounding &&
        v->ours.n == v->reference.n && v->ours.n > 1 &&
        is_order_of_pairs_checked(v))
    {
        copy_pairs_both_could_decide(v, &v->ours);
        copy_pairs_both_could_decide(v, &v->reference);
        OJ_TRY(report_order_difference(v, err));
    }
    v->n_rows++;
    v->n_rows_different += v->n_differences > before;
    return OJ_OK;
}

/* Moves to a row of one result, and sets left_out to the undecided pairs of
 * this row, or to a single -1 if the whole row is undecided. */
static void move_to_row_and_its_undecided(struct oj_validated_row *of,
                                          int64_t row)
{
    static const int32_t whole_row = -1;
    const struct oj_matches *matches = of->matches;
    int64_t first;
    of->row = row;
    while (of->at < matches->n_undecided && matches->undecided[of->at] < row)
        of->at++;
    first = of->at;
    while (of->at < matches->n_undecided && matches->undecided[of->at] == row)
        of->at++;
    of->left_out = matches->undecided_join != NULL
                       ? matches->undecided_join + first
                       : &whole_row;
    of->n_left_out = of->at - first;
}

/* Counts the pairs of the row that our result left undecided. Returns 1 if
 * either result left the whole row undecided. */
static int count_undecided(struct oj_validation *v)
{
    const struct oj_validated_row *ours = &v->ours, *reference = &v->reference;
    if ((ours->n_left_out > 0 && ours->left_out[0] < 0) ||
        (reference->n_left_out > 0 && reference->left_out[0] < 0))
    {
        v->n_undecided++;
        return 1;
    }
    v->n_undecided_pairs += ours->n_left_out;
    return 0;
}

/* Decides the pairs that only the reference left undecided, by exact
 * arithmetic. Those that confirm our result are counted as proved. Others are
 * reported as differences, or counted as undecided if no exact decision is
 * possible. */
static oj_status prove_pairs_reference_left_undecided(struct oj_validation *v,
                                                      struct oj_error *err)
{
    const struct oj_matches *ours = v->ours.matches;
    v->ours.n = v->reference.n = 0;
    for (int64_t i = 0; i < v->reference.n_left_out; i++)
    {
        struct oj_row_pair pair = {v->reference.left_out[i], NAN};
        struct oj_row_pair *had = NULL;
        int is_proved;
        if (is_undecided(&v->ours, pair.join_row))
            continue;
        for (int64_t p = oj_matches_first(ours, v->ours.row);
             p < oj_matches_end(ours, v->ours.row); p++)
        {
            if (ours->join_row[p] != pair.join_row)
                continue;
            pair.measure = ours->measure[p];
            had = &pair;
        }
        OJ_TRY(prove_missing_or_extra_pair(v, had, &pair, &is_proved, err));
        v->n_undecided_proved += is_proved;
        if (is_proved)
            continue;
        if (!can_be_proved_by_exact_arithmetic(v) ||
            is_distance_join(v)) /* a distance join cannot be proved: our
                                    distance may be rounded across a limit */
            v->n_undecided_pairs++;
        else
            OJ_TRY(add_difference(
                v, had ? OJ_DIFFERENCE_EXTRA : OJ_DIFFERENCE_MISSING, had,
                had ? NULL : &pair, err));
    }
    return OJ_OK;
}

oj_status oj_validation_compare_part(struct oj_validation *v,
                                     const struct oj_matches *ours,
                                     int64_t first,
                                     const struct oj_matches *reference,
                                     struct oj_error *err)
{
    v->ours = (struct oj_validated_row){.matches = ours};
    v->reference = (struct oj_validated_row){.matches = reference};
    for (int64_t row = 0; row < reference->n_rows; row++)
    {
        move_to_row_and_its_undecided(&v->ours, first + row);
        move_to_row_and_its_undecided(&v->reference, row);
        if (count_undecided(v))
            continue;
        OJ_TRY(prove_pairs_reference_left_undecided(v, err));
        OJ_TRY(compare_row(v, err));
    }
    v->n_rows_seen += reference->n_rows;
    return OJ_OK;
}

oj_status oj_validation_compare(struct oj_validation *v,
                                const struct oj_matches *ours,
                                const struct oj_matches *reference,
                                struct oj_error *err)
{
    if (ours->n_rows != reference->n_rows)
        return oj_fail_internal(
            err, "validation compares answers of %lld and of %lld rows",
            (long long)ours->n_rows, (long long)reference->n_rows);
    return oj_validation_compare_part(v, ours, 0, reference, err);
}

void oj_validation_free(struct oj_validation *v)
{
    oj_free(v->scratch);
    v->scratch = NULL;
    v->cap_scratch = 0;
}
