/** Our engine, as the backends cpu, cuda and auto.
 *
 *  cpu    on the CPU: families (cpu_family.h), each indexed when a batch needs
 *         it; the one that is expected at once, so that errors of the join side
 *         do not wait for it.
 *  cuda   a batch goes to the CUDA module if one of its kernels takes it, else
 *         to the CPU.  Of lines and polygons on both sides the module finds the
 *         pairs whose boxes pass, and decides which of them meet (oj_screen.h);
 *         the CPU decides the rest.  What the module cannot hold, for its
 *         coordinates or for want of memory, the CPU answers.
 *  auto   cpu, or cuda where it pays.  The choice is made when the join side is
 *         known and the number of input rows is (struct oj_options.n_expected);
 *         else at the first batch, by its size.  A device that fails is left
 *         for the CPU.
 *
 *  The answers are the same.
 */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include "../relation/oj_gpu.h"

/** Not in the table: its name stands for those of the two. */
extern const struct oj_backend oj_auto_backend;

/** The module, and which devices options name, bit by bit. */
OJ_MUST_USE oj_status oj_cuda_find(const struct oj_options *options,
                                   const struct oj_gpu_module **module,
                                   uint64_t *gpus, struct oj_error *err);

/* Of an index of the three. */

/** The row that is at work: cpu or cuda. */
const struct oj_backend *oj_engine_used(const struct oj_index *index);

/** Why auto chose it ("GPU expected to take 0.3 s, the CPU 2.1 s"), or why cuda
 *  left something to the CPU or to another method than the best; "": nothing to
 *  say. */
const char *oj_engine_reason(const struct oj_index *index);

/** What answers a batch like input; NULL: one of points. */
const char *oj_engine_method(const struct oj_index *index,
                             const struct oj_flat *input);

#endif
