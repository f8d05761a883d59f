/** Summary of a run: one line of text, and a JSON file. */
#ifndef OJ_SUMMARY_H
#define OJ_SUMMARY_H

#include "../job/oj_job.h"
#include "../output/oj_output.h"
#include "oj_pass_events.h"
#include "oj_validation_run.h"

/** The parts of a run from which the summary is written; owns nothing. */
struct oj_summary
{
    const struct oj_job *job;
    const struct oj_output_layer *written; /**< the output layer with the
                                                rows */
    double start;   /**< start of the run, oj_clock_seconds() */
    double write_s; /**< seconds of writing rows and closing the output */
    double total_s;
    const struct oj_pass_events *events;    /**< closed without -events */
    const struct oj_validation *validation; /**< NULL without -validate */
};

/** Prints the warnings of drivers from reading both sides. Precondition: both
 *  sides have been read. (oj_summary_end() includes this call.) */
void oj_summary_warn_of_reading(const struct oj_job *job);

/** Ends a run: finishes the validation unless proof is NULL, prints notices and
 *  the summary on stderr, and writes the file of -json_summary, atomically.
 *  *is_different becomes 1 if the reference gave another answer. */
OJ_MUST_USE oj_status oj_summary_end(struct oj_summary *summary,
                                     struct oj_proof *proof, int *is_different,
                                     struct oj_error *err);

#endif
