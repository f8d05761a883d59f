/** Joins of points that lie on CUDA devices: the join side is copied to each
 *  device at the first join with points there. */
#ifndef DEVICE_POINT_JOIN_H
#define DEVICE_POINT_JOIN_H

#include "../../ogrjoin.h"

#include "../../foundations/relation/oj_gpu.h"

#include <pthread.h>

/** Zeroed but for the lock: none was asked yet. */
struct device_joins
{
    pthread_mutex_t lock; /**< of all */
    struct oj_gpu_index *of[OJ_GPU_MAX_DEVICES];
};

/** What is joined with; outlives all that is made of it. */
struct device_join_side
{
    const struct oj_flat *flat;
    const int32_t *tie_rank;
    const struct oj_relation *relation;
    const struct oj_options *options;
};

/** index: the owner of joins, whose user *out becomes. */
OJ_MUST_USE oj_status device_join(struct device_joins *joins,
                                  const struct device_join_side *side,
                                  struct ogrjoin_index *index,
                                  const struct ogrjoin_device_points *points,
                                  struct ogrjoin_device_pairs *out,
                                  struct oj_error *err);

void device_joins_free(struct device_joins *joins);

#endif
