/** The points of a kept index in a file.
 *
 *  header  "OJLIVE1\n"  byte order  n  checksum      8 bytes each
 *  id      [n] int64
 *  x, y    [n] double
 *
 *  The checksum covers all numbers after the header (oj_hash_mix()).  Numbers
 *  have the byte order of the machine; a file with another byte order is
 *  refused. */
#ifndef LIVE_FILE_H
#define LIVE_FILE_H

#include "live_search.h"

/** Writes points to a temporary file beside path and renames it to path when it
 *  is complete on disk. An existing file at path stays until then.
 *  Errors  OJ_ERR_IO, OJ_ERR_NOMEM */
OJ_MUST_USE oj_status live_file_write(const char *path,
                                      const struct live_points *points,
                                      struct oj_error *err);

/** Reads a file of live_file_write(), and checks everything, because the file
 *  may come from anywhere.
 *  Errors  OJ_ERR_IO: the file cannot be read; OJ_ERR_DATA: it is another kind
 *          of file, is cut off, has a wrong checksum or a coordinate that no
 *          join takes, or its ids do not ascend; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status live_file_read(const char *path, struct live_points *out,
                                     struct oj_error *err);

#endif
