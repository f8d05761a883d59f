/** The words of -agg: what they mean, which fields they may name, and which
 *  columns they make. No door reads them itself.
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

/** What the values of a field become before they are aggregated. */
enum oj_aggregate_form
{
    OJ_FORM_NUMBER = 0, /**< int64_t, or double for reals */
    OJ_FORM_TEXT,       /**< the bytes of the text */
    OJ_FORM_TIME,       /**< bytes that memcmp() orders as the times are, and of
                             which the value can be made again */
    OJ_FORM_WRITTEN,    /**< of any kind: the text that it is written as */
    OJ_FORM_PRESENCE    /**< of any kind: 1 where there is a value */
};

/** A field that is aggregated, in one form: two forms of a field are two. */
struct oj_aggregate_field
{
    int column; /**< what oj_aggregate_words_bind() was given */
    enum oj_field_kind kind;
    enum oj_aggregate_form form;
};

/** An aggregate as it was written, and the column of its results. */
struct oj_aggregate_word
{
    const struct oj_aggregate_function *function;
    const char *field; /**< unquoted; NULL: pairs are counted */
    const char *name;  /**< of the result column */
    int is_named;      /**< 1: by "as NAME" */

    /* Set by oj_aggregate_words_bind(). */
    enum oj_aggregate_type type; /**< of the results */
    enum oj_field_kind kind;     /**< of the result column */
    int gives_value; /**< 1: results are values of the field, so that the column
                          has the field's exact type */
};

/** Owner; zeroed memory is a valid empty one. All arrays but fields and types
 *  have n entries. */
struct oj_aggregate_words
{
    const char *dash; /**< as given */
    int n;
    struct oj_aggregate_word *word;
    struct oj_aggregate *aggregates; /**< their column: in fields */
    struct oj_aggregate_field *fields;
    enum oj_aggregate_type *types; /**< [n_fields] of the values of fields */
    int n_fields;
    int has_weighted_sum; /**< 1: pairs need the share of the join feature that
                               the row overlaps; that of a point is 1 */
    int needs_places; /**< 1: pairs need FID and place of the join feature */
    char *text;       /**< all words and names */
};

/** Reads text.  dash: "-" or "", what options begin with in the caller's
 *  messages; it outlives *out.  OJ_ERR_ARG: the text is no list of aggregates,
 *  with what to write instead. */
OJ_MUST_USE oj_status oj_aggregate_words_parse(const char *dash,
                                               const char *text,
                                               struct oj_aggregate_words *out,
                                               struct oj_error *err);

/** Binds words->word[i] to its field, which is column of the caller's; field is
 *  not looked at where word[i].field is NULL. To be called once for each i, in
 *  ascending order. OJ_ERR_ARG: the function takes no such values, or two
 *  columns have one name (compared without case). */
OJ_MUST_USE oj_status oj_aggregate_words_bind(
    struct oj_aggregate_words *words, int i, int column,
    const struct oj_field_description *field, struct oj_error *err);

/** Accepts zeroed memory. */
void oj_aggregate_words_free(struct oj_aggregate_words *words);

#ifdef __cplusplus
}
#endif
#endif
