#include "cuda_row_shares.cuh"

#include "../../flatten/base/oj_array.h"

#include <math.h>
#include <string.h>

#include <utility>

enum
{
    LEAST_ROWS = 2048, /* of a part that is one of several */
    MOST_ROWS = 1 << 20,
    /* More parts balance the devices better, but rows of fewer have less in
     * common with their neighbours, which is what tiles of rows live on. */
    PARTS_OF_PLACE = 2
};

struct parts_batch
{
    struct oj_gpu_index *index;
    int family;
    const struct oj_flat *input;
    oj_cuda_part_finder *find;
    int64_t n_parts, part_rows;
    struct oj_cuda_part *part; /* [n_parts] */
    int64_t next, n_pairs;     /* changed atomically */
};

oj_status oj_cuda_part_fits(const struct oj_cuda_part *part, int64_t n_pairs,
                            struct oj_error *err)
{
    int64_t n = __atomic_load_n(part->n_all, __ATOMIC_RELAXED) + n_pairs;
    if (part->most > 0 && n > part->most)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    return OJ_OK;
}

oj_status oj_cuda_part_room(struct oj_cuda_part *part, int64_t n_rows,
                            int64_t n_pairs, struct oj_error *err)
{
    int64_t pairs = part->n_pairs + n_pairs, rows = part->n_rows + n_rows;
    OJ_TRY(oj_cuda_part_fits(part, n_pairs, err));
    OJ_ROOM(part->offset, part->n_rows + 1, rows + 1, part->cap_offset, err);
    OJ_ROOM(part->row, part->n_pairs, pairs, part->cap_row, err);
    OJ_ROOM(part->measure, part->n_pairs, pairs, part->cap_measure, err);
    part->offset[part->n_rows] = part->n_pairs;
    part->n_rows = rows;
    part->n_pairs = pairs;
    (void)__atomic_add_fetch(part->n_all, n_pairs, __ATOMIC_RELAXED);
    return OJ_OK;
}

/* --- what a side brings ----------------------------------------------------
 */

oj_status oj_cuda_put_columns(struct oj_cuda_work *work,
                              const struct oj_flat *flat, int64_t first,
                              int64_t n, const struct oj_relation *relation,
                              struct oj_cuda_columns *out)
{
    if (relation->exclude_self || relation->unordered_pairs != 0)
        OJ_TRY(oj_cuda_put(work, flat->fid + first, n, &out->fid));
    if (flat->on_class != NULL)
        OJ_TRY(oj_cuda_put(work, flat->on_class + first, n, &out->on_class));
    if (flat->exclude_class != NULL)
        OJ_TRY(oj_cuda_put(work, flat->exclude_class + first, n,
                           &out->exclude_class));
    return OJ_OK;
}

struct oj_pair_rule oj_cuda_rule_of(const struct oj_relation *relation,
                                    const struct oj_cuda_columns *rows,
                                    const struct oj_cuda_columns *features)
{
    struct oj_cuda_layer layer = {};
    struct oj_cuda_points points = {};
    layer.columns = *features;
    points.fid = rows->fid;
    points.on_class = rows->on_class;
    points.exclude_class = rows->exclude_class;
    return oj_cuda_pair_rule(relation, &layer, &points);
}

/* --- pairs on the device -------------------------------------------------- */

/* In the order of the numbers. */
static __device__ unsigned long long sortable_double_bits(double measure)
{
    unsigned long long bits = (unsigned long long)__double_as_longlong(measure);
    return bits >> 63 != 0 ? ~bits : bits | 1ull << 63;
}

/* place [n]: where the pairs are, in their order; by_row: the rows of these. */
static oj_status order_pairs(struct oj_cuda_work *work, int64_t n_rows,
                             const int32_t *rank, int by_measure,
                             const struct oj_cuda_found &pairs, int64_t n,
                             const int32_t **out, const uint32_t **by_row)
{
    struct oj_cuda_found found = pairs;
    int row_bits = 1;
    int32_t *place = NULL;
    unsigned long long *key;
    uint32_t *row;
    while (n_rows >> row_bits != 0)
        row_bits++;
    OJ_TRY(work->order_by<uint32_t>(
        n, 31,
        [=] __device__(int64_t i)
        {
            int32_t f = found.feature[i];
            return (uint32_t)(rank != NULL ? rank[f] : f);
        },
        &place));
    const int32_t *at = place;
    if (by_measure)
    {
        OJ_TRY(work->make(n, &key));
        unsigned long long *to = key;
        OJ_TRY(work->each(
            n, [=] __device__(int64_t i)
            { to[i] = sortable_double_bits(found.measure[at[i]]); }));
        OJ_TRY(work->sort(n, 64, &key, &place));
        work->drop(key);
        at = place;
    }
    OJ_TRY(work->make(n, &row));
    uint32_t *to = row;
    OJ_TRY(work->each(n, [=] __device__(int64_t i)
                      { to[i] = (uint32_t)found.row[at[i]]; }));
    OJ_TRY(work->sort(n, row_bits, &row, &place));
    *out = place;
    *by_row = row;
    return OJ_OK;
}

/* Places of the rows' first pairs among those in order. */
static oj_status find_offsets(struct oj_cuda_work *work, const uint32_t *by_row,
                              int64_t n, int64_t n_rows, int64_t *offset)
{
    return work->each(n_rows + 1,
                      [=] __device__(int64_t i)
                      {
                          int64_t low = 0, high = n;
                          while (low < high)
                          {
                              int64_t middle = (low + high) / 2;
                              if ((int64_t)by_row[middle] < i)
                                  low = middle + 1;
                              else
                                  high = middle;
                          }
                          offset[i] = low;
                      });
}

oj_status oj_cuda_keep_best(struct oj_cuda_work *work, int64_t n_rows,
                            const int32_t *rank, int64_t k, int is_last,
                            const struct oj_cuda_found *pairs, int64_t n,
                            struct oj_cuda_found *kept, uint8_t *done)
{
    const struct oj_cuda_found found = *pairs, to = *kept;
    struct oj_cuda_work own(work);
    int64_t *offset;
    const int32_t *place;
    const uint32_t *by_row;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(own.make(n_rows + 1, &offset));
    OJ_TRY(order_pairs(&own, n_rows, rank, 1, found, n, &place, &by_row));
    OJ_TRY(find_offsets(&own, by_row, n, n_rows, offset));
    return own.each(n,
                    [=] __device__(int64_t i)
                    {
                        int64_t row = by_row[i], first = offset[row];
                        unsigned long long at;
                        if (i - first >= k ||
                            (!is_last && offset[row + 1] - first < k))
                            return;
                        at = atomicAdd(to.n, 1ull);
                        to.row[at] = (int32_t)row;
                        to.feature[at] = found.feature[place[i]];
                        to.measure[at] = found.measure[place[i]];
                        done[row] = 1;
                    });
}

oj_status oj_cuda_part_add(struct oj_cuda_work *work, int64_t n_rows,
                           const int32_t *rank, int by_measure,
                           const struct oj_cuda_found *pairs, int64_t n,
                           struct oj_cuda_part *part)
{
    struct oj_cuda_found found = *pairs;
    struct oj_cuda_work own(work);
    int64_t row = part->n_rows, first = part->n_pairs, *offset;
    const int32_t *place = NULL;
    const uint32_t *by_row = NULL;
    int32_t *feature;
    double *measure;
    if (n > 0)
        OJ_TRY(order_pairs(&own, n_rows, rank, by_measure, found, n, &place,
                           &by_row));
    OJ_TRY(own.make(n_rows + 1, &offset));
    OJ_TRY(own.make(n, &feature));
    OJ_TRY(own.make(n, &measure));
    OJ_TRY(find_offsets(&own, by_row, n, n_rows, offset));
    OJ_TRY(own.each(n,
                    [=] __device__(int64_t i)
                    {
                        feature[i] = found.feature[place[i]];
                        measure[i] = found.measure[place[i]];
                    }));
    OJ_TRY(oj_cuda_part_room(part, n_rows, n, own.err));
    OJ_TRY(oj_cuda_copy_out(own.device, own.stream, part->offset + row, offset,
                            (n_rows + 1) * (int64_t)sizeof *offset, own.err));
    for (int64_t i = 0; i <= n_rows; i++)
        part->offset[row + i] += first;
    if (n == 0)
        return OJ_OK;
    OJ_TRY(oj_cuda_copy_out(own.device, own.stream, part->row + first, feature,
                            n * (int64_t)sizeof *feature, own.err));
    return oj_cuda_copy_out(own.device, own.stream, part->measure + first,
                            measure, n * (int64_t)sizeof *measure, own.err);
}

/* --- rows of a batch ------------------------------------------------------ */

/* All rows of a part, by runs that fit into memory. */
static oj_status find_pairs_of_part(const struct parts_batch *b,
                                    const struct oj_cuda_index *index,
                                    int64_t number, struct oj_stats *stats,
                                    struct oj_error *err)
{
    int64_t first = number * b->part_rows, n = b->input->n_features;
    int64_t end = n - first < b->part_rows ? n : first + b->part_rows;
    int64_t step = b->part_rows;
    while (first < end)
    {
        int64_t rows = end - first < step ? end - first : step;
        oj_status status;
        OJ_TRY(oj_check_cancel(index->device->cancel, err));
        status =
            b->find(index, b->input, first, rows, &b->part[number], stats, err);
        if (status == OJ_ERR_NOMEM && rows > 1)
        {
            step = (rows + 1) / 2;
            continue;
        }
        OJ_TRY(status);
        first += rows;
    }
    return OJ_OK;
}

static oj_status run_parts_on_device(struct parts_batch *b, int place,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    const struct oj_cuda_place *of = &b->index->place[place];
    OJ_CUDA_TRY(cudaSetDevice(of->device.ordinal), "choosing a device", err);
    for (;;)
    {
        int64_t number = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
        oj_status status;
        if (number >= b->n_parts)
            return OJ_OK;
        status = find_pairs_of_part(b, of->of[b->family], number, stats, err);
        if (status == OJ_OK)
            continue;
        /* nobody goes on, and nothing on its way outlives the host's arrays */
        __atomic_store_n(&b->next, b->n_parts, __ATOMIC_RELAXED);
        (void)cudaStreamSynchronize(of->device.stream);
        (void)cudaGetLastError();
        return status;
    }
}

/* The first part has the memory of lists of out meanwhile, so that its pairs
 * need not be copied. */
static void swap_result_memory(struct oj_cuda_part *part,
                               struct oj_matches *out)
{
    std::swap(part->row, out->join_row);
    std::swap(part->cap_row, out->cap_join_row);
    std::swap(part->measure, out->measure);
    std::swap(part->cap_measure, out->cap_measure);
}

static void put_lists(const struct oj_cuda_part *part, struct oj_matches *out)
{
    int64_t at = part->first_pair;
    size_t n = (size_t)part->n_pairs;
    for (int64_t i = 0; i < part->n_rows; i++)
        out->offset[part->first_row + i] = at + part->offset[i];
    if (part->row != NULL)
    {
        memcpy(out->join_row + at, part->row, n * sizeof *part->row);
        memcpy(out->measure + at, part->measure, n * sizeof *part->measure);
    }
}

static void put_single_answers(const struct oj_cuda_part *part,
                               struct oj_matches *out)
{
    for (int64_t i = 0; i < part->n_rows; i++)
    {
        int64_t at = part->offset[i], row = part->first_row + i;
        int has = part->offset[i + 1] > at;
        out->join_row[row] = has ? part->row[at] : -1;
        out->measure[row] = has ? part->measure[at] : (double)NAN;
    }
}

/* Rows without a join side. */
static void put_no_matches(struct oj_matches *out)
{
    for (int64_t i = 0; i < out->n_rows; i++)
    {
        if (out->offset != NULL)
            out->offset[i] = 0;
        else
        {
            out->join_row[i] = -1;
            out->measure[i] = (double)NAN;
        }
    }
}

/* Room for all, where the pairs of the first part are already. */
static oj_status reserve_result_rows(const struct parts_batch *b,
                                     struct oj_matches *out,
                                     struct oj_error *err)
{
    int64_t n = b->input->n_features;
    int lists = oj_relation_gives_lists(&b->index->relation);
    OJ_TRY(oj_matches_reserve(out, n, lists ? 0 : n, lists, err));
    if (!lists || b->n_parts == 0)
        return OJ_OK;
    OJ_TRY(oj_matches_grow(out, b->part[0].n_pairs, b->n_pairs, err));
    out->n_entries = b->n_pairs;
    return OJ_OK;
}

struct putting
{
    const struct parts_batch *b;
    struct oj_matches *out;
};

static void put_part(int i, void *user)
{
    const struct putting *p = (const struct putting *)user;
    struct oj_cuda_part *part = &p->b->part[i];
    if (p->out->offset != NULL)
        put_lists(part, p->out);
    else
        put_single_answers(part, p->out);
    for (int64_t row = 0; row < part->n_rows; row++)
        part->n_matched += part->offset[row + 1] > part->offset[row];
}

static oj_status assemble_result(const struct parts_batch *b,
                                 struct oj_matches *out, struct oj_error *err)
{
    struct putting p = {b, out};
    int64_t row = 0, at = 0;
    OJ_TRY(reserve_result_rows(b, out, err));
    if (b->n_parts == 0)
        put_no_matches(out);
    for (int64_t i = 0; i < b->n_parts; i++)
    {
        b->part[i].first_row = row;
        b->part[i].first_pair = at;
        row += b->part[i].n_rows;
        at += b->part[i].n_pairs;
    }
    oj_cuda_side_by_side((int)b->n_parts, put_part, &p);
    if (out->offset != NULL)
        out->offset[b->input->n_features] = at;
    out->n_pairs = at;
    for (int64_t i = 0; i < b->n_parts; i++)
        out->n_matched += b->part[i].n_matched;
    return OJ_OK;
}

static oj_status run_parts(struct parts_batch *b, struct oj_stats *stats,
                           struct oj_error *err)
{
    const struct oj_gpu_index *index = b->index;
    struct oj_stats of[OJ_GPU_MAX_DEVICES] = {};
    for (int64_t p = 0; p < b->n_parts; p++)
    {
        b->part[p].most =
            b->input->n_features > 1 ? index->options.max_batch_pairs : 0;
        b->part[p].n_all = &b->n_pairs;
    }
    OJ_TRY(oj_cuda_try_side_by_side(
        index->n_places,
        [&](int i, struct oj_error *error)
        { return run_parts_on_device(b, i, &of[i], error); },
        err));
    for (int i = 0; i < index->n_places; i++)
        stats->n_candidates += of[i].n_candidates;
    return OJ_OK;
}

static int64_t rows_of_part(const struct oj_gpu_index *index, int64_t n)
{
    int64_t rows = n;
    if (index->n_places > 1)
        rows = n / (index->n_places * PARTS_OF_PLACE) + 1;
    if (rows < LEAST_ROWS)
        rows = LEAST_ROWS;
    if (rows > MOST_ROWS)
        rows = MOST_ROWS;
    if (index->options.gpu_batch > 0 && index->options.gpu_batch < rows)
        rows = index->options.gpu_batch;
    return rows;
}

oj_status oj_cuda_join_parts(struct oj_gpu_index *index, int family,
                             const struct oj_flat *input,
                             struct oj_matches *out, struct oj_stats *stats,
                             struct oj_error *err)
{
    struct parts_batch b = {};
    oj_status status;
    int lends;
    b.index = index;
    b.family = family;
    b.input = input;
    b.find = oj_cuda_family_at(family)->find_part;
    b.part_rows = rows_of_part(index, input->n_features);
    if (index->join_side->n_features > 0)
        b.n_parts = (input->n_features + b.part_rows - 1) / b.part_rows;
    b.part = (struct oj_cuda_part *)oj_calloc(b.n_parts + 1, sizeof *b.part);
    if (b.part == NULL)
        return oj_fail_nomem(err, b.n_parts + 1, sizeof *b.part);
    lends = b.n_parts > 0 && oj_relation_gives_lists(&index->relation);
    if (lends)
        swap_result_memory(&b.part[0], out);
    status = run_parts(&b, stats, err);
    if (lends)
        swap_result_memory(&b.part[0], out);
    if (status == OJ_OK)
        status = assemble_result(&b, out, err);
    for (int64_t p = 0; p < b.n_parts; p++)
    {
        oj_free(b.part[p].offset);
        oj_free(b.part[p].row);
        oj_free(b.part[p].measure);
    }
    oj_free(b.part);
    return status;
}
