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

#include "../../flatten/base/oj_status.h"

#include <string.h>
#include <strings.h>

struct oj_command;

/** What follows "JOIN:", in any case, in a name; NULL: it is no such name.
 * Costs nothing: it is asked of every dataset that anybody opens. */
static inline const char *oj_dataset_name_words(const char *name)
{
    return strncasecmp(name, "JOIN:", 5) == 0 ? name + 5 : NULL;
}

/** 1 for a name that ends in ".ogrjoin", in any case. */
static inline int oj_dataset_name_is_file(const char *name)
{
    size_t n = strlen(name);
    return n > 8 && strcasecmp(name + n - 8, ".ogrjoin") == 0;
}

/** -write_spec: writes command->write_spec from command->words, after opening
 *  what it says (schemas only). No join is run. The file appears complete or
 *  not at all; one that is there is replaced with -overwrite only. */
OJ_MUST_USE oj_status oj_write_spec_run(const struct oj_command *command,
                                        struct oj_error *err);

#endif
