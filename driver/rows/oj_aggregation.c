#include "oj_aggregation.h"

#include "../../algs/api/rows/oj_plain_value.h"
#include "../../algs/api/rows/oj_row_columns.h"
#include "../../algs/pairs/selection/oj_feature_area_length.h"
#include "../../algs/pairs/values/oj_pair_stage.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_temporary_file.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../base/oj_message.h"
#include "../source/oj_layer_field_kind.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* -memory: 1/MEMORY_SHARE of it is for aggregates that must sort values, the
 * rest for the join side and the batches. */
#define MEMORY_SHARE 4

enum
{
    BLOCK_FEATURES = 1024,
    BLOCK_PAIRS = 4096,
    TIME_BYTES = sizeof(uint64_t) + sizeof((OGRField *)0)->Date
};

/* Memory for one column of values. */
struct memory
{
    void *value; /* array of the column's type */
    uint8_t *is_null;
    char *pool; /* copies of texts and binaries that are not stored elsewhere */
    int64_t cap_value, cap_null, n_pool, cap_pool;
};

/* Values of several features, one column per field. */
struct values
{
    struct oj_aggregate_column *column; /* views of `memory` */
    struct memory *memory;
};

/* Pairs that wait to be added to the aggregates, because adding many at once is
 * faster. */
struct block
{
    const struct oj_attributes *source; /* attributes of the features */
    const int64_t *fid;                 /* [features of source], or NULL */
    /* [features of source] indices in the join layer; NULL if they are
     * consecutive from first_place on */
    const int64_t *ordinal;
    /* index in the join layer of row 0 of source, if ordinal is NULL */
    int64_t first_place;

    struct values values;
    int64_t n_features, n_pairs;
    int32_t feature[BLOCK_FEATURES]; /* rows of source that occur in the
                                        block */
    int64_t fids[BLOCK_FEATURES], places[BLOCK_FEATURES];
    int64_t row[BLOCK_PAIRS];
    int32_t at[BLOCK_PAIRS]; /* index in `feature` of each pair's feature */
    double share[BLOCK_PAIRS];

    /* Used for columns of pairs. */
    const struct oj_matches *matches;
    const struct oj_pair_values *pair_values;
    int64_t entry[BLOCK_PAIRS];
    int32_t rank[BLOCK_PAIRS];
    struct oj_aggregate_pair_columns pair_columns;
};

struct oj_aggregation
{
    struct oj_job *job;
    struct oj_aggregate_words words;
    struct oj_computed_column *columns; /* [words.n] */
    struct oj_computed_type *types;     /* [words.n] types of these columns */
    /* [words.n_fields] fields that the aggregates read; elements for columns of
     * pairs are unused */
    struct oj_side_field *fields;
    int needs_overlap;
    struct oj_value_sort_files files;
    struct oj_aggregate_plan plan;
    struct oj_aggregates *state;
    struct block *block;
    struct oj_matches rows; /* one entry per row of the last answer */
    int64_t first_row;

    struct oj_plain_list list; /* text of the list of one feature */

    /* Used if the join layer is streamed; n_input is the number of input rows.
     */
    int64_t n_input;
    /* aggregates that were summed without pairs; NULL if there are none */
    struct oj_aggregates *sums;
    struct values summed;
};

/* ---- result columns ------------------------------------------------------ */

/* Defines the column of a result. from is the aggregated field. It is NULL for
 * a count of pairs and for columns of pairs. */
static void define_result_column(const struct oj_aggregate_word *word,
                                 int source, OGRFieldDefnH from,
                                 struct oj_computed_column *column,
                                 struct oj_computed_type *type)
{
    static const OGRFieldType usual[] = {[OJ_AGG_INTEGER] = OFTInteger64,
                                         [OJ_AGG_REAL] = OFTReal,
                                         [OJ_AGG_BYTES] = OFTString};
    *column = oj_computed_column_of_aggregate(word, source);
    type->subtype = OFSTNone;
    if (from != NULL && word->gives_value)
    {
        type->type = OGR_Fld_GetType(from);
        type->subtype = OGR_Fld_GetSubType(from);
    }
    else
        type->type =
            word->kind == OJ_FIELD_INT32 ? OFTInteger : usual[word->type];
}

static oj_status find_join_field(void *user, const char *name, int *column,
                                 struct oj_field_description *field,
                                 struct oj_error *err)
{
    struct oj_aggregation *a = user;
    OGRFieldDefnH defn = NULL;
    OJ_TRY(
        oj_source_need_field(&a->job->join, name, "agg", column, &defn, err));
    *field = oj_layer_field_describe(defn);
    return OJ_OK;
}

/* Finds the field or the column of pairs that each aggregate reads, and defines
 * the columns of the results. */
static oj_status bind_aggregates(struct oj_aggregation *a,
                                 const struct oj_row_column_words *words,
                                 unsigned char *want, struct oj_error *err)
{
    const struct oj_join_field_finder finder = {find_join_field, a};
    const struct oj_source *join = &a->job->join;
    const char *hidden = NULL;
    OJ_TRY(oj_aggregate_columns_bind(words, &finder, &a->words, want, &hidden,
                                     err));
    if (hidden != NULL)
        oj_notice("-agg: %s means the field of the join layer, not the column "
                  "of pairs with this name; rename the field (-join_sql) to "
                  "get the other",
                  hidden);
    OJ_NEW_ZEROED(a->fields, a->words.n_fields + 1, err);
    for (int f = 0; f < a->words.n_fields; f++)
    {
        struct oj_side_field *of = &a->fields[f];
        OGRFieldDefnH defn;
        if (a->words.is_of_pairs[f])
            continue;
        defn = oj_source_field(join, a->words.fields[f].column);
        of->column = a->words.fields[f].column;
        of->type = OGR_Fld_GetType(defn);
        of->subtype = OGR_Fld_GetSubType(defn);
    }
    for (int i = 0; i < a->words.n; i++)
    {
        const struct oj_aggregate_word *word = &a->words.word[i];
        const int f = a->words.aggregates[i].column;
        const int is_of_field = word->field != NULL && !a->words.is_of_pairs[f];
        define_result_column(
            word, i,
            is_of_field ? oj_source_field(join, a->words.fields[f].column)
                        : NULL,
            &a->columns[i], &a->types[i]);
    }
    return OJ_OK;
}

/* Returns 1 if a weighted sum needs the overlap. For join features that are
 * points it does not, because their share is always 1. */
static int needs_overlap(const struct oj_aggregation *a)
{
    OGRwkbGeometryType type = wkbFlatten(a->job->join.type);
    return a->words.has_weighted_sum && type != wkbPoint &&
           type != wkbMultiPoint;
}

/* ---- open and close ------------------------------------------------------ */

/* Creates a temporary file for sorted values next to the output, because that
 * disk needs free space for the output anyway. Returns its descriptor, or
 * -1. */
static int open_aggregate_spill_file(void *user)
{
    const struct oj_aggregation *a = user;
    const struct oj_command *command = a->job->command;
    struct oj_temporary_file file = {0};
    struct oj_error error;
    if (oj_temporary_file_open(command->output.dst != NULL
                                   ? command->output.dst
                                   : command->input.dataset,
                               "data", &file, &error) != OJ_OK)
        return -1;
    return file.descriptor;
}

static oj_status allocate_value_columns(const struct oj_aggregation *a,
                                        struct values *values,
                                        struct oj_error *err)
{
    OJ_NEW_ZEROED(values->column, a->words.n_fields + 1, err);
    OJ_NEW_ZEROED(values->memory, a->words.n_fields + 1, err);
    return OJ_OK;
}

static oj_status open_aggregation(struct oj_aggregation *a,
                                  const struct oj_row_column_words *words,
                                  unsigned char *want, struct oj_error *err)
{
    const struct oj_command *command = a->job->command;
    int64_t memory = command->memory;
    OJ_TRY(oj_aggregate_words_parse("-", command->aggregates, &a->words, err));
    OJ_NEW_ZEROED(a->columns, a->words.n, err);
    OJ_NEW_ZEROED(a->types, a->words.n, err);
    OJ_NEW_ZEROED(a->block, 1, err);
    OJ_TRY(bind_aggregates(a, words, want, err));
    a->needs_overlap = needs_overlap(a);
    if (a->needs_overlap)
        oj_aggregate_words_request_share_values(want);
    OJ_TRY(allocate_value_columns(a, &a->block->values, err));
    OJ_TRY(allocate_value_columns(a, &a->summed, err));
    a->files.open = open_aggregate_spill_file;
    a->files.user = a;
    a->plan.aggregates = a->words.aggregates;
    a->plan.n_aggregates = a->words.n;
    a->plan.types = a->words.types;
    a->plan.is_of_pairs = a->words.is_of_pairs;
    a->plan.n_columns = a->words.n_fields;
    a->plan.memory = memory / MEMORY_SHARE;
    if (a->plan.memory == 0 && memory > 0)
        a->plan.memory = 1;
    a->plan.files = &a->files;
    return oj_aggregates_open(&a->plan, &a->state, err);
}

oj_status oj_aggregation_open(struct oj_job *job,
                              const struct oj_row_column_words *words,
                              struct oj_schema_request *fields,
                              unsigned char *want, struct oj_aggregation **out,
                              struct oj_error *err)
{
    struct oj_aggregation *a;
    oj_status status;
    OJ_NEW_ZEROED(a, 1, err);
    a->job = job;
    status = open_aggregation(a, words, want, err);
    if (status != OJ_OK)
    {
        oj_aggregation_close(a);
        return status;
    }
    fields->own = a->columns;
    fields->own_types = a->types;
    fields->n_own = a->words.n;
    *out = a;
    return OJ_OK;
}

static void free_values(const struct oj_aggregation *a, struct values *values)
{
    for (int i = 0; values->memory != NULL && i < a->words.n_fields; i++)
    {
        oj_free(values->memory[i].value);
        oj_free(values->memory[i].is_null);
        oj_free(values->memory[i].pool);
    }
    oj_free(values->memory);
    oj_free(values->column);
}

void oj_aggregation_close(struct oj_aggregation *a)
{
    if (a == NULL)
        return;
    oj_aggregates_close(a->state);
    oj_aggregates_close(a->sums);
    oj_matches_free(&a->rows);
    free_values(a, &a->summed);
    if (a->block != NULL)
    {
        free_values(a, &a->block->values);
        oj_aggregate_pair_columns_free(&a->block->pair_columns);
    }
    for (int i = 0; a->fields != NULL && i < a->words.n_fields; i++)
        oj_side_field_free(&a->fields[i]);
    oj_plain_list_free(&a->list);
    oj_free(a->block);
    oj_free(a->fields);
    oj_free(a->columns);
    oj_free(a->types);
    oj_aggregate_words_free(&a->words);
    oj_free(a);
}

int oj_aggregation_needs_only_sums(const struct oj_aggregation *a)
{
    return oj_aggregates_need_only_sums(a->state);
}

int oj_aggregation_counts_pairs(const struct oj_aggregation *a)
{
    return oj_aggregate_words_are_counts(&a->words);
}

/* ---- dates and times as bytes -------------------------------------------- */

/* Encodes a time so that bytes sort by time: first the milliseconds in UTC,
 * which define the order; then the OGR value as it was. */
static void encode_sortable_time(const OGRField *raw, char bytes[TIME_BYTES])
{
    OGRField parts = *raw;
    int64_t ms =
        oj_value_days(raw) * 86400000 + raw->Date.Hour * INT64_C(3600000) +
        raw->Date.Minute * INT64_C(60000) +
        (int64_t)((double)raw->Date.Second * 1000.0 + 0.5) -
        /* TZFlag: 100 is UTC, one step is a quarter of an hour; 0 and 1: no
         * time zone */
        (raw->Date.TZFlag > 1 ? INT64_C(900000) * (raw->Date.TZFlag - 100) : 0);
    uint64_t key = (uint64_t)ms ^ UINT64_C(1) << 63;
    CPL_MSBPTR64(&key);
    CPL_MSBPTR16(&parts.Date.Year);
    CPL_MSBPTR32(&parts.Date.Second);
    parts.Date.Reserved = 0;
    memcpy(bytes, &key, sizeof key);
    memcpy(bytes + sizeof key, &parts.Date, sizeof parts.Date);
}

/* ---- values of fields ---------------------------------------------------- */

/* Appends a value to the pool, because the next value would overwrite its
 * bytes. read_field() sets the pointer to the copy. */
static oj_status copy_bytes_to_pool(struct memory *memory,
                                    const struct oj_aggregate_bytes *bytes,
                                    struct oj_error *err)
{
    OJ_TRY(oj_reserve(&memory->pool, memory->n_pool,
                      memory->n_pool + bytes->n + 1, &memory->cap_pool, 1,
                      err));
    memcpy(memory->pool + memory->n_pool, bytes->bytes, (size_t)bytes->n);
    memory->n_pool += bytes->n;
    return OJ_OK;
}

static oj_status write_list(const struct oj_side_field *field,
                            const OGRField *raw, struct oj_plain_list *list,
                            struct oj_error *err)
{
    const int digits = field->subtype == OFSTFloat32
                           ? OJ_PLAIN_DIGITS_OF_FLOAT32
                           : OJ_PLAIN_DIGITS_OF_LIST;
    /* the count of each of the lists is their first member */
    const int n = raw->IntegerList.nCount;
    OJ_TRY(oj_plain_list_begin(list, n, err));
    for (int i = 0; i < n; i++)
    {
        struct oj_plain_value element;
        if (field->type == OFTIntegerList)
            element = oj_plain_integer(raw->IntegerList.paList[i]);
        else if (field->type == OFTInteger64List)
            element = oj_plain_integer(raw->Integer64List.paList[i]);
        else if (field->type == OFTRealList)
            element = oj_plain_real(raw->RealList.paList[i]);
        else
            element = oj_plain_text(raw->StringList.paList[i],
                                    (int64_t)strlen(raw->StringList.paList[i]));
        OJ_TRY(oj_plain_list_add(list, &element, digits, err));
    }
    return oj_plain_list_end(list, err);
}

/* Appends the text of a value to the pool: lists and numbers as the library
 * writes them in every door, times as OGR does. */
static oj_status write_value(struct oj_side_field *field,
                             const struct oj_value *value,
                             struct oj_plain_list *list, struct memory *memory,
                             struct oj_aggregate_bytes *bytes,
                             struct oj_error *err)
{
    const enum oj_field_kind kind =
        oj_layer_field_kind_of(field->type, field->subtype);
    const struct oj_plain_value real = oj_plain_real(value->raw.Real);
    char number[OJ_PLAIN_TEXT_BYTES];
    if (oj_field_kind_is_list(kind))
    {
        OJ_TRY(write_list(field, &value->raw, list, err));
        *bytes = (struct oj_aggregate_bytes){list->text, list->n};
    }
    else if (kind == OJ_FIELD_FLOAT32)
        *bytes = (struct oj_aggregate_bytes){
            number,
            oj_plain_value_write(&real, OJ_PLAIN_DIGITS_OF_FLOAT32, number)};
    else
        OJ_TRY(oj_side_field_text(field, value, &bytes->bytes, &bytes->n, err));
    return copy_bytes_to_pool(memory, bytes, err);
}

static oj_status read_value(struct oj_side_field *field,
                            enum oj_aggregate_form form,
                            const struct oj_value *value,
                            struct oj_plain_list *list, struct memory *memory,
                            int64_t i, struct oj_error *err)
{
    struct oj_aggregate_bytes *bytes =
        (struct oj_aggregate_bytes *)memory->value + i;
    char time[TIME_BYTES];
    switch (form)
    {
        case OJ_FORM_PRESENCE:
            ((int64_t *)memory->value)[i] = 1;
            break;
        case OJ_FORM_NUMBER:
            if (field->type == OFTReal)
                ((double *)memory->value)[i] = value->raw.Real;
            else
                ((int64_t *)memory->value)[i] = field->type == OFTInteger64
                                                    ? value->raw.Integer64
                                                    : value->raw.Integer;
            break;
        case OJ_FORM_TEXT:
            bytes->bytes = oj_value_bytes(value, OFTString, &bytes->n);
            break;
        case OJ_FORM_TIME:
            encode_sortable_time(&value->raw, time);
            bytes->bytes = time;
            bytes->n = TIME_BYTES;
            return copy_bytes_to_pool(memory, bytes, err);
        case OJ_FORM_WRITTEN:
            return write_value(field, value, list, memory, bytes, err);
    }
    return OJ_OK;
}

/* Reads a field of n features: those from first on, or, if order is not NULL,
 * order[first], order[first + 1], ... */
static oj_status read_field(struct oj_side_field *field,
                            enum oj_aggregate_form form,
                            const struct oj_attributes *source, int64_t first,
                            int64_t n, const int32_t *order,
                            struct oj_plain_list *list, struct memory *memory,
                            struct oj_error *err)
{
    int64_t at = 0;
    memory->n_pool = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_value value;
        oj_attributes_value(source, field->column,
                            order != NULL ? order[first + i] : first + i,
                            &value);
        memory->is_null[i] = !oj_value_is_there(&value);
        if (!memory->is_null[i])
            OJ_TRY(read_value(field, form, &value, list, memory, i, err));
    }
    /* pointers are set only now, when the pool does not move any more */
    for (int64_t i = 0; memory->n_pool > 0 && i < n; i++)
    {
        struct oj_aggregate_bytes *bytes =
            (struct oj_aggregate_bytes *)memory->value + i;
        if (memory->is_null[i])
            continue;
        bytes->bytes = memory->pool + at;
        at += bytes->n;
    }
    return OJ_OK;
}

/* Reads all fields of n features. The values are valid until the next call.
 * Texts point into source or into values->memory. Only one thread may read
 * values of OJ_FORM_WRITTEN (texts that OGR writes), because their fields share
 * a scratch feature. */
static oj_status read_values(struct oj_aggregation *a,
                             const struct oj_attributes *source, int64_t first,
                             int64_t n, const int32_t *order,
                             struct values *values, struct oj_error *err)
{
    static const size_t sizes[] = {[OJ_AGG_INTEGER] = sizeof(int64_t),
                                   [OJ_AGG_REAL] = sizeof(double),
                                   [OJ_AGG_BYTES] =
                                       sizeof(struct oj_aggregate_bytes)};
    for (int f = 0; f < a->words.n_fields; f++)
    {
        const enum oj_aggregate_type type = a->words.types[f];
        struct oj_side_field *field = &a->fields[f];
        struct memory *memory = &values->memory[f];
        struct oj_aggregate_column *column = &values->column[f];
        int any_null = 1;
        if (a->words.is_of_pairs[f])
            continue;
        OJ_TRY(oj_reserve(&memory->is_null, 0, n, &memory->cap_null, 1, err));
        OJ_TRY(oj_reserve(&memory->value, 0, n, &memory->cap_value, sizes[type],
                          err));
        if (type != OJ_AGG_REAL ||
            !oj_attributes_copy_reals(source, field->column, first, n, order,
                                      memory->value, memory->is_null,
                                      &any_null))
            OJ_TRY(read_field(field, a->words.fields[f].form, source, first, n,
                              order, &a->list, memory, err));
        /* only the pointer for the type of the field is used */
        column->real = memory->value;
        column->integer = memory->value;
        column->bytes = memory->value;
        column->is_null = any_null ? memory->is_null : NULL;
    }
    return OJ_OK;
}

/* ---- adding pairs -------------------------------------------------------- */

/* Adds the collected pairs to the aggregates and empties the block. */
static oj_status flush_block(struct oj_aggregation *a, struct oj_error *err)
{
    struct block *block = a->block;
    const int64_t n = block->n_features;
    const struct oj_aggregate_pairs pairs = {block->n_pairs,
                                             block->row,
                                             block->at,
                                             block->values.column,
                                             block->fids,
                                             block->places,
                                             a->needs_overlap ? block->share
                                                              : NULL};
    block->n_features = block->n_pairs = 0;
    if (pairs.n == 0)
        return OJ_OK;
    OJ_TRY(read_values(a, block->source, 0, n, block->feature, &block->values,
                       err));
    for (int64_t i = 0; a->words.needs_places && i < n; i++)
    {
        int32_t feature = block->feature[i];
        block->places[i] = block->ordinal != NULL
                               ? block->ordinal[feature]
                               : block->first_place + feature;
        block->fids[i] =
            block->fid != NULL ? block->fid[feature] : block->places[i];
    }
    OJ_TRY(oj_aggregate_pair_columns_read(
        &a->words,
        &(struct oj_aggregate_pair_list){pairs.n, block->matches,
                                         block->pair_values, block->entry,
                                         block->rank, block->at, block->fids},
        &block->pair_columns, block->values.column, err));
    return oj_aggregates_add(a->state, &pairs, err);
}

/* Adds a pair to the block. rank is its rank among the pairs of its row, and
 * entry its index in the answer. */
static inline oj_status add_pair_to_block(struct oj_aggregation *a, int64_t row,
                                          int32_t feature, double share,
                                          int64_t entry, int32_t rank,
                                          struct oj_error *err)
{
    struct block *block = a->block;
    if (block->n_features == 0 ||
        block->feature[block->n_features - 1] != feature)
    {
        if (block->n_features == BLOCK_FEATURES)
            OJ_TRY(flush_block(a, err));
        block->feature[block->n_features++] = feature;
    }
    block->row[block->n_pairs] = row;
    block->at[block->n_pairs] = (int32_t)block->n_features - 1;
    block->entry[block->n_pairs] = entry;
    block->rank[block->n_pairs] = rank;
    block->share[block->n_pairs++] = share;
    return block->n_pairs < BLOCK_PAIRS ? OJ_OK : flush_block(a, err);
}

/* Begins an empty block for pairs with features of source. Drops pairs that the
 * block may still hold after a failure. */
static void start_block(struct block *block, const struct oj_attributes *source,
                        const int64_t *fid, const int64_t *ordinal,
                        int64_t first_place)
{
    block->source = source;
    block->fid = fid;
    block->ordinal = ordinal;
    block->first_place = first_place;
    block->n_features = block->n_pairs = 0;
}

/* Adds all pairs of an answer. Row i of matches is input row first + i, and its
 * pairs are features of side. If side is NULL, the join layer is streamed: row
 * i is its feature first + i, and its pairs are input rows. */
static oj_status add_pairs_of_answer(struct oj_aggregation *a,
                                     const struct oj_matches *matches,
                                     int64_t first, const struct oj_flat *side,
                                     const struct oj_pair_values *values,
                                     struct oj_error *err)
{
    a->block->matches = matches;
    a->block->pair_values = values;
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t here = first + row, end = oj_matches_end(matches, row);
        int32_t rank = 0;
        for (int64_t p = oj_matches_first(matches, row); p < end; p++)
        {
            int32_t there = matches->join_row[p];
            rank++;
            if (side == NULL)
                OJ_TRY(add_pair_to_block(a, there, (int32_t)here, 1.0, p, rank,
                                         err));
            else
                OJ_TRY(add_pair_to_block(
                    a, here, there,
                    a->needs_overlap
                        ? oj_pair_covered_fraction(side, there, values, p)
                        : 1.0,
                    p, rank, err));
        }
    }
    return flush_block(a, err);
}

oj_status oj_aggregation_reset(struct oj_aggregation *a, int64_t n_rows,
                               struct oj_error *err)
{
    oj_aggregates_close(a->sums);
    a->sums = NULL;
    a->n_input = n_rows;
    return oj_aggregates_reset(a->state, n_rows, err);
}

oj_status oj_aggregation_add(struct oj_aggregation *a, int64_t first,
                             const struct oj_flat *input,
                             const struct oj_matches *matches,
                             const struct oj_answer_side *side,
                             const struct oj_pair_values *values,
                             struct oj_error *err)
{
    const struct oj_attributes source = {.table = side->table};
    if (first == 0)
        OJ_TRY(oj_aggregation_reset(a, matches->n_rows, err));
    OJ_TRY(oj_aggregates_extend(a->state, first + matches->n_rows, err));
    if (a->job->relation.enough_pairs)
    {
        oj_aggregate_add_counts(matches, first, a->state);
        return OJ_OK;
    }
    start_block(a->block, &source, side->flat.fid, side->ordinal, 0);
    OJ_TRY(add_pairs_of_answer(a, matches, first, &side->flat, values, err));
    return oj_aggregate_words_mark_undefined_percents(&a->words, input, first,
                                                      a->state, err);
}

oj_status oj_aggregation_finish(struct oj_aggregation *a, struct oj_error *err)
{
    /* adds the sums that were made without pairs */
    if (a->sums != NULL)
        OJ_TRY(oj_aggregates_merge(a->state, a->sums, err));
    oj_aggregates_close(a->sums);
    a->sums = NULL;
    return oj_aggregates_rewind(a->state, err);
}

/* ---- results ------------------------------------------------------------- */

oj_status oj_aggregation_make_rows(const struct oj_aggregation *a,
                                   int64_t first, int64_t n,
                                   struct oj_matches *out, struct oj_error *err)
{
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t n_pairs = oj_aggregates_pair_count(a->state, first + i);
        out->join_row[i] = n_pairs > 0 ? 0 : -1;
        out->measure[i] = (double)NAN;
        out->n_pairs += n_pairs;
        out->n_matched += n_pairs > 0;
    }
    return OJ_OK;
}

oj_status oj_aggregation_aggregate_one_answer(
    struct oj_aggregation *a, const struct oj_flat *input,
    const struct oj_matches *matches, const struct oj_answer_side *side,
    const struct oj_pair_values *values, const struct oj_matches **rows,
    struct oj_error *err)
{
    OJ_TRY(oj_aggregation_add(a, 0, input, matches, side, values, err));
    OJ_TRY(oj_aggregation_finish(a, err));
    a->first_row = 0;
    OJ_TRY(oj_aggregation_make_rows(a, 0, matches->n_rows, &a->rows, err));
    *rows = &a->rows;
    return OJ_OK;
}

void oj_aggregation_set_first_row(struct oj_aggregation *a, int64_t first)
{
    a->first_row = first;
}

/* Converts a result to a field value, which borrows texts from `from`. */
static void result_to_field_value(const struct oj_aggregate_value *from,
                                  enum oj_aggregate_type result,
                                  OGRFieldType type, struct oj_value *to)
{
    if (from->is_null)
    {
        oj_value_set_null(to);
        return;
    }
    oj_value_set_zero(to);
    if (result == OJ_AGG_REAL)
        to->raw.Real = from->real;
    else if (result == OJ_AGG_INTEGER && type == OFTInteger)
        to->raw.Integer = (int)from->integer;
    else if (result == OJ_AGG_INTEGER)
        to->raw.Integer64 = from->integer;
    else if (type == OFTString)
    {
        to->raw.String = (char *)from->bytes; /* the cast is safe, because the
                                                 text is only read */
        to->n_text = from->n_bytes;
    }
    else /* a time, as encode_sortable_time() wrote it */
    {
        memcpy(&to->raw.Date, from->bytes + sizeof(uint64_t),
               sizeof to->raw.Date);
        CPL_MSBPTR16(&to->raw.Date.Year);
        CPL_MSBPTR32(&to->raw.Date.Second);
    }
}

oj_status oj_aggregation_value(void *user, int source, int64_t row,
                               struct oj_value *value, struct oj_error *err)
{
    struct oj_aggregation *a = user;
    struct oj_aggregate_value result;
    struct oj_error why;
    oj_status status = oj_aggregates_result(a->state, a->first_row + row,
                                            source, &result, &why);
    if (status != OJ_OK)
        return oj_fail(err, status, "-agg: column '%.200s': %.700s",
                       a->columns[source].name, why.message);
    result_to_field_value(&result, a->words.word[source].type,
                          a->types[source].type, value);
    return OJ_OK;
}

/* ---- when to stream the join layer --------------------------------------- */

/* Returns 0 if the join layer cannot be streamed. The k nearest are chosen per
 * input row, weighted sums and columns of pairs are computed per input row,
 * headings are those of the input, and the reference of -validate joins input
 * rows. */
static int can_stream_join_layer(const struct oj_aggregation *a)
{
    const struct oj_job *job = a->job;
    return !oj_relation_sorts_by_measure(&job->relation) &&
           job->relation.metric == OJ_METRIC_PLANAR && !a->needs_overlap &&
           a->words.n_of_pairs == 0 && job->command->validate == NULL &&
           job->command->n_windows == 0 && !job->relation.heading.is_asked &&
           job->command->output.unmatched_join_layer == NULL &&
           !oj_source_reads_once(&job->input);
}

int oj_aggregation_streams_join(const struct oj_aggregation *a)
{
    const char *wish = CPLGetConfigOption("OGRJOIN_AGG_STREAM", "");
    int64_t n_input, n_join;
    if (!can_stream_join_layer(a))
        return 0;
    if (strcasecmp(wish, "join") == 0)
        return 1;
    if (strcasecmp(wish, "input") == 0)
        return 0;
    n_input = oj_source_count(&a->job->input, a->job->command->limit);
    n_join = oj_source_count(&a->job->join, -1);
    return n_input >= 0 && n_join > n_input;
}

/* ---- streaming the join layer -------------------------------------------- */

/* Sums the values inside the join, without making pairs. Stores the number of
 * pairs that were summed in *n_pairs. Runs on the join thread, not on the
 * thread that adds pairs. Returns OJ_ERR_UNSUPPORTED if the join must return
 * the pairs of this batch. */
static oj_status sum_pairs(struct oj_aggregation *a, struct oj_join *join,
                           const struct oj_pipeline_part *part,
                           const struct oj_attributes *source, int64_t *n_pairs,
                           struct oj_error *err)
{
    if (!oj_aggregates_need_only_sums(a->state) ||
        (a->words.n_fields > 0 && !oj_join_should_sum_pairs(join, part->flat)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "these aggregates cannot be computed without a list of "
                       "the pairs: oj_join_batch() makes the list");
    if (a->sums == NULL)
    {
        OJ_TRY(oj_aggregates_open(&a->plan, &a->sums, err));
        OJ_TRY(oj_aggregates_reset(a->sums, a->n_input, err));
    }
    OJ_TRY(read_values(a, source, part->first_row, part->flat->n_features, NULL,
                       &a->summed, err));
    return oj_join_sum_pairs(join, part->flat, a->summed.column, a->sums,
                             n_pairs, err);
}

oj_status oj_aggregation_join_or_sum(struct oj_aggregation *a,
                                     struct oj_join *join,
                                     const struct oj_pipeline_part *part,
                                     const struct oj_batch *batch,
                                     struct oj_matches *out,
                                     struct oj_error *err)
{
    int64_t n = part->flat->n_features, n_pairs = 0;
    oj_status status =
        sum_pairs(a, join, part, batch->attributes, &n_pairs, err);
    if (status == OJ_ERR_UNSUPPORTED)
        return oj_join_batch(join, part->flat, out, err);
    OJ_TRY(status);
    OJ_TRY(oj_matches_reserve(out, n, 0, 1, err));
    memset(out->offset, 0, (size_t)(n + 1) * sizeof *out->offset);
    out->n_pairs = n_pairs;
    return OJ_OK;
}

oj_status oj_aggregation_add_streamed(struct oj_aggregation *a,
                                      const struct oj_pipeline_part *part,
                                      const struct oj_batch *batch,
                                      const struct oj_matches *matches,
                                      struct oj_error *err)
{
    if (matches->n_entries == 0)
        return OJ_OK;
    start_block(a->block, batch->attributes, batch->flat.fid, NULL,
                batch->first_row);
    return add_pairs_of_answer(a, matches, part->first_row, NULL, NULL, err);
}
