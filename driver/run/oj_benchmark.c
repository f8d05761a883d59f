#include "oj_run.h"

#include "../../algs/foundations/relation/oj_gpu.h"
#include "../../algs/references/validation/oj_validation.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_hash_mix.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "../files/oj_text_file_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct method
{
    const char *name; /* name of the method in the table */
    const char *backend;
    int all_threads;
    int of_points; /* 1 if the method accepts only points as join side */
};

static const struct method methods[] = {
    {"libspatialindex R-tree, GEOS", "spatialindex", 0, 0},
    {"+ one query per quadrant", "spatialindex_collective", 0, 0},
    {"+ flat arrays: quadrants x boxes x edges", "quadrant", 0, 0},
    {"+ all threads", "quadrant", 1, 0},
    {"the same on the GPU", "cuda_quadrant", 1, 0},
    {"GEOS STRtree, sorted", "geos_sorted", 0, 0},
    {"great circles, every edge in reach", "sphere", 0, 0},
    {"geodesics to all that is in reach", "ellipsoid", 0, 0},
    {"inverted lists of all tokens", "lists", 0, 0},
    {"boxes, cut points, all vertices", "cut_points", 0, 0},
    {"the same on the GPU", "cuda_cut_points", 1, 0},
    {"shifted Z-lists", "zlists", 0, 0},
    {"the same on the GPU", "cuda_zlists", 1, 0},
    {"G-PICS quadtree, each row alone", "gpics_quadtree_single", 0, 1},
    {"G-PICS quadtree, rows registered at leaves", "gpics_quadtree", 0, 1},
    {"+ all threads", "gpics_quadtree", 1, 1},
    {"each row alone, on the GPU", "cuda_gpics_quadtree_single", 1, 1},
    {"registered at leaves, on the GPU", "cuda_gpics_quadtree", 1, 1},
    {"G-PICS k-d tree, each row alone", "gpics_kdtree_single", 0, 1},
    {"G-PICS k-d tree, rows registered at leaves", "gpics_kdtree", 0, 1},
    {"+ all threads", "gpics_kdtree", 1, 1},
    {"each row alone, on the GPU", "cuda_gpics_kdtree_single", 1, 1},
    {"registered at leaves, on the GPU", "cuda_gpics_kdtree", 1, 1},
    {"kept index, quadtree", "live_quadtree", 0, 1},
    {"+ all threads", "live_quadtree", 1, 1},
    {"kept index, k-d tree", "live_kdtree", 0, 1},
    {"+ all threads", "live_kdtree", 1, 1},
    {"ogrjoin", "cpu", 0, 0},
    {"ogrjoin, all threads", "cpu", 1, 0},
    {"ogrjoin, GPU", "cuda", 1, 0},
};

enum
{
    N_METHODS = sizeof methods / sizeof *methods,
    /* rows of the trial run that estimates how fast a method is */
    TRIAL_ROWS = 2000,
    GPU_TRIAL_ROWS = 500000 /* a GPU joins this many rows in milliseconds */
};

/* Points of the join side that move, in two steps: 1 % of them, then 10 %. */
enum
{
    N_MOVES = 2
};

static const int move_percent[N_MOVES] = {1, 10};

/* The join side after a step of moves, and the answer of a join with it. */
struct moved_side
{
    struct oj_flat flat; /* the join side with the new places */
    double *x, *y;
    int64_t n;
    int32_t *feature; /* [n] features that have moved in this step */
    /* join with this side on the cpu backend; NULL until it is needed */
    struct oj_join *cpu;
    struct oj_matches answer;
};

/* ---- the table ----------------------------------------------------------- */

/* Measurements of one method; times in wall-clock seconds. */
struct method_row
{
    const struct method *method;
    int n_threads;
    int64_t n_all;   /* number of rows of the input side */
    int64_t n_run;   /* number of rows that this method has joined */
    double index_s;  /* indexing the join side and sorting the input points */
    double filter_s; /* finding candidates; summed over threads */
    double refine_s; /* exact distances; summed over threads */
    double total_s;  /* time for the n_run rows */
    double all_s;    /* time for all rows: measured, or extrapolated */
    int64_t n_pairs; /* pairs of the n_run rows */
    /* number of rows whose answer differs from that of the cpu backend, except
     * the n_apart rows */
    int64_t n_differ;
    /* number of rows that the comparison left undecided, in which exact
     * arithmetic has confirmed the cpu backend, or whose distances differ by
     * rounding */
    int64_t n_apart;
    /* number of pairs that GEOS cannot decide, and for which exact arithmetic
     * has confirmed the answer of the cpu backend */
    int64_t n_undecided_pairs;
    /* number of distances that differ by a few ulps */
    int64_t n_within_ulps;
    /* number of steps of moves (move_percent) that the index has applied, and
     * seconds of each step; n_differ and n_apart after the last step */
    int n_moves;
    double move_s[N_MOVES];
    int64_t n_differ_moved, n_apart_moved;
};

struct benchmark
{
    struct oj_job *job;
    struct oj_join_side input; /* the input side in memory, without engine */
    /* the cpu backend, with which the other methods are compared */
    struct oj_join *cpu;
    struct oj_matches answer; /* answer of the cpu backend for all rows */
    /* number of steps; 0 if the join side does not consist of points */
    int n_moved;
    struct moved_side moved[N_MOVES];
    struct method_row rows[N_METHODS];
    int n_rows;
};

static void describe_agreement(const struct method_row *row, char *text,
                               size_t size)
{
    snprintf(text, size, "equal");
    if (row->n_differ > 0)
        snprintf(text, size, "%lld rows differ", (long long)row->n_differ);
    if (row->n_apart > 0)
        oj_message_append(text, size, ", %lld rows apart",
                          (long long)row->n_apart);
    if (row->n_undecided_pairs > 0)
        oj_message_append(text, size, ", %lld pairs undecided",
                          (long long)row->n_undecided_pairs);
    if (row->n_within_ulps > 0)
        oj_message_append(text, size, ", %lld within ulps",
                          (long long)row->n_within_ulps);
    if (row->n_differ_moved > 0)
        oj_message_append(text, size, ", %lld rows differ after the moves",
                          (long long)row->n_differ_moved);
    if (row->n_apart_moved > 0)
        oj_message_append(text, size, ", %lld rows apart after the moves",
                          (long long)row->n_apart_moved);
}

/* Prints a column for each step of moves (move_percent): seconds until the
 * index has applied the moves, or "-" if it cannot be changed. If row is NULL,
 * prints the heads of these columns. */
static void print_move_times(const struct method_row *row)
{
    for (int i = 0; i < N_MOVES; i++)
    {
        char text[32] = "-";
        if (row == NULL)
            snprintf(text, sizeof text, "move %d %%", move_percent[i]);
        else if (i < row->n_moves)
            snprintf(text, sizeof text, "%.3f", row->move_s[i]);
        printf(" %9s", text);
    }
}

static double rows_per_second(const struct method_row *row)
{
    return row->all_s > 0 ? (double)row->n_all / row->all_s : 0.0;
}

static double compute_speedup(const struct method_row *first,
                              const struct method_row *row)
{
    return row->all_s > 0 ? first->all_s / row->all_s : 0.0;
}

static void print_table(const struct method_row *rows, int n)
{
    int has_sample = 0, has_apart = 0, has_undecided = 0, has_ulps = 0;
    int has_chords = 0, has_millimetres = 0, has_moves = 0;
    for (int i = 0; i < n; i++)
        has_moves = has_moves || rows[i].n_moves > 0;
    printf("%-42s %3s %10s %9s %9s %9s %9s %11s %11s %9s", "method", "thr",
           "rows run", "index s", "filter s", "refine s", "total s",
           "all rows s", "rows/s", "speed-up");
    if (has_moves)
        print_move_times(NULL);
    printf(" %11s  %s\n", "pairs", "agreement");
    for (int i = 0; i < n; i++)
    {
        const struct method_row *row = &rows[i];
        char agreement[192], rows_run[32];
        int is_sample = row->n_run < row->n_all;
        describe_agreement(row, agreement, sizeof agreement);
        snprintf(rows_run, sizeof rows_run, "%lld%s", (long long)row->n_run,
                 is_sample ? "*" : " ");
        has_sample = has_sample || is_sample;
        has_apart = has_apart || row->n_apart + row->n_apart_moved > 0;
        has_undecided = has_undecided || row->n_undecided_pairs > 0;
        has_ulps = has_ulps || row->n_within_ulps > 0;
        has_chords =
            has_chords || (row->n_within_ulps > 0 &&
                           strcmp(row->method->backend, "sphere") == 0);
        has_millimetres =
            has_millimetres || strcmp(row->method->backend, "ellipsoid") == 0;
        printf("%-42s %3d %10s %9.3f %9.3f %9.3f %9.3f %10.3f%s %11.0f %9.1f",
               row->method->name, row->n_threads, rows_run, row->index_s,
               row->filter_s, row->refine_s, row->total_s, row->all_s,
               is_sample ? "*" : " ", rows_per_second(row),
               compute_speedup(&rows[0], row));
        if (has_moves)
            print_move_times(row);
        printf(" %11lld  %s\n", (long long)row->n_pairs, agreement);
    }
    if (has_moves)
        printf("move: seconds until the index has taken points of the join "
               "side that jump to random places;\n"
               "      -: it is built anew (index s), or would have taken too "
               "long\n");
    if (has_sample)
        printf("* ran on an evenly spaced sample; the time of all rows is "
               "extrapolated from it\n");
    if (has_apart)
        printf("apart: rows that the reference could not decide, or where GEOS "
               "rounds; no difference\n");
    if (has_undecided)
        printf("undecided: pairs that GEOS cannot decide; exact arithmetic "
               "confirms those of the cpu backend\n");
    if (has_chords)
        printf("within ulps: distances on the sphere that are equal up to the "
               "rounding of chords; no difference\n");
    else if (has_ulps && has_millimetres)
        printf("within ulps: distances on the ellipsoid that are equal up to a "
               "millimetre; no difference\n");
    else if (has_ulps)
        printf("within ulps: distances between lines or polygons that are "
               "equal up to %d ulps; no difference\n",
               OJ_VALIDATION_ULPS);
    printf("agreement: with the cpu backend, pair by pair and distance by "
           "distance, on the rows that ran\n"
           "filter and refine are sums over threads; speed-up is over the "
           "first method, for all rows\n");
}

static void write_csv(FILE *file, const void *user)
{
    const struct benchmark *b = user;
    fprintf(file, "method,backend,threads,rows,rows_run,index_s,filter_s,"
                  "refine_s,total_s,extrapolated_s,points_per_s,speed_up,"
                  "pairs,rows_different,rows_apart,pairs_undecided,"
                  "distances_within_ulps,move_1_percent_s,move_10_percent_s,"
                  "rows_different_after_moves\n");
    for (int i = 0; i < b->n_rows; i++)
    {
        const struct method_row *row = &b->rows[i];
        fprintf(file, "\"%s\",%s,%d,%lld,%lld,%.6f,%.6f,%.6f,%.6f,",
                row->method->name, row->method->backend, row->n_threads,
                (long long)row->n_all, (long long)row->n_run, row->index_s,
                row->filter_s, row->refine_s, row->total_s);
        if (row->n_run < row->n_all)
            fprintf(file, "%.6f", row->all_s);
        fprintf(file, ",%.1f,%.3f,%lld,%lld,%lld,%lld,%lld",
                rows_per_second(row), compute_speedup(&b->rows[0], row),
                (long long)row->n_pairs, (long long)row->n_differ,
                (long long)row->n_apart, (long long)row->n_undecided_pairs,
                (long long)row->n_within_ulps);
        for (int k = 0; k < N_MOVES; k++)
        {
            if (k < row->n_moves)
                fprintf(file, ",%.6f", row->move_s[k]);
            else
                fprintf(file, ",");
        }
        if (row->n_moves > 0)
            fprintf(file, ",%lld\n", (long long)row->n_differ_moved);
        else
            fprintf(file, ",\n");
    }
}

/* Compares matches with the answer of the cpu backend for all rows; if only a
 * sample was joined, joins the sample on the cpu backend first. The caller
 * frees *validation. */
static oj_status
compare_with_cpu(struct oj_join *cpu, const struct oj_matches *answer,
                 const struct oj_flat *input, const struct oj_matches *matches,
                 struct oj_validation *validation, struct oj_error *err)
{
    struct oj_matches of_sample = {0};
    oj_status status = OJ_OK;
    if (input->n_features < answer->n_rows)
    {
        status = oj_join_batch(cpu, input, &of_sample, err);
        answer = &of_sample;
    }
    validation->input = input;
    if (status == OJ_OK)
        status = oj_validation_compare(validation, answer, matches, err);
    oj_matches_free(&of_sample);
    return status;
}

/* Returns the number of rows that count neither as equal nor as different: the
 * comparison left them undecided, exact arithmetic has confirmed the cpu
 * backend, or the distances differ by rounding. */
static int64_t count_rows_apart(const struct oj_validation *validation)
{
    return validation->n_undecided + validation->n_rows_proved +
           validation->n_rows_rounding;
}

/* Starts the comparison of a method with the cpu backend. Distances of trees of
 * points must be identical bit by bit: without a relation, every difference
 * counts. For the other methods exact arithmetic decides which differences
 * count (oj_validation.h). */
static struct oj_validation start_comparison(const struct benchmark *b,
                                             const struct method *method,
                                             const struct oj_flat *join_side)
{
    struct oj_validation validation = {.join_side = join_side};
    if (!method->of_points)
        validation.relation = &b->job->relation;
    return validation;
}

static oj_status compare_with_reference_answer(const struct benchmark *b,
                                               const struct oj_flat *input,
                                               const struct oj_matches *matches,
                                               struct method_row *row,
                                               struct oj_error *err)
{
    struct oj_validation validation =
        start_comparison(b, row->method, &b->job->join_side->flat);
    oj_status status =
        compare_with_cpu(b->cpu, &b->answer, input, matches, &validation, err);
    row->n_differ = validation.n_rows_different;
    row->n_apart = count_rows_apart(&validation);
    row->n_undecided_pairs = validation.n_undecided_proved;
    row->n_within_ulps = validation.n_within_ulps;
    oj_validation_free(&validation);
    return status;
}

/* A timed join of all input rows, or of a sample of rows at equal intervals. */
struct timed_join
{
    struct oj_flat input;
    struct oj_flat_buf shapes; /* copies of the selected rows */
    struct oj_compared_columns columns;
    struct oj_matches matches;
    double seconds;
};

static oj_status time_join(const struct benchmark *b, struct oj_join *join,
                           int64_t n, struct timed_join *timed,
                           struct oj_error *err)
{
    const struct oj_flat *all = &b->input.flat;
    double start;
    timed->input = *all;
    if (n < all->n_features)
    {
        for (int64_t i = 0; i < n; i++)
        {
            int64_t row =
                (int64_t)((long double)i * (long double)all->n_features /
                          (long double)n);
            OJ_TRY(
                oj_compared_columns_append(&timed->columns, i, all, row, err));
            OJ_TRY(oj_flat_buf_copy(&timed->shapes, all, row,
                                    all->fid != NULL ? all->fid[row] : -1,
                                    err));
        }
        timed->input = oj_flat_buf_view(&timed->shapes);
        oj_compared_columns_view(&timed->columns, &timed->input);
    }
    start = oj_clock_seconds();
    OJ_TRY(oj_join_batch(join, &timed->input, &timed->matches, err));
    timed->seconds = oj_clock_seconds() - start;
    return OJ_OK;
}

static void free_timed_join(struct timed_join *timed)
{
    oj_matches_free(&timed->matches);
    oj_flat_buf_free(&timed->shapes);
    oj_compared_columns_free(&timed->columns);
}

static int is_on_gpu(const struct method *method)
{
    return strcmp(method->backend, "cuda") == 0 ||
           strcmp(method->backend, "cuda_quadrant") == 0 ||
           strcmp(method->backend, "cuda_zlists") == 0 ||
           strncmp(method->backend, "cuda_gpics", 10) == 0;
}

/* Chooses as many rows as the method can join within -benchmark_seconds. */
static oj_status choose_benchmark_rows(const struct benchmark *b,
                                       const struct method *method,
                                       struct oj_join *join, int64_t *n_rows,
                                       struct oj_error *err)
{
    struct timed_join trial = {0};
    int64_t n_all = b->input.flat.n_features;
    int64_t n_trial = is_on_gpu(method) ? GPU_TRIAL_ROWS : TRIAL_ROWS;
    double budget =
        b->job->command->benchmark_seconds - oj_join_stats(join)->index_s;
    oj_status status;
    *n_rows = n_all;
    if (n_all <= 5 * n_trial)
        return OJ_OK;
    status = time_join(b, join, n_trial, &trial, err);
    if (status == OJ_OK && trial.seconds > 0)
    {
        double fit =
            budget > 0 ? budget / (trial.seconds / (double)n_trial) : 0.0;
        if (fit < (double)n_all)
            *n_rows = fit < (double)n_trial ? n_trial : (int64_t)fit;
    }
    free_timed_join(&trial);
    return status;
}

static void fill_result_row(const struct benchmark *b, struct oj_join *join,
                            const struct oj_stats *before,
                            const struct timed_join *timed,
                            struct method_row *row)
{
    const struct oj_stats *stats = oj_join_stats(join);
    row->n_threads = oj_join_threads(join);
    row->n_all = b->input.flat.n_features;
    row->n_run = timed->matches.n_rows;
    row->index_s = stats->index_s + stats->sort_s - before->sort_s;
    row->filter_s = stats->filter_s - before->filter_s;
    row->refine_s = stats->refine_s - before->refine_s;
    row->total_s = stats->index_s + timed->seconds;
    row->all_s = stats->index_s +
                 timed->seconds * ((double)row->n_all / (double)row->n_run);
    row->n_pairs = timed->matches.n_pairs;
}

static oj_status open_join(const struct benchmark *b,
                           const struct oj_flat *join_side, const char *backend,
                           int all_threads, int timings, struct oj_join **join,
                           struct oj_error *err)
{
    struct oj_options options = oj_job_options(b->job->command);
    options.timings = timings;
    options.max_batch_pairs = 0;
    if (!all_threads)
        options.n_threads = 1;
    return oj_join_open(join_side, &b->job->relation, backend, &options, join,
                        err);
}

/* ---- points that move ---------------------------------------------------- */

/* Returns a pseudo-random number u, 0 <= u < 1, which depends only on the
 * feature, the step and the axis. */
static double random_fraction(int64_t feature, int step, int axis)
{
    int64_t key = (feature * N_MOVES + step) * 2 + axis;
    uint64_t hash = oj_hash_mix(oj_hash_mix(0, &key), &key);
    return (double)(oj_hash_mix(hash, &key) >> 11) * 0x1p-53;
}

/* Moves move_percent[step] percent of the points, evenly spaced in the order of
 * the layer, to random places in the box of all points. */
static oj_status make_side_with_moved_points(const struct oj_flat *before,
                                             int step, struct moved_side *out,
                                             struct oj_error *err)
{
    int64_t n = before->n_features;
    int64_t n_moved = n * move_percent[step] / 100;
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    n_moved = n_moved > 0 ? n_moved : 1;
    OJ_NEW(out->x, n, err);
    OJ_NEW(out->y, n, err);
    OJ_NEW(out->feature, n_moved, err);
    for (int64_t f = 0; f < n; f++)
    {
        double x = out->x[f] = before->x[f], y = out->y[f] = before->y[f];
        x0 = x < x0 ? x : x0;
        x1 = x > x1 ? x : x1;
        y0 = y < y0 ? y : y0;
        y1 = y > y1 ? y : y1;
    }
    for (int64_t i = 0; i < n_moved; i++)
    {
        int64_t f =
            (int64_t)((long double)i * (long double)n / (long double)n_moved);
        if (!(before->x[f] == before->x[f])) /* it has no geometry */
            continue;
        out->x[f] = x0 + random_fraction(f, step, 0) * (x1 - x0);
        out->y[f] = y0 + random_fraction(f, step, 1) * (y1 - y0);
        out->feature[out->n++] = (int32_t)f;
    }
    out->flat = *before;
    out->flat.x = out->x;
    out->flat.y = out->y;
    return OJ_OK;
}

static oj_status make_moved_sides(struct benchmark *b, struct oj_error *err)
{
    const struct oj_flat *side = &b->job->join_side->flat;
    if (!oj_flat_is_points(side) || side->n_features == 0)
        return OJ_OK;
    for (b->n_moved = 0; b->n_moved < N_MOVES; b->n_moved++)
    {
        OJ_TRY(make_side_with_moved_points(side, b->n_moved,
                                           &b->moved[b->n_moved], err));
        side = &b->moved[b->n_moved].flat;
    }
    return OJ_OK;
}

static void free_moved_side(struct moved_side *side)
{
    oj_join_close(side->cpu);
    oj_matches_free(&side->answer);
    oj_free(side->x);
    oj_free(side->y);
    oj_free(side->feature);
}

/* Joins the n input rows with the index after its moves, and compares the
 * answer with that of a new index of the cpu backend. */
static oj_status compare_after_moves(struct benchmark *b, struct oj_join *join,
                                     int64_t n, struct method_row *row,
                                     struct oj_error *err)
{
    struct moved_side *side = &b->moved[row->n_moves - 1];
    struct oj_validation validation =
        start_comparison(b, row->method, &side->flat);
    struct timed_join timed = {0};
    oj_status status = OJ_OK;
    if (side->cpu == NULL)
    {
        OJ_TRY(open_join(b, &side->flat, "cpu", 1, 0, &side->cpu, err));
        OJ_TRY(oj_join_batch(side->cpu, &b->input.flat, &side->answer, err));
    }
    status = time_join(b, join, n, &timed, err);
    if (status == OJ_OK)
        status = compare_with_cpu(side->cpu, &side->answer, &timed.input,
                                  &timed.matches, &validation, err);
    row->n_differ_moved = validation.n_rows_different;
    row->n_apart_moved = count_rows_apart(&validation);
    oj_validation_free(&validation);
    free_timed_join(&timed);
    return status;
}

/* Measures the moves of a method, if its index can be changed. Leaves out a
 * step that is expected to take more than -benchmark_seconds. */
static oj_status time_moves(struct benchmark *b, struct oj_join *join,
                            int64_t n, struct method_row *row,
                            struct oj_error *err)
{
    for (int i = 0; i < b->n_moved; i++)
    {
        const struct moved_side *side = &b->moved[i];
        double start = oj_clock_seconds();
        oj_status status;
        if (i > 0 &&
            row->move_s[i - 1] * move_percent[i] >
                b->job->command->benchmark_seconds * move_percent[i - 1])
            break;
        status =
            oj_join_move_points(join, &side->flat, side->n, side->feature, err);
        if (status == OJ_ERR_UNSUPPORTED)
            return OJ_OK;
        OJ_TRY(status);
        row->move_s[i] = oj_clock_seconds() - start;
        row->n_moves = i + 1;
    }
    return row->n_moves > 0 ? compare_after_moves(b, join, n, row, err) : OJ_OK;
}

/* ---- the methods --------------------------------------------------------- */

static oj_status time_opened_method(struct benchmark *b,
                                    const struct method *method,
                                    struct oj_join *join,
                                    struct method_row *row,
                                    struct oj_error *err)
{
    struct timed_join timed = {0};
    struct oj_stats before;
    int64_t n;
    oj_status status;
    OJ_TRY(choose_benchmark_rows(b, method, join, &n, err));
    before = *oj_join_stats(join);
    oj_notice("%s: %lld of %lld rows ...", method->name, (long long)n,
              (long long)b->input.flat.n_features);
    status = time_join(b, join, n, &timed, err);
    if (status == OJ_OK && strstr(method->backend, "cut_points") != NULL)
        oj_notice("%.1f %% of the pairs are left to be measured",
                  100.0 *
                      (double)(oj_join_stats(join)->n_candidates -
                               before.n_candidates) /
                      ((double)n * (double)b->job->join_side->flat.n_features));
    if (status == OJ_OK)
    {
        row->method = method;
        fill_result_row(b, join, &before, &timed, row);
        status = compare_with_reference_answer(b, &timed.input, &timed.matches,
                                               row, err);
    }
    free_timed_join(&timed);
    if (status == OJ_OK)
        status = time_moves(b, join, n, row, err);
    return status;
}

/* Runs a small join on the GPU, so that one-time costs are not measured. Fails
 * if no kernel can answer the join; the backend cuda would then use the CPU,
 * which has a row of its own in the table. */
static oj_status warm_up_gpu(const struct benchmark *b, const char *backend,
                             struct oj_error *err)
{
    const struct oj_gpu_module *module;
    struct oj_join *join;
    OJ_TRY(oj_gpu_load(&module, err));
    if (strcmp(backend, "cuda") == 0 &&
        !module->supports(&b->job->relation, &b->job->join_side->flat,
                          &b->input.flat))
        return oj_fail(
            err, OJ_ERR_UNSUPPORTED,
            "no GPU kernel can answer this join: use the backend cpu");
    OJ_TRY(open_join(b, &b->job->join_side->flat, backend, 1, 0, &join, err));
    oj_join_close(join);
    return OJ_OK;
}

/* Measures one method. OJ_ERR_UNSUPPORTED or OJ_ERR_NO_DEVICE if it cannot
 * answer this join. */
static oj_status run_method(struct benchmark *b, const struct method *method,
                            struct method_row *row, struct oj_error *err)
{
    struct oj_join *join;
    oj_status status;
    if (is_on_gpu(method))
        OJ_TRY(warm_up_gpu(b, method->backend, err));
    OJ_TRY(open_join(b, &b->job->join_side->flat, method->backend,
                     method->all_threads, 1, &join, err));
    status = time_opened_method(b, method, join, row, err);
    oj_join_close(join);
    return status;
}

static int is_reference_on_globe(const char *backend)
{
    return strcmp(backend, "sphere") == 0 || strcmp(backend, "ellipsoid") == 0;
}

/* Runs all methods; those that cannot answer the join are left out. */
static oj_status run_methods(struct benchmark *b, int *is_different,
                             struct oj_error *err)
{
    for (int i = 0; i < N_METHODS; i++)
    {
        struct oj_error here = {OJ_OK, ""};
        struct method_row *row = &b->rows[b->n_rows];
        oj_status status;
        if (is_reference_on_globe(methods[i].backend) &&
            !oj_relation_is_on_globe(&b->job->relation))
            continue;
        if (methods[i].of_points &&
            !oj_flat_is_points(&b->job->join_side->flat))
            continue;
        status = run_method(b, &methods[i], row, &here);
        if (status == OJ_ERR_UNSUPPORTED || status == OJ_ERR_NO_DEVICE)
        {
            oj_notice("%s: left out (%s)", methods[i].name, here.message);
            continue;
        }
        if (status != OJ_OK)
            return oj_fail(err, status, "%s", here.message);
        b->n_rows++;
        *is_different |= row->n_differ > 0 || row->n_differ_moved > 0;
    }
    return OJ_OK;
}

static oj_status run_benchmark(struct benchmark *b, struct oj_command_run *run,
                               struct oj_error *err)
{
    struct oj_job *job = b->job;
    const struct oj_flat *join = &job->join_side->flat;
    const struct oj_flat *input = &b->input.flat;
    OJ_TRY(oj_job_read_side(job, 1, 1, job->join_side, NULL, err));
    OJ_TRY(oj_job_read_side(job, 0, 0, &b->input, NULL, err));
    if (input->n_features == 0)
        return oj_fail(err, OJ_ERR_DATA,
                       "input layer '%s' has no rows to benchmark with: name "
                       "another layer, or leave its filters out",
                       job->input.name);
    oj_notice(
        "%s, %s with %s",
        oj_message_count_and_noun(input->n_features, "input row", "input rows"),
        oj_message_count_and_noun(join->n_features, "join feature",
                                  "join features"),
        oj_message_count_and_noun(join->n_vertices, "vertex", "vertices"));
    /* this join also warms up memory and caches */
    OJ_TRY(open_join(b, join, "cpu", 1, 0, &b->cpu, err));
    OJ_TRY(oj_join_batch(b->cpu, input, &b->answer, err));
    OJ_TRY(make_moved_sides(b, err));
    OJ_TRY(run_methods(b, &run->is_different, err));
    print_table(b->rows, b->n_rows);
    if (run->command->benchmark_csv == NULL)
        return OJ_OK;
    return oj_text_file_write(run->command->benchmark_csv, "benchmark_csv",
                              write_csv, b, err);
}

oj_status oj_benchmark_run(struct oj_command_run *run, struct oj_error *err)
{
    struct benchmark b = {.job = &run->pass.job};
    oj_status status = run_benchmark(&b, run, err);
    oj_join_close(b.cpu);
    oj_matches_free(&b.answer);
    for (int i = 0; i < N_MOVES; i++)
        free_moved_side(&b.moved[i]);
    oj_join_side_free(&b.input);
    return status;
}
