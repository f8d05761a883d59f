#include "oj_aggregate_state.h"

#include "../../flatten/base/oj_array.h"

#include <string.h>

enum
{
    WORD = 8,
    PAIRS_UNCHECKED = 256 /* between two looks at the memory in use */
};

#define WORDS_OF(type) ((int)(sizeof(type) / WORD))

_Static_assert(sizeof(struct oj_exact_sum) % WORD == 0 &&
                   sizeof(struct oj_chosen) % WORD == 0 &&
                   sizeof(struct oj_long_sum) % WORD == 0,
               "the state of a row is made of words");

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
            return OJ_AGG_REAL;
        case OJ_AGG_CONCAT:
            return OJ_AGG_BYTES;
        default:
            return column;
    }
}

static const uint64_t sign_bit = UINT64_C(1) << 63;

uint64_t oj_number_order(enum oj_aggregate_type type,
                         const struct oj_aggregate_value *value)
{
    double real = value->real + 0.0; /* -0 becomes 0 */
    uint64_t bits;
    if (type == OJ_AGG_INTEGER)
        return (uint64_t)value->integer ^ sign_bit;
    if (real != real)
        return UINT64_MAX;
    memcpy(&bits, &real, sizeof bits);
    return (bits & sign_bit) != 0 ? ~bits : bits | sign_bit;
}

void oj_number_value(enum oj_aggregate_type type, uint64_t number,
                     struct oj_aggregate_value *value)
{
    uint64_t bits = (number & sign_bit) != 0 ? number ^ sign_bit : ~number;
    value->is_null = 0;
    if (type == OJ_AGG_INTEGER)
        value->integer = (int64_t)(number ^ sign_bit);
    else
        memcpy(&value->real, &bits, sizeof bits);
}

/* ---- open --------------------------------------------------------------- */

/* The place of the store for a column in this order, made when needed. */
static int find_store(struct oj_aggregates *a, int column,
                      enum oj_held_order order, const char *separator)
{
    struct oj_store *store = a->stores;
    for (int i = 0; i < a->n_stores; i++, store++)
    {
        if (store->column == column && store->order == order &&
            (order != OJ_HELD_BY_PLACE ||
             strcmp(store->separator, separator) == 0))
            return i;
    }
    store->column = column;
    store->order = order;
    store->separator = separator;
    store->row = -1;
    return a->n_stores++;
}

static int take_words(struct oj_aggregates *a, int n)
{
    int at = a->words;
    a->words += n;
    return at;
}

static void keep(struct oj_aggregates *a, int *at, int n)
{
    if (*at < 0)
        *at = take_words(a, n);
}

/* What aggregate i needs of a row. */
static void plan_state(struct oj_aggregates *a, int i)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    enum oj_aggregate_type type = OJ_AGG_INTEGER;
    struct oj_column_state *column = NULL;
    if (what->kind != OJ_AGG_COUNT)
    {
        column = &a->columns[what->column];
        type = a->plan.types[what->column];
        keep(a, &column->n, 1);
    }
    switch (what->kind)
    {
        case OJ_AGG_SUM:
        case OJ_AGG_MEAN:
            if (type == OJ_AGG_INTEGER)
                keep(a, &column->long_sum, WORDS_OF(struct oj_long_sum));
            else
                keep(a, &column->sum, WORDS_OF(struct oj_exact_sum));
            break;
        case OJ_AGG_STDDEV:
            keep(a, &column->sum, WORDS_OF(struct oj_exact_sum));
            keep(a, &column->squares, WORDS_OF(struct oj_exact_sum));
            break;
        case OJ_AGG_MIN:
        case OJ_AGG_MAX:
        case OJ_AGG_FIRST:
        case OJ_AGG_LAST:
            a->state[i] = take_words(a, WORDS_OF(struct oj_chosen));
            break;
        case OJ_AGG_WEIGHTED_SUM:
            a->state[i] = take_words(a, WORDS_OF(struct oj_exact_sum));
            break;
        case OJ_AGG_MEDIAN:
        case OJ_AGG_MODE:
        case OJ_AGG_UNIQUE:
            column->sorted = find_store(
                a, what->column,
                type == OJ_AGG_BYTES ? OJ_HELD_BY_BYTES : OJ_HELD_BY_NUMBER,
                NULL);
            break;
        case OJ_AGG_CONCAT:
            a->state[i] =
                find_store(a, what->column, OJ_HELD_BY_PLACE, what->separator);
            break;
        default:
            break;
    }
}

static oj_status check_plan(const struct oj_aggregate_plan *plan,
                            struct oj_error *err)
{
    for (int i = 0; i < plan->n_aggregates; i++)
    {
        const struct oj_aggregate *what = &plan->aggregates[i];
        enum oj_aggregate_kind kind = what->kind;
        enum oj_aggregate_type type;
        if (kind == OJ_AGG_COUNT)
            continue;
        if (what->column < 0 || what->column >= plan->n_columns)
            return oj_fail(err, OJ_ERR_ARG, "aggregate %d has no column", i);
        type = plan->types[what->column];
        if (type == OJ_AGG_BYTES &&
            (kind == OJ_AGG_SUM || kind == OJ_AGG_MEAN ||
             kind == OJ_AGG_MEDIAN || kind == OJ_AGG_STDDEV ||
             kind == OJ_AGG_WEIGHTED_SUM))
            return oj_fail(err, OJ_ERR_ARG, "aggregate %d needs numbers", i);
        if (type != OJ_AGG_BYTES && kind == OJ_AGG_CONCAT)
            return oj_fail(err, OJ_ERR_ARG, "aggregate %d needs texts", i);
    }
    return OJ_OK;
}

static oj_status allocate(struct oj_aggregates *a, struct oj_error *err)
{
    int n = a->plan.n_aggregates, n_columns = a->plan.n_columns;
    a->state = oj_malloc(n, sizeof *a->state);
    a->columns = oj_malloc(n_columns, sizeof *a->columns);
    a->stores = oj_calloc(n, sizeof *a->stores);
    if (a->state == NULL || a->columns == NULL || a->stores == NULL)
        return oj_fail_nomem(err, n, sizeof *a->stores);
    memset(a->state, -1, (size_t)n * sizeof *a->state);
    memset(a->columns, -1, (size_t)n_columns * sizeof *a->columns);
    return OJ_OK;
}

static oj_status make(struct oj_aggregates *a, struct oj_error *err)
{
    OJ_TRY(check_plan(&a->plan, err));
    OJ_TRY(allocate(a, err));
    a->words = 1; /* the pairs */
    for (int i = 0; i < a->plan.n_aggregates; i++)
        plan_state(a, i);
    for (int i = 0; i < a->n_stores; i++)
        OJ_TRY(oj_held_open(a->stores[i].order, a->plan.files,
                            &a->stores[i].held, err));
    return OJ_OK;
}

oj_status oj_aggregates_open(const struct oj_aggregate_plan *plan,
                             struct oj_aggregates **out, struct oj_error *err)
{
    struct oj_aggregates *a = oj_calloc(1, sizeof *a);
    oj_status status;
    if (a == NULL)
        return oj_fail_nomem(err, 1, sizeof *a);
    a->plan = *plan;
    status = make(a, err);
    if (status == OJ_OK)
        *out = a;
    else
        oj_aggregates_close(a);
    return status;
}

int oj_aggregate_chooses(enum oj_aggregate_kind kind)
{
    return kind == OJ_AGG_MIN || kind == OJ_AGG_MAX || kind == OJ_AGG_FIRST ||
           kind == OJ_AGG_LAST;
}

static void clear_sum(uint64_t *state, int at)
{
    if (at >= 0)
        oj_exact_sum_clear((struct oj_exact_sum *)(void *)(state + at));
}

/* Memory that single rows own. */
static void free_rows(struct oj_aggregates *a)
{
    for (int64_t row = 0; a->owns_memory && row < a->n_rows; row++)
    {
        uint64_t *state = oj_row_state(a, row);
        for (int c = 0; c < a->plan.n_columns; c++)
        {
            clear_sum(state, a->columns[c].sum);
            clear_sum(state, a->columns[c].squares);
        }
        for (int i = 0; i < a->plan.n_aggregates; i++)
        {
            enum oj_aggregate_kind kind = a->plan.aggregates[i].kind;
            if (kind == OJ_AGG_WEIGHTED_SUM)
                clear_sum(state, a->state[i]);
            else if (oj_aggregate_chooses(kind))
                oj_free(
                    ((struct oj_chosen *)(void *)(state + a->state[i]))->bytes);
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
        oj_held_close(a->stores[i].held);
        oj_free(a->stores[i].text);
        oj_free(a->stores[i].other);
    }
    oj_free(a->rows);
    oj_free(a->stores);
    oj_free(a->columns);
    oj_free(a->state);
    oj_free(a);
}

oj_status oj_aggregates_start(struct oj_aggregates *a, int64_t n_rows,
                              struct oj_error *err)
{
    free_rows(a);
    a->n_to_check = PAIRS_UNCHECKED;
    for (int i = 0; i < a->n_stores; i++)
    {
        oj_held_clear(a->stores[i].held);
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

/* ---- adding ------------------------------------------------------------- */

static void add_long(struct oj_long_sum *sum, int64_t x)
{
    uint64_t low = sum->low + (uint64_t)x;
    /* 2^63 values of 64 bits do not overflow 128 */
    sum->high += (x < 0 ? -1 : 0) + (low < sum->low);
    sum->low = low;
}

oj_status oj_row_add_sums(struct oj_aggregates *a, uint64_t *state, int c,
                          const struct oj_aggregate_value *value,
                          struct oj_error *err)
{
    const struct oj_column_state *column = &a->columns[c];
    int is_integer = a->plan.types[c] == OJ_AGG_INTEGER;
    if (column->long_sum >= 0)
        add_long((struct oj_long_sum *)(void *)(state + column->long_sum),
                 value->integer);
    if (column->sum >= 0)
    {
        struct oj_exact_sum *sum = (void *)(state + column->sum);
        OJ_TRY(is_integer ? oj_exact_sum_add_integer(sum, value->integer, err)
                          : oj_exact_sum_add(sum, value->real, err));
        a->owns_memory |= sum->is_wide;
    }
    if (column->squares >= 0)
    {
        struct oj_exact_sum *sum = (void *)(state + column->squares);
        OJ_TRY(is_integer
                   ? oj_exact_sum_add_integer_square(sum, value->integer, err)
                   : oj_exact_sum_add_square(sum, value->real, err));
        a->owns_memory |= sum->is_wide;
    }
    return OJ_OK;
}

/* 1 when the value takes the place of the one chosen so far. */
static int is_better(enum oj_aggregate_kind kind, enum oj_aggregate_type type,
                     const struct oj_chosen *old, const struct oj_chosen *one)
{
    int c;
    if (kind == OJ_AGG_FIRST || kind == OJ_AGG_LAST)
    {
        c = (one->fid > old->fid) - (one->fid < old->fid);
        if (c == 0)
            c = (one->place > old->place) - (one->place < old->place);
        return kind == OJ_AGG_FIRST ? c < 0 : c > 0;
    }
    if (type == OJ_AGG_BYTES)
    {
        int64_t n = one->n_bytes < old->n_bytes ? one->n_bytes : old->n_bytes;
        c = n > 0 ? memcmp(one->bytes, old->bytes, (size_t)n) : 0;
        if (c == 0)
            c = (one->n_bytes > old->n_bytes) - (one->n_bytes < old->n_bytes);
    }
    else
        c = (one->number > old->number) - (one->number < old->number);
    return kind == OJ_AGG_MIN ? c < 0 : c > 0;
}

oj_status oj_row_choose(struct oj_aggregates *a, uint64_t *state, int i,
                        const struct oj_chosen *one, struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    enum oj_aggregate_type type = a->plan.types[what->column];
    struct oj_chosen *old = (void *)(state + a->state[i]);
    if (state[a->columns[what->column].n] > 0 &&
        !is_better(what->kind, type, old, one))
        return OJ_OK;
    if (type == OJ_AGG_BYTES)
    {
        a->owns_memory = 1;
        OJ_TRY(oj_reserve(&old->bytes, 0, one->n_bytes + 1, &old->capacity, 1,
                          err));
        if (one->n_bytes > 0)
            memcpy(old->bytes, one->bytes, (size_t)one->n_bytes);
    }
    old->fid = one->fid;
    old->place = one->place;
    old->number = one->number;
    old->n_bytes = one->n_bytes;
    return OJ_OK;
}

static oj_status choose(struct oj_aggregates *a, uint64_t *state, int i,
                        const struct oj_aggregate_pair *pair,
                        struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const struct oj_aggregate_value *value = &pair->values[what->column];
    enum oj_aggregate_type type = a->plan.types[what->column];
    struct oj_chosen one = {pair->fid, pair->place, 0, NULL, 0, 0};
    if (type == OJ_AGG_BYTES)
    {
        one.bytes = (char *)value->bytes; /* only read */
        one.n_bytes = value->n_bytes;
    }
    else if (what->kind == OJ_AGG_MIN || what->kind == OJ_AGG_MAX)
        one.number = oj_number_order(type, value);
    else if (type == OJ_AGG_INTEGER)
        one.number = (uint64_t)value->integer;
    else
        memcpy(&one.number, &value->real, sizeof one.number);
    return oj_row_choose(a, state, i, &one, err);
}

/* Spills the largest stores until the rest is within the bound. */
static oj_status check_memory(struct oj_aggregates *a, struct oj_error *err)
{
    a->n_to_check = PAIRS_UNCHECKED;
    while (a->plan.memory > 0)
    {
        int64_t total = 0, most = 0;
        int largest = 0;
        for (int i = 0; i < a->n_stores; i++)
        {
            int64_t bytes = oj_held_bytes(a->stores[i].held);
            total += bytes;
            if (bytes > most)
            {
                most = bytes;
                largest = i;
            }
        }
        if (total <= a->plan.memory)
            break;
        OJ_TRY(oj_held_spill(a->stores[largest].held, err));
    }
    return OJ_OK;
}

static oj_status hold(struct oj_aggregates *a,
                      const struct oj_aggregate_pair *pair,
                      struct oj_error *err)
{
    for (int i = 0; i < a->n_stores; i++)
    {
        const struct oj_store *store = &a->stores[i];
        const struct oj_aggregate_value *value = &pair->values[store->column];
        struct oj_held_value held = {
            pair->row, 0, pair->fid, pair->place, value->bytes, value->n_bytes};
        if (value->is_null)
            continue;
        if (store->order == OJ_HELD_BY_NUMBER)
            held.number = oj_number_order(a->plan.types[store->column], value);
        OJ_TRY(oj_held_add(store->held, &held, err));
    }
    return --a->n_to_check > 0 ? OJ_OK : check_memory(a, err);
}

static oj_status add_one(struct oj_aggregates *a, uint64_t *state, int i,
                         const struct oj_aggregate_pair *pair,
                         struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const struct oj_aggregate_value *value = &pair->values[what->column];
    struct oj_exact_sum *sum;
    if (value->is_null)
        return OJ_OK;
    if (oj_aggregate_chooses(what->kind))
        return choose(a, state, i, pair, err);
    sum = (void *)(state + a->state[i]);
    OJ_TRY(oj_exact_sum_add(sum,
                            pair->share *
                                (a->plan.types[what->column] == OJ_AGG_INTEGER
                                     ? (double)value->integer
                                     : value->real),
                            err));
    a->owns_memory |= sum->is_wide;
    return OJ_OK;
}

oj_status oj_aggregates_add(struct oj_aggregates *a,
                            const struct oj_aggregate_pair *pair,
                            struct oj_error *err)
{
    uint64_t *state = oj_row_state(a, pair->row);
    state[0]++;
    for (int i = 0; i < a->plan.n_aggregates; i++)
    {
        enum oj_aggregate_kind kind = a->plan.aggregates[i].kind;
        if (kind == OJ_AGG_WEIGHTED_SUM || oj_aggregate_chooses(kind))
            OJ_TRY(add_one(a, state, i, pair, err));
    }
    for (int c = 0; c < a->plan.n_columns; c++)
    {
        const struct oj_aggregate_value *value = &pair->values[c];
        if (value->is_null)
            continue;
        if (a->columns[c].n >= 0)
            state[a->columns[c].n]++;
        OJ_TRY(oj_row_add_sums(a, state, c, value, err));
    }
    return a->n_stores > 0 ? hold(a, pair, err) : OJ_OK;
}

oj_status oj_aggregates_rewind(struct oj_aggregates *a, struct oj_error *err)
{
    for (int i = 0; i < a->n_stores; i++)
        OJ_TRY(oj_held_rewind(a->stores[i].held, err));
    return OJ_OK;
}

int64_t oj_aggregates_spills(const struct oj_aggregates *a)
{
    int64_t n = 0;
    for (int i = 0; i < a->n_stores; i++)
        n += oj_held_runs(a->stores[i].held);
    return n;
}

int64_t oj_aggregates_pairs(const struct oj_aggregates *a, int64_t row)
{
    return (int64_t)oj_row_state(a, row)[0];
}
