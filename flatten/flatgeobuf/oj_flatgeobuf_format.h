/** Constants of the format: indices of the fields of its tables, and types of
 *  geometry, which equal those of WKB.
 *
 *  Source: specification of FlatGeobuf, version 3: header.fbs, feature.fbs.
 */
#ifndef OJ_FLATGEOBUF_FORMAT_H
#define OJ_FLATGEOBUF_FORMAT_H

/** Fields of the table Header. */
enum
{
    OJ_FGB_HEADER_ENVELOPE = 1,
    OJ_FGB_HEADER_GEOMETRY_TYPE = 2,
    OJ_FGB_HEADER_HAS_Z = 3,
    OJ_FGB_HEADER_HAS_M = 4,
    OJ_FGB_HEADER_COLUMNS = 7,
    OJ_FGB_HEADER_FEATURES_COUNT = 8,
    OJ_FGB_HEADER_INDEX_NODE_SIZE = 9
};

/** Fields of the table Column. */
enum
{
    OJ_FGB_COLUMN_NAME = 0,
    OJ_FGB_COLUMN_TYPE = 1
};

/** Fields of the table Feature. */
enum
{
    OJ_FGB_FEATURE_GEOMETRY = 0,
    OJ_FGB_FEATURE_PROPERTIES = 1,
    OJ_FGB_FEATURE_COLUMNS = 2
};

/** Fields of the table Geometry, and their number. */
enum
{
    OJ_FGB_ENDS = 0, /**< end of each ring or line, as a count of vertices */
    OJ_FGB_XY = 1,
    OJ_FGB_Z = 2,
    OJ_FGB_M = 3,
    OJ_FGB_T = 4,
    OJ_FGB_TM = 5,
    OJ_FGB_TYPE = 6,
    OJ_FGB_PARTS = 7, /**< geometries of multipolygons and collections */
    OJ_FGB_GEOMETRY_FIELDS
};

/** Types of geometry. */
enum
{
    OJ_FGB_UNKNOWN = 0,
    OJ_FGB_POINT = 1,
    OJ_FGB_LINE = 2,
    OJ_FGB_POLYGON = 3,
    OJ_FGB_MULTIPOINT = 4,
    OJ_FGB_MULTILINE = 5,
    OJ_FGB_MULTIPOLYGON = 6,
    OJ_FGB_COLLECTION = 7,
    OJ_FGB_CIRCULAR = 8,
    OJ_FGB_TIN = 16,
    OJ_FGB_TRIANGLE = 17
};

#endif
