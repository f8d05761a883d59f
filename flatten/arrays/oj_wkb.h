/** Well-known binary -> flat layer, and back.
 *
 *  One parser for what OGR, GeoPackage and PostGIS write: ISO types (Z 1000, M
 *  2000, ZM 3000), the extended flags (Z 0x80000000, M 0x40000000, SRID
 *  0x20000000; OGR's old 2.5-D is the first), both byte orders, also mixed.
 *  Only x and y are kept. The bytes are not trusted: every length is checked
 *  before it is used, and nothing is allocated for more coordinates than the
 *  bytes can hold.
 */
#ifndef OJ_WKB_H
#define OJ_WKB_H

#include "oj_flat.h"

#include <math.h>
#include <string.h>

/** Collections inside collections deeper than this are refused. */
#define OJ_WKB_MAX_DEPTH 32

/** Adds one feature: the geometry in wkb[0..n-1], all of it. A multipoint
 * of one point is taken as a point (short form). OJ_ERR_DATA when the bytes
 * are broken, OJ_ERR_UNSUPPORTED for curves, surfaces and triangles (types
 * 8 to 17), which somebody has to turn into lines and polygons first. On
 * failure buf has the features it had. O(n). */
OJ_MUST_USE oj_status oj_wkb_add(struct oj_flat_buf *buf, int64_t fid,
                                 const uint8_t *wkb, size_t n,
                                 struct oj_error *err);

/** The parts of wkb only, between oj_flat_buf_begin() and
 * oj_flat_buf_end(); may be called several times for one feature. On
 * failure the caller drops the feature. */
OJ_MUST_USE oj_status oj_wkb_add_parts(struct oj_flat_buf *buf,
                                       const uint8_t *wkb, size_t n,
                                       struct oj_error *err);

/** 1 when OGR would write these bytes again after it has read them: ISO types,
 *  little-endian throughout, members of one dimension, no curve or surface,
 *  nothing empty, and nothing but the geometry. The bytes are not trusted. */
int oj_wkb_is_iso(const uint8_t *wkb, size_t n);

/** A way through geometries of ISO WKB, little-endian and whole, as OGR and
 *  oj_wkb_write() write them: all types. */
struct oj_wkb_walk
{
    const uint8_t *at;    /**< of the next geometry */
    int64_t n_vertices;   /**< so far; empty points have none */
    int64_t n_geometries; /**< so far, members and what has them */
    int has_curves;       /**< 1: one is a curve, a surface or a triangle */

    /** NULL, or least and greatest x, y and z so far; doubt is then NaN where a
     *  coordinate is not finite. */
    double *box;
    double doubt;
};

/** Goes behind a geometry. O(1) for each run of vertices without a box. */
void oj_wkb_pass(struct oj_wkb_walk *walk);

/** Bytes of a feature as ISO WKB; 0: it has no parts. One part gives a point, a
 *  line string or a polygon, or with multi its multi type; several of one kind
 *  give that, of several kinds a collection. */
int64_t oj_wkb_size(const struct oj_flat *flat, int64_t feature, int multi);

/** Writes these bytes, little-endian. */
void oj_wkb_write(const struct oj_flat *flat, int64_t feature, int multi,
                  uint8_t *to);

#define OJ_WKB_POINT_BYTES 21

/** Where x starts if wkb is one plain point with n bytes of the length its
 * type asks for, little-endian, 2-D; NULL for anything else. */
static inline const uint8_t *oj_wkb_plain_point(const uint8_t *wkb, size_t n)
{
    static const uint8_t head[5] = {1, 1};
    return n == OJ_WKB_POINT_BYTES && memcmp(wkb, head, sizeof head) == 0
               ? wkb + 5
               : NULL;
}

/** The little-endian double at bytes. */
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

/** oj_wkb_plain_point() of one that is not empty. */
static inline const uint8_t *oj_wkb_iso_point(const uint8_t *wkb, size_t n)
{
    const uint8_t *point = oj_wkb_plain_point(wkb, n);
    return point != NULL && !isnan(oj_wkb_double(point)) &&
                   !isnan(oj_wkb_double(point + 8))
               ? point
               : NULL;
}

#endif
