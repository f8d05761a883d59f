/** A layer as arrays.
 *
 *  feature   0            1      2          (2 has no geometry: no parts)
 *  part_offset  [0        2      3      3]
 *  part         0    1    2                 kinds: polygon polygon line
 *  ring_offset  [0   2    3      4]
 *  ring         0  1 2    3                 ring 1 is a hole of part 0
 *  vertex_offset[0 5 9 14 17]
 *  x, y         every vertex, in the given order and direction
 *
 *  Each offset array has one entry more than its level.  A point is a part with
 *  one ring of one vertex, a line a part with one ring, a polygon a part whose
 *  first ring is its shell; rings are closed (first vertex repeated).  Multi
 *  geometries and collections are features of several parts, of any kinds;
 *  empty members are left out.  A polygon part is the area that its rings
 *  enclose by even-odd; a feature is the union of its parts (oj_matrix.h).  A
 *  feature that joins nothing (NULL, empty, or with a coordinate that is not
 *  finite or beyond OJ_FLAT_MOST) has no parts.
 *
 *  The short form for layers of single points leaves part_offset, part_kind,
 *  ring_offset and vertex_offset NULL: feature i is vertex i, and x[i] is NaN
 *  where there is no geometry.
 *
 *  Source: Zhang, You, Gruenwald 2012, section 3.2, with the part level and
 *  the part kinds added.
 */
#ifndef OJ_FLAT_H
#define OJ_FLAT_H

#include "../base/oj_status.h"
#include "oj_vectors.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oj_token_sets;

/** The greatest size of a coordinate.  The engines multiply differences of
 *  coordinates; of larger ones, which mark missing data as a rule, the products
 *  overflow. */
#define OJ_FLAT_MOST 1e150

enum oj_part_kind
{
    OJ_PART_POINT = 1,
    OJ_PART_LINE = 2,
    OJ_PART_POLYGON = 4
};

/** A view: owns nothing. */
struct oj_flat
{
    /** In the short form n_parts and n_rings say nothing. */
    int64_t n_features, n_parts, n_rings, n_vertices;
    unsigned part_kinds;        /**< all enum oj_part_kind that occur, or'ed */
    const int64_t *fid;         /**< [n_features] or NULL: no FIDs */
    const int64_t *part_offset; /**< [n_features + 1] into parts, or NULL */
    const uint8_t *part_kind;   /**< [n_parts] enum oj_part_kind, or NULL */
    const int64_t *ring_offset; /**< [n_parts + 1] into rings, or NULL */
    const int64_t *vertex_offset; /**< [n_rings + 1] into x, y, or NULL */
    const double *x, *y;          /**< [n_vertices] layer CRS units */

    /* Columns that a join may ask for, [n_features] each, or NULL. */

    /** dwithin: the greatest distance of this feature, in place of the join's
     *  (one side at most has them); NaN or negative: it joins nothing. */
    const double *max_distance;
    /** Only pairs of one class count; a class < 0 joins nothing.  Both sides or
     *  none have them. */
    const int32_t *on_class;
    /** Pairs of one class do not count, a class < 0 aside. Both or none. */
    const int32_t *exclude_class;
    /** [n_texts], of n_features rows each (text/oj_token_sets.h): conditions on
     *  texts look at them; a feature that has no token in one of them joins
     *  nothing. */
    const struct oj_token_sets *texts;
    int n_texts;
    /** Of n_features rows: a condition on vectors looks at them. */
    struct oj_vectors vectors;

    /** Set by the join, for predicates: 1 where polygon parts of the feature
     *  overlap or share edges, so that its area is not what even-odd over all
     *  of its rings says, and it is taken part by part.  NULL: nowhere. */
    const uint8_t *overlaps;
};

/** What flattening left out or mended, for the summary. */
struct oj_flat_counts
{
    int64_t n_null;          /**< features without a geometry */
    int64_t n_empty;         /**< features with nothing but empty members */
    int64_t n_not_finite;    /**< features with a coordinate that is NaN,
                                  infinite or beyond OJ_FLAT_MOST */
    int64_t n_empty_members; /**< empty members inside other geometries */
    int64_t n_rings_closed;  /**< polygon rings whose last vertex was missing */
    int64_t n_linearized;    /**< features whose curves became line strings */
};

/** An owner that grows. Zeroed memory is a valid empty one. Read it through
 *  oj_flat_buf_view(): after a clear, arrays that are not in use keep their
 *  memory. */
struct oj_flat_buf
{
    struct oj_flat_counts counts;
    int long_form; /**< 0: part_offset ... vertex_offset are not in use */
    unsigned part_kinds;
    int64_t n_features, n_parts, n_rings, n_vertices;
    int64_t cap_features, cap_part_offset, cap_parts, cap_ring_offset;
    int64_t cap_vertex_offset, cap_x, cap_y;
    int64_t *fid;
    int64_t *part_offset, *ring_offset, *vertex_offset;
    uint8_t *part_kind;
    double *x, *y;
};

/** 1 when flat is in the short form. */
static inline int oj_flat_is_points(const struct oj_flat *flat)
{
    return flat->part_offset == NULL;
}

/** 1 when a feature is one part that is a point; in the short form all are. */
static inline int oj_flat_is_one_point(const struct oj_flat *flat,
                                       int64_t feature)
{
    int64_t part;
    if (oj_flat_is_points(flat))
        return 1;
    part = flat->part_offset[feature];
    return flat->part_offset[feature + 1] == part + 1 &&
           flat->part_kind[part] == OJ_PART_POINT;
}

/** Kinds of the parts of a feature, enum oj_part_kind or'ed; 0: no parts. */
unsigned oj_flat_kinds(const struct oj_flat *flat, int64_t feature);

/** The vertices of a feature, *first <= v < *end: one run of the arrays, in
 *  either form; none where it has no geometry. */
static inline void oj_flat_vertices(const struct oj_flat *flat, int64_t feature,
                                    int64_t *first, int64_t *end)
{
    const int64_t *ring = flat->ring_offset;
    *first = feature;
    if (oj_flat_is_points(flat))
    {
        *end = feature + (flat->x[feature] == flat->x[feature]);
        return;
    }
    *first = flat->vertex_offset[ring[flat->part_offset[feature]]];
    *end = flat->vertex_offset[ring[flat->part_offset[feature + 1]]];
}

/** The arrays of buf, valid until buf is next changed. */
struct oj_flat oj_flat_buf_view(const struct oj_flat_buf *buf);

/** Empties buf, its counts too, and keeps its memory; the next feature starts
 *  a new layer, in the short form. */
void oj_flat_buf_clear(struct oj_flat_buf *buf);

/** Frees everything; buf is a valid empty one afterwards. */
void oj_flat_buf_free(struct oj_flat_buf *buf);

/** Adds a feature without geometry (counted as NULL). */
OJ_MUST_USE oj_status oj_flat_buf_add_null(struct oj_flat_buf *buf, int64_t fid,
                                           struct oj_error *err);

/** Adds a feature that is one point. A coordinate that is not finite or beyond
 *  OJ_FLAT_MOST makes it a feature that joins nothing, counted: both NaN as
 *  empty (that is how WKB writes POINT EMPTY), anything else as not finite. */
OJ_MUST_USE oj_status oj_flat_buf_add_point(struct oj_flat_buf *buf,
                                            int64_t fid, double x, double y,
                                            struct oj_error *err);

/** Adds a box as a polygon; without width or height a line, without both a
 *  point. */
OJ_MUST_USE oj_status oj_flat_buf_add_box(struct oj_flat_buf *buf, int64_t fid,
                                          double x0, double y0, double x1,
                                          double y1, struct oj_error *err);

/* Building a feature of any shape: begin, then parts, rings and vertices in
 * order, then end. On an error inside, oj_flat_buf_drop() restores the state
 * before begin; add_null and add_point do that themselves. oj_flat_buf_end
 * drops empty rings, empty parts and polygons whose shell is empty, closes
 * polygon rings, empties the feature when a coordinate is not finite or beyond
 * OJ_FLAT_MOST, and counts; a point part that is NaN NaN is an empty one.
 * Nothing is reordered, merged or reoriented. begin turns a short form into the
 * long one. */
OJ_MUST_USE oj_status oj_flat_buf_begin(struct oj_flat_buf *buf, int64_t fid,
                                        struct oj_error *err);
OJ_MUST_USE oj_status oj_flat_buf_part(struct oj_flat_buf *buf,
                                       enum oj_part_kind kind,
                                       struct oj_error *err);
OJ_MUST_USE oj_status oj_flat_buf_ring(struct oj_flat_buf *buf,
                                       struct oj_error *err);

/** Room for n more vertices of the current ring; *x and *y point at them. The
 *  caller fills all n. */
OJ_MUST_USE oj_status oj_flat_buf_vertices(struct oj_flat_buf *buf, int64_t n,
                                           double **x, double **y,
                                           struct oj_error *err);
/** Adds part number part of flat, which is in the long form, with its rings
 *  and vertices, but for empty rings; closes rings of polygons. */
OJ_MUST_USE oj_status oj_flat_buf_copy_part(struct oj_flat_buf *buf,
                                            const struct oj_flat *flat,
                                            int64_t part, struct oj_error *err);
OJ_MUST_USE oj_status oj_flat_buf_end(struct oj_flat_buf *buf,
                                      struct oj_error *err);
void oj_flat_buf_drop(struct oj_flat_buf *buf);

/** Adds a copy of a feature of flat, in either form, with this FID. On failure
 *  buf has the features it had. */
OJ_MUST_USE oj_status oj_flat_buf_copy(struct oj_flat_buf *buf,
                                       const struct oj_flat *flat,
                                       int64_t feature, int64_t fid,
                                       struct oj_error *err);

/** Takes the parts from those features >= first that have a coordinate which is
 *  not finite or beyond OJ_FLAT_MOST, *n_dropped of them: for coordinates that
 *  were changed in place after end (a reprojection). Not added to counts. In
 *  the short form NaN NaN still means that there was no geometry before. */
OJ_MUST_USE oj_status oj_flat_buf_drop_not_finite(struct oj_flat_buf *buf,
                                                  int64_t first,
                                                  int64_t *n_dropped,
                                                  struct oj_error *err);

/** Some consecutive features of a layer, as a layer of their own. Owner of
 *  offsets; zeroed memory is a valid empty one and may be used again. */
struct oj_flat_slice
{
    struct oj_flat flat; /**< borrows vertices and columns of the layer */
    int64_t cap_part_offset, cap_ring_offset, cap_vertex_offset, cap_texts;
    int64_t *part_offset, *ring_offset, *vertex_offset;
    struct oj_token_sets *texts; /**< views */
};

/** Makes slice->flat the n features of flat from first on. It is valid as long
 *  as flat is. O(parts and rings of these features). */
OJ_MUST_USE oj_status oj_flat_slice_make(const struct oj_flat *flat,
                                         int64_t first, int64_t n,
                                         struct oj_flat_slice *slice,
                                         struct oj_error *err);

/** Frees what a slice owns; it is a valid empty one afterwards. */
void oj_flat_slice_free(struct oj_flat_slice *slice);

/** counts of one batch onto the sum of all. */
void oj_flat_counts_add(struct oj_flat_counts *sum,
                        const struct oj_flat_counts *counts);

/** 1: joins take all n coordinates; none is NaN, infinite or beyond
 *  OJ_FLAT_MOST. */
int oj_flat_are_joinable(const double *x, int64_t n);

/** Checks what the engine relies on: offsets start at 0, never decrease and end
 *  at their counts; kinds are valid; points have one vertex, lines two or more
 *  (one is taken as a point-like segment), polygon rings are closed; parts
 *  have finite coordinates, none beyond OJ_FLAT_MOST. O(vertices). For arrays
 * that a caller of the library made. */
OJ_MUST_USE oj_status oj_flat_check(const struct oj_flat *flat,
                                    struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
