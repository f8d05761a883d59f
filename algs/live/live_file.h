/** The points of a kept index in a file.
 *
 *  header  "OJLIVE1\n"  byte order  n  checksum      8 bytes each
 *  id      [n] int64
 *  x, y    [n] double
 *
 *  The checksum is that of all numbers behind it, by oj_hash_mix().  Numbers
 * are in the byte order of the machine; a file of another one is refused.
 */
#ifndef LIVE_FILE_H
#define LIVE_FILE_H

#include "live_search.h"

/** Writes points under a temporary name beside path, and gives it the name when
 *  all is on the disk: a file that was there stays until then.
 *  Errors  OJ_ERR_IO, OJ_ERR_NOMEM */
OJ_MUST_USE oj_status live_file_write(const char *path,
                                      const struct live_points *points,
                                      struct oj_error *err);

/** Reads what was written: nothing in the file is trusted.
 *  Errors  OJ_ERR_IO: it cannot be read; OJ_ERR_DATA: it is no such file, is
 *          cut off, has a wrong checksum or a place that joins nothing, or its
 *          ids do not ascend; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status live_file_read(const char *path, struct live_points *out,
                                     struct oj_error *err);

#endif
