/* Kind: unit. Which options go together: of every option in every kind of run
 * whether it is read or refused. */
#include "../run_tests.h"

#include "command_line.h"

#include "../../../driver/command/oj_option.h"

#include <stdio.h>
#include <string.h>

TEST(names_are_unique)
{
    const struct oj_option *a, *b;
    for (int i = 0; (a = oj_option_at(i)) != NULL; i++)
    {
        for (int j = 0; j < i; j++)
        {
            b = oj_option_at(j);
            ck_assert_str_ne(a->name, b->name);
            if (a->alias != NULL)
                ck_assert_str_ne(a->alias, b->name);
        }
    }
}

/* The backend that joins, or the one that joins again. */
TEST(options_of_some_backends)
{
    static const char *const lines[] = {
        "-gpu 1 a b c",
        "-backend CUDA -gpu_memory 1G a b c",
        "-backend cpu -validate cuda -gpu_batch 5 a b c",
        "-backend cuda_quadrant -op nearest -quadrant_size 5 a b c",
        "-validate spatialindex_collective -quadrant_size 5 a b c",
        "-benchmark -gpu 1 -quadrant_size 5 a b",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    {
        struct oj_command c = must_parse(lines[i]);
        oj_command_free(&c);
    }
}

/* Words that make the shortest command with option; the value need not fit. */
static void write_option(const struct oj_option *option, char *line,
                         size_t size)
{
    static const char *const values[] = {
        [OJ_OPTION_TEXT] = "x",        [OJ_OPTION_TEXT_OR_FILE] = "x",
        [OJ_OPTION_LIST] = "A=B",      [OJ_OPTION_COUNT] = "5",
        [OJ_OPTION_THREADS] = "2",     [OJ_OPTION_SECONDS] = "5",
        [OJ_OPTION_DISTANCE] = "5",    [OJ_OPTION_BOX] = "0 0 1 1",
        [OJ_OPTION_BOXES] = "0 0 1 1", [OJ_OPTION_BYTES] = "1G",
        [OJ_OPTION_GPUS] = "all",      [OJ_OPTION_OP] = "within",
        [OJ_OPTION_BACKEND] = "cpu",
    };
    int n_kinds = (int)(sizeof values / sizeof *values);
    int n = snprintf(line, size, "-%s ", option->name);
    if (option->kind == OJ_OPTION_CHOICE)
        snprintf(line + n, size - (size_t)n, "%.*s",
                 (int)strcspn(oj_option_choices(option), "|"),
                 oj_option_choices(option));
    else if ((int)option->kind < n_kinds && values[option->kind] != NULL)
        snprintf(line + n, size - (size_t)n, "%s", values[option->kind]);
}

static int is_word_of(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
    {
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return 1;
    }
    return 0;
}

/* Every option is either read in such a run or an error: none is without
 * effect. A new option has to be put into one of the two lists. */
TEST(no_option_is_without_effect)
{
    static const struct
    {
        const char *run, *reads;
    } cases[] = {
        {"-benchmark",
         "op relate window max_distance max_distance_field "
         "join_max_distance_field min_distance metric k ties distance_to on "
         "exclude unordered_pairs centroid_of point_on_surface_of invalid "
         "input_layer where sql dialect spat limit oo join_layer join_where "
         "join_sql join_dialect joo crs s_srs join_srs t_srs threads gpu "
         "gpu_memory gpu_batch quadrant_size benchmark benchmark_csv "
         "benchmark_seconds q validate_report in_place_unsafe help"},
        {"-in_place -pick first",
         "op relate window max_distance max_distance_field "
         "join_max_distance_field min_distance metric k ties distance_to on "
         "exclude unordered_pairs centroid_of point_on_surface_of invalid how "
         "pick prefix name_fid name_distance name_rank name_count overlap "
         "nearest_point_fields bearing_field input_layer where dialect spat "
         "limit oo join_layer join_where join_sql join_dialect join_select joo "
         "crs s_srs join_srs t_srs in_place in_place_unsafe threads backend "
         "gpu gpu_memory gpu_batch batch quadrant_size memory max_pairs "
         "explain validate validate_report benchmark_csv benchmark_seconds q "
         "progress json_summary help"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        const struct oj_option *option;
        for (int j = 0; (option = oj_option_at(j)) != NULL; j++)
        {
            char words[128], line[256];
            struct oj_command command = {0};
            struct oj_error err = {OJ_OK, ""};
            int is_read = is_word_of(cases[i].reads, option->name), refused;
            write_option(option, words, sizeof words);
            snprintf(line, sizeof line, "%s %s a%s", cases[i].run, words,
                     strcmp(option->name, "window") == 0 ? "" : " b");
            refused = parse(line, &command, &err) != OJ_OK &&
                      (strstr(err.message, "do not go together") != NULL ||
                       strstr(err.message, "read as a dataset") != NULL);
            ck_assert_msg(refused != is_read, "'%s': '%s'", line, err.message);
            if (err.message[0] == '\0')
                oj_command_free(&command);
        }
    }
}

int main(void)
{
    tests_open("command_options");
    return tests_run();
}
