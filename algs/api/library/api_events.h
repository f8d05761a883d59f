/** Events of the library: the machine of algs/pairs/events for an index, with
 *  what its state belongs to.  Used by the public functions and by streams of
 *  rows. */
#ifndef API_EVENTS_H
#define API_EVENTS_H

#include "../../pairs/events/oj_event_state.h"
#include "api_index.h"

struct ogrjoin_events
{
    struct ogrjoin_index *index; /**< one of its users */
    struct oj_events *events;
    char *options; /**< of the state */

    /* Of the latest batch. */
    struct oj_matches pairs;
    struct oj_event_rows rows;
    int64_t *report, *feature;
    int64_t cap_report, cap_feature;
};

/** 1: "all", 0: "changes"; OJ_ERR_ARG: another word. words NULL: changes. */
OJ_MUST_USE oj_status api_events_read_words(const char *words, int *with_stays,
                                            struct oj_error *err);

/** Without keys.
 *  conditions  what decides pairs beside the relation of the index, as words;
 *              ""
 *  OJ_ERR_ARG: a join that has no events */
OJ_MUST_USE oj_status api_events_new(struct ogrjoin_index *index,
                                     int with_stays, int has_texts,
                                     const char *conditions,
                                     struct ogrjoin_events **out,
                                     struct oj_error *err);

/** *is_there NULL: a file that is not there is an error. */
OJ_MUST_USE oj_status api_events_load(struct ogrjoin_events *events,
                                      const char *path, int *is_there,
                                      struct oj_error *err);

OJ_MUST_USE oj_status api_events_save(const struct ogrjoin_events *events,
                                      const char *path, struct oj_error *err);

#endif
