#include "oj_matrix.h"

#include <stdlib.h>

int oj_matrix_matches_pattern(const struct oj_matrix *matrix,
                              const char *pattern)
{
    for (int i = 0; i < 9; i++)
    {
        char p = pattern[i], c = matrix->at[i];
        if (p == '*')
            continue;
        if (p == 'T' || p == 't')
        {
            if (c == 'F')
                return 0;
        }
        else if ((p == 'f' ? 'F' : p) != c)
            return 0;
    }
    return 1;
}

/* Returns the maximum dimension of three entries of a matrix, 0 to 2, or -1 if
 * all are F.
 */
static int greatest_dimension(char a, char b, char c)
{
    char most = 'F';
    const char all[3] = {a, b, c};
    for (int i = 0; i < 3; i++)
    {
        if (all[i] != 'F' && (most == 'F' || all[i] > most))
            most = all[i];
    }
    return most == 'F' ? -1 : most - '0';
}

static int matrix_crosses(const struct oj_matrix *m, int dim_a, int dim_b)
{
    if (dim_a < dim_b)
        return oj_matrix_matches_pattern(m, "T*T******");
    if (dim_a > dim_b)
        return oj_matrix_matches_pattern(m, "T*****T**");
    return dim_a == 1 && oj_matrix_matches_pattern(m, "0********");
}

static int matrix_overlaps(const struct oj_matrix *m, int dim_a, int dim_b)
{
    if (dim_a != dim_b)
        return 0;
    return oj_matrix_matches_pattern(m, dim_a == 1 ? "1*T***T**" : "T*T***T**");
}

static int interiors_or_boundaries_intersect(const struct oj_matrix *m)
{
    return m->at[0] != 'F' || m->at[1] != 'F' || m->at[3] != 'F' ||
           m->at[4] != 'F';
}

int oj_matrix_satisfies_relation(const struct oj_matrix *m,
                                 const struct oj_relation *relation)
{
    const char *pattern = oj_op_get(relation->op)->pattern;
    int dim_a = greatest_dimension(m->at[0], m->at[1], m->at[2]);
    int dim_b = greatest_dimension(m->at[0], m->at[3], m->at[6]);
    switch (relation->op)
    {
        case OJ_OP_INTERSECTS:
            return interiors_or_boundaries_intersect(m);
        case OJ_OP_DISJOINT:
            return !interiors_or_boundaries_intersect(m);
        case OJ_OP_TOUCHES:
            return m->at[0] == 'F' && interiors_or_boundaries_intersect(m) &&
                   (dim_a > 0 || dim_b > 0);
        case OJ_OP_CROSSES:
            return matrix_crosses(m, dim_a, dim_b);
        case OJ_OP_OVERLAPS:
            return matrix_overlaps(m, dim_a, dim_b);
        case OJ_OP_COVEREDBY:
        case OJ_OP_COVERS:
            return interiors_or_boundaries_intersect(m) &&
                   oj_matrix_matches_pattern(m, pattern);
        case OJ_OP_RELATE:
            return oj_matrix_matches_pattern(m, relation->mask);
        case OJ_OP_WITHIN:
        case OJ_OP_CONTAINS:
        case OJ_OP_CONTAINS_PROPERLY:
        case OJ_OP_EQUALS:
            return oj_matrix_matches_pattern(m, pattern);
        case OJ_OP_NEAREST: /* a matrix does not decide these joins: abort */
        case OJ_OP_DWITHIN:
        case OJ_OP_BBOX:
        case OJ_OP_SIMILAR:
        case OJ_OP_ATTRIBUTES:
        case OJ_N_OPS:
            break;
    }
    abort();
}
