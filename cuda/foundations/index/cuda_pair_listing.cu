#include "cuda_pair_listing.cuh"

#include "../device/cuda_offset_search.cuh"
#include "../device/cuda_stream_work.cuh"
#include "cuda_pair_order.cuh"

/* --- lists ---------------------------------------------------------------- */

void oj_cuda_pairs_free(struct oj_cuda_device *device, cudaStream_t stream,
                        struct oj_cuda_pairs *pairs)
{
    oj_cuda_array_free(device, stream, &pairs->offset, &pairs->row,
                       &pairs->measure);
}

oj_status oj_cuda_list_pairs(const struct oj_cuda_index *index,
                             cudaStream_t stream,
                             const struct oj_cuda_points *points,
                             int64_t max_pairs, struct oj_cuda_pairs *out,
                             struct oj_error *err)
{
    struct oj_cuda_listing l(index->device, stream, "joining", err);
    oj_status status;
    l.points = points;
    l.max_pairs = max_pairs;
    l.out = {};
    status =
        oj_cuda_array_make(l.device, stream, points->n + 1, &l.out.offset, err);
    if (status == OJ_OK)
        status = index->family->list(index, &l);
    if (status == OJ_OK)
        *out = l.out;
    else
        oj_cuda_pairs_free(l.device, stream, &l.out);
    return status;
}

/* --- order of the pairs of a row -------------------------------------------
 */

/* A block sorts the rows of its threads in shared memory, at each turn as many
 * rows as fit. The place of a pair in its row is the number of the row's pairs
 * with smaller ranks; the threads count it for all pairs in parallel, in as
 * many steps as the row has pairs. Rows of more than MOST_PAIRS pairs are
 * sorted by the whole device. */

enum
{
    BLOCK = 128,
    MOST_PAIRS = 1536 /* maximum number of pairs that a block sorts at a time */
};

struct row_lists
{
    int64_t n;
    const int64_t *offset;
    const int32_t *ordinal_of; /* NULL: rank == ordinal */
    int32_t *rank;
    double *measure; /* or NULL */
};

static __device__ int32_t ordinal_at(const struct row_lists &rows, int32_t rank)
{
    return rows.ordinal_of != NULL ? rows.ordinal_of[rank] : rank;
}

static __global__ void __launch_bounds__(BLOCK)
    sort_short_rows(const __grid_constant__ struct row_lists rows,
                    const __grid_constant__ struct oj_cuda_row_lists too_long,
                    unsigned *n_long)
{
    __shared__ int64_t offset[BLOCK + 1];
    __shared__ int32_t rank[MOST_PAIRS];
    __shared__ double measure[MOST_PAIRS];
    int64_t first_row = (int64_t)blockIdx.x * BLOCK;
    int t = (int)threadIdx.x;
    int n_rows = rows.n - first_row < BLOCK ? (int)(rows.n - first_row) : BLOCK;
    int row = 0, n;
    if (t < n_rows)
        offset[t + 1] = rows.offset[first_row + t + 1];
    if (t == 0)
        offset[0] = rows.offset[first_row];
    __syncthreads();
    for (; row < n_rows; row += n)
    {
        int64_t base = offset[row];
        n = __syncthreads_count(row + t < n_rows &&
                                offset[row + t + 1] - base <= MOST_PAIRS);
        if (n == 0)
        {
            if (t == 0)
            {
                unsigned at = atomicAdd(n_long, 1u);
                too_long.first[at] = base;
                too_long.end[at] = offset[row + 1];
            }
            n = 1;
            continue;
        }
        int n_pairs = (int)(offset[row + n] - base);
        for (int i = t; i < n_pairs; i += BLOCK)
        {
            rank[i] = rows.rank[base + i];
            if (rows.measure != NULL)
                measure[i] = rows.measure[base + i];
        }
        __syncthreads();
        for (int i = t; i < n_pairs; i += BLOCK)
        {
            int own = oj_cuda_list_of_entry(offset, row, row + n, base + i);
            int first = (int)(offset[own] - base);
            int end = (int)(offset[own + 1] - base);
            int32_t r = rank[i];
            int64_t place = base + first;
            for (int j = first; j < end; j++)
                place += rank[j] < r;
            rows.rank[place] = ordinal_at(rows, r);
            if (rows.measure != NULL)
                rows.measure[place] = measure[i];
        }
        __syncthreads();
    }
}

oj_status oj_cuda_order_pairs_of_rows(struct oj_cuda_listing *l,
                                      const int32_t *ordinal_of)
{
    struct oj_cuda_work work(l);
    const struct oj_cuda_pairs *pairs = &l->out;
    struct row_lists rows = {l->points->n, pairs->offset.data, ordinal_of,
                             pairs->row.data, pairs->measure.data};
    int64_t most_long = pairs->n_pairs / MOST_PAIRS;
    struct oj_cuda_row_lists too_long = {};
    unsigned *n_long, n = 0;
    if (pairs->n_pairs == 0)
        return OJ_OK;
    OJ_TRY(work.make(most_long, &too_long.first, &too_long.end));
    OJ_TRY(work.allocate_zeros(1, &n_long));
    OJ_TRY(work.run<BLOCK>(rows.n, sort_short_rows, rows, too_long, n_long));
    if (most_long > 0)
        OJ_TRY(work.read(n_long, &n));
    too_long.n = n;
    too_long.rank = rows.rank;
    too_long.measure = rows.measure;
    return n > 0 ? oj_cuda_sort_row_lists(&work, &too_long, OJ_CUDA_BY_RANK,
                                          ordinal_of)
                 : OJ_OK;
}
