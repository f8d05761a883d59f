/** libogrjoin: joins two layers of features by place, without any OGR.
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
 *  Layers, indexes and what is made from them may be freed in any order: each
 *  keeps what it needs.  All functions take NULL where they free.  An index is
 *  not changed by the joins made with it, which may be asked for by several
 *  threads at once: on the CPU they run side by side, and where a device may
 *  answer they take turns.  Functions that can fail return enum ogrjoin_status
 * and write one line of text to *err, which may be NULL; what they give is
 *  untouched then.
 *
 *  Functions are added, never changed or taken away, as long as the major
 *  version stays.  Structs that callers fill begin with their size, so that
 *  they can grow.
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
    OGRJOIN_ERR_ARG = 1,         /**< something meaningless was asked */
    OGRJOIN_ERR_NOMEM = 2,       /**< an allocation failed */
    OGRJOIN_ERR_LIMIT = 3,       /**< a documented size limit was passed */
    OGRJOIN_ERR_DATA = 4,        /**< broken WKB, arrays or streams */
    OGRJOIN_ERR_IO = 5,          /**< a stream could not be read */
    OGRJOIN_ERR_UNSUPPORTED = 6, /**< meaningful, but not built */
    OGRJOIN_ERR_NO_DEVICE = 7,   /**< the backend has no device here */
    OGRJOIN_ERR_CANCELLED = 8,   /**< the cancel flag was raised */
    OGRJOIN_ERR_INTERNAL = 9,    /**< a bug of the library */
    OGRJOIN_ERR_TOO_MANY = 10    /**< more pairs than max_pairs allows */
};

/** What went wrong, in one line a user can act on. */
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

/** What is asked and how to run it. Free after use; an index has its copy. */
struct ogrjoin_settings;

/** All at their defaults. NULL: out of memory. */
OGRJOIN_API struct ogrjoin_settings *ogrjoin_settings_new(void);
OGRJOIN_API void ogrjoin_settings_free(struct ogrjoin_settings *settings);

/** Sets one that is a word: see ogrjoin_setting_help(). */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_set_text(struct ogrjoin_settings *settings, const char *name,
                 const char *value, struct ogrjoin_error *err);

/** Sets one that is a number; yes and no are 1 and 0. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_set_number(struct ogrjoin_settings *settings, const char *name,
                   double value, struct ogrjoin_error *err);

/** flag is read often while an index is made and joined with; nonzero ends that
 *  with OGRJOIN_ERR_CANCELLED. It outlives the index. NULL: none. */
OGRJOIN_API void ogrjoin_settings_cancel(struct ogrjoin_settings *settings,
                                         const int *flag);

/** Name of setting i, or NULL past the last. */
OGRJOIN_API const char *ogrjoin_setting_name(int i);

/** What setting i means, its values and its default, in one line, or NULL past
 *  the last. */
OGRJOIN_API const char *ogrjoin_setting_help(int i);

/** Name of backend i, auto being the first, or NULL past the last. */
OGRJOIN_API const char *ogrjoin_backend_name(int i);

/** What backend i is, in one line, or NULL past the last. */
OGRJOIN_API const char *ogrjoin_backend_help(int i);

/* --- layers --------------------------------------------------------------- */

/** Features: at most 2^31 - 1, numbered from 0. */
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
    const int64_t *id; /**< [n_features] or NULL: feature numbers. Pairs that
                            are as near are in their order, and exclude_self and
                            unordered compare them */
};

/** The arrays are borrowed: they outlive the layer and what is made from it,
 *  and do not change.  They are checked, O(vertices).
 *  Errors  OGRJOIN_ERR_ARG, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_from_arrays(const struct ogrjoin_arrays *arrays,
                          struct ogrjoin_layer **out,
                          struct ogrjoin_error *err);

/** One Arrow array: of geometries, or of structs (a record batch) with a column
 *  of geometries.
 *  column    name of that column; NULL: the first that is marked as geoarrow,
 *            else the only one of bytes
 *  formats   WKB in binary, large binary and binary view; geoarrow.point to
 *            geoarrow.multipolygon, separated and interleaved, XY to XYZM, of
 *            which Z and M are not read.  NULLs join nothing.
 *  settings  threads and cancel are read; NULL: all threads. With side left or
 *            right the columns that similar and vector name are read, too:
 * texts (utf8, large, views, whole numbers), numbers, lists of numbers; then op
 * similar without max_distance needs no geometries array is moved: released by
 * the library, and marked as released, after an error too.  schema stays the
 * caller's.  Separated coordinates without NULLs, empty or open rings are used
 * where they are, all else is copied, on all threads.  The bytes of WKB and all
 * offsets are checked; lengths of buffers, which Arrow does not tell, cannot
 * be. Errors  OGRJOIN_ERR_DATA, OGRJOIN_ERR_UNSUPPORTED (curves, other
 * formats), OGRJOIN_ERR_LIMIT, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_from_array(const struct ArrowSchema *schema,
                         struct ArrowArray *array, const char *column,
                         const struct ogrjoin_settings *settings,
                         struct ogrjoin_layer **out, struct ogrjoin_error *err);

/** All arrays of a stream, one after the other; the stream is released, after
 *  an error too. Otherwise as ogrjoin_layer_from_array(). */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_from_stream(struct ArrowArrayStream *stream, const char *column,
                          const struct ogrjoin_settings *settings,
                          struct ogrjoin_layer **out,
                          struct ogrjoin_error *err);

/** What is known of each feature beside its geometry: arrays of the caller with
 *  an entry for each, or NULL. */
struct ogrjoin_columns
{
    size_t size;       /**< sizeof(struct ogrjoin_columns) */
    const int64_t *id; /**< as in struct ogrjoin_arrays; NULL: as they are */
    const double *max_distance; /**< dwithin: in place of the setting; NaN or
                                     below 0: joins nothing. Of one side only */
    const int32_t *on_class; /**< only pairs of one class count; below 0: joins
                                  nothing. Both sides have them, or none */
    const int64_t *score; /**< of the join side: pick score takes the greatest;
                               INT64_MIN: less than all others */
};

/** Before the layer is indexed or joined. The arrays are borrowed: they outlive
 *  the layer and what is made from it, and do not change.  What columns leaves
 *  NULL stays as it is. Errors  OGRJOIN_ERR_ARG */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_set_columns(struct ogrjoin_layer *layer,
                          const struct ogrjoin_columns *columns,
                          struct ogrjoin_error *err);

/** A column of UTF-8 texts, that of the next condition of the setting similar:
 *  text i is bytes[offset[i]] to bytes[offset[i + 1] - 1], offset having an
 *  entry more than the layer has features; an empty one joins nothing.  Both
 * are borrowed as above, and before the layer is indexed or joined. Errors
 * OGRJOIN_ERR_ARG, OGRJOIN_ERR_LIMIT: more than 8 */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_add_text(struct ogrjoin_layer *layer, const int64_t *offset,
                       const char *bytes, struct ogrjoin_error *err);

/** The numbers that the setting vector compares, in place of columns of Arrow:
 *  number[offset[i]] to number[offset[i + 1] - 1] of feature i, one for each
 *  name of the setting, or a list where it has one name.  As many as in the
 *  first list of the join side are compared; a feature with another count joins
 *  nothing. Borrowed, and when, as above. Errors  OGRJOIN_ERR_ARG */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_layer_set_vectors(struct ogrjoin_layer *layer, const int64_t *offset,
                          const double *number, struct ogrjoin_error *err);

OGRJOIN_API int64_t ogrjoin_layer_count(const struct ogrjoin_layer *layer);
OGRJOIN_API void ogrjoin_layer_free(struct ogrjoin_layer *layer);

/* --- an index, and joins with it ------------------------------------------ */

/** The join side, prepared for one kind of join. */
struct ogrjoin_index;

/** O(n log n) in the segments of the join side.
 *  settings  NULL: the defaults
 *  Errors    OGRJOIN_ERR_ARG: settings that make no sense together;
 *            OGRJOIN_ERR_LIMIT; OGRJOIN_ERR_NO_DEVICE; OGRJOIN_ERR_CANCELLED;
 *            OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_index_new(struct ogrjoin_layer *join_side,
                  const struct ogrjoin_settings *settings,
                  struct ogrjoin_index **out, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_index_free(struct ogrjoin_index *index);

/** What answers: "cpu" or "cuda". With backend auto this may change with the
 *  first join. */
OGRJOIN_API const char *ogrjoin_index_backend(struct ogrjoin_index *index);

/** Frees the working memory that joins with index have left for the next ones;
 *  after a large join it is as large as the layer. */
OGRJOIN_API void ogrjoin_index_trim(struct ogrjoin_index *index);

/** Pairs of features, sorted by left; those of one left feature as -op nearest
 *  of the command sorts them: nearest first, or else by the join side's ids. */
struct ogrjoin_pairs;

/** All pairs of a layer with the join side. The answer does not depend on
 *  threads, backend, or how features are cut into layers.
 *  Errors  as above; OGRJOIN_ERR_UNSUPPORTED: the backend cannot join such
 *          features; OGRJOIN_ERR_TOO_MANY */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_join(struct ogrjoin_index *index,
                                              struct ogrjoin_layer *input,
                                              struct ogrjoin_pairs **out,
                                              struct ogrjoin_error *err);

OGRJOIN_API int64_t ogrjoin_pairs_count(const struct ogrjoin_pairs *pairs);
/** [count] numbers of input features. */
OGRJOIN_API const int64_t *
ogrjoin_pairs_left(const struct ogrjoin_pairs *pairs);
/** [count] numbers of features of the join side. */
OGRJOIN_API const int64_t *
ogrjoin_pairs_right(const struct ogrjoin_pairs *pairs);
/** [count] distances in units of the coordinates, on the sphere metres; of op
 *  similar similarities, without texts differences; NaN for joins without a
 *  measure. */
OGRJOIN_API const double *
ogrjoin_pairs_measure(const struct ogrjoin_pairs *pairs);
/** [count] what a setting asked for, NaN where there is none: overlap_area,
 *  overlap_length, overlap_percent, nearest_x, nearest_y, from_x, from_y,
 *  bearing, with similar similarity, similarity_2 ..., with vector difference.
 *  NULL: not asked for. */
OGRJOIN_API const double *ogrjoin_pairs_value(const struct ogrjoin_pairs *pairs,
                                              const char *name);
/** Of each pair what both features have in common as ISO WKB, little-endian:
 *  bytes (*offset)[i] to (*offset)[i + 1] - 1, none where GEOS could not make
 *  it.  NULL: the setting intersection did not ask for it. */
OGRJOIN_API const uint8_t *
ogrjoin_pairs_intersection(const struct ogrjoin_pairs *pairs,
                           const int64_t **offset);
/** How many pairs, or rows, GEOS could not decide: they are left out. */
OGRJOIN_API int64_t ogrjoin_pairs_undecided(const struct ogrjoin_pairs *pairs);
OGRJOIN_API void ogrjoin_pairs_free(struct ogrjoin_pairs *pairs);

/** A value of each feature of the join side, in one of three forms. */
struct ogrjoin_values
{
    size_t size; /**< sizeof(struct ogrjoin_values) */
    const int64_t *integer;
    const double *real;
    const int64_t *offset;  /**< [features + 1] into bytes: texts */
    const char *bytes;      /**< of texts */
    const uint8_t *is_null; /**< [features] 1: there is no value; or NULL */
};

/** A result of each left row, in one of the forms above. Free after use. */
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

/** An aggregate of the right features of each left row's pairs, as -agg of the
 *  command: exact sums, and an order of its own where one matters.
 *  function   count, sum, mean, min, max, median, stddev, first, last, mode,
 *             unique, concat (texts), weighted_sum (setting share)
 *  separator  of concat; else not read
 *  values     NULL: count of pairs
 *  Errors     OGRJOIN_ERR_ARG; OGRJOIN_ERR_LIMIT: a sum of integers that 64
 * bits do not hold; OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_pairs_aggregate(const struct ogrjoin_pairs *pairs, const char *function,
                        const char *separator,
                        const struct ogrjoin_values *values,
                        struct ogrjoin_results *out, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_results_free(struct ogrjoin_results *results);

/** How the answers of two backends compare, as -validate of the command does.
 */
struct ogrjoin_validation
{
    size_t size; /**< sizeof(struct ogrjoin_validation), set by the caller */
    int64_t n_rows, n_pairs;   /**< compared */
    int64_t n_differences;     /**< 0: the answers are the same */
    int64_t n_rows_proved;     /**< rows that differ where exact arithmetic
                                    confirms the index, its distances up to the
                                    rounding of their formula; no differences */
    int64_t n_rows_undecided;  /**< rows left out, without an exact word */
    int64_t n_pairs_undecided; /**< pairs left out in the same way */
    int64_t left, right; /**< of the first difference, or -1; right: of ours,
                              or else the reference's */
    const char *kind;    /**< missing, extra, distance or order; NULL: none */
};

/** Joins input twice, with the index and with a reference, and compares.
 *  reference  name of a backend; NULL: geos, on the sphere sphere, of texts and
 *             vectors alone lists
 *  Cost       of both; the references use one thread
 *  Errors     as of ogrjoin_join() */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_validate(struct ogrjoin_index *index, struct ogrjoin_layer *input,
                 const char *reference, struct ogrjoin_validation *out,
                 struct ogrjoin_error *err);

/** The pairs as one record batch of left (int64), right (int64) and measure
 *  (float64, NULL where there is none), without a copy: pairs is empty
 *  afterwards and still to be freed. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_pairs_to_arrow(struct ogrjoin_pairs *pairs, struct ArrowSchema *schema,
                       struct ArrowArray *array, struct ogrjoin_error *err);

/** A stream of such record batches: one for each array of input, which is read
 *  when the next of them is asked for; left goes on counting from array to
 *  array.  input is moved, and released with *out; of it the columns are read
 *  that the settings similar and vector name.  Errors of later arrays are
 *  those of the stream. column as in ogrjoin_layer_from_array(). */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_join_stream(struct ogrjoin_index *index, struct ArrowArrayStream *input,
                    const char *column, struct ArrowArrayStream *out,
                    struct ogrjoin_error *err);

/* --- pairs as lists, and streams read layer by layer -----------------------
 */

/** As ogrjoin_join(), in half the memory or less, and as a rule without a copy
 *  of what the join has found: lists in place of columns.
 *
 *  input feature   0   1   2         (1 has no pair)
 *  offset         [0   2   2     5]
 *  right32        [5 8     1 2 9]
 *  measure        [.. .    . . .]    or NULL: the join has none
 *
 *  ogrjoin_pairs_left() and ogrjoin_pairs_right() are NULL, and
 *  ogrjoin_pairs_to_arrow() is an error; all else is as ever. */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_join_lists(struct ogrjoin_index *index,
                                                    struct ogrjoin_layer *input,
                                                    struct ogrjoin_pairs **out,
                                                    struct ogrjoin_error *err);

/** Rows that were joined. */
OGRJOIN_API int64_t ogrjoin_pairs_rows(const struct ogrjoin_pairs *pairs);
/** [rows + 1] of lists, else NULL. */
OGRJOIN_API const int64_t *
ogrjoin_pairs_offset(const struct ogrjoin_pairs *pairs);
/** [count] of lists: numbers of features of the join side; else NULL. */
OGRJOIN_API const int32_t *
ogrjoin_pairs_right32(const struct ogrjoin_pairs *pairs);

/** A stream of features, of which no more is read than is asked for. */
struct ogrjoin_source;

/** stream is moved: released with *out, after an error at once; column and
 *  settings are as in ogrjoin_layer_from_stream(), and settings may be freed.
 *  One thread at a time uses a source. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_source_open(struct ArrowArrayStream *stream, const char *column,
                    const struct ogrjoin_settings *settings,
                    struct ogrjoin_source **out, struct ogrjoin_error *err);

/** The next n_rows features, or those that are left, as a layer; *out is NULL
 *  after the last.  Arrays are cut and put together as it takes; a stream
 *  without features gives one layer without features.  Features are numbered
 *  from layer to layer: the left of pairs, and where no ids were given what
 *  exclude_self and unordered compare. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_source_next(struct ogrjoin_source *source, int64_t n_rows,
                    struct ogrjoin_layer **out, struct ogrjoin_error *err);
OGRJOIN_API void ogrjoin_source_free(struct ogrjoin_source *source);

/** The pairs of all features that source has left, as ogrjoin_join_lists()
 *  gives them.  On the CPU a part of them at a time is in memory.
 *  n_rows  how many they are likely to be; 0: unknown */
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
 *  The command writes these rows, too, when it is given these layers and words:
 *  the columns of the input, in its order of rows; join_fid (int64, the number
 *  of the row in the join side), and what else was asked for; the columns of
 *  the join side but its geometry, with the prefix join_ where a name is taken.
 *  Columns of either side keep their Arrow types, of whatever kind; unions
 *  alone are refused.  With how right and full the geometries of join rows
 *  that match nothing come into the column of the input's, as the type of that:
 *  WKB in binary or large binary, or both sides have one type.  What is asked
 *  is settings by name, with the words of the
 *  command: ogrjoin_setting_help().
 *
 *  A side has its features in one of
 *    a column of geometries, as ogrjoin_layer_from_array() reads it:
 * left_column and right_column name it; else it is the only one that is marked
 * as geoarrow, or else the only one of bytes two columns of numbers, which are
 * points: left_x and left_y, right_x and right_y and, where only texts or
 * vectors are compared, in none.
 *
 *  The CRS of a side is the text left_crs or right_crs, or else what
 *  ARROW:extension:metadata has as crs: PROJJSON, WKT, or authority:code.  Two
 *  different ones are an error; so are a distance with a unit without a CRS,
 *  and a plain distance in degrees.  crs "ignore" takes coordinates as they
 *  are. Without a CRS on one side that of the other counts for both. */

/** A join side with all its columns: read once, held once, joined with any
 *  number of inputs, by several threads at once. */
struct ogrjoin_rows;

/** Reads join_side to its end.
 *  join_side  moved: released by the library, after an error, too.  Its arrays
 *             are kept as they are, not copied, until *out and the streams made
 *             of it are freed
 *  settings   NULL: the defaults; they may be freed afterwards
 *  Cost       that of ogrjoin_layer_from_stream(); the index is made by the
 *             first join and kept for those with equal settings
 *  Errors     OGRJOIN_ERR_ARG: settings that make no sense together, or have no
 *             effect on such a join; OGRJOIN_ERR_DATA, OGRJOIN_ERR_UNSUPPORTED
 *             (the column of geometries), OGRJOIN_ERR_IO, OGRJOIN_ERR_LIMIT,
 *             OGRJOIN_ERR_CANCELLED, OGRJOIN_ERR_NOMEM */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_rows_open(struct ArrowArrayStream *join_side,
                  const struct ogrjoin_settings *settings,
                  struct ogrjoin_rows **out, struct ogrjoin_error *err);

/** A stream of the rows of input with the join side.
 *  input     moved: released with *out, after an error at once.  It is read
 *            while rows are taken from *out: batch_rows rows at a time; with
 *            one_to_one all of them at the first call.  Its arrays are kept as
 *            long as rows of *out that need no copy point into them
 *  settings  what is asked of this join, in place of the settings of
 *            ogrjoin_rows_open(); NULL: those
 *  out       record batches of at most some 256 MB and a million rows, none of
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

/** Streams that are still read keep what they need. */
OGRJOIN_API void ogrjoin_rows_free(struct ogrjoin_rows *rows);

/** Number of rows of the join side. */
OGRJOIN_API int64_t ogrjoin_rows_count(const struct ogrjoin_rows *rows);

/** ogrjoin_rows_open() and ogrjoin_rows_join() of one input. Both streams are
 *  moved, in any case. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_join_rows(struct ArrowArrayStream *input,
                  struct ArrowArrayStream *join_side,
                  const struct ogrjoin_settings *settings,
                  struct ArrowArrayStream *out, struct ogrjoin_error *err);

/** Which column of a stream of ogrjoin_rows_join() is the geometry of its rows,
 *  from 0; -1: they have none, or it is another stream. */
OGRJOIN_API int64_t
ogrjoin_rows_geometry(const struct ArrowArrayStream *stream);

/** report is called by the thread that takes rows, after each part of the
 *  input: rows are joined so far, of n_rows, which is the setting input_rows or
 *  else -1, unknown.  What it returns ends the join with OGRJOIN_ERR_CANCELLED
 *  unless it is 0.  report and user outlive the streams.  NULL: none. */
OGRJOIN_API void ogrjoin_settings_progress(
    struct ogrjoin_settings *settings,
    int (*report)(void *user, int64_t rows, int64_t n_rows), void *user);

/** notice is called with a line of text for what is no error: one side has no
 *  CRS, overlaps that GEOS cannot make.  By the thread that calls the library;
 *  notice and user outlive the streams.  NULL: none. */
OGRJOIN_API void ogrjoin_settings_notices(struct ogrjoin_settings *settings,
                                          void (*notice)(void *user,
                                                         const char *message),
                                          void *user);

/** What the library does not know of CRS itself; either may be NULL.
 *  expand   writes PROJJSON or WKT of a CRS that is named by its code alone
 *           ("EPSG:2263") into text, zero-terminated, as snprintf() does;
 *           returns its length without the zero, which may be size or more:
 *           then it is called again with room; 0 or less: not known. EPSG:4326,
 *           OGC:CRS84 and OGC:CRS84h are known without
 *  compare  1: a and b, texts as they came, are one CRS; 0: they are two; below
 *           0: not known.  Asked where the texts alone do not decide
 *  Both are called by the thread that opens the rows, and outlive that. */
OGRJOIN_API void ogrjoin_settings_crs(
    struct ogrjoin_settings *settings,
    int (*expand)(void *user, const char *crs, char *text, size_t size),
    int (*compare)(void *user, const char *a, const char *b), void *user);

/** For joins of layers, which have no CRS, what ogrjoin_rows_join() does with
 *  those of its sides: after this the distances of settings, which may have a
 *  unit ("100ft"), are in the unit of the CRS of the join.
 *  left, right  texts as the setting left_crs has them; NULL: none
 *  Errors       OGRJOIN_ERR_ARG: the sides have two CRS, or a distance makes no
 *               sense in it; OGRJOIN_ERR_DATA: a text that is no CRS */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_settings_use_crs(struct ogrjoin_settings *settings, const char *left,
                         const char *right, struct ogrjoin_error *err);

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
 *  joins have ended. */

/** Points with ids, to be joined with and changed by any threads. */
struct ogrjoin_live;

/** Without points.
 *  settings  tree: quadtree cuts squares in the middle, kdtree at medians, auto
 *            takes a quadtree, and a k-d tree where that would reach its depth
 *            of 24 or leave pages badly filled; threads; backend: cpu or auto.
 *            NULL: the defaults; others are not read
 *  Errors    OGRJOIN_ERR_ARG, OGRJOIN_ERR_UNSUPPORTED: another backend;
 *            OGRJOIN_ERR_NOMEM */
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
 *            counted.  That an id to be removed is not there is counted, too
 *  Cost      O(n): a point that stays in its page is overwritten there, others
 *            are sorted by page, and a page is cut or rewritten once at most.
 *            Where more than three quarters of the points change pages, all is
 *            built anew.  Pages without points are used again: memory does not
 * grow from batch to batch Errors    all changes are applied or, after an
 * error, none: OGRJOIN_ERR_NOMEM; OGRJOIN_ERR_LIMIT: more than 2^31 - 1 points
 * or changes.  One batch at a time: other threads wait */
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
    int64_t
        n_superseded;  /**< changes before the last one of an id in a batch */
    int64_t n_rebuilt; /**< batches after which all was built anew */
    int64_t n_pages;   /**< pages in use */
    int64_t n_bytes;   /**< bytes of memory, indexes for joins aside */
    char tree[200];    /**< which tree there is, and why */
};

/** Errors  OGRJOIN_ERR_ARG: size */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_counts(struct ogrjoin_live *live, struct ogrjoin_live_counts *out,
                    struct ogrjoin_error *err);

/** The pairs that ogrjoin_join() would give with a fresh ogrjoin_index_new() of
 *  the kept points, their ids being its ids: in the order and to the bits of
 * it. ogrjoin_pairs_right() are ids, not numbers of rows. settings  as of
 * ogrjoin_index_new(); NULL: the defaults input     features of any kinds Cost
 * nearest and dwithin of points, in the plane: of a point, the pages in reach.
 * Predicates, dwithin and nearest of lines and polygons, and whatever else is
 * measured of pairs: the pages in reach of all features, and an index of the
 * points in reach.  Inputs of more than an eighth of the points that are kept,
 * joins on the sphere, by shape, disjoint, and backends other than cpu: an
 * index of all points, which is kept for further joins with equal settings
 * until the next batch Errors    as of ogrjoin_index_new() and ogrjoin_join().
 *            ogrjoin_pairs_aggregate() is not possible with such pairs */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_join(struct ogrjoin_live *live,
                  const struct ogrjoin_settings *settings,
                  struct ogrjoin_layer *input, struct ogrjoin_pairs **out,
                  struct ogrjoin_error *err);

/** All pairs of kept points within max_distance of one another, each once, the
 *  smaller id on the left; sorted by ids.
 *  settings  as of ogrjoin_live_join(), but for op.  changes 1: only what has
 *            changed since the last call with changes 1; a value "change" of
 *            each pair is 1: it came, or -1: it is gone, its measure being NaN
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
 *  Errors    OGRJOIN_ERR_IO; OGRJOIN_ERR_DATA: it is no such file, is cut off
 * or was changed */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_live_load(const char *path, const struct ogrjoin_settings *settings,
                  struct ogrjoin_live **out, struct ogrjoin_error *err);

/* --- points that lie on a CUDA device ------------------------------------- */

/** Points in the memory of one device, which is not read by the host. */
struct ogrjoin_device_points
{
    size_t size; /**< sizeof(struct ogrjoin_device_points) */
    int64_t n;
    const double *x, *y; /**< [n]; NaN: no geometry. Others are finite and
                              below 1e150 */
    int64_t stride;      /**< from one x, and y, to the next; 2: x y x y ... */
    const int64_t *id;   /**< [n] of exclude_self and unordered, or NULL */
    void *stream;        /**< cudaStream_t, of that device: the points are read,
                              and the answer written, in its order. NULL: the
                              legacy default stream */
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
    int device;  /**< as CUDA counts */
    int64_t n_points, n_pairs;
    const int64_t *offset; /**< [n_points + 1] or NULL: one for each point */
    const int32_t *right;  /**< [n_pairs] in the order of ogrjoin_join() */
    const double *measure; /**< [n_pairs], NaN where there is no pair; NULL: the
                                join has no measure */
    void *owner;           /**< the library's */
};

/** As ogrjoin_join() of points that are where they stay: nothing but the number
 *  of pairs of lists goes over the bus, once the first join with a device has
 *  copied the join side there.  Returns when all is given to the stream, for
 *  lists when their number is known; several threads take turns.
 *  Errors  OGRJOIN_ERR_NO_DEVICE; OGRJOIN_ERR_ARG: x is no device memory, or
 *          backend is neither auto nor cuda; OGRJOIN_ERR_UNSUPPORTED: joins
 *          that the device does not answer, and values other than the measure;
 *          OGRJOIN_ERR_NOMEM; OGRJOIN_ERR_TOO_MANY */
OGRJOIN_MUST_USE OGRJOIN_API int ogrjoin_join_device(
    struct ogrjoin_index *index, const struct ogrjoin_device_points *points,
    struct ogrjoin_device_pairs *out, struct ogrjoin_error *err);

/** Work that is given to a stream of the same device after this comes after
 *  all that their own stream has. */
OGRJOIN_MUST_USE OGRJOIN_API int
ogrjoin_device_pairs_wait(const struct ogrjoin_device_pairs *pairs,
                          void *stream, struct ogrjoin_error *err);

/** Waits for the whole device first. Accepts zeroed ones. */
OGRJOIN_API void ogrjoin_device_pairs_free(struct ogrjoin_device_pairs *pairs);

#ifdef __cplusplus
}
#endif
#endif
