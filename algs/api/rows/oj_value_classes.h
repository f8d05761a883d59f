/** Classes of rows with equal values, for -on and -exclude field=: rows of both
 *  sides are numbered such that two rows have equal values exactly if their
 *  numbers are equal.
 *
 *   -on zone=id,kind        zone, kind   text, text     id, kind   int64, text
 *
 *   inserted (join side)    (7, "a") -> 0    (8, "a") -> 1    (NULL, "a") -> -1
 *   looked up (input side)  ("7", "a") -> 0  ("9", "a") -> -1
 *
 *  Two fields of numbers compare as numbers: 1 and 1.0 are equal, and beyond
 *  2^53 no integer equals another one. Whole numbers below 2^64 compare as
 *  integers. Other decimals are not rounded: one of up to 15 digits equals the
 *  double nearest to it, one of more digits equals a double only if it is the
 *  shortest decimal that reads back as it, and no two decimals that differ are
 *  equal. A datetime and a date, datetime or text, and a date and a text,
 *  compare as moments, in microseconds: a date is its midnight, a time without
 *  a zone counts as UTC, and a text that is no moment equals nothing.
 *  All other pairs of fields compare as texts, byte by byte, a number as OGR
 *  writes it, and binary values of Arrow as their bytes. Rows are equal when
 *  all of their fields are; NULL and NaN equal nothing.
 *
 *  Cost per row: a hash of its bytes and a look-up in a table. Whole numbers in
 *  one field have two cheaper forms, which end when a value does not fit:
 *
 *   ascending   whole = [ 3 7 8 20 .. ]   the class is the position of the
 *                                         number; tried first are the position
 *                                         after the last one found, and the
 *                                         number minus whole[0]
 *   whole       short tokens, whose key is the number
 *   any         long tokens: the bytes of the values
 */
#ifndef OJ_VALUE_CLASSES_H
#define OJ_VALUE_CLASSES_H

#include "../../../flatten/text/oj_token_table.h"
#include "oj_field_kind.h"
#include "oj_plain_value.h"

/** The classes. Owner; zeroed memory is a valid empty value. After the last
 * insertion, several threads may look up at once, each with its own key. */
struct oj_value_classes
{
    enum oj_value_classes_form
    {
        OJ_CLASSES_ASCENDING = 0,
        OJ_CLASSES_WHOLE,
        OJ_CLASSES_ANY
    } form;
    int64_t *whole; /* [n_whole] values of the form ascending */
    int64_t n_whole, cap_whole;
    struct oj_token_table table; /* values of the other forms; those of the form
                                    any as tokens of several 32-bit codes */
};

/** How a field of the input and a field of the join side are compared. */
enum oj_value_comparison
{
    OJ_COMPARE_TEXTS = 0,
    OJ_COMPARE_NUMBERS,
    OJ_COMPARE_MOMENTS,
    OJ_N_VALUE_COMPARISONS
};

/** Returns how fields of these kinds are compared. */
enum oj_value_comparison oj_value_comparison_of(enum oj_field_kind input,
                                                enum oj_field_kind join);

/** The compared values of a row as bytes. Owner; one per thread, reused for
 * many rows; zeroed memory is a valid empty value. */
struct oj_value_key
{
    uint32_t *code; /* [n] the values, each padded with zeros */
    int64_t n, capacity;
    int64_t next; /* class after the last one that was found in the form
                     ascending */
};

void oj_value_key_free(struct oj_value_key *key);

/** Finds the classes of rows.
 * comparison  [n_fields] how the values of each field are compared
 * rows        reads fields 0 to n_fields - 1 of one side: for
 *             OJ_COMPARE_NUMBERS as integers or reals; for OJ_COMPARE_MOMENTS
 *             as integers (microseconds since 1970 in UTC) or texts
 *             (oj_moment_read()); for OJ_COMPARE_TEXTS as texts, or as numbers,
 *             which are compared as OGR writes them
 * insert      1: a row with new values makes a new class
 * class_of    [n_rows] output: -1 for a row with NULL, NaN or a text that is no
 *             moment, and without insert for a row whose values were not
 *             inserted
 * Errors      OJ_ERR_LIMIT: more than 2^31 - 2 classes */
OJ_MUST_USE oj_status oj_value_classes_find(
    struct oj_value_classes *classes, struct oj_value_key *key,
    const enum oj_value_comparison *comparison, int n_fields,
    const struct oj_plain_reader *rows, int64_t n_rows, int insert,
    int32_t *class_of, struct oj_error *err);

/** Returns the number of bytes in use. */
int64_t oj_value_classes_bytes(const struct oj_value_classes *classes);

/** Frees the memory; *classes is a valid empty value afterwards. */
void oj_value_classes_free(struct oj_value_classes *classes);

#endif
