#include "oj_similar.h"

#include "../../algs/relation/oj_text_condition.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <math.h>
#include <string.h>

/* Appends the name at *at to list; without one nothing is appended. */
static char **add_name(char **list, const char **at)
{
    char *name = CPLMalloc(strlen(*at) + 1);
    int is_quoted = **at == '"', is_open = 1;
    size_t n = 0;
    *at += is_quoted;
    while (**at != '\0' && (is_quoted || strchr("+=:", **at) == NULL))
    {
        is_open = !(is_quoted && **at == '"' && *++*at != '"');
        if (!is_open)
            break;
        name[n++] = *(*at)++;
    }
    name[n] = '\0';
    if (n > 0 && !(is_quoted && is_open))
        list = CSLAddString(list, name);
    CPLFree(name);
    return list;
}

/* ":0.001" after a name; 0: there is another word than a number above 0. */
static int add_weight(const char **at, int n, double **weight)
{
    double number = 1.0;
    if (**at == ':')
    {
        char *end;
        number = CPLStrtod(*at + 1, &end);
        if (end == *at + 1 || !(number > 0.0) || isinf(number))
            return 0;
        *at = end;
    }
    *weight = CPLRealloc(*weight, (size_t)n * sizeof **weight);
    (*weight)[n - 1] = number;
    return 1;
}

/* "a+b", up to what follows; 0: a name is missing. weight: each may have one;
 * NULL: none has. */
static int read_names(const char **at, char ***list, double **weight)
{
    for (int n = 0;; (*at)++)
    {
        *list = add_name(*list, at);
        if (CSLCount(*list) != ++n ||
            (weight != NULL && !add_weight(at, n, weight)))
            return 0;
        if (**at != '+')
            return 1;
    }
}

oj_status oj_similar_parse(const char *word, struct oj_similar *out,
                           struct oj_error *err)
{
    struct oj_similar similar = {0};
    const char *at = word;
    int is_good = read_names(&at, &similar.fields[0], NULL);
    oj_status status = OJ_OK;
    if (is_good && *at == '=')
    {
        at++;
        is_good = read_names(&at, &similar.fields[1], NULL);
    }
    else
        similar.fields[1] = CSLDuplicate(similar.fields[0]);
    if (!is_good || (*at != ':' && *at != '\0'))
        status = oj_fail(err, OJ_ERR_ARG,
                         "-similar takes LEFT[=RIGHT][:T], fields of the input "
                         "layer, of the join layer and how similar, as "
                         "name=NAME:0.6 or name+street:3/4 (names with : + = "
                         "in double quotes), not '%.100s'",
                         word);
    else if (*at == ':')
        status = oj_threshold_parse("-", "similar", at + 1, &similar.numerator,
                                    &similar.denominator, err);
    if (status == OJ_OK)
        *out = similar;
    else
        oj_similar_free(&similar);
    return status;
}

oj_status oj_vector_parse(const char *word, struct oj_vector_words *out,
                          struct oj_error *err)
{
    struct oj_vector_words words = {0};
    const char *at = word;
    int is_good = read_names(&at, &words.fields[0], &words.weight);
    int has_right = is_good && *at == '=';
    oj_status status = OJ_OK;
    if (has_right)
    {
        at++;
        is_good = read_names(&at, &words.fields[1], NULL);
    }
    else
        words.fields[1] = CSLDuplicate(words.fields[0]);
    if (is_good && has_right && *at == ':')
        status = oj_fail(err, OJ_ERR_ARG,
                         "-vector: weights stand on the left of = only, and "
                         "count for both sides: '%.100s'",
                         word);
    else if (!is_good || *at != '\0')
        status = oj_fail(err, OJ_ERR_ARG,
                         "-vector takes F[:WEIGHT]+..[=..], fields of the "
                         "input layer and of the join layer, with weights "
                         "above 0, as price:0.001+area=PRICE+AREA (names with "
                         ": + = in double quotes), not '%.100s'",
                         word);
    else if (CSLCount(words.fields[0]) != CSLCount(words.fields[1]))
        status =
            oj_fail(err, OJ_ERR_ARG,
                    "-vector %.100s: the two sides of = name %d and %d "
                    "fields",
                    word, CSLCount(words.fields[0]), CSLCount(words.fields[1]));
    if (status == OJ_OK)
        *out = words;
    else
        oj_vector_words_free(&words);
    return status;
}

void oj_vector_words_free(struct oj_vector_words *words)
{
    const struct oj_vector_words empty = {0};
    CSLDestroy(words->fields[0]);
    CSLDestroy(words->fields[1]);
    CPLFree(words->weight);
    *words = empty;
}

void oj_similar_free(struct oj_similar *similar)
{
    const struct oj_similar empty = {0};
    CSLDestroy(similar->fields[0]);
    CSLDestroy(similar->fields[1]);
    *similar = empty;
}
