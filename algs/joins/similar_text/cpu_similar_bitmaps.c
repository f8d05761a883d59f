/* Joins by bitmaps of all tokens: compares all pairs of sets whose sizes allow
 * a pair. Frequent tokens have a bit each; if there are more tokens than bits,
 * rarer tokens share these bits. Pairs that differ in too many bits of the
 * first words are dropped. If no bits are shared, the number of common tokens
 * follows from the number of differing bits.
 *
 *  tile     words of consecutive features in size order, which stay in cache
 *
 * Source: Sandes, Teodoro, Melo 2020; bits for frequent tokens: ours. */
#include "cpu_similar.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"

#include <string.h>

enum
{
    MOST_WORDS = 32,   /* maximum number of words per set */
    TILE_WORDS = 8192, /* words per tile: 64 KiB */
    ROWS_AT_ONCE = 64, /* rows per task */
    SAMPLED_ROWS = 64
};

struct bitmap_join
{
    struct similar_batch *b;
    int is_exact; /* 1: each token has its own bit */
    struct oj_token_planes planes;
    int64_t tile; /* features per tile */
    uint64_t *word;
    uint32_t *class;
};

/* Returns the number of words that give each token a bit of its own, rounded up
 * to a power of 2, but at most MOST_WORDS. */
static int choose_bitmap_words(const struct similar_side *self)
{
    int n = 1;
    while (n < MOST_WORDS && 64 * n < self->n_tokens)
        n *= 2;
    return n;
}

/* Makes the bitmap of a row: each of its tokens that some join feature has
 * toggles a bit. Word w is at word[w * stride]. */
static void set_token_bitmap_of_row(const struct similar_side *self,
                                    int n_words,
                                    const struct oj_token_sets *sets,
                                    int64_t row, uint64_t *word, int64_t stride)
{
    uint64_t last = (uint64_t)self->n_tokens - 1;
    for (int w = 0; w < n_words; w++)
        word[w * stride] = 0;
    for (int64_t i = sets->offset[row]; i < sets->offset[row + 1]; i++)
    {
        uint64_t bit = last - sets->token[i];
        if (sets->token[i] <= last)
            word[(int64_t)(bit / 64 % (uint64_t)n_words) * stride] ^=
                UINT64_C(1) << bit % 64;
    }
}

/* Returns the number of the row's tokens that no feature has. */
static int64_t count_tokens_not_in_dictionary(const struct similar_side *self,
                                              const struct oj_token_sets *sets,
                                              int64_t row)
{
    int64_t end = sets->offset[row + 1], n = end;
    while (n > sets->offset[row] && sets->token[n - 1] >= self->n_tokens)
        n--;
    return sets->size[row] - (n - sets->offset[row]);
}

/* ---- the features -------------------------------------------------------- */

static void fill_bitmap_words_of_features(int64_t first, int64_t end,
                                          void *user)
{
    struct bitmap_join *t = user;
    const struct similar_side *self = &t->b->self->side;
    for (int64_t i = first; i < end; i++)
    {
        int64_t feature = self->by_size[i];
        set_token_bitmap_of_row(self, t->planes.n_words, &t->b->sides.join_side,
                                feature, t->word + i, t->planes.stride);
    }
}

static oj_status make_bitmaps_of_features(struct bitmap_join *t,
                                          struct oj_error *err)
{
    const struct similar_side *self = &t->b->self->side;
    int64_t n = self->class_start[self->n_classes];
    t->planes.n_words = choose_bitmap_words(self);
    t->planes.stride = n;
    t->is_exact = self->n_tokens <= 64 * (int64_t)t->planes.n_words;
    t->tile = TILE_WORDS / t->planes.n_words;
    OJ_NEW(t->word, n * t->planes.n_words, err);
    OJ_NEW(t->class, n, err);
    for (int64_t c = 0; c < self->n_classes; c++)
    {
        for (int64_t i = self->class_start[c]; i < self->class_start[c + 1];
             i++)
            t->class[i] = (uint32_t)c;
    }
    oj_parallel_slices(t->b->self->shared.n_threads, n, ROWS_AT_ONCE * 8,
                       fill_bitmap_words_of_features, t);
    t->planes.word = t->word;
    t->planes.class = t->class;
    return OJ_OK;
}

/* ---- the rows ------------------------------------------------------------ */

struct bitmap_row
{
    int64_t row, n_known; /* n_known: number of the row's tokens that some
                             feature has */
    int64_t low, high;    /* by_size[low] .. by_size[high - 1]: the features
                             whose size allows a pair */
    const struct similar_needs *needs;
    const int32_t *limit; /* [classes] maximum number of differing bits */
    uint64_t word[MOST_WORDS];
};

/* Prepares a row. A token that no feature has is a difference to every feature,
 * so such tokens lower the limits. Sets *own to the lowered limits, which the
 * caller frees; leaves it unchanged if the limits of needs hold. */
static oj_status prepare_bitmap_row(const struct bitmap_join *t, int64_t i,
                                    struct bitmap_row *r, int32_t **own,
                                    struct oj_error *err)
{
    const struct similar_batch *b = t->b;
    const struct similar_side *self = &b->self->side;
    int64_t n_unknown;
    r->row = b->input->by_size[i];
    r->needs = &b->needs[oj_similar_size_class_at(b->input, i)];
    r->low = r->needs->end > r->needs->first
                 ? self->class_start[r->needs->first]
                 : 0;
    r->high =
        r->needs->end > r->needs->first ? self->class_start[r->needs->end] : 0;
    if (b->is_self && r->high > i + 1)
        r->high = i + 1;
    r->limit = r->needs->distance;
    set_token_bitmap_of_row(self, t->planes.n_words, &b->sides.input, r->row,
                            r->word, 1);
    n_unknown = count_tokens_not_in_dictionary(self, &b->sides.input, r->row);
    r->n_known = b->sides.input.size[r->row] - n_unknown;
    if (n_unknown == 0)
        return OJ_OK;
    OJ_NEW(*own, self->n_classes, err);
    for (int64_t c = 0; c < self->n_classes; c++)
        (*own)[c] = r->needs->distance[c] - (int32_t)n_unknown;
    r->limit = *own;
    return OJ_OK;
}

static int64_t count_common_tokens(const struct bitmap_join *t,
                                   const struct bitmap_row *r, int64_t place)
{
    const struct oj_similar_sides *rows = &t->b->sides;
    int64_t feature = t->b->self->side.by_size[place], differ = 0;
    if (!t->is_exact)
        return oj_token_sets_count_common(&rows->input, r->row,
                                          &rows->join_side, feature);
    for (int w = 0; w < t->planes.n_words; w++)
        differ += __builtin_popcountll(t->word[w * t->planes.stride + place] ^
                                       r->word[w]);
    return (r->n_known + rows->join_side.offset[feature + 1] -
            rows->join_side.offset[feature] - differ) /
           2;
}

/* Joins row r with the features at places [low, high) of the order by size. */
OJ_COUNT_CLONES static oj_status
join_tile(const struct bitmap_join *t, int thread, const struct bitmap_row *r,
          int64_t low, int64_t high, struct oj_error *err)
{
    struct similar_worker *w = &t->b->worker[thread];
    t->b->near(&t->planes, low, high - low, r->word, r->limit, INT32_MAX,
               w->near);
    for (int64_t i = 0; i * OJ_PLANE_BLOCK < high - low; i++)
    {
        for (uint64_t near = w->near[i]; near != 0; near &= near - 1)
        {
            int64_t place = low + i * OJ_PLANE_BLOCK + __builtin_ctzll(near);
            int64_t common = count_common_tokens(t, r, place);
            w->shared.n_candidates++;
            if (common >= r->needs->common[t->class[place]])
                OJ_TRY(oj_similar_store_both_pairs(
                    t->b, thread, r->row, t->b->self->side.by_size[place],
                    common, err));
        }
    }
    return OJ_OK;
}

static oj_status join_rows_by_tiles(const struct bitmap_join *t, int thread,
                                    const struct bitmap_row *rows, int64_t n,
                                    struct oj_error *err)
{
    int64_t low = INT64_MAX, high = 0;
    for (int64_t i = 0; i < n; i++)
    {
        low = rows[i].low < low ? rows[i].low : low;
        high = rows[i].high > high ? rows[i].high : high;
    }
    for (int64_t at = low; at < high; at += t->tile)
    {
        for (int64_t i = 0; i < n; i++)
        {
            int64_t from = rows[i].low > at ? rows[i].low : at;
            int64_t to = at + t->tile;
            to = rows[i].high < to ? rows[i].high : to;
            if (from < to)
                OJ_TRY(join_tile(t, thread, &rows[i], from, to, err));
        }
    }
    return OJ_OK;
}

static oj_status join_rows(int64_t task, int thread, void *user,
                           struct oj_error *err)
{
    const struct bitmap_join *t = user;
    struct similar_worker *w = &t->b->worker[thread];
    struct bitmap_row rows[ROWS_AT_ONCE];
    int32_t *limit[ROWS_AT_ONCE] = {0};
    int64_t first = task * ROWS_AT_ONCE, n = t->b->n - first;
    oj_status status =
        oj_check_cancel(t->b->self->shared.args.options.cancel, err);
    OJ_TRY(status);
    n = n < ROWS_AT_ONCE ? n : ROWS_AT_ONCE;
    OJ_ROOM(w->near, 0, t->tile / OJ_PLANE_BLOCK + 1, w->cap_near, err);
    for (int64_t i = 0; i < n && status == OJ_OK; i++)
        status = prepare_bitmap_row(t, first + i, &rows[i], &limit[i], err);
    if (status == OJ_OK)
        status = join_rows_by_tiles(t, thread, rows, n, err);
    for (int64_t i = 0; i < n; i++)
        oj_free(limit[i]);
    return status;
}

oj_status oj_similar_join_bitmaps(struct similar_batch *b, struct oj_error *err)
{
    struct bitmap_join t = {.b = b};
    oj_status status = OJ_OK;
    if (b->self->side.n_tokens == 0)
        return OJ_OK;
    status = make_bitmaps_of_features(&t, err);
    if (status == OJ_OK)
        status = oj_parallel_try(b->self->shared.n_threads,
                                 (b->n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, 1,
                                 join_rows, &t, err);
    oj_free(t.word);
    oj_free(t.class);
    return status;
}

/* ---- cost estimate ------------------------------------------------------- */

/* Sums over the sampled pairs, in groups of the eight features that the kernel
 * compares together: pairs, words read, pairs that the words do not exclude,
 * and pairs that the 128 bits do not exclude. */
struct sample
{
    double n_pairs, n_words, n_near, n_near_bits;
};

static void sample_cost_on_eight_features(const struct bitmap_join *t,
                                          const struct bitmap_row *r,
                                          int64_t at, struct sample *sum)
{
    const struct oj_similar_sides *rows = &t->b->sides;
    const struct similar_side *self = &t->b->self->side;
    int64_t n = r->high - at < 8 ? r->high - at : 8;
    int most = 0;
    for (int64_t i = at; i < at + n; i++)
    {
        int64_t feature = self->by_size[i],
                c = oj_similar_size_class_at(self, i);
        uint64_t word[MOST_WORDS];
        int differ = 0, w = 0;
        set_token_bitmap_of_row(self, t->planes.n_words, &rows->join_side,
                                feature, word, 1);
        while (w < t->planes.n_words && differ <= r->limit[c])
        {
            differ += __builtin_popcountll(word[w] ^ r->word[w]);
            w++;
        }
        most = w > most ? w : most;
        sum->n_near += differ <= r->limit[c];
        sum->n_near_bits +=
            oj_token_sets_bound(&rows->input, r->row, &rows->join_side,
                                feature) >= r->needs->common[c];
    }
    sum->n_words += (double)((most + OJ_PLANES_AT_ONCE - 1) /
                             OJ_PLANES_AT_ONCE * OJ_PLANES_AT_ONCE * n);
    sum->n_pairs += (double)n;
}

oj_status oj_similar_estimate_bitmap_work(const struct similar_batch *b,
                                          struct similar_bitmap_work *out,
                                          struct oj_error *err)
{
    struct bitmap_join t = {.b = (struct similar_batch *)b};
    struct sample sum = {1.0, 1.0, 0.0, 0.0};
    int64_t step = b->n / SAMPLED_ROWS + 1;
    double n_pairs = 0;
    t.planes.n_words = choose_bitmap_words(&b->self->side);
    for (int64_t i = 0; i < b->n; i++)
    {
        const struct similar_needs *needs =
            &b->needs[oj_similar_size_class_at(b->input, i)];
        struct bitmap_row r;
        int32_t *limit = NULL;
        int64_t high;
        if (needs->end <= needs->first)
            continue;
        high = b->self->side.class_start[needs->end];
        if (b->is_self && high > i + 1)
            high = i + 1;
        n_pairs += (double)(high - b->self->side.class_start[needs->first]);
        if (i % step != 0)
            continue;
        OJ_TRY(prepare_bitmap_row(&t, i, &r, &limit, err));
        for (uint64_t at = 0; at < 8; at++) /* sampled features are scattered
                                               over the range */
            sample_cost_on_eight_features(
                &t, &r,
                r.low + (int64_t)(((uint64_t)i * 8 + at) *
                                  UINT64_C(0x9e3779b97f4a7c15) %
                                  (uint64_t)(r.high - r.low)),
                &sum);
        oj_free(limit);
    }
    out->n_words = t.planes.n_words;
    out->n_pairs = n_pairs;
    out->n_words_read = sum.n_words / sum.n_pairs;
    out->near = sum.n_near / sum.n_pairs;
    out->near_bits = sum.n_near_bits / sum.n_pairs;
    return OJ_OK;
}
