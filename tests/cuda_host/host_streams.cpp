/* Devices, streams and events. OJ_CUDA_HOST_DEVICES=n is the number of devices.
 * With OJ_CUDA_HOST_STREAMS=threads each stream has a thread, which runs its
 * work later; otherwise work runs when it is enqueued. */
#include "host_state.h"

#include <chrono>

struct oj_host_event
{
    int device;
    int has_time;
    struct progress
    {
        std::mutex lock;
        std::condition_variable changed;
        uint64_t n_recorded = 0, n_finished = 0;
        std::chrono::steady_clock::time_point at;
    };
    std::shared_ptr<progress>
        state; /* shared: an enqueued record may outlive the event */
};

namespace oj_host
{
namespace
{
enum
{
    MOST_DEVICES = 16,
    MOST_BLOCK = 1024,
    MOST_GRID_Y = 65535
};

thread_local int chosen;
thread_local cudaError_t last;
std::mutex devices_lock;

int has_threads(void)
{
    static const char *text = getenv("OJ_CUDA_HOST_STREAMS");
    return text != nullptr && strcmp(text, "threads") == 0;
}

int count_devices(void)
{
    static const int n = (int)setting("OJ_CUDA_HOST_DEVICES", 1);
    return n < MOST_DEVICES ? n : (int)MOST_DEVICES;
}

void serve(oj_host_stream *stream)
{
    std::unique_lock<std::mutex> hold(stream->lock);
    for (;;)
    {
        stream->changed.wait(
            hold, [=] { return stream->closes || !stream->work.empty(); });
        if (stream->work.empty())
            return;
        std::function<void()> work = std::move(stream->work.front());
        stream->work.pop();
        hold.unlock();
        chosen = stream->device;
        work();
        hold.lock();
        stream->n_finished++;
        stream->changed.notify_all();
    }
}

oj_host_stream *make_stream(int ordinal)
{
    oj_host_stream *stream = new oj_host_stream();
    stream->device = ordinal;
    if (has_threads())
        stream->thread = std::thread(serve, stream);
    return stream;
}
} // namespace

int64_t setting(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text != nullptr && *text != '\0' ? atoll(text) : otherwise;
}

cudaError_t record_error(cudaError_t error)
{
    if (error != cudaSuccess)
        last = error;
    return error;
}

int current_device(void)
{
    return chosen;
}

/* Returns a device. Devices are never freed, because other threads may still
 * use them when the process ends. */
device &device_at(int ordinal)
{
    static device *all[MOST_DEVICES];
    std::lock_guard<std::mutex> hold(devices_lock);
    if (all[ordinal] == nullptr)
    {
        all[ordinal] = new device();
        all[ordinal]->total = (size_t)setting("OJ_CUDA_HOST_MEMORY", 4096)
                              << 20;
        all[ordinal]->stream = make_stream(ordinal);
    }
    return *all[ordinal];
}

int any_device_is_lost(void)
{
    for (int i = 0; i < count_devices(); i++)
    {
        if (device_at(i).lost != cudaSuccess)
            return 1;
    }
    return 0;
}

cudaError_t lost(void)
{
    if (chosen >= count_devices())
        return cudaErrorNoDevice;
    return (cudaError_t)device_at(chosen).lost.load();
}

oj_host_stream *stream_or_default(cudaStream_t stream)
{
    /* Stream handles up to this one, cudaStreamPerThread, mean default streams:
     * 0, 1 (cudaStreamLegacy) and 2. */
    const uintptr_t per_thread = 2;
    return (uintptr_t)stream > per_thread ? stream : device_at(chosen).stream;
}

void drain(oj_host_stream *stream)
{
    std::unique_lock<std::mutex> hold(stream->lock);
    uint64_t n = stream->n_enqueued;
    stream->changed.wait(hold, [=] { return stream->n_finished >= n; });
}

void drain_device(int ordinal)
{
    device &d = device_at(ordinal);
    std::vector<oj_host_stream *> streams;
    {
        std::lock_guard<std::mutex> hold(devices_lock);
        streams = d.streams;
        for (oj_host_stream *stream : streams)
            stream->n_waiting++;
    }
    drain(d.stream);
    for (oj_host_stream *stream : streams)
    {
        drain(stream);
        stream->n_waiting--;
    }
}

cudaError_t enqueue(cudaStream_t name, std::function<void()> work)
{
    oj_host_stream *stream = stream_or_default(name);
    std::lock_guard<std::mutex> hold(stream->lock);
    stream->n_enqueued++;
    if (stream->thread.joinable())
    {
        stream->work.push(std::move(work));
        stream->changed.notify_all();
        return cudaSuccess;
    }
    work();
    stream->n_finished++;
    return cudaSuccess;
}

void enqueue_kernel(const launch_shape &shape, std::function<void()> body)
{
    uint64_t block = (uint64_t)shape.block.x * shape.block.y * shape.block.z;
    static const int64_t traces = setting("OJ_CUDA_HOST_TRACE", 0);
    int ordinal = chosen;
    if (record_error(lost()) != cudaSuccess)
        return;
    if (traces)
        fprintf(stderr, "%s<<<(%u, %u), %u>>>\n", shape.kernel, shape.grid.x,
                shape.grid.y, shape.block.x);
    if (stream_or_default(shape.stream)->device != ordinal)
    {
        record_error(cudaErrorInvalidResourceHandle);
        return;
    }
    if (shape.grid.x == 0 || shape.grid.x > INT32_MAX || shape.grid.y == 0 ||
        shape.grid.y > MOST_GRID_Y || shape.grid.z == 0 ||
        shape.grid.z > MOST_GRID_Y || block == 0 || block > MOST_BLOCK)
    {
        record_error(cudaErrorInvalidConfiguration);
        return;
    }
    enqueue(shape.stream,
            [=]
            {
                device &d = device_at(ordinal);
                if (d.lost == cudaSuccess && !run_blocks(shape, body))
                    d.lost = cudaErrorIllegalAddress;
            });
}
} // namespace oj_host

using namespace oj_host;

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error)
    {
#define OJ_HOST_CASE(name, text)                                               \
    case name:                                                                 \
        return text;
        OJ_HOST_ERRORS(OJ_HOST_CASE)
#undef OJ_HOST_CASE
    }
    return "unrecognized error code";
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last;
    if (count_devices() > 0 && lost() != cudaSuccess)
        return lost();
    last = cudaSuccess;
    return error;
}

/* --- devices -------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = count_devices();
    return record_error(*n > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 12000;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal)
{
    if (ordinal < 0 || ordinal >= count_devices())
        return record_error(cudaErrorInvalidDevice);
    chosen = ordinal;
    return record_error(lost());
}

cudaError_t cudaGetDevice(int *ordinal)
{
    *ordinal = chosen;
    return record_error(lost());
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int, int)
{
    *can = 1;
    return record_error(lost());
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (lost() == cudaSuccess)
        drain_device(chosen);
    return record_error(lost());
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int ordinal)
{
    if (ordinal < 0 || ordinal >= count_devices())
        return record_error(cudaErrorInvalidDevice);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "emulated device");
    out->totalGlobalMem = device_at(ordinal).total;
    out->major = 9;
    cudaDeviceGetAttribute(&out->multiProcessorCount,
                           cudaDevAttrMultiProcessorCount, ordinal);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr what, int)
{
    *out = what == cudaDevAttrMultiProcessorCount
               ? (int)setting("OJ_CUDA_HOST_PROCESSORS", 4)
           : what == cudaDevAttrComputeCapabilityMajor ? 9
                                                       : 1;
    return record_error(lost());
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *)
{
    out->numRegs = 0;
    return record_error(lost());
}

/* --- streams -------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    if (!may_take())
        return record_error(cudaErrorMemoryAllocation);
    device &d = device_at(chosen);
    *out = make_stream(chosen);
    holds(STREAM, 1);
    std::lock_guard<std::mutex> hold(devices_lock);
    d.streams.push_back(*out);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    int ordinal = stream->device;
    bool is_last;
    device &d = device_at(ordinal);
    {
        std::lock_guard<std::mutex> hold(devices_lock);
        auto at = std::find(d.streams.begin(), d.streams.end(), stream);
        if (at == d.streams.end())
            die("a stream is destroyed that does not exist");
        d.streams.erase(at);
        is_last = d.streams.empty();
    }
    if (stream->thread.joinable())
    {
        {
            std::lock_guard<std::mutex> hold(stream->lock);
            stream->closes = 1;
            stream->changed.notify_all();
        }
        stream->thread.join();
    }
    while (stream->n_waiting > 0)
        std::this_thread::yield();
    delete stream;
    holds(STREAM, -1);
    if (is_last && d.lost == cudaSuccess)
        must_hold_nothing(ordinal);
    return record_error(lost());
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (lost() == cudaSuccess)
        drain(stream_or_default(stream));
    return record_error(lost());
}

/* Waits for the stream instead of polling it. So the result is never
 * cudaErrorNotReady. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return cudaStreamSynchronize(stream);
}

/* --- events --------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    if (lost() != cudaSuccess)
        return record_error(lost());
    if (!may_take())
        return record_error(cudaErrorMemoryAllocation);
    holds(EVENT, 1);
    *out = new oj_host_event;
    (*out)->device = chosen;
    (*out)->has_time = (flags & cudaEventDisableTiming) == 0;
    (*out)->state = std::make_shared<oj_host_event::progress>();
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    holds(EVENT, -1);
    delete event;
    return record_error(lost());
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    std::shared_ptr<oj_host_event::progress> state = event->state;
    uint64_t n;
    if (lost() != cudaSuccess)
        return record_error(lost());
    if (stream_or_default(stream)->device != event->device)
        return record_error(cudaErrorInvalidResourceHandle);
    {
        std::lock_guard<std::mutex> hold(state->lock);
        n = ++state->n_recorded;
    }
    return enqueue(stream,
                   [=]
                   {
                       std::lock_guard<std::mutex> hold(state->lock);
                       state->n_finished = n;
                       state->at = std::chrono::steady_clock::now();
                       state->changed.notify_all();
                   });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    oj_host_event::progress *state = event->state.get();
    if (lost() != cudaSuccess)
        return record_error(lost());
    std::unique_lock<std::mutex> hold(state->lock);
    uint64_t n = state->n_recorded;
    state->changed.wait(hold, [=] { return state->n_finished >= n; });
    return record_error(lost());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags)
{
    std::shared_ptr<oj_host_event::progress> state = event->state;
    uint64_t n;
    (void)flags;
    if (lost() != cudaSuccess)
        return record_error(lost());
    {
        std::lock_guard<std::mutex> hold(state->lock);
        n = state->n_recorded;
    }
    return enqueue(stream,
                   [=]
                   {
                       std::unique_lock<std::mutex> hold(state->lock);
                       state->changed.wait(hold, [=]
                                           { return state->n_finished >= n; });
                   });
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    oj_host_event::progress *a = start->state.get(), *b = end->state.get();
    if (!start->has_time || !end->has_time)
        return record_error(cudaErrorInvalidResourceHandle);
    std::scoped_lock hold(a->lock, b->lock);
    if (a->n_recorded == 0 || b->n_recorded == 0)
        return record_error(cudaErrorInvalidResourceHandle);
    if (a->n_finished < a->n_recorded || b->n_finished < b->n_recorded)
        return record_error(cudaErrorNotReady);
    *ms = std::chrono::duration<float, std::milli>(b->at - a->at).count();
    return record_error(lost());
}
