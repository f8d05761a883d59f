/** Loops over eight lanes that the compiler turns into vector instructions.
 *
 *  They are plain loops over OJ_LANES array elements behind OJ_EIGHT, which
 *  keeps the compiler from unrolling them before its vectoriser sees them.
 *  Lane by lane these are the ordinary operations, so width changes no bit.
 *  Functions made of them are inlined into one function per instruction set
 *  (OJ_CLONES), chosen when the library is loaded.
 */
#ifndef CPU_VECTOR_H
#define CPU_VECTOR_H

#define OJ_LANES 8

#if defined(__clang__)
#define OJ_EIGHT                                                               \
    _Pragma("clang loop vectorize(enable)") for (int c = 0; c < OJ_LANES; c++)
#else
#define OJ_EIGHT _Pragma("GCC unroll 1") for (int c = 0; c < OJ_LANES; c++)
#endif

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) &&    \
    !defined(__SANITIZE_ADDRESS__)
#define OJ_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define OJ_CLONES
#endif

#define OJ_INLINE static inline __attribute__((always_inline, unused))

#endif
