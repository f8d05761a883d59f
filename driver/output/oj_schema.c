#include "oj_schema.h"

#include "../../flatten/base/oj_alloc.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../source/oj_layer_field_kind.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Returns the side whose field the column copies, or NULL. */
static const struct oj_source *side_of_column(const struct oj_schema *schema,
                                              const struct oj_column *column)
{
    return column->origin == OJ_COLUMN_INPUT  ? schema->input
           : column->origin == OJ_COLUMN_JOIN ? schema->join
                                              : NULL;
}

/* Returns the field that the column copies, or NULL. */
static OGRFieldDefnH source_field_of(const struct oj_schema *schema,
                                     const struct oj_column *column)
{
    const struct oj_source *side = side_of_column(schema, column);
    return side == NULL ? NULL : oj_source_field(side, column->source);
}

const char *oj_schema_field_name(const struct oj_schema *schema, int i)
{
    return OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(schema->defn, i));
}

void oj_schema_reserve_name(struct oj_schema *schema, const char *name)
{
    if (name != NULL && name[0] != '\0')
        schema->taken = CSLAddString(schema->taken, name);
}

void oj_schema_reserve_layer_names(struct oj_schema *schema, GDALDriverH driver,
                                   OGRLayerH layer)
{
    const char *const names[] = {OGR_L_GetFIDColumn(layer),
                                 oj_driver_column_read_as_fid(driver),
                                 OGR_L_GetGeometryColumn(layer)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        oj_schema_reserve_name(schema, names[i]);
}

/* ---- columns as fields --------------------------------------------------- */

/* Describes the fields of a side; none if is_asked is 0. The caller frees
 * *fields. */
static oj_status describe_side_fields(const struct oj_source *side,
                                      int is_asked,
                                      struct oj_field_description **fields,
                                      struct oj_row_side_fields *out,
                                      struct oj_error *err)
{
    out->n = is_asked ? side->n_fields : 0;
    OJ_NEW(*fields, out->n, err);
    for (int i = 0; i < out->n; i++)
        (*fields)[i] = oj_layer_field_describe(oj_source_field(side, i));
    out->field = *fields;
    return OJ_OK;
}

static oj_status name_columns(const struct oj_schema_request *request,
                              const struct oj_schema *schema,
                              struct oj_row_columns *columns,
                              struct oj_error *err)
{
    struct oj_row_columns_request plan = {0};
    struct oj_field_description *input = NULL, *join = NULL;
    oj_status status = OJ_OK;
    for (int i = 0; i < CSLCount(schema->taken) && status == OJ_OK; i++)
        status = oj_row_columns_reserve_name(columns, schema->taken[i], err);
    plan.dash = "-";
    plan.computed = request->own;
    plan.n_computed = request->n_own;
    plan.has_other_rows = request->has_other_rows;
    plan.prefix = request->prefix != NULL ? request->prefix : "";
    if (status == OJ_OK)
        status = describe_side_fields(request->input, request->with_input,
                                      &input, &plan.input, err);
    if (status == OJ_OK)
        status = describe_side_fields(request->join, request->with_join, &join,
                                      &plan.join, err);
    if (status == OJ_OK)
        status = oj_row_columns_plan(&plan, columns, err);
    oj_free(input);
    oj_free(join);
    return status;
}

/* Returns the type of a computed column. */
static struct oj_computed_type
type_of_computed(const struct oj_schema_request *request, int64_t i)
{
    struct oj_computed_type type = {OFTInteger64, OFSTNone};
    if (request->own_types != NULL)
        return request->own_types[i];
    if (request->own[i].kind == OJ_FIELD_INT32)
        type.type = OFTInteger;
    else if (request->own[i].kind == OJ_FIELD_FLOAT64)
        type.type = OFTReal;
    else if (request->own[i].kind == OJ_FIELD_TEXT)
        type.type = OFTString;
    return type;
}

/* Defines a copy of a side's field. The copy is never unique, since a row can
 * have several pairs. It is nullable if some rows lack the field, and has a
 * default only if all rows have it. */
static void define_side_field(const struct oj_schema *schema,
                              const struct oj_named_column *column,
                              OGRFieldDefnH from)
{
    OGRFieldDefnH to;
    OGR_FD_AddFieldDefn(schema->defn, from);
    to = OGR_FD_GetFieldDefn(schema->defn, (int)schema->n_fields);
    OGR_Fld_SetName(to, column->name);
    OGR_Fld_SetUnique(to, 0);
    if (column->is_nullable)
        OGR_Fld_SetNullable(to, 1);
    if (!column->is_always_there || OGR_Fld_IsDefaultDriverSpecific(from))
        OGR_Fld_SetDefault(to, NULL);
}

static void define_computed_field(const struct oj_schema *schema,
                                  const struct oj_named_column *column,
                                  struct oj_computed_type type)
{
    OGRFieldDefnH defn = OGR_Fld_Create(column->name, type.type);
    OGR_Fld_SetSubType(defn, type.subtype);
    OGR_FD_AddFieldDefn(schema->defn, defn);
    OGR_Fld_Destroy(defn);
}

static void define_fields(const struct oj_schema_request *request,
                          const struct oj_row_columns *columns,
                          struct oj_schema *schema)
{
    int64_t n_own = 0;
    for (int64_t i = 0; i < columns->n; i++)
    {
        const struct oj_named_column *named = &columns->column[i];
        struct oj_column *column = &schema->columns[i];
        OGRFieldDefnH from, to;
        column->origin = named->origin;
        column->source = named->source;
        column->target = (int)i;
        from = source_field_of(schema, column);
        if (from != NULL)
            define_side_field(schema, named, from);
        else
            define_computed_field(schema, named,
                                  type_of_computed(request, n_own++));
        to = OGR_FD_GetFieldDefn(schema->defn, (int)i);
        column->type = OGR_Fld_GetType(to);
        column->subtype = OGR_Fld_GetSubType(to);
        schema->n_fields++;
    }
}

/* Prints one notice with all fields that were renamed. */
static void notice_renamed_fields(const struct oj_row_columns *columns)
{
    char renamed[700] = "";
    for (int64_t i = 0; i < columns->n; i++)
    {
        const struct oj_named_column *column = &columns->column[i];
        if (strcmp(column->original, column->name) != 0)
            oj_message_append_name(
                renamed, sizeof renamed,
                CPLSPrintf("%s -> %s", column->original, column->name));
    }
    if (renamed[0] != '\0')
        oj_notice("fields renamed, because their names are in use: %s (-prefix "
                  "chooses what the names of join fields begin with)",
                  renamed);
}

oj_status oj_schema_plan(const struct oj_schema_request *request,
                         struct oj_schema *schema, struct oj_error *err)
{
    struct oj_row_columns columns = {0};
    oj_status status = name_columns(request, schema, &columns, err);
    if (status == OJ_OK)
    {
        schema->columns = oj_calloc(columns.n + 1, sizeof *schema->columns);
        if (schema->columns == NULL)
            status = oj_fail_nomem(err, columns.n + 1, sizeof *schema->columns);
    }
    if (status == OJ_OK)
    {
        schema->defn = OGR_FD_Create("");
        schema->input = request->input;
        schema->join = request->join;
        define_fields(request, &columns, schema);
        notice_renamed_fields(&columns);
    }
    oj_row_columns_free(&columns);
    return status;
}

/* ---- fields in a layer --------------------------------------------------- */

/* Replaces a type that the format lacks: 64-bit integers by reals, other types
 * by text, as ogr2ogr does. */
static void replace_type_unknown_to_format(GDALDriverH driver,
                                           OGRFieldDefnH defn)
{
    OGRFieldType type = OGR_Fld_GetType(defn);
    OGRFieldSubType subtype = OGR_Fld_GetSubType(defn);
    if (!oj_driver_takes_field(driver, type))
    {
        OGRFieldType other = type == OFTInteger64 ? OFTReal : OFTString;
        oj_warn("the format %s has no type %s; field '%s' is written as %s "
                "(another format, -f, may have the type)",
                GDALGetDescription(driver), OGR_GetFieldTypeName(type),
                OGR_Fld_GetNameRef(defn), OGR_GetFieldTypeName(other));
        OGR_Fld_SetSubType(defn, OFSTNone);
        OGR_Fld_SetType(defn, other);
        OGR_Fld_SetWidth(defn, 0);
        OGR_Fld_SetPrecision(defn, 0);
    }
    else if (!oj_driver_takes_subtype(driver, subtype))
    {
        /* only the subtype is lost; the values stay */
        OGR_Fld_SetSubType(defn, OFSTNone);
    }
}

/* Copies the field's domain if both datasets support domains; otherwise the
 * copy has none. */
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
    replace_type_unknown_to_format(driver, defn);
    copy_field_domain(dataset, side_of_column(schema, &schema->columns[i]),
                      defn);
    CPLErrorReset();
    /* GDAL's message about shortened names is suppressed; the notice below
     * replaces it. */
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
        oj_notice("the format %s renames the field '%s' to '%s'",
                  GDALGetDescription(driver), OGR_Fld_GetNameRef(defn), name);
    schema->columns[i].target = n;
    return OJ_OK;
}

const char *oj_schema_name_unless_field(const struct oj_source *input,
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

/* Chooses the name of the output's FID or geometry column, and adds it to the
 * layer options. Returns the options. The name is that of the input's column,
 * unless a field of the input has this name, too: the field's values would be
 * taken for FIDs.
 *  option  the layer option that sets the name
 *  others  names to use if the driver's default name is also a field */
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
    name = oj_schema_name_unless_field(input, name);
    if (name[0] == '\0' && usual[0] != '\0')
    {
        name = oj_schema_name_unless_field(input, usual);
        if (name[0] == '\0')
            name = oj_schema_name_unless_field(input, others[0]);
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
    if (oj_layer_type_is_multi(asked->layer_type) &&
        (flat == wkbPoint || flat == wkbLineString || flat == wkbPolygon))
        return OGR_GT_GetCollection(type);
    return type;
}

/* Refuses a layer without geometry in formats whose files would then be
 * unreadable (FlatGeobuf) or incomplete (Shapefile without .shp). */
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
    const int keeps_type = place->option != NULL &&
                           oj_layer_type_keeps_parts(o->asked->layer_type);
    OGRwkbGeometryType type =
        keeps_type ? request->type
                   : oj_schema_layer_type(o->asked, request->type);
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
                       "%s: %s",
                       format, place->name, OGRGeometryTypeToName(type),
                       CPLGetLastErrorMsg()[0] != '\0'
                           ? CPLGetLastErrorMsg()
                           : "write another format (-f)");
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
                       "the format %s stores no user-defined fields: write "
                       "another format (-f)",
                       GDALGetDescription(o->driver));
    for (int i = 0; i < (int)schema->n_fields; i++)
        OJ_TRY(
            oj_schema_create_field(o->dataset, place->layer, schema, i, err));
    return OJ_OK;
}

/* Returns 1 if every value of type `from` can be stored in a field of type
 * `to`. */
static int can_store_type(OGRFieldType from, OGRFieldType to)
{
    if (from == to)
        return 1;
    if (to == OFTString)
        return from != OFTBinary;
    if (from == OFTInteger)
        return to == OFTInteger64 || to == OFTReal;
    return 0;
}

/* Returns the option that leaves the field out, or "" if there is none. */
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
    const char *name = oj_schema_field_name(schema, i);
    int place = OGR_FD_GetFieldIndex(defn, name);
    OGRFieldType from = schema->columns[i].type, to;
    if (place < 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "-append: the layer '%s' of %s has no field '%s'; "
                       "%swrite another layer",
                       at->name, o->asked->dst, name,
                       field_omission_hint(schema->columns[i].origin));
    to = OGR_Fld_GetType(OGR_FD_GetFieldDefn(defn, place));
    if (!can_store_type(from, to))
        return oj_fail(err, OJ_ERR_ARG,
                       "-append: the field '%s' of layer '%s' is of type %s "
                       "and cannot take %s; leave it out with -select or "
                       "-join_select, or write another layer",
                       name, at->name, OGR_GetFieldTypeName(to),
                       OGR_GetFieldTypeName(from));
    schema->columns[i].target = place;
    return OJ_OK;
}

static oj_status check_append_crs(const struct oj_output_layer *at,
                                  const struct oj_crs *crs,
                                  struct oj_error *err)
{
    OGRSpatialReferenceH there = OGR_L_GetSpatialRef(at->layer);
    if (there == NULL || crs->output == NULL ||
        oj_crs_is_one_plane(there, crs->output))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-append: the layer '%s' is in the CRS %s, the new rows in "
                   "%s; bring them into it with -t_srs",
                   at->name, oj_crs_describe(there),
                   oj_crs_describe(crs->output));
}

/* Returns 1 if output rows keep the FIDs of the input: no two output rows may
 * have equal FIDs, and the driver must choose an unused FID for rows without an
 * input feature. GeoJSON cannot, because its readers number the features
 * without FIDs from 0. An SQL script (PGDUMP) cannot, because the sequence that
 * numbers such rows does not advance for rows that are written with an FID. */
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
    oj_schema_reserve_layer_names(schema, o->driver, at->layer);
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
