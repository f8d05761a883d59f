#include "oj_row_words.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_word_list.h"
#include "../../foundations/relation/oj_compared_fields.h"
#include "../../pairs/values/oj_pick.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- pick ---------------------------------------------------------------- */

/* Parses the field of max: or min:, whose name may be in double quotes. */
static oj_status read_pick_field(const char *dash, const char *word,
                                 struct oj_row_pick *out, struct oj_error *err)
{
    size_t n = strlen(word) + 1;
    char *name;
    oj_status status;
    OJ_NEW(name, (int64_t)n, err);
    memcpy(name, word, n);
    status = oj_field_name_parse(dash, "pick", name, err);
    if (status == OJ_OK)
        out->field = name;
    else
        oj_free(name);
    return status;
}

oj_status oj_row_pick_read(const char *dash, const char *rule,
                           struct oj_row_pick *out, struct oj_error *err)
{
    static const char rules[] = "all|first|nearest|largest_overlap|"
                                "smallest_area|largest_area|most_similar";
    int place = oj_words_find(rules, rule); /* index in the list of rules, which
                                               equals the value in enum
                                               oj_pick_rule */
    struct oj_row_pick pick = {0};
    if (strncasecmp(rule, "max:", 4) == 0 || strncasecmp(rule, "min:", 4) == 0)
    {
        pick.rule = OJ_PICK_SCORE;
        pick.is_least = rule[1] == 'i' || rule[1] == 'I';
        OJ_TRY(read_pick_field(dash, rule + 4, &pick, err));
    }
    else if (place <= OJ_PICK_ALL)
        return oj_fail(err, OJ_ERR_ARG,
                       "%spick %s: there is no such rule; write first, "
                       "nearest, largest_overlap, smallest_area, largest_area, "
                       "most_similar, max:FIELD or min:FIELD",
                       dash, rule);
    else
        pick.rule = (enum oj_pick_rule)place;
    *out = pick;
    return OJ_OK;
}

oj_status oj_row_pick_check_field(const char *dash,
                                  const struct oj_field_description *field,
                                  struct oj_error *err)
{
    if (oj_field_kind_is_number_or_null(field->kind) ||
        oj_field_kind_is_time(field->kind))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "%spick: the field '%s' of the join layer is of type %s; "
                   "max and min take numbers, dates and times",
                   dash, field->name, oj_field_kind_name(field->kind));
}

int64_t oj_row_pick_score(const struct oj_row_pick *pick,
                          const struct oj_plain_value *value)
{
    int64_t score = value->form == OJ_PLAIN_INTEGER
                        ? oj_pick_score_of_integer(value->integer)
                    : value->form == OJ_PLAIN_REAL
                        ? oj_pick_score_of_double(value->real)
                        : OJ_NO_SCORE;
    return pick->is_least ? oj_pick_score_reversed(score) : score;
}

void oj_row_pick_free(struct oj_row_pick *pick)
{
    const struct oj_row_pick empty = {0};
    oj_free(pick->field);
    *pick = empty;
}

enum oj_one_to_one_rule oj_row_one_to_one_rule(const char *word)
{
    if (word == NULL)
        return OJ_ONE_TO_ONE_NONE;
    return strcasecmp(word, "best") == 0 ? OJ_ONE_TO_ONE_BEST
                                         : OJ_ONE_TO_ONE_GREEDY;
}

/* ---- overlap ------------------------------------------------------------- */

/* Finds the next word of a comma-separated list: *n characters at *word,
 * without spaces around them. Skips empty words; returns 0 at the end. */
static int next_list_word(const char **at, const char **word, size_t *n)
{
    for (;;)
    {
        while (isspace((unsigned char)**at) || **at == ',')
            ++*at;
        if (**at == '\0')
            return 0;
        *word = *at;
        *n = strcspn(*at, ",");
        *at += *n;
        while (*n > 0 && isspace((unsigned char)(*word)[*n - 1]))
            --*n;
        if (*n > 0)
            return 1;
    }
}

const struct oj_overlap_column oj_overlap_columns[OJ_N_OVERLAP_WORDS] = {
    {"overlap_area", OJ_PAIR_OVERLAP_AREA},
    {"overlap_length", OJ_PAIR_OVERLAP_LENGTH},
    {"overlap_percent", OJ_PAIR_OVERLAP_PERCENT},
    {"overlap_iou", OJ_PAIR_OVERLAP_IOU},
    {"input_area", OJ_PAIR_INPUT_AREA},
    {"join_area", OJ_PAIR_JOIN_AREA},
};

/* Returns the index of a word of n characters in OJ_OVERLAP_WORDS, or -1 if it
 * is not there. */
static int find_overlap_word(const char *word, size_t n)
{
    char copy[sizeof OJ_OVERLAP_WORDS];
    if (n >= sizeof copy)
        return -1;
    memcpy(copy, word, n);
    copy[n] = '\0';
    return oj_words_find(OJ_OVERLAP_WORDS, copy);
}

oj_status oj_row_overlap_read(const char *dash, const char *list,
                              unsigned char *want, struct oj_error *err)
{
    const char *at = list, *word;
    oj_status status = OJ_OK;
    size_t n;
    int n_words = 0;
    for (; next_list_word(&at, &word, &n); n_words++)
    {
        int place = find_overlap_word(word, n);
        if (place >= 0)
            want[oj_overlap_columns[place].value] = 1;
        else
            status = oj_fail(err, OJ_ERR_ARG,
                             "%soverlap takes area, length, percent, iou, "
                             "input_area and join_area, with commas between "
                             "them, not '%.*s'",
                             dash, (int)n, word);
    }
    if (n_words == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "%soverlap is empty: write area, length, percent, iou, "
                       "input_area or join_area",
                       dash);
    return status;
}

/* ---- geometry ------------------------------------------------------------ */

void oj_row_request_kept_parts(int word, struct oj_pair_request *request)
{
    static const unsigned kinds[] = {OJ_PART_POLYGON, OJ_PART_LINE,
                                     OJ_PART_POINT};
    request->shape_kinds = kinds[word];
    request->drops_pairs = 1;
}

void oj_row_request_geometry_values(enum oj_write_geometry geometry,
                                    struct oj_pair_request *request)
{
    unsigned char *want = request->want;
    if (geometry == OJ_WRITE_NEAREST_POINT || geometry == OJ_WRITE_CONNECTION)
        want[OJ_PAIR_NEAREST_X] = want[OJ_PAIR_NEAREST_Y] = 1;
    if (geometry == OJ_WRITE_CONNECTION)
        want[OJ_PAIR_FROM_X] = want[OJ_PAIR_FROM_Y] = 1;
    if (geometry == OJ_WRITE_SHAPE)
        request->want_shapes = 1;
}

/* ---- along --------------------------------------------------------------- */

oj_status oj_row_along_check_m(const char *dash, const char *side,
                               unsigned found, struct oj_error *err)
{
    const char *is = dash[0] != '\0' ? " " : "=";
    if (found != OJ_M_IS_NEEDED)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "%salong%sm: no line of %s has M values: write "
                   "%salong%slength, or give the lines M values first",
                   dash, is, side, dash, is);
}
