#include "cuda_pinned_stage.h"

#include "../../../flatten/base/oj_alloc.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* Maximum number of freed blocks that are kept for later joins. 16 copying
 * threads for each of 8 devices use 128 blocks. */
enum
{
    MOST_KEPT = 256,
    PAGE = 4096
};

/* Blocks of at least this many bytes are ordinary memory in huge pages, as
 * oj_malloc() allocates arrays of this size, and are registered with CUDA.
 * cudaHostAlloc() takes 0.5 s per GB, one thread at a time, and keeps other
 * threads from launching kernels meanwhile. Registering takes a tenth of that,
 * and the threads that make blocks touch their pages in parallel. For 16 blocks
 * of 8 MB, this saves most of the time of a first join of 10 million points: 8
 * ms in place of 59 ms (oj_bench). */
static const int64_t least_registered = (int64_t)4 << 20;

static const int64_t most_kept_bytes = (int64_t)512 << 20;
static const int64_t least_bytes = 64 << 10;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct oj_cuda_stage kept[MOST_KEPT];
static int n_kept;
static int64_t kept_bytes;

/* Takes a block of at least `bytes` and at most 4 * `bytes` out of `kept`, and
 * returns it. The data of the result is NULL if there is no such block. */
static struct oj_cuda_stage take_pinned_block_from_cache(int64_t bytes)
{
    struct oj_cuda_stage stage = {};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_kept && stage.data == NULL; i++)
    {
        if (kept[i].bytes < bytes || kept[i].bytes > 4 * bytes)
            continue;
        stage = kept[i];
        kept_bytes -= stage.bytes;
        kept[i] = kept[--n_kept];
    }
    pthread_mutex_unlock(&lock);
    return stage;
}

/* Allocates memory and registers it with CUDA; returns NULL if this fails. A
 * child process does not get the memory (MADV_DONTFORK): if both processes
 * shared its pages, the next write of the parent would go to a new page (copy
 * on write), which the device does not read. */
static char *allocate_and_register(size_t bytes)
{
    char *memory = (char *)oj_malloc((int64_t)bytes, 1);
    void *on_device = NULL;
    if (memory == NULL)
        return NULL;
    for (size_t at = 0; at < bytes; at += PAGE)
        memory[at] = 0;
    (void)madvise(memory, bytes, MADV_DONTFORK);
    if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable) ==
        cudaSuccess)
    {
        if (cudaHostGetDevicePointer(&on_device, memory, 0) == cudaSuccess &&
            on_device == memory)
            return memory;
        (void)cudaHostUnregister(memory);
    }
    (void)cudaGetLastError();
    (void)madvise(memory, bytes, MADV_DOFORK);
    oj_free(memory);
    return NULL;
}

static int64_t round_up_to_pages(int64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void free_pinned_block(const struct oj_cuda_stage *stage)
{
    if (!stage->is_registered)
    {
        (void)cudaFreeHost(stage->data);
        return;
    }
    (void)cudaHostUnregister(stage->data);
    (void)madvise(stage->data, (size_t)round_up_to_pages(stage->bytes),
                  MADV_DOFORK);
    oj_free(stage->data);
}

void oj_cuda_stage_release(struct oj_cuda_stage *stage)
{
    int keeps;
    if (stage->data == NULL)
        return;
    pthread_mutex_lock(&lock);
    keeps = n_kept < MOST_KEPT && kept_bytes + stage->bytes <= most_kept_bytes;
    if (keeps)
    {
        kept[n_kept++] = *stage;
        kept_bytes += stage->bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!keeps)
        free_pinned_block(stage);
    (void)cudaGetLastError();
    *stage = {};
}

/* Rounds bytes up to one of a few block sizes, so that freed blocks fit later
 * requests. */
static int64_t round_up_block_bytes(int64_t bytes)
{
    int64_t n = least_bytes;
    while (n + OJ_CUDA_STAGE_EXTRA < bytes)
        n *= 2;
    return n + OJ_CUDA_STAGE_EXTRA;
}

oj_status oj_cuda_stage_reserve(struct oj_cuda_stage *stage, int64_t bytes,
                                struct oj_error *err)
{
    void *memory = NULL;
    cudaError_t error;
    if (stage->bytes >= bytes)
        return OJ_OK;
    bytes = round_up_block_bytes(bytes);
    oj_cuda_stage_release(stage);
    *stage = take_pinned_block_from_cache(bytes);
    if (stage->data != NULL)
        return OJ_OK;
    if (bytes >= least_registered)
        stage->data = allocate_and_register((size_t)round_up_to_pages(bytes));
    if (stage->data != NULL)
    {
        stage->bytes = bytes;
        stage->is_registered = 1;
        return OJ_OK;
    }
    error = cudaHostAlloc(&memory, (size_t)bytes, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation)
    {
        (void)cudaGetLastError();
        return oj_fail(err, OJ_ERR_NOMEM,
                       "cannot allocate %.1f MB of pinned memory: %s (free "
                       "memory of this machine)",
                       (double)bytes / 1048576.0, cudaGetErrorString(error));
    }
    OJ_CUDA_TRY(error, "allocating pinned memory", err);
    stage->data = (char *)memory;
    stage->bytes = bytes;
    return OJ_OK;
}

static __global__ void copy_bytes_by_kernel(const uint8_t *from, int bytes,
                                            uint8_t *to)
{
    for (int i = (int)threadIdx.x; i < bytes; i += 32)
        to[i] = from[i];
}

static oj_status read_by_kernel_into_pinned(const struct oj_cuda_stage *stage,
                                            cudaStream_t stream,
                                            const void *from, int bytes,
                                            const char *doing,
                                            struct oj_error *err)
{
    copy_bytes_by_kernel<<<1, 32, 0, stream>>>((const uint8_t *)from, bytes,
                                               (uint8_t *)(void *)stage->data);
    OJ_CUDA_TRY_LAUNCH(doing, err);
    OJ_CUDA_TRY(oj_cuda_wait(stream), doing, err);
    return OJ_OK;
}

oj_status oj_cuda_stage_read(cudaStream_t stream, const void *from, int bytes,
                             void *to, const char *doing, struct oj_error *err)
{
    struct oj_cuda_stage stage = {};
    oj_status status;
    OJ_TRY(oj_cuda_stage_reserve(&stage, bytes, err));
    status =
        read_by_kernel_into_pinned(&stage, stream, from, bytes, doing, err);
    if (status == OJ_OK)
        memcpy(to, stage.data, (size_t)bytes);
    oj_cuda_stage_release(&stage);
    return status;
}

static int is_pinned_at(const void *at)
{
    struct cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, at) != cudaSuccess)
    {
        (void)cudaGetLastError();
        return 0;
    }
    return attributes.type == cudaMemoryTypeHost;
}

int oj_cuda_is_pinned(const void *memory, int64_t bytes)
{
    return bytes > 0 && is_pinned_at(memory) &&
           is_pinned_at((const char *)memory + bytes - 1);
}
