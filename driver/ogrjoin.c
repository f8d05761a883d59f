/* main() of the command ogrjoin. */
#include "../algs/api/engine/oj_join.h"
#include "base/oj_cancel.h"
#include "base/oj_exit.h"
#include "base/oj_large_stack.h"
#include "base/oj_message.h"
#include "command/oj_help.h"
#include "command/oj_option_table.h"
#include "command/oj_parsed_command.h"
#include "dataset/oj_dataset_name.h"
#include "run/oj_run.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal.h>

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Reads the options that locate plugins. They must be set before drivers are
 * registered, but GDAL reads --config only afterwards. */
static void set_plugin_path_options(int argc, char **argv)
{
    static const char *const names[] = {"GDAL_DRIVER_PATH", "OGR_DRIVER_PATH",
                                        "GDAL_SKIP", "OGR_SKIP"};
    for (int i = 1; i + 1 < argc; i++)
    {
        const char *word = argv[i + 1];
        if (strcasecmp(argv[i], "--config") != 0)
            continue;
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
        {
            size_t n = strlen(names[j]);
            if (strncasecmp(word, names[j], n) != 0)
                continue;
            if (word[n] == '=')
                CPLSetConfigOption(names[j], word + n + 1);
            else if (word[n] == '\0' && i + 2 < argc)
                CPLSetConfigOption(names[j], argv[i + 2]);
        }
    }
}

/* Refuses --config A=B for GDAL before 3.9, which would take the next word for
 * the value. */
static oj_status check_gdal_config(int argc, char **argv, struct oj_error *err)
{
    for (int i = 1; i + 1 < argc; i++)
    {
        const char *word = argv[i + 1], *sign = strchr(word, '=');
        if (strcasecmp(argv[i], "--config") != 0 || sign == NULL ||
            atoi(GDALVersionInfo("VERSION_NUM")) >=
                GDAL_COMPUTE_VERSION(3, 9, 0))
            continue;
        return oj_fail(err, OJ_ERR_ARG,
                       "--config %.200s: GDAL %s takes two words, --config "
                       "%.*s %.100s",
                       word, GDALVersionInfo("RELEASE_NAME"),
                       (int)(sign - word), word, sign + 1);
    }
    return OJ_OK;
}

static int has_argument(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++)
    {
        if (strcasecmp(argv[i], word) == 0)
            return 1;
    }
    return 0;
}

/* Opens /dev/null for each standard stream that is closed. Otherwise the next
 * file opened would get its number, and messages would be written into that
 * file. Returns 0 if this fails. */
static int reserve_standard_streams(void)
{
    int file;
    do
        file = open("/dev/null", O_RDWR);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file < 0)
        return 0;
    close(file);
    return 1;
}

/* Makes glibc return the large arrays of a tile to the system when they are
 * freed. By default glibc keeps them, in one arena per thread. Called only in
 * the command, because the setting is process-wide. */
static void limit_malloc_retention(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

static int exit_code_of_status(oj_status status, const struct oj_error *err)
{
    if (status != OJ_OK)
        oj_report_error(err);
    return status == OJ_OK ? OJ_EXIT_COMPLETE : OJ_EXIT_ERROR;
}

/* Runs "--help WORD". */
static int print_help_of_word(const char *word)
{
    struct oj_error err = {OJ_OK, ""};
    char hint[300], option[128];
    if (oj_help_print_topic(word))
        return OJ_EXIT_COMPLETE;
    snprintf(option, sizeof option, "%s%.100s", word[0] == '-' ? "" : "-",
             word);
    oj_option_hint(option, hint, sizeof hint);
    return exit_code_of_status(
        oj_fail(&err, OJ_ERR_ARG,
                "--help %.100s: no option, join or section has this word%s",
                word, hint),
        &err);
}

static int parse_arguments_and_run(int argc, char **argv)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_command command = {0};
    int exit_code = OJ_EXIT_ERROR;
    oj_status status;
    if (argc < 2)
    {
        oj_help_print_usage();
        return OJ_EXIT_ERROR;
    }
    if (argc == 3 && oj_command_asks_for_help(1, (const char *const *)argv + 1))
        return print_help_of_word(argv[2]);
    status = oj_command_parse(argc - 1, (const char *const *)argv + 1, &command,
                              &err);
    if (status == OJ_OK && command.help)
    {
        oj_help_print();
        oj_command_free(&command);
        return OJ_EXIT_COMPLETE;
    }
    oj_message_open(command.quiet);
    if (command.memory > 0)
        limit_malloc_retention();
    if (status == OJ_OK && command.write_spec != NULL)
    {
        exit_code = OJ_EXIT_COMPLETE;
        status = oj_write_spec_run(&command, &err);
    }
    else if (status == OJ_OK)
        status = oj_run(&command, &exit_code, &err);
    if (status != OJ_OK)
    {
        exit_code = OJ_EXIT_ERROR;
        if (oj_is_cancelled())
        {
            /* otherwise a second signal would print the message again */
            oj_cancel_defer_signals();
            exit_code = OJ_EXIT_INTERRUPTED;
            snprintf(err.message, sizeof err.message, "%s",
                     oj_cancel_message());
        }
        oj_report_error(&err);
    }
    oj_message_close();
    oj_command_free(&command);
    return exit_code;
}

static oj_status print_devices(int argc, char **argv, struct oj_error *err)
{
    int other = strcasecmp(argv[1], "--devices") == 0 ? 2 : 1;
    if (argc > 2)
        return oj_fail(err, OJ_ERR_ARG,
                       "--devices stands alone: leave out '%.100s'",
                       argv[other]);
    oj_help_print_devices();
    return OJ_OK;
}

static int run_program(int argc, char **argv)
{
    struct oj_error err = {OJ_OK, ""};
    oj_status status;
    int exit_code;
    if (!reserve_standard_streams())
        return OJ_EXIT_ERROR;
    /* used by ogrjoin.bash */
    if (argc == 3 && strcmp(argv[1], "--complete") == 0)
        return oj_help_print_words(argv[2]) ? OJ_EXIT_COMPLETE : OJ_EXIT_ERROR;
    if (argc == 3 && strcmp(argv[1], "--man") == 0) /* used by CMakeLists.txt */
        return oj_help_print_man(argv[2]) ? OJ_EXIT_COMPLETE : OJ_EXIT_ERROR;
    status = oj_cancel_watch_signals(&err);
    if (status == OJ_OK)
        status = check_gdal_config(argc, argv, &err);
    if (status != OJ_OK)
        return exit_code_of_status(status, &err);
    if (has_argument(argc, argv, "--devices"))
        return exit_code_of_status(print_devices(argc, argv, &err), &err);
    if (has_argument(argc, argv, "--version") ||
        has_argument(argc, argv, "--utility_version"))
    {
        printf("ogrjoin %s, %s\n", oj_version(), GDALVersionInfo("--version"));
        return OJ_EXIT_COMPLETE;
    }
    set_plugin_path_options(argc, argv);
    GDALAllRegister();
    argc = GDALGeneralCmdLineProcessor(argc, &argv, GDAL_OF_VECTOR);
    if (argc < 1)
        return -argc;
    exit_code = parse_arguments_and_run(argc, argv);
    CSLDestroy(argv);
    GDALDestroyDriverManager();
    return exit_code;
}

int main(int argc, char **argv)
{
    return oj_large_stack_run(run_program, argc, argv);
}
