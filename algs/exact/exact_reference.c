/* The places of the nodes of an arrangement, of its pieces, and of both sides
 * of the pieces.  These are all that two features can have in common: every
 * face of the arrangement, the outer one aside, is a side of some piece. */
#include "exact_reference.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_boxes.h"
#include "exact_pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the arrangement ------------------------------------------------------ */

/* The arrangement of two features: their segments cut at all nodes, which are
 * vertices, points, and crossings of any two segments.
 *
 * Nodes are numbered by x, then by y, and so in their order along any segment.
 * A piece is what lies of a segment between two neighbouring nodes; pieces
 * with equal ends are one piece of the plane, and lie behind each other. */

/* A node on a segment. */
struct exact_cut
{
    int64_t segment, node;
};

/* Of one segment; from < to. */
struct exact_piece
{
    int64_t from, to, part, segment;
};

struct exact_arrangement
{
    struct oj_exact_pair pair;
    struct oj_exact_tree tree; /* of the segments with a length */
    int64_t n_places, cap_places, n_cuts, cap_cuts, n_nodes, n_pieces;
    /* Segment s has the places 2 s and 2 s + 1; those of dots and crossings
     * follow. */
    struct oj_exact_place *place;
    int64_t *node_of_place;
    const struct oj_exact_place **node;
    struct exact_cut *cut;
    struct exact_piece *piece; /* by from, to, part, segment */
};

/* A place in the order of places, for qsort(). */
struct ranked_place
{
    const struct oj_exact_pair *pair;
    const struct oj_exact_place *place;
};

/* --- nodes ---------------------------------------------------------------- */

/* The place stands for its node until nodes have numbers. */
static oj_status add_cut(struct exact_arrangement *a, int64_t segment,
                         int64_t place, struct oj_error *err)
{
    OJ_ROOM(a->cut, a->n_cuts, a->n_cuts + 1, a->cap_cuts, err);
    a->cut[a->n_cuts].segment = segment;
    a->cut[a->n_cuts++].node = place;
    return OJ_OK;
}

static oj_status add_crossing(struct exact_arrangement *a, int64_t i, int64_t j,
                              struct oj_error *err)
{
    const struct oj_exact_segment *segment = a->pair.segment;
    OJ_ROOM(a->place, a->n_places, a->n_places + 1, a->cap_places, err);
    oj_exact_place_crossing(&a->pair, &a->place[a->n_places], &segment[i],
                            &segment[j]);
    OJ_TRY(add_cut(a, i, a->n_places, err));
    OJ_TRY(add_cut(a, j, a->n_places, err));
    a->n_places++;
    return OJ_OK;
}

/* The sides of segment s on which the ends of t lie. */
static void sides_of_ends(const struct exact_arrangement *a,
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
static oj_status cut_at_vertex(struct exact_arrangement *a, int64_t s,
                               int64_t place, struct oj_error *err)
{
    struct oj_exact_box box = oj_exact_box_of(&a->pair.segment[s]);
    if (!oj_exact_boxes_meet(&box, &a->place[place].bounds))
        return OJ_OK;
    return add_cut(a, s, place, err);
}

static oj_status cut_two(struct exact_arrangement *a, int64_t i, int64_t j,
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
static oj_status cut_at_dot(struct exact_arrangement *a, int64_t place,
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

static oj_status cut_all(struct exact_arrangement *a, struct oj_error *err)
{
    const struct oj_exact_pair *pair = &a->pair;
    a->n_places = 2 * pair->n_segments + pair->n_dots;
    OJ_ROOM(a->place, 0, a->n_places, a->cap_places, err);
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

static oj_status number_nodes(struct exact_arrangement *a, struct oj_error *err)
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
    const struct exact_cut *a = left, *b = right;
    return a->segment != b->segment ? order_of(a->segment, b->segment)
                                    : order_of(a->node, b->node);
}

static int compare_pieces(const void *left, const void *right)
{
    const struct exact_piece *a = left, *b = right;
    if (a->from != b->from)
        return order_of(a->from, b->from);
    if (a->to != b->to)
        return order_of(a->to, b->to);
    return a->part != b->part ? order_of(a->part, b->part)
                              : order_of(a->segment, b->segment);
}

static oj_status make_pieces(struct exact_arrangement *a, struct oj_error *err)
{
    OJ_NEW(a->piece, a->n_cuts, err);
    for (int64_t i = 0; i < a->n_cuts; i++)
        a->cut[i].node = a->node_of_place[a->cut[i].node];
    if (a->n_cuts > 0)
        qsort(a->cut, (size_t)a->n_cuts, sizeof *a->cut, compare_cuts);
    for (int64_t i = 1; i < a->n_cuts; i++)
    {
        const struct exact_cut *last = &a->cut[i - 1], *cut = &a->cut[i];
        struct exact_piece *piece = &a->piece[a->n_pieces];
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

/* The end of the records, from first on, that are one piece of the plane. */
static int64_t piece_end(const struct exact_arrangement *a, int64_t first)
{
    int64_t end = first;
    while (end < a->n_pieces && a->piece[end].from == a->piece[first].from &&
           a->piece[end].to == a->piece[first].to)
        end++;
    return end;
}

/* The end of those that are of one part as well. */
static int64_t piece_part_end(const struct exact_arrangement *a, int64_t first)
{
    int64_t end = first, part = a->piece[first].part;
    int64_t stop = piece_end(a, first);
    while (end < stop && a->piece[end].part == part)
        end++;
    return end;
}

static void free_arrangement(struct exact_arrangement *a)
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

static oj_status arrange(struct exact_arrangement *a, struct oj_error *err)
{
    OJ_TRY(
        oj_exact_tree_make(a->pair.segment, a->pair.n_segments, &a->tree, err));
    OJ_TRY(cut_all(a, err));
    OJ_TRY(number_nodes(a, err));
    return make_pieces(a, err);
}

static oj_status make_arrangement(const struct oj_flat *input, int64_t row,
                                  const struct oj_flat *join_side,
                                  int64_t feature,
                                  struct exact_arrangement *out,
                                  struct oj_error *err)
{
    struct exact_arrangement a;
    oj_status status;
    memset(&a, 0, sizeof a);
    OJ_TRY(oj_exact_pair_make(input, row, join_side, feature, NULL, 0, &a.pair,
                              err));
    status = arrange(&a, err);
    if (status == OJ_OK)
        *out = a;
    else
        free_arrangement(&a);
    return status;
}

/* --- its places ----------------------------------------------------------- */

/* A part that is at a node. */
struct node_part
{
    int64_t node, part;
    int64_t piece, segment; /* -1: a dot */
};

struct places
{
    struct exact_arrangement arrangement;
    int64_t n_visits;
    struct node_part *visit; /* by node, part */
    /* [n_parts] whether the part is a polygon that encloses something */
    uint8_t *is_area;
    /* [n_nodes] for a side, 1: an odd number of ends of its lines */
    uint8_t *ends[2];
    /* [n_pieces] bit s: areas of side s cover both sides of the piece */
    uint8_t *covered;
    /* The last piece or node, by its mark, that lies on the segment or part, or
     * whose ray met the part. */
    int64_t mark, *skip_segment, *on_part, *seen_part;
    uint8_t *parity;   /* [n_parts] of what the last ray met */
    int64_t *odd_part; /* [n_odd] that the last ray met */
    int64_t n_odd;
};

static void free_places(struct places *a)
{
    free_arrangement(&a->arrangement);
    oj_free(a->visit);
    oj_free(a->is_area);
    oj_free(a->ends[0]);
    oj_free(a->ends[1]);
    oj_free(a->covered);
    oj_free(a->skip_segment);
    oj_free(a->on_part);
    oj_free(a->seen_part);
    oj_free(a->parity);
    oj_free(a->odd_part);
}

/* --- parts ---------------------------------------------------------------- */

static void toggle_end(struct places *a, int64_t part, int64_t node)
{
    a->ends[a->arrangement.pair.part[part].side][node] ^= 1;
}

/* Says which polygons enclose something: those with a piece that their rings
 * pass an odd number of times. The others are lines; then counts ends. */
static oj_status classify_parts(struct places *a, struct oj_error *err)
{
    const struct oj_exact_pair *pair = &a->arrangement.pair;
    a->is_area = oj_calloc(pair->n_parts, sizeof *a->is_area);
    a->ends[0] = oj_calloc(a->arrangement.n_nodes, sizeof *a->ends[0]);
    a->ends[1] = oj_calloc(a->arrangement.n_nodes, sizeof *a->ends[1]);
    if (a->is_area == NULL || a->ends[0] == NULL || a->ends[1] == NULL)
        return oj_fail_nomem(err, a->arrangement.n_nodes, 2);
    for (int64_t i = 0, end; i < a->arrangement.n_pieces; i = end)
    {
        int64_t part = a->arrangement.piece[i].part;
        end = piece_part_end(&a->arrangement, i);
        if (pair->part[part].kind == OJ_PART_POLYGON && (end - i) % 2 == 1)
            a->is_area[part] = 1;
    }
    for (int64_t i = 0, end; i < a->arrangement.n_pieces; i = end)
    {
        int64_t part = a->arrangement.piece[i].part;
        end = piece_part_end(&a->arrangement, i);
        if (pair->part[part].kind != OJ_PART_POLYGON || a->is_area[part])
            continue;
        toggle_end(a, part, a->arrangement.piece[i].from);
        toggle_end(a, part, a->arrangement.piece[i].to);
    }
    for (int64_t part = 0; part < pair->n_parts; part++)
    {
        int64_t first = pair->part[part].first_segment;
        int64_t last = first + pair->part[part].n_segments - 1;
        if (pair->part[part].kind != OJ_PART_LINE || last < first)
            continue;
        toggle_end(a, part, a->arrangement.node_of_place[2 * first]);
        toggle_end(a, part, a->arrangement.node_of_place[2 * last + 1]);
    }
    return OJ_OK;
}

/* --- places --------------------------------------------------------------- */

/* What is known of a point with regard to a feature. */
struct around
{
    int n_rings;    /* parts that are areas, with a ring there */
    int is_inside;  /* of a part without a ring there */
    int is_covered; /* all of the surroundings, by areas */
    int on_line, is_end, on_dot;
};

static enum oj_matrix_place place_of(const struct around *around)
{
    if (around->is_inside)
        return OJ_PLACE_INTERIOR;
    if (around->n_rings > 0)
        return around->n_rings > 1 && around->is_covered ? OJ_PLACE_INTERIOR
                                                         : OJ_PLACE_BOUNDARY;
    if (around->on_line)
        return around->is_end ? OJ_PLACE_BOUNDARY : OJ_PLACE_INTERIOR;
    return around->on_dot ? OJ_PLACE_INTERIOR : OJ_PLACE_EXTERIOR;
}

/* parity[part] of areas for the ray from point to the right, without the
 * segments of skip_segment, which contain the point. */
static void cast_ray(struct places *a, struct oj_exact_point *point)
{
    struct oj_exact_search search = {.tree = &a->arrangement.tree};
    search.box = point->bounds;
    search.box.high[0] = (double)INFINITY;
    for (int64_t i = 0; i < a->n_odd; i++)
        a->parity[a->odd_part[i]] = 0;
    a->n_odd = 0;
    for (int64_t s; (s = oj_exact_search_next(&search)) >= 0;)
    {
        const struct oj_exact_segment *segment =
            &a->arrangement.pair.segment[s];
        int64_t part = segment->part;
        if (!a->is_area[part] || a->skip_segment[s] == a->mark ||
            !oj_exact_ray_meets(&a->arrangement.pair, segment, point))
            continue;
        if (a->seen_part[part] != a->mark)
        {
            a->seen_part[part] = a->mark;
            a->odd_part[a->n_odd++] = part;
        }
        a->parity[part] ^= 1;
    }
}

/* One piece, records first to end - 1. Bits 0 and 1 of covers[s]: areas of side
 * s cover the right (or upper) and the left (or lower) side of the piece. */
static void look_at_piece(struct places *a, int64_t first, int64_t end,
                          struct around around[2], int covers[2])
{
    struct oj_exact_point point;
    a->mark++;
    for (int64_t i = first; i < end; i++)
        a->skip_segment[a->arrangement.piece[i].segment] = a->mark;
    oj_exact_point_middle(&point,
                          a->arrangement.node[a->arrangement.piece[first].from],
                          a->arrangement.node[a->arrangement.piece[first].to]);
    cast_ray(a, &point);
    for (int64_t i = first, next; i < end; i = next)
    {
        int64_t part = a->arrangement.piece[i].part;
        int side = a->arrangement.pair.part[part].side;
        int right = a->parity[part], left;
        next = piece_part_end(&a->arrangement, i);
        if (!a->is_area[part])
        {
            around[side].on_line = 1;
            continue;
        }
        left = right ^ (int)((next - i) % 2);
        covers[side] |= right | left << 1;
        around[side].n_rings++;
        a->on_part[part] = a->mark;
    }
    for (int64_t i = 0; i < a->n_odd; i++)
    {
        int64_t part = a->odd_part[i];
        int side = a->arrangement.pair.part[part].side;
        if (a->parity[part] == 0 || a->on_part[part] == a->mark)
            continue;
        around[side].is_inside = 1;
        covers[side] = 3;
    }
    for (int side = 0; side < 2; side++)
        around[side].is_covered = covers[side] == 3;
}

static void add_pieces(struct places *a, struct oj_matrix *matrix)
{
    for (int64_t i = 0, end; i < a->arrangement.n_pieces; i = end)
    {
        struct around around[2];
        int covers[2] = {0, 0};
        memset(around, 0, sizeof around);
        end = piece_end(&a->arrangement, i);
        look_at_piece(a, i, end, around, covers);
        oj_matrix_add(matrix, place_of(&around[0]), place_of(&around[1]), 1);
        for (int bit = 1; bit <= 2; bit++)
            oj_matrix_add(
                matrix, covers[0] & bit ? OJ_PLACE_INTERIOR : OJ_PLACE_EXTERIOR,
                covers[1] & bit ? OJ_PLACE_INTERIOR : OJ_PLACE_EXTERIOR, 2);
        for (int64_t record = i; record < end; record++)
            a->covered[record] =
                (uint8_t)((covers[0] == 3) | (covers[1] == 3) << 1);
    }
}

static int compare_visits(const void *left, const void *right)
{
    const struct node_part *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->part > b->part) - (a->part < b->part);
}

static void add_visit(struct places *a, int64_t node, int64_t part,
                      int64_t piece, int64_t segment)
{
    struct node_part *visit = &a->visit[a->n_visits++];
    visit->node = node;
    visit->part = part;
    visit->piece = piece;
    visit->segment = segment;
}

static oj_status make_visits(struct places *a, struct oj_error *err)
{
    const struct oj_exact_pair *pair = &a->arrangement.pair;
    OJ_NEW(a->visit, 2 * a->arrangement.n_pieces + pair->n_dots, err);
    for (int64_t i = 0; i < a->arrangement.n_pieces; i++)
    {
        const struct exact_piece *piece = &a->arrangement.piece[i];
        add_visit(a, piece->from, piece->part, i, piece->segment);
        add_visit(a, piece->to, piece->part, i, piece->segment);
    }
    for (int64_t d = 0; d < pair->n_dots; d++)
        add_visit(a, a->arrangement.node_of_place[2 * pair->n_segments + d],
                  pair->segment[pair->n_segments + d].part, -1, -1);
    if (a->n_visits > 0)
        qsort(a->visit, (size_t)a->n_visits, sizeof *a->visit, compare_visits);
    return OJ_OK;
}

/* The visits of one node, first to end - 1. */
static void look_at_node(struct places *a, int64_t first, int64_t end,
                         struct around around[2])
{
    struct oj_exact_point point;
    int64_t node = a->visit[first].node;
    int n_pieces = 0, covered = 3;
    a->mark++;
    for (int64_t i = first; i < end; i++)
    {
        const struct node_part *visit = &a->visit[i];
        struct around *of = &around[a->arrangement.pair.part[visit->part].side];
        if (visit->piece >= 0)
        {
            a->skip_segment[visit->segment] = a->mark;
            covered &= a->covered[visit->piece];
            n_pieces++;
        }
        if (a->is_area[visit->part])
        {
            of->n_rings += a->on_part[visit->part] != a->mark;
            a->on_part[visit->part] = a->mark;
        }
        else if (visit->piece >= 0)
            of->on_line = 1;
        else
            of->on_dot = 1;
    }
    oj_exact_point_at(&point, a->arrangement.node[node]);
    cast_ray(a, &point);
    for (int side = 0; side < 2; side++)
    {
        around[side].is_end = a->ends[side][node];
        around[side].is_covered = n_pieces > 0 && (covered >> side & 1);
    }
    for (int64_t i = 0; i < a->n_odd; i++)
    {
        int64_t part = a->odd_part[i];
        struct around *of = &around[a->arrangement.pair.part[part].side];
        if (a->parity[part] == 0)
            continue;
        if (a->on_part[part] != a->mark)
            of->is_inside = 1;
        else if (n_pieces == 0) /* in a ring of one point, a hole */
            of->is_covered = 1;
    }
}

static void add_nodes(struct places *a, struct oj_matrix *matrix)
{
    for (int64_t i = 0, end; i < a->n_visits; i = end)
    {
        struct around around[2];
        memset(around, 0, sizeof around);
        for (end = i; end < a->n_visits; end++)
        {
            if (a->visit[end].node != a->visit[i].node)
                break;
        }
        look_at_node(a, i, end, around);
        oj_matrix_add(matrix, place_of(&around[0]), place_of(&around[1]), 0);
    }
}

static oj_status make_marks(struct places *a, struct oj_error *err)
{
    int64_t n_parts = a->arrangement.pair.n_parts,
            n_segments = a->arrangement.pair.n_segments;
    a->covered = oj_calloc(a->arrangement.n_pieces, sizeof *a->covered);
    a->skip_segment = oj_calloc(n_segments, sizeof *a->skip_segment);
    a->on_part = oj_calloc(n_parts, sizeof *a->on_part);
    a->seen_part = oj_calloc(n_parts, sizeof *a->seen_part);
    a->parity = oj_calloc(n_parts, sizeof *a->parity);
    a->odd_part = oj_calloc(n_parts, sizeof *a->odd_part);
    if (a->covered == NULL || a->skip_segment == NULL || a->on_part == NULL ||
        a->seen_part == NULL || a->parity == NULL || a->odd_part == NULL)
        return oj_fail_nomem(err, n_segments + 3 * n_parts, sizeof(int64_t));
    return OJ_OK;
}

static oj_status fill(struct places *a, struct oj_matrix *matrix,
                      struct oj_error *err)
{
    OJ_TRY(classify_parts(a, err));
    OJ_TRY(make_marks(a, err));
    OJ_TRY(make_visits(a, err));
    add_pieces(a, matrix);
    add_nodes(a, matrix);
    return OJ_OK;
}

oj_status oj_exact_matrix(const struct oj_flat *input, int64_t row,
                          const struct oj_flat *join_side, int64_t feature,
                          struct oj_matrix *out, struct oj_error *err)
{
    struct oj_matrix matrix = oj_matrix_empty();
    struct places places;
    oj_status status;
    memset(&places, 0, sizeof places);
    OJ_TRY(make_arrangement(input, row, join_side, feature, &places.arrangement,
                            err));
    status = fill(&places, &matrix, err);
    free_places(&places);
    if (status == OJ_OK)
        *out = matrix;
    return status;
}

/* --- joins ---------------------------------------------------------------- */

oj_status oj_exact_holds(const struct oj_relation *relation,
                         const struct oj_flat *input, int64_t row,
                         const struct oj_flat *join_side, int64_t feature,
                         int *holds, struct oj_error *err)
{
    struct oj_box box = oj_box_of_feature(input, row);
    struct oj_box other = oj_box_of_feature(join_side, feature);
    struct oj_matrix matrix;
    if (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN)
        return oj_fail(err, OJ_ERR_ARG,
                       "the exact reference decides %s by distance, not by "
                       "matrix",
                       oj_op_get(relation->op)->name);
    if (relation->op == OJ_OP_BBOX || oj_box_is_empty(&box) ||
        oj_box_is_empty(&other))
    {
        *holds = oj_box_intersects(&box, &other);
        return OJ_OK;
    }
    OJ_TRY(oj_exact_matrix(input, row, join_side, feature, &matrix, err));
    *holds = oj_matrix_holds(&matrix, relation);
    return OJ_OK;
}
