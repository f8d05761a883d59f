/** GDAL drivers: which one writes a file, and what it can take. */
#ifndef OJ_GDAL_DRIVER_H
#define OJ_GDAL_DRIVER_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>
#include <ogr_api.h>

/** 1 when the driver's name, in any case, is in a list "a|b|c"; NULL: it is
 *  not. */
int oj_driver_is(GDALDriverH driver, const char *names);

/** The driver that -f names, or, with format NULL, the one that writes files
 *  with the extension of path. */
OJ_MUST_USE oj_status oj_driver_choose(const char *format, const char *path,
                                       GDALDriverH *out, struct oj_error *err);

/** An empty dataset in memory, or NULL; closed by GDALClose(). */
GDALDatasetH oj_driver_new_in_memory(void);

/** 1 when path starts with a driver's connection prefix ("PG:"). */
int oj_driver_is_connection(const char *path);

/** 1 for a server with tables, 0 for files. */
int oj_driver_is_database(GDALDriverH driver);

/** 1 when the driver says that it can create fields of this type, or does not
 *  say anything on types. */
int oj_driver_takes_field(GDALDriverH driver, OGRFieldType type);

/** 1 when the driver says that it can create fields of this subtype. */
int oj_driver_takes_subtype(GDALDriverH driver, OGRFieldSubType subtype);

/** The name of a column that the driver's reader never shows as a field, or
 *  NULL. */
const char *oj_driver_hidden_name(GDALDriverH driver);

/** 1 when new rows can be given the FIDs that one likes. */
int oj_driver_takes_fids(GDALDriverH driver);

/** 1 when the driver knows this layer creation option; default_value (may be
 *  NULL) receives its default, "" where none is told. */
int oj_driver_has_layer_option(GDALDriverH driver, const char *name,
                               char *default_value, int size);

/** 1 when the driver lists this option among its open options. */
int oj_driver_has_open_option(GDALDriverH driver, const char *name);

#endif
