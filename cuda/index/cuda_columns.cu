#include "cuda_family.h"

#define BLOCK 256

int oj_cuda_asks_columns(const struct oj_relation *relation,
                         const struct oj_flat *join_side)
{
    return relation->exclude_self || relation->unordered_pairs != 0 ||
           relation->exclude_same_geometry || join_side->on_class != NULL ||
           join_side->exclude_class != NULL;
}

template <typename T>
static __global__ void gather(int64_t n, const int32_t *ordinal_of,
                              const T *from, T *to)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        to[i] = from[ordinal_of[i]];
}

/* A column by rank; host NULL: none. */
template <typename T>
static oj_status make_column(struct oj_cuda_device *device,
                             const struct oj_cuda_layer *layer, const T *host,
                             struct oj_cuda_array<T> *out, struct oj_error *err)
{
    cudaStream_t stream = device->stream;
    oj_cuda_array<T> raw = {NULL, 0};
    int64_t n = layer->n_features;
    cudaError_t error;
    oj_status status;
    if (host == NULL || n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_make(device, stream, n, &raw, err));
    error = cudaMemcpyAsync(raw.data, host, (size_t)n * sizeof *host,
                            cudaMemcpyHostToDevice, stream);
    if (layer->ordinal_of.n == 0)
        *out = raw;
    else
    {
        status = oj_cuda_make(device, stream, n, out, err);
        if (status == OJ_OK && error == cudaSuccess)
        {
            gather<T><<<oj_blocks(n, BLOCK), BLOCK, 0, stream>>>(
                n, layer->ordinal_of.data, raw.data, out->data);
            error = cudaGetLastError();
        }
        oj_cuda_drop(device, stream, &raw);
        OJ_TRY(status);
    }
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    OJ_CUDA_TRY(error, "copying columns of the join layer", err);
    return OJ_OK;
}

oj_status oj_cuda_columns_make(struct oj_cuda_device *device,
                               const struct oj_flat *flat,
                               const struct oj_relation *relation,
                               struct oj_cuda_layer *layer,
                               struct oj_error *err)
{
    struct oj_cuda_columns *columns = &layer->columns;
    if (relation->exclude_self || relation->unordered_pairs != 0)
        OJ_TRY(make_column(device, layer, flat->fid, &columns->fid, err));
    OJ_TRY(make_column(device, layer, flat->on_class, &columns->on_class, err));
    return make_column(device, layer, flat->exclude_class,
                       &columns->exclude_class, err);
}

void oj_cuda_columns_drop(struct oj_cuda_device *device,
                          struct oj_cuda_columns *columns)
{
    oj_cuda_drop(device, device->stream, &columns->fid, &columns->on_class,
                 &columns->exclude_class);
}
