#include "oj_aggregation.h"

#include "../../algs/aggregate/oj_aggregate.h"
#include "../../algs/pair_values/oj_pair_stage.h"
#include "../../algs/pairs/oj_feature_area_length.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_quoted_name.h"
#include "../../flatten/base/oj_temporary_file.h"
#include "../../flatten/read/oj_attribute_table.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* Of -memory, the share of values that are held to be sorted; the rest is for
 * the side in memory and the batches. */
#define MEMORY_SHARE 4

enum
{
    BLOCK_FEATURES = 1024,
    BLOCK_PAIRS = 4096,
    TIME_BYTES = sizeof(uint64_t) + sizeof((OGRField *)0)->Date
};

/* How the values of a field become those of a column of aggregates. */
enum form
{
    FORM_NUMBER,
    FORM_TEXT,
    FORM_TIME,    /* bytes of the same order */
    FORM_WRITTEN, /* any type, as the text that OGR writes */
    FORM_PRESENCE /* any type: only whether there is a value */
};

/* A field that is aggregated, in one form. */
struct field
{
    struct oj_side_field of;
    enum form form;
};

/* Memory of one column of values. */
struct memory
{
    void *value; /* of the column's type */
    uint8_t *is_null;
    char *pool; /* bytes that are nowhere else, value by value */
    int64_t cap_value, cap_null, n_pool, cap_pool;
};

/* Values of many features, a column for each field. */
struct values
{
    struct oj_aggregate_column *column; /* of memory */
    struct memory *memory;
};

/* Pairs on their way into aggregates, many at once. */
struct block
{
    const struct oj_attributes *source; /* of the features */
    const int64_t *fid;                 /* of the source's features, or NULL */
    const int64_t *ordinal; /* their places in the join layer, or NULL: */
    int64_t first_place;    /* that of the first, others follow */

    struct values values;
    int64_t n_features, n_pairs;
    int32_t feature[BLOCK_FEATURES]; /* in source */
    int64_t fids[BLOCK_FEATURES], places[BLOCK_FEATURES];
    int64_t row[BLOCK_PAIRS];
    int32_t at[BLOCK_PAIRS]; /* in feature */
    double share[BLOCK_PAIRS];
};

struct oj_aggregation
{
    struct oj_job *job;
    int n;
    char *text;                                  /* all words and names */
    const struct oj_aggregate_function **called; /* [n] */
    const char **of; /* [n] names of fields; NULL: pairs */
    struct oj_aggregate *aggregates;
    struct oj_own_column *columns; /* [n] */
    struct field *fields;          /* [n_fields] */
    enum oj_aggregate_type *types; /* [n_fields] */
    int n_fields;
    int needs_overlap, needs_places;
    struct oj_held_files files;
    struct oj_aggregate_plan plan;
    struct oj_aggregates *state;
    struct block *block;
    struct oj_matches rows; /* of the last answer */
    int64_t first_row;

    /* The join layer, streamed past n_input rows. */
    int64_t n_input;
    struct oj_aggregates *sums; /* without pairs; NULL: none */
    struct values summed;
};

/* ---- the words of -agg -------------------------------------------------- */

struct scanner
{
    const char *words, *at;
    char *to; /* where the next word is put down */
};

static void skip_spaces(struct scanner *s)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
}

static oj_status read_quoted(struct scanner *s, const char **out,
                             struct oj_error *err)
{
    char quote = *s->at;
    *out = s->to;
    if (!oj_quoted_name_read(&s->at, &s->to))
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: the quote %c is not closed in %.200s", quote,
                       s->words);
    skip_spaces(s);
    return OJ_OK;
}

/* Up to one of the letters in ends, less spaces on both sides; or quoted. */
static oj_status read_word(struct scanner *s, const char *ends,
                           const char **out, struct oj_error *err)
{
    size_t n;
    skip_spaces(s);
    if (*s->at == '"' || *s->at == '\'')
        return read_quoted(s, out, err);
    n = strcspn(s->at, ends);
    *out = memcpy(s->to, s->at, n);
    s->at += n;
    while (n > 0 && isspace((unsigned char)s->to[n - 1]))
        n--;
    s->to[n] = '\0';
    s->to += n + 1;
    return OJ_OK;
}

/* After "(": the field, for concat a separator, and ")". */
static oj_status read_arguments(struct scanner *s, const char *function,
                                struct oj_aggregate *what, const char **field,
                                struct oj_error *err)
{
    OJ_TRY(read_word(s, ",)", field, err));
    if (*s->at == ',' && what->kind == OJ_AGG_CONCAT)
    {
        s->at++;
        skip_spaces(s);
        if (*s->at != '"' && *s->at != '\'')
            return oj_fail(err, OJ_ERR_ARG,
                           "-agg: the separator of concat must be in quotes, "
                           "as in concat(name, '; ')");
        OJ_TRY(read_quoted(s, &what->separator, err));
    }
    if (*s->at == ',')
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: %s takes one field; a field whose name has a "
                       "comma goes in double quotes",
                       function);
    if (*s->at != ')')
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: the bracket of %s is not closed in %.200s",
                       function, s->words);
    s->at++;
    if (**field == '\0')
        return oj_fail(err, OJ_ERR_ARG, "-agg: %s() names no field", function);
    return OJ_OK;
}

/* "as NAME", or sum_fare and the like. */
static oj_status read_column_name(struct scanner *s, const char *function,
                                  const char *field,
                                  struct oj_own_column *column,
                                  struct oj_error *err)
{
    skip_spaces(s);
    if (strncasecmp(s->at, "as", 2) == 0 &&
        (isspace((unsigned char)s->at[2]) || s->at[2] == '"'))
    {
        s->at += 2;
        column->option = "agg";
        OJ_TRY(read_word(s, ",", &column->name, err));
        if (column->name[0] == '\0')
            return oj_fail(err, OJ_ERR_ARG,
                           "-agg: the name after \"as\" is missing");
        return OJ_OK;
    }
    column->name = s->to;
    s->to = stpcpy(s->to, function);
    if (field != NULL)
        s->to = stpcpy(stpcpy(s->to, "_"), field);
    s->to++;
    return OJ_OK;
}

static oj_status parse_aggregate(struct oj_aggregation *a, int i,
                                 struct scanner *s, struct oj_error *err)
{
    struct oj_aggregate *what = &a->aggregates[i];
    const char *name;
    OJ_TRY(read_word(s, "(, \t\r\n", &name, err));
    OJ_TRY(oj_aggregate_find("-agg: ", name, &a->called[i], err));
    name = a->called[i]->name;
    what->kind = a->called[i]->kind;
    what->separator = what->kind == OJ_AGG_CONCAT ? ", " : NULL;
    skip_spaces(s);
    if (*s->at == '(')
    {
        s->at++;
        OJ_TRY(read_arguments(s, name, what, &a->of[i], err));
    }
    else if (what->kind != OJ_AGG_COUNT)
        return oj_fail(err, OJ_ERR_ARG, "-agg: %s needs a field, as in %s(F)",
                       name, name);
    if (what->kind == OJ_AGG_COUNT && a->of[i] != NULL)
    {
        if (strcmp(a->of[i], "*") == 0) /* SQL's word for all rows */
            a->of[i] = NULL;
        else
            what->kind = OJ_AGG_COUNT_VALUES;
    }
    OJ_TRY(read_column_name(s, name, a->of[i], &a->columns[i], err));
    skip_spaces(s);
    if (*s->at != ',' && *s->at != '\0')
        return oj_fail(err, OJ_ERR_ARG,
                       "-agg: a comma is missing before \"%.60s\"", s->at);
    return OJ_OK;
}

static oj_status parse_aggregate_list(struct oj_aggregation *a,
                                      struct oj_error *err)
{
    const char *words = a->job->command->aggregates;
    struct scanner s = {words, words, NULL};
    int64_t n = 1, size;
    for (const char *comma = words; (comma = strchr(comma, ',')) != NULL;
         comma++)
        n++;
    /* all words, fields once more in usual names, and four ends */
    size = 2 * (int64_t)strlen(words) +
           n * ((int64_t)sizeof OJ_AGGREGATE_NAMES + 4);
    OJ_NEW(a->text, size, err);
    OJ_NEW_ZEROED(a->called, n, err);
    OJ_NEW_ZEROED(a->of, n, err);
    OJ_NEW_ZEROED(a->aggregates, n, err);
    OJ_NEW_ZEROED(a->columns, n, err);
    OJ_NEW_ZEROED(a->fields, n, err);
    OJ_NEW_ZEROED(a->types, n, err);
    OJ_NEW_ZEROED(a->block, 1, err);
    s.to = a->text;
    do
    {
        OJ_TRY(parse_aggregate(a, a->n++, &s, err));
    } while (*s.at++ == ',');
    return OJ_OK;
}

/* ---- bound to fields ---------------------------------------------------- */

static oj_status choose_value_form(const struct oj_aggregation *a, int i,
                                   OGRFieldType type, enum form *form,
                                   struct oj_error *err)
{
    static const char *const needs[] = {
        "", "numbers", "a text, numbers or dates",
        "numbers, texts, dates or times", "numbers, texts, dates or times"};
    enum oj_aggregate_takes takes = a->called[i]->takes;
    int is_number = oj_type_is_number(type), is_time = oj_type_is_time(type);
    int is_text = type == OFTString;
    int fits = takes == OJ_AGG_TAKES_ANY || is_number ||
               (takes == OJ_AGG_TAKES_WRITTEN && type != OFTBinary) ||
               (takes >= OJ_AGG_TAKES_ORDERED && (is_time || is_text));
    *form = is_number && takes != OJ_AGG_TAKES_WRITTEN ? FORM_NUMBER
            : takes == OJ_AGG_TAKES_ANY                ? FORM_PRESENCE
            : is_text                                  ? FORM_TEXT
            : takes == OJ_AGG_TAKES_WRITTEN            ? FORM_WRITTEN
                                                       : FORM_TIME;
    if (fits)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG, "-agg: %s(%s) needs %s; the field is %s%s",
                   a->called[i]->name, a->of[i], needs[takes],
                   OGR_GetFieldTypeName(type),
                   is_text ? ", which -join_sql can CAST; of CSV files "
                             "-joo AUTODETECT_TYPE=YES tells the types"
                           : "");
}

static enum oj_aggregate_type aggregate_type_of_field(const struct field *field)
{
    if (field->form == FORM_PRESENCE)
        return OJ_AGG_INTEGER;
    if (field->form != FORM_NUMBER)
        return OJ_AGG_BYTES;
    return field->of.type == OFTReal ? OJ_AGG_REAL : OJ_AGG_INTEGER;
}

/* The place of this field in this form, which is made when there is none. */
static void find_or_add_agg_field(struct oj_aggregation *a, int column,
                                  OGRFieldDefnH defn, enum form form,
                                  int *place)
{
    struct field *field = a->fields;
    for (*place = 0; *place < a->n_fields; ++*place, field++)
    {
        if (field->of.column == column && field->form == form)
            return;
    }
    field->of.column = column;
    field->of.type = OGR_Fld_GetType(defn);
    field->of.subtype = OGR_Fld_GetSubType(defn);
    field->form = form;
    a->types[a->n_fields++] = aggregate_type_of_field(field);
}

static enum oj_aggregate_type result_type(const struct oj_aggregation *a, int i)
{
    const struct oj_aggregate *what = &a->aggregates[i];
    return oj_aggregate_type(what->kind, what->kind != OJ_AGG_COUNT
                                             ? a->types[what->column]
                                             : OJ_AGG_INTEGER);
}

/* The column of a result. from: the field; NULL for counts of pairs. */
static oj_status define_result_column(struct oj_aggregation *a, int i,
                                      OGRFieldDefnH from, struct oj_error *err)
{
    static const OGRFieldType usual[] = {[OJ_AGG_INTEGER] = OFTInteger64,
                                         [OJ_AGG_REAL] = OFTReal,
                                         [OJ_AGG_BYTES] = OFTString};
    struct oj_own_column *column = &a->columns[i];
    int is_value = a->called[i]->takes == OJ_AGG_TAKES_ORDERED_GIVES_ONE;
    column->origin = OJ_COLUMN_AGGREGATE;
    column->source = i;
    column->type = is_value ? OGR_Fld_GetType(from) : usual[result_type(a, i)];
    column->subtype = is_value ? OGR_Fld_GetSubType(from) : OFSTNone;
    for (int k = 0; k < i; k++)
    {
        if (strcasecmp(column->name, a->columns[k].name) == 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-agg: two columns would be called '%s'; name one "
                           "of them, as in \"%s as NAME\"",
                           column->name, a->called[i]->name);
    }
    return OJ_OK;
}

static oj_status bind_aggregate(struct oj_aggregation *a, int i,
                                struct oj_error *err)
{
    struct oj_source *join = &a->job->join;
    enum oj_aggregate_kind kind = a->aggregates[i].kind;
    OGRwkbGeometryType type = wkbFlatten(join->type);
    OGRFieldDefnH defn = NULL;
    enum form form;
    int column;
    if (a->of[i] != NULL)
    {
        OJ_TRY(
            oj_source_need_field(join, a->of[i], "agg", &column, &defn, err));
        OJ_TRY(choose_value_form(a, i, OGR_Fld_GetType(defn), &form, err));
        find_or_add_agg_field(a, column, defn, form, &a->aggregates[i].column);
    }
    if (kind == OJ_AGG_WEIGHTED_SUM)
        a->needs_overlap = type != wkbPoint && type != wkbMultiPoint;
    a->needs_places |=
        kind == OJ_AGG_FIRST || kind == OJ_AGG_LAST || kind == OJ_AGG_CONCAT;
    return define_result_column(a, i, defn, err);
}

/* ---- open and close ----------------------------------------------------- */

/* Beside the output, whose disk has to have room anyway. */
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
    OJ_NEW_ZEROED(values->column, a->n, err);
    OJ_NEW_ZEROED(values->memory, a->n, err);
    return OJ_OK;
}

static oj_status open_aggregation(struct oj_aggregation *a,
                                  struct oj_error *err)
{
    int64_t memory = a->job->command->memory;
    OJ_TRY(parse_aggregate_list(a, err));
    for (int i = 0; i < a->n; i++)
        OJ_TRY(bind_aggregate(a, i, err));
    OJ_TRY(allocate_value_columns(a, &a->block->values, err));
    OJ_TRY(allocate_value_columns(a, &a->summed, err));
    a->files.open = open_aggregate_spill_file;
    a->files.user = a;
    a->plan.aggregates = a->aggregates;
    a->plan.n_aggregates = a->n;
    a->plan.types = a->types;
    a->plan.n_columns = a->n_fields;
    a->plan.memory = memory / MEMORY_SHARE;
    if (a->plan.memory == 0 && memory > 0)
        a->plan.memory = 1;
    a->plan.files = &a->files;
    return oj_aggregates_open(&a->plan, &a->state, err);
}

oj_status oj_aggregation_open(struct oj_job *job,
                              struct oj_schema_request *fields,
                              unsigned char *want, struct oj_aggregation **out,
                              struct oj_error *err)
{
    struct oj_aggregation *a;
    oj_status status;
    OJ_NEW_ZEROED(a, 1, err);
    a->job = job;
    status = open_aggregation(a, err);
    if (status != OJ_OK)
    {
        oj_aggregation_close(a);
        return status;
    }
    fields->own = a->columns;
    fields->n_own = a->n;
    want[OJ_PAIR_OVERLAP_AREA] = want[OJ_PAIR_OVERLAP_LENGTH] =
        want[OJ_PAIR_JOIN_AREA] = a->needs_overlap != 0;
    *out = a;
    return OJ_OK;
}

static void free_values(const struct oj_aggregation *a, struct values *values)
{
    for (int i = 0; values->memory != NULL && i < a->n; i++)
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
        free_values(a, &a->block->values);
    for (int i = 0; i < a->n_fields; i++)
        oj_side_field_free(&a->fields[i].of);
    oj_free(a->block);
    oj_free(a->types);
    oj_free(a->fields);
    oj_free(a->columns);
    oj_free(a->aggregates);
    oj_free(a->of);
    oj_free(a->called);
    oj_free(a->text);
    oj_free(a);
}

int oj_aggregation_takes_sums(const struct oj_aggregation *a)
{
    return oj_aggregates_take_sums(a->state);
}

/* ---- dates and times as bytes ------------------------------------------- */

/* Milliseconds in UTC first, which are the order; then what it takes to get
 * the value back as it was. */
static void encode_sortable_time(const OGRField *raw, char bytes[TIME_BYTES])
{
    OGRField parts = *raw;
    int64_t ms =
        oj_value_days(raw) * 86400000 + raw->Date.Hour * INT64_C(3600000) +
        raw->Date.Minute * INT64_C(60000) +
        (int64_t)((double)raw->Date.Second * 1000.0 + 0.5) -
        /* 100 is UTC, a step a quarter of an hour; 0 and 1: there is none */
        (raw->Date.TZFlag > 1 ? INT64_C(900000) * (raw->Date.TZFlag - 100) : 0);
    uint64_t key = (uint64_t)ms ^ UINT64_C(1) << 63;
    CPL_MSBPTR64(&key);
    CPL_MSBPTR16(&parts.Date.Year);
    CPL_MSBPTR32(&parts.Date.Second);
    parts.Date.Reserved = 0;
    memcpy(bytes, &key, sizeof key);
    memcpy(bytes + sizeof key, &parts.Date, sizeof parts.Date);
}

/* ---- values of fields --------------------------------------------------- */

/* Has bytes that the next value overwrites kept in the pool. */
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

static oj_status read_value(struct field *field, const struct oj_value *value,
                            struct memory *memory, int64_t i,
                            struct oj_error *err)
{
    struct oj_aggregate_bytes *bytes =
        (struct oj_aggregate_bytes *)memory->value + i;
    char time[TIME_BYTES];
    switch (field->form)
    {
        case FORM_PRESENCE:
            ((int64_t *)memory->value)[i] = 1;
            break;
        case FORM_NUMBER:
            if (field->of.type == OFTReal)
                ((double *)memory->value)[i] = value->raw.Real;
            else
                ((int64_t *)memory->value)[i] = field->of.type == OFTInteger64
                                                    ? value->raw.Integer64
                                                    : value->raw.Integer;
            break;
        case FORM_TEXT:
            bytes->bytes = oj_value_bytes(value, OFTString, &bytes->n);
            break;
        case FORM_TIME:
            encode_sortable_time(&value->raw, time);
            bytes->bytes = time;
            bytes->n = TIME_BYTES;
            return copy_bytes_to_pool(memory, bytes, err);
        case FORM_WRITTEN:
            OJ_TRY(oj_side_field_text(&field->of, value, &bytes->bytes,
                                      &bytes->n, err));
            return copy_bytes_to_pool(memory, bytes, err);
    }
    return OJ_OK;
}

/* A column of n features: first, first + 1, ... or, unless order is NULL,
 * order[first], order[first + 1], ... */
static oj_status read_field(struct field *field,
                            const struct oj_attributes *source, int64_t first,
                            int64_t n, const int32_t *order,
                            struct memory *memory, struct oj_error *err)
{
    int64_t at = 0;
    memory->n_pool = 0;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_value value;
        oj_attributes_value(source, field->of.column,
                            order != NULL ? order[first + i] : first + i,
                            &value);
        memory->is_null[i] = !oj_value_is_there(&value);
        if (!memory->is_null[i])
            OJ_TRY(read_value(field, &value, memory, i, err));
    }
    /* the pool stays where it is now */
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

/* All columns. They are valid until the next call, and texts as long as source
 * is. FORM_WRITTEN: one thread for all values. */
static oj_status read_values(const struct oj_aggregation *a,
                             const struct oj_attributes *source, int64_t first,
                             int64_t n, const int32_t *order,
                             struct values *values, struct oj_error *err)
{
    static const size_t sizes[] = {[OJ_AGG_INTEGER] = sizeof(int64_t),
                                   [OJ_AGG_REAL] = sizeof(double),
                                   [OJ_AGG_BYTES] =
                                       sizeof(struct oj_aggregate_bytes)};
    for (int f = 0; f < a->n_fields; f++)
    {
        struct field *field = &a->fields[f];
        struct memory *memory = &values->memory[f];
        struct oj_aggregate_column *column = &values->column[f];
        int any_null = 1;
        OJ_TRY(oj_reserve(&memory->is_null, 0, n, &memory->cap_null, 1, err));
        OJ_TRY(oj_reserve(&memory->value, 0, n, &memory->cap_value,
                          sizes[a->types[f]], err));
        if (a->types[f] != OJ_AGG_REAL ||
            !oj_attributes_reals(source, field->of.column, first, n, order,
                                 memory->value, memory->is_null, &any_null))
            OJ_TRY(read_field(field, source, first, n, order, memory, err));
        column->real = memory->value; /* in the array of its type */
        column->integer = memory->value;
        column->bytes = memory->value;
        column->is_null = any_null ? memory->is_null : NULL;
    }
    return OJ_OK;
}

/* ---- adding pairs ------------------------------------------------------- */

/* Hands over the pairs that are waiting. */
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
    for (int64_t i = 0; a->needs_places && i < n; i++)
    {
        int32_t feature = block->feature[i];
        block->places[i] = block->ordinal != NULL
                               ? block->ordinal[feature]
                               : block->first_place + feature;
        block->fids[i] =
            block->fid != NULL ? block->fid[feature] : block->places[i];
    }
    return oj_aggregates_add(a->state, &pairs, err);
}

static inline oj_status put_pair(struct oj_aggregation *a, int64_t row,
                                 int32_t feature, double share,
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
    block->share[block->n_pairs++] = share;
    return block->n_pairs < BLOCK_PAIRS ? OJ_OK : flush_block(a, err);
}

/* What is still there after a failure is not of this source. */
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

/* All pairs of an answer: of row i of matches, which is row first + i of all,
 * with features of side; or where the join layer streams, side NULL, of its
 * feature first + i of the source with rows. */
static oj_status put_pairs(struct oj_aggregation *a,
                           const struct oj_matches *matches, int64_t first,
                           const struct oj_flat *side,
                           const struct oj_pair_values *values,
                           struct oj_error *err)
{
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t here = first + row, end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++)
        {
            int32_t there = matches->join_row[p];
            if (side == NULL)
                OJ_TRY(put_pair(a, there, (int32_t)here, 1.0, err));
            else
                OJ_TRY(put_pair(a, here, there,
                                a->needs_overlap
                                    ? oj_pair_share(side, there, values, p)
                                    : 1.0,
                                err));
        }
    }
    return flush_block(a, err);
}

oj_status oj_aggregation_start(struct oj_aggregation *a, int64_t n_rows,
                               struct oj_error *err)
{
    oj_aggregates_close(a->sums);
    a->sums = NULL;
    a->n_input = n_rows;
    return oj_aggregates_start(a->state, n_rows, err);
}

oj_status oj_aggregation_add(struct oj_aggregation *a, int64_t first,
                             const struct oj_matches *matches,
                             const struct oj_answer_side *side,
                             const struct oj_pair_values *values,
                             struct oj_error *err)
{
    const struct oj_attributes source = {.table = side->table};
    if (first == 0)
        OJ_TRY(oj_aggregation_start(a, matches->n_rows, err));
    OJ_TRY(oj_aggregates_extend(a->state, first + matches->n_rows, err));
    start_block(a->block, &source, side->flat.fid, side->ordinal, 0);
    return put_pairs(a, matches, first, &side->flat, values, err);
}

oj_status oj_aggregation_finish(struct oj_aggregation *a, struct oj_error *err)
{
    /* what was summed without pairs goes to its rows */
    if (a->sums != NULL)
        OJ_TRY(oj_aggregates_merge(a->state, a->sums, err));
    oj_aggregates_close(a->sums);
    a->sums = NULL;
    return oj_aggregates_rewind(a->state, err);
}

/* ---- results ------------------------------------------------------------ */

oj_status oj_aggregation_rows(const struct oj_aggregation *a, int64_t first,
                              int64_t n, struct oj_matches *out,
                              struct oj_error *err)
{
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t n_pairs = oj_aggregates_pairs(a->state, first + i);
        out->join_row[i] = n_pairs > 0 ? 0 : -1;
        out->measure[i] = (double)NAN;
        out->n_pairs += n_pairs;
        out->n_matched += n_pairs > 0;
    }
    return OJ_OK;
}

oj_status oj_aggregation_answer(struct oj_aggregation *a,
                                const struct oj_matches *matches,
                                const struct oj_answer_side *side,
                                const struct oj_pair_values *values,
                                const struct oj_matches **rows,
                                struct oj_error *err)
{
    OJ_TRY(oj_aggregation_add(a, 0, matches, side, values, err));
    OJ_TRY(oj_aggregation_finish(a, err));
    a->first_row = 0;
    OJ_TRY(oj_aggregation_rows(a, 0, matches->n_rows, &a->rows, err));
    *rows = &a->rows;
    return OJ_OK;
}

void oj_aggregation_set_first_row(struct oj_aggregation *a, int64_t first)
{
    a->first_row = first;
}

/* A result as a field of that type. Borrows from it. */
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
        to->raw.String = (char *)from->bytes; /* only read */
        to->n_text = from->n_bytes;
    }
    else /* as encode_sortable_time() wrote it */
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
    result_to_field_value(&result, result_type(a, source),
                          a->columns[source].type, value);
    return OJ_OK;
}

/* ---- the join layer streamed: whether ----------------------------------- */

/* The k of nearest belong to input rows; the overlaps behind weighted sums are
 * computed for input rows; the reference joins input rows. */
static int can_stream_join_layer(const struct oj_aggregation *a)
{
    const struct oj_job *job = a->job;
    return !oj_relation_sorts_by_measure(&job->relation) &&
           job->relation.metric == OJ_METRIC_PLANAR && !a->needs_overlap &&
           job->command->validate == NULL && job->command->n_windows == 0 &&
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

/* ---- the join layer streamed -------------------------------------------- */

/* Summed by the join without pairs; *n_pairs: how many they are. On another
 * thread than what adds pairs. OJ_ERR_UNSUPPORTED: the join has to give
 * pairs. */
static oj_status sum_pairs(struct oj_aggregation *a, struct oj_join *join,
                           const struct oj_pipeline_part *part,
                           const struct oj_attributes *source, int64_t *n_pairs,
                           struct oj_error *err)
{
    if (!oj_aggregates_take_sums(a->state) ||
        (a->n_fields > 0 && !oj_join_sums(join, part->flat)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED, "pairs are not summed");
    if (a->sums == NULL)
    {
        OJ_TRY(oj_aggregates_open(&a->plan, &a->sums, err));
        OJ_TRY(oj_aggregates_start(a->sums, a->n_input, err));
    }
    OJ_TRY(read_values(a, source, part->first_row, part->flat->n_features, NULL,
                       &a->summed, err));
    return oj_join_sum_pairs(join, part->flat, a->summed.column, a->sums,
                             n_pairs, err);
}

oj_status oj_aggregation_join(struct oj_aggregation *a, struct oj_join *join,
                              const struct oj_pipeline_part *part,
                              const struct oj_batch *batch,
                              struct oj_matches *out, struct oj_error *err)
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
    return put_pairs(a, matches, part->first_row, NULL, NULL, err);
}
