/** Declarations that all files of the CUDA module share: errors, device memory,
 *  and the join side on a device. */
#ifndef OJ_CUDA_H
#define OJ_CUDA_H

#include "../../../algs/foundations/relation/oj_gpu.h"
#include "../../../flatten/base/oj_clock.h"
#include "oj_segment_record.h"

#include <cuda_runtime.h>

/** A device that an index uses. */
struct oj_cuda_device
{
    int ordinal;
    int n_processors;
    /** Stream on which the index is built; batches have streams of their
     *  own. */
    cudaStream_t stream;
    cudaMemPool_t pool;
    int64_t limit; /**< maximum bytes in use by this index; 0: no limit */
    int64_t used;  /**< bytes in use; changed atomically */
    /** NULL, or the original of which this struct is a copy that is used with
     *  another stream. The original's `used` counts the allocations of the
     *  copy, too. */
    struct oj_cuda_device *counts_for;
    const int *cancel; /**< cancel flag; may be NULL */
    /** Number of threads that copy a layer; 0: one per processor, at most 16.
     */
    int n_threads;
    /** All devices of the join if each copies a part of every array from the
     *  host and the rest from the others (oj_cuda_copy_to_all_peers()); NULL if
     *  this device copies whole arrays. */
    struct oj_cuda_peer_barrier *peers;
    int number; /**< index of this device in *peers */
    /** NULL, or an event that is recorded when the flat arrays of a layer
     *  (struct oj_flat) are on the device. */
    cudaEvent_t uploaded;
};

/** Turns a CUDA error into an oj_status and a message of CUDA's text and of
 *  `doing`, which names the failed step. OJ_ERR_NOMEM: out of memory.
 *  OJ_ERR_NO_DEVICE: the device is missing, unusable or broken.
 *  OJ_ERR_INTERNAL: all other errors, including faults of a kernel, after which
 *  this process cannot use the device. */
oj_status oj_cuda_fail(struct oj_error *err, cudaError_t error,
                       const char *doing);

/** Returns from the enclosing function if a CUDA call fails. */
#define OJ_CUDA_TRY(call, doing, err)                                          \
    do                                                                         \
    {                                                                          \
        cudaError_t oj_cuda_error_ = (call);                                   \
        if (oj_cuda_error_ != cudaSuccess)                                     \
            return oj_cuda_fail((err), oj_cuda_error_, (doing));               \
    } while (0)

/** Returns from the enclosing function if a kernel launch has failed. */
#define OJ_CUDA_TRY_LAUNCH(doing, err)                                         \
    OJ_CUDA_TRY(cudaGetLastError(), (doing), (err))

OJ_MUST_USE oj_status oj_cuda_open(int ordinal, int64_t limit,
                                   const int *cancel,
                                   struct oj_cuda_device *out,
                                   struct oj_error *err);
void oj_cuda_close(struct oj_cuda_device *device);

/** Waits for all work enqueued on stream. The thread polls and yields its
 *  processor instead of sleeping, because waking it would take longer than most
 *  chunks of a batch. */
cudaError_t oj_cuda_wait(cudaStream_t stream);

/** Allocates n elements of device memory in stream order, from the device's
 *  pool; *out is NULL if n == 0. Fails with OJ_ERR_NOMEM if the bytes in use
 *  would exceed device->limit, or if the device has no more memory. */
OJ_MUST_USE oj_status oj_cuda_alloc_bytes(struct oj_cuda_device *device,
                                          cudaStream_t stream, int64_t n,
                                          size_t size, void **out,
                                          struct oj_error *err);
/** Frees memory in stream order; n and size must be those of the allocation.
 *  Accepts NULL. */
void oj_cuda_free_bytes(struct oj_cuda_device *device, cudaStream_t stream,
                        void *memory, int64_t n, size_t size);

/** An array of n elements in device memory; zeroed memory is a valid empty one.
 *  The struct owns `data`, which oj_cuda_array_free() frees in stream order,
 *  unless the function that sets the struct names another owner. */
template <typename T> struct oj_cuda_array
{
    T *data;
    int64_t n;
};

template <typename T>
OJ_MUST_USE oj_status oj_cuda_array_make(struct oj_cuda_device *device,
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
void oj_cuda_array_free(struct oj_cuda_device *device, cudaStream_t stream,
                        struct oj_cuda_array<T> *...array)
{
    (oj_cuda_free_bytes(device, stream, array->data, array->n, sizeof(T)), ...);
    ((array->data = NULL, array->n = 0), ...);
}

enum
{
    OJ_CUDA_MOST_HELD = 32
};

/** Owner of several device arrays; zeroed memory is a valid empty one. */
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

/** Like oj_cuda_alloc_bytes(); *memory owns the array. Fails with
 *  OJ_ERR_INTERNAL if *memory already owns OJ_CUDA_MOST_HELD arrays. */
OJ_MUST_USE oj_status oj_cuda_alloc_owned(struct oj_cuda_device *device,
                                          cudaStream_t stream, int64_t n,
                                          size_t size,
                                          struct oj_cuda_memory *memory,
                                          void **out, struct oj_error *err);

/** Moves the ownership of the array `at`, or of all arrays if `at` is NULL,
 *  from *from to *to, which must have room for it. */
void oj_cuda_move_ownership(struct oj_cuda_memory *from, const void *at,
                            struct oj_cuda_memory *to);

/** Frees all arrays in stream order. */
void oj_cuda_memory_free_all(struct oj_cuda_device *device, cudaStream_t stream,
                             struct oj_cuda_memory *memory);

int64_t oj_cuda_memory_bytes(const struct oj_cuda_memory *memory);

/** Returns how many blocks of `block` threads n threads need. */
static inline unsigned oj_cuda_count_blocks(int64_t n, int64_t block)
{
    return (unsigned)((n + block - 1) / block);
}

/** Columns of the join side, [n_features] each, indexed by rank. A column that
 *  the join does not need is NULL. */
struct oj_cuda_columns
{
    const int64_t *fid;
    const int32_t *on_class, *exclude_class;
};

/** The join side on the device. A point is a segment with equal ends. Features
 *  are numbered by tie rank: the smaller rank wins a tie, and ordinal_of maps a
 *  rank to the feature of the join layer. Owns nothing.
 *
 *  feature (rank)   0        1    2
 *  part_offset    [ 0        2    3    3 ]
 *  ring_offset    [ 0  2     3    4 ]          first ring of a part: its shell
 *  segment_offset [ 0 4 8   12   15 ]          segments of a ring, line, point
 */
struct oj_cuda_layer
{
    /** The layer in host memory, and its tie ranks. cuda_index.cu sets both. */
    const struct oj_flat *flat;
    const int32_t *tie_rank;
    /** maximum number of points in a leaf of the index of quadrants;
     *  cuda_index.cu sets it */
    int64_t quadrant_size;
    int64_t n_features, n_parts, n_rings, n_segments;
    double x0, y0, x1, y1; /**< bounding box; x0 > x1: empty */
    double magnitude;      /**< maximum absolute coordinate */
    int only_points;       /**< 1: every feature is at most one point */
    /** 1: every feature is exactly one point; segment i is feature i, and
     *  offsets are empty. */
    int short_points;
    struct oj_cuda_array<struct oj_cuda_segment> segment; /**< [n_segments] */
    struct oj_cuda_array<int32_t> segment_feature; /**< [n_segments] rank */
    /** [n_segments] number of each segment's part; empty if the layer has no
     *  polygons. */
    struct oj_cuda_array<int32_t> segment_part;
    struct oj_cuda_array<uint8_t> part_kind;      /**< [n_parts] */
    struct oj_cuda_array<int32_t> part_feature;   /**< [n_parts] rank */
    struct oj_cuda_array<int64_t> part_offset;    /**< [n_features + 1] */
    struct oj_cuda_array<int64_t> ring_offset;    /**< [n_parts + 1] */
    struct oj_cuda_array<int64_t> segment_offset; /**< [n_rings + 1] */
    /** [n_features] ordinal of the feature with each rank; empty if ranks equal
     *  ordinals. */
    struct oj_cuda_array<int32_t> ordinal_of;
    struct oj_cuda_columns columns;
};

struct oj_cuda_work;

/** Copies the join side to the device, with the columns that relation needs;
 *  relation may be NULL. *work owns all arrays. flat may be a slice of a layer,
 *  with offsets that do not begin at 0; the offsets of *out begin at 0.
 *  left_out is NULL, or [n_features] with 1 for each feature that shall get no
 *  parts. Fails with OJ_ERR_UNSUPPORTED for more than 2^31 - 1 segments. Waits
 *  for the stream. */
OJ_MUST_USE oj_status oj_cuda_layer_make(struct oj_cuda_work *work,
                                         const struct oj_flat *flat,
                                         const uint8_t *left_out,
                                         const int32_t *tie_rank,
                                         const struct oj_relation *relation,
                                         struct oj_cuda_layer *out);

/** Returns 1 if the join needs columns of the join side in addition to the
 *  geometry: FIDs or classes. */
int oj_cuda_needs_columns(const struct oj_relation *relation,
                          const struct oj_flat *join_side);

#endif
