/** Joins points that are in the memory of CUDA devices. The first join on a
 * device copies the join side to it. */
#ifndef DEVICE_POINT_JOIN_H
#define DEVICE_POINT_JOIN_H

#include "../../ogrjoin.h"

#include "../../foundations/relation/oj_gpu.h"

#include <pthread.h>

/** The indexes of the join side on each device. Zero it before use, except the
 * lock. */
struct device_joins
{
    pthread_mutex_t lock; /**< guards all members */
    struct oj_gpu_index *of[OJ_GPU_MAX_DEVICES];
};

/** The join side; it must outlive everything made from it. */
struct device_join_side
{
    const struct oj_flat *flat;
    const int32_t *tie_rank;
    const struct oj_relation *relation;
    const struct oj_options *options;
};

/** Joins points on a device. index owns `joins`; *out holds a reference to
 * index. */
OJ_MUST_USE oj_status device_join(struct device_joins *joins,
                                  const struct device_join_side *side,
                                  struct ogrjoin_index *index,
                                  const struct ogrjoin_device_points *points,
                                  struct ogrjoin_device_pairs *out,
                                  struct oj_error *err);

void device_joins_free(struct device_joins *joins);

#endif
