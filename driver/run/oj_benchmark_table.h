/** The table of -benchmark: one row per method. */
#ifndef OJ_BENCHMARK_TABLE_H
#define OJ_BENCHMARK_TABLE_H

#include "../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What was measured of one method; wall seconds. */
struct oj_benchmark_row
{
    const char *method;  /**< for people */
    const char *backend; /**< its name */
    int n_threads;
    int64_t n_all;    /**< rows of the input side */
    int64_t n_run;    /**< rows that this method ran on */
    double index_s;   /**< join side indexed and input points ordered */
    double filter_s;  /**< candidates found; a sum over threads */
    double refine_s;  /**< exact distances; a sum over threads */
    double total_s;   /**< of the rows that ran */
    double all_s;     /**< of all rows: measured, or extrapolated */
    int64_t n_pairs;  /**< of the rows that ran */
    int64_t n_differ; /**< rows with another answer than the cpu backend */
    int64_t n_apart;  /**< rows left out, or proved against GEOS */
    int64_t n_undecided_pairs; /**< that GEOS cannot decide; ours is proved */
    int64_t n_within_ulps;     /**< distances equal only up to some ulps */
};

/** Prints the table on stdout; the first row is what others are compared to. */
void oj_benchmark_print(const struct oj_benchmark_row *rows, int n);

/** Writes it to a file, which appears complete or not at all. */
OJ_MUST_USE oj_status
oj_benchmark_write_csv(const struct oj_benchmark_row *rows, int n,
                       const char *path, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
