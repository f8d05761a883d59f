/** Events of a stream of reports: which features a key has come to and has
 *  left.
 *
 *  A report is an input row with a key (a vehicle) and a place.  The features
 *  of a key are those that its last report made pairs with.  The pairs of its
 *  next report are compared with them:
 *
 *   features of the key before   3 5 8
 *   pairs of the report          3     9        (both in tie order)
 *   events                       exit 5, exit 8, enter 9; stay 3 on request
 *   features of the key now      3     9
 *
 *  Of nearest, a key has one feature or none, and an event is a change of it.
 *
 *  Events come in the order of the reports, those of a report as exits, enters,
 *  stays, each in the order of the join FIDs, so they depend on nothing but the
 *  reports and their order.  A report without a key or without a place gives no
 *  event and changes nothing; both are counted.
 *
 *  A key without features is as one that never came: its memory is used again.
 *  Ours.
 */
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
    OJ_EVENT_CHANGE, /**< of nearest: another feature, or none any more */
    OJ_N_EVENTS
};

/** "enter", "exit", "stay", "change". */
extern const char *const oj_event_names[OJ_N_EVENTS];

struct oj_event_rules
{
    int is_nearest; /**< pairs are the nearest feature, one at most */
    int with_stays; /**< 1: a feature that a key keeps is an event, too */
    int has_texts;  /**< 1: keys are texts; 0: integers */
};

/** The keys of rows, in one of two forms. An empty text is no key. A view. */
struct oj_event_keys
{
    const int64_t *integer; /**< [n] or NULL */
    const int64_t *offset;  /**< [n + 1] into bytes, of texts */
    const char *bytes;
    const uint8_t *is_null; /**< [n] nonzero: the row has no key; NULL: all
                                 have one */
};

/** Events of the rows of a batch.  The entries of a row are its events, also
 *  those of features that are no pairs of it; join_row is -1 where the nearest
 *  feature of a key changes to none.  measure is NaN where the event is of no
 *  pair.  Owner; zeroed memory is a valid empty one, and one object serves many
 *  batches. */
struct oj_event_rows
{
    struct oj_matches rows; /**< list form */
    uint8_t *kind;          /**< [rows.n_entries] enum oj_event */
    int64_t cap_kind;
};

void oj_event_rows_free(struct oj_event_rows *events);

struct oj_event_counts
{
    int64_t n_reports;     /**< rows, all of them */
    int64_t n_without_key; /**< of these */
    int64_t n_without_place;
    int64_t n_events[OJ_N_EVENTS];
    int64_t n_inside; /**< keys that have a feature now */
};

/** The features of all keys. */
struct oj_events;

/** Without keys.
 *  n_features  of the join side
 *  tie_rank    [n_features] their order, which pairs of a row have, or NULL:
 *              that of the rows; outlives *out */
OJ_MUST_USE oj_status oj_events_new(const struct oj_event_rules *rules,
                                    int64_t n_features, const int32_t *tie_rank,
                                    struct oj_events **out,
                                    struct oj_error *err);

/** Accepts NULL. */
void oj_events_free(struct oj_events *events);

/** The reports of a batch, one after another.
 *  keys     [pairs->n_rows] in the form of the rules
 *  reports  [pairs->n_rows] as they were joined: has no parts, or NaN, where
 *           there is no place
 *  pairs    of these rows, in the order of ties
 *  out      set; nothing is changed after an error
 *  Cost     some 50 ns a report, and the pairs; memory 32 bytes a key with a
 *           feature, and 4 a pair where a key has more than two
 *  Errors   OJ_ERR_NOMEM; OJ_ERR_LIMIT beyond 2^31 - 2 keys at a time */
OJ_MUST_USE oj_status oj_events_add(struct oj_events *events,
                                    const struct oj_event_keys *keys,
                                    const struct oj_flat *reports,
                                    const struct oj_matches *pairs,
                                    struct oj_event_rows *out,
                                    struct oj_error *err);

/** oj_events_add() in two steps, for callers who need memory of their own for
 * the events: all that can fail, *n_most being more than there will be events;
 * and what cannot, of the batch that was prepared last. */
OJ_MUST_USE oj_status oj_events_prepare(struct oj_events *events,
                                        const struct oj_event_keys *keys,
                                        const struct oj_flat *reports,
                                        const struct oj_matches *pairs,
                                        struct oj_event_rows *out,
                                        int64_t *n_most, struct oj_error *err);
void oj_events_finish(struct oj_events *events, const struct oj_matches *pairs,
                      struct oj_event_rows *out);

/** What has been added so far. */
void oj_events_count(const struct oj_events *events,
                     struct oj_event_counts *counts);

const struct oj_event_rules *oj_events_rules(const struct oj_events *events);

/* ---- for the file of a state ----------------------------------------------
 */

/** A key and its features; borrowed. */
struct oj_event_key
{
    int64_t integer;
    const char *text; /**< n_text bytes; NULL: integer */
    int64_t n_text;
    int32_t n; /**< > 0 */
    const int32_t *feature;
};

/** The next key that has features, in the order in which they came; 0: there is
 *  none any more. *at is 0 at first. */
int oj_events_next_key(const struct oj_events *events, int64_t *at,
                       struct oj_event_key *key);

/** Adds a key that is not there yet: OJ_ERR_DATA where it is, where features
 *  are out of range or do not ascend by their ties, or are several of
 *  nearest. */
OJ_MUST_USE oj_status oj_events_put_key(struct oj_events *events,
                                        const struct oj_event_key *key,
                                        struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
