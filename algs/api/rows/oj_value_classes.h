/** Classes of rows with equal values, as -on and -exclude field= compare them:
 *  rows of both sides get small numbers, and two rows are equal exactly where
 *  their numbers are.
 *
 *   -on zone=id,kind        zone, kind   text, text     id, kind   int64, text
 *
 *   inserted (join side)    (7, "a") -> 0    (8, "a") -> 1    (NULL, "a") -> -1
 *   looked up (input side)  ("7", "a") -> 0  ("9", "a") -> -1
 *
 *  Two fields of numbers compare as numbers: 1 and 1.0 are equal, and beyond
 *  2^53 no integer equals another one. All other pairs of fields compare as
 *  texts, byte by byte, a number as OGR writes it. Rows are equal when all of
 *  their fields are; NULL and NaN equal nothing.
 *
 *  Cost: one hash of a row's bytes, and one look at a table.
 */
#ifndef OJ_VALUE_CLASSES_H
#define OJ_VALUE_CLASSES_H

#include "../../../flatten/text/oj_token_table.h"
#include "oj_field_kind.h"
#include "oj_plain_value.h"

/** Owner; zeroed memory is a valid one without classes. After the last insert
 *  any number of threads may look up in it, each with a key of its own. */
struct oj_value_classes
{
    struct oj_token_table table; /* of keys, a long token each */
};

/** How the values of a field of the input layer and one of the join layer are
 *  compared. */
enum oj_value_comparison
{
    OJ_COMPARE_TEXTS = 0,
    OJ_COMPARE_NUMBERS
};

/** Which of the two, for fields of these kinds. */
enum oj_value_comparison oj_value_comparison_of(enum oj_field_kind input,
                                                enum oj_field_kind join);

/** The bytes that decide the class of a row. Owner, of one thread; zeroed
 * memory is a valid empty one, and one object serves many rows. */
struct oj_value_key
{
    uint32_t *code; /* [n] each value filled up with zeroes */
    int64_t n, capacity;
};

void oj_value_key_free(struct oj_value_key *key);

/** Finds the classes of rows.
 *
 *  comparison  [n_fields] how the values of each field are compared
 *  rows        values of fields 0 to n_fields - 1 of one side. For
 *              OJ_COMPARE_NUMBERS they are integers and reals; for
 *              OJ_COMPARE_TEXTS texts, and numbers are written as OGR does
 *  insert      1: a row with values that no row before it had is a new class
 *  class_of    [n_rows] set: -1 for a row with NULL or NaN, and without insert
 *              for one whose values no inserted row has
 *
 *  OJ_ERR_LIMIT beyond 2^31 - 2 classes. */
OJ_MUST_USE oj_status oj_value_classes_find(
    struct oj_value_classes *classes, struct oj_value_key *key,
    const enum oj_value_comparison *comparison, int n_fields,
    const struct oj_plain_reader *rows, int64_t n_rows, int insert,
    int32_t *class_of, struct oj_error *err);

/** Bytes of the memory that it holds. */
int64_t oj_value_classes_bytes(const struct oj_value_classes *classes);

/** It is a valid empty one afterwards. */
void oj_value_classes_free(struct oj_value_classes *classes);

#endif
