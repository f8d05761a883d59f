/** Internals of layers and indexes, shared by the files of the library. */
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
    struct arrow_features features; /* owns the arrays of flat; zeroed if they
                                       belong to the caller */
    struct arrow_columns columns;   /* owns texts and vectors; zeroed if they
                                       belong to the caller */
    const int64_t *score;           /* [features] the caller's array; NULL: no
                                       scores */
    struct oj_texts texts[OJ_MOST_TEXTS];
    int n_texts;
    const int64_t *number_offset; /* [features + 1] first number of each
                                     feature; NULL: no vectors */
    const double *number;
    int64_t first_row;    /* ordinal of the first feature in its stream */
    pthread_mutex_t lock; /* guards row_number */
    int64_t *row_number;  /* [features] row numbers, in place of missing FIDs;
                             NULL until needed */

    struct ogrjoin_layer *of; /* layer that owns the arrays, if this layer only
                                 adds columns to it; otherwise NULL */

    /* Columns that this layer owns, or NULL. */
    double *own_x, *own_y, *own_max_distance, *own_heading;
    int64_t *own_id, *own_score;
    int32_t *own_on_class, *own_exclude_class;
    int64_t *own_from[OJ_MOST_SPANS], *own_until[OJ_MOST_SPANS];
    int64_t n_without_span[OJ_MOST_SPANS]; /* features without a span */
};

/* Columns of an Arrow schema: the geometries, and the columns to compare. */
struct arrow_record
{
    struct arrow_layout layout;
    struct arrow_fields fields;
};

/* Token sets and vectors of a layer. Zeroed memory is a valid empty value. */
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
    struct oj_flat flat;  /* view of the join side, with token sets and vectors
                             made for this index */
    struct oj_join *join; /* oj_join_acquire() is called for each batch */
    struct api_pair_maker maker;
    struct compared_fields compared;
    int64_t n_dimensions; /* dimensions of vectors; 0: not known yet, since no
                             vector was seen */
    struct oj_word_map *word_map;
    struct oj_dictionary *dictionary[OJ_MOST_TEXTS];
    struct layer_sets sets; /* token sets and vectors of the join side */
    struct device_joins devices;
};

/** Makes an empty layer with a reference count of 1. */
OJ_MUST_USE oj_status api_layer_new(struct ogrjoin_layer **out,
                                    struct oj_error *err);

/** Makes a layer with its own columns that otherwise shares the data of the
 * layer `of`. The new layer holds a reference to `of`. */
OJ_MUST_USE oj_status api_layer_share(struct ogrjoin_layer *of,
                                      struct ogrjoin_layer **out,
                                      struct oj_error *err);

/** Finds the columns of a schema that a layer needs; *out must be zeroed.
 * column: name of the geometry column, or NULL (arrow_layout_read()). The layer
 * needs the columns that `compared` names for this side. Geometries may be
 * missing if the join does not use them. */
OJ_MUST_USE oj_status api_record_find_columns(
    const struct ArrowSchema *schema, const char *column,
    const struct compared_fields *compared, enum api_layer_side side,
    const struct oj_relation *relation, struct arrow_record *out,
    struct oj_error *err);

/** Returns 1 if the join does not use geometries. */
int api_compares_only_attributes(const struct oj_relation *relation);

/** Appends the rows of array to an incomplete layer. array is moved, also on
 * failure. */
OJ_MUST_USE oj_status api_layer_add(struct ogrjoin_layer *layer,
                                    const struct arrow_record *record,
                                    struct ArrowArray *array,
                                    struct oj_error *err);

/** Completes a layer after its last array. settings gives threads and cancel
 * flag; may be NULL. */
OJ_MUST_USE oj_status api_layer_finish(struct ogrjoin_layer *layer,
                                       const struct arrow_record *record,
                                       const struct ogrjoin_settings *settings,
                                       struct oj_error *err);

/** Makes *flat the view of a layer that can be passed to the join of index. Its
 * token sets and vectors are stored in *sets, which must be zeroed before. */
OJ_MUST_USE oj_status api_index_view_input(struct ogrjoin_index *index,
                                           struct ogrjoin_layer *input,
                                           struct layer_sets *sets,
                                           struct oj_flat *flat,
                                           struct oj_error *err);

void api_layer_sets_free(struct layer_sets *sets);

/** Implements ogrjoin_index_new(); settings must not be NULL. */
OJ_MUST_USE oj_status api_index_new(struct ogrjoin_layer *join_side,
                                    const struct ogrjoin_settings *settings,
                                    struct ogrjoin_index **out,
                                    struct oj_error *err);

/** Implements ogrjoin_join(), or ogrjoin_join_lists() if is_lists is 1. */
OJ_MUST_USE oj_status api_index_join(struct ogrjoin_index *index,
                                     struct ogrjoin_layer *input, int is_lists,
                                     struct ogrjoin_pairs **out,
                                     struct oj_error *err);

/** Returns 1 if index gives the pairs of a join with these settings: its own
 * settings are equal, and its features have no classes, maximum distances or
 * ids of their own. Distances in settings must be in units of the CRS. */
int api_index_matches_settings(const struct ogrjoin_index *index,
                               const struct ogrjoin_settings *settings);

/* ---- Arrow streams ------------------------------------------------------- */

/** Reads the schema of a stream into *schema. The caller releases it, also
 * after an error. */
OJ_MUST_USE oj_status api_stream_schema(struct ArrowArrayStream *stream,
                                        struct ArrowSchema *schema,
                                        struct oj_error *err);

/** Reads the next array of a stream; array->release is NULL at the end. */
OJ_MUST_USE oj_status api_stream_next(struct ArrowArrayStream *stream,
                                      struct ArrowArray *array,
                                      struct oj_error *err);

/** Returns the errno that get_next() and get_schema() of a stream return for a
 * status. */
int api_errno_of(oj_status status);

/* ---- events -------------------------------------------------------------- */

/** Events of an index (ogrjoin_events_new()). */
struct ogrjoin_events
{
    struct ogrjoin_index *index; /**< the index, to which the events hold a
                                      reference */
    struct oj_events *events;
    char *options; /**< text that identifies the join in a state file */

    /* The following are for the last batch. */
    struct oj_matches pairs;
    struct oj_event_rows rows;
    int64_t *report, *feature;
    int64_t cap_report, cap_feature;
};

/** Parses the setting events: *with_stays is 1 for "all", 0 for "changes" or
 * NULL. Fails with OJ_ERR_ARG for other words. */
OJ_MUST_USE oj_status api_events_read_setting(const char *words,
                                              int *with_stays,
                                              struct oj_error *err);

/** Makes the events of an index; no key is inside of a feature yet. has_texts
 * 1: keys are texts, 0: integers. conditions: text of all settings that decide
 * pairs but are not in the relation of index, "" for none; a state file with
 * another text is refused. Fails with OJ_ERR_ARG if the join cannot have
 * events. */
OJ_MUST_USE oj_status api_events_new(struct ogrjoin_index *index,
                                     int with_stays, int has_texts,
                                     const char *conditions,
                                     struct ogrjoin_events **out,
                                     struct oj_error *err);

/** Replaces the state by that of a file. If the file is missing, sets *is_there
 * to 0 and empties the state; if is_there is NULL, a missing file is an error.
 * After an error the state is unchanged. */
OJ_MUST_USE oj_status api_events_load(struct ogrjoin_events *events,
                                      const char *path, int *is_there,
                                      struct oj_error *err);

OJ_MUST_USE oj_status api_events_save(const struct ogrjoin_events *events,
                                      const char *path, struct oj_error *err);

#endif
