/** The module's index: the join side on each device of the join, prepared by
 *  the families that were needed so far. */
#ifndef CUDA_INDEX_H
#define CUDA_INDEX_H

#include "../device/cuda_host_threads.h"
#include "../device/cuda_module_exports.cuh"
#include "../device/cuda_peers.h"
#include "../device/cuda_stage.h"
#include "cuda_family.h"
#include "cuda_pace.h"

enum
{
    OJ_CUDA_MOST_SLOTS = OJ_CUDA_MOST_THREADS
};

/** Rows of chunks that went through a slot and are not answered yet, which is
 *  better done together. On the device. */
struct oj_cuda_open_rows
{
    int64_t n, capacity;
    int64_t *row;  /**< of the batch */
    double *x, *y; /**< of their points */
};

/** A slot: what one chunk of a batch needs on its way through a device and
 *  back.  Several slots of a device overlap copies in, kernels and copies out.
 *
 *   caller's x, y --threads--> stage (pinned) --copy--> d_x, d_y
 *                                                          | kernel
 *   caller's row, measure <--threads-- stage <--copy-- d_row, d_measure
 *
 *  Memory of the caller that is pinned itself goes without the stage, and so do
 *  columns.
 *
 *  Zeroed memory is a slot that has nothing yet.
 */
struct oj_cuda_slot
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    struct oj_cuda_memory memory; /**< of all arrays */
    int64_t n_rows;               /**< room in the arrays */
    double *d_x, *d_y, *d_measure;
    int32_t *d_row;

    /* Columns of the points, where the join looks at them, else NULL. */
    int64_t *d_fid;
    int32_t *d_on_class, *d_exclude_class;
    double *d_max_distance;

    unsigned long long *d_matched; /**< [2] rows with a pair, and open ones */
    unsigned long long *matched;   /**< pinned, [2], borrowed from stage */
    struct oj_cuda_open_rows open;
    struct oj_cuda_stage stage;
    struct oj_cuda_stage value_stage; /**< for values that are summed */

    int family; /**< which was asked last, from one batch to the next */
    struct oj_cuda_pace pace[2]; /**< of it, and of what it asks of ties and
                                    open rows */
};

/** Changes the current device. */
void oj_cuda_index_slot_free(struct oj_cuda_slot *slot);

/** The join side on one device. */
struct oj_cuda_place
{
    struct oj_cuda_device device;
    struct oj_cuda_memory memory; /**< of layer */
    struct oj_cuda_memory tally;  /**< of a batch that is summed */
    struct oj_cuda_memory pairs;  /**< of a run of rows */
    struct oj_cuda_layer layer;
    struct oj_cuda_index *of[OJ_CUDA_MOST_FAMILIES]; /**< NULL: not needed */
};

struct oj_gpu_index
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    int n_places;
    struct oj_cuda_place *place; /**< [n_places] */
    struct oj_cuda_peers peers;
    struct oj_cuda_slot slot[OJ_CUDA_MOST_SLOTS]; /**< kept between batches */
    unsigned refused;            /**< bit i: family i cannot hold the join side,
                                      or has no memory for it */
    struct oj_error why_refused; /**< of the first; status OJ_OK: none was */
};

/** The number of the family that answers such a join, or -1; input NULL: any
 *  layer of points. refused: bit i: not family i. */
int oj_cuda_index_choose(const struct oj_relation *relation,
                         const struct oj_flat *join_side,
                         const struct oj_flat *input, unsigned refused);

/** The number of the family that answers batches like input, or -1: without the
 *  families that this index found to be unable. */
int oj_cuda_index_chosen(const struct oj_gpu_index *index,
                         const struct oj_flat *input);

/** An index; refused: families that are not asked, bit by bit. */
OJ_MUST_USE oj_status oj_cuda_index_make_without(
    unsigned refused, const struct oj_flat *join_side, const int32_t *tie_rank,
    const struct oj_relation *relation, const struct oj_options *options,
    struct oj_gpu_index **out, struct oj_stats *stats, struct oj_error *err);

/** Copies the join side to a place that has no layer. */
OJ_MUST_USE oj_status oj_cuda_index_place_fill(const struct oj_gpu_index *index,
                                               struct oj_cuda_place *place,
                                               struct oj_error *err);

/** The number of the family that answers, with its index made on every device,
 *  side by side; one that cannot hold the join side or lacks the memory is
 *  passed over. OJ_ERR_UNSUPPORTED or OJ_ERR_NOMEM with the first one's reason
 *  when none is left. */
OJ_MUST_USE oj_status oj_cuda_family_for(struct oj_gpu_index *index,
                                         const struct oj_flat *input,
                                         int *number, struct oj_stats *stats,
                                         struct oj_error *err);

/** Who takes the points of a batch, chunk by chunk, where pairs are not made.
 *  take() runs on many threads at once: what it does is enqueued on the slot's
 *  stream. When it returns OJ_ERR_NOMEM, copies may be on their way there, and
 *  nothing of the points is added. */
struct oj_cuda_taker
{
    oj_status (*take)(void *user, int place, struct oj_cuda_slot *slot,
                      int64_t first, const struct oj_cuda_points *points,
                      struct oj_error *err);
    void *user;
};

/** Gives a batch of one row or more to taker. */
OJ_MUST_USE oj_status oj_cuda_index_give_chunks(
    struct oj_gpu_index *index, int family, const struct oj_flat *input,
    const struct oj_cuda_taker *taker, struct oj_stats *stats,
    struct oj_error *err);

/** The devices of options.gpus in the order of their numbers, at most
 *  OJ_GPU_MAX_DEVICES of them; how many. */
int oj_cuda_index_list_devices(uint64_t gpus, int *ordinal);

/** Bytes that may still be taken of a device, as far as one can know. Changes
 *  the current device. */
int64_t oj_cuda_index_room_on(const struct oj_cuda_device *device);

static inline int64_t oj_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t oj_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
