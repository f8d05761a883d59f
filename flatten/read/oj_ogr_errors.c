#include "oj_ogr_errors.h"

#include "../base/oj_third_party_error_patterns.h"

#include <cpl_error.h>

#include <stdio.h>
#include <string.h>

static int is_utf8_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Copies a text to `to` [size] as one line. Drivers quote values in full and
 * state the problem at the end, so the middle of a text that is too long is
 * left out. UTF-8 sequences are not split. */
static void copy_shortened_line(char *to, size_t size, const char *from)
{
    static const char gap[] = " ... ";
    size_t n = strlen(from), head = n, tail = n;
    if (n + 1 > size)
    {
        head = size / 2;
        tail = n - (size - head - sizeof gap);
        while (head > 0 && is_utf8_continuation(from[head]))
            head--;
        while (tail < n && is_utf8_continuation(from[tail]))
            tail++;
    }
    snprintf(to, size, "%.*s%s%s", (int)head, from, tail < n ? gap : "",
             from + tail);
    for (char *c = to; *c != '\0'; c++)
    {
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    }
    for (n = strlen(to); n > 0 && to[n - 1] == ' ';)
        to[--n] = '\0';
}

static void CPL_STDCALL collect_error(CPLErr level, CPLErrorNum number,
                                      const char *text)
{
    struct oj_ogr_errors *errors = CPLGetErrorHandlerUserData();
    if (level == CE_Fatal)
    {
        CPLDefaultErrorHandler(level, number, text);
    }
    else if (level == CE_Failure)
    {
        if (!oj_error_text_is_harmless(text) && errors->n_failures++ == 0)
            copy_shortened_line(errors->failure, sizeof errors->failure, text);
    }
    else if (level == CE_Warning)
    {
        if (errors->n_warnings++ == 0)
            copy_shortened_line(errors->warning, sizeof errors->warning, text);
    }
}

void oj_ogr_errors_begin(struct oj_ogr_errors *errors)
{
    oj_ogr_errors_forget(errors);
    CPLPushErrorHandlerEx(collect_error, errors);
    CPLSetCurrentErrorHandlerCatchDebug(0);
}

void oj_ogr_errors_end(struct oj_ogr_errors *errors)
{
    (void)errors;
    CPLPopErrorHandler();
    oj_ogr_errors_clear_harmless();
}

void oj_ogr_errors_discard(struct oj_ogr_errors *errors)
{
    oj_ogr_errors_forget(errors);
    CPLErrorReset();
}

void oj_ogr_errors_clear_harmless(void)
{
    if (oj_error_text_is_harmless(CPLGetLastErrorMsg()))
        CPLErrorReset();
}

const char *oj_ogr_errors_text(const struct oj_ogr_errors *errors)
{
    return errors->n_failures > 0 ? errors->failure
                                  : "the driver gives no reason";
}
