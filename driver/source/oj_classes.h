/** Equality of attributes as small numbers: rows with equal values get equal
 *  classes, whatever the fields' types, so that the join compares numbers.
 *
 *   -on zone=id            left zone: "7"   right id: 7 (integer)
 *   class of "7" == class of 7: text against a number is compared as text
 *
 *  Numbers compare as numbers (1 and 1.0 are equal, also beyond 2^53), texts
 *  byte by byte, anything else and mixed pairs as the text that OGR writes.
 *  Several fields are equal when all are.  NULL and NaN equal nothing.
 */
#ifndef OJ_CLASSES_H
#define OJ_CLASSES_H

#include "../../flatten/read/oj_attributes.h"
#include "../../flatten/read/oj_table.h"

struct oj_classes;

/** What rows are to columns that both sides are compared by. */
enum oj_insertion
{
    OJ_LOOK_UP = 0,
    OJ_INSERT_ALL, /**< all rows of the side that is looked up */
    OJ_INSERT_SOME /**< of a side that comes in pieces */
};

/** A field of one side: its place among the fields read, and its type. */
struct oj_class_field
{
    int column;
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/** Writes values of one field as OGR does. Owner; zeroed memory is a valid
 * empty one. */
struct oj_field_text
{
    OGRFeatureH scratch; /**< NULL: not needed yet */
    OGRFeatureDefnH defn;
};

/** The text of a value that is there, *n bytes, borrowed until the next one or
 *  as long as the value. */
OJ_MUST_USE oj_status oj_field_text_get(struct oj_field_text *writer,
                                        const struct oj_class_field *field,
                                        const struct oj_value *value,
                                        const char **text, int64_t *n,
                                        struct oj_error *err);

void oj_field_text_free(struct oj_field_text *writer);

/** The number of a value of such a field, of a text as CSV has them, too; NaN:
 *  it has none. */
double oj_value_number(OGRFieldType type, const struct oj_value *value);

/** left and right: [n_fields]. */
OJ_MUST_USE oj_status oj_classes_new(const struct oj_class_field *left,
                                     const struct oj_class_field *right,
                                     int n_fields, struct oj_classes **out,
                                     struct oj_error *err);

/** Where the values of consecutive rows are: a table or a batch; the other is
 *  NULL. */
struct oj_row_values
{
    const struct oj_table *table;
    const struct oj_attributes *attributes;
};

void oj_row_values_get(const struct oj_row_values *values, int64_t row,
                       int column, struct oj_value *value);

/** The classes of rows 0 to n - 1: in class_of [n].  A row with a NULL gets -1,
 *  and without insert so does one whose values no inserted row has.
 *  is_right: which side's fields.  One thread at a time; after the last insert
 *  any number of lookups, one thread at a time too. */
OJ_MUST_USE oj_status oj_classes_find(struct oj_classes *classes, int is_right,
                                      int insert,
                                      const struct oj_row_values *values,
                                      int64_t n, int32_t *class_of,
                                      struct oj_error *err);

/** Accepts NULL. */
void oj_classes_free(struct oj_classes *classes);

/** The values inserted and their classes, without the fields that they came
 *  from: after the last insert, any number of classes can look up in the same
 *  numbers, each on a thread of its own.  Counts its holders. */
struct oj_class_numbers;

/** What decides the numbers that rows of the right side get, for pair i of the
 *  fields; 0 past the last. */
int oj_classes_field_at(const struct oj_classes *classes, int i,
                        struct oj_class_field *right, int *as_number);

/* These accept NULL: what is asked of no field. */

/** Held for the caller until oj_class_numbers_free(). */
struct oj_class_numbers *oj_classes_hold_numbers(struct oj_classes *classes);

/** Looks up in these from now on, which were made by classes of the same
 *  oj_classes_field_at(), in place of its own; nothing may be inserted. */
void oj_classes_use_numbers(struct oj_classes *classes,
                            struct oj_class_numbers *numbers);

int64_t oj_class_numbers_bytes(const struct oj_class_numbers *numbers);
void oj_class_numbers_free(struct oj_class_numbers *numbers);

#endif
