/** -one_to_one: all rows are joined, pairs are chosen (oj_one_to_one.h), and
 *  the input layer is read again for its rows, whose pairs are then known.
 *
 *    input --read--> join --pairs--> add, ... finish
 *    input, again --read--> rows --answer--> their chosen pairs
 *
 *  A row of the second reading is identified by its index, or by its FID if
 *  single rows or filtered rows are requested.
 */
#ifndef OJ_PASS_CHOICE_H
#define OJ_PASS_CHOICE_H

#include "../../algs/foundations/base/oj_radix_sort.h"
#include "../../algs/pairs/selection/oj_pair_filter.h"
#include "../../algs/pairs/values/oj_one_to_one.h"
#include "../job/oj_job.h"

/** The choice of pairs. Zeroed memory is valid and closed. */
struct oj_pass_choice
{
    struct oj_one_to_one *pairs; /**< NULL if closed */
    int by_fid; /**< 1 if FIDs are unique and identify the rows */
    /** [join features] offsets of their records in tiles; NULL if the join side
     *  is not in tiles */
    int64_t *place;
    /** checksums over FIDs and first vertices: [0] of the first reading, [1] of
     *  the rows of the second reading so far */
    uint64_t seen[2];
    /** counts of the join before pairs are chosen */
    struct oj_pipeline_counts counts;

    /* State of the current answer. */
    struct oj_pair_ranks ranks; /**< ranks of its pairs */
    int64_t hint;               /**< see oj_one_to_one_find_pair() */
    /** offset of each pair's record in the tiles (key), and its row in the
     *  answer (value) */
    struct oj_keyed *found;
    int64_t *found_place;
    int64_t cap_found, cap_found_place;
};

/** Prepares for the pairs of a job. Precondition: the job is prepared. by_fid:
 *  1 if rows are identified by their FIDs, which must be unique. */
OJ_MUST_USE oj_status oj_pass_choice_open(const struct oj_job *job, int by_fid,
                                          struct oj_pass_choice *choice,
                                          struct oj_error *err);

/** Adds the pairs of a part of a batch. */
OJ_MUST_USE oj_status oj_pass_choice_add(struct oj_pass_choice *choice,
                                         const struct oj_job *job,
                                         const struct oj_pipeline_part *part,
                                         const struct oj_matches *matches,
                                         struct oj_error *err);

/** Chooses among the pairs that were added, and sets job->n_large_groups. */
OJ_MUST_USE oj_status oj_pass_choice_finish(struct oj_pass_choice *choice,
                                            struct oj_job *job,
                                            struct oj_error *err);

/** Adds the rows of a batch to the checksum of a reading of the input. reading
 *  is 0 for the first reading, 1 for the second. first_row is the index of the
 *  first row of the batch.
 */
void oj_pass_choice_checksum_rows(struct oj_pass_choice *choice, int reading,
                                  const struct oj_flat *flat,
                                  int64_t first_row);

/** Returns 1 if the checksums of the two readings differ. Always returns 0 if
 *  rows are identified by FID. */
int oj_pass_choice_readings_differ(const struct oj_pass_choice *choice);

/** Returns the chosen pairs of a part of a batch, in the form of oj_job_join().
 *  Row 0 of the part has the index first_row in the input. */
OJ_MUST_USE oj_status oj_pass_choice_answer(struct oj_pass_choice *choice,
                                            struct oj_job *job,
                                            const struct oj_pipeline_part *part,
                                            int64_t first_row,
                                            struct oj_matches *out,
                                            struct oj_error *err);

/** Frees what choice owns; a closed one is accepted. */
void oj_pass_choice_close(struct oj_pass_choice *choice);

#endif
