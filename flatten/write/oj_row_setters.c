#include "oj_row_setters.h"
#include "../base/oj_array.h"
#include "../read/oj_table.h"

#include <string.h>

/* Columns of the input get theirs with the first batch, which knows the
 * types. */
static oj_status init_setter(struct oj_row_setters *setters, int i,
                             struct oj_error *err)
{
    const struct oj_column *column = &setters->column[i];
    OGRFieldType type = OFTInteger64;
    OGRFieldSubType subtype = OFSTNone;
    switch (column->origin)
    {
        case OJ_COLUMN_INPUT:
            if (setters->fields == NULL)
                return OJ_OK;
            if (column->source < 0 || column->source >= setters->fields->n)
                return oj_fail(err, OJ_ERR_INTERNAL,
                               "the batch has no field %d", column->source);
            type = setters->fields->field[column->source].type;
            subtype = setters->fields->field[column->source].subtype;
            break;
        case OJ_COLUMN_JOIN:
            if (setters->join_table == NULL || column->source < 0 ||
                column->source >= oj_table_columns(setters->join_table))
                return oj_fail(err, OJ_ERR_INTERNAL,
                               "the join table has no column %d",
                               column->source);
            type = oj_table_type(setters->join_table, column->source, &subtype);
            break;
        case OJ_COLUMN_MEASURE:
        case OJ_COLUMN_PAIR_VALUE:
            type = OFTReal;
            break;
        case OJ_COLUMN_AGGREGATE:
            type = column->type;
            subtype = column->subtype;
            break;
        default:
            break;
    }
    return oj_setter_init(&setters->setter[i], type, subtype, setters->defn,
                          column->target, err);
}

static oj_status init_all(struct oj_row_setters *setters,
                          const struct oj_column *columns, struct oj_error *err)
{
    int n = setters->n;
    setters->column = oj_calloc(n, sizeof *setters->column);
    setters->setter = oj_calloc(n, sizeof *setters->setter);
    setters->wanted = oj_calloc(n, sizeof *setters->wanted);
    if (setters->column == NULL || setters->setter == NULL ||
        setters->wanted == NULL)
        return oj_fail_nomem(err, n, sizeof *setters->setter);
    for (int i = 0; i < n; i++)
    {
        setters->column[i] = columns[i];
        OJ_TRY(init_setter(setters, i, err));
    }
    return OJ_OK;
}

oj_status oj_row_setters_init(struct oj_row_setters *setters,
                              OGRFeatureDefnH defn,
                              const struct oj_write_options *options,
                              struct oj_error *err)
{
    oj_status status;
    memset(setters, 0, sizeof *setters);
    setters->defn = defn;
    setters->join_table = options->join_table;
    setters->n = options->n_columns;
    status = init_all(setters, options->columns, err);
    if (status == OJ_OK)
        oj_row_setters_look_at_ignored(setters);
    else
        oj_row_setters_free(setters);
    return status;
}

oj_status oj_row_setters_set_fields(struct oj_row_setters *setters,
                                    const struct oj_fields *fields,
                                    struct oj_error *err)
{
    if (setters->fields == fields)
        return OJ_OK;
    setters->fields = fields;
    for (int i = 0; i < setters->n; i++)
    {
        if (setters->column[i].origin != OJ_COLUMN_INPUT)
            continue;
        oj_setter_free(&setters->setter[i]);
        OJ_TRY(init_setter(setters, i, err));
    }
    return OJ_OK;
}

static int is_wanted(const struct oj_row_setters *setters, int i)
{
    return !OGR_Fld_IsIgnored(
        OGR_FD_GetFieldDefn(setters->defn, setters->column[i].target));
}

void oj_row_setters_look_at_ignored(struct oj_row_setters *setters)
{
    int n = 0;
    for (int of_input = 1; of_input >= 0; of_input--)
    {
        for (int i = 0; i < setters->n; i++)
        {
            if ((setters->column[i].origin == OJ_COLUMN_INPUT) == of_input &&
                is_wanted(setters, i))
                setters->wanted[n++] = i;
        }
        if (of_input)
            setters->n_input_wanted = n;
    }
    setters->n_other_wanted = n - setters->n_input_wanted;
}

void oj_row_setters_free(struct oj_row_setters *setters)
{
    for (int i = 0; setters->setter != NULL && i < setters->n; i++)
        oj_setter_free(&setters->setter[i]);
    oj_free(setters->column);
    oj_free(setters->setter);
    oj_free(setters->wanted);
    memset(setters, 0, sizeof *setters);
}
