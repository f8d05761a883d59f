/* All reference backends give the same answer, bit for bit, as a brute-force
 * search, on random layers full of ties, touching and broken shapes.
 * Kind: property. OJ_TEST_SEED=n and OJ_TEST_ROUNDS=n run others, or more. */
#include "../references.h"

#include "../geos_area.h"
#include "../run_tests.h"

#include "../../../algs/quadrant/flat_distance.h"
#include "../../../algs/reference/oj_validate.h"
#include "../../../flatten/base/oj_array.h"

#include <stdio.h>
#include <stdlib.h>

#define N_ROUNDS 400

/* --- random numbers and layers ---------------------------------------------
 */

static uint64_t state;

static uint64_t next_random(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* 0 .. n - 1 */
static int pick(int n)
{
    return (int)(next_random() % (uint64_t)n);
}

static double unit(void)
{
    return (double)(next_random() >> 11) * 0x1p-53;
}

/* Where the coordinates of a round lie. */
struct coordinate_range
{
    double origin_x, origin_y, scale;
    int extent;   /* in steps of scale */
    int is_exact; /* on a lattice: ties, and points on vertices and edges */
};

static struct coordinate_range pick_place(void)
{
    static const double scales[] = {1.0, 1e-7, 1e7, 0.1, 32.0};
    static const double origins[] = {0.0, 1e7, -1e-7, 987654.321, 0.1};
    static const int extents[] = {8, 20, 200, 5000};
    struct coordinate_range place;
    place.scale = scales[pick(5)];
    place.origin_x = origins[pick(5)];
    place.origin_y = origins[pick(5)];
    place.extent = extents[pick(4)];
    place.is_exact = pick(3) > 0;
    return place;
}

static double coordinate(const struct coordinate_range *place, double origin,
                         double step)
{
    if (!place->is_exact)
        step += unit() - 0.5;
    return origin + place->scale * step;
}

/* A point within reach steps of a middle, as x, y. */
static void put_near(const struct coordinate_range *place, const int *middle,
                     int reach, double *xy)
{
    int dx = pick(2 * reach + 1) - reach, dy = pick(2 * reach + 1) - reach;
    xy[0] = coordinate(place, place->origin_x, middle[0] + dx);
    xy[1] = coordinate(place, place->origin_y, middle[1] + dy);
}

/* A ring around middle: in order of angle (valid, most often), or any. */
static void add_random_ring(struct oj_flat_buf *buf,
                            const struct coordinate_range *place,
                            const int *middle, int reach, int is_wild)
{
    double xy[2 * 31];
    int n = 3 + pick(is_wild ? 6 : 28);
    double turn = 6.283185307179586 / n;
    for (int i = 0; i < n; i++)
    {
        double r = reach * (0.3 + 0.7 * unit());
        if (is_wild)
        {
            put_near(place, middle, reach, xy + 2 * i);
            continue;
        }
        xy[2 * i] = coordinate(place, place->origin_x,
                               middle[0] + rint(r * cos(i * turn)));
        xy[2 * i + 1] = coordinate(place, place->origin_y,
                                   middle[1] + rint(r * sin(i * turn)));
    }
    xy[2 * n] = xy[0];
    xy[2 * n + 1] = xy[1];
    add_ring(buf, n + 1, xy);
}

static void add_random_polygon(struct oj_flat_buf *buf,
                               const struct coordinate_range *place,
                               const int *middle)
{
    int reach = 2 + pick(6), is_wild = pick(4) == 0;
    add_part(buf, OJ_PART_POLYGON);
    if (pick(3) == 0) /* a rectangle: borders shared with others */
    {
        double x0 = place->origin_x + place->scale * (middle[0] - reach);
        double y0 = place->origin_y + place->scale * (middle[1] - reach);
        double x1 = place->origin_x + place->scale * (middle[0] + reach);
        double y1 = place->origin_y + place->scale * (middle[1] + reach);
        double xy[] = {x0, y0, x1, y0, x1, y1, x0, y1, x0, y0};
        add_ring(buf, 5, xy);
    }
    else
        add_random_ring(buf, place, middle, reach, is_wild);
    if (pick(3) == 0)
        add_random_ring(buf, place, middle, 1 + pick(reach), is_wild);
    if (pick(8) == 0)
        add_random_ring(buf, place, middle, 1 + pick(reach), is_wild);
    if (pick(100) == 0) /* a hole of two vertices */
    {
        double xy[4];
        put_near(place, middle, reach, xy);
        xy[2] = xy[0];
        xy[3] = xy[1];
        add_ring(buf, 2, xy);
    }
}

static void add_random_part(struct oj_flat_buf *buf,
                            const struct coordinate_range *place,
                            const int *middle, int kind)
{
    double xy[2 * 30];
    int n = kind == 0 ? 1 : 2 + pick(12);
    if (kind == 2)
    {
        add_random_polygon(buf, place, middle);
        return;
    }
    add_part(buf, kind == 0 ? OJ_PART_POINT : OJ_PART_LINE);
    for (int i = 0; i < n; i++)
        put_near(place, middle, 6, xy + 2 * i);
    if (n > 3 && pick(3) == 0) /* a repeated vertex */
    {
        xy[2] = xy[0];
        xy[3] = xy[1];
    }
    add_ring(buf, n, xy);
}

/* kind: 0 points, 1 lines, 2 polygons, 3 anything, also collections. */
static void add_random_features(struct oj_flat_buf *buf,
                                const struct coordinate_range *place, int n,
                                int kind)
{
    for (int i = 0; i < n; i++)
    {
        int middle[2] = {pick(place->extent), pick(place->extent)};
        int n_parts = kind == 3 && pick(3) == 0 ? 1 + pick(3) : 1;
        if (pick(20) == 0)
        {
            must(oj_flat_buf_add_null(buf, i, &error));
            continue;
        }
        if (pick(100) == 0) /* an outlier */
            middle[0] += 100000;
        if (kind == 0 && pick(2)) /* may stay in the short form */
        {
            double xy[2];
            put_near(place, middle, 3, xy);
            add_point(buf, xy[0], xy[1]);
            continue;
        }
        begin(buf);
        for (int part = 0; part < n_parts; part++)
            add_random_part(buf, place, middle, kind == 3 ? pick(3) : kind);
        end(buf);
    }
}

static void add_random_points(struct oj_flat_buf *buf,
                              const struct coordinate_range *place, int n)
{
    int has_multi = pick(2);
    for (int i = 0; i < n; i++)
    {
        int middle[2] = {pick(place->extent), pick(place->extent)};
        double xy[2];
        if (pick(50) == 0)
            middle[1] -= 30000;
        if (pick(30) == 0)
            must(oj_flat_buf_add_null(buf, i, &error));
        else if (has_multi && pick(4) == 0)
        {
            begin(buf);
            for (int part = 1 + pick(3); part > 0; part--)
                add_random_part(buf, place, middle, 0);
            end(buf);
        }
        else
        {
            put_near(place, middle, 3, xy);
            add_point(buf, xy[0], xy[1]);
        }
    }
}

static struct oj_relation pick_relation(const struct coordinate_range *place)
{
    static const double steps[] = {0.0, 1.0, 2.5, 10.0, 1e9};
    struct oj_relation relation = oj_relation_default();
    relation.max_distance =
        pick(3) == 0 ? INFINITY : place->scale * steps[pick(5)];
    relation.k = pick(2) ? 1 : 1 + pick(12);
    relation.ties = pick(2) ? OJ_TIES_FIRST : OJ_TIES_ALL;
    relation.distance_to = pick(2) ? OJ_TO_INTERIOR : OJ_TO_BOUNDARY;
    return relation;
}

/* --- brute force ------------------------------------------------------------
 */

struct near_feature
{
    double distance;
    int32_t rank, feature;
};

static int compare_near(const void *left, const void *right)
{
    const struct near_feature *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Least distance of any point of row to feature. */
static double row_distance(const struct oj_flat *join,
                           const struct oj_flat *input, int64_t row,
                           int64_t feature, enum oj_distance_to distance_to)
{
    double least = INFINITY;
    int64_t first, end_vertex;
    oj_flat_vertices(input, row, &first, &end_vertex);
    for (int64_t v = first; v < end_vertex; v++)
    {
        double d = oj_flat_distance(join, feature, distance_to, input->x[v],
                                    input->y[v]);
        least = d < least ? d : least;
    }
    return least;
}

static void brute_force(const struct oj_flat *join, const struct oj_flat *input,
                        const struct oj_relation *relation,
                        const int32_t *tie_rank, struct oj_matches *out)
{
    int lists = oj_relation_gives_lists(relation);
    int64_t n_all = input->n_features * (lists ? join->n_features : 1), n = 0;
    struct near_feature *list = oj_malloc(join->n_features, sizeof *list);
    ck_assert_ptr_nonnull(list);
    must(oj_matches_reserve(out, input->n_features, n_all, lists, &error));
    for (int64_t row = 0; row < input->n_features; row++)
    {
        int64_t n_near = 0, n_kept;
        for (int64_t f = 0; f < join->n_features; f++)
        {
            double d = row_distance(join, input, row, f, relation->distance_to);
            if (!(d <= relation->max_distance) || !(d < INFINITY))
                continue;
            list[n_near].distance = d;
            list[n_near].rank = tie_rank != NULL ? tie_rank[f] : (int32_t)f;
            list[n_near++].feature = (int32_t)f;
        }
        qsort(list, (size_t)n_near, sizeof *list, compare_near);
        n_kept = n_near < relation->k ? n_near : relation->k;
        while (relation->ties == OJ_TIES_ALL && n_kept > 0 && n_kept < n_near &&
               list[n_kept].distance == list[n_kept - 1].distance)
            n_kept++;
        if (!lists)
        {
            out->join_row[row] = n_kept > 0 ? list[0].feature : -1;
            out->measure[row] = n_kept > 0 ? list[0].distance : NAN;
            continue;
        }
        out->offset[row] = n;
        for (int64_t i = 0; i < n_kept; i++, n++)
        {
            out->join_row[n] = list[i].feature;
            out->measure[n] = list[i].distance;
        }
        out->offset[row + 1] = n;
    }
    oj_free(list);
}

/* --- comparing --------------------------------------------------------------
 */

static int32_t *random_ranks(int64_t n)
{
    int32_t *rank = oj_malloc(n, sizeof *rank);
    ck_assert_ptr_nonnull(rank);
    for (int64_t i = 0; i < n; i++)
        rank[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0; i--)
    {
        int j = pick((int)i + 1);
        int32_t moved = rank[i];
        rank[i] = rank[j];
        rank[j] = moved;
    }
    return rank;
}

static int64_t n_pairs_seen, n_undecided_seen, n_rounding_seen, n_disputed_seen;

/* --- rounds -----------------------------------------------------------------
 */

struct random_join
{
    uint64_t seed;
    struct coordinate_range place;
    struct oj_relation relation;
    const struct oj_flat *join;
    const int32_t *rank;
};

/* Compares the references of GEOS, or the others, with the truth. */
static void compare(const struct random_join *round,
                    const struct oj_flat *input, int with_geos)
{
    struct oj_matches truth = {0};
    const struct oj_backend *backend;
    brute_force(round->join, input, &round->relation, round->rank, &truth);
    for (int b = 0; (backend = reference_at(b)) != NULL; b++)
    {
        struct oj_validation v;
        struct oj_matches out = {0};
        if ((backend != &oj_quadrant_backend) != with_geos)
            continue;
        memset(&v, 0, sizeof v);
        v.join_side = round->join;
        v.input = input;
        v.relation = &round->relation;
        run(backend, round->join, input, &round->relation, round->rank, &out);
        truth.n_undecided = out.n_undecided;
        truth.undecided = out.undecided;
        must(oj_validation_compare(&v, &out, &truth, &error));
        if (v.n_differences > 0)
        {
            const struct oj_difference *d = &v.first[0];
            fprintf(stderr,
                    "seed %llu, %s: %s, row %d, features %d and %d, "
                    "distances %.17g and %.17g; scale %g, %d in all\n",
                    (unsigned long long)round->seed, backend->name,
                    oj_difference_kind_name(d->kind), (int)d->input_row,
                    d->join_row_ours, d->join_row_reference, d->measure_ours,
                    d->measure_reference, round->place.scale,
                    (int)v.n_differences);
        }
        ck_assert_int_eq(v.n_differences, 0);
        n_pairs_seen += v.n_pairs;
        n_undecided_seen += v.n_undecided;
        n_rounding_seen += v.n_rows_proved;
        truth.undecided = NULL;
        oj_validation_free(&v);
        oj_matches_free(&out);
    }
    oj_matches_free(&truth);
}

/* Compares every reference with the truth on one random pair of layers. */
static void run_round(uint64_t seed)
{
    struct oj_flat_buf join = {0}, input = {0}, undisputed = {0};
    struct oj_flat join_view, input_view, undisputed_view;
    struct random_join round;
    int32_t *rank;
    state = round.seed = seed;
    round.place = pick_place();
    round.relation = pick_relation(&round.place);
    add_random_features(&join, &round.place, pick(4) ? 1 + pick(60) : pick(400),
                        pick(4));
    add_random_points(&input, &round.place, pick(200));
    join_view = oj_flat_buf_view(&join);
    input_view = oj_flat_buf_view(&input);
    rank = pick(2) ? random_ranks(join_view.n_features) : NULL;
    round.join = &join_view;
    round.rank = rank;
    compare(&round, &input_view, 0);
    if (round.relation.distance_to == OJ_TO_INTERIOR)
        n_disputed_seen +=
            copy_undisputed(&join_view, &input_view, &undisputed);
    undisputed_view = round.relation.distance_to == OJ_TO_INTERIOR
                          ? oj_flat_buf_view(&undisputed)
                          : input_view;
    compare(&round, &undisputed_view, 1);
    oj_free(rank);
    oj_flat_buf_free(&join);
    oj_flat_buf_free(&input);
    oj_flat_buf_free(&undisputed);
}

TEST(all_agree)
{
    const char *seed_text = getenv("OJ_TEST_SEED");
    const char *rounds_text = getenv("OJ_TEST_ROUNDS");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : 1;
    int n_rounds = rounds_text ? atoi(rounds_text) : N_ROUNDS;
    for (int i = 0; i < n_rounds; i++)
        run_round(seed + (uint64_t)i);
    printf("%d rounds, %lld pairs compared, %lld rows undecided by GEOS, "
           "%lld rounded by it, %lld points with another area left out\n",
           n_rounds, (long long)n_pairs_seen, (long long)n_undecided_seen,
           (long long)n_rounding_seen, (long long)n_disputed_seen);
    ck_assert(n_rounds < N_ROUNDS ||
              (n_pairs_seen > 100000 && n_undecided_seen == 0));
}

int main(void)
{
    tests_open("references, random");
    return tests_run();
}
