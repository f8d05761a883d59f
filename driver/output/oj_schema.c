#include "oj_schema.h"

#include "../../flatten/base/oj_alloc.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Whose field the column is a copy of, or NULL. */
static const struct oj_source *side_of_column(const struct oj_schema *schema,
                                              const struct oj_column *column)
{
    return column->origin == OJ_COLUMN_INPUT  ? schema->input
           : column->origin == OJ_COLUMN_JOIN ? schema->join
                                              : NULL;
}

/* The field of a side that a column is a copy of, or NULL. */
static OGRFieldDefnH source_field_of(const struct oj_schema *schema,
                                     const struct oj_column *column)
{
    const struct oj_source *side = side_of_column(schema, column);
    return side == NULL ? NULL : oj_source_field(side, column->source);
}

const char *oj_schema_name(const struct oj_schema *schema, int i)
{
    return OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(schema->defn, i));
}

/* Adds a copy of defn, with the name that was taken last; returns the copy. */
static OGRFieldDefnH add_column(struct oj_schema *schema,
                                enum oj_column_origin origin, int source,
                                OGRFieldDefnH defn)
{
    int n = (int)schema->n_fields++;
    const struct oj_column column = {origin, source, n, OGR_Fld_GetType(defn),
                                     OGR_Fld_GetSubType(defn)};
    schema->columns[n] = column;
    OGR_FD_AddFieldDefn(schema->defn, defn);
    defn = OGR_FD_GetFieldDefn(schema->defn, n);
    OGR_Fld_SetName(defn, schema->taken[CSLCount(schema->taken) - 1]);
    return defn;
}

/* Compared without case, as most formats do. */
static int is_taken(const struct oj_schema *schema, const char *name)
{
    return CSLFindString(schema->taken, name) >= 0;
}

void oj_schema_take_name(struct oj_schema *schema, const char *name)
{
    if (name != NULL && name[0] != '\0')
        schema->taken = CSLAddString(schema->taken, name);
}

void oj_schema_take_layer(struct oj_schema *schema, GDALDriverH driver,
                          OGRLayerH layer)
{
    const char *const names[] = {OGR_L_GetFIDColumn(layer),
                                 oj_driver_hidden_name(driver),
                                 OGR_L_GetGeometryColumn(layer)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        oj_schema_take_name(schema, names[i]);
}

/* Takes name, or, when it is taken, prefix and name, or then that with _2, _3
 * and so on. */
static void reserve_free_name(struct oj_schema *schema, const char *prefix,
                              const char *name)
{
    const char *free_name = name;
    for (int i = 1; is_taken(schema, free_name); i++)
        free_name = i == 1 ? CPLSPrintf("%.1000s%.4000s", prefix, name)
                           : CPLSPrintf("%.1000s%.4000s_%d", prefix, name, i);
    oj_schema_take_name(schema, free_name);
}

/* Fields of one side; prefix: before names that are taken. What an unmatched
 * row needs is kept possible: fields of the other side may be NULL and are
 * never unique. */
static void plan_side_fields(const struct oj_source *side,
                             enum oj_column_origin origin, const char *prefix,
                             int is_always_there, struct oj_schema *schema)
{
    for (int i = 0; i < side->n_fields; i++)
    {
        OGRFieldDefnH from = oj_source_field(side, i);
        const char *name = OGR_Fld_GetNameRef(from);
        OGRFieldDefnH to;
        reserve_free_name(schema, prefix, name[0] ? name : "field");
        to = add_column(schema, origin, i, from);
        OGR_Fld_SetUnique(to, 0);
        if (!is_always_there)
            OGR_Fld_SetNullable(to, 1);
        if (!is_always_there || OGR_Fld_IsDefaultDriverSpecific(from))
            OGR_Fld_SetDefault(to, NULL);
    }
}

/* The name of a column of ours under this number (1: without one). */
static void computed_column_name(const struct oj_own_column *own, int number,
                                 char *name, size_t size)
{
    if (number == 1 || own->option != NULL)
        snprintf(name, size, "%s", own->name);
    else
        snprintf(name, size, "%s_%d", own->name, number);
}

/* Usual names with a number, so that none of them is taken. */
static int
choose_computed_column_number(const struct oj_schema_request *request,
                              const struct oj_schema *schema)
{
    for (int number = 1;; number++)
    {
        int clash = 0;
        for (int i = 0; i < request->n_own && !clash; i++)
        {
            char name[256];
            computed_column_name(&request->own[i], number, name, sizeof name);
            clash = request->own[i].option == NULL && is_taken(schema, name);
        }
        if (!clash)
            return number;
    }
}

/* Names that the user gave. */
static oj_status check_user_given_names(const struct oj_schema_request *request,
                                        const struct oj_schema *schema,
                                        struct oj_error *err)
{
    for (int i = 0; i < request->n_own; i++)
    {
        const struct oj_own_column *own = &request->own[i];
        int is_twice = 0;
        for (int j = 0; j < i && own->option != NULL; j++)
            is_twice =
                is_twice || strcasecmp(own->name, request->own[j].name) == 0;
        if (own->option != NULL && (is_twice || is_taken(schema, own->name)))
            return oj_fail(err, OJ_ERR_ARG,
                           "-%s: the output has a column '%s' already; choose "
                           "another name",
                           own->option, own->name);
    }
    return OJ_OK;
}

/* Our columns keep together: where the input has one of them (it is itself the
 * output of a join), all get the same number. */
static oj_status plan_computed_columns(const struct oj_schema_request *request,
                                       struct oj_schema *schema,
                                       struct oj_error *err)
{
    int number;
    OJ_TRY(check_user_given_names(request, schema, err));
    number = choose_computed_column_number(request, schema);
    for (int i = 0; i < request->n_own; i++)
    {
        const struct oj_own_column *own = &request->own[i];
        OGRFieldDefnH defn = OGR_Fld_Create("", own->type);
        char name[256];
        computed_column_name(own, number, name, sizeof name);
        OGR_Fld_SetSubType(defn, own->subtype);
        oj_schema_take_name(schema, name);
        add_column(schema, own->origin, own->source, defn);
        OGR_Fld_Destroy(defn);
    }
    return OJ_OK;
}

/* One notice of all fields that could not keep their names. */
static void notice_renamed_fields(const struct oj_schema_request *request,
                                  const struct oj_schema *schema)
{
    const struct oj_own_column *own = request->own;
    char renamed[700] = "";
    for (int64_t i = 0; i < schema->n_fields; i++)
    {
        OGRFieldDefnH field = source_field_of(schema, &schema->columns[i]);
        const char *to = oj_schema_name(schema, (int)i);
        const char *from =
            field != NULL ? OGR_Fld_GetNameRef(field) : (own++)->name;
        if (strcmp(from, to) != 0)
            oj_append_name(renamed, sizeof renamed,
                           CPLSPrintf("%s -> %s", from, to));
    }
    if (renamed[0] != '\0')
        oj_notice("fields renamed, because their names are taken: %s", renamed);
}

oj_status oj_schema_plan(const struct oj_schema_request *request,
                         struct oj_schema *schema, struct oj_error *err)
{
    int64_t n = request->n_own;
    if (request->with_input)
        n += request->input->n_fields;
    if (request->with_join)
        n += request->join->n_fields;
    OJ_NEW(schema->columns, n + 1, err);
    schema->defn = OGR_FD_Create("");
    schema->input = request->input;
    schema->join = request->join;
    if (request->with_input)
        plan_side_fields(request->input, OJ_COLUMN_INPUT, "",
                         !request->has_other_rows, schema);
    OJ_TRY(plan_computed_columns(request, schema, err));
    if (request->with_join)
        plan_side_fields(request->join, OJ_COLUMN_JOIN, request->prefix, 0,
                         schema);
    notice_renamed_fields(request, schema);
    return OJ_OK;
}

/* ---- fields in a layer ------------------------------------------------- */

/* What ogr2ogr does, too: what a format has no type for becomes text. */
static void fit_type(GDALDriverH driver, OGRFieldDefnH defn)
{
    OGRFieldType type = OGR_Fld_GetType(defn);
    OGRFieldSubType subtype = OGR_Fld_GetSubType(defn);
    if (!oj_driver_takes_field(driver, type))
    {
        OGRFieldType other = type == OFTInteger64 ? OFTReal : OFTString;
        oj_warn("the format %s has no type %s; field '%s' is written as %s",
                GDALGetDescription(driver), OGR_GetFieldTypeName(type),
                OGR_Fld_GetNameRef(defn), OGR_GetFieldTypeName(other));
        OGR_Fld_SetSubType(defn, OFSTNone);
        OGR_Fld_SetType(defn, other);
        OGR_Fld_SetWidth(defn, 0);
        OGR_Fld_SetPrecision(defn, 0);
    }
    else if (!oj_driver_takes_subtype(driver, subtype))
    {
        /* The values stay, only the narrower type is lost. */
        OGR_Fld_SetSubType(defn, OFSTNone);
    }
}

/* Brings the field's domain along, where both sides can; else forgets it. */
static void copy_field_domain(GDALDatasetH dataset,
                              const struct oj_source *from, OGRFieldDefnH defn)
{
    const char *name = OGR_Fld_GetDomainName(defn);
    OGRFieldDomainH domain = NULL;
    char *reason = NULL;
    int there = 0;
    if (name == NULL || name[0] == '\0')
        return;
    if (from != NULL && from->dataset != NULL)
        domain = GDALDatasetGetFieldDomain(from->dataset, name);
    if (domain != NULL)
    {
        OGRFieldDomainH old = GDALDatasetGetFieldDomain(dataset, name);
        there = old != NULL &&
                OGR_FldDomain_GetDomainType(old) ==
                    OGR_FldDomain_GetDomainType(domain) &&
                OGR_FldDomain_GetFieldType(old) ==
                    OGR_FldDomain_GetFieldType(domain);
        if (old == NULL &&
            GDALDatasetTestCapability(dataset, ODsCAddFieldDomain))
            there = GDALDatasetAddFieldDomain(dataset, domain, &reason);
    }
    CPLFree(reason);
    if (!there)
        OGR_Fld_SetDomainName(defn, "");
}

oj_status oj_schema_create_field(GDALDatasetH dataset, OGRLayerH layer,
                                 struct oj_schema *schema, int i,
                                 struct oj_error *err)
{
    OGRFieldDefnH defn = OGR_FD_GetFieldDefn(schema->defn, i);
    OGRFeatureDefnH there = OGR_L_GetLayerDefn(layer);
    GDALDriverH driver = GDALGetDatasetDriver(dataset);
    int n = OGR_FD_GetFieldCount(there);
    OGRErr result;
    const char *name;
    fit_type(driver, defn);
    copy_field_domain(dataset, side_of_column(schema, &schema->columns[i]),
                      defn);
    CPLErrorReset();
    /* What GDAL says of shortened names is said better below. */
    CPLPushErrorHandler(CPLQuietErrorHandler);
    result = OGR_L_CreateField(layer, defn, 1);
    CPLPopErrorHandler();
    if (result != OGRERR_NONE || OGR_FD_GetFieldCount(there) != n + 1)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "cannot create the field '%s' (%s) in the format %s: %s",
                       OGR_Fld_GetNameRef(defn),
                       OGR_GetFieldTypeName(OGR_Fld_GetType(defn)),
                       GDALGetDescription(driver),
                       CPLGetLastErrorMsg()[0] != '\0'
                           ? CPLGetLastErrorMsg()
                           : "leave it out with -select or -join_select, or "
                             "choose another format");
    name = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(there, n));
    if (strcmp(name, OGR_Fld_GetNameRef(defn)) != 0)
        oj_notice("the format %s calls the field '%s' '%s'",
                  GDALGetDescription(driver), OGR_Fld_GetNameRef(defn), name);
    schema->columns[i].target = n;
    return OJ_OK;
}

const char *oj_schema_name_beside(const struct oj_source *input,
                                  const char *name)
{
    for (int i = 0; name != NULL && i < input->n_fields; i++)
    {
        if (strcasecmp(name, OGR_Fld_GetNameRef(oj_source_field(input, i))) ==
            0)
            return "";
    }
    return name != NULL ? name : "";
}

/* The output's FID or geometry column is called like the input's, name, and
 * never like one of the input's fields, whose values would be taken for FIDs.
 *  option   of the layer, that names the column
 *  others   names to choose from where the driver's is a field, too */
static char **choose_special_column_name(const struct oj_output *o,
                                         const struct oj_source *input,
                                         const char *option, const char *name,
                                         const char *const others[2],
                                         char **options)
{
    char usual[128] = "";
    if (CSLFetchNameValue((char **)o->asked->layer_options, option) != NULL ||
        !oj_driver_has_layer_option(o->driver, option, usual, sizeof usual))
        return options;
    name = oj_schema_name_beside(input, name);
    if (name[0] == '\0' && usual[0] != '\0')
    {
        name = oj_schema_name_beside(input, usual);
        if (name[0] == '\0')
            name = oj_schema_name_beside(input, others[0]);
        if (name[0] == '\0')
            name = others[1];
    }
    if (name[0] != '\0' && strcasecmp(name, usual) != 0)
        options = CSLSetNameValue(options, option, name);
    return options;
}

OGRwkbGeometryType oj_schema_layer_type(const struct oj_output_options *asked,
                                        OGRwkbGeometryType type)
{
    OGRwkbGeometryType flat = OGR_GT_Flatten(type);
    if (asked->layer_type == OJ_LAYER_NONE)
        return wkbNone;
    if (asked->layer_type == OJ_LAYER_MULTI &&
        (flat == wkbPoint || flat == wkbLineString || flat == wkbPolygon))
        return OGR_GT_GetCollection(type);
    return type;
}

/* Formats that are read by their geometries: without them FlatGeobuf's file is
 * one that cannot be opened, and Shapefile's is another file. */
static oj_status check_format_can_lack_geometry(const struct oj_output *o,
                                                struct oj_error *err)
{
    if (!oj_driver_is(o->driver, "FlatGeobuf|ESRI Shapefile"))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "a file of the format %s cannot be without geometry; write "
                   "CSV or GPKG",
                   GDALGetDescription(o->driver));
}

static oj_status create_layer(struct oj_output *o,
                              const struct oj_schema_request *request,
                              const struct oj_crs *crs,
                              struct oj_output_layer *place,
                              struct oj_error *err)
{
    static const char *const fid[] = {"ogr_fid", "ogrjoin_fid"};
    static const char *const geometry[] = {"geometry", "ogr_geometry"};
    const struct oj_source *input = request->input;
    OGRwkbGeometryType type = oj_schema_layer_type(o->asked, request->type);
    const char *format = GDALGetDescription(o->driver);
    char **options;
    if (type == wkbNone)
        OJ_TRY(check_format_can_lack_geometry(o, err));
    options = CSLDuplicate((char **)o->asked->layer_options);
    options = choose_special_column_name(
        o, input, "FID", OGR_L_GetFIDColumn(input->layer), fid, options);
    options = choose_special_column_name(o, input, "GEOMETRY_NAME",
                                         OGR_L_GetGeometryColumn(input->layer),
                                         geometry, options);
    CPLErrorReset();
    place->layer = GDALDatasetCreateLayer(o->dataset, place->name, crs->output,
                                          type, options);
    CSLDestroy(options);
    if (place->layer == NULL)
        return oj_fail(err, OJ_ERR_IO,
                       "the format %s cannot create the layer '%s' of type "
                       "%s%s%s",
                       format, place->name, OGRGeometryTypeToName(type),
                       CPLGetLastErrorMsg()[0] != '\0' ? ": " : "",
                       CPLGetLastErrorMsg());
    if (place->option == NULL && type != wkbNone &&
        OGR_L_GetGeomType(place->layer) == wkbNone)
        oj_notice("the format %s writes no geometry here%s", format,
                  strcasecmp(format, "CSV") == 0
                      ? "; -lco GEOMETRY=AS_XY or AS_WKT adds it"
                      : "");
    return OJ_OK;
}

static oj_status create_fields(const struct oj_output *o,
                               const struct oj_output_layer *place,
                               struct oj_schema *schema, struct oj_error *err)
{
    if (schema->n_fields > 0 &&
        !OGR_L_TestCapability(place->layer, OLCCreateField))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the format %s stores no fields of the user's; choose "
                       "another one",
                       GDALGetDescription(o->driver));
    for (int i = 0; i < (int)schema->n_fields; i++)
        OJ_TRY(
            oj_schema_create_field(o->dataset, place->layer, schema, i, err));
    return OJ_OK;
}

/* 1 when every value of type from can be stored in a field of type to. */
static int type_fits(OGRFieldType from, OGRFieldType to)
{
    if (from == to)
        return 1;
    if (to == OFTString)
        return from != OFTBinary;
    if (from == OFTInteger)
        return to == OFTInteger64 || to == OFTReal;
    return 0;
}

/* The option that leaves the field out, or "" where none does. */
static const char *field_omission_hint(enum oj_column_origin origin)
{
    static const char *const options[] = {
        [OJ_COLUMN_INPUT] = "leave it out with -select, or ",
        [OJ_COLUMN_JOIN] = "leave it out with -join_select, or ",
        [OJ_COLUMN_JOIN_FID] = "leave it out with -name_fid \"\", or ",
        [OJ_COLUMN_MEASURE] = "leave it out with -name_distance \"\", or ",
        [OJ_COLUMN_RANK] = "leave it out with -name_rank \"\", or ",
        [OJ_COLUMN_COUNT] = "",
        [OJ_COLUMN_PAIR_VALUE] = "",
        [OJ_COLUMN_AGGREGATE] = ""};
    return options[origin];
}

static oj_status match_column_to_layer_field(const struct oj_output *o,
                                             const struct oj_output_layer *at,
                                             struct oj_schema *schema, int i,
                                             struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(at->layer);
    const char *name = oj_schema_name(schema, i);
    int place = OGR_FD_GetFieldIndex(defn, name);
    OGRFieldType from = schema->columns[i].type, to;
    if (place < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "-append: the layer '%s' of %s has no field '%s'; "
                       "%swrite another layer",
                       at->name, o->asked->dst, name,
                       field_omission_hint(schema->columns[i].origin));
    to = OGR_Fld_GetType(OGR_FD_GetFieldDefn(defn, place));
    if (!type_fits(from, to))
        return oj_fail(err, OJ_ERR_ARG,
                       "-append: the field '%s' of layer '%s' is of type %s "
                       "and cannot take %s",
                       name, at->name, OGR_GetFieldTypeName(to),
                       OGR_GetFieldTypeName(from));
    schema->columns[i].target = place;
    return OJ_OK;
}

static oj_status check_append_crs(const struct oj_output_layer *at,
                                  const struct oj_crs *crs,
                                  struct oj_error *err)
{
    const char *const options[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES",
                                   NULL};
    OGRSpatialReferenceH there = OGR_L_GetSpatialRef(at->layer);
    if (there == NULL || crs->output == NULL ||
        OSRIsSameEx(there, crs->output, options))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-append: the layer '%s' is in the CRS %s, the new rows in "
                   "%s; bring them into it with -t_srs",
                   at->name, OSRGetName(there), OSRGetName(crs->output));
}

/* FIDs are kept where every row of the output has the FID of another row of
 * the input; rows without input feature then get what the driver gives them:
 * one that no other row has, but of GeoJSON, where readers count the features,
 * and of a script of SQL, which leaves it to a sequence that has not moved. */
static int may_keep_fids(const struct oj_schema_request *request,
                         const struct oj_output *o,
                         const struct oj_output_layer *at)
{
    return !at->appends && !o->asked->unset_fid && request->one_row_per_input &&
           !request->input->is_result_set && oj_driver_takes_fids(o->driver) &&
           (!request->has_other_rows ||
            !oj_driver_is(o->driver, "GeoJSON|GeoJSONSeq|PGDUMP"));
}

oj_status oj_schema_create(const struct oj_schema_request *request,
                           const struct oj_crs *crs, struct oj_output *o,
                           struct oj_output_layer *at, struct oj_schema *schema,
                           struct oj_error *err)
{
    if (at->appends)
        OJ_TRY(check_append_crs(at, crs, err));
    else
        OJ_TRY(create_layer(o, request, crs, at, err));
    oj_schema_take_layer(schema, o->driver, at->layer);
    OJ_TRY(oj_schema_plan(request, schema, err));
    schema->keep_fids = may_keep_fids(request, o, at);
    if (!at->appends)
        return create_fields(o, at, schema, err);
    for (int i = 0; i < (int)schema->n_fields; i++)
        OJ_TRY(match_column_to_layer_field(o, at, schema, i, err));
    return OJ_OK;
}

void oj_schema_free(struct oj_schema *schema)
{
    const struct oj_schema empty = {0};
    if (schema->defn != NULL)
        OGR_FD_Destroy(schema->defn);
    oj_free(schema->columns);
    CSLDestroy(schema->taken);
    *schema = empty;
}
