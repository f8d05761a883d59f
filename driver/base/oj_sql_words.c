#include "oj_sql_words.h"

#include <cpl_string.h>

int oj_sql_is_keyword(const char *name)
{
    static const char *const words[] = {
        "add",      "all",      "alter",       "and",        "as",
        "asc",      "between",  "by",          "case",       "cast",
        "check",    "collate",  "commit",      "constraint", "create",
        "cross",    "default",  "deferrable",  "delete",     "desc",
        "distinct", "drop",     "else",        "escape",     "except",
        "exclude",  "exists",   "foreign",     "from",       "full",
        "group",    "having",   "hidden",      "ilike",      "in",
        "index",    "inner",    "insert",      "intersect",  "into",
        "is",       "isnull",   "join",        "left",       "like",
        "limit",    "natural",  "not",         "nothing",    "notnull",
        "null",     "offset",   "on",          "or",         "order",
        "outer",    "primary",  "references",  "replace",    "returning",
        "right",    "rollback", "select",      "set",        "table",
        "then",     "to",       "transaction", "union",      "unique",
        "update",   "using",    "values",      "when",       "where",
        "with",     NULL,
    };
    return CSLFindString((CSLConstList)words, name) >= 0;
}
