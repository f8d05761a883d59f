/** The SQLite library that GDAL runs. Two copies of SQLite in one process break
 *  each other's locks, so nothing is done with another one than GDAL's.
 *  A build without SQLite's header (OJ_HAVE_SQLITE is 0) has nothing of this
 *  room.
 */
#ifndef OJ_SQLITE_H
#define OJ_SQLITE_H

#include <gdal.h>

struct sqlite3;

/** 1 when GDAL runs the SQLite library that we are linked with. Asked of GDAL
 *  once per process; any thread. */
int oj_sqlite_is_gdals(void);

/** GDAL's own connection to a GeoPackage, to be used on the thread that uses
 *  the dataset; NULL where the dataset is of another driver or the library is
 *  another one. */
struct sqlite3 *oj_sqlite_of(GDALDatasetH dataset);

#endif
