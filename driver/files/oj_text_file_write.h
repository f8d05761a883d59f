/** Writes a small text file atomically (completely or not at all), or text to
 *  standard output or error. */
#ifndef OJ_TEXT_FILE_WRITE_H
#define OJ_TEXT_FILE_WRITE_H

#include "../../flatten/base/oj_status.h"

#include <stdio.h>

/** Checks, before long work, whether path can be written. OJ_ERR_IO if its
 *  folder does not exist, permission is missing, or path is a folder. */
OJ_MUST_USE oj_status oj_text_file_check(const char *path, const char *option,
                                         struct oj_error *err);

/** Returns 1 if path names standard output. */
int oj_text_file_is_stdout(const char *path);

/** Writes path by write(file, user). The text goes to an unpredictable
 *  temporary name in the folder of path, which is renamed when the text is on
 *  the disk. An existing device, pipe or link is written in place. A link is
 *  refused if its target does not exist or another user has made it. option is
 *  the name of the option, for messages. */
OJ_MUST_USE oj_status oj_text_file_write(const char *path, const char *option,
                                         void (*write)(FILE *, const void *),
                                         const void *user,
                                         struct oj_error *err);

/** Writes text as a JSON string, with its quotes. */
void oj_text_file_put_json(FILE *file, const char *text);

#endif
