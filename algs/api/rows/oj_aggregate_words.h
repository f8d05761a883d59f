/** Parses the text of -agg, and decides which fields it may name and which
 *  columns it makes, for the command, the library and all other entries.
 *
 *   count, sum(fare) as total, max("odd, name"), concat(name, '; ')
 *
 *  Functions are read without case, and spaces do not matter.  Fields and names
 *  may be quoted; inside, a quote is doubled to stand for itself.
 *
 *   parse(text) -> for each i: find field i in the join side, bind(i, field)
 *                     |
 *                     |-> aggregates, types, fields: for oj_aggregates_open()
 *                     '-> names, kinds: the result columns
 *
 *  What NULLs, NaN and rows without values give is written at oj_aggregate.h.
 */
#ifndef OJ_AGGREGATE_WORDS_H
#define OJ_AGGREGATE_WORDS_H

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

/** A field to aggregate in one form; a field in two forms has two entries. */
struct oj_aggregate_field
{
    int column; /**< argument of oj_aggregate_words_bind() */
    enum oj_field_kind kind;
    enum oj_aggregate_form form;
};

/** A parsed aggregate, and its result column. */
struct oj_aggregate_word
{
    const struct oj_aggregate_function *function;
    const char *field; /**< unquoted; NULL: counts pairs */
    const char *name;  /**< name of the result column */
    int is_named;      /**< 1: named by "as NAME" */

    /* Set by oj_aggregate_words_bind(). */
    enum oj_aggregate_type type; /**< type of the results */
    enum oj_field_kind kind;     /**< kind of the result column */
    int gives_value; /**< 1: results are values of the field, so the column
                          gets the field's exact type */
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
    int n_fields;
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

/** Binds words->word[i] to its field, the caller's column number `column`;
 * field is ignored if word[i].field is NULL. Call once for each i, ascending.
 * OJ_ERR_ARG: the function does not take such values, or two columns have
 * equal names (compared without case). */
OJ_MUST_USE oj_status oj_aggregate_words_bind(
    struct oj_aggregate_words *words, int i, int column,
    const struct oj_field_description *field, struct oj_error *err);

/** Accepts zeroed memory. */
void oj_aggregate_words_free(struct oj_aggregate_words *words);

#ifdef __cplusplus
}
#endif
#endif
