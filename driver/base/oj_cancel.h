/** Cancellation: by Ctrl-C in the command, or because a layer is closed or
 *  rewound while its join still runs.
 *
 *  The command blocks SIGINT, SIGTERM, SIGHUP and SIGXCPU (ulimit -t) in every
 *  thread but one, which waits for them. The first signal raises a flag that
 *  all stages poll, and interrupts the current SQLite statement if the output
 *  is changed in a transaction. SIGPIPE and SIGXFSZ (ulimit -f) are delivered
 *  to the thread whose write fails; their handler sends SIGTERM to the process.
 *  A signal that is ignored when the process starts stays ignored; if SIGPIPE
 *  or SIGXFSZ is ignored, the write fails with an error. If the process still
 *  runs half a second after the first signal (GDAL can be busy for minutes
 *  building an index), or a second signal arrives, the waiting thread removes
 *  the temporary output itself and ends the process with exit code 130.
 *
 *  State of the output afterwards:
 *  - New file: nothing remains. The file was in a temporary folder until it was
 *    complete, and the flag is polled once more before the move.
 *  - -append, -update, -in_place into a GeoPackage or SQLite file: unchanged.
 *    The transaction is rolled back; if that takes longer than the half second,
 *    the next program that opens the file for writing rolls it back from
 *    SQLite's journal.
 *  - Database server: unchanged, if the server rolls back when a connection
 *    ends within a transaction.
 *
 *  In the library and the GDAL driver no thread waits for signals. Each join
 *  has its own flag, which its threads select by oj_cancel_use_flag(). */
#ifndef OJ_CANCEL_H
#define OJ_CANCEL_H

#include "../../flatten/base/oj_status.h"

/** Starts the thread that waits for signals. Must be called before any other
 *  thread is started. */
OJ_MUST_USE oj_status oj_cancel_watch_signals(struct oj_error *err);

/** From now on the first SIGINT, SIGTERM or SIGHUP only ends the input: rows
 *  already read are joined and written, however long that takes. A second
 *  signal cancels, as the first one normally does. */
void oj_cancel_end_input_first(void);

/** Returns 1 once a signal has ended the input. */
int oj_cancel_input_has_ended(void);

/** Selects the flag that the calling thread polls; NULL selects the flag of the
 *  process. Returns the previous flag, which the caller restores later, because
 *  joins nest. The flag is written with __atomic_store_n() and must outlive
 *  every object that stores its address. A new thread polls the flag of the
 *  process until it calls this function. */
const int *oj_cancel_use_flag(const int *flag);

/** Returns the flag that the calling thread polls, nonzero when its work is
 *  cancelled; never NULL. */
const int *oj_cancel_flag(void);

/** Returns 1 if the work of the calling thread is cancelled. */
int oj_is_cancelled(void);

/** Returns the error text of a cancelled command; it names the cause of the
 *  signal (a limit of the shell, a closed pipe) if there is one. */
const char *oj_cancel_message(void);

/** Returns OJ_ERR_CANCELLED with oj_cancel_message() if the work of the calling
 *  thread is cancelled, else OJ_OK. */
OJ_MUST_USE oj_status oj_cancel_check(struct oj_error *err);

/** Registers the function to call with user at the first signal, on the thread
 *  that waits for signals. If interrupt is NULL, no function is registered.
 *  When this returns, the previously registered function is not running and
 *  will not be called. */
void oj_cancel_set_interrupt_callback(void (*interrupt)(void *), void *user);

/** Registers a temporary folder, at most 4 at a time. If a signal ends the
 *  process, the folder is removed with its contents. folder and parent are
 *  descriptors of the folder and of its parent. They must stay open until
 *  oj_cancel_drop_temporary(). name is the folder's name in parent; it is
 *  copied. */
void oj_cancel_add_temporary(int parent, const char *name, int folder);
void oj_cancel_drop_temporary(int folder);

/** Between these two calls no signal ends the process, because the output is
 *  being moved into place. The move takes no noticeable time. */
void oj_cancel_defer_signals(void);
void oj_cancel_accept_signals(void);

#endif
