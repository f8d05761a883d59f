/** Loops over eight or sixteen lanes that the compiler turns into vector
 *  instructions.
 *
 *  They are plain loops over array elements c behind OJ_EIGHT or OJ_SIXTEEN,
 *  which keep the compiler from unrolling them before its vectoriser sees them.
 *  Lane by lane these are the ordinary operations, so width changes no bit.
 *  Functions made of them are inlined into one function per instruction set
 *  (OJ_CLONES), chosen when the library is loaded.
 */
#ifndef CPU_LANE_LOOPS_H
#define CPU_LANE_LOOPS_H

#define OJ_LANES 8
#define OJ_WIDE 16

#if defined(__clang__)
#define OJ_LANE_LOOP(n)                                                        \
    _Pragma("clang loop vectorize(enable)") for (int c = 0; c < (n); c++)
#else
#define OJ_LANE_LOOP(n) _Pragma("GCC unroll 1") for (int c = 0; c < (n); c++)
#endif
#define OJ_EIGHT OJ_LANE_LOOP(OJ_LANES)
#define OJ_SIXTEEN OJ_LANE_LOOP(OJ_WIDE)

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) &&    \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OJ_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
/* Of functions that count bits, for which the others have no instruction. */
#define OJ_COUNT_CLONES __attribute__((target_clones("popcnt", "default")))
#else
#define OJ_CLONES
#define OJ_COUNT_CLONES
#endif

#define OJ_INLINE static inline __attribute__((always_inline, unused))

#endif
