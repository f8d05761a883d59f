#include "oj_lane_table.h"

#include "../flatgeobuf/oj_flatgeobuf_read.h"
#include "../geopackage/oj_geopackage_read.h"
#include "oj_layer_arrow.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#if OJ_HAVE_SQLITE
#define GEOPACKAGE_READER (&oj_geopackage_lane)
#define GEOPACKAGE_TARGET OJ_LANE_WRITES_DATASET
#else
#define GEOPACKAGE_READER NULL
#define GEOPACKAGE_TARGET OJ_LANE_WRITES_NOTHING
#endif
#if OJ_HAVE_ARROW
#define ARROW_READER (&oj_arrow_lane)
#else
#define ARROW_READER NULL
#endif

/* The table of lanes, indexed by enum oj_lane_id. */
static const struct oj_lane_row lanes[OJ_N_LANES] = {
    {"FlatGeobuf", "FlatGeobuf", &oj_flatgeobuf_lane,
     OJ_LANE_WHOLE_LAYER | OJ_LANE_SOLE_LAYER, OJ_LANE_WRITES_FILE,
     OJ_LANE_NEW_FILE | OJ_LANE_SOLE_LAYER, "fgb"},
    {"GeoPackage", "GPKG", GEOPACKAGE_READER,
     OJ_LANE_WHOLE_LAYER | OJ_LANE_PLAIN_OPEN, GEOPACKAGE_TARGET, 0, NULL},
    {"Arrow", NULL, ARROW_READER, OJ_LANE_SOUND_STREAM, OJ_LANE_WRITES_NOTHING,
     0, NULL},
};

const struct oj_lane_row *oj_lane_at(int id)
{
    return &lanes[id];
}

static int is_of_driver(const struct oj_lane_row *row, GDALDriverH driver)
{
    if (row->driver == NULL)
        return 1;
    return driver != NULL && EQUAL(GDALGetDescription(driver), row->driver) &&
           CPLTestBool(CPLGetConfigOption("OGRJOIN_LANES", "YES"));
}

unsigned oj_lane_facts_of_driver(GDALDriverH driver)
{
    unsigned facts = 0;
    for (int i = 0; i < OJ_N_LANES; i++)
    {
        if (is_of_driver(&lanes[i], driver))
            facts |= lanes[i].reads_if | lanes[i].writes_if;
    }
    return facts;
}

static int has_lane_facts(const struct oj_lane_dataset *dataset, unsigned facts)
{
    return (facts & ~dataset->facts) == 0;
}

unsigned oj_lanes_that_read(const struct oj_lane_dataset *dataset)
{
    unsigned bits = 0;
    for (int i = 0; i < OJ_N_LANES; i++)
    {
        if (lanes[i].reads != NULL &&
            is_of_driver(&lanes[i], dataset->driver) &&
            has_lane_facts(dataset, lanes[i].reads_if))
            bits |= 1u << i;
    }
    return bits;
}

const struct oj_lane_row *
oj_lane_that_writes(const struct oj_lane_dataset *dataset)
{
    for (int i = 0; i < OJ_N_LANES; i++)
    {
        if (lanes[i].writes != OJ_LANE_WRITES_NOTHING &&
            is_of_driver(&lanes[i], dataset->driver) &&
            has_lane_facts(dataset, lanes[i].writes_if) &&
            (lanes[i].extension == NULL ||
             EQUAL(CPLGetExtension(dataset->path), lanes[i].extension)))
            return &lanes[i];
    }
    return NULL;
}
