/** libogrjoin: spatial joins of two layers of features, without OGR.
 *
 *  struct ogrjoin_settings *settings = ogrjoin_settings_new();
 *  ogrjoin_set_text(settings, "op", "nearest", &err);
 *  ogrjoin_set_number(settings, "max_distance", 100, &err);
 *  ogrjoin_layer_from_stream(&lots, NULL, settings, &join_side, &err);
 *  ogrjoin_index_new(join_side, settings, &index, &err);
 *  ogrjoin_join_stream(index, &pickups, NULL, &pairs, &err);
 *  ... read record batches of (left, right, measure) from pairs ...
 *
 *  samples/join_arrow.c and samples/join_arrays.c are whole programs.
 *
 *  Layers, indexes and objects made from them may be freed in any order: each
 * keeps what it needs.  Functions that free accept NULL.  Several threads may
 * join with one index at once: on the CPU they run concurrently; if a device
 * may be used, they take turns.  Functions that can fail return enum
 * ogrjoin_status and write one line of text to *err, unless err is NULL; their
 * outputs are then unchanged.
 *
 *  Within a major version, functions are added, but never changed or removed.
 *  Structs that callers fill begin with their size, so that they can grow.
 */
#ifndef OGRJOIN_API_H
#define OGRJOIN_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OGRJOIN_API __attribute__((visibility("default")))
#define OGRJOIN_MUST_USE __attribute__((warn_unused_result))
#else
#define OGRJOIN_API
#define OGRJOIN_MUST_USE
#endif

struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;

enum ogrjoin_status
{
    OGRJOIN_OK = 0,
    OGRJOIN_ERR_ARG = 1,         /**< an argument or setting is invalid */
    OGRJOIN_ERR_NOMEM = 2,       /**< an allocation failed */
    OGRJOIN_ERR_LIMIT = 3,       /**< a documented size limit was exceeded */
    OGRJOIN_ERR_DATA = 4,        /**< invalid WKB, arrays or streams */
    OGRJOIN_ERR_IO = 5,          /**< a stream could not be read */
    OGRJOIN_ERR_UNSUPPORTED = 6, /**< valid, but no backend that may be used
                                      answers it */
    OGRJOIN_ERR_NO_DEVICE = 7,   /**< the backend has no device on this
                                      machine */
    OGRJOIN_ERR_CANCELLED = 8,   /**< the cancel flag was set */
    OGRJOIN_ERR_INTERNAL = 9,    /**< a bug in the library */
    OGRJOIN_ERR_TOO_MANY = 10    /**< more pairs than max_pairs allows */
};

/** An error, as one line that tells the user what to do. */
struct ogrjoin_error
{
    int status;         /**< enum ogrjoin_status */
    char message[1024]; /**< UTF-8, zero-terminated, no newline */
};

/** Version of the library in use: "1.0.0". */
OGRJOIN_API const char *ogrjoin_version(void);

/** Short English name of a status: "out of memory". Never NULL. */
OGRJOIN_API const char *ogrjoin_status_name(int status);

/* --- settings ------------------------------------------------------------- */

/** What to join and how. The caller frees it; an index keeps its own copy. */
struct ogrjoin_settings;

/** Makes settings with their defaults. NULL: out of memory. */
OGRJOIN_API struct ogrjoin_settings *ogrjoin_settings_new(void);
OGRJOIN_API void ogrjoin_settings_free(struct ogrjoin_settings *settings);

/** Sets a setting to a text: see ogrjoin_setting_help(). */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_set_text(struct ogrjoin_settings *settings, const char *name,
                 const char *value, struct ogrjoin_error *err);

/** Sets a setting to a number; yes and no are 1 and 0. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_set_number(struct ogrjoin_settings *settings, const char *name,
                   double value, struct ogrjoin_error *err);

/** The flag is polled while an index is made and used; nonzero ends the call
 * with OGRJOIN_ERR_CANCELLED. It must outlive the index. NULL: none. */
OGRJOIN_API void ogrjoin_settings_cancel(struct ogrjoin_settings *settings,
                                         const int *flag);

/** Name of setting i, or NULL past the last. */
OGRJOIN_API const char *ogrjoin_setting_name(int i);

/** Meaning, values and default of setting i, in one line; NULL past the last.
 */
OGRJOIN_API const char *ogrjoin_setting_help(int i);

/** Name of backend i, the first is auto; NULL past the last. */
OGRJOIN_API const char *ogrjoin_backend_name(int i);

/** Description of backend i, in one line; NULL past the last. */
OGRJOIN_API const char *ogrjoin_backend_help(int i);

/* --- layers --------------------------------------------------------------- */

/** A layer of features: at most 2^31 - 1, numbered from 0. */
struct ogrjoin_layer;

enum ogrjoin_part
{
    OGRJOIN_POINT = 1,
    OGRJOIN_LINE = 2,
    OGRJOIN_POLYGON = 4
};

/** A layer as arrays of the caller.
 *
 *  feature   0            1      2          (2 has no geometry: no parts)
 *  part_offset  [0        2      3      3]
 *  part         0    1    2                 kinds: polygon polygon line
 *  ring_offset  [0   2    3      4]
 *  ring         0  1 2    3                 ring 1 is a hole of part 0
 *  vertex_offset[0 5 9 14 17]
 *  x, y         every vertex
 *
 *  Points are parts with one ring of one vertex, lines parts with one ring,
 *  polygons parts whose first ring is the shell; rings repeat their first
 *  vertex.  Layers of single points leave part_offset, part_kind, ring_offset
 *  and vertex_offset NULL: feature i is vertex i, without geometry where x[i]
 *  is NaN. */
struct ogrjoin_arrays
{
    size_t size; /**< sizeof(struct ogrjoin_arrays) */
    int64_t n_features, n_parts, n_rings, n_vertices;
    const int64_t *part_offset;   /**< [n_features + 1] or NULL */
    const uint8_t *part_kind;     /**< [n_parts] enum ogrjoin_part or NULL */
    const int64_t *ring_offset;   /**< [n_parts + 1] or NULL */
    const int64_t *vertex_offset; /**< [n_rings + 1] or NULL */
    const double *x, *y;          /**< [n_vertices] */
    const int64_t *id; /**< [n_features] ids, or NULL: feature numbers.
                            Equally near pairs are sorted by id; exclude_self
                            and unordered compare ids */
};

/** Makes a layer of arrays, which are borrowed: they must outlive the layer and
 *  objects made from it, and must not change.  They are checked, O(vertices).
 *  Errors  OGRJOIN_ERR_ARG, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_from_arrays(const struct ogrjoin_arrays *arrays,
                          struct ogrjoin_layer **out,
                          struct ogrjoin_error *err);

/** Makes a layer of one Arrow array: of geometries, or of structs (a record
 *  batch) with a column of geometries.
 *  column    name of that column; NULL: the first one marked as geoarrow, else
 *            the only one of bytes
 *  formats   WKB in binary, large binary and binary view; geoarrow.point to
 *            geoarrow.multipolygon, separated and interleaved, XY to XYZM; Z
 *            and M are ignored.  A feature that is NULL has no pairs
 *  settings  for threads and cancel; NULL: all threads.  With side left or
 *            right, the columns named in similar and vector are read, too:
 *            texts (utf8, large, views, integers), numbers, lists of numbers;
 *            op similar without max_distance then needs no geometries
 *  array     moved: released by the library and marked as released, also after
 *            an error.  schema stays the caller's
 *
 *  Separated coordinates without NULLs, empty or open rings are used without a
 *  copy; all else is copied, on all threads.  The bytes of WKB and all offsets
 *  are checked; lengths of buffers cannot be, since Arrow does not store them.
 *  Errors  OGRJOIN_ERR_DATA, OGRJOIN_ERR_UNSUPPORTED (curves, other formats),
 *          OGRJOIN_ERR_LIMIT, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_from_array(const struct ArrowSchema *schema,
                         struct ArrowArray *array, const char *column,
                         const struct ogrjoin_settings *settings,
                         struct ogrjoin_layer **out, struct ogrjoin_error *err);

/** Makes a layer of all arrays of a stream, one after the other; the stream is
 *  released, also after an error. Otherwise like ogrjoin_layer_from_array(). */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_from_stream(struct ArrowArrayStream *stream, const char *column,
                          const struct ogrjoin_settings *settings,
                          struct ogrjoin_layer **out,
                          struct ogrjoin_error *err);

/** Columns beside the geometry: arrays of the caller with an entry per feature,
 * or NULL. */
struct ogrjoin_columns
{
    size_t size;       /**< sizeof(struct ogrjoin_columns) */
    const int64_t *id; /**< as in struct ogrjoin_arrays; NULL: unchanged */
    const double *max_distance; /**< dwithin: own distance of each feature
                                     instead of the setting; NaN or below 0:
                                     the feature has no pairs. For one side
                                     only */
    const int32_t *on_class;    /**< only features of equal class are pairs;
                                     below 0: the feature has no pairs. For both
                                     sides or none */
    const int64_t *score; /**< join side: pick score takes the pair with the
                               greatest score; INT64_MIN: smaller than all
                               others */
};

/** Sets columns of a layer, before it is indexed or joined. The arrays are
 *  borrowed: they must outlive the layer and objects made from it, and must not
 *  change.  Members that are NULL change nothing.
 *  Errors  OGRJOIN_ERR_ARG */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_set_columns(struct ogrjoin_layer *layer,
                          const struct ogrjoin_columns *columns,
                          struct ogrjoin_error *err);

/** The values of a column of the join side in classes of equal ones, as the
 *  setting on compares columns: what on_class of struct ogrjoin_columns is made
 *  of. */
struct ogrjoin_classes;

/** values   an Arrow array of any type but unions, with an entry for each
 *           feature; moved, in any case
 *  Errors   OGRJOIN_ERR_DATA, OGRJOIN_ERR_UNSUPPORTED, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_classes_new(const struct ArrowSchema *schema, struct ArrowArray *values,
                    struct ogrjoin_classes **out, struct ogrjoin_error *err);

/** The classes of an input's values.  Numbers of both sides are compared as
 *  numbers, all else as texts; NULL and NaN equal nothing.
 *  values      moved, in any case
 *  class_of    [length of values] set: the class of each, or -1
 *  join_class  set to those of the join side, valid as long as classes is; it
 *              is one array for inputs of numbers and another for all others,
 *              where the join side has numbers
 *  Several threads may call it at once.
 *  Errors      as above; OGRJOIN_ERR_LIMIT: more than 2^31 - 2 classes */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_classes_find(struct ogrjoin_classes *classes,
                     const struct ArrowSchema *schema,
                     struct ArrowArray *values, int32_t *class_of,
                     const int32_t **join_class, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_classes_free(struct ogrjoin_classes *classes);

/** A column of UTF-8 texts, that of the next condition of the setting similar:
 *  text i is bytes[offset[i]] to bytes[offset[i + 1] - 1], offset having an
 *  entry more than the layer has features; an empty one joins nothing.  Both
 * are borrowed as above, and before the layer is indexed or joined. Errors
 * OGRJOIN_ERR_ARG, OGRJOIN_ERR_LIMIT: more than 8 */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_add_text(struct ogrjoin_layer *layer, const int64_t *offset,
                       const char *bytes, struct ogrjoin_error *err);

/** Sets the numbers for the setting vector, instead of Arrow columns: those of
 *  feature i are number[offset[i]] to number[offset[i + 1] - 1], one for each
 *  name of the setting, or a list if it has one name.  The first list of the
 *  join side gives the number of dimensions; a feature with another count has
 *  no pairs.  Borrowed as above; before the layer is indexed or joined.
 *  Errors  OGRJOIN_ERR_ARG */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_set_vectors(struct ogrjoin_layer *layer, const int64_t *offset,
                          const double *number, struct ogrjoin_error *err);

OGRJOIN_API int64_t ogrjoin_layer_count(const struct ogrjoin_layer *layer);
OGRJOIN_API void ogrjoin_layer_free(struct ogrjoin_layer *layer);

/* --- an index, and joins with it ------------------------------------------ */

/** The join side, prepared for joins with given settings. */
struct ogrjoin_index;

/** Makes an index of a join side. O(n log n) in its segments.
 *  settings  NULL: the defaults
 *  Errors    OGRJOIN_ERR_ARG: settings that are invalid or clash;
 *            OGRJOIN_ERR_LIMIT; OGRJOIN_ERR_NO_DEVICE; OGRJOIN_ERR_CANCELLED;
 *            OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_index_new(struct ogrjoin_layer *join_side,
                  const struct ogrjoin_settings *settings,
                  struct ogrjoin_index **out, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_index_free(struct ogrjoin_index *index);

/** The backend in use: "cpu" or "cuda". With backend auto it may change at the
 * first join. */
OGRJOIN_API const char *ogrjoin_index_backend(struct ogrjoin_index *index);

/** Frees working memory that joins with index have kept for later ones; after a
 * large join it is as large as the layer. */
OGRJOIN_API void ogrjoin_index_trim(struct ogrjoin_index *index);

/** Pairs of features, sorted by left; the pairs of a left feature are sorted as
 * by the command: nearest first, or else by the ids of the join side. */
struct ogrjoin_pairs;

/** Finds all pairs of a layer with the join side. The answer does not depend on
 *  threads, on the backend, or on how features are split into layers.
 *  Errors  as above; OGRJOIN_ERR_UNSUPPORTED: the backend cannot join such
 *          features; OGRJOIN_ERR_TOO_MANY */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_join(struct ogrjoin_index *index,
                                              struct ogrjoin_layer *input,
                                              struct ogrjoin_pairs **out,
                                              struct ogrjoin_error *err);

OGRJOIN_API int64_t ogrjoin_pairs_count(const struct ogrjoin_pairs *pairs);
/** [count] numbers of the input features. */
OGRJOIN_API const int64_t *
ogrjoin_pairs_left(const struct ogrjoin_pairs *pairs);
/** [count] numbers of the features of the join side. */
OGRJOIN_API const int64_t *
ogrjoin_pairs_right(const struct ogrjoin_pairs *pairs);
/** [count] distances, in units of the coordinates, on the globe in metres; for
 * op similar, similarities, or differences if no texts are compared; NaN for
 * joins without a measure. */
OGRJOIN_API const double *
ogrjoin_pairs_measure(const struct ogrjoin_pairs *pairs);
/** [count] values that a setting requested, NaN if undefined: overlap_area,
 * overlap_length, overlap_percent, nearest_x, nearest_y, from_x, from_y,
 * bearing, line_along, line_along_percent, line_offset, line_side,
 * line_segment, line_bearing, matrix, relation, with similar similarity,
 * similarity_2 ..., with vector difference.  NULL: not requested. */
OGRJOIN_API const double *ogrjoin_pairs_value(const struct ogrjoin_pairs *pairs,
                                              const char *name);
/** The word for a value of line_side, matrix or relation: "left", "212101212",
 * "touches"; valid for ever. NULL: NaN, no such value, or another name. */
OGRJOIN_API const char *ogrjoin_pairs_word(const char *name, double value);
/** The intersection of each pair as ISO WKB, little-endian: bytes (*offset)[i]
 * to (*offset)[i + 1] - 1; empty if GEOS could not compute it.  NULL: not
 * requested by the setting intersection. */
OGRJOIN_API const uint8_t *
ogrjoin_pairs_intersection(const struct ogrjoin_pairs *pairs,
                           const int64_t **offset);
/** Number of pairs, or rows, that GEOS could not decide; they are left out. */
OGRJOIN_API int64_t ogrjoin_pairs_undecided(const struct ogrjoin_pairs *pairs);
/** Number of groups of more than 1,000,000 connected pairs, whose pairs were
 * chosen greedily, best first, although one_to_one is best. */
OGRJOIN_API int64_t
ogrjoin_pairs_large_groups(const struct ogrjoin_pairs *pairs);
OGRJOIN_API void ogrjoin_pairs_free(struct ogrjoin_pairs *pairs);

/** A value for each feature of the join side, in one of three forms. */
struct ogrjoin_values
{
    size_t size; /**< sizeof(struct ogrjoin_values) */
    const int64_t *integer;
    const double *real;
    const int64_t *offset;  /**< [features + 1] offsets of texts in bytes */
    const char *bytes;      /**< the bytes of the texts */
    const uint8_t *is_null; /**< [features] 1: the value is NULL; or NULL:
                                 none is */
};

/** A result for each left row, in one of the forms above. The caller frees it.
 */
struct ogrjoin_results
{
    size_t size; /**< sizeof(struct ogrjoin_results), set by the library */
    int64_t n;   /**< rows of the layer that was joined */
    int64_t *integer;
    double *real;
    int64_t *offset;
    char *bytes;
    uint8_t *is_null; /**< [n] */
};

/** Aggregates values of the right features over the pairs of each left row,
 *  like -agg of the command: sums are exact, and functions that depend on an
 *  order define it.
 *  function   count, sum, mean, min, max, range, median, percentile, q1, q3,
 *             stddev, variance, first, last, mode, minority, unique, concat
 *             (texts), weighted_sum and weighted_mean (need the setting share)
 *  separator  for concat; for percentile its number from 0 to 100, as "90";
 *             otherwise ignored
 *  values     NULL: for count of pairs
 *  Errors     OGRJOIN_ERR_ARG; OGRJOIN_ERR_LIMIT: a sum of integers beyond 64
 *             bits; OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_pairs_aggregate(const struct ogrjoin_pairs *pairs, const char *function,
                        const char *separator,
                        const struct ogrjoin_values *values,
                        struct ogrjoin_results *out, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_results_free(struct ogrjoin_results *results);

/** The comparison of two backends' answers, as by -validate of the command. */
struct ogrjoin_validation
{
    size_t size; /**< sizeof(struct ogrjoin_validation), set by the caller */
    int64_t n_rows, n_pairs;   /**< compared */
    int64_t n_differences;     /**< 0: the answers agree */
    int64_t n_rows_proved;     /**< rows that differ, but exact arithmetic
                                    confirms the index, its distances up to
                                    the rounding of their formula; not
                                    counted as differences */
    int64_t n_rows_undecided;  /**< rows left out because neither could be
                                    decided exactly */
    int64_t n_pairs_undecided; /**< pairs left out likewise */
    int64_t left, right; /**< of the first difference, or -1; right: from the
                              index, or else from the reference */
    const char *kind;    /**< missing, extra, distance or order; NULL: none */
};

/** Joins input twice, with the index and with a reference, and compares the
 *  answers.
 *  reference  name of a backend; NULL: sphere or ellipsoid for the metric of
 *             this name, lists for texts or vectors without geometries, else
 *             geos
 *  Cost       that of both joins; the references use one thread
 *  Errors     those of ogrjoin_join() */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_validate(struct ogrjoin_index *index, struct ogrjoin_layer *input,
                 const char *reference, struct ogrjoin_validation *out,
                 struct ogrjoin_error *err);

/** Moves the pairs into one record batch of left (int64), right (int64) and
 *  measure (float64, NULL if undefined), without a copy. pairs is then empty,
 *  and still has to be freed. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_pairs_to_arrow(struct ogrjoin_pairs *pairs, struct ArrowSchema *schema,
                       struct ArrowArray *array, struct ogrjoin_error *err);

/** A stream of such record batches, one for each array of input, which is read
 *  when the next batch is requested; left counts on from array to array.  input
 *  is moved, and released with *out; the columns named in the settings similar
 *  and vector are read from it.  Errors in later arrays are returned by the
 *  stream. column: as in ogrjoin_layer_from_array(). */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_join_stream(struct ogrjoin_index *index, struct ArrowArrayStream *input,
                    const char *column, struct ArrowArrayStream *out,
                    struct ogrjoin_error *err);

/* --- pairs as lists, and streams read layer by layer -----------------------
 */

/** Like ogrjoin_join(), with at most half of the memory and usually without a
 *  copy of the answer: lists instead of columns.
 *
 *  input feature   0   1   2         (1 has no pair)
 *  offset         [0   2   2     5]
 *  right32        [5 8     1 2 9]
 *  measure        [.. .    . . .]    or NULL: the join has none
 *
 *  ogrjoin_pairs_left() and ogrjoin_pairs_right() return NULL, and
 *  ogrjoin_pairs_to_arrow() fails; all else works as before. */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_join_lists(struct ogrjoin_index *index,
                                                    struct ogrjoin_layer *input,
                                                    struct ogrjoin_pairs **out,
                                                    struct ogrjoin_error *err);

/** Number of rows that were joined. */
OGRJOIN_API int64_t ogrjoin_pairs_rows(const struct ogrjoin_pairs *pairs);
/** [rows + 1] first pair of each row, for lists; else NULL. */
OGRJOIN_API const int64_t *
ogrjoin_pairs_offset(const struct ogrjoin_pairs *pairs);
/** [count] numbers of features of the join side, for lists; else NULL. */
OGRJOIN_API const int32_t *
ogrjoin_pairs_right32(const struct ogrjoin_pairs *pairs);

/** A stream of features that is read step by step. */
struct ogrjoin_source;

/** Opens a source. stream is moved: released with *out, after an error at once;
 *  column and settings are as in ogrjoin_layer_from_stream(); the settings may
 *  be freed afterwards.  One thread at a time may use a source. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_source_open(struct ArrowArrayStream *stream, const char *column,
                    const struct ogrjoin_settings *settings,
                    struct ogrjoin_source **out, struct ogrjoin_error *err);

/** The next n_rows features, or the remaining ones, as a layer; *out is NULL
 *  after the last.  Arrays are split and joined as needed; a stream without
 *  features gives one empty layer.  Features are numbered across layers: these
 *  numbers are the left of pairs, and the ids that exclude_self and unordered
 *  compare if none were given. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_source_next(struct ogrjoin_source *source, int64_t n_rows,
                    struct ogrjoin_layer **out, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_source_free(struct ogrjoin_source *source);

/** Finds the pairs of all remaining features of source, as lists like those of
 *  ogrjoin_join_lists().  On the CPU, only a part of the features is in memory.
 *  n_rows  their expected number; 0: unknown */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_join_source(struct ogrjoin_index *index, struct ogrjoin_source *source,
                    int64_t n_rows, struct ogrjoin_pairs **out,
                    struct ogrjoin_error *err);

/* --- rows: two Arrow streams become one -----------------------------------
 *
 *  input: id name geometry     join side: zone geometry
 *            |                           |
 *            +-------- pairs ------------+
 *                        |
 *  id name geometry  join_fid join_distance ..  zone
 *
 *  The rows are those that the command writes for these layers and options: the
 *  columns of the input, in the order of its rows; join_fid (int64, the number
 *  of the row in the join side) and other requested columns; the columns of the
 *  join side without its geometry, with the prefix join_ if a name is in use.
 *  Columns keep their Arrow types; only unions are refused.  With how right and
 *  full, the geometries of join rows that match nothing are written to the
 *  geometry column of the input, in its type: WKB in binary or large binary, or
 *  the common type of both sides.  A join is described by settings, which have
 *  the names and values of the command's options: ogrjoin_setting_help().
 *
 *  A side has its features in one of these:
 *  - a column of geometries, as in ogrjoin_layer_from_array(): named by
 *    left_column or right_column, else the only one marked as geoarrow, or else
 *    the only one of bytes
 *  - two columns of numbers, which are points: left_x and left_y, right_x and
 *    right_y
 *  - none, if only texts or vectors are compared
 *
 *  The CRS of a side is the setting left_crs or right_crs, or else the crs in
 *  ARROW:extension:metadata: PROJJSON, WKT, or authority:code.  Two different
 *  CRS are an error; so are a distance with a unit without a CRS, and a plain
 *  distance in degrees.  With crs "ignore", coordinates are taken as they are.
 *  A side without a CRS is assumed to have that of the other side. */

/** A join side with all its columns: read once, held once, joined with any
 *  number of inputs, by several threads at once. */
struct ogrjoin_rows;

/** Reads join_side to its end.
 *  join_side  moved: released by the library, also after an error.  Its arrays
 *             are kept, not copied, until *out and the streams made from it are
 *             freed
 *  settings   NULL: the defaults; they may be freed afterwards
 *  Cost       that of ogrjoin_layer_from_stream(); the first join makes the
 *             index, which is kept for joins with equal settings
 *  Errors     OGRJOIN_ERR_ARG: settings that clash, or have no effect on such a
 *             join; OGRJOIN_ERR_DATA, OGRJOIN_ERR_UNSUPPORTED (the column of
 *             geometries), OGRJOIN_ERR_IO, OGRJOIN_ERR_LIMIT,
 *             OGRJOIN_ERR_CANCELLED, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_rows_open(struct ArrowArrayStream *join_side,
                  const struct ogrjoin_settings *settings,
                  struct ogrjoin_rows **out, struct ogrjoin_error *err);

/** Makes a stream of the rows of input joined with the join side.
 *  input     moved: released with *out, after an error at once.  It is read
 *            while rows are taken from *out: batch_rows rows at a time; with
 *            one_to_one all of them at the first call.  Its arrays are kept as
 *            long as rows of *out that need no copy point into them
 *  settings  what is asked of this join, in place of the settings of
 *            ogrjoin_rows_open(); NULL: those
 *  out       record batches of at most some 256 MB and 65,536 rows, none of
 *            them empty.  get_next() gives an errno and get_last_error() a line
 *            of text; after an error the stream only can be released.  The
 *            cancel flag of the settings ends it with ECANCELED.  The schema is
 *            complete at once; one thread at a time uses *out, and any thread
 *            may release it.  It keeps what it needs of rows
 *  Errors    those that need no row of input, as of ogrjoin_rows_open() and
 *            ogrjoin_index_new() */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_rows_join(struct ogrjoin_rows *rows, struct ArrowArrayStream *input,
                  const struct ogrjoin_settings *settings,
                  struct ArrowArrayStream *out, struct ogrjoin_error *err);

/** Streams that are still in use keep what they need. */
OGRJOIN_API void ogrjoin_rows_free(struct ogrjoin_rows *rows);

/** ogrjoin_rows_join() with an index that exists already. Its layer must hold
 *  the features of the join side in their order, as ogrjoin_layer_from_stream()
 *  reads them. If the index does not find the pairs that the settings ask for,
 *  another one is made.  index NULL: as ogrjoin_rows_join() */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_rows_join_index(
    struct ogrjoin_rows *rows, struct ogrjoin_index *index,
    struct ArrowArrayStream *input, const struct ogrjoin_settings *settings,
    struct ArrowArrayStream *out, struct ogrjoin_error *err);

/** Number of rows of the join side. */
OGRJOIN_API int64_t ogrjoin_rows_count(const struct ogrjoin_rows *rows);

/** ogrjoin_rows_open() and ogrjoin_rows_join() of one input. Both streams are
 *  moved, in any case. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_join_rows(struct ArrowArrayStream *input,
                  struct ArrowArrayStream *join_side,
                  const struct ogrjoin_settings *settings,
                  struct ArrowArrayStream *out, struct ogrjoin_error *err);

/** Index of the geometry column in a stream of ogrjoin_rows_join(); -1 if it
 * has none, or if this is another stream. */
OGRJOIN_API int64_t
ogrjoin_rows_geometry(const struct ArrowArrayStream *stream);

/** Sets a progress function. The thread that takes rows calls it after each
 * part of the input: `rows` of n_rows are joined; n_rows is the setting
 * input_rows, or -1 if unknown.  A nonzero return value ends the join with
 *  OGRJOIN_ERR_CANCELLED.  report and user must outlive the streams.  NULL:
 *  none. */
OGRJOIN_API void ogrjoin_settings_progress(
    struct ogrjoin_settings *settings,
    int (*report)(void *user, int64_t rows, int64_t n_rows), void *user);

/** Sets a function for notices: lines of text that are no errors, for example
 * if one side has no CRS, or if GEOS cannot compute overlaps.  Called by the
 *  thread that calls the library; notice and user must outlive the streams.
 *  NULL: none. */
OGRJOIN_API void ogrjoin_settings_notices(struct ogrjoin_settings *settings,
                                          void (*notice)(void *user,
                                                         const char *message),
                                          void *user);

/** Sets callbacks for facts about CRS that the library does not have; either
 * may be NULL. expand   writes the PROJJSON or WKT of a CRS that is given by
 * its code alone
 *           ("EPSG:2263") into text, zero-terminated, like snprintf(): returns
 *           the length without the zero; if that is size or more, it is called
 *           again with a larger buffer; 0 or less: unknown.  Not called for
 *           EPSG:4326, OGC:CRS84 and OGC:CRS84h
 *  compare  returns 1 if a and b, the texts as given, are one CRS, 0 if they
 *           differ, below 0 if unknown.  Called if the texts alone do not
 * decide The thread that opens the rows calls both; they must stay valid until
 * then.
 */
OGRJOIN_API void ogrjoin_settings_crs(
    struct ogrjoin_settings *settings,
    int (*expand)(void *user, const char *crs, char *text, size_t size),
    int (*compare)(void *user, const char *a, const char *b), void *user);

/** For joins of layers, which have no CRS: converts the distances of settings,
 *  which may have a unit ("100ft"), to the unit of the CRS of the join, as
 *  ogrjoin_rows_join() does for its sides.
 *  left, right  CRS of the sides, as in the setting left_crs; NULL: none
 *  Errors       OGRJOIN_ERR_ARG: the CRS of the sides differ, or a distance
 *               makes no sense in it; OGRJOIN_ERR_DATA: a text is no CRS */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_settings_use_crs(struct ogrjoin_settings *settings, const char *left,
                         const char *right, struct ogrjoin_error *err);

/** Whether settings make sense for ogrjoin_index_new() and the pairs that are
 *  joined with it; that takes those without effect, too.
 *  Errors  OGRJOIN_ERR_ARG: one has no effect on such pairs, or two do not go
 *          together; the line of text says what to write */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_settings_check_pairs(const struct ogrjoin_settings *settings,
                             struct ogrjoin_error *err);

/* --- events of a stream of reports ----------------------------------------
 *
 *  A report says where something is: a feature of a layer, with a key (of a
 *  vehicle).  Its pairs with the join side are compared with those of the last
 *  report of its key:
 *
 *   features of the key before   3 5 8
 *   pairs of the report          3     9
 *   events                       exit 5, exit 8, enter 9; stay 3 on request
 *
 *  ogrjoin_rows_join() gives these events as rows, with the settings events,
 *  key and state. */

enum ogrjoin_event
{
    OGRJOIN_ENTER = 0,
    OGRJOIN_EXIT = 1,
    OGRJOIN_STAY = 2,
    OGRJOIN_CHANGE = 3 /**< of op nearest: another feature, or none any more */
};

/** The features of all keys. One thread at a time uses it. */
struct ogrjoin_events;

/** Without keys.
 *  index  op nearest has k 1 and ties first, and no setting leaves pairs out
 *  which  NULL or "changes"; "all": a feature that a key keeps is an event, too
 *  has_texts  1: keys are texts; 0: integers
 *  Errors  OGRJOIN_ERR_ARG; OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_events_new(struct ogrjoin_index *index,
                                                    const char *which,
                                                    int has_texts,
                                                    struct ogrjoin_events **out,
                                                    struct ogrjoin_error *err);

/** The keys of the features of a layer, in one of two forms. */
struct ogrjoin_event_keys
{
    size_t size;            /**< sizeof(struct ogrjoin_event_keys) */
    const int64_t *integer; /**< [n] or NULL */
    const int64_t *offset;  /**< [n + 1] into bytes, of texts, or NULL; an
                                 empty text is no key */
    const char *bytes;
    const uint8_t *is_null; /**< [n] nonzero: no key; NULL: all have one */
};

/** Events in the order of the reports; those of a report as exits, enters,
 *  stays, each by the ids of the join side.  The library's memory, until the
 *  next batch or the end. */
struct ogrjoin_event_rows
{
    size_t size; /**< sizeof(struct ogrjoin_event_rows), set by the caller */
    int64_t n;
    const int64_t *report;  /**< [n] numbers of reports */
    const int64_t *feature; /**< [n] numbers of features of the join side; -1:
                                 none is the nearest any more */
    const uint8_t *kind;    /**< [n] enum ogrjoin_event */
    const double *measure;  /**< [n] of the pair; NaN: of no pair, or the join
                                 has none */
};

/** The events of a batch of reports, which come one after another.  A report
 *  without a key or a geometry gives none and changes nothing.  After an error
 *  nothing has changed.
 *  Cost    that of ogrjoin_join(), and some 50 ns a report; memory 32 bytes a
 *          key that has features, and 4 a feature where it has more than two
 *  Errors  as of ogrjoin_join(); OGRJOIN_ERR_ARG: keys of another form */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_events_add(struct ogrjoin_events *events, struct ogrjoin_layer *reports,
                   const struct ogrjoin_event_keys *keys,
                   struct ogrjoin_event_rows *out, struct ogrjoin_error *err);

/** Number of keys that have features now. */
OGRJOIN_API int64_t ogrjoin_events_inside(const struct ogrjoin_events *events);

/** Writes the features of all keys, by the ids of the join side, to a file that
 *  is as it was before or complete, whenever the process ends.
 *  Errors  OGRJOIN_ERR_IO; OGRJOIN_ERR_ARG: ids repeat */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_events_save(const struct ogrjoin_events *events, const char *path,
                    struct ogrjoin_error *err);

/** Replaces the features of all keys by those of a file that was written with
 *  equal join features (ids and geometries), settings and keys.  After an error
 *  nothing has changed.
 *  Errors  OGRJOIN_ERR_IO: no such file; OGRJOIN_ERR_DATA: it is broken;
 *          OGRJOIN_ERR_ARG: it belongs to others */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_events_load(struct ogrjoin_events *events, const char *path,
                    struct ogrjoin_error *err);

OGRJOIN_API void ogrjoin_events_free(struct ogrjoin_events *events);

/* --- a kept index of points ------------------------------------------------
 *
 *  ogrjoin_live_new(settings, &live, &err);
 *  ogrjoin_live_apply(live, n, id, x, y, &err);       every second, say
 *  ogrjoin_live_join(live, settings, fences, &pairs, &err);
 *
 *  Points that move: vehicles, vessels, phones.  They lie in pages of at most
 *  256 under a tree, which batches of changes alter where they must; joins see
 *  the points as they were when they began.  An id is any 64-bit number.
 *
 *  A join while a batch is applied begins with the state before, as long as
 *  another join has that state, too; else it waits for the batch, which then
 *  changes pages in place.  A batch never waits for joins.  Pages that joins
 *  still read are copied where a batch changes them, and used again when those
 *  joins have ended.
 *
 *  With backend cuda the pages are in the memory of GPUs, which apply batches
 *  and answer some joins (ogrjoin_live_join()); for all else the points are
 *  copied to host memory, once after a batch.  Batches and joins on GPUs wait
 *  for one another. */

/** Points with ids, to be joined with and changed by any threads. */
struct ogrjoin_live;

/** Without points.
 *  settings  tree: quadtree cuts squares in the middle, kdtree at medians, auto
 *            takes a quadtree, and a k-d tree where that would reach its depth
 *            of 24 or leave pages badly filled; threads; backend: cpu or auto,
 *            or cuda: on the devices of gpus, which share the points by their
 *            ids, with gpu_memory bytes of each; the tree is a quadtree whose
 *            leaves lie in Morton order.  NULL: the defaults; others are not
 *            read
 *  Errors    OGRJOIN_ERR_ARG, OGRJOIN_ERR_UNSUPPORTED: another backend, or a
 *            k-d tree on a GPU; OGRJOIN_ERR_NO_DEVICE; OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_new(const struct ogrjoin_settings *settings,
                 struct ogrjoin_live **out, struct ogrjoin_error *err);

/** Waits for nothing: no join with live is at work. */
OGRJOIN_API void ogrjoin_live_free(struct ogrjoin_live *live);

/** Puts, moves and removes points: n changes that count as one instant.
 *  id        [n] a new one is put, one that is there moves; of several changes
 *            of an id the last one holds
 *  x, y      [n] x NaN: the id is removed.  So it is where a coordinate is
 *            none that joins take (NaN, infinite, beyond 1e150), which is
 *            counted; so is the removal of an id that is not there
 *  Cost      O(n): a point that stays in its page is overwritten there, others
 *            are sorted by page, and a page is cut or rewritten at most once.
 *            Where more than three quarters of the points (on a GPU two
 *            fifths) change pages, all is built anew.  Pages without points are
 *            used again, so that memory does not grow from batch to batch.  A
 *            thread of live takes part for each 8,192 changes
 *  Errors    all changes are applied or, after an error, none.
 *            OGRJOIN_ERR_NOMEM; OGRJOIN_ERR_LIMIT: more than 2^30 ids, new ones
 *            of the batch with them, or changes.  One batch at a time: other
 *            threads wait */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_apply(struct ogrjoin_live *live, int64_t n, const int64_t *id,
                   const double *x, const double *y, struct ogrjoin_error *err);

/** How many points there are. */
OGRJOIN_API int64_t ogrjoin_live_count(struct ogrjoin_live *live);

/** What has happened since ogrjoin_live_new(), and what there is. */
struct ogrjoin_live_counts
{
    size_t size;          /**< sizeof(struct ogrjoin_live_counts) */
    int64_t n;            /**< points now */
    int64_t n_batches;    /**< batches that were applied */
    int64_t n_put;        /**< changes that put a new id */
    int64_t n_moved;      /**< changes of ids that were there */
    int64_t n_removed;    /**< removals of ids that were there */
    int64_t n_unknown;    /**< removals of ids that were not there */
    int64_t n_unjoinable; /**< changes to a place that joins nothing, x being
                               a number */
    int64_t n_superseded; /**< changes of an id before its last in a batch */
    int64_t n_rebuilt;    /**< batches after which all was built anew */
    int64_t n_pages;      /**< pages in use */
    int64_t n_bytes;      /**< bytes of memory, indexes for joins aside */
    char tree[200];       /**< which tree there is, and why */
};

/** Errors  OGRJOIN_ERR_ARG: size */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_counts(struct ogrjoin_live *live, struct ogrjoin_live_counts *out,
                    struct ogrjoin_error *err);

/** The pairs that ogrjoin_join() would give with a fresh ogrjoin_index_new() of
 *  the kept points whose ids are their ids: in its order, and bit for bit.
 *  ogrjoin_pairs_right() are ids, not numbers of rows.
 *  settings  as of ogrjoin_index_new(); NULL: the defaults.  Their cancel flag
 *            outlives live
 *  input     features of any kinds
 *  Cost      nearest and dwithin of points, in the plane: of each point, the
 *            pages in reach.  Predicates, dwithin and nearest of lines and
 *            polygons, and where more is measured of pairs: the pages in reach,
 *            and an index of the points in reach.  Inputs of more than an
 *            eighth as many rows as there are points, joins on the sphere, by
 *            shape, disjoint, and backends other than cpu: an index of all
 *            points, which is kept for joins with equal settings until the next
 *            batch.  Of points on GPUs these answer, with backend auto or cuda:
 *            dwithin and nearest with k up to 32 of points, and predicates of
 *            points with points, in the plane, and bbox of any features
 *  Errors    as of ogrjoin_settings_check_pairs(), ogrjoin_index_new() and
 *            ogrjoin_join(); ogrjoin_pairs_aggregate() is not possible with
 *            such pairs */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_join(struct ogrjoin_live *live,
                  const struct ogrjoin_settings *settings,
                  struct ogrjoin_layer *input, struct ogrjoin_pairs **out,
                  struct ogrjoin_error *err);

/** All pairs of kept points within max_distance of one another, each once, the
 *  smaller id on the left; sorted by ids.
 *  settings  as of ogrjoin_live_join(), op being dwithin.  changes 1: only what
 *            has changed since the last call with changes 1; a value "change"
 *            of each pair is 1: it came, or -1: it is gone, its measure being
 *            NaN; other values of pairs do not go with it
 *  Cost      an index of all points, kept as above, and the pairs
 *  Errors    as of ogrjoin_live_join() */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_near_pairs(struct ogrjoin_live *live,
                        const struct ogrjoin_settings *settings,
                        struct ogrjoin_pairs **out, struct ogrjoin_error *err);

/** All points as a layer, by ascending ids, which does not change any more.
 *  O(n). */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_live_layer(struct ogrjoin_live *live,
                                                    struct ogrjoin_layer **out,
                                                    struct ogrjoin_error *err);

/** And as one record batch of id (int64), x and y (float64). */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_to_arrow(struct ogrjoin_live *live, struct ArrowSchema *schema,
                      struct ArrowArray *array, struct ogrjoin_error *err);

/** Writes all points into a file, which has its name when all of it is on the
 *  disk: one that was there stays until then.
 *  Errors  OGRJOIN_ERR_IO, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_live_save(struct ogrjoin_live *live,
                                                   const char *path,
                                                   struct ogrjoin_error *err);

/** A kept index of the points of such a file.
 *  settings  as of ogrjoin_live_new()
 *  Errors    OGRJOIN_ERR_IO; OGRJOIN_ERR_DATA: it is no such file, or it was
 *            cut off or changed */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_load(const char *path, const struct ogrjoin_settings *settings,
                  struct ogrjoin_live **out, struct ogrjoin_error *err);

/* --- exact sums of groups --------------------------------------------------
 */

/** Exact sums of numbers, one for each group.  Parts of the numbers may be
 *  summed in several processes: as words their sums are sent to one, which
 *  merges them.  Results equal those of one process, bit for bit, in whatever
 *  order numbers are added and sums merged.
 *
 *  process 1   add, add, ...  ->  words \
 *  process 2   add, add, ...  ->  words  ->  merge, merge  ->  values
 *
 *  A sum rounds once, when its value is read, as the aggregates sum and mean
 *  do. */
struct ogrjoin_sums;

/** Makes n sums of nothing.  32 bytes a group and up to 560 more for a group
 *  whose numbers are some twelve orders of magnitude apart.
 *  Errors  OGRJOIN_ERR_ARG: n < 0; OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_sums_new(int64_t n,
                                                  struct ogrjoin_sums **out,
                                                  struct ogrjoin_error *err);

/** Adds value[i] to the sum of group[i], for n numbers.  A NaN, or infinities
 * of both signs, make the sum NaN; one infinity makes it that infinity. group
 * [n] in [0, number of sums) Errors  OGRJOIN_ERR_ARG: group, and nothing was
 * added; OGRJOIN_ERR_NOMEM: a part was added */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_sums_add(struct ogrjoin_sums *sums, int64_t n, const int64_t *group,
                 const double *value, struct ogrjoin_error *err);

/** Likewise for integers, without rounding them to doubles. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_sums_add_integers(struct ogrjoin_sums *sums, int64_t n,
                          const int64_t *group, const int64_t *value,
                          struct ogrjoin_error *err);

/** Writes the sums as words, which their exact values determine.
 *  offset  [number of sums + 1] of the words of each sum.  Most sums have up to
 *          four words, none more than 71; a sum of zeros has none
 *  word    [offset of the last], or NULL: only offset is filled */
OGRJOIN_API void ogrjoin_sums_words(const struct ogrjoin_sums *sums,
                                    int64_t *offset, uint64_t *word);

/** Adds n sums, given as words of ogrjoin_sums_words() of this version or
 *  another, to the sums of their groups.
 *  offset  [n + 1] ascending
 *  Errors  as of ogrjoin_sums_add(); OGRJOIN_ERR_DATA: words that are not those
 *          of a sum, and the sums before them were added */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_sums_merge(struct ogrjoin_sums *sums, int64_t n, const int64_t *group,
                   const int64_t *offset, const uint64_t *word,
                   struct ogrjoin_error *err);

/** value[i]: sum i rounded to the nearest double; +0 for sums of nothing. */
OGRJOIN_API void ogrjoin_sums_values(const struct ogrjoin_sums *sums,
                                     double *value);

/** value[i]: sum i, exact.
 *  Errors  OGRJOIN_ERR_LIMIT: a sum is no integer of 64 bits */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_sums_integers(const struct ogrjoin_sums *sums, int64_t *value,
                      struct ogrjoin_error *err);

OGRJOIN_API void ogrjoin_sums_free(struct ogrjoin_sums *sums);

/* --- points that lie on a CUDA device ------------------------------------- */

/** Points in the memory of a device; the host does not read them. */
struct ogrjoin_device_points
{
    size_t size; /**< sizeof(struct ogrjoin_device_points) */
    int64_t n;
    const double *x, *y; /**< [n]; NaN: no geometry. Others are finite and
                              below 1e150 */
    int64_t stride;      /**< elements from one x (and y) to the next; 2 for
                              x y x y ... */
    const int64_t *id;   /**< [n] ids for exclude_self and unordered, or NULL */
    void *stream;        /**< cudaStream_t of that device: reading the points
                              and writing the answer are ordered in it. NULL:
                              the legacy default stream */
};

/** Their pairs, in memory of the same device, in one of two forms.
 *
 *  one for each point (nearest with k 1 and the first of ties, ..)
 *      right   [5 -1 7]              n_pairs is n, -1: none
 *  lists
 *      offset  [0   2 2     5]       of the pairs of each point
 *      right   [5 8   1 2 9]
 */
struct ogrjoin_device_pairs
{
    size_t size; /**< sizeof(struct ogrjoin_device_pairs), set by the caller */
    int device;  /**< number of the device in CUDA */
    int64_t n_points, n_pairs;
    const int64_t *offset; /**< [n_points + 1], or NULL: one pair per point */
    const int32_t *right;  /**< [n_pairs] in the order of ogrjoin_join() */
    const double *measure; /**< [n_pairs], NaN if there is no pair; NULL: the
                                join has no measure */
    void *owner;           /**< owned by the library */
};

/** Like ogrjoin_join(), for points in device memory: after the first join with
 * a device has copied the join side there, only the number of pairs of lists is
 *  transferred.  Returns when all work is queued on the stream, for lists when
 *  their number is known; several threads take turns.
 *  Errors  OGRJOIN_ERR_NO_DEVICE; OGRJOIN_ERR_ARG: x is not in device memory,
 *          or backend is neither auto nor cuda; OGRJOIN_ERR_UNSUPPORTED: joins
 *          without a kernel, and values other than the measure;
 *          OGRJOIN_ERR_NOMEM; OGRJOIN_ERR_TOO_MANY */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_join_device(
    struct ogrjoin_index *index, const struct ogrjoin_device_points *points,
    struct ogrjoin_device_pairs *out, struct ogrjoin_error *err);

/** Makes work that is put on a stream later wait until the pairs are complete.
 *  stream  of the device that has the pairs */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_device_pairs_wait(const struct ogrjoin_device_pairs *pairs,
                          void *stream, struct ogrjoin_error *err);

/** Waits for the whole device first. Accepts a zeroed struct. */
OGRJOIN_API void ogrjoin_device_pairs_free(struct ogrjoin_device_pairs *pairs);

#ifdef __cplusplus
}
#endif
#endif
