/** Runs the command on a large enough stack. GDAL and its libraries need some
 *  hundred kilobytes. A smaller limit (ulimit -s) applies to the main thread
 *  and is the default of other threads, but threads can be created with a
 *  larger stack. */
#ifndef OJ_LARGE_STACK_H
#define OJ_LARGE_STACK_H

/** Calls body(argc, argv) and returns its result. If the stack of the calling
 *  thread is too small, body instead runs on a new thread with a large stack.
 *  That thread calls exit() with the result, because exit handlers need the
 *  stack, too. Threads that are started later also get a large stack. */
int oj_large_stack_run(int (*body)(int argc, char **argv), int argc,
                       char **argv);

#endif
