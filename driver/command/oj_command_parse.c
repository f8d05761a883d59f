#include "oj_command_parse.h"

#include "../../algs/relation/oj_backend.h"
#include "../../flatten/base/oj_array.h"
#include "../base/oj_size.h"
#include "../files/oj_path.h"
#include "oj_command_check.h"
#include "oj_command_op.h"
#include "oj_devices.h"
#include "oj_option_hint.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_vsi.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Strings of a command, in a chain. */
struct oj_text
{
    struct oj_text *next;
    char text[];
};

struct argument_reader
{
    struct oj_command *command;
    const char *const *argv;
    int argc;
    int next;        /* the word to read next */
    int positionals; /* words that are no options, so far */
    const char *positional[3];
    const char *folder; /* of the file that holds the words; "": none */
};

/* Copies n bytes into the command; the rest of the struct points at them. */
static oj_status keep(struct oj_command *command, const char *text, size_t n,
                      const char **out, struct oj_error *err)
{
    struct oj_text *kept =
        oj_malloc((int64_t)(sizeof(struct oj_text) + n + 1), 1);
    if (kept == NULL)
        return oj_fail_nomem(err, (int64_t)n, 1);
    memcpy(kept->text, text, n);
    kept->text[n] = '\0';
    kept->next = command->texts;
    command->texts = kept;
    *out = kept->text;
    return OJ_OK;
}

static oj_status keep_word(struct oj_command *command, const char *word,
                           const char **out, struct oj_error *err)
{
    return keep(command, word, strlen(word), out, err);
}

/* A word that is the name of a file or a dataset. */
static oj_status keep_path(const struct argument_reader *r, const char *name,
                           const char **out, struct oj_error *err)
{
    char *path = NULL;
    oj_status status;
    OJ_TRY(oj_path_resolve(r->folder, name, &path, err));
    status = keep_word(r->command, path, out, err);
    oj_free(path);
    return status;
}

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
        n--;
    status = keep(command, (const char *)bytes, (size_t)n, out, err);
    VSIFree(bytes);
    return status;
}

static oj_status append(struct oj_command *command, int argc, const char *word,
                        const char ***list, struct oj_error *err)
{
    const char *kept = NULL;
    int n = 0;
    OJ_TRY(keep_word(command, word, &kept, err));
    if (*list == NULL)
    {
        *list = oj_calloc(argc + 1, sizeof **list);
        if (*list == NULL)
            return oj_fail_nomem(err, argc + 1, sizeof **list);
    }
    while ((*list)[n] != NULL)
        n++;
    (*list)[n] = kept;
    return OJ_OK;
}

/* The place of word in "a|b|c", or -1. */
static int find_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    int place = 0;
    for (const char *c = choices;; place++)
    {
        size_t length = strcspn(c, "|");
        if (length == n && strncasecmp(c, word, n) == 0)
            return place;
        if (c[length] == '\0')
            return -1;
        c += length + 1;
    }
}

static oj_status read_choice(const struct oj_option *option, const char *word,
                             int *out, struct oj_error *err)
{
    int place = find_choice(option->choices, word);
    if (place < 0)
        return oj_fail(err, OJ_ERR_ARG, "-%s must be one of %s, not '%s'",
                       option->name, option->choices, word);
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
                              struct oj_command *command, const char **out,
                              struct oj_error *err)
{
    const struct oj_backend *backend = oj_backend_find(word);
    char names[256] = "auto";
    if (backend != NULL)
    {
        *out = backend->name;
        return OJ_OK;
    }
    if (strcasecmp(word, "auto") == 0)
        return keep_word(command, "auto", out, err);
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
            return keep_word(command, words[0], at, err);
        case OJ_OPTION_TEXT_OR_FILE:
            if (words[0][0] != '@')
                return keep_word(command, words[0], at, err);
            OJ_TRY(keep_path(r, words[0] + 1, at, err));
            return keep_file(command, *(const char **)at, option->name, at,
                             err);
        case OJ_OPTION_LIST:
            if (strchr(words[0], '=') == NULL &&
                strcmp(option->arguments, "NAME=VALUE") == 0)
                return oj_fail(err, OJ_ERR_ARG,
                               "-%s takes NAME=VALUE, not '%s'", option->name,
                               words[0]);
            return append(command, r->argc, words[0], at, err);
        case OJ_OPTION_CHOICE:
            return read_choice(option, words[0], at, err);
        case OJ_OPTION_THREADS:
            if (strcasecmp(words[0], "ALL_CPUS") == 0)
            {
                *(int64_t *)at = 0;
                return OJ_OK;
            }
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
            return oj_devices_parse(words[0], at, err);
        case OJ_OPTION_OP:
            return oj_command_read_op(command, words[0], err);
        case OJ_OPTION_BACKEND:
            return read_backend(option, words[0], command, at, err);
        case OJ_OPTION_REFERENCE:
            *(const char **)at = ""; /* settled by the join */
            if (r->next < r->argc && oj_backend_find(r->argv[r->next]) != NULL)
                *(const char **)at = oj_backend_find(r->argv[r->next++])->name;
            return OJ_OK;
    }
    return oj_fail(err, OJ_ERR_INTERNAL, "option -%s has no kind",
                   option->name);
}

/* What to write in place of an option that is given twice. */
static const struct
{
    const char *option, *instead;
} lists[] = {
    {"on", "write one list, as -on a=b,c=d"},
    {"select", "write one list, as -select a,b"},
    {"join_select", "write one list, as -join_select a,b"},
    {"agg", "write one list, as -agg \"count, sum(a)\""},
    {"overlap", "write one list, as -overlap area,percent"},
    {"where", "write one condition, as -where \"a > 1 AND b = 2\""},
    {"join_where", "write one condition, as -join_where \"a > 1 AND b = 2\""},
};

/* Of two values one would be lost. */
static oj_status check_repeated(const struct oj_option *option,
                                struct oj_error *err)
{
    const char *instead = "leave one out";
    if (option->kind == OJ_OPTION_FLAG || option->kind == OJ_OPTION_LIST ||
        option->kind == OJ_OPTION_BOXES)
        return OJ_OK;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    {
        if (strcmp(lists[i].option, option->name) == 0)
            instead = lists[i].instead;
    }
    return oj_fail(err, OJ_ERR_ARG, "-%s is given twice: %s", option->name,
                   instead);
}

static oj_status fail_unknown(const char *word, struct oj_error *err)
{
    char hint[300];
    oj_option_hint(word, hint, sizeof hint);
    return oj_fail(err, OJ_ERR_ARG, "unknown option %.100s%s", word, hint);
}

static oj_status read_option(struct argument_reader *r, const char *word,
                             struct oj_error *err)
{
    const struct oj_option *option;
    const char *const *words = &r->argv[r->next];
    const char *name = word + 1 + (word[1] == '-');
    int row = oj_option_find(name), n;
    if (row >= 0 && r->command->is_dataset)
        OJ_TRY(oj_command_check_dataset(oj_option_at(row)->name, err));
    if (row < 0)
        return fail_unknown(word, err);
    option = oj_option_at(row);
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

static int asks_for_help(const struct argument_reader *r)
{
    for (int i = 0; i < r->argc; i++)
    {
        const char *word = r->argv[i];
        if (strcasecmp(word, "-h") == 0 || strcasecmp(word, "-help") == 0 ||
            strcasecmp(word, "--help") == 0)
            return !r->command->is_dataset;
    }
    return 0;
}

static oj_status keep_words(struct argument_reader *r, struct oj_error *err)
{
    const char **words;
    OJ_NEW(words, (int64_t)r->argc + 1, err);
    r->command->words = words;
    words[0] = NULL;
    for (int i = 0; i < r->argc; i++)
    {
        OJ_TRY(keep_word(r->command, r->argv[i], &words[i], err));
        words[i + 1] = NULL;
    }
    return OJ_OK;
}

static oj_status parse(struct argument_reader *r, struct oj_error *err)
{
    if (asks_for_help(r))
    {
        r->command->help = 1;
        return OJ_OK;
    }
    OJ_TRY(keep_words(r, err));
    while (r->next < r->argc)
    {
        const char *word = r->argv[r->next++];
        if (oj_word_is_option(word))
            OJ_TRY(read_option(r, word, err));
        else
            OJ_TRY(read_positional(r, word, err));
    }
    OJ_TRY(oj_command_settle_op(r->command, err));
    OJ_TRY(oj_command_check_needs(r->command, err));
    OJ_TRY(place_positionals(r, err));
    return oj_command_check(r->command, err);
}

static oj_status parse_words(int argc, const char *const *argv, int is_dataset,
                             const char *folder, struct oj_command *command,
                             struct oj_error *err)
{
    struct oj_command empty = {0};
    struct argument_reader r = {0};
    oj_status status;
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
    r.argv = argv;
    r.argc = argc;
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
    struct oj_text *text = command->texts;
    while (text != NULL)
    {
        struct oj_text *next = text->next;
        oj_free(text);
        text = next;
    }
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
