/* Reads any bytes as the name of a join, and as a file *.ogrjoin. They are
 * refused with one line of error, or have an equal meaning when written anew.
 * With clang: -fsanitize=fuzzer,address,undefined. With OJ_FUZZ_MAIN,
 * fuzz_dataset_name [ITERATIONS] mutates sample names, from a fixed random
 * seed. */
#include "../../driver/base/oj_message.h"
#include "../../driver/base/oj_shell_words.h"
#include "../../driver/command/oj_parsed_command.h"
#include "../../flatten/base/oj_alloc.h"
#include "fuzz_bytes.h"

#include <cpl_conv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Words that are joined and split again must be unchanged. */
static void try_words(const char *text)
{
    struct oj_error err = {OJ_OK, ""};
    char **words = NULL, **again = NULL, *line = NULL;
    int n = 0, n_again = 0;
    if (oj_words_split(text, &words, &n, &err) != OJ_OK)
    {
        require(err.message[0] != '\0', "no reason is given");
        return;
    }
    line = oj_words_join((const char *const *)words);
    require(oj_words_split(line, &again, &n_again, &err) == OJ_OK,
            "joined words are refused");
    require(n == n_again, "another number of words");
    for (int i = 0; i < n; i++)
        require(strcmp(words[i], again[i]) == 0, "another word");
    oj_free(words);
    oj_free(again);
    CPLFree(line);
}

static void try_name(const char *text)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_command command = {0};
    if (oj_command_parse_line(text, "no/folder", &command, &err) == OJ_OK)
    {
        require(command.output.dst == NULL && command.input.dataset != NULL &&
                    command.join.dataset != NULL && command.words != NULL,
                "a command without its datasets");
        oj_command_free(&command);
        return;
    }
    require(command.words == NULL, "a refused command holds words");
    oj_message_make_one_line(err.message);
    for (const char *c = err.message; *c != '\0'; c++)
        require((unsigned char)*c >= 0x20, "an error of several lines");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = oj_malloc((int64_t)size + 1, 1);
    require(text != NULL, "out of memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    try_words(text);
    try_name(text);
    oj_free(text);
    return 0;
}

#ifdef OJ_FUZZ_MAIN
enum
{
    MAX_BYTES = 600
};

static const char *const seeds[] = {
    "-op nearest -max_distance 100 -where \"a = 'x y'\" p.gpkg 'l 2.gpkg'",
    "-agg \"count, mean(f) as \\\"m\\\"\" -oo A=B -spat 0 0 1 1 a\\ b c",
    "-window 0 0 1 1 -window 2 2 3 3 -limit 5 '' \"\" x",
    ("{\"type\": \"ogrjoin\", \"command_line\": \"-k 2 a "
     "'b\\u00fc\\ud83d\\ude00'"
     "\\n\", \"relative_paths_relative_to_this_file\": false}"),
    ("\xEF\xBB\xBF{\"x\":[1,-2.5e3,{\"y\":[]},\"z\",true,null],\"type\":"
     "\"ogrjoin\",\"command_line\":\"a \\\"b\\\" \\\\\"}"),
};

int main(int argc, char **argv)
{
    static const char letters[] = "'\"\\ \n\t{}[]:,()-@=u0ax.<>\x80\xFF\x01";
    long n_rounds = argc > 1 ? atol(argv[1]) : 200000;
    for (long i = 0; i < n_rounds; i++)
    {
        const char *one = seeds[pick(sizeof seeds / sizeof *seeds)];
        char text[MAX_BYTES] = "";
        size_t n = strlen(one);
        memcpy(text, one, n);
        for (int m = pick(6); m > 0; m--)
            n = mutate(text, n, MAX_BYTES - 1, letters, sizeof letters - 1);
        LLVMFuzzerTestOneInput((const uint8_t *)text, n);
    }
    printf("%ld inputs\n", n_rounds);
    return 0;
}
#endif
