#include "geos_pairs.h"
#include "../../../flatten/arrays/oj_wkb.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/kernels/oj_ring.h"
#include "../../foundations/relation/oj_matrix.h"
#include "../../geometry/rings/polygon_clip.h"
#include "../../pairs/selection/oj_feature_area_length.h"
#include "geos_handle.h"
#include "geos_split_segments.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Maximum number of cached features of a side that does not keep all of them,
 * and maximum number of their vertices: about 25 MB of coordinates in GEOS.
 * Prepared geometries need a few times as much. */
#define MOST_KEPT 4096
#define MOST_VERTICES (INT64_C(1) << 20)

/* If a point is on the boundaries of at most this many parts, only these parts
 * are united; otherwise all parts of the feature. */
#define MOST_BESIDE 8

/* A polygon feature is clipped before its overlay with another feature if it
 * has at least CLIP_VERTICES vertices and CLIP_RATIO times those of the other,
 * from the (CLIP_AFTER + 1)th such overlay on. */
#define CLIP_VERTICES 256
#define CLIP_RATIO 4
#define CLIP_AFTER 3

/* 1: intersections are computed by OverlayNG, for which clips are made. */
#define CAN_CLIP                                                               \
    (GEOS_VERSION_MAJOR > 3 ||                                                 \
     (GEOS_VERSION_MAJOR == 3 && GEOS_VERSION_MINOR >= 9))

/* A geometry and GEOS's prepared form of it; each is NULL until it is made. */
struct prepared
{
    GEOSGeometry *geometry;
    const GEOSPreparedGeometry *prepared;
};

/* A cached feature (slot of the cache). */
struct kept
{
    int64_t feature; /* -1: the slot is empty */
    unsigned kinds;  /* enum oj_part_kind or'ed */
    int64_t n_vertices, n_components;
    GEOSGeometry *geometry;
    int is_apart;             /* 1: the polygon parts are disjoint or touch only
                                 in points; 0: some overlap or share an edge;
                                 -1: not tested yet */
    int is_simple;            /* 1: the lines neither cross nor run over
                                 themselves or one another; 0: they may; -1: not
                                 tested yet */
    struct prepared whole;    /* union of the parts. Its geometry is NULL until
                                 it is made, and always if the union equals the
                                 geometry of the feature */
    struct prepared *locator; /* [n_locators] prepared polygons by which points
                                 are located */
    int64_t n_locators;       /* 0 until they are made; 1 if there is one for
                                 all polygon parts; otherwise one for each
                                 part */
    struct oj_box *box;       /* [n_components] widened box of each component;
                                 NULL until they are made */
    int is_valid;             /* 1: the polygons are valid; 0: not; -1: not
                                 tested yet */
    int n_overlays;           /* number of overlays so far that a clip would
                                 have made faster */
    struct oj_polygon_clip *clip; /* NULL: not made */
};

/* A cache of one side's features as GEOS geometries, made on first use. Feature
 * f is in slot f modulo n_kept, until another feature replaces it; so
 * neighbouring features, used in turn, are made only once. */
struct geos_side
{
    GEOSContextHandle_t geos;
    const struct oj_flat *flat;
    int rings_as_lines; /* 1: polygons are converted to the lines of their
                           rings */
    int as_vertices;    /* 1: features are converted to multipoints of their
                           vertices */
    int keep_all;       /* 1: features are never replaced */
    int has_dots;       /* 1: lines of no length are converted to points */
    int64_t n_kept, n_vertices;
    struct kept *kept; /* [n_kept] slots; NULL until the cache is used */
};

/* Number of features of a side whose areas are kept. */
#define AREAS_KEPT 256

/* The area of a feature. */
struct kept_area
{
    int64_t feature;
    double area;
    int is_set;
};

struct oj_geos_pairs
{
    struct oj_relation relation; /* not set if opened without a relation */
    int prepare;
    struct oj_geos_handle handle;
    struct geos_side input, join_side;
    /* Areas of features of the join side [0] and of the input [1]; that of
     * feature f is in slot f modulo AREAS_KEPT. */
    struct kept_area area[2][AREAS_KEPT];
    struct oj_flat_buf united;  /* scratch for a geometry whose area is
                                   computed */
    struct oj_flat_buf clipped; /* scratch for a clipped polygon */
    struct geos_split_work split;
    struct oj_flat_buf unsplit; /* scratch for a geometry whose segments are
                                   split */
};

/* Classifies a failed GEOS call (result NULL, 2 or -1): with an error text it
 * is OJ_GEOS_CANNOT_SAY, without one memory ran out. */
static enum oj_geos_outcome
classify_geos_failure(const struct oj_geos_pairs *pairs)
{
    const char *text = pairs->handle.message;
    return text[0] == '\0' || strstr(text, OJ_TEXT_NO_MEMORY) != NULL
               ? OJ_GEOS_OUT_OF_MEMORY
               : OJ_GEOS_CANNOT_SAY;
}

/* ---- arrays -> GEOS ------------------------------------------------------
 *
 *  Geometries are not repaired. If GEOS refuses a geometry (for example a ring
 *  that is not closed), the result is NULL and the handle has the text. The
 *  caller owns the results.
 */

/* Returns the coordinates of a ring or line, or NULL if the call failed. GEOS
 * requires two vertices of a line and four of a ring, so the last vertex of a
 * shorter one is repeated until it has `least` vertices. */
static GEOSCoordSequence *ring_coordinates(GEOSContextHandle_t geos,
                                           const struct oj_flat *flat,
                                           int64_t ring, int64_t least)
{
    int64_t first = flat->vertex_offset[ring];
    int64_t end = flat->vertex_offset[ring + 1];
    int64_t n = end - first == 0 || end - first > least ? end - first : least;
    GEOSCoordSequence *sequence;
    if (n > INT_MAX)
        return NULL;
    sequence = GEOSCoordSeq_create_r(geos, (unsigned)n, 2);
    for (int64_t i = 0; sequence != NULL && i < n; i++)
    {
        int64_t vertex = first + i < end ? first + i : end - 1;
        if (GEOSCoordSeq_setXY_r(geos, sequence, (unsigned)i, flat->x[vertex],
                                 flat->y[vertex]) == 0)
        {
            GEOSCoordSeq_destroy_r(geos, sequence);
            return NULL;
        }
    }
    return sequence;
}

static GEOSGeometry *make_ring(GEOSContextHandle_t geos,
                               const struct oj_flat *flat, int64_t ring)
{
    GEOSCoordSequence *sequence = ring_coordinates(geos, flat, ring, 4);
    return sequence ? GEOSGeom_createLinearRing_r(geos, sequence) : NULL;
}

/* Returns a LineString of a ring or line, or NULL if GEOS failed. */
static GEOSGeometry *make_line(GEOSContextHandle_t geos,
                               const struct oj_flat *flat, int64_t ring)
{
    GEOSCoordSequence *sequence = ring_coordinates(geos, flat, ring, 2);
    /* GEOS has taken over the sequence, even if the call failed */
    return sequence ? GEOSGeom_createLineString_r(geos, sequence) : NULL;
}

static GEOSGeometry *make_point(GEOSContextHandle_t geos,
                                const struct oj_flat *flat, int64_t vertex)
{
    return GEOSGeom_createPointFromXY_r(geos, flat->x[vertex], flat->y[vertex]);
}

/* The members of a collection that is being made. */
struct geos_members
{
    GEOSContextHandle_t geos;
    int64_t n;
    GEOSGeometry **list; /* NULL after a failure to make a member, which
                            destroys all members */
};

/* Allocates a list for at most `most` members. */
static struct geos_members allocate_member_list(GEOSContextHandle_t geos,
                                                int64_t most)
{
    struct geos_members members = {geos, 0, NULL};
    if (most <= INT_MAX)
        members.list = oj_malloc(most, sizeof(GEOSGeometry *));
    return members;
}

/* Appends a member and takes ownership of it. A member that is NULL could not
 * be made: then all members are destroyed. */
static void add_member(struct geos_members *members, GEOSGeometry *member)
{
    if (member != NULL)
    {
        members->list[members->n++] = member;
        return;
    }
    while (members->n > 0)
        GEOSGeom_destroy_r(members->geos, members->list[--members->n]);
    oj_free(members->list);
    members->list = NULL;
}

/* Returns a collection of the members, or a polygon with the members as holes;
 * NULL if GEOS failed. GEOS owns the arguments afterwards, also if the call
 * fails. */
static GEOSGeometry *make_collection(struct geos_members *members, int type,
                                     GEOSGeometry *shell)
{
    GEOSGeometry *whole = NULL;
    unsigned n = (unsigned)members->n;
    if (members->list == NULL)
        GEOSGeom_destroy_r(members->geos, shell);
    else if (shell != NULL)
        whole =
            GEOSGeom_createPolygon_r(members->geos, shell, members->list, n);
    else
        whole =
            GEOSGeom_createCollection_r(members->geos, type, members->list, n);
    oj_free(members->list);
    return whole;
}

static GEOSGeometry *make_polygon(GEOSContextHandle_t geos,
                                  const struct oj_flat *flat, int64_t part)
{
    int64_t ring = flat->ring_offset[part], end = flat->ring_offset[part + 1];
    GEOSGeometry *shell = make_ring(geos, flat, ring);
    struct geos_members holes;
    if (shell == NULL)
        return NULL;
    holes = allocate_member_list(geos, end - ring - 1);
    while (holes.list != NULL && ++ring < end)
        add_member(&holes, make_ring(geos, flat, ring));
    return make_collection(&holes, GEOS_POLYGON, shell);
}

/* Returns the kind as which a part is converted. */
static unsigned kind_of_part(const struct geos_side *side, int64_t part)
{
    const struct oj_flat *flat = side->flat;
    const unsigned kind = flat->part_kind[part];
    return side->has_dots && kind == OJ_PART_LINE &&
                   !oj_flat_part_has_length(flat, part)
               ? (unsigned)OJ_PART_POINT
               : kind;
}

static GEOSGeometry *make_part(const struct geos_side *side, int64_t part)
{
    GEOSContextHandle_t geos = side->geos;
    const struct oj_flat *flat = side->flat;
    int64_t ring = flat->ring_offset[part];
    switch (kind_of_part(side, part))
    {
        case OJ_PART_POINT:
            return make_point(geos, flat, flat->vertex_offset[ring]);
        case OJ_PART_LINE:
            return make_line(geos, flat, ring);
        default:
            return make_polygon(geos, flat, part);
    }
}

static int collection_type(unsigned kinds)
{
    switch (kinds)
    {
        case OJ_PART_POINT:
            return GEOS_MULTIPOINT;
        case OJ_PART_LINE:
            return GEOS_MULTILINESTRING;
        case OJ_PART_POLYGON:
            return GEOS_MULTIPOLYGON;
        default:
            return GEOS_GEOMETRYCOLLECTION;
    }
}

/* Makes the parts of a feature whose kinds are in `kinds`, and sets *found to
 * the kinds that occur. With rings_as_lines, polygons become the lines of their
 * rings. Precondition: there is such a part, and the layer is not of single
 * points. */
static struct geos_members make_list_of_parts(const struct geos_side *side,
                                              int64_t feature, unsigned kinds,
                                              unsigned *found)
{
    const struct oj_flat *flat = side->flat;
    GEOSContextHandle_t geos = side->geos;
    int64_t part = flat->part_offset[feature];
    int64_t end = flat->part_offset[feature + 1];
    struct geos_members members = allocate_member_list(
        geos, end - part + flat->ring_offset[end] - flat->ring_offset[part]);
    *found = 0;
    for (; part < end && members.list != NULL; part++)
    {
        unsigned kind = kind_of_part(side, part);
        int is_ring = side->rings_as_lines && kind == OJ_PART_POLYGON;
        int64_t first = flat->ring_offset[part];
        int64_t last = is_ring ? flat->ring_offset[part + 1] - 1 : first;
        if ((kind & kinds) == 0)
            continue;
        *found |= is_ring ? (unsigned)OJ_PART_LINE : kind;
        for (int64_t r = first; r <= last && members.list != NULL; r++)
            add_member(&members, is_ring ? make_line(geos, flat, r)
                                         : make_part(side, part));
    }
    return members;
}

static GEOSGeometry *
make_geometry_of_parts_of_kinds(const struct geos_side *side, int64_t feature,
                                unsigned kinds)
{
    unsigned found;
    struct geos_members members =
        make_list_of_parts(side, feature, kinds, &found);
    return make_collection(&members, collection_type(found), NULL);
}

/* Makes the vertices of a feature as points. Precondition: the feature has
 * parts. */
static GEOSGeometry *make_vertices(const struct geos_side *side,
                                   int64_t feature)
{
    struct geos_members members;
    int64_t v, end;
    oj_flat_vertex_range(side->flat, feature, &v, &end);
    members = allocate_member_list(side->geos, end - v);
    for (; v < end && members.list != NULL; v++)
        add_member(&members, make_point(side->geos, side->flat, v));
    return make_collection(&members, GEOS_MULTIPOINT, NULL);
}

/* Makes the whole feature: its only part, or a collection of all parts.
 * Precondition: it has parts. */
static GEOSGeometry *make_feature(const struct geos_side *side, int64_t feature)
{
    struct geos_members members;
    GEOSGeometry *only;
    unsigned found;
    if (oj_flat_is_points(side->flat))
        return make_point(side->geos, side->flat, feature);
    if (side->as_vertices)
        return make_vertices(side, feature);
    members = make_list_of_parts(side, feature, ~0u, &found);
    if (members.list == NULL || members.n > 1)
        return make_collection(&members, collection_type(found), NULL);
    only = members.list[0];
    oj_free(members.list);
    return only;
}

/* Makes n polygon parts of a feature, given by their indices within it. */
static GEOSGeometry *make_polygons(const struct geos_side *side,
                                   int64_t feature, const int64_t *part,
                                   int64_t n)
{
    int64_t first = side->flat->part_offset[feature];
    struct geos_members members = allocate_member_list(side->geos, n);
    for (int64_t i = 0; i < n && members.list != NULL; i++)
        add_member(&members, make_part(side, first + part[i]));
    return make_collection(&members, GEOS_MULTIPOLYGON, NULL);
}

/* Makes a polygon of each ring of the polygon parts first .. end - 1. GEOS's
 * prepared geometry then locates points by the even-odd rule over all rings,
 * also for a hole outside of its shell's envelope. */
static GEOSGeometry *make_rings_as_polygons(const struct geos_side *side,
                                            int64_t first, int64_t end)
{
    int64_t ring = side->flat->ring_offset[first];
    int64_t past = side->flat->ring_offset[end];
    struct geos_members members = allocate_member_list(side->geos, past - ring);
    for (; ring < past && members.list != NULL; ring++)
    {
        GEOSGeometry *shell = make_ring(side->geos, side->flat, ring);
        add_member(&members, shell != NULL ? GEOSGeom_createPolygon_r(
                                                 side->geos, shell, NULL, 0)
                                           : NULL);
    }
    return make_collection(&members, GEOS_MULTIPOLYGON, NULL);
}

/* ---- cache of features --------------------------------------------------- */

static void destroy_prepared(GEOSContextHandle_t geos, struct prepared *one)
{
    GEOSPreparedGeom_destroy_r(geos, one->prepared);
    GEOSGeom_destroy_r(geos, one->geometry);
    memset(one, 0, sizeof *one);
}

/* Returns the prepared form of a geometry, made on first use. Precondition: the
 * geometry is not NULL. */
static const GEOSPreparedGeometry *prepare_geometry(GEOSContextHandle_t geos,
                                                    struct prepared *one)
{
    if (one->prepared == NULL && one->geometry != NULL)
        one->prepared = GEOSPrepare_r(geos, one->geometry);
    return one->prepared;
}

static void destroy_clip(struct kept *kept)
{
    if (kept->clip != NULL)
        oj_polygon_clip_free(kept->clip);
    oj_free(kept->clip);
    kept->clip = NULL;
}

static void evict_kept_feature(struct geos_side *side, struct kept *kept)
{
    if (kept->feature < 0)
        return;
    destroy_prepared(side->geos, &kept->whole);
    for (int64_t i = 0; i < kept->n_locators; i++)
        destroy_prepared(side->geos, &kept->locator[i]);
    oj_free(kept->locator);
    GEOSGeom_destroy_r(side->geos, kept->geometry);
    destroy_clip(kept);
    oj_free(kept->box);
    memset(kept, 0, sizeof *kept);
    kept->feature = -1;
}

static void evict_all_features(struct geos_side *side)
{
    for (int64_t i = 0; side->kept != NULL && i < side->n_kept; i++)
        evict_kept_feature(side, &side->kept[i]);
    side->n_vertices = 0;
}

/* Empties the cache and sets another layer. */
static void set_layer_of_side(struct geos_side *side,
                              const struct oj_flat *flat)
{
    evict_all_features(side);
    oj_free(side->kept);
    side->kept = NULL;
    side->flat = flat;
}

static int allocate_cache_slots(struct geos_side *side)
{
    int64_t n = side->flat->n_features;
    if (side->kept != NULL)
        return 1;
    side->n_kept = side->keep_all || n < MOST_KEPT ? n : MOST_KEPT;
    side->kept = oj_calloc(side->n_kept, sizeof *side->kept);
    for (int64_t i = 0; side->kept != NULL && i < side->n_kept; i++)
        side->kept[i].feature = -1;
    return side->kept != NULL;
}

void oj_geos_pairs_evict_feature(struct oj_geos_pairs *pairs, int64_t feature)
{
    struct geos_side *side = &pairs->join_side;
    struct kept *kept =
        side->kept != NULL ? &side->kept[feature % side->n_kept] : NULL;
    if (kept == NULL || kept->feature != feature)
        return;
    side->n_vertices -= kept->n_vertices;
    evict_kept_feature(side, kept);
}

/* Returns the kinds as which the parts of a feature are converted. */
static unsigned kinds_of_feature(const struct geos_side *side, int64_t feature)
{
    unsigned kinds = 0;
    if (oj_flat_is_points(side->flat))
        return oj_flat_kinds(side->flat, feature);
    for (int64_t part = side->flat->part_offset[feature];
         part < side->flat->part_offset[feature + 1]; part++)
        kinds |= kind_of_part(side, part);
    return kinds;
}

/* Returns a feature from the cache, which makes it first if it is not there and
 * may drop others; valid until the next call for this side. Precondition: the
 * feature has parts. Returns NULL if GEOS refuses it or memory is out. */
static struct kept *find_or_make_feature(struct geos_side *side,
                                         int64_t feature)
{
    struct kept *kept;
    GEOSGeometry *geometry;
    int64_t first, end;
    if (!allocate_cache_slots(side))
        return NULL;
    kept = &side->kept[feature % side->n_kept];
    if (kept->feature == feature)
        return kept;
    geometry = make_feature(side, feature);
    if (geometry == NULL)
        return NULL;
    oj_flat_vertex_range(side->flat, feature, &first, &end);
    side->n_vertices += end - first - kept->n_vertices;
    evict_kept_feature(side, kept);
    if (!side->keep_all && side->n_vertices > MOST_VERTICES)
    {
        evict_all_features(side);
        side->n_vertices = end - first;
    }
    kept->feature = feature;
    kept->kinds = kinds_of_feature(side, feature);
    kept->n_vertices = end - first;
    kept->n_components = GEOSGetNumGeometries_r(side->geos, geometry);
    kept->geometry = geometry;
    kept->is_apart = kept->is_simple = kept->is_valid = -1;
    return kept;
}

static struct oj_box box_of_vertices(const struct oj_flat *flat, int64_t first,
                                     int64_t end)
{
    struct oj_box box =
        oj_box_of_points(flat->x + first, flat->y + first, end - first);
    return oj_box_widened(&box, 0.0);
}

/* Returns the boxes of the feature's components (its parts, or with
 * rings_as_lines its rings). */
static const struct oj_box *component_boxes(const struct geos_side *side,
                                            struct kept *kept)
{
    const struct oj_flat *flat = side->flat;
    struct oj_box *box;
    if (kept->box != NULL)
        return kept->box;
    kept->box = box = oj_malloc(kept->n_components, sizeof *box);
    if (box == NULL)
        return NULL;
    if (oj_flat_is_points(flat))
    {
        *box = box_of_vertices(flat, kept->feature, kept->feature + 1);
        return box;
    }
    for (int64_t part = flat->part_offset[kept->feature];
         part < flat->part_offset[kept->feature + 1]; part++)
    {
        int64_t ring = flat->ring_offset[part];
        int64_t end = flat->ring_offset[part + 1];
        int64_t step = side->rings_as_lines ? 1 : end - ring;
        for (; ring < end; ring += step)
            *box++ = box_of_vertices(flat, flat->vertex_offset[ring],
                                     flat->vertex_offset[ring + step]);
    }
    return kept->box;
}

/* ---- the union of the parts ---------------------------------------------- */

static int64_t count_polygons(const struct oj_flat *flat, int64_t feature)
{
    int64_t n = 0, part = flat->part_offset[feature];
    for (; part < flat->part_offset[feature + 1]; part++)
        n += flat->part_kind[part] == OJ_PART_POLYGON;
    return n;
}

/* Tests by GEOS whether the polygon parts are a valid MultiPolygon, hence
 * disjoint or touching only in points, so that no union is needed. Returns 1 if
 * they are, 0 if not, and -1 if memory is out. */
static int check_polygons_apart(const struct geos_side *side, struct kept *kept)
{
    GEOSGeometry *polygons = NULL;
    char is_valid;
    if (side->rings_as_lines || (kept->kinds & OJ_PART_POLYGON) == 0 ||
        kept->n_components < 2 || count_polygons(side->flat, kept->feature) < 2)
        return 1;
    if (kept->kinds != OJ_PART_POLYGON)
    {
        polygons = make_geometry_of_parts_of_kinds(side, kept->feature,
                                                   OJ_PART_POLYGON);
        if (polygons == NULL)
            return -1;
    }
    is_valid =
        GEOSisValid_r(side->geos, polygons != NULL ? polygons : kept->geometry);
    GEOSGeom_destroy_r(side->geos, polygons);
    return is_valid > 1 ? -1 : is_valid;
}

static int are_polygon_parts_apart(const struct geos_side *side,
                                   struct kept *kept)
{
    if (kept->is_apart < 0)
        kept->is_apart = check_polygons_apart(side, kept);
    return kept->is_apart;
}

/* Returns 1 if each polygon part by itself is valid, 0 if not, -1 if memory is
 * out or GEOS failed. */
static int parts_are_valid(const struct geos_side *side,
                           const struct kept *kept)
{
    for (int i = 0; i < kept->n_components; i++)
    {
        const GEOSGeometry *part =
            GEOSGetGeometryN_r(side->geos, kept->geometry, i);
        char is_valid = part != NULL ? GEOSisValid_r(side->geos, part) : 2;
        if (is_valid != 1)
            return is_valid == 0 ? 0 : -1;
    }
    return 1;
}

/* Returns the union of a collection and destroys the collection, which may be
 * NULL. Returns NULL if GEOS failed. */
static GEOSGeometry *unite_collection(GEOSContextHandle_t geos,
                                      GEOSGeometry *all)
{
    GEOSGeometry *united = all != NULL ? GEOSUnaryUnion_r(geos, all) : NULL;
    GEOSGeom_destroy_r(geos, all);
    return united;
}

/* Returns a collection: the union of the polygon parts, and the other parts. */
static GEOSGeometry *unite_polygons(const struct geos_side *side,
                                    const struct kept *kept)
{
    struct geos_members members = allocate_member_list(side->geos, 2);
    unsigned others = OJ_PART_POINT | OJ_PART_LINE;
    if (kept->kinds == OJ_PART_POLYGON)
    {
        oj_free(members.list);
        return unite_collection(
            side->geos, make_geometry_of_parts_of_kinds(side, kept->feature,
                                                        OJ_PART_POLYGON));
    }
    if (members.list != NULL)
        add_member(&members,
                   unite_collection(side->geos,
                                    make_geometry_of_parts_of_kinds(
                                        side, kept->feature, OJ_PART_POLYGON)));
    if (members.list != NULL)
        add_member(&members, make_geometry_of_parts_of_kinds(
                                 side, kept->feature, others));
    return make_collection(&members, GEOS_GEOMETRYCOLLECTION, NULL);
}

/* Returns the feature as the union of its parts, which *kept keeps: the own
 * geometry of the feature if polygon parts do not overlap, or if a part is not
 * valid. Returns NULL if GEOS failed or memory is out. */
static const GEOSGeometry *
find_or_make_union_of_parts(const struct geos_side *side, struct kept *kept)
{
    int apart, are_valid;
    if (kept->whole.geometry != NULL)
        return kept->whole.geometry;
    apart = are_polygon_parts_apart(side, kept);
    if (apart != 0)
        return apart > 0 ? kept->geometry : NULL;
    are_valid = parts_are_valid(side, kept);
    if (are_valid != 1)
        return are_valid == 0 ? kept->geometry : NULL;
    kept->whole.geometry = unite_polygons(side, kept);
    return kept->whole.geometry;
}

static const GEOSPreparedGeometry *
prepare_union_of_parts(const struct geos_side *side, struct kept *kept)
{
    const GEOSGeometry *whole;
    if (kept->whole.prepared != NULL)
        return kept->whole.prepared;
    whole = find_or_make_union_of_parts(side, kept);
    if (whole != NULL)
        kept->whole.prepared = GEOSPrepare_r(side->geos, whole);
    return kept->whole.prepared;
}

/* Sets *a and *b to the features of a pair, from the caches, and returns
 * OJ_GEOS_YES. Returns OJ_GEOS_NO if one of them has no parts, and
 * OJ_GEOS_CANNOT_SAY or OJ_GEOS_OUT_OF_MEMORY after a failure. */
static enum oj_geos_outcome
find_or_make_features_of_pair(struct oj_geos_pairs *pairs, int64_t row,
                              int64_t feature, struct kept **a, struct kept **b)
{
    pairs->handle.message[0] = '\0';
    if (oj_flat_kinds(pairs->input.flat, row) == 0 ||
        oj_flat_kinds(pairs->join_side.flat, feature) == 0)
        return OJ_GEOS_NO;
    *a = find_or_make_feature(&pairs->input, row);
    if (*a != NULL)
        *b = find_or_make_feature(&pairs->join_side, feature);
    return *a != NULL && *b != NULL ? OJ_GEOS_YES
                                    : classify_geos_failure(pairs);
}

/* ---- open and close ------------------------------------------------------ */

oj_status oj_geos_pairs_open(const struct oj_relation *relation,
                             const struct oj_flat *join_side, int prepare,
                             struct oj_geos_pairs **out, struct oj_error *err)
{
    struct oj_geos_pairs *pairs;
    oj_status status;
    OJ_NEW_ZEROED(pairs, 1, err);
    pairs->prepare = prepare;
    status = oj_geos_handle_open(&pairs->handle, err);
    if (status != OJ_OK)
    {
        oj_free(pairs);
        return status;
    }
    pairs->input.geos = pairs->join_side.geos = pairs->handle.geos;
    pairs->join_side.flat = join_side;
    *out = pairs;
    pairs->input.has_dots = pairs->join_side.has_dots = relation == NULL;
    if (relation == NULL)
        return OJ_OK;
    pairs->relation = *relation;
    for (char *c = pairs->relation.mask; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    pairs->join_side.keep_all = 1;
    if (relation->distance_to == OJ_TO_BOUNDARY &&
        (oj_op_get(relation->op)->takes & OJ_TAKES_DISTANCE))
        pairs->input.rings_as_lines = pairs->join_side.rings_as_lines = 1;
    pairs->input.as_vertices = pairs->join_side.as_vertices =
        oj_relation_compares_shapes(relation) &&
        relation->distance == OJ_DISTANCE_HAUSDORFF_POINTS;
    return OJ_OK;
}

void oj_geos_pairs_set_input(struct oj_geos_pairs *pairs,
                             const struct oj_flat *input)
{
    set_layer_of_side(&pairs->input, input);
    memset(pairs->area[1], 0, sizeof pairs->area[1]);
}

const char *oj_geos_pairs_message(const struct oj_geos_pairs *pairs)
{
    return pairs->handle.message;
}

void oj_geos_pairs_close(struct oj_geos_pairs *pairs)
{
    if (pairs == NULL)
        return;
    set_layer_of_side(&pairs->input, NULL);
    set_layer_of_side(&pairs->join_side, NULL);
    oj_geos_handle_close(&pairs->handle);
    oj_flat_buf_free(&pairs->united);
    geos_split_work_free(&pairs->split);
    oj_flat_buf_free(&pairs->unsplit);
    oj_flat_buf_free(&pairs->clipped);
    oj_free(pairs);
}

/* ---- points in polygons -------------------------------------------------- */

/* A feature with polygons in which points are located. */
struct polygon_locators
{
    struct oj_geos_pairs *pairs;
    struct geos_side *side;
    struct kept *kept;
    const struct oj_box *box;   /* boxes of its parts; NULL if there is one
                                   locator for all parts */
    int distinguishes_boundary; /* 1: the join distinguishes boundary and
                           interior */
};

/* Allocates the locators of a feature (prepared polygons): one for all rings,
 * by the even-odd rule, if its polygons do not overlap; otherwise one per part.
 * They are made on first use. Returns 0 after a failure. */
static int allocate_locators(struct polygon_locators *locators)
{
    struct kept *kept = locators->kept;
    int apart = are_polygon_parts_apart(locators->side, kept);
    if (apart >= 0 && kept->n_locators == 0)
    {
        int64_t n = apart ? 1 : kept->n_components;
        kept->locator = oj_calloc(n, sizeof *kept->locator);
        kept->n_locators = kept->locator != NULL ? n : 0;
    }
    if (kept->n_locators > 1)
        locators->box = component_boxes(locators->side, kept);
    return kept->n_locators > 0;
}

static const GEOSPreparedGeometry *
get_prepared_polygon_part(const struct polygon_locators *locators, int64_t i)
{
    const struct kept *kept = locators->kept;
    int64_t first = locators->side->flat->part_offset[kept->feature] + i;
    int64_t n = kept->n_locators == 1 ? kept->n_components : 1;
    struct prepared *one = &kept->locator[i];
    if (one->geometry == NULL)
        one->geometry =
            make_rings_as_polygons(locators->side, first, first + n);
    return prepare_geometry(locators->side->geos, one);
}

static enum oj_geos_outcome
locate_by_prepared_geometry(const struct oj_geos_pairs *pairs,
                            const GEOSPreparedGeometry *locator,
                            const GEOSGeometry *point, enum oj_location *where)
{
    char meets = 2, is_inside = 0;
    if (locator != NULL)
        meets = GEOSPreparedIntersects_r(pairs->handle.geos, locator, point);
    if (meets == 1)
        is_inside =
            GEOSPreparedContainsProperly_r(pairs->handle.geos, locator, point);
    if (meets > 1 || is_inside > 1)
        return classify_geos_failure(pairs);
    *where = is_inside ? OJ_INSIDE : meets ? OJ_ON_BOUNDARY : OJ_OUTSIDE;
    return OJ_GEOS_YES;
}

static int does_box_contain_point(const struct oj_geos_pairs *pairs,
                                  const struct oj_box *box,
                                  const GEOSGeometry *point)
{
    double x, y;
    return GEOSGeomGetX_r(pairs->handle.geos, point, &x) != 1 ||
           GEOSGeomGetY_r(pairs->handle.geos, point, &y) != 1 ||
           oj_box_contains_point(box, x, y);
}

/* Locates a point in the union of the n parts whose boundaries it is on. `part`
 * lists all of these parts if they are at most MOST_BESIDE. */
static enum oj_geos_outcome
locate_in_union(const struct polygon_locators *locators,
                const GEOSGeometry *point, const int64_t *part, int64_t n,
                enum oj_location *where)
{
    struct oj_geos_pairs *pairs = locators->pairs;
    const struct geos_side *side = locators->side;
    struct kept *kept = locators->kept;
    struct prepared beside = {NULL, NULL};
    enum oj_geos_outcome located;
    if (find_or_make_union_of_parts(side, kept) == kept->geometry)
    {
        snprintf(pairs->handle.message, sizeof pairs->handle.message,
                 "a part of a collection is not valid");
        return OJ_GEOS_CANNOT_SAY; /* the union with an invalid part is not
                                      defined */
    }
    if (n > MOST_BESIDE)
        return locate_by_prepared_geometry(
            pairs, prepare_union_of_parts(side, kept), point, where);
    /* Unites only these parts: a union of more would also round nodes with
     * other parts. */
    beside.geometry = unite_collection(
        side->geos, make_polygons(side, kept->feature, part, n));
    located = locate_by_prepared_geometry(
        pairs, prepare_geometry(side->geos, &beside), point, where);
    destroy_prepared(side->geos, &beside);
    return located;
}

/* Locates a point. Overlapping parts are tested one by one: inside of any part
 * means inside; on the boundary of a single part means boundary; on the
 * boundaries of several, their union decides. */
static enum oj_geos_outcome
locate_point(const struct polygon_locators *locators, const GEOSGeometry *point,
             enum oj_location *where)
{
    enum oj_location at = OJ_OUTSIDE;
    int64_t n = 0, part[MOST_BESIDE];
    *where = OJ_OUTSIDE;
    for (int64_t i = 0; i < locators->kept->n_locators; i++)
    {
        enum oj_geos_outcome located;
        if (locators->box != NULL &&
            !does_box_contain_point(locators->pairs, &locators->box[i], point))
            continue;
        located = locate_by_prepared_geometry(
            locators->pairs, get_prepared_polygon_part(locators, i), point,
            &at);
        if (located != OJ_GEOS_YES)
            return located;
        if (at != OJ_OUTSIDE)
            *where = at;
        if (at == OJ_INSIDE)
            return OJ_GEOS_YES;
        if (at == OJ_ON_BOUNDARY && n < MOST_BESIDE)
            part[n] = i;
        n += at == OJ_ON_BOUNDARY;
    }
    if (n < 2 || !locators->distinguishes_boundary)
        return OJ_GEOS_YES;
    return locate_in_union(locators, point, part, n, where);
}

/* Decides whether points and polygons are a pair, by their DE-9IM matrix with
 * the points first. relation must be the one with points as input. */
static enum oj_geos_outcome
relate_points_to_polygons(struct polygon_locators *locators,
                          const struct kept *points,
                          const struct oj_relation *relation)
{
    struct oj_geos_pairs *pairs = locators->pairs;
    struct oj_matrix matrix = {"FFFFFF212"};
    if (!allocate_locators(locators))
        return classify_geos_failure(pairs);
    locators->distinguishes_boundary = relation->op != OJ_OP_INTERSECTS &&
                                       relation->op != OJ_OP_DISJOINT &&
                                       relation->op != OJ_OP_COVEREDBY;
    for (int64_t i = 0; i < points->n_components; i++)
    {
        const GEOSGeometry *point =
            GEOSGetGeometryN_r(pairs->handle.geos, points->geometry, (int)i);
        enum oj_location where = OJ_OUTSIDE;
        enum oj_geos_outcome located =
            point != NULL ? locate_point(locators, point, &where)
                          : classify_geos_failure(pairs);
        if (located != OJ_GEOS_YES)
            return located;
        oj_matrix_add(&matrix, OJ_PLACE_INTERIOR,
                      where == OJ_INSIDE        ? OJ_PLACE_INTERIOR
                      : where == OJ_ON_BOUNDARY ? OJ_PLACE_BOUNDARY
                                                : OJ_PLACE_EXTERIOR,
                      0);
    }
    return oj_matrix_satisfies_relation(&matrix, relation) ? OJ_GEOS_YES
                                                           : OJ_GEOS_NO;
}

/* ---- predicates ---------------------------------------------------------- */

/* Predicates for which GEOS's prepared geometries are faster and use exact
 * signs only. For the others, which are NULL, plain_predicate is used. */
static char (*const prepared_predicate[OJ_N_OPS])(GEOSContextHandle_t,
                                                  const GEOSPreparedGeometry *,
                                                  const GEOSGeometry *) = {
    [OJ_OP_INTERSECTS] = GEOSPreparedIntersects_r,
    [OJ_OP_DISJOINT] = GEOSPreparedDisjoint_r,
    [OJ_OP_WITHIN] = GEOSPreparedContains_r,
    [OJ_OP_CONTAINS] = GEOSPreparedContains_r,
    [OJ_OP_COVEREDBY] = GEOSPreparedCovers_r,
    [OJ_OP_COVERS] = GEOSPreparedCovers_r,
};

/* Predicates of plain geometries. For a join whose predicate is NULL a DE-9IM
 * pattern decides: that in the table of joins, or that of -relate. */
static char (*const plain_predicate[OJ_N_OPS])(GEOSContextHandle_t,
                                               const GEOSGeometry *,
                                               const GEOSGeometry *) = {
    [OJ_OP_INTERSECTS] = GEOSIntersects_r, [OJ_OP_WITHIN] = GEOSWithin_r,
    [OJ_OP_CONTAINS] = GEOSContains_r,     [OJ_OP_COVERS] = GEOSCovers_r,
    [OJ_OP_COVEREDBY] = GEOSCoveredBy_r,   [OJ_OP_TOUCHES] = GEOSTouches_r,
    [OJ_OP_CROSSES] = GEOSCrosses_r,       [OJ_OP_OVERLAPS] = GEOSOverlaps_r,
    [OJ_OP_EQUALS] = GEOSEquals_r,         [OJ_OP_DISJOINT] = GEOSDisjoint_r,
};

static int is_one_kind(const struct kept *kept)
{
    return (kept->kinds & (kept->kinds - 1)) == 0;
}

/* Returns 1 if the predicate holds, 0 if not, and 2 if GEOS fails. Prepares the
 * input feature for contains and covers, otherwise the join feature. */
static char test_prepared_predicate(struct oj_geos_pairs *pairs, struct kept *a,
                                    struct kept *b)
{
    enum oj_op op = pairs->relation.op;
    int input_is_larger = op == OJ_OP_CONTAINS || op == OJ_OP_COVERS;
    const GEOSPreparedGeometry *prepared =
        input_is_larger ? prepare_union_of_parts(&pairs->input, a)
                        : prepare_union_of_parts(&pairs->join_side, b);
    const GEOSGeometry *other =
        input_is_larger ? find_or_make_union_of_parts(&pairs->join_side, b)
                        : find_or_make_union_of_parts(&pairs->input, a);
    if (prepared == NULL || other == NULL)
        return 2;
    return prepared_predicate[op](pairs->handle.geos, prepared, other);
}

/* Returns 1 if the predicate holds, 0 if not, and 2 if GEOS fails. */
static char test_plain_predicate(struct oj_geos_pairs *pairs,
                                 struct kept *kept_a, struct kept *kept_b)
{
    const struct oj_relation *relation = &pairs->relation;
    const char *pattern = oj_op_get(relation->op)->pattern;
    const GEOSGeometry *a = find_or_make_union_of_parts(&pairs->input, kept_a);
    const GEOSGeometry *b =
        find_or_make_union_of_parts(&pairs->join_side, kept_b);
    GEOSContextHandle_t geos = pairs->handle.geos;
    char answer;
    if (a == NULL || b == NULL)
        return 2;
    if (plain_predicate[relation->op] != NULL)
        return plain_predicate[relation->op](geos, a, b);
    if (pattern == NULL)
        pattern = relation->mask;
    if (relation->op != OJ_OP_CONTAINS_PROPERLY)
        return GEOSRelatePattern_r(geos, a, b, pattern);
    /* GEOS has containsProperly only for prepared geometries */
    answer = GEOSContains_r(geos, a, b); /* tested first, since envelopes decide
                                            it fast */
    return answer == 1 ? GEOSRelatePattern_r(geos, a, b, pattern) : answer;
}

enum oj_geos_outcome oj_geos_pairs_decide(struct oj_geos_pairs *pairs,
                                          int64_t row, int64_t feature)
{
    const struct oj_relation *relation = &pairs->relation;
    struct kept *a = NULL, *b = NULL;
    enum oj_geos_outcome both =
        find_or_make_features_of_pair(pairs, row, feature, &a, &b);
    char answer;
    if (both != OJ_GEOS_YES)
        return both;
    if (a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POLYGON)
    {
        struct polygon_locators locators = {pairs, &pairs->join_side, b, NULL,
                                            1};
        return relate_points_to_polygons(&locators, a, relation);
    }
    if (a->kinds == OJ_PART_POLYGON && b->kinds == OJ_PART_POINT)
    {
        struct polygon_locators locators = {pairs, &pairs->input, a, NULL, 1};
        struct oj_relation other = oj_relation_transpose(relation);
        return relate_points_to_polygons(&locators, b, &other);
    }
    answer = pairs->prepare && prepared_predicate[relation->op] != NULL &&
                     is_one_kind(a) && is_one_kind(b)
                 ? test_prepared_predicate(pairs, a, b)
                 : test_plain_predicate(pairs, a, b);
    return answer > 1 ? classify_geos_failure(pairs)
                      : (enum oj_geos_outcome)answer;
}

/* ---- distances ----------------------------------------------------------- */

/* Computes the distance from a point to a polygon with holes. GEOS skips a ring
 * if a rounded distance of its box is not below the minimum so far, so its
 * result is sometimes an ulp too large. Therefore, if the polygon does not
 * contain the point, each ring is measured separately. Returns 0 if GEOS
 * fails. */
static int measure_point_to_rings(GEOSContextHandle_t geos,
                                  const GEOSGeometry *point,
                                  const GEOSGeometry *polygon, double *distance)
{
    int n_holes = GEOSGetNumInteriorRings_r(geos, polygon);
    double least = INFINITY;
    for (int i = -1; i < n_holes && n_holes > 0; i++)
    {
        const GEOSGeometry *ring =
            i < 0 ? GEOSGetExteriorRing_r(geos, polygon)
                  : GEOSGetInteriorRingN_r(geos, polygon, i);
        double d = INFINITY;
        if (GEOSDistance_r(geos, point, ring, &d) == 0)
            return 0;
        least = d < least ? d : least;
    }
    if (n_holes > 0)
        *distance = least;
    return 1;
}

/* Computes the distance between two components. Returns 0 if GEOS fails. */
static int measure_component_distance(GEOSContextHandle_t geos,
                                      const GEOSGeometry *a,
                                      const GEOSGeometry *b, double *distance)
{
    int type_a = GEOSGeomTypeId_r(geos, a), type_b = GEOSGeomTypeId_r(geos, b);
    if (GEOSDistance_r(geos, a, b, distance) == 0)
        return 0;
    if (*distance > 0.0 && type_a == GEOS_POINT && type_b == GEOS_POLYGON)
        return measure_point_to_rings(geos, a, b, distance);
    if (*distance > 0.0 && type_a == GEOS_POLYGON && type_b == GEOS_POINT)
        return measure_point_to_rings(geos, b, a, distance);
    return 1;
}

enum oj_geos_outcome oj_geos_pairs_distance(struct oj_geos_pairs *pairs,
                                            int64_t row, int64_t feature,
                                            double *distance)
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    struct kept *a = NULL, *b = NULL;
    enum oj_geos_outcome both =
        find_or_make_features_of_pair(pairs, row, feature, &a, &b);
    const struct oj_box *box_a = NULL, *box_b = NULL;
    double least = INFINITY, d = INFINITY;
    if (both != OJ_GEOS_YES)
        return both;
    if (a->n_components > 1 || b->n_components > 1)
    {
        box_a = component_boxes(&pairs->input, a);
        box_b = component_boxes(&pairs->join_side, b);
        if (box_a == NULL || box_b == NULL)
            return OJ_GEOS_OUT_OF_MEMORY;
    }
    for (int64_t i = 0; i < a->n_components && least > 0.0; i++)
    {
        const GEOSGeometry *one = GEOSGetGeometryN_r(geos, a->geometry, (int)i);
        for (int64_t j = 0; j < b->n_components && least > 0.0; j++)
        {
            const GEOSGeometry *other;
            if (box_a != NULL && oj_box_distance(&box_a[i], &box_b[j]) > least)
                continue;
            other = GEOSGetGeometryN_r(geos, b->geometry, (int)j);
            if (one == NULL || other == NULL ||
                !measure_component_distance(geos, one, other, &d))
                return classify_geos_failure(pairs);
            least = d < least ? d : least;
        }
    }
    *distance = least;
    return OJ_GEOS_YES;
}

enum oj_geos_outcome oj_geos_pairs_shape_distance(struct oj_geos_pairs *pairs,
                                                  int64_t row, int64_t feature,
                                                  double *distance)
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    struct kept *a = NULL, *b = NULL;
    enum oj_geos_outcome both =
        find_or_make_features_of_pair(pairs, row, feature, &a, &b);
    int is_measured;
    if (both != OJ_GEOS_YES)
        return both;
    is_measured =
        pairs->relation.distance == OJ_DISTANCE_FRECHET
            ? GEOSFrechetDistance_r(geos, a->geometry, b->geometry, distance)
            : GEOSHausdorffDistance_r(geos, a->geometry, b->geometry, distance);
    return is_measured ? OJ_GEOS_YES : classify_geos_failure(pairs);
}

/* ---- GEOS -> arrays ------------------------------------------------------ */

static oj_status add_wkb_as_feature(struct oj_flat_buf *shapes,
                                    const uint8_t *wkb, size_t n,
                                    struct oj_error *err)
{
    OJ_TRY(oj_flat_buf_begin_feature(shapes, shapes->n_features, err));
    OJ_TRY(oj_wkb_add_parts(shapes, wkb, n, err));
    return oj_flat_buf_end_feature(shapes, err);
}

/* Appends a geometry as a feature; after a failure the caller removes what was
 * appended. */
static oj_status append_geometry(GEOSContextHandle_t geos,
                                 const GEOSGeometry *one,
                                 struct oj_flat_buf *shapes,
                                 struct oj_error *err)
{
    size_t n = 0;
    unsigned char *wkb = GEOSGeomToWKB_buf_r(geos, one, &n);
    oj_status status = wkb != NULL
                           ? add_wkb_as_feature(shapes, wkb, n, err)
                           : oj_fail(err, OJ_ERR_NOMEM,
                                     "out of memory for a geometry of GEOS: "
                                     "free memory, or use smaller batches");
    GEOSFree_r(geos, wkb);
    return status;
}

/* ---- intersections ------------------------------------------------------- */

/* Returns a copy of the members of one kind of a feature, polygons as their
 * union; NULL if GEOS failed. The caller owns it. */
static GEOSGeometry *copy_members_of_kind(const struct geos_side *side,
                                          struct kept *kept, unsigned kind)
{
    const GEOSGeometry *whole = find_or_make_union_of_parts(side, kept);
    if (whole == NULL)
        return NULL;
    if (kept->kinds == kind)
        return GEOSGeom_clone_r(side->geos, whole);
    if (kind == OJ_PART_POLYGON && whole != kept->geometry)
        return GEOSGeom_clone_r(side->geos,
                                GEOSGetGeometryN_r(side->geos, whole, 0));
    return make_geometry_of_parts_of_kinds(side, kept->feature, kind);
}

/* Returns 1 if the feature is one line whose x or y ascends or descends from
 * each vertex to the next, so that it is simple. Repeated vertices are
 * ignored. */
static int is_line_monotone(const struct oj_flat *flat, int64_t feature)
{
    int ways = 15; /* bits 1, 2, 4 and 8 stay set while x ascends, x descends, y
                      ascends, y descends */
    int64_t v, end;
    if (flat->part_offset[feature + 1] - flat->part_offset[feature] != 1)
        return 0;
    oj_flat_vertex_range(flat, feature, &v, &end);
    for (v++; v < end && ways != 0; v++)
    {
        const double dx = flat->x[v] - flat->x[v - 1];
        const double dy = flat->y[v] - flat->y[v - 1];
        if (dx != 0.0 || dy != 0.0)
            ways &= (dx > 0.0) | (dx < 0.0) << 1 | (dy > 0.0) << 2 |
                    (dy < 0.0) << 3;
    }
    return ways != 0;
}

/* Returns 1 if the lines of a feature are simple, 0 if not, and -1 if GEOS
 * failed or memory is out. GEOS tests lines that are not monotone. */
static int are_lines_simple(const struct geos_side *side, struct kept *kept)
{
    GEOSGeometry *lines = NULL;
    char is_simple;
    if (kept->is_simple < 0 && is_line_monotone(side->flat, kept->feature))
        kept->is_simple = 1;
    if (kept->is_simple >= 0)
        return kept->is_simple;
    if (kept->kinds != OJ_PART_LINE)
    {
        lines =
            make_geometry_of_parts_of_kinds(side, kept->feature, OJ_PART_LINE);
        if (lines == NULL)
            return -1;
    }
    is_simple =
        GEOSisSimple_r(side->geos, lines != NULL ? lines : kept->geometry);
    GEOSGeom_destroy_r(side->geos, lines);
    if (is_simple > 1)
        return -1;
    kept->is_simple = is_simple;
    return is_simple;
}

/* The members of one kind of a feature that are to be intersected. */
struct geos_operand
{
    const struct geos_side *side;
    struct kept *kept; /* NULL for the united polygons of several features */
    unsigned kind;
    const GEOSGeometry *geometry;
};

/* Sets *from to the operand as arrays: those of its layer, or those of its
 * geometry, to which *space is then set. Returns 0 if memory is out. */
static int find_arrays_of_operand(struct oj_geos_pairs *pairs,
                                  const struct geos_operand *operand,
                                  struct oj_flat *space,
                                  struct geos_split_side *from)
{
    struct oj_error err;
    struct kept *kept = operand->kept;
    if (kept != NULL &&
        (operand->kind == OJ_PART_LINE ||
         find_or_make_union_of_parts(operand->side, kept) == kept->geometry))
    {
        *from = (struct geos_split_side){operand->side->flat, kept->feature,
                                         operand->kind};
        return 1;
    }
    oj_flat_buf_clear(&pairs->unsplit);
    if (append_geometry(pairs->handle.geos, operand->geometry, &pairs->unsplit,
                        &err) != OJ_OK)
        return 0;
    *space = oj_flat_buf_view(&pairs->unsplit);
    *from = (struct geos_split_side){space, 0, operand->kind};
    return 1;
}

/* Sets *is_needed to 1 if a third segment may cross two that run over one
 * another: if the lines of an operand are not simple, and the other operand has
 * lines or polygons. Returns 0 after a failure, otherwise 1. */
static int check_need_to_split(const struct geos_operand operand[2],
                               int *is_needed)
{
    *is_needed = 0;
    if (((operand[0].kind | operand[1].kind) & OJ_PART_POINT) != 0)
        return 1;
    for (int i = 0; i < 2 && !*is_needed; i++)
    {
        int is_simple = operand[i].kind != OJ_PART_LINE ||
                        are_lines_simple(operand[i].side, operand[i].kept);
        if (operand[i].kind == OJ_PART_LINE && is_simple < 0)
            return 0;
        *is_needed = !is_simple;
    }
    return 1;
}

/* Returns 1 if the polygons are valid. Others are not clipped, since GEOS might
 * repair a clip and the whole in different ways. */
static int are_polygons_valid(const struct geos_side *side, struct kept *kept)
{
    if (kept->is_valid < 0)
        kept->is_valid = GEOSisValid_r(side->geos, kept->geometry) == 1;
    return kept->is_valid;
}

/* Returns 1 if an overlay with the other feature should be computed from a clip
 * of the first one; kept->clip is then made, if it was not before. */
static int prepare_clip(const struct geos_side *side, struct kept *kept,
                        const struct geos_side *other_side, struct kept *other)
{
    struct oj_error err;
    if (!CAN_CLIP || kept->kinds != OJ_PART_POLYGON ||
        kept->n_vertices < CLIP_VERTICES ||
        kept->n_vertices / CLIP_RATIO < other->n_vertices ||
        kept->n_overlays++ < CLIP_AFTER)
        return 0;
    kept->n_overlays = CLIP_AFTER;
    if (!are_polygons_valid(side, kept) ||
        (other->kinds == OJ_PART_POLYGON &&
         !are_polygons_valid(other_side, other)))
        return 0;
    if (kept->clip != NULL)
        return 1;
    kept->clip = oj_malloc(1, sizeof *kept->clip);
    if (kept->clip != NULL &&
        oj_polygon_clip_build(kept->clip, side->flat, kept->feature, &err) ==
            OJ_OK)
        return 1;
    oj_free(kept->clip);
    kept->clip = NULL;
    return 0;
}

/* Returns a clip of a feature that can replace it in an intersection with the
 * other feature, or NULL if the whole feature must be used. The caller owns
 * it. */
static GEOSGeometry *clip_feature(struct oj_geos_pairs *pairs,
                                  const struct geos_side *side,
                                  struct kept *kept,
                                  const struct geos_side *other_side,
                                  struct kept *other)
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    struct geos_side clipped_side = {.geos = geos};
    struct oj_flat clipped;
    struct oj_box box;
    struct oj_error err;
    GEOSGeometry *geometry;
    double area = 0.0, area_of_other = 0.0;
    int is_clipped = 0;
    if (!prepare_clip(side, kept, other_side, other))
        return NULL;
    box = oj_box_of_feature(other_side->flat, other->feature);
    if (oj_polygon_clip_near(kept->clip, &box, kept->n_vertices / 2,
                             &pairs->clipped, &is_clipped, &err) != OJ_OK ||
        !is_clipped)
        return NULL;
    clipped = oj_flat_buf_view(&pairs->clipped);
    clipped_side.flat = &clipped;
    geometry = make_feature(&clipped_side, 0);
    /* A clip must have at least the area of the other operand, because GEOS
     * discards an intersection that is larger than one of its operands. */
    if (geometry != NULL &&
        GEOSArea_r(geos, other->geometry, &area_of_other) == 1 &&
        GEOSArea_r(geos, geometry, &area) == 1 && area >= area_of_other)
        return geometry;
    GEOSGeom_destroy_r(geos, geometry);
    return NULL;
}

/* Returns the intersection of two operands, from a clip of the larger one if
 * that is possible, or NULL if GEOS failed or memory is out. a or b is NULL for
 * the polygons of several features. */
static GEOSGeometry *intersect_whole_or_clipped(struct oj_geos_pairs *pairs,
                                                struct kept *a,
                                                const GEOSGeometry *of_a,
                                                struct kept *b,
                                                const GEOSGeometry *of_b)
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    GEOSGeometry *clip = NULL, *common;
    if (a == NULL || b == NULL || of_a != a->geometry || of_b != b->geometry)
        return GEOSIntersection_r(geos, of_a, of_b);
    if (a->n_vertices > b->n_vertices)
        of_a = clip =
            clip_feature(pairs, &pairs->input, a, &pairs->join_side, b);
    else
        of_b = clip =
            clip_feature(pairs, &pairs->join_side, b, &pairs->input, a);
    common = GEOSIntersection_r(geos, of_a != NULL ? of_a : a->geometry,
                                of_b != NULL ? of_b : b->geometry);
    GEOSGeom_destroy_r(geos, clip);
    if (common != NULL || clip == NULL)
        return common;
    pairs->handle.message[0] = '\0';
    return GEOSIntersection_r(geos, a->geometry, b->geometry);
}

/* Returns the intersection of two operands, or NULL if GEOS failed or memory is
 * out. Segments that run over one another are split before
 * (geos_split_segments.h). */
static GEOSGeometry *intersect_operands(struct oj_geos_pairs *pairs,
                                        const struct geos_operand operand[2])
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    struct geos_split_side from[2];
    struct oj_flat space;
    struct oj_error err;
    GEOSGeometry *a, *b, *common = NULL;
    int is_split = 0;
    if (!check_need_to_split(operand, &is_split))
        return NULL;
    if (is_split &&
        (!find_arrays_of_operand(pairs, &operand[0], &space, &from[0]) ||
         !find_arrays_of_operand(pairs, &operand[1], &space, &from[1]) ||
         geos_split_segments(&pairs->split, from, &is_split, &err) != OJ_OK))
        return NULL;
    if (!is_split)
        return intersect_whole_or_clipped(pairs, operand[0].kept,
                                          operand[0].geometry, operand[1].kept,
                                          operand[1].geometry);
    space = oj_flat_buf_view(&pairs->split.split);
    a = make_feature(&(struct geos_side){.geos = geos, .flat = &space}, 0);
    b = make_feature(&(struct geos_side){.geos = geos, .flat = &space}, 1);
    if (a != NULL && b != NULL)
        common = GEOSIntersection_r(geos, a, b);
    GEOSGeom_destroy_r(geos, a);
    GEOSGeom_destroy_r(geos, b);
    return common;
}

/* Returns the intersection of the members of kind_a of a with the members of
 * kind_b of b, or NULL if GEOS failed or memory is out. */
static GEOSGeometry *
intersect_parts_of_two_kinds(struct oj_geos_pairs *pairs, struct kept *a,
                             unsigned kind_a, struct kept *b, unsigned kind_b)
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    GEOSGeometry *of_a = copy_members_of_kind(&pairs->input, a, kind_a);
    GEOSGeometry *of_b = copy_members_of_kind(&pairs->join_side, b, kind_b);
    GEOSGeometry *common = NULL;
    if (of_a != NULL && of_b != NULL)
        common = intersect_operands(
            pairs,
            (struct geos_operand[2]){{&pairs->input, a, kind_a, of_a},
                                     {&pairs->join_side, b, kind_b, of_b}});
    GEOSGeom_destroy_r(geos, of_a);
    GEOSGeom_destroy_r(geos, of_b);
    return common;
}

/* Returns the union of the intersections of each kind of a with each kind of b.
 * Empty members are left out, because GEOS crashes for unions of points with
 * empty polygons. */
static GEOSGeometry *union_of_intersections_by_kind(struct oj_geos_pairs *pairs,
                                                    struct kept *a,
                                                    struct kept *b)
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    struct geos_members members = allocate_member_list(geos, 9);
    GEOSGeometry *all;
    for (unsigned i = 0; i < 9 && members.list != NULL; i++)
    {
        unsigned kind_a = 1u << i / 3, kind_b = 1u << i % 3;
        GEOSGeometry *common;
        if ((a->kinds & kind_a) == 0 || (b->kinds & kind_b) == 0)
            continue;
        common = intersect_parts_of_two_kinds(pairs, a, kind_a, b, kind_b);
        if (common != NULL && GEOSisEmpty_r(geos, common) != 0)
            GEOSGeom_destroy_r(geos, common);
        else
            add_member(&members, common);
    }
    all = make_collection(&members, GEOS_GEOMETRYCOLLECTION, NULL);
    return members.n < 2 ? all : unite_collection(geos, all);
}

/* Returns the intersection of two features, or NULL if GEOS failed or memory is
 * out. GEOS does not intersect collections of several kinds, so these are
 * intersected kind by kind. */
static GEOSGeometry *intersect_cached_features(struct oj_geos_pairs *pairs,
                                               struct kept *a, struct kept *b)
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    const GEOSGeometry *whole_a = find_or_make_union_of_parts(&pairs->input, a);
    const GEOSGeometry *whole_b =
        find_or_make_union_of_parts(&pairs->join_side, b);
    if (whole_a == NULL || whole_b == NULL)
        return NULL;
    if (GEOSGeomTypeId_r(geos, whole_a) == GEOS_GEOMETRYCOLLECTION ||
        GEOSGeomTypeId_r(geos, whole_b) == GEOS_GEOMETRYCOLLECTION)
        return union_of_intersections_by_kind(pairs, a, b);
    return intersect_operands(
        pairs,
        (struct geos_operand[2]){{&pairs->input, a, a->kinds, whole_a},
                                 {&pairs->join_side, b, b->kinds, whole_b}});
}

enum oj_geos_outcome oj_geos_pairs_add_intersection(struct oj_geos_pairs *pairs,
                                                    int64_t row,
                                                    int64_t feature,
                                                    struct oj_flat_buf *shapes)
{
    struct kept *a = NULL, *b = NULL;
    enum oj_geos_outcome both =
        find_or_make_features_of_pair(pairs, row, feature, &a, &b);
    GEOSGeometry *common;
    struct oj_error err;
    oj_status status;
    if (both == OJ_GEOS_NO)
        return oj_flat_buf_add_null(shapes, shapes->n_features, &err) == OJ_OK
                   ? OJ_GEOS_YES
                   : OJ_GEOS_OUT_OF_MEMORY;
    if (both != OJ_GEOS_YES)
        return both;
    common = intersect_cached_features(pairs, a, b);
    if (common == NULL)
        return classify_geos_failure(pairs);
    status = append_geometry(pairs->handle.geos, common, shapes, &err);
    GEOSGeom_destroy_r(pairs->handle.geos, common);
    if (status == OJ_OK)
        return OJ_GEOS_YES;
    oj_flat_buf_drop_feature(shapes);
    return OJ_GEOS_OUT_OF_MEMORY;
}

/* ---- areas --------------------------------------------------------------- */

/* Measures the area of a feature. If GEOS fails to unite its parts, *area is
 * the sum of their areas, and *is_united is 0. */
static oj_status measure_area(struct oj_geos_pairs *pairs,
                              struct geos_side *side, int64_t feature,
                              double *area, int *is_united,
                              struct oj_error *err)
{
    const struct oj_flat *flat = side->flat;
    const GEOSGeometry *whole = NULL;
    struct kept *kept;
    struct oj_flat united;
    *is_united = 1;
    *area = oj_flat_area(flat, feature);
    if (oj_flat_is_points(flat) || *area == 0.0 ||
        flat->part_offset[feature + 1] - flat->part_offset[feature] < 2)
        return OJ_OK;
    pairs->handle.message[0] = '\0';
    kept = find_or_make_feature(side, feature);
    if (kept != NULL)
        whole = find_or_make_union_of_parts(side, kept);
    *is_united = whole != NULL;
    if (whole == NULL)
        return classify_geos_failure(pairs) == OJ_GEOS_OUT_OF_MEMORY
                   ? oj_fail(err, OJ_ERR_NOMEM,
                             "out of memory for the union of the parts of a "
                             "feature: free memory, or use smaller batches")
                   : OJ_OK;
    if (whole == kept->geometry)
        return OJ_OK;
    oj_flat_buf_clear(&pairs->united);
    OJ_TRY(append_geometry(pairs->handle.geos, whole, &pairs->united, err));
    united = oj_flat_buf_view(&pairs->united);
    *area = oj_flat_area(&united, 0);
    return OJ_OK;
}

oj_status oj_geos_pairs_area(struct oj_geos_pairs *pairs, int of_input,
                             int64_t feature, double *area,
                             struct oj_error *err)
{
    struct geos_side *side = of_input ? &pairs->input : &pairs->join_side;
    struct kept_area *kept = &pairs->area[of_input != 0][feature % AREAS_KEPT];
    int is_united;
    if (kept->is_set && kept->feature == feature)
    {
        *area = kept->area;
        return OJ_OK;
    }
    OJ_TRY(measure_area(pairs, side, feature, area, &is_united, err));
    *kept = (struct kept_area){feature, *area, is_united};
    return OJ_OK;
}

/* ---- area covered by several features -------------------------------------
 *
 * Computes the part of a row that its join features cover together, counting
 * each location once. Only geometries of one kind are intersected and united,
 * and none is empty, since GEOS crashes for other collections:
 *
 *    row, feature --intersect, kind by kind--> polygons | lines
 *    borders that polygons share are dropped: polygons cover areas only
 *    features with polygons --cut to the row's box, unite--> U
 *    area:   of the united polygons
 *    length: of the united lines (and of the row's lines within U), outside
 *            of the united polygons
 *
 * The ends of a line that is cut at the border of a polygon are rounded, so two
 * such pieces of one line need not lie on one another. Therefore lines of the
 * row are intersected with the union U of the polygons. */

/* Geometries that are to be united. Owner. */
struct geos_pieces
{
    GEOSGeometry **list;
    int64_t n, capacity;
};

struct geos_cover
{
    struct oj_geos_pairs *pairs;
    int64_t row;
    const int32_t *features; /* [n] */
    int64_t n;
    struct geos_pieces polygons, lines; /* intersections of the row with the
                                           features */
    GEOSGeometry *covered;              /* union of `polygons`; NULL if there
                                           are none */
};

static void destroy_pieces(GEOSContextHandle_t geos, struct geos_pieces *pieces)
{
    for (int64_t i = 0; i < pieces->n; i++)
        GEOSGeom_destroy_r(geos, pieces->list[i]);
    oj_free(pieces->list);
    memset(pieces, 0, sizeof *pieces);
}

/* Adds a piece and takes ownership of it. Returns 0 if memory is out. */
static int add_piece(GEOSContextHandle_t geos, struct geos_pieces *pieces,
                     GEOSGeometry *piece)
{
    struct oj_error err;
    if (oj_reserve(&pieces->list, pieces->n, pieces->n + 1, &pieces->capacity,
                   sizeof *pieces->list, &err) != OJ_OK)
    {
        GEOSGeom_destroy_r(geos, piece);
        return 0;
    }
    pieces->list[pieces->n++] = piece;
    return 1;
}

/* Adds a piece to the list of its kind and takes ownership of it. Pieces that
 * are empty or of points, and those whose list is NULL, are destroyed. Returns
 * 0 if memory is out. */
static int add_piece_by_kind(GEOSContextHandle_t geos, GEOSGeometry *piece,
                             struct geos_pieces *polygons,
                             struct geos_pieces *lines)
{
    const int type = GEOSGeomTypeId_r(geos, piece);
    struct geos_pieces *to = NULL;
    if (type == GEOS_POLYGON || type == GEOS_MULTIPOLYGON)
        to = polygons;
    else if (type == GEOS_LINESTRING || type == GEOS_MULTILINESTRING)
        to = lines;
    if (to != NULL && GEOSisEmpty_r(geos, piece) == 0)
        return add_piece(geos, to, piece);
    GEOSGeom_destroy_r(geos, piece);
    return 1;
}

/* Adds a geometry, or each member of a collection (the result of an overlay),
 * by kind. Takes ownership. Returns 0 if the geometry is NULL, because GEOS
 * failed, or if memory is out. */
static int add_pieces_by_kind(GEOSContextHandle_t geos, GEOSGeometry *geometry,
                              struct geos_pieces *polygons,
                              struct geos_pieces *lines)
{
    int is_added = 1;
    if (geometry == NULL)
        return 0;
    if (GEOSGeomTypeId_r(geos, geometry) != GEOS_GEOMETRYCOLLECTION)
        return add_piece_by_kind(geos, geometry, polygons, lines);
    for (int i = 0; is_added && i < GEOSGetNumGeometries_r(geos, geometry); i++)
    {
        GEOSGeometry *member =
            GEOSGeom_clone_r(geos, GEOSGetGeometryN_r(geos, geometry, i));
        is_added =
            member != NULL && add_piece_by_kind(geos, member, polygons, lines);
    }
    GEOSGeom_destroy_r(geos, geometry);
    return is_added;
}

/* Returns the union of the pieces, or NULL if GEOS failed or there are no
 * pieces. Takes ownership of the pieces. */
static GEOSGeometry *unite_pieces(GEOSContextHandle_t geos,
                                  struct geos_pieces *pieces)
{
    GEOSGeometry *united = NULL;
    const int64_t n = pieces->n;
    pieces->n = 0; /* GEOS owns them now */
    if (n == 1)
        united = pieces->list[0];
    else if (n > 1 && n <= INT_MAX)
        united = unite_collection(
            geos, GEOSGeom_createCollection_r(geos, GEOS_GEOMETRYCOLLECTION,
                                              pieces->list, (unsigned)n));
    else
        pieces->n = n;
    destroy_pieces(geos, pieces);
    return united;
}

/* Sets *out to the union of the pieces, or to NULL if there are none. Takes
 * ownership of the pieces. */
static enum oj_geos_outcome unite_pieces_if_any(struct oj_geos_pairs *pairs,
                                                struct geos_pieces *pieces,
                                                GEOSGeometry **out)
{
    const int is_any = pieces->n > 0;
    *out = unite_pieces(pairs->handle.geos, pieces);
    return is_any && *out == NULL ? classify_geos_failure(pairs) : OJ_GEOS_YES;
}

/* Returns a box around the row with a margin, so that the vertices that cutting
 * creates on its border are not on the lines of the row. */
static GEOSGeometry *make_box_around_row(const struct geos_cover *cover)
{
    GEOSContextHandle_t geos = cover->pairs->handle.geos;
    const struct oj_flat *flat = cover->pairs->input.flat;
    GEOSCoordSequence *corners = GEOSCoordSeq_create_r(geos, 5, 2);
    GEOSGeometry *ring;
    struct oj_box box;
    int64_t first, end;
    double far;
    if (corners == NULL)
        return NULL;
    oj_flat_vertex_range(flat, cover->row, &first, &end);
    box = box_of_vertices(flat, first, end);
    far = fmax(box.x1 - box.x0, box.y1 - box.y0) / 16.0 +
          1e-9 * (fabs(box.x0) + fabs(box.x1) + fabs(box.y0) + fabs(box.y1));
    far = far > 0.0 ? far : 1.0;
    for (unsigned i = 0; i < 5; i++)
    {
        const double x = i == 1 || i == 2 ? box.x1 + far : box.x0 - far;
        const double y = i == 2 || i == 3 ? box.y1 + far : box.y0 - far;
        if (GEOSCoordSeq_setXY_r(geos, corners, i, x, y) == 0)
        {
            GEOSCoordSeq_destroy_r(geos, corners);
            return NULL;
        }
    }
    ring = GEOSGeom_createLinearRing_r(geos, corners);
    return ring != NULL ? GEOSGeom_createPolygon_r(geos, ring, NULL, 0) : NULL;
}

/* Returns the kinds of a feature's parts that have an area or a length. */
static unsigned kinds_with_area_or_length(const struct oj_flat *flat,
                                          int64_t feature)
{
    return oj_flat_kinds(flat, feature) & (OJ_PART_LINE | OJ_PART_POLYGON);
}

/* Adds the intersection of the row's polygons with those of each feature. */
static enum oj_geos_outcome add_common_polygons(struct geos_cover *cover)
{
    struct oj_geos_pairs *pairs = cover->pairs;
    enum oj_geos_outcome outcome = OJ_GEOS_YES;
    if ((oj_flat_kinds(pairs->input.flat, cover->row) & OJ_PART_POLYGON) == 0)
        return OJ_GEOS_YES;
    for (int64_t i = 0; outcome == OJ_GEOS_YES && i < cover->n; i++)
    {
        struct kept *a = NULL, *b = NULL;
        GEOSGeometry *common;
        if ((oj_flat_kinds(pairs->join_side.flat, cover->features[i]) &
             OJ_PART_POLYGON) == 0)
            continue;
        outcome = find_or_make_features_of_pair(pairs, cover->row,
                                                cover->features[i], &a, &b);
        if (outcome != OJ_GEOS_YES)
            return outcome;
        common = a->kinds == OJ_PART_POLYGON && b->kinds == OJ_PART_POLYGON
                     ? intersect_cached_features(pairs, a, b)
                     : intersect_parts_of_two_kinds(pairs, a, OJ_PART_POLYGON,
                                                    b, OJ_PART_POLYGON);
        if (!add_pieces_by_kind(pairs->handle.geos, common, &cover->polygons,
                                NULL))
            outcome = classify_geos_failure(pairs);
    }
    return outcome;
}

/* Adds the lines of all features to `lines`, as one feature. */
static oj_status collect_lines_of_features(const struct geos_cover *cover,
                                           struct oj_flat_buf *lines)
{
    const struct oj_flat *flat = cover->pairs->join_side.flat;
    struct oj_error err;
    OJ_TRY(oj_flat_buf_begin_feature(lines, 0, &err));
    for (int64_t i = 0; i < cover->n; i++)
    {
        if ((oj_flat_kinds(flat, cover->features[i]) & OJ_PART_LINE) == 0)
            continue;
        for (int64_t part = flat->part_offset[cover->features[i]];
             part < flat->part_offset[cover->features[i] + 1]; part++)
        {
            if (flat->part_kind[part] == OJ_PART_LINE)
                OJ_TRY(oj_flat_buf_copy_part(lines, flat, part, &err));
        }
    }
    return oj_flat_buf_end_feature(lines, &err);
}

/* Adds the intersection of the row's members of one kind with all the lines at
 * once. Intersected feature by feature, pieces would end in crossings that are
 * rounded differently, and would not lie on one another. */
static enum oj_geos_outcome add_common_lines_of_kind(struct geos_cover *cover,
                                                     struct kept *row,
                                                     unsigned kind,
                                                     struct geos_side *side,
                                                     struct kept *lines)
{
    struct oj_geos_pairs *pairs = cover->pairs;
    GEOSGeometry *of_row, *common = NULL;
    if ((row->kinds & kind) == 0)
        return OJ_GEOS_YES;
    of_row = copy_members_of_kind(&pairs->input, row, kind);
    if (of_row != NULL)
        common = intersect_operands(
            pairs, (struct geos_operand[2]){
                       {&pairs->input, row, kind, of_row},
                       {side, lines, OJ_PART_LINE, lines->geometry}});
    GEOSGeom_destroy_r(pairs->handle.geos, of_row);
    return add_pieces_by_kind(pairs->handle.geos, common, &cover->polygons,
                              &cover->lines)
               ? OJ_GEOS_YES
               : classify_geos_failure(pairs);
}

/* Adds the intersection of the row with the lines of the features. */
static enum oj_geos_outcome add_common_lines(struct geos_cover *cover)
{
    struct oj_geos_pairs *pairs = cover->pairs;
    struct oj_flat_buf buf = {0};
    struct kept *row, lines = {.kinds = OJ_PART_LINE};
    enum oj_geos_outcome outcome = OJ_GEOS_OUT_OF_MEMORY;
    if (collect_lines_of_features(cover, &buf) == OJ_OK)
    {
        const struct oj_flat flat = oj_flat_buf_view(&buf);
        struct geos_side side = {.geos = pairs->handle.geos, .flat = &flat};
        outcome = OJ_GEOS_YES;
        pairs->handle.message[0] = '\0';
        row = find_or_make_feature(&pairs->input, cover->row);
        if (oj_flat_kinds(&flat, 0) != 0)
            lines.geometry = make_feature(&side, 0);
        if (row == NULL ||
            (lines.geometry == NULL && oj_flat_kinds(&flat, 0) != 0))
            outcome = classify_geos_failure(pairs);
        if (outcome == OJ_GEOS_YES && lines.geometry != NULL)
            outcome = add_common_lines_of_kind(cover, row, OJ_PART_POLYGON,
                                               &side, &lines);
        if (outcome == OJ_GEOS_YES && lines.geometry != NULL)
            outcome = add_common_lines_of_kind(cover, row, OJ_PART_LINE, &side,
                                               &lines);
        GEOSGeom_destroy_r(pairs->handle.geos, lines.geometry);
    }
    oj_flat_buf_free(&buf);
    return outcome;
}

/* Adds the polygons of a feature to pieces: clipped to box, unless that is
 * NULL. */
static enum oj_geos_outcome add_polygons_of_feature(struct geos_cover *cover,
                                                    int64_t feature,
                                                    const GEOSGeometry *box,
                                                    struct geos_pieces *pieces)
{
    struct geos_side *side = &cover->pairs->join_side;
    struct kept *kept = find_or_make_feature(side, feature);
    GEOSGeometry *polygons =
        kept != NULL ? copy_members_of_kind(side, kept, OJ_PART_POLYGON) : NULL;
    if (polygons != NULL && box != NULL)
    {
        GEOSGeometry *whole = polygons;
        polygons = GEOSIntersection_r(side->geos, whole, box);
        GEOSGeom_destroy_r(side->geos, whole);
    }
    return add_pieces_by_kind(side->geos, polygons, pieces, NULL)
               ? OJ_GEOS_YES
               : classify_geos_failure(cover->pairs);
}

/* Sets *out to the union of the features' polygons, clipped to a box around the
 * row, or to NULL if there are none. If only one feature has polygons, they are
 * not clipped. */
static enum oj_geos_outcome unite_polygons_near_row(struct geos_cover *cover,
                                                    GEOSGeometry **out)
{
    struct oj_geos_pairs *pairs = cover->pairs;
    const struct oj_flat *flat = pairs->join_side.flat;
    GEOSContextHandle_t geos = pairs->handle.geos;
    enum oj_geos_outcome outcome = OJ_GEOS_YES;
    struct geos_pieces pieces = {0};
    GEOSGeometry *box = NULL;
    int64_t n = 0;
    *out = NULL;
    for (int64_t i = 0; i < cover->n && n < 2; i++)
        n += (oj_flat_kinds(flat, cover->features[i]) & OJ_PART_POLYGON) != 0;
    if (n > 1)
    {
        box = make_box_around_row(cover);
        if (box == NULL)
            return classify_geos_failure(pairs);
    }
    for (int64_t i = 0; outcome == OJ_GEOS_YES && n > 0 && i < cover->n; i++)
    {
        if (oj_flat_kinds(flat, cover->features[i]) & OJ_PART_POLYGON)
            outcome = add_polygons_of_feature(cover, cover->features[i], box,
                                              &pieces);
    }
    GEOSGeom_destroy_r(geos, box);
    if (outcome == OJ_GEOS_YES)
        return unite_pieces_if_any(pairs, &pieces, out);
    destroy_pieces(geos, &pieces);
    return outcome;
}

/* Measures area and length of a geometry of one kind; both are 0 for NULL. */
static enum oj_geos_outcome measure_geometry(struct oj_geos_pairs *pairs,
                                             const GEOSGeometry *geometry,
                                             double *area, double *length)
{
    struct oj_error err;
    struct oj_flat flat;
    *area = *length = 0.0;
    if (geometry == NULL)
        return OJ_GEOS_YES;
    oj_flat_buf_clear(&pairs->united);
    if (append_geometry(pairs->handle.geos, geometry, &pairs->united, &err) !=
        OJ_OK)
        return OJ_GEOS_OUT_OF_MEMORY;
    flat = oj_flat_buf_view(&pairs->united);
    *area = oj_flat_area(&flat, 0);
    *length = oj_flat_length(&flat, 0);
    return OJ_GEOS_YES;
}

/* Sets *length to the length of operation(lines, polygons): of all lines if
 * polygons is NULL, and 0 if lines is NULL. */
static enum oj_geos_outcome measure_lines(
    struct oj_geos_pairs *pairs,
    GEOSGeometry *(*operation)(GEOSContextHandle_t, const GEOSGeometry *,
                               const GEOSGeometry *),
    const GEOSGeometry *lines, const GEOSGeometry *polygons, double *length)
{
    GEOSGeometry *result;
    enum oj_geos_outcome outcome;
    double area;
    if (lines == NULL || polygons == NULL)
        return measure_geometry(pairs, lines, &area, length);
    result = operation(pairs->handle.geos, lines, polygons);
    if (result == NULL)
        return classify_geos_failure(pairs);
    outcome = measure_geometry(pairs, result, &area, length);
    GEOSGeom_destroy_r(pairs->handle.geos, result);
    return outcome;
}

/* Sets *out to the parts of the row's lines that lie in `around`, the union of
 * polygons, or to NULL if there are none. If the row also has polygons, these
 * parts are added to cover->lines instead, to be united with the other
 * lines. */
static enum oj_geos_outcome intersect_lines_of_row(struct geos_cover *cover,
                                                   const GEOSGeometry *around,
                                                   GEOSGeometry **out)
{
    struct oj_geos_pairs *pairs = cover->pairs;
    GEOSContextHandle_t geos = pairs->handle.geos;
    struct kept *row = find_or_make_feature(&pairs->input, cover->row);
    GEOSGeometry *lines =
        row != NULL ? copy_members_of_kind(&pairs->input, row, OJ_PART_LINE)
                    : NULL;
    struct geos_pieces pieces = {0};
    int is_kept;
    *out = NULL;
    if (lines == NULL)
        return classify_geos_failure(pairs);
    is_kept = add_pieces_by_kind(
        geos,
        intersect_operands(
            pairs,
            (struct geos_operand[2]){
                {&pairs->input, row, OJ_PART_LINE, lines},
                {&pairs->join_side, NULL, OJ_PART_POLYGON, around}}),
        NULL, (row->kinds & OJ_PART_POLYGON) != 0 ? &cover->lines : &pieces);
    GEOSGeom_destroy_r(geos, lines);
    if (is_kept)
        return unite_pieces_if_any(pairs, &pieces, out);
    destroy_pieces(geos, &pieces);
    return classify_geos_failure(pairs);
}

/* Sets *length to the length of the covered lines outside of the covered
 * area. */
static enum oj_geos_outcome measure_covered_lines(struct geos_cover *cover,
                                                  double *length)
{
    struct oj_geos_pairs *pairs = cover->pairs;
    GEOSContextHandle_t geos = pairs->handle.geos;
    const unsigned kinds =
        kinds_with_area_or_length(pairs->input.flat, cover->row);
    GEOSGeometry *around = NULL, *inside = NULL, *lines = NULL;
    enum oj_geos_outcome outcome = OJ_GEOS_YES;
    double in_polygons = 0.0, in_both = 0.0, all = 0.0;
    if ((kinds & OJ_PART_LINE) != 0)
        outcome = unite_polygons_near_row(cover, &around);
    if (outcome == OJ_GEOS_YES && around != NULL)
        outcome = intersect_lines_of_row(cover, around, &inside);
    if (outcome == OJ_GEOS_YES)
        outcome = unite_pieces_if_any(pairs, &cover->lines, &lines);
    if (outcome == OJ_GEOS_YES)
        outcome =
            measure_lines(pairs, GEOSDifference_r, lines, cover->covered, &all);
    if (outcome == OJ_GEOS_YES && inside != NULL)
        outcome = measure_lines(pairs, NULL, inside, NULL, &in_polygons);
    if (outcome == OJ_GEOS_YES && inside != NULL && lines != NULL)
        outcome =
            measure_lines(pairs, GEOSIntersection_r, lines, around, &in_both);
    *length = fmax(all + in_polygons - in_both, 0.0);
    GEOSGeom_destroy_r(geos, around);
    GEOSGeom_destroy_r(geos, inside);
    GEOSGeom_destroy_r(geos, lines);
    return outcome;
}

/* Sets *area and *length to the cover of a single feature, which is its
 * intersection with the row: not for two features with polygons, whose
 * intersection includes the borders that they share. */
static enum oj_geos_outcome
measure_intersection_of_pair(struct oj_geos_pairs *pairs, int64_t row,
                             int64_t feature, double *area, double *length)
{
    enum oj_geos_outcome outcome;
    oj_flat_buf_clear(&pairs->united);
    outcome =
        oj_geos_pairs_add_intersection(pairs, row, feature, &pairs->united);
    if (outcome == OJ_GEOS_YES)
    {
        const struct oj_flat common = oj_flat_buf_view(&pairs->united);
        *area = oj_flat_area(&common, 0);
        *length = oj_flat_length(&common, 0);
    }
    return outcome;
}

enum oj_geos_outcome oj_geos_pairs_measure_cover(struct oj_geos_pairs *pairs,
                                                 int64_t row,
                                                 const int32_t *features,
                                                 int64_t n, int wants_length,
                                                 double *area, double *length)
{
    struct geos_cover cover = {
        .pairs = pairs, .row = row, .features = features, .n = n};
    const unsigned kinds = kinds_with_area_or_length(pairs->input.flat, row);
    enum oj_geos_outcome outcome;
    double unused;
    *area = *length = 0.0;
    if (kinds == 0 || n == 0)
        return OJ_GEOS_YES;
    if (n == 1 &&
        kinds_with_area_or_length(pairs->join_side.flat, features[0]) == 0)
        return OJ_GEOS_YES;
    if (n == 1 &&
        (kinds & kinds_with_area_or_length(pairs->join_side.flat, features[0]) &
         OJ_PART_POLYGON) == 0)
        return measure_intersection_of_pair(pairs, row, features[0], area,
                                            length);
    outcome = add_common_polygons(&cover);
    if (outcome == OJ_GEOS_YES && wants_length)
        outcome = add_common_lines(&cover);
    if (outcome == OJ_GEOS_YES)
        outcome = unite_pieces_if_any(pairs, &cover.polygons, &cover.covered);
    if (outcome == OJ_GEOS_YES)
        outcome = measure_geometry(pairs, cover.covered, area, &unused);
    if (outcome == OJ_GEOS_YES && wants_length)
        outcome = measure_covered_lines(&cover, length);
    destroy_pieces(pairs->handle.geos, &cover.polygons);
    destroy_pieces(pairs->handle.geos, &cover.lines);
    GEOSGeom_destroy_r(pairs->handle.geos, cover.covered);
    return outcome;
}
