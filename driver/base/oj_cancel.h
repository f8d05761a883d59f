/** Stopping: Ctrl-C in the command, or a layer that is closed or read again
 *  from the start while its join still runs.
 *
 *  In the command SIGINT, SIGTERM, SIGHUP and SIGXCPU (ulimit -t) are blocked
 *  in every thread but one that waits for them.  The first raises a flag that
 *  all stages read, and interrupts the statement that SQLite is at in an output
 *  that is changed in a transaction.  SIGPIPE and SIGXFSZ (ulimit -f) come to
 *  the thread whose write fails; their handler sends SIGTERM to the process.
 *  A signal that is ignored when the process starts stays so: its write fails.
 *  If the process is still there half a second later (GDAL can be busy for
 *  minutes building an index), or a second signal comes, the watching thread
 *  removes the temporary output itself and ends the process with exit code 130.
 *
 *  What is left then, by kind of output:
 *    new file      nothing: it was in a temporary folder until it was complete,
 *                  and the flag is looked at once more before it is moved
 *    -append, -update, -in_place into a GeoPackage or SQLite file
 *                  the file as it was: the transaction is undone, or, where
 * that takes longer than the half second, by the next program that opens the
 * file to write, after SQLite's journal beside it a database    what its server
 * makes of a connection that ends within a transaction: nothing
 *
 *  Inside another program nobody watches signals.  There each join has a flag
 *  of its own, which its thread takes by oj_cancel_use().
 */
#ifndef OJ_CANCEL_H
#define OJ_CANCEL_H

#include "../../flatten/base/oj_status.h"

/** Starts watching; before any other thread is started. */
OJ_MUST_USE oj_status oj_cancel_watch(struct oj_error *err);

/** From now on the first SIGINT, SIGTERM or SIGHUP ends the input and nothing
 *  else: what has been read is joined and written, for as long as it takes.  A
 *  second one ends the process as the first one does otherwise. */
void oj_cancel_end_input_first(void);

/** 1 once such a signal has come. */
int oj_cancel_input_has_ended(void);

/** From now on the flag of the calling thread is this one, which outlives all
 *  that was told of it and is written with __atomic_store_n(); NULL: that of
 *  the process.  Returns what it was before, to be put back (a join can be the
 *  input of another one).  Threads that are started later do not inherit it:
 *  what they run is given the flag when it is set up. */
const int *oj_cancel_use(const int *flag);

/** The flag of the calling thread: nonzero once it is to stop. Never NULL. */
const int *oj_cancel_flag(void);

/** 1 once the calling thread is to stop. */
int oj_is_cancelled(void);

/** What an interrupted command says: which limit or reader it was. */
const char *oj_cancel_message(void);

/** OJ_ERR_CANCELLED with the words that users see once the calling thread is to
 *  stop, else OJ_OK. */
OJ_MUST_USE oj_status oj_cancel_check(struct oj_error *err);

/** From now on a signal calls interrupt(user), on another thread, at once; one
 *  at a time. NULL: nobody; when it returns, nothing calls the one before. */
void oj_cancel_interrupt_by(void (*interrupt)(void *), void *user);

/** An abrupt end removes this folder with all that is in it: its descriptor,
 *  that of the folder it lies in, and its name there, which is copied. Both
 * stay open until it is dropped. A few at a time. */
void oj_cancel_add_temporary(int parent, const char *name, int folder);
void oj_cancel_drop_temporary(int folder);

/** From here on an abrupt end waits: the output is being moved into place,
 *  which takes no time. */
void oj_cancel_hold(void);
void oj_cancel_release(void);

#endif
