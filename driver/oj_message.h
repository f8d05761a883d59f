/** What the command says while it works: notices, warnings, errors, all on
 *  stderr.
 *
 *  GDAL reports through a handler of this file as long as it is installed:
 *  warnings pass once each; errors are kept, not printed, because the run ends
 *  with exactly one line that says what went wrong.
 */
#ifndef OJ_MESSAGE_H
#define OJ_MESSAGE_H

#include "../flatten/oj_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Installs the handler for all threads. quiet: notices are not printed. */
void oj_message_open(int quiet);

/** Puts GDAL's own handler back. */
void oj_message_close(void);

/** A line that explains what was done, e.g. a reprojection. */
void oj_notice(const char *format, ...) OJ_PRINTF(1, 2);

/** A line that is printed in any case, e.g. a difference that was looked for.
 */
void oj_say(const char *format, ...) OJ_PRINTF(1, 2);

/** A line on something the user may not have wanted. */
void oj_warn(const char *format, ...) OJ_PRINTF(1, 2);

/** "ERROR 1: ..." */
void oj_report_error(const struct oj_error *error);

/** Has hook(user) called with the first error that GDAL reports on the calling
 *  thread, at once; NULL ends that. */
void oj_message_on_error(void (*hook)(void *), void *user);

/** Adds to the text of a failure what GDAL reported on its own threads since
 *  the last call, if anything, and returns status. */
oj_status oj_message_add_reason(oj_status status, struct oj_error *err);

/** Errors that GDAL has reported since the last call, from any thread, and the
 *  first of them, cut to size bytes. */
long long oj_message_errors(char *first, int size);

#ifdef __cplusplus
}
#endif
#endif
