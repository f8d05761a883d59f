/** The joins that the methods of G-PICS answer. */
#ifndef GPICS_H
#define GPICS_H

#include "../foundations/relation/oj_index.h"

/** supports() of the engines with the methods of G-PICS, on the CPU and on a
 * GPU. Returns 1 for the four queries of the paper. */
int oj_gpics_supports_join(const struct oj_relation *relation,
                           const struct oj_flat *join_side,
                           const struct oj_flat *input);

#endif
