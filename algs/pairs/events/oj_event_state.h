/** The state of events in a file: the keys that have features, by the FIDs of
 *  these, so that a later run goes on where one has ended.
 *
 *   8 bytes  "OGRJEVT1"            all numbers little-endian
 *   u64      fingerprint of the join features
 *   u64      their number
 *   u32      1: keys are texts; 0: integers
 *   u32 + n  options, a text
 *   u64      keys; then of each
 *     i64, or u32 + n    the key
 *     u32                features
 *     i64 ...            their FIDs, in ascending order
 *   u64      hash of all bytes before, 8 at a time, the last ones filled up
 *            with zeros
 *
 *  Nothing in a file is trusted: it is checked against its own hash, the join
 *  features, the options and the rules, and a state is complete or not read.
 */
#ifndef OJ_EVENT_STATE_H
#define OJ_EVENT_STATE_H

#include "oj_events.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a state belongs to. Borrows. */
struct oj_event_state
{
    const struct oj_flat *join; /**< features, as they are joined */
    const char *options; /**< what decides events, as words: a state of other
                              words is refused */
};

/** OJ_ERR_ARG where features cannot be named: FIDs repeat. */
OJ_MUST_USE oj_status oj_event_state_check(const struct oj_event_state *state,
                                           struct oj_error *err);

/** A state that is to be written. */
struct oj_event_state_to_write
{
    const struct oj_event_state *state;
    const struct oj_events *events;
};

/** For those who write files that appear complete or not at all; user is a
 *  struct oj_event_state_to_write. Errors are those of the file. */
void oj_event_state_write(FILE *file, const void *user);

/** Adds the keys of a state of n bytes to events, which has none.
 *  path     for messages
 *  Errors   OJ_ERR_DATA: it is broken; OJ_ERR_ARG: it belongs to other
 * features, options or keys; OJ_ERR_NOMEM. events can only be freed then */
OJ_MUST_USE oj_status oj_event_state_read(const uint8_t *bytes, int64_t n,
                                          const char *path,
                                          const struct oj_event_state *state,
                                          struct oj_events *events,
                                          struct oj_error *err);

/** The same of a file; *is_there 0: there is none, and events is as it was. */
OJ_MUST_USE oj_status oj_event_state_load(const char *path,
                                          const struct oj_event_state *state,
                                          struct oj_events *events,
                                          int *is_there, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
