/** A small text file that appears complete or not at all, or text on standard
 *  output or error. */
#ifndef OJ_TEXT_FILE_WRITE_H
#define OJ_TEXT_FILE_WRITE_H

#include "../../flatten/base/oj_status.h"

#include <stdio.h>

/** OJ_ERR_IO, as the writing would end, when it is plain before long work that
 *  path cannot be written: no such folder, no leave, a folder itself. */
OJ_MUST_USE oj_status oj_text_file_check(const char *path, const char *option,
                                         struct oj_error *err);

/** 1 when path is a name of standard output. */
int oj_text_file_is_stdout(const char *path);

/** Writes path by write(file, user), under an unpredictable temporary name next
 *  to it until it is on the disk.  A device, a pipe or a link that is there is
 *  written as it stands, but never a link that leads nowhere or that another
 *  user has made.  option: who asked, for the error text. */
OJ_MUST_USE oj_status oj_text_file_write(const char *path, const char *option,
                                         void (*write)(FILE *, const void *),
                                         const void *user,
                                         struct oj_error *err);

/** Writes text as a string of JSON, with its quotes. */
void oj_text_file_put_json(FILE *file, const char *text);

#endif
