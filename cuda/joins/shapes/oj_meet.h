/** Finds pairs of features whose boxes pass a test (enum oj_box_test), and
 *  their verdicts: whether lines and polygons intersect. The CPU decides the
 *  pairs that have no verdict.
 *
 *  feature   its box, its segments, and flags that limit the verdict
 *  image     a box as floats, relative to an origin, rounded to nearest.
 *            Rounding is monotonic: if boxes intersect, so do their images
 *  meet      an edge of one touches an edge of the other, or a part of one
 *            begins in the other (even-odd over all rings); decided by exact
 *            signs
 *
 *  Source: ours; cpu_prepared_shapes.c computes equal verdicts.
 */
#ifndef OJ_MEET_H
#define OJ_MEET_H

#include "../../../algs/foundations/kernels/oj_pair_verdict.h"
#include "../../../algs/foundations/kernels/oj_segment_intersection.h"
#include "../../foundations/tree/oj_tree_rings.h"

enum oj_meet_flag
{
    /** Lines or polygons that are not degenerate and have coordinates for which
     *  signs are exact: the CPU need not test further. */
    OJ_MEET_PLAIN = 1,
    OJ_MEET_POLYGON = 2, /**< polygons only */
    OJ_MEET_MANY = 4     /**< polygons with several rings */
};

struct oj_meet_feature
{
    struct oj_box box;  /**< exact; x0 > x1: the feature has no parts */
    int32_t first, end; /**< its segments */
    int32_t first_part, end_part;
    uint32_t flags;
    uint32_t padding;
};

struct __attribute__((aligned(16))) oj_meet_image
{
    float x0, y0, x1, y1; /**< x0 > x1: empty */
};

/* --- images --------------------------------------------------------------- */

OJ_FN struct oj_meet_image oj_meet_image_of_box(const struct oj_box *box,
                                                double x0, double y0)
{
    struct oj_meet_image image;
    image.x0 = (float)(box->x0 - x0);
    image.y0 = (float)(box->y0 - y0);
    image.x1 = (float)(box->x1 - x0);
    image.y1 = (float)(box->y1 - y0);
    return image;
}

OJ_FN int oj_meet_images_intersect(const struct oj_meet_image *a,
                                   const struct oj_meet_image *b)
{
    return (a->x0 <= b->x1) & (b->x0 <= a->x1) & (a->y0 <= b->y1) &
           (b->y0 <= a->y1);
}

OJ_FN void oj_meet_image_unite(struct oj_meet_image *image,
                               const struct oj_meet_image *other)
{
    image->x0 = other->x0 < image->x0 ? other->x0 : image->x0;
    image->y0 = other->y0 < image->y0 ? other->y0 : image->y0;
    image->x1 = other->x1 > image->x1 ? other->x1 : image->x1;
    image->y1 = other->y1 > image->y1 ? other->y1 : image->y1;
}

/** Returns a mask of the children whose boxes may hold a box that intersects
 *  the image. Boxes of nodes are rounded outward, so they intersect the image
 *  if such a box does. */
OJ_FN uint32_t oj_meet_child_mask(const struct oj_device_tree_node *node, int n,
                                  const struct oj_meet_image *image)
{
    uint32_t hits = 0;
    int c;
    for (c = 0; c < OJ_TREE_FANOUT; c++)
    {
        int hit = (c < n) & (node->x0[c] <= image->x1) &
                  (image->x0 <= node->x1[c]) & (node->y0[c] <= image->y1) &
                  (image->y0 <= node->y1[c]);
        hits |= (uint32_t)hit << c;
    }
    return hits;
}

/* --- features ------------------------------------------------------------- */

/** A summary of a feature. Its edges are added one by one, or summaries of
 *  different edges are merged. */
struct oj_meet_summary
{
    /** all: box of all rings; shells: box of the first rings of all parts */
    struct oj_box all, shells;
    int is_exact; /**< signs are exact for these coordinates */
};

OJ_FN void oj_meet_summary_start(struct oj_meet_summary *summary)
{
    summary->all = summary->shells = oj_box_empty();
    summary->is_exact = 1;
}

/* Returns 1 if signs are exact for the coordinate v: products of differences of
 * such numbers, and the rounding errors of these products, neither overflow nor
 * underflow. Returns 0 for NaN. */
OJ_FN int oj_meet_allows_exact_signs(double v)
{
    double size = fabs(v);
    return v == 0.0 || (size > 1e-100 && size < 1e100);
}

OJ_FN void oj_meet_summary_add_edge(struct oj_meet_summary *summary,
                                    const struct oj_cuda_segment *s,
                                    int is_shell)
{
    oj_box_add_point(&summary->all, s->ax, s->ay);
    oj_box_add_point(&summary->all, s->bx, s->by);
    if (is_shell)
    {
        oj_box_add_point(&summary->shells, s->ax, s->ay);
        oj_box_add_point(&summary->shells, s->bx, s->by);
    }
    summary->is_exact = summary->is_exact & oj_meet_allows_exact_signs(s->ax) &
                        oj_meet_allows_exact_signs(s->ay) &
                        oj_meet_allows_exact_signs(s->bx) &
                        oj_meet_allows_exact_signs(s->by);
}

/** Returns 1 if the segment has a length. */
OJ_FN int oj_meet_has_length(const struct oj_cuda_segment *s)
{
    return s->ax != s->bx || s->ay != s->by;
}

/** Returns 1 if a ring is degenerate: a polygon's ring that encloses nothing,
 *  or a line that is a point. n_lengths is the number of its segments that have
 *  a length. */
OJ_FN int oj_meet_ring_is_degenerate(int is_polygon, int is_line,
                                     int64_t n_lengths)
{
    return is_polygon ? n_lengths < 3 : is_line && n_lengths == 0;
}

/** Returns the flags of a feature after all its edges were added. polygons,
 *  lines and points are 1 if it has such parts; has_degenerate_ring is 1 if one
 *  of its rings is degenerate (oj_meet_ring_is_degenerate()). */
OJ_FN uint32_t oj_meet_flags_of_summary(const struct oj_meet_summary *summary,
                                        int polygons, int lines, int points,
                                        int64_t n_parts, int64_t n_rings,
                                        int has_degenerate_ring)
{
    uint32_t flags = 0;
    int odd = has_degenerate_ring;
    if (polygons && n_rings != n_parts)
        odd = odd || !oj_box_covers(&summary->shells, &summary->all);
    if (polygons && !lines && !points)
        flags |= OJ_MEET_POLYGON;
    if (polygons && n_rings > 1)
        flags |= OJ_MEET_MANY;
    if (!odd && summary->is_exact && !points && polygons != lines)
        flags |= OJ_MEET_PLAIN;
    return flags;
}

/** Returns 1 if the exact boxes of a row and a join feature pass the test. */
OJ_FN int oj_meet_boxes_pass(enum oj_box_test test,
                             const struct oj_meet_feature *row,
                             const struct oj_meet_feature *found)
{
    const struct oj_box *a = &row->box, *b = &found->box;
    if (!oj_box_intersects(a, b))
        return 0;
    if (test == OJ_BOX_MEETS)
        return 1;
    if (test != OJ_BOX_WITHIN && !oj_box_covers(b, a))
        return 0;
    return test == OJ_BOX_COVERS || oj_box_covers(a, b);
}

/* --- edges ---------------------------------------------------------------- */

OJ_FN_APART int oj_meet_exact_orientation_sign(double ax, double ay, double bx,
                                               double by, double cx, double cy)
{
    return oj_orientation_exact(ax, ay, bx, by, cx, cy);
}

/** Returns the sign of oj_orientation(), whose exact part is called here
 *  instead of being inlined. */
OJ_FN int oj_meet_orientation_sign(double ax, double ay, double bx, double by,
                                   double cx, double cy)
{
    int sign = oj_orientation_if_certain(ax, ay, bx, by, cx, cy);
    return sign != OJ_SIGN_OPEN
               ? sign
               : oj_meet_exact_orientation_sign(ax, ay, bx, by, cx, cy);
}

/** Returns 1 if two closed segments intersect. */
OJ_FN int oj_meet_segments_intersect(const struct oj_cuda_segment *e,
                                     const struct oj_cuda_segment *f)
{
    if (!oj_segment_boxes_meet(e->ax, e->ay, e->bx, e->by, f->ax, f->ay, f->bx,
                               f->by))
        return 0;
    if (oj_meet_orientation_sign(e->ax, e->ay, e->bx, e->by, f->ax, f->ay) *
            oj_meet_orientation_sign(e->ax, e->ay, e->bx, e->by, f->bx, f->by) >
        0)
        return 0;
    return oj_meet_orientation_sign(f->ax, f->ay, f->bx, f->by, e->ax, e->ay) *
               oj_meet_orientation_sign(f->ax, f->ay, f->bx, f->by, e->bx,
                                        e->by) <=
           0;
}

/* --- parts that begin in a polygon ---------------------------------------- */

/** Returns 1 if p is not outside of a feature's polygons, by even-odd over all
 *  their rings. */
OJ_FN int oj_meet_polygon_contains(const struct oj_tree_rings *rings,
                                   const struct oj_meet_feature *polygon,
                                   double px, double py)
{
    int64_t ring = rings->ring_offset[polygon->first_part];
    int64_t end = rings->ring_offset[polygon->end_part];
    int odd = 0;
    if (!(polygon->box.x0 <= px && px <= polygon->box.x1 &&
          polygon->box.y0 <= py && py <= polygon->box.y1))
        return 0;
    for (; ring < end; ring++)
    {
        enum oj_location at = oj_tree_ring_locate(rings, ring, px, py);
        if (at == OJ_ON_BOUNDARY)
            return 1;
        odd ^= at == OJ_INSIDE;
    }
    return odd;
}

/** Returns 1 if a part of feature begins inside `polygon`; always 0 if
 *  `polygon` consists of lines. */
OJ_FN int
oj_meet_starts_in_polygon(const struct oj_tree_rings *rings,
                          const struct oj_meet_feature *feature,
                          const struct oj_tree_rings *rings_of_polygon,
                          const struct oj_meet_feature *polygon)
{
    int64_t part = feature->first_part;
    if ((polygon->flags & (uint32_t)OJ_MEET_POLYGON) == 0)
        return 0;
    for (; part < feature->end_part; part++)
    {
        int64_t at = rings->segment_offset[rings->ring_offset[part]];
        const struct oj_cuda_segment *s = &rings->segment[at];
        if (oj_meet_polygon_contains(rings_of_polygon, polygon, s->ax, s->ay))
            return 1;
    }
    return 0;
}

/** Maximum product of the numbers of parts and rings of a pair that one thread
 *  tests. Larger pairs are left to the CPU, whose indexes have cells for them.
 */
#define OJ_MEET_MOST_PARTS 4096

OJ_FN int oj_meet_has_too_many_parts(const struct oj_tree_rings *rings_a,
                                     const struct oj_meet_feature *a,
                                     const struct oj_tree_rings *rings_b,
                                     const struct oj_meet_feature *b)
{
    int64_t parts_a = a->end_part - a->first_part;
    int64_t parts_b = b->end_part - b->first_part;
    int64_t n_a =
        rings_a->ring_offset[a->end_part] - rings_a->ring_offset[a->first_part];
    int64_t n_b =
        rings_b->ring_offset[b->end_part] - rings_b->ring_offset[b->first_part];
    return parts_a * n_b > OJ_MEET_MOST_PARTS ||
           parts_b * n_a > OJ_MEET_MOST_PARTS;
}

/* --- a pair --------------------------------------------------------------- */

/** Returns the verdict before any edge is tested: OJ_VERDICT_OPEN for pairs
 *  that are left to the CPU, otherwise provisionally OJ_VERDICT_DISJOINT. */
OJ_FN enum oj_pair_verdict
oj_meet_initial_verdict(const struct oj_meet_feature *a,
                        const struct oj_meet_feature *b)
{
    return (a->flags & b->flags & (uint32_t)OJ_MEET_PLAIN) != 0
               ? OJ_VERDICT_DISJOINT
               : OJ_VERDICT_OPEN;
}

/** Returns the verdict of a pair of plain features whose edges do not
 *  intersect. */
OJ_FN enum oj_pair_verdict oj_meet_verdict_without_crossing(
    const struct oj_tree_rings *rings_a, const struct oj_meet_feature *a,
    const struct oj_tree_rings *rings_b, const struct oj_meet_feature *b)
{
    int many = ((a->flags | b->flags) & (uint32_t)OJ_MEET_MANY) != 0;
    if (oj_meet_has_too_many_parts(rings_a, a, rings_b, b))
        return OJ_VERDICT_OPEN;
    if (oj_meet_starts_in_polygon(rings_a, a, rings_b, b) ||
        oj_meet_starts_in_polygon(rings_b, b, rings_a, a))
        return many ? OJ_VERDICT_INTERSECTS_IF_VALID : OJ_VERDICT_INTERSECTS;
    return many ? OJ_VERDICT_DISJOINT_IF_VALID : OJ_VERDICT_DISJOINT;
}

#endif
