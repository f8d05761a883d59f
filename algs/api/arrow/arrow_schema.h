/** Finds the geometry column in an Arrow schema and reads its layout. Source:
 * the GeoArrow extension types, https://geoarrow.org/extension-types. */
#ifndef ARROW_SCHEMA_H
#define ARROW_SCHEMA_H

#include "../../../flatten/arrays/oj_flat.h"
#include "arrow_abi.h"

enum arrow_storage
{
    ARROW_WKB,
    ARROW_COORDINATES, /**< coordinates, in lists that depend on the kind */
    ARROW_NOTHING      /**< no column: no row has a geometry */
};

enum
{
    ARROW_MOST_LISTS = 3 /**< for multipolygons: of polygons, of rings, of
                              vertices */
};

struct arrow_layout
{
    int64_t child; /**< index in the struct; -1: the array itself */
    enum arrow_storage storage;
    char format[4]; /**< for WKB: the Arrow format, z, Z or vz */

    /* For ARROW_COORDINATES. */
    enum oj_part_kind kind;         /**< kind of the parts */
    int is_multi;                   /**< 1: the outermost list holds parts */
    int n_lists;                    /**< lists around the coordinates */
    int is_large[ARROW_MOST_LISTS]; /**< 1: offsets have 8 bytes */
    int is_interleaved;
    int n_ordinates; /**< ordinates of an interleaved coordinate */
};

/** Finds the column (NULL: the first one marked as geoarrow, or else the only
 * one of bytes) and reads its layout.  is_optional: only a marked column is
 * used; without one the layout is ARROW_NOTHING. Errors: OJ_ERR_ARG if there
 * is no such column or several could be meant; OJ_ERR_UNSUPPORTED for its
 * format; OJ_ERR_DATA for an invalid schema. O(columns). */
OJ_MUST_USE oj_status arrow_layout_read(const struct ArrowSchema *schema,
                                        const char *column, int is_optional,
                                        struct arrow_layout *out,
                                        struct oj_error *err);

#endif
