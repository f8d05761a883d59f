/* Reads any bytes as the text of -agg, for fields of all kinds with odd names.
 * The text is refused with one line of error, or gives as many named columns as
 * it has functions. With clang: -fsanitize=fuzzer,address,undefined. With
 * OJ_FUZZ_MAIN, fuzz_aggregates [ITERATIONS] makes texts from the grammar and
 * mutates them, from a fixed seed. */
#include "../../algs/api/rows/oj_row_columns.h"
#include "../../driver/base/oj_message.h"
#include "../../flatten/base/oj_alloc.h"
#include "fuzz_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct oj_field_description fields[] = {
    {"f", OJ_FIELD_INT32, 1},       {"r", OJ_FIELD_FLOAT64, 1},
    {"name", OJ_FIELD_TEXT, 1},     {"a=b", OJ_FIELD_INT64, 1},
    {"c, d", OJ_FIELD_BOOLEAN, 1},  {"say \"x\"", OJ_FIELD_INT16, 1},
    {"d", OJ_FIELD_DATE, 1},        {"it's", OJ_FIELD_DATETIME, 1},
    {"(", OJ_FIELD_BYTES, 1},       {"", OJ_FIELD_TEXT_LIST, 1},
    {"OGR_STYLE", OJ_FIELD_NULL, 1}};

enum
{
    N_FIELDS = sizeof fields / sizeof *fields
};

static oj_status find_field(void *user, const char *name, int *column,
                            struct oj_field_description *field,
                            struct oj_error *err)
{
    (void)user;
    for (int f = 0; f < N_FIELDS; f++)
    {
        if (strcasecmp(fields[f].name, name) != 0)
            continue;
        *column = f;
        *field = fields[f];
        return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_ARG, "no such field");
}

/* Binds the aggregates for a join with the 3 nearest features. */
static oj_status bind_to_fields(struct oj_aggregate_words *words,
                                struct oj_error *err)
{
    const struct oj_join_field_finder finder = {find_field, NULL};
    struct oj_relation relation = oj_relation_default();
    const struct oj_row_column_words names = {.dash = "-",
                                              .relation = &relation};
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    const char *hidden;
    relation.k = 3;
    return oj_aggregate_columns_bind(&names, &finder, words, want, &hidden,
                                     err);
}

static void check_words(const struct oj_aggregate_words *words)
{
    require(words->n > 0, "no column");
    require(words->n_fields <= 2 * words->n,
            "more fields than values and weights");
    for (int i = 0; i < words->n; i++)
    {
        const struct oj_aggregate_word *word = &words->word[i];
        require(word->name != NULL && word->name[0] != '\0',
                "a column without a name");
        require(word->field == NULL ||
                    (words->aggregates[i].column >= 0 &&
                     words->aggregates[i].column < words->n_fields),
                "a function of no field");
        for (int k = 0; k < i; k++)
            require(strcasecmp(word->name, words->word[k].name) != 0,
                    "two columns of one name");
    }
}

static void check_error(struct oj_error *err)
{
    require(err->message[0] != '\0', "no reason is given");
    oj_message_make_one_line(err->message);
    for (const char *c = err->message; *c != '\0'; c++)
        require((unsigned char)*c >= 0x20, "an error of several lines");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_aggregate_words words;
    oj_status status;
    char *text = oj_malloc((int64_t)size + 1, 1);
    require(text != NULL, "out of memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    status =
        oj_aggregate_words_parse(size % 2 == 0 ? "-" : "", text, &words, &err);
    if (status == OJ_OK)
    {
        status = bind_to_fields(&words, &err);
        if (status == OJ_OK)
            check_words(&words);
        oj_aggregate_words_free(&words);
    }
    if (status != OJ_OK)
        check_error(&err);
    oj_free(text);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
enum
{
    MAX_BYTES = 400
};

static const char *const functions[] = {
    "count", "COUNT",        "sum",        "mean",         "min",
    "max",   "stddev",       "median",     "mode",         "first",
    "last",  "concat",       "distinct",   "weighted_sum", "any",
    "",      "count_values", "percentile", "q1",           "q3",
    "range", "minority",     "variance",   "stdev",        "weighted_mean"};
static const char *const names[] = {"f",           "r",
                                    "name",        "\"a=b\"",
                                    "\"c, d\"",    "\"say \"\"x\"\"\"",
                                    "'it''s'",     "d",
                                    "*",           "\"(\"",
                                    "nofield",     "",
                                    "a=b",         "\"f",
                                    "OGR_STYLE",   "join_distance",
                                    "JOIN_RANK",   "join_fid",
                                    "overlap_area"};
static const char *const ends[] = {"",     " as n",    " AS \"x, y\"",
                                   " as",  " as \"\"", ", '; '",
                                   " asn", " as it''s"};

static const char *const seconds[] = {
    "", "", "", "", ", '; '", ", 90", ", 99.9", ", 101", ", f", ",", ", r"};

#define ANY(list) list[pick(sizeof(list) / sizeof *(list))]

static size_t make_words(char *text)
{
    size_t n = 0;
    for (int i = 1 + pick(4); i > 0; i--)
    {
        const char *function = ANY(functions), *name = ANY(names);
        int added;
        if (one_in(4))
            added = snprintf(text + n, MAX_BYTES - n, "%s%s%s", function,
                             ANY(ends), i > 1 ? "," : "");
        else
            added = snprintf(text + n, MAX_BYTES - n, "%s(%s%s)%s%s", function,
                             name, ANY(seconds), ANY(ends), i > 1 ? ", " : "");
        if (added > 0 && n + (size_t)added < MAX_BYTES)
            n += (size_t)added;
    }
    return n;
}

int main(int argc, char **argv)
{
    static const char letters[] = "'\"(), asAS*\t\n\\=;f\x80\xFF\x01";
    long n_rounds = argc > 1 ? atol(argv[1]) : 100000;
    for (long i = 0; i < n_rounds; i++)
    {
        char text[MAX_BYTES + 1] = "";
        size_t n = make_words(text);
        for (int m = n > 0 ? pick(4) : 0; m > 0; m--)
            n = mutate(text, n, MAX_BYTES - 1, letters, sizeof letters - 1);
        LLVMFuzzerTestOneInput((const uint8_t *)text, n);
    }
    printf("%ld inputs\n", n_rounds);
    return 0;
}
#endif
