/* Sorts the rows of a side by size, and makes the prefix lists of tokens. */
#include "cpu_similar.h"

#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

/* ---- by size ------------------------------------------------------------- */

/* Sorts rows by set size: those that have tokens and are listed
 * (similar_side.group_of). Sets *n to their number. The sorted keys are in
 * *first; *second is scratch. The caller frees both. */
static oj_status sort_rows_by_size(const struct oj_token_sets *sets,
                                   const int32_t *group_of,
                                   struct oj_keyed **first,
                                   struct oj_keyed **second, int64_t *n,
                                   struct oj_error *err)
{
    struct oj_keyed *sorted;
    int64_t at = 0;
    OJ_NEW(*first, sets->n_rows, err);
    OJ_NEW(*second, sets->n_rows, err);
    for (int64_t row = 0; row < sets->n_rows; row++)
    {
        struct oj_keyed keyed = {(uint64_t)sets->size[row], row};
        if (sets->size[row] > 0 && (group_of == NULL || group_of[row] >= 0))
            (*first)[at++] = keyed;
    }
    sorted = oj_radix_sort(*first, *second, at);
    if (sorted == *second)
    {
        *second = *first;
        *first = sorted;
    }
    *n = at;
    return OJ_OK;
}

static oj_status group_rows_by_set_size(struct similar_side *side,
                                        const struct oj_keyed *order, int64_t n,
                                        struct oj_error *err)
{
    int64_t n_classes = 0;
    for (int64_t i = 0; i < n; i++)
        n_classes += i == 0 || order[i].key != order[i - 1].key;
    OJ_NEW(side->class_size, n_classes, err);
    OJ_NEW(side->class_start, n_classes + 1, err);
    OJ_NEW(side->by_size, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        side->by_size[i] = (int32_t)order[i].value;
        if (i > 0 && order[i].key == order[i - 1].key)
            continue;
        side->class_start[side->n_classes] = i;
        side->class_size[side->n_classes++] = (int32_t)order[i].key;
    }
    side->class_start[n_classes] = n;
    return OJ_OK;
}

oj_status oj_similar_side_sort_by_size(const struct oj_token_sets *sets,
                                       struct similar_side *side,
                                       struct oj_error *err)
{
    struct oj_keyed *order = NULL, *room = NULL;
    int64_t n = 0;
    oj_status status;
    side->sets = sets;
    status = sort_rows_by_size(sets, side->group_of, &order, &room, &n, err);
    if (status == OJ_OK)
        status = group_rows_by_set_size(side, order, n, err);
    oj_free(order);
    oj_free(room);
    return status;
}

int64_t oj_similar_size_class_at(const struct similar_side *side, int64_t i)
{
    int64_t low = 0, high = side->n_classes;
    while (high - low > 1)
    {
        int64_t middle = (low + high) / 2;
        if (side->class_start[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- by token ------------------------------------------------------------ */

int64_t oj_similar_prefix_length(const struct oj_text_condition *condition,
                                 int64_t size)
{
    int64_t low = 1, high = size; /* binary search for the smallest possible
                                     partner size */
    while (low < high)
    {
        int64_t middle = (low + high) / 2;
        if (oj_text_min_common_tokens(condition, middle, size) <= middle)
            high = middle;
        else
            low = middle + 1;
    }
    return size - oj_text_min_common_tokens(condition, low, size) + 1;
}

/* Appends a row to the lists of its prefix tokens, if fills is 1; with 0 only
 * counts these entries. Tokens that have no number come first as the rarest,
 * and have no list. of_equals is the prefix length for partners that are not
 * smaller than the row's set. */
static void list_row_prefix_tokens(struct similar_side *side, int64_t row,
                                   int64_t class, int64_t prefix,
                                   int64_t of_equals, int fills)
{
    const struct oj_token_sets *sets = side->sets;
    const uint32_t *token = sets->token + sets->offset[row];
    int64_t n = sets->offset[row + 1] - sets->offset[row];
    int64_t n_unknown = sets->size[row] - n;
    for (int64_t place = n_unknown; place < prefix; place++, token++)
    {
        int64_t list = 2 * (int64_t)*token + (place >= of_equals), at;
        if (*token >= side->n_tokens)
            return;
        at = side->offset[list]++;
        if (!fills)
            continue;
        side->entry[at].bits = sets->bits[row];
        side->entry[at].row = (uint32_t)row;
        side->entry[at].class = (uint32_t) class & 0xFFFFFF;
        side->entry[at].place =
            (uint32_t)(place < OJ_SIMILAR_MOST_PLACE ? place
                                                     : OJ_SIMILAR_MOST_PLACE) &
            0xFF;
    }
}

static void list_all_prefix_tokens(struct similar_side *side,
                                   const struct oj_text_condition *condition,
                                   int fills)
{
    for (int64_t c = 0; c < side->n_classes; c++)
    {
        int64_t size = side->class_size[c],
                prefix = oj_similar_prefix_length(condition, size);
        int64_t of_equals =
            size - oj_text_min_common_tokens(condition, size, size) + 1;
        for (int64_t i = side->class_start[c]; i < side->class_start[c + 1];
             i++)
            list_row_prefix_tokens(side, side->by_size[i], c, prefix, of_equals,
                                   fills);
    }
}

oj_status
oj_similar_side_list_prefix_tokens(struct similar_side *side,
                                   const struct oj_text_condition *condition,
                                   int64_t n_tokens, struct oj_error *err)
{
    int64_t sum = 0;
    OJ_NEW_ZEROED(side->offset, 2 * n_tokens + 1, err);
    side->n_tokens = n_tokens;
    list_all_prefix_tokens(side, condition, 0);
    for (int64_t t = 0; t <= 2 * n_tokens; t++)
    {
        int64_t count = side->offset[t];
        side->offset[t] = sum;
        sum += count;
    }
    OJ_NEW(side->entry, sum, err);
    list_all_prefix_tokens(side, condition, 1);
    memmove(side->offset + 1, side->offset,
            (size_t)(2 * n_tokens) * sizeof *side->offset);
    side->offset[0] = 0;
    return OJ_OK;
}

void oj_similar_side_free(struct similar_side *side)
{
    oj_equal_groups_free(&side->groups);
    oj_free(side->group_of);
    oj_free(side->class_size);
    oj_free(side->class_start);
    oj_free(side->by_size);
    oj_free(side->offset);
    oj_free(side->entry);
}
