#include "oj_similar.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <string.h>

enum
{
    MOST_DIGITS = 9 /* after the point, or of either half of a fraction */
};

/* Appends digits to *number; returns how many, those that are too many not
 * read. */
static int read_digits(const char **at, int most, int64_t *number)
{
    int n = 0;
    for (; n < most && **at >= '0' && **at <= '9'; (*at)++, n++)
        *number = 10 * *number + (**at - '0');
    return n;
}

oj_status oj_threshold_parse(const char *option, const char *text,
                             int64_t *numerator, int64_t *denominator,
                             struct oj_error *err)
{
    const char *at = text;
    int64_t over = 0, under = 0;
    int n = read_digits(&at, MOST_DIGITS, &over);
    if (*at == '/' && n > 0)
    {
        at++;
        read_digits(&at, MOST_DIGITS, &under);
    }
    else
    {
        int is_decimal = *at == '.', n_after = 0;
        at += is_decimal;
        if (is_decimal && n <= 1)
            n_after = read_digits(&at, MOST_DIGITS, &over);
        under = n + n_after > 0;
        for (; n_after > 0; n_after--)
            under *= 10;
    }
    if (*at != '\0' || over <= 0 || over > under)
        return oj_fail(err, OJ_ERR_ARG,
                       "-%s: a similarity is above 0 and at most 1, a decimal "
                       "of up to %d digits or a fraction, as 0.6 or 3/4, not "
                       "'%.60s'",
                       option, MOST_DIGITS, text);
    *numerator = over;
    *denominator = under;
    return OJ_OK;
}

/* Appends the name at *at to list; without one nothing is appended. */
static char **add_name(char **list, const char **at)
{
    char *name = CPLMalloc(strlen(*at) + 1);
    int is_quoted = **at == '"', is_open = 1;
    size_t n = 0;
    *at += is_quoted;
    while (**at != '\0' && (is_quoted || strchr("+=:", **at) == NULL))
    {
        is_open = !(is_quoted && **at == '"' && *++*at != '"');
        if (!is_open)
            break;
        name[n++] = *(*at)++;
    }
    name[n] = '\0';
    if (n > 0 && !(is_quoted && is_open))
        list = CSLAddString(list, name);
    CPLFree(name);
    return list;
}

/* "a+b", up to what follows; 0: a name is missing. */
static int read_names(const char **at, char ***list)
{
    for (int n = 0;; (*at)++)
    {
        *list = add_name(*list, at);
        if (CSLCount(*list) != ++n)
            return 0;
        if (**at != '+')
            return 1;
    }
}

oj_status oj_similar_parse(const char *word, struct oj_similar *out,
                           struct oj_error *err)
{
    struct oj_similar similar = {0};
    const char *at = word;
    int is_good = read_names(&at, &similar.fields[0]);
    oj_status status = OJ_OK;
    if (is_good && *at == '=')
    {
        at++;
        is_good = read_names(&at, &similar.fields[1]);
    }
    else
        similar.fields[1] = CSLDuplicate(similar.fields[0]);
    if (!is_good || (*at != ':' && *at != '\0'))
        status = oj_fail(err, OJ_ERR_ARG,
                         "-similar takes LEFT[=RIGHT][:T], fields of the input "
                         "layer, of the join layer and how similar, as "
                         "name=NAME:0.6 or name+street:3/4 (names with : + = "
                         "in double quotes), not '%.100s'",
                         word);
    else if (*at == ':')
        status = oj_threshold_parse("similar", at + 1, &similar.numerator,
                                    &similar.denominator, err);
    if (status == OJ_OK)
        *out = similar;
    else
        oj_similar_free(&similar);
    return status;
}

void oj_similar_free(struct oj_similar *similar)
{
    const struct oj_similar empty = {0};
    CSLDestroy(similar->fields[0]);
    CSLDestroy(similar->fields[1]);
    *similar = empty;
}
