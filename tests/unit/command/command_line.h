/** Command lines of ogrjoin as one text, for tests of the parser. */
#ifndef OJ_TEST_COMMAND_LINE_H
#define OJ_TEST_COMMAND_LINE_H

#include "../run_tests.h"

#include "../../../driver/command/oj_command.h"

#include <string.h>

enum
{
    MAX_WORDS = 64
};

/* Words are parted by spaces; '_' stands for a space inside a word when it
 * follows a backslash ("\_"), and "''" is an empty word. */
static inline int split(const char *line, char *copy, const char **words)
{
    int n = 0;
    char *out = copy;
    while (*line != '\0')
    {
        words[n++] = out;
        ck_assert_int_lt(n, MAX_WORDS);
        while (*line != '\0' && *line != ' ')
        {
            if (line[0] == '\\' && line[1] == '_')
            {
                *out++ = ' ';
                line += 2;
            }
            else if (line[0] == '\'' && line[1] == '\'')
                line += 2;
            else
                *out++ = *line++;
        }
        *out++ = '\0';
        while (*line == ' ')
            line++;
    }
    return n;
}

static inline oj_status parse(const char *line, struct oj_command *command,
                              struct oj_error *err)
{
    char copy[1024];
    const char *words[MAX_WORDS];
    int n;
    ck_assert_uint_lt(strlen(line), sizeof copy);
    n = split(line, copy, words);
    return oj_command_parse(n, words, command, err);
}

static inline struct oj_command must_parse(const char *line)
{
    struct oj_command command;
    struct oj_error err = {OJ_OK, ""};
    if (parse(line, &command, &err) != OJ_OK)
        ck_abort_msg("%s: %s", line, err.message);
    return command;
}

#endif
