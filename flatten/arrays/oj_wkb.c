#include "oj_wkb.h"

#include <math.h>

enum wkb_type
{
    WKB_POINT = 1,
    WKB_LINE = 2,
    WKB_POLYGON = 3,
    WKB_MULTIPOINT = 4,
    WKB_MULTILINE = 5,
    WKB_MULTIPOLYGON = 6,
    WKB_COLLECTION = 7,
    WKB_FIRST_UNSUPPORTED = 8, /* circular string */
    WKB_LAST_UNSUPPORTED = 17  /* triangle */
};

#define EWKB_Z 0x80000000u
#define EWKB_M 0x40000000u
#define EWKB_SRID 0x20000000u
#define EWKB_FLAGS (EWKB_Z | EWKB_M | EWKB_SRID)

struct wkb_reader
{
    const uint8_t *start, *at, *end;
    struct oj_error *err;
    /* 1: the geometry is only checked: reading fails for bytes that
     * oj_wkb_is_iso() refuses. */
    int is_strict;
    /* With is_strict: dimensions of the outermost geometry, as in ISO types: 0,
     * 1 (Z), 2 (M) or 3 (ZM). */
    uint32_t dimensions;
    /* If not NULL, the geometry is only copied to this place, as ISO WKB. */
    uint8_t *copy;
    uint32_t srid; /* the first SRID of the geometry; 0: no SRID so far */
};

struct header
{
    uint32_t type;    /* enum wkb_type, without flags and dimensions */
    int big_endian;   /* byte order of this geometry; each member has its own */
    size_t ordinates; /* doubles per vertex: 2 to 4 */
    int has_m;        /* 1: the last ordinate is M */
};

static oj_status fail_noncanonical_wkb(const struct wkb_reader *in)
{
    return oj_fail(in->err, OJ_ERR_DATA, "not as OGR writes it");
}

static size_t bytes_left(const struct wkb_reader *in)
{
    return (size_t)(in->end - in->at);
}

static oj_status fail_truncated_wkb(const struct wkb_reader *in)
{
    return oj_fail(
        in->err, OJ_ERR_DATA, "broken WKB: it ends early (byte %lld of %lld)",
        (long long)(in->at - in->start), (long long)(in->end - in->start));
}

static void copy_bytes(struct wkb_reader *in, const uint8_t *from, size_t n)
{
    if (in->copy == NULL)
        return;
    memcpy(in->copy, from, n);
    in->copy += n;
}

/* If there is a copy, writes the byte order and the ISO type, which has no
 * flags, to it. */
static void copy_head(struct wkb_reader *in, int big_endian, uint32_t type)
{
    uint8_t head[5] = {(uint8_t)!big_endian};
    for (int i = 0; i < 4 && in->copy != NULL; i++)
        head[1 + i] = (uint8_t)(type >> 8 * (big_endian ? 3 - i : i));
    copy_bytes(in, head, sizeof head);
}

static uint32_t get_u32(const uint8_t *p, int big_endian)
{
    if (big_endian)
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
               (uint32_t)p[2] << 8 | (uint32_t)p[3];
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static double get_double(const uint8_t *p, int big_endian)
{
    uint8_t turned[8];
    if (!big_endian)
        return oj_wkb_double(p);
    for (int i = 0; i < 8; i++)
        turned[i] = p[7 - i];
    return oj_wkb_double(turned);
}

/* Reads byte order and type. ISO types encode dimensions in thousands, extended
 * types in flags; a type may use both. */
static oj_status read_header(struct wkb_reader *in, struct header *out)
{
    uint32_t type, dimensions;
    int z, m;
    if (bytes_left(in) < 5)
        return fail_truncated_wkb(in);
    if (in->at[0] > 1)
        return oj_fail(
            in->err, OJ_ERR_DATA,
            "broken WKB: the byte order is %d at byte %lld, not 0 or 1",
            in->at[0], (long long)(in->at - in->start));
    out->big_endian = in->at[0] == 0;
    type = get_u32(in->at + 1, out->big_endian);
    dimensions = (type & ~EWKB_FLAGS) / 1000;
    out->type = (type & ~EWKB_FLAGS) % 1000;
    if (dimensions > 3 || out->type == 0 || out->type > WKB_LAST_UNSUPPORTED)
        return oj_fail(in->err, OJ_ERR_DATA,
                       "broken WKB: unknown geometry type %lu at byte %lld",
                       (unsigned long)type, (long long)(in->at - in->start));
    in->at += 5;
    if (type & EWKB_SRID)
    {
        if (bytes_left(in) < 4)
            return fail_truncated_wkb(in);
        if (in->srid == 0)
            in->srid = get_u32(in->at, out->big_endian);
        in->at += 4;
    }
    if (in->is_strict)
    {
        if (in->at == in->start + 5)
            in->dimensions = dimensions;
        if (out->big_endian || (type & EWKB_FLAGS) != 0 ||
            dimensions != in->dimensions)
            return fail_noncanonical_wkb(in);
    }
    if (out->type >= WKB_FIRST_UNSUPPORTED)
        return oj_fail(in->err, OJ_ERR_UNSUPPORTED,
                       "geometry type %lu (curve, surface or triangle) is not "
                       "supported; use lines and polygons",
                       (unsigned long)out->type);
    z = (type & EWKB_Z) != 0 || (dimensions & 1) != 0;
    m = (type & EWKB_M) != 0 || (dimensions & 2) != 0;
    out->ordinates = (size_t)(2 + z + m);
    out->has_m = m;
    copy_head(in, out->big_endian,
              out->type + 1000 * (uint32_t)z + 2000 * (uint32_t)m);
    return OJ_OK;
}

/* Reads a count of elements and refuses one that the remaining bytes cannot
 * hold, at min_bytes per element. */
static oj_status read_count(struct wkb_reader *in, const struct header *header,
                            size_t min_bytes, uint32_t *count)
{
    uint32_t n = 0;
    if (bytes_left(in) < 4)
        return fail_truncated_wkb(in);
    n = get_u32(in->at, header->big_endian);
    if (n > (bytes_left(in) - 4) / min_bytes)
        return oj_fail(in->err, OJ_ERR_DATA,
                       "broken WKB: the count %lu at byte %lld is more than "
                       "its %lld bytes can hold",
                       (unsigned long)n, (long long)(in->at - in->start),
                       (long long)(in->end - in->start));
    if (in->is_strict && n == 0)
        return fail_noncanonical_wkb(in);
    copy_bytes(in, in->at, 4);
    in->at += 4;
    *count = n;
    return OJ_OK;
}

/* Returns 1 if the geometry is only checked or copied, not added to a buffer.
 */
static int adds_nothing(const struct wkb_reader *in)
{
    return in->is_strict || in->copy != NULL;
}

static oj_status append_part_if_adding(struct wkb_reader *in,
                                       struct oj_flat_buf *buf,
                                       enum oj_part_kind kind)
{
    return adds_nothing(in) ? OJ_OK
                            : oj_flat_buf_begin_part(buf, kind, in->err);
}

/* Skips n vertices. Copies them if there is a copy, and adds them to buf unless
 * adds_nothing(). The caller has checked that their bytes exist. */
static oj_status read_vertices(struct wkb_reader *in,
                               const struct header *header, uint32_t n,
                               struct oj_flat_buf *buf)
{
    const uint8_t *p = in->at;
    const uint8_t *first = p;
    size_t stride = header->ordinates * 8;
    double *x, *y, *m;
    in->at += stride * n;
    copy_bytes(in, first, stride * n);
    if (adds_nothing(in))
        return OJ_OK;
    OJ_TRY(oj_flat_buf_begin_ring(buf, in->err));
    OJ_TRY(oj_flat_buf_add_vertices(buf, n, &x, &y, in->err));
    if (header->big_endian)
    {
        for (uint32_t i = 0; i < n; i++, p += stride)
        {
            x[i] = get_double(p, 1);
            y[i] = get_double(p + 8, 1);
        }
    }
    else
    {
        for (uint32_t i = 0; i < n; i++, p += stride)
        {
            x[i] = oj_wkb_double(p);
            y[i] = oj_wkb_double(p + 8);
        }
    }
    m = oj_flat_buf_last_m(buf, n);
    for (uint32_t i = 0; m != NULL && header->has_m && i < n; i++)
        m[i] = oj_flat_clean_m_value(
            get_double(first + stride * (i + 1) - 8, header->big_endian));
    return OJ_OK;
}

static oj_status read_point(struct wkb_reader *in, const struct header *header,
                            struct oj_flat_buf *buf)
{
    if (bytes_left(in) < header->ordinates * 8)
        return fail_truncated_wkb(in);
    /* Empty points are written as NaN NaN. NaN has many bit patterns, so OGR
     * might write other bytes than these: such a point is refused. */
    if (in->is_strict &&
        (isnan(oj_wkb_double(in->at)) || isnan(oj_wkb_double(in->at + 8))))
        return fail_noncanonical_wkb(in);
    OJ_TRY(append_part_if_adding(in, buf, OJ_PART_POINT));
    return read_vertices(in, header, 1, buf);
}

static oj_status read_line(struct wkb_reader *in, const struct header *header,
                           struct oj_flat_buf *buf)
{
    uint32_t n = 0;
    OJ_TRY(read_count(in, header, header->ordinates * 8, &n));
    OJ_TRY(append_part_if_adding(in, buf, OJ_PART_LINE));
    return read_vertices(in, header, n, buf);
}

static oj_status read_polygon(struct wkb_reader *in,
                              const struct header *header,
                              struct oj_flat_buf *buf)
{
    uint32_t n_rings = 0, n = 0;
    OJ_TRY(read_count(in, header, 4, &n_rings));
    OJ_TRY(append_part_if_adding(in, buf, OJ_PART_POLYGON));
    for (uint32_t r = 0; r < n_rings; r++)
    {
        OJ_TRY(read_count(in, header, header->ordinates * 8, &n));
        OJ_TRY(read_vertices(in, header, n, buf));
    }
    return OJ_OK;
}

/* Returns the type that members of a multi-geometry must have; 0: members may
 * have any type. */
static uint32_t member_type(uint32_t type)
{
    return type == WKB_COLLECTION ? 0 : type - WKB_MULTIPOINT + WKB_POINT;
}

static oj_status read_geometry(struct wkb_reader *in, struct oj_flat_buf *buf,
                               uint32_t expected, int depth)
{
    struct header header;
    uint32_t n = 0;
    OJ_TRY(read_header(in, &header));
    if (expected != 0 && header.type != expected)
        return oj_fail(in->err, OJ_ERR_DATA,
                       "broken WKB: a geometry of type %lu as member of a "
                       "multi-geometry of type %lu",
                       (unsigned long)header.type,
                       (unsigned long)(expected - WKB_POINT + WKB_MULTIPOINT));
    switch (header.type)
    {
        case WKB_POINT:
            return read_point(in, &header, buf);
        case WKB_LINE:
            return read_line(in, &header, buf);
        case WKB_POLYGON:
            return read_polygon(in, &header, buf);
        default:
            break;
    }
    if (depth >= OJ_WKB_MAX_DEPTH)
        return oj_fail(in->err, OJ_ERR_DATA,
                       "WKB collections are nested more than %d deep: make one "
                       "collection of them",
                       OJ_WKB_MAX_DEPTH);
    /* The shortest member of a collection has a header and a count: 9 bytes. */
    OJ_TRY(read_count(in, &header, 9, &n));
    if (n == 0 && depth > 0) /* an empty collection inside another one */
        return append_part_if_adding(in, buf, OJ_PART_POINT);
    for (uint32_t i = 0; i < n; i++)
        OJ_TRY(read_geometry(in, buf, member_type(header.type), depth + 1));
    return OJ_OK;
}

static oj_status check_end_of_wkb(const struct wkb_reader *in)
{
    if (in->at == in->end)
        return OJ_OK;
    return oj_fail(in->err, OJ_ERR_DATA,
                   "broken WKB: %lld bytes follow after its end",
                   (long long)bytes_left(in));
}

oj_status oj_wkb_add_parts(struct oj_flat_buf *buf, const uint8_t *wkb,
                           size_t n, struct oj_error *err)
{
    struct wkb_reader in = {
        .start = wkb, .at = wkb, .end = wkb + n, .err = err};
    OJ_TRY(read_geometry(&in, buf, 0, 0));
    return check_end_of_wkb(&in);
}

int oj_wkb_is_iso(const uint8_t *wkb, size_t n)
{
    struct wkb_reader in = {
        .start = wkb, .at = wkb, .end = wkb + n, .is_strict = 1};
    return oj_wkb_iso_point(wkb, n) != NULL ||
           (read_geometry(&in, NULL, 0, 0) == OJ_OK && in.at == in.end);
}

oj_status oj_wkb_copy_as_iso(const uint8_t *wkb, size_t n, uint8_t *to,
                             size_t *n_to, int64_t *srid, struct oj_error *err)
{
    struct wkb_reader in = {
        .start = wkb, .at = wkb, .end = wkb + n, .err = err, .copy = to};
    OJ_TRY(read_geometry(&in, NULL, 0, 0));
    OJ_TRY(check_end_of_wkb(&in));
    *n_to = (size_t)(in.copy - to);
    *srid = in.srid <= INT32_MAX ? in.srid : 0;
    return OJ_OK;
}

/* Skips n vertices of n_ordinates doubles each and extends the box by them. */
static void skip_and_box_vertices(struct oj_wkb_walk *walk, int64_t n,
                                  int n_ordinates, int has_z)
{
    const uint8_t *at = walk->at;
    walk->n_vertices += n;
    walk->at += 8 * n_ordinates * n;
    for (int64_t i = 0; walk->box != NULL && i < n; i++, at += 8 * n_ordinates)
    {
        for (int k = 0; k < 2 + has_z; k++)
        {
            double value = oj_wkb_double(at + 8 * k), *box = walk->box + 2 * k;
            box[0] = value < box[0] ? value : box[0];
            box[1] = value > box[1] ? value : box[1];
            walk->doubt += value * 0.0;
        }
    }
}

void oj_wkb_walk_geometry(struct oj_wkb_walk *walk)
{
    uint32_t code = get_u32(walk->at + 1, 0), type = code % 1000, n;
    int has_z = code / 1000 % 2 == 1, has_m = code / 1000 >= 2;
    int n_ordinates = 2 + has_z + has_m;
    walk->has_curves |= type > WKB_COLLECTION;
    walk->n_geometries++;
    walk->at += 5;
    if (type == WKB_POINT)
    {
        int is_empty = isnan(oj_wkb_double(walk->at)) &&
                       isnan(oj_wkb_double(walk->at + 8));
        skip_and_box_vertices(walk, 1, n_ordinates, has_z);
        walk->n_vertices -= is_empty;
        return;
    }
    n = get_u32(walk->at, 0);
    walk->at += 4;
    if (type == WKB_LINE || type == WKB_FIRST_UNSUPPORTED)
    {
        skip_and_box_vertices(walk, n, n_ordinates, has_z);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
    {
        if (type != WKB_POLYGON && type != WKB_LAST_UNSUPPORTED)
        {
            oj_wkb_walk_geometry(walk);
            continue;
        }
        walk->at += 4;
        skip_and_box_vertices(walk, get_u32(walk->at - 4, 0), n_ordinates,
                              has_z);
    }
}

static oj_status add_single_point(struct oj_flat_buf *buf, int64_t fid,
                                  const uint8_t *wkb, size_t n, int *is_point,
                                  struct oj_error *err)
{
    struct wkb_reader in = {
        .start = wkb, .at = wkb, .end = wkb + n, .err = err};
    struct header header;
    uint32_t count;
    *is_point = 0;
    OJ_TRY(read_header(&in, &header));
    if (header.type == WKB_MULTIPOINT)
    {
        OJ_TRY(read_count(&in, &header, 9, &count));
        if (count != 1)
            return OJ_OK;
        OJ_TRY(read_header(&in, &header));
    }
    if (header.type != WKB_POINT)
        return OJ_OK;
    if (bytes_left(&in) < header.ordinates * 8)
        return fail_truncated_wkb(&in);
    wkb = in.at;
    in.at += header.ordinates * 8;
    OJ_TRY(check_end_of_wkb(&in));
    *is_point = 1;
    return oj_flat_buf_add_point(buf, fid, get_double(wkb, header.big_endian),
                                 get_double(wkb + 8, header.big_endian), err);
}

oj_status oj_wkb_add(struct oj_flat_buf *buf, int64_t fid, const uint8_t *wkb,
                     size_t n, struct oj_error *err)
{
    const uint8_t *point = oj_wkb_plain_point(wkb, n);
    oj_status status;
    int is_point;
    if (point != NULL)
        return oj_flat_buf_add_point(buf, fid, oj_wkb_double(point),
                                     oj_wkb_double(point + 8), err);
    OJ_TRY(add_single_point(buf, fid, wkb, n, &is_point, err));
    if (is_point)
        return OJ_OK;
    OJ_TRY(oj_flat_buf_begin_feature(buf, fid, err));
    status = oj_wkb_add_parts(buf, wkb, n, err);
    if (status == OJ_OK)
        status = oj_flat_buf_end_feature(buf, err);
    if (status != OJ_OK)
        oj_flat_buf_drop_feature(buf);
    return status;
}

/* ---- writing ------------------------------------------------------------ */

enum
{
    HEAD = 5,   /* byte order and type */
    COUNTED = 9 /* byte order, type and count */
};

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value & 0xFF);
    at[1] = (uint8_t)(value >> 8 & 0xFF);
    at[2] = (uint8_t)(value >> 16 & 0xFF);
    at[3] = (uint8_t)(value >> 24);
    return at + 4;
}

static uint8_t *put_double(uint8_t *at, double value)
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

static uint8_t *put_geometry_head(uint8_t *at, uint32_t type)
{
    *at = 1;
    return put_u32(at + 1, type);
}

static uint8_t *put_vertices(uint8_t *at, const struct oj_flat *flat,
                             int64_t first, int64_t end)
{
    for (int64_t v = first; v < end; v++)
        at = put_double(put_double(at, flat->x[v]), flat->y[v]);
    return at;
}

static uint32_t wkb_type_of_part(const struct oj_flat *flat, int64_t part)
{
    return flat->part_kind[part] == OJ_PART_POLYGON ? WKB_POLYGON
           : flat->part_kind[part] == OJ_PART_LINE  ? WKB_LINE
                                                    : WKB_POINT;
}

static uint8_t *write_part_as_wkb(uint8_t *at, const struct oj_flat *flat,
                                  int64_t part)
{
    int64_t ring = flat->ring_offset[part], end = flat->ring_offset[part + 1];
    uint32_t type = wkb_type_of_part(flat, part);
    at = put_geometry_head(at, type);
    if (type == WKB_POLYGON)
        at = put_u32(at, (uint32_t)(end - ring));
    for (; ring < end; ring++)
    {
        int64_t first = flat->vertex_offset[ring];
        int64_t end_vertex = flat->vertex_offset[ring + 1];
        if (type != WKB_POINT)
            at = put_u32(at, (uint32_t)(end_vertex - first));
        at = put_vertices(at, flat, first, end_vertex);
    }
    return at;
}

/* Returns the WKB type for a feature of several parts: a multi type if they are
 * of one kind, else a collection. */
static uint32_t multi_type_of_parts(const struct oj_flat *flat, int64_t first,
                                    int64_t end)
{
    for (int64_t part = first + 1; part < end; part++)
    {
        if (flat->part_kind[part] != flat->part_kind[first])
            return WKB_COLLECTION;
    }
    return wkb_type_of_part(flat, first) - WKB_POINT + WKB_MULTIPOINT;
}

int64_t oj_wkb_size(const struct oj_flat *flat, int64_t feature, int multi)
{
    int64_t n = 0, part, end;
    if (oj_flat_is_points(flat))
        return isnan(flat->x[feature]) ? 0 : HEAD + 16 + (multi ? COUNTED : 0);
    part = flat->part_offset[feature];
    end = flat->part_offset[feature + 1];
    if (end - part > 1 || (end - part == 1 && multi))
        n = COUNTED;
    for (; part < end; part++)
    {
        int64_t ring = flat->ring_offset[part];
        int64_t end_ring = flat->ring_offset[part + 1];
        n += HEAD +
             16 * (flat->vertex_offset[end_ring] - flat->vertex_offset[ring]);
        if (flat->part_kind[part] == OJ_PART_POLYGON)
            n += 4;
        if (flat->part_kind[part] != OJ_PART_POINT)
            n += 4 * (end_ring - ring);
    }
    return n;
}

void oj_wkb_write(const struct oj_flat *flat, int64_t feature, int multi,
                  uint8_t *to)
{
    int64_t part, end;
    if (oj_flat_is_points(flat))
    {
        if (multi)
            to = put_u32(put_geometry_head(to, WKB_MULTIPOINT), 1);
        put_vertices(put_geometry_head(to, WKB_POINT), flat, feature,
                     feature + 1);
        return;
    }
    part = flat->part_offset[feature];
    end = flat->part_offset[feature + 1];
    if (multi || end - part > 1)
        to =
            put_u32(put_geometry_head(to, multi_type_of_parts(flat, part, end)),
                    (uint32_t)(end - part));
    for (; part < end; part++)
        to = write_part_as_wkb(to, flat, part);
}
