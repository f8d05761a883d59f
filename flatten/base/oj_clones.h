/** Functions that the compiler makes once for each instruction set; which one
 *  runs is chosen when the program is loaded. Nothing where the compiler or a
 *  sanitizer cannot do so. */
#ifndef OJ_CLONES_H
#define OJ_CLONES_H

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
