/** Pairs of similar texts on the CPU: what its ways to candidates share.
 *
 *  list     of each token two, of the rows of a side that have it among their
 *           first tokens, by rising size: where partners of any size find it,
 *           and further back, where only larger ones do
 *  entry    [ bits | row | class | place ]    class: of rows with one size;
 *           place of the token in the set, at most 255
 *
 *  A set of a tokens that has o in common with another has one of them among
 *  any a - o + 1 of its own, so among its a - o + 1 rarest.
 *
 *  Source: Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant 2007 (prefixes,
 *  sizes).
 */
#ifndef CPU_SIMILAR_H
#define CPU_SIMILAR_H

#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/base/cpu_token_bitmaps.h"
#include "../../foundations/base/oj_radix.h"
#include "similar_engine_sides.h"

enum
{
    OJ_SIMILAR_ROUNDS = 10 /* thresholds .9, .8 .. .1, and the join's own */
};

struct similar_entry
{
    struct oj_token_bits bits;
    uint32_t row;
    uint32_t class : 24, place : 8;
};

enum
{
    OJ_SIMILAR_MOST_PLACE = 255
};

/* The rows of a side that have tokens, by size, and lists of them. Owner;
 * zeroed memory is a valid empty one. */
struct similar_side
{
    const struct oj_token_sets *sets;
    int64_t n_classes, n_tokens;
    int32_t *class_size;  /* [n_classes] ascending */
    int64_t *class_start; /* [n_classes + 1] into by_size */
    int32_t *by_size;
    int64_t *offset; /* [2 n_tokens + 1] into entry; NULL: no lists */
    struct similar_entry *entry;
};

/* How many first tokens of a set of that size every partner has one of. */
int64_t oj_similar_prefix(const struct oj_text_condition *condition,
                          int64_t size);

OJ_MUST_USE oj_status oj_similar_side_sort(const struct oj_token_sets *sets,
                                           struct similar_side *side,
                                           struct oj_error *err);

/* The lists of tokens below n_tokens, of sides that are sorted. */
OJ_MUST_USE oj_status oj_similar_side_list(
    struct similar_side *side, const struct oj_text_condition *condition,
    int64_t n_tokens, struct oj_error *err);

void oj_similar_side_free(struct similar_side *side);

/* Of place i in by_size. */
int64_t oj_similar_class_at(const struct similar_side *side, int64_t i);

enum similar_way
{
    OJ_BY_LESS_WORK = 0,
    OJ_BY_LISTS,
    OJ_BY_BITMAPS
};

struct similar_index
{
    struct oj_row_index shared;
    struct similar_side side;
    enum similar_way way;        /* of joins that take every pair */
    struct similar_batch *batch; /* at hand */
};

/* What sets of one size need of those of each class; of one threshold. */
struct similar_needs
{
    int64_t size;      /* 0: nothing yet */
    int64_t first;     /* class that is large enough, */
    int64_t above;     /* the first that is larger than size, */
    int64_t end;       /* and the first that is too large */
    int32_t *common;   /* [n_classes] tokens in common */
    int32_t *distance; /* [n_classes] bits that may differ; -1: no pair */
    int32_t most_distance;
};

/* A pair that bits leave open, and the tokens in common that it needs. */
struct similar_candidate
{
    uint32_t row, feature, token;
    int32_t common;
};

enum
{
    OJ_SIMILAR_AT_ONCE = 64 /* candidates whose sets are fetched together */
};

struct similar_worker
{
    struct oj_row_worker shared;
    struct similar_needs needs[OJ_SIMILAR_ROUNDS];
    int64_t n_open;
    struct similar_candidate open[OJ_SIMILAR_AT_ONCE];
    /* of the list at hand */
    uint64_t *word, *near;
    uint32_t *class;
    int64_t cap_word, cap_near, cap_class;
};

struct similar_batch
{
    struct oj_stats *stats; /* gets the choice */
    struct similar_index *self;
    struct oj_similar_sides sides;
    struct similar_side own;          /* the input rows, */
    const struct similar_side *input; /* or those of the join side, which */
    int is_self;                      /* are the same: each pair is met once */
    int64_t n;                        /* input rows that have tokens */
    struct similar_worker *worker;    /* [n_threads], of the index */

    /* of those joins */
    struct similar_needs *needs; /* [input->n_classes] */
    oj_token_planes_near *near;
};

OJ_MUST_USE oj_status oj_similar_needs_make(
    const struct similar_index *self, const struct oj_text_condition *condition,
    int64_t size, struct similar_needs *out, struct oj_error *err);

void oj_similar_needs_free(struct similar_needs *needs);

/* The first class from low to high whose sets need more than so many tokens in
 * common. */
static inline int64_t oj_similar_class_beyond(const struct similar_needs *needs,
                                              int64_t low, int64_t high,
                                              int64_t common)
{
    while (low < high)
    {
        int64_t middle = (low + high) / 2;
        if (needs->common[middle] <= common)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first entry of a list whose class is at least so. */
OJ_INLINE const struct similar_entry *
oj_similar_find_class(const struct similar_entry *e, int64_t n, int64_t class)
{
    while (n > 0)
    {
        int64_t half = n / 2;
        if (e[half].class < class)
        {
            e += half + 1;
            n -= half + 1;
        }
        else
            n = half;
    }
    return e;
}

/* Tokens in common of two sets whose first one is token; 0: it is another. */
OJ_INLINE int64_t oj_similar_common(const struct oj_token_sets *in, int64_t row,
                                    const struct oj_token_sets *join,
                                    int64_t feature, uint32_t token)
{
    const uint32_t *a = in->token + in->offset[row];
    const uint32_t *a_end = in->token + in->offset[row + 1];
    const uint32_t *b = join->token + join->offset[feature];
    const uint32_t *b_end = join->token + join->offset[feature + 1];
    int64_t n = 0;
    while (*a < token && b < b_end)
    {
        uint32_t one = *a, other = *b;
        if (one == other)
            return 0;
        a += one < other;
        b += other < one;
    }
    while (a < a_end && b < b_end)
    {
        uint32_t one = *a, other = *b;
        n += one == other;
        a += one <= other;
        b += other <= one;
    }
    return n;
}

/* Puts a row and a feature with so many tokens in common, which may come in
 * either of their two orders where the batch is the join side. */
OJ_MUST_USE oj_status oj_similar_put_both(struct similar_batch *b, int thread,
                                          int64_t row, int64_t feature,
                                          int64_t common, struct oj_error *err);

/* Entries of lists that there are to compare with rows; of some of the rows,
 * evenly spaced, scaled up. */
double oj_similar_list_work(const struct similar_batch *b);

/* All pairs of the batch, token by token: the rows that have one among their
 * first tokens against the features that do. */
OJ_MUST_USE oj_status oj_similar_join_lists(struct similar_batch *b,
                                            struct oj_error *err);

/* What all pairs of sets with sizes that fit would cost, by a sample that does
 * not depend on anything but the sets. */
struct similar_bitmap_work
{
    int n_words;         /* of a set */
    double n_pairs;      /* exactly */
    double n_words_read; /* of a pair */
    double near;         /* share of pairs that pass the words, */
    double near_bits;    /* and that pass the 128 bits of a set */
};

OJ_MUST_USE oj_status oj_similar_bitmap_work(const struct similar_batch *b,
                                             struct similar_bitmap_work *out,
                                             struct oj_error *err);

/* All pairs of the batch, by bits of all tokens. */
OJ_MUST_USE oj_status oj_similar_join_bitmaps(struct similar_batch *b,
                                              struct oj_error *err);

#endif
