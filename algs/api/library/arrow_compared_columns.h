/** Copies the columns that a join compares from Arrow record batches: texts
 *  (concatenated per condition) and numbers of vectors.
 *
 *   similar name+street   u U vu, dictionaries of them, and whole numbers as
 *                         they are written
 *   vector price+area     numbers c C s S i I l L f g; of texts as in CSV
 *   vector embedding      of one column also lists +l +L +w: of numbers, and
 *                         texts as "[0.1, 2]"
 *
 *  They are copied.  A NULL adds nothing to a text, and is NaN among numbers.
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
    int n_similar; /**< a condition has no fields if only its threshold was
                        given */
    struct oj_vector_words vector; /**< n 0: vector was not set */
};

void compared_fields_free(struct compared_fields *fields);

struct arrow_field
{
    int64_t child;     /**< index of the column in the struct */
    char list;         /**< list format: l, L or w; 0: no list */
    int64_t list_size; /**< for w */
    char format[4];    /**< format of the values */
    char index;        /**< format of the indices into a dictionary of
                            values; 0: no dictionary */
};

/** The compared columns of a schema. Owner; zeroed memory is a valid empty one.
 */
struct arrow_fields
{
    int n_texts, n_vector; /**< number of text conditions; of vector fields */
    int n_fields[OJ_MOST_TEXTS];
    struct arrow_field *field; /**< fields of the texts, then those of the
                                    vector */
};

/** The values of compared columns. Owner; zeroed memory is a valid empty one.
 */
struct arrow_columns
{
    int64_t n_rows;
    struct arrow_text_column
    {
        int64_t *offset; /**< [n_rows + 1] */
        char *bytes;
        int64_t cap_offset, cap_bytes;
    } text[OJ_MOST_TEXTS];
    int64_t *offset; /**< [n_rows + 1] first number of each row */
    double *number;
    int64_t cap_offset, cap_number;
};

/** Finds the columns to compare for side 0 (left) or 1 in a schema that
 * arrow_layout_read() has accepted.  Errors: OJ_ERR_ARG if a column is
 * missing; OJ_ERR_UNSUPPORTED for its format. */
OJ_MUST_USE oj_status arrow_fields_find(const struct ArrowSchema *schema,
                                        const struct compared_fields *compared,
                                        int side, struct arrow_fields *out,
                                        struct oj_error *err);

void arrow_fields_free(struct arrow_fields *fields);

/** Appends the rows of an array; fields must be equal in all calls. */
OJ_MUST_USE oj_status arrow_columns_add(struct arrow_columns *columns,
                                        const struct arrow_fields *fields,
                                        const struct ArrowArray *array,
                                        struct oj_error *err);

void arrow_columns_free(struct arrow_columns *columns);

#endif
