#include "oj_row_columns.h"

#include "../../../flatten/base/oj_alloc.h"
#include "oj_row_words.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- choice of computed columns ------------------------------------------ */

/* State while computed columns are chosen: the user's options, the columns so
 * far, and the pair values that these need. */
struct choice
{
    const struct oj_row_column_words *words;
    struct oj_computed_columns *columns;
    unsigned char *want;
    int offers_all; /* 1: include all columns that aggregates can use, also
                       those that need an option of their own in rows */
};

/* Adds a computed column. usual: its usual name. given: the user's name for it,
 * or NULL; "" leaves the column out. option: the option by which the user gave
 * the name. */
static void add_computed_column(struct oj_computed_columns *columns,
                                enum oj_column_origin origin, int source,
                                enum oj_field_kind kind, const char *usual,
                                const char *given, const char *option)
{
    const struct oj_computed_column column = {origin, source, kind,
                                              given != NULL ? given : usual,
                                              given != NULL ? option : NULL};
    if (column.name[0] != '\0')
        columns->column[columns->n++] = column;
}

/* Adds a column with a value of pairs. */
static void add_pair_value_column(const struct choice *c,
                                  enum oj_pair_value which, const char *usual,
                                  const char *given, const char *option)
{
    static const enum oj_field_kind kinds[] = {
        [OJ_PAIR_KIND_REAL] = OJ_FIELD_FLOAT64,
        [OJ_PAIR_KIND_INTEGER] = OJ_FIELD_INT64,
        [OJ_PAIR_KIND_TEXT] = OJ_FIELD_TEXT};
    int n = c->columns->n;
    add_computed_column(c->columns, OJ_COLUMN_PAIR_VALUE, (int)which,
                        kinds[oj_pair_value_kind(which)], usual, given, option);
    if (c->columns->n > n)
        c->want[which] = 1;
}

const char *oj_row_column_option(enum oj_pair_value which)
{
    static const char *const options[] = {
        "along_field",  "along_percent_field", "offset_field",
        "side_field",   "segment_field",       "line_bearing_field",
        "matrix_field", "relation_field"};
    _Static_assert(sizeof options / sizeof *options == OJ_N_NAMED_PAIR_VALUES,
                   "one option for each named value");
    return options[which - OJ_FIRST_NAMED_PAIR_VALUE];
}

/* Adds the columns of those values from OJ_FIRST_NAMED_PAIR_VALUE on for which
 * the user gave a name. */
static void add_named_columns(const struct choice *c)
{
    for (int i = 0; i < OJ_N_NAMED_PAIR_VALUES; i++)
    {
        enum oj_pair_value which =
            (enum oj_pair_value)(OJ_FIRST_NAMED_PAIR_VALUE + i);
        add_pair_value_column(c, which, "", c->words->named[i],
                              oj_row_column_option(which));
    }
}

/* Adds a column for each condition on texts: join_similarity or the user's
 * name, then this name with _2, _3 and so on. */
static oj_status add_similarity_columns(const struct choice *c,
                                        struct oj_error *err)
{
    const char *given = c->words->name_similarity;
    const char *first = given != NULL ? given : "join_similarity";
    int n = first[0] != '\0' ? c->words->relation->n_similar : 0;
    size_t size = strlen(first) + 16;
    for (int i = 0; i < n; i++)
    {
        char *name;
        OJ_NEW(name, (int64_t)size, err);
        c->columns->made_name[i] = name;
        if (i == 0)
            memcpy(name, first, strlen(first) + 1);
        else
            snprintf(name, size, "%s_%d", first, i + 1);
        add_pair_value_column(c, OJ_PAIR_SIMILARITY + (unsigned)i, name,
                              given != NULL ? name : NULL, "name_similarity");
    }
    return OJ_OK;
}

static oj_status add_overlap_columns(const struct choice *c,
                                     struct oj_error *err)
{
    unsigned char asked[OJ_N_PAIR_VALUES] = {0};
    if (c->words->overlap == NULL && !c->offers_all)
        return OJ_OK;
    if (!c->offers_all)
        OJ_TRY(
            oj_row_overlap_read(c->words->dash, c->words->overlap, asked, err));
    for (int i = 0; i < OJ_N_OVERLAP_WORDS; i++)
    {
        if (c->offers_all || asked[oj_overlap_columns[i].value])
            add_pair_value_column(c, oj_overlap_columns[i].value,
                                  oj_overlap_columns[i].name, NULL, NULL);
    }
    return OJ_OK;
}

static oj_status add_all_computed_columns(const struct choice *c,
                                          struct oj_error *err)
{
    const struct oj_row_column_words *words = c->words;
    const struct oj_op_info *op = oj_op_get(words->relation->op);
    const int offers_points =
        c->offers_all && !oj_relation_compares_shapes(words->relation);
    if (words->has_events)
        add_computed_column(c->columns, OJ_COLUMN_EVENT, 0, OJ_FIELD_TEXT,
                            "event", NULL, NULL);
    add_computed_column(c->columns, OJ_COLUMN_JOIN_FID, 0, OJ_FIELD_INT64,
                        "join_fid", words->name_fid, "name_fid");
    if (op->measure != NULL && (op->takes & OJ_TAKES_ATTRIBUTES) == 0)
        add_computed_column(c->columns, OJ_COLUMN_MEASURE, 0, OJ_FIELD_FLOAT64,
                            op->measure, words->name_distance, "name_distance");
    OJ_TRY(add_similarity_columns(c, err));
    if (words->relation->vector.is_asked)
        add_pair_value_column(c, OJ_PAIR_DIFFERENCE, "join_difference",
                              words->name_difference, "name_difference");
    if (oj_rows_per_input_have_rank(words->relation, &words->choice))
        add_computed_column(c->columns, OJ_COLUMN_RANK, 0, OJ_FIELD_INT32,
                            "join_rank", words->name_rank, "name_rank");
    add_computed_column(c->columns, OJ_COLUMN_COUNT, 0, OJ_FIELD_INT64, "",
                        words->name_count, "name_count");
    OJ_TRY(add_overlap_columns(c, err));
    if (words->nearest_point_fields || offers_points)
    {
        add_pair_value_column(c, OJ_PAIR_NEAREST_X, "nearest_x", NULL, NULL);
        add_pair_value_column(c, OJ_PAIR_NEAREST_Y, "nearest_y", NULL, NULL);
    }
    if (words->bearing_field || offers_points)
        add_pair_value_column(c, OJ_PAIR_BEARING, "join_bearing", NULL, NULL);
    add_named_columns(c);
    return OJ_OK;
}

oj_status oj_computed_columns_choose(const struct oj_row_column_words *words,
                                     struct oj_computed_columns *out,
                                     unsigned char *want, struct oj_error *err)
{
    struct oj_computed_columns columns = {0};
    unsigned char asked[OJ_N_PAIR_VALUES] = {0};
    const struct choice choice = {words, &columns, asked, 0};
    oj_status status = add_all_computed_columns(&choice, err);
    if (status != OJ_OK)
    {
        oj_computed_columns_free(&columns);
        return status;
    }
    *out = columns;
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        want[i] |= asked[i];
    return OJ_OK;
}

struct oj_computed_column
oj_computed_column_of_aggregate(const struct oj_aggregate_word *word,
                                int source)
{
    const struct oj_computed_column column = {OJ_COLUMN_AGGREGATE, source,
                                              word->kind, word->name,
                                              word->is_named ? "agg" : NULL};
    return column;
}

void oj_computed_columns_free(struct oj_computed_columns *columns)
{
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        oj_free(columns->made_name[i]);
    memset(columns, 0, sizeof *columns);
}

/* ---- operands of aggregates ---------------------------------------------- */

/* The columns of pairs that aggregates can use, and which of them some
 * aggregate uses. */
struct pair_columns
{
    const struct oj_row_column_words *words;
    const struct oj_join_field_finder *fields;
    struct oj_computed_columns columns;
    unsigned char is_named[OJ_MOST_COMPUTED_COLUMNS];
    const char *hidden;
};

/* Lists all columns that aggregates can use. The caller frees them, also after
 * an error. */
static oj_status
list_columns_for_aggregates(const struct oj_row_column_words *words,
                            struct oj_computed_columns *out,
                            struct oj_error *err)
{
    unsigned char want[OJ_N_PAIR_VALUES] = {0};
    struct oj_row_column_words all = *words;
    const struct choice choice = {&all, out, want, 1};
    all.choice.aggregates = 0;
    all.name_count = NULL;
    return add_all_computed_columns(&choice, err);
}

/* Returns the index of the column of pairs with this name, or -1 if there is
 * none. */
static int find_pair_column(const struct oj_computed_columns *columns,
                            const char *name)
{
    for (int i = 0; i < columns->n; i++)
    {
        if (strcasecmp(columns->column[i].name, name) == 0)
            return i;
    }
    return -1;
}

/* Fails because an aggregate uses an unknown name. The message lists the
 * columns of pairs; for a name that begins with "distinct ", as in SQL, it
 * names unique(). */
static oj_status fail_unknown_operand(const struct pair_columns *p,
                                      const char *name, struct oj_error *err)
{
    const struct oj_error no_field = *err;
    char names[400] = "";
    size_t n = 0;
    if (strncasecmp(name, "distinct ", 9) == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "%sagg: write unique(%.100s) to count different values",
                       p->words->dash, name + 9);
    for (int i = 0; i < p->columns.n && n + 1 < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s",
                              i > 0 ? ", " : "", p->columns.column[i].name);
    return oj_fail(err, no_field.status, "%.1000s; pairs have: %s",
                   no_field.message, names);
}

static oj_status find_aggregate_operand(struct pair_columns *p,
                                        const char *name,
                                        struct oj_aggregate_operand *out,
                                        struct oj_error *err)
{
    struct oj_field_description field = {"", OJ_FIELD_NULL, 1};
    const int i = find_pair_column(&p->columns, name);
    const struct oj_computed_column *pair =
        i >= 0 ? &p->columns.column[i] : NULL;
    int column = -1;
    oj_status status =
        p->fields->find(p->fields->user, name, &column, &field, err);
    if (status == OJ_OK && pair != NULL && pair->option != NULL)
        return oj_fail(err, OJ_ERR_ARG,
                       "%s%s: the join layer has a field '%s' already; choose "
                       "another name",
                       p->words->dash, pair->option, pair->name);
    if (status == OJ_OK)
    {
        *out =
            (struct oj_aggregate_operand){OJ_COLUMN_JOIN, column, field.kind};
        if (pair != NULL && p->hidden == NULL)
            p->hidden = name;
        return OJ_OK;
    }
    if (status != OJ_ERR_ARG)
        return status;
    if (pair == NULL)
        return fail_unknown_operand(p, name, err);
    p->is_named[i] = 1;
    *out =
        (struct oj_aggregate_operand){pair->origin, pair->source, pair->kind};
    return OJ_OK;
}

/* Fails if the user has named a column of pairs that no aggregate uses, or has
 * given "" as the name of one. */
static oj_status check_given_names_are_used(const struct pair_columns *p,
                                            struct oj_error *err)
{
    const struct oj_row_column_words *words = p->words;
    const char *const given[][2] = {
        {"name_fid", words->name_fid},
        {"name_distance", words->name_distance},
        {"name_rank", words->name_rank},
        {"name_similarity", words->name_similarity},
        {"name_difference", words->name_difference}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
    {
        if (given[i][1] != NULL && given[i][1][0] == '\0')
            return oj_fail(err, OJ_ERR_ARG,
                           "%s%s: rows of aggregates have no such column; "
                           "leave the option out",
                           words->dash, given[i][0]);
    }
    for (int i = 0; i < p->columns.n; i++)
    {
        const struct oj_computed_column *column = &p->columns.column[i];
        if (column->option != NULL && !p->is_named[i])
            return oj_fail(
                err, OJ_ERR_ARG,
                "%s%s has no effect, because no aggregate uses '%s': write for "
                "example \"%s(%s)\", or leave the option out",
                p->words->dash, column->option, column->name,
                column->kind == OJ_FIELD_TEXT ? "mode" : "mean", column->name);
    }
    return OJ_OK;
}

static oj_status bind_aggregate_operands(struct pair_columns *p,
                                         struct oj_aggregate_words *aggregates,
                                         struct oj_error *err)
{
    for (int i = 0; i < aggregates->n; i++)
    {
        const struct oj_aggregate_word *word = &aggregates->word[i];
        struct oj_aggregate_operand values = {OJ_COLUMN_JOIN, -1,
                                              OJ_FIELD_NULL};
        struct oj_aggregate_operand weights = values;
        if (word->field != NULL)
            OJ_TRY(find_aggregate_operand(p, word->field, &values, err));
        if (word->weight != NULL)
            OJ_TRY(find_aggregate_operand(p, word->weight, &weights, err));
        OJ_TRY(oj_aggregate_words_bind(aggregates, i, &values, &weights, err));
    }
    return check_given_names_are_used(p, err);
}

oj_status oj_aggregate_columns_bind(const struct oj_row_column_words *words,
                                    const struct oj_join_field_finder *fields,
                                    struct oj_aggregate_words *aggregates,
                                    unsigned char *want, const char **hidden,
                                    struct oj_error *err)
{
    struct pair_columns p = {.words = words, .fields = fields};
    oj_status status;
    status = list_columns_for_aggregates(words, &p.columns, err);
    if (status == OJ_OK)
        status = bind_aggregate_operands(&p, aggregates, err);
    oj_computed_columns_free(&p.columns);
    OJ_TRY(status);
    oj_aggregate_words_request_values(aggregates, want);
    *hidden = p.hidden;
    return OJ_OK;
}

/* ---- names in use -------------------------------------------------------- */

/* Makes the token of a name, in lower case (ASCII), for the table of names in
 * use. */
static oj_status make_name_token(struct oj_row_columns *columns,
                                 const char *name, struct oj_token *token,
                                 struct oj_error *err)
{
    int64_t n = (int64_t)strlen(name);
    OJ_ROOM(columns->code, 0, n, columns->cap_code, err);
    for (int64_t i = 0; i < n; i++)
    {
        unsigned char letter = (unsigned char)name[i];
        columns->code[i] =
            letter >= 'A' && letter <= 'Z' ? letter + 32U : letter;
    }
    *token = oj_token_of_codes(columns->code, n);
    return OJ_OK;
}

static oj_status check_if_name_is_taken(struct oj_row_columns *columns,
                                        const char *name, int *is_taken,
                                        struct oj_error *err)
{
    struct oj_token token;
    OJ_TRY(make_name_token(columns, name, &token, err));
    *is_taken = oj_token_table_find(&columns->taken, &token) >= 0;
    return OJ_OK;
}

oj_status oj_row_columns_reserve_name(struct oj_row_columns *columns,
                                      const char *name, struct oj_error *err)
{
    struct oj_token token;
    int64_t number;
    if (name == NULL || name[0] == '\0')
        return OJ_OK;
    OJ_TRY(make_name_token(columns, name, &token, err));
    return oj_token_table_put(&columns->taken, &token, &number, err);
}

/* Maximum bytes of the number that is appended to a name, with the final 0. */
#define NUMBER_BYTES 24

/* Adds a column with the properties of `like`, and memory of `size` bytes for
 * its name. */
static oj_status add_named_column(struct oj_row_columns *columns,
                                  const struct oj_named_column *like,
                                  size_t size, struct oj_error *err)
{
    struct oj_named_column *column = &columns->column[columns->n];
    *column = *like;
    OJ_NEW(column->name, (int64_t)size, err);
    columns->n++;
    return OJ_OK;
}

/* ---- fields of the input and join side ----------------------------------- */

/* Writes the first free name of: name; prefix + name; prefix + name + _2, _3
 * and so on. Marks it as in use. */
static oj_status write_free_name(struct oj_row_columns *columns,
                                 const char *prefix, const char *name,
                                 char *out, size_t size, struct oj_error *err)
{
    int is_taken = 1;
    for (int64_t i = 0; is_taken; i++)
    {
        if (i == 0)
            snprintf(out, size, "%s", name);
        else if (i == 1)
            snprintf(out, size, "%s%s", prefix, name);
        else
            snprintf(out, size, "%s%s_%lld", prefix, name, (long long)i);
        OJ_TRY(check_if_name_is_taken(columns, out, &is_taken, err));
    }
    return oj_row_columns_reserve_name(columns, out, err);
}

/* Adds the fields of one side. prefix: put before names that are in use.
 * is_always_there 0: rows can lack a feature of this side, so its fields may be
 * NULL. */
static oj_status plan_side_fields(const struct oj_row_side_fields *side,
                                  enum oj_column_origin origin,
                                  const char *prefix, int is_always_there,
                                  struct oj_row_columns *columns,
                                  struct oj_error *err)
{
    for (int i = 0; i < side->n; i++)
    {
        const struct oj_field_description *field = &side->field[i];
        const char *name = field->name[0] != '\0' ? field->name : "field";
        const size_t size = strlen(prefix) + strlen(name) + NUMBER_BYTES;
        const struct oj_named_column column = {
            origin,          i,
            field->kind,     field->is_nullable || !is_always_there,
            is_always_there, NULL,
            field->name};
        OJ_TRY(add_named_column(columns, &column, size, err));
        OJ_TRY(write_free_name(columns, prefix, name,
                               columns->column[columns->n - 1].name, size,
                               err));
    }
    return OJ_OK;
}

/* ---- computed columns ---------------------------------------------------- */

/* Returns 1 if the user's name for computed column i is also the usual name of
 * another computed column, or the user's name for an earlier one. */
static int is_name_of_other(const struct oj_row_columns_request *request, int i)
{
    const struct oj_computed_column *computed = request->computed;
    for (int k = 0; k < request->n_computed; k++)
    {
        if ((k < i || computed[k].option == NULL) &&
            strcasecmp(computed[i].name, computed[k].name) == 0)
            return 1;
    }
    return 0;
}

/* Marks the names that the user gave as in use. Fails if one is in use already,
 * or is the name of another computed column. */
static oj_status
reserve_given_names(const struct oj_row_columns_request *request,
                    struct oj_row_columns *columns, struct oj_error *err)
{
    const struct oj_computed_column *computed = request->computed;
    for (int i = 0; i < request->n_computed; i++)
    {
        int is_taken;
        if (computed[i].option == NULL)
            continue;
        OJ_TRY(
            check_if_name_is_taken(columns, computed[i].name, &is_taken, err));
        if (is_taken || is_name_of_other(request, i))
            return oj_fail(err, OJ_ERR_ARG,
                           "%s%s: the output has a column '%s' already; choose "
                           "another name",
                           request->dash, computed[i].option, computed[i].name);
    }
    for (int i = 0; i < request->n_computed; i++)
    {
        if (computed[i].option != NULL)
            OJ_TRY(oj_row_columns_reserve_name(columns, computed[i].name, err));
    }
    return OJ_OK;
}

/* Writes the name of a computed column. A number above 1 is appended, unless
 * the user gave the name. */
static void write_computed_name(const struct oj_computed_column *computed,
                                int64_t number, char *name, size_t size)
{
    if (number == 1 || computed->option != NULL)
        snprintf(name, size, "%s", computed->name);
    else
        snprintf(name, size, "%s_%lld", computed->name, (long long)number);
}

/* Writes the names of all computed columns, with the given number; they are the
 * columns of the row from `first` on. Sets *clash to 1 if one is in use. */
static oj_status write_computed_names(
    const struct oj_row_columns_request *request, int64_t first, int64_t number,
    struct oj_row_columns *columns, int *clash, struct oj_error *err)
{
    *clash = 0;
    for (int i = 0; i < request->n_computed && !*clash; i++)
    {
        const struct oj_computed_column *computed = &request->computed[i];
        char *name = columns->column[first + i].name;
        write_computed_name(computed, number, name,
                            strlen(computed->name) + NUMBER_BYTES);
        if (computed->option == NULL)
            OJ_TRY(check_if_name_is_taken(columns, name, clash, err));
    }
    return OJ_OK;
}

/* Adds the computed columns. If any of their usual names is in use (the input
 * may be the output of a join), all of them get one number. */
static oj_status
plan_computed_columns(const struct oj_row_columns_request *request,
                      struct oj_row_columns *columns, struct oj_error *err)
{
    const int64_t first = columns->n;
    int clash = 1;
    OJ_TRY(reserve_given_names(request, columns, err));
    for (int i = 0; i < request->n_computed; i++)
    {
        const struct oj_computed_column *computed = &request->computed[i];
        const struct oj_named_column column = {
            computed->origin, computed->source, computed->kind, 1, 0, NULL,
            computed->name};
        OJ_TRY(add_named_column(columns, &column,
                                strlen(computed->name) + NUMBER_BYTES, err));
    }
    for (int64_t number = 1; clash; number++)
        OJ_TRY(
            write_computed_names(request, first, number, columns, &clash, err));
    for (int64_t i = first; i < columns->n; i++)
        OJ_TRY(
            oj_row_columns_reserve_name(columns, columns->column[i].name, err));
    return OJ_OK;
}

/* ---- all columns --------------------------------------------------------- */

oj_status oj_row_columns_plan(const struct oj_row_columns_request *request,
                              struct oj_row_columns *columns,
                              struct oj_error *err)
{
    int64_t n =
        (int64_t)request->input.n + request->n_computed + request->join.n;
    OJ_NEW_ZEROED(columns->column, n, err);
    OJ_TRY(plan_side_fields(&request->input, OJ_COLUMN_INPUT, "",
                            !request->has_other_rows, columns, err));
    OJ_TRY(plan_computed_columns(request, columns, err));
    return plan_side_fields(&request->join, OJ_COLUMN_JOIN, request->prefix, 0,
                            columns, err);
}

void oj_row_columns_free(struct oj_row_columns *columns)
{
    for (int64_t i = 0; i < columns->n; i++)
        oj_free(columns->column[i].name);
    oj_free(columns->column);
    oj_token_table_free(&columns->taken);
    oj_free(columns->code);
    memset(columns, 0, sizeof *columns);
}
