#include "oj_layer_read.h"

#include "../arrays/oj_wkb.h"
#include "../base/oj_alloc.h"
#include "../base/oj_clock.h"
#include "../base/oj_utf8.h"
#include "oj_antimeridian.h"
#include "oj_attribute_table.h"
#include "oj_layer_geometry.h"
#include "oj_ogr_errors.h"

#include <cpl_string.h>

#include <limits.h>
#include <math.h>
#include <string.h>

/* Rows per progress report and per transformation in oj_layer_read_all(). */
#define CHUNK_ROWS 65536

/* Vertices per transformation call: few enough for a cache, enough to amortise
 * the call. */
#define CHUNK_VERTICES 16384

struct oj_layer_reader
{
    OGRLayerH layer;
    struct oj_read_options options;
    struct oj_fields fields;
    struct oj_field *field; /* storage of `fields` */
    /* [fields.n] formats for lanes; 0: the values are not used */
    char *format;
    struct oj_read_counts counts;
    struct oj_ogr_errors errors;
    struct oj_layer_geometry geometry;
    /* where options.transformation tears geometries */
    struct oj_antimeridian antimeridian;

    /* Source of rows: the chunks of a lane; GDAL's features if lane is NULL or
     * is_left is set. After is_left the stream may stay open, since chunks use
     * its memory. */
    const struct oj_lane *lane;
    int is_left;
    void *stream;
    /* the rows of the last chunk that were not yet returned */
    struct oj_slice rest;

    /* Used when GDAL continues after a lane that reads in FID order.
     * skips_fids: rows up to last_fid are skipped; checks_fids: the FIDs of the
     * other rows must ascend. */
    int64_t last_fid;
    int skips_fids, checks_fids;
    /* spatial filter: minimum x, maximum x, minimum y, maximum y */
    double box[4];

    /* Where rows are stored. carried: attributes are returned to the caller
     * with their geometries, which must then be transformed, too. */
    struct oj_flat_buf *flat;
    struct oj_attributes *attributes; /* NULL: no attributes are kept */
    int carried;

    /* FIDs of rows without geometry, which are read again at the end:
     * GeoPackage's streams return NULL also for a corrupt blob. */
    int64_t *null_fid;
    int64_t n_null_fids, cap_null_fids;
    int has_ignored_fields, at_end;
    int has_order_filter; /* all_rows_filter is set on the layer */

    /* For each vertex of one transformation call: 1 if it was transformed; 1 if
     * it is NaN, which means no geometry. */
    int is_good[CHUNK_VERTICES];
    uint8_t has_none[CHUNK_VERTICES];
};

/* ---- reprojection of the vertices, in bulk ------------------------------- */

/* Transforms n vertices. NaN in the short form means "no geometry" and is kept;
 * a vertex that cannot be transformed becomes infinity. */
static void transform_vertices(struct oj_layer_reader *reader, double *x,
                               double *y, int n)
{
    for (int i = 0; i < n; i++)
    {
        reader->is_good[i] = 0; /* stays 0 if the call fails as a whole */
        reader->has_none[i] = (uint8_t)(isnan(x[i]) != 0);
        if (reader->has_none[i])
            x[i] = y[i] = 0.0;
    }
    (void)OCTTransformEx(reader->options.transformation, n, x, y, NULL,
                         reader->is_good);
    oj_ogr_errors_discard(&reader->errors);
    for (int i = 0; i < n; i++)
    {
        if (reader->has_none[i])
            x[i] = y[i] = (double)NAN;
        else if (!reader->is_good[i] || !(fabs(x[i]) <= OJ_FLAT_MOST) ||
                 !(fabs(y[i]) <= OJ_FLAT_MOST))
            x[i] = y[i] = (double)INFINITY;
    }
}

/* Returns the difference of maximum and minimum of n > 1 values. Four minima
 * and maxima are kept in parallel, because each step depends on the one before.
 */
static double range_of_values(const double *x, int64_t n)
{
    double least[4] = {x[0], x[0], x[0], x[0]};
    double greatest[4] = {x[0], x[0], x[0], x[0]};
    int64_t i = 1;
    for (; i + 4 <= n; i += 4)
        for (int c = 0; c < 4; c++)
        {
            least[c] = x[i + c] < least[c] ? x[i + c] : least[c];
            greatest[c] = x[i + c] > greatest[c] ? x[i + c] : greatest[c];
        }
    for (; i < n; i++)
    {
        least[0] = x[i] < least[0] ? x[i] : least[0];
        greatest[0] = x[i] > greatest[0] ? x[i] : greatest[0];
    }
    return fmax(fmax(greatest[0], greatest[1]),
                fmax(greatest[2], greatest[3])) -
           fmin(fmin(least[0], least[1]), fmin(least[2], least[3]));
}

/* Counts the features from `first` on that have a ring or line whose extent in
 * x, in units of the coordinates, is in [least, most). */
static int64_t count_wide_features(const struct oj_flat_buf *flat,
                                   int64_t first, double least, double most)
{
    int64_t n_wide = 0;
    for (int64_t i = first; flat->long_form && i < flat->n_features; i++)
    {
        int64_t r = flat->ring_offset[flat->part_offset[i]];
        int64_t end = flat->ring_offset[flat->part_offset[i + 1]];
        int is_wide = 0;
        for (; r < end && !is_wide; r++)
        {
            int64_t v = flat->vertex_offset[r];
            int64_t n = flat->vertex_offset[r + 1] - v;
            double width = n > 1 ? range_of_values(flat->x + v, n) : 0.0;
            is_wide = width >= least && width < most;
        }
        n_wide += is_wide;
    }
    return n_wide;
}

/* Counts the features nearly as wide as the Earth, 350 to 360 degrees. They
 * usually cross the antimeridian and would run the wrong way around in the
 * plane. A width of 360 degrees is a band around the Earth and does not count.
 */
static void count_wide_in_source(struct oj_layer_reader *reader, int64_t first)
{
    if (reader->options.has_degrees &&
        !(reader->carried && reader->options.transformation != NULL))
        reader->counts.n_wide +=
            count_wide_features(reader->flat, first, 350.0, 360.0);
}

/* Counts the features that became wider than half the Earth in a transformation
 * from a plane into degrees: it probably tore them apart. */
static void count_torn_by_transformation(struct oj_layer_reader *reader,
                                         int64_t first)
{
    if (reader->antimeridian.is_curved)
        reader->counts.n_torn +=
            count_wide_features(reader->flat, first, 180.0, INFINITY);
}

/* Transforms the vertices of the features from `first` on in place. A feature
 * with a vertex that cannot be transformed loses its parts. */
static oj_status transform_features(struct oj_layer_reader *reader,
                                    int64_t first, struct oj_error *err)
{
    struct oj_flat_buf *flat = reader->flat;
    int64_t v = first, n_lost;
    if (flat->long_form)
        v = flat->vertex_offset[flat->ring_offset[flat->part_offset[first]]];
    while (v < flat->n_vertices)
    {
        int64_t n = flat->n_vertices - v;
        if (n > CHUNK_VERTICES)
            n = CHUNK_VERTICES;
        transform_vertices(reader, flat->x + v, flat->y + v, (int)n);
        v += n;
    }
    OJ_TRY(oj_flat_buf_drop_not_finite(flat, first, &n_lost, err));
    reader->counts.n_not_transformed += n_lost;
    return OJ_OK;
}

/* Transforms the features from `first` on, unless add_feature() has transformed
 * each of them. */
static oj_status transform_new_features(struct oj_layer_reader *reader,
                                        int64_t first, struct oj_error *err)
{
    return reader->carried || reader->options.transformation == NULL
               ? OJ_OK
               : transform_features(reader, first, err);
}

/* ---- open and close ------------------------------------------------------ */

static int is_field_wanted(const struct oj_fields *fields, int field)
{
    int i = 0;
    while (i < fields->n && fields->field[i].index != field)
        i++;
    return i < fields->n && !fields->field[i].is_skipped;
}

/* Sets the ignored fields of the layer. OGR ignores fields by name, so a field
 * whose name finds another field (names may repeat or differ only in case) is
 * not ignored. */
static void ignore_fields(struct oj_layer_reader *reader)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(reader->layer);
    char **names = NULL;
    if (!reader->options.ignore_unwanted ||
        !OGR_L_TestCapability(reader->layer, OLCIgnoreFields))
        return;
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        const char *name = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, i));
        if (!is_field_wanted(&reader->fields, i) &&
            OGR_FD_GetFieldIndex(defn, name) == i)
            names = CSLAddString(names, name);
    }
    reader->has_ignored_fields = names != NULL;
    if (names != NULL &&
        OGR_L_SetIgnoredFields(reader->layer, (const char **)names) !=
            OGRERR_NONE)
        OGR_L_SetIgnoredFields(reader->layer, NULL);
    CSLDestroy(names);
}

static oj_status init_wanted_fields(struct oj_layer_reader *reader,
                                    const struct oj_read_options *options,
                                    struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(reader->layer);
    OJ_NEW(reader->field, options->n_fields, err);
    OJ_NEW(reader->format, options->n_fields, err);
    for (int i = 0; i < options->n_fields; i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, options->fields[i]);
        if (field == NULL)
            return oj_fail_internal(err, "layer %s has no field %d",
                                    OGR_L_GetName(reader->layer),
                                    options->fields[i]);
        reader->field[i].index = options->fields[i];
        reader->field[i].type = OGR_Fld_GetType(field);
        reader->field[i].subtype = OGR_Fld_GetSubType(field);
        reader->field[i].is_skipped =
            options->skipped != NULL && options->skipped[i];
        reader->format[i] = reader->field[i].is_skipped
                                ? 0
                                : oj_format_of_type(reader->field[i].type);
    }
    reader->fields.n = options->n_fields;
    reader->fields.field = reader->field;
    reader->fields.has_geometry = OGR_FD_GetGeomFieldCount(defn) > 0;
    return OJ_OK;
}

/* Sets *is_met to 1 if the geometry passes the spatial filter, as OGR decides
 * it: compares boxes, and asks GEOS where they do not decide. */
static oj_status does_geometry_meet_box(void *user, const uint8_t *wkb,
                                        size_t n, int *is_met,
                                        struct oj_error *err)
{
    const struct oj_layer_reader *reader = user;
    const double *box = reader->box;
    double own[6] = {(double)INFINITY, (double)-INFINITY, (double)INFINITY,
                     (double)-INFINITY};
    struct oj_wkb_walk walk = {.at = wkb, .box = own};
    OGRGeometryH geometry = NULL;
    int is_outside;
    if (wkb != NULL)
        oj_wkb_walk_geometry(&walk);
    is_outside = own[1] < box[0] || own[0] > box[1] || own[3] < box[2] ||
                 own[2] > box[3];
    *is_met = own[0] >= box[0] && own[1] <= box[1] && own[2] >= box[2] &&
              own[3] <= box[3] && !is_outside;
    if (!isnan(walk.doubt) && (is_outside || *is_met))
        return OJ_OK;
    if (isnan(walk.doubt) || n > INT_MAX ||
        OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE)
        return oj_lane_leave_to_gdal(err);
    *is_met = OGR_G_Intersects(OGR_L_GetSpatialFilter(reader->layer), geometry);
    OGR_G_DestroyGeometry(geometry);
    return OJ_OK;
}

/* Sets the box of the reader to the layer's spatial filter. Returns 0 if the
 * filter has no area: OGR does not treat it as a rectangle then. */
static int init_filter_box(struct oj_layer_reader *reader)
{
    OGREnvelope box;
    OGR_G_GetEnvelope(OGR_L_GetSpatialFilter(reader->layer), &box);
    reader->box[0] = box.MinX;
    reader->box[1] = box.MaxX;
    reader->box[2] = box.MinY;
    reader->box[3] = box.MaxY;
    return box.MinX < box.MaxX && box.MinY < box.MaxY;
}

static void close_lane(struct oj_layer_reader *reader)
{
    oj_slice_free(&reader->rest);
    if (reader->lane != NULL)
        reader->lane->close(reader->stream);
    reader->lane = NULL;
    reader->stream = NULL;
}

/* If a spatial filter is set, sets options.all_rows_filter on the layer until
 * the reader is closed, so that rows come in FID order. If the driver refuses
 * it, rows come in the order of the spatial index. */
static void set_order_filter(struct oj_layer_reader *reader)
{
    if (reader->options.all_rows_filter != NULL &&
        OGR_L_GetSpatialFilter(reader->layer) != NULL)
        reader->has_order_filter =
            OGR_L_SetAttributeFilter(
                reader->layer, reader->options.all_rows_filter) == OGRERR_NONE;
}

/* Opens the first lane that can read this layer, if any. No lane transforms
 * geometries that are returned. No lane is used for a limit together with a
 * filter, because then GDAL's row order decides which rows are read. */
static oj_status open_first_suitable_lane(struct oj_layer_reader *reader,
                                          struct oj_error *err)
{
    const struct oj_read_options *options = &reader->options;
    const int is_carried = options->keep_attributes && !options->fields_only;
    const int has_box = OGR_L_GetSpatialFilter(reader->layer) != NULL;
    const struct oj_lane_request request = {
        .dataset = options->geopackage,
        .layer = reader->layer,
        .file = options->file,
        .fields = options->fields,
        .formats = reader->format,
        .n_fields = options->n_fields,
        .are_points =
            !is_carried && OGR_L_GetGeomType(reader->layer) == wkbPoint,
        .batch_rows = options->batch_rows,
        .n_threads = options->limit < 0 ? options->n_threads : 1,
        .all_rows_filter = options->all_rows_filter,
        .box = has_box ? reader->box : NULL,
        .meets = does_geometry_meet_box,
        .user = reader,
        .cancel = options->cancel};
    oj_status status = OJ_ERR_UNSUPPORTED;
    if (options->lanes == 0 ||
        (options->transformation != NULL && is_carried) ||
        (has_box && (options->limit >= 0 || !init_filter_box(reader))))
        return OJ_OK;
    for (int i = 0; i < OJ_N_LANES && status == OJ_ERR_UNSUPPORTED; i++)
    {
        const struct oj_lane_row *row = oj_lane_at(i);
        if (row->reads == NULL || (options->lanes >> i & 1u) == 0)
            continue;
        close_lane(reader);
        reader->lane = row->reads;
        reader->counts.lane = row->name;
        status = reader->lane->open(&request, &reader->stream, err);
    }
    if (status != OJ_ERR_UNSUPPORTED)
        return status;
    close_lane(reader);
    reader->counts.lane = NULL;
    OGR_L_ResetReading(reader->layer);
    return OJ_OK;
}

oj_status oj_layer_reader_open(OGRLayerH layer,
                               const struct oj_read_options *options,
                               struct oj_layer_reader **out,
                               struct oj_error *err)
{
    struct oj_layer_reader *reader;
    oj_status status;
    if (options->batch_rows <= 0)
        return oj_fail_internal(err, "a batch needs at least one row, not %lld",
                                (long long)options->batch_rows);
    OJ_NEW_ZEROED(reader, 1, err);
    reader->layer = layer;
    reader->options = *options;
    reader->antimeridian = oj_antimeridian_find(options->transformation);
    status = init_wanted_fields(reader, options, err);
    if (status == OJ_OK)
    {
        oj_ogr_errors_begin(&reader->errors);
        ignore_fields(reader);
        OGR_L_ResetReading(reader->layer);
        status = open_first_suitable_lane(reader, err);
        if (status == OJ_OK && reader->lane == NULL)
            set_order_filter(reader);
        oj_ogr_errors_end(&reader->errors);
    }
    /* The caller owns these arrays and may free them after the call, so the
     * reader keeps no pointers to them. */
    reader->options.fields = NULL;
    reader->options.file = NULL;
    if (status == OJ_OK)
        *out = reader;
    else
        oj_layer_reader_close(reader);
    return status;
}

void oj_layer_reader_close(struct oj_layer_reader *reader)
{
    if (reader == NULL)
        return;
    close_lane(reader);
    if (reader->has_order_filter)
        OGR_L_SetAttributeFilter(reader->layer, NULL);
    if (reader->has_ignored_fields)
        OGR_L_SetIgnoredFields(reader->layer, NULL);
    oj_layer_geometry_free(&reader->geometry);
    oj_free(reader->null_fid);
    oj_free(reader->field);
    oj_free(reader->format);
    oj_free(reader);
}

const struct oj_read_counts *
oj_layer_reader_counts(const struct oj_layer_reader *reader)
{
    return &reader->counts;
}

/* ---- rows ---------------------------------------------------------------- */

static oj_status fail_row(const struct oj_layer_reader *reader, int64_t fid,
                          oj_status status, const char *text,
                          struct oj_error *err)
{
    if (status == OJ_ERR_NOMEM)
        return oj_fail(err, status, "%s", text);
    return oj_fail(err, status,
                   "layer %s, feature %lld: %.700s; correct it, or leave it "
                   "out by a condition (-where, -join_where)",
                   OGR_L_GetName(reader->layer), (long long)fid, text);
}

static oj_status fail_read(const struct oj_layer_reader *reader, int64_t row,
                           const char *text, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "layer %s cannot be read after %lld rows: %s",
                   OGR_L_GetName(reader->layer), (long long)row, text);
}

/* Returns a copy of the geometry, cut at reader->antimeridian; the caller
 * destroys it. NULL: the geometry does not cross that line or cannot be cut.
 * Counts the cuts (n_cut) and the geometries that cannot be cut (n_torn). */
static OGRGeometryH cut_geometry(struct oj_layer_reader *reader,
                                 OGRGeometryH geometry)
{
    OGRGeometryH cut;
    OGREnvelope box;
    if (!reader->antimeridian.is_torn || geometry == NULL ||
        OGR_G_GetDimension(geometry) == 0)
        return NULL;
    OGR_G_GetEnvelope(geometry, &box);
    if (!oj_antimeridian_lies_between(&reader->antimeridian, box.MinX,
                                      box.MaxX))
        return NULL;
    cut = oj_antimeridian_cut(&reader->antimeridian, geometry);
    reader->counts.n_cut += cut != NULL;
    reader->counts.n_torn += cut == NULL;
    return cut;
}

/* Cuts the geometry of a lane's WKB, like cut_geometry(). Usually the box
 * already shows that no cut is needed. */
static OGRGeometryH cut_wkb(struct oj_layer_reader *reader,
                            const uint8_t *bytes, size_t n)
{
    double box[6] = {(double)INFINITY, (double)-INFINITY, (double)INFINITY,
                     (double)-INFINITY};
    struct oj_wkb_walk walk = {.at = bytes, .box = box};
    OGRGeometryH geometry = NULL, cut;
    if (!reader->antimeridian.is_torn || n > INT_MAX)
        return NULL;
    if (oj_wkb_is_iso(bytes, n))
    {
        oj_wkb_walk_geometry(&walk);
        if (!oj_antimeridian_lies_between(&reader->antimeridian, box[0],
                                          box[1]))
            return NULL;
    }
    if (OGR_G_CreateFromWkb(bytes, NULL, &geometry, (int)n) != OGRERR_NONE)
        return NULL;
    cut = cut_geometry(reader, geometry);
    OGR_G_DestroyGeometry(geometry);
    return cut;
}

/* Transforms the geometry of a feature that is returned to the caller. Curves
 * stay curves: their control points are transformed. Sets *is_lost to 1 if the
 * geometry cannot be transformed. */
static void transform_feature(struct oj_layer_reader *reader,
                              OGRFeatureH feature, int *is_lost)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    *is_lost = 0;
    if (geometry == NULL || OGR_G_IsEmpty(geometry))
        return;
    if (OGR_G_Transform(geometry, reader->options.transformation) !=
        OGRERR_NONE)
    {
        OGR_F_SetGeometryDirectly(feature, NULL);
        *is_lost = 1;
    }
    oj_ogr_errors_discard(&reader->errors);
}

static oj_status add_geometry_of_feature(struct oj_layer_reader *reader,
                                         OGRFeatureH feature,
                                         struct oj_error *err)
{
    struct oj_error reason;
    const int64_t fid = OGR_F_GetFID(feature);
    oj_status status =
        oj_layer_geometry_add(&reader->geometry, reader->flat, fid,
                              OGR_F_GetGeometryRef(feature), &reason);
    return status == OJ_OK ? OJ_OK
                           : fail_row(reader, fid, status, reason.message, err);
}

/* Adds a feature with curves. A curve that is linearised after its control
 * points are transformed is another line, so its line is made in the CRS of the
 * layer and the vertices of the line are transformed, as they are where
 * geometries are not returned to the caller. A feature without parts after that
 * is returned without geometry. */
static oj_status add_and_transform_curves(struct oj_layer_reader *reader,
                                          OGRFeatureH feature,
                                          struct oj_error *err)
{
    const int64_t n_lost = reader->counts.n_not_transformed;
    int is_lost;
    OJ_TRY(add_geometry_of_feature(reader, feature, err));
    OJ_TRY(transform_features(reader, reader->flat->n_features - 1, err));
    if (reader->counts.n_not_transformed > n_lost)
        OGR_F_SetGeometryDirectly(feature, NULL);
    transform_feature(reader, feature, &is_lost);
    return OJ_OK;
}

/* Adds a feature whose geometry is returned to the caller, and transforms both.
 * Geometries without curves are transformed once, by OGR. */
static oj_status add_and_transform_feature(struct oj_layer_reader *reader,
                                           OGRFeatureH feature,
                                           struct oj_error *err)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    int is_lost;
    if (geometry != NULL && OGR_G_HasCurveGeometry(geometry, TRUE))
        return add_and_transform_curves(reader, feature, err);
    transform_feature(reader, feature, &is_lost);
    OJ_TRY(add_geometry_of_feature(reader, feature, err));
    if (is_lost)
    {
        reader->flat->counts.n_null--; /* counted as not transformed instead */
        reader->counts.n_not_transformed++;
    }
    return OJ_OK;
}

static int is_bad_text(const char *text)
{
    return text != NULL && !oj_utf8_is_valid(text, (int64_t)strlen(text));
}

/* Counts the texts in the wanted fields that are not valid UTF-8. */
static int64_t count_bad_texts(const struct oj_fields *fields,
                               OGRFeatureH feature)
{
    int64_t n_bad = 0;
    for (int i = 0; i < fields->n; i++)
    {
        const struct oj_field *field = &fields->field[i];
        const OGRField *raw;
        if ((field->type != OFTString && field->type != OFTStringList) ||
            field->is_skipped)
            continue;
        raw = OGR_F_GetRawFieldRef(feature, field->index);
        if (OGR_RawField_IsUnset(raw) || OGR_RawField_IsNull(raw))
            continue;
        if (field->type == OFTString)
            n_bad += is_bad_text(raw->String);
        else
            for (int k = 0; k < raw->StringList.nCount; k++)
                n_bad += is_bad_text(raw->StringList.paList[k]);
    }
    return n_bad;
}

/* Adds a feature and takes ownership of it. */
static oj_status add_feature(struct oj_layer_reader *reader,
                             OGRFeatureH feature, struct oj_error *err)
{
    OGRGeometryH cut = cut_geometry(reader, OGR_F_GetGeometryRef(feature));
    oj_status status;
    if (cut != NULL)
        OGR_F_SetGeometryDirectly(feature, cut);
    status = reader->carried && reader->options.transformation != NULL
                 ? add_and_transform_feature(reader, feature, err)
                 : add_geometry_of_feature(reader, feature, err);
    if (status == OJ_OK && reader->attributes != NULL)
    {
        reader->counts.n_bad_texts += count_bad_texts(&reader->fields, feature);
        status = oj_attributes_append_feature(reader->attributes, feature, err);
        if (status == OJ_OK)
            return OJ_OK;
    }
    OGR_F_Destroy(feature);
    return status;
}

/* Returns the next feature, without the rows that the lane has already
 * returned; NULL at the end. */
static OGRFeatureH next_feature_after_lane(struct oj_layer_reader *reader)
{
    OGRFeatureH feature = OGR_L_GetNextFeature(reader->layer);
    while (reader->skips_fids && feature != NULL &&
           OGR_F_GetFID(feature) <= reader->last_fid)
    {
        OGR_F_Destroy(feature);
        feature = OGR_L_GetNextFeature(reader->layer);
    }
    return feature;
}

/* Returns 0 if the rows continue those of a lane that read in FID order, but
 * fid is not greater than the last FID. The row then comes from a malformed
 * B-tree, and the lane may have read it already or have missed it. */
static int record_ascending_fid(struct oj_layer_reader *reader, int64_t fid)
{
    int ascends =
        !reader->checks_fids || reader->skips_fids || fid > reader->last_fid;
    reader->skips_fids = 0;
    reader->last_fid = fid;
    return ascends;
}

/* Reads the next feature. A NULL feature is the end of the layer only if the
 * driver reported no error; an error together with a feature means that a part
 * of it is missing. */
static oj_status next_feature(struct oj_layer_reader *reader, int64_t row,
                              OGRFeatureH *feature, struct oj_error *err)
{
    int64_t fid;
    *feature = next_feature_after_lane(reader);
    if (*feature == NULL)
        return reader->errors.n_failures == 0
                   ? OJ_OK
                   : fail_read(reader, row, oj_ogr_errors_text(&reader->errors),
                               err);
    fid = OGR_F_GetFID(*feature);
    if (reader->errors.n_failures == 0 && record_ascending_fid(reader, fid))
        return OJ_OK;
    OGR_F_Destroy(*feature);
    *feature = NULL;
    return reader->errors.n_failures > 0
               ? fail_row(reader, fid, OJ_ERR_DATA,
                          oj_ogr_errors_text(&reader->errors), err)
               : fail_read(reader, row,
                           "its FIDs do not ascend, so it is damaged; copy it "
                           "with ogr2ogr",
                           err);
}

/* Asks options.refill for more rows. *has_more 1: the layer has new rows, which
 * are read from its start. */
static oj_status refill_layer(struct oj_layer_reader *reader, int *has_more,
                              struct oj_error *err)
{
    int64_t n = 0;
    *has_more = 0;
    if (reader->options.refill == NULL)
        return OJ_OK;
    OJ_TRY(reader->options.refill(reader->options.refill_user, &n, err));
    OGR_L_ResetReading(reader->layer);
    *has_more = n > 0;
    return OJ_OK;
}

static oj_status read_features(struct oj_layer_reader *reader, int64_t max_rows,
                               struct oj_error *err)
{
    for (int64_t n = 0; n < max_rows; n++)
    {
        OGRFeatureH feature;
        /* polled within a batch, because a batch can take a second to read */
        if (n % 1024 == 0)
            OJ_TRY(oj_check_cancel(reader->options.cancel, err));
        OJ_TRY(next_feature(reader, reader->counts.n_rows + n, &feature, err));
        if (feature == NULL && n > 0 && reader->options.refill != NULL)
            break;
        if (feature == NULL)
        {
            int has_more;
            OJ_TRY(refill_layer(reader, &has_more, err));
            n--; /* the NULL feature at the end is no row */
            if (has_more)
                continue;
            reader->at_end = 1;
            break;
        }
        OJ_TRY(add_feature(reader, feature, err));
    }
    return OJ_OK;
}

/* Records a row without geometry that must be read again. Done only for layers
 * with random access; otherwise each such row would cost a scan. */
static oj_status record_null_fid(struct oj_layer_reader *reader, int64_t fid,
                                 struct oj_error *err)
{
    int64_t n = reader->n_null_fids;
    if (fid == OGRNullFID || reader->lane->nulls_are_sure ||
        !reader->fields.has_geometry ||
        !OGR_L_TestCapability(reader->layer, OLCRandomRead))
        return OJ_OK;
    OJ_ROOM(reader->null_fid, n, n + 1, reader->cap_null_fids, err);
    reader->null_fid[n] = fid;
    reader->n_null_fids = n + 1;
    return OJ_OK;
}

/* Reads again the rows whose geometry was NULL. Called after the last row, when
 * no thread of the driver is reading. */
static oj_status reread_null_rows(struct oj_layer_reader *reader,
                                  struct oj_error *err)
{
    close_lane(reader);
    reader->at_end = 1;
    for (int64_t i = 0; i < reader->n_null_fids; i++)
    {
        OGRFeatureH feature =
            OGR_L_GetFeature(reader->layer, reader->null_fid[i]);
        if (feature != NULL)
            OGR_F_Destroy(feature);
        if (reader->errors.n_failures > 0)
            return fail_row(reader, reader->null_fid[i], OJ_ERR_DATA,
                            oj_ogr_errors_text(&reader->errors), err);
    }
    return OJ_OK;
}

static oj_status append_chunk_rows(struct oj_layer_reader *reader,
                                   const struct oj_slice *slice,
                                   struct oj_error *err)
{
    struct oj_flat_buf *flat = reader->flat;
    const struct oj_column_view *fids = &slice->chunk->column[OJ_CHUNK_FID];
    const struct oj_column_view *wkb = &slice->chunk->column[OJ_CHUNK_GEOMETRY];
    struct oj_error reason;
    for (int64_t i = 0; i < slice->n_rows; i++)
    {
        int64_t fid = OGRNullFID, at = slice->first + i;
        const uint8_t *bytes = NULL, *point;
        OGRGeometryH cut = NULL;
        size_t n = 0;
        oj_status status;
        if (oj_column_has_value(fids, at))
            fid = ((const int64_t *)fids->values)[fids->first + at];
        if (!oj_column_has_value(wkb, at))
        {
            OJ_TRY(record_null_fid(reader, fid, err));
            OJ_TRY(oj_flat_buf_add_null(flat, fid, err));
            continue;
        }
        if (wkb->format != 'P')
            bytes = oj_slice_wkb(slice, i, &n);
        point = bytes == NULL
                    ? (const uint8_t *)wkb->values + 16 * (wkb->first + at)
                    : oj_wkb_plain_point(bytes, n);
        if (point == NULL)
            cut = cut_wkb(reader, bytes, n);
        status = cut != NULL ? oj_layer_geometry_add(&reader->geometry, flat,
                                                     fid, cut, &reason)
                 : point != NULL
                     ? oj_flat_buf_add_point(flat, fid, oj_wkb_double(point),
                                             oj_wkb_double(point + 8), &reason)
                     : oj_layer_geometry_add_wkb(&reader->geometry, flat, fid,
                                                 bytes, n, &reason);
        if (cut != NULL)
            OGR_G_DestroyGeometry(cut);
        if (status != OJ_OK)
            return fail_row(reader, fid, status, reason.message, err);
    }
    if (slice->n_rows > 0)
        reader->last_fid = flat->fid[flat->n_features - 1];
    return OJ_OK;
}

/* Reads the remaining rows as features. Also used if a stream failed before its
 * first row, because its reason may be wrong: FlatGeobuf's stream does not end
 * for an empty layer (GDAL 3.6), nor GeoPackage's for a corrupt file. */
static oj_status fall_back_to_features(struct oj_layer_reader *reader,
                                       int64_t max_rows, struct oj_error *err)
{
    const int is_by_fid = reader->lane->is_by_fid;
    reader->checks_fids = is_by_fid && reader->counts.n_rows > 0;
    reader->skips_fids = reader->checks_fids;
    if (!reader->lane->keeps_state)
        close_lane(reader);
    oj_slice_free(&reader->rest);
    reader->is_left = 1;
    reader->counts.lane = NULL;
    oj_ogr_errors_forget(&reader->errors);
    set_order_filter(reader);
    OGR_L_ResetReading(reader->layer);
    for (int64_t i = 0; !is_by_fid && i < reader->counts.n_rows; i++)
        OGR_F_Destroy(OGR_L_GetNextFeature(reader->layer));
    return read_features(reader, max_rows, err);
}

static oj_status next_rows_of_chunk(struct oj_layer_reader *reader,
                                    int64_t max_rows, struct oj_slice *slice,
                                    const char **text, struct oj_error *err)
{
    struct oj_chunk *chunk = NULL;
    *text = NULL;
    if (reader->rest.chunk == NULL)
    {
        OJ_TRY(reader->lane->next(reader->stream, &chunk, text, err));
        reader->rest.chunk = chunk;
        reader->rest.n_rows = chunk != NULL ? chunk->n_rows : 0;
    }
    *slice = oj_slice_cut(&reader->rest, max_rows);
    return OJ_OK;
}

static oj_status read_and_append_chunk_rows(struct oj_layer_reader *reader,
                                            int64_t max_rows,
                                            struct oj_error *err)
{
    struct oj_slice slice = {0};
    const char *text;
    oj_status status = next_rows_of_chunk(reader, max_rows, &slice, &text, err);
    if (status == OJ_ERR_NOMEM)
        return status;
    if (status == OJ_ERR_UNSUPPORTED ||
        (status != OJ_OK && reader->counts.n_rows == 0))
        return fall_back_to_features(reader, max_rows, err);
    if (status != OJ_OK || reader->errors.n_failures > 0)
    {
        oj_slice_free(&slice);
        return fail_read(reader, reader->counts.n_rows,
                         reader->errors.n_failures > 0 || text == NULL
                             ? oj_ogr_errors_text(&reader->errors)
                             : text,
                         err);
    }
    if (slice.chunk == NULL)
        return reread_null_rows(reader, err);
    status = append_chunk_rows(reader, &slice, err);
    if (status == OJ_OK && reader->attributes != NULL)
    {
        reader->counts.n_bad_texts +=
            oj_slice_count_bad_texts(&slice, reader->fields.n);
        reader->attributes->slice = slice;
    }
    else
        oj_slice_free(&slice);
    return status;
}

/* Appends the next rows to reader->flat. */
static oj_status read_rows_up_to_limit(struct oj_layer_reader *reader,
                                       int64_t max_rows, struct oj_error *err)
{
    struct oj_read_counts *counts = &reader->counts;
    int64_t first = reader->flat->n_features, limit = reader->options.limit;
    oj_status status = OJ_OK;
    if (limit >= 0 && max_rows > limit - counts->n_rows)
        max_rows = limit - counts->n_rows;
    if (reader->at_end)
        return OJ_OK;
    oj_ogr_errors_begin(&reader->errors);
    if (max_rows <= 0) /* the limit on the number of rows is reached */
        status = reread_null_rows(reader, err);
    else if (reader->lane != NULL && !reader->is_left)
        status = read_and_append_chunk_rows(reader, max_rows, err);
    else
        status = read_features(reader, max_rows, err);
    if (status == OJ_OK)
        count_wide_in_source(reader, first);
    if (status == OJ_OK)
        status = transform_new_features(reader, first, err);
    if (status == OJ_OK)
        count_torn_by_transformation(reader, first);
    oj_ogr_errors_end(&reader->errors);
    counts->n_warnings = reader->errors.n_warnings;
    memcpy(counts->first_warning, reader->errors.warning,
           sizeof counts->first_warning);
    if (status == OJ_OK)
        counts->n_rows += reader->flat->n_features - first;
    return status;
}

void oj_batch_free(struct oj_batch *batch)
{
    oj_flat_buf_free(&batch->flat);
    oj_attributes_free(batch->attributes);
    memset(batch, 0, sizeof *batch);
}

/* Empties batch and makes the reader store the next rows in it. */
static oj_status clear_batch(struct oj_layer_reader *reader,
                             struct oj_batch *batch, struct oj_error *err)
{
    oj_flat_buf_clear(&batch->flat);
    batch->flat.keeps_m = reader->options.keeps_m;
    batch->first_row = reader->counts.n_rows;
    batch->n_rows = 0;
    if (batch->attributes != NULL)
        oj_attributes_clear(batch->attributes);
    reader->flat = &batch->flat;
    reader->attributes = NULL;
    reader->carried = 0;
    if (!reader->options.keep_attributes)
        return OJ_OK;
    if (batch->attributes == NULL)
        OJ_NEW_ZEROED(batch->attributes, 1, err);
    batch->attributes->fields = &reader->fields;
    reader->attributes = batch->attributes;
    reader->carried = !reader->options.fields_only;
    return OJ_OK;
}

oj_status oj_layer_reader_next(struct oj_layer_reader *reader,
                               struct oj_batch *batch, struct oj_error *err)
{
    double started = oj_clock_seconds();
    oj_status status;
    OJ_TRY(clear_batch(reader, batch, err));
    status = read_rows_up_to_limit(reader, reader->options.batch_rows, err);
    if (status == OJ_OK)
    {
        batch->n_rows = batch->flat.n_features;
        oj_flat_counts_add(&reader->counts.shapes, &batch->flat.counts);
    }
    reader->counts.seconds += oj_clock_seconds() - started;
    return status;
}

/* ---- one feature --------------------------------------------------------- */

/* Reads a feature by FID. Adds nothing if the FID does not exist, whether the
 * driver reports an error or not. */
static oj_status get_feature(struct oj_layer_reader *reader, int64_t fid,
                             struct oj_error *err)
{
    OGRFeatureH feature = OGR_L_GetFeature(reader->layer, fid);
    if (feature == NULL)
        return OJ_OK;
    if (reader->errors.n_failures == 0)
        return add_feature(reader, feature, err);
    OGR_F_Destroy(feature);
    return fail_row(reader, fid, OJ_ERR_DATA,
                    oj_ogr_errors_text(&reader->errors), err);
}

oj_status oj_layer_reader_read_fid(struct oj_layer_reader *reader, int64_t fid,
                                   struct oj_batch *batch, struct oj_error *err)
{
    oj_status status;
    OJ_TRY(clear_batch(reader, batch, err));
    reader->carried = reader->options.keep_attributes;
    oj_ogr_errors_begin(&reader->errors);
    status = get_feature(reader, fid, err);
    if (status == OJ_OK)
        status = transform_new_features(reader, 0, err);
    oj_ogr_errors_end(&reader->errors);
    if (status == OJ_OK)
        batch->n_rows = batch->flat.n_features;
    return status;
}

/* ---- a whole layer ------------------------------------------------------- */

/* Reads all rows in chunks; reader->attributes holds one chunk at a time, which
 * is then appended to table. */
static oj_status read_all_rows_into_table(struct oj_layer_reader *reader,
                                          struct oj_table *table,
                                          struct oj_read_counts *counts,
                                          int (*progress)(int64_t, void *),
                                          void *user, struct oj_error *err)
{
    for (;;)
    {
        int64_t n = -reader->counts.n_rows;
        OJ_TRY(read_rows_up_to_limit(reader, CHUNK_ROWS, err));
        n += reader->counts.n_rows;
        OJ_TRY(oj_table_append_rows(table, reader->attributes, n, err));
        oj_attributes_clear(reader->attributes);
        *counts = reader->counts;
        counts->n_vertices = reader->flat->n_vertices;
        counts->n_table_bytes = oj_table_bytes(table);
        if (n == 0)
            return OJ_OK;
        if (progress != NULL && progress(reader->counts.n_rows, user) != 0)
            return oj_fail_cancelled(err);
        OJ_TRY(oj_check_cancel(reader->options.cancel, err));
    }
}

oj_status oj_layer_read_all(OGRLayerH layer,
                            const struct oj_read_options *options,
                            struct oj_flat_buf *flat, struct oj_table **table,
                            struct oj_read_counts *counts,
                            int (*progress)(int64_t, void *), void *user,
                            struct oj_error *err)
{
    double started = oj_clock_seconds();
    struct oj_read_options all = *options;
    struct oj_layer_reader *reader = NULL;
    struct oj_table *rows = NULL;
    struct oj_batch batch = {0};
    oj_status status;
    all.keep_attributes = all.fields_only = 1;
    status = oj_layer_reader_open(layer, &all, &reader, err);
    if (status == OJ_OK)
        status =
            oj_table_new(layer, options->fields, options->n_fields, &rows, err);
    if (status == OJ_OK)
        status = clear_batch(reader, &batch, err);
    if (status == OJ_OK)
        status =
            read_all_rows_into_table(reader, rows, counts, progress, user, err);
    if (status == OJ_OK)
    {
        counts->shapes = batch.flat.counts;
        counts->seconds = oj_clock_seconds() - started;
        oj_flat_buf_free(flat);
        *flat = batch.flat;
        memset(&batch.flat, 0, sizeof batch.flat);
        *table = rows;
    }
    else
        oj_table_free(rows);
    oj_batch_free(&batch);
    oj_layer_reader_close(reader);
    return status;
}
