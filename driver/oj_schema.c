#include "oj_schema.h"

#include "../flatten/oj_array.h"
#include "oj_message.h"

#include <stdio.h>
#include <string.h>

static const char *const own_names[] = {"join_fid", "join_distance",
                                        "join_rank"};

static OGRFieldDefnH field_of(const struct oj_source *source, int i)
{
    return OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(source->layer),
                               source->fields[i]);
}

/* A copy of a definition under another name. What an unmatched row needs is
 * kept possible: fields of the join side may be NULL and are never unique. */
static OGRFieldDefnH copy_defn(OGRFieldDefnH from, const char *name,
                               int is_input)
{
    OGRFieldDefnH to = OGR_Fld_Create(name, OGR_Fld_GetType(from));
    if (to == NULL)
        return NULL;
    OGR_Fld_SetSubType(to, OGR_Fld_GetSubType(from));
    OGR_Fld_SetWidth(to, OGR_Fld_GetWidth(from));
    OGR_Fld_SetPrecision(to, OGR_Fld_GetPrecision(from));
    OGR_Fld_SetJustify(to, OGR_Fld_GetJustify(from));
    if (OGR_Fld_GetAlternativeNameRef(from) != NULL)
        OGR_Fld_SetAlternativeName(to, OGR_Fld_GetAlternativeNameRef(from));
    if (OGR_Fld_GetDomainName(from) != NULL)
        OGR_Fld_SetDomainName(to, OGR_Fld_GetDomainName(from));
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    if (OGR_Fld_GetComment(from) != NULL)
        OGR_Fld_SetComment(to, OGR_Fld_GetComment(from));
#endif
    if (is_input)
    {
        OGR_Fld_SetNullable(to, OGR_Fld_IsNullable(from));
        if (OGR_Fld_GetDefault(from) != NULL &&
            !OGR_Fld_IsDefaultDriverSpecific(from))
            OGR_Fld_SetDefault(to, OGR_Fld_GetDefault(from));
    }
    return to;
}

/* defn becomes the schema's, also on failure. */
static oj_status add(struct oj_schema *schema, enum oj_column_origin origin,
                     int source, const char *name, OGRFieldDefnH defn,
                     const struct oj_source *of, struct oj_error *err)
{
    struct oj_planned_field *field;
    oj_status status;
    if (defn == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: field '%s'", name);
    status = oj_reserve(&schema->fields, schema->n_fields, schema->n_fields + 1,
                        &schema->cap_fields, sizeof *schema->fields, err);
    if (status != OJ_OK)
    {
        OGR_Fld_Destroy(defn);
        return status;
    }
    field = &schema->fields[schema->n_fields++];
    field->origin = origin;
    field->source = source;
    field->name = name;
    field->defn = defn;
    field->of = of;
    field->type = OGR_Fld_GetType(defn);
    field->subtype = OGR_Fld_GetSubType(defn);
    return OJ_OK;
}

/* Collects "a -> b" for one notice. */
static void note_renamed(char *text, size_t size, const char *from,
                         const char *to)
{
    size_t used = strlen(text);
    if (strcmp(from, to) == 0)
        return;
    if (used + strlen(from) + strlen(to) + 12 < size)
        snprintf(text + used, size - used, "%s%s -> %s", used > 0 ? ", " : "",
                 from, to);
    else if (used > 3 && strcmp(text + used - 3, "...") != 0)
        snprintf(text + used, size - used, ", ...");
}

static oj_status plan_input(const struct oj_schema_request *request,
                            struct oj_schema *schema, char *renamed,
                            size_t size, struct oj_error *err)
{
    for (int i = 0; i < request->input->n_fields; i++)
    {
        OGRFieldDefnH from = field_of(request->input, i);
        const char *name = OGR_Fld_GetNameRef(from), *kept = "";
        OJ_TRY(oj_names_add_free(&schema->taken, "", name[0] ? name : "field",
                                 &kept, err));
        note_renamed(renamed, size, name, kept);
        OJ_TRY(add(schema, OJ_COLUMN_INPUT, i, kept, copy_defn(from, kept, 1),
                   request->input, err));
    }
    return OJ_OK;
}

/* Our columns keep together: where the input has one of them (it is itself the
 * output of a join), all get the same number. */
static oj_status plan_own(const struct oj_schema_request *request,
                          struct oj_schema *schema, char *renamed, size_t size,
                          struct oj_error *err)
{
    static const enum oj_column_origin origins[] = {
        OJ_COLUMN_JOIN_FID, OJ_COLUMN_MEASURE, OJ_COLUMN_RANK};
    static const OGRFieldType types[] = {OFTInteger64, OFTReal, OFTInteger};
    int n = request->with_rank ? 3 : 2, clash = 1;
    char names[3][32];
    for (int number = 1; clash; number++)
    {
        clash = 0;
        for (int i = 0; i < n; i++)
        {
            if (number == 1)
                snprintf(names[i], sizeof names[i], "%s", own_names[i]);
            else
                snprintf(names[i], sizeof names[i], "%s_%d", own_names[i],
                         number);
            clash = clash || oj_names_has(&schema->taken, names[i]);
        }
    }
    for (int i = 0; i < n; i++)
    {
        const char *kept = "";
        OJ_TRY(oj_names_add(&schema->taken, names[i], &kept, err));
        note_renamed(renamed, size, own_names[i], kept);
        OJ_TRY(add(schema, origins[i], 0, kept, OGR_Fld_Create(kept, types[i]),
                   NULL, err));
    }
    return OJ_OK;
}

static oj_status plan_join(const struct oj_schema_request *request,
                           struct oj_schema *schema, char *renamed, size_t size,
                           struct oj_error *err)
{
    for (int i = 0; i < request->join->n_fields; i++)
    {
        OGRFieldDefnH from = field_of(request->join, i);
        const char *name = OGR_Fld_GetNameRef(from), *kept = "";
        OJ_TRY(oj_names_add_free(&schema->taken, request->prefix,
                                 name[0] ? name : "field", &kept, err));
        note_renamed(renamed, size, name, kept);
        OJ_TRY(add(schema, OJ_COLUMN_JOIN, i, kept, copy_defn(from, kept, 0),
                   request->join, err));
    }
    return OJ_OK;
}

static oj_status plan_aggregates(const struct oj_schema_request *request,
                                 struct oj_schema *schema, char *renamed,
                                 size_t size, struct oj_error *err)
{
    for (int i = 0; i < request->n_aggregates; i++)
    {
        const struct oj_schema_aggregate *from = &request->aggregates[i];
        const char *kept = "";
        OJ_TRY(oj_names_add_free(&schema->taken, request->prefix, from->name,
                                 &kept, err));
        note_renamed(renamed, size, from->name, kept);
        OJ_TRY(add(schema, OJ_COLUMN_AGGREGATE, i, kept,
                   copy_defn(from->defn, kept, 0), NULL, err));
    }
    return OJ_OK;
}

oj_status oj_schema_plan(const struct oj_schema_request *request,
                         struct oj_schema *schema, struct oj_error *err)
{
    char renamed[700] = "";
    if (request->with_input)
        OJ_TRY(plan_input(request, schema, renamed, sizeof renamed, err));
    OJ_TRY(plan_aggregates(request, schema, renamed, sizeof renamed, err));
    if (request->with_join)
    {
        OJ_TRY(plan_own(request, schema, renamed, sizeof renamed, err));
        OJ_TRY(plan_join(request, schema, renamed, sizeof renamed, err));
    }
    if (renamed[0] != '\0')
        oj_notice("fields renamed, because their names are taken: %s", renamed);
    return OJ_OK;
}

void oj_schema_free(struct oj_schema *schema)
{
    const struct oj_schema empty = {0};
    for (int64_t i = 0; i < schema->n_fields; i++)
        OGR_Fld_Destroy(schema->fields[i].defn);
    oj_free(schema->fields);
    oj_free(schema->columns);
    oj_names_free(&schema->taken);
    *schema = empty;
}
