/** Work on a background thread whose results are asked for one by one.
 *
 *   background thread              calling thread
 *   work() -- give(item) ------->  next(): item
 *             waits                  ... uses it ...
 *             goes on <----------  next(): lets it go, waits for another
 *   returns ------------------->   next(): NULL, or the error
 *
 *  One item at a time is on its way, and it belongs to the background thread,
 *  which stands still while it is used.  Knows nothing of what items are.
 */
#ifndef OJ_LAZY_H
#define OJ_LAZY_H

#include "../../flatten/base/oj_status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct oj_lazy;

/** Runs on the background thread and calls oj_lazy_give() for each item. */
typedef oj_status oj_lazy_work(void *user, struct oj_lazy *lazy,
                               struct oj_error *err);

/** user outlives *out. */
OJ_MUST_USE oj_status oj_lazy_start(oj_lazy_work *work, void *user,
                                    struct oj_lazy **out, struct oj_error *err);

/** Within work(): hands item over and returns when it has been let go.
 *  OJ_ERR_CANCELLED when the work is being stopped. */
OJ_MUST_USE oj_status oj_lazy_give(struct oj_lazy *lazy, const void *item,
                                   struct oj_error *err);

/** Lets the item before go and waits for the next one; NULL after the last.
 *  An error of the work is returned in its place in the order, and again if
 *  asked again.  OJ_ERR_CANCELLED when the calling thread is to stop (see
 *  oj_cancel.h); the work goes on then. */
OJ_MUST_USE oj_status oj_lazy_next(struct oj_lazy *lazy, const void **item,
                                   struct oj_error *err);

/** Ends the work and frees all: returns when the thread has ended, which the
 *  caller hurries by a flag of the work's own. Accepts NULL. */
void oj_lazy_stop(struct oj_lazy *lazy);

#ifdef __cplusplus
}
#endif
#endif
