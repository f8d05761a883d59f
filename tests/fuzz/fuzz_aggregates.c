/* Any bytes as the words of -agg, over a layer with odd names: they are refused
 * with one line that says why, or make columns with names, as many as there are
 * functions. With clang: -fsanitize=fuzzer,address,undefined. With
 * OJ_FUZZ_MAIN: fuzz_aggregates [ITERATIONS], words made from the grammar and
 * mutated, from a fixed start. */
#include "../../algs/pair_values/oj_pair_stage.h"
#include "../../driver/base/oj_message.h"
#include "../../driver/rows/oj_aggregation.h"
#include "../../flatten/base/oj_alloc.h"
#include "fuzz_bytes.h"

#include <gdal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char layer[] =
    "{\"type\":\"FeatureCollection\",\"features\":[{\"type\":\"Feature\","
    "\"properties\":{\"f\":1,\"r\":1.5,\"name\":\"x\",\"a=b\":2,\"c, d\":3,"
    "\"say \\\"x\\\"\":4,\"d\":\"2020/01/02\",\"it's\":5,\"(\":6},"
    "\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[1,1],"
    "[0,0]]]}}]}";

static struct oj_command command;
static struct oj_job job;

static void open_layers(void)
{
    const char *const words[] = {"-op",   "intersects", "-agg", "count",
                                 "o.csv", layer,        layer};
    struct oj_error err = {OJ_OK, ""};
    oj_status status;
    GDALAllRegister();
    status = oj_command_parse(7, words, &command, &err);
    if (status == OJ_OK)
        status = oj_job_open(&command, 0, &job, &err);
    require(status == OJ_OK, err.message);
}

static void check_columns(const struct oj_schema_request *fields)
{
    require(fields->n_own > 0, "no column");
    for (int i = 0; i < fields->n_own; i++)
    {
        require(fields->own[i].name != NULL && fields->own[i].name[0] != '\0',
                "a column without a name");
        for (int k = 0; k < i; k++)
            require(strcasecmp(fields->own[i].name, fields->own[k].name) != 0,
                    "two columns of one name");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_schema_request fields = {0};
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    struct oj_aggregation *aggregation = NULL;
    char *text = oj_malloc((int64_t)size + 1, 1);
    if (job.command == NULL)
        open_layers();
    require(text != NULL, "out of memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    command.aggregates = text;
    if (oj_aggregation_open(&job, &fields, want, &aggregation, &err) == OJ_OK)
    {
        check_columns(&fields);
        oj_aggregation_close(aggregation);
    }
    else
    {
        require(err.message[0] != '\0', "no reason is given");
        oj_message_tidy(err.message);
        for (const char *c = err.message; *c != '\0'; c++)
            require((unsigned char)*c >= 0x20, "an error of several lines");
    }
    oj_free(text);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
enum
{
    MAX_BYTES = 400
};

static const char *const functions[] = {
    "count",    "COUNT",        "sum",  "mean",  "min",         "max",
    "stddev",   "median",       "mode", "first", "last",        "concat",
    "distinct", "weighted_sum", "any",  "",      "count_values"};
static const char *const names[] = {
    "f",       "r",   "name",     "\"a=b\"", "\"c, d\"", "\"say \"\"x\"\"\"",
    "'it''s'", "d",   "*",        "\"(\"",   "nofield",  "",
    "a=b",     "\"f", "OGR_STYLE"};
static const char *const ends[] = {"",     " as n",    " AS \"x, y\"",
                                   " as",  " as \"\"", ", '; '",
                                   " asn", " as it''s"};

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
                             name, one_in(5) ? ", '; '" : "", ANY(ends),
                             i > 1 ? ", " : "");
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
    oj_job_close(&job);
    command.aggregates = NULL; /* its own is among the words */
    oj_command_free(&command);
    printf("%ld inputs\n", n_rounds);
    return 0;
}
#endif
