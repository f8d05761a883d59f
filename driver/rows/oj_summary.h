/** What a run did, in one line of plain words and as JSON. */
#ifndef OJ_SUMMARY_H
#define OJ_SUMMARY_H

#include "../job/oj_job.h"
#include "../output/oj_output.h"
#include "oj_pass_events.h"
#include "oj_validation_run.h"

/** Owns nothing. */
struct oj_summary
{
    const struct oj_job *job;
    const struct oj_output_layer *written; /**< that has the rows */
    double start;   /**< of the run, oj_clock_seconds() */
    double write_s; /**< writing rows and finishing the output */
    double total_s;
    const struct oj_pass_events *events;    /**< closed without -events */
    const struct oj_validation *validation; /**< NULL: not validated */
};

/** Prints what drivers warned of while they read the two sides. The sides have
 *  been read; oj_summary_end() does it, too. */
void oj_summary_warn_of_reading(const struct oj_job *job);

/** The last word of a run: takes what proof found, NULL: nothing was validated;
 *  prints notices on what was odd, then the line, on stderr; writes the same to
 *  the file of -json_summary, which appears complete or not at all.
 *  *is_different  1: the proof found another answer than the join's */
OJ_MUST_USE oj_status oj_summary_end(struct oj_summary *summary,
                                     struct oj_proof *proof, int *is_different,
                                     struct oj_error *err);

#endif
