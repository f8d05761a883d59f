/** The index that the module returns: the join side on each device of the join,
 *  and the indexes of those families that batches have needed so far. */
#ifndef CUDA_INDEX_H
#define CUDA_INDEX_H

#include "../device/cuda_host_threads.h"
#include "../device/cuda_module_exports.cuh"
#include "../device/cuda_peers.h"
#include "../device/cuda_pinned_stage.h"
#include "cuda_family.h"
#include "cuda_pace.h"

enum
{
    OJ_CUDA_MOST_SLOTS = OJ_CUDA_MOST_THREADS
};

/** Rows of a batch that the chunks of a slot have left open, to be answered
 *  together later. The arrays are in device memory. */
struct oj_cuda_open_rows
{
    int64_t n, capacity;
    int64_t *row;  /**< row of the batch */
    double *x, *y; /**< coordinates of the row's point */
};

/** A slot: the memory and stream of one chunk on its way through a device and
 *  back. Several slots of a device overlap copies in, kernels and copies out.
 *
 *   caller's x, y --threads--> stage (pinned) --copy--> d_x, d_y
 *                                                          | kernel
 *   caller's row, measure <--threads-- stage <--copy-- d_row, d_measure
 *
 *  Pinned memory of the caller, and columns, are copied without the stage.
 *  Zeroed memory is a slot without memory.
 */
struct oj_cuda_slot
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    struct oj_cuda_memory memory; /**< owns all device arrays */
    int64_t n_rows;               /**< capacity of the arrays */
    double *d_x, *d_y, *d_measure;
    int32_t *d_row;

    /* Columns of the points; NULL if the join does not read them. */
    int64_t *d_fid;
    int32_t *d_on_class, *d_exclude_class;
    double *d_max_distance;

    /** [2] number of rows with a pair, and number of open rows. */
    unsigned long long *d_matched;
    unsigned long long *matched; /**< [2] the numbers on the host, in pinned
                                      memory borrowed from stage */
    struct oj_cuda_open_rows open;
    struct oj_cuda_stage stage;
    struct oj_cuda_stage value_stage; /**< stage for values that are summed */

    int family; /**< number of the family used last; kept between batches */
    /** Pace of that family, and of its index `asked`, which answers ties and
     *  open rows. */
    struct oj_cuda_pace pace[2];
};

/** Frees the slot's memory and stream. Changes the current device. */
void oj_cuda_index_slot_free(struct oj_cuda_slot *slot);

/** The join side on one device. */
struct oj_cuda_place
{
    struct oj_cuda_device device;
    struct oj_cuda_memory memory; /**< owns the layer's arrays */
    struct oj_cuda_memory tally;  /**< owns the sums of a batch */
    struct oj_cuda_memory pairs;  /**< owns the pairs of a run of rows */
    struct oj_cuda_layer layer;
    /** [family] the index of each family on this device; NULL if it is not
     *  built. */
    struct oj_cuda_index *of[OJ_CUDA_MOST_FAMILIES];
};

struct oj_gpu_index
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    int n_places;
    struct oj_cuda_place *place; /**< [n_places] */
    struct oj_cuda_peer_barrier peers;
    struct oj_cuda_slot slot[OJ_CUDA_MOST_SLOTS]; /**< kept between batches */
    /** Bit i is set if family i cannot hold the join side or lacks memory for
     *  it. */
    unsigned refused;
    /** Error of the first refused family; its status is OJ_OK if there is
     *  none. */
    struct oj_error why_refused;
};

/** Returns the number of the family that answers the join `relation` of input
 *  with join_side, or -1. If input is NULL, the answer is for any layer of
 *  points. Families whose bit is set in refused are not considered. */
int oj_cuda_index_choose_family(const struct oj_relation *relation,
                                const struct oj_flat *join_side,
                                const struct oj_flat *input, unsigned refused);

/** Returns the number of the family that answers batches like input, or -1.
 *  Families that this index has marked as refused are not considered. */
int oj_cuda_index_chosen_family(const struct oj_gpu_index *index,
                                const struct oj_flat *input);

/** Makes an index. Families whose bit is set in refused are never used. */
OJ_MUST_USE oj_status oj_cuda_index_make_without_families(
    unsigned refused, const struct oj_flat *join_side, const int32_t *tie_rank,
    const struct oj_relation *relation, const struct oj_options *options,
    struct oj_gpu_index **out, struct oj_stats *stats, struct oj_error *err);

/** Copies the join side to a place that has no layer yet. */
OJ_MUST_USE oj_status oj_cuda_index_upload_join_layer(
    const struct oj_gpu_index *index, struct oj_cuda_place *place,
    struct oj_error *err);

/** Chooses the family for batches like input and builds its index on all
 *  devices in parallel. A family that cannot hold the join side, or for which
 *  memory is missing, is marked as refused; if none is left, fails with
 *  OJ_ERR_UNSUPPORTED or OJ_ERR_NOMEM and the message of the first refused
 *  family. */
OJ_MUST_USE oj_status oj_cuda_index_prepare_family(struct oj_gpu_index *index,
                                                   const struct oj_flat *input,
                                                   int *number,
                                                   struct oj_stats *stats,
                                                   struct oj_error *err);

/** Callback that receives the points of a batch, chunk by chunk, instead of
 *  joining them. take() runs on many threads and enqueues its work on the
 *  slot's stream. If it returns OJ_ERR_NOMEM, it has added nothing, but copies
 *  to the slot may still be running. */
struct oj_cuda_taker
{
    oj_status (*take)(void *user, int place, struct oj_cuda_slot *slot,
                      int64_t first, const struct oj_cuda_points *points,
                      struct oj_error *err);
    void *user;
};

/** Passes the chunks of a batch, each of at least one row, to taker. */
OJ_MUST_USE oj_status oj_cuda_index_pass_chunks_to_taker(
    struct oj_gpu_index *index, int family, const struct oj_flat *input,
    const struct oj_cuda_taker *taker, struct oj_stats *stats,
    struct oj_error *err);

/** Writes the devices of options.gpus, ascending, to ordinal; returns their
 *  number, at most OJ_GPU_MAX_DEVICES. */
int oj_cuda_index_list_devices(uint64_t gpus, int *ordinal);

/** Returns an estimate of the bytes that can still be allocated on the device
 *  within its limit, including those free in its memory pool. Changes the
 *  current device. */
int64_t oj_cuda_index_count_free_bytes(const struct oj_cuda_device *device);

static inline int64_t oj_min_int64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t oj_max_int64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
