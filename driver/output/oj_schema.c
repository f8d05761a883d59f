#include "oj_schema.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_message.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static OGRFieldDefnH field_of(const struct oj_source *source, int i)
{
    return OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(source->layer),
                               source->fields[i]);
}

/* A copy of a definition under another name. What an unmatched row needs is
 * kept possible: fields of the other side may be NULL and are never unique. */
static OGRFieldDefnH copy_defn(OGRFieldDefnH from, const char *name,
                               int is_always_there)
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
    if (is_always_there)
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
    field->type = OGR_Fld_GetType(defn);
    field->subtype = OGR_Fld_GetSubType(defn);
    field->defn = defn;
    field->of = of;
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
        OJ_TRY(add(schema, OJ_COLUMN_INPUT, i, kept,
                   copy_defn(from, kept, !request->has_other_rows),
                   request->input, err));
    }
    return OJ_OK;
}

/* The name of a column of ours under this number (1: without one). */
static void own_name(const struct oj_own_column *own, int number, char *name,
                     size_t size)
{
    if (number == 1 || own->option != NULL)
        snprintf(name, size, "%s", own->name);
    else
        snprintf(name, size, "%s_%d", own->name, number);
}

/* Usual names with a number, so that none of them is taken. */
static int choose_number(const struct oj_schema_request *request,
                         const struct oj_names *taken)
{
    for (int number = 1;; number++)
    {
        int clash = 0;
        for (int i = 0; i < request->n_own && !clash; i++)
        {
            char name[256];
            own_name(&request->own[i], number, name, sizeof name);
            clash = request->own[i].option == NULL && oj_names_has(taken, name);
        }
        if (!clash)
            return number;
    }
}

/* Names that the user gave. */
static oj_status check_given(const struct oj_schema_request *request,
                             const struct oj_names *taken, struct oj_error *err)
{
    for (int i = 0; i < request->n_own; i++)
    {
        const struct oj_own_column *own = &request->own[i];
        int is_twice = 0;
        for (int j = 0; j < i && own->option != NULL; j++)
            is_twice =
                is_twice || strcasecmp(own->name, request->own[j].name) == 0;
        if (own->option != NULL && (is_twice || oj_names_has(taken, own->name)))
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s: the output has a column '%s' already; choose "
                           "another name",
                           own->option, own->name);
    }
    return OJ_OK;
}

/* Our columns keep together: where the input has one of them (it is itself the
 * output of a join), all get the same number. */
static oj_status plan_own(const struct oj_schema_request *request,
                          struct oj_schema *schema, char *renamed, size_t size,
                          struct oj_error *err)
{
    int number;
    OJ_TRY(check_given(request, &schema->taken, err));
    number = choose_number(request, &schema->taken);
    for (int i = 0; i < request->n_own; i++)
    {
        const struct oj_own_column *own = &request->own[i];
        OGRFieldDefnH defn;
        const char *kept = "";
        char name[256];
        own_name(own, number, name, sizeof name);
        OJ_TRY(oj_names_add(&schema->taken, name, &kept, err));
        note_renamed(renamed, size, own->name, kept);
        defn = OGR_Fld_Create(kept, own->type);
        if (defn != NULL)
            OGR_Fld_SetSubType(defn, own->subtype);
        OJ_TRY(add(schema, own->origin, own->source, kept, defn, NULL, err));
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

oj_status oj_schema_plan(const struct oj_schema_request *request,
                         struct oj_schema *schema, struct oj_error *err)
{
    char renamed[700] = "";
    if (request->with_input)
        OJ_TRY(plan_input(request, schema, renamed, sizeof renamed, err));
    OJ_TRY(plan_own(request, schema, renamed, sizeof renamed, err));
    if (request->with_join)
        OJ_TRY(plan_join(request, schema, renamed, sizeof renamed, err));
    if (renamed[0] != '\0')
        oj_notice("fields renamed, because their names are taken: %s", renamed);
    return OJ_OK;
}

void oj_schema_column(const struct oj_schema *schema, int64_t f,
                      struct oj_column *column)
{
    column->origin = schema->fields[f].origin;
    column->source = schema->fields[f].source;
    column->type = schema->fields[f].type;
    column->subtype = schema->fields[f].subtype;
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
