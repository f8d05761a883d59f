/* Times of Arrow become microseconds. A time that does not fit is an error that
 * names the time as the column has it. Decimals that are compared are not
 * rounded. A list is written if its own offsets are valid, and only then.
 * Kind: unit. */
#include "../../../algs/api/arrow/oj_arrow_plain_values.h"
#include "../run_tests.h"

#include <math.h>
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

/* Decimals of 128 bits, and what they are compared as: an integer (text NULL,
 * real 0), a real, or digits with the double that means them, or NaN. */
static const struct
{
    const char *format;
    uint64_t low, high;
    enum oj_plain_form form;
    int64_t integer;
    double real;
    const char *text;
} decimals[] = {
    {"d:38,0", 7, 0, OJ_PLAIN_INTEGER, 7, 0, NULL},
    {"d:38,2", 0, 0, OJ_PLAIN_INTEGER, 0, 0, NULL},
    {"d:38,30", 0, 0, OJ_PLAIN_INTEGER, 0, 0, NULL},
    {"d:38,2", 150, 0, OJ_PLAIN_REAL, 0, 1.5, NULL},
    {"d:38,2", (uint64_t)-150, UINT64_MAX, OJ_PLAIN_REAL, 0, -1.5, NULL},
    {"d:38,2", (uint64_t)-700, UINT64_MAX, OJ_PLAIN_INTEGER, -7, 0, NULL},
    {"d:38,0", INT64_MAX, 0, OJ_PLAIN_INTEGER, INT64_MAX, 0, NULL},
    {"d:38,0", UINT64_C(1) << 63, UINT64_MAX, OJ_PLAIN_INTEGER, INT64_MIN, 0,
     NULL},
    {"d:38,0", UINT64_MAX, 0, OJ_PLAIN_REAL, -1, 18446744073709551615.0, NULL},
    {"d:38,0", 1, 1, OJ_PLAIN_DECIMAL, 0, (double)NAN, "18446744073709551617"},
    {"d:38,-3", 1, 0, OJ_PLAIN_INTEGER, 1000, 0, NULL},
    /* reals that %.15g writes with an exponent */
    {"d:38,-30", 1, 0, OJ_PLAIN_DECIMAL, 0, 1e30,
     "1000000000000000000000000000000"},
    {"d:38,0", UINT64_C(7766279631452241920), 5, OJ_PLAIN_DECIMAL, 0, 1e20,
     "100000000000000000000"},
    {"d:38,7", 12, 0, OJ_PLAIN_DECIMAL, 0, 1.2e-6, "0.0000012"},
    {"d:38,30", (uint64_t)-5, UINT64_MAX, OJ_PLAIN_DECIMAL, 0, -5e-30,
     "-0.000000000000000000000000000005"},
    {"d:38,4", 1, 0, OJ_PLAIN_REAL, 0, 1e-4, NULL},
    {"d:38,5", 9, 0, OJ_PLAIN_DECIMAL, 0, 9e-5, "0.00009"},
    /* of two neighbours, 16 digits, the double means the first one */
    {"d:38,1", UINT64_C(9007199254740992), 0, OJ_PLAIN_DECIMAL, 0,
     900719925474099.2, "900719925474099.2"},
    {"d:38,1", UINT64_C(9007199254740993), 0, OJ_PLAIN_DECIMAL, 0, (double)NAN,
     "900719925474099.3"},
    {"d:38,2", UINT64_C(90071992547409931), 0, OJ_PLAIN_DECIMAL, 0, (double)NAN,
     "900719925474099.31"},
    {"d:38,20", UINT64_C(1234567890123456789), 0, OJ_PLAIN_DECIMAL, 0,
     (double)NAN, "0.01234567890123456789"},
    {"d:38,400", 1, 0, OJ_PLAIN_DECIMAL, 0, (double)NAN, "1e-400"},
    {"d:38,-400", (uint64_t)-3, UINT64_MAX, OJ_PLAIN_DECIMAL, 0, (double)NAN,
     "-3e400"},
};

TEST_LOOP(decimals_as_they_are_compared, 0,
          (int)(sizeof decimals / sizeof *decimals))
{
    const uint64_t words[] = {decimals[_i].low, decimals[_i].high};
    const void *buffers[] = {NULL, words};
    const struct ArrowArray array = {
        .length = 1, .n_buffers = 2, .buffers = buffers};
    const struct ArrowSchema schema = {.format = decimals[_i].format,
                                       .name = "k"};
    struct oj_arrow_room room;
    struct oj_plain_value value;
    struct oj_error err;
    ck_assert_int_eq(
        oj_arrow_compared_value(&schema, &array, 0, 0, &room, &value, &err),
        OJ_OK);
    ck_assert_int_eq(value.form, decimals[_i].form);
    if (value.form != OJ_PLAIN_DECIMAL)
        ck_assert_int_eq(value.integer, decimals[_i].integer);
    if (isnan(decimals[_i].real))
        ck_assert(isnan(value.real));
    else
        ck_assert(value.real == decimals[_i].real);
    if (decimals[_i].text == NULL)
        return;
    ck_assert_int_eq(value.n, (int64_t)strlen(decimals[_i].text));
    ck_assert_int_eq(memcmp(value.text, decimals[_i].text, (size_t)value.n), 0);
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
