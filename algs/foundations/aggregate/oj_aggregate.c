#include "oj_aggregate.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../base/oj_exact_sum.h"
#include "../kernels/oj_sum_limbs.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

/* The state of a row, in which all its aggregates accumulate, is a contiguous
 * run of words in oj_aggregates.rows, so that adding a pair reads few cache
 * lines. */

enum
{
    WORD = 8,              /* bytes of a word of the state */
    PAIRS_UNCHECKED = 256, /* pairs between two checks of the memory in use */
    AHEAD = 16             /* prefetch distance, in pairs */
};

#define WORDS_OF(type) ((int)(sizeof(type) / WORD))

/* The value that min, max, first or last has chosen among the values so far;
 * not valid before the first value. */
struct chosen
{
    int64_t key[2]; /* sort key. For first and last: (FID, reading position).
                       For min and max of numbers: key[0] orders like the
                       number, key[1] is 0. Not used for min and max of bytes */
    uint64_t bits;  /* the value, if it is a number */
    char *bytes;    /* [capacity] the value, if it is bytes; owned */
    int64_t n_bytes, capacity;
};

/* The state that all aggregates of a column share. The first four members are
 * offsets in the state of a row, in words; a negative offset means that no
 * aggregate needs the part. */
struct column_state
{
    int n;        /* number of values (int64_t) */
    int long_sum; /* sum as a 128-bit integer in two's complement */
    int sum;      /* struct oj_exact_sum */
    int squares;  /* sum of squares (struct oj_exact_sum) */
    int sorted;   /* index of the column's sorted values in `stores`; < 0: not
                     needed */
    int is_of_pairs; /* 1: one value per pair; 0: one per join feature */
};

struct text
{
    char *bytes;
    int64_t n, capacity;
};

/* A percentile of a column, and the two values around its position for the
 * current row. */
struct percentile
{
    int store; /* index of the column's sorted values in `stores` */
    double percent, fraction; /* fraction: weight of the second value in the
                                 interpolation */
    int64_t low, high; /* positions of the two values among the sorted ones */
    uint64_t value[2]; /* the two values, as sortable numbers */
};

/* All values of a column, sorted, and the results that were computed from the
 * values of one row. */
struct store
{
    struct oj_value_sort *held;
    int column;
    int has_minority; /* 1: an aggregate needs the rarest value */
    enum oj_value_sort_order order;
    const char *separator; /* for concat; aggregates with another separator use
                              another store */
    int64_t row; /* the row whose results the members below hold; -1: none */
    int64_t n_unique;
    uint64_t middle[2]; /* if values are numbers: the two in the middle of the
                           order; equal for an odd number of values */
    uint64_t mode;      /* most frequent value, if values are numbers */
    uint64_t minority;  /* rarest value, if values are numbers */
    struct text text;   /* most frequent value, if values are bytes; for concat
                           the joined text */
    struct text rarest; /* rarest value, if values are bytes */
    struct text other;  /* scratch for bytes: the value that is being counted */
};

struct oj_aggregates
{
    struct oj_aggregate_plan plan;
    struct column_state *columns; /* [plan.n_columns] where the shared state of
                                     each column is */
    int *state; /* [plan.n_aggregates] where the state of each aggregate is.
                   Offset in words of the row's state for min, max, first and
                   last (struct chosen), range (two numbers), weighted sum
                   (struct oj_exact_sum) and weighted mean (two of them). For
                   concat: index in stores. For percentile: index in
                   percentiles. Otherwise -1. */
    struct store *stores;
    int n_stores;
    struct percentile *percentiles;
    int n_percentiles;
    int words;      /* size of the state of a row, in words */
    uint64_t *rows; /* [n_rows * words] states of all rows */
    int64_t n_rows, cap_words;
    int64_t n_to_check; /* number of pairs until the memory in use is checked
                           again */
    int owns_memory;    /* 1: the state of a row can own memory: chosen bytes,
                           wide sums */
    /* number of aggregates with a part of their own in the state of a row (flag
     * SINGLE); the others share the state of their column */
    int n_single;
    int64_t *sum_words; /* [cap_sum_words] words of all rows into which a
                           backend adds (oj_sum_request.h) */
    int64_t cap_sum_words;
};

static inline uint64_t *row_state(const struct oj_aggregates *aggregates,
                                  int64_t row)
{
    return aggregates->rows + row * aggregates->words;
}

_Static_assert(sizeof(struct oj_exact_sum) % WORD == 0 &&
                   sizeof(struct chosen) % WORD == 0,
               "the state of a row is made of words");

static const struct oj_aggregate_function functions[] = {
    {"count", OJ_AGG_COUNT, OJ_AGG_TAKES_ANY, NAN},
    {"sum", OJ_AGG_SUM, OJ_AGG_TAKES_NUMBERS, NAN},
    {"mean", OJ_AGG_MEAN, OJ_AGG_TAKES_NUMBERS, NAN},
    {"min", OJ_AGG_MIN, OJ_AGG_TAKES_ORDERED_GIVES_ONE, NAN},
    {"max", OJ_AGG_MAX, OJ_AGG_TAKES_ORDERED_GIVES_ONE, NAN},
    {"range", OJ_AGG_RANGE, OJ_AGG_TAKES_NUMBERS, NAN},
    {"median", OJ_AGG_MEDIAN, OJ_AGG_TAKES_NUMBERS, NAN},
    {"percentile", OJ_AGG_PERCENTILE, OJ_AGG_TAKES_NUMBERS, NAN},
    {"q1", OJ_AGG_PERCENTILE, OJ_AGG_TAKES_NUMBERS, 25.0},
    {"q3", OJ_AGG_PERCENTILE, OJ_AGG_TAKES_NUMBERS, 75.0},
    {"stddev", OJ_AGG_STDDEV, OJ_AGG_TAKES_NUMBERS, NAN},
    {"variance", OJ_AGG_VARIANCE, OJ_AGG_TAKES_NUMBERS, NAN},
    {"first", OJ_AGG_FIRST, OJ_AGG_TAKES_ORDERED_GIVES_ONE, NAN},
    {"last", OJ_AGG_LAST, OJ_AGG_TAKES_ORDERED_GIVES_ONE, NAN},
    {"mode", OJ_AGG_MODE, OJ_AGG_TAKES_ORDERED_GIVES_ONE, NAN},
    {"minority", OJ_AGG_MINORITY, OJ_AGG_TAKES_ORDERED_GIVES_ONE, NAN},
    {"unique", OJ_AGG_UNIQUE, OJ_AGG_TAKES_ORDERED, NAN},
    {"concat", OJ_AGG_CONCAT, OJ_AGG_TAKES_WRITTEN, NAN},
    {"weighted_sum", OJ_AGG_WEIGHTED_SUM, OJ_AGG_TAKES_NUMBERS, NAN},
    {"weighted_mean", OJ_AGG_WEIGHTED_MEAN, OJ_AGG_TAKES_NUMBERS, NAN},
    {"covered_area", OJ_AGG_COVERED, OJ_AGG_TAKES_NUMBERS, NAN},
    {"covered_percent", OJ_AGG_COVERED, OJ_AGG_TAKES_NUMBERS, NAN},
    {"covered_length", OJ_AGG_COVERED, OJ_AGG_TAKES_NUMBERS, NAN},
};

/* Names of functions in other programs (`there`, without _ and spaces), and
 * their names here. */
static const struct
{
    const char *there, *here;
    int is_synonym; /* 1: also accepted here; 0: only for the message that
                       suggests `here` */
} other_names[] = {
    {"avg", "mean", 1}, /* as in SQL */
    {"average", "mean", 0},
    {"std", "stddev", 0},
    {"stdev", "stddev", 0},
    {"sd", "stddev", 0},
    {"stddevsamp", "stddev", 0},
    {"stdevsamp", "stddev", 0},
    {"samplestddev", "stddev", 0},
    {"var", "variance", 0},
    {"varsamp", "variance", 0},
    {"nunique", "unique", 0},
    {"distinct", "unique", 0},
    {"ndistinct", "unique", 0},
    {"countdistinct", "unique", 0},
    {"countunique", "unique", 0},
    {"approxcountdistinct", "unique", 0},
    {"variety", "unique", 0},
    {"minimum", "min", 0},
    {"maximum", "max", 0},
    {"size", "count", 0},
    {"total", "sum", 0},
    {"ptp", "range", 0},
    {"majority", "mode", 0},
    {"mostcommon", "mode", 0},
    {"rarest", "minority", 0},
    {"leastcommon", "minority", 0},
    {"quantile", "percentile(F, 90), from 0 to 100", 0},
    {"percentilecont", "percentile(F, 90), from 0 to 100", 0},
    {"quantilecont", "percentile(F, 90), from 0 to 100", 0},
    {"firstquartile", "q1", 0},
    {"lowerquartile", "q1", 0},
    {"thirdquartile", "q3", 0},
    {"upperquartile", "q3", 0},
    {"stringagg", "concat", 0},
    {"groupconcat", "concat", 0},
    {"listagg", "concat", 0},
    {"arrayagg", "concat", 0},
    {"concatenate", "concat", 0},
    {"anyvalue", "first", 0},
    {"wavg", "weighted_mean", 0},
    {"weightedaverage", "weighted_mean", 0},
    {"areaweightedmean", "weighted_mean", 0},
};

static const struct oj_aggregate_function *find_function(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    {
        if (strcasecmp(functions[i].name, name) == 0)
            return &functions[i];
    }
    return NULL;
}

/* Returns the index of a name in other_names, or -1. */
static int find_name_of_other_software(const char *name)
{
    char plain[24];
    size_t n = 0;
    for (const char *at = name; *at != '\0' && n + 1 < sizeof plain; at++)
    {
        if (*at != '_' && *at != ' ')
            plain[n++] = *at;
    }
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
    {
        if (strcasecmp(other_names[i].there, plain) == 0)
            return (int)i;
    }
    return -1;
}

oj_status oj_aggregate_find(const char *before, const char *name,
                            const struct oj_aggregate_function **out,
                            struct oj_error *err)
{
    const struct oj_aggregate_function *found = find_function(name);
    int other = found == NULL ? find_name_of_other_software(name) : -1;
    if (other >= 0 && other_names[other].is_synonym)
        found = find_function(other_names[other].here);
    if (found != NULL)
    {
        *out = found;
        return OJ_OK;
    }
    if (name[0] == '\0')
        return oj_fail(err, OJ_ERR_ARG, "%sa function is missing; there are %s",
                       before, OJ_AGGREGATE_NAMES);
    if (other >= 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "%sthere is no function '%.60s'; write %s", before, name,
                       other_names[other].here);
    return oj_fail(err, OJ_ERR_ARG,
                   "%sthere is no function '%.60s'; there are %s", before, name,
                   OJ_AGGREGATE_NAMES);
}

enum oj_aggregate_type oj_aggregate_type(enum oj_aggregate_kind kind,
                                         enum oj_aggregate_type column)
{
    switch (kind)
    {
        case OJ_AGG_COUNT:
        case OJ_AGG_COUNT_VALUES:
        case OJ_AGG_UNIQUE:
            return OJ_AGG_INTEGER;
        case OJ_AGG_MEAN:
        case OJ_AGG_MEDIAN:
        case OJ_AGG_STDDEV:
        case OJ_AGG_WEIGHTED_SUM:
        case OJ_AGG_VARIANCE:
        case OJ_AGG_PERCENTILE:
        case OJ_AGG_WEIGHTED_MEAN:
            return OJ_AGG_REAL;
        case OJ_AGG_CONCAT:
            return OJ_AGG_BYTES;
        default:
            return column;
    }
}

static const uint64_t sign_bit = UINT64_C(1) << 63;

/* Returns an unsigned integer that sorts like the number (a sortable number).
 * NaN is last, and 0 and -0 give equal integers. */
static uint64_t encode_sortable_number(enum oj_aggregate_type type,
                                       const struct oj_aggregate_value *value)
{
    double real = value->real + 0.0; /* turns -0 into 0 */
    uint64_t bits;
    if (type == OJ_AGG_INTEGER)
        return (uint64_t)value->integer ^ sign_bit;
    if (real != real)
        return UINT64_MAX;
    memcpy(&bits, &real, sizeof bits);
    return (bits & sign_bit) != 0 ? ~bits : bits | sign_bit;
}

static void decode_sortable_number(enum oj_aggregate_type type, uint64_t number,
                                   struct oj_aggregate_value *value)
{
    uint64_t bits = (number & sign_bit) != 0 ? number ^ sign_bit : ~number;
    value->is_null = 0;
    if (type == OJ_AGG_INTEGER)
        value->integer = (int64_t)(number ^ sign_bit);
    else
        memcpy(&value->real, &bits, sizeof bits);
}

/* ---- opening ------------------------------------------------------------- */

/* Returns the index of the store for a column, an order and, for
 * OJ_VALUE_SORT_BY_PLACE, a separator. Adds the store if there is none. */
static int find_or_add_value_store(struct oj_aggregates *a, int column,
                                   enum oj_value_sort_order order,
                                   const char *separator)
{
    struct store *store = a->stores;
    for (int i = 0; i < a->n_stores; i++, store++)
    {
        if (store->column == column && store->order == order &&
            (order != OJ_VALUE_SORT_BY_PLACE ||
             strcmp(store->separator, separator) == 0))
            return i;
    }
    store->column = column;
    store->order = order;
    store->separator = separator;
    store->row = -1;
    return a->n_stores++;
}

/* Properties of each kind of aggregate. */
enum
{
    OF_NUMBERS = 1, /* accepts only numbers */
    OF_TEXTS = 2,   /* accepts only texts; sorted by (FID, reading position) */
    SINGLE = 4,   /* has its own part of the row's state, not shared with other
                     aggregates of the column */
    SUMMED = 8,   /* uses the sum of the column */
    SQUARED = 16, /* uses the sum (as reals) and the sum of squares */
    SORTED = 32   /* uses all values of the column, sorted */
};

static const unsigned char traits[] = {
    [OJ_AGG_COUNT] = 0,
    [OJ_AGG_COUNT_VALUES] = 0,
    [OJ_AGG_SUM] = OF_NUMBERS | SUMMED,
    [OJ_AGG_MEAN] = OF_NUMBERS | SUMMED,
    [OJ_AGG_MIN] = SINGLE,
    [OJ_AGG_MAX] = SINGLE,
    [OJ_AGG_MEDIAN] = OF_NUMBERS | SORTED,
    [OJ_AGG_STDDEV] = OF_NUMBERS | SQUARED,
    [OJ_AGG_FIRST] = SINGLE,
    [OJ_AGG_LAST] = SINGLE,
    [OJ_AGG_MODE] = SORTED,
    [OJ_AGG_UNIQUE] = SORTED,
    [OJ_AGG_CONCAT] = OF_TEXTS,
    [OJ_AGG_WEIGHTED_SUM] = OF_NUMBERS | SINGLE,
    [OJ_AGG_VARIANCE] = OF_NUMBERS | SQUARED,
    [OJ_AGG_PERCENTILE] = OF_NUMBERS | SORTED,
    [OJ_AGG_RANGE] = OF_NUMBERS | SINGLE,
    [OJ_AGG_MINORITY] = SORTED,
    [OJ_AGG_COVERED] = OF_NUMBERS | SINGLE,
    [OJ_AGG_WEIGHTED_MEAN] = OF_NUMBERS | SINGLE,
};

static int has_own_state(enum oj_aggregate_kind kind)
{
    return (traits[kind] & SINGLE) != 0;
}

/* Returns the size in words of the part of a row's state that only this
 * aggregate uses. */
static int words_of_own_state(enum oj_aggregate_kind kind)
{
    switch (kind)
    {
        case OJ_AGG_RANGE:
        case OJ_AGG_COVERED:
            return 2; /* minimum and maximum, as sortable numbers; while no
                         value was added, the second is 1 if the result of
                         OJ_AGG_COVERED is undefined */
        case OJ_AGG_WEIGHTED_SUM:
            return WORDS_OF(struct oj_exact_sum);
        case OJ_AGG_WEIGHTED_MEAN:
            return 2 * WORDS_OF(struct oj_exact_sum);
        default:
            return WORDS_OF(struct chosen);
    }
}

/* Returns 1 if the part of the state that only this aggregate uses is a struct
 * chosen. */
static int chooses_value(enum oj_aggregate_kind kind)
{
    return kind == OJ_AGG_MIN || kind == OJ_AGG_MAX || kind == OJ_AGG_FIRST ||
           kind == OJ_AGG_LAST;
}

static int assign_state_offset(struct oj_aggregates *a, int n)
{
    int at = a->words;
    a->words += n;
    return at;
}

static void assign_offset_if_unset(struct oj_aggregates *a, int *at, int n)
{
    if (*at < 0)
        *at = assign_state_offset(a, n);
}

/* Reserves in the row's state the parts that aggregate i needs. */
static void assign_offsets_of_aggregate(struct oj_aggregates *a, int i)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const int sum_words = WORDS_OF(struct oj_exact_sum);
    enum oj_aggregate_type type;
    struct column_state *column;
    unsigned of = traits[what->kind];
    if (what->kind == OJ_AGG_COUNT)
        return;
    type = a->plan.types[what->column];
    column = &a->columns[what->column];
    assign_offset_if_unset(a, &column->n, 1);
    a->n_single += has_own_state(what->kind);
    if ((of & SUMMED) && type == OJ_AGG_INTEGER)
        assign_offset_if_unset(a, &column->long_sum, WORDS_OF(s128));
    else if (of & (SUMMED | SQUARED))
        assign_offset_if_unset(a, &column->sum, sum_words);
    if (of & SQUARED)
        assign_offset_if_unset(a, &column->squares, sum_words);
    if (of & SINGLE)
        a->state[i] = assign_state_offset(a, words_of_own_state(what->kind));
    if (of & SORTED)
        column->sorted = find_or_add_value_store(a, what->column,
                                                 type == OJ_AGG_BYTES
                                                     ? OJ_VALUE_SORT_BY_BYTES
                                                     : OJ_VALUE_SORT_BY_NUMBER,
                                                 NULL);
    if (what->kind == OJ_AGG_MINORITY)
        a->stores[column->sorted].has_minority = 1;
    if (what->kind == OJ_AGG_PERCENTILE)
    {
        a->percentiles[a->n_percentiles].store = column->sorted;
        a->percentiles[a->n_percentiles].percent = what->percent;
        a->state[i] = a->n_percentiles++;
    }
    if (of & OF_TEXTS)
        a->state[i] = find_or_add_value_store(
            a, what->column, OJ_VALUE_SORT_BY_PLACE, what->separator);
}

static oj_status check_aggregate_columns(const struct oj_aggregate_plan *plan,
                                         struct oj_error *err)
{
    for (int i = 0; i < plan->n_aggregates; i++)
    {
        const struct oj_aggregate *what = &plan->aggregates[i];
        int is_bytes;
        if (what->kind == OJ_AGG_COUNT)
            continue;
        if (what->column < 0 || what->column >= plan->n_columns)
            return oj_fail_internal(
                err, "aggregate %d of a plan names column %d of %d", i,
                what->column, plan->n_columns);
        is_bytes = plan->types[what->column] == OJ_AGG_BYTES;
        if ((traits[what->kind] & OF_NUMBERS) && is_bytes)
            return oj_fail_internal(
                err, "aggregate %d of a plan needs a column of numbers", i);
        if (what->kind == OJ_AGG_WEIGHTED_MEAN &&
            (what->weight < 0 || what->weight >= plan->n_columns ||
             plan->types[what->weight] == OJ_AGG_BYTES))
            return oj_fail_internal(err,
                                    "aggregate %d of a plan needs a column of "
                                    "weights, which are numbers",
                                    i);
        if (what->kind == OJ_AGG_PERCENTILE &&
            !(what->percent >= 0.0 && what->percent <= 100.0))
            return oj_fail_internal(err,
                                    "aggregate %d of a plan needs a percentage "
                                    "from 0 to 100, not %g",
                                    i, what->percent);
        if ((traits[what->kind] & OF_TEXTS) && !is_bytes)
            return oj_fail_internal(
                err, "aggregate %d of a plan needs a column of texts", i);
    }
    return OJ_OK;
}

static oj_status allocate_state_layout(struct oj_aggregates *a,
                                       struct oj_error *err)
{
    int n = a->plan.n_aggregates, n_columns = a->plan.n_columns;
    a->state = oj_malloc(n, sizeof *a->state);
    a->columns = oj_malloc(n_columns, sizeof *a->columns);
    a->stores = oj_calloc(n, sizeof *a->stores);
    a->percentiles = oj_calloc(n, sizeof *a->percentiles);
    if (a->state == NULL || a->columns == NULL || a->stores == NULL ||
        a->percentiles == NULL)
        return oj_fail_nomem(err, n, sizeof *a->stores);
    memset(a->state, -1, (size_t)n * sizeof *a->state);
    memset(a->columns, -1, (size_t)n_columns * sizeof *a->columns);
    for (int c = 0; c < n_columns; c++)
        a->columns[c].is_of_pairs =
            a->plan.is_of_pairs != NULL && a->plan.is_of_pairs[c];
    return OJ_OK;
}

static oj_status make_aggregates(struct oj_aggregates *a, struct oj_error *err)
{
    OJ_TRY(check_aggregate_columns(&a->plan, err));
    OJ_TRY(allocate_state_layout(a, err));
    a->words = 1; /* word 0 is the number of pairs */
    for (int i = 0; i < a->plan.n_aggregates; i++)
        assign_offsets_of_aggregate(a, i);
    for (int i = 0; i < a->n_stores; i++)
        OJ_TRY(oj_value_sort_open(a->stores[i].order, a->plan.files,
                                  &a->stores[i].held, err));
    return OJ_OK;
}

oj_status oj_aggregates_open(const struct oj_aggregate_plan *plan,
                             struct oj_aggregates **out, struct oj_error *err)
{
    struct oj_aggregates *a;
    oj_status status;
    OJ_NEW_ZEROED(a, 1, err);
    a->plan = *plan;
    status = make_aggregates(a, err);
    if (status == OJ_OK)
        *out = a;
    else
        oj_aggregates_close(a);
    return status;
}

static void clear_exact_sum_at(uint64_t *state, int at)
{
    if (at >= 0)
        oj_exact_sum_clear((struct oj_exact_sum *)(void *)(state + at));
}

/* Frees the memory that rows own. */
static void free_rows(struct oj_aggregates *a)
{
    for (int64_t row = 0; a->owns_memory && row < a->n_rows; row++)
    {
        uint64_t *state = row_state(a, row);
        for (int c = 0; c < a->plan.n_columns; c++)
        {
            clear_exact_sum_at(state, a->columns[c].sum);
            clear_exact_sum_at(state, a->columns[c].squares);
        }
        for (int i = 0; i < a->plan.n_aggregates; i++)
        {
            enum oj_aggregate_kind kind = a->plan.aggregates[i].kind;
            if (kind == OJ_AGG_WEIGHTED_SUM || kind == OJ_AGG_WEIGHTED_MEAN)
                clear_exact_sum_at(state, a->state[i]);
            if (kind == OJ_AGG_WEIGHTED_MEAN)
                clear_exact_sum_at(state,
                                   a->state[i] + WORDS_OF(struct oj_exact_sum));
            if (chooses_value(kind))
                oj_free(
                    ((struct chosen *)(void *)(state + a->state[i]))->bytes);
        }
    }
    a->owns_memory = 0;
    a->n_rows = 0;
}

void oj_aggregates_close(struct oj_aggregates *a)
{
    if (a == NULL)
        return;
    free_rows(a);
    for (int i = 0; i < a->n_stores; i++)
    {
        oj_value_sort_close(a->stores[i].held);
        oj_free(a->stores[i].text.bytes);
        oj_free(a->stores[i].other.bytes);
        oj_free(a->stores[i].rarest.bytes);
    }
    oj_free(a->rows);
    oj_free(a->sum_words);
    oj_free(a->stores);
    oj_free(a->percentiles);
    oj_free(a->columns);
    oj_free(a->state);
    oj_free(a);
}

oj_status oj_aggregates_reset(struct oj_aggregates *a, int64_t n_rows,
                              struct oj_error *err)
{
    free_rows(a);
    a->n_to_check = PAIRS_UNCHECKED;
    for (int i = 0; i < a->n_stores; i++)
    {
        oj_value_sort_clear(a->stores[i].held);
        a->stores[i].row = -1;
    }
    return oj_aggregates_extend(a, n_rows, err);
}

oj_status oj_aggregates_extend(struct oj_aggregates *a, int64_t n_rows,
                               struct oj_error *err)
{
    int64_t used = a->n_rows * a->words;
    if (n_rows <= a->n_rows)
        return OJ_OK;
    if (n_rows > INT64_MAX / a->words)
        return oj_fail_nomem(err, n_rows, WORD);
    OJ_TRY(oj_reserve(&a->rows, used, n_rows * a->words, &a->cap_words, WORD,
                      err));
    memset(a->rows + used, 0, (size_t)(n_rows * a->words - used) * WORD);
    a->n_rows = n_rows;
    return OJ_OK;
}

/* ---- adding pairs -------------------------------------------------------- */

static struct oj_exact_sum *exact_sum_at(uint64_t *state, int at)
{
    return (void *)(state + at);
}

/* Adds x to a 128-bit sum, which cannot overflow with up to 2^63 values. */
static void add_to_128bit_sum(uint64_t *state, s128 x)
{
    u128 sum;
    memcpy(&sum, state, sizeof sum);
    sum += (u128)x;
    memcpy(state, &sum, sizeof sum);
}

static s128 read_128bit_sum(const uint64_t *state)
{
    s128 sum;
    memcpy(&sum, state, sizeof sum);
    return sum;
}

static inline oj_status add_to_exact_sum(struct oj_aggregates *a,
                                         struct oj_exact_sum *sum, double x,
                                         struct oj_error *err)
{
    if (oj_exact_sum_add_fast(sum, x))
        return OJ_OK;
    OJ_TRY(oj_exact_sum_add(sum, x, err));
    a->owns_memory |= sum->is_wide;
    return OJ_OK;
}

/* Returns the index, in column c, of the value that belongs to pair p. */
static inline int64_t
index_of_pair_value(const struct oj_aggregates *a, int c,
                    const struct oj_aggregate_pairs *pairs, int64_t p)
{
    return a->columns[c].is_of_pairs ? p : pairs->at[p];
}

/* Adds a value of column c to its sum and sum of squares (stddev, variance). */
static oj_status
add_to_sum_and_squares(struct oj_aggregates *a, uint64_t *state, int c,
                       const struct oj_aggregate_column *column, int64_t at,
                       struct oj_error *err)
{
    struct oj_exact_sum *sum = exact_sum_at(state, a->columns[c].sum);
    struct oj_exact_sum *squares = exact_sum_at(state, a->columns[c].squares);
    if (a->plan.types[c] == OJ_AGG_REAL)
    {
        OJ_TRY(oj_exact_sum_add(sum, column->real[at], err));
        OJ_TRY(oj_exact_sum_add_square(squares, column->real[at], err));
    }
    else
    {
        OJ_TRY(oj_exact_sum_add_integer(sum, column->integer[at], err));
        OJ_TRY(
            oj_exact_sum_add_integer_square(squares, column->integer[at], err));
    }
    a->owns_memory |= sum->is_wide | squares->is_wide;
    return OJ_OK;
}

/* Adds a value of column c to the state that the column's aggregates share. */
static inline oj_status
add_to_column_state(struct oj_aggregates *a, uint64_t *state, int c,
                    const struct oj_aggregate_column *column, int64_t at,
                    struct oj_error *err)
{
    const struct column_state *to = &a->columns[c];
    if (column->is_null != NULL && column->is_null[at])
        return OJ_OK;
    if (to->n >= 0)
        state[to->n]++;
    if (to->long_sum >= 0)
        add_to_128bit_sum(state + to->long_sum, column->integer[at]);
    if (to->squares >= 0)
        return add_to_sum_and_squares(a, state, c, column, at, err);
    return to->sum < 0 ? OJ_OK
                       : add_to_exact_sum(a, exact_sum_at(state, to->sum),
                                          column->real[at], err);
}

static struct oj_aggregate_value
read_column_value(enum oj_aggregate_type type,
                  const struct oj_aggregate_column *column, int64_t at)
{
    struct oj_aggregate_value value = {0};
    value.is_null = column->is_null != NULL && column->is_null[at];
    if (value.is_null)
        return value;
    if (type == OJ_AGG_INTEGER)
        value.integer = column->integer[at];
    else if (type == OJ_AGG_REAL)
        value.real = column->real[at];
    else
    {
        value.bytes = column->bytes[at].bytes;
        value.n_bytes = column->bytes[at].n;
    }
    return value;
}

/* Returns 1 if the aggregate prefers the new value to the one chosen so far. */
static int replaces_chosen_value(enum oj_aggregate_kind kind,
                                 enum oj_aggregate_type type,
                                 const struct chosen *old,
                                 const struct chosen *one)
{
    int c = (one->key[0] > old->key[0]) - (one->key[0] < old->key[0]);
    if (c == 0)
        c = (one->key[1] > old->key[1]) - (one->key[1] < old->key[1]);
    if (type == OJ_AGG_BYTES && (kind == OJ_AGG_MIN || kind == OJ_AGG_MAX))
        c = oj_bytes_compare(one->bytes, one->n_bytes, old->bytes,
                             old->n_bytes);
    return kind == OJ_AGG_MIN || kind == OJ_AGG_FIRST ? c < 0 : c > 0;
}

/* Replaces the value that aggregate i has chosen if the new value is better.
 * Copies bytes. */
static oj_status replace_chosen_if_better(struct oj_aggregates *a,
                                          uint64_t *state, int i,
                                          const struct chosen *one,
                                          struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    enum oj_aggregate_type type = a->plan.types[what->column];
    struct chosen *old = (void *)(state + a->state[i]);
    if (state[a->columns[what->column].n] > 0 &&
        !replaces_chosen_value(what->kind, type, old, one))
        return OJ_OK;
    if (type == OJ_AGG_BYTES)
    {
        a->owns_memory = 1;
        OJ_TRY(oj_reserve(&old->bytes, 0, one->n_bytes + 1, &old->capacity, 1,
                          err));
        if (one->n_bytes > 0)
            memcpy(old->bytes, one->bytes, (size_t)one->n_bytes);
    }
    memcpy(old->key, one->key, sizeof old->key);
    old->bits = one->bits;
    old->n_bytes = one->n_bytes;
    return OJ_OK;
}

/* Extends the range of aggregate i by a value. */
static void add_to_range(const struct oj_aggregates *a, uint64_t *state, int i,
                         const struct oj_aggregate_value *value)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    uint64_t *range = state + a->state[i];
    uint64_t number =
        encode_sortable_number(a->plan.types[what->column], value);
    int is_first = state[a->columns[what->column].n] == 0;
    if (is_first || number < range[0])
        range[0] = number;
    if (is_first || number > range[1])
        range[1] = number;
}

static struct oj_exact_factor
exact_factor_of_value(enum oj_aggregate_type type,
                      const struct oj_aggregate_value *value)
{
    return (struct oj_exact_factor){value->real, value->integer,
                                    type == OJ_AGG_INTEGER};
}

/* Adds a value and its weight to the two sums of aggregate i. */
static oj_status add_to_weighted_mean(struct oj_aggregates *a, uint64_t *state,
                                      int i,
                                      const struct oj_aggregate_value *value,
                                      const struct oj_aggregate_value *weight,
                                      struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const enum oj_aggregate_type *types = a->plan.types;
    struct oj_exact_sum *products = exact_sum_at(state, a->state[i]);
    struct oj_exact_sum *weights = products + 1;
    if (weight->is_null)
        return OJ_OK;
    OJ_TRY(oj_exact_sum_add_product(
        products, exact_factor_of_value(types[what->column], value),
        exact_factor_of_value(types[what->weight], weight), err));
    if (types[what->weight] == OJ_AGG_INTEGER)
        OJ_TRY(oj_exact_sum_add_integer(weights, weight->integer, err));
    else
        OJ_TRY(oj_exact_sum_add(weights, weight->real, err));
    a->owns_memory |= products->is_wide | weights->is_wide;
    return OJ_OK;
}

/* Adds pair p to the part of the state that aggregate i has for itself. */
static oj_status add_to_own_state(struct oj_aggregates *a, uint64_t *state,
                                  int i, const struct oj_aggregate_pairs *pairs,
                                  int64_t p, struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    enum oj_aggregate_type type = a->plan.types[what->column];
    const int32_t at = pairs->at[p];
    struct oj_aggregate_value weight,
        value =
            read_column_value(type, &pairs->columns[what->column],
                              index_of_pair_value(a, what->column, pairs, p));
    struct chosen one = {0};
    if (value.is_null)
        return OJ_OK;
    if (what->kind == OJ_AGG_RANGE || what->kind == OJ_AGG_COVERED)
    {
        add_to_range(a, state, i, &value);
        return OJ_OK;
    }
    if (what->kind == OJ_AGG_WEIGHTED_MEAN)
    {
        weight = read_column_value(
            a->plan.types[what->weight], &pairs->columns[what->weight],
            index_of_pair_value(a, what->weight, pairs, p));
        return add_to_weighted_mean(a, state, i, &value, &weight, err);
    }
    if (what->kind == OJ_AGG_WEIGHTED_SUM)
        return add_to_exact_sum(
            a, exact_sum_at(state, a->state[i]),
            (pairs->share != NULL ? pairs->share[p] : 1.0) *
                (type == OJ_AGG_INTEGER ? (double)value.integer : value.real),
            err);
    one.bytes = (char *)value.bytes; /* The cast removes const, but the bytes
                                        are only read. */
    one.n_bytes = value.n_bytes;
    if (what->kind == OJ_AGG_MIN || what->kind == OJ_AGG_MAX)
    {
        uint64_t number = encode_sortable_number(type, &value);
        one.key[0] = (int64_t)(number ^ sign_bit);
        /* -0 becomes 0, so that equal numbers have equal bits */
        decode_sortable_number(type, number, &value);
    }
    else
    {
        one.key[0] = pairs->fid[at];
        one.key[1] = pairs->place[at];
    }
    memcpy(&one.bits,
           type == OJ_AGG_INTEGER ? (const void *)&value.integer : &value.real,
           sizeof one.bits);
    return replace_chosen_if_better(a, state, i, &one, err);
}

/* Writes the largest stores to files until the memory in use is below the
 * limit. */
static oj_status spill_above_memory_bound(struct oj_aggregates *a,
                                          struct oj_error *err)
{
    a->n_to_check = PAIRS_UNCHECKED;
    while (a->plan.memory > 0)
    {
        int64_t total = 0, most = 0;
        int largest = 0;
        for (int i = 0; i < a->n_stores; i++)
        {
            int64_t bytes = oj_value_sort_bytes(a->stores[i].held);
            total += bytes;
            if (bytes > most)
            {
                most = bytes;
                largest = i;
            }
        }
        if (total <= a->plan.memory)
            break;
        OJ_TRY(oj_value_sort_spill(a->stores[largest].held, err));
    }
    return OJ_OK;
}

static oj_status
append_pair_values_to_stores(struct oj_aggregates *a,
                             const struct oj_aggregate_pairs *pairs, int64_t p,
                             struct oj_error *err)
{
    const int32_t at = pairs->at[p];
    for (int i = 0; i < a->n_stores; i++)
    {
        const struct store *store = &a->stores[i];
        enum oj_aggregate_type type = a->plan.types[store->column];
        const struct oj_aggregate_value value =
            read_column_value(type, &pairs->columns[store->column],
                              index_of_pair_value(a, store->column, pairs, p));
        struct oj_value_sort_value held = {0};
        if (value.is_null)
            continue;
        held.row = pairs->row[p];
        if (store->order == OJ_VALUE_SORT_BY_NUMBER)
            held.number = encode_sortable_number(type, &value);
        else if (store->order == OJ_VALUE_SORT_BY_PLACE)
        {
            held.fid = pairs->fid[at];
            held.place = pairs->place[at];
        }
        held.bytes = value.bytes;
        held.n_bytes = value.n_bytes;
        OJ_TRY(oj_value_sort_add(store->held, &held, err));
    }
    return --a->n_to_check > 0 ? OJ_OK : spill_above_memory_bound(a, err);
}

static inline void prefetch_row_state(const struct oj_aggregates *a,
                                      int64_t row)
{
    const uint64_t *state = row_state(a, row);
    __builtin_prefetch(state, 1);
    __builtin_prefetch(state + a->words - 1, 1);
}

/* Adds the values of a column for pairs p .. end - 1, all of one row, to the
 * state that the column's aggregates share. Reals without NULLs that are only
 * summed take a shorter loop. */
static oj_status add_run_to_column_state(struct oj_aggregates *a,
                                         uint64_t *state, int c,
                                         const struct oj_aggregate_pairs *pairs,
                                         int64_t p, int64_t end,
                                         struct oj_error *err)
{
    const struct column_state *to = &a->columns[c];
    const struct oj_aggregate_column *column = &pairs->columns[c];
    const int is_of_pairs = to->is_of_pairs;
    if (to->sum < 0 || to->squares >= 0 || column->is_null != NULL)
    {
        for (; p < end; p++)
            OJ_TRY(add_to_column_state(a, state, c, column,
                                       is_of_pairs ? p : pairs->at[p], err));
        return OJ_OK;
    }
    if (to->n >= 0)
        state[to->n] += (uint64_t)(end - p);
    for (; p < end; p++)
        OJ_TRY(add_to_exact_sum(a, exact_sum_at(state, to->sum),
                                column->real[is_of_pairs ? p : pairs->at[p]],
                                err));
    return OJ_OK;
}

/* Returns the end of the run of pairs that starts at p and has a common row. */
static int64_t find_end_of_run(const struct oj_aggregate_pairs *pairs,
                               int64_t p)
{
    const int64_t row = pairs->row[p];
    do
        p++;
    while (p < pairs->n && pairs->row[p] == row);
    return p;
}

oj_status oj_aggregates_add(struct oj_aggregates *a,
                            const struct oj_aggregate_pairs *pairs,
                            struct oj_error *err)
{
    const int64_t n = pairs->n, *row = pairs->row;
    const int n_columns = a->plan.n_columns;
    const int n_aggregates = a->n_single > 0 ? a->plan.n_aggregates : 0;
    const int is_by_pair = n_aggregates > 0 || a->n_stores > 0;
    int64_t end;
    for (int64_t p = 0; p < AHEAD && p < n; p++)
        prefetch_row_state(a, row[p]);
    for (int64_t p = 0; p < n; p = end)
    {
        uint64_t *state = row_state(a, row[p]);
        end = is_by_pair ? p + 1 : find_end_of_run(pairs, p);
        if (end - 1 + AHEAD < n)
            prefetch_row_state(a, row[end - 1 + AHEAD]);
        for (int i = 0; i < n_aggregates; i++)
        {
            if (has_own_state(a->plan.aggregates[i].kind))
                OJ_TRY(add_to_own_state(a, state, i, pairs, p, err));
        }
        state[0] += (uint64_t)(end - p);
        for (int c = 0; c < n_columns; c++)
            OJ_TRY(add_run_to_column_state(a, state, c, pairs, p, end, err));
        if (a->n_stores > 0)
            OJ_TRY(append_pair_values_to_stores(a, pairs, p, err));
    }
    return OJ_OK;
}

/* ---- sums computed by a backend ------------------------------------------ */

int oj_aggregates_need_only_sums(const struct oj_aggregates *a)
{
    for (int i = 0; i < a->plan.n_aggregates; i++)
    {
        if (a->plan.aggregates[i].kind > OJ_AGG_MEAN)
            return 0;
    }
    for (int c = 0; c < a->plan.n_columns; c++)
    {
        if (a->plan.types[c] == OJ_AGG_BYTES || a->columns[c].is_of_pairs)
            return 0;
    }
    return a->plan.n_columns <= OJ_SUM_MOST_COLUMNS;
}

/* If the state of a row is a single word, that word is the row's number of
 * pairs. */
int64_t *oj_aggregates_counts(struct oj_aggregates *a)
{
    return a->words == 1 ? (int64_t *)a->rows : NULL;
}

/* Rows that a thread processes at a time. */
#define ROWS_AT_ONCE 65536

/* Properties of the values of a column, from which the number of limbs for
 * their sum follows. */
struct reach
{
    const struct oj_aggregate_column *column;
    int is_integer, wants_sum;
    /* All values are multiples of 2^low, and their magnitudes are below
     * 2^(-minus_high). The exponent minus_high is negated, so that atomic_min()
     * updates both. */
    _Atomic int low, minus_high;
    _Atomic int any_null, any_nonfinite;
    _Atomic uint64_t integers; /* OR of all integers, negative ones inverted
                                  (~x): shows how many bits they need */
};

static void atomic_min(_Atomic int *least, int value)
{
    int old = atomic_load(least);
    while (value < old && !atomic_compare_exchange_weak(least, &old, value))
        continue;
}

static void find_bit_range_of_reals(struct reach *reach, int64_t first,
                                    int64_t end)
{
    const struct oj_aggregate_column *column = reach->column;
    int low = INT_MAX, minus_high = INT_MAX;
    for (int64_t i = first; i < end; i++)
    {
        uint64_t bits, m;
        int e, low_bit, high_bit;
        if (column->is_null != NULL && column->is_null[i])
            continue;
        memcpy(&bits, &column->real[i], sizeof bits);
        if ((bits >> 52 & 0x7ff) == 0x7ff)
        {
            atomic_store(&reach->any_nonfinite, 1);
            continue;
        }
        oj_limbs_split_double(bits, &m, &e);
        if (m == 0)
            continue;
        low_bit = e + __builtin_ctzll(m);
        high_bit = e + 64 - __builtin_clzll(m);
        low = low_bit < low ? low_bit : low;
        minus_high = -high_bit < minus_high ? -high_bit : minus_high;
    }
    atomic_min(&reach->low, low);
    atomic_min(&reach->minus_high, minus_high);
}

static void find_bit_range_and_nulls(int64_t first, int64_t end, void *user)
{
    struct reach *reach = user;
    const struct oj_aggregate_column *column = reach->column;
    uint64_t integers = 0;
    int any_null = 0;
    for (int64_t i = first; column->is_null != NULL && i < end; i++)
        any_null |= column->is_null[i];
    atomic_fetch_or(&reach->any_null, any_null);
    if (reach->wants_sum && !reach->is_integer)
        find_bit_range_of_reals(reach, first, end);
    for (int64_t i = first; reach->wants_sum && reach->is_integer && i < end;
         i++)
    {
        int64_t x = column->integer[i];
        if (column->is_null == NULL || !column->is_null[i])
            integers |= (uint64_t)(x < 0 ? ~x : x);
    }
    atomic_fetch_or(&reach->integers, integers);
}

static int assign_sum_word_offset(struct oj_sum_request *request, int n)
{
    int at = request->n_words;
    request->n_words += n;
    return n > 0 ? at : 0;
}

/* Plans the sum of column c. Scans the n values of `from` to find how many
 * limbs an exact sum needs. */
static void choose_limbs_for_backend_sum(const struct oj_aggregates *a, int c,
                                         const struct oj_aggregate_column *from,
                                         int64_t n, int n_threads,
                                         struct oj_sum_request *request)
{
    struct oj_sum_column *column = &request->column[c];
    struct reach reach = {.column = from,
                          .is_integer = a->plan.types[c] == OJ_AGG_INTEGER,
                          .wants_sum = a->columns[c].sum >= 0 ||
                                       a->columns[c].long_sum >= 0,
                          .low = INT_MAX,
                          .minus_high = INT_MAX};
    int n_bits;
    if (reach.wants_sum || from->is_null != NULL)
        oj_parallel_slices(n_threads > 0 ? n_threads : 1, n, ROWS_AT_ONCE,
                           find_bit_range_and_nulls, &reach);
    column->is_integer = reach.is_integer;
    if (reach.any_null)
    {
        column->is_null = from->is_null;
        column->n_at = assign_sum_word_offset(request, 1);
    }
    if (!reach.wants_sum)
        return;
    if (reach.is_integer)
    {
        column->n_limbs = reach.integers >> 31 == 0 ? 1 : 2;
        column->value = (const uint64_t *)(const void *)from->integer;
    }
    else
    {
        if (reach.low < INT_MAX)
        {
            n_bits = -reach.minus_high - reach.low;
            column->base = reach.low;
            column->n_limbs = (n_bits + OJ_LIMB_BITS - 1) / OJ_LIMB_BITS;
        }
        column->value = (const uint64_t *)(const void *)from->real;
        column->nonfinite_at =
            assign_sum_word_offset(request, reach.any_nonfinite ? 3 : 0);
    }
    column->limb_at = assign_sum_word_offset(request, column->n_limbs);
}

oj_status oj_aggregates_plan_sums(struct oj_aggregates *a,
                                  const struct oj_aggregate_column *columns,
                                  int64_t n, int n_threads,
                                  struct oj_sum_request *request,
                                  int64_t **words, struct oj_error *err)
{
    int64_t n_words;
    memset(request, 0, sizeof *request);
    request->n_words = 1;
    request->n_columns = a->plan.n_columns;
    for (int c = 0; c < a->plan.n_columns; c++)
        choose_limbs_for_backend_sum(a, c, &columns[c], n, n_threads, request);
    n_words = a->n_rows * request->n_words;
    OJ_TRY(oj_reserve(&a->sum_words, 0, n_words, &a->cap_sum_words, WORD, err));
    if (n_words > 0)
        memset(a->sum_words, 0, (size_t)n_words * WORD);
    *words = a->sum_words;
    return OJ_OK;
}

static oj_status add_sum_of_backend_to_row(struct oj_aggregates *a,
                                           uint64_t *state, int c,
                                           const struct oj_sum_column *column,
                                           const int64_t *word,
                                           struct oj_error *err)
{
    const struct column_state *to = &a->columns[c];
    const int64_t *limb = word + column->limb_at;
    if (to->n >= 0)
        state[to->n] += (uint64_t)word[column->n_at];
    if (column->nonfinite_at > 0)
        oj_exact_sum_add_nonfinite(exact_sum_at(state, to->sum),
                                   word[column->nonfinite_at] > 0,
                                   word[column->nonfinite_at + 1] > 0,
                                   word[column->nonfinite_at + 2] > 0);
    if (column->n_limbs == 0)
        return OJ_OK;
    if (column->is_integer)
    {
        for (int k = 0; k < column->n_limbs; k++)
            add_to_128bit_sum(state + to->long_sum,
                              limb[k] * ((s128)1 << (k * OJ_LIMB_BITS)));
        return OJ_OK;
    }
    OJ_TRY(oj_exact_sum_add_limbs(exact_sum_at(state, to->sum), limb,
                                  column->n_limbs, column->base, err));
    a->owns_memory |= exact_sum_at(state, to->sum)->is_wide;
    return OJ_OK;
}

oj_status oj_aggregates_add_sums(struct oj_aggregates *a,
                                 const struct oj_sum_request *request,
                                 struct oj_error *err)
{
    for (int64_t row = 0; row < a->n_rows; row++)
    {
        const int64_t *word = a->sum_words + row * request->n_words;
        uint64_t *state = row_state(a, row);
        if (word[0] == 0)
            continue;
        state[0] += (uint64_t)word[0];
        for (int c = 0; c < request->n_columns; c++)
            OJ_TRY(add_sum_of_backend_to_row(a, state, c, &request->column[c],
                                             word, err));
    }
    return OJ_OK;
}

/* ---- merging rows of equal plans ----------------------------------------- */

static oj_status merge_row(struct oj_aggregates *a, uint64_t *to,
                           const uint64_t *from, struct oj_error *err)
{
    for (int c = 0; c < a->plan.n_columns; c++)
    {
        const struct column_state *column = &a->columns[c];
        if (column->n >= 0)
            to[column->n] += from[column->n];
        if (column->long_sum >= 0)
            add_to_128bit_sum(to + column->long_sum,
                              read_128bit_sum(from + column->long_sum));
        if (column->sum < 0)
            continue;
        OJ_TRY(oj_exact_sum_merge(exact_sum_at(to, column->sum),
                                  (const void *)(from + column->sum), err));
        a->owns_memory |= exact_sum_at(to, column->sum)->is_wide;
    }
    to[0] += from[0];
    return OJ_OK;
}

oj_status oj_aggregates_merge(struct oj_aggregates *a,
                              const struct oj_aggregates *from,
                              struct oj_error *err)
{
    for (int64_t row = 0; row < from->n_rows; row++)
    {
        if (row_state(from, row)[0] > 0)
            OJ_TRY(merge_row(a, row_state(a, row), row_state(from, row), err));
    }
    return OJ_OK;
}

oj_status oj_aggregates_rewind(struct oj_aggregates *a, struct oj_error *err)
{
    for (int i = 0; i < a->n_stores; i++)
        OJ_TRY(oj_value_sort_rewind(a->stores[i].held, err));
    return OJ_OK;
}

int64_t oj_aggregates_pair_count(const struct oj_aggregates *a, int64_t row)
{
    return (int64_t)row_state(a, row)[0];
}

/* ---- sorted values ------------------------------------------------------- */

static oj_status append_text(struct text *text, const char *bytes, int64_t n,
                             struct oj_error *err)
{
    OJ_ROOM(text->bytes, text->n, text->n + n + 1, text->capacity, err);
    if (n > 0)
        memcpy(text->bytes + text->n, bytes, (size_t)n);
    text->n += n;
    return OJ_OK;
}

/* Returns the value at the cursor if it belongs to store->row, otherwise
 * NULL. */
static const struct oj_value_sort_value *
peek_row_value(const struct store *store)
{
    const struct oj_value_sort_value *value = oj_value_sort_peek(store->held);
    return value != NULL && value->row == store->row ? value : NULL;
}

/* Computes the positions of the values that the percentiles of a store need,
 * among n_values sorted values. (Positions as in numpy.) */
static void find_places_of_percentiles(struct oj_aggregates *a, int store,
                                       int64_t n_values)
{
    for (int i = 0; i < a->n_percentiles; i++)
    {
        struct percentile *p = &a->percentiles[i];
        double at = (double)(n_values - 1) * (p->percent / 100.0);
        if (p->store != store)
            continue;
        p->low = (int64_t)floor(at);
        p->fraction = at - floor(at);
        p->high = p->low + 1 < n_values ? p->low + 1 : n_values - 1;
    }
}

static void take_value_for_percentiles(struct oj_aggregates *a, int store,
                                       int64_t place, uint64_t number)
{
    for (int i = 0; i < a->n_percentiles; i++)
    {
        struct percentile *p = &a->percentiles[i];
        if (p->store == store && p->low == place)
            p->value[0] = number;
        if (p->store == store && p->high == place)
            p->value[1] = number;
    }
}

/* Computes mode, minority, the middle values and the values around percentiles
 * from the numbers of the row store->row, and counts different numbers. */
static oj_status summarize_numbers(struct oj_aggregates *a, int of,
                                   int64_t n_values, struct oj_error *err)
{
    struct store *store = &a->stores[of];
    const struct oj_value_sort_value *value;
    int64_t i = 0, n_equal = 0, n_most = 0, n_least = INT64_MAX;
    uint64_t last = 0;
    find_places_of_percentiles(a, of, n_values);
    for (; (value = peek_row_value(store)) != NULL; i++)
    {
        uint64_t number = value->number;
        if (i == 0 || number != last)
        {
            if (i > 0 && n_equal < n_least)
            {
                n_least = n_equal;
                store->minority = last;
            }
            store->n_unique++;
            n_equal = 0;
        }
        last = number;
        if (++n_equal > n_most)
        {
            n_most = n_equal;
            store->mode = number;
        }
        if (i == (n_values - 1) / 2)
            store->middle[0] = number;
        if (i == n_values / 2)
            store->middle[1] = number;
        take_value_for_percentiles(a, of, i, number);
        OJ_TRY(oj_value_sort_skip(store->held, err));
    }
    if (n_equal < n_least)
        store->minority = last;
    return OJ_OK;
}

/* Finds the most frequent value of the row store->row and, if has_minority is
 * set, the rarest. Of several such values takes the smallest. Counts different
 * values. */
static oj_status find_mode_and_minority_of_bytes(struct store *store,
                                                 struct oj_error *err)
{
    struct text *other = &store->other, text;
    int64_t n_equal = 0, n_most = 0, n_least = INT64_MAX;
    for (;;)
    {
        const struct oj_value_sort_value *value = peek_row_value(store);
        if (value == NULL || n_equal == 0 ||
            oj_bytes_compare(value->bytes, value->n_bytes, other->bytes,
                             other->n) != 0)
        {
            if (store->has_minority && n_equal > 0 && n_equal < n_least)
            {
                n_least = n_equal;
                store->rarest.n = 0;
                OJ_TRY(
                    append_text(&store->rarest, other->bytes, other->n, err));
            }
            if (n_equal > n_most)
            {
                n_most = n_equal;
                text = store->text;
                store->text = *other;
                *other = text;
            }
            if (value == NULL)
                return OJ_OK;
            store->n_unique++;
            n_equal = other->n = 0;
            OJ_TRY(append_text(other, value->bytes, value->n_bytes, err));
        }
        n_equal++;
        OJ_TRY(oj_value_sort_skip(store->held, err));
    }
}

static oj_status concat_held_texts(struct store *store, struct oj_error *err)
{
    const struct oj_value_sort_value *value;
    struct text *text = &store->text;
    int64_t n_separator = (int64_t)strlen(store->separator);
    text->n = 0;
    for (int64_t i = 0; (value = peek_row_value(store)) != NULL; i++)
    {
        if (i > 0)
            OJ_TRY(append_text(text, store->separator, n_separator, err));
        if (text->n + value->n_bytes + n_separator >= INT_MAX)
            return oj_fail(
                err, OJ_ERR_LIMIT,
                "the concatenated values of one row are longer than 2 GB: "
                "concatenate a shorter field, or allow fewer pairs");
        OJ_TRY(append_text(text, value->bytes, value->n_bytes, err));
        OJ_TRY(oj_value_sort_skip(store->held, err));
    }
    return OJ_OK;
}

static oj_status summarize_stored_values(struct oj_aggregates *a, int of,
                                         int64_t row, int64_t n_values,
                                         struct oj_error *err)
{
    struct store *store = &a->stores[of];
    const struct oj_value_sort_value *value;
    if (store->row == row)
        return OJ_OK;
    while ((value = oj_value_sort_peek(store->held)) != NULL &&
           value->row < row)
        OJ_TRY(oj_value_sort_skip(store->held, err));
    store->row = row;
    store->n_unique = 0;
    if (store->order == OJ_VALUE_SORT_BY_NUMBER)
        return summarize_numbers(a, of, n_values, err);
    if (store->order == OJ_VALUE_SORT_BY_BYTES)
        return find_mode_and_minority_of_bytes(store, err);
    return concat_held_texts(store, err);
}

/* ---- results ------------------------------------------------------------- */

/* Sets *value to an integer result. Returns OJ_ERR_LIMIT if the result does not
 * fit into 64 bits. The message begins with `what`, the name of the function,
 * and ends with `hint`, which may be "". */
static oj_status set_integer_result(s128 result, const char *what,
                                    const char *hint, int64_t row,
                                    struct oj_aggregate_value *value,
                                    struct oj_error *err)
{
    if (result > INT64_MAX || result < INT64_MIN)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the %s of integers of row %lld, counted from 1, does "
                       "not fit into 64 bits; make the field a real number%s",
                       what, (long long)row + 1, hint);
    value->integer = (int64_t)result;
    return OJ_OK;
}

static oj_status result_of_sum(const struct oj_aggregates *a,
                               const uint64_t *state, int c, int64_t row,
                               struct oj_aggregate_value *value,
                               struct oj_error *err)
{
    const struct column_state *column = &a->columns[c];
    if (a->plan.types[c] != OJ_AGG_INTEGER)
    {
        value->real = oj_exact_sum_value((const void *)(state + column->sum));
        return OJ_OK;
    }
    return set_integer_result(read_128bit_sum(state + column->long_sum), "sum",
                              ", or ask for the mean", row, value, err);
}

/* Rounds twice: the exact sum to a double, then the quotient. */
static oj_status result_of_mean(const struct oj_aggregates *a,
                                const uint64_t *state, int c, int64_t n,
                                double *mean, struct oj_error *err)
{
    const struct column_state *column = &a->columns[c];
    const struct oj_exact_sum *sum = (const void *)(state + column->sum);
    struct oj_exact_sum divisor = {0};
    if (a->plan.types[c] == OJ_AGG_INTEGER)
    {
        *mean = (double)read_128bit_sum(state + column->long_sum) / (double)n;
        return OJ_OK;
    }
    *mean = oj_exact_sum_value(sum) / (double)n;
    if (!isinf(*mean) || sum->not_finite != 0)
        return OJ_OK;
    /* The sum is beyond the greatest double, but the mean is not. */
    OJ_TRY(oj_exact_sum_add_integer(&divisor, n, err));
    *mean = oj_exact_sum_ratio(sum, &divisor);
    oj_exact_sum_clear(&divisor);
    return OJ_OK;
}

static double result_of_median(enum oj_aggregate_type type,
                               const uint64_t *middle)
{
    struct oj_aggregate_value u = {0}, v = {0};
    double sum;
    decode_sortable_number(type, middle[0], &u);
    decode_sortable_number(type, middle[1], &v);
    if (type == OJ_AGG_INTEGER)
        return (double)((s128)u.integer + (s128)v.integer) / 2.0;
    if (middle[0] == middle[1])
        return u.real;
    sum = u.real + v.real;
    return isinf(sum) ? u.real / 2.0 + v.real / 2.0 : sum / 2.0;
}

/* Returns the interpolated value at the percentile's position. Like numpy,
 * starts at the nearer of the two values around this position. */
static double value_at_percentile(enum oj_aggregate_type type,
                                  const struct percentile *p)
{
    struct oj_aggregate_value u = {0}, v = {0};
    double low, high, step;
    decode_sortable_number(type, p->value[0], &u);
    decode_sortable_number(type, p->value[1], &v);
    low = type == OJ_AGG_INTEGER ? (double)u.integer : u.real;
    high = type == OJ_AGG_INTEGER ? (double)v.integer : v.real;
    if (p->fraction == 0.0 || p->value[0] == p->value[1])
        return low;
    step = type == OJ_AGG_INTEGER ? (double)((s128)v.integer - (s128)u.integer)
                                  : high - low;
    if (isinf(step) && isfinite(low) && isfinite(high))
        return low * (1.0 - p->fraction) + high * p->fraction;
    return p->fraction >= 0.5 ? high - step * (1.0 - p->fraction)
                              : low + step * p->fraction;
}

/* Sets *value to the maximum minus the minimum of the numbers. */
static oj_status result_of_range(enum oj_aggregate_type type,
                                 const uint64_t *range, int64_t row,
                                 struct oj_aggregate_value *value,
                                 struct oj_error *err)
{
    struct oj_aggregate_value least = {0}, greatest = {0};
    decode_sortable_number(type, range[0], &least);
    decode_sortable_number(type, range[1], &greatest);
    if (type != OJ_AGG_INTEGER)
    {
        value->real = greatest.real - least.real;
        return OJ_OK;
    }
    return set_integer_result((s128)greatest.integer - (s128)least.integer,
                              "range", "", row, value, err);
}

static void set_value_to_stored_text(const struct text *text,
                                     struct oj_aggregate_value *value)
{
    value->bytes = text->n > 0 ? text->bytes : "";
    value->n_bytes = text->n;
}

static oj_status
compute_result_of_sorted_values(struct oj_aggregates *a, int i, int64_t row,
                                int64_t n, struct oj_aggregate_value *value,
                                struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const int is_mode = what->kind == OJ_AGG_MODE;
    struct store *store = &a->stores[a->columns[what->column].sorted];
    enum oj_aggregate_type type = a->plan.types[what->column];
    OJ_TRY(summarize_stored_values(a, a->columns[what->column].sorted, row, n,
                                   err));
    if (what->kind == OJ_AGG_UNIQUE)
        value->integer = store->n_unique;
    else if (what->kind == OJ_AGG_MEDIAN)
        value->real = result_of_median(type, store->middle);
    else if (what->kind == OJ_AGG_PERCENTILE)
        value->real = value_at_percentile(type, &a->percentiles[a->state[i]]);
    else if (type == OJ_AGG_BYTES)
        set_value_to_stored_text(is_mode ? &store->text : &store->rarest,
                                 value);
    else
        decode_sortable_number(type, is_mode ? store->mode : store->minority,
                               value);
    return OJ_OK;
}

static void set_result_to_chosen_value(const struct chosen *chosen,
                                       struct oj_aggregate_value *value)
{
    value->bytes = chosen->n_bytes > 0 ? chosen->bytes : "";
    value->n_bytes = chosen->n_bytes;
    value->integer = (int64_t)chosen->bits;
    memcpy(&value->real, &chosen->bits, sizeof value->real);
}

/* Sets *value to the weighted mean from the two sums, or to NULL if the sum of
 * weights is 0. */
static void result_of_weighted_mean(const uint64_t *sums,
                                    struct oj_aggregate_value *value)
{
    const struct oj_exact_sum *products = (const void *)sums;
    const struct oj_exact_sum *weights = products + 1;
    value->is_null = oj_exact_sum_value(weights) == 0.0;
    value->real = oj_exact_sum_ratio(products, weights);
}

/* Sets *value to the result of aggregate i for a row with n > 0 values. */
static oj_status compute_aggregate_result(struct oj_aggregates *a,
                                          const uint64_t *state, int64_t row,
                                          int i, int64_t n,
                                          struct oj_aggregate_value *value,
                                          struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const struct column_state *column = &a->columns[what->column];
    switch (what->kind)
    {
        case OJ_AGG_SUM:
            return result_of_sum(a, state, what->column, row, value, err);
        case OJ_AGG_MEAN:
            return result_of_mean(a, state, what->column, n, &value->real, err);
        case OJ_AGG_STDDEV:
            value->is_null = n < 2;
            value->real = oj_exact_sum_deviation(
                (const void *)(state + column->sum),
                (const void *)(state + column->squares), n);
            return OJ_OK;
        case OJ_AGG_WEIGHTED_SUM:
            value->real =
                oj_exact_sum_value((const void *)(state + a->state[i]));
            return OJ_OK;
        case OJ_AGG_VARIANCE:
            value->is_null = n < 2;
            value->real = oj_exact_sum_variance(
                (const void *)(state + column->sum),
                (const void *)(state + column->squares), n);
            return OJ_OK;
        case OJ_AGG_RANGE:
            return result_of_range(a->plan.types[what->column],
                                   state + a->state[i], row, value, err);
        case OJ_AGG_COVERED:
            decode_sortable_number(a->plan.types[what->column],
                                   state[a->state[i]], value);
            return OJ_OK;
        case OJ_AGG_WEIGHTED_MEAN:
            result_of_weighted_mean(state + a->state[i], value);
            return OJ_OK;
        case OJ_AGG_CONCAT:
            OJ_TRY(summarize_stored_values(a, a->state[i], row, n, err));
            set_value_to_stored_text(&a->stores[a->state[i]].text, value);
            return OJ_OK;
        case OJ_AGG_MEDIAN:
        case OJ_AGG_PERCENTILE:
        case OJ_AGG_MODE:
        case OJ_AGG_MINORITY:
        case OJ_AGG_UNIQUE:
            return compute_result_of_sorted_values(a, i, row, n, value, err);
        default:
            set_result_to_chosen_value((const void *)(state + a->state[i]),
                                       value);
            return OJ_OK;
    }
}

void oj_aggregates_set_undefined(struct oj_aggregates *a, int64_t row, int i)
{
    uint64_t *state = row_state(a, row);
    if (state[a->columns[a->plan.aggregates[i].column].n] == 0)
        state[a->state[i] + 1] = 1;
}

oj_status oj_aggregates_result(struct oj_aggregates *a, int64_t row, int i,
                               struct oj_aggregate_value *value,
                               struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const uint64_t *state = row_state(a, row);
    struct oj_aggregate_value result = {0};
    int64_t n = (int64_t)state[0];
    if (what->kind != OJ_AGG_COUNT)
        n = (int64_t)state[a->columns[what->column].n];
    if (what->kind == OJ_AGG_COUNT || what->kind == OJ_AGG_COUNT_VALUES)
        result.integer = n;
    else if (n == 0 && what->kind == OJ_AGG_COVERED)
        result.is_null = state[0] > 0 || state[a->state[i] + 1] != 0;
    else if (n == 0)
        result.is_null = what->kind != OJ_AGG_UNIQUE;
    else
        OJ_TRY(compute_aggregate_result(a, state, row, i, n, &result, err));
    *value = result;
    return OJ_OK;
}
