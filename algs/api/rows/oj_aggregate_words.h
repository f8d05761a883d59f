/** Parses the text of -agg (option or setting), binds it to fields, defines the
 *  result columns, and reads values that belong to pairs.
 *
 *   count, sum(fare) as total, max("odd, name"), concat(name, '; '),
 *   percentile(fare, 90), weighted_mean(price, people), mean(join_distance)
 *
 *  Case of function names and spaces do not matter.  Fields and names may be in
 *  quotes; a quote within them is doubled.
 *
 *   parse(text) -> for each i: find its values (oj_aggregate_columns_bind() of
 *                     |          oj_row_columns.h), bind(i, values)
 *                     |-> aggregates, types, fields: for oj_aggregates_open()
 *                     '-> names, kinds: the result columns
 *   pairs --read--> columns of values by pair: for oj_aggregates_add()
 *
 *  oj_aggregate.h defines the results for NULL, NaN and rows without values.
 */
#ifndef OJ_AGGREGATE_WORDS_H
#define OJ_AGGREGATE_WORDS_H

#include "../../../flatten/base/oj_output_row_modes.h"
#include "../../foundations/aggregate/oj_aggregate.h"
#include "oj_field_kind.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the values of a field are converted before they are aggregated. */
enum oj_aggregate_form
{
    OJ_FORM_NUMBER = 0, /**< int64_t, or double if the field has reals */
    OJ_FORM_TEXT,       /**< the bytes of the text */
    OJ_FORM_TIME,       /**< bytes that memcmp() orders chronologically, and
                             that can be converted back */
    OJ_FORM_WRITTEN,    /**< any kind: the value written as text */
    OJ_FORM_PRESENCE    /**< any kind: 1 if the value is not NULL */
};

/** The values that are an argument of a function: a field of the join side
 * (OJ_COLUMN_JOIN), or a column of pairs: FID, measure, rank or a value of enum
 * oj_pair_value. */
struct oj_aggregate_operand
{
    enum oj_column_origin origin;
    int column; /**< ordinal of the field; for OJ_COLUMN_PAIR_VALUE: enum
                     oj_pair_value */
    enum oj_field_kind kind;
};

/** An operand with the form in which functions take its values. An operand that
 * is needed in two forms has two elements. */
struct oj_aggregate_field
{
    enum oj_column_origin origin;
    int column; /**< see struct oj_aggregate_operand */
    enum oj_field_kind kind;
    enum oj_aggregate_form form;
};

/** A parsed aggregate and its result column. */
struct oj_aggregate_word
{
    const struct oj_aggregate_function *function;
    const char *field;  /**< name of the field, without quotes; NULL: counts
                             pairs */
    const char *weight; /**< second argument of weighted_mean, without quotes;
                             NULL: pairs are weighted by their overlap */
    const char *name;   /**< name of the result column */
    int is_named;       /**< 1: the name was given by "as NAME" */

    /* The following are set by oj_aggregate_words_bind(). */
    enum oj_aggregate_type type; /**< type of the results */
    enum oj_field_kind kind;     /**< kind of the result column */
    int gives_value; /**< 1: the result is one of the operand's values, so the
                          column has the exact type of the operand */
};

/** All parsed aggregates. Owner; zeroed memory is a valid empty value. Arrays
 * have n elements, except fields, types and is_of_pairs. */
struct oj_aggregate_words
{
    const char *dash; /**< argument of oj_aggregate_words_parse() */
    int n;
    struct oj_aggregate_word *word;
    struct oj_aggregate *aggregates; /**< the member column is an index in
                                          fields */
    struct oj_aggregate_field *fields;
    enum oj_aggregate_type *types; /**< [n_fields] types of the values in their
                                        form */
    uint8_t *is_of_pairs;          /**< [n_fields] 1: values of pairs; 0: of
                                        join features */
    int n_fields;
    int n_of_pairs;       /**< number of fields with values of pairs */
    int has_weighted_sum; /**< 1: pairs need their share, the fraction of the
                               join feature that the row overlaps (1 for
                               points) */
    int needs_places;     /**< 1: pairs need the FID and the reading position of
                               their join feature */
    char *text;           /**< holds all words and names */
};

/** Parses text. dash: prefix of option names in messages, "-" or ""; must
 * outlive *out. Fails with OJ_ERR_ARG and a message with the expected
 * syntax. */
OJ_MUST_USE oj_status oj_aggregate_words_parse(const char *dash,
                                               const char *text,
                                               struct oj_aggregate_words *out,
                                               struct oj_error *err);

/** Returns 1 if all aggregates are numbers of pairs. */
int oj_aggregate_words_are_counts(const struct oj_aggregate_words *words);

/** Binds aggregate i to its values, and to its weights if it has some. values
 * is ignored if word[i].field is NULL, weights if word[i].weight is NULL. Must
 * be called once for each i, ascending. Fails with OJ_ERR_ARG if the function
 * does not accept such values, or two result columns have equal names
 * (ignoring case). */
OJ_MUST_USE oj_status oj_aggregate_words_bind(
    struct oj_aggregate_words *words, int i,
    const struct oj_aggregate_operand *values,
    const struct oj_aggregate_operand *weights, struct oj_error *err);

/** Sets want[v] to 1 for each pair value v that the bound aggregates need; want
 * has OJ_N_PAIR_VALUES elements. */
void oj_aggregate_words_request_values(const struct oj_aggregate_words *words,
                                       unsigned char *want);

/** Sets want[v] to 1 for each pair value v that shares of weighted sums need;
 * want has OJ_N_PAIR_VALUES elements. */
void oj_aggregate_words_request_share_values(unsigned char *want);

/* ---- columns of pairs: values for each pair ------------------------------ */

struct oj_flat;
struct oj_matches;
struct oj_pair_values;

/** Adds the number of pairs of each row of matches to aggregates, all of which
 * must count pairs. matches: an answer of a relation whose enough_pairs is not
 * OJ_ENOUGH_ALL; its row 0 is row first_row of the aggregates. */
void oj_aggregate_add_counts(const struct oj_matches *matches,
                             int64_t first_row,
                             struct oj_aggregates *aggregates);

/** Makes covered_percent NULL for the rows without pairs that have no area and
 * no length, of which a percentage could be covered. Must be called after the
 * pairs of an answer were added. Row 0 of input, which has all rows of the
 * answer, is row first_row of the aggregates. */
OJ_MUST_USE oj_status oj_aggregate_words_mark_undefined_percents(
    const struct oj_aggregate_words *words, const struct oj_flat *input,
    int64_t first_row, struct oj_aggregates *aggregates, struct oj_error *err);

/** Pairs of which values are read; the arrays are borrowed. */
struct oj_aggregate_pair_list
{
    int64_t n;
    const struct oj_matches *matches;
    const struct oj_pair_values *values; /**< computed values of the pairs;
                                              NULL: none are needed */
    const int64_t *entry;                /**< [n] index of each pair in matches
                                              and values */
    const int32_t *rank;                 /**< [n] rank within the input row: 1,
                                              2, 3 ..; NULL if no column has
                                              ranks */
    const int32_t *at;  /**< [n] index of each pair's join feature in fid */
    const int64_t *fid; /**< FIDs of join features; NULL unless
                             oj_aggregate_words.needs_places */
};

/** Memory of a column of pairs, reused. */
struct oj_aggregate_pair_memory
{
    void *value; /**< array of the column's type */
    uint8_t *is_null;
    char *text; /**< the bytes of values that were written as text */
    int64_t cap_value, cap_null, n_text, cap_text;
};

/** Memory of all columns of pairs. Zeroed memory is a valid empty value. */
struct oj_aggregate_pair_columns
{
    struct oj_aggregate_pair_memory *memory; /**< [n] */
    int n;
};

/** Sets those elements of columns [words->n_fields] that are columns of pairs
 * to their values for the pairs of list. The values are valid until the next
 * call. A value that a pair lacks is NULL. */
OJ_MUST_USE oj_status oj_aggregate_pair_columns_read(
    const struct oj_aggregate_words *words,
    const struct oj_aggregate_pair_list *list,
    struct oj_aggregate_pair_columns *memory,
    struct oj_aggregate_column *columns, struct oj_error *err);

/** memory may be zeroed. */
void oj_aggregate_pair_columns_free(struct oj_aggregate_pair_columns *memory);

/** words may be zeroed. */
void oj_aggregate_words_free(struct oj_aggregate_words *words);

#ifdef __cplusplus
}
#endif
#endif
