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

/** Facts about a dataset on which the use of a lane depends; one bit each. */
enum oj_lane_fact
{
    /** for reading: all rows of a layer, or those in a box, are wanted; no
     *  SELECT, no attribute filter */
    OJ_LANE_WHOLE_LAYER = 1,
    OJ_LANE_SOLE_LAYER = 2, /**< the dataset has one layer */
    OJ_LANE_PLAIN_OPEN = 4, /**< for reading: the dataset was opened without
                                 open options */
    /** for reading: the driver's Arrow stream is correct for this layer */
    OJ_LANE_SOUND_STREAM = 8,
    OJ_LANE_NEW_FILE = 16 /**< for writing: the file does not exist yet */
};

/** Where a lane writes. */
enum oj_lane_target
{
    OJ_LANE_WRITES_NOTHING,
    OJ_LANE_WRITES_FILE,   /**< into a file of its own */
    OJ_LANE_WRITES_DATASET /**< into a layer of GDAL's dataset */
};

/** A row of the table of lanes. */
struct oj_lane_row
{
    const char *name;   /**< name of the lane in reports */
    const char *driver; /**< driver of the format; NULL: any */

    const struct oj_lane *reads; /**< the lane's reader; NULL: not in this
                                      build */
    unsigned reads_if;           /**< facts that must all hold for reading */

    enum oj_lane_target writes;
    unsigned writes_if; /**< facts that must all hold for writing */
    /** extension that a file must have to be written; NULL: any */
    const char *extension;
};

/** A dataset that is to be read, or to be written at path. */
struct oj_lane_dataset
{
    GDALDriverH driver; /**< driver of the dataset, or NULL */
    const char *path;   /**< path of the file to write */
    unsigned facts;
};

/** Returns a row of the table; 0 <= id < OJ_N_LANES. */
const struct oj_lane_row *oj_lane_at(int id);

/** Returns the facts on which the lanes of this driver's format depend. Callers
 *  need not determine other facts, which can be expensive. */
unsigned oj_lane_facts_of_driver(GDALDriverH driver);

/** Returns the lanes that may read the layer, one bit per enum oj_lane_id. */
unsigned oj_lanes_that_read(const struct oj_lane_dataset *dataset);

/** Returns the lane that may write the rows, or NULL. */
const struct oj_lane_row *
oj_lane_that_writes(const struct oj_lane_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
