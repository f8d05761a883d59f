/** Which join the words ask for, and which options it takes. */
#ifndef OJ_COMMAND_OP_H
#define OJ_COMMAND_OP_H

#include "oj_command.h"

/** The value of -op; unknown names are OJ_ERR_ARG with all that are known. */
OJ_MUST_USE oj_status oj_command_read_op(struct oj_command *command,
                                         const char *name,
                                         struct oj_error *err);

/** Where -op is not among the words, the join that the other options mean:
 *  relate with -relate, window with -window, nearest with -k, -ties or
 *  -distance_to, dwithin with one of the fields of distances, else intersects.
 *  -max_distance alone could be one of two joins and is OJ_ERR_ARG.  Then sets
 *  what depends on the join: the default of -how. */
OJ_MUST_USE oj_status oj_command_settle_op(struct oj_command *command,
                                           struct oj_error *err);

/** OJ_ERR_ARG when an option has no meaning for the join, or one that the join
 *  needs is missing. */
OJ_MUST_USE oj_status oj_command_check_op(const struct oj_command *command,
                                          struct oj_error *err);

/** "intersects", "window": what -op would be. */
const char *oj_command_op_name(const struct oj_command *command);

#endif
