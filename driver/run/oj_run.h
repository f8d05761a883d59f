/** A whole run of the command, from its words to its exit code. */
#ifndef OJ_RUN_H
#define OJ_RUN_H

#include "../command/oj_command.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Does what command asks. *exit_code, an enum oj_exit, is set when OJ_OK is
 *  returned. */
OJ_MUST_USE oj_status oj_run(const struct oj_command *command, int *exit_code,
                             struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
