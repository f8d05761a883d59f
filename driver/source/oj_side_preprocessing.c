#include "oj_side_preprocessing.h"

#include "../../algs/foundations/base/oj_feature_box.h"
#include "../../algs/foundations/relation/oj_compared_fields.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/write/oj_flat_to_ogr_geometry.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"
#include "../base/oj_shell_words.h"
#include "../files/oj_path.h"
#include "oj_layer_field_kind.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- self joins ---------------------------------------------------------- */

static int is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Returns 1 if both sides read one layer, so that equal FIDs mean one row.
 * Filters may differ; open options may not, because they can change the rows.
 */
static int is_same_layer(const struct oj_source *a, const struct oj_source *b)
{
    return oj_path_is_same_file(a->side->dataset, b->side->dataset) &&
           is_same_text(a->side->sql, b->side->sql) &&
           (a->side->sql == NULL ||
            is_same_text(a->side->dialect, b->side->dialect)) &&
           oj_words_are_equal(a->side->open_options, b->side->open_options) &&
           strcmp(a->name, b->name) == 0;
}

static int has_exclude_word(const struct oj_command *command, const char *what)
{
    return CSLFindString((CSLConstList)command->exclude, what) >= 0;
}

static oj_status
check_self_join(const struct oj_command *command, const struct oj_source *input,
                const struct oj_source *join, struct oj_sides *sides,
                struct oj_relation *relation, struct oj_error *err)
{
    int asked = has_exclude_word(command, "self");
    sides->is_self_join = command->n_windows == 0 && is_same_layer(input, join);
    relation->exclude_self = sides->is_self_join || asked;
    sides->needs_fids = relation->exclude_self;
    relation->exclude_same_geometry =
        has_exclude_word(command, "same_geometry");
    relation->unordered_pairs = command->unordered_pairs;
    if (command->unordered_pairs && !relation->exclude_self)
        return oj_fail(
            err, OJ_ERR_ARG,
            "-unordered_pairs needs two sides that are one layer; if both hold "
            "equal features (a SELECT, a copy), add -exclude self");
    if (sides->is_self_join && !asked)
        oj_notice("both sides are the layer '%s': no feature is joined with "
                  "itself",
                  input->name);
    return OJ_OK;
}

/* Fails if a row has no FID (-1): pairs of a feature with itself are excluded
 * by comparing FIDs.
 */
static oj_status check_rows_have_fids(const struct oj_sides *sides, int side,
                                      const struct oj_flat *flat,
                                      struct oj_error *err)
{
    if (!sides->needs_fids || flat->fid == NULL)
        return OJ_OK;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        if (flat->fid[i] == OGRNullFID)
            return oj_fail(
                err, OJ_ERR_DATA,
                sides->is_self_join
                    ? "%s layer '%s' has rows without a FID, so a feature "
                      "cannot be kept from matching itself: write the layer "
                      "to a file with FIDs first (ogr2ogr layer.gpkg ..)"
                    : "%s layer '%s' has rows without a FID, by which -exclude "
                      "self finds equal features: write -exclude "
                      "same_geometry in its place, which leaves out all pairs "
                      "with equal geometries",
                sides->reshape[side].role, sides->reshape[side].name);
    }
    return OJ_OK;
}

/* ---- the globe ----------------------------------------------------------- */

static const char points_of_sphere[] =
    "-metric sphere measures from points and multipoints of the input layer; "
    "-centroid_of input or -point_on_surface_of input makes points of others";
static const char points_of_ellipsoid[] =
    "-metric ellipsoid measures between points or multipoints and features of "
    "any type, so one of the layers must be of points; -centroid_of or "
    "-point_on_surface_of makes points of others";
static const char points_of_heading[] =
    "-heading is that of points and multipoints of the input layer; "
    "-centroid_of input or -point_on_surface_of input makes points of others";

static const char *const side_roles[] = {"input", "join"};

int oj_reshape_makes_points(const struct oj_reshape *reshape)
{
    return reshape->shape == OJ_SHAPE_CENTROID ||
           reshape->shape == OJ_SHAPE_POINT_ON_SURFACE;
}

static int can_side_hold_points(const struct oj_sides *sides,
                                struct oj_source *const source[2], int side)
{
    return oj_reshape_makes_points(&sides->reshape[side]) ||
           oj_source_can_hold_points(source[side]);
}

/* Returns 1 if all features of the side are points by the type of the layer, or
 * because they are replaced by points. */
static int holds_points_only(const struct oj_sides *sides,
                             struct oj_source *const source[2], int side)
{
    OGRwkbGeometryType type = OGR_GT_Flatten(source[side]->type);
    return oj_reshape_makes_points(&sides->reshape[side]) || type == wkbPoint ||
           type == wkbMultiPoint;
}

/* With -metric ellipsoid, sets which side must consist of points. If the type
 * of one side allows nothing but points, no side is set. If the types of both
 * sides allow points among others, the engine decides by the features.
 * Otherwise it is the side whose type allows points. */
static void set_point_side_on_ellipsoid(struct oj_sides *sides,
                                        struct oj_source *const source[2])
{
    int join_can = can_side_hold_points(sides, source, 1);
    sides->points_only = points_of_ellipsoid;
    if (holds_points_only(sides, source, 0) ||
        holds_points_only(sides, source, 1))
        return;
    sides->is_of_points[1] =
        join_can && !can_side_hold_points(sides, source, 0);
    sides->is_of_points[0] = !join_can;
}

static oj_status check_layers_hold_points(const struct oj_sides *sides,
                                          struct oj_source *const source[2],
                                          struct oj_error *err)
{
    for (int side = 0; side < 2; side++)
    {
        if (!sides->is_of_points[side] ||
            can_side_hold_points(sides, source, side))
            continue;
        return oj_fail(err, OJ_ERR_DATA, "%s layer '%s' holds %s features; %s",
                       side_roles[side], source[side]->name,
                       OGRGeometryTypeToName(source[side]->type),
                       sides->points_only);
    }
    return OJ_OK;
}

static oj_status check_rows_are_points(const struct oj_sides *sides, int side,
                                       const struct oj_flat *flat,
                                       struct oj_error *err)
{
    if (!sides->is_of_points[side] || oj_flat_is_points(flat) ||
        (flat->part_kinds & ~(unsigned)OJ_PART_POINT) == 0)
        return OJ_OK;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        if ((oj_flat_kinds(flat, i) & ~(unsigned)OJ_PART_POINT) != 0)
            return oj_fail(err, OJ_ERR_DATA,
                           "feature %lld of %s layer '%s' is not a point; %s",
                           (long long)(flat->fid != NULL ? flat->fid[i] : i),
                           side_roles[side], sides->reshape[side].name,
                           sides->points_only);
    }
    return OJ_OK;
}

/* Returns the number of features with a vertex beyond a pole. */
static int64_t count_beyond_poles(const struct oj_flat *flat)
{
    int64_t n = 0;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t v, end;
        oj_flat_vertex_range(flat, i, &v, &end);
        while (v < end && !(fabs(flat->y[v]) > 90.0))
            v++;
        n += v < end;
    }
    return n;
}

/* ---- conditions on fields: parsing --------------------------------------- */

/* Adds a field of this side to the fields that are read, and to the fields from
 * which the column with index `made` is computed. */
static oj_status add_compared_field(struct oj_source *const sources[2],
                                    int side, const char *name,
                                    const char *option, int made,
                                    struct oj_side_columns *columns,
                                    struct oj_error *err)
{
    struct oj_side_field field = {0};
    OGRFieldDefnH defn;
    OJ_TRY(oj_source_need_field(sources[side], name, option, &field.column,
                                &defn, err));
    field.type = OGR_Fld_GetType(defn);
    field.subtype = OGR_Fld_GetSubType(defn);
    return oj_side_columns_add(columns, made, side, &field, err);
}

static oj_status add_field_pairs(struct oj_source *const source[2],
                                 const char *list, const char *option, int made,
                                 struct oj_side_columns *columns,
                                 struct oj_error *err)
{
    struct oj_field_pairs pairs = {0};
    oj_status status = oj_field_pairs_parse("-", option, list, &pairs, err);
    for (int i = 0; i < 2 * pairs.n && status == OJ_OK; i++)
        status = add_compared_field(source, i % 2, pairs.fields[i % 2][i / 2],
                                    option, made, columns, err);
    oj_field_pairs_free(&pairs);
    return status;
}

static int has_field(const void *layer, const char *name)
{
    return OGR_FD_GetFieldIndex(OGR_L_GetLayerDefn((OGRLayerH)layer), name) >=
           0;
}

/* Adds a field of numbers, from which the column `made` is made. */
static oj_status add_number_field(struct oj_source *const source[2], int side,
                                  const char *option, const char *name,
                                  int made, struct oj_side_columns *columns,
                                  struct oj_error *err)
{
    OGRFieldType type;
    OJ_TRY(add_compared_field(source, side, name, option, made, columns, err));
    type = columns->fields[made][side].field->type;
    if (type != OFTInteger && type != OFTInteger64 && type != OFTReal &&
        type != OFTString)
        return oj_fail(
            err, OJ_ERR_ARG,
            "-%s: the field '%s' of the %s layer is not numeric; name a "
            "field of numbers",
            option, name, source[side]->role);
    return OJ_OK;
}

/* Adds the field of distances that an option names to the fields that are read,
 * and sets columns->distance_scale to the factor of its unit. word is the
 * argument of the option. If it is NULL, the option is not given, and nothing
 * is added. */
static oj_status resolve_distance_field(
    const struct oj_command *command, struct oj_source *const source[2],
    int side, const char *option, const char *word, const struct oj_crs *crs,
    struct oj_side_columns *columns, struct oj_error *err)
{
    char *name;
    enum oj_unit unit;
    oj_status status;
    if (word == NULL)
        return OJ_OK;
    OJ_NEW(name, (int64_t)strlen(word) + 1, err);
    status = oj_distance_field_parse("-", option, word, has_field,
                                     source[side]->layer, name, &unit, err);
    if (status == OJ_OK)
        status = add_number_field(source, side, option, name,
                                  OJ_MADE_MAX_DISTANCE, columns, err);
    if (status == OJ_OK)
        status = oj_crs_scale(command, crs, option, word, unit,
                              &columns->distance_scale, err);
    oj_free(name);
    return status;
}

static oj_status parse_exclude_fields(const struct oj_command *command,
                                      struct oj_source *const source[2],
                                      struct oj_side_columns *columns,
                                      struct oj_error *err)
{
    static const char prefix[] = "field=";
    for (const char **word = command->exclude; word != NULL && *word != NULL;
         word++)
    {
        if (strncasecmp(*word, prefix, sizeof prefix - 1) != 0)
            continue;
        if (columns->fields[OJ_MADE_EXCLUDE_CLASS][0].n > 0)
            return oj_fail(err, OJ_ERR_ARG,
                           "-exclude field=F can be given once; several "
                           "fields in one, as field=A,B, leave out pairs that "
                           "are equal in all of them");
        OJ_TRY(add_field_pairs(source, *word + sizeof prefix - 1,
                               "exclude field=", OJ_MADE_EXCLUDE_CLASS, columns,
                               err));
    }
    return OJ_OK;
}

static oj_status add_similar_fields(const struct oj_command *command,
                                    struct oj_source *const source[2],
                                    struct oj_side_columns *columns,
                                    struct oj_error *err)
{
    columns->n_texts = command->relation.n_similar;
    for (int i = 0; i < 2 * columns->n_texts; i++)
    {
        char **name = command->similar_fields[i / 2].fields[i % 2];
        for (; *name != NULL; name++)
            OJ_TRY(add_compared_field(source, i % 2, *name, "similar",
                                      OJ_MADE_TEXT + i / 2, columns, err));
    }
    return OJ_OK;
}

static oj_status add_span_fields(const struct oj_command *command,
                                 struct oj_source *const source[2],
                                 struct oj_side_columns *columns,
                                 struct oj_error *err)
{
    columns->n_spans = command->relation.n_spans;
    for (int i = 0; i < columns->n_spans; i++)
    {
        const struct oj_span_words *words = &command->span_words[i];
        enum oj_span_field kind[2][2];
        for (int f = 0; f < 4; f++)
        {
            const int side = f / 2, end = f % 2;
            const struct oj_side_field *field;
            OJ_TRY(add_compared_field(source, side, words->fields[side][end],
                                      words->option, OJ_MADE_SPAN + i, columns,
                                      err));
            field = &columns->fields[OJ_MADE_SPAN + i][side].field[end];
            kind[side][end] = oj_field_kind_span(
                oj_layer_field_kind_of(field->type, field->subtype));
        }
        OJ_TRY(oj_span_reading_plan(words, kind, &columns->span[i], err));
    }
    return OJ_OK;
}

/* Refuses a field of -vector unless it holds numbers, texts (which may be
 * numbers), or lists; a list must be the only field. is_single 1: the field is
 * the only one. */
static oj_status check_vector_field(const struct oj_source *source,
                                    const char *name, int is_single,
                                    OGRFieldType type, struct oj_error *err)
{
    int is_list = type == OFTRealList || type == OFTIntegerList ||
                  type == OFTInteger64List;
    if (is_list && !is_single)
        return oj_fail(err, OJ_ERR_ARG,
                       "-vector: the field '%s' of the %s layer holds lists, "
                       "each of which is a whole vector: name this field alone",
                       name, source->role);
    if (!is_list && type != OFTInteger && type != OFTInteger64 &&
        type != OFTReal && type != OFTString)
        return oj_fail(err, OJ_ERR_ARG,
                       "-vector: the field '%s' of the %s layer holds neither "
                       "numbers nor lists; name a field that does",
                       name, source->role);
    return OJ_OK;
}

static oj_status parse_vector_fields(const struct oj_command *command,
                                     struct oj_source *const source[2],
                                     struct oj_side_columns *columns,
                                     struct oj_error *err)
{
    const struct oj_vector_words *words = &command->vector_fields;
    for (int i = 0; i < 2 * words->n; i++)
    {
        int side = i / words->n, place = i % words->n;
        const char *name = words->fields[side][place];
        OJ_TRY(add_compared_field(source, side, name, "vector", OJ_MADE_VECTOR,
                                  columns, err));
        OJ_TRY(check_vector_field(
            source[side], name, words->n == 1,
            columns->fields[OJ_MADE_VECTOR][side].field[place].type, err));
    }
    columns->weight = words->weight;
    columns->norm = command->relation.vector.norm;
    return OJ_OK;
}

static oj_status open_compared_columns(const struct oj_command *command,
                                       struct oj_source *const source[2],
                                       const struct oj_crs *crs,
                                       struct oj_side_columns *columns,
                                       struct oj_error *err)
{
    columns->rules.fold = command->fold;
    columns->rules.tokens = command->tokens;
    columns->cancel = oj_cancel_flag();
    OJ_TRY(oj_side_columns_open(columns, command->word_map, err));
    if (command->on != NULL)
        OJ_TRY(add_field_pairs(source, command->on, "on", OJ_MADE_ON_CLASS,
                               columns, err));
    OJ_TRY(parse_exclude_fields(command, source, columns, err));
    OJ_TRY(add_similar_fields(command, source, columns, err));
    OJ_TRY(parse_vector_fields(command, source, columns, err));
    OJ_TRY(add_span_fields(command, source, columns, err));
    if (command->heading_field != NULL)
        OJ_TRY(add_number_field(source, 0, "heading", command->heading_field,
                                OJ_MADE_HEADING, columns, err));
    OJ_TRY(resolve_distance_field(command, source, 0, "max_distance_field",
                                  command->max_distance_field, crs, columns,
                                  err));
    return resolve_distance_field(command, source, 1, "join_max_distance_field",
                                  command->join_max_distance_field, crs,
                                  columns, err);
}

/* ---- reshaping of features ----------------------------------------------- */

/* Returns the reshaping that the command requests for a side. side is 0 for the
 * input, 1 for the join layer. */
static struct oj_reshape reshaping_of_side(const struct oj_command *command,
                                           int side, const char *name)
{
    struct oj_reshape reshape = {0};
    reshape.role = side == 0 ? "input" : "join";
    reshape.name = name;
    reshape.invalid = (enum oj_invalid_mode)command->invalid;
    if (side == 1 && command->is_window)
    {
        reshape.invalid = OJ_INVALID_USE;
        if (command->n_windows == 0)
            reshape.shape = OJ_SHAPE_ENVELOPE;
    }
    if (oj_command_option_is_of_side(command, "centroid_of", side))
        reshape.shape = OJ_SHAPE_CENTROID;
    if (oj_command_option_is_of_side(command, "point_on_surface_of", side))
        reshape.shape = OJ_SHAPE_POINT_ON_SURFACE;
    return reshape;
}

/* ---- validity ------------------------------------------------------------ */

static int is_ogr_geometry_valid(OGRGeometryH geometry, char *reason,
                                 size_t size)
{
    int valid;
    CPLErrorReset();
    valid = OGR_G_IsValid(geometry);
    snprintf(reason, size, "%s", CPLGetLastErrorMsg());
    return valid;
}

static oj_status fail_invalid(const struct oj_reshape *r,
                              const struct oj_flat *from, int64_t feature,
                              const char *reason, struct oj_error *err)
{
    long long fid = (long long)feature;
    if (from->fid != NULL)
        fid = (long long)from->fid[feature];
    return oj_fail(
        err, OJ_ERR_DATA,
        "%s layer '%s': feature %lld is not valid (%s), and -invalid "
        "fail stops there; -invalid fix would mend it for the join",
        r->role, r->name, fid, reason);
}

/* If *geometry is not valid, -invalid fix replaces it by a valid geometry, skip
 * by NULL, and fail returns an error. */
static oj_status apply_invalid_mode(struct oj_reshape *r,
                                    const struct oj_flat *from, int64_t feature,
                                    OGRGeometryH *geometry,
                                    struct oj_error *err)
{
    OGRGeometryH fixed = NULL;
    char reason[160];
    if (r->invalid == OJ_INVALID_USE ||
        (oj_flat_kinds(from, feature) & OJ_PART_POLYGON) == 0)
        return OJ_OK;
    r->found.n_tested++;
    if (is_ogr_geometry_valid(*geometry, reason, sizeof reason))
        return OJ_OK;
    if (r->invalid == OJ_INVALID_FAIL)
        return fail_invalid(r, from, feature, reason, err);
    if (r->found.n_invalid++ == 0)
    {
        memcpy(r->found.reason, reason, sizeof reason);
        r->found.first_invalid =
            from->fid != NULL ? from->fid[feature] : feature;
    }
    if (r->invalid == OJ_INVALID_FIX)
    {
        fixed = OGR_G_MakeValid(*geometry);
        r->found.n_not_fixed += fixed == NULL;
    }
    OGR_G_DestroyGeometry(*geometry);
    *geometry = fixed;
    return OJ_OK;
}

/* ---- points -------------------------------------------------------------- */

static OGRGeometryH centroid_of(OGRGeometryH geometry)
{
    OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
    if (point != NULL && OGR_G_Centroid(geometry, point) != OGRERR_NONE)
    {
        OGR_G_DestroyGeometry(point);
        point = NULL;
    }
    return point;
}

static oj_status add_representative_point(struct oj_reshape *r, int64_t fid,
                                          OGRGeometryH geometry,
                                          struct oj_flat_buf *to,
                                          struct oj_error *err)
{
    OGRGeometryH point;
    oj_status status;
    point = r->shape == OJ_SHAPE_CENTROID ? centroid_of(geometry)
                                          : OGR_G_PointOnSurface(geometry);
    r->found.n_no_point += point == NULL || OGR_G_IsEmpty(point);
    status = oj_layer_geometry_add(&r->work, to, fid, point, err);
    OGR_G_DestroyGeometry(point);
    return status;
}

/* ---- features ------------------------------------------------------------ */

static oj_status add_reshaped_feature(struct oj_reshape *r,
                                      const struct oj_flat *from,
                                      int64_t feature, int64_t fid,
                                      struct oj_flat_buf *to,
                                      struct oj_error *err)
{
    OGRGeometryH geometry = NULL, made;
    oj_status status;
    int64_t v, end;
    oj_flat_vertex_range(from, feature, &v, &end);
    if (v == end)
        return oj_flat_buf_add_null(to, fid, err);
    if (oj_flat_is_one_point(from, feature)) /* the feature is valid and equal
                                                to its centroid */
        return oj_flat_buf_add_point(to, fid, from->x[v], from->y[v], err);
    if (r->shape == OJ_SHAPE_ENVELOPE && r->invalid == OJ_INVALID_USE)
    {
        const struct oj_box box = oj_box_of_feature(from, feature);
        return oj_flat_buf_add_box(to, fid, box.x0, box.y0, box.x1, box.y1,
                                   err);
    }
    OJ_TRY(oj_flat_to_ogr_shape(from, feature, 0, &geometry, err));
    made = geometry;
    status = apply_invalid_mode(r, from, feature, &geometry, err);
    if (status == OJ_OK && geometry != NULL && r->shape != OJ_SHAPE_AS_READ)
        status = add_representative_point(r, fid, geometry, to, err);
    else if (status == OJ_OK && geometry == made)
        status = oj_flat_buf_copy(to, from, feature, fid, err); /* with M */
    else if (status == OJ_OK)
        status = oj_layer_geometry_add(&r->work, to, fid, geometry, err);
    OGR_G_DestroyGeometry(geometry);
    return status;
}

/* Appends the reshaped features of `from` to *to; FIDs and order stay. GEOS's
 * warnings about invalid geometries are suppressed here. */
static oj_status reshape_features(struct oj_reshape *reshape,
                                  const struct oj_flat *from,
                                  struct oj_flat_buf *to, struct oj_error *err)
{
    oj_status status = OJ_OK;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (int64_t i = 0; i < from->n_features && status == OJ_OK; i++)
    {
        if (i % 256 == 0)
            status = oj_cancel_check(err);
        if (status == OJ_OK)
            status = add_reshaped_feature(reshape, from, i,
                                          from->fid != NULL ? from->fid[i] : i,
                                          to, err);
    }
    CPLErrorReset();
    CPLPopErrorHandler();
    return status;
}

/* ---- both sides ---------------------------------------------------------- */

/* Sets which sides must consist of points. */
static void set_point_sides(const struct oj_command *command,
                            struct oj_source *const source[2],
                            struct oj_sides *sides)
{
    const struct oj_relation *relation = &command->relation;
    int is_least = !oj_relation_compares_shapes(relation);
    sides->is_on_globe = is_least && oj_relation_is_on_globe(relation);
    if (is_least && relation->metric == OJ_METRIC_ELLIPSOID)
        set_point_side_on_ellipsoid(sides, source);
    else if (sides->is_on_globe)
    {
        sides->is_of_points[0] = 1;
        sides->points_only = points_of_sphere;
    }
    else if (command->heading != NULL)
    {
        sides->is_of_points[0] = 1;
        sides->points_only = points_of_heading;
    }
}

oj_status oj_sides_open(const struct oj_command *command,
                        struct oj_source *input, struct oj_source *join,
                        const struct oj_crs *crs, struct oj_sides *sides,
                        struct oj_relation *relation, struct oj_error *err)
{
    struct oj_source *const source[2] = {input, join};
    sides->reshape[0] = reshaping_of_side(command, 0, input->name);
    sides->reshape[1] = reshaping_of_side(command, 1, join->name);
    set_point_sides(command, source, sides);
    OJ_TRY(check_layers_hold_points(sides, source, err));
    OJ_TRY(check_self_join(command, input, join, sides, relation, err));
    return open_compared_columns(command, source, crs, &sides->columns, err);
}

oj_status oj_sides_preprocess_rows(struct oj_sides *sides, int side, int insert,
                                   const struct oj_attributes *values,
                                   struct oj_side_work *work,
                                   struct oj_flat *flat, struct oj_error *err)
{
    struct oj_side_findings *found = &sides->reshape[side].found;
    if (sides->reshape[side].shape != OJ_SHAPE_AS_READ ||
        sides->reshape[side].invalid != OJ_INVALID_USE)
    {
        oj_flat_buf_clear(&work->shapes);
        work->shapes.keeps_m = flat->m != NULL;
        OJ_TRY(
            reshape_features(&sides->reshape[side], flat, &work->shapes, err));
        *flat = oj_flat_buf_view(&work->shapes);
    }
    OJ_TRY(check_rows_have_fids(sides, side, flat, err));
    OJ_TRY(check_rows_are_points(sides, side, flat, err));
    if (sides->is_on_globe)
        found->n_beyond_poles += count_beyond_poles(flat);
    return oj_side_columns_make(&sides->columns, side, insert, values,
                                &work->columns, flat, &found->missing, err);
}

void oj_side_work_free(struct oj_side_work *work)
{
    oj_flat_buf_free(&work->shapes);
    oj_compared_columns_free(&work->columns);
    memset(work, 0, sizeof *work);
}

void oj_sides_close(struct oj_sides *sides)
{
    oj_layer_geometry_free(&sides->reshape[0].work);
    oj_layer_geometry_free(&sides->reshape[1].work);
    oj_side_columns_close(&sides->columns);
}
