#include "oj_command_op.h"

#include "../base/oj_spelling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char window[] = "window";
static const char sphere[] = "sphere"; /* the reference for -metric sphere */

const char *oj_command_op_name(const struct oj_command *command)
{
    return command->is_window ? window
                              : oj_op_get((enum oj_op)command->op)->name;
}

/* Names that other systems have for the same joins. */
static const struct
{
    const char *word, *op;
} synonyms[] = {
    {"containsproperly", "contains_properly"},
    {"contains properly", "contains_properly"},
    {"covered_by", "coveredby"},
    {"covered by", "coveredby"},
    {"dist_within", "dwithin"},
    {"distance", "dwithin"},
    {"within_distance", "dwithin"},
    {"knn", "nearest"},
    {"closest", "nearest"},
    {"inside", "within"},
    {"intersect", "intersects"},
    {"equal", "equals"},
    {"envelope", "bbox"},
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
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        const char *name = oj_op_get((enum oj_op)i)->name;
        int here = oj_spelling_distance(meant, name);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s, ", name);
        if (here < least)
        {
            least = here;
            best = name;
        }
    }
    if (oj_spelling_distance(meant, window) < least)
        best = window;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
    {
        if (strcasecmp(synonyms[i].word, meant) == 0)
            best = synonyms[i].op;
    }
    return oj_fail(
        err, OJ_ERR_ARG, "-op %.60s: there is no such join%s%s%s; known: %s%s",
        word, best != NULL ? "; did you mean " : "", best != NULL ? best : "",
        best != NULL ? "?" : "", names, window);
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

static int is_given(const struct oj_command *command, const char *name)
{
    return oj_command_given(command, name);
}

static oj_status choose_op(struct oj_command *command, struct oj_error *err)
{
    static const char *const distances[] = {"max_distance", "min_distance",
                                            "metric"};
    command->op = OJ_OP_INTERSECTS;
    if (is_given(command, "relate"))
        command->op = OJ_OP_RELATE;
    else if (is_given(command, "window"))
        command->is_window = 1;
    else if (is_given(command, "k") || is_given(command, "ties") ||
             is_given(command, "distance_to"))
        command->op = OJ_OP_NEAREST;
    else if (is_given(command, "max_distance_field") ||
             is_given(command, "join_max_distance_field"))
        command->op = OJ_OP_DWITHIN;
    else
    {
        for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
        {
            if (is_given(command, distances[i]))
                return oj_fail(err, OJ_ERR_ARG,
                               "-%s without -op: write -op nearest (the "
                               "nearest join feature) or -op dwithin (every "
                               "join feature within -max_distance)",
                               distances[i]);
        }
    }
    return OJ_OK;
}

oj_status oj_command_settle_op(struct oj_command *command, struct oj_error *err)
{
    if (!is_given(command, "op"))
        OJ_TRY(choose_op(command, err));
    if (command->is_window && !is_given(command, "how") && !command->in_place)
        command->how = OJ_HOW_INNER;
    if (command->validate != NULL && command->validate[0] == '\0')
        command->validate =
            command->metric == OJ_METRIC_SPHERE ? sphere : "geos";
    return OJ_OK;
}

/* Options that only some joins read. */
static const struct
{
    const char *option;
    unsigned takes; /* enum oj_op_takes: the joins that take it */
    const char *joins;
} of_joins[] = {
    {"max_distance", OJ_TAKES_DISTANCE, "nearest or dwithin"},
    {"min_distance", OJ_TAKES_DISTANCE, "nearest or dwithin"},
    {"metric", OJ_TAKES_DISTANCE, "nearest or dwithin"},
    {"k", OJ_TAKES_K, "nearest"},
    {"ties", OJ_TAKES_K, "nearest"},
    {"distance_to", OJ_TAKES_K, "nearest"},
    {"relate", OJ_TAKES_MASK, "relate"},
};

static oj_status check_taken(const struct oj_command *command,
                             struct oj_error *err)
{
    unsigned takes = oj_op_get((enum oj_op)command->op)->takes;
    for (size_t i = 0; i < sizeof of_joins / sizeof *of_joins; i++)
    {
        if (is_given(command, of_joins[i].option) &&
            (takes & of_joins[i].takes) == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s has no meaning with -op %s; it goes with -op "
                           "%s",
                           of_joins[i].option, oj_command_op_name(command),
                           of_joins[i].joins);
    }
    return OJ_OK;
}

static oj_status check_distances(const struct oj_command *command,
                                 struct oj_error *err)
{
    static const char *const fields[] = {"max_distance_field",
                                         "join_max_distance_field"};
    int has_field = 0;
    for (int i = 0; i < 2; i++)
    {
        if (!is_given(command, fields[i]))
            continue;
        has_field = 1;
        if (command->op != OJ_OP_DWITHIN)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s has no meaning with -op %s; it goes with -op "
                           "dwithin",
                           fields[i], oj_command_op_name(command));
    }
    if (command->op == OJ_OP_DWITHIN && !has_field &&
        !is_given(command, "max_distance"))
        return oj_fail(err, OJ_ERR_ARG,
                       "-op dwithin needs a distance: -max_distance D[unit], "
                       "-max_distance_field F or -join_max_distance_field F");
    if (command->op == OJ_OP_DWITHIN && !has_field &&
        isinf(command->max_distance.value))
        return oj_fail(err, OJ_ERR_ARG,
                       "-op dwithin with an unbounded distance is every pair "
                       "there is: write a number");
    if (command->validate != NULL &&
        (command->metric == OJ_METRIC_SPHERE) !=
            (strcmp(command->validate, sphere) == 0))
        return oj_fail(
            err, OJ_ERR_ARG,
            command->metric == OJ_METRIC_SPHERE
                ? "-validate %s: this reference measures in the plane, as GEOS "
                  "does; that of -metric sphere is -validate sphere"
                : "-validate %s: this reference is for -metric sphere; in the "
                  "plane it is -validate geos",
            command->validate);
    if (command->metric == OJ_METRIC_SPHERE &&
        command->distance_to == OJ_TO_BOUNDARY)
        return oj_fail(err, OJ_ERR_ARG,
                       "-distance_to boundary is possible with -metric planar "
                       "only");
    return OJ_OK;
}

static oj_status check_mask(const struct oj_command *command,
                            struct oj_error *err)
{
    const char *mask = command->mask;
    if (command->op != OJ_OP_RELATE)
        return OJ_OK;
    if (mask == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-op relate needs -relate MASK, nine of the letters T F "
                       "* 0 1 2");
    if (!oj_mask_is_valid(mask))
        return oj_fail(err, OJ_ERR_ARG,
                       "-relate must be nine of the letters T F * 0 1 2, as "
                       "T*F**F***, not '%.40s'",
                       mask);
    return OJ_OK;
}

static oj_status check_excludes(const struct oj_command *command,
                                struct oj_error *err)
{
    for (const char **word = command->exclude; word != NULL && *word != NULL;
         word++)
    {
        if (strcasecmp(*word, "self") != 0 &&
            strcasecmp(*word, "same_geometry") != 0 &&
            strncasecmp(*word, "field=", 6) != 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-exclude must be self, same_geometry or field=F, "
                           "not '%.60s'",
                           *word);
    }
    return OJ_OK;
}

/* Of the join side -op window joins envelopes or boxes, and nothing else. */
static oj_status check_window(const struct oj_command *command,
                              struct oj_error *err)
{
    if (!command->is_window)
        return OJ_OK;
    if ((is_given(command, "centroid_of") &&
         command->centroid_of != OJ_SIDE_INPUT) ||
        (is_given(command, "point_on_surface_of") &&
         command->point_on_surface_of != OJ_SIDE_INPUT))
        return oj_fail(err, OJ_ERR_ARG,
                       "with -op window -centroid_of and -point_on_surface_of "
                       "can only be input: the join side are boxes");
    return OJ_OK;
}

oj_status oj_command_check_op(const struct oj_command *command,
                              struct oj_error *err)
{
    OJ_TRY(check_window(command, err));
    OJ_TRY(check_excludes(command, err));
    if (command->n_windows > 0 && !command->is_window)
        return oj_fail(err, OJ_ERR_ARG,
                       "-window has no meaning with -op %s; it goes with -op "
                       "window",
                       oj_command_op_name(command));
    OJ_TRY(check_taken(command, err));
    OJ_TRY(check_mask(command, err));
    return check_distances(command, err);
}
