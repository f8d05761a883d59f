/** Well-known binary that need not be read to be written. */
#ifndef OJ_WKB_ISO_H
#define OJ_WKB_ISO_H

#include <stddef.h>
#include <stdint.h>

/** 1 when OGR would write these bytes again after it has read them: ISO types,
 *  little-endian throughout, members of one dimension, no curve or surface,
 *  nothing empty, and nothing but the geometry. The bytes are not trusted. */
int oj_wkb_is_iso(const uint8_t *wkb, size_t n);

#endif
