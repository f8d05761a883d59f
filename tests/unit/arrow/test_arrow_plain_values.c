/* Times of Arrow become microseconds. A time that does not fit is an error that
 * names the time as the column has it. A list is written if its own offsets are
 * valid, and only then.
 * Kind: unit. */
#include "../../../algs/api/arrow/oj_arrow_plain_values.h"
#include "../run_tests.h"

#include <string.h>

static const struct
{
    const char *format;
    int64_t time, microseconds;
} times[] = {
    {"tss:", 3, 3000000},
    {"tss:", -9223372036854, INT64_C(-9223372036854000000)},
    {"tsm:UTC", 9223372036854775, INT64_C(9223372036854775000)},
    {"tsu:", INT64_MAX, INT64_MAX},
    {"tsn:", -1, -1},
};

static const struct
{
    const char *format;
    int64_t time;
    const char *message;
} too_large[] = {
    {"tss:", 9223372036855, "the time 9223372036855 (Arrow format \"tss:\")"},
    {"tsm:UTC", INT64_MIN,
     "the time -9223372036854775808 (Arrow format \"tsm:UTC\")"},
};

static oj_status read_time(const char *format, int64_t time,
                           struct oj_plain_value *out, struct oj_error *err)
{
    const void *buffers[] = {NULL, &time};
    const struct ArrowArray array = {
        .length = 1, .n_buffers = 2, .buffers = buffers};
    const struct ArrowSchema schema = {.format = format, .name = "when"};
    return oj_arrow_time_as_microseconds(&schema, &array, 0, out, err);
}

TEST_LOOP(times_that_fit, 0, (int)(sizeof times / sizeof *times))
{
    struct oj_plain_value value;
    struct oj_error err;
    ck_assert_int_eq(read_time(times[_i].format, times[_i].time, &value, &err),
                     OJ_OK);
    ck_assert_int_eq(value.form, OJ_PLAIN_INTEGER);
    ck_assert_int_eq(value.integer, times[_i].microseconds);
}

TEST_LOOP(times_too_large, 0, (int)(sizeof too_large / sizeof *too_large))
{
    struct oj_plain_value value;
    struct oj_error err;
    ck_assert_int_eq(
        read_time(too_large[_i].format, too_large[_i].time, &value, &err),
        OJ_ERR_DATA);
    ck_assert_ptr_nonnull(strstr(err.message, too_large[_i].message));
    ck_assert_ptr_nonnull(strstr(err.message, "column \"when\""));
    ck_assert_ptr_nonnull(strstr(err.message, "set it to NULL"));
}

/* Lists of four integers by offsets with 32 bits: {10, 11}, one beyond the
 * integers, one that ends before it begins, {13}, one that begins before the
 * integers, and one that ends there. */
TEST(lists_by_their_own_offsets)
{
    static const char *const texts[] = {"(2:10,11)", NULL, NULL,
                                        "(1:13)",    NULL, NULL};
    static const int32_t offset[] = {0, 2, 9, 3, 4, -1, 0};
    static const int32_t integer[] = {10, 11, 12, 13};
    const void *integer_buffers[] = {NULL, integer};
    const void *list_buffers[] = {NULL, offset};
    struct ArrowArray integers = {
        .length = 4, .n_buffers = 2, .buffers = integer_buffers};
    struct ArrowArray *children[] = {&integers};
    struct ArrowSchema of_integers = {.format = "i", .name = "item"};
    struct ArrowSchema *schemas[] = {&of_integers};
    const struct ArrowSchema schema = {
        .format = "+l", .name = "l", .n_children = 1, .children = schemas};
    const struct ArrowArray array = {.length = 6,
                                     .n_buffers = 2,
                                     .n_children = 1,
                                     .buffers = list_buffers,
                                     .children = children};
    struct oj_plain_list list = {0};
    for (int row = 0; row < 6; row++)
    {
        struct oj_error err = {0};
        int is_there;
        oj_status status =
            oj_arrow_write_list(&schema, &array, row, &list, &is_there, &err);
        if (texts[row] == NULL)
        {
            ck_assert_int_eq(status, OJ_ERR_DATA);
            ck_assert_ptr_nonnull(strstr(err.message, "offsets"));
            continue;
        }
        ck_assert_int_eq(status, OJ_OK);
        ck_assert_int_eq(is_there, 1);
        ck_assert_int_eq(list.n, (int64_t)strlen(texts[row]));
        ck_assert_mem_eq(list.text, texts[row], strlen(texts[row]));
    }
    oj_plain_list_free(&list);
}

int main(void)
{
    tests_open("arrow_plain_values");
    return tests_run();
}
