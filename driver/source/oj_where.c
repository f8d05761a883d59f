#include "oj_where.h"

#include "../../flatten/read/oj_value.h"
#include "../base/oj_sql_inspect.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum
{
    MAX_NAME = 128,
    MAX_DIGITS = 15, /* every driver's numbers hold so many */
    MAX_DEPTH = 64
};

struct where_reader
{
    const char *at;
    OGRFeatureDefnH defn;
    int depth;
};

static void skip_space(struct where_reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static int is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || ((unsigned char)c & 0x80);
}

/* 1 when the next word is this one, which is then read. */
static int takes_word(struct where_reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_space(r);
    if (strncasecmp(r->at, word, n) != 0 || is_letter(r->at[n]))
        return 0;
    r->at += n;
    return 1;
}

static int takes_sign(struct where_reader *r, const char *sign)
{
    size_t n = strlen(sign);
    skip_space(r);
    if (strncmp(r->at, sign, n) != 0)
        return 0;
    r->at += n;
    return 1;
}

/* Booleans are numbers to some and not to others; FID and the like mean the
 * feature. */
static int is_numeric_field(OGRFeatureDefnH defn, const char *name)
{
    int place = OGR_FD_GetFieldIndex(defn, name);
    OGRFieldDefnH field;
    OGRFieldType type;
    if (place < 0 || strcasecmp(name, "fid") == 0 ||
        strncasecmp(name, "ogr_", 4) == 0)
        return 0;
    field = OGR_FD_GetFieldDefn(defn, place);
    type = OGR_Fld_GetType(field);
    return oj_type_is_number(type) && OGR_Fld_GetSubType(field) != OFSTBoolean;
}

static int takes_field(struct where_reader *r)
{
    char name[MAX_NAME];
    int is_quoted, n = 0;
    skip_space(r);
    is_quoted = *r->at == '"';
    if (is_quoted)
        r->at++;
    else if (isdigit((unsigned char)*r->at))
        return 0;
    while (is_quoted ? *r->at != '"' : is_letter(*r->at))
    {
        if (*r->at == '\0' || *r->at == '\\' || n == MAX_NAME - 1)
            return 0;
        name[n++] = *r->at++;
    }
    name[n] = '\0';
    if (is_quoted && *++r->at == '"')
        return 0;
    return n > 0 && (is_quoted || !oj_sql_is_keyword(name)) &&
           is_numeric_field(r->defn, name);
}

/* -12.5; no exponent, no hexadecimal digits. */
static int takes_number(struct where_reader *r)
{
    int n_digits = 0;
    skip_space(r);
    if (*r->at == '-')
        r->at++;
    for (int n_points = 0; isdigit((unsigned char)*r->at) || *r->at == '.';
         r->at++)
    {
        if (*r->at != '.')
            n_digits++;
        else if (++n_points > 1)
            return 0;
    }
    return n_digits > 0 && n_digits <= MAX_DIGITS && !is_letter(*r->at);
}

static int takes_list(struct where_reader *r)
{
    if (!takes_sign(r, "("))
        return 0;
    do
    {
        if (!takes_number(r))
            return 0;
    } while (takes_sign(r, ","));
    return takes_sign(r, ")");
}

static int takes_comparison(struct where_reader *r)
{
    /* Longer signs first. */
    static const char *const signs[] = {"<>", "!=", "<=", ">=", "<", ">", "="};
    if (!takes_field(r))
        return 0;
    if (takes_word(r, "is"))
    {
        takes_word(r, "not");
        return takes_word(r, "null");
    }
    if (takes_word(r, "between"))
        return takes_number(r) && takes_word(r, "and") && takes_number(r);
    if (takes_word(r, "in"))
        return takes_list(r);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    {
        if (takes_sign(r, signs[i]))
            return takes_number(r);
    }
    return 0;
}

static int takes_condition(struct where_reader *r)
{
    do
    {
        if (!takes_sign(r, "("))
        {
            if (!takes_comparison(r))
                return 0;
        }
        else if (r->depth++ == MAX_DEPTH || !takes_condition(r) ||
                 !takes_sign(r, ")"))
            return 0;
    } while (takes_word(r, "and") || takes_word(r, "or"));
    return 1;
}

int oj_where_is_plain(const char *where, OGRFeatureDefnH defn)
{
    struct where_reader r = {where, defn, 0};
    if (!takes_condition(&r))
        return 0;
    skip_space(&r);
    return *r.at == '\0';
}
