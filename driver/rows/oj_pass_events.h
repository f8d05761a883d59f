/** The part of a pass that makes events of answers (-events).
 *
 *    answer: reports and their pairs --keys of the reports--> oj_events
 *                                                                |
 *    answer: reports and their events  <-------------------------'
 *
 *  algs/pairs/events/oj_events.h defines what an event is. Answers must come
 *  one after another, in the order of the reports, on the thread that takes
 *  them. So the saved state always matches the rows that were returned. */
#ifndef OJ_PASS_EVENTS_H
#define OJ_PASS_EVENTS_H

#include "../../algs/pairs/events/oj_events.h"
#include "../../flatten/arrays/oj_pair_values.h"
#include "../job/oj_job.h"

/** The events of a pass. Zeroed memory is valid and closed; it makes no events.
 */
struct oj_pass_events
{
    int is_open; /**< 1 if answers become events */
    struct oj_job *job;
    struct oj_events *events; /**< NULL until oj_pass_events_start() */
    int column;               /**< column of the key in the batches */
    char *options; /**< text of the options that affect events, for the state
                        file; includes the name of the key field */

    struct oj_event_rows rows; /**< events of the latest answer */
    struct oj_pair_values values;

    /* Keys of the reports of an answer. */
    int has_texts;
    int64_t *number; /* keys that are integers, or offsets of keys that are
                        texts */
    uint8_t *is_null;
    char *bytes;
    int64_t cap_number, cap_is_null, cap_bytes;
};

/** Prepares for -events: adds the key field to the fields that are read. Does
 *  nothing without -events. The job must be open but not prepared, and must
 *  outlive the events. OJ_ERR_ARG: there is no such field, or it cannot be a
 *  key. */
OJ_MUST_USE oj_status oj_pass_events_open(struct oj_job *job,
                                          struct oj_pass_events *events,
                                          struct oj_error *err);

/** Begins with the state in the file of -state, or without keys. The job must
 *  be prepared. */
OJ_MUST_USE oj_status oj_pass_events_start(struct oj_pass_events *events,
                                           struct oj_error *err);

/** Makes the events of an answer from its pairs.
 *  batch, first_row  the rows of the reports
 *  reports           the reports as they were joined
 *  *rows, *values    receive the events; borrowed until the next answer */
OJ_MUST_USE oj_status oj_pass_events_answer(
    struct oj_pass_events *events, const struct oj_batch *batch,
    int64_t first_row, const struct oj_flat *reports,
    const struct oj_matches *pairs, const struct oj_matches **rows,
    const struct oj_pair_values **values, struct oj_error *err);

/** Writes the state to the file of -state, completely or not at all; does
 *  nothing without -state. */
OJ_MUST_USE oj_status oj_pass_events_save(const struct oj_pass_events *events,
                                          struct oj_error *err);

/** Frees what events owns; a closed one is accepted. To be called before
 *  oj_job_close(). */
void oj_pass_events_close(struct oj_pass_events *events);

#endif
