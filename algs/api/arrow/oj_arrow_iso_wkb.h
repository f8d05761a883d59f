/** Converts Arrow columns of geometries that are no ISO WKB to such columns,
 *  and finds the SRID of their geometries.
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

/** 1 if the column holds texts, also by a dictionary. */
int oj_arrow_is_text(const struct ArrowSchema *schema);

/** The SRID that all geometries of a column must have. Zeroed: no geometry was
 * read yet. */
struct oj_arrow_srid
{
    int is_ignored; /**< 1: the CRS is stated elsewhere; geometries may have any
                         SRID */
    int is_found;   /**< 1: a geometry was read */
    int64_t number; /**< its SRID; 0: it has none */
    int64_t row;    /**< its row */
};

/** What the messages and the rows of a column need. */
struct oj_arrow_geometry_column
{
    const struct ArrowSchema *schema;
    const char *side;  /**< "left" or "right" */
    int64_t first_row; /**< number of the first row */
};

/** Finds the first geometry of a column, child `child` of a struct, or array
 * itself if child is -1. Sets srid, if it is not found yet, and *is_extended to
 * 1 if that geometry is extended WKB in bytes. The column must be valid by
 * oj_arrow_check_array(). Errors are those of oj_arrow_iso_wkb_make(). */
OJ_MUST_USE oj_status oj_arrow_iso_wkb_begin(
    const struct oj_arrow_geometry_column *of, const struct ArrowArray *array,
    int64_t child, struct oj_arrow_srid *srid, int *is_extended,
    struct oj_error *err);

/** Makes a column of ISO WKB, format z or Z, of such a column. It can take the
 * place of the column in the struct: it has as many rows before those of the
 * struct. NULL and texts of white space alone become NULL. Broken WKB is
 * copied, since its reader refuses it. *is_made: 0 if the column has this
 * format and no extended WKB, or if format is vz: only the SRID are checked
 * then, and out is released, as on failure.
 *
 * OJ_ERR_ARG: a text that is no geometry, or two SRID; OJ_ERR_LIMIT: more than
 * 2 GiB of WKB in format z. O(bytes). */
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
