/** The envelopes of a layer's features as a layer of rectangles, so that an
 *  engine for polygons can answer joins by envelopes. Source: ours.
 */
#ifndef ENVELOPE_RINGS_H
#define ENVELOPE_RINGS_H

#include "../../../flatten/arrays/oj_flat.h"

/** The layer of rectangles. Owner; zeroed memory is a valid empty one. */
struct envelope_rings
{
    /** One polygon of five vertices per feature whose envelope is not empty,
     *  also if the envelope has no area. The columns for conditions are those
     *  of the layer that it was made from, which must outlive it. */
    struct oj_flat flat;
    int64_t *offset; /**< [3 (n + 1)] memory of the offset arrays */
    uint8_t *kind;   /**< [n] memory of part_kind */
    double *xy;      /**< [10 n] memory of x and y */
};

/** Makes the rectangles of a layer. O(vertices); 105 bytes per feature. */
OJ_MUST_USE oj_status envelope_rings_make(struct envelope_rings *rings,
                                          const struct oj_flat *layer,
                                          struct oj_error *err);

void envelope_rings_free(struct envelope_rings *rings);

#endif
