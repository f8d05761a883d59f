#include "oj_flat.h"

#include <math.h>

static oj_status check_offsets(const int64_t *offset, int64_t n, int64_t total,
                               const char *name, struct oj_error *err)
{
    if (offset[0] != 0)
        return oj_fail(err, OJ_ERR_ARG, "%s[0] is %lld, not 0", name,
                       (long long)offset[0]);
    for (int64_t i = 0; i < n; i++)
    {
        if (offset[i + 1] < offset[i])
            return oj_fail(err, OJ_ERR_ARG, "%s decreases at entry %lld", name,
                           (long long)(i + 1));
    }
    if (offset[n] != total)
        return oj_fail(err, OJ_ERR_ARG, "%s ends at %lld, but there are %lld",
                       name, (long long)offset[n], (long long)total);
    return OJ_OK;
}

static int is_closed(const struct oj_flat *flat, int64_t first, int64_t end)
{
    return flat->x[first] == flat->x[end - 1] &&
           flat->y[first] == flat->y[end - 1];
}

static oj_status check_part(const struct oj_flat *flat, int64_t part,
                            struct oj_error *err)
{
    int kind = flat->part_kind[part];
    int64_t first_ring = flat->ring_offset[part];
    int64_t n_rings = flat->ring_offset[part + 1] - first_ring;
    if (kind != OJ_PART_POINT && kind != OJ_PART_LINE &&
        kind != OJ_PART_POLYGON)
        return oj_fail(err, OJ_ERR_ARG, "part %lld has the unknown kind %d",
                       (long long)part, kind);
    if ((flat->part_kinds & (unsigned)kind) == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "part_kinds lacks the kind %d of part %lld", kind,
                       (long long)part);
    if (n_rings < 1 || (kind != OJ_PART_POLYGON && n_rings != 1))
        return oj_fail(err, OJ_ERR_ARG, "part %lld of kind %d has %lld rings",
                       (long long)part, kind, (long long)n_rings);
    for (int64_t r = first_ring; r < first_ring + n_rings; r++)
    {
        int64_t first = flat->vertex_offset[r];
        int64_t end = flat->vertex_offset[r + 1];
        if (end == first || (kind == OJ_PART_POINT && end - first != 1))
            return oj_fail(err, OJ_ERR_ARG, "ring %lld has %lld vertices",
                           (long long)r, (long long)(end - first));
        if (kind == OJ_PART_POLYGON && !is_closed(flat, first, end))
            return oj_fail(err, OJ_ERR_ARG, "polygon ring %lld is not closed",
                           (long long)r);
    }
    return OJ_OK;
}

static oj_status check_points(const struct oj_flat *flat, struct oj_error *err)
{
    if (flat->n_vertices != flat->n_features)
        return oj_fail(err, OJ_ERR_ARG,
                       "%lld features in the short form have %lld vertices",
                       (long long)flat->n_features,
                       (long long)flat->n_vertices);
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        double x = flat->x[i], y = flat->y[i];
        if (!isnan(x) && !(fabs(x) <= OJ_FLAT_MOST && fabs(y) <= OJ_FLAT_MOST))
            return oj_fail(err, OJ_ERR_ARG,
                           "point %lld has a coordinate that is not finite or "
                           "beyond %g",
                           (long long)i, OJ_FLAT_MOST);
        if (!isnan(x) && (flat->part_kinds & OJ_PART_POINT) == 0)
            return oj_fail(err, OJ_ERR_ARG, "part_kinds lacks OJ_PART_POINT");
    }
    return OJ_OK;
}

oj_status oj_flat_check(const struct oj_flat *flat, struct oj_error *err)
{
    if (flat->n_features < 0 || flat->n_vertices < 0)
        return oj_fail(err, OJ_ERR_ARG, "negative count");
    if (flat->n_vertices > 0 && (flat->x == NULL || flat->y == NULL))
        return oj_fail(err, OJ_ERR_ARG, "x or y is missing");
    if (oj_flat_is_points(flat))
        return check_points(flat, err);
    if (flat->n_parts < 0 || flat->n_rings < 0)
        return oj_fail(err, OJ_ERR_ARG, "negative count");
    if (flat->ring_offset == NULL || flat->vertex_offset == NULL ||
        (flat->n_parts > 0 && flat->part_kind == NULL))
        return oj_fail(err, OJ_ERR_ARG,
                       "part_offset without part_kind, ring_offset or "
                       "vertex_offset");
    OJ_TRY(check_offsets(flat->part_offset, flat->n_features, flat->n_parts,
                         "part_offset", err));
    OJ_TRY(check_offsets(flat->ring_offset, flat->n_parts, flat->n_rings,
                         "ring_offset", err));
    OJ_TRY(check_offsets(flat->vertex_offset, flat->n_rings, flat->n_vertices,
                         "vertex_offset", err));
    for (int64_t p = 0; p < flat->n_parts; p++)
        OJ_TRY(check_part(flat, p, err));
    for (int64_t v = 0; v < flat->n_vertices; v++)
    {
        if (!(fabs(flat->x[v]) <= OJ_FLAT_MOST) ||
            !(fabs(flat->y[v]) <= OJ_FLAT_MOST))
            return oj_fail(err, OJ_ERR_ARG,
                           "vertex %lld is not finite or beyond %g",
                           (long long)v, OJ_FLAT_MOST);
    }
    return OJ_OK;
}
