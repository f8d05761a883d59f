#include "oj_validation_run.h"

#include "../../flatten/base/oj_alloc.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../output/oj_output.h"

#include <cpl_error.h>
#include <cpl_string.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- the reference ------------------------------------------------------- */

/* The reference backend of -validate. It has its own index of the join side;
 * with tiles, its own tile in memory. */
struct reference
{
    struct oj_join *engine; /* NULL if the join side is in tiles */
    /* features to which join_row refers, valid until the next batch */
    struct oj_flat side;

    /* Used if the join side is in tiles. */
    struct oj_tiled_join *tiled;
    /* features of the join's answer, followed by further ones that the
     * reference found */
    struct oj_feature_set own;
};

/* Indexes the join side a second time, for the reference. */
static oj_status open_reference(const struct oj_job *job,
                                struct reference *reference,
                                struct oj_error *err)
{
    struct oj_options options = oj_job_options(job->command);
    const char *backend = job->command->validate;
    reference->side = job->join_side->flat;
    if (job->tiled == NULL)
        return oj_join_open(&job->join_side->flat, &job->relation, backend,
                            &options, &reference->engine, err);
    return oj_tiled_join_open(&job->tiles, &job->relation, backend, &options,
                              job->tiled->fids_are_unique, &reference->tiled,
                              err);
}

static const struct oj_backend *
reference_backend(const struct reference *reference)
{
    return reference->tiled != NULL ? reference->tiled->used
                                    : oj_join_backend(reference->engine);
}

static void close_reference(struct reference *reference)
{
    oj_join_close(reference->engine);
    oj_tiled_join_close(reference->tiled);
    oj_feature_set_free(&reference->own);
}

/* Joins a batch by the reference. ours are the features of the join's answer
 * for these rows. reference->side begins with these features, so that a value
 * of join_row means one feature in both answers. */
static oj_status join_by_reference(struct reference *reference,
                                   const struct oj_flat *input,
                                   const struct oj_answer_side *ours,
                                   struct oj_matches *out, struct oj_error *err)
{
    const struct oj_answer_places first = {ours->flat.n_features, ours->place};
    if (reference->tiled == NULL)
        return oj_join_batch(reference->engine, input, out, err);
    OJ_TRY(oj_tiled_join_batch(reference->tiled, input, &first, 0, out,
                               &reference->own, err));
    reference->side = oj_feature_set_view(&reference->own);
    return OJ_OK;
}

/* Fields of the report. */
enum report_field
{
    INPUT_FID,
    KIND,
    /* FID and distance of the join; those of the reference follow, at JOIN_FID
     * + 2 and DISTANCE + 2 */
    JOIN_FID,
    DISTANCE,
    N_REPORT_FIELDS = DISTANCE + 3
};

struct oj_proof
{
    const struct oj_job *job;
    struct reference reference;
    struct oj_matches matches;
    struct oj_validation validation;

    /* A part of the batch. The reference joins the batch in parts if there
     * would be too many pairs or undecided pairs. */
    struct oj_flat_slice part;
    struct oj_batch_parts parts;

    /* State of the current batch. */
    const struct oj_flat *flat;
    int64_t first_row;

    /* FIDs for each element of validation.first: [0] of the input row, [1] of
     * the join's feature, [2] of the reference's feature. */
    int64_t first_fid[OJ_N_FIRST_DIFFERENCES][3];
    int64_t n_first_fids;

    /* Used for -validate_report. */
    struct oj_output_options report_asked;
    const char *report_options[2];
    struct oj_output report;
};

static int64_t input_fid(const struct oj_proof *proof, int64_t row)
{
    const struct oj_flat *flat = proof->flat;
    if (flat->fid != NULL)
        return flat->fid[row - proof->first_row];
    return row;
}

static int64_t join_fid(const struct oj_proof *proof, int32_t row)
{
    const struct oj_flat *flat = &proof->reference.side;
    if (row < 0)
        return -1;
    return flat->fid != NULL ? flat->fid[row] : row;
}

/* Makes the point of a row of the report: the first vertex of the input row. */
static OGRGeometryH make_point(const struct oj_flat *flat, int64_t row)
{
    int64_t vertex, end;
    OGRGeometryH point;
    oj_flat_vertex_range(flat, row, &vertex, &end);
    if (vertex == end)
        return NULL;
    point = OGR_G_CreateGeometry(wkbPoint);
    if (point != NULL)
        OGR_G_SetPoint_2D(point, 0, flat->x[vertex], flat->y[vertex]);
    return point;
}

static oj_status write_difference(struct oj_proof *proof,
                                  const struct oj_difference *d,
                                  struct oj_error *err)
{
    OGRFeatureH feature =
        OGR_F_Create(OGR_L_GetLayerDefn(proof->report.layers[0].layer));
    OGRGeometryH point =
        make_point(proof->flat, d->input_row - proof->first_row);
    OGRErr result;
    if (feature == NULL)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for a row of the report: free memory");
    OGR_F_SetFieldInteger64(feature, INPUT_FID, input_fid(proof, d->input_row));
    OGR_F_SetFieldString(feature, KIND, oj_validation_difference_name(d->kind));
    for (int i = 0; i < 2; i++)
    {
        const int32_t row = i == 0 ? d->join_row_ours : d->join_row_reference;
        const double measure = i == 0 ? d->measure_ours : d->measure_reference;
        if (row < 0)
            continue;
        OGR_F_SetFieldInteger64(feature, JOIN_FID + 2 * i,
                                join_fid(proof, row));
        if (!isnan(measure)) /* the join has a measure; otherwise the field
                                stays NULL */
            OGR_F_SetFieldDouble(feature, DISTANCE + 2 * i, measure);
    }
    proof->report.layers[0].n_rows++;
    proof->report.layers[0].n_no_geometry += point == NULL;
    if (point != NULL)
        OGR_F_SetGeometryDirectly(feature, point);
    CPLErrorReset();
    result = OGR_L_CreateFeature(proof->report.layers[0].layer, feature);
    OGR_F_Destroy(feature);
    if (result != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_IO,
                       "-validate_report: a row cannot be written to %s: %s",
                       proof->report_asked.dst, CPLGetLastErrorMsg());
    return OJ_OK;
}

static oj_status on_difference(const struct oj_difference *d, void *user,
                               struct oj_error *err)
{
    struct oj_proof *proof = user;
    if (proof->n_first_fids < OJ_N_FIRST_DIFFERENCES)
    {
        int64_t *fid = proof->first_fid[proof->n_first_fids++];
        fid[0] = input_fid(proof, d->input_row);
        fid[1] = join_fid(proof, d->join_row_ours);
        fid[2] = join_fid(proof, d->join_row_reference);
    }
    if (proof->report.layers[0].layer == NULL)
        return OJ_OK;
    return write_difference(proof, d, err);
}

static oj_status create_report_fields(struct oj_proof *proof,
                                      struct oj_error *err)
{
    static const struct
    {
        const char *name;
        OGRFieldType type;
    } fields[N_REPORT_FIELDS] = {
        {"input_fid", OFTInteger64}, {"kind", OFTString},
        {"join_fid", OFTInteger64},  {"distance", OFTReal},
        {"ref_fid", OFTInteger64},   {"ref_dist", OFTReal},
    };
    for (int i = 0; i < N_REPORT_FIELDS; i++)
    {
        OGRFieldDefnH defn = OGR_Fld_Create(fields[i].name, fields[i].type);
        OGRErr result;
        CPLErrorReset();
        result = OGR_L_CreateField(proof->report.layers[0].layer, defn, 1);
        OGR_Fld_Destroy(defn);
        if (result != OGRERR_NONE)
            return oj_fail(
                err, OJ_ERR_IO,
                "-validate_report: cannot create the field '%s' in "
                "the format %s: write the report as CSV or GPKG "
                "(GDAL: %s)",
                fields[i].name, GDALGetDescription(proof->report.driver),
                CPLGetLastErrorMsg()[0] != '\0' ? CPLGetLastErrorMsg()
                                                : "no reason");
    }
    return OJ_OK;
}

/* Creates the report. Unlike other outputs it may always be overwritten. */
static oj_status open_report(struct oj_proof *proof, struct oj_error *err)
{
    const char *path = proof->job->command->validate_report;
    struct oj_output_options *asked = &proof->report_asked;
    asked->dst = path;
    asked->overwrite = 1;
    OJ_TRY(oj_output_plan(asked, "differences", &proof->job->input,
                          &proof->job->join, &proof->report, err));
    if (oj_driver_is(proof->report.driver, "CSV"))
    {
        proof->report_options[0] = "GEOMETRY=AS_XY";
        asked->layer_options = proof->report_options;
    }
    OJ_TRY(oj_output_open(&proof->report, err));
    CPLErrorReset();
    proof->report.layers[0].layer = GDALDatasetCreateLayer(
        proof->report.dataset, "differences", proof->job->crs.join, wkbPoint,
        (char **)asked->layer_options);
    if (proof->report.layers[0].layer == NULL)
        return oj_fail(err, OJ_ERR_IO,
                       "-validate_report: the layer of the report cannot be "
                       "created in %s: %s",
                       path, CPLGetLastErrorMsg());
    return create_report_fields(proof, err);
}

/* Prints a notice that names the columns that are not compared: the reference
 * finds pairs and measures, but no places along lines and no matrices. */
static void notice_columns_not_compared(const struct oj_command *command)
{
    for (int i = 0; i < OJ_N_NAMED_PAIR_VALUES; i++)
    {
        if (command->named[i] == NULL || command->named[i][0] == '\0')
            continue;
        oj_notice("-validate compares pairs and distances; it does not check "
                  "columns of places on lines and of relations");
        return;
    }
}

static oj_status open_proof(struct oj_proof *proof, struct oj_error *err)
{
    const struct oj_job *job = proof->job;
    proof->parts.max_pairs = oj_job_options(job->command).max_batch_pairs;
    proof->validation.report = on_difference;
    proof->validation.user = proof;
    proof->validation.relation = &job->relation;
    OJ_TRY(open_reference(job, &proof->reference, err));
    proof->validation.join_side = &proof->reference.side;
    if (reference_backend(&proof->reference) == oj_job_backend(job))
        return oj_fail(err, OJ_ERR_ARG,
                       "-validate %s: the join itself runs on this backend, so "
                       "the comparison would prove nothing; name another one",
                       job->command->validate);
    notice_columns_not_compared(job->command);
    if (job->command->validate_report == NULL)
        return OJ_OK;
    return open_report(proof, err);
}

oj_status oj_validation_run_open(const struct oj_job *job,
                                 struct oj_proof **out, struct oj_error *err)
{
    struct oj_proof *proof;
    oj_status status;
    OJ_NEW_ZEROED(proof, 1, err);
    proof->job = job;
    status = open_proof(proof, err);
    if (status == OJ_OK)
        *out = proof;
    else
        oj_validation_run_close(proof);
    return status;
}

/* Argument of join_rows_by_reference(): the proof, and the features of the
 * join's answer. */
struct rows_to_prove
{
    struct oj_proof *proof;
    const struct oj_answer_side *ours;
};

static oj_status join_rows_by_reference(void *user, const struct oj_flat *rows,
                                        struct oj_matches *out,
                                        struct oj_error *err)
{
    const struct rows_to_prove *to_prove = user;
    struct oj_proof *proof = to_prove->proof;
    proof->validation.input = rows;
    return join_by_reference(&proof->reference, rows, to_prove->ours, out, err);
}

oj_status oj_validation_run_batch(struct oj_proof *proof,
                                  const struct oj_flat *flat,
                                  const struct oj_answer_side *side,
                                  const struct oj_matches *ours,
                                  struct oj_error *err)
{
    struct rows_to_prove to_prove = {proof, side};
    int64_t first = 0;
    proof->flat = flat;
    while (first < flat->n_features)
    {
        int64_t n;
        OJ_TRY(oj_batch_parts_join(&proof->parts, flat, first, &proof->part,
                                   join_rows_by_reference, &to_prove,
                                   &proof->matches, &n, err));
        OJ_TRY(oj_validation_compare_part(&proof->validation, ours, first,
                                          &proof->matches, err));
        first += n;
    }
    proof->first_row += flat->n_features;
    return OJ_OK;
}

/* Returns the FID of a feature and the measure of its pair, "12 at 3.25"; only
 * the FID if the join has no measure; "nothing" if row is -1 (no pair). */
static const char *describe_pair(int32_t row, int64_t fid, double measure)
{
    if (row < 0)
        return "nothing";
    return isnan(measure)
               ? CPLSPrintf("%lld", (long long)fid)
               : CPLSPrintf("%lld at %.17g", (long long)fid, measure);
}

static void print_first_differences(const struct oj_proof *proof)
{
    const struct oj_validation *v = &proof->validation;
    const char *reference = reference_backend(&proof->reference)->name;
    int64_t n_more = -v->n_first;
    for (int i = 0; i < OJ_N_DIFFERENCE_KINDS; i++)
        n_more += v->n_of_kind[i];
    for (int64_t i = 0; i < v->n_first; i++)
    {
        const struct oj_difference *d = &v->first[i];
        const int64_t *fid = proof->first_fid[i];
        oj_message_print(
            "  input feature %lld, %s: here %s, %s %s", (long long)fid[0],
            oj_validation_difference_name(d->kind),
            describe_pair(d->join_row_ours, fid[1], d->measure_ours), reference,
            describe_pair(d->join_row_reference, fid[2], d->measure_reference));
    }
    if (n_more > 0)
        oj_message_print("  and %lld more", (long long)n_more);
}

/* Returns GEOS's reason for the first undecided pair, of the join or of the
 * reference. */
static const char *first_undecided_reason(const struct oj_proof *proof)
{
    const struct reference *reference = &proof->reference;
    const struct oj_stats *stats = reference->tiled != NULL
                                       ? &reference->tiled->total
                                       : oj_join_stats(reference->engine);
    return stats->undecided_text[0] != '\0'
               ? stats->undecided_text
               : oj_job_stats(proof->job)->undecided_text;
}

static void describe_undecided(const struct oj_proof *proof, char *text,
                               size_t size)
{
    const struct oj_validation *v = &proof->validation;
    const char *reason = first_undecided_reason(proof);
    if (v->n_undecided_pairs == 0 && v->n_undecided == 0 &&
        v->n_undecided_proved == 0)
        return;
    if (v->n_undecided_proved > 0)
        oj_message_append(
            text, size,
            "; GEOS cannot decide %s, and exact arithmetic "
            "confirms the answer of the join",
            oj_message_count_and_noun(v->n_undecided_proved, "pair", "pairs"));
    if (v->n_undecided_pairs > 0 || v->n_undecided > 0)
        oj_message_append(text, size,
                          "; left out, because GEOS cannot decide them: ");
    if (v->n_undecided_pairs > 0)
        oj_message_append(
            text, size, "%s",
            oj_message_count_and_noun(v->n_undecided_pairs, "pair", "pairs"));
    if (v->n_undecided > 0)
        oj_message_append(
            text, size, "%s%s", v->n_undecided_pairs > 0 ? ", " : "",
            oj_message_count_and_noun(v->n_undecided, "row", "rows"));
    if (reason[0] != '\0')
        oj_message_append(text, size, " (the first: %.*s)",
                          oj_message_reason_length(reason), reason);
}

/* Describes the differences that are accepted: rounding, and pairs decided by
 * exact arithmetic. */
static void describe_accepted_differences(const struct oj_validation *v,
                                          char *text, size_t size)
{
    if (v->n_rows_proved > 0)
        oj_message_append(
            text, size,
            "; in %s GEOS errs by rounding, and exact arithmetic "
            "confirms each pair of the join",
            oj_message_count_and_noun(v->n_rows_proved, "row", "rows"));
    if (v->n_rows_rounding > 0)
        oj_message_append(
            text, size,
            "; in %s distances differ from the reference's by rounding: exact "
            "arithmetic confirms those of the join, up to the rounding of "
            "their formula",
            oj_message_count_and_noun(v->n_rows_rounding, "row", "rows"));
    if (v->n_within_ulps > 0 && v->relation->metric == OJ_METRIC_SPHERE)
        oj_message_append(
            text, size,
            "; GEOS does not measure on the sphere: %s equal up to the "
            "rounding of chords, 0.1 micrometres, more near the opposite point "
            "of the Earth",
            oj_message_count_and_noun(v->n_within_ulps, "distance is",
                                      "distances are"));
    else if (v->n_within_ulps > 0 && v->relation->metric == OJ_METRIC_ELLIPSOID)
        oj_message_append(
            text, size,
            "; %s equal to the reference's up to a millimetre (from lines or "
            "polygons)",
            oj_message_count_and_noun(v->n_within_ulps, "distance is",
                                      "distances are"));
    else if (v->n_within_ulps > 0)
        oj_message_append(text, size,
                          "; %s equal to the reference's up to %d ulps (from "
                          "lines or polygons)",
                          oj_message_count_and_noun(
                              v->n_within_ulps, "distance is", "distances are"),
                          OJ_VALIDATION_ULPS);
}

static void print_result(const struct oj_proof *proof)
{
    const struct oj_validation *v = &proof->validation;
    const char *ours = oj_job_backend(proof->job)->name;
    const char *reference = reference_backend(&proof->reference)->name;
    int has_measure = oj_op_get(proof->job->relation.op)->measure != NULL;
    char apart[880] = "", kinds[96] = "";
    describe_undecided(proof, apart, sizeof apart);
    describe_accepted_differences(v, apart, sizeof apart);
    if (v->n_differences == 0)
    {
        oj_notice("validated: %s against %s, %s, %s%s: no difference%s", ours,
                  reference,
                  oj_message_count_and_noun(v->n_rows, "row", "rows"),
                  oj_message_count_and_noun(v->n_pairs, "pair", "pairs"),
                  has_measure ? " with their distances" : "", apart);
        return;
    }
    if (has_measure)
        snprintf(kinds, sizeof kinds,
                 ", %lld at other distances, %lld in other order",
                 (long long)v->n_of_kind[OJ_DIFFERENCE_DISTANCE],
                 (long long)v->n_of_kind[OJ_DIFFERENCE_ORDER]);
    oj_message_print(
        "validated: %s against %s, %s, %s: %s (%s missing, %lld extra%s)%s",
        ours, reference, oj_message_count_and_noun(v->n_rows, "row", "rows"),
        oj_message_count_and_noun(v->n_pairs, "pair", "pairs"),
        oj_message_count_and_noun(v->n_rows_different, "row differs",
                                  "rows differ"),
        oj_message_count_and_noun(v->n_of_kind[OJ_DIFFERENCE_MISSING], "pair",
                                  "pairs"),
        (long long)v->n_of_kind[OJ_DIFFERENCE_EXTRA], kinds, apart);
    print_first_differences(proof);
}

oj_status oj_validation_run_finish(struct oj_proof *proof,
                                   const struct oj_validation **found,
                                   struct oj_error *err)
{
    *found = &proof->validation;
    print_result(proof);
    if (proof->report.layers[0].layer != NULL)
        OJ_TRY(oj_output_finish(&proof->report, err));
    return OJ_OK;
}

void oj_validation_run_close(struct oj_proof *proof)
{
    if (proof == NULL)
        return;
    oj_output_abort(&proof->report);
    oj_validation_free(&proof->validation);
    oj_matches_free(&proof->matches);
    oj_flat_slice_free(&proof->part);
    oj_batch_parts_free(&proof->parts);
    close_reference(&proof->reference);
    oj_free(proof);
}
