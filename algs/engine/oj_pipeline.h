/** Read | join | write, overlapped.
 *
 *   reader thread        join thread          calling thread
 *   read(slot) --[ring of n_slots]--> join --[the same ring]--> write(slot)
 *
 *  Batches go round in a ring of slots and keep their order; a slot's memory is
 *  used again, so the run holds n_slots batches however long the input is.
 *  A batch whose pairs are too many for one answer is joined and written in
 *  parts, runs of its rows in their order; answers have a ring of their own.
 *  The caller owns what a slot means (an array of batches, say) and gives three
 *  functions; nothing here knows OGR, files or backends.
 *
 *  Only read() runs on the reader thread and only join() on the join thread;
 *  write() and progress() run on the thread that calls oj_pipeline_run().
 *  Errors travel as values: the first one in time stops all stages and is
 *  returned after both threads have ended.
 */
#ifndef OJ_PIPELINE_H
#define OJ_PIPELINE_H

#include "../../flatten/arrays/oj_flat.h"
#include "../../flatten/arrays/oj_matches.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OJ_PIPELINE_SLOTS 3

/** Where batches come from. */
struct oj_pipeline_source
{
    /** Fills slot with the next batch and *flat with a view of it that is
     *  valid until the slot is read into again; n_features == 0: the end.
     */
    oj_status (*read)(void *user, int slot, struct oj_flat *flat,
                      struct oj_error *err);
    void *user;
};

/** Rows of a batch that are joined and written together: all, or a run. */
struct oj_pipeline_part
{
    int slot;                   /**< the batch: what read() was given */
    int answer;                 /**< below OJ_PIPELINE_SLOTS: for what a caller
                                     keeps beside the matches; join() of another
                                     part has it only after write() of this one */
    int64_t first_row;          /**< of the batch */
    const struct oj_flat *flat; /**< its rows: row 0 is first_row */
};

/** What joins them; *out belongs to the pipeline.  OJ_ERR_TOO_MANY_PAIRS for a
 *  part of more than one row: it is asked for again in smaller parts. */
struct oj_pipeline_joiner
{
    oj_status (*join)(void *user, const struct oj_pipeline_part *part,
                      struct oj_matches *out, struct oj_error *err);
    void *user;
};

/** Where the answers go; row 0 of matches is part->first_row of the batch. */
struct oj_pipeline_sink
{
    oj_status (*write)(void *user, const struct oj_pipeline_part *part,
                       const struct oj_matches *matches, struct oj_error *err);
    void *user;
};

struct oj_pipeline_options
{
    const int *cancel; /**< nonzero stops the run; may be NULL */

    /** > 0: more pairs than this in the whole run are OJ_ERR_LIMIT. */
    int64_t max_pairs;

    /** Called after each write with the rows done; nonzero stops the run.
     * May be NULL. */
    int (*progress)(int64_t rows_done, void *user);
    void *progress_user;
};

/** Sums over all parts that were written. Seconds are wall time in each
 *  function; the stages overlap. */
struct oj_pipeline_counts
{
    int64_t n_parts, n_rows, n_matched, n_pairs;
    double read_s, join_s, write_s;
};

/** Runs until the source ends, a stage fails, or the run is cancelled
 *  (OJ_ERR_CANCELLED).  All threads have ended on return, in every case.
 *  *counts is filled in every case with what was written. */
OJ_MUST_USE OJ_EXPORT oj_status
oj_pipeline_run(const struct oj_pipeline_source *source,
                const struct oj_pipeline_joiner *joiner,
                const struct oj_pipeline_sink *sink,
                const struct oj_pipeline_options *options,
                struct oj_pipeline_counts *counts, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
