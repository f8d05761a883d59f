/** The lanes: ways of reading and writing rows without GDAL's features. One
 *  table for readers, writers and reports.
 *
 *    lane        driver      reads if                   writes
 *    FlatGeobuf  FlatGeobuf  the layer is the whole     a new file of the rows,
 *                            file                       in place of the
 *                                                       driver's file
 *    GeoPackage  GPKG        the layer is a whole       into the dataset of the
 *                            table, no open options     driver
 *    Arrow       any         the driver's Arrow stream  never
 *                            is correct
 *
 *  A lane may leave a layer, or its remaining rows, to GDAL.  If the
 *  configuration option OGRJOIN_LANES is NO, the lanes of formats are not
 *  used.
 */
#ifndef OJ_LANE_TABLE_H
#define OJ_LANE_TABLE_H

#include "../arrays/oj_chunk.h"

#include <gdal.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The lanes, in the order in which a reader tries them. */
enum oj_lane_id
{
    OJ_LANE_FLATGEOBUF,
    OJ_LANE_GEOPACKAGE,
    OJ_LANE_ARROW,
    OJ_N_LANES
};

/** All lanes, one bit per enum oj_lane_id. */
#define OJ_LANES_ALL ((1u << OJ_N_LANES) - 1u)

/** Properties of a dataset, one bit each. */
enum oj_lane_fact
{
    /** read: all rows of a layer, or those in a box; no SELECT and no attribute
     *  filter */
    OJ_LANE_WHOLE_LAYER = 1,
    OJ_LANE_SOLE_LAYER = 2, /**< the dataset has one layer */
    OJ_LANE_PLAIN_OPEN = 4, /**< read: opened without open options */
    /** read: the driver's Arrow stream is correct for this layer */
    OJ_LANE_SOUND_STREAM = 8,
    OJ_LANE_NEW_FILE = 16 /**< written: the file does not exist yet */
};

/** The destination into which a lane writes. */
enum oj_lane_target
{
    OJ_LANE_WRITES_NOTHING,
    OJ_LANE_WRITES_FILE,   /**< a separate file */
    OJ_LANE_WRITES_DATASET /**< a layer of GDAL's dataset */
};

/** A row of the table. */
struct oj_lane_row
{
    const char *name;   /**< name in reports */
    const char *driver; /**< driver of the format; NULL: any */

    const struct oj_lane *reads; /**< the reader; NULL: not in this build */
    unsigned reads_if;           /**< facts that must all hold for reading */

    enum oj_lane_target writes;
    unsigned writes_if; /**< facts that must all hold for writing */
    /** required extension of a file to write; NULL: any */
    const char *extension;
};

/** Describes a dataset that is read, or will be written at path. */
struct oj_lane_dataset
{
    GDALDriverH driver; /**< NULL: none */
    const char *path;   /**< written: name of the file */
    unsigned facts;
};

/** Row of the table; 0 <= id < OJ_N_LANES. */
const struct oj_lane_row *oj_lane_at(int id);

/** The facts on which the lanes of this driver's format depend; others, which
 *  can be expensive to determine, need not be set. */
unsigned oj_lane_facts_that_matter(GDALDriverH driver);

/** The lanes that may read the layer, one bit per enum oj_lane_id. */
unsigned oj_lanes_that_read(const struct oj_lane_dataset *dataset);

/** The lane that writes the rows, or NULL. */
const struct oj_lane_row *
oj_lane_that_writes(const struct oj_lane_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
