/** The part of CUDA's runtime API that the module uses, on the emulated
 *  device. */
#ifndef OJ_HOST_API_H
#define OJ_HOST_API_H

/* Error codes with CUDA's messages. Their values are arbitrary, except that of
 * success. */
#define OJ_HOST_ERRORS(E)                                                      \
    E(cudaSuccess, "no error")                                                 \
    E(cudaErrorInvalidValue, "invalid argument")                               \
    E(cudaErrorMemoryAllocation, "out of memory")                              \
    E(cudaErrorInitializationError, "initialization error")                    \
    E(cudaErrorInvalidConfiguration, "invalid configuration argument")         \
    E(cudaErrorInvalidPitchValue, "invalid pitch argument")                    \
    E(cudaErrorStubLibrary, "CUDA driver is a stub library")                   \
    E(cudaErrorInsufficientDriver, "CUDA driver version is insufficient")      \
    E(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy")       \
    E(cudaErrorNoDevice, "no CUDA-capable device is detected")                 \
    E(cudaErrorInvalidDevice, "invalid device ordinal")                        \
    E(cudaErrorNoKernelImageForDevice, "no kernel image is available")         \
    E(cudaErrorDeviceUninitialized, "invalid device context")                  \
    E(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")        \
    E(cudaErrorNvlinkUncorrectable, "uncorrectable NVLink error")              \
    E(cudaErrorInvalidResourceHandle, "invalid resource handle")               \
    E(cudaErrorNotReady, "device not ready")                                   \
    E(cudaErrorIllegalAddress, "an illegal memory access was encountered")     \
    E(cudaErrorHostMemoryAlreadyRegistered,                                    \
      "part or all of the requested memory range is already mapped")           \
    E(cudaErrorSystemNotReady, "system not yet initialized")                   \
    E(cudaErrorSystemDriverMismatch, "driver and runtime do not fit")          \
    E(cudaErrorCompatNotSupportedOnDevice, "compatibility mode not supported")

enum cudaError
{
#define OJ_HOST_NAME(name, text) name,
    OJ_HOST_ERRORS(OJ_HOST_NAME)
#undef OJ_HOST_NAME
};
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind
{
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};

enum cudaMemoryType
{
    cudaMemoryTypeUnregistered,
    cudaMemoryTypeHost,
    cudaMemoryTypeDevice,
    cudaMemoryTypeManaged
};

struct cudaPointerAttributes
{
    enum cudaMemoryType type;
    int device;
};

struct cudaDeviceProp
{
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount;
};

struct cudaFuncAttributes
{
    int numRegs;
};

enum cudaDeviceAttr
{
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrComputeCapabilityMajor,
    cudaDevAttrMemoryPoolsSupported
};

enum cudaMemAllocationType
{
    cudaMemAllocationTypePinned = 1
};
enum cudaMemAllocationHandleType
{
    cudaMemHandleTypeNone
};
enum cudaMemLocationType
{
    cudaMemLocationTypeDevice = 1
};
struct cudaMemPoolProps
{
    enum cudaMemAllocationType allocType;
    enum cudaMemAllocationHandleType handleTypes;
    struct
    {
        enum cudaMemLocationType type;
        int id;
    } location;
};
enum cudaMemAccessFlags
{
    cudaMemAccessFlagsProtReadWrite = 3
};
struct cudaMemAccessDesc
{
    struct
    {
        enum cudaMemLocationType type;
        int id;
    } location;
    enum cudaMemAccessFlags flags;
};
enum cudaMemPoolAttr
{
    cudaMemPoolAttrReleaseThreshold,
    cudaMemPoolAttrReservedMemCurrent,
    cudaMemPoolAttrUsedMemCurrent
};

#define cudaStreamNonBlocking 1u
#define cudaEventBlockingSync 1u
#define cudaEventDisableTiming 2u
#define cudaHostAllocPortable 1u
#define cudaHostRegisterPortable 1u

typedef struct oj_host_stream *cudaStream_t;
typedef struct oj_host_event *cudaEvent_t;
typedef struct oj_host_pool *cudaMemPool_t;

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);

cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device);
cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr what,
                                   int device);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out,
                                  const void *kernel);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes,
                                    cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *out,
                              const struct cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool,
                                    enum cudaMemPoolAttr what, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool,
                                    enum cudaMemPoolAttr what, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
                                 const struct cudaMemAccessDesc *access,
                                 size_t n);
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaHostGetDevicePointer(void **out, void *memory, unsigned flags);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out,
                                     const void *at);

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                int from_device, size_t bytes,
                                cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream);

#endif
