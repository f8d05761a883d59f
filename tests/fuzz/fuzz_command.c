/* Parses any words as a command line, and as the words of a dataset. They are
 * refused with one line of error, or give a command whose members are within
 * their limits. Nothing is read beyond the words. With clang:
 * -fsanitize=fuzzer,address,undefined; the lines of the input are the words.
 * With OJ_FUZZ_MAIN, fuzz_command [ITERATIONS] makes lines from the table of
 * options and mutates them, from a fixed seed. */
#include "../../driver/base/oj_message.h"
#include "../../driver/base/oj_shell_words.h"
#include "../../driver/command/oj_option_table.h"
#include "../../driver/command/oj_parsed_command.h"
#include "../../flatten/base/oj_alloc.h"
#include "fuzz_bytes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum
{
    MOST_WORDS = 64
};

static void check_error(struct oj_error *err)
{
    require(err->message[0] != '\0', "no reason is given");
    oj_message_make_one_line(err->message);
    for (const char *c = err->message; *c != '\0'; c++)
        require((unsigned char)*c >= 0x20, "an error of several lines");
}

/* Checks a command that was accepted. Commands that only print, such as help,
 * are not checked.
 */
static void check_command(const struct oj_command *command)
{
    const struct oj_relation *r = &command->relation;
    require(command->words != NULL, "a command without words");
    if (command->help || command->input.dataset == NULL)
        return;
    require(command->join.dataset != NULL || command->n_windows > 0,
            "a command without a join side");
    require(r->k >= 0, "k is below 0");
    require(!(r->max_distance < 0.0) && !isnan(r->max_distance),
            "a distance below 0");
    require(r->n_similar >= 0 && r->n_similar <= OJ_MOST_TEXTS,
            "too many conditions on texts");
    require(command->vector_fields.n >= 0, "a number of fields below 0");
}

/* Parses the words. Refused words must leave an empty command. */
static void try_words(int n, const char *const *words)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_command command = {0};
    if (oj_command_parse(n, words, &command, &err) == OJ_OK)
    {
        check_command(&command);
        oj_command_free(&command);
    }
    else
    {
        check_error(&err);
        require(command.words == NULL, "a refused command holds words");
    }
}

/* Parses the words of a dataset, writes them anew from the command, and parses
 * these: they must give an equal command. */
static void try_line(const char *line)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_command command = {0}, again = {0};
    char *anew;
    if (oj_command_parse_line(line, "", &command, &err) != OJ_OK)
    {
        check_error(&err);
        return;
    }
    check_command(&command);
    anew = oj_words_join(command.words);
    require(oj_command_parse_line(anew, "", &again, &err) == OJ_OK,
            "its own words are refused");
    require(memcmp(command.given, again.given, sizeof command.given) == 0,
            "other options are given");
    require(command.relation.op == again.relation.op, "another join");
    free(anew); /* CPLFree() */
    oj_command_free(&again);
    oj_command_free(&command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = oj_malloc((int64_t)size + 1, 1);
    const char *words[MOST_WORDS + 1] = {NULL};
    int n = 0;
    require(text != NULL, "out of memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    try_line(text);
    for (char *at = text; at != NULL && n < MOST_WORDS;)
    {
        words[n++] = at;
        at = strchr(at, '\n');
        if (at != NULL)
            *at++ = '\0';
    }
    try_words(n, words);
    oj_free(text);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
enum
{
    MAX_BYTES = 800
};

static const char *const values[] = {"0",
                                     "1",
                                     "-1",
                                     "3",
                                     "100",
                                     "100m",
                                     "2.5ft",
                                     "1e308",
                                     "inf",
                                     "nan",
                                     "0x10",
                                     "infdeg",
                                     "4G",
                                     "512M",
                                     "18446744073709551616",
                                     "ALL_CPUS",
                                     "all",
                                     "a.gpkg",
                                     "",
                                     "first",
                                     "max:n",
                                     "field=a,b=c",
                                     "self",
                                     "left",
                                     "full",
                                     "name:0.6",
                                     "a+b=c:3/4",
                                     "x:2+y=a+b",
                                     "count, sum(f)",
                                     "\"a=b\"=c",
                                     "T*F**FFF*",
                                     "jaccard",
                                     "words",
                                     "sphere",
                                     "cuda",
                                     "geos",
                                     "EPSG:4326",
                                     "n > 'x'",
                                     "area,percent",
                                     "A=B",
                                     "0,1,5",
                                     "GPKG",
                                     "no@where",
                                     "intersects",
                                     "nearest",
                                     "dwithin",
                                     "similar"};

/* Appends an option or a word, and a separator, to the line. Returns its
 * length. */
static size_t add_word(char *line, size_t n, const char *dash, const char *word,
                       char end)
{
    int added = snprintf(line + n, MAX_BYTES - n, "%s%s%c", dash, word, end);
    return added < 0 || n + (size_t)added >= MAX_BYTES ? n : n + (size_t)added;
}

static const char *any_value(void)
{
    return values[pick(sizeof values / sizeof *values)];
}

/* Makes a line of options from the table, with values that may fit, and of
 * datasets. Returns its length. */
static size_t make_line(char *line, char end)
{
    size_t n = 0;
    int n_options = pick(6);
    for (int i = 0; i < n_options; i++)
    {
        const struct oj_option *option = oj_option_at(pick(200));
        if (option == NULL)
            continue;
        n = add_word(line, n, "-", option->name, end);
        for (int k = oj_option_count_words(option); k > 0; k--)
            n = add_word(line, n, "", any_value(), end);
    }
    for (int i = pick(5); i > 0; i--)
        n = add_word(line, n, "", i % 2 == 0 ? "a.gpkg" : "b.fgb", end);
    return n > 0 ? n - 1 : n;
}

int main(int argc, char **argv)
{
    static const char letters[] = "'\"\\ \n\t=:,+|@-0.9eEmax()/*<>\x80\xFF\x01";
    long n_rounds = argc > 1 ? atol(argv[1]) : 100000;
    for (long i = 0; i < n_rounds; i++)
    {
        char text[MAX_BYTES + 1] = "";
        size_t n = make_line(text, i % 2 == 0 ? '\n' : ' ');
        for (int m = n > 0 ? pick(4) : 0; m > 0; m--)
            n = mutate(text, n, MAX_BYTES - 1, letters, sizeof letters - 1);
        LLVMFuzzerTestOneInput((const uint8_t *)text, n);
    }
    printf("%ld inputs\n", n_rounds);
    return 0;
}
#endif
