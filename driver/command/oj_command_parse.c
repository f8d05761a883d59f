#include "oj_parsed_command.h"

#include "../../algs/api/rows/oj_option_clash.h"
#include "../../algs/foundations/relation/oj_backend_registry.h"
#include "../../algs/foundations/relation/oj_gpu.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/text/oj_spelling.h"
#include "../base/oj_message.h"
#include "../base/oj_shell_words.h"
#include "../files/oj_path.h"
#include "oj_memory_size.h"
#include "oj_option_table.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* -op window is parsed as op_of_window, with boxes in place of the join
 * features. default_op is the join if no option selects one. */
static const char window[] = "window", op_of_window[] = "intersects",
                  default_op[] = "intersects";

/* ---- the join ------------------------------------------------------------ */

const char *oj_command_op_name(const struct oj_command *command)
{
    return command->is_window ? window : oj_op_get(command->relation.op)->name;
}

int oj_command_has_option(const struct oj_command *command, const char *name)
{
    int row = oj_option_find(name);
    return row >= 0 && command->given[row];
}

struct oj_distance oj_command_distance(const struct oj_command *command,
                                       const char *name)
{
    int row = oj_option_find(name);
    const void *at = (const char *)command + oj_option_at(row)->offset;
    return (struct oj_distance){*(const double *)at,
                                (enum oj_unit)command->unit[row]};
}

int oj_command_option_is_of_side(const struct oj_command *command,
                                 const char *name, int side)
{
    int row = oj_option_find(name);
    int of = *(const int *)((const char *)command + oj_option_at(row)->offset);
    return command->given[row] && (of == OJ_SIDE_BOTH || of == side);
}

static oj_status fail_unknown_op(const char *word, struct oj_error *err)
{
    char names[256] = "";
    const char *best = NULL;
    /* Databases write ST_Within; the prefix is ignored. */
    const char *meant = strncasecmp(word, "st_", 3) == 0 ? word + 3 : word;
    /* Suggest a join only if fewer than 4 letters and fewer than half are
     * wrong. */
    int half = (int)(strlen(meant) + 1) / 2;
    int least = half < 4 ? half : 4;
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        const struct oj_op_info *op = oj_op_get((enum oj_op)i);
        int here = oj_spelling_distance(meant, op->name);
        if (op->synonyms != NULL && oj_words_find(op->synonyms, meant) >= 0)
            here = -1;
        if (here < least)
        {
            least = here;
            best = op->name;
        }
    }
    if (oj_spelling_distance(meant, window) < least)
        best = window;
    oj_op_names(", ", names, sizeof names);
    return oj_fail(err, OJ_ERR_ARG,
                   "-op %.60s: there is no such join%s%s%s; known: %s, %s",
                   word, best != NULL ? "; did you mean " : "",
                   best != NULL ? best : "", best != NULL ? "?" : "", names,
                   window);
}

static oj_status set_join_operation(struct oj_command *command,
                                    const char *name, struct oj_error *err)
{
    int op = oj_op_find(name);
    command->is_window = strcasecmp(name, window) == 0;
    if (command->is_window)
        op = oj_op_find(op_of_window);
    if (op < 0)
        return fail_unknown_op(name, err);
    command->relation.op = (enum oj_op)op;
    return OJ_OK;
}

/* Returns the first option in names ("a|b|c") that is given, or NULL. */
static const char *first_given_option(const struct oj_command *command,
                                      const char *names)
{
    const char *at;
    int n;
    for (int i = 0; (at = oj_words_at(names, i, &n)) != NULL; i++)
    {
        const char *name = oj_words_excerpt(at, (size_t)n);
        if (oj_command_has_option(command, name))
            return oj_option_at(oj_option_find(name))->name;
    }
    return NULL;
}

int oj_command_needs_shapes(const struct oj_command *command)
{
    return oj_relation_is_of_shapes(&command->relation) ||
           first_given_option(command,
                              "max_distance|min_distance|overlap|bearing_field|"
                              "matrix_field|relation_field|"
                              "nearest_point_fields|geometry|centroid_of|"
                              "point_on_surface_of") != NULL ||
           (command->pick != NULL &&
            oj_words_find("nearest|largest_overlap|smallest_area|largest_area",
                          command->pick) >= 0) ||
           CSLFindString((CSLConstList)command->exclude, "same_geometry") >= 0;
}

/* Fails because an option that several joins take is given, but -op is not. */
static oj_status fail_without_op(const struct oj_option *option,
                                 struct oj_error *err)
{
    char joins[512] = "";
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        const struct oj_op_info *op = oj_op_get((enum oj_op)i);
        if (oj_words_find(option->ops, op->name) >= 0)
            oj_message_append(joins, sizeof joins, "%s-op %s (%s)",
                              joins[0] != '\0' ? " or " : "", op->name,
                              op->description);
    }
    return oj_fail(err, OJ_ERR_ARG, "-%s alone does not choose a join: add %s",
                   option->name, joins);
}

/* Returns the only join that takes the option, or NULL. Joins of attributes
 * count only if -similar or -vector is given. */
static const char *sole_op_of_option(const struct oj_command *command,
                                     const struct oj_option *option)
{
    const char *only = NULL;
    if (strchr(option->ops, '|') == NULL)
        return option->ops;
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        const struct oj_op_info *op = oj_op_get((enum oj_op)i);
        if (oj_words_find(option->ops, op->name) < 0 ||
            (command->similar == NULL && command->vector == NULL &&
             (op->takes & OJ_TAKES_ATTRIBUTES) != 0))
            continue;
        if (only != NULL)
            return NULL;
        only = op->name;
    }
    return only;
}

/* Derives the join from the other options if -op is missing. */
static oj_status infer_op(struct oj_command *command, struct oj_error *err)
{
    const struct oj_option *option, *of_several = NULL;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        const char *op;
        if (!command->given[i] || option->ops == NULL)
            continue;
        op = sole_op_of_option(command, option);
        if (op != NULL)
            return set_join_operation(command, op, err);
        of_several = of_several != NULL ? of_several : option;
    }
    if (command->similar != NULL || command->vector != NULL)
        return set_join_operation(command, "similar", err);
    if (of_several != NULL)
        return fail_without_op(of_several, err);
    return set_join_operation(command, default_op, err);
}

static oj_status
check_options_that_need_others(const struct oj_command *command,
                               struct oj_error *err)
{
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (command->given[i] && option->needs != NULL &&
            !oj_command_has_option(command, option->needs))
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s needs -%s: write both, or neither",
                           option->name, option->needs);
    }
    return OJ_OK;
}

/* Sets the join, and the defaults that depend on it: those of -how, -k and
 * -validate. Called after the last word is read, before the datasets are
 * counted. */
static oj_status set_op_and_defaults(struct oj_command *command,
                                     struct oj_error *err)
{
    struct oj_relation *relation = &command->relation;
    if (!oj_command_has_option(command, "op"))
        OJ_TRY(infer_op(command, err));
    if (oj_relation_sorts_by_measure(relation) &&
        !oj_command_has_option(command, "k"))
        relation->k = oj_op_get(relation->op)->k;
    if (command->is_window && !oj_command_has_option(command, "how") &&
        !command->in_place)
        command->how = OJ_HOW_INNER;
    if (command->validate != NULL && command->validate[0] == '\0')
        command->validate = oj_relation_reference_backend(relation);
    return check_options_that_need_others(command, err);
}

/* ---- options and the join ------------------------------------------------ */

static oj_status check_options_fit_op(const struct oj_command *command,
                                      struct oj_error *err)
{
    const char *name = oj_command_op_name(command);
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        char ops[256] = "";
        const char *at;
        if (!command->given[i] || option->ops == NULL ||
            oj_words_find(option->ops, name) >= 0)
            continue;
        for (int w = 0, n; (at = oj_words_at(option->ops, w, &n)) != NULL; w++)
            oj_message_append(ops, sizeof ops, "%s%.*s", w > 0 ? " or " : "", n,
                              at);
        return oj_fail(
            err, OJ_ERR_ARG,
            "-%s has no meaning with -op %s, only with -op %s: leave it out",
            option->name, name, ops);
    }
    return OJ_OK;
}

/* Refuses distances that are missing or meaningless for the join. */
static oj_status check_distance_values(const struct oj_command *command,
                                       struct oj_error *err)
{
    const struct oj_op_info *op = oj_op_get(command->relation.op);
    if (op->needs != NULL && first_given_option(command, op->needs) == NULL)
        return oj_fail(err, OJ_ERR_ARG, "-op %s needs %s", op->name,
                       op->needs_text);
    if ((op->takes & OJ_TAKES_K) == 0 &&
        oj_command_has_option(command, "max_distance") &&
        isinf(command->relation.max_distance))
        return oj_fail(err, OJ_ERR_ARG,
                       "-op %s with an unbounded distance matches every "
                       "pair: write a number",
                       op->name);
    if (oj_command_has_option(command, "densify") &&
        !(command->relation.densify > 0.0))
        return oj_fail(err, OJ_ERR_ARG,
                       "-densify must be above 0: write a length, as 10m, or "
                       "leave it out");
    return OJ_OK;
}

static oj_status check_exclude_option(const struct oj_command *command,
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

/* ---- options together ---------------------------------------------------- */

/* Returns the value of an option, "" for a flag, or NULL if it is not given; a
 * callback for struct oj_given_options. */
static const char *value_of_given_option(const void *user, const char *name)
{
    const struct oj_command *command = user;
    const int row = oj_option_find(name);
    const struct oj_option *option = oj_option_at(row);
    const void *at = (const char *)command + option->offset;
    if (!command->given[row])
        return NULL;
    switch (option->kind)
    {
        case OJ_OPTION_CHOICE:
            return oj_option_choice_word(option, *(const int *)at);
        case OJ_OPTION_TEXT:
        case OJ_OPTION_TEXT_OR_FILE:
        case OJ_OPTION_REFERENCE:
        case OJ_OPTION_FLAG_OR_WORD:
            return *(const char *const *)at;
        default:
            return "";
    }
}

static oj_status check_options_go_together(const struct oj_command *command,
                                           struct oj_error *err)
{
    const struct oj_given_options given = {.relation = &command->relation,
                                           .op = oj_command_op_name(command),
                                           .word = value_of_given_option,
                                           .user = command};
    return oj_option_clash_check(&given, err);
}

/* Refuses an option that is meaningless for a join that is read as a dataset.
 */
static oj_status check_option_fits_dataset(const struct oj_option *option,
                                           struct oj_error *err)
{
    if (option->not_read == NULL)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-%s has no meaning in a spec file or a dataset: %s; leave "
                   "it out",
                   option->name, option->not_read);
}

/* If -write_spec is given, refuses options that a dataset does not accept,
 * because the spec file that is written is opened as a dataset. */
static oj_status check_options_fit_write_spec(const struct oj_command *command,
                                              struct oj_error *err)
{
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (command->write_spec != NULL && command->given[i] &&
            oj_words_find("write_spec|overwrite", option->name) < 0)
            OJ_TRY(check_option_fits_dataset(option, err));
    }
    return OJ_OK;
}

/* Options that only some backends use. */
static const struct
{
    const char *options, *backends, *text;
} of_backends[] = {
    {"gpu|gpu_memory|gpu_batch",
     "auto|cuda|cuda_quadrant|cuda_lists|cuda_size_blocks|cuda_zlists|"
     "cuda_cut_points|cuda_gpics_quadtree|cuda_gpics_kdtree|"
     "cuda_gpics_quadtree_single|cuda_gpics_kdtree_single",
     "cuda or auto"},
    {"quadrant_size",
     "quadrant|cuda_quadrant|spatialindex_collective|gpics_quadtree|"
     "gpics_kdtree|gpics_quadtree_single|gpics_kdtree_single|"
     "cuda_gpics_quadtree|cuda_gpics_kdtree|cuda_gpics_quadtree_single|"
     "cuda_gpics_kdtree_single",
     "quadrant, cuda_quadrant, spatialindex_collective, gpics_* or "
     "cuda_gpics_*"},
};

/* Refuses options that neither the backend of the join nor the reference of
 * -validate uses. */
static oj_status check_options_fit_backend(const struct oj_command *command,
                                           struct oj_error *err)
{
    if (command->benchmark) /* a benchmark runs all backends */
        return OJ_OK;
    for (size_t i = 0; i < sizeof of_backends / sizeof *of_backends; i++)
    {
        const char *found = first_given_option(command, of_backends[i].options);
        const char *backends = of_backends[i].backends;
        if (found != NULL && oj_words_find(backends, command->backend) < 0 &&
            (command->validate == NULL ||
             oj_words_find(backends, command->validate) < 0))
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s has no meaning with -backend %s, only with %s: "
                           "leave it out",
                           found, command->backend, of_backends[i].text);
    }
    return OJ_OK;
}

/* ---- conditions on attributes -------------------------------------------- */

static oj_status parse_similar_options(struct oj_command *command,
                                       struct oj_error *err)
{
    struct oj_relation *relation = &command->relation;
    struct oj_similar all = {0};
    if (command->min_similarity != NULL)
        OJ_TRY(oj_text_threshold_parse("-", "min_similarity",
                                       command->min_similarity, &all.numerator,
                                       &all.denominator, err));
    for (const char **word = command->similar; word != NULL && *word != NULL;
         word++)
    {
        struct oj_similar *own = &command->similar_fields[relation->n_similar];
        const struct oj_similar *limit = own;
        if (relation->n_similar == OJ_MOST_TEXTS)
            return oj_fail(err, OJ_ERR_ARG,
                           "-similar can be given at most %d times: leave some "
                           "out, or concatenate fields with +",
                           OJ_MOST_TEXTS);
        OJ_TRY(oj_similar_fields_parse("-", *word, own, err));
        if (own->denominator == 0)
            limit = &all;
        if (limit->denominator == 0 && !oj_command_has_option(command, "k"))
            return oj_fail(
                err, OJ_ERR_ARG,
                "-similar %.100s does not say how similar the texts must be: "
                "write -similar %.100s:0.6 (0.6 is a good start for names), "
                "-min_similarity 0.6 for all of them, or -k K for the K best",
                *word, *word);
        relation->similar[relation->n_similar++] = (struct oj_text_condition){
            (enum oj_text_measure)command->measure, limit->numerator,
            limit->denominator > 0 ? limit->denominator : 1};
    }
    return OJ_OK;
}

static oj_status parse_vector_options(struct oj_command *command,
                                      struct oj_error *err)
{
    struct oj_vector_condition *condition = &command->relation.vector;
    char *end;
    if (command->vector == NULL)
        return OJ_OK;
    OJ_TRY(oj_vector_fields_parse("-", command->vector, &command->vector_fields,
                                  err));
    condition->is_asked = 1;
    condition->max_difference = INFINITY;
    if (command->max_difference == NULL && oj_command_has_option(command, "k"))
        return OJ_OK;
    if (command->max_difference == NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "-vector %.100s does not say how different vectors may "
                       "be: write -max_difference D, or -k K for the K nearest",
                       command->vector);
    condition->max_difference = CPLStrtod(command->max_difference, &end);
    if (end == command->max_difference || *end != '\0' ||
        !(condition->max_difference >= 0.0))
        return oj_fail(err, OJ_ERR_ARG,
                       "-max_difference must be a number, 0 or more, not "
                       "'%.60s'",
                       command->max_difference);
    return OJ_OK;
}

static oj_status parse_span_options(struct oj_command *command,
                                    struct oj_error *err)
{
    static const char *const names[OJ_MOST_SPANS] = {"within_time", "during"};
    const char *const words[OJ_MOST_SPANS] = {command->within_time,
                                              command->during};
    struct oj_relation *relation = &command->relation;
    for (int i = 0; i < OJ_MOST_SPANS; i++)
    {
        struct oj_span_words *to = &command->span_words[relation->n_spans];
        if (words[i] == NULL)
            continue;
        OJ_TRY(oj_span_words_parse("-", names[i], i == 0, words[i], to, err));
        relation->spans[relation->n_spans++] = to->condition;
    }
    return OJ_OK;
}

static oj_status parse_heading_option(struct oj_command *command,
                                      struct oj_error *err)
{
    struct oj_heading_condition *heading = &command->relation.heading;
    if (command->heading == NULL)
        return OJ_OK;
    heading->is_asked = 1;
    return oj_heading_words_parse("-", command->heading,
                                  &command->heading_field, &heading->tolerance,
                                  err);
}

static oj_status check_skip_failures(const struct oj_command *command,
                                     struct oj_error *err)
{
    if (!command->skip_failures || command->events != NULL ||
        command->input.geometry != NULL || command->join.geometry != NULL)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-skipfailures needs -events, -input_geometry or "
                   "-join_geometry: write one of them, or leave it out");
}

static oj_status check_all_options(const struct oj_command *command,
                                   struct oj_error *err)
{
    OJ_TRY(check_skip_failures(command, err));
    OJ_TRY(check_options_fit_write_spec(command, err));
    OJ_TRY(check_exclude_option(command, err));
    OJ_TRY(check_options_fit_op(command, err));
    OJ_TRY(check_distance_values(command, err));
    OJ_TRY(check_options_go_together(command, err));
    OJ_TRY(oj_relation_check(&command->relation, err));
    return check_options_fit_backend(command, err);
}

/* ---- command line -------------------------------------------------------- */

struct argument_reader
{
    struct oj_command *command;
    const char **argv; /* arguments, without the program's name */
    int argc;
    int next;        /* index of the next argument */
    int positionals; /* number of arguments that are no options, so far */
    const char *positional[3];
    /* folder of the spec file, to which paths are relative; "" if there is no
     * spec file */
    const char *folder;
    /* index in argv of a number whose unit was written as a separate word, as
     * in "-max_distance 10 ft"; 0 if there is no such number */
    int cut_value;
    /* option_before_word: an option with an optional argument, given without
     * it. unknown_word: the word after that option, which is none of its
     * choices and does not look like a dataset (no '.', '/' or ':'). An error
     * about too many datasets names both. Both are NULL if there is no such
     * option. */
    const struct oj_option *option_before_word;
    const char *unknown_word;
};

/* Copies text into command->texts, which owns it. Returns the copy. */
static const char *copy_text_into_command(struct oj_command *command,
                                          const char *text)
{
    command->texts = CSLAddString(command->texts, text);
    return command->texts[CSLCount(command->texts) - 1];
}

/* Resolves the name of a file or dataset, which is relative to the spec file.
 * Returns the path.
 */
static const char *keep_resolved_path(const struct argument_reader *r,
                                      const char *name)
{
    char *path = oj_path_resolve(r->folder, name);
    const char *kept = copy_text_into_command(r->command, path);
    CPLFree(path);
    return kept;
}

/* Reads the file that the argument names; drops white space at its end. */
static oj_status read_file(const struct argument_reader *r, const char *word,
                           const struct oj_option *option, const char **out,
                           struct oj_error *err)
{
    enum
    {
        MAX_BYTES = 10 * 1024 * 1024
    };
    const char *name = keep_resolved_path(r, word);
    GByte *bytes = NULL;
    vsi_l_offset n = 0;
    int has_read;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    has_read = VSIIngestFile(NULL, name, &bytes, &n, MAX_BYTES);
    CPLPopErrorHandler();
    if (!has_read)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s %s%s: this file cannot be read, or is larger than "
                       "%d bytes; name a readable and smaller one",
                       option->name,
                       option->kind == OJ_OPTION_TEXT_OR_FILE ? "@" : "", name,
                       MAX_BYTES);
    while (n > 0 && strchr(" \t\r\n", bytes[n - 1]) != NULL)
        bytes[--n] = '\0';
    *out = copy_text_into_command(r->command, (const char *)bytes);
    VSIFree(bytes);
    return OJ_OK;
}

static oj_status read_count(const struct oj_option *option, const char *word,
                            int64_t *out, struct oj_error *err)
{
    char *end;
    /* for a value beyond 64 bits strtoll() returns the largest int64_t */
    long long value = strtoll(word, &end, 10);
    if (end == word || *end != '\0' || value < option->minimum)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s must be a whole number of %lld or more, not '%s'",
                       option->name, (long long)option->minimum, word);
    if (option->maximum > 0 && value > option->maximum)
        return oj_fail(err, OJ_ERR_ARG, "-%s must be %lld or less, not %lld",
                       option->name, (long long)option->maximum, value);
    *out = value;
    return OJ_OK;
}

static oj_status read_real(const struct oj_option *option, const char *word,
                           double *out, struct oj_error *err)
{
    char *end;
    double value = CPLStrtod(word, &end);
    if (end == word || *end != '\0' || !isfinite(value))
        return oj_fail(err, OJ_ERR_ARG, "-%s must be %s, not '%s'",
                       option->name,
                       option->kind == OJ_OPTION_SECONDS
                           ? "a number"
                           : "four numbers, XMIN YMIN XMAX YMAX",
                       word);
    *out = value;
    return OJ_OK;
}

/* Parses a duration, in seconds unless a unit follows. */
static oj_status read_seconds(const struct oj_option *option, const char *word,
                              double *out, struct oj_error *err)
{
    static const struct
    {
        const char *unit;
        double seconds;
    } units[] = {{"", 1.0}, {"s", 1.0}, {"ms", 0.001}, {"min", 60.0}};
    char *end;
    const double value = CPLStrtod(word, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    {
        if (end == word || !isfinite(value) ||
            strcasecmp(end, units[i].unit) != 0)
            continue;
        if (!(value > 0))
            return oj_fail(err, OJ_ERR_ARG, "-%s must be more than 0, not '%s'",
                           option->name, word);
        *out = value * units[i].seconds;
        return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_ARG,
                   "-%s must be a number of seconds, such as 2, 1.5s, 200ms or "
                   "1min, not '%s'",
                   option->name, word);
}

static oj_status read_box(const struct oj_option *option,
                          const char *const *words, double box[4],
                          struct oj_error *err)
{
    double read[4];
    for (int i = 0; i < 4; i++)
        OJ_TRY(read_real(option, words[i], &read[i], err));
    if (read[0] > read[2] || read[1] > read[3])
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s %s %s %s %s is empty: write XMIN YMIN XMAX YMAX",
                       option->name, words[0], words[1], words[2], words[3]);
    memcpy(box, read, sizeof read);
    return OJ_OK;
}

static oj_status append_box(struct oj_command *command,
                            const struct oj_option *option,
                            const char *const *words, struct oj_error *err)
{
    double box[4], *boxes = (double *)command->windows;
    OJ_TRY(read_box(option, words, box, err));
    boxes = CPLRealloc(boxes, (size_t)(command->n_windows + 1) * sizeof box);
    memcpy(&boxes[4 * command->n_windows++], box, sizeof box);
    command->windows = boxes;
    return OJ_OK;
}

/* Parses the numbers of GPUs, "0,2,...", into one bit per GPU. */
static oj_status read_gpus(const char *word, uint64_t *out,
                           struct oj_error *err)
{
    uint64_t gpus = 0;
    char *end;
    for (const char *at = word;; at = end + 1)
    {
        long i = strtol(at, &end, 10);
        if (end == at || *at < '0' || *at > '9' ||
            i >= OJ_GPU_MAX_DEVICES - 1 || (*end != '\0' && *end != ','))
            return oj_fail(
                err, OJ_ERR_ARG,
                "-gpu takes all, or numbers of GPUs below %d, such as 0 "
                "or 0,2 (ogrjoin --devices lists them), not '%s'",
                OJ_GPU_MAX_DEVICES - 1, word);
        gpus |= (uint64_t)1 << i;
        if (*end == '\0')
            break;
    }
    *out = gpus;
    return OJ_OK;
}

/* Parses the arguments of option into struct oj_command. */
static oj_status read_value(struct argument_reader *r,
                            const struct oj_option *option,
                            const char *const *words, struct oj_error *err)
{
    struct oj_command *command = r->command;
    void *at = (char *)command + option->offset;
    struct oj_distance distance;
    const struct oj_backend *backend;
    switch (option->kind)
    {
        case OJ_OPTION_FLAG:
            *(int *)at = 1;
            return OJ_OK;
        case OJ_OPTION_TEXT:
            *(const char **)at = words[0];
            return OJ_OK;
        case OJ_OPTION_TEXT_OR_FILE:
            *(const char **)at = words[0];
            return words[0][0] == '@'
                       ? read_file(r, words[0] + 1, option, at, err)
                       : OJ_OK;
        case OJ_OPTION_FILE:
            return read_file(r, words[0], option, at, err);
        case OJ_OPTION_LIST:
            if (strchr(words[0], '=') == NULL &&
                strcmp(option->arguments, "NAME=VALUE") == 0)
                return oj_fail(err, OJ_ERR_ARG,
                               "-%s takes NAME=VALUE, not '%s'", option->name,
                               words[0]);
            *(char ***)at = CSLAddString(*(char ***)at, words[0]);
            return OJ_OK;
        case OJ_OPTION_CHOICE:
            return oj_choice_read("-", option->name, oj_option_choices(option),
                                  words[0], at, err);
        case OJ_OPTION_THREADS:
            *(int64_t *)at = 0;
            if (strcasecmp(words[0], option->choices) == 0)
                return OJ_OK;
            return read_count(option, words[0], at, err);
        case OJ_OPTION_COUNT:
            return read_count(option, words[0], at, err);
        case OJ_OPTION_SECONDS:
            return read_seconds(option, words[0], at, err);
        case OJ_OPTION_DISTANCE:
            OJ_TRY(
                oj_distance_parse("-", option->name, words[0], &distance, err));
            *(double *)at = distance.value;
            command->unit[oj_option_find(option->name)] =
                (unsigned char)distance.unit;
            return OJ_OK;
        case OJ_OPTION_PATTERN:
            return oj_mask_read("-", option->name, words[0], at, err);
        case OJ_OPTION_BOX:
            command->has_spat = 1;
            return read_box(option, words, at, err);
        case OJ_OPTION_BOXES:
            return append_box(command, option, words, err);
        case OJ_OPTION_BYTES:
            return oj_memory_size_read(words[0], at)
                       ? OJ_OK
                       : oj_fail(
                             err, OJ_ERR_ARG,
                             "-%s must be a number of bytes, such as 512M or "
                             "4G, not '%s'",
                             option->name, words[0]);
        case OJ_OPTION_GPUS:
            *(uint64_t *)at = OJ_ALL_GPUS;
            return strcasecmp(words[0], "all") == 0
                       ? OJ_OK
                       : read_gpus(words[0], at, err);
        case OJ_OPTION_OP:
            return set_join_operation(command, words[0], err);
        case OJ_OPTION_BACKEND:
            OJ_TRY(oj_backend_read("-", option->name, words[0], &backend, err));
            *(const char **)at = backend->name;
            return OJ_OK;
        case OJ_OPTION_REFERENCE:
            /* set_op_and_defaults() replaces "" by the join's default
             * reference */
            *(const char **)at = "";
            if (r->next < r->argc && oj_backend_find(r->argv[r->next]) != NULL)
                *(const char **)at = oj_backend_find(r->argv[r->next++])->name;
            return OJ_OK;
        case OJ_OPTION_FLAG_OR_WORD:
            *(const char **)at = "";
            if (r->next < r->argc &&
                oj_words_find(option->choices, r->argv[r->next]) >= 0)
                *(const char **)at = r->argv[r->next++];
            else if (r->next < r->argc && r->argv[r->next][0] != '-' &&
                     strpbrk(r->argv[r->next], "./:") == NULL)
            {
                r->option_before_word = option;
                r->unknown_word = r->argv[r->next];
            }
            return OJ_OK;
    }
    return oj_fail_internal(err, "option -%s has no kind", option->name);
}

/* Refuses a second use of an option that has one value: the first value would
 * be lost. */
static oj_status check_option_is_not_repeated(const struct oj_option *option,
                                              struct oj_error *err)
{
    if (option->kind == OJ_OPTION_FLAG || option->kind == OJ_OPTION_LIST ||
        option->kind == OJ_OPTION_BOXES)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG, "-%s is given twice: %s", option->name,
                   option->once != NULL ? option->once : "leave one out");
}

/* Returns 1 if value and unit, two words of the command line, are one value of
 * option when written together (10 and ft). The second word could also be the
 * name of a dataset. */
static int is_value_with_unit(const struct oj_option *option, const char *value,
                              const char *unit)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_distance distance;
    char text[64];
    double seconds;
    int64_t bytes;
    if (strchr("0123456789.", value[0]) == NULL || value[0] == '\0' ||
        !isalpha((unsigned char)unit[0]))
        return 0;
    snprintf(text, sizeof text, "%.30s%.30s", value, unit);
    switch (option->kind)
    {
        case OJ_OPTION_DISTANCE:
            return oj_distance_parse("-", option->name, text, &distance,
                                     &err) == OJ_OK;
        case OJ_OPTION_SECONDS:
            return read_seconds(option, text, &seconds, &err) == OJ_OK;
        case OJ_OPTION_BYTES:
            return oj_memory_size_read(text, &bytes);
        default:
            return 0;
    }
}

/* Refuses words that are options where values of `option` must stand: the user
 * has forgotten a value. */
static oj_status check_words_are_values(const struct oj_option *option,
                                        const char *const *words, int n,
                                        struct oj_error *err)
{
    for (int i = 0; i < n; i++)
    {
        const struct oj_option *other = oj_option_of_word(words[i]);
        if (other != NULL)
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s needs a value, and the option -%s follows: "
                           "-%s %s",
                           option->name, other->name, option->name,
                           option->arguments);
    }
    return OJ_OK;
}

static oj_status read_option(struct argument_reader *r, const char *word,
                             struct oj_error *err)
{
    const struct oj_option *option = oj_option_of_word(word);
    const char *const *words = &r->argv[r->next];
    char hint[300];
    int row, n;
    if (option == NULL && r->command->is_dataset && oj_option_is_of_gdal(word))
        return oj_fail(err, OJ_ERR_ARG,
                       "%.100s is an option of the program that opens the "
                       "join, not of the join: write it before JOIN:",
                       word);
    if (option == NULL)
    {
        oj_option_hint(word, hint, sizeof hint);
        return oj_fail(err, OJ_ERR_ARG, "unknown option %.100s%s", word, hint);
    }
    if (r->command->is_dataset)
        OJ_TRY(check_option_fits_dataset(option, err));
    row = oj_option_find(option->name);
    n = oj_option_count_words(option);
    if (r->argc - r->next < n)
        return oj_fail(err, OJ_ERR_ARG, "-%s needs a value: -%s %s",
                       option->name, option->name, option->arguments);
    if (r->command->given[row])
        OJ_TRY(check_option_is_not_repeated(option, err));
    OJ_TRY(check_words_are_values(option, words, n, err));
    if (n == 1 && r->next + 1 < r->argc && r->cut_value == 0 &&
        is_value_with_unit(option, words[0], words[1]))
        r->cut_value = r->next;
    r->next += n;
    r->command->given[row] = 1;
    return read_value(r, option, words, err);
}

/* Fails because there are too many datasets: one of them is the unit of the
 * value before it. */
static oj_status
fail_unit_separated_from_number(const struct argument_reader *r,
                                struct oj_error *err)
{
    const char *const *at = &r->argv[r->cut_value];
    return oj_fail(err, OJ_ERR_ARG,
                   "%.40s %.40s %.40s: the unit belongs to the number, write "
                   "%.40s %.40s%.40s",
                   at[-1], at[0], at[1], at[-1], at[0], at[1]);
}

/* Fails because there are too many datasets: one of them is probably meant as
 * the optional word of an option. */
static oj_status fail_word_not_of_option(const struct argument_reader *r,
                                         struct oj_error *err)
{
    const struct oj_option *option = r->option_before_word;
    return oj_fail(err, OJ_ERR_ARG, "-%s %.100s: -%s takes %s or no word",
                   option->name, r->unknown_word, option->name,
                   option->choices);
}

static oj_status read_positional(struct argument_reader *r, const char *word,
                                 struct oj_error *err)
{
    if (r->positionals == 3 && r->cut_value > 0)
        return fail_unit_separated_from_number(r, err);
    if (r->positionals == 3 && r->option_before_word != NULL)
        return fail_word_not_of_option(r, err);
    if (r->positionals == 3)
        return oj_fail(err, OJ_ERR_ARG,
                       "one word too many: '%.100s', after '%.100s' '%.100s' "
                       "'%.100s'; %s [options] %sinput_ds join_ds, and layers "
                       "are named by -input_layer and -join_layer",
                       word, r->positional[0], r->positional[1],
                       r->positional[2],
                       r->command->is_dataset ? "it is JOIN:" : "ogrjoin takes",
                       r->command->is_dataset ? "" : "dst_ds ");
    r->positional[r->positionals++] = keep_resolved_path(r, word);
    return OJ_OK;
}

/* Assigns the arguments that are not options to the datasets. A run without
 * output has no dst_ds; a join with the boxes of -window has no join_ds. */
static oj_status assign_positionals(struct argument_reader *r,
                                    struct oj_error *err)
{
    struct oj_command *command = r->command;
    int has_join = command->n_windows == 0;
    int has_dst =
        !command->in_place && !command->benchmark && !command->is_dataset &&
        (command->write_spec == NULL || r->positionals >= 2 + has_join);
    int needed = 1 + has_dst + has_join;
    char usage[128];
    snprintf(usage, sizeof usage, "%s%s%s[options]%s input_ds%s",
             command->is_dataset ? "JOIN:" : "ogrjoin ",
             command->in_place     ? "-in_place "
             : command->benchmark  ? "-benchmark "
             : command->write_spec ? "-write_spec FILE.ogrjoin "
                                   : "",
             has_join ? "" : "-window XMIN YMIN XMAX YMAX ",
             has_dst ? " dst_ds" : "", has_join ? " join_ds" : "");
    if (r->positionals > needed && r->cut_value > 0)
        return fail_unit_separated_from_number(r, err);
    if (r->positionals > needed && r->option_before_word != NULL)
        return fail_word_not_of_option(r, err);
    if (r->positionals > needed)
        return oj_fail(err, OJ_ERR_ARG,
                       "%d datasets given, %d needed (the last one is '%s'): "
                       "%s",
                       r->positionals, needed,
                       r->positional[r->positionals - 1], usage);
    if (r->positionals < needed)
        return oj_fail(err, OJ_ERR_ARG, "%d dataset%s given, %d needed: %s",
                       r->positionals, r->positionals == 1 ? "" : "s", needed,
                       usage);
    if (has_dst)
        command->output.dst = r->positional[0];
    command->input.dataset = r->positional[has_dst];
    command->join.dataset =
        /* name of the join side in messages */
        has_join ? r->positional[has_dst + 1] : "-window";
    for (int i = 0; i < r->positionals; i++)
    {
        if (r->positional[i][0] == '\0')
            return oj_fail(err, OJ_ERR_ARG, "an empty dataset name: %s", usage);
    }
    return OJ_OK;
}

int oj_command_asks_for_help(int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++)
    {
        if (oj_words_find("-h|-help|--help", argv[i]) >= 0)
            return 1;
    }
    return 0;
}

static oj_status parse_and_check_arguments(struct argument_reader *r,
                                           struct oj_error *err)
{
    while (r->next < r->argc)
    {
        const char *word = r->argv[r->next++];
        if (oj_word_is_option(word))
            OJ_TRY(read_option(r, word, err));
        else
            OJ_TRY(read_positional(r, word, err));
    }
    OJ_TRY(set_op_and_defaults(r->command, err));
    OJ_TRY(parse_similar_options(r->command, err));
    OJ_TRY(parse_vector_options(r->command, err));
    OJ_TRY(parse_span_options(r->command, err));
    OJ_TRY(parse_heading_option(r->command, err));
    OJ_TRY(assign_positionals(r, err));
    return check_all_options(r->command, err);
}

static oj_status parse_words(int argc, const char *const *argv, int is_dataset,
                             const char *folder, struct oj_command *command,
                             struct oj_error *err)
{
    struct oj_command empty = {0};
    struct argument_reader r = {0};
    oj_status status = OJ_OK;
    empty.relation = oj_relation_default();
    empty.limit = -1;
    empty.prefix = "join_";
    empty.backend = "auto";
    empty.batch = 262144;
    empty.benchmark_seconds = 60;
    empty.flush = 1;
    empty.is_dataset = is_dataset;
    r.folder = folder;
    r.command = &empty;
    r.argc = argc;
    empty.help = !is_dataset && oj_command_asks_for_help(argc, argv);
    r.argv = empty.words = CPLCalloc((size_t)argc + 1, sizeof *argv);
    for (int i = 0; i < argc; i++)
        empty.words[i] = CPLStrdup(argv[i]);
    if (!empty.help)
        status = parse_and_check_arguments(&r, err);
    if (is_dataset)
    {
        empty.quiet = 1;
        empty.progress = 0;
    }
    if (status == OJ_OK)
        *command = empty;
    else
        oj_command_free(&empty);
    return status;
}

oj_status oj_command_parse(int argc, const char *const *argv,
                           struct oj_command *command, struct oj_error *err)
{
    return parse_words(argc, argv, 0, "", command, err);
}

oj_status oj_command_parse_line(const char *line, const char *folder,
                                struct oj_command *command,
                                struct oj_error *err)
{
    char **words = NULL;
    oj_status status;
    int n = 0;
    OJ_TRY(oj_words_split(line, &words, &n, err));
    status =
        parse_words(n, (const char *const *)words, 1, folder, command, err);
    oj_free(words);
    return status;
}

/* Appends the words of one option as the user gave them. */
static void append_words_of(const struct oj_command *command,
                            const struct oj_option *option, char ***list)
{
    for (const char **word = command->words; *word != NULL; word++)
    {
        const struct oj_option *here = oj_option_of_word(*word);
        const int n = here != NULL ? oj_option_count_words(here) : 0;
        if (here == option)
            *list = CSLAddString(*list, CPLSPrintf("-%s", option->name));
        for (int i = 0; i < n; i++)
        {
            word++;
            if (here == option)
                *list = CSLAddString(*list, *word);
        }
    }
}

char *oj_command_join_words(const struct oj_command *command)
{
    const struct oj_option *option;
    char **list = CSLAddString(NULL, "-op");
    char *words = CPLStrdup("");
    list = CSLAddString(list, oj_command_op_name(command));
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (command->given[i] && strcmp(option->name, "op") != 0 &&
            oj_option_is_of_pairs(option))
            append_words_of(command, option, &list);
    }
    for (char **word = list; *word != NULL; word++)
    {
        char *longer = CPLStrdup(
            CPLSPrintf("%s%s%s", words, word != list ? " " : "", *word));
        CPLFree(words);
        words = longer;
    }
    CSLDestroy(list);
    return words;
}

void oj_command_free(struct oj_command *command)
{
    const struct oj_command nothing = {0};
    CSLDestroy(command->texts);
    CPLFree((double *)command->windows);
    CSLDestroy((char **)command->words);
    CSLDestroy((char **)command->exclude);
    CSLDestroy((char **)command->similar);
    oj_vector_fields_free(&command->vector_fields);
    oj_free(command->heading_field);
    for (int i = 0; i < OJ_MOST_SPANS; i++)
        oj_span_words_free(&command->span_words[i]);
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        oj_similar_fields_free(&command->similar_fields[i]);
    CSLDestroy((char **)command->input.open_options);
    CSLDestroy((char **)command->join.open_options);
    CSLDestroy((char **)command->output.dataset_options);
    CSLDestroy((char **)command->output.layer_options);
    CSLDestroy((char **)command->output.open_options);
    *command = nothing;
}
