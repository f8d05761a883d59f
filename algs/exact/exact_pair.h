/** Two features as segments, and the exact geometry of them: on which side of a
 *  segment a point lies, what is smaller, where segments cross.
 *
 *  Points are vertices, crossings of two segments, or the middle of two of
 *  these.  Each has bounds in doubles, which decide most questions, and exact
 *  homogeneous coordinates, made when the bounds do not decide: whole numbers
 *  X, Y, W with x = X / W * 2^exponent of the pair.
 */
#ifndef EXACT_PAIR_H
#define EXACT_PAIR_H

#include "../../flatten/arrays/oj_flat.h"
#include "../base/exact_integer.h"

/** An edge of a ring or line. Of length 0: a point (see struct oj_exact_pair).
 */
struct oj_exact_segment
{
    double ax, ay, bx, by;
    int64_t part; /* of the pair */
};

struct oj_exact_part
{
    int side; /* 0: of the input feature, 1: of the join feature */
    enum oj_part_kind kind;
    int64_t first_segment, n_segments; /* in the order of the vertices */
};

/** Boxes of 8 consecutive segments each, and of two boxes each: box 1 is the
 *  root, boxes 2 i and 2 i + 1 are in box i. Neighbours in a ring are
 *  neighbours in the plane, so nothing is sorted. */
struct oj_exact_tree
{
    const struct oj_exact_segment *segment;
    int64_t n_segments, n_leaves;
    struct oj_exact_box
    {
        double low[2], high[2];
    } * box;
};

struct oj_exact_pair
{
    int exponent; /* coordinates are whole numbers of 2^exponent */
    int64_t n_parts, n_segments, n_dots;
    struct oj_exact_part *part;
    /* The first n_segments have a length; n_dots are points behind them: point
     * parts, and lines and rings of one point. Those of the input feature come
     * first in either. */
    struct oj_exact_segment *segment;
};

/** Reads both features. also are n_also more numbers that exponent must fit. */
OJ_MUST_USE oj_status oj_exact_pair_make(const struct oj_flat *input,
                                         int64_t row,
                                         const struct oj_flat *join_side,
                                         int64_t feature, const double *also,
                                         int n_also, struct oj_exact_pair *pair,
                                         struct oj_error *err);

void oj_exact_pair_free(struct oj_exact_pair *pair);

/** A tree over n segments, which it borrows. */
OJ_MUST_USE oj_status oj_exact_tree_make(const struct oj_exact_segment *segment,
                                         int64_t n, struct oj_exact_tree *tree,
                                         struct oj_error *err);

/** The segments of box number leaf, n_leaves <= leaf < 2 n_leaves. */
int64_t oj_exact_leaf_begin(const struct oj_exact_tree *tree, int64_t leaf);
int64_t oj_exact_leaf_end(const struct oj_exact_tree *tree, int64_t leaf);

void oj_exact_tree_free(struct oj_exact_tree *tree);

struct oj_exact_box oj_exact_box_of(const struct oj_exact_segment *segment);

static inline int oj_exact_boxes_meet(const struct oj_exact_box *a,
                                      const struct oj_exact_box *b)
{
    return a->low[0] <= b->high[0] && b->low[0] <= a->high[0] &&
           a->low[1] <= b->high[1] && b->low[1] <= a->high[1];
}

/** The segments whose boxes meet a box: set tree and box, the rest to 0, then
 *  call next until it gives -1. */
struct oj_exact_search
{
    const struct oj_exact_tree *tree;
    struct oj_exact_box box;
    int is_begun;
    int64_t node, at, end;
};

int64_t oj_exact_search_next(struct oj_exact_search *search);

/** Where a node is: at a vertex (first = second = NULL, low = high), or at the
 *  crossing of two segments, neither of which ends there. */
struct oj_exact_place
{
    struct oj_exact_box bounds;
    const struct oj_exact_segment *first, *second;
};

void oj_exact_place_vertex(struct oj_exact_place *place, double x, double y);
void oj_exact_place_crossing(const struct oj_exact_pair *pair,
                             struct oj_exact_place *place,
                             const struct oj_exact_segment *first,
                             const struct oj_exact_segment *second);

/** Order by x, then by y: -1, 0, 1. */
int oj_exact_place_compare(const struct oj_exact_pair *pair,
                           const struct oj_exact_place *a,
                           const struct oj_exact_place *b);

/** A point to ask about. Large: some 5 KB. */
struct oj_exact_point
{
    struct oj_exact_box bounds;
    struct oj_exact_place from, to;
    int is_middle;             /* of from and to; else it is from */
    int is_made;               /* x, y, w are there */
    struct oj_integer x, y, w; /* w > 0 */
};

void oj_exact_point_at(struct oj_exact_point *point,
                       const struct oj_exact_place *place);
void oj_exact_point_vertex(struct oj_exact_point *point, double x, double y);
void oj_exact_point_middle(struct oj_exact_point *point,
                           const struct oj_exact_place *from,
                           const struct oj_exact_place *to);

/** 1: the point is left of the segment's line, -1: right, 0: on it. */
int oj_exact_side(const struct oj_exact_pair *pair,
                  const struct oj_exact_segment *segment,
                  struct oj_exact_point *point);

/** 1 when the ray from the point to the right, lifted by less than anything,
 *  passes through the segment; 0 where the segment contains the point. */
int oj_exact_ray_meets(const struct oj_exact_pair *pair,
                       const struct oj_exact_segment *segment,
                       struct oj_exact_point *point);

#endif
