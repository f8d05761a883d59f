/* Values kept for aggregates are returned in sorted order. They come from
 * memory, and from any number of sorted runs in files.
 * Kind: unit, large, degenerate. */
#include "../../../algs/foundations/aggregate/oj_value_external_sort.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../random_numbers.h"
#include "../run_tests.h"

static int n_open;

static int open_file(void *user)
{
    char path[] = "/tmp/test_held_values-XXXXXX";
    int file = mkstemp(path);
    (void)user;
    if (file >= 0)
        unlink(path);
    n_open++;
    return file;
}

static const struct oj_value_sort_files files = {open_file, NULL};

static void must(oj_status status)
{
    ck_assert_int_eq(status, OJ_OK);
}

/* Very many sorted runs in one file. */
TEST(large_many_runs)
{
    struct oj_value_sort *held;
    int64_t n = 0, last = -1;
    uint64_t sum = 0;
    n_open = 0;
    must(oj_value_sort_open(OJ_VALUE_SORT_BY_PLACE, &files, &held, NULL));
    random_state = 5;
    for (int i = 0; i < 20000; i++)
    {
        char text[40];
        struct oj_value_sort_value value = {0};
        value.row = pick(3);
        value.fid = pick(1000);
        value.place = i;
        value.bytes = text;
        value.n_bytes =
            sprintf(text, "%.*s%d", pick(20), "abcdefghijklmnopqrst", i);
        must(oj_value_sort_add(held, &value, NULL));
        if (i % 4 == 3)
            must(oj_value_sort_spill(held, NULL));
    }
    must(oj_value_sort_rewind(held, NULL));
    ck_assert_int_eq(n_open, 1);
    while (oj_value_sort_peek(held) != NULL)
    {
        const struct oj_value_sort_value *v = oj_value_sort_peek(held);
        int64_t key = (v->row * 1000 + v->fid) * 20000 + v->place;
        char text[40];
        expect(key > last, "order");
        sprintf(text, "%.*s", (int)v->n_bytes, v->bytes);
        expect(atoi(text + strcspn(text, "0123456789")) == v->place,
               "text of %d", (int)v->place);
        last = key;
        sum += (uint64_t)v->place;
        n++;
        must(oj_value_sort_skip(held, NULL));
    }
    ck_assert_int_eq(n, 20000);
    ck_assert(sum == 19999u * 10000u);
    oj_value_sort_close(held);
}

/* A value is longer than every buffer. */
TEST(large_values)
{
    static char text[300000];
    struct oj_value_sort *held;
    must(oj_value_sort_open(OJ_VALUE_SORT_BY_BYTES, &files, &held, NULL));
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 9; i++)
    {
        const struct oj_value_sort_value value = {
            1, 0, 0, 0, text, (int64_t)sizeof text - i};
        must(oj_value_sort_add(held, &value, NULL));
        must(oj_value_sort_spill(held, NULL));
    }
    must(oj_value_sort_rewind(held, NULL));
    for (int i = 8; i >= 0; i--)
    {
        const struct oj_value_sort_value *value = oj_value_sort_peek(held);
        ck_assert_int_eq(value->n_bytes, (int64_t)sizeof text - i);
        ck_assert(memcmp(value->bytes, text, sizeof text - 9) == 0);
        must(oj_value_sort_skip(held, NULL));
    }
    ck_assert_ptr_null(oj_value_sort_peek(held));
    oj_value_sort_close(held);
}

/* Orders of values for which quicksort is slow. */
TEST(degenerate_orders)
{
    for (int kind = 0; kind < 4; kind++)
    {
        struct oj_value_sort *held;
        uint64_t last = 0;
        int n = 100000;
        must(oj_value_sort_open(OJ_VALUE_SORT_BY_NUMBER, NULL, &held, NULL));
        for (int i = 0; i < n; i++)
        {
            struct oj_value_sort_value value = {0};
            value.number = kind == 0   ? 7u
                           : kind == 1 ? (uint64_t)i
                           : kind == 2 ? (uint64_t)(n - i)
                                       : (uint64_t)(i < n / 2 ? i : n - i);
            must(oj_value_sort_add(held, &value, NULL));
        }
        must(oj_value_sort_rewind(held, NULL));
        for (int i = 0; i < n; i++)
        {
            expect(oj_value_sort_peek(held)->number >= last, "order %d", kind);
            last = oj_value_sort_peek(held)->number;
            must(oj_value_sort_skip(held, NULL));
        }
        ck_assert_ptr_null(oj_value_sort_peek(held));
        oj_value_sort_close(held);
    }
}

int main(void)
{
    tests_open("held values");
    return tests_run();
}
