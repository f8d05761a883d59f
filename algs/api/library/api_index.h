/** Internal structs and functions of layers and indexes. */
#ifndef API_INDEX_H
#define API_INDEX_H

#include "../../pairs/events/oj_event_state.h"
#include "api_settings.h"
#include "arrow_features.h"
#include "device_point_join.h"

#include <stdatomic.h>

struct ogrjoin_layer
{
    atomic_int n_users;
    struct oj_flat flat;
    struct arrow_features features; /* owner of flat's arrays; zeroed if they
                                       are the caller's */
    struct arrow_columns columns;   /* owner of texts and vectors, likewise */
    const int64_t *score;           /* the caller's array, or NULL */
    struct oj_texts texts[OJ_MOST_TEXTS];
    int n_texts;
    const int64_t *number_offset; /* [features + 1]; NULL: no vectors */
    const double *number;
    int64_t first_row;    /* number of the first feature in its stream */
    pthread_mutex_t lock; /* guards row_number */
    int64_t *row_number;  /* [features] row numbers as FIDs; NULL: not used
                             yet */

    struct ogrjoin_layer *of; /* layer whose features and texts this one
                                 shares, or NULL */

    /* Columns that the layer itself owns, or NULL. */
    double *own_x, *own_y, *own_max_distance;
    int64_t *own_id, *own_score;
    int32_t *own_on_class, *own_exclude_class;
    int64_t *own_from[OJ_MOST_SPANS], *own_until[OJ_MOST_SPANS];
};

/* Layout of a schema: its geometries, and the columns to compare. */
struct arrow_record
{
    struct arrow_layout layout;
    struct arrow_fields fields;
};

/* The texts of a layer as token sets, and its vectors. Zeroed: none. */
struct layer_sets
{
    double *vector;
    struct oj_token_sets_buf made[OJ_MOST_TEXTS];
    struct oj_token_sets view[OJ_MOST_TEXTS];
};

struct ogrjoin_index
{
    atomic_int n_users;
    struct ogrjoin_layer *join_side;
    struct ogrjoin_settings settings;
    struct oj_flat flat;  /* view of the join side, as it is joined */
    struct oj_join *join; /* each batch takes it (oj_join_take()) */
    struct api_pair_maker maker;
    struct compared_fields compared;
    int64_t n_dimensions; /* dimensions of vectors; 0: not known yet */
    struct oj_word_map *word_map;
    struct oj_dictionary *dictionary[OJ_MOST_TEXTS];
    struct layer_sets sets; /* token sets and vectors of the join side */
    struct device_joins devices;
};

/** Makes an empty layer with one user. */
OJ_MUST_USE oj_status api_layer_new(struct ogrjoin_layer **out,
                                    struct oj_error *err);

/** Makes a layer with columns of its own that shares features, FIDs and texts
 * of another layer, which it keeps alive. */
OJ_MUST_USE oj_status api_layer_show(struct ogrjoin_layer *of,
                                     struct ogrjoin_layer **out,
                                     struct oj_error *err);

/** Reads a schema into zeroed *out. compared: columns to read for this side
 * (enum api_layer_side); geometries may be missing if the join does not use
 * them. */
OJ_MUST_USE oj_status api_record_read(const struct ArrowSchema *schema,
                                      const char *column,
                                      const struct compared_fields *compared,
                                      int side,
                                      const struct oj_relation *relation,
                                      struct arrow_record *out,
                                      struct oj_error *err);

/** 1 if geometries play no part in the join. */
int api_compares_only_attributes(const struct oj_relation *relation);

/** Adds the rows of array to a layer that is being made; array is moved, also
 * on failure. */
OJ_MUST_USE oj_status api_layer_add(struct ogrjoin_layer *layer,
                                    const struct arrow_record *record,
                                    struct ArrowArray *array,
                                    struct oj_error *err);

/** Completes a layer after its last array. settings: for threads and cancel;
 * may be NULL. */
OJ_MUST_USE oj_status api_layer_finish(struct ogrjoin_layer *layer,
                                       const struct arrow_record *record,
                                       const struct ogrjoin_settings *settings,
                                       struct oj_error *err);

/** Views the layer as it is joined with index; its token sets and vectors are
 * made in sets, which must be zeroed. */
OJ_MUST_USE oj_status api_index_view_input(struct ogrjoin_index *index,
                                           struct ogrjoin_layer *input,
                                           struct layer_sets *sets,
                                           struct oj_flat *flat,
                                           struct oj_error *err);

void api_layer_sets_free(struct layer_sets *sets);

/** ogrjoin_index_new(), for settings that are not NULL. */
OJ_MUST_USE oj_status api_index_new(struct ogrjoin_layer *join_side,
                                    const struct ogrjoin_settings *settings,
                                    struct ogrjoin_index **out,
                                    struct oj_error *err);

/** ogrjoin_join(), or with is_lists ogrjoin_join_lists(). */
OJ_MUST_USE oj_status api_index_join(struct ogrjoin_index *index,
                                     struct ogrjoin_layer *input, int is_lists,
                                     struct ogrjoin_pairs **out,
                                     struct oj_error *err);

/** 1: index answers a join with these settings: its own are equal, its features
 *  have no classes or distances that would change the pairs, and no ids, so
 *  that it returns row numbers of the layer.
 *  Distances of settings are in units of the CRS. */
int api_index_answers(const struct ogrjoin_index *index,
                      const struct ogrjoin_settings *settings);

/* ---- Arrow streams --------------------------------------------------------
 */

/** Reads the schema into *schema. The caller releases it, also after an error.
 */
OJ_MUST_USE oj_status api_stream_schema(struct ArrowArrayStream *stream,
                                        struct ArrowSchema *schema,
                                        struct oj_error *err);

/** Reads the next array; array->release is NULL at the end. */
OJ_MUST_USE oj_status api_stream_next(struct ArrowArrayStream *stream,
                                      struct ArrowArray *array,
                                      struct oj_error *err);

/** The errno that get_next() and get_schema() return for a status. */
int api_errno_of(oj_status status);

/* ---- events ---------------------------------------------------------------
 */

/** The events of an index, with what their state belongs to (api_events.c). */
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
