/** Ctrl-C: stop, clean up, and be gone within a second.
 *
 *  SIGINT, SIGTERM and SIGHUP are blocked in every thread but one that waits
 *  for them.  The first raises a flag that all stages read; if the process is
 *  still there a moment later (GDAL can be busy for minutes building an index),
 *  or a second signal comes, the watching thread removes the temporary output
 *  itself and ends the process with exit code 130.
 */
#ifndef OJ_CANCEL_H
#define OJ_CANCEL_H

#include "../flatten/oj_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Starts watching; before any other thread is started. */
OJ_MUST_USE oj_status oj_cancel_watch(struct oj_error *err);

/** The flag: nonzero once the user wants to stop. Never NULL. */
const int *oj_cancel_flag(void);

/** 1 once the user wants to stop. */
int oj_is_cancelled(void);

/** Names a folder that an abrupt end removes; copied. A few at a time. */
void oj_cancel_add_temporary(const char *folder);
void oj_cancel_drop_temporary(const char *folder);

/** From here on an abrupt end waits: the output is being moved into place,
 *  which takes no time. */
void oj_cancel_hold(void);
void oj_cancel_release(void);

#ifdef __cplusplus
}
#endif
#endif
