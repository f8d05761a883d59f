/** Reads the properties of a coordinate reference system (CRS) that a join
 *  needs from its text.
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
    OJ_CRS_KIND_NONE = 0,   /**< no CRS: NULL, "" or null */
    OJ_CRS_KIND_UNKNOWN,    /**< a code alone, or a text that does not state
                                 the kind */
    OJ_CRS_KIND_GEOGRAPHIC, /**< longitude and latitude */
    OJ_CRS_KIND_PROJECTED,
    OJ_CRS_KIND_GEOCENTRIC, /**< X, Y, Z; has no plane */
    OJ_CRS_KIND_LOCAL       /**< engineering: a plane without a known
                                 location */
};

/** Properties that a text states. A plain value. */
struct oj_crs_text
{
    enum oj_crs_kind kind;
    int is_wgs84;       /**< 1: WGS 84 in degrees from Greenwich, of any
                             realization that has no name of its own, with or
                             without heights */
    double unit;        /**< unit of the horizontal axes: metres, or radians if
                             kind is geographic; NaN: not stated */
    char unit_name[64]; /**< for example "US survey foot", "degree"; "": not
                             stated */
    char identity[128]; /**< for example "EPSG:2263", the authority in upper
                             case; "": none */
    char name[256];     /**< name for messages: the identity, else the CRS's
                             name, else "unnamed"; "none" if there is no CRS */
};

/** Callbacks for what texts do not state. Zeroed: none. Called on the thread
 * that calls the function to which they are passed. */
struct oj_crs_callbacks
{
    /** Writes the PROJJSON or WKT of the code crs into text [size],
     * zero-terminated, and returns its length without the zero, like
     * snprintf(); if that is size or more, it is called again with more room.
     * 0 or less: unknown. NULL: all codes are unknown. */
    int (*expand)(void *user, const char *crs, char *text, size_t size);

    /** Returns 1 if the texts a and b are one CRS except for the order of axes,
     * 0 if not, below 0 if unknown. NULL: unknown. */
    int (*compare)(void *user, const char *a, const char *b);

    void *user;
};

enum oj_crs_equality
{
    OJ_CRS_DIFFERENT = 0,
    OJ_CRS_EQUAL,
    OJ_CRS_NOT_KNOWN
};

/** Reads text, a zero-terminated string, or NULL for no CRS.  A JSON string
 * such as "\"EPSG:4326\"" is read as its content.  whose: the origin of the
 * text for errors, as "left_crs" or "the CRS of the left side".  callbacks may
 * be NULL.  OJ_ERR_DATA: invalid, or none of these forms.  Any text is safe;
 * nesting is limited.  Linear in the text. */
OJ_MUST_USE oj_status oj_crs_text_read(const char *text, const char *whose,
                                       const struct oj_crs_callbacks *callbacks,
                                       struct oj_crs_text *out,
                                       struct oj_error *err);

/** Compares two texts that oj_crs_text_read() accepts: are they one CRS, except
 * for the order of axes and heights? They are if both are WGS 84 in any
 * spelling, or have equal text or identity. Otherwise callbacks->compare
 * decides; then datum, ellipsoid, prime meridian, units, method and its
 * parameters, if both texts state them (names of CRS, identities, remarks and
 * areas of use are ignored). Some methods of WKT 1 and names of ESRI have no
 * known equivalent: OJ_CRS_NOT_KNOWN.  callbacks may be NULL. */
OJ_MUST_USE oj_status oj_crs_text_compare(
    const char *a, const char *b, const struct oj_crs_callbacks *callbacks,
    enum oj_crs_equality *out, struct oj_error *err);

/** Extracts "crs" from the metadata of a GeoArrow column
 * (ARROW:extension:metadata, a JSON object; NULL or "": none), as a text for
 * oj_crs_text_read(); NULL: none.  The caller frees *crs with oj_free().
 * OJ_ERR_DATA: the metadata are not JSON. */
OJ_MUST_USE oj_status oj_crs_text_of_metadata(const char *metadata, char **crs,
                                              struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
