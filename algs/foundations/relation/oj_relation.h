/** The definition of joins: the table of joins, the table of their parameters,
 *  and struct oj_relation, the parameters of one join.  Command line, help, man
 *  page, completion, names of datasets and settings of the library are made
 *  from the two. */
#ifndef OJ_RELATION_H
#define OJ_RELATION_H

#include "../../../flatten/base/oj_status.h"
#include "oj_span_condition.h"
#include "oj_text_similarity_condition.h"
#include "oj_vector_condition.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Joins that compare shapes stand before OJ_OP_SIMILAR: tests try all of
 * these. */
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
    OJ_OP_RELATE,  /**< the DE-9IM pattern in struct oj_relation.mask holds */
    OJ_OP_BBOX,    /**< envelopes intersect */
    OJ_OP_SIMILAR, /**< similar texts or vectors */
    OJ_N_OPS
};

enum oj_ties
{
    OJ_TIES_FIRST = 0, /**< k pairs; equal distances are ordered by tie rank */
    OJ_TIES_ALL        /**< also all that are as near as the k-th */
};

enum oj_distance_to
{
    OJ_TO_INTERIOR = 0, /**< 0 for a point in a polygon, as in GEOS */
    OJ_TO_BOUNDARY      /**< distance to the rings, also from inside */
};

/** The distance between two features. All but the first compare shapes, with
 * polygons as their rings; in the plane they equal GEOS's results bit for bit.
 * Each is at least the minimum distance. */
enum oj_distance_kind
{
    OJ_DISTANCE_LEAST = 0, /**< minimum distance */
    OJ_DISTANCE_HAUSDORFF, /**< maximum over the vertices of either to the
                                other */
    OJ_DISTANCE_DIRECTED_HAUSDORFF, /**< maximum over the vertices of the
                                         input feature; one direction of
                                         GEOS's Hausdorff distance */
    OJ_DISTANCE_HAUSDORFF_POINTS,   /**< maximum over the vertices of either
                                         of the distance to the other's
                                         vertices */
    OJ_DISTANCE_FRECHET, /**< discrete Frechet distance over vertices */
    OJ_DISTANCE_DIRECTED_FROM_JOIN /**< the directed one with sides
                                        exchanged; set only by
                                        oj_relation_transpose() */
};

enum oj_metric
{
    OJ_METRIC_PLANAR = 0, /**< in units of the coordinates */
    OJ_METRIC_SPHERE      /**< great circles, in metres; x longitude, y
                               latitude in degrees; minimum distances need
                               points as input */
};

/** Value of k for all pairs. */
#define OJ_EVERY_PAIR INT32_MAX

/** The parameters of one join. Plain values; owns nothing. A pair is a result
 * if the join holds and no exclusion applies; the k nearest are chosen among
 * such pairs. */
struct oj_relation
{
    enum oj_op op;
    double max_distance; /**< nearest, dwithin, similar: maximum distance,
                              CRS units, >= 0; INFINITY: unbounded (similar:
                              geometries are ignored). Features may have
                              their own maximum (struct
                              oj_flat.max_distance), except with similar */
    int64_t k;           /**< nearest, similar: maximum pairs per input
                              feature, >= 1 */
    enum oj_ties ties;
    enum oj_distance_to distance_to;
    enum oj_distance_kind distance; /**< nearest, dwithin */
    double densify;      /**< with a distance of shapes: maximum length of
                              segments, to which both sides are densified, in
                              units of distances; 0: none */
    double min_distance; /**< nearest, dwithin: minimum distance of a pair */
    enum oj_metric metric;
    char mask[10]; /**< OJ_OP_RELATE: nine of T F * 0 1 2, input side first */
    int exclude_self;          /**< 1: no pairs of equal FIDs (self joins) */
    int unordered_pairs;       /**< 1: only pairs with input FID < join FID;
                                    -1: only those with input FID > join FID */
    int exclude_same_geometry; /**< 1: no pairs of geometries with equal
                                    vertices */
    int n_similar;             /**< conditions on texts; both sides have the
                                    texts (struct oj_flat.texts) */
    struct oj_text_condition similar[OJ_MOST_TEXTS]; /**< [n_similar] */
    struct oj_vector_condition vector; /**< condition on vectors; both sides
                                            have them (struct
                                            oj_flat.vectors) */
    int n_spans; /**< conditions on spans; both sides have the spans (struct
                      oj_flat.spans) */
    struct oj_span_condition spans[OJ_MOST_SPANS]; /**< [n_spans] */
    int any_order; /**< 1: the pairs of a row may come in any order (not with
                        nearest), which saves sorting; lists may also be
                        scattered (oj_matches.h), which saves copying */
};

/** What a join decides by, and how it selects pairs. */
enum oj_op_takes
{
    OJ_TAKES_DISTANCE = 1,  /**< distances of features; the distance is the
                                 measure and can be bounded */
    OJ_TAKES_K = 2,         /**< only the first k pairs of a row, by measure */
    OJ_TAKES_SHAPES = 4,    /**< intersections of shapes or envelopes */
    OJ_TAKES_ATTRIBUTES = 8 /**< texts or vectors: the measure is the first
                                 condition on texts, or else the one on
                                 vectors; geometries are ignored without a
                                 maximum distance */
};

/** A row of the table of joins. A text may be NULL unless the comment excludes
 * it. */
struct oj_op_info
{
    const char *name;        /**< value of -op; never NULL */
    const char *description; /**< one line for --help; never NULL */
    const char *measure;     /**< column of the measure; pairs hold similarities
                                  negated, so that smaller is better */
    unsigned takes;          /**< enum oj_op_takes or'ed */
    int64_t k;               /**< with OJ_TAKES_K: default of -k */
    enum oj_op transposed;   /**< the join with its sides exchanged (see
                                  oj_relation_transpose) */
    const char *synonyms;    /**< names in other systems, "a|b" */
    const char *pattern;     /**< DE-9IM pattern, if a single one decides */
    const char *needs;       /**< options of which one is required, "a|b" */
    const char *needs_text;  /**< description of needs for messages */
    const char *reference;   /**< default backend for -validate, for joins
                                  that no geometry decides; NULL: a backend
                                  for geometries */
};

enum oj_parameter_kind
{
    OJ_PARAMETER_DISTANCE, /**< double, least to most */
    OJ_PARAMETER_COUNT,    /**< int64_t, least to most */
    OJ_PARAMETER_CHOICE,   /**< int or enum: index in arguments, "a|b" */
    OJ_PARAMETER_PATTERN,  /**< char[10]: a DE-9IM pattern */

    /* Only for settings of the library. */
    OJ_PARAMETER_INT,        /**< int, least to most */
    OJ_PARAMETER_OP,         /**< enum oj_op: a name of the table */
    OJ_PARAMETER_BACKEND,    /**< char[]: a backend's name, or auto */
    OJ_PARAMETER_THRESHOLD,  /**< int64_t[2]: a fraction */
    OJ_PARAMETER_THRESHOLDS, /**< n_similar conditions: a list of fractions */
    OJ_PARAMETER_VECTOR,     /**< fields of vectors, with their weights */
    OJ_PARAMETER_TEXT,       /**< char *: a text of any length */
    OJ_PARAMETER_KEPT        /**< a text that is stored exactly as written */
};

/** A parameter of joins: an option of the command and a setting of the library.
 */
struct oj_parameter
{
    const char *name, *arguments, *ops; /**< as in struct oj_option */
    const char *help;                   /**< one line */
    const char *option_help;            /**< help for the command, if it
                                             differs; or NULL */
    enum oj_parameter_kind kind;
    size_t offset; /**< of the member in struct oj_relation */
    double least, most;
};

/** The row of op; never NULL for a valid op. */
const struct oj_op_info *oj_op_get(enum oj_op op);

/** The op of a name (without case), or -1. */
int oj_op_find(const char *name);

/** Writes the names of all joins, separated by `between`; cut to size bytes. */
void oj_op_names(const char *between, char *names, size_t size);

/** Row i of the table of parameters, or NULL past its end. */
const struct oj_parameter *oj_parameter_at(int i);

/** Writes the value of a join's parameter (not of a setting) as a user would
 * write it; cut to size bytes. */
void oj_parameter_put(const struct oj_parameter *parameter,
                      const struct oj_relation *relation, char *text,
                      size_t size);

/** Finds value in choices, "a|b", and returns its index in *out.  Errors begin
 * with dash and name. */
OJ_MUST_USE oj_status oj_choice_read(const char *dash, const char *name,
                                     const char *choices, const char *value,
                                     int *out, struct oj_error *err);

/** Reads a DE-9IM pattern: nine of the letters T F * 0 1 2, in any case. Errors
 * begin with dash and name. */
OJ_MUST_USE oj_status oj_mask_read(const char *dash, const char *name,
                                   const char *value, char out[10],
                                   struct oj_error *err);

/** The default relation: OJ_OP_NEAREST, unbounded, k 1, OJ_TIES_FIRST,
 * OJ_TO_INTERIOR, planar, no exclusions. */
struct oj_relation oj_relation_default(void);

/** Name of the backend that -validate compares with by default. */
const char *oj_relation_reference(const struct oj_relation *relation);

/** OJ_ERR_ARG with the reason if the values are invalid or contradict one
 * another. */
OJ_MUST_USE oj_status oj_relation_check(const struct oj_relation *relation,
                                        struct oj_error *err);

/** The relation with sides exchanged: row b of the other side has the pair (b,
 * a) exactly if row a has the pair (a, b) under *relation.  Not for
 * OJ_OP_NEAREST, whose k is per input row.  unordered_pairs and the direction
 * of a directed distance are reversed. */
struct oj_relation oj_relation_transpose(const struct oj_relation *relation);

/** 1 if only features with a common point (OJ_OP_BBOX: intersecting envelopes)
 * can be pairs; 0 for joins by distance, OJ_OP_DISJOINT, and patterns that no
 * intersection of interiors and boundaries needs to be nonempty for. */
int oj_relation_needs_contact(const struct oj_relation *relation);

/** 1 for joins by distance and joins by predicate. */
static inline int oj_relation_is_of_shapes(const struct oj_relation *relation)
{
    return (oj_op_get(relation->op)->takes &
            ((unsigned)OJ_TAKES_DISTANCE | (unsigned)OJ_TAKES_SHAPES)) != 0;
}

/* The kinds of joins that engines distinguish, decided by the value of op: the
 * CUDA module does not have the table of joins. */

/** 1: only the k nearest of a row are pairs. */
static inline int oj_relation_is_nearest(const struct oj_relation *r)
{
    return r->op == OJ_OP_NEAREST;
}

/** 1: all features within the maximum distance are pairs. */
static inline int oj_relation_is_dwithin(const struct oj_relation *r)
{
    return r->op == OJ_OP_DWITHIN;
}

/** Makes the relation a dwithin: all pairs within its maximum distance. */
static inline void oj_relation_make_dwithin(struct oj_relation *r)
{
    r->op = OJ_OP_DWITHIN;
}

/** 1 when the measure is a distance: nearest and dwithin. */
static inline int oj_relation_is_by_distance(const struct oj_relation *r)
{
    return oj_relation_is_nearest(r) || oj_relation_is_dwithin(r);
}

/** 1 if similar texts or vectors make the pairs, rather than restrict those of
 * another join. */
static inline int oj_relation_is_similar(const struct oj_relation *r)
{
    return r->op == OJ_OP_SIMILAR;
}

/** 1 if envelopes alone make the pairs. */
static inline int oj_relation_is_bbox(const struct oj_relation *r)
{
    return r->op == OJ_OP_BBOX;
}

/** 1 if two points are a pair exactly when they are equal. */
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

/** 1 if the distance is one of shapes, not the minimum distance. */
static inline int oj_relation_compares_shapes(const struct oj_relation *r)
{
    return r->distance != OJ_DISTANCE_LEAST &&
           (oj_op_get(r->op)->takes & OJ_TAKES_DISTANCE) != 0;
}

/** 1 when texts or vectors are compared. */
static inline int oj_relation_compares_attributes(const struct oj_relation *r)
{
    return r->n_similar > 0 || r->vector.is_asked;
}

/** 1 when the measure is a similarity, which pairs hold negated. */
static inline int oj_relation_ranks_by_similarity(const struct oj_relation *r)
{
    return oj_relation_is_similar(r) && r->n_similar > 0;
}

/** 1 if the pairs of a row are sorted by (measure, tie rank) and cut at k
 * (OJ_TAKES_K); 0: all pairs, sorted by tie rank. */
static inline int oj_relation_sorts_by_measure(const struct oj_relation *r)
{
    return oj_relation_is_nearest(r) || oj_relation_is_similar(r);
}

/** Maximum number of pairs of an input row; 0: there is none. An engine can
 * hold more for a multipoint, whose points it joins one by one. */
static inline int64_t
oj_relation_most_pairs_of_row(const struct oj_relation *relation)
{
    return oj_relation_sorts_by_measure(relation) &&
                   relation->ties != OJ_TIES_ALL && relation->k < OJ_EVERY_PAIR
               ? relation->k
               : 0;
}

/** 1 when an input row can have more than one pair. */
static inline int oj_relation_gives_lists(const struct oj_relation *relation)
{
    return !oj_relation_sorts_by_measure(relation) || relation->k > 1 ||
           relation->ties == OJ_TIES_ALL;
}

#ifdef __cplusplus
}
#endif
#endif
