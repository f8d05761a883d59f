/** Parts of error messages of other libraries that are searched for, since the
 *  library has no code for the error. Each comment states the version in which
 *  the message was seen, and what is lost if another version words it
 *  differently. */
#ifndef OJ_THIRD_PARTY_ERROR_PATTERNS_H
#define OJ_THIRD_PARTY_ERROR_PATTERNS_H

#include <string.h>

/** A FID exists already. SQLite 3.40 through GDAL 3.6: "UNIQUE constraint
 *  failed: lots.fid". Lost: the advice to use -unsetFid. */
#define OJ_TEXT_FID_REPEATS "UNIQUE"

/** Another program holds the lock. SQLite 3.40 through GDAL 3.6. Lost: the
 *  advice to look for another program. */
#define OJ_TEXT_LOCKED "database is locked"

/** Start of the advice that follows GEOS's reason. GEOS 3.11: "side location
 *  conflict at 1 2. This can occur if the input geometry is invalid." Lost:
 *  only the shortness of the message. */
#define OJ_TEXT_ADVICE ". This can occur"

/** An SQL condition in OGR compares a date or time that is NULL. This is no
 *  failure: the row does not match. GDAL 3.6: "Failed to parse date ''
 *  evaluating OGR WHERE expression", for each such row. Lost: the join, which
 *  fails with that message. */
#define OJ_TEXT_NULL_DATE "Failed to parse date '' evaluating"

/** std::bad_alloc in GEOS 3.11 and libspatialindex 1.9. Lost: OJ_ERR_NOMEM; an
 *  undecided pair or an internal error is reported instead. */
#define OJ_TEXT_NO_MEMORY "bad_alloc"

/** The bulk loader cannot create its files in the current folder.
 *  libspatialindex 1.9: "Tools::TemporaryFile: ...". Lost: the advice about the
 *  current folder. */
#define OJ_TEXT_NO_LOADER_FILE "TemporaryFile"

/** Returns 1 for an error message after which all data is still complete. */
static inline int oj_error_text_is_harmless(const char *text)
{
    return strstr(text, OJ_TEXT_NULL_DATE) != NULL;
}

#endif
