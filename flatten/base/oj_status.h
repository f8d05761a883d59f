/** Status codes and error text.
 *
 *  Every function of the project that can fail returns an oj_status and takes
 *  a caller-owned struct oj_error * last (NULL: the caller does not want the
 *  text).  Outputs are written only when OJ_OK is returned.  Nothing below
 *  driver/ prints, exits or calls CPLError: errors travel as values, also from
 *  one thread to another.
 */
#ifndef OJ_STATUS_H
#define OJ_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OJ_MUST_USE __attribute__((warn_unused_result))
#define OJ_PRINTF(f, a) __attribute__((format(printf, f, a)))
/* Of what is looked up by name in a module: its entry, mostly. */
#define OJ_EXPORT __attribute__((visibility("default")))
#else
#define OJ_MUST_USE
#define OJ_PRINTF(f, a)
#define OJ_EXPORT
#endif

typedef enum oj_status
{
    OJ_OK = 0,
    OJ_ERR_ARG = 1,         /**< the caller asked for something meaningless */
    OJ_ERR_NOMEM = 2,       /**< an allocation failed */
    OJ_ERR_LIMIT = 3,       /**< a documented size limit was passed */
    OJ_ERR_DATA = 4,        /**< the data are broken: WKB, arrays, CRS */
    OJ_ERR_IO = 5,          /**< reading or writing failed */
    OJ_ERR_UNSUPPORTED = 6, /**< meaningful, but not built or not yet made */
    OJ_ERR_NO_DEVICE = 7,   /**< the backend has no device here */
    OJ_ERR_CANCELLED = 8,   /**< the caller's cancel flag was raised */
    OJ_ERR_INTERNAL = 9,    /**< a bug of ours */

    /** A batch has more pairs than struct oj_options.max_batch_pairs: ask for
     *  fewer rows at once. */
    OJ_ERR_TOO_MANY_PAIRS = 10
} oj_status;

/** What went wrong, in one line a user can act on.  Owned by the caller. */
struct oj_error
{
    oj_status status;
    char message[1024]; /**< UTF-8, zero-terminated, no newline */
};

/** Writes the text and returns status, so that failing is one statement:
 *  return oj_fail(err, OJ_ERR_ARG, "..."). err may be NULL. */
oj_status oj_fail(struct oj_error *err, oj_status status, const char *format,
                  ...) OJ_PRINTF(3, 4);

/** OJ_ERR_CANCELLED, in the words that users see. */
oj_status oj_fail_cancelled(struct oj_error *err);

/** OJ_ERR_CANCELLED when a caller's flag is not 0, else OJ_OK; cancel NULL:
 *  there is none.  Another thread or a signal handler may raise it at any
 *  time. */
OJ_MUST_USE oj_status oj_check_cancel(const int *cancel, struct oj_error *err);

/** Short English name of a status: "out of memory". Never NULL. */
const char *oj_status_name(oj_status status);

/** Returns from the enclosing function when call does not give OJ_OK. */
#define OJ_TRY(call)                                                           \
    do                                                                         \
    {                                                                          \
        oj_status oj_try_status_ = (call);                                     \
        if (oj_try_status_ != OJ_OK)                                           \
            return oj_try_status_;                                             \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
