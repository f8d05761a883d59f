/* No device memory leaks, whatever fails. Each allocation of device memory or
 * pinned memory, each creation of a stream or event, and each allocation in the
 * module fails in turn. The join then ends with "out of memory", or has the
 * answer of the backend cpu. After it is closed, nothing is allocated. Needs
 * the emulated device; skipped on others.
 * Kind: memory. */
#include "../references.h"

#include "../../cuda_host/host_held.h"
#include "../../gpu/gpu_resident.h"
#include "../pair_counts.h"
#include "../random_columns.h"
#include "../random_numbers.h"
#include "../run_device_tests.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const struct gpu_resident *on_gpu;

static void (*fail_at)(int64_t, int64_t);
static int64_t (*takings)(void);
static int64_t (*pinned)(void);
static int64_t (*held)(char[OJ_HOST_HELD_TEXT]);
static int64_t (*module_fail_at)(int64_t); /* makes an allocation in the module
                                              fail */

/* Finds the functions of the emulated device. Returns 0 if the module is for
 * real devices. */
static int find_emulator(void)
{
    void *library = dlopen(getenv("OGRJOIN_CUDA_MODULE"), RTLD_NOW);
    if (library == NULL)
        return 0;
    *(void **)&fail_at = dlsym(library, "oj_host_fail_at");
    *(void **)&takings = dlsym(library, "oj_host_allocations");
    *(void **)&pinned = dlsym(library, "oj_host_pinned");
    *(void **)&held = dlsym(library, "oj_host_held");
    *(void **)&module_fail_at = dlsym(library, "oj_alloc_fail_at");
    return fail_at != NULL && takings != NULL && pinned != NULL &&
           held != NULL && module_fail_at != NULL;
}

/* --- joins ---------------------------------------------------------------- */

enum layer
{
    POINTS,
    OTHER_POINTS,
    POLYGONS,
    MIXED, /* lines and polygons */
    N_LAYERS
};

static struct oj_flat_buf layers[N_LAYERS];

static void make_layers(void)
{
    random_state = 7;
    for (int i = 0; i < 80; i++)
    {
        add_point(&layers[POINTS], pick(60), pick(60));
        add_point(&layers[OTHER_POINTS], pick(60), pick(60) + 0.5 * pick(2));
    }
    for (int i = 0; i < 20; i++)
    {
        double x = pick(50), y = pick(50);
        add_square(&layers[POLYGONS], x, y, x + 5.0 + pick(9), y + 7.0);
        add_square(&layers[MIXED], y, x, y + 5.0, x + 6.0);
        add_line(&layers[MIXED], pick(50), pick(50), pick(50), pick(50));
    }
}

struct memory_trial
{
    const char *name, *backend;
    enum layer join, input;
    enum oj_op op;
    double reach;
    int64_t k;
    enum oj_distance_to distance_to;
    int counts; /* 1: pairs are counted, not stored */
};

static const struct memory_trial trials[] = {
    {"nearest polygon", "cuda", POLYGONS, POINTS, OJ_OP_NEAREST, INFINITY, 1,
     OJ_TO_INTERIOR, 0},
    {"nearest boundary", "cuda", POLYGONS, POINTS, OJ_OP_NEAREST, 9.0, 1,
     OJ_TO_BOUNDARY, 0},
    {"three nearest", "cuda", MIXED, POINTS, OJ_OP_NEAREST, 20.0, 3,
     OJ_TO_INTERIOR, 0},
    {"nearest point", "cuda", OTHER_POINTS, POINTS, OJ_OP_NEAREST, INFINITY, 1,
     OJ_TO_INTERIOR, 0},
    {"points within a distance", "cuda", OTHER_POINTS, POINTS, OJ_OP_DWITHIN,
     3.0, 1, OJ_TO_INTERIOR, 0},
    {"points counted", "cuda", OTHER_POINTS, POINTS, OJ_OP_DWITHIN, 3.0, 1,
     OJ_TO_INTERIOR, 1},
    {"equal points", "cuda", OTHER_POINTS, POINTS, OJ_OP_EQUALS, INFINITY, 1,
     OJ_TO_INTERIOR, 0},
    {"points in polygons", "cuda", POLYGONS, POINTS, OJ_OP_WITHIN, INFINITY, 1,
     OJ_TO_INTERIOR, 0},
    {"points in polygons counted", "cuda", POLYGONS, POINTS, OJ_OP_INTERSECTS,
     INFINITY, 1, OJ_TO_INTERIOR, 1},
    {"points in envelopes", "cuda", POLYGONS, POINTS, OJ_OP_BBOX, INFINITY, 1,
     OJ_TO_INTERIOR, 0},
    {"lines and polygons", "cuda", MIXED, MIXED, OJ_OP_INTERSECTS, INFINITY, 1,
     OJ_TO_INTERIOR, 0},
    {"polygons in polygons", "cuda", POLYGONS, MIXED, OJ_OP_COVEREDBY, INFINITY,
     1, OJ_TO_INTERIOR, 0},
    {"quadtree, three nearest", "cuda_gpics_quadtree", OTHER_POINTS, POINTS,
     OJ_OP_NEAREST, INFINITY, 3, OJ_TO_INTERIOR, 0},
    {"k-d tree, nearest", "cuda_gpics_kdtree_single", OTHER_POINTS, POINTS,
     OJ_OP_NEAREST, INFINITY, 1, OJ_TO_INTERIOR, 0},
    {"k-d tree, points in envelopes", "cuda_gpics_kdtree", POINTS, POLYGONS,
     OJ_OP_BBOX, INFINITY, 1, OJ_TO_INTERIOR, 0},
    {"quadrants", "cuda_quadrant", POLYGONS, POINTS, OJ_OP_NEAREST, 9.0, 1,
     OJ_TO_BOUNDARY, 0},
};

struct memory_answer
{
    struct oj_matches matches;
    int64_t *count, n_pairs; /* for counted pairs: count of each feature */
    int is_there;
};

static void free_answer(struct memory_answer *answer)
{
    oj_matches_free(&answer->matches);
    oj_free(answer->count);
}

static void count_pairs(const struct oj_matches *m, struct memory_answer *out)
{
    out->n_pairs = m->n_pairs;
    for (int64_t row = 0; row < m->n_rows; row++)
    {
        for (int64_t i = oj_matches_first(m, row); i < oj_matches_end(m, row);
             i++)
            out->count[m->join_row[i]] += m->join_row[i] >= 0;
    }
}

static oj_status join_or_count(const struct memory_trial *t,
                               struct oj_join *join, struct memory_answer *out)
{
    const struct oj_flat input = oj_flat_buf_view(&layers[t->input]);
    const int64_t n = layers[t->join].n_features;
    oj_status status;
    if (!t->counts)
        return oj_join_batch(join, &input, &out->matches, &error);
    if (out->count == NULL)
        out->count = oj_calloc(n, sizeof *out->count);
    ck_assert_ptr_nonnull(out->count);
    memset(out->count, 0, (size_t)n * sizeof *out->count);
    status = count_pairs_by_feature(join, &input, n, out->count, &out->n_pairs,
                                    &error);
    if (status != OJ_ERR_UNSUPPORTED)
        return status;
    /* the CPU joins */
    status = oj_join_batch(join, &input, &out->matches, &error);
    if (status == OJ_OK)
        count_pairs(&out->matches, out);
    return status;
}

/* Opens a join, joins and closes it. A batch that failed is joined again, with
 * enough memory. Returns a status. */
static oj_status run_once(const struct memory_trial *t, const char *backend,
                          struct memory_answer *out)
{
    const struct oj_options options = {.n_threads = 1};
    const struct oj_flat side = oj_flat_buf_view(&layers[t->join]);
    struct oj_relation relation = oj_relation_default();
    struct oj_join *join = NULL;
    oj_status status;
    relation.op = t->op;
    relation.max_distance = t->reach;
    relation.k = t->k;
    relation.distance_to = t->distance_to;
    status = oj_join_open(&side, &relation, backend, &options, &join, &error);
    if (status == OJ_OK)
        status = join_or_count(t, join, out);
    if (join != NULL && status != OJ_OK)
    {
        fail_at(1, 0);
        module_fail_at(0);
        must(join_or_count(t, join, out));
        out->is_there = 1;
    }
    else
        out->is_there = status == OJ_OK;
    oj_join_close(join);
    return status;
}

static void assert_equal_answers(const struct memory_trial *t,
                                 const struct memory_answer *a,
                                 const struct memory_answer *b)
{
    const struct oj_matches *m = &a->matches, *truth = &b->matches;
    if (t->counts)
    {
        ck_assert_int_eq(a->n_pairs, b->n_pairs);
        ck_assert_mem_eq(a->count, b->count,
                         (size_t)layers[t->join].n_features * sizeof *a->count);
        return;
    }
    ck_assert_int_eq(m->n_pairs, truth->n_pairs);
    ck_assert_int_eq(m->n_entries, truth->n_entries);
    for (int64_t i = 0; i < m->n_entries; i++)
        expect(m->join_row[i] == truth->join_row[i] &&
                   (m->join_row[i] < 0 ||
                    bits_of(m->measure[i]) == bits_of(truth->measure[i])),
               "%s: entry %d", t->name, (int)i);
}

static void must_hold_nothing(const struct memory_trial *t, const char *what,
                              int64_t n)
{
    char text[OJ_HOST_HELD_TEXT];
    ck_assert_msg(held(text) == 0, "%s, %s %lld fails: left are %s", t->name,
                  what, (long long)n, text);
}

/* --- failing allocations -------------------------------------------------- */

enum way
{
    /* an allocation and the next one fail, because the module tries again
     * once */
    ONCE,
    ON, /* one allocation and all later ones fail */
    OWN /* one allocation in the module's code fails */
};

static const char *const ways[] = {"takings at", "all takings from",
                                   "allocation"};

/* Makes every allocation fail in turn. Returns the number of failures. */
static int64_t fail_in_turn(const struct memory_trial *t, enum way way,
                            const struct memory_answer *truth)
{
    int64_t n_failed = 0;
    int is_reached = 1;
    for (int64_t n = 1; is_reached; n++)
    {
        struct memory_answer out = {0};
        oj_status status;
        if (way == OWN)
            module_fail_at(n);
        else
            fail_at(n, way == ONCE ? 2 : INT32_MAX);
        status = run_once(t, t->backend, &out);
        is_reached = status != OJ_OK ||
                     (way == OWN ? module_fail_at(0) : takings()) >= n;
        module_fail_at(0);
        fail_at(1, 0);
        ck_assert_msg(status == OJ_OK || status == OJ_ERR_NOMEM,
                      "%s, %s %lld: %s", t->name, ways[way], (long long)n,
                      error.message);
        if (out.is_there)
            assert_equal_answers(t, &out, truth);
        n_failed += status != OJ_OK;
        must_hold_nothing(t, ways[way], n);
        free_answer(&out);
    }
    return n_failed;
}

/* Tests all ways of failing. Pinned memory that a join keeps must suffice for
 * the later joins. */
static void try_all(const struct memory_trial *t)
{
    struct memory_answer truth = {0}, ours = {0};
    int64_t n_pinned, n_allocations;
    must(run_once(t, "cpu", &truth));
    fail_at(1, 0);
    must(run_once(t, t->backend, &ours));
    n_allocations = takings();
    assert_equal_answers(t, &ours, &truth);
    n_pinned = pinned();
    printf("%s: %d takings", t->name, (int)n_allocations);
    for (enum way way = ONCE; way <= OWN; way++)
        printf(", %d", (int)fail_in_turn(t, way, &truth));
    printf(" failed\n");
    ck_assert_int_gt(n_allocations, 0);
    ck_assert_int_le(pinned(), n_pinned);
    free_answer(&ours);
    free_answer(&truth);
}

TEST(nothing_is_left)
{
    make_layers();
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        try_all(&trials[i]);
    for (int i = 0; i < N_LAYERS; i++)
        oj_flat_buf_free(&layers[i]);
}

/* If the join side cannot be rebuilt, there is an error, not a wrong answer. */
TEST(rebuilt_in_part)
{
    const struct oj_options options = {.n_threads = 1};
    struct oj_relation relation = oj_relation_default();
    struct oj_flat side, input;
    MATCHES truth = {0}, ours = {0};
    struct oj_stats stats = {0};
    oj_status status = OJ_ERR_NOMEM;
    make_layers();
    side = oj_flat_buf_view(&layers[POLYGONS]);
    input = oj_flat_buf_view(&layers[POINTS]);
    relation.max_distance = 9.0;
    for (int64_t n = 0; n < 2 || status != OJ_OK; n++)
    {
        struct oj_gpu_index *index;
        double seconds[2];
        must(module->index(&side, NULL, &relation, &options, &index, &stats,
                           &error));
        if (n > 0)
            fail_at(n, INT32_MAX);
        status = on_gpu->rebuild(index, seconds, &error);
        fail_at(1, 0);
        ck_assert(status == OJ_OK || (n > 0 && status == OJ_ERR_NOMEM));
        if (n == 0)
            must(module->join(index, &input, &truth, &stats, &error));
        else if (module->join(index, &input, &ours, &stats, &error) == OJ_OK)
        {
            ck_assert_int_eq(ours.n_matched, truth.n_matched);
            ck_assert_mem_eq(ours.join_row, truth.join_row,
                             (size_t)truth.n_rows * sizeof *truth.join_row);
        }
        else
            ck_assert_int_ne(status, OJ_OK);
        module->free_index(index);
    }
    ck_assert_int_gt(truth.n_matched, 0);
    for (int i = 0; i < N_LAYERS; i++)
        oj_flat_buf_free(&layers[i]);
}

/* --- halves of a chunk ---------------------------------------------------- */

static void make_halves(struct oj_flat_buf *join, struct oj_flat_buf *input)
{
    random_state = 11;
    for (int i = 0; i < 600; i++)
        add_point(join, pick(300), pick(300));
    /* slightly more points than are joined in one half */
    for (int i = 0; i < 8500; i++)
        add_point(input, pick(300), pick(300));
}

/* The module joins points with every column. The first batch is joined in
 * pieces, because its speed is unknown. Then an allocation and the next one
 * fail, and batches without enough memory are joined in halves. The limit of
 * pairs equals the number of pairs. */
TEST(pieces_and_halves)
{
    const struct memory_trial t = {.name = "pieces and halves"};
    LAYER join_buf = {0}, input_buf = {0};
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1};
    struct oj_flat join, input;
    struct columns columns;
    struct memory_answer truth = {0}, ours = {0};
    struct oj_join *on_cpu;
    struct oj_gpu_index *index;
    struct oj_stats stats = {0};
    int64_t n = 0;
    make_halves(&join_buf, &input_buf);
    join = oj_flat_buf_view(&join_buf);
    input = oj_flat_buf_view(&input_buf);
    relation.op = OJ_OP_DWITHIN;
    relation.max_distance = 20.0;
    pick_columns(&columns, &join, &input, &relation, 4.0, 1);
    must(oj_join_open(&join, &relation, "cpu", &options, &on_cpu, &error));
    must(oj_join_batch(on_cpu, &input, &truth.matches, &error));
    options.max_batch_pairs = truth.matches.n_pairs;
    must(module->index(&join, NULL, &relation, &options, &index, &stats,
                       &error));
    do
    {
        fail_at(n, n > 0 ? 2 : 0);
        must(module->join(index, &input, &ours.matches, &stats, &error));
        assert_equal_answers(&t, &ours, &truth);
        n++;
    } while (n == 1 || takings() >= n - 1);
    fail_at(1, 0);
    printf("%d pairs in halves: %d\n", (int)truth.matches.n_pairs, (int)n - 2);
    ck_assert_int_gt(n, 2);
    module->free_index(index);
    oj_join_close(on_cpu);
    free_answer(&ours);
    free_answer(&truth);
    columns_free(&columns);
}

int main(void)
{
    if (!device_tests_open("cuda_memory"))
        return DEVICE_TESTS_SKIPPED;
    must(gpu_resident_find(&on_gpu, &error));
    if (!find_emulator())
    {
        printf("skipped, 3 tests: the device is not an emulated one\n");
        return DEVICE_TESTS_SKIPPED;
    }
    return tests_run();
}
