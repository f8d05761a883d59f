/** Geometries as GeoPackage holds them, from well-known binary.
 *
 *   "GP" | version 0 | flags | i32 srs_id | envelope | WKB
 *   flags   1: little-endian; 0, 1 or 2 times 2: envelope of nothing, of x and
 *           y, of x, y and z; 16: empty
 *
 *  Points and what is empty have no envelope, as GDAL writes them.
 *
 *  Source: OGC 12-128r18, 2.1.3.
 */
#ifndef OJ_GEOPACKAGE_BLOB_H
#define OJ_GEOPACKAGE_BLOB_H

#include <stdint.h>

enum
{
    OJ_GPKG_KINDS = 8 * 4 * 2,
    OJ_GPKG_MOST_HEAD = 8 + 6 * 8
};

/** What is told of a geometry without OGR. */
struct oj_gpkg_shape
{
    /** Type, dimensions and whether it is empty, as one number; 0: there is no
     *  geometry; -1: one that is left to GDAL: curves and surfaces, coordinates
     *  that are not finite. */
    int kind;
    int type, has_z, is_empty;
    double box[6]; /**< least and greatest x, y and z; unless empty */
};

/** Looks at ISO WKB, little-endian, which is whole (NULL: no geometry). */
void oj_gpkg_look(const uint8_t *wkb, struct oj_gpkg_shape *shape);

/** Writes what stands before the WKB; returns its length. */
int oj_gpkg_head(const struct oj_gpkg_shape *shape, int32_t srs_id,
                 uint8_t head[OJ_GPKG_MOST_HEAD]);

#endif
