/* Memory of the emulated device. It is host memory in blocks, which are
 * registered in a map, filled with a pattern when allocated, and followed by
 * guard bytes. OJ_CUDA_HOST_MEMORY=n is the memory of each device in MB. */
#include "host_fiber.h"
#include "host_held.h"
#include "host_state.h"

/* A memory pool. All memory that the pool has reserved counts as in use on the
 * device, even if no allocation of the pool uses it. */
struct oj_host_pool
{
    int device;
    size_t used, reserved;
    uint64_t keeps;
};

namespace oj_host
{
namespace
{
enum memory_kind
{
    DEVICE,
    PINNED,    /* cudaHostAlloc() */
    REGISTERED /* memory of the caller */
};

struct memory_block
{
    size_t bytes;
    enum memory_kind kind;
    int device;
    oj_host_pool *pool;
    /* 1: the caller of the module allocated it and may keep it. */
    int is_callers = 0;
};

/* Guard bytes behind each block; the address sanitizer has its own. */
const size_t FENCE = OJ_HOST_ASAN ? 0 : 256;
const size_t ALIGNMENT = 256;

std::mutex lock;
std::map<uintptr_t, memory_block> &blocks(void)
{
    static auto *all = new std::map<uintptr_t, memory_block>;
    return *all;
}

unsigned poison(void)
{
    static const unsigned byte = (unsigned)setting("OJ_CUDA_HOST_POISON", 0xA5);
    return byte;
}

/* Returns the block that contains address at, or NULL. Sets *start to the
 * block's first address. */
const memory_block *find(const void *at, uintptr_t *start)
{
    auto &all = blocks();
    auto next = all.upper_bound((uintptr_t)at);
    if (next == all.begin())
        return nullptr;
    --next;
    if ((uintptr_t)at >= next->first + next->second.bytes)
        return nullptr;
    *start = next->first;
    return &next->second;
}

/* Returns the kind of the memory, or -1 for pageable host memory. Aborts if the
 * bytes extend beyond a block. */
int kind_of(const void *at, size_t bytes, const char *what)
{
    std::lock_guard<std::mutex> hold(lock);
    uintptr_t start, first = (uintptr_t)at;
    const memory_block *b = find(at, &start);
    if (b == nullptr)
    {
        auto next = blocks().upper_bound(first);
        if (next != blocks().end() && next->first < first + bytes &&
            next->second.kind == DEVICE)
            die("%s: %zu bytes at %p overlap device memory", what, bytes, at);
        return -1;
    }
    if (first + bytes > start + b->bytes && b->kind != REGISTERED)
        die("%s: %zu bytes at %p, but the block ends after %zu", what, bytes,
            at, (size_t)(start + b->bytes - first));
    return b->kind;
}

size_t in_use(const device &d)
{
    size_t bytes = d.plain;
    for (const oj_host_pool *pool : d.pools)
        bytes += pool->reserved;
    return bytes;
}

cudaError_t get(void **out, size_t bytes, int ordinal, enum memory_kind kind,
                oj_host_pool *pool)
{
    device &d = device_at(ordinal);
    void *memory = nullptr;
    std::lock_guard<std::mutex> hold(lock);
    if (!may_take())
        return cudaErrorMemoryAllocation;
    if (kind == DEVICE)
    {
        size_t idle = pool != nullptr ? pool->reserved - pool->used : 0;
        size_t more = bytes > idle ? bytes - idle : 0;
        if (bytes > d.total || in_use(d) + more > d.total)
            return cudaErrorMemoryAllocation;
    }
    if (posix_memalign(&memory, ALIGNMENT, bytes + FENCE) != 0)
        return cudaErrorMemoryAllocation;
    memset(memory, (int)poison(), bytes + FENCE);
    if (kind == DEVICE && pool == nullptr)
        d.plain += bytes;
    if (pool != nullptr)
    {
        pool->used += bytes;
        pool->reserved = std::max(pool->reserved, pool->used);
    }
    blocks()[(uintptr_t)memory] = {bytes, kind, ordinal, pool};
    holds(kind == DEVICE ? DEVICE_MEMORY : PINNED_MEMORY, 1);
    *out = memory;
    return cudaSuccess;
}

void give_back(void *memory, enum memory_kind kind)
{
    std::lock_guard<std::mutex> hold(lock);
    auto at = blocks().find((uintptr_t)memory);
    if (at == blocks().end() || at->second.kind != kind)
        die("memory at %p is freed, but not allocated", memory);
    memory_block b = at->second;
    for (size_t i = 0; i < FENCE; i++)
    {
        if (((unsigned char *)memory)[b.bytes + i] != poison())
            die("a byte was written %zu bytes behind the %zu bytes at %p", i,
                b.bytes, memory);
    }
    if (b.kind == DEVICE && b.pool == nullptr)
        device_at(b.device).plain -= b.bytes;
    if (b.pool != nullptr)
    {
        b.pool->used -= b.bytes;
        b.pool->reserved = std::max(
            b.pool->used,
            (size_t)std::min(b.pool->keeps, (uint64_t)b.pool->reserved));
    }
    blocks().erase(at);
    holds(kind == DEVICE ? DEVICE_MEMORY : PINNED_MEMORY, -1);
    memset(memory, (int)poison(), b.bytes);
    free(memory);
}
} // namespace

void must_be_device(const void *at, size_t bytes, const char *what)
{
    if (bytes > 0 && kind_of(at, bytes, what) != DEVICE)
        die("%s: %p is not device memory", what, at);
}

void must_hold_nothing(int ordinal)
{
    std::lock_guard<std::mutex> hold(lock);
    size_t bytes = 0;
    int n = 0;
    for (const auto &b : blocks())
    {
        if (b.second.kind != DEVICE || b.second.device != ordinal ||
            b.second.is_callers)
            continue;
        bytes += b.second.bytes;
        n++;
    }
    if (n > 0)
        die("%zu bytes in %d blocks of device %d are not freed when its last "
            "stream is destroyed",
            bytes, n, ordinal);
}
} // namespace oj_host

using namespace oj_host;

/* --- device memory -------------------------------------------------------- */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    device &d = device_at(current_device());
    std::lock_guard<std::mutex> hold(lock);
    *total_bytes = d.total;
    *free_bytes = d.total - in_use(d);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    if (bytes == 0)
    {
        *out = nullptr;
        return cudaSuccess;
    }
    return record_error(get(out, bytes, current_device(), DEVICE, nullptr));
}

cudaError_t cudaFree(void *memory)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    drain_device(current_device());
    if (memory != nullptr)
        give_back(memory, DEVICE);
    return record_error(lost());
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes,
                                    cudaMemPool_t pool, cudaStream_t stream)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    if (stream_or_default(stream)->device != pool->device)
        return record_error(cudaErrorInvalidValue);
    return record_error(get(out, bytes, pool->device, DEVICE, pool));
}

/* Frees in stream order. Freed memory is overwritten. So work of another stream
 * that should have waited for this stream reads wrong values. */
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    return record_error(enqueue(stream, [=] { give_back(memory, DEVICE); }));
}

/* --- pools ---------------------------------------------------------------- */

cudaError_t cudaMemPoolCreate(cudaMemPool_t *out,
                              const struct cudaMemPoolProps *properties)
{
    int ordinal = properties->location.id;
    device &d = device_at(ordinal);
    std::lock_guard<std::mutex> hold(lock);
    *out = new oj_host_pool{ordinal, 0, 0, 0};
    d.pools.push_back(*out);
    return record_error(lost());
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    device &d = device_at(pool->device);
    std::lock_guard<std::mutex> hold(lock);
    if (pool->used > 0)
        die("a pool is destroyed while %zu of its bytes are allocated",
            pool->used);
    d.pools.erase(std::find(d.pools.begin(), d.pools.end(), pool));
    delete pool;
    return record_error(lost());
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr,
                                    void *value)
{
    std::lock_guard<std::mutex> hold(lock);
    memcpy(&pool->keeps, value, sizeof pool->keeps);
    return record_error(lost());
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool,
                                    enum cudaMemPoolAttr what, void *value)
{
    std::lock_guard<std::mutex> hold(lock);
    uint64_t v = what == cudaMemPoolAttrReservedMemCurrent ? pool->reserved
                 : what == cudaMemPoolAttrUsedMemCurrent   ? pool->used
                                                           : pool->keeps;
    memcpy(value, &v, sizeof v);
    return record_error(lost());
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    std::lock_guard<std::mutex> hold(lock);
    pool->reserved = std::max(pool->used, std::min(pool->reserved, keep));
    return record_error(lost());
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t,
                                 const struct cudaMemAccessDesc *, size_t)
{
    return record_error(lost());
}

/* --- host memory ---------------------------------------------------------- */

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    return record_error(get(out, bytes, current_device(), PINNED, nullptr));
}

cudaError_t cudaFreeHost(void *memory)
{
    give_back(memory, PINNED);
    return record_error(lost());
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
    uintptr_t start;
    if (lost() != cudaSuccess)
        return record_error(lost());
    std::lock_guard<std::mutex> hold(lock);
    if (memory == nullptr || bytes == 0)
        return record_error(cudaErrorInvalidValue);
    if (find(memory, &start) != nullptr)
        return record_error(cudaErrorHostMemoryAlreadyRegistered);
    if (!may_take())
        return record_error(cudaErrorMemoryAllocation);
    blocks()[(uintptr_t)memory] = {bytes, REGISTERED, 0, nullptr};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    std::lock_guard<std::mutex> hold(lock);
    auto at = blocks().find((uintptr_t)memory);
    if (at == blocks().end() || at->second.kind != REGISTERED)
        die("memory at %p is not registered", memory);
    blocks().erase(at);
    return record_error(lost());
}

cudaError_t cudaHostGetDevicePointer(void **out, void *memory, unsigned)
{
    *out = memory;
    return record_error(lost());
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out,
                                     const void *at)
{
    uintptr_t start;
    std::lock_guard<std::mutex> hold(lock);
    const memory_block *b = find(at, &start);
    out->type = b == nullptr        ? cudaMemoryTypeUnregistered
                : b->kind == DEVICE ? cudaMemoryTypeDevice
                                    : cudaMemoryTypeHost;
    out->device = b != nullptr ? b->device : -1;
    return record_error(lost());
}

/* --- copies --------------------------------------------------------------- */

static std::atomic<int64_t> n_copied; /* bytes between devices and the host */

int64_t oj_host_copied(void)
{
    return n_copied;
}

static void check_sides(const void *to, const void *from, size_t bytes,
                        enum cudaMemcpyKind kind)
{
    int to_device = kind_of(to, bytes, "a copy to") == DEVICE;
    int from_device = kind_of(from, bytes, "a copy from") == DEVICE;
    n_copied += to_device != from_device ? (int64_t)bytes : 0;
    if (kind == cudaMemcpyDefault)
        return;
    if (to_device != (kind == cudaMemcpyHostToDevice ||
                      kind == cudaMemcpyDeviceToDevice) ||
        from_device != (kind == cudaMemcpyDeviceToHost ||
                        kind == cudaMemcpyDeviceToDevice))
        die("a copy of %zu bytes from %p to %p has the wrong direction %d",
            bytes, from, to, (int)kind);
}

/* Like CUDA's. When it returns, pageable memory has been read or written.
 * Pinned memory is accessed when the stream reaches the copy. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    if (bytes == 0)
        return cudaSuccess;
    check_sides(to, from, bytes, kind);
    if (kind_of(from, bytes, "a copy from") < 0)
    {
        auto held = std::make_shared<std::vector<char>>(
            (const char *)from, (const char *)from + bytes);
        return record_error(
            enqueue(stream, [=] { memcpy(to, held->data(), bytes); }));
    }
    enqueue(stream, [=] { memmove(to, from, bytes); });
    if (kind_of(to, bytes, "a copy to") < 0)
        drain(stream_or_default(stream));
    return record_error(lost());
}

/* Copies in stream order, as between devices without a link. */
cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int,
                                size_t bytes, cudaStream_t stream)
{
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(nullptr);
    return error;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if (width > to_pitch || width > from_pitch)
        return record_error(cudaErrorInvalidPitchValue);
    for (size_t i = 0; i < height; i++)
    {
        cudaError_t error = cudaMemcpyAsync((char *)to + i * to_pitch,
                                            (const char *)from + i * from_pitch,
                                            width, kind, stream);
        if (error != cudaSuccess)
            return error;
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    if (bytes == 0)
        return cudaSuccess;
    must_be_device(to, bytes, "filling memory");
    return record_error(enqueue(stream, [=] { memset(to, value, bytes); }));
}

/* --- memory of callers ----------------------------------------------------
 */

void *oj_host_take(int64_t bytes)
{
    void *memory = nullptr;
    if (cudaMalloc(&memory, (size_t)bytes) != cudaSuccess)
        return nullptr;
    std::lock_guard<std::mutex> hold(lock);
    blocks()[(uintptr_t)memory].is_callers = 1;
    holds(DEVICE_MEMORY, -1);
    return memory;
}

void oj_host_give_back(void *memory)
{
    holds(DEVICE_MEMORY, 1);
    (void)cudaFree(memory);
}
