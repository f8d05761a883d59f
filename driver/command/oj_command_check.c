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
static const char one_reach[] = "both say how far";

static const struct clash clashes[] = {
    {"overwrite", "append", "one replaces the layer, the other keeps it"},
    {"input_layer", "sql", own_layers},
    {"join_layer", "join_sql", own_layers},
    {"q", "progress", "one hides the progress, the other shows it"},
    {"max_distance", "max_distance_field", one_reach},
    {"max_distance", "join_max_distance_field", one_reach},
    {"max_distance_field", "join_max_distance_field", one_reach},
    {"pick", "agg", "each makes one row of an input row's pairs"},
};

enum
{
    MAX_USELESS = 24
};

/* What has no effect beside an option, for one reason. */
struct useless
{
    const char *beside, *why;
    const char *options[MAX_USELESS]; /* up to the first NULL */
};

static const struct useless useless[] = {
    {"agg",
     "a row of aggregates stands for several join features",
     {"name_distance", "name_rank", "name_fid", "overlap",
      "nearest_point_fields", "bearing_field", "geometry"}},
    {"agg", "the aggregates name the join side's fields", {"join_select"}},
    {"window",
     "the boxes are the join side",
     {"join_layer", "join_where", "join_sql", "join_select", "join_srs", "joo",
      "on", "exclude", "unordered_pairs"}},
    {"explain",
     "-explain only says what would be done",
     {"benchmark", "validate", "json_summary", "q", "progress"}},
    {"in_place", "the layer keeps its geometries", {"geometry"}},
    {"in_place",
     "nothing is written to another dataset",
     {"unmatched_layer", "unmatched_join_layer", "f", "nln", "dsco", "lco",
      "doo", "nlt", "overwrite", "append", "update", "unsetFid", "a_srs"}},
    {"in_place", "the rows of a SELECT cannot be updated", {"sql"}},
    {"in_place", "all fields of the layer stay", {"select"}},
    {"benchmark",
     "the benchmark writes no layer",
     {"f", "nln", "dsco", "lco", "doo", "nlt", "overwrite", "append", "update",
      "unsetFid", "a_srs", "in_place", "unmatched_layer",
      "unmatched_join_layer", "geometry"}},
    {"benchmark",
     "the benchmark times the finding of pairs, and makes no rows of them",
     {"how", "pick", "agg", "prefix", "name_fid", "name_distance", "name_rank",
      "name_count", "overlap", "nearest_point_fields", "bearing_field",
      "select", "join_select"}},
    {"benchmark",
     "the benchmark holds all rows and pairs in memory at once",
     {"memory", "max_pairs", "batch"}},
    {"benchmark", "the benchmark goes through the backends", {"backend"}},
    {"benchmark", "the benchmark compares its rows itself", {"validate"}},
    {"benchmark", "its table can be had by -benchmark_csv", {"json_summary"}},
    {"benchmark", "the benchmark names each method as it begins", {"progress"}},
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

static oj_status fail_together(const char *a, const char *b, const char *why,
                               struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_ARG, "-%s and -%s do not go together: %s", a, b,
                   why);
}

static oj_status check_clashes(const struct oj_command *command,
                               struct oj_error *err)
{
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++)
    {
        const struct clash *clash = &clashes[i];
        if (oj_command_given(command, clash->a) &&
            oj_command_given(command, clash->b))
            return fail_together(clash->a, clash->b, clash->why, err);
    }
    return OJ_OK;
}

/* The first of options, which end with NULL, that is given; or NULL. */
static const char *first_given(const struct oj_command *command,
                               const char *const *options)
{
    while (*options != NULL && !oj_command_given(command, *options))
        options++;
    return *options;
}

static oj_status check_useless(const struct oj_command *command,
                               struct oj_error *err)
{
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
    {
        const char *found = first_given(command, useless[i].options);
        if (found != NULL && oj_command_given(command, useless[i].beside))
            return fail_together(useless[i].beside, found, useless[i].why, err);
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
    if (command->how != OJ_HOW_LEFT)
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

/* Columns and geometries that come from the join side. */
static oj_status check_columns(const struct oj_command *command,
                               struct oj_error *err)
{
    static const char *const of_join[] = {"name_fid",
                                          "name_distance",
                                          "name_rank",
                                          "name_count",
                                          "overlap",
                                          "nearest_point_fields",
                                          "bearing_field",
                                          "geometry",
                                          "pick",
                                          "agg",
                                          "prefix",
                                          "join_select",
                                          "unmatched_join_layer",
                                          NULL};
    const char *found;
    if ((command->op != OJ_OP_NEAREST && command->op != OJ_OP_DWITHIN) &&
        command->name_distance != NULL && command->name_distance[0] != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "-name_distance: -op %s has no distance",
                       oj_command_op_name(command));
    if (command->how != OJ_HOW_SEMI && command->how != OJ_HOW_ANTI)
        return OJ_OK;
    found = first_given(command, of_join);
    if (found == NULL)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-%s and -how %s do not go together: only the input "
                   "layer's geometry and fields are written",
                   found, command->how == OJ_HOW_SEMI ? "semi" : "anti");
}

static oj_status check_layer_type(const struct oj_command *command,
                                  struct oj_error *err)
{
    static const char *const of_geometries[] = {"geometry", "a_srs", NULL};
    const char *found = first_given(command, of_geometries);
    if (command->layer_type != OJ_LAYER_NONE || found == NULL)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-%s and -nlt NONE do not go together: no geometry is "
                   "written",
                   found);
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

/* Options that only some backends read. */
static const struct
{
    const char *option;
    const char *backends[4]; /* up to the first NULL */
    const char *text;        /* the same, for people */
} of_backends[] = {
    {"gpu", {"auto", "cuda", "cuda_quadrant"}, "cuda or auto"},
    {"gpu_memory", {"auto", "cuda", "cuda_quadrant"}, "cuda or auto"},
    {"gpu_batch", {"auto", "cuda", "cuda_quadrant"}, "cuda or auto"},
    {"quadrant_size",
     {"quadrant", "cuda_quadrant", "spatialindex_collective"},
     "quadrant, cuda_quadrant or spatialindex_collective"},
};

/* 1 when backends, which end with NULL, hold the one that joins, or the one
 * that joins again. */
static int has_backend(const struct oj_command *command,
                       const char *const *backends)
{
    for (; *backends != NULL; backends++)
    {
        if (strcmp(command->backend, *backends) == 0 ||
            (command->validate != NULL &&
             strcmp(command->validate, *backends) == 0))
            return 1;
    }
    return 0;
}

static oj_status check_backends(const struct oj_command *command,
                                struct oj_error *err)
{
    if (command->benchmark) /* takes all of them */
        return OJ_OK;
    for (size_t i = 0; i < sizeof of_backends / sizeof *of_backends; i++)
    {
        if (oj_command_given(command, of_backends[i].option) &&
            !has_backend(command, of_backends[i].backends))
            return oj_fail(err, OJ_ERR_ARG, "-%s goes with -backend %s, not %s",
                           of_backends[i].option, of_backends[i].text,
                           command->backend);
    }
    return OJ_OK;
}

oj_status oj_command_check(const struct oj_command *command,
                           struct oj_error *err)
{
    OJ_TRY(check_write_spec(command, err));
    OJ_TRY(oj_command_check_op(command, err));
    OJ_TRY(check_clashes(command, err));
    OJ_TRY(check_useless(command, err));
    OJ_TRY(check_points(command, err));
    OJ_TRY(check_in_place(command, err));
    OJ_TRY(check_columns(command, err));
    OJ_TRY(check_layer_type(command, err));
    OJ_TRY(check_backends(command, err));
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
