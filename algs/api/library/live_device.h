/** A live index (algs/live) whose points are on GPUs (backend=cuda). Kernels
 * answer some joins. For other joins the points are copied to host memory,
 * unless they have not changed since the last copy. */
#ifndef LIVE_DEVICE_H
#define LIVE_DEVICE_H

#include "../../foundations/relation/oj_gpu.h"
#include "../../live/live_search.h"
#include "../../live/oj_live.h"
#include "api_settings.h"

#include <pthread.h>

struct live_device;

/** Makes an empty index on the devices of the settings. host: index in host
 * memory that receives the copy; borrowed. Errors: OJ_ERR_NO_DEVICE;
 * OJ_ERR_UNSUPPORTED: the tree of the settings is not available on GPUs. */
OJ_MUST_USE oj_status live_device_new(const struct ogrjoin_settings *settings,
                                      struct oj_live *host,
                                      struct live_device **out,
                                      struct oj_error *err);

/** device may be NULL. */
void live_device_free(struct live_device *device);

/** Like oj_live_apply(), for the points on the devices. */
OJ_MUST_USE oj_status live_device_apply(struct live_device *device, int64_t n,
                                        const int64_t *id, const double *x,
                                        const double *y, struct oj_error *err);

/** Copies the points from the devices to host memory, if they have changed. */
OJ_MUST_USE oj_status live_device_update_host(struct live_device *device,
                                              struct oj_error *err);

/** Returns the counts of the points on the devices, like oj_live_count().
 * Writes the kind of tree in use to tree [size], like
 * oj_live_explain_tree_choice(). */
struct oj_live_counts live_device_count(struct live_device *device, char *tree,
                                        size_t size);

/** Returns 1 if kernels support the join. */
int live_device_supports_join(const struct oj_relation *relation,
                              const struct oj_flat *input);

/** Joins input on the devices. The pairs contain the ids of the live index's
 * points, not ordinals. More than max_pairs are an error; 0: no limit. */
OJ_MUST_USE oj_status live_device_join(struct live_device *device,
                                       const struct oj_relation *relation,
                                       const struct oj_flat *input,
                                       int64_t max_pairs,
                                       struct live_pairs *out,
                                       struct oj_error *err);

#endif
