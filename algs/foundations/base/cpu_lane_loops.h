/** Loops over 8 or 16 array elements (lanes) that the compiler vectorises.
 * OJ_EIGHT and OJ_SIXTEEN keep gcc from unrolling the loop before it can
 * vectorise it. Each lane does ordinary scalar operations, so the result does
 * not depend on the vector width. OJ_CLONES compiles a function for several
 * instruction sets, of which one is chosen when the library is loaded. */
#ifndef CPU_LANE_LOOPS_H
#define CPU_LANE_LOOPS_H

#include "../../../flatten/base/oj_target_clones.h"

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

#endif
