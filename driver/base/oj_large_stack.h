/** Runs the command on a stack that is large enough.  GDAL and its libraries
 *  need some hundred kilobytes of stack.  A small limit (ulimit -s) holds for
 *  the main thread and is the default for others, but a thread can be created
 *  with a larger stack. */
#ifndef OJ_LARGE_STACK_H
#define OJ_LARGE_STACK_H

/** Calls body(argc, argv): on the calling thread if the limit is large enough,
 *  else on a new thread with a large stack.  A large stack is then also the
 *  default of all threads started later.  Returns the result of body; on a new
 *  thread it calls exit() there instead, since exit handlers need the stack,
 *  too. */
int oj_large_stack_run(int (*body)(int argc, char **argv), int argc,
                       char **argv);

#endif
