/** Runs the command on a large enough stack. GDAL and its libraries need some
 *  hundred kilobytes. A smaller limit (ulimit -s) applies to the main thread
 *  and is the default of other threads, but threads can be created with a
 *  larger stack. */
#ifndef OJ_LARGE_STACK_H
#define OJ_LARGE_STACK_H

/** Calls body(argc, argv) and returns its result: on the calling thread if its
 *  stack is large enough, otherwise on a new thread with a large stack. A
 *  large stack is then also the default of all threads started later. The new
 *  thread calls exit() instead of returning, because exit handlers need the
 *  stack, too. */
int oj_large_stack_run(int (*body)(int argc, char **argv), int argc,
                       char **argv);

#endif
