#include "cuda_copy.h"

#include "cuda_host_threads.h"
#include "cuda_pinned_stage.h"

#include <string.h>
#include <unistd.h>

/* Arrays with fewer bytes are copied to the device (in) or from it (out) by a
 * single call of CUDA. The limits differ because CUDA reads host memory faster
 * than it writes newly allocated host memory. */
static const int64_t least_bytes_in = 2 << 20, least_bytes_out = 1 << 20;

/* Limits of a piece in bytes. A small array is cut into small pieces, so that
 * every thread gets some: page faults in new host memory cost more than the
 * copies, and the threads share them. */
static const int64_t least_piece = 128 << 10, most_piece = 2 << 20;

enum
{
    MOST_THREADS = 16,
    /* Stages per thread, so that the host fills or empties one while CUDA
     * copies the other. */
    STAGES = 2
};

/* A copy by several threads: each thread takes the next piece of the array and
 * copies it through its own pinned stages. */
struct copying
{
    const struct oj_cuda_device *device;
    cudaStream_t stream;
    char *to;
    const char *from;
    int64_t bytes;
    int is_out;
    int64_t piece; /* bytes of a piece */
    int64_t next;  /* offset of the next piece; changed atomically */
};

/* The `n` bytes from offset `at` that are being copied through `stage`. If n is
 * 0, the stage is free. */
struct copied_piece
{
    char *stage;
    cudaEvent_t done;
    int64_t at, n;
};

/* Waits until the piece is copied; if it comes from the device, moves it from
 * its stage to the array. The stage is then free. */
static cudaError_t wait_for_piece_and_unstage(const struct copying *c,
                                              struct copied_piece *piece)
{
    cudaError_t error = cudaSuccess;
    if (piece->n > 0)
        error = cudaEventSynchronize(piece->done);
    if (piece->n > 0 && error == cudaSuccess && c->is_out)
        memcpy(c->to + piece->at, piece->stage, (size_t)piece->n);
    piece->n = 0;
    return error;
}

static cudaError_t stage_piece_and_enqueue_copy(const struct copying *c,
                                                struct copied_piece *piece)
{
    size_t n = (size_t)piece->n;
    cudaError_t error;
    if (c->is_out)
        error = cudaMemcpyAsync(piece->stage, c->from + piece->at, n,
                                cudaMemcpyDeviceToHost, c->stream);
    else
    {
        memcpy(piece->stage, c->from + piece->at, n);
        error = cudaMemcpyAsync(c->to + piece->at, piece->stage, n,
                                cudaMemcpyHostToDevice, c->stream);
    }
    return error == cudaSuccess ? cudaEventRecord(piece->done, c->stream)
                                : error;
}

static oj_status copy_pieces_by_turns(struct copying *c,
                                      struct copied_piece *piece,
                                      struct oj_error *err)
{
    for (int i = 0;; i = (i + 1) % STAGES)
    {
        OJ_CUDA_TRY(wait_for_piece_and_unstage(c, &piece[i]), "copying arrays",
                    err);
        int64_t at = __atomic_fetch_add(&c->next, c->piece, __ATOMIC_RELAXED);
        int64_t n = c->bytes - at < c->piece ? c->bytes - at : c->piece;
        if (n <= 0)
            break;
        piece[i].at = at;
        piece[i].n = n;
        OJ_CUDA_TRY(stage_piece_and_enqueue_copy(c, &piece[i]),
                    "copying arrays", err);
    }
    for (int i = 0; i < STAGES; i++)
        OJ_CUDA_TRY(wait_for_piece_and_unstage(c, &piece[i]), "copying arrays",
                    err);
    return OJ_OK;
}

static oj_status copy_pieces_of_thread(struct copying *c, struct oj_error *err)
{
    struct oj_cuda_stage stage = {};
    struct copied_piece piece[STAGES] = {};
    oj_status status;
    OJ_CUDA_TRY(cudaSetDevice(c->device->ordinal), "copying arrays", err);
    status = oj_cuda_stage_reserve(&stage, STAGES * most_piece, err);
    for (int i = 0; i < STAGES && status == OJ_OK; i++)
    {
        cudaError_t error =
            cudaEventCreateWithFlags(&piece[i].done, cudaEventDisableTiming);
        piece[i].stage = stage.data + i * most_piece;
        if (error != cudaSuccess)
            status = oj_cuda_fail(err, error, "copying arrays");
    }
    if (status == OJ_OK)
        status = copy_pieces_by_turns(c, piece, err);
    for (int i = 0; i < STAGES; i++)
    {
        if (piece[i].n > 0) /* after a failure, copies may still be running */
            (void)cudaStreamSynchronize(c->stream);
        if (piece[i].done != NULL)
            (void)cudaEventDestroy(piece[i].done);
    }
    oj_cuda_stage_release(&stage);
    return status;
}

static int count_copy_threads(const struct copying *c)
{
    int64_t n = c->device->n_threads;
    if (n < 1)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n > MOST_THREADS)
        n = MOST_THREADS;
    if (n > c->bytes / (2 * least_piece))
        n = c->bytes / (2 * least_piece);
    return (int)n;
}

/* Returns the size of a piece in bytes: half of what each of n threads copies,
 * rounded up to whole pages of 4096 bytes and limited to least_piece ..
 * most_piece. */
static int64_t choose_piece_bytes(int64_t bytes, int n)
{
    int64_t piece = (n > 0 ? bytes / (2 * n) : bytes) / 4096 * 4096 + 4096;
    if (piece > most_piece)
        return most_piece;
    return piece < least_piece ? least_piece : piece;
}

/* Copies from or to pageable memory by one call of CUDA, which uses its own
 * pinned buffers. */
static oj_status copy_by_plain_cuda_memcpy(const struct copying *c,
                                           struct oj_error *err)
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

static oj_status copy_by_staging_threads_if_large(
    const struct oj_cuda_device *device, cudaStream_t stream, int is_out,
    void *to, const void *from, int64_t bytes, struct oj_error *err)
{
    struct copying c = {device, stream, (char *)to, (const char *)from,
                        bytes,  is_out, 0,          0};
    int n = count_copy_threads(&c);
    oj_status status;
    c.piece = choose_piece_bytes(bytes, n);
    if (bytes < (is_out ? least_bytes_out : least_bytes_in) || n < 2 ||
        oj_cuda_is_pinned(is_out ? to : from, bytes))
        return copy_by_plain_cuda_memcpy(&c, err);
    status = oj_cuda_threads_try_parallel(
        n,
        [&](int, struct oj_error *error)
        { return copy_pieces_of_thread(&c, error); },
        err);
    /* if no pinned memory could be allocated, a plain cudaMemcpy copies all */
    return status == OJ_ERR_NOMEM ? copy_by_plain_cuda_memcpy(&c, err) : status;
}

oj_status oj_cuda_copy_in(const struct oj_cuda_device *device,
                          cudaStream_t stream, void *to, const void *from,
                          int64_t bytes, struct oj_error *err)
{
    return copy_by_staging_threads_if_large(device, stream, 0, to, from, bytes,
                                            err);
}

oj_status oj_cuda_copy_out(const struct oj_cuda_device *device,
                           cudaStream_t stream, void *to, const void *from,
                           int64_t bytes, struct oj_error *err)
{
    return copy_by_staging_threads_if_large(device, stream, 1, to, from, bytes,
                                            err);
}

/* --- small arrays --------------------------------------------------------- */

static const int64_t staged_piece = 64 << 10, most_staged = 32 << 20;

/* One staging thread is used per this many bytes: waking a thread takes as long
 * as copying them. */
static const int64_t bytes_of_staging_thread = 256 << 10;

enum
{
    MOST_STAGING_THREADS = 8
};

void oj_cuda_copy_stage_add(struct oj_cuda_staging *staging, const void *from,
                            int64_t bytes)
{
    if (from != NULL)
        staging->array[staging->n++] = {(const char *)from, NULL, bytes, 0};
}

static int count_staging_threads(const struct oj_cuda_device *device,
                                 int64_t bytes)
{
    int64_t n = bytes / bytes_of_staging_thread;
    int64_t most = device->n_threads;
    if (most < 1)
        most = sysconf(_SC_NPROCESSORS_ONLN);
    if (most > MOST_STAGING_THREADS)
        most = MOST_STAGING_THREADS;
    n = n < most ? n : most;
    return n < 1 ? 1 : (int)n;
}

/* Makes *stage a block of at least `bytes` of pinned memory. A thread of the
 * module allocates it, so that the calling thread makes no CUDA call. */
static oj_status
reserve_stage_on_module_thread(const struct oj_cuda_device *device,
                               int64_t bytes, struct oj_cuda_stage *stage)
{
    struct oj_error unwanted;
    if (stage->bytes >= bytes)
        return OJ_OK;
    return oj_cuda_threads_try_on_module(
        1,
        [=](int, struct oj_error *err)
        {
            OJ_CUDA_TRY(cudaSetDevice(device->ordinal), "choosing a device",
                        err);
            return oj_cuda_stage_reserve(stage, bytes, err);
        },
        &unwanted);
}

int oj_cuda_copy_stage_begin(struct oj_cuda_staging *staging,
                             const struct oj_cuda_device *device,
                             struct oj_cuda_stage *stage)
{
    int64_t bytes = 0;
    for (int i = 0; i < staging->n; i++)
        bytes += staging->array[i].bytes;
    if (bytes == 0 || bytes > most_staged ||
        reserve_stage_on_module_thread(device, bytes, stage) != OJ_OK)
        return 0;
    bytes = 0;
    for (int i = 0; i < staging->n; i++)
    {
        staging->array[i].to = stage->data + bytes;
        bytes += staging->array[i].bytes;
    }
    return count_staging_threads(device, bytes);
}

/* Copies the next piece to pinned memory. Returns 0 if no piece is left. */
static int stage_next_piece(struct oj_cuda_staging *staging)
{
    int64_t piece = __atomic_fetch_add(&staging->next, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < staging->n; i++)
    {
        struct oj_cuda_staged_array *a = &staging->array[i];
        int64_t at = piece * staged_piece, bytes = a->bytes - at;
        if (bytes <= 0)
        {
            piece -= (a->bytes + staged_piece - 1) / staged_piece;
            continue;
        }
        bytes = bytes < staged_piece ? bytes : staged_piece;
        memcpy(a->to + at, a->from + at, (size_t)bytes);
        (void)__atomic_add_fetch(&a->n_staged, bytes, __ATOMIC_RELEASE);
        return 1;
    }
    return 0;
}

void oj_cuda_copy_stage_pieces(struct oj_cuda_staging *staging)
{
    while (stage_next_piece(staging))
    {
    }
}

const void *oj_cuda_copy_stage_wait(struct oj_cuda_staging *staging,
                                    const void *from)
{
    struct oj_cuda_staged_array *array = staging->array;
    while (array->from != from)
        array++;
    while (__atomic_load_n(&array->n_staged, __ATOMIC_ACQUIRE) < array->bytes)
    {
        if (!stage_next_piece(staging))
            (void)sched_yield();
    }
    return array->to;
}
