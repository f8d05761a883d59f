/** Runs the command: from the parsed options to the exit code. */
#ifndef OJ_RUN_H
#define OJ_RUN_H

#include "../output/oj_output.h"
#include "../rows/oj_pass.h"
#include "../rows/oj_summary.h"

/** Runs the command: writes the destination, or does -explain, -benchmark or
 *  -in_place. If it returns OJ_OK, sets *exit_code to an enum oj_exit. */
OJ_MUST_USE oj_status oj_run(const struct oj_command *command, int *exit_code,
                             struct oj_error *err);

/** State that all ways of running need; oj_run() opens and closes it. */
struct oj_command_run
{
    const struct oj_command *command;
    struct oj_pass pass;     /**< the pass; -benchmark uses only its job */
    struct oj_output output; /**< the output, if the run has a destination */
    /** -explain: options with which the output is planned */
    struct oj_output_options explained;
    /** printed at the end of a run that has a destination */
    struct oj_summary summary;
    /** 1 if an answer differs from the reference's; sets the exit code */
    int is_different;
};

/** Plans the output and its main layer. */
OJ_MUST_USE oj_status oj_run_plan_output(struct oj_command_run *run,
                                         struct oj_error *err);

/** Plans the output as if -overwrite were given. */
OJ_MUST_USE oj_status oj_run_plan_output_with_overwrite(
    struct oj_command_run *run, struct oj_error *err);

/** -explain: opens both sides and makes the checks of a run before reading, but
 *  accepts an existing output. Reads the first rows of the input and the join
 *  side (its first rows, if it is large), joins them, and prints the findings
 *  on stdout. Writes no files. */
OJ_MUST_USE oj_status oj_explain_run(struct oj_command_run *run,
                                     struct oj_error *err);

/** -benchmark: reads both sides into memory, runs every method, and prints a
 *  table on stdout; -benchmark_csv also writes the table to a file. */
OJ_MUST_USE oj_status oj_benchmark_run(struct oj_command_run *run,
                                       struct oj_error *err);

/** -in_place: joins all rows and stores their results, closes all readers, and
 *  then updates the input layer in one transaction. So an error, a cancellation
 *  or a kill leaves the layer unchanged.
 *
 *  The columns are those of a new output: join_fid, join_distance, further
 *  requested ones, and the join layer's fields; they are added at the end.
 *  Consecutive columns of the layer with these names and types are taken as
 *  those of an earlier run and refreshed. Any other column with such a name is
 *  an error.
 */
OJ_MUST_USE oj_status oj_in_place_run(struct oj_command_run *run,
                                      struct oj_error *err);

#endif
