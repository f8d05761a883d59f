#include "geos_parts.h"
#include "../../flatten/base/oj_array.h"
#include "geos_handle.h"
#include "geos_shapes.h"

#include <math.h>

struct oj_geos_parts
{
    struct oj_geos_handle handle;
    int64_t n_features, n_components;
    int64_t *component_offset; /* [n_features + 1] */
    GEOSGeometry **component;  /* [n_components], NULL where GEOS refused */
    GEOSGeometry *point;       /* measured from */
};

static int64_t count_components(const struct oj_flat *flat, int64_t part,
                                enum oj_distance_to distance_to)
{
    if (distance_to == OJ_TO_BOUNDARY &&
        flat->part_kind[part] == OJ_PART_POLYGON)
        return flat->ring_offset[part + 1] - flat->ring_offset[part];
    return 1;
}

static GEOSGeometry *make_component(struct oj_geos_parts *parts,
                                    const struct oj_flat *flat, int64_t part,
                                    int64_t i, enum oj_distance_to distance_to)
{
    if (flat->part_kind[part] == OJ_PART_POLYGON &&
        distance_to == OJ_TO_BOUNDARY)
        return oj_geos_line(parts->handle.geos, flat,
                            flat->ring_offset[part] + i);
    return oj_geos_part(parts->handle.geos, flat, part);
}

/* Fills component_offset and makes component, all NULL. */
static oj_status plan(struct oj_geos_parts *parts, const struct oj_flat *flat,
                      enum oj_distance_to distance_to, struct oj_error *err)
{
    int64_t n = 0;
    OJ_NEW(parts->component_offset, flat->n_features + 1, err);
    for (int64_t feature = 0; feature < flat->n_features; feature++)
    {
        parts->component_offset[feature] = n;
        if (oj_flat_is_points(flat))
        {
            n += !isnan(flat->x[feature]);
            continue;
        }
        for (int64_t part = flat->part_offset[feature];
             part < flat->part_offset[feature + 1]; part++)
            n += count_components(flat, part, distance_to);
    }
    parts->component_offset[flat->n_features] = n;
    parts->component = oj_calloc(n, sizeof(GEOSGeometry *));
    if (parts->component == NULL)
        return oj_fail_nomem(err, n, sizeof(GEOSGeometry *));
    parts->n_components = n;
    return OJ_OK;
}

static oj_status keep(struct oj_geos_parts *parts, int64_t place,
                      GEOSGeometry *component, struct oj_error *err)
{
    parts->component[place] = component;
    if (component == NULL && oj_geos_handle_is_out_of_memory(&parts->handle))
        return oj_geos_handle_fail(&parts->handle, err);
    oj_geos_handle_ask(&parts->handle);
    return OJ_OK;
}

static oj_status build(struct oj_geos_parts *parts, const struct oj_flat *flat,
                       enum oj_distance_to distance_to, struct oj_error *err)
{
    int64_t place = 0;
    if (oj_flat_is_points(flat))
    {
        for (int64_t i = 0; i < flat->n_features; i++)
        {
            if (!isnan(flat->x[i]))
                OJ_TRY(keep(parts, place++,
                            oj_geos_point(parts->handle.geos, flat, i), err));
        }
        return OJ_OK;
    }
    for (int64_t part = 0; part < flat->n_parts; part++)
    {
        int64_t n = count_components(flat, part, distance_to);
        for (int64_t i = 0; i < n; i++)
            OJ_TRY(keep(parts, place++,
                        make_component(parts, flat, part, i, distance_to),
                        err));
    }
    return OJ_OK;
}

oj_status oj_geos_parts_make(const struct oj_flat *flat,
                             enum oj_distance_to distance_to,
                             struct oj_geos_parts **out, struct oj_error *err)
{
    struct oj_geos_parts *parts = oj_calloc(1, sizeof *parts);
    oj_status status;
    if (parts == NULL)
        return oj_fail_nomem(err, 1, sizeof *parts);
    parts->n_features = flat->n_features;
    status = oj_geos_handle_open(&parts->handle, err);
    if (status == OJ_OK)
        status = plan(parts, flat, distance_to, err);
    if (status == OJ_OK)
        status = build(parts, flat, distance_to, err);
    if (status != OJ_OK)
    {
        oj_geos_parts_free(parts);
        return status;
    }
    *out = parts;
    return OJ_OK;
}

oj_status oj_geos_parts_set_point(struct oj_geos_parts *parts, double x,
                                  double y, struct oj_error *err)
{
    if (parts->point != NULL)
        GEOSGeom_destroy_r(parts->handle.geos, parts->point);
    parts->point = GEOSGeom_createPointFromXY_r(parts->handle.geos, x, y);
    if (parts->point == NULL)
        return oj_geos_handle_fail(&parts->handle, err);
    return OJ_OK;
}

/* GEOSDistance for one component.  Of a polygon with holes GEOS looks at a ring
 * only if the ring's box, by a rounded distance, is nearer than what it has;
 * now and then that costs an ulp.  So where such a polygon is not around the
 * point, its rings are measured one by one.  0 when GEOS raised. */
static int measure(struct oj_geos_parts *parts, const GEOSGeometry *component,
                   double *distance)
{
    double least = INFINITY, d = INFINITY;
    int n_holes;
    if (GEOSDistance_r(parts->handle.geos, parts->point, component, &least) ==
        0)
        return 0;
    if (least > 0.0 &&
        GEOSGeomTypeId_r(parts->handle.geos, component) == GEOS_POLYGON &&
        (n_holes = GEOSGetNumInteriorRings_r(parts->handle.geos, component)) >
            0)
    {
        if (GEOSDistance_r(parts->handle.geos, parts->point,
                           GEOSGetExteriorRing_r(parts->handle.geos, component),
                           &least) == 0)
            return 0;
        for (int i = 0; i < n_holes; i++)
        {
            if (GEOSDistance_r(
                    parts->handle.geos, parts->point,
                    GEOSGetInteriorRingN_r(parts->handle.geos, component, i),
                    &d) == 0)
                return 0;
            least = d < least ? d : least;
        }
    }
    *distance = least;
    return 1;
}

enum oj_geos_verdict oj_geos_parts_distance(struct oj_geos_parts *parts,
                                            int64_t feature, double *distance)
{
    double least = INFINITY;
    for (int64_t i = parts->component_offset[feature];
         i < parts->component_offset[feature + 1]; i++)
    {
        double d = INFINITY;
        if (parts->component[i] == NULL)
            return OJ_GEOS_CANNOT_SAY;
        oj_geos_handle_ask(&parts->handle);
        if (!measure(parts, parts->component[i], &d))
            return oj_geos_handle_reason(&parts->handle);
        least = d < least ? d : least;
    }
    *distance = least;
    return OJ_GEOS_YES;
}

void oj_geos_parts_free(struct oj_geos_parts *parts)
{
    if (parts == NULL)
        return;
    for (int64_t i = 0; i < parts->n_components; i++)
    {
        if (parts->component[i] != NULL)
            GEOSGeom_destroy_r(parts->handle.geos, parts->component[i]);
    }
    if (parts->point != NULL)
        GEOSGeom_destroy_r(parts->handle.geos, parts->point);
    oj_geos_handle_close(&parts->handle);
    oj_free(parts->component_offset);
    oj_free(parts->component);
    oj_free(parts);
}
