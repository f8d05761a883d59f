/** Status codes and error messages. Every function of the project that can fail
 *  returns an oj_status and takes a caller-owned struct oj_error * last (NULL:
 *  no message wanted). Outputs are written only if it returns OJ_OK. Nothing
 *  below driver/ prints, exits or calls CPLError: errors travel as values, also
 *  between threads. */
#ifndef OJ_STATUS_H
#define OJ_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OJ_MUST_USE __attribute__((warn_unused_result))
#define OJ_PRINTF(f, a) __attribute__((format(printf, f, a)))
/* Marks functions that a module exports, and that are looked up by name. */
#define OJ_EXPORT __attribute__((visibility("default")))
#else
#define OJ_MUST_USE
#define OJ_PRINTF(f, a)
#define OJ_EXPORT
#endif

typedef enum oj_status
{
    OJ_OK = 0,
    OJ_ERR_ARG = 1,   /**< an argument is invalid */
    OJ_ERR_NOMEM = 2, /**< an allocation failed */
    OJ_ERR_LIMIT = 3, /**< a documented size limit was exceeded */
    OJ_ERR_DATA = 4,  /**< invalid data: WKB, arrays, CRS */
    OJ_ERR_IO = 5,    /**< reading or writing failed */
    /** The request is valid but not supported, or not by this build. */
    OJ_ERR_UNSUPPORTED = 6,
    OJ_ERR_NO_DEVICE = 7, /**< no usable GPU for the backend */
    OJ_ERR_CANCELLED = 8, /**< the caller's cancel flag was set */
    OJ_ERR_INTERNAL = 9,  /**< a bug of ogrjoin */

    /** The batch has more pairs than oj_options.max_batch_pairs: ask for fewer
     *  rows at a time. */
    OJ_ERR_TOO_MANY_PAIRS = 10
} oj_status;

/** An error message in one line, on which a user can act. Owned by the
 *  caller. */
struct oj_error
{
    oj_status status;
    char message[1024]; /**< UTF-8, zero-terminated, no newline */
};

/** Writes the message and returns status, so that a function can end with:
 *  return oj_fail(err, OJ_ERR_ARG, "..."). err may be NULL. */
oj_status oj_fail(struct oj_error *err, oj_status status, const char *format,
                  ...) OJ_PRINTF(3, 4);

/** Returns OJ_ERR_INTERNAL. The message begins with "internal error: ", and
 * ends with the request to report it. */
oj_status oj_fail_internal(struct oj_error *err, const char *format, ...)
    OJ_PRINTF(2, 3);

/** Returns OJ_ERR_CANCELLED with the message that users see. */
oj_status oj_fail_cancelled(struct oj_error *err);

/** Returns OJ_ERR_CANCELLED if *cancel is not 0, else OJ_OK. cancel may be
 *  NULL; another thread or a signal handler may set it at any time. */
OJ_MUST_USE oj_status oj_check_cancel(const int *cancel, struct oj_error *err);

/** Returns a short English name of a status, such as "out of memory". Never
 *  NULL. */
const char *oj_status_name(oj_status status);

/** Evaluates call; if the result is not OJ_OK, returns it from the enclosing
 *  function. */
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
