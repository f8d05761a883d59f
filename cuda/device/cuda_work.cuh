/** A piece of work on a stream of a device: memory that goes back at its end
 *  whatever failed, calls of CUB, and kernels. */
#ifndef CUDA_WORK_CUH
#define CUDA_WORK_CUH

#include "cuda_parallel_for.cuh"

/** All is done in order of the stream. A failure of CUDA is one of `doing`. */
struct oj_cuda_work
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    const char *doing;
    struct oj_error *err;
    struct oj_cuda_memory memory;          /**< given back at the end */
    struct oj_cuda_array<uint8_t> scratch; /**< of calls of CUB, too */

    oj_cuda_work(struct oj_cuda_device *on, cudaStream_t in, const char *what,
                 struct oj_error *error)
        : device(on), stream(in), doing(what), err(error), memory(), scratch()
    {
    }
    /** A part of another, with memory of its own. */
    explicit oj_cuda_work(const oj_cuda_work *of)
        : oj_cuda_work(of->device, of->stream, of->doing, of->err)
    {
    }
    oj_cuda_work(const oj_cuda_work &) = delete;
    ~oj_cuda_work()
    {
        oj_cuda_drop(device, stream, &scratch);
        oj_cuda_release(device, stream, &memory);
    }

    OJ_MUST_USE oj_status check(cudaError_t error)
    {
        OJ_CUDA_TRY(error, doing, err);
        return OJ_OK;
    }

    /** Waits for the stream. */
    OJ_MUST_USE oj_status wait()
    {
        return check(cudaStreamSynchronize(stream));
    }

    /* --- memory ----------------------------------------------------------- */

    /** Arrays of n elements each; NULL for n == 0. */
    template <typename T, typename... Rest>
    OJ_MUST_USE oj_status make(int64_t n, T **out, Rest... rest)
    {
        void *array = NULL;
        OJ_TRY(
            oj_cuda_hold(device, stream, n, sizeof(T), &memory, &array, err));
        *out = (T *)array;
        if constexpr (sizeof...(rest) > 0)
            return make(n, rest...);
        return OJ_OK;
    }
    template <typename T, typename... Rest>
    OJ_MUST_USE oj_status make(int64_t n, struct oj_cuda_array<T> *out,
                               Rest... rest)
    {
        OJ_TRY(make(n, &out->data));
        out->n = n;
        if constexpr (sizeof...(rest) > 0)
            return make(n, rest...);
        return OJ_OK;
    }

    template <typename T> OJ_MUST_USE oj_status clear(T *array, int64_t n)
    {
        return n == 0 ? OJ_OK
                      : check(cudaMemsetAsync(array, 0, (size_t)n * sizeof(T),
                                              stream));
    }

    /** One of n elements, all 0. */
    template <typename T> OJ_MUST_USE oj_status make_zeros(int64_t n, T **out)
    {
        OJ_TRY(make(n, out));
        return clear(*out, n);
    }

    /** array, which this has, is to's from now on. */
    template <typename T> void hand_over(T *array, struct oj_cuda_work *to)
    {
        if (array != NULL)
            oj_cuda_hand_over(&memory, array, &to->memory);
    }

    /** Reads a few bytes; waits for the stream. */
    template <typename From, typename T>
    OJ_MUST_USE oj_status read(const From *from, T *to)
    {
        return oj_cuda_read(stream, from, (int)sizeof *to, to, doing, err);
    }

    /* --- kernels ---------------------------------------------------------- */

    /** Blocks of BLOCK threads, n in all. */
    template <int BLOCK = 256, typename... P, typename... A>
    OJ_MUST_USE oj_status run(int64_t n, void (*kernel)(P...), A... arguments)
    {
        return run_blocks<BLOCK>(oj_blocks(n, BLOCK), kernel, arguments...);
    }

    template <int BLOCK = 256, typename... P, typename... A>
    OJ_MUST_USE oj_status run_blocks(dim3 blocks, void (*kernel)(P...),
                                     A... arguments)
    {
        kernel<<<blocks, BLOCK, 0, stream>>>(arguments...);
        return check(cudaGetLastError());
    }

    /** body(0) .. body(n - 1), a thread each. body holds copies: name no
     *  pointer to memory of the host in it. */
    template <typename Body> OJ_MUST_USE oj_status each(int64_t n, Body body)
    {
        return oj_cuda_each(stream, n, body, doing, err);
    }

    /* --- calls of CUB ----------------------------------------------------- */

    /** call(memory, bytes), a call of CUB that tells bytes where memory is
     *  NULL. */
    template <typename Call> OJ_MUST_USE oj_status with_scratch(Call call)
    {
        return oj_cuda_with_scratch(device, stream, &scratch, call, doing, err);
    }

    /** Counts [n + 1], the last one 0, become offsets, in place. */
    template <typename T> OJ_MUST_USE oj_status scan(T *counts, int64_t n)
    {
        return oj_cuda_scan(device, stream, &scratch, counts, n, doing, err);
    }

    /** The same, and waits for their sum. */
    template <typename T>
    OJ_MUST_USE oj_status scan_total(T *counts, int64_t n, T *total)
    {
        OJ_TRY(scan(counts, n));
        return read(counts + n, total);
    }

    /** order [n]: 0 .. n - 1 by the lowest bits of key_of(0) .., and where
     *  these are equal by number. At most 2^31 - 1. */
    template <typename K, typename Key>
    OJ_MUST_USE oj_status order_by(int64_t n, int bits, Key key_of,
                                   int32_t **order)
    {
        oj_cuda_array<int32_t> made = {NULL, 0};
        OJ_TRY(oj_cuda_order_by<K>(device, stream, n, bits, key_of, &made,
                                   doing, err));
        oj_cuda_adopt(&memory, &made);
        *order = made.data;
        return OJ_OK;
    }
};

#endif
