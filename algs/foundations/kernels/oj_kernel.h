/** Included by every kernel header.
 *
 *  Kernels are compiled by the C compiler and by nvcc and must give the same
 *  bits: only + - * / sqrt fabs and comparisons, built with -ffp-contract=off
 *  and -fmad=false.  No C-only syntax (designated initialisers, restrict).
 */
#ifndef OJ_KERNEL_H
#define OJ_KERNEL_H

#include <math.h>
#include <stdint.h>

/* OJ_FN_APART: for functions that are rarely called. They are not inlined on
 * the GPU, so that they take no registers of their caller. */
#ifdef __CUDACC__
#define OJ_FN static __host__ __device__ __forceinline__
#define OJ_FN_APART static inline __host__ __device__ __noinline__
#elif defined(__GNUC__)
#define OJ_FN static inline __attribute__((always_inline, unused))
#define OJ_FN_APART static __attribute__((noinline, unused))
#else
#define OJ_FN static inline
#define OJ_FN_APART static inline
#endif

#endif
