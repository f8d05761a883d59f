#include "bench_answer.h"

#include "../../algs/references/validation/oj_validation.h"
#include "bench_data.h"
#include "nycgen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Adds d to a compensated sum (Neumaier). What rounding loses is added up in
 * answer->lost.
 */
static void add_distance(struct bench_answer *answer, double d)
{
    const double sum = answer->sum_distance + d;
    if (answer->sum_distance >= d)
        answer->lost += (answer->sum_distance - sum) + d;
    else
        answer->lost += (d - sum) + answer->sum_distance;
    answer->sum_distance = sum;
}

static uint64_t id_of(const struct oj_flat *flat, int64_t feature)
{
    return (uint64_t)(flat->fid != NULL ? flat->fid[feature] : feature);
}

void bench_answer_add(struct bench_answer *answer,
                      const struct oj_matches *matches, int64_t first_row,
                      const struct oj_flat *input,
                      const struct oj_flat *join_side)
{
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        const int64_t end = oj_matches_end(matches, row);
        int64_t i = oj_matches_first(matches, row);
        const uint64_t input_id = id_of(input, first_row + row);
        answer->n_matched += i < end;
        for (; i < end; i++)
        {
            const int32_t joined = matches->join_row[i];
            const double d = matches->measure[i];
            const uint64_t join_id = id_of(join_side, joined);
            answer->n_pairs++;
            answer->sum_id += join_id;
            answer->sum_ids += input_id + join_id;
            if (!isnan(d))
            {
                uint64_t bits;
                memcpy(&bits, &d, sizeof bits);
                answer->distances +=
                    nyc_mix(bits + (uint64_t)(first_row + row));
                add_distance(answer, d);
                answer->sum_q1024 += llround(d * 1024);
            }
            answer->checksum +=
                nyc_mix(((uint64_t)(first_row + row) << 32) + (uint64_t)joined);
        }
    }
}

int bench_answer_equal(const struct bench_answer *a,
                       const struct bench_answer *b)
{
    return a->n_matched == b->n_matched && a->n_pairs == b->n_pairs &&
           a->sum_id == b->sum_id && a->sum_ids == b->sum_ids &&
           a->sum_q1024 == b->sum_q1024 && a->checksum == b->checksum &&
           a->distances == b->distances &&
           memcmp(&a->sum_distance, &b->sum_distance, sizeof(double)) == 0;
}

void bench_answer_print(const struct bench_answer *answer)
{
    printf("ANSWER matched=%" PRId64 " pairs=%" PRId64 " sum_id=%" PRIu64
           " sum_ids=%" PRIu64 " sum_distance=%.6f sum_q1024=%" PRId64
           " checksum=%016" PRIx64 " distances=%016" PRIx64 "\n",
           answer->n_matched, answer->n_pairs, answer->sum_id, answer->sum_ids,
           answer->sum_distance + answer->lost, answer->sum_q1024,
           answer->checksum, answer->distances);
}

/* Returns the row of the input that is row i of the sample. */
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

/* Copies the sampled rows to a layer. */
static oj_status copy_rows(const struct bench_sample *sample,
                           const struct oj_flat *input, struct oj_flat_buf *out,
                           struct oj_error *err)
{
    for (int64_t i = 0; i < sample->n_rows; i++)
    {
        const int64_t row = sample_row(sample, i);
        OJ_TRY(bench_copy_feature(out, input, row, (int64_t)id_of(input, row),
                                  0.0, err));
    }
    return OJ_OK;
}

/* Prints one pair of a difference: "joined=12 distance=3.5". */
static void print_pair(const char *prefix, int32_t join_row, double distance)
{
    if (join_row < 0)
        printf(" %sjoined=none", prefix);
    else
        printf(" %sjoined=%" PRId32 " %sdistance=%.17g", prefix, join_row,
               prefix, distance);
}

static void print_differences(const struct bench_sample *sample,
                              const struct oj_validation *v)
{
    for (int64_t i = 0; i < v->n_first; i++)
    {
        const struct oj_difference *d = &v->first[i];
        if (d->kind < OJ_DIFFERENCE_PROVED)
            printf("DIFFERENT");
        else
            printf("ROUNDED");
        printf(" row=%" PRId64 " kind=%s", sample_row(sample, d->input_row),
               oj_validation_difference_name(d->kind));
        print_pair("", d->join_row_ours, d->measure_ours);
        print_pair("geos_", d->join_row_reference, d->measure_reference);
        printf("\n");
    }
    printf("CHECK backend=geos rows=%" PRId64 " pairs=%" PRId64
           " different=%" PRId64 " undecided=%" PRId64 " rounded=%" PRId64
           " within_ulps=%" PRId64 "\n",
           sample->n_rows, sample->n_pairs, v->n_rows_different, v->n_undecided,
           v->n_rows_proved + v->n_rows_rounding, v->n_within_ulps);
}

static oj_status compare_sample(const struct bench_sample *sample,
                                const struct oj_flat *rows,
                                const struct oj_flat *join_side,
                                const struct oj_relation *relation,
                                struct oj_join *join, int64_t *n_different,
                                struct oj_error *err)
{
    const struct oj_matches ours = {.n_rows = sample->n_rows,
                                    .n_entries = sample->n_pairs,
                                    .n_pairs = sample->n_pairs,
                                    .offset = sample->offset,
                                    .join_row = sample->join_row,
                                    .measure = sample->measure};
    struct oj_validation v = {
        .join_side = join_side, .input = rows, .relation = relation};
    struct oj_matches expected = {0};
    oj_status status = oj_join_batch(join, rows, &expected, err);
    if (status == OJ_OK)
        status = oj_validation_compare(&v, &ours, &expected, err);
    if (status == OJ_OK)
        print_differences(sample, &v);
    *n_different = v.n_rows_different;
    oj_validation_free(&v);
    oj_matches_free(&expected);
    return status;
}

oj_status bench_sample_check(const struct bench_sample *sample,
                             const struct oj_flat *input,
                             const struct oj_flat *join_side,
                             const struct oj_relation *relation,
                             int64_t *n_different, struct oj_error *err)
{
    struct oj_flat_buf rows = {0};
    struct oj_join *join = NULL;
    oj_status status = copy_rows(sample, input, &rows, err);
    if (status == OJ_OK)
        status = oj_join_open(join_side, relation, "geos", NULL, &join, err);
    if (status == OJ_OK)
    {
        const struct oj_flat view = oj_flat_buf_view(&rows);
        status = compare_sample(sample, &view, join_side, relation, join,
                                n_different, err);
    }
    oj_join_close(join);
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
