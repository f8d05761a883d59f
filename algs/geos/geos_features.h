/** The features of one side of a join as GEOS geometries, made when they are
 *  first asked for; the latest used are kept.
 *
 *  What is kept is bounded: by number, and by vertices (the one in use apart).
 *  A feature always has the same place, one of a set of four, and takes the
 *  one that was used longest ago: neighbours in space, asked for in turn, are
 *  made once.
 *
 *  Belongs to one thread and to one handle of GEOS.
 */
#ifndef GEOS_FEATURES_H
#define GEOS_FEATURES_H

#include "../base/oj_boxes.h"
#include "../pairs/oj_measures.h"
#include "geos_shapes.h"

/** Parts that are united where a point lies on the boundaries of all of them;
 *  of more the whole feature is. */
#define OJ_MOST_BESIDE 8

/** A geometry and what is prepared of it; NULL: not made yet. */
struct oj_geos_prepared
{
    GEOSGeometry *geometry;
    const GEOSPreparedGeometry *prepared;
};

/** A feature that is kept. */
struct oj_geos_kept
{
    int64_t feature; /**< -1: none */
    uint64_t used;   /**< when last */
    unsigned kinds;  /**< enum oj_part_kind or'ed */
    int64_t n_vertices;
    int64_t n_components;
    GEOSGeometry *geometry;
    int is_apart; /**< polygon parts: 1 they are apart, 0 not, -1 not known */
    struct oj_geos_prepared whole; /**< the union of the parts; without geometry
                                        also where that is geometry */
    struct oj_geos_prepared *locator; /**< [n_locators] of oj_geos_rings() */
    int64_t n_locators; /**< 0: none asked for yet; 1 for all polygon parts
                             together, or one for each part */
    struct oj_geos_prepared beside; /**< the union of a few parts */
    int64_t n_beside, part_beside[OJ_MOST_BESIDE]; /**< which; n 0: none yet */
    struct oj_box *box; /**< [n_components] widened; NULL: not made yet */
};

/** Owner; zeroed memory with geos set is one without a layer. */
struct oj_geos_features
{
    GEOSContextHandle_t geos;
    const struct oj_flat *flat;
    int rings_as_lines; /**< 1: polygons are taken for their rings */
    int keep_all;       /**< 1: for a side that is to be kept as a whole */
    uint64_t now;
    int64_t n_sets, n_vertices;
    struct oj_geos_kept *kept; /* [n_sets * 4] */
};

/** Takes another layer; everything kept is dropped. */
void oj_geos_features_set(struct oj_geos_features *features,
                          const struct oj_flat *flat);

/** A feature that has parts, valid until the next call for this side. NULL
 *  when GEOS refuses it or memory is out: its message handler knows which, or
 *  had nothing to say: memory. */
struct oj_geos_kept *oj_geos_features_get(struct oj_geos_features *features,
                                          int64_t feature);

/** The feature as the union of its parts: kept's geometry where its polygon
 *  parts are apart, which is asked of GEOS (a valid MultiPolygon), else GEOS's
 *  unary union of them, with the parts of other kinds; or NULL, as above.  What
 *  is not valid within a part stays as it is. */
const GEOSGeometry *oj_geos_features_whole(struct oj_geos_features *features,
                                           struct oj_geos_kept *kept);

/** The prepared geometry of that, or NULL, as above. */
const GEOSPreparedGeometry *
oj_geos_features_prepare(struct oj_geos_features *features,
                         struct oj_geos_kept *kept);

/** Makes the list of prepared geometries that tell where points lie in kept,
 *  polygons: one of all rings, by even-odd, where the parts are apart, else one
 *  of the rings of each part.  They are made when asked for. 0: memory is out,
 *  or GEOS raised. */
int oj_geos_features_list_locators(struct oj_geos_features *features,
                                   struct oj_geos_kept *kept);

/** One of them, or NULL, as above. */
const GEOSPreparedGeometry *
oj_geos_features_locator(struct oj_geos_features *features,
                         struct oj_geos_kept *kept, int64_t i);

/** The prepared union of n of its locators' parts, ascending, by their places
 *  among all: what is around a point that lies on the boundaries of just these,
 *  without the nodes that others would bring, which are rounded.  NULL, as
 *  above. */
const GEOSPreparedGeometry *
oj_geos_features_unite(struct oj_geos_features *features,
                       struct oj_geos_kept *kept, const int64_t *part,
                       int64_t n);

/** The boxes of kept's components (without rings_as_lines: of its parts), or
 *  NULL: out of memory. */
const struct oj_box *oj_geos_features_boxes(struct oj_geos_features *features,
                                            struct oj_geos_kept *kept);

void oj_geos_features_free(struct oj_geos_features *features);

#endif
