/** Cutting of batches into parts, runs of their rows, each of which has no more
 *  pairs than one answer may hold (struct oj_options.max_batch_pairs).
 *
 *   rows of a batch    |................|:::|#|#|#|#|#|#|:::::|..............|
 *   sampled rows       | .    .    .    :    #    #    #    :    .    .    . |
 *   parts              |--------- 1 --------|-2-|-3-|-4-|-5-|------ 6 -------|
 *
 *  A part that turns out to have too many pairs is joined again with fewer
 *  rows, and the join of it was in vain.  So the size of a part is predicted,
 *  such that it has about half of the pairs that are allowed: from the pairs
 *  per row of the part before and from a sample of the batch's rows, which is
 *  joined beforehand: one row of 128 at most, and one of 256 where the parts
 *  before are sparse.  The sample follows the density along the rows: where a
 *  city centre lies in the middle of sparse rows, the mean of the rows so far
 *  says nothing about the next ones.
 *  Where there is neither a part before nor a sample, the first part is small.
 */
#ifndef OJ_BATCH_PARTS_H
#define OJ_BATCH_PARTS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"

enum
{
    OJ_MOST_SAMPLED_ROWS = 256 /* of a batch */
};

/** Joins rows: all or some of a batch. */
typedef oj_status (*oj_rows_join)(void *user, const struct oj_flat *rows,
                                  struct oj_matches *out, struct oj_error *err);

/** Owner of what is sampled. Zeroed memory is a valid one, to which the caller
 *  gives the first three members. */
struct oj_batch_parts
{
    int64_t max_pairs; /**< of a part; 0: the bound is not known */

    /** Joins rows only to count their pairs.  NULL: none are sampled, nor is
     *  the first part a small one, which is right where each join of a few rows
     *  is as dear as that of a batch, or where the device that joins is chosen
     *  by the number of rows. */
    oj_rows_join sample;
    void *user; /**< of sample */

    /** Pairs that were found and thrown away, about: those of samples, and for
     *  each part that was joined in vain max_pairs. */
    int64_t n_pairs_again;

    /* Prediction, across batches. */
    double pairs_per_row; /**< of the parts before; a greater one fades */
    int64_t n_joined;     /**< parts before */
    int64_t most_rows;    /**< of a part after one in vain; 0: any number */

    /* Of the batch that is being joined. */
    int64_t n_samples; /**< 0: it has none */
    int64_t stretch;   /**< rows for which a sampled one stands */
    double more; /**< pairs of the part before to those that were predicted */
    double rate[OJ_MOST_SAMPLED_ROWS]; /**< [n_samples] pairs per row */
    struct oj_sampled_rows *rows;      /**< NULL: not needed yet */
};

/** Joins the next rows of batch, from first on: *n of them, as many as do not
 *  have too many pairs.
 *  slice      holds the view of the rows; zeroed at first, used again
 *  join       may be called several times, with rows from first on; user is
 *             its own.  OJ_ERR_TOO_MANY_PAIRS for more rows than one: it is
 *             called again for fewer.
 *  out        as the last call of join left it; also used for the sample
 *  Errors     those of join; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status oj_batch_parts_join(
    struct oj_batch_parts *parts, const struct oj_flat *batch, int64_t first,
    struct oj_flat_slice *slice, oj_rows_join join, void *user,
    struct oj_matches *out, int64_t *n, struct oj_error *err);

/** Frees what it owns; the counts stay. */
void oj_batch_parts_free(struct oj_batch_parts *parts);

#endif
