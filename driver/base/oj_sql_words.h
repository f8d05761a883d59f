/** Words that SQL keeps to itself: a layer of such a name has to be quoted in
 *  every statement. */
#ifndef OJ_SQL_WORDS_H
#define OJ_SQL_WORDS_H

/** 1 for a reserved word of OGR's SQL or SQLite's, in any case. */
int oj_sql_is_keyword(const char *name);

#endif
