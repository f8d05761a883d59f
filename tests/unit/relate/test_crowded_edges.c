/* A multipolygon of very many boxes has the matrix that the exact reference
 * computes for a few boxes in an equal layout. If the time grew by the square
 * of the number of boxes, this test would take minutes. A polygon of many
 * edges and a small shape have the matrix that is computed without short cuts.
 * Kind: large, property. */
#include "../../../algs/geometry/relate/relate.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../predicate/random_shapes.h"
#include "../references.h"
#include "../run_tests.h"

#include <math.h>
#include <string.h>

#include "../exact_truth.h"

enum layout
{
    ALONG_X,
    ALONG_Y,
    SQUARE_GRID,
    DIAGONAL,
    SHARED_SIDES,
    CORNERS_TOUCH,
    HOLES, /* of one large box */
    N_LAYOUTS
};

static void add_box_ring(struct oj_flat_buf *buf, double x, double y,
                         double width, double height)
{
    const double xy[10] = {x,          y, x + width,  y, x + width,
                           y + height, x, y + height, x, y};
    add_ring(buf, 5, xy);
}

/* Adds a feature of n boxes of side 2, all shifted by (x, y). */
static void add_boxes(struct oj_flat_buf *buf, enum layout layout, int n,
                      double x, double y)
{
    const int side = (int)ceil(sqrt((double)n));
    must(oj_flat_buf_begin_feature(buf, buf->n_features, &error));
    if (layout == HOLES)
    {
        add_part(buf, OJ_PART_POLYGON);
        add_box_ring(buf, x - 1.0, y - 1.0, 4.0 * n, 4.0);
    }
    for (int k = 0; k < n; k++)
    {
        /* neighbours in place are far apart in the order */
        const int i = (int)((int64_t)k * 7 % n);
        double u = 4.0 * i, v = 0.0;
        if (layout == ALONG_Y || layout == DIAGONAL)
            v = 4.0 * i;
        if (layout == ALONG_Y)
            u = 0.0;
        else if (layout == SQUARE_GRID)
        {
            u = 4.0 * (i % side);
            v = 4.0 * (double)(i / side);
        }
        else if (layout == SHARED_SIDES || layout == CORNERS_TOUCH)
            u = 2.0 * i;
        if (layout == CORNERS_TOUCH)
            v = 2.0 * (i % 2);
        if (layout != HOLES)
            add_part(buf, OJ_PART_POLYGON);
        add_box_ring(buf, x + u, y + v, 2.0, 2.0);
    }
    must(oj_flat_buf_end_feature(buf, &error));
}

static struct oj_matrix matrix_of(const struct oj_flat *flat, int64_t i,
                                  int64_t j, int *are_valid)
{
    struct oj_shape a = oj_shape_of(flat, i), b = oj_shape_of(flat, j);
    struct oj_relate_scratch scratch;
    struct oj_figure figure;
    struct oj_matrix matrix;
    int a_is_valid, b_is_valid;
    memset(&scratch, 0, sizeof scratch);
    memset(&figure, 0, sizeof figure);
    must(oj_shape_is_valid(&a, &figure, &scratch.node, &a_is_valid, &error));
    must(oj_shape_is_valid(&b, &figure, &scratch.node, &b_is_valid, &error));
    must(oj_shapes_relate(NULL, &a, a_is_valid, &b, b_is_valid, NULL, &scratch,
                          &matrix, &error));
    oj_relate_figure_free(&figure);
    oj_relate_scratch_free(&scratch);
    *are_valid = a_is_valid && b_is_valid;
    return matrix;
}

#define FEW 9
#define MANY 10000 /* both are squares, for the grid */

TEST_LOOP(many_boxes, 0, N_LAYOUTS)
{
    const double shift[][2] = {{0.0, 0.0}, {1.0, 0.5}, {2.0, 0.0}};
    const enum layout layout = (enum layout)_i;
    LAYER few = {0}, many = {0};
    struct oj_flat flat_few, flat_many;
    add_boxes(&few, layout, FEW, 0.0, 0.0);
    add_boxes(&many, layout, MANY, 0.0, 0.0);
    for (int s = 0; s < 3; s++)
    {
        add_boxes(&few, layout, FEW, shift[s][0], shift[s][1]);
        add_boxes(&many, layout, MANY, shift[s][0], shift[s][1]);
    }
    flat_few = oj_flat_buf_view(&few);
    flat_many = oj_flat_buf_view(&many);
    for (int64_t s = 1; s <= 3; s++)
    {
        const struct oj_matrix truth = exact_matrix(&flat_few, 0, &flat_few, s);
        int are_valid;
        const struct oj_matrix ours = matrix_of(&flat_many, 0, s, &are_valid);
        expect(strcmp(truth.at, ours.at) == 0,
               "layout %d, shift %d: exactly %s, ours %s", _i, (int)s, truth.at,
               ours.at);
        ck_assert_int_eq(are_valid, layout != SHARED_SIDES);
    }
}

/* --- a large polygon and small shapes ------------------------------------- */

#define TEETH 90

/* Adds a polygon with teeth of random height, 4 * TEETH + 3 vertices. */
static void add_comb(struct oj_flat_buf *buf, int size)
{
    struct corners c = {0, {0}};
    const struct shape_lattice lattice = {size, 0.0, 1.0};
    corner(&c, &lattice, 0, -1);
    for (int i = 0; i < TEETH; i++)
    {
        const int height = pick(size + 1);
        corner(&c, &lattice, 2 * i, height);
        corner(&c, &lattice, 2 * i + 1, height);
        if (height > 0)
        {
            corner(&c, &lattice, 2 * i + 1, 0);
            corner(&c, &lattice, 2 * i + 2, 0);
        }
    }
    corner(&c, &lattice, 2 * TEETH, -1);
    corner(&c, &lattice, 0, -1);
    must(oj_flat_buf_begin_feature(buf, buf->n_features, &error));
    add_part(buf, OJ_PART_POLYGON);
    add_ring(buf, c.n, c.xy);
    must(oj_flat_buf_end_feature(buf, &error));
}

static int64_t n_compared;

static void check_large_pair(const struct oj_flat *a, int64_t i,
                             const struct oj_flat *b, int64_t j,
                             struct oj_relate_scratch *scratch)
{
    struct oj_shape s = oj_shape_of(a, i), t = oj_shape_of(b, j);
    struct oj_matrix full, ours;
    struct oj_figure figure;
    int valid_s, valid_t;
    if (s.n_parts == 0 || t.n_parts == 0)
        return;
    memset(&figure, 0, sizeof figure);
    must(oj_shape_is_valid(&s, &figure, &scratch->node, &valid_s, &error));
    must(oj_shape_is_valid(&t, &figure, &scratch->node, &valid_t, &error));
    oj_relate_figure_free(&figure);
    must(oj_shapes_relate(NULL, &s, valid_s, &t, valid_t, NULL, scratch, &ours,
                          &error));
    must(oj_shapes_relate(NULL, &s, 0, &t, 0, NULL, scratch, &full, &error));
    expect(strcmp(full.at, ours.at) == 0,
           "seed %llu: features %d and %d: without short cuts %s, ours %s",
           (unsigned long long)seed, (int)i, (int)j, full.at, ours.at);
    n_compared += valid_s && valid_t;
}

TEST_LOOP(large_polygon, 0, 4)
{
    struct oj_relate_scratch scratch;
    memset(&scratch, 0, sizeof scratch);
    seed = random_state = first_seed() + (uint64_t)_i;
    n_compared = 0;
    for (int64_t round = 0; round < rounds(8); round++)
    {
        const struct shape_lattice lattice = {1 + pick(5), 0.0, 1.0};
        LAYER large = {0}, small = {0};
        struct oj_flat flat_large, flat_small;
        /* a tree in one half of the rounds, bands in the other */
        scratch.input.most_in_band = scratch.join_side.most_in_band =
            round % 2 ? 1 : 1000;
        add_comb(&large, lattice.size);
        add_shapes(&small, &lattice, 40);
        for (int64_t v = 0; v < small.n_vertices; v++)
            small.x[v] += 20.0;
        flat_large = oj_flat_buf_view(&large);
        flat_small = oj_flat_buf_view(&small);
        for (int64_t i = 0; i < flat_small.n_features; i++)
        {
            check_large_pair(&flat_large, 0, &flat_small, i, &scratch);
            check_large_pair(&flat_small, i, &flat_large, 0, &scratch);
        }
        oj_relate_scratch_forget_layers(&scratch);
    }
    oj_relate_scratch_free(&scratch);
    ck_assert_int_gt(n_compared, 100);
}

int main(void)
{
    tests_open("crowded_edges");
    return tests_run();
}
