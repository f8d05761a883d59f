#include "oj_report_stream.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_timed_wait.h"
#include "../../flatten/base/oj_utf8.h"
#include "../../flatten/read/oj_ogr_errors.h"
#include "../base/oj_cancel.h"
#include "../base/oj_gdal_driver.h"
#include "../base/oj_message.h"
#include "../files/oj_text_file_write.h"
#include "oj_csv_row.h"
#include "oj_report_value.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum
{
    READ_BYTES = 1 << 18,
    /* maximum bytes of a batch, unless a single record is longer */
    MOST_BYTES = 1 << 26,
    MOST_REPORT_BYTES = 1 << 24,
    /* maximum lines of a CSV record with a quoted text */
    MOST_REPORT_LINES = 100,
    /* maximum characters of a report that are quoted in a message */
    EXCERPT_CHARACTERS = 60,
    RECORD_SEPARATOR = 0x1E
};

/* A batch is closed after this fraction of options.wait_s, the time that a
 * report may wait. */
#define SHARE_OF_WAIT 0.25

enum format
{
    FORMAT_UNKNOWN,
    FORMAT_CSV,
    FORMAT_SEQUENCE /* GeoJSON features, one per line (GeoJSONSeq) */
};

static const char *const drivers[] = {NULL, "CSV", "GeoJSONSeq"};

/* State of the scan for the end of a record. */
struct place_in_record
{
    int is_quoted, is_escaped;
    int64_t depth;   /* number of open brackets */
    int64_t n_lines; /* line breaks inside quotations so far; used for CSV */
};

/* A record: one report, or the first line of CSV. */
struct report_record
{
    /* offset and number of its bytes in stream->bytes, including the line break
     */
    int64_t begin, n;
    int64_t number; /* number of the report in the stream, from 1 on */
    int64_t line;   /* number of its first line, from 1 on */
    int is_broken;  /* 1 if the report cannot be read */
};

/* What was left out or lost, for the warnings. Texts describe the first case.
 */
struct findings
{
    int64_t n_left_out;
    char left_out[128]; /* name of the first field that was left out */
    int64_t n_not_held;
    /* first value that its field could not hold, and the number of its report
     */
    char not_held[400];
    int64_t n_unread;
    /* number of the first report that could not be read */
    int64_t first_unread;
    char unread[640]; /* reason why this report could not be read */
};

/* A stream of reports. `bytes` holds the part of stdin that is in use:
 *
 *   [header][records: complete ... ][incomplete]
 *           n_header         n_complete         n_bytes
 *
 * The header of CSV is the first line.  The header of GeoJSONSeq is a feature
 * made by write_sample_feature(), with a text in each text field. Without it
 * GDAL would read a text field as dates if all its texts in a batch look like
 * dates.
 *
 * A report that cannot be read ends the stream: `failure` is set, and returned
 * after the reports before it. With skip_failures such reports are counted. */
struct oj_report_stream
{
    struct oj_report_stream_options options;
    enum format format;
    char path[64]; /* path of the file in memory */
    char name[80]; /* name under which GDAL opens that file */
    char **open_options;
    /* value of the open option AUTODETECT_TYPE for CSV, used only for the first
     * batch; NULL if it is not given */
    const char *detects_types;

    char *bytes;
    int64_t n_bytes, cap_bytes;
    int64_t n_header; /* bytes of the header, which precede each batch */
    /* 1 if the header is a feature made by write_sample_feature() */
    int has_sample;
    int64_t n_complete; /* bytes up to the end of the last complete record */
    struct report_record *records;
    int64_t n_records, cap_records; /* complete records in bytes */
    int64_t n_reports;              /* reports of all batches so far */
    int64_t line;                   /* line number at n_complete, from 1 on */
    /* offset up to which the incomplete record was searched for its end */
    int64_t n_scanned;
    struct place_in_record place;
    int has_begun; /* 1 if the first byte of the first record has arrived */
    int has_separators; /* 1 if each record begins with RECORD_SEPARATOR */
    int is_header_known;
    struct oj_csv_columns columns;
    int has_integer_keys; /* 1 if the key of the first report is an integer */
    /* 1 if the incomplete record is too long; all of it is left out */
    int is_too_long;
    int at_end;
    double first_s; /* time at which the first record of the batch arrived */

    OGRLayerH layer;
    int64_t n_rows; /* number of rows of layer */
    struct findings found;
    struct findings
        warned; /* the findings when warn_of_first_losses() last warned */
    struct oj_error failure;
    int has_failed; /* 1 if all reports before the failure were returned */
};

/* ---- names --------------------------------------------------------------- */

/* Returns 1 if the name is that of standard input. Stores the format that its
 * prefix names in *format. */
static int read_stdin_name_and_format(const char *name, enum format *format)
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
    return read_stdin_name_and_format(name, &format);
}

/* ---- records ------------------------------------------------------------- */

static int64_t count_line_breaks(const char *bytes, int64_t n)
{
    const char *at = bytes, *end = bytes + n;
    int64_t count = 0;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL)
    {
        count++;
        at++;
    }
    return count;
}

/* Finds the format from the first bytes after a byte order mark: GeoJSON begins
 * with a brace. has_begun stays 0 until these bytes have arrived. */
static oj_status find_format(struct oj_report_stream *s, struct oj_error *err)
{
    static const char mark[3] = {'\xEF', '\xBB', '\xBF'};
    const size_t n_mark =
        s->n_bytes < (int64_t)sizeof mark ? (size_t)s->n_bytes : sizeof mark;
    const int64_t begin =
        memcmp(s->bytes, mark, n_mark) == 0 ? (int64_t)n_mark : 0;
    int64_t i = begin;
    if (s->format == FORMAT_UNKNOWN &&
        memchr(s->bytes, '\0', (size_t)s->n_bytes) != NULL)
        return oj_fail(err, OJ_ERR_DATA,
                       "the bytes on %s contain a zero byte, so they are "
                       "neither CSV nor GeoJSONSeq in UTF-8: write reports in "
                       "one of these formats, one per line, without zero bytes",
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
    /* GDAL's GeoJSONSeq driver requires that the file begins with the record or
     * its separator. */
    i = s->format == FORMAT_SEQUENCE ? i : begin;
    s->line += count_line_breaks(s->bytes, i);
    s->n_bytes -= i;
    memmove(s->bytes, s->bytes + i, (size_t)s->n_bytes);
    return OJ_OK;
}

/* Updates place for the next byte of a JSON text. */
static void advance_json_state(struct place_in_record *place, char c)
{
    if (place->is_escaped)
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
}

/* Updates place for the next byte; returns 1 if a record ends with it. A line
 * break ends a record, except inside a quotation of CSV, or inside an object if
 * records begin with a separator. */
static int ends_record(const struct oj_report_stream *s,
                       struct place_in_record *place, char c)
{
    if (s->format == FORMAT_CSV)
    {
        place->is_quoted ^= c == '"';
        place->n_lines += c == '\n';
        return c == '\n' && !place->is_quoted;
    }
    advance_json_state(place, c);
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

/* Writes the first characters of a record as text for a message; bytes that are
 * not text are escaped. */
static void write_excerpt(const char *bytes, int64_t n, char *text, size_t size)
{
    int64_t i = 0;
    while (i < n && (bytes[i] == RECORD_SEPARATOR || is_blank(bytes + i, 1)))
        i++;
    while (n > i && is_blank(bytes + n - 1, 1))
        n--;
    text[0] = '\0';
    for (int count = 0; i < n && count < EXCERPT_CHARACTERS; count++)
    {
        uint32_t code = 0;
        const int width =
            oj_utf8_decode((const unsigned char *)bytes + i, n - i, &code);
        if (bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == '\t')
            oj_message_append(text, size, "\\%c",
                              bytes[i] == '\n'   ? 'n'
                              : bytes[i] == '\r' ? 'r'
                                                 : 't');
        else if (width == 0 || code < 0x20 || (code >= 0x7F && code < 0xA0))
            oj_message_append(text, size, "\\x%02X", (unsigned char)bytes[i]);
        else
            oj_message_append(text, size, "%.*s", width, bytes + i);
        i += width > 1 && code >= 0xA0 ? width : 1;
    }
    if (i < n)
        oj_message_append(text, size, "...");
}

/* Notes that a report cannot be read, and why. Of several such reports the one
 * with the lowest number is kept; calls may come in any order. */
static void record_unread_report(struct oj_report_stream *s,
                                 const struct report_record *record,
                                 const char *format, ...) OJ_PRINTF(3, 4);

static void record_unread_report(struct oj_report_stream *s,
                                 const struct report_record *record,
                                 const char *format, ...)
{
    struct findings *found = &s->found;
    const int is_header = s->format == FORMAT_CSV && !s->is_header_known;
    const int is_first =
        found->n_unread == 0 || record->number < found->first_unread;
    char why[256], excerpt[512], place[80] = "the first line";
    va_list args;
    found->n_unread++;
    if (!is_first)
        return;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    write_excerpt(s->bytes + record->begin, record->n, excerpt, sizeof excerpt);
    if (!is_header)
        snprintf(place, sizeof place, "report %lld (line %lld)",
                 (long long)record->number, (long long)record->line);
    found->first_unread = record->number;
    snprintf(found->unread, sizeof found->unread,
             "%s on %s cannot be read: %s: '%.300s'", place, s->options.name,
             why, excerpt);
    if (is_header)
        oj_fail(&s->failure, OJ_ERR_DATA, "%s", found->unread);
    else if (!s->options.skip_failures)
        oj_fail(&s->failure, OJ_ERR_DATA,
                "%s; -skipfailures leaves such reports out", found->unread);
}

/* Leaves out the first line of the incomplete record, because it has a stray
 * quotation mark, and continues with the next line. */
static void leave_out_line_with_stray_quote(struct oj_report_stream *s,
                                            int64_t end, const char *why)
{
    const int64_t begin = s->n_complete;
    const char *line_end =
        memchr(s->bytes + begin, '\n', (size_t)(end - begin));
    const struct place_in_record start = {0};
    struct report_record record = {.begin = begin, .line = s->line};
    record.n =
        line_end != NULL ? line_end + 1 - (s->bytes + begin) : end - begin;
    record.number = ++s->n_reports;
    record_unread_report(s, &record, "%s", why);
    s->n_complete = s->n_scanned = begin + record.n;
    s->place = start;
    s->line++;
}

static oj_status find_header_line(struct oj_report_stream *s,
                                  struct oj_error *err);

/* Ends a record: it has the bytes from n_complete to end. Blank records are
 * dropped. */
static oj_status end_record(struct oj_report_stream *s, int64_t end,
                            struct oj_error *err)
{
    const struct place_in_record start = {0};
    struct report_record record = {.begin = s->n_complete, .line = s->line};
    int64_t n_lines;
    record.n = end - record.begin;
    n_lines = count_line_breaks(s->bytes + record.begin, record.n);
    if (n_lines > 1 && s->format == FORMAT_CSV && !s->is_too_long &&
        s->columns.separator != '\0' &&
        !oj_csv_row_quotes_fields(&s->columns, s->bytes + record.begin,
                                  record.n))
    {
        leave_out_line_with_stray_quote(
            s, end,
            "it has a quotation mark whose partner is not at "
            "the end of a field");
        return OJ_OK;
    }
    s->n_complete = end;
    s->line += n_lines;
    s->place = start;
    if (s->is_too_long || is_blank(s->bytes + record.begin, record.n))
    {
        s->is_too_long = 0;
        return OJ_OK;
    }
    record.number = ++s->n_reports;
    OJ_ROOM(s->records, s->n_records, s->n_records + 1, s->cap_records, err);
    s->records[s->n_records++] = record;
    return s->is_header_known ? OJ_OK : find_header_line(s, err);
}

/* Leaves out the incomplete record, because it is longer than a report may be.
 */
static void leave_out_long_record(struct oj_report_stream *s)
{
    struct report_record record = {.begin = s->n_complete, .line = s->line};
    if (s->format == FORMAT_CSV && s->place.n_lines > 0)
    {
        leave_out_line_with_stray_quote(
            s, s->n_scanned,
            CPLSPrintf("it has a quotation mark without a "
                       "partner within %d lines or %d MB",
                       MOST_REPORT_LINES, MOST_REPORT_BYTES >> 20));
        return;
    }
    record.n = s->n_scanned - record.begin;
    if (!s->is_too_long)
    {
        record.number = ++s->n_reports;
        record_unread_report(s, &record, "it is longer than %d MB",
                             MOST_REPORT_BYTES >> 20);
    }
    s->is_too_long = 1;
    s->line += count_line_breaks(s->bytes + record.begin, record.n);
    s->n_complete = s->n_scanned;
}

/* Scans for the end of the incomplete record. Sets *end to the offset after it,
 * or to -1 if the end has not arrived yet. */
static void find_record_end(struct oj_report_stream *s, int64_t *end)
{
    struct place_in_record place = s->place;
    const int64_t begin = s->n_complete;
    const int64_t most = s->n_bytes < begin + MOST_REPORT_BYTES
                             ? s->n_bytes
                             : begin + MOST_REPORT_BYTES;
    int64_t i = s->n_scanned;
    *end = -1;
    if (!s->has_separators && (s->format != FORMAT_CSV || s->is_too_long))
    {
        const char *line_end = memchr(s->bytes + i, '\n', (size_t)(most - i));
        s->n_scanned = line_end != NULL ? line_end + 1 - s->bytes : most;
        if (line_end != NULL)
            *end = s->n_scanned;
        return;
    }
    while (i < most && *end < 0 && place.n_lines < MOST_REPORT_LINES)
    {
        const char c = s->bytes[i];
        /* A truncated record ends where the next record begins. */
        if (c == RECORD_SEPARATOR && s->has_separators &&
            !is_blank(s->bytes + begin, i - begin))
        {
            *end = i;
            break;
        }
        i++;
        if (ends_record(s, &place, c))
            *end = i;
    }
    s->place = place;
    s->n_scanned = i;
}

static oj_status scan_bytes(struct oj_report_stream *s, struct oj_error *err)
{
    while (s->n_scanned < s->n_bytes && s->failure.status == OJ_OK)
    {
        int64_t end;
        find_record_end(s, &end);
        if (end >= 0)
            OJ_TRY(end_record(s, end, err));
        else if (s->n_scanned - s->n_complete >= MOST_REPORT_BYTES ||
                 s->place.n_lines >= MOST_REPORT_LINES)
            leave_out_long_record(s);
    }
    return OJ_OK;
}

/* Drops the complete records; the header and the incomplete record stay. */
static void drop_complete_records(struct oj_report_stream *s)
{
    const int64_t n = s->n_bytes - s->n_complete;
    memmove(s->bytes + s->n_header, s->bytes + s->n_complete, (size_t)n);
    s->n_scanned -= s->n_complete - s->n_header;
    s->n_bytes = s->n_header + n;
    s->n_complete = s->n_header;
    s->n_records = 0;
}

/* Divides the bytes that have arrived into records. */
static oj_status scan_records(struct oj_report_stream *s, struct oj_error *err)
{
    if (!s->has_begun && s->n_bytes > 0)
        OJ_TRY(find_format(s, err));
    if (!s->has_begun)
        return OJ_OK; /* only white space has arrived so far */
    OJ_TRY(scan_bytes(s, err));
    while (s->at_end && s->n_complete < s->n_bytes &&
           s->failure.status == OJ_OK)
    {
        if (s->format == FORMAT_CSV && s->place.is_quoted)
            leave_out_line_with_stray_quote(
                s, s->n_bytes, "it has a quotation mark without a partner");
        else
            OJ_TRY(end_record(s, s->n_bytes, err));
        OJ_TRY(scan_bytes(s, err));
    }
    if (s->n_records == 0)
        drop_complete_records(s);
    return OJ_OK;
}

/* ---- bytes --------------------------------------------------------------- */

/* Waits until bytes can be read, at most `seconds` and at most
 * OJ_CANCEL_POLL_MS, after which the caller polls the cancel flag. Returns 1 if
 * there are bytes or the end of the input. */
static int wait_for_bytes(double seconds)
{
    struct pollfd stdin_ = {STDIN_FILENO, POLLIN, 0};
    const int ms = seconds >= 0.001 * OJ_CANCEL_POLL_MS
                       ? OJ_CANCEL_POLL_MS
                       : 1 + (int)(1000 * seconds);
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

/* Returns 1 if more reports can arrive. */
static int can_receive_more(const struct oj_report_stream *s)
{
    return !s->at_end && s->failure.status == OJ_OK &&
           !oj_cancel_input_has_ended();
}

static int is_batch_full(const struct oj_report_stream *s)
{
    return s->n_records >= s->options.most_rows || s->n_complete >= MOST_BYTES;
}

/* ---- GDAL ---------------------------------------------------------------- */

/* Opens n bytes as a dataset of the stream's format; close_bytes() frees it.
 * Returns NULL on failure. */
static GDALDatasetH open_bytes(const struct oj_report_stream *s, char *bytes,
                               int64_t n, char **open_options)
{
    const char *const allowed[] = {drivers[s->format], NULL};
    VSILFILE *file =
        VSIFileFromMemBuffer(s->path, (GByte *)bytes, (vsi_l_offset)n, FALSE);
    if (file == NULL)
        return NULL;
    VSIFCloseL(file);
    CPLErrorReset();
    return GDALOpenEx(s->name, GDAL_OF_VECTOR | GDAL_OF_READONLY, allowed,
                      (const char *const *)open_options, NULL);
}

static void close_bytes(const struct oj_report_stream *s, GDALDatasetH dataset)
{
    if (dataset != NULL)
        GDALClose(dataset);
    VSIUnlink(s->path);
}

static oj_status fail_records(const struct oj_report_stream *s, const char *why,
                              struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA, "reports on %s cannot be read as %s%s%s",
                   s->options.name, drivers[s->format],
                   why[0] != '\0' ? ": " : "", why);
}

/* Puts a header of n bytes before all records. */
static oj_status put_header_before_records(struct oj_report_stream *s,
                                           const char *text, int64_t n,
                                           struct oj_error *err)
{
    OJ_ROOM(s->bytes, s->n_bytes, s->n_bytes + n, s->cap_bytes, err);
    memmove(s->bytes + n, s->bytes, (size_t)s->n_bytes);
    memcpy(s->bytes, text, (size_t)n);
    for (int64_t i = 0; i < s->n_records; i++)
        s->records[i].begin += n;
    s->n_bytes += n;
    s->n_scanned += n;
    s->n_complete += n;
    s->n_header = n;
    return OJ_OK;
}

/* ---- rows of CSV --------------------------------------------------------- */

/* Writes a header with the names that GDAL gives to columns without names.
 * Without such a header GDAL would look for names in the first row of each
 * batch. */
static oj_status put_header_of_default_names(struct oj_report_stream *s,
                                             struct oj_error *err)
{
    const int n = s->columns.n;
    const int64_t size = 24 * (int64_t)n + 1;
    char *text;
    oj_status status;
    OJ_NEW(text, size, err);
    text[0] = '\0';
    for (int i = 0; i < n; i++)
        oj_message_append(text, (size_t)size, "field_%d%c", i + 1,
                          i + 1 < n ? s->columns.separator : '\n');
    status = put_header_before_records(s, text, (int64_t)strlen(text), err);
    oj_free(text);
    return status;
}

/* Finds the columns of the geometry, by letting GDAL read two made-up rows
 * (oj_csv_row.h). */
static oj_status find_geometry_columns(struct oj_report_stream *s,
                                       struct oj_error *err)
{
    struct oj_csv_columns *columns = &s->columns;
    const int64_t size = oj_csv_columns_probe_size(columns);
    char *text, *rows;
    GDALDatasetH dataset;
    OJ_NEW(text, s->n_header + size, err);
    memcpy(text, s->bytes, (size_t)s->n_header);
    rows = text + s->n_header;
    oj_csv_columns_write_probe(columns, rows, (size_t)size);
    dataset = open_bytes(s, text, s->n_header + (int64_t)strlen(rows),
                         s->open_options);
    if (dataset != NULL)
        oj_csv_columns_read_probe(columns, GDALDatasetGetLayer(dataset, 0));
    close_bytes(s, dataset);
    oj_free(text);
    return OJ_OK;
}

/* Opens the first record alone, to find out whether it holds the names of the
 * columns (*has_names 1) or is a row (*has_names 0). Stores its number of
 * fields in *n_fields. */
static oj_status detect_column_names(struct oj_report_stream *s, int *has_names,
                                     int *n_fields, struct oj_error *err)
{
    const struct report_record *first = s->records;
    GDALDatasetH dataset;
    OGRLayerH layer;
    char **options = CSLDuplicate(s->open_options);
    if (oj_driver_has_open_option(GDALGetDriverByName("CSV"),
                                  "KEEP_GEOM_COLUMNS"))
        options = CSLSetNameValue(options, "KEEP_GEOM_COLUMNS", "YES");
    dataset = open_bytes(s, s->bytes, first->begin + first->n, options);
    CSLDestroy(options);
    layer = dataset != NULL ? GDALDatasetGetLayer(dataset, 0) : NULL;
    if (layer != NULL)
    {
        *has_names = OGR_L_GetFeatureCount(layer, 1) == 0;
        *n_fields = OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(layer));
    }
    close_bytes(s, dataset);
    return layer != NULL ? OJ_OK : fail_records(s, CPLGetLastErrorMsg(), err);
}

/* Called when the first record is complete. If it holds the names of the
 * columns, it becomes the header of all batches, and is not counted as a
 * report. */
static oj_status read_header(struct oj_report_stream *s, struct oj_error *err)
{
    const struct report_record first = s->records[0];
    int has_names = 0, n_fields = 0;
    OJ_TRY(detect_column_names(s, &has_names, &n_fields, err));
    oj_csv_columns_find(&s->columns, s->bytes + first.begin, first.n, n_fields);
    if (oj_driver_has_open_option(GDALGetDriverByName("CSV"), "HEADERS"))
        s->open_options = CSLSetNameValue(s->open_options, "HEADERS", "YES");
    s->n_records -= has_names;
    s->n_reports -= has_names;
    if (has_names)
        s->n_header = first.begin + first.n;
    else
        OJ_TRY(put_header_of_default_names(s, err));
    if (!CPLTestBool(
            CSLFetchNameValueDef(s->open_options, "MERGE_SEPARATOR", "NO")))
        return find_geometry_columns(s, err);
    oj_csv_columns_init(&s->columns); /* fields cannot be counted */
    return OJ_OK;
}

static oj_status find_header_line(struct oj_report_stream *s,
                                  struct oj_error *err)
{
    struct oj_ogr_errors errors = {0};
    oj_status status;
    s->is_header_known = 1;
    snprintf(s->name, sizeof s->name, "%s:%s", drivers[s->format], s->path);
    if (s->format != FORMAT_CSV)
        return OJ_OK;
    oj_ogr_errors_begin(&errors);
    status = read_header(s, err);
    oj_ogr_errors_end(&errors);
    return status;
}

static int check_row_or_note_flaw(struct oj_report_stream *s,
                                  const struct report_record *record)
{
    char flaw[128];
    if (!oj_csv_row_has_flaw(&s->columns, s->bytes + record->begin, record->n,
                             flaw, sizeof flaw))
        return 1;
    record_unread_report(s, record, "%s", flaw);
    return 0;
}

/* Returns 0 if every brace except the first follows a colon or a bracket, so
 * that it opens a member of the object. A quick test for most lines. */
static int may_have_second_object(const char *bytes, int64_t n)
{
    const char *end = bytes + n, *brace = memchr(bytes, '{', (size_t)n);
    while (brace != NULL &&
           (brace = memchr(brace + 1, '{', (size_t)(end - brace - 1))) != NULL)
    {
        const char *before = brace - 1;
        while (is_blank(before, 1))
            before--;
        if (*before != ':' && *before != '[')
            return 1;
    }
    return 0;
}

/* Returns 1 if another object follows in the line; GDAL would ignore it without
 * an error. */
static int has_second_object(const struct oj_report_stream *s,
                             const struct report_record *record)
{
    const char *bytes = s->bytes + record->begin;
    struct place_in_record place = {0};
    int has_ended = 0;
    if (!may_have_second_object(bytes, record->n))
        return 0;
    for (int64_t i = 0; i < record->n; i++)
    {
        if (has_ended && bytes[i] == '{')
            return 1;
        advance_json_state(&place, bytes[i]);
        has_ended |= place.depth == 0 && !place.is_quoted && bytes[i] == '}';
    }
    return 0;
}

/* Marks the records that GDAL would read differently from what they contain. */
static void mark_unsound_records(struct oj_report_stream *s)
{
    const int has_columns =
        s->format == FORMAT_CSV && s->columns.separator != '\0';
    for (int64_t i = 0; i < s->n_records; i++)
    {
        struct report_record *record = &s->records[i];
        if (has_columns)
            record->is_broken = !check_row_or_note_flaw(s, record);
        else if (s->format == FORMAT_SEQUENCE && has_second_object(s, record))
        {
            record->is_broken = 1;
            record_unread_report(
                s, record,
                "a second object follows in its line, but GeoJSONSeq "
                "has one feature per line");
        }
    }
}

/* Removes the marked records from the batch and moves the others together
 * behind the header. Without skip_failures all records after a marked one are
 * removed, too. */
static void remove_marked_records(struct oj_report_stream *s)
{
    int64_t n = 0, end = s->n_header;
    for (int64_t i = 0; i < s->n_records; i++)
    {
        struct report_record record = s->records[i];
        if (s->failure.status != OJ_OK &&
            record.number >= s->found.first_unread)
            break;
        if (record.is_broken)
            continue;
        memmove(s->bytes + end, s->bytes + record.begin, (size_t)record.n);
        record.begin = end;
        end += record.n;
        s->records[n++] = record;
    }
    s->n_records = n;
}

static void leave_out_unsound_records(struct oj_report_stream *s)
{
    mark_unsound_records(s);
    remove_marked_records(s);
}

/* Waits until there is a record, and then some more time for further ones. */
static oj_status collect_records(struct oj_report_stream *s,
                                 struct oj_error *err)
{
    const double wait_s = SHARE_OF_WAIT * s->options.wait_s;
    double left_s = wait_s;
    int is_collecting = 0;
    while (can_receive_more(s) && !is_batch_full(s) && left_s > 0)
    {
        OJ_TRY(oj_cancel_check(err));
        if (wait_for_bytes(is_collecting ? left_s : 1.0))
        {
            OJ_TRY(read_bytes(s, err));
            OJ_TRY(scan_records(s, err));
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

/* Opens the first n bytes with the option AUTODETECT_TYPE that the user set for
 * CSV. Only the first batch is read with that option: values of later batches
 * are converted to the types of the first. */
static GDALDatasetH open_with_types(const struct oj_report_stream *s, int64_t n)
{
    char **options = CSLDuplicate(s->open_options);
    GDALDatasetH dataset;
    if (s->detects_types != NULL)
        options = CSLSetNameValue(options, "AUTODETECT_TYPE", s->detects_types);
    dataset = open_bytes(s, s->bytes, n, options);
    CSLDestroy(options);
    return dataset;
}

/* Returns 1 if the key of the first report is an integer. All keys must then be
 * integers, even if other reports of the batch make GDAL choose another type.
 */
static int is_first_key_integer(const struct oj_report_stream *s)
{
    const struct report_record *first = s->records;
    const int64_t n = s->n_records > 0 ? first->begin + first->n : 0;
    GDALDatasetH dataset = n > 0 ? open_with_types(s, n) : NULL;
    OGRLayerH layer = dataset != NULL ? GDALDatasetGetLayer(dataset, 0) : NULL;
    int is_integer = 0;
    if (layer != NULL)
    {
        OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
        const int key = OGR_FD_GetFieldIndex(defn, s->options.key);
        OGRFieldType type = OFTString;
        if (key >= 0)
            type = OGR_Fld_GetType(OGR_FD_GetFieldDefn(defn, key));
        is_integer = type == OFTInteger || type == OFTInteger64;
    }
    close_bytes(s, dataset);
    return is_integer;
}

/* Adds a field like `like` to the layer in memory, of a type that holds later
 * values, too. The key becomes a 64-bit integer if it is a 32-bit one, or if
 * the first report's key is an integer and other keys made GDAL choose text or
 * real. Other 32-bit integers of GeoJSON become reals, because 3.5 may
 * follow 3. Returns 0 on failure. */
static int add_field(const struct oj_report_stream *s, OGRFieldDefnH like)
{
    const char *name = OGR_Fld_GetNameRef(like);
    const OGRFieldType type = OGR_Fld_GetType(like);
    const int is_key = strcasecmp(name, s->options.key) == 0;
    const int is_mixed_key =
        is_key && s->has_integer_keys && (type == OFTString || type == OFTReal);
    OGRFieldDefnH wider;
    OGRErr result;
    if (!is_mixed_key && ((type != OFTInteger && type != OFTIntegerList) ||
                          OGR_Fld_GetSubType(like) != OFSTNone ||
                          (!is_key && s->format != FORMAT_SEQUENCE)))
        return OGR_L_CreateField(s->layer, like, TRUE) == OGRERR_NONE;
    wider = OGR_Fld_Create(name, is_key                   ? OFTInteger64
                                 : type == OFTIntegerList ? OFTRealList
                                                          : OFTReal);
    result = OGR_L_CreateField(s->layer, wider, TRUE);
    OGR_Fld_Destroy(wider);
    return result == OGRERR_NONE;
}

/* Makes the layer in memory with the fields of `like`. */
static oj_status make_layer_like(struct oj_report_stream *s, OGRLayerH like,
                                 GDALDatasetH dataset, struct oj_error *err)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(like);
    OGRwkbGeometryType type = OGR_L_GetGeomType(like);
    if (s->format == FORMAT_SEQUENCE) /* later features may have any geometry
                                         type */
        type = wkbUnknown;
    s->layer = GDALDatasetCreateLayer(dataset, "reports",
                                      OGR_L_GetSpatialRef(like), type, NULL);
    for (int i = 0; s->layer != NULL && i < OGR_FD_GetFieldCount(defn); i++)
    {
        if (!add_field(s, OGR_FD_GetFieldDefn(defn, i)))
            s->layer = NULL;
    }
    return s->layer != NULL ? OJ_OK : oj_driver_fail_memory_dataset(err);
}

/* Makes the layer in memory with the types that GDAL finds in the first n bytes
 * (see open_with_types()). If GDAL cannot read them, makes no layer. */
static oj_status make_layer_of_types(struct oj_report_stream *s, int64_t n,
                                     GDALDatasetH dataset, struct oj_error *err)
{
    GDALDatasetH records = open_with_types(s, n);
    OGRLayerH like = records != NULL ? GDALDatasetGetLayer(records, 0) : NULL;
    oj_status status =
        like != NULL ? make_layer_like(s, like, dataset, err) : OJ_OK;
    close_bytes(s, records);
    return status;
}

/* Writes the header of GeoJSONSeq, a feature with a text in each text field,
 * and returns the number of fields written. Leaves out the field "id", because
 * a property of this name would hide the ids of the features. */
static int write_sample_feature(const struct oj_report_stream *s, FILE *file)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(s->layer);
    int n = 0;
    fprintf(file, "%s{\"type\":\"Feature\",\"properties\":{",
            s->has_separators ? "\x1e" : "");
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
    {
        OGRFieldDefnH field = OGR_FD_GetFieldDefn(defn, i);
        if (OGR_Fld_GetType(field) != OFTString ||
            strcmp(OGR_Fld_GetNameRef(field), "id") == 0)
            continue;
        fputs(n++ > 0 ? "," : "", file);
        oj_text_file_put_json(file, OGR_Fld_GetNameRef(field));
        fputs(":\"text\"", file);
    }
    fputs("},\"geometry\":null}\n", file);
    return n;
}

static oj_status put_header_of_sample_feature(struct oj_report_stream *s,
                                              struct oj_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *file = open_memstream(&text, &n);
    const int n_texts = file != NULL ? write_sample_feature(s, file) : 0;
    const int is_written = file != NULL && fclose(file) == 0;
    oj_status status = is_written ? OJ_OK : oj_fail_nomem(err, 1, n);
    if (status == OJ_OK && n_texts > 0)
    {
        status = put_header_before_records(s, text, (int64_t)n, err);
        s->has_sample = status == OJ_OK;
    }
    free(text);
    return status;
}

/* Makes a map from the fields of a batch to those of the layer, by name: -1 for
 * a field that the layer lacks, which is counted as left out. */
static oj_status map_fields_by_name(struct oj_report_stream *s,
                                    OGRFeatureDefnH from, int **map,
                                    struct oj_error *err)
{
    OGRFeatureDefnH to = OGR_L_GetLayerDefn(s->layer);
    const int n = OGR_FD_GetFieldCount(from);
    OJ_NEW(*map, n + 1, err);
    for (int i = 0; i < n; i++)
    {
        const char *name = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(from, i));
        OGRFieldDefnH there =
            i < OGR_FD_GetFieldCount(to) ? OGR_FD_GetFieldDefn(to, i) : NULL;
        /* Names of CSV columns may repeat; then the position decides. */
        (*map)[i] =
            there != NULL && strcmp(OGR_Fld_GetNameRef(there), name) == 0
                ? i
                : OGR_FD_GetFieldIndex(to, name);
        if ((*map)[i] >= 0)
            continue;
        if (s->found.n_left_out++ == 0)
            snprintf(s->found.left_out, sizeof s->found.left_out, "%s", name);
    }
    return OJ_OK;
}

/* Notes a value that its field cannot hold; the first one is described. */
static void note_value_that_does_not_fit(struct oj_report_stream *s,
                                         const struct report_record *record,
                                         OGRFeatureH from, int field,
                                         OGRFieldDefnH there)
{
    char place[80] = "";
    if (s->found.n_not_held++ > 0)
        return;
    if (record != NULL)
        snprintf(place, sizeof place, " of report %lld (line %lld)",
                 (long long)record->number, (long long)record->line);
    snprintf(s->found.not_held, sizeof s->found.not_held,
             "'%.60s'%s does not fit the field '%.100s', which is %s by the "
             "first reports",
             OGR_F_GetFieldAsString(from, field), place,
             OGR_Fld_GetNameRef(there),
             OGR_Fld_GetSubType(there) == OFSTBoolean
                 ? "Boolean"
                 : OGR_GetFieldTypeName(OGR_Fld_GetType(there)));
}

/* Copies the values of a report: field i to field map[i], unless map[i] is
 * negative. A value that does not fit its field becomes NULL and is noted. If
 * the key does not fit, *is_sound becomes 0, the report is noted as unread, and
 * copying stops. With record NULL *is_sound stays 1. */
static void copy_values(struct oj_report_stream *s,
                        const struct report_record *record, OGRFeatureH from,
                        const int *map, OGRFeatureH to, int *is_sound)
{
    *is_sound = 1;
    for (int i = 0; i < OGR_F_GetFieldCount(from) && *is_sound; i++)
    {
        OGRFieldDefnH there;
        if (map[i] < 0 || oj_report_value_copy(from, i, to, map[i]))
            continue;
        there = OGR_F_GetFieldDefnRef(to, map[i]);
        *is_sound = record == NULL ||
                    strcasecmp(OGR_Fld_GetNameRef(there), s->options.key) != 0;
        if (*is_sound)
            note_value_that_does_not_fit(s, record, from, i, there);
        else
            record_unread_report(
                s, record,
                "its key %.60s is '%.60s', but that of the first report is an "
                "integer",
                s->options.key, OGR_F_GetFieldAsString(from, i));
    }
}

/* Adds a report to the layer as a row. Field i of the report becomes field
 * map[i]. */
static oj_status add_report(struct oj_report_stream *s,
                            const struct report_record *record,
                            OGRFeatureH from, const int *map,
                            struct oj_error *err)
{
    OGRFeatureH to = OGR_F_Create(OGR_L_GetLayerDefn(s->layer));
    OGRErr result = OGRERR_NOT_ENOUGH_MEMORY;
    int is_sound = 1;
    if (to != NULL)
    {
        OGRGeometryH place = OGR_F_StealGeometry(from);
        copy_values(s, record, from, map, to, &is_sound);
        result =
            place == NULL ? OGRERR_NONE : OGR_F_SetGeometryDirectly(to, place);
        OGR_F_SetFID(to, s->n_rows);
        if (is_sound && result == OGRERR_NONE)
            result = OGR_L_CreateFeature(s->layer, to);
        OGR_F_Destroy(to);
    }
    if (result != OGRERR_NONE)
        return oj_fail(
            err, OJ_ERR_NOMEM,
            "out of memory for reports: free memory, or use a smaller -batch");
    s->n_rows += is_sound;
    return OJ_OK;
}

/* Returns 0 if the report has a text in its geometry column that is no WKT. */
static int check_geometry_text_or_note_flaw(struct oj_report_stream *s,
                                            const struct report_record *record,
                                            OGRFeatureH from)
{
    if (OGR_F_GetGeometryRef(from) != NULL ||
        !oj_csv_row_has_wkt(&s->columns, s->bytes + record->begin, record->n))
        return 1;
    record_unread_report(s, record,
                         "the text in its geometry column is not WKT");
    return 0;
}

/* Appends the features of `from` to the layer as rows, in their order. Stores
 * the number of features in *n_read. Feature i belongs to record i. */
static oj_status copy_reports(struct oj_report_stream *s, OGRLayerH from,
                              int64_t *n_read, struct oj_error *err)
{
    oj_status status;
    int *map;
    OJ_TRY(map_fields_by_name(s, OGR_L_GetLayerDefn(from), &map, err));
    status = OJ_OK;
    if (s->has_sample)
        OGR_F_Destroy(OGR_L_GetNextFeature(from));
    for (*n_read = 0; status == OJ_OK; (*n_read)++)
    {
        OGRFeatureH report = OGR_L_GetNextFeature(from);
        const struct report_record *record =
            *n_read < s->n_records ? &s->records[*n_read] : NULL;
        if (report == NULL)
            break;
        if (record == NULL ||
            check_geometry_text_or_note_flaw(s, record, report))
            status = add_report(s, record, report, map, err);
        OGR_F_Destroy(report);
    }
    oj_free(map);
    return status;
}

/* Deletes the rows from row n on. */
static oj_status delete_rows(struct oj_report_stream *s, int64_t n,
                             struct oj_error *err)
{
    for (; s->n_rows > n; s->n_rows--)
    {
        if (OGR_L_DeleteFeature(s->layer, s->n_rows - 1) != OGRERR_NONE)
            return oj_fail_internal(
                err, "GDAL cannot delete rows of a layer in memory");
    }
    return OJ_OK;
}

/* Reads the records into the layer; if there is no layer yet, makes it in
 * dataset. Sets *is_complete to 0 if GDAL did not make one row of each record;
 * errors then holds the reason. */
static oj_status read_records(struct oj_report_stream *s, GDALDatasetH dataset,
                              struct oj_ogr_errors *errors, int *is_complete,
                              struct oj_error *err)
{
    const struct report_record *last =
        s->n_records > 0 ? &s->records[s->n_records - 1] : NULL;
    const int64_t end = last != NULL ? last->begin + last->n : s->n_header;
    GDALDatasetH records;
    OGRLayerH from;
    oj_status status = OJ_OK;
    int64_t n_read = 0;
    if (dataset != NULL)
        s->has_integer_keys = is_first_key_integer(s);
    if (dataset != NULL && s->detects_types != NULL)
        OJ_TRY(make_layer_of_types(s, end, dataset, err));
    oj_ogr_errors_forget(errors);
    records = open_bytes(s, s->bytes, end, s->open_options);
    from = records != NULL ? GDALDatasetGetLayer(records, 0) : NULL;
    if (from != NULL && s->layer == NULL)
        status = make_layer_like(s, from, dataset, err);
    if (from != NULL && status == OJ_OK)
        status = copy_reports(s, from, &n_read, err);
    close_bytes(s, records);
    *is_complete = from != NULL && errors->n_failures == 0 &&
                   (n_read == s->n_records || s->format == FORMAT_CSV);
    return status;
}

/* Returns 1 if GDAL makes exactly one feature of each of n GeoJSONSeq records.
 */
static int does_gdal_read_each_record(const struct oj_report_stream *s,
                                      const struct report_record *records,
                                      int64_t n, struct oj_ogr_errors *errors)
{
    const struct report_record *last = &records[n - 1];
    GDALDatasetH dataset =
        open_bytes(s, s->bytes + records->begin,
                   last->begin + last->n - records->begin, s->open_options);
    OGRLayerH layer = dataset != NULL ? GDALDatasetGetLayer(dataset, 0) : NULL;
    OGRFeatureH feature;
    int64_t n_read = 0;
    oj_ogr_errors_forget(errors);
    while (layer != NULL && (feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        n_read++;
        OGR_F_Destroy(feature);
    }
    close_bytes(s, dataset);
    return n_read == n && errors->n_failures == 0;
}

/* Marks the records among these n that GDAL cannot read. Finds them by repeated
 * halving. */
static void mark_unread_records(struct oj_report_stream *s,
                                struct report_record *records, int64_t n,
                                struct oj_ogr_errors *errors)
{
    if (n == 0 || does_gdal_read_each_record(s, records, n, errors))
        return;
    if (n > 1)
    {
        mark_unread_records(s, records, n / 2, errors);
        if (s->failure.status == OJ_OK ||
            s->found.first_unread > records[n / 2].number)
            mark_unread_records(s, records + n / 2, n - n / 2, errors);
        return;
    }
    records->is_broken = 1;
    record_unread_report(
        s, records, "it is no GeoJSON feature%s%s%.100s%s%s",
        s->has_separators ? "" : ", but GeoJSONSeq has one feature per line",
        errors->failure[0] != '\0' ? " (" : "", errors->failure,
        errors->failure[0] != '\0' ? ")" : "",
        records->number == 1 ? "; ogr2ogr -f GeoJSONSeq makes such lines of a "
                               "FeatureCollection"
                             : "");
}

static oj_status delete_layer(struct oj_report_stream *s, GDALDatasetH dataset,
                              struct oj_error *err)
{
    if (s->layer != NULL && GDALDatasetDeleteLayer(dataset, 0) != OGRERR_NONE)
        return oj_fail_internal(err, "GDAL cannot delete a layer in memory");
    s->layer = NULL;
    s->n_rows = 0;
    return OJ_OK;
}

/* Reads the records. If GDAL cannot read some of them, marks those and reads
 * the others. */
static oj_status read_readable_records(struct oj_report_stream *s,
                                       GDALDatasetH dataset,
                                       struct oj_ogr_errors *errors,
                                       struct oj_error *err)
{
    const struct findings found = s->found;
    const struct oj_error failure = s->failure;
    int is_complete;
    OJ_TRY(read_records(s, dataset, errors, &is_complete, err));
    if (is_complete)
        return OJ_OK;
    if (s->format != FORMAT_SEQUENCE)
        return fail_records(s, errors->failure, err);
    s->found = found;
    s->failure = failure;
    OJ_TRY(dataset != NULL ? delete_layer(s, dataset, err)
                           : delete_rows(s, 0, err));
    mark_unread_records(s, s->records, s->n_records, errors);
    remove_marked_records(s);
    if (s->n_records == 0)
        return OJ_OK;
    oj_ogr_errors_forget(errors);
    OJ_TRY(read_records(s, dataset, errors, &is_complete, err));
    return is_complete ? OJ_OK : fail_records(s, errors->failure, err);
}

/* Warns of the first lost field, value and report now, because a stream may
 * never end. */
static void warn_of_first_losses(struct oj_report_stream *s)
{
    if (s->found.n_left_out > 0 && s->warned.n_left_out == 0)
        oj_warn_at_once(
            "reports on %s have fields that the first reports did not "
            "have, such as '%s': these are left out; to keep them, give each a "
            "value in the first report",
            s->options.name, s->found.left_out);
    if (s->found.n_not_held > 0 && s->warned.n_not_held == 0)
        oj_warn_at_once("reports on %s: %s, so NULL is written; a value of a "
                        "wider type in the first report prevents this",
                        s->options.name, s->found.not_held);
    s->warned = s->found;
}

/* Makes rows of the records that can be read. Without skip_failures, only makes
 * those before the first unreadable record. dataset is the dataset in which the
 * layer is made, or NULL if the layer exists. */
static oj_status load_records(struct oj_report_stream *s, GDALDatasetH dataset,
                              struct oj_error *err)
{
    struct oj_ogr_errors errors = {0};
    oj_status status;
    int64_t n = 0;
    oj_ogr_errors_begin(&errors);
    status = read_readable_records(s, dataset, &errors, err);
    oj_ogr_errors_end(&errors);
    if (errors.n_warnings > 0)
        CPLError(CE_Warning, CPLE_AppDefined, "%s", errors.warning);
    while (s->failure.status != OJ_OK && n < s->n_records &&
           s->records[n].number < s->found.first_unread)
        n++;
    if (status == OJ_OK && n < s->n_records && s->failure.status != OJ_OK)
        status = delete_rows(s, n, err);
    drop_complete_records(s);
    warn_of_first_losses(s);
    if (status == OJ_OK && s->format == FORMAT_SEQUENCE && dataset != NULL &&
        s->layer != NULL)
        status = put_header_of_sample_feature(s, err);
    return status;
}

/* ---- the stream ---------------------------------------------------------- */

static oj_status fail_without_reports(const struct oj_report_stream *s,
                                      struct oj_error *err)
{
    if (s->found.n_unread > 0)
        return oj_fail(err, OJ_ERR_DATA,
                       "%s ends before the first report that can be read; %s",
                       s->options.name, s->found.unread);
    return oj_fail(err, OJ_ERR_DATA,
                   "%s ends before the first report: write reports as CSV or "
                   "GeoJSONSeq, one per line",
                   s->options.name);
}

/* Waits until there is a report that can be read, or the end of the input. */
static oj_status open_stream(struct oj_report_stream *s, GDALDatasetH dataset,
                             struct oj_error *err)
{
    while (s->n_rows == 0)
    {
        OJ_TRY(collect_records(s, err));
        leave_out_unsound_records(s);
        if (s->n_records > 0 || (!can_receive_more(s) && s->n_header > 0))
            OJ_TRY(load_records(s, s->layer == NULL ? dataset : NULL, err));
        else
            drop_complete_records(s);
        if (s->n_rows == 0 && s->failure.status != OJ_OK)
            return oj_fail(err, s->failure.status, "%s", s->failure.message);
        if (!can_receive_more(s))
            break;
    }
    return s->layer != NULL ? OJ_OK : fail_without_reports(s, err);
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
    s->line = 1;
    oj_csv_columns_init(&s->columns);
    (void)read_stdin_name_and_format(options->name, &s->format);
    s->open_options = CSLDuplicate((CSLConstList)options->open_options);
    s->detects_types = CSLFetchNameValue((CSLConstList)options->open_options,
                                         "AUTODETECT_TYPE");
    if (s->detects_types != NULL)
        s->open_options =
            CSLSetNameValue(s->open_options, "AUTODETECT_TYPE", "NO");
    snprintf(s->path, sizeof s->path, "/vsimem/ogrjoin-%d/reports",
             (int)getpid());
    memory = oj_driver_create_memory_dataset();
    status = memory != NULL ? open_stream(s, memory, err)
                            : oj_driver_fail_memory_dataset(err);
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
    OJ_TRY(delete_rows(s, 0, err));
    while (s->n_rows == 0)
    {
        OJ_TRY(collect_records(s, err));
        if (s->n_records == 0 && !can_receive_more(s))
            break;
        leave_out_unsound_records(s);
        if (s->n_records > 0)
            OJ_TRY(load_records(s, NULL, err));
        else
            drop_complete_records(s);
    }
    s->has_failed = s->n_rows == 0 && s->failure.status != OJ_OK;
    *n_rows = s->n_rows;
    return OJ_OK;
}

oj_status oj_report_stream_failure(const struct oj_report_stream *s,
                                   struct oj_error *err)
{
    return s == NULL || !s->has_failed
               ? OJ_OK
               : oj_fail(err, s->failure.status, "%s", s->failure.message);
}

int64_t oj_report_stream_count_unread(const struct oj_report_stream *s)
{
    return s != NULL ? s->found.n_unread : 0;
}

void oj_report_stream_warn(const struct oj_report_stream *s)
{
    if (s == NULL)
        return;
    if (s->found.n_not_held > 1)
        oj_warn("reports on %s: %lld values do not fit the types of their "
                "fields, of which the first was warned of: NULL is written",
                s->options.name, (long long)s->found.n_not_held);
    if (s->found.n_unread > 0)
        oj_warn("%s; %s left out", s->found.unread,
                s->found.n_unread > 1 ? CPLSPrintf("%lld such reports are",
                                                   (long long)s->found.n_unread)
                                      : "it is");
    if (s->n_bytes > s->n_complete && !s->at_end && !s->has_failed)
        oj_warn("the last report on %s is cut off in the middle, and left out",
                s->options.name);
}

void oj_report_stream_close(struct oj_report_stream *s)
{
    if (s == NULL)
        return;
    oj_free(s->bytes);
    oj_free(s->records);
    CSLDestroy(s->open_options);
    oj_free(s);
}
