#include "oj_aggregate_words.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_quoted_name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- the words ----------------------------------------------------------- */

struct aggregate_scanner
{
    const char *dash, *words, *at;
    char *to; /* position in text where the next word is stored */
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

/* Reads a word, quoted or up to one of the letters in ends, without spaces
 * around it. */
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

/* After "(": reads the field, for concat a separator, and ")". */
static oj_status read_arguments(struct aggregate_scanner *s,
                                const char *function, struct oj_aggregate *what,
                                const char **field, struct oj_error *err)
{
    OJ_TRY(read_word(s, ",)", field, err));
    if (*s->at == ',' && what->kind == OJ_AGG_CONCAT)
    {
        s->at++;
        skip_spaces(s);
        if (*s->at != '"' && *s->at != '\'')
            return oj_fail(err, OJ_ERR_ARG,
                           "%sagg: the separator of concat must be in quotes, "
                           "as in concat(name, '; ')",
                           s->dash);
        OJ_TRY(read_quoted(s, &what->separator, err));
    }
    if (*s->at == ',')
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: %s takes one field; a field whose name has a "
                       "comma goes in double quotes",
                       s->dash, function);
    if (*s->at != ')')
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: the bracket of %s is not closed in %.200s",
                       s->dash, function, s->words);
    s->at++;
    if (**field == '\0')
        return oj_fail(err, OJ_ERR_ARG, "%sagg: %s() names no field", s->dash,
                       function);
    return OJ_OK;
}

/* Reads "as NAME", or makes a name like sum_fare. */
static oj_status read_column_name(struct aggregate_scanner *s,
                                  struct oj_aggregate_word *word,
                                  struct oj_error *err)
{
    skip_spaces(s);
    if (strncasecmp(s->at, "as", 2) == 0 &&
        (isspace((unsigned char)s->at[2]) || s->at[2] == '"'))
    {
        s->at += 2;
        word->is_named = 1;
        OJ_TRY(read_word(s, ",", &word->name, err));
        if (word->name[0] == '\0')
            return oj_fail(err, OJ_ERR_ARG,
                           "%sagg: the name after \"as\" is missing", s->dash);
        return OJ_OK;
    }
    word->name = s->to;
    s->to = stpcpy(s->to, word->function->name);
    if (word->field != NULL)
        s->to = stpcpy(stpcpy(s->to, "_"), word->field);
    s->to++;
    return OJ_OK;
}

/* Reads a function name. Error texts of oj_aggregate_find() begin with the
 * dash. */
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
    const char *name;
    OJ_TRY(read_function(s, word, err));
    name = word->function->name;
    what->kind = word->function->kind;
    what->separator = what->kind == OJ_AGG_CONCAT ? ", " : NULL;
    skip_spaces(s);
    if (*s->at == '(')
    {
        s->at++;
        OJ_TRY(read_arguments(s, name, what, &word->field, err));
    }
    else if (what->kind != OJ_AGG_COUNT)
        return oj_fail(err, OJ_ERR_ARG, "%sagg: %s needs a field, as in %s(F)",
                       s->dash, name, name);
    if (what->kind == OJ_AGG_COUNT && word->field != NULL)
    {
        if (strcmp(word->field, "*") == 0) /* count(*): SQL's word for all
                                              rows */
            word->field = NULL;
        else
            what->kind = OJ_AGG_COUNT_VALUES;
    }
    OJ_TRY(read_column_name(s, word, err));
    skip_spaces(s);
    if (*s->at != ',' && *s->at != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: a comma is missing before \"%.60s\"", s->dash,
                       s->at);
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
    /* room for all words, for fields again in default names, and four ends */
    size = 2 * (int64_t)strlen(text) +
           n * ((int64_t)sizeof OJ_AGGREGATE_NAMES + 4);
    OJ_NEW(words->text, size, err);
    OJ_NEW_ZEROED(words->word, n, err);
    OJ_NEW_ZEROED(words->aggregates, n, err);
    OJ_NEW_ZEROED(words->fields, n, err);
    OJ_NEW_ZEROED(words->types, n, err);
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

/* ---- bound to fields ----------------------------------------------------- */

static oj_status choose_value_form(const struct oj_aggregate_words *words,
                                   const struct oj_aggregate_word *word,
                                   enum oj_field_kind kind,
                                   enum oj_aggregate_form *form,
                                   struct oj_error *err)
{
    static const char *const needs[] = {
        "", "numbers", "a text, numbers or dates",
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
               (takes == OJ_AGG_TAKES_WRITTEN && kind != OJ_FIELD_BYTES) ||
               (takes >= OJ_AGG_TAKES_ORDERED && (is_time || is_text));
    if (takes == OJ_AGG_TAKES_WRITTEN) /* for concat */
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
                   words->dash, word->function->name, word->field, needs[takes],
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

/* Index of this field in this form; added if there is none yet. */
static int find_or_add_field(struct oj_aggregate_words *words,
                             const struct oj_aggregate_field *wanted)
{
    int n = words->n_fields;
    for (int i = 0; i < n; i++)
    {
        if (words->fields[i].column == wanted->column &&
            words->fields[i].form == wanted->form)
            return i;
    }
    words->fields[n] = *wanted;
    words->types[n] = type_of_values(wanted);
    return words->n_fields++;
}

/* Sets type and kind of the result column. field NULL: counts of pairs. */
static void define_result(const struct oj_aggregate_words *words, int i,
                          const struct oj_field_description *field)
{
    static const enum oj_field_kind usual[] = {[OJ_AGG_INTEGER] =
                                                   OJ_FIELD_INT64,
                                               [OJ_AGG_REAL] = OJ_FIELD_FLOAT64,
                                               [OJ_AGG_BYTES] = OJ_FIELD_TEXT};
    const struct oj_aggregate *what = &words->aggregates[i];
    struct oj_aggregate_word *word = &words->word[i];
    word->type =
        oj_aggregate_type(what->kind, field != NULL ? words->types[what->column]
                                                    : OJ_AGG_INTEGER);
    word->gives_value = field != NULL &&
                        word->function->takes == OJ_AGG_TAKES_ORDERED_GIVES_ONE;
    word->kind = word->gives_value ? field->kind : usual[word->type];
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
                           "of them, as in \"%s as NAME\"",
                           words->dash, word->name, word->function->name);
    }
    return OJ_OK;
}

oj_status oj_aggregate_words_bind(struct oj_aggregate_words *words, int i,
                                  int column,
                                  const struct oj_field_description *field,
                                  struct oj_error *err)
{
    enum oj_aggregate_kind kind = words->aggregates[i].kind;
    if (words->word[i].field == NULL)
        field = NULL;
    else
    {
        struct oj_aggregate_field wanted = {column, field->kind,
                                            OJ_FORM_NUMBER};
        OJ_TRY(choose_value_form(words, &words->word[i], field->kind,
                                 &wanted.form, err));
        words->aggregates[i].column = find_or_add_field(words, &wanted);
    }
    words->has_weighted_sum |= kind == OJ_AGG_WEIGHTED_SUM;
    words->needs_places |=
        kind == OJ_AGG_FIRST || kind == OJ_AGG_LAST || kind == OJ_AGG_CONCAT;
    define_result(words, i, field);
    return check_name_is_free(words, i, err);
}

void oj_aggregate_words_free(struct oj_aggregate_words *words)
{
    oj_free(words->types);
    oj_free(words->fields);
    oj_free(words->aggregates);
    oj_free(words->word);
    oj_free(words->text);
    *words = (struct oj_aggregate_words){0};
}
