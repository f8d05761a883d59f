#include "oj_self_overlap.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/kernels/oj_segment_intersection.h"
#include "relate_feature_edges.h"

#include <string.h>

#define FEATURES_AT_ONCE 1024

struct overlap_worker
{
    struct oj_figure figure;
    struct oj_node_scratch node;
};

struct overlap_search
{
    const struct oj_flat *flat;
    int with_zero_area;
    const int *cancel;
    uint8_t *mark;                 /* [n_features] result: 1 if the even-odd
                                      rule over all rings of the feature is
                                      wrong */
    struct overlap_worker *worker; /* [n_threads] scratch of each thread */
};

/* Returns 1 if the point is in the box of an edge. Edge v, first <= v < last,
 * joins the vertices v and v + 1. */
static int has_edge_box_containing_point(const struct oj_flat *flat,
                                         int64_t first, int64_t last, double x,
                                         double y)
{
    int found = 0;
    for (int64_t v = first; v < last; v++)
    {
        double ax = flat->x[v], ay = flat->y[v];
        double bx = flat->x[v + 1], by = flat->y[v + 1];
        found |= ((ax <= x) | (bx <= x)) & ((ax >= x) | (bx >= x)) &
                 ((ay <= y) | (by <= y)) & ((ay >= y) | (by >= y));
    }
    return found;
}

/* Quick test: returns 0 if the rings of a polygon surely enclose an area, 1 if
 * that is unknown. They surely do if the two edges at the first vertex are not
 * collinear, and the first vertex is in the boxes of no other edges. Then one
 * of the two sectors between these edges is inside. */
static int may_polygon_have_zero_area(const struct oj_flat *flat, int64_t part)
{
    int64_t shell = flat->ring_offset[part];
    int64_t end = flat->vertex_offset[flat->ring_offset[part + 1]];
    int64_t first = flat->vertex_offset[shell];
    int64_t last = flat->vertex_offset[shell + 1] - 1;
    const double *x = flat->x, *y = flat->y;
    return last - first < 3 || x[first] != x[last] || y[first] != y[last] ||
           has_edge_box_containing_point(flat, first + 1, last - 1, x[first],
                                         y[first]) ||
           has_edge_box_containing_point(flat, last + 1, end - 1, x[first],
                                         y[first]) ||
           oj_orientation(x[last - 1], y[last - 1], x[first], y[first],
                          x[first + 1], y[first + 1]) == 0;
}

static int may_have_zero_area_polygon(const struct oj_flat *flat, int64_t first,
                                      int64_t end)
{
    for (int64_t p = first; p < end; p++)
    {
        if (flat->part_kind[p] == OJ_PART_POLYGON &&
            may_polygon_have_zero_area(flat, p))
            return 1;
    }
    return 0;
}

/* Marks a feature if its parts overlap or, with is_flat 1, if one of its
 * polygons has no area. Precondition: the feature has several parts, or is_flat
 * is 1 (a polygon may have no area). */
static oj_status mark_if_overlapping(struct overlap_search *s,
                                     struct overlap_worker *w, int64_t feature,
                                     int is_flat, struct oj_error *err)
{
    struct oj_shape shape = oj_shape_of(s->flat, feature);
    int is_fine = 1;
    if ((shape.kinds & OJ_PART_POLYGON) == 0)
        return OJ_OK;
    if (shape.may_overlap)
    {
        OJ_TRY(oj_check_cancel(s->cancel, err));
        OJ_TRY(oj_shape_is_valid(&shape, &w->figure, &w->node, &is_fine, err));
    }
    else if (is_flat)
    {
        OJ_TRY(oj_relate_figure_make(&w->figure, &shape, 0, &w->node, err));
        is_fine = oj_relate_figure_encloses_areas(&w->figure);
    }
    s->mark[feature] = !is_fine;
    return OJ_OK;
}

static oj_status mark_one_feature_if_overlapping(int64_t i, int thread,
                                                 void *user,
                                                 struct oj_error *err)
{
    struct overlap_search *s = user;
    const struct oj_flat *flat = s->flat;
    int64_t first = flat->part_offset[i], past = flat->part_offset[i + 1];
    int is_flat =
        s->with_zero_area && may_have_zero_area_polygon(flat, first, past);
    if (!is_flat && past - first < 2) /* usual case: one polygon with an area */
        return OJ_OK;
    return mark_if_overlapping(s, &s->worker[thread], i, is_flat, err);
}

static oj_status search_overlapping_features(struct overlap_search *s,
                                             int n_threads,
                                             struct oj_error *err)
{
    int64_t n = s->flat->n_features;
    OJ_NEW_ZEROED(s->mark, n, err);
    OJ_NEW_ZEROED(s->worker, n_threads, err);
    return oj_parallel_try(n_threads, n, FEATURES_AT_ONCE,
                           mark_one_feature_if_overlapping, s, err);
}

oj_status oj_self_overlap_find(const struct oj_flat *flat, int with_zero_area,
                               int n_threads, const int *cancel, uint8_t **out,
                               struct oj_error *err)
{
    struct overlap_search s = {flat, with_zero_area, cancel, NULL, NULL};
    oj_status status = OJ_OK;
    if (!oj_flat_is_points(flat) && (flat->part_kinds & OJ_PART_POLYGON) != 0)
        status = search_overlapping_features(&s, n_threads, err);
    for (int t = 0; s.worker != NULL && t < n_threads; t++)
    {
        oj_relate_figure_free(&s.worker[t].figure);
        oj_relate_node_scratch_free(&s.worker[t].node);
    }
    oj_free(s.worker);
    if (status != OJ_OK || s.mark == NULL ||
        memchr(s.mark, 1, (size_t)flat->n_features) == NULL)
    {
        oj_free(s.mark);
        s.mark = NULL;
    }
    if (status == OJ_OK)
        *out = s.mark;
    return status;
}
