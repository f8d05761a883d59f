#include "oj_sql_volatility.h"

#include "oj_shell_words.h"

#include <cpl_string.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

int oj_sql_is_keyword(const char *name)
{
    static const char words[] =
        "add|all|alter|and|as|asc|between|by|case|cast|check|collate|commit|"
        "constraint|create|cross|default|deferrable|delete|desc|distinct|"
        "drop|else|escape|except|exclude|exists|foreign|from|full|group|"
        "having|hidden|ilike|in|index|inner|insert|intersect|into|is|isnull|"
        "join|left|like|limit|natural|not|nothing|notnull|null|offset|on|or|"
        "order|outer|primary|references|replace|returning|right|rollback|"
        "select|set|table|then|to|transaction|union|unique|update|using|"
        "values|when|where|with";
    return oj_words_find(words, name) >= 0;
}

/* Words that make a statement volatile anywhere, even in quotes: date('now').
 */
static const char words[] =
    "now|current_date|current_time|current_timestamp|localtime";

/* Functions that make a statement volatile; a name counts if a parenthesis
 * follows. Date functions count whatever their arguments are. */
static const char functions[] =
    "random|randomblob|date|time|datetime|julianday|strftime|unixepoch|"
    "timediff|changes|createuuid|total_changes|blobfromfile|blobtofile|"
    "load_extension|last_insert_rowid|readfile|sqlite_offset|eval|nextval";

/* Prefixes of functions of GDAL and SpatiaLite that access layers or files. */
static const char *const beginnings[] = {"ogr_",   "gdal_", "import",
                                         "export", "xb_",   "rl2_"};

static int is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static int is_volatile_word(const char *word, int is_function)
{
    if (oj_words_find(words, word) >= 0)
        return 1;
    if (!is_function)
        return 0;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
    {
        if (STARTS_WITH_CI(word, beginnings[i]))
            return 1;
    }
    return oj_words_find(functions, word) >= 0;
}

/* Returns 1 if a parenthesis, or a comment that may precede one, follows the
 * name that ends at `at`. The name may be quoted. */
static int is_before_parenthesis(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r' ||
           *at == '"' || *at == '`' || *at == ']')
        at++;
    return *at == '(' || *at == '/' || *at == '-'; /* '/' and '-' begin a
                                                      comment */
}

int oj_sql_select_may_vary(const char *sql)
{
    while (*sql != '\0')
    {
        size_t n = 0;
        while (is_word_char(sql[n]))
            n++;
        if (n > 0 && is_volatile_word(oj_words_excerpt(sql, n),
                                      is_before_parenthesis(sql + n)))
            return 1;
        sql += n > 0 ? n : 1;
    }
    return 0;
}

/* Returns 1 if the point belongs to a number: 1.5, .5. */
static int is_decimal_point(const char *sql, const char *point)
{
    const char *at = point;
    while (at > sql && is_word_char(at[-1]))
    {
        if (!isdigit((unsigned char)*--at))
            return 0;
    }
    return isdigit((unsigned char)point[1]);
}

int oj_sql_select_may_read_other_files(const char *sql, const char *dialect,
                                       const char *driver)
{
    int is_native = (strcasecmp(driver, "GPKG") == 0 ||
                     strcasecmp(driver, "SQLite") == 0) &&
                    (dialect == NULL || dialect[0] == '\0' ||
                     strcasecmp(dialect, "SQLITE") == 0 ||
                     strcasecmp(dialect, driver) == 0);
    if (is_native)
        return 0;
    for (const char *at = strchr(sql, '.'); at != NULL;
         at = strchr(at + 1, '.'))
    {
        if (!is_decimal_point(sql, at))
            return 1;
    }
    return 0;
}
