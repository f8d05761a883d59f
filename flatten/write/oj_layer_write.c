#include "oj_layer_write.h"
#include "../base/oj_alloc.h"
#include "../read/oj_ogr_errors.h"
#include "oj_row_lane.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct oj_layer_writer
{
    OGRLayerH layer;
    struct oj_row_cursor *cursor;
    OGRFeatureH feature; /* reused for all rows */

    const struct oj_row_lane *lane;
    void *rows;      /* state of the lane; NULL: rows are written as features */
    int is_deferred; /* 1: the lane will be opened with the first answer */
    struct oj_write_counts counts;
    struct oj_ogr_errors errors;
    int looks_for_infinite; /* 1: the batch has features with a coordinate that
                               is not finite */
};

oj_status oj_layer_writer_open(OGRLayerH layer,
                               const struct oj_write_options *options,
                               struct oj_layer_writer **out,
                               struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    struct oj_layer_writer *writer;
    oj_status status;
    OJ_NEW(writer, 1, err);
    memset(writer, 0, sizeof *writer);
    writer->layer = layer;
    writer->counts.first_warning = writer->errors.warning;
    writer->feature = OGR_F_Create(defn);
    status = writer->feature == NULL
                 ? oj_fail_nomem(err, 1, 1024)
                 : oj_row_cursor_open(defn, options, &writer->cursor, err);
    writer->lane =
        options->file != NULL ? &oj_flatgeobuf_rows : oj_geopackage_rows;
    writer->is_deferred = options->dataset != NULL && options->file == NULL &&
                          oj_geopackage_rows != NULL;
    if (status == OJ_OK && options->file != NULL)
        status =
            writer->lane->open(layer, 0, writer->cursor, &writer->rows, err);
    if (status == OJ_OK)
        *out = writer;
    else
        oj_layer_writer_close(writer);
    return status;
}

struct oj_row_cursor *oj_layer_writer_cursor(struct oj_layer_writer *writer)
{
    return writer->cursor;
}

void oj_layer_writer_close(struct oj_layer_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->rows != NULL)
        writer->lane->close(writer->rows);
    oj_row_cursor_close(writer->cursor);
    if (writer->feature != NULL)
        OGR_F_Destroy(writer->feature);
    oj_free(writer);
}

const struct oj_write_counts *
oj_layer_writer_counts(const struct oj_layer_writer *writer)
{
    return &writer->counts;
}

oj_status oj_layer_writer_finish(struct oj_layer_writer *writer, int *has_file,
                                 struct oj_error *err)
{
    *has_file = 0;
    return writer->rows == NULL
               ? OJ_OK
               : writer->lane->finish(writer->rows, has_file, err);
}

static int is_geometry_finite(OGRGeometryH geometry)
{
    OGREnvelope box;
    OGR_G_GetEnvelope(geometry, &box);
    return isfinite(box.MinX) && isfinite(box.MinY) && isfinite(box.MaxX) &&
           isfinite(box.MaxY);
}

/* A Shapefile has polygons of one and of several parts in one layer, formats
 * that store one type in a layer refuse these. */
static oj_status fail_row(const struct oj_layer_writer *writer, int64_t fid,
                          const char *side, const char *text,
                          struct oj_error *err)
{
    const int is_mismatch = strstr(text, "Mismatched geometry type") != NULL;
    return oj_fail(err, OJ_ERR_IO,
                   "the row of %s feature %lld cannot be written to layer %s: "
                   "%.800s%s",
                   side, (long long)fid, OGR_L_GetName(writer->layer), text,
                   is_mismatch ? "; if some have one part and others several, "
                                 "-nlt PROMOTE_TO_MULTI writes one type"
                               : "");
}

/* Returns GDAL's reason for which the feature was not created; some drivers
 * give none where a write has failed, so that errno has it. */
static const char *reason_of_failure(const struct oj_layer_writer *writer,
                                     int number)
{
    const int is_of_write = number == ENOSPC || number == EDQUOT ||
                            number == EIO || number == EFBIG || number == EPIPE;
    return writer->errors.n_failures == 0 && is_of_write
               ? strerror(number)
               : oj_ogr_errors_text(&writer->errors);
}

static oj_status create_row(struct oj_layer_writer *writer,
                            struct oj_error *err)
{
    int number;
    OGRErr created;
    struct oj_write_counts *counts = &writer->counts;
    const char *side;
    int64_t fid = oj_row_cursor_source_fid(writer->cursor, &side);
    OGRGeometryH geometry = OGR_F_GetGeometryRef(writer->feature);
    if (geometry == NULL || OGR_G_IsEmpty(geometry))
        counts->n_without_geometry +=
            OGR_F_GetGeomFieldCount(writer->feature) > 0;
    else if (writer->looks_for_infinite && counts->infinite_side == NULL &&
             !is_geometry_finite(geometry))
    {
        counts->infinite_side = side;
        counts->infinite_fid = fid;
    }
    errno = 0;
    created = OGR_L_CreateFeature(writer->layer, writer->feature);
    number = errno;
    if (created != OGRERR_NONE || writer->errors.n_failures > 0)
        return fail_row(writer, fid, side, reason_of_failure(writer, number),
                        err);
    counts->n_rows++;
    return OJ_OK;
}

/* Adds the row to the message of a failure that does not name it yet. */
static oj_status explain_failed_row(const struct oj_layer_writer *writer,
                                    oj_status status, int64_t fid,
                                    const struct oj_error *reason,
                                    struct oj_error *err)
{
    const char *side;
    if (status == OJ_ERR_NOMEM || status == OJ_ERR_CANCELLED)
        return oj_fail(err, status, "%s", reason->message);
    (void)oj_row_cursor_source_fid(writer->cursor, &side);
    return fail_row(writer, fid, side, reason->message, err);
}

/* Writes rows by the lane until the answer ends (*there 0) or a row is left to
 * GDAL; that row is then written as a feature (*there 1). */
static oj_status write_rows_by_lane(struct oj_layer_writer *writer, int *there,
                                    struct oj_error *err)
{
    struct oj_rows_written written;
    struct oj_row_place left;
    struct oj_error reason;
    oj_status status =
        writer->lane->write(writer->rows, &written, &left, there, &reason);
    writer->counts.n_rows += written.n_rows;
    writer->counts.n_without_geometry += written.n_empty;
    if (written.n_rows > 0)
        writer->counts.lane = oj_lane_at((int)writer->lane->id)->name;
    if (status == OJ_OK && *there)
    {
        OJ_TRY(oj_row_cursor_fill_feature(writer->cursor, &left,
                                          writer->feature, err));
        OJ_TRY(create_row(writer, err));
        status = writer->lane->took(writer->rows, writer->feature, &reason);
        written.has_failed = 1;
    }
    if (status == OJ_OK)
        return OJ_OK;
    return written.has_failed
               ? explain_failed_row(writer, status, written.failed_fid, &reason,
                                    err)
               : oj_fail(err, status, "%s", reason.message);
}

/* Opens the lane with the first answer, because GDAL's errors are collected
 * then: the message gives GDAL's reason, for example that another program
 * writes. */
static oj_status open_deferred_lane(struct oj_layer_writer *writer,
                                    struct oj_error *err)
{
    struct oj_error reason;
    oj_status status = writer->lane->open(writer->layer, 0, writer->cursor,
                                          &writer->rows, &reason);
    writer->is_deferred = 0;
    if (status == OJ_OK)
        return OJ_OK;
    return oj_fail(err, status, "rows cannot be written to layer %s: %s",
                   OGR_L_GetName(writer->layer),
                   writer->errors.n_failures > 0
                       ? oj_ogr_errors_text(&writer->errors)
                       : reason.message);
}

/* Writes the output rows of the cursor's answer. */
static oj_status write_rows_of_answer(struct oj_layer_writer *writer,
                                      const struct oj_batch *batch,
                                      struct oj_error *err)
{
    int there = 1;
    oj_status status = OJ_OK;
    writer->looks_for_infinite = batch->flat.counts.n_not_finite > 0;
    oj_ogr_errors_begin(&writer->errors);
    if (writer->is_deferred)
        status = open_deferred_lane(writer, err);
    while (status == OJ_OK && there)
    {
        if (writer->rows != NULL)
        {
            status = write_rows_by_lane(writer, &there, err);
            continue;
        }
        status =
            oj_row_cursor_next(writer->cursor, writer->feature, &there, err);
        if (status == OJ_OK && there)
            status = create_row(writer, err);
    }
    oj_ogr_errors_end(&writer->errors);
    writer->counts.n_warnings = writer->errors.n_warnings;
    oj_row_cursor_end_answer(writer->cursor);
    return status;
}

oj_status oj_layer_writer_write(struct oj_layer_writer *writer,
                                const struct oj_batch *batch, int64_t first_row,
                                const struct oj_matches *matches,
                                const struct oj_pair_values *values,
                                struct oj_error *err)
{
    OJ_TRY(oj_row_cursor_begin_answer(writer->cursor, batch, first_row, matches,
                                      values, err));
    return write_rows_of_answer(writer, batch, err);
}

oj_status oj_layer_writer_write_join_rows(struct oj_layer_writer *writer,
                                          const struct oj_batch *batch,
                                          const uint8_t *is_matched,
                                          struct oj_error *err)
{
    OJ_TRY(
        oj_row_cursor_begin_join_rows(writer->cursor, batch, is_matched, err));
    return write_rows_of_answer(writer, batch, err);
}
