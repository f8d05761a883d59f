/** State of the emulated runtime: devices, streams and memory. */
#ifndef OJ_HOST_STATE_H
#define OJ_HOST_STATE_H

#include "cuda_runtime.h"

/** A queue of work. It runs on the thread that enqueues it, or on a thread of
 *  the stream. */
struct oj_host_stream
{
    int device;
    std::mutex lock;
    std::condition_variable changed;
    std::queue<std::function<void()>> work;
    uint64_t n_enqueued, n_finished;
    std::atomic<int> n_waiting{0}; /**< number of threads in drain_device() */
    int closes;                    /**< 1: the stream is being destroyed */
    std::thread thread; /**< not joinable if work runs when it is enqueued */
};

namespace oj_host
{
struct device
{
    /** The permanent error (cudaError_t) of a lost device, otherwise
     *  cudaSuccess. */
    std::atomic<int> lost;
    oj_host_stream *stream; /**< the default stream */
    std::vector<oj_host_stream *> streams;
    size_t total, plain; /**< total: bytes of memory that the device has;
                              plain: bytes in use outside of pools */
    std::vector<oj_host_pool *> pools;
};

/** Stores the error for cudaGetLastError() and returns it. */
cudaError_t record_error(cudaError_t error);

int current_device(void);
device &device_at(int ordinal);

/** Returns the permanent error of the current device, or cudaSuccess. */
cudaError_t lost(void);

/** Waits for all work enqueued on stream. */
void drain(oj_host_stream *stream);
oj_host_stream *stream_or_default(cudaStream_t stream);

/** Waits for all streams of a device. */
void drain_device(int ordinal);

/** Kinds of resources that must be freed. */
enum thing
{
    DEVICE_MEMORY,
    PINNED_MEMORY,
    STREAM,
    EVENT,
    N_THINGS
};

/** Counts an allocation. Returns false if the allocation must fail, as if
 *  memory were missing. */
bool may_take(void);

/** Adds n, which may be negative, to the resources held. */
void holds(enum thing thing, int n);

/** Returns 1 if a device is lost, and its memory with it. */
int any_device_is_lost(void);

/** Aborts if memory of the device is still held. */
void must_hold_nothing(int ordinal);

/** Returns the number in an environment variable, or `otherwise` if it is not
 *  set. */
int64_t setting(const char *name, int64_t otherwise);
} // namespace oj_host

#endif
