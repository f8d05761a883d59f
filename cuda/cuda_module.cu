#include "foundations/index/cuda_index.h"

#include <stdio.h>

static int is_join_supported(const struct oj_relation *relation,
                             const struct oj_flat *join_side,
                             const struct oj_flat *input)
{
    return oj_cuda_index_choose_family(relation, join_side, input,
                                       OJ_CUDA_PAPERS) >= 0;
}

static const char *name_of_engine_for_join(const struct oj_gpu_index *index,
                                           const struct oj_relation *relation,
                                           const struct oj_flat *join_side,
                                           const struct oj_flat *input)
{
    int family = index != NULL
                     ? oj_cuda_index_chosen_family(index, input)
                     : oj_cuda_index_choose_family(relation, join_side, input,
                                                   OJ_CUDA_PAPERS);
    return family >= 0 ? oj_cuda_family_at(family)->name : "none";
}

static oj_status count_devices(int *n, struct oj_error *err)
{
    int seen = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&seen);
    if (error == cudaErrorInsufficientDriver &&
        cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    {
        (void)cudaGetLastError();
        return oj_fail(
            err, OJ_ERR_NO_DEVICE,
            "this machine has no NVIDIA driver: install one to use its GPU");
    }
    OJ_CUDA_TRY(error, "looking for devices", err);
    if (seen == 0)
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "CUDA finds no GPU: see what nvidia-smi lists and "
                       "CUDA_VISIBLE_DEVICES allows");
    *n = seen < OJ_GPU_MAX_DEVICES ? seen : OJ_GPU_MAX_DEVICES;
    return OJ_OK;
}

static __global__ void empty_kernel(void)
{
}

/* Sets out->free_bytes of the device `ordinal`. Returns an error if device
 * memory or a kernel cannot be used on it. */
static cudaError_t probe_memory_and_kernel(int ordinal,
                                           struct oj_gpu_device *out)
{
    struct cudaFuncAttributes attributes;
    size_t free_bytes = 0, total_bytes = 0;
    cudaError_t error = cudaSetDevice(ordinal);
    if (error == cudaSuccess)
        error = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&attributes, (const void *)empty_kernel);
    out->free_bytes = (int64_t)free_bytes;
    return error;
}

/* Fills in the properties of device->ordinal, or device->why_not if this device
 * cannot be used. Call it from a thread of the module (cuda_host_threads.h). */
static void probe_device(struct oj_gpu_device *device)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device->ordinal);
    snprintf(device->name, sizeof device->name, "unknown");
    if (error == cudaSuccess)
    {
        snprintf(device->name, sizeof device->name, "%.127s", properties.name);
        device->major = properties.major;
        device->minor = properties.minor;
        device->total_bytes = (int64_t)properties.totalGlobalMem;
        device->n_processors = properties.multiProcessorCount;
        error = probe_memory_and_kernel(device->ordinal, device);
    }
    if (error == cudaSuccess)
        return;
    (void)cudaGetLastError();
    snprintf(device->why_not, sizeof device->why_not, "%s",
             cudaGetErrorString(error));
}

static oj_status describe_device(int ordinal, struct oj_gpu_device *out,
                                 struct oj_error *err)
{
    struct oj_gpu_device device = {};
    int n = 0;
    OJ_TRY(count_devices(&n, err));
    if (ordinal < 0 || ordinal >= n)
        return oj_fail(err, OJ_ERR_NO_DEVICE,
                       "there is no GPU %d: ogrjoin --devices lists the GPUs",
                       ordinal);
    device.ordinal = ordinal;
    oj_cuda_threads_run_one_on_module([&]() { probe_device(&device); });
    *out = device;
    return OJ_OK;
}

#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x

static const struct oj_gpu_module module = {
    OJ_GPU_ABI,
    "CUDA " TEXT(__CUDACC_VER_MAJOR__) "." TEXT(
        __CUDACC_VER_MINOR__) ", " OJ_CUDA_ARCHITECTURES,
    count_devices,
    describe_device,
    is_join_supported,
    name_of_engine_for_join,
    oj_cuda_index_make,
    oj_cuda_index_make_of_papers,
    oj_cuda_index_join,
    oj_cuda_index_sum_pairs,
    oj_cuda_index_free,
    oj_cuda_index_why_refused,
    oj_cuda_screen_index,
    oj_cuda_screen_find,
    oj_cuda_screen_free,
    oj_cuda_quadrant_index,
    oj_cuda_quadrant_join,
    oj_cuda_quadrant_free,
    oj_cuda_index_make_resident,
    oj_cuda_index_join_resident,
    oj_cuda_index_free_resident,
    oj_cuda_resident_device_of_array,
    oj_cuda_resident_make_stream_wait,
    oj_cuda_live_new,
    oj_cuda_live_apply,
    oj_cuda_live_join,
    oj_cuda_live_points,
    oj_cuda_live_count,
    oj_cuda_live_free,
};

extern "C" OJ_EXPORT const struct oj_gpu_module *oj_gpu_module(uint32_t abi)
{
    return abi == OJ_GPU_ABI ? &module : NULL;
}
