/** Temporary files without a name. */
#ifndef OJ_TEMPORARY_FILE_H
#define OJ_TEMPORARY_FILE_H

#include "oj_status.h"

#include <stdint.h>

/** A file for what does not fit into memory.  It has no name, so nothing is
 * left of it however the process ends.  Zeroed memory is a valid closed one. */
struct oj_temporary_file
{
    int descriptor; /**< when is_open */
    int is_open;
    int64_t size;     /**< bytes written */
    const char *what; /**< is in it, for messages: "data" */
};

/** In the folder of near, a path (an output, whose disk has to have room), or
 *  in TMPDIR or /tmp where that folder takes no files or near is NULL. */
OJ_MUST_USE oj_status oj_temporary_file_open(const char *near, const char *what,
                                             struct oj_temporary_file *out,
                                             struct oj_error *err);

/** Writes, or reads, all of n bytes at a place of any file, which threads may
 *  share. 0, or -1 with errno; ENODATA where the file ends before. */
int oj_write_at(int descriptor, int64_t at, const void *bytes, int64_t n);
int oj_read_at(int descriptor, int64_t at, void *bytes, int64_t n);

/** Appends n bytes. */
OJ_MUST_USE oj_status oj_temporary_file_write(struct oj_temporary_file *file,
                                              const void *bytes, int64_t n,
                                              struct oj_error *err);

/** Writes n bytes over those that were written at offset. */
OJ_MUST_USE oj_status
oj_temporary_file_change(const struct oj_temporary_file *file, int64_t offset,
                         const void *bytes, int64_t n, struct oj_error *err);

/** Reads n bytes that were written at offset. */
OJ_MUST_USE oj_status
oj_temporary_file_read(const struct oj_temporary_file *file, int64_t offset,
                       void *bytes, int64_t n, struct oj_error *err);

/** Accepts a closed one. */
void oj_temporary_file_close(struct oj_temporary_file *file);

#endif
