#include "oj_message.h"

#include "../../flatten/base/oj_third_party_error_patterns.h"
#include "../../flatten/base/oj_utf8.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum
{
    MAX_TEXT = 512,
    MAX_PATH = 4096
};

static struct
{
    pthread_mutex_t mutex;
    int quiet;
    int is_open;
    struct oj_gdal_errors errors;
    struct oj_message_list warnings; /* warnings printed so far */
    /* texts replaced in messages, see oj_message_replace_path(); "" if nothing
     * is replaced */
    char hidden[2][MAX_PATH], shown[MAX_PATH];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The innermost list of the calling thread (lists nest), or NULL. */
static _Thread_local struct oj_message_sink *sink_of_thread;

/* Appends text to list and returns 1; returns 0 if the list has it already or
 * is full. Precondition: the mutex is locked. */
static int append_message_unless_listed(struct oj_message_list *list,
                                        int is_warning, const char *text)
{
    char *to;
    if (list->n == OJ_MOST_MESSAGES)
        return 0;
    to = list->messages[list->n].text;
    CPLStrlcpy(to, text, sizeof list->messages[0].text);
    for (int i = 0; i < list->n; i++)
    {
        if (strcmp(list->messages[i].text, to) == 0)
            return 0;
    }
    list->messages[list->n++].is_warning = is_warning;
    return 1;
}

/* Returns the first hidden path in text and its length *n, or NULL. */
static const char *find_hidden_text(const char *text, size_t *n)
{
    const char *first = NULL;
    for (int i = 0; i < 2; i++)
    {
        const char *found =
            state.hidden[i][0] != '\0' ? strstr(text, state.hidden[i]) : NULL;
        if (found == NULL || (first != NULL && found >= first))
            continue;
        first = found;
        *n = strlen(state.hidden[i]);
    }
    return first;
}

/* Copies text with the hidden paths replaced, cut to size bytes. */
static void replace_hidden_text(const char *text, char *out, size_t size)
{
    size_t n = 0, used = 0;
    const char *found;
    while (used < size && (found = find_hidden_text(text, &n)) != NULL)
    {
        used += (size_t)snprintf(out + used, size - used, "%.*s%s",
                                 (int)(found - text), text, state.shown);
        text = found + n;
    }
    if (used < size)
        snprintf(out + used, size - used, "%s", text);
}

void oj_message_replace_path(const char *hidden, const char *also_hidden,
                             const char *shown)
{
    pthread_mutex_lock(&state.mutex);
    snprintf(state.hidden[0], sizeof state.hidden[0], "%s", hidden);
    snprintf(state.hidden[1], sizeof state.hidden[1], "%s", also_hidden);
    snprintf(state.shown, sizeof state.shown, "%s", shown);
    pthread_mutex_unlock(&state.mutex);
}

static void count_error_of_gdal(struct oj_gdal_errors *errors, const char *text)
{
    if (!oj_error_text_is_harmless(text) && errors->n++ == 0)
        snprintf(errors->first, sizeof errors->first, "%s", text);
}

/* GDAL's error handler for all threads: prints each warning once, and counts
 * errors without printing them. */
static void CPL_STDCALL on_gdal_message(CPLErr level, CPLErrorNum number,
                                        const char *text)
{
    char line[2 * MAX_TEXT];
    if (level == CE_Fatal || level == CE_Debug || level == CE_None)
    {
        CPLDefaultErrorHandler(level, number, text);
        return;
    }
    pthread_mutex_lock(&state.mutex);
    if (level == CE_Failure)
        count_error_of_gdal(&state.errors, text);
    else if (append_message_unless_listed(&state.warnings, 1, text))
    {
        replace_hidden_text(text, line, sizeof line);
        CPLDefaultErrorHandler(level, number, line);
    }
    pthread_mutex_unlock(&state.mutex);
}

void oj_message_open(int quiet)
{
    state.quiet = quiet;
    state.is_open = 1;
    state.errors.n = 0;
    state.warnings.n = 0;
    state.hidden[0][0] = state.hidden[1][0] = '\0';
    CPLSetErrorHandler(on_gdal_message);
}

void oj_message_close(void)
{
    state.is_open = 0;
    CPLSetErrorHandler(CPLDefaultErrorHandler);
}

/* ---- message lists ------------------------------------------------------- */

static void store_message_as_one_line(struct oj_message_list *list,
                                      int is_warning, const char *text)
{
    char line[sizeof list->messages[0].text];
    CPLStrlcpy(line, text, sizeof line);
    oj_message_make_one_line(line);
    pthread_mutex_lock(&state.mutex);
    (void)append_message_unless_listed(list, is_warning, line);
    pthread_mutex_unlock(&state.mutex);
}

static void CPL_STDCALL on_message_of_thread(CPLErr level, CPLErrorNum number,
                                             const char *text)
{
    struct oj_message_sink *sink = sink_of_thread;
    if (level == CE_Fatal || sink == NULL)
        CPLDefaultErrorHandler(level, number, text);
    else if (level == CE_Failure)
        count_error_of_gdal(&sink->errors, text);
    else if (level == CE_Warning)
        store_message_as_one_line(sink->list, 1, text);
}

void oj_message_redirect_to_list(struct oj_message_list *list,
                                 struct oj_message_sink *sink)
{
    sink->list = list;
    sink->before = sink_of_thread;
    sink->errors.n = 0;
    sink_of_thread = sink;
    CPLPushErrorHandler(on_message_of_thread);
    CPLSetCurrentErrorHandlerCatchDebug(0);
}

void oj_message_end_redirection(void)
{
    CPLPopErrorHandler();
    sink_of_thread = sink_of_thread->before;
}

/* The lock is released while a text is reported, because the host's handler may
 * be slow or read further rows. Stored texts do not move. */
void oj_message_list_report(struct oj_message_list *list)
{
    for (;;)
    {
        int i = -1;
        pthread_mutex_lock(&state.mutex);
        if (list->n_reported < list->n)
            i = list->n_reported++;
        pthread_mutex_unlock(&state.mutex);
        if (i < 0)
            return;
        if (list->messages[i].is_warning)
            CPLError(CE_Warning, CPLE_AppDefined, "%s", list->messages[i].text);
        else
            CPLDebug("OGRJOIN", "%s", list->messages[i].text);
    }
}

void oj_message_list_mark_reported(struct oj_message_list *list)
{
    pthread_mutex_lock(&state.mutex);
    list->n_reported = list->n;
    pthread_mutex_unlock(&state.mutex);
}

static void print_or_store_notice(const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    if (sink_of_thread != NULL)
        store_message_as_one_line(sink_of_thread->list, 0, text);
    else
        fprintf(stderr, "%s\n", text);
}

const char *oj_word_one_or_many(int64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

const char *oj_message_count_and_noun(int64_t n, const char *one,
                                      const char *many)
{
    return CPLSPrintf("%lld %s", (long long)n,
                      oj_word_one_or_many(n, one, many));
}

void oj_message_append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

void oj_message_append_name(char *text, size_t size, const char *name)
{
    size_t used = strlen(text);
    if (used + strlen(name) + 8 < size)
        oj_message_append(text, size, "%s%s", used > 0 ? ", " : "", name);
    else if (used < 4 || strcmp(text + used - 3, "...") != 0)
        oj_message_append(text, size, ", ...");
}

void oj_notice(const char *format, ...)
{
    va_list args;
    if (state.quiet && sink_of_thread == NULL)
        return;
    va_start(args, format);
    print_or_store_notice(format, args);
    va_end(args);
}

void oj_message_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_or_store_notice(format, args);
    va_end(args);
}

void oj_warn(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    CPLError(CE_Warning, CPLE_AppDefined, "%s", text);
}

void oj_warn_at_once(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (state.is_open && sink_of_thread == NULL)
        on_gdal_message(CE_Warning, CPLE_AppDefined, text);
    else
        oj_warn("%s", text);
}

void oj_message_make_one_line(char *text)
{
    while (*text != '\0')
    {
        uint32_t code;
        int n = oj_utf8_decode((const unsigned char *)text,
                               (int64_t)strnlen(text, 4), &code);
        if (n == 0 || *text == '\x7F')
            *text = '?';
        else if ((unsigned char)*text < 0x20)
            *text = ' ';
        text += n > 0 ? n : 1;
    }
}

int oj_message_reason_length(const char *reason)
{
    const char *advice = strstr(reason, OJ_TEXT_ADVICE);
    return (int)(advice != NULL ? (size_t)(advice - reason) : strlen(reason));
}

void oj_report_error(const struct oj_error *error)
{
    struct oj_error line = *error;
    replace_hidden_text(error->message, line.message, sizeof line.message);
    oj_message_make_one_line(line.message);
    oj_message_close();
    CPLError(CE_Failure, CPLE_AppDefined, "%s", line.message);
}

oj_status oj_message_add_reason(oj_status status, struct oj_error *err)
{
    struct oj_error bare;
    char text[MAX_TEXT];
    if (oj_message_take_errors(text, (int)sizeof text) == 0 || err == NULL ||
        status == OJ_OK || status == OJ_ERR_CANCELLED ||
        strstr(err->message, text) != NULL)
        return status;
    bare = *err;
    return oj_fail(err, status, "%.480s (GDAL: %s)", bare.message, text);
}

long long oj_message_take_errors(char *first, int size)
{
    struct oj_gdal_errors *errors =
        sink_of_thread != NULL ? &sink_of_thread->errors : &state.errors;
    long long n;
    pthread_mutex_lock(&state.mutex);
    n = errors->n;
    snprintf(first, (size_t)size, "%s", n > 0 ? errors->first : "");
    errors->n = 0;
    pthread_mutex_unlock(&state.mutex);
    return n;
}

void oj_message_forget_errors(void)
{
    char ignored[MAX_TEXT];
    (void)oj_message_take_errors(ignored, (int)sizeof ignored);
}
