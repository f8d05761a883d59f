#include "cuda_ties.h"

#include "../device/cuda_scratch.cuh"

#include <string.h>

/* Few calls of CUDA, since threads wait for one another in it: one wait for a
 * batch, and no array whose size depends on how many rows are open. */
enum
{
    BLOCK = 256,
    TIE_BLOCK = 64,
    TIE_BLOCKS = 1024, /* at most; ties are few */
    MOST_TIED = 6,     /* features of a tie that fits */
    MOST_FOUND = 16,   /* candidates of such a tie: a feature may come again */
    OPEN_OF = 16       /* one row of so many may be open */
};

struct tie
{
    int32_t row; /* of the batch */
    int32_t n;
    int32_t ordinal[MOST_TIED];
};

/* Behind the offsets of the rows, so that all is read at once. */
struct tie_counts
{
    unsigned long long n_ties;  /* perhaps more than there is room for */
    unsigned long long n_large; /* that do not fit */
};

struct tie_batch
{
    int64_t n;
    const double *x, *y;
    const int32_t *row;
    const double *measure;
    int64_t *count; /* [n + 1], then offsets */
    struct tie *tie;
    int64_t room; /* ties */
    struct tie_counts *counts;
};

/* A pair for each row that has one, and lists the open rows, in any order. */
static __global__ void __launch_bounds__(BLOCK)
    count_rows(const __grid_constant__ struct tie_batch b)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    int32_t row = i < b.n ? b.row[i] : -1;
    unsigned long long at;
    if (i <= b.n)
        b.count[i] = row >= 0;
    if (row != OJ_CUDA_OPEN)
        return;
    at = atomicAdd(&b.counts->n_ties, 1ull);
    if ((int64_t)at < b.room)
        b.tie[at].row = (int32_t)i;
}

static __global__ void __launch_bounds__(TIE_BLOCK)
    find_ties(const __grid_constant__ struct tie_batch b,
              const __grid_constant__ struct oj_tree_side side,
              const int32_t *ordinal_of)
{
    const struct oj_pair_rule rule = oj_pair_rule_none();
    double distance[MOST_FOUND];
    int32_t rank[MOST_FOUND];
    int64_t n = (int64_t)b.counts->n_ties;
    for (int64_t t = (int64_t)blockIdx.x * TIE_BLOCK + threadIdx.x;
         t < n && t < b.room; t += (int64_t)gridDim.x * TIE_BLOCK)
    {
        struct tie *tie = &b.tie[t];
        int64_t i = tie->row;
        struct oj_tree_found found =
            oj_tree_found_start(MOST_FOUND, distance, rank);
        oj_tree_within(&side, &rule, i, b.x[i], b.y[i], b.measure[i], &found);
        if (found.n <= MOST_FOUND)
            found.n =
                oj_tree_settle(OJ_TREE_BY_RANK, 0.0, found.n, distance, rank);
        if (found.n > MOST_TIED)
        {
            atomicAdd(&b.counts->n_large, 1ull);
            continue;
        }
        b.count[i] = tie->n = (int32_t)found.n;
        for (int32_t j = 0; j < tie->n; j++)
            tie->ordinal[j] =
                ordinal_of != NULL ? ordinal_of[rank[j]] : rank[j];
    }
}

static __global__ void __launch_bounds__(BLOCK)
    put_rows(const __grid_constant__ struct tie_batch b, int32_t *to_row,
             double *to_measure)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= b.n || b.row[i] < 0)
        return;
    to_row[b.count[i]] = b.row[i];
    to_measure[b.count[i]] = b.measure[i];
}

static __global__ void __launch_bounds__(TIE_BLOCK)
    put_ties(const __grid_constant__ struct tie_batch b, int64_t n,
             int32_t *to_row, double *to_measure)
{
    int64_t t = (int64_t)blockIdx.x * TIE_BLOCK + threadIdx.x, first;
    if (t >= n)
        return;
    first = b.count[b.tie[t].row];
    for (int32_t j = 0; j < b.tie[t].n; j++)
    {
        to_row[first + j] = b.tie[t].ordinal[j];
        to_measure[first + j] = b.measure[b.tie[t].row];
    }
}

struct ties_list
{
    struct oj_cuda_device *device;
    cudaStream_t stream;
    struct tie_batch batch;
    struct oj_cuda_array<struct tie> tie;
    struct oj_cuda_array<uint8_t> scratch;
    struct oj_cuda_pairs out;
    struct oj_error *err;
};

static int64_t room_of(int64_t n)
{
    return n / OPEN_OF + 1024;
}

static oj_status find(struct ties_list *l, const struct oj_tree_side *side,
                      const int32_t *ordinal_of)
{
    struct tie_batch *b = &l->batch;
    int64_t n_counts = sizeof *b->counts / sizeof *b->count;
    unsigned n_blocks;
    OJ_TRY(oj_cuda_make(l->device, l->stream, b->n + 1 + n_counts,
                        &l->out.offset, l->err));
    OJ_TRY(oj_cuda_make(l->device, l->stream, room_of(b->n), &l->tie, l->err));
    b->count = l->out.offset.data;
    b->counts = (struct tie_counts *)(void *)(b->count + b->n + 1);
    b->tie = l->tie.data;
    b->room = l->tie.n;
    OJ_CUDA_TRY(cudaMemsetAsync(b->counts, 0, sizeof *b->counts, l->stream),
                "joining", l->err);
    count_rows<<<oj_blocks(b->n + 1, BLOCK), BLOCK, 0, l->stream>>>(*b);
    n_blocks = oj_blocks(b->room, TIE_BLOCK);
    if (n_blocks > TIE_BLOCKS)
        n_blocks = TIE_BLOCKS;
    find_ties<<<n_blocks, TIE_BLOCK, 0, l->stream>>>(*b, *side, ordinal_of);
    OJ_CUDA_TRY_LAUNCH("joining", l->err);
    return OJ_OK;
}

static oj_status put(struct ties_list *l, int64_t n_ties)
{
    struct tie_batch *b = &l->batch;
    OJ_TRY(oj_cuda_make(l->device, l->stream, l->out.n_pairs, &l->out.row,
                        &l->out.measure, l->err));
    if (l->out.n_pairs == 0)
        return OJ_OK;
    put_rows<<<oj_blocks(b->n, BLOCK), BLOCK, 0, l->stream>>>(
        *b, l->out.row.data, l->out.measure.data);
    if (n_ties > 0)
        put_ties<<<oj_blocks(n_ties, TIE_BLOCK), TIE_BLOCK, 0, l->stream>>>(
            *b, n_ties, l->out.row.data, l->out.measure.data);
    OJ_CUDA_TRY_LAUNCH("joining", l->err);
    return OJ_OK;
}

static oj_status list(struct ties_list *l, const struct oj_tree_side *side,
                      const int32_t *ordinal_of, int64_t max_pairs, int *fits)
{
    struct tie_batch *b = &l->batch;
    struct
    {
        int64_t n_pairs;
        struct tie_counts counts;
    } seen;
    OJ_TRY(find(l, side, ordinal_of));
    OJ_TRY(oj_cuda_scan(l->device, l->stream, &l->scratch, b->count, b->n,
                        "summing counts", l->err));
    OJ_TRY(oj_cuda_read(l->stream, b->count + b->n, (int)sizeof seen, &seen,
                        "joining", l->err));
    *fits = seen.counts.n_large == 0 && (int64_t)seen.counts.n_ties <= b->room;
    if (!*fits)
        return OJ_OK;
    l->out.n_pairs = seen.n_pairs;
    OJ_TRY(oj_cuda_pairs_fit(b->n, l->out.n_pairs, max_pairs, l->err));
    return put(l, (int64_t)seen.counts.n_ties);
}

oj_status oj_cuda_list_ties(struct oj_cuda_device *device, cudaStream_t stream,
                            const struct oj_tree_side *side,
                            const int32_t *ordinal_of,
                            const struct oj_cuda_points *points,
                            const int32_t *row, const double *measure,
                            int64_t max_pairs, int *fits,
                            struct oj_cuda_pairs *out, struct oj_error *err)
{
    struct ties_list l = {};
    oj_status status;
    l.device = device;
    l.stream = stream;
    l.batch.n = points->n;
    l.batch.x = points->x;
    l.batch.y = points->y;
    l.batch.row = row;
    l.batch.measure = measure;
    l.err = err;
    status = list(&l, side, ordinal_of, max_pairs, fits);
    oj_cuda_drop(device, stream, &l.tie, &l.scratch);
    if (status != OJ_OK || !*fits)
        oj_cuda_pairs_drop(device, stream, &l.out);
    memset(out, 0, sizeof *out);
    if (status == OJ_OK && *fits)
        *out = l.out;
    return status;
}

int64_t oj_cuda_list_ties_bytes(int64_t n)
{
    return room_of(n) * (int64_t)sizeof(struct tie) + n * 8;
}
