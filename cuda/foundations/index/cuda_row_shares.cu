#include "cuda_row_shares.cuh"

#include <math.h>

/* Maximum number of rows that are joined at a time. */
static const int64_t most_rows = 1 << 20;

struct shares_batch
{
    struct oj_gpu_index *index;
    int family;
    const struct oj_flat *input;
    struct oj_matches *out;
    struct oj_stats *stats;
};

/* --- shares of the rows --------------------------------------------------- */

oj_status oj_cuda_share_select_tiles(struct oj_cuda_work *work,
                                     const struct oj_cuda_share *share,
                                     int64_t tile, const int32_t **order,
                                     int64_t *n)
{
    const int32_t *from = *order;
    int32_t *to = NULL;
    int64_t tiles = (*n + tile - 1) / tile, number, step, left;
    if (share == NULL || share->n == 1)
        return OJ_OK;
    number = share->number;
    step = share->n;
    left = tiles > number ? ((tiles - 1 - number) / step + 1) * tile : 0;
    if (tiles > 0 && (tiles - 1) % step == number)
        left -= tiles * tile - *n;
    OJ_TRY(work->make(left, &to));
    OJ_TRY(work->each(left,
                      [=] __device__(int64_t i)
                      {
                          int64_t of = i / tile * step + number;
                          to[i] = from[of * tile + i % tile];
                      }));
    work->drop(from);
    *order = to;
    *n = left;
    return OJ_OK;
}

int oj_cuda_share_input_is_join_side(const struct oj_cuda_index *index,
                                     const struct oj_flat *input, int64_t first,
                                     int64_t n)
{
    const struct oj_flat *side = index->layer->flat;
    return first == 0 && n == side->n_features && n == input->n_features &&
           input->x == side->x && input->y == side->y &&
           input->part_offset == side->part_offset &&
           input->ring_offset == side->ring_offset &&
           input->vertex_offset == side->vertex_offset &&
           input->fid == side->fid && input->on_class == side->on_class &&
           input->exclude_class == side->exclude_class &&
           input->max_distance == side->max_distance &&
           input->texts == side->texts && input->n_texts == side->n_texts &&
           input->vectors.value == side->vectors.value &&
           input->vectors.n_dimensions == side->vectors.n_dimensions;
}

oj_status oj_cuda_share_check_pair_limit(const struct oj_cuda_share *share,
                                         int64_t n_pairs, struct oj_error *err)
{
    return oj_pair_budget_check(share->most, share->n_other + n_pairs, err);
}

void oj_cuda_share_move_pairs(struct oj_cuda_work *work, int by_measure,
                              const struct oj_cuda_found *found, int64_t n,
                              struct oj_cuda_share *share)
{
    share->found = *found;
    share->n_pairs = n;
    share->by_measure = by_measure;
    if (found->row == NULL) /* an array could not be allocated */
        return;
    oj_cuda_move_ownership(&work->memory, found->row, share->memory);
    oj_cuda_move_ownership(&work->memory, found->feature, share->memory);
    oj_cuda_move_ownership(&work->memory, found->measure, share->memory);
}

/* --- columns of a side ---------------------------------------------------- */

oj_status oj_cuda_upload_columns(struct oj_cuda_work *work,
                                 const struct oj_flat *flat, int64_t first,
                                 int64_t n, const struct oj_relation *relation,
                                 struct oj_cuda_columns *out)
{
    if (relation->exclude_self || relation->unordered_pairs != 0)
        OJ_TRY(oj_cuda_upload_column(work, flat->fid + first, n, &out->fid));
    if (flat->on_class != NULL)
        OJ_TRY(oj_cuda_upload_column(work, flat->on_class + first, n,
                                     &out->on_class));
    if (flat->exclude_class != NULL)
        OJ_TRY(oj_cuda_upload_column(work, flat->exclude_class + first, n,
                                     &out->exclude_class));
    return OJ_OK;
}

struct oj_pair_rule
oj_cuda_make_pair_rule(const struct oj_relation *relation,
                       const struct oj_cuda_columns *rows,
                       const struct oj_cuda_columns *features)
{
    struct oj_cuda_layer layer = {};
    struct oj_cuda_points points = {};
    layer.columns = *features;
    points.fid = rows->fid;
    points.on_class = rows->on_class;
    points.exclude_class = rows->exclude_class;
    return oj_cuda_family_pair_rule(relation, &layer, &points);
}

/* --- pairs on the device -------------------------------------------------- */

oj_status oj_cuda_find_pair_offsets(struct oj_cuda_work *work,
                                    const uint32_t *by_row, int64_t n,
                                    int64_t n_rows, int64_t base,
                                    int64_t *offset)
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
                          offset[i] = base + low;
                      });
}

oj_status
oj_cuda_keep_first_k_pairs_of_rows(struct oj_cuda_work *work, int64_t n_rows,
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
    OJ_TRY(oj_cuda_sort_pairs(&own, n_rows, rank, OJ_CUDA_BY_MEASURE_THEN_RANK,
                              found, n, &place, &by_row));
    OJ_TRY(oj_cuda_find_pair_offsets(&own, by_row, n, n_rows, 0, offset));
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

/* --- the result of a batch ------------------------------------------------ */

/* Sorted pairs of some consecutive rows. */
struct cuda_row_pairs
{
    int64_t n_rows, n, n_before;
    /* [n_rows + 1] offsets into the result; the first one is n_before. */
    int64_t *offset;
    int32_t *feature;
    double *measure;
};

static oj_status copy_pair_lists_to_host(struct oj_cuda_work *work,
                                         const struct cuda_row_pairs *pairs,
                                         int64_t first, struct oj_matches *out)
{
    int64_t before = pairs->n_before;
    OJ_TRY(oj_cuda_copy_out(
        work->device, work->stream, out->offset + first, pairs->offset,
        pairs->n_rows * (int64_t)sizeof *pairs->offset, work->err));
    OJ_TRY(oj_cuda_copy_out(
        work->device, work->stream, out->join_row + before, pairs->feature,
        pairs->n * (int64_t)sizeof *pairs->feature, work->err));
    return oj_cuda_copy_out(
        work->device, work->stream, out->measure + before, pairs->measure,
        pairs->n * (int64_t)sizeof *pairs->measure, work->err);
}

static oj_status
copy_one_answer_per_row_to_host(struct oj_cuda_work *work,
                                const struct cuda_row_pairs *pairs,
                                int64_t first, struct oj_matches *out)
{
    struct oj_cuda_work own(work);
    const struct cuda_row_pairs p = *pairs;
    int32_t *feature;
    double *measure;
    OJ_TRY(own.make(p.n_rows, &feature));
    OJ_TRY(own.make(p.n_rows, &measure));
    OJ_TRY(own.each(p.n_rows,
                    [=] __device__(int64_t i)
                    {
                        int64_t at = p.offset[i] - p.n_before;
                        int has = p.offset[i + 1] > p.offset[i];
                        feature[i] = has ? p.feature[at] : -1;
                        measure[i] = has ? p.measure[at] : (double)NAN;
                    }));
    OJ_TRY(oj_cuda_copy_out(own.device, own.stream, out->join_row + first,
                            feature, p.n_rows * (int64_t)sizeof *feature,
                            own.err));
    return oj_cuda_copy_out(own.device, own.stream, out->measure + first,
                            measure, p.n_rows * (int64_t)sizeof *measure,
                            own.err);
}

/* Fills the result when the join side is empty. */
static void fill_result_without_pairs(struct oj_matches *out)
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

/* Consecutive rows (a stretch) whose pairs one device sorts. */
struct cuda_row_stretch
{
    int64_t first, end;
    int64_t n_before, n; /* number of pairs of earlier rows, and of these
                            rows */
    int64_t n_matched;
};

/* Replaces *array [n], in the memory of device `ordinal`, by a copy in this
 * device's memory that *work owns. */
template <typename T>
static oj_status copy_array_of_peer(struct oj_cuda_work *work, int ordinal,
                                    int64_t n, T **array)
{
    const T *from = *array;
    OJ_TRY(work->make(n, array));
    return work->check(cudaMemcpyPeerAsync(*array, work->device->ordinal, from,
                                           ordinal, (size_t)n * sizeof(T),
                                           work->stream));
}

/* Appends the pairs of rows first .. end - 1 to `to`; their row numbers then
 * count from `first`. Adds the number of pairs of earlier rows to *n_before. */
static __global__ void
select_pairs_of_rows(const __grid_constant__ struct oj_cuda_found from,
                     int64_t n, int64_t first, int64_t end,
                     const __grid_constant__ struct oj_cuda_found to,
                     unsigned long long *n_before)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int64_t row = i < n ? from.row[i] : end;
    unsigned before = __ballot_sync(~0u, row < first);
    int has_one = row >= first && row < end;
    if (before != 0 && threadIdx.x % 32 == 0)
        atomicAdd(n_before, (unsigned long long)__popc(before));
    oj_cuda_append_found_pairs(to, has_one, (int32_t)(row - first),
                               has_one ? from.feature[i] : 0,
                               has_one ? from.measure[i] : 0.0);
}

/* Gathers the pairs of a stretch from the shares of all devices, whose number
 * of pairs is `all`, and sets stretch->n and stretch->n_before. Row numbers in
 * *out count from stretch->first. */
static oj_status gather_pairs_from_all_devices(
    struct oj_cuda_work *work, const struct shares_batch *b,
    const struct oj_cuda_share *shares, int64_t all,
    struct cuda_row_stretch *stretch, struct oj_cuda_found *out)
{
    int64_t first = stretch->first, end = stretch->end;
    unsigned long long n[2], *counts;
    OJ_TRY(work->allocate_zeros(2, &counts));
    OJ_TRY(work->make(all, &out->row, &out->feature));
    OJ_TRY(work->make(all, &out->measure));
    out->capacity = all;
    out->n = counts;
    for (int i = 0; i < b->index->n_places; i++)
    {
        struct oj_cuda_work own(work);
        struct oj_cuda_found from = shares[i].found;
        int64_t n_pairs = shares[i].n_pairs;
        int ordinal = b->index->place[i].device.ordinal;
        if (n_pairs == 0)
            continue;
        if (ordinal != own.device->ordinal)
        {
            OJ_TRY(copy_array_of_peer(&own, ordinal, n_pairs, &from.row));
            OJ_TRY(copy_array_of_peer(&own, ordinal, n_pairs, &from.feature));
            OJ_TRY(copy_array_of_peer(&own, ordinal, n_pairs, &from.measure));
        }
        OJ_TRY(own.run<256>(n_pairs, select_pairs_of_rows, from, n_pairs, first,
                            end, *out, counts + 1));
    }
    OJ_TRY(work->read(counts, &n));
    stretch->n = (int64_t)n[0];
    stretch->n_before = (int64_t)n[1];
    return OJ_OK;
}

/* Gathers, sorts and copies the pairs of a stretch into the result. */
static oj_status
sort_and_copy_pairs_to_result(const struct shares_batch *b, int place,
                              int64_t first, const struct oj_cuda_share *shares,
                              int64_t all, struct cuda_row_stretch *stretch,
                              struct oj_error *err)
{
    struct oj_cuda_device *device = &b->index->place[place].device;
    struct oj_cuda_work work(device, device->stream, "ordering pairs", err);
    const struct oj_cuda_share *share = &shares[place];
    struct oj_cuda_found found = share->found;
    struct cuda_row_pairs pairs = {};
    const int32_t *at = NULL;
    const uint32_t *by_row = NULL;
    int64_t *matched_before;
    OJ_CUDA_TRY(cudaSetDevice(device->ordinal), "choosing a device", err);
    stretch->n = all;
    if (b->index->n_places > 1)
        OJ_TRY(gather_pairs_from_all_devices(&work, b, shares, all, stretch,
                                             &found));
    pairs.n_rows = stretch->end - stretch->first;
    pairs.n_before = b->out->n_pairs + stretch->n_before;
    pairs.n = stretch->n;
    if (pairs.n > 0)
        OJ_TRY(oj_cuda_sort_pairs(
            &work, pairs.n_rows, b->index->place[place].of[b->family]->rank,
            share->by_measure ? OJ_CUDA_BY_MEASURE_THEN_RANK : OJ_CUDA_BY_RANK,
            found, pairs.n, &at, &by_row));
    OJ_TRY(work.make(pairs.n_rows + 1, &pairs.offset));
    OJ_TRY(work.make(pairs.n, &pairs.feature));
    OJ_TRY(work.make(pairs.n, &pairs.measure));
    OJ_TRY(oj_cuda_find_pair_offsets(&work, by_row, pairs.n, pairs.n_rows,
                                     pairs.n_before, pairs.offset));
    const struct cuda_row_pairs to = pairs;
    OJ_TRY(work.each(pairs.n,
                     [=] __device__(int64_t i)
                     {
                         to.feature[i] = found.feature[at[i]];
                         to.measure[i] = found.measure[at[i]];
                     }));
    OJ_TRY(work.scan_of_computed_values(
        to.n_rows,
        [=] __device__(ptrdiff_t i) {
            return i < to.n_rows ? (int64_t)(to.offset[i + 1] > to.offset[i])
                                 : 0;
        },
        &matched_before, &stretch->n_matched));
    return (b->out->offset != NULL ? copy_pair_lists_to_host
                                   : copy_one_answer_per_row_to_host)(
        &work, &pairs, first + stretch->first, b->out);
}

/* Copies the pairs of n rows into the result: each device copies its stretch of
 * the rows. */
static oj_status
copy_pairs_of_devices_to_result(const struct shares_batch *b, int64_t first,
                                int64_t n, const struct oj_cuda_share *shares,
                                struct oj_error *err)
{
    struct cuda_row_stretch of[OJ_GPU_MAX_DEVICES] = {};
    struct oj_matches *out = b->out;
    int n_places = b->index->n_places;
    int64_t all = 0;
    for (int i = 0; i < n_places; i++)
    {
        of[i].first = n * i / n_places;
        of[i].end = n * (i + 1) / n_places;
        all += shares[i].n_pairs;
    }
    if (all > INT32_MAX)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "%lld pairs are too many to be sorted at once; use "
                       "smaller batches",
                       (long long)all);
    OJ_TRY(oj_cuda_share_check_pair_limit(&shares[0], all, err));
    if (out->offset != NULL)
        OJ_TRY(oj_matches_grow(out, out->n_pairs, out->n_pairs + all, err));
    OJ_TRY(oj_cuda_threads_try_parallel(
        n_places,
        [&](int i, struct oj_error *error)
        {
            return sort_and_copy_pairs_to_result(b, i, first, shares, all,
                                                 &of[i], error);
        },
        err));
    for (int i = 0; i < n_places; i++)
        out->n_matched += of[i].n_matched;
    out->n_pairs += all;
    if (out->offset != NULL)
        out->offset[first + n] = out->n_entries = out->n_pairs;
    return OJ_OK;
}

/* --- rows of a batch ------------------------------------------------------ */

static oj_status find_share_on_device(const struct shares_batch *b, int place,
                                      int64_t first, int64_t n,
                                      struct oj_cuda_share *share,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    struct oj_cuda_place *of = &b->index->place[place];
    oj_status status;
    share->number = place;
    share->n = b->index->n_places;
    share->memory = &of->pairs;
    share->n_other = b->out->n_pairs;
    share->most = oj_most_pairs_of_batch(b->index->options.max_batch_pairs,
                                         b->input->n_features);
    OJ_CUDA_TRY(cudaSetDevice(of->device.ordinal), "choosing a device", err);
    OJ_TRY(oj_check_cancel(of->device.cancel, err));
    status = oj_cuda_family_at(b->family)->find_share(
        of->of[b->family], b->input, first, n, share, stats, err);
    /* waits: other devices read the pairs next, and no copy may outlive the
     * host's arrays */
    OJ_CUDA_TRY(cudaStreamSynchronize(of->device.stream), "joining", err);
    return status;
}

/* Joins rows first .. first + n - 1 on all devices in parallel. */
static oj_status join_rows_on_all_devices(const struct shares_batch *b,
                                          int64_t first, int64_t n,
                                          struct oj_error *err)
{
    struct oj_gpu_index *index = b->index;
    struct oj_stats of[OJ_GPU_MAX_DEVICES] = {}, slowest = {};
    struct oj_cuda_share share[OJ_GPU_MAX_DEVICES] = {};
    oj_status status = oj_cuda_run_on_peers(
        &index->peers, index->n_places,
        [&](int i, struct oj_error *error) {
            return find_share_on_device(b, i, first, n, &share[i], &of[i],
                                        error);
        },
        err);
    if (status == OJ_OK)
        status = copy_pairs_of_devices_to_result(b, first, n, share, err);
    for (int i = 0; i < index->n_places; i++)
    {
        struct oj_cuda_place *place = &index->place[i];
        (void)cudaSetDevice(place->device.ordinal);
        oj_cuda_memory_free_all(&place->device, place->device.stream,
                                &place->pairs);
        if (status == OJ_OK)
            b->stats->n_candidates += of[i].n_candidates;
        if (of[i].filter_s + of[i].refine_s >
            slowest.filter_s + slowest.refine_s)
            slowest = of[i];
    }
    b->stats->filter_s += slowest.filter_s;
    b->stats->refine_s += slowest.refine_s;
    return status;
}

oj_status oj_cuda_join_shares(struct oj_gpu_index *index, int family,
                              const struct oj_flat *input,
                              struct oj_matches *out, struct oj_stats *stats,
                              struct oj_error *err)
{
    struct shares_batch b = {index, family, input, out, stats};
    int64_t n = input->n_features, first = 0, step = most_rows;
    int lists = oj_relation_allows_many_pairs(&index->relation);
    OJ_TRY(oj_matches_reserve(out, n, lists ? 0 : n, lists, err));
    if (lists)
        out->offset[n] = 0;
    if (index->join_side->n_features == 0)
    {
        fill_result_without_pairs(out);
        return OJ_OK;
    }
    if (index->options.gpu_batch > 0 && index->options.gpu_batch < step)
        step = index->options.gpu_batch;
    while (first < n)
    {
        int64_t rows = n - first < step ? n - first : step;
        oj_status status = join_rows_on_all_devices(&b, first, rows, err);
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
