/** What is said while a join is at work: notices, warnings, errors.
 *
 *  The command prints them on stderr.  GDAL reports through a handler of this
 *  file as long as it is installed: warnings pass once each; errors are kept,
 *  not printed, because the run ends with exactly one line that says what went
 *  wrong.
 *
 *  Inside another program nothing is printed, and its handler for all threads
 *  stays: each thread that works on a join names a list, which gets all that is
 *  said there, by us or by GDAL.
 */
#ifndef OJ_MESSAGE_H
#define OJ_MESSAGE_H

#include "../../flatten/base/oj_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Installs the handler for all threads. quiet: notices are not printed. */
void oj_message_open(int quiet);

/** Puts GDAL's own handler back. */
void oj_message_close(void);

enum
{
    OJ_MOST_MESSAGES = 64 /**< different texts; what comes later is dropped */
};

/** Warnings and notices of the threads of a join, each text once, kept until
 *  the thread that reads the join as a layer can report them.  Errors of GDAL
 *  are not kept: they are part of what fails by them.  Zeroed memory is a valid
 *  empty one. */
struct oj_message_list
{
    int n, n_reported;
    struct
    {
        int is_warning;
        char text[512];
    } messages[OJ_MOST_MESSAGES];
};

/** Errors of GDAL since they were last asked for. */
struct oj_heard_errors
{
    long long n;
    char first[512];
};

/** Where what is said on a thread goes. Of oj_message.c. */
struct oj_message_sink
{
    struct oj_message_list *list;
    struct oj_message_sink *before;
    struct oj_heard_errors errors;
};

/** From now on messages, whoever makes them, say shown where they hold one of
 *  the two that are hidden: the paths of the folder in which an output is made
 *  mean nothing to a reader. */
void oj_message_show_as(const char *hidden, const char *also_hidden,
                        const char *shown);

/** From now on what is said on the calling thread goes to list, until
 *  oj_message_end_list(); sink is filled, and must last as long.  Pushes a
 *  handler of GDAL's for the thread, or pops it: calls nest, also with other
 *  handlers, like brackets (a join can be the input of another one). */
void oj_message_use_list(struct oj_message_list *list,
                         struct oj_message_sink *sink);
void oj_message_end_list(void);

/** Reports what was not reported yet, warnings by CPLError(), notices by
 *  CPLDebug(). Not while the calling thread has a list. */
void oj_message_list_report(struct oj_message_list *list);

/** What was not reported yet will not be. */
void oj_message_list_drop(struct oj_message_list *list);

/** The word for that number of things: one for 1, else many. */
const char *oj_word_for(int64_t n, const char *one, const char *many);

/** "1 row", "12 rows", for one message: kept for a few calls on the calling
 *  thread (CPLSPrintf()). */
const char *oj_counted(int64_t n, const char *one, const char *many);

/** Adds to a text in size bytes, as far as there is room. */
void oj_message_append(char *text, size_t size, const char *format, ...)
    OJ_PRINTF(3, 4);

/** Adds name to a list in a text, or "..." when there is no room. */
void oj_message_append_name(char *text, size_t size, const char *name);

/** A line that explains what was done, e.g. a reprojection. */
void oj_notice(const char *format, ...) OJ_PRINTF(1, 2);

/** A line that is printed in any case, e.g. a difference that was looked for.
 */
void oj_say(const char *format, ...) OJ_PRINTF(1, 2);

/** A line on something the user may not have wanted. */
void oj_warn(const char *format, ...) OJ_PRINTF(1, 2);

/** Makes text, whatever a driver, a database or a file put into it, one line of
 *  valid UTF-8, of the same length: hosts may fail over anything else. */
void oj_message_tidy(char *text);

/** Length of a reason of GEOS's without the advice that follows many of them,
 *  which room for the rest may have cut. */
int oj_message_reason_length(const char *reason);

/** "ERROR 1: ..." */
void oj_report_error(const struct oj_error *error);

/** Adds to the text of a failure what GDAL reported on its own threads since
 *  the last call, if anything, and returns status. */
oj_status oj_message_add_reason(oj_status status, struct oj_error *err);

/** Errors that GDAL has reported since the last call, from any thread (with a
 *  list: on this one), and the first of them, cut to size bytes. */
long long oj_message_errors(char *first, int size);

/** What GDAL has reported so far is of no account to what follows. */
void oj_message_forget_errors(void);

#ifdef __cplusplus
}
#endif
#endif
