/** What a join asks: the table of joins, that of their parameters, and the
 *  parameters of one of them.  Command line, help, man page, completion, names
 *  of datasets and settings of the library are made from the two. */
#ifndef OJ_RELATION_H
#define OJ_RELATION_H

#include "../../../flatten/base/oj_status.h"
#include "oj_text_similarity_condition.h"
#include "oj_vector_condition.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    OJ_OP_RELATE,  /**< the DE-9IM pattern in struct oj_relation.mask */
    OJ_OP_BBOX,    /**< envelopes intersect */
    OJ_OP_SIMILAR, /**< similar texts or vectors */
    OJ_N_OPS
};

enum oj_ties
{
    OJ_TIES_FIRST = 0, /**< k pairs; equal distances in tie order */
    OJ_TIES_ALL        /**< and all that are as far as the k-th */
};

enum oj_distance_to
{
    OJ_TO_INTERIOR = 0, /**< 0 for a point in a polygon, as GEOS says */
    OJ_TO_BOUNDARY      /**< to the rings, also from inside (the paper) */
};

/** What is measured between two features. All but the first compare shapes,
 *  with polygons as their rings, and in the plane are what GEOS gives, bit for
 *  bit; each is at least the least distance. */
enum oj_distance_kind
{
    OJ_DISTANCE_LEAST = 0, /**< between the nearest points of the two */
    OJ_DISTANCE_HAUSDORFF, /**< greatest from a vertex of either one to the
                                other */
    OJ_DISTANCE_DIRECTED_HAUSDORFF, /**< from a vertex of the input feature to
                                         the join feature; GEOS's half of it */
    OJ_DISTANCE_HAUSDORFF_POINTS,   /**< from a vertex of either one to the
                                         vertices of the other */
    OJ_DISTANCE_FRECHET, /**< discrete: both walked from end to end, vertex by
                              vertex, on the shortest leash */
    OJ_DISTANCE_DIRECTED_FROM_JOIN /**< the directed one from the join feature;
                                        only of oj_relation_transpose() */
};

enum oj_metric
{
    OJ_METRIC_PLANAR = 0, /**< in the units of the coordinates */
    OJ_METRIC_SPHERE      /**< great circles, metres; x longitude, y latitude
                               in degrees; for the least distance the input
                               side is points */
};

/** k of a join that takes all pairs that count. */
#define OJ_EVERY_PAIR INT32_MAX

/** One join, asked. Plain values; owns nothing. A pair counts when the join
 *  holds and none of the exclusions does; the k nearest are chosen among the
 *  pairs that count. */
struct oj_relation
{
    enum oj_op op;
    double max_distance; /**< nearest, dwithin, similar: CRS units, >= 0;
                              INFINITY: unbounded (similar: geometries do not
                              matter); features may have their own, but not of
                              similar (struct oj_flat.max_distance) */
    int64_t k;           /**< nearest, similar: join features per input
                              feature, >= 1 */
    enum oj_ties ties;
    enum oj_distance_to distance_to;
    enum oj_distance_kind distance; /**< nearest, dwithin */
    double densify; /**< of shapes: vertices are put in so that no segment is
                         longer, in units of distances; 0: none */
    double min_distance; /**< nearest, dwithin: only pairs at least so far */
    enum oj_metric metric;
    char mask[10]; /**< OJ_OP_RELATE: nine of T F * 0 1 2, input side first */
    int exclude_self;          /**< 1: no pairs of equal FIDs (self joins) */
    int unordered_pairs;       /**< 1: only pairs with input FID < join FID;
                                    -1: only those with input FID > join FID */
    int exclude_same_geometry; /**< 1: no pairs of equal vertices */
    int n_similar;             /**< conditions on texts, which both sides have
                                    (struct oj_flat.texts) */
    struct oj_text_condition similar[OJ_MOST_TEXTS]; /**< [n_similar] */
    struct oj_vector_condition vector; /**< on vectors, which both sides have
                                            (struct oj_flat.vectors) */
    int any_order; /**< 1: pairs of a row may come in any order (not nearest),
                        which saves the sorting, and lists may be scattered
                        (oj_matches.h), which saves much of the rest */
};

/** What decides the pairs of a join, and how. */
enum oj_op_takes
{
    OJ_TAKES_DISTANCE = 1, /**< distances of features, which are its measure and
                                can be bounded */
    OJ_TAKES_K = 2,        /**< of a row's pairs the first k by measure */
    OJ_TAKES_SHAPES = 4,   /**< what features or their envelopes have in
                                common */
    OJ_TAKES_ATTRIBUTES = 8 /**< their texts or vectors: the first condition
                                  on texts is its measure, without one that on
                                  vectors; geometries do not matter without a
                                  greatest distance */
};

/** A row of the table of joins. Texts that are not named may be NULL. */
struct oj_op_info
{
    const char *name;        /**< value of -op; never NULL */
    const char *description; /**< one line for --help; never NULL */
    const char *measure; /**< the column that holds it; pairs hold similarities
                              negated, so that the best is the least */
    unsigned takes;      /**< enum oj_op_takes or'ed */
    int64_t k;           /**< where OJ_TAKES_K: pairs of a row without -k */
    enum oj_op transposed;  /**< the join with its sides exchanged (see
                                 oj_relation_transpose) */
    const char *synonyms;   /**< its names in other systems, "a|b" */
    const char *pattern;    /**< of DE-9IM, where one decides */
    const char *needs;      /**< one of these options there must be, "a|b" */
    const char *needs_text; /**< the same in words */
    const char *reference;  /**< the backend that it is compared with where no
                                 geometry decides; NULL: one of geometries */
};

enum oj_parameter_kind
{
    OJ_PARAMETER_DISTANCE, /**< double, from least to most */
    OJ_PARAMETER_COUNT,    /**< int64_t, from least to most */
    OJ_PARAMETER_CHOICE,   /**< int or an enum: place in arguments, "a|b" */
    OJ_PARAMETER_PATTERN,  /**< char[10]: a DE-9IM pattern */

    /* Of settings of the library alone. */
    OJ_PARAMETER_INT,        /**< int, from least to most */
    OJ_PARAMETER_OP,         /**< enum oj_op: a name of the table */
    OJ_PARAMETER_BACKEND,    /**< char[]: a backend's name, or auto */
    OJ_PARAMETER_THRESHOLD,  /**< int64_t[2]: a fraction */
    OJ_PARAMETER_THRESHOLDS, /**< n_similar conditions: a list of fractions */
    OJ_PARAMETER_VECTOR,     /**< fields of vectors, with their weights */
    OJ_PARAMETER_TEXT,       /**< char *: a text of any length */
    OJ_PARAMETER_KEPT        /**< a text that is kept as it is written */
};

/** What a join can be told: an option of the command, and a setting of the
 *  library. */
struct oj_parameter
{
    const char *name, *arguments, *ops; /**< as in struct oj_option */
    const char *help;                   /**< one line */
    const char *option_help;            /**< that of the command, or NULL */
    enum oj_parameter_kind kind;
    size_t offset; /**< in struct oj_relation */
    double least, most;
};

/** The row of op; never NULL for a valid op. */
const struct oj_op_info *oj_op_get(enum oj_op op);

/** The op of a name (without case), or -1. */
int oj_op_find(const char *name);

/** The names of all, with between between them; cut to size bytes. */
void oj_op_names(const char *between, char *names, size_t size);

/** Row i of the table of parameters, or NULL past its end. */
const struct oj_parameter *oj_parameter_at(int i);

/** The value of a parameter of a join, not of a setting, as it is written, cut
 *  to size bytes. */
void oj_parameter_put(const struct oj_parameter *parameter,
                      const struct oj_relation *relation, char *text,
                      size_t size);

/** The place of value in choices, "a|b".  Errors begin with dash and name. */
OJ_MUST_USE oj_status oj_choice_read(const char *dash, const char *name,
                                     const char *choices, const char *value,
                                     int *out, struct oj_error *err);

/** A DE-9IM pattern: nine of the letters T F * 0 1 2, in any case. Errors begin
 *  with dash and name. */
OJ_MUST_USE oj_status oj_mask_read(const char *dash, const char *name,
                                   const char *value, char out[10],
                                   struct oj_error *err);

/** OJ_OP_NEAREST, unbounded, k 1, first of ties, to the interior, planar,
 *  nothing excluded. */
struct oj_relation oj_relation_default(void);

/** The backend that a join is compared with where none is named. */
const char *oj_relation_reference(const struct oj_relation *relation);

/** OJ_ERR_ARG with a clear line when the values make no sense together. */
OJ_MUST_USE oj_status oj_relation_check(const struct oj_relation *relation,
                                        struct oj_error *err);

/** *relation with its sides exchanged: row b of the other side has the pair
 *  (b, a) exactly where row a has the pair (a, b) under *relation.  Not for
 *  OJ_OP_NEAREST, whose k belong to one side.  unordered_pairs, which tells the
 *  sides apart, becomes negative: input FID > join FID.  So does the direction
 *  of a directed distance. */
struct oj_relation oj_relation_transpose(const struct oj_relation *relation);

/** 1 when only features with a common point (OJ_OP_BBOX: their envelopes) can
 * be pairs; 0 for joins by distance, OJ_OP_DISJOINT, and a pattern that asks
 * for nothing in common of interiors and boundaries. */
int oj_relation_needs_contact(const struct oj_relation *relation);

/** 1 for joins by distance and by what features have in common. */
static inline int oj_relation_is_of_shapes(const struct oj_relation *relation)
{
    return (oj_op_get(relation->op)->takes &
            ((unsigned)OJ_TAKES_DISTANCE | (unsigned)OJ_TAKES_SHAPES)) != 0;
}

/* The kinds of joins that engines tell apart. By the value of op: the CUDA
 * module does not have the table. */

/** 1: of a row's pairs the k of least distance. */
static inline int oj_relation_is_nearest(const struct oj_relation *r)
{
    return r->op == OJ_OP_NEAREST;
}

/** 1: all pairs within a distance. */
static inline int oj_relation_is_dwithin(const struct oj_relation *r)
{
    return r->op == OJ_OP_DWITHIN;
}

/** Makes it dwithin: all pairs within its greatest distance, in place of those
 *  that it would choose. */
static inline void oj_relation_make_dwithin(struct oj_relation *r)
{
    r->op = OJ_OP_DWITHIN;
}

/** 1 when the measure is a distance: nearest and dwithin. */
static inline int oj_relation_is_by_distance(const struct oj_relation *r)
{
    return oj_relation_is_nearest(r) || oj_relation_is_dwithin(r);
}

/** 1 when similar texts or vectors make the pairs, and not only restrict them.
 */
static inline int oj_relation_is_similar(const struct oj_relation *r)
{
    return r->op == OJ_OP_SIMILAR;
}

/** 1 when envelopes make the pairs, whatever features are. */
static inline int oj_relation_is_bbox(const struct oj_relation *r)
{
    return r->op == OJ_OP_BBOX;
}

/** 1 when shapes are compared instead of the least distance taken. */
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

/** 1 when pairs of a row are sorted by (measure, tie rank) and the first k are
 *  taken, 0: all, by tie rank: the joins of OJ_TAKES_K. */
static inline int oj_relation_sorts_by_measure(const struct oj_relation *r)
{
    return oj_relation_is_nearest(r) || oj_relation_is_similar(r);
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
