#include "cuda_threads.h"

#include <pthread.h>

enum
{
    MOST_THREADS = 64 /* at a time */
};

struct aside
{
    void (*body)(void *user);
    void *user;
};

static void *run_aside(void *user)
{
    const struct aside *aside = (const struct aside *)user;
    aside->body(aside->user);
    return NULL;
}

void oj_cuda_aside(void (*body)(void *user), void *user)
{
    struct aside aside = {body, user};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_aside, &aside) == 0)
        pthread_join(thread, NULL);
    else
        body(user);
}

struct one_of_many
{
    void (*body)(int i, void *user);
    void *user;
    int i, runs;
    pthread_t thread;
};

static void *run_one(void *user)
{
    const struct one_of_many *one = (const struct one_of_many *)user;
    one->body(one->i, one->user);
    return NULL;
}

static void run_some(int first, int n, void (*body)(int i, void *user),
                     void *user)
{
    struct one_of_many one[MOST_THREADS];
    for (int i = 0; i < n; i++)
    {
        one[i].body = body;
        one[i].user = user;
        one[i].i = first + i;
        one[i].runs = n > 1 && pthread_create(&one[i].thread, NULL, run_one,
                                              &one[i]) == 0;
    }
    for (int i = 0; i < n; i++)
    {
        if (!one[i].runs)
            run_one(&one[i]);
    }
    for (int i = 0; i < n; i++)
    {
        if (one[i].runs)
            pthread_join(one[i].thread, NULL);
    }
}

void oj_cuda_side_by_side(int n, void (*body)(int i, void *user), void *user)
{
    for (int first = 0; first < n; first += MOST_THREADS)
        run_some(first, n - first < MOST_THREADS ? n - first : MOST_THREADS,
                 body, user);
}
