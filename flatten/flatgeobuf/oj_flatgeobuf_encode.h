/** Features of FlatGeobuf, made from properties and well-known binary.
 *
 *   u32 size | u32 root | table Feature | table Geometry, its vectors and parts
 *   | properties
 *
 *  Vectors of doubles begin at multiples of 8 bytes, counted from the size, as
 *  other readers expect.
 */
#ifndef OJ_FLATGEOBUF_ENCODE_H
#define OJ_FLATGEOBUF_ENCODE_H

#include "../base/oj_status.h"

#include <stdint.h>

/** Bytes that grow. Zeroed memory is a valid empty one. */
struct oj_fgb_bytes
{
    uint8_t *at; /**< owned */
    int64_t n, cap;
};

/** What features have in common. */
struct oj_fgb_layout
{
    int is_typed; /**< 1: all geometries are of the header's type */
    int has_z, has_m;
};

/** A feature on its way. */
struct oj_fgb_feature
{
    struct oj_fgb_layout layout;
    struct oj_fgb_bytes properties, bytes;
    double box[4];  /**< least x, least y, greatest x, greatest y */
    int has_curves; /**< 1: box is that of the vertices, not of the arcs */
    int has_vertices;
};

/** Adds the value of a column: n bytes, little-endian, as they are. */
OJ_MUST_USE oj_status oj_fgb_add_number(struct oj_fgb_feature *feature,
                                        int column, const void *value, int n,
                                        struct oj_error *err);

/** Adds a text or a binary. */
OJ_MUST_USE oj_status oj_fgb_add_bytes(struct oj_fgb_feature *feature,
                                       int column, const void *bytes, int64_t n,
                                       struct oj_error *err);

/** Makes feature->bytes of the properties, which are none afterwards, and a
 *  geometry: ISO WKB, little-endian, or NULL for none. Empty members are left
 *  out; where nothing is left, has_vertices is 0 and the geometry is none. */
OJ_MUST_USE oj_status oj_fgb_encode(struct oj_fgb_feature *feature,
                                    const uint8_t *wkb, struct oj_error *err);

/** The type that WKB begins with, as ISO has it. */
int oj_fgb_wkb_type(const uint8_t *wkb);

void oj_fgb_feature_free(struct oj_fgb_feature *feature);

#endif
