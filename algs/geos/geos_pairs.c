#include "geos_pairs.h"
#include "../../flatten/arrays/oj_wkb.h"
#include "../../flatten/base/oj_array.h"
#include "../kernels/oj_ring.h"
#include "../relation/oj_matrix.h"
#include "geos_features.h"
#include "geos_handle.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

struct oj_geos_pairs
{
    struct oj_relation relation; /* unless it was opened without one */
    int prepare;
    struct oj_geos_handle handle;
    struct oj_geos_features input, join_side;
    struct oj_flat_buf united; /* a union whose area is taken */
};

oj_status oj_geos_pairs_open(const struct oj_relation *relation,
                             const struct oj_flat *join_side, int prepare,
                             struct oj_geos_pairs **out, struct oj_error *err)
{
    struct oj_geos_pairs *pairs = oj_calloc(1, sizeof *pairs);
    oj_status status;
    if (pairs == NULL)
        return oj_fail_nomem(err, 1, sizeof *pairs);
    pairs->prepare = prepare;
    status = oj_geos_handle_open(&pairs->handle, err);
    if (status != OJ_OK)
    {
        oj_free(pairs);
        return status;
    }
    pairs->input.geos = pairs->handle.geos;
    pairs->join_side.geos = pairs->handle.geos;
    pairs->join_side.flat = join_side;
    *out = pairs;
    if (relation == NULL)
        return OJ_OK;
    pairs->relation = *relation;
    for (char *c = pairs->relation.mask; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    pairs->join_side.keep_all = 1;
    if (relation->distance_to == OJ_TO_BOUNDARY &&
        (oj_op_get(relation->op)->takes & OJ_TAKES_DISTANCE))
        pairs->input.rings_as_lines = pairs->join_side.rings_as_lines = 1;
    return OJ_OK;
}

void oj_geos_pairs_set_input(struct oj_geos_pairs *pairs,
                             const struct oj_flat *input)
{
    oj_geos_features_set(&pairs->input, input);
}

const char *oj_geos_pairs_message(const struct oj_geos_pairs *pairs)
{
    return pairs->handle.message;
}

void oj_geos_pairs_close(struct oj_geos_pairs *pairs)
{
    if (pairs == NULL)
        return;
    oj_geos_features_free(&pairs->input);
    oj_geos_features_free(&pairs->join_side);
    oj_geos_handle_close(&pairs->handle);
    oj_flat_buf_free(&pairs->united);
    oj_free(pairs);
}

/* The two features of a pair; NO when one has no parts. */
static enum oj_geos_verdict get_both(struct oj_geos_pairs *pairs, int64_t row,
                                     int64_t feature, struct oj_geos_kept **a,
                                     struct oj_geos_kept **b)
{
    oj_geos_handle_ask(&pairs->handle);
    if (oj_flat_kinds(pairs->input.flat, row) == 0 ||
        oj_flat_kinds(pairs->join_side.flat, feature) == 0)
        return OJ_GEOS_NO;
    *a = oj_geos_features_get(&pairs->input, row);
    if (*a == NULL)
        return oj_geos_handle_reason(&pairs->handle);
    *b = oj_geos_features_get(&pairs->join_side, feature);
    return *b != NULL ? OJ_GEOS_YES : oj_geos_handle_reason(&pairs->handle);
}

/* GEOS's answers are 0, 1 and 2: it raised. */
static enum oj_geos_verdict verdict(const struct oj_geos_pairs *pairs,
                                    char answer)
{
    return answer > 1 ? oj_geos_handle_reason(&pairs->handle)
                      : (enum oj_geos_verdict)answer;
}

/* Polygons that points are located in. */
struct asked_polygon
{
    struct oj_geos_pairs *pairs;
    struct oj_geos_features *features;
    struct oj_geos_kept *kept;
    const struct oj_box *box; /* of its parts; NULL: one locator for all */
    int tells_boundary;       /* 0: on the boundary is as good as inside */
};

static enum oj_geos_verdict locate_by(const struct oj_geos_pairs *pairs,
                                      const GEOSPreparedGeometry *locator,
                                      const GEOSGeometry *point,
                                      enum oj_location *where)
{
    char meets = 2, is_inside = 0;
    if (locator != NULL)
        meets = GEOSPreparedIntersects_r(pairs->handle.geos, locator, point);
    if (meets == 1)
        is_inside =
            GEOSPreparedContainsProperly_r(pairs->handle.geos, locator, point);
    if (meets > 1 || is_inside > 1)
        return oj_geos_handle_reason(&pairs->handle);
    *where = is_inside ? OJ_INSIDE : meets ? OJ_ON_BOUNDARY : OJ_OUTSIDE;
    return OJ_GEOS_YES;
}

static int box_holds(const struct oj_geos_pairs *pairs,
                     const struct oj_box *box, const GEOSGeometry *point)
{
    double x, y;
    return GEOSGeomGetX_r(pairs->handle.geos, point, &x) != 1 ||
           GEOSGeomGetY_r(pairs->handle.geos, point, &y) != 1 ||
           (x >= box->x0 && x <= box->x1 && y >= box->y0 && y <= box->y1);
}

/* Where a point on the boundaries of n parts, of which the first are listed,
 * is in the union of them. */
static enum oj_geos_verdict locate_beside(const struct asked_polygon *asked,
                                          const GEOSGeometry *point,
                                          const int64_t *part, int64_t n,
                                          enum oj_location *where)
{
    struct oj_geos_pairs *pairs = asked->pairs;
    const GEOSPreparedGeometry *united;
    if (oj_geos_features_whole(asked->features, asked->kept) ==
        asked->kept->geometry)
    {
        snprintf(pairs->handle.message, sizeof pairs->handle.message,
                 "a part of a collection is not valid");
        return OJ_GEOS_CANNOT_SAY; /* there is no union */
    }
    united = n <= OJ_MOST_BESIDE
                 ? oj_geos_features_unite(asked->features, asked->kept, part, n)
                 : oj_geos_features_prepare(asked->features, asked->kept);
    if (united == NULL)
        return oj_geos_handle_reason(&pairs->handle);
    return locate_by(pairs, united, point, where);
}

/* Parts that overlap are asked one by one: a point inside of one is inside,
 * one on the boundary of one only is on the boundary, and of one on the
 * boundary of several the union of these is asked. */
static enum oj_geos_verdict locate_point(const struct asked_polygon *asked,
                                         const GEOSGeometry *point,
                                         enum oj_location *where)
{
    struct oj_geos_pairs *pairs = asked->pairs;
    struct oj_geos_kept *kept = asked->kept;
    enum oj_location at = OJ_OUTSIDE;
    int64_t n = 0, part[OJ_MOST_BESIDE];
    *where = OJ_OUTSIDE;
    for (int64_t i = 0; i < kept->n_locators; i++)
    {
        enum oj_geos_verdict located;
        if (asked->box != NULL && !box_holds(pairs, &asked->box[i], point))
            continue;
        located =
            locate_by(pairs, oj_geos_features_locator(asked->features, kept, i),
                      point, &at);
        if (located != OJ_GEOS_YES)
            return located;
        if (at != OJ_OUTSIDE)
            *where = at;
        if (at == OJ_INSIDE)
            return OJ_GEOS_YES;
        if (at == OJ_ON_BOUNDARY && n < OJ_MOST_BESIDE)
            part[n] = i;
        n += at == OJ_ON_BOUNDARY;
    }
    if (n < 2 || !asked->tells_boundary)
        return OJ_GEOS_YES;
    return locate_beside(asked, point, part, n, where);
}

/* The DE-9IM matrix of points and polygons, points first. */
static enum oj_geos_verdict locate_points(const struct asked_polygon *asked,
                                          const struct oj_geos_kept *points,
                                          struct oj_matrix *matrix)
{
    static const struct oj_matrix apart = {"FFFFFF212"};
    struct oj_geos_pairs *pairs = asked->pairs;
    *matrix = apart;
    for (int64_t i = 0; i < points->n_components; i++)
    {
        const GEOSGeometry *point =
            GEOSGetGeometryN_r(pairs->handle.geos, points->geometry, (int)i);
        enum oj_location where = OJ_OUTSIDE;
        enum oj_geos_verdict located;
        if (point == NULL)
            return oj_geos_handle_reason(&pairs->handle);
        located = locate_point(asked, point, &where);
        if (located != OJ_GEOS_YES)
            return located;
        oj_matrix_add(matrix, OJ_PLACE_INTERIOR,
                      where == OJ_INSIDE        ? OJ_PLACE_INTERIOR
                      : where == OJ_ON_BOUNDARY ? OJ_PLACE_BOUNDARY
                                                : OJ_PLACE_EXTERIOR,
                      0);
    }
    return OJ_GEOS_YES;
}

static enum oj_geos_verdict ask_points(struct oj_geos_pairs *pairs,
                                       struct oj_geos_features *polygons,
                                       struct oj_geos_kept *polygon,
                                       const struct oj_geos_kept *points)
{
    const struct oj_relation *relation = &pairs->relation;
    int points_are_input = polygons == &pairs->join_side;
    struct asked_polygon of = {pairs, polygons, polygon, NULL, 1};
    struct oj_relation other = oj_relation_transpose(relation);
    const struct oj_relation *asked = points_are_input ? relation : &other;
    enum oj_geos_verdict located;
    struct oj_matrix matrix;
    if (!oj_geos_features_list_locators(polygons, polygon))
        return oj_geos_handle_reason(&pairs->handle);
    if (polygon->n_locators > 1)
        of.box = oj_geos_features_boxes(polygons, polygon);
    of.tells_boundary = asked->op != OJ_OP_INTERSECTS &&
                        asked->op != OJ_OP_DISJOINT &&
                        asked->op != OJ_OP_COVEREDBY;
    located = locate_points(&of, points, &matrix);
    if (located != OJ_GEOS_YES)
        return located;
    return oj_matrix_holds(&matrix, asked) ? OJ_GEOS_YES : OJ_GEOS_NO;
}

/* Prepared geometries decide these by signs alone, for less. */
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

/* NULL: a pattern decides. */
static char (*const plain_predicate[OJ_N_OPS])(GEOSContextHandle_t,
                                               const GEOSGeometry *,
                                               const GEOSGeometry *) = {
    [OJ_OP_INTERSECTS] = GEOSIntersects_r, [OJ_OP_WITHIN] = GEOSWithin_r,
    [OJ_OP_CONTAINS] = GEOSContains_r,     [OJ_OP_COVERS] = GEOSCovers_r,
    [OJ_OP_COVEREDBY] = GEOSCoveredBy_r,   [OJ_OP_TOUCHES] = GEOSTouches_r,
    [OJ_OP_CROSSES] = GEOSCrosses_r,       [OJ_OP_OVERLAPS] = GEOSOverlaps_r,
    [OJ_OP_EQUALS] = GEOSEquals_r,         [OJ_OP_DISJOINT] = GEOSDisjoint_r,
};

static int is_one_kind(const struct oj_geos_kept *kept)
{
    return (kept->kinds & (kept->kinds - 1)) == 0;
}

static enum oj_geos_verdict ask_prepared(struct oj_geos_pairs *pairs,
                                         struct oj_geos_kept *a,
                                         struct oj_geos_kept *b)
{
    enum oj_op op = pairs->relation.op;
    int input_is_larger = op == OJ_OP_CONTAINS || op == OJ_OP_COVERS;
    const GEOSPreparedGeometry *prepared =
        input_is_larger ? oj_geos_features_prepare(&pairs->input, a)
                        : oj_geos_features_prepare(&pairs->join_side, b);
    const GEOSGeometry *other =
        input_is_larger ? oj_geos_features_whole(&pairs->join_side, b)
                        : oj_geos_features_whole(&pairs->input, a);
    if (prepared == NULL || other == NULL)
        return oj_geos_handle_reason(&pairs->handle);
    return verdict(pairs,
                   prepared_predicate[op](pairs->handle.geos, prepared, other));
}

static char ask_plain(const struct oj_geos_pairs *pairs, const GEOSGeometry *a,
                      const GEOSGeometry *b)
{
    const struct oj_relation *relation = &pairs->relation;
    GEOSContextHandle_t geos = pairs->handle.geos;
    char answer;
    if (plain_predicate[relation->op] != NULL)
        return plain_predicate[relation->op](geos, a, b);
    if (relation->op != OJ_OP_CONTAINS_PROPERLY)
        return GEOSRelatePattern_r(geos, a, b, relation->mask);
    /* known to prepared geometries only */
    answer = GEOSContains_r(geos, a, b); /* looks at envelopes */
    return answer == 1 ? GEOSRelatePattern_r(geos, a, b, "T**FF*FF*") : answer;
}

enum oj_geos_verdict oj_geos_pairs_hold(struct oj_geos_pairs *pairs,
                                        int64_t row, int64_t feature)
{
    struct oj_geos_kept *a = NULL, *b = NULL;
    enum oj_geos_verdict both = get_both(pairs, row, feature, &a, &b);
    const GEOSGeometry *whole_a, *whole_b;
    if (both != OJ_GEOS_YES)
        return both;
    if (a->kinds == OJ_PART_POINT && b->kinds == OJ_PART_POLYGON)
        return ask_points(pairs, &pairs->join_side, b, a);
    if (a->kinds == OJ_PART_POLYGON && b->kinds == OJ_PART_POINT)
        return ask_points(pairs, &pairs->input, a, b);
    if (pairs->prepare && prepared_predicate[pairs->relation.op] != NULL &&
        is_one_kind(a) && is_one_kind(b))
        return ask_prepared(pairs, a, b);
    whole_a = oj_geos_features_whole(&pairs->input, a);
    whole_b = oj_geos_features_whole(&pairs->join_side, b);
    if (whole_a == NULL || whole_b == NULL)
        return oj_geos_handle_reason(&pairs->handle);
    return verdict(pairs, ask_plain(pairs, whole_a, whole_b));
}

/* Of a polygon with holes GEOS looks at a ring only if the ring's box, by a
 * rounded distance, is nearer than what it has; now and then that costs an ulp.
 * So where such a polygon is not around the point, its rings are measured one
 * by one. 0 when GEOS raised. */
static int measure_rings(const struct oj_geos_pairs *pairs,
                         const GEOSGeometry *point, const GEOSGeometry *polygon,
                         int n_holes, double *distance)
{
    double least = INFINITY, d = INFINITY;
    if (GEOSDistance_r(pairs->handle.geos, point,
                       GEOSGetExteriorRing_r(pairs->handle.geos, polygon),
                       &least) == 0)
        return 0;
    for (int i = 0; i < n_holes; i++)
    {
        if (GEOSDistance_r(
                pairs->handle.geos, point,
                GEOSGetInteriorRingN_r(pairs->handle.geos, polygon, i),
                &d) == 0)
            return 0;
        least = d < least ? d : least;
    }
    *distance = least;
    return 1;
}

/* Distance of two components. 0 when GEOS raised. */
static int measure(const struct oj_geos_pairs *pairs, const GEOSGeometry *a,
                   const GEOSGeometry *b, double *distance)
{
    int type_a = GEOSGeomTypeId_r(pairs->handle.geos, a);
    int type_b = GEOSGeomTypeId_r(pairs->handle.geos, b);
    int n_holes = 0;
    if (GEOSDistance_r(pairs->handle.geos, a, b, distance) == 0)
        return 0;
    if (!(*distance > 0.0))
        return 1;
    if (type_a == GEOS_POINT && type_b == GEOS_POLYGON &&
        (n_holes = GEOSGetNumInteriorRings_r(pairs->handle.geos, b)) > 0)
        return measure_rings(pairs, a, b, n_holes, distance);
    if (type_a == GEOS_POLYGON && type_b == GEOS_POINT &&
        (n_holes = GEOSGetNumInteriorRings_r(pairs->handle.geos, a)) > 0)
        return measure_rings(pairs, b, a, n_holes, distance);
    return 1;
}

enum oj_geos_verdict oj_geos_pairs_distance(struct oj_geos_pairs *pairs,
                                            int64_t row, int64_t feature,
                                            double *distance)
{
    struct oj_geos_kept *a = NULL, *b = NULL;
    enum oj_geos_verdict both = get_both(pairs, row, feature, &a, &b);
    const struct oj_box *box_a = NULL, *box_b = NULL;
    double least = INFINITY, d = INFINITY;
    if (both != OJ_GEOS_YES)
        return both;
    if (a->n_components > 1 || b->n_components > 1)
    {
        box_a = oj_geos_features_boxes(&pairs->input, a);
        box_b = oj_geos_features_boxes(&pairs->join_side, b);
        if (box_a == NULL || box_b == NULL)
            return OJ_GEOS_OUT_OF_MEMORY;
    }
    for (int64_t i = 0; i < a->n_components && least > 0.0; i++)
    {
        const GEOSGeometry *one =
            GEOSGetGeometryN_r(pairs->handle.geos, a->geometry, (int)i);
        for (int64_t j = 0; j < b->n_components && least > 0.0; j++)
        {
            const GEOSGeometry *other;
            if (box_a != NULL && oj_box_distance(&box_a[i], &box_b[j]) > least)
                continue;
            other = GEOSGetGeometryN_r(pairs->handle.geos, b->geometry, (int)j);
            if (one == NULL || other == NULL || !measure(pairs, one, other, &d))
                return oj_geos_handle_reason(&pairs->handle);
            least = d < least ? d : least;
        }
    }
    *distance = least;
    return OJ_GEOS_YES;
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
static GEOSGeometry *intersect(struct oj_geos_pairs *pairs,
                               struct oj_geos_kept *a, struct oj_geos_kept *b)
{
    GEOSContextHandle_t geos = pairs->handle.geos;
    const GEOSGeometry *whole_a = oj_geos_features_whole(&pairs->input, a);
    const GEOSGeometry *whole_b = oj_geos_features_whole(&pairs->join_side, b);
    struct kinds of_a, of_b;
    GEOSGeometry *common = NULL;
    if (whole_a == NULL || whole_b == NULL)
        return NULL;
    if (GEOSGeomTypeId_r(geos, whole_a) != GEOS_GEOMETRYCOLLECTION &&
        GEOSGeomTypeId_r(geos, whole_b) != GEOS_GEOMETRYCOLLECTION)
        return GEOSIntersection_r(geos, whole_a, whole_b);
    if (!split_kinds(&pairs->input, a, &of_a))
        return NULL;
    if (split_kinds(&pairs->join_side, b, &of_b))
    {
        common = intersect_kinds(geos, &of_a, &of_b);
        free_kinds(geos, &of_b);
    }
    free_kinds(geos, &of_a);
    return common;
}

enum oj_geos_verdict oj_geos_pairs_add_common(struct oj_geos_pairs *pairs,
                                              int64_t row, int64_t feature,
                                              struct oj_flat_buf *shapes)
{
    struct oj_geos_kept *a = NULL, *b = NULL;
    enum oj_geos_verdict both = get_both(pairs, row, feature, &a, &b);
    GEOSGeometry *common;
    struct oj_error err;
    oj_status status;
    if (both == OJ_GEOS_NO)
        return oj_flat_buf_add_null(shapes, shapes->n_features, &err) == OJ_OK
                   ? OJ_GEOS_YES
                   : OJ_GEOS_OUT_OF_MEMORY;
    if (both != OJ_GEOS_YES)
        return both;
    common = intersect(pairs, a, b);
    if (common == NULL)
        return oj_geos_handle_reason(&pairs->handle);
    status = add_geometry(pairs->handle.geos, common, shapes, &err);
    GEOSGeom_destroy_r(pairs->handle.geos, common);
    if (status == OJ_OK)
        return OJ_GEOS_YES;
    oj_flat_buf_drop(shapes);
    return OJ_GEOS_OUT_OF_MEMORY;
}

/* ---- areas --------------------------------------------------------------- */

oj_status oj_geos_pairs_area(struct oj_geos_pairs *pairs, int of_input,
                             int64_t feature, double *area,
                             struct oj_error *err)
{
    struct oj_geos_features *features =
        of_input ? &pairs->input : &pairs->join_side;
    const struct oj_flat *flat = features->flat;
    const GEOSGeometry *whole = NULL;
    struct oj_geos_kept *kept;
    struct oj_flat united;
    *area = oj_flat_area(flat, feature);
    if (oj_flat_is_points(flat) || *area == 0.0 ||
        flat->part_offset[feature + 1] - flat->part_offset[feature] < 2)
        return OJ_OK;
    oj_geos_handle_ask(&pairs->handle);
    kept = oj_geos_features_get(features, feature);
    if (kept != NULL)
        whole = oj_geos_features_whole(features, kept);
    if (whole == NULL)
        return oj_geos_handle_reason(&pairs->handle) == OJ_GEOS_OUT_OF_MEMORY
                   ? oj_fail(err, OJ_ERR_NOMEM, "out of memory: a union")
                   : OJ_OK;
    if (whole == kept->geometry)
        return OJ_OK;
    oj_flat_buf_clear(&pairs->united);
    OJ_TRY(add_geometry(pairs->handle.geos, whole, &pairs->united, err));
    united = oj_flat_buf_view(&pairs->united);
    *area = oj_flat_area(&united, 0);
    return OJ_OK;
}
