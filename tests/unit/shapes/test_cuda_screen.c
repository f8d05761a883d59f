/* Lines and polygons with lines and polygons: the backend cuda, which finds
 * pairs of boxes and decides most of them on a device, gives the answers of
 * cpu: random layers, large features, little memory, chunks of all sizes, all
 * devices.  And points with very many lines and polygons.  Skipped where no GPU
 * can be used.  Kind: property, degenerate, memory, large.
 * OGRJOIN_TEST_ROUNDS=n for more. */
#include "../random_layers.h"

#include "../run_device_tests.h"

#include <stdio.h>

static uint64_t seed;

static void compare(const char *what, const struct oj_matches *ours,
                    const struct oj_matches *truth)
{
    expect(ours->n_pairs == truth->n_pairs &&
               ours->n_matched == truth->n_matched,
           "seed %llu, %s: %lld pairs, not %lld", (unsigned long long)seed,
           what, (long long)ours->n_pairs, (long long)truth->n_pairs);
    for (int64_t row = 0; row < ours->n_rows; row++)
    {
        int64_t i = ours->offset[row];
        expect(i == truth->offset[row], "seed %llu, %s: row %d",
               (unsigned long long)seed, what, (int)row);
        for (; i < ours->offset[row + 1]; i++)
            expect(ours->join_row[i] == truth->join_row[i],
                   "seed %llu, %s: row %d is with %d, not %d",
                   (unsigned long long)seed, what, (int)row,
                   (int)ours->join_row[i], (int)truth->join_row[i]);
    }
}

static void compare_measures(const char *what, const struct oj_matches *ours,
                             const struct oj_matches *truth)
{
    compare(what, ours, truth);
    for (int64_t i = 0; i < ours->n_pairs; i++)
        expect(bits_of(ours->measure[i]) == bits_of(truth->measure[i]),
               "seed %llu, %s: pair %d is %a apart, not %a",
               (unsigned long long)seed, what, (int)i, ours->measure[i],
               truth->measure[i]);
}

/* The backend's answer; OJ_ERR_NOMEM goes back. */
static oj_status answer(const char *backend, const struct oj_flat *join_side,
                        const struct oj_flat *input,
                        const struct oj_relation *relation,
                        const struct oj_options *options,
                        struct oj_matches *out)
{
    struct oj_join *join = NULL;
    oj_status status =
        oj_join_open(join_side, relation, backend, options, &join, &error);
    if (status == OJ_OK)
        status = oj_join_batch(join, input, out, &error);
    if (status == OJ_OK && one_in(4)) /* what is kept is used again */
        status = oj_join_batch(join, input, out, &error);
    if (status == OJ_OK && strcmp(backend, "cuda") == 0 &&
        relation->op == OJ_OP_INTERSECTS && options->gpu_memory == 0 &&
        join_side->n_vertices > 0 && (input->part_kinds & OJ_PART_POINT) == 0)
        expect(strstr(oj_join_method(join, input), "on the GPU") != NULL,
               "seed %llu: %s", (unsigned long long)seed,
               oj_join_method(join, input));
    oj_join_close(join);
    return status;
}

static void check(const struct oj_flat *join_side, const struct oj_flat *input,
                  enum oj_op op, int64_t gpu_memory)
{
    struct oj_options options = {.n_threads = 1 + pick(4),
                                 .gpu_memory = gpu_memory,
                                 .gpu_batch = one_in(2) ? 1 + pick(40) : 0,
                                 .gpus = one_in(3) ? OJ_ALL_GPUS : 0};
    struct oj_relation relation = oj_relation_default();
    struct oj_matches truth = {0}, ours = {0};
    options.input_kinds = one_in(2) ? input->part_kinds : 0;
    relation.op = op;
    memcpy(relation.mask, one_in(2) ? "T********" : "FT*******", 10);
    must(answer("cpu", join_side, input, &relation, &options, &truth));
    must(answer("cuda", join_side, input, &relation, &options, &ours));
    compare(oj_op_get(op)->name, &ours, &truth);
    oj_matches_free(&truth);
    oj_matches_free(&ours);
}

static unsigned some_kinds(void)
{
    static const unsigned kinds[] = {
        OJ_PART_POLYGON, OJ_PART_POLYGON, OJ_PART_LINE,
        OJ_PART_LINE | OJ_PART_POLYGON,
        OJ_PART_POINT | OJ_PART_LINE | OJ_PART_POLYGON};
    return kinds[pick(5)];
}

struct screen_layers
{
    struct oj_flat_buf join_buf, input_buf;
    struct oj_flat join, input;
};

static void make_layers(struct screen_layers *l, int most)
{
    struct scene scene = pick_scene();
    memset(l, 0, sizeof *l);
    do
    {
        oj_flat_buf_free(&l->join_buf);
        oj_flat_buf_free(&l->input_buf);
        memset(l, 0, sizeof *l);
        add_join_features(&l->join_buf, &scene, 1 + pick(most), some_kinds(),
                          1);
        add_join_features(&l->input_buf, &scene, 1 + pick(most), some_kinds(),
                          1);
        l->join = oj_flat_buf_view(&l->join_buf);
        l->input = oj_flat_buf_view(&l->input_buf);
    } while (oj_flat_is_points(&l->join) || oj_flat_is_points(&l->input));
}

static void free_layers(struct screen_layers *l)
{
    oj_flat_buf_free(&l->join_buf);
    oj_flat_buf_free(&l->input_buf);
}

TEST(random_layers)
{
    int64_t n_rounds = rounds(14);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct screen_layers l;
        random_state = seed;
        make_layers(&l, one_in(5) ? 250 : 60);
        check(&l.join, &l.input, OJ_OP_INTERSECTS, 0);
        check(&l.join, &l.input, OJ_OP_BBOX, 0);
        /* GEOS takes its time over the others */
        if (l.join.n_features * l.input.n_features < 4000)
            check(&l.join, &l.input,
                  (enum oj_op)(OJ_OP_INTERSECTS +
                               pick(OJ_N_OPS - OJ_OP_INTERSECTS)),
                  0);
        free_layers(&l);
    }
}

/* Enough for the index alone, for some rows at a time, for none. */
TEST(little_memory)
{
    int64_t n_rounds = rounds(2);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct screen_layers l;
        random_state = seed;
        make_layers(&l, 250);
        for (int64_t bytes = 1 << 14; bytes < (int64_t)1 << 26; bytes *= 4)
            check(&l.join, &l.input, OJ_OP_INTERSECTS, bytes);
        free_layers(&l);
    }
}

/* A ring of n vertices around (x, y), ragged so that it meets others. */
static void add_ragged(struct oj_flat_buf *buf, int n, double x, double y,
                       double reach, int is_line)
{
    double *xy = oj_malloc(2 * n + 2, sizeof *xy);
    ck_assert_ptr_nonnull(xy);
    for (int i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * i / n;
        double r = reach * (0.9 + 0.1 * unit());
        xy[2 * i] = x + r * cos(angle);
        xy[2 * i + 1] = y + r * sin(angle);
    }
    xy[2 * n] = xy[0];
    xy[2 * n + 1] = xy[1];
    begin(buf);
    add_part(buf, is_line ? OJ_PART_LINE : OJ_PART_POLYGON);
    add_ring(buf, is_line ? n : n + 1, xy);
    end(buf);
    oj_free(xy);
}

/* Features of very different sizes, inside one another, too. */
TEST(large_features)
{
    static const int sizes[] = {4, 40, 400, 3000, 20000};
    int64_t n_rounds = rounds(2);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct oj_flat_buf a = {0}, b = {0};
        struct oj_flat join, input;
        random_state = seed;
        for (int i = 0; i < 60; i++)
        {
            add_ragged(&a, sizes[pick(5)], 100 * unit(), 100 * unit(),
                       1 + 40 * unit() * unit(), one_in(3));
            add_ragged(&b, sizes[pick(5)], 100 * unit(), 100 * unit(),
                       1 + 40 * unit() * unit(), one_in(3));
        }
        join = oj_flat_buf_view(&a);
        input = oj_flat_buf_view(&b);
        check(&join, &input, OJ_OP_INTERSECTS, 0);
        check(&input, &join, OJ_OP_INTERSECTS, 0);
        oj_flat_buf_free(&a);
        oj_flat_buf_free(&b);
    }
}

/* More features within reach of a point than one thread sorts, many of them at
 * one distance. */
TEST(long_rows)
{
    struct oj_flat_buf a = {0}, b = {0};
    struct oj_flat join, input;
    struct oj_options options = {0};
    struct oj_relation relations[5];
    seed = random_state = 12;
    for (int i = 0; i < 3000; i++)
    {
        double x = i % 3 == 0 ? 5.0 : 40 * unit();
        double y = i % 3 == 0 ? 5.0 : 40 * unit();
        if (one_in(2))
            add_square(&a, x, y, x + 1, y + 1);
        else
            add_line(&a, x, y, x + 1, y + 1);
    }
    for (int i = 0; i < 300; i++)
    {
        if (i % 10 == 0) /* where a third of the features begin */
            add_point(&b, 5.0, 5.0);
        else
            add_point(&b, pick(40), pick(40));
    }
    join = oj_flat_buf_view(&a);
    input = oj_flat_buf_view(&b);
    for (int i = 0; i < 5; i++)
    {
        relations[i] = oj_relation_default();
        relations[i].op = i < 2 ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
        relations[i].max_distance = i == 0 ? 3.0 : 60.0;
        relations[i].min_distance = i == 1 ? 1.0 : 0.0;
        relations[i].ties = OJ_TIES_ALL;
        relations[i].k = i < 3 ? 1 : i == 3 ? 8 : 40;
        if (i < 2)
            relations[i].ties = OJ_TIES_FIRST;
    }
    for (int i = 0; i < 5; i++)
    {
        struct oj_matches truth = {0}, ours = {0};
        must(answer("cpu", &join, &input, &relations[i], &options, &truth));
        must(answer("cuda", &join, &input, &relations[i], &options, &ours));
        ck_assert_int_gt(truth.n_pairs, 1000);
        compare_measures(i < 2 ? "dwithin" : "nearest, all ties", &ours,
                         &truth);
        oj_matches_free(&truth);
        oj_matches_free(&ours);
    }
    oj_flat_buf_free(&a);
    oj_flat_buf_free(&b);
}

int main(void)
{
    if (!device_tests_open("cuda_screen"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
