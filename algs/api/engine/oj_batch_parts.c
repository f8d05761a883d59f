#include "oj_batch_parts.h"

#include "../../../flatten/base/oj_alloc.h"

#include <math.h>
#include <string.h>

/* Minimum number of rows that one sample represents (a stretch).
 * LEAST_SPARSE_STRETCH is used if earlier parts had so few pairs that the whole
 * batch probably fits. */
#define LEAST_STRETCH 128
#define LEAST_SPARSE_STRETCH 256

/* Batches that would have fewer samples than this are not sampled. */
#define LEAST_SAMPLES 4

/* Without earlier parts and samples, the first part has the rows of the batch
 * divided by this. */
#define FIRST_PART 16

/* Number of samples, before and after, that also influence the prediction for a
 * stretch of rows. A single sample is not reliable if rows with and without
 * pairs are mixed. */
#define NEIGHBOURS 4

/* Copies of the sampled rows, as a layer of their own. */
struct oj_sampled_rows
{
    struct oj_flat_buf buf;
    int64_t row[OJ_MOST_SAMPLED_ROWS];
    double max_distance[OJ_MOST_SAMPLED_ROWS];
    double heading[OJ_MOST_SAMPLED_ROWS];
    int32_t on_class[OJ_MOST_SAMPLED_ROWS];
    int32_t exclude_class[OJ_MOST_SAMPLED_ROWS];
    int64_t from[OJ_MOST_SPANS][OJ_MOST_SAMPLED_ROWS];
    int64_t until[OJ_MOST_SPANS][OJ_MOST_SAMPLED_ROWS];
};

void oj_batch_parts_free(struct oj_batch_parts *parts)
{
    if (parts->rows != NULL)
        oj_flat_buf_free(&parts->rows->buf);
    oj_free(parts->rows);
    parts->rows = NULL;
}

/* --- samples -------------------------------------------------------------- */

/* Returns the row that represents stretch i of the batch. It is chosen
 * pseudo-randomly, because rows may repeat periodically. */
static int64_t choose_sample_row_of_stretch(int64_t i, int64_t stretch,
                                            int64_t n_rows)
{
    uint64_t mixed = (uint64_t)(i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    int64_t first = i * stretch;
    int64_t n = n_rows - first < stretch ? n_rows - first : stretch;
    return first + (int64_t)((mixed >> 33) % (uint64_t)n);
}

/* Returns 1 if sampled rows can be copied. Batches with texts or vectors are
 * not sampled, because these columns are not copied. */
static int can_copy_rows(const struct oj_flat *batch)
{
    return batch->n_texts == 0 && batch->vectors.value == NULL &&
           batch->overlaps == NULL;
}

static oj_status copy_sampled_rows(const struct oj_flat *batch, int64_t n,
                                   struct oj_sampled_rows *rows,
                                   struct oj_flat *out, struct oj_error *err)
{
    oj_flat_buf_clear(&rows->buf);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t row = rows->row[i];
        OJ_TRY(oj_flat_buf_copy(&rows->buf, batch, row,
                                batch->fid != NULL ? batch->fid[row] : row,
                                err));
        if (batch->max_distance != NULL)
            rows->max_distance[i] = batch->max_distance[row];
        if (batch->heading != NULL)
            rows->heading[i] = batch->heading[row];
        if (batch->on_class != NULL)
            rows->on_class[i] = batch->on_class[row];
        if (batch->exclude_class != NULL)
            rows->exclude_class[i] = batch->exclude_class[row];
        for (int s = 0; s < batch->n_spans; s++)
        {
            rows->from[s][i] = batch->spans[s].from[row];
            rows->until[s][i] = batch->spans[s].until[row];
        }
    }
    *out = oj_flat_buf_view(&rows->buf);
    out->part_kinds = batch->part_kinds;
    if (batch->fid == NULL)
        out->fid = NULL;
    if (batch->max_distance != NULL)
        out->max_distance = rows->max_distance;
    if (batch->heading != NULL)
        out->heading = rows->heading;
    if (batch->on_class != NULL)
        out->on_class = rows->on_class;
    if (batch->exclude_class != NULL)
        out->exclude_class = rows->exclude_class;
    out->n_spans = batch->n_spans;
    for (int s = 0; s < batch->n_spans; s++)
        out->spans[s] = (struct oj_spans){rows->from[s], rows->until[s]};
    return OJ_OK;
}

/* Returns the number of pairs of sampled row i. An i beyond either end stands
 * for the first or the last sample. */
static double count_sampled_pairs(const struct oj_matches *found, int64_t i)
{
    i = i < 0 ? 0 : i < found->n_rows ? i : found->n_rows - 1;
    return (double)(oj_matches_end(found, i) - oj_matches_first(found, i));
}

/* Returns the predicted number of pairs per row of stretch i: the maximum of
 * three numbers: pairs of its sample; mean of the neighbouring samples; minimum
 * of the next two samples on either side, because a dense area may start or end
 * within the stretch. */
static double predict_pairs_per_row_of_stretch(const struct oj_matches *found,
                                               int64_t i)
{
    double rate = count_sampled_pairs(found, i), mean = 0.0;
    for (int64_t k = i - NEIGHBOURS; k <= i + NEIGHBOURS; k++)
        mean += count_sampled_pairs(found, k) / (2 * NEIGHBOURS + 1);
    rate = fmax(rate, mean);
    for (int64_t side = -1; side <= 1; side += 2)
        rate = fmax(rate, fmin(count_sampled_pairs(found, i + side),
                               count_sampled_pairs(found, i + 2 * side)));
    return rate;
}

static void learn_from_sample(struct oj_batch_parts *parts,
                              const struct oj_matches *found)
{
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < parts->n_samples; i++)
    {
        double n_pairs = count_sampled_pairs(found, i);
        sum += n_pairs;
        squares += n_pairs * n_pairs;
        parts->rate[i] = predict_pairs_per_row_of_stretch(found, i);
    }
    parts->more = 1.0;
    /* the mean plus twice an upper bound of its standard error (of squares
     * about 0, not about the mean), because a sample can miss rows with many
     * pairs if such rows are few */
    parts->pairs_per_row =
        fmax(parts->pairs_per_row,
             (sum + 2.0 * sqrt(squares)) / (double)parts->n_samples);
}

/* Samples the batch: joins one row of each of n_samples stretches of rows. If
 * these have too many pairs, retries with an eighth of the samples while that
 * is more than one. parts->n_samples stays 0 if the last retry has too many
 * pairs, too, or if no sampled row has a geometry. */
static oj_status sample_batch(struct oj_batch_parts *parts,
                              const struct oj_flat *batch, int64_t n_samples,
                              struct oj_matches *out, struct oj_error *err)
{
    oj_status status;
    if (parts->rows == NULL)
        OJ_NEW_ZEROED(parts->rows, 1, err);
    do
    {
        struct oj_flat rows;
        parts->stretch = (batch->n_features + n_samples - 1) / n_samples;
        n_samples = (batch->n_features + parts->stretch - 1) / parts->stretch;
        for (int64_t i = 0; i < n_samples; i++)
            parts->rows->row[i] = choose_sample_row_of_stretch(
                i, parts->stretch, batch->n_features);
        OJ_TRY(copy_sampled_rows(batch, n_samples, parts->rows, &rows, err));
        if (oj_flat_is_points(&rows) != oj_flat_is_points(batch))
            return OJ_OK; /* no sampled row has a geometry */
        status = parts->sample(parts->user, &rows, out, err);
        if (status == OJ_OK)
        {
            parts->n_samples = n_samples;
            parts->n_pairs_again += out->n_pairs;
            learn_from_sample(parts, out);
        }
        if (status == OJ_ERR_TOO_MANY_PAIRS)
            parts->n_pairs_again += parts->max_pairs;
        n_samples = (n_samples + 7) / 8;
    } while (status == OJ_ERR_TOO_MANY_PAIRS && n_samples > 1);
    return status == OJ_ERR_TOO_MANY_PAIRS ? OJ_OK : status;
}

static int64_t count_rows_to_sample(const struct oj_batch_parts *parts,
                                    int64_t n_rows)
{
    int is_sparse =
        parts->n_joined > 0 &&
        parts->pairs_per_row * (double)n_rows < (double)parts->max_pairs / 4.0;
    int64_t n = n_rows / (is_sparse ? LEAST_SPARSE_STRETCH : LEAST_STRETCH);
    return n < OJ_MOST_SAMPLED_ROWS ? n : OJ_MOST_SAMPLED_ROWS;
}

/* Returns the number of rows for the next part that is safe because a row has
 * at most most_per_row pairs, or 0 if there is no such maximum. The `left`
 * remaining rows are divided into equal parts. */
static int64_t
count_rows_surely_within_limit(const struct oj_batch_parts *parts, int64_t left)
{
    int64_t most, n_parts;
    if (parts->max_pairs == 0 || parts->most_per_row == 0)
        return 0;
    most = parts->max_pairs / parts->most_per_row;
    most = most < 1 ? 1 : most;
    n_parts = (left + most - 1) / most;
    return n_parts > 0 ? (left + n_parts - 1) / n_parts : 0;
}

static oj_status sample_batch_if_needed(struct oj_batch_parts *parts,
                                        const struct oj_flat *batch,
                                        struct oj_matches *out,
                                        struct oj_error *err)
{
    int64_t n_samples = count_rows_to_sample(parts, batch->n_features);
    parts->n_samples = 0;
    if (parts->sample == NULL || parts->max_pairs == 0 ||
        n_samples < LEAST_SAMPLES || !can_copy_rows(batch) ||
        count_rows_surely_within_limit(parts, batch->n_features) ==
            batch->n_features)
        return OJ_OK;
    return sample_batch(parts, batch, n_samples, out, err);
}

/* --- prediction ----------------------------------------------------------- */

/* Returns how many of the rows first .. end - 1 have at most `most` predicted
 * pairs in total; *predicted is this total. */
static int64_t
count_rows_up_to_predicted_pairs(const struct oj_batch_parts *parts,
                                 int64_t first, int64_t end, double most,
                                 double *predicted)
{
    int64_t row = first;
    *predicted = 0.0;
    while (row < end)
    {
        int64_t i = row / parts->stretch, stop = (i + 1) * parts->stretch;
        double rate = fmax(parts->rate[i] * parts->more, parts->pairs_per_row);
        double pairs;
        stop = stop < end ? stop : end;
        pairs = rate * (double)(stop - row);
        if (*predicted + pairs > most)
        {
            int64_t n = (int64_t)((most - *predicted) / rate);
            *predicted += rate * (double)n;
            return row + n - first;
        }
        *predicted += pairs;
        row = stop;
    }
    return row - first;
}

/* Returns the predicted number of rows for the next part; `left` rows of the
 * batch are not joined yet. */
static int64_t predict_rows_of_next_part(const struct oj_batch_parts *parts,
                                         int64_t first, int64_t left)
{
    double most = (double)parts->max_pairs / 2.0, predicted;
    int64_t n = left;
    if (parts->max_pairs > 0 && parts->n_samples > 0)
        n = count_rows_up_to_predicted_pairs(parts, first, first + left, most,
                                             &predicted);
    else if (parts->max_pairs > 0 && parts->n_joined == 0 &&
             parts->most_rows == 0 && parts->sample != NULL)
        n = (left + FIRST_PART - 1) / FIRST_PART;
    else if (parts->max_pairs > 0 &&
             parts->pairs_per_row * (double)left > 1.5 * most)
        n = (int64_t)(most / parts->pairs_per_row);
    if (n < count_rows_surely_within_limit(parts, left))
        n = count_rows_surely_within_limit(parts, left);
    if (parts->most_rows > 0 && n > parts->most_rows)
        n = parts->most_rows;
    return n < 1 ? 1 : n;
}

/* Returns the previous estimate of pairs per row, reduced after n more rows.
 * The more pairs the n rows were expected to have, the more it is reduced: to a
 * quarter if they were expected to have half of the allowed pairs or more. */
static double decay_pairs_per_row(const struct oj_batch_parts *parts, int64_t n)
{
    double expected = parts->pairs_per_row * (double)n;
    double half = (double)parts->max_pairs / 2.0;
    return parts->pairs_per_row *
           (expected < half ? pow(0.25, expected / half) : 0.25);
}

static void learn_from_joined_part(struct oj_batch_parts *parts, int64_t first,
                                   int64_t n, int64_t n_pairs)
{
    double rate = (double)n_pairs / (double)n, predicted = 0.0;
    if (parts->n_samples > 0)
        (void)count_rows_up_to_predicted_pairs(parts, first, first + n,
                                               INFINITY, &predicted);
    parts->pairs_per_row = fmax(rate, decay_pairs_per_row(parts, n));
    parts->n_joined++;
    /* a part with too many pairs has set this limit: relax it slowly */
    if (parts->most_rows > 0 && parts->most_rows < INT64_MAX / 2)
        parts->most_rows += (parts->most_rows + 3) / 4;
    if (predicted > 0.0)
        parts->more =
            fmin(fmax(parts->more * (double)n_pairs / predicted, 1.0), 4.0);
}

static void learn_from_part_over_limit(struct oj_batch_parts *parts, int64_t n)
{
    parts->n_pairs_again += parts->max_pairs;
    parts->most_rows = (n + 1) / 2;
    parts->pairs_per_row =
        fmax(parts->pairs_per_row, (double)parts->max_pairs / (double)n);
    parts->more *= 2.0;
}

/* --- parts ---------------------------------------------------------------- */

oj_status oj_batch_parts_join(struct oj_batch_parts *parts,
                              const struct oj_flat *batch, int64_t first,
                              struct oj_flat_slice *slice, oj_rows_join join,
                              void *user, struct oj_matches *out, int64_t *n,
                              struct oj_error *err)
{
    int64_t left = batch->n_features - first;
    if (first == 0)
        OJ_TRY(sample_batch_if_needed(parts, batch, out, err));
    for (;;)
    {
        const struct oj_flat *rows = batch;
        oj_status status;
        *n = predict_rows_of_next_part(parts, first, left);
        if (*n < batch->n_features)
        {
            OJ_TRY(oj_flat_slice_make(batch, first, *n, slice, err));
            rows = &slice->flat;
        }
        status = join(user, rows, out, err);
        if (status == OJ_OK)
            learn_from_joined_part(parts, first, *n, out->n_pairs);
        if (status != OJ_ERR_TOO_MANY_PAIRS || *n == 1)
            return status;
        learn_from_part_over_limit(parts, *n);
    }
}
