#include "oj_reshape.h"

#include "../../flatten/write/oj_layer_shape.h"

#include <cpl_error.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static int is_of_side(int sides, int side)
{
    return sides == OJ_SIDE_BOTH || sides == side;
}

struct oj_reshape oj_reshape_for(const struct oj_command *command, int side,
                                 const char *name)
{
    struct oj_reshape reshape = {0};
    reshape.role = side == 0 ? "input" : "join";
    reshape.name = name;
    reshape.invalid = (enum oj_invalid_mode)command->invalid;
    if (side == 1 && command->is_window)
    {
        reshape.invalid = OJ_INVALID_USE;
        if (command->n_windows == 0)
            reshape.shape = OJ_SHAPE_ENVELOPE;
    }
    if (oj_command_given(command, "centroid_of") &&
        is_of_side(command->centroid_of, side))
        reshape.shape = OJ_SHAPE_CENTROID;
    if (oj_command_given(command, "point_on_surface_of") &&
        is_of_side(command->point_on_surface_of, side))
        reshape.shape = OJ_SHAPE_POINT_ON_SURFACE;
    return reshape;
}

int oj_reshape_is_needed(const struct oj_reshape *reshape)
{
    return reshape->shape != OJ_SHAPE_AS_READ ||
           reshape->invalid != OJ_INVALID_USE;
}

/* ---- validity ----------------------------------------------------------- */

static int has_polygon(const struct oj_flat *flat, int64_t feature)
{
    if (oj_flat_is_points(flat))
        return 0;
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        if (flat->part_kind[p] == OJ_PART_POLYGON)
            return 1;
    }
    return 0;
}

static int is_valid(OGRGeometryH geometry, char *reason, size_t size)
{
    int valid;
    CPLErrorReset();
    valid = OGR_G_IsValid(geometry);
    snprintf(reason, size, "%s", CPLGetLastErrorMsg());
    return valid;
}

static oj_status fail_invalid(const struct oj_reshape *r,
                              const struct oj_flat *from, int64_t feature,
                              const char *reason, struct oj_error *err)
{
    long long fid = (long long)feature;
    if (from->fid != NULL)
        fid = (long long)from->fid[feature];
    return oj_fail(
        err, OJ_ERR_DATA,
        "%s layer '%s': feature %lld is not valid (%s), and -invalid "
        "fail stops there; -invalid fix would mend it for the join",
        r->role, r->name, fid, reason);
}

/* Replaces *geometry by what -invalid makes of it; NULL: skipped. */
static oj_status treat_invalid(struct oj_reshape *r, const struct oj_flat *from,
                               int64_t feature, OGRGeometryH *geometry,
                               struct oj_error *err)
{
    OGRGeometryH fixed = NULL;
    char reason[160];
    if (r->invalid == OJ_INVALID_USE || !has_polygon(from, feature))
        return OJ_OK;
    r->found.n_tested++;
    if (is_valid(*geometry, reason, sizeof reason))
        return OJ_OK;
    if (r->invalid == OJ_INVALID_FAIL)
        return fail_invalid(r, from, feature, reason, err);
    if (r->found.n_invalid++ == 0)
    {
        memcpy(r->found.reason, reason, sizeof reason);
        r->found.first_invalid =
            from->fid != NULL ? from->fid[feature] : feature;
    }
    if (r->invalid == OJ_INVALID_FIX)
    {
        fixed = OGR_G_MakeValid(*geometry);
        r->found.n_not_fixed += fixed == NULL;
    }
    OGR_G_DestroyGeometry(*geometry);
    *geometry = fixed;
    return OJ_OK;
}

/* ---- points and envelopes ----------------------------------------------- */

static OGRGeometryH centroid_of(OGRGeometryH geometry)
{
    OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
    if (point != NULL && OGR_G_Centroid(geometry, point) != OGRERR_NONE)
    {
        OGR_G_DestroyGeometry(point);
        point = NULL;
    }
    return point;
}

static oj_status add_representative(struct oj_reshape *r, int64_t fid,
                                    OGRGeometryH geometry,
                                    struct oj_flat_buf *to,
                                    struct oj_error *err)
{
    OGRGeometryH point;
    oj_status status;
    point = r->shape == OJ_SHAPE_CENTROID ? centroid_of(geometry)
                                          : OGR_G_PointOnSurface(geometry);
    r->found.n_no_point += point == NULL || OGR_G_IsEmpty(point);
    status = oj_layer_geometry_add(&r->work, to, fid, point, err);
    OGR_G_DestroyGeometry(point);
    return status;
}

struct envelope
{
    double x0, y0, x1, y1;
};

/* A feature with parts has vertices, and they are one run. */
static struct envelope envelope_of(const struct oj_flat *flat, int64_t feature)
{
    struct envelope e = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    int64_t v, end;
    oj_flat_vertices(flat, feature, &v, &end);
    for (; v < end; v++)
    {
        e.x0 = flat->x[v] < e.x0 ? flat->x[v] : e.x0;
        e.y0 = flat->y[v] < e.y0 ? flat->y[v] : e.y0;
        e.x1 = flat->x[v] > e.x1 ? flat->x[v] : e.x1;
        e.y1 = flat->y[v] > e.y1 ? flat->y[v] : e.y1;
    }
    return e;
}

/* Four corners and the first again, or of a line two that are opposite. */
static oj_status add_corners(const struct envelope *e, struct oj_flat_buf *to,
                             struct oj_error *err)
{
    const double xs[5] = {e->x0, e->x1, e->x1, e->x0, e->x0};
    const double ys[5] = {e->y0, e->y0, e->y1, e->y1, e->y0};
    int has_area = e->x0 < e->x1 && e->y0 < e->y1;
    int n = has_area ? 5 : 2, step = has_area ? 1 : 2;
    double *x, *y;
    OJ_TRY(
        oj_flat_buf_part(to, has_area ? OJ_PART_POLYGON : OJ_PART_LINE, err));
    OJ_TRY(oj_flat_buf_ring(to, err));
    OJ_TRY(oj_flat_buf_vertices(to, n, &x, &y, err));
    for (int i = 0; i < n; i++)
    {
        x[i] = xs[i * step];
        y[i] = ys[i * step];
    }
    return OJ_OK;
}

/* A box; without width or height a line, without both a point. */
static oj_status add_envelope(const struct oj_flat *from, int64_t feature,
                              int64_t fid, struct oj_flat_buf *to,
                              struct oj_error *err)
{
    struct envelope e = envelope_of(from, feature);
    oj_status status;
    if (e.x0 >= e.x1 && e.y0 >= e.y1)
        return oj_flat_buf_add_point(to, fid, e.x0, e.y0, err);
    OJ_TRY(oj_flat_buf_begin(to, fid, err));
    status = add_corners(&e, to, err);
    if (status == OJ_OK)
        status = oj_flat_buf_end(to, err);
    if (status != OJ_OK)
        oj_flat_buf_drop(to);
    return status;
}

/* ---- features ----------------------------------------------------------- */

static oj_status add_feature(struct oj_reshape *r, const struct oj_flat *from,
                             int64_t feature, int64_t fid,
                             struct oj_flat_buf *to, struct oj_error *err)
{
    OGRGeometryH geometry = NULL;
    oj_status status;
    int64_t v, end;
    oj_flat_vertices(from, feature, &v, &end);
    if (v == end)
        return oj_flat_buf_add_null(to, fid, err);
    if (oj_flat_is_one_point(from, feature)) /* valid, and its own centroid */
        return oj_flat_buf_add_point(to, fid, from->x[v], from->y[v], err);
    if (r->shape == OJ_SHAPE_ENVELOPE && r->invalid == OJ_INVALID_USE)
        return add_envelope(from, feature, fid, to, err);
    OJ_TRY(oj_layer_shape(from, feature, 0, &geometry, err));
    status = treat_invalid(r, from, feature, &geometry, err);
    if (status == OJ_OK && geometry != NULL && r->shape != OJ_SHAPE_AS_READ)
        status = add_representative(r, fid, geometry, to, err);
    else if (status == OJ_OK)
        status = oj_layer_geometry_add(&r->work, to, fid, geometry, err);
    OGR_G_DestroyGeometry(geometry);
    return status;
}

/* GEOS gives its reasons as warnings, which are not for the user's screen. */
oj_status oj_reshape_features(struct oj_reshape *reshape,
                              const struct oj_flat *from,
                              struct oj_flat_buf *to, struct oj_error *err)
{
    oj_status status = OJ_OK;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (int64_t i = 0; i < from->n_features && status == OJ_OK; i++)
    {
        if (i % 256 == 0)
            status = oj_check_cancel(reshape->cancel, err);
        if (status == OJ_OK)
            status = add_feature(reshape, from, i,
                                 from->fid != NULL ? from->fid[i] : i, to, err);
    }
    CPLErrorReset();
    CPLPopErrorHandler();
    return status;
}

void oj_reshape_free(struct oj_reshape *reshape)
{
    oj_layer_geometry_free(&reshape->work);
}
