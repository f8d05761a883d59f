/** The words of a command line become a struct oj_command.
 *
 *  The same words without a destination name a dataset (oj_dataset_name.h), so
 *  this parser neither prints nor exits.  Habits are ogr2ogr's: one dash (two
 *  are taken too), case does not matter, the destination comes first.
 */
#ifndef OJ_COMMAND_PARSE_H
#define OJ_COMMAND_PARSE_H

#include "oj_command.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Reads argv[0 .. argc - 1] (no program name) into *command, which owns copies
 *  of all it needs and is freed by oj_command_free().  With -help among the
 *  words nothing else is checked.  OJ_ERR_ARG with one line saying what is
 *  wrong and what to write instead. */
OJ_MUST_USE oj_status oj_command_parse(int argc, const char *const *argv,
                                       struct oj_command *command,
                                       struct oj_error *err);

/** The same of a dataset's name: there is no destination, and options that only
 *  a run has are refused.  folder: of a file that holds the words, to which
 *  their paths are relative; "": they are relative to the current one. */
OJ_MUST_USE oj_status oj_command_parse_dataset(int argc,
                                               const char *const *argv,
                                               const char *folder,
                                               struct oj_command *command,
                                               struct oj_error *err);

/** Accepts zeroed memory. */
void oj_command_free(struct oj_command *command);

#ifdef __cplusplus
}
#endif
#endif
