/** Read | join | use, overlapped.
 *
 *   reader thread        join thread          calling thread
 *   read(slot) --[ring of slots]--> join --[the same ring]-->
 * oj_pipeline_next()
 *
 *  Batches go round in a ring of slots and keep their order; a slot's memory is
 *  used again, so that OJ_PIPELINE_SLOTS batches are held however long the
 *  input is.  A batch whose pairs are too many for one answer is joined in
 *  parts, runs of its rows in their order; answers have a ring of their own.
 *  The caller owns what a slot means (an array of batches, say) and gives two
 *  functions; nothing here knows OGR, files or backends.
 *
 *  Only read() runs on the reader thread and only join() on the join thread;
 *  the answers are asked for by the caller, one after the other, and progress()
 *  runs within that.  Errors travel as values: the first one in time stops all
 *  stages and is what the caller gets.
 */
#ifndef OJ_PIPELINE_H
#define OJ_PIPELINE_H

#include "oj_batch_parts.h"

#define OJ_PIPELINE_SLOTS 3

struct oj_pipeline;

/** Rows of a batch that are joined and used together: all, or a run. */
struct oj_pipeline_part
{
    int slot;                   /**< the batch: what read() was given */
    int answer;                 /**< below OJ_PIPELINE_SLOTS: for what a caller
                                     keeps beside the matches; join() of another
                                     part has it only after this one's use */
    int64_t first_row;          /**< of the batch: row 0 of the matches */
    const struct oj_flat *flat; /**< its rows: row 0 is first_row */
};

/** What the stages do. */
struct oj_pipeline_work
{
    /** Fills slot with the next batch and *flat with a view of it that is
     *  valid until the slot is read into again; n_features == 0: the end. */
    oj_status (*read)(void *user, int slot, struct oj_flat *flat,
                      struct oj_error *err);

    /** Joins a part; *out belongs to the pipeline.  OJ_ERR_TOO_MANY_PAIRS for
     *  one of more than one row: it is asked for again in smaller parts
     *  (oj_batch_parts.h). */
    oj_status (*join)(void *user, const struct oj_pipeline_part *part,
                      struct oj_matches *out, struct oj_error *err);

    /** Called after each use with the rows done; nonzero stops all. May be
     *  NULL. */
    int (*progress)(int64_t rows_done, void *user);

    /** Runs stages(pipeline) on one of the two threads, with what the caller
     *  needs there set up before and undone after it. NULL: just runs it. */
    void (*on_thread)(void *user, void (*stages)(struct oj_pipeline *),
                      struct oj_pipeline *pipeline);
    void *user;

    const int *cancel; /**< nonzero stops all, also while the caller waits; may
                            be NULL */
    int64_t max_pairs; /**< > 0: more pairs than this in all are OJ_ERR_LIMIT */

    /** Batches that are held, and answers, at most OJ_PIPELINE_SLOTS; the first
     *  read() may still set it. NULL: as many. */
    const int *n_slots;

    int64_t max_part_pairs; /**< with more join() fails; 0: not known */

    /** Joins rows only to count their pairs, on the join thread; may be NULL
     *  (struct oj_batch_parts.sample). */
    oj_rows_join sample;

    /** 1: sample() may be called, and parts may be small; asked on the join
     *  thread once the first batch is there. */
    int (*may_sample)(void *user);
};

/** Sums over all parts that were used. Seconds are wall time in each function,
 *  and between the answers; the stages overlap. */
struct oj_pipeline_counts
{
    int64_t n_parts, n_rows, n_matched, n_pairs;
    int64_t n_pairs_again; /**< found and thrown away, about: struct
                                oj_batch_parts */
    double read_s, join_s, write_s;
};

/** Starts both threads. work is copied. */
OJ_MUST_USE oj_status oj_pipeline_open(const struct oj_pipeline_work *work,
                                       struct oj_pipeline **out,
                                       struct oj_error *err);

/** Lets the answer before go and waits for the next one; *part is NULL after
 *  the last.  Both are valid until the next call.  After an error the pipeline
 *  is only to be closed.  OJ_ERR_CANCELLED: *cancel, or progress(). */
OJ_MUST_USE oj_status oj_pipeline_next(struct oj_pipeline *pipeline,
                                       const struct oj_pipeline_part **part,
                                       const struct oj_matches **matches,
                                       struct oj_error *err);

/** Ends both threads, which end after what they are at, and frees all.
 *  status, err  in: why the caller ends it, OJ_OK: for no error of its own
 *  counts       of the answers that were let go; NULL: not wanted
 *  Returns the first error in time, of the stages or the caller's, with *err.
 *  Accepts NULL. */
OJ_MUST_USE oj_status oj_pipeline_close(struct oj_pipeline *pipeline,
                                        oj_status status,
                                        struct oj_pipeline_counts *counts,
                                        struct oj_error *err);

#endif
