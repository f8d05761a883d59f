#include "oj_option_clash.h"

#include "../../../flatten/base/oj_word_list.h"
#include "oj_row_words.h"
#include "oj_rows_per_input.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- conditions: functions for `when` ------------------------------------ */

static const char *value_of_option(const struct oj_given_options *given,
                                   const char *name)
{
    return strcmp(name, "op") == 0 ? given->op : given->word(given->user, name);
}

static struct oj_row_choice row_choice_of(const struct oj_given_options *given)
{
    const char *how = value_of_option(given, "how"),
               *pick = value_of_option(given, "pick");
    const int is_choice = how != NULL && oj_words_find("semi|anti", how) >= 0;
    return (struct oj_row_choice){
        .how = is_choice ? OJ_HOW_SEMI : OJ_HOW_LEFT,
        .picks = pick != NULL && strcasecmp(pick, "all") != 0,
        .one_to_one = value_of_option(given, "one_to_one") != NULL,
        .aggregates = value_of_option(given, "agg") != NULL};
}

static enum oj_rows_per_input
rows_per_input_of(const struct oj_given_options *given)
{
    const struct oj_row_choice choice = row_choice_of(given);
    return oj_rows_per_input_find(given->relation, &choice);
}

static int finds_several_pairs(const struct oj_given_options *given)
{
    return rows_per_input_of(given) == OJ_ROWS_SEVERAL;
}

static int gives_k_rows(const struct oj_given_options *given)
{
    return rows_per_input_of(given) == OJ_ROWS_SEVERAL_BY_K;
}

static int gives_rows_by_ties(const struct oj_given_options *given)
{
    return rows_per_input_of(given) == OJ_ROWS_SEVERAL_BY_TIES;
}

static int names_rank_column_without_ranks(const struct oj_given_options *given)
{
    struct oj_row_choice choice = row_choice_of(given);
    choice.aggregates = 0; /* aggregates do not matter here: name_rank names a
                              column of pairs, which have a rank */
    return value_of_option(given, "name_rank")[0] != '\0' &&
           !oj_rows_per_input_have_rank(given->relation, &choice);
}

static int
names_distance_column_without_distances(const struct oj_given_options *given)
{
    return value_of_option(given, "name_distance")[0] != '\0' &&
           (oj_op_get(given->relation->op)->takes & OJ_TAKES_DISTANCE) == 0;
}

static int does_op_join_attributes(const struct oj_given_options *given)
{
    return (oj_op_get(given->relation->op)->takes & OJ_TAKES_ATTRIBUTES) != 0;
}

static int does_op_keep_every_pair(const struct oj_given_options *given)
{
    return oj_op_get(given->relation->op)->k == OJ_EVERY_PAIR;
}

static int is_planar(const struct oj_given_options *given)
{
    return !oj_relation_is_on_globe(given->relation);
}

static int compares_shapes(const struct oj_given_options *given)
{
    return oj_relation_compares_shapes(given->relation);
}

/* ---- table of clashes ---------------------------------------------------- */

/* A row of the table is an error if `option` has a value of `values`, and:
 *   others   one of these options has a value of other_values
 *   without  none of these options is given
 *   when     the function returns 1
 * Members that are NULL are not tested. Values: "a|b"; "!a|b": any but these;
 * NULL: any. why: the reason why the two exclude each other.  text: the whole
 * message. Options in these texts: {name}; {name word}; {name *}: with the
 * value that was given; {* name}: only this value. */
struct clash
{
    const char *option, *values, *others, *other_values, *without;
    int (*when)(const struct oj_given_options *);
    const char *why, *text;
};

#define ROW_COLUMNS_OF_LINES                                                   \
    "along_field|along_percent_field|offset_field|side_field|segment_field|"   \
    "line_bearing_field"
#define ROW_COLUMNS_OF_PAIRS                                                   \
    "name_similarity|name_difference|name_rank|name_count|overlap|"            \
    "nearest_point_fields|bearing_field|matrix_field|"                         \
    "relation_field|" ROW_COLUMNS_OF_LINES
#define ROW_COLUMNS "name_fid|name_distance|" ROW_COLUMNS_OF_PAIRS
#define NAMES                                                                  \
    "name_count|matrix_field|relation_field|" ROW_COLUMNS_OF_LINES             \
    "|key|nln|unmatched_layer|unmatched_join_layer|input_layer|join_layer|"    \
    "input_geometry|join_geometry|dialect|join_dialect"
#define NEW_DATASET                                                            \
    "f|nln|dsco|lco|doo|nlt|overwrite|append|update|unsetFid|a_srs"

static const struct clash clashes[] = {
    /* distances and measures */
    {"metric", "sphere|ellipsoid", .without = "max_distance",
     .when = does_op_join_attributes,
     .text = "{metric *} with {op *} needs {max_distance}, because distances "
             "only restrict the pairs of {op *}"},
    {"metric", "ellipsoid", .when = compares_shapes,
     .text = "{metric ellipsoid} measures from points: {distance *} is "
             "possible with {metric sphere} and planar"},
    {"metric", "ellipsoid", ROW_COLUMNS_OF_LINES,
     .why = "lines are not measured along on the ellipsoid: write {metric "
            "sphere}"},
    {"metric", "ellipsoid", "validate", "!ellipsoid",
     .text = "{validate *}: this reference does not measure on the ellipsoid; "
             "that of {metric ellipsoid} is {validate ellipsoid}"},
    {"validate", "ellipsoid", "metric", "sphere",
     .text = "{validate ellipsoid}: this reference is for {metric ellipsoid}; "
             "that of {metric sphere} is {validate sphere}"},
    {"ties", .without = "k", .when = does_op_keep_every_pair,
     .text = "{ties} needs {k} here: without {k} all pairs within the limit "
             "are written, so there are no ties"},
    {"metric", "sphere", "validate", "!sphere",
     .text = "{validate *}: this reference measures in the plane, as GEOS "
             "does; that of {metric sphere} is {validate sphere}"},
    {"validate", "sphere", .when = is_planar,
     .text = "{validate *}: this reference is for {metric sphere}; in the "
             "plane it is {validate geos}"},
    {"validate", "ellipsoid", .when = is_planar,
     .text = "{validate *}: this reference is for {metric ellipsoid}; in the "
             "plane it is {validate geos}"},
    {"metric", "sphere|ellipsoid", "distance_to", "boundary",
     .text = "{distance_to boundary} is possible with {metric planar} only: "
             "leave one of them out"},
    {"metric", "sphere|ellipsoid", "matrix_field|relation_field",
     .why = "DE-9IM matrices are computed in the plane only"},
    {"heading", NULL, "metric", "sphere|ellipsoid",
     .text = "{heading} is a direction in the plane: leave {metric *} out, and "
             "join in a projected CRS"},
    {"heading", NULL, "distance", "!least",
     .text = "{heading} selects segments, and {distance *} compares whole "
             "shapes: leave one of them out"},
    {"heading", NULL, "min_distance",
     .why = "with a heading the distance of a line is that of its nearest "
            "segment in this direction"},
    {"heading", NULL, "distance_to", "interior",
     .text = "{heading} measures to lines and rings, also from points inside "
             "of a polygon: write {distance_to boundary}, or leave "
             "{distance_to} out"},
    {"along", .without = "along_field",
     .text = "{along} needs {along_field}, the column of the measures"},
    {"geometry", "nearest_point|connection", .when = compares_shapes,
     .text = "{geometry *} needs {distance least}, because other distances "
             "have no nearest point"},

    /* reading and writing */
    {"overwrite", NULL, "append",
     .why = "one replaces the layer, the other keeps it"},
    {"input_layer", NULL, "sql", .why = "a SELECT names its own layers"},
    {"join_layer", NULL, "join_sql", .why = "a SELECT names its own layers"},
    {"q", NULL, "progress",
     .why = "one hides the progress, the other shows it"},
    {"max_distance", NULL, "max_distance_field|join_max_distance_field",
     .why = "both set the maximum distance"},
    {"max_distance_field", NULL, "join_max_distance_field",
     .why = "both set the maximum distance"},

    /* selection of pairs of an input row */
    {"pick", NULL, "agg|one_to_one",
     .why = "each reduces the pairs of an input row to one row"},
    {"agg", NULL, "one_to_one",
     .why = "a row has at most one pair then, and nothing to aggregate"},
    {"agg", NULL, "overlap|nearest_point_fields|bearing_field",
     .why =
         "aggregates compute such values without it, as in max(overlap_area)"},
    {"agg", NULL, "geometry", "!input|none",
     .why = "a row of aggregates belongs to several join features"},
    {"agg", NULL, "join_select",
     .why = "{agg} itself names the fields of the join side that it needs"},
    {"distance", "!least",
     "nearest_point_fields|bearing_field|" ROW_COLUMNS_OF_LINES,
     .why = "only {distance least} has nearest points"},
    {"window", NULL,
     "join_layer|join_geometry|join_where|join_sql|join_select|join_srs|joo|on|"
     "exclude|unordered_pairs|similar|vector|within_time|during|heading",
     .why = "the box of {window} is the join side, which is no layer then"},
    {"explain", NULL, "benchmark|validate|json_summary|q|progress",
     .why = "{explain} only shows the plan, and nothing is joined"},
    {"in_place", NULL, "geometry",
     .why =
         "{in_place} only adds columns and keeps the geometries of the layer"},
    {"in_place", NULL, "unmatched_layer|unmatched_join_layer|" NEW_DATASET,
     .why = "{in_place} writes to the input layer and not to another dataset"},
    {"in_place", NULL, "sql", .why = "the rows of a SELECT cannot be updated"},
    {"in_place", NULL, "select",
     .why = "{in_place} keeps all fields of the layer"},
    {"benchmark", NULL,
     NEW_DATASET "|in_place|unmatched_layer|unmatched_join_layer|geometry",
     .why = "the benchmark writes no layer"},
    {"benchmark", NULL,
     "how|pick|agg|one_to_one|prefix|" ROW_COLUMNS "|select|join_select",
     .why = "the benchmark only finds pairs and makes no rows of them"},
    {"benchmark", NULL, "memory|max_pairs|batch",
     .why = "the benchmark holds all rows and pairs in memory at once"},
    {"benchmark", NULL, "backend",
     .why = "the benchmark runs one backend after the other"},
    {"benchmark", NULL, "validate",
     .why = "the benchmark itself compares the answers of the backends"},
    {"benchmark", NULL, "json_summary",
     .why = "the results of the benchmark are written by {benchmark_csv}"},
    {"benchmark", NULL, "progress",
     .why = "the benchmark prints the name of each method when it starts"},
    {"how", "semi|anti",
     ROW_COLUMNS "|geometry|pick|agg|prefix|join_select|unmatched_join_layer",
     .why = "only the input layer's geometry and fields are written"},
    {"nlt", "NONE", "geometry|a_srs", .why = "no geometry is written"},
    {"nlt", OJ_ROW_PART_WORDS, "geometry", "!intersection",
     .text = "{nlt *} keeps parts of intersections: it needs "
             "{geometry intersection}"},
    {"pick", "!all", "nlt", OJ_ROW_PART_WORDS,
     .text = "{pick *} would choose a pair before {nlt *} drops pairs: leave "
             "one of them out"},
    {"one_to_one", NULL, "nlt", OJ_ROW_PART_WORDS,
     .text = "{one_to_one} would choose pairs before {nlt *} drops pairs: "
             "leave one of them out"},
    {"nlt", OJ_ROW_PART_WORDS, .without = "geometry",
     .text = "{nlt *} keeps parts of intersections: it needs "
             "{geometry intersection}"},

    /* representation of a side by points */
    {"centroid_of", "input|both", "point_on_surface_of", "input|both",
     .text =
         "{centroid_of} and {point_on_surface_of} both replace the features of "
         "the input side by points: name this side in one of them only"},
    {"op", "window", "centroid_of|point_on_surface_of", "join|both",
     .text =
         "with {op window}, write {centroid_of input} or {point_on_surface_of "
         "input}: the join side is joined by its boxes"},
    {"centroid_of", "join|both", "point_on_surface_of", "join|both",
     .text =
         "{centroid_of} and {point_on_surface_of} both replace the features of "
         "the join side by points: name this side in one of them only"},

    /* in place: the layer's rows get one set of new columns */
    {"in_place", NULL, "how", "!left",
     .text = "{in_place} keeps every row of the layer: write {how left}, or "
             "leave {how} out"},
    {"in_place", .when = finds_several_pairs,
     .text = "{in_place} has room for one join feature per row, and {op *} can "
             "find several: choose one with {pick}, for example {pick first}, "
             "or with {one_to_one}, or add them up with {agg}"},
    {"in_place", .when = gives_k_rows,
     .text = "{in_place} has room for one join feature per row: write {k 1}, "
             "or reduce several to one with {pick}, {one_to_one} or {agg}"},
    {"in_place", .when = gives_rows_by_ties,
     .text =
         "{in_place} has room for one join feature per row: write {ties "
         "first}, or reduce several to one with {pick}, {one_to_one} or {agg}"},

    /* columns that the join does not have */
    {"name_distance", .when = names_distance_column_without_distances,
     .text =
         "{name_distance}: {op *} measures no distance; leave the option out"},
    {"pick", "most_similar", .without = "similar|vector",
     .text = "{pick most_similar} needs {similar} or {vector}"},
    {"name_rank", .when = names_rank_column_without_ranks,
     .text = "{name_rank} needs several pairs per input row that are ordered "
             "by distance or similarity: {op nearest} or similar with {k} "
             "above 1 or {ties all}, and without {pick}"},
    {"agg", NULL, "how", "!left|inner",
     .text = "{agg} gives one row for each input row: write {how left}, or "
             "{how inner} for the rows with pairs only"},
    /* rows that are events */
    {"events", NULL, "in_place|benchmark|explain|write_spec",
     .why = "{events} only writes events"},
    {"events", .without = "key",
     .text = "{events} needs {key}, the field that identifies what moves, as "
             "{key vehicle}"},
    {"events", .when = does_op_join_attributes,
     .text = "{events} needs a join of geometries, and {op *} compares "
             "attributes: use another {op}"},
    {"events", NULL, "how",
     .why = "{events} writes a row for each change and no others"},
    {"events", NULL, "k|ties",
     .why = "{events} follows the one nearest feature"},
    {"events", NULL, "pick|agg|one_to_one|similar|vector|" ROW_COLUMNS_OF_PAIRS,
     .why = "an exit event has no pair, and so no such value"},
    {"geometry", "nearest_point|connection|intersection", "events",
     .why = "an exit event has no pair, and so no such value"},
    {"events", NULL, "unmatched_layer|unmatched_join_layer",
     .why = "{events} writes no other rows"},
    {"events", NULL, "unordered_pairs",
     .why = "events do not depend on the order of FIDs"},
    {"events", NULL, "memory",
     .why = "{events} needs the whole join side in memory"},
    {"agg", NULL, "name_count",
     .text = "{agg} names its own columns: leave {name_count} out and write "
             "\"count as {* name_count}\" in {agg}"},
};

/* ---- messages ------------------------------------------------------------ */

enum
{
    MAX_NAME = 64,
    MAX_WORD = 256
};

struct message
{
    char text[1024];
    size_t n;
};

static void append_text(struct message *m, const char *text, size_t n)
{
    const size_t room = sizeof m->text - 1 - m->n;
    n = n < room ? n : room;
    memcpy(m->text + m->n, text, n);
    m->n += n;
    m->text[m->n] = '\0';
}

static void append_option(struct message *m,
                          const struct oj_given_options *given,
                          const char *name, const char *word)
{
    char text[MAX_NAME + MAX_WORD];
    if (given->spell != NULL)
        given->spell(given->user, name, word, text, sizeof text);
    else
        snprintf(text, sizeof text, "-%s%s%s", name, word != NULL ? " " : "",
                 word != NULL ? word : "");
    append_text(m, text, strlen(text));
}

/* Appends the text for an option in braces. in: the n characters between the
 * braces, as described at struct clash. */
static void append_option_in_braces(struct message *m,
                                    const struct oj_given_options *given,
                                    const char *in, size_t n)
{
    char name[MAX_NAME];
    char *word;
    snprintf(name, sizeof name, "%.*s", (int)n, in);
    word = strchr(name, ' ');
    if (word != NULL)
        *word++ = '\0';
    if (strcmp(name, "*") == 0)
    {
        const char *given_word = value_of_option(given, word);
        append_text(m, given_word, strlen(given_word));
        return;
    }
    append_option(m, given, name,
                  word != NULL && strcmp(word, "*") == 0
                      ? value_of_option(given, name)
                      : word);
}

static void append_text_with_braces(struct message *m,
                                    const struct oj_given_options *given,
                                    const char *text)
{
    while (*text != '\0')
    {
        size_t n = strcspn(text, "{");
        append_text(m, text, n);
        text += n;
        if (*text == '\0')
            return;
        n = strcspn(++text, "}");
        append_option_in_braces(m, given, text, n);
        text += n + (text[n] == '}');
    }
}

/* Fails with the message of a table row. other: the second option in the clash;
 * "" if there is none. */
static oj_status fail_clash(const struct clash *clash,
                            const struct oj_given_options *given,
                            const char *other, struct oj_error *err)
{
    struct message m = {"", 0};
    if (clash->text != NULL)
        append_text_with_braces(&m, given, clash->text);
    else
    {
        const int has_value = clash->values != NULL;
        append_option(&m, given, has_value ? other : clash->option, NULL);
        append_text(&m, " and ", 5);
        if (has_value)
            append_option(&m, given, clash->option,
                          value_of_option(given, clash->option));
        else
            append_option(&m, given, other, NULL);
        append_text(&m, " do not go together: leave one out, because ", 44);
        append_text_with_braces(&m, given, clash->why);
    }
    return oj_fail(err, OJ_ERR_ARG, "%s", m.text);
}

/* ---- checking options ---------------------------------------------------- */

/* Returns 1 if the option was given and has one of the values. */
static int is_option_given(const struct oj_given_options *given,
                           const char *name, const char *values)
{
    const char *word = value_of_option(given, name);
    if (word == NULL || values == NULL)
        return word != NULL;
    return values[0] == '!' ? oj_words_find(values + 1, word) < 0
                            : oj_words_find(values, word) >= 0;
}

/* Finds the first option of the list `names` that was given and has one of the
 * values. Copies its name to found; returns 0 if there is none. */
static int find_given_option(const struct oj_given_options *given,
                             const char *names, const char *values,
                             char found[MAX_NAME])
{
    const char *at;
    for (int i = 0, n; (at = oj_words_at(names, i, &n)) != NULL; i++)
    {
        snprintf(found, MAX_NAME, "%.*s", n, at);
        if (is_option_given(given, found, values))
            return 1;
    }
    return 0;
}

static int does_clash_apply(const struct clash *clash,
                            const struct oj_given_options *given,
                            char other[MAX_NAME])
{
    other[0] = '\0';
    return is_option_given(given, clash->option, clash->values) &&
           (clash->others == NULL ||
            find_given_option(given, clash->others, clash->other_values,
                              other)) &&
           (clash->without == NULL ||
            !find_given_option(given, clash->without, NULL,
                               (char[MAX_NAME]){""})) &&
           (clash->when == NULL || clash->when(given));
}

/* Refuses "" as the name of a column or layer. (In name_fid and most other
 * options name_*, "" leaves the column out.) */
static oj_status check_names_are_not_empty(const struct oj_given_options *given,
                                           struct oj_error *err)
{
    const char *at;
    int n;
    for (int i = 0; (at = oj_words_at(NAMES, i, &n)) != NULL; i++)
    {
        struct message m = {"", 0};
        char name[MAX_NAME];
        const char *word;
        snprintf(name, sizeof name, "%.*s", n, at);
        word = value_of_option(given, name);
        if (word == NULL || word[0] != '\0')
            continue;
        append_option(&m, given, name, NULL);
        return oj_fail(err, OJ_ERR_ARG,
                       "%s is empty: write a name, or leave it out", m.text);
    }
    return OJ_OK;
}

oj_status oj_option_clash_check(const struct oj_given_options *given,
                                struct oj_error *err)
{
    char other[MAX_NAME];
    OJ_TRY(check_names_are_not_empty(given, err));
    for (size_t i = 0; i < sizeof clashes / sizeof *clashes; i++)
    {
        if (does_clash_apply(&clashes[i], given, other))
            return fail_clash(&clashes[i], given, other, err);
    }
    return OJ_OK;
}

const char *oj_option_clash_names(int i, int which)
{
    const struct clash *clash = &clashes[i];
    if (i < 0 || (size_t)i >= sizeof clashes / sizeof *clashes)
        return NULL;
    return which == 0               ? clash->option
           : which == 1             ? (clash->others ? clash->others : "")
           : clash->without != NULL ? clash->without
                                    : "";
}
