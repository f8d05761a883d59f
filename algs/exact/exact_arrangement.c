#include "exact_arrangement.h"

#include "../../flatten/base/oj_array.h"

#include <stdlib.h>
#include <string.h>

/* A place in the order of places, for qsort(). */
struct ranked_place
{
    const struct oj_exact_pair *pair;
    const struct oj_exact_place *place;
};

/* --- nodes ---------------------------------------------------------------- */

/* The place stands for its node until nodes have numbers. */
static oj_status add_cut(struct oj_exact_arrangement *a, int64_t segment,
                         int64_t place, struct oj_error *err)
{
    OJ_TRY(oj_reserve(&a->cut, a->n_cuts, a->n_cuts + 1, &a->cap_cuts,
                      sizeof *a->cut, err));
    a->cut[a->n_cuts].segment = segment;
    a->cut[a->n_cuts++].node = place;
    return OJ_OK;
}

static oj_status add_crossing(struct oj_exact_arrangement *a, int64_t i,
                              int64_t j, struct oj_error *err)
{
    const struct oj_exact_segment *segment = a->pair.segment;
    OJ_TRY(oj_reserve(&a->place, a->n_places, a->n_places + 1, &a->cap_places,
                      sizeof *a->place, err));
    oj_exact_place_crossing(&a->pair, &a->place[a->n_places], &segment[i],
                            &segment[j]);
    OJ_TRY(add_cut(a, i, a->n_places, err));
    OJ_TRY(add_cut(a, j, a->n_places, err));
    a->n_places++;
    return OJ_OK;
}

/* The sides of segment s on which the ends of t lie. */
static void sides_of_ends(const struct oj_exact_arrangement *a,
                          const struct oj_exact_segment *s,
                          const struct oj_exact_segment *t, int side[2])
{
    struct oj_exact_point point;
    oj_exact_point_vertex(&point, t->ax, t->ay);
    side[0] = oj_exact_side(&a->pair, s, &point);
    oj_exact_point_vertex(&point, t->bx, t->by);
    side[1] = oj_exact_side(&a->pair, s, &point);
}

/* A vertex on the line of segment s cuts it when it is in its box. */
static oj_status cut_at_vertex(struct oj_exact_arrangement *a, int64_t s,
                               int64_t place, struct oj_error *err)
{
    struct oj_exact_box box = oj_exact_box_of(&a->pair.segment[s]);
    if (!oj_exact_boxes_meet(&box, &a->place[place].bounds))
        return OJ_OK;
    return add_cut(a, s, place, err);
}

static oj_status cut_two(struct oj_exact_arrangement *a, int64_t i, int64_t j,
                         struct oj_error *err)
{
    const struct oj_exact_segment *s = &a->pair.segment[i];
    const struct oj_exact_segment *t = &a->pair.segment[j];
    int of_j[2], of_i[2];
    sides_of_ends(a, s, t, of_j);
    if (of_j[0] * of_j[1] > 0)
        return OJ_OK;
    sides_of_ends(a, t, s, of_i);
    if (of_j[0] * of_j[1] < 0 && of_i[0] * of_i[1] < 0)
        return add_crossing(a, i, j, err);
    for (int end = 0; end < 2; end++)
    {
        if (of_j[end] == 0)
            OJ_TRY(cut_at_vertex(a, i, 2 * j + end, err));
        if (of_i[end] == 0)
            OJ_TRY(cut_at_vertex(a, j, 2 * i + end, err));
    }
    return OJ_OK;
}

/* A dot on segments. */
static oj_status cut_at_dot(struct oj_exact_arrangement *a, int64_t place,
                            struct oj_error *err)
{
    struct oj_exact_search search = {.tree = &a->tree};
    struct oj_exact_point point;
    search.box = a->place[place].bounds;
    oj_exact_point_at(&point, &a->place[place]);
    for (int64_t s; (s = oj_exact_search_next(&search)) >= 0;)
    {
        if (oj_exact_side(&a->pair, &a->pair.segment[s], &point) == 0)
            OJ_TRY(add_cut(a, s, place, err));
    }
    return OJ_OK;
}

static oj_status cut_all(struct oj_exact_arrangement *a, struct oj_error *err)
{
    const struct oj_exact_pair *pair = &a->pair;
    a->n_places = 2 * pair->n_segments + pair->n_dots;
    OJ_TRY(oj_reserve(&a->place, 0, a->n_places, &a->cap_places,
                      sizeof *a->place, err));
    for (int64_t s = 0; s < pair->n_segments; s++)
    {
        const struct oj_exact_segment *segment = &pair->segment[s];
        oj_exact_place_vertex(&a->place[2 * s], segment->ax, segment->ay);
        oj_exact_place_vertex(&a->place[2 * s + 1], segment->bx, segment->by);
        OJ_TRY(add_cut(a, s, 2 * s, err));
        OJ_TRY(add_cut(a, s, 2 * s + 1, err));
    }
    for (int64_t d = 0; d < pair->n_dots; d++)
    {
        const struct oj_exact_segment *dot =
            &pair->segment[pair->n_segments + d];
        int64_t place = 2 * pair->n_segments + d;
        oj_exact_place_vertex(&a->place[place], dot->ax, dot->ay);
        OJ_TRY(cut_at_dot(a, place, err));
    }
    for (int64_t s = 0; s < pair->n_segments; s++)
    {
        struct oj_exact_search search = {.tree = &a->tree};
        search.box = oj_exact_box_of(&pair->segment[s]);
        for (int64_t t; (t = oj_exact_search_next(&search)) >= 0;)
        {
            if (t > s)
                OJ_TRY(cut_two(a, s, t, err));
        }
    }
    return OJ_OK;
}

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked_place *a = left, *b = right;
    return oj_exact_place_compare(a->pair, a->place, b->place);
}

static oj_status number_nodes(struct oj_exact_arrangement *a,
                              struct oj_error *err)
{
    struct ranked_place *ranked;
    OJ_NEW(a->node_of_place, a->n_places, err);
    OJ_NEW(a->node, a->n_places, err);
    OJ_NEW(ranked, a->n_places, err);
    for (int64_t i = 0; i < a->n_places; i++)
    {
        ranked[i].pair = &a->pair;
        ranked[i].place = &a->place[i];
    }
    if (a->n_places > 0)
        qsort(ranked, (size_t)a->n_places, sizeof *ranked, compare_ranked);
    for (int64_t i = 0; i < a->n_places; i++)
    {
        if (i == 0 || compare_ranked(&ranked[i - 1], &ranked[i]) != 0)
            a->node[a->n_nodes++] = ranked[i].place;
        a->node_of_place[ranked[i].place - a->place] = a->n_nodes - 1;
    }
    oj_free(ranked);
    return OJ_OK;
}

/* --- pieces --------------------------------------------------------------- */

static int order_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_cuts(const void *left, const void *right)
{
    const struct oj_exact_cut *a = left, *b = right;
    return a->segment != b->segment ? order_of(a->segment, b->segment)
                                    : order_of(a->node, b->node);
}

static int compare_pieces(const void *left, const void *right)
{
    const struct oj_exact_piece *a = left, *b = right;
    if (a->from != b->from)
        return order_of(a->from, b->from);
    if (a->to != b->to)
        return order_of(a->to, b->to);
    return a->part != b->part ? order_of(a->part, b->part)
                              : order_of(a->segment, b->segment);
}

static oj_status make_pieces(struct oj_exact_arrangement *a,
                             struct oj_error *err)
{
    OJ_NEW(a->piece, a->n_cuts, err);
    for (int64_t i = 0; i < a->n_cuts; i++)
        a->cut[i].node = a->node_of_place[a->cut[i].node];
    if (a->n_cuts > 0)
        qsort(a->cut, (size_t)a->n_cuts, sizeof *a->cut, compare_cuts);
    for (int64_t i = 1; i < a->n_cuts; i++)
    {
        const struct oj_exact_cut *last = &a->cut[i - 1], *cut = &a->cut[i];
        struct oj_exact_piece *piece = &a->piece[a->n_pieces];
        if (cut->segment != last->segment || cut->node == last->node)
            continue;
        piece->from = last->node;
        piece->to = cut->node;
        piece->segment = cut->segment;
        piece->part = a->pair.segment[cut->segment].part;
        a->n_pieces++;
    }
    if (a->n_pieces > 0)
        qsort(a->piece, (size_t)a->n_pieces, sizeof *a->piece, compare_pieces);
    return OJ_OK;
}

int64_t oj_exact_piece_end(const struct oj_exact_arrangement *a, int64_t first)
{
    int64_t end = first;
    while (end < a->n_pieces && a->piece[end].from == a->piece[first].from &&
           a->piece[end].to == a->piece[first].to)
        end++;
    return end;
}

int64_t oj_exact_piece_part_end(const struct oj_exact_arrangement *a,
                                int64_t first)
{
    int64_t end = first, part = a->piece[first].part;
    int64_t stop = oj_exact_piece_end(a, first);
    while (end < stop && a->piece[end].part == part)
        end++;
    return end;
}

static oj_status arrange(struct oj_exact_arrangement *a, struct oj_error *err)
{
    OJ_TRY(
        oj_exact_tree_make(a->pair.segment, a->pair.n_segments, &a->tree, err));
    OJ_TRY(cut_all(a, err));
    OJ_TRY(number_nodes(a, err));
    return make_pieces(a, err);
}

oj_status oj_exact_arrange(const struct oj_flat *input, int64_t row,
                           const struct oj_flat *join_side, int64_t feature,
                           struct oj_exact_arrangement *out,
                           struct oj_error *err)
{
    struct oj_exact_arrangement a;
    oj_status status;
    memset(&a, 0, sizeof a);
    OJ_TRY(oj_exact_pair_make(input, row, join_side, feature, NULL, 0, &a.pair,
                              err));
    status = arrange(&a, err);
    if (status == OJ_OK)
        *out = a;
    else
        oj_exact_arrangement_free(&a);
    return status;
}

void oj_exact_arrangement_free(struct oj_exact_arrangement *a)
{
    oj_exact_pair_free(&a->pair);
    oj_exact_tree_free(&a->tree);
    oj_free(a->place);
    oj_free(a->node_of_place);
    oj_free(a->node);
    oj_free(a->cut);
    oj_free(a->piece);
    memset(a, 0, sizeof *a);
}
