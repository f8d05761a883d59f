/** ogrjoin -benchmark: the methods, timed on the user's own layers. */
#ifndef OJ_BENCHMARK_H
#define OJ_BENCHMARK_H

#include "../command/oj_command.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Reads both sides into memory, runs every method on them, and prints a table
 *  on stdout; -benchmark_csv writes it to a file too. */
OJ_MUST_USE oj_status oj_benchmark_run(const struct oj_command *command,
                                       int *exit_code, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
