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
 *  holds references to the others that it uses.  Functions that free accept
 *  NULL.  Several threads may join with one index at once: on the CPU they run
 *  concurrently; if a device may be used, they take turns.  A function that can
 *  fail returns enum ogrjoin_status.  On failure it writes one line of text to
 *  *err, unless err is NULL, and leaves its outputs unchanged.
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
    OGRJOIN_ERR_DATA = 4,        /**< invalid data: WKB, arrays, streams, files,
                                      texts of CRS, or words of sums */
    OGRJOIN_ERR_IO = 5,          /**< a stream or file could not be read, or a
                                      file not be written */
    OGRJOIN_ERR_UNSUPPORTED = 6, /**< valid, but not supported by any backend
                                      that may be used */
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

/** Sets a setting to a text; ogrjoin_setting_help() describes its values. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_set_text(struct ogrjoin_settings *settings, const char *name,
                 const char *value, struct ogrjoin_error *err);

/** Sets a setting to a number; yes and no are 1 and 0. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_set_number(struct ogrjoin_settings *settings, const char *name,
                   double value, struct ogrjoin_error *err);

/** Sets a cancel flag, which is polled while an index is made and used: when it
 *  is nonzero, the call ends with OGRJOIN_ERR_CANCELLED.  The flag must outlive
 *  the index.  NULL: no flag. */
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

/** A layer of features, numbered from 0; at most 2^31 - 1 of them. */
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
    const int64_t *id; /**< [n_features] ids; NULL: the feature numbers.
                            Equally near pairs are sorted by id; exclude_self
                            and unordered compare ids */
};

/** Makes a layer of arrays, which are borrowed: they must outlive the layer and
 *  objects made from it, and must not change.  Their contents are checked.
 *  O(vertices).
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
 *            is ignored; M, too, unless the setting `along` is "m".  A feature
 *            that is NULL has no pairs
 *  settings  give the number of threads and the cancel flag; NULL: all threads.
 *            If the setting `side` is "left" or "right", errors name the side,
 *            and the columns named by `similar` and `vector` are read, too:
 *            texts (utf8, large, views, integers), numbers, lists of numbers;
 *            with `op` "similar" and no `max_distance`, the array then needs
 *            no geometries
 *  array     moved: the library releases it and marks it as released, also
 *            after an error.  The caller keeps schema and releases it
 *
 *  Separated coordinates without NULLs, empty or open rings are used without a
 *  copy; other geometries are copied, on all threads.  The bytes of WKB and all
 *  offsets are checked, but not the lengths of buffers, which Arrow does not
 *  store.
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

/** Columns of a layer besides the geometry: arrays of the caller with an entry
 *  per feature; NULL: no such column. */
struct ogrjoin_columns
{
    size_t size;       /**< sizeof(struct ogrjoin_columns) */
    const int64_t *id; /**< as in struct ogrjoin_arrays; NULL: unchanged */
    const double *max_distance; /**< for dwithin: maximum distance of each
                                     feature, in place of the setting; NaN or
                                     below 0: the feature has no pairs. Only
                                     one of the two sides may have it */
    const int32_t *on_class;    /**< only features of equal class are pairs;
                                     below 0: the feature has no pairs. Both
                                     sides must have it, or neither */
    const int64_t *score; /**< join side: `pick score` keeps the pair of each
                               row whose join feature has the maximum score;
                               INT64_MIN ranks last */
    const double *m; /**< join side, not of points only: the M value of each
                          vertex, for the setting along; NaN: it has none */
};

/** Sets columns of a layer, before it is indexed or joined. The arrays are
 *  borrowed: they must outlive the layer and objects made from it, and must not
 *  change.  Members that are NULL change nothing.
 *  Errors  OGRJOIN_ERR_ARG */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_set_columns(struct ogrjoin_layer *layer,
                          const struct ogrjoin_columns *columns,
                          struct ogrjoin_error *err);

/** The distinct values of a column of the join side, numbered from 0.  These
 *  numbers (classes) are meant for on_class of struct ogrjoin_columns: values
 *  are compared as by the setting on. */
struct ogrjoin_classes;

/** Makes classes of the values of a column of the join side.
 *  values   an Arrow array of any type but unions, with an entry for each
 *           feature; moved, also on failure
 *  Errors   OGRJOIN_ERR_DATA, OGRJOIN_ERR_UNSUPPORTED, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_classes_new(const struct ArrowSchema *schema, struct ArrowArray *values,
                    struct ogrjoin_classes **out, struct ogrjoin_error *err);

/** Finds the classes of the values of an input.  Values are compared as numbers
 *  if both sides have numbers, as moments if both have dates, datetimes or
 *  texts, at least one of them dates or datetimes (but two columns of dates as
 *  texts), and otherwise as texts.  NULL and NaN equal nothing.
 *  values      moved, also on failure
 *  class_of    output [length of values]: the class of each value; -1: the join
 *              side has no equal value
 *  join_class  output: the classes of the join side's values, valid as long as
 *              `classes`.  Inputs that are compared in different ways get
 *              different arrays
 *  Several threads may call this function at once.
 *  Errors      as above; OGRJOIN_ERR_LIMIT: more than 2^31 - 2 classes */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_classes_find(struct ogrjoin_classes *classes,
                     const struct ArrowSchema *schema,
                     struct ArrowArray *values, int32_t *class_of,
                     const int32_t **join_class, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_classes_free(struct ogrjoin_classes *classes);

/** Adds a column of UTF-8 texts, for the next condition of the setting similar.
 *  Must be called before the layer is indexed or joined.
 *  offset  [features + 1] text i is bytes[offset[i]] to bytes[offset[i + 1] -
 *          1]; an empty text has no pairs.  Borrowed like bytes: both must
 *          outlive the layer and objects made from it
 *  Errors  OGRJOIN_ERR_ARG; OGRJOIN_ERR_LIMIT: more than 8 columns of texts */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_add_text(struct ogrjoin_layer *layer, const int64_t *offset,
                       const char *bytes, struct ogrjoin_error *err);

/** Sets the numbers for the setting vector, instead of Arrow columns.  Must be
 *  called before the layer is indexed or joined.
 *  offset  [features + 1] feature i has number[offset[i]] to
 *          number[offset[i + 1] - 1]: a number for each name of the setting, or
 *          a list if the setting has one name.  The first list of the join side
 *          sets the number of dimensions; a feature with another number of
 *          values has no pairs.  Borrowed like number: both must outlive the
 *          layer and objects made from it
 *  Errors  OGRJOIN_ERR_ARG */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_set_vectors(struct ogrjoin_layer *layer, const int64_t *offset,
                          const double *number, struct ogrjoin_error *err);

OGRJOIN_API int64_t ogrjoin_layer_count(const struct ogrjoin_layer *layer);

/** Sets *srid to the SRID of the layer's geometries in extended WKB (PostGIS),
 *  to 0 if they have none, or to -1 if an Arrow column has no geometry.  It is
 *  the CRS of a layer for which no other is known: the caller gives "EPSG:srid"
 *  to ogrjoin_settings_use_crs().
 *  Errors  OGRJOIN_ERR_ARG: two geometries have different SRIDs */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_srid(const struct ogrjoin_layer *layer, int64_t *srid,
                   struct ogrjoin_error *err);
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

/** Name of the backend in use.  With the setting backend "auto" it is "cpu" or
 *  "cuda", and may change at the first join. */
OGRJOIN_API const char *ogrjoin_index_backend(struct ogrjoin_index *index);

/** Frees the working memory that joins with index keep for later joins.  After
 *  a large join it is as large as the layer. */
OGRJOIN_API void ogrjoin_index_trim(struct ogrjoin_index *index);

/** Pairs of features, sorted by the number of the input feature (left).  The
 *  pairs of an input feature are sorted as the command does: nearest first, or
 *  by the ids of the join side if the join has no measure. */
struct ogrjoin_pairs;

/** Finds all pairs of a layer with the join side. The answer does not depend on
 *  threads, on the backend, or on how features are split into layers.
 *  Errors  those of ogrjoin_index_new(); OGRJOIN_ERR_UNSUPPORTED: the backend
 *          cannot join such features; OGRJOIN_ERR_TOO_MANY */
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
/** [count] measures of the pairs: distances in units of the coordinates, or in
 *  metres if the metric is sphere or ellipsoid; for op similar, similarities of
 *  texts, or differences of vectors if no texts are compared; NaN for joins
 *  without a measure. */
OGRJOIN_API const double *
ogrjoin_pairs_measure(const struct ogrjoin_pairs *pairs);
/** [count] values that a setting requested, NaN if undefined: overlap_area,
 * overlap_length, overlap_percent, nearest_x, nearest_y, from_x, from_y,
 * bearing, line_along, line_along_percent, line_offset, line_side,
 * line_segment, line_bearing, matrix, relation; with the setting similar:
 * similarity, similarity_2 ...; with the setting vector: difference.  NULL: not
 * requested. */
OGRJOIN_API const double *ogrjoin_pairs_value(const struct ogrjoin_pairs *pairs,
                                              const char *name);
/** The word for a value of line_side, matrix or relation: "left", "212101212",
 *  "touches".  A static string; NULL if value is NaN or has no word, or if name
 *  is none of the three. */
OGRJOIN_API const char *ogrjoin_pairs_word(const char *name, double value);
/** The intersection of each pair as ISO WKB, little-endian: bytes (*offset)[i]
 * to (*offset)[i + 1] - 1; empty if GEOS could not compute it.  NULL: not
 * requested by the setting intersection. */
OGRJOIN_API const uint8_t *
ogrjoin_pairs_intersection(const struct ogrjoin_pairs *pairs,
                           const int64_t **offset);
/** Number of pairs (or rows) that are missing from the answer, because GEOS
 *  could not decide them. */
OGRJOIN_API int64_t ogrjoin_pairs_undecided(const struct ogrjoin_pairs *pairs);
/** Number of groups of more than 1,000,000 connected pairs, whose pairs were
 * chosen greedily, best first, although one_to_one is best. */
OGRJOIN_API int64_t
ogrjoin_pairs_large_groups(const struct ogrjoin_pairs *pairs);
OGRJOIN_API void ogrjoin_pairs_free(struct ogrjoin_pairs *pairs);

/** A value for each feature of the join side: integers, reals or texts.  The
 *  arrays of the other two forms are NULL. */
struct ogrjoin_values
{
    size_t size;            /**< sizeof(struct ogrjoin_values) */
    const int64_t *integer; /**< [features] */
    const double *real;     /**< [features] */
    const int64_t *offset;  /**< [features + 1] offsets of texts in bytes */
    const char *bytes;      /**< the bytes of the texts */
    const uint8_t *is_null; /**< [features] 1: the value is NULL. is_null NULL:
                                 no value is NULL */
};

/** A result for each input row: integers, reals or texts as in struct
 *  ogrjoin_values.  ogrjoin_results_free() frees the arrays. */
struct ogrjoin_results
{
    size_t size;      /**< sizeof(struct ogrjoin_results), set by the library */
    int64_t n;        /**< rows of the layer that was joined */
    int64_t *integer; /**< [n] */
    double *real;     /**< [n] */
    int64_t *offset;  /**< [n + 1] offsets of texts in bytes */
    char *bytes;      /**< the bytes of the texts */
    uint8_t *is_null; /**< [n] 1: the result is NULL */
};

/** Aggregates the values of join features over the pairs of each input row,
 *  like -agg of the command.  Sums are exact.
 *  function   count, sum, mean, min, max, range, median, percentile, q1, q3,
 *             stddev, variance, first, last, mode, minority, unique, concat
 *             (texts), weighted_sum and weighted_mean (need the setting share)
 *  separator  text between the values of concat; for percentile the percentage,
 *             from 0 to 100, as "90"; otherwise ignored
 *  values     NULL only for count, which then counts pairs
 *  Errors     OGRJOIN_ERR_ARG; OGRJOIN_ERR_LIMIT: a sum of integers beyond 64
 *             bits; OGRJOIN_ERR_UNSUPPORTED: covered_area, covered_length or
 *             covered_percent, which only joins of rows compute;
 *             OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_pairs_aggregate(const struct ogrjoin_pairs *pairs, const char *function,
                        const char *separator,
                        const struct ogrjoin_values *values,
                        struct ogrjoin_results *out, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_results_free(struct ogrjoin_results *results);

/** Result of comparing the answers of two backends, like -validate of the
 *  command. */
struct ogrjoin_validation
{
    size_t size; /**< sizeof(struct ogrjoin_validation), set by the caller */
    int64_t n_rows, n_pairs;   /**< rows and pairs that were compared */
    int64_t n_differences;     /**< 0: the answers agree */
    int64_t n_rows_proved;     /**< rows for which the reference is wrong: exact
                                    arithmetic confirms the answer of the index
                                    (distances up to rounding). Not counted as
                                    differences */
    int64_t n_rows_undecided;  /**< rows that are not compared, because neither
                                    answer could be decided exactly */
    int64_t n_pairs_undecided; /**< pairs that are not compared, because they
                                    could not be decided exactly */
    int64_t left, right; /**< pair of the first difference, -1: none. right: the
                              feature that the index found, otherwise the one
                              that the reference found */
    const char *kind;    /**< kind of the first difference: missing, extra,
                              distance or order; NULL: none */
};

/** Joins input twice, with the index and with a reference, and compares the
 *  answers.
 *  reference  name of a backend; NULL: lists for op similar and attributes
 *             without a maximum distance, otherwise sphere or ellipsoid for the
 *             metric of this name, otherwise geos
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

/** Makes a stream of record batches as of ogrjoin_pairs_to_arrow(), one for
 *  each array of input.  An array is read when its batch is requested; left
 *  numbers the rows of all arrays consecutively.
 *  input   moved, and released with *out.  The columns named in the settings
 *          similar and vector are read from it
 *  column  as in ogrjoin_layer_from_array()
 *  Errors  those of ogrjoin_layer_from_array() for the schema of input;
 *          OGRJOIN_ERR_UNSUPPORTED: one_to_one, or similar without names of
 *          columns; OGRJOIN_ERR_IO.  The stream returns the errors of arrays */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_join_stream(struct ogrjoin_index *index, struct ArrowArrayStream *input,
                    const char *column, struct ArrowArrayStream *out,
                    struct ogrjoin_error *err);

/* --- pairs as lists, and streams read layer by layer -----------------------
 */

/** Like ogrjoin_join(), but returns the pairs as one list per input feature.
 *  This takes at most half of the memory, usually without a copy.
 *
 *  input feature   0   1   2         (1 has no pair)
 *  offset         [0   2   2     5]
 *  right32        [5 8     1 2 9]
 *  measure        [.. .    . . .]    or NULL: the join has none
 *
 *  For such pairs, ogrjoin_pairs_left() and ogrjoin_pairs_right() return NULL,
 *  and ogrjoin_pairs_to_arrow() fails; all other functions work. */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_join_lists(struct ogrjoin_index *index,
                                                    struct ogrjoin_layer *input,
                                                    struct ogrjoin_pairs **out,
                                                    struct ogrjoin_error *err);

/** Number of rows that were joined. */
OGRJOIN_API int64_t ogrjoin_pairs_rows(const struct ogrjoin_pairs *pairs);
/** [rows + 1] index of the first pair of each row; NULL unless pairs are lists.
 */
OGRJOIN_API const int64_t *
ogrjoin_pairs_offset(const struct ogrjoin_pairs *pairs);
/** [count] numbers of the features of the join side; NULL unless pairs are
 *  lists. */
OGRJOIN_API const int32_t *
ogrjoin_pairs_right32(const struct ogrjoin_pairs *pairs);

/** A stream of features that is read step by step. */
struct ogrjoin_source;

/** Opens a source.  Only one thread at a time may use it.
 *  stream            moved: released with *out; after an error at once
 *  column, settings  as in ogrjoin_layer_from_stream(); the settings may be
 *                    freed afterwards */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_source_open(struct ArrowArrayStream *stream, const char *column,
                    const struct ogrjoin_settings *settings,
                    struct ogrjoin_source **out, struct ogrjoin_error *err);

/** Reads the next n_rows features, or those that remain, as a layer; *out is
 *  NULL after the last feature.  Arrays of the stream are split and
 *  concatenated as needed; a stream without features gives one empty layer.
 *  Features are numbered consecutively across layers.  Pairs have these numbers
 *  as left; without ids, exclude_self and unordered compare them. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_source_next(struct ogrjoin_source *source, int64_t n_rows,
                    struct ogrjoin_layer **out, struct ogrjoin_error *err);

/** Sets *srid as ogrjoin_layer_srid() does: before the first feature is read to
 *  the SRID of the first geometry of the first array, which is read for it;
 *  afterwards to that of all features so far.
 *  Errors  OGRJOIN_ERR_ARG: two geometries have different SRIDs; those of
 *          ogrjoin_source_next() */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_source_srid(struct ogrjoin_source *source, int64_t *srid,
                    struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_source_free(struct ogrjoin_source *source);

/** Finds the pairs of all remaining features of source, as lists
 *  (ogrjoin_join_lists()).  On the CPU, only some of the features are in memory
 *  at a time.
 *  n_rows  expected number of features; 0: unknown */
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
 *  full, the geometries of join rows without a pair are written to the geometry
 *  column of the input, in its type: WKB in binary or large binary, or the
 *  common type of both sides.  A join is described by settings, which have the
 *  names and values of the command's options: ogrjoin_setting_help().
 *
 *  A side has its features in one of these forms:
 *  - a column of geometries, as in ogrjoin_layer_from_array(): the column named
 *    by the setting left_column or right_column, otherwise the only one marked
 *    as geoarrow, otherwise the only one of bytes. A column that is named, or
 *    marked as geoarrow.wkt, can have texts (u, U, vu, or a dictionary of
 *    them): WKT, EWKT, or WKB in hexadecimal digits. Texts and extended WKB
 *    (PostGIS) become ISO WKB in the rows
 *  - points, as two columns of numbers that the settings left_x and left_y, or
 *    right_x and right_y, name
 *  - none, if only texts or vectors are compared
 *
 *  The CRS of a side is the setting left_crs or right_crs, otherwise the crs in
 *  ARROW:extension:metadata: PROJJSON, WKT, or authority:code; otherwise
 *  EPSG:SRID with the SRID of its geometries, which must be one, as EWKT or
 *  extended WKB have it: the first array of the input is read for it when the
 *  stream is opened.  A side without a CRS is assumed to have that of the other
 *  side.  Errors are: two different CRS; a distance with a unit if there is no
 *  CRS; a distance without a unit if the CRS is in degrees.  With the setting
 *  crs "ignore", coordinates are used as they are. */

/** A join side with all its columns, in memory.  It can be joined with any
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
 *             join; OGRJOIN_ERR_DATA or OGRJOIN_ERR_UNSUPPORTED: the column of
 *             geometries is invalid or not supported; OGRJOIN_ERR_IO,
 *             OGRJOIN_ERR_LIMIT, OGRJOIN_ERR_CANCELLED, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_rows_open(struct ArrowArrayStream *join_side,
                  const struct ogrjoin_settings *settings,
                  struct ogrjoin_rows **out, struct ogrjoin_error *err);

/** Makes a stream of the rows of input joined with the join side.
 *  input     moved: released with *out, after an error at once.  It is read
 *            while rows are taken from *out: batch_rows rows at a time; with
 *            one_to_one all of them at the first call.  Its arrays are kept as
 *            long as rows of *out that need no copy point into them
 *  settings  settings of this join, in place of those of ogrjoin_rows_open();
 *            NULL: the settings of ogrjoin_rows_open()
 *  out       record batches of at most some 256 MB and 65,536 rows, none of
 *            them empty.  get_schema() works before any row is read.
 *            get_next() returns an errno and get_last_error() a line of text;
 *            after an error the stream can only be released.  The cancel flag
 *            of the settings ends it with ECANCELED.  Only one thread at a time
 *            may use *out; any thread may release it.  rows may be freed before
 *            *out
 *  Errors    those of ogrjoin_rows_open() and ogrjoin_index_new() that can be
 *            found before a row of input is read */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_rows_join(struct ogrjoin_rows *rows, struct ArrowArrayStream *input,
                  const struct ogrjoin_settings *settings,
                  struct ArrowArrayStream *out, struct ogrjoin_error *err);

/** Frees a join side; streams made from it stay valid. */
OGRJOIN_API void ogrjoin_rows_free(struct ogrjoin_rows *rows);

/** Like ogrjoin_rows_join(), but uses an existing index if possible.
 *  index  its layer must hold the features of the join side in their order, as
 *         ogrjoin_layer_from_stream() reads them.  The index is used if it was
 *         made for settings that find equal pairs, if it cannot use a GPU, and
 *         if the settings name no columns of ids, distances, classes or times
 *         of the join side; otherwise another index is made.  NULL: none */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_rows_join_index(
    struct ogrjoin_rows *rows, struct ogrjoin_index *index,
    struct ArrowArrayStream *input, const struct ogrjoin_settings *settings,
    struct ArrowArrayStream *out, struct ogrjoin_error *err);

/** Number of rows of the join side. */
OGRJOIN_API int64_t ogrjoin_rows_count(const struct ogrjoin_rows *rows);

/** Joins two streams: ogrjoin_rows_open() and ogrjoin_rows_join() in one call.
 *  Both streams are moved, also on failure. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_join_rows(struct ArrowArrayStream *input,
                  struct ArrowArrayStream *join_side,
                  const struct ogrjoin_settings *settings,
                  struct ArrowArrayStream *out, struct ogrjoin_error *err);

/** Index of the geometry column in a stream that ogrjoin_rows_join() made; -1
 *  if it has no geometry column, or for any other stream. */
OGRJOIN_API int64_t
ogrjoin_rows_geometry(const struct ArrowArrayStream *stream);

/** Sets a progress function, which the thread that takes rows calls after each
 *  part of the input.
 *  report  gets the number of input rows joined so far, and n_rows, the setting
 *          input_rows, or -1 if unknown.  Returns nonzero to end the join with
 *          OGRJOIN_ERR_CANCELLED.  NULL: no progress function
 *  user    first argument of report.  Both must outlive the streams */
OGRJOIN_API void ogrjoin_settings_progress(
    struct ogrjoin_settings *settings,
    int (*report)(void *user, int64_t rows, int64_t n_rows), void *user);

/** Sets a function that receives notices: lines of text that are not errors,
 *  for example if one side has no CRS, or if GEOS cannot compute overlaps.
 *  notice  called by the thread that calls the library.  NULL: notices are
 *          dropped
 *  user    first argument of notice.  Both must outlive the streams */
OGRJOIN_API void ogrjoin_settings_notices(struct ogrjoin_settings *settings,
                                          void (*notice)(void *user,
                                                         const char *message),
                                          void *user);

/** Sets functions of the caller that supply definitions of CRS, since the
 *  library has no database of them.  Either may be NULL.  They are called in
 *  ogrjoin_rows_open() and ogrjoin_rows_join(), by the threads that call these
 *  functions, and must stay valid until both have returned.
 *  expand   writes the PROJJSON or WKT of a CRS that is given by its code alone
 *           ("EPSG:2263") into text, zero-terminated, like snprintf(): returns
 *           the length without the zero; if that is size or more, it is called
 *           again with a larger buffer; 0 or less: unknown.  Not called for
 *           EPSG:4326, OGC:CRS84 and OGC:CRS84h
 *  compare  returns 1 if a and b, the texts as given, are one CRS, 0 if they
 *           differ, below 0 if unknown.  Called if the texts alone do not
 *           decide */
OGRJOIN_API void ogrjoin_settings_crs(
    struct ogrjoin_settings *settings,
    int (*expand)(void *user, const char *crs, char *text, size_t size),
    int (*compare)(void *user, const char *a, const char *b), void *user);

/** Converts distances with units in the settings ("100ft") to the unit of the
 *  CRS of the join.  For joins of layers, which have no CRS;
 *  ogrjoin_rows_join() does this itself.
 *  left, right  CRS of the sides, as in the setting left_crs; NULL: none
 *  Errors       OGRJOIN_ERR_ARG: the CRS of the sides differ, or a distance
 *               cannot be converted to the unit; OGRJOIN_ERR_DATA: a text is no
 *               CRS */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_settings_use_crs(struct ogrjoin_settings *settings, const char *left,
                         const char *right, struct ogrjoin_error *err);

/** Checks that all settings have an effect on ogrjoin_index_new() and
 *  ogrjoin_join(), which ignore settings without effect.
 *  Errors  OGRJOIN_ERR_ARG: a setting has no effect on such pairs, or two
 *          settings clash; the message names what to write */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_settings_check_pairs(const struct ogrjoin_settings *settings,
                             struct ogrjoin_error *err);

/* --- events of a stream of reports ----------------------------------------
 *
 *  A report is a feature of a layer with a key: the position of a vehicle, for
 *  example, and its number.  Its pairs with the join side are compared with
 *  those of the last report of its key:
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
    OGRJOIN_CHANGE = 3 /**< op nearest: the nearest feature is another one, or
                            there is none any more */
};

/** For each key the features that its last report is paired with.  Only one
 *  thread at a time may use it. */
struct ogrjoin_events;

/** Makes an empty state, without keys.
 *  index      of a join by geometries; op nearest needs k 1 and ties first.
 *             pick, one_to_one and unordered must not be set, since they drop
 *             pairs
 *  which      NULL or "changes": enter, exit and change; "all": also stay
 *  has_texts  1: keys are texts; 0: integers
 *  Errors  OGRJOIN_ERR_ARG; OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_events_new(struct ogrjoin_index *index,
                                                    const char *which,
                                                    int has_texts,
                                                    struct ogrjoin_events **out,
                                                    struct ogrjoin_error *err);

/** The keys of the features of a layer: integers or texts. */
struct ogrjoin_event_keys
{
    size_t size;            /**< sizeof(struct ogrjoin_event_keys) */
    const int64_t *integer; /**< [n] keys; NULL if keys are texts */
    const int64_t *offset;  /**< [n + 1] offsets of texts in bytes, NULL if keys
                                 are integers; an empty text is no key */
    const char *bytes;
    const uint8_t *is_null; /**< [n] nonzero: the feature has no key. NULL: all
                                 have a key */
};

/** Events, sorted by report; those of a report in the order exits, enters,
 *  stays, and each of these by the ids of the join side.  The library owns the
 *  arrays; they are valid until the next call with these events. */
struct ogrjoin_event_rows
{
    size_t size; /**< sizeof(struct ogrjoin_event_rows), set by the caller */
    int64_t n;
    const int64_t *report;  /**< [n] numbers of reports */
    const int64_t *feature; /**< [n] numbers of features of the join side; -1:
                                 op nearest has no feature any more */
    const uint8_t *kind;    /**< [n] enum ogrjoin_event */
    const double *measure;  /**< [n] measure of the pair; NaN: the event has no
                                 pair, or the join has no measure */
};

/** Joins a batch of reports, in their order, and returns their events.  A
 *  report without a key or a geometry has no events and changes nothing.  After
 *  an error the state is unchanged.
 *  Cost    that of ogrjoin_join(), and some 50 ns per report; memory: 32 bytes
 *          per key with features, and 4 per feature of keys with more than two
 *  Errors  those of ogrjoin_join(); OGRJOIN_ERR_ARG: keys have another form
 *          than in ogrjoin_events_new() */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_events_add(struct ogrjoin_events *events, struct ogrjoin_layer *reports,
                   const struct ogrjoin_event_keys *keys,
                   struct ogrjoin_event_rows *out, struct ogrjoin_error *err);

/** Number of keys that are paired with at least one feature. */
OGRJOIN_API int64_t ogrjoin_events_inside(const struct ogrjoin_events *events);

/** Writes the state to a file: the keys and the ids of their features.  The
 *  file is replaced atomically, even if the process is killed meanwhile.
 *  Errors  OGRJOIN_ERR_IO; OGRJOIN_ERR_ARG: ids of the join side repeat */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_events_save(const struct ogrjoin_events *events, const char *path,
                    struct ogrjoin_error *err);

/** Replaces the state by that of a file, which must have been written with
 *  equal join features (ids and geometries), settings and form of keys.  After
 *  an error the state is unchanged.
 *  Errors  OGRJOIN_ERR_IO: no such file; OGRJOIN_ERR_DATA: the file is invalid;
 *          OGRJOIN_ERR_ARG: it was written by another join */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_events_load(struct ogrjoin_events *events, const char *path,
                    struct ogrjoin_error *err);

OGRJOIN_API void ogrjoin_events_free(struct ogrjoin_events *events);

/* --- a kept index of points ------------------------------------------------
 *
 *  ogrjoin_live_new(settings, &live, &err);
 *  ogrjoin_live_apply(live, n, id, x, y, &err);       for example every second
 *  ogrjoin_live_join(live, settings, fences, &pairs, &err);
 *
 *  Points that move: vehicles, vessels, phones.  They are stored in pages of at
 *  most 256 points at the leaves of a tree.  A batch of changes only rewrites
 *  the pages that it must.  A join uses the points as they were when it began.
 *  An id is any 64-bit integer.
 *
 *  A join that begins while a batch is applied uses the state before the batch
 *  if another join still uses that state; otherwise it waits for the batch,
 *  which then changes pages in place.  A batch never waits for joins.  If joins
 *  still read a page, a batch changes a copy of it; the page is reused when
 *  these joins have ended.
 *
 *  With backend cuda the pages are in the memory of GPUs, which apply batches
 *  and support some joins (ogrjoin_live_join()); for other joins the points are
 *  copied to host memory, at most once after each batch.  Batches and joins on
 *  GPUs wait for one another. */

/** Moving points with ids.  Any thread may change them or join with them. */
struct ogrjoin_live;

/** Makes a kept index without points.
 *  settings  tree: quadtree divides squares in the middle, kdtree at medians;
 *            auto: a quadtree, or a k-d tree if the quadtree would reach its
 *            maximum depth of 24 or have badly filled pages.  threads.
 *            backend: cpu or auto; cuda: the points are divided by their ids
 *            between the devices of the setting gpus, with gpu_memory bytes of
 *            each, and the tree is a quadtree whose leaves are in Morton order.
 *            Other settings are ignored.  NULL: the defaults
 *  Errors    OGRJOIN_ERR_ARG, OGRJOIN_ERR_UNSUPPORTED: another backend, or a
 *            k-d tree on a GPU; OGRJOIN_ERR_NO_DEVICE; OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_new(const struct ogrjoin_settings *settings,
                 struct ogrjoin_live **out, struct ogrjoin_error *err);

/** Frees a kept index.  Precondition: no join with it is running. */
OGRJOIN_API void ogrjoin_live_free(struct ogrjoin_live *live);

/** Inserts, moves and removes points by n changes, which become visible at
 *  once.
 *  id        [n] a new id is inserted, an existing one is moved; if an id has
 *            several changes, the last one is valid
 *  x, y      [n] coordinates; x NaN: the id is removed.  An id is also removed,
 *            and counted, if joins do not accept a coordinate (NaN, infinite,
 *            beyond 1e150).  Removals of unknown ids are counted
 *  Cost      O(n): a point that stays in its page is overwritten there, others
 *            are sorted by page, and a page is cut or rewritten at most once.
 *            Where more than three quarters of the points (on a GPU two
 *            fifths) change pages, all is built anew.  Pages without points are
 *            used again, so that memory does not grow from batch to batch.  A
 *            thread of live takes part for each 4,096 changes; the threads
 *            sleep between batches, and end with ogrjoin_live_free()
 *  Errors    all changes are applied or, after an error, none.
 *            OGRJOIN_ERR_NOMEM; OGRJOIN_ERR_LIMIT: more than 2^30 changes, or
 *            more than 2^30 ids including the new ones of the batch.  One batch
 *            at a time: other threads wait */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_apply(struct ogrjoin_live *live, int64_t n, const int64_t *id,
                   const double *x, const double *y, struct ogrjoin_error *err);

/** Number of points. */
OGRJOIN_API int64_t ogrjoin_live_count(struct ogrjoin_live *live);

/** Counts of changes since ogrjoin_live_new(), and of the present contents. */
struct ogrjoin_live_counts
{
    size_t size;          /**< sizeof(struct ogrjoin_live_counts) */
    int64_t n;            /**< number of points */
    int64_t n_batches;    /**< batches that were applied */
    int64_t n_put;        /**< changes that inserted a new id */
    int64_t n_moved;      /**< changes that moved an existing id */
    int64_t n_removed;    /**< removals of existing ids */
    int64_t n_unknown;    /**< removals of unknown ids */
    int64_t n_unjoinable; /**< changes to coordinates that joins do not
                               accept; x is not NaN */
    int64_t n_superseded; /**< changes of an id before its last one */
    int64_t n_rebuilt;    /**< batches after which the index was rebuilt */
    int64_t n_pages;      /**< pages in use */
    int64_t n_bytes;      /**< bytes of memory, without the kept indexes of
                               joins */
    char tree[200];       /**< kind of the tree, and why it was chosen */
};

/** Fills *out.
 *  Errors  OGRJOIN_ERR_ARG: out->size is not set */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_counts(struct ogrjoin_live *live, struct ogrjoin_live_counts *out,
                    struct ogrjoin_error *err);

/** Finds the pairs of input with the kept points.  They equal, in order and bit
 *  for bit, those of ogrjoin_join() with a new index of these points, but
 *  ogrjoin_pairs_right() are ids of points, not row numbers.
 *  ogrjoin_pairs_aggregate() does not support such pairs.
 *  settings  as for ogrjoin_index_new(); NULL: the defaults.  Their cancel flag
 *            must outlive live
 *  input     features of any kinds
 *  Cost      nearest and dwithin of points, in the plane, of up to 4 rows for
 *            each kept point: for each row, a search of the pages in reach.
 *            Predicates, dwithin and nearest of lines and polygons, and joins
 *            with values of pairs, of up to one row for 8 kept points: a search
 *            of the pages in reach, and an index of the points found.  More
 *            rows, joins on the sphere, by shape, disjoint, and backends other
 *            than cpu and auto: an index of all points, which is kept for joins
 *            with equal settings until the next batch.  If the points are on
 *            GPUs and backend is auto or cuda, GPUs answer dwithin and nearest
 *            (k up to 32) of points, predicates of points with points, in the
 *            plane, and bbox of any features
 *  Errors    those of ogrjoin_settings_check_pairs(), ogrjoin_index_new() and
 *            ogrjoin_join() */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_join(struct ogrjoin_live *live,
                  const struct ogrjoin_settings *settings,
                  struct ogrjoin_layer *input, struct ogrjoin_pairs **out,
                  struct ogrjoin_error *err);

/** Finds all pairs of kept points within max_distance of one another, each
 *  once, with the smaller id on the left; sorted by ids.
 *  settings  as for ogrjoin_live_join(); op is dwithin.  changes 1: returns
 *            only pairs that have changed since the last call with changes 1;
 *            their value "change" is 1 for a new pair, or -1 for a pair that no
 *            longer exists, whose measure is NaN.  Other values of pairs are
 *            then not possible
 *  Cost      an index of all points, which is kept as above, and the pairs
 *  Errors    those of ogrjoin_live_join() */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_near_pairs(struct ogrjoin_live *live,
                        const struct ogrjoin_settings *settings,
                        struct ogrjoin_pairs **out, struct ogrjoin_error *err);

/** Copies all points to a layer, sorted by ids.  Later batches do not change
 *  it. O(n). */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_live_layer(struct ogrjoin_live *live,
                                                    struct ogrjoin_layer **out,
                                                    struct ogrjoin_error *err);

/** Copies all points to a record batch of id (int64), x and y (float64), sorted
 *  by ids. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_to_arrow(struct ogrjoin_live *live, struct ArrowSchema *schema,
                      struct ArrowArray *array, struct ogrjoin_error *err);

/** Writes all points to a file.  An existing file is replaced only when the new
 *  one is complete on disk.
 *  Errors  OGRJOIN_ERR_IO, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_live_save(struct ogrjoin_live *live,
                                                   const char *path,
                                                   struct ogrjoin_error *err);

/** Makes a kept index of the points in a file that ogrjoin_live_save() wrote.
 *  settings  as for ogrjoin_live_new()
 *  Errors    OGRJOIN_ERR_IO; OGRJOIN_ERR_DATA: not such a file, or the file is
 *            truncated or damaged */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_load(const char *path, const struct ogrjoin_settings *settings,
                  struct ogrjoin_live **out, struct ogrjoin_error *err);

/* --- exact sums of groups --------------------------------------------------
 */

/** Exact sums of numbers, one for each group.  Several processes may each sum
 *  a part of the numbers and export their sums as words; one process merges
 *  these.  Results equal those of one process, bit for bit, in whatever order
 *  numbers are added and sums merged.
 *
 *  process 1   add, add, ...  ->  words \
 *  process 2   add, add, ...  ->  words  ->  merge, merge  ->  values
 *
 *  A sum rounds once, when its value is read, as the aggregates sum and mean
 *  do. */
struct ogrjoin_sums;

/** Makes n sums without addends.  Memory: 32 bytes per group, and up to 560
 *  more for a group whose numbers differ by some twelve orders of magnitude.
 *  Errors  OGRJOIN_ERR_ARG: n < 0; OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_sums_new(int64_t n,
                                                  struct ogrjoin_sums **out,
                                                  struct ogrjoin_error *err);

/** Adds value[i] to the sum of group[i], for n numbers.  A NaN, or infinities
 *  of both signs, make the sum NaN; infinities of one sign make it infinite.
 *  group   [n] in [0, number of sums)
 *  Errors  OGRJOIN_ERR_ARG: a group is out of range, nothing was added;
 *          OGRJOIN_ERR_NOMEM: a part of the numbers was added */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_sums_add(struct ogrjoin_sums *sums, int64_t n, const int64_t *group,
                 const double *value, struct ogrjoin_error *err);

/** Like ogrjoin_sums_add(), for integers, which are not rounded to doubles. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_sums_add_integers(struct ogrjoin_sums *sums, int64_t n,
                          const int64_t *group, const int64_t *value,
                          struct ogrjoin_error *err);

/** Writes the sums as words.  Equal sums have equal words.
 *  offset  output [number of sums + 1]: index of the first word of each sum.
 *          Most sums have up to four words, none more than 71; a sum of zeros
 *          has none
 *  word    output [last entry of offset]; NULL: only offset is filled */
OGRJOIN_API void ogrjoin_sums_words(const struct ogrjoin_sums *sums,
                                    int64_t *offset, uint64_t *word);

/** Adds n sums, given as words of ogrjoin_sums_words() of this version or
 *  another, to the sums of their groups.
 *  offset  [n + 1] ascending
 *  Errors  those of ogrjoin_sums_add(); OGRJOIN_ERR_DATA: words are not those
 *          of a sum; the sums before them were added */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_sums_merge(struct ogrjoin_sums *sums, int64_t n, const int64_t *group,
                   const int64_t *offset, const uint64_t *word,
                   struct ogrjoin_error *err);

/** Sets value[i] to sum i, rounded to the nearest double; +0 without addends.
 */
OGRJOIN_API void ogrjoin_sums_values(const struct ogrjoin_sums *sums,
                                     double *value);

/** Sets value[i] to sum i, exactly.
 *  Errors  OGRJOIN_ERR_LIMIT: a sum is not a 64-bit integer */
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

/** The pairs of device points, in memory of that device, in one of two forms.
 *
 *  one pair per point, if the join has at most one (for example nearest with k
 *  1 and ties first)
 *      right   [5 -1 7]              n_pairs is n_points; -1: no pair
 *  a list of pairs per point
 *      offset  [0   2 2     5]       index of the first pair of each point
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

/** Like ogrjoin_join(), for points in device memory.  The first join on a
 *  device copies the join side to it; later joins transfer nothing but the
 *  number of pairs, and this only if pairs are lists.  Returns when all work is
 *  queued on the stream (for lists, when the number of pairs is known).
 *  Several threads take turns.
 *  Errors  OGRJOIN_ERR_NO_DEVICE; OGRJOIN_ERR_ARG: x is not in device memory,
 *          or backend is neither auto nor cuda; OGRJOIN_ERR_UNSUPPORTED: joins
 *          without a kernel, and values other than the measure;
 *          OGRJOIN_ERR_NOMEM; OGRJOIN_ERR_TOO_MANY */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_join_device(
    struct ogrjoin_index *index, const struct ogrjoin_device_points *points,
    struct ogrjoin_device_pairs *out, struct ogrjoin_error *err);

/** Makes work that is queued on a stream later wait until the pairs are
 *  complete.
 *  stream  a stream of the device that has the pairs */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_device_pairs_wait(const struct ogrjoin_device_pairs *pairs,
                          void *stream, struct ogrjoin_error *err);

/** Frees the pairs, after waiting for all work of the device.  *pairs may be
 *  zeroed. */
OGRJOIN_API void ogrjoin_device_pairs_free(struct ogrjoin_device_pairs *pairs);

#ifdef __cplusplus
}
#endif
#endif
