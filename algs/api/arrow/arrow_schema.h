/** What an Arrow schema says of a column of geometries.
 *  Source: the GeoArrow extension types, https://geoarrow.org/extension-types.
 */
#ifndef ARROW_SCHEMA_H
#define ARROW_SCHEMA_H

#include "../../../flatten/arrays/oj_flat.h"
#include "arrow_abi.h"

enum arrow_storage
{
    ARROW_WKB,
    ARROW_COORDINATES, /**< lists of coordinates, as the kind has them */
    ARROW_NOTHING      /**< there is no column: no row has a geometry */
};

enum
{
    ARROW_MOST_LISTS = 3 /**< of a multipolygon: polygons, rings, vertices */
};

struct arrow_layout
{
    int64_t child; /**< column of the struct, or -1: the array itself */
    enum arrow_storage storage;
    char format[4]; /**< of WKB: that of Arrow, z Z or vz */

    /* ARROW_COORDINATES */
    enum oj_part_kind kind;         /**< of the parts */
    int is_multi;                   /**< 1: the outermost list is of parts */
    int n_lists;                    /**< around the coordinates */
    int is_large[ARROW_MOST_LISTS]; /**< offsets of 8 bytes */
    int is_interleaved;
    int n_ordinates; /**< of an interleaved coordinate */
};

/** Finds the column, NULL: the first marked as geoarrow or else the only one of
 *  bytes, and reads its layout.  is_optional: only what is marked is meant, and
 *  the layout is ARROW_NOTHING without it.  Errors OJ_ERR_ARG (no such column,
 *  or none is clearly meant), OJ_ERR_UNSUPPORTED (its format), OJ_ERR_DATA (the
 *  schema is broken). O(columns). */
OJ_MUST_USE oj_status arrow_layout_read(const struct ArrowSchema *schema,
                                        const char *column, int is_optional,
                                        struct arrow_layout *out,
                                        struct oj_error *err);

#endif
