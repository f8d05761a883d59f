/* oj_bench: measures a join of layers in memory, without OGR, and checks its
 * answer. Prints lines of the forms
 *   LAYERS data=.. input=.. n=.. layer=.. features=.. vertices=..
 *   RUN number=.. index_ms=.. join_ms=..
 *   RESULT op=.. backend=.. n=.. phase=.. wall_ms=.. cpu_ms=..
 *   WORK threads=.. candidates=.. undecided=.. index_mb=.. peak_rss_mb=..
 *        filter_ms=.. refine_ms=..
 *   ANSWER matched=.. pairs=.. sum_id=.. sum_ids=.. sum_distance=..
 *          sum_q1024=.. checksum=.. distances=..
 *   CHECK backend=geos rows=.. pairs=.. different=.. undecided=.. rounded=..
 *         within_ulps=..
 * Exit code: 0, 1 on an error, 3 when repeats or the check differ.
 */
#include "../../flatten/base/oj_alloc.h"
#include "bench_answer.h"
#include "bench_data.h"
#include "bench_gpu.h"
#include "bench_sums.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct arguments
{
    struct bench_data_options data;
    struct oj_relation relation;
    struct oj_options options;
    const char *backend;
    int64_t n_repeats, batch, n_check;
    int pinned, resident; /* on a GPU */
    int fresh;            /* 1: answers of each run in new memory */
    int sums; /* 1: values are summed; 2: summed from stored pairs */
    int64_t n_on, n_exclude; /* number of classes of features, or 0 for no
                                classes */
    double window, period; /* in seconds; window < 0: times are not compared */
};

/* Seconds spent in one run. The library reports only wall-clock time for
 * sorting. Its processor time is estimated as a share of that of sorting and
 * joining, since both use all threads. */
struct times
{
    double wall[4], cpu[4]; /* index, sort, join, total */
};

static const char *const phase_names[4] = {"index", "sort", "join", "total"};

static double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_help(void)
{
    puts("oj_bench [options]: times a join in memory\n"
         "  --data nycgen|FOLDER   generated city, or raw arrays (nycgen)\n"
         "  --input NAME           input layer: points, lots, streets, zones "
         "(points)\n"
         "  --layer NAME           join layer: lots, streets, zones, points "
         "(lots)\n"
         "  --n N --m M            input and join features (all)\n"
         "  --seed S               of nycgen (1)\n"
         "  --op NAME              any join of the table (nearest)\n"
         "  --mask PATTERN         of --op relate\n"
         "  --max_distance D|inf   units of the data (100)\n"
         "  --min_distance D       (0)\n"
         "  --distance_to interior|boundary\n"
         "  --k K --ties first|all\n"
         "  --exclude_self         no pairs of equal ids\n"
         "  --exclude_same         no pairs of equal geometries\n"
         "  --unordered            only pairs with input id < join id\n"
         "  --on C                 only pairs of one class of C\n"
         "  --exclude C            no pairs of one class of C\n"
         "  --within_time S        only pairs at most S seconds apart\n"
         "  --period S             in which their times are (2678400)\n"
         "  --any_order            pairs of a row need no order\n"
         "  --backend NAME         auto, cpu, cuda, quadrant, cuda_quadrant, "
         "geos ..\n"
         "  --quadrant_size K      for backends that group points\n"
         "  --threads T            0: all (0)\n"
         "  --batch N              rows per batch, 0: one batch (0)\n"
         "  --repeat R             runs; the one of least processor time (on a "
         "GPU: wall time)\n"
         "                         is shown (1)\n"
         "  --check K              K evenly spaced rows are compared with "
         "GEOS (0)\n"
         "  --gpu LIST             all, or numbers as 0,2 (0)\n"
         "  --gpu_memory BYTES     of each GPU at most\n"
         "  --gpu_batch N          rows that go to a GPU in one piece\n"
         "  --pinned               the arrays of both sides and of the answer\n"
         "  --resident             points stay on the GPU: times by its clock\n"
         "  --skew K               of nycgen: the lower, the fuller (0)\n"
         "  --zones N              N more polygons that overlap, side by side\n"
         "  --sums any|pairs       values of the points, summed by join "
         "feature: without\n"
         "                         pairs where the backend can, or of pairs\n"
         "  --add_polygon V        one more polygon, V vertices, over all\n"
         "  --identical N          N more points, all at one place\n"
         "  --far                  points and features 1,000 km off");
}

static int64_t to_integer(const char *name, const char *text)
{
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < 0)
    {
        fprintf(stderr, "oj_bench: %s: \"%s\" is no whole number\n", name,
                text);
        exit(1);
    }
    return value;
}

static double to_real(const char *name, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0')
    {
        fprintf(stderr, "oj_bench: %s: \"%s\" is no number\n", name, text);
        exit(1);
    }
    return value;
}

/* Returns 0 or 1 for one of two words. */
static int to_choice(const char *name, const char *text, const char *first,
                     const char *second)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
    {
        fprintf(stderr, "oj_bench: %s is %s or %s, not \"%s\"\n", name, first,
                second, text);
        exit(1);
    }
    return strcmp(text, second) == 0;
}

static void parse_option(struct arguments *a, const char *name,
                         const char *value)
{
    if (strcmp(name, "--data") == 0)
        a->data.data = value;
    else if (strcmp(name, "--input") == 0)
        a->data.input = value;
    else if (strcmp(name, "--layer") == 0)
        a->data.layer = value;
    else if (strcmp(name, "--n") == 0)
        a->data.n = to_integer(name, value);
    else if (strcmp(name, "--m") == 0)
        a->data.m = to_integer(name, value);
    else if (strcmp(name, "--seed") == 0)
        a->data.seed = (uint64_t)to_integer(name, value);
    else if (strcmp(name, "--skew") == 0)
        a->data.skew = (int)to_integer(name, value);
    else if (strcmp(name, "--gpu") == 0)
        a->options.gpus = bench_gpu_list(value);
    else if (strcmp(name, "--gpu_memory") == 0)
        a->options.gpu_memory = to_integer(name, value);
    else if (strcmp(name, "--gpu_batch") == 0)
        a->options.gpu_batch = to_integer(name, value);
    else if (strcmp(name, "--op") == 0)
    {
        const int op = oj_op_find(value);
        if (op < 0)
        {
            fprintf(stderr, "oj_bench: no join is called \"%s\"\n", value);
            exit(1);
        }
        a->relation.op = (enum oj_op)op;
    }
    else if (strcmp(name, "--max_distance") == 0)
        a->relation.max_distance = to_real(name, value);
    else if (strcmp(name, "--min_distance") == 0)
        a->relation.min_distance = to_real(name, value);
    else if (strcmp(name, "--mask") == 0)
        snprintf(a->relation.mask, sizeof a->relation.mask, "%s", value);
    else if (strcmp(name, "--distance_to") == 0)
        a->relation.distance_to = to_choice(name, value, "interior", "boundary")
                                      ? OJ_TO_BOUNDARY
                                      : OJ_TO_INTERIOR;
    else if (strcmp(name, "--k") == 0)
        a->relation.k = to_integer(name, value);
    else if (strcmp(name, "--ties") == 0)
        a->relation.ties = to_choice(name, value, "first", "all")
                               ? OJ_TIES_ALL
                               : OJ_TIES_FIRST;
    else if (strcmp(name, "--backend") == 0)
        a->backend = value;
    else if (strcmp(name, "--on") == 0)
        a->n_on = to_integer(name, value);
    else if (strcmp(name, "--exclude") == 0)
        a->n_exclude = to_integer(name, value);
    else if (strcmp(name, "--within_time") == 0)
        a->window = to_real(name, value);
    else if (strcmp(name, "--period") == 0)
        a->period = to_real(name, value);
    else if (strcmp(name, "--quadrant_size") == 0)
        a->options.quadrant_size = to_integer(name, value);
    else if (strcmp(name, "--threads") == 0)
        a->options.n_threads = (int)to_integer(name, value);
    else if (strcmp(name, "--batch") == 0)
        a->batch = to_integer(name, value);
    else if (strcmp(name, "--repeat") == 0)
        a->n_repeats = to_integer(name, value);
    else if (strcmp(name, "--check") == 0)
        a->n_check = to_integer(name, value);
    else if (strcmp(name, "--add_polygon") == 0)
        a->data.add_polygon = to_integer(name, value);
    else if (strcmp(name, "--zones") == 0)
        a->data.zones = to_integer(name, value);
    else if (strcmp(name, "--sums") == 0)
        a->sums = 1 + to_choice(name, value, "any", "pairs");
    else if (strcmp(name, "--identical") == 0)
        a->data.identical = to_integer(name, value);
    else
    {
        fprintf(stderr, "oj_bench: unknown option %s (--help lists them)\n",
                name);
        exit(1);
    }
}

static void parse(struct arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
    {
        if (strcmp(argv[i], "--help") == 0)
        {
            print_help();
            exit(0);
        }
        if (strcmp(argv[i], "--far") == 0)
            a->data.far = 1;
        else if (strcmp(argv[i], "--pinned") == 0)
            a->pinned = 1;
        else if (strcmp(argv[i], "--fresh") == 0)
            a->fresh = 1;
        else if (strcmp(argv[i], "--resident") == 0)
            a->resident = 1;
        else if (strcmp(argv[i], "--timings") == 0)
            a->options.timings = 1;
        else if (strcmp(argv[i], "--exclude_self") == 0)
            a->relation.exclude_self = 1;
        else if (strcmp(argv[i], "--exclude_same") == 0)
            a->relation.exclude_same_geometry = 1;
        else if (strcmp(argv[i], "--unordered") == 0)
            a->relation.unordered_pairs = 1;
        else if (strcmp(argv[i], "--any_order") == 0)
            a->relation.any_order = 1;
        else if (i + 1 < argc)
        {
            parse_option(a, argv[i], argv[i + 1]);
            i++;
        }
        else
        {
            fprintf(stderr,
                    "oj_bench: %s: unknown, or its value is missing "
                    "(--help lists the options)\n",
                    argv[i]);
            exit(1);
        }
    }
}

/* Makes the index and joins all batches. Only these two library calls are
 * timed. sample may be NULL. The next repeat uses the memory of matches again,
 * as a run of many batches does, unless --fresh is given. */
static oj_status run(const struct arguments *a, const struct oj_flat *input,
                     const struct oj_flat *join_side,
                     struct oj_matches *matches, struct times *times,
                     struct bench_answer *answer, struct bench_sample *sample,
                     struct oj_join **join, struct oj_error *err)
{
    const int64_t step = a->batch > 0 ? a->batch : input->n_features;
    struct oj_flat_slice rows = {0};
    double wall = clock_seconds(CLOCK_MONOTONIC);
    double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    double share;
    oj_status status = oj_join_open(join_side, &a->relation, a->backend,
                                    &a->options, join, err);
    memset(times, 0, sizeof *times);
    times->wall[0] = clock_seconds(CLOCK_MONOTONIC) - wall;
    times->cpu[0] = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    for (int64_t first = 0; status == OJ_OK && first < input->n_features;
         first += step)
    {
        const int64_t left = input->n_features - first;
        status = oj_flat_slice_make(input, first, left < step ? left : step,
                                    &rows, err);
        if (status != OJ_OK)
            break;
        wall = clock_seconds(CLOCK_MONOTONIC);
        cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        status = oj_join_batch(*join, &rows.flat, matches, err);
        times->wall[2] += clock_seconds(CLOCK_MONOTONIC) - wall;
        times->cpu[2] += clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        if (status == OJ_OK)
            bench_answer_add(answer, matches, first, input, join_side);
        if (status == OJ_OK && sample != NULL)
            status = bench_sample_take(sample, matches, first, err);
    }
    oj_flat_slice_free(&rows);
    if (status != OJ_OK)
        return status;
    times->wall[1] = oj_join_stats(*join)->sort_s;
    share = times->wall[2] > 0 ? times->wall[1] / times->wall[2] : 0;
    times->cpu[1] = share * times->cpu[2];
    times->wall[2] -= times->wall[1];
    times->cpu[2] -= times->cpu[1];
    for (int i = 0; i < 3; i++)
    {
        times->wall[3] += times->wall[i];
        times->cpu[3] += times->cpu[i];
    }
    return OJ_OK;
}

static void print_run(int64_t number, const struct times *times)
{
    printf("RUN number=%" PRId64 " index_ms=%.3f join_ms=%.3f\n", number,
           1e3 * times->wall[0], 1e3 * (times->wall[1] + times->wall[2]));
}

static void print_results(const struct arguments *a, const struct oj_join *join,
                          int64_t n, const struct times *times)
{
    const struct oj_stats *stats = oj_join_stats(join);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    for (int i = 0; i < 4; i++)
        printf("RESULT op=%s backend=%s n=%" PRId64
               " phase=%s wall_ms=%.3f cpu_ms=%.3f\n",
               oj_op_get(a->relation.op)->name, oj_join_backend(join)->name, n,
               phase_names[i], 1e3 * times->wall[i], 1e3 * times->cpu[i]);
    printf("WORK threads=%d candidates=%" PRId64 " undecided=%" PRId64
           " index_mb=%.1f peak_rss_mb=%.0f filter_ms=%.3f refine_ms=%.3f\n",
           oj_join_threads(join), stats->n_candidates, stats->n_undecided_pairs,
           (double)stats->index_bytes / 1048576, (double)usage.ru_maxrss / 1024,
           1e3 * stats->filter_s, 1e3 * stats->refine_s);
}

static oj_status bench_on_gpu(const struct arguments *a,
                              const struct oj_flat *input,
                              const struct oj_flat *join_side,
                              struct oj_error *err)
{
    struct bench_answer answer = {0};
    OJ_TRY(bench_resident(input, join_side, &a->relation, &a->options,
                          a->n_repeats, a->sums > 0, &answer, err));
    if (!oj_relation_allows_many_pairs(&a->relation))
        bench_answer_print(&answer);
    return OJ_OK;
}

static oj_status bench_summing(const struct arguments *a,
                               const struct oj_flat *input,
                               const struct oj_flat *join_side,
                               struct oj_error *err)
{
    const struct bench_sums_options options = {
        .backend = a->backend,
        .options = &a->options,
        .relation = &a->relation,
        .batch = a->batch > 0 ? a->batch : input->n_features,
        .n_repeats = a->n_repeats,
        .only_pairs = a->sums == 2,
        .pinned = a->pinned};
    return bench_sums(&options, input, join_side, err);
}

/* Runs all repeats, and prints the answer and the check. Sets *different to 1
 * if two repeats, or the check, give different answers. */
static oj_status bench(const struct arguments *a, const struct oj_flat *input,
                       const struct oj_flat *join_side, int *different,
                       struct oj_error *err)
{
    struct bench_sample sample = {.n = input->n_features,
                                  .n_rows = a->n_check < input->n_features
                                                ? a->n_check
                                                : input->n_features};
    struct bench_answer first = {0};
    struct times best = {{0}, {0}};
    struct oj_matches matches = {0};
    const int on_gpu =
        a->backend != NULL && strncmp(a->backend, "cuda", 4) == 0;
    oj_status status = OJ_OK;
    if (a->pinned)
        status = oj_matches_reserve(&matches, input->n_features,
                                    input->n_features, 0, err);
    if (a->pinned && status == OJ_OK)
    {
        memset(matches.join_row, 0,
               (size_t)input->n_features * sizeof *matches.join_row);
        memset(matches.measure, 0,
               (size_t)input->n_features * sizeof *matches.measure);
        status = bench_pin(input, join_side, &matches, err);
    }
    for (int64_t i = 0; status == OJ_OK && i < a->n_repeats; i++)
    {
        struct bench_answer answer = {0};
        struct times times;
        struct oj_join *join = NULL;
        status = run(a, input, join_side, &matches, &times, &answer,
                     i == 0 ? &sample : NULL, &join, err);
        if (status == OJ_OK && a->n_repeats > 1)
            print_run(i + 1, &times);
        if (a->fresh)
            oj_matches_free(&matches);
        if (status == OJ_OK && i == 0)
            first = answer;
        if (status == OJ_OK &&
            (i == 0 || (on_gpu ? times.wall[3] < best.wall[3]
                               : times.cpu[3] < best.cpu[3])))
            best = times;
        if (status == OJ_OK && !bench_answer_equal(&first, &answer))
        {
            printf("DIFFERENT repeat=%" PRId64 "\n", i + 1);
            *different = 1;
        }
        if (status == OJ_OK && i + 1 == a->n_repeats)
            print_results(a, join, input->n_features, &best);
        oj_join_close(join);
    }
    oj_matches_free(&matches);
    if (status == OJ_OK)
        bench_answer_print(&first);
    fflush(stdout);
    if (status == OJ_OK && a->n_check > 0)
    {
        int64_t n_different = 0;
        status = bench_sample_check(&sample, input, join_side, &a->relation,
                                    &n_different, err);
        *different |= n_different > 0;
    }
    bench_sample_free(&sample);
    return status;
}

/* Returns 1 for a self join of points. Both sides are then the same arrays, as
 * for a caller that has the layer once. */
static int is_self_join(const struct arguments *a,
                        const struct oj_flat *join_side)
{
    return strcmp(a->data.input, a->data.layer) == 0 &&
           oj_flat_is_points(join_side) && a->data.identical == 0 &&
           !a->data.far;
}

/* Makes a class for each feature, by its position. Lower classes have more
 * features. *out becomes NULL if n is 0; the caller frees it. */
static oj_status make_classes(int64_t n_features, int64_t n, int32_t **out,
                              struct oj_error *err)
{
    if (n == 0)
        return OJ_OK;
    OJ_NEW(*out, n_features, err);
    for (int64_t i = 0; i < n_features; i++)
    {
        uint64_t mixed = (uint64_t)(i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        double u;
        mixed ^= mixed >> 32;
        mixed *= UINT64_C(0xD6E8FEB86659FD93);
        u = (double)(mixed >> 11) * 0x1p-53;
        (*out)[i] = (int32_t)((double)n * u * u);
    }
    return OJ_OK;
}

/* Classes and times of both sides, as conditions on pairs. */
struct bench_classes
{
    int32_t *on[2], *exclude[2];
    int64_t *from[2], *until[2];
};

/* Makes times within the period, by the position of a feature. For the input it
 * makes windows. */
static oj_status make_times(const struct arguments *a, int is_input,
                            struct oj_flat *side, int64_t **from,
                            int64_t **until, struct oj_error *err)
{
    const int64_t window = is_input ? (int64_t)(a->window * 1e6) : 0;
    OJ_NEW(*from, side->n_features, err);
    if (is_input)
        OJ_NEW(*until, side->n_features, err);
    for (int64_t i = 0; i < side->n_features; i++)
    {
        uint64_t mixed = (uint64_t)(2 * i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        int64_t at;
        mixed ^= mixed >> 29;
        mixed *= UINT64_C(0xD6E8FEB86659FD93);
        at = (int64_t)((double)(mixed >> 11) * 0x1p-53 * a->period * 1e6);
        (*from)[i] = at - window;
        if (is_input)
            (*until)[i] = at + window;
    }
    side->spans[0] = (struct oj_spans){*from, is_input ? *until : *from};
    side->n_spans = 1;
    return OJ_OK;
}

static oj_status set_classes(const struct arguments *a, struct oj_flat *input,
                             struct oj_flat *join_side,
                             struct bench_classes *classes,
                             struct oj_error *err)
{
    struct oj_flat *const side[2] = {input, join_side};
    for (int i = 0; i < 2; i++)
    {
        OJ_TRY(
            make_classes(side[i]->n_features, a->n_on, &classes->on[i], err));
        OJ_TRY(make_classes(side[i]->n_features, a->n_exclude,
                            &classes->exclude[i], err));
        side[i]->on_class = classes->on[i];
        side[i]->exclude_class = classes->exclude[i];
        if (a->window >= 0.0)
            OJ_TRY(make_times(a, i == 0, side[i], &classes->from[i],
                              &classes->until[i], err));
    }
    return OJ_OK;
}

static void free_classes(struct bench_classes *classes)
{
    for (int i = 0; i < 2; i++)
    {
        oj_free(classes->on[i]);
        oj_free(classes->exclude[i]);
        oj_free(classes->from[i]);
        oj_free(classes->until[i]);
    }
}

int main(int argc, char **argv)
{
    struct arguments a = {.data = {.data = "nycgen",
                                   .input = "points",
                                   .layer = "lots",
                                   .seed = 1},
                          .relation = oj_relation_default(),
                          .n_repeats = 1,
                          .window = -1.0,
                          .period = 31 * 86400.0};
    struct bench_layers layers = {0};
    struct bench_classes classes = {{0}, {0}, {0}, {0}};
    struct oj_error err = {OJ_OK, ""};
    oj_status status;
    int different = 0;
    a.relation.max_distance = 100;
    parse(&a, argc, argv);
    a.relation.n_spans = a.window >= 0.0;
    a.relation.spans[0].relations = OJ_SPANS_INTERSECT;
    if (a.n_repeats < 1)
        a.n_repeats = 1;
    status = bench_data_load(&a.data, &layers, &err);
    if (status == OJ_OK)
    {
        struct oj_flat join_side = oj_flat_buf_view(&layers.join_side);
        struct oj_flat input =
            is_self_join(&a, &join_side) ? join_side : bench_input(&layers);
        printf("LAYERS data=%s input=%s n=%" PRId64
               " layer=%s features=%" PRId64 " vertices=%" PRId64 "\n",
               a.data.data, a.data.input, input.n_features, a.data.layer,
               join_side.n_features, join_side.n_vertices);
        a.options.input_kinds = oj_flat_is_points(&input)
                                    ? (unsigned)OJ_PART_POINT
                                    : (unsigned)input.part_kinds;
        /* like the command, which gets the number of rows from the layer */
        a.options.n_expected = input.n_features;
        status = set_classes(&a, &input, &join_side, &classes, &err);
        if (status != OJ_OK)
            ; /* reported below */
        else if (a.resident)
            status = bench_on_gpu(&a, &input, &join_side, &err);
        else if (a.sums > 0)
            status = bench_summing(&a, &input, &join_side, &err);
        else
            status = bench(&a, &input, &join_side, &different, &err);
    }
    if (status != OJ_OK)
        fprintf(stderr, "oj_bench: %s: %s\n", oj_status_name(status),
                err.message);
    free_classes(&classes);
    bench_layers_free(&layers);
    return status != OJ_OK ? 1 : different ? 3 : 0;
}
