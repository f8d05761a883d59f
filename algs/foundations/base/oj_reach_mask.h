/** The part of the plane that is within a distance of a layer, as a bitmap of
 *  square cells. A look-up of one bit excludes points that have no feature of
 *  the layer within the distance.
 *
 *      . . . . . . .        x  a segment of the layer
 *      . 1 1 1 1 . .        1  a cell that intersects the segment's box,
 *      . 1 x x 1 . .           which is widened by the distance
 *      . 1 1 1 1 . .
 *
 *  A point in a cell with a 1 may still be too far away. Source: ours.
 */
#ifndef OJ_REACH_MASK_H
#define OJ_REACH_MASK_H

#include "oj_feature_box.h"

/** Owner; zeroed memory is a valid empty value. */
struct oj_reach_mask
{
    struct oj_box frame; /**< points outside of the frame are not within the
                              distance */
    double scale;        /**< cells per CRS unit */
    int32_t nx, ny;      /**< cells along each axis */
    int32_t row_words;   /**< 64-bit words per row of cells */
    uint64_t *bit;       /**< [ny][row_words] 1: points of the cell may be
                              within the distance; NULL: there is no mask,
                              because the layer has no vertices or
                              oj_box_is_safe_for_grid() refuses the frame */
};

/** Makes the mask of a layer and a finite distance. If most cells would be
 * within the distance, or if marking them takes too long, the frame is the only
 * cell. Envelopes of whole polygons are marked, so the mask is right for
 * distances to interiors and to boundaries. O(vertices); about 1 MB at most. */
OJ_MUST_USE oj_status oj_reach_mask_make(struct oj_reach_mask *mask,
                                         const struct oj_flat *layer,
                                         double distance, struct oj_error *err);

void oj_reach_mask_free(struct oj_reach_mask *mask);

/** Returns 0 if a look-up is not worth its time for points that lie mostly in
 * this box: there is no mask, or the mask is a single cell that contains the
 * box. */
static inline int oj_reach_mask_may_exclude(const struct oj_reach_mask *mask,
                                            const struct oj_box *points)
{
    return mask->bit != NULL &&
           (mask->scale > 0.0 ||
            !oj_box_contains_point(&mask->frame, points->x0, points->y0) ||
            !oj_box_contains_point(&mask->frame, points->x1, points->y1));
}

/** Returns 0 if the point is surely not within the distance, or if a coordinate
 * is NaN. Precondition: mask->bit is not NULL. */
static inline int oj_reach_mask_has(const struct oj_reach_mask *mask, double x,
                                    double y)
{
    int32_t column, row;
    if (!oj_box_contains_point(&mask->frame, x, y))
        return 0;
    column = (int32_t)((x - mask->frame.x0) * mask->scale);
    row = (int32_t)((y - mask->frame.y0) * mask->scale);
    return (int)(mask->bit[(int64_t)row * mask->row_words + column / 64] >>
                     (column % 64) &
                 1);
}

/** Returns 0 only if no point of the box is within the distance; 1 if some may
 * be. The box must not be empty. Precondition: mask->bit is not NULL. O(cells
 * of the box / 64). */
int oj_reach_mask_meets_box(const struct oj_reach_mask *mask,
                            const struct oj_box *box);

#endif
