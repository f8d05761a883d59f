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

#ifdef __cplusplus
extern "C" {
#endif

/** 1 for "JOIN:...", in any case. Costs nothing: it is asked for every dataset
 *  that anybody opens. */
int oj_dataset_name_is_words(const char *name);

/** 1 for a name that ends in ".ogrjoin", in any case. */
int oj_dataset_name_is_file(const char *name);

/** What the words ask for; freed by oj_command_free(). Reads no dataset.
 *  Failures are one line that says what is wrong. name: "JOIN:..." */
OJ_MUST_USE oj_status oj_dataset_name_read(const char *name,
                                           struct oj_command *command,
                                           struct oj_error *err);

/** The same of what a file in this folder says. folder: "" for the current one,
 *  NULL where paths have nothing to do with the file. */
OJ_MUST_USE oj_status oj_dataset_name_read_line(const char *line,
                                                const char *folder,
                                                struct oj_command *command,
                                                struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
