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

/* Part 0 takes the device's own stream. */
struct parts_build
{
    oj_status (*build)(int part, struct oj_cuda_device *device, void *user,
                       struct oj_error *err);
    void *user;
    struct oj_cuda_device device[OJ_CUDA_MOST_PARTS];
    oj_status status[OJ_CUDA_MOST_PARTS];
    struct oj_error error[OJ_CUDA_MOST_PARTS];
};

static oj_status build_part(struct parts_build *all, int part)
{
    struct oj_cuda_device *device = &all->device[part];
    struct oj_error *err = &all->error[part];
    OJ_CUDA_TRY(cudaSetDevice(device->ordinal), "choosing a device", err);
    if (part > 0)
        OJ_CUDA_TRY(
            cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
            "making a stream", err);
    OJ_TRY(all->build(part, device, all->user, err));
    OJ_CUDA_TRY(oj_cuda_wait(device->stream), "indexing the join layer", err);
    return OJ_OK;
}

static void run_part(int part, void *user)
{
    struct parts_build *all = (struct parts_build *)user;
    all->status[part] = build_part(all, part);
    if (part == 0 || all->device[part].stream == NULL)
        return;
    (void)cudaStreamSynchronize(all->device[part].stream);
    (void)cudaStreamDestroy(all->device[part].stream);
    (void)cudaGetLastError();
}

oj_status
oj_cuda_build_parts(struct oj_cuda_device *device, int n,
                    oj_status (*build)(int part, struct oj_cuda_device *device,
                                       void *user, struct oj_error *err),
                    void *user, struct oj_error *err)
{
    struct parts_build all = {};
    OJ_CUDA_TRY(oj_cuda_wait(device->stream), "indexing the join layer", err);
    all.build = build;
    all.user = user;
    for (int i = 0; i < n; i++)
    {
        all.device[i] = *device;
        all.device[i].counts_for = device;
        all.device[i].stream = i == 0 ? device->stream : NULL;
    }
    oj_cuda_side_by_side(n, run_part, &all);
    for (int i = 0; i < n; i++)
    {
        if (all.status[i] != OJ_OK)
        {
            *err = all.error[i];
            return all.status[i];
        }
    }
    return OJ_OK;
}
