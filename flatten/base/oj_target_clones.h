/** Attributes for functions that are compiled once per instruction set; the
 *  loader chooses the version that fits the processor. Empty if the compiler or
 *  a sanitizer does not support this. */
#ifndef OJ_TARGET_CLONES_H
#define OJ_TARGET_CLONES_H

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) &&    \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OJ_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
/* Clones for loops that gain only from the popcnt instruction (counts bits). */
#define OJ_COUNT_CLONES __attribute__((target_clones("popcnt", "default")))
#else
#define OJ_CLONES
#define OJ_COUNT_CLONES
#endif

/* A function that is compiled anew for the constants of each call, except in a
 * file that defines OJ_FEW_COPIES before its includes. */
#ifdef OJ_FEW_COPIES
#define OJ_INLINE static inline __attribute__((unused))
#else
#define OJ_INLINE static inline __attribute__((always_inline, unused))
#endif

#endif
