/** Finds the geometry column in an Arrow schema and reads how geometries are
 * stored. Source: the GeoArrow extension types,
 * https://geoarrow.org/extension-types. */
#ifndef ARROW_SCHEMA_H
#define ARROW_SCHEMA_H

#include "../../../flatten/arrays/oj_flat.h"
#include "arrow_abi.h"

enum arrow_storage
{
    ARROW_WKB,
    ARROW_COORDINATES, /**< coordinates, nested in lists according to the kind
                            of geometry */
    ARROW_NOTHING      /**< there is no geometry column: no row has a
                            geometry */
};

enum
{
    ARROW_MOST_LISTS = 3 /**< maximum nesting, for multipolygons: lists of
                              polygons, rings and vertices */
};

struct arrow_layout
{
    int64_t child; /**< index of the column in the struct; -1: the array itself
                        is the column */
    enum arrow_storage storage;
    char format[4]; /**< for WKB: its Arrow format, z, Z or vz */

    /* The following are for ARROW_COORDINATES. */
    enum oj_part_kind kind;         /**< kind of all parts */
    int is_multi;                   /**< 1: MultiPoint, MultiLineString or
                                         MultiPolygon: the outermost list has a
                                         geometry's parts */
    int n_lists;                    /**< number of nested lists around the
                                         coordinates */
    int is_large[ARROW_MOST_LISTS]; /**< 1: the list has 64-bit offsets; 0:
                                         32-bit */
    int is_interleaved;
    int n_ordinates; /**< ordinates per coordinate, if interleaved */
    int m_ordinate;  /**< index of M among the ordinates; 0: there is no M */
};

/** Finds the geometry column and reads its layout. column: its name, or NULL:
 *  the first column marked as geoarrow, or else the only column of bytes.
 *  is_optional 1: if column is NULL, only a marked column is accepted, and
 *  without one out->storage becomes ARROW_NOTHING. O(columns).
 *
 *  Errors: OJ_ERR_ARG if there is no such column or several are possible;
 *  OJ_ERR_UNSUPPORTED for its format; OJ_ERR_DATA for an invalid schema.
 */
OJ_MUST_USE oj_status arrow_layout_read(const struct ArrowSchema *schema,
                                        const char *column, int is_optional,
                                        struct arrow_layout *out,
                                        struct oj_error *err);

#endif
