/* Fills columns of every supported type with random values and reads them back.
 * Rows are discarded and written again. Also tests limits, unsupported types
 * and failing allocations.
 * Kinds: unit, property, memory. */
#include "../../../algs/api/arrow/oj_arrow_column.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../random_numbers.h"
#include "../run_tests.h"

#include <stdio.h>

enum
{
    MOST_ROWS = 300,
    MOST_BYTES = 20
};

static struct oj_error err;

static void must(oj_status status)
{
    ck_assert_msg(status == OJ_OK, "%s", err.message);
}

static const struct
{
    const char *format;
    /* bytes of a value; 0: values are bits; negative: bytes of an offset */
    int size;
} cases[] = {{"b", 0},    {"c", 1},  {"S", 2},  {"s", 2},      {"i", 4},
             {"l", 8},    {"f", 4},  {"g", 8},  {"tdD", 4},    {"ttm", 4},
             {"tsm:", 8}, {"u", -4}, {"Z", -8}, {"tsm:UTC", 8}};

#define N_CASES (int)(sizeof cases / sizeof *cases)

/* The value that was stored in a row. */
struct row_value
{
    int is_null;
    int64_t integer;
    int n; /* bytes */
    char bytes[MOST_BYTES];
};

static void put_value(struct oj_arrow_column *column, int i, int64_t row,
                      const struct row_value *value)
{
    char *to;
    if (value->is_null)
        must(oj_arrow_column_put_null(column, row, &err));
    else if (cases[i].size < 0)
    {
        must(oj_arrow_column_put_bytes(column, row, value->n, &to, &err));
        ck_assert_ptr_nonnull(to);
        memcpy(to, value->bytes, (size_t)value->n);
    }
    else if (cases[i].format[0] == 'f' || cases[i].format[0] == 'g')
        must(oj_arrow_column_put_real(column, row, (double)value->integer,
                                      &err));
    else
        must(oj_arrow_column_put_integer(column, row, value->integer, &err));
}

static struct row_value make_value(int nulls)
{
    struct row_value value = {.is_null = pick(100) < nulls,
                              .integer = pick(2),
                              .n = pick(MOST_BYTES)};
    for (int i = 0; i < value.n; i++)
        value.bytes[i] = (char)('a' + pick(26));
    if (pick(2))
        value.integer = pick(120);
    return value;
}

static int64_t read_integer(const struct ArrowArray *array, int i, int64_t row)
{
    const void *values = array->buffers[1];
    if (cases[i].format[0] == 'f')
        return (int64_t)((const float *)values)[row];
    if (cases[i].format[0] == 'g')
        return (int64_t)((const double *)values)[row];
    switch (cases[i].size)
    {
        case 0:
            return arrow_bit(values, row);
        case 1:
            return ((const int8_t *)values)[row];
        case 2:
            return ((const int16_t *)values)[row];
        case 4:
            return ((const int32_t *)values)[row];
        default:
            return ((const int64_t *)values)[row];
    }
}

static void expect_value(const struct ArrowArray *array, int i, int64_t row,
                         const struct row_value *value, int is_nullable)
{
    const int is_bytes = cases[i].size < 0;
    const int n = value->is_null ? 0 : value->n;
    int64_t integer = value->is_null ? 0 : value->integer;
    ck_assert_int_eq(arrow_bit(arrow_validity(array), row),
                     !value->is_null || !is_nullable);
    if (is_bytes)
    {
        const int is_large = cases[i].size == -8;
        int64_t first = arrow_offset_at(array->buffers[1], is_large, row);
        ck_assert_int_eq(
            arrow_offset_at(array->buffers[1], is_large, row + 1) - first, n);
        ck_assert_int_eq(memcmp((const char *)array->buffers[2] + first,
                                value->bytes, (size_t)n),
                         0);
        return;
    }
    if (cases[i].size == 0)
        integer = integer != 0;
    ck_assert_int_eq(read_integer(array, i, row), integer);
}

/* Fills a column of type i, discards some rows and writes them again. Makes an
 * array of the column twice. n_expected is the expected number of rows, given
 * to the column. */
static void fill_and_read(int i, int is_nullable, int nulls, int n_expected)
{
    const struct ArrowSchema schema = {
        .format = cases[i].format,
        .flags = is_nullable ? ARROW_FLAG_NULLABLE : 0};
    struct oj_arrow_column column;
    struct ArrowArray array;
    static struct row_value values[MOST_ROWS];
    must(oj_arrow_column_open(&schema, n_expected, &column, &err));
    for (int round = 0; round < 2; round++)
    {
        int n = pick(MOST_ROWS), n_nulls = 0;
        for (int row = 0; row < n; row++)
        {
            values[row] = make_value(nulls);
            put_value(&column, i, row, &values[row]);
            if (pick(20) == 0) /* discards up to eight rows */
                row -= pick(row < 8 ? row + 1 : 8);
        }
        must(oj_arrow_column_finish(&column, n, &array, &err));
        ck_assert_int_eq(array.length, n);
        for (int row = 0; row < n; row++)
        {
            n_nulls += values[row].is_null && is_nullable;
            expect_value(&array, i, row, &values[row], is_nullable);
        }
        ck_assert_int_eq(array.null_count, n_nulls);
        ck_assert_int_eq(array.buffers[0] != NULL, n_nulls > 0);
        ck_assert_ptr_nonnull(array.buffers[1]);
        oj_arrow_array_release(&array);
    }
    oj_arrow_column_free(&column);
}

TEST_LOOP(values, 0, N_CASES)
{
    random_state = (uint64_t)_i + 1;
    for (int round = 0; round < 200; round++)
        fill_and_read(_i, pick(4) > 0, pick(3) * 30, pick(2) * pick(400));
}

/* A list of texts: the rows of the item column are the elements of the lists.
 */
TEST(lists)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct oj_arrow_column column;
    const int32_t *offset;
    int64_t first;
    char *to;
    must(oj_arrow_schema_make("+l", "c", NULL, ARROW_FLAG_NULLABLE, 1, &schema,
                              &err));
    must(oj_arrow_schema_make("u", "item", NULL, 0, 0, schema.children[0],
                              &err));
    must(oj_arrow_column_open(&schema, 0, &column, &err));
    for (int row = 0; row < 10; row++)
    {
        if (row == 3)
        {
            must(oj_arrow_column_put_null(&column, row, &err));
            continue;
        }
        must(oj_arrow_column_put_list(&column, row, row, &first, &err));
        for (int k = 0; k < row; k++)
        {
            must(oj_arrow_column_put_bytes(column.item, first + k, 1, &to,
                                           &err));
            *to = (char)('a' + k);
        }
    }
    must(oj_arrow_column_finish(&column, 10, &array, &err));
    offset = array.buffers[1];
    ck_assert_int_eq(array.null_count, 1);
    ck_assert_int_eq(offset[4], 3);
    ck_assert_int_eq(offset[10], 42);
    ck_assert_int_eq(array.children[0]->length, 42);
    ck_assert_int_eq(array.children[0]->null_count, 0);
    ck_assert_int_eq(memcmp(array.children[0]->buffers[2], "aababcd", 3), 0);
    oj_arrow_array_release(&array);
    must(oj_arrow_column_put_null(&column, 0, &err)); /* only NULLs */
    must(oj_arrow_column_finish(&column, 1, &array, &err));
    ck_assert_int_eq(array.children[0]->length, 0);
    ck_assert_ptr_nonnull(array.children[0]->buffers[1]);
    ck_assert_ptr_nonnull(array.children[0]->buffers[2]);
    oj_arrow_array_release(&array);
    oj_arrow_column_free(&column);
    oj_arrow_schema_release(&schema);
}

/* A value beyond the limit of bytes is not stored. A shorter one can still
 * be. */
TEST(limits)
{
    struct oj_arrow_column column;
    struct ArrowArray array;
    int64_t first;
    char *to;
    must(oj_arrow_column_open_format("u", 0, &column, &err));
    ck_assert_int_eq(column.limit, INT32_MAX);
    column.limit = 10;
    must(oj_arrow_column_put_bytes(&column, 0, 6, &to, &err));
    memcpy(to, "sixsix", 6);
    must(oj_arrow_column_put_bytes(&column, 1, 5, &to, &err));
    ck_assert_ptr_null(to);
    must(oj_arrow_column_put_bytes(&column, 1, 4, &to, &err));
    memcpy(to, "four", 4);
    must(oj_arrow_column_put_bytes(&column, 2, 0, &to, &err));
    ck_assert_ptr_nonnull(to);
    must(oj_arrow_column_finish(&column, 3, &array, &err));
    ck_assert_int_eq(memcmp(array.buffers[2], "sixsixfour", 10), 0);
    oj_arrow_array_release(&array);
    must(oj_arrow_column_put_list(&column, 0, 11, &first, &err));
    ck_assert_int_eq(first, -1);
    oj_arrow_column_free(&column);
    must(oj_arrow_column_open_format("U", 0, &column, &err));
    ck_assert_int_eq(column.limit, INT64_MAX);
    oj_arrow_column_free(&column);
}

TEST(types_that_are_not_built)
{
    static const char *const formats[] = {"n",   "vu",   "d:10,2", "w:3",
                                          "+s",  "+r",   "+w:2",   "tin",
                                          "+vl", "+ud:", "x"};
    struct oj_arrow_column column;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    {
        ck_assert_int_eq(
            oj_arrow_column_open_format(formats[i], 0, &column, &err),
            OJ_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(err.message, formats[i]));
    }
}

static oj_status build_small(int i, struct ArrowArray *out)
{
    struct oj_arrow_column column;
    oj_status status =
        oj_arrow_column_open_format(cases[i].format, 0, &column, &err);
    char *to;
    for (int row = 0; row < 40 && status == OJ_OK; row++)
    {
        if (row % 7 == 6)
            status = oj_arrow_column_put_null(&column, row, &err);
        else if (cases[i].size >= 0)
            status = oj_arrow_column_put_integer(&column, row, row, &err);
        else
        {
            status = oj_arrow_column_put_bytes(&column, row, 3, &to, &err);
            if (status == OJ_OK)
                memcpy(to, "abc", 3);
        }
    }
    if (status == OJ_OK)
        status = oj_arrow_column_finish(&column, 40, out, &err);
    oj_arrow_column_free(&column);
    return status;
}

TEST_LOOP(failing_allocations, 0, N_CASES)
{
    for (int64_t n = 1;; n++)
    {
        struct ArrowArray array = {.release = NULL};
        oj_status status;
        (void)oj_alloc_fail_at(n);
        status = build_small(_i, &array);
        (void)oj_alloc_fail_at(0);
        oj_arrow_array_release(&array);
        if (status == OJ_OK)
            break;
        ck_assert_int_eq(status, OJ_ERR_NOMEM);
    }
}

int main(void)
{
    tests_open("arrow_column");
    return tests_run();
}
