#include "oj_status.h"

#include <stdarg.h>
#include <stdio.h>

oj_status oj_fail(struct oj_error *err, oj_status status, const char *format,
                  ...)
{
    if (err != NULL)
    {
        va_list args;
        va_start(args, format);
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
    }
    return status;
}

oj_status oj_fail_internal(struct oj_error *err, const char *format, ...)
{
    char what[800];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return oj_fail(err, OJ_ERR_INTERNAL,
                   "internal error: %s; this is a bug of ogrjoin: report it "
                   "with the command or the calls that led to it",
                   what);
}

oj_status oj_fail_cancelled(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
}

oj_status oj_check_cancel(const int *cancel, struct oj_error *err)
{
    if (cancel == NULL || __atomic_load_n(cancel, __ATOMIC_RELAXED) == 0)
        return OJ_OK;
    return oj_fail_cancelled(err);
}

const char *oj_status_name(oj_status status)
{
    switch (status)
    {
        case OJ_OK:
            return "ok";
        case OJ_ERR_ARG:
            return "wrong argument";
        case OJ_ERR_NOMEM:
            return "out of memory";
        case OJ_ERR_LIMIT:
            return "size limit passed";
        case OJ_ERR_DATA:
            return "broken data";
        case OJ_ERR_IO:
            return "input or output failed";
        case OJ_ERR_UNSUPPORTED:
            return "not supported";
        case OJ_ERR_NO_DEVICE:
            return "no device";
        case OJ_ERR_CANCELLED:
            return "cancelled";
        case OJ_ERR_INTERNAL:
            return "internal error";
        case OJ_ERR_TOO_MANY_PAIRS:
            return "too many pairs";
    }
    return "unknown status";
}
