/** A slot: what one chunk of a batch needs on its way through a device and
 *  back.  Several slots of a device overlap copies in, kernels and copies out.
 *
 *   caller's x, y --threads--> stage (pinned) --copy--> d_x, d_y
 *                                                          | kernel
 *   caller's row, measure <--threads-- stage <--copy-- d_row, d_measure
 *
 *  Memory of the caller that is pinned itself goes without the stage, and so do
 *  columns.
 */
#ifndef CUDA_SLOT_H
#define CUDA_SLOT_H

#include "../device/cuda_stage.h"
#include "../device/cuda_values.h"
#include "cuda_family.h"
#include "cuda_pace.h"

/** Zeroed memory is a slot that has nothing yet. */
struct oj_cuda_slot
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    int64_t n_rows; /**< room in the arrays */
    struct oj_cuda_array<double> d_x, d_y, d_measure;
    struct oj_cuda_array<int32_t> d_row;

    /* Columns of the points, where the join looks at them. */
    struct oj_cuda_array<int64_t> d_fid;
    struct oj_cuda_array<int32_t> d_on_class, d_exclude_class;
    struct oj_cuda_array<double> d_max_distance;
    struct oj_cuda_values values; /**< to be summed */

    struct oj_cuda_array<unsigned long long> d_matched; /**< [1] */
    unsigned long long *matched; /**< pinned, [1], borrowed from stage */
    struct oj_cuda_stage stage;

    int family; /**< which was asked last, from one batch to the next */
    struct oj_cuda_pace pace; /**< of it */
};

/** Bytes of device memory for each row of a slot. */
#define OJ_CUDA_SLOT_ROW_BYTES 28

/** Bytes of a stage for each row: points in, or answers out. */
#define OJ_CUDA_STAGE_ROW_BYTES 28

/** Makes room in slot for chunks of n_rows; staged: with a stage for them.
 *  After an error the slot can still be freed. The device is current. */
OJ_MUST_USE oj_status oj_cuda_slot_make(struct oj_cuda_device *device,
                                        int64_t n_rows, int staged,
                                        struct oj_cuda_slot *slot,
                                        struct oj_error *err);
void oj_cuda_slot_free(struct oj_cuda_slot *slot);

/** Copies columns of rows first .. first + n - 1 of input to the slot, as far
 * as input has them, and says where they are. Enqueued on the slot's stream. */
OJ_MUST_USE oj_status oj_cuda_slot_columns(struct oj_cuda_slot *slot,
                                           const struct oj_flat *input,
                                           int asks_fids, int64_t first,
                                           struct oj_cuda_points *points,
                                           struct oj_error *err);

/** Waits for all that was enqueued on the slot's stream. */
OJ_MUST_USE oj_status oj_cuda_slot_wait(struct oj_cuda_slot *slot,
                                        struct oj_error *err);

/** Bytes of the stage that callers of the slot can use. */
int64_t oj_cuda_slot_room(const struct oj_cuda_slot *slot);

/** Device memory to pinned memory, as the stage is, in stream order. */
OJ_MUST_USE oj_status oj_cuda_slot_enqueue(struct oj_cuda_slot *slot, void *to,
                                           const void *from, int64_t bytes,
                                           struct oj_error *err);

/** Device memory to the host by way of the stage; done on return. */
OJ_MUST_USE oj_status oj_cuda_slot_download(struct oj_cuda_slot *slot, void *to,
                                            const void *from, int64_t bytes,
                                            struct oj_error *err);

#endif
