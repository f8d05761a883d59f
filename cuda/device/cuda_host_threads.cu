#include "cuda_host_threads.h"

#include <pthread.h>

enum
{
    MOST_THREADS = 64 /* at a time */
};

struct one_of_many
{
    void (*body)(int i, void *user);
    void *user;
    int i, runs;
    pthread_t thread;
};

static void *run_body_on_thread(void *user)
{
    const struct one_of_many *one = (const struct one_of_many *)user;
    one->body(one->i, one->user);
    return NULL;
}

static void run_bodies_on_threads(int first, int n,
                                  void (*body)(int i, void *user), void *user)
{
    struct one_of_many one[MOST_THREADS];
    for (int i = 0; i < n; i++)
    {
        one[i] = {body, user, first + i, 0, {}};
        one[i].runs = pthread_create(&one[i].thread, NULL, run_body_on_thread,
                                     &one[i]) == 0;
    }
    for (int i = 0; i < n; i++)
    {
        if (!one[i].runs)
            run_body_on_thread(&one[i]);
    }
    for (int i = 0; i < n; i++)
    {
        if (one[i].runs)
            pthread_join(one[i].thread, NULL);
    }
}

void oj_cuda_run_aside(void (*body)(int none, void *user), void *user)
{
    run_bodies_on_threads(0, 1, body, user);
}

void oj_cuda_side_by_side(int n, void (*body)(int i, void *user), void *user)
{
    if (n == 1)
        body(0, user);
    for (int first = 0; n > 1 && first < n; first += MOST_THREADS)
        run_bodies_on_threads(
            first, n - first < MOST_THREADS ? n - first : MOST_THREADS, body,
            user);
}

/* Part 0 takes the device's own stream. */
static oj_status build_index_part_on_stream(struct oj_cuda_device *device,
                                            int part,
                                            oj_cuda_part_builder *build,
                                            void *user, struct oj_error *err)
{
    OJ_CUDA_TRY(cudaSetDevice(device->ordinal), "choosing a device", err);
    if (part > 0)
        OJ_CUDA_TRY(
            cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
            "making a stream", err);
    OJ_TRY(build(part, device, user, err));
    OJ_CUDA_TRY(oj_cuda_wait(device->stream), "indexing the join layer", err);
    return OJ_OK;
}

static oj_status build_index_part_on_thread(struct oj_cuda_device *device,
                                            int part,
                                            oj_cuda_part_builder *build,
                                            void *user, struct oj_error *err)
{
    struct oj_cuda_device own = *device;
    oj_status status;
    own.counts_for = device;
    if (part > 0)
        own.stream = NULL;
    status = build_index_part_on_stream(&own, part, build, user, err);
    if (part > 0 && own.stream != NULL)
    {
        (void)cudaStreamSynchronize(own.stream);
        (void)cudaStreamDestroy(own.stream);
        (void)cudaGetLastError();
    }
    return status;
}

oj_status oj_cuda_build_parts(struct oj_cuda_device *device, int n,
                              oj_cuda_part_builder *build, void *user,
                              struct oj_error *err)
{
    OJ_CUDA_TRY(oj_cuda_wait(device->stream), "indexing the join layer", err);
    return oj_cuda_try_side_by_side(
        n,
        [=](int i, struct oj_error *error)
        { return build_index_part_on_thread(device, i, build, user, error); },
        err);
}
