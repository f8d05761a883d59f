#include "oj_ogr_errors.h"

#include <cpl_error.h>

#include <stdio.h>

/* Copies at most size - 1 bytes and keeps it to one line. A UTF-8 sequence is
 * never cut in the middle. */
static void copy_line(char *to, size_t size, const char *from)
{
    size_t n = 0;
    while (from[n] != '\0' && n + 1 < size)
    {
        to[n] = from[n] == '\n' || from[n] == '\r' ? ' ' : from[n];
        n++;
    }
    if (from[n] != '\0')
    {
        while (n > 0 && ((unsigned char)from[n] & 0xC0) == 0x80)
            n--;
    }
    while (n > 0 && to[n - 1] == ' ')
        n--;
    to[n] = '\0';
}

static void CPL_STDCALL collect(CPLErr level, CPLErrorNum number,
                                const char *text)
{
    struct oj_ogr_errors *errors = CPLGetErrorHandlerUserData();
    if (level == CE_Fatal)
    {
        CPLDefaultErrorHandler(level, number, text);
    }
    else if (level == CE_Failure)
    {
        if (errors->n_failures++ == 0)
            copy_line(errors->failure, sizeof errors->failure, text);
    }
    else if (level == CE_Warning)
    {
        if (errors->n_warnings++ == 0)
            copy_line(errors->warning, sizeof errors->warning, text);
    }
}

void oj_ogr_errors_begin(struct oj_ogr_errors *errors)
{
    oj_ogr_errors_forget(errors);
    CPLPushErrorHandlerEx(collect, errors);
    CPLSetCurrentErrorHandlerCatchDebug(0);
}

void oj_ogr_errors_end(struct oj_ogr_errors *errors)
{
    (void)errors;
    CPLPopErrorHandler();
}

const char *oj_ogr_errors_text(const struct oj_ogr_errors *errors)
{
    return errors->n_failures > 0 ? errors->failure
                                  : "the driver gives no reason";
}
