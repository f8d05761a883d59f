/** The columns of a row: the input layer's, those that the join computes, the
 *  join layer's; their order, their names, and what happens where a name is
 *  taken.
 *
 *   input         computed                              join
 *   fid  name  |  join_fid  join_distance  join_rank |  id  join_name
 *
 *  Two steps, because an output takes names of its own (its FID and geometry
 *  column) that are known only when it is there:
 *
 *   struct oj_row_column_words --choose--> struct oj_computed_columns
 *     what is asked                          what the join computes
 *
 *   fields of both sides, computed columns, taken names --plan-->
 *                                                     struct oj_row_columns
 *
 *  Names are compared without case, as most formats do. A name that is taken:
 *
 *   of the input layer   NAME_2, NAME_3 and so on
 *   computed             all computed columns get one number, _2 or the first
 *                        with which none is taken; of a name that the user gave
 *                        it is an error
 *   of the join layer    prefix and NAME, then that with _2, _3 and so on
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

/* ---- what the join computes ---------------------------------------------- */

/** What the choice of computed columns depends on. Names are NULL where the
 * user gave none; an empty name leaves the column out. */
struct oj_row_column_words
{
    const char *dash; /**< before names of options in messages: "-" or "" */
    const struct oj_relation *relation;
    struct oj_row_choice choice;
    const char *name_fid, *name_distance, *name_rank, *name_count;
    const char *name_similarity, *name_difference;
    const char *overlap; /**< oj_row_words.h */
    int nearest_point_fields, bearing_field;
    /** [OJ_N_NAMED_PAIR_VALUES] names of the columns of values from
     * OJ_FIRST_NAMED_PAIR_VALUE on; NULL or "": no such column */
    const char *named[OJ_N_NAMED_PAIR_VALUES];
    int has_events; /**< 1: rows are events */
};

/** A column that the join computes. */
struct oj_computed_column
{
    enum oj_column_origin origin; /**< neither the input nor the join side */
    int source;                   /**< if origin is OJ_COLUMN_PAIR_VALUE:
                                       enum oj_pair_value; if
                                       OJ_COLUMN_AGGREGATE: index of the
                                       aggregate */
    enum oj_field_kind kind;
    const char *name;
    const char *option; /**< option that gave the name; NULL: the usual name,
                             which gets a number if it is taken */
};

enum
{
    /* Event, FID, measure, similarities, difference, rank, count, six sizes
     * of the overlap, nearest point and bearing. */
    OJ_MOST_COMPUTED_COLUMNS = 15 + OJ_MOST_TEXTS + OJ_N_NAMED_PAIR_VALUES
};

/** Owner of names that it makes; borrows the others. Zeroed memory is a valid
 *  one without columns. */
struct oj_computed_columns
{
    struct oj_computed_column column[OJ_MOST_COMPUTED_COLUMNS];
    int n;
    char *made_name[OJ_MOST_TEXTS]; /* of similarities, or NULL */
};

/** The option that names the column of this value, one of the named ones:
 * "along_field", ... */
const char *oj_row_column_option(enum oj_pair_value which);

/** Chooses the columns of pairs, in their order in a row, and sets want
 *  [OJ_N_PAIR_VALUES] of the values of pairs that they hold. Not for semi and
 *  anti joins nor aggregates, whose rows have none of these.
 *
 *   usual name                      there when
 *   event                           rows are events
 *   join_fid                        always
 *   join_distance                   the join measures one
 *   join_similarity,                one for each condition on texts
 *     join_similarity_2 ...
 *   join_difference                 vectors are compared
 *   join_rank                       a row has several pairs, by their measure
 *   (none; the number of pairs)     name_count is given
 *   overlap_area, overlap_length,   overlap names them
 *     overlap_percent, overlap_iou,
 *     input_area, join_area
 *   nearest_x, nearest_y            nearest_point_fields
 *   join_bearing                    bearing_field
 *   (none; a place on a line, the   along_field and the others of
 *     matrix, the relation)         oj_row_column_option()
 *
 *  OJ_ERR_ARG: an unknown overlap. Names for columns that there are not are
 *  refused by oj_option_clash.h. */
OJ_MUST_USE oj_status oj_computed_columns_choose(
    const struct oj_row_column_words *words, struct oj_computed_columns *out,
    unsigned char *want, struct oj_error *err);

/** Makes the column of aggregate number source of agg. */
struct oj_computed_column
oj_computed_column_of_aggregate(const struct oj_aggregate_word *word,
                                int source);

/** Frees what columns owns and zeroes it. Accepts zeroed memory. */
void oj_computed_columns_free(struct oj_computed_columns *columns);

/* ---- what aggregates name --------------------------------------------------
 */

/** Finds a field of the join side by name: its number and what it is.  If there
 * is none, fails with OJ_ERR_ARG and a message that ends with what there is. */
struct oj_join_field_finder
{
    oj_status (*find)(void *user, const char *name, int *column,
                      struct oj_field_description *field, struct oj_error *err);
    void *user;
};

/** Binds all words to fields of the join side, or to columns of pairs by the
 * names that they have in rows that are pairs: all of
 * oj_computed_columns_choose() but event and count, those of overlap,
 * nearest_point_fields and bearing_field even if these are not given.  Sets
 * want [OJ_N_PAIR_VALUES] of what the words need.
 *
 *  A usual name that a field of the join side has means the field; *hidden
 *  becomes the first of these that a word names, or NULL (borrowed from the
 *  words).  A name that the user gave must not be that of a field, and some
 *  word must name it: OJ_ERR_ARG. */
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

/** What the columns are planned from; the plan borrows all of it. */
struct oj_row_columns_request
{
    const char *dash;                /**< before names of options in
                                          messages: "-" or "" */
    struct oj_row_side_fields input; /**< n 0: rows have none of them, as
                                          when the output layer has them
                                          already */
    struct oj_row_side_fields join;  /**< n 0: rows have none of them */
    const struct oj_computed_column *computed; /**< [n_computed] */
    int n_computed;
    int has_other_rows; /**< 1: some rows have no input feature, so that
                             every field of the input may be NULL */
    const char *prefix; /**< put before names of join fields that are taken */
};

/** A column of a row. */
struct oj_named_column
{
    enum oj_column_origin origin;
    int source; /**< a field of a side: its number; else as in struct
                     oj_computed_column */
    enum oj_field_kind kind;
    int is_nullable;      /**< 1: the value may be NULL */
    int is_always_there;  /**< 1: a field of the input, and each row has an
                               input feature, so that the field's default can
                               be kept */
    char *name;           /**< owned by the plan */
    const char *original; /**< name of the field in its own layer, borrowed;
                               "" if it has none */
};

/** Owner. Zeroed memory is a valid empty plan, to which taken names may be
 * added before the columns are planned. */
struct oj_row_columns
{
    struct oj_named_column *column; /**< [n] */
    int64_t n;

    /* All names that are taken, in small letters, and those of columns. */
    struct oj_token_table taken;
    uint32_t *code; /* of a name */
    int64_t cap_code;
};

/** Adds a taken name; NULL and "" are ignored. */
OJ_MUST_USE oj_status oj_row_columns_take_name(struct oj_row_columns *columns,
                                               const char *name,
                                               struct oj_error *err);

/** Orders and names all columns. Call it once. Returns OJ_ERR_ARG if a name
 * that the user gave is taken. */
OJ_MUST_USE oj_status
oj_row_columns_plan(const struct oj_row_columns_request *request,
                    struct oj_row_columns *columns, struct oj_error *err);

/** Frees what columns owns and zeroes it. Accepts zeroed memory. */
void oj_row_columns_free(struct oj_row_columns *columns);

#endif
