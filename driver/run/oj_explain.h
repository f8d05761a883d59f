/** -explain: what would be done, without doing it. */
#ifndef OJ_EXPLAIN_H
#define OJ_EXPLAIN_H

#include "../command/oj_command.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Opens both sides, checks everything that a run checks beforehand, reads the
 *  join side (of a large one the beginning) and the first rows of the input,
 *  joins these, and prints on stdout what it found.  Writes nothing. */
OJ_MUST_USE oj_status oj_explain_run(const struct oj_command *command,
                                     int *exit_code, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
