#include "oj_geopackage_blob.h"

#include "../arrays/oj_wkb.h"

#include <math.h>
#include <string.h>

#define POINT 1

void oj_gpkg_look(const uint8_t *wkb, struct oj_gpkg_shape *shape)
{
    struct oj_wkb_walk walk = {.at = wkb, .box = shape->box};
    int code;
    shape->kind = 0;
    shape->is_empty = 1;
    if (wkb == NULL)
        return;
    for (int k = 0; k < 3; k++)
    {
        shape->box[2 * k] = (double)INFINITY;
        shape->box[2 * k + 1] = (double)-INFINITY;
    }
    code = wkb[1] | wkb[2] << 8;
    shape->type = code % 1000;
    shape->has_z = code / 1000 % 2 == 1;
    oj_wkb_pass(&walk);
    shape->is_empty = walk.n_vertices == 0;
    shape->kind = (shape->type * 4 + code / 1000) * 2 + shape->is_empty;
    if (walk.has_curves ||
        (isnan(walk.doubt) && !(shape->type == POINT && shape->is_empty)))
        shape->kind = -1;
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
