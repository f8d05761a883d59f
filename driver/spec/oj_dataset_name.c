#include "oj_dataset_name.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_words.h"
#include "../files/oj_path.h"
#include "../files/oj_text_file.h"

#include <cpl_error.h>
#include <cpl_vsi.h>

#include <string.h>
#include <strings.h>

/* ---- files --------------------------------------------------------------- */

enum
{
    MAX_BYTES = 16 * 1024 * 1024,
    MAX_DEPTH = 64 /* of values that are passed over */
};

struct spec_reader
{
    char *at; /* in a copy of the file, where texts are decoded in place */
    int line;
    const char *path; /* for messages */
    struct oj_error *err;

    /* What the members say; NULL: not there. */
    const char *type, *command_line;
    int is_relative;
};

static oj_status fail(const struct spec_reader *r, const char *what)
{
    return oj_fail(r->err, OJ_ERR_DATA, "%s, line %d: %s", r->path, r->line,
                   what);
}

/* Nothing else has ends of lines: in texts they are escaped. */
static void skip_space(struct spec_reader *r)
{
    for (; *r->at != '\0' && strchr(" \t\r\n", *r->at) != NULL; r->at++)
        r->line += *r->at == '\n';
}

/* 1 when the next letter that is no space is c, which is then read. */
static int takes(struct spec_reader *r, char c)
{
    skip_space(r);
    if (*r->at != c)
        return 0;
    r->at++;
    return 1;
}

static int read_hex(const char *text)
{
    int value = 0;
    for (int i = 0; i < 4; i++)
    {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *found = text[i] != '\0' ? strchr(digits, text[i]) : NULL;
        if (found == NULL)
            return -1;
        value = 16 * value + (int)(found - digits) % 16;
    }
    return value;
}

static char *put_utf8(char *out, int code)
{
    if (code < 0x80)
        *out++ = (char)code;
    else if (code < 0x800)
        *out++ = (char)(0xC0 | code >> 6);
    else if (code < 0x10000)
    {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    }
    else
    {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    }
    if (code >= 0x80)
        *out++ = (char)(0x80 | (code & 0x3F));
    return out;
}

/* What follows "\u", a second one for the other half of a pair included. */
static oj_status read_code(struct spec_reader *r, char **out)
{
    int code = read_hex(r->at), low;
    if (code <= 0)
        return fail(r, "\\u needs four hexadecimal digits, not 0000");
    r->at += 4;
    if (code >= 0xD800 && code < 0xE000)
    {
        low = r->at[0] == '\\' && r->at[1] == 'u' ? read_hex(r->at + 2) : -1;
        if (code >= 0xDC00 || low < 0xDC00 || low >= 0xE000)
            return fail(r, "half of a pair of \\u");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        r->at += 6;
    }
    *out = put_utf8(*out, code);
    return OJ_OK;
}

static oj_status read_escape(struct spec_reader *r, char **out)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *found = *r->at != '\0' ? strchr(letters, *r->at) : NULL;
    if (*r->at == 'u')
    {
        r->at++;
        return read_code(r, out);
    }
    if (found == NULL)
        return fail(r, "an unknown escape: write \\\\ for a backslash");
    *(*out)++ = meant[found - letters];
    r->at++;
    return OJ_OK;
}

/* A text in quotes. Decoded it is no longer, and ends before the quote does. */
static oj_status read_text(struct spec_reader *r, const char **text)
{
    char *out;
    if (!takes(r, '"'))
        return fail(r, "a text in double quotes is expected");
    *text = out = r->at;
    while (*r->at != '"')
    {
        if (*r->at == '\0' || (unsigned char)*r->at < 0x20)
            return fail(r, "a text does not end");
        if (*r->at == '\\')
        {
            r->at++;
            OJ_TRY(read_escape(r, &out));
        }
        else
            *out++ = *r->at++;
    }
    r->at++;
    *out = '\0';
    return OJ_OK;
}

static int takes_word(struct spec_reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_space(r);
    if (strncmp(r->at, word, n) != 0)
        return 0;
    r->at += n;
    return 1;
}

static oj_status skip_value(struct spec_reader *r, int depth)
{
    const char *text;
    skip_space(r);
    if (*r->at == '"')
        return read_text(r, &text);
    if (*r->at == '{' || *r->at == '[')
    {
        char open = *r->at++, close = open == '{' ? '}' : ']';
        if (depth == MAX_DEPTH)
            return fail(r, "values are nested too deeply");
        if (takes(r, close))
            return OJ_OK;
        do
        {
            if (open == '{')
                OJ_TRY(read_text(r, &text));
            if (open == '{' && !takes(r, ':'))
                return fail(r, "a colon is expected");
            OJ_TRY(skip_value(r, depth + 1));
        } while (takes(r, ','));
        return takes(r, close) ? OJ_OK
                               : fail(r, "a comma or the end of a list "
                                         "is expected");
    }
    if (takes_word(r, "true") || takes_word(r, "false") ||
        takes_word(r, "null"))
        return OJ_OK;
    if (strspn(r->at, "+-0123456789.eE") == 0)
        return fail(r, "a value is expected");
    r->at += strspn(r->at, "+-0123456789.eE");
    return OJ_OK;
}

static oj_status read_member(struct spec_reader *r)
{
    const char *name;
    OJ_TRY(read_text(r, &name));
    if (!takes(r, ':'))
        return fail(r, "a colon is expected");
    skip_space(r);
    if (strcmp(name, "type") == 0)
        return read_text(r, &r->type);
    if (strcmp(name, "command_line") == 0)
        return read_text(r, &r->command_line);
    if (strcmp(name, "relative_paths_relative_to_this_file") == 0)
    {
        r->is_relative = takes_word(r, "true");
        if (!r->is_relative && !takes_word(r, "false"))
            return fail(r, "relative_paths_relative_to_this_file must be true "
                           "or false");
        return OJ_OK;
    }
    return skip_value(r, 0);
}

static oj_status read_object(struct spec_reader *r)
{
    if (strncmp(r->at, "\xEF\xBB\xBF", 3) == 0)
        r->at += 3;
    if (!takes(r, '{'))
        return fail(r, "it is not a JSON object that begins with {");
    if (!takes(r, '}'))
    {
        do
            OJ_TRY(read_member(r));
        while (takes(r, ','));
        if (!takes(r, '}'))
            return fail(r, "a comma or } is expected");
    }
    skip_space(r);
    if (*r->at != '\0')
        return fail(r, "there is more after the last }");
    if (r->type == NULL || strcmp(r->type, "ogrjoin") != 0)
        return oj_fail(r->err, OJ_ERR_DATA,
                       "%s has no member \"type\": \"ogrjoin\"", r->path);
    if (r->command_line == NULL)
        return oj_fail(r->err, OJ_ERR_DATA,
                       "%s has no member \"command_line\": \"...\"", r->path);
    return OJ_OK;
}

oj_status oj_spec_file_parse(const char *text, const char *path,
                             struct oj_spec_file *spec, struct oj_error *err)
{
    int64_t size = (int64_t)strlen(text) + 1;
    char *copy = oj_malloc(size, 1);
    struct spec_reader r = {
        .at = copy, .line = 1, .path = path, .err = err, .is_relative = 1};
    oj_status status;
    if (copy == NULL)
        return oj_fail_nomem(err, size, 1);
    memcpy(copy, text, (size_t)size);
    status = read_object(&r);
    if (status != OJ_OK)
    {
        oj_free(copy);
        return status;
    }
    spec->command_line =
        memmove(copy, r.command_line, strlen(r.command_line) + 1);
    spec->is_relative = r.is_relative;
    return OJ_OK;
}

/* path may be one of GDAL's virtual files. */
static oj_status read_spec(const char *path, struct oj_spec_file *spec,
                           struct oj_error *err)
{
    GByte *bytes = NULL;
    vsi_l_offset n = 0;
    oj_status status;
    int has_read;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    has_read = VSIIngestFile(NULL, path, &bytes, &n, MAX_BYTES);
    CPLPopErrorHandler();
    if (!has_read)
        return oj_fail(err, OJ_ERR_IO,
                       "%s cannot be read, or is larger than %d bytes", path,
                       MAX_BYTES);
    if (strlen((const char *)bytes) != n)
        status = oj_fail(err, OJ_ERR_DATA,
                         "%s is no text: it has a byte that is 0", path);
    else if (n == 0)
        status = oj_fail(err, OJ_ERR_DATA, "%s is empty", path);
    else
        status = oj_spec_file_parse((const char *)bytes, path, spec, err);
    VSIFree(bytes);
    return status;
}

void oj_spec_file_print(FILE *file, const void *spec)
{
    const struct oj_spec_file *s = spec;
    fprintf(file, "{\n  \"type\": \"ogrjoin\",\n  \"command_line\": ");
    oj_text_file_put_json(file, s->command_line);
    fprintf(file, ",\n  \"relative_paths_relative_to_this_file\": %s\n}\n",
            s->is_relative ? "true" : "false");
}

void oj_spec_file_free(struct oj_spec_file *spec)
{
    oj_free(spec->command_line);
    spec->command_line = NULL;
}

/* ---- names --------------------------------------------------------------- */

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
    OJ_TRY(read_spec(path, &spec, err));
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
