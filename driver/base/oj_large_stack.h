/** The command under a small limit of the stack (ulimit -s), which holds for
 * the main thread and, by default, for all others: GDAL and the libraries below
 * it need some hundred kilobytes.  A thread can have more than the limit. */
#ifndef OJ_LARGE_STACK_H
#define OJ_LARGE_STACK_H

/** Calls body(argc, argv): here where the limit is large enough, else on a
 *  thread with a large stack, as all threads that are started later have.
 *  Returns what body returns; on a thread of its own it ends the process with
 *  that, since handlers of exit() need the stack, too. */
int oj_large_stack_run(int (*body)(int argc, char **argv), int argc,
                       char **argv);

#endif
