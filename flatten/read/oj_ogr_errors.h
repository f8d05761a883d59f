/** Catches what OGR says through CPLError, so that it becomes part of our own
 *  error text and a failure that a driver reports in no other way is seen.
 */
#ifndef OJ_OGR_ERRORS_H
#define OJ_OGR_ERRORS_H

#include <stdint.h>

struct oj_ogr_errors
{
    int64_t n_failures; /**< since the last begin or forget */
    int64_t n_warnings; /**< in all */
    char failure[512];  /**< the first failure, one line; "" if none */
    char warning[256];  /**< the first warning of all */
};

/** Catches errors and warnings of this thread until end; harmless errors are
 *  dropped. Debug messages go where they went before. Pairs nest like brackets.
 */
void oj_ogr_errors_begin(struct oj_ogr_errors *errors);
void oj_ogr_errors_end(struct oj_ogr_errors *errors);

/** Forgets failures; warnings stay. */
static inline void oj_ogr_errors_forget(struct oj_ogr_errors *errors)
{
    errors->n_failures = 0;
    errors->failure[0] = '\0';
}

/** Clears GDAL's last error on this thread where it is a harmless one: bindings
 *  make an exception of whatever is found there. end() has done so. */
void oj_ogr_errors_clear_harmless(void);

/** The failure, or a text that says that there is none. */
const char *oj_ogr_errors_text(const struct oj_ogr_errors *errors);

#endif
