/* Several threads record the positions of lists, in any order of the rows.
 * Every row then has its own list, and rows that were left out have none.
 * Kind: unit, memory. */
#include "../../../algs/joins/dwithin/cpu_scattered_list_offsets.h"

#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

#include "../random_numbers.h"
#include "../run_tests.h"

static struct oj_error error;

/* Records the lists of all rows but left_out, on n_threads threads in random
 * order. */
static void record_lists(struct oj_scattered_offsets *offsets, int64_t *offset,
                         int64_t n_rows, int n_threads, int left_out)
{
    int64_t stride = 7919, at = 0;
    while (n_rows > 0 && n_rows % stride == 0)
        stride += 2;
    ck_assert_int_eq(
        oj_scattered_offsets_begin(offsets, offset, n_rows, n_threads, &error),
        OJ_OK);
    for (int64_t i = 0; i < n_rows; i++)
    {
        at = (at + stride) % n_rows;
        if (left_out > 0 && at % left_out == 0)
            continue;
        oj_scattered_offsets_record(offsets, pick(n_threads), at, 3 * at + 1,
                                    at % 5);
    }
    oj_scattered_offsets_write_all(offsets);
}

static void check_lists(const int64_t *offset, int64_t n_rows, int left_out)
{
    for (int64_t row = 0; row < n_rows; row++)
    {
        int is_left_out = left_out > 0 && row % left_out == 0;
        int64_t first = is_left_out ? 0 : 3 * row + 1;
        int64_t end = is_left_out ? 0 : first + row % 5;
        expect(offset[2 * row] == first && offset[2 * row + 1] == end,
               "row %d: from %d to %d", (int)row, (int)offset[2 * row],
               (int)offset[2 * row + 1]);
    }
}

TEST_LOOP(unit_every_row, 0, 3)
{
    static const int64_t n_rows[] = {0, 1, 7, 16383, 16384, 16385, 200003};
    struct oj_scattered_offsets offsets = {0};
    int n_threads = 1 + _i;
    random_state = 5;
    for (int k = 0; k < 14; k++)
    {
        int64_t n = n_rows[k / 2];
        int left_out = k % 2 ? 3 : 0;
        int64_t *offset = oj_malloc(2 * n + 1, sizeof *offset);
        ck_assert_ptr_nonnull(offset);
        memset(offset, 0x55, (size_t)(2 * n + 1) * sizeof *offset);
        record_lists(&offsets, offset, n, n_threads, left_out);
        check_lists(offset, n, left_out);
        ck_assert_int_eq(offset[2 * n], 0x5555555555555555);
        oj_free(offset);
    }
    oj_scattered_offsets_free(&offsets);
}

TEST(memory)
{
    struct oj_scattered_offsets offsets = {0};
    int64_t offset[200];
    oj_status status = OJ_ERR_NOMEM;
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        oj_alloc_fail_at(n);
        status = oj_scattered_offsets_begin(&offsets, offset, 100, 2, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status != OJ_OK && n % 2 == 0) /* works after a failure */
            record_lists(&offsets, offset, 99, 2, 0);
    }
    oj_scattered_offsets_free(&offsets);
}

int main(void)
{
    tests_open("offsets of scattered lists");
    return tests_run();
}
