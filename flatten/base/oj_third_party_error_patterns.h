/** Parts of error messages of other libraries that are searched for, since the
 *  library has no code for the error. Each comment states the version in which
 *  the message was seen, and what is lost if another version words it
 *  differently. */
#ifndef OJ_THIRD_PARTY_ERROR_PATTERNS_H
#define OJ_THIRD_PARTY_ERROR_PATTERNS_H

#include <string.h>

/** The message of SQLite 3.40 through GDAL 3.6 if a FID exists already: "UNIQUE
 *  constraint failed: lots.fid". With other words, the advice to use -unsetFid
 *  is missing. */
#define OJ_TEXT_FID_REPEATS "UNIQUE"

/** The message of SQLite 3.40 through GDAL 3.6 if another program holds the
 *  lock. With other words, the advice to look for that program is missing. */
#define OJ_TEXT_LOCKED "database is locked"

/** Start of the advice that GEOS 3.11 appends to its reason: "side location
 *  conflict at 1 2. This can occur if the input geometry is invalid." With
 *  other words, our message is only longer. */
#define OJ_TEXT_ADVICE ". This can occur"

/** The message of GDAL 3.6 if an SQL condition compares a date or time that is
 *  NULL: "Failed to parse date '' evaluating OGR WHERE expression", for each
 *  such row. It is no failure, since the row just does not match. With other
 *  words, the join fails with that message. */
#define OJ_TEXT_NULL_DATE "Failed to parse date '' evaluating"

/** The text of std::bad_alloc in GEOS 3.11 and libspatialindex 1.9. With other
 *  words, an undecided pair or an internal error is reported instead of
 *  OJ_ERR_NOMEM. */
#define OJ_TEXT_NO_MEMORY "bad_alloc"

/** The message of libspatialindex 1.9 if the bulk loader cannot create its
 *  files in the current folder: "Tools::TemporaryFile: ...". With other words,
 *  the advice about the current folder is missing. */
#define OJ_TEXT_NO_LOADER_FILE "TemporaryFile"

/** Returns 1 for an error message after which all data is still complete. */
static inline int oj_error_text_is_harmless(const char *text)
{
    return strstr(text, OJ_TEXT_NULL_DATE) != NULL;
}

#endif
