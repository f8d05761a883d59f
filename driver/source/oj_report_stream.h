/** Reports that come on standard input without end, as CSV or GeoJSONSeq: a
 *  layer in memory that holds the latest of them.
 *
 *   stdin --bytes--> complete records --driver of GDAL--> layer in memory
 *                                                         (its rows: a batch)
 *
 *  GDAL's drivers read ahead: a report would wait in their buffers until others
 *  come, and GeoJSONSeq's reads to the end before the first row.  Here records
 *  are cut from the bytes as they arrive, and each run of them is opened as a
 *  file in memory of its own, CSV behind the first line.  Fields and their
 *  types are those of the first batch.  But fields of 32-bit integers become
 *  wider, because later values can be: the key 64-bit integers, others of
 *  GeoJSONSeq reals.  Values of a later batch go into the fields by name. Other
 * names are left out, and values that a field cannot hold become NULL, with
 * counts.
 *
 *  A report that cannot be read ends the stream, or is left out: a row of CSV
 *  with other fields than the first line, a coordinate that is no number, a
 *  quotation that is not closed, JSON that GDAL makes no feature of, a key that
 *  does not fit the type of the first ones.  Rows of CSV are checked here,
 *  because GDAL fills them up; which record of GeoJSONSeq is broken is found by
 *  halves, once GDAL has reported an error or fewer features than records.
 *
 *  A batch is what has come until a quarter of the time that a report may wait
 *  has passed since its first one; the rest of the time is for the join and the
 *  writer.  One thread at a time uses a stream.
 */
#ifndef OJ_REPORT_STREAM_H
#define OJ_REPORT_STREAM_H

#include "../../flatten/base/oj_status.h"

#include <gdal.h>
#include <ogr_api.h>

#include <stdint.h>

struct oj_report_stream;

/** 1 when name is that of standard input in one of the two formats, or in
 *  whatever format its first bytes are of. */
int oj_report_stream_is_name(const char *name);

struct oj_report_stream_options
{
    const char *name;          /**< "/vsistdin/", or "CSV:/vsistdin/" */
    const char **open_options; /**< of the format's driver, or NULL */
    const char *key;           /**< a field whose integers stay such */
    double wait_s;             /**< that a report may wait */
    int64_t most_rows;         /**< of a batch */
    int skip_failures;         /**< leave out reports that cannot be read */
};

/** Waits for the first report, or the end, and makes the layer: *layer, the
 *  only one of *dataset, which the caller closes after the stream.  What
 *  options point at outlives the stream.
 *  OJ_ERR_DATA: no such format; OJ_ERR_CANCELLED */
OJ_MUST_USE oj_status
oj_report_stream_open(const struct oj_report_stream_options *options,
                      struct oj_report_stream **out, GDALDatasetH *dataset,
                      OGRLayerH *layer, struct oj_error *err);

/** For struct oj_read_options: replaces the rows of the layer by the next
 *  batch, and waits for it.  Those of the opening are the first batch.
 *  *n_rows 0: the end, or a signal has asked for it (oj_cancel.h) and all
 *  complete records were given out, or a report cannot be read and all before
 *  it were given out: oj_report_stream_failure(). */
oj_status oj_report_stream_refill(void *stream, int64_t *n_rows,
                                  struct oj_error *err);

/** OJ_ERR_DATA with number, line and beginning of the report that has ended the
 *  stream, because it cannot be read.  It is no error of the refill, so that
 * the rows before it are joined and written first.  Accepts NULL. */
OJ_MUST_USE oj_status oj_report_stream_failure(
    const struct oj_report_stream *stream, struct oj_error *err);

/** Number of reports that were left out because they cannot be read.  Accepts
 *  NULL. */
int64_t oj_report_stream_unread(const struct oj_report_stream *stream);

/** Warns of what was left out. */
void oj_report_stream_warn(const struct oj_report_stream *stream);

/** Accepts NULL. */
void oj_report_stream_close(struct oj_report_stream *stream);

#endif
