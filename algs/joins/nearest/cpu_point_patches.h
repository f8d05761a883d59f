/** Patches: runs of points in Morton order that lie close together, and the
 *  parts of the join side that are near them.
 *
 *  patch   up to OJ_PATCH points; walks the tree once and keeps, in its front,
 *          the few boxes of bundles that any of its points can need
 *  group   up to OJ_GROUP points of a patch; reads only the front
 *          (cpu_nearest_of_point_groups.c)
 *
 *  Both searches use an upper bound of the distance from any point of a box to
 *  its nearest segment. For k = 1 it is the distance from the farthest corner
 *  of the box to the segment that is nearest to its centre so far. For k > 1 it
 *  is the k-th smallest distance of different features from the centre, plus
 *  half the diagonal. So a search ends with the few segments that matter,
 *  whatever max_distance is. If fewer than k features are in reach, bounds of
 *  single features are used instead.
 *
 *  Everything here is inlined into cpu_nearest_of_point_groups.c, and compiled
 *  there for several instruction sets. Source: the bound is that of nearest
 *  neighbour search in R-trees (Roussopoulos et al. 1995), applied to a box of
 *  points after the collective query of Zhang, You, Gruenwald 2012; the rest is
 *  ours. */
#ifndef CPU_POINT_PATCHES_H
#define CPU_POINT_PATCHES_H

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_packed_tree_walk.h"
#include "cpu_nearest_search.h"

#include <string.h>

#define OJ_PATCH 512 /* maximum number of points in a patch */

/* A patch is halved if more boxes are near it than this plus the number of
 * features that are expected in the answer of a point. */
#define OJ_MANY_BOXES 1024

/* For k > 1, the bounds of corners are used if the k-th nearest feature is at
 * least this many half diagonals away; for nearer ones they exclude less than
 * they cost. */
#define OJ_FAR_OFF 16.0

/* For k > 1, number of elements of the list of the k best that are moved at
 * once. */
#define OJ_BEST_RUN 8

/* The bounding box of some points, with its centre, half its width and height,
 * and half its diagonal (the last three rounded up). */
struct oj_points_box
{
    struct oj_box box;
    double cx, cy, hx, hy, h;
};

OJ_INLINE void oj_points_box_set(struct oj_points_box *place,
                                 const struct oj_box *box)
{
    double dx, dy;
    place->box = *box;
    place->cx = 0.5 * box->x0 + 0.5 * box->x1;
    place->cy = 0.5 * box->y0 + 0.5 * box->y1;
    dx = box->x1 - place->cx;
    dy = box->y1 - place->cy;
    dx = dx > place->cx - box->x0 ? dx : place->cx - box->x0;
    dy = dy > place->cy - box->y0 ? dy : place->cy - box->y0;
    place->hx = dx * (1.0 + 1e-12);
    place->hy = dy * (1.0 + 1e-12);
    place->h = sqrt(dx * dx + dy * dy) * (1.0 + 1e-12);
}

/* Returns the number of leading points, of n >= 1, that stay together: at most
 * `most`, and only while width + height is within limit. Sets place to their
 * box. */
OJ_INLINE int oj_points_box_set_to_leading_points(
    struct oj_points_box *place, int64_t n, int most,
    const struct oj_ordered_point *point, double limit)
{
    struct oj_box box = {point[0].x, point[0].y, point[0].x, point[0].y};
    int taken = 1;
    most = n < most ? (int)n : most;
    for (; taken < most; taken++)
    {
        struct oj_box grown = box;
        oj_box_add_point(&grown, point[taken].x, point[taken].y);
        if ((grown.x1 - grown.x0) + (grown.y1 - grown.y0) > limit)
            break;
        box = grown;
    }
    oj_points_box_set(place, &box);
    return taken;
}

/* The corners of a box: bit 0 of a corner is set if it has the greater x, bit 1
 * if it has the greater y. */
#define OJ_CORNERS 4

/* Returns the bundle that holds the segment in a slot. Slots and indices of
 * fronts are divided as unsigned numbers, which takes one instruction instead
 * of four. */
OJ_INLINE const struct oj_bundle *
oj_slot_bundle(const struct oj_segments *segments, int64_t slot)
{
    return &segments->bundle[(uint64_t)slot / OJ_BUNDLE];
}

OJ_INLINE int oj_slot_position_in_bundle(int64_t slot)
{
    return (int)((uint64_t)slot % OJ_BUNDLE);
}

/* --- bounds of single features -------------------------------------------- */

/* Returns the slot of a feature; if the table lacks it, the empty slot for it.
 */
static inline struct oj_feature_bound_slot *
oj_feature_bound_slot(struct oj_feature_bounds *own, int32_t feature)
{
    uint32_t at = (uint32_t)feature * 0x9E3779B1u >> 20;
    while (own->slot[at].stamp == own->stamp &&
           own->slot[at].feature != feature)
        at = (at + 1) % OJ_FEATURE_BOUND_SLOTS;
    return &own->slot[at];
}

/* Records that feature has a segment at squared distance d2, if that is less
 * than the distance recorded so far and the table is not full. Returns 0 if a
 * distance of at most d2 was recorded before. */
static inline int oj_feature_bounds_lower(struct oj_feature_bounds *own,
                                          int32_t feature, double d2)
{
    struct oj_feature_bound_slot *slot = oj_feature_bound_slot(own, feature);
    if (slot->stamp == own->stamp)
    {
        int is_lower = d2 < slot->d2;
        slot->d2 = is_lower ? d2 : slot->d2;
        return is_lower;
    }
    if (own->n == OJ_MOST_FEATURE_BOUNDS)
        return 1;
    own->n++;
    slot->stamp = own->stamp;
    slot->feature = feature;
    slot->d2 = d2;
    return 1;
}

/* Returns the smallest squared distance recorded for a feature, or INFINITY. */
static inline double oj_feature_bounds_least2(struct oj_feature_bounds *own,
                                              int32_t feature)
{
    const struct oj_feature_bound_slot *slot =
        oj_feature_bound_slot(own, feature);
    return slot->stamp == own->stamp ? slot->d2 : INFINITY;
}

/* --- the bound ------------------------------------------------------------ */

/* Bound of a search: an upper bound `within` of the distance from any point of
 * a place to its (k-th) nearest feature. Segments farther than this from the
 * box of the place are not needed. */
struct oj_bound
{
    double least2; /* only for k == 1: smallest squared distance of a segment
                      from the centre of the place */
    /* Only if points exclude a class: the class of the segment at least2, the
     * smallest squared distance of a segment of another class, and upper bounds
     * of the distances of these two segments from any point of the place. */
    double other2;
    int32_t least_class;
    double least_within, other_within;
    double within; /* upper bound of the distance of every point's (k-th)
                      nearest feature */
    float reach2;  /* `within` squared, in units of the tree */
    float keep;    /* `within` in single precision, to compare with `low` of
                      oj_bundle_measure() */
    double cap;    /* maximum distance of a pair: max_distance, or 0 if all
                      points are inside of polygons */
    double slack;  /* maximum rounding error in the tree */
    /* For k > 1, upper bounds of the distance from each corner to its k-th
     * nearest feature, computed from the features of the last point. */
    int has_corners; /* 1: the place is so far from these features that the
                        bounds of corners exclude more than they cost */
    double corner[OJ_CORNERS];
    float corner_keep[OJ_CORNERS]; /* corner[] in single precision, to compare
                                      with `low` */
};

/* Returns an upper bound of within + slack in single precision, with which the
 * lower bounds `low` of distances are compared. */
OJ_INLINE float oj_bound_keep_limit(double within, double slack)
{
    double keep = within * (1.0 + 1e-6) + slack;
    /* Beyond the range of single precision, no segment is excluded. */
    return keep < 1e18 ? (float)keep * (1.0f + 1e-6f) : INFINITY;
}

OJ_INLINE void oj_bound_set(struct oj_bound *bound, const struct oj_tree *tree,
                            double within)
{
    within = within < bound->cap ? within : bound->cap;
    bound->within = within;
    bound->reach2 = oj_tree_reach2(tree, within);
    bound->keep = oj_bound_keep_limit(within, bound->slack);
}

OJ_INLINE struct oj_bound oj_bound_make(const struct oj_tree *tree, double cap)
{
    struct oj_bound bound = {.least2 = INFINITY,
                             .other2 = INFINITY,
                             .least_class = OJ_NO_CLASS,
                             .least_within = INFINITY,
                             .other_within = INFINITY,
                             .within = INFINITY,
                             .cap = cap,
                             .slack = tree->slack};
    oj_bound_set(&bound, tree, INFINITY);
    return bound;
}

/* Computes, for the segments of a bundle, the squared distances from the centre
 * of place, up to rounding, and lower bounds `low` of the distance from any
 * point of its box. The distance is a convex function, so it lies above its
 * tangent plane at the centre: d - |n.x| hx - |n.y| hy, with n the unit vector
 * away from the segment and hx, hy half the box. low is in single precision and
 * rounded down.
 *
 * corner_keep is bound->corner_keep, or NULL if corners are not used (which of
 * the two is known at compile time). A segment whose tangent plane lies above
 * corner_keep at all corners is not among the k nearest of any point of the box
 * (see "the bounds of corners"): its low becomes NAN, which no bound keeps. */
OJ_INLINE void oj_bundle_measure(const struct oj_bundle *restrict b,
                                 const struct oj_points_box *place,
                                 const float *corner_keep, double *restrict d2,
                                 float *restrict low)
{
    double x = place->cx, y = place->cy;
    double hx = place->hx, hy = place->hy;
    double across[OJ_BUNDLE];
    float along_x[OJ_BUNDLE], along_y[OJ_BUNDLE];
    OJ_EIGHT
    {
        double dx = b->bx[c] - b->ax[c], dy = b->by[c] - b->ay[c];
        double ux = x - b->ax[c], uy = y - b->ay[c];
        double len2 = dx * dx + dy * dy;
        /* A point, or a segment so short that its square underflows, is
         * replaced by its start. */
        double t = (ux * dx + uy * dy) / (len2 > 1e-290 ? len2 : INFINITY);
        t = t > 0.0 ? t : 0.0;
        t = t < 1.0 ? t : 1.0;
        ux -= t * dx;
        uy -= t * dy;
        d2[c] = ux * ux + uy * uy;
        across[c] = fabs(ux) * hx + fabs(uy) * hy;
        if (corner_keep != NULL)
        {
            along_x[c] = (float)(ux * hx);
            along_y[c] = (float)(uy * hy);
        }
    }
    OJ_EIGHT
    {
        float f2 = (float)d2[c], d;
        f2 = f2 > 1e-36f ? f2 : 1e-36f;
        f2 = f2 < 1e36f ? f2 : 1e36f;
        d = sqrtf(f2);
        /* 2e-18: a distance that was raised to 1e-36 above must not become too
         * large. */
        low[c] =
            d - ((float)across[c] / d) * (1.0f + 1e-6f) - 1e-6f * d - 2e-18f;
        if (corner_keep != NULL)
        {
            float slope_x = along_x[c] / d, slope_y = along_y[c] / d;
            float at = d - 1e-6f * ((float)across[c] / d) - 1e-6f * d - 2e-18f;
            int is_beyond = (at - slope_x - slope_y > corner_keep[0]) &
                            (at + slope_x - slope_y > corner_keep[1]) &
                            (at - slope_x + slope_y > corner_keep[2]) &
                            (at + slope_x + slope_y > corner_keep[3]) &
                            (f2 < 1e36f);
            low[c] = is_beyond ? NAN : low[c];
        }
    }
}

/* Computes upper bounds of the distance of each segment from any point of the
 * box, in single precision and rounded up. */
OJ_INLINE void oj_bundle_upper_bounds(const struct oj_points_box *place,
                                      const double *restrict d2,
                                      float *restrict high)
{
    double h = place->h * (1.0 + 1e-6);
    OJ_EIGHT high[c] = (float)(sqrt(d2[c]) * (1.0 + 1e-6) + h);
}

/* Returns the class by which points exclude the feature. */
OJ_INLINE int32_t oj_excluded_class(const struct oj_segment_choice *choice,
                                    int32_t feature)
{
    return choice->excluded != NULL ? choice->excluded[feature] : feature;
}

/* Returns 1 if the search skips all bundles first .. end - 1, which are
 * consecutive. */
OJ_INLINE int oj_choice_skips_bundles(const struct oj_segment_choice *choice,
                                      int64_t first, int64_t end)
{
    return first * OJ_BUNDLE >= choice->skip_first &&
           end * OJ_BUNDLE <= choice->skip_end;
}

/* Returns 1 if the search skips all bundles below a node. */
OJ_INLINE int oj_choice_skips_node(const struct oj_segment_choice *choice,
                                   struct oj_tree_child v)
{
    int shift = 3 * (v.level + 1);
    return oj_choice_skips_bundles(choice, (int64_t)v.child << shift,
                                   ((int64_t)v.child + 1) << shift);
}

/* Masks the segments of a bundle that the search does not consider: sets their
 * d2 to INFINITY and their `low` to NAN. The filter is expensive, so it is
 * tested only for segments within the bound `keep`. */
static __attribute__((noinline, unused)) void
oj_choice_mask_segments(const struct oj_segments *segments,
                        const struct oj_segment_choice *choice, int64_t bundle,
                        float keep, double *d2, float *low)
{
    for (int i = 0; i < OJ_BUNDLE; i++)
    {
        int64_t slot = bundle * OJ_BUNDLE + i;
        if (slot >= choice->first && slot < choice->end &&
            (slot < choice->skip_first || slot >= choice->skip_end) &&
            (choice->left_out == OJ_NO_CLASS ||
             oj_excluded_class(choice, segments->feature[slot]) !=
                 choice->left_out) &&
            (choice->filter == NULL || !(low[i] <= keep) ||
             oj_pair_filter_accepts(choice->filter, choice->row,
                                    segments->feature[slot])))
            continue;
        d2[i] = INFINITY;
        low[i] = NAN; /* NaN is within no bound, not even an infinite one */
    }
}

/* Returns 1 if the search considers a feature that contains a point. A class
 * without segments has an empty range of slots, so its features are not
 * considered. */
OJ_INLINE int
oj_choice_considers_feature(const struct oj_segment_choice *choice,
                            int32_t feature)
{
    return (choice->class_of == NULL ||
            (choice->end > choice->first &&
             choice->class_of[feature] == choice->on_class)) &&
           (choice->skip_class == OJ_NO_CLASS ||
            choice->excluded[feature] != choice->skip_class) &&
           (choice->filter == NULL ||
            oj_pair_filter_accepts(choice->filter, choice->row, feature));
}

/* Returns the maximum distance of any point of the box from a segment. It
 * occurs at a corner, because the distance is convex. */
OJ_INLINE double
oj_points_box_max_segment_distance(const struct oj_points_box *place,
                                   const struct oj_bundle *b, int at)
{
    double ax = b->ax[at], ay = b->ay[at];
    double dx = b->bx[at] - ax, dy = b->by[at] - ay;
    double len2 = dx * dx + dy * dy;
    double inverse = len2 > 1e-290 ? 1.0 / len2 : 0.0;
    double farthest2 = 0.0;
    for (int corner = 0; corner < 4; corner++)
    {
        double ux = (corner & 1 ? place->box.x0 : place->box.x1) - ax;
        double uy = (corner & 2 ? place->box.y0 : place->box.y1) - ay;
        double t = (ux * dx + uy * dy) * inverse;
        double d2;
        t = t > 0.0 ? t : 0.0;
        t = t < 1.0 ? t : 1.0;
        ux -= t * dx;
        uy -= t * dy;
        d2 = ux * ux + uy * uy;
        farthest2 = d2 > farthest2 ? d2 : farthest2;
    }
    return sqrt(farthest2);
}

/* For k > 1, inserts a segment of feature, at squared distance d2 from the
 * centre, into the k best. The loops have a form that compilers vectorise: the
 * 1,000 nearest of 100,000 points or boxes took 2 to 3 times as long with loops
 * that end early. */
OJ_INLINE void oj_best_insert_segment(struct oj_nearest_scratch *s, int64_t k,
                                      int32_t feature, double d2)
{
    int32_t *best_feature = s->best_feature, n = (int32_t)s->n_best, last = n;
    double *best_d2 = s->best_d2;
    for (int32_t i = 0; i < n; i++)
        last = best_feature[i] == feature ? i : last;
    if (last < n && best_d2[last] <= d2)
        return;
    if (last == n)
    {
        if (n < k)
            s->n_best++;
        else
            last = n - 1;
    }
    for (; last >= OJ_BEST_RUN && best_d2[last - OJ_BEST_RUN] > d2;
         last -= OJ_BEST_RUN)
    {
        int32_t from = last - OJ_BEST_RUN;
        memmove(best_d2 + from + 1, best_d2 + from,
                OJ_BEST_RUN * sizeof *best_d2);
        memmove(best_feature + from + 1, best_feature + from,
                OJ_BEST_RUN * sizeof *best_feature);
    }
    for (; last > 0 && best_d2[last - 1] > d2; last--)
    {
        best_d2[last] = best_d2[last - 1];
        best_feature[last] = best_feature[last - 1];
    }
    best_d2[last] = d2;
    best_feature[last] = feature;
}

OJ_INLINE double oj_min_of_eight(const double *v)
{
    double a = v[0] < v[1] ? v[0] : v[1], b = v[2] < v[3] ? v[2] : v[3];
    double c = v[4] < v[5] ? v[4] : v[5], d = v[6] < v[7] ? v[6] : v[7];
    a = a < b ? a : b;
    c = c < d ? c : d;
    return a < c ? a : c;
}

/* Returns an upper bound of the distance from any point of the place to its
 * nearest segment of another class than the point excludes, whichever class
 * that is: the larger bound of the nearest two segments of different classes.
 * Features without a class (below 0) differ from all classes. So do features of
 * a large class, because points that exclude a large class are searched
 * separately. */
static __attribute__((noinline, unused)) double
oj_bound_of_two_classes(const struct oj_segments *segments,
                        struct oj_nearest_scratch *s,
                        const struct oj_points_box *place, int64_t bundle,
                        const double *d2, struct oj_bound *bound)
{
    const int32_t *feature = segments->feature + bundle * OJ_BUNDLE;
    for (int i = 0; i < OJ_BUNDLE; i++)
    {
        int32_t of;
        double within;
        if (!(d2[i] < bound->other2))
            continue;
        of = oj_excluded_class(&s->choice, feature[i]);
        if (segments->large.n > 0 &&
            oj_large_classes_index(&segments->large, of) >= 0)
            of = -1;
        if (of == bound->least_class && of >= 0 && !(d2[i] < bound->least2))
            continue;
        within = oj_points_box_max_segment_distance(
            place, &segments->bundle[bundle], i);
        if (of < 0 || !(d2[i] < bound->least2))
        {
            bound->other2 = d2[i];
            bound->other_within = within;
        }
        else if (of != bound->least_class)
        {
            bound->other2 = bound->least2;
            bound->other_within = bound->least_within;
        }
        if (d2[i] < bound->least2)
        {
            bound->least2 = d2[i];
            bound->least_within = within;
            bound->least_class = of;
        }
    }
    return bound->least_within > bound->other_within ? bound->least_within
                                                     : bound->other_within;
}

/* Lowers the bound by the segments of a bundle; for k > 1, only if `searches`
 * is 1. chooses is 0 if every row considers all segments. */
OJ_INLINE void oj_bound_tighten(const struct oj_segments *segments,
                                struct oj_nearest_scratch *s,
                                const struct oj_points_box *place, int64_t k,
                                int chooses, int searches, int64_t bundle,
                                const double *d2, struct oj_bound *bound)
{
    double within = INFINITY;
    if (k == 1 && chooses && s->choice.excludes &&
        s->choice.left_out == OJ_NO_CLASS)
        within = oj_bound_of_two_classes(segments, s, place, bundle, d2, bound);
    else if (k == 1)
    {
        double least2 = oj_min_of_eight(d2);
        int nearest = 0;
        if (!(least2 < bound->least2))
            return;
        bound->least2 = least2;
        while (d2[nearest] != least2)
            nearest++;
        within = oj_points_box_max_segment_distance(
            place, &segments->bundle[bundle], nearest);
    }
    else
    {
        const int32_t *feature = segments->feature + bundle * OJ_BUNDLE;
        int has_own = s->own->is_used;
        double most2 =
            searches && s->n_best == k ? s->best_d2[k - 1] : INFINITY;
        int any = has_own;
        if (!has_own && searches)
            any = oj_min_of_eight(d2) < most2;
        for (int i = 0; i < OJ_BUNDLE && any; i++)
        {
            if (!(d2[i] < INFINITY) ||
                (has_own &&
                 !oj_feature_bounds_lower(s->own, feature[i], d2[i])))
                continue;
            if (searches && (s->n_best < k || d2[i] < s->best_d2[k - 1]))
                oj_best_insert_segment(s, k, feature[i], d2[i]);
        }
        if (searches && any && s->n_best == k)
            within = sqrt(s->best_d2[k - 1]) + place->h;
    }
    within = within * (1.0 + 1e-12) + bound->slack;
    if (within < bound->within)
        oj_bound_set(bound, &segments->tree, within);
}

/* --- the bounds of corners ------------------------------------------------
 *
 * Let F(p) be the distance from p to the farthest of k features: those that are
 * nearest to the point answered last. The k-th nearest feature of a point p is
 * at most F(p) away. F is the maximum of convex functions, so it is convex. Let
 * P be a tangent plane of the distance from p to some other segment; the
 * distance is nowhere below P, since it is convex. A point of a box is a
 * weighted mean of its corners; F at the point is at most this weighted mean of
 * F at the corners, and P at the point equals this weighted mean of P. So if P
 * lies above F at all corners, it does so in the whole box, and the segment is
 * not needed.
 *
 * Far from all features, features in one direction have distances that differ
 * by little. The bounds of corners keep a few of them, whereas one bound for
 * the whole box keeps all that are farther than the nearest by less than its
 * diagonal. */

/* Sets the bounds of corners from the features of the last point. Returns their
 * maximum. */
OJ_INLINE double oj_bound_set_corners(const struct oj_nearest_carry *carry,
                                      const struct oj_points_box *place,
                                      struct oj_bound *bound)
{
    const double px[OJ_CORNERS] = {place->box.x0, place->box.x1, place->box.x0,
                                   place->box.x1};
    const double py[OJ_CORNERS] = {place->box.y0, place->box.y0, place->box.y1,
                                   place->box.y1};
    double most2[OJ_CORNERS] = {0.0}, most = 0.0;
    for (int64_t i = 0; i < carry->n; i++)
    {
        const struct oj_carried_segment *to = &carry->segment[i];
        double dx = to->bx - to->ax, dy = to->by - to->ay;
        double len2 = dx * dx + dy * dy;
        double inverse = len2 > 1e-290 ? 1.0 / len2 : 0.0;
        for (int v = 0; v < OJ_CORNERS; v++)
        {
            double ux = px[v] - to->ax, uy = py[v] - to->ay;
            double t = (ux * dx + uy * dy) * inverse;
            double d2;
            t = t > 0.0 ? t : 0.0;
            t = t < 1.0 ? t : 1.0;
            ux -= t * dx;
            uy -= t * dy;
            d2 = ux * ux + uy * uy;
            most2[v] = d2 > most2[v] ? d2 : most2[v];
        }
    }
    for (int v = 0; v < OJ_CORNERS; v++)
    {
        double within = sqrt(most2[v]) * (1.0 + 1e-12) + bound->slack;
        bound->corner[v] = within;
        bound->corner_keep[v] = oj_bound_keep_limit(within, bound->slack);
        most = within > most ? within : most;
    }
    bound->has_corners = most > OJ_FAR_OFF * place->h;
    return most;
}

/* The bounds of corners in the form in which they are compared with boxes of
 * the tree, relative to its origin. */
struct oj_corner_boxes
{
    int is_used;
    float cx, cy, hx, hy; /* centre and half size of a box around the place */
    float reach[OJ_CORNERS];
};

OJ_INLINE struct oj_corner_boxes
oj_corner_boxes_make(const struct oj_tree *tree, int64_t k,
                     const struct oj_bound *bound, const float q[4])
{
    struct oj_corner_boxes of = {.is_used = k > 1 && bound->has_corners};
    if (!of.is_used)
        return of;
    float grown = 0.0f;
    of.cx = 0.5f * q[0] + 0.5f * q[2];
    of.cy = 0.5f * q[1] + 0.5f * q[3];
    of.hx = q[2] - of.cx > of.cx - q[0] ? q[2] - of.cx : of.cx - q[0];
    of.hy = q[3] - of.cy > of.cy - q[1] ? q[3] - of.cy : of.cy - q[1];
    of.hx *= 1.0f + 1e-6f;
    of.hy *= 1.0f + 1e-6f;
    for (int i = 0; i < 4; i++)
        grown = fabsf(q[i]) > grown ? fabsf(q[i]) : grown;
    for (int v = 0; v < OJ_CORNERS; v++)
    {
        double reach = (bound->corner[v] + tree->slack) * tree->scale;
        reach = reach * (1.0 + 1e-6) + 1e-6 * grown;
        of.reach[v] = reach < 1e18 ? (float)reach * (1.0f + 1e-6f) : INFINITY;
    }
    return of;
}

/* Sets d2 to infinity for boxes that are beyond the bounds of all corners.
 * Tests no box if none is within reach2. */
OJ_INLINE void
oj_boxes_exclude_by_corners(const struct oj_tree_node *restrict box,
                            const struct oj_corner_boxes *of, float reach2,
                            float *restrict d2)
{
    int any = 0;
    float cx = of->cx, cy = of->cy, hx = of->hx, hy = of->hy;
    float most0 = of->reach[0], most1 = of->reach[1];
    float most2 = of->reach[2], most3 = of->reach[3];
    if (!of->is_used)
        return;
    OJ_EIGHT any |= d2[c] <= reach2;
    if (!any)
        return;
    OJ_EIGHT
    {
        float left = box->x0[c] - cx, right = cx - box->x1[c];
        float below = box->y0[c] - cy, above = cy - box->y1[c];
        float dx = left > right ? left : right;
        float dy = below > above ? below : above;
        float d, slope_x, slope_y, at;
        int is_beyond;
        dx = dx > 0.0f ? dx : 0.0f;
        dy = dy > 0.0f ? dy : 0.0f;
        d = sqrtf(dx * dx + dy * dy);
        slope_x = dx * hx / d;
        slope_y = dy * hy / d;
        at = d - 1e-6f * (d + slope_x + slope_y);
        slope_x = left > right ? -slope_x : slope_x;
        slope_y = below > above ? -slope_y : slope_y;
        is_beyond = (at - slope_x - slope_y > most0) &
                    (at + slope_x - slope_y > most1) &
                    (at - slope_x + slope_y > most2) &
                    (at + slope_x + slope_y > most3);
        d2[c] = is_beyond ? INFINITY : d2[c];
    }
}

/* Begins a search of the k nearest features. Returns 1 if the search must find
 * its own bound; 0 if it is bounded by a reach, or by the features of the point
 * answered last, which is near. */
OJ_INLINE int oj_bound_begin(const struct oj_tree *tree,
                             struct oj_nearest_scratch *s,
                             const struct oj_points_box *place, int64_t k,
                             struct oj_bound *bound)
{
    double dx, dy, far, within;
    if (k == 1)
        return 1;
    s->n_best = 0;
    s->own->is_used = 0;
    if (k == OJ_EVERY_PAIR)
        return 0;
    if (!(s->carry.distance < INFINITY))
        return 1;
    dx = fabs(s->carry.x - place->cx) + place->hx;
    dy = fabs(s->carry.y - place->cy) + place->hy;
    far = sqrt(dx * dx + dy * dy);
    within = oj_bound_set_corners(&s->carry, place, bound);
    if (within < bound->within)
        oj_bound_set(bound, tree, within);
    return !(far <= 2.0 * s->carry.distance + 4.0 * place->h);
}

/* --- the bounds of features ----------------------------------------------- */

/* For k > 1, starts using the bounds of single features, initialised with the k
 * best, unless the search uses them already. */
static inline void oj_feature_bounds_begin(struct oj_nearest_scratch *s)
{
    struct oj_feature_bounds *own = s->own;
    if (own->is_used)
        return;
    if (++own->stamp == 0)
    {
        for (int i = 0; i < OJ_FEATURE_BOUND_SLOTS; i++)
            own->slot[i].stamp = 0;
        own->stamp = 1;
    }
    own->n = 0;
    own->is_used = 1;
    for (int64_t i = 0; i < s->n_best; i++)
        (void)oj_feature_bounds_lower(own, s->best_feature[i], s->best_d2[i]);
}

/* Returns the distance from the box of the place within which segments of the
 * feature may be needed: the smaller one of the feature's own bound and that of
 * the search. */
OJ_INLINE double
oj_feature_bounds_max_distance(const struct oj_nearest_scratch *s,
                               const struct oj_points_box *place,
                               const struct oj_bound *bound, int32_t feature)
{
    double within = sqrt(oj_feature_bounds_least2(s->own, feature)) + place->h;
    within = within * (1.0 + 1e-12) + bound->slack;
    return within < bound->within ? within : bound->within;
}

/* Distance within which segments of a feature are kept, for the last feature
 * only, since the segments of a feature are mostly consecutive. */
struct oj_feature_keep_limit
{
    int32_t feature;
    float keep;
};

/* Returns 1 if a segment of feature, at a distance of at least low, may be
 * needed. *of is the limit of the feature of the last call; it is replaced if
 * feature is another one. */
OJ_INLINE int oj_feature_bounds_may_need_segment(
    const struct oj_nearest_scratch *s, const struct oj_points_box *place,
    const struct oj_bound *bound, int32_t feature, float low,
    struct oj_feature_keep_limit *of)
{
    if (feature != of->feature)
    {
        double within =
            oj_feature_bounds_max_distance(s, place, bound, feature);
        of->feature = feature;
        of->keep = oj_bound_keep_limit(within, bound->slack);
    }
    return low <= of->keep;
}

/* --- fronts --------------------------------------------------------------- */

/* Makes room for the children of one more node. */
static inline oj_status oj_front_reserve(struct oj_front *front,
                                         struct oj_error *err)
{
    int64_t n_used =
        (int64_t)(((uint64_t)front->n + OJ_FANOUT - 1) / OJ_FANOUT);
    if (n_used + 2 <= front->cap_blocks)
        return OJ_OK;
    return oj_reserve(&front->block, n_used, n_used + 2, &front->cap_blocks,
                      sizeof *front->block, err);
}

OJ_INLINE void oj_front_put(struct oj_front *front, int64_t at,
                            const struct oj_tree_node *node, int child,
                            int32_t entry, float d2)
{
    struct oj_front_block *block = &front->block[(uint64_t)at / OJ_FANOUT];
    uint64_t lane = (uint64_t)at % OJ_FANOUT;
    block->box.x0[lane] = node->x0[child];
    block->box.y0[lane] = node->y0[child];
    block->box.x1[lane] = node->x1[child];
    block->box.y1[lane] = node->y1[child];
    block->entry[lane] = entry;
    block->d2[lane] = d2;
}

/* Returns a mask of the boxes of a node that are within reach2: bit c for box
 * c. */
OJ_INLINE uint32_t oj_boxes_mask_within_reach(const float *restrict d2,
                                              float reach2)
{
    static const uint32_t bit[OJ_FANOUT] = {1u << 0, 1u << 1, 1u << 2, 1u << 3,
                                            1u << 4, 1u << 5, 1u << 6, 1u << 7};
    uint32_t within = 0;
    OJ_EIGHT within |= d2[c] <= reach2 ? bit[c] : 0u;
    return within;
}

/* Keeps only the boxes within reach2 of the patch. */
OJ_INLINE void oj_front_compact(struct oj_front *front, float reach2)
{
    int64_t n = 0;
    for (int64_t i = 0; i < front->n; i++)
    {
        const struct oj_front_block *block =
            &front->block[(uint64_t)i / OJ_FANOUT];
        int lane = (int)((uint64_t)i % OJ_FANOUT);
        float d2 = block->d2[lane];
        oj_front_put(front, n, &block->box, lane, block->entry[lane], d2);
        n += d2 <= reach2;
    }
    front->n = n;
}

/* Fills up the last block with infinitely distant boxes. */
OJ_INLINE void oj_front_pad_last_block(struct oj_front *front)
{
    static const struct oj_tree_node nowhere = {
        {INFINITY}, {INFINITY}, {-INFINITY}, {-INFINITY}};
    for (int64_t i = front->n; i % OJ_FANOUT != 0; i++)
        oj_front_put(front, i, &nowhere, 0, -1, INFINITY);
}

/* Sets s->containing to the features whose polygons contain the n points of the
 * patch. */
static inline oj_status
oj_patch_find_containing_features(struct oj_nearest_scratch *s, int n,
                                  const struct oj_ordered_point *point,
                                  struct oj_error *err)
{
    double x[OJ_PATCH], y[OJ_PATCH];
    if (s->cells->n_sets == 0)
        return OJ_OK;
    for (int i = 0; i < n; i++)
    {
        x[i] = point[i].x;
        y[i] = point[i].y;
    }
    return oj_containing_find(s->cells, n, x, y, s->cancel, &s->containing,
                              err);
}

/* Stores in s->near_bundles the bundles that any point of the patch can need
 * for its k nearest features within cap. If they are too many, sets s->too_many
 * to 1 instead. chooses is 0 if every row considers all segments; expected is
 * the estimated number of features per point. */
OJ_INLINE oj_status oj_patch_find_bundles(const struct oj_segments *segments,
                                          struct oj_nearest_scratch *s,
                                          const struct oj_points_box *patch,
                                          int64_t k, int chooses,
                                          int64_t expected, double cap,
                                          struct oj_error *err)
{
    const struct oj_tree *tree = &segments->tree;
    struct oj_front *front = &s->near_bundles;
    struct oj_tree_descent descent;
    struct oj_bound bound = oj_bound_make(tree, cap);
    struct oj_corner_boxes corners;
    int64_t check_at = OJ_MANY_BOXES + expected;
    int32_t first = (int32_t)(s->choice.first / OJ_BUNDLE);
    int32_t last = (int32_t)((s->choice.end - 1) / OJ_BUNDLE);
    int searches, is_all = !chooses || s->choice.is_all;
    double from_centre2[OJ_BUNDLE];
    float low[OJ_BUNDLE];
    front->n = 0;
    s->too_many = 0;
    searches = oj_bound_begin(tree, s, patch, k, &bound);
    if (s->choice.first >= s->choice.end)
        return OJ_OK;
    oj_tree_descent_begin(&descent, tree, &patch->box);
    if (chooses)
        descent.stack[0] = oj_tree_common_ancestor(first, last);
    corners = oj_corner_boxes_make(tree, k, &bound, descent.q);
    while (descent.depth > 0)
    {
        struct oj_tree_child v = descent.stack[--descent.depth];
        const struct oj_tree_node *node =
            &tree->node[tree->level_first[v.level] + v.child];
        float d2[OJ_FANOUT];
        uint32_t within;
        if (v.d2 > bound.reach2 ||
            (chooses && (!oj_tree_child_overlaps(v, first, last) ||
                         oj_choice_skips_node(&s->choice, v))))
            continue;
        if (v.level > 0)
        {
            float own_reach2[OJ_FANOUT];
            if (!corners.is_used)
            {
                oj_tree_descent_push(&descent, node, v, bound.reach2, NULL, 0);
                continue;
            }
            OJ_EIGHT d2[c] = 0.0f;
            oj_boxes_exclude_by_corners(node, &corners, bound.reach2, d2);
            OJ_EIGHT own_reach2[c] = d2[c] > 0.0f ? -1.0f : bound.reach2;
            oj_tree_descent_push(&descent, node, v, bound.reach2, own_reach2,
                                 0);
            continue;
        }
        OJ_TRY(oj_front_reserve(front, err));
        oj_tree_node_distances2(node, descent.q, d2);
        oj_boxes_exclude_by_corners(node, &corners, bound.reach2, d2);
        for (int c = 0; !is_all && c < OJ_FANOUT; c++)
        {
            int32_t bundle = v.child * OJ_FANOUT + c;
            int is_looked_at = bundle >= first && bundle <= last &&
                               !oj_choice_skips_bundles(&s->choice, bundle,
                                                        (int64_t)bundle + 1);
            d2[c] = is_looked_at ? d2[c] : INFINITY;
        }
        within = oj_boxes_mask_within_reach(d2, bound.reach2);
        /* The bundles are not in the cache: prefetches all of them at once. */
        for (uint32_t bits = within; bits != 0; bits &= bits - 1)
        {
            const char *from =
                (const char *)&segments
                    ->bundle[v.child * OJ_FANOUT + __builtin_ctz(bits)];
            for (size_t at = 0; at < sizeof(struct oj_bundle); at += 64)
                __builtin_prefetch(from + at);
        }
        for (; within != 0; within &= within - 1)
        {
            int c = __builtin_ctz(within);
            int32_t bundle = v.child * OJ_FANOUT + c;
            if (!(d2[c] <= bound.reach2))
                continue;
            if (searches)
            {
                oj_bundle_measure(&segments->bundle[bundle], patch, NULL,
                                  from_centre2, low);
                if (!is_all)
                    oj_choice_mask_segments(segments, &s->choice, bundle,
                                            bound.keep, from_centre2, low);
                oj_bound_tighten(segments, s, patch, k, chooses, 1, bundle,
                                 from_centre2, &bound);
            }
            oj_front_put(front, front->n, node, c, bundle, d2[c]);
            front->n++;
        }
        if (front->n > check_at)
        {
            oj_front_compact(front, bound.reach2);
            s->too_many = patch->h > 0.0 && front->n > OJ_MANY_BOXES + expected;
            if (s->too_many)
                return OJ_OK;
            check_at = 2 * front->n + OJ_MANY_BOXES + expected;
        }
    }
    oj_front_compact(front, bound.reach2);
    oj_front_pad_last_block(front);
    return OJ_OK;
}

#endif
