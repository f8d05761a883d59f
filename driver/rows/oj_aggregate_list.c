#include "oj_aggregate_list.h"

#include "../../flatten/base/oj_array.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char usual_separator[] = ", ";

static const struct
{
    const char *name;
    enum oj_aggregate_kind kind;
} functions[] = {
    {"count", OJ_AGG_COUNT},
    {"sum", OJ_AGG_SUM},
    {"mean", OJ_AGG_MEAN},
    {"avg", OJ_AGG_MEAN}, /* as SQL has it; columns are called mean */
    {"min", OJ_AGG_MIN},
    {"max", OJ_AGG_MAX},
    {"median", OJ_AGG_MEDIAN},
    {"stddev", OJ_AGG_STDDEV},
    {"first", OJ_AGG_FIRST},
    {"last", OJ_AGG_LAST},
    {"mode", OJ_AGG_MODE},
    {"unique", OJ_AGG_UNIQUE},
    {"concat", OJ_AGG_CONCAT},
    {"weighted_sum", OJ_AGG_WEIGHTED_SUM},
};

static const char known[] = "count, sum, mean (or avg), min, max, median, "
                            "stddev, first, last, mode, unique, "
                            "concat, weighted_sum";

enum
{
    N_FUNCTIONS = (int)(sizeof functions / sizeof *functions)
};

const char *oj_aggregate_name(enum oj_aggregate_kind kind)
{
    for (int i = 0; i < N_FUNCTIONS; i++)
    {
        if (functions[i].kind == kind)
            return functions[i].name;
    }
    return "count";
}

/* ---- words -------------------------------------------------------------- */

struct scanner
{
    const char *words, *at;
    struct oj_aggregate_list *list;
};

static void pass_spaces(struct scanner *s)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
}

/* Room for a text of n letters, which the list owns. */
static oj_status new_text(struct oj_aggregate_list *list, size_t n, char **out,
                          struct oj_error *err)
{
    OJ_TRY(oj_reserve(&list->text, list->n_texts, list->n_texts + 1,
                      &list->cap_texts, sizeof *list->text, err));
    OJ_NEW(*out, (int64_t)n + 1, err);
    (*out)[n] = '\0';
    list->text[list->n_texts++] = *out;
    return OJ_OK;
}

static oj_status take_quoted(struct scanner *s, const char **out,
                             struct oj_error *err)
{
    char quote = *s->at;
    size_t n = 0;
    char *text;
    OJ_TRY(new_text(s->list, strlen(s->at), &text, err));
    for (s->at++; *s->at != '\0'; s->at++)
    {
        if (*s->at == quote)
        {
            if (s->at[1] != quote)
                break;
            s->at++;
        }
        text[n++] = *s->at;
    }
    if (*s->at == '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: the quote %c is not closed in %.200s", quote,
                       s->words);
    s->at++;
    text[n] = '\0';
    pass_spaces(s);
    *out = text;
    return OJ_OK;
}

/* Up to one of the letters in ends, less spaces on both sides; or quoted. */
static oj_status take_word(struct scanner *s, const char *ends,
                           const char **out, struct oj_error *err)
{
    size_t n;
    char *text;
    pass_spaces(s);
    if (*s->at == '"' || *s->at == '\'')
        return take_quoted(s, out, err);
    n = strcspn(s->at, ends);
    OJ_TRY(new_text(s->list, n, &text, err));
    memcpy(text, s->at, n);
    s->at += n;
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        text[--n] = '\0';
    *out = text;
    return OJ_OK;
}

/* ---- one aggregate ------------------------------------------------------ */

static oj_status find_function(const char *name, enum oj_aggregate_kind *kind,
                               struct oj_error *err)
{
    for (int i = 0; i < N_FUNCTIONS; i++)
    {
        if (strcasecmp(functions[i].name, name) == 0)
        {
            *kind = functions[i].kind;
            return OJ_OK;
        }
    }
    if (name[0] == '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: a function is missing; there are %s", known);
    return oj_fail(err, OJ_ERR_ARG,
                   "-agg: there is no function '%.60s'; there are %s", name,
                   known);
}

/* After "(": the field, for concat a separator, and ")". */
static oj_status take_arguments(struct scanner *s,
                                struct oj_aggregate_word *word,
                                struct oj_error *err)
{
    const char *function = oj_aggregate_name(word->kind);
    OJ_TRY(take_word(s, ",)", &word->field, err));
    if (*s->at == ',' && word->kind == OJ_AGG_CONCAT)
    {
        s->at++;
        pass_spaces(s);
        if (*s->at != '"' && *s->at != '\'')
            return oj_fail(err, OJ_ERR_ARG,
                           "-agg: the separator of concat must be in quotes, "
                           "as in concat(name, '; ')");
        OJ_TRY(take_quoted(s, &word->separator, err));
    }
    if (*s->at == ',')
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: %s takes one field; a field whose name has a "
                       "comma goes in double quotes",
                       function);
    if (*s->at != ')')
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: the bracket of %s is not closed in %.200s",
                       function, s->words);
    s->at++;
    if (word->field[0] == '\0')
        return oj_fail(err, OJ_ERR_ARG, "-agg: %s() names no field", function);
    /* SQL's word for all rows. */
    if (word->kind == OJ_AGG_COUNT && strcmp(word->field, "*") == 0)
        word->field = NULL;
    return OJ_OK;
}

static oj_status take_name(struct scanner *s, struct oj_aggregate_word *word,
                           struct oj_error *err)
{
    const char *function = oj_aggregate_name(word->kind);
    char *text;
    size_t n;
    pass_spaces(s);
    if (strncasecmp(s->at, "as", 2) == 0 &&
        (isspace((unsigned char)s->at[2]) || s->at[2] == '"'))
    {
        s->at += 2;
        OJ_TRY(take_word(s, ",", &word->name, err));
        word->is_named = 1;
        if (word->name[0] == '\0')
            return oj_fail(err, OJ_ERR_ARG,
                           "-agg: the name after \"as\" is missing");
        return OJ_OK;
    }
    n = strlen(function);
    OJ_TRY(new_text(s->list,
                    n + (word->field != NULL ? strlen(word->field) + 1 : 0),
                    &text, err));
    memcpy(text, function, n);
    if (word->field != NULL)
    {
        text[n] = '_';
        memcpy(text + n + 1, word->field, strlen(word->field));
    }
    word->name = text;
    return OJ_OK;
}

static oj_status take_aggregate(struct scanner *s, struct oj_error *err)
{
    struct oj_aggregate_list *list = s->list;
    struct oj_aggregate_word word = {OJ_AGG_COUNT, NULL, NULL, NULL, 0};
    const char *function;
    OJ_TRY(take_word(s, "(, \t\r\n", &function, err));
    OJ_TRY(find_function(function, &word.kind, err));
    pass_spaces(s);
    if (*s->at == '(')
    {
        s->at++;
        OJ_TRY(take_arguments(s, &word, err));
    }
    else if (word.kind != OJ_AGG_COUNT)
        return oj_fail(err, OJ_ERR_ARG, "-agg: %s needs a field, as in %s(F)",
                       oj_aggregate_name(word.kind),
                       oj_aggregate_name(word.kind));
    OJ_TRY(take_name(s, &word, err));
    if (word.kind == OJ_AGG_COUNT && word.field != NULL)
        word.kind = OJ_AGG_COUNT_VALUES;
    if (word.kind == OJ_AGG_CONCAT && word.separator == NULL)
        word.separator = usual_separator;
    pass_spaces(s);
    if (*s->at != ',' && *s->at != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: a comma is missing before \"%.60s\"", s->at);
    OJ_TRY(oj_reserve(&list->word, list->n, list->n + 1, &list->capacity,
                      sizeof *list->word, err));
    list->word[list->n++] = word;
    return OJ_OK;
}

oj_status oj_aggregate_list_parse(const char *words,
                                  struct oj_aggregate_list *list,
                                  struct oj_error *err)
{
    struct oj_aggregate_list empty = {0};
    struct scanner s = {words, words, list};
    oj_status status = OJ_OK;
    *list = empty;
    do
    {
        status = take_aggregate(&s, err);
    } while (status == OJ_OK && *s.at++ == ',');
    if (status != OJ_OK)
        oj_aggregate_list_free(list);
    return status;
}

void oj_aggregate_list_free(struct oj_aggregate_list *list)
{
    const struct oj_aggregate_list empty = {0};
    for (int64_t i = 0; i < list->n_texts; i++)
        oj_free(list->text[i]);
    oj_free(list->text);
    oj_free(list->word);
    *list = empty;
}
