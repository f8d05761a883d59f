#include "oj_row_wkb.h"

#include "../arrays/oj_wkb.h"
#include "../read/oj_attributes.h"
#include "../write/oj_layer_shape.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- bytes that need not be read to be written --------------------------- */

/* What is left of the bytes. */
struct rest
{
    const uint8_t *at;
    size_t n;
};

static int take_u32(struct rest *rest, uint32_t *value)
{
    const uint8_t *at = rest->at;
    if (rest->n < 4)
        return 0;
    *value = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
             (uint32_t)at[3] << 24;
    rest->at += 4;
    rest->n -= 4;
    return 1;
}

/* Points follow one another; none: an empty geometry. */
static int take_points(struct rest *rest, size_t point_bytes)
{
    uint32_t n;
    if (!take_u32(rest, &n) || n == 0 || n > rest->n / point_bytes)
        return 0;
    rest->at += n * point_bytes;
    rest->n -= n * point_bytes;
    return 1;
}

/* An empty point is NaN NaN, of which there are many. */
static int take_point(struct rest *rest, size_t point_bytes)
{
    if (rest->n < point_bytes || isnan(oj_wkb_double(rest->at)) ||
        isnan(oj_wkb_double(rest->at + 8)))
        return 0;
    rest->at += point_bytes;
    rest->n -= point_bytes;
    return 1;
}

static int take_rings(struct rest *rest, size_t point_bytes)
{
    uint32_t n;
    if (!take_u32(rest, &n) || n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
    {
        if (!take_points(rest, point_bytes))
            return 0;
    }
    return 1;
}

/* A geometry of type kind (0: any) and dimension (0, 1000, 2000, 3000; 1: any),
 * as a member must have. */
static int take_geometry(struct rest *rest, uint32_t kind, uint32_t dimension,
                         int depth)
{
    uint32_t type, n;
    size_t point_bytes;
    if (depth > OJ_WKB_MAX_DEPTH || rest->n < 1 || *rest->at++ != 1)
        return 0;
    rest->n--;
    if (!take_u32(rest, &type) || type > 3007 || type % 1000 < 1 ||
        type % 1000 > 7 || (kind != 0 && type % 1000 != kind) ||
        (dimension != 1 && type - type % 1000 != dimension))
        return 0;
    dimension = type - type % 1000;
    kind = type % 1000;
    point_bytes = dimension == 0 ? 16 : dimension == 3000 ? 32 : 24;
    if (kind == 1)
        return take_point(rest, point_bytes);
    if (kind == 2)
        return take_points(rest, point_bytes);
    if (kind == 3)
        return take_rings(rest, point_bytes);
    if (!take_u32(rest, &n) || n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
    {
        if (!take_geometry(rest, kind == 7 ? 0 : kind - 3, dimension,
                           depth + 1))
            return 0;
    }
    return 1;
}

int oj_wkb_is_iso(const uint8_t *wkb, size_t n)
{
    struct rest rest = {wkb, n};
    return take_geometry(&rest, 0, 1, 0) && rest.n == 0;
}

enum
{
    HEAD = 5,   /* byte order and type */
    COUNTED = 9 /* and a count */
};

/* Says how a row that is being added came out. */
enum outcome
{
    ADDED,
    DOES_NOT_FIT
};

/* ---- writing ------------------------------------------------------------ */

/* Little-endian, as all of ours is. */
static char *put_u32(char *at, uint32_t value)
{
    at[0] = (char)(value & 0xFF);
    at[1] = (char)(value >> 8 & 0xFF);
    at[2] = (char)(value >> 16 & 0xFF);
    at[3] = (char)(value >> 24);
    return at + 4;
}

static char *put_double(char *at, double value)
{
    union
    {
        double value;
        uint64_t bits;
    } u;
    u.value = value;
    at = put_u32(at, (uint32_t)(u.bits & 0xFFFFFFFFu));
    return put_u32(at, (uint32_t)(u.bits >> 32));
}

static char *put_head(char *at, OGRwkbGeometryType type)
{
    *at = 1;
    return put_u32(at + 1, (uint32_t)type);
}

static char *put_point(char *at, double x, double y)
{
    at = put_head(at, wkbPoint);
    return put_double(put_double(at, x), y);
}

static OGRwkbGeometryType multi_of(OGRwkbGeometryType type)
{
    return type == wkbPoint        ? wkbMultiPoint
           : type == wkbLineString ? wkbMultiLineString
                                   : wkbMultiPolygon;
}

/* Room for n bytes, and more for the head of a multi geometry of one, which is
 * then written; *at is NULL when they do not fit. */
static oj_status begin_value(struct oj_row_column *to, int64_t n, int multi,
                             OGRwkbGeometryType type, char **at,
                             struct oj_error *err)
{
    OJ_TRY(oj_row_column_add_room(to, multi ? n + COUNTED : n, at, err));
    if (multi && *at != NULL)
        *at = put_u32(put_head(*at, multi_of(type)), 1);
    return OJ_OK;
}

static oj_status add_point(struct oj_row_column *to, double x, double y,
                           int multi, enum outcome *outcome,
                           struct oj_error *err)
{
    char *at;
    OJ_TRY(begin_value(to, HEAD + 16, multi, wkbPoint, &at, err));
    *outcome = at != NULL ? ADDED : DOES_NOT_FIT;
    if (at != NULL)
        put_point(at, x, y);
    return OJ_OK;
}

static oj_status add_line(struct oj_row_column *to, const double *xyxy,
                          int multi, enum outcome *outcome,
                          struct oj_error *err)
{
    char *at;
    OJ_TRY(begin_value(to, COUNTED + 32, multi, wkbLineString, &at, err));
    *outcome = at != NULL ? ADDED : DOES_NOT_FIT;
    if (at == NULL)
        return OJ_OK;
    at = put_u32(put_head(at, wkbLineString), 2);
    for (int i = 0; i < 4; i++)
        at = put_double(at, xyxy[i]);
    return OJ_OK;
}

static oj_status add_bytes(struct oj_row_column *to, const void *wkb, int64_t n,
                           enum outcome *outcome, struct oj_error *err)
{
    char *at;
    OJ_TRY(oj_row_column_add_room(to, n, &at, err));
    *outcome = at != NULL ? ADDED : DOES_NOT_FIT;
    if (at != NULL)
        memcpy(at, wkb, (size_t)n);
    return OJ_OK;
}

static oj_status add_null(struct oj_row_column *to, enum outcome *outcome,
                          struct oj_error *err)
{
    struct oj_value value;
    int fits;
    oj_value_set_null(&value);
    *outcome = ADDED;
    return oj_row_column_add(to, &value, OFTBinary, &fits, err);
}

/* ---- over OGR ----------------------------------------------------------- */

static oj_status fail_geometry(int64_t fid, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "the geometry of feature %lld cannot be written as WKB",
                   (long long)fid);
}

static oj_status add_export(struct oj_row_column *to, OGRGeometryH geometry,
                            int64_t fid, enum outcome *outcome,
                            struct oj_error *err)
{
    int size = OGR_G_WkbSize(geometry);
    char *at;
    if (size <= 0)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the geometry of feature %lld takes more than 2 GiB as "
                       "WKB",
                       (long long)fid);
    OJ_TRY(oj_row_column_add_room(to, size, &at, err));
    *outcome = at != NULL ? ADDED : DOES_NOT_FIT;
    if (at != NULL && OGR_G_ExportToIsoWkb(geometry, wkbNDR,
                                           (unsigned char *)at) != OGRERR_NONE)
        return fail_geometry(fid, err);
    return OJ_OK;
}

/* Takes geometry, which may be NULL. */
static oj_status add_taken(struct oj_row_column *to, OGRGeometryH geometry,
                           int promote, int64_t fid, enum outcome *outcome,
                           struct oj_error *err)
{
    oj_status status;
    if (geometry != NULL && promote)
        geometry = oj_layer_shape_to_multi(geometry);
    if (geometry == NULL)
        return add_null(to, outcome, err);
    status = add_export(to, geometry, fid, outcome, err);
    OGR_G_DestroyGeometry(geometry);
    return status;
}

/* ---- the geometry of a feature ------------------------------------------ */

static oj_status add_wkb(struct oj_row_column *to, const uint8_t *wkb, size_t n,
                         int promote, int64_t fid, enum outcome *outcome,
                         struct oj_error *err)
{
    const uint8_t *at = oj_wkb_plain_point(wkb, n);
    OGRGeometryH geometry = NULL;
    if (at != NULL)
    {
        double x = oj_wkb_double(at), y = oj_wkb_double(at + 8);
        if (!isnan(x) && !isnan(y))
            return promote ? add_point(to, x, y, 1, outcome, err)
                           : add_bytes(to, wkb, (int64_t)n, outcome, err);
    }
    else if (!promote && oj_wkb_is_iso(wkb, n))
        return add_bytes(to, wkb, (int64_t)n, outcome, err);
    if (n > INT_MAX ||
        OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE)
        return fail_geometry(fid, err);
    return add_taken(to, geometry, promote, fid, outcome, err);
}

static oj_status add_of_feature(struct oj_row_column *to,
                                const struct oj_attributes *attributes,
                                int64_t row, int promote, int64_t fid,
                                enum outcome *outcome, struct oj_error *err)
{
    int field = attributes->fields->geometry_field;
    OGRGeometryH geometry = NULL;
    if (field >= 0)
        geometry = OGR_F_GetGeomFieldRef(attributes->feature[row], field);
    if (geometry == NULL)
        return add_null(to, outcome, err);
    if (OGR_G_GetGeometryType(geometry) == wkbPoint && !OGR_G_IsEmpty(geometry))
        return add_point(to, OGR_G_GetX(geometry, 0), OGR_G_GetY(geometry, 0),
                         promote, outcome, err);
    if (promote)
        return add_taken(to, OGR_G_Clone(geometry), 1, fid, outcome, err);
    return add_export(to, geometry, fid, outcome, err);
}

/* As it was read. */
static oj_status add_of_batch(struct oj_row_column *to,
                              const struct oj_batch *batch, int64_t row,
                              int promote, enum outcome *outcome,
                              struct oj_error *err)
{
    int64_t fid = batch->flat.fid[row];
    const uint8_t *wkb;
    size_t n = 0;
    if (batch->attributes->slice.chunk == NULL)
        return add_of_feature(to, batch->attributes, row, promote, fid, outcome,
                              err);
    wkb = oj_arrow_wkb(&batch->attributes->slice, row, &n);
    if (wkb == NULL)
        return add_null(to, outcome, err);
    return add_wkb(to, wkb, n, promote, fid, outcome, err);
}

/* ---- the geometry of arrays --------------------------------------------- */

static OGRwkbGeometryType type_of(const struct oj_flat *flat, int64_t part)
{
    return flat->part_kind[part] == OJ_PART_POLYGON ? wkbPolygon
           : flat->part_kind[part] == OJ_PART_LINE  ? wkbLineString
                                                    : wkbPoint;
}

static int64_t part_bytes(const struct oj_flat *flat, int64_t part)
{
    int64_t ring = flat->ring_offset[part], end = flat->ring_offset[part + 1];
    int64_t n = flat->vertex_offset[end] - flat->vertex_offset[ring];
    if (flat->part_kind[part] == OJ_PART_POINT)
        return HEAD + 16;
    if (flat->part_kind[part] == OJ_PART_LINE)
        return COUNTED + 16 * n;
    return COUNTED + 4 * (end - ring) + 16 * n;
}

static char *put_vertices(char *at, const struct oj_flat *flat, int64_t ring)
{
    for (int64_t v = flat->vertex_offset[ring];
         v < flat->vertex_offset[ring + 1]; v++)
        at = put_double(put_double(at, flat->x[v]), flat->y[v]);
    return at;
}

static char *put_part(char *at, const struct oj_flat *flat, int64_t part)
{
    int64_t ring = flat->ring_offset[part], end = flat->ring_offset[part + 1];
    OGRwkbGeometryType type = type_of(flat, part);
    at = put_head(at, type);
    if (type == wkbPoint)
    {
        int64_t v = flat->vertex_offset[ring];
        return put_double(put_double(at, flat->x[v]), flat->y[v]);
    }
    if (type == wkbPolygon)
        at = put_u32(at, (uint32_t)(end - ring));
    for (; ring < end; ring++)
    {
        at = put_u32(at, (uint32_t)(flat->vertex_offset[ring + 1] -
                                    flat->vertex_offset[ring]));
        at = put_vertices(at, flat, ring);
    }
    return at;
}

/* The type of a geometry that holds several parts. */
static OGRwkbGeometryType collection_of(const struct oj_flat *flat,
                                        int64_t first, int64_t end)
{
    for (int64_t part = first + 1; part < end; part++)
    {
        if (flat->part_kind[part] != flat->part_kind[first])
            return wkbGeometryCollection;
    }
    return multi_of(type_of(flat, first));
}

static oj_status add_parts(struct oj_row_column *to, const struct oj_flat *flat,
                           int64_t feature, int multi, enum outcome *outcome,
                           struct oj_error *err)
{
    int64_t first = flat->part_offset[feature];
    int64_t end = flat->part_offset[feature + 1], n = 0;
    char *at;
    for (int64_t part = first; part < end; part++)
        n += part_bytes(flat, part);
    if (end - first == 1)
    {
        OJ_TRY(begin_value(to, n, multi, type_of(flat, first), &at, err));
    }
    else
    {
        OJ_TRY(oj_row_column_add_room(to, n + COUNTED, &at, err));
        if (at != NULL)
            at = put_u32(put_head(at, collection_of(flat, first, end)),
                         (uint32_t)(end - first));
    }
    *outcome = at != NULL ? ADDED : DOES_NOT_FIT;
    for (int64_t part = first; at != NULL && part < end; part++)
        at = put_part(at, flat, part);
    return OJ_OK;
}

static oj_status add_flat(struct oj_row_column *to, const struct oj_flat *flat,
                          int64_t feature, int multi, enum outcome *outcome,
                          struct oj_error *err)
{
    if (!oj_flat_is_points(flat))
    {
        if (flat->part_offset[feature] == flat->part_offset[feature + 1])
            return add_null(to, outcome, err);
        return add_parts(to, flat, feature, multi, outcome, err);
    }
    if (!(flat->x[feature] - flat->x[feature] == 0.0))
        return add_null(to, outcome, err);
    return add_point(to, flat->x[feature], flat->y[feature], multi, outcome,
                     err);
}

/* ---- rows --------------------------------------------------------------- */

/* A value of the pair, NaN where there is none. */
static double value_of(const struct oj_row_sources *sources,
                       enum oj_pair_value which,
                       const struct oj_row_place *place)
{
    const struct oj_pair_values *values = sources->values;
    if (place->entry < 0 || values == NULL || values->value[which] == NULL)
        return (double)NAN;
    return values->value[which][place->entry];
}

/* The point that is nearest, or the line to it. */
static oj_status add_nearest(struct oj_row_column *to,
                             const struct oj_row_sources *sources,
                             const struct oj_row_place *place,
                             enum outcome *outcome, struct oj_error *err)
{
    const struct oj_write_options *options = sources->options;
    const double xyxy[4] = {value_of(sources, OJ_PAIR_FROM_X, place),
                            value_of(sources, OJ_PAIR_FROM_Y, place),
                            value_of(sources, OJ_PAIR_NEAREST_X, place),
                            value_of(sources, OJ_PAIR_NEAREST_Y, place)};
    if (place->join_row < 0 || isnan(xyxy[2]))
        return add_null(to, outcome, err);
    if (options->geometry == OJ_WRITE_NEAREST_POINT)
        return add_point(to, xyxy[2], xyxy[3], options->promote_to_multi,
                         outcome, err);
    return add_line(to, xyxy, options->promote_to_multi, outcome, err);
}

static oj_status add_row(struct oj_row_column *to,
                         const struct oj_row_sources *sources,
                         const struct oj_row_place *place,
                         enum outcome *outcome, struct oj_error *err)
{
    const struct oj_write_options *options = sources->options;
    int multi = options->multi_shapes || options->promote_to_multi;
    if (options->geometry == OJ_WRITE_INPUT)
        return add_of_batch(to, sources->batch, place->row,
                            options->promote_to_multi, outcome, err);
    if (sources->is_join_rows && options->geometry == OJ_WRITE_JOIN)
    {
        const struct oj_flat flat = oj_flat_buf_view(&sources->batch->flat);
        return add_flat(to, &flat, place->row, multi, outcome, err);
    }
    if (place->join_row < 0)
        return add_null(to, outcome, err);
    if (options->geometry == OJ_WRITE_JOIN)
        return add_flat(to, options->join_side, place->join_row, multi, outcome,
                        err);
    if (options->geometry == OJ_WRITE_SHAPE)
        return add_flat(to, &sources->shapes, place->entry, multi, outcome,
                        err);
    return add_nearest(to, sources, place, outcome, err);
}

oj_status oj_row_wkb_add(const struct oj_row_cursor *cursor,
                         const struct oj_row_place *places, int64_t n,
                         struct oj_row_column *to, int64_t *n_added,
                         struct oj_error *err)
{
    const struct oj_row_sources *sources = oj_row_cursor_sources(cursor);
    *n_added = 0;
    for (int64_t i = 0; i < n; i++)
    {
        enum outcome outcome;
        OJ_TRY(add_row(to, sources, &places[i], &outcome, err));
        if (outcome == DOES_NOT_FIT)
            break;
        *n_added = i + 1;
    }
    return OJ_OK;
}
