#include "oj_plain_value.h"

#include "../../../flatten/base/oj_number.h"

#include <stdio.h>

int64_t oj_plain_value_write(const struct oj_plain_value *value, char *text)
{
    if (value->form == OJ_PLAIN_REAL && value->integer != 0)
        return snprintf(text, OJ_PLAIN_TEXT_BYTES, "%llu",
                        (unsigned long long)value->integer);
    if (value->form == OJ_PLAIN_REAL)
        return oj_number_write(value->real, 15, text, OJ_PLAIN_TEXT_BYTES);
    return snprintf(text, OJ_PLAIN_TEXT_BYTES, "%lld",
                    (long long)value->integer);
}
