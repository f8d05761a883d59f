/** Which join the words ask for, and which options go together. Looks at the
 *  words only, at no data. */
#ifndef OJ_COMMAND_CHECK_H
#define OJ_COMMAND_CHECK_H

#include "oj_command.h"

struct oj_option;

/** The value of -op; unknown names are OJ_ERR_ARG with all that are known. */
OJ_MUST_USE oj_status oj_command_read_op(struct oj_command *command,
                                         const char *name,
                                         struct oj_error *err);

/** After the last word, and before the datasets are counted: OJ_ERR_ARG when an
 *  option has no meaning without another.  Where -op is not among the words,
 *  chooses the join that the other options mean: relate with -relate, window
 *  with -window, nearest with -k, -ties or -distance_to, dwithin with one of
 * the fields of distances, else intersects.  -max_distance alone could be one
 * of two joins and is OJ_ERR_ARG.  Then sets what depends on the join: the
 * default of -how and of -validate. */
OJ_MUST_USE oj_status oj_command_choose_op(struct oj_command *command,
                                           struct oj_error *err);

/** OJ_ERR_ARG with one clear line when options contradict each other, have no
 *  meaning for the join, or one that it needs is missing. */
OJ_MUST_USE oj_status oj_command_check(const struct oj_command *command,
                                       struct oj_error *err);

/** OJ_ERR_ARG when the option makes no sense for a join that is read as a
 *  dataset. */
OJ_MUST_USE oj_status oj_command_check_dataset(const struct oj_option *option,
                                               struct oj_error *err);

#endif
