/** The settings of the library by name: parameters of joins, how they run,
 * values of pairs, and the content of rows. */
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

/** The side for which a layer is read from Arrow. */
enum api_layer_side
{
    API_SIDE_NONE = 0,
    API_SIDE_LEFT,
    API_SIDE_RIGHT
};

/** Settings of joins of rows, except texts that are stored as given. */
struct api_row_settings
{
    int how;      /**< enum oj_how */
    int geometry; /**< enum oj_write_geometry, or API_GEOMETRY_NONE */
    int parts;    /**< 0: all; else 1 + the argument of oj_row_keep_parts() */
    int crs;      /**< enum api_crs_mode */
    int64_t batch_rows, input_rows;
    struct oj_distance max_distance, min_distance, densify;

    /* Callbacks; api_settings_find_alike() ignores them. */
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

/** relation must be the first member: the table of parameters has offsets into
 * it. */
struct ogrjoin_settings
{
    struct oj_relation relation;
    struct oj_options options;
    char backend[API_BACKEND_NAME];
    struct api_pair_settings pairs;
    struct oj_token_rules rules; /**< tokenisation of texts */
    int measure;                 /**< enum oj_text_measure, for all
                                      conditions */
    int64_t min_similarity[2];   /**< numerator, denominator; 0, 0: not set */
    int has_k;
    int side; /**< enum api_layer_side, for layers that are read from Arrow */
    struct api_row_settings rows;
    int tree;    /**< of a kept index, enum oj_live_tree */
    int changes; /**< of near pairs: only those that came or went */

    /* Owned; NULL in the copy that an index has. */
    char *word_map;                 /**< content of the file, or NULL */
    char *similar, *vector;         /**< values of the settings, or NULL */
    char *given[API_MOST_SETTINGS]; /**< last value of each setting; NULL:
                                         not set, or reset to the default by
                                         "" */
};

/** The value of a setting as it was given; NULL: not set. */
const char *api_setting_given(const struct ogrjoin_settings *settings,
                              const char *name);

/** A copy of the struct without the owned texts. */
struct ogrjoin_settings
api_settings_view(const struct ogrjoin_settings *settings);

/** A deep copy; settings NULL: the defaults. */
OJ_MUST_USE oj_status api_settings_copy(const struct ogrjoin_settings *settings,
                                        struct ogrjoin_settings **out,
                                        struct oj_error *err);

/** 1 if a and b have equal values in all settings that affect which pairs are
 *  found. Settings of the rows that are made from pairs (pick, agg, geometry
 *  ..) are not compared. */
int api_settings_find_alike(const struct ogrjoin_settings *a,
                            const struct ogrjoin_settings *b);

/** 1 if all settings were given equal values in a and b, and both have one
 *  cancel flag. Callbacks are not compared. */
int api_settings_are_equal(const struct ogrjoin_settings *a,
                           const struct ogrjoin_settings *b);

/** Number of threads; settings may be NULL. */
int api_settings_threads(const struct ogrjoin_settings *settings);

/** Parses the settings similar and vector. The caller frees *out, also after an
 * error. */
OJ_MUST_USE oj_status
api_settings_compared(const struct ogrjoin_settings *settings,
                      struct compared_fields *out, struct oj_error *err);

/** Parses the settings within_time and during; *n of them are there. The caller
 * frees words (oj_span_words_free()), also after an error. */
OJ_MUST_USE oj_status api_settings_spans(
    const struct ogrjoin_settings *settings,
    struct oj_span_words words[OJ_MOST_SPANS], int *n, struct oj_error *err);

/** Sets k of relation to the default of its op, if settings do not give k. */
void api_settings_complete_k(const struct ogrjoin_settings *settings,
                             struct oj_relation *relation);

/** OJ_ERR_ARG if a distance has a unit: only joins of rows have a CRS to
 * convert it. */
OJ_MUST_USE oj_status api_settings_check_units(
    const struct ogrjoin_settings *settings, struct oj_error *err);

/** OJ_ERR_ARG if a setting has no effect on a join of rows, or clashes with
 * another. */
OJ_MUST_USE oj_status api_settings_check_rows(
    const struct ogrjoin_settings *settings, struct oj_error *err);

/** Calls the notice of settings, if there is one. */
void api_settings_notify(const struct ogrjoin_settings *settings,
                         const char *format, ...) OJ_PRINTF(2, 3);

#endif
