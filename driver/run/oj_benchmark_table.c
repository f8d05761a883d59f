#include "oj_benchmark_table.h"

#include "../../algs/reference/oj_validate.h"
#include "../files/oj_text_file.h"

#include <stdio.h>
#include <string.h>

struct benchmark_table
{
    const struct oj_benchmark_row *rows;
    int n;
};

static void write_agreement(const struct oj_benchmark_row *row, char *text,
                            size_t size)
{
    int used;
    if (row->n_differ == 0)
        used = snprintf(text, size, "equal");
    else
        used =
            snprintf(text, size, "%lld rows differ", (long long)row->n_differ);
    if (row->n_apart > 0)
        used += snprintf(text + used, size - (size_t)used, ", %lld rows apart",
                         (long long)row->n_apart);
    if (row->n_undecided_pairs > 0)
        used +=
            snprintf(text + used, size - (size_t)used, ", %lld pairs undecided",
                     (long long)row->n_undecided_pairs);
    if (row->n_within_ulps > 0)
        snprintf(text + used, size - (size_t)used, ", %lld within ulps",
                 (long long)row->n_within_ulps);
}

static double per_second(const struct oj_benchmark_row *row)
{
    return row->all_s > 0 ? (double)row->n_all / row->all_s : 0.0;
}

static double speed_up(const struct oj_benchmark_row *first,
                       const struct oj_benchmark_row *row)
{
    return row->all_s > 0 ? first->all_s / row->all_s : 0.0;
}

void oj_benchmark_print(const struct oj_benchmark_row *rows, int n)
{
    int has_sample = 0, has_apart = 0, has_undecided = 0, has_ulps = 0;
    int has_chords = 0;
    printf("%-42s %3s %10s %9s %9s %9s %9s %11s %11s %9s %11s  %s\n", "method",
           "thr", "rows run", "index s", "filter s", "refine s", "total s",
           "all rows s", "rows/s", "speed-up", "pairs", "agreement");
    for (int i = 0; i < n; i++)
    {
        const struct oj_benchmark_row *row = &rows[i];
        char agreement[192], rows_run[32];
        int is_sample = row->n_run < row->n_all;
        write_agreement(row, agreement, sizeof agreement);
        snprintf(rows_run, sizeof rows_run, "%lld%s", (long long)row->n_run,
                 is_sample ? "*" : " ");
        has_sample = has_sample || is_sample;
        has_apart = has_apart || row->n_apart > 0;
        has_undecided = has_undecided || row->n_undecided_pairs > 0;
        has_ulps = has_ulps || row->n_within_ulps > 0;
        has_chords = has_chords || (row->n_within_ulps > 0 &&
                                    strcmp(row->backend, "sphere") == 0);
        printf("%-42s %3d %10s %9.3f %9.3f %9.3f %9.3f %10.3f%s %11.0f %9.1f "
               "%11lld  %s\n",
               row->method, row->n_threads, rows_run, row->index_s,
               row->filter_s, row->refine_s, row->total_s, row->all_s,
               is_sample ? "*" : " ", per_second(row), speed_up(&rows[0], row),
               (long long)row->n_pairs, agreement);
    }
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
    const struct benchmark_table *table = user;
    fprintf(file, "method,backend,threads,rows,rows_run,index_s,filter_s,"
                  "refine_s,total_s,extrapolated_s,points_per_s,speed_up,"
                  "pairs,rows_different,rows_apart,pairs_undecided,"
                  "distances_within_ulps\n");
    for (int i = 0; i < table->n; i++)
    {
        const struct oj_benchmark_row *row = &table->rows[i];
        fprintf(file, "\"%s\",%s,%d,%lld,%lld,%.6f,%.6f,%.6f,%.6f,",
                row->method, row->backend, row->n_threads,
                (long long)row->n_all, (long long)row->n_run, row->index_s,
                row->filter_s, row->refine_s, row->total_s);
        if (row->n_run < row->n_all)
            fprintf(file, "%.6f", row->all_s);
        fprintf(file, ",%.1f,%.3f,%lld,%lld,%lld,%lld,%lld\n", per_second(row),
                speed_up(&table->rows[0], row), (long long)row->n_pairs,
                (long long)row->n_differ, (long long)row->n_apart,
                (long long)row->n_undecided_pairs,
                (long long)row->n_within_ulps);
    }
}

oj_status oj_benchmark_write_csv(const struct oj_benchmark_row *rows, int n,
                                 const char *path, struct oj_error *err)
{
    const struct benchmark_table table = {rows, n};
    return oj_text_file_write(path, "benchmark_csv", write_csv, &table, err);
}
