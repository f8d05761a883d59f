/** Reads a geometry that is written as text, and makes well-known binary of it.
 *
 *    text      [SRID=number;] geometry, or WKB in hexadecimal digits, with 0x
 *              or \x before them or without
 *    geometry  kind [Z | M | ZM] (EMPTY | list)
 *    kind      POINT, LINESTRING, LINEARRING, POLYGON, MULTIPOINT,
 *              MULTILINESTRING, MULTIPOLYGON, GEOMETRYCOLLECTION
 *
 *  This is the grammar of ISO 19125 and of PostGIS (EWKT). Letters may be large
 *  or small, Z and M may follow the kind without a space, and the points of a
 *  multipoint need no brackets. Without Z or M the first vertex decides: of
 *  three numbers the third is Z, of four the fourth is M. All vertices of a
 *  geometry have equally many numbers. Numbers are decimal, or nan and inf, and
 *  rounded correctly. Rings need not be closed, nor lines have two points: that
 *  is left to the reader of WKB. The text is untrusted. Source: ours. */
#ifndef OJ_GEOMETRY_TEXT_H
#define OJ_GEOMETRY_TEXT_H

#include "../base/oj_status.h"

#include <stddef.h>
#include <stdint.h>

/** Maximum depth of collections in collections; deeper ones are refused. */
#define OJ_GEOMETRY_TEXT_MAX_DEPTH 32

/** Well-known binary of geometries, one after the other. Owner; zeroed memory
 * is a valid empty value. */
struct oj_geometry_bytes
{
    uint8_t *byte;
    int64_t n, cap;
};

/** Appends the geometry in text[0 .. n - 1] as little-endian ISO WKB; digits
 * are appended as the bytes that they stand for. A text of white space alone
 * appends nothing. *srid: the number of SRID=; 0 if there is no SRID= or the
 * number is not above 0, which PostGIS reads as no CRS. Fails, and leaves out
 * unchanged, with OJ_ERR_DATA if the text is no geometry (the message names the
 * character) and with OJ_ERR_UNSUPPORTED for curves, surfaces and triangles.
 * O(n). */
OJ_MUST_USE oj_status oj_geometry_text_read(const char *text, int64_t n,
                                            struct oj_geometry_bytes *out,
                                            int64_t *srid,
                                            struct oj_error *err);

/** Writes the first bytes of a text to out [size], zero-terminated, for a
 * message: whole code points of UTF-8, a space in place of each control
 * character, ? in place of other bytes. */
void oj_geometry_text_excerpt(const char *text, int64_t n, char *out,
                              size_t size);

void oj_geometry_bytes_free(struct oj_geometry_bytes *bytes);

#endif
