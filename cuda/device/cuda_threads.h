/** Threads of the module's own: they leave the caller's current device as it
 *  is, and do for several devices at once what one would do for each. */
#ifndef CUDA_THREADS_H
#define CUDA_THREADS_H

/** Runs body on a thread of its own and waits for it: so the caller's current
 *  device stays what it is, and no device is started that is not asked for. */
void oj_cuda_aside(void (*body)(void *user), void *user);

/** Runs body for 0 .. n - 1, each on a thread of its own, and waits for all;
 *  those that get no thread run on the caller's, so be aside. */
void oj_cuda_side_by_side(int n, void (*body)(int i, void *user), void *user);

#endif
