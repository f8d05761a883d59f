/** Boxes in the order of a Hilbert curve: neighbours in the order are
 *  neighbours in the plane, which is how packed trees are filled.
 *
 *  Source: Hilbert 1891.
 */
#ifndef OJ_HILBERT_H
#define OJ_HILBERT_H

#include <stdint.h>

/** The place of the centre of box on a curve through the 2^16 x 2^16 cells of
 *  extent. Both are least x, least y, greatest x, greatest y. */
uint32_t oj_hilbert_code(const double box[4], const double extent[4]);

/** Sorts the n numbers of order[0] by their upper 32 bits; equal ones stay as
 *  they were. order[1] has as much room; the two may have changed places
 *  afterwards, with the numbers in order[0]. O(n). */
void oj_hilbert_sort(uint64_t *order[2], int64_t n);

#endif
