/** A coordinate reference system given as text, as far as a join depends on it.
 *
 *   PROJJSON     {"type": "ProjectedCRS", ..., "id": {"authority": ...}}
 *   WKT2         PROJCRS["...", ..., ID["EPSG", 2263]]       2015 and 2019
 *   WKT1         PROJCS["...", ..., AUTHORITY["EPSG","2263"]] GDAL's and ESRI's
 *   a code       EPSG:2263, urn:ogc:def:crs:EPSG::2263,
 *                http://www.opengis.net/def/crs/EPSG/0/2263
 *
 *  Only what the text states is known: there is no database of codes.  Of a
 *  code alone nothing but its name is known, except for EPSG:4326, EPSG:4979,
 *  EPSG:3857, OGC:CRS84, CRS84h, CRS83 and CRS27.  For others, and for names of
 *  other kinds, struct oj_crs_callbacks may give a text.
 *
 *  Of a compound CRS the horizontal part counts, of a bound one its source, of
 *  a derived one itself.  x is longitude or easting whatever the order of axes
 *  in the text, as in GeoParquet and GDAL.
 *
 *  Sources: OGC 18-010r11 (WKT2:2019), ISO 19162:2015, OGC 01-009 (WKT1), the
 *  schema of PROJJSON 0.7 (proj.org).
 */
#ifndef OJ_CRS_TEXT_H
#define OJ_CRS_TEXT_H

#include "../../../flatten/base/oj_status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum oj_crs_kind
{
    OJ_CRS_KIND_NONE = 0, /**< there is no CRS: NULL, "" or null */
    OJ_CRS_KIND_UNKNOWN,  /**< a code alone, or a text that does not state it */
    OJ_CRS_KIND_GEOGRAPHIC, /**< longitude and latitude */
    OJ_CRS_KIND_PROJECTED,
    OJ_CRS_KIND_GEOCENTRIC, /**< X, Y, Z: no plane */
    OJ_CRS_KIND_LOCAL       /**< engineering: a plane of unknown place */
};

/** What a text states. A plain value. */
struct oj_crs_text
{
    enum oj_crs_kind kind;
    int is_wgs84; /**< WGS 84 in degrees from Greenwich, of any realization
                       that does not name itself, with heights or not */
    double unit;  /**< of the horizontal axes: metres, or radians where
                       kind is geographic; NaN: not stated */
    char unit_name[64]; /**< "US survey foot", "degree"; "": not stated */
    char identity[128]; /**< "EPSG:2263", authority in upper case; "": none */
    char name[256]; /**< for messages: the identity, else the CRS's name, else
                         "unnamed"; "none" where there is no CRS */
};

/** Functions that add to what texts state. Zeroed: none. Called on the thread
 *  of the function that is given it. */
struct oj_crs_callbacks
{
    /** Writes PROJJSON or WKT of crs, a code, into text [size], with an end,
     * and returns its length without the end; of a longer text as much as has
     * room (like snprintf(); it is called again with room).  0 or less: not
     * known. NULL: no code is. */
    int (*expand)(void *user, const char *crs, char *text, size_t size);

    /** 1: a and b, texts, are one CRS but for the order of axes; 0: they are
     *  not; below 0: not known. NULL: not known. */
    int (*compare)(void *user, const char *a, const char *b);

    void *user;
};

enum oj_crs_equality
{
    OJ_CRS_DIFFERENT = 0,
    OJ_CRS_EQUAL,
    OJ_CRS_NOT_KNOWN
};

/** Reads text, a zero-terminated string or NULL: no CRS.  A JSON string, as
 *  "\"EPSG:4326\"", counts as its content.  whose: of errors, as "left_crs" or
 *  "the CRS of the left side".  callbacks may be NULL.  OJ_ERR_DATA: broken or
 *  none of these.  Any text is safe; nesting is bounded.  Linear in the text.
 */
OJ_MUST_USE oj_status oj_crs_text_read(const char *text, const char *whose,
                                       const struct oj_crs_callbacks *callbacks,
                                       struct oj_crs_text *out,
                                       struct oj_error *err);

/** Whether two texts that oj_crs_text_read() has read are one CRS but for the
 *  order of axes and heights: WGS 84 in all its spellings is one; else equal
 *  text or identity; then callbacks->compare; then the datum, the ellipsoid,
 *  the prime meridian, the units, the method and its parameters, where both
 *  texts state them (names of CRS, identities, remarks and areas of use aside).
 *  Some methods of WKT 1, and ESRI's names, have no equals elsewhere that are
 *  known here: OJ_CRS_NOT_KNOWN.  callbacks may be NULL. */
OJ_MUST_USE oj_status oj_crs_text_compare(
    const char *a, const char *b, const struct oj_crs_callbacks *callbacks,
    enum oj_crs_equality *out, struct oj_error *err);

/** The CRS that metadata of a GeoArrow column (ARROW:extension:metadata, a JSON
 *  object; NULL or "": none) has as "crs", as a text for oj_crs_text_read();
 *  NULL: none.  *crs is the caller's, freed by oj_free(). OJ_ERR_DATA: the
 *  metadata are no JSON. */
OJ_MUST_USE oj_status oj_crs_text_of_metadata(const char *metadata, char **crs,
                                              struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
