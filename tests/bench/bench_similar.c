/* Joins by similarity of a layer with itself, from arrays on the host to pairs
 * on the host: texts of the sizes and lengths that papers have, made by integer
 * arithmetic alone, each pair once; trajectories, in bundles of 1 to 50 that
 * take the same way, or each on its own (loners); and clustered vectors.
 *
 *   oj_bench_similar KIND [--option value]..
 *     KIND: songs, publications, titles, trajectories, loners, vectors
 *     --n N           rows (500,000, 100,000, 300,000, 17,621 twice, 100,000)
 *     --threshold T   tenths of the least similarity, or from-to: 9-2 (5)
 *     --tokens NAME   2grams
 *     --k K           nearest trajectories (10), vectors, texts (all)
 *     --ties T        of trajectories: first
 *     --max_distance D of trajectories: all within it instead of the nearest
 *     --distance NAME hausdorff_points
 *     --dimensions D  64
 *     --difference D  of vectors (0.1)
 *     --norm NAME     l2
 *     --centres N     of vectors (1,000)
 *     --file FILE     gets the vectors as raw doubles, for other programs
 *     --backend NAME  cuda
 *     --gpus LIST     0
 *     --threads N     all
 *     --repeat N      3
 *
 * The vectors are of some centres with coordinates k / 2^20 below 1, and
 * offsets that are sums of twelve uniform numbers, of standard deviation 0.02
 * in the first dimension and 0.97 times that of the one before in the others.
 *
 * Prints for each threshold a line "SIMILAR ..": seconds of the index and of
 * the join in the first run and in the fastest, processor seconds of that, the
 * pairs, and a checksum of them that does not depend on the backend. */
#include "bench_answer.h"
#include "bench_gpu.h"
#include "nycgen.h"

#include "../../flatten/arrays/oj_flat.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_parallel.h"
#include "../../flatten/text/oj_token_sets.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
    SONGS,
    PUBLICATIONS,
    TITLES,
    TRAJECTORIES,
    LONERS,
    VECTORS,
    N_KINDS
};

enum
{
    N_WORDS = 40000,
    MOST_TEXT = 512,
    MOST_TITLE = 248,
    COPIES = 5,
    BUNDLE = 50,
    N_WALKS = 17621,
    N_VERTICES = 23667828, /* of so many walks */
    DEVIATION = 20972,     /* 0.02 of 2^20 */
    UNIFORM_MIDDLE = 6 * 65535
};

static const char *const kinds[N_KINDS] = {
    "songs", "publications", "titles", "trajectories", "loners", "vectors"};
static const int64_t rows_of[N_KINDS] = {500000,  100000,  300000,
                                         N_WALKS, N_WALKS, 100000};

static struct oj_error error;

static void must(oj_status status)
{
    if (status == OJ_OK)
        return;
    fprintf(stderr, "oj_bench_similar: %s\n", error.message);
    exit(1);
}

/* --- texts ---------------------------------------------------------------- */

/* Word r comes up in proportion to 1 / (r + 2). */
static uint64_t before[N_WORDS + 1];

static void make_words(void)
{
    for (uint64_t r = 0; r < N_WORDS; r++)
        before[r + 1] = before[r] + (UINT64_C(1) << 32) / (r + 2);
}

static uint64_t pick_word(uint64_t hash)
{
    uint64_t at = hash % before[N_WORDS], low = 0, high = N_WORDS;
    while (high - low > 1)
    {
        uint64_t middle = (low + high) / 2;
        if (before[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* One to four syllables, and a space before. */
static int put_word(uint64_t word, char *to)
{
    static const char first[] = "btslmrnkdpgfchvwj";
    static const char second[] = "aeiouaeioy";
    static const char third[] = "nrslt";
    uint64_t hash = nyc_hash(7, 1, word);
    int n = 0, n_syllables = 1 + (int)(hash % 7 + hash / 7 % 3) / 3;
    to[n++] = ' ';
    for (hash /= 32; n_syllables > 0; n_syllables--, hash /= 1700)
    {
        to[n++] = first[hash % 17];
        to[n++] = second[hash / 17 % 10];
        if (hash / 170 % 10 < 4)
            to[n++] = third[hash / 170 % 5];
    }
    return n;
}

static int put_words(uint64_t stream, uint64_t row, int first, int n_words,
                     int most, char *text)
{
    int n = 0;
    for (int w = first; w < first + n_words && n < most; w++)
        n += put_word(pick_word(nyc_hash(stream, (uint64_t)w + 9, row)),
                      text + n);
    return n < most ? n : most;
}

/* A letter is put in, left out or replaced. */
static int edit(uint64_t hash, char *text, int n)
{
    int at = (int)(hash / 4 % (uint64_t)n), how = (int)(hash % 3);
    char letter = (char)('a' + hash / 4096 % 26);
    if (how == 1)
    {
        memmove(text + at, text + at + 1, (size_t)(n - at - 1));
        return n - 1;
    }
    if (how == 0)
        memmove(text + at + 1, text + at, (size_t)(n++ - at));
    text[at] = letter;
    return n;
}

static int put_text(int kind, uint64_t row, char *text)
{
    uint64_t hash = nyc_hash(11, (uint64_t)kind, row);
    int n, n_words = 1;
    if (kind == SONGS)
        return put_words(1, row, 0, 3 + (int)(hash % 3 + hash / 3 % 5),
                         MOST_TITLE, text);
    if (kind == TITLES)
    {
        for (; n_words < 60 && hash % 12 != 0; n_words++)
            hash = nyc_mix(hash);
        return put_words(2, row, 0, n_words, MOST_TITLE, text);
    }
    hash = nyc_hash(11, 1, row / COPIES);
    n = put_words(3, row / COPIES, 0,
                  6 + (int)(hash % 20) + 3 * (1 + (int)(hash / 20 % 6)),
                  MOST_TEXT - 64, text);
    hash = nyc_hash(12, 1, row);
    for (uint64_t i = 0; row % COPIES > 0 && i <= hash % 5; i++)
        n = edit(nyc_hash(13 + i, 1, row), text, n);
    return n;
}

static void make_texts(int kind, int64_t n, struct oj_texts *out)
{
    int64_t *offset = oj_malloc(n + 1, sizeof *offset);
    char *bytes = oj_malloc(n + 1, MOST_TEXT);
    int64_t at = 0;
    if (offset == NULL || bytes == NULL)
        must(oj_fail_nomem(&error, n, MOST_TEXT));
    make_words();
    for (int64_t row = 0; row < n; row++)
    {
        offset[row] = at;
        at += put_text(kind, (uint64_t)row, bytes + at);
    }
    offset[n] = at;
    *out = (struct oj_texts){n, offset, bytes};
}

/* --- trajectories --------------------------------------------------------- */

/* Rows of one bundle take one route, each in its own way; with is_alone every
 * row has a route of its own. */
static uint64_t route_of(uint64_t row, int is_alone)
{
    uint64_t many = 1 + nyc_hash(22, 1, row / BUNDLE) % BUNDLE;
    return is_alone ? row : row - row % BUNDLE % many;
}

static int64_t steps_of(uint64_t route)
{
    uint64_t hash = nyc_hash(21, 1, route), long_ones = hash >> 20;
    int64_t n = 2 + (int64_t)(hash % 600);
    for (int i = 0; i < 7 && (long_ones & 1) != 0; i++, long_ones >>= 1)
        n *= 2;
    return n;
}

static int64_t length_of(uint64_t row, int is_alone)
{
    int64_t share = 128 + (int64_t)(nyc_hash(26, 1, row) % 256);
    int64_t n = steps_of(route_of(row, is_alone)) * share / 256;
    return n < 2 ? 2 : n;
}

struct route
{
    uint64_t seed, n_steps;
    int64_t left, x, y, turn;
};

/* Straight on, as a rule; back where the city ends. */
static void go_on(struct route *route)
{
    static const int step[8][2] = {{30, 0},  {21, 21},   {0, 30},  {-21, 21},
                                   {-30, 0}, {-21, -21}, {0, -30}, {21, -21}};
    uint64_t hash = nyc_hash(25, route->seed, route->n_steps++);
    const int *by;
    if (hash % 16 == 0)
        route->turn += hash / 16 % 2 == 0 ? 1 : -1;
    by = step[route->turn & 7];
    if ((route->x < route->left && by[0] < 0) ||
        (route->x > route->left + 130000 && by[0] > 0) ||
        (route->y < 0 && by[1] < 0) || (route->y > 150000 && by[1] > 0))
        by = step[(route->turn += 4) & 7];
    route->x += by[0];
    route->y += by[1];
}

static struct route start_route(uint64_t seed)
{
    uint64_t hash = nyc_hash(23, 1, seed);
    int64_t left = hash / 7 % 50 == 0 ? 3000000 : 0; /* far away */
    struct route route = {seed,
                          0,
                          left,
                          left + (int64_t)(hash % 130000),
                          (int64_t)(hash / 130000 % 150000),
                          (int64_t)(hash >> 60)};
    return route;
}

/* n vertices at equal steps along most of the route, a little aside; one row in
 * eight leaves it for a while. */
static void put_walk(uint64_t row, int is_alone, int64_t n, double *x,
                     double *y)
{
    struct route route = start_route(route_of(row, is_alone));
    uint64_t hash = nyc_hash(27, 1, row);
    int64_t steps = steps_of(route.seed);
    int64_t first = steps * (int64_t)(hash % 32) / 512;
    int64_t last = steps - steps * (int64_t)(hash / 32 % 32) / 512;
    for (int64_t i = 0; i < n; i++)
    {
        uint64_t noise = nyc_hash(24, row, (uint64_t)i);
        int64_t at = first + (last - first) * i / n, aside = 0;
        while ((int64_t)route.n_steps < at)
            go_on(&route);
        if (hash / 1024 % 8 == 0 && i > n / 3 && i < n / 2)
            aside = i - n / 3 < n / 2 - i ? i - n / 3 : n / 2 - i;
        x[i] = (double)(route.x + aside * 8 + (int64_t)(noise % 64));
        y[i] = (double)(route.y - aside * 8 + (int64_t)(noise / 64 % 64));
    }
}

/* As many vertices as wanted: what is missing is spread over all. */
static void make_walks(int64_t n, int is_alone, struct oj_flat_buf *buf)
{
    int64_t wanted = n * N_VERTICES / N_WALKS, missing = wanted;
    for (int64_t row = 0; row < n; row++)
        missing -= length_of((uint64_t)row, is_alone);
    for (int64_t row = 0; row < n; row++)
    {
        int64_t part = missing / (n - row);
        int64_t m = length_of((uint64_t)row, is_alone);
        double *x, *y;
        part = m + part < 2 ? 2 - m : part;
        missing -= part;
        m += part;
        must(oj_flat_buf_begin(buf, row, &error));
        must(oj_flat_buf_part(buf, OJ_PART_LINE, &error));
        must(oj_flat_buf_ring(buf, &error));
        must(oj_flat_buf_vertices(buf, m, &x, &y, &error));
        put_walk((uint64_t)row, is_alone, m, x, y);
        must(oj_flat_buf_end(buf, &error));
    }
}

/* --- vectors -------------------------------------------------------------- */

/* splitmix64, of two numbers. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a << 32 | b) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static uint64_t n_centres;

static double coordinate_of(uint64_t row, uint64_t dimension, int64_t scale)
{
    uint64_t centre = mix(row, 1u << 20) % n_centres;
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

struct vector_maker
{
    double *value;
    int64_t n_dimensions;
};

static oj_status put_vector(int64_t row, int thread, void *user,
                            struct oj_error *err)
{
    struct vector_maker *m = user;
    int64_t scale = 65536;
    (void)thread;
    (void)err;
    for (int64_t j = 0; j < m->n_dimensions; j++, scale = scale * 97 / 100)
        m->value[row * m->n_dimensions + j] =
            coordinate_of((uint64_t)row, (uint64_t)j, scale);
    return OJ_OK;
}

/* --- runs ----------------------------------------------------------------- */

struct bench_similar
{
    struct oj_flat side;
    struct oj_relation relation;
    struct oj_options options;
    const char *kind, *backend, *tokens;
    int64_t repeat;
};

static void run(const struct bench_similar *b)
{
    double first[2] = {0, 0}, least[2] = {0, 0}, processor = 0.0;
    int64_t n_candidates = 0;
    struct bench_answer answer = {0};
    struct oj_matches matches = {0};
    for (int64_t i = 0; i < b->repeat; i++)
    {
        struct oj_join *join;
        double start = oj_clock_seconds(), opened, end, clock_start;
        clock_start = (double)clock() / CLOCKS_PER_SEC;
        must(oj_join_open(&b->side, &b->relation, b->backend, &b->options,
                          &join, &error));
        opened = oj_clock_seconds();
        must(oj_join_batch(join, &b->side, &matches, &error));
        end = oj_clock_seconds();
        if (i == 0)
        {
            first[0] = opened - start;
            first[1] = end - opened;
            printf("method: %s %s\n", oj_join_method(join, &b->side),
                   oj_join_reason(join));
            bench_answer_add(&answer, &matches, 0, &b->side, &b->side);
        }
        if (i == 0 || end - start < least[0] + least[1])
        {
            least[0] = opened - start;
            least[1] = end - opened;
            processor = (double)clock() / CLOCKS_PER_SEC - clock_start;
            n_candidates = oj_join_stats(join)->n_candidates;
        }
        oj_join_close(join);
    }
    printf("SIMILAR kind=%s n=%" PRId64 " tokens=%s tenths=%" PRId64
           " backend=%s first_s=%.4f+%.4f least_s=%.4f+%.4f total_s=%.4f "
           "processor_s=%.4f candidates=%" PRId64 " pairs=%" PRId64
           " sum=%.6f checksum=%016" PRIx64 "\n",
           b->kind, b->side.n_features, b->tokens,
           b->relation.similar[0].numerator, b->backend, first[0], first[1],
           least[0], least[1], least[0] + least[1], processor, n_candidates,
           answer.n_pairs, answer.sum_distance, answer.checksum);
    fflush(stdout);
    oj_matches_free(&matches);
}

static void join_texts(struct bench_similar *b, int kind, int64_t n,
                       const char *threshold)
{
    struct oj_texts texts;
    struct oj_dictionary *dictionary;
    struct oj_token_sets_buf sets = {0};
    struct oj_token_sets view;
    struct oj_flat_buf buf = {0};
    struct oj_token_rules rules = {0};
    int from = atoi(threshold), end = from;
    double start = oj_clock_seconds();
    if (strchr(threshold, '-') != NULL)
        end = atoi(strchr(threshold, '-') + 1);
    must(oj_choice_read("--", "tokens", OJ_TOKEN_NAMES, b->tokens,
                        &rules.tokens, &error));
    make_texts(kind, n, &texts);
    must(oj_token_dictionary_make(&texts, NULL, &rules, b->options.n_threads,
                                  NULL, &dictionary, &sets, &error));
    for (int64_t i = 0; i < n; i++)
        must(oj_flat_buf_add_null(&buf, i, &error));
    view = oj_token_sets_view(&sets);
    printf("made in %.2f s: %.2f tokens a row\n", oj_clock_seconds() - start,
           (double)view.offset[n] / (double)n);
    b->side = oj_flat_buf_view(&buf);
    b->side.texts = &view;
    b->side.n_texts = 1;
    b->relation.op = OJ_OP_SIMILAR;
    if (b->relation.k < OJ_EVERY_PAIR)
        b->relation.exclude_self = 1;
    else
        b->relation.unordered_pairs = 1;
    b->relation.n_similar = 1;
    for (; from >= end; from--)
    {
        b->relation.similar[0] =
            (struct oj_text_condition){OJ_TEXT_JACCARD, from, 10};
        run(b);
    }
    oj_token_dictionary_free(dictionary);
    oj_token_sets_free(&sets);
    oj_flat_buf_free(&buf);
    oj_free((void *)(uintptr_t)texts.offset);
    oj_free((void *)(uintptr_t)texts.bytes);
}

static void join_walks(struct bench_similar *b, int64_t n, int is_alone)
{
    struct oj_flat_buf buf = {0};
    double start = oj_clock_seconds();
    make_walks(n, is_alone, &buf);
    b->side = oj_flat_buf_view(&buf);
    printf("made in %.2f s: %" PRId64 " vertices\n", oj_clock_seconds() - start,
           b->side.n_vertices);
    b->relation.exclude_self = 1;
    b->options.input_kinds = OJ_PART_LINE;
    run(b);
    oj_flat_buf_free(&buf);
}

static void join_vectors(struct bench_similar *b, int64_t n,
                         int64_t n_dimensions, const char *path)
{
    struct vector_maker m = {oj_malloc(n, (size_t)n_dimensions * 8),
                             n_dimensions};
    struct oj_flat_buf buf = {0};
    double start = oj_clock_seconds();
    int n_threads = b->options.n_threads;
    FILE *file = path[0] != '\0' ? fopen(path, "wb") : NULL;
    if (m.value == NULL)
        must(oj_fail_nomem(&error, n, (size_t)n_dimensions * 8));
    n_threads = n_threads > 0 ? n_threads : oj_cpu_count();
    must(oj_parallel_try(n_threads, n, 64, put_vector, &m, &error));
    if (file != NULL)
    {
        fwrite(m.value, (size_t)n_dimensions * 8, (size_t)n, file);
        fclose(file);
    }
    for (int64_t i = 0; i < n; i++)
        must(oj_flat_buf_add_null(&buf, i, &error));
    printf("made in %.2f s\n", oj_clock_seconds() - start);
    b->side = oj_flat_buf_view(&buf);
    b->side.vectors = (struct oj_vectors){n_dimensions, m.value};
    b->relation.op = OJ_OP_SIMILAR;
    b->relation.exclude_self = 1;
    b->relation.vector.is_asked = 1;
    run(b);
    oj_flat_buf_free(&buf);
    oj_free(m.value);
}

static const char *option(int argc, char **argv, const char *name,
                          const char *usual)
{
    for (int i = 2; i + 1 < argc; i += 2)
    {
        if (strncmp(argv[i], "--", 2) == 0 && strcmp(argv[i] + 2, name) == 0)
            return argv[i + 1];
    }
    return usual;
}

int main(int argc, char **argv)
{
    struct bench_similar b = {.relation = oj_relation_default()};
    int kind = 0, distance = OJ_DISTANCE_HAUSDORFF_POINTS, norm = 0;
    int64_t n;
    while (argc > 1 && kind < N_KINDS && strcmp(kinds[kind], argv[1]) != 0)
        kind++;
    if (argc < 2 || argc % 2 != 0 || kind == N_KINDS)
    {
        fprintf(stderr, "oj_bench_similar "
                        "songs|publications|titles|trajectories|loners|vectors "
                        "[--option value]..\n");
        return 1;
    }
    b.kind = kinds[kind];
    b.backend = option(argc, argv, "backend", "cuda");
    b.tokens = option(argc, argv, "tokens", "2grams");
    b.repeat = atoll(option(argc, argv, "repeat", "3"));
    b.options.n_threads = atoi(option(argc, argv, "threads", "0"));
    b.options.gpus = bench_gpu_list(option(argc, argv, "gpus", "0"));
    n = atoll(option(argc, argv, "n", "0"));
    n = n > 0 ? n : rows_of[kind];
    b.relation.k = atoll(option(
        argc, argv, "k", kind == TRAJECTORIES || kind == LONERS ? "10" : "0"));
    if (b.relation.k == 0)
        b.relation.k = OJ_EVERY_PAIR;
    if (kind == VECTORS)
    {
        must(oj_choice_read("--", "norm", "l2|l1|linf|cosine",
                            option(argc, argv, "norm", "l2"), &norm, &error));
        b.relation.vector.norm = (enum oj_vector_norm)norm;
        b.relation.vector.max_difference =
            atof(option(argc, argv, "difference", "0.1"));
        n_centres = (uint64_t)atoll(option(argc, argv, "centres", "1000"));
        join_vectors(&b, n, atoll(option(argc, argv, "dimensions", "64")),
                     option(argc, argv, "file", ""));
        return 0;
    }
    if (kind < TRAJECTORIES)
    {
        join_texts(&b, kind, n, option(argc, argv, "threshold", "5"));
        return 0;
    }
    must(oj_choice_read("--", "distance",
                        "least|hausdorff|directed_hausdorff|hausdorff_points|"
                        "frechet",
                        option(argc, argv, "distance", "hausdorff_points"),
                        &distance, &error));
    b.relation.distance = (enum oj_distance_kind)distance;
    if (strcmp(option(argc, argv, "ties", "first"), "all") == 0)
        b.relation.ties = OJ_TIES_ALL;
    b.relation.max_distance = atof(option(argc, argv, "max_distance", "inf"));
    if (b.relation.max_distance < INFINITY)
        b.relation.op = OJ_OP_DWITHIN;
    join_walks(&b, n, kind == LONERS);
    return 0;
}
