/** Definitions for kernel headers: functions that the C compiler and nvcc
 * compile alike and that must give equal bits. They use only + - * / sqrt fabs
 * and comparisons (built with -ffp-contract=off and -fmad=false), and no C-only
 * syntax (designated initialisers, restrict). */
#ifndef OJ_KERNEL_H
#define OJ_KERNEL_H

#include <math.h>
#include <stdint.h>

/* OJ_FN_APART is for rarely called functions: not inlined on the GPU, they do
 * not cost their callers registers. */
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
