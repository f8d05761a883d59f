/** Splits batches into parts: runs of rows that do not have more pairs than an
 *  answer may hold (struct oj_options.max_batch_pairs).
 *
 *   rows of a batch    |................|:::|#|#|#|#|#|#|:::::|..............|
 *   sampled rows       | .    .    .    :    #    #    #    :    .    .    . |
 *   parts              |--------- 1 --------|-2-|-3-|-4-|-5-|------ 6 -------|
 *
 *  A part that has too many pairs is joined again with fewer rows, which wastes
 *  the first join. So the number of rows is chosen such that a part is
 *  predicted to have half of the allowed pairs.  The prediction uses the pairs
 *  per row of earlier parts and a sample of the batch, which is joined first:
 *  at most one row in 128, or in 256 if earlier parts are sparse.  The sample
 *  shows how density varies along the rows, for example where a city centre
 *  follows sparse rows. Without earlier parts and sample, the first part is
 *  small.
 */
#ifndef OJ_BATCH_PARTS_H
#define OJ_BATCH_PARTS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"

enum
{
    OJ_MOST_SAMPLED_ROWS = 256 /* maximum sampled rows of a batch */
};

/** Function that joins rows, which are a batch or a part of it. */
typedef oj_status (*oj_rows_join)(void *user, const struct oj_flat *rows,
                                  struct oj_matches *out, struct oj_error *err);

/** State that is kept across batches; owns the samples. The caller zeroes it
 * and sets the first four members. */
struct oj_batch_parts
{
    int64_t max_pairs; /**< maximum pairs of a part; 0: no limit */

    /** Maximum pairs of one row (oj_relation_most_pairs_of_row()); 0: no
     * maximum. If it is set, parts are made as large as it safely allows, since
     * larger parts are faster: nearest features of a million points take a
     * third less time in one part than in two. */
    int64_t most_per_row;

    /** Function that joins sampled rows to count their pairs; NULL: do not
     * sample and do not start with a small part. NULL is right if joining a few
     * rows costs as much as joining a batch, or if the number of rows decides
     * which device is used. */
    oj_rows_join sample;
    void *user; /**< argument of sample */

    /** Approximate number of pairs that were computed for nothing: pairs of
     * samples, and max_pairs for each part that had to be joined again with
     * fewer rows. */
    int64_t n_pairs_again;

    /* Members for the prediction, kept across batches. */
    double pairs_per_row; /**< estimate from earlier parts; falls only slowly
                               after parts with fewer pairs */
    int64_t n_joined;     /**< number of earlier parts */
    int64_t most_rows;    /**< maximum rows of a part, after a part had too many
                               pairs; 0: no limit */

    /* Members for the current batch. */
    int64_t n_samples; /**< number of samples; 0: not sampled */
    int64_t stretch;   /**< number of rows for each sample */
    double more;       /**< factor by which the rates of the samples are
                            multiplied: actual pairs of the last part by the
                            pairs predicted without the factor, from 1 to 4;
                            doubled after a part had too many pairs */
    double rate[OJ_MOST_SAMPLED_ROWS]; /**< [n_samples] predicted pairs per row
                                            of each stretch */
    struct oj_sampled_rows *rows;      /**< sampled rows; NULL until used */
};

/** Joins the next rows of batch, from `first` on, and sets *n to their number,
 *  chosen so that they have at most max_pairs pairs.
 *     slice      receives a view of the rows; zeroed before the first call,
 *                then reused
 *     join       may be called several times, with rows from first on; user is
 *                its argument.  If it fails with OJ_ERR_TOO_MANY_PAIRS for
 *                several rows, it is called again with fewer
 *     out        result of the last call of join; also used for the sample
 *     Errors     those of join; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status oj_batch_parts_join(
    struct oj_batch_parts *parts, const struct oj_flat *batch, int64_t first,
    struct oj_flat_slice *slice, oj_rows_join join, void *user,
    struct oj_matches *out, int64_t *n, struct oj_error *err);

/** Frees the samples, but keeps the estimates. */
void oj_batch_parts_free(struct oj_batch_parts *parts);

#endif
