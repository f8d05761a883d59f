/** Read | join | use, overlapped.
 *
 *  reader thread                   join thread            calling thread
 *  read(slot) --[ring of slots]--> join() --[its ring]--> oj_pipeline_next()
 *
 *  Batches pass through a ring of slots in order; memory is reused, so at most
 *  OJ_PIPELINE_SLOTS batches are held, however long the input is.  A batch with
 *  too many pairs for one answer is joined in parts, runs of its rows; answers
 *  have a ring of their own. The caller defines what a slot is (an element of
 *  its array of batches, for example) and provides read() and join(); this file
 *  is independent of OGR, files and backends.
 *
 *  Only read() runs on the reader thread, and only join() on the join thread;
 *  the calling thread fetches the answers one by one, and progress() runs
 *  during that.  The first error stops all stages and is returned to the
 *  caller.
 */
#ifndef OJ_PIPELINE_H
#define OJ_PIPELINE_H

#include "oj_batch_parts.h"

#define OJ_PIPELINE_SLOTS 3

struct oj_pipeline;

/** A run of rows of a batch (or all) that is joined and used at once. */
struct oj_pipeline_part
{
    int slot;                   /**< slot of the batch: argument of read() */
    int answer;                 /**< below OJ_PIPELINE_SLOTS: index for data
                                     that the caller stores beside the
                                     matches; reused by join() only after
                                     this part is released */
    int64_t first_row;          /**< number in the batch of the part's first
                                     row, which is row 0 of the matches */
    const struct oj_flat *flat; /**< the rows; row 0 is first_row of the
                                     batch */
};

/** The functions and limits of a pipeline. */
struct oj_pipeline_work
{
    /** Fills slot with the next batch, and *flat with a view of it that stays
     * valid until the slot is read into again; n_features == 0: the end. */
    oj_status (*read)(void *user, int slot, struct oj_flat *flat,
                      struct oj_error *err);

    /** Joins a part; *out is owned by the pipeline.  If it fails with
     * OJ_ERR_TOO_MANY_PAIRS for several rows, it is called again with fewer
     * (oj_batch_parts.h). */
    oj_status (*join)(void *user, const struct oj_pipeline_part *part,
                      struct oj_matches *out, struct oj_error *err);

    /** Called after each part with the number of rows done; nonzero stops the
     * pipeline. May be NULL. */
    int (*progress)(int64_t rows_done, void *user);

    /** Runs stages(pipeline) on one of the two threads, with thread-local
     * settings of the caller before and after. NULL: stages is called
     * directly. */
    void (*on_thread)(void *user, void (*stages)(struct oj_pipeline *),
                      struct oj_pipeline *pipeline);
    void *user;

    const int *cancel; /**< nonzero stops the pipeline, also while the caller
                            waits; may be NULL */
    int64_t max_pairs; /**< > 0: more pairs in total are OJ_ERR_LIMIT */

    /** Number of batches and of answers in the rings, at most
     * OJ_PIPELINE_SLOTS; the first read() may still set it. NULL:
     * OJ_PIPELINE_SLOTS. */
    const int *n_slots;

    int64_t max_part_pairs; /**< maximum pairs of a part, above which join()
                                 fails; 0: unknown */

    /** Joins sampled rows to count their pairs, on the join thread; may be NULL
     * (struct oj_batch_parts.sample). */
    oj_rows_join sample;

    /** 1 if sample() may be called and parts may be small; called on the join
     * thread once the first batch is read. */
    int (*may_sample)(void *user);
};

/** Sums over all parts used. Wall-clock seconds in each function, and between
 * calls of oj_pipeline_next(); the stages overlap. */
struct oj_pipeline_counts
{
    int64_t n_parts, n_rows, n_matched, n_pairs;
    int64_t n_pairs_again; /**< approximate number of pairs found and
                                discarded (struct oj_batch_parts) */
    double read_s, join_s, write_s;
};

/** Starts both threads. work is copied. */
OJ_MUST_USE oj_status oj_pipeline_open(const struct oj_pipeline_work *work,
                                       struct oj_pipeline **out,
                                       struct oj_error *err);

/** Releases the answer before and waits for the next one; *part is NULL after
 * the last.  Both are valid until the next call.  After an error only
 * oj_pipeline_close() is allowed.  OJ_ERR_CANCELLED: by *cancel or progress().
 */
OJ_MUST_USE oj_status oj_pipeline_next(struct oj_pipeline *pipeline,
                                       const struct oj_pipeline_part **part,
                                       const struct oj_matches **matches,
                                       struct oj_error *err);

/** Ends both threads, after their present call, and frees everything.
 *     status, err  in: the caller's reason to end; OJ_OK: no error of its own
 *     counts       counts of the answers released; NULL: not wanted
 * Returns the first error of the stages or the caller, with *err. Accepts
 * NULL. */
OJ_MUST_USE oj_status oj_pipeline_close(struct oj_pipeline *pipeline,
                                        oj_status status,
                                        struct oj_pipeline_counts *counts,
                                        struct oj_error *err);

#endif
