/** The names under which every GDAL program opens a join: "JOIN:" and the words
 *  of the command without a destination, or a file *.ogrjoin that holds them:
 *
 *    {
 *      "type": "ogrjoin",
 *      "command_line": "-op nearest -max_distance 100 pickups.gpkg lots.gpkg",
 *      "relative_paths_relative_to_this_file": true
 *    }
 *
 *  One JSON object.  Other members are passed over; the last one may be left
 *  out and is then true.  One parser of words serves the command and both.
 */
#ifndef OJ_DATASET_NAME_H
#define OJ_DATASET_NAME_H

#include "../command/oj_command.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** 1 for "JOIN:...", in any case. Costs nothing: it is asked for every dataset
 *  that anybody opens. */
int oj_dataset_name_is_words(const char *name);

/** 1 for a name that ends in ".ogrjoin", in any case. */
int oj_dataset_name_is_file(const char *name);

/** What the name asks for; freed by oj_command_free(). Reads the file, where it
 *  is one, and no dataset. Failures are one line that says what is wrong. */
OJ_MUST_USE oj_status oj_dataset_name_read(const char *name,
                                           struct oj_command *command,
                                           struct oj_error *err);

/** The same of what a file in this folder says. folder: "" for the current one,
 *  NULL where paths have nothing to do with the file. */
OJ_MUST_USE oj_status oj_dataset_name_read_line(const char *line,
                                                const char *folder,
                                                struct oj_command *command,
                                                struct oj_error *err);

struct oj_spec_file
{
    char *command_line; /**< owned */
    int is_relative;    /**< paths are relative to the file's folder */
};

/** Reads the text of a file; path is for messages. OJ_ERR_DATA with one line
 *  that names the file. */
OJ_MUST_USE oj_status oj_spec_file_parse(const char *text, const char *path,
                                         struct oj_spec_file *spec,
                                         struct oj_error *err);

/** Writes the file; spec is a struct oj_spec_file. For oj_text_file_write(). */
void oj_spec_file_print(FILE *file, const void *spec);

/** Accepts zeroed memory. */
void oj_spec_file_free(struct oj_spec_file *spec);

#ifdef __cplusplus
}
#endif
#endif
