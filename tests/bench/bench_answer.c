#include "bench_answer.h"

#include "nycgen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_SHOWN 10 /* differences printed */

/* Neumaier's sum: what rounding loses is kept beside it. */
static void add_distance(struct bench_answer *answer, double d)
{
    const double sum = answer->sum_distance + d;
    if (answer->sum_distance >= d)
        answer->lost += (answer->sum_distance - sum) + d;
    else
        answer->lost += (d - sum) + answer->sum_distance;
    answer->sum_distance = sum;
}

void bench_answer_add(struct bench_answer *answer,
                      const struct oj_matches *matches, int64_t first_row,
                      const int64_t *id)
{
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        const int64_t end = oj_matches_end(matches, row);
        int64_t i = oj_matches_first(matches, row);
        answer->n_matched += i < end;
        for (; i < end; i++)
        {
            const int32_t joined = matches->join_row[i];
            const double d = matches->measure[i];
            answer->n_pairs++;
            answer->sum_id +=
                id != NULL ? (uint64_t)id[joined] : (uint64_t)joined;
            add_distance(answer, d);
            answer->sum_q1024 += llround(d * 1024);
            answer->checksum +=
                nyc_mix(((uint64_t)(first_row + row) << 32) + (uint64_t)joined);
        }
    }
}

int bench_answer_equal(const struct bench_answer *a,
                       const struct bench_answer *b)
{
    return a->n_matched == b->n_matched && a->n_pairs == b->n_pairs &&
           a->sum_id == b->sum_id && a->sum_q1024 == b->sum_q1024 &&
           a->checksum == b->checksum &&
           memcmp(&a->sum_distance, &b->sum_distance, sizeof(double)) == 0;
}

void bench_answer_print(const struct bench_answer *answer)
{
    printf("ANSWER matched=%" PRId64 " pairs=%" PRId64 " sum_id=%" PRIu64
           " sum_distance=%.6f sum_q1024=%" PRId64 " checksum=%016" PRIx64 "\n",
           answer->n_matched, answer->n_pairs, answer->sum_id,
           answer->sum_distance + answer->lost, answer->sum_q1024,
           answer->checksum);
}

/* Row i of the sample among all rows. */
static int64_t sample_row(const struct bench_sample *sample, int64_t i)
{
    const double step = (double)sample->n / (double)sample->n_rows;
    const int64_t row = (int64_t)((double)i * step);
    return row < sample->n ? row : sample->n - 1;
}

oj_status bench_sample_take(struct bench_sample *sample,
                            const struct oj_matches *matches, int64_t first_row,
                            struct oj_error *err)
{
    if (sample->n_rows > 0 && sample->offset == NULL)
    {
        OJ_TRY(oj_reserve(&sample->offset, 0, sample->n_rows + 1,
                          &sample->cap_offset, sizeof *sample->offset, err));
        sample->offset[0] = 0;
    }
    while (sample->n_done < sample->n_rows)
    {
        const int64_t row = sample_row(sample, sample->n_done) - first_row;
        int64_t first, n, total;
        if (row >= matches->n_rows)
            break;
        first = oj_matches_first(matches, row);
        n = oj_matches_end(matches, row) - first;
        total = sample->n_pairs + n;
        OJ_TRY(oj_reserve(&sample->join_row, sample->n_pairs, total,
                          &sample->cap_join_row, sizeof *sample->join_row,
                          err));
        OJ_TRY(oj_reserve(&sample->measure, sample->n_pairs, total,
                          &sample->cap_measure, sizeof *sample->measure, err));
        if (n > 0)
        {
            memcpy(sample->join_row + sample->n_pairs,
                   matches->join_row + first,
                   (size_t)n * sizeof *sample->join_row);
            memcpy(sample->measure + sample->n_pairs, matches->measure + first,
                   (size_t)n * sizeof *sample->measure);
        }
        sample->n_pairs = total;
        sample->offset[++sample->n_done] = total;
    }
    return OJ_OK;
}

/* 1 when row i of the sample has other pairs or other distances in expected. */
static int row_differs(const struct bench_sample *sample, int64_t i,
                       const struct oj_matches *expected)
{
    const int64_t a = sample->offset[i], n = sample->offset[i + 1] - a;
    const int64_t b = oj_matches_first(expected, i);
    if (oj_matches_end(expected, i) - b != n)
        return 1;
    if (n == 0)
        return 0;
    return memcmp(sample->join_row + a, expected->join_row + b,
                  (size_t)n * sizeof *sample->join_row) != 0 ||
           memcmp(sample->measure + a, expected->measure + b,
                  (size_t)n * sizeof *sample->measure) != 0;
}

static void print_row(const struct bench_sample *sample, int64_t i,
                      const struct oj_matches *expected)
{
    const int64_t a = sample->offset[i], b = oj_matches_first(expected, i);
    printf("DIFFERENT row=%" PRId64, sample_row(sample, i));
    if (sample->offset[i + 1] > a)
        printf(" joined=%" PRId32 " distance=%.17g", sample->join_row[a],
               sample->measure[a]);
    else
        printf(" joined=none");
    if (oj_matches_end(expected, i) > b)
        printf(" geos_joined=%" PRId32 " geos_distance=%.17g\n",
               expected->join_row[b], expected->measure[b]);
    else
        printf(" geos_joined=none\n");
}

static int64_t compare(const struct bench_sample *sample,
                       const struct oj_matches *expected)
{
    int64_t n_different = 0, undecided = 0;
    for (int64_t i = 0; i < sample->n_rows; i++)
    {
        if (undecided < expected->n_undecided &&
            expected->undecided[undecided] == i)
        {
            undecided++;
            continue;
        }
        if (!row_differs(sample, i, expected))
            continue;
        if (++n_different <= N_SHOWN)
            print_row(sample, i, expected);
    }
    printf("CHECK backend=geos rows=%" PRId64 " pairs=%" PRId64
           " different=%" PRId64 " undecided=%" PRId64 "\n",
           sample->n_rows, sample->n_pairs, n_different, undecided);
    return n_different;
}

oj_status bench_sample_check(const struct bench_sample *sample,
                             const struct oj_flat *input,
                             const struct oj_flat *join_side,
                             const struct oj_relation *relation,
                             int64_t *n_different, struct oj_error *err)
{
    struct oj_flat_buf rows = {0};
    struct oj_matches expected = {0};
    struct oj_join *join = NULL;
    oj_status status = OJ_OK;
    for (int64_t i = 0; status == OJ_OK && i < sample->n_rows; i++)
    {
        const int64_t row = sample_row(sample, i);
        status = oj_flat_buf_add_point(&rows, row, input->x[row], input->y[row],
                                       err);
    }
    if (status == OJ_OK)
        status = oj_join_open(join_side, relation, "geos", NULL, &join, err);
    if (status == OJ_OK)
    {
        const struct oj_flat view = oj_flat_buf_view(&rows);
        status = oj_join_batch(join, &view, &expected, err);
    }
    if (status == OJ_OK)
        *n_different = compare(sample, &expected);
    oj_join_close(join);
    oj_matches_free(&expected);
    oj_flat_buf_free(&rows);
    return status;
}

void bench_sample_free(struct bench_sample *sample)
{
    oj_free(sample->offset);
    oj_free(sample->join_row);
    oj_free(sample->measure);
    memset(sample, 0, sizeof *sample);
}
