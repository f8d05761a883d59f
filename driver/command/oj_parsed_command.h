/** What a user asks for: the words of a command line as one plain struct.
 *
 *  Every option is one row of a table (oj_option_table.h).  The words without a
 *  destination also name a dataset, so the parser neither prints nor exits.
 *  Habits are ogr2ogr's: one dash (two are taken too), case does not matter,
 *  the destination comes first.
 */
#ifndef OJ_PARSED_COMMAND_H
#define OJ_PARSED_COMMAND_H

#include "../../algs/api/rows/oj_distance_unit.h"
#include "../../algs/foundations/relation/oj_compared_fields.h"
#include "../../algs/foundations/relation/oj_relation.h"
#include "../../flatten/base/oj_output_row_modes.h"
#include "../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum oj_crs_mode
{
    OJ_CRS_AUTO = 0, /**< the join side is reprojected; a missing CRS adopted */
    OJ_CRS_STRICT,   /**< a difference or a missing CRS is an error */
    OJ_CRS_IGNORE    /**< coordinates are taken as they are */
};

/** Sides of which a representative point is joined. */
enum oj_which_side
{
    OJ_SIDE_INPUT = 0,
    OJ_SIDE_JOIN,
    OJ_SIDE_BOTH
};

enum oj_invalid_mode
{
    OJ_INVALID_USE = 0, /**< as they are, with a count */
    OJ_INVALID_SKIP,    /**< they join nothing */
    OJ_INVALID_FIX,     /**< made valid for the join; the output keeps them */
    OJ_INVALID_FAIL
};

enum oj_layer_type
{
    OJ_LAYER_AS_IS = 0,
    OJ_LAYER_MULTI, /**< single shapes become multi */
    OJ_LAYER_NONE   /**< no geometry */
};

enum
{
    OJ_MAX_THREADS = 4096
};

/** What is asked of one of the two inputs. Strings may be NULL. */
struct oj_source_options
{
    const char *dataset;
    const char *layer;
    const char *sql;
    const char *dialect;
    const char *where;
    const char *select;        /**< comma-separated; "": no fields */
    const char *srs;           /**< replaces the layer's own CRS */
    const char **open_options; /**< NULL-terminated, or NULL */
};

/** What is asked of an output. Strings may be NULL. */
struct oj_output_options
{
    const char *dst; /**< of a command: NULL with in_place and benchmark, and of
                          datasets; with write_spec it can be NULL */
    const char *format;
    const char **dataset_options; /**< -dsco; NULL-terminated, or NULL */
    const char **layer_options;   /**< -lco */
    const char **open_options;    /**< -doo */
    const char *layer;            /**< -nln */
    const char *unmatched_layer, *unmatched_join_layer;
    int overwrite, append, update;
    int unset_fid;
    int layer_type; /**< enum oj_layer_type */
};

#define OJ_MAX_OPTIONS 112

struct oj_command
{
    /* What to join. */
    struct oj_relation relation; /**< the join and its parameters, distances as
                                      written; intersects with is_window */
    int is_window;               /**< -op window: against boxes */
    const double *windows;       /**< [4 * n_windows] xmin ymin xmax ymax */
    int64_t n_windows;           /**< > 0: they are the join side, and
                                       join.dataset is "-window" */
    const char *max_distance_field, *join_max_distance_field;
    const char **exclude; /**< self, same_geometry, field=F; NULL-terminated */
    int unordered_pairs;
    const char *on;       /**< "LEFT=RIGHT,..." or NULL */
    const char **similar; /**< the words of each -similar; their measures and
                               thresholds are in relation */
    struct oj_similar similar_fields[OJ_MOST_TEXTS]; /**< what they say */
    const char *min_similarity;                      /**< T, or NULL */
    const char *vector; /**< the words of -vector, or NULL; its norm and what
                             it allows are in relation */
    struct oj_vector_words vector_fields; /**< what they say */
    const char *max_difference;           /**< D, or NULL */
    int measure;                          /**< enum oj_text_measure */
    int tokens, fold;                     /**< as in struct oj_token_rules */
    const char *word_map;                 /**< what the file holds, or NULL */
    int centroid_of;                      /**< enum oj_which_side, when given */
    int point_on_surface_of;              /**< the same */
    int invalid;                          /**< enum oj_invalid_mode */
    int how;                              /**< enum oj_how; by default left,
                                               inner with is_window */
    int one_to_one;
    const char *pick, *aggregates; /**< -pick, -agg; or NULL */
    const char *prefix;

    /* Columns and geometry of the output. */
    const char *name_count, *name_distance, *name_rank, *name_fid;
    const char *name_similarity, *name_difference;
    const char *overlap; /**< area, length, percent, with commas; or NULL */
    int nearest_point_fields, bearing_field;
    int geometry; /**< enum oj_write_geometry */

    /* The two sides. */
    struct oj_source_options input, join;
    double spat[4]; /**< xmin ymin xmax ymax, when has_spat */
    int has_spat;
    int64_t limit; /**< rows of the input side; -1: all */

    /* Coordinate reference systems. */
    int crs; /**< enum oj_crs_mode */
    const char *t_srs, *a_srs;

    /* Where the answer goes. */
    struct oj_output_options output;
    int in_place, in_place_unsafe;

    /* How to run. */
    const char *backend;
    int64_t threads; /**< 0: all */
    int64_t batch;
    int64_t quadrant_size; /**< 0: the backend's own */
    uint64_t gpus;         /**< bits of devices; 0: the first */
    int64_t gpu_memory;    /**< bytes on each; 0: what is free */
    int64_t gpu_batch;     /**< rows; 0: chosen */
    int64_t memory;        /**< bytes; 0: no bound */
    int64_t max_pairs;     /**< 0: no bound */
    int explain;
    const char *write_spec; /**< file that is to hold the words, or NULL */

    /* Proof. */
    const char *validate; /**< backend to compare with, or NULL */
    const char *validate_report;
    int benchmark;
    const char *benchmark_csv;
    double benchmark_seconds;

    /* Messages. */
    int quiet, progress;
    const char *json_summary;
    int help;

    int is_dataset;     /**< made by oj_command_parse_line(): quiet is 1 */
    const char **words; /**< owned: all that were given; NULL-terminated */
    unsigned char given[OJ_MAX_OPTIONS]; /**< by row of the table */
    unsigned char unit[OJ_MAX_OPTIONS];  /**< enum oj_unit of distances, too */
    char **texts; /**< owned string list: texts above that are no word */
};

/** Reads argv[0 .. argc - 1] (no program name) into *command, which owns copies
 *  of all it needs and is freed by oj_command_free().  With -help among the
 *  words nothing else is checked.  OJ_ERR_ARG with one line saying what is
 *  wrong and what to write instead.  Where -op is not among the words, the join
 *  is the one that the other options mean: relate with -relate, window with
 *  -window, nearest with -k, -ties or -distance_to, dwithin with one of the
 *  fields of distances; where none of these tells, similar with -similar or
 *  -vector, else intersects. */
OJ_MUST_USE oj_status oj_command_parse(int argc, const char *const *argv,
                                       struct oj_command *command,
                                       struct oj_error *err);

/** Reads the words of a dataset (dataset/oj_dataset_name.h), in one text as a
 *  shell parts them: there is no destination, and options that only a run
 *  has are refused.  folder: of a file that holds the words, to which their
 *  paths are relative; "": they are relative to the current one. */
OJ_MUST_USE oj_status oj_command_parse_line(const char *line,
                                            const char *folder,
                                            struct oj_command *command,
                                            struct oj_error *err);

/** 1 when the option of that name (not an alias) was among the words. */
int oj_command_given(const struct oj_command *command, const char *name);

/** 1 when that option, of enum oj_which_side, is given and speaks of a side. */
int oj_command_is_of_side(const struct oj_command *command, const char *name,
                          int side);

/** 1 when geometries of both sides are looked at: not where only attributes
 *  are. */
int oj_command_needs_shapes(const struct oj_command *command);

/** The distance that this option gave. */
struct oj_distance oj_command_distance(const struct oj_command *command,
                                       const char *name);

/** "intersects", "window": what -op would be. */
const char *oj_command_op_name(const struct oj_command *command);

/** Accepts zeroed memory. */
void oj_command_free(struct oj_command *command);

#ifdef __cplusplus
}
#endif
#endif
