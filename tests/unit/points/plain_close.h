/** Points in cells built on the host, one thing after the other, with the
 *  functions that the CUDA module builds them with.  Include once, after
 *  references.h. */
#ifndef PLAIN_CLOSE_H
#define PLAIN_CLOSE_H

#include "../../../cuda/points/oj_close_points.h"
#include "../../../flatten/base/oj_array.h"
#include "../plain_tree.h"
#include "../references.h"

/* The columns of rule are those of entries. */
struct plain_close
{
    struct oj_close_side side;
    struct oj_pair_rule rule;
    uint32_t *start;
    struct oj_close_place *entry;
    int32_t *rank;
    int64_t *fid;
    int32_t *on_class, *exclude_class;
};

/* Finite points, by rank. */
static inline int64_t close_points(const struct oj_flat *flat,
                                   const int32_t *tie_rank,
                                   struct oj_close_place *point, int32_t *rank)
{
    int32_t *feature;
    int64_t n = 0;
    TREE_NEW(feature, flat->n_features);
    for (int64_t f = 0; f < flat->n_features; f++)
        feature[tie_rank != NULL ? tie_rank[f] : f] = (int32_t)f;
    for (int64_t r = 0; r < flat->n_features; r++)
    {
        double x = flat->x[feature[r]], y = flat->y[feature[r]];
        if (!isfinite(x) || !isfinite(y))
            continue;
        point[n] = (struct oj_close_place){x, y};
        rank[n++] = (int32_t)r;
    }
    oj_free(feature);
    return n;
}

static inline void close_columns(struct plain_close *s,
                                 const struct oj_pair_rule *rule)
{
    int64_t n = s->side.n;
    TREE_NEW(s->fid, n);
    TREE_NEW(s->on_class, n);
    TREE_NEW(s->exclude_class, n);
    for (int64_t i = 0; i < n; i++)
    {
        int32_t r = s->rank[i];
        s->fid[i] = rule->fid != NULL ? rule->fid[r] : 0;
        s->on_class[i] = rule->on_class != NULL ? rule->on_class[r] : 0;
        s->exclude_class[i] =
            rule->exclude_class != NULL ? rule->exclude_class[r] : 0;
    }
    s->rule = *rule;
    s->rule.fid = s->fid;
    s->rule.on_class = s->on_class;
    s->rule.exclude_class = s->exclude_class;
}

static inline void plain_close_build(struct plain_close *s,
                                     const struct oj_flat *flat,
                                     const int32_t *tie_rank,
                                     const struct oj_pair_rule *rule, int equal,
                                     double least, double reach)
{
    struct oj_tree_box extent = oj_tree_no_box();
    struct oj_close_place *point;
    struct coded *coded;
    int32_t *rank;
    int64_t n, n_places;
    memset(s, 0, sizeof *s);
    TREE_NEW(point, flat->n_features);
    TREE_NEW(rank, flat->n_features);
    n = close_points(flat, tie_rank, point, rank);
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_tree_box one = {point[i].x, point[i].y, point[i].x,
                                  point[i].y};
        oj_tree_box_add(&extent, &one);
    }
    oj_close_layout(&s->side, n, extent.x0, extent.y0, extent.x1, extent.y1,
                    equal, least, reach);
    n_places = oj_close_n_places(&s->side);
    TREE_NEW(coded, n);
    TREE_NEW(s->start, n_places + 1);
    TREE_NEW(s->entry, n);
    TREE_NEW(s->rank, n);
    for (int64_t i = 0; i < n; i++)
        coded[i] = (struct coded){
            oj_close_place_of(&s->side, point[i].x, point[i].y), (int32_t)i};
    qsort(coded, (size_t)n, sizeof *coded, compare_codes);
    for (int64_t i = 0; i < n; i++)
    {
        ck_assert_int_lt((int64_t)coded[i].code, n_places);
        s->start[coded[i].code + 1] = (uint32_t)i + 1;
        s->entry[i] = point[coded[i].entry];
        s->rank[i] = rank[coded[i].entry];
    }
    for (int64_t i = 1; i <= n_places; i++)
        s->start[i] =
            s->start[i] > s->start[i - 1] ? s->start[i] : s->start[i - 1];
    s->side.start = s->start;
    s->side.entry = s->entry;
    s->side.rank = s->rank;
    close_columns(s, rule);
    oj_free(point);
    oj_free(rank);
    oj_free(coded);
}

/* The ranks of a row's partners, in the order of the cells. */
static inline int64_t plain_close_find(const struct plain_close *s, int64_t row,
                                       double x, double y, int32_t *rank)
{
    struct oj_close_visit visit;
    uint32_t first, n_first;
    int64_t n = 0;
    if (!oj_close_visit_start(&visit, &s->side, x, y))
        return 0;
    while ((n_first = oj_close_visit_next(&visit, &s->side, &first)) > 0)
    {
        uint32_t bits = oj_close_bits(&s->side, &visit, first, n_first);
        for (uint32_t i = 0; i < n_first; i++)
        {
            if ((bits >> i & 1u) != 0 &&
                oj_close_may_pair(&s->side, &visit, &s->rule, row, first + i))
                rank[n++] = s->rank[first + i];
        }
    }
    return n;
}

static inline void plain_close_free(struct plain_close *s)
{
    oj_free(s->start);
    oj_free(s->entry);
    oj_free(s->rank);
    oj_free(s->fid);
    oj_free(s->on_class);
    oj_free(s->exclude_class);
}

#endif
