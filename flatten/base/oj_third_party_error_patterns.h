/** Words in error texts of other libraries that decide something here, because
 *  the library has no code for what they mean and cannot be asked.  Each with
 *  the version it was seen in, and what is lost where another version says it
 *  in other words.
 */
#ifndef OJ_THIRD_PARTY_ERROR_PATTERNS_H
#define OJ_THIRD_PARTY_ERROR_PATTERNS_H

#include <string.h>

/** A FID is there already.  SQLite 3.40 through GDAL 3.6: "UNIQUE constraint
 *  failed: lots.fid".  Lost: the advice to use -unsetFid. */
#define OJ_TEXT_FID_REPEATS "UNIQUE"

/** Another program holds the lock.  SQLite 3.40 through GDAL 3.6.  Lost: that
 * it is another program. */
#define OJ_TEXT_LOCKED "database is locked"

/** What follows the reason of a refusal.  GEOS 3.11: "side location conflict at
 *  1 2. This can occur if the input geometry is invalid."  Lost: a shorter
 *  line. */
#define OJ_TEXT_ADVICE ". This can occur"

/** A condition of OGR's SQL compares a date or time that is NULL: no failure,
 * the row does not meet the condition.  GDAL 3.6: "Failed to parse date ''
 *  evaluating OGR WHERE expression", for each such row.  Lost: the join, which
 *  ends with that text as an error. */
#define OJ_TEXT_NULL_DATE "Failed to parse date '' evaluating"

/** std::bad_alloc in GEOS 3.11 and libspatialindex 1.9.  Lost: OJ_ERR_NOMEM,
 * for which a pair that is undecided or an internal error is reported. */
#define OJ_TEXT_NO_MEMORY "bad_alloc"

/** The bulk loader's files cannot be made in the current folder.
 *  libspatialindex 1.9: "Tools::TemporaryFile: ...".  Lost: that hint. */
#define OJ_TEXT_NO_LOADER_FILE "TemporaryFile"

/** 1 for the text of an error after which nothing is missing. */
static inline int oj_error_text_is_harmless(const char *text)
{
    return strstr(text, OJ_TEXT_NULL_DATE) != NULL;
}

#endif
