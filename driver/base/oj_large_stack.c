#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setattr_default_np() */
#endif
#include "oj_large_stack.h"

#include "oj_exit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum
{
    /* a smaller stack is replaced by one of LARGE_KB; all tests pass with 256
     * KB */
    ENOUGH_KB = 1024,
    LARGE_KB = 8192 /* the usual limit of a shell */
};

struct program
{
    int (*body)(int, char **);
    int argc;
    char **argv;
};

static void *run_program_and_exit(void *user)
{
    const struct program *program = user;
    exit(program->body(program->argc, program->argv));
}

static int is_limit_small(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_STACK, &limit) == 0 &&
           limit.rlim_cur != RLIM_INFINITY &&
           limit.rlim_cur < (rlim_t)ENOUGH_KB * 1024;
}

/* Runs the program on a new thread with a large stack. Returns 1 if the thread
 * was started. */
static int start_on_large_stack(struct program *program, pthread_t *thread)
{
    pthread_attr_t attributes;
    int is_started;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    is_started =
        pthread_attr_setstacksize(&attributes, (size_t)LARGE_KB * 1024) == 0;
#ifdef __GLIBC__
    is_started = is_started && pthread_setattr_default_np(&attributes) == 0;
#endif
    is_started =
        is_started &&
        pthread_create(thread, &attributes, run_program_and_exit, program) == 0;
    pthread_attr_destroy(&attributes);
    return is_started;
}

int oj_large_stack_run(int (*body)(int argc, char **argv), int argc,
                       char **argv)
{
    struct program program = {body, argc, argv};
    pthread_t thread;
    if (!is_limit_small())
        return body(argc, argv);
    if (start_on_large_stack(&program, &thread))
        pthread_join(thread, NULL);
    else
        fprintf(stderr,
                "ERROR 1: the stack that this shell allows (ulimit -s) is too "
                "small, also for threads; run \"ulimit -s %d\" first\n",
                LARGE_KB);
    return OJ_EXIT_ERROR;
}
