/** What the emulated runtime knows of devices, streams and memory. */
#ifndef OJ_HOST_STATE_H
#define OJ_HOST_STATE_H

#include "cuda_runtime.h"

/** Work in order. Done by the thread that gives it, or by an own one. */
struct oj_host_stream
{
    int device;
    std::mutex lock;
    std::condition_variable changed;
    std::queue<std::function<void()>> work;
    uint64_t n_given, n_done;
    std::atomic<int> n_waiting{0}; /**< threads in drain_device() */
    int closes;
    std::thread thread; /**< not there: work is done at once */
};

namespace oj_host
{
struct device
{
    std::atomic<int> lost;  /**< a cudaError_t that stays */
    oj_host_stream *stream; /**< that without a name */
    std::vector<oj_host_stream *> streams;
    size_t total, plain; /**< bytes; plain: of no pool */
    std::vector<oj_host_pool *> pools;
};

/** Notes error for cudaGetLastError(). */
cudaError_t told(cudaError_t error);

int current_device(void);
device &device_at(int ordinal);

/** The error that stays with the current device, or cudaSuccess. */
cudaError_t lost(void);

/** Waits for all that was given to stream. */
void drain(oj_host_stream *stream);
oj_host_stream *stream_or_default(cudaStream_t stream);

/** Waits for all streams of a device. */
void drain_device(int ordinal);

/** Things that are taken and have to be given back. */
enum thing
{
    DEVICE_MEMORY,
    PINNED_MEMORY,
    STREAM,
    EVENT,
    N_THINGS
};

/** Counts one more taking; false: it is to fail, as for lack of memory. */
bool may_take(void);

/** n more are held, or fewer. */
void holds(enum thing thing, int n);

/** 1 when a device is lost, and its memory with it. */
int any_device_is_lost(void);

/** Ends the process when memory of the device is held. */
void must_hold_nothing(int ordinal);

/** A number of the environment. */
int64_t setting(const char *name, int64_t otherwise);
} // namespace oj_host

#endif
