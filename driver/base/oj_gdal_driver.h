/** Chooses the GDAL driver that writes a file, and queries what a driver
 *  supports. */
#ifndef OJ_GDAL_DRIVER_H
#define OJ_GDAL_DRIVER_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>
#include <ogr_api.h>

/** Returns 1 if the driver's name is in the list "a|b|c", ignoring case; 0 for
 *  driver NULL. */
int oj_driver_is(GDALDriverH driver, const char *names);

/** Sets *out to the driver that -f names (format). If format is NULL, chooses
 *  the driver that writes files with the extension of path. */
OJ_MUST_USE oj_status oj_driver_choose(const char *format, const char *path,
                                       GDALDriverH *out, struct oj_error *err);

/** Creates an empty dataset in memory; NULL on failure. The caller closes it by
 *  GDALClose(). */
GDALDatasetH oj_driver_create_memory_dataset(void);

/** Reports that such a dataset, or a layer of it, cannot be made. */
oj_status oj_driver_fail_memory_dataset(struct oj_error *err);

/** Returns 1 if path starts with a driver's connection prefix ("PG:"). */
int oj_driver_is_connection(const char *path);

/** Returns 1 for drivers of database servers, 0 for drivers of files. */
int oj_driver_is_database(GDALDriverH driver);

/** Returns 1 if the driver's metadata list this field type, or list no types at
 *  all. */
int oj_driver_takes_field(GDALDriverH driver, OGRFieldType type);

/** Returns 1 if the driver's metadata list this field subtype; always 1 for
 *  OFSTNone and OFSTJSON. */
int oj_driver_takes_subtype(GDALDriverH driver, OGRFieldSubType subtype);

/** Returns the name of the column that the driver's reader uses as FID and
 *  never returns as a field, or NULL if there is no such column. */
const char *oj_driver_column_read_as_fid(GDALDriverH driver);

/** Returns 1 if new rows can be created with given FIDs. */
int oj_driver_takes_fids(GDALDriverH driver);

/** Returns 1 if the driver has this layer creation option. default_value, NULL
 *  or a buffer of size bytes, receives the option's default, or "" if the
 *  driver states none. */
int oj_driver_has_layer_option(GDALDriverH driver, const char *name,
                               char *default_value, int size);

/** Returns 1 if the driver has this open option. */
int oj_driver_has_open_option(GDALDriverH driver, const char *name);

#endif
