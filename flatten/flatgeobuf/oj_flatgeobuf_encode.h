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
#include <string.h>

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

/** One node of the index, as in the file. Until rows are sorted, that of a row
 *  has the row's size in place of the offset. */
struct oj_fgb_node
{
    double box[4]; /**< least x, least y, greatest x, greatest y */
    uint64_t offset;
};

/** Where features are made, one behind another. Zeroed memory and a layout are
 *  a valid empty one. */
struct oj_fgb_encoder
{
    struct oj_fgb_layout layout;
    struct oj_fgb_bytes properties; /**< of the next feature */
    struct oj_fgb_bytes bytes; /**< features, all of multiples of 8 bytes */
    struct oj_fgb_node latest; /**< of the latest one */
    int has_curves; /**< 1: its box is that of vertices, not of the arcs */
    int has_vertices;

    /** What all features that are a point and properties begin with, up to
     *  these; the last 16 bytes are the point. n_head 0: not known yet. */
    int n_head;
    uint8_t head[96];
};

/** Room for n more bytes. */
OJ_MUST_USE oj_status oj_fgb_room(struct oj_fgb_bytes *to, int64_t n,
                                  struct oj_error *err);

/** Adds the value of a column: n <= 8 bytes, little-endian, as they are. */
OJ_MUST_USE static inline oj_status
oj_fgb_add_number(struct oj_fgb_encoder *encoder, int column, const void *value,
                  int n, struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->properties;
    if (to->cap - to->n < 10)
        OJ_TRY(oj_fgb_room(to, 10, err));
    to->at[to->n] = (uint8_t)column;
    to->at[to->n + 1] = (uint8_t)(column >> 8);
    memcpy(to->at + to->n + 2, value, (size_t)n);
    to->n += 2 + n;
    return OJ_OK;
}

/** Adds a text or a binary. */
OJ_MUST_USE oj_status oj_fgb_add_bytes(struct oj_fgb_encoder *encoder,
                                       int column, const void *bytes, int64_t n,
                                       struct oj_error *err);

/** Adds to encoder->bytes a feature of the properties, which are none
 *  afterwards, and a geometry: ISO WKB, little-endian, or NULL for none. Empty
 *  members are left out; where nothing is left, has_vertices is 0 and the
 *  geometry is none. */
OJ_MUST_USE oj_status oj_fgb_encode(struct oj_fgb_encoder *encoder,
                                    const uint8_t *wkb, struct oj_error *err);

/** The type that WKB begins with, as ISO has it. */
int oj_fgb_wkb_type(const uint8_t *wkb);

void oj_fgb_encoder_free(struct oj_fgb_encoder *encoder);

#endif
