#include "oj_row_plan.h"

#include "../../algs/pair_values/oj_pick.h"
#include "../../algs/rows/oj_rows_per_input.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../base/oj_cancel.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../base/oj_shell_words.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- what is asked for -------------------------------------------------- */

/* word: the name of a field, maybe in double quotes. */
static oj_status need_pick_field(struct oj_rows *rows, const char *word,
                                 OGRFieldDefnH *field, struct oj_error *err)
{
    char *name = CPLStrdup(word);
    oj_status status = oj_field_name_parse("pick", name, err);
    if (status == OJ_OK)
        status = oj_source_need_field(&rows->job->join, name, "pick",
                                      &rows->score_column, field, err);
    CPLFree(name);
    return status;
}

static oj_status plan_pick_field(struct oj_rows *rows, const char *word,
                                 struct oj_error *err)
{
    OGRFieldDefnH field;
    OGRFieldType type;
    OJ_TRY(need_pick_field(rows, word, &field, err));
    type = OGR_Fld_GetType(field);
    if (!oj_type_is_number(type) && !oj_type_is_time(type))
        return oj_fail(err, OJ_ERR_ARG,
                       "-pick: the field '%s' of the join layer is of type %s; "
                       "max and min take numbers, dates and times",
                       OGR_Fld_GetNameRef(field), OGR_GetFieldTypeName(type));
    rows->request.pick = OJ_PICK_SCORE;
    return OJ_OK;
}

static oj_status plan_pick(struct oj_rows *rows, const char *rule,
                           struct oj_error *err)
{
    static const char rules[] = "all|first|nearest|largest_overlap|"
                                "smallest_area|largest_area|most_similar";
    int place = oj_words_find(rules, rule); /* enum oj_pick_rule */
    if (strncasecmp(rule, "max:", 4) == 0 || strncasecmp(rule, "min:", 4) == 0)
    {
        rows->score_is_least = rule[1] == 'i' || rule[1] == 'I';
        return plan_pick_field(rows, rule + 4, err);
    }
    rows->request.pick = (enum oj_pick_rule)place;
    if (place > OJ_PICK_ALL)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_ARG,
                   "-pick %s: the rules are first, nearest, largest_overlap, "
                   "smallest_area, largest_area, most_similar, max:FIELD and "
                   "min:FIELD",
                   rule);
}

static void add_computed_column(struct oj_rows *rows,
                                enum oj_column_origin origin, int source,
                                OGRFieldType type, const char *usual,
                                const char *given, const char *option)
{
    const struct oj_own_column own = {origin,
                                      source,
                                      type,
                                      OFSTNone,
                                      given != NULL ? given : usual,
                                      given != NULL ? option : NULL};
    if (given == NULL || given[0] != '\0') /* "": wanted without it */
        rows->own[rows->fields.n_own++] = own;
}

/* A column with a value of the pairs. */
static void add_pair_value_column(struct oj_rows *rows,
                                  enum oj_pair_value which, const char *name)
{
    rows->request.want[which] = 1;
    add_computed_column(rows, OJ_COLUMN_PAIR_VALUE, (int)which, OFTReal, name,
                        NULL, NULL);
}

/* Of further conditions the name ends in their number. */
static void add_similarity_columns(struct oj_rows *rows, const char *given)
{
    const char *first = given != NULL ? given : "join_similarity";
    for (int i = 0; first[0] != '\0' && i < rows->job->relation.n_similar; i++)
    {
        const char *name = rows->similarity_name[i] =
            CPLStrdup(i == 0 ? first : CPLSPrintf("%s_%d", first, i + 1));
        rows->request.want[OJ_PAIR_SIMILARITY + i] = 1;
        add_computed_column(rows, OJ_COLUMN_PAIR_VALUE, OJ_PAIR_SIMILARITY + i,
                            OFTReal, name, given != NULL ? name : NULL,
                            "name_similarity");
    }
}

static oj_status plan_overlap(struct oj_rows *rows, const char *list,
                              struct oj_error *err)
{
    static const char *const names[] = {"overlap_area", "overlap_length",
                                        "overlap_percent"};
    char **words = CSLTokenizeString2(
        list, ",", CSLT_STRIPLEADSPACES | CSLT_STRIPENDSPACES);
    oj_status status = OJ_OK;
    for (int i = 0; words != NULL && words[i] != NULL; i++)
    {
        int place = oj_words_find("area|length|percent", words[i]);
        if (place < 0)
            status = oj_fail(err, OJ_ERR_ARG,
                             "-overlap takes area, length and percent, with "
                             "commas between them, not '%s'",
                             words[i]);
    }
    if (status == OJ_OK && CSLCount(words) == 0)
        status =
            oj_fail(err, OJ_ERR_ARG, "-overlap needs area, length or percent");
    for (int j = 0; j < 3; j++)
    {
        if (CSLFindString(words, strchr(names[j], '_') + 1) >= 0)
            add_pair_value_column(
                rows, (enum oj_pair_value)(OJ_PAIR_OVERLAP_AREA + j), names[j]);
    }
    CSLDestroy(words);
    return status;
}

static void plan_geometry(struct oj_rows *rows, enum oj_write_geometry geometry)
{
    unsigned char *want = rows->request.want;
    rows->geometry = geometry;
    if (geometry == OJ_WRITE_NEAREST_POINT || geometry == OJ_WRITE_CONNECTION)
        want[OJ_PAIR_NEAREST_X] = want[OJ_PAIR_NEAREST_Y] = 1;
    if (geometry == OJ_WRITE_CONNECTION)
        want[OJ_PAIR_FROM_X] = want[OJ_PAIR_FROM_Y] = 1;
    if (geometry == OJ_WRITE_SHAPE)
        rows->request.want_shapes = 1;
}

static struct oj_row_choice row_choice_of(const struct oj_rows *rows)
{
    const struct oj_command *command = rows->job->command;
    return (struct oj_row_choice){.how = (enum oj_how)command->how,
                                  .picks = rows->request.pick != OJ_PICK_ALL,
                                  .one_to_one = command->one_to_one,
                                  .aggregates = command->aggregates != NULL};
}

/* The columns of pairs, in their order in the output. */
static oj_status plan_columns(struct oj_rows *rows, struct oj_error *err)
{
    const struct oj_command *c = rows->job->command;
    const struct oj_relation *relation = &rows->job->relation;
    const struct oj_op_info *op = oj_op_get(relation->op);
    const struct oj_row_choice choice = row_choice_of(rows);
    add_computed_column(rows, OJ_COLUMN_JOIN_FID, 0, OFTInteger64, "join_fid",
                        c->name_fid, "name_fid");
    if (op->measure != NULL && (op->takes & OJ_TAKES_ATTRIBUTES) == 0)
        add_computed_column(rows, OJ_COLUMN_MEASURE, 0, OFTReal, op->measure,
                            c->name_distance, "name_distance");
    add_similarity_columns(rows, c->name_similarity);
    if (relation->vector.is_asked)
    {
        rows->request.want[OJ_PAIR_DIFFERENCE] =
            c->name_difference == NULL || c->name_difference[0] != '\0';
        add_computed_column(rows, OJ_COLUMN_PAIR_VALUE, OJ_PAIR_DIFFERENCE,
                            OFTReal, "join_difference", c->name_difference,
                            "name_difference");
    }
    if (oj_rows_per_input_have_rank(relation, &choice))
        add_computed_column(rows, OJ_COLUMN_RANK, 0, OFTInteger, "join_rank",
                            c->name_rank, "name_rank");
    if (c->name_count != NULL)
        add_computed_column(rows, OJ_COLUMN_COUNT, 0, OFTInteger64, "",
                            c->name_count, "name_count");
    if (c->overlap != NULL)
        OJ_TRY(plan_overlap(rows, c->overlap, err));
    if (c->nearest_point_fields)
    {
        add_pair_value_column(rows, OJ_PAIR_NEAREST_X, "nearest_x");
        add_pair_value_column(rows, OJ_PAIR_NEAREST_Y, "nearest_y");
    }
    if (c->bearing_field)
        add_pair_value_column(rows, OJ_PAIR_BEARING, "join_bearing");
    return OJ_OK;
}

oj_status oj_rows_plan(struct oj_job *job, struct oj_rows *rows,
                       struct oj_error *err)
{
    const struct oj_command *command = job->command;
    const struct oj_options options = oj_job_options(command);
    struct oj_schema_request *fields = &rows->fields;
    enum oj_how how = (enum oj_how)command->how;
    int is_choice = how == OJ_HOW_SEMI || how == OJ_HOW_ANTI;
    int is_one = is_choice || command->aggregates != NULL;
    struct oj_row_choice choice;
    if (command->one_to_one && oj_source_reads_once(&job->input))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-one_to_one reads the input twice, and %s can be read "
                       "only once: write it to a file first",
                       job->input.side->dataset);
    rows->job = job;
    rows->how = how == OJ_HOW_RIGHT  ? OJ_HOW_INNER
                : how == OJ_HOW_FULL ? OJ_HOW_LEFT
                                     : how;
    rows->score_column = -1;
    rows->request.relation = job->relation;
    rows->request.n_threads = options.n_threads;
    rows->request.cancel = options.cancel;
    fields->input = &job->input;
    fields->join = &job->join;
    fields->with_input = 1;
    fields->with_join = !is_one;
    fields->has_other_rows = how == OJ_HOW_RIGHT || how == OJ_HOW_FULL;
    fields->own = rows->own;
    fields->prefix = command->prefix;
    if (!is_choice && command->pick != NULL)
        OJ_TRY(plan_pick(rows, command->pick, err));
    if (!is_choice)
        plan_geometry(rows, (enum oj_write_geometry)command->geometry);
    if (!is_one)
        OJ_TRY(plan_columns(rows, err));
    choice = row_choice_of(rows);
    fields->one_row_per_input =
        oj_rows_per_input_find(&job->relation, &choice) == OJ_ROWS_ONE;
    if (command->aggregates == NULL)
        return OJ_OK;
    OJ_TRY(oj_aggregation_open(job, fields, rows->request.want,
                               &rows->aggregation, err));
    rows->streams_join = oj_aggregation_streams_join(rows->aggregation);
    return OJ_OK;
}

/* ---- scores ------------------------------------------------------------- */

static double utc_seconds(const OGRField *raw)
{
    double zone =
        raw->Date.TZFlag > 1 ? ((double)raw->Date.TZFlag - 100) * 900 : 0.0;
    return (double)oj_value_days(raw) * 86400 + (double)raw->Date.Hour * 3600 +
           (double)raw->Date.Minute * 60 + (double)raw->Date.Second - zone;
}

static int64_t pick_score(const struct oj_table *table, int64_t row, int column)
{
    struct oj_value value;
    oj_table_value(table, row, column, &value);
    if (OGR_RawField_IsNull(&value.raw))
        return OJ_NO_SCORE;
    switch (oj_table_type(table, column, NULL))
    {
        case OFTInteger:
            return value.raw.Integer;
        case OFTInteger64:
            return oj_score_of_integer(value.raw.Integer64);
        case OFTReal:
            return oj_score_of_double(value.raw.Real);
        default:
            return oj_score_of_double(utc_seconds(&value.raw));
    }
}

static oj_status fill_scores(struct oj_rows *rows, const struct oj_table *table,
                             int64_t n, struct oj_error *err)
{
    if (rows->score_column < 0)
        return OJ_OK;
    OJ_TRY(oj_reserve(&rows->score, 0, n + 1, &rows->cap_score,
                      sizeof *rows->score, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t score = pick_score(table, i, rows->score_column);
        rows->score[i] =
            rows->score_is_least ? oj_score_reversed(score) : score;
    }
    return OJ_OK;
}

/* ---- the stage ---------------------------------------------------------- */

/* The join side of an answer: all of it, or what lies beside the answer. */
static oj_status set_join_side(struct oj_rows *rows, int answer,
                               struct oj_error *err)
{
    const struct oj_job *job = rows->job;
    const struct oj_answer_side from = oj_job_answer_side(job, answer);
    struct oj_pair_side side = {0};
    rows->join_joined = from.flat;
    side.joined = side.whole = &rows->join_joined;
    if (oj_reshape_makes_points(&job->sides.reshape[1]) && from.ordinal == NULL)
        side.whole = &rows->join_as_read;
    OJ_TRY(fill_scores(rows, from.table, from.flat.n_features, err));
    side.score = rows->score;
    if (job->join_side->engine != NULL)
        side.tie_rank = oj_join_tie_rank(job->join_side->engine);
    else if (rows->request.pick != OJ_PICK_ALL &&
             oj_relation_sorts_by_measure(&job->relation))
        OJ_TRY(oj_tiled_join_rank_ties(job->tiled, &side.tie_rank, err));
    return oj_pair_stage_set_join_side(rows->stage, &side, err);
}

oj_status oj_rows_after_join(struct oj_rows *rows,
                             const struct oj_pipeline_part *part,
                             const struct oj_flat_buf *batch,
                             const struct oj_matches *matches,
                             struct oj_error *err)
{
    const struct oj_job *job = rows->job;
    const struct oj_flat as_read = oj_flat_buf_view(batch);
    struct oj_pair_side input = {0};
    if (rows->stage == NULL)
        return OJ_OK;
    input.joined = input.whole = part->flat;
    if (oj_reshape_makes_points(&job->sides.reshape[0]))
    {
        OJ_TRY(oj_flat_slice_make(&as_read, part->first_row,
                                  part->flat->n_features, &rows->slice, err));
        input.whole = &rows->slice.flat;
    }
    if (job->tiled != NULL)
        OJ_TRY(set_join_side(rows, part->answer, err));
    return oj_pair_stage_run(rows->stage, &input, matches,
                             &rows->values[part->answer], err);
}

oj_status oj_rows_open(struct oj_rows *rows, struct oj_error *err)
{
    struct oj_job *job = rows->job;
    rows->join_as_read = oj_flat_buf_view(&job->join_side->buf);
    if (!oj_pair_request_is_needed(&rows->request))
        return OJ_OK;
    if (job->tiled != NULL && oj_reshape_makes_points(&job->sides.reshape[1]))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "under -memory only the points that -centroid_of and "
                       "-point_on_surface_of make of the join side are kept: "
                       "-pick, -overlap and -geometry need more memory");
    OJ_TRY(oj_pair_stage_open(&rows->request, &rows->stage, err));
    return job->tiled == NULL ? set_join_side(rows, 0, err) : OJ_OK;
}

/* Also of those that become multi-geometries. */
static int is_multi(OGRwkbGeometryType of)
{
    OGRwkbGeometryType type = OGR_GT_Flatten(of);
    return OGR_GT_IsSubClassOf(type, wkbPolyhedralSurface) ||
           (OGR_GT_IsSubClassOf(type, wkbGeometryCollection) &&
            type != wkbGeometryCollection);
}

void oj_rows_fill_write_options(const struct oj_rows *rows,
                                const struct oj_schema *schema,
                                struct oj_write_options *options)
{
    const struct oj_job *job = rows->job;
    options->columns = schema->columns;
    options->n_columns = (int)schema->n_fields;
    options->keep_fids = schema->keep_fids;
    options->how = rows->how;
    options->join_side = &job->join_side->flat;
    options->join_table = job->join_side->table;
    options->cancel = oj_cancel_flag();
    options->aggregate = oj_aggregation_value;
    options->aggregate_user = rows->aggregation;
    options->geometry = rows->geometry;
    options->promote_to_multi =
        job->command->output.layer_type == OJ_LAYER_MULTI;
    options->multi_shapes =
        rows->geometry == OJ_WRITE_JOIN && is_multi(job->join.type);
}

void oj_rows_warn(const struct oj_rows *rows)
{
    const char *first = "";
    int64_t n =
        rows->stage != NULL ? oj_pair_stage_undecided(rows->stage, &first) : 0;
    if (n > 0)
        oj_warn("the overlap of %s is not known, because GEOS cannot make the "
                "intersection (%s); -invalid fix may help",
                oj_counted(n, "pair", "pairs"), first);
}

/* ---- the geometry type of the output ------------------------------------- */

/* The dimension that the declared type tells, as the kind of its parts; 0:
 * anything. */
static unsigned part_kind_of_type(OGRwkbGeometryType type)
{
    OGRwkbGeometryType flat = OGR_GT_Flatten(type);
    if (flat == wkbUnknown || flat == wkbNone || flat == wkbGeometryCollection)
        return 0;
    if (flat == wkbPoint || flat == wkbMultiPoint)
        return OJ_PART_POINT;
    return OGR_GT_IsSubClassOf(flat, wkbCurve) ||
                   OGR_GT_IsSubClassOf(flat, wkbMultiCurve)
               ? OJ_PART_LINE
               : OJ_PART_POLYGON;
}

/* Shapes from arrays: two-dimensional, without curves. */
static OGRwkbGeometryType linear_2d_type(OGRwkbGeometryType type)
{
    OGRwkbGeometryType flat = OGR_GT_Flatten(type);
    return flat == wkbTIN || flat == wkbPolyhedralSurface ? wkbMultiPolygon
           : flat == wkbTriangle                          ? wkbPolygon
                                 : OGR_GT_GetLinear(flat);
}

/* Z and M of either stay. */
static OGRwkbGeometryType keep_zm_of_either(OGRwkbGeometryType flat,
                                            OGRwkbGeometryType a,
                                            OGRwkbGeometryType b)
{
    return OGR_GT_SetModifier(flat, OGR_GT_HasZ(a) || OGR_GT_HasZ(b),
                              OGR_GT_HasM(a) || OGR_GT_HasM(b));
}

/* Of a Shapefile, for shapes of this kind. */
static OGRwkbGeometryType shapefile_type_of_kind(unsigned kind,
                                                 OGRwkbGeometryType points)
{
    return kind == OJ_PART_POLYGON ? wkbPolygon
           : kind == OJ_PART_LINE  ? wkbLineString
                                   : points;
}

/* Shapefile tells neither single from multi nor one type from another later:
 * rows of one kind are all it takes. */
static oj_status set_shapefile_outer_type(struct oj_rows *rows, unsigned a,
                                          unsigned b, struct oj_error *err)
{
    OGRwkbGeometryType of_a = rows->job->input.type;
    OGRwkbGeometryType of_b = rows->job->join.type;
    if (a != b || a == 0 ||
        (a == OJ_PART_POINT && OGR_GT_Flatten(of_a) != OGR_GT_Flatten(of_b)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "a Shapefile has one geometry type, and join rows that "
                       "match nothing bring another one; write GPKG, or leave "
                       "out -how right or full");
    rows->fields.type = keep_zm_of_either(
        shapefile_type_of_kind(a, OGR_GT_Flatten(of_a)), of_a, of_b);
    return OJ_OK;
}

/* In a Shapefile: what two features of these kinds can have in common at most,
 * and nothing of lower dimension. */
static oj_status set_shapefile_overlap_type(struct oj_rows *rows, unsigned a,
                                            unsigned b, struct oj_error *err)
{
    unsigned least = a < b ? a : b;
    if (a == 0 || b == 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "a Shapefile has one geometry type, and the layers do "
                       "not say theirs: write the intersections as GPKG");
    rows->request.shape_kinds = least;
    rows->fields.type = shapefile_type_of_kind(least, wkbMultiPoint);
    oj_notice("a Shapefile has one geometry type: parts of intersections that "
              "are no %s are left out",
              least == OJ_PART_POLYGON ? "polygons"
              : least == OJ_PART_LINE  ? "lines"
                                       : "points");
    return OJ_OK;
}

oj_status oj_rows_type(struct oj_rows *rows, GDALDriverH driver,
                       struct oj_error *err)
{
    OGRwkbGeometryType a = rows->job->input.type, b = rows->job->join.type;
    OGRwkbGeometryType *type = &rows->fields.type;
    int holds_one_type = oj_driver_is(driver, "ESRI Shapefile");
    switch (rows->geometry)
    {
        case OJ_WRITE_JOIN:
            *type = linear_2d_type(b);
            break;
        case OJ_WRITE_NEAREST_POINT:
            *type = wkbPoint;
            break;
        case OJ_WRITE_CONNECTION:
            *type = wkbLineString;
            break;
        case OJ_WRITE_SHAPE:
            /* A point has a point in common with anything; else it is open. */
            *type =
                OGR_GT_Flatten(a) == wkbPoint || OGR_GT_Flatten(b) == wkbPoint
                    ? wkbPoint
                    : wkbUnknown;
            if (holds_one_type && *type == wkbUnknown)
                return set_shapefile_overlap_type(rows, part_kind_of_type(a),
                                                  part_kind_of_type(b), err);
            break;
        case OJ_WRITE_INPUT:
            *type = a;
            if (!rows->fields.has_other_rows)
                break;
            if (holds_one_type)
                return set_shapefile_outer_type(rows, part_kind_of_type(a),
                                                part_kind_of_type(b), err);
            if (a == wkbNone || b == wkbNone)
                *type = a == wkbNone ? b : a;
            else
                *type = keep_zm_of_either(OGR_GT_Flatten(a) == OGR_GT_Flatten(b)
                                              ? OGR_GT_Flatten(a)
                                              : wkbUnknown,
                                          a, b);
            break;
    }
    return OJ_OK;
}

void oj_rows_close(struct oj_rows *rows)
{
    const struct oj_rows closed = {0};
    oj_pair_stage_close(rows->stage);
    oj_aggregation_close(rows->aggregation);
    for (int i = 0; i < OJ_PIPELINE_SLOTS; i++)
        oj_pair_values_free(&rows->values[i]);
    oj_flat_slice_free(&rows->slice);
    for (int i = 0; i < OJ_MOST_TEXTS; i++)
        CPLFree(rows->similarity_name[i]);
    oj_free(rows->score);
    *rows = closed;
}
