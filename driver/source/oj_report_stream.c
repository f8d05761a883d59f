#include "oj_report_stream.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_timed_wait.h"
#include "../base/oj_cancel.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum
{
    READ_BYTES = 1 << 18,
    MOST_BYTES = 1 << 26, /* of a batch, unless a record is longer */
    RECORD_SEPARATOR = 0x1E
};

/* Of the time that a report may wait, until its batch is closed. */
#define SHARE_OF_WAIT 0.25

enum format
{
    FORMAT_UNKNOWN,
    FORMAT_CSV,
    FORMAT_SEQUENCE /* GeoJSONSeq */
};

static const char *const drivers[] = {NULL, "CSV", "GeoJSONSeq"};

/* Where in a record the next byte is. */
struct place_in_record
{
    int is_quoted, is_escaped;
    int64_t depth; /* of brackets */
};

/* Bytes of stdin:
 *
 *   [header][records: complete ... ][begun]
 *           n_header         n_complete    n_bytes
 */
struct oj_report_stream
{
    struct oj_report_stream_options options;
    enum format format;
    char path[64]; /* of the file in memory */
    char name[80]; /* as GDAL opens it */
    char **open_options;

    char *bytes;
    int64_t n_bytes, cap_bytes;
    int64_t n_header;   /* bytes before each batch */
    int64_t n_complete; /* bytes up to the end of the last complete record */
    int64_t n_records;  /* complete ones */
    int64_t n_scanned;
    struct place_in_record place;
    int has_begun;      /* the first byte of the first record is there */
    int has_separators; /* records begin with one */
    int is_header_known;
    int at_end;
    double first_s; /* when the first record of the batch came */

    OGRLayerH layer;
    int64_t n_rows; /* of layer */
    int64_t n_left_out;
    char left_out[128]; /* the first field that was left out */
    int64_t n_not_held;
    char not_held[128]; /* the field of the first value that was not held */
};

/* ---- names ----------------------------------------------------------------
 */

/* *format: that a prefix names. */
static int is_stdin(const char *name, enum format *format)
{
    *format = FORMAT_UNKNOWN;
    for (int i = FORMAT_CSV; i <= FORMAT_SEQUENCE; i++)
    {
        const size_t n = strlen(drivers[i]);
        if (strncasecmp(name, drivers[i], n) == 0 && name[n] == ':')
        {
            *format = (enum format)i;
            name += n + 1;
            break;
        }
    }
    return strcmp(name, "/vsistdin/") == 0 || strcmp(name, "/vsistdin") == 0;
}

int oj_report_stream_is_name(const char *name)
{
    enum format format;
    return is_stdin(name, &format);
}

/* ---- records --------------------------------------------------------------
 */

/* By its first bytes, behind a byte order mark: GeoJSON begins with a brace.
 * While these have not come, has_begun stays 0. */
static oj_status find_format(struct oj_report_stream *s, struct oj_error *err)
{
    static const char mark[3] = {'\xEF', '\xBB', '\xBF'};
    const size_t n_mark =
        s->n_bytes < (int64_t)sizeof mark ? (size_t)s->n_bytes : sizeof mark;
    int64_t i = memcmp(s->bytes, mark, n_mark) == 0 ? (int64_t)n_mark : 0;
    if (s->format == FORMAT_UNKNOWN &&
        memchr(s->bytes, '\0', (size_t)s->n_bytes) != NULL)
        return oj_fail(err, OJ_ERR_DATA,
                       "reports on %s come as CSV or GeoJSONSeq, a line each, "
                       "and these are bytes of another format",
                       s->options.name);
    while (i < s->n_bytes && strchr(" \t\r\n", s->bytes[i]) != NULL)
        i++;
    if (i == s->n_bytes)
        return OJ_OK;
    s->has_begun = 1;
    s->has_separators = s->bytes[i] == RECORD_SEPARATOR;
    if (s->format == FORMAT_UNKNOWN)
        s->format = s->has_separators || s->bytes[i] == '{' ? FORMAT_SEQUENCE
                                                            : FORMAT_CSV;
    if (s->format == FORMAT_SEQUENCE)
    {
        /* GDAL's driver wants the record, or its separator, to come first. */
        s->n_bytes -= i;
        memmove(s->bytes, s->bytes + i, (size_t)s->n_bytes);
    }
    return OJ_OK;
}

/* 1 when a record ends with this byte. A quoted line break of CSV does not end
 * one, nor does a line break in an object that begins with a separator; of
 * plain lines each is one. */
static int ends_record(const struct oj_report_stream *s,
                       struct place_in_record *place, char c)
{
    if (s->format == FORMAT_CSV)
    {
        place->is_quoted ^= c == '"';
        return c == '\n' && !place->is_quoted;
    }
    if (!s->has_separators)
        return c == '\n';
    if (c == RECORD_SEPARATOR)
        memset(place, 0, sizeof *place);
    else if (place->is_escaped)
        place->is_escaped = 0;
    else if (place->is_quoted)
    {
        place->is_escaped = c == '\\';
        place->is_quoted = c != '"';
    }
    else if (c == '"')
        place->is_quoted = 1;
    else if (c == '{' || c == '[')
        place->depth++;
    else if (c == '}' || c == ']')
        place->depth--;
    return c == '\n' && !place->is_quoted && place->depth <= 0;
}

static int is_blank(const char *bytes, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
    {
        if (strchr(" \t\r\n", bytes[i]) == NULL || bytes[i] == '\0')
            return 0;
    }
    return 1;
}

/* Finds the ends of the records among the bytes that have come. */
static oj_status scan_records(struct oj_report_stream *s, struct oj_error *err)
{
    struct place_in_record place = s->place;
    if (!s->has_begun && s->n_bytes > 0)
        OJ_TRY(find_format(s, err));
    if (!s->has_begun)
        return OJ_OK; /* white space so far */
    for (int64_t i = s->n_scanned; i < s->n_bytes; i++)
    {
        if (!ends_record(s, &place, s->bytes[i]))
            continue;
        s->n_records += !is_blank(s->bytes + s->n_complete, i - s->n_complete);
        s->n_complete = i + 1;
    }
    s->place = place;
    s->n_scanned = s->n_bytes;
    if (!s->at_end)
        return OJ_OK;
    s->n_records +=
        !is_blank(s->bytes + s->n_complete, s->n_bytes - s->n_complete);
    s->n_complete = s->n_bytes;
    return OJ_OK;
}

/* ---- bytes ----------------------------------------------------------------
 */

/* Waits for bytes, so long at most; 1: there are some, or the end. */
static int wait_for_bytes(double seconds)
{
    struct pollfd stdin_ = {STDIN_FILENO, POLLIN, 0};
    const int ms =
        seconds >= 0.001 * OJ_LOOK_MS ? OJ_LOOK_MS : 1 + (int)(1000 * seconds);
    return poll(&stdin_, 1, ms) > 0;
}

static oj_status read_bytes(struct oj_report_stream *s, struct oj_error *err)
{
    ssize_t n;
    OJ_ROOM(s->bytes, s->n_bytes, s->n_bytes + READ_BYTES, s->cap_bytes, err);
    do
        n = read(STDIN_FILENO, s->bytes + s->n_bytes, READ_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN
                   ? OJ_OK
                   : oj_fail(err, OJ_ERR_IO, "%s cannot be read: %s",
                             s->options.name, strerror(errno));
    s->at_end = n == 0;
    s->n_bytes += n;
    return OJ_OK;
}

static int is_batch_full(const struct oj_report_stream *s)
{
    return s->n_records >= s->options.most_rows || s->n_complete >= MOST_BYTES;
}

/* Forgets the records of the last batch; the header and what has begun stay. */
static void drop_records(struct oj_report_stream *s)
{
    const int64_t n = s->n_bytes - s->n_complete;
    memmove(s->bytes + s->n_header, s->bytes + s->n_complete, (size_t)n);
    s->n_bytes = s->n_header + n;
    s->n_complete = s->n_header;
    s->n_scanned = s->n_bytes;
    s->n_records = 0;
}

/* ---- GDAL -----------------------------------------------------------------
 */

/* The first n bytes as a dataset of the format; freed with close_records(). */
static GDALDatasetH open_bytes(const struct oj_report_stream *s, int64_t n)
{
    const char *const allowed[] = {drivers[s->format], NULL};
    VSILFILE *file = VSIFileFromMemBuffer(s->path, (GByte *)s->bytes,
                                          (vsi_l_offset)n, FALSE);
    if (file == NULL)
        return NULL;
    VSIFCloseL(file);
    CPLErrorReset();
    return GDALOpenEx(s->name, GDAL_OF_VECTOR | GDAL_OF_READONLY, allowed,
                      (const char *const *)s->open_options, NULL);
}

static void close_records(const struct oj_report_stream *s,
                          GDALDatasetH dataset)
{
    if (dataset != NULL)
        GDALClose(dataset);
    VSIUnlink(s->path);
}

static oj_status fail_records(const struct oj_report_stream *s,
                              struct oj_error *err)
{
    const char *why = CPLGetLastErrorMsg();
    return oj_fail(err, OJ_ERR_DATA, "reports on %s are no %s%s%s",
                   s->options.name, drivers[s->format],
                   why[0] != '\0' ? ": " : "", why);
}

/* Once the first record is there: where it holds names, it is the first line of
 * all batches, and no report. */
static oj_status find_header(struct oj_report_stream *s, struct oj_error *err)
{
    struct place_in_record place = {0};
    GDALDatasetH dataset;
    int64_t end = 0;
    int has_header;
    if (s->is_header_known || s->n_records == 0)
        return OJ_OK;
    s->is_header_known = 1;
    snprintf(s->name, sizeof s->name, "%s:%s", drivers[s->format], s->path);
    if (s->format != FORMAT_CSV)
        return OJ_OK;
    while (end < s->n_complete && !ends_record(s, &place, s->bytes[end]))
        end++;
    end += end < s->n_complete;
    dataset = open_bytes(s, end);
    has_header = dataset != NULL && GDALDatasetGetLayerCount(dataset) > 0 &&
                 OGR_L_GetFeatureCount(GDALDatasetGetLayer(dataset, 0), 1) == 0;
    close_records(s, dataset);
    if (dataset == NULL)
        return fail_records(s, err);
    if (oj_driver_has_open_option(GDALGetDriverByName("CSV"), "HEADERS"))
        s->open_options = CSLSetNameValue(s->open_options, "HEADERS",
                                          has_header ? "YES" : "NO");
    s->n_header = has_header ? end : 0;
    s->n_records -= has_header;
    return OJ_OK;
}

/* Waits until there are records, and then for others that come soon. */
static oj_status collect_records(struct oj_report_stream *s,
                                 struct oj_error *err)
{
    const double wait_s = SHARE_OF_WAIT * s->options.wait_s;
    double left_s = wait_s;
    int is_collecting = 0;
    while (!s->at_end && !is_batch_full(s) && left_s > 0 &&
           !oj_cancel_input_has_ended())
    {
        OJ_TRY(oj_cancel_check(err));
        if (wait_for_bytes(is_collecting ? left_s : 1.0))
        {
            OJ_TRY(read_bytes(s, err));
            OJ_TRY(scan_records(s, err));
            OJ_TRY(find_header(s, err));
        }
        if (!is_collecting && s->n_records > 0)
        {
            is_collecting = 1;
            s->first_s = oj_clock_seconds();
        }
        if (is_collecting)
            left_s = s->first_s + wait_s - oj_clock_seconds();
    }
    return OJ_OK;
}

/* Makes a field of 32-bit integers hold what may follow: 64 bits in the key; of
 * GeoJSON, where 3 may be followed by 3.5, reals in others. */
static void widen_integer_field(const struct oj_report_stream *s, int field)
{
    OGRFieldDefnH defn =
        OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(s->layer), field);
    const char *name = OGR_Fld_GetNameRef(defn);
    const int is_key = strcasecmp(name, s->options.key) == 0;
    OGRFieldDefnH wider;
    if (OGR_Fld_GetType(defn) != OFTInteger ||
        OGR_Fld_GetSubType(defn) != OFSTNone ||
        (!is_key && s->format != FORMAT_SEQUENCE))
        return;
    wider = OGR_Fld_Create(name, is_key ? OFTInteger64 : OFTReal);
    (void)OGR_L_AlterFieldDefn(s->layer, field, wider, ALTER_TYPE_FLAG);
    OGR_Fld_Destroy(wider);
}

/* The layer in memory, like this one. */
static oj_status make_layer(struct oj_report_stream *s, OGRLayerH like,
                            GDALDatasetH dataset, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(like);
    OGRwkbGeometryType type = OGR_L_GetGeomType(like);
    if (s->format == FORMAT_SEQUENCE) /* later ones may be of any type */
        type = wkbUnknown;
    s->layer = GDALDatasetCreateLayer(dataset, "reports",
                                      OGR_L_GetSpatialRef(like), type, NULL);
    for (int i = 0; s->layer != NULL && i < OGR_FD_GetFieldCount(defn); i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        if (OGR_L_CreateField(s->layer, field, TRUE) != OGRERR_NONE)
            s->layer = NULL;
        else
            widen_integer_field(s, i);
    }
    return s->layer != NULL ? OJ_OK
                            : oj_fail(err, OJ_ERR_INTERNAL,
                                      "GDAL cannot hold a layer in memory");
}

/* Where the fields of a batch go, by name; -1: nowhere. */
static oj_status map_fields(struct oj_report_stream *s, OGRFeatureDefnH from,
                            int **map, struct oj_error *err)
{
    OGRFeatureDefnH to = OGR_L_GetLayerDefn(s->layer);
    const int n = OGR_FD_GetFieldCount(from);
    OJ_NEW(*map, n + 1, err);
    for (int i = 0; i < n; i++)
    {
        const char *name = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(from, i));
        OGRFieldDefnH there =
            i < OGR_FD_GetFieldCount(to) ? OGR_FD_GetFieldDefn(to, i) : NULL;
        /* Names of CSV may repeat. */
        (*map)[i] =
            there != NULL && strcmp(OGR_Fld_GetNameRef(there), name) == 0
                ? i
                : OGR_FD_GetFieldIndex(to, name);
        if ((*map)[i] >= 0)
            continue;
        if (s->n_left_out++ == 0)
            snprintf(s->left_out, sizeof s->left_out, "%s", name);
    }
    return OJ_OK;
}

/* 1 when a field of this type holds the value of a field of another one. */
static int holds_value(OGRFieldType type, OGRFeatureH from, int field)
{
    const OGRFieldType of = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(from, field));
    const int is_whole = type == OFTInteger || type == OFTInteger64;
    double number;
    if (of == type || type == OFTString || !(is_whole || type == OFTReal))
        return 1;
    if (of == OFTString && CPLGetValueType(OGR_F_GetFieldAsString(
                               from, field)) == CPL_VALUE_STRING)
        return 0;
    number = OGR_F_GetFieldAsDouble(from, field);
    return !is_whole ||
           (number == floor(number) &&
            fabs(number) <= (type == OFTInteger ? 2147483647.0 : 9e15));
}

/* Those that the driver would change become NULL. */
static void clear_values_not_held(struct oj_report_stream *s, OGRFeatureH from,
                                  OGRFeatureH to, const int *map)
{
    for (int i = 0; i < OGR_F_GetFieldCount(from); i++)
    {
        OGRFieldDefnH field;
        if (map[i] < 0 || !OGR_F_IsFieldSetAndNotNull(from, i))
            continue;
        field = OGR_F_GetFieldDefnRef(to, map[i]);
        if (holds_value(OGR_Fld_GetType(field), from, i))
            continue;
        OGR_F_SetFieldNull(to, map[i]);
        if (s->n_not_held++ == 0)
            snprintf(s->not_held, sizeof s->not_held, "%s",
                     OGR_Fld_GetNameRef(field));
    }
}

static oj_status add_report(struct oj_report_stream *s, OGRFeatureH from,
                            const int *map, struct oj_error *err)
{
    OGRFeatureH to = OGR_F_Create(OGR_L_GetLayerDefn(s->layer));
    OGRErr result = OGRERR_NOT_ENOUGH_MEMORY;
    if (to != NULL)
    {
        result = OGR_F_SetFromWithMap(to, from, TRUE, map);
        clear_values_not_held(s, from, to, map);
        OGR_F_SetFID(to, s->n_rows);
        if (result == OGRERR_NONE)
            result = OGR_L_CreateFeature(s->layer, to);
        OGR_F_Destroy(to);
    }
    OGR_F_Destroy(from);
    if (result != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: reports");
    s->n_rows++;
    return OJ_OK;
}

static oj_status copy_reports(struct oj_report_stream *s, OGRLayerH from,
                              struct oj_error *err)
{
    oj_status status;
    int *map;
    OJ_TRY(map_fields(s, OGR_L_GetLayerDefn(from), &map, err));
    status = OJ_OK;
    CPLErrorReset();
    while (status == OJ_OK)
    {
        OGRFeatureH report = OGR_L_GetNextFeature(from);
        if (CPLGetLastErrorType() == CE_Failure)
            status = fail_records(s, err);
        if (report == NULL)
            break;
        if (status == OJ_OK)
            status = add_report(s, report, map, err);
        else
            OGR_F_Destroy(report);
    }
    oj_free(map);
    return status;
}

static oj_status delete_rows(struct oj_report_stream *s, struct oj_error *err)
{
    for (; s->n_rows > 0; s->n_rows--)
    {
        if (OGR_L_DeleteFeature(s->layer, s->n_rows - 1) != OGRERR_NONE)
            return oj_fail(err, OJ_ERR_INTERNAL,
                           "GDAL keeps rows of a layer in memory");
    }
    return OJ_OK;
}

/* The records that are complete become the rows of the layer, which is made for
 * the first of them in dataset. */
static oj_status load_records(struct oj_report_stream *s, GDALDatasetH dataset,
                              struct oj_error *err)
{
    GDALDatasetH records = open_bytes(s, s->n_complete);
    OGRLayerH from = records != NULL ? GDALDatasetGetLayer(records, 0) : NULL;
    oj_status status = from != NULL ? OJ_OK : fail_records(s, err);
    if (status == OJ_OK && dataset != NULL)
        status = make_layer(s, from, dataset, err);
    if (status == OJ_OK)
        status = copy_reports(s, from, err);
    close_records(s, records);
    drop_records(s);
    return status;
}

/* ---- the stream -----------------------------------------------------------
 */

static oj_status open_stream(struct oj_report_stream *s, GDALDatasetH dataset,
                             struct oj_error *err)
{
    OJ_TRY(collect_records(s, err));
    if (s->n_records == 0 && s->n_header == 0)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s ends before the first report: reports come as CSV "
                       "or GeoJSONSeq, a line each",
                       s->options.name);
    return load_records(s, dataset, err);
}

oj_status oj_report_stream_open(const struct oj_report_stream_options *options,
                                struct oj_report_stream **out,
                                GDALDatasetH *dataset, OGRLayerH *layer,
                                struct oj_error *err)
{
    struct oj_report_stream *s;
    GDALDatasetH memory;
    oj_status status;
    OJ_NEW_ZEROED(s, 1, err);
    s->options = *options;
    (void)is_stdin(options->name, &s->format);
    s->open_options = CSLDuplicate((CSLConstList)options->open_options);
    snprintf(s->path, sizeof s->path, "/vsimem/ogrjoin-%d/reports",
             (int)getpid());
    memory = oj_driver_new_in_memory();
    status = memory != NULL ? open_stream(s, memory, err)
                            : oj_fail(err, OJ_ERR_INTERNAL,
                                      "GDAL cannot hold a layer in memory");
    if (status == OJ_OK)
    {
        *out = s;
        *dataset = memory;
        *layer = s->layer;
        return OJ_OK;
    }
    if (memory != NULL)
        GDALClose(memory);
    oj_report_stream_close(s);
    return status;
}

oj_status oj_report_stream_refill(void *stream, int64_t *n_rows,
                                  struct oj_error *err)
{
    struct oj_report_stream *s = stream;
    OJ_TRY(delete_rows(s, err));
    while (s->n_rows == 0)
    {
        OJ_TRY(collect_records(s, err));
        if (s->n_records == 0)
            break;
        OJ_TRY(load_records(s, NULL, err));
    }
    *n_rows = s->n_rows;
    return OJ_OK;
}

void oj_report_stream_warn(const struct oj_report_stream *s)
{
    if (s == NULL)
        return;
    if (s->n_left_out > 0)
        oj_warn("reports on %s have fields that the first ones had not, as "
                "'%s': these are left out",
                s->options.name, s->left_out);
    if (s->n_not_held > 0)
        oj_warn("%s: %s not fit the type that the field had in the first "
                "reports, as in '%s': NULL is written",
                s->options.name,
                oj_counted(s->n_not_held, "value does", "values do"),
                s->not_held);
    if (s->n_bytes > s->n_complete && !s->at_end)
        oj_warn("the last report on %s is cut off in the middle, and left out",
                s->options.name);
}

void oj_report_stream_close(struct oj_report_stream *s)
{
    if (s == NULL)
        return;
    oj_free(s->bytes);
    CSLDestroy(s->open_options);
    oj_free(s);
}
