/** What the files of the CUDA module share: errors, memory and the join side
 *  on one device.
 */
#ifndef OJ_CUDA_H
#define OJ_CUDA_H

#include "../../../algs/foundations/relation/oj_gpu.h"
#include "../../../flatten/base/oj_clock.h"
#include "oj_segment_record.h"

#include <cuda_runtime.h>

/** One device as one index uses it. */
struct oj_cuda_device
{
    int ordinal;
    int n_processors;
    cudaStream_t stream; /**< for the index; batches have their own */
    cudaMemPool_t pool;
    int64_t limit; /**< bytes that may be in use; 0: no limit of ours */
    int64_t used;  /**< bytes in use; changed atomically */
    struct oj_cuda_device *counts_for; /**< whose used is counted, for a stream
                                            beside its own; or NULL */
    const int *cancel;                 /**< may be NULL */
    int n_threads;               /**< for copies of a layer; 0: as seems best */
    struct oj_cuda_peers *peers; /**< the devices of the join, of which it is
                                      one; or NULL */
    int number;                  /**< among them */
    cudaEvent_t uploaded;        /**< recorded when the flat arrays of a layer
                                      are there; NULL: nobody asks */
};

/** Turns a CUDA error into an oj_status: OJ_ERR_NOMEM for memory,
 *  OJ_ERR_NO_DEVICE for a device that is not there, cannot be used or is
 *  broken, else OJ_ERR_INTERNAL, also where a kernel's fault has lost the
 * device to this process; the message has CUDA's text and what was being done.
 */
oj_status oj_cuda_fail(struct oj_error *err, cudaError_t error,
                       const char *doing);

/** Returns from the enclosing function when a CUDA call fails. */
#define OJ_CUDA_TRY(call, doing, err)                                          \
    do                                                                         \
    {                                                                          \
        cudaError_t oj_cuda_error_ = (call);                                   \
        if (oj_cuda_error_ != cudaSuccess)                                     \
            return oj_cuda_fail((err), oj_cuda_error_, (doing));               \
    } while (0)

/** After a kernel launch. */
#define OJ_CUDA_TRY_LAUNCH(doing, err)                                         \
    OJ_CUDA_TRY(cudaGetLastError(), (doing), (err))

OJ_MUST_USE oj_status oj_cuda_open(int ordinal, int64_t limit,
                                   const int *cancel,
                                   struct oj_cuda_device *out,
                                   struct oj_error *err);
void oj_cuda_close(struct oj_cuda_device *device);

/** Waits for all that was enqueued on stream; other threads have the processor
 *  meanwhile, but the caller does not sleep: to be woken takes longer than most
 *  chunks of a batch. */
cudaError_t oj_cuda_wait(cudaStream_t stream);

/** Device memory of n elements in stream order, from the device's pool; n == 0
 *  gives NULL. OJ_ERR_NOMEM beyond the limit or when the device has no more. */
OJ_MUST_USE oj_status oj_cuda_alloc_bytes(struct oj_cuda_device *device,
                                          cudaStream_t stream, int64_t n,
                                          size_t size, void **out,
                                          struct oj_error *err);
/** Accepts NULL. n and size as allocated. */
void oj_cuda_free_bytes(struct oj_cuda_device *device, cudaStream_t stream,
                        void *memory, int64_t n, size_t size);

/** An array on a device; zeroed memory is a valid empty one. It is owned, taken
 *  and freed in order of the streams that are told, unless its maker says whose
 *  it is. */
template <typename T> struct oj_cuda_array
{
    T *data;
    int64_t n;
};

template <typename T>
OJ_MUST_USE oj_status oj_cuda_make(struct oj_cuda_device *device,
                                   cudaStream_t stream, int64_t n,
                                   struct oj_cuda_array<T> *out,
                                   struct oj_error *err)
{
    void *memory = NULL;
    OJ_TRY(oj_cuda_alloc_bytes(device, stream, n, sizeof(T), &memory, err));
    out->data = (T *)memory;
    out->n = n;
    return OJ_OK;
}

template <typename... T>
void oj_cuda_drop(struct oj_cuda_device *device, cudaStream_t stream,
                  struct oj_cuda_array<T> *...array)
{
    (oj_cuda_free_bytes(device, stream, array->data, array->n, sizeof(T)), ...);
    ((array->data = NULL, array->n = 0), ...);
}

enum
{
    OJ_CUDA_MOST_HELD = 32
};

/** Owner of arrays on a device; zeroed memory has none. */
struct oj_cuda_memory
{
    int n;
    struct
    {
        void *at;
        int64_t n;
        size_t size;
    } held[OJ_CUDA_MOST_HELD];
};

/** Takes n elements for memory, which has room; as oj_cuda_alloc_bytes(). */
OJ_MUST_USE oj_status oj_cuda_hold(struct oj_cuda_device *device,
                                   cudaStream_t stream, int64_t n, size_t size,
                                   struct oj_cuda_memory *memory, void **out,
                                   struct oj_error *err);

/** The array at `at`, or where that is NULL all, goes to another owner, which
 *  has room. */
void oj_cuda_hand_over(struct oj_cuda_memory *from, const void *at,
                       struct oj_cuda_memory *to);

/** Frees all, in order of stream. */
void oj_cuda_release(struct oj_cuda_device *device, cudaStream_t stream,
                     struct oj_cuda_memory *memory);

int64_t oj_cuda_memory_bytes(const struct oj_cuda_memory *memory);

/** Blocks of so many threads for n of them. */
static inline unsigned oj_blocks(int64_t n, int64_t block)
{
    return (unsigned)((n + block - 1) / block);
}

/** Columns of the join side by rank, [n_features]; NULL where the join does
 *  not ask. */
struct oj_cuda_columns
{
    const int64_t *fid;
    const int32_t *on_class, *exclude_class;
};

/** The join side on the device. Points of the join side are segments whose ends
 *  are equal.  Features stand in tie order: a smaller rank wins a tie, and
 *  ordinal_of says which feature of the join layer a rank is. Owns nothing.
 *
 *  feature (rank)   0        1    2
 *  part_offset    [ 0        2    3    3 ]
 *  ring_offset    [ 0  2     3    4 ]          first ring of a part: its shell
 *  segment_offset [ 0 4 8   12   15 ]          segments of a ring, line, point
 */
struct oj_cuda_layer
{
    const struct oj_flat *flat; /**< the host's, and the order of ties; set by
                                     the index of the module */
    const int32_t *tie_rank;
    int64_t n_features, n_parts, n_rings, n_segments;
    double x0, y0, x1, y1; /**< around everything; x0 > x1: nothing */
    double magnitude;      /**< greatest absolute coordinate */
    int only_points;       /**< 1: no feature is more than one point */
    int short_points;      /**< 1: every feature is one point: segment i, and
                                there are no offsets */
    struct oj_cuda_array<struct oj_cuda_segment> segment; /**< [n_segments] */
    struct oj_cuda_array<int32_t> segment_feature; /**< [n_segments] rank */
    struct oj_cuda_array<int32_t> segment_part;    /**< [n_segments] or empty
                                                        without polygons */
    struct oj_cuda_array<uint8_t> part_kind;       /**< [n_parts] */
    struct oj_cuda_array<int32_t> part_feature;    /**< [n_parts] rank */
    struct oj_cuda_array<int64_t> part_offset;     /**< [n_features + 1] */
    struct oj_cuda_array<int64_t> ring_offset;     /**< [n_parts + 1] */
    struct oj_cuda_array<int64_t> segment_offset;  /**< [n_rings + 1] */
    struct oj_cuda_array<int32_t> ordinal_of;      /**< [n_features], empty:
                                                        rank is ordinal */
    struct oj_cuda_columns columns;
};

struct oj_cuda_work;

/** Copies the join side to the device, with the columns that relation, if it
 *  is not NULL, asks for; all arrays are work's.  flat may be some rows of
 *  another layer, whose offsets do not begin at 0: all arrays begin with what
 *  its first offsets name.  left_out: [features] 1 for those that are to have
 *  no parts there, or NULL.  OJ_ERR_UNSUPPORTED: more than 2^31 - 1 segments.
 *  Waits for the stream. */
OJ_MUST_USE oj_status oj_cuda_layer_make(struct oj_cuda_work *work,
                                         const struct oj_flat *flat,
                                         const uint8_t *left_out,
                                         const int32_t *tie_rank,
                                         const struct oj_relation *relation,
                                         struct oj_cuda_layer *out);

/** 1 when the join asks for more of a pair than where its features are. */
int oj_cuda_asks_columns(const struct oj_relation *relation,
                         const struct oj_flat *join_side);

#endif
