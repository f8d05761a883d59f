/** Files that stand for a join, *.ogrjoin:
 *
 *    {
 *      "type": "ogrjoin",
 *      "command_line": "-op nearest -max_distance 100 pickups.gpkg lots.gpkg",
 *      "relative_paths_relative_to_this_file": true
 *    }
 *
 *  One JSON object.  Other members are passed over; the last one may be left
 *  out and is then true.
 */
#ifndef OJ_SPEC_FILE_H
#define OJ_SPEC_FILE_H

#include "../../flatten/base/oj_status.h"

#include <stdio.h>

struct oj_spec_file
{
    char *command_line; /**< owned */
    int is_relative;    /**< paths are relative to the file's folder */
};

/** Reads path, which may be one of GDAL's virtual files. OJ_ERR_IO, OJ_ERR_DATA
 *  with one line that names the file. */
OJ_MUST_USE oj_status oj_spec_file_read(const char *path,
                                        struct oj_spec_file *spec,
                                        struct oj_error *err);

/** The same from the text of a file; path is for messages. */
OJ_MUST_USE oj_status oj_spec_file_parse(const char *text, const char *path,
                                         struct oj_spec_file *spec,
                                         struct oj_error *err);

/** Writes the file; spec is a struct oj_spec_file. For oj_text_file_write(). */
void oj_spec_file_print(FILE *file, const void *spec);

/** Accepts zeroed memory. */
void oj_spec_file_free(struct oj_spec_file *spec);

#endif
