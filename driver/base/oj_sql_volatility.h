/** Finds out from the text of an SQL statement whether its result may depend on
 *  more than the files of its dataset; such results are not cached. In doubt
 *  the answer is 1. Also lists names that must be quoted. */
#ifndef OJ_SQL_VOLATILITY_H
#define OJ_SQL_VOLATILITY_H

/** Returns 1 for a reserved word of OGR's or SQLite's SQL, ignoring case: a
 *  layer of that name must be quoted in every statement. */
int oj_sql_is_keyword(const char *name);

/** Returns 1 if two runs of the statement over unchanged files may differ:
 *  random numbers, current time, functions that read files or have side
 *  effects. */
int oj_sql_select_may_vary(const char *sql);

/** Returns 1 if the statement may read other datasets: in OGR's SQL "a.b" may
 *  mean layer b of dataset a. Returns 0 if the drivers GPKG or SQLite execute
 *  the statement themselves, unless dialect (may be NULL) names another
 *  engine. */
int oj_sql_select_may_read_other_files(const char *sql, const char *dialect,
                                       const char *driver);

#endif
