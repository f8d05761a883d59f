/** The columns of an output row: fields of the input layer, columns that the
 *  join computes, fields of the join layer; their order and their names.
 *
 *   input         computed                              join
 *   fid  name  |  join_fid  join_distance  join_rank |  id  join_name
 *
 *  There are two steps, because the output must exist before the names of its
 *  FID and geometry column are known:
 *
 *   struct oj_row_column_words --choose--> struct oj_computed_columns
 *     what is asked                          what the join computes
 *
 *   fields of both sides, computed columns, taken names --plan-->
 *                                                     struct oj_row_columns
 *
 *  Names are compared ignoring case, as most formats do. If a name is in use:
 *
 *   of the input layer   NAME_2, NAME_3 and so on
 *   computed             all computed columns get one number, the first from _2
 *                        on with which none is in use; for a name given by the
 *                        user it is an error
 *   of the join layer    prefix and NAME; prefix, NAME and _2, _3 and so on
 *
 *  A field without name is called field.
 */
#ifndef OJ_ROW_COLUMNS_H
#define OJ_ROW_COLUMNS_H

#include "../../../flatten/base/oj_output_row_modes.h"
#include "../../../flatten/text/oj_token_table.h"
#include "../../foundations/relation/oj_relation.h"
#include "../../pairs/values/oj_pair_stage.h"
#include "oj_aggregate_words.h"
#include "oj_field_kind.h"
#include "oj_rows_per_input.h"

/* ---- choice of computed columns ------------------------------------------ */

/** The user's options that decide which columns are computed. A name is NULL if
 * not given; "" means: leave this column out. */
struct oj_row_column_words
{
    const char *dash; /**< prefix of option names in messages: "-" or "" */
    const struct oj_relation *relation;
    struct oj_row_choice choice;
    const char *name_fid, *name_distance, *name_rank, *name_count;
    const char *name_similarity, *name_difference;
    const char *overlap; /**< value of -overlap (oj_row_words.h) */
    int nearest_point_fields, bearing_field;
    /** [OJ_N_NAMED_PAIR_VALUES] column names for the pair values from
     * OJ_FIRST_NAMED_PAIR_VALUE on; NULL or "": no such column */
    const char *named[OJ_N_NAMED_PAIR_VALUES];
    int has_events; /**< 1: rows are events */
};

/** A column that the join computes. */
struct oj_computed_column
{
    enum oj_column_origin origin; /**< not OJ_COLUMN_INPUT or OJ_COLUMN_JOIN */
    int source;                   /**< OJ_COLUMN_PAIR_VALUE: enum oj_pair_value;
                                       OJ_COLUMN_AGGREGATE: index of the
                                       aggregate */
    enum oj_field_kind kind;
    const char *name;
    const char *option; /**< option by which the user gave the name, for
                             messages; NULL: a usual name, which may get a
                             number */
};

enum
{
    /* maximum number: event, FID, measure, similarities, difference, rank,
     * count, six overlaps, nearest point, bearing, and named values */
    OJ_MOST_COMPUTED_COLUMNS = 15 + OJ_MOST_TEXTS + OJ_N_NAMED_PAIR_VALUES
};

/** The computed columns. Owns made_name; other texts are borrowed. Zeroed
 * memory is a valid value without columns. */
struct oj_computed_columns
{
    struct oj_computed_column column[OJ_MOST_COMPUTED_COLUMNS];
    int n;
    char *made_name[OJ_MOST_TEXTS]; /* names made for similarities, or NULL */
};

/** Returns the name of the option that adds a column for a pair value, as
 * "along_field". Only for values from OJ_FIRST_NAMED_PAIR_VALUE on. */
const char *oj_row_column_option(enum oj_pair_value which);

/** Chooses the columns of pairs, in their order in a row, and sets want
 *  [OJ_N_PAIR_VALUES] for the values that they hold. Not for semi and anti
 *  joins and aggregates, whose rows have none of these columns.
 *
 *   usual name                      present if
 *   event                           rows are events
 *   join_fid                        always
 *   join_distance                   the join measures one
 *   join_similarity,                one for each condition on texts
 *     join_similarity_2 ...
 *   join_difference                 vectors are compared
 *   join_rank                       a row can have several pairs, which are
 *                                   ordered by measure
 *   (none; the number of pairs)     name_count is given
 *   overlap_area, overlap_length,   overlap names them
 *     overlap_percent, overlap_iou,
 *     input_area, join_area
 *   nearest_x, nearest_y            nearest_point_fields
 *   join_bearing                    bearing_field
 *   (none; a place on a line, the   along_field and the others of
 *     matrix, the relation)         oj_row_column_option()
 *
 *  OJ_ERR_ARG: an unknown word of overlap. (oj_option_clash.h refuses names for
 *  columns that the join does not have.) */
OJ_MUST_USE oj_status oj_computed_columns_choose(
    const struct oj_row_column_words *words, struct oj_computed_columns *out,
    unsigned char *want, struct oj_error *err);

/** Makes the column of an aggregate; source: its index in -agg. */
struct oj_computed_column
oj_computed_column_of_aggregate(const struct oj_aggregate_word *word,
                                int source);

/** Frees the owned names and zeroes *columns, which may be zeroed already. */
void oj_computed_columns_free(struct oj_computed_columns *columns);

/* ---- operands of aggregates ---------------------------------------------- */

/** Function that finds a field of the join side by name. If there is none, it
 * fails with OJ_ERR_ARG and a message that ends with the list of fields. */
struct oj_join_field_finder
{
    oj_status (*find)(void *user, const char *name, int *column,
                      struct oj_field_description *field, struct oj_error *err);
    void *user;
};

/** Binds all aggregates to fields of the join side or to columns of pairs. The
 *  columns of pairs have the names that they have in rows. The columns event
 *  and count are not available. The columns of overlap, nearest_point_fields
 *  and bearing_field are available even if these options are not given, the
 *  columns of oj_row_column_option() only if their options are given. Sets
 *  want[v] to 1 for each pair value v that the aggregates need.
 *
 *  If a field of the join side has the usual name of a column of pairs, the
 *  name means the field; *hidden becomes the first such name that is used, or
 *  NULL (borrowed from the aggregates). Fails with OJ_ERR_ARG if the user's
 *  name for a column of pairs is that of a field, or if no aggregate uses
 *  it. */
OJ_MUST_USE oj_status oj_aggregate_columns_bind(
    const struct oj_row_column_words *words,
    const struct oj_join_field_finder *fields,
    struct oj_aggregate_words *aggregates, unsigned char *want,
    const char **hidden, struct oj_error *err);

/* ---- the columns of a row ------------------------------------------------ */

/** The fields of one side. */
struct oj_row_side_fields
{
    const struct oj_field_description *field; /**< [n] */
    int n;
};

/** Input of oj_row_columns_plan(); everything is borrowed. */
struct oj_row_columns_request
{
    const char *dash;                /**< prefix of option names in messages:
                                          "-" or "" */
    struct oj_row_side_fields input; /**< fields of the input; n 0: the rows get
                                          none, for example because the output
                                          layer already has them */
    struct oj_row_side_fields join;  /**< fields of the join layer; n 0: the
                                          rows get none */
    const struct oj_computed_column *computed; /**< [n_computed] */
    int n_computed;
    int has_other_rows; /**< 1: some rows have no input feature (right and full
                             joins), so that all input fields may be NULL */
    const char *prefix; /**< prefix for join fields of which the name is in
                             use */
};

/** A column of a row. */
struct oj_named_column
{
    enum oj_column_origin origin;
    int source; /**< index of the field in its side; for a computed column: enum
                     oj_pair_value, or the index of the aggregate */
    enum oj_field_kind kind;
    int is_nullable;      /**< 1: the value may be NULL */
    int is_always_there;  /**< 1: a field of the input, and every row has an
                               input feature; so the output field may keep the
                               input field's default value */
    char *name;           /**< owned */
    const char *original; /**< name of the field in its layer, borrowed; "" for
                               computed columns */
};

/** The columns of a row. Owner; zeroed memory is a valid empty value. Names
 * that are in use may be added before the columns are planned. */
struct oj_row_columns
{
    struct oj_named_column *column; /**< [n] */
    int64_t n;

    /* All names in use, in lower case, those of columns included. */
    struct oj_token_table taken;
    uint32_t *code; /* scratch: a name as token */
    int64_t cap_code;
};

/** Marks a name as in use; NULL and "" are ignored. */
OJ_MUST_USE oj_status oj_row_columns_reserve_name(
    struct oj_row_columns *columns, const char *name, struct oj_error *err);

/** Determines the order and the names of all columns. Must be called only once.
 * Fails with OJ_ERR_ARG if a name that the user gave is in use. */
OJ_MUST_USE oj_status
oj_row_columns_plan(const struct oj_row_columns_request *request,
                    struct oj_row_columns *columns, struct oj_error *err);

/** Frees the plan and zeroes it; it may be zeroed already. */
void oj_row_columns_free(struct oj_row_columns *columns);

#endif
