/* The table of joins. Every row is filled. The properties that its rows state
 * hold for every DE-9IM matrix.
 * Kinds: unit, property. */
#include "../run_tests.h"

#include "../../../algs/foundations/relation/oj_matrix.h"
#include "../../../algs/foundations/relation/oj_relation.h"

#include <string.h>

enum
{
    N_MATRICES = 1 << 16 /* four values at each of eight positions */
};

static struct oj_matrix matrix_number(int n)
{
    struct oj_matrix matrix = {"FFFFFFFF2"};
    for (int i = 0; i < 8; i++, n /= 4)
        matrix.at[i] = "F012"[n % 4];
    return matrix;
}

static struct oj_matrix matrix_transpose(const struct oj_matrix *matrix)
{
    struct oj_matrix other = *matrix;
    for (int i = 0; i < 9; i++)
        other.at[i] = matrix->at[i % 3 * 3 + i / 3];
    return other;
}

static int have_contact(const struct oj_matrix *m)
{
    return m->at[0] != 'F' || m->at[1] != 'F' || m->at[3] != 'F' ||
           m->at[4] != 'F';
}

/* Returns 1 for joins by predicate that a matrix decides: all but bbox. */
static int is_decided_by_matrix(enum oj_op op)
{
    return (oj_op_get(op)->takes & OJ_TAKES_SHAPES) != 0 && op != OJ_OP_BBOX;
}

static struct oj_relation relation_of(enum oj_op op)
{
    struct oj_relation relation = oj_relation_default();
    relation.op = op;
    strcpy(relation.mask, op == OJ_OP_RELATE ? "F***1****" : "");
    return relation;
}

TEST(unit_every_row_is_filled)
{
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        const struct oj_op_info *op = oj_op_get((enum oj_op)i);
        ck_assert_msg(op->name != NULL && op->description != NULL,
                      "row %d of the table of joins is empty", i);
        ck_assert_msg(op->takes != 0, "%s: nothing decides its pairs",
                      op->name);
        ck_assert_msg((op->takes & OJ_TAKES_K) == 0 || op->k > 0,
                      "%s: no k without -k", op->name);
        ck_assert_msg((op->needs != NULL) == (op->needs_text != NULL),
                      "%s: needs and needs_text go together", op->name);
        ck_assert_int_eq(oj_op_find(op->name), i);
        ck_assert_msg(op->transposed != OJ_OP_NEAREST || i == OJ_OP_NEAREST,
                      "%s: its exchanged join is not named", op->name);
    }
}

/* oj_relation_sorts_by_measure() compares ops without the table of joins, which
 * the CUDA module lacks. It must agree with the table. */
TEST(unit_joins_with_k_sort_by_measure)
{
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        struct oj_relation relation = relation_of((enum oj_op)i);
        ck_assert_msg(((oj_op_get(relation.op)->takes & OJ_TAKES_K) != 0) ==
                          oj_relation_sorts_by_measure(&relation),
                      "%s: oj_relation_sorts_by_measure() and the table differ",
                      oj_op_get(relation.op)->name);
    }
}

static const struct oj_parameter *parameter_of(const char *name)
{
    const struct oj_parameter *parameter = oj_parameter_at(0);
    for (int i = 0; parameter != NULL && strcmp(parameter->name, name) != 0;)
        parameter = oj_parameter_at(++i);
    return parameter;
}

/* The value of a choice is the position of its word. The words "a|b" must be in
 * the order of the enum. */
TEST(unit_choices_are_in_the_order_of_their_enums)
{
    static const struct
    {
        const char *name, *word;
        int value;
    } choices[] = {
        {"metric", "planar", OJ_METRIC_PLANAR},
        {"metric", "sphere", OJ_METRIC_SPHERE},
        {"metric", "ellipsoid", OJ_METRIC_ELLIPSOID},
        {"ties", "first", OJ_TIES_FIRST},
        {"ties", "all", OJ_TIES_ALL},
        {"distance_to", "interior", OJ_TO_INTERIOR},
        {"distance_to", "boundary", OJ_TO_BOUNDARY},
        {"distance", "least", OJ_DISTANCE_LEAST},
        {"distance", "hausdorff", OJ_DISTANCE_HAUSDORFF},
        {"distance", "directed_hausdorff", OJ_DISTANCE_DIRECTED_HAUSDORFF},
        {"distance", "hausdorff_points", OJ_DISTANCE_HAUSDORFF_POINTS},
        {"distance", "frechet", OJ_DISTANCE_FRECHET},
    };
    struct oj_error err;
    size_t n = 0;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    {
        const struct oj_parameter *p = parameter_of(choices[i].name);
        int value = -1;
        ck_assert_ptr_nonnull(p);
        ck_assert_int_eq(p->kind, OJ_PARAMETER_CHOICE);
        ck_assert_int_eq(oj_choice_read("-", p->name, p->arguments,
                                        choices[i].word, &value, &err),
                         OJ_OK);
        ck_assert_int_eq(value, choices[i].value);
    }
    for (int i = 0; oj_parameter_at(i) != NULL; i++)
    {
        const struct oj_parameter *p = oj_parameter_at(i);
        const char *at = p->arguments;
        for (; p->kind == OJ_PARAMETER_CHOICE && at != NULL;
             at = strchr(at + 1, '|'))
            n++;
    }
    ck_assert_msg(n == sizeof choices / sizeof *choices,
                  "the parameters have %d choices, this test %d", (int)n,
                  (int)(sizeof choices / sizeof *choices));
}

/* Each parameter belongs to joins that exist, and its words are filled. */
TEST(unit_every_parameter_is_filled)
{
    for (int i = 0; oj_parameter_at(i) != NULL; i++)
    {
        const struct oj_parameter *p = oj_parameter_at(i);
        char ops[200], *rest = ops;
        ck_assert(p->name != NULL && p->arguments != NULL && p->help != NULL);
        ck_assert(p->ops != NULL && strlen(p->ops) < sizeof ops);
        strcpy(ops, p->ops);
        for (const char *op; (op = strsep(&rest, "|")) != NULL;)
            ck_assert_msg(oj_op_find(op) >= 0, "%s belongs to %s, no join",
                          p->name, op);
    }
}

/* A join without a pattern would hold for no matrix. So each join must hold for
 * some matrix. */
TEST(property_joins_by_predicate_hold_for_some_matrices)
{
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        struct oj_relation relation = relation_of((enum oj_op)i);
        const char *name = oj_op_get(relation.op)->name;
        int n_pairs = 0;
        if (!is_decided_by_matrix(relation.op))
            continue;
        for (int n = 0; n < N_MATRICES; n++)
        {
            struct oj_matrix matrix = matrix_number(n);
            int holds = oj_matrix_satisfies_relation(&matrix, &relation);
            n_pairs += holds;
            ck_assert_msg(!holds || have_contact(&matrix) ||
                              !oj_relation_needs_contact(&relation),
                          "%s holds for %s: oj_relation_needs_contact() would "
                          "lose that pair",
                          name, matrix.at);
        }
        ck_assert_msg(n_pairs > 0 && n_pairs < N_MATRICES,
                      "%s holds for %d of %d matrices", name, n_pairs,
                      N_MATRICES);
    }
}

TEST(property_exchanged_joins_hold_for_exchanged_matrices)
{
    for (int i = 0; i < OJ_N_OPS; i++)
    {
        struct oj_relation relation = relation_of((enum oj_op)i);
        struct oj_relation other = oj_relation_transpose(&relation);
        if (!is_decided_by_matrix(relation.op))
            continue;
        for (int n = 0; n < N_MATRICES; n++)
        {
            struct oj_matrix matrix = matrix_number(n);
            struct oj_matrix exchanged = matrix_transpose(&matrix);
            ck_assert_msg(oj_matrix_satisfies_relation(&matrix, &relation) ==
                              oj_matrix_satisfies_relation(&exchanged, &other),
                          "%s: its exchanged join differs for %s",
                          oj_op_get(relation.op)->name, matrix.at);
        }
    }
}

int main(void)
{
    tests_open("relation");
    return tests_run();
}
