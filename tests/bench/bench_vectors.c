/* Times joins of near vectors in memory, in processor seconds:
 *
 *   bench_vectors ROWS DIMENSIONS MOST [K] [FILE]
 *
 * of ROWS clustered vectors with themselves, each pair twice, within the l2
 * difference MOST; with K above 0 the K nearest.  FILE: gets the vectors as raw
 * doubles, for other programs.
 *
 * The vectors are made of integers, so that they are the same everywhere: of
 * 1,000 centres with coordinates k / 2^20 below 1, offsets that are sums of
 * twelve uniform numbers, of standard deviation 0.02 in the first dimension and
 * 0.97 times that of the one before in the others. */
#include "../../algs/engine/oj_join.h"
#include "../../flatten/base/oj_array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum
{
    N_CENTRES = 1000,
    DEVIATION = 20972, /* 0.02 of 2^20 */
    UNIFORM_MIDDLE = 6 * 65535
};

/* splitmix64, of two numbers. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a << 32 | b) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static double coordinate_of(uint64_t row, uint64_t dimension, int64_t scale)
{
    uint64_t centre = mix(row, 1u << 20) % N_CENTRES;
    int64_t k = (int64_t)(mix(centre, (1u << 21) + dimension) >> 44);
    int64_t offset = -UNIFORM_MIDDLE;
    for (uint64_t i = 0; i < 3; i++)
    {
        uint64_t bits = mix(row, (1u << 22) + 3 * dimension + i);
        for (int j = 0; j < 4; j++, bits >>= 16)
            offset += (int64_t)(bits & 65535);
    }
    offset = offset * scale / 65536 * DEVIATION / 65536;
    return (double)(k + offset) / (double)(1 << 20);
}

static void fill(double *value, int64_t n, int64_t n_dimensions)
{
    int64_t scale = 65536;
    for (int64_t j = 0; j < n_dimensions; j++, scale = scale * 97 / 100)
    {
        for (int64_t i = 0; i < n; i++)
            value[i * n_dimensions + j] =
                coordinate_of((uint64_t)i, (uint64_t)j, scale);
    }
}

static double processor_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static oj_status time_join(const struct oj_flat *layer,
                           const struct oj_relation *relation,
                           struct oj_error *err)
{
    const struct oj_options options = {.n_threads = 1};
    struct oj_join *join = NULL;
    struct oj_matches out = {0};
    double start = processor_seconds(), built, done, sum = 0.0;
    oj_status status =
        oj_join_open(layer, relation, "cpu", &options, &join, err);
    built = processor_seconds();
    if (status == OJ_OK)
        status = oj_join_batch(join, layer, &out, err);
    done = processor_seconds();
    for (int64_t i = 0; status == OJ_OK && i < out.n_entries; i++)
        sum += out.join_row[i] >= 0 ? out.measure[i] : 0.0;
    printf("%lld pairs, %.2f of each row, sum of differences %.6f, %lld "
           "measured: %.3f s, of which %.3f s index\n",
           (long long)out.n_pairs,
           (double)out.n_pairs / (double)layer->n_features, sum,
           join != NULL ? (long long)oj_join_stats(join)->n_candidates : 0LL,
           done - start, built - start);
    oj_join_close(join);
    oj_matches_free(&out);
    return status;
}

int main(int argc, char **argv)
{
    int64_t n = argc > 3 ? atoll(argv[1]) : 0,
            d = argc > 3 ? atoll(argv[2]) : 0;
    int64_t k = argc > 4 ? atoll(argv[4]) : 0;
    struct oj_relation relation = oj_relation_default();
    struct oj_flat_buf buf = {0};
    struct oj_flat layer;
    struct oj_error err = {OJ_OK, ""};
    double *value = oj_malloc(n * d, sizeof *value);
    oj_status status = OJ_OK;
    if (n < 1 || d < 1 || d > OJ_MOST_DIMENSIONS || value == NULL)
    {
        fprintf(stderr, "bench_vectors ROWS DIMENSIONS MOST [K] [FILE]\n");
        return 1;
    }
    fill(value, n, d);
    if (argc > 5)
    {
        FILE *file = fopen(argv[5], "wb");
        if (file == NULL ||
            fwrite(value, (size_t)d * sizeof *value, (size_t)n, file) !=
                (size_t)n ||
            fclose(file) != 0)
            return 1;
    }
    for (int64_t i = 0; status == OJ_OK && i < n; i++)
        status = oj_flat_buf_add_null(&buf, i, &err);
    layer = oj_flat_buf_view(&buf);
    layer.vectors = (struct oj_vectors){d, value};
    relation.op = OJ_OP_SIMILAR;
    relation.k = k > 0 ? k : OJ_EVERY_PAIR;
    relation.exclude_self = 1;
    relation.vector.is_asked = 1;
    relation.vector.max_difference = atof(argv[3]);
    if (status == OJ_OK)
        status = time_join(&layer, &relation, &err);
    if (status != OJ_OK)
        fprintf(stderr, "%s\n", err.message);
    oj_flat_buf_free(&buf);
    oj_free(value);
    return status != OJ_OK;
}
