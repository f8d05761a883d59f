/** Macros for kernel headers. Kernel headers define functions that are compiled
 * both by the C compiler and by nvcc and must give equal bits. They use only
 * + - * / sqrt fabs and comparisons (with -ffp-contract=off and -fmad=false),
 * and no syntax of C that C++ lacks. */
#ifndef OJ_KERNEL_H
#define OJ_KERNEL_H

#include <math.h>
#include <stdint.h>

/* OJ_FN: an inlined function for CPU and GPU. OJ_FN_APART: for functions that
 * are called rarely. They are not inlined on the GPU, so that their callers
 * need fewer registers. */
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
