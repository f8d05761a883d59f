#include "oj_benchmark.h"

oj_status oj_benchmark_run(const struct oj_command *command, int *exit_code,
                           struct oj_error *err)
{
    (void)command;
    (void)exit_code;
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "-benchmark is not built");
}
