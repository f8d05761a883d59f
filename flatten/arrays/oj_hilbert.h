/** Order of boxes along a Hilbert curve: neighbours in this order are
 *  neighbours in the plane, so packed trees are filled in it. Source: Hilbert
 *  1891. */
#ifndef OJ_HILBERT_H
#define OJ_HILBERT_H

#include <stdint.h>

/** Returns the position of the centre of box on a curve through the 2^16 x 2^16
 *  cells of extent. Boxes are minimum x, minimum y, maximum x, maximum y. */
uint32_t oj_hilbert_code(const double box[4], const double extent[4]);

/** Sorts the n numbers of order[0] by their upper 32 bits; stable. order[1] is
 *  a buffer of n numbers; the two pointers may be swapped, so that the result
 *  is in order[0]. O(n). */
void oj_hilbert_sort(uint64_t *order[2], int64_t n);

#endif
