/** Parts of error messages of other libraries on which decisions depend, since
 *  the library has no code for the error. Each has the version in which it was
 *  seen, and what is lost if another version words it differently. */
#ifndef OJ_THIRD_PARTY_ERROR_PATTERNS_H
#define OJ_THIRD_PARTY_ERROR_PATTERNS_H

#include <string.h>

/** A FID exists already. SQLite 3.40 through GDAL 3.6: "UNIQUE constraint
 *  failed: lots.fid". Lost: the advice to use -unsetFid. */
#define OJ_TEXT_FID_REPEATS "UNIQUE"

/** Another program holds the lock. SQLite 3.40 through GDAL 3.6. Lost: the hint
 *  at another program. */
#define OJ_TEXT_LOCKED "database is locked"

/** Begins the advice after the reason of a refusal. GEOS 3.11: "side location
 *  conflict at 1 2. This can occur if the input geometry is invalid." Lost: a
 *  shorter message. */
#define OJ_TEXT_ADVICE ". This can occur"

/** A condition of OGR's SQL compares a date or time that is NULL: no failure,
 *  the row does not match. GDAL 3.6: "Failed to parse date '' evaluating OGR
 *  WHERE expression", for each such row. Lost: the join, which fails with that
 *  message. */
#define OJ_TEXT_NULL_DATE "Failed to parse date '' evaluating"

/** std::bad_alloc in GEOS 3.11 and libspatialindex 1.9. Lost: OJ_ERR_NOMEM; an
 *  undecided pair or an internal error is reported instead. */
#define OJ_TEXT_NO_MEMORY "bad_alloc"

/** The bulk loader cannot create its files in the current folder.
 *  libspatialindex 1.9: "Tools::TemporaryFile: ...". Lost: that hint. */
#define OJ_TEXT_NO_LOADER_FILE "TemporaryFile"

/** Returns 1 for an error message after which no data is missing. */
static inline int oj_error_text_is_harmless(const char *text)
{
    return strstr(text, OJ_TEXT_NULL_DATE) != NULL;
}

#endif
