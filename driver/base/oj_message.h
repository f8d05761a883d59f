/** Messages of a running join: notices, warnings, errors.
 *
 *  The command prints them on stderr. While oj_message_open() is in effect,
 *  GDAL reports to a handler of this file: it prints each different warning
 *  once, and keeps errors without printing them, because the run ends with
 *  exactly one line of error.
 *
 *  In the library and the GDAL driver nothing is printed, and the handler of
 *  the host program stays installed: each thread that works on a join has a
 *  list, which collects the messages of that thread, ours and GDAL's.
 */
#ifndef OJ_MESSAGE_H
#define OJ_MESSAGE_H

#include "../../flatten/base/oj_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Installs the handler for all threads. If quiet is 1, notices are not
 *  printed. */
void oj_message_open(int quiet);

/** Restores GDAL's default handler. */
void oj_message_close(void);

enum
{
    /** maximum number of different texts; later ones are dropped */
    OJ_MOST_MESSAGES = 64
};

/** Warnings and notices from the threads of a join, each text once. They are
 *  kept until the thread that reads the join as a layer reports them. GDAL's
 *  errors are not kept here: they become part of the error of the call that
 *  failed. Zeroed memory is a valid empty list. */
struct oj_message_list
{
    int n, n_reported;
    struct
    {
        int is_warning;
        char text[512];
    } messages[OJ_MOST_MESSAGES];
};

/** Number of the GDAL errors since the last oj_message_take_errors(), and the
 * text of the first one. */
struct oj_gdal_errors
{
    long long n;
    char first[512];
};

/** The current list of a thread, and the sink that was current before it.
 *  Filled and used only by oj_message.c. */
struct oj_message_sink
{
    struct oj_message_list *list;
    struct oj_message_sink *before;
    struct oj_gdal_errors errors;
};

/** Replaces the paths `hidden` and `also_hidden` by `shown` in all later
 *  messages. Needed because an output is made in a temporary folder, whose path
 *  means nothing to the user. */
void oj_message_replace_path(const char *hidden, const char *also_hidden,
                             const char *shown);

/** Sends the messages of the calling thread to list until
 *  oj_message_end_redirection(); *sink is filled and must exist until then.
 *  Calls nest, because a join can be the input of another join. They must also
 *  nest properly with calls that push and pop GDAL's error handlers on this
 *  thread. */
void oj_message_redirect_to_list(struct oj_message_list *list,
                                 struct oj_message_sink *sink);
void oj_message_end_redirection(void);

/** Sends the messages of list that are not reported yet to GDAL: warnings by
 *  CPLError(), notices by CPLDebug(). Precondition: the calling thread has no
 *  list. */
void oj_message_list_report(struct oj_message_list *list);

/** Marks all messages as reported. */
void oj_message_list_mark_reported(struct oj_message_list *list);

/** Returns `one` if n is 1, else `many`. */
const char *oj_word_one_or_many(int64_t n, const char *one, const char *many);

/** Returns "1 row" or "12 rows", from CPLSPrintf(): overwritten after a few
 *  more calls on this thread. */
const char *oj_message_count_and_noun(int64_t n, const char *one,
                                      const char *many);

/** Appends to text, a buffer of size bytes. What does not fit is cut off. */
void oj_message_append(char *text, size_t size, const char *format, ...)
    OJ_PRINTF(3, 4);

/** Appends name to a comma-separated list in text, or "..." if it does not
 *  fit. */
void oj_message_append_name(char *text, size_t size, const char *name);

/** Prints a notice: a step that the user did not ask for, e.g. a reprojection.
 *  Not printed with -q. */
void oj_notice(const char *format, ...) OJ_PRINTF(1, 2);

/** Prints a line even with -q, e.g. a difference that -validate found. */
void oj_message_print(const char *format, ...) OJ_PRINTF(1, 2);

/** Prints a warning of a likely mistake of the user. */
void oj_warn(const char *format, ...) OJ_PRINTF(1, 2);

/** Like oj_warn(), but the command prints the warning now, even while errors of
 *  this thread are collected (struct oj_ogr_errors). */
void oj_warn_at_once(const char *format, ...) OJ_PRINTF(1, 2);

/** Replaces each control character in text by a space, and DEL and each byte
 *  that is not valid UTF-8 by '?'. Texts of drivers, databases and files may
 *  hold any bytes, and a host program may fail on them. */
void oj_message_make_one_line(char *text);

/** Returns the length in bytes of the reason at the start of a GEOS message.
 *  Advice, complete or cut off, may follow the reason. */
int oj_message_reason_length(const char *reason);

/** Prints the error as GDAL does: "ERROR 1: ..." */
void oj_report_error(const struct oj_error *error);

/** Appends the first GDAL error since the last oj_message_take_errors() to the
 *  message in err, if there is one, and forgets these errors. Returns
 *  status. */
oj_status oj_message_add_reason(oj_status status, struct oj_error *err);

/** Returns the number of GDAL errors since the last call, and resets it to 0.
 *  Counts those of the calling thread if it has a list, otherwise those of all
 *  threads. Writes the text of the first error to first, a buffer of size
 *  bytes. */
long long oj_message_take_errors(char *first, int size);

/** Discards the GDAL errors reported so far. */
void oj_message_forget_errors(void);

#ifdef __cplusplus
}
#endif
#endif
