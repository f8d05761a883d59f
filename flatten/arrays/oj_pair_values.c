#include "oj_pair_values.h"

#include "../base/oj_alloc.h"

#include <pthread.h>
#include <string.h>

/* The code of a matrix is a number of eight digits of base 4; the ninth letter
 * is always 2. */
#define N_MATRICES 65536

static char matrix_text[N_MATRICES][10];
static pthread_once_t matrices_once = PTHREAD_ONCE_INIT;

static void fill_matrix_texts(void)
{
    for (int code = 0; code < N_MATRICES; code++)
    {
        for (int i = 0; i < 8; i++)
            matrix_text[code][i] = "F012"[(code >> 2 * i) & 3];
        matrix_text[code][8] = '2';
    }
}

double oj_pair_matrix_code(const char *matrix)
{
    int code = 0;
    for (int i = 0; i < 8; i++)
        code |= (matrix[i] == 'F' ? 0 : matrix[i] - '0' + 1) << 2 * i;
    return code;
}

enum oj_pair_kind oj_pair_value_kind(enum oj_pair_value which)
{
    return which == OJ_PAIR_SEGMENT ? OJ_PAIR_KIND_INTEGER
           : which == OJ_PAIR_SIDE || which == OJ_PAIR_MATRIX ||
                   which == OJ_PAIR_RELATION
               ? OJ_PAIR_KIND_TEXT
               : OJ_PAIR_KIND_REAL;
}

const char *oj_pair_value_text(enum oj_pair_value which, double value)
{
    static const char *const relations[] = {OJ_PAIR_RELATIONS};
    int64_t n;
    if (which == OJ_PAIR_SIDE)
        return oj_pair_side_text(value, &n);
    if (which == OJ_PAIR_RELATION && value >= 0.0 &&
        value < (double)(sizeof relations / sizeof *relations))
        return relations[(int)value];
    if (which != OJ_PAIR_MATRIX || !(value >= 0.0 && value < N_MATRICES))
        return NULL;
    pthread_once(&matrices_once, fill_matrix_texts);
    return matrix_text[(int)value];
}

void oj_pair_values_free(struct oj_pair_values *values)
{
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        oj_free(values->value[i]);
    oj_matches_free(&values->picked);
    oj_matches_free(&values->kept);
    oj_flat_buf_free(&values->shapes);
    memset(values, 0, sizeof *values);
}
