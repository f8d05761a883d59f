#include "oj_pair_values.h"

#include "../base/oj_alloc.h"

#include <string.h>

void oj_pair_values_free(struct oj_pair_values *values)
{
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        oj_free(values->value[i]);
    oj_matches_free(&values->picked);
    oj_matches_free(&values->kept);
    oj_flat_buf_free(&values->shapes);
    memset(values, 0, sizeof *values);
}
