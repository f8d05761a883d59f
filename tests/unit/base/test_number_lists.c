/* Lists of numbers in texts, as vectors of CSV files are.  Kind: truth cases.
 */
#include "../run_tests.h"

#include "../../../flatten/base/oj_number.h"

#include <math.h>
#include <string.h>

static const struct
{
    const char *text;
    int64_t n;
    double number[4]; /* of which `most` are read */
} lists[] = {
    {"[1, 2.5]", 2, {1, 2.5}},
    {" [ -1e3 ,0 ] ", 2, {-1000, 0}},
    {"[1, 2]\r\n", 2, {1, 2}},
    {"[]", 1, {NAN}},
    {"7", 1, {7}},
    {"", 1, {NAN}},
    {"[1, two, 3]", 3, {1, NAN, 3}},
    {"[1, 2", 2, {1, NAN}},
    {"[1, 2] x", 2, {1, NAN}},
    {"[1, 2][3]", 2, {1, NAN}},
    {"[1, 2, 3, 4, 5, 6]", 4, {1, 2, 3, 4}},
};

TEST_LOOP(a_list_of_numbers, 0, (int)(sizeof lists / sizeof *lists))
{
    double number[4];
    int64_t n = oj_text_numbers(lists[_i].text, (int64_t)strlen(lists[_i].text),
                                4, number);
    ck_assert_int_eq(n, lists[_i].n);
    for (int64_t i = 0; i < n; i++)
    {
        if (isnan(lists[_i].number[i]))
            ck_assert_double_nan(number[i]);
        else
            ck_assert_double_eq(number[i], lists[_i].number[i]);
    }
}

int main(void)
{
    tests_open("number_lists");
    return tests_run();
}
