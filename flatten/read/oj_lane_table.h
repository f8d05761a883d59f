/** The lanes, ways of rows past GDAL's features: one table for those who read,
 *  those who write, and those who show which lane was taken.
 *
 *   lane        driver      is read when               is written
 *   FlatGeobuf  FlatGeobuf  it is the whole file       to a new file of the
 *                                                      rows, which replaces
 *                                                      the driver's
 *   GeoPackage  GPKG        it is a whole table, with  to the dataset of the
 *                           no open options            driver
 *   Arrow       any         the driver's own stream    never
 *                           of columns is right
 *
 *  A lane may still leave a layer, or the rows from one on, to GDAL.  Where the
 *  configuration option OGRJOIN_LANES is NO, the lanes of a format are not
 *  taken.
 */
#ifndef OJ_LANE_TABLE_H
#define OJ_LANE_TABLE_H

#include "../arrays/oj_chunk.h"

#include <gdal.h>

#ifdef __cplusplus
extern "C" {
#endif

/** In the order in which a reader tries them. */
enum oj_lane_id
{
    OJ_LANE_FLATGEOBUF,
    OJ_LANE_GEOPACKAGE,
    OJ_LANE_ARROW,
    OJ_N_LANES
};

/** All lanes, as bits by enum oj_lane_id. */
#define OJ_LANES_ALL ((1u << OJ_N_LANES) - 1u)

/** What holds of a dataset that is read or written; a bit each. */
enum oj_lane_fact
{
    OJ_LANE_WHOLE_LAYER = 1,  /**< read: all rows of a layer, or those in a box:
                                   no SELECT and no condition */
    OJ_LANE_SOLE_LAYER = 2,   /**< it has one layer */
    OJ_LANE_PLAIN_OPEN = 4,   /**< read: without open options */
    OJ_LANE_SOUND_STREAM = 8, /**< read: by a driver whose stream of columns is
                                   right for the layer */
    OJ_LANE_NEW_FILE = 16     /**< written: a file that is not there yet */
};

/** Where rows of a lane are written. */
enum oj_lane_target
{
    OJ_LANE_WRITES_NOTHING,
    OJ_LANE_WRITES_FILE,   /**< a file of its own */
    OJ_LANE_WRITES_DATASET /**< a layer of GDAL's dataset */
};

/** A row of the table. */
struct oj_lane_row
{
    const char *name;   /**< as it is shown */
    const char *driver; /**< of the format; NULL: any */

    const struct oj_lane *reads; /**< NULL: this build has no such reader */
    unsigned reads_if;           /**< all these facts hold */

    enum oj_lane_target writes;
    unsigned writes_if;    /**< all these facts hold */
    const char *extension; /**< of the file that is written; NULL: any */
};

/** A dataset that is read, or is to be written at path. */
struct oj_lane_dataset
{
    GDALDriverH driver; /**< NULL: none */
    const char *path;   /**< written: its name */
    unsigned facts;
};

/** 0 <= id < OJ_N_LANES. */
const struct oj_lane_row *oj_lane_at(int id);

/** The facts that decide about lanes of a format of this driver: others, which
 *  can be costly to find out, need not be looked at. */
unsigned oj_lane_facts_that_matter(GDALDriverH driver);

/** The lanes that may read the layer, as bits by enum oj_lane_id. */
unsigned oj_lanes_that_read(const struct oj_lane_dataset *dataset);

/** The lane that rows are written by, or NULL. */
const struct oj_lane_row *
oj_lane_that_writes(const struct oj_lane_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
