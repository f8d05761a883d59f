/** Properties of the text of an SQL statement: names that must be quoted, and
 *  whether the result may depend on more than the files of its dataset.  In
 *  doubt the answer is 1; then the result is not cached. */
#ifndef OJ_SQL_VOLATILITY_H
#define OJ_SQL_VOLATILITY_H

/** 1 for a reserved word of OGR's or SQLite's SQL, ignoring case: a layer of
 *  that name must be quoted in every statement. */
int oj_sql_is_keyword(const char *name);

/** 1 when two runs over unchanged files may differ: random numbers, time,
 *  functions that read files or have side effects. */
int oj_sql_select_may_vary(const char *sql);

/** 1 when other datasets may be read. GPKG and SQLite run a SELECT themselves,
 *  unless dialect (may be NULL) names another engine; in OGR's SQL "a.b" may
 *  mean layer b of dataset a. */
int oj_sql_select_may_reach_out(const char *sql, const char *dialect,
                                const char *driver);

#endif
