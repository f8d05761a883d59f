/** Layers and indexes of the library, as its own files see them. */
#ifndef API_INDEX_H
#define API_INDEX_H

#include "api_settings.h"
#include "arrow_features.h"
#include "device_point_join.h"

#include <stdatomic.h>

struct ogrjoin_layer
{
    atomic_int n_users;
    struct oj_flat flat;
    struct arrow_features features; /* of flat; zeroed: the caller's arrays */
    struct arrow_columns columns;   /* of texts and vectors, likewise */
    const int64_t *score;           /* of the caller, or NULL */
    struct oj_texts texts[OJ_MOST_TEXTS];
    int n_texts;
    const int64_t *number_offset; /* [features + 1]; NULL: no vectors */
    const double *number;
    int64_t first_row;    /* number of the first feature */
    pthread_mutex_t lock; /* of what follows */
    int64_t *row_number;  /* [features], or NULL: not needed yet */

    struct ogrjoin_layer *of; /* whose features and texts it shows, or NULL */

    /* What the layer owns of its columns, or NULL. */
    double *own_x, *own_y, *own_max_distance;
    int64_t *own_id, *own_score;
    int32_t *own_on_class, *own_exclude_class;
};

/* What is read of Arrow arrays. */
struct arrow_record
{
    struct arrow_layout layout;
    struct arrow_fields fields;
};

/* The texts of a layer as sets of tokens, and its vectors. Zeroed: none. */
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
    struct oj_flat flat;  /* the join side as it is joined */
    struct oj_join *join; /* taken for each batch */
    struct api_pair_maker maker;
    struct compared_fields compared;
    int64_t n_dimensions; /* of vectors; 0: not known yet */
    struct oj_word_map *word_map;
    struct oj_dictionary *dictionary[OJ_MOST_TEXTS];
    struct layer_sets sets; /* of the join side */
    struct device_joins devices;
};

/** An empty layer with one user. */
OJ_MUST_USE oj_status api_layer_new(struct ogrjoin_layer **out,
                                    struct oj_error *err);

/** A layer of the features, FIDs and texts of another, which it keeps, for
 *  columns of its own. */
OJ_MUST_USE oj_status api_layer_show(struct ogrjoin_layer *of,
                                     struct ogrjoin_layer **out,
                                     struct oj_error *err);

/** Into zeroed *out. compared: what is read of side (enum api_layer_side)
 *  beside the geometries, which may be missing where the join does not look at
 *  them. */
OJ_MUST_USE oj_status api_record_read(const struct ArrowSchema *schema,
                                      const char *column,
                                      const struct compared_fields *compared,
                                      int side,
                                      const struct oj_relation *relation,
                                      struct arrow_record *out,
                                      struct oj_error *err);

/** 1: no geometry decides a pair. */
int api_compares_only_attributes(const struct oj_relation *relation);

/** Adds the rows of array to a layer that is being made; array is moved, in
 *  any case. */
OJ_MUST_USE oj_status api_layer_add(struct ogrjoin_layer *layer,
                                    const struct arrow_record *record,
                                    struct ArrowArray *array,
                                    struct oj_error *err);

/** After the last array. settings: threads and cancel; or NULL. */
OJ_MUST_USE oj_status api_layer_finish(struct ogrjoin_layer *layer,
                                       const struct arrow_record *record,
                                       const struct ogrjoin_settings *settings,
                                       struct oj_error *err);

/** The layer as it is joined with index, whose texts lie in zeroed sets. */
OJ_MUST_USE oj_status api_index_view_input(struct ogrjoin_index *index,
                                           struct ogrjoin_layer *input,
                                           struct layer_sets *sets,
                                           struct oj_flat *flat,
                                           struct oj_error *err);

void api_layer_sets_free(struct layer_sets *sets);

/** ogrjoin_index_new() with settings that are not NULL. */
OJ_MUST_USE oj_status api_index_new(struct ogrjoin_layer *join_side,
                                    const struct ogrjoin_settings *settings,
                                    struct ogrjoin_index **out,
                                    struct oj_error *err);

/** ogrjoin_join(), or with is_lists ogrjoin_join_lists(). */
OJ_MUST_USE oj_status api_index_join(struct ogrjoin_index *index,
                                     struct ogrjoin_layer *input, int is_lists,
                                     struct ogrjoin_pairs **out,
                                     struct oj_error *err);

/* ---- Arrow streams --------------------------------------------------------
 */

/** Into *schema, released by the caller, after an error too. */
OJ_MUST_USE oj_status api_stream_schema(struct ArrowArrayStream *stream,
                                        struct ArrowSchema *schema,
                                        struct oj_error *err);

/** array->release NULL: the end. */
OJ_MUST_USE oj_status api_stream_next(struct ArrowArrayStream *stream,
                                      struct ArrowArray *array,
                                      struct oj_error *err);

/** What get_next() and get_schema() of a stream give for a status. */
int api_errno_of(oj_status status);

#endif
