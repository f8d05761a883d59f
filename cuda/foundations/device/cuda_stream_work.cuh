/** Work on one stream of a device: kernels, prefix sums, sorts, and arrays that
 *  are freed at the end of the scope, even after a failure. Prefix sums and
 *  sorts are in cuda_scan.cu and cuda_sort.cu, because the headers of CUB take
 *  long to compile. */
#ifndef CUDA_STREAM_WORK_CUH
#define CUDA_STREAM_WORK_CUH

#include "cuda_pinned_stage.h"

#include <type_traits>

#define OJ_CUDA_EACH_BLOCK 256

template <typename Body>
static __global__ void
oj_cuda_run_body_for_each(int64_t n, const __grid_constant__ Body body)
{
    int64_t i = (int64_t)blockIdx.x * OJ_CUDA_EACH_BLOCK + threadIdx.x;
    if (i < n)
        body(i);
}

template <typename T, typename Of> struct oj_cuda_value_writer
{
    Of of;
    T *value;

    __device__ void operator()(int64_t i) const
    {
        value[i] = of((ptrdiff_t)i);
    }
};

template <typename K, typename Key> struct oj_cuda_key_writer
{
    Key key_of;
    K *key;
    int32_t *number; /* or NULL: not written */

    __device__ void operator()(int64_t i) const
    {
        key[i] = key_of(i);
        if (number != NULL)
            number[i] = (int32_t)i;
    }
};

template <typename T> struct oj_cuda_gatherer
{
    const T *value;
    const int32_t *at;
    T *to;

    __device__ void operator()(int64_t i) const
    {
        to[i] = value[at[i]];
    }
};

/** A scope of work on a stream; all operations run in stream order. If a CUDA
 *  call fails, the message names what was being done (`doing`). */
struct oj_cuda_work
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    const char *doing;
    struct oj_error *err;
    /** Arrays that the destructor frees. */
    struct oj_cuda_memory memory;
    /** Temporary memory, for CUB among others. */
    struct oj_cuda_array<uint8_t> scratch;

    oj_cuda_work(struct oj_cuda_device *on, cudaStream_t in, const char *what,
                 struct oj_error *error)
        : device(on), stream(in), doing(what), err(error), memory(), scratch()
    {
    }
    /** Makes a scope on the device and stream of *of, with arrays of its own.
     */
    explicit oj_cuda_work(const oj_cuda_work *of)
        : oj_cuda_work(of->device, of->stream, of->doing, of->err)
    {
    }
    oj_cuda_work(const oj_cuda_work &) = delete;
    ~oj_cuda_work()
    {
        oj_cuda_array_free(device, stream, &scratch);
        release();
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

    /** Allocates arrays of n elements each; they are NULL if n == 0. */
    template <typename T, typename... Rest>
    OJ_MUST_USE oj_status make(int64_t n, T **out, Rest... rest)
    {
        void *array = NULL;
        OJ_TRY(oj_cuda_alloc_owned(device, stream, n, sizeof(T), &memory,
                                   &array, err));
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

    /** Allocates an array of n zeros. */
    template <typename T>
    OJ_MUST_USE oj_status allocate_zeros(int64_t n, T **out)
    {
        OJ_TRY(make(n, out));
        return clear(*out, n);
    }

    /** Makes `to` the owner of an array that *this owns. */
    template <typename T> void move_array_to(T *array, struct oj_cuda_work *to)
    {
        if (array != NULL)
            oj_cuda_move_ownership(&memory, array, &to->memory);
    }

    /** Frees an array before the end of the scope. */
    template <typename T> void drop(T *array)
    {
        struct oj_cuda_memory one = {};
        if (array != NULL)
            oj_cuda_move_ownership(&memory, array, &one);
        oj_cuda_memory_free_all(device, stream, &one);
    }

    /** Frees all arrays before the end of the scope. */
    void release()
    {
        oj_cuda_memory_free_all(device, stream, &memory);
    }

    /** Reads *from, a few bytes of device memory; waits for the stream. */
    template <typename From, typename T>
    OJ_MUST_USE oj_status read(const From *from, T *to)
    {
        return oj_cuda_stage_read(stream, from, (int)sizeof *to, to, doing,
                                  err);
    }

    /* --- kernels ---------------------------------------------------------- */

    /** Launches kernel with n threads in blocks of BLOCK. Does nothing if n is
     *  0. */
    template <int BLOCK = 256, typename... P, typename... A>
    OJ_MUST_USE oj_status run(int64_t n, void (*kernel)(P...), A... arguments)
    {
        return launch_blocks<BLOCK>(oj_cuda_count_blocks(n, BLOCK), kernel,
                                    arguments...);
    }

    template <int BLOCK = 256, typename... P, typename... A>
    OJ_MUST_USE oj_status launch_blocks(dim3 blocks, void (*kernel)(P...),
                                        A... arguments)
    {
        if (blocks.x > 0)
            kernel<<<blocks, BLOCK, 0, stream>>>(arguments...);
        return check(cudaGetLastError());
    }

    /** Runs body(0) .. body(n - 1) on the device, one thread each. body is
     *  copied to the device: it must not use pointers to host memory. */
    template <typename Body> OJ_MUST_USE oj_status each(int64_t n, Body body)
    {
        return run<OJ_CUDA_EACH_BLOCK>(n, oj_cuda_run_body_for_each<Body>, n,
                                       body);
    }

    /** Makes *out with (*out)[i] = value[at[i]] for n elements. *out becomes
     *  NULL if value is NULL or n is 0. */
    template <typename T>
    OJ_MUST_USE oj_status gather(int64_t n, const T *value, const int32_t *at,
                                 const T **out)
    {
        T *to;
        *out = NULL;
        if (value == NULL || n == 0)
            return OJ_OK;
        OJ_TRY(make(n, &to));
        *out = to;
        return each(n, oj_cuda_gatherer<T>{value, at, to});
    }

    /* --- prefix sums and sorts, by CUB ------------------------------------ */

    /** Makes a CUB call twice: call(NULL, bytes) returns the size of the
     *  temporary memory, call(memory, bytes) does the work. scratch grows as
     *  needed. */
    template <typename Call>
    OJ_MUST_USE oj_status run_with_scratch_memory(Call call)
    {
        size_t bytes = 0;
        OJ_TRY(check(call((void *)NULL, bytes)));
        if ((int64_t)bytes > scratch.n)
        {
            oj_cuda_array_free(device, stream, &scratch);
            OJ_TRY(oj_cuda_array_make(device, stream, (int64_t)bytes, &scratch,
                                      err));
        }
        return check(call((void *)scratch.data, bytes));
    }

    OJ_MUST_USE oj_status scan_words(uint32_t *counts, int64_t n);
    OJ_MUST_USE oj_status scan_words(uint64_t *counts, int64_t n);

    /** Replaces counts [n + 1] by their exclusive prefix sums: element i
     *  becomes the sum of the i counts before it, element n the total. The
     *  value of counts[n] on entry is ignored. T is an integer type of 4 or 8
     *  bytes. */
    template <typename T> OJ_MUST_USE oj_status scan(T *counts, int64_t n)
    {
        typedef std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> word;
        static_assert(std::is_integral<T>::value && sizeof(T) == sizeof(word));
        return scan_words((word *)counts, n);
    }

    /** Like scan(); also reads the total into *total, and therefore waits for
     *  the stream. */
    template <typename T>
    OJ_MUST_USE oj_status scan_and_read_total(T *counts, int64_t n, T *total)
    {
        OJ_TRY(scan(counts, n));
        return read(counts + n, total);
    }

    /** Makes *sums [n + 1], the exclusive prefix sum of the numbers of(0) ..
     *  of(n - 1), and reads sums[n] into *total, and therefore waits for the
     *  stream. of(n) is called, too, but its value is ignored. */
    template <typename T, typename Of>
    OJ_MUST_USE oj_status scan_of_computed_values(int64_t n, Of of, T **sums,
                                                  T *total)
    {
        OJ_TRY(make(n + 1, sums));
        OJ_TRY(each(n + 1, oj_cuda_value_writer<T, Of>{of, *sums}));
        return scan_and_read_total(*sums, n, total);
    }

    /** Like scan(), for five independent counts per element at once. */
    OJ_MUST_USE oj_status scan_groups_of_five(uint32_t (*counts)[5], int64_t n);

    /** Replaces value[i] by the maximum of value[0] .. value[i], for all i <
     *  n. */
    OJ_MUST_USE oj_status scan_running_maximum(uint32_t *value, int64_t n);

    /** Sorts the n keys *key, and their values *value with them, by the lowest
     *  `bits` bits of the keys. The sort is stable, and n <= 2^31 - 1. *this
     *  must own both arrays; *key and *value may point to other arrays
     *  afterwards. K is uint32_t or uint64_t. */
    template <typename K>
    OJ_MUST_USE oj_status sort(int64_t n, int bits, K **key, int32_t **value);

    /** Writes the keys, sorted by bits first_bit .. end_bit - 1, to sorted
     *  [n]. */
    OJ_MUST_USE oj_status sort_keys(int64_t n, int first_bit, int end_bit,
                                    const uint64_t *key, uint64_t *sorted);

    /** Sorts *order [n] by the lowest `bits` bits of key_of(i) for its elements
     *  i. The sort is stable, and n <= 2^31 - 1. If sorted is not NULL, *sorted
     *  becomes the array of the sorted keys. */
    template <typename K, typename Key>
    OJ_MUST_USE oj_status reorder_by(int64_t n, int bits, Key key_of,
                                     int32_t **order, K **sorted)
    {
        K *key;
        OJ_TRY(make(n, &key));
        OJ_TRY(each(n, oj_cuda_key_writer<K, Key>{key_of, key, NULL}));
        OJ_TRY(sort(n, bits, &key, order));
        if (sorted != NULL)
            *sorted = key;
        else
            drop(key);
        return OJ_OK;
    }

    /** Makes *order [n]: the numbers i = 0 .. n - 1, sorted by the lowest
     *  `bits` bits of key_of(i), ties by number. n <= 2^31 - 1. */
    template <typename K, typename Key>
    OJ_MUST_USE oj_status order_by(int64_t n, int bits, Key key_of,
                                   int32_t **order)
    {
        oj_cuda_work own(this);
        K *key;
        int32_t *number;
        OJ_TRY(own.make(n, &key));
        OJ_TRY(own.make(n, &number));
        OJ_TRY(own.each(n, oj_cuda_key_writer<K, Key>{key_of, key, number}));
        OJ_TRY(own.sort(n, bits, &key, &number));
        own.move_array_to(number, this);
        *order = number;
        return OJ_OK;
    }
};

#endif
