#include "oj_command_check.h"

#include <string.h>

/* Option a has no meaning without option b. */
struct need
{
    const char *a, *b;
};

static const struct need needs[] = {
    {"dialect", "sql"},
    {"join_dialect", "join_sql"},
    {"validate_report", "validate"},
    {"benchmark_csv", "benchmark"},
    {"benchmark_seconds", "benchmark"},
    {"in_place_unsafe", "in_place"},
};

/* Options a and b contradict each other. */
struct clash
{
    const char *a, *b, *why;
};

static const char own_layers[] = "a SELECT names its own layers";
static const char no_output[] = "nothing is written to another dataset";

static const struct clash clashes[] = {
    {"overwrite", "append", "one replaces the layer, the other keeps it"},
    {"input_layer", "sql", own_layers},
    {"join_layer", "join_sql", own_layers},
    {"q", "progress", "one hides the progress, the other shows it"},
    {"in_place", "f", no_output},
    {"in_place", "nln", no_output},
    {"in_place", "dsco", no_output},
    {"in_place", "lco", no_output},
    {"in_place", "doo", no_output},
    {"in_place", "nlt", no_output},
    {"in_place", "overwrite", no_output},
    {"in_place", "append", no_output},
    {"in_place", "update", no_output},
    {"in_place", "unsetFid", no_output},
    {"in_place", "a_srs", no_output},
    {"in_place", "sql", "the rows of a SELECT cannot be updated"},
    {"in_place", "select", "all fields of the layer stay"},
    {"benchmark", "f", no_output},
    {"benchmark", "nln", no_output},
    {"benchmark", "dsco", no_output},
    {"benchmark", "lco", no_output},
    {"benchmark", "doo", no_output},
    {"benchmark", "overwrite", no_output},
    {"benchmark", "append", no_output},
    {"benchmark", "update", no_output},
    {"benchmark", "in_place", no_output},
    {"benchmark", "validate", "the benchmark compares its rows itself"},
    {"benchmark", "json_summary", "its table can be had by -benchmark_csv"},
};

static oj_status check_tables(const struct oj_command *command,
                              struct oj_error *err)
{
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
    {
        if (oj_command_given(command, needs[i].a) &&
            !oj_command_given(command, needs[i].b))
            return oj_fail(err, OJ_ERR_ARG, "-%s needs -%s", needs[i].a,
                           needs[i].b);
    }
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++)
    {
        if (oj_command_given(command, clashes[i].a) &&
            oj_command_given(command, clashes[i].b))
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s and -%s do not go together: %s", clashes[i].a,
                           clashes[i].b, clashes[i].why);
    }
    return OJ_OK;
}

/* One row of columns per input row is all that a layer can take in place. */
static oj_status check_in_place(const struct oj_command *command,
                                struct oj_error *err)
{
    if (!command->in_place)
        return OJ_OK;
    if (command->how != OJ_KEEP_LEFT)
        return oj_fail(err, OJ_ERR_ARG,
                       "-in_place keeps every row of the layer: -how can only "
                       "be left");
    if (command->k > 1)
        return oj_fail(err, OJ_ERR_ARG,
                       "-in_place has room for one join feature per row: -k "
                       "can only be 1");
    if (command->ties == OJ_TIES_ALL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-in_place has room for one join feature per row: -ties "
                       "can only be first");
    return OJ_OK;
}

oj_status oj_command_check(const struct oj_command *command,
                           struct oj_error *err)
{
    if (command->op < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "-op is missing: say which join, for example "
                       "-op nearest");
    OJ_TRY(check_tables(command, err));
    OJ_TRY(check_in_place(command, err));
    if (command->k > INT32_MAX)
        return oj_fail(err, OJ_ERR_ARG, "-k must be %d or less, not %lld",
                       INT32_MAX, (long long)command->k);
    if (command->batch > INT32_MAX)
        return oj_fail(err, OJ_ERR_ARG, "-batch must be %d or less, not %lld",
                       INT32_MAX, (long long)command->batch);
    if (command->threads > 4096)
        return oj_fail(err, OJ_ERR_ARG,
                       "-threads must be 4096 or less, not %lld",
                       (long long)command->threads);
    return OJ_OK;
}
