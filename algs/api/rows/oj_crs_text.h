/** Reads, from the text of a coordinate reference system (CRS), the properties
 *  that a join needs.
 *
 *   PROJJSON     {"type": "ProjectedCRS", ..., "id": {"authority": ...}}
 *   WKT2         PROJCRS["...", ..., ID["EPSG", 2263]]       2015 and 2019
 *   WKT1         PROJCS["...", ..., AUTHORITY["EPSG","2263"]] GDAL's and ESRI's
 *   a code       EPSG:2263, urn:ogc:def:crs:EPSG::2263,
 *                http://www.opengis.net/def/crs/EPSG/0/2263
 *
 *  There is no database of codes: properties come from the text alone.  Codes
 *  without a text are supported for EPSG:4326, EPSG:4979, EPSG:3857, OGC:CRS84,
 *  CRS84h, CRS83 and CRS27, and CRS:84.  For other codes and names, struct
 *  oj_crs_callbacks may supply a text.
 *
 *  Of a compound CRS the horizontal part is read, of a bound CRS its source.  x
 *  is longitude or easting, whatever the order of axes in the text, as in
 *  GeoParquet and GDAL.
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
    OJ_CRS_KIND_UNKNOWN,    /**< a code without a text, or a text that does not
                                 state the kind */
    OJ_CRS_KIND_GEOGRAPHIC, /**< longitude and latitude */
    OJ_CRS_KIND_PROJECTED,
    OJ_CRS_KIND_GEOCENTRIC, /**< X, Y, Z in space: not usable as a plane */
    OJ_CRS_KIND_LOCAL       /**< engineering CRS: a plane of which the location
                                 on the Earth is not known */
};

/** Properties of a CRS. Plain values. */
struct oj_crs_text
{
    enum oj_crs_kind kind;
    int is_wgs84; /**< 1: WGS 84 in degrees from Greenwich, with or without
                     heights; 0 for realizations with their own name, such as
                     WGS 84 (G1762) */
    double unit;  /**< unit of the horizontal axes, in metres, or in
                       radians for a geographic CRS; NaN: not stated */
    char unit_name[64]; /**< for example "US survey foot", "degree"; "": not
                           stated */
    double semi_major;  /**< semi-major axis of the ellipsoid, in metres; 0: not
                           stated, or the CRS is not geographic */
    double inverse_flattening; /**< 0: a sphere */
    double epoch;       /**< of the coordinates, as a year; 0: none is stated */
    char identity[128]; /**< for example "EPSG:2263", with the authority in
                           upper case; "": none */
    char name[256];     /**< name for messages: identity, otherwise name of
                             the CRS, otherwise "unnamed"; "none" if there is
                             no CRS; with " at epoch 2025.5" if coordinate
                             metadata state an epoch */
};

/** Callbacks for what the text of a CRS does not state: the definition of a
 * code or name, and whether two texts are one CRS. Each may be NULL. They are
 * called on the thread that calls oj_crs_text_read() or oj_crs_text_compare().
 */
struct oj_crs_callbacks
{
    /** Writes the PROJJSON or WKT of crs, a code or name, to text [size],
     * zero-terminated. Returns its length without the zero, like snprintf(): if
     * that is size or more, the function is called again with more room; 0 or
     * less: crs is unknown. expand NULL: everything is unknown. */
    int (*expand)(void *user, const char *crs, char *text, size_t size);

    /** Returns 1 if the texts a and b are one CRS, ignoring the order of axes,
     * 0 if not, < 0 if not known. compare NULL: never known. */
    int (*compare)(void *user, const char *a, const char *b);

    void *user;
};

enum oj_crs_equality
{
    OJ_CRS_DIFFERENT = 0,
    OJ_CRS_EQUAL,
    OJ_CRS_NOT_KNOWN
};

/** Reads text, zero-terminated; NULL for no CRS. A JSON string such as
 * "\"EPSG:4326\"" is replaced by its content. whose: origin of the text for
 * messages, as "left_crs" or "the CRS of the left side". callbacks may be
 * NULL. Fails with OJ_ERR_DATA if the text is invalid. Safe for any text;
 * nesting is limited. O(length). */
OJ_MUST_USE oj_status oj_crs_text_read(const char *text, const char *whose,
                                       const struct oj_crs_callbacks *callbacks,
                                       struct oj_crs_text *out,
                                       struct oj_error *err);

/** Returns 1 if both state an epoch of the coordinates, and the epochs differ.
 */
int oj_crs_text_has_other_epoch(const struct oj_crs_text *a,
                                const struct oj_crs_text *b);

/** Compares the CRS of two texts that oj_crs_text_read() accepts, ignoring the
 *  order of axes and heights.
 *
 *  They are equal if both are WGS 84 in any spelling, or if texts or
 *  identities are equal. Otherwise the definitions decide, if both texts have
 *  them: datum, ellipsoid, prime meridian, units, method and its parameters
 *  (names, identities, remarks and areas of use are ignored). If they cannot
 *  decide, for example because a WKT 1 method or an ESRI name has no known
 *  equivalent, callbacks->compare does. If it has no answer either, two codes
 *  of one authority count as different, all other texts as OJ_CRS_NOT_KNOWN.
 *  callbacks may be NULL. */
OJ_MUST_USE oj_status oj_crs_text_compare(
    const char *a, const char *b, const struct oj_crs_callbacks *callbacks,
    enum oj_crs_equality *out, struct oj_error *err);

/** Extracts "crs" from the metadata of a GeoArrow column
 * (ARROW:extension:metadata, a JSON object; NULL or "": none). *crs is a text
 * for oj_crs_text_read(), or NULL; the caller frees it with oj_free(). Fails
 * with OJ_ERR_DATA if the metadata are not JSON. */
OJ_MUST_USE oj_status oj_crs_text_of_metadata(const char *metadata, char **crs,
                                              struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
