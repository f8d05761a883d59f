#include "oj_dataset_name.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_words.h"
#include "../files/oj_path.h"
#include "oj_spec_file.h"

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

static oj_status read_file(const char *path, struct oj_command *command,
                           struct oj_error *err)
{
    struct oj_spec_file spec = {0};
    struct oj_error why = {OJ_OK, ""};
    char *folder = NULL;
    oj_status status;
    OJ_TRY(oj_spec_file_read(path, &spec, err));
    status = oj_path_folder(path, &folder, &why);
    if (status == OJ_OK)
        status = oj_dataset_name_read_line(
            spec.command_line, spec.is_relative ? folder : NULL, command, &why);
    oj_free(folder);
    oj_spec_file_free(&spec);
    if (status != OJ_OK)
        return oj_fail(err, status, "%.300s: %.700s", path, why.message);
    return OJ_OK;
}

oj_status oj_dataset_name_read(const char *name, struct oj_command *command,
                               struct oj_error *err)
{
    if (!oj_dataset_name_is_words(name))
        return read_file(name, command, err);
    return oj_dataset_name_read_line(name + sizeof prefix - 1, NULL, command,
                                     err);
}
