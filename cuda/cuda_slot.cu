#include "cuda_slot.h"

#include <pthread.h>
#include <string.h>

/* Pinned memory costs 0.6 s per GB to get: what one join has done with is kept
 * for the next. */
enum
{
    MOST_KEPT = 64
};

static const int64_t most_kept_bytes = (int64_t)512 << 20;

/* The counter's place lies behind the rows, which need 8-byte steps only. */
#define COUNTER_BYTES 64

/* Sizes are powers of two and the counter, so that blocks fit again. */
static const int64_t least_stage = (64 << 10) + COUNTER_BYTES;

struct kept
{
    char *memory;
    int64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept kept[MOST_KEPT];
static int n_kept;
static int64_t kept_bytes;

/* A block of at least so many bytes, and not much larger. */
static char *take_kept(int64_t bytes, int64_t *got)
{
    char *memory = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_kept && memory == NULL; i++)
    {
        if (kept[i].bytes < bytes || kept[i].bytes > 4 * bytes)
            continue;
        memory = kept[i].memory;
        *got = kept[i].bytes;
        kept_bytes -= kept[i].bytes;
        kept[i] = kept[--n_kept];
    }
    pthread_mutex_unlock(&lock);
    return memory;
}

static void give_stage(char *memory, int64_t bytes)
{
    int keeps;
    if (memory == NULL)
        return;
    pthread_mutex_lock(&lock);
    keeps = n_kept < MOST_KEPT && kept_bytes + bytes <= most_kept_bytes;
    if (keeps)
    {
        kept[n_kept].memory = memory;
        kept[n_kept++].bytes = bytes;
        kept_bytes += bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!keeps)
        (void)cudaFreeHost(memory);
    (void)cudaGetLastError();
}

static oj_status take_stage(int64_t bytes, struct oj_cuda_slot *slot,
                            struct oj_error *err)
{
    void *memory = NULL;
    int64_t got;
    cudaError_t error;
    if (slot->stage_bytes >= bytes)
        return OJ_OK;
    got = least_stage;
    while (got < bytes)
        got = 2 * (got - COUNTER_BYTES) + COUNTER_BYTES;
    bytes = got;
    give_stage(slot->stage, slot->stage_bytes);
    slot->stage_bytes = 0;
    slot->stage = take_kept(bytes, &got);
    if (slot->stage == NULL)
    {
        error = cudaHostAlloc(&memory, (size_t)bytes, cudaHostAllocPortable);
        if (error != cudaSuccess)
        {
            (void)cudaGetLastError();
            return oj_fail(err, OJ_ERR_NOMEM,
                           "%.1f MB of pinned memory are not to be had: %s",
                           (double)bytes / 1048576.0,
                           cudaGetErrorString(error));
        }
        slot->stage = (char *)memory;
    }
    slot->stage_bytes = got;
    return OJ_OK;
}

static void drop_arrays(struct oj_cuda_slot *slot)
{
    oj_cuda_drop(slot->device, slot->stream, &slot->d_x);
    oj_cuda_drop(slot->device, slot->stream, &slot->d_y);
    oj_cuda_drop(slot->device, slot->stream, &slot->d_measure);
    oj_cuda_drop(slot->device, slot->stream, &slot->d_row);
    oj_cuda_drop(slot->device, slot->stream, &slot->d_fid);
    oj_cuda_drop(slot->device, slot->stream, &slot->d_on_class);
    oj_cuda_drop(slot->device, slot->stream, &slot->d_exclude_class);
    oj_cuda_drop(slot->device, slot->stream, &slot->d_max_distance);
    slot->n_rows = 0;
}

static oj_status make_arrays(struct oj_cuda_slot *slot, int64_t n,
                             struct oj_error *err)
{
    struct oj_cuda_device *device = slot->device;
    if (n <= slot->n_rows)
        return OJ_OK;
    drop_arrays(slot);
    OJ_TRY(oj_cuda_make(device, slot->stream, n, &slot->d_x, err));
    OJ_TRY(oj_cuda_make(device, slot->stream, n, &slot->d_y, err));
    OJ_TRY(oj_cuda_make(device, slot->stream, n, &slot->d_measure, err));
    OJ_TRY(oj_cuda_make(device, slot->stream, n, &slot->d_row, err));
    slot->n_rows = n;
    return OJ_OK;
}

oj_status oj_cuda_slot_make(struct oj_cuda_device *device, int64_t n_rows,
                            int staged, struct oj_cuda_slot *slot,
                            struct oj_error *err)
{
    int64_t rows_bytes = staged ? n_rows * OJ_CUDA_STAGE_ROW_BYTES : 0;
    slot->device = device;
    if (slot->stream == NULL)
        OJ_CUDA_TRY(
            cudaStreamCreateWithFlags(&slot->stream, cudaStreamNonBlocking),
            "making a stream", err);
    if (slot->done == NULL)
        OJ_CUDA_TRY(
            cudaEventCreateWithFlags(&slot->done, cudaEventBlockingSync |
                                                      cudaEventDisableTiming),
            "making an event", err);
    if (slot->d_matched.n == 0)
        OJ_TRY(oj_cuda_make(device, slot->stream, 1, &slot->d_matched, err));
    OJ_TRY(make_arrays(slot, n_rows, err));
    OJ_TRY(take_stage(rows_bytes + COUNTER_BYTES, slot, err));
    slot->matched =
        (unsigned long long *)(void *)(slot->stage + slot->stage_bytes -
                                       COUNTER_BYTES);
    return OJ_OK;
}

void oj_cuda_slot_free(struct oj_cuda_slot *slot)
{
    if (slot->device == NULL)
        return;
    (void)cudaSetDevice(slot->device->ordinal);
    if (slot->stream != NULL)
    {
        drop_arrays(slot);
        oj_cuda_drop(slot->device, slot->stream, &slot->d_matched);
        (void)cudaStreamSynchronize(slot->stream);
        (void)cudaStreamDestroy(slot->stream);
    }
    if (slot->done != NULL)
        (void)cudaEventDestroy(slot->done);
    (void)cudaGetLastError();
    give_stage(slot->stage, slot->stage_bytes);
    memset(slot, 0, sizeof *slot);
}

/* host NULL: the input has no such column. */
template <typename T>
static oj_status
copy_column(struct oj_cuda_slot *slot, const T *host, int64_t first, int64_t n,
            struct oj_cuda_array<T> *to, const T **out, struct oj_error *err)
{
    *out = NULL;
    if (host == NULL || n == 0)
        return OJ_OK;
    if (to->n < n)
    {
        oj_cuda_drop(slot->device, slot->stream, to);
        OJ_TRY(oj_cuda_make(slot->device, slot->stream,
                            n > slot->n_rows ? n : slot->n_rows, to, err));
    }
    OJ_CUDA_TRY(cudaMemcpyAsync(to->data, host + first,
                                (size_t)n * sizeof *host,
                                cudaMemcpyHostToDevice, slot->stream),
                "copying columns of points", err);
    *out = to->data;
    return OJ_OK;
}

oj_status oj_cuda_slot_columns(struct oj_cuda_slot *slot,
                               const struct oj_flat *input, int asks_fids,
                               int64_t first, struct oj_cuda_points *points,
                               struct oj_error *err)
{
    int64_t n = points->n;
    OJ_TRY(copy_column(slot, asks_fids ? input->fid : NULL, first, n,
                       &slot->d_fid, &points->fid, err));
    OJ_TRY(copy_column(slot, input->on_class, first, n, &slot->d_on_class,
                       &points->on_class, err));
    OJ_TRY(copy_column(slot, input->exclude_class, first, n,
                       &slot->d_exclude_class, &points->exclude_class, err));
    return copy_column(slot, input->max_distance, first, n,
                       &slot->d_max_distance, &points->max_distance, err);
}

oj_status oj_cuda_slot_wait(struct oj_cuda_slot *slot, struct oj_error *err)
{
    OJ_CUDA_TRY(cudaEventRecord(slot->done, slot->stream), "joining", err);
    OJ_CUDA_TRY(cudaEventSynchronize(slot->done), "joining", err);
    return OJ_OK;
}

oj_status oj_cuda_slot_download(struct oj_cuda_slot *slot, void *to,
                                const void *from, int64_t bytes,
                                struct oj_error *err)
{
    int64_t room = slot->stage_bytes - COUNTER_BYTES;
    int direct = oj_cuda_is_pinned(to, bytes) || room <= 0;
    for (int64_t at = 0; at < bytes;)
    {
        int64_t n = direct || bytes - at < room ? bytes - at : room;
        char *target = direct ? (char *)to + at : slot->stage;
        OJ_CUDA_TRY(cudaMemcpyAsync(target, (const char *)from + at, (size_t)n,
                                    cudaMemcpyDeviceToHost, slot->stream),
                    "copying answers", err);
        OJ_TRY(oj_cuda_slot_wait(slot, err));
        if (!direct)
            memcpy((char *)to + at, slot->stage, (size_t)n);
        at += n;
    }
    return OJ_OK;
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
