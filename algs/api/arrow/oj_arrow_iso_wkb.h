/** Converts Arrow columns of geometries as text or extended WKB to columns of
 *  ISO WKB, and finds the SRID of the geometries.
 *
 *   column                                     becomes
 *   u, U, vu, or a dictionary of one of them   z     oj_geometry_text.h
 *   z, Z with extended WKB (PostGIS)           z, Z
 *   vz of extended WKB                         Z
 *
 *  Columns of bytes without extended WKB stay as they are. */
#ifndef OJ_ARROW_ISO_WKB_H
#define OJ_ARROW_ISO_WKB_H

#include "../../../flatten/base/oj_status.h"
#include "arrow_abi.h"

/** Returns 1 if the column holds texts, plain or encoded by a dictionary. */
int oj_arrow_is_text(const struct ArrowSchema *schema);

/** The SRID that all geometries of a column must have. Zeroed: no geometry was
 * read yet. */
struct oj_arrow_srid
{
    int is_ignored; /**< 1: the CRS is stated elsewhere; geometries may have any
                         SRID */
    int is_found;   /**< 1: a geometry was read */
    int64_t number; /**< SRID of the first geometry; 0: none */
    int64_t row;    /**< row of the first geometry */
};

/** A column of geometries, and the names that error messages use. */
struct oj_arrow_geometry_column
{
    const struct ArrowSchema *schema;
    const char *side;  /**< "left" or "right" */
    int64_t first_row; /**< number, in messages and in oj_arrow_srid.row, of row
                            0 of an array */
};

/** Finds the first geometry of a column, which is child `child` of a struct, or
 * array itself if child is -1. Sets srid to the SRID of this geometry if
 * srid->is_found is 0, and *is_extended to 1 if the geometry is extended WKB in
 * bytes. Precondition: oj_arrow_check_array() accepts the array. Errors are
 * those of oj_arrow_iso_wkb_make(). */
OJ_MUST_USE oj_status oj_arrow_iso_wkb_detect_srid(
    const struct oj_arrow_geometry_column *of, const struct ArrowArray *array,
    int64_t child, struct oj_arrow_srid *srid, int *is_extended,
    struct oj_error *err);

/** Makes a column of ISO WKB, in format z or Z, of the column `child` as in
 * oj_arrow_iso_wkb_detect_srid(). *out can replace that column in the struct,
 * because it also has (NULL) elements for the offset of the struct. NULL and
 * texts of white space alone become NULL. Broken WKB is copied; the reader of
 * the new column reports it.
 *
 * *is_made becomes 0, and out is released, if the column stays as it is: it has
 * the wanted format without extended WKB, or format is vz. Only the SRIDs of
 * the column are checked then. On failure, out is released, too.
 *
 * Errors: OJ_ERR_ARG: a text that is no geometry, or geometries with different
 * SRIDs; OJ_ERR_LIMIT: more than 2 GiB of WKB in format z. O(bytes). */
OJ_MUST_USE oj_status oj_arrow_iso_wkb_make(
    const struct oj_arrow_geometry_column *of, const struct ArrowArray *array,
    int64_t child, const char *format, struct oj_arrow_srid *srid, int *is_made,
    struct ArrowArray *out, struct oj_error *err);

/** Makes the schema of a column geoarrow.wkb of a format; crs: a text for
 * oj_crs_text_read(), or NULL. On failure out must be released, too. */
OJ_MUST_USE oj_status oj_arrow_wkb_schema(const char *format, const char *name,
                                          const char *crs,
                                          struct ArrowSchema *out,
                                          struct oj_error *err);

#endif
