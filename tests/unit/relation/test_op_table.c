/* Kind: unit. What is decided by the name of a join, because the CUDA module
 * does not have the table of joins, is what the table says. */
#include "../run_tests.h"

#include "../../../algs/relation/oj_relation.h"

TEST(joins_that_take_k_sort_by_measure)
{
    int n_sorted = 0;
    for (int op = 0; op < OJ_N_OPS; op++)
    {
        const struct oj_op_info *info = oj_op_get((enum oj_op)op);
        struct oj_relation relation = oj_relation_default();
        int takes_k = (info->takes & (unsigned)OJ_TAKES_K) != 0;
        relation.op = (enum oj_op)op;
        ck_assert_msg(oj_relation_sorts_by_measure(&relation) == takes_k,
                      "-op %s: OJ_TAKES_K is %d in the table, and "
                      "oj_relation_sorts_by_measure() says %d",
                      info->name, takes_k, !takes_k);
        ck_assert_int_eq(takes_k, info->k > 0);
        n_sorted += takes_k;
    }
    ck_assert_int_ge(n_sorted, 2);
}

int main(void)
{
    tests_open("op_table");
    return tests_run();
}
