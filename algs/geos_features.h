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

#include "geos_shapes.h"
#include "oj_boxes.h"
#include "oj_measures.h"

/** A feature that is kept. */
struct oj_geos_kept
{
    int64_t feature; /**< -1: none */
    uint64_t used;   /**< when last */
    unsigned kinds;  /**< enum oj_part_kind or'ed */
    int64_t n_vertices;
    int64_t n_components;
    GEOSGeometry *geometry;
    const GEOSPreparedGeometry *prepared; /**< NULL: not made yet */
    GEOSGeometry *rings; /**< oj_geos_rings(); NULL: not made, or not needed */
    const GEOSPreparedGeometry *prepared_rings; /**< NULL: as above */
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
    uint8_t *validity;         /* [n_features] 0: not known; or 1 + is valid */
};

/** Takes another layer; everything kept is dropped. */
void oj_geos_features_set(struct oj_geos_features *features,
                          const struct oj_flat *flat);

/** A feature that has parts, valid until the next call for this side. NULL
 *  when GEOS refuses it or memory is out: its message handler knows which, or
 *  had nothing to say: memory. */
struct oj_geos_kept *oj_geos_features_get(struct oj_geos_features *features,
                                          int64_t feature);

/** The prepared geometry of kept, or NULL, as above. */
const GEOSPreparedGeometry *
oj_geos_features_prepare(struct oj_geos_features *features,
                         struct oj_geos_kept *kept);

/** The prepared geometry that tells where points lie: even-odd over all rings
 *  of kept, polygons; or NULL, as above. */
const GEOSPreparedGeometry *
oj_geos_features_locator(struct oj_geos_features *features,
                         struct oj_geos_kept *kept);

/** The boxes of kept's components, or NULL: out of memory. */
const struct oj_box *oj_geos_features_boxes(struct oj_geos_features *features,
                                            struct oj_geos_kept *kept);

/** Whether kept is valid: 1 or 0; -1: GEOS raised, or memory is out. */
int oj_geos_features_is_valid(struct oj_geos_features *features,
                              struct oj_geos_kept *kept);

void oj_geos_features_free(struct oj_geos_features *features);

#endif
