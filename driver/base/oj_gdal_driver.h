/** GDAL drivers: chooses the driver that writes a file, and queries what a
 *  driver supports. */
#ifndef OJ_GDAL_DRIVER_H
#define OJ_GDAL_DRIVER_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>
#include <ogr_api.h>

/** 1 when the driver's name is in the list "a|b|c", ignoring case. 0 for driver
 *  NULL. */
int oj_driver_is(GDALDriverH driver, const char *names);

/** Finds the driver named by -f (format), or, if format is NULL, the one that
 *  writes files with the extension of path. */
OJ_MUST_USE oj_status oj_driver_choose(const char *format, const char *path,
                                       GDALDriverH *out, struct oj_error *err);

/** An empty dataset in memory, or NULL on failure. Close it by GDALClose(). */
GDALDatasetH oj_driver_new_in_memory(void);

/** 1 when path starts with a driver's connection prefix ("PG:"). */
int oj_driver_is_connection(const char *path);

/** 1 for a database server, 0 for files. */
int oj_driver_is_database(GDALDriverH driver);

/** 1 when the driver's metadata list this field type, or list no types at
 *  all. */
int oj_driver_takes_field(GDALDriverH driver, OGRFieldType type);

/** 1 when the driver's metadata list this field subtype. */
int oj_driver_takes_subtype(GDALDriverH driver, OGRFieldSubType subtype);

/** The column name that the driver's reader never returns as a field, or
 *  NULL. */
const char *oj_driver_hidden_name(GDALDriverH driver);

/** 1 when new rows can be created with given FIDs. */
int oj_driver_takes_fids(GDALDriverH driver);

/** 1 when the driver has this layer creation option. default_value (may be
 *  NULL) receives its default, or "" if the driver states none. */
int oj_driver_has_layer_option(GDALDriverH driver, const char *name,
                               char *default_value, int size);

/** 1 when the driver has this open option. */
int oj_driver_has_open_option(GDALDriverH driver, const char *name);

#endif
