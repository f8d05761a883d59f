/** A parsed command line as one plain struct.
 *
 *  Every option is one row of a table (oj_option_table.h). The options and
 *  sources can also name a dataset (JOIN:), so the parser neither prints nor
 *  exits. Conventions are those of ogr2ogr: one dash (two are accepted), case
 *  does not matter, the destination comes first.
 */
#ifndef OJ_PARSED_COMMAND_H
#define OJ_PARSED_COMMAND_H

#include "../../algs/api/rows/oj_distance_unit.h"
#include "../../algs/foundations/relation/oj_compared_fields.h"
#include "../../algs/foundations/relation/oj_relation.h"
#include "../../flatten/arrays/oj_pair_values.h"
#include "../../flatten/base/oj_output_row_modes.h"
#include "../../flatten/base/oj_status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum oj_crs_mode
{
    /** the join side is reprojected to the CRS of the input side; a missing CRS
     *  is assumed to be that of the other side */
    OJ_CRS_AUTO = 0,
    OJ_CRS_STRICT, /**< different or missing CRS are an error */
    OJ_CRS_IGNORE  /**< coordinates are compared as they are */
};

/** Sides whose features an option replaces by a representative point. */
enum oj_which_side
{
    OJ_SIDE_INPUT = 0,
    OJ_SIDE_JOIN,
    OJ_SIDE_BOTH
};

enum oj_invalid_mode
{
    OJ_INVALID_USE = 0, /**< invalid polygons are used as they are, and
                             counted */
    OJ_INVALID_SKIP,    /**< invalid polygons are in no pair */
    /** invalid polygons are made valid for the join; the output keeps the
     *  originals */
    OJ_INVALID_FIX,
    OJ_INVALID_FAIL
};

enum oj_layer_type
{
    OJ_LAYER_AS_IS = 0,
    OJ_LAYER_MULTI, /**< single geometries become multi-geometries */
    OJ_LAYER_NONE,  /**< rows have no geometry */

    /* Intersections keep only parts of this kind, as multi-geometries. */
    OJ_LAYER_POLYGON,
    OJ_LAYER_LINE,
    OJ_LAYER_POINT
};

/** Returns 1 if intersections keep only the parts of one kind. */
static inline int oj_layer_type_keeps_parts(int layer_type)
{
    return layer_type >= OJ_LAYER_POLYGON;
}

/** Returns 1 if geometries are written as multi-geometries. */
static inline int oj_layer_type_is_multi(int layer_type)
{
    return layer_type == OJ_LAYER_MULTI ||
           oj_layer_type_keeps_parts(layer_type);
}

enum
{
    OJ_MAX_THREADS = 4096
};

/** Options of one of the two inputs. Strings may be NULL. */
struct oj_source_options
{
    const char *dataset;
    const char *layer;
    const char *sql;
    const char *dialect;
    const char *where;
    /** comma-separated fields to copy; "" for no field, NULL for all fields */
    const char *select;
    const char *srs;           /**< replaces the layer's own CRS */
    const char *geometry;      /**< the column of geometries */
    const char **open_options; /**< NULL-terminated, or NULL */
};

/** Options of the output. Strings may be NULL. */
struct oj_output_options
{
    /** path or dataset of the output; NULL with in_place, with benchmark and
     *  for datasets (JOIN:); may be NULL with write_spec */
    const char *dst;
    const char *format;
    const char **dataset_options; /**< -dsco; NULL-terminated, or NULL */
    const char **layer_options;   /**< -lco; NULL-terminated, or NULL */
    const char **open_options;    /**< -doo; NULL-terminated, or NULL */
    const char *layer;            /**< -nln */
    const char *unmatched_layer, *unmatched_join_layer;
    int overwrite, append, update;
    int unset_fid;
    int layer_type; /**< enum oj_layer_type */
};

#define OJ_MAX_OPTIONS 128

struct oj_command
{
    /** the join and its parameters. Distances are the numbers that the user
     *  wrote, in the units of `unit`. If is_window is 1, the join is
     *  intersects. */
    struct oj_relation relation;
    /** 1 if -op is window: boxes are the join side, those of -window or the
     *  envelopes of the join features */
    int is_window;
    const double *windows; /**< [4 * n_windows] xmin ymin xmax ymax */
    /** number of boxes of -window, 0 without this option; if > 0, these boxes
     *  are the join side, and join.dataset is "-window" */
    int64_t n_windows;
    const char *max_distance_field, *join_max_distance_field;
    const char **exclude; /**< self, same_geometry, field=F; NULL-terminated */
    int unordered_pairs;
    const char *on; /**< "LEFT=RIGHT,..." or NULL */
    /** arguments of -within_time and -during, or NULL */
    const char *within_time, *during;
    /** fields named by within_time and during; [relation.n_spans] */
    struct oj_span_words span_words[OJ_MOST_SPANS];
    const char *heading; /**< argument of -heading, or NULL */
    /** field named by `heading`, or NULL; the tolerance of the angle is in
     *  `relation` */
    char *heading_field;
    /** the arguments of each -similar; their measures and thresholds are in
     *  `relation` */
    const char **similar;
    /** fields named by `similar` */
    struct oj_similar similar_fields[OJ_MOST_TEXTS];
    const char *min_similarity; /**< argument of -min_similarity, or NULL */
    /** argument of -vector, or NULL; its norm and limit are in `relation` */
    const char *vector;
    struct oj_vector_words vector_fields; /**< the fields named by `vector` */
    const char *max_difference; /**< argument of -max_difference, or NULL */
    int measure;                /**< enum oj_text_measure */
    /** values for the members tokens and fold of struct oj_token_rules */
    int tokens, fold;
    const char *word_map; /**< content of the file of -word_map, or NULL */
    /** enum oj_which_side; valid if the option is given */
    int centroid_of;
    /** enum oj_which_side; valid if the option is given */
    int point_on_surface_of;
    int invalid; /**< enum oj_invalid_mode */
    /** enum oj_how; by default left, with is_window inner */
    int how;
    /** argument of -one_to_one, a word of OJ_ONE_TO_ONE_WORDS; "" stands for
     *  the first of these words; NULL if the option is not given */
    const char *one_to_one;
    const char *pick, *aggregates; /**< arguments of -pick and -agg, or NULL */
    const char *prefix;

    /* Columns and geometry of the output. */
    const char *name_count, *name_distance, *name_rank, *name_fid;
    const char *name_similarity, *name_difference;
    const char *overlap; /**< comma-separated words: area, length, percent; or
                              NULL */
    int nearest_point_fields, bearing_field;
    /** names of the columns of the pair values from OJ_FIRST_NAMED_PAIR_VALUE
     *  on */
    const char *named[OJ_N_NAMED_PAIR_VALUES];
    int along;    /**< enum oj_along_by */
    int geometry; /**< enum oj_write_geometry */

    /* The two sides. */
    struct oj_source_options input, join;
    double spat[4]; /**< xmin ymin xmax ymax; valid if has_spat */
    int has_spat;
    int64_t limit; /**< maximum number of input rows; -1 if there is no limit */

    /* Coordinate reference systems. */
    int crs; /**< enum oj_crs_mode */
    const char *t_srs, *a_srs;

    /* The output. */
    struct oj_output_options output;
    int in_place, in_place_unsafe;

    /* Events. */
    /** argument of -events; "" if it has none, NULL if -events is not given */
    const char *events;
    const char *key, *state;
    double flush; /**< seconds after which waiting rows are written */
    int skip_failures;

    /* Execution. */
    const char *backend;
    int64_t threads; /**< number of threads; 0 stands for one per CPU */
    int64_t batch;
    /** points per quadrant; 0 stands for the backend's default */
    int64_t quadrant_size;
    uint64_t gpus; /**< one bit per device; 0 stands for the first device */
    int64_t gpu_memory; /**< bytes per device; 0 stands for the free memory */
    int64_t gpu_batch;  /**< rows per transfer; 0 if the program chooses them */
    int64_t memory;     /**< bytes; 0 if there is no limit */
    int64_t max_pairs;  /**< maximum number of pairs; 0 if there is no limit */
    int explain;
    const char *write_spec; /**< path of the file that will hold the arguments,
                                 or NULL */

    /* Validation and measurement. */
    const char *validate; /**< reference backend, or NULL */
    const char *validate_report;
    int benchmark;
    const char *benchmark_csv;
    double benchmark_seconds;

    /* Messages. */
    int quiet, progress;
    const char *json_summary;
    int help;

    /** 1 if oj_command_parse_line() has made the command; quiet is then 1, too
     */
    int is_dataset;
    const char **words; /**< owned copy of all arguments; NULL-terminated */
    /** [index in the option table] 1 if the option is given */
    unsigned char given[OJ_MAX_OPTIONS];
    /** [index in the option table] enum oj_unit of distances */
    unsigned char unit[OJ_MAX_OPTIONS];
    char **texts; /**< owned list of the texts above that are not in `words` */
};

/** Parses argv[0 .. argc - 1] (without the program's name) into *command, which
 *  owns copies of everything; free it by oj_command_free(). If -help is given,
 *  nothing else is checked. OJ_ERR_ARG with one line about what is wrong and
 *  what to write instead. If -op is missing, other options select the
 *  join: -relate: relate; -window: window; -k, -ties or -distance_to: nearest;
 *  a field of distances: dwithin; else -similar or -vector: similar; else
 *  intersects. */
OJ_MUST_USE oj_status oj_command_parse(int argc, const char *const *argv,
                                       struct oj_command *command,
                                       struct oj_error *err);

/** Returns 1 if -h, -help or --help is one of the words. */
int oj_command_asks_for_help(int argc, const char *const *argv);

/** Parses the text of a dataset name (dataset/oj_dataset_name.h), quoted as in
 *  a shell. The text has no destination, and options that only a run of the
 *  command can use are refused. Its paths are relative to folder, the folder of
 *  the spec file; "" means the current folder. */
OJ_MUST_USE oj_status oj_command_parse_line(const char *line,
                                            const char *folder,
                                            struct oj_command *command,
                                            struct oj_error *err);

/** Returns 1 if the option with this name (not an alias) was given. */
int oj_command_has_option(const struct oj_command *command, const char *name);

/** Returns 1 if this option, whose value is an enum oj_which_side, is given and
 *  includes the side. */
int oj_command_option_is_of_side(const struct oj_command *command,
                                 const char *name, int side);

/** Returns 1 if the join reads geometries, 0 if it only compares attributes. */
int oj_command_needs_shapes(const struct oj_command *command);

/** Returns the distance that this option gives, with its unit. */
struct oj_distance oj_command_distance(const struct oj_command *command,
                                       const char *name);

/** Returns the argument of -op: "intersects", "window", ... */
const char *oj_command_op_name(const struct oj_command *command);

/** Returns the options that decide which pairs two given layers have, as words
 *  in the order of the table: "-op dwithin -max_distance 100". Free it with
 *  CPLFree(). */
char *oj_command_join_words(const struct oj_command *command);

/** Frees what the command owns; zeroed memory is accepted. */
void oj_command_free(struct oj_command *command);

#ifdef __cplusplus
}
#endif
#endif
