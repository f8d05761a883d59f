/** Paper: Ribeiro-Junior, Quirino, Ribeiro, Martins 2017, "Fast Parallel Set
 *  Similarity Joins on Many-core Architectures", section 5 (gSSJoin, the
 *  backend "cuda_lists") and section 6 (sf-gSSJoin, the backend
 *  "cuda_size_blocks").
 *
 *  Method: inverted lists of some join features. How many tokens each row
 *  shares with each of these features is counted in a matrix, by atomic
 *  additions.
 *
 *  features, by size  | block | block | ..     lists of one block at a time
 *  rows, by size      | block | block | ..     those whose sizes may match
 *  matrix             rows of a block x features of a block
 *
 *  gSSJoin takes all features as one block and does not compare sizes.
 *
 *  Differences: two layers instead of a self join, all four similarities, and
 *  pairs in the order of the other backends.
 */
#include "../foundations/device/cuda_copy.h"
#include "../joins/similar_text/cuda_text_side.cuh"

#include "../../flatten/base/oj_alloc.h"

enum
{
    BLOCK = 128 /* threads per block */
};

/* Number of sets per block (sf-gSSJoin). */
static const int64_t block_sets = 4096;

/* Maximum number of cells of the matrix. */
static const int64_t most_cells = (int64_t)1 << 28;

/* A block of rows and a block of features, as places in the order of sizes. */
struct cuda_text_matrix
{
    struct oj_cuda_text_side rows, features;
    struct oj_text_condition condition;
    struct oj_pair_rule rule;
    int64_t first_row, n_rows, first_feature, n_features;
    const int64_t *list;   /* [tokens + 1] offsets into member */
    const int32_t *member; /* features of the block that have the token */
    unsigned *count;       /* [n_rows * n_features] common tokens */
    struct oj_cuda_found found;
};

/* Token counts of all rows and of all features, sorted, in host memory.
 * Owner. */
struct cuda_sizes
{
    int32_t *row, *feature;
};

/* Makes the inverted lists of a block of features. */
static oj_status make_inverted_lists(struct oj_cuda_work *work,
                                     struct cuda_text_matrix *m)
{
    const struct cuda_text_matrix of = *m;
    int64_t n_tokens = of.features.n_tokens, n_members = 0;
    unsigned long long *cursor;
    int64_t *list;
    int32_t *member;
    OJ_TRY(work->allocate_zeros(n_tokens + 1, &cursor));
    OJ_TRY(work->make(n_tokens + 1, &list));
    OJ_TRY(work->each(of.n_features,
                      [=] __device__(int64_t i)
                      {
                          int32_t f = of.features.order[of.first_feature + i];
                          const uint32_t *token = of.features.tokens_of_row(f);
                          for (int t = 0; t < of.features.count_known_tokens(f);
                               t++)
                              atomicAdd(&cursor[token[t]], 1ull);
                      }));
    OJ_TRY(work->scan(cursor, n_tokens));
    OJ_TRY(work->read(cursor + n_tokens, &n_members));
    OJ_TRY(work->make(n_members, &member));
    OJ_TRY(work->each(n_tokens + 1, [=] __device__(int64_t t)
                      { list[t] = (int64_t)cursor[t]; }));
    m->list = list;
    m->member = member;
    return work->each(
        of.n_features,
        [=] __device__(int64_t i)
        {
            int32_t f = of.features.order[of.first_feature + i];
            const uint32_t *token = of.features.tokens_of_row(f);
            for (int t = 0; t < of.features.count_known_tokens(f); t++)
                member[atomicAdd(&cursor[token[t]], 1ull)] = (int32_t)i;
        });
}

/* Counts common tokens, one block of threads per row. */
static __global__ void
count_common_tokens_of_row(const __grid_constant__ struct cuda_text_matrix m)
{
    int32_t row = m.rows.order[m.first_row + blockIdx.x];
    const uint32_t *token = m.rows.tokens_of_row(row);
    unsigned *count = m.count + blockIdx.x * m.n_features;
    for (int t = 0; t < m.rows.count_known_tokens(row); t++)
    {
        if (token[t] >= m.features.n_tokens)
            continue;
        int64_t end = m.list[token[t] + 1];
        for (int64_t i = m.list[token[t]] + threadIdx.x; i < end; i += BLOCK)
            atomicAdd(&count[m.member[i]], 1u);
    }
}

/* Appends those pairs of a block of rows and a block of features that have
 * enough tokens in common. */
static __global__ void
select_pairs(const __grid_constant__ struct cuda_text_matrix m)
{
    int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    unsigned common = i < m.n_rows * m.n_features ? m.count[i] : 0;
    int32_t row = 0, feature = 0;
    int counts = 0;
    double measure = 0.0;
    if (common > 0)
    {
        int64_t a, b;
        row = m.rows.order[m.first_row + i / m.n_features];
        feature = m.features.order[m.first_feature + i % m.n_features];
        a = m.rows.size[row];
        b = m.features.size[feature];
        counts = oj_text_is_similar(&m.condition, common, a, b) &&
                 oj_pair_rule_passes(&m.rule, row, feature, 0);
        if (counts)
            measure = -oj_text_similarity(m.condition.measure, common, a, b);
    }
    oj_cuda_append_found_pairs(m.found, counts, row, feature, measure);
}

static oj_status count_and_select_block_pairs(struct oj_cuda_work *work,
                                              const struct cuda_text_matrix *m)
{
    OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
    OJ_TRY(work->clear(m->count, m->n_rows * m->n_features));
    OJ_TRY(work->launch_blocks<BLOCK>((unsigned)m->n_rows,
                                      count_common_tokens_of_row, *m));
    return work->run<BLOCK>(m->n_rows * m->n_features, select_pairs, *m);
}

/* Returns 1 if, judging by sizes alone, a set of the block of rows may match a
 * set of the block of features. */
static int may_block_sizes_match(const struct cuda_text_matrix *m,
                                 const struct cuda_sizes *sizes)
{
    const int32_t *row = sizes->row + m->first_row;
    const int32_t *feature = sizes->feature + m->first_feature;
    int64_t a = row[0], b = feature[0];
    if (row[m->n_rows - 1] < b)
        a = row[m->n_rows - 1];
    else if (feature[m->n_features - 1] < a)
        b = feature[m->n_features - 1];
    else
        return 1;
    return a > 0 && b > 0 &&
           oj_text_min_common_tokens(&m->condition, a, b) <=
               oj_text_min_count(a, b);
}

/* Joins each block of features with all blocks of rows. If sizes is NULL, all
 * features are one block. */
static oj_status join_features_by_blocks(struct oj_cuda_work *work,
                                         struct cuda_text_matrix *m,
                                         const struct cuda_sizes *sizes)
{
    int64_t step = sizes != NULL ? block_sets : m->features.n;
    int64_t row_step = sizes != NULL ? block_sets : most_cells / step;
    row_step = row_step < 1 ? 1 : row_step;
    row_step = row_step < m->rows.n ? row_step : m->rows.n;
    step = step < m->features.n ? step : m->features.n;
    OJ_TRY(work->clear(m->found.n, 1));
    for (int64_t f = 0; f < m->features.n; f += step)
    {
        struct oj_cuda_work own(work);
        int64_t left = m->features.n - f;
        m->first_feature = f;
        m->n_features = left < step ? left : step;
        OJ_TRY(make_inverted_lists(&own, m));
        OJ_TRY(own.make(row_step * m->n_features, &m->count));
        for (int64_t r = 0; r < m->rows.n; r += row_step)
        {
            left = m->rows.n - r;
            m->first_row = r;
            m->n_rows = left < row_step ? left : row_step;
            if (sizes == NULL || may_block_sizes_match(m, sizes))
                OJ_TRY(count_and_select_block_pairs(&own, m));
        }
    }
    return OJ_OK;
}

/* Makes *out, the sorted sizes of a side in host memory. */
static oj_status fetch_sorted_sizes(struct oj_cuda_work *work,
                                    const struct oj_cuda_text_side *side,
                                    int32_t **out)
{
    struct oj_cuda_work own(work);
    const int32_t *sorted;
    int64_t n = side->n;
    *out = (int32_t *)oj_malloc(n, sizeof **out);
    if (*out == NULL)
        return oj_fail_nomem(work->err, n, sizeof **out);
    OJ_TRY(own.gather(n, side->size, side->order, &sorted));
    return oj_cuda_copy_out(own.device, own.stream, *out, sorted,
                            n * (int64_t)sizeof **out, own.err);
}

static oj_status find_pairs(struct oj_cuda_work *work,
                            struct cuda_text_matrix *m, int by_size,
                            struct oj_cuda_share *share)
{
    struct cuda_sizes sizes = {};
    oj_status status = OJ_OK;
    if (by_size)
        status = fetch_sorted_sizes(work, &m->rows, &sizes.row);
    if (by_size && status == OJ_OK)
        status = fetch_sorted_sizes(work, &m->features, &sizes.feature);
    if (status == OJ_OK)
        status = oj_cuda_share_find_pairs(
            work, 1, &m->found, 4 * m->rows.n + (1 << 16), share,
            [&]() {
                return join_features_by_blocks(work, m,
                                               by_size ? &sizes : NULL);
            });
    oj_free(sizes.row);
    oj_free(sizes.feature);
    return status;
}

static oj_status join_rows(const struct oj_cuda_index *index,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_cuda_share *share,
                           struct oj_stats *stats, struct oj_error *err)
{
    struct oj_cuda_work work(index->device, index->device->stream,
                             "counting common tokens", err);
    struct cuda_text_matrix m = {};
    (void)stats;
    OJ_TRY(oj_cuda_text_side_make(&work, input, first, n, &index->relation,
                                  &m.rows));
    OJ_TRY(
        oj_cuda_share_select_tiles(&work, share, 1, &m.rows.order, &m.rows.n));
    m.features = ((const struct oj_cuda_text_index *)index)->side;
    m.condition = index->relation.similar[0];
    m.rule = oj_cuda_make_pair_rule(&index->relation, &m.rows.columns,
                                    &m.features.columns);
    return find_pairs(&work, &m, index->family == &oj_cuda_size_blocks, share);
}

const struct oj_cuda_family oj_cuda_size_blocks = {
    "blocks of sets by size, common tokens counted",
    oj_cuda_text_side_supports_join,
    sizeof(struct oj_cuda_text_index),
    oj_cuda_text_index_build,
    1,
    join_rows,
};

const struct oj_cuda_family oj_cuda_lists = {
    "inverted lists, common tokens counted",
    oj_cuda_text_side_supports_join,
    sizeof(struct oj_cuda_text_index),
    oj_cuda_text_index_build,
    1,
    join_rows,
};
