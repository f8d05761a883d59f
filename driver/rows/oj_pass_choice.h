/** The choice of -one_to_one: the join is made once for its pairs, these are
 *  chosen (oj_one_to_one.h), and the input layer is read again for its rows,
 *  whose pairs are known then.
 *
 *   input --read--> join --pairs--> add, ... finish
 *   input, again --read--> rows --answer--> their chosen pairs
 *
 *  A row is found again by its number or, where single rows or rows under
 *  filters are asked for, by its FID.
 */
#ifndef OJ_PASS_CHOICE_H
#define OJ_PASS_CHOICE_H

#include "../../algs/foundations/base/oj_radix.h"
#include "../../algs/pairs/selection/oj_pair_filter.h"
#include "../../algs/pairs/values/oj_one_to_one.h"
#include "../job/oj_job.h"

/** Zeroed memory is a valid closed one. */
struct oj_pass_choice
{
    struct oj_one_to_one *pairs; /**< NULL: closed */
    int by_fid;                  /**< FIDs are unique, and rows found by them */
    int64_t *place; /**< [join features] of their records in tiles; or NULL */
    struct oj_pipeline_counts counts; /**< of the join, before the choice */

    /* Of the rows of one answer. */
    struct oj_pair_ranks ranks; /**< of its pairs */
    uint64_t seen[2]; /**< a sum over FIDs and coordinates: of the first
                         reading, of the second so far */
    int64_t hint;
    struct oj_keyed *found; /**< places in tiles, and rows */
    int64_t *found_place;
    int64_t cap_found, cap_found_place;
};

/** Pairs of the job, which is prepared, can be added.
 *  by_fid  rows are found by their FIDs, which are unique */
OJ_MUST_USE oj_status oj_pass_choice_open(const struct oj_job *job, int by_fid,
                                          struct oj_pass_choice *choice,
                                          struct oj_error *err);

/** Adds the pairs of a part. */
OJ_MUST_USE oj_status oj_pass_choice_add(struct oj_pass_choice *choice,
                                         const struct oj_job *job,
                                         const struct oj_pipeline_part *part,
                                         const struct oj_matches *matches,
                                         struct oj_error *err);

/** All pairs were added: chooses. */
OJ_MUST_USE oj_status oj_pass_choice_finish(struct oj_pass_choice *choice,
                                            struct oj_error *err);

/** Notes the rows of a batch, the first of which is row first_row of all.
 *  reading  0: the first one of the input, 1: the second */
void oj_pass_choice_note_rows(struct oj_pass_choice *choice, int reading,
                              const struct oj_flat *flat, int64_t first_row);

/** 1 when the two readings had different rows. Rows found by FID may be. */
int oj_pass_choice_rows_differ(const struct oj_pass_choice *choice);

/** As oj_job_join(): the chosen pairs of a part, the first row of which is row
 *  first_row of all. */
OJ_MUST_USE oj_status oj_pass_choice_answer(struct oj_pass_choice *choice,
                                            struct oj_job *job,
                                            const struct oj_pipeline_part *part,
                                            int64_t first_row,
                                            struct oj_matches *out,
                                            struct oj_error *err);

/** Accepts a closed one. */
void oj_pass_choice_close(struct oj_pass_choice *choice);

#endif
