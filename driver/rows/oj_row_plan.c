#include "oj_row_plan.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "../base/oj_cancel.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../source/oj_layer_field_kind.h"

/* ---- planning ------------------------------------------------------------ */

static oj_status plan_pick_rule(struct oj_rows *rows, const char *rule,
                                struct oj_error *err)
{
    struct oj_field_description description;
    OGRFieldDefnH field;
    OJ_TRY(oj_row_pick_read("-", rule, &rows->pick, err));
    rows->request.pick = rows->pick.rule;
    if (rows->pick.field == NULL)
        return OJ_OK;
    OJ_TRY(oj_source_need_field(&rows->job->join, rows->pick.field, "pick",
                                &rows->score_column, &field, err));
    description = oj_layer_field_describe(field);
    return oj_row_pick_check_field("-", &description, err);
}

/* Returns the options of the command that decide which pairs of an input row
 * become output rows. */
static struct oj_row_choice row_choice_of_command(const struct oj_rows *rows)
{
    const struct oj_command *command = rows->job->command;
    return (struct oj_row_choice){.how = (enum oj_how)command->how,
                                  .picks = rows->request.pick != OJ_PICK_ALL,
                                  .one_to_one = command->one_to_one != NULL,
                                  .aggregates = command->aggregates != NULL};
}

/* Collects the options on which the columns of pairs depend. */
static struct oj_row_column_words column_words_of(const struct oj_rows *rows)
{
    const struct oj_command *c = rows->job->command;
    struct oj_row_column_words words = {.dash = "-",
                                        .relation = &rows->job->relation,
                                        .choice = row_choice_of_command(rows),
                                        .name_fid = c->name_fid,
                                        .name_distance = c->name_distance,
                                        .name_rank = c->name_rank,
                                        .name_count = c->name_count,
                                        .name_similarity = c->name_similarity,
                                        .name_difference = c->name_difference,
                                        .overlap = c->overlap,
                                        .nearest_point_fields =
                                            c->nearest_point_fields,
                                        .bearing_field = c->bearing_field,
                                        .has_events = c->events != NULL};
    for (int i = 0; i < OJ_N_NAMED_PAIR_VALUES; i++)
        words.named[i] = c->named[i];
    return words;
}

/* Lets the join list one pair of each row, if the rows need no more pairs and
 * no other output or comparison needs them. */
static void plan_one_pair_per_row(struct oj_rows *rows)
{
    struct oj_job *job = rows->job;
    const struct oj_command *command = job->command;
    struct oj_row_choice choice = row_choice_of_command(rows);
    choice.takes_first = rows->request.pick == OJ_PICK_FIRST ||
                         (rows->aggregation != NULL &&
                          oj_aggregation_counts_pairs(rows->aggregation));
    choice.counts_pairs = command->name_count != NULL;
    job->relation.enough_pairs =
        command->validate == NULL && command->events == NULL &&
                command->output.unmatched_join_layer == NULL &&
                !rows->streams_join
            ? (int)oj_rows_per_input_enough_pairs(&job->relation, &choice)
            : (int)OJ_ENOUGH_ALL;
}

/* Plans the columns with values of pairs. */
static oj_status plan_columns(struct oj_rows *rows, struct oj_error *err)
{
    const struct oj_row_column_words words = column_words_of(rows);
    OJ_TRY(oj_computed_columns_choose(&words, &rows->computed,
                                      rows->request.want, err));
    rows->fields.own = rows->computed.column;
    rows->fields.n_own = rows->computed.n;
    return OJ_OK;
}

oj_status oj_rows_plan(struct oj_job *job, struct oj_rows *rows,
                       struct oj_error *err)
{
    const struct oj_command *command = job->command;
    const struct oj_options options = oj_job_options(command);
    struct oj_schema_request *fields = &rows->fields;
    enum oj_how how =
        command->events != NULL ? OJ_HOW_INNER : (enum oj_how)command->how;
    int is_choice = oj_how_is_at_most_one_row(how);
    int is_one = is_choice || command->aggregates != NULL;
    struct oj_row_column_words words;
    struct oj_row_choice choice;
    if (command->one_to_one != NULL && oj_source_reads_once(&job->input))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-one_to_one reads the input twice, and %s can be read "
                       "only once: write it to a file first",
                       job->input.side->dataset);
    rows->job = job;
    rows->how = oj_how_of_input_rows(how);
    rows->score_column = -1;
    rows->request.relation = job->relation;
    rows->request.n_threads = options.n_threads;
    rows->request.cancel = options.cancel;
    rows->request.along_is_m = command->along == OJ_ALONG_BY_M;
    fields->input = &job->input;
    fields->join = &job->join;
    fields->with_input = 1;
    fields->with_join = !is_one;
    fields->has_other_rows = oj_how_has_join_rows(how);
    fields->prefix = command->prefix;
    if (!is_choice && command->pick != NULL)
        OJ_TRY(plan_pick_rule(rows, command->pick, err));
    if (!is_choice)
    {
        rows->geometry = (enum oj_write_geometry)command->geometry;
        oj_row_request_geometry_values(rows->geometry, &rows->request);
        if (oj_layer_type_keeps_parts(command->output.layer_type))
            oj_row_request_kept_parts(
                command->output.layer_type - OJ_LAYER_POLYGON, &rows->request);
    }
    if (!is_one)
        OJ_TRY(plan_columns(rows, err));
    choice = row_choice_of_command(rows);
    fields->one_row_per_input =
        command->events == NULL &&
        oj_rows_per_input_find(&job->relation, &choice) == OJ_ROWS_ONE;
    if (command->aggregates != NULL)
    {
        words = column_words_of(rows);
        OJ_TRY(oj_aggregation_open(job, &words, fields, rows->request.want,
                                   &rows->aggregation, err));
        rows->streams_join = oj_aggregation_streams_join(rows->aggregation);
    }
    plan_one_pair_per_row(rows);
    return OJ_OK;
}

/* ---- scores of -pick ----------------------------------------------------- */

static double utc_seconds(const OGRField *raw)
{
    double zone =
        raw->Date.TZFlag > 1 ? ((double)raw->Date.TZFlag - 100) * 900 : 0.0;
    return (double)oj_value_days(raw) * 86400 + (double)raw->Date.Hour * 3600 +
           (double)raw->Date.Minute * 60 + (double)raw->Date.Second - zone;
}

/* Returns a number, date or time as a number; later dates and times are larger
 * numbers. */
static struct oj_plain_value sortable_value(const struct oj_table *table,
                                            int64_t row, int column)
{
    struct oj_value value;
    const struct oj_plain_value none = {OJ_PLAIN_NULL, 0, 0.0, NULL, 0};
    oj_table_value(table, row, column, &value);
    if (OGR_RawField_IsNull(&value.raw))
        return none;
    switch (oj_table_type(table, column, NULL))
    {
        case OFTInteger:
            return oj_plain_integer(value.raw.Integer);
        case OFTInteger64:
            return oj_plain_integer(value.raw.Integer64);
        case OFTReal:
            return oj_plain_real(value.raw.Real);
        default:
            return oj_plain_real(utc_seconds(&value.raw));
    }
}

static oj_status fill_pick_scores(struct oj_rows *rows,
                                  const struct oj_table *table, int64_t n,
                                  struct oj_error *err)
{
    if (rows->score_column < 0)
        return OJ_OK;
    OJ_TRY(oj_reserve(&rows->score, 0, n + 1, &rows->cap_score,
                      sizeof *rows->score, err));
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_plain_value value =
            sortable_value(table, i, rows->score_column);
        rows->score[i] = oj_row_pick_score(&rows->pick, &value);
    }
    return OJ_OK;
}

/* ---- values of pairs ----------------------------------------------------- */

/* Passes the join features of an answer to the stage: all features of the side,
 * or with tiles those that are part of the answer. */
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
    OJ_TRY(fill_pick_scores(rows, from.table, from.flat.n_features, err));
    side.score = rows->score;
    if (job->join_side->engine != NULL)
        side.tie_rank = oj_join_tie_rank(job->join_side->engine);
    else if (rows->request.pick != OJ_PICK_ALL &&
             oj_relation_sorts_by_measure(&job->relation))
        OJ_TRY(oj_tiled_join_rank_ties(job->tiled, &side.tie_rank, err));
    return oj_pair_stage_set_join_side(rows->stage, &side, err);
}

oj_status oj_rows_compute_pair_values(struct oj_rows *rows,
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

/* Refuses -along m if the lines of the join side have no M values at all. */
static oj_status check_join_side_has_m(const struct oj_job *job,
                                       struct oj_error *err)
{
    char side[256];
    snprintf(side, sizeof side, "the join layer '%.200s'", job->join.name);
    return oj_row_along_check_m("-", side,
                                job->tiled != NULL
                                    ? job->tiles.m_found
                                    : oj_flat_m_presence(&job->join_side->flat),
                                err);
}

oj_status oj_rows_open(struct oj_rows *rows, struct oj_error *err)
{
    struct oj_job *job = rows->job;
    rows->join_as_read = oj_flat_buf_view(&job->join_side->buf);
    if (!oj_pair_request_is_needed(&rows->request))
        return OJ_OK;
    if (job->tiled != NULL && oj_reshape_makes_points(&job->sides.reshape[1]))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "-pick, -overlap and -geometry need the join features, "
                       "but with this -memory only the points of -centroid_of "
                       "and -point_on_surface_of are kept; raise -memory");
    if (rows->request.along_is_m)
        OJ_TRY(check_join_side_has_m(job, err));
    OJ_TRY(oj_pair_stage_open(&rows->request, &rows->stage, err));
    return job->tiled == NULL ? set_join_side(rows, 0, err) : OJ_OK;
}

/* Returns 1 for multi-geometry types, and for surfaces of several patches,
 * which become multipolygons. */
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
        oj_layer_type_is_multi(job->command->output.layer_type);
    options->multi_shapes =
        rows->geometry == OJ_WRITE_JOIN && is_multi(job->join.type);
}

void oj_rows_warn_of_missing_values(const struct oj_rows *rows)
{
    char text[512];
    if (rows->stage != NULL &&
        oj_pair_stage_describe_undecided(rows->stage, text, sizeof text))
        oj_warn("%s; -invalid fix may help", text);
    if (rows->stage != NULL &&
        oj_pair_stage_describe_missing_m(rows->stage, text, sizeof text))
        oj_warn("-along m: %s", text);
}

/* ---- the geometry type of the output ------------------------------------- */

/* Returns the kind of the parts of geometries of a declared type (enum
 * oj_part_kind), or 0 if the type allows several kinds. */
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

/* Returns the type of geometries that are made from arrays: two-dimensional,
 * without curves. */
static OGRwkbGeometryType linear_2d_type(OGRwkbGeometryType type)
{
    OGRwkbGeometryType flat = OGR_GT_Flatten(type);
    return flat == wkbTIN || flat == wkbPolyhedralSurface ? wkbMultiPolygon
           : flat == wkbTriangle                          ? wkbPolygon
                                 : OGR_GT_GetLinear(flat);
}

/* Adds Z and M to type `flat` if type a or b has them. */
static OGRwkbGeometryType keep_zm_of_either(OGRwkbGeometryType flat,
                                            OGRwkbGeometryType a,
                                            OGRwkbGeometryType b)
{
    return OGR_GT_SetModifier(flat, OGR_GT_HasZ(a) || OGR_GT_HasZ(b),
                              OGR_GT_HasM(a) || OGR_GT_HasM(b));
}

/* Returns the Shapefile type for parts of this kind. For points, returns the
 * argument points. */
static OGRwkbGeometryType shapefile_type_of_kind(unsigned kind,
                                                 OGRwkbGeometryType points)
{
    return kind == OJ_PART_POLYGON ? wkbPolygon
           : kind == OJ_PART_LINE  ? wkbLineString
                                   : points;
}

/* Chooses the type for right and full joins: a Shapefile has one type of
 * geometry for all rows, fixed when it is created. */
static oj_status set_shapefile_outer_type(struct oj_rows *rows, unsigned a,
                                          unsigned b, struct oj_error *err)
{
    OGRwkbGeometryType of_a = rows->job->input.type;
    OGRwkbGeometryType of_b = rows->job->join.type;
    if (a != b || a == 0 ||
        (a == OJ_PART_POINT && OGR_GT_Flatten(of_a) != OGR_GT_Flatten(of_b)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "a Shapefile has one geometry type, and join rows that "
                       "match nothing have another one; write GPKG, or leave "
                       "out -how right or full");
    rows->fields.type = keep_zm_of_either(
        shapefile_type_of_kind(a, OGR_GT_Flatten(of_a)), of_a, of_b);
    return OJ_OK;
}

/* Chooses the type of intersections in a Shapefile: the highest dimension that
 * an intersection of parts of kinds a and b can have. Parts of lower dimension
 * are not written. */
static oj_status set_shapefile_intersection_type(struct oj_rows *rows,
                                                 unsigned a, unsigned b,
                                                 struct oj_error *err)
{
    unsigned least = a < b ? a : b;
    if (a == 0 || b == 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "a Shapefile has one geometry type, and the layers do "
                       "not declare theirs: write the intersections as GPKG");
    rows->request.shape_kinds = least;
    rows->fields.type = shapefile_type_of_kind(least, wkbMultiPoint);
    oj_notice("a Shapefile has one geometry type: parts of intersections that "
              "are no %s are left out",
              least == OJ_PART_POLYGON ? "polygons"
              : least == OJ_PART_LINE  ? "lines"
                                       : "points");
    return OJ_OK;
}

static OGRwkbGeometryType type_of_parts(unsigned kind)
{
    return kind == OJ_PART_POLYGON ? wkbPolygon
           : kind == OJ_PART_LINE  ? wkbLineString
                                   : wkbPoint;
}

oj_status oj_rows_set_geometry_type(struct oj_rows *rows, GDALDriverH driver,
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
            /* The intersection with a point is a point; for other kinds its
             * type varies. */
            if (rows->request.drops_pairs)
                *type = type_of_parts(rows->request.shape_kinds);
            else
                *type = OGR_GT_Flatten(a) == wkbPoint ||
                                OGR_GT_Flatten(b) == wkbPoint
                            ? wkbPoint
                            : wkbUnknown;
            if (holds_one_type && *type == wkbUnknown)
                return set_shapefile_intersection_type(
                    rows, part_kind_of_type(a), part_kind_of_type(b), err);
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
    oj_computed_columns_free(&rows->computed);
    oj_row_pick_free(&rows->pick);
    oj_free(rows->score);
    *rows = closed;
}
