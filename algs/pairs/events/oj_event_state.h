/** The state of events in a file: each key that has features, with the FIDs of
 *  these features. A later run continues from it.
 *
 *   8 bytes  "OGRJEVT1"            all numbers little-endian
 *   u64      fingerprint of the join features
 *   u64      number of join features
 *   u32      1: keys are texts; 0: integers
 *   u32 + n  options, a text
 *   u64      number of keys; then for each key
 *     i64, or u32 + n    the key
 *     u32                number of its features
 *     i64 ...            their FIDs, in ascending order
 *   u64      hash of all bytes before, 8 at a time, the last ones filled up
 *            with zeros
 *
 *  A file is not trusted: its hash, join features, options and rules are
 *  checked. A state is read completely or not at all. */
#ifndef OJ_EVENT_STATE_H
#define OJ_EVENT_STATE_H

#include "oj_events.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The join by which a state is written; a state that is read must match it.
 * Borrows its members. */
struct oj_event_state
{
    const struct oj_flat *join; /**< join features in the order in which the
                                     join reads them */
    const char *options; /**< the options that affect events, as text; a state
                              file with another text is refused */
};

/** Fails with OJ_ERR_ARG if two features share a FID, since the file identifies
 * features by FIDs. */
OJ_MUST_USE oj_status oj_event_state_check_unique_fids(
    const struct oj_event_state *state, struct oj_error *err);

/** Arguments of oj_event_state_write(). */
struct oj_event_state_to_write
{
    const struct oj_event_state *state;
    const struct oj_events *events;
};

/** Writes a state; callback for oj_new_file_write(). user: struct
 *  oj_event_state_to_write. After an error ferror(file) is set. */
void oj_event_state_write(FILE *file, const void *user);

/** Reads the n bytes of a state file and adds its keys to events, which must
 *  have no keys.
 *  path     for messages
 *  Errors   OJ_ERR_DATA: the bytes are damaged; OJ_ERR_ARG: they belong to
 *            other features, options or keys; OJ_ERR_NOMEM. After an error
 *            events may only be freed
 */
OJ_MUST_USE oj_status oj_event_state_read(const uint8_t *bytes, int64_t n,
                                          const char *path,
                                          const struct oj_event_state *state,
                                          struct oj_events *events,
                                          struct oj_error *err);

/** Reads the state from a file. *is_there is 0 if the file does not exist;
 *  events is unchanged then. */
OJ_MUST_USE oj_status oj_event_state_load(const char *path,
                                          const struct oj_event_state *state,
                                          struct oj_events *events,
                                          int *is_there, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
