#include "oj_command_check.h"

#include "oj_command_op.h"

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
static const char no_join_side[] = "the boxes are the join side";
static const char one_reach[] = "both say how far";
static const char one_rule[] = "each makes one row of an input row's pairs";
static const char no_pair[] =
    "a row of aggregates stands for several join features";
static const char only_pairs[] = "the benchmark times the finding of pairs";
static const char own_geometry[] = "the layer keeps its geometries";
static const char only_said[] = "-explain only says what would be done";

static const struct clash clashes[] = {
    {"overwrite", "append", "one replaces the layer, the other keeps it"},
    {"input_layer", "sql", own_layers},
    {"join_layer", "join_sql", own_layers},
    {"q", "progress", "one hides the progress, the other shows it"},
    {"max_distance", "max_distance_field", one_reach},
    {"max_distance", "join_max_distance_field", one_reach},
    {"max_distance_field", "join_max_distance_field", one_reach},
    {"pick", "agg", one_rule},
    {"agg", "name_distance", no_pair},
    {"agg", "name_rank", no_pair},
    {"agg", "name_fid", no_pair},
    {"agg", "overlap", no_pair},
    {"agg", "nearest_point_fields", no_pair},
    {"agg", "bearing_field", no_pair},
    {"agg", "geometry", no_pair},
    {"agg", "join_select", "the aggregates name the join side's fields"},
    {"window", "join_layer", no_join_side},
    {"window", "join_where", no_join_side},
    {"window", "join_sql", no_join_side},
    {"window", "join_select", no_join_side},
    {"window", "join_srs", no_join_side},
    {"window", "joo", no_join_side},
    {"window", "on", no_join_side},
    {"window", "exclude", no_join_side},
    {"window", "unordered_pairs", no_join_side},
    {"explain", "benchmark", only_said},
    {"explain", "validate", only_said},
    {"explain", "json_summary", only_said},
    {"explain", "q", only_said},
    {"in_place", "geometry", own_geometry},
    {"in_place", "unmatched_layer", no_output},
    {"in_place", "unmatched_join_layer", no_output},
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
    {"benchmark", "pick", only_pairs},
    {"benchmark", "agg", only_pairs},
    {"benchmark", "unmatched_layer", no_output},
    {"benchmark", "unmatched_join_layer", no_output},
    {"benchmark", "geometry", no_output},
    {"benchmark", "validate", "the benchmark compares its rows itself"},
    {"benchmark", "json_summary", "its table can be had by -benchmark_csv"},
};

static const char writes_rows[] = "rows are not written, but read";
static const char own_run[] = "that is a run of its own, of the command";
static const char one_layer[] = "there is only the layer of the join";

/* What a join that is read as a dataset has no use for. */
static const struct
{
    const char *option, *why;
} not_of_datasets[] = {
    {"f", writes_rows},
    {"dsco", writes_rows},
    {"lco", writes_rows},
    {"doo", writes_rows},
    {"append", writes_rows},
    {"update", writes_rows},
    {"in_place", writes_rows},
    {"in_place_unsafe", writes_rows},
    {"json_summary", writes_rows},
    {"unmatched_layer", one_layer},
    {"unmatched_join_layer", one_layer},
    {"explain", own_run},
    {"validate", own_run},
    {"validate_report", own_run},
    {"benchmark", own_run},
    {"benchmark_csv", own_run},
    {"benchmark_seconds", own_run},
    {"help", own_run},
    {"overwrite", writes_rows},
    {"write_spec", own_run},
};

oj_status oj_command_check_dataset(const char *name, struct oj_error *err)
{
    for (size_t i = 0; i < sizeof not_of_datasets / sizeof *not_of_datasets;
         i++)
    {
        if (strcmp(not_of_datasets[i].option, name) == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s has no meaning for a join that is read as a "
                           "dataset: %s",
                           name, not_of_datasets[i].why);
    }
    return OJ_OK;
}

/* A file that holds the words holds those of a dataset. */
static oj_status check_write_spec(const struct oj_command *command,
                                  struct oj_error *err)
{
    const struct oj_option *option;
    if (command->write_spec == NULL)
        return OJ_OK;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (command->given[i] && strcmp(option->name, "write_spec") != 0 &&
            strcmp(option->name, "overwrite") != 0)
            OJ_TRY(oj_command_check_dataset(option->name, err));
    }
    return OJ_OK;
}

oj_status oj_command_check_needs(const struct oj_command *command,
                                 struct oj_error *err)
{
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
    {
        if (oj_command_given(command, needs[i].a) &&
            !oj_command_given(command, needs[i].b))
            return oj_fail(err, OJ_ERR_ARG, "-%s needs -%s", needs[i].a,
                           needs[i].b);
    }
    return OJ_OK;
}

static oj_status check_clashes(const struct oj_command *command,
                               struct oj_error *err)
{
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
    int has_rule = command->pick != NULL || command->aggregates != NULL;
    if (!command->in_place)
        return OJ_OK;
    if (command->how != OJ_KEEP_LEFT)
        return oj_fail(err, OJ_ERR_ARG,
                       "-in_place keeps every row of the layer: -how can only "
                       "be left");
    if (has_rule)
        return OJ_OK;
    if (command->op != OJ_OP_NEAREST)
        return oj_fail(err, OJ_ERR_ARG,
                       "-in_place has room for one join feature per row, and "
                       "-op %s can find several: choose one with -pick, for "
                       "example -pick first, or add them up with -agg",
                       oj_command_op_name(command));
    if (command->k > 1)
        return oj_fail(err, OJ_ERR_ARG,
                       "-in_place has room for one join feature per row: -k "
                       "can only be 1, unless -pick or -agg makes one of them");
    if (command->ties == OJ_TIES_ALL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-in_place has room for one join feature per row: -ties "
                       "can only be first, unless -pick or -agg makes one of "
                       "them");
    return OJ_OK;
}

/* Columns and geometries that come from a pair. */
static oj_status check_columns(const struct oj_command *command,
                               struct oj_error *err)
{
    static const char *const of_pairs[] = {
        "name_fid",      "name_distance",
        "name_rank",     "name_count",
        "overlap",       "nearest_point_fields",
        "bearing_field", "geometry",
        "pick",          "agg"};
    if ((command->op != OJ_OP_NEAREST && command->op != OJ_OP_DWITHIN) &&
        command->name_distance != NULL && command->name_distance[0] != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "-name_distance: -op %s has no distance",
                       oj_command_op_name(command));
    if (command->how != OJ_KEEP_SEMI && command->how != OJ_KEEP_ANTI)
        return OJ_OK;
    for (size_t i = 0; i < sizeof of_pairs / sizeof *of_pairs; i++)
    {
        if (oj_command_given(command, of_pairs[i]))
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s and -how %s do not go together: only the input "
                           "layer's geometry and fields are written",
                           of_pairs[i],
                           command->how == OJ_KEEP_SEMI ? "semi" : "anti");
    }
    return OJ_OK;
}

static oj_status check_points(const struct oj_command *command,
                              struct oj_error *err)
{
    static const char *const sides[] = {"input", "join"};
    if (!oj_command_given(command, "centroid_of") ||
        !oj_command_given(command, "point_on_surface_of"))
        return OJ_OK;
    for (int side = 0; side < 2; side++)
    {
        if ((command->centroid_of == OJ_SIDE_BOTH ||
             command->centroid_of == side) &&
            (command->point_on_surface_of == OJ_SIDE_BOTH ||
             command->point_on_surface_of == side))
            return oj_fail(err, OJ_ERR_ARG,
                           "-centroid_of and -point_on_surface_of both say "
                           "what the %s side is joined by: leave it out of "
                           "one of them",
                           sides[side]);
    }
    return OJ_OK;
}

static oj_status check_gpus(const struct oj_command *command,
                            struct oj_error *err)
{
    static const char *const of_gpus[] = {"gpu", "gpu_memory", "gpu_batch"};
    if (command->benchmark || strcmp(command->backend, "cuda") == 0 ||
        strcmp(command->backend, "cuda_quadrant") == 0 ||
        strcmp(command->backend, "auto") == 0)
        return OJ_OK;
    for (size_t i = 0; i < sizeof of_gpus / sizeof *of_gpus; i++)
    {
        if (oj_command_given(command, of_gpus[i]))
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s goes with -backend cuda or auto, not %s",
                           of_gpus[i], command->backend);
    }
    return OJ_OK;
}

oj_status oj_command_check(const struct oj_command *command,
                           struct oj_error *err)
{
    OJ_TRY(check_write_spec(command, err));
    OJ_TRY(oj_command_check_op(command, err));
    OJ_TRY(check_clashes(command, err));
    OJ_TRY(check_points(command, err));
    OJ_TRY(check_in_place(command, err));
    OJ_TRY(check_columns(command, err));
    OJ_TRY(check_gpus(command, err));
    if (command->k > INT32_MAX)
        return oj_fail(err, OJ_ERR_ARG, "-k must be %d or less, not %lld",
                       INT32_MAX, (long long)command->k);
    if (command->batch > INT32_MAX)
        return oj_fail(err, OJ_ERR_ARG, "-batch must be %d or less, not %lld",
                       INT32_MAX, (long long)command->batch);
    if (command->threads > OJ_MAX_THREADS)
        return oj_fail(err, OJ_ERR_ARG, "-threads must be %d or less, not %lld",
                       OJ_MAX_THREADS, (long long)command->threads);
    return OJ_OK;
}
