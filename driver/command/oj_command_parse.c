#include "oj_command.h"

#include "../../algs/relation/oj_backend.h"
#include "../../algs/relation/oj_gpu.h"
#include "../../flatten/base/oj_array.h"
#include "../base/oj_words.h"
#include "../files/oj_path.h"
#include "oj_command_check.h"
#include "oj_option.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct argument_reader
{
    struct oj_command *command;
    const char **argv; /* the command's words */
    int argc;
    int next;        /* the word to read next */
    int positionals; /* words that are no options, so far */
    const char *positional[3];
    const char *folder; /* of the file that holds the words; "": none */
};

/* The command owns a copy of the words in one block, into which it points. */
static oj_status keep_words(struct argument_reader *r, const char *const *argv,
                            struct oj_error *err)
{
    size_t size = ((size_t)r->argc + 1) * sizeof *argv;
    const char **words;
    char *at;
    for (int i = 0; i < r->argc; i++)
        size += strlen(argv[i]) + 1;
    words = oj_malloc((int64_t)size, 1);
    if (words == NULL)
        return oj_fail_nomem(err, (int64_t)size, 1);
    at = (char *)(words + r->argc + 1);
    for (int i = 0; i < r->argc; i++)
    {
        words[i] = strcpy(at, argv[i]);
        at += strlen(at) + 1;
    }
    words[r->argc] = NULL;
    r->command->words = r->argv = words;
    return OJ_OK;
}

/* A copy of a text that is no word. */
static oj_status keep(struct oj_command *command, const char *text,
                      const char **out, struct oj_error *err)
{
    char **longer = CSLAddStringMayFail(command->texts, text);
    if (longer == NULL)
        return oj_fail_nomem(err, (int64_t)strlen(text) + 1, 1);
    command->texts = longer;
    *out = longer[CSLCount(longer) - 1];
    return OJ_OK;
}

/* A word that is the name of a file or a dataset. */
static oj_status keep_path(const struct argument_reader *r, const char *name,
                           const char **out, struct oj_error *err)
{
    char *path = NULL;
    oj_status status;
    OJ_TRY(oj_path_resolve(r->folder, name, &path, err));
    status = keep(r->command, path, out, err);
    oj_free(path);
    return status;
}

/* What a file holds, but for white space at its end. */
static oj_status keep_file(struct oj_command *command, const char *name,
                           const char *option, const char **out,
                           struct oj_error *err)
{
    enum
    {
        MAX_BYTES = 10 * 1024 * 1024
    };
    GByte *bytes = NULL;
    vsi_l_offset n = 0;
    oj_status status;
    int has_read;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    has_read = VSIIngestFile(NULL, name, &bytes, &n, MAX_BYTES);
    CPLPopErrorHandler();
    if (!has_read)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s @%s: this file cannot be read, or is larger than "
                       "%d bytes",
                       option, name, MAX_BYTES);
    while (n > 0 && strchr(" \t\r\n", bytes[n - 1]) != NULL)
        bytes[--n] = '\0';
    status = keep(command, (const char *)bytes, out, err);
    VSIFree(bytes);
    return status;
}

/* Every option takes at least one word, so argc bounds the list. */
static oj_status append(int argc, const char *word, const char ***list,
                        struct oj_error *err)
{
    const char **at;
    if (*list == NULL)
    {
        OJ_NEW(*list, argc + 1, err);
        **list = NULL;
    }
    for (at = *list; *at != NULL; at++)
        ;
    at[0] = word;
    at[1] = NULL;
    return OJ_OK;
}

static oj_status read_choice(const struct oj_option *option, const char *word,
                             int *out, struct oj_error *err)
{
    const char *choices = oj_option_choices(option);
    int place = oj_words_find(choices, word);
    if (place < 0)
        return oj_fail(err, OJ_ERR_ARG, "-%s must be one of %s, not '%s'",
                       option->name, choices, word);
    *out = place;
    return OJ_OK;
}

static oj_status read_count(const struct oj_option *option, const char *word,
                            int64_t *out, struct oj_error *err)
{
    char *end;
    long long value;
    value = strtoll(word, &end, 10); /* beyond 64 bits: as many as there are */
    if (end == word || *end != '\0' || value < option->minimum)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s must be a whole number of %lld or more, not '%s'",
                       option->name, (long long)option->minimum, word);
    if (option->maximum > 0 && value > option->maximum)
        return oj_fail(err, OJ_ERR_ARG, "-%s must be %lld or less, not %lld",
                       option->name, (long long)option->maximum, value);
    *out = value;
    return OJ_OK;
}

static oj_status read_real(const struct oj_option *option, const char *word,
                           double *out, struct oj_error *err)
{
    char *end;
    double value = CPLStrtod(word, &end);
    if (end == word || *end != '\0' || !isfinite(value))
        return oj_fail(err, OJ_ERR_ARG, "-%s must be %s, not '%s'",
                       option->name,
                       option->kind == OJ_OPTION_SECONDS
                           ? "a number"
                           : "four numbers, XMIN YMIN XMAX YMAX",
                       word);
    *out = value;
    return OJ_OK;
}

static oj_status read_box(const struct oj_option *option,
                          const char *const *words, double box[4],
                          struct oj_error *err)
{
    double read[4];
    for (int i = 0; i < 4; i++)
        OJ_TRY(read_real(option, words[i], &read[i], err));
    if (read[0] > read[2] || read[1] > read[3])
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s %s %s %s %s is empty: write XMIN YMIN XMAX YMAX",
                       option->name, words[0], words[1], words[2], words[3]);
    memcpy(box, read, sizeof read);
    return OJ_OK;
}

/* One more box; every option takes at least one word, so argc bounds them. */
static oj_status append_box(struct argument_reader *r,
                            const struct oj_option *option,
                            const char *const *words, struct oj_error *err)
{
    struct oj_command *command = r->command;
    double *boxes = (double *)command->windows;
    if (boxes == NULL)
    {
        boxes = oj_calloc(r->argc, 4 * sizeof *boxes);
        if (boxes == NULL)
            return oj_fail_nomem(err, r->argc, 4 * sizeof *boxes);
        command->windows = boxes;
    }
    OJ_TRY(read_box(option, words, &boxes[4 * command->n_windows], err));
    command->n_windows++;
    return OJ_OK;
}

/* "all", or numbers with commas as bits. */
static oj_status read_gpus(const char *word, uint64_t *out,
                           struct oj_error *err)
{
    uint64_t gpus = 0;
    char *end;
    for (const char *at = word;; at = end + 1)
    {
        long i = strtol(at, &end, 10);
        if (end == at || *at < '0' || *at > '9' ||
            i >= OJ_GPU_MAX_DEVICES - 1 || (*end != '\0' && *end != ','))
            return oj_fail(
                err, OJ_ERR_ARG,
                "-gpu takes all, or numbers of GPUs below %d as 0 or "
                "0,2 (ogrjoin --devices lists them), not '%s'",
                OJ_GPU_MAX_DEVICES - 1, word);
        gpus |= (uint64_t)1 << i;
        if (*end == '\0')
            break;
    }
    *out = gpus;
    return OJ_OK;
}

static oj_status read_bytes(const struct oj_option *option, const char *word,
                            int64_t *out, struct oj_error *err)
{
    if (!oj_size_parse(word, out))
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s must be a number of bytes, as 512M or 4G, not "
                       "'%s'",
                       option->name, word);
    return OJ_OK;
}

static oj_status read_backend(const struct oj_option *option, const char *word,
                              const char **out, struct oj_error *err)
{
    const struct oj_backend *backend = oj_backend_find(word);
    char names[256] = "auto";
    if (backend != NULL || strcasecmp(word, names) == 0)
    {
        *out = backend != NULL ? backend->name : "auto";
        return OJ_OK;
    }
    for (int i = 0; (backend = oj_backend_at(i)) != NULL; i++)
    {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", backend->name);
    }
    return oj_fail(err, OJ_ERR_ARG, "-%s %s: there is no such backend; %s",
                   option->name, word, names);
}

/* Sets the value of option from the words after it. */
static oj_status read_value(struct argument_reader *r,
                            const struct oj_option *option,
                            const char *const *words, struct oj_error *err)
{
    struct oj_command *command = r->command;
    void *at = (char *)command + option->offset;
    switch (option->kind)
    {
        case OJ_OPTION_FLAG:
            *(int *)at = 1;
            return OJ_OK;
        case OJ_OPTION_TEXT:
            *(const char **)at = words[0];
            return OJ_OK;
        case OJ_OPTION_TEXT_OR_FILE:
            *(const char **)at = words[0];
            if (words[0][0] != '@')
                return OJ_OK;
            OJ_TRY(keep_path(r, words[0] + 1, at, err));
            return keep_file(command, *(const char **)at, option->name, at,
                             err);
        case OJ_OPTION_LIST:
            if (strchr(words[0], '=') == NULL &&
                strcmp(option->arguments, "NAME=VALUE") == 0)
                return oj_fail(err, OJ_ERR_ARG,
                               "-%s takes NAME=VALUE, not '%s'", option->name,
                               words[0]);
            return append(r->argc, words[0], at, err);
        case OJ_OPTION_CHOICE:
            return read_choice(option, words[0], at, err);
        case OJ_OPTION_THREADS:
            *(int64_t *)at = 0;
            if (strcasecmp(words[0], option->choices) == 0)
                return OJ_OK;
            return read_count(option, words[0], at, err);
        case OJ_OPTION_COUNT:
            return read_count(option, words[0], at, err);
        case OJ_OPTION_SECONDS:
            OJ_TRY(read_real(option, words[0], at, err));
            if (*(double *)at <= 0)
                return oj_fail(err, OJ_ERR_ARG,
                               "-%s must be more than 0, not '%s'",
                               option->name, words[0]);
            return OJ_OK;
        case OJ_OPTION_DISTANCE:
            return oj_distance_parse(words[0], option->name, at, err);
        case OJ_OPTION_BOX:
            command->has_spat = 1;
            return read_box(option, words, at, err);
        case OJ_OPTION_BOXES:
            return append_box(r, option, words, err);
        case OJ_OPTION_BYTES:
            return read_bytes(option, words[0], at, err);
        case OJ_OPTION_GPUS:
            *(uint64_t *)at = OJ_ALL_GPUS;
            return strcasecmp(words[0], "all") == 0
                       ? OJ_OK
                       : read_gpus(words[0], at, err);
        case OJ_OPTION_OP:
            return oj_command_read_op(command, words[0], err);
        case OJ_OPTION_BACKEND:
            return read_backend(option, words[0], at, err);
        case OJ_OPTION_REFERENCE:
            *(const char **)at = ""; /* oj_command_choose_op() */
            if (r->next < r->argc && oj_backend_find(r->argv[r->next]) != NULL)
                *(const char **)at = oj_backend_find(r->argv[r->next++])->name;
            return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_INTERNAL, "option -%s has no kind",
                   option->name);
}

/* Of two values one would be lost. */
static oj_status check_repeated(const struct oj_option *option,
                                struct oj_error *err)
{
    if (option->kind == OJ_OPTION_FLAG || option->kind == OJ_OPTION_LIST ||
        option->kind == OJ_OPTION_BOXES)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG, "-%s is given twice: %s", option->name,
                   option->once != NULL ? option->once : "leave one out");
}

static oj_status read_option(struct argument_reader *r, const char *word,
                             struct oj_error *err)
{
    const struct oj_option *option = oj_option_of_word(word);
    const char *const *words = &r->argv[r->next];
    char hint[300];
    int row, n;
    if (option == NULL)
    {
        oj_option_hint(word, hint, sizeof hint);
        return oj_fail(err, OJ_ERR_ARG, "unknown option %.100s%s", word, hint);
    }
    if (r->command->is_dataset)
        OJ_TRY(oj_command_check_dataset(option, err));
    row = oj_option_find(option->name);
    n = oj_option_words(option);
    if (r->argc - r->next < n)
        return oj_fail(err, OJ_ERR_ARG, "-%s needs a value: -%s %s",
                       option->name, option->name, option->arguments);
    if (r->command->given[row])
        OJ_TRY(check_repeated(option, err));
    r->next += n;
    r->command->given[row] = 1;
    return read_value(r, option, words, err);
}

static oj_status read_positional(struct argument_reader *r, const char *word,
                                 struct oj_error *err)
{
    if (r->positionals == 3)
        return oj_fail(err, OJ_ERR_ARG,
                       "one word too many: '%.100s', after '%.100s' '%.100s' "
                       "'%.100s'; %s [options] %sinput_ds join_ds, and layers "
                       "are named by -input_layer and -join_layer",
                       word, r->positional[0], r->positional[1],
                       r->positional[2],
                       r->command->is_dataset ? "it is JOIN:" : "ogrjoin takes",
                       r->command->is_dataset ? "" : "dst_ds ");
    return keep_path(r, word, &r->positional[r->positionals++], err);
}

/* dst_ds is left out where there is nothing to write to, join_ds where boxes
 * are given. */
static oj_status place_positionals(struct argument_reader *r,
                                   struct oj_error *err)
{
    struct oj_command *command = r->command;
    int has_join = command->n_windows == 0;
    int has_dst =
        !command->in_place && !command->benchmark && !command->is_dataset &&
        (command->write_spec == NULL || r->positionals >= 2 + has_join);
    int needed = 1 + has_dst + has_join;
    char usage[128];
    snprintf(usage, sizeof usage, "%s%s%s[options]%s input_ds%s",
             command->is_dataset ? "JOIN:" : "ogrjoin ",
             command->in_place     ? "-in_place "
             : command->benchmark  ? "-benchmark "
             : command->write_spec ? "-write_spec FILE.ogrjoin "
                                   : "",
             has_join ? "" : "-window XMIN YMIN XMAX YMAX ",
             has_dst ? " dst_ds" : "", has_join ? " join_ds" : "");
    if (r->positionals > needed)
        return oj_fail(err, OJ_ERR_ARG,
                       "%d datasets given, %d needed (the last one is '%s'): "
                       "%s",
                       r->positionals, needed,
                       r->positional[r->positionals - 1], usage);
    if (r->positionals < needed)
        return oj_fail(err, OJ_ERR_ARG, "%d dataset%s given, %d needed: %s",
                       r->positionals, r->positionals == 1 ? "" : "s", needed,
                       usage);
    if (has_dst)
        command->dst = r->positional[0];
    command->input.dataset = r->positional[has_dst];
    command->join.dataset =
        has_join ? r->positional[has_dst + 1] : "-window"; /* in messages */
    for (int i = 0; i < r->positionals; i++)
    {
        if (r->positional[i][0] == '\0')
            return oj_fail(err, OJ_ERR_ARG, "an empty dataset name: %s", usage);
    }
    return OJ_OK;
}

static int asks_for_help(int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++)
    {
        if (oj_words_find("-h|-help|--help", argv[i]) >= 0)
            return 1;
    }
    return 0;
}

static oj_status parse(struct argument_reader *r, struct oj_error *err)
{
    while (r->next < r->argc)
    {
        const char *word = r->argv[r->next++];
        if (oj_word_is_option(word))
            OJ_TRY(read_option(r, word, err));
        else
            OJ_TRY(read_positional(r, word, err));
    }
    OJ_TRY(oj_command_choose_op(r->command, err));
    OJ_TRY(place_positionals(r, err));
    return oj_command_check(r->command, err);
}

static oj_status parse_words(int argc, const char *const *argv, int is_dataset,
                             const char *folder, struct oj_command *command,
                             struct oj_error *err)
{
    struct oj_command empty = {0};
    struct argument_reader r = {0};
    oj_status status = OJ_OK;
    empty.op = -1;
    empty.max_distance.value = INFINITY;
    empty.k = 1;
    empty.limit = -1;
    empty.prefix = "join_";
    empty.backend = "auto";
    empty.batch = 262144;
    empty.benchmark_seconds = 60;
    empty.is_dataset = is_dataset;
    r.folder = folder;
    r.command = &empty;
    r.argc = argc;
    empty.help = !is_dataset && asks_for_help(argc, argv);
    if (!empty.help)
        status = keep_words(&r, argv, err);
    if (!empty.help && status == OJ_OK)
        status = parse(&r, err);
    if (is_dataset)
    {
        empty.quiet = 1;
        empty.progress = 0;
    }
    if (status == OJ_OK)
        *command = empty;
    else
        oj_command_free(&empty);
    return status;
}

int oj_command_given(const struct oj_command *command, const char *name)
{
    int row = oj_option_find(name);
    return row >= 0 && command->given[row];
}

oj_status oj_command_parse(int argc, const char *const *argv,
                           struct oj_command *command, struct oj_error *err)
{
    return parse_words(argc, argv, 0, "", command, err);
}

oj_status oj_command_parse_dataset(int argc, const char *const *argv,
                                   const char *folder,
                                   struct oj_command *command,
                                   struct oj_error *err)
{
    return parse_words(argc, argv, 1, folder, command, err);
}

void oj_command_free(struct oj_command *command)
{
    const struct oj_command nothing = {0};
    CSLDestroy(command->texts);
    oj_free((double *)command->windows);
    oj_free(command->words);
    oj_free(command->exclude);
    oj_free(command->input.open_options);
    oj_free(command->join.open_options);
    oj_free(command->dataset_options);
    oj_free(command->layer_options);
    oj_free(command->dst_open_options);
    *command = nothing;
}
