#include "oj_compared_fields.h"

#include "../../flatten/arrays/oj_vectors.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_number.h"
#include "oj_text_similarity_condition.h"

#include <math.h>
#include <string.h>

/* Writes the name at *at to *to, which then is behind its end; 0: none. */
static int read_name(const char **at, char **to)
{
    const char *first = *to;
    int is_quoted = **at == '"', is_open = 1;
    *at += is_quoted;
    while (**at != '\0' && (is_quoted || strchr("+=:", **at) == NULL))
    {
        is_open = !(is_quoted && **at == '"' && *++*at != '"');
        if (!is_open)
            break;
        *(*to)++ = *(*at)++;
    }
    *(*to)++ = '\0';
    return *first != '\0' && !(is_quoted && is_open);
}

/* ":0.001" after a name; 0: there is another word than a number above 0. */
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

/* "a+b", up to what follows. weight: each name may have one; NULL: none has.
 * *n is how many there are, or -1: one is missing. */
static oj_status read_names(const char **at, char ***names, double **weight,
                            int *n, struct oj_error *err)
{
    size_t n_bytes = strlen(*at) + 1;
    int64_t n_most = 1;
    char *to;
    for (const char *c = *at; *c != '\0'; c++)
        n_most += *c == '+';
    /* the texts lie behind their addresses */
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
        is_good = read_name(at, &to) &&
                  (weight == NULL || read_weight(at, &(*weight)[i]));
        (*names)[*n] = NULL;
        if (!is_good)
            *n = -1;
        if (!is_good || **at != '+')
            return OJ_OK;
    }
}

/* Both sides of "a+b=c+d", the second like the first where there is no =. */
static oj_status parse_fields_of_both_sides(const char **at, char **fields[2],
                                            double **weight, int n[2],
                                            struct oj_error *err)
{
    const char *first = *at;
    OJ_TRY(read_names(at, &fields[0], weight, &n[0], err));
    if (n[0] > 0 && **at == '=')
    {
        (*at)++;
        return read_names(at, &fields[1], NULL, &n[1], err);
    }
    return read_names(&first, &fields[1], weight, &n[1], err);
}

static oj_status parse_similar(const char *dash, const char *word,
                               struct oj_similar *out, struct oj_error *err)
{
    const char *at = word;
    int n[2];
    OJ_TRY(parse_fields_of_both_sides(&at, out->fields, NULL, n, err));
    if (n[0] < 0 || n[1] < 0 || (*at != ':' && *at != '\0'))
        return oj_fail(err, OJ_ERR_ARG,
                       "%ssimilar takes LEFT[=RIGHT][:T], fields of the input "
                       "layer, of the join layer and how similar, as "
                       "name=NAME:0.6 or name+street:3/4 (names with : + = "
                       "in double quotes), not '%.100s'",
                       dash, word);
    if (n[0] > OJ_MOST_TEXT_FIELDS || n[1] > OJ_MOST_TEXT_FIELDS)
        return oj_fail(err, OJ_ERR_ARG,
                       "%ssimilar puts at most %d fields together", dash,
                       OJ_MOST_TEXT_FIELDS);
    if (*at == '\0')
        return OJ_OK;
    return oj_threshold_parse(dash, "similar", at + 1, &out->numerator,
                              &out->denominator, err);
}

oj_status oj_similar_parse(const char *dash, const char *word,
                           struct oj_similar *out, struct oj_error *err)
{
    struct oj_similar similar = {0};
    oj_status status = parse_similar(dash, word, &similar, err);
    if (status == OJ_OK)
        *out = similar;
    else
        oj_similar_free(&similar);
    return status;
}

static oj_status parse_vector(const char *dash, const char *word,
                              struct oj_vector_words *out, struct oj_error *err)
{
    const char *at = word;
    int n[2];
    OJ_TRY(parse_fields_of_both_sides(&at, out->fields, &out->weight, n, err));
    out->n = n[0];
    if (n[0] > 0 && n[1] > 0 && *at == ':' && strchr(word, '=') != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "%svector: weights stand on the left of = only, and "
                       "count for both sides: '%.100s'",
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
                       "%svector %.100s: the two sides of = name %d and %d "
                       "fields",
                       dash, word, n[0], n[1]);
    if (n[0] > OJ_MOST_DIMENSIONS)
        return oj_fail(err, OJ_ERR_ARG, "%svector takes at most %d fields",
                       dash, OJ_MOST_DIMENSIONS);
    return OJ_OK;
}

oj_status oj_vector_parse(const char *dash, const char *word,
                          struct oj_vector_words *out, struct oj_error *err)
{
    struct oj_vector_words words = {0};
    oj_status status = parse_vector(dash, word, &words, err);
    if (status == OJ_OK)
        *out = words;
    else
        oj_vector_words_free(&words);
    return status;
}

void oj_vector_words_free(struct oj_vector_words *words)
{
    oj_free(words->fields[0]);
    oj_free(words->fields[1]);
    oj_free(words->weight);
    memset(words, 0, sizeof *words);
}

void oj_similar_free(struct oj_similar *similar)
{
    oj_free(similar->fields[0]);
    oj_free(similar->fields[1]);
    memset(similar, 0, sizeof *similar);
}
