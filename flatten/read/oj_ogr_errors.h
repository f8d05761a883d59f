/** Collects the messages that OGR sends to CPLError(): to quote them in our own
 *  messages, and to detect failures that a driver reports in no other way. */
#ifndef OJ_OGR_ERRORS_H
#define OJ_OGR_ERRORS_H

#include <stdint.h>

struct oj_ogr_errors
{
    int64_t n_failures; /**< failures since the last begin or forget */
    int64_t n_warnings; /**< all warnings so far; never reset */
    char failure[512];  /**< the first failure, one line; "" if none */
    char warning[256];  /**< the first warning, or "" */
};

/** Collects errors and warnings of this thread until end; harmless errors are
 *  dropped. Debug messages are passed on. Calls nest. */
void oj_ogr_errors_begin(struct oj_ogr_errors *errors);
void oj_ogr_errors_end(struct oj_ogr_errors *errors);

/** Discards the failures collected so far; warnings stay. */
static inline void oj_ogr_errors_forget(struct oj_ogr_errors *errors)
{
    errors->n_failures = 0;
    errors->failure[0] = '\0';
}

/** Discards the failures collected so far, and GDAL's last error on this
 * thread, because language bindings would turn it into an exception. For
 * failures that the caller handles by other means. */
void oj_ogr_errors_discard(struct oj_ogr_errors *errors);

/** Clears GDAL's last error on this thread if it is harmless, because language
 *  bindings would turn it into an exception. oj_ogr_errors_end() does this,
 *  too. */
void oj_ogr_errors_clear_harmless(void);

/** Returns the first failure, or a text which states that there is none. */
const char *oj_ogr_errors_text(const struct oj_ogr_errors *errors);

#endif
