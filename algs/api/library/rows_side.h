/** One side of a join of rows: which of its columns mean what, its arrays, and
 *  the layer that is made of them.
 *
 *   schema --open--> struct rows_side: geometry, x and y, FIDs, columns
 * compared arrays --add---> struct rows_chunks, kept as they are both --make-->
 * struct ogrjoin_layer, with classes of equal values
 */
#ifndef ROWS_SIDE_H
#define ROWS_SIDE_H

#include "../arrow/oj_arrow_plain_values.h"
#include "../arrow/oj_arrow_take.h"
#include "../rows/oj_value_classes.h"
#include "api_index.h"

/** Columns of equal values: those of on, and of exclude field=. */
enum rows_classes
{
    ROWS_ON = 0,
    ROWS_EXCLUDE,
    ROWS_N_CLASSES
};

/** Owner; zeroed memory is a valid empty one. */
struct rows_side
{
    int side; /**< enum api_layer_side */
    struct ArrowSchema schema;
    struct arrow_record record;

    /* Columns of the schema; -1: none. */
    int64_t geometry, x, y, fid, max_distance;
    enum oj_unit distance_unit; /**< of max_distance */
    int64_t *compared[ROWS_N_CLASSES];
    int n_compared[ROWS_N_CLASSES];

    int64_t *selected; /**< [n_selected] columns that rows may have */
    int64_t n_selected;

    char *crs_words; /**< NULL: none */
    struct oj_crs_text crs;
};

/** "left" or "right". */
const char *rows_side_name(const struct rows_side *side);

/** Reads what schema has for settings. schema is moved, in any case. */
OJ_MUST_USE oj_status rows_side_open(struct ArrowSchema *schema, int of,
                                     const struct ogrjoin_settings *settings,
                                     struct rows_side *side,
                                     struct oj_error *err);

void rows_side_free(struct rows_side *side);

/** 1: a column is marked as one of geometries. */
int rows_side_is_geometry(const struct ArrowSchema *schema);

/** 1: its rows have places. */
int rows_side_has_shapes(const struct rows_side *side);

/** The column of a name, which option asked for. */
OJ_MUST_USE oj_status rows_side_find(const struct rows_side *side,
                                     const char *option, const char *name,
                                     int64_t *out, struct oj_error *err);

struct oj_field_description rows_side_field(const struct rows_side *side,
                                            int64_t column);

/** Arrays of one side, in the order of its rows. Owner; zeroed memory is a
 *  valid empty one. */
struct rows_chunks
{
    struct oj_arrow_shared **shared; /**< [n] */
    int64_t *first;                  /**< [n + 1] rows before each */
    int64_t n, cap_shared, cap_first;
};

int64_t rows_chunks_rows(const struct rows_chunks *chunks);

/** Adds an array, which is moved, in any case, and checked. */
OJ_MUST_USE oj_status rows_chunks_add(struct rows_chunks *chunks,
                                      const struct rows_side *side,
                                      struct ArrowArray *array,
                                      struct oj_error *err);

void rows_chunks_clear(struct rows_chunks *chunks);
void rows_chunks_free(struct rows_chunks *chunks);

/** The chunk of a row. O(log chunks). */
int64_t rows_chunks_find(const struct rows_chunks *chunks, int64_t row);

/** One column of all chunks, to take rows of. Its arrays are freed by
 *  oj_free(). */
OJ_MUST_USE oj_status rows_chunks_column(const struct rows_chunks *chunks,
                                         const struct rows_side *side,
                                         int64_t column,
                                         struct oj_arrow_chunks *out,
                                         const struct ArrowArray ***arrays,
                                         struct oj_error *err);

/** Where row is in its column: the array of the column, and the row in it, -1
 *  where the row of the record batch is NULL. */
const struct ArrowArray *rows_chunks_at(const struct rows_chunks *chunks,
                                        int64_t column, int64_t row,
                                        int64_t *in_array);

/** Features, FIDs and what similar and vector compare. */
OJ_MUST_USE oj_status rows_side_make_layer(
    const struct rows_side *side, const struct rows_chunks *chunks,
    int64_t first_row, const struct ogrjoin_settings *settings,
    struct ogrjoin_layer **out, struct oj_error *err);

/** What of on and exclude both sides share. Zeroed: nothing. */
struct rows_classes_of_values
{
    struct oj_value_classes classes[ROWS_N_CLASSES];
    enum oj_value_comparison *comparison[ROWS_N_CLASSES];
};

/** Adds classes and greatest distances to a layer of rows of this side.
 *  insert  1: of the join side, whose values make the classes
 *  scale   of distances in a column */
OJ_MUST_USE oj_status rows_side_add_columns(
    const struct rows_side *side, const struct rows_chunks *chunks,
    struct rows_classes_of_values *classes, int insert, double scale,
    struct ogrjoin_layer *layer, struct oj_error *err);

/** The end of the first of the things that the setting exclude lists: the comma
 *  behind it, or the end of the list. Columns of field= have commas between
 *  them, up to self or same_geometry. */
const char *rows_exclusion_end(const char *list);

#endif
