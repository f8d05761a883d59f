#include "cuda_copy.h"

#include "cuda_stage.h"
#include "cuda_threads.h"

#include <string.h>
#include <unistd.h>

/* Less than this is not worth threads. */
static const int64_t least_bytes = 4 << 20;

static const int64_t piece_bytes = 1 << 20;

enum
{
    MOST_THREADS = 8
};

/* Threads take piece after piece, each by way of its own stage. */
struct copying
{
    const struct oj_cuda_device *device;
    cudaStream_t stream;
    char *to;
    const char *from;
    int64_t bytes;
    int is_out;
    int64_t next; /* changed atomically */
    struct oj_cuda_stage stage[MOST_THREADS];
    cudaEvent_t done[MOST_THREADS];
    oj_status status[MOST_THREADS];
    struct oj_error error[MOST_THREADS];
};

static cudaError_t copy_piece(const struct copying *c, int64_t at, size_t n,
                              char *stage, cudaEvent_t done)
{
    cudaError_t error;
    if (c->is_out)
        error = cudaMemcpyAsync(stage, c->from + at, n, cudaMemcpyDeviceToHost,
                                c->stream);
    else
    {
        memcpy(stage, c->from + at, n);
        error = cudaMemcpyAsync(c->to + at, stage, n, cudaMemcpyHostToDevice,
                                c->stream);
    }
    if (error == cudaSuccess)
        error = cudaEventRecord(done, c->stream);
    if (error == cudaSuccess)
        error = cudaEventSynchronize(done);
    if (error == cudaSuccess && c->is_out)
        memcpy(c->to + at, stage, n);
    return error;
}

static oj_status copy_pieces(struct copying *c, int i)
{
    struct oj_error *err = &c->error[i];
    OJ_CUDA_TRY(cudaSetDevice(c->device->ordinal), "copying arrays", err);
    OJ_CUDA_TRY(cudaEventCreateWithFlags(&c->done[i], cudaEventDisableTiming),
                "copying arrays", err);
    OJ_TRY(oj_cuda_stage_want(&c->stage[i], piece_bytes, err));
    for (;;)
    {
        int64_t at =
            __atomic_fetch_add(&c->next, piece_bytes, __ATOMIC_RELAXED);
        int64_t n = c->bytes - at < piece_bytes ? c->bytes - at : piece_bytes;
        if (n <= 0)
            return OJ_OK;
        OJ_CUDA_TRY(copy_piece(c, at, (size_t)n, c->stage[i].data, c->done[i]),
                    "copying arrays", err);
    }
}

static void copy_some(int i, void *user)
{
    struct copying *c = (struct copying *)user;
    c->status[i] = copy_pieces(c, i);
    if (c->done[i] != NULL)
        (void)cudaEventDestroy(c->done[i]);
    oj_cuda_stage_drop(&c->stage[i]);
}

static int count_threads(const struct copying *c)
{
    int64_t n = c->device->n_threads;
    if (n < 1)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n > MOST_THREADS)
        n = MOST_THREADS;
    if (n > c->bytes / (2 * piece_bytes))
        n = c->bytes / (2 * piece_bytes);
    return (int)n;
}

/* As CUDA copies from ordinary memory. */
static oj_status copy_plainly(const struct copying *c, struct oj_error *err)
{
    if (c->bytes == 0)
        return OJ_OK;
    OJ_CUDA_TRY(cudaMemcpyAsync(c->to, c->from, (size_t)c->bytes,
                                c->is_out ? cudaMemcpyDeviceToHost
                                          : cudaMemcpyHostToDevice,
                                c->stream),
                "copying arrays", err);
    if (c->is_out)
        OJ_CUDA_TRY(cudaStreamSynchronize(c->stream), "copying arrays", err);
    return OJ_OK;
}

static oj_status copy_bytes(const struct oj_cuda_device *device,
                            cudaStream_t stream, int is_out, void *to,
                            const void *from, int64_t bytes,
                            struct oj_error *err)
{
    struct copying c = {};
    int n;
    c.device = device;
    c.stream = stream;
    c.is_out = is_out;
    c.to = (char *)to;
    c.from = (const char *)from;
    c.bytes = bytes;
    n = count_threads(&c);
    if (bytes < least_bytes || n < 2 ||
        oj_cuda_is_pinned(is_out ? to : from, bytes))
        return copy_plainly(&c, err);
    oj_cuda_side_by_side(n, copy_some, &c);
    for (int i = 0; i < n; i++)
    {
        if (c.status[i] == OJ_ERR_NOMEM) /* of pinned memory */
            return copy_plainly(&c, err);
        if (c.status[i] != OJ_OK)
            return oj_fail(err, c.status[i], "%s", c.error[i].message);
    }
    return OJ_OK;
}

oj_status oj_cuda_copy_in(const struct oj_cuda_device *device,
                          cudaStream_t stream, void *to, const void *from,
                          int64_t bytes, struct oj_error *err)
{
    return copy_bytes(device, stream, 0, to, from, bytes, err);
}

oj_status oj_cuda_copy_out(const struct oj_cuda_device *device,
                           cudaStream_t stream, void *to, const void *from,
                           int64_t bytes, struct oj_error *err)
{
    return copy_bytes(device, stream, 1, to, from, bytes, err);
}
