/** Temporary files for data that does not fit into memory. They have no name.
 */
#ifndef OJ_TEMPORARY_FILE_H
#define OJ_TEMPORARY_FILE_H

#include "oj_status.h"

#include <stdint.h>

/** A temporary file. It has no name, so nothing remains of it, however the
 *  process ends. Zeroed memory is a valid closed file. */
struct oj_temporary_file
{
    int descriptor; /**< valid if is_open */
    int is_open;
    int64_t size;     /**< bytes written */
    const char *what; /**< what the file holds, for messages: "data" */
};

/** Creates the file in the folder of the path `near` (usually that of the
 *  output, whose disk has room anyway); if that fails or near is NULL, in
 *  TMPDIR or /tmp. */
OJ_MUST_USE oj_status oj_temporary_file_open(const char *near, const char *what,
                                             struct oj_temporary_file *out,
                                             struct oj_error *err);

/** Write or read all n bytes at an offset of any file; thread-safe. Return 0,
 *  or -1 with errno; ENODATA if the file ends before n bytes are read. */
int oj_write_at(int descriptor, int64_t at, const void *bytes, int64_t n);
int oj_read_at(int descriptor, int64_t at, void *bytes, int64_t n);

/** Appends n bytes. */
OJ_MUST_USE oj_status oj_temporary_file_write(struct oj_temporary_file *file,
                                              const void *bytes, int64_t n,
                                              struct oj_error *err);

/** Overwrites n bytes at offset; they must have been written before. */
OJ_MUST_USE oj_status oj_temporary_file_overwrite(
    const struct oj_temporary_file *file, int64_t offset, const void *bytes,
    int64_t n, struct oj_error *err);

/** Reads n bytes at offset; they must have been written before. */
OJ_MUST_USE oj_status
oj_temporary_file_read(const struct oj_temporary_file *file, int64_t offset,
                       void *bytes, int64_t n, struct oj_error *err);

/** Closes the file; accepts a closed one. */
void oj_temporary_file_close(struct oj_temporary_file *file);

#endif
