#include "oj_aggregate_words.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_number.h"
#include "../../../flatten/base/oj_quoted_name.h"
#include "../../pairs/values/oj_cover_area.h"
#include "../../pairs/values/oj_pair_stage.h"
#include "oj_plain_value.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- parsing ------------------------------------------------------------- */

struct aggregate_scanner
{
    const char *dash, *words, *at;
    char *to; /* position in `text` where the next word is stored */
};

static void skip_spaces(struct aggregate_scanner *s)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
}

static oj_status read_quoted(struct aggregate_scanner *s, const char **out,
                             struct oj_error *err)
{
    char quote = *s->at;
    *out = s->to;
    if (!oj_quoted_name_read(&s->at, &s->to))
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: the quote %c is not closed in %.200s", s->dash,
                       quote, s->words);
    skip_spaces(s);
    return OJ_OK;
}

/* Reads a word into *out, without spaces around it: in quotes, or up to a
 * letter of `ends`. */
static oj_status read_word(struct aggregate_scanner *s, const char *ends,
                           const char **out, struct oj_error *err)
{
    size_t n;
    skip_spaces(s);
    if (*s->at == '"' || *s->at == '\'')
        return read_quoted(s, out, err);
    n = strcspn(s->at, ends);
    *out = memcpy(s->to, s->at, n);
    s->at += n;
    while (n > 0 && isspace((unsigned char)s->to[n - 1]))
        n--;
    s->to[n] = '\0';
    s->to += n + 1;
    return OJ_OK;
}

static oj_status read_separator(struct aggregate_scanner *s,
                                struct oj_aggregate *what, struct oj_error *err)
{
    skip_spaces(s);
    if (*s->at != '"' && *s->at != '\'')
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: the separator of concat must be in quotes, as "
                       "in concat(name, '; ')",
                       s->dash);
    return read_quoted(s, &what->separator, err);
}

/* Reads the percentage of percentile() into *what. Sets *digits and *n to its
 * text and the length of this text. */
static oj_status read_percent(struct aggregate_scanner *s,
                              struct oj_aggregate *what, const char **digits,
                              int *n, struct oj_error *err)
{
    const char *end;
    skip_spaces(s);
    *digits = s->at;
    end = oj_number_scan(s->at, s->at + strlen(s->at), &what->percent);
    /* decimal digits only: 0x10 ends at its x */
    if (end == NULL || isalpha((unsigned char)*end) ||
        !(what->percent >= 0.0 && what->percent <= 100.0))
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: percentile needs a number from 0 to 100 after "
                       "the field, as in percentile(F, 90)",
                       s->dash);
    *n = (int)(end - s->at);
    s->at = end;
    skip_spaces(s);
    return OJ_OK;
}

/* Reads the column of weights; an error if it is empty. */
static oj_status read_weight(struct aggregate_scanner *s, const char **weight,
                             struct oj_error *err)
{
    OJ_TRY(read_word(s, ",)", weight, err));
    if (**weight == '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: weighted_mean names no column after the comma: "
                       "name the weights, or leave the comma out to weight by "
                       "the size of the overlap",
                       s->dash);
    return OJ_OK;
}

/* Reads the arguments after "(": the field, an argument after a comma, and ")".
 * Sets *percent and *n_percent to the text of a percentage. */
static oj_status read_arguments(struct aggregate_scanner *s,
                                struct oj_aggregate_word *word,
                                struct oj_aggregate *what, const char **percent,
                                int *n_percent, struct oj_error *err)
{
    const char *function = word->function->name, **field = &word->field;
    const int takes_percent =
        what->kind == OJ_AGG_PERCENTILE && isnan(word->function->percent);
    OJ_TRY(read_word(s, ",)", field, err));
    if (takes_percent && **field != '\0')
    {
        s->at += *s->at == ',';
        OJ_TRY(read_percent(s, what, percent, n_percent, err));
    }
    else if (*s->at == ',' && what->kind == OJ_AGG_CONCAT)
    {
        s->at++;
        OJ_TRY(read_separator(s, what, err));
    }
    else if (*s->at == ',' && what->kind == OJ_AGG_WEIGHTED_MEAN)
    {
        s->at++;
        OJ_TRY(read_weight(s, &word->weight, err));
    }
    if (*s->at == ',')
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: %s takes %s; a field whose name has a comma "
                       "goes in double quotes",
                       s->dash, function,
                       takes_percent ? "one field and one number"
                       : what->kind == OJ_AGG_CONCAT
                           ? "one field and a separator"
                       : what->kind == OJ_AGG_WEIGHTED_MEAN
                           ? "a field and a column of weights"
                           : "one field");
    if (*s->at != ')' && *s->at != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: %s has '%.20s' where its closing bracket "
                       "should be",
                       s->dash, function, s->at);
    if (*s->at == '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: the bracket of %s is not closed in %.200s",
                       s->dash, function, s->words);
    s->at++;
    if (**field == '\0')
        return oj_fail(
            err, OJ_ERR_ARG,
            "%sagg: %s() needs the name of a field between its brackets",
            s->dash, function);
    return OJ_OK;
}

/* Writes the n characters of a percentage as part of a column name: "_99_9". */
static void write_percent(struct aggregate_scanner *s, const char *percent,
                          int n)
{
    if (n > 0)
        *s->to++ = '_';
    for (int i = 0; i < n; i++)
        *s->to++ = isalnum((unsigned char)percent[i]) ? percent[i] : '_';
    *s->to = '\0';
}

/* Reads "as NAME", or makes a default name such as sum_fare or
 * percentile_fare_90. */
static oj_status read_column_name(struct aggregate_scanner *s,
                                  struct oj_aggregate_word *word,
                                  const char *percent, int n_percent,
                                  struct oj_error *err)
{
    skip_spaces(s);
    if (strncasecmp(s->at, "as", 2) == 0 &&
        (isspace((unsigned char)s->at[2]) || s->at[2] == '"' ||
         s->at[2] == '\0'))
    {
        s->at += 2;
        word->is_named = 1;
        OJ_TRY(read_word(s, ",", &word->name, err));
        if (word->name[0] == '\0')
            return oj_fail(err, OJ_ERR_ARG,
                           "%sagg: the name after \"as\" is missing: write it, "
                           "as in \"count as n\"",
                           s->dash);
        return OJ_OK;
    }
    word->name = s->to;
    s->to = stpcpy(s->to, word->function->name);
    if (word->field != NULL)
        s->to = stpcpy(stpcpy(s->to, "_"), word->field);
    write_percent(s, percent, n_percent);
    s->to++;
    return OJ_OK;
}

/* Reads the name of a function. Error messages begin with s->dash and "agg". */
static oj_status read_function(struct aggregate_scanner *s,
                               struct oj_aggregate_word *word,
                               struct oj_error *err)
{
    const char *name, *before = s->dash[0] != '\0' ? "-agg: " : "agg: ";
    OJ_TRY(read_word(s, "(, \t\r\n", &name, err));
    return oj_aggregate_find(before, name, &word->function, err);
}

static oj_status parse_aggregate(struct aggregate_scanner *s,
                                 struct oj_aggregate *what,
                                 struct oj_aggregate_word *word,
                                 struct oj_error *err)
{
    const char *name, *percent = "";
    int n_percent = 0;
    OJ_TRY(read_function(s, word, err));
    name = word->function->name;
    what->kind = word->function->kind;
    what->percent = word->function->percent;
    what->separator = what->kind == OJ_AGG_CONCAT ? ", " : NULL;
    skip_spaces(s);
    if (*s->at == '(')
    {
        s->at++;
        if (what->kind == OJ_AGG_COVERED)
            return oj_fail(err, OJ_ERR_ARG,
                           "%sagg: %s takes no field, because it measures the "
                           "input feature: write it without brackets",
                           s->dash, name);
        OJ_TRY(read_arguments(s, word, what, &percent, &n_percent, err));
    }
    else if (what->kind != OJ_AGG_COUNT && what->kind != OJ_AGG_COVERED)
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: %s needs a field, as in %s(F%s)", s->dash, name,
                       name, strcmp(name, "percentile") == 0 ? ", 90" : "");
    if (what->kind == OJ_AGG_COUNT && word->field != NULL)
    {
        if (strcmp(word->field, "*") == 0) /* count(*), as in SQL: counts
                                              pairs */
            word->field = NULL;
        else
            what->kind = OJ_AGG_COUNT_VALUES;
    }
    OJ_TRY(read_column_name(s, word, percent, n_percent, err));
    skip_spaces(s);
    if (*s->at != ',' && *s->at != '\0')
        return oj_fail(
            err, OJ_ERR_ARG,
            "%sagg: write a comma between aggregates, before \"%.60s\"",
            s->dash, s->at);
    return OJ_OK;
}

static oj_status parse_aggregate_list(struct oj_aggregate_words *words,
                                      const char *text, struct oj_error *err)
{
    struct aggregate_scanner s = {words->dash, text, text, NULL};
    int64_t n = 1, size;
    for (const char *comma = text; (comma = strchr(comma, ',')) != NULL;
         comma++)
        n++;
    /* room for all words, for the fields and percentages that default names
     * repeat, and for up to 8 final zeros of each aggregate */
    size = 2 * (int64_t)strlen(text) +
           n * ((int64_t)sizeof OJ_AGGREGATE_NAMES + 8);
    OJ_NEW(words->text, size, err);
    OJ_NEW_ZEROED(words->word, n, err);
    OJ_NEW_ZEROED(words->aggregates, n, err);
    /* twice n, for values and weights */
    OJ_NEW_ZEROED(words->fields, 2 * n, err);
    OJ_NEW_ZEROED(words->types, 2 * n, err);
    OJ_NEW_ZEROED(words->is_of_pairs, 2 * n, err);
    s.to = words->text;
    do
    {
        int i = words->n++;
        OJ_TRY(
            parse_aggregate(&s, &words->aggregates[i], &words->word[i], err));
    } while (*s.at++ == ',');
    return OJ_OK;
}

oj_status oj_aggregate_words_parse(const char *dash, const char *text,
                                   struct oj_aggregate_words *out,
                                   struct oj_error *err)
{
    struct oj_aggregate_words words = {.dash = dash};
    oj_status status = parse_aggregate_list(&words, text, err);
    if (status != OJ_OK)
    {
        oj_aggregate_words_free(&words);
        return status;
    }
    *out = words;
    return OJ_OK;
}

/* ---- binding to fields --------------------------------------------------- */

/* Chooses the form in which a function needs its values. named: their name, for
 * messages. */
static oj_status choose_value_form(const struct oj_aggregate_words *words,
                                   const struct oj_aggregate_word *word,
                                   const char *named, enum oj_field_kind kind,
                                   enum oj_aggregate_form *form,
                                   struct oj_error *err)
{
    static const char *const needs[] = {
        "", "numbers", "a text, numbers, dates or a list",
        "numbers, texts, dates or times", "numbers, texts, dates or times"};
    enum oj_aggregate_takes takes = word->function->takes;
    const char *hint = words->dash[0] != '\0'
                           ? ", which -join_sql can CAST; of CSV files "
                             "-joo AUTODETECT_TYPE=YES tells the types"
                           : ", which can be cast";
    int is_number = oj_field_kind_is_number(kind);
    int is_time = oj_field_kind_is_time(kind);
    int is_text = kind == OJ_FIELD_TEXT;
    int fits = takes == OJ_AGG_TAKES_ANY || is_number ||
               kind == OJ_FIELD_NULL ||
               (takes == OJ_AGG_TAKES_WRITTEN &&
                (is_text || is_time || oj_field_kind_is_list(kind))) ||
               (takes >= OJ_AGG_TAKES_ORDERED && (is_time || is_text));
    if (takes == OJ_AGG_TAKES_WRITTEN) /* only concat */
        *form = is_text ? OJ_FORM_TEXT : OJ_FORM_WRITTEN;
    else if (is_number)
        *form = OJ_FORM_NUMBER;
    else if (takes == OJ_AGG_TAKES_ANY || kind == OJ_FIELD_NULL)
        *form = OJ_FORM_PRESENCE;
    else
        *form = is_text ? OJ_FORM_TEXT : OJ_FORM_TIME;
    if (fits)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG, "%sagg: %s(%s) needs %s; the field is %s%s",
                   words->dash, word->function->name, named, needs[takes],
                   oj_field_kind_name(kind), is_text ? hint : "");
}

static enum oj_aggregate_type
type_of_values(const struct oj_aggregate_field *field)
{
    if (field->form == OJ_FORM_PRESENCE)
        return OJ_AGG_INTEGER;
    if (field->form != OJ_FORM_NUMBER)
        return OJ_AGG_BYTES;
    return oj_field_kind_is_integer(field->kind) ? OJ_AGG_INTEGER : OJ_AGG_REAL;
}

/* Returns the index of a field in this form in words->fields; adds the field if
 * it is not there. */
static int find_or_add_field(struct oj_aggregate_words *words,
                             const struct oj_aggregate_field *wanted)
{
    int n = words->n_fields;
    for (int i = 0; i < n; i++)
    {
        if (words->fields[i].origin == wanted->origin &&
            words->fields[i].column == wanted->column &&
            words->fields[i].form == wanted->form)
            return i;
    }
    words->fields[n] = *wanted;
    words->types[n] = type_of_values(wanted);
    words->is_of_pairs[n] = wanted->origin != OJ_COLUMN_JOIN;
    words->n_of_pairs += words->is_of_pairs[n];
    words->needs_places |= wanted->origin == OJ_COLUMN_JOIN_FID;
    return words->n_fields++;
}

/* Sets type and kind of the result column of aggregate i. values NULL: the
 * aggregate counts pairs. */
static void define_result(const struct oj_aggregate_words *words, int i,
                          const struct oj_aggregate_operand *values)
{
    static const enum oj_field_kind usual[] = {[OJ_AGG_INTEGER] =
                                                   OJ_FIELD_INT64,
                                               [OJ_AGG_REAL] = OJ_FIELD_FLOAT64,
                                               [OJ_AGG_BYTES] = OJ_FIELD_TEXT};
    const struct oj_aggregate *what = &words->aggregates[i];
    struct oj_aggregate_word *word = &words->word[i];
    word->type = oj_aggregate_type(what->kind, values != NULL
                                                   ? words->types[what->column]
                                                   : OJ_AGG_INTEGER);
    word->gives_value = values != NULL &&
                        word->function->takes == OJ_AGG_TAKES_ORDERED_GIVES_ONE;
    word->kind = word->gives_value ? values->kind : usual[word->type];
}

static oj_status check_name_is_free(const struct oj_aggregate_words *words,
                                    int i, struct oj_error *err)
{
    const struct oj_aggregate_word *word = &words->word[i];
    for (int k = 0; k < i; k++)
    {
        if (strcasecmp(word->name, words->word[k].name) == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "%sagg: two columns would be called '%s'; name one "
                           "of them, as in \"%s%s as NAME\"",
                           words->dash, word->name, word->function->name,
                           word->field != NULL ? "(..)" : "");
    }
    return OJ_OK;
}

/* Functions that have no field, and the pair value that each of them
 * aggregates. */
static const struct
{
    const char *function;
    enum oj_pair_value value;
} values_of_covers[] = {{"covered_area", OJ_PAIR_COVERED_AREA},
                        {"covered_length", OJ_PAIR_COVERED_LENGTH},
                        {"covered_percent", OJ_PAIR_COVERED_PERCENT}};

static struct oj_aggregate_operand
operand_of_cover_function(const char *function)
{
    const int n = (int)(sizeof values_of_covers / sizeof *values_of_covers);
    int i = 0;
    while (i + 1 < n && strcmp(values_of_covers[i].function, function) != 0)
        i++;
    return (struct oj_aggregate_operand){
        OJ_COLUMN_PAIR_VALUE, (int)values_of_covers[i].value, OJ_FIELD_FLOAT64};
}

/* Finds the operand of aggregate i among words->fields, in the form that the
 * function needs, or adds it. *index is its index in words->fields. */
static oj_status find_or_add_operand(struct oj_aggregate_words *words, int i,
                                     const char *named,
                                     const struct oj_aggregate_operand *operand,
                                     int *index, struct oj_error *err)
{
    struct oj_aggregate_field wanted = {operand->origin, operand->column,
                                        operand->kind, OJ_FORM_NUMBER};
    OJ_TRY(choose_value_form(words, &words->word[i], named, operand->kind,
                             &wanted.form, err));
    *index = find_or_add_field(words, &wanted);
    return OJ_OK;
}

int oj_aggregate_words_are_counts(const struct oj_aggregate_words *words)
{
    int i = 0;
    while (i < words->n && words->aggregates[i].kind == OJ_AGG_COUNT)
        i++;
    return i == words->n;
}

oj_status oj_aggregate_words_bind(struct oj_aggregate_words *words, int i,
                                  const struct oj_aggregate_operand *values,
                                  const struct oj_aggregate_operand *weights,
                                  struct oj_error *err)
{
    static const struct oj_aggregate_operand overlap = {
        OJ_COLUMN_PAIR_VALUE, OJ_PAIR_OVERLAP_SIZE, OJ_FIELD_FLOAT64};
    const struct oj_aggregate_word *word = &words->word[i];
    struct oj_aggregate *what = &words->aggregates[i];
    enum oj_aggregate_kind kind = what->kind;
    struct oj_aggregate_operand cover;
    const char *named = word->field;
    if (kind == OJ_AGG_COVERED)
    {
        cover = operand_of_cover_function(word->function->name);
        values = &cover;
        named = "";
    }
    if (named == NULL)
        values = NULL;
    else
        OJ_TRY(
            find_or_add_operand(words, i, named, values, &what->column, err));
    if (kind == OJ_AGG_WEIGHTED_MEAN)
        OJ_TRY(find_or_add_operand(
            words, i, word->weight != NULL ? word->weight : "overlap",
            word->weight != NULL ? weights : &overlap, &what->weight, err));
    words->has_weighted_sum |= kind == OJ_AGG_WEIGHTED_SUM;
    words->needs_places |=
        kind == OJ_AGG_FIRST || kind == OJ_AGG_LAST || kind == OJ_AGG_CONCAT;
    define_result(words, i, values);
    return check_name_is_free(words, i, err);
}

void oj_aggregate_words_request_values(const struct oj_aggregate_words *words,
                                       unsigned char *want)
{
    for (int i = 0; i < words->n_fields; i++)
    {
        if (words->fields[i].origin == OJ_COLUMN_PAIR_VALUE)
            want[words->fields[i].column] = 1;
    }
}

void oj_aggregate_words_request_share_values(unsigned char *want)
{
    want[OJ_PAIR_OVERLAP_AREA] = want[OJ_PAIR_OVERLAP_LENGTH] =
        want[OJ_PAIR_JOIN_AREA] = 1;
}

void oj_aggregate_words_free(struct oj_aggregate_words *words)
{
    oj_free(words->types);
    oj_free(words->is_of_pairs);
    oj_free(words->fields);
    oj_free(words->aggregates);
    oj_free(words->word);
    oj_free(words->text);
    *words = (struct oj_aggregate_words){0};
}

/* ---- columns of pairs: values for each pair ------------------------------ */

static oj_status reserve_pair_memory(enum oj_aggregate_type type, int64_t n,
                                     struct oj_aggregate_pair_memory *memory,
                                     struct oj_error *err)
{
    static const size_t sizes[] = {[OJ_AGG_INTEGER] = sizeof(int64_t),
                                   [OJ_AGG_REAL] = sizeof(double),
                                   [OJ_AGG_BYTES] =
                                       sizeof(struct oj_aggregate_bytes)};
    OJ_TRY(oj_reserve(&memory->is_null, 0, n, &memory->cap_null, 1, err));
    return oj_reserve(&memory->value, 0, n, &memory->cap_value, sizes[type],
                      err);
}

/* Returns the array with a value for each entry of the answer, or NULL if no
 * pair has a value. */
static const double *reals_of_entries(const struct oj_aggregate_field *field,
                                      const struct oj_aggregate_pair_list *list)
{
    if (field->origin == OJ_COLUMN_MEASURE)
        return list->matches->measure;
    return list->values != NULL ? list->values->value[field->column] : NULL;
}

/* Returns the value of pair i as a double, or NaN if it has none. */
static double read_pair_value_as_real(const struct oj_aggregate_field *field,
                                      const struct oj_aggregate_pair_list *list,
                                      int64_t i)
{
    const double *values = reals_of_entries(field, list);
    return values != NULL ? values[list->entry[i]] : (double)NAN;
}

/* Sets *value to the value of pair i as an integer, or to the code of its text.
 * Returns 0 if the pair has no value, otherwise 1. */
static int read_pair_value_as_integer(const struct oj_aggregate_field *field,
                                      const struct oj_aggregate_pair_list *list,
                                      int64_t i, int64_t *value)
{
    double real;
    *value = 0;
    if (field->origin == OJ_COLUMN_RANK)
        *value = list->rank[i];
    else if (field->origin == OJ_COLUMN_JOIN_FID)
        *value = list->fid[list->at[i]];
    else
    {
        real = read_pair_value_as_real(field, list, i);
        *value = isnan(real) ? 0 : (int64_t)real;
        return !isnan(real);
    }
    return 1;
}

/* Reads a field as doubles into memory->value, and sets is_null. Returns 1 if
 * any pair has no value. */
static int read_reals(const struct oj_aggregate_field *field,
                      const struct oj_aggregate_pair_list *list,
                      struct oj_aggregate_pair_memory *memory)
{
    const double *values = reals_of_entries(field, list);
    double *real = memory->value;
    int any_null = 0;
    for (int64_t i = 0; i < list->n; i++)
    {
        real[i] = values != NULL ? values[list->entry[i]] : (double)NAN;
        memory->is_null[i] = (uint8_t)(isnan(real[i]) != 0);
        any_null |= memory->is_null[i];
    }
    return any_null;
}

/* Reads a field as integers into memory->value, and sets is_null. Returns 1 if
 * any pair has no value. */
static int read_integers(const struct oj_aggregate_field *field,
                         const struct oj_aggregate_pair_list *list,
                         struct oj_aggregate_pair_memory *memory)
{
    int64_t *integer = memory->value;
    int any_null = 0;
    for (int64_t i = 0; i < list->n; i++)
    {
        memory->is_null[i] =
            (uint8_t)!read_pair_value_as_integer(field, list, i, &integer[i]);
        any_null |= memory->is_null[i];
    }
    return any_null;
}

/* Reads a field as texts, which are static, into memory->value, and sets
 * is_null. */
static void read_texts(const struct oj_aggregate_field *field,
                       const struct oj_aggregate_pair_list *list,
                       struct oj_aggregate_pair_memory *memory)
{
    const enum oj_pair_value which = (enum oj_pair_value)field->column;
    struct oj_aggregate_bytes *bytes = memory->value;
    for (int64_t i = 0; i < list->n; i++)
    {
        const char *text =
            oj_pair_value_text(which, read_pair_value_as_real(field, list, i));
        memory->is_null[i] = text == NULL;
        bytes[i].bytes = text != NULL ? text : "";
        bytes[i].n = (int64_t)strlen(bytes[i].bytes);
    }
}

/* Writes the value of each pair as text to memory->text, makes memory->value
 * the array of these texts, and sets is_null. */
static oj_status
write_values_as_texts(const struct oj_aggregate_field *field,
                      const struct oj_aggregate_pair_list *list,
                      struct oj_aggregate_pair_memory *memory,
                      struct oj_error *err)
{
    struct oj_aggregate_bytes *bytes = memory->value;
    const char *at;
    memory->n_text = 0;
    for (int64_t i = 0; i < list->n; i++)
    {
        struct oj_plain_value value = oj_plain_integer(0);
        int is_there;
        if (oj_field_kind_is_integer(field->kind))
            is_there =
                read_pair_value_as_integer(field, list, i, &value.integer);
        else
        {
            value = oj_plain_real(read_pair_value_as_real(field, list, i));
            is_there = !isnan(value.real);
        }
        memory->is_null[i] = (uint8_t)!is_there;
        OJ_TRY(oj_reserve(&memory->text, memory->n_text,
                          memory->n_text + OJ_PLAIN_TEXT_BYTES,
                          &memory->cap_text, 1, err));
        bytes[i].n = oj_plain_value_write(&value, OJ_PLAIN_DIGITS,
                                          memory->text + memory->n_text);
        memory->n_text += bytes[i].n;
    }
    at = memory->text; /* the memory is not reallocated from here on */
    for (int64_t i = 0; i < list->n; i++)
    {
        bytes[i].bytes = at;
        at += bytes[i].n;
    }
    return OJ_OK;
}

static oj_status read_pair_column(const struct oj_aggregate_words *words, int f,
                                  const struct oj_aggregate_pair_list *list,
                                  struct oj_aggregate_pair_memory *memory,
                                  struct oj_aggregate_column *column,
                                  struct oj_error *err)
{
    const struct oj_aggregate_field *field = &words->fields[f];
    int any_null = 0;
    OJ_TRY(reserve_pair_memory(words->types[f], list->n, memory, err));
    if (field->form == OJ_FORM_WRITTEN || field->form == OJ_FORM_TEXT)
        any_null = 1;
    if (field->form == OJ_FORM_WRITTEN)
        OJ_TRY(write_values_as_texts(field, list, memory, err));
    else if (field->form == OJ_FORM_TEXT)
        read_texts(field, list, memory);
    else if (words->types[f] == OJ_AGG_INTEGER)
        any_null = read_integers(field, list, memory);
    else
        any_null = read_reals(field, list, memory);
    /* only the member of the column's type is read */
    column->real = memory->value;
    column->integer = memory->value;
    column->bytes = memory->value;
    column->is_null = any_null ? memory->is_null : NULL;
    return OJ_OK;
}

oj_status
oj_aggregate_pair_columns_read(const struct oj_aggregate_words *words,
                               const struct oj_aggregate_pair_list *list,
                               struct oj_aggregate_pair_columns *memory,
                               struct oj_aggregate_column *columns,
                               struct oj_error *err)
{
    if (words->n_of_pairs == 0 || list->n == 0)
        return OJ_OK;
    if (memory->memory == NULL)
    {
        OJ_NEW_ZEROED(memory->memory, words->n_fields, err);
        memory->n = words->n_fields;
    }
    for (int f = 0; f < words->n_fields; f++)
    {
        if (words->is_of_pairs[f])
            OJ_TRY(read_pair_column(words, f, list, &memory->memory[f],
                                    &columns[f], err));
    }
    return OJ_OK;
}

void oj_aggregate_pair_columns_free(struct oj_aggregate_pair_columns *memory)
{
    for (int i = 0; i < memory->n; i++)
    {
        oj_free(memory->memory[i].value);
        oj_free(memory->memory[i].is_null);
        oj_free(memory->memory[i].text);
    }
    oj_free(memory->memory);
    *memory = (struct oj_aggregate_pair_columns){0};
}

void oj_aggregate_add_counts(const struct oj_matches *matches,
                             int64_t first_row,
                             struct oj_aggregates *aggregates)
{
    int64_t *count = oj_aggregates_counts(aggregates) + first_row;
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        const int64_t end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++)
            count[row] += oj_matches_pairs_of_entry(matches, p);
    }
}

static int is_covered_percent(const struct oj_aggregate_words *words, int i)
{
    const struct oj_aggregate *what = &words->aggregates[i];
    return what->kind == OJ_AGG_COVERED &&
           words->fields[what->column].column == OJ_PAIR_COVERED_PERCENT;
}

/* Marks the rows for aggregate i, which is a covered_percent. */
static oj_status mark_undefined_percents(const struct oj_flat *input,
                                         int64_t first_row, int i,
                                         struct oj_aggregates *aggregates,
                                         struct oj_error *err)
{
    struct oj_cover_work work = {0};
    oj_status status = OJ_OK;
    for (int64_t row = 0; row < input->n_features && status == OJ_OK; row++)
    {
        int has_size = 1;
        if (oj_aggregates_pair_count(aggregates, first_row + row) == 0)
            status = oj_cover_has_size(&work, input, row, &has_size, err);
        if (status == OJ_OK && !has_size)
            oj_aggregates_set_undefined(aggregates, first_row + row, i);
    }
    oj_cover_work_free(&work);
    return status;
}

oj_status oj_aggregate_words_mark_undefined_percents(
    const struct oj_aggregate_words *words, const struct oj_flat *input,
    int64_t first_row, struct oj_aggregates *aggregates, struct oj_error *err)
{
    for (int i = 0; i < words->n; i++)
    {
        if (is_covered_percent(words, i))
            OJ_TRY(
                mark_undefined_percents(input, first_row, i, aggregates, err));
    }
    return OJ_OK;
}
