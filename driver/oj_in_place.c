#include "oj_in_place.h"

oj_status oj_in_place_run(const struct oj_command *command, int *exit_code,
                          struct oj_error *err)
{
    (void)command;
    (void)exit_code;
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "-in_place is not built");
}
