#include "cuda_slot.h"

#include <string.h>

/* The counter's place lies behind the rows, which need 8-byte steps only. */
#define COUNTER_BYTES OJ_CUDA_STAGE_EXTRA

static void drop_arrays(struct oj_cuda_slot *slot)
{
    oj_cuda_drop(slot->device, slot->stream, &slot->d_x, &slot->d_y,
                 &slot->d_measure, &slot->d_row, &slot->d_fid,
                 &slot->d_on_class, &slot->d_exclude_class,
                 &slot->d_max_distance);
    slot->n_rows = 0;
}

static oj_status make_arrays(struct oj_cuda_slot *slot, int64_t n,
                             struct oj_error *err)
{
    struct oj_cuda_device *device = slot->device;
    if (n <= slot->n_rows)
        return OJ_OK;
    drop_arrays(slot);
    OJ_TRY(oj_cuda_make(device, slot->stream, n, &slot->d_x, &slot->d_y,
                        &slot->d_measure, &slot->d_row, err));
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
    if (slot->d_matched.n == 0)
        OJ_TRY(oj_cuda_make(device, slot->stream, 1, &slot->d_matched, err));
    OJ_TRY(make_arrays(slot, n_rows, err));
    OJ_TRY(oj_cuda_stage_want(&slot->stage, rows_bytes + COUNTER_BYTES, err));
    slot->matched =
        (unsigned long long *)(void *)(slot->stage.data + slot->stage.bytes -
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
        oj_cuda_values_drop(slot->device, slot->stream, &slot->values);
        (void)cudaStreamSynchronize(slot->stream);
        (void)cudaStreamDestroy(slot->stream);
    }
    (void)cudaGetLastError();
    oj_cuda_stage_drop(&slot->stage);
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
    OJ_CUDA_TRY(oj_cuda_wait(slot->stream), "joining", err);
    return OJ_OK;
}

int64_t oj_cuda_slot_room(const struct oj_cuda_slot *slot)
{
    return slot->stage.bytes - COUNTER_BYTES;
}

oj_status oj_cuda_slot_enqueue(struct oj_cuda_slot *slot, void *to,
                               const void *from, int64_t bytes,
                               struct oj_error *err)
{
    OJ_CUDA_TRY(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToHost,
                                slot->stream),
                "copying answers", err);
    return OJ_OK;
}

oj_status oj_cuda_slot_download(struct oj_cuda_slot *slot, void *to,
                                const void *from, int64_t bytes,
                                struct oj_error *err)
{
    int64_t room = oj_cuda_slot_room(slot);
    int direct = oj_cuda_is_pinned(to, bytes) || room <= 0;
    for (int64_t at = 0; at < bytes;)
    {
        int64_t n = direct || bytes - at < room ? bytes - at : room;
        char *target = direct ? (char *)to + at : slot->stage.data;
        OJ_TRY(oj_cuda_slot_enqueue(slot, target, (const char *)from + at, n,
                                    err));
        OJ_TRY(oj_cuda_slot_wait(slot, err));
        if (!direct)
            memcpy((char *)to + at, slot->stage.data, (size_t)n);
        at += n;
    }
    return OJ_OK;
}
