/** The definition of joins: the table of joins (-op), the table of their
 * parameters, and struct oj_relation with the parameters of one join. Help, man
 * page, completion, option names of JOIN: and library settings are generated
 * from the two tables. */
#ifndef OJ_RELATION_H
#define OJ_RELATION_H

#include "../../../flatten/base/oj_status.h"
#include "../kernels/oj_ellipsoid.h"
#include "../kernels/oj_heading.h"
#include "oj_span_condition.h"
#include "oj_text_similarity_condition.h"
#include "oj_vector_condition.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Joins that compare geometries precede OJ_OP_SIMILAR; tests rely on this
 * order. */
enum oj_op
{
    OJ_OP_NEAREST = 0,
    OJ_OP_DWITHIN,
    OJ_OP_INTERSECTS,
    OJ_OP_WITHIN,
    OJ_OP_CONTAINS,
    OJ_OP_COVERS,
    OJ_OP_COVEREDBY,
    OJ_OP_CONTAINS_PROPERLY,
    OJ_OP_TOUCHES,
    OJ_OP_CROSSES,
    OJ_OP_OVERLAPS,
    OJ_OP_EQUALS,
    OJ_OP_DISJOINT,
    OJ_OP_RELATE,     /**< the DE-9IM matrix of the pair matches the pattern
                           oj_relation.mask */
    OJ_OP_BBOX,       /**< envelopes intersect */
    OJ_OP_SIMILAR,    /**< similar texts or vectors */
    OJ_OP_ATTRIBUTES, /**< equal values of the fields of -on (struct
                           oj_flat.on_class); geometries do not matter */
    OJ_N_OPS
};

/** Which pairs -k keeps if several of a row have equal measures. */
enum oj_ties
{
    OJ_TIES_FIRST = 0, /**< k pairs; ties are ordered by tie rank */
    OJ_TIES_ALL /**< k pairs, and all other pairs of the row whose measure
                     equals that of the k-th */
};

/** The point set of a polygon to which distances are measured. */
enum oj_distance_to
{
    OJ_TO_INTERIOR = 0, /**< a point inside a polygon has distance 0, as in
                             GEOS */
    OJ_TO_BOUNDARY      /**< distance to the rings, also for points inside */
};

/** Definitions of the distance between two features. All but the first (minimum
 * distance) compare shapes, taking polygons as their rings. In the plane the
 * distances equal GEOS's results bit for bit. */
enum oj_distance_kind
{
    OJ_DISTANCE_LEAST = 0, /**< minimum distance */
    OJ_DISTANCE_HAUSDORFF, /**< maximum over both features' vertices of the
                                distance to the other feature */
    OJ_DISTANCE_DIRECTED_HAUSDORFF, /**< maximum over the input feature's
                                         vertices only: one direction of the
                                         Hausdorff distance */
    OJ_DISTANCE_HAUSDORFF_POINTS,   /**< like OJ_DISTANCE_HAUSDORFF, but the
                                         distance is to the nearest vertex of
                                         the other feature */
    OJ_DISTANCE_FRECHET, /**< discrete Frechet distance over vertices */
    OJ_DISTANCE_DIRECTED_FROM_JOIN /**< OJ_DISTANCE_DIRECTED_HAUSDORFF with
                                        sides exchanged; set only by
                                        oj_relation_transpose() */
};

/** How distances are measured, and their unit. */
enum oj_metric
{
    OJ_METRIC_PLANAR = 0, /**< in units of the coordinates */
    OJ_METRIC_SPHERE,     /**< great circles, in metres; x is longitude, y
                               latitude, in degrees; minimum distances need
                               points as input */
    OJ_METRIC_ELLIPSOID   /**< length of geodesics on oj_relation.ellipsoid, in
                               metres; one side must have points only */
};

/** Which pairs of a row are enough. An engine may leave out the other pairs. */
enum oj_enough_pairs
{
    OJ_ENOUGH_ALL = 0, /**< all pairs of the row */
    OJ_ENOUGH_FIRST,   /**< the first pair of the row in tie order. With
                            OJ_OP_ATTRIBUTES, an engine that lists it alone sets
                            its measure to the number of pairs of the row;
                            engines that list all pairs set NaN */
    OJ_ENOUGH_ANY      /**< any pair of the row; not with OJ_OP_ATTRIBUTES */
};

/** Value of k that asks for all pairs. */
#define OJ_EVERY_PAIR INT32_MAX

/** The parameters of one join. Plain values; owns nothing. A pair is a result
 * if the join and all conditions hold and no exclusion applies; the k nearest
 * are chosen among such pairs. */
struct oj_relation
{
    enum oj_op op;
    double max_distance; /**< nearest, dwithin, similar: maximum distance in CRS
                              units, >= 0; INFINITY: no maximum (similar then
                              ignores geometries). Features may have maxima of
                              their own (struct oj_flat.max_distance), except
                              with similar. */
    int64_t k;           /**< nearest, similar: maximum pairs per input
                              feature, >= 1 */
    enum oj_ties ties;
    enum oj_distance_to distance_to;
    enum oj_distance_kind distance; /**< nearest, dwithin */
    double densify;      /**< Hausdorff and Frechet distances: maximum length of
                              segments. Longer ones are densified on both sides;
                              in units of distances; 0: no limit */
    double min_distance; /**< nearest, dwithin: minimum distance of a pair */
    enum oj_metric metric;
    struct oj_ellipsoid ellipsoid; /**< OJ_METRIC_ELLIPSOID: from the CRS */
    char mask[10]; /**< OJ_OP_RELATE: DE-9IM pattern, nine of T F * 0 1 2; its
                        rows are for the input side (oj_matrix.h) */
    int exclude_self;          /**< 1: no pairs of equal FIDs (self joins) */
    int unordered_pairs;       /**< 1: only pairs with input FID < join FID; -1:
                                    only input FID > join FID; 0: all */
    int exclude_same_geometry; /**< 1: no pairs of geometries with equal
                                    vertices */
    int n_similar;             /**< number of conditions on texts; both sides
                                    need texts (struct oj_flat.texts) */
    struct oj_text_condition similar[OJ_MOST_TEXTS]; /**< [n_similar] */
    struct oj_vector_condition vector; /**< condition on vectors; both sides
                                            need vectors (struct
                                            oj_flat.vectors) */
    int n_spans; /**< number of conditions on spans; both sides need the spans
                      (struct oj_flat.spans) */
    struct oj_span_condition spans[OJ_MOST_SPANS]; /**< [n_spans] */
    /** nearest, dwithin: condition on the direction of the join side's segments
     * (lines and rings); needs struct oj_flat.heading of the input. */
    struct oj_heading_condition heading;
    int any_order;    /**< 1: the pairs of a row may be in any order (not with
                           nearest), which saves sorting; *matches may then be
                           scattered (oj_matches.h), which saves copying */
    int enough_pairs; /**< enum oj_enough_pairs */
};

/** Flags: what decides a join, and which of its parameters apply. */
enum oj_op_takes
{
    OJ_TAKES_DISTANCE = 1,  /**< decided by the distance of features, which is
                                 also the measure */
    OJ_TAKES_K = 2,         /**< only the first k pairs of a row by measure are
                                 kept */
    OJ_TAKES_SHAPES = 4,    /**< decided by the DE-9IM matrix of the shapes, or
                                 by their envelopes (OJ_OP_BBOX) */
    OJ_TAKES_ATTRIBUTES = 8 /**< decided by texts, vectors or equal values. The
                                 measure, if there is one, is that of the first
                                 condition on texts, otherwise on vectors.
                                 Geometries only matter with a maximum distance
                               */
};

/** A row of the table of joins. Texts may be NULL unless stated. */
struct oj_op_info
{
    const char *name;        /**< value of -op; never NULL */
    const char *description; /**< one line of the help text; never NULL */
    const char *measure;     /**< name of the output column of the measure.
                                  (Pairs hold similarities negated, so that
                                  smaller is better.) */
    unsigned takes;          /**< enum oj_op_takes or'ed */
    int64_t k;               /**< default of -k, with OJ_TAKES_K */
    enum oj_op transposed;   /**< the join with exchanged sides (see
                                  oj_relation_transpose()) */
    const char *synonyms;    /**< names in other systems, "a|b" */
    const char *pattern;     /**< DE-9IM pattern, if a single pattern decides
                                  the join */
    const char *needs;       /**< options, at least one of which must be given,
                                  "a|b" */
    const char *needs_text;  /**< description of `needs` for messages */
    const char *reference;   /**< default backend of -validate, for joins
                                  without geometries; NULL: the default for
                                  geometries */
};

/** Type of a parameter's value, and its syntax. */
enum oj_parameter_kind
{
    OJ_PARAMETER_DISTANCE, /**< double, from least to most */
    OJ_PARAMETER_COUNT,    /**< int64_t, from least to most */
    OJ_PARAMETER_CHOICE,   /**< int or enum: index of a word in `arguments`,
                                "a|b" */
    OJ_PARAMETER_PATTERN,  /**< char[10]: a DE-9IM pattern */

    /* The following are for settings of the library only. */
    OJ_PARAMETER_INT,        /**< int, from least to most */
    OJ_PARAMETER_OP,         /**< enum oj_op: the name of a join */
    OJ_PARAMETER_BACKEND,    /**< char[]: a backend's name or auto */
    OJ_PARAMETER_THRESHOLD,  /**< int64_t[2]: a fraction */
    OJ_PARAMETER_THRESHOLDS, /**< list of fractions: minimum similarity of each
                                  of n_similar conditions */
    OJ_PARAMETER_VECTOR,     /**< fields of vectors, with their weights */
    OJ_PARAMETER_TEXT,       /**< char *: a text of any length */
    OJ_PARAMETER_KEPT        /**< char *: a text that is stored unparsed */
};

/** A parameter of joins: an option of the command and a setting of the library.
 */
struct oj_parameter
{
    const char *name;
    const char *arguments;   /**< syntax of the value */
    const char *ops;         /**< joins that take the parameter,
                                  "nearest|dwithin" */
    const char *help;        /**< one line */
    const char *option_help; /**< help for the command; NULL: equal
                                  to help */
    enum oj_parameter_kind kind;
    size_t offset; /**< offset of the member in struct oj_relation */
    double least, most;
};

/** Returns the row of a join, never NULL for a valid op. */
const struct oj_op_info *oj_op_get(enum oj_op op);

/** Finds a join by name, ignoring case. Returns its enum oj_op, or -1. */
int oj_op_find(const char *name);

/** Writes the names of all joins with `between` between them; truncated to size
 * bytes. */
void oj_op_names(const char *between, char *names, size_t size);

/** Returns row i of the table of parameters, or NULL past its end. */
const struct oj_parameter *oj_parameter_at(int i);

/** Writes the value of a join's parameter (not of a setting) in the user's
 * syntax; truncated to size bytes. */
void oj_parameter_write_value(const struct oj_parameter *parameter,
                              const struct oj_relation *relation, char *text,
                              size_t size);

/** Sets *out to the index of value in choices, "a|b". Error messages begin with
 * dash and name. */
OJ_MUST_USE oj_status oj_choice_read(const char *dash, const char *name,
                                     const char *choices, const char *value,
                                     int *out, struct oj_error *err);

/** Parses a DE-9IM pattern: nine of the letters T F * 0 1 2, in any case. Error
 * messages begin with dash and name. */
OJ_MUST_USE oj_status oj_mask_read(const char *dash, const char *name,
                                   const char *value, char out[10],
                                   struct oj_error *err);

/** Returns the default relation: OJ_OP_NEAREST, no maximum distance, k 1,
 * OJ_TIES_FIRST, OJ_TO_INTERIOR, planar, no exclusions. */
struct oj_relation oj_relation_default(void);

/** Returns the name of the backend that -validate uses by default. */
const char *oj_relation_reference_backend(const struct oj_relation *relation);

/** OJ_ERR_ARG with the reason if parameters are invalid or contradict each
 * other. */
OJ_MUST_USE oj_status oj_relation_check(const struct oj_relation *relation,
                                        struct oj_error *err);

/** Returns the relation after exchanging the sides: it has the pair (b, a)
 * exactly if *relation has (a, b). unordered_pairs and directed distances are
 * reversed, and all pairs are listed. Not for OJ_OP_NEAREST, whose k counts per
 * input row. */
struct oj_relation oj_relation_transpose(const struct oj_relation *relation);

/** Returns 1 if the features of every pair have a common point (for OJ_OP_BBOX,
 * their envelopes). Returns 0 for joins by distance or by attributes, for
 * OJ_OP_DISJOINT, and for DE-9IM patterns that disjoint features can match. */
int oj_relation_needs_contact(const struct oj_relation *relation);

/** Returns 1 for joins by distance and joins by predicate: the geometries
 *  decide. */
static inline int oj_relation_is_of_shapes(const struct oj_relation *relation)
{
    return (oj_op_get(relation->op)->takes &
            ((unsigned)OJ_TAKES_DISTANCE | (unsigned)OJ_TAKES_SHAPES)) != 0;
}

/* Kinds of joins that engines distinguish. These functions compare op, because
 * the CUDA module does not contain the table of joins. */

/** Returns 1 if distances are along the surface of the Earth, in metres,
 * between longitudes and latitudes; 0 if they are in the plane. */
static inline int oj_relation_is_on_globe(const struct oj_relation *r)
{
    return r->metric != OJ_METRIC_PLANAR;
}

/** Returns the ellipsoid on which distances are measured, or NULL with other
 *  metrics. */
static inline const struct oj_ellipsoid *
oj_relation_ellipsoid(const struct oj_relation *r)
{
    return r->metric == OJ_METRIC_ELLIPSOID ? &r->ellipsoid : NULL;
}

/** Returns 1 if only the k nearest features of a row are pairs
 *  (OJ_OP_NEAREST). */
static inline int oj_relation_is_nearest(const struct oj_relation *r)
{
    return r->op == OJ_OP_NEAREST;
}

/** Returns 1 if all features within the maximum distance are pairs
 *  (OJ_OP_DWITHIN). */
static inline int oj_relation_is_dwithin(const struct oj_relation *r)
{
    return r->op == OJ_OP_DWITHIN;
}

/** Changes the join to dwithin; the maximum distance remains. */
static inline void oj_relation_make_dwithin(struct oj_relation *r)
{
    r->op = OJ_OP_DWITHIN;
}

/** Changes the join to the nearest feature; the maximum distance remains. */
static inline void oj_relation_make_nearest(struct oj_relation *r)
{
    r->op = OJ_OP_NEAREST;
    r->k = 1;
    r->ties = OJ_TIES_FIRST;
}

/** Returns 1 if the measure is a distance: nearest and dwithin. */
static inline int oj_relation_is_by_distance(const struct oj_relation *r)
{
    return oj_relation_is_nearest(r) || oj_relation_is_dwithin(r);
}

/** Returns 1 if texts or vectors themselves are joined (OJ_OP_SIMILAR), rather
 * than being a condition of another join. */
static inline int oj_relation_is_similar(const struct oj_relation *r)
{
    return r->op == OJ_OP_SIMILAR;
}

/** Returns 1 if equal values of -on alone decide. */
static inline int
oj_relation_is_of_equal_attributes(const struct oj_relation *r)
{
    return r->op == OJ_OP_ATTRIBUTES;
}

/** Returns 1 if envelopes alone decide. */
static inline int oj_relation_is_bbox(const struct oj_relation *r)
{
    return r->op == OJ_OP_BBOX;
}

/** Returns 1 if two points are a pair of this join exactly if they are
 *  equal. */
static inline int oj_relation_pairs_equal_points(const struct oj_relation *r)
{
    switch (r->op)
    {
        case OJ_OP_BBOX:
        case OJ_OP_INTERSECTS:
        case OJ_OP_WITHIN:
        case OJ_OP_CONTAINS:
        case OJ_OP_COVERS:
        case OJ_OP_COVEREDBY:
        case OJ_OP_CONTAINS_PROPERLY:
        case OJ_OP_EQUALS:
            return 1;
        default:
            return 0;
    }
}

/** Returns 1 if the distance is a Hausdorff or Frechet distance, not the
 * minimum distance. */
static inline int oj_relation_compares_shapes(const struct oj_relation *r)
{
    return r->distance != OJ_DISTANCE_LEAST &&
           (oj_op_get(r->op)->takes & OJ_TAKES_DISTANCE) != 0;
}

/** Returns 1 if texts or vectors are compared, by the join or by a
 *  condition. */
static inline int oj_relation_compares_attributes(const struct oj_relation *r)
{
    return r->n_similar > 0 || r->vector.is_asked;
}

/** Returns 1 if the measure is a similarity, which pairs hold negated. */
static inline int oj_relation_ranks_by_similarity(const struct oj_relation *r)
{
    return oj_relation_is_similar(r) && r->n_similar > 0;
}

/** Returns 1 if the pairs of a row are sorted by (measure, tie rank) and
 * limited to k (OJ_TAKES_K). Returns 0 if all pairs are kept, sorted by tie
 * rank. */
static inline int oj_relation_sorts_by_measure(const struct oj_relation *r)
{
    return oj_relation_is_nearest(r) || oj_relation_is_similar(r);
}

/** Returns the maximum number of pairs of an input row in the result, or 0 if
 * there is no maximum. Engines may hold more for a multipoint, which they join
 * point by point. */
static inline int64_t
oj_relation_most_pairs_of_row(const struct oj_relation *relation)
{
    return oj_relation_sorts_by_measure(relation) &&
                   relation->ties != OJ_TIES_ALL && relation->k < OJ_EVERY_PAIR
               ? relation->k
               : 0;
}

/** Returns 1 if an input row can have more than one pair. */
static inline int
oj_relation_allows_many_pairs(const struct oj_relation *relation)
{
    return !oj_relation_sorts_by_measure(relation) || relation->k > 1 ||
           relation->ties == OJ_TIES_ALL;
}

#ifdef __cplusplus
}
#endif
#endif
