/** What every kernel header starts with.
 *
 *  Kernels are compiled by the C compiler and by nvcc and must give the same
 *  bits: only + - * / sqrt fabs and comparisons, built with -ffp-contract=off
 *  and -fmad=false.  No C-only syntax (designated initialisers, restrict).
 */
#ifndef OJ_KERNEL_H
#define OJ_KERNEL_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define OJ_FN static __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define OJ_FN static inline __attribute__((always_inline, unused))
#else
#define OJ_FN static inline
#endif

#endif
