/** The words of -agg:
 *
 *   count, sum(fare) as total, max("odd, name"), concat(name, '; ')
 *
 *  Functions are told without case, and spaces do not matter.  Fields and names
 *  may be quoted; inside, a quote is doubled to stand for itself.  Which fields
 *  there are is not known here.
 */
#ifndef OJ_AGGREGATE_LIST_H
#define OJ_AGGREGATE_LIST_H

#include "../../algs/aggregate/oj_aggregate.h"

/** One aggregate. Texts are owned by the list. */
struct oj_aggregate_word
{
    enum oj_aggregate_kind kind;
    const char *field;     /**< NULL: count of pairs */
    const char *separator; /**< of concat; else NULL */
    const char *name; /**< of the column: given, or sum_fare and the like */
    int is_named;     /**< 1: given */
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_aggregate_list
{
    struct oj_aggregate_word *word;
    int64_t n, capacity;
    char **text;
    int64_t n_texts, cap_texts;
};

/** OJ_ERR_ARG with one line saying what is wrong, and listing the functions
 *  where that helps. *list is empty then. */
OJ_MUST_USE oj_status oj_aggregate_list_parse(const char *words,
                                              struct oj_aggregate_list *list,
                                              struct oj_error *err);

/** "sum"; never NULL. */
const char *oj_aggregate_name(enum oj_aggregate_kind kind);

void oj_aggregate_list_free(struct oj_aggregate_list *list);

#endif
