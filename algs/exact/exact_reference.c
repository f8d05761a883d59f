/* The places of the nodes of an arrangement, of its pieces, and of both sides
 * of the pieces.  These are all that two features can have in common: every
 * face of the arrangement, the outer one aside, is a side of some piece. */
#include "exact_reference.h"

#include "../../flatten/base/oj_array.h"
#include "exact_arrangement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A part that is at a node. */
struct node_part
{
    int64_t node, part;
    int64_t piece, segment; /* -1: a dot */
};

struct places
{
    struct oj_exact_arrangement arrangement;
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
    oj_exact_arrangement_free(&a->arrangement);
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
        end = oj_exact_piece_part_end(&a->arrangement, i);
        if (pair->part[part].kind == OJ_PART_POLYGON && (end - i) % 2 == 1)
            a->is_area[part] = 1;
    }
    for (int64_t i = 0, end; i < a->arrangement.n_pieces; i = end)
    {
        int64_t part = a->arrangement.piece[i].part;
        end = oj_exact_piece_part_end(&a->arrangement, i);
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
        next = oj_exact_piece_part_end(&a->arrangement, i);
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
        end = oj_exact_piece_end(&a->arrangement, i);
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
        const struct oj_exact_piece *piece = &a->arrangement.piece[i];
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
    OJ_TRY(oj_exact_arrange(input, row, join_side, feature, &places.arrangement,
                            err));
    status = fill(&places, &matrix, err);
    free_places(&places);
    if (status == OJ_OK)
        *out = matrix;
    return status;
}

/* --- joins ---------------------------------------------------------------- */

static int boxes_meet(const struct oj_flat *input, int64_t row,
                      const struct oj_flat *join_side, int64_t feature)
{
    const double inf = (double)INFINITY;
    struct oj_exact_box box[2] = {{{inf, inf}, {-inf, -inf}},
                                  {{inf, inf}, {-inf, -inf}}};
    for (int side = 0; side < 2; side++)
    {
        const struct oj_flat *flat = side == 0 ? input : join_side;
        int64_t first, end;
        oj_flat_vertices(flat, side == 0 ? row : feature, &first, &end);
        for (int64_t v = first; v < end; v++)
        {
            box[side].low[0] = fmin(box[side].low[0], flat->x[v]);
            box[side].low[1] = fmin(box[side].low[1], flat->y[v]);
            box[side].high[0] = fmax(box[side].high[0], flat->x[v]);
            box[side].high[1] = fmax(box[side].high[1], flat->y[v]);
        }
    }
    return oj_exact_boxes_meet(&box[0], &box[1]);
}

static int has_vertices(const struct oj_flat *flat, int64_t feature)
{
    int64_t first, end;
    oj_flat_vertices(flat, feature, &first, &end);
    return first < end;
}

oj_status oj_exact_holds(const struct oj_relation *relation,
                         const struct oj_flat *input, int64_t row,
                         const struct oj_flat *join_side, int64_t feature,
                         int *holds, struct oj_error *err)
{
    struct oj_matrix matrix;
    if (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN)
        return oj_fail(err, OJ_ERR_ARG,
                       "the exact reference decides %s by distance, not by "
                       "matrix",
                       oj_op_get(relation->op)->name);
    if (!has_vertices(input, row) || !has_vertices(join_side, feature))
    {
        *holds = 0;
        return OJ_OK;
    }
    if (relation->op == OJ_OP_BBOX)
    {
        *holds = boxes_meet(input, row, join_side, feature);
        return OJ_OK;
    }
    OJ_TRY(oj_exact_matrix(input, row, join_side, feature, &matrix, err));
    *holds = oj_matrix_holds(&matrix, relation);
    return OJ_OK;
}
