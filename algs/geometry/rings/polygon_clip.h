/** Clips a polygon feature of many vertices to the surroundings of a box. The
 *  overlay of the result with a feature in the box equals that of the whole
 *  polygon, but takes time only for the edges near the box.
 *
 *      a . b                     The window is a little larger than the box.
 *      .    \   +--------+       The run a .. b of vertices is on one side of
 *      .     \  |  +--+  |       the window (left of it, right of it, below or
 *      .  P   \-|--|  |--|--     above), so the chord a -> b is, too. The
 *      .        |  +--+  |       clipped ring has the chord instead of the run.
 *      a        +--------+
 *
 *  Vertices are only left out, none is made or moved. Chords do not enter the
 *  window, so that each point of it keeps its location in the polygon, and the
 *  edges that meet the window are those of the whole polygon. Outside of the
 *  window chords may cross: the result is not a valid polygon.
 *
 *  The result is made for GEOS's OverlayNG (GEOS 3.9 or later), which clips
 *  both operands to an envelope before it computes nodes. It then computes
 *  exactly the nodes of the whole polygon, because
 *
 *  - the window contains that envelope: the box, widened by a tenth of its
 *    shorter side, with the whole edges that meet it, and a tenth more;
 *  - the clipped rings begin and end where the whole ones do, and rings left
 *    out are outside of the envelope;
 *  - the vertices that determine the envelope of the feature stay, and those
 *    from which GEOS computes the orientation of a ring (the highest ones).
 *
 *  Source: ours, after the outcodes of Cohen and Sutherland. Pays: overlaps of
 *  8,000 boxes along the border of a polygon of as many vertices take less than
 *  a tenth of the time, and grow with their number instead of its square.
 */
#ifndef POLYGON_CLIP_H
#define POLYGON_CLIP_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/cpu_packed_tree.h"

/** Vertices of a ring by which its orientation is computed, ascending. */
struct oj_ring_cap
{
    int64_t vertex[4];
};

/** A feature of polygons that is to be clipped. Owner; zeroed memory is valid.
 *  Vertices are counted from the feature's first vertex. */
struct oj_polygon_clip
{
    const struct oj_flat *flat; /**< borrowed */
    int64_t first_part, n_parts, first_ring, n_rings, first_vertex, n_vertices;
    struct oj_tree tree;     /**< over the boxes of runs of edges, in the order
                                  of the vertices */
    struct oj_ring_cap *cap; /**< [n_rings] */
    int64_t extreme[4];      /**< vertices of least and greatest x and y */
    int64_t *left;           /**< vertices kept of the current ring; scratch */
    int64_t cap_left;
};

/** Prepares a feature. Preconditions: flat, which must outlive the clip, is in
 * the long form; all parts of the feature are polygons, together valid.
 * O(vertices). */
OJ_MUST_USE oj_status oj_polygon_clip_build(struct oj_polygon_clip *clip,
                                            const struct oj_flat *flat,
                                            int64_t feature,
                                            struct oj_error *err);

/** Replaces the contents of *out by the feature, clipped to the surroundings of
 * box, and sets *is_clipped to 1. Sets *is_clipped to 0 if more than `most`
 * vertices would be left; *out is then undefined. O(log vertices) for each edge
 * near the box. */
OJ_MUST_USE oj_status oj_polygon_clip_near(
    struct oj_polygon_clip *clip, const struct oj_box *box, int64_t most,
    struct oj_flat_buf *out, int *is_clipped, struct oj_error *err);

void oj_polygon_clip_free(struct oj_polygon_clip *clip);

#endif
