/** Events of a stream of reports: the features that a key has entered or left.
 *
 *  A report is an input row with a key (a vehicle) and a place.  The features
 *  of a key are the features of the pairs of its last report.  The pairs of the
 *  next report are compared with them:
 *
 *   features of the key before   3 5 8
 *   pairs of the report          3     9        (both in tie order)
 *   events                       exit 5, exit 8, enter 9; stay 3 on request
 *   features of the key now      3     9
 *
 *  In a nearest join a key has at most one feature, and the event is a change
 *  of it.
 *
 *  Events are in the order of the reports; events of one report are exits,
 *  enters, stays, each in the order of the join FIDs.  So events depend only on
 *  the reports and their order.  A report without a key or without a place
 *  gives no event and changes nothing; such reports are counted.
 *
 *  A key that leaves all its features is equivalent to a new key: its memory is
 *  used again.
 *  Ours. */
#ifndef OJ_EVENTS_H
#define OJ_EVENTS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"

#ifdef __cplusplus
extern "C" {
#endif

enum oj_event
{
    OJ_EVENT_ENTER = 0,
    OJ_EVENT_EXIT,
    OJ_EVENT_STAY,
    OJ_EVENT_CHANGE, /**< nearest join: the feature has changed, or there is
                          none any more */
    OJ_N_EVENTS
};

/** Names of enum oj_event: "enter", "exit", "stay", "change". */
extern const char *const oj_event_names[OJ_N_EVENTS];

struct oj_event_rules
{
    int is_nearest; /**< 1: nearest join; a row has at most one pair */
    int with_stays; /**< 1: also gives an event for each feature that a key
                         stays in */
    int has_texts;  /**< 1: keys are texts; 0: keys are integers */
};

/** The keys of rows, as integers or as texts. An empty text counts as no key. A
 *  view. */
struct oj_event_keys
{
    const int64_t *integer; /**< [n] integer keys; NULL: keys are texts */
    const int64_t *offset;  /**< [n + 1] for texts: start of each key in
                                 bytes */
    const char *bytes;
    const uint8_t *is_null; /**< [n] nonzero: the row has no key; NULL: every
                                 row has one */
};

/** Events of the rows of a batch.  The entries of a row are its events; those
 * of kind exit name a feature that is in no pair of the row.  join_row is -1 if
 * the nearest feature of a key changes to none.  measure is NaN for events
 * without a pair.  Owner; zeroed memory is a valid empty one, and one object
 * can be used for many batches. */
struct oj_event_rows
{
    struct oj_matches rows; /**< list form */
    uint8_t *kind;          /**< [rows.n_entries] enum oj_event */
    int64_t cap_kind;
};

void oj_event_rows_free(struct oj_event_rows *events);

struct oj_event_counts
{
    int64_t n_reports;     /**< number of all rows */
    int64_t n_without_key; /**< number of reports without a key */
    int64_t n_without_place;
    int64_t n_events[OJ_N_EVENTS];
    int64_t n_inside; /**< number of keys that have a feature now */
};

/** The features that each key is in now. */
struct oj_events;

/** Makes a state without keys.
 *  n_features  features of the join side
 *  tie_rank    [n_features] tie rank of each feature, by which the pairs of a
 *              row are sorted; NULL: the ordinal is the rank. Must outlive *out
 */
OJ_MUST_USE oj_status oj_events_new(const struct oj_event_rules *rules,
                                    int64_t n_features, const int32_t *tie_rank,
                                    struct oj_events **out,
                                    struct oj_error *err);

/** Accepts NULL. */
void oj_events_free(struct oj_events *events);

/** Adds the reports of a batch in their order.
 *  keys     [pairs->n_rows] in the form that the rules name
 *  reports  [pairs->n_rows] as they were joined; a report without parts, or
 *           with NaN, has no place
 *  pairs    pairs of these rows, in tie order
 *  out      receives the events; unchanged after an error, as is the state
 *  Cost     about 50 ns per report, plus the pairs; memory 32 bytes per key
 *           with a feature, plus 4 bytes per pair of a key with more than two
 *  Errors   OJ_ERR_NOMEM; OJ_ERR_LIMIT beyond 2^31 - 2 keys at a time */
OJ_MUST_USE oj_status oj_events_add(struct oj_events *events,
                                    const struct oj_event_keys *keys,
                                    const struct oj_flat *reports,
                                    const struct oj_matches *pairs,
                                    struct oj_event_rows *out,
                                    struct oj_error *err);

/** oj_events_add() in two steps, for callers that allocate memory for the
 *  events. oj_events_prepare() does everything that can fail; *n_most is an
 *  upper bound of the number of events. oj_events_append_prepared() cannot
 *  fail; it adds the batch that was prepared last. */
OJ_MUST_USE oj_status oj_events_prepare(struct oj_events *events,
                                        const struct oj_event_keys *keys,
                                        const struct oj_flat *reports,
                                        const struct oj_matches *pairs,
                                        struct oj_event_rows *out,
                                        int64_t *n_most, struct oj_error *err);
void oj_events_append_prepared(struct oj_events *events,
                               const struct oj_matches *pairs,
                               struct oj_event_rows *out);

/** Sets *counts to the counts of all reports and events so far. */
void oj_events_count(const struct oj_events *events,
                     struct oj_event_counts *counts);

const struct oj_event_rules *oj_events_rules(const struct oj_events *events);

/** A key and its features, for the file of a state; borrowed. */
struct oj_event_key
{
    int64_t integer;
    const char *text; /**< n_text bytes; NULL: integer */
    int64_t n_text;
    int32_t n; /**< number of features, > 0 */
    const int32_t *feature;
};

/** Reads the next key that has features, in the order in which keys were first
 *  added; returns 0 at the end.  *at must be 0 at first. */
int oj_events_next_key(const struct oj_events *events, int64_t *at,
                       struct oj_event_key *key);

/** Adds a key. Fails with OJ_ERR_DATA if the key exists already, if its
 *  features are out of range or not in ascending tie order, or if it has more
 *  than one feature in a nearest join. */
OJ_MUST_USE oj_status oj_events_add_key(struct oj_events *events,
                                        const struct oj_event_key *key,
                                        struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
