/** Parts of error messages of other libraries that the project searches for,
 *  where a library has no code for the error. Each comment names the version in
 *  which the message was seen, and what is lost if another version words it
 *  differently. */
#ifndef OJ_THIRD_PARTY_ERROR_PATTERNS_H
#define OJ_THIRD_PARTY_ERROR_PATTERNS_H

#include <string.h>

/** SQLite 3.40 through GDAL 3.6, if a FID exists already: "UNIQUE constraint
 *  failed: lots.fid". If the wording changes, our message lacks the advice to
 *  use -unsetFid. */
#define OJ_TEXT_FID_REPEATS "UNIQUE"

/** SQLite 3.40 through GDAL 3.6, if another program holds the lock. If the
 *  wording changes, our message lacks the advice to look for that program. */
#define OJ_TEXT_LOCKED "database is locked"

/** Start of the advice that GEOS 3.11 appends to its reason: "side location
 *  conflict at 1 2. This can occur if the input geometry is invalid." If the
 *  wording changes, our message is only longer. */
#define OJ_TEXT_ADVICE ". This can occur"

/** GDAL 3.6, for each row in which an SQL condition compares a date or time
 *  that is NULL: "Failed to parse date '' evaluating OGR WHERE expression".
 *  This is no failure: the row does not match. If the wording changes, the join
 *  fails with this message. */
#define OJ_TEXT_NULL_DATE "Failed to parse date '' evaluating"

/** Text of std::bad_alloc in GEOS 3.11 and libspatialindex 1.9. If the wording
 *  changes, an undecided pair or an internal error is reported instead of
 *  OJ_ERR_NOMEM. */
#define OJ_TEXT_NO_MEMORY "bad_alloc"

/** libspatialindex 1.9, if the bulk loader cannot create its files in the
 *  current folder: "Tools::TemporaryFile: ...". If the wording changes, our
 *  message lacks the advice about the current folder. */
#define OJ_TEXT_NO_LOADER_FILE "TemporaryFile"

/** Returns 1 if this is the message of an error after which no data is missing.
 */
static inline int oj_error_text_is_harmless(const char *text)
{
    return strstr(text, OJ_TEXT_NULL_DATE) != NULL;
}

#endif
