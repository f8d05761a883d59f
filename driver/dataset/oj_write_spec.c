#include "oj_dataset_name.h"

#include "../base/oj_message.h"
#include "../base/oj_shell_words.h"
#include "../command/oj_option_table.h"
#include "../files/oj_path.h"
#include "../files/oj_text_file_write.h"
#include "../rows/oj_pass.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Appends a path, made relative to folder, to words. before: a letter that
 * precedes the path in the word, or "". */
static void add_relative_path(char ***words, const char *before,
                              const char *path, const char *folder)
{
    char *made = oj_path_make_relative(folder, path);
    *words = CSLAddString(
        *words, before[0] != '\0' ? CPLSPrintf("%s%s", before, made) : made);
    CPLFree(made);
}

/* Returns the words for the spec file, with paths relative to its folder. The
 * destination and the options that only a run of the command uses are left
 * out. */
static char **words_of_spec_file(const struct oj_command *command,
                                 const char *folder)
{
    char **words = NULL;
    int leaves_out = command->output.dst != NULL;
    for (const char **word = command->words; *word != NULL; word++)
    {
        const struct oj_option *option = oj_option_of_word(*word);
        int n = option != NULL ? oj_option_count_words(option) : 0;
        if (option == NULL && !leaves_out)
            add_relative_path(&words, "", *word, folder);
        leaves_out = leaves_out && option != NULL;
        if (option == NULL)
            continue;
        if (oj_words_find("write_spec|overwrite|q|progress", option->name) >= 0)
        {
            word += n;
            continue;
        }
        words = CSLAddString(words, *word);
        for (; n > 0; n--)
        {
            word++;
            if (option->kind == OJ_OPTION_TEXT_OR_FILE && (*word)[0] == '@')
                add_relative_path(&words, "@", *word + 1, folder);
            else if (option->kind == OJ_OPTION_FILE)
                add_relative_path(&words, "", *word, folder);
            else
                words = CSLAddString(words, *word);
        }
    }
    return words;
}

/* Checks that the join opens if paths are relative to the folder of the file.
 */
static oj_status check_spec(const char *line, const char *folder,
                            struct oj_error *err)
{
    struct oj_command command = {0};
    struct oj_pass pass = {0};
    struct oj_schema schema = {0};
    oj_status status;
    OJ_TRY(oj_command_parse_line(line, folder, &command, err));
    status = oj_pass_open_layer(&command, &pass, &schema, err);
    if (status == OJ_OK)
        oj_message_list_report(&pass.messages);
    oj_schema_free(&schema);
    oj_pass_close(&pass);
    oj_command_free(&command);
    return status;
}

static oj_status check_spec_file_name(const struct oj_command *command,
                                      const char *folder, struct oj_error *err)
{
    struct stat info;
    if (!oj_dataset_name_is_file(command->write_spec))
        return oj_fail(err, OJ_ERR_ARG,
                       "-write_spec %s: the name must end in .ogrjoin, by "
                       "which GDAL recognises such a file",
                       command->write_spec);
    if (!command->output.overwrite && lstat(command->write_spec, &info) == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "-write_spec: %s exists already; -overwrite replaces "
                       "it",
                       command->write_spec);
    if (stat(folder[0] != '\0' ? folder : ".", &info) != 0 ||
        !S_ISDIR(info.st_mode))
        return oj_fail(err, OJ_ERR_IO,
                       "-write_spec: cannot write %s: there is no folder %s",
                       command->write_spec, folder);
    return OJ_OK;
}

static void print_spec(FILE *file, const void *line)
{
    fprintf(file, "{\n  \"type\": \"ogrjoin\",\n  \"command_line\": ");
    oj_text_file_put_json(file, line);
    fprintf(file, ",\n  \"relative_paths_relative_to_this_file\": true\n}\n");
}

oj_status oj_write_spec_run(const struct oj_command *command,
                            struct oj_error *err)
{
    char *folder = CPLStrdup(oj_path_folder(command->write_spec, ""));
    char **words = words_of_spec_file(command, folder);
    char *line = oj_words_join((const char *const *)words);
    oj_status status = check_spec_file_name(command, folder, err);
    if (status == OJ_OK)
        status = check_spec(line, folder, err);
    if (status == OJ_OK)
        status = oj_text_file_write(command->write_spec, "write_spec",
                                    print_spec, line, err);
    if (status == OJ_OK && command->output.dst != NULL)
        oj_notice("%s is not written: -write_spec runs no join, and the spec "
                  "file names no destination (leave %s out)",
                  command->output.dst, command->output.dst);
    if (status == OJ_OK)
        oj_notice("%s written; GDAL programs open it as a dataset",
                  command->write_spec);
    CPLFree(line);
    CSLDestroy(words);
    CPLFree(folder);
    return status;
}
