/** Parses the text of -agg, decides which values it may name and which columns
 *  it makes, and reads the values that belong to pairs, for the command, the
 *  library and all other entries.
 *
 *   count, sum(fare) as total, max("odd, name"), concat(name, '; '),
 *   percentile(fare, 90), weighted_mean(price, people), mean(join_distance)
 *
 *  Functions are read without case, and spaces do not matter.  Fields and names
 *  may be quoted; inside, a quote is doubled to stand for itself.
 *
 *   parse(text) -> for each i: find its values (oj_aggregate_columns_bind() of
 *                     |          oj_row_columns.h), bind(i, values)
 *                     |-> aggregates, types, fields: for oj_aggregates_open()
 *                     '-> names, kinds: the result columns
 *   pairs --read--> columns of values by pair: for oj_aggregates_add()
 *
 *  What NULLs, NaN and rows without values give is written at oj_aggregate.h.
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
    OJ_FORM_NUMBER = 0, /**< int64_t, or double for reals */
    OJ_FORM_TEXT,       /**< the bytes of the text */
    OJ_FORM_TIME,       /**< bytes that memcmp() orders like the times, and
                             that can be converted back */
    OJ_FORM_WRITTEN,    /**< any kind: the text that it is written as */
    OJ_FORM_PRESENCE    /**< any kind: 1 if the value is not NULL */
};

/** The values that an argument of a function names: a field of the join side
 * (OJ_COLUMN_JOIN), or a column of pairs: its FID, measure, rank or one of enum
 * oj_pair_value. */
struct oj_aggregate_operand
{
    enum oj_column_origin origin;
    int column; /**< number of the field; enum oj_pair_value if the origin is
                     OJ_COLUMN_PAIR_VALUE */
    enum oj_field_kind kind;
};

/** An operand in one form; an operand in two forms has two entries. */
struct oj_aggregate_field
{
    enum oj_column_origin origin;
    int column; /**< as in struct oj_aggregate_operand */
    enum oj_field_kind kind;
    enum oj_aggregate_form form;
};

/** A parsed aggregate, and its result column. */
struct oj_aggregate_word
{
    const struct oj_aggregate_function *function;
    const char *field;  /**< unquoted; NULL: counts pairs */
    const char *weight; /**< second argument of weighted_mean, unquoted; NULL:
                             the size of the overlap */
    const char *name;   /**< name of the result column */
    int is_named;       /**< 1: named by "as NAME" */

    /* Set by oj_aggregate_words_bind(). */
    enum oj_aggregate_type type; /**< type of the results */
    enum oj_field_kind kind;     /**< kind of the result column */
    int gives_value; /**< 1: results are values of the operand, so the column
                          gets its exact type */
};

/** The parsed aggregates. Owner; zeroed memory is a valid empty one. All arrays
 * except fields and types have n elements. */
struct oj_aggregate_words
{
    const char *dash; /**< the dash of oj_aggregate_words_parse() */
    int n;
    struct oj_aggregate_word *word;
    struct oj_aggregate *aggregates; /**< their column is an index in fields */
    struct oj_aggregate_field *fields;
    enum oj_aggregate_type *types; /**< [n_fields] types of the converted
                                        values */
    uint8_t *is_of_pairs;          /**< [n_fields] 1: a column of pairs */
    int n_fields;
    int n_of_pairs;       /**< columns of pairs among the fields */
    int has_weighted_sum; /**< 1: pairs need the share of the join feature
                               that the row overlaps, which is 1 for points */
    int needs_places; /**< 1: pairs need FID and place of the join feature */
    char *text;       /**< memory of all words and names */
};

/** Parses text.  dash: "-" or "", the prefix of option names in messages; it
 * must outlive *out.  OJ_ERR_ARG with the expected syntax. */
OJ_MUST_USE oj_status oj_aggregate_words_parse(const char *dash,
                                               const char *text,
                                               struct oj_aggregate_words *out,
                                               struct oj_error *err);

/** Binds words->word[i] to its values, and to its weights if it names some.
 * values is ignored if word[i].field is NULL, weights if word[i].weight is.
 * Call once for each i, ascending.  OJ_ERR_ARG: the function does not take such
 * values, or two columns have equal names (compared without case). */
OJ_MUST_USE oj_status oj_aggregate_words_bind(
    struct oj_aggregate_words *words, int i,
    const struct oj_aggregate_operand *values,
    const struct oj_aggregate_operand *weights, struct oj_error *err);

/** Sets want [OJ_N_PAIR_VALUES] of the columns of pairs that the bound words
 * name. */
void oj_aggregate_words_want(const struct oj_aggregate_words *words,
                             unsigned char *want);

/** Sets want [OJ_N_PAIR_VALUES] of what the shares of a weighted sum need. */
void oj_aggregate_words_want_shares(unsigned char *want);

/* ---- columns of pairs -----------------------------------------------------
 */

struct oj_matches;
struct oj_pair_values;

/** Pairs whose values are read. Borrows its arrays. */
struct oj_aggregate_pair_list
{
    int64_t n;
    const struct oj_matches *matches;
    const struct oj_pair_values *values; /**< or NULL, if none are wanted */
    const int64_t *entry;                /**< [n] of matches, and of values */
    const int32_t *rank;                 /**< [n] 1, 2, 3 within an input row */
    const int32_t *at;  /**< [n] index of the join feature in fid */
    const int64_t *fid; /**< FIDs of join features, indexed by at; NULL unless
                             oj_aggregate_words.needs_places */
};

/** Memory of a column of pairs. */
struct oj_aggregate_pair_memory
{
    void *value; /**< array of the column's type */
    uint8_t *is_null;
    char *text; /**< values as they are written */
    int64_t cap_value, cap_null, n_text, cap_text;
};

/** The memory of all columns; zeroed memory is a valid empty one. */
struct oj_aggregate_pair_columns
{
    struct oj_aggregate_pair_memory *memory; /**< [n] */
    int n;
};

/** Sets those of columns [words->n_fields] that are of pairs to the values of
 * the pairs of list; they are valid until the next call. A value that a pair
 * does not have is NULL. */
OJ_MUST_USE oj_status oj_aggregate_pair_columns_read(
    const struct oj_aggregate_words *words,
    const struct oj_aggregate_pair_list *list,
    struct oj_aggregate_pair_columns *memory,
    struct oj_aggregate_column *columns, struct oj_error *err);

/** Accepts zeroed memory. */
void oj_aggregate_pair_columns_free(struct oj_aggregate_pair_columns *memory);

/** Accepts zeroed memory. */
void oj_aggregate_words_free(struct oj_aggregate_words *words);

#ifdef __cplusplus
}
#endif
#endif
