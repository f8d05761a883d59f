/** Geometries of output rows as well-known binary. */
#ifndef OJ_ROW_WKB_H
#define OJ_ROW_WKB_H

#include "../read/oj_layer_geometry.h"
#include "oj_row_cursor.h"

/** Sets *wkb to the geometry of a row as *n bytes of little-endian ISO WKB,
 *  byte for byte as OGR writes it, or to NULL if the row has no geometry. Valid
 *  until the next call with `work`, and at most as long as the answer. */
OJ_MUST_USE oj_status oj_row_wkb_make(struct oj_layer_geometry *work,
                                      const struct oj_row_cursor *cursor,
                                      const struct oj_row_place *place,
                                      const uint8_t **wkb, int64_t *n,
                                      struct oj_error *err);

#endif
