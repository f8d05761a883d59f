/** ogrjoin -in_place: the columns go into the input layer itself. */
#ifndef OJ_IN_PLACE_H
#define OJ_IN_PLACE_H

#include "../command/oj_command.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Joins first and keeps the answers aside, closes all that was read, and then
 *  updates the layer through one handle in one transaction, so that an error, a
 *  cancel or a kill leaves it as it was.
 *
 *  The columns are those of a new output: join_fid, join_distance, what else is
 *  asked for, and the join layer's fields, added at the end.  When the layer
 * has them already, one after the other, under these names and of these types,
 * they are taken for those of an earlier run and refreshed; any other column of
 * such a name is an error. */
OJ_MUST_USE oj_status oj_in_place_run(const struct oj_command *command,
                                      int *exit_code, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
