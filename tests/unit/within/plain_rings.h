/** Points in polygons by a plain loop over all parts.  Include once, after
 *  references.h. */
#ifndef PLAIN_RINGS_H
#define PLAIN_RINGS_H

#include "../../../algs/kernels/oj_ring.h"
#include "../references.h"

#include "../../../algs/relate/relate.h"

/* What the rule of nodes, which test_relate holds against the exact reference,
 * says of a point on rings. */
static inline enum oj_location
locate_by_node(const struct oj_flat *flat, int64_t feature, double x, double y)
{
    struct oj_shape shape = oj_shape_of(flat, feature);
    struct oj_relate_scratch scratch;
    enum oj_matrix_place place;
    memset(&scratch, 0, sizeof scratch);
    must(oj_shape_place(&shape, x, y, &scratch, &place, &error));
    oj_relate_scratch_free(&scratch);
    return place == OJ_PLACE_INTERIOR ? OJ_INSIDE : OJ_ON_BOUNDARY;
}

/* By even-odd over the rings of each part; what is on rings only is asked of
 * what is around it. */
static inline enum oj_location locate(const struct oj_flat *flat,
                                      int64_t feature, double x, double y)
{
    int n_on = 0;
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        int odd = 0, is_on = 0;
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
        {
            int64_t v = flat->vertex_offset[r];
            enum oj_location at = oj_ring_locate(
                x, y, flat->x + v, flat->y + v, flat->vertex_offset[r + 1] - v);
            is_on |= at == OJ_ON_BOUNDARY;
            odd ^= at == OJ_INSIDE;
        }
        if (odd && !is_on)
            return OJ_INSIDE;
        n_on += is_on;
    }
    return n_on > 0 ? locate_by_node(flat, feature, x, y) : OJ_OUTSIDE;
}

static inline int holds(enum oj_op op, enum oj_location at)
{
    if (op == OJ_OP_WITHIN)
        return at == OJ_INSIDE;
    if (op == OJ_OP_TOUCHES)
        return at == OJ_ON_BOUNDARY;
    return at != OJ_OUTSIDE;
}

static inline int may_count(const struct oj_relation *relation,
                            const struct oj_flat *a, int64_t i,
                            const struct oj_flat *b, int64_t j)
{
    if (relation->exclude_self && a->fid[i] == b->fid[j])
        return 0;
    if (relation->unordered_pairs > 0 && a->fid[i] >= b->fid[j])
        return 0;
    if (relation->unordered_pairs < 0 && a->fid[i] <= b->fid[j])
        return 0;
    if (a->on_class != NULL &&
        (a->on_class[i] < 0 || a->on_class[i] != b->on_class[j]))
        return 0;
    return a->exclude_class == NULL || a->exclude_class[i] < 0 ||
           a->exclude_class[i] != b->exclude_class[j];
}

/* One byte for every row and feature: 1, a pair. */
static inline uint8_t *make_truth(const struct oj_flat *join,
                                  const struct oj_flat *input,
                                  const struct oj_relation *relation)
{
    int64_t n = join->n_features;
    uint8_t *truth = oj_calloc(input->n_features * n, 1);
    for (int64_t i = 0; i < input->n_features; i++)
    {
        double x = input->x[i], y = input->y[i];
        for (int64_t f = 0; isfinite(x) && isfinite(y) && f < n; f++)
            truth[i * n + f] = may_count(relation, input, i, join, f) &&
                               holds(relation->op, locate(join, f, x, y));
    }
    return truth;
}

#endif
