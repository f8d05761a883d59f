/** Where a point is in the union of polygon parts, and what is around it there.
 *
 *  Directions from a point p are given by other points, and ordered by their
 *  angle from that of growing x, counterclockwise.  The edges that leave p part
 *  its surroundings into sectors; the edges that miss p say whether the first
 *  sector is in a part, by even-odd, and each edge that leaves p changes it.
 *  All is decided by signs of orientations, exactly.
 *  Source: ours.
 */
#ifndef OJ_PART_SECTORS_H
#define OJ_PART_SECTORS_H

#include "../flatten/oj_flat.h"
#include "kernels/oj_ring.h"

struct oj_corner
{
    double x, y;
};

/** < 0: the direction from p to u comes before that to v; 0: they are one. */
int oj_compare_directions(const struct oj_corner *p, const struct oj_corner *u,
                          const struct oj_corner *v);

/** 1 when counterclockwise from a the direction to b comes before that to c,
 *  and they are three. */
int oj_is_between_directions(const struct oj_corner *p,
                             const struct oj_corner *a,
                             const struct oj_corner *b,
                             const struct oj_corner *c);

/** 1 when the points near p in the directions just after that to `from` (NULL:
 *  just after that of growing x) are in the polygon part, by even-odd.
 *  O(vertices). */
int oj_is_inside_after(const struct oj_flat *flat, int64_t part,
                       const struct oj_corner *p, const struct oj_corner *from);

/** 1 when each of the sectors around p is in one of the polygon parts at least.
 *  part: the numbers of n parts; NULL: those from first on.  Other kinds of
 *  parts do not count.  O(vertices * edges at p). */
int oj_parts_surround(const struct oj_flat *flat, const int64_t *part,
                      int64_t first, int64_t n, const struct oj_corner *p);

/** Where x, y is in the union of the polygon parts of a feature of the long
 *  form: inside where it is strictly inside of one, or where it is on rings of
 *  two or more and these parts cover all of its surroundings; on the boundary
 *  where it is on rings else.  O(vertices). */
enum oj_location oj_overlapping_locate(const struct oj_flat *flat,
                                       int64_t feature, double x, double y);

#endif
