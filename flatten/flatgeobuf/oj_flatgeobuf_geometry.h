/** A geometry of FlatGeobuf -> ISO well-known binary. */
#ifndef OJ_FLATGEOBUF_GEOMETRY_H
#define OJ_FLATGEOBUF_GEOMETRY_H

#include "oj_flatbuffer.h"
#include "oj_flatgeobuf_format.h"

/** Bytes that the WKB of a geometry in a feature of so many bytes can take. */
static inline int64_t oj_flatgeobuf_wkb_room(int64_t feature_size)
{
    return 8 * feature_size + 64;
}

/** Writes the geometry in table of feature, of a type (OJ_FGB_UNKNOWN: of its
 *  own), with Z and M as the header of the file says, to the room of
 *  oj_flatgeobuf_wkb_room() bytes; returns the number of bytes, 0 where the
 *  feature is broken, or what is odd: curves and surfaces, a geometry of no
 *  vertex, more than the room takes. O(bytes). */
int64_t oj_flatgeobuf_to_wkb(struct oj_flatbuffer *feature,
                             const struct oj_flat_table *table, int type,
                             int has_z, int has_m, uint8_t *to);

#endif
