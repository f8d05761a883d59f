/** Paths: whether two are one file, and conversion of dataset names between
 *  relative to a folder and relative to the current folder (a spec file names
 *  its layers relative to itself).
 *
 *  Only plain relative paths depend on a folder, also behind /vsizip/ and
 *  similar prefixes. Absolute paths, URLs, connections ("PG:...", "JOIN:...")
 *  and texts that are datasets themselves (XML, JSON) stay unchanged.
 */
#ifndef OJ_PATH_H
#define OJ_PATH_H

/** Returns 1 if both texts are equal, or both name one existing file. */
int oj_path_is_same_file(const char *a, const char *b);

/** Converts a name that is relative to folder ("": the current one) into a name
 *  relative to the current folder. Free the result with CPLFree(). */
char *oj_path_resolve(const char *folder, const char *name);

/** Inverse of oj_path_resolve(): makes name relative to folder, so that it
 *  stays valid if folder and file are moved together. Names that are not
 *  relative paths are copied. Free the result with CPLFree(). */
char *oj_path_make_relative(const char *folder, const char *name);

/** Returns the folder part of path without its last slash ("/" stays), or
 *  `none` if path has no slash. From CPLSPrintf(): overwritten after a few more
 *  calls. */
const char *oj_path_folder(const char *path, const char *none);

#endif
