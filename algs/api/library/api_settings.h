/** The settings of the library, by name: parameters of joins, how joins run,
 * values of pairs, and contents of rows. */
#ifndef API_SETTINGS_H
#define API_SETTINGS_H

#include "../../ogrjoin.h"

#include "../../../flatten/text/oj_token_sets.h"
#include "../rows/oj_crs_text.h"
#include "../rows/oj_distance_unit.h"
#include "../rows/oj_row_words.h"
#include "api_pairs.h"
#include "arrow_compared_columns.h"

enum
{
    API_BACKEND_NAME = 40,
    API_MOST_SETTINGS = 144
};

/** The side of the join that a layer is read for. */
enum api_layer_side
{
    API_SIDE_NONE = 0,
    API_SIDE_LEFT,
    API_SIDE_RIGHT
};

/** Returns "left" or "right"; side must be one of the two. */
const char *api_side_name(enum api_layer_side side);

/** Returns the status of an error in the columns or the data of a side, and
 * writes the message of why to *err, after the name of the side: "left side:
 * row 1: ...". Errors of another kind, and those without a side, keep their
 * message. */
OJ_MUST_USE oj_status api_fail_on_side(enum api_layer_side side,
                                       oj_status status,
                                       const struct oj_error *why,
                                       struct oj_error *err);

/** Settings for joins of rows, except those that are stored as text. */
struct api_row_settings
{
    int how;      /**< enum oj_how */
    int geometry; /**< enum oj_write_geometry, or API_GEOMETRY_NONE */
    int parts;    /**< parts of intersections that are kept: 0: all; otherwise 1
                       + the argument of oj_row_request_kept_parts() */
    int crs;      /**< enum api_crs_mode */
    int64_t batch_rows, input_rows;
    int right_is_part; /**< 1: the right side is one tile of a layer, so with
                           along=m all its lines may lack M values */
    struct oj_distance max_distance, min_distance, densify;

    /* Callbacks; they do not count when settings are compared. */
    int (*report)(void *user, int64_t rows, int64_t n_rows);
    void *report_user;
    void (*notice)(void *user, const char *message);
    void *notice_user;
    struct oj_crs_callbacks crs_callbacks;
};

enum
{
    API_GEOMETRY_NONE = OJ_WRITE_SHAPE + 1
};
#define API_GEOMETRY_WORDS OJ_ROW_GEOMETRY_WORDS "|none"

enum api_crs_mode
{
    API_CRS_CHECK = 0,
    API_CRS_IGNORE
};

/** All settings. relation must be the first member: the table of parameters has
 * offsets into it. */
struct ogrjoin_settings
{
    struct oj_relation relation;
    struct oj_options options;
    char backend[API_BACKEND_NAME];
    struct api_pair_settings pairs;
    struct oj_token_rules rules; /**< tokenisation of texts */
    int measure;                 /**< enum oj_text_measure, common to all
                                      conditions on texts */
    int64_t min_similarity[2];   /**< minimum similarity as numerator and
                                      denominator; 0, 0: not set */
    int has_k;
    int side;          /**< enum api_layer_side for layers read from Arrow */
    int64_t first_row; /**< number of the first row of these layers */
    struct api_row_settings rows;
    int tree;    /**< setting of live indexes: enum oj_live_tree */
    int changes; /**< 1: the result has only the pairs that are new or have gone
                      since the last call (joins of near pairs) */

    /* Owned texts; NULL in the copy that an index holds. */
    char *word_map;                 /**< contents of the file, or NULL */
    char *similar, *vector;         /**< text of the settings, or NULL */
    char *given[API_MOST_SETTINGS]; /**< value of each setting as the user gave
                                         it; NULL: not set, or reset by "" */
};

/** Returns the value of a setting as it was given, as text, or NULL if it was
 * not set. */
const char *api_setting_text_as_given(const struct ogrjoin_settings *settings,
                                      const char *name);

/** Returns a copy of the struct in which the texts that settings owns are NULL.
 */
struct ogrjoin_settings
api_settings_copy_without_texts(const struct ogrjoin_settings *settings);

/** Sets *out to a deep copy of settings, or to the defaults if settings is
 * NULL. */
OJ_MUST_USE oj_status api_settings_copy(const struct ogrjoin_settings *settings,
                                        struct ogrjoin_settings **out,
                                        struct oj_error *err);

/** Returns 1 if joins with the settings a and b find equal pairs, and a and b
 * share one cancel flag or have none. Only settings that decide which pairs are
 * found are compared, not settings of the rows that are made of pairs (pick,
 * agg, geometry ..). */
int api_settings_are_equal_for_pairs(const struct ogrjoin_settings *a,
                                     const struct ogrjoin_settings *b);

/** Returns 1 if all settings have equal values in a and b, and a and b share
 * one cancel flag or have none. Callbacks are not compared. */
int api_settings_are_equal(const struct ogrjoin_settings *a,
                           const struct ogrjoin_settings *b);

/** Returns the number of threads; settings may be NULL. */
int api_settings_threads(const struct ogrjoin_settings *settings);

/** Parses the settings similar and vector. The caller frees *out, also after an
 * error. */
OJ_MUST_USE oj_status api_settings_parse_compared_fields(
    const struct ogrjoin_settings *settings, struct compared_fields *out,
    struct oj_error *err);

/** Parses the settings within_time and during into words, and sets *n to the
 * number of those that are set. The caller frees words (oj_span_words_free()),
 * also after an error. */
OJ_MUST_USE oj_status api_settings_parse_spans(
    const struct ogrjoin_settings *settings,
    struct oj_span_words words[OJ_MOST_SPANS], int *n, struct oj_error *err);

/** Parses the setting heading. *field becomes the name of the column, which the
 * caller frees (oj_free()), or NULL without the setting; *tolerance is in
 * degrees. */
OJ_MUST_USE oj_status api_settings_parse_heading(
    const struct ogrjoin_settings *settings, char **field, double *tolerance,
    struct oj_error *err);

/** Sets relation->k to the default of its op, unless the settings give k. */
void api_settings_set_default_k(const struct ogrjoin_settings *settings,
                                struct oj_relation *relation);

/** Fails with OJ_ERR_ARG if a distance has a unit. Only joins of rows have a
 * CRS to convert it. */
OJ_MUST_USE oj_status api_settings_check_units(
    const struct ogrjoin_settings *settings, struct oj_error *err);

/** Fails with OJ_ERR_ARG if a setting has no effect on a join of rows, or
 * clashes with another. */
OJ_MUST_USE oj_status api_settings_check_rows(
    const struct ogrjoin_settings *settings, struct oj_error *err);

/** The sides of a join that returns pairs. */
enum api_pair_sides
{
    API_PAIRS_OF_LAYERS = 0, /**< two layers */
    API_PAIRS_WITH_KEPT,     /**< a layer and the points of a kept index */
    API_PAIRS_OF_KEPT_POINTS /**< the points of a kept index: near pairs */
};

/** Fails with OJ_ERR_ARG if a setting has no effect on the pairs of these
 * sides, or clashes with another. */
OJ_MUST_USE oj_status
api_settings_check_pairs(const struct ogrjoin_settings *settings,
                         enum api_pair_sides sides, struct oj_error *err);

/** Calls the notice callback of the settings, if there is one. */
void api_settings_notify(const struct ogrjoin_settings *settings,
                         const char *format, ...) OJ_PRINTF(2, 3);

#endif
