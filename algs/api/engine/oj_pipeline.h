/** Runs three stages concurrently: reading batches, joining them, and using the
 *  answers.
 *
 *  reader thread                   join thread            calling thread
 *  read(slot) --[ring of slots]--> join() --[its ring]--> oj_pipeline_next()
 *
 *  Batches pass through a ring of slots in order; memory is reused, so at most
 *  OJ_PIPELINE_SLOTS batches are held, however long the input is.  A batch with
 *  too many pairs for one answer is joined in parts (runs of rows); answers
 *  have a ring of their own. The caller provides read() and join(), and owns
 *  what a slot number refers to (for example an element of an array of
 *  batches); this file is independent of OGR, files and backends.
 *
 *  Only read() runs on the reader thread, and only join() on the join thread.
 *  The calling thread gets the answers one by one, and calls progress() after
 *  each.  The first error stops all stages and is returned to the caller.
 */
#ifndef OJ_PIPELINE_H
#define OJ_PIPELINE_H

#include "oj_batch_parts.h"

#define OJ_PIPELINE_SLOTS 3

struct oj_pipeline;

/** A run of rows of a batch, or all of them, that is joined and used together.
 */
struct oj_pipeline_part
{
    int slot;                   /**< slot of the batch, an argument of read() */
    int answer;                 /**< index below OJ_PIPELINE_SLOTS for the
                                     caller's own data about this part; join()
                                     does not use it for another part until this
                                     one is released */
    int64_t first_row;          /**< ordinal within the batch of the part's
                                     first row, which is row 0 of the matches */
    const struct oj_flat *flat; /**< the rows; row 0 is row first_row of the
                                     batch */
};

/** The functions and limits of a pipeline. */
struct oj_pipeline_work
{
    /** Reads the next batch into slot. *flat becomes a view of the batch that
     * stays valid until the next read() into this slot. n_features == 0: end of
     * the input. */
    oj_status (*read)(void *user, int slot, struct oj_flat *flat,
                      struct oj_error *err);

    /** Joins a part; *out is owned by the pipeline. After OJ_ERR_TOO_MANY_PAIRS
     * for several rows, it is called again with fewer (oj_batch_parts.h). */
    oj_status (*join)(void *user, const struct oj_pipeline_part *part,
                      struct oj_matches *out, struct oj_error *err);

    /** Called after each part with the total number of rows so far; nonzero
     * stops the pipeline. May be NULL. */
    int (*progress)(int64_t rows_done, void *user);

    /** Called on each new thread in place of stages(pipeline), which it must
     * call. So the caller can set up thread-local state before, and remove it
     * afterwards. NULL: stages is called directly. */
    void (*on_thread)(void *user, void (*stages)(struct oj_pipeline *),
                      struct oj_pipeline *pipeline);
    void *user;

    const int *cancel; /**< nonzero stops the pipeline, also while the caller
                            waits; may be NULL */
    int64_t max_pairs; /**< maximum number of pairs of the whole input; more
                            fail with OJ_ERR_LIMIT; 0: no limit */

    /** Number of batches, and of answers, in the rings; at most
     * OJ_PIPELINE_SLOTS. The first read() may still change it. NULL:
     * OJ_PIPELINE_SLOTS. */
    const int *n_slots;

    int64_t max_part_pairs; /**< maximum pairs of a part, beyond which join()
                                 fails; 0: not known */

    /** Joins sampled rows to count their pairs (struct oj_batch_parts.sample);
     * called on the join thread; may be NULL. */
    oj_rows_join sample;

    /** Returns 1 if sample() may be called and parts may be small. Called on
     * the join thread after the first batch was read. */
    int (*may_sample)(void *user);
};

/** Totals of all parts that the caller has used. Times are wall-clock seconds
 * in read(), in join(), and between calls of oj_pipeline_next(); they overlap.
 */
struct oj_pipeline_counts
{
    int64_t n_parts, n_rows, n_matched, n_pairs;
    int64_t n_pairs_again; /**< approximate number of pairs found and then
                                discarded (struct oj_batch_parts) */
    double read_s, join_s, write_s;
};

/** Starts the reader thread and the join thread; work is copied. */
OJ_MUST_USE oj_status oj_pipeline_open(const struct oj_pipeline_work *work,
                                       struct oj_pipeline **out,
                                       struct oj_error *err);

/** Releases the previous answer and waits for the next. *part is NULL after the
 * last. *part and *matches are valid until the next call. After an error only
 * oj_pipeline_close() may be called. Fails with OJ_ERR_CANCELLED if *cancel or
 * progress() has cancelled the join. */
OJ_MUST_USE oj_status oj_pipeline_next(struct oj_pipeline *pipeline,
                                       const struct oj_pipeline_part **part,
                                       const struct oj_matches **matches,
                                       struct oj_error *err);

/** Stops the reader thread and the join thread, after read() and join() have
 *  returned, and frees everything.
 *     status, err  in: the caller's error; OJ_OK: none
 *     counts       counts of the answers released; NULL: not wanted
 *  Returns OJ_OK if status is OJ_OK, otherwise the first error of the stages or
 *  the caller, with *err. Accepts NULL. */
OJ_MUST_USE oj_status oj_pipeline_close(struct oj_pipeline *pipeline,
                                        oj_status status,
                                        struct oj_pipeline_counts *counts,
                                        struct oj_error *err);

#endif
