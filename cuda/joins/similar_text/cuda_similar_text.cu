/* Finds pairs of similar texts. Bitmaps of all rows are compared with bitmaps
 * of all join features whose size may match; pairs whose bitmaps differ in few
 * bits are then compared token by token.
 *
 *   rows, by size     | 128 rows, a thread each   bits in registers
 *   features, by size | 128 features at a time    bits in shared memory
 *
 * With n bits, bit i of a set is the parity of the number of its tokens among
 * i, i + n, i + 2 n, ... So the bitmaps of a set of a tokens and a set of b
 * tokens that have o tokens in common differ in at most a + b - 2 o bits: a
 * pair whose bitmaps differ in more bits than its condition allows is left out.
 * Tokens are numbered by ascending frequency, so that the n most frequent ones
 * have distinct bits; with one bit per token the difference is exact. Sampled
 * pairs decide which number of bits is cheapest. Tokens without a number are in
 * no bitmap and in no other set.
 *
 * If only pairs of ascending FIDs are wanted, 128 features whose FIDs are all
 * too small are skipped at once. This is frequent because sets of equal size
 * keep the order of the layer, which is usually that of the FIDs.
 *
 * Source: Sandes, Teodoro, Melo 2020 (bitmaps of all pairs on a GPU); the
 * choice of the number of bits is ours. */
#include "../../foundations/device/cuda_offset_search.cuh"
#include "cuda_text_side.cuh"

enum
{
    WARP = 32,
    TILE = 128, /* number of rows of a block, and of features compared at a
                   time */
    N_WARPS = TILE / WARP,
    /* Pairs of a warp that wait until their tokens are compared. */
    QUEUE = 2 * WARP,
    LEAST_SLICE = 1024, /* minimum features of a block, half a millisecond of
                           work */
    MOST_SLICES = 60000,
    N_TRIED = 1 << 14, /* number of sampled pairs, by which the number of bits
                          is chosen */
    MOST_BEST = 1024,  /* maximum k */
    LEAST_WORDS = 4,
    MOST_WORDS = 64,
    N_CHOICES = 5 /* 128, 256 .. 2048 bits */
};

/* Number of pairs that are compared between two checks of the cancel flag, with
 * bitmaps of 128 bits (fewer in proportion with longer ones); this takes some
 * tenths of a second. */
static const double most_at_once = 4e10;

/* Initial room for pairs: at most one pair per room_share bytes of free memory.
 * A pair has 16 bytes, so they take at most a quarter of the free memory. */
static const int64_t room_share = 64;

/* Cost of a token when tokens are compared, relative to a word when bitmaps are
 * compared. */
static const double token_cost = 16.0;

/* The rows and the join side of a comparison. */
struct cuda_text_pairs
{
    struct oj_cuda_text_side rows, features;
    struct oj_text_condition condition;
    struct oj_pair_rule rule;
    const uint32_t *row_bits, *feature_bits; /* bitmaps, in the order of
                                                sizes */
    /* [rows.n] range of the features whose sizes may match the i-th row, as
     * places in features.order. */
    const int32_t *first, *end;
    int64_t slice;      /* features per block */
    int64_t first_tile; /* first tile of rows of this launch */

    struct oj_cuda_found found;
};

/* Makes the bitmaps of all sets, in the order of sizes, `words` words each. */
static oj_status make_token_bitmaps(struct oj_cuda_work *work,
                                    const struct oj_cuda_text_side &of,
                                    int words, const uint32_t **out)
{
    const struct oj_cuda_text_side side = of;
    uint32_t *bits;
    OJ_TRY(work->allocate_zeros(side.n * words, &bits));
    *out = bits;
    return work->each(side.n,
                      [=] __device__(int64_t place)
                      {
                          int32_t row = side.order[place];
                          const uint32_t *token = side.tokens_of_row(row);
                          uint32_t *word = bits + place * words;
                          int n = side.count_known_tokens(row);
                          for (int i = 0; i < n; i++)
                              word[token[i] / 32 % (unsigned)words] ^=
                                  1u << token[i] % 32;
                      });
}

/* --- features that may match a row by size -------------------------------- */

static __device__ int may_sizes_match(const struct oj_text_condition &condition,
                                      int64_t a, int64_t b)
{
    return oj_text_min_common_tokens(&condition, a, b) <=
           oj_text_min_count(a, b);
}

/* Returns the position in features.order of the first feature that is large
 * enough to match a set of size a or, if is_large is 1, of the first feature
 * that is too large to match it. */
static __device__ int32_t first_feature_of_matching_size(
    const struct oj_cuda_text_side &features,
    const struct oj_text_condition &condition, int64_t a, int is_large)
{
    int64_t low = 0, high = features.n;
    while (low < high)
    {
        int64_t middle = (low + high) / 2;
        int64_t b = features.size[features.order[middle]];
        int is_before =
            is_large ? b <= a || may_sizes_match(condition, a, b)
                     : b < a && (b == 0 || !may_sizes_match(condition, a, b));
        if (is_before)
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)low;
}

static oj_status find_size_ranges(struct oj_cuda_work *work,
                                  struct cuda_text_pairs *pairs)
{
    int32_t *first, *end;
    int64_t n = pairs->rows.n;
    OJ_TRY(work->make(n, &first, &end));
    pairs->first = first;
    pairs->end = end;
    const struct cuda_text_pairs p = *pairs;
    return work->each(n,
                      [=] __device__(int64_t i)
                      {
                          int64_t a = p.rows.size[p.rows.order[i]];
                          first[i] = end[i] = 0;
                          if (a == 0)
                              return;
                          first[i] = first_feature_of_matching_size(
                              p.features, p.condition, a, 0);
                          end[i] = first_feature_of_matching_size(
                              p.features, p.condition, a, 1);
                      });
}

/* Returns how many tokens the sets a [n_a] and b [n_b] have in common. If there
 * are fewer than need, the result may be any number below need. */
static __device__ int count_common_tokens(const uint32_t *a, int n_a,
                                          const uint32_t *b, int n_b, int need)
{
    int n = 0, i = 0, j = 0;
    while (i < n_a && j < n_b && n + n_a - i >= need && n + n_b - j >= need)
    {
        uint32_t one = a[i], other = b[j];
        n += one == other;
        i += one <= other;
        j += other <= one;
    }
    return n;
}

/* --- number of bits ------------------------------------------------------- */

/* The sampled pairs, and for each length of bitmaps the tokens that would still
 * have to be compared. */
struct cuda_text_trial
{
    /* [rows.n + 1] prefix sums of the numbers of pairs that may match by size.
     */
    const int64_t *sums;
    int64_t n_pairs;
    /* [N_CHOICES + 1]. Elements 0 to N_CHOICES - 1: for each number of bits,
     * the tokens of the sampled pairs that pass. Last element: number of
     * similar pairs. */
    unsigned long long *tokens;
};

static __device__ void toggle_token_bits(const struct oj_cuda_text_side &side,
                                         int32_t row, uint32_t *word)
{
    const uint32_t *token = side.tokens_of_row(row);
    int n = side.count_known_tokens(row);
    for (int i = 0; i < n; i++)
        word[token[i] / 32 % MOST_WORDS] ^= 1u << token[i] % 32;
}

static __global__ void
sample_pairs(const __grid_constant__ struct cuda_text_pairs p,
             const __grid_constant__ struct cuda_text_trial trial)
{
    unsigned i = blockIdx.x * TILE + threadIdx.x;
    uint32_t word[MOST_WORDS] = {};
    /* a pseudo-random number in the i-th of N_TRIED equal intervals */
    int64_t at = (int64_t)((double)trial.n_pairs / N_TRIED *
                           (i + (i * 2654435769u) * 0x1p-32));
    if (i >= N_TRIED || at >= trial.n_pairs)
        return;
    int64_t place = oj_cuda_list_of_entry(trial.sums, (int64_t)0, p.rows.n, at);
    int32_t row = p.rows.order[place];
    int32_t feature =
        p.features.order[p.first[place] + (at - trial.sums[place])];
    int64_t a = p.rows.size[row], b = p.features.size[feature];
    int known =
        p.rows.count_known_tokens(row) + p.features.count_known_tokens(feature);
    int64_t limit = known - 2 * oj_text_min_common_tokens(&p.condition, a, b);
    toggle_token_bits(p.rows, row, word);
    toggle_token_bits(p.features, feature, word);
    if (oj_pair_rule_passes(&p.rule, row, feature, 0) &&
        count_common_tokens(p.rows.tokens_of_row(row),
                            p.rows.count_known_tokens(row),
                            p.features.tokens_of_row(feature),
                            p.features.count_known_tokens(feature),
                            0) >= oj_text_min_common_tokens(&p.condition, a, b))
        atomicAdd(&trial.tokens[N_CHOICES], 1ull);
    for (int n = MOST_WORDS, c = N_CHOICES - 1; c >= 0; c--, n /= 2)
    {
        int64_t d = 0;
        for (int w = 0; w < n; w++)
            d += __popc(word[w]);
        if (d <= limit)
            atomicAdd(&trial.tokens[c], (unsigned long long)known);
        for (int w = 0; w < n / 2; w++)
            word[w] ^= word[w + n / 2];
    }
}

/* Chooses *words, the number of words of the bitmaps. Also sets *n_pairs to how
 * many pairs must be compared, and *room to an estimate of the room for similar
 * pairs. */
static oj_status choose_bitmap_length(struct oj_cuda_work *work,
                                      const struct cuda_text_pairs *pairs,
                                      int64_t *n_pairs, int64_t *room,
                                      int *words)
{
    struct oj_cuda_work own(work);
    const struct cuda_text_pairs p = *pairs;
    struct cuda_text_trial trial = {};
    unsigned long long tokens[N_CHOICES + 1];
    uint32_t n_tokens = p.features.n_tokens;
    double least = INFINITY;
    int64_t *sums;
    OJ_TRY(own.scan_of_computed_values(
        p.rows.n,
        [=] __device__(ptrdiff_t i)
        { return i < p.rows.n ? (int64_t)(p.end[i] - p.first[i]) : 0; },
        &sums, n_pairs));
    trial.sums = sums;
    trial.n_pairs = *n_pairs;
    *words = LEAST_WORDS;
    *room = 64 * p.rows.n + (1 << 16);
    *room = oj_min_int64(*room, oj_cuda_index_count_free_bytes(work->device) /
                                    room_share);
    if (*n_pairs == 0)
        return OJ_OK;
    OJ_TRY(own.allocate_zeros(N_CHOICES + 1, &trial.tokens));
    OJ_TRY(own.run<TILE>(N_TRIED, sample_pairs, p, trial));
    OJ_TRY(own.read(trial.tokens, &tokens));
    /* more than 100 similar pairs suffice for an estimate */
    if (tokens[N_CHOICES] > 100)
        *room += (int64_t)(1.25 * (double)*n_pairs / N_TRIED *
                           (double)tokens[N_CHOICES]);
    for (int c = 0, n = LEAST_WORDS; c < N_CHOICES; c++, n *= 2)
    {
        double cost = n + token_cost * (double)tokens[c] / N_TRIED;
        if (cost < least)
        {
            least = cost;
            *words = n;
        }
        if (n * 32u >= n_tokens)
            break;
    }
    return OJ_OK;
}

/* --- comparison ----------------------------------------------------------- */

/* Compares the tokens of one pair per lane, and appends the pair to p.found if
 * it matches. is_there is 1 if the lane has a pair. */
static __device__ void verify_lane_pairs(const struct cuda_text_pairs &p,
                                         int64_t row_place,
                                         int32_t feature_place, int is_there)
{
    int32_t row = 0, feature = 0;
    int common = 0;
    if (is_there)
    {
        row = p.rows.order[row_place];
        feature = p.features.order[feature_place];
        int need = (int)oj_text_min_common_tokens(
            &p.condition, p.rows.size[row], p.features.size[feature]);
        is_there = oj_pair_rule_passes(&p.rule, row, feature, 0);
        if (is_there)
            common = count_common_tokens(
                p.rows.tokens_of_row(row), p.rows.count_known_tokens(row),
                p.features.tokens_of_row(feature),
                p.features.count_known_tokens(feature), need);
        is_there = is_there && common >= need;
    }
    oj_cuda_append_found_pairs(
        p.found, is_there, row, feature,
        is_there
            ? -oj_text_similarity(p.condition.measure, common, p.rows.size[row],
                                  p.features.size[feature])
            : 0.0);
}

/* Returns how many bits of four words differ; four words need only three
 * popcounts. */
static __device__ __forceinline__ int
popcount_xor_of_4_words(const uint32_t *one, const uint4 &other)
{
    uint32_t a = one[0] ^ other.x, b = one[1] ^ other.y, c = one[2] ^ other.z;
    return __popc(a ^ b ^ c) + 2 * __popc((a & b) | (a & c) | (b & c)) +
           __popc(one[3] ^ other.w);
}

/* Returns a key of an FID. If only pairs of ordered FIDs are allowed, then the
 * row of an allowed pair has a smaller key than its feature. */
static __device__ unsigned long long
fid_key_for_ordered_pairs(const struct cuda_text_pairs &p, int64_t fid)
{
    unsigned long long key = (unsigned long long)fid ^ (1ull << 63);
    return p.rule.unordered > 0 ? key : ~key;
}

/* Shared memory of a block. */
struct cuda_text_block
{
    int first, end; /* features that may match one of the rows */
    unsigned long long least_key;
};

static __device__ void combine_row_ranges(const struct cuda_text_pairs &p,
                                          int64_t place,
                                          struct cuda_text_block *block)
{
    if (threadIdx.x == 0)
    {
        block->first = INT32_MAX;
        block->end = 0;
        block->least_key = ~0ull;
    }
    __syncthreads();
    if (place < p.rows.n && p.first[place] < p.end[place])
    {
        atomicMin(&block->first, p.first[place]);
        atomicMax(&block->end, p.end[place]);
        if (p.rule.unordered != 0)
            atomicMin(&block->least_key,
                      fid_key_for_ordered_pairs(
                          p, p.rows.columns.fid[p.rows.order[place]]));
    }
    __syncthreads();
}

template <int WORDS>
static __global__ void __launch_bounds__(TILE)
    compare_bitmaps_of_tile(const __grid_constant__ struct cuda_text_pairs p)
{
    __shared__ uint4 tile[TILE * WORDS / 4];
    __shared__ int tile_size[TILE];
    __shared__ int tile_known[TILE];
    __shared__ int32_t queue_feature[N_WARPS][QUEUE];
    __shared__ int32_t queue_lane[N_WARPS][QUEUE];
    __shared__ struct cuda_text_block block;
    int t = (int)threadIdx.x, lane = t % WARP, warp = t / WARP, n_queue = 0;
    int64_t place = (p.first_tile + blockIdx.x) * TILE + t;
    int64_t warp_place = place - lane, from, end;
    int a = 0, known = 0;
    uint32_t mine[WORDS] = {};
    combine_row_ranges(p, place, &block);
    from = block.first + blockIdx.y * p.slice;
    end = block.end < from + p.slice ? block.end : from + p.slice;
    if (from >= end)
        return;
    if (place < p.rows.n)
    {
        int32_t row = p.rows.order[place];
        a = p.rows.size[row];
        known = p.rows.count_known_tokens(row);
        for (int w = 0; w < WORDS; w++)
            mine[w] = p.row_bits[place * WORDS + w];
    }
    for (; from < end; from += TILE)
    {
        int n = end - from < TILE ? (int)(end - from) : TILE, b = -1, base = 0;
        int counts = t < n;
        int32_t feature = t < n ? p.features.order[from + t] : 0;
        if (t < n && p.rule.unordered != 0)
            counts = fid_key_for_ordered_pairs(
                         p, p.features.columns.fid[feature]) > block.least_key;
        if (__syncthreads_count(counts) == 0)
            continue;
        if (t < n)
        {
            tile_size[t] = p.features.size[feature];
            tile_known[t] = p.features.count_known_tokens(feature);
        }
        for (int i = t; i < n * (WORDS / 4); i += TILE)
            tile[i] = ((const uint4 *)p.feature_bits)[from * (WORDS / 4) + i];
        __syncthreads();
        for (int j = 0; j < n; j++)
        {
            int d = -tile_known[j], passes;
            unsigned which;
            if (tile_size[j] != b)
            {
                int64_t need;
                b = tile_size[j];
                need = a > 0 && b > 0
                           ? oj_text_min_common_tokens(&p.condition, a, b)
                           : INT32_MAX;
                base = need <= (a < b ? a : b) ? known - 2 * (int)need
                                               : INT32_MIN / 2;
            }
#pragma unroll
            for (int v = 0; v < WORDS / 4; v++)
            {
                d += popcount_xor_of_4_words(mine + 4 * v,
                                             tile[j * (WORDS / 4) + v]);
                /* stops early: most pairs differ in too many bits long before
                 * the end */
                if (v % 4 == 3 && v < WORDS / 4 - 1 &&
                    !__any_sync(~0u, d <= base))
                    break;
            }
            passes = d <= base;
            which = __ballot_sync(~0u, passes);
            if (which == 0)
                continue;
            if (passes)
            {
                int at = n_queue + __popc(which & ((1u << lane) - 1));
                queue_feature[warp][at] = (int32_t)(from + j);
                queue_lane[warp][at] = lane;
            }
            n_queue += __popc(which);
            __syncwarp();
            if (n_queue < WARP)
                continue;
            n_queue -= WARP;
            verify_lane_pairs(p, warp_place + queue_lane[warp][n_queue + lane],
                              queue_feature[warp][n_queue + lane], 1);
            __syncwarp();
        }
        __syncthreads();
    }
    if (n_queue > 0)
        verify_lane_pairs(p, warp_place + queue_lane[warp][lane],
                          queue_feature[warp][lane], lane < n_queue);
}

typedef void comparing(const struct cuda_text_pairs);

static comparing *const comparings[N_CHOICES] = {
    compare_bitmaps_of_tile<4>, compare_bitmaps_of_tile<8>,
    compare_bitmaps_of_tile<16>, compare_bitmaps_of_tile<32>,
    compare_bitmaps_of_tile<64>};

/* Compares all rows with all features, in several launches. words is the number
 * of words of a bitmap. */
static oj_status compare_all_tiles(struct oj_cuda_work *work,
                                   struct cuda_text_pairs *p, int words,
                                   int64_t n_pairs)
{
    int64_t tiles = (p->rows.n + TILE - 1) / TILE;
    int64_t runs = (int64_t)((double)n_pairs * words / most_at_once / 4) + 1;
    int64_t step = tiles / runs + 1;
    int choice = 0;
    while (LEAST_WORDS << choice < words)
        choice++;
    p->slice = p->features.n / MOST_SLICES + 1;
    if (p->slice < LEAST_SLICE)
        p->slice = LEAST_SLICE;
    OJ_TRY(work->clear(p->found.n, 1));
    for (int64_t at = 0; at < tiles; at += step)
    {
        dim3 blocks((unsigned)(tiles - at < step ? tiles - at : step),
                    oj_cuda_count_blocks(p->features.n, p->slice));
        p->first_tile = at;
        OJ_TRY(work->launch_blocks<TILE>(blocks, comparings[choice], *p));
        if (runs > 1)
            OJ_TRY(work->wait());
        OJ_TRY(oj_check_cancel(work->device->cancel, work->err));
    }
    return OJ_OK;
}

/* --- joins by a threshold ------------------------------------------------- */

/* Prepares a comparison: sizes, number of bits, bitmaps. Sets *n_pairs, *room
 * and *words like choose_bitmap_length(). */
static oj_status prepare_bit_comparison(struct oj_cuda_work *work,
                                        struct cuda_text_pairs *pairs,
                                        int64_t *n_pairs, int64_t *room,
                                        int *words)
{
    OJ_TRY(find_size_ranges(work, pairs));
    OJ_TRY(choose_bitmap_length(work, pairs, n_pairs, room, words));
    OJ_TRY(make_token_bitmaps(work, pairs->rows, *words, &pairs->row_bits));
    return make_token_bitmaps(work, pairs->features, *words,
                              &pairs->feature_bits);
}

static oj_status find_pairs(struct oj_cuda_work *work,
                            struct cuda_text_pairs *pairs,
                            struct oj_cuda_share *share, struct oj_stats *stats)
{
    int64_t n_pairs = 0, room = 0;
    int words = 0;
    OJ_TRY(prepare_bit_comparison(work, pairs, &n_pairs, &room, &words));
    OJ_TRY(oj_cuda_share_find_pairs(
        work, 1, &pairs->found, room, share,
        [&]() { return compare_all_tiles(work, pairs, words, n_pairs); }));
    stats->n_candidates += n_pairs;
    return OJ_OK;
}

/* --- k most similar ------------------------------------------------------- */

/* Reduces rows->order to the rows that have not got their pairs yet. */
static oj_status select_undone_rows(struct oj_cuda_work *work,
                                    const uint8_t *done,
                                    struct oj_cuda_text_side *rows)
{
    struct oj_cuda_work own(work);
    const int32_t *order = rows->order;
    int64_t n = rows->n, *at;
    int32_t *rest;
    OJ_TRY(own.scan_of_computed_values(
        n,
        [=] __device__(ptrdiff_t i)
        { return i < n ? (int64_t)!done[order[i]] : 0; },
        &at, &rows->n));
    OJ_TRY(work->make(rows->n, &rest));
    rows->order = rest;
    return own.each(n,
                    [=] __device__(int64_t i)
                    {
                        if (!done[order[i]])
                            rest[at[i]] = order[i];
                    });
}

/* Finds the pairs of one round, with the threshold in pairs->condition. Appends
 * to *kept the k most similar pairs of each row that has at least k, and sets
 * done of that row to 1. If is_last is 1, does this for all rows. */
static oj_status find_threshold_round(struct oj_cuda_work *work,
                                      struct cuda_text_pairs *pairs,
                                      int64_t n_rows, const int32_t *rank,
                                      int64_t k, int is_last,
                                      struct oj_cuda_found *kept, uint8_t *done,
                                      struct oj_stats *stats)
{
    struct oj_cuda_work own(work);
    int64_t n_pairs = 0, room = 0, n = 0;
    int words = 0;
    OJ_TRY(prepare_bit_comparison(&own, pairs, &n_pairs, &room, &words));
    OJ_TRY(oj_cuda_found_run_until_fits(
        &own, &pairs->found, room, NULL,
        [&]() { return compare_all_tiles(&own, pairs, words, n_pairs); }, &n));
    stats->n_candidates += n_pairs;
    return oj_cuda_keep_first_k_pairs_of_rows(&own, n_rows, rank, k, is_last,
                                              &pairs->found, n, kept, done);
}

/* Finds the k most similar features in rounds: lowers the threshold from 0.9 by
 * tenths. A row that has at least k pairs in a round has its k most similar
 * features among them. */
static oj_status
find_k_most_similar(struct oj_cuda_work *work, struct cuda_text_pairs *pairs,
                    int64_t n_rows, int64_t k, const int32_t *rank,
                    struct oj_cuda_share *share, struct oj_stats *stats)
{
    const struct oj_text_condition asked = pairs->condition;
    struct oj_cuda_found kept = {};
    unsigned long long n = 0;
    uint8_t *done;
    OJ_TRY(work->allocate_zeros(1, &kept.n));
    OJ_TRY(work->make(n_rows * k, &kept.row, &kept.feature));
    OJ_TRY(work->make(n_rows * k, &kept.measure));
    OJ_TRY(work->allocate_zeros(n_rows, &done));
    for (int64_t tenths = 9; tenths >= 0 && pairs->rows.n > 0; tenths--)
    {
        const int32_t *order = pairs->rows.order;
        if (tenths > 0 && tenths * asked.denominator <= 10 * asked.numerator)
            continue;
        pairs->condition = asked;
        if (tenths > 0)
        {
            pairs->condition.numerator = tenths;
            pairs->condition.denominator = 10;
        }
        OJ_TRY(find_threshold_round(work, pairs, n_rows, rank, k, tenths == 0,
                                    &kept, done, stats));
        OJ_TRY(select_undone_rows(work, done, &pairs->rows));
        work->drop(order);
    }
    OJ_TRY(work->read(kept.n, &n));
    oj_cuda_share_move_pairs(work, 1, &kept, (int64_t)n, share);
    return OJ_OK;
}

static oj_status join_rows(const struct oj_cuda_index *index,
                           const struct oj_flat *input, int64_t first,
                           int64_t n, struct oj_cuda_share *share,
                           struct oj_stats *stats, struct oj_error *err)
{
    struct oj_cuda_work work(index->device, index->device->stream,
                             "comparing texts", err);
    struct cuda_text_pairs pairs = {};
    int64_t k = index->relation.k;
    pairs.features = pairs.rows =
        ((const struct oj_cuda_text_index *)index)->side;
    if (!oj_cuda_share_input_is_join_side(index, input, first, n))
        OJ_TRY(oj_cuda_text_side_make(&work, input, first, n, &index->relation,
                                      &pairs.rows));
    OJ_TRY(oj_cuda_share_select_tiles(&work, share, TILE, &pairs.rows.order,
                                      &pairs.rows.n));
    pairs.condition = index->relation.similar[0];
    pairs.rule = oj_cuda_make_pair_rule(&index->relation, &pairs.rows.columns,
                                        &pairs.features.columns);
    if (k < OJ_EVERY_PAIR)
        return find_k_most_similar(&work, &pairs, n, k, index->rank, share,
                                   stats);
    return find_pairs(&work, &pairs, share, stats);
}

/* --- the family ----------------------------------------------------------- */

static int supports_similar_text_join(const struct oj_relation *relation,
                                      const struct oj_flat *join_side,
                                      const struct oj_flat *input)
{
    return oj_cuda_text_side_supports_join(relation, join_side, input) &&
           (relation->k >= OJ_EVERY_PAIR ||
            (relation->k <= MOST_BEST && relation->ties == OJ_TIES_FIRST));
}

const struct oj_cuda_family oj_cuda_similar_text = {
    "bits of all pairs, then their tokens",
    supports_similar_text_join,
    sizeof(struct oj_cuda_text_index),
    oj_cuda_text_index_build,
    1,
    join_rows,
};
