#include "oj_cuda.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

/* State of a device that all joins of the process share. The pool keeps freed
 * memory for later joins, because allocating gigabytes from the driver costs
 * milliseconds. */
struct shared_device
{
    cudaMemPool_t pool; /* NULL: not opened yet, or the device has no pools */
    int opened;
    int n_users;
    size_t total_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_device shared[OJ_GPU_MAX_DEVICES];

/* When no join uses a pool, it keeps at most 1 / KEPT_PART of the device's
 * memory, so that an idle process leaves the rest to other processes. */
#define KEPT_PART 16

oj_status oj_cuda_fail(struct oj_error *err, cudaError_t error,
                       const char *doing)
{
    oj_status status = OJ_ERR_INTERNAL;
    switch (error)
    {
        case cudaErrorMemoryAllocation:
            status = OJ_ERR_NOMEM;
            break;
        case cudaErrorNoDevice:
        case cudaErrorInvalidDevice:
        case cudaErrorInsufficientDriver:
        case cudaErrorInitializationError:
        case cudaErrorDevicesUnavailable:
        case cudaErrorSystemNotReady:
        case cudaErrorSystemDriverMismatch:
        case cudaErrorCompatNotSupportedOnDevice:
        case cudaErrorNoKernelImageForDevice:
        case cudaErrorDeviceUninitialized:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorStubLibrary:
            status = OJ_ERR_NO_DEVICE;
            break;
        default:
            break;
    }
    /* Clears CUDA's last error, so that no later call reports it. CUDA keeps
     * errors that break the device. */
    (void)cudaGetLastError();
    if (status == OJ_ERR_NOMEM)
        return oj_fail(err, status,
                       "the GPU has too little free memory while %s: end other "
                       "programs that hold it, use smaller batches, or join on "
                       "the CPU (backend cpu)",
                       doing);
    return oj_fail(err, status,
                   "CUDA failed while %s: %s (the backend cpu needs no GPU)",
                   doing, cudaGetErrorString(error));
}

static oj_status make_pool(int ordinal, struct shared_device *device,
                           struct oj_error *err)
{
    struct cudaMemPoolProps properties = {};
    cudaMemPool_t pool;
    uint64_t keep_all = UINT64_MAX;
    size_t free_bytes;
    int has_pools = 0;
    cudaError_t error;
    OJ_CUDA_TRY(cudaMemGetInfo(&free_bytes, &device->total_bytes),
                "opening the device", err);
    OJ_CUDA_TRY(cudaDeviceGetAttribute(
                    &has_pools, cudaDevAttrMemoryPoolsSupported, ordinal),
                "querying memory pools", err);
    if (!has_pools)
        return OJ_OK;
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = ordinal;
    OJ_CUDA_TRY(cudaMemPoolCreate(&pool, &properties), "making a memory pool",
                err);
    error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
                                    &keep_all);
    if (error != cudaSuccess)
    {
        (void)cudaMemPoolDestroy(pool);
        return oj_cuda_fail(err, error, "making a memory pool");
    }
    device->pool = pool;
    return OJ_OK;
}

static oj_status acquire_pool(int ordinal, cudaMemPool_t *pool,
                              struct oj_error *err)
{
    struct shared_device *device = &shared[ordinal];
    oj_status status = OJ_OK;
    pthread_mutex_lock(&lock);
    if (!device->opened)
        status = make_pool(ordinal, device, err);
    if (status == OJ_OK)
    {
        device->opened = 1;
        device->n_users++;
        *pool = device->pool;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void release_pool(int ordinal)
{
    struct shared_device *device = &shared[ordinal];
    pthread_mutex_lock(&lock);
    if (--device->n_users == 0 && device->pool != NULL)
        (void)cudaMemPoolTrimTo(device->pool, device->total_bytes / KEPT_PART);
    (void)cudaGetLastError();
    pthread_mutex_unlock(&lock);
}

static oj_status open_device(struct oj_cuda_device *device,
                             struct oj_error *err)
{
    cudaError_t error;
    OJ_CUDA_TRY(cudaSetDevice(device->ordinal), "choosing a device", err);
    OJ_CUDA_TRY(cudaDeviceGetAttribute(&device->n_processors,
                                       cudaDevAttrMultiProcessorCount,
                                       device->ordinal),
                "querying the device", err);
    OJ_TRY(acquire_pool(device->ordinal, &device->pool, err));
    error = cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        return OJ_OK;
    release_pool(device->ordinal);
    return oj_cuda_fail(err, error, "making a stream");
}

/* Opens a device, which oj_cuda_close() closes. limit is the maximum number of
 * bytes in use, 0 for no limit. If opening the device already fails for lack of
 * memory, other programs must hold the memory, and the message names them as
 * the cause. */
oj_status oj_cuda_open(int ordinal, int64_t limit, const int *cancel,
                       struct oj_cuda_device *out, struct oj_error *err)
{
    struct oj_cuda_device device = {};
    oj_status status;
    if (ordinal < 0 || ordinal >= OJ_GPU_MAX_DEVICES)
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "there is no GPU %d; ogrjoin --devices lists the GPUs",
                       ordinal);
    device.ordinal = ordinal;
    device.limit = limit;
    device.cancel = cancel;
    status = open_device(&device, err);
    if (status == OJ_ERR_NOMEM)
        return oj_fail(err, status,
                       "GPU %d has too little free memory: other programs "
                       "hold it; end one of them, or name another GPU with "
                       "-gpu",
                       ordinal);
    if (status == OJ_OK)
        *out = device;
    return status;
}

void oj_cuda_close(struct oj_cuda_device *device)
{
    if (device->stream == NULL)
        return;
    (void)cudaSetDevice(device->ordinal);
    (void)cudaStreamSynchronize(device->stream);
    (void)cudaStreamDestroy(device->stream);
    release_pool(device->ordinal);
    memset(device, 0, sizeof *device);
}

cudaError_t oj_cuda_wait(cudaStream_t stream)
{
    cudaError_t error;
    while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady)
        (void)sched_yield();
    return error;
}

/* Allocates memory from the device's pool. Memory that was freed on another
 * stream becomes available only when that stream has reached the free; so an
 * allocation that fails is repeated once after all streams have finished. */
static cudaError_t allocate_from_pool(struct oj_cuda_device *device,
                                      cudaStream_t stream, size_t bytes,
                                      void **out)
{
    cudaError_t error;
    if (device->pool == NULL)
        return cudaMalloc(out, bytes);
    error = cudaMallocFromPoolAsync(out, bytes, device->pool, stream);
    if (error != cudaErrorMemoryAllocation)
        return error;
    (void)cudaGetLastError();
    error = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        error = cudaMemPoolTrimTo(device->pool, 0);
    if (error == cudaSuccess)
        error = cudaMallocFromPoolAsync(out, bytes, device->pool, stream);
    return error;
}

static int64_t *used_bytes_counter(struct oj_cuda_device *device)
{
    return device->counts_for != NULL ? &device->counts_for->used
                                      : &device->used;
}

oj_status oj_cuda_alloc_bytes(struct oj_cuda_device *device,
                              cudaStream_t stream, int64_t n, size_t size,
                              void **out, struct oj_error *err)
{
    int64_t bytes;
    cudaError_t error;
    if (n < 0 || __builtin_mul_overflow(n, (int64_t)size, &bytes))
        return oj_fail(err, OJ_ERR_NOMEM,
                       "%lld elements of %lld bytes do not fit into the memory "
                       "of a GPU: use smaller batches",
                       (long long)n, (long long)size);
    if (n == 0)
    {
        *out = NULL;
        return OJ_OK;
    }
    if (__atomic_add_fetch(used_bytes_counter(device), bytes,
                           __ATOMIC_RELAXED) > device->limit &&
        device->limit > 0)
    {
        __atomic_sub_fetch(used_bytes_counter(device), bytes, __ATOMIC_RELAXED);
        return oj_fail(err, OJ_ERR_NOMEM,
                       "the %.1f MB that may be used of GPU %d are not enough; "
                       "a larger -gpu_memory allows more",
                       (double)device->limit / 1048576.0, device->ordinal);
    }
    error = allocate_from_pool(device, stream, (size_t)bytes, out);
    if (error != cudaSuccess)
    {
        __atomic_sub_fetch(used_bytes_counter(device), bytes, __ATOMIC_RELAXED);
        return oj_cuda_fail(err, error, "allocating device memory");
    }
    return OJ_OK;
}

void oj_cuda_free_bytes(struct oj_cuda_device *device, cudaStream_t stream,
                        void *memory, int64_t n, size_t size)
{
    if (memory == NULL)
        return;
    /* Errors are ignored: if the device is lost, its memory is lost, too. */
    if (device->pool != NULL)
        (void)cudaFreeAsync(memory, stream);
    else
        (void)cudaFree(memory);
    (void)cudaGetLastError();
    __atomic_sub_fetch(used_bytes_counter(device), n * (int64_t)size,
                       __ATOMIC_RELAXED);
}

oj_status oj_cuda_alloc_owned(struct oj_cuda_device *device,
                              cudaStream_t stream, int64_t n, size_t size,
                              struct oj_cuda_memory *memory, void **out,
                              struct oj_error *err)
{
    if (memory->n == OJ_CUDA_MOST_HELD)
        return oj_fail_internal(
            err, "more than %d device arrays in one struct oj_cuda_memory",
            OJ_CUDA_MOST_HELD);
    OJ_TRY(oj_cuda_alloc_bytes(device, stream, n, size, out, err));
    if (n > 0)
        memory->held[memory->n++] = {*out, n, size};
    return OJ_OK;
}

void oj_cuda_move_ownership(struct oj_cuda_memory *from, const void *at,
                            struct oj_cuda_memory *to)
{
    int n_left = 0;
    for (int i = 0; i < from->n; i++)
    {
        if (at == NULL || from->held[i].at == at)
            to->held[to->n++] = from->held[i];
        else
            from->held[n_left++] = from->held[i];
    }
    from->n = n_left;
}

void oj_cuda_memory_free_all(struct oj_cuda_device *device, cudaStream_t stream,
                             struct oj_cuda_memory *memory)
{
    while (memory->n > 0)
    {
        memory->n--;
        oj_cuda_free_bytes(device, stream, memory->held[memory->n].at,
                           memory->held[memory->n].n,
                           memory->held[memory->n].size);
    }
}

int64_t oj_cuda_memory_bytes(const struct oj_cuda_memory *memory)
{
    int64_t bytes = 0;
    for (int i = 0; i < memory->n; i++)
        bytes += memory->held[i].n * (int64_t)memory->held[i].size;
    return bytes;
}
