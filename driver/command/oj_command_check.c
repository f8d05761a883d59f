#include "oj_command_check.h"

#include "../base/oj_spelling.h"
#include "../base/oj_words.h"
#include "oj_option.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char window[] = "window";
static const char sphere[] = "sphere"; /* the reference for -metric sphere */

/* ---- the join ----------------------------------------------------------- */

const char *oj_command_op_name(const struct oj_command *command)
{
    return command->is_window ? window
                              : oj_op_get((enum oj_op)command->op)->name;
}

/* Names that other systems have for the same joins. */
static const struct
{
    const char *op, *words;
} synonyms[] = {
    {"contains_properly", "containsproperly|contains properly"},
    {"coveredby", "covered_by|covered by"},
    {"dwithin", "dist_within|distance|within_distance"},
    {"nearest", "knn|closest"},
    {"within", "inside"},
    {"intersects", "intersect"},
    {"equals", "equal"},
    {"bbox", "envelope"},
};

static oj_status fail_op(const char *word, struct oj_error *err)
{
    char names[256] = "";
    const char *best = NULL;
    /* ST_Within and the like, as databases say. */
    const char *meant = strncasecmp(word, "st_", 3) == 0 ? word + 3 : word;
    /* Letters: with half of them or more than 3 wrong it is another word. */
    int half = (int)(strlen(meant) + 1) / 2;
    int least = half < 4 ? half : 4;
    for (int i = 0; i <= OJ_N_OPS; i++)
    {
        const char *name =
            i < OJ_N_OPS ? oj_op_get((enum oj_op)i)->name : window;
        int here = oj_spelling_distance(meant, name);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s",
                 used > 0 ? ", " : "", name);
        if (here < least)
        {
            least = here;
            best = name;
        }
    }
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
    {
        if (oj_words_find(synonyms[i].words, meant) >= 0)
            best = synonyms[i].op;
    }
    return oj_fail(err, OJ_ERR_ARG,
                   "-op %.60s: there is no such join%s%s%s; known: %s", word,
                   best != NULL ? "; did you mean " : "",
                   best != NULL ? best : "", best != NULL ? "?" : "", names);
}

oj_status oj_command_read_op(struct oj_command *command, const char *name,
                             struct oj_error *err)
{
    int op = oj_op_find(name);
    command->is_window = strcasecmp(name, window) == 0;
    if (command->is_window)
        op = OJ_OP_INTERSECTS;
    if (op < 0)
        return fail_op(name, err);
    command->op = op;
    return OJ_OK;
}

/* The first option of a list as "a|b|c" that is given, or NULL. */
static const char *first_given(const struct oj_command *command,
                               const char *names)
{
    for (;;)
    {
        size_t n = strcspn(names, "|");
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        if (oj_command_given(command, name))
            return oj_option_at(oj_option_find(name))->name;
        if (names[n] == '\0')
            return NULL;
        names += n + 1;
    }
}

static oj_status choose_op(struct oj_command *command, struct oj_error *err)
{
    const char *distance = first_given(command, "max_distance|min_distance|"
                                                "metric");
    command->op = OJ_OP_INTERSECTS;
    if (first_given(command, "relate") != NULL)
        command->op = OJ_OP_RELATE;
    else if (first_given(command, "window") != NULL)
        command->is_window = 1;
    else if (first_given(command, "k|ties|distance_to") != NULL)
        command->op = OJ_OP_NEAREST;
    else if (first_given(command,
                         "max_distance_field|join_max_distance_field") != NULL)
        command->op = OJ_OP_DWITHIN;
    else if (distance != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s without -op: write -op nearest (the nearest join "
                       "feature) or -op dwithin (every join feature within "
                       "-max_distance)",
                       distance);
    return OJ_OK;
}

static oj_status check_needs(const struct oj_command *command,
                             struct oj_error *err)
{
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (command->given[i] && option->needs != NULL &&
            !oj_command_given(command, option->needs))
            return oj_fail(err, OJ_ERR_ARG, "-%s needs -%s", option->name,
                           option->needs);
    }
    return OJ_OK;
}

oj_status oj_command_choose_op(struct oj_command *command, struct oj_error *err)
{
    if (!oj_command_given(command, "op"))
        OJ_TRY(choose_op(command, err));
    if (command->is_window && !oj_command_given(command, "how") &&
        !command->in_place)
        command->how = OJ_HOW_INNER;
    if (command->validate != NULL && command->validate[0] == '\0')
        command->validate =
            command->metric == OJ_METRIC_SPHERE ? sphere : "geos";
    return check_needs(command, err);
}

/* ---- options and the join ------------------------------------------------ */

static oj_status check_ops(const struct oj_command *command,
                           struct oj_error *err)
{
    const char *name = oj_command_op_name(command);
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        size_t n;
        if (!command->given[i] || option->ops == NULL ||
            oj_words_find(option->ops, name) >= 0)
            continue;
        n = strcspn(option->ops, "|");
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s has no meaning with -op %s; it goes with -op "
                       "%.*s%s%s",
                       option->name, name, (int)n, option->ops,
                       option->ops[n] != '\0' ? " or " : "",
                       option->ops[n] != '\0' ? option->ops + n + 1 : "");
    }
    return OJ_OK;
}

static oj_status check_distances(const struct oj_command *command,
                                 struct oj_error *err)
{
    int needs_distance = command->op == OJ_OP_DWITHIN &&
                         command->max_distance_field == NULL &&
                         command->join_max_distance_field == NULL;
    int is_sphere = command->metric == OJ_METRIC_SPHERE;
    if (needs_distance && !oj_command_given(command, "max_distance"))
        return oj_fail(err, OJ_ERR_ARG,
                       "-op dwithin needs a distance: -max_distance D[unit], "
                       "-max_distance_field F or -join_max_distance_field F");
    if (needs_distance && isinf(command->max_distance.value))
        return oj_fail(err, OJ_ERR_ARG,
                       "-op dwithin with an unbounded distance is every pair "
                       "there is: write a number");
    if (command->validate != NULL &&
        is_sphere != (strcmp(command->validate, sphere) == 0))
        return oj_fail(
            err, OJ_ERR_ARG,
            is_sphere
                ? "-validate %s: this reference measures in the plane, as GEOS "
                  "does; that of -metric sphere is -validate sphere"
                : "-validate %s: this reference is for -metric sphere; in the "
                  "plane it is -validate geos",
            command->validate);
    if (is_sphere && command->distance_to == OJ_TO_BOUNDARY)
        return oj_fail(err, OJ_ERR_ARG,
                       "-distance_to boundary is possible with -metric planar "
                       "only");
    return OJ_OK;
}

static oj_status check_mask(const struct oj_command *command,
                            struct oj_error *err)
{
    if (command->op != OJ_OP_RELATE)
        return OJ_OK;
    if (command->mask == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-op relate needs -relate MASK, nine of the letters T F "
                       "* 0 1 2");
    if (!oj_mask_is_valid(command->mask))
        return oj_fail(err, OJ_ERR_ARG,
                       "-relate must be nine of the letters T F * 0 1 2, as "
                       "T*F**F***, not '%.40s'",
                       command->mask);
    return OJ_OK;
}

static oj_status check_excludes(const struct oj_command *command,
                                struct oj_error *err)
{
    for (const char **word = command->exclude; word != NULL && *word != NULL;
         word++)
    {
        if (oj_words_find("self|same_geometry", *word) < 0 &&
            strncasecmp(*word, "field=", 6) != 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-exclude must be self, same_geometry or field=F, "
                           "not '%.60s'",
                           *word);
    }
    return OJ_OK;
}

/* 1 when the option, of which value is read, speaks of this side. */
static int is_of_side(const struct oj_command *command, const char *option,
                      int value, int side)
{
    return oj_command_given(command, option) &&
           (value == OJ_SIDE_BOTH || value == side);
}

/* Of the join side -op window joins envelopes or boxes, and nothing else. */
static oj_status check_points(const struct oj_command *command,
                              struct oj_error *err)
{
    static const char *const sides[] = {"input", "join"};
    for (int side = 0; side < 2; side++)
    {
        int centroid =
            is_of_side(command, "centroid_of", command->centroid_of, side);
        int on_surface = is_of_side(command, "point_on_surface_of",
                                    command->point_on_surface_of, side);
        if (side == OJ_SIDE_JOIN && command->is_window &&
            (centroid || on_surface))
            return oj_fail(err, OJ_ERR_ARG,
                           "with -op window -centroid_of and "
                           "-point_on_surface_of can only be input: the join "
                           "side are boxes");
        if (centroid && on_surface)
            return oj_fail(err, OJ_ERR_ARG,
                           "-centroid_of and -point_on_surface_of both say "
                           "what the %s side is joined by: leave it out of "
                           "one of them",
                           sides[side]);
    }
    return OJ_OK;
}

/* ---- options beside each other ------------------------------------------ */

/* One bit for each value of an option with choices. */
#define VALUE(i) (1u << (i))

/* What an option does not go together with, for one reason. */
static const struct
{
    const char *option, *why, *others;
    unsigned values; /* only with these; 0: with any */
} apart[] = {
    {"overwrite", "one replaces the layer, the other keeps it", "append", 0},
    {"input_layer", "a SELECT names its own layers", "sql", 0},
    {"join_layer", "a SELECT names its own layers", "join_sql", 0},
    {"q", "one hides the progress, the other shows it", "progress", 0},
    {"max_distance", "both say how far",
     "max_distance_field|join_max_distance_field", 0},
    {"max_distance_field", "both say how far", "join_max_distance_field", 0},
    {"pick", "each makes one row of an input row's pairs", "agg", 0},
    {"agg", "a row of aggregates stands for several join features",
     "name_distance|name_rank|name_fid|overlap|nearest_point_fields|"
     "bearing_field|geometry",
     0},
    {"agg", "the aggregates name the join side's fields", "join_select", 0},
    {"window", "the boxes are the join side",
     "join_layer|join_where|join_sql|join_select|join_srs|joo|on|exclude|"
     "unordered_pairs",
     0},
    {"explain", "-explain only says what would be done",
     "benchmark|validate|json_summary|q|progress", 0},
    {"in_place", "the layer keeps its geometries", "geometry", 0},
    {"in_place", "nothing is written to another dataset",
     "unmatched_layer|unmatched_join_layer|f|nln|dsco|lco|doo|nlt|overwrite|"
     "append|update|unsetFid|a_srs",
     0},
    {"in_place", "the rows of a SELECT cannot be updated", "sql", 0},
    {"in_place", "all fields of the layer stay", "select", 0},
    {"benchmark", "the benchmark writes no layer",
     "f|nln|dsco|lco|doo|nlt|overwrite|append|update|unsetFid|a_srs|in_place|"
     "unmatched_layer|unmatched_join_layer|geometry",
     0},
    {"benchmark",
     "the benchmark times the finding of pairs, and makes no rows of them",
     "how|pick|agg|prefix|name_fid|name_distance|name_rank|name_count|overlap|"
     "nearest_point_fields|bearing_field|select|join_select",
     0},
    {"benchmark", "the benchmark holds all rows and pairs in memory at once",
     "memory|max_pairs|batch", 0},
    {"benchmark", "the benchmark goes through the backends", "backend", 0},
    {"benchmark", "the benchmark compares its rows itself", "validate", 0},
    {"benchmark", "its table can be had by -benchmark_csv", "json_summary", 0},
    {"benchmark", "the benchmark names each method as it begins", "progress",
     0},
    {"how", "only the input layer's geometry and fields are written",
     "name_fid|name_distance|name_rank|name_count|overlap|"
     "nearest_point_fields|bearing_field|geometry|pick|agg|prefix|join_select|"
     "unmatched_join_layer",
     VALUE(OJ_HOW_SEMI) | VALUE(OJ_HOW_ANTI)},
    {"nlt", "no geometry is written", "geometry|a_srs", VALUE(OJ_LAYER_NONE)},
};

/* "semi" where the value of an option with choices is one of values, else NULL;
 * *n letters. */
static const char *choice_among(const struct oj_command *command,
                                const struct oj_option *option, unsigned values,
                                int *n)
{
    const char *choice = oj_option_choices(option);
    const void *at = (const char *)command + option->offset;
    int value = *(const int *)at;
    if ((values & VALUE(value)) == 0)
        return NULL;
    for (; value > 0; value--)
        choice += strcspn(choice, "|") + 1;
    *n = (int)strcspn(choice, "|");
    return choice;
}

static oj_status check_apart(const struct oj_command *command,
                             struct oj_error *err)
{
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
    {
        int row = oj_option_find(apart[i].option), n = 0;
        const char *option = apart[i].option, *choice = NULL, *other;
        if (!command->given[row])
            continue;
        other = first_given(command, apart[i].others);
        if (apart[i].values != 0)
            choice =
                choice_among(command, oj_option_at(row), apart[i].values, &n);
        if (other != NULL && choice != NULL)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s and -%s %.*s do not go together: %s", other,
                           option, n, choice, apart[i].why);
        if (other != NULL && apart[i].values == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s and -%s do not go together: %s", option, other,
                           apart[i].why);
    }
    return OJ_OK;
}

oj_status oj_command_check_dataset(const struct oj_option *option,
                                   struct oj_error *err)
{
    if (option->not_read == NULL)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-%s has no meaning for a join that is read as a dataset: "
                   "%s",
                   option->name, option->not_read);
}

/* A file that holds the words holds those of a dataset. */
static oj_status check_write_spec(const struct oj_command *command,
                                  struct oj_error *err)
{
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (command->write_spec != NULL && command->given[i] &&
            oj_words_find("write_spec|overwrite", option->name) < 0)
            OJ_TRY(oj_command_check_dataset(option, err));
    }
    return OJ_OK;
}

/* One row of columns per input row is all that a layer can take in place. */
static oj_status check_in_place(const struct oj_command *command,
                                struct oj_error *err)
{
    int has_rule = command->pick != NULL || command->aggregates != NULL;
    int has_ties = command->ties == OJ_TIES_ALL;
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
    if (command->k > 1 || has_ties)
        return oj_fail(err, OJ_ERR_ARG,
                       "-in_place has room for one join feature per row: -%s, "
                       "unless -pick or -agg makes one of them",
                       command->k > 1 ? "k can only be 1"
                                      : "ties can only be first");
    return OJ_OK;
}

/* Options that only some backends read. */
static const struct
{
    const char *options, *backends, *text;
} of_backends[] = {
    {"gpu|gpu_memory|gpu_batch", "auto|cuda|cuda_quadrant", "cuda or auto"},
    {"quadrant_size", "quadrant|cuda_quadrant|spatialindex_collective",
     "quadrant, cuda_quadrant or spatialindex_collective"},
};

/* Takes the backend that joins, or the one that joins again. */
static oj_status check_backends(const struct oj_command *command,
                                struct oj_error *err)
{
    if (command->benchmark) /* takes all of them */
        return OJ_OK;
    for (size_t i = 0; i < sizeof of_backends / sizeof *of_backends; i++)
    {
        const char *found = first_given(command, of_backends[i].options);
        const char *backends = of_backends[i].backends;
        if (found != NULL && oj_words_find(backends, command->backend) < 0 &&
            (command->validate == NULL ||
             oj_words_find(backends, command->validate) < 0))
            return oj_fail(err, OJ_ERR_ARG, "-%s goes with -backend %s, not %s",
                           found, of_backends[i].text, command->backend);
    }
    return OJ_OK;
}

oj_status oj_command_check(const struct oj_command *command,
                           struct oj_error *err)
{
    OJ_TRY(check_write_spec(command, err));
    OJ_TRY(check_excludes(command, err));
    OJ_TRY(check_ops(command, err));
    OJ_TRY(check_mask(command, err));
    OJ_TRY(check_distances(command, err));
    OJ_TRY(check_apart(command, err));
    OJ_TRY(check_points(command, err));
    OJ_TRY(check_in_place(command, err));
    if (oj_op_get((enum oj_op)command->op)->measure == NULL &&
        command->name_distance != NULL && command->name_distance[0] != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "-name_distance: -op %s has no distance",
                       oj_command_op_name(command));
    return check_backends(command, err);
}
