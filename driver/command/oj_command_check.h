/** Which options go together. */
#ifndef OJ_COMMAND_CHECK_H
#define OJ_COMMAND_CHECK_H

#include "oj_command.h"

#ifdef __cplusplus
extern "C" {
#endif

/** OJ_ERR_ARG when an option has no meaning without another.  Some of these say
 *  which datasets are wanted, so it is asked before those are counted. */
OJ_MUST_USE oj_status oj_command_check_needs(const struct oj_command *command,
                                             struct oj_error *err);

/** OJ_ERR_ARG with one clear line when options contradict each other. Looks at
 *  the words only, at no data. */
OJ_MUST_USE oj_status oj_command_check(const struct oj_command *command,
                                       struct oj_error *err);

/** OJ_ERR_ARG when the option of that name makes no sense for a join that is
 *  read as a dataset. */
OJ_MUST_USE oj_status oj_command_check_dataset(const char *name,
                                               struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
