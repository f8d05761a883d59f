/** Paths: which of them are one file, and names of datasets in a file that
 * speaks of its neighbours: where they lead when one stands elsewhere.
 *
 *  Only plain relative paths depend on where one stands, also behind /vsizip/
 *  and its like.  Absolute ones, URLs, connections ("PG:...", "JOIN:...") and
 *  texts that are datasets themselves (XML, JSON) do not.
 */
#ifndef OJ_PATH_H
#define OJ_PATH_H

/** 1 when both are the same text, or both are there and are one file. */
int oj_path_is_same_file(const char *a, const char *b);

/** What name, written in a file in this folder, is from here; CPLFree().
 *  folder: "" for the current one. */
char *oj_path_resolve(const char *folder, const char *name);

/** What to write in a file in this folder for what is name from here, so that
 *  oj_path_resolve() leads there, also when both are moved together.
 *  CPLFree(). Names that are not relative stay. */
char *oj_path_make_relative(const char *folder, const char *name);

/** The folder that path lies in, without the last slash ("/" keeps it), or none
 *  where it has none.  As all of CPLSPrintf(): kept for a few calls. */
const char *oj_path_folder(const char *path, const char *none);

#endif
