/** Work on streams. rewrite.py turns kernel<<<grid, block, ...>>>(arguments)
 *  into a call of oj_host::launch("kernel", kernel, grid, block,
 *  ...)(arguments). */
#ifndef OJ_HOST_LAUNCH_H
#define OJ_HOST_LAUNCH_H

namespace oj_host
{
struct launch_shape
{
    const char *kernel;
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

/** Enqueues work on stream. The work runs before enqueue() returns, or later,
 *  depending on OJ_CUDA_HOST_STREAMS. */
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

/** Enqueues body, to be run once per thread of shape. */
void enqueue_kernel(const launch_shape &shape, std::function<void()> body);

/** Runs body now, once per thread of shape. Returns 0 if a thread has accessed
 *  invalid memory. */
int run_blocks(const launch_shape &shape, const std::function<void()> &body);

/** Aborts unless [at, at + bytes) is device memory. `what` names the memory in
 *  the message. */
void must_be_device(const void *at, size_t bytes, const char *what);

template <typename... P> struct launcher
{
    launch_shape shape;
    void (*kernel)(P...);

    void operator()(P... arguments) const
    {
        std::tuple<P...> held(arguments...);
        enqueue_kernel(shape,
                       [kernel = kernel, held] { std::apply(kernel, held); });
    }
};

template <typename... P>
launcher<P...> launch(const char *name, void (*kernel)(P...), dim3 grid,
                      dim3 block, size_t shared = 0,
                      cudaStream_t stream = nullptr)
{
    return {{name, grid, block, shared, stream}, kernel};
}
} // namespace oj_host

#endif
