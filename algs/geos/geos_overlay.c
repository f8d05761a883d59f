#include "geos_overlay.h"
#include "../../flatten/arrays/oj_wkb.h"
#include "../../flatten/base/oj_array.h"
#include "geos_features.h"
#include "geos_handle.h"

struct oj_geos_overlay
{
    struct oj_geos_handle handle;
    struct oj_geos_features input, join_side;
    struct oj_flat_buf united; /* a union whose area is taken */
};

oj_status oj_geos_overlay_open(const struct oj_flat *join_side,
                               struct oj_geos_overlay **out,
                               struct oj_error *err)
{
    struct oj_geos_overlay *overlay = oj_calloc(1, sizeof *overlay);
    oj_status status;
    if (overlay == NULL)
        return oj_fail_nomem(err, 1, sizeof *overlay);
    status = oj_geos_handle_open(&overlay->handle, err);
    if (status != OJ_OK)
    {
        oj_free(overlay);
        return status;
    }
    overlay->input.geos = overlay->handle.geos;
    overlay->join_side.geos = overlay->handle.geos;
    overlay->join_side.flat = join_side;
    *out = overlay;
    return OJ_OK;
}

void oj_geos_overlay_set_input(struct oj_geos_overlay *overlay,
                               const struct oj_flat *input)
{
    oj_geos_features_set(&overlay->input, input);
}

const char *oj_geos_overlay_message(const struct oj_geos_overlay *overlay)
{
    return overlay->handle.message;
}

void oj_geos_overlay_close(struct oj_geos_overlay *overlay)
{
    if (overlay == NULL)
        return;
    oj_geos_features_free(&overlay->input);
    oj_geos_features_free(&overlay->join_side);
    oj_geos_handle_close(&overlay->handle);
    oj_flat_buf_free(&overlay->united);
    oj_free(overlay);
}

/* ---- GEOS -> arrays ----------------------------------------------------- */

static oj_status add_parts(struct oj_flat_buf *shapes, const uint8_t *wkb,
                           size_t n, struct oj_error *err)
{
    OJ_TRY(oj_flat_buf_begin(shapes, shapes->n_features, err));
    OJ_TRY(oj_wkb_add_parts(shapes, wkb, n, err));
    return oj_flat_buf_end(shapes, err);
}

/* As one more feature; on failure the caller drops it. */
static oj_status add_geometry(GEOSContextHandle_t geos, const GEOSGeometry *one,
                              struct oj_flat_buf *shapes, struct oj_error *err)
{
    size_t n = 0;
    unsigned char *wkb = GEOSGeomToWKB_buf_r(geos, one, &n);
    oj_status status = wkb != NULL ? add_parts(shapes, wkb, n, err)
                                   : oj_fail(err, OJ_ERR_NOMEM,
                                             "out of memory: a GEOS geometry");
    GEOSFree_r(geos, wkb);
    return status;
}

/* ---- intersections ------------------------------------------------------ */

#define MOST_KINDS 3

/* Geometries of one kind each, owned. */
struct kinds
{
    int n;
    GEOSGeometry *of[MOST_KINDS];
};

static void free_kinds(GEOSContextHandle_t geos, struct kinds *kinds)
{
    for (int i = 0; i < kinds->n; i++)
        GEOSGeom_destroy_r(geos, kinds->of[i]);
}

/* The members of a feature kind by kind, its polygons as their union. 0: GEOS
 * raised, or memory is out. */
static int split_kinds(struct oj_geos_features *features,
                       struct oj_geos_kept *kept, struct kinds *out)
{
    GEOSContextHandle_t geos = features->geos;
    const GEOSGeometry *whole = oj_geos_features_whole(features, kept);
    struct kinds kinds = {0, {NULL}};
    if (whole == NULL)
        return 0;
    for (unsigned kind = OJ_PART_POINT; kind <= OJ_PART_POLYGON; kind *= 2)
    {
        GEOSGeometry *one;
        if ((kept->kinds & kind) == 0)
            continue;
        if (kept->kinds == kind)
            one = GEOSGeom_clone_r(geos, whole);
        else if (kind == OJ_PART_POLYGON && whole != kept->geometry)
            one = GEOSGeom_clone_r(geos, GEOSGetGeometryN_r(geos, whole, 0));
        else
            one = oj_geos_kinds(geos, features->flat, kept->feature, kind);
        if (one == NULL)
        {
            free_kinds(geos, &kinds);
            return 0;
        }
        kinds.of[kinds.n++] = one;
    }
    *out = kinds;
    return 1;
}

/* The union of what each kind of one has in common with each of the other.
 * Empty members are left out: unions of points and empty polygons crash. */
static GEOSGeometry *intersect_kinds(GEOSContextHandle_t geos,
                                     const struct kinds *a,
                                     const struct kinds *b)
{
    GEOSGeometry *list[MOST_KINDS * MOST_KINDS], *all, *united;
    int n = 0;
    for (int i = 0; i < a->n * b->n; i++)
    {
        list[n] = GEOSIntersection_r(geos, a->of[i / b->n], b->of[i % b->n]);
        if (list[n] == NULL)
        {
            while (n-- > 0)
                GEOSGeom_destroy_r(geos, list[n]);
            return NULL;
        }
        if (GEOSisEmpty_r(geos, list[n]) != 0)
            GEOSGeom_destroy_r(geos, list[n]);
        else
            n++;
    }
    /* takes the members, also when it fails */
    all = GEOSGeom_createCollection_r(geos, GEOS_GEOMETRYCOLLECTION, list,
                                      (unsigned)n);
    if (all == NULL || n < 2)
        return all;
    united = GEOSUnaryUnion_r(geos, all);
    GEOSGeom_destroy_r(geos, all);
    return united;
}

/* GEOS intersects no collections of several kinds: those are taken kind by
 * kind.  NULL: it raised, or memory is out. */
static GEOSGeometry *intersect(struct oj_geos_overlay *overlay,
                               struct oj_geos_kept *a, struct oj_geos_kept *b)
{
    GEOSContextHandle_t geos = overlay->handle.geos;
    const GEOSGeometry *whole_a = oj_geos_features_whole(&overlay->input, a);
    const GEOSGeometry *whole_b =
        oj_geos_features_whole(&overlay->join_side, b);
    struct kinds of_a, of_b;
    GEOSGeometry *common = NULL;
    if (whole_a == NULL || whole_b == NULL)
        return NULL;
    if (GEOSGeomTypeId_r(geos, whole_a) != GEOS_GEOMETRYCOLLECTION &&
        GEOSGeomTypeId_r(geos, whole_b) != GEOS_GEOMETRYCOLLECTION)
        return GEOSIntersection_r(geos, whole_a, whole_b);
    if (!split_kinds(&overlay->input, a, &of_a))
        return NULL;
    if (split_kinds(&overlay->join_side, b, &of_b))
    {
        common = intersect_kinds(geos, &of_a, &of_b);
        free_kinds(geos, &of_b);
    }
    free_kinds(geos, &of_a);
    return common;
}

enum oj_geos_verdict oj_geos_overlay_add(struct oj_geos_overlay *overlay,
                                         int64_t row, int64_t feature,
                                         struct oj_flat_buf *shapes)
{
    struct oj_geos_kept *a, *b;
    GEOSGeometry *common;
    struct oj_error err;
    oj_status status;
    oj_geos_handle_ask(&overlay->handle);
    if (oj_flat_kinds(overlay->input.flat, row) == 0 ||
        oj_flat_kinds(overlay->join_side.flat, feature) == 0)
        return oj_flat_buf_add_null(shapes, shapes->n_features, &err) == OJ_OK
                   ? OJ_GEOS_YES
                   : OJ_GEOS_OUT_OF_MEMORY;
    a = oj_geos_features_get(&overlay->input, row);
    b = a != NULL ? oj_geos_features_get(&overlay->join_side, feature) : NULL;
    if (b == NULL)
        return oj_geos_handle_reason(&overlay->handle);
    common = intersect(overlay, a, b);
    if (common == NULL)
        return oj_geos_handle_reason(&overlay->handle);
    status = add_geometry(overlay->handle.geos, common, shapes, &err);
    GEOSGeom_destroy_r(overlay->handle.geos, common);
    if (status == OJ_OK)
        return OJ_GEOS_YES;
    oj_flat_buf_drop(shapes);
    return OJ_GEOS_OUT_OF_MEMORY;
}

/* ---- areas --------------------------------------------------------------- */

oj_status oj_geos_overlay_area(struct oj_geos_overlay *overlay, int of_input,
                               int64_t feature, double *area,
                               struct oj_error *err)
{
    struct oj_geos_features *features =
        of_input ? &overlay->input : &overlay->join_side;
    const struct oj_flat *flat = features->flat;
    const GEOSGeometry *whole = NULL;
    struct oj_geos_kept *kept;
    struct oj_flat united;
    *area = oj_flat_area(flat, feature);
    if (oj_flat_is_points(flat) || *area == 0.0 ||
        flat->part_offset[feature + 1] - flat->part_offset[feature] < 2)
        return OJ_OK;
    oj_geos_handle_ask(&overlay->handle);
    kept = oj_geos_features_get(features, feature);
    if (kept != NULL)
        whole = oj_geos_features_whole(features, kept);
    if (whole == NULL)
        return oj_geos_handle_reason(&overlay->handle) == OJ_GEOS_OUT_OF_MEMORY
                   ? oj_fail(err, OJ_ERR_NOMEM, "out of memory: a union")
                   : OJ_OK;
    if (whole == kept->geometry)
        return OJ_OK;
    oj_flat_buf_clear(&overlay->united);
    OJ_TRY(add_geometry(overlay->handle.geos, whole, &overlay->united, err));
    united = oj_flat_buf_view(&overlay->united);
    *area = oj_flat_area(&united, 0);
    return OJ_OK;
}
