/** Failed writes that drivers of GDAL do not report.
 *
 *  GDAL's writers of CSV, FlatGeobuf and other formats ignore the result of
 *  some of their writes, and VSIFCloseL() returns no earlier error: what a
 *  single one failed to write is missing in a file that seems complete.  So
 *  drivers get a path of the output that leads to it by a file system handler
 *  (VSIInstallPluginHandler()), which passes every call on to GDAL's handler
 *  of ordinary files and keeps the first error of writing. */
#ifndef OJ_FAILED_WRITES_H
#define OJ_FAILED_WRITES_H

#include "../../flatten/base/oj_status.h"

/** Begins an absolute path whose writes are watched: oj_failed_writes_prefix()
 *  and "/data/out.csv".  The system resolves the result to that file, too, so
 *  that drivers that do not open it by VSIFOpenL() open what they should. */
const char *oj_failed_writes_prefix(void);

/** From now on errors in files of this folder, a path with the prefix, are
 *  kept, until oj_failed_writes_end(), when no file of it may be open. */
OJ_MUST_USE oj_status oj_failed_writes_watch(const char *folder,
                                             struct oj_error *err);

/** errno of the first call that failed to write to a file of a folder that is
 *  watched, to cut it or to close it; 0: all have succeeded.  Calls may come
 *  from any thread. */
int oj_failed_writes_errno(const char *folder);

/** Accepts a folder that is not watched. */
void oj_failed_writes_end(const char *folder);

#endif
