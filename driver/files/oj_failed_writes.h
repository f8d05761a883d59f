/** Detects failed writes that GDAL's drivers do not report.
 *
 *  GDAL's writers of CSV, FlatGeobuf and other formats ignore the results of
 *  some writes, and VSIFCloseL() returns no earlier error: a file may lack
 *  bytes and still seem complete. Therefore drivers get a path to the output
 *  through a file system handler (VSIInstallPluginHandler()) that forwards
 *  every call to GDAL's handler of ordinary files and records the first error
 *  of a write.
 */
#ifndef OJ_FAILED_WRITES_H
#define OJ_FAILED_WRITES_H

#include "../../flatten/base/oj_status.h"

/** Returns the prefix that makes an absolute path a watched one: prefix +
 *  "/data/out.csv". The system resolves this to /data/out.csv, so that drivers
 *  that do not use VSIFOpenL() open the right file, too. */
const char *oj_failed_writes_prefix(void);

/** Records failed writes to files in this folder (a path with the prefix) until
 *  oj_failed_writes_unwatch(). All files in the folder must be closed before
 * that call. */
OJ_MUST_USE oj_status oj_failed_writes_watch(const char *folder,
                                             struct oj_error *err);

/** Returns the errno of the first write, truncation or close that failed in a
 *  watched folder, or 0 if none failed. Thread-safe. */
int oj_failed_writes_errno(const char *folder);

/** Ends the watch; accepts a folder that is not watched. */
void oj_failed_writes_unwatch(const char *folder);

#endif
