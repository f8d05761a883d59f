/** The columns of rows and the way of each into its field of the output. */
#ifndef OJ_ROW_SETTERS_H
#define OJ_ROW_SETTERS_H

#include "../read/oj_layer_fields.h"
#include "oj_row_options.h"

/** Owner; zeroed memory is a valid freed one. */
struct oj_row_setters
{
    OGRFeatureDefnH defn;
    const struct oj_table *join_table;
    int n;
    struct oj_column *column; /**< [n] a copy */
    struct oj_setter
        *setter; /**< [n] those of the input: once fields are set */

    /** Numbers of the columns whose fields are not ignored in defn: first the
     *  input's, then all others. */
    int *wanted; /**< [n_input_wanted + n_other_wanted] */
    int n_input_wanted, n_other_wanted;

    const struct oj_fields *fields; /**< the reader's; NULL: not seen yet */
};

/** For options->columns; defn and options->join_table outlive the setters. */
OJ_MUST_USE oj_status oj_row_setters_init(
    struct oj_row_setters *setters, OGRFeatureDefnH defn,
    const struct oj_write_options *options, struct oj_error *err);

/** The input's fields, once or again when batches come from another reader. */
OJ_MUST_USE oj_status oj_row_setters_set_fields(struct oj_row_setters *setters,
                                                const struct oj_fields *fields,
                                                struct oj_error *err);

/** Looks again which fields are ignored; opening does it too. */
void oj_row_setters_look_at_ignored(struct oj_row_setters *setters);

/** Zeroed afterwards. */
void oj_row_setters_free(struct oj_row_setters *setters);

#endif
