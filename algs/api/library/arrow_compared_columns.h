/** Copies from Arrow record batches the columns that a join compares: texts
 *  (concatenated for each condition) and the numbers of vectors.
 *
 *   similar name+street   u U vu, dictionaries of them, and whole numbers as
 *                         they are written
 *   vector price+area     numbers c C s S i I l L f g; of texts as in CSV
 *   vector embedding      of one column also lists +l +L +w: of numbers, and
 *                         texts as "[0.1, 2]"
 *
 *   any                   columns of type null (format n), and dictionaries
 *                         of it
 *
 *  A NULL adds nothing to a text, and is NaN as a number.
 */
#ifndef ARROW_COMPARED_COLUMNS_H
#define ARROW_COMPARED_COLUMNS_H

#include "../../../flatten/text/oj_token_sets.h"
#include "../../foundations/relation/oj_compared_fields.h"
#include "../../foundations/relation/oj_text_similarity_condition.h"
#include "../arrow/arrow_abi.h"

/** The parsed settings similar and vector. */
struct compared_fields
{
    struct oj_similar similar[OJ_MOST_TEXTS];
    int n_similar; /**< number of conditions on texts. If the setting similar
                        has only thresholds (similar=0.6), `fields` is NULL in
                        all conditions: the caller passes the texts without
                        columns */
    struct oj_vector_words vector; /**< vector.n 0: vector was not set */
};

void compared_fields_free(struct compared_fields *fields);

struct arrow_field
{
    int64_t child;     /**< index of the column in the struct */
    char list;         /**< format of the list, l, L or w (fixed size); 0: not a
                            list */
    int64_t list_size; /**< for w: the size of each list */
    char format[4];    /**< format of the values; "n": every row is NULL */
    char index;        /**< Arrow format of the indices, if the column has a
                            dictionary; otherwise 0 */
};

/** The compared columns of a schema. Owner; zeroed memory is a valid empty
 * value. */
struct arrow_fields
{
    int n_texts, n_vector; /**< number of conditions on texts; number of fields
                                of the vector */
    int n_fields[OJ_MOST_TEXTS];
    struct arrow_field *field; /**< fields of all texts, then those of the
                                    vector */
};

/** Values of the compared columns. Owner; zeroed memory is a valid empty value.
 */
struct arrow_columns
{
    int64_t n_rows;
    struct arrow_text_column
    {
        int64_t *offset; /**< [n_rows + 1] start of each row in `bytes` */
        char *bytes;
        int64_t cap_offset, cap_bytes;
    } text[OJ_MOST_TEXTS];
    int64_t *offset; /**< [n_rows + 1] first number of each row */
    double *number;
    int64_t cap_offset, cap_number;
};

/** Finds the columns to compare of one side (0 left, 1 right) in a schema that
 * arrow_layout_read() has accepted. Errors: OJ_ERR_ARG if a column is missing;
 * OJ_ERR_UNSUPPORTED for its format. */
OJ_MUST_USE oj_status arrow_fields_find(const struct ArrowSchema *schema,
                                        const struct compared_fields *compared,
                                        int side, struct arrow_fields *out,
                                        struct oj_error *err);

void arrow_fields_free(struct arrow_fields *fields);

/** Appends the rows of an array. All calls must have equal fields. */
OJ_MUST_USE oj_status arrow_columns_add(struct arrow_columns *columns,
                                        const struct arrow_fields *fields,
                                        const struct ArrowArray *array,
                                        struct oj_error *err);

void arrow_columns_free(struct arrow_columns *columns);

#endif
