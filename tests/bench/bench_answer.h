/** The answer of a join as sums that do not depend on the order of pairs, and a
 * sample of its rows, which is compared with the reference. */
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include "../../algs/api/engine/oj_join.h"

struct bench_answer
{
    int64_t n_matched;   /**< number of input rows with a pair */
    int64_t n_pairs;     /**< number of pairs */
    uint64_t sum_id;     /**< sum of the joined ids, mod 2^64 */
    uint64_t sum_ids;    /**< sum of the ids of both sides, mod 2^64 */
    double sum_distance; /**< sum of distances in CRS units, compensated, in row
                              order */
    double lost;         /**< compensation of sum_distance */
    int64_t sum_q1024;   /**< sum of round(distance * 1024) */
    uint64_t checksum; /**< sum of splitmix64(row * 2^32 + ordinal), mod 2^64 */
    uint64_t distances; /**< sum of splitmix64(bits of the distance + row) */
};

/** Adds the pairs of a batch whose first row is first_row of input. */
void bench_answer_add(struct bench_answer *answer,
                      const struct oj_matches *matches, int64_t first_row,
                      const struct oj_flat *input,
                      const struct oj_flat *join_side);

/** Returns 1 if both answers have equal pairs. */
int bench_answer_equal(const struct bench_answer *a,
                       const struct bench_answer *b);

/** Prints the line "ANSWER ...". If the join measures no distances, they are
 *  0. */
void bench_answer_print(const struct bench_answer *answer);

/** The pairs of evenly spaced rows: row i of the sample is row i * n / n_rows.
 */
struct bench_sample
{
    int64_t n;      /**< rows of the whole input */
    int64_t n_rows; /**< rows of the sample */
    int64_t n_done; /**< rows taken so far */
    int64_t n_pairs, cap_offset, cap_join_row, cap_measure;
    int64_t *offset;   /**< [n_rows + 1] */
    int32_t *join_row; /**< [n_pairs] */
    double *measure;   /**< [n_pairs] */
};

/** Copies the sample's rows from a batch. Batches must come in order. */
OJ_MUST_USE oj_status bench_sample_take(struct bench_sample *sample,
                                        const struct oj_matches *matches,
                                        int64_t first_row,
                                        struct oj_error *err);

/** Joins the sample's rows again with the backend "geos", and compares every
 * pair and distance (oj_validation.h). Prints the line "CHECK ..." and the
 * first differences. Stores the number of rows that differ in *n_different. */
OJ_MUST_USE oj_status bench_sample_check(const struct bench_sample *sample,
                                         const struct oj_flat *input,
                                         const struct oj_flat *join_side,
                                         const struct oj_relation *relation,
                                         int64_t *n_different,
                                         struct oj_error *err);

void bench_sample_free(struct bench_sample *sample);

#endif
