/** A kept index whose points are on GPUs (setting backend=cuda): joins that its
 *  kernels answer, and a copy in host memory for all others, brought up to date
 *  when one of them needs it. */
#ifndef LIVE_DEVICE_H
#define LIVE_DEVICE_H

#include "../../foundations/relation/oj_gpu.h"
#include "../../live/live_search.h"
#include "../../live/oj_live.h"
#include "api_settings.h"

#include <pthread.h>

struct live_device;

/** An empty index on the devices of settings, which copies its points to host
 *  when they are needed there.  OJ_ERR_NO_DEVICE; OJ_ERR_UNSUPPORTED: a tree
 *  that is not there on a GPU. */
OJ_MUST_USE oj_status live_device_new(const struct ogrjoin_settings *settings,
                                      struct oj_live *host,
                                      struct live_device **out,
                                      struct oj_error *err);

/** Accepts NULL. */
void live_device_free(struct live_device *device);

/** oj_live_apply(), to the points on the devices. */
OJ_MUST_USE oj_status live_device_apply(struct live_device *device, int64_t n,
                                        const int64_t *id, const double *x,
                                        const double *y, struct oj_error *err);

/** Makes the points of host those of the devices. */
OJ_MUST_USE oj_status live_device_update_host(struct live_device *device,
                                              struct oj_error *err);

/** oj_live_count() and oj_live_explain(), of the devices. */
struct oj_live_counts live_device_count(struct live_device *device, char *tree,
                                        size_t size);

/** 1 if the devices answer such a join. */
int live_device_takes(const struct oj_relation *relation,
                      const struct oj_flat *input);

/** Its pairs, with ids as join rows. */
OJ_MUST_USE oj_status live_device_join(struct live_device *device,
                                       const struct oj_relation *relation,
                                       const struct oj_flat *input,
                                       int64_t max_pairs,
                                       struct live_pairs *out,
                                       struct oj_error *err);

#endif
