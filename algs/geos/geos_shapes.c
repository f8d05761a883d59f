#include "geos_shapes.h"
#include "../../flatten/base/oj_array.h"
#include "../pairs/oj_measures.h"

#include <limits.h>
#include <math.h>

/* GEOS takes no line of less than two vertices and no ring of less than four:
 * then the last one is repeated, which adds no point to the line. */
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

/* Members of a geometry in the making. */
struct geos_members
{
    GEOSContextHandle_t geos;
    int64_t n;
    GEOSGeometry **list; /* NULL: one is missing, and all are given up */
};

/* For most members at most. */
static struct geos_members begin_members(GEOSContextHandle_t geos, int64_t most)
{
    struct geos_members members = {geos, 0, NULL};
    if (most <= INT_MAX)
        members.list = oj_malloc(most, sizeof(GEOSGeometry *));
    return members;
}

static void drop_members(struct geos_members *members)
{
    for (int64_t i = 0; members->list != NULL && i < members->n; i++)
        GEOSGeom_destroy_r(members->geos, members->list[i]);
    oj_free(members->list);
    members->list = NULL;
}

/* Takes a member; NULL: it could not be made. */
static void add_member(struct geos_members *members, GEOSGeometry *member)
{
    if (member != NULL)
        members->list[members->n++] = member;
    else
        drop_members(members);
}

/* The collection of them; GEOS takes the members, also when it fails. */
static GEOSGeometry *collect(struct geos_members *members, int type)
{
    GEOSGeometry *whole = NULL;
    if (members->list != NULL)
        whole = GEOSGeom_createCollection_r(members->geos, type, members->list,
                                            (unsigned)members->n);
    oj_free(members->list);
    return whole;
}

static GEOSGeometry *make_polygon(GEOSContextHandle_t geos,
                                  const struct oj_flat *flat, int64_t part)
{
    int64_t ring = flat->ring_offset[part], end = flat->ring_offset[part + 1];
    struct geos_members holes = begin_members(geos, end - ring - 1);
    GEOSGeometry *shell = NULL, *polygon = NULL;
    if (holes.list != NULL)
        shell = make_ring(geos, flat, ring);
    while (shell != NULL && holes.list != NULL && ++ring < end)
        add_member(&holes, make_ring(geos, flat, ring));
    if (shell != NULL && holes.list != NULL) /* taken, also when it fails */
        polygon = GEOSGeom_createPolygon_r(geos, shell, holes.list,
                                           (unsigned)holes.n);
    else if (shell != NULL)
        GEOSGeom_destroy_r(geos, shell);
    oj_free(holes.list);
    return polygon;
}

static GEOSGeometry *make_point(GEOSContextHandle_t geos,
                                const struct oj_flat *flat, int64_t vertex)
{
    return GEOSGeom_createPointFromXY_r(geos, flat->x[vertex], flat->y[vertex]);
}

/* A ring, or the vertices of a line, as a LineString. */
static GEOSGeometry *make_line(GEOSContextHandle_t geos,
                               const struct oj_flat *flat, int64_t ring)
{
    GEOSCoordSequence *sequence = ring_coordinates(geos, flat, ring, 2);
    /* takes the sequence, also when it fails */
    return sequence ? GEOSGeom_createLineString_r(geos, sequence) : NULL;
}

static GEOSGeometry *make_part(GEOSContextHandle_t geos,
                               const struct oj_flat *flat, int64_t part)
{
    int64_t ring = flat->ring_offset[part];
    switch (flat->part_kind[part])
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

/* The parts of these kinds, polygons as the lines of their rings where asked;
 * is_multi: as a collection also where there is one only. */
static GEOSGeometry *make_parts(GEOSContextHandle_t geos,
                                const struct oj_flat *flat, int64_t feature,
                                unsigned kinds, int rings_as_lines,
                                int is_multi)
{
    int64_t part = flat->part_offset[feature];
    int64_t end = flat->part_offset[feature + 1];
    struct geos_members members = begin_members(
        geos, end - part + flat->ring_offset[end] - flat->ring_offset[part]);
    unsigned found = 0;
    for (; part < end && members.list != NULL; part++)
    {
        unsigned kind = flat->part_kind[part];
        int is_ring = rings_as_lines && kind == OJ_PART_POLYGON;
        int64_t first = flat->ring_offset[part];
        int64_t last = is_ring ? flat->ring_offset[part + 1] - 1 : first;
        if ((kind & kinds) == 0)
            continue;
        found |= is_ring ? (unsigned)OJ_PART_LINE : kind;
        for (int64_t r = first; r <= last && members.list != NULL; r++)
            add_member(&members, is_ring ? make_line(geos, flat, r)
                                         : make_part(geos, flat, part));
    }
    if (!is_multi && members.list != NULL && members.n == 1)
    {
        GEOSGeometry *only = members.list[0];
        oj_free(members.list);
        return only;
    }
    return collect(&members, collection_type(found));
}

GEOSGeometry *oj_geos_feature(GEOSContextHandle_t geos,
                              const struct oj_flat *flat, int64_t feature,
                              int rings_as_lines)
{
    if (oj_flat_is_points(flat))
        return make_point(geos, flat, feature);
    return make_parts(geos, flat, feature, ~0u, rings_as_lines, 0);
}

GEOSGeometry *oj_geos_kinds(GEOSContextHandle_t geos,
                            const struct oj_flat *flat, int64_t feature,
                            unsigned kinds)
{
    return make_parts(geos, flat, feature, kinds, 0, 1);
}

GEOSGeometry *oj_geos_polygons(GEOSContextHandle_t geos,
                               const struct oj_flat *flat, int64_t feature,
                               const int64_t *part, int64_t n)
{
    struct geos_members members = begin_members(geos, n);
    for (int64_t i = 0; i < n && members.list != NULL; i++)
        add_member(&members,
                   make_part(geos, flat, flat->part_offset[feature] + part[i]));
    return collect(&members, GEOS_MULTIPOLYGON);
}

GEOSGeometry *oj_geos_rings(GEOSContextHandle_t geos,
                            const struct oj_flat *flat, int64_t first,
                            int64_t end)
{
    struct geos_members members = begin_members(geos, end - first);
    for (; first < end && members.list != NULL; first++)
    {
        GEOSGeometry *ring = make_ring(geos, flat, first);
        /* takes the ring, also when it fails */
        add_member(&members, ring != NULL
                                 ? GEOSGeom_createPolygon_r(geos, ring, NULL, 0)
                                 : NULL);
    }
    return collect(&members, GEOS_MULTIPOLYGON);
}
