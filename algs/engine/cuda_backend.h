/** The backend cuda, and what else may ask it. */
#ifndef CUDA_BACKEND_H
#define CUDA_BACKEND_H

#include "../relation/oj_gpu.h"

/** OJ_OK when such a join could run on the devices that options name: module,
 *  driver and devices are there, and a kernel that answers it for points, or
 *  for what else options say will come.  The first call of a process that finds
 *  a kernel starts CUDA, which takes tenths of a second. */
OJ_MUST_USE oj_status oj_cuda_possible(const struct oj_flat *join_side,
                                       const struct oj_relation *relation,
                                       const struct oj_options *options,
                                       struct oj_error *err);

/** 1 when a join of this process has used a device: CUDA is started. */
int oj_cuda_is_started(void);

/** The module, and which devices options name, bit by bit. */
OJ_MUST_USE oj_status oj_cuda_find(const struct oj_options *options,
                                   const struct oj_gpu_module **module,
                                   uint64_t *gpus, struct oj_error *err);

/** Why the CPU answered, or another method than the best; "" when neither did.
 */
const char *oj_cuda_reason(const struct oj_index *index);

/** Why the devices cannot hold the data, so that the CPU answers all; NULL:
 * they can, as far as is known. */
const char *oj_cuda_refusal(const struct oj_index *index);

/** The cpu backend's index of such a join, no longer index's; or NULL. */
struct oj_index *oj_cuda_take_cpu(struct oj_index *index);

/** What answers a batch like input; NULL: one of points. */
const char *oj_cuda_method(const struct oj_index *index,
                           const struct oj_flat *input);

#endif
