/** Columns that a join compares, out of Arrow record batches: texts, those of
 *  one condition put together, and the numbers of vectors.
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

/** What is compared, as it was written. */
struct compared_fields
{
    struct oj_similar similar[OJ_MOST_TEXTS];
    int n_similar; /**< without fields where thresholds alone were */
    struct oj_vector_words vector; /**< n 0: nothing was */
};

void compared_fields_free(struct compared_fields *fields);

struct arrow_field
{
    int64_t child;     /**< of the struct */
    char list;         /**< l L w: of lists; 0 */
    int64_t list_size; /**< of w */
    char format[4];    /**< of values */
    char index;        /**< format of places in a dictionary of them; 0 */
};

/** Where they are among the columns. Owner; zeroed memory is a valid empty one.
 */
struct arrow_fields
{
    int n_texts, n_vector; /**< conditions; fields of the vector */
    int n_fields[OJ_MOST_TEXTS];
    struct arrow_field *field; /**< those of texts, then those of the vector */
};

/** Owner; zeroed memory is a valid empty one. */
struct arrow_columns
{
    int64_t n_rows;
    struct arrow_text_column
    {
        int64_t *offset; /**< [n_rows + 1] */
        char *bytes;
        int64_t cap_offset, cap_bytes;
    } text[OJ_MOST_TEXTS];
    int64_t *offset; /**< [n_rows + 1] into number */
    double *number;
    int64_t cap_offset, cap_number;
};

/** Finds what is compared of side 0 (left) or 1 among the columns of a schema
 *  that arrow_layout_read() has taken.  Errors OJ_ERR_ARG: there is no such
 *  column; OJ_ERR_UNSUPPORTED: its format. */
OJ_MUST_USE oj_status arrow_fields_find(const struct ArrowSchema *schema,
                                        const struct compared_fields *compared,
                                        int side, struct arrow_fields *out,
                                        struct oj_error *err);

void arrow_fields_free(struct arrow_fields *fields);

/** Adds the rows of an array, of the same fields each time. */
OJ_MUST_USE oj_status arrow_columns_add(struct arrow_columns *columns,
                                        const struct arrow_fields *fields,
                                        const struct ArrowArray *array,
                                        struct oj_error *err);

void arrow_columns_free(struct arrow_columns *columns);

#endif
