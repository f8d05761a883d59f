#include "oj_plain_value.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_number.h"

#include <stdio.h>
#include <string.h>

int64_t oj_plain_value_write(const struct oj_plain_value *value, int digits,
                             char *text)
{
    if (value->form == OJ_PLAIN_REAL && value->integer != 0)
        return snprintf(text, OJ_PLAIN_TEXT_BYTES, "%llu",
                        (unsigned long long)value->integer);
    if (value->form == OJ_PLAIN_REAL)
        return oj_number_write(value->real, digits, text, OJ_PLAIN_TEXT_BYTES);
    return snprintf(text, OJ_PLAIN_TEXT_BYTES, "%lld",
                    (long long)value->integer);
}

static oj_status append_bytes(struct oj_plain_list *list, const char *bytes,
                              int64_t n, struct oj_error *err)
{
    OJ_ROOM(list->text, list->n, list->n + n + 1, list->cap, err);
    if (n > 0)
        memcpy(list->text + list->n, bytes, (size_t)n);
    list->n += n;
    return OJ_OK;
}

oj_status oj_plain_list_begin(struct oj_plain_list *list, int64_t n,
                              struct oj_error *err)
{
    char text[OJ_PLAIN_TEXT_BYTES];
    list->n = list->n_added = 0;
    return append_bytes(
        list, text, snprintf(text, sizeof text, "(%lld:", (long long)n), err);
}

oj_status oj_plain_list_add(struct oj_plain_list *list,
                            const struct oj_plain_value *element, int digits,
                            struct oj_error *err)
{
    char number[OJ_PLAIN_TEXT_BYTES];
    if (list->n_added++ > 0)
        OJ_TRY(append_bytes(list, ",", 1, err));
    if (element->form == OJ_PLAIN_NULL)
        return OJ_OK;
    if (element->form == OJ_PLAIN_TEXT)
        return append_bytes(list, element->text, element->n, err);
    return append_bytes(list, number,
                        oj_plain_value_write(element, digits, number), err);
}

oj_status oj_plain_list_end(struct oj_plain_list *list, struct oj_error *err)
{
    return append_bytes(list, ")", 1, err);
}

void oj_plain_list_free(struct oj_plain_list *list)
{
    oj_free(list->text);
    memset(list, 0, sizeof *list);
}
