/** Dataset names under which every GDAL program opens a join. A name is "JOIN:"
 *  and the options and sources of the command, without destination, or the path
 *  of a spec file *.ogrjoin with the options and sources:
 *
 *    {
 *      "type": "ogrjoin",
 *      "command_line": "-op nearest -max_distance 100 pickups.gpkg lots.gpkg",
 *      "relative_paths_relative_to_this_file": true
 *    }
 *
 *  The file is one JSON object. Other members are ignored. Without the member
 *  relative_paths_relative_to_this_file, paths are relative to the file, too.
 */
#ifndef OJ_DATASET_NAME_H
#define OJ_DATASET_NAME_H

#include "../../flatten/base/oj_status.h"

#include <string.h>
#include <strings.h>

struct oj_command;

/** Returns the text of a name after "JOIN:" (ignoring case), or NULL if the
 *  name does not begin with "JOIN:". Must be fast, because it is called for
 *  every dataset that a program opens. */
static inline const char *oj_dataset_name_words(const char *name)
{
    return strncasecmp(name, "JOIN:", 5) == 0 ? name + 5 : NULL;
}

/** Returns 1 if a name ends in ".ogrjoin", ignoring case. */
static inline int oj_dataset_name_is_file(const char *name)
{
    size_t n = strlen(name);
    return n > 8 && strcasecmp(name + n - 8, ".ogrjoin") == 0;
}

/** -write_spec: checks that the join opens, reading only schemas, and writes
 *  the spec file command->write_spec from command->words. Does not run the
 *  join. The file is written atomically; an existing file is replaced only with
 *  -overwrite. */
OJ_MUST_USE oj_status oj_write_spec_run(const struct oj_command *command,
                                        struct oj_error *err);

#endif
