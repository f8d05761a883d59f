#include "oj_span_condition.h"

#include "../../../flatten/base/oj_word_list.h"

#include <string.h>

struct oj_span_condition
oj_span_condition_transpose(const struct oj_span_condition *condition)
{
    struct oj_span_condition other = {0};
    for (int i = 0; i < OJ_N_SPAN_RELATIONS; i++)
        other.relations |= (condition->relations >> i & 1u)
                           << (OJ_SPAN_AFTER - i);
    return other;
}

enum
{
    IS_LESS = 1,
    IS_EQUAL = 2,
    IS_GREATER = 4
};

/* Returns how numbers of a range may compare with a number. */
static int compare_range(const int64_t range[2], int64_t number)
{
    return (range[0] < number ? IS_LESS : 0) |
           (range[0] <= number && number <= range[1] ? IS_EQUAL : 0) |
           (range[1] > number ? IS_GREATER : 0);
}

int oj_span_condition_may_hold(const struct oj_span_condition *condition,
                               int64_t from, int64_t until,
                               const struct oj_span_ranges *ranges)
{
    /* Relations by the comparison of the begins, then of the ends. */
    static const struct
    {
        int begin, end;
        unsigned relations;
    } rule[] = {
        {IS_GREATER, IS_GREATER, 1u << OJ_SPAN_MEETS | 1u << OJ_SPAN_OVERLAPS},
        {IS_LESS, IS_LESS, 1u << OJ_SPAN_MET_BY | 1u << OJ_SPAN_OVERLAPPED_BY},
        {IS_EQUAL, IS_GREATER, 1u << OJ_SPAN_STARTS},
        {IS_EQUAL, IS_EQUAL, 1u << OJ_SPAN_EQUALS},
        {IS_EQUAL, IS_LESS, 1u << OJ_SPAN_STARTED_BY},
        {IS_GREATER, IS_EQUAL, 1u << OJ_SPAN_FINISHED_BY},
        {IS_LESS, IS_EQUAL, 1u << OJ_SPAN_FINISHES},
        {IS_GREATER, IS_LESS, 1u << OJ_SPAN_CONTAINS},
        {IS_LESS, IS_GREATER, 1u << OJ_SPAN_DURING}};
    int begin, end;
    if (ranges->from[0] > until || ranges->until[1] < from)
        return 0;
    if (condition->relations == OJ_SPANS_INTERSECT)
        return 1;
    begin = compare_range(ranges->from, from);
    end = compare_range(ranges->until, until);
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++)
    {
        if ((rule[i].relations & condition->relations) != 0 &&
            (rule[i].begin & begin) != 0 && (rule[i].end & end) != 0)
            return 1;
    }
    return 0;
}

oj_status oj_span_condition_check(const struct oj_span_condition *condition,
                                  struct oj_error *err)
{
    if (condition->relations != 0 &&
        condition->relations >> OJ_N_SPAN_RELATIONS == 0)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "a condition on spans needs at least one relation, for "
                   "example overlaps");
}

oj_status oj_span_relations_parse(const char *dash, const char *option,
                                  const char *words,
                                  struct oj_span_condition *out,
                                  struct oj_error *err)
{
    struct oj_span_condition found = {0};
    const char *at = words;
    for (;; at++)
    {
        char word[32] = "";
        size_t n = strcspn(at, "+");
        int i = -1;
        if (n > 0 && n < sizeof word)
        {
            memcpy(word, at, n);
            i = oj_words_find(OJ_SPAN_RELATION_NAMES, word);
        }
        if (i < 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "%s%s: '%.*s' is no relation of two spans; they are "
                           "intersects, before, meets, overlaps, starts, "
                           "during, finishes, equals, finished_by, contains, "
                           "started_by, overlapped_by, met_by and after, with "
                           "+ between several",
                           dash, option, n < 60 ? (int)n : 60, at);
        found.relations |= i == 0 ? OJ_SPANS_INTERSECT : 1u << (i - 1);
        at += n;
        if (*at == '\0')
            break;
    }
    *out = found;
    return OJ_OK;
}
