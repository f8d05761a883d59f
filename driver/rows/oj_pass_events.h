/** The part of a pass that makes events of answers (-events).
 *
 *   answer: reports and their pairs --keys of the reports--> oj_events
 *                                                               |
 *   answer: reports and their events  <-------------------------'
 *
 *  What an event is: algs/pairs/events/oj_events.h.  Answers come one after
 * another, in the order of the reports, on the thread that takes them, so that
 * the state is always that of the rows that were given out.
 */
#ifndef OJ_PASS_EVENTS_H
#define OJ_PASS_EVENTS_H

#include "../../algs/pairs/events/oj_events.h"
#include "../../flatten/arrays/oj_pair_values.h"
#include "../job/oj_job.h"

/** Zeroed memory is a valid closed one, which makes no events. */
struct oj_pass_events
{
    int is_open; /**< answers become events */
    struct oj_job *job;
    struct oj_events *events; /**< NULL: not started */
    int column;               /**< of the key, in the batches */
    char *options; /**< of the state: what decides events, with the name of the
                        key's field */

    struct oj_event_rows rows; /**< of the latest answer */
    struct oj_pair_values values;

    /* Keys of the reports of an answer. */
    int has_texts;
    int64_t *number; /* integers, or offsets of texts */
    uint8_t *is_null;
    char *bytes;
    int64_t cap_number, cap_is_null, cap_bytes;
};

/** Has the key be read; the job is open and not prepared, and outlives the
 *  events. Does nothing without -events. OJ_ERR_ARG: no such field, or one that
 *  is no key. */
OJ_MUST_USE oj_status oj_pass_events_open(struct oj_job *job,
                                          struct oj_pass_events *events,
                                          struct oj_error *err);

/** Begins with the state of -state, or without keys; the job is prepared. */
OJ_MUST_USE oj_status oj_pass_events_start(struct oj_pass_events *events,
                                           struct oj_error *err);

/** The events of an answer, in place of its pairs.
 *  batch, first_row  where the reports stand
 *  reports           as they were joined
 *  *rows, *values    set; borrowed until the next answer */
OJ_MUST_USE oj_status oj_pass_events_answer(
    struct oj_pass_events *events, const struct oj_batch *batch,
    int64_t first_row, const struct oj_flat *reports,
    const struct oj_matches *pairs, const struct oj_matches **rows,
    const struct oj_pair_values **values, struct oj_error *err);

/** Writes the state to the file of -state, if it is asked for: complete or not
 *  at all. */
OJ_MUST_USE oj_status oj_pass_events_save(const struct oj_pass_events *events,
                                          struct oj_error *err);

/** Accepts a closed one. Before oj_job_close(). */
void oj_pass_events_close(struct oj_pass_events *events);

#endif
