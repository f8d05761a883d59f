/** What oj_aggregate_state.c gathers and oj_aggregate_result.c reads.
 *
 *  The state of a row is one run of words, so that adding a pair touches few
 *  cache lines:
 *
 *   row 0                                            row 1
 *   [pairs | n of column 0 | sum ... | min ... | ...][pairs | ...
 */
#ifndef OJ_AGGREGATE_STATE_H
#define OJ_AGGREGATE_STATE_H

#include "../base/oj_exact_sum.h"
#include "oj_aggregate.h"

/** An integer of 128 bits in two's complement, aligned as words are. */
struct oj_long_sum
{
    uint64_t low;
    int64_t high;
};

/** The value that min, max, first or last has chosen so far; valid when the
 *  column has values. */
struct oj_chosen
{
    int64_t fid, place; /**< first, last */
    uint64_t number;    /**< min, max: as oj_number_order(); else the bits */
    char *bytes;        /**< [capacity], owned */
    int64_t n_bytes, capacity;
};

/** Where a column's part of a row's state is: words from its start; < 0: not
 *  kept. */
struct oj_column_state
{
    int n;        /**< int64_t: values */
    int long_sum; /**< struct oj_long_sum */
    int sum;      /**< struct oj_exact_sum */
    int squares;  /**< struct oj_exact_sum */
    int sorted;   /**< place of the store of all values, in order; < 0: none */
};

/** Values of one column that are held, and what was made of those of a row. */
struct oj_store
{
    struct oj_held *held;
    int column;
    enum oj_held_order order;
    const char *separator; /**< by place: all its aggregates are one */
    int64_t row;           /**< what follows is of this row; -1: of none */
    int64_t n_unique;
    uint64_t middle[2];       /**< by number: the one or two in the middle */
    uint64_t mode;            /**< by number */
    char *text, *other;       /**< the mode by bytes, or the joined text */
    int64_t n_text, cap_text; /**< of text */
    int64_t n_other, cap_other;
};

struct oj_aggregates
{
    struct oj_aggregate_plan plan;
    struct oj_column_state *columns; /**< [plan.n_columns] */
    int *state; /**< [plan.n_aggregates] of min, max, first, last (struct
                     oj_chosen) and weighted sums (struct oj_exact_sum): words
                     from the start; of concat: its store; else -1 */
    struct oj_store *stores;
    int n_stores;
    int words;      /**< of a row */
    uint64_t *rows; /**< [n_rows * words] */
    int64_t n_rows, cap_words;
    int64_t n_to_check; /**< pairs until the memory is looked at again */
    int owns_memory;    /**< a row may own memory: chosen bytes, wide sums */
};

static inline uint64_t *oj_row_state(const struct oj_aggregates *aggregates,
                                     int64_t row)
{
    return aggregates->rows + row * aggregates->words;
}

/** A number whose unsigned order is that of the values: NaN last. */
uint64_t oj_number_order(enum oj_aggregate_type type,
                         const struct oj_aggregate_value *value);

/** The value again, but for -0 and the bits of a NaN. */
void oj_number_value(enum oj_aggregate_type type, uint64_t number,
                     struct oj_aggregate_value *value);

/** 1 for min, max, first and last, which keep one of the values. */
int oj_aggregate_chooses(enum oj_aggregate_kind kind);

/** Adds a value of column c, not NULL, to the sums of a row. */
OJ_MUST_USE oj_status oj_row_add_sums(struct oj_aggregates *aggregates,
                                      uint64_t *state, int c,
                                      const struct oj_aggregate_value *value,
                                      struct oj_error *err);

/** Makes one the choice of aggregate i in a row where it is better than what
 *  there is, if the column has values so far; its bytes are copied. */
OJ_MUST_USE oj_status oj_row_choose(struct oj_aggregates *aggregates,
                                    uint64_t *state, int i,
                                    const struct oj_chosen *one,
                                    struct oj_error *err);

/** Makes what store says of row right. */
OJ_MUST_USE oj_status oj_store_go_to(struct oj_store *store, int64_t row,
                                     int64_t n_values, struct oj_error *err);

#endif
