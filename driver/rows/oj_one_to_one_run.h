/** -one_to_one in one run: the join is made once for its pairs, these are
 *  chosen (oj_one_to_one.h), and the input layer is read again for its rows,
 *  whose pairs are known then.
 *
 *   input --read--> join --pairs--> choice
 *   input, again --read--> rows and their chosen pairs --> whoever takes rows
 *
 *  A row is found again by its number or, where single rows or rows under
 *  filters are asked for, by its FID.
 */
#ifndef OJ_ONE_TO_ONE_RUN_H
#define OJ_ONE_TO_ONE_RUN_H

#include "../../algs/base/oj_radix.h"
#include "../../algs/pair_values/oj_one_to_one.h"
#include "../job/oj_job.h"

/** Zeroed memory is a valid closed one. */
struct oj_choice
{
    struct oj_one_to_one *pairs; /**< NULL: closed */
    int is_made;                 /**< all pairs were added */
    int by_fid;
    int64_t *place; /**< [join features] of their records in tiles; or NULL */
    struct oj_pipeline_counts counts; /**< of the join, before the choice */

    /* Of the rows at hand. */
    struct oj_pair_ranks ranks; /**< of the pairs of an answer */
    uint64_t seen[2]; /**< a sum over FIDs and coordinates: of the first
                         reading, of the second so far */
    int64_t hint;
    struct oj_keyed *found; /**< places in tiles, and rows */
    int64_t *found_place;
    int64_t cap_found, cap_found_place;
};

/** Pairs of the job, which is prepared and outlives the choice, can be added.
 *  by_fid: 1 where FIDs are unique and rows are found by them */
OJ_MUST_USE oj_status oj_choice_open(const struct oj_job *job, int by_fid,
                                     struct oj_choice *choice,
                                     struct oj_error *err);

/** Adds an answer; side: what its join rows mean; n_threads: for similarities.
 */
OJ_MUST_USE oj_status oj_choice_add(struct oj_choice *choice,
                                    const struct oj_pipeline_part *part,
                                    const struct oj_matches *matches,
                                    const struct oj_answer_side *side,
                                    const struct oj_relation *relation,
                                    int n_threads, struct oj_error *err);

/** No more pairs. counts: of the join */
OJ_MUST_USE oj_status oj_choice_finish(struct oj_choice *choice,
                                       const struct oj_pipeline_counts *counts,
                                       struct oj_error *err);

/** As oj_job_join(): the chosen pairs of a part, the first row of which is row
 *  first of all. */
OJ_MUST_USE oj_status oj_choice_answer(struct oj_choice *choice,
                                       struct oj_job *job,
                                       const struct oj_pipeline_part *part,
                                       int64_t first, struct oj_matches *out,
                                       struct oj_error *err);

/** 1 when the rows since row 0 are those that pairs were chosen for, as far as
 *  they are found by their numbers. */
int oj_choice_saw_its_rows(const struct oj_choice *choice);

/** Accepts a closed one. */
void oj_choice_close(struct oj_choice *choice);

#endif
