/** The cpu backend is several engines under one name.
 *
 *  A family answers some joins between some kinds of features; the backend asks
 *  its families in order and gives each batch to the first that takes it, so
 *  the fast and special ones come first and the last takes everything.  All
 *  give the same pairs where they overlap.
 */
#ifndef CPU_FAMILY_H
#define CPU_FAMILY_H

#include "oj_backend.h"

struct oj_cpu_family
{
    const char *name; /**< for -explain */

    /** 1 when this family can answer relation for this join side and this
     *  batch of input features; input NULL: for any of points. */
    int (*takes)(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input);

    /* The three functions of struct oj_backend, without its row. */
    oj_status (*index)(const struct oj_flat *join_side, const int32_t *tie_rank,
                       const struct oj_relation *relation,
                       const struct oj_options *options, struct oj_index **out,
                       struct oj_stats *stats, struct oj_error *err);
    oj_status (*join)(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err);
    void (*free_index)(struct oj_index *index);
};

/** Nearest join features of points; nothing left out (cpu_nearest.h). */
extern const struct oj_cpu_family oj_cpu_nearest_points;
/** Points in polygons: intersects, within, covered by. */
extern const struct oj_cpu_family oj_cpu_points_in_polygons;
/** Points within a distance of points. */
extern const struct oj_cpu_family oj_cpu_near_points;
/** nearest and dwithin between features of any kinds. */
extern const struct oj_cpu_family oj_cpu_distance;
/** nearest and dwithin on the sphere, points as input. */
extern const struct oj_cpu_family oj_cpu_sphere;
/** Predicates between features of any kinds. */
extern const struct oj_cpu_family oj_cpu_predicate;

#endif
