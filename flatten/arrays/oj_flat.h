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
#include "oj_spans.h"
#include "oj_vectors.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oj_token_sets;

/** Maximum absolute coordinate. The engines multiply differences of
 *  coordinates, and these products must not overflow. Larger coordinates
 *  usually mark missing data. */
#define OJ_FLAT_MOST 1e150

enum oj_part_kind
{
    OJ_PART_POINT = 1,
    OJ_PART_LINE = 2,
    OJ_PART_POLYGON = 4
};

/** A layer as arrays. Owns nothing. */
struct oj_flat
{
    /** Counts; n_parts and n_rings are unused in the short form. */
    int64_t n_features, n_parts, n_rings, n_vertices;
    unsigned part_kinds;        /**< all enum oj_part_kind that occur, or'ed */
    const int64_t *fid;         /**< [n_features]; NULL: no FIDs */
    const int64_t *part_offset; /**< [n_features + 1] first part, or NULL */
    const uint8_t *part_kind;   /**< [n_parts] enum oj_part_kind, or NULL */
    const int64_t *ring_offset; /**< [n_parts + 1] first ring, or NULL */
    const int64_t *vertex_offset; /**< [n_rings + 1] first vertex, or NULL */
    /** [n_vertices] in units of the layer's CRS. */
    const double *x, *y;
    /** [n_vertices] M values of the long form, which linear referencing reads;
     *  NaN: the vertex has no M value. NULL: M values were not kept. */
    const double *m;

    /* Columns for conditions of a join, [n_features] each; NULL: the join has
     * no such condition. */

    /** dwithin: maximum distance of the feature, which replaces the join's (at
     *  most one side has this column); a feature with NaN or a negative value
     *  matches nothing. */
    const double *max_distance;
    /** Input side of a join with a condition on headings: degrees clockwise
     *  from north; NaN, or a value below -360 or above 360: the feature has no
     *  heading. */
    const double *heading;
    /** Only features of equal class match; a class < 0 matches nothing. Both
     *  sides have the column, or none. */
    const int32_t *on_class;
    /** Features of equal class do not match, unless the class is < 0. Both
     *  sides have the column, or none. */
    const int32_t *exclude_class;
    /** [n_texts], each with n_features rows (text/oj_token_sets.h): the texts
     *  of conditions; a feature without a token in one of them matches nothing.
     */
    const struct oj_token_sets *texts;
    int n_texts;
    /** [n_features] vectors for a condition on vectors. */
    struct oj_vectors vectors;
    /** [n_spans], each with n_features rows: spans for conditions. */
    struct oj_spans spans[OJ_MOST_SPANS];
    int n_spans;

    /** Set by the join, for predicates: 1 for a feature whose polygon parts
     *  overlap or share edges. The even-odd rule over all of its rings would be
     *  wrong, so the join tests each part alone. NULL: there is no such
     *  feature. */
    const uint8_t *overlaps;
};

/** Features that flattening left out or repaired, for the summary. */
struct oj_flat_counts
{
    int64_t n_null;          /**< features without a geometry */
    int64_t n_empty;         /**< features with empty members only */
    int64_t n_not_finite;    /**< features with a coordinate that is NaN,
                                  infinite or beyond OJ_FLAT_MOST */
    int64_t n_empty_members; /**< empty members inside other geometries */
    int64_t n_rings_closed;  /**< polygon rings whose last vertex was missing */
    int64_t n_linearized;    /**< features whose curves became line strings */
};

/** A layer that can grow. Owner; zeroed memory is a valid empty layer. Read it
 *  through oj_flat_buf_view(), not by its members: after a clear, pointers that
 *  must be NULL in the short form still refer to memory here. */
struct oj_flat_buf
{
    struct oj_flat_counts counts;
    int long_form; /**< 0: part_offset .. vertex_offset are unused */
    int keeps_m;   /**< 1: vertices of the long form have M values. Set it while
                        buf is empty; oj_flat_buf_clear() keeps it */
    unsigned part_kinds;
    int64_t n_features, n_parts, n_rings, n_vertices;
    int64_t cap_features, cap_part_offset, cap_parts, cap_ring_offset;
    int64_t cap_vertex_offset, cap_x, cap_y, cap_m;
    int64_t *fid;
    int64_t *part_offset, *ring_offset, *vertex_offset;
    uint8_t *part_kind;
    double *x, *y, *m;
};

/** Returns n points as a layer in the short form. fid may be NULL. */
struct oj_flat oj_flat_of_points(int64_t n, const int64_t *fid, const double *x,
                                 const double *y);

/** Returns 1 if flat is in the short form. */
static inline int oj_flat_is_points(const struct oj_flat *flat)
{
    return flat->part_offset == NULL;
}

/** Returns 1 if a feature is a single point, which is always so in the short
 *  form. */
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

/** Returns the kinds of a feature's parts, enum oj_part_kind or'ed; 0: the
 *  feature has no parts. */
unsigned oj_flat_kinds(const struct oj_flat *flat, int64_t feature);

/** Finds the range *first <= v < *end of a feature's vertices, in either form;
 *  an empty range if the feature has no geometry. */
static inline void oj_flat_vertex_range(const struct oj_flat *flat,
                                        int64_t feature, int64_t *first,
                                        int64_t *end)
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

/** Returns the arrays of buf, valid until buf is changed. */
struct oj_flat oj_flat_buf_view(const struct oj_flat_buf *buf);

/** Removes all features and counts; keeps the memory. The next feature starts a
 *  layer in the short form. */
void oj_flat_buf_clear(struct oj_flat_buf *buf);

/** Frees all memory; buf is then a valid empty layer. */
void oj_flat_buf_free(struct oj_flat_buf *buf);

/** Adds a feature without geometry, and counts it in buf->counts.n_null. */
OJ_MUST_USE oj_status oj_flat_buf_add_null(struct oj_flat_buf *buf, int64_t fid,
                                           struct oj_error *err);

/** Adds a feature that is a single point. If a coordinate is not finite or
 *  beyond OJ_FLAT_MOST, the feature has no geometry: it is counted as empty if
 *  both coordinates are NaN (WKB writes POINT EMPTY like this), else as not
 *  finite. */
OJ_MUST_USE oj_status oj_flat_buf_add_point(struct oj_flat_buf *buf,
                                            int64_t fid, double x, double y,
                                            struct oj_error *err);

/** Adds a box: as a polygon, as a line if its width or height is 0, as a point
 *  if both are. */
OJ_MUST_USE oj_status oj_flat_buf_add_box(struct oj_flat_buf *buf, int64_t fid,
                                          double x0, double y0, double x1,
                                          double y1, struct oj_error *err);

/* Add a feature of any shape: call begin, then part, ring and vertices in
 * order, then end. begin turns a short form into the long one. On an error in
 * between, oj_flat_buf_drop_feature() restores the state before begin; add_null
 * and add_point do so themselves. oj_flat_buf_end_feature() drops empty rings,
 * empty parts and polygons with an empty shell, closes polygon rings, removes
 * all parts if a coordinate is not finite or beyond OJ_FLAT_MOST, and updates
 * buf->counts; a point part NaN NaN is empty. Nothing is reordered, merged or
 * reoriented. */
OJ_MUST_USE oj_status oj_flat_buf_begin_feature(struct oj_flat_buf *buf,
                                                int64_t fid,
                                                struct oj_error *err);
OJ_MUST_USE oj_status oj_flat_buf_begin_part(struct oj_flat_buf *buf,
                                             enum oj_part_kind kind,
                                             struct oj_error *err);
OJ_MUST_USE oj_status oj_flat_buf_begin_ring(struct oj_flat_buf *buf,
                                             struct oj_error *err);

/** Adds n vertices to the current ring; *x and *y point to them. The caller
 *  must fill all n. */
OJ_MUST_USE oj_status oj_flat_buf_add_vertices(struct oj_flat_buf *buf,
                                               int64_t n, double **x,
                                               double **y,
                                               struct oj_error *err);
/** Returns the M values of the last n vertices, which are NaN until the caller
 *  sets them; NULL: buf does not keep M values. */
static inline double *oj_flat_buf_last_m(const struct oj_flat_buf *buf,
                                         int64_t n)
{
    return buf->keeps_m && buf->long_form ? buf->m + (buf->n_vertices - n)
                                          : NULL;
}

/** Converts an M value read from a file: returns NaN if m is not finite or
 *  below -1e38, the value of Shapefiles for "no data"; otherwise m. */
static inline double oj_flat_clean_m_value(double m)
{
    return m >= -1e38 && m - m == 0.0 ? m : (double)NAN;
}

/** Adds a part of flat, which must be in the long form, with its rings and
 *  vertices. Leaves out empty rings; closes rings of polygons. */
OJ_MUST_USE oj_status oj_flat_buf_copy_part(struct oj_flat_buf *buf,
                                            const struct oj_flat *flat,
                                            int64_t part, struct oj_error *err);
OJ_MUST_USE oj_status oj_flat_buf_end_feature(struct oj_flat_buf *buf,
                                              struct oj_error *err);
void oj_flat_buf_drop_feature(struct oj_flat_buf *buf);

/** Adds a copy of a feature of flat, in either form, with this FID. On failure
 *  buf is unchanged. */
OJ_MUST_USE oj_status oj_flat_buf_copy(struct oj_flat_buf *buf,
                                       const struct oj_flat *flat,
                                       int64_t feature, int64_t fid,
                                       struct oj_error *err);

/** Removes the parts of the features from `first` on that have a coordinate
 *  which is not finite or beyond OJ_FLAT_MOST; *n_dropped: number of these
 *  features. Needed after coordinates were changed in place (a reprojection).
 *  buf->counts stays unchanged. In the short form NaN NaN still means that
 *  there was no geometry before. */
OJ_MUST_USE oj_status oj_flat_buf_drop_not_finite(struct oj_flat_buf *buf,
                                                  int64_t first,
                                                  int64_t *n_dropped,
                                                  struct oj_error *err);

/** Consecutive features of a layer, as a layer. Owner of the offsets. Zeroed
 *  memory is a valid empty slice; an object may be used for many slices, and
 *  keeps its memory. */
struct oj_flat_slice
{
    struct oj_flat flat; /**< borrows vertices and columns of the layer */
    int64_t cap_part_offset, cap_ring_offset, cap_vertex_offset, cap_texts;
    int64_t *part_offset, *ring_offset, *vertex_offset;
    struct oj_token_sets *texts; /**< [n_texts] views of the layer's texts */
};

/** Sets slice->flat to features first .. first + n - 1 of flat. Valid as long
 *  as flat is. O(parts and rings of these features). */
OJ_MUST_USE oj_status oj_flat_slice_make(const struct oj_flat *flat,
                                         int64_t first, int64_t n,
                                         struct oj_flat_slice *slice,
                                         struct oj_error *err);

/** Frees the memory of a slice; the slice is then empty and valid. */
void oj_flat_slice_free(struct oj_flat_slice *slice);

/** Adds counts to *sum. */
void oj_flat_counts_add(struct oj_flat_counts *sum,
                        const struct oj_flat_counts *counts);

/** Bits of the mask that oj_flat_m_presence() returns. */
enum oj_m_found
{
    OJ_M_IS_NEEDED = 1, /**< there are lines or rings */
    OJ_M_IS_THERE = 2   /**< a vertex of one of them has an M value */
};

/** Returns a mask of enum oj_m_found: whether flat has lines or rings, and
 * whether one of their vertices has an M value. O(parts), and O(vertices)
 * without M values. */
unsigned oj_flat_m_presence(const struct oj_flat *flat);

/** Returns 1 if joins accept all n coordinates: none is NaN, infinite or beyond
 *  OJ_FLAT_MOST. */
int oj_flat_are_coordinates_joinable(const double *x, int64_t n);

/** Checks the arrays of a caller of the library: offsets start at 0, never
 *  decrease and end at their counts; kinds are valid; points have one vertex,
 *  lines at least one, polygon rings are closed; coordinates of parts are
 *  finite and within OJ_FLAT_MOST. O(vertices). */
OJ_MUST_USE oj_status oj_flat_check(const struct oj_flat *flat,
                                    struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
