/** One side of a join of rows: the roles of its columns, its arrays, and the
 *  layer made from them.
 *
 *   schema --open--> struct rows_side: the column of each role
 *   arrays --add---> struct rows_chunks, which keeps them without a copy
 *   both   --make--> struct ogrjoin_layer, with classes of equal values
 */
#ifndef ROWS_SIDE_H
#define ROWS_SIDE_H

#include "../arrow/oj_arrow_iso_wkb.h"
#include "../arrow/oj_arrow_plain_values.h"
#include "../arrow/oj_arrow_take.h"
#include "../library/api_index.h"
#include "../rows/oj_value_classes.h"

/** Groups of columns that are compared for equality: those named by the setting
 * on, and those named by exclude field=. */
enum rows_classes
{
    ROWS_ON = 0,
    ROWS_EXCLUDE,
    ROWS_N_CLASSES
};

/** The roles of a side's columns. Owner; zeroed memory is a valid empty value.
 */
struct rows_side
{
    enum api_layer_side side;
    struct ArrowSchema schema;
    struct arrow_record record;

    /* Index of the column in the schema for each role; -1: none. */
    int64_t geometry, x, y, fid, max_distance, heading;
    enum oj_unit distance_unit; /**< unit of max_distance */
    int64_t *compared[ROWS_N_CLASSES];
    int n_compared[ROWS_N_CLASSES];
    int n_spans;                    /**< conditions within_time and during */
    int64_t span[OJ_MOST_SPANS][2]; /**< columns of begin and end */

    int64_t *selected; /**< [n_selected] columns in the output */
    int64_t n_selected;

    char *crs_words; /**< text of the CRS as given; NULL: none */
    struct oj_crs_text crs;

    /* The schema that the geometry column has in the arrays, if `schema` no
     * longer has it: because texts (WKT, hex) or binary views of EWKB are
     * converted to WKB, or because the SRID of EWKB gave the column a CRS.
     * Otherwise released. */
    struct ArrowSchema geometry_as_read;
    struct oj_arrow_srid srid;
};

/** Returns "left" or "right". */
const char *rows_side_name(const struct rows_side *side);

/** Finds the role of each column of schema, by the settings. schema is moved,
 * also on failure. */
OJ_MUST_USE oj_status rows_side_open(struct ArrowSchema *schema,
                                     enum api_layer_side of,
                                     const struct ogrjoin_settings *settings,
                                     struct rows_side *side,
                                     struct oj_error *err);

void rows_side_free(struct rows_side *side);

/** Returns 1 if rows_side_read_first_array() is needed before the schema and
 * the CRS of the side are known. */
int rows_side_depends_on_rows(const struct rows_side *side);

/** Reads from the first array of the side whether its geometries are converted,
 * and their SRID, which becomes the CRS of a side without one. array is not
 * kept; first_row is the number of its first row. side->srid.is_found 0: the
 * array has no geometry, and the next one can be read as this one. */
OJ_MUST_USE oj_status rows_side_read_first_array(
    struct rows_side *side, const struct ogrjoin_settings *settings,
    const struct ArrowArray *array, int64_t first_row, struct oj_error *err);

/** Makes the SRID that was found the CRS of the side, if it has none. */
OJ_MUST_USE oj_status rows_side_set_srid_crs(
    struct rows_side *side, const struct ogrjoin_settings *settings,
    struct oj_error *err);

/** Returns 1 if the column is marked as geoarrow. */
int rows_side_is_geometry(const struct ArrowSchema *schema);

/** Returns 1 if the side has a geometry column, or columns x and y. */
int rows_side_has_shapes(const struct rows_side *side);

/** Finds a column by name. option: the setting that names it, for messages. */
OJ_MUST_USE oj_status rows_side_find_column(const struct rows_side *side,
                                            const char *option,
                                            const char *name, int64_t *out,
                                            struct oj_error *err);

struct oj_field_description rows_side_field(const struct rows_side *side,
                                            int64_t column);

/** The arrays (chunks) of a side, in the order of the rows. Owner; zeroed
 * memory is a valid empty value. */
struct rows_chunks
{
    struct oj_arrow_shared **shared; /**< [n] arrays, reference-counted */
    int64_t *first;                  /**< [n + 1] ordinal of the first row of
                                          each array */
    int64_t n, cap_shared, cap_first;
};

int64_t rows_chunks_count_rows(const struct rows_chunks *chunks);

/** Checks an array and appends it, with geometries as ISO WKB. It is moved,
 * also on failure. first_row: number of the first row of the chunks, for
 * messages. */
OJ_MUST_USE oj_status rows_chunks_add(struct rows_chunks *chunks,
                                      struct rows_side *side,
                                      struct ArrowArray *array,
                                      int64_t first_row, struct oj_error *err);

void rows_chunks_clear(struct rows_chunks *chunks);
void rows_chunks_free(struct rows_chunks *chunks);

/** Returns the index of the chunk that contains a row. O(log chunks). */
int64_t rows_chunks_find(const struct rows_chunks *chunks, int64_t row);

/** Sets *out to one column of all chunks, as oj_arrow_take() needs it. The
 * caller frees its arrays with oj_free(). */
OJ_MUST_USE oj_status rows_chunks_column(const struct rows_chunks *chunks,
                                         const struct rows_side *side,
                                         int64_t column,
                                         struct oj_arrow_chunks *out,
                                         const struct ArrowArray ***arrays,
                                         struct oj_error *err);

/** Finds a row: returns the array of `column` that contains it, and sets
 * *in_array to its row in this array, or to -1 if the row of the surrounding
 * struct is NULL. */
const struct ArrowArray *
rows_chunks_locate_value(const struct rows_chunks *chunks, int64_t column,
                         int64_t row, int64_t *in_array);

/** Makes a layer with the features, the FIDs, and the columns of similar and
 * vector. reach: where features can have pairs; NULL: anywhere. */
OJ_MUST_USE oj_status rows_side_make_layer(
    const struct rows_side *side, const struct rows_chunks *chunks,
    int64_t first_row, const struct ogrjoin_settings *settings,
    struct arrow_reach *reach, struct ogrjoin_layer **out,
    struct oj_error *err);

/** Data that both sides share: the classes of equal values for the settings on
 * and exclude, how the values of each column are compared, and how the columns
 * of within_time and during are read. Zeroed memory is a valid empty value. */
struct rows_classes_of_values
{
    struct oj_value_classes classes[ROWS_N_CLASSES];
    enum oj_value_comparison *comparison[ROWS_N_CLASSES];
    struct oj_span_reading span[OJ_MOST_SPANS];
};

/** Adds classes, spans and maximum distances of features to a layer of this
 * side. insert: 1 for the join side, whose values define the classes. scale:
 * factor for a column of distances. */
OJ_MUST_USE oj_status rows_side_add_columns_to_layer(
    const struct rows_side *side, const struct rows_chunks *chunks,
    struct rows_classes_of_values *classes, int insert, double scale,
    struct ogrjoin_layer *layer, struct oj_error *err);

/** Returns the end of the first item in the setting exclude: the comma behind
 * it, or the end of the list. An item "field=a,b" contains commas itself; it
 * ends before self or same_geometry. */
const char *rows_exclusion_end(const char *list);

#endif
