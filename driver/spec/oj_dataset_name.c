#include "oj_dataset_name.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_words.h"

#include <string.h>
#include <strings.h>

static const char prefix[] = "JOIN:";
static const char extension[] = ".ogrjoin";

int oj_dataset_name_is_words(const char *name)
{
    return strncasecmp(name, prefix, sizeof prefix - 1) == 0;
}

int oj_dataset_name_is_file(const char *name)
{
    size_t n = strlen(name), m = sizeof extension - 1;
    return n > m && strcasecmp(name + n - m, extension) == 0;
}

oj_status oj_dataset_name_read_line(const char *line, const char *folder,
                                    struct oj_command *command,
                                    struct oj_error *err)
{
    char **words = NULL;
    oj_status status;
    int n = 0;
    OJ_TRY(oj_words_split(line, &words, &n, err));
    status =
        oj_command_parse_dataset(n, (const char *const *)words,
                                 folder != NULL ? folder : "", command, err);
    oj_free(words);
    return status;
}

oj_status oj_dataset_name_read(const char *name, struct oj_command *command,
                               struct oj_error *err)
{
    return oj_dataset_name_read_line(name + sizeof prefix - 1, NULL, command,
                                     err);
}
