/** What can be seen of the words of a SELECT or a condition: whether its answer
 *  depends on more than the files of its dataset.  Rather too often than not:
 *  the price is that an answer is not kept. */
#ifndef OJ_SELECT_WORDS_H
#define OJ_SELECT_WORDS_H

/** 1 when two runs over the same files may differ: random numbers, the time,
 *  functions that read files or change something. */
int oj_select_may_vary(const char *sql);

/** 1 when other datasets may be read. GPKG and SQLite run a SELECT themselves,
 *  unless dialect (may be NULL) says otherwise; elsewhere a point between two
 *  names may stand between a dataset and its layer. */
int oj_select_may_reach_out(const char *sql, const char *dialect,
                            const char *driver);

#endif
