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
