/** Converts well-known binary to a flat layer, and back. One parser for the WKB
 *  of OGR, GeoPackage and PostGIS: ISO types (Z 1000, M 2000, ZM 3000),
 *  extended flags (Z 0x80000000, M 0x40000000, SRID 0x20000000; OGR's old 2.5-D
 *  uses the first), both byte orders, also mixed. Only x and y are kept, and M
 *  where the buffer asks for it (keeps_m). The bytes are untrusted: every
 * length is checked before use, and memory is never allocated for more
 * coordinates than the bytes can hold. */
#ifndef OJ_WKB_H
#define OJ_WKB_H

#include "oj_flat.h"

#include <math.h>
#include <string.h>

/** Maximum depth of collections in collections; deeper ones are refused. */
#define OJ_WKB_MAX_DEPTH 32

/** Adds one feature, the geometry in wkb[0 .. n - 1], which must be complete.
 *  A multipoint with one point becomes a point (short form). Fails with
 *  OJ_ERR_DATA for invalid bytes. Fails with OJ_ERR_UNSUPPORTED for curves,
 *  surfaces and triangles (types 8 to 17), which the caller has to turn into
 *  lines and polygons. On failure buf is unchanged. O(n). */
OJ_MUST_USE oj_status oj_wkb_add(struct oj_flat_buf *buf, int64_t fid,
                                 const uint8_t *wkb, size_t n,
                                 struct oj_error *err);

/** Adds only the parts of wkb, between oj_flat_buf_begin_feature() and
 *  oj_flat_buf_end_feature(); may be called several times per feature. On
 *  failure the caller drops the feature. */
OJ_MUST_USE oj_status oj_wkb_add_parts(struct oj_flat_buf *buf,
                                       const uint8_t *wkb, size_t n,
                                       struct oj_error *err);

/** Returns 1 if OGR, after reading the geometry, would write identical bytes:
 *  ISO types, little-endian, all members of one dimension, no curve or surface,
 *  no empty part, no trailing bytes. The bytes are untrusted. */
int oj_wkb_is_iso(const uint8_t *wkb, size_t n);

/** Returns 1 if the type of the outermost geometry has flags of extended WKB
 * (PostGIS, old OGR); the bytes are then no ISO WKB. */
static inline int oj_wkb_is_extended(const uint8_t *wkb, size_t n)
{
    return n >= 5 && (wkb[wkb[0] == 0 ? 1 : 4] & 0xe0) != 0;
}

/** Returns the SRID in the header of extended WKB, or 0 if there is none. */
static inline int64_t oj_wkb_srid(const uint8_t *wkb, size_t n)
{
    const int is_big = n > 0 && wkb[0] == 0;
    uint32_t srid = 0;
    if (n < 9 || (wkb[is_big ? 1 : 4] & 0x20) == 0)
        return 0;
    for (int i = 0; i < 4; i++)
        srid = srid << 8 | wkb[is_big ? 5 + i : 8 - i];
    return srid <= INT32_MAX ? (int64_t)srid : 0;
}

/** Copies a geometry to `to`, which has room for n bytes, as ISO WKB in its own
 * byte order. Sets *n_to to the number of bytes, and *srid to the SRID of the
 * geometry, or 0 if there is none. Errors are those of oj_wkb_add(). O(n). */
OJ_MUST_USE oj_status oj_wkb_copy_as_iso(const uint8_t *wkb, size_t n,
                                         uint8_t *to, size_t *n_to,
                                         int64_t *srid, struct oj_error *err);

/** A walk over geometries in valid, little-endian ISO WKB of any type, as OGR
 *  and oj_wkb_write() write it. */
struct oj_wkb_walk
{
    const uint8_t *at;    /**< the next geometry */
    int64_t n_vertices;   /**< vertices so far; empty points have none */
    int64_t n_geometries; /**< geometries so far, including members */
    int has_curves;       /**< 1: there was a curve, a surface or a triangle */

    /** NULL, or the caller's [6]: minimum and maximum of x, of y and of z so
     *  far; those of z stay unchanged for 2-D geometries. `doubt` is NaN if a
     *  coordinate was not finite. */
    double *box;
    double doubt;
};

/** Moves `at` behind the geometry that begins there, and updates the counts and
 *  the box. Without a box O(1) per line or ring. */
void oj_wkb_walk_geometry(struct oj_wkb_walk *walk);

/** Returns the number of bytes of a feature as ISO WKB; 0: it has no parts. One
 *  part is written as a point, line string or polygon, with multi != 0 as a
 *  multi type of one member; several parts as a multi type if they are of one
 *  kind, else as a collection. */
int64_t oj_wkb_size(const struct oj_flat *flat, int64_t feature, int multi);

/** Writes the oj_wkb_size() bytes of the feature, little-endian. */
void oj_wkb_write(const struct oj_flat *flat, int64_t feature, int multi,
                  uint8_t *to);

#define OJ_WKB_POINT_BYTES 21

/** Returns the address of the x coordinate if wkb is a little-endian 2-D point
 *  of the right length n; else NULL. */
static inline const uint8_t *oj_wkb_plain_point(const uint8_t *wkb, size_t n)
{
    static const uint8_t head[5] = {1, 1};
    return n == OJ_WKB_POINT_BYTES && memcmp(wkb, head, sizeof head) == 0
               ? wkb + 5
               : NULL;
}

/** Reads a little-endian double. */
static inline double oj_wkb_double(const uint8_t *bytes)
{
    union
    {
        uint64_t bits;
        double value;
    } u;
    u.bits = (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 |
             (uint64_t)bytes[2] << 16 | (uint64_t)bytes[3] << 24 |
             (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
             (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
    return u.value;
}

/** Like oj_wkb_plain_point(), but NULL for an empty point. */
static inline const uint8_t *oj_wkb_iso_point(const uint8_t *wkb, size_t n)
{
    const uint8_t *point = oj_wkb_plain_point(wkb, n);
    return point != NULL && !isnan(oj_wkb_double(point)) &&
                   !isnan(oj_wkb_double(point + 8))
               ? point
               : NULL;
}

#endif
