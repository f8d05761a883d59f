#include "rows_aggregates.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../pairs/values/oj_pair_stage.h"
#include "../arrow/arrow_values.h"
#include "../arrow/oj_arrow_column.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
    TIME_BYTES = 8, /* bytes of a time, in an order that memcmp() respects */
    PAIRS_AT_ONCE = 1 << 16 /* maximum pairs that are passed to the aggregates
                               in one call */
};

/* Values of one field for all rows of the join side; the array that is used
 * depends on the type. */
struct join_values
{
    uint8_t *is_null;
    int64_t *integer;
    double *real;
    struct oj_aggregate_bytes *bytes;
    char *text; /* bytes of times, and of texts that were made from other
                   types */
    int64_t n_text, cap_text;
    struct oj_plain_list list; /* text of the list of one row */
    int is_compared; /* 1: numbers that are compared for equality (unique, mode,
                        minority), so that decimals must not be rounded */
};

struct rows_aggregates
{
    const struct rows_side *join;
    const struct rows_chunks *chunks;
    struct oj_aggregate_words words;
    struct oj_aggregate_column *column; /* [words.n_fields] values of each
                                           field, as oj_aggregates_add() takes
                                           them */
    struct join_values *values;         /* [words.n_fields] memory of the values
                                           of fields of the join side */
    struct oj_aggregate_plan plan;
    struct oj_aggregates *state;
    int64_t *place;   /* [join rows] ordinal of each row: 0, 1, 2 .. */
    int64_t last_row; /* row of which results were read last; -1: none */

    /* The following arrays have PAIRS_AT_ONCE elements, for the pairs of one
     * call: input row, join row (at) and share of each pair. share is NULL
     * without weighted sums. */
    int64_t *row;
    int32_t *at;
    double *share;

    /* Arrays for columns of pairs, otherwise NULL; rank: only if a column of
     * ranks is used */
    int64_t *entry;
    int32_t *rank;
    struct oj_aggregate_pair_columns pair_columns;
};

/* ---- values of the join side --------------------------------------------- */

static oj_status keep_text(struct join_values *v, int64_t row, const char *text,
                           int64_t n, struct oj_error *err)
{
    OJ_ROOM(v->text, v->n_text, v->n_text + n + 1, v->cap_text, err);
    memcpy(v->text + v->n_text, text, (size_t)n);
    v->bytes[row].bytes = NULL; /* set later by set_pointers_to_kept_texts(),
                                   because the memory may still move */
    v->bytes[row].n = n;
    v->n_text += n;
    return OJ_OK;
}

/* Writes a time as bytes that memcmp() orders chronologically. */
static void write_time_as_sortable_bytes(int64_t time, char to[TIME_BYTES])
{
    uint64_t bits = (uint64_t)time ^ (UINT64_C(1) << 63);
    for (int i = 0; i < TIME_BYTES; i++)
        to[i] = (char)(bits >> (8 * (TIME_BYTES - 1 - i)));
}

static int64_t read_time_of_sortable_bytes(const char *from)
{
    uint64_t bits = 0;
    for (int i = 0; i < TIME_BYTES; i++)
        bits = bits << 8 | (uint8_t)from[i];
    return (int64_t)(bits ^ (UINT64_C(1) << 63));
}

/* Reads a number. Fails with OJ_ERR_LIMIT for an integer beyond int64_t. */
static oj_status read_number(struct join_values *v, int64_t row,
                             const struct oj_plain_value *value,
                             struct oj_error *err)
{
    if (v->integer != NULL && value->form == OJ_PLAIN_REAL)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "agg: the number %.17g in row %lld of the right side "
                       "does not fit into a signed 64-bit integer: convert the "
                       "column to float64",
                       value->real, (long long)row);
    v->is_null[row] = value->form == OJ_PLAIN_NULL;
    if (v->integer != NULL)
        v->integer[row] = value->form == OJ_PLAIN_INTEGER ? value->integer : 0;
    else
        v->real[row] =
            value->form == OJ_PLAIN_REAL || value->form == OJ_PLAIN_DECIMAL
                ? value->real
            : value->form == OJ_PLAIN_INTEGER ? (double)value->integer
                                              : 0;
    return OJ_OK;
}

/* digits: those of reals that are written. */
static oj_status read_text(struct join_values *v, int64_t row,
                           enum oj_aggregate_form form,
                           const struct oj_plain_value *value, int digits,
                           struct oj_error *err)
{
    char number[OJ_PLAIN_TEXT_BYTES];
    v->is_null[row] = value->form == OJ_PLAIN_NULL;
    v->bytes[row].bytes = "";
    v->bytes[row].n = 0;
    if (value->form == OJ_PLAIN_NULL)
        return OJ_OK;
    if (form == OJ_FORM_TEXT)
    {
        v->bytes[row].bytes = value->text;
        v->bytes[row].n = value->n;
        return OJ_OK;
    }
    if (value->form == OJ_PLAIN_TEXT || value->form == OJ_PLAIN_DECIMAL)
        return keep_text(v, row, value->text, value->n, err);
    return keep_text(v, row, number,
                     oj_plain_value_write(value, digits, number), err);
}

/* Fails if a double could also mean another value than that of a decimal, so
 * that unique, mode and minority would not distinguish them. */
static oj_status check_decimal_is_distinct(const struct oj_plain_value *value,
                                           int64_t row, struct oj_error *err)
{
    const int64_t most = INT64_C(1) << 53;
    char number[OJ_PLAIN_TEXT_BYTES];
    const char *text = number;
    int64_t n;
    const int is_distinct =
        value->form == OJ_PLAIN_DECIMAL ? !isnan(value->real)
        : value->form == OJ_PLAIN_INTEGER
            ? value->integer >= -most && value->integer <= most
            : value->integer == 0;
    if (is_distinct)
        return OJ_OK;
    n = value->n;
    if (value->form == OJ_PLAIN_DECIMAL)
        text = value->text;
    else
        n = oj_plain_value_write(value, OJ_PLAIN_DIGITS, number);
    return oj_fail(err, OJ_ERR_LIMIT,
                   "agg: unique, mode and minority compare decimals as "
                   "doubles, which round %.*s in row %lld of the right side: "
                   "cast the column to int64 or to texts",
                   (int)n, text, (long long)row);
}

static oj_status read_value(const struct ArrowSchema *schema,
                            const struct ArrowArray *array, int64_t at,
                            enum oj_aggregate_form form, int64_t row,
                            struct join_values *v, struct oj_error *err)
{
    struct oj_plain_value value = {OJ_PLAIN_NULL, 0, 0, NULL, 0};
    struct oj_arrow_room room;
    char ordered[TIME_BYTES];
    int is_there = 0;
    if (form == OJ_FORM_PRESENCE)
    {
        if (at >= 0)
            OJ_TRY(oj_arrow_has_value(schema, array, at, &is_there, err));
        v->is_null[row] = !is_there;
        v->integer[row] = is_there;
        return OJ_OK;
    }
    if (at >= 0 && form == OJ_FORM_TIME)
    {
        OJ_TRY(oj_arrow_time_as_integer(schema, array, at, &value, err));
        write_time_as_sortable_bytes(value.integer, ordered);
        if (value.form != OJ_PLAIN_NULL)
            value = oj_plain_text(ordered, TIME_BYTES);
    }
    else if (at >= 0 && oj_field_kind_is_list(oj_arrow_field_kind(
                            oj_arrow_schema_of_decoded_values(schema))))
    {
        OJ_TRY(
            oj_arrow_write_list(schema, array, at, &v->list, &is_there, err));
        if (is_there)
            value = oj_plain_text(v->list.text, v->list.n);
    }
    else if (at >= 0 && oj_arrow_is_decimal(schema) &&
             (form == OJ_FORM_WRITTEN || v->is_compared))
    {
        OJ_TRY(
            oj_arrow_compared_value(schema, array, at, 0, &room, &value, err));
        if (v->is_compared)
            OJ_TRY(check_decimal_is_distinct(&value, row, err));
    }
    else if (at >= 0)
        OJ_TRY(oj_arrow_plain_value(schema, array, at, &room, &value, err));
    return form == OJ_FORM_NUMBER
               ? read_number(v, row, &value, err)
               : read_text(v, row, form, &value, oj_arrow_digits(schema), err);
}

/* Sets the pointers that keep_text() left NULL while v->text could still move.
 * v->text holds the kept texts in the order of the rows; rows that are NULL or
 * borrow their text have a pointer already. */
static void set_pointers_to_kept_texts(struct join_values *v, int64_t n)
{
    int64_t at = 0;
    for (int64_t i = 0; v->bytes != NULL && i < n; i++)
    {
        if (v->bytes[i].bytes != NULL)
            continue;
        v->bytes[i].bytes = v->text + at;
        at += v->bytes[i].n;
    }
}

/* Returns 1 if the Arrow column can be used without conversion: 8-byte numbers
 * of the type that the aggregates need. */
static int is_plain_number(const struct rows_aggregates *a, int i)
{
    const struct oj_aggregate_field *field = &a->words.fields[i];
    const struct ArrowSchema *schema = a->join->schema.children[field->column];
    return field->form == OJ_FORM_NUMBER && schema->dictionary == NULL &&
           strcmp(schema->format,
                  a->words.types[i] == OJ_AGG_INTEGER ? "l" : "g") == 0;
}

/* Sets v->is_null for the rows of chunk k; not allocated until a row is NULL.
 */
static oj_status read_nulls_of_chunk(const struct rows_chunks *chunks,
                                     int64_t k, int column,
                                     struct join_values *v,
                                     struct oj_error *err)
{
    const struct ArrowArray *record = oj_arrow_shared_array(chunks->shared[k]);
    const struct ArrowArray *array = record->children[column];
    const uint8_t *outer = arrow_validity(record);
    const uint8_t *valid = arrow_validity(array);
    if (outer == NULL && valid == NULL)
        return OJ_OK;
    if (v->is_null == NULL)
        OJ_NEW_ZEROED(v->is_null, rows_chunks_count_rows(chunks), err);
    for (int64_t row = chunks->first[k]; row < chunks->first[k + 1]; row++)
    {
        int64_t at = record->offset + row - chunks->first[k];
        v->is_null[row] =
            !arrow_bit(outer, at) || !arrow_bit(valid, array->offset + at);
    }
    return OJ_OK;
}

/* Reads a column of 8-byte numbers: in place if there is one array, otherwise
 * copied. */
static oj_status read_plain_numbers(const struct rows_aggregates *a, int i,
                                    struct oj_error *err)
{
    const struct rows_chunks *chunks = a->chunks;
    int column = a->words.fields[i].column;
    struct join_values *v = &a->values[i];
    const void *values = NULL;
    char *copy = NULL;
    if (chunks->n > 1)
    {
        OJ_NEW(v->integer, rows_chunks_count_rows(chunks), err);
        values = copy = (char *)v->integer;
    }
    for (int64_t k = 0; k < chunks->n; k++)
    {
        const struct ArrowArray *record =
            oj_arrow_shared_array(chunks->shared[k]);
        const struct ArrowArray *array = record->children[column];
        const char *from = (const char *)array->buffers[1] +
                           8 * (array->offset + record->offset);
        if (copy != NULL)
            memcpy(copy + 8 * chunks->first[k], from,
                   8 * (size_t)(chunks->first[k + 1] - chunks->first[k]));
        else
            values = from;
        OJ_TRY(read_nulls_of_chunk(chunks, k, column, v, err));
    }
    if (a->words.types[i] == OJ_AGG_INTEGER)
        a->column[i].integer = values;
    else
        a->column[i].real = values;
    a->column[i].is_null = v->is_null;
    return OJ_OK;
}

/* Returns 1 if the values of field i are only counted. */
static int is_only_counted(const struct oj_aggregate_words *words, int i)
{
    for (int w = 0; w < words->n; w++)
    {
        const struct oj_aggregate *what = &words->aggregates[w];
        if ((what->kind != OJ_AGG_COUNT && what->kind != OJ_AGG_COUNT_VALUES &&
             what->column == i) ||
            (what->kind == OJ_AGG_WEIGHTED_MEAN && what->weight == i))
            return 0;
    }
    return 1;
}

/* Returns 1 if the values of field i are compared for equality. */
static int is_compared(const struct oj_aggregate_words *words, int i)
{
    for (int w = 0; w < words->n; w++)
    {
        const struct oj_aggregate *what = &words->aggregates[w];
        if (what->column == i &&
            (what->kind == OJ_AGG_UNIQUE || what->kind == OJ_AGG_MODE ||
             what->kind == OJ_AGG_MINORITY))
            return 1;
    }
    return 0;
}

/* Returns the form in which the values of field i are read. Integers that are
 * only counted may be unsigned and of any size. */
static enum oj_aggregate_form form_of_field(const struct rows_aggregates *a,
                                            int i)
{
    return a->words.types[i] == OJ_AGG_INTEGER && is_only_counted(&a->words, i)
               ? OJ_FORM_PRESENCE
               : a->words.fields[i].form;
}

static oj_status read_field(const struct rows_aggregates *a, int i,
                            struct oj_error *err)
{
    const struct oj_aggregate_field *field = &a->words.fields[i];
    const struct ArrowSchema *schema = a->join->schema.children[field->column];
    const enum oj_aggregate_form form = form_of_field(a, i);
    struct join_values *v = &a->values[i];
    int64_t n = rows_chunks_count_rows(a->chunks);
    if (is_plain_number(a, i))
        return read_plain_numbers(a, i, err);
    v->is_compared = field->form == OJ_FORM_NUMBER && is_compared(&a->words, i);
    OJ_NEW(v->is_null, n, err);
    if (a->words.types[i] == OJ_AGG_INTEGER)
        OJ_NEW(v->integer, n, err);
    else if (a->words.types[i] == OJ_AGG_REAL)
        OJ_NEW(v->real, n, err);
    else
        OJ_NEW(v->bytes, n, err);
    for (int64_t row = 0; row < n; row++)
    {
        int64_t at;
        const struct ArrowArray *array =
            rows_chunks_locate_value(a->chunks, field->column, row, &at);
        OJ_TRY(read_value(schema, array, at, form, row, v, err));
    }
    set_pointers_to_kept_texts(v, n);
    a->column[i].integer = v->integer;
    a->column[i].real = v->real;
    a->column[i].bytes = v->bytes;
    a->column[i].is_null = v->is_null;
    return OJ_OK;
}

/* ---- open and close ------------------------------------------------------ */

static oj_status find_join_field(void *user, const char *name, int *column,
                                 struct oj_field_description *field,
                                 struct oj_error *err)
{
    const struct rows_aggregates *a = user;
    int64_t found;
    OJ_TRY(rows_side_find_column(a->join, "agg", name, &found, err));
    *field = rows_side_field(a->join, found);
    *column = (int)found;
    return OJ_OK;
}

/* Returns 1 if a column has the ranks of pairs. */
static int has_column_of_ranks(const struct oj_aggregate_words *words)
{
    for (int i = 0; i < words->n_fields; i++)
    {
        if (words->is_of_pairs[i] && words->fields[i].origin == OJ_COLUMN_RANK)
            return 1;
    }
    return 0;
}

static oj_status open_aggregates(struct rows_aggregates *a, const char *words,
                                 const struct oj_row_column_words *names,
                                 unsigned char *want, const char **hidden,
                                 struct oj_error *err)
{
    const struct oj_join_field_finder finder = {find_join_field, a};
    int64_t n_join = rows_chunks_count_rows(a->chunks);
    OJ_TRY(oj_aggregate_words_parse("", words, &a->words, err));
    OJ_TRY(oj_aggregate_columns_bind(names, &finder, &a->words, want, hidden,
                                     err));
    if (a->words.has_weighted_sum)
        oj_aggregate_words_request_share_values(want);
    OJ_NEW_ZEROED(a->column, a->words.n_fields, err);
    OJ_NEW_ZEROED(a->values, a->words.n_fields, err);
    for (int i = 0; i < a->words.n_fields; i++)
    {
        if (!a->words.is_of_pairs[i])
            OJ_TRY(read_field(a, i, err));
    }
    if (a->words.needs_places)
    {
        OJ_NEW(a->place, n_join, err);
        for (int64_t i = 0; i < n_join; i++)
            a->place[i] = i;
    }
    OJ_NEW(a->row, PAIRS_AT_ONCE, err);
    OJ_NEW(a->at, PAIRS_AT_ONCE, err);
    if (a->words.has_weighted_sum)
        OJ_NEW(a->share, PAIRS_AT_ONCE, err);
    if (a->words.n_of_pairs > 0)
    {
        OJ_NEW(a->entry, PAIRS_AT_ONCE, err);
        if (has_column_of_ranks(&a->words))
            OJ_NEW(a->rank, PAIRS_AT_ONCE, err);
    }
    a->plan.aggregates = a->words.aggregates;
    a->plan.n_aggregates = a->words.n;
    a->plan.types = a->words.types;
    a->plan.is_of_pairs = a->words.is_of_pairs;
    a->plan.n_columns = a->words.n_fields;
    return oj_aggregates_open(&a->plan, &a->state, err);
}

oj_status rows_aggregates_open(const char *words,
                               const struct oj_row_column_words *names,
                               const struct rows_side *join,
                               const struct rows_chunks *chunks,
                               unsigned char *want, const char **hidden,
                               struct rows_aggregates **out,
                               struct oj_error *err)
{
    struct rows_aggregates *a;
    oj_status status;
    OJ_NEW_ZEROED(a, 1, err);
    a->join = join;
    a->chunks = chunks;
    status = open_aggregates(a, words, names, want, hidden, err);
    if (status == OJ_OK)
        *out = a;
    else
        rows_aggregates_close(a);
    return status;
}

void rows_aggregates_close(struct rows_aggregates *a)
{
    if (a == NULL)
        return;
    oj_aggregates_close(a->state);
    for (int i = 0; a->values != NULL && i < a->words.n_fields; i++)
    {
        oj_free(a->values[i].is_null);
        oj_free(a->values[i].integer);
        oj_free(a->values[i].real);
        oj_free(a->values[i].bytes);
        oj_free(a->values[i].text);
        oj_plain_list_free(&a->values[i].list);
    }
    oj_free(a->values);
    oj_free(a->column);
    oj_aggregate_words_free(&a->words);
    oj_free(a->place);
    oj_free(a->row);
    oj_free(a->at);
    oj_free(a->share);
    oj_free(a->entry);
    oj_free(a->rank);
    oj_aggregate_pair_columns_free(&a->pair_columns);
    oj_free(a);
}

const struct oj_aggregate_words *
rows_aggregates_words(const struct rows_aggregates *a)
{
    return &a->words;
}

/* ---- adding pairs -------------------------------------------------------- */

/* Sets elements n .. n + count - 1 of the list to pairs of a row, from pair p
 * on, which has this rank. */
static void list_pairs_of_row(struct rows_aggregates *a,
                              const struct oj_matches *matches, int64_t row,
                              int64_t p, int64_t rank, int64_t n, int64_t count)
{
    const int32_t *join_row = matches->join_row + p;
    for (int64_t i = 0; i < count; i++)
    {
        a->row[n + i] = row;
        a->at[n + i] = join_row[i];
    }
    for (int64_t i = 0; a->entry != NULL && i < count; i++)
        a->entry[n + i] = p + i;
    for (int64_t i = 0; a->rank != NULL && i < count; i++)
        a->rank[n + i] = (int32_t)(rank + i);
}

/* Lists pairs of matches, starting at pair *p of row *row, until the list is
 * full. Advances both to the first pair that did not fit. */
static void list_pairs(struct rows_aggregates *a,
                       const struct oj_matches *matches,
                       const struct oj_flat *join_side,
                       const struct oj_pair_values *values, int64_t *row,
                       int64_t *p, struct oj_aggregate_pairs *all)
{
    int64_t n = 0;
    while (*row < matches->n_rows && n < PAIRS_AT_ONCE)
    {
        int64_t first = oj_matches_first(matches, *row);
        int64_t end = oj_matches_end(matches, *row), count = end - *p;
        if (count > PAIRS_AT_ONCE - n)
            count = PAIRS_AT_ONCE - n;
        list_pairs_of_row(a, matches, *row, *p, *p - first + 1, n, count);
        for (int64_t i = 0; a->share != NULL && i < count; i++)
            a->share[n + i] = oj_pair_covered_fraction(join_side, a->at[n + i],
                                                       values, *p + i);
        n += count;
        *p += count;
        if (*p >= end && ++*row < matches->n_rows)
            *p = oj_matches_first(matches, *row);
    }
    all->n = n;
}

static oj_status add_pairs(struct rows_aggregates *a,
                           const struct oj_matches *matches,
                           const struct oj_flat *join_side,
                           const struct oj_pair_values *values,
                           struct oj_error *err)
{
    struct oj_aggregate_pairs all = {.row = a->row,
                                     .at = a->at,
                                     .columns = a->column,
                                     .place = a->place,
                                     .share = a->share};
    int64_t row = 0, p = matches->n_rows > 0 ? oj_matches_first(matches, 0) : 0;
    all.fid =
        a->place != NULL && join_side->fid != NULL ? join_side->fid : a->place;
    while (row < matches->n_rows)
    {
        list_pairs(a, matches, join_side, values, &row, &p, &all);
        OJ_TRY(oj_aggregate_pair_columns_read(
            &a->words,
            &(struct oj_aggregate_pair_list){all.n, matches, values, a->entry,
                                             a->rank, a->at, all.fid},
            &a->pair_columns, a->column, err));
        if (all.n > 0)
            OJ_TRY(oj_aggregates_add(a->state, &all, err));
    }
    return OJ_OK;
}

oj_status rows_aggregates_add(struct rows_aggregates *a,
                              const struct oj_flat *input,
                              const struct oj_matches *matches,
                              int enough_pairs, const struct oj_flat *join_side,
                              const struct oj_pair_values *values,
                              struct oj_matches *out, struct oj_error *err)
{
    OJ_TRY(oj_aggregates_reset(a->state, matches->n_rows, err));
    if (enough_pairs)
        oj_aggregate_add_counts(matches, 0, a->state);
    else
        OJ_TRY(add_pairs(a, matches, join_side, values, err));
    OJ_TRY(oj_aggregate_words_mark_undefined_percents(&a->words, input, 0,
                                                      a->state, err));
    OJ_TRY(oj_aggregates_rewind(a->state, err));
    a->last_row = -1;
    OJ_TRY(oj_matches_reserve(out, matches->n_rows, matches->n_rows, 0, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int has_pair =
            oj_matches_first(matches, row) < oj_matches_end(matches, row);
        out->join_row[row] = has_pair ? 0 : -1;
        out->measure[row] = (double)NAN;
        out->n_pairs += has_pair;
        out->n_matched += has_pair;
    }
    return OJ_OK;
}

/* ---- results ------------------------------------------------------------- */

/* Returns the Arrow format of the results of aggregate i. Decimals and half
 * floats become float64; dictionaries and runs become their values; a column of
 * type null becomes int64 with only NULLs. */
static const char *format_of_result(const struct rows_aggregates *a, int i)
{
    const struct oj_aggregate_word *word = &a->words.word[i];
    const struct oj_aggregate *aggregate = &a->words.aggregates[i];
    if (word->gives_value && a->words.is_of_pairs[aggregate->column])
        return word->kind == OJ_FIELD_INT32   ? "i"
               : word->kind == OJ_FIELD_INT64 ? "l"
               : word->kind == OJ_FIELD_TEXT  ? "u"
                                              : "g";
    if (word->gives_value)
    {
        int column = a->words.fields[aggregate->column].column;
        const char *format =
            oj_arrow_schema_of_decoded_values(a->join->schema.children[column])
                ->format;
        if (format[0] == 'd' || format[0] == 'e')
            return "g";
        if (format[0] == 'n')
            return "l";
        return strcmp(format, "vu") == 0 ? "u" : format;
    }
    return word->type == OJ_AGG_INTEGER ? "l"
           : word->type == OJ_AGG_REAL  ? "g"
                                        : "u";
}

oj_status rows_aggregates_schema(const struct rows_aggregates *a, int i,
                                 const char *name, struct ArrowSchema *out,
                                 struct oj_error *err)
{
    return oj_arrow_schema_make(format_of_result(a, i), name, NULL,
                                ARROW_FLAG_NULLABLE, 0, out, err);
}

/* A result column that is being built. */
struct result_column
{
    const char *format;
    struct oj_arrow_column column;
};

static oj_status put_aggregate_result(const struct oj_aggregate_value *value,
                                      int64_t i, struct result_column *result,
                                      struct oj_error *err)
{
    struct oj_arrow_column *column = &result->column;
    const char *format = result->format;
    char *to;
    if (value->is_null)
        return oj_arrow_column_put_null(column, i, err);
    if (format[0] == 'f' || format[0] == 'g')
        return oj_arrow_column_put_real(column, i, value->real, err);
    if (column->type.storage != OJ_STORES_BYTES)
        return oj_arrow_column_put_integer(
            column, i,
            format[0] == 't' ? read_time_of_sortable_bytes(value->bytes)
                             : value->integer,
            err);
    OJ_TRY(oj_arrow_column_put_bytes(column, i, value->n_bytes, &to, err));
    if (to == NULL)
        return arrow_fail_limit(err);
    if (value->n_bytes > 0)
        memcpy(to, value->bytes, (size_t)value->n_bytes);
    return OJ_OK;
}

/* Fills all columns row by row, because oj_aggregates_result() reads the sorted
 * values of the aggregates in the order of the rows. */
static oj_status fill_result_columns(struct rows_aggregates *a,
                                     const int64_t *rows, int64_t n,
                                     struct result_column *columns,
                                     struct oj_error *err)
{
    for (int w = 0; w < a->words.n; w++)
    {
        columns[w].format = format_of_result(a, w);
        OJ_TRY(oj_arrow_column_open_format(columns[w].format, n,
                                           &columns[w].column, err));
    }
    if (n > 0 && rows[0] <= a->last_row)
        OJ_TRY(oj_aggregates_rewind(a->state, err));
    for (int64_t i = 0; i < n; i++)
    {
        a->last_row = rows[i];
        for (int w = 0; w < a->words.n; w++)
        {
            struct oj_aggregate_value value;
            OJ_TRY(oj_aggregates_result(a->state, rows[i], w, &value, err));
            OJ_TRY(put_aggregate_result(&value, i, &columns[w], err));
        }
    }
    return OJ_OK;
}

oj_status rows_aggregates_results(struct rows_aggregates *a,
                                  const int64_t *rows, int64_t n,
                                  struct ArrowArray *const *out,
                                  struct oj_error *err)
{
    struct result_column *columns;
    oj_status status;
    OJ_NEW_ZEROED(columns, a->words.n, err);
    status = fill_result_columns(a, rows, n, columns, err);
    for (int w = 0; w < a->words.n && status == OJ_OK; w++)
        status = oj_arrow_column_finish(&columns[w].column, n, out[w], err);
    for (int w = 0; w < a->words.n; w++)
        oj_arrow_column_free(&columns[w].column);
    oj_free(columns);
    return status;
}
