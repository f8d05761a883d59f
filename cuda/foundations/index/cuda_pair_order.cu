#include "cuda_pair_order.cuh"

#include "../device/cuda_offset_search.cuh"

/* Returns the sort key of pair place[i], or of pair i if place is NULL: the
 * rank of its feature. */
struct key_of_rank
{
    struct oj_cuda_found pairs;
    const int32_t *rank, *place;

    __device__ uint32_t operator()(int64_t i) const
    {
        int32_t feature = pairs.feature[place != NULL ? place[i] : i];
        return (uint32_t)(rank != NULL ? rank[feature] : feature);
    }
};

struct key_of_measure
{
    struct oj_cuda_found pairs;
    const int32_t *place;

    __device__ uint64_t operator()(int64_t i) const
    {
        double measure = pairs.measure[place != NULL ? place[i] : i];
        uint64_t bits = (uint64_t)__double_as_longlong(measure);
        return bits >> 63 != 0 ? ~bits : bits | (uint64_t)1 << 63;
    }
};

oj_status oj_cuda_sort_pairs(struct oj_cuda_work *work, int64_t n_rows,
                             const int32_t *rank, enum oj_cuda_pair_order order,
                             const struct oj_cuda_found &pairs, int64_t n,
                             const int32_t **out, const uint32_t **by_row)
{
    const struct oj_cuda_found found = pairs;
    int row_bits = 1;
    int32_t *place = NULL;
    uint32_t *row;
    while (n_rows >> row_bits != 0)
        row_bits++;
    if (order == OJ_CUDA_BY_RANK_THEN_MEASURE)
    {
        OJ_TRY(work->order_by<uint64_t>(n, 64, key_of_measure{found, NULL},
                                        &place));
        OJ_TRY(work->reorder_by<uint32_t>(
            n, 31, key_of_rank{found, rank, place}, &place, NULL));
    }
    else
        OJ_TRY(work->order_by<uint32_t>(n, 31, key_of_rank{found, rank, NULL},
                                        &place));
    if (order == OJ_CUDA_BY_MEASURE_THEN_RANK)
        OJ_TRY(work->reorder_by<uint64_t>(n, 64, key_of_measure{found, place},
                                          &place, NULL));
    const int32_t *at = place;
    OJ_TRY(work->reorder_by<uint32_t>(
        n, row_bits,
        [=] __device__(int64_t i) { return (uint32_t)found.row[at[i]]; },
        &place, &row));
    *out = place;
    *by_row = row;
    return OJ_OK;
}

/* Returns the index, in the arrays of `lists`, of an entry. Entries are
 * numbered through all lists: those of list i are offset[i] .. offset[i + 1] -
 * 1, and `list` is the one that holds `entry`. */
static __device__ int64_t
index_of_numbered_entry(const struct oj_cuda_row_lists &lists,
                        const int64_t *offset, int64_t list, int64_t entry)
{
    return lists.first[list] + entry - offset[list];
}

oj_status oj_cuda_sort_row_lists(struct oj_cuda_work *work,
                                 const struct oj_cuda_row_lists *lists,
                                 enum oj_cuda_pair_order order,
                                 const int32_t *ordinal_of)
{
    struct oj_cuda_work own(work);
    const struct oj_cuda_row_lists l = *lists;
    struct oj_cuda_found copy = {};
    int64_t *offset, n;
    const int32_t *place;
    const uint32_t *list;
    OJ_TRY(own.scan_of_computed_values(
        l.n,
        [=] __device__(ptrdiff_t i)
        { return i < l.n ? l.end[i] - l.first[i] : 0; },
        &offset, &n));
    if (n > INT32_MAX)
        return oj_fail(work->err, OJ_ERR_NOMEM,
                       "%lld pairs are too many to be sorted at once; use "
                       "smaller batches",
                       (long long)n);
    OJ_TRY(own.make(n, &copy.row, &copy.feature));
    if (l.measure != NULL)
        OJ_TRY(own.make(n, &copy.measure));
    const struct oj_cuda_found from = copy;
    OJ_TRY(own.each(n,
                    [=] __device__(int64_t i)
                    {
                        int64_t of =
                            oj_cuda_list_of_entry(offset, (int64_t)0, l.n, i);
                        int64_t at = index_of_numbered_entry(l, offset, of, i);
                        from.row[i] = (int32_t)of;
                        from.feature[i] = l.rank[at];
                        if (l.measure != NULL)
                            from.measure[i] = l.measure[at];
                    }));
    OJ_TRY(oj_cuda_sort_pairs(&own, l.n, NULL, order, copy, n, &place, &list));
    return own.each(n,
                    [=] __device__(int64_t i)
                    {
                        int64_t at =
                            index_of_numbered_entry(l, offset, list[i], i);
                        int32_t rank = from.feature[place[i]];
                        l.rank[at] =
                            ordinal_of != NULL ? ordinal_of[rank] : rank;
                        if (l.measure != NULL)
                            l.measure[at] = from.measure[place[i]];
                    });
}
