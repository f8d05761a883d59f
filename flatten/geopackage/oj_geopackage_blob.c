#include "oj_geopackage_blob.h"

#include "../arrays/oj_wkb.h"

#include <math.h>
#include <string.h>

enum
{
    POINT = 1,
    POLYGON = 3,
    MULTIPOINT = 4,
    COLLECTION = 7
};

/* A geometry on its way through its bytes. */
struct look
{
    struct oj_gpkg_shape *shape;
    double doubt; /* NaN: a coordinate was not finite */
    int64_t n;    /* vertices */
};

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static void grow(double *box, double value)
{
    box[0] = value < box[0] ? value : box[0];
    box[1] = value > box[1] ? value : box[1];
}

static const uint8_t *look_at_vertices(struct look *look, const uint8_t *at,
                                       uint32_t n, int has_z, int n_ordinates)
{
    double *box = look->shape->box;
    for (uint32_t i = 0; i < n; i++, at += 8 * n_ordinates)
    {
        for (int k = 0; k < 2 + has_z; k++)
        {
            double value = oj_wkb_double(at + 8 * k);
            grow(box + 2 * k, value);
            look->doubt += value * 0.0;
        }
    }
    look->n += n;
    return at;
}

static const uint8_t *look_at_rings(struct look *look, const uint8_t *at,
                                    int has_z, int n_ordinates)
{
    uint32_t n_rings = get_u32(at);
    at += 4;
    for (uint32_t i = 0; i < n_rings; i++)
        at = look_at_vertices(look, at + 4, get_u32(at), has_z, n_ordinates);
    return at;
}

/* The end of the geometry, or NULL for a type that is not looked at. */
static const uint8_t *look_at(struct look *look, const uint8_t *at, int depth)
{
    uint32_t code = get_u32(at + 1), type = code % 1000, n;
    int has_z = code / 1000 % 2 == 1, has_m = code / 1000 >= 2;
    int n_ordinates = 2 + has_z + has_m;
    if (type < POINT || type > COLLECTION || depth > OJ_WKB_MAX_DEPTH)
        return NULL;
    at += 5;
    if (type == POINT)
        return look_at_vertices(look, at, 1, has_z, n_ordinates);
    if (type == POLYGON)
        return look_at_rings(look, at, has_z, n_ordinates);
    n = get_u32(at);
    at += 4;
    if (type < POLYGON)
        return look_at_vertices(look, at, n, has_z, n_ordinates);
    for (uint32_t i = 0; i < n && at != NULL; i++)
        at = look_at(look, at, depth + 1);
    return at;
}

void oj_gpkg_look(const uint8_t *wkb, struct oj_gpkg_shape *shape)
{
    struct look look = {shape, 0.0, 0};
    uint32_t code;
    shape->kind = 0;
    shape->is_empty = 1;
    if (wkb == NULL)
        return;
    for (int k = 0; k < 3; k++)
    {
        shape->box[2 * k] = (double)INFINITY;
        shape->box[2 * k + 1] = (double)-INFINITY;
    }
    code = get_u32(wkb + 1);
    shape->type = (int)(code % 1000);
    shape->has_z = code / 1000 % 2 == 1;
    if (shape->type == POINT && isnan(oj_wkb_double(wkb + 5)) &&
        isnan(oj_wkb_double(wkb + 13)))
        look.n = 0; /* POINT EMPTY */
    else if (look_at(&look, wkb, 0) == NULL || isnan(look.doubt))
    {
        shape->kind = -1;
        return;
    }
    shape->is_empty = look.n == 0;
    shape->kind = (shape->type * 4 + (int)(code / 1000)) * 2 + shape->is_empty;
}

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
    return at + 4;
}

static uint8_t *put_double(uint8_t *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    at = put_u32(at, (uint32_t)bits);
    return put_u32(at, (uint32_t)(bits >> 32));
}

int oj_gpkg_head(const struct oj_gpkg_shape *shape, int32_t srs_id,
                 uint8_t head[OJ_GPKG_MOST_HEAD])
{
    int n = shape->is_empty || shape->type == POINT ? 0 : 2 + shape->has_z;
    uint8_t *at = head + 4;
    head[0] = 'G';
    head[1] = 'P';
    head[2] = 0;
    head[3] = (uint8_t)(1 | (n > 0 ? n - 1 : 0) << 1 | shape->is_empty << 4);
    at = put_u32(at, (uint32_t)srs_id);
    for (int i = 0; i < 2 * n; i++)
        at = put_double(at, shape->box[i]);
    return (int)(at - head);
}
