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

GEOSGeometry *oj_geos_point(GEOSContextHandle_t geos,
                            const struct oj_flat *flat, int64_t vertex)
{
    return GEOSGeom_createPointFromXY_r(geos, flat->x[vertex], flat->y[vertex]);
}

GEOSGeometry *oj_geos_line(GEOSContextHandle_t geos, const struct oj_flat *flat,
                           int64_t ring)
{
    GEOSCoordSequence *sequence = ring_coordinates(geos, flat, ring, 2);
    /* takes the sequence, also when it fails */
    return sequence ? GEOSGeom_createLineString_r(geos, sequence) : NULL;
}

static GEOSGeometry *make_ring(GEOSContextHandle_t geos,
                               const struct oj_flat *flat, int64_t ring)
{
    GEOSCoordSequence *sequence = ring_coordinates(geos, flat, ring, 4);
    return sequence ? GEOSGeom_createLinearRing_r(geos, sequence) : NULL;
}

static void destroy(GEOSContextHandle_t geos, GEOSGeometry **list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        GEOSGeom_destroy_r(geos, list[i]);
}

static GEOSGeometry *make_polygon(GEOSContextHandle_t geos,
                                  const struct oj_flat *flat, int64_t part)
{
    int64_t first = flat->ring_offset[part];
    int64_t n_holes = flat->ring_offset[part + 1] - first - 1;
    GEOSGeometry **holes, *shell, *polygon = NULL;
    int64_t n = 0;
    if (n_holes > INT_MAX)
        return NULL;
    holes = oj_malloc(n_holes, sizeof(GEOSGeometry *));
    if (holes == NULL)
        return NULL;
    shell = make_ring(geos, flat, first);
    while (shell != NULL && n < n_holes)
    {
        holes[n] = make_ring(geos, flat, first + 1 + n);
        if (holes[n] == NULL)
            break;
        n++;
    }
    if (shell != NULL && n == n_holes)
    {
        /* takes shell and holes, also when it fails */
        polygon =
            GEOSGeom_createPolygon_r(geos, shell, holes, (unsigned)n_holes);
    }
    else
    {
        destroy(geos, holes, n);
        if (shell != NULL)
            GEOSGeom_destroy_r(geos, shell);
    }
    oj_free(holes);
    return polygon;
}

GEOSGeometry *oj_geos_part(GEOSContextHandle_t geos, const struct oj_flat *flat,
                           int64_t part)
{
    int64_t ring = flat->ring_offset[part];
    switch (flat->part_kind[part])
    {
        case OJ_PART_POINT:
            return oj_geos_point(geos, flat, flat->vertex_offset[ring]);
        case OJ_PART_LINE:
            return oj_geos_line(geos, flat, ring);
        default:
            return make_polygon(geos, flat, part);
    }
}

/* Rings of a polygon that are taken for lines; a part otherwise. */
static int64_t count_pieces(const struct oj_flat *flat, int64_t part,
                            int rings_as_lines)
{
    if (rings_as_lines && flat->part_kind[part] == OJ_PART_POLYGON)
        return flat->ring_offset[part + 1] - flat->ring_offset[part];
    return 1;
}

static int64_t count_all_pieces(const struct oj_flat *flat, int64_t feature,
                                int rings_as_lines)
{
    int64_t n = 0;
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
        n += count_pieces(flat, part, rings_as_lines);
    return n;
}

/* Fills list with all pieces; on failure frees them and returns 0. */
static int make_pieces(GEOSContextHandle_t geos, const struct oj_flat *flat,
                       int64_t feature, int rings_as_lines, GEOSGeometry **list)
{
    int64_t n = 0;
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        int64_t n_pieces = count_pieces(flat, part, rings_as_lines);
        int is_ring =
            rings_as_lines && flat->part_kind[part] == OJ_PART_POLYGON;
        for (int64_t i = 0; i < n_pieces; i++)
        {
            list[n] =
                is_ring ? oj_geos_line(geos, flat, flat->ring_offset[part] + i)
                        : oj_geos_part(geos, flat, part);
            if (list[n] == NULL)
            {
                destroy(geos, list, n);
                return 0;
            }
            n++;
        }
    }
    return 1;
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

GEOSGeometry *oj_geos_feature(GEOSContextHandle_t geos,
                              const struct oj_flat *flat, int64_t feature,
                              int rings_as_lines)
{
    GEOSGeometry **list, *whole = NULL;
    unsigned kinds = oj_flat_kinds(flat, feature);
    int64_t n;
    if (oj_flat_is_points(flat))
        return oj_geos_point(geos, flat, feature);
    if (rings_as_lines && (kinds & OJ_PART_POLYGON))
        kinds = (kinds & OJ_PART_POINT) | OJ_PART_LINE;
    n = count_all_pieces(flat, feature, rings_as_lines);
    list = n <= INT_MAX ? oj_malloc(n, sizeof(GEOSGeometry *)) : NULL;
    if (list == NULL)
        return NULL;
    if (make_pieces(geos, flat, feature, rings_as_lines, list))
    {
        /* takes the pieces, also when it fails */
        whole = n == 1 ? list[0]
                       : GEOSGeom_createCollection_r(
                             geos, collection_type(kinds), list, (unsigned)n);
    }
    oj_free(list);
    return whole;
}

GEOSGeometry *oj_geos_kinds(GEOSContextHandle_t geos,
                            const struct oj_flat *flat, int64_t feature,
                            unsigned kinds)
{
    int64_t part = flat->part_offset[feature];
    int64_t end = flat->part_offset[feature + 1], n = 0;
    GEOSGeometry **list, *whole = NULL;
    unsigned found = 0;
    list = end - part <= INT_MAX ? oj_malloc(end - part, sizeof *list) : NULL;
    if (list == NULL)
        return NULL;
    for (; part < end; part++)
    {
        if ((flat->part_kind[part] & kinds) == 0)
            continue;
        found |= flat->part_kind[part];
        list[n] = oj_geos_part(geos, flat, part);
        if (list[n] == NULL)
            break;
        n++;
    }
    if (part == end)
        /* takes the parts, also when it fails */
        whole = GEOSGeom_createCollection_r(geos, collection_type(found), list,
                                            (unsigned)n);
    else
        destroy(geos, list, n);
    oj_free(list);
    return whole;
}

GEOSGeometry *oj_geos_rings(GEOSContextHandle_t geos,
                            const struct oj_flat *flat, int64_t first,
                            int64_t end)
{
    int64_t n = end - first;
    GEOSGeometry **list, *whole = NULL;
    int64_t n_made = 0;
    list = n <= INT_MAX ? oj_malloc(n, sizeof(GEOSGeometry *)) : NULL;
    if (list == NULL)
        return NULL;
    while (n_made < n)
    {
        GEOSGeometry *ring = make_ring(geos, flat, first + n_made);
        /* takes the ring, also when it fails */
        list[n_made] =
            ring ? GEOSGeom_createPolygon_r(geos, ring, NULL, 0) : NULL;
        if (list[n_made] == NULL)
            break;
        n_made++;
    }
    if (n_made == n)
        /* takes the polygons, also when it fails */
        whole = GEOSGeom_createCollection_r(geos, GEOS_MULTIPOLYGON, list,
                                            (unsigned)n);
    else
        destroy(geos, list, n_made);
    oj_free(list);
    return whole;
}
