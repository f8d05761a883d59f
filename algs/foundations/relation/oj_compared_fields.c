#include "oj_compared_fields.h"

#include "../../../flatten/arrays/oj_vectors.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_number.h"
#include "../../../flatten/base/oj_quoted_name.h"
#include "../kernels/oj_heading.h"
#include "oj_text_similarity_condition.h"

#include <math.h>
#include <string.h>

/* Copies the name at *at to *to and advances both. A name is in double quotes,
 * or extends to the first letter of `ends`. Returns 0 if it is empty or badly
 * quoted. */
static int read_name(const char **at, const char *ends, char **to)
{
    const char *first = *to;
    size_t n = strcspn(*at, ends);
    if (**at == '"')
        return oj_quoted_name_read(at, to) && *first != '\0';
    memcpy(*to, *at, n);
    *at += n;
    *to += n;
    *(*to)++ = '\0';
    return n > 0;
}

/* Reads ":0.001", the weight after a field name. Without a colon the weight is
 * 1. Returns 0 if the text after a colon is not a finite number above 0.
 * Advances *at behind the text that was read. */
static int read_weight(const char **at, double *weight)
{
    char *end;
    *weight = 1.0;
    if (**at != ':')
        return 1;
    *weight = oj_number_read(*at + 1, &end);
    if (end == *at + 1 || !(*weight > 0.0) || isinf(*weight))
        return 0;
    *at = end;
    return 1;
}

/* Reads the names of "a+b" and, unless `weight` is NULL, their weights. Sets *n
 * to the number of names, or to -1 if a name is empty or badly quoted or a
 * weight is wrong. Advances *at behind the text that was read. */
static oj_status read_weighted_names(const char **at, char ***names,
                                     double **weight, int *n,
                                     struct oj_error *err)
{
    size_t n_bytes = strlen(*at) + 1;
    int64_t n_most = 1;
    char *to;
    for (const char *c = *at; *c != '\0'; c++)
        n_most += *c == '+';
    /* One allocation for the pointers and the texts behind them. */
    *names =
        oj_malloc((n_most + 1) * (int64_t)sizeof **names + (int64_t)n_bytes, 1);
    if (*names == NULL)
        return oj_fail_nomem(err, n_most, sizeof **names);
    if (weight != NULL && *weight == NULL)
        OJ_NEW(*weight, n_most, err);
    to = (char *)(*names + n_most + 1);
    for (*n = 0;; (*at)++)
    {
        int i = (*n)++, is_good;
        (*names)[i] = to;
        is_good = read_name(at, "+=:", &to) &&
                  (weight == NULL || read_weight(at, &(*weight)[i]));
        (*names)[*n] = NULL;
        if (!is_good)
            *n = -1;
        if (!is_good || **at != '+')
            return OJ_OK;
    }
}

/* Reads "a+b=c+d": the fields of the input side and of the join side. Without =
 * both sides have the first list, and *has_both is 0. Advances *at behind the
 * text that was read. */
static oj_status parse_fields_of_both_sides(const char **at, char **fields[2],
                                            double **weight, int n[2],
                                            int *has_both, struct oj_error *err)
{
    const char *first = *at;
    OJ_TRY(read_weighted_names(at, &fields[0], weight, &n[0], err));
    *has_both = n[0] > 0 && **at == '=';
    if (*has_both)
    {
        (*at)++;
        return read_weighted_names(at, &fields[1], NULL, &n[1], err);
    }
    return read_weighted_names(&first, &fields[1], weight, &n[1], err);
}

static oj_status parse_similar(const char *dash, const char *word,
                               struct oj_similar *out, struct oj_error *err)
{
    const char *at = word;
    int n[2], has_both;
    OJ_TRY(
        parse_fields_of_both_sides(&at, out->fields, NULL, n, &has_both, err));
    if (n[0] < 0 || n[1] < 0 || (*at != ':' && *at != '\0'))
        return oj_fail(err, OJ_ERR_ARG,
                       "%ssimilar takes LEFT[=RIGHT][:T], fields of the input "
                       "layer, of the join layer and how similar, as "
                       "name=NAME:0.6 or name+street:3/4 (names with : + = "
                       "in double quotes), not '%.100s'",
                       dash, word);
    if (n[0] > OJ_MOST_TEXT_FIELDS || n[1] > OJ_MOST_TEXT_FIELDS)
        return oj_fail(err, OJ_ERR_ARG,
                       "%ssimilar concatenates at most %d fields of a side: "
                       "leave some out",
                       dash, OJ_MOST_TEXT_FIELDS);
    if (*at == '\0')
        return OJ_OK;
    return oj_text_threshold_parse(dash, "similar", at + 1, &out->numerator,
                                   &out->denominator, err);
}

oj_status oj_similar_fields_parse(const char *dash, const char *word,
                                  struct oj_similar *out, struct oj_error *err)
{
    struct oj_similar similar = {0};
    oj_status status = parse_similar(dash, word, &similar, err);
    if (status == OJ_OK)
        *out = similar;
    else
        oj_similar_fields_free(&similar);
    return status;
}

static oj_status parse_vector(const char *dash, const char *word,
                              struct oj_vector_words *out, struct oj_error *err)
{
    const char *at = word;
    int n[2], has_both;
    OJ_TRY(parse_fields_of_both_sides(&at, out->fields, &out->weight, n,
                                      &has_both, err));
    out->n = n[0];
    if (n[0] > 0 && n[1] > 0 && *at == ':' && has_both)
        return oj_fail(err, OJ_ERR_ARG,
                       "%svector: write weights only on the left of =, they "
                       "apply to both sides: '%.100s'",
                       dash, word);
    if (n[0] < 0 || n[1] < 0 || *at != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "%svector takes F[:WEIGHT]+..[=..], fields of the "
                       "input layer and of the join layer, with weights "
                       "above 0, as price:0.001+area=PRICE+AREA (names with "
                       ": + = in double quotes), not '%.100s'",
                       dash, word);
    if (n[0] != n[1])
        return oj_fail(err, OJ_ERR_ARG,
                       "%svector %.100s: there are %d fields before = and %d "
                       "after it; both sides need equally many",
                       dash, word, n[0], n[1]);
    if (n[0] > OJ_MOST_DIMENSIONS)
        return oj_fail(err, OJ_ERR_ARG,
                       "%svector takes at most %d fields: leave some out", dash,
                       OJ_MOST_DIMENSIONS);
    return OJ_OK;
}

oj_status oj_vector_fields_parse(const char *dash, const char *word,
                                 struct oj_vector_words *out,
                                 struct oj_error *err)
{
    struct oj_vector_words words = {0};
    oj_status status = parse_vector(dash, word, &words, err);
    if (status == OJ_OK)
        *out = words;
    else
        oj_vector_fields_free(&words);
    return status;
}

/* Reads "F" or "F..F" up to = or :, and copies the names to *to. Sets
 * *is_instant to 1 for a single field, otherwise to 0. Returns 0 on a syntax
 * error. Advances *at behind the text that was read. */
static int read_span_fields(const char **at, char **to, char *names[2],
                            int *is_instant)
{
    for (int i = 0; i < 2; i++)
    {
        const char *end = *at;
        names[i] = *to;
        while (*end != '\0' && *end != '=' && *end != ':' &&
               (end[0] != '.' || end[1] != '.'))
            end++;
        if (**at == '"' && !(oj_quoted_name_read(at, to) && *names[i] != '\0'))
            return 0;
        if (*to == names[i])
        {
            memcpy(*to, *at, (size_t)(end - *at));
            *to += end - *at;
            *(*to)++ = '\0';
            *at = end;
        }
        if (*names[i] == '\0')
            return 0;
        *is_instant = i == 0 && ((*at)[0] != '.' || (*at)[1] != '.');
        if (*is_instant)
        {
            names[1] = names[0];
            return 1;
        }
        if (i == 0)
            *at += 2;
    }
    return 1;
}

/* Reads a window, for example "30min", "2 h" or "0.5", into words. Returns 0 on
 * a syntax error, or if a window with a unit is 4e18 microseconds or longer. */
static int read_length_of_span_window(const char *text,
                                      struct oj_span_words *words)
{
    static const struct
    {
        const char *name;
        double microseconds;
    } units[] = {{"ms", 1e3},  {"s", 1e6},     {"min", 6e7},
                 {"h", 3.6e9}, {"d", 8.64e10}, {"w", 6.048e11}};
    char *end;
    words->window = oj_number_read(text, &end);
    if (end == text || !(words->window >= 0.0) || isinf(words->window))
        return 0;
    while (*end == ' ')
        end++;
    words->has_unit = *end != '\0';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    {
        if (strcmp(end, units[i].name) != 0)
            continue;
        words->window = nearbyint(words->window * units[i].microseconds);
        return words->window < 4e18; /* the sum of two windows is below 2^63 */
    }
    return !words->has_unit;
}

static oj_status parse_span_words(const char *word, struct oj_span_words *words,
                                  struct oj_error *err)
{
    const char *at = word;
    char *to;
    int is_good;
    OJ_NEW(words->text, 2 * (int64_t)strlen(word) + 4, err);
    to = words->text;
    is_good =
        read_span_fields(&at, &to, words->fields[0], &words->is_instant[0]);
    memcpy(words->fields[1], words->fields[0], sizeof words->fields[0]);
    words->is_instant[1] = words->is_instant[0];
    if (is_good && *at == '=')
    {
        at++;
        is_good =
            read_span_fields(&at, &to, words->fields[1], &words->is_instant[1]);
    }
    words->condition.relations = OJ_SPANS_INTERSECT;
    if (words->is_window &&
        !(is_good && *at == ':' && words->is_instant[0] &&
          words->is_instant[1] && read_length_of_span_window(at + 1, words)))
        return oj_fail(
            err, OJ_ERR_ARG,
            "%s%s takes LEFT[=RIGHT]:WINDOW, a field of the input "
            "layer, one of the join layer and how far apart they "
            "may be, as seen=departed:30min (ms, s, min, h, d, w), not "
            "'%.100s': a window for numbers has no unit; put names that "
            "contain : or = in double quotes",
            words->dash, words->option, word);
    if (!is_good || (*at != '\0' && *at != ':'))
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s takes FROM..UNTIL[=FROM..UNTIL][:RELATION], "
                       "fields of the input layer and of the join layer, as "
                       "came..left=opened..closed:overlaps (one field is an "
                       "instant; names with : = or .. in double quotes), not "
                       "'%.100s'",
                       words->dash, words->option, word);
    if (words->is_window || *at == '\0')
        return OJ_OK;
    return oj_span_relations_parse(words->dash, words->option, at + 1,
                                   &words->condition, err);
}

oj_status oj_span_words_parse(const char *dash, const char *option,
                              int is_window, const char *word,
                              struct oj_span_words *out, struct oj_error *err)
{
    struct oj_span_words words = {
        .is_window = is_window, .dash = dash, .option = option};
    oj_status status = parse_span_words(word, &words, err);
    if (status == OJ_OK)
        *out = words;
    else
        oj_span_words_free(&words);
    return status;
}

/* Reads ":30", the tolerance of a heading. Without it the tolerance is
 * OJ_HEADING_TOLERANCE. Returns 0 unless it is a number from 0 to 180. */
static int read_heading_tolerance(const char *at, double *tolerance)
{
    char *end;
    *tolerance = OJ_HEADING_TOLERANCE;
    if (*at == '\0')
        return 1;
    *tolerance = oj_number_read(at + 1, &end);
    return *at == ':' && end != at + 1 && *end == '\0' && *tolerance >= 0.0 &&
           *tolerance <= 180.0;
}

oj_status oj_heading_words_parse(const char *dash, const char *word,
                                 char **field, double *tolerance,
                                 struct oj_error *err)
{
    const char *at = word;
    char *name, *to;
    double degrees;
    OJ_NEW(name, (int64_t)strlen(word) + 1, err);
    to = name;
    if (!read_name(&at, ":", &to) || !read_heading_tolerance(at, &degrees))
    {
        oj_free(name);
        return oj_fail(err, OJ_ERR_ARG,
                       "%sheading takes FIELD[:TOLERANCE], a field of the "
                       "input layer and degrees from 0 to 180 (default %g), as "
                       "course:30 (a name with : in double quotes), not "
                       "'%.100s'",
                       dash, OJ_HEADING_TOLERANCE, word);
    }
    *field = name;
    *tolerance = degrees;
    return OJ_OK;
}

static const char *skip_spaces(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* Like read_name(), but skips spaces before and after the name. */
static int read_spaced_name(const char **at, const char *ends, char **to)
{
    int is_quoted;
    *at = skip_spaces(*at);
    is_quoted = **at == '"';
    if (!read_name(at, ends, to))
        return 0;
    /* spaces before the end belong to the name only if it is quoted */
    for (; !is_quoted && ((*to)[-2] == ' ' || (*to)[-2] == '\t'); --*to)
        (*to)[-2] = '\0';
    *at = skip_spaces(*at);
    return 1;
}

/* Reads an item "LEFT=RIGHT", or "F" for both sides, of a comma-separated list.
 * Returns 0 on a syntax error. Advances *at behind the item. */
static int read_field_pair(const char **at, char **to,
                           struct oj_field_pairs *pairs)
{
    const int i = pairs->n++;
    pairs->fields[0][i] = pairs->fields[1][i] = *to;
    if (!read_spaced_name(at, "=,", to))
        return 0;
    if (**at == '=')
    {
        ++*at;
        pairs->fields[1][i] = *to;
        if (!read_spaced_name(at, "=,", to))
            return 0;
    }
    return **at == ',' || **at == '\0';
}

/* Reads an item "F", which may be empty, of a comma-separated list. Returns 0
 * on a syntax error. Advances *at behind the item. */
static int read_field_name(const char **at, char **to,
                           struct oj_field_pairs *names)
{
    if ((*at)[0] == '"' && (*at)[1] == '"' && (*at)[2] != '"')
    {
        *at = skip_spaces(*at + 2);
        return **at == ',' || **at == '\0';
    }
    names->fields[0][names->n++] = *to;
    return read_spaced_name(at, ",", to) && (**at == ',' || **at == '\0');
}

void oj_field_pairs_free(struct oj_field_pairs *pairs)
{
    oj_free(pairs->fields[0]);
    oj_free(pairs->text);
    memset(pairs, 0, sizeof *pairs);
}

/* How the items of a comma-separated list are parsed. */
struct item_syntax
{
    int (*read)(const char **at, char **to, struct oj_field_pairs *);
    int n_sides;       /* 2: an item names a field of each side; 1: only one
                          field */
    const char *usage; /* description of the list, for error messages */
};

static oj_status parse_items(const struct item_syntax *syntax, const char *dash,
                             const char *option, const char *list,
                             struct oj_field_pairs *out, struct oj_error *err)
{
    const char *at = list;
    int64_t n_most = 1;
    char *to;
    for (const char *c = list; *c != '\0'; c++)
        n_most += *c == ',';
    OJ_NEW(out->fields[0], syntax->n_sides * n_most, err);
    if (syntax->n_sides == 2)
        out->fields[1] = out->fields[0] + n_most;
    /* The names fit into the length of the list: each name ends with a 0, which
     * takes the place of the comma, the = or the end that follows it in the
     * list. */
    OJ_NEW(out->text, (int64_t)strlen(list) + 1, err);
    to = out->text;
    while (*(at = skip_spaces(at)) != '\0')
    {
        if (*at != ',' && !syntax->read(&at, &to, out))
            return oj_fail(err, OJ_ERR_ARG, "%s%s takes %s, not '%.100s'", dash,
                           option, syntax->usage, list);
        at += *at == ',';
    }
    return OJ_OK;
}

/* Parses a list of items; a list of field pairs must have at least one. On an
 * error *out is unchanged. */
static oj_status parse_list(const struct item_syntax *syntax, const char *dash,
                            const char *option, const char *list,
                            struct oj_field_pairs *out, struct oj_error *err)
{
    struct oj_field_pairs made = {0};
    oj_status status = parse_items(syntax, dash, option, list, &made, err);
    if (status == OJ_OK && syntax->n_sides == 2 && made.n == 0)
        status =
            oj_fail(err, OJ_ERR_ARG, "%s%s names no field: name at least one",
                    dash, option);
    if (status == OJ_OK)
        *out = made;
    else
        oj_field_pairs_free(&made);
    return status;
}

oj_status oj_field_pairs_parse(const char *dash, const char *option,
                               const char *list, struct oj_field_pairs *out,
                               struct oj_error *err)
{
    static const struct item_syntax syntax = {
        read_field_pair, 2,
        "LEFT=RIGHT, a field of the input layer and one of the join layer "
        "(names with = or a comma in double quotes)"};
    return parse_list(&syntax, dash, option, list, out, err);
}

oj_status oj_field_names_parse(const char *dash, const char *option,
                               const char *list, struct oj_field_pairs *out,
                               struct oj_error *err)
{
    static const struct item_syntax syntax = {
        read_field_name, 1,
        "FIELD,... with commas between fields (a name with a comma in double "
        "quotes, a double quote in it twice)"};
    return parse_list(&syntax, dash, option, list, out, err);
}

const char *oj_similar_fields_end(const char *list)
{
    for (const char *at = list;; at++)
    {
        if (*at == '"' && !oj_quoted_name_read(&at, NULL))
            return at;
        at += strcspn(at, ",+=:");
        if (*at == ',' || *at == '\0')
            return at;
    }
}

oj_status oj_field_name_parse(const char *dash, const char *option, char *name,
                              struct oj_error *err)
{
    const char *at = name;
    char *to = name;
    if (*name != '"' || (oj_quoted_name_read(&at, &to) && *at == '\0'))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "%s%s: a field name that begins with a double quote must "
                   "end with one; write a double quote inside it twice",
                   dash, option);
}

void oj_vector_fields_free(struct oj_vector_words *words)
{
    oj_free(words->fields[0]);
    oj_free(words->fields[1]);
    oj_free(words->weight);
    memset(words, 0, sizeof *words);
}

void oj_span_words_free(struct oj_span_words *words)
{
    oj_free(words->text);
    memset(words, 0, sizeof *words);
}

void oj_similar_fields_free(struct oj_similar *similar)
{
    oj_free(similar->fields[0]);
    oj_free(similar->fields[1]);
    memset(similar, 0, sizeof *similar);
}
