/** Boxes in the order of a Hilbert curve: neighbours in the order are
 *  neighbours in the plane, which is how packed trees are filled.
 *
 *  Source: Hilbert 1891.
 */
#ifndef OJ_HILBERT_H
#define OJ_HILBERT_H

#include "../base/oj_status.h"

#include <stdint.h>

/** The place of the centre of box on a curve through the 2^16 x 2^16 cells of
 *  extent. Both are least x, least y, greatest x, greatest y. */
uint32_t oj_hilbert_code(const double box[4], const double extent[4]);

/** Sorts n numbers by their upper 32 bits; equal ones stay as they were.  O(n),
 *  and takes as much memory again. */
OJ_MUST_USE oj_status oj_hilbert_sort(uint64_t *numbers, int64_t n,
                                      struct oj_error *err);

#endif
