/** What can be seen of the words of SQL: names that have to be quoted, and
 *  whether the answer of a SELECT or a condition depends on more than the files
 *  of its dataset.  The latter rather too often than not: the price is that an
 *  answer is not kept. */
#ifndef OJ_SQL_VOLATILITY_H
#define OJ_SQL_VOLATILITY_H

/** 1 for a reserved word of OGR's SQL or SQLite's, in any case: a layer of such
 *  a name has to be quoted in every statement. */
int oj_sql_is_keyword(const char *name);

/** 1 when two runs over the same files may differ: random numbers, the time,
 *  functions that read files or change something. */
int oj_sql_select_may_vary(const char *sql);

/** 1 when other datasets may be read. GPKG and SQLite run a SELECT themselves,
 *  unless dialect (may be NULL) says otherwise; elsewhere a point between two
 *  names may stand between a dataset and its layer. */
int oj_sql_select_may_reach_out(const char *sql, const char *dialect,
                                const char *driver);

#endif
