/** Eight lanes at a time, in the vector types of gcc and clang; the compiler
 *  splits them for narrower registers.  Lane by lane these are the ordinary
 *  operations, so that width changes no bit.
 *
 *  Functions that use them are inlined into one function per instruction set
 *  (OJ_CLONES), chosen when the library is loaded.
 */
#ifndef CPU_VECTOR_H
#define CPU_VECTOR_H

#include <stdint.h>

#define OJ_LANES 8

typedef float oj_float8 __attribute__((vector_size(32), may_alias));
typedef int32_t oj_int8 __attribute__((vector_size(32), may_alias));
typedef double oj_double8 __attribute__((vector_size(64), may_alias));
typedef int64_t oj_long8 __attribute__((vector_size(64), may_alias));

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) &&    \
    !defined(__SANITIZE_ADDRESS__)
#define OJ_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define OJ_CLONES
#endif
#define OJ_INLINE static inline __attribute__((always_inline, unused))

/* where: lanes of all ones or all zeros, as comparisons give them.  Macros,
 * because passing vectors to functions draws warnings about calling
 * conventions that inlining makes moot. */
#define OJ_SELECT8(where, a, b, real, whole)                                   \
    ((real)(((where) & (whole)(a)) | (~(where) & (whole)(b))))
#define OJ_SELECT_D8(where, a, b) OJ_SELECT8(where, a, b, oj_double8, oj_long8)
#define OJ_SELECT_F8(where, a, b) OJ_SELECT8(where, a, b, oj_float8, oj_int8)

/* max(a, 0): a NaN becomes 0 */
#define OJ_POSITIVE_D8(a) ((oj_double8)((oj_long8)(a) & ((a) > 0.0)))
#define OJ_POSITIVE_F8(a) ((oj_float8)((oj_int8)(a) & ((a) > 0.0f)))

#endif
