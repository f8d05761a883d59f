#include "oj_help.h"

#include "../../algs/foundations/relation/oj_backend_registry.h"
#include "../../algs/foundations/relation/oj_gpu.h"
#include "../../algs/foundations/relation/oj_relation.h"
#include "../base/oj_shell_words.h"
#include "oj_option_table.h"

#include <cpl_string.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum
{
    TEXT_COLUMN = 24, /* column where explanations start */
    WIDTH = 79
};

/* Prints text wrapped at WIDTH and indented by column; the cursor must be at
 * column. */
static void print_wrapped(const char *text, int column)
{
    int at = column;
    while (*text != '\0')
    {
        int n = (int)strcspn(text, " ");
        if (at > column && at + 1 + n > WIDTH)
        {
            printf("\n%*s", column, "");
            at = column;
        }
        at += printf("%s%.*s", at > column ? " " : "", n, text);
        text += n;
        text += *text == ' ';
    }
    printf("\n");
}

static void print_entry(const char *left, const char *text)
{
    int n = printf("  %s", left);
    if (n > TEXT_COLUMN - 2)
    {
        printf("\n");
        n = 0;
    }
    printf("%*s", TEXT_COLUMN - n, "");
    print_wrapped(text, TEXT_COLUMN);
}

/* Returns where word occurs in text, ignoring case, or NULL. */
static const char *find_word_part(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (; *text != '\0'; text++)
    {
        if (strncasecmp(text, word, n) == 0)
            return text;
    }
    return NULL;
}

/* Returns 1 if name equals the word or has it as a part. A word of one or two
 * letters must equal it, since it would match many names by chance. */
static int is_name_of_topic(const char *name, const char *word)
{
    return strcasecmp(name, word) == 0 ||
           (strlen(word) > 2 && find_word_part(name, word) != NULL);
}

/* Returns 1 if text contains the word as a whole word. */
static int is_text_of_topic(const char *text, const char *word)
{
    const char *at = text;
    for (; (at = find_word_part(at, word)) != NULL; at++)
    {
        if ((at == text || !isalnum((unsigned char)at[-1])) &&
            !isalnum((unsigned char)at[strlen(word)]))
            return 1;
    }
    return 0;
}

/* The part of an option that is compared with the word after --help. */
enum topic_part
{
    TOPIC_NAMES, /* name, section, joins and arguments */
    TOPIC_TEXT   /* help text */
};

static int is_option_of_topic(const struct oj_option *option, const char *word,
                              enum topic_part part)
{
    const char *choices = option->choices;
    if (part == TOPIC_TEXT)
        return is_text_of_topic(option->help, word);
    if (option->kind == OJ_OPTION_CHOICE)
        choices = oj_option_choices(option);
    return is_name_of_topic(option->name, word) ||
           (option->alias != NULL && strcasecmp(option->alias, word) == 0) ||
           is_name_of_topic(option->group, word) ||
           (option->ops != NULL && oj_words_find(option->ops, word) >= 0) ||
           (choices != NULL && oj_words_find(choices, word) >= 0);
}

/* Prints the options that match the word, all if word is NULL. Returns their
 * number. */
static int print_options(const char *word, enum topic_part part)
{
    const struct oj_option *option;
    const char *group = NULL;
    int n = 0;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        char left[96];
        if (word != NULL && !is_option_of_topic(option, word, part))
            continue;
        n++;
        if (group != option->group)
            printf("\n%s:\n", option->group);
        group = option->group;
        snprintf(left, sizeof left, "-%s%s%s%s%s", option->name,
                 option->alias != NULL ? ", -" : "",
                 option->alias != NULL ? option->alias : "",
                 option->arguments[0] != '\0' ? " " : "", option->arguments);
        print_entry(left, option->help);
    }
    return n;
}

typedef void (*entry_printer)(const char *name, const char *text);

static void print_joins(entry_printer print)
{
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        const struct oj_op_info *op = oj_op_get((enum oj_op)i);
        print(op->name, op->description);
    }
    print("window", "the input feature meets a box of -window, or the "
                    "envelope of a join feature");
}

static void print_backends(entry_printer print)
{
    const struct oj_backend *backend;
    for (int i = 0; (backend = oj_backend_at(i)) != NULL; i++)
        print(backend->name, backend->description);
}

static const char *const usage[] = {
    "[options] dst_ds input_ds join_ds",
    "-window XMIN YMIN XMAX YMAX [options] dst_ds input_ds",
    "-in_place [options] input_ds join_ds",
    "-benchmark [options] input_ds join_ds",
    "-write_spec FILE.ogrjoin [options] input_ds join_ds",
    "--devices",
};

static const struct
{
    const char *what, *words;
} examples[] = {
    {"the zone of each pickup", "ogrjoin out.gpkg pickups.gpkg zones.gpkg"},
    {"pickups counted and added up by zone",
     "ogrjoin -agg \"count, sum(fare)\" out.gpkg zones.gpkg pickups.gpkg"},
    {"the tax lot of each pickup, up to 100 ft away",
     "ogrjoin -op nearest -max_distance 100ft out.gpkg pickups.gpkg lots.gpkg"},
    {"the three nearest stations, distances in metres, from longitude and "
     "latitude",
     "ogrjoin -op nearest -k 3 -t_srs EPSG:25833 out.fgb homes.csv rail.gpkg "
     "\\\n"
     "      -join_layer stations -oo X_POSSIBLE_NAMES=lon -oo "
     "Y_POSSIBLE_NAMES=lat"},
    {"pickups without any street within 20 m, proved against GEOS",
     "ogrjoin -op nearest -max_distance 20m -how anti -validate far.gpkg \\\n"
     "      pickups.gpkg streets.gpkg"},
    {"add the columns to the layer itself",
     "ogrjoin -in_place -op nearest pickups.gpkg lots.gpkg"},
    {"shops within 500 m of another one of the same chain, each pair once",
     "ogrjoin -op dwithin -max_distance 500m -on chain -unordered_pairs \\\n"
     "      -how inner out.gpkg shops.gpkg shops.gpkg"},
    {"places with a similar name within 200 m, the most similar one of each",
     "ogrjoin -op dwithin -max_distance 200m -similar name=NAME:0.6 \\\n"
     "      -pick most_similar out.gpkg osm.gpkg other.fgb"},
    {"the join as a dataset that GDAL and QGIS read",
     "ogrinfo -al -so 'JOIN:-op nearest pickups.gpkg lots.gpkg'\n"
     "    ogrjoin -write_spec near.ogrjoin -op nearest pickups.gpkg lots.gpkg"},
};

static void print_purpose_and_usage(void)
{
    printf(
        "ogrjoin joins two vector layers: each feature of the input layer gets "
        "the\nattributes of the join features that it intersects, lies in, is "
        "nearest to, ...\n"
        "\n");
    for (size_t i = 0; i < sizeof usage / sizeof *usage; i++)
        printf("  ogrjoin %s\n", usage[i]);
}

static void print_examples(size_t n)
{
    printf("\nExamples:\n");
    for (size_t i = 0; i < n; i++)
        printf("  %s:\n    %s\n", examples[i].what, examples[i].words);
}

void oj_help_print_usage(void)
{
    enum
    {
        N_EXAMPLES = 3
    };
    print_purpose_and_usage();
    print_examples(N_EXAMPLES);
    printf("\n"
           "ogrjoin --help lists all joins and options; ogrjoin --help WORD "
           "those with the\nword in their name or section, as --help agg, "
           "--help nearest or --help crs.\n");
}

/* Prints the joins whose name is or contains the word, or that have the word as
 * a synonym. Returns their number. */
static int print_joins_of_topic(const char *word)
{
    int n = 0;
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        const struct oj_op_info *op = oj_op_get((enum oj_op)i);
        if (!is_name_of_topic(op->name, word) &&
            (op->synonyms == NULL || oj_words_find(op->synonyms, word) < 0))
            continue;
        if (n++ == 0)
            printf("Joins (-op):\n");
        print_entry(op->name, op->description);
    }
    return n;
}

int oj_help_print_topic(const char *word)
{
    int n;
    while (*word == '-')
        word++;
    if (*word == '\0')
        return 0;
    n = print_joins_of_topic(word);
    n += print_options(word, TOPIC_NAMES);
    if (n == 0 && strlen(word) > 2)
        n = print_options(word, TOPIC_TEXT);
    return n > 0;
}

void oj_help_print(void)
{
    print_purpose_and_usage();
    printf(
        "\n"
        "The output has the input's rows in their order, one per pair, with "
        "geometry and\nfields, then join_fid (NULL where nothing matches), "
        "join_distance,\njoin_similarity, join_difference and join_rank where "
        "the join has them, then\nthe join layer's fields. -pick and -agg make "
        "one row per input row.\n");
    printf("\nJoins (-op):\n");
    print_joins(print_entry);
    print_options(NULL, TOPIC_NAMES);
    printf("\nGDAL's own:\n");
    print_entry("--formats", "formats that can be read and written");
    print_entry("--version", "versions of ogrjoin and GDAL");
    print_entry("--config KEY VALUE", "a configuration option of GDAL");
    printf("\nBackends (ogrjoin --devices lists the GPUs that cuda can "
           "use):\n");
    print_backends(print_entry);
    printf("\nExit codes: 0 complete, 1 error, 3 -validate found a difference, "
           "130 interrupted.\n");
    print_examples(sizeof examples / sizeof *examples);
}

/* ---- the man page -------------------------------------------------------- */

/* Prints text with dashes and backslashes escaped, because roff interprets
 * them. */
static void print_escaped_for_roff(const char *text)
{
    for (; *text != '\0'; text++)
    {
        if (*text == '-' || *text == '\\')
            putchar('\\');
        putchar(*text == '\\' ? 'e' : *text);
    }
}

/* Prints a help text as a sentence on a line of its own: the first letter in
 * upper case, and `end` behind the text. */
static void print_man_sentence(const char *text, const char *end)
{
    putchar(toupper((unsigned char)*text));
    print_escaped_for_roff(text + 1);
    printf("%s\n", end);
}

static void print_man_entry(const char *name, const char *text)
{
    printf(".TP\n.B %s\n", name);
    print_man_sentence(text, ".");
}

static void print_man_usage(void)
{
    for (size_t i = 0; i < sizeof usage / sizeof *usage; i++)
    {
        printf("\\fBogrjoin\\fR ");
        print_escaped_for_roff(usage[i]);
        printf("\n.br\n");
    }
}

static void print_man_examples(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
    {
        printf(".PP\n");
        print_man_sentence(examples[i].what, ":");
        printf(".PP\n.nf\n    ");
        print_escaped_for_roff(examples[i].words);
        printf("\n.fi\n");
    }
}

static void print_man_heading(const char *group)
{
    printf(".SH ");
    for (; *group != '\0' && strncmp(group, " (", 2) != 0; group++)
        putchar(toupper((unsigned char)*group));
    printf("\n");
}

/* Lists the options that a join that is read as a dataset does not accept. */
static void print_man_unread_options(void)
{
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        if (option->not_read != NULL)
            printf("\\-%s,\n", option->name);
    }
}

/* Prints lines until one begins with "@"; returns that line. */
static char **print_lines_to_mark(char **line)
{
    for (; *line != NULL && **line != '@'; line++)
        printf("%s\n", *line);
    return line;
}

static void print_man_options(char **lines)
{
    const struct oj_option *option;
    const char *group = NULL;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        int note = CSLFindString(lines, CPLSPrintf("@-%s", option->name));
        if (group != option->group)
            print_man_heading(option->group);
        group = option->group;
        printf(".TP\n\\fB\\-%s\\fR", option->name);
        if (option->alias != NULL)
            printf(", \\fB\\-%s\\fR", option->alias);
        printf(" \\fI");
        print_escaped_for_roff(option->arguments);
        printf("\\fR\n");
        print_man_sentence(option->help, ".");
        if (note >= 0)
            print_lines_to_mark(lines + note + 1);
    }
}

int oj_help_print_man(const char *template)
{
    char **lines = CSLLoad(template), **line = lines;
    int is_known = lines != NULL;
    while (is_known && *(line = print_lines_to_mark(line)) != NULL)
    {
        const char *mark = *line++ + 1;
        if (strcmp(mark, "usage") == 0)
            print_man_usage();
        else if (strcmp(mark, "joins") == 0)
            print_joins(print_man_entry);
        else if (strcmp(mark, "backends") == 0)
            print_backends(print_man_entry);
        else if (strcmp(mark, "options") == 0)
            print_man_options(lines);
        else if (strcmp(mark, "examples") == 0)
            print_man_examples();
        else if (strcmp(mark, "unread_options") == 0)
            print_man_unread_options();
        else if (*mark == '-') /* an option that was already printed */
            while (*line != NULL && **line != '@')
                line++;
        is_known = *mark != '-' || oj_option_of_word(mark) != NULL;
    }
    CSLDestroy(lines);
    return is_known;
}

/* ---- devices ------------------------------------------------------------- */

static void print_device(const struct oj_gpu_device *device)
{
    const double gigabyte = 1e9;
    printf("GPU %d: %s, compute capability %d.%d, %d multiprocessors, %.1f GB",
           device->ordinal, device->name, device->major, device->minor,
           device->n_processors, (double)device->total_bytes / gigabyte);
    if (device->why_not[0] == '\0')
        printf(" of which %.1f are free: usable\n",
               (double)device->free_bytes / gigabyte);
    else
        printf(": not usable, %s\n", device->why_not);
}

static oj_status print_devices(struct oj_error *err)
{
    const struct oj_gpu_module *module;
    int n = 0;
    OJ_TRY(oj_gpu_load(&module, err));
    printf("CUDA module: %s\n", module->build);
    OJ_TRY(module->count(&n, err));
    for (int i = 0; i < n; i++)
    {
        struct oj_gpu_device device;
        OJ_TRY(module->describe(i, &device, err));
        print_device(&device);
    }
    return OJ_OK;
}

void oj_help_print_devices(void)
{
    struct oj_error err = {OJ_OK, ""};
    if (print_devices(&err) != OJ_OK)
        printf("No GPU can be used: %s\n", err.message);
}

/* ---- completion ---------------------------------------------------------- */

/* Prints the words of a list "a|b|c", one per line. */
static void print_list(const char *list)
{
    const char *word;
    int n;
    for (int i = 0; (word = oj_words_at(list, i, &n)) != NULL; i++)
        printf("%.*s\n", n, word);
}

static void print_name_without_text(const char *name, const char *text)
{
    (void)text;
    printf("%s\n", name);
}

static void print_options_as_words(void)
{
    const struct oj_option *option;
    for (int i = 0; (option = oj_option_at(i)) != NULL; i++)
    {
        printf("-%s\n", option->name);
        if (option->alias != NULL)
            printf("-%s\n", option->alias);
    }
    print_list("--help|--version|--devices|--formats|--format|--config|--debug|"
               "--optfile");
}

/* Prints one line per parameter: name, arguments, joins and help, separated by
 * tabs. */
static void print_parameters(void)
{
    const struct oj_parameter *parameter;
    for (int i = 0; (parameter = oj_parameter_at(i)) != NULL; i++)
        printf("%s\t%s\t%s\t%s\n", parameter->name, parameter->arguments,
               parameter->ops, parameter->help);
}

int oj_help_print_words(const char *before)
{
    const struct oj_option *option = oj_option_of_word(before);
    if (strcmp(before, "--parameters") == 0)
    {
        print_parameters();
        return 1;
    }
    if (option == NULL || oj_option_count_words(option) == 0)
        print_options_as_words();
    if (option == NULL)
        return 1;
    if (option->kind == OJ_OPTION_OP)
        print_joins(print_name_without_text);
    else if (option->kind == OJ_OPTION_BACKEND)
    {
        printf("auto\n");
        print_backends(print_name_without_text);
    }
    else if (option->kind == OJ_OPTION_REFERENCE)
        print_backends(print_name_without_text);
    else if (option->kind == OJ_OPTION_CHOICE || option->choices != NULL)
        print_list(oj_option_choices(option));
    return oj_option_count_words(option) == 0 ||
           strncmp(option->arguments, "FILE", 4) == 0;
}
