/** Settings of the library by name: the parameters of joins, how they run, what
 *  is made of pairs, and what rows hold. */
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
    API_MOST_SETTINGS = 120
};

/** enum layer_side: which side a layer is that is read from Arrow. */
enum api_layer_side
{
    API_SIDE_NONE = 0,
    API_SIDE_LEFT,
    API_SIDE_RIGHT
};

/** What is asked of rows, beside the words that are kept as they are written.
 */
struct api_row_settings
{
    int how;      /**< enum oj_how */
    int geometry; /**< enum oj_write_geometry, or API_GEOMETRY_NONE */
    int crs;      /**< enum api_crs_mode */
    int64_t batch_rows, input_rows;
    struct oj_distance max_distance, min_distance, densify;

    /* What callers do; not compared by api_settings_are_equal(). */
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

/** relation comes first: the offsets of parameters are those in it. */
struct ogrjoin_settings
{
    struct oj_relation relation;
    struct oj_options options;
    char backend[API_BACKEND_NAME];
    struct api_pair_settings pairs;
    struct oj_token_rules rules; /**< of texts */
    int measure;                 /**< enum oj_text_measure of all conditions */
    int64_t min_similarity[2];   /**< numerator, denominator; 0, 0: none */
    int has_k;
    int side; /**< of a layer that is read, enum api_layer_side */
    struct api_row_settings rows;
    int tree;    /**< of a kept index, enum oj_live_tree */
    int changes; /**< of near pairs: only those that came or went */

    /* Owned; not in the copy that an index has. */
    char *word_map;                 /**< what the file holds, or NULL */
    char *similar, *vector;         /**< the words, or NULL */
    char *given[API_MOST_SETTINGS]; /**< as each was set last; NULL: it was not
                                         or to its default by "" */
};

/** The words of a setting as they were given, or NULL. */
const char *api_setting_given(const struct ogrjoin_settings *settings,
                              const char *name);

/** A copy, without what is owned. */
struct ogrjoin_settings
api_settings_view(const struct ogrjoin_settings *settings);

/** A copy; settings NULL: the defaults. */
OJ_MUST_USE oj_status api_settings_copy(const struct ogrjoin_settings *settings,
                                        struct ogrjoin_settings **out,
                                        struct oj_error *err);

/** 1: the pairs that two settings ask for, and how they are found, are alike,
 *  whatever is made of them. */
int api_settings_find_alike(const struct ogrjoin_settings *a,
                            const struct ogrjoin_settings *b);

/** 1: what was given is alike in all, what callers do aside. */
int api_settings_are_equal(const struct ogrjoin_settings *a,
                           const struct ogrjoin_settings *b);

/** Threads that settings ask for, which may be NULL. */
int api_settings_threads(const struct ogrjoin_settings *settings);

/** What settings compare; freed by the caller, after an error too. */
OJ_MUST_USE oj_status
api_settings_compared(const struct ogrjoin_settings *settings,
                      struct compared_fields *out, struct oj_error *err);

/** OJ_ERR_ARG: a distance in a unit, which only rows have a CRS for. */
OJ_MUST_USE oj_status api_settings_check_units(
    const struct ogrjoin_settings *settings, struct oj_error *err);

/** OJ_ERR_ARG: one of what is given has no effect on a join of rows, or does
 *  not go together with another. */
OJ_MUST_USE oj_status api_settings_check_rows(
    const struct ogrjoin_settings *settings, struct oj_error *err);

/** Calls the notice of settings, if there is one. */
void api_settings_notify(const struct ogrjoin_settings *settings,
                         const char *format, ...) OJ_PRINTF(2, 3);

#endif
