/** The screen of the CUDA module built on the host, one thing after the other,
 *  with the functions that the module is made of.  Include once, after
 *  references.h. */
#ifndef PLAIN_MEET_H
#define PLAIN_MEET_H

#include "../../algs/relation/oj_backend.h"
#include "../../algs/relation/oj_screen.h"
#include "../../cuda/shapes/oj_meet.h"
#include "plain_tree.h"

struct plain_meet
{
    struct plain_side side;
    int64_t n;
    struct oj_tree_box extent;
    struct oj_meet_feature *feature;
    struct oj_meet_image *image;
};

struct plain_screen
{
    struct oj_screen screen;
    struct oj_screen_rule rule;
    struct plain_meet join;
    struct oj_device_tree tree;
    struct oj_device_tree_node *node;
    int32_t *order;
    int64_t n_said[OJ_SAID_NOTHING + 1];
};

static inline void look_at_feature(struct plain_meet *m,
                                   const struct oj_flat *flat, int64_t f)
{
    const struct plain_side *s = &m->side;
    struct oj_meet_feature *out = &m->feature[f];
    int64_t first = flat->part_offset[f], end = flat->part_offset[f + 1];
    int64_t first_ring = s->ring_offset[first], end_ring = s->ring_offset[end];
    struct oj_meet_look look;
    unsigned kinds = 0;
    int odd = 0;
    oj_meet_look_start(&look);
    for (int64_t p = first; p < end; p++)
    {
        kinds |= s->part_kind[p];
        for (int64_t r = s->ring_offset[p]; r < s->ring_offset[p + 1]; r++)
        {
            int64_t n = 0;
            for (int64_t i = s->segment_offset[r]; i < s->segment_offset[r + 1];
                 i++)
            {
                oj_meet_look_add(&look, &s->segment[i], r == s->ring_offset[p]);
                n += oj_meet_has_length(&s->segment[i]);
            }
            odd |= oj_meet_ring_is_odd(s->part_kind[p] == OJ_PART_POLYGON,
                                       s->part_kind[p] == OJ_PART_LINE, n);
        }
    }
    out->box = look.all;
    out->first = (int32_t)s->segment_offset[first_ring];
    out->end = (int32_t)s->segment_offset[end_ring];
    out->first_part = (int32_t)first;
    out->end_part = (int32_t)end;
    out->flags = oj_meet_flags(
        &look, (kinds & OJ_PART_POLYGON) != 0, (kinds & OJ_PART_LINE) != 0,
        (kinds & OJ_PART_POINT) != 0, end - first, end_ring - first_ring, odd);
}

static inline void plain_meet_build(struct plain_meet *m,
                                    const struct oj_flat *flat)
{
    memset(m, 0, sizeof *m);
    m->n = flat->n_features;
    m->extent = oj_tree_no_box();
    side_add_layer(&m->side, flat, NULL);
    TREE_NEW(m->feature, m->n);
    for (int64_t f = 0; f < m->n; f++)
        look_at_feature(m, flat, f);
    for (int64_t i = 0; i < m->side.n_segments; i++)
    {
        struct oj_tree_box one = oj_tree_segment_box(&m->side.segment[i]);
        oj_tree_box_add(&m->extent, &one);
    }
    side_make_rings(&m->side, &m->extent);
}

static inline void plain_meet_images(struct plain_meet *m, double x0, double y0)
{
    TREE_NEW(m->image, m->side.n_segments);
    for (int64_t i = 0; i < m->side.n_segments; i++)
    {
        struct oj_tree_box box = oj_tree_segment_box(&m->side.segment[i]);
        m->image[i] = oj_meet_image_of(&box, x0, y0);
    }
}

static inline void plain_meet_free(struct plain_meet *m)
{
    plain_side_free(&m->side);
    oj_free(m->feature);
    oj_free(m->image);
}

static inline int plain_edges_meet(const struct plain_meet *a,
                                   const struct oj_meet_feature *f,
                                   const struct plain_meet *b,
                                   const struct oj_meet_feature *g, double x0,
                                   double y0)
{
    struct oj_meet_image window = oj_meet_image_of(&g->box, x0, y0);
    for (int64_t i = f->first; i < f->end; i++)
    {
        if (!oj_meet_images(&a->image[i], &window))
            continue;
        for (int64_t j = g->first; j < g->end; j++)
        {
            if (oj_meet_images(&a->image[i], &b->image[j]) &&
                oj_meet_edges(&a->side.segment[i], &b->side.segment[j]))
                return 1;
        }
    }
    return 0;
}

static inline enum oj_said plain_say(const struct plain_screen *s,
                                     const struct plain_meet *rows, int64_t row,
                                     int64_t feature)
{
    const struct oj_meet_feature *a = &rows->feature[row];
    const struct oj_meet_feature *b = &s->join.feature[feature];
    if (!s->rule.asks_meeting)
        return s->rule.is_enough ? OJ_SAID_MEETS : OJ_SAID_NOTHING;
    if (oj_meet_begin(a, b) == OJ_SAID_NOTHING)
        return OJ_SAID_NOTHING;
    if (a->end - a->first > b->end - b->first
            ? plain_edges_meet(rows, a, &s->join, b, s->tree.x0, s->tree.y0)
            : plain_edges_meet(&s->join, b, rows, a, s->tree.x0, s->tree.y0))
        return OJ_SAID_MEETS;
    return oj_meet_finish(&rows->side.side.rings, a, &s->join.side.side.rings,
                          b);
}

static inline void plain_put(struct plain_screen *s, int32_t feature,
                             enum oj_said said, struct oj_screen_pairs *out)
{
    int64_t n = out->n_pairs;
    s->n_said[said]++;
    if (said == OJ_SAID_APART)
        return;
    must(oj_reserve(&out->feature, n, n + 1, &out->cap_feature,
                    sizeof *out->feature, &error));
    must(oj_reserve(&out->said, n, n + 1, &out->cap_said, sizeof *out->said,
                    &error));
    out->feature[n] = feature;
    out->said[n] = (uint8_t)said;
    out->n_pairs++;
}

static inline void plain_visit(struct plain_screen *s,
                               const struct plain_meet *rows, int64_t row,
                               int level, int64_t node,
                               struct oj_screen_pairs *out)
{
    const struct oj_meet_feature *a = &rows->feature[row];
    struct oj_meet_image image =
        oj_meet_image_of(&a->box, s->tree.x0, s->tree.y0);
    int64_t first = node * OJ_TREE_FANOUT;
    int64_t below = level > 0 ? (int64_t)s->tree.level_n[level - 1] : s->tree.n;
    uint32_t hits = oj_meet_children(
        &s->node[s->tree.level_first[level] + node],
        below - first < OJ_TREE_FANOUT ? (int)(below - first) : OJ_TREE_FANOUT,
        &image);
    for (int c = 0; c < OJ_TREE_FANOUT; c++)
    {
        if ((hits >> c & 1u) == 0u)
            continue;
        if (level > 0)
            plain_visit(s, rows, row, level - 1, first + c, out);
        else
        {
            int32_t f = s->order[first + c];
            if (oj_meet_passes((enum oj_box_test)s->rule.test, a,
                               &s->join.feature[f]))
                plain_put(s, f, plain_say(s, rows, row, f), out);
        }
    }
}

static inline int plain_takes(void *self, const struct oj_flat *input)
{
    (void)self;
    (void)input;
    return 1;
}

static inline oj_status plain_find(void *self, const struct oj_flat *input,
                                   int64_t most, struct oj_screen_pairs *out,
                                   struct oj_stats *stats, struct oj_error *err)
{
    struct plain_screen *s = self;
    struct plain_meet rows;
    int64_t n = input->n_features;
    (void)stats;
    plain_meet_build(&rows, input);
    plain_meet_images(&rows, s->tree.x0, s->tree.y0);
    must(oj_reserve(&out->offset, 0, n + 1, &out->cap_offset,
                    sizeof *out->offset, err));
    out->n_rows = n;
    out->n_pairs = 0;
    for (int64_t row = 0; row < n; row++)
    {
        out->offset[row] = out->n_pairs;
        if (s->tree.n > 0)
            plain_visit(s, &rows, row, s->tree.n_levels - 1, 0, out);
    }
    out->offset[n] = out->n_pairs;
    plain_meet_free(&rows);
    if (most > 0 && n > 1 && out->n_pairs > most)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS, "too many");
    return OJ_OK;
}

static inline void plain_screen_make(struct plain_screen *s,
                                     const struct oj_flat *join_side,
                                     const struct oj_screen_rule *rule)
{
    struct oj_tree_box *box;
    memset(s, 0, sizeof *s);
    s->screen.self = s;
    s->screen.takes = plain_takes;
    s->screen.find = plain_find;
    s->rule = *rule;
    plain_meet_build(&s->join, join_side);
    TREE_NEW(box, s->join.n);
    TREE_NEW(s->order, s->join.n);
    for (int64_t f = 0; f < s->join.n; f++)
        box[f] = s->join.feature[f].box;
    if (s->join.side.n_segments > 0)
        s->node =
            tree_build(&s->tree, s->join.n, box, &s->join.extent, s->order);
    plain_meet_images(&s->join, s->tree.x0, s->tree.y0);
    oj_free(box);
}

static inline void plain_screen_free(struct plain_screen *s)
{
    plain_meet_free(&s->join);
    oj_free(s->node);
    oj_free(s->order);
}

#endif
