/** A whole run of the command, from its words to its exit code. */
#ifndef OJ_RUN_H
#define OJ_RUN_H

#include "../output/oj_output.h"
#include "../rows/oj_pass.h"
#include "../rows/oj_summary.h"

/** Does what command asks: one of the following, or writes a destination.
 *  exit_code: an enum oj_exit, set when OJ_OK is returned. */
OJ_MUST_USE oj_status oj_run(const struct oj_command *command, int *exit_code,
                             struct oj_error *err);

/** What all ways of running share; oj_run() opens and closes it. */
struct oj_command_run
{
    const struct oj_command *command;
    struct oj_pass pass;       /**< of -benchmark the job alone */
    struct oj_output output;   /**< where it is planned */
    struct oj_summary summary; /**< printed at the end where it has a
                                    destination */
    int is_different; /**< some answer is another one than it should be: the
                           exit code says so */
};

/** Plans the output with its main layer. */
OJ_MUST_USE oj_status oj_run_plan_output(struct oj_command_run *run,
                                         struct oj_error *err);

/** -explain: opens both sides, checks everything that a run checks beforehand,
 *  reads the join side (of a large one the beginning) and the first rows of the
 *  input, joins these, and prints on stdout what it found.  Writes nothing. */
OJ_MUST_USE oj_status oj_explain_run(struct oj_command_run *run,
                                     struct oj_error *err);

/** -benchmark: reads both sides into memory, runs every method on them, and
 *  prints a table on stdout; -benchmark_csv writes it to a file too. */
OJ_MUST_USE oj_status oj_benchmark_run(struct oj_command_run *run,
                                       struct oj_error *err);

/** -in_place: joins first and keeps the answers aside, closes all that was
 *  read, and then updates the input layer through one handle in one
 *  transaction, so that an error, a cancel or a kill leaves it as it was.
 *
 *  The columns are those of a new output: join_fid, join_distance, what else is
 *  asked for, and the join layer's fields, added at the end.  When the layer
 *  has them already, one after the other, under these names and of these types,
 *  they are taken for those of an earlier run and refreshed; any other column
 *  of such a name is an error. */
OJ_MUST_USE oj_status oj_in_place_run(struct oj_command_run *run,
                                      struct oj_error *err);

#endif
