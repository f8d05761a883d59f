#include "cuda_values.h"

#include <string.h>

/* Where a load is: rows, and the stage's part that is still free. */
struct loading
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    int64_t first, n;
    char *free;
    struct oj_error *err;
};

/* Ordinary memory goes by way of the stage. */
template <typename T>
static oj_status load(struct loading *l, const T *host,
                      struct oj_cuda_array<T> *to, const T **out)
{
    int64_t bytes = l->n * (int64_t)sizeof(T);
    const void *from;
    *out = NULL;
    if (host == NULL)
        return OJ_OK;
    from = host + l->first;
    if (to->n < l->n)
    {
        oj_cuda_drop(l->device, l->stream, to);
        OJ_TRY(oj_cuda_make(l->device, l->stream, l->n, to, l->err));
    }
    if (!oj_cuda_is_pinned(from, bytes))
    {
        memcpy(l->free, from, (size_t)bytes);
        from = l->free;
        l->free += (bytes + 7) / 8 * 8;
    }
    OJ_CUDA_TRY(cudaMemcpyAsync(to->data, from, (size_t)bytes,
                                cudaMemcpyHostToDevice, l->stream),
                "copying values of points", l->err);
    *out = to->data;
    return OJ_OK;
}

static int64_t stage_bytes(const struct oj_sum_request *request, int64_t n)
{
    int64_t bytes = 0;
    for (int c = 0; c < request->n_columns; c++)
    {
        if (request->column[c].value != NULL)
            bytes += n * 8;
        if (request->column[c].is_null != NULL)
            bytes += n + 8;
    }
    return bytes;
}

oj_status oj_cuda_values_load(struct oj_cuda_device *device,
                              cudaStream_t stream,
                              const struct oj_sum_request *request,
                              int64_t first, int64_t n,
                              struct oj_cuda_values *values,
                              struct oj_sum_request *out, struct oj_error *err)
{
    struct loading l = {device, stream, first, n, NULL, err};
    OJ_TRY(oj_cuda_stage_want(&values->stage, stage_bytes(request, n), err));
    l.free = values->stage.data;
    *out = *request;
    for (int c = 0; n > 0 && c < request->n_columns; c++)
    {
        const struct oj_sum_column *column = &request->column[c];
        OJ_TRY(
            load(&l, column->value, &values->value[c], &out->column[c].value));
        OJ_TRY(load(&l, column->is_null, &values->is_null[c],
                    &out->column[c].is_null));
    }
    return OJ_OK;
}

void oj_cuda_values_drop(struct oj_cuda_device *device, cudaStream_t stream,
                         struct oj_cuda_values *values)
{
    for (int c = 0; c < OJ_SUM_MOST_COLUMNS; c++)
    {
        oj_cuda_drop(device, stream, &values->value[c], &values->is_null[c]);
    }
    oj_cuda_stage_drop(&values->stage);
}
