/** Similar texts on the CPU: data of its two methods, prefix lists and bitmaps.
 *
 *  list    two per token: the rows of a side that have the token in their
 *          prefix, in the order of set sizes. The first list serves partners of
 *          any size, the second one only partners smaller than the entry's set
 *  entry   [ bits | row | class | place ]
 *          class: index of the set size; place: position of the token in the
 *          set, at most 255
 *
 *  If a set of a tokens has o tokens in common with another set, one of them is
 *  among any a - o + 1 of its tokens, so also among its a - o + 1 rarest ones:
 *  the prefix.
 *
 *  Source: Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant 2007 (prefixes,
 *  sizes). */
#ifndef CPU_SIMILAR_H
#define CPU_SIMILAR_H

#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/base/cpu_token_bitmaps.h"
#include "../../foundations/base/oj_radix_sort.h"
#include "../../pairs/selection/oj_equal_groups.h"
#include "similar_engine_sides.h"

enum
{
    OJ_SIMILAR_ROUNDS = 10 /* thresholds .9, .8 .. .1, then the join's own */
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

/* The rows of a side that have tokens, sorted by size, and their prefix lists.
 * Owner; zeroed memory is a valid empty one. */
struct similar_side
{
    const struct oj_token_sets *sets;
    /* Used for a join side if the k most similar are requested: groups of rows
     * with equal sets, of which only one row each is listed. group_of [rows] is
     * the group of a listed row and -1 for the others; NULL if all rows are
     * listed. */
    struct oj_equal_groups groups;
    int32_t *group_of;
    int64_t n_classes, n_tokens;
    int32_t *class_size;  /* [n_classes] set size of each class, ascending */
    int64_t *class_start; /* [n_classes + 1] position of the first row of each
                             class in by_size */
    int32_t *by_size;     /* rows, sorted by set size */
    int64_t *offset;      /* [2 n_tokens + 1] first entry of each of the two
                             lists of a token; NULL if there are no lists */
    struct similar_entry *entry;
};

/* Returns the length of the prefix of sets of this size, so that every partner
 * of such a set has at least one token of the prefix. */
int64_t oj_similar_prefix_length(const struct oj_text_condition *condition,
                                 int64_t size);

/* Groups the rows of the join side that have equal sets. Must precede
 * oj_similar_side_sort_by_size(). */
OJ_MUST_USE oj_status oj_similar_side_group_equal_sets(
    struct similar_side *side, const struct oj_index_args *args,
    struct oj_error *err);

/* Sets the members of the side that describe the order by size: classes and
 * by_size. */
OJ_MUST_USE oj_status
oj_similar_side_sort_by_size(const struct oj_token_sets *sets,
                             struct similar_side *side, struct oj_error *err);

/* Makes the lists of tokens below n_tokens; the side must be sorted by size. */
OJ_MUST_USE oj_status oj_similar_side_list_prefix_tokens(
    struct similar_side *side, const struct oj_text_condition *condition,
    int64_t n_tokens, struct oj_error *err);

void oj_similar_side_free(struct similar_side *side);

/* Returns the size class (index in class_size) of the row at position i of
 * by_size. */
int64_t oj_similar_size_class_at(const struct similar_side *side, int64_t i);

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
    enum similar_way way;        /* method of joins without k */
    struct similar_batch *batch; /* current batch */
};

/* For one threshold and row sets of one size: what partners of each class of
 * set sizes must fulfil. */
struct similar_needs
{
    int64_t size;      /* 0: not computed yet */
    int64_t first;     /* first class that is large enough */
    int64_t above;     /* first class larger than size */
    int64_t end;       /* first class that is too large */
    int32_t *common;   /* [n_classes] minimum number of common tokens */
    int32_t *distance; /* [n_classes] maximum number of differing bits; -1 if no
                          pair is possible */
    int32_t most_distance;
};

/* A pair that bitmaps do not exclude. It counts only if `token` is its first
 * common token and it has at least `common` common tokens. */
struct similar_candidate
{
    uint32_t row, feature, token;
    int32_t common;
};

enum
{
    OJ_SIMILAR_AT_ONCE = 64 /* candidates whose sets are prefetched together */
};

struct similar_worker
{
    struct oj_row_worker shared;
    struct similar_needs needs[OJ_SIMILAR_ROUNDS];
    int64_t n_open;
    struct similar_candidate open[OJ_SIMILAR_AT_ONCE];
    /* bitmaps and classes of the entries of the current list, and a bitmap of
     * those entries that may be pairs of a row */
    uint64_t *word, *near;
    uint32_t *class;
    int64_t cap_word, cap_near, cap_class;
};

struct similar_batch
{
    struct oj_stats *stats; /* its member `choice` gets a text on the choice
                               between lists and bitmaps */
    struct similar_index *self;
    struct oj_similar_sides sides;
    struct similar_side own;          /* the input rows; unused if is_self */
    const struct similar_side *input; /* &own, or &self->side if is_self */
    int is_self;                      /* 1: the input equals the join side, so
                                         each pair is found once and stored in
                                         both directions */
    int64_t n;                        /* number of input rows that have
                                         tokens */
    struct similar_worker *worker;    /* [n_threads] owned by the index */

    /* Used for joins without k. */
    struct similar_needs *needs; /* [input->n_classes] */
    oj_token_planes_near *near;
};

OJ_MUST_USE oj_status oj_similar_needed_tokens_make(
    const struct similar_index *self, const struct oj_text_condition *condition,
    int64_t size, struct similar_needs *out, struct oj_error *err);

void oj_similar_needed_tokens_free(struct similar_needs *needs);

/* Returns the first class in [low, high) whose sets need more than `common`
 * common tokens. */
static inline int64_t
oj_similar_first_class_needing_more(const struct similar_needs *needs,
                                    int64_t low, int64_t high, int64_t common)
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

/* Returns the first entry of a list whose class is this one or a higher one. */
OJ_INLINE const struct similar_entry *
oj_similar_first_entry_of_class(const struct similar_entry *e, int64_t n,
                                int64_t class)
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

/* Returns the number of common tokens of two sets; 0 if their first common
 * token is not `token`. */
OJ_INLINE int64_t oj_similar_count_common(const struct oj_token_sets *in,
                                          int64_t row,
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

/* Adds the pair of row and feature with this number of common tokens, and also
 * the reverse pair if is_self. */
OJ_MUST_USE oj_status oj_similar_store_both_pairs(struct similar_batch *b,
                                                  int thread, int64_t row,
                                                  int64_t feature,
                                                  int64_t common,
                                                  struct oj_error *err);

/* Estimates how many entries the join by lists compares with rows, from a
 * sample of rows at equal intervals. */
double oj_similar_estimate_list_work(const struct similar_batch *b);

/* Joins the batch by lists, token by token: rows with the token in their prefix
 * against features with it in theirs. */
OJ_MUST_USE oj_status oj_similar_join_lists(struct similar_batch *b,
                                            struct oj_error *err);

/* Estimated cost of comparing all pairs of token sets whose sizes can satisfy
 * the threshold by bitmaps. The sampled pairs depend on the sets only, so an
 * estimate can be repeated. */
struct similar_bitmap_work
{
    int n_words;         /* words of a set */
    double n_pairs;      /* number of pairs, exact */
    double n_words_read; /* mean number of words read per pair */
    double near;         /* fraction of pairs that the words read do not
                            exclude */
    double near_bits;    /* fraction of pairs that the 128 bits of a set do not
                            exclude */
};

OJ_MUST_USE oj_status oj_similar_estimate_bitmap_work(
    const struct similar_batch *b, struct similar_bitmap_work *out,
    struct oj_error *err);

/* Joins the batch by bitmaps of all tokens. */
OJ_MUST_USE oj_status oj_similar_join_bitmaps(struct similar_batch *b,
                                              struct oj_error *err);

#endif
