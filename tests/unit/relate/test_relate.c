/* Compares the matrix of two shapes with the exact reference. Random features
 * of all kinds are on small grids, so that vertices, edges and whole rings
 * coincide, cross, overlap and collapse. Figures have bands in one half of the
 * rounds, and trees of edges in the other half.
 * Kind: property, degenerate. */
#include "../../../algs/geometry/relate/relate.h"
#include "../../../algs/geometry/shapes/cpu_prepared_shapes.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../predicate/random_shapes.h"
#include "../references.h"
#include "../run_tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../exact_truth.h"

/* Transformations of the integer coordinates. */
enum turn
{
    AS_IS,
    TENTHS,
    ROTATED,
    FAR_AWAY,
    TINY,
    N_TURNS
};

static void turn_point(enum turn turn, double *x, double *y)
{
    double u = *x, v = *y;
    switch (turn)
    {
        case TENTHS:
            *x = 0.1 * u;
            *y = 0.1 * v;
            break;
        case ROTATED:
            *x = u * cos(0.7) - v * sin(0.7);
            *y = u * sin(0.7) + v * cos(0.7);
            break;
        case FAR_AWAY:
            *x = 988000.1 + 1e-3 * u / 3.0;
            *y = 198000.7 + 1e-3 * v / 3.0;
            break;
        case TINY:
            *x = 1e-12 * u;
            *y = 1.0 + 1e-12 * v;
            break;
        default:
            break;
    }
}

static int64_t n_pairs, n_valid;

#define MOST_PAIRS_OF_VERTICES 150

static void print_feature(const struct oj_flat *flat, int64_t feature)
{
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        fprintf(stderr, " kind %d", flat->part_kind[p]);
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
        {
            fprintf(stderr, " (");
            for (int64_t v = flat->vertex_offset[r];
                 v < flat->vertex_offset[r + 1]; v++)
                fprintf(stderr, "%.17g %.17g,", flat->x[v], flat->y[v]);
            fprintf(stderr, ")");
        }
    }
    fprintf(stderr, "\n");
}

static void check_pair(const struct oj_flat *a, int64_t i,
                       const struct oj_flat *b, int64_t j,
                       struct oj_relate_scratch *scratch)
{
    struct oj_shape s = oj_shape_of(a, i), t = oj_shape_of(b, j);
    struct oj_matrix truth, full, ours;
    struct oj_figure figure;
    int valid_s, valid_t;
    int64_t first, end, other, other_end;
    oj_flat_vertex_range(a, i, &first, &end);
    oj_flat_vertex_range(b, j, &other, &other_end);
    /* the exact reference is slow for large shapes */
    if (first == end || other == other_end ||
        (end - first) * (other_end - other) > MOST_PAIRS_OF_VERTICES)
        return;
    truth = exact_matrix(a, i, b, j);
    memset(&figure, 0, sizeof figure);
    figure.most_in_band = scratch->input.most_in_band;
    must(oj_shape_is_valid(&s, &figure, &scratch->node, &valid_s, &error));
    must(oj_shape_is_valid(&t, &figure, &scratch->node, &valid_t, &error));
    oj_relate_figure_free(&figure);
    must(oj_shapes_relate(NULL, &s, valid_s, &t, valid_t, NULL, scratch, &ours,
                          &error));
    must(oj_shapes_relate(NULL, &s, 0, &t, 0, NULL, scratch, &full, &error));
    if (strcmp(full.at, truth.at) != 0 || strcmp(ours.at, truth.at) != 0)
    {
        fprintf(stderr, "valid %d %d\n", valid_s, valid_t);
        print_feature(a, i);
        print_feature(b, j);
        ck_abort_msg("exactly %s, ours %s, without short cuts %s", truth.at,
                     ours.at, full.at);
    }
    for (int op = OJ_OP_INTERSECTS; op < OJ_OP_SIMILAR; op++)
    {
        struct oj_relation relation = oj_relation_default();
        if (op == OJ_OP_RELATE || op == OJ_OP_BBOX)
            continue; /* relate needs a pattern, and bbox uses no matrix */
        relation.op = (enum oj_op)op;
        must(oj_shapes_relate(&relation, &s, valid_s, &t, valid_t, NULL,
                              scratch, &ours, &error));
        if (oj_matrix_satisfies_relation(&ours, &relation) ==
            oj_matrix_satisfies_relation(&truth, &relation))
            continue;
        print_feature(a, i);
        print_feature(b, j);
        ck_abort_msg("%s: exactly %s, ours, as far as it goes, %s",
                     oj_op_get(relation.op)->name, truth.at, ours.at);
    }
    n_pairs++;
    n_valid += valid_s && valid_t;
}

#define N 40

static void add_turned(struct oj_flat_buf *buf, const struct shape_lattice *l,
                       enum turn turn)
{
    add_shapes(buf, l, N);
    for (int64_t v = 0; v < buf->n_vertices; v++)
        turn_point(turn, &buf->x[v], &buf->y[v]);
}

TEST_LOOP(random_pairs, 0, 8)
{
    struct oj_relate_scratch scratch;
    memset(&scratch, 0, sizeof scratch);
    seed = random_state = first_seed() + (uint64_t)_i;
    /* for odd _i: a tree for every figure of two edges or more */
    scratch.input.most_in_band = scratch.join_side.most_in_band = _i % 2;
    for (int64_t round = 0; round < rounds(4); round++)
    {
        const struct shape_lattice lattice = {1 + pick(5), 0.0, 1.0};
        enum turn turn = (enum turn)pick(N_TURNS);
        LAYER a = {0}, b = {0};
        struct oj_flat flat_a, flat_b;
        add_turned(&a, &lattice, turn);
        add_turned(&b, &lattice, turn);
        flat_a = oj_flat_buf_view(&a);
        flat_b = oj_flat_buf_view(&b);
        for (int64_t i = 0; i < N; i++)
        {
            for (int64_t j = 0; j < N; j++)
                check_pair(&flat_a, i, &flat_b, j, &scratch);
        }
        oj_relate_scratch_forget_layers(&scratch);
    }
    oj_relate_scratch_free(&scratch);
    printf("%lld pairs, %lld of them valid\n", (long long)n_pairs,
           (long long)n_valid);
}

int main(void)
{
    tests_open("relate");
    return tests_run();
}
