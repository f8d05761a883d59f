/** -write_spec: what a command says, saved as a dataset that every GDAL program
 *  opens. No join is run. */
#ifndef OJ_WRITE_SPEC_H
#define OJ_WRITE_SPEC_H

#include "../command/oj_command.h"

/** Writes command->write_spec from command->words, after opening what it says
 *  (schemas only).  The file appears complete or not at all; one that is there
 *  is replaced with -overwrite only. */
OJ_MUST_USE oj_status oj_write_spec_run(const struct oj_command *command,
                                        struct oj_error *err);

#endif
