/** Reports that arrive on standard input without end, as CSV or GeoJSONSeq: a
 *  layer in memory that holds the latest of them.
 *
 *    stdin --bytes--> complete records --driver of GDAL--> layer in memory
 *                                                          (its rows: a batch)
 *
 *  GDAL's drivers read ahead: a report would wait in their buffers until others
 *  arrive, and the GeoJSONSeq driver reads to the end before it returns the
 *  first row. Here bytes are divided into records as they arrive. Each batch of
 *  records is opened as a file in memory (CSV with the first line before it).
 *
 *  Fields and their types are those of the first batch; values of later batches
 *  go into the fields by name. Because later values can be larger, a key of
 *  32-bit integers gets 64 bits, and other fields of integers in GeoJSONSeq
 *  become reals. Fields with other names are left out, and values that a field
 *  cannot hold become NULL; both are counted.
 *
 *  A report that cannot be read ends the stream or, with skip_failures, is left
 *  out: a row of CSV whose number of fields differs from that of the first
 *  line, a coordinate that is no number, a quotation that is not closed, JSON
 *  that is no feature for GDAL, a key that does not fit the type of the first
 *  keys. Rows of CSV are checked here, because GDAL completes them. Broken
 *  GeoJSONSeq records are found by halving when GDAL reports an error or
 *  returns fewer features than records.
 *
 *  A batch is closed when a quarter of the time that a report may wait has
 *  passed since its first report; the rest of the time is for the join and the
 *  writer. Only one thread at a time may use a stream.
 */
#ifndef OJ_REPORT_STREAM_H
#define OJ_REPORT_STREAM_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>
#include <ogr_api.h>

#include <stdint.h>

struct oj_report_stream;

/** Returns 1 if name is that of standard input, with the prefix of one of the
 *  two formats or without a prefix (the first bytes then decide the format). */
int oj_report_stream_is_name(const char *name);

struct oj_report_stream_options
{
    const char *name;          /**< "/vsistdin/", or "CSV:/vsistdin/" */
    const char **open_options; /**< open options of the format's driver, or
                                    NULL */
    const char *key;           /**< name of the key field; integers in it stay
                                    integers */
    double wait_s;             /**< seconds that a report may wait before its
                                    rows are written */
    int64_t most_rows;         /**< maximum number of rows of a batch */
    int skip_failures; /**< 1 if reports that cannot be read are left out */
};

/** Waits for the first report, or the end of the input, and makes the layer:
 *  *layer is the only layer of *dataset, which the caller must close after the
 *  stream. Objects to which options points must outlive the stream.
 *  OJ_ERR_DATA: the bytes contain a zero byte, so they are neither CSV nor
 *  GeoJSONSeq. OJ_ERR_CANCELLED: the flag of the calling thread is set. */
OJ_MUST_USE oj_status
oj_report_stream_open(const struct oj_report_stream_options *options,
                      struct oj_report_stream **out, GDALDatasetH *dataset,
                      OGRLayerH *layer, struct oj_error *err);

/** Waits for the next batch and replaces the rows of the layer by it; the
 *  function `refill` of struct oj_read_options. The first batch is in the layer
 *  when the stream is opened. *n_rows becomes 0 after the last row: the input
 *  has ended, a signal has ended it (oj_cancel.h), or a report cannot be read
 *  (oj_report_stream_failure()). */
oj_status oj_report_stream_refill(void *stream, int64_t *n_rows,
                                  struct oj_error *err);

/** If a report that cannot be read has ended the stream, returns OJ_ERR_DATA
 *  with the report's number, line and first characters. The refill returns no
 *  error for it, so that the rows before it are joined and written first.
 *  Accepts NULL. */
OJ_MUST_USE oj_status oj_report_stream_failure(
    const struct oj_report_stream *stream, struct oj_error *err);

/** Returns the number of reports that were left out because they cannot be
 *  read. Accepts NULL. */
int64_t oj_report_stream_count_unread(const struct oj_report_stream *stream);

/** Warns of fields, values and reports that were left out. */
void oj_report_stream_warn(const struct oj_report_stream *stream);

/** Frees the stream; accepts NULL. */
void oj_report_stream_close(struct oj_report_stream *stream);

#endif
