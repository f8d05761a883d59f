/** The CUDA module as a screen of the cpu engine's predicates (oj_screen.h):
 *  of lines and polygons on both sides the device finds the pairs whose boxes
 *  pass, and decides which of them meet. */
#ifndef CUDA_SCREEN_H
#define CUDA_SCREEN_H

#include "../relation/oj_gpu.h"

struct oj_cuda_screen;

/** NULL where the module has nothing to say of such a join, or there is no
 *  memory: the engine then does without. The join side outlives it; its index
 *  is made when the first batch comes. */
struct oj_cuda_screen *oj_cuda_screen_open(const struct oj_gpu_module *module,
                                           const struct oj_flat *join_side,
                                           const struct oj_relation *relation,
                                           const struct oj_options *options);

/** For struct oj_options; NULL for NULL. */
const struct oj_screen *oj_cuda_screen_use(struct oj_cuda_screen *screen);

/** 1 when a batch like input goes through it; screen may be NULL. */
int oj_cuda_screen_takes(const struct oj_cuda_screen *screen,
                         const struct oj_flat *input);

/** For -explain. */
const char *oj_cuda_screen_name(const struct oj_cuda_screen *screen);

/** Why no batch goes through it any more; NULL: they do, or screen is NULL. */
const char *oj_cuda_screen_refusal(const struct oj_cuda_screen *screen);

/** 1 when a batch went through it; screen may be NULL. */
int oj_cuda_screen_is_used(const struct oj_cuda_screen *screen);

/** 1 for joins of which the device decides nearly all pairs of lines and
 *  polygons; of others it finds the candidates, and the CPU is as slow as it
 *  is without. */
int oj_cuda_screen_decides(const struct oj_relation *relation,
                           const struct oj_flat *join_side);

/** Why a batch went without it; "": none did, or screen is NULL. */
const char *oj_cuda_screen_reason(const struct oj_cuda_screen *screen);

/** Accepts NULL. */
void oj_cuda_screen_close(struct oj_cuda_screen *screen);

#endif
